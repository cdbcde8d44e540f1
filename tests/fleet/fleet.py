#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""fleet.py BUILD [NAME]: the library of an old commit and this one at the same paths: the wire format and its rules are what
they were, with every option. In a run two processes of each have the same workers; this side links neither library."""
import os
import pathlib
import sys
import time

sys.dont_write_bytecode = True
sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / 'crowd'))

import conductor
from conductor import Row, check, wait

BUILT = pathlib.Path(sys.argv[1]).resolve() / 'tests/crowd'
PROGRAMS = {'o': os.environ.get('FLEET_OLD', ''), 'n': BUILT / 'peer'}
NAMES = ['o1.', 'n1.', 'o2.', 'n2.']
CREDENTIAL = 'crowd:secret'  # the host's, too
EACH_SIDE = conductor.length(2000, 240)  # acquisitions at the least, by each library
EXPIRED_S, GONE_S = 60, 10
HEAD_START_S = 0.3  # for a worker that must queue behind the guard
GUARD = '_c_00000000-0000-4000-8000-000000000000-lock-0000000000'

# Paths whose counter is near its end; from HARD on no number is granted (docs/wire-format.md). Persistent ones stay when they
# are empty; what the library makes is a container.
HARD, MOST = 0x7ff00000, 0x7fffffff
EDGES = {
    '/edge-hard': HARD - 20, '/edge-end': MOST - 4, '/edge-last': MOST, '/edge-rw': HARD - 20, '/edge-rw-end': MOST - 4,
    '/edge-named': HARD - 20, '/edge-multi-a': HARD - 20, '/edge-multi-b': MOST - 4, '/edge-sem/locks': HARD - 20,
    '/edge-sem/leases': HARD - 40, '/edge-single/locks': MOST - 4, '/edge-single/leases': HARD - 20, '/edge-local': HARD - 20,
}
GUARDED = '/edge-hard'  # a container, which a contender keeps from being collected before its run


def set_counters(crowd):
    """All in one go: each patch is two starts of the server."""
    crowd.play('h create /edge-sem; h create /edge-single')
    for path in EDGES:
        crowd.play(f'h create {path} container; h create {path}/{GUARD}' if path == GUARDED else f'h create {path}')
    crowd.play('h counters ' + ' '.join(f'{path}={number}' for path, number in EDGES.items()))


# --- a run ------------------------------------------------------------------------------------------------------------------

def start(crowd, credential):
    path = crowd.open_journal('on')
    for name in NAMES:
        crowd.start(name, [PROGRAMS[name[0]], crowd.servers, path, *credential])
    crowd.await_all()


def run(crowd, rows, trespasser=None, guarded=None, credential=()):
    """To the end, or to the first broken rule: None, or that rule."""
    start(crowd, credential)
    threads = sum(crowd.add(name, Row(row), 1) for name in NAMES for row in rows) // 2  # of each library
    if trespasser:
        crowd.add(NAMES[1], Row(trespasser), 1)
    crowd.go(-(-EACH_SIDE // threads))
    if guarded:
        time.sleep(HEAD_START_S)
        crowd.play(f'h delete {guarded}/{GUARD}')
    fault = crowd.judge()
    if fault:
        crowd.kill_all()
        return fault
    crowd.drop()
    return None if crowd.stop(crowd.others()) else 'a process did not end well'


def check_place(place, share_min, seconds):
    old, new = place.visits_of['o'], place.visits_of['n']
    print(f'{place.path}: {old} visits by the old library, {new} by the new one in {seconds:.1f} s, {place.share():.0f} % of the '
          f'hand-offs between them, at most {place.crowd_max} inside, numbers {place.low} to {place.high}', flush=True)
    check(not place.inside, f'{place.path}: {place.inside} are still inside')
    check(old == new, f'{place.path}: not as many visits by each')
    check(place.share() >= share_min, f'{place.path}: {share_min} % are due')


def fleet(share_min, *rows, made=(), renewed=(), guarded=None, credential=()):
    """A test: of each process a worker for each row, of whose visits so many percent follow one of the other library.

    made: persistent nodes that it needs; renewed: paths that it must make anew; credential: nodes are open to that only."""
    def test(crowd):
        if renewed and 'edge-sem' not in crowd.children('/'):
            set_counters(crowd)
        for path in made:
            crowd.play(f'h create {path}')
        wait(lambda: crowd.ephemerals('/') == 0, 'what an earlier run left has ended', EXPIRED_S)
        before, begun = {path: crowd.host('birth ' + path) for path in renewed}, time.monotonic()
        fault = run(crowd, rows, guarded=guarded, credential=credential)
        check(not fault, fault)
        places = crowd.journal.places.values()
        for place in places:
            check_place(place, share_min, time.monotonic() - begun)
        check(sum(place.visits_of['n'] for place in places) >= EACH_SIDE, 'too few visits')
        for path, birth in before.items():
            check(crowd.ask('h birth ' + path) != f'ok {birth}', f'{path} was not made anew')
        wait(lambda: crowd.ephemerals('/') == 0, 'no ephemeral node is left', GONE_S)
    return test


def trespass(crowd):
    """The witness sees a worker that does not lock."""
    fault = run(crowd, ['mutex /seen'], trespasser='none /seen nap')  # naps, so that it is there when they are
    print(f'seen: {fault}')
    check(fault and fault.startswith('visit '), f'not seen, but: {fault}')


# --- the runs ---------------------------------------------------------------------------------------------------------------

TESTS = {
    # Both exclude each other at one path, whatever each thread's options.
    'a_mutex_with_every_option': fleet(
        20, 'mutex /mutex', 'mutex /mutex posted', 'mutex /mutex', 'mutex /mutex posted', 'mutex /mutex names=kazoo',
        'mutex /mutex names=kazoo posted', 'mutex /mutex timed', 'mutex /mutex revocable=poll metrics',
        'mutex /mutex lease=20000'),
    # A lease that runs out lets the other library in, and its holder hears of it: the first hold of some threads, and each
    # 50th after it, is not given back.
    'leases_that_run_out': fleet(
        20, 'mutex /leases late', 'mutex /leases late names=kazoo', 'mutex /leases lease=20000 posted',
        'mutex /leases threads=4'),
    # A try is granted beside nobody, whichever library is inside or on its way, with pauses and beside threads that queue.
    'tries_with_and_without_sync': fleet(
        10, 'mutex /tries try nap', 'mutex /tries try sync nap', 'mutex /tries try sync names=kazoo nap', 'mutex /tries nap',
        'mutex /tries posted nap'),
    # A lock that is handed round in one process, up to a limit, comes to the other library in its time.
    'local_hand_offs': fleet(
        5, 'mutex /local local=4 threads=3', 'mutex /local local=2 posted threads=2',
        'mutex /local names=kazoo local=3 threads=2', 'mutex /local', 'mutex /local retain=500 local=2 threads=2'),
    # A node that stays with nobody in it is removed when the other library queues, or tries.
    'retained_nodes': fleet(
        10, 'mutex /retained retain=400 nap', 'mutex /retained names=kazoo retain=900 nap', 'mutex /retained try nap'),
    # In both kinds of names, with mutexes at the same path; a reader that was the writer comes in before the writer leaves.
    'readers_writers_and_downgrades': fleet(
        15, 'rwlock /rw threads=3 writers=0', 'rwlock /rw names=kazoo writers=0', 'rwlock /rw posted writers=0',
        'rwlock /rw writers=100', 'rwlock /rw posted writers=100', 'rwlock /rw names=kazoo writers=100',
        'rwlock /rw downgrade writers=100', 'rwlock /rw downgrade posted writers=100',
        'rwlock /rw names=kazoo downgrade writers=100', 'mutex /rw', 'rwlock /rw try nap writers=0', 'mutex /rw'),
    # Named locks of one path exclude their own name only, in both libraries.
    'named_locks': fleet(
        5, 'mutex /named name=a threads=2', 'mutex /named name=b posted', 'mutex /named name=b',
        'mutex /named name=a-b try nap', 'mutex /named name=a-b local=2 threads=2', 'mutex /named name=b retain=300'),
    # Never more permits are out than there are, one at a time or several in one call. The number stays where it stands when
    # those who know it are through first.
    'permits': fleet(
        10, 'semaphore /sem permits=4 threads=2', 'semaphore /sem permits=4 count=2', 'semaphore /sem permits=4 posted',
        'semaphore /sem permits=4 count=3 posted', 'semaphore /sem permits=4 try nap', 'semaphore /sem permits=0 metrics',
        made=['/sem', '/sem/leases']),
    'mutexes_of_semaphores': fleet(20, 'single /single', 'single /single posted', 'single /single timed'),
    # Multi-locks of both libraries, named in other orders, and single locks of their paths.
    'multi_locks': fleet(
        5, 'multi /multi-a,/multi-b,/multi-c', 'multi /multi-c,/multi-a posted', 'multi /multi-b,/multi-c names=kazoo',
        'multi /multi-b,/multi-a try nap', 'mutex /multi-a posted', 'mutex /multi-b', 'mutex /multi-c names=kazoo',
        'mutex /multi-c local=3 threads=2', 'mutex /multi-a retain=200'),
    # Nodes and parents that only their makers' credential opens are shared by both.
    'the_creators_acl': fleet(
        2, 'mutex /acl/mutex posted', 'mutex /acl/mutex retain=300', 'mutex /acl/mutex',
        'rwlock /acl/rw downgrade writers=100', 'rwlock /acl/rw writers=0', 'multi /acl/mutex,/acl/other',
        credential=[CREDENTIAL]),
    # Both leave a used-up counter behind and meet again on the path that one of them made anew; no number of the last 2^20 is
    # granted.
    'mutexes_over_the_edge_hard': fleet(
        5, 'mutex /edge-hard', 'mutex /edge-hard posted', 'mutex /edge-hard names=kazoo', 'mutex /edge-hard timed',
        renewed=[GUARDED], guarded=GUARDED),
    'mutexes_over_the_edge_end': fleet(
        5, 'mutex /edge-end', 'mutex /edge-end posted', 'mutex /edge-end names=kazoo', 'mutex /edge-end try nap',
        renewed=['/edge-end']),
    'mutexes_over_the_edge_last': fleet(
        5, 'mutex /edge-last', 'mutex /edge-last retain=300 nap', 'mutex /edge-last names=kazoo', 'mutex /edge-last lease=20000',
        renewed=['/edge-last']),
    'mutexes_over_the_edge_local': fleet(
        5, 'mutex /edge-local local=3 threads=2', 'mutex /edge-local retain=300 nap', 'mutex /edge-local names=kazoo posted',
        'mutex /edge-local try sync nap', renewed=['/edge-local']),
    'readers_and_writers_over_the_edge': fleet(
        5, 'rwlock /edge-rw writers=0', 'rwlock /edge-rw writers=100', 'rwlock /edge-rw downgrade writers=100',
        'rwlock /edge-rw names=kazoo writers=0', 'rwlock /edge-rw names=kazoo posted writers=100',
        'rwlock /edge-rw-end writers=0', 'rwlock /edge-rw-end downgrade posted writers=100', 'mutex /edge-rw-end',
        renewed=['/edge-rw', '/edge-rw-end']),
    'named_and_multi_locks_over_the_edge': fleet(
        5, 'mutex /edge-named name=a', 'mutex /edge-named name=b posted', 'multi /edge-multi-a,/edge-multi-b',
        'multi /edge-multi-b,/edge-multi-a posted', 'mutex /edge-multi-a', 'mutex /edge-multi-b',
        renewed=['/edge-named', '/edge-multi-a', '/edge-multi-b']),
    'permits_over_the_edge': fleet(
        5, 'semaphore /edge-sem permits=3', 'semaphore /edge-sem permits=3 count=2', 'semaphore /edge-sem permits=3 posted',
        renewed=['/edge-sem/locks']),
    'mutexes_of_semaphores_over_the_edge': fleet(
        5, 'single /edge-single', 'single /edge-single posted', renewed=['/edge-single/locks']),
    'the_witness_sees_who_does_not_lock': trespass,
}

if not os.access(PROGRAMS['o'], os.X_OK):
    print('skipped: the library of the old commit is not built: sh tests/run.sh fleet')
    sys.exit(conductor.SKIPPED)
sys.exit(conductor.run_tests(TESTS, BUILT / 'host'))
