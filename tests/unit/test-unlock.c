/* SPDX-License-Identifier: Apache-2.0
 * Each end of an unlock, on a script: what it says of the hold. The window at the call of unlock
 * decides, as the purpose of the hold had ended by then. */
#include <stdio.h>
#include <string.h>

#include <zklock/zklock.h>

#include "script.h"

#define MS INT64_C(1000000)
#define BOOT_AHEAD_MS 5000000 /* the script's */

/* As unlock is called. */
enum window { OPEN, EMPTY };
enum link { UP, DOWN };

/* Between the call and its end. LATE and EARLY: the answer to a heartbeat that was sent before the call comes
 * after it, and proves the moment of the call, or not. */
enum proof { NONE, LATE, EARLY };

/* How the unlock ends. */
enum end { ANSWERED, BROKEN, OVER, EXPIRED, CLOSED, AT_ONCE };

struct row {
    const char *name;
    bool posted;
    enum window window;
    enum link link;
    enum proof proof;
    enum end end;
    enum zkl_answer answer; /* of the delete */
    const char *said;
};

static const struct row rows[] = {
    /* The window was open: no other client can have held by then. */
    {"deleted", false, OPEN, UP, NONE, ANSWERED, ZKL_ANSWER_OK, "released OK"},
    {"was missing", false, OPEN, UP, NONE, ANSWERED, ZKL_ANSWER_NONODE, "released ELOST"},
    {"denied", false, OPEN, UP, NONE, ANSWERED, ZKL_ANSWER_NOAUTH, "released EACCES"},
    {"no memory", false, OPEN, UP, NONE, ANSWERED, ZKL_ANSWER_NOMEM, "released EUNCONFIRMED"},
    {"odd answer", false, OPEN, UP, NONE, ANSWERED, ZKL_ANSWER_OTHER, "released EUNCONFIRMED"},
    {"link breaks", false, OPEN, UP, NONE, BROKEN, 0, "released EUNCONFIRMED"},
    {"window runs empty", false, OPEN, UP, NONE, OVER, 0, "released EUNCONFIRMED"},
    {"expires", false, OPEN, UP, NONE, EXPIRED, 0, "released ELOST"},
    {"closed", false, OPEN, UP, NONE, CLOSED, 0, "released EUNCONFIRMED"},
    {"no link", false, OPEN, DOWN, NONE, AT_ONCE, 0, "released EUNCONFIRMED"},
    {"posted", true, OPEN, UP, NONE, AT_ONCE, 0, "released OK"},
    {"posted without a link", true, OPEN, DOWN, NONE, AT_ONCE, 0, "released EUNCONFIRMED"},
    /* It was empty: only the node, or a proof that reaches that far, shows that the hold was
     * whole. */
    {"deleted", false, EMPTY, UP, NONE, ANSWERED, ZKL_ANSWER_OK, "released OK"},
    {"was missing", false, EMPTY, UP, NONE, ANSWERED, ZKL_ANSWER_NONODE, "released ELOST"},
    {"denied", false, EMPTY, UP, NONE, ANSWERED, ZKL_ANSWER_NOAUTH,
     "released EDOUBT: DELETE is denied"},
    {"no memory", false, EMPTY, UP, NONE, ANSWERED, ZKL_ANSWER_NOMEM, "released EDOUBT"},
    {"odd answer", false, EMPTY, UP, NONE, ANSWERED, ZKL_ANSWER_OTHER, "released EDOUBT"},
    {"no answer", false, EMPTY, UP, NONE, ANSWERED, ZKL_ANSWER_LINK, "released EDOUBT"},
    {"link breaks", false, EMPTY, UP, NONE, BROKEN, 0, "released EDOUBT"},
    {"immediately", false, EMPTY, UP, NONE, OVER, 0, "released EDOUBT"},
    {"expires", false, EMPTY, UP, NONE, EXPIRED, 0, "released ELOST"},
    {"closed", false, EMPTY, UP, NONE, CLOSED, 0, "released EDOUBT"},
    {"no link", false, EMPTY, DOWN, NONE, AT_ONCE, 0, "released EDOUBT"},
    {"posted", true, EMPTY, UP, NONE, AT_ONCE, 0, "released EDOUBT"},
    {"posted without a link", true, EMPTY, DOWN, NONE, AT_ONCE, 0, "released EDOUBT"},
    {"proved late, breaks", false, EMPTY, UP, LATE, BROKEN, 0, "released EUNCONFIRMED"},
    {"proved late, empty again", false, EMPTY, UP, LATE, OVER, 0, "released EUNCONFIRMED"},
    {"proved late, closed", false, EMPTY, UP, LATE, CLOSED, 0, "released EUNCONFIRMED"},
    {"proved late, denied", false, EMPTY, UP, LATE, ANSWERED, ZKL_ANSWER_NOAUTH, "released EACCES"},
    {"proof of before, breaks", false, EMPTY, UP, EARLY, BROKEN, 0, "released EDOUBT"},
    {"proof of before, immediately", false, EMPTY, UP, EARLY, OVER, 0, "released EDOUBT"},
};

static int64_t window_end_ms(const struct script *s)
{
    return zkl_session_window_end(&s->core.session) / MS - BOOT_AHEAD_MS;
}

/* Held for two timeouts, with a heartbeat out. */
static void hold(struct script *s, const struct row *row)
{
    enum zkl_request_kind kind;
    script_hold(s, "/r", 7);
    script_contender(s, 1)->machine.lock_request.posted = row->posted;
    for (int64_t ms = SCRIPT_TIMEOUT_MS / 16; ms < 2 * SCRIPT_TIMEOUT_MS; ms += 10) {
        while (script_next(s, &kind))
            script_answer(s, kind, ZKL_ANSWER_OK);
        script_at(s, ms);
    }
    while (!script_next(s, &kind))
        script_at(s, s->now_ms + 10);
    assert_int_equal(kind, ZKL_REQ_CHECK_ALL);
}

/* EMPTY: the process slept; by so much as that heartbeat will prove, or far more. */
static void come_to_the_call(struct script *s, const struct row *row)
{
    if (row->window == EMPTY)
        script_sleep_until(s, window_end_ms(s) + (row->proof == LATE ? 1 : SCRIPT_TIMEOUT_MS));
    if (row->link == DOWN)
        script_down(s);
    assert_int_equal(s->now_ms < window_end_ms(s), row->window == OPEN);
}

static void prove(struct script *s, enum proof proof)
{
    int64_t called_ms = s->now_ms;
    if (proof == NONE)
        return;
    script_answer(s, ZKL_REQ_CHECK_ALL, ZKL_ANSWER_OK);
    assert_int_equal(window_end_ms(s) > called_ms, proof == LATE);
}

static void come_to_the_end(struct script *s, const struct row *row)
{
    switch (row->end) {
    case ANSWERED:
        script_answer(s, ZKL_REQ_DELETE, row->answer);
        break;
    case BROKEN:
        script_down(s);
        break;
    case OVER:
        script_at(s, window_end_ms(s) > s->now_ms ? window_end_ms(s) + 1 : s->now_ms);
        break;
    case EXPIRED:
        script_event(s, ZKL_SE_EXPIRED);
        break;
    case CLOSED:
        script_close(s);
        break;
    case AT_ONCE:
        break;
    }
}

/* Goal: an unlock says 0 or ZKL_EUNCONFIRMED of a hold only if no other client can have had the
 * lock before it was called; else it says ZKL_ELOST, or ZKL_EDOUBT if that is unknown. Method:
 * every way in which it ends, with the window open at the call and empty, and what is proved in
 * between. */
TEST(each_end_says_what_is_known_of_the_hold)
{
    char said[64];
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct row *row = &rows[i];
        struct script *s = script_connected();
        hold(s, row);
        come_to_the_call(s, row);
        script_forget(s);
        script_unlock(s, 1);
        prove(s, row->proof);
        come_to_the_end(s, row);
        snprintf(said, sizeof said, "#1 %s", row->said);
        if (!script_has(s, said))
            fail_msg("%s, window %s: not \"%s\" but\n%s", row->name,
                     row->window == OPEN ? "open" : "empty", row->said, s->text);
        if (row->end != CLOSED)
            script_event(s, ZKL_SE_EXPIRED);
        script_free(s);
    }
}

/* Goal: the end of a lease is a loss, whatever the window is. Method: it ends under an open window,
 * and the unlock comes before any event has reported it. */
TEST(an_ended_lease_is_lost)
{
    struct script *s = script_connected();
    struct row row = {0};
    hold(s, &row);
    script_contender(s, 1)->machine.lease_end_boot = (s->now_ms + 10 + BOOT_AHEAD_MS) * MS;
    script_sleep_until(s, s->now_ms + 10);
    assert_true(s->now_ms < window_end_ms(s));
    script_forget(s);
    script_unlock(s, 1);
    assert_true(script_has(s, "#1 released ELOST"));
    script_event(s, ZKL_SE_EXPIRED);
    script_free(s);
}

/* Goal: a delete that a server would not do now is asked for again while the window is open, but no longer than
 * a timeout, even if another hold keeps the window open. Method: it is throttled twice and then done; and always. */
TEST(a_throttled_delete_is_asked_for_again)
{
    for (int always = 0; always < 2; always++) {
        struct script *s = script_connected();
        const struct zkl_reply throttled = {.answer = ZKL_ANSWER_LINK, .number = -127};
        enum zkl_request_kind kind;
        int deletes = 0;
        script_hold(s, "/r", 7);
        script_hold(s, "/q", 3);
        int64_t end_ms = s->now_ms + 3000 + ZKL_AGAIN_MAX_MS;
        script_unlock(s, 1);
        while (!script_has(s, "#1 released")) {
            script_at(s, s->now_ms + 10);
            while (script_next(s, &kind)) {
                bool is_delete = kind == ZKL_REQ_DELETE;
                deletes += is_delete;
                if (is_delete && (always || deletes < 3))
                    script_reply(s, kind, throttled);
                else
                    script_answer(s, kind, ZKL_ANSWER_OK);
            }
            assert_true(s->now_ms < end_ms);
        }
        assert_true(deletes >= 3);
        assert_true(script_has(s, always ? "#1 released EUNCONFIRMED" : "#1 released OK"));
        script_close(s);
        script_unlock(s, 2);
        script_free(s);
    }
}
