/* SPDX-License-Identifier: Apache-2.0 */
/* A server that stands still: every call has its bound, and holds live as long as the session
 * does. test-down.c kills it. */
#include "outage.h"

#define MS INT64_C(1000000)
/* libzookeeper gives the link up after two thirds of the session timeout without an answer. */
#define LINK_MS (SHORT_SESSION_MS * 2 / 3)
#define SILENT_SHORT_MS (SHORT_SESSION_MS / 4)

/* Resume the server when it has stood still for ms. The silence is part of the scene, and no wait
 * for a result. */
static void server_silent_for(int64_t since_ms, int ms)
{
    check_wait(net_now_ms() - since_ms >= ms, ms + WAIT_MS);
    check_ok(zks_resume_node(server, 0));
}

/* The link of this client broke, or the silence was long enough for it. */
static void silent_until_the_link_breaks(struct zkl_client *client)
{
    check_wait(zkl_client_get_state(client) != ZKL_CLIENT_CONNECTED, WAIT_MS);
    check_ok(zks_resume_node(server, 0));
}

static void check_silent_lock(bool longer)
{
    struct scene *s = scene_begin("silent-lock", SHORT_SESSION_MS);
    check_ok(zks_pause_node(server, 0));
    int64_t start = net_now_ms();
    s->take.wait.deadline_ns = zkl_now_ns() + 10 * WAIT_MS * MS;
    actor_begin(s->actor, do_acquire, &s->take);
    if (longer)
        silent_until_the_link_breaks(s->other);
    else
        server_silent_for(start, SILENT_SHORT_MS);
    check_ok(actor_result(s->actor));
    check_num(s->take.grant.window_ms, >, 0);
    check_wait(cluster_children(s->path) <= 1, WAIT_MS);
    check_others_unlock(s);
    scene_end(s);
}

/* Goal: it is granted over the same link, or over the next one, with one node in either case. */
WORLD_TEST(a_lock_survives_a_silent_server)
{
    check_silent_lock(false);
    check_silent_lock(true);
}

/* Modes: F2. */
OUTAGE_TEST(a_lock_with_a_deadline_ends_although_the_server_is_silent, SHORT_SESSION_MS)
{
    check_ok(zks_pause_node(server, 0));
    for (int i = 0; i < 3; i++) {
        int64_t start = took_begin();
        check_num(zkl_mutex_lock_for(s->mutex, 200), ==, ZKL_ETIMEDOUT);
        check_took(start, 200, 200);
    }
    check_ok(zks_resume_node(server, 0));
}

OUTAGE_TEST(a_try_waits_for_a_silent_server_one_session_timeout, SHORT_SESSION_MS)
{
    check_ok(zks_pause_node(server, 0));
    int64_t start = net_now_ms();
    s->take.wait.flags = ZKL_WAIT_TRY;
    actor_begin(s->actor, do_acquire, &s->take);
    server_silent_for(start, SILENT_SHORT_MS);
    check_ok(actor_result(s->actor));
    check_others_unlock(s);
    check_ok(zks_pause_node(server, 0));
    start = took_begin();
    check_num(zkl_mutex_trylock(s->mutex), ==, ZKL_EDISCONNECTED);
    check_took(start, SHORT_SESSION_MS, SHORT_SESSION_MS);
    check_ok(zks_resume_node(server, 0));
}

static void check_silent_unlock(bool longer)
{
    struct scene *s = scene_begin("silent-unlock", SHORT_SESSION_MS);
    check_ok(actor_do(s->actor, do_lock, s->others));
    check_ok(zks_pause_node(server, 0));
    int64_t start = took_begin();
    actor_begin(s->actor, do_unlock, s->others);
    if (!longer)
        server_silent_for(start, SILENT_SHORT_MS);
    int rc = actor_result(s->actor);
    int least = longer ? LINK_MS / 2 : SILENT_SHORT_MS; /* of what may have begun before */
    check_took(start, lag_is_slow() ? 0 : least, SHORT_SESSION_MS * 3 / 4);
    if (!was_late(rc))
        check_num(rc, ==, longer ? ZKL_EUNCONFIRMED : 0);
    check_ok(zks_resume_node(server, 0));
    check_wait(cluster_children(s->path) == 0, WAIT_MS);
    scene_end(s);
}

/* Goal: an unlock waits for the answer of a server that is silent for a moment. It gives up when
 * the link breaks or the window ends. The node is removed when the server runs again. */
WORLD_TEST(an_unlock_waits_for_a_silent_server_as_long_as_the_window)
{
    check_silent_unlock(false);
    check_silent_unlock(true);
}

static int do_close(void *client)
{
    return zkl_client_close(client, WAIT_MS);
}

OUTAGE_TEST(a_close_waits_for_a_silent_server, SHORT_SESSION_MS)
{
    check_ok(actor_do(s->actor, do_lock, s->others));
    check_ok(zks_pause_node(server, 0));
    int64_t start = net_now_ms();
    actor_begin(s->actor, do_close, s->other);
    server_silent_for(start, SILENT_SHORT_MS);
    int rc = actor_result(s->actor);
    if (rc != ZKL_ETIMEDOUT || !lag_is_slow()) { /* closed.h */
        check_ok(rc);
        check_num(cluster_children(s->path), ==, 0);
    }
    check_wait(cluster_children(s->path) == 0, WAIT_MS);
    check_num(actor_do(s->actor, do_unlock, s->others), ==, ZKL_ELOST);
}

OUTAGE_TEST(a_close_gives_a_silent_server_up, SHORT_SESSION_MS)
{
    check_ok(actor_do(s->actor, do_lock, s->others));
    check_ok(zks_pause_node(server, 0));
    int64_t start = took_begin();
    check_num(actor_do(s->actor, do_close, s->other), ==, ZKL_ETIMEDOUT);
    check_took(start, 0, LINK_MS);
    server_silent_for(start, LINK_MS + LINK_MS / 4);
    check_num(actor_do(s->actor, do_unlock, s->others), ==, ZKL_ELOST);
    check_wait(cluster_children(s->path) == 0, WAIT_MS);
}

/* Goal: a hold lives through a silence that is shorter than the session. The callback says SUSPECT,
 * if the link broke or the window ended, and then HELD. Through a longer silence the hold is lost
 * once. */
OUTAGE_TEST(a_hold_lives_through_a_silence, 4000)
{
    check_ok(zkl_mutex_lock(s->mutex));
    check_ok(zks_pause_node(server, 0));
    check_wait(state_count(s, ZKL_HOLD_SUSPECT) == 1, WAIT_MS);
    check_ok(zks_resume_node(server, 0));
    check_wait(state_count(s, ZKL_HOLD_HELD) + state_count(s, ZKL_HOLD_LOST) == 1, WAIT_MS);
    bool held = zkl_mutex_still_held(s->mutex, 1000) == 1;
    check_num(state_count(s, ZKL_HOLD_HELD), >=, held);
    int rc = zkl_mutex_unlock(s->mutex); /* on a slow machine it may be lost by now */
    check_true(rc == ZKL_ELOST || (rc == 0 && state_count(s, ZKL_HOLD_LOST) == 0));
    check_wait(state_count(s, ZKL_HOLD_LOST) == (rc == ZKL_ELOST), WAIT_MS);
}
