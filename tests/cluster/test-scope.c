/* SPDX-License-Identifier: Apache-2.0 */
/* The scope guard. */
#include "cluster.h"

static int in_block(struct zkl_mutex *mutex)
{
    ZKL_MUTEX_SCOPE(scope, mutex);

    return scope.rc == 0 ? zkl_mutex_hold_count(mutex) : scope.rc;
}

static int in_loop(struct zkl_mutex *mutex)
{
    for (;;) {
        ZKL_MUTEX_SCOPE(scope, mutex);
        if (scope.rc == 0)
            break;
    }
    return zkl_mutex_hold_count(mutex);
}

static int early(struct zkl_mutex *mutex, int *rc)
{
    ZKL_MUTEX_SCOPE(scope, mutex);

    *rc = zkl_mutex_scope_end(&scope);
    return zkl_mutex_hold_count(mutex);
}

/* Goal: a guard locks and nests. It unlocks when the thread leaves its block in any way. A thread
 * may also unlock it before that, and the end of the block then unlocks nothing. */
WORLD_TEST(a_guard_ends_with_its_block)
{
    struct zkl_client *client = world_client();
    struct zkl_mutex *mutex = world_mutex(client, cluster_path("scope"));
    int rc = 1;

    check_num(in_block(mutex), ==, 1);
    check_num(zkl_mutex_hold_count(mutex), ==, 0);
    check_num(in_loop(mutex), ==, 0);
    struct zkl_mutex *loose = world_semaphore_mutex(client, cluster_path("loose"));
    check_num(in_block(loose), ==, 1);
    check_num(zkl_mutex_still_held(loose, 0), ==, 0);
    check_ok(zkl_mutex_lock(mutex));
    check_num(in_block(mutex), ==, 2);
    check_num(zkl_mutex_hold_count(mutex), ==, 1);
    check_num(early(mutex, &rc), ==, 1);
    check_ok(rc);
    check_num(zkl_mutex_hold_count(mutex), ==, 1);
    check_ok(zkl_mutex_unlock(mutex));
    check_closed(zkl_client_close(client, WAIT_MS));
    check_num(in_block(mutex), ==, ZKL_ECLOSED); /* nothing to unlock */
    check_ok(early(mutex, &rc));
    check_ok(rc);
}
