# SPDX-License-Identifier: Apache-2.0
"""What is measured: the workloads, and how a run of each becomes figures."""
import dataclasses
import resource
import time

import outage
from stats import percentile, Processors

FILL_S = 300  # for 5,000 waiters of the slowest peer
LIBRARIES = ['zklock', 'zklock-posted']
FLOORS = ['floor-pipe', 'floor-1rt']  # with one session in a process
GROUP_FLOORS = ['floor-group', 'floor-group-posted']
OTHERS = ['curator', 'kazoo']
CACHED = ['zklock-cached', 'floor-atomics', 'floor-clocks']  # of readers.c
OURS = LIBRARIES + CACHED[:1]  # who is compared with the others


@dataclasses.dataclass(frozen=True)
class Figure:
    name: str
    title: str
    digits: int = 0
    lower_is_better: bool = True


CYCLES = Figure('cycles_per_s', 'cycles/s', 0, False)
GRANTS = Figure('cycles_per_s', 'acq/s', 0, False)
FAIRNESS = Figure('jain', 'Jain index over processes', 2, False)
REQUESTS = Figure('requests_per_cycle', 'requests per cycle', 2)
CPU = Figure('cpu_us_per_cycle', 'client CPU us', 0)
SERVER_CPU = Figure('server_cpu_us_per_cycle', 'server CPU us', 0)
IDLE = Figure('idle_percent', 'processors idle %', 0)
P50 = Figure('p50_us', 'p50 us', 0)
P99 = Figure('p99_us', 'p99 us', 0)
HAND_OFFS = [Figure('p50_us', 'hand-off p50 us', 0), Figure('p99_us', 'hand-off p99 us', 0)]
BYTES = Figure('bytes_per_cycle', 'bytes received', 0)
DRAIN = [Figure('us_per_acquisition', 'us per acquisition', 0),
         Figure('requests_per_acquisition', 'requests while draining', 2),
         Figure('bytes_per_acquisition', 'bytes received, all', 0),
         Figure('bytes_per_acquisition_draining', 'bytes while draining', 0),
         Figure('peak_mb', 'peak MB', 0)]
ENTERS = [Figure('enters_per_s', 'enter and leave a second', 0, False), Figure('cpu_ns', 'ns of a processor each', 0)]
OUTAGE = [Figure('survived_s', 'longest survived, s', 1, False), Figure('lost_s', 'shortest that was not, s', 1, False),
          Figure('doubt_s', 'told of doubt after s', 1), Figure('free_s', 'its node is gone after s', 1),
          Figure('told_s', 'told of the loss after s', 1)]
WRITER = [Figure('behind_1_us', 'behind one caching client, us', 0), Figure('behind_1_hand_offs', 'the same in hand-offs', 2),
          Figure('behind_32_us', 'behind 32, us', 0), Figure('free_us', 'free lock, us', 0), Figure('hand_off_us', 'hand-off, us', 0),
          Figure('join_in', 'the 100th reader joins: packets to the server', 0), Figure('join_out', 'from it', 0),
          Figure('write_in', 'a writer comes: packets to the server', 0), Figure('write_out', 'from it', 0)]
APART = DRAIN[:2] + [Figure('requests_per_waiter', 'requests, all', 2)] + DRAIN[2:]


@dataclasses.dataclass(frozen=True)
class Workload:
    name: str
    title: str
    mode: str
    peers: list
    figures: list  # the first is what peers are compared by
    processes: int = 1
    threads: int = 1
    locks: int = 1
    writers: int = 0
    count: int = 0
    sample: str = 'none'
    pause_us: int = 0
    clients: int = 0  # of one process, for each a thread and a lock of its own; 0: one for all
    session_s: int = 0  # mode outage
    apart: bool = False  # mode drain: waiters come one after another, each with a handle of its own
    rounds_max: int = 1000
    slow: tuple = ()  # peers that take very long: only if they are named

    @property
    def is_fresh(self):
        """Each round has processes of its own."""
        return self.mode in ('drain', 'handles', 'clients', 'outage')

    def words(self, path):
        words = [f'path={path}', f'mode={self.mode}', f'threads={self.threads}', f'locks={self.locks}',
                 f'writers={self.writers}', f'count={self.count}', f'sample={self.sample}']
        return words + ([f'pause_us={self.pause_us}'] if self.pause_us else []) + (['own=1'] if self.apart else []) + (
            [f'clients={self.clients}'] if self.clients else []) + (
            [f'session_ms={self.session_s * 1000}'] if self.session_s else [])


def drain(name, waiters, peers, rounds_max=1000):
    return Workload(name, f'{waiters:,} waiters of one process, that asked together, behind a holder that unlocks', 'drain', peers, DRAIN, threads=waiters,
                    rounds_max=rounds_max, slow=('curator',))


ALL = [
    Workload('W1', 'one thread, free lock', 'cycle', LIBRARIES + ['zklock-retained', 'floor-sync'] + FLOORS + OTHERS + ['gozk'],
             [CYCLES, REQUESTS, CPU, P50, BYTES], sample='cycle'),
    Workload('W2-2', 'two processes on one lock', 'cycle',
             LIBRARIES + ['zklock-retained'] + FLOORS + ['floor-2w', 'floor-named'] + OTHERS,
             [GRANTS, REQUESTS, CPU] + HAND_OFFS, processes=2, sample='handoff'),
    Workload('W2-8', 'eight processes on one lock', 'cycle',
             LIBRARIES + FLOORS + ['floor-2w', 'floor-named'] + OTHERS,
             [GRANTS, REQUESTS, CPU, SERVER_CPU, IDLE] + HAND_OFFS, processes=8, sample='handoff'),
    Workload('W2-turn', 'two processes in turns, with pauses: the lock is free, or kept by the other one', 'cycle',
             ['zklock', 'zklock-retained'], [Figure('p50_us', 'lock p50 us', 0), Figure('p99_us', 'lock p99 us', 0), REQUESTS],
             processes=2, sample='turn', pause_us=2000),
    Workload('W3-8', 'one process, 8 threads on one lock', 'cycle',
             LIBRARIES + FLOORS + ['floor-2w', 'curator-own'] + OTHERS,
             [GRANTS, REQUESTS, CPU] + HAND_OFFS, threads=8, sample='handoff'),
    Workload('W3-32', 'one process, 32 threads on one lock', 'cycle',
             LIBRARIES + ['zklock-local', 'floor-local'] + FLOORS + ['floor-2w', 'curator-own'] + OTHERS,
             [GRANTS, REQUESTS, CPU] + HAND_OFFS, threads=32, sample='handoff'),
    Workload('W3-4x8', 'four processes, 8 threads of each on one lock', 'cycle',
             ['zklock', 'zklock-local', 'floor-1rt'], [GRANTS, FAIRNESS, REQUESTS, CPU] + HAND_OFFS, processes=4,
             threads=8, sample='handoff'),
    Workload('W4', '16 threads, 16 locks, one session', 'cycle', LIBRARIES + ['floor-sync'] + FLOORS + ['floor-named'] + GROUP_FLOORS + OTHERS + ['gozk'],
             [CYCLES, REQUESTS, CPU, P50, P99, SERVER_CPU, IDLE], threads=16, locks=16, sample='cycle'),
    Workload('W4-256', '256 threads, 256 locks, one session', 'cycle', LIBRARIES + ['floor-1rt'] + GROUP_FLOORS,
             [CYCLES, REQUESTS, CPU, P50, P99, SERVER_CPU, IDLE], threads=256, locks=256, sample='cycle'),
    drain('W5', 1000, LIBRARIES + FLOORS + ['floor-2w', 'curator', 'curator-own', 'kazoo']),
    Workload('W5-apart', '1,000 waiters of one process, that came one after another, a handle each, behind a holder that unlocks', 'drain',
             LIBRARIES + FLOORS + ['curator-own', 'kazoo', 'gozk'], APART, threads=1000, apart=True),
    Workload('W6', 'read-write lock, 8 readers and 1 writer in one process', 'rw', LIBRARIES + ['curator-own'] + OTHERS,
             [Figure('reads_per_s', 'reads/s', 0, False), Figure('writes_per_s', 'writes/s', 0, False), REQUESTS, CPU],
             threads=9, writers=1),
    Workload('W7', 'four locks as one', 'multi', LIBRARIES + ['floor-sync'] + FLOORS + ['floor-named', 'curator'],
             [CYCLES, REQUESTS, CPU, P50], sample='cycle'),
    Workload('W8-handles', '10,000 idle handles of one client', 'handles', ['zklock', 'curator'],
             [Figure('handle_bytes', 'bytes per handle', 0), Figure('held_bytes', 'all locked', 0),
              Figure('used_handle_bytes', 'unlocked', 0),
              Figure('threads', 'threads beside main', 0), Figure('idle_requests_per_s', 'requests/s idle', 2)],
             count=10000, rounds_max=3),
    Workload('W8-clients', '1,000 idle clients in one process', 'clients', ['zklock', 'floor-1rt', 'curator'],
             [Figure('client_kb', 'kB per client', 0), Figure('client_threads', 'threads per client', 1),
              Figure('client_requests_per_s', 'requests/s per client', 3)], count=1000, rounds_max=1),
    Workload('entry', 'lock of a mutex that the thread holds', 'entry', ['zklock', 'curator'],
             [Figure('lock_ns', 'ns per lock', 1), Figure('unlock_ns', 'ns per unlock', 1)], count=1000000),
] + [
    Workload(f'W9-{n}', f'{n} client{"s" * (n > 1)}, each with a session and a lock of its own', 'cycle',
             LIBRARIES + ['zklock-retained', 'curator', 'gozk'],
             [GRANTS, REQUESTS, BYTES, CPU, SERVER_CPU, IDLE, P50, Figure('p99_us', 'p99 us', 0)], threads=n, locks=n,
             clients=n, sample='cycle')
    for n in (1, 4, 16, 64, 256)
] + [
    drain(f'W10-{n}', n, ['zklock', 'zklock-posted', 'floor-1rt', 'floor-2w', 'curator-own'], rounds_max=3)
    for n in (10, 100, 1000, 5000)
] + [
    # Not Curator: 50 Java machines would be what is measured.
    Workload('W11', '1,000 waiters in 50 processes, 20 each, behind a holder that unlocks', 'drain', LIBRARIES + ['floor-1rt', 'kazoo', 'gozk'], APART,
             processes=50, threads=20, rounds_max=3),
] + [
    Workload(f'outage-{s}', f'how long an outage a holder survives with a session timeout of {s} s', 'outage',
             ['zklock', 'curator', 'kazoo'], OUTAGE, session_s=s, rounds_max=3)
    for s in (4, 10, 30)
] + [
    # What readers.c measures, on a server of its own.
    Workload('readers-1', 'one thread reads again and again, its node stays', 'readers', CACHED, ENTERS),
    Workload('readers-8', '8 threads read again and again, their node stays', 'readers', CACHED, ENTERS, threads=8),
    Workload('readers-writer', "a writer's call to its grant, where caching clients keep a node each", 'readers', CACHED[:1], WRITER),
]
BY_NAME = {workload.name: workload for workload in ALL}


def chosen(names):
    """Those that start with one of the names: W2 is both of W2-2 and W2-8, W1 is not W10."""
    found = []
    for name in names:
        some = [w for w in ALL if w.name == name or w.name.startswith(name + '-')]
        if not some:
            raise ValueError(f'no workload {name}; there are: ' + ' '.join(BY_NAME))
        found += [w for w in some if w not in found]
    return found


def scaled(workload):
    """Fewer idle clients where the limit of open files forbids so many."""
    if workload.mode != 'clients':
        return workload
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    count = min(workload.count, (files - 200) // 8)
    if count == workload.count:
        return workload
    return dataclasses.replace(workload, count=count, title=f'{count} idle clients in one process (limit of open files)')


def measure(workload, group, server, board, seconds):
    """One run: the figures."""
    if workload.mode == 'drain':
        return measure_drain(workload, group, server)
    if workload.mode in ('handles', 'clients'):
        return measure_idle(workload, group, server, seconds)
    if workload.mode == 'entry':
        return group.order('go 0')[0]
    if workload.mode == 'outage':
        return outage.measure(workload, group, server)
    return measure_cycles(workload, group, server, board, seconds)


def measure_cycles(workload, group, server, board, seconds):
    board.clear()
    before = server.counters(group.pids())
    server_us, busy = server.cpu_us(), Processors()
    answers = group.order(f'go {seconds}', seconds)
    server_us, idle_percent = server.cpu_us() - server_us, busy.percent()['idle']
    spent = server.counters(group.pids()) - before
    samples = board.samples()
    board.clear()

    cycles = sum(a['cycles'] for a in answers)
    elapsed_s = max(a['elapsed_ns'] for a in answers) / 1e9
    if cycles == 0:
        raise RuntimeError(f'{group.peer.name} did nothing in {workload.name}')
    figures = {'cycles_per_s': cycles / elapsed_s,
               'requests_per_cycle': spent.requests / cycles,
               'bytes_per_cycle': spent.received_bytes / cycles,
               'cpu_us_per_cycle': sum(a['cpu_ns'] for a in answers) / cycles / 1e3,
               'server_cpu_us_per_cycle': server_us / cycles, 'idle_percent': idle_percent,
               'jain': cycles**2 / (len(answers) * sum(a['cycles']**2 for a in answers))}
    if workload.mode == 'rw':
        writes = sum(a['writes'] for a in answers)
        figures['writes_per_s'] = writes / elapsed_s
        figures['reads_per_s'] = (cycles - writes) / elapsed_s
    if samples:
        figures['p50_us'] = percentile(samples, 0.5) / 1e3
        figures['p99_us'] = percentile(samples, 0.99) / 1e3
    return figures


def measure_drain(workload, group, server):
    waiters = workload.threads * workload.processes
    start = server.counters(group.pids())
    if workload.apart:
        for before in range(waiters):
            group.order('fill 1', FILL_S)
            server.wait_nodes(before + 2, FILL_S)  # the holder's, and those so far
    elif workload.processes > 1:
        for _ in range(workload.threads):  # as they come in production, not one process after the other
            group.order_in_turn('fill 1', FILL_S)  # the holder is in the first process
    else:
        group.order('fill', FILL_S)
    server.wait_queued(group.pids(), waiters + 1, FILL_S)
    full = server.counters(group.pids())
    began_ns = time.monotonic_ns()
    answers = group.order('go 0', FILL_S)
    end = server.counters(group.pids())
    cycles = sum(answer['cycles'] for answer in answers)
    if cycles != waiters:
        raise RuntimeError(f'{cycles} of {waiters} waiters came in')
    if workload.processes == 1:
        elapsed_ns = answers[0]['elapsed_ns']
    else:  # by the clock that all have: the holder's process, the first, is told first
        elapsed_ns = max(answer['ended_ns'] for answer in answers) - began_ns
    return {'us_per_acquisition': elapsed_ns / waiters / 1e3,
            'requests_per_acquisition': ((end - full).requests - 1) / waiters,  # without the delete of who held it before
            'requests_per_waiter': (end - start).requests / waiters,
            'bytes_per_acquisition': (end - start).received_bytes / waiters,
            'bytes_per_acquisition_draining': (end - full).received_bytes / waiters,
            'cpu_us_per_cycle': sum(answer['cpu_ns'] for answer in answers) / waiters / 1e3,
            'peak_mb': group.status('VmHWM') / 1024}


def measure_idle(workload, group, server, seconds):
    memory, threads = group.status('VmRSS'), group.status('Threads')
    answer = group.order('fill', FILL_S)[0]
    memory, more_threads = group.status('VmRSS') - memory, group.status('Threads') - threads
    before = server.counters(group.pids())
    time.sleep(seconds)  # the time it is idle for
    idle = (server.counters(group.pids()) - before).requests / seconds
    if workload.mode == 'clients':
        return {'client_kb': memory / workload.count, 'client_threads': more_threads / workload.count,
                'client_requests_per_s': idle / workload.count}
    return {'handle_bytes': answer['handle_bytes'], 'used_handle_bytes': answer['used_handle_bytes'],
            'threads': threads + more_threads - 1, 'idle_requests_per_s': idle}
