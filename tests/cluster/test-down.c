/* SPDX-License-Identifier: Apache-2.0 */
/* A server that is killed and comes back: every call has its bound, and holds and places in the
 * queue live as long as the session does. In test-silent.c it stands still, in tests/fault/test-wipe.c it
 * restarts under a holder and a waiter, and test-close.c there closes without it. */
#include "outage.h"

#define MS INT64_C(1000000)

/* Goal: whether the link is known to be down or not. Modes: F17. */
OUTAGE_TEST(a_wait_without_a_server_ends_in_time, RESTART_SESSION_MS)
{
    struct zkl_cancel *cancel = world_cancel();
    server_down();
    for (int i = 0; i < 2; i++) {
        int64_t start = took_begin();
        check_num(zkl_mutex_lock_for(s->mutex, 300), ==, ZKL_ETIMEDOUT);
        check_took(start, 300, 300);
        check_wait(zkl_client_get_state(s->client) == ZKL_CLIENT_SUSPENDED, WAIT_MS);
    }
    s->take.wait.cancel = cancel;
    actor_begin(s->actor, do_acquire, &s->take);
    int64_t start = took_begin();
    zkl_cancel_set(cancel);
    check_num(actor_result(s->actor), ==, ZKL_ECANCELED);
    check_took(start, 0, 0);
    server_back();
}

OUTAGE_TEST(a_waiter_in_the_queue_ends_in_time, RESTART_SESSION_MS)
{
    struct zkl_cancel *cancel = world_cancel();
    check_ok(zkl_mutex_lock(s->mutex));
    s->take.wait.cancel = cancel;
    begin_waiting(s);
    server_down();
    check_wait(zkl_client_get_state(s->other) == ZKL_CLIENT_SUSPENDED, WAIT_MS);
    int64_t start = took_begin();
    zkl_cancel_set(cancel);
    check_num(actor_result(s->actor), ==, ZKL_ECANCELED);
    check_took(start, 0, 0);
    server_back();
    check_wait(cluster_children(s->path) == 1, WAIT_MS);
    /* Until the hold is proved again its unlock would not be confirmed. */
    check_wait(zkl_mutex_still_held(s->mutex, RESTART_SESSION_MS / 2) == 1, WAIT_MS);
    int rc = zkl_mutex_unlock(
        s->mutex); /* a server that is busy as it begins may drop the link once more */
    check_true(rc == 0 || rc == ZKL_EUNCONFIRMED);
}

/* Modes: F17. */
OUTAGE_TEST(a_try_without_a_server_ends_after_a_session_timeout, 1000)
{
    server_down();
    int64_t start = took_begin();
    check_num(zkl_mutex_trylock(s->mutex), ==, ZKL_EDISCONNECTED);
    check_took(start, 1000, 1000);
    server_back();
}

/* Goal: an unlock without a server does not wait for one, but says that no answer came. The client
 * deletes the node once the server is back, although the session lives on. Modes: F13. */
OUTAGE_TEST(an_unlock_without_a_server_is_unconfirmed, RESTART_SESSION_MS)
{
    for (int i = 0; i < 2; i++) { /* the link is known to be down, or not yet */
        check_ok(zkl_mutex_lock_for(s->mutex, WAIT_MS));
        check_num(cluster_children(s->path), ==, 1);
        server_down();
        if (i == 0)
            check_wait(state_count(s, ZKL_HOLD_SUSPECT) == 1, WAIT_MS);
        int64_t start = took_begin();
        check_num(zkl_mutex_unlock(s->mutex), ==, ZKL_EUNCONFIRMED);
        check_took(start, 0, 0);
        check_num(zkl_mutex_hold_count(s->mutex), ==, 0);
        server_back();
        check_wait(cluster_children(s->path) == 0, RESTART_SESSION_MS - 2000);
    }
    check_num(state_count(s, ZKL_HOLD_LOST), ==, 0);
}

OUTAGE_TEST(a_lock_is_granted_when_the_server_is_back, RESTART_SESSION_MS)
{
    server_down();
    check_wait(zkl_client_get_state(s->other) == ZKL_CLIENT_SUSPENDED, WAIT_MS);
    s->take.wait.deadline_ns = zkl_now_ns() + 10 * WAIT_MS * MS; /* the start takes a while */
    actor_begin(s->actor, do_acquire, &s->take);
    server_back();
    check_ok(actor_result(s->actor));
    check_num(cluster_children(s->path), ==, 1);
    check_num(s->take.grant.window_ms, >, 0);
    check_ok(actor_do(s->actor, do_unlock, s->others));
}

/* Goal: it does not claim the session's end: by itself, or in zkl_client_free. */
WORLD_TEST(a_close_by_operation_without_a_server_ends)
{
    for (int freed = 0; freed < 2; freed++) {
        struct completion done = {0};
        struct scene *s =
            scene_begin("close-async", RESTART_SESSION_MS); /* its own client is another one */
        struct zkl_client *client = world_client_of(SHORT_SESSION_MS);
        server_down();
        check_wait(zkl_client_get_state(client) == ZKL_CLIENT_SUSPENDED, WAIT_MS);
        check_ok(zkl_client_close_async(client, note_completion, &done));
        if (freed)
            world_drop(client);
        check_num(completion_code(&done), ==, ZKL_ETIMEDOUT);
        if (!freed)
            world_drop(client);
        server_back();
        scene_end(s);
        world_clear();
    }
}
