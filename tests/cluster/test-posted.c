/* SPDX-License-Identifier: Apache-2.0 */
/* The unlock that does not wait for the server. */
#include "cluster.h"

#include "nodes.h"

#define CYCLES 100

static struct zkl_mutex *posting_mutex(struct zkl_client *client, const char *path)
{
    struct zkl_mutex_options options = ZKL_MUTEX_OPTIONS_INIT;

    options.posted_unlock = 1;
    return world_mutex_with(client, path, &options);
}

/* Goal: unlock returns before the server answers the delete. A thread can acquire the handle again
 * immediately: the handle's own leftover is not in its way. Method: a proxy holds the answer to the
 * first delete back. Modes: F14. */
WORLD_TEST(a_posted_unlock_returns_before_the_answer)
{
    const char *path = cluster_path("posted");
    struct proxy *proxy;
    struct zkl_client *client = world_client_through(&proxy, SESSION_MS);
    struct zkl_mutex *mutex = posting_mutex(client, path);

    check_ok(zkl_mutex_lock(mutex));
    check_ok(proxy_hold_reply(proxy, PROXY_DELETE, 1));
    check_ok(zkl_mutex_unlock(mutex));
    check_num(zkl_mutex_hold_count(mutex), ==, 0);
    check_ok(proxy_wait_held(proxy, WAIT_MS));
    check_wait(cluster_children(path) == 0, WAIT_MS);
    proxy_release(proxy);
    for (int i = 0; i < CYCLES; i++) {
        check_ok(zkl_mutex_trylock(mutex));
        check_ok(zkl_mutex_unlock(mutex));
    }
    check_wait(cluster_children(path) <= 0, WAIT_MS);
}

/* Goal: a posted delete that the server never saw is sent again. Method: it is lost with the link.
 * Modes: F13. */
WORLD_TEST(a_posted_delete_that_was_lost_is_sent_again)
{
    const char *path = cluster_path("posted-lost");
    struct proxy *proxy;
    struct zkl_client *client = world_client_through(&proxy, SESSION_MS), *other = world_client();
    struct zkl_mutex *mutex = posting_mutex(client, path), *next = world_mutex(other, path);

    check_ok(zkl_mutex_lock(mutex));
    check_ok(proxy_drop_request(proxy, PROXY_DELETE, 1, PROXY_THEN_CUT));
    check_ok(zkl_mutex_unlock(mutex));
    check_ok(proxy_wait_dropped(proxy, WAIT_MS));
    check_ok(zkl_mutex_lock_for(next, WAIT_MS));
    check_ok(zkl_mutex_unlock(next));
}

/* Goal: close leaves no node whose delete was posted. Method: the proxy holds the delete back until
 * unlock has returned. Then the test frees the client. */
WORLD_TEST(a_close_leaves_nothing_posted)
{
    const char *path = cluster_path("posted-close");
    struct proxy *proxy;
    struct zkl_client *client = world_client_through(&proxy, SESSION_MS);
    struct zkl_mutex *mutex = posting_mutex(client, path);

    check_ok(zkl_mutex_lock(mutex));
    check_ok(proxy_hold_request(proxy, PROXY_DELETE, 1));
    check_ok(zkl_mutex_unlock(mutex));
    check_ok(proxy_wait_held(proxy, WAIT_MS));
    proxy_release(proxy);
    world_drop(mutex);
    world_drop(client);
    check_num(cluster_children(path), <=, 0);
}
