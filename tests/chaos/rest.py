# SPDX-License-Identifier: Apache-2.0
"""Without faults. At rest every client gets its lock once more, and then nothing is left. And while all go on: a lock that is
free, and that nobody is granted though somebody waits, is a wake-up that was lost."""
import sys
import time

from shared import NODES, PLACES, PROCESSES, REST, ROLES, THREADS, now_ms

GRANT_MS, CLEAN_MS = 90000, 30000
LOOK_S = 0.02
THREADS_DUE = THREADS + 1 + 4  # see zkl_client_open


# --- at rest ----------------------------------------------------------------------------------------------------------------

def report_standstill(bed):
    """Holders and waiters, in each process and seat and on the servers."""
    shared, out = bed.shared, sys.stderr
    for client, process in enumerate(shared.process):
        peer = bed.clients.peers.get(f'p{client}.')
        print(f'  process {client}: pid {peer.pid if peer else 0}, clock off by {process.clock_ns // 10**9} s, '
              f'{bed.clients.threads(client)} threads', file=out)
    for number, seat in enumerate(shared.seat):
        since_ms = now_ms() - seat.call_since_ms if seat.call_since_ms else 0
        has = ''.join(f' {PLACES[hold.place]} (token {hold.token:x})' for hold in seat.holds())
        print(f'  seat {number} ({ROLES[seat.doing]}){", at rest" if seat.rested == shared.round else ""}, in a call for '
              f'{since_ms} ms, has{has}', file=out)
    leader = bed.host.ask('all leader')
    for node in range(NODES):
        print(f'  server {node}{", the leader" if node == leader else ""}:', file=out, flush=True)
        bed.host.ask('server tree', node)


# Once there are no faults everybody gets through within the bound. False, and said: not so. Modes: F6, F21.
def everybody_rests(bed):
    shared, end_ms = bed.shared, now_ms() + GRANT_MS
    shared.round += 1
    shared.phase = REST
    while True:
        waiting = [number for number, seat in enumerate(shared.seat) if seat.rested != shared.round]
        if not waiting:
            return True
        if now_ms() > end_ms:
            break
        bed.clients.tick(LOOK_S)
    bed.host.say_odd(f'seat {waiting[0]} ({ROLES[shared.seat[waiting[0]].doing]}) is granted nothing in {GRANT_MS // 1000} s '
                     'without faults')
    report_standstill(bed)
    return False


# Callbacks reported each loss that unlock reported, sooner or later. Modes: F7.
def check_losses(bed):
    end_ms = now_ms() + GRANT_MS
    for client, process in enumerate(bed.shared.process):
        for place, name in enumerate(PLACES):
            while process.told[place] < process.owed[place] and now_ms() < end_ms:
                time.sleep(LOOK_S)
            if process.told[place] < process.owed[place]:
                bed.host.say_odd(f'process {client}, {name}: callbacks reported only {process.told[place]} losses, unlock '
                                 f'{process.owed[place]}')


def of_all(bed, verb):
    """-1: one did not answer."""
    each = [bed.host.ask(f'server {verb}', node) for node in range(NODES)]
    return -1 if min(each) < 0 else sum(each)


# What is left beside what these clients rest with, by the servers themselves, once it is nothing or time is up: so much.
# Modes: F18, F19.
def leftovers(bed, clients):
    end_ms = now_ms() + CLEAN_MS
    while True:
        time.sleep(LOOK_S)
        left = {'nodes': bed.host.ask('all nodes'), 'watches': of_all(bed, 'watches'),
                'connections': of_all(bed, 'connections') - clients,
                'processes with other threads': sum(bed.clients.threads(client) != THREADS_DUE for client in range(clients))}
        if not any(left.values()):
            return 0
        if now_ms() > end_ms:
            bed.host.say_odd('left behind: ' + ', '.join(f'{count} {name}' for name, count in left.items()) +
                             f' than {THREADS_DUE}')
            return sum(left.values())


# --- while all go on --------------------------------------------------------------------------------------------------------

LEASE = PLACES.index('lease')
# A multi-lock that waits may stand first at one of these that it has not been granted (core/bundle.h). So they stand still
# only when all of them are free and nobody is granted any, or when the others were granted so often meanwhile that the
# multi-lock must have had its turn: all seats may be before it, at two of its locks, and hand each on among some threads.
LINKED = sum(1 << PLACES.index(name) for name in ('mutex', 'rwlock', 'permits'))
GRANTS_MAX = 2000
WRITES_MAX = 100  # at least 2 s, see canary.c
ENDS_MS = 2000  # by so much later a session may end


class Standstill:
    """Time is counted in writes of the canary, so a slow machine is no fault. A lock is free while no seat has a hold of it. The
    nodes of whoever was lost stand for a session's length: nothing is judged until that has passed without a new link or a
    loss."""

    def __init__(self, bed):
        self.bed = bed
        self.disturbances, self.disturbed_ms = [0] * PROCESSES, [0] * PROCESSES
        self.still = {}  # of each set of places, and since when: (ms, writes, grants, those of LINKED)
        self.seen = self.judged = self.longest = 0  # writes: the last, those under this judge, the most of one that stood still

    def begin(self):
        self.disturbed_ms = [now_ms()] * PROCESSES
        self.seen = self.bed.host.ask('all counted')

    def is_quiet(self):
        """Leases end as they should. Over TLS the proxies see no new links."""
        if self.bed.broken == 'wake':  # there were no faults
            return True
        quiet = not self.bed.shared.tls
        for client, process in enumerate(self.bed.shared.process):
            count = sum(process.told) - process.told[LEASE] + sum(
                self.bed.host.ask('link connects', client, node) for node in range(NODES))
            if count != self.disturbances[client]:
                self.disturbances[client], self.disturbed_ms[client] = count, now_ms()
            quiet &= now_ms() - self.disturbed_ms[client] > process.session_ms + ENDS_MS
        return quiet

    def grants(self, places):
        return sum(count for place, count in enumerate(self.bed.shared.grants) if places >> place & 1)

    def is_free_and_wanted(self, places, since_ms):
        """Somebody has waited since then, and nobody has a hold."""
        seats = self.bed.shared.seat
        return any(seat.wants & places and seat.wants_since_ms <= since_ms for seat in seats) and \
            not any(places >> hold.place & 1 for seat in seats for hold in seat.holds())

    def standing(self, places, writes, quiet):
        """How long these have stood still: in writes, and grants of LINKED."""
        grants, linked = self.grants(places), self.grants(LINKED)
        since_ms, writes_then, grants_then, linked_then = self.still.get(places, (0, 0, -1, 0))
        if not quiet or grants != grants_then or not self.is_free_and_wanted(places, since_ms):
            self.still[places] = now_ms(), writes, grants, linked
            return 0, 0
        return writes - writes_then, linked - linked_then

    def look(self):
        """Often."""
        quiet, writes = self.is_quiet(), self.bed.host.ask('all counted')
        for places, what in [(1 << place, name) for place, name in enumerate(PLACES)] + [(LINKED, 'mutex, rwlock and permits')]:
            stood, linked = self.standing(places, writes, quiet)
            if places != LINKED and places & LINKED and linked <= GRANTS_MAX:
                continue
            self.longest = max(self.longest, stood)
            if stood > WRITES_MAX:
                self.bed.host.say_odd(f'{what}: free and waited for, and granted to nobody while the canary wrote {stood} times')
        self.judged += writes - self.seen if quiet else 0
        self.seen = writes
