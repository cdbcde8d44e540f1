#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The benchmark: zklock beside the raw client library, Curator and Kazoo, in one run, on one server, taking turns.

run.sh beside this file installs and builds what is needed and starts this."""
import argparse
import hashlib
import json
import os
import pathlib
import platform
import random
import re
import signal
import subprocess
import sys
import tempfile

import charts
import outage
import peers
import report
import workloads
from board import Board
from peers import Group, PeerFailed, Places, Violation
from server import Server
from stats import Processors

PARENT = '/bench'  # the server counts by the first part of a path, and its answers grow with each
STOLEN_PERCENT = 3  # of the processors: a round in which others on the host take more is repeated, at most as many as there are
WARM_SERVER_CYCLES = 20000
SHORT_PEERS, SHORT_WORKLOADS = ['zklock', 'floor-1rt'], ['W1', 'W7']
WITNESS_S = 30  # much more than it takes
SIGNALS = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
FAILED, VIOLATED, INTERRUPTED = 1, 3, 130


def words(text):
    return [word for word in text.split(',') if word]


def options(argv):
    parser = argparse.ArgumentParser(
        prog='run.sh', description='Measure zklock beside the raw client library, Curator and Kazoo: the same run, the '
        'same server, one peer after the other in each round.', epilog='peers: ' + ', '.join(peers.BY_NAME) +
        '. workloads: ' + ', '.join(workloads.BY_NAME) + ' (W2 is both of W2-2 and W2-8).')
    parser.add_argument('--peers', type=words, default=[], help='comma-separated; all that a workload is for')
    parser.add_argument('--workloads', type=words, default=[], help='comma-separated; all')
    parser.add_argument('--rounds', type=int, default=9, help='of each workload (9); with --fsync both a third of them with fsync')
    parser.add_argument('--seconds', type=float, default=2, help='of each run (2)')
    parser.add_argument('--fsync', choices=['no', 'yes', 'both'], default='both',
                        help='does the server wait for its disk (both)')
    parser.add_argument('--servers', type=int, choices=[1, 3, 5], default=1, help='of the ensemble (1)')
    parser.add_argument('--tick', type=int, default=500, help="the servers' tickTime in ms (500; for outage 2000, as in production)")
    parser.add_argument('--out', type=pathlib.Path, help='write a line of JSON for each run')
    parser.add_argument('--table', type=pathlib.Path, metavar='FILE',
                        help='write the table of all peers between the marks of this file, as docs/benchmarks.md has them')
    parser.add_argument('--capacity', type=pathlib.Path, help='likewise, what an ensemble carries: of W9 and W4')
    parser.add_argument('--charts', type=pathlib.Path, help='write SVG charts into this folder')
    parser.add_argument('--from', type=pathlib.Path, dest='from_',
                        help='measure nothing: tables and charts of an --out')
    parser.add_argument('--short', action='store_true', help='some seconds, to see that it works')
    parser.add_argument('--build', type=pathlib.Path, required=True, help=argparse.SUPPRESS)
    parser.add_argument('--root', type=pathlib.Path, required=True, help=argparse.SUPPRESS)
    o = parser.parse_args(argv)
    if o.short:
        o.peers, o.workloads = o.peers or SHORT_PEERS, o.workloads or SHORT_WORKLOADS
        o.rounds, o.seconds, o.fsync = 2, 0.5, 'no'
    if o.rounds < 1 or not o.seconds > 0:
        parser.error('--rounds and --seconds are from 1, and more than 0')
    for name in o.peers:
        if name not in peers.BY_NAME:
            parser.error(f'no peer {name}; there are: ' + ' '.join(peers.BY_NAME))
    try:
        o.chosen = [workloads.scaled(w) for w in workloads.chosen(o.workloads or list(workloads.BY_NAME))]
    except ValueError as error:
        parser.error(str(error))
    return o


def check_floor(here):
    """A slower floor would flatter us, so nobody changes it by accident."""
    for line in (here / 'floor.sha256').read_text(encoding='utf-8').splitlines():
        pinned, name = line.split()
        if hashlib.sha256((here / name).read_bytes()).hexdigest() != pinned:
            sys.exit(f'run.sh: {name} is not the one of floor.sha256: if it is as fast as before, write its new '
                     'checksum there')


class Run:
    def __init__(self, o, places):
        self.o = o
        self.places = places
        self.board = Board(str(places.temp / 'board'))
        self.records = []
        self.problems = []
        self.left_out = set()
        self.facts = ''
        self.out_path = o.out or places.temp / 'out.jsonl'
        self.out = open(self.out_path, 'w', encoding='utf-8')

    def peers_of(self, workload):
        found = []
        for name in workload.peers:
            peer = peers.BY_NAME[name]
            if (self.o.peers and name not in self.o.peers) or (name in workload.slow and name not in self.o.peers):
                continue
            why = self.places.why_not(peer)
            if not why:
                found.append(peer)
            elif name not in self.left_out:
                self.left_out.add(name)
                print(f'{name} is left out: {why}', flush=True)
        return found

    def group(self, workload, peer, server, path, warm=True):
        if workload.mode == 'outage':
            return outage.Holders(self.places, peer, workload, server, self.board, path)
        start = [f'servers={server.address}', f'board={self.board.path}'] + workload.words(path)
        self.board.clear()
        group = Group(self.places, peer, workload.processes, lambda _: start)
        if warm and workload.mode not in ('handles', 'clients', 'entry'):
            # All at once, so that what they do when they wait is warm too.
            # Some cycles at each path, too: lists are left out after eight.
            share = peer.warm_cycles if workload.processes <= 8 else peer.warm_cycles // workload.processes
            group.order(f'warm {max(share, 12 * workload.locks)}', 600)
        return group

    def problem(self, workload, peer, error):
        text = f'{workload.name}: {peer.name}: {error}'
        self.problems.append(text)
        print('FAILED: ' + text, flush=True)

    def keep(self, workload, peer, round_, fsync, figures):
        record = {'workload': workload.name, 'peer': peer.name, 'round': round_, 'fsync': fsync,
                  'servers': self.o.servers, 'figures': figures}
        self.records.append(record)
        self.write(record)

    def write(self, record):
        self.out.write(json.dumps(record) + '\n')
        self.out.flush()

    def warm_server(self, server):
        print('warming the server', flush=True)
        workload = workloads.BY_NAME['W1']
        # The floors end with a link, and of several servers one may be slow to accept the first.
        peer = peers.BY_NAME['floor-1rt' if self.o.servers == 1 else 'zklock']
        group = self.group(workload, peer, server, PARENT + '/warm')
        group.order(f'warm {WARM_SERVER_CYCLES}', 600)
        group.stop()

    def rounds(self, workload, fsync):
        rounds = -(-self.o.rounds // 3) if fsync and self.o.fsync == 'both' else self.o.rounds
        return min(rounds, workload.rounds_max)

    def one_run(self, workload, peer, groups, server, round_):
        """The figures; its processes stay, unless each round has its own."""
        if peer.name not in groups:
            path = f'{PARENT}/{workload.name.lower()}-{peer.name}-{round_ if workload.is_fresh else 0}'
            groups[peer.name] = self.group(workload, peer, server, path)
        figures = workloads.measure(workload, groups[peer.name], server, self.board, self.o.seconds)
        if workload.is_fresh:
            groups.pop(peer.name).stop()
        return figures

    @staticmethod
    def turns(peers, round_):
        """In an order drawn for each round, the same in every run: whose turn is before one's own matters, as servers and
        JVMs have things to do afterwards, or have slept."""
        return random.Random(round_).sample(peers, len(peers))

    def one_round(self, workload, taking_part, groups, server, round_):
        """The figures of each peer; who fails takes part no longer."""
        found = []
        for peer in self.turns(taking_part, round_):
            try:
                found.append((peer, self.one_run(workload, peer, groups, server, round_)))
            except (PeerFailed, TimeoutError, RuntimeError) as error:
                if 'VIOLATION' in str(error):
                    raise Violation(f'{workload.name}: {peer.name}: {error}') from error
                self.problem(workload, peer, error)
                taking_part.remove(peer)
                if peer.name in groups:
                    groups.pop(peer.name).stop(gently=False)
                self.board = Board(self.board.path)
        return found

    def workload(self, workload, server, fsync):
        """The rounds of all its peers, in turns."""
        taking_part = self.peers_of(workload)
        groups = {}
        wanted = self.rounds(workload, fsync)
        done = repeated = 0
        processors = Processors()
        try:
            while done < wanted:
                found = self.one_round(workload, taking_part, groups, server, done)
                share = processors.percent()['steal']
                if share > STOLEN_PERCENT and repeated < wanted:
                    repeated += 1
                    continue
                for peer, figures in found:
                    self.keep(workload, peer, done, fsync, dict(figures, stolen_percent=share))
                done += 1
        finally:
            for group in groups.values():
                group.stop(gently=sys.exc_info()[0] is None)
        if repeated:
            print(f'{workload.name}: {repeated} rounds were repeated: other machines took more than {STOLEN_PERCENT} % of the processors')
        if report.of(self.records, workload, fsync, self.o.servers):
            print('\n' + report.workload_text(workload, self.records, fsync, self.o.servers), flush=True)

    def all(self):
        """On one server after the other."""
        for fsync in {'no': [False], 'yes': [True], 'both': [False, True]}[self.o.fsync]:
            server = Server(str(self.places.build / 'tests/lib/zk-private'), fsync, self.o.servers, self.o.tick)
            try:
                if not self.facts:
                    self.facts = facts(self.o, self.places, server.version())
                    self.write({'facts': self.facts})
                self.one_server(server, fsync)
            finally:
                server.stop()
        readers = [w for w in self.o.chosen if w.mode == 'readers']
        if readers and self.o.servers == 1 and self.o.fsync != 'yes':
            self.readers(readers)

    def one_server(self, server, fsync):
        if self.o.short:
            self.witness(server)
        else:
            self.warm_server(server)
        for workload in self.o.chosen:
            if workload.mode == 'readers':
                continue
            if not fsync or workload.mode in ('cycle', 'rw', 'multi', 'drain'):
                self.workload(workload, server, fsync)

    def readers(self, chosen):
        """A program of its own, with a server of its own, measures all rows of cached readers in one go."""
        program = str(self.places.build / 'tests/bench/bench-readers')
        wanted = {(w.name, peer.name): (w, peer) for w in chosen for peer in self.peers_of(w)}
        for round_ in range(self.o.rounds if wanted else 0):
            processors = Processors()
            done = subprocess.run(['setpriv', '--pdeathsig', 'KILL', program, '8', str(self.o.seconds)],
                                  stdout=subprocess.PIPE, text=True, check=False)
            if done.returncode != 0:
                self.problems.append(f'bench-readers ended with {done.returncode}')
                return
            share = processors.percent()['steal']
            for line in map(json.loads, done.stdout.splitlines()):
                if (line['workload'], line['peer']) in wanted:
                    self.keep(*wanted[line['workload'], line['peer']], round_, False, dict(line['figures'], stolen_percent=share))
        for workload in chosen if wanted else []:
            print('\n' + report.workload_text(workload, self.records, False), flush=True)

    def witness(self, server):
        """floor-sync looks at no queue, so on one lock it must be caught."""
        group = self.group(workloads.BY_NAME['W3-8'], peers.BY_NAME['floor-sync'], server, PARENT + '/witness',
                           warm=False)
        try:
            group.order(f'go {WITNESS_S}', WITNESS_S)
            self.problems.append('the witness did not see that floor-sync is no lock')
        except Violation:
            print('the witness sees who does not wait', flush=True)
        finally:
            group.stop(gently=False)
            self.board = Board(self.board.path)


def first_line(command):
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.partition('\n')[0]


def facts(o, places, version):
    """What the figures depend on."""
    header = pathlib.Path('/usr/include/zookeeper/zookeeper_version.h')
    client = re.search(r'ZOO_VERSION "([^"]+)"', header.read_text(encoding='utf-8')) if header.exists() else None
    jars = ' '.join(str(path) for path in pathlib.Path('/usr/share/java').glob('curator-recipes-*.jar'))
    jar = re.search(r'curator-recipes-([\d.]+)\.jar', jars)
    kazoo = first_line([places.python, '-c', 'import kazoo; print(kazoo.__version__)']) if places.python else ''
    versions = [f'libzookeeper_mt {client.group(1)}' if client else '', f'Curator {jar.group(1)}' if jar else '',
                f'Kazoo {kazoo}' if kazoo else '']
    model = next((line.partition(':')[2].strip() for line in open('/proc/cpuinfo', encoding='utf-8')
                  if line.startswith('model name')), platform.machine())
    servers = 'One ZooKeeper {} server' if o.servers == 1 else f'{o.servers} ZooKeeper {{}} servers'
    return (f"{servers.format(version)} on loopback; {', '.join(v for v in versions if v)}; "
            f'{os.cpu_count()} cores ({model}); runs of {o.seconds:g} s.' +
            (f' tickTime {o.tick} ms.' if o.tick != 500 else ''))


def read_back(path):
    """The facts, and the records; of several runs, where their lines were put into one file."""
    lines = [json.loads(line) for line in path.read_text(encoding='utf-8').splitlines()]
    told = dict.fromkeys(line['facts'] for line in lines if 'facts' in line)
    return ' '.join(told), [line for line in lines if 'facts' not in line]


def finish(o, facts_text, records):
    for title, each in (('Targets', report.targets_table(records)), ('Floors', report.references_table(records))):
        if each:
            print(f'\n{title} (medians, without fsync)\n\n{each}')
    if o.table:
        report.write(o.table, report.page(records, facts_text), 'table FILE')
    if o.capacity:
        report.write(o.capacity, report.capacity(records, facts_text), 'capacity FILE')
    if o.charts:
        charts.draw(records, o.charts)


def measure(o):
    check_floor(o.root / 'tests/bench')
    with tempfile.TemporaryDirectory(prefix='zkl-bench-') as temp:
        run = Run(o, Places(o.root, o.build, temp))
        try:
            run.all()
        finally:
            run.out.close()
        if read_back(run.out_path) != (run.facts, run.records):
            run.problems.append('the lines of JSON do not read as they were written')
    finish(o, run.facts, run.records)
    for problem in run.problems:
        print('FAILED: ' + problem)
    return FAILED if run.problems or not run.records else 0


def interrupted(number, _):
    for each in SIGNALS:
        signal.signal(each, signal.SIG_IGN)
    raise KeyboardInterrupt(signal.Signals(number).name)


def main(argv):
    o = options(argv)
    for number in SIGNALS:
        signal.signal(number, interrupted)
    try:
        if o.from_:
            finish(o, *read_back(o.from_))
            return 0
        return measure(o)
    except Violation as error:
        print(f'FAILED: two were inside one lock. {error}')
        return VIOLATED
    except KeyboardInterrupt:
        print('interrupted')
        return INTERRUPTED


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
