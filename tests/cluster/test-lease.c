/* SPDX-License-Identifier: Apache-2.0 */
/* Holds that end by themselves, and holders that another client asks to release. */
#include "cluster.h"

#include "notes.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

static int acquire_leased(struct zkl_mutex *mutex, int64_t lease_ms)
{
    struct zkl_wait wait = ZKL_WAIT_INIT;
    wait.lease_ms = lease_ms;
    return zkl_mutex_acquire(mutex, &wait, NULL);
}

/* Goal: the window never reaches past the lease. At the end of the lease the hold is lost for that
 * reason, and the client deletes the node. A waiter gets the lock while the former owner has not
 * unlocked yet. Modes: F64. */
static void a_lease_ends_the_hold(void)
{
    const char *path = cluster_path("lease");
    struct notes notes = NOTES_INIT;
    struct zkl_client *client = world_client(), *other = world_client();
    struct zkl_mutex *mutex = world_mutex(client, path), *waiter = world_mutex(other, path);

    check_ok(zkl_mutex_set_callback(mutex, take_note, &notes));
    int64_t start = net_now_ms();
    check_ok(acquire_leased(mutex, 1500));
    check_num(zkl_mutex_window_ms(mutex), <=, 1500);
    check_num(zkl_mutex_window_ms(mutex), >, 0);
    check_ok(zkl_mutex_lock_for(waiter, WAIT_MS));
    check_num(net_now_ms() - start, >=, 1500);
    check_num(zkl_mutex_still_held(mutex, 0), ==, 0);
    check_num(zkl_mutex_token(mutex), ==, 0);
    check_wait(noted(&notes) == 1, WAIT_MS);
    check_num(notes.list[0].state, ==, ZKL_HOLD_LOST);
    check_num(notes.list[0].reason, ==, ZKL_REASON_LEASE_ENDED);
    check_num(zkl_mutex_lock(mutex), ==, ZKL_ELOST);
    check_num(zkl_mutex_renew(mutex, 1000), ==, ZKL_ELOST);
    check_num(zkl_mutex_unlock(mutex), ==, ZKL_ELOST);
    check_num(zkl_mutex_unlock(mutex), ==, ZKL_ENOTOWNER);
    check_ok(zkl_mutex_unlock(waiter));
}

static _Thread_local bool is_late; /* at the end of the next wait */
static atomic_bool may_go_on;

int __real_pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex);
int __wrap_pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex);

/* Late as a thread that is notified and gets no processor: without the mutex, which others need. */
int __wrap_pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex)
{
    int rc = __real_pthread_cond_wait(cond, mutex);

    if (is_late) {
        is_late = false;
        pthread_mutex_unlock(mutex);
        while (!atomic_load(&may_go_on))
            net_nap_ms(1);
        pthread_mutex_lock(mutex);
    }
    return rc;
}

static int do_acquire_late(void *take)
{
    is_late = true;
    return do_acquire(take);
}

/* Goal: no grant comes with an empty window, though its lease is over when the caller gets the processor: the lock is
 * asked for again. Method: the thread that waits stands still as it wakes, until its lease has ended. */
static void a_lease_that_is_over_is_no_grant(void)
{
    const char *path = cluster_path("short");
    struct zkl_client *client = world_client(), *other = world_client();
    struct zkl_mutex *mutex = world_mutex(client, path), *holder = world_mutex(other, path);
    struct take take = take_of(mutex);
    struct actor *actor = world_actor();
    struct wire_stat lapsed;
    char node[160];

    take.wait.lease_ms = ZKL_LEASE_MIN_MS - 1;
    check_num(do_acquire(&take), ==, ZKL_EBADTIMEOUT);
    check_ok(zkl_mutex_lock(holder));
    take.wait.lease_ms = 1000;
    atomic_store(&may_go_on, false);
    actor_begin(actor, do_acquire_late, &take);
    check_wait(cluster_children(path) == 2, WAIT_MS);
    cluster_child(path, 1, node, sizeof node);
    check_ok(wire_exists(raw, node, &lapsed));
    check_ok(zkl_mutex_unlock(holder));
    check_wait(cluster_children(path) <= 0, WAIT_MS); /* lapsed, and deleted */
    atomic_store(&may_go_on, true);
    check_ok(actor_result(actor));
    check_num(take.grant.token, >, lapsed.czxid);
    check_num(take.grant.window_ms, >, 0);
    int rc = actor_do(actor, do_unlock, mutex);
    check_true(rc == 0 || rc == ZKL_ELOST); /* this thread may be late, too */
}

/* Goal: a renewed lease lasts, also if the hold began without one. A re-entry keeps the lease.
 * Modes: F64. */
static void a_lease_can_be_renewed(void)
{
    const char *path = cluster_path("renew");
    struct zkl_client *client = world_client();
    struct zkl_mutex *mutex = world_mutex(client, path);

    check_num(zkl_mutex_renew(mutex, 100), ==, ZKL_ENOTOWNER);
    check_ok(acquire_leased(mutex, 1500));
    check_num(zkl_mutex_renew(mutex, 0), ==, ZKL_EBADTIMEOUT);
    for (int i = 0; i < 10; i++) {
        check_ok(zkl_mutex_renew(mutex, 1500));
        net_nap_ms(200);
    }
    check_num(zkl_mutex_still_held(mutex, 1), ==, 1);
    check_ok(zkl_mutex_lock(mutex));
    check_ok(zkl_mutex_unlock(mutex));
    check_ok(zkl_mutex_unlock(mutex));
    check_ok(zkl_mutex_lock(mutex));
    check_ok(zkl_mutex_renew(mutex, 100));
    check_wait(cluster_children(path) == 0, WAIT_MS);
    check_num(zkl_mutex_unlock(mutex), ==, ZKL_ELOST);
    check_num(acquire_leased(mutex, -1), ==, ZKL_EBADTIMEOUT);
}

/* Goal: an unlock before the end is an unlock like any other. Modes: F64. */
static void a_leased_hold_can_be_unlocked_in_time(void)
{
    const char *path = cluster_path("intime");
    struct zkl_client *client = world_client();
    struct zkl_mutex *mutex = world_mutex(client, path);

    for (int i = 0; i < 20; i++) {
        check_ok(acquire_leased(mutex, 10000));
        check_ok(zkl_mutex_unlock(mutex));
    }
    check_num(cluster_children(path), ==, 0);
}

static void revoke_all(struct zkl_mutex *mutex)
{
    char node[700];
    check_true(zkl_mutex_node_path(mutex, node, sizeof node) > 0);
    check_ok(wire_set(raw, cluster_at(node), "__REVOKE__", -1));
}

/* Goal: a holder hears of a request to release once, by its callback and when it asks. It keeps the
 * lock. Other data is no request. */
static void a_holder_is_asked_to_let_go(void)
{
    const char *path = cluster_path("revoke");
    char node[700];
    struct notes notes = NOTES_INIT;
    struct zkl_client *client = world_client();
    struct zkl_mutex *mutex = world_mutex(client, path);

    check_ok(zkl_mutex_set_callback(mutex, take_note, &notes));
    check_ok(zkl_mutex_lock(mutex));
    check_num(zkl_mutex_revoke_requested(mutex), ==, 0);
    check_true(zkl_mutex_node_path(mutex, node, sizeof node) > 0);
    check_ok(wire_set(raw, cluster_at(node), "something else", -1));
    revoke_all(mutex);
    revoke_all(mutex);
    check_wait(zkl_mutex_revoke_requested(mutex) == 1, WAIT_MS);
    check_wait(noted(&notes) == 1, WAIT_MS);
    check_num(notes.list[0].state, ==, ZKL_HOLD_REVOKE_REQUESTED);
    check_num(zkl_mutex_still_held(mutex, 1), ==, 1);
    check_ok(zkl_mutex_unlock(mutex));
    check_ok(zkl_mutex_lock(mutex));
    check_num(zkl_mutex_revoke_requested(mutex), ==, 0);
    check_ok(zkl_mutex_unlock(mutex));
    check_num(noted(&notes), ==, 1);
}

/* Goal: a request that was written while the lock was waited for, before anybody watched, counts. */
static void a_waiter_that_was_asked_hears_of_it_with_its_grant(void)
{
    const char *path = cluster_path("early");
    char node[700];
    struct zkl_mutex_options options = ZKL_MUTEX_OPTIONS_INIT;
    struct zkl_client *client = world_client(), *other = world_client();
    struct zkl_mutex *holder = world_mutex(other, path), *mutex;
    struct actor *actor = world_actor();

    options.revocable = 1;
    mutex = world_mutex_with(client, path, &options);
    check_ok(zkl_mutex_lock(holder));
    actor_begin(actor, do_lock, mutex);
    check_wait(cluster_children(path) == 2, WAIT_MS);
    cluster_child(path, 1, node, sizeof node);
    check_ok(wire_set(raw, node, "__REVOKE__", -1));
    check_ok(zkl_mutex_unlock(holder));
    check_ok(actor_result(actor));
    check_wait(actor_do(actor, (actor_fn)(void *)zkl_mutex_revoke_requested, mutex) == 1, WAIT_MS);
    check_ok(actor_do(actor, do_unlock, mutex));
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        world_test(a_lease_ends_the_hold),
        world_test(a_lease_that_is_over_is_no_grant),
        world_test(a_lease_can_be_renewed),
        world_test(a_leased_hold_can_be_unlocked_in_time),
        world_test(a_holder_is_asked_to_let_go),
        world_test(a_waiter_that_was_asked_hears_of_it_with_its_grant),
    };
    return CLUSTER_MAIN(argc, argv, "lease", tests);
}
