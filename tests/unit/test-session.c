/* SPDX-License-Identifier: Apache-2.0
 * The session's state machine and the arithmetic of the window. */
#include <string.h>

#include "tests.h"

#include "core/session.h"

#define MS INT64_C(1000000)
#define TIMEOUT_MS 2000

static unsigned step_at(struct zkl_session *s, int64_t ms, enum zkl_session_event_type type,
                        int64_t id)
{
    struct zkl_session_event event = {.type = type,
                                      .now = {ms * MS, (ms + 1000000) * MS},
                                      .session = id,
                                      .timeout_ms = TIMEOUT_MS};
    return zkl_session_step(s, &event, NULL, NULL);
}

static struct zkl_session in_state(enum zkl_session_state state)
{
    struct zkl_session s;
    zkl_session_init(&s, TIMEOUT_MS, 0);
    if (state == ZKL_SESSION_STARTING)
        return s;
    step_at(&s, 0, state == ZKL_SESSION_FAILED ? ZKL_SE_AUTH_FAILED : ZKL_SE_UP, 7);
    if (state == ZKL_SESSION_CLOSED)
        step_at(&s, 0, ZKL_SE_CLOSE, 0);
    if (state == ZKL_SESSION_SUSPENDED || state == ZKL_SESSION_PROBING ||
        state == ZKL_SESSION_PROBED)
        step_at(&s, 0, ZKL_SE_DOWN, 0);
    if (state == ZKL_SESSION_PROBING || state == ZKL_SESSION_PROBED)
        step_at(&s, 2 * TIMEOUT_MS, ZKL_SE_TIMER, 0);
    if (state == ZKL_SESSION_PROBED)
        step_at(&s, 2 * TIMEOUT_MS, ZKL_SE_PROBE_UP, 8);
    assert_int_equal(s.state, state);
    return s;
}

enum { STAYS = -1 };
#define S(name) ZKL_SESSION_##name

/* What each event does in each state, a timer being one that is due. */
static const struct {
    enum zkl_session_state from;
    enum zkl_session_event_type event;
    int to;
    unsigned actions;
} table[] = {
    {S(STARTING), ZKL_SE_UP, S(CONNECTED), ZKL_SA_LINK_UP},
    {S(STARTING), ZKL_SE_DOWN, STAYS, 0},
    {S(STARTING), ZKL_SE_EXPIRED, S(STARTING), ZKL_SA_EXPIRE | ZKL_SA_DROP_HANDLE},
    {S(STARTING), ZKL_SE_PROBE_UP, STAYS, 0},
    {S(STARTING), ZKL_SE_PROBE_DOWN, STAYS, 0},
    {S(STARTING), ZKL_SE_TIMER, STAYS, 0},
    {S(STARTING), ZKL_SE_AUTH_FAILED, S(FAILED), ZKL_SA_FAIL},
    {S(STARTING), ZKL_SE_CLOSE, S(CLOSED), ZKL_SA_CLOSED},
    {S(CONNECTED), ZKL_SE_UP, STAYS, 0},
    {S(CONNECTED), ZKL_SE_DOWN, S(SUSPENDED), ZKL_SA_LINK_DOWN},
    {S(CONNECTED), ZKL_SE_EXPIRED, S(STARTING),
     ZKL_SA_LINK_DOWN | ZKL_SA_EXPIRE | ZKL_SA_REPLACE_HANDLE},
    {S(CONNECTED), ZKL_SE_PROBE_UP, STAYS, 0},
    {S(CONNECTED), ZKL_SE_PROBE_DOWN, STAYS, 0},
    {S(CONNECTED), ZKL_SE_TIMER, STAYS, 0},
    {S(CONNECTED), ZKL_SE_AUTH_FAILED, S(FAILED), ZKL_SA_LINK_DOWN | ZKL_SA_FAIL},
    {S(CONNECTED), ZKL_SE_CLOSE, S(CLOSED), ZKL_SA_LINK_DOWN | ZKL_SA_CLOSED},
    {S(SUSPENDED), ZKL_SE_UP, S(CONNECTED), ZKL_SA_LINK_UP},
    {S(SUSPENDED), ZKL_SE_DOWN, STAYS, 0},
    {S(SUSPENDED), ZKL_SE_EXPIRED, S(STARTING), ZKL_SA_EXPIRE | ZKL_SA_REPLACE_HANDLE},
    {S(SUSPENDED), ZKL_SE_PROBE_UP, STAYS, 0},
    {S(SUSPENDED), ZKL_SE_PROBE_DOWN, STAYS, 0},
    {S(SUSPENDED), ZKL_SE_TIMER, S(PROBING), ZKL_SA_OPEN_PROBE},
    {S(SUSPENDED), ZKL_SE_AUTH_FAILED, S(FAILED), ZKL_SA_FAIL},
    {S(SUSPENDED), ZKL_SE_CLOSE, S(CLOSED), ZKL_SA_CLOSED},
    {S(PROBING), ZKL_SE_UP, S(CONNECTED), ZKL_SA_LINK_UP | ZKL_SA_DROP_PROBE},
    {S(PROBING), ZKL_SE_DOWN, STAYS, 0},
    {S(PROBING), ZKL_SE_EXPIRED, S(STARTING),
     ZKL_SA_EXPIRE | ZKL_SA_REPLACE_HANDLE | ZKL_SA_DROP_PROBE},
    {S(PROBING), ZKL_SE_PROBE_UP, S(PROBED), 0},
    {S(PROBING), ZKL_SE_PROBE_DOWN, STAYS, 0},
    {S(PROBING), ZKL_SE_TIMER, STAYS, 0},
    {S(PROBING), ZKL_SE_AUTH_FAILED, S(FAILED), ZKL_SA_FAIL | ZKL_SA_DROP_PROBE},
    {S(PROBING), ZKL_SE_CLOSE, S(CLOSED), ZKL_SA_CLOSED | ZKL_SA_DROP_PROBE},
    {S(PROBED), ZKL_SE_UP, S(CONNECTED), ZKL_SA_LINK_UP | ZKL_SA_DROP_PROBE},
    {S(PROBED), ZKL_SE_DOWN, STAYS, 0},
    {S(PROBED), ZKL_SE_EXPIRED, S(CONNECTED), ZKL_SA_EXPIRE | ZKL_SA_ADOPT_PROBE | ZKL_SA_LINK_UP},
    {S(PROBED), ZKL_SE_PROBE_UP, STAYS, 0},
    {S(PROBED), ZKL_SE_PROBE_DOWN, S(PROBING), 0},
    {S(PROBED), ZKL_SE_TIMER, S(CONNECTED), ZKL_SA_EXPIRE | ZKL_SA_ADOPT_PROBE | ZKL_SA_LINK_UP},
    {S(PROBED), ZKL_SE_AUTH_FAILED, S(FAILED), ZKL_SA_FAIL | ZKL_SA_DROP_PROBE},
    {S(PROBED), ZKL_SE_CLOSE, S(CLOSED), ZKL_SA_CLOSED | ZKL_SA_DROP_PROBE},
    {S(FAILED), ZKL_SE_UP, STAYS, 0},
    {S(FAILED), ZKL_SE_DOWN, STAYS, 0},
    {S(FAILED), ZKL_SE_EXPIRED, STAYS, 0},
    {S(FAILED), ZKL_SE_PROBE_UP, STAYS, 0},
    {S(FAILED), ZKL_SE_PROBE_DOWN, STAYS, 0},
    {S(FAILED), ZKL_SE_TIMER, STAYS, 0},
    {S(FAILED), ZKL_SE_AUTH_FAILED, STAYS, 0},
    {S(FAILED), ZKL_SE_CLOSE, S(CLOSED), ZKL_SA_CLOSED},
    {S(CLOSED), ZKL_SE_UP, STAYS, 0},
    {S(CLOSED), ZKL_SE_DOWN, STAYS, 0},
    {S(CLOSED), ZKL_SE_EXPIRED, STAYS, 0},
    {S(CLOSED), ZKL_SE_PROBE_UP, STAYS, 0},
    {S(CLOSED), ZKL_SE_PROBE_DOWN, STAYS, 0},
    {S(CLOSED), ZKL_SE_TIMER, STAYS, 0},
    {S(CLOSED), ZKL_SE_AUTH_FAILED, STAYS, 0},
    {S(CLOSED), ZKL_SE_CLOSE, STAYS, 0},
};

/* Goal: every event in every state does what the table says. Method: one step each; the table is
 * complete. */
TEST(every_event_does_in_every_state_what_the_table_says)
{
    assert_int_equal(sizeof table / sizeof *table, ZKL_SESSION_STATES * ZKL_SESSION_EVENT_TYPES);
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        struct zkl_session s = in_state(table[i].from);
        unsigned actions = step_at(&s, 100000, table[i].event, 7);
        int to = table[i].to == STAYS ? (int)table[i].from : table[i].to;
        if ((int)s.state != to || actions != table[i].actions)
            fail_msg("%s, event %d: changes to %s with actions %u",
                     zkl_session_state_name(table[i].from), (int)table[i].event,
                     zkl_session_state_name(s.state), actions);
    }
}

static bool takes_place(enum zkl_session_state from, enum zkl_session_state to)
{
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        if (table[i].from == from && table[i].to == (int)to)
            return true;
    }
    /* An expiry while the second handle is connected goes through STARTING within the step. */
    return from == ZKL_SESSION_PROBED && to == ZKL_SESSION_STARTING;
}

/* Goal: no transition is allowed that can't take place. Method: the list of allowed ones against
 * the table. */
TEST(every_allowed_transition_takes_place)
{
    for (int from = 0; from < ZKL_SESSION_STATES; from++) {
        for (int to = 0; to < ZKL_SESSION_STATES; to++) {
            bool allowed =
                zkl_session_may_move((enum zkl_session_state)from, (enum zkl_session_state)to);
            bool happens = takes_place((enum zkl_session_state)from, (enum zkl_session_state)to);
            if (allowed != happens)
                fail_msg("%s -> %s is %s", zkl_session_state_name((enum zkl_session_state)from),
                         zkl_session_state_name((enum zkl_session_state)to),
                         allowed ? "allowed, but does not happen" : "not allowed");
        }
    }
}

/* What is proved by now, as if a proof had shown it. */
static void set_touched(struct zkl_session *s, int64_t boot_ms)
{
    s->proof.touched_boot = boot_ms * MS;
}

/* Goal: what is proved outlives links, and not the session. Method: a window, a link lost and made, an
 * expiry. */
TEST(the_window_outlives_links)
{
    struct zkl_session s = in_state(ZKL_SESSION_CONNECTED);
    assert_int_equal(zkl_session_window_end(&s), 0);
    set_touched(&s, 5000);
    int64_t end = (5000 + TIMEOUT_MS - TIMEOUT_MS / 16) * MS;
    assert_int_equal(zkl_session_window_end(&s), end);
    step_at(&s, 1, ZKL_SE_DOWN, 0);
    assert_int_equal(zkl_session_window_end(&s), end);
    step_at(&s, 2, ZKL_SE_UP, 7);
    assert_int_equal(zkl_session_window_end(&s), end);
    step_at(&s, 3, ZKL_SE_EXPIRED, 0);
    assert_int_equal(zkl_session_window_end(&s), 0);
    assert_int_equal(s.id, 0);
}

static unsigned up_again(struct zkl_session *s, enum zkl_session_event_type type, int timeout_ms)
{
    struct zkl_session_event event = {
        .type = type, .now = {20 * MS, 20 * MS}, .session = 7, .timeout_ms = timeout_ms};
    return zkl_session_step(s, &event, NULL, NULL);
}

/* Goal: a session whose timeout cannot be known is given up: nothing was answered over its first
 * link, and the timeout announced now is larger than the requested one, so that it may have been
 * raised. Method: the link lost before any answer, and after one; the timeout as requested, and
 * raised; the same for the second handle. */
TEST(a_session_of_unknown_timeout_is_given_up)
{
    for (int i = 0; i < 4; i++) {
        bool answered = i & 1, raised = i & 2;
        struct zkl_session s = in_state(ZKL_SESSION_CONNECTED);
        if (answered)
            zkl_proof_answered(&s.proof, 11 * MS, zkl_proof_stamp(&s.proof, 10 * MS, false), true);
        step_at(&s, 15, ZKL_SE_DOWN, 0);
        unsigned actions = up_again(&s, ZKL_SE_UP, raised ? 3 * TIMEOUT_MS : TIMEOUT_MS);
        bool unknown = raised && !answered;
        assert_int_equal(actions, unknown ? ZKL_SA_EXPIRE | ZKL_SA_DROP_HANDLE : ZKL_SA_LINK_UP);
        assert_int_equal(s.id, unknown ? 0 : 7);
        assert_int_equal(s.state, unknown ? ZKL_SESSION_STARTING : ZKL_SESSION_CONNECTED);
        assert_int_equal(s.pause_ns, 0); /* no server ended it */
    }
    struct zkl_session s = in_state(ZKL_SESSION_PROBING);
    s.proof.is_known = true; /* the former session's */
    up_again(&s, ZKL_SE_PROBE_UP, 3 * TIMEOUT_MS);
    assert_int_equal(step_at(&s, 20 + TIMEOUT_MS, ZKL_SE_TIMER, 0),
                     ZKL_SA_EXPIRE | ZKL_SA_REPLACE_HANDLE | ZKL_SA_DROP_PROBE);
    assert_int_equal(s.state, ZKL_SESSION_STARTING);
}

/* Goal: a server that hands out another id has dropped the old session. Method: reconnect with
 * one. Modes: F60. */
TEST(another_id_on_reconnect_is_an_expiry)
{
    static const enum zkl_session_state states[] = {ZKL_SESSION_SUSPENDED, ZKL_SESSION_PROBING,
                                                    ZKL_SESSION_PROBED};
    for (int i = 0; i < 3; i++) {
        struct zkl_session s = in_state(states[i]);
        set_touched(&s, 5000);
        unsigned actions = step_at(&s, 100000, ZKL_SE_UP, 99);
        assert_int_equal(actions & ~(unsigned)ZKL_SA_DROP_PROBE, ZKL_SA_LINK_UP | ZKL_SA_EXPIRE);
        assert_int_equal(zkl_session_window_end(&s), 0);
        assert_int_equal(s.id, 99);
    }
}

/* Goal: a server that lost its data is found out: a second handle is tried after two timeouts
 * without a link, and taken a timeout after it connected. Method: the timers, a nanosecond early and
 * on time. */
TEST(a_wiped_server_is_probed_and_then_adopted)
{
    struct zkl_session s = in_state(ZKL_SESSION_CONNECTED);
    set_touched(&s, 5000);
    step_at(&s, 1000, ZKL_SE_DOWN, 0);
    assert_int_equal(s.timer_mono_ns, (1000 + 2 * TIMEOUT_MS) * MS);
    assert_int_equal(step_at(&s, 1000 + 2 * TIMEOUT_MS - 1, ZKL_SE_TIMER, 0), 0);
    assert_int_equal(step_at(&s, 1000 + 2 * TIMEOUT_MS, ZKL_SE_TIMER, 0), ZKL_SA_OPEN_PROBE);
    assert_true(s.timer_mono_ns == INT64_MAX);
    step_at(&s, 6000, ZKL_SE_PROBE_UP, 8);
    assert_int_equal(s.timer_mono_ns, (6000 + TIMEOUT_MS) * MS);
    step_at(&s, 6100, ZKL_SE_PROBE_DOWN, 0);
    assert_int_equal(s.timer_mono_ns, (6100 + 2 * TIMEOUT_MS) * MS);
    step_at(&s, 6200, ZKL_SE_PROBE_UP, 8);
    assert_int_equal(step_at(&s, 6199 + TIMEOUT_MS, ZKL_SE_TIMER, 0), 0);
    assert_int_equal(step_at(&s, 6200 + TIMEOUT_MS, ZKL_SE_TIMER, 0),
                     ZKL_SA_EXPIRE | ZKL_SA_ADOPT_PROBE | ZKL_SA_LINK_UP);
    assert_int_equal(s.id, 8);
    assert_int_equal(zkl_session_window_end(&s), 0);
}

/* Goal: when the server has forgotten the second handle's session too, a third one is opened. Method:
 * it loses its link and does not come back for two timeouts. */
TEST(a_forgotten_probe_is_replaced)
{
    struct zkl_session s = in_state(ZKL_SESSION_PROBING);
    step_at(&s, 6000, ZKL_SE_PROBE_UP, 8);
    step_at(&s, 6100, ZKL_SE_PROBE_DOWN, 0);
    assert_int_equal(step_at(&s, 6100 + 2 * TIMEOUT_MS - 1, ZKL_SE_TIMER, 0), 0);
    assert_int_equal(step_at(&s, 6100 + 2 * TIMEOUT_MS, ZKL_SE_TIMER, 0),
                     ZKL_SA_DROP_PROBE | ZKL_SA_OPEN_PROBE);
    assert_int_equal(s.state, ZKL_SESSION_PROBING);
}

/* Goal: after an outage of all servers the old session keeps its holds. Method: the first handle
 * comes back while the second one is connected. */
TEST(the_first_handle_has_a_last_chance)
{
    struct zkl_session s = in_state(ZKL_SESSION_PROBED);
    set_touched(&s, 5000);
    assert_int_equal(step_at(&s, 100000, ZKL_SE_UP, 7), ZKL_SA_LINK_UP | ZKL_SA_DROP_PROBE);
    assert_int_equal(s.id, 7);
    assert_int_equal(zkl_session_window_end(&s), (5000 + TIMEOUT_MS - TIMEOUT_MS / 16) * MS);
    assert_true(s.timer_mono_ns == INT64_MAX);
}

/* --- servers that end what they have just begun ------------------------------------------------ */

#define LONG_MS 12000

/* A client's life on such a server: moves on to the timer. */
struct life {
    struct zkl_session s;
    int64_t ms, id;
    unsigned actions;
};

static void live(struct life *l, enum zkl_session_event_type type)
{
    struct zkl_session_event event = {
        .type = type, .now = {l->ms * MS, l->ms * MS}, .session = l->id, .timeout_ms = LONG_MS};
    l->actions = zkl_session_step(&l->s, &event, NULL, NULL);
}

/* How long after it came up a session that ends after lived_ms is replaced. */
static int64_t replaced_after(struct life *l, int lived_ms)
{
    int64_t born_ms = l->ms;
    l->id++;
    live(l, ZKL_SE_UP);
    l->ms += lived_ms;
    live(l, ZKL_SE_DOWN);
    live(l, ZKL_SE_EXPIRED);
    if (l->actions & ZKL_SA_REPLACE_HANDLE)
        return l->ms - born_ms;
    assert_int_equal(l->actions, ZKL_SA_EXPIRE | ZKL_SA_DROP_HANDLE);
    int64_t due_ms = l->s.timer_mono_ns / MS;
    l->ms = due_ms;
    live(l, ZKL_SE_TIMER);
    assert_int_equal(l->actions, 0); /* not a moment before */
    l->ms++;
    live(l, ZKL_SE_TIMER);
    assert_int_equal(l->actions, ZKL_SA_REPLACE_HANDLE);
    return l->ms - born_ms;
}

static struct life new_life(int64_t id)
{
    struct life l = {.id = id, .ms = 5000};
    zkl_session_init(&l.s, LONG_MS, 0);
    return l;
}

/* Goal: a server that ends each session at once is asked once in the first second, and ever more rarely up to a third
 * of the timeout; one that lived its time is replaced immediately, and the next begins from the start. */
TEST(sessions_that_end_at_once_come_slower)
{
    static const int least_ms[] = {1000, 2000, 4000, 4000, 4000};
    struct life l = new_life(77);
    for (int round = 0; round < 2; round++) {
        for (size_t i = 0; i < sizeof least_ms / sizeof *least_ms; i++) {
            int64_t after_ms = replaced_after(&l, 3);
            assert_in_range(after_ms, least_ms[i], least_ms[i] * 5 / 4 + 1);
        }
        assert_int_equal(replaced_after(&l, LONG_MS / 3), LONG_MS / 3);
    }
    assert_int_equal(replaced_after(&l, LONG_MS / 3 - 1),
                     LONG_MS / 3 - 1); /* the pause is over by then */
    assert_in_range(replaced_after(&l, 1), 2000, 2501);
}

/* Goal: a session that ZooKeeper has ended by its time is replaced immediately. Method: a timeout that is shorter than the
 * first pause, and a machine that slept. Seen red: with the time of life by CLOCK_MONOTONIC, or compared to the
 * least pause. */
TEST(short_lives_and_sleep)
{
    static const struct {
        int timeout_ms, mono_ms, boot_ms;
    } lives[] = {{100, 100, 100}, {400, 450, 450}, {900, 900, 900}, {LONG_MS, 5, LONG_MS}};
    for (size_t i = 0; i < sizeof lives / sizeof *lives; i++) {
        struct zkl_session s;
        struct zkl_session_event event = {.type = ZKL_SE_UP,
                                          .now = {5000 * MS, 9000 * MS},
                                          .session = 7,
                                          .timeout_ms = lives[i].timeout_ms};
        zkl_session_init(&s, lives[i].timeout_ms, 0);
        zkl_session_step(&s, &event, NULL, NULL);
        event.type = ZKL_SE_EXPIRED;
        event.now.mono_ns += lives[i].mono_ms * MS;
        event.now.boot_ns += lives[i].boot_ms * MS;
        assert_int_equal(zkl_session_step(&s, &event, NULL, NULL),
                         ZKL_SA_LINK_DOWN | ZKL_SA_EXPIRE | ZKL_SA_REPLACE_HANDLE);
    }
}

/* Goal: clients whose sessions end together do not come back together. */
TEST(pauses_differ)
{
    int64_t first_ms = 0;
    int same = 0;
    for (int i = 0; i < 100; i++) {
        struct life l = new_life(1000 + i);
        int64_t after_ms = replaced_after(&l, 3);
        first_ms = i == 0 ? after_ms : first_ms;
        same += after_ms == first_ms;
    }
    assert_in_range(same, 1, 9);
}

/* Goal: a link that is of no use, as those before it ended without the answer that counts, is not used before a pause,
 * and nobody is told of it; a pause is one however many links break in it, and is a second each time. */
TEST(useless_links_are_used_later)
{
    struct life l = new_life(5);
    live(&l, ZKL_SE_UP);
    assert_int_equal(l.actions, ZKL_SA_LINK_UP);
    l.s.useless = true;
    for (int i = 0; i < 3; i++) {
        for (int again = 0; again < 2; again++) {
            live(&l, ZKL_SE_DOWN);
            assert_int_equal(l.actions, again ? 0 : ZKL_SA_LINK_DOWN);
            live(&l, ZKL_SE_UP);
            assert_int_equal(l.actions, 0);
            assert_int_equal(l.s.state, ZKL_SESSION_CONNECTED);
            assert_false(zkl_session_connected(&l.s));
            assert_in_range(l.s.timer_mono_ns - l.ms * MS, (1000 - again * 100) * MS,
                            (1250 - again * 100) * MS);
            l.ms += 100;
        }
        l.ms = l.s.timer_mono_ns / MS + 1;
        if (i == 1) {
            live(&l, ZKL_SE_DOWN); /* it was over without a link */
            live(&l, ZKL_SE_UP);
        } else {
            live(&l, ZKL_SE_TIMER);
        }
        assert_int_equal(l.actions, ZKL_SA_LINK_UP);
        assert_true(zkl_session_connected(&l.s));
    }
    live(&l, ZKL_SE_DOWN);
    assert_int_equal(l.actions, ZKL_SA_LINK_DOWN);
    live(&l, ZKL_SE_UP);
    l.ms += LONG_MS;
    live(&l, ZKL_SE_EXPIRED);
    assert_int_equal(l.actions, ZKL_SA_EXPIRE | ZKL_SA_REPLACE_HANDLE);
    l.id++;
    live(&l, ZKL_SE_UP); /* the first link of a session: the session has waited */
    assert_int_equal(l.actions, ZKL_SA_LINK_UP);
    live(&l, ZKL_SE_DOWN);
    live(&l, ZKL_SE_UP);
    live(&l, ZKL_SE_CLOSE);
    assert_int_equal(l.actions, ZKL_SA_CLOSED);
    assert_true(l.s.timer_mono_ns == INT64_MAX);
}
