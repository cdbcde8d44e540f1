#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""facts.py BUILD [NAME]: which clients exclude each other on one path, measured, and what the peers do that a user of theirs
would not expect. A test here must fail when a peer's release changes that: docs/peers.md describes for users what these
tests find, meson.build where peers surprise theirs."""
import sys

sys.dont_write_bytecode = True

from interop import check, need_go, release, run, wait

NO_NODE = 'error -101'


# --- who excludes whom ------------------------------------------------------------------------------------------------------

# A row for each holder: its language and handle, what that is made with, and a column for each that comes later, in this
# order. 'x': who comes later has to wait; '.': it gets in beside the holder. Two exclude each other if both fields have an
# 'x'. In short: ours wait for every known name (a named mutex for its own only), Curator and Kazoo for what they make
# themselves, Kazoo's plain Lock not even for its readers.
CONTENDERS = [
    ('xxxxxx.x.....xx..xxx..', 'c', 'A', 'mutex'),
    ('x.xx.x...x......xx.x..', 'c', 'B.read', 'rwlock'),
    ('xxxxxx..xx.....xxxxx..', 'c', 'B.write', 'rwlock'),
    ('xxxxxx....xxxx...xxx..', 'c', 'C', 'mutex names=kazoo'),
    ('x.xx.x......x....x.x..', 'c', 'D.read', 'rwlock names=kazoo'),
    ('xxxxxx....xxxx...xxx..', 'c', 'D.write', 'rwlock names=kazoo'),
    ('......x...............', 'c', 'E', 'mutex name=report'),
    ('xxxxxx.x.....xx..xxx..', 'j', 'A', 'mutex'),
    ('x.xx.x...x......xx.x..', 'j', 'B.read', 'rwlock'),
    ('xxxxxx..xx.....xxxxx..', 'j', 'B.write', 'rwlock'),
    ('xxxxxx....xxxx...xxx..', 'k', 'A', 'mutex'),
    ('x.xx.x......x....x.x..', 'k', 'B.read', 'rwlock'),
    ('xxxxxx....xxxx...xxx..', 'k', 'B.write', 'rwlock'),
    ('xxxxxx....xxxx...xxx..', 'k', 'C', 'mutex pattern=-lock-'),
    ('xxxxxx.x.....xx..xxx..', 'k', 'D', 'mutex names=curator'),
    ('x.xx.x...x......xx.x..', 'k', 'E.read', 'rwlock names=curator'),
    ('xxxxxx..xx.....xxxxx..', 'k', 'E.write', 'rwlock names=curator'),
    ('xxxxxx....xxxx...xxx..', 'k', 'F', 'mutex pattern=-lock-,__WRIT__,__READ__,__rlock__'),
    ('x.xx.x......x....x.x..', 'k', 'G.read', 'rwlock pattern=-lock-,__WRIT__'),
    ('xxxxxx....xxxx...xxx..', 'k', 'H.write', 'rwlock pattern=-lock-,__WRIT__,__READ__'),
    ('....................xx', 'c', 'F', 'single'),
    ('....................xx', 'j', 'C', 'single'),
]


def beside(crowd, holder, later):
    """A field."""
    (_, language, handle, _), (_, its_language, its_handle, _) = holder, later
    crowd.play(f'{language}1 lock {handle} 0')
    said = crowd.ask(f'{its_language}2 lock {its_handle} 0')
    if said == 'ok':
        crowd.play(f'{its_language}2 unlock {its_handle}')
    crowd.play(f'{language}1 unlock {handle}')
    check(said in ('ok', 'no'), f'{later[1:]} beside {holder[1:]}: {said}')
    return '.' if said == 'ok' else 'x'


def test_who_excludes_whom(crowd):
    # Kazoo first, as it makes a path that stays.
    made = {(language, handle.partition('.')[0]): kind for _, language, handle, kind in reversed(CONTENDERS)}
    for (language, handle), kind in made.items():
        kind, _, options = kind.partition(' ')
        crowd.play(f'{language}1 new {handle} {kind} /facts {options}')
    wrong = 0
    for holder in CONTENDERS:
        seen = ''.join(beside(crowd, holder, later) for later in CONTENDERS)
        print(seen, '' if seen == holder[0] else 'not as expected:', *holder)
        wrong += seen != holder[0]
    for language, handle in made:
        crowd.play(f'{language}1 drop {handle}')
    crowd.play('/facts is free')
    check(wrong == 0, f'{wrong} rows are not as expected')


# --- Curator ----------------------------------------------------------------------------------------------------------------

# A child that is no contender, but sorts before the contenders' numbers, keeps everybody out.
def test_curator_counts_strangers(crowd):
    crowd.play('''k1 new L mutex /stranger names=curator; j1 new L mutex /stranger; c1 new L mutex /stranger
        h create /stranger/0; j1 lock L 300 -> no; c1 lock L 0; c1 unlock L; k1 lock L 0; k1 unlock L
        h delete /stranger/0; j1 lock L 0; j1 unlock L; c1 drop L''')


# Up to Curator 5.4 the reader that its writer becomes has a number of its own, behind the writers that wait already, and one
# of them is let in beside it. From 5.5 on it has its writer's place.
def test_curators_place_in_a_downgrade(crowd):
    crowd.play('''j1 new L rwlock /downgrade-j; c1 new L rwlock /downgrade-j; j1 lock L.write 0
        c1 lock L.write 20000 ...; /downgrade-j has 2; j1 lock L.read 0; j1 unlock L.write''')
    crowd.play('c1 waits; j1 unlock L.read; c1 -> ok' if release(crowd, 'j') >= (5, 5) else 'c1 -> ok; j1 unlock L.read')
    crowd.play('c1 unlock L.write; c1 drop L')


# Ours keeps its place, in Curator's eyes and Kazoo's too. Modes: F36.
def test_our_downgrade_keeps_its_place(crowd):
    crowd.play('k1 new L rwlock /downgrade-c names=curator; j1 new L rwlock /downgrade-c; c1 new L rwlock /downgrade-c')
    for waiter in 'j1', 'k1':
        crowd.play(f'''c1 lock L.write 0; {waiter} lock L.write 20000 ...; /downgrade-c has 2
            c1 lock L.read 0; c1 unlock L.write; {waiter} waits
            c1 unlock L.read; {waiter} -> ok; {waiter} unlock L.write''')
    crowd.play('c1 drop L')


# Curator's semaphore knows only the number that each client was given. Ours have the number that stands at the path: there
# j1 gets a third permit, and c3 none as long as two are out.
def test_curator_semaphores_disagree(crowd):
    crowd.play('''j1 new L semaphore /permits permits=3; c1 new L semaphore /permits permits=2
        c1 lock L 0; c2 lock L 0; c3 lock L 0 -> no; j1 lock L 0; j2 lock L 0 -> no; c1 unlock L
        c3 lock L 0 -> no; j1 unlock L; c3 lock L 0; c3 unlock L; c2 unlock L; c1 drop L''')


# A holder of Curator's or Kazoo's does not hear that its node was deleted: it goes on, and gives back what it has not any
# more, beside ours.
def test_peers_miss_a_deleted_node(crowd):
    crowd.play('k1 new L mutex /deleted names=curator; j1 new L mutex /deleted; c1 new L mutex /deleted')
    for holder in 'j1', 'k1':
        crowd.play(f'{holder} lock L 0')
        node, = crowd.children('/deleted')
        crowd.play(f'h delete /deleted/{node}; c1 lock L 0; {holder} unlock L; c1 unlock L')
    crowd.play('c1 drop L')


# --- Kazoo ------------------------------------------------------------------------------------------------------------------

# Up to Kazoo 2.8 a ReadLock waits for the last writer in the list, though that one came after it and waits for it: neither
# ever gets in, until the reader's time is up. From 2.9 on it does, as ours in its place. Modes: F35.
def test_kazoo_reader_before_later_writers(crowd):
    gets_in = release(crowd, 'k') >= (2, 9)
    crowd.play(f'''k1 new L rwlock /reader-k; c1 new L rwlock /reader-k names=kazoo; k1 lock L.write 0
        k2 lock L.read {20000 if gets_in else 3000} ...; /reader-k has 2; c1 lock L.write 20000 ...; /reader-k has 3
        k1 unlock L.write; c1 waits''')
    crowd.play('k2 -> ok; k2 unlock L.read' if gets_in else 'k2 -> no')
    crowd.play('''c1 -> ok; c1 unlock L.write; k1 lock L.write 0
        c1 lock L.read 20000 ...; /reader-k has 2; k2 lock L.write 20000 ...; /reader-k has 3
        k1 unlock L.write; c1 -> ok; c1 unlock L.read; k2 -> ok; k2 unlock L.write; c1 drop L''')


# Kazoo makes the path once for each Lock object. If the path was a container, as ours and Curator's are, and the server
# removed it while nobody was there, the object can't be used any more.
def test_kazoo_misses_a_container(crowd):
    crowd.play('k1 new L mutex /container bare=1 pattern=-lock-; c1 new L mutex /container')
    crowd.play('c1 lock L 0; h create /container/0')  # the path is a container now, and stays
    crowd.play('k1 lock L 0 -> no; c1 unlock L; k1 lock L 0; k1 unlock L; h delete /container/0')
    wait(lambda: crowd.ask('h birth /container') == NO_NODE, '/container is removed')
    crowd.play('k1 lock L 0 -> error NoNodeError*; k1 drop L')
    crowd.play('k1 new L mutex /container pattern=-lock-')  # that stays
    crowd.play('k1 lock L 0; c1 lock L 0 -> no; k1 unlock L; c1 drop L')


# --- go-zookeeper -----------------------------------------------------------------------------------------------------------

def check_go_fails(crowd, path, holder=''):
    """What it can't read as a number in a queue makes its Lock fail, and its own node stays there until its session ends,
    before everybody who comes later. Such are strangers, and up to the release of 2018 (Debian 12's) readers and writers and
    Kazoo's plain names; 1.0 reads the numbers behind "__", and waits for those."""
    crowd.play(f'g1 new L mutex {path}; g1 lock L 0 -> error*')
    nodes = crowd.children(path)
    check(len(nodes) == 2, f'{path}: {nodes}')
    for node in nodes:
        if node != holder and '-lock-' in node:
            crowd.play(f'h delete {path}/{node}')
    check(len(crowd.children(path)) == 1, f'{path}: {nodes}')
    crowd.play('g1 drop L')


def check_go_behind(crowd, path, held):
    """c1 holds something there, and gives it back."""
    if release(crowd, 'g') < (1, 0):
        check_go_fails(crowd, path)
        crowd.play(f'c1 unlock {held}')
    else:
        crowd.play(f'''g1 new L mutex {path}; g1 lock L 0 ...; {path} has 2; g1 waits
            c1 unlock {held}; g1 -> ok; g1 unlock L; g1 drop L''')
    crowd.play('c1 drop L')


def test_go_trips_over_strangers(crowd):
    need_go()
    crowd.play('c1 new L rwlock /trips-rw; c1 lock L.read 0')
    check_go_behind(crowd, '/trips-rw', 'L.read')
    crowd.play('c1 new L mutex /trips; c1 lock L 0; h create /trips/config-x; c1 unlock L')
    check_go_fails(crowd, '/trips', 'config-x')
    crowd.play('c1 lock L 0; c1 unlock L; c1 drop L')  # to ours it is no matter


def test_go_and_kazoos_names(crowd):
    need_go()
    crowd.play('c1 new L mutex /names-g names=kazoo; c1 lock L 0')
    check_go_behind(crowd, '/names-g', 'L')


sys.exit(run(globals()))
