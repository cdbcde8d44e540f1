# SPDX-License-Identifier: Apache-2.0
"""What the processes of the chaos share, as shared.h has it, and the program that has the servers (chaos.c)."""
import ctypes
import mmap
import os
import sys
import time
from ctypes import Structure, c_bool, c_char, c_int, c_int16, c_int32, c_int64, c_long, c_longlong, c_uint, c_uint8, c_uint32
from ctypes import c_uint64, c_ulonglong

NODES, PROCESSES, THREADS, SLOTS = 3, 8, 5, 4
PLACES = ['mutex', 'lease', 'rwlock', 'permits', 'single', 'revoked', 'rare']
ROLES = ['lock', 'lock with a deadline', 'try', 'read and write', 'permits', 'multi-lock', 'lease', "semaphore's mutex",
         'revocable']
TALLIES = ['acquisitions', 'losses reported', 'stale writes refused', 'timeouts', 'cancels', 'tries that were busy',
           'tries without a server', 'grants that were over immediately', 'downgrades', 'requests to release',
           'unlocks not confirmed', 'unlocks in doubt']
GRANTED, TOLD_LOST, STALE_REFUSED = 0, 1, 2
BREAKAGES = ['nothing', 'window', 'lock', 'wake']
RUN, REST, END = range(3)  # phases
ALONE = 0
NEVER_UNLOCKED = -2**15


class Record(Structure):
    _fields_ = [('asked_ns', c_int64), ('begun_ns', c_int64), ('until_ns', c_int64), ('left_ns', c_int64), ('token', c_uint64),
                ('serial', c_uint32), ('seat', c_int32), ('code', c_int16), ('kind', c_uint8), ('place', c_uint8),
                ('access', c_uint8), ('era', c_uint8), ('below', c_uint8), ('cached', c_uint8), ('unused', c_uint8 * 8)]


class Seat(Structure):
    _fields_ = [('rested', c_int), ('call_since_ms', c_longlong), ('doing', c_int), ('wants', c_uint),
                ('wants_since_ms', c_longlong), ('serial', c_uint), ('busy', c_long), ('open', c_bool * SLOTS),
                ('hold', Record * SLOTS)]

    def holds(self):
        return [hold for is_open, hold in zip(self.open, self.hold) if is_open]


class Process(Structure):
    _fields_ = [('told', c_int * len(PLACES)), ('owed', c_int * len(PLACES)), ('heap', c_longlong), ('clock_ns', c_longlong),
                ('servers', c_char * 128), ('session_ms', c_int)]


class Shared(Structure):
    _fields_ = [('seed', c_uint64), ('phase', c_int), ('round', c_int), ('era', c_int), ('broken', c_int), ('failed', c_int),
                ('why', c_char * 500), ('odd', c_long), ('tally', c_long * len(TALLIES)), ('grants', c_long * len(PLACES)),
                ('newest', c_ulonglong * len(PLACES)), ('tls', c_char * 160), ('process', Process * PROCESSES),
                ('seat', Seat * (PROCESSES * THREADS))]


def now_ms():
    return time.monotonic_ns() // 10**6


class Host:
    """chaos.c, by its verbs; and the memory."""

    def __init__(self, orders, answers, fd):
        self.orders, self.answers = os.fdopen(orders, 'w', buffering=1), os.fdopen(answers)
        self.fd = fd
        self.shared = Shared.from_buffer(mmap.mmap(fd, ctypes.sizeof(Shared)))
        self.odd = 0  # what was said here
        self.text = ''  # behind the number of the last answer
        if self.ask('all size') != ctypes.sizeof(Shared):
            sys.exit('chaos: shared.py is not as shared.h')

    def ask(self, verb, *args):
        self.orders.write(' '.join(map(str, (verb, *map(int, args)))) + '\n')
        number, _, self.text = self.answers.readline().rstrip('\n').partition(' ')
        return int(number)

    def must(self, why, verb, *args):
        if self.ask(verb, *args) != 0:
            self.say_odd(why)

    def say_odd(self, why):
        """Something is wrong that the history does not show."""
        print(why, file=sys.stderr, flush=True)
        self.odd += 1
        if not self.shared.failed:
            self.shared.why, self.shared.failed = why.encode()[:499], 2

    def seats_of(self, client):
        return self.shared.seat[client * THREADS:(client + 1) * THREADS]

    def bury(self, client):
        """What a killed process had open is as its windows said."""
        for seat in self.seats_of(client):
            for slot, hold in enumerate(seat.hold):
                if seat.open[slot]:
                    hold.code = NEVER_UNLOCKED
                    if hold.left_ns:
                        hold.until_ns = min(hold.until_ns, hold.left_ns)
                    os.write(self.fd, bytes(hold))
                    seat.open[slot] = False
            seat.call_since_ms = seat.wants = 0
