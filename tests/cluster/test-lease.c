/* SPDX-License-Identifier: Apache-2.0 */
/* A lease that is over before its grant, and a request to release that comes before it. */
#include "cluster.h"

#include <pthread.h>
#include <stdatomic.h>

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
WORLD_TEST(a_lease_that_is_over_is_no_grant)
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

/* Goal: a request that was written while the lock was waited for, before anybody watched, counts. */
WORLD_TEST(a_waiter_that_was_asked_hears_of_it_with_its_grant)
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
