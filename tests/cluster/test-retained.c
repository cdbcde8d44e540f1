/* SPDX-License-Identifier: Apache-2.0 */
/* The retained lock (retain_ms): its node stays after the last unlock, and does no other client
 * harm. */
#include "cluster.h"

#include "notes.h"
#include "nodes.h"
#include "proxy.h"

#include <zklock/inspect.h>

#include <stdio.h>
#include <string.h>

#define CYCLES 1000
#define LONG_MS 600000  /* nothing ends by itself */
#define AT_ONCE_MS 5000 /* of what must not wait for any timeout */

static struct zkl_mutex *retained(struct zkl_client *client, const char *path, int64_t retain_ms)
{
    struct zkl_mutex_options options = ZKL_MUTEX_OPTIONS_INIT;

    options.retain_ms = retain_ms;
    return world_mutex_with(client, path, &options);
}

/* Goal: a client acquires and releases a retained lock without a request, on one node with one
 * token. It arms the watch for other contenders once. Method: a proxy counts. */
WORLD_TEST(a_retained_lock_is_taken_again_without_a_request)
{
    const char *path = cluster_path("kept");
    struct zkl_client_options options = cluster_options();
    struct zkl_grant grant = ZKL_GRANT_INIT;

    struct proxy *proxy = world_proxy_for(&options);
    struct zkl_client *client = world_client_with(&options);
    struct zkl_mutex *mutex = retained(client, path, LONG_MS);
    check_ok(zkl_mutex_acquire(mutex, NULL, &grant));
    proxy_reset_counts(proxy);
    check_ok(zkl_mutex_unlock(mutex));
    check_wait(requests(proxy) == 2,
               WAIT_MS); /* the children and its own node, each with a watch */
    cycle(mutex, CYCLES);
    check_num(requests(proxy), ==, 2);
    check_num(zkl_mutex_hold_count(mutex), ==, 0);
    check_num(zkl_mutex_unlock(mutex), ==, ZKL_ENOTOWNER);
    check_num(cluster_children(path), ==, 1);
    check_ok(zkl_mutex_lock(mutex));
    check_ok(zkl_mutex_lock(mutex));
    check_num(zkl_mutex_hold_count(mutex), ==, 2);
    check_num(zkl_mutex_token(mutex), ==, grant.token);
    check_true(zkl_mutex_still_held(mutex, 1));
    check_ok(zkl_mutex_unlock(mutex));
    check_ok(zkl_mutex_unlock(mutex));
    check_num(requests(proxy), ==, 2);
    world_clear();
    check_wait(cluster_children(path) <= 0, WAIT_MS);
}

/* --- others ----------------------------------------------------------------------------------- */

/* Goal: a contender that queues for a lock that no thread is in gets it immediately. Method: two
 * clients, each of which keeps it, in turn. */
WORLD_TEST(a_retained_lock_goes_to_who_queues)
{
    const char *path = cluster_path("queued");
    struct zkl_client *clients[2] = {world_client(), world_client()};
    struct zkl_mutex *mutexes[2] = {retained(clients[0], path, LONG_MS),
                                    retained(clients[1], path, LONG_MS)};
    uint64_t token = 0;

    for (int i = 0; i < 20; i++) {
        check_ok(zkl_mutex_lock_for(mutexes[i % 2], AT_ONCE_MS));
        check_num(zkl_mutex_token(mutexes[i % 2]), >, token);
        token = zkl_mutex_token(mutexes[i % 2]);
        check_ok(zkl_mutex_unlock(mutexes[i % 2]));
    }
}

/* Goal: a contender that queues while a thread is in the lock gets it with the next unlock. */
WORLD_TEST(a_contended_lock_is_not_kept)
{
    const char *path = cluster_path("contended");
    struct zkl_client *client = world_client(), *other = world_client();
    struct zkl_mutex *mutex = retained(client, path, LONG_MS), *next = world_mutex(other, path);
    struct actor *actor = world_actor();

    cycle(mutex, 2);
    check_ok(zkl_mutex_lock(mutex));
    actor_begin(actor, do_lock, next);
    check_wait(cluster_children(path) == 2, WAIT_MS);
    check_ok(zkl_mutex_unlock(mutex));
    check_ok(actor_result(actor));
    check_num(cluster_children(path), ==, 1);
    check_ok(actor_do(actor, do_unlock, next));
}

/* Goal: a try of another client gets a kept lock that no thread is in, with either library's names.
 * Where a thread is in, the try soon says busy, and leaves nothing. */
WORLD_TEST(a_try_gets_what_nobody_is_in)
{
    static const enum zkl_names names[] = {ZKL_NAMES_CURATOR, ZKL_NAMES_KAZOO};

    for (size_t i = 0; i < 2; i++) {
        const char *path = cluster_path("tried");
        struct zkl_client *client = world_client(), *other = world_client();
        struct zkl_mutex_options options = ZKL_MUTEX_OPTIONS_INIT;
        struct zkl_mutex *mutex, *tried = world_mutex(other, path);
        options.retain_ms = LONG_MS;
        options.names = names[i];
        mutex = world_mutex_with(client, path, &options);
        cycle(mutex, 2);
        check_try_gets(tried);
        check_ok(zkl_mutex_unlock(tried));
        check_ok(zkl_mutex_lock(mutex));
        lag_begin();
        check_num(zkl_mutex_trylock(tried), ==, ZKL_EBUSY);
        check_num(lag_end_ms(), <, AT_ONCE_MS);
        check_wait(cluster_children(path) == 1, WAIT_MS);
        check_ok(zkl_mutex_unlock(mutex));
    }
}

/* Goal: a client releases a kept lock that no thread is in, when another client asks for it. */
WORLD_TEST(a_request_to_let_go_ends_it)
{
    const char *path = cluster_path("asked");
    struct zkl_client *client = world_client();
    struct zkl_mutex *mutex = retained(client, path, LONG_MS);
    char node[256];

    cycle(mutex, 2);
    cluster_child(path, 0, node, sizeof node);
    check_ok(wire_set(raw, node, "__REVOKE__", -1));
    check_wait(cluster_children(path) <= 0, WAIT_MS);
    cycle(mutex, 2);
    check_num(cluster_children(path), ==, 1);
}

/* --- its end ---------------------------------------------------------------------------------- */

/* Goal: the lock stays for its time after the last unlock, and all the time while threads use
 * it. */
WORLD_TEST(it_stays_for_its_time)
{
    const char *path = cluster_path("timed");
    struct zkl_client *client = world_client();
    struct zkl_mutex *mutex = retained(client, path, 500);

    check_ok(zkl_mutex_lock(mutex));
    uint64_t token = zkl_mutex_token(mutex);
    check_ok(zkl_mutex_unlock(mutex));
    for (int64_t from = net_now_ms(); net_now_ms() - from < 1200;)
        cycle(mutex, 1);
    check_ok(zkl_mutex_lock(mutex));
    check_num(zkl_mutex_token(mutex), ==, token);
    check_ok(zkl_mutex_unlock(mutex));
    int64_t from = net_now_ms();
    check_wait(cluster_children(path) <= 0, WAIT_MS);
    check_num(net_now_ms() - from, >=, 400);
    check_ok(zkl_mutex_lock(mutex));
    check_num(zkl_mutex_token(mutex), >, token);
    check_ok(zkl_mutex_unlock(mutex));
}

/* Goal: a handle that keeps its lock can be freed, and a client closed: nothing is left. */
WORLD_TEST(it_ends_with_its_handle)
{
    const char *path = cluster_path("freed"), *closed = cluster_path("closed");
    struct zkl_client *client = world_client();
    struct zkl_mutex *mutex = retained(client, path, LONG_MS);
    struct zkl_mutex *other = retained(client, closed, LONG_MS);

    cycle(mutex, 2);
    cycle(other, 2);
    check_ok(zkl_mutex_lock(mutex));
    check_num(zkl_mutex_free(mutex), ==, ZKL_EBUSY);
    check_ok(zkl_mutex_unlock(mutex));
    world_drop(mutex);
    check_wait(cluster_children(path) <= 0, WAIT_MS);
    check_num(cluster_children(closed), ==, 1);
    check_closed(zkl_client_close(client, WAIT_MS));
    check_wait(cluster_children(closed) <= 0, WAIT_MS);
    check_num(zkl_mutex_lock(other), ==, ZKL_ECLOSED);
}

/* Goal: a kept lock is lost while no thread is in it. No callback runs, and the next lock gets a
 * new node. */
WORLD_TEST(what_nobody_was_in_is_lost_to_nobody)
{
    const char *path = cluster_path("nobody");
    static struct notes notes = NOTES_INIT;
    struct zkl_client *client = world_client();
    struct zkl_mutex *mutex = retained(client, path, LONG_MS);
    char node[256];

    check_ok(zkl_mutex_set_callback(mutex, take_note, &notes));
    check_ok(zkl_mutex_lock(mutex));
    uint64_t token = zkl_mutex_token(mutex);
    check_ok(zkl_mutex_unlock(mutex));
    cluster_child(path, 0, node, sizeof node);
    check_ok(wire_delete(raw, node, -1));
    check_wait(zkl_mutex_lock(mutex) == 0 &&
                   (zkl_mutex_token(mutex) > token || zkl_mutex_unlock(mutex) != 0),
               WAIT_MS);
    check_ok(zkl_mutex_unlock(mutex));
    check_num(noted(&notes), ==, 0);
}

/* Goal: the link breaks while no thread is in a kept lock. The client leaves no node for which
 * others wait. */
WORLD_TEST(it_does_not_outlive_its_link)
{
    const char *path = cluster_path("link");
    struct zkl_client_options options = cluster_options();
    struct zkl_client *other = world_client();
    struct zkl_mutex *next = world_mutex(other, path);

    struct proxy *proxy = world_proxy_for(&options);
    struct zkl_client *client = world_client_with(&options);
    struct zkl_mutex *mutex = retained(client, path, LONG_MS);
    cycle(mutex, 2);
    proxy_cut(proxy);
    check_ok(zkl_mutex_lock_for(next, WAIT_MS));
    check_ok(zkl_mutex_unlock(next));
    check_ok(zkl_mutex_lock_for(mutex, WAIT_MS));
    check_ok(zkl_mutex_unlock(mutex));
}

/* Goal: a hold with a lease is not kept, whether it began with one or got one. */
WORLD_TEST(a_lease_is_not_kept)
{
    const char *path = cluster_path("leased");
    struct zkl_client *client = world_client();
    struct zkl_mutex *mutex = retained(client, path, LONG_MS);
    struct take take = take_of(mutex);

    take.wait.lease_ms = 60000;
    check_ok(zkl_mutex_acquire(mutex, &take.wait, NULL));
    check_ok(zkl_mutex_unlock(mutex));
    check_num(cluster_children(path), <=, 0);
    cycle(mutex, 2);
    check_ok(zkl_mutex_acquire(mutex, &take.wait, NULL)); /* what is there is taken with it */
    check_num(zkl_mutex_window_ms(mutex), <=, 60000);
    check_ok(zkl_mutex_unlock(mutex));
    check_num(cluster_children(path), <=, 0);
    check_ok(zkl_mutex_lock(mutex));
    check_ok(zkl_mutex_renew(mutex, 60000));
    check_ok(zkl_mutex_unlock(mutex));
    check_num(cluster_children(path), <=, 0);
}

/* Goal: a kept lock runs the callback that is set when a thread acquires it, not the one that was
 * set when its node was made. */
WORLD_TEST(it_tells_the_callback_of_its_time)
{
    const char *path = cluster_path("callback");
    static struct notes before = NOTES_INIT, after = NOTES_INIT;
    struct zkl_client *client = world_client();
    struct zkl_mutex *mutex = retained(client, path, LONG_MS);
    char node[256];

    check_ok(zkl_mutex_set_callback(mutex, take_note, &before));
    cycle(mutex, 2);
    check_ok(zkl_mutex_set_callback(mutex, take_note, &after));
    check_ok(zkl_mutex_lock(mutex));
    cluster_child(path, cluster_children(path) - 1, node, sizeof node);
    check_ok(wire_delete(raw, node, -1));
    check_note(&after, 0, ZKL_HOLD_LOST, ZKL_REASON_NODE_DELETED);
    check_num(noted(&before), ==, 0);
    check_num(zkl_mutex_unlock(mutex), ==, ZKL_ELOST);
}

/* --- several ---------------------------------------------------------------------------------- */

/* Goal: members of a multi-lock stay too, and are taken again without a request, all of them. */
WORLD_TEST(members_are_kept_and_taken_together)
{
    const char *a = cluster_path("member"), *b = cluster_path("member");
    struct zkl_client_options options = cluster_options();

    struct proxy *proxy = world_proxy_for(&options);
    struct zkl_client *client = world_client_with(&options);
    struct zkl_mutex *one = retained(client, a, LONG_MS), *two = retained(client, b, LONG_MS);
    struct zkl_member members[] = {zkl_member_mutex(one), zkl_member_mutex(two)};
    struct zkl_multi *multi = world_multi(client, members, 2);
    check_ok(zkl_multi_lock(multi));
    proxy_reset_counts(proxy);
    check_ok(zkl_multi_unlock(multi, NULL));
    check_wait(requests(proxy) == 4, WAIT_MS);
    for (int i = 0; i < 10; i++) {
        check_ok(zkl_multi_lock(multi));
        check_num(zkl_mutex_hold_count(one), ==, 1);
        check_true(zkl_multi_token(multi, 1) != 0);
        check_ok(zkl_multi_unlock(multi, NULL));
    }
    check_num(requests(proxy), ==, 4);
    check_num(cluster_children(a) + cluster_children(b), ==, 2);
    cycle(one, 2); /* a call for one of them uses its kept node, too */
    check_num(requests(proxy), ==, 4);
    world_clear();
    check_wait(cluster_children(a) <= 0 && cluster_children(b) <= 0, WAIT_MS);
}

/* Goal: a call that waits for one lock does not keep another lock that comes after it. Method: a
 * multi-lock of both. Its client keeps the second lock, and another client holds the first lock and
 * then asks for the second. */
WORLD_TEST(what_is_kept_does_not_make_a_circle)
{
    const char *a = cluster_path("circle"), *b = cluster_path("circle");
    struct zkl_client *client = world_client(), *other = world_client();
    struct zkl_mutex *one = retained(client, a, LONG_MS), *two = retained(client, b, LONG_MS);
    struct zkl_mutex *first = world_mutex(other, a), *second = world_mutex(other, b);
    struct zkl_member members[] = {zkl_member_mutex(one), zkl_member_mutex(two)};
    struct actor *actor = world_actor();

    struct zkl_multi *multi = world_multi(client, members, 2);
    cycle(two, 2);
    check_ok(zkl_mutex_lock(first));
    actor_begin(actor, do_multi_lock, multi);
    check_wait(cluster_children(a) == 2, WAIT_MS);
    check_ok(zkl_mutex_lock_for(second, AT_ONCE_MS));
    check_ok(zkl_mutex_unlock(second));
    check_ok(zkl_mutex_unlock(first));
    check_ok(actor_result(actor));
    check_ok(actor_do(actor, do_multi_unlock, multi));
}

/* --- not for --------------------------------------------------------------------------------- */

/* Goal: what can't take turns refuses to, and so are figures that make no sense. */
WORLD_TEST(others_refuse)
{
    struct zkl_client *client = world_client();
    struct zkl_mutex_options options = ZKL_MUTEX_OPTIONS_INIT;
    struct zkl_mutex *mutex;

    options.retain_ms = -1;
    check_num(zkl_mutex_new(&mutex, client, "/x", &options), ==, ZKL_EBADTIMEOUT);
    options.retain_ms = 3600001;
    check_num(zkl_mutex_new(&mutex, client, "/x", &options), ==, ZKL_EBADTIMEOUT);
    options.retain_ms = 0;
    options.local_handoffs_max = -1;
    check_num(zkl_mutex_new(&mutex, client, "/x", &options), ==, ZKL_EINVAL);
}
