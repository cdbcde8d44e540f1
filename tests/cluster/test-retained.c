/* SPDX-License-Identifier: Apache-2.0 */
/* The retained lock (retain_ms): its node stays after the last unlock, and does no other client
 * harm. */
#include "cluster.h"

#define CYCLES 1000
#define LONG_MS 600000  /* nothing ends by itself */
#define AT_ONCE_MS 5000 /* of what must not wait for any timeout */

static struct zkl_mutex_options retaining(int64_t retain_ms)
{
    struct zkl_mutex_options options = ZKL_MUTEX_OPTIONS_INIT;

    options.retain_ms = retain_ms;
    return options;
}

static struct zkl_mutex *retained(struct zkl_client *client, const char *path)
{
    struct zkl_mutex_options options = retaining(LONG_MS);

    return world_mutex_with(client, path, &options);
}

static struct locker keeper_at(const char *path)
{
    struct zkl_mutex_options options = retaining(LONG_MS);

    return locker_behind(path, &options, SESSION_MS);
}

/* Of a path of its own. */
static struct locker keeper_of(const char *name)
{
    return keeper_at(cluster_path(name));
}

WORLD_TEST(a_retained_lock_is_taken_again_without_a_request)
{
    struct locker l = keeper_of("kept");

    check_ok(do_acquire(&l.take));
    proxy_reset_counts(l.proxy);
    check_ok(zkl_mutex_unlock(l.mutex));
    check_wait(requests(l.proxy) == 2,
               WAIT_MS); /* the children and its own node, each with a watch */
    cycle(l.mutex, CYCLES);
    check_num(requests(l.proxy), ==, 2);
    check_num(zkl_mutex_hold_count(l.mutex), ==, 0);
    check_num(zkl_mutex_unlock(l.mutex), ==, ZKL_ENOTOWNER);
    check_num(cluster_children(l.path), ==, 1);
    check_ok(zkl_mutex_lock(l.mutex));
    check_ok(zkl_mutex_lock(l.mutex));
    check_num(zkl_mutex_hold_count(l.mutex), ==, 2);
    check_num(zkl_mutex_token(l.mutex), ==, l.take.grant.token);
    check_true(zkl_mutex_still_held(l.mutex, 1));
    check_ok(zkl_mutex_unlock(l.mutex));
    check_ok(zkl_mutex_unlock(l.mutex));
    check_num(requests(l.proxy), ==, 2);
    world_clear();
    check_wait(cluster_children(l.path) == 0, WAIT_MS);
}

/* --- others ----------------------------------------------------------------------------------- */

/* Goal: it does so immediately. Method: two clients, each of which keeps it, in turn. */
WORLD_TEST(a_retained_lock_goes_to_who_queues)
{
    struct locker a = keeper_of("queued"), b = keeper_at(a.path);
    uint64_t token = 0;

    for (int i = 0; i < 20; i++) {
        struct zkl_mutex *mutex = i % 2 ? b.mutex : a.mutex;
        check_ok(zkl_mutex_lock_for(mutex, AT_ONCE_MS));
        check_num(zkl_mutex_token(mutex), >, token);
        token = zkl_mutex_token(mutex);
        check_ok(zkl_mutex_unlock(mutex));
    }
}

WORLD_TEST(a_contended_lock_is_not_kept)
{
    struct locker l = keeper_of("contended"), next = locker_of(l.path, NULL);

    cycle(l.mutex, 2);
    check_ok(zkl_mutex_lock(l.mutex));
    locker_queues(&next, 2);
    check_ok(zkl_mutex_unlock(l.mutex));
    check_ok(actor_result(next.actor));
    check_num(cluster_children(l.path), ==, 1);
    check_ok(actor_do(next.actor, do_unlock, next.mutex));
}

/* Goal: it does so with either library's names. */
WORLD_TEST(a_try_gets_what_nobody_is_in)
{
    static const enum zkl_names names[] = {ZKL_NAMES_CURATOR, ZKL_NAMES_KAZOO};

    for (size_t i = 0; i < 2; i++) {
        struct zkl_mutex_options options = retaining(LONG_MS);
        options.names = names[i];
        struct locker l = locker_of(cluster_path("tried"), &options);
        struct zkl_mutex *tried = world_mutex(world_client(), l.path);
        cycle(l.mutex, 2);
        check_try_gets(tried);
        check_ok(zkl_mutex_unlock(tried));
        check_ok(zkl_mutex_lock(l.mutex));
        lag_begin();
        check_num(zkl_mutex_trylock(tried), ==, ZKL_EBUSY);
        check_num(lag_end_ms(), <, AT_ONCE_MS);
        check_wait(cluster_children(l.path) == 1, WAIT_MS);
        check_ok(zkl_mutex_unlock(l.mutex));
    }
}

WORLD_TEST(a_request_to_let_go_ends_it)
{
    struct locker l = keeper_of("asked");

    cycle(l.mutex, 2);
    check_ok(wire_set(raw, child_of(l.path, 0), "__REVOKE__", -1));
    check_wait(cluster_children(l.path) == 0, WAIT_MS);
    cycle(l.mutex, 2);
    check_num(cluster_children(l.path), ==, 1);
}

/* --- its end ---------------------------------------------------------------------------------- */

WORLD_TEST(it_stays_for_its_time)
{
    struct zkl_mutex_options options = retaining(500);
    struct locker l = locker_of(cluster_path("timed"), &options);

    check_ok(zkl_mutex_lock(l.mutex));
    uint64_t token = zkl_mutex_token(l.mutex);
    check_ok(zkl_mutex_unlock(l.mutex));
    for (int64_t from = net_now_ms(); net_now_ms() - from < 1200;)
        cycle(l.mutex, 1);
    check_ok(zkl_mutex_lock(l.mutex));
    check_num(zkl_mutex_token(l.mutex), ==, token);
    check_ok(zkl_mutex_unlock(l.mutex));
    int64_t from = net_now_ms();
    check_wait(cluster_children(l.path) == 0, WAIT_MS);
    check_num(net_now_ms() - from, >=, 400);
    check_ok(zkl_mutex_lock(l.mutex));
    check_num(zkl_mutex_token(l.mutex), >, token);
    check_ok(zkl_mutex_unlock(l.mutex));
}

WORLD_TEST(it_ends_with_its_handle)
{
    struct locker l = keeper_of("freed");
    const char *closed = cluster_path("closed");
    struct zkl_mutex *other = retained(l.client, closed);

    cycle(l.mutex, 2);
    cycle(other, 2);
    check_ok(zkl_mutex_lock(l.mutex));
    check_num(zkl_mutex_free(l.mutex), ==, ZKL_EBUSY);
    check_ok(zkl_mutex_unlock(l.mutex));
    world_drop(l.mutex);
    check_wait(cluster_children(l.path) == 0, WAIT_MS);
    check_num(cluster_children(closed), ==, 1);
    check_closed(zkl_client_close(l.client, WAIT_MS));
    check_wait(cluster_children(closed) == 0, WAIT_MS);
    check_num(zkl_mutex_lock(other), ==, ZKL_ECLOSED);
}

WORLD_TEST(what_nobody_was_in_is_lost_to_nobody)
{
    static struct notes notes = NOTES_INIT;
    struct locker l = keeper_of("nobody");

    check_ok(zkl_mutex_set_callback(l.mutex, take_note, &notes));
    check_ok(zkl_mutex_lock(l.mutex));
    uint64_t token = zkl_mutex_token(l.mutex);
    check_ok(zkl_mutex_unlock(l.mutex));
    check_ok(wire_delete(raw, child_of(l.path, 0), -1));
    check_wait(zkl_mutex_lock(l.mutex) == 0 &&
                   (zkl_mutex_token(l.mutex) > token || zkl_mutex_unlock(l.mutex) != 0),
               WAIT_MS);
    check_ok(zkl_mutex_unlock(l.mutex));
    check_num(noted(&notes), ==, 0);
}

WORLD_TEST(it_does_not_outlive_its_link)
{
    struct locker l = keeper_of("link"), next = locker_of(l.path, NULL);

    cycle(l.mutex, 2);
    proxy_cut(l.proxy);
    check_ok(zkl_mutex_lock_for(next.mutex, WAIT_MS));
    check_ok(zkl_mutex_unlock(next.mutex));
    check_ok(zkl_mutex_lock_for(l.mutex, WAIT_MS));
    check_ok(zkl_mutex_unlock(l.mutex));
}

WORLD_TEST(a_lease_is_not_kept)
{
    struct locker l = keeper_of("leased");

    l.take.wait.lease_ms = 60000;
    check_ok(do_acquire(&l.take));
    check_ok(zkl_mutex_unlock(l.mutex));
    check_num(cluster_children(l.path), ==, 0);
    cycle(l.mutex, 2);
    check_ok(do_acquire(&l.take)); /* what is there is taken with it */
    check_num(zkl_mutex_window_ms(l.mutex), <=, 60000);
    check_ok(zkl_mutex_unlock(l.mutex));
    check_num(cluster_children(l.path), ==, 0);
    check_ok(zkl_mutex_lock(l.mutex));
    check_ok(zkl_mutex_renew(l.mutex, 60000));
    check_ok(zkl_mutex_unlock(l.mutex));
    check_num(cluster_children(l.path), ==, 0);
}

WORLD_TEST(it_tells_the_callback_of_its_time)
{
    static struct notes before = NOTES_INIT, after = NOTES_INIT;
    struct locker l = keeper_of("callback");

    check_ok(zkl_mutex_set_callback(l.mutex, take_note, &before));
    cycle(l.mutex, 2);
    check_ok(zkl_mutex_set_callback(l.mutex, take_note, &after));
    check_ok(zkl_mutex_lock(l.mutex));
    check_ok(wire_delete(raw, node_of(l.mutex), -1));
    check_note(&after, 0, ZKL_HOLD_LOST, ZKL_REASON_NODE_DELETED);
    check_num(noted(&before), ==, 0);
    check_num(zkl_mutex_unlock(l.mutex), ==, ZKL_ELOST);
}

/* --- several ---------------------------------------------------------------------------------- */

WORLD_TEST(members_are_kept_and_taken_together)
{
    struct locker l = keeper_of("member");
    const char *path = cluster_path("member");
    struct zkl_mutex *two = retained(l.client, path);
    struct zkl_member members[] = {zkl_member_mutex(l.mutex), zkl_member_mutex(two)};
    struct zkl_multi *multi = world_multi(l.client, members, 2);

    check_ok(zkl_multi_lock(multi));
    proxy_reset_counts(l.proxy);
    check_ok(zkl_multi_unlock(multi, NULL));
    check_wait(requests(l.proxy) == 4, WAIT_MS);
    for (int i = 0; i < 10; i++) {
        check_ok(zkl_multi_lock(multi));
        check_num(zkl_mutex_hold_count(l.mutex), ==, 1);
        check_true(zkl_multi_token(multi, 1) != 0);
        check_ok(zkl_multi_unlock(multi, NULL));
    }
    check_num(requests(l.proxy), ==, 4);
    check_num(cluster_children(l.path) + cluster_children(path), ==, 2);
    cycle(l.mutex, 2); /* a call for one of them uses its kept node, too */
    check_num(requests(l.proxy), ==, 4);
    world_clear();
    check_wait(cluster_children(l.path) == 0 && cluster_children(path) == 0, WAIT_MS);
}

/* Goal: a call that waits for one lock does not keep another lock that comes after it. Method: a
 * multi-lock of both. Its client keeps the second lock, and another client holds the first lock and
 * then asks for the second. */
WORLD_TEST(what_is_kept_does_not_make_a_circle)
{
    struct locker l = keeper_of("circle"), other = locker_of(l.path, NULL);
    const char *path = cluster_path("circle");
    struct zkl_mutex *two = retained(l.client, path), *second = world_mutex(other.client, path);
    struct zkl_member members[] = {zkl_member_mutex(l.mutex), zkl_member_mutex(two)};
    struct zkl_multi *multi = world_multi(l.client, members, 2);

    cycle(two, 2);
    check_ok(zkl_mutex_lock(other.mutex));
    actor_begin(l.actor, do_multi_lock, multi);
    check_wait(cluster_children(l.path) == 2, WAIT_MS);
    check_ok(zkl_mutex_lock_for(second, AT_ONCE_MS));
    check_ok(zkl_mutex_unlock(second));
    check_ok(zkl_mutex_unlock(other.mutex));
    check_ok(actor_result(l.actor));
    check_ok(actor_do(l.actor, do_multi_unlock, multi));
}

/* --- not for --------------------------------------------------------------------------------- */

WORLD_TEST(others_refuse)
{
    struct zkl_client *client = world_client();
    struct zkl_mutex_options options = retaining(-1);
    struct zkl_mutex *mutex;

    check_num(zkl_mutex_new(&mutex, client, "/x", &options), ==, ZKL_EBADTIMEOUT);
    options.retain_ms = 3600001;
    check_num(zkl_mutex_new(&mutex, client, "/x", &options), ==, ZKL_EBADTIMEOUT);
    options.retain_ms = 0;
    options.local_handoffs_max = -1;
    check_num(zkl_mutex_new(&mutex, client, "/x", &options), ==, ZKL_EINVAL);
}
