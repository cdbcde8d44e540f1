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

/* Goal: a watch that fired before it was known that it stays is dropped. Method: its data changes
 * while the removal is out. */
TEST(a_watch_that_fired_is_not_left)
{
    struct script *s = script_connected();
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

/* Goal: a list that goes out by another operation says nothing of this one. Method: one is answered, and then the other is
 * hung up on; and a create in a transaction, after a plain one. */
TEST(an_operation_is_not_its_kind)
{
    struct script *s = script_connected();
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

/* Goal: a link that ends while nobody awaits what was out is no sign either way, and what is lost behind the answer that
 * clears all others is none. Method: a link of use that ends by a withdrawn question; then one that answers a sync, and
 * loses a look. */
TEST(what_nobody_awaits_says_nothing)
{
    struct script *s = script_connected();
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
