/* SPDX-License-Identifier: Apache-2.0 */
/* The unlock that does not wait for the server. */
#include "cluster.h"

#define CYCLES 100

static struct locker posting(const char *name)
{
    struct zkl_mutex_options options = ZKL_MUTEX_OPTIONS_INIT;

    options.posted_unlock = 1;
    return locker_behind(cluster_path(name), &options, SESSION_MS);
}

/* Goal: unlock returns before the server answers the delete. A thread can acquire the handle again
 * immediately: the handle's own leftover is not in its way. Method: a proxy holds the answer to the
 * first delete back. Modes: F14. */
WORLD_TEST(a_posted_unlock_returns_before_the_answer)
{
    struct locker l = posting("posted");

    check_ok(zkl_mutex_lock(l.mutex));
    check_ok(proxy_hold_reply(l.proxy, PROXY_DELETE, 1));
    check_ok(zkl_mutex_unlock(l.mutex));
    check_num(zkl_mutex_hold_count(l.mutex), ==, 0);
    check_ok(proxy_wait_held(l.proxy, WAIT_MS));
    check_wait(cluster_children(l.path) == 0, WAIT_MS);
    proxy_release(l.proxy);
    for (int i = 0; i < CYCLES; i++) {
        check_ok(zkl_mutex_trylock(l.mutex));
        check_ok(zkl_mutex_unlock(l.mutex));
    }
    check_wait(cluster_children(l.path) == 0, WAIT_MS);
}

/* Goal: a posted delete that the server never saw is sent again. Method: it is lost with the link.
 * Modes: F13. */
WORLD_TEST(a_posted_delete_that_was_lost_is_sent_again)
{
    struct locker l = posting("posted-lost"), next = locker_of(l.path, NULL);

    check_ok(zkl_mutex_lock(l.mutex));
    check_ok(proxy_drop_request(l.proxy, PROXY_DELETE, 1, PROXY_THEN_CUT));
    check_ok(zkl_mutex_unlock(l.mutex));
    check_ok(proxy_wait_dropped(l.proxy, WAIT_MS));
    check_ok(zkl_mutex_lock_for(next.mutex, WAIT_MS));
    check_ok(zkl_mutex_unlock(next.mutex));
}

/* Goal: close leaves no node whose delete was posted. Method: the proxy holds the delete back until
 * unlock has returned. Then the test frees the client. */
WORLD_TEST(a_close_leaves_nothing_posted)
{
    struct locker l = posting("posted-close");

    check_ok(zkl_mutex_lock(l.mutex));
    check_ok(proxy_hold_request(l.proxy, PROXY_DELETE, 1));
    check_ok(zkl_mutex_unlock(l.mutex));
    check_ok(proxy_wait_held(l.proxy, WAIT_MS));
    proxy_release(l.proxy);
    world_drop(l.mutex);
    world_drop(l.client);
    check_num(cluster_children(l.path), ==, 0);
}
