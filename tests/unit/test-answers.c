/* SPDX-License-Identifier: Apache-2.0
 * Every code that ZooKeeper has, as the answer to every kind of request, on a script: each call
 * ends, by a code that is not "not understood", or continues once the server answers well again;
 * nothing stays. */
#include <stdio.h>
#include <string.h>

#include <zklock/zklock.h>

#include "driver/zkmap.h"
#include "script.h"

/* KeeperException.Code and ZOO_ERRORS, of 3.8 and 3.9: all of both. */
static const int codes[] = {-1,   -2,   -3,   -4,   -5,   -6,   -7,   -8,   -9,   -12,  -13,  -14,
                            -15,  -100, -101, -102, -103, -108, -110, -111, -112, -113, -114, -115,
                            -116, -117, -118, -119, -120, -121, -122, -123, -124, -125, -127};

/* --- a request that is out -------------------------------------------------- */

static void create_out(struct script *s)
{
    script_lock(s, "/r");
}

static void list_out(struct script *s)
{
    script_lock(s, "/r");
    script_created(s, 7);
}

static void make_out(struct script *s)
{
    script_lock(s, "/r");
    script_answer(s, ZKL_REQ_CREATE, ZKL_ANSWER_NONODE);
}

static void watch_out(struct script *s)
{
    script_queue(s, "/r", 9, "50:7");
}

static void heartbeat_out(struct script *s)
{
    script_hold(s, "/r", 7);
    script_at(s, 375);
}

static void delete_out(struct script *s)
{
    script_hold(s, "/r", 7);
    script_unlock(s, 1);
}

static void late_delete_out(struct script *s)
{
    script_hold(s, "/r", 7);
    script_abandon(s, 1);
}

static void unwatch_out(struct script *s)
{
    script_wait(s, "/r", 9, "50:7");
    script_stop(s, 1, ZKL_ECANCELED);
}

static void try_list_out(struct script *s)
{
    script_try(s, "/r", false);
}

static void sync_out(struct script *s)
{
    script_try(s, "/r", true);
}

static void barrier_out(struct script *s)
{
    script_lock(s, "/r");
    script_down(s);
    script_up(s, SCRIPT_SESSION);
}

static void stat_out(struct script *s)
{
    barrier_out(s);
    script_answer(s, ZKL_REQ_CHECK_ALL, ZKL_ANSWER_OK);
    script_listed(s, "1:7");
}

static void list_root_out(struct script *s)
{
    script_lock(s, "/r");
    script_created(s, INT32_MAX);
    script_answer(s, ZKL_REQ_DELETE, ZKL_ANSWER_OK);
}

static void renew_out(struct script *s)
{
    list_root_out(s);
    script_lock_path_listed(s, 50, "");
}

static void ask(struct script *s, enum zkl_request_kind kind)
{
    script_ask(s, (struct zkl_query){.kind = kind, .path = "/q", .data = "1"});
}

static void ask_list_root(struct script *s)
{
    ask(s, ZKL_REQ_LIST_LOCK_PATH);
}

static void ask_get(struct script *s)
{
    ask(s, ZKL_REQ_GET);
}

static void ask_set(struct script *s)
{
    ask(s, ZKL_REQ_SET);
}

static void ask_stat(struct script *s)
{
    ask(s, ZKL_REQ_STAT);
}

static void ask_sync(struct script *s)
{
    ask(s, ZKL_REQ_SYNC);
}

static void ask_delete(struct script *s)
{
    ask(s, ZKL_REQ_DELETE);
}

static void ask_make(struct script *s)
{
    ask(s, ZKL_REQ_MAKE);
}

static const struct {
    const char *name;
    void (*begin)(struct script *s);
    enum zkl_request_kind kind;
} requests[] = {
    {"create", create_out, ZKL_REQ_CREATE},
    {"list", list_out, ZKL_REQ_LIST},
    {"make", make_out, ZKL_REQ_MAKE},
    {"watch", watch_out, ZKL_REQ_WATCH},
    {"heartbeat", heartbeat_out, ZKL_REQ_CHECK_ALL},
    {"delete", delete_out, ZKL_REQ_DELETE},
    {"janitor's delete", late_delete_out, ZKL_REQ_DELETE},
    {"unwatch", unwatch_out, ZKL_REQ_UNWATCH},
    {"try's list", try_list_out, ZKL_REQ_LIST},
    {"sync", sync_out, ZKL_REQ_SYNC},
    {"barrier", barrier_out, ZKL_REQ_CHECK_ALL},
    {"stat", stat_out, ZKL_REQ_STAT},
    {"list of the root", list_root_out, ZKL_REQ_LIST_LOCK_PATH},
    {"renewal", renew_out, ZKL_REQ_RENEW},
    {"asked list", ask_list_root, ZKL_REQ_LIST_LOCK_PATH},
    {"asked get", ask_get, ZKL_REQ_GET},
    {"asked set", ask_set, ZKL_REQ_SET},
    {"asked stat", ask_stat, ZKL_REQ_STAT},
    {"asked sync", ask_sync, ZKL_REQ_SYNC},
    {"asked delete", ask_delete, ZKL_REQ_DELETE},
    {"asked make", ask_make, ZKL_REQ_MAKE},
};

/* --- a server that is well again --------------------------------------------- */

static int made; /* the GUID of the node that is there, which is the first in the queue; 0: none */

static void answer_well(struct script *s, enum zkl_request_kind kind)
{
    char child[32] = "";
    switch ((int)kind) {
    case ZKL_REQ_CREATE:
        made = s->guids;
        script_created(s, 8);
        break;
    case ZKL_REQ_LIST:
        if (made)
            snprintf(child, sizeof child, "%d:8", made);
        script_listed(s, child);
        break;
    case ZKL_REQ_LIST_LOCK_PATH:
        script_lock_path_listed(s, 500, "");
        break;
    case ZKL_REQ_STAT:
        script_statted(s, SCRIPT_SESSION, 101);
        break;
    case ZKL_REQ_DELETE:
        made = 0;
        script_answer(s, kind, ZKL_ANSWER_OK);
        break;
    default:
        script_answer(s, kind, ZKL_ANSWER_OK);
        break;
    }
}

static bool is_over(const struct script *s)
{
    return !s->core.first && !s->core.queries && !s->core.removing &&
           (s->core.watch_count == 0 || s->core.opcodes[ZKL_OPCODE_REMOVE_WATCHES].unknown) &&
           s->core.pending_count <=
               (size_t)(s->core.keepalive.id != 0) + (s->core.watched_read.id != 0);
}

static bool gets_through(struct script *s)
{
    enum zkl_request_kind kind;
    for (int i = 0; i < 1000 && !is_over(s); i++) {
        if (s->live[0] && s->contenders[0].machine.state == ZKL_CONTENDER_HOLDING)
            script_unlock(s, 1);
        else if (s->live[0] && s->contenders[0].machine.state == ZKL_CONTENDER_LOSTHOLD)
            script_unlock(s, 1);
        else if (script_next(s, &kind))
            answer_well(s, kind);
        else
            script_at(s, s->now_ms + 50);
    }
    return is_over(s);
}

static void check_one(size_t request, int code)
{
    char what[96];
    struct script *s = script_connected();
    made = 0;
    requests[request].begin(s);
    script_forget(s);
    snprintf(what, sizeof what, "%d to a %s", code, requests[request].name);
    script_reply(s, requests[request].kind,
                 (struct zkl_reply){.answer = zkl_map_rc(code), .number = code});
    if (!gets_through(s))
        fail_msg("%s: does not end:\n%s", what, s->text);
    if (script_has(s, "EPROTO") || script_has(s, "something else"))
        fail_msg("%s: is not understood:\n%s", what, s->text);
    if (s->core.session.state == ZKL_SESSION_FAILED)
        assert_int_equal(code, -124);
    script_free(s);
}

/* Goal: none ends in a hang, a leak or "report it". Method: each request is answered so once, then all answers are
 * good. */
TEST(every_code_to_every_request)
{
    for (size_t i = 0; i < sizeof requests / sizeof *requests; i++) {
        for (size_t j = 0; j < sizeof codes / sizeof *codes; j++)
            check_one(i, codes[j]);
    }
}

/* Goal: what a server is too busy to do is asked for again, later each time. Method: a create is throttled ten
 * times in a row. */
TEST(a_throttled_request_is_tried_again_with_back_off)
{
    struct script *s = script_connected();
    int64_t last_ms = 0, waited_ms = 0;
    script_lock(s, "/r");
    for (int i = 0; i < 10; i++) {
        script_reply(s, ZKL_REQ_CREATE,
                     (struct zkl_reply){.answer = zkl_map_rc(-127), .number = -127});
        script_forget(s);
        for (int64_t until = s->now_ms + 20000;
             !script_has(s, "> heartbeat /r\n") && s->now_ms < until;)
            script_at(s, s->now_ms + 10);
        assert_true(script_has(s, "> heartbeat /r\n"));
        assert_true(s->now_ms - last_ms >= 300 && s->now_ms - last_ms >= waited_ms);
        waited_ms = s->now_ms - last_ms;
        last_ms = s->now_ms;
        script_answer(s, ZKL_REQ_CHECK_ALL, ZKL_ANSWER_OK);
        script_listed(s, "");
    }
    assert_true(waited_ms >= 4000);
    assert_true(gets_through(s));
    script_free(s);
}

/* Goal: a TLS handshake that fails costs the link, and no call. Method: libzookeeper ends a create and a list with -15
 * (B91), the next handshake is good. */
TEST(a_failed_handshake_ends_no_call)
{
    for (int created = 0; created < 2; created++) {
        struct script *s = script_connected();
        made = created;
        script_lock(s, "/r");
        if (created)
            script_created(s, 8);
        script_forget(s);
        script_reply(s, created ? ZKL_REQ_LIST : ZKL_REQ_CREATE,
                     (struct zkl_reply){.answer = zkl_map_rc(-15), .number = -15});
        script_down(s);
        script_up(s, SCRIPT_SESSION);
        assert_true(gets_through(s));
        if (script_has(s, "failed"))
            fail_msg("%s", s->text);
        script_free(s);
    }
}

/* Goal: a list behind a barrier that the server would not do shows nothing: the create whose answer was lost is not
 * taken for one that was not carried out, neither by its contender nor by the janitor. */
TEST(a_list_behind_no_barrier_shows_nothing)
{
    for (int stopped = 0; stopped < 2; stopped++) {
        struct script *s = script_connected();
        script_lock(s, "/r");
        if (stopped)
            script_stop(s, 1, ZKL_ECANCELED);
        script_down(s);
        script_up(s, SCRIPT_SESSION);
        script_forget(s);
        script_reply(s, ZKL_REQ_CHECK_ALL,
                     (struct zkl_reply){.answer = zkl_map_rc(-127), .number = -127});
        enum zkl_request_kind kind;
        if (script_next(s, &kind) && kind == ZKL_REQ_LIST)
            script_listed(s, ""); /* of a server that lags */
        assert_false(script_has(s, "not carried out"));
        assert_false(script_has(s, "nothing was left"));
        assert_false(script_has(s, "> create"));
        for (int64_t until = s->now_ms + 10000;
             !script_has(s, "> heartbeat /r\n") && s->now_ms < until;)
            script_at(s, s->now_ms + 10);
        assert_true(script_has(s, "> heartbeat /r\n"));
        script_close(s);
        script_free(s);
    }
}

/* Goal: a server that wants a credential ends all with ZKL_EAUTH. Method: one waits, another one's create is answered so,
 * a third comes later. */
TEST(a_credential_that_is_wanted_ends_all)
{
    struct script *s = script_connected();
    script_wait(s, "/q", 9, "50:7");
    script_lock(s, "/r");
    script_forget(s);
    script_reply(s, ZKL_REQ_CREATE, (struct zkl_reply){.answer = zkl_map_rc(-124)});
    assert_true(script_has(s, "#1 failed EAUTH"));
    assert_true(script_has(s, "#2 failed EAUTH"));
    script_lock(s, "/r");
    assert_true(script_has(s, "#3 failed EAUTH"));
    script_free(s);
}

/* Goal: each answer that ends a call has a code of its own, also where no call gets it, as the session ends first. */
TEST(each_end_has_its_code)
{
    assert_int_equal(zkl_answer_code(ZKL_ANSWER_AUTH), ZKL_EAUTH);
    assert_int_equal(zkl_answer_code(ZKL_ANSWER_BADPATH), ZKL_EBADPATH);
    assert_int_equal(zkl_answer_code(ZKL_ANSWER_OTHER), ZKL_EPROTO);
}
