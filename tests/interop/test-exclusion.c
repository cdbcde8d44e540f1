/* SPDX-License-Identifier: Apache-2.0 */
/* C, Java, Python and Go exclude each other on one path. Each side enters 500 times, or 2,000,
 * as fast as it gets the lock. A journal that has nothing to do with ZooKeeper records each
 * entry and each exit. */
#include "interop.h"

#include <string.h>

static void run_race(void **state)
{
    const struct race *r = *state;

    for (int i = 0; i < RACE_SIDES_MAX && r->sides[i] != NULL; i++) {
        if (r->sides[i][0] == 'g')
            skip_without_go();
    }
    if (!r->is_lost) {
        race(r);
        return;
    }
    const char *fault = race_run(r);
    assert_non_null(fault);
    print_message("%s: %s\n", r->title, fault);
    assert_non_null(strstr(fault, "comes in beside"));
    peers_kill(); /* they are in the middle of it */
}

/* clang-format off */
#define RACE(name, title_, ...) \
    static struct race name##_race = {.title = title_, .sides = __VA_ARGS__}; \
    TEST_OF(name, run_race, interop_setup, interop_teardown, &name##_race)

RACE(test_mutex_java, "mutex, Curator", {"c mutex /mutex-cj", "j mutex /mutex-cj"})
/* Kazoo's Lock with Curator's names: it sees ours, and ours see Kazoo's. */
RACE(test_mutex_python, "mutex, Kazoo with a pattern",
     {"c mutex /mutex-ck", "k mutex /mutex-ck pattern=-lock-"})
/* For Curator, Kazoo must have Curator's names itself. */
RACE(test_mutex_three, "mutex, Curator, Kazoo as a subclass",
     {"c mutex /mutex-cjk", "j mutex /mutex-cjk", "k mutex /mutex-cjk names=curator"})
/* Kazoo's Lock as it is, ours with its names. */
RACE(test_mutex_kazoo_names, "mutex with Kazoo's names, plain Kazoo",
     {"c mutex /mutex-kk names=kazoo", "k mutex /mutex-kk"})
/* go-zookeeper's names are Curator's, without dashes in the UUID. */
RACE(test_mutex_go, "mutex, go-zookeeper", {"c mutex /mutex-cg", "g mutex /mutex-cg"})
RACE(test_mutex_go_java, "mutex, Curator, go-zookeeper",
     {"c mutex /mutex-cjg", "j mutex /mutex-cjg", "g mutex /mutex-cjg"})
RACE(test_mutex_go_python, "mutex, Kazoo as a subclass, go-zookeeper",
     {"c mutex /mutex-ckg", "k mutex /mutex-ckg names=curator", "g mutex /mutex-ckg"})
RACE(test_rwlock_java, "read-write lock, Curator",
     {"c rwlock /rwlock-cj writers=50", "j rwlock /rwlock-cj writers=50"}, .together = 2)
/* Ours read in nodes that stay: Curator's writers queue behind them as ever. */
RACE(test_rwlock_cached_java, "read-write lock whose readers stay, Curator",
     {"c rwlock /rwlock-rj retain=60000 writers=50", "j rwlock /rwlock-rj writers=50"}, .together = 2)
RACE(test_rwlock_cached_python, "read-write lock whose readers stay, Kazoo",
     {"c rwlock /rwlock-rk names=kazoo retain=60000 writers=50",
      "k rwlock /rwlock-rk names=mended writers=50"}, .together = 2)
/* Kazoo's lock as a subclass with Curator's names. */
RACE(test_rwlock_python, "read-write lock, Kazoo as a subclass",
     {"c rwlock /rwlock-ck writers=50", "k rwlock /rwlock-ck names=curator writers=50"}, .together = 2)
/* Kazoo's own, without the fault that makes its reader stand still (test-facts.c); ours with its names. */
RACE(test_rwlock_kazoo_names, "read-write lock with Kazoo's names, Kazoo",
     {"c rwlock /rwlock-kk names=kazoo writers=50", "k rwlock /rwlock-kk names=mended writers=50"},
     .together = 2)
/* Three permits; ours take two at a time, Curator's one. */
RACE(test_semaphore_java, "semaphore of 3, Curator",
     {"c semaphore /semaphore-cj count=2 permits=3", "j semaphore /semaphore-cj permits=3"}, .together = 3)
RACE(test_semaphore_mutex_java, "semaphore mutex, Curator", {"c single /single-cj", "j single /single-cj"})
RACE(test_multi_java, "multi-lock, Curator",
     {"c multi /multi-a,/multi-b,/multi-c", "j multi /multi-a,/multi-b,/multi-c"})
RACE(test_multi_of_semaphores_java, "multi-lock with a semaphore mutex, Curator",
     {"c multi /members-a,/members-b last=single", "j multi /members-a,/members-b last=single"},
     .is_short = true)
/* Ours over three paths, while others lock single ones of them, more often than ours can. */
RACE(test_multi_and_single, "multi-lock and single locks",
     {"c multi /mixed-a,/mixed-b,/mixed-c", "j mutex /mixed-b", "k mutex /mixed-c names=curator"},
     .is_short = true, .share_min = 10)
/* A race is lost when one side does not lock, and when one does not see the other's names, as Kazoo's Lock
 * without a pattern. These last, as the peers are new afterwards. */
RACE(test_no_lock, "no lock", {"c mutex /open", "j mutex /open", "k none /open"}, .is_lost = true)
RACE(test_plain_kazoo, "plain Kazoo", {"c mutex /plain", "k mutex /plain"}, .is_lost = true)
