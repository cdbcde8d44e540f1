# SPDX-License-Identifier: Apache-2.0
"""How long an outage a holder survives. Some processes hold a lock each; the ways of all of them to the servers are cut in one
moment, in silence, and come back after times that grow from half of the session timeout to twice of it. What comes out
hangs on the timeout, the servers' tick and how often a client sends something, not on how fast the machine is."""
import time

from peers import Group, PeerFailed
from relay import Relay

POLL_S = 0.02
ANSWER_S = 120  # much more than a client takes to come back
DOUBT, LOST = ('SUSPECT', 'SUSPENDED'), ('LOST',)


def lengths(session_s, tick_s):
    """Of the outages: up to where it must survive, and from where on it must not, both in sight."""
    return sorted([session_s * share for share in (1 / 2, 3 / 4, 7 / 8, 15 / 16, 1)] +
                  [session_s + tick_s * ticks for ticks in (0.5, 1, 2)] + [2 * session_s + tick_s])


class Holders(Group):
    """A process, a lock and a relay for each length."""

    def __init__(self, places, peer, workload, server, board, path):
        self.relays = [Relay(server.ports) for _ in lengths(workload.session_s, server.tick_s)]
        self.paths = [f'{path}-{i}' for i in range(len(self.relays))]
        super().__init__(places, peer, len(self.relays), lambda i: [
            f'servers={self.relays[i].address}', f'board={board.path}', *workload.words(self.paths[i])])

    def stop(self, gently=True):
        super().stop(gently)
        for relay in self.relays:
            relay.stop()
        self.relays = []


def node_of(path, nodes):
    found = [node for node in nodes if node.startswith(path + '-')]
    if len(found) != 1:
        raise PeerFailed(f'{len(found)} nodes at {path}')
    return found[0]


def outages(holders, server, planned):
    """Cut all, let each come back in its time. When each was cut and came back, and when the node of the last one was gone,
    in ns; 0: it was not."""
    last = node_of(holders.paths[-1], server.ephemerals())
    cut, back, gone = [], [0] * len(planned), 0
    for relay in holders.relays:
        relay.cut()
        cut.append(time.monotonic_ns())
    while not all(back):
        now = time.monotonic_ns()
        for i, relay in enumerate(holders.relays):
            if not back[i] and now >= cut[i] + planned[i] * 1e9:
                relay.heal()
                back[i] = time.monotonic_ns()
        if not gone and last not in server.ephemerals():
            gone = time.monotonic_ns()
        time.sleep(POLL_S)
    return cut, back, gone


def first_told(answer, words, since_ns):
    return next((ns for word, ns in answer['told'] if word in words and ns >= since_ns), 0)


def measure(workload, holders, server):
    planned = lengths(workload.session_s, server.tick_s)
    holders.order('fill', ANSWER_S)
    nodes = [node_of(path, server.ephemerals()) for path in holders.paths]
    time.sleep(workload.session_s / 2)  # a grant is heard of more surely than what comes after
    cut, back, gone = outages(holders, server, planned)
    answers = holders.order('go 0', ANSWER_S)
    there = server.ephemerals()
    survived, lost = [0.0], []
    for node, answer, began, ended in zip(nodes, answers, cut, back):
        if bool(answer['held']) != (node in there):
            raise RuntimeError(f"{holders.peer.name} says {answer['held']} of {node}, the server does not")
        (survived if node in there else lost).append((ended - began) / 1e9)
    figures = {'survived_s': max(survived)}
    if lost:
        figures['lost_s'] = min(lost)
    for name, ns in (('doubt_s', first_told(answers[-1], DOUBT, cut[-1])), ('told_s', first_told(answers[-1], LOST, cut[-1])),
                     ('free_s', gone)):
        if ns:
            figures[name] = (ns - cut[-1]) / 1e9
    return figures
