/* SPDX-License-Identifier: Apache-2.0
 * Watches and the life signs of a client, on a script. */
#include <string.h>

#include <zklock/zklock.h>

#include "core/watch.h"
#include "script.h"

/* Goal: one watch on the server serves all contenders of a client, and is removed with the last of
 * them. Method: two wait for the same predecessor; one leaves, then the other. Modes: F45. */
static void a_watch_is_shared_and_goes_with_the_last(void **state)
{
    struct script *s = script_connected();
    (void)state;
    script_lock(s, "/r");
    script_created(s, 8);
    script_listed(s, "1:8 5:7");
    script_lock(s, "/r");
    script_created(s, 9);
    script_listed(s, "2:9 5:7"); /* the first one's node has just been deleted by a stranger */
    script_expect(s, "[     0] #1 NEW -> QUEUEING: started\n"
                     "  > create /r/G1-\n"
                     "  > list /r\n"
                     "[     0] #1 QUEUEING -> WAITING: next in line\n"
                     "  > watch /r/G5-0000000007\n"
                     "  > watch /r/G1-0000000008\n"
                     "[     0] #2 NEW -> QUEUEING: started\n"
                     "  > create /r/G2-\n"
                     "  > list /r\n"
                     "[     0] #2 QUEUEING -> WAITING: next in line\n"
                     "  > watch /r/G2-0000000009\n");
    for (int i = 0; i < 3; i++)
        script_answer(s, ZKL_REQ_WATCH, ZKL_ANSWER_OK);
    script_forget(s);
    script_stop(s, 1, ZKL_ECANCELED);
    script_stop(s, 2, ZKL_ECANCELED);
    script_expect(s, "[     0] #1 WAITING -> LEAVING: stopped\n"
                     "  #1 failed ECANCELED\n"
                     "  > delete /r/G1-0000000008\n"
                     "[     0] #2 WAITING -> LEAVING: stopped\n"
                     "  #2 failed ECANCELED\n"
                     "  > unwatch /r/G5-0000000007\n"
                     "  > delete /r/G2-0000000009\n");
    script_event(s, ZKL_SE_EXPIRED);
    script_free(s);
}

/* Goal: a holder's own watch and its successor's are one. Method: the holder unlocks; the event
 * reaches the waiter. */
static void holder_and_successor_share_a_watch(void **state)
{
    struct script *s = script_connected();
    (void)state;
    script_lock_watched(s, "/r");
    script_created(s, 7);
    script_listed(s, "1:7");
    script_wait(s, "/r", 8, "1:7");
    script_forget(s);
    script_unlock(s, 1);
    script_fired(s, "/r/G1-0000000007", ZKL_FIRED_DELETED);
    script_answer(s, ZKL_REQ_DELETE, ZKL_ANSWER_OK);
    script_expect(s, "[     0] #1 HOLDING -> RELEASING: unlocked\n"
                     "  > delete /r/G1-0000000007\n"
                     "[     0] #1 RELEASING -> ENDED: deleted\n"
                     "  #1 released OK\n"
                     "  #1 ended\n"
                     "[     0] #2 WAITING -> HOLDING: predecessor deleted\n"
                     "  #2 granted 102\n");
    script_unlock(s, 2);
    script_answer(s, ZKL_REQ_DELETE, ZKL_ANSWER_OK);
    script_free(s);
}

/* Goal: a watch that no contender wants any more while it is being armed is removed once it is.
 * Method: the waiter leaves before the answer comes. */
static void a_watch_unwanted_while_being_armed_is_removed_then(void **state)
{
    struct script *s = script_connected();
    (void)state;
    script_lock(s, "/r");
    script_created(s, 9);
    script_listed(s, "1:9 5:7");
    script_forget(s);
    script_stop(s, 1, ZKL_ECANCELED);
    script_answer(s, ZKL_REQ_WATCH, ZKL_ANSWER_OK);
    script_expect(s, "[     0] #1 WAITING -> LEAVING: stopped\n"
                     "  #1 failed ECANCELED\n"
                     "  > delete /r/G1-0000000009\n"
                     "  > unwatch /r/G5-0000000007\n");
    script_answer(s, ZKL_REQ_WATCH, ZKL_ANSWER_OK);
    script_fired(s, "/r/G1-0000000009", ZKL_FIRED_DELETED);
    script_answer(s, ZKL_REQ_DELETE, ZKL_ANSWER_OK);
    script_answer(s, ZKL_REQ_UNWATCH, ZKL_ANSWER_OK);
    assert_null(s->core.removing);
    script_free(s);
}

/* Goal: a removal that stayed unanswered is repeated with the next link, unless the path is
 * wanted again. Method: two removals are cut off; one of the paths has a new waiter. */
static void a_removal_is_repeated_unless_the_path_is_wanted_again(void **state)
{
    struct script *s = script_connected();
    (void)state;
    script_wait(s, "/r", 9, "5:7");
    script_wait(s, "/q", 3, "6:2");
    script_stop(s, 1, ZKL_ECANCELED);
    script_stop(s, 2, ZKL_ECANCELED);
    script_wait(s, "/r", 10, "5:7");
    script_forget(s);
    script_down(s);
    script_up(s, SCRIPT_SESSION);
    script_expect(s, "[     0] session CONNECTED -> SUSPENDED: link lost\n"
                     "  session: link down\n"
                     "[     0] session SUSPENDED -> CONNECTED: connected\n"
                     "  session: link up\n"
                     "  > unwatch /q/G6-0000000002\n"
                     "  > delete /r/G1-0000000009\n"
                     "  > delete /q/G2-0000000003\n"
                     "[     0] #3 WAITING -> LISTING: link up\n"
                     "  > list /r\n");
    script_event(s, ZKL_SE_EXPIRED);
    assert_null(s->core.removing);
    script_stop(s, 3, ZKL_ECANCELED);
    script_free(s);
}

/* Goal: a watch that is put off is on no server, so that an old one of its path is removed all the same. Method: there was no
 * memory for the removal; a holder puts one off on that path. */
static void a_removal_does_not_wait_for_a_plan(void **state)
{
    struct script *s = script_connected();
    (void)state;
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

/* Goal: a removal that stayed unanswered is not forgotten for a new watch of the same path that is
 * not armed yet. Method: the link breaks before the next waiter's watch is answered, twice, because
 * libzookeeper took that request when the link was down already; then the waiter has no watch, and
 * the old one is removed. */
static void a_removal_outlives_a_watch_that_fails(void **state)
{
    struct script *s = script_connected();
    (void)state;
    script_wait(s, "/r", 9, "5:7");
    script_stop(s, 1, ZKL_ECANCELED);
    script_answer(s, ZKL_REQ_DELETE, ZKL_ANSWER_OK);
    script_lock(s, "/r");
    script_created(s, 10);
    script_listed(s, "2:10 5:7"); /* the watch of 5:7 is on its way again */
    script_event(s, ZKL_SE_DOWN);
    script_answer(s, ZKL_REQ_UNWATCH, ZKL_ANSWER_LINK);
    script_up(s, SCRIPT_SESSION);
    assert_non_null(s->core.removing);
    script_down(s);
    script_forget(s);
    script_up(s, SCRIPT_SESSION);
    assert_true(script_has(s, "  > unwatch /r/G5-0000000007\n"));
    script_event(s, ZKL_SE_EXPIRED);
    script_stop(s, 2, ZKL_ECANCELED);
    script_free(s);
}

/* Goal: an event of a watch that was removed is dropped. Method: it fires after the removal. Modes:
 * F47. */
static void a_late_event_finds_nobody(void **state)
{
    struct script *s = script_connected();
    uint64_t id;
    (void)state;
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

/* Goal: while something is waited for, some request goes out every 300 ms (a server may sit on
 * an event), for what is watched, and else four in each timeout. Method: a waiter that is not next; then an idle
 * client. */
static void a_waiting_client_sends_keepalives(void **state)
{
    struct script *s = script_connected();
    (void)state;
    s->keepalives = true;
    script_wait(s, "/r", 9, "5:7 6:8");
    script_forget(s);
    script_at(s, 950);
    script_expect(s, "  > watch /r/G1-0000000009\n" /* put off till then */
                     "  > keepalive /r/G6-0000000008\n"
                     "  > keepalive /\n"); /* that one is not answered yet */
    script_answer(s, ZKL_REQ_WATCH, ZKL_ANSWER_OK);
    script_answer(s, ZKL_REQ_KEEPALIVE, ZKL_ANSWER_OK);
    script_stop(s, 1, ZKL_ECANCELED);
    script_answer(s, ZKL_REQ_UNWATCH, ZKL_ANSWER_OK);
    script_fired(s, "/r/G1-0000000009", ZKL_FIRED_DELETED);
    script_answer(s, ZKL_REQ_DELETE, ZKL_ANSWER_OK);
    script_forget(s);
    s->keepalives = false;
    size_t before = s->core.sent[ZKL_REQ_KEEPALIVE];
    script_at(s, 60000);
    script_expect(s, "");
    assert_in_range(s->core.sent[ZKL_REQ_KEEPALIVE] - before, 75, 4 * 59050 / SCRIPT_TIMEOUT_MS);
    script_free(s);
}

/* Goal: a waiter far back watches its own node too, but only once it has waited for a while, or if
 * another of its client watches that anyway. Method: three waiters of one client behind two
 * strangers, the first alone for 300 ms; then the second one's node is deleted by a stranger.
 * Modes: F20. */
static void a_waiter_far_back_watches_its_own_node_in_time(void **state)
{
    struct script *s = script_connected();
    (void)state;
    script_wait(s, "/r", 9, "5:7 6:8");
    script_at(s, 299);
    script_forget(s);
    script_at(s, 300);
    script_expect(s, "  > watch /r/G1-0000000009\n");
    script_answer(s, ZKL_REQ_WATCH, ZKL_ANSWER_OK);
    script_lock(s, "/r");
    script_created(s, 10);
    script_listed(s, "5:7 6:8 1:9 2:10");
    script_expect(s, "[   300] #2 NEW -> QUEUEING: started\n"
                     "  > create /r/G2-\n"
                     "  > list /r\n"
                     "[   300] #2 QUEUEING -> WAITING: behind others\n");
    script_lock(s, "/r");
    script_created(s, 11);
    script_listed(s, "5:7 6:8 1:9 2:10 3:11");
    assert_true(script_has(s, "  > watch /r/G2-0000000010\n"));
    script_answer(s, ZKL_REQ_WATCH, ZKL_ANSWER_OK);
    script_forget(s);
    script_fired(s, "/r/G2-0000000010", ZKL_FIRED_DELETED);
    assert_true(script_has(s, "#2 WAITING -> QUEUEING: own node deleted\n"));
    script_close(s);
    script_free(s);
}

/* Goal: the client that is next in line proves its session in time. Method: a waiter with one
 * before it sends two requests in an eighth of the timeout, a proof and a read. */
static void the_next_in_line_keeps_its_window_open(void **state)
{
    struct script *s = script_connected();
    (void)state;
    s->keepalives = true;
    script_wait(s, "/r", 9, "5:7");
    script_forget(s);
    script_at(s, 600);
    script_answer(s, ZKL_REQ_CHECK_ALL, ZKL_ANSWER_OK);
    script_expect(s, "  > keepalive /r/G5-0000000007\n"
                     "  > heartbeat /r/G1-0000000009\n"
                     "  > keepalive /\n");
    script_stop(s, 1, ZKL_ECANCELED);
    script_answer(s, ZKL_REQ_UNWATCH, ZKL_ANSWER_OK);
    script_answer(s, ZKL_REQ_DELETE, ZKL_ANSWER_OK);
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
static void a_watch_that_ended_in_silence_is_found_out(void **state)
{
    (void)state;
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
static void a_node_that_the_leader_does_not_have_is_found_out(void **state)
{
    (void)state;
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

/* Goal: an answer that a server sits on is asked for. Method: the create is not answered for a
 * second. */
static void an_awaited_answer_has_keepalives_too(void **state)
{
    struct script *s = script_connected();
    (void)state;
    s->keepalives = true;
    script_lock(s, "/r");
    script_forget(s);
    script_at(s, 700);
    script_expect(s, "  > keepalive /\n"
                     "  > keepalive /\n");
    script_event(s, ZKL_SE_EXPIRED);
    script_stop(s, 1, ZKL_ECANCELED);
    script_free(s);
}

/* Goal: a wait that would need a watch more than a reconnect can restore ends with ZKL_ESYSTEM and
 * leaves nothing, whoever waits already waits on, and there is room again once the server has
 * dropped a watch. Its own node a waiter watches only while half of the room is free. Method: room for
 * one watch. */
static void a_watch_too_many_ends_the_wait(void **state)
{
    struct script *s = script_connected();
    (void)state;
    s->core.chroot_length = strlen("/chroot");
    s->core.watch_bytes_max = 4 + strlen("/chroot") + strlen("/r/G5-0000000007");
    /* The names in the script are shorter than those on the wire. */
    s->core.watch_bytes_max += strlen("_c_-lock-") + 36 - strlen("G5-");
    script_wait(s, "/r", 9, "5:7");
    assert_int_equal(s->core.watch_bytes, s->core.watch_bytes_max);
    script_lock(s, "/q");
    script_created(s, 9);
    script_forget(s);
    script_listed(s, "5:7 2:9");
    script_expect(s, "[     0] #2 QUEUEING -> WAITING: next in line\n"
                     "[     0] #2 WAITING -> LEAVING: too many watches\n"
                     "  #2 failed ESYSTEM: watching the predecessor\n"
                     "  > delete /q/G2-0000000009\n");
    assert_int_equal(script_contender(s, 1)->machine.state, ZKL_CONTENDER_WAITING);
    script_answer(s, ZKL_REQ_DELETE, ZKL_ANSWER_OK);
    script_ask(s, (struct zkl_query){.kind = ZKL_REQ_WATCH, .path = "/q"});
    assert_true(script_has(s, "q1: too many watches"));
    script_stop(s, 1, ZKL_ECANCELED);
    assert_int_not_equal(s->core.watch_bytes, 0); /* libzookeeper still has it */
    script_answer(s, ZKL_REQ_DELETE, ZKL_ANSWER_OK);
    script_answer(s, ZKL_REQ_UNWATCH, ZKL_ANSWER_OK);
    assert_int_equal(s->core.watch_bytes, 0);
    script_wait(s, "/q", 9, "5:7");
    assert_int_equal(script_contender(s, 3)->machine.state, ZKL_CONTENDER_WAITING);
    script_event(s, ZKL_SE_EXPIRED);
    assert_int_equal(s->core.watch_bytes, 0);
    script_stop(s, 3, ZKL_ECANCELED);
    script_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_watch_is_shared_and_goes_with_the_last),
        cmocka_unit_test(holder_and_successor_share_a_watch),
        cmocka_unit_test(a_watch_unwanted_while_being_armed_is_removed_then),
        cmocka_unit_test(a_removal_is_repeated_unless_the_path_is_wanted_again),
        cmocka_unit_test(a_removal_does_not_wait_for_a_plan),
        cmocka_unit_test(a_removal_outlives_a_watch_that_fails),
        cmocka_unit_test(a_late_event_finds_nobody),
        cmocka_unit_test(a_waiting_client_sends_keepalives),
        cmocka_unit_test(a_waiter_far_back_watches_its_own_node_in_time),
        cmocka_unit_test(the_next_in_line_keeps_its_window_open),
        cmocka_unit_test(a_watch_that_ended_in_silence_is_found_out),
        cmocka_unit_test(a_node_that_the_leader_does_not_have_is_found_out),
        cmocka_unit_test(an_awaited_answer_has_keepalives_too),
        cmocka_unit_test(a_watch_too_many_ends_the_wait),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
