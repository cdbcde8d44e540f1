#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The multi-lock's soak: many processes that lock the same paths all together, in whatever order they name them, with
cancels, deadlines, tries, re-entries, readers, writers and downgrades, never wait for each other in a circle, are never
inside together, leave nothing behind and do not grow.

Six of the crowd's peers take random sets of paths by multi-locks, two take them singly in the order of the paths, now and
then with a client of their own; all take permits (crowd/roam.c). The journal knows who is inside, a watchdog how long each
call takes. Now and then, and at the end, all stand still while their sessions live: the server then has no contender and no
watch, and no process more than at first."""
import argparse
import os
import pathlib
import re
import signal
import sys
import time

sys.dont_write_bytecode = True
sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / 'crowd'))

import conductor
from gauge import Gauge

PROCESSES = [f's{number}.' for number in range(8)]
THREADS = 3  # of each process, that lock
VISITS = 13  # of each thread between two looks: then all that is used at all has been used at the first one
LOOKS, LOOKS_MIN = 60, 7  # a short run has fewer, but enough for the trend
LEAKS = 10  # between two looks
LEAKING = ['memory', 'descriptors', 'threads', 'nodes', 'sessions']
TRESPASSES = 1000

# Of each process. Half of the processes listen: their holds have watches.
MUTEXES = {f'L{n}': f'mutex /soak/{n}' for n in range(4)}
PATHS = {**MUTEXES, 'L4': 'rwlock /soak/4', 'L5': 'rwlock /soak/5'}
PERMITS = {f'Lp{n}': f'semaphore /soak/permits permits=3 count={n}' for n in (1, 2, 3)}
# Who does what in each phase, between two looks.
PARTS = {'multi': PROCESSES[:6], 'singly': PROCESSES[6:]}
# What a worker answers, in the order of roam.h.
TALLIES = ['multi-locks granted', 'single locks granted', 'members of those multi-locks', 'held before and entered again',
           'downgrades', 'visits with a client of their own', 'requests for permits granted', 'upgrades refused', 'timeouts',
           'cancels', 'tries that found somebody', 'grants with an empty window', 'places wanted']
MULTI, SINGLE, OF_PERMITS, LAST_DUE, LONGEST_MS = 0, 1, 6, 9, len(TALLIES)


def options():
    parser = argparse.ArgumentParser(prog='soak', description=__doc__.partition(':')[0])
    parser.add_argument('--build', type=pathlib.Path, required=True, help=argparse.SUPPRESS)
    parser.add_argument('--seconds', type=conductor.number(1, 10**6), default=conductor.length(60, 8), metavar='N',
                        help='how long (8; with ZKL_TEST_LONG=1 60)')
    # A machine with much else to do stands still for a quarter of that.
    parser.add_argument('--bound', type=conductor.number(1, 10**5), default=60, metavar='N',
                        help='seconds that one call may take before the watchdog ends it all (60)')
    parser.add_argument('--seed', type=conductor.number(0, 10**12), default=time.monotonic_ns() // 1000, metavar='N',
                        help='of all random choices (the clock)')
    parser.add_argument('--no-lock', type=conductor.number(1, len(PROCESSES) - 1), default=0, metavar='N', dest='trespassers',
                        help='N threads (1 to 7) do not lock: the witness must see it, or the soak fails')
    parser.add_argument('--leak', choices=LEAKING, help='one keeps that: to be seen, too')
    o = parser.parse_args()
    o.build = o.build.resolve()  # the peers are started elsewhere
    return o


class Soak:
    def __init__(self, o, crowd):
        self.o, self.crowd = o, crowd
        self.tally = {process: [0] * (len(TALLIES) + 1) for process in PROCESSES}
        self.ran_s, self.requests = 0, 0  # what they are at rest left out
        self.phase = 0
        # A semaphore that stays, because a watch on it would end with it.
        crowd.play('; '.join('h create /soak' + path for path in ('', '/permits', '/permits/locks', '/permits/leases')))
        self.gauge = Gauge(crowd, PROCESSES, len(PATHS))
        self.trespassers = PROCESSES[1:1 + o.trespassers]

    def start(self):
        journal = self.crowd.open_journal('s')
        self.crowd.journal.place('/soak/permits').permits = 3
        for process in PROCESSES:
            self.crowd.start(process, [self.o.build / 'tests/crowd/peer', self.crowd.servers, journal])
        self.crowd.await_all()
        for process in PROCESSES:
            listens = ' revocable=callback' if PROCESSES.index(process) % 2 else ''
            for name, row in PATHS.items():
                self.crowd.play(f'{process}0 new {name} {row}{listens}')
            for name, row in PERMITS.items():
                self.crowd.play(f'{process}0 new {name} {row}')
        for process in self.trespassers:
            self.crowd.play(f'{process}0 new N none /soak/0,/soak/1,/soak/2,/soak/3')

    # --- the run

    def watch_calls(self):
        """No call takes that long: a deadlock leaves those in it in their calls for ever, whatever all the others still get done
        with deadlines and cancels. Who answers that one did has a fault."""
        for process in PROCESSES:
            if f'{process}w' not in self.crowd.busy:
                self.crowd.say(f'{process}w calls {1000 * self.o.bound}')

    def work(self, each_s):
        """Each does its part once, for so long at least. None, or a fault."""
        for way, processes in PARTS.items():
            for process in processes:
                trespasses = process in self.trespassers
                for thread in range(trespasses, THREADS):
                    self.crowd.say(f'{process}{thread} roam L {way} {VISITS} {int(1000 * each_s)} {self.o.seed + self.phase}')
                if trespasses:
                    self.crowd.say(f'{process}0 run N {TRESPASSES} 0')
        self.phase += 1
        fault = self.crowd.judge(self.watch_calls)
        for process in PROCESSES if not fault else ():
            for thread in range(THREADS):
                found = [int(text) for text in self.crowd.answer(f'{process}{thread}').split()[1:]]
                if found:
                    tally = self.tally[process]
                    tally[:] = [a + b for a, b in zip(tally[:-1], found)] + [max(tally[-1], found[-1])]
        return fault

    def leak(self):
        """For the soak's own test."""
        for _ in range(LEAKS):
            self.crowd.play({'nodes': 'h create /left- sequential', 'sessions': 'h session'}
                            .get(self.o.leak, f'{PROCESSES[1]}0 leak {self.o.leak}'))

    def received(self):
        return int(re.search(r'Received: (\d+)', self.crowd.word('srvr'))[1])

    def lock_and_look(self):
        """(None, or a fault; whether something has grown). All sessions live still, so it was the library that removed
        everything."""
        begun = time.monotonic()
        each_s = max(self.o.seconds / LOOKS, 1)
        while time.monotonic() < begun + self.o.seconds or len(self.gauge.looks) < LOOKS_MIN:
            since, before = time.monotonic(), self.received()
            fault = self.work(each_s)
            self.ran_s += time.monotonic() - since
            self.requests += self.received() - before
            if fault:
                return fault, False
            if self.o.leak:
                self.leak()
            fault = self.gauge.look(time.monotonic() - begun)
            if fault:
                return fault, True
            self.crowd.journal.forget()
        fault = self.gauge.trend()
        return fault, fault is not None

    def close(self):
        for process in PROCESSES:
            for name in [*PATHS, *PERMITS]:
                self.crowd.play(f'{process}0 drop {name}')
        conductor.check(self.crowd.stop(list(self.crowd.peers)), 'not all ended well')

    # --- what came out

    def granted(self, process):
        return self.tally[process][MULTI] + self.tally[process][SINGLE]

    def sum(self, tally):
        return sum(each[tally] for each in self.tally.values())

    def missing(self):
        """A soak in which something never happened has not shown much."""
        if not all(map(self.granted, PROCESSES)):
            return 'some process was never granted anything'
        return next((f'none: {name}' for i, name in enumerate(TALLIES[:LAST_DUE + 1]) if not self.sum(i)), None)

    def report(self):
        print(f'soak: {self.ran_s:.1f} s, seed {self.o.seed}')
        for i, name in enumerate(TALLIES):
            print(f'  {name}: {self.sum(i)}')
        granted = self.sum(MULTI) + self.sum(SINGLE) + self.sum(OF_PERMITS)
        print(f'  granted in a second: {granted / self.ran_s:.0f}, requests for each: {self.requests / max(granted, 1):.1f}')
        for process in PROCESSES:
            print(f'  process {process[1]}: {self.granted(process)} granted ({self.tally[process][MULTI]} of multi-locks), '
                  f'longest wait {self.tally[process][LONGEST_MS]} ms')
        for way, processes in PARTS.items():
            each = [self.granted(process) for process in processes]
            print(f'  fairness, {way}: {min(each)} to {max(each)} ({min(each) / max(*each, 1):.2f})')
        if self.gauge.looks:
            self.gauge.report()

    def report_failure(self):
        """Who is inside, as the journal has it, who waits for what, and the queues."""
        for place in self.crowd.journal.places.values():
            print(f'  inside {place.path}:', *(f'{worker} ({access})' for worker, access in place.inside))
        for process in set(PROCESSES) & set(self.crowd.peers):
            if f'{process}w' not in self.crowd.busy:
                self.crowd.say(f'{process}w calls 0')
                print(f'  {process} (pid {self.crowd.peers[process].pid}): {self.crowd.answer_within(f"{process}w", 1)}')
        self.crowd.play('h tree /soak')
        print(*self.crowd.logs(), sep='\n')

    def run(self):
        """None, or why it failed."""
        self.start()
        fault, grown = self.lock_and_look()
        meant = fault and ((self.o.trespassers and ' comes in beside ' in fault) or (self.o.leak and grown))
        if fault and not meant:
            self.report_failure()
        self.report()
        if meant:
            print(f'soak: seen, as is right: {fault}')
            return None
        fault = fault or self.missing()
        if not fault and (self.o.trespassers or self.o.leak):
            fault = f'{"what grew" if self.o.leak else "who did not lock"} was NOT SEEN'
        if not fault:
            self.close()
        return fault


def main():
    o = options()
    # The peers run without what glibc's malloc keeps for each thread, which counts as in use: without it a heap at rest is the
    # same to a few KB.
    os.environ.setdefault('GLIBC_TUNABLES', 'glibc.malloc.tcache_count=0')
    for each in signal.SIGTERM, signal.SIGHUP:
        signal.signal(each, lambda *_: sys.exit(1))
    try:
        crowd = conductor.Crowd(o.build / 'tests/crowd/host')
    except conductor.Skipped as why:
        print(f'skipped: {why}')
        return conductor.SKIPPED
    try:
        fault = Soak(o, crowd).run()
    except conductor.Failed as why:
        fault = str(why)
        print(*crowd.logs(), sep='\n')
    finally:
        crowd.close()
    if fault:
        print(f'FAILED: {fault}', file=sys.stderr)
    return int(fault is not None)


sys.exit(main())
