/* SPDX-License-Identifier: Apache-2.0
 * Requests that cannot be sent: the link is down already, or there is no memory. Nothing hangs,
 * loops or leaks. */
#include <stdio.h>

#include <zklock/zklock.h>

#include "script.h"

static const enum zkl_answer refusals[] = {ZKL_ANSWER_LINK, ZKL_ANSWER_NOMEM};

/* The server answers every request, as if one stranger's node 7 were before ours, which leaves
 * after a while. */
static void serve_one(struct script *s, enum zkl_request_kind kind, bool busy)
{
    const char *children = busy ? "99:7" : "";
    char all[32 + ZKL_NODE_NAME_MAX];
    const char *node = s->live[0] ? s->contenders[0].machine.node : "";
    switch (kind) {
    case ZKL_REQ_CREATE:
        script_created(s, 9);
        break;
    case ZKL_REQ_LIST:
        snprintf(all, sizeof all, "%s %s", children, node[0] ? node : "x");
        script_listed(s, all);
        break;
    case ZKL_REQ_LIST_LOCK_PATH:
        script_lock_path_listed(s, 1000, children);
        break;
    case ZKL_REQ_STAT:
        script_statted(s, SCRIPT_SESSION, 500);
        break;
    case ZKL_REQ_MAKE:
    case ZKL_REQ_SYNC:
    case ZKL_REQ_GET:
    case ZKL_REQ_SET:
    case ZKL_REQ_WATCH:
    case ZKL_REQ_UNWATCH:
    case ZKL_REQ_DELETE:
    case ZKL_REQ_CREATE_ALL:
    case ZKL_REQ_DELETE_ALL:
    case ZKL_REQ_RENEW:
    case ZKL_REQ_CHECK_ALL:
    case ZKL_REQ_KEEPALIVE:
    case ZKL_REQ_ACL:
    case ZKL_REQ_PARTS:
    case ZKL_REQUEST_KINDS:
        script_answer(s, kind, ZKL_ANSWER_OK);
        break;
    }
}

static void serve_all(struct script *s, bool busy)
{
    enum zkl_request_kind kind;
    for (int i = 0; i < 100 && script_next(s, &kind); i++)
        serve_one(s, kind, busy);
    assert_false(script_next(s, &kind));
}

/* What the driver does when libzookeeper refuses: its session is about to be reported as
 * expired. */
static void after_refusal(struct script *s, enum zkl_answer refusal)
{
    if (refusal != ZKL_ANSWER_LINK)
        return;
    script_event(s, ZKL_SE_EXPIRED);
    script_up(s, SCRIPT_SESSION + 1);
}

static void finish_all(struct script *s)
{
    for (int i = 0; i < 20 && s->core.first; i++) {
        serve_all(s, false);
        script_at(s, s->now_ms + 400);
    }
    serve_all(s, false);
    assert_null(s->core.first);
    assert_int_equal(s->core.pending_count, 0);
    assert_int_equal(s->core.watch_count, 0);
    assert_null(s->core.removing);
    script_free(s);
}

/* A whole life: wait, be granted, be suspect, unlock, with one kind of request refused. */
static void live_with_refused(enum zkl_request_kind kind, enum zkl_answer refusal, bool first_only)
{
    struct script *s = script_connected();
    s->refuse[kind] = refusal;
    script_lock_watched(s, "/r");
    serve_all(s, true);
    if (first_only)
        s->refuse[kind] = ZKL_ANSWER_OK;
    script_at(s, 1000);
    serve_all(s, true);
    if (s->live[0] && s->contenders[0].subs[ZKL_SUB_PRED].watch)
        script_fired(s, "/r/G99-0000000007", ZKL_FIRED_DELETED);
    serve_all(s, false);
    script_at(s, 4500);
    serve_all(s, false);
    script_down(s);
    script_up(s, SCRIPT_SESSION);
    serve_all(s, false);
    if (s->live[0] && s->contenders[0].machine.state == ZKL_CONTENDER_HOLDING)
        script_unlock(s, 1);
    else if (s->live[0])
        script_stop(s, 1, ZKL_ECANCELED);
    s->refuse[kind] = ZKL_ANSWER_OK;
    after_refusal(s, refusal);
    finish_all(s);
}

/* Goal: whichever request can't be sent, the lock request ends and nothing is left. Method: a
 * contender's whole life for each kind and each reason, refused once or for good. */
TEST(a_refused_request_never_hangs_loops_or_leaks)
{
    for (int kind = 0; kind < ZKL_REQUEST_KINDS; kind++) {
        for (size_t i = 0; i < 2; i++) {
            live_with_refused((enum zkl_request_kind)kind, refusals[i], false);
            live_with_refused((enum zkl_request_kind)kind, refusals[i], true);
        }
    }
}

/* A create without an answer, and its recovery, likewise. */
static void recover_with_refused(enum zkl_request_kind kind, enum zkl_answer refusal, bool stop)
{
    struct script *s = script_connected();
    script_lock(s, "/r");
    script_down(s);
    if (stop)
        script_stop(s, 1, ZKL_ETIMEDOUT);
    s->refuse[kind] = refusal;
    script_up(s, SCRIPT_SESSION);
    for (int i = 0; i < 5; i++) {
        serve_all(s, true);
        script_at(s, s->now_ms + 400);
    }
    s->refuse[kind] = ZKL_ANSWER_OK;
    if (s->live[0] && s->contenders[0].machine.state == ZKL_CONTENDER_HOLDING)
        script_unlock(s, 1);
    else if (s->live[0])
        script_stop(s, 1, ZKL_ECANCELED);
    after_refusal(s, refusal);
    finish_all(s);
}

/* Goal: the same for the recovery of a create that was not answered, by its owner and by the
 * janitor. */
TEST(a_refused_recovery_never_hangs_loops_or_leaks)
{
    for (int kind = 0; kind < ZKL_REQUEST_KINDS; kind++) {
        for (size_t i = 0; i < 2; i++) {
            recover_with_refused((enum zkl_request_kind)kind, refusals[i], false);
            recover_with_refused((enum zkl_request_kind)kind, refusals[i], true);
        }
    }
}

/* Goal: the same for an exhausted counter. Method: each of its requests is refused. */
TEST(a_refused_renewal_never_hangs_loops_or_leaks)
{
    static const enum zkl_request_kind kinds[] = {ZKL_REQ_DELETE, ZKL_REQ_LIST_LOCK_PATH,
                                                  ZKL_REQ_RENEW, ZKL_REQ_UNWATCH};
    for (size_t i = 0; i < 8; i++) {
        struct script *s = script_connected();
        enum zkl_answer refusal = refusals[i % 2];
        enum zkl_request_kind next;
        script_lock(s, "/r");
        s->refuse[kinds[i / 2]] = refusal;
        script_created(s, INT32_MAX);
        if (kinds[i / 2] != ZKL_REQ_DELETE)
            script_answer(s, ZKL_REQ_DELETE, ZKL_ANSWER_OK);
        if (script_next(s, &next) && next == ZKL_REQ_LIST_LOCK_PATH)
            script_lock_path_listed(s, 50, "");
        s->refuse[kinds[i / 2]] = ZKL_ANSWER_OK;
        if (s->live[0])
            script_stop(s, 1, ZKL_ECANCELED);
        after_refusal(s, refusal);
        finish_all(s);
    }
}

/* Goal: a delete that could not be sent is sent soon, however busy the client is. Method: no
 * memory for it; meanwhile another hold's heartbeats keep the line busy. */
TEST(a_refused_delete_is_sent_soon_on_a_busy_client)
{
    struct script *s = script_connected();
    script_hold(s, "/r", 7);
    script_hold(s, "/q", 3);
    s->refuse[ZKL_REQ_DELETE] = ZKL_ANSWER_NOMEM;
    script_unlock(s, 1);
    s->refuse[ZKL_REQ_DELETE] = ZKL_ANSWER_OK;
    script_forget(s);
    for (int ms = 100; ms <= 1000; ms += 100) { /* some request every 100 ms */
        script_at(s, ms);
        script_try(s, "/p", false);
        script_listed(s, "9:9");
    }
    assert_true(script_has(s, "> delete /r/G1-0000000007"));
    script_answer(s, ZKL_REQ_DELETE, ZKL_ANSWER_OK);
    script_unlock(s, 2);
    finish_all(s);
}

/* Goal: the janitor does not take "no memory" for "nothing there". Method: its list can't be
 * sent at first. */
TEST(the_janitor_looks_again_when_there_is_memory)
{
    struct script *s = script_connected();
    script_lock(s, "/r");
    script_down(s);
    script_stop(s, 1, ZKL_ETIMEDOUT);
    s->refuse[ZKL_REQ_LIST] = ZKL_ANSWER_NOMEM;
    script_up(s, SCRIPT_SESSION);
    s->refuse[ZKL_REQ_LIST] = ZKL_ANSWER_OK;
    assert_true(s->live[0]);
    script_forget(s);
    script_at(s, 1000);
    assert_true(script_has(s, "> list /r"));
    script_event(s, ZKL_SE_EXPIRED);
    script_free(s);
}

/* Goal: a watch that could not be removed for want of memory is removed later. Method: the
 * removal is refused once. */
TEST(a_refused_removal_is_repeated)
{
    struct script *s = script_connected();
    script_wait(s, "/r", 9, "5:7");
    s->refuse[ZKL_REQ_UNWATCH] = ZKL_ANSWER_NOMEM;
    script_stop(s, 1, ZKL_ECANCELED);
    s->refuse[ZKL_REQ_UNWATCH] = ZKL_ANSWER_OK;
    script_answer(s, ZKL_REQ_DELETE, ZKL_ANSWER_OK);
    script_forget(s);
    script_at(s, 1000);
    assert_true(script_has(s, "> unwatch /r/G5-0000000007"));
    script_answer(s, ZKL_REQ_UNWATCH, ZKL_ANSWER_OK);
    script_event(s, ZKL_SE_EXPIRED);
    script_free(s);
}

/* Goal: a contender that joins a read of the root without memory for it harms no other. Method: one
 * waits for the root to get empty; another one's read of it is refused. */
TEST(a_refused_look_at_the_root_is_the_asker_s_alone)
{
    struct script *s = script_connected();
    script_lock(s, "/r");
    script_created(s, INT32_MAX);
    script_answer(s, ZKL_REQ_DELETE, ZKL_ANSWER_OK);
    script_lock_path_listed(s, 50, "5:1");
    script_lock(s, "/r");
    script_created(s, INT32_MAX);
    s->refuse[ZKL_REQ_LIST_LOCK_PATH] = ZKL_ANSWER_NOMEM;
    script_answer(s, ZKL_REQ_DELETE, ZKL_ANSWER_OK);
    s->refuse[ZKL_REQ_LIST_LOCK_PATH] = ZKL_ANSWER_OK;
    assert_false(s->live[1]);
    assert_true(s->live[0]);
    script_fired(s, "/r", ZKL_FIRED_OTHER); /* the watch is still known */
    script_stop(s, 1, ZKL_ECANCELED);
    script_event(s, ZKL_SE_EXPIRED);
    script_free(s);
}
