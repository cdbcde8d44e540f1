/* SPDX-License-Identifier: Apache-2.0 */
/* C, Java, Python and Go exclude each other on one path. Each side enters 500 times, or 2,000,
 * as fast as it gets the lock. A journal that has nothing to do with ZooKeeper records each
 * entry and each exit. */
#include "interop.h"

#include <string.h>

static void test_mutex_java(void **state)
{
    (void)state;
    race(&(struct race){
        .title = "mutex, Curator", .paths = "/mutex-cj", .sides = {"c mutex", "j mutex"}});
}

/* Kazoo's Lock with Curator's names: it sees ours, and ours see Kazoo's. */
static void test_mutex_python(void **state)
{
    (void)state;
    race(&(struct race){.title = "mutex, Kazoo with a pattern",
                        .paths = "/mutex-ck",
                        .sides = {"c mutex", "k mutex pattern=-lock-"}});
}

/* For Curator, Kazoo must have Curator's names itself. */
static void test_mutex_three(void **state)
{
    (void)state;
    race(&(struct race){.title = "mutex, Curator, Kazoo as a subclass",
                        .paths = "/mutex-cjk",
                        .sides = {"c mutex", "j mutex", "k mutex names=curator"}});
}

/* Kazoo's Lock as it is, ours with its names. */
static void test_mutex_kazoo_names(void **state)
{
    (void)state;
    race(&(struct race){.title = "mutex with Kazoo's names, plain Kazoo",
                        .paths = "/mutex-kk",
                        .sides = {"c mutex names=kazoo", "k mutex"}});
}

/* go-zookeeper's names are Curator's, without dashes in the UUID. */
static void test_mutex_go(void **state)
{
    (void)state;
    skip_without_go();
    race(&(struct race){
        .title = "mutex, go-zookeeper", .paths = "/mutex-cg", .sides = {"c mutex", "g mutex"}});
}

static void test_mutex_go_java(void **state)
{
    (void)state;
    skip_without_go();
    race(&(struct race){.title = "mutex, Curator, go-zookeeper",
                        .paths = "/mutex-cjg",
                        .sides = {"c mutex", "j mutex", "g mutex"}});
}

static void test_mutex_go_python(void **state)
{
    (void)state;
    skip_without_go();
    race(&(struct race){.title = "mutex, Kazoo as a subclass, go-zookeeper",
                        .paths = "/mutex-ckg",
                        .sides = {"c mutex", "k mutex names=curator", "g mutex"}});
}

static void test_rwlock_java(void **state)
{
    (void)state;
    race(&(struct race){.title = "read-write lock, Curator",
                        .paths = "/rwlock-cj",
                        .sides = {"c rwlock", "j rwlock"},
                        .writers = 50,
                        .together = 2});
}

/* Ours read in nodes that stay: Curator's writers queue behind them as ever. */
static void test_rwlock_cached_java(void **state)
{
    (void)state;
    race(&(struct race){.title = "read-write lock whose readers stay, Curator",
                        .paths = "/rwlock-rj",
                        .sides = {"c rwlock retain=60000", "j rwlock"},
                        .writers = 50,
                        .together = 2});
}

static void test_rwlock_cached_python(void **state)
{
    (void)state;
    race(&(struct race){.title = "read-write lock whose readers stay, Kazoo",
                        .paths = "/rwlock-rk",
                        .sides = {"c rwlock names=kazoo retain=60000", "k rwlock names=mended"},
                        .writers = 50,
                        .together = 2});
}

/* Kazoo's lock as a subclass with Curator's names. */
static void test_rwlock_python(void **state)
{
    (void)state;
    race(&(struct race){.title = "read-write lock, Kazoo as a subclass",
                        .paths = "/rwlock-ck",
                        .sides = {"c rwlock", "k rwlock names=curator"},
                        .writers = 50,
                        .together = 2});
}

/* Kazoo's own, without the fault that makes its reader stand still (test-facts.c); ours with its
 * names. */
static void test_rwlock_kazoo_names(void **state)
{
    (void)state;
    race(&(struct race){.title = "read-write lock with Kazoo's names, Kazoo",
                        .paths = "/rwlock-kk",
                        .sides = {"c rwlock names=kazoo", "k rwlock names=mended"},
                        .writers = 50,
                        .together = 2});
}

/* Three permits; ours take two at a time, Curator's one. */
static void test_semaphore_java(void **state)
{
    (void)state;
    race(&(struct race){.title = "semaphore of 3, Curator",
                        .paths = "/semaphore-cj",
                        .sides = {"c semaphore count=2", "j semaphore"},
                        .permits = 3,
                        .together = 3});
}

static void test_semaphore_mutex_java(void **state)
{
    (void)state;
    race(&(struct race){.title = "semaphore mutex, Curator",
                        .paths = "/single-cj",
                        .sides = {"c single", "j single"}});
}

static void test_multi_java(void **state)
{
    (void)state;
    race(&(struct race){.title = "multi-lock, Curator",
                        .paths = "/multi-a,/multi-b,/multi-c",
                        .sides = {"c multi", "j multi"}});
}

static void test_multi_of_semaphores_java(void **state)
{
    (void)state;
    race(&(struct race){.title = "multi-lock with a semaphore mutex, Curator",
                        .paths = "/members-a,/members-b",
                        .sides = {"c multi last=single", "j multi last=single"},
                        .rounds = RACE_ROUNDS / 2});
}

/* Ours over three paths, while others lock single ones of them, more often than ours can. */
static void test_multi_and_single(void **state)
{
    (void)state;
    race(&(struct race){
        .title = "multi-lock and single locks",
        .paths = "/mixed-a,/mixed-b,/mixed-c",
        .sides = {"c multi", "j mutex at=/mixed-b", "k mutex names=curator at=/mixed-c"},
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
    check_lost(&(struct race){
        .title = "no lock", .paths = "/open", .sides = {"c mutex", "j mutex", "k none"}});
}

/* and when one does not see the other's names, as Kazoo's Lock without a pattern. */
static void test_plain_kazoo(void **state)
{
    (void)state;
    check_lost(
        &(struct race){.title = "plain Kazoo", .paths = "/plain", .sides = {"c mutex", "k mutex"}});
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
