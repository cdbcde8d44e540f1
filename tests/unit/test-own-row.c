/* SPDX-License-Identifier: Apache-2.0
 * Waiting behind another node of this client by the number alone, and what keeps it away. */
#include <stdio.h>
#include <string.h>

#include <zklock/zklock.h>

#include "core/place.h"
#include "core/unlisted_grant.h"
#include "script.h"

static enum zkl_contender_state state_of(struct script *s, int number)
{
    return script_contender(s, number)->machine.state;
}

/* The oldest watch that was asked for is on a node of this client. */
static void armed(struct script *s)
{
    script_reply(s, ZKL_REQ_WATCH,
                 (struct zkl_reply){.answer = ZKL_ANSWER_OK, .node_session = SCRIPT_SESSION});
}

static void all_armed(struct script *s)
{
    enum zkl_request_kind kind;
    while (script_next(s, &kind) && kind == ZKL_REQ_WATCH)
        armed(s);
}

/* #1 has had the lock, #2 has it and #3 waits behind it, each by a list: a row of two, from which on no list is
 * sent. The next is #4, with that number. */
static struct script *row(void)
{
    struct script *s = script_connected();
    s->core.unlisted_from = 2;
    script_lock_unlisted(s, "/r");
    script_created(s, 1);
    script_listed(s, "1:1");
    script_lock_unlisted(s, "/r");
    script_created(s, 2);
    script_listed(s, "1:1 2:2");
    script_lock_unlisted(s, "/r");
    script_created(s, 3);
    script_listed(s, "1:1 2:2 3:3");
    all_armed(s);
    /* a contender that was granted by a list, and never waited, leaves no heir */
    script_unlock(s, 1);
    script_answer(s, ZKL_REQ_DELETE, ZKL_ANSWER_OK);
    script_fired(s, "/r/G1-0000000001", ZKL_FIRED_DELETED);
    script_listed(s, "2:2 3:3");
    assert_int_equal(state_of(s, 2), ZKL_CONTENDER_HOLDING);
    assert_int_equal(state_of(s, 3), ZKL_CONTENDER_WAITING);
    script_forget(s);
    return s;
}

static void end(struct script *s)
{
    script_event(s, ZKL_SE_EXPIRED);
    for (int i = 1; i <= (int)s->core.last_number; i++) {
        if (s->live[i - 1] && state_of(s, i) == ZKL_CONTENDER_LOSTHOLD)
            script_unlock(s, i);
        else if (s->live[i - 1])
            script_stop(s, i, ZKL_ECANCELED);
    }
    assert_int_equal(script_path(s, "/r")->unlisted.live_count, 0);
    assert_null(script_path(s, "/r")->unlisted.last);
    script_free(s);
}

/* It waits by its number, with at most this many before it. */
static void waits(struct script *s, int number, size_t before)
{
    assert_int_equal(state_of(s, number), ZKL_CONTENDER_WAITING);
    assert_true(script_contender(s, number)->machine.pred_is_by_number);
    assert_int_equal(zkl_queue_place_of(script_contender(s, number)).before, before);
}

static void asks_for_a_list(struct script *s, int number)
{
    assert_int_equal(state_of(s, number), ZKL_CONTENDER_LISTING);
    assert_true(script_has(s, "  > list /r\n"));
}

/* Goal: a waiter of a client whose last node is just before its own sends a create and a watch. Method: the golden
 * trace of two. */
static void no_list_is_sent(void **state)
{
    struct script *s = row();
    (void)state;
    script_lock_unlisted(s, "/r");
    script_created(s, 4);
    script_lock_unlisted(s, "/r");
    script_created(s, 5);
    script_expect(s, "[     0] #4 NEW -> QUEUEING: started\n"
                     "  > create /r/G4-\n"
                     "[     0] #4 QUEUEING -> WAITING: behind others\n"
                     "  > watch /r/G3-0000000003\n"
                     "[     0] #5 NEW -> QUEUEING: started\n"
                     "  > create /r/G5-\n"
                     "[     0] #5 QUEUEING -> WAITING: behind others\n"
                     "  > watch /r/G4-0000000004\n");
    waits(s, 4, 2);
    waits(s, 5, 3);
    assert_string_equal(zkl_queue_place_of(script_contender(s, 5)).owner, "owner");
    end(s);
}

/* #number unlocks: the next one, whose place is by its number or not, has the lock by the answer to that. */
static void hands_over(struct script *s, int number, const char *node)
{
    script_forget(s);
    script_unlock(s, number);
    script_fired(s, node, ZKL_FIRED_DELETED);
    script_answer(s, ZKL_REQ_DELETE, ZKL_ANSWER_OK);
    assert_int_equal(state_of(s, number + 1), ZKL_CONTENDER_HOLDING);
    assert_false(script_has(s, "  > list"));
}

/* Goal: such a queue is worked off with one request for each. Method: three in a row. */
static void one_request_hands_over(void **state)
{
    struct script *s = row();
    (void)state;
    for (int i = 4; i <= 6; i++) {
        script_lock_unlisted(s, "/r");
        script_created(s, i);
    }
    all_armed(s);
    hands_over(s, 2, "/r/G2-0000000002");
    hands_over(s, 3, "/r/G3-0000000003");
    hands_over(s, 4, "/r/G4-0000000004");
    assert_int_equal(state_of(s, 6), ZKL_CONTENDER_WAITING);
    end(s);
}

/* Goal: the number of contenders before it does not grow while others leave: the numbers show it.
 * Method: two have left that the one before still counts. */
static void who_left_is_not_counted(void **state)
{
    struct script *s = row();
    (void)state;
    for (int i = 4; i <= 5; i++) {
        script_lock_unlisted(s, "/r");
        script_created(s, i);
    }
    all_armed(s);
    hands_over(s, 2, "/r/G2-0000000002");
    hands_over(s, 3, "/r/G3-0000000003");
    assert_int_equal(zkl_queue_place_of(script_contender(s, 5)).before, 3);
    script_lock_unlisted(s, "/r");
    script_created(s, 6);
    waits(s, 6, 2);
    end(s);
}

/* Goal: with another contender between, or with a number of another node of the path, it lists, and
 * so do those after it. Method: one number too high, and one too low. */
static void another_number_is_listed(void **state)
{
    (void)state;
    for (int32_t number = 3; number <= 5; number += 2) {
        struct script *s = row();
        script_lock_unlisted(s, "/r");
        script_created(s, number);
        asks_for_a_list(s, 4);
        script_forget(s);
        script_lock_unlisted(s, "/r");
        assert_true(script_has(s, "  > list /r\n"));
        end(s);
    }
}

/* Goal: a path made anew may give just the next number. Method: the node before is not there when the watch comes, also
 * where it was the only one before, and the own node is known to be there. */
static void a_path_made_anew_is_listed(void **state)
{
    struct script *s = row();
    (void)state;
    script_lock_unlisted(s, "/r");
    script_created(s, 4);
    script_answer(s, ZKL_REQ_WATCH, ZKL_ANSWER_NONODE);
    asks_for_a_list(s, 4);
    end(s);

    s = script_connected();
    s->core.unlisted_from = 0;
    script_lock_unlisted(s, "/r");
    script_created(s, 1);
    script_listed(s, "1:1");
    script_lock_unlisted(s, "/r");
    script_created(s, 2);
    waits(s, 2, 1);
    script_answer(s, ZKL_REQ_WATCH, ZKL_ANSWER_NONODE);
    asks_for_a_list(s, 2);
    assert_false(script_has(s, "granted 102"));
    end(s);
}

/* Goal: the event grants the lock to the first behind a holder, as with a list. Method: another
 * client deletes the holder's node; the own node's watch was under way. */
static void the_next_in_line_is_granted_by_the_event(void **state)
{
    struct script *s = script_connected();
    (void)state;
    s->core.unlisted_from = 0;
    script_lock_unlisted(s, "/r");
    script_created(s, 1);
    script_listed(s, "1:1");
    script_lock_unlisted(s, "/r");
    script_created(s, 2);
    armed(s);
    script_fired(s, "/r/G1-0000000001", ZKL_FIRED_DELETED);
    assert_int_equal(state_of(s, 2), ZKL_CONTENDER_WAITING);
    armed(s);
    assert_int_equal(state_of(s, 2), ZKL_CONTENDER_HOLDING);
    end(s);
}

/* Goal: a node that was made over an earlier link is not relied on, nor is a watch. Method: the link breaks before the
 * create, and before the watch is armed. */
static void a_new_link_lists(void **state)
{
    struct script *s = row();
    (void)state;
    script_down(s);
    script_up(s, SCRIPT_SESSION);
    script_listed(s, "2:2 3:3");
    assert_int_equal(state_of(s, 3), ZKL_CONTENDER_WAITING);
    script_forget(s);
    script_lock_unlisted(s, "/r");
    assert_true(script_has(s, "  > list /r\n"));
    script_created(s, 4);
    assert_int_equal(state_of(s, 4), ZKL_CONTENDER_QUEUEING);
    assert_int_equal(script_path(s, "/r")->unlisted.row, 0);
    end(s);

    s = row();
    script_lock_unlisted(s, "/r");
    script_created(s, 4);
    script_down(s);
    script_forget(s);
    script_up(s, SCRIPT_SESSION);
    assert_int_equal(state_of(s, 4), ZKL_CONTENDER_LISTING);
    script_listed(s, "2:2 3:3 4:4");
    assert_int_equal(state_of(s, 4), ZKL_CONTENDER_WAITING);
    assert_false(script_contender(s, 4)->machine.pred_is_by_number);
    end(s);
}

/* Goal: a contender that leaves, has left or does not know its own place is no predecessor. Method:
 * the last one gives up while the next one's create is under way, and before; it is deleted; it
 * lists. */
static void the_one_before_has_to_stand(void **state)
{
    struct script *s = row();
    (void)state;
    script_lock_unlisted(s, "/r");
    script_stop(s, 3, ZKL_ECANCELED);
    script_created(s, 4);
    asks_for_a_list(s, 4);
    end(s);

    s = row();
    script_stop(s, 3, ZKL_ECANCELED);
    script_answer(s, ZKL_REQ_DELETE, ZKL_ANSWER_OK);
    script_forget(s);
    script_lock_unlisted(s, "/r");
    assert_true(script_has(s, "  > list /r\n"));
    end(s);

    s = row();
    script_lock_unlisted(s, "/r");
    script_fired(s, "/r/G2-0000000002", ZKL_FIRED_OTHER);
    assert_int_equal(state_of(s, 3), ZKL_CONTENDER_LISTING);
    script_created(s, 4);
    asks_for_a_list(s, 4);
    end(s);
}

/* Goal: a session that ended leaves no predecessor. Method: two waiters queue again in the next one; the first gets the
 * number after that which the second had before. */
static void another_session_begins_anew(void **state)
{
    struct script *s = row();
    (void)state;
    script_lock_unlisted(s, "/r");
    script_created(s, 4);
    waits(s, 4, 2);
    script_event(s, ZKL_SE_EXPIRED);
    s->core.unlisted_from = 0;
    script_forget(s);
    script_up(s, SCRIPT_SESSION + 1);
    assert_true(script_has(s, "> list /r\n"));
    script_created(s, 5);
    assert_int_equal(state_of(s, 3), ZKL_CONTENDER_QUEUEING);
    end(s);
}

/* Goal: a list that is out decides. Method: the row is not long enough yet, and the number is the next one. */
static void a_list_that_is_out_decides(void **state)
{
    struct script *s = row();
    (void)state;
    s->core.unlisted_from = 3;
    script_lock_unlisted(s, "/r");
    assert_true(script_has(s, "  > list /r\n"));
    script_created(s, 4);
    assert_int_equal(state_of(s, 4), ZKL_CONTENDER_QUEUEING);
    script_listed(s, "2:2 3:3 4:4");
    assert_int_equal(state_of(s, 4), ZKL_CONTENDER_WAITING);
    assert_false(script_contender(s, 4)->machine.pred_is_by_number);
    end(s);
}

/* Goal: others do not wait by their numbers: a try, which does not wait, and a contender without a
 * record of the path. Method: each with the next number. */
static void others_list(void **state)
{
    struct script *s = row();
    (void)state;
    script_lock(s, "/r");
    assert_true(script_has(s, "  > list /r\n"));
    end(s);

    s = row();
    struct zkl_lock_request request = {
        .path = script_path(s, "/r"), .data = "us", .unlisted = true, .try_only = true};
    s->live[3] = true;
    zkl_core_acquire(&s->core, s->core.now, &s->contenders[3], &request);
    script_listed(s, "");
    assert_true(script_has(s, "  > create /r/G4-\n  > list /r\n"));
    script_created(s, 4);
    assert_int_equal(state_of(s, 4), ZKL_CONTENDER_QUEUEING);
    end(s);
}

/* Goal: at the end of the counter no number says anything. Method: the first of those that are never granted. */
static void an_exhausted_number_is_none(void **state)
{
    struct script *s = script_connected();
    const int32_t last = INT32_MAX - (1 << 20);
    (void)state;
    s->core.unlisted_from = 0;
    script_lock_unlisted(s, "/r");
    script_created(s, last);
    script_listed(s, "1:2146435071");
    script_lock_unlisted(s, "/r");
    script_created(s, last + 1);
    assert_int_equal(state_of(s, 1), ZKL_CONTENDER_HOLDING);
    assert_int_equal(state_of(s, 2), ZKL_CONTENDER_EXHAUSTED);
    end(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_list_is_sent),
        cmocka_unit_test(one_request_hands_over),
        cmocka_unit_test(who_left_is_not_counted),
        cmocka_unit_test(another_number_is_listed),
        cmocka_unit_test(a_path_made_anew_is_listed),
        cmocka_unit_test(the_next_in_line_is_granted_by_the_event),
        cmocka_unit_test(a_new_link_lists),
        cmocka_unit_test(the_one_before_has_to_stand),
        cmocka_unit_test(another_session_begins_anew),
        cmocka_unit_test(a_list_that_is_out_decides),
        cmocka_unit_test(others_list),
        cmocka_unit_test(an_exhausted_number_is_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
