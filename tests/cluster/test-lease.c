/* SPDX-License-Identifier: Apache-2.0 */
/* A lease that is over before its grant. */
#include "cluster.h"

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
    struct locker l = locker_of(cluster_path("short"), NULL), holder = locker_of(l.path, NULL);
    struct wire_stat lapsed;
    const char *node;

    l.take.wait.lease_ms = ZKL_LEASE_MIN_MS - 1;
    check_num(do_acquire(&l.take), ==, ZKL_EBADTIMEOUT);
    check_ok(zkl_mutex_lock(holder.mutex));
    l.take.wait.lease_ms = 1000;
    atomic_store(&may_go_on, false);
    actor_begin(l.actor, do_acquire_late, &l.take);
    check_wait(cluster_children(l.path) == 2, WAIT_MS);
    node = child_of(l.path, 1);
    check_ok(wire_exists(raw, node, &lapsed));
    check_ok(zkl_mutex_unlock(holder.mutex));
    check_wait(cluster_children(l.path) == 0, WAIT_MS); /* lapsed, and deleted */
    atomic_store(&may_go_on, true);
    check_ok(actor_result(l.actor));
    check_num(l.take.grant.token, >, lapsed.czxid);
    check_num(l.take.grant.window_ms, >, 0);
    int rc = actor_do(l.actor, do_unlock, l.mutex);
    check_true(rc == 0 || rc == ZKL_ELOST); /* this thread may be late, too */
}
