/* SPDX-License-Identifier: Apache-2.0
 * Servers that hang up on requests that they do not know, on a script. */
#include <stdio.h>

#include <zklock/zklock.h>

#include "core/opcode.h"
#include "core/watch.h"
#include "script.h"

/* The server hangs up; what was out first is what it did not like. */
static void hang_up(struct script *s)
{
    script_hang_up(s);
    script_up(s, SCRIPT_SESSION);
}

/* The look for what a create that had no answer may have left shows nothing. */
static void nothing_was_left(struct script *s)
{
    script_answer(s, ZKL_REQ_CHECK_ALL, ZKL_ANSWER_OK);
    script_listed(s, "");
}

/* Two answers over the new link. */
static void prove(struct script *s)
{
    script_answer(s, ZKL_REQ_CHECK_ALL, ZKL_ANSWER_OK);
    script_at(s, s->now_ms + 300);
    script_answer(s, ZKL_REQ_CHECK_ALL, ZKL_ANSWER_OK);
}

static void hang_up_on_a_create(struct script *s)
{
    hang_up(s);
    nothing_was_left(s);
}

/* Goal: without create2 the lock is had by a create and a look at its node. Method: the server hangs up twice. */
static void create2_is_done_without(void **state)
{
    struct script *s = script_connected();
    (void)state;
    script_lock(s, "/r");
    hang_up_on_a_create(s);
    script_forget(s);
    hang_up_on_a_create(s);
    script_expect(s, "[     0] session CONNECTED -> SUSPENDED: link lost\n"
                     "  session: link down\n"
                     "[     0] session SUSPENDED -> SUSPENDED: the server does not know create2: a "
                     "create and an "
                     "exists instead\n"
                     "[     0] #1 QUEUEING -> RECOVERING: create unanswered\n"
                     "[     0] session SUSPENDED -> CONNECTED: connected\n"
                     "  session: link up\n"
                     "  > heartbeat /r\n"
                     "  > list /r\n"
                     "[     0] #1 RECOVERING -> QUEUEING: create was not carried out\n"
                     "  > create /r/G3- (plain)\n");
    script_created_plain(s, 7);
    script_statted(s, SCRIPT_SESSION, 555);
    script_listed(s, "3:7");
    script_expect(s, "[     0] #1 QUEUEING -> RECOVERING: its zxid is not known\n"
                     "  > stat /r/G3-0000000007\n"
                     "[     0] #1 RECOVERING -> LISTING: adopted\n"
                     "  > list /r\n"
                     "[     0] #1 LISTING -> CONFIRMING: first\n"
                     "  > heartbeat /r/G3-0000000007\n");
    prove(s);
    assert_true(script_has(s, "#1 granted 555\n"));
    script_unlock(s, 1);
    script_answer(s, ZKL_REQ_DELETE, ZKL_ANSWER_OK);
    script_free(s);
}

/* Goal: a link that breaks under a create now and then costs nothing; nor does an old answer for ever. What is learned
 * outlives sessions, which such a server ends. Method: an answer comes between the two, over the link that breaks next;
 * then two in a row, and a new session. */
static void only_two_in_a_row_count(void **state)
{
    struct script *s = script_connected();
    (void)state;
    script_lock(s, "/r");
    hang_up_on_a_create(s);
    script_stop(s, 1, ZKL_ECANCELED);
    script_created(s, 7);
    script_answer(s, ZKL_REQ_DELETE, ZKL_ANSWER_OK);
    script_lock(s, "/r");
    hang_up_on_a_create(s);
    hang_up_on_a_create(s);
    assert_false(s->core.opcodes[ZKL_OPCODE_CREATE2].unknown);
    hang_up_on_a_create(s);
    assert_true(s->core.opcodes[ZKL_OPCODE_CREATE2].unknown);
    script_event(s, ZKL_SE_EXPIRED);
    assert_true(s->core.opcodes[ZKL_OPCODE_CREATE2].unknown);
    script_close(s);
    script_free(s);
}

/* Goal: what was carried out was known, though the link broke before the answer. Method: again and again the create's
 * node is found, and so is the parent. */
static void what_is_found_was_known(void **state)
{
    struct script *s = script_connected();
    (void)state;
    for (int i = 1; i <= 3; i++) {
        script_lock(s, "/r");
        script_answer(s, ZKL_REQ_CREATE, ZKL_ANSWER_NONODE);
        hang_up(s);
        script_hang_up(s);
        script_up(s, SCRIPT_SESSION);
        script_answer(s, ZKL_REQ_CHECK_ALL, ZKL_ANSWER_OK);
        char child[32];
        snprintf(child, sizeof child, "%d:%d", 2 * i, i);
        script_listed(s, child);
        script_stop(s, i, ZKL_ECANCELED);
        script_answer(s, ZKL_REQ_DELETE, ZKL_ANSWER_OK);
        assert_false(s->core.opcodes[ZKL_OPCODE_CREATE2].unknown);
        assert_false(s->core.opcodes[ZKL_OPCODE_CONTAINER].unknown);
    }
    script_free(s);
}

/* Goal: the core does not blame a request that every server knows, though it was out before the
 * create. Method: such a read, twice. */
static void what_every_server_knows_is_not_blamed(void **state)
{
    struct script *s = script_connected();
    (void)state;
    for (int i = 0; i < 2; i++) {
        assert_false(s->core.opcodes[ZKL_OPCODE_CREATE2].unknown);
        script_ask(s, (struct zkl_query){.kind = ZKL_REQ_GET, .path = "/q"});
        script_lock(s, "/r");
        script_hang_up(s);
        script_stop(s, i + 1, ZKL_ECANCELED);
        script_up(s, SCRIPT_SESSION);
        script_answer(s, ZKL_REQ_GET, ZKL_ANSWER_OK);
        nothing_was_left(s);
    }
    assert_true(s->core.opcodes[ZKL_OPCODE_CREATE2].unknown);
    script_free(s);
}

/* Goal: silence is no hanging up. Method: the link ends by a timeout, with the create out, again and again. */
static void a_silent_server_is_not_blamed(void **state)
{
    struct script *s = script_connected();
    (void)state;
    script_lock(s, "/r");
    for (int i = 0; i < 3; i++) {
        script_down(s);
        script_up(s, SCRIPT_SESSION);
        nothing_was_left(s);
    }
    assert_false(s->core.opcodes[ZKL_OPCODE_CREATE2].unknown);
    script_stop(s, 1, ZKL_ECANCELED);
    script_created(s, 7);
    script_answer(s, ZKL_REQ_DELETE, ZKL_ANSWER_OK);
    script_free(s);
}

/* Goal: parents become persistent. Method: it hangs up on containers. */
static void containers_are_done_without(void **state)
{
    struct script *s = script_connected();
    (void)state;
    script_lock(s, "/r");
    for (int i = 0; i < 2; i++) {
        script_answer(s, ZKL_REQ_CREATE, ZKL_ANSWER_NONODE);
        assert_true(script_has(s, "  > make /r\n"));
        script_forget(s);
        hang_up(s);
    }
    script_answer(s, ZKL_REQ_CREATE, ZKL_ANSWER_NONODE);
    assert_true(script_has(s, "  > make /r (persistent)\n"));
    script_answer(s, ZKL_REQ_MAKE, ZKL_ANSWER_OK);
    script_stop(s, 1, ZKL_ECANCELED);
    script_created(s, 7);
    script_answer(s, ZKL_REQ_DELETE, ZKL_ANSWER_OK);
    script_free(s);
}

/* Goal: so does the node that a query makes. */
static void asked_containers_are_done_without(void **state)
{
    struct script *s = script_connected();
    (void)state;
    script_ask(s, (struct zkl_query){.kind = ZKL_REQ_MAKE, .path = "/q"});
    hang_up(s);
    hang_up(s);
    assert_true(script_has(s, "  > make /q (persistent)\n"));
    script_reply(s, ZKL_REQ_MAKE,
                 (struct zkl_reply){.answer = ZKL_ANSWER_UNIMPLEMENTED, .number = -6});
    assert_true(script_has(s, "  > make /q (persistent) (plain)\n"));
    script_answer(s, ZKL_REQ_MAKE, ZKL_ANSWER_OK);
    assert_true(script_has(s, "q1: OK"));
    script_free(s);
}

/* Goal: a watch that can't be removed stays until it fires, is shared by whoever wants it again meanwhile, and is
 * removed no more. Method: it hangs up on a removal twice. */
static void watches_are_left_to_fire(void **state)
{
    struct script *s = script_connected();
    (void)state;
    script_wait(s, "/r", 9, "50:7");
    script_stop(s, 1, ZKL_ECANCELED);
    script_fired(s, "/r/G1-0000000009", ZKL_FIRED_DELETED);
    script_answer(s, ZKL_REQ_DELETE, ZKL_ANSWER_OK);
    hang_up(s);
    hang_up(s);
    assert_int_equal(s->request_count, 0);
    assert_int_equal(s->core.watch_count, 1);
    script_queue(s, "/r", 10, "50:7");
    script_forget(s);
    script_fired(s, "/r/G50-0000000007", ZKL_FIRED_DELETED);
    script_answer(s, ZKL_REQ_WATCH, ZKL_ANSWER_OK); /* our own node */
    script_expect(s, "[     0] #2 WAITING -> HOLDING: predecessor deleted\n"
                     "  #2 granted 102\n");
    script_unlock(s, 2);
    script_answer(s, ZKL_REQ_DELETE, ZKL_ANSWER_OK);
    script_close(s);
    assert_int_equal(s->core.watch_bytes, 0);
    script_free(s);
}

/* Goal: a watch that fired before it was known that it stays is dropped. Method: its data changes
 * while the removal is out. */
static void a_watch_that_fired_is_not_left(void **state)
{
    struct script *s = script_connected();
    (void)state;
    script_wait(s, "/r", 9, "50:7");
    script_fired(s, "/r/G1-0000000009", ZKL_FIRED_OTHER);
    script_answer(s, ZKL_REQ_WATCH, ZKL_ANSWER_OK);
    uint64_t id = s->contenders[0].subs[ZKL_SUB_PRED].watch->id;
    script_stop(s, 1, ZKL_ECANCELED);
    zkl_core_fired(&s->core, s->core.now, id, ZKL_FIRED_OTHER);
    hang_up(s);
    hang_up(s);
    script_answer(s, ZKL_REQ_DELETE, ZKL_ANSWER_OK);
    assert_int_equal(s->core.watch_count, 1); /* its own node's: no event has reported that */
    script_close(s);
    script_free(s);
}

/* Goal: a server that lacks an indispensable request is reported, by its own word alone: a heartbeat is the first to be
 * lost with each link. Method: the server hangs up on heartbeats; it answers that it does not know them. */
static void a_server_without_transactions_is_told_of(void **state)
{
    (void)state;
    struct script *s = script_connected();
    script_hold(s, "/r", 7);
    script_forget(s);
    for (int i = 0; i < 7; i++) {
        script_at(s, s->now_ms + 750);
        hang_up(s);
    }
    assert_false(script_has(s, "does not know transactions"));
    assert_true(s->core.session.useless);
    script_at(s, s->now_ms + 1260);
    script_answer(s, ZKL_REQ_CHECK_ALL, ZKL_ANSWER_UNIMPLEMENTED);
    assert_true(script_has(s, "does not know transactions"));
    script_abandon(s, 1);
    script_close(s);
    script_free(s);
}

/* --- servers that resume no session ------------------------------------------------------------ */

/* It hangs up, and then does not know the session any more: the next one, as soon as the core wants it. */
static void end_session(struct script *s)
{
    script_hang_up(s);
    script_event(s, ZKL_SE_EXPIRED);
    assert_true(script_has(s, "drop handle"));
    script_forget(s);
    for (int i = 0; i < 1000 && !script_has(s, "replace handle"); i++)
        script_at(s, s->now_ms + 10);
    assert_true(script_has(s, "replace handle"));
    script_up(s, SCRIPT_SESSION + s->now_ms);
}

/* Goal: a server that hangs up on a request that it does not know and resumes no session is asked for it once. Method:
 * create2, and then containers. Seen red: forgotten with each session, both were asked for again for ever. */
static void one_session_is_enough(void **state)
{
    struct script *s = script_connected();
    (void)state;
    s->young = true;
    s->core.session.born = s->core.now;
    script_lock(s, "/r");
    end_session(s);
    assert_true(s->now_ms >= 1000);
    assert_true(script_has(s, "> create /r/G2- (plain)"));
    script_answer(s, ZKL_REQ_CREATE, ZKL_ANSWER_NONODE);
    end_session(s);
    script_answer(s, ZKL_REQ_CREATE, ZKL_ANSWER_NONODE);
    assert_true(script_has(s, "  > make /r (persistent) (plain)\n"));
    assert_true(s->core.opcodes[ZKL_OPCODE_CREATE2].unknown);
    script_answer(s, ZKL_REQ_MAKE, ZKL_ANSWER_OK);
    script_stop(s, 1, ZKL_ECANCELED);
    script_close(s);
    script_free(s);
}

/* Goal: one that lived its time says nothing about the request that its last link lost. */
static void a_session_that_lived_teaches_nothing(void **state)
{
    struct script *s = script_connected();
    (void)state;
    script_lock(s, "/r");
    script_hang_up(s);
    script_event(s, ZKL_SE_EXPIRED);
    assert_true(script_has(s, "replace handle"));
    assert_false(s->core.opcodes[ZKL_OPCODE_CREATE2].unknown);
    script_stop(s, 1, ZKL_ECANCELED);
    script_close(s);
    script_free(s);
}

/* Goal: what is unknown is tried once more over the first link after ten minutes, and forgotten if it was answered.
 * Method: a link after nine, which is not used for that; after ten, where the server hangs up again; after ten more,
 * where it has learned. */
static void what_is_unknown_is_tried_again(void **state)
{
    struct script *s = script_connected();
    (void)state;
    script_ask(s, (struct zkl_query){.kind = ZKL_REQ_MAKE, .path = "/q"});
    hang_up(s);
    hang_up(s);
    assert_true(script_has(s, "  > make /q (persistent)\n"));
    script_answer(s, ZKL_REQ_MAKE, ZKL_ANSWER_OK);
    for (int i = 0; i < 3; i++) {
        script_at(s, s->now_ms + (i == 0 ? 540000 : 600000));
        hang_up(s);
        script_forget(s);
        script_ask(s, (struct zkl_query){.kind = ZKL_REQ_MAKE, .path = "/q"});
        assert_int_equal(script_has(s, "  > make /q\n"), i > 0);
        if (i == 1)
            hang_up(s);
        script_answer(s, ZKL_REQ_MAKE, ZKL_ANSWER_OK);
        assert_int_equal(s->core.opcodes[ZKL_OPCODE_CONTAINER].unknown, i < 2);
    }
    script_close(s);
    script_free(s);
}

/* Goal: where nothing takes the place of a request, the links are used more and more rarely. Method: syncs, until one is
 * answered. */
static void what_has_no_other_way_is_asked_slowly(void **state)
{
    struct script *s = script_connected();
    (void)state;
    script_ask(s, (struct zkl_query){.kind = ZKL_REQ_SYNC, .path = "/q"});
    for (int i = 0; i < 6; i++) {
        assert_true(s->request_count == 1);
        hang_up(s);
    }
    for (int i = 0; i < 3; i++) {
        int64_t up_ms = s->now_ms;
        assert_int_equal(s->request_count, 0);
        while (s->request_count == 0)
            script_at(s, s->now_ms + 10);
        assert_in_range(s->now_ms - up_ms, 1000, 1260);
        hang_up(s);
    }
    script_at(s, s->now_ms + 1260);
    for (int i = 0; i < 20; i++) { /* what is answered is lost with links that break */
        script_answer(s, ZKL_REQ_SYNC, ZKL_ANSWER_OK);
        script_ask(s, (struct zkl_query){.kind = ZKL_REQ_SYNC, .path = "/q"});
        hang_up(s);
        assert_int_equal(s->request_count, 1);
    }
    for (int i = 0; i < 6; i++) { /* but what was answered long ago can be what ends them */
        assert_int_equal(s->request_count, 1);
        hang_up(s);
    }
    assert_int_equal(s->request_count, 0);
    script_at(s, s->now_ms + 1260);
    script_close(s);
    script_free(s);
}

/* Goal: a list that goes out by another operation says nothing of this one. Method: one is answered, and then the other is
 * hung up on; and a create in a transaction, after a plain one. */
static void an_operation_is_not_its_kind(void **state)
{
    struct script *s = script_connected();
    (void)state;
    script_ask(s, (struct zkl_query){.kind = ZKL_REQ_LIST, .path = "/q"});
    script_listed(s, "");
    struct zkl_pending plain = {.kind = ZKL_REQ_LIST}, two = {.kind = ZKL_REQ_LIST};
    two.opcode = zkl_opcode_choose(
        &s->core, &(struct zkl_request){.kind = ZKL_REQ_LIST, .path = "/q", .flag = true});
    zkl_opcode_hung_up(&s->core, &plain);
    assert_int_equal(s->core.suspicions, 0);
    zkl_opcode_hung_up(&s->core, &two);
    assert_int_equal(s->core.suspicions, 1);
    zkl_opcode_link_up(&s->core);
    assert_int_equal(zkl_opcode_choose(&s->core, &(struct zkl_request){.kind = ZKL_REQ_CREATE,
                                                                       .path = "/q",
                                                                       .check_count = 1}),
                     ZKL_OPCODE_MULTI);
    zkl_opcode_answered(&s->core, &(struct zkl_pending){.kind = ZKL_REQ_CREATE}, ZKL_ANSWER_OK);
    zkl_opcode_hung_up(&s->core,
                       &(struct zkl_pending){.kind = ZKL_REQ_CREATE, .opcode = ZKL_OPCODE_MULTI});
    assert_int_equal(s->core.suspicions, 2);
    script_close(s);
    script_free(s);
}

/* Goal: two requests that are lost in turn hide each other no more than a link that is lost before it was used; but a
 * link that was of use and ends by neither is what all links do now and then. Method: a try behind a sync, and a list. */
static void two_that_are_lost_in_turn_are_found(void **state)
{
    struct script *s = script_connected();
    (void)state;
    for (int i = 0; i < 5; i++) {
        script_ask(s,
                   (struct zkl_query){.kind = i % 2 ? ZKL_REQ_SYNC : ZKL_REQ_LIST, .path = "/q"});
        script_hang_up(s);
        script_withdraw(s, s->asked);
        script_up(s, SCRIPT_SESSION);
        if (i == 1)
            hang_up(s); /* nothing was out */
    }
    assert_int_equal(s->core.suspicions, 5);
    script_ask(s, (struct zkl_query){.kind = ZKL_REQ_STAT, .path = "/q"});
    script_answer(s, ZKL_REQ_STAT, ZKL_ANSWER_OK);
    hang_up(s);
    assert_int_equal(s->core.suspicions, 0);
    script_close(s);
    script_free(s);
}

/* Goal: what ends a link is found although it is lost behind others, which it may overtake (B117). Method: a lost answer
 * to a heartbeat before a list's, by turns with one that came. Seen red: the heartbeat was blamed for the one, and made
 * the other a link of use. */
static void what_is_lost_with_others_is_found(void **state)
{
    struct script *s = script_connected();
    (void)state;
    script_hold(s, "/r", 7);
    script_ask(s, (struct zkl_query){.kind = ZKL_REQ_LIST, .path = "/q", .flag = true});
    hang_up(s);
    for (int i = 0; i < 5; i++) {
        assert_false(s->core.session.waits);
        if (i % 2)
            script_answer(s, ZKL_REQ_CHECK_ALL, ZKL_ANSWER_OK);
        hang_up(s);
    }
    assert_true(s->core.session.waits);
    script_abandon(s, 1);
    script_close(s);
    script_free(s);
}

/* Goal: a server that only says that it does not know what there is another way for, and keeps the link, is no slower
 * for it: what was learned is tried over a link now and then, and each link is of use. Method: seven links, each
 * as old; then syncs, for which there is no other way. */
static void what_is_refused_in_words_slows_nothing(void **state)
{
    struct script *s = script_connected();
    (void)state;
    for (int i = 0; i < 7; i++) {
        script_ask(s, (struct zkl_query){.kind = ZKL_REQ_UNWATCH, .path = "/q"});
        script_answer(s, ZKL_REQ_UNWATCH, ZKL_ANSWER_UNIMPLEMENTED);
        script_withdraw(s, s->asked);
        script_ask(s, (struct zkl_query){.kind = ZKL_REQ_STAT, .path = "/q"});
        script_answer(s, ZKL_REQ_STAT, ZKL_ANSWER_OK);
        assert_false(s->core.session.useless);
        script_at(s, s->now_ms + 600000);
        hang_up(s);
    }
    for (int i = 0; i < 6; i++) {
        assert_false(s->core.session.useless);
        script_ask(s, (struct zkl_query){.kind = ZKL_REQ_SYNC, .path = "/q"});
        script_answer(s, ZKL_REQ_SYNC, ZKL_ANSWER_UNIMPLEMENTED);
        hang_up(s);
    }
    assert_true(s->core.session.useless);
    script_close(s);
    script_free(s);
}

/* Goal: a link that ends while nobody awaits what was out is no sign either way, and what is lost behind the answer that
 * clears all others is none. Method: a link of use that ends by a withdrawn question; then one that answers a sync, and
 * loses a look. */
static void what_nobody_awaits_says_nothing(void **state)
{
    struct script *s = script_connected();
    (void)state;
    script_ask(s, (struct zkl_query){.kind = ZKL_REQ_SYNC, .path = "/q"});
    hang_up(s);
    script_ask(s, (struct zkl_query){.kind = ZKL_REQ_STAT, .path = "/q"});
    script_answer(s, ZKL_REQ_STAT, ZKL_ANSWER_OK);
    zkl_opcode_hung_up(&s->core, NULL);
    zkl_opcode_link_comes(&s->core);
    assert_int_equal(s->core.suspicions, 1);
    script_answer(s, ZKL_REQ_SYNC, ZKL_ANSWER_OK);
    script_ask(s, (struct zkl_query){.kind = ZKL_REQ_GET, .path = "/q"});
    hang_up(s);
    assert_int_equal(s->core.suspicions, 0);
    script_close(s);
    script_free(s);
}

static void lose_syncs(struct script *s, int count)
{
    for (int i = 0; i < count; i++) {
        script_ask(s, (struct zkl_query){.kind = ZKL_REQ_SYNC, .path = "/q"});
        script_hang_up(s);
        script_withdraw(s, s->asked);
        script_up(s, SCRIPT_SESSION);
    }
}

/* Goal: keepalives over a link that is not used yet do not make it one of use, and one that was is known for it before
 * the next would be used later. Method: links that end by nothing: one that was not used, one that was not used yet, and
 * one that was used. */
static void only_what_is_used_is_of_use(void **state)
{
    struct script *s = script_connected();
    (void)state;
    lose_syncs(s, 6);
    script_at(s, s->now_ms + 1260);
    assert_false(s->core.session.waits);
    hang_up(s);
    assert_true(s->core.session.waits);
    uint64_t keepalives = s->core.sent[ZKL_REQ_KEEPALIVE];
    script_at(s, s->now_ms + 990);
    assert_true(s->core.sent[ZKL_REQ_KEEPALIVE] > keepalives);
    hang_up(s);
    assert_true(s->core.session.waits);
    script_at(s, s->now_ms + 1260);
    script_ask(s, (struct zkl_query){.kind = ZKL_REQ_STAT, .path = "/q"});
    script_answer(s, ZKL_REQ_STAT, ZKL_ANSWER_OK);
    hang_up(s);
    assert_false(s->core.session.waits);
    script_close(s);
    script_free(s);
}

/* Goal: links that are shorter than a pause are used when it is over, and the next pause is a first one again once
 * they were of use. Method: each lives for 300 ms, in which nothing is sent; then a question is answered. */
static void short_links_are_used_after_the_pause(void **state)
{
    struct script *s = script_connected();
    (void)state;
    for (int episode = 0; episode < 2; episode++) {
        lose_syncs(s, 6);
        script_ask(s, (struct zkl_query){.kind = ZKL_REQ_SYNC, .path = "/q"});
        int64_t began_ms = s->now_ms;
        while (s->request_count == 0) {
            assert_true(s->now_ms - began_ms <= 1260);
            script_at(s, s->now_ms + 300);
            if (s->request_count == 0)
                hang_up(s);
        }
        script_answer(s, ZKL_REQ_SYNC, ZKL_ANSWER_OK);
        hang_up(s);
        assert_false(s->core.session.waits);
    }
    script_close(s);
    script_free(s);
}

/* Goal: nothing is said or done about a server that lacks an operation where another one has taken its place, although
 * nobody asks for the operation any more. Method: a link of a session's timeout, with keepalives. */
static void a_link_that_lasts_is_of_use(void **state)
{
    struct script *s = script_connected();
    (void)state;
    lose_syncs(s, 6);
    script_at(s, s->now_ms + SCRIPT_TIMEOUT_MS - 100);
    assert_false(s->core.session.waits);
    assert_true(s->core.session.useless);
    script_at(s, s->now_ms + SCRIPT_TIMEOUT_MS);
    assert_false(s->core.session.useless);
    script_close(s);
    script_free(s);
}

/* Goal: links that break early are of use where each brings the client further. Method: each answers what the one before
 * it lost. */
static void what_goes_on_is_not_slow(void **state)
{
    static const enum zkl_request_kind kinds[] = {ZKL_REQ_MAKE,  ZKL_REQ_SYNC, ZKL_REQ_LIST,
                                                  ZKL_REQ_STAT,  ZKL_REQ_GET,  ZKL_REQ_SET,
                                                  ZKL_REQ_DELETE};
    struct script *s = script_connected();
    (void)state;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        script_ask(s, (struct zkl_query){.kind = kinds[i], .path = "/q"});
        hang_up(s);
        assert_false(s->core.session.waits);
        script_answer(s, kinds[i], ZKL_ANSWER_OK);
    }
    script_close(s);
    script_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(create2_is_done_without),
        cmocka_unit_test(only_two_in_a_row_count),
        cmocka_unit_test(what_is_found_was_known),
        cmocka_unit_test(what_every_server_knows_is_not_blamed),
        cmocka_unit_test(a_silent_server_is_not_blamed),
        cmocka_unit_test(containers_are_done_without),
        cmocka_unit_test(asked_containers_are_done_without),
        cmocka_unit_test(watches_are_left_to_fire),
        cmocka_unit_test(a_watch_that_fired_is_not_left),
        cmocka_unit_test(a_server_without_transactions_is_told_of),
        cmocka_unit_test(one_session_is_enough),
        cmocka_unit_test(a_session_that_lived_teaches_nothing),
        cmocka_unit_test(what_is_unknown_is_tried_again),
        cmocka_unit_test(what_has_no_other_way_is_asked_slowly),
        cmocka_unit_test(two_that_are_lost_in_turn_are_found),
        cmocka_unit_test(what_is_lost_with_others_is_found),
        cmocka_unit_test(an_operation_is_not_its_kind),
        cmocka_unit_test(what_is_refused_in_words_slows_nothing),
        cmocka_unit_test(what_nobody_awaits_says_nothing),
        cmocka_unit_test(only_what_is_used_is_of_use),
        cmocka_unit_test(short_links_are_used_after_the_pause),
        cmocka_unit_test(a_link_that_lasts_is_of_use),
        cmocka_unit_test(what_goes_on_is_not_slow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
