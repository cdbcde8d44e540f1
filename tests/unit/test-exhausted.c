/* SPDX-License-Identifier: Apache-2.0
 * The used-up sequence counter, on a script. */
#include <string.h>

#include <zklock/zklock.h>

#include "script.h"

/* Goal: an exhausted number is never granted: its owner withdraws, has the empty root made
 * again, and queues anew. Method: the first exhausted number, then a fresh root. Modes: F27. */
static void an_exhausted_number_is_withdrawn_and_the_root_renewed(void **state)
{
    struct script *s = script_connected();
    (void)state;
    script_lock(s, "/r");
    script_created(s, 0x7ff00000);
    script_answer(s, ZKL_REQ_DELETE, ZKL_ANSWER_OK);
    script_lock_path_listed(s, 50, "");
    script_answer(s, ZKL_REQ_RENEW, ZKL_ANSWER_OK);
    script_lock_path_listed(s, 200, "");
    script_created(s, 0);
    script_listed(s, "2:0");
    script_expect(s, "[     0] #1 NEW -> QUEUEING: started\n"
                     "  > create /r/G1-\n"
                     "  > list /r\n"
                     "[     0] #1 QUEUEING -> EXHAUSTED: number exhausted\n"
                     "  > delete /r/G1-2146435072\n"
                     "  > list root /r\n"
                     "  > renew /r\n"
                     "  > list root /r\n"
                     "[     0] #1 EXHAUSTED -> QUEUEING: root is new\n"
                     "  > create /r/G2-\n"
                     "  > list /r\n"
                     "  > unwatch /r\n"
                     "[     0] #1 QUEUEING -> HOLDING: first\n"
                     "  #1 granted 102\n");
    script_answer(s, ZKL_REQ_UNWATCH, ZKL_ANSWER_OK);
    script_unlock(s, 1);
    script_answer(s, ZKL_REQ_DELETE, ZKL_ANSWER_OK);
    script_free(s);
}

/* Goal: a node whose name the server made without a number is none to be granted. */
static void a_name_without_a_number_is_withdrawn(void **state)
{
    struct script *s = script_connected();
    (void)state;
    script_lock(s, "/r");
    script_reply(s, ZKL_REQ_CREATE, (struct zkl_reply){.name = "note", .czxid = 101});
    script_expect(s, "[     0] #1 NEW -> QUEUEING: started\n"
                     "  > create /r/G1-\n"
                     "  > list /r\n"
                     "[     0] #1 QUEUEING -> EXHAUSTED: number exhausted\n"
                     "  > delete /r/note\n");
    script_stop(s, 1, ZKL_ECANCELED);
    script_answer(s, ZKL_REQ_DELETE, ZKL_ANSWER_OK);
    script_free(s);
}

/* Goal: the last number before the exhausted ones is good. Method: it is granted. */
static void the_number_before_is_granted(void **state)
{
    struct script *s = script_connected();
    (void)state;
    script_lock(s, "/r");
    script_created(s, 0x7fefffff);
    script_listed(s, "1:2146435071");
    assert_true(script_has(s, "granted"));
    script_unlock(s, 1);
    script_answer(s, ZKL_REQ_DELETE, ZKL_ANSWER_OK);
    script_free(s);
}

/* Goal: renewal waits until the others have left. Method: a negative number; valid and exhausted
 * ones are there, and leave one by one. */
static void renewal_waits_for_those_who_are_there(void **state)
{
    struct script *s = script_connected();
    (void)state;
    script_lock(s, "/r");
    script_created(s, INT32_MIN);
    script_answer(s, ZKL_REQ_DELETE, ZKL_ANSWER_OK);
    script_lock_path_listed(s, 50, "5:2146435071 6:2147483647");
    script_at(s, 100);
    script_fired(s, "/r", ZKL_FIRED_OTHER);
    script_lock_path_listed(s, 50, "6:2147483647");
    script_at(s, 200);
    script_fired(s, "/r", ZKL_FIRED_OTHER);
    script_answer(s, ZKL_REQ_LIST_LOCK_PATH, ZKL_ANSWER_NONODE);
    script_expect(s, "[     0] #1 NEW -> QUEUEING: started\n"
                     "  > create /r/G1-\n"
                     "  > list /r\n"
                     "[     0] #1 QUEUEING -> EXHAUSTED: number exhausted\n"
                     "  > delete /r/G1--2147483648\n"
                     "  > list root /r\n"
                     "  > list root /r\n"
                     "  > list root /r\n"
                     "[   200] #1 EXHAUSTED -> QUEUEING: root is gone\n"
                     "  > create /r/G2-\n"
                     "  > list /r\n");
    script_stop(s, 1, ZKL_ECANCELED);
    script_answer(s, ZKL_REQ_CREATE, ZKL_ANSWER_NONODE);
    script_free(s);
}

/* Goal: a contender that is alone there, and may stay until another one queues, is asked to release
 * the path, as none can queue: each time it is seen, and however that ends. Method: such a node
 * (r5) before and behind another one and alone, and an ordinary one. */
static void who_stays_is_asked_to_let_go(void **state)
{
    static const char request[] = "  > set /r/G5-0000000007 to __REVOKE__\n";
    struct script *s = script_connected();
    (void)state;
    script_lock(s, "/r");
    script_created(s, 0x7ff00000);
    script_answer(s, ZKL_REQ_DELETE, ZKL_ANSWER_OK);
    script_forget(s);
    script_lock_path_listed(s, 50, "r5:7 6:8");
    script_fired(s, "/r", ZKL_FIRED_OTHER);
    script_lock_path_listed(s, 50, "6:6 r5:7");
    script_fired(s, "/r", ZKL_FIRED_OTHER);
    assert_false(script_has(s, "set"));
    script_lock_path_listed(s, 50, "r5:7");
    assert_true(script_has(s, request));
    script_answer(s, ZKL_REQ_SET, ZKL_ANSWER_LINK);
    script_forget(s);
    script_down(s);
    script_up(s, SCRIPT_SESSION);
    script_lock_path_listed(s, 50, "r5:7");
    assert_true(script_has(s, request));
    script_fired(s, "/r", ZKL_FIRED_OTHER);
    script_forget(s);
    script_lock_path_listed(s, 50, "6:9");
    assert_false(script_has(s, "set"));
    script_fired(s, "/r", ZKL_FIRED_OTHER);
    script_answer(s, ZKL_REQ_LIST_LOCK_PATH, ZKL_ANSWER_NONODE);
    assert_int_equal(script_contender(s, 1)->machine.state, ZKL_CONTENDER_QUEUEING);
    script_answer(s, ZKL_REQ_SET, ZKL_ANSWER_OK); /* late, and reported to no contender */
    script_stop(s, 1, ZKL_ECANCELED);
    script_close(s);
    script_free(s);
}

/* Goal: it is asked whatever its name is. Method: one that is longer than any of ours. */
static void who_stays_may_have_a_long_name(void **state)
{
    char name[ZKL_PATH_MAX + 2 * ZKL_NODE_NAME_MAX];
    const char *children[] = {name};
    struct script *s = script_connected();
    (void)state;
    memset(name, 'x', sizeof name);
    memcpy(name, "00000000000080008000000000000000", 32);
    strcpy(name + sizeof name - 17, "-lock-0000000007");
    script_lock(s, "/r");
    script_created(s, 0x7ff00000);
    script_answer(s, ZKL_REQ_DELETE, ZKL_ANSWER_OK);
    script_forget(s);
    script_reply(s, ZKL_REQ_LIST_LOCK_PATH,
                 (struct zkl_reply){.czxid = 50, .children = children, .child_count = 1});
    assert_true(script_has(s, "  > set /r/00000000000080008000000000000000xxx"));
    script_answer(s, ZKL_REQ_SET, ZKL_ANSWER_OK);
    script_stop(s, 1, ZKL_ECANCELED);
    script_close(s);
    script_free(s);
}

/* Goal: a valid waiter waits for exhausted numbers before it as for any other. Method: a
 * negative number of another client stands before ours. */
static void an_exhausted_number_of_others_is_waited_for(void **state)
{
    struct script *s = script_connected();
    (void)state;
    script_lock(s, "/r");
    script_created(s, 5);
    script_listed(s, "1:5 6:-2147483648");
    script_expect(s, "[     0] #1 NEW -> QUEUEING: started\n"
                     "  > create /r/G1-\n"
                     "  > list /r\n"
                     "[     0] #1 QUEUEING -> WAITING: next in line\n"
                     "  > watch /r/G6--2147483648\n"
                     "  > watch /r/G1-0000000005\n");
    script_stop(s, 1, ZKL_ECANCELED);
    script_answer(s, ZKL_REQ_WATCH, ZKL_ANSWER_OK);
    script_answer(s, ZKL_REQ_WATCH, ZKL_ANSWER_OK);
    script_answer(s, ZKL_REQ_DELETE, ZKL_ANSWER_OK);
    script_answer(s, ZKL_REQ_UNWATCH, ZKL_ANSWER_OK);
    script_free(s);
}

/* Goal: a stuck counter without a number of ours to date it is tried once more before the root
 * is renewed. Method: the create fails twice with "exists". */
static void a_stuck_counter_is_dated_before_the_root_is_renewed(void **state)
{
    struct script *s = script_connected();
    (void)state;
    script_lock(s, "/r");
    script_answer(s, ZKL_REQ_CREATE, ZKL_ANSWER_EXISTS);
    script_lock_path_listed(s, 50, "");
    script_answer(s, ZKL_REQ_UNWATCH, ZKL_ANSWER_OK);
    script_answer(s, ZKL_REQ_CREATE, ZKL_ANSWER_EXISTS);
    script_lock_path_listed(s, 50, "");
    script_answer(s, ZKL_REQ_RENEW, ZKL_ANSWER_NOTEMPTY);
    script_lock_path_listed(s, 60, "7:0");
    script_created(s, 1);
    script_listed(s, "3:1");
    script_expect(s, "[     0] #1 NEW -> QUEUEING: started\n"
                     "  > create /r/G1-\n"
                     "  > list /r\n"
                     "[     0] #1 QUEUEING -> EXHAUSTED: counter stuck\n"
                     "  > list root /r\n"
                     "[     0] #1 EXHAUSTED -> QUEUEING: dating the root\n"
                     "  > create /r/G2-\n"
                     "  > list /r\n"
                     "  > unwatch /r\n"
                     "[     0] #1 QUEUEING -> EXHAUSTED: counter stuck\n"
                     "  > list root /r\n"
                     "  > renew /r\n"
                     "  > list root /r\n"
                     "[     0] #1 EXHAUSTED -> QUEUEING: root is new\n"
                     "  > create /r/G3-\n"
                     "  > list /r\n"
                     "  > unwatch /r\n"
                     "[     0] #1 QUEUEING -> HOLDING: first\n"
                     "  #1 granted 101\n");
    script_answer(s, ZKL_REQ_UNWATCH, ZKL_ANSWER_OK);
    script_unlock(s, 1);
    script_answer(s, ZKL_REQ_DELETE, ZKL_ANSWER_OK);
    script_free(s);
}

/* Goal: a contender of a named lock is no obstacle: it will leave. Method: one is alone in the root
 * of an exhausted counter, then leaves. */
static void a_named_lock_does_not_block_the_renewal(void **state)
{
    struct script *s = script_connected();
    (void)state;
    script_lock(s, "/r");
    script_created(s, INT32_MAX);
    script_answer(s, ZKL_REQ_DELETE, ZKL_ANSWER_OK);
    script_lock_path_listed(s, 50, "_c_00000000-0000-4000-8000-000000000000-other_lock_0000000001");
    script_expect(s, "[     0] #1 NEW -> QUEUEING: started\n"
                     "  > create /r/G1-\n"
                     "  > list /r\n"
                     "[     0] #1 QUEUEING -> EXHAUSTED: number exhausted\n"
                     "  > delete /r/G1-2147483647\n"
                     "  > list root /r\n");
    script_stop(s, 1, ZKL_ETIMEDOUT);
    script_answer(s, ZKL_REQ_UNWATCH, ZKL_ANSWER_OK);
    script_free(s);
}

/* Goal: what keeps the root from being renewed is named. Method: a stranger's child; a parent's
 * ACL; a node of ours that may not be deleted. */
static void who_blocks_the_renewal_is_named(void **state)
{
    struct script *s = script_connected();
    (void)state;
    script_lock(s, "/r");
    script_created(s, INT32_MAX);
    script_answer(s, ZKL_REQ_DELETE, ZKL_ANSWER_OK);
    script_lock_path_listed(s, 50, "readme");
    script_answer(s, ZKL_REQ_UNWATCH, ZKL_ANSWER_OK);
    script_lock(s, "/r");
    script_created(s, INT32_MAX);
    script_answer(s, ZKL_REQ_DELETE, ZKL_ANSWER_OK);
    script_lock_path_listed(s, 50, "");
    script_answer(s, ZKL_REQ_RENEW, ZKL_ANSWER_NOAUTH);
    script_answer(s, ZKL_REQ_UNWATCH, ZKL_ANSWER_OK);
    script_lock(s, "/r");
    script_created(s, INT32_MAX);
    script_answer(s, ZKL_REQ_DELETE, ZKL_ANSWER_NOAUTH);
    script_expect(
        s, "[     0] #1 NEW -> QUEUEING: started\n"
           "  > create /r/G1-\n"
           "  > list /r\n"
           "[     0] #1 QUEUEING -> EXHAUSTED: number exhausted\n"
           "  > delete /r/G1-2147483647\n"
           "  > list root /r\n"
           "[     0] #1 EXHAUSTED -> ENDED: root can't be renewed\n"
           "  #1 failed EEXHAUSTED: readme\n"
           "  #1 ended\n"
           "  > unwatch /r\n"
           "[     0] #2 NEW -> QUEUEING: started\n"
           "  > create /r/G2-\n"
           "  > list /r\n"
           "[     0] #2 QUEUEING -> EXHAUSTED: number exhausted\n"
           "  > delete /r/G2-2147483647\n"
           "  > list root /r\n"
           "  > renew /r\n"
           "[     0] #2 EXHAUSTED -> ENDED: root can't be renewed\n"
           "  #2 failed EEXHAUSTED: its ACL or its parent's (DELETE and CREATE are needed there)\n"
           "  > unwatch /r\n"
           "  #2 ended\n"
           "[     0] #3 NEW -> QUEUEING: started\n"
           "  > create /r/G3-\n"
           "  > list /r\n"
           "[     0] #3 QUEUEING -> EXHAUSTED: number exhausted\n"
           "  > delete /r/G3-2147483647\n"
           "[     0] #3 EXHAUSTED -> ENDED: root can't be renewed\n"
           "  #3 failed EEXHAUSTED: our own node there, which the path's ACL forbids to delete\n"
           "  #3 ended\n");
    script_free(s);
}

/* Goal: a try does not wait for a renewal that others hold up, and does a renewal that it can.
 * Method: one with a child there, one without. */
static void a_try_renews_or_says_busy(void **state)
{
    struct script *s = script_connected();
    (void)state;
    script_try(s, "/r", false);
    script_listed(s, "");
    script_created(s, INT32_MAX);
    script_answer(s, ZKL_REQ_DELETE, ZKL_ANSWER_OK);
    script_lock_path_listed(s, 50, "5:1");
    script_answer(s, ZKL_REQ_UNWATCH, ZKL_ANSWER_OK);
    script_try(s, "/r", false);
    script_listed(s, "");
    script_created(s, INT32_MAX);
    script_answer(s, ZKL_REQ_DELETE, ZKL_ANSWER_OK);
    script_lock_path_listed(s, 50, "");
    script_expect(s, "[     0] #1 NEW -> LOOKING: started\n"
                     "  > list /r\n"
                     "[     0] #1 LOOKING -> QUEUEING: nobody is there\n"
                     "  > create /r/G1-\n"
                     "  > list /r\n"
                     "[     0] #1 QUEUEING -> EXHAUSTED: number exhausted\n"
                     "  > delete /r/G1-2147483647\n"
                     "  > list root /r\n"
                     "[     0] #1 EXHAUSTED -> ENDED: path waits for its renewal\n"
                     "  #1 failed EBUSY\n"
                     "  #1 ended\n"
                     "  > unwatch /r\n"
                     "[     0] #2 NEW -> LOOKING: started\n"
                     "  > list /r\n"
                     "[     0] #2 LOOKING -> QUEUEING: nobody is there\n"
                     "  > create /r/G2-\n"
                     "  > list /r\n"
                     "[     0] #2 QUEUEING -> EXHAUSTED: number exhausted\n"
                     "  > delete /r/G2-2147483647\n"
                     "  > list root /r\n"
                     "  > renew /r\n");
    script_stop(s, 2, ZKL_ETIMEDOUT);
    script_answer(s, ZKL_REQ_UNWATCH, ZKL_ANSWER_OK);
    script_free(s);
}

/* Goal: renewal goes on after each loss of the link, from where it was. Method: the withdrawal,
 * the list and the renewal stay unanswered in turn. */
static void renewal_goes_on_after_each_link(void **state)
{
    struct script *s = script_connected();
    (void)state;
    script_lock(s, "/r");
    script_created(s, INT32_MAX);
    script_down(s);
    script_up(s, SCRIPT_SESSION);
    script_answer(s, ZKL_REQ_DELETE, ZKL_ANSWER_NONODE);
    script_down(s);
    script_up(s, SCRIPT_SESSION);
    script_lock_path_listed(s, 50, "");
    script_down(s);
    script_up(s, SCRIPT_SESSION);
    script_lock_path_listed(s, 200, "");
    script_expect(s, "[     0] #1 NEW -> QUEUEING: started\n"
                     "  > create /r/G1-\n"
                     "  > list /r\n"
                     "[     0] #1 QUEUEING -> EXHAUSTED: number exhausted\n"
                     "  > delete /r/G1-2147483647\n"
                     "[     0] session CONNECTED -> SUSPENDED: link lost\n"
                     "  session: link down\n"
                     "[     0] session SUSPENDED -> CONNECTED: connected\n"
                     "  session: link up\n"
                     "  > delete /r/G1-2147483647\n"
                     "  > list root /r\n"
                     "[     0] session CONNECTED -> SUSPENDED: link lost\n"
                     "  session: link down\n"
                     "[     0] session SUSPENDED -> CONNECTED: connected\n"
                     "  session: link up\n"
                     "  > list root /r\n"
                     "  > renew /r\n"
                     "[     0] session CONNECTED -> SUSPENDED: link lost\n"
                     "  session: link down\n"
                     "[     0] session SUSPENDED -> CONNECTED: connected\n"
                     "  session: link up\n"
                     "  > list root /r\n"
                     "[     0] #1 EXHAUSTED -> QUEUEING: root is new\n"
                     "  > create /r/G2-\n"
                     "  > list /r\n"
                     "  > unwatch /r\n");
    script_event(s, ZKL_SE_EXPIRED);
    script_stop(s, 1, ZKL_ETIMEDOUT);
    script_free(s);
}

/* Goal: giving up while the counter is used up leaves nothing. Method: stop with the withdrawal
 * out, with the list out, with the renewal out. */
static void stopping_a_renewal_leaves_nothing(void **state)
{
    struct script *s = script_connected();
    (void)state;
    script_lock(s, "/r");
    script_created(s, INT32_MAX);
    script_stop(s, 1, ZKL_ECANCELED);
    script_answer(s, ZKL_REQ_DELETE, ZKL_ANSWER_OK);
    script_lock(s, "/r");
    script_created(s, INT32_MAX);
    script_answer(s, ZKL_REQ_DELETE, ZKL_ANSWER_OK);
    script_stop(s, 2, ZKL_ECANCELED);
    script_lock_path_listed(s, 50, "");
    script_answer(s, ZKL_REQ_UNWATCH, ZKL_ANSWER_OK);
    script_lock(s, "/r");
    script_created(s, INT32_MAX);
    script_answer(s, ZKL_REQ_DELETE, ZKL_ANSWER_OK);
    script_lock_path_listed(s, 50, "");
    script_stop(s, 3, ZKL_ECANCELED);
    script_answer(s, ZKL_REQ_UNWATCH, ZKL_ANSWER_OK);
    script_expect(s, "[     0] #1 NEW -> QUEUEING: started\n"
                     "  > create /r/G1-\n"
                     "  > list /r\n"
                     "[     0] #1 QUEUEING -> EXHAUSTED: number exhausted\n"
                     "  > delete /r/G1-2147483647\n"
                     "[     0] #1 EXHAUSTED -> LEAVING: stopped\n"
                     "  #1 failed ECANCELED\n"
                     "[     0] #1 LEAVING -> ENDED: deleted\n"
                     "  #1 ended\n"
                     "[     0] #2 NEW -> QUEUEING: started\n"
                     "  > create /r/G2-\n"
                     "  > list /r\n"
                     "[     0] #2 QUEUEING -> EXHAUSTED: number exhausted\n"
                     "  > delete /r/G2-2147483647\n"
                     "  > list root /r\n"
                     "[     0] #2 EXHAUSTED -> ENDED: stopped\n"
                     "  #2 failed ECANCELED\n"
                     "  #2 ended\n"
                     "  > unwatch /r\n"
                     "[     0] #3 NEW -> QUEUEING: started\n"
                     "  > create /r/G3-\n"
                     "  > list /r\n"
                     "[     0] #3 QUEUEING -> EXHAUSTED: number exhausted\n"
                     "  > delete /r/G3-2147483647\n"
                     "  > list root /r\n"
                     "  > renew /r\n"
                     "[     0] #3 EXHAUSTED -> ENDED: stopped\n"
                     "  #3 failed ECANCELED\n"
                     "  > unwatch /r\n"
                     "  #3 ended\n");
    assert_int_equal(s->core.watch_count, 0);
    script_free(s);
}

/* Goal: a contender whose renewal was overtaken can renew again later. Method: another client
 * renews while ours is out; its answer comes when we queue already; the new root is used up as
 * well. */
static void an_overtaken_renewal_does_not_block_the_next(void **state)
{
    struct script *s = script_connected();
    (void)state;
    script_lock(s, "/r");
    script_created(s, INT32_MAX);
    script_answer(s, ZKL_REQ_DELETE, ZKL_ANSWER_OK);
    script_lock_path_listed(s, 50, "");
    script_fired(s, "/r", ZKL_FIRED_DELETED);
    script_lock_path_listed(s, 200, "");
    script_answer(s, ZKL_REQ_RENEW, ZKL_ANSWER_NOTEMPTY);
    s->zxid = 300;
    script_created(s, INT32_MAX);
    script_answer(s, ZKL_REQ_DELETE, ZKL_ANSWER_OK);
    script_answer(s, ZKL_REQ_UNWATCH, ZKL_ANSWER_OK);
    script_forget(s);
    script_lock_path_listed(s, 200, "");
    assert_true(script_has(s, "> renew /r"));
    script_stop(s, 1, ZKL_ECANCELED);
    script_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_exhausted_number_is_withdrawn_and_the_root_renewed),
        cmocka_unit_test(a_name_without_a_number_is_withdrawn),
        cmocka_unit_test(the_number_before_is_granted),
        cmocka_unit_test(renewal_waits_for_those_who_are_there),
        cmocka_unit_test(who_stays_is_asked_to_let_go),
        cmocka_unit_test(who_stays_may_have_a_long_name),
        cmocka_unit_test(an_exhausted_number_of_others_is_waited_for),
        cmocka_unit_test(a_stuck_counter_is_dated_before_the_root_is_renewed),
        cmocka_unit_test(who_blocks_the_renewal_is_named),
        cmocka_unit_test(a_named_lock_does_not_block_the_renewal),
        cmocka_unit_test(a_try_renews_or_says_busy),
        cmocka_unit_test(renewal_goes_on_after_each_link),
        cmocka_unit_test(stopping_a_renewal_leaves_nothing),
        cmocka_unit_test(an_overtaken_renewal_does_not_block_the_next),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
