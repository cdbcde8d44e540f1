# SPDX-License-Identifier: Apache-2.0
"""What the faults strike: three servers, the clients, a proxy on each link between them, and the clients' wall clocks. Every
choice comes from one seed. Every fault ends by itself when its time is over."""
import dataclasses
import math
import os
import random
import signal
import time

from clients import Clients
from shared import ALONE, BREAKAGES, NODES, PROCESSES, now_ms

READY_MS = 240000
CALM_MS = 3500  # before a server is struck
LASTING = 2  # the first processes are never killed: to see that they do not grow
LATE, LATE_SESSION_MS = 3, 60000  # whom "wake" strikes: its links outlast what is held back
SESSIONS_MS = [2000, 3000, 5000, 10000]
CLOCK_STEPS_S = [0, 1, -1, 60, -3600, 86400, -31536000]
DRAWS_MAX = 10
RUNNING, STOPPED, DEAD, COMING = range(4)  # coming: started, and not serving yet

# As proxy.h has them.
CONNECT, EVENT, ANY = -13, -1, -14
REQUESTS = [15, 15, 2, 2, 14, 12, 4, 3, CONNECT, 11]  # what a lock is made of: create2, delete, multi, ...
CUT, SILENT = 0, 1


@dataclasses.dataclass
class Server:
    condition: int = RUNNING
    until_ms: float = 0
    cut_until_ms: float = 0  # from the next one; 0: it is not


@dataclasses.dataclass(frozen=True)
class Fault:
    name: str
    often: int  # of 110
    strike: str  # whom, by chance: a method that says False if it would be too much just now
    least_ms: int = 0  # how long; a client stands still by its session
    most_ms: int = 0


KILL, PAUSE, WIPE = Fault('server killed', 18, 'server', 100, 2500), Fault('server paused', 13, 'server', 200, 4000), \
    Fault("server's data wiped", 4, 'server', 100, 2500)
CLIENT_KILL, CLIENT_PAUSE = Fault('client killed', 14, 'client', 50, 2000), Fault('client paused', 18, 'client')
# How chaos.c has it, and the bounds of a number that it takes.
VERBS = {'link cut': ('cut',), 'link with a hole': ('hole', 1, 3), 'link delayed': ('delay', 5, 300),
         'answer lost': ('lose_answer',), 'request lost': ('lose_request',), 'link half open': ('half_open',),
         'link trickling': ('trickle', 1, 9)}
LINKS = [Fault(name, often, 'link', 100, 4000) for name, often in zip(VERBS, (4, 6, 3, 6, 3, 3, 3))]
NODE_CUT, CLOCK_STEP = Fault('servers cut apart', 10, 'cut', 500, 5000), Fault('clock stepped', 5, 'clock')
FAULTS = [KILL, PAUSE, WIPE, CLIENT_KILL, CLIENT_PAUSE, *LINKS, NODE_CUT, CLOCK_STEP]


class Testbed:
    def __init__(self, host, o, peer, folder):
        self.host, self.shared, self.trace = host, host.shared, o.trace
        self.broken = BREAKAGES[self.shared.broken] if self.shared.broken else None
        self.chance = random.Random(o.seed)
        self.servers = [Server() for _ in range(NODES)]
        self.links = {(client, node): 0 for client in range(PROCESSES) for node in range(NODES)}  # until when one has a fault
        self.calm_since_ms = 0  # of the servers
        self.has_networks = host.ask('all networks') > 0
        self.count = dict.fromkeys(FAULTS, 0)
        for client, process in enumerate(self.shared.process):
            late = self.broken == 'wake' and client == LATE
            process.session_ms = LATE_SESSION_MS if late else SESSIONS_MS[client % 4]
        self.clients = Clients(host, peer, folder)

    def percent(self, percent):
        return self.chance.randint(1, 100) <= percent

    def say(self, fault, what):
        self.count[fault] += 1
        if self.trace:
            print(f'[{time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 10**6}] {fault.name}: {what}', flush=True)

    # --- servers

    def in_trouble(self):
        return sum((server.condition != RUNNING) + (server.cut_until_ms != 0) for server in self.servers)

    def may_strike(self, fault):
        """May a server be struck, or cut off, now? Two may stand still at a time: nobody serves then. But while one comes back,
        with its data or without, the others stay: ZooKeeper 3.8.0 loses committed writes if another one is killed or cut off
        meanwhile, as the canary shows."""
        if not self.in_trouble():
            return now_ms() >= self.calm_since_ms + CALM_MS
        only_pauses = all(server.condition in (RUNNING, STOPPED) and not server.cut_until_ms for server in self.servers)
        return fault is PAUSE and self.in_trouble() == 1 and only_pauses and self.percent(30)

    def draw_server(self, fault, leader):
        """Often the leader, if there is one; never to lose its data. None: nobody."""
        node = self.chance.randrange(NODES)
        if not self.may_strike(fault) or (fault is WIPE and leader < 0):
            return None
        if fault is not WIPE and leader >= 0 and self.percent(30):
            node = leader
        if fault is WIPE and node == leader:
            node = (node + 1) % NODES
        return node if self.servers[node].condition == RUNNING else None

    def server(self, fault, until_ms):
        leader = self.host.ask('all leader')
        node = self.draw_server(fault, leader)
        if node is None:
            return False
        self.say(fault, f'{node}{", the leader" if node == leader else ""}')
        self.host.must(f'server {node} was not struck', 'server pause' if fault is PAUSE else 'server kill', node)
        if fault is WIPE:
            self.host.must(f'server {node} was not wiped', 'server wipe', node)
        self.servers[node] = Server(STOPPED if fault is PAUSE else DEAD, until_ms)
        return True

    def start_server(self, node):
        self.host.must(f'server {node} was not started', 'server start_node', node)
        self.servers[node].condition = COMING

    def look_after_server(self, node, at_ms):
        server = self.servers[node]
        if server.condition == COMING and self.host.ask('server serves', node):
            server.condition = RUNNING
        elif server.condition == COMING and self.host.ask('server pid', node) == 0:
            self.start_server(node)  # somebody else had its port
        elif server.condition == DEAD and at_ms >= server.until_ms:
            self.start_server(node)
        elif server.condition == STOPPED and at_ms >= server.until_ms:
            self.host.ask('server resume', node)
            server.condition = COMING

    # --- between servers

    def apart(self, node, until_ms):
        """From the next one; until 0: not any more. Whoever was out has to come in again."""
        both = node, (node + 1) % NODES
        self.host.must(f'servers {both}: the cut was not {"made" if until_ms else "mended"}', 'server cut_apart', *both, until_ms != 0)
        self.servers[node].cut_until_ms = until_ms
        for server in [self.servers[each] for each in both]:
            if not until_ms and server.condition == RUNNING:
                server.condition = COMING

    def cut(self, fault, until_ms):
        """Two that do not hear each other, or one that is alone."""
        node, alone = self.chance.randrange(NODES), self.percent(60)
        if not self.has_networks or not self.may_strike(fault):
            return False
        for each in (node, (node - 1) % NODES)[:1 + alone]:
            self.apart(each, until_ms)
        self.say(fault, f'{node} from {"both others" if alone else "the next one"}')
        return True

    # --- clients

    def holds_something(self, client):
        return any(hold.access == ALONE and hold.left_ns == 0 for seat in self.host.seats_of(client) for hold in seat.holds())

    def draw_client(self, first):
        """Mostly one that has a lock just now."""
        clients = list(range(first, PROCESSES))
        at = self.chance.randrange(len(clients))
        if self.broken is None and self.percent(30):
            return clients[at]
        return next((client for client in clients[at:] + clients[:at]
                     if self.clients.condition[client] == RUNNING and self.holds_something(client)), clients[at])

    def client(self, fault, until_ms):
        client = self.draw_client(LASTING if fault is CLIENT_KILL else 0)
        if self.clients.condition[client] != RUNNING:
            return False
        session_ms = self.shared.process[client].session_ms
        if fault is CLIENT_KILL:
            self.clients.kill(client)
        else:  # past its session, or not
            past = self.broken is not None or self.percent(75)
            until_ms = now_ms() + (self.chance.randint(session_ms + session_ms // 4, 5 * session_ms // 2) if past
                                   else self.chance.randint(session_ms // 4, session_ms))
            self.clients.signal(client, signal.SIGSTOP, STOPPED)
        self.clients.until_ms[client] = until_ms
        self.say(fault, f'{client} for {until_ms - now_ms()} ms')
        return True

    def clock(self, fault, _until_ms):
        """A second or a year, to and fro."""
        client, by_s = self.chance.randrange(PROCESSES), self.chance.choice(CLOCK_STEPS_S)
        self.shared.process[client].clock_ns = by_s * 10**9
        self.say(fault, f'{client}: {by_s} s')
        return True

    # --- links

    def loss(self):
        """Of what, the how manieth, and what then; the proxies see no frames of TLS."""
        tls = bool(self.shared.tls)
        return ANY if tls else self.chance.choice(REQUESTS), self.chance.randint(1, 10 if tls else 3), \
            CUT if self.percent(60) else SILENT

    def strike_link(self, fault, link):
        verb, *between = VERBS[fault.name]
        more = [self.chance.randint(*between)] if between else self.loss() if verb.startswith('lose_') else []
        if verb == 'lose_answer' and (more[0] == ANY or self.percent(20)):
            more = EVENT, *more[1:]
        self.host.ask(f'link {verb}', *link, *more)

    def link(self, fault, until_ms):
        """On the link that is in use, or on all of the client."""
        client, all_of_it = self.chance.randrange(PROCESSES), self.percent(40)
        nodes = self.chance.sample(range(NODES), NODES)
        used = next((node for node in nodes if self.host.ask('link connected', client, node)), nodes[0])
        self.say(fault, f'of client {client}')
        for node in nodes if all_of_it else [used]:
            self.strike_link(fault, (client, node))
            self.links[client, node] = until_ms
        return True

    # --- all of them

    def strike(self):
        """One fault, by chance. What would be too much just now is left out."""
        for _ in range(DRAWS_MAX):
            fault, = self.chance.choices(FAULTS, [fault.often for fault in FAULTS])
            if self.broken:
                fault = CLIENT_PAUSE  # what shows it best
            if getattr(self, fault.strike)(fault, now_ms() + self.chance.randint(fault.least_ms, fault.most_ms)):
                return

    def end_due(self, at_ms):
        for node, server in enumerate(self.servers):
            if server.cut_until_ms and at_ms >= server.cut_until_ms:
                self.apart(node, 0)
            self.look_after_server(node, at_ms)
        if self.in_trouble():
            self.calm_since_ms = now_ms()
        for client in range(PROCESSES):
            if at_ms >= self.clients.until_ms[client]:
                self.clients.go_on(client)
        for link, until_ms in self.links.items():
            if until_ms and at_ms >= until_ms:
                self.host.ask('link heal', *link, self.percent(50))
                self.links[link] = 0

    def tick(self, seconds=0.01):
        """End each fault that is due, and find each client that has ended without a request."""
        self.clients.tick(seconds)
        self.end_due(now_ms())

    def heal(self):
        """End all. False: the servers do not come back."""
        end_ms = now_ms() + READY_MS
        self.end_due(math.inf)
        while self.in_trouble() and now_ms() < end_ms:
            time.sleep(0.02)
            self.end_due(math.inf)
        return self.host.ask('all ready') == 0

    def wipe_all(self):
        """All servers lose their data, when all windows are over. False: they do not come back."""
        for node in range(NODES):
            self.host.must(f'server {node} was not killed', 'server kill', node)
            self.servers[node] = Server(DEAD)
        end_ms = now_ms() + max(process.session_ms for process in self.shared.process)
        while now_ms() < end_ms:
            self.clients.tick(0.02)
        self.shared.era += 1
        begun_ns = time.monotonic_ns()
        self.shared.newest[:] = [0] * len(self.shared.newest)
        if any([self.host.ask('server wipe', node) for node in range(NODES)]):
            return False
        if os.environ.get('ZKL_CALLS'):  # as calls.h has it
            with open(os.environ['ZKL_CALLS'], 'a', encoding='ascii') as file:
                file.write(f'w {begun_ns} {time.monotonic_ns()}\n')
        return self.heal()
