/* SPDX-License-Identifier: Apache-2.0 */
/* C, Java, Python and Go exclude each other on one path. Each side enters 500 times, or 2,000,
 * as fast as it gets the lock. A journal that has nothing to do with ZooKeeper records each
 * entry and each exit. */
#include "interop.h"

#include <string.h>

static void test_mutex_java(void **state)
{
    (void)state;
    race(&(struct race){.title = "mutex, Curator",
                        .sides = {"c mutex /mutex-cj", "j mutex /mutex-cj"}});
}

/* Kazoo's Lock with Curator's names: it sees ours, and ours see Kazoo's. */
static void test_mutex_python(void **state)
{
    (void)state;
    race(&(struct race){.title = "mutex, Kazoo with a pattern",
                        .sides = {"c mutex /mutex-ck", "k mutex /mutex-ck pattern=-lock-"}});
}

/* For Curator, Kazoo must have Curator's names itself. */
static void test_mutex_three(void **state)
{
    (void)state;
    race(&(struct race){
        .title = "mutex, Curator, Kazoo as a subclass",
        .sides = {"c mutex /mutex-cjk", "j mutex /mutex-cjk", "k mutex /mutex-cjk names=curator"}});
}

/* Kazoo's Lock as it is, ours with its names. */
static void test_mutex_kazoo_names(void **state)
{
    (void)state;
    race(&(struct race){.title = "mutex with Kazoo's names, plain Kazoo",
                        .sides = {"c mutex /mutex-kk names=kazoo", "k mutex /mutex-kk"}});
}

/* go-zookeeper's names are Curator's, without dashes in the UUID. */
static void test_mutex_go(void **state)
{
    (void)state;
    skip_without_go();
    race(&(struct race){.title = "mutex, go-zookeeper",
                        .sides = {"c mutex /mutex-cg", "g mutex /mutex-cg"}});
}

static void test_mutex_go_java(void **state)
{
    (void)state;
    skip_without_go();
    race(&(struct race){
        .title = "mutex, Curator, go-zookeeper",
        .sides = {"c mutex /mutex-cjg", "j mutex /mutex-cjg", "g mutex /mutex-cjg"}});
}

static void test_mutex_go_python(void **state)
{
    (void)state;
    skip_without_go();
    race(&(struct race){
        .title = "mutex, Kazoo as a subclass, go-zookeeper",
        .sides = {"c mutex /mutex-ckg", "k mutex /mutex-ckg names=curator", "g mutex /mutex-ckg"}});
}

static void test_rwlock_java(void **state)
{
    (void)state;
    race(&(struct race){
        .title = "read-write lock, Curator",
        .sides = {"c rwlock /rwlock-cj writers=50", "j rwlock /rwlock-cj writers=50"},
        .together = 2});
}

/* Ours read in nodes that stay: Curator's writers queue behind them as ever. */
static void test_rwlock_cached_java(void **state)
{
    (void)state;
    race(&(struct race){
        .title = "read-write lock whose readers stay, Curator",
        .sides = {"c rwlock /rwlock-rj retain=60000 writers=50", "j rwlock /rwlock-rj writers=50"},
        .together = 2});
}

static void test_rwlock_cached_python(void **state)
{
    (void)state;
    race(&(struct race){.title = "read-write lock whose readers stay, Kazoo",
                        .sides = {"c rwlock /rwlock-rk names=kazoo retain=60000 writers=50",
                                  "k rwlock /rwlock-rk names=mended writers=50"},
                        .together = 2});
}

/* Kazoo's lock as a subclass with Curator's names. */
static void test_rwlock_python(void **state)
{
    (void)state;
    race(&(struct race){
        .title = "read-write lock, Kazoo as a subclass",
        .sides = {"c rwlock /rwlock-ck writers=50", "k rwlock /rwlock-ck names=curator writers=50"},
        .together = 2});
}

/* Kazoo's own, without the fault that makes its reader stand still (test-facts.c); ours with its
 * names. */
static void test_rwlock_kazoo_names(void **state)
{
    (void)state;
    race(&(struct race){.title = "read-write lock with Kazoo's names, Kazoo",
                        .sides = {"c rwlock /rwlock-kk names=kazoo writers=50",
                                  "k rwlock /rwlock-kk names=mended writers=50"},
                        .together = 2});
}

/* Three permits; ours take two at a time, Curator's one. */
static void test_semaphore_java(void **state)
{
    (void)state;
    race(&(struct race){.title = "semaphore of 3, Curator",
                        .sides = {"c semaphore /semaphore-cj count=2 permits=3",
                                  "j semaphore /semaphore-cj permits=3"},
                        .together = 3});
}

static void test_semaphore_mutex_java(void **state)
{
    (void)state;
    race(&(struct race){.title = "semaphore mutex, Curator",
                        .sides = {"c single /single-cj", "j single /single-cj"}});
}

static void test_multi_java(void **state)
{
    (void)state;
    race(&(struct race){
        .title = "multi-lock, Curator",
        .sides = {"c multi /multi-a,/multi-b,/multi-c", "j multi /multi-a,/multi-b,/multi-c"}});
}

static void test_multi_of_semaphores_java(void **state)
{
    (void)state;
    race(&(struct race){.title = "multi-lock with a semaphore mutex, Curator",
                        .sides = {"c multi /members-a,/members-b last=single",
                                  "j multi /members-a,/members-b last=single"},
                        .rounds = RACE_ROUNDS / 2});
}

/* Ours over three paths, while others lock single ones of them, more often than ours can. */
static void test_multi_and_single(void **state)
{
    (void)state;
    race(&(struct race){.title = "multi-lock and single locks",
                        .sides = {"c multi /mixed-a,/mixed-b,/mixed-c", "j mutex /mixed-b",
                                  "k mutex /mixed-c names=curator"},
                        .rounds = RACE_ROUNDS / 2,
                        .share_min = 10});
}

static void check_lost(const struct race *r)
{
    const char *fault = race_run(r);

    assert_non_null(fault);
    print_message("%s: %s\n", r->title, fault);
    assert_non_null(strstr(fault, "comes in beside"));
    peers_kill(); /* they are in the middle of it */
}

/* A race is lost when one side does not lock, */
static void test_no_lock(void **state)
{
    (void)state;
    check_lost(&(struct race){.title = "no lock",
                              .sides = {"c mutex /open", "j mutex /open", "k none /open"}});
}

/* and when one does not see the other's names, as Kazoo's Lock without a pattern. */
static void test_plain_kazoo(void **state)
{
    (void)state;
    check_lost(
        &(struct race){.title = "plain Kazoo", .sides = {"c mutex /plain", "k mutex /plain"}});
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        interop_test(test_mutex_java),
        interop_test(test_mutex_python),
        interop_test(test_mutex_three),
        interop_test(test_mutex_kazoo_names),
        interop_test(test_mutex_go),
        interop_test(test_mutex_go_java),
        interop_test(test_mutex_go_python),
        interop_test(test_rwlock_java),
        interop_test(test_rwlock_cached_java),
        interop_test(test_rwlock_cached_python),
        interop_test(test_rwlock_python),
        interop_test(test_rwlock_kazoo_names),
        interop_test(test_semaphore_java),
        interop_test(test_semaphore_mutex_java),
        interop_test(test_multi_java),
        interop_test(test_multi_of_semaphores_java),
        interop_test(test_multi_and_single),
        interop_test(test_no_lock), /* these last, as the peers are new afterwards */
        interop_test(test_plain_kazoo),
    };

    return INTEROP_MAIN(argc, argv, "exclusion", tests);
}
