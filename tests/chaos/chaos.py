# SPDX-License-Identifier: Apache-2.0
"""chaos [OPTION...]: real servers, real faults. Whatever happens to servers, links, processes and clocks, no two proved
holders are inside together, tokens grow, the library reports losses, every client goes on afterwards, and nothing is left.

Three servers, clients of every kind behind proxies, faults by a seed. Now and then the test ends all faults and every client
comes to rest. The test judges the history last. chaos.c is the program; it starts this."""
import argparse
import pathlib
import sys
import time

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / 'crowd'))

import conductor
import faults
import rest
from faults import LASTING, LATE, Testbed
from shared import BREAKAGES, GRANTED, NODES, PROCESSES, RUN, STALE_REFUSED, TALLIES, THREADS, TOLD_LOST, Host, now_ms

EPISODE_S = 60  # of faults, and then rest
HEAP_MAX = 256 * 1024  # what the heap of a client at rest may grow by
EPILOGUE_S = 2
CALM_EVERY, CALM_S = 3, 30  # episodes; without faults, under the second judge

MORE = '''To find a reason: ZKL_CHAOS_LOGS=DIR has each client write what it does to DIR/process-N.log, ZKS_KEEP=1 keeps the
servers' logs and data.'''


def options(argv):
    parser = argparse.ArgumentParser(prog='chaos', description=__doc__.partition('\n\n')[0], epilog=MORE)
    number = conductor.number
    parser.add_argument('--minutes', type=number(1, 10**5), metavar='N', help='how long (1; with ZKL_TEST_LONG=1 30)')
    parser.add_argument('--seconds', type=number(10, 6 * 10**6), default=conductor.length(1800, 60), metavar='N',
                        help='the same in seconds')
    parser.add_argument('--seed', type=number(0, 10**12), default=now_ms(), metavar='N', help='of all choices (the clock)')
    parser.add_argument('--trace', action='store_true', help='say each fault')
    parser.add_argument('--tls', action='store_true', help='between clients and servers, where libzookeeper has it')
    parser.add_argument('--break', dest='broken', choices=BREAKAGES[1:], default='nothing',
                        help='do something wrong, which must be seen: window (holders do not look at their window), lock (one '
                        'does not lock) or wake (one hears of none)')
    o = parser.parse_args(argv)
    o.seconds = 60 * o.minutes if o.minutes else o.seconds
    return o


class Chaos:
    def __init__(self, o, host, bed):
        self.o, self.host, self.shared, self.bed = o, host, host.shared, bed
        self.standstill = rest.Standstill(bed)
        self.begun_ms = now_ms()
        self.leftovers = 0
        self.heap = [0] * LASTING  # at the first rest

    # --- the run

    def goes_on(self, end_ms):
        """Nothing but a violation ends it early."""
        return now_ms() < end_ms and not self.shared.failed

    def pause_ms(self):
        """Mostly the next fault strikes while the last one lasts; sometimes its effects come about alone."""
        often = not self.bed.broken and self.bed.percent(75)
        return self.bed.chance.randint(*((300, 1700) if often else (3000, 6000)))

    def do_faults(self, seconds):
        self.shared.phase, next_ms, end_ms = RUN, 0, now_ms() + 1000 * seconds
        while self.goes_on(end_ms):
            self.bed.tick()
            if now_ms() >= next_ms:
                self.bed.strike()
                next_ms = now_ms() + self.pause_ms()

    def be_calm(self):
        """Everybody goes on, without faults. For this test's own test: what wakes the waiters of one client is held back, and all
        behind it."""
        if not self.bed.heal():
            return
        self.standstill.begin()
        holds, end_ms = self.bed.broken == 'wake', now_ms() + 1000 * CALM_S
        while self.goes_on(end_ms):
            self.bed.tick()
            self.standstill.look()
            if holds and self.shared.tally[GRANTED] > PROCESSES * THREADS:
                holds = False
                for node in range(NODES):
                    self.host.ask('link hold_event', LATE, node)
        for node in range(NODES):
            self.host.ask('link release', LATE, node)

    def check_heap(self, last):
        for client in range(LASTING):
            now = self.shared.process[client].heap
            self.heap[client] = self.heap[client] or now
            said = f'heap of process {client} at rest: {now} bytes, at first {self.heap[client]}'
            if last:
                print(f'chaos: {said}', flush=True)
            if now - self.heap[client] > HEAP_MAX:
                self.host.say_odd(said)

    def come_to_rest(self, last=False):
        if not self.bed.heal():
            self.host.say_odd('the servers do not come back')
        elif rest.everybody_rests(self.bed):
            while not self.host.ask('all canary_is_still'):
                time.sleep(rest.LOOK_S)
            self.leftovers += rest.leftovers(self.bed, PROCESSES)
            rest.check_losses(self.bed)
            self.check_heap(last)

    def epilogue(self):
        """The ensemble comes back without what it knew."""
        self.shared.phase, end_ms = RUN, now_ms() + 1000 * EPILOGUE_S
        while self.goes_on(end_ms):
            self.bed.clients.tick(0.01)
        if not self.bed.wipe_all():
            self.host.say_odd('the servers do not come back without their data')
        self.come_to_rest(last=True)

    def close(self):
        if not self.bed.clients.close():
            self.host.say_odd('not all processes have closed and exited')
        else:
            self.leftovers += rest.leftovers(self.bed, 0)

    def run(self):
        wake, seconds = self.bed.broken == 'wake', self.o.seconds
        end_ms, episode_s = now_ms() + 1000 * seconds, min(seconds // 3, EPISODE_S)
        episodes = 0
        while self.goes_on(end_ms):
            episodes += 1
            self.do_faults(0 if wake else episode_s)
            if wake or (episode_s == EPISODE_S and episodes % CALM_EVERY == 0):
                self.be_calm()
            if not self.shared.failed:
                self.come_to_rest()
        for step in self.epilogue, self.close:
            if not self.shared.failed:
                step()

    # --- what came out

    def report(self, violations, holds, proved, on_the_way, first):
        shared, count, tally = self.shared, self.bed.count, self.shared.tally
        for fault in faults.FAULTS:
            print(f'  {fault.name}: {count[fault]}')
        for number, name in zip(tally, TALLIES):
            print(f'  {name}: {number}')
        print(f'  writes of the canary: {self.host.ask("all counted")}')
        print(f'  those that a lock stood free for, and was waited for: {self.standstill.longest} at most, of '
              f'{self.standstill.judged} that were judged')
        print(f'  losses of members that a multi-lock had not acquired together: {on_the_way}')
        print(f'  holds in the history: {holds}, proved for a time: {proved}')
        for why in filter(None, (shared.failed and shared.why.decode(errors='replace'), first)):
            print(f'chaos: FAILED: {why}')
        servers = sum(count[fault] for fault in (faults.KILL, faults.PAUSE, faults.WIPE))
        print(f'chaos: {(now_ms() - self.begun_ms) / 1000:.0f} s, seed {self.o.seed}: servers killed or paused {servers}, clients '
              f'killed or paused {count[faults.CLIENT_KILL] + count[faults.CLIENT_PAUSE]}, cuts and other faults of links '
              f'{sum(count[fault] for fault in [*faults.LINKS, faults.NODE_CUT])}, acquisitions {tally[GRANTED]}, losses '
              f'{tally[TOLD_LOST]}, stale writes refused {tally[STALE_REFUSED]}, violations {violations}, leftovers '
              f'{self.leftovers}')

    def judge(self):
        """The exit status."""
        found = self.host.ask('all judge')
        violations = self.shared.odd + self.host.odd + found
        holds, proved, on_the_way, first = self.host.text.split(' ', 3)
        self.report(violations, holds, proved, on_the_way, first)
        if self.bed.broken:
            print(f'chaos: what was done wrong was {"seen, as is right" if violations else "NOT SEEN"}')
            return 0 if violations else 1
        return 1 if violations else 0


def main(peer, orders, answers, fd, *argv):
    o = options(argv)
    host = Host(*map(int, (orders, answers, fd)))
    host.shared.seed, host.shared.broken = o.seed, BREAKAGES.index(o.broken)
    print(f'chaos: {o.seconds} s, seed {o.seed}{", over TLS" if o.tls else ""}', flush=True)
    status = host.ask('all start', o.tls)
    if status != 0:
        skipped = status in (conductor.SKIPPED, -2)  # no java
        print(f'{"skipped" if skipped else "chaos"}: {host.text}')
        return conductor.SKIPPED if skipped else 1
    chaos = Chaos(o, host, Testbed(host, o, peer, host.text))
    clients = chaos.bed.clients
    chaos.run()
    if host.shared.failed:
        print(*clients.logs(), sep='\n', file=sys.stderr)
    for client in range(PROCESSES):
        clients.kill(client)
    status = chaos.judge()
    sys.stdout.flush()
    return status


sys.exit(main(*sys.argv[1:]))
