/* SPDX-License-Identifier: Apache-2.0
 * Watches and the life signs of a client, on a script. */
#include <string.h>

#include <zklock/zklock.h>

#include "core/watch.h"
#include "script.h"

/* Goal: a watch that is put off is on no server, so that an old one of its path is removed all the same. Method: there was no
 * memory for the removal; a holder puts one off on that path. */
TEST(a_removal_does_not_wait_for_a_plan)
{
    struct script *s = script_connected();
    script_hold(s, "/q", 1);
    struct zkl_contender *c = script_contender(s, 1);
    script_wait(s, "/r", 9, "5:7");
    s->refuse[ZKL_REQ_UNWATCH] = ZKL_ANSWER_NOMEM;
    const char *path = script_contender(s, 2)->subs[ZKL_SUB_PRED].watch->path;
    script_stop(s, 2, ZKL_ECANCELED);
    assert_int_equal(s->core.removals_due, 1);
    zkl_watch_plan(&s->core, &c->subs[ZKL_SUB_OWN], c, path, ZKL_WATCH_DATA);
    s->refuse[ZKL_REQ_UNWATCH] = ZKL_ANSWER_OK;
    script_forget(s);
    script_at(s, 2000);
    assert_true(script_has(s, "  > unwatch /r/G5-0000000007\n"));
    script_event(s, ZKL_SE_EXPIRED);
    script_unlock(s, 1);
    script_free(s);
}

/* Goal: an event of a watch that was removed is dropped. Method: it fires after the removal. Modes:
 * F47. */
TEST(a_late_event_finds_nobody)
{
    struct script *s = script_connected();
    uint64_t id;
    script_wait(s, "/r", 9, "5:7");
    id = s->core.last_watch;
    script_stop(s, 1, ZKL_ECANCELED);
    script_answer(s, ZKL_REQ_UNWATCH, ZKL_ANSWER_OK);
    script_answer(s, ZKL_REQ_DELETE, ZKL_ANSWER_OK);
    script_forget(s);
    for (uint64_t place = 0; place < ZKL_WATCH_BUCKETS; place++) {
        struct zkl_time now = {0};
        zkl_core_fired(&s->core, now, id * ZKL_WATCH_BUCKETS + place, ZKL_FIRED_DELETED);
    }
    script_event(s, ZKL_SE_EXPIRED);
    script_forget(s);
    script_free(s);
}

/* The answers come without an event: deleted, denied, or another version. */
static void answer_look(struct script *s)
{
    const char *path = s->requests[0].path;
    struct zkl_reply reply = {.answer = ZKL_ANSWER_OK};
    if (strstr(path, "/p/") && strstr(path, "0000000007"))
        reply.answer = ZKL_ANSWER_NONODE;
    else if (strstr(path, "/q/") && strstr(path, "0000000007"))
        reply.answer = ZKL_ANSWER_NOAUTH;
    else if (strstr(path, "/r/") && strstr(path, "0000000007"))
        reply.version = 1;
    script_reply(s, ZKL_REQ_KEEPALIVE, reply);
}

/* Goal: a watch that a server used up in silence is found out, however busy the client is and
 * however late the answers are, and changes nothing else: no contender is granted by it without a
 * list. Method: of four waiters' predecessors one is deleted, one denied and one changed without an
 * event; another thread sends all the time, or none does, and an answer takes longer than the time
 * between two keepalives. */
TEST(a_watch_that_ended_in_silence_is_found_out)
{
    for (int busy = 0; busy < 2; busy++) {
        struct script *s = script_connected();
        enum zkl_request_kind kind;
        script_wait(s, "/p", 9, "5:7");
        script_wait(s, "/q", 9, "5:7");
        script_wait(s, "/r", 9, "5:7");
        script_wait(s, "/s", 9, "5:7");
        script_forget(s);
        s->keepalives = true;
        for (int i = 0, found = 0; found != 7; i++) {
            assert_true(i < 1000);
            script_at(s, s->now_ms + 100);
            if (busy)
                script_lock(s, "/busy");
            while (script_next(s, &kind) && (kind != ZKL_REQ_KEEPALIVE || i % 5 == 0)) {
                if (kind == ZKL_REQ_KEEPALIVE)
                    answer_look(s);
                else if (kind == ZKL_REQ_CHECK_ALL)
                    script_answer(s, kind, ZKL_ANSWER_OK);
                else
                    script_answer(s, kind, ZKL_ANSWER_NOMEM);
            }
            found |= script_has(s, "> list /p") | script_has(s, "> list /q") << 1 |
                     script_has(s, "> list /r") << 2;
            assert_false(script_has(s, "granted"));
            assert_false(script_has(s, "> list /s"));
            script_forget(s);
        }
        script_close(s);
        script_free(s);
    }
}

/* What the leader says of the predecessor, and what the client's server then does. */
enum leader { KNOWS_IT, HAS_NONE, HAD_JUST_DELETED_IT };

static void wait_with(struct script *s, enum leader leader, int64_t until_ms)
{
    enum zkl_request_kind kind;
    while (s->now_ms < until_ms) {
        script_at(s, s->now_ms + 100);
        while (script_next(s, &kind)) {
            bool is_check = kind == ZKL_REQ_CHECK_ALL;
            if (is_check) /* a node of another session: it proves nothing */
                assert_false(s->requests[0].stamp.writes);
            if (is_check && leader == HAD_JUST_DELETED_IT)
                script_fired(s, "/r/G6-0000000008", ZKL_FIRED_DELETED);
            if (is_check && leader != KNOWS_IT)
                script_missing(s, 0);
            else if (kind == ZKL_REQ_LIST)
                return;
            else
                script_answer(s, kind, ZKL_ANSWER_OK);
        }
    }
}

/* Goal: a predecessor that the client's server alone has is not waited for endlessly: it is the
 * server that is left, not the queue. A leader that has just deleted it, or knows it, changes
 * nothing. Method: one far back in a queue, for some session timeouts. Modes: F94. */
TEST(a_node_that_the_leader_does_not_have_is_found_out)
{
    for (int leader = KNOWS_IT; leader <= HAD_JUST_DELETED_IT; leader++) {
        struct script *s = script_connected();
        script_wait(s, "/r", 9, "5:7 6:8");
        script_at(s, 300);
        script_answer(s, ZKL_REQ_WATCH, ZKL_ANSWER_OK);
        script_forget(s);
        s->keepalives = true;
        wait_with(s, leader, SCRIPT_TIMEOUT_MS - 100);
        assert_false(script_has(s, "heartbeat"));
        wait_with(s, leader, 5 * SCRIPT_TIMEOUT_MS);
        assert_true(script_has(s, "> heartbeat /r/G6-0000000008"));
        assert_int_equal(script_has(s, "session: leave server"), leader == HAS_NONE);
        assert_int_equal(script_has(s, "> list /r"), leader == HAD_JUST_DELETED_IT);
        assert_false(script_has(s, "granted"));
        script_close(s);
        script_free(s);
    }
}
