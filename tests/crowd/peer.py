#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The Kazoo peer. What it is told and what it answers is in conductor.py. With NAME=VALUE words it is one of the benchmark.

Options of a handle: names=kazoo (Kazoo's own, the default), names=curator (a subclass that has
Curator's names), names=mended (a reader without the fault of 2.8.0), pattern=TEXT,TEXT (Kazoo's
extra_lock_patterns), bare=1 (do not make the path)."""
import json
import mmap
import os
import queue
import random
import struct
import sys
import threading
import time

from kazoo.client import KazooClient
from kazoo.exceptions import KazooException, LockTimeout
from kazoo.recipe.lock import Lock, ReadLock, WriteLock
from kazoo.version import __version__

SESSION_S = 30
RUN_S = 60
NAP_S = 0.0001

# The benchmark's board, as in board.py.
LOCK_AT = LOCK_BYTES = 4096
RELEASED_AT = 64
SAMPLE_AT = LOCK_AT + 256 * LOCK_BYTES
SAMPLES_MAX = 1 << 20
WARM_THREADS = 8
LONG = struct.Struct('=q')


class CuratorLock(Lock):
    """For a path that Curator uses too: it sees only names like its own."""

    _NODE_NAME = "-lock-"
    _EXCLUDE_NAMES = ["-lock-"]


class InOrder:
    """Kazoo 2.8.0's reader waits for the last writer in the list, also for one that came after it
    and waits for the reader: both wait for ever. As in 2.9, only lower numbers count."""

    def _get_predecessor(self, node):
        children = self.client.get_children(self.path)
        if node not in children:
            return super()._get_predecessor(node)  # which tries again
        before = []
        for child in children:
            match = self._contenders_re.search(child)
            if match and match.group(1) < node[-10:]:
                before.append((match.group(1), child))
        return max(before)[1] if before else None


class MendedReadLock(InOrder, ReadLock):
    pass


class CuratorReadLock(InOrder, Lock):
    _NODE_NAME = "__READ__"
    _EXCLUDE_NAMES = ["__WRIT__"]


class CuratorWriteLock(Lock):
    _NODE_NAME = "__WRIT__"
    _EXCLUDE_NAMES = ["__WRIT__", "__READ__"]


class Open:
    """Lets everybody in."""

    def __init__(self, *ignored, **options):
        pass

    def acquire(self, **options):
        return True

    def release(self):
        pass


# By kind, names and half.
RECIPES = {
    ("mutex", "kazoo", ""): Lock,
    ("mutex", "curator", ""): CuratorLock,
    ("rwlock", "kazoo", ".read"): ReadLock,
    ("rwlock", "kazoo", ".write"): WriteLock,
    ("rwlock", "mended", ".read"): MendedReadLock,
    ("rwlock", "mended", ".write"): WriteLock,
    ("rwlock", "curator", ".read"): CuratorReadLock,
    ("rwlock", "curator", ".write"): CuratorWriteLock,
    ("none", "kazoo", ""): Open,
}


class Handle:
    """What a Lock is made from: each worker has its own, as a Lock is one contender."""

    def __init__(self, recipe, path, options):
        self.recipe = recipe
        self.path = path
        self.access = "r" if "Read" in recipe.__name__ else "x"
        self.patterns = options["pattern"].split(",") if "pattern" in options else []
        self.owner = options.get("owner")

    def lock(self, client):
        return self.recipe(client, self.path, self.owner, extra_lock_patterns=self.patterns)


class Peer:
    def __init__(self, servers, journal):
        self.client = KazooClient(hosts=servers, timeout=SESSION_S)
        self.client.start(timeout=SESSION_S)
        self.journal = os.open(journal, os.O_WRONLY | os.O_APPEND)
        calls = os.environ.get("ZKL_CALLS")
        self.calls = os.open(calls, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600) if calls else None
        self.handles = {}
        self.output = threading.Lock()

    def say(self, line):
        with self.output:
            print(" ".join(line.splitlines()), flush=True)

    def new(self, name, kind, path, options):
        names = options.get("names", "kazoo")
        # A lock makes its path once; as a container it could be gone when the lock comes back.
        if "bare" not in options:
            self.client.ensure_path(path)
        made = 0
        for (its_kind, its_names, half), recipe in RECIPES.items():
            if (its_kind, its_names) == (kind, names):
                self.handles[name + half] = Handle(recipe, path, options)
                made += 1
        if made == 0:
            raise ValueError(f"no kind {kind} with names {names}")

    def drop(self, name):
        for half in ("", ".read", ".write"):
            self.handles.pop(name + half, None)


class Worker(threading.Thread):
    def __init__(self, peer, name):
        super().__init__(name=name, daemon=True)
        self.peer = peer
        self.orders = queue.Queue()
        self.locks = {}  # by handle
        self.random = random.Random(name)

    def run(self):
        while True:
            words = self.orders.get()
            try:
                result = self.obey(words[1], *words[2:])
            except Exception as error:
                result = f"error {type(error).__name__}: {error}"
            self.peer.say(f"{self.name} {result}")

    def lock_of(self, name):
        handle = self.peer.handles[name]
        if handle not in self.locks:
            self.locks[handle] = handle.lock(self.peer.client)
        return self.locks[handle]

    def obey(self, verb, name=None, *args):
        if verb == "new":
            options = dict(word.partition("=")[::2] for word in args[2:])
            self.peer.new(name, args[0], args[1], options)
        elif verb == "drop":
            self.peer.drop(name)
        elif verb == "lock":
            return self.acquire(self.lock_of(name), int(args[0]))
        elif verb == "unlock":
            self.lock_of(name).release()
        elif verb == "run":
            self.visit(name, int(args[0]), int(args[1]))
        elif verb == "version":
            return "ok " + __version__
        elif verb == "list":
            return "ok " + "|".join(self.lock_of(name).contenders())
        else:
            raise ValueError(f"no verb {verb}")
        return "ok"

    @staticmethod
    def acquire(lock, milliseconds):
        try:
            if milliseconds == 0:
                got = lock.acquire(blocking=False)
            else:
                got = lock.acquire(timeout=milliseconds / 1000)
        except LockTimeout:
            got = False
        return "ok" if got else "no"

    def record(self, way, words, handle=None):
        """For tests/linear."""
        if self.peer.calls is None:
            return
        place = f" {'read' if handle.access == 'r' else 'alone'}={handle.path}" if handle else ""
        now = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        os.write(self.peer.calls, f"{way} {now} {os.getpid()}.{self.name[1:]} {words}{place}\n".encode())

    def visit(self, name, rounds, writers):
        for i in range(rounds):
            half = ".write" if self.random.randrange(100) < writers else ".read"
            which = name if name in self.peer.handles else name + half
            lock = self.lock_of(which)
            handle = self.peer.handles[which]
            self.record("?", "acquire", handle)
            got = lock.acquire(timeout=RUN_S)
            self.record("!", "0 0:1" if got else "-12")
            if not got:
                raise RuntimeError(f"not acquired in round {i}")
            self.note("+", handle)
            time.sleep(NAP_S)
            self.note("-", handle)
            self.record("?", "release", handle)
            lock.release()
            self.record("!", "0")

    def note(self, way, handle):
        os.write(self.peer.journal, f"{way}{handle.access} {self.name} {handle.path}\n".encode())


class Seat:
    """One thread of the benchmark, with a Lock of its own, as a Lock is one contender. Exclusion is checked by a plain read
    and a plain write of the board, as Python has no atomic exchange: who enters must find it free, and who leaves must
    find himself."""

    def __init__(self, peer, number):
        self.peer = peer
        self.number = number
        self.is_reader = peer.mode == 'rw' and number >= peer.number('writers')
        self.is_writer = peer.mode == 'rw' and not self.is_reader
        self.lock_number = 0 if number == peer.threads else number % peer.locks
        kind = MendedReadLock if self.is_reader else WriteLock if self.is_writer else Lock
        self.lock = kind(peer.client, f"{peer.settings['path']}-{self.lock_number}")
        self.name = peer.number('index') * 100000 + number + 1
        self.word_at = LOCK_AT + self.lock_number * LOCK_BYTES
        self.cycles = 0
        self.ended_ns = 0

    def fail(self, found):
        print(f"VIOLATION: process {self.peer.number('index')}, thread {self.number} is not alone in lock "
              f'{self.lock_number}: {found} is inside', file=sys.stderr, flush=True)
        os._exit(1)

    def enter(self):
        peer = self.peer
        if self.is_reader:
            with peer.mu:
                found = peer.get(self.word_at)
                peer.put(self.word_at, found + 1)
        else:
            with peer.mu:
                found = peer.get(self.word_at)
                peer.put(self.word_at, -self.name)
        if found < 0 or (found > 0 and not self.is_reader):
            self.fail(found)

    def leave(self):
        peer = self.peer
        with peer.mu:
            found = peer.get(self.word_at)
            peer.put(self.word_at, found - 1 if self.is_reader else 0)
        if self.is_reader and found < 1 or not self.is_reader and found != -self.name:
            self.fail(found)

    def cycle(self):
        peer = self.peer
        asked = time.monotonic_ns()
        self.lock.acquire()
        got = time.monotonic_ns()
        self.enter()
        released = peer.get(self.word_at + RELEASED_AT)
        if peer.hand_offs and released > asked:
            peer.sample(got - released)
        self.cycles += 1
        self.leave()
        peer.put(self.word_at + RELEASED_AT, time.monotonic_ns())
        self.lock.release()
        if peer.whole:
            peer.sample(time.monotonic_ns() - asked)

    def run(self):
        peer = self.peer
        peer.start.wait()
        while time.monotonic_ns() < peer.end_ns and peer.take_one():
            self.cycle()
        self.ended_ns = time.monotonic_ns()

    def wait_once(self):
        self.cycles = 0
        self.cycle()
        self.ended_ns = time.monotonic_ns()


class Bench:
    """The peer of the benchmark: its words, orders and answers are those of tests/bench/peer.h."""

    def __init__(self, words):
        self.settings = dict(word.split('=', 1) for word in words)
        self.mode = self.settings['mode']
        self.threads = self.number('threads', 1)
        self.locks = self.number('locks', 1)
        self.hand_offs = self.settings.get('sample') == 'handoff'
        self.whole = self.settings.get('sample') == 'cycle'
        with open(self.settings['board'], 'r+b') as file:
            self.board = mmap.mmap(file.fileno(), 0)
        self.mu = threading.Lock()  # protects cycles_left, and a word of the board for a moment
        self.cycles_left = 0
        self.end_ns = 0
        self.start = None
        self.running = []
        self.node, self.told = '', []  # mode outage
        self.waiting = 0  # mode drain: so many were started
        self.session_s = self.number('session_ms', SESSION_S * 1000) / 1000
        self.client = KazooClient(hosts=self.settings['servers'], timeout=self.session_s)
        self.client.start(timeout=SESSION_S)
        self.seats = [Seat(self, i) for i in range(self.threads + 1)]

    def number(self, name, otherwise=0):
        return int(self.settings.get(name, otherwise))

    def get(self, at):
        return LONG.unpack_from(self.board, at)[0]

    def put(self, at, value):
        LONG.pack_into(self.board, at, value)

    def sample(self, ns):
        with self.mu:
            at = self.get(0)
            self.put(0, at + 1)
        if at < SAMPLES_MAX:
            self.put(SAMPLE_AT + at * 8, ns)

    def take_one(self):
        with self.mu:
            self.cycles_left -= 1
            return self.cycles_left >= 0

    def start_threads(self, function, seats):
        started = [threading.Thread(target=function, args=(seat,)) for seat in seats]
        self.running += started
        for thread in started:
            thread.start()

    def figures(self, seats, began, cpu):
        for thread in self.running:
            thread.join()
        ended = max(seat.ended_ns for seat in seats)
        return {'cycles': sum(seat.cycles for seat in seats),
                'writes': sum(seat.cycles for seat in seats if seat.is_writer),
                'elapsed_ns': ended - began, 'cpu_ns': time.process_time_ns() - cpu, 'ended_ns': ended}

    def run_cycles(self, threads, cycles, seconds):
        self.running = []
        seats = self.seats[:threads]
        self.cycles_left = cycles
        self.start = threading.Barrier(threads + 1)
        for seat in seats:
            seat.cycles = 0
        self.start_threads(Seat.run, seats)
        cpu, began = time.process_time_ns(), time.monotonic_ns()
        self.end_ns = began + int(seconds * 1e9)
        self.start.wait()
        return self.figures(seats, began, cpu)

    def fill(self, count):
        if self.mode != 'drain':
            raise ValueError(f'nothing to fill in mode {self.mode}')
        if self.waiting == 0:
            threading.stack_size(256 * 1024)
            self.running = []
            if self.number('index') == 0:
                self.seats[-1].lock.acquire()
                self.seats[-1].enter()
        end = min(self.threads, self.waiting + (count or self.threads))
        self.start_threads(Seat.wait_once, self.seats[self.waiting:end])
        self.waiting = end
        return {'filled': end}

    def drain(self):
        cpu, began = time.process_time_ns(), time.monotonic_ns()
        if self.number('index') == 0:
            self.seats[-1].leave()
            self.seats[-1].lock.release()
        return self.figures(self.seats[:self.threads], began, cpu)

    def hold(self):
        """Take lock 0, and note from now on what is told."""
        lock = self.seats[0].lock
        lock.acquire()
        self.node = f'{lock.path}/{lock.node}'
        self.client.add_listener(lambda state: self.told.append((state, time.monotonic_ns())))
        return {'held': 1}

    def still_holds(self):
        while True:
            try:
                return {'held': int(self.client.exists(self.node) is not None), 'told': self.told}
            except (KazooException, self.client.handler.timeout_exception):  # no link yet
                time.sleep(0.05)

    def obey(self, verb, value='0'):
        if self.mode == 'outage':
            return self.hold() if verb == 'fill' else self.still_holds()
        if verb == 'warm':
            threads = min(self.threads, WARM_THREADS) if self.mode == 'drain' else self.threads
            return self.run_cycles(threads, int(value), 3600)
        if verb == 'fill':
            return self.fill(int(value))
        if verb == 'go':
            return self.drain() if self.mode == 'drain' else self.run_cycles(self.threads, 1 << 62, float(value))
        raise ValueError(f'no order {verb}')


def main():
    if "=" in sys.argv[1]:
        bench = Bench(sys.argv[1:])
        print(json.dumps({"ready": 1}), flush=True)
        for line in sys.stdin:
            print(json.dumps(bench.obey(*line.split())), flush=True)
        bench.client.stop()
        return
    peer = Peer(sys.argv[1], sys.argv[2])
    workers = {}
    peer.say("ready")
    for line in sys.stdin:
        words = line.split()
        if words[0] not in workers:
            workers[words[0]] = Worker(peer, words[0])
            workers[words[0]].start()
        workers[words[0]].orders.put(words)
    peer.client.stop()


if __name__ == "__main__":
    main()
