# SPDX-License-Identifier: Apache-2.0
"""The client processes of the chaos, which are peers of the crowd: what each makes at first, and that all of its workers
play then, until the end (play.c)."""
import os
import signal

import conductor
from shared import END, PLACES, PROCESSES, THREADS, now_ms

CLOSE_MS = 60000
RUNNING, STOPPED, DEAD = range(3)

# Each third of the processes uses one path in another way, except where leases are used, or tries.
SHARES = ['retain=200', 'local=4', 'local=4 retain=200']
CACHES = ['', '', 'retain=200']
PLAIN = ['', '', '']
# What worker 0 makes.
HANDLES = {
    'mutex': ('mutex /chaos/mutex', SHARES), 'lease': ('mutex /chaos/lease', PLAIN), 'rwlock': ('rwlock /chaos/rwlock', CACHES),
    'permits': ('semaphore /chaos/permits permits=3', PLAIN), 'pair': ('semaphore /chaos/permits permits=3 count=2', PLAIN),
    'revoked': ('mutex /chaos/revoked', SHARES), 'rare': ('mutex /chaos/rare', PLAIN),
    **{f'single{thread}': ('single /chaos/single', PLAIN) for thread in range(THREADS)}}
NAMES = [f'p{client}.' for client in range(PROCESSES)]


class Clients(conductor.Crew):
    def __init__(self, host, peer, folder):
        super().__init__(folder)
        self.host, self.shared, self.program = host, host.shared, peer
        self.condition = [DEAD] * PROCESSES
        self.until_ms = [0] * PROCESSES  # of those that are stopped or dead
        self.to_make = [[] for _ in NAMES]  # what it is told when it has made what is before
        for client in range(PROCESSES):
            self.begin(client)

    def begin(self, client):
        process, name = self.shared.process[client], NAMES[client]
        process.told[:] = process.owed[:] = [0] * len(PLACES)
        self.to_make[client] = [f'{name}0 new {handle} {row} revocable=callback {more[client % 3]}'
                                for handle, (row, more) in HANDLES.items()]
        self.condition[client] = RUNNING
        self.start(name, [self.program, process.servers.decode(), f'/proc/self/fd/{self.host.fd}', client], [self.host.fd])

    def kill(self, client):
        if NAMES[client] in self.peers:
            super().kill(NAMES[client])
        self.host.bury(client)
        self.condition[client] = DEAD

    def signal(self, client, number, condition):
        os.kill(self.peers[NAMES[client]].pid, number)
        self.condition[client] = condition

    def go_on(self, client):
        if self.condition[client] == DEAD:
            self.begin(client)
        elif self.condition[client] == STOPPED:
            self.signal(client, signal.SIGCONT, RUNNING)

    def threads(self, client):
        peer = self.peers.get(NAMES[client])
        return peer.entries('task') if peer else 0

    def tick(self, seconds):
        """Often, for so long: each goes on with what it has to make at first; one that has ended by itself is reported."""
        self.listen(seconds)
        if self.fault() and not self.shared.failed:
            self.host.say_odd(self.fault())
        for client, name in enumerate(NAMES):
            if self.shared.failed or name not in self.peers or f'{name}0' in self.busy:
                continue
            if self.to_make[client]:
                self.say(self.to_make[client].pop(0))
            elif self.shared.phase != END:
                for thread in range(THREADS):
                    self.say(f'{name}{thread} play single{thread}')

    def close(self):
        """All come to an end, and end well: else False."""
        self.shared.phase, end_ms = END, now_ms() + CLOSE_MS
        while self.busy and now_ms() < end_ms:
            self.tick(0.02)
        if self.busy or self.shared.failed:
            return False
        for name in NAMES:
            for handle in HANDLES:
                said = self.ask(f'{name}0 drop {handle}')
                if said != 'ok':
                    self.host.say_odd(f'process {name}: drop {handle}: {said}')
        well = self.stop(NAMES)
        for client in range(PROCESSES):
            self.host.bury(client)
            self.condition[client] = DEAD
        return well
