#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""exclusion.py BUILD [NAME]: C, Java, Python and Go exclude each other on one path. Each side enters 500 times, or 2,000,
as fast as it gets the lock. A journal that has nothing to do with ZooKeeper records each entry and each exit."""
import sys

sys.dont_write_bytecode = True

from interop import ROUNDS, lost_race, race, run

RACES = {
    'test_mutex_java': race('c mutex /mutex-cj', 'j mutex /mutex-cj'),
    # Kazoo's Lock with Curator's names: it sees ours, and ours see Kazoo's.
    'test_mutex_python': race('c mutex /mutex-ck', 'k mutex /mutex-ck pattern=-lock-'),
    # For Curator, Kazoo must have Curator's names itself: as a subclass.
    'test_mutex_three': race('c mutex /mutex-cjk', 'j mutex /mutex-cjk', 'k mutex /mutex-cjk names=curator'),
    # Kazoo's Lock as it is, ours with its names.
    'test_mutex_kazoo_names': race('c mutex /mutex-kk names=kazoo', 'k mutex /mutex-kk'),
    # go-zookeeper's names are Curator's, without dashes in the UUID.
    'test_mutex_go': race('c mutex /mutex-cg', 'g mutex /mutex-cg'),
    'test_mutex_go_java': race('c mutex /mutex-cjg', 'j mutex /mutex-cjg', 'g mutex /mutex-cjg'),
    'test_mutex_go_python': race('c mutex /mutex-ckg', 'k mutex /mutex-ckg names=curator', 'g mutex /mutex-ckg'),
    'test_rwlock_java': race('c rwlock /rwlock-cj writers=50', 'j rwlock /rwlock-cj writers=50', together=2),
    # Ours read in nodes that stay: Curator's writers queue behind them as ever.
    'test_rwlock_cached_java': race('c rwlock /rwlock-rj retain=60000 writers=50', 'j rwlock /rwlock-rj writers=50',
                                    together=2),
    'test_rwlock_cached_python': race('c rwlock /rwlock-rk names=kazoo retain=60000 writers=50',
                                      'k rwlock /rwlock-rk names=mended writers=50', together=2),
    # Kazoo's lock as a subclass with Curator's names.
    'test_rwlock_python': race('c rwlock /rwlock-ck writers=50', 'k rwlock /rwlock-ck names=curator writers=50', together=2),
    # Kazoo's own, without the fault that makes its reader stand still (facts.py); ours with its names.
    'test_rwlock_kazoo_names': race('c rwlock /rwlock-kk names=kazoo writers=50', 'k rwlock /rwlock-kk names=mended writers=50',
                                    together=2),
    # Three permits; ours take two at a time, Curator's one.
    'test_semaphore_java': race('c semaphore /semaphore-cj count=2 permits=3', 'j semaphore /semaphore-cj permits=3',
                                together=3),
    'test_semaphore_mutex_java': race('c single /single-cj', 'j single /single-cj'),
    'test_multi_java': race('c multi /multi-a,/multi-b,/multi-c', 'j multi /multi-a,/multi-b,/multi-c'),
    'test_multi_of_semaphores_java': race('c multi /members-a,/members-b last=single', 'j multi /members-a,/members-b last=single',
                                          rounds=ROUNDS // 2),
    # Ours over three paths, while others lock single ones of them, more often than ours can.
    'test_multi_and_single': race('c multi /mixed-a,/mixed-b,/mixed-c', 'j mutex /mixed-b', 'k mutex /mixed-c names=curator',
                                  rounds=ROUNDS // 2, share_min=10),
    # A race is lost when one side does not lock, and when one does not see the other's names, as Kazoo's Lock without a
    # pattern.
    'test_no_lock': lost_race('c mutex /open', 'j mutex /open', 'k none /open'),
    'test_plain_kazoo': lost_race('c mutex /plain', 'k mutex /plain'),
}

sys.exit(run(RACES))
