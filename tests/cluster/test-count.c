/* SPDX-License-Identifier: Apache-2.0 */
/* How many requests each call costs. The server counts them, and a proxy counts them by kind. The
 * client sends two kinds of requests besides: a keepalive, one read every 300 ms while an answer is
 * due or a call waits, and libzookeeper's ping after a third of the session timeout without a
 * request. requests.txt has what a proxy alone counts. */
#include "inside.h"
#include "room.h"

#define CYCLES 1000
#define counted_open(name, session_ms) locker_behind(cluster_path(name), NULL, session_ms)

/* --- counting --------------------------------------------------------------------------------- */

/* Exactly n, except the keepalives that fit into the time since then. */
static void check_requests(int64_t counted, int64_t n, int64_t since_ms)
{
    check_num(counted, >=, n);
    check_num(counted, <=, n + (net_now_ms() - since_ms) / ZKL_KEEPALIVE_MS);
}

/* All requests but keepalives and pings. */
static int64_t all_requests(struct proxy *proxy)
{
    return requests(proxy) + proxy_counts(proxy, PROXY_MULTI);
}

/* --- without contention ----------------------------------------------------------------------- */

/* The proxy counts keepalives and lists by themselves. Without them the count is exact. With
 * keepalives it is at most 0.02 more on a server that answers at all. The client sends no list
 * while a keepalive is under way. */
static void check_slope(struct notes *notes, int each)
{
    struct locker c = counted_open("slope", SESSION_MS);

    make_root(c.path, "");
    check_ok(zkl_mutex_set_callback(c.mutex, notes ? take_note : NULL, notes));
    cycle(c.mutex, 10); /* the connection's own requests are not in it */
    int64_t before = inside_received(c.client), start = net_now_ms();
    proxy_reset_counts(c.proxy);
    cycle(c.mutex, CYCLES);
    int64_t requests = inside_received(c.client) - before;
    int64_t keepalives = proxy_counts(c.proxy, PROXY_EXISTS);
    int64_t lists = proxy_counts(c.proxy, PROXY_CHILDREN);
    check_num(requests - keepalives - lists, ==, (each - 1) * CYCLES);
    check_num(lists, <=, CYCLES);
    check_num(lists, >=, CYCLES - keepalives);
    check_requests(keepalives, 0, start);
    /* A server that answers at all: those were no more than some ms each. */
    if (net_now_ms() - start < 5 * CYCLES)
        check_num(keepalives, <=, CYCLES / 50);
}

WORLD_TEST(lock_and_unlock_are_three_requests)
{
    static struct notes notes = NOTES_INIT;

    check_slope(NULL, 3);
    check_slope(&notes, 4);
}

/* --- very many threads ------------------------------------------------------------------------ */

#define CROWD_MAX 1000
#define CROWD_WAIT_MS 120000

struct passage {
    struct zkl_mutex *mutex;
    struct room room;
    atomic_int begun, overlaps;
};

static int pass_through(void *arg)
{
    struct passage *passage = arg;
    uint32_t number = (uint32_t)passage->begun++;

    int rc = zkl_mutex_lock(passage->mutex);
    if (rc != 0)
        return rc;
    passage->overlaps += room_enter(&passage->room, number) != 0;
    passage->overlaps += room_leave(&passage->room, number) != 0;
    return zkl_mutex_unlock(passage->mutex);
}

/* Goal: many threads of one process share one handle. They cost less than each of them would alone,
 * and not the square of their number: create, a watch on the own node, which also serves the next
 * thread as the watch on its predecessor, delete, and some lists for all of them together.
 * Method: another client holds until all are in the queue. A proxy holds back the answer to the
 * first list, and all behind it, until all have sent their creates. It counts each kind of request,
 * and the server counts them all. Modes: F44. */
WORLD_TEST(many_threads_share_their_lists)
{
    const int n = (int)test_length(CROWD_MAX, 300);
    struct locker c = counted_open("thousand", SESSION_MS);
    struct zkl_mutex *held = world_mutex(world_client(), c.path);
    struct passage passage = {.mutex = c.mutex};

    make_root(c.path, "");
    check_ok(zkl_mutex_lock(held));
    int64_t before = inside_received(c.client), start = net_now_ms();
    proxy_reset_counts(c.proxy);
    check_ok(proxy_hold_reply(c.proxy, PROXY_CHILDREN, 1));
    struct crowd crowd = crowd_of(pass_through, &passage, 0, (size_t)n);
    check_ok(proxy_wait_count(c.proxy, PROXY_CREATE2, n, CROWD_WAIT_MS));
    proxy_release(c.proxy);
    check_wait(cluster_children(c.path) == 1 + n, CROWD_WAIT_MS);
    check_wait(proxy_counts(c.proxy, PROXY_GET) == n + 1, CROWD_WAIT_MS);
    check_ok(zkl_mutex_unlock(held));
    crowd_end(&crowd);
    check_num(passage.overlaps, ==, 0);
    int64_t beats = proxy_counts(c.proxy, PROXY_MULTI);
    check_num(proxy_counts(c.proxy, PROXY_CREATE2), ==, n);
    int lists = (int)proxy_counts(c.proxy, PROXY_CHILDREN);
    check_num(lists, <=, ZKL_SHARE_FROM + 2);
    check_num(proxy_counts(c.proxy, PROXY_GET), ==, n + 1);
    check_num(proxy_counts(c.proxy, PROXY_DELETE), ==, n);
    check_num(all_requests(c.proxy) - beats, ==, 3 * n + 1 + lists);
    check_num(beats, <=, 1 + (net_now_ms() - start) / (SESSION_MS / 16)); /* the most frequent */
    check_requests(inside_received(c.client) - before - beats, 3 * n + 1 + lists, start);
}

static size_t waiting_in(struct zkl_client *client)
{
    zkl_driver_lock(client->driver);
    size_t waiting = client->driver->core.counts[ZKL_COUNT_WAITS];
    zkl_driver_unlock(client->driver);
    return waiting;
}

/* Goal: they need no list once some of them each had the number after the one before, nor to hand the lock on. */
WORLD_TEST(who_come_one_after_another_need_no_lists)
{
    enum { N = 40 };
    struct locker c = counted_open("apart", SESSION_MS);
    struct zkl_mutex *mutexes[N];
    struct actor *actors[N];

    make_root(c.path, "");
    int64_t start = net_now_ms();
    proxy_reset_counts(c.proxy);
    for (size_t i = 0; i < N; i++) {
        mutexes[i] = world_mutex(c.client, c.path);
        actors[i] = world_actor();
        actor_begin(actors[i], do_lock, mutexes[i]);
        check_wait(i > 0 ? waiting_in(c.client) == i : actor_is_done(actors[0]), CROWD_WAIT_MS);
    }
    check_wait(proxy_counts(c.proxy, PROXY_GET) == N, CROWD_WAIT_MS);
    check_num(proxy_counts(c.proxy, PROXY_CHILDREN), ==, ZKL_UNLISTED_FROM + 1);
    for (int i = 0; i < N; i++) {
        check_ok(actor_result(actors[i]));
        check_ok(actor_do(actors[i], do_unlock, mutexes[i]));
    }
    int64_t beats = proxy_counts(c.proxy, PROXY_MULTI);
    /* The first holder did not wait, and has no watch on its own node: the next one lists once
     * more. */
    check_num(proxy_counts(c.proxy, PROXY_CHILDREN), ==, ZKL_UNLISTED_FROM + 2);
    check_num(proxy_counts(c.proxy, PROXY_CREATE2), ==, N);
    check_num(proxy_counts(c.proxy, PROXY_GET), ==, N);
    check_num(proxy_counts(c.proxy, PROXY_DELETE), ==, N);
    check_num(all_requests(c.proxy) - beats, ==, 3 * N + ZKL_UNLISTED_FROM + 2);
    check_num(beats, <=, 1 + (net_now_ms() - start) / (SESSION_MS / 16));
}
