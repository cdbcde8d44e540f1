/* SPDX-License-Identifier: Apache-2.0 */
/* What each call on a mutex does and says: re-entry, trylock, deadlines, grants, owners. */
#include "cluster.h"

#include "nodes.h"
#include "proxy.h"

#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MS INT64_C(1000000)

/* A client, a mutex, and an actor that may hold it first. */
struct bench {
    const char *path;
    struct zkl_client *client;
    struct zkl_mutex *mutex;
    struct actor *actor;
};

static struct bench bench_open(const char *name)
{
    struct bench b = {.path = cluster_path(name), .client = cluster_client()};

    b.mutex = cluster_mutex(b.client, b.path);
    b.actor = actor_new();
    return b;
}

static void bench_close(struct bench *b)
{
    actor_end(b->actor);
    cluster_free(b->client, b->mutex);
}

/* --- re-entry -------------------------------------------------------------------------------- */

/* Goal: a thread may lock what it holds in every way, whatever the deadline and the cancel object.
 * It holds the lock until it has unlocked as often, all on one node and with one token. */
static void reentry_counts_up_and_down(void **state)
{
    struct bench b = bench_open("reentry");
    struct take take = take_of(b.mutex);
    struct zkl_cancel *set;

    (void)state;
    check_ok(zkl_cancel_new(&set));
    zkl_cancel_set(set);
    check_ok(do_acquire(&take));
    uint64_t token = take.grant.token;
    check_num(take.grant.hold_count, ==, 1);
    check_ok(zkl_mutex_trylock(b.mutex));
    check_ok(zkl_mutex_lock_for(b.mutex, 0));
    check_ok(zkl_mutex_lock_until(b.mutex, 0, set));
    check_ok(do_acquire(&take));
    check_num(take.grant.hold_count, ==, 5);
    check_true(take.grant.token == token);
    check_num(cluster_children(b.path), ==, 1);
    for (int left = 5; left > 0; left--) {
        check_num(zkl_mutex_hold_count(b.mutex), ==, left);
        check_num(actor_do(b.actor, do_trylock, b.mutex), ==, ZKL_EBUSY);
        check_ok(zkl_mutex_unlock(b.mutex));
    }
    check_num(zkl_mutex_hold_count(b.mutex), ==, 0);
    check_ok(actor_do(b.actor, do_trylock, b.mutex));
    check_ok(actor_do(b.actor, do_unlock, b.mutex));
    zkl_cancel_free(set);
    bench_close(&b);
}

/* --- results --------------------------------------------------------------------------------- */

/* Goal: trylock says 0 if no contender is before it, and EBUSY if one holds or waits. A call
 * without a grant does not write to the caller's struct. */
static void trylock_tells_busy_from_free(void **state)
{
    struct bench b = bench_open("try");
    struct take take = take_of(b.mutex);

    (void)state;
    take.wait.flags = ZKL_WAIT_TRY;
    take.grant.token = UINT64_MAX;
    check_ok(actor_do(b.actor, do_trylock, b.mutex));
    check_num(do_acquire(&take), ==, ZKL_EBUSY);
    check_true(take.grant.token == UINT64_MAX);
    check_true(strstr(zkl_error_detail(), b.path) != NULL);
    check_ok(actor_do(b.actor, do_unlock, b.mutex));
    check_ok(do_acquire(&take));
    check_true(take.grant.token == zkl_mutex_token(b.mutex));
    check_ok(zkl_mutex_unlock(b.mutex));
    bench_close(&b);
}

/* Goal: lock_for and lock_until end at their deadline, not before, and leave no node. If the
 * deadline has passed they ask the server for nothing. Modes: F18. */
static void deadlines_end_a_wait_and_leave_nothing(void **state)
{
    struct bench b = bench_open("deadline");

    (void)state;
    check_num(zkl_mutex_lock_for(b.mutex, 0), ==, ZKL_ETIMEDOUT);
    check_num(zkl_mutex_lock_until(b.mutex, zkl_now_ns() - 1, NULL), ==, ZKL_ETIMEDOUT);
    check_num(wire_exists(raw, cluster_at(b.path), NULL), ==, WIRE_NONODE);
    check_ok(actor_do(b.actor, do_lock, b.mutex));
    for (int i = 0; i < 2; i++) {
        int64_t start = zkl_now_ns();
        int rc = i == 0 ? zkl_mutex_lock_for(b.mutex, 150)
                        : zkl_mutex_lock_until(b.mutex, start + 150 * MS, NULL);
        int64_t took = zkl_now_ns() - start;
        check_num(rc, ==, ZKL_ETIMEDOUT);
        check_num(took, >=, 150 * MS);
        check_num(took, <, 1000 * MS);
    }
    check_wait(cluster_children(b.path) == 1, WAIT_MS);
    check_ok(actor_do(b.actor, do_unlock, b.mutex));
    check_ok(zkl_mutex_lock_for(b.mutex, WAIT_MS));
    check_ok(zkl_mutex_unlock(b.mutex));
    check_ok(zkl_mutex_lock_until(b.mutex, zkl_now_ns() + WAIT_MS * MS, NULL));
    check_ok(zkl_mutex_unlock(b.mutex));
    bench_close(&b);
}

#define PREDECESSORS 5

static void make_predecessors(const char *path, char nodes[PREDECESSORS][256])
{
    char prefix[256];

    check_ok(wire_create(raw, cluster_at(path), "", WIRE_PERSISTENT, NULL, 0));
    snprintf(prefix, sizeof prefix, "%s/lock-", cluster_at(path));
    for (int i = 0; i < PREDECESSORS; i++)
        check_ok(
            wire_create(raw, prefix, "", WIRE_EPHEMERAL_SEQUENTIAL, nodes[i], sizeof nodes[0]));
}

static int lock_for_a_second(void *mutex)
{
    return zkl_mutex_lock_for(mutex, 1000);
}

/* Goal: a wait of 1 s takes 1 s, however often it has to look again. Method: of five nodes before
 * it, the test deletes the nearest every 300 ms. Modes: F22. */
static void predecessors_that_go_do_not_prolong_a_wait(void **state)
{
    struct bench b = bench_open("churn");
    char nodes[PREDECESSORS][256];
    int last = PREDECESSORS;

    (void)state;
    make_predecessors(b.path, nodes);
    int64_t start = net_now_ms(), next = start + 300;
    lag_begin();
    actor_begin(b.actor, lock_for_a_second, b.mutex);
    while (!wait_until(actor_is_done(b.actor), next - net_now_ms())) {
        check_num(last, >, 0);
        check_ok(wire_delete(raw, nodes[--last], -1));
        next += 300;
    }
    check_num(lag_end_ms(), <, 1250);
    check_num(net_now_ms() - start, >=, 1000);
    check_num(actor_result(b.actor), ==, ZKL_ETIMEDOUT);
    bench_close(&b);
}

/* --- try behind a sync ----------------------------------------------------------------------- */

struct order {
    pthread_mutex_t mu;
    int ops[64];
    size_t count;
};

static size_t note_order(enum proxy_dir dir, int op, unsigned char *frame, size_t size, void *arg)
{
    struct order *order = arg;

    (void)frame;
    pthread_mutex_lock(&order->mu);
    if (dir == PROXY_TO_SERVER && op != PROXY_PING && order->count < 64)
        order->ops[order->count++] = op;
    pthread_mutex_unlock(&order->mu);
    return size;
}

static size_t place_of(const struct order *order, int op)
{
    size_t i = 0;

    while (i < order->count && order->ops[i] != op)
        i++;
    return i;
}

/* Goal: with ZKL_WAIT_SYNC a try asks for a sync before it reads, and without the flag it only
 * reads. Both can separate a busy lock from a free one. Method: a proxy writes down the
 * requests. */
static void try_with_sync_reads_behind_a_sync(void **state)
{
    const char *path = cluster_path("sync");
    static struct order order = {.mu = PTHREAD_MUTEX_INITIALIZER};
    struct zkl_client_options options = cluster_options();
    struct zkl_client *holder = cluster_client();
    struct zkl_mutex *held = cluster_mutex(holder, path);

    (void)state;
    struct proxy *proxy = proxy_for(&options);
    struct zkl_client *client = cluster_client_with(&options);
    struct take take = take_of(cluster_mutex(client, path));
    check_ok(zkl_mutex_lock(held));
    proxy_set_hook(proxy, note_order, &order);
    take.wait.flags = ZKL_WAIT_TRY;
    check_num(do_acquire(&take), ==, ZKL_EBUSY);
    check_num(place_of(&order, PROXY_SYNC), ==, order.count);
    order.count = 0;
    take.wait.flags = ZKL_WAIT_TRY | ZKL_WAIT_SYNC;
    check_num(do_acquire(&take), ==, ZKL_EBUSY);
    check_num(place_of(&order, PROXY_SYNC), <, place_of(&order, PROXY_CHILDREN));
    check_num(place_of(&order, PROXY_CHILDREN), <, order.count);
    check_ok(zkl_mutex_unlock(held));
    check_ok(do_acquire(&take));
    proxy_set_hook(proxy, NULL, NULL);
    check_ok(zkl_mutex_unlock(take.mutex));
    cluster_free(client, take.mutex);
    cluster_free(holder, held);
    proxy_stop(proxy);
}

/* --- grants and nodes ------------------------------------------------------------------------ */

/* Goal: a grant's token is the zxid at which its node was made, its window is proved for some time
 * but no longer than the session lasts, and the questions give the same. */
static void a_grant_says_what_the_questions_say(void **state)
{
    struct bench b = bench_open("grant");
    struct take take = take_of(b.mutex);
    struct wire_stat stat;
    char node[256];

    (void)state;
    check_ok(do_acquire(&take));
    check_num(zkl_mutex_node_path(b.mutex, node, sizeof node), ==, strlen(node));
    check_ok(wire_exists(raw, cluster_at(node), &stat));
    check_num(take.grant.token, ==, stat.czxid);
    check_num(zkl_mutex_token(b.mutex), ==, stat.czxid);
    check_num(take.grant.hold_count, ==, 1);
    check_num(take.grant.window_ms, >, 0);
    check_num(take.grant.window_ms, <, SESSION_MS);
    check_num(zkl_mutex_window_ms(b.mutex), <=, take.grant.window_ms);
    check_num(zkl_mutex_still_held(b.mutex, 0), ==, 1);
    check_num(zkl_mutex_still_held(b.mutex, take.grant.window_ms / 2), ==, 1);
    check_num(zkl_mutex_still_held(b.mutex, SESSION_MS), ==, 0);
    check_ok(zkl_mutex_unlock(b.mutex));
    check_num(zkl_mutex_still_held(b.mutex, 0), ==, 0);
    check_num(zkl_mutex_token(b.mutex), ==, 0);
    check_num(zkl_mutex_window_ms(b.mutex), ==, 0);
    bench_close(&b);
}

/* Goal: node_path works as snprintf does: cut, with a final NUL, and with the whole length. */
static void node_path_is_cut_to_the_buffer(void **state)
{
    struct bench b = bench_open("cut");
    char whole[256], small[8] = "";

    (void)state;
    check_num(zkl_mutex_node_path(b.mutex, whole, sizeof whole), ==, ZKL_ENOTOWNER);
    check_ok(zkl_mutex_lock(b.mutex));
    int length = zkl_mutex_node_path(b.mutex, whole, sizeof whole);
    check_num(length, ==, strlen(whole));
    check_num(zkl_mutex_node_path(b.mutex, NULL, 0), ==, length);
    check_num(zkl_mutex_node_path(b.mutex, small, sizeof small), ==, length);
    check_num(strlen(small), ==, sizeof small - 1);
    check_true(strncmp(whole, small, sizeof small - 1) == 0);
    check_ok(zkl_mutex_unlock(b.mutex));
    bench_close(&b);
}

static void read_node(struct zkl_mutex *mutex, char *data, size_t size)
{
    char node[256];

    check_ok(zkl_mutex_lock(mutex));
    check_num(zkl_mutex_node_path(mutex, node, sizeof node), >, 0);
    check_ok(wire_get(raw, cluster_at(node), data, size, NULL));
    check_ok(zkl_mutex_unlock(mutex));
}

/* Goal: a node's data says who made it: "host pid thread", or the owner text of the options, up to
 * 512 bytes of it. */
static void a_node_names_its_owner(void **state)
{
    struct bench b = bench_open("owner");
    struct zkl_client_options options = cluster_options();
    char data[600], expected[600], host[65] = "";

    (void)state;
    check_ok(gethostname(host, sizeof host - 1));
    snprintf(expected, sizeof expected, "%s %ld %ld", host, (long)getpid(), (long)gettid());
    read_node(b.mutex, data, sizeof data);
    check_text(data, expected);
    memset(expected, 'o', 512);
    expected[512] = '\0';
    options.owner = expected;
    struct zkl_client *client = cluster_client_with(&options);
    struct zkl_mutex *mutex = cluster_mutex(client, b.path);
    read_node(mutex, data, sizeof data);
    check_text(data, expected);
    cluster_free(client, mutex);
    bench_close(&b);
}

/* Goal: a node's name is Curator's, with a GUID of version 4 that is a new one for each grant. */
static void a_nodes_name_has_a_guid_of_its_own(void **state)
{
    struct bench b = bench_open("guid");
    char node[256], before[256] = "";
    regex_t name;

    (void)state;
    check_ok(regcomp(&name,
                     "/_c_[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"
                     "-lock-[0-9]{10}$",
                     REG_EXTENDED | REG_NOSUB));
    for (int i = 0; i < 20; i++) {
        check_ok(zkl_mutex_lock(b.mutex));
        check_num(zkl_mutex_node_path(b.mutex, node, sizeof node), >, 0);
        check_ok(zkl_mutex_unlock(b.mutex));
        if (regexec(&name, node, 0, NULL, 0) != 0)
            fail_msg("%s", node);
        *strstr(node, "-lock-") = '\0';
        check_true(strcmp(node, before) != 0);
        strcpy(before, node);
    }
    regfree(&name);
    bench_close(&b);
}

/* Goal: what is used as a condition is never true by mistake, and zkl_mutex_check says why it is not. */
static void a_condition_is_true_only_if_held(void **state)
{
    struct bench b = bench_open("condition");

    (void)state;
    check_true(!zkl_mutex_still_held(b.mutex, 0));
    check_num(strlen(zkl_error_detail()), ==, 0); /* a plain no */
    check_num(zkl_mutex_check(b.mutex, 0), ==, ZKL_ENOTOWNER);
    check_true(strstr(zkl_error_detail(), "zkl_mutex_check") != NULL);
    check_ok(zkl_mutex_lock(b.mutex));
    check_ok(zkl_mutex_check(b.mutex, 0));
    check_true(!zkl_mutex_still_held(b.mutex, 10 * SESSION_MS));
    check_num(strlen(zkl_error_detail()), ==, 0);
    check_num(zkl_mutex_check(b.mutex, 10 * SESSION_MS), ==, ZKL_EUNPROVED);
    check_num(zkl_mutex_check(b.mutex, -1), ==, ZKL_EBADTIMEOUT);
    check_true(!zkl_mutex_still_held(b.mutex, -1));
    check_true(strlen(zkl_error_detail()) > 0);
    check_true(!zkl_mutex_revoke_requested(b.mutex));
    check_closed(zkl_client_close(b.client, WAIT_MS));
    check_true(!zkl_mutex_still_held(b.mutex, 0));
    check_num(zkl_mutex_window_ms(b.mutex), ==, 0);
    check_num(zkl_mutex_check(b.mutex, 0), ==, ZKL_ELOST);
    check_num(zkl_mutex_unlock(b.mutex), ==, ZKL_ELOST);
    bench_close(&b);
}

/* --- owners ---------------------------------------------------------------------------------- */

static int ask_all(void *mutex)
{
    char node[16];
    bool none = zkl_mutex_hold_count(mutex) == 0 && zkl_mutex_token(mutex) == 0 &&
                zkl_mutex_window_ms(mutex) == 0 && zkl_mutex_still_held(mutex, 0) == 0 &&
                zkl_mutex_node_path(mutex, node, sizeof node) == ZKL_ENOTOWNER;

    return none ? 0 : 1;
}

/* Goal: a hold belongs to its thread. Another thread cannot unlock it: the call says that the
 * thread holds nothing. */
static void another_thread_is_not_the_owner(void **state)
{
    struct bench b = bench_open("not-owner");

    (void)state;
    check_num(zkl_mutex_unlock(b.mutex), ==, ZKL_ENOTOWNER);
    check_ok(zkl_mutex_lock(b.mutex));
    check_num(actor_do(b.actor, do_unlock, b.mutex), ==, ZKL_ENOTOWNER);
    check_ok(actor_do(b.actor, ask_all, b.mutex));
    check_num(zkl_mutex_free(b.mutex), ==, ZKL_EBUSY);
    check_num(zkl_mutex_hold_count(b.mutex), ==, 1);
    check_num(zkl_mutex_still_held(b.mutex, 1), ==, 1);
    check_num(cluster_children(b.path), ==, 1);
    check_ok(zkl_mutex_unlock(b.mutex));
    check_num(zkl_mutex_unlock(b.mutex), ==, ZKL_ENOTOWNER);
    bench_close(&b);
}

/* Goal: two handles of one path in one thread say EDEADLK instead of waiting for each other.
 * Neither is the owner of what the other holds. In two threads they are two contenders. */
static void two_handles_in_one_thread_deadlock_at_once(void **state)
{
    struct bench b = bench_open("handles");
    struct zkl_mutex *second = cluster_mutex(b.client, b.path);

    (void)state;
    check_ok(zkl_mutex_lock(b.mutex));
    check_num(zkl_mutex_lock(second), ==, ZKL_EDEADLK);
    check_num(zkl_mutex_trylock(second), ==, ZKL_EDEADLK);
    check_num(zkl_mutex_lock_for(second, 1), ==, ZKL_EDEADLK);
    check_num(zkl_mutex_unlock(second), ==, ZKL_ENOTOWNER);
    check_num(zkl_mutex_hold_count(second), ==, 0);
    check_num(actor_do(b.actor, do_trylock, second), ==, ZKL_EBUSY);
    actor_begin(b.actor, do_lock, second);
    check_wait(cluster_children(b.path) == 2, WAIT_MS);
    check_ok(zkl_mutex_unlock(b.mutex));
    check_ok(actor_result(b.actor));
    check_num(zkl_mutex_trylock(b.mutex), ==, ZKL_EBUSY);
    check_num(zkl_mutex_trylock(second), ==, ZKL_EBUSY);
    check_ok(actor_do(b.actor, do_unlock, second));
    check_ok(zkl_mutex_free(second));
    bench_close(&b);
}

/* --- any order ------------------------------------------------------------------------------- */

static void random_call(struct zkl_mutex *mutex, int *count)
{
    switch (rand() % 5) {
    case 0:
        check_ok(zkl_mutex_lock(mutex));
        ++*count;
        break;
    case 1:
        check_ok(zkl_mutex_trylock(mutex));
        ++*count;
        break;
    case 2:
        check_num(zkl_mutex_lock_for(mutex, 0), ==, *count > 0 ? 0 : ZKL_ETIMEDOUT);
        *count += *count > 0;
        break;
    default:
        check_num(zkl_mutex_unlock(mutex), ==, *count > 0 ? 0 : ZKL_ENOTOWNER);
        *count -= *count > 0;
        break;
    }
    check_num(zkl_mutex_hold_count(mutex), ==, *count);
    check_num(zkl_mutex_token(mutex) != 0, ==, *count > 0);
}

/* Goal: whatever the order of lock and unlock, double unlocks included, each call says what a
 * counter says. The client deletes no node except that of the hold. Method: random calls on two
 * mutexes. The test's own session has a node below each all the time, which must stay.
 * Modes: F67. */
static void calls_in_any_order_touch_only_the_own_hold(void **state)
{
    struct bench a = bench_open("any-a"), b = bench_open("any-b");
    struct bench *benches[2] = {&a, &b};
    unsigned seed = (unsigned)zkl_now_ns();
    int counts[2] = {0, 0};
    char other[2][256];

    (void)state;
    print_message("seed %u\n", seed);
    srand(seed);
    for (int i = 0; i < 2; i++) {
        const char *path = cluster_at(benches[i]->path);
        char node[256];
        snprintf(node, sizeof node, "%s/somebody-0000000000", path);
        check_ok(wire_create(raw, path, "", WIRE_PERSISTENT, NULL, 0));
        check_ok(wire_create(raw, node, "", WIRE_EPHEMERAL, other[i], sizeof other[i]));
    }
    for (long n = test_length(5000, 300); n > 0; n--) {
        int which = rand() % 2;
        random_call(benches[which]->mutex, &counts[which]);
    }
    for (int i = 0; i < 2; i++) {
        while (counts[i]-- > 0)
            check_ok(zkl_mutex_unlock(benches[i]->mutex));
        check_wait(cluster_children(benches[i]->path) == 1, WAIT_MS);
        check_ok(wire_exists(raw, other[i], NULL));
        check_ok(wire_delete_tree(raw, cluster_at(benches[i]->path)));
        bench_close(benches[i]);
    }
}

static const struct CMUnitTest tests[] = {
    cluster_test(reentry_counts_up_and_down),
    cluster_test(trylock_tells_busy_from_free),
    cluster_test(deadlines_end_a_wait_and_leave_nothing),
    cluster_test(predecessors_that_go_do_not_prolong_a_wait),
    cluster_test(try_with_sync_reads_behind_a_sync),
    cluster_test(a_grant_says_what_the_questions_say),
    cluster_test(node_path_is_cut_to_the_buffer),
    cluster_test(a_node_names_its_owner),
    cluster_test(a_nodes_name_has_a_guid_of_its_own),
    cluster_test(a_condition_is_true_only_if_held),
    cluster_test(another_thread_is_not_the_owner),
    cluster_test(two_handles_in_one_thread_deadlock_at_once),
    cluster_test(calls_in_any_order_touch_only_the_own_hold),
};

int main(int argc, char **argv)
{
    return CLUSTER_MAIN(argc, argv, "mutex", tests);
}
