#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The multi-lock's soak: many processes that lock the same paths all together, in whatever order they name them, with
cancels, deadlines, tries, re-entries, readers, writers and downgrades, never wait for each other in a circle, are never
inside together, leave nothing behind and do not grow.

Six of the crowd's peers take random sets of paths by multi-locks, two take them singly in the order of the paths, now and
then with a client of their own; all take permits (roam.py). The journal knows who is inside, a watchdog how long each
visit takes. Now and then, and at the end, all stand still while their sessions live: the server then has no contender and no
watch, and no process more than at first."""
import argparse
import collections
import os
import pathlib
import random
import re
import signal
import sys
import time

sys.dont_write_bytecode = True
sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / 'crowd'))

import conductor
from conductor import Failed
from gauge import Gauge
from roam import KINDS, MULTI, OF_PERMITS, Roamer, SINGLE, TALLIES, TALLIES_MORE

PROCESSES = [f's{number}.' for number in range(8)]
THREADS = 3  # of each process, that lock
VISITS = 13  # of each thread between two looks: then all that is used at all has been used at the first one
LOOKS, LOOKS_MIN = 60, 7  # a short run has fewer, but enough for the trend
LEAKS = 10  # between two looks
LEAKING = ['memory', 'descriptors', 'threads', 'nodes', 'sessions']
TRESPASSES = 1000

CANCEL_S = 0.0016  # between two cancels in the mean, each of one of all workers; few of them wait for one

# Of each process. Half of the processes listen: their holds have watches.
PATHS = {f'L{n}': f'{kind} /soak/{n}' for n, kind in enumerate(KINDS)}
LISTENS = ['', ' revocable=callback']
PERMITS = {f'Lp{n}': f'semaphore /soak/permits permits=3 count={n}' for n in (1, 2, 3)}
# Who does what in each phase, between two looks.
PARTS = {'multi': PROCESSES[:6], 'singly': PROCESSES[6:]}


def options():
    parser = argparse.ArgumentParser(prog='soak', description=__doc__.partition(':')[0])
    parser.add_argument('--build', type=pathlib.Path, required=True, help=argparse.SUPPRESS)
    parser.add_argument('--seconds', type=conductor.number(1, 10**6), default=conductor.length(60, 8), metavar='N',
                        help='how long (8; with ZKL_TEST_LONG=1 60)')
    # A machine with much else to do stands still for a quarter of that.
    parser.add_argument('--bound', type=conductor.number(1, 10**5), default=90, metavar='N',
                        help='seconds that a visit may take before the watchdog ends it all (90)')
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
        self.ran_s, self.requests = 0, 0  # what they are at rest left out
        self.roamers = {process: [Roamer(f'{process}{thread}', LISTENS[number % 2], f'{o.seed} {process}{thread}')
                                  for thread in range(THREADS)] for number, process in enumerate(PROCESSES)}
        self.chance, self.cancel_at = random.Random(o.seed), 0
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
        for number, process in enumerate(PROCESSES):
            self.crowd.play(f'{process}w weigh heap -> ok*')  # the gauge's worker is a thread, too
            for name, row in PATHS.items():
                self.crowd.play(f'{process}0 new {name} {row}{LISTENS[number % 2]}')
            for name, row in PERMITS.items():
                self.crowd.play(f'{process}0 new {name} {row}')
        for process in self.trespassers:
            self.crowd.play(f'{process}0 new N none /soak/0,/soak/1,/soak/2,/soak/3')

    # --- the run

    def meanwhile(self):
        """Cancel something now and then. No visit takes that long: a deadlock leaves those in it in their calls for ever, whatever
        all the others still get done with deadlines and cancels."""
        now = time.monotonic()
        while self.cancel_at < now:
            self.cancel_at = max(self.cancel_at, now - 1) + self.chance.uniform(0, 2 * CANCEL_S)
            roamer = self.chance.choice(self.roamers[self.chance.choice(PROCESSES)])
            if roamer.name in self.crowd.busy and ' cancel' in self.crowd.calls[roamer.name][0]:
                self.crowd.tell(f'{roamer.name} cancel')
        for worker in self.crowd.busy:
            line, since = self.crowd.calls[worker]
            conductor.check(now - since < self.o.bound, f'for {now - since:.1f} s nothing came of: {line}')

    def work(self, each_s):
        """Each does its part once, for so long at least. None, or a fault."""
        for way, processes in PARTS.items():
            for process in processes:
                trespasses = process in self.trespassers
                for roamer in self.roamers[process][trespasses:]:
                    self.crowd.take_part(roamer.name, roamer.visits(way, VISITS, each_s))
                if trespasses:
                    self.crowd.say(f'{process}0 run N {TRESPASSES} 0')
        try:
            return self.crowd.judge(self.meanwhile)
        except Failed as why:
            return str(why)

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

    def tally(self, process):
        return sum((roamer.tally for roamer in self.roamers[process]), collections.Counter())

    def granted(self, process):
        return self.tally(process)[MULTI] + self.tally(process)[SINGLE]

    def missing(self):
        """A soak in which something never happened has not shown much."""
        if not all(map(self.granted, PROCESSES)):
            return 'some process was never granted anything'
        found = sum(map(self.tally, PROCESSES), collections.Counter())
        return next((f'none: {name}' for name in TALLIES if not found[name]), None)

    def report(self):
        found = sum(map(self.tally, PROCESSES), collections.Counter())
        print(f'soak: {self.ran_s:.1f} s, seed {self.o.seed}')
        for name in TALLIES + TALLIES_MORE:
            print(f'  {name}: {found[name]}')
        granted = found[MULTI] + found[SINGLE] + found[OF_PERMITS]
        print(f'  granted in a second: {granted / self.ran_s:.0f}, requests for each: {self.requests / max(granted, 1):.1f}')
        for process in PROCESSES:
            print(f'  process {process[1]}: {self.granted(process)} granted ({self.tally(process)[MULTI]} of multi-locks), '
                  f'longest visit {max(roamer.longest_ms for roamer in self.roamers[process])} ms')
        for way, processes in PARTS.items():
            each = [self.granted(process) for process in processes]
            print(f'  fairness, {way}: {min(each)} to {max(each)} ({min(each) / max(*each, 1):.2f})')
        if self.gauge.looks:
            self.gauge.report()

    def report_failure(self):
        """Who is inside, as the journal has it, who waits for what, and the queues."""
        for place in self.crowd.journal.places.values():
            print(f'  inside {place.path}:', *(f'{worker} ({access})' for worker, access in place.inside))
        for worker in sorted(self.crowd.busy):
            line, since = self.crowd.calls[worker]
            print(f'  for {time.monotonic() - since:.1f} s: {line}')
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
