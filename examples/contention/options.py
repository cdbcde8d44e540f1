# SPDX-License-Identifier: Apache-2.0
"""What the command line asks for."""
import argparse
import os
import random

from crew import PROCESSES_MAX, THREADS_MAX

SESSION_MS, SESSION_SHORT_MS = 10000, 1000
WORK_US = 50  # so that a missing lock shows
SECONDS = 5

ABOUT = 'Processes and threads update one record under one lock; then the files they left are checked.'
EXIT = '''Exit status: 0 if no update was lost and no two holders overlapped (with --no-lock: always; with --pause a stale
write must have been refused, too), 1 if not or if the run failed, 2 for a wrong option.'''


class Parser(argparse.ArgumentParser):
    def error(self, message):
        """One line says what is wrong and what to do."""
        self.exit(2, f'contention: {message}\n')


def number(least, most):
    def take(text):
        if not (text.isascii() and text.isdigit() and least <= int(text) <= most):
            raise argparse.ArgumentTypeError(f'must be a whole number from {least} to {most}, not "{text}"')
        return int(text)
    return take


def parser():
    p = Parser(prog='contention', description=ABOUT, epilog=EXIT)
    p.add_argument('--processes', type=number(1, PROCESSES_MAX), default=4, metavar='N', help='processes, 1 to 64 (4)')
    p.add_argument('--threads', type=number(1, THREADS_MAX), default=2, metavar='N', help='of each process, 1 to 64 (2)')
    p.add_argument('--seconds', type=number(1, 86400), default=0, metavar='N',
                   help='run for N seconds (5), with --crash or --pause until there was one')
    p.add_argument('--count', type=number(1, 10**9), default=0, metavar='N', help='or until each thread has made N updates')
    p.add_argument('--servers', default=os.environ.get('ZKLOCK_SERVERS'), metavar='HOST:PORT,..',
                   help='the ZooKeeper ensemble (environment variable ZKLOCK_SERVERS)')
    p.add_argument('--path', default='/zklock/contention', help="the lock's path (/zklock/contention)")
    p.add_argument('--session-timeout', type=number(100, 600000), default=0, metavar='MS',
                   help='of each process (10000; with --crash or --pause 1000)')
    p.add_argument('--work', type=number(1, 10000), default=0, metavar='MS',
                   help='time of a holder between read and write (0.05)')
    p.add_argument('--no-lock', dest='lock', action='store_false', help='omit the lock, to see what it prevents')
    p.add_argument('--crash', action='store_true', help='kill holders of the lock now and then, and start new processes')
    p.add_argument('--pause', action='store_true', help='stop a holder until its session has ended, then continue it')
    p.add_argument('--seed', type=number(0, 2**64 - 1), default=random.randrange(10**6), metavar='N',
                   help='of all random choices')
    p.add_argument('--keep', metavar='DIR', help='leave the files journal and record in DIR')
    p.add_argument('--summary', metavar='FILE', help='add the final line to FILE as well')
    p.add_argument('--json', action='store_true', help='one JSON object in place of table and final line')
    p.add_argument('--svg', metavar='FILE', help='draw the run: the waits and holds of each thread')
    return p


def refuse(p, o):
    """Combinations that make no sense are refused rather than corrected: the user meant something else."""
    for wrong, text in (
            (o.seconds and o.count, '--seconds and --count exclude each other: give one of them'),
            (not o.lock and (o.crash or o.pause), '--no-lock excludes --crash and --pause: omit one of them'),
            (o.pause and o.processes < 2, '--pause needs other processes that continue: give --processes 2 or more'),
            (o.lock and not o.servers, 'no server: give --servers HOST:PORT, or set ZKLOCK_SERVERS, or run '
                                       'examples/demo.sh, which starts a private one')):
        if wrong:
            p.error(text)


def parse(argv):
    p = parser()
    o = p.parse_args(argv)
    refuse(p, o)
    o.seconds = o.seconds or (0 if o.count else SECONDS)
    o.session_timeout = o.session_timeout or (SESSION_SHORT_MS if o.crash or o.pause else SESSION_MS)
    o.work_us = o.work * 1000 or WORK_US
    return o
