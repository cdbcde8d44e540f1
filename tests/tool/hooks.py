# SPDX-License-Identifier: Apache-2.0
"""What the tests that are text do to the frames that a proxy passes on, and to servers' clocks."""
import ctypes
import mmap
import os
import re
import time
from ctypes import Structure, c_int, c_longlong

from wires import OPS
from world import Acl, Failure, HOOK, LIB, Lag, Names, Options, Shared, Stat

TO_SERVER, TO_CLIENT = 1, 2
CONNECT, EXISTS, MULTI, LISTS = -13, 3, 14, (8, 12)
# Behind the number of a request, in an answer: the server's number and the code.
CODE_AT, HEADER = 12, 16
CLOCKS = 32


class Clock(Structure):
    """One of struct wall of wall.h."""
    _fields_ = [('pid', c_int), ('off_ns', c_longlong)]


STRUCTS = (Options, Stat, Acl, Names, Lag, Shared, Clock * CLOCKS)
if [ctypes.sizeof(struct) for struct in STRUCTS] != list((ctypes.c_size_t * len(STRUCTS)).in_dll(LIB, 'sizes')):
    raise Failure('a struct of C is not as world.py or hooks.py has it')


class Clocks:
    """Servers that are started while this is in the environment have clocks that can be set."""

    def __init__(self):
        fd = os.memfd_create('wall')
        os.ftruncate(fd, ctypes.sizeof(Clock * CLOCKS))
        self.all = (Clock * CLOCKS).from_buffer(mmap.mmap(fd, 0))
        self.began_ns = 0  # of the test
        os.environ.update(ZKL_TEST_WALL=f'/proc/{os.getpid()}/fd/{fd}', LD_PRELOAD=os.environ['ZKL_TEST_WALL_SO'])

    def set(self, pid, ms):
        """So much later than the test began."""
        clock, = (clock for clock in self.all if clock.pid == pid)
        clock.off_ns = self.began_ns + ms * 10**6 - time.time_ns()


class Hook:
    """Of one proxy. A test may wait until it is struck, see what was caught, and let it go on."""
    caught, struck, goes_on = '', False, False

    def __init__(self):
        self.hook = HOOK(self.see)

    def stand_still(self):
        self.struck = True
        while not self.goes_on:
            time.sleep(0.001)


def put(frame, at, data):
    ctypes.memmove(ctypes.byref(frame.contents, at), data, len(data))


class Ambush(Hook):
    """What becomes of the first transaction that has these words, and of its answer.

    request   stop it until the test goes on
    answer    the answer instead
    loss      likewise; then it does not come, and all else does
    silence   neither the answer comes nor anything after it
    mismatch  spoil the answer, which ends the link: the outcome is not known"""

    def __init__(self, words, how):
        super().__init__()
        self.words, self.how, self.xid = words.encode(), how, None  # once the request was seen; the answer is yet to come
        self.spoil = self.silent = False  # spoil: the request, before it passes

    def request(self, frame, size):
        text = ctypes.string_at(frame, size)
        if self.xid or self.struck or self.words not in text:
            return
        self.xid = text[:4]
        if self.how == 'request':
            self.stand_still()
        if self.spoil:
            put(frame, 8, bytes(size - 8))  # behind its number and type

    def answer(self, frame, size):
        """Numbers are a connection's own, and the library's heartbeat is a transaction too: but one with a short answer."""
        if not self.xid or size < 80 or ctypes.string_at(frame, 4) != self.xid:
            return size
        self.xid = None
        if self.how in ('answer', 'loss'):
            self.stand_still()
        self.struck = True
        if self.how == 'mismatch':
            put(frame, 0, b'U' * 4)
        self.silent = self.how == 'silence'
        return 0 if self.how in ('loss', 'silence') else size

    def see(self, direction, op, frame, size, _):
        if direction == TO_CLIENT and self.silent:
            return 0
        if op == MULTI and direction == TO_SERVER and size > 8:
            self.request(frame, size)
        elif op == MULTI and direction == TO_CLIENT:
            return self.answer(frame, size)
        return size


class DenyExists(Hook):
    """Of a path with this part "exists" is answered as a newer server does where READ is denied. Requests are known again by
    their numbers."""
    NOAUTH = (-102).to_bytes(4, 'big', signed=True)

    def __init__(self, part):
        super().__init__()
        self.part, self.denied = part.encode(), set()

    def see(self, direction, op, frame, size, _):
        text = ctypes.string_at(frame, size)
        if op == EXISTS and direction == TO_SERVER and self.part in text:
            self.denied.add(text[:4])
        # Of what is not there that is said.
        if op != EXISTS or direction == TO_SERVER or text[:4] not in self.denied or text[CODE_AT:HEADER] != bytes(4):
            return size
        put(frame, CODE_AT, self.NOAUTH)
        return HEADER


class HoldSecondList(Hook):
    """Of two locks below /late the list of the one that is asked for later waits for the test."""
    first = None

    def see(self, direction, op, frame, size, _):
        path = re.search(b'/late/.', ctypes.string_at(frame, size)) if direction == TO_SERVER and op in LISTS else None
        if path:
            self.first = self.first or path[0]
            if path[0] != self.first:
                self.caught = path[0].decode()
                self.stand_still()
        return size


class HideInLists(Hook):
    """A child has another name, as where a server does not know yet what was committed, or that it leads no more."""

    def __init__(self, child):
        super().__init__()
        self.child = child.encode()

    def see(self, direction, op, frame, size, _):
        at = ctypes.string_at(frame, size).find(self.child)
        if direction == TO_CLIENT and op in LISTS and at >= 0:
            put(frame, at + len(self.child) - 1, b'9')
        return size


class RefuseLists(Hook):
    """By RUNTIMEINCONSISTENCY."""

    def see(self, direction, op, frame, size, _):
        if direction == TO_CLIENT and op in LISTS and size > CODE_AT:
            put(frame, CODE_AT, (-2).to_bytes(4, 'big', signed=True))
        return size


class NoteSession(Hook):
    """Of the answer to a connect request: version, timeout, session, length and text of the password."""

    def see(self, direction, op, frame, size, _):
        if direction == TO_CLIENT and op == CONNECT and size >= 36:
            answer = ctypes.string_at(frame, size)
            self.session, self.password = int.from_bytes(answer[8:16], 'big', signed=True), answer[20:36]
            self.struck = True
        return size


class HeaderAlone(Hook):
    """Nothing else is passed on of the answers to these requests, with that code. It is struck if one came."""

    def __init__(self, op, code):
        super().__init__()
        self.op, self.code, self.count = OPS[op], int(code).to_bytes(4, 'big', signed=True), 0

    def see(self, direction, op, frame, size, _):
        if direction == TO_SERVER or op not in self.op:
            return size
        put(frame, CODE_AT, self.code)
        self.count += 1
        self.struck = self.count == 1
        return HEADER


class CountSessions(Hook):
    """Ids of sessions are small numbers."""

    def see(self, direction, op, frame, size, _):
        if direction == TO_CLIENT and op == CONNECT and size >= 16:
            put(frame, 8, (4711).to_bytes(8, 'big'))
        return size
