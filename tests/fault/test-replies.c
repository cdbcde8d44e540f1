/* SPDX-License-Identifier: Apache-2.0 */
/* One answer of the server is lost, of every kind that the library waits for: the request has been
 * carried out, and the client does not know. The client is behind a frame proxy; what is really on
 * the server is seen by a raw client. */
#include "bench.h"
#include "bytes.h"

#include <stdio.h>
#include <stdlib.h>

#include "driver/handle.h"

#define SESSION_MS lag_session_ms(2000)
/* Where a link is cut: a busy machine is not to lose it once more by silence. */
#define CUT_SESSION_MS lag_session_ms(6000)
#define REST_MS 1000 /* after the link is back: nothing of ours may be left by then */
#define LATER_MS 50
#define SOON_MS 1000 /* far below the 1.5 s for which libzookeeper waits */

static const char *const path = "/replies/m";

#define REPLY_TEST(name, session_ms)                                                               \
    BENCH_TEST_OF(name, bench_make_path(bench_begin(path, session_ms, QUIET_MS)))

static bool connected(const struct bench *b)
{
    return zkl_client_get_state(b->client) == ZKL_CLIENT_CONNECTED;
}

/* The link is back, and soon after nothing is left. */
static void check_rest(struct bench *b)
{
    check_wait(connected(b), WAIT_MS);
    fault_check_rest(b->client, b->wire, path, REST_MS);
}

static void check_only_ours(struct bench *b)
{
    fault_check_only(b->client, b->mutex, b->wire, path);
}

/* The path is not there: the answer to one of its parts' creation is lost; it is made all the
 * same. */
REPLY_TEST(cut_before_the_answer_to_a_parents_creation, CUT_SESSION_MS)
{
    for (int nth = 1; nth <= 2; nth++) {
        check_ok(wire_delete_tree(b->wire, "/replies"));
        check_ok(proxy_drop_reply(b->proxy, PROXY_CREATE_CONTAINER, nth, PROXY_THEN_CUT));
        check_ok(zkl_mutex_lock_for(b->mutex, WAIT_MS));
        check_ok(proxy_wait_dropped(b->proxy, 0));
        check_only_ours(b);
        check_ok(zkl_mutex_unlock(b->mutex));
        check_rest(b);
    }
}

struct note {
    char path[700];
};

/* Runs in the proxy: the path of the latest create, without the number. */
static size_t note_path(enum proxy_dir dir, int op, unsigned char *frame, size_t size, void *arg)
{
    struct note *note = arg;

    if (dir == PROXY_TO_SERVER && op == PROXY_CREATE2 && size >= 12)
        snprintf(note->path, sizeof note->path, "%.*s", bytes_get32(frame + 8), frame + 12);
    return size;
}

/* A node with the GUID of the lost create, but of another session, is not ours: the create never
 * reaches the server, and a raw client makes the node in its own session. The client must not adopt
 * it, as the server removes it with that session (CURATOR-498); the client queues behind it. Modes:
 * F4. */
REPLY_TEST(node_of_another_session_is_not_adopted, CUT_SESSION_MS)
{
    struct actor *a = b->actor;
    struct note note = {0};
    char made[720];

    proxy_set_hook(b->proxy, note_path, &note);
    check_ok(proxy_refuse(b->proxy, true));
    check_ok(proxy_drop_request(b->proxy, PROXY_CREATE2, 1, PROXY_THEN_CUT));
    actor_begin(a, act_lock, b->mutex, NULL);
    check_ok(proxy_wait_dropped(b->proxy, WAIT_MS));
    proxy_set_hook(b->proxy, NULL, NULL);
    check_ok(wire_create(b->wire, note.path, "", WIRE_EPHEMERAL_SEQUENTIAL, made, sizeof made));
    check_ok(proxy_refuse(b->proxy, false));
    check_wait(fault_children(b->wire, path) == 2, WAIT_MS);
    check_wait(fault_watches(b->client) == 2, WAIT_MS);
    check_true(actor_busy(a));
    check_ok(wire_delete(b->wire, made, -1));
    check_ok(actor_end(a, WAIT_MS));
    check_ok(actor_do(a, act_unlock, b->mutex, NULL));
    check_rest(b);
}

/* --- the caller gives up in between ----------------------------------------------------------- */

static int cancel_when_dropped(struct zkl_mutex *unused, void *arg)
{
    struct bench *b = arg;
    int rc = proxy_wait_dropped(b->proxy, WAIT_MS);

    (void)unused;
    zkl_cancel_set(b->cancel);
    return rc;
}

/* The caller gives up while the client recovers from the lost create, and the recovery loses an
 * answer as well. Then the same thread locks again: it gets a new node, and the client deletes the
 * old one. A second create that a cut link takes along would be a sign that the server does not know
 * it, and the next ones would be others: so the client knows of the cut by then. Modes: F2. */
REPLY_TEST(give_up_during_recovery_and_lock_again, SESSION_MS)
{
    static const enum proxy_op ops[] = {PROXY_MULTI, PROXY_CHILDREN, PROXY_EXISTS};

    for (int i = 0; i < test_length(60, 6); i++) {
        enum proxy_op op = ops[i % 3];
        check_ok(proxy_drop_reply(b->proxy, PROXY_CREATE2, 1, PROXY_THEN_CUT));
        check_ok(proxy_drop_reply(b->proxy, op, op == PROXY_CHILDREN ? 2 : 1, PROXY_THEN_SILENT));
        check_ok(zkl_cancel_new(&b->cancel));
        actor_begin(b->actor, cancel_when_dropped, NULL, b);
        int rc = zkl_mutex_lock_until(b->mutex, ZKL_NO_DEADLINE, b->cancel);
        check_ok(actor_end(b->actor, 2 * WAIT_MS));
        check_num(rc, ==, ZKL_ECANCELED);
        zkl_cancel_free(b->cancel);
        int64_t links = fault_links(b->client);
        proxy_cut(b->proxy);
        check_wait(!connected(b) || fault_links(b->client) > links, WAIT_MS);
        check_ok(zkl_mutex_lock_for(b->mutex, WAIT_MS));
        check_wait(fault_children(b->wire, path) == 1, REST_MS);
        check_only_ours(b);
        check_ok(zkl_mutex_unlock(b->mutex));
        check_rest(b);
    }
}

/* --- watches ---------------------------------------------------------------------------------- */

/* The event that would wake the waiter is lost. */
REPLY_TEST(lost_event_is_made_up_for, SESSION_MS)
{
    struct actor *a = b->actor;

    for (int i = 0; i < test_length(100, 6); i++) {
        check_ok(zkl_mutex_lock(b->rival));
        actor_begin(a, act_lock, b->mutex, NULL);
        check_wait(fault_server_watches(b->client) == 2,
                   WAIT_MS); /* else the event may be another */
        check_ok(
            proxy_drop_reply(b->proxy, PROXY_EVENT, 1, i % 3 ? PROXY_THEN_CUT : PROXY_THEN_SILENT));
        check_ok(zkl_mutex_unlock(b->rival));
        check_ok(actor_end(a, WAIT_MS));
        check_ok(actor_do(a, act_unlock, b->mutex, NULL));
        proxy_disarm(b->proxy);
        check_rest(b);
    }
}

/* --- the heartbeat ---------------------------------------------------------------------------- */

/* A holder loses the answer to a heartbeat: the hold goes on, is suspect and held again, never
 * lost. */
static void lose_a_heartbeat(struct bench *b, enum proxy_then then)
{
    struct told *told = &b->told;

    check_ok(zkl_mutex_set_callback(b->mutex, told_fn, told));
    for (int i = 0; i < (then == PROXY_THEN_CUT ? 3 : 2); i++) {
        int held = told->held;
        check_ok(zkl_mutex_lock_for(b->mutex, WAIT_MS));
        check_ok(proxy_drop_reply(b->proxy, PROXY_MULTI, 1, then));
        check_ok(proxy_wait_dropped(b->proxy, WAIT_MS));
        check_wait(told->held > held, WAIT_MS);
        check_num(zkl_mutex_window_ms(b->mutex), >, 0);
        check_only_ours(b);
        check_ok(zkl_mutex_unlock(b->mutex));
        check_rest(b);
        check_num(told->lost, ==, 0);
        check_num(told->held, ==, told->suspect);
    }
}

REPLY_TEST(cut_before_the_answer_to_a_heartbeat, CUT_SESSION_MS)
{
    lose_a_heartbeat(b, PROXY_THEN_CUT);
}

REPLY_TEST(silence_before_the_answer_to_a_heartbeat, SESSION_MS)
{
    lose_a_heartbeat(b, PROXY_THEN_SILENT);
}

/* --- the close -------------------------------------------------------------------------------- */

#define DRAIN_MS 200 /* by the library, before it closes */
#define MOMENT_MS 20 /* if no caller waits for an answer */

static atomic_int calls_at_close; /* of the handle that is closed */
static _Atomic int64_t closed_ns;

int __real_zookeeper_close(zhandle_t *zh);
int __wrap_zookeeper_close(zhandle_t *zh);

int __wrap_zookeeper_close(zhandle_t *zh)
{
    struct zkl_handle *h = (struct zkl_handle *)zoo_get_context(zh);

    zkl_driver_lock(h->driver);
    int n = 0;
    for (const struct zkl_call *call = h->calls; call; call = call->next)
        n++;
    calls_at_close = n;
    closed_ns = zkl_now_ns();
    zkl_driver_unlock(h->driver);
    return __real_zookeeper_close(zh);
}

static int close_client(struct zkl_mutex *unused, void *client)
{
    (void)unused;
    return zkl_client_close(client, WAIT_MS);
}

/* What is held comes once the close has begun, and nothing is outstanding when libzookeeper closes. On a busy machine that
 * wait may end first. */
static void check_close_waits(struct bench *b, int ms)
{
    int64_t begun_ns = zkl_now_ns();

    calls_at_close = -1;
    actor_begin(b->actor, close_client, NULL, b->client);
    check_wait(zkl_client_get_state(b->client) != ZKL_CLIENT_CONNECTED, WAIT_MS);
    proxy_release(b->proxy);
    check_ok(actor_end(b->actor, WAIT_MS));
    if (closed_ns - begun_ns < ms * INT64_C(1000000))
        check_num(calls_at_close, ==, 0);
}

/* Goal: libzookeeper can lose and leak what is outstanding when it is closed just as it passes an answer on; so a close
 * that waits for one waits for the keepalive behind it, too. Method: the answer to a delete is held until the close has
 * begun, and the keepalive's comes somewhat later. */
REPLY_TEST(a_close_that_gets_an_answer_waits_for_the_keepalives, CUT_SESSION_MS)
{
    struct zkl_mutex_options options = ZKL_MUTEX_OPTIONS_INIT;

    options.posted_unlock = 1;
    world_drop(b->mutex);
    b->mutex = world_mutex_with(b->client, path, &options);
    check_ok(zkl_mutex_lock_for(b->mutex, WAIT_MS));
    check_ok(proxy_hold_reply(b->proxy, PROXY_DELETE, 1));
    check_ok(proxy_hold_request(b->proxy, PROXY_EXISTS, 1));
    check_ok(zkl_mutex_unlock(b->mutex));
    check_ok(proxy_wait_held(b->proxy, WAIT_MS));
    proxy_delay_ms(b->proxy, LATER_MS); /* of what comes from now on: the keepalive's answer */
    check_close_waits(b, DRAIN_MS);
}

/* Goal: a close waits a moment for what no caller waits for. Method: a keepalive's answer is held until the close has
 * begun. */
REPLY_TEST(a_close_waits_a_moment_for_the_keepalive, CUT_SESSION_MS)
{
    check_ok(proxy_hold_reply(b->proxy, PROXY_EXISTS, 1));
    check_ok(proxy_wait_held(b->proxy, WAIT_MS));
    check_close_waits(b, MOMENT_MS);
}

/* Goal: a server that is silent, maybe as it stands still for some seconds, gets the close's request before the link is
 * given up: else the locks of the client stay for a session timeout. Method: the answer to a keepalive is held. */
REPLY_TEST(a_silent_server_gets_the_close_at_once, CUT_SESSION_MS)
{
    check_ok(proxy_hold_reply(b->proxy, PROXY_EXISTS, 1));
    check_ok(proxy_wait_held(b->proxy, WAIT_MS));
    proxy_reset_counts(b->proxy);
    lag_begin();
    actor_begin(b->actor, close_client, NULL, b->client);
    check_ok(proxy_wait_count(b->proxy, PROXY_CLOSE, 1, WAIT_MS));
    check_num(lag_end_ms(), <, SOON_MS);
    proxy_release(b->proxy);
    check_ok(actor_end(b->actor, WAIT_MS));
}
