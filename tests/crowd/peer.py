#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The Kazoo peer. What it is told and what it answers is in peers.h.

Options of a handle: names=kazoo (Kazoo's own, the default), names=curator (a subclass that has
Curator's names), names=mended (a reader without the fault of 2.8.0), pattern=TEXT,TEXT (Kazoo's
extra_lock_patterns), bare=1 (do not make the path)."""
import os
import queue
import random
import sys
import threading
import time

from kazoo.client import KazooClient
from kazoo.exceptions import LockTimeout
from kazoo.recipe.lock import Lock, ReadLock, WriteLock
from kazoo.version import __version__

SESSION_S = 30
RUN_S = 60
NAP_S = 0.0001


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


def main():
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
