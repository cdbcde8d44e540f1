#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The Kazoo peer: its words, orders and answers are those of peer.h. Each thread has a Lock of its own, as a Lock is one
contender.

Exclusion is checked by a plain read and a plain write of the board, as Python has no atomic exchange: who enters must
find it free, and who leaves must find himself."""
import json
import mmap
import os
import pathlib
import struct
import sys
import threading
import time

from kazoo.client import KazooClient
from kazoo.exceptions import KazooException
from kazoo.recipe.lock import Lock, WriteLock

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / 'crowd'))
from peer import MendedReadLock  # 2.8.0's own may wait for ever

SESSION_S = 30
LOCK_AT = LOCK_BYTES = 4096
RELEASED_AT = 64
SAMPLE_AT = LOCK_AT + 256 * LOCK_BYTES
SAMPLES_MAX = 1 << 20
WARM_THREADS = 8
LONG = struct.Struct('=q')


class Seat:
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


class Peer:
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
    peer = Peer(sys.argv[1:])
    print(json.dumps({'ready': 1}), flush=True)
    for line in sys.stdin:
        print(json.dumps(peer.obey(*line.split())), flush=True)
    peer.client.stop()


if __name__ == '__main__':
    main()
