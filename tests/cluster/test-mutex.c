/* SPDX-License-Identifier: Apache-2.0 */
/* What a mutex does beside what all locks do: its deadline, its try behind a sync, its nodes. */
#include "cluster.h"

#include <regex.h>

/* --- results --------------------------------------------------------------------------------- */

#define PREDECESSORS 5

static int lock_for_a_second(void *mutex)
{
    return zkl_mutex_lock_for(mutex, 1000);
}

/* Modes: F22. */
WORLD_TEST(predecessors_that_go_do_not_prolong_a_wait)
{
    struct locker l = locker_of(cluster_path("churn"), NULL);
    int last = PREDECESSORS;

    make_root(l.path, "");
    for (int i = 0; i < PREDECESSORS; i++)
        check_ok(wire_create(raw, cluster_at(below(l.path, "lock-")), "", WIRE_EPHEMERAL_SEQUENTIAL,
                             NULL, 0));
    int64_t start = net_now_ms(), next = start + 300;
    lag_begin();
    actor_begin(l.actor, lock_for_a_second, l.mutex);
    while (!wait_until(actor_is_done(l.actor), next - net_now_ms())) {
        check_num(last, >, 0);
        check_ok(wire_delete(raw, child_of(l.path, (size_t)--last), -1));
        next += 300;
    }
    check_num(lag_end_ms(), <, 1250);
    check_num(net_now_ms() - start, >=, 1000);
    check_num(actor_result(l.actor), ==, ZKL_ETIMEDOUT);
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

/* Method: a proxy writes down the requests. */
WORLD_TEST(try_with_sync_reads_behind_a_sync)
{
    static struct order order = {.mu = PTHREAD_MUTEX_INITIALIZER};
    struct locker l = locker_behind(cluster_path("sync"), NULL, SESSION_MS);
    struct zkl_mutex *held = world_mutex(world_client(), l.path);

    check_ok(zkl_mutex_lock(held));
    proxy_set_hook(l.proxy, note_order, &order);
    l.take.wait.flags = ZKL_WAIT_TRY;
    check_num(do_acquire(&l.take), ==, ZKL_EBUSY);
    check_num(place_of(&order, PROXY_SYNC), ==, order.count);
    order.count = 0;
    l.take.wait.flags = ZKL_WAIT_TRY | ZKL_WAIT_SYNC;
    check_num(do_acquire(&l.take), ==, ZKL_EBUSY);
    check_num(place_of(&order, PROXY_SYNC), <, place_of(&order, PROXY_CHILDREN));
    check_num(place_of(&order, PROXY_CHILDREN), <, order.count);
    check_ok(zkl_mutex_unlock(held));
    check_ok(do_acquire(&l.take));
    proxy_set_hook(l.proxy, NULL, NULL);
    check_ok(zkl_mutex_unlock(l.mutex));
}

/* --- grants and nodes ------------------------------------------------------------------------ */

WORLD_TEST(a_nodes_name_has_a_guid_of_its_own)
{
    struct zkl_mutex *mutex = world_mutex(world_client(), cluster_path("guid"));
    char node[256], before[256] = "";
    regex_t name;

    check_ok(regcomp(&name,
                     "/_c_[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"
                     "-lock-[0-9]{10}$",
                     REG_EXTENDED | REG_NOSUB));
    for (int i = 0; i < 20; i++) {
        check_ok(zkl_mutex_lock(mutex));
        check_num(zkl_mutex_node_path(mutex, node, sizeof node), >, 0);
        check_ok(zkl_mutex_unlock(mutex));
        if (regexec(&name, node, 0, NULL, 0) != 0)
            fail_msg("%s", node);
        *strstr(node, "-lock-") = '\0';
        check_true(strcmp(node, before) != 0);
        strcpy(before, node);
    }
    regfree(&name);
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
WORLD_TEST(calls_in_any_order_touch_only_the_own_hold)
{
    struct locker lockers[2] = {locker_of(cluster_path("any"), NULL),
                                locker_of(cluster_path("any"), NULL)};
    unsigned seed = (unsigned)zkl_now_ns();
    int counts[2] = {0, 0};
    const char *other[2];

    print_message("seed %u\n", seed);
    srand(seed);
    for (int i = 0; i < 2; i++) {
        other[i] = below(lockers[i].path, "somebody-0000000000");
        make_node(other[i], "");
    }
    for (long n = test_length(5000, 300); n > 0; n--) {
        int which = rand() % 2;
        random_call(lockers[which].mutex, &counts[which]);
    }
    for (int i = 0; i < 2; i++) {
        while (counts[i]-- > 0)
            check_ok(zkl_mutex_unlock(lockers[i].mutex));
        check_wait(cluster_children(lockers[i].path) == 1, WAIT_MS);
        check_true(node_is_there(other[i]));
        check_ok(wire_delete_tree(raw, cluster_at(lockers[i].path)));
    }
}
