# SPDX-License-Identifier: Apache-2.0
"""The witness over programs and languages: a file to which each worker adds a line, by one write with O_APPEND, when it
has come in and before it leaves. The order of the lines is the order of these moments, whoever wrote them, and ZooKeeper
has no part in it.

    +x c1 /path     worker c1 is in, alone             -x c1 /path     it leaves
    +r j2 /path     as a reader                        +p k1 /path     with one of several permits
    +x o1.3 /path 4711 _c_<uuid>-lock-0000000012       with the token and the node's name
    +s o1.3 ...     alone, with a token that its process may have had before (hand-offs, retained nodes)

A worker's first letter is its party: a language, or a version of the library; "o1.3" is the third worker of the process
"o1". The conductor judges the lines as they come: it sees a broken rule immediately, and judges the whole when it has
read all."""
import collections
import os
import re

EXHAUSTED = 0x7ff00000  # from here on no number is ever granted, but to a permit (docs/wire-format.md)
LINE = re.compile(r'([+-])([xsrp]) ((\w)\S*) (\S+)(?: (\d+) (\S+))?')
NUMBER = re.compile(r'([-_]-)?(\d*)$')  # a negative one: "lock--1", "__READ__-1"


class Broken(Exception):
    """The first broken rule, as a sentence."""


class Place:
    """What happened on one path."""

    def __init__(self, path):
        self.path = path
        self.permits = 1  # how many with 'p' may be in at a time
        self.inside = []  # (worker, access)
        self.last = ''  # the worker that entered last
        self.visits = 0  # entries
        self.visits_of = collections.Counter()  # of each party
        self.turns = self.handed_over = 0  # visits, except of who is in already; those that follow another party's
        self.crowd_max = self.mixed = 0  # the most at a time; visits that met another party inside
        self.newest = self.written = 0  # the largest token, and that of the last worker that was alone
        self.writer = ''  # that worker
        self.low, self.high = EXHAUSTED << 1, 0  # nodes' numbers

    def share(self):
        """Of the turns, those that follow one of another party: 0 to 100."""
        return 100 * self.handed_over / (self.turns - 1) if self.turns > 1 else 0

    def may_be_together(self, worker, access, other, its_access):
        """Readers hold with readers, permits with permits up to their number; a writer may also read."""
        if access == its_access == 'p':
            return len(self.inside) < self.permits
        return access == 'r' and (its_access == 'r' or worker == other)

    def count(self, worker, party):
        self.visits += 1
        self.visits_of[party] += 1
        self.mixed += any(other[0] != party for other, _ in self.inside)
        if worker not in [other for other, _ in self.inside]:
            self.turns += 1
            self.handed_over += self.last[:1] not in ('', party)
            self.last = worker

    def wrong_token(self, worker, access, token):
        """What is wrong with it, or None. The threads of one process may have it in turn."""
        again = token == self.newest and worker[:3] == self.writer[:3]
        own = token == self.written and worker == self.writer
        if access == 'x' and token <= self.newest:
            return f'has no larger token than before: {self.last}'
        if access == 's' and token <= self.newest and not again:
            return f'has the token of another process: {self.writer}'
        if access == 'r' and token <= self.written and not own:
            return f"reads with a token not above the writer's: {self.writer}"
        return 'has no token' if access == 'p' and token == 0 else None

    def take_token(self, worker, access, token):
        self.newest = max(self.newest, token)
        if access in 'xs':
            self.written, self.writer = token, worker

    def take_number(self, node):
        """False: it is exhausted."""
        negative, digits = NUMBER.search(node).groups()
        number = int(digits or 0)
        self.low, self.high = min(self.low, number), max(self.high, number)
        return 'lease-' in node or not (number >= EXHAUSTED or negative)

    def enter(self, worker, access, party, token, node):
        who = f'visit {self.visits} of {self.path}: {worker} ({access}{f", token {token}, {node}" if node else ""})'
        for other in self.inside:
            if not self.may_be_together(worker, access, *other):
                raise Broken(f'{who} comes in beside {other[0]}')
        if node:
            wrong = self.wrong_token(worker, access, int(token))
            if wrong:
                raise Broken(f'{who} {wrong}')
            self.take_token(worker, access, int(token))
            if not self.take_number(node):
                raise Broken(f'{who} was granted an exhausted number')
        self.count(worker, party)
        self.inside.append((worker, access))
        self.crowd_max = max(self.crowd_max, len(self.inside))

    def leave(self, worker, access):
        if (worker, access) not in self.inside:
            raise Broken(f'visit {self.visits} of {self.path}: {worker} ({access}) leaves without having come in')
        self.inside.remove((worker, access))


class Journal:
    """The file, made anew, for parties with these letters."""

    def __init__(self, path, parties):
        self.fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        self.path, self.parties = path, parties
        self.rest = b''
        self.places = {}
        self.lines = 0

    def close(self):
        os.close(self.fd)

    def place(self, path):
        return self.places.setdefault(path, Place(path))

    def line(self, text):
        found = LINE.fullmatch(text)
        if not found or found[4] not in self.parties:
            raise Broken(f'not a line of the journal: {text}')
        way, access, worker, party, path, token, node = found.groups()
        self.lines += 1
        if way == '+':
            self.place(path).enter(worker, access, party, token, node)
        else:
            self.place(path).leave(worker, access)

    def read(self):
        """Judge what was added."""
        while part := os.read(self.fd, 1 << 16):
            *lines, self.rest = (self.rest + part).split(b'\n')
            for line in lines:
                self.line(line.decode())

    def forget(self):
        """All was read, and nobody writes: of what was read only what it says of later lines is kept."""
        os.ftruncate(self.fd, 0)
        os.lseek(self.fd, 0, os.SEEK_SET)
