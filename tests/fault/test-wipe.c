/* SPDX-License-Identifier: Apache-2.0 */
/* The only server restarts, stands still, is away for long, or loses all it knew. */
#include "fault.h"

#define SESSION_MS 2000
#define LONG_MS 10000 /* where it must live: a busy machine's server may take seconds to start */

static const char *const path = "/wipe/m";

/* A holder and a waiter on two clients. */
struct bench {
    struct holder *h;
    struct zkl_client *other;
    struct zkl_mutex *wanted;
    struct actor *waiter;
    int threads, sockets; /* other descriptors may come and go with a sanitizer */
};

static struct bench *begin(int session_ms)
{
    struct bench *b = world_alloc(sizeof *b);

    b->h = world_holder(world_direct(session_ms), path);
    b->other = world_direct(session_ms);
    b->wanted = world_mutex(b->other, path);
    b->waiter = world_actor();
    act_begin(b->waiter, act_lock, b->wanted, NULL);
    struct wire *w = fault_wire();
    check_wait(fault_children(w, path) == 2, WAIT_MS);
    wire_close(w);
    b->threads = fault_threads();
    b->sockets = fault_sockets();
    return b;
}

static void start_server(void)
{
    check_ok(zks_start_node(server, 0));
    check_ok(zks_wait_ready(server, ZKS_READY_MS));
}

/* Both clients are connected, and nothing is left of second handles. */
static void check_settled(struct bench *b)
{
    check_wait(fault_connected(b->h->client) && fault_connected(b->other), WAIT_MS);
    check_wait(fault_threads() == b->threads, WAIT_MS);
    check_wait(fault_sockets() == b->sockets, WAIT_MS);
}

/* The waiter acquires it, releases it, and nothing is left. */
static void hand_over(struct bench *b)
{
    check_ok(act_end(b->waiter, WAIT_MS));
    check_num(act_do(b->waiter, act_window, b->wanted, NULL), >, 0);
    check_ok(act_do(b->waiter, act_unlock, b->wanted, NULL));
    struct wire *w = fault_wire();
    fault_check_rest(b->h->client, w, path, WAIT_MS);
    fault_check_rest(b->other, w, path, WAIT_MS);
    wire_close(w);
}

/* The hold has its token and session, and no callback reported a loss. */
static void check_kept(struct bench *b)
{
    check_settled(b);
    check_wait(b->h->told.held == b->h->told.suspect, WAIT_MS);
    fault_check_held(b->h);
    check_true(act_busy(b->waiter));
    check_ok(zkl_mutex_unlock(b->h->mutex));
    hand_over(b);
}

/* The hold is lost, and the callback reports that once; the handle locks again behind the
 * waiter. */
static void check_lost(struct bench *b)
{
    check_num(zkl_mutex_window_ms(b->h->mutex), ==, 0);
    check_num(zkl_mutex_token(b->h->mutex), ==, 0);
    check_num(zkl_mutex_unlock(b->h->mutex), ==, ZKL_ELOST);
    hand_over(b);
    check_ok(zkl_mutex_lock_for(b->h->mutex, WAIT_MS));
    check_ok(zkl_mutex_unlock(b->h->mutex));
    check_num(b->h->told.lost, ==, 1);
    check_settled(b);
}

/* By request and by force. */
WORLD_TEST(restart_keeps_hold_and_place)
{
    struct bench *b = begin(LONG_MS);

    for (int i = 1; i <= 2; i++) {
        check_ok(i == 1 ? zks_stop_node(server, 0) : zks_kill_node(server, 0));
        check_wait(b->h->told.suspect >= i, WAIT_MS); /* while there is no server */
        start_server();
        check_wait(fault_connected(b->h->client) && b->h->told.held == b->h->told.suspect, WAIT_MS);
    }
    check_kept(b);
}

/* More than two timeouts, for which second handles were opened: the first handle is preferred. */
WORLD_TEST(long_outage_keeps_the_session)
{
    struct bench *b = begin(LONG_MS);

    check_ok(zks_stop_node(server, 0));
    check_wait(zkl_mutex_window_ms(b->h->mutex) == 0, WAIT_MS);
    check_wait(fault_threads() == b->threads + 4, WAIT_MS); /* two for each second handle */
    check_true(b->h->told.suspect > 0 && b->h->told.lost == 0);
    start_server();
    check_kept(b);
}

WORLD_TEST(short_stop_keeps_hold_and_place)
{
    struct bench *b = begin(LONG_MS);

    for (int i = 1; i <= test_length(30, 3); i++) {
        check_ok(zks_pause_node(server, 0));
        net_nap_ms(i * 131 % (SESSION_MS / 3)); /* the fault itself */
        check_ok(zks_resume_node(server, 0));
        check_wait(zkl_mutex_window_ms(b->h->mutex) > SESSION_MS / 2, WAIT_MS);
    }
    check_kept(b);
}

/* The holder is unproved before another client can have the lock. Modes: F8. */
WORLD_TEST(long_stop_ends_in_a_known_state)
{
    struct bench *b = begin(SESSION_MS);

    check_ok(zks_pause_node(server, 0));
    int64_t start_ms = net_now_ms();
    fault_check_window_ends(b->h->mutex, start_ms + SESSION_MS * 15 / 16);
    check_true(act_busy(b->waiter));
    check_wait(net_now_ms() > start_ms + SESSION_MS * 3 / 2, WAIT_MS); /* the fault itself */
    check_ok(zks_resume_node(server, 0));
    check_settled(b);
    check_wait(b->h->told.lost > 0 || zkl_mutex_window_ms(b->h->mutex) > 0, WAIT_MS);
    if (b->h->told.lost > 0)
        check_lost(b);
    else
        check_kept(b);
}

/* A server that has lost all its data never says that the session ended, and libzookeeper tries for
 * ever. The client declares the hold expired after three negotiated timeouts and some grace. */
WORLD_TEST(wiped_server_ends_the_session)
{
    struct bench *b = begin(SESSION_MS);

    int64_t start_ms = net_now_ms();
    check_ok(zks_stop_node(server, 0));
    check_wait(b->h->told.suspect > 0, WAIT_MS);
    check_ok(zks_wipe_node(server, 0));
    start_server();
    check_wait(net_now_ms() - start_ms >= 3 * SESSION_MS, WAIT_MS); /* the fault itself */
    lag_begin();
    check_wait(b->h->told.lost > 0, WAIT_MS);
    check_num(lag_end_ms(), <=, 3000);
    check_num(net_now_ms() - start_ms, >=, 3 * SESSION_MS);
    check_num(b->h->told.reason, ==, ZKL_REASON_EXPIRED);
    check_lost(b);
}
