/* SPDX-License-Identifier: Apache-2.0
 * The lock passes on: when the deletion of the predecessor alone grants it, and when only a list does;
 * and the unlock that does not wait. */
#include <stdio.h>

#include <zklock/zklock.h>

#include "script.h"

#define PRED "/r/G5-0000000007"

static enum zkl_contender_state state_of(struct script *s, int number)
{
    return script_contender(s, number)->machine.state;
}

/* #number has the lock and releases it. */
static void leave(struct script *s, int number)
{
    script_unlock(s, number);
    script_answer(s, ZKL_REQ_DELETE, ZKL_ANSWER_OK);
}

/* The waiter's list shows no contender before it. */
static void be_listed_first(struct script *s, const char *children)
{
    assert_int_equal(state_of(s, 1), ZKL_CONTENDER_LISTING);
    script_listed(s, children);
    assert_int_equal(state_of(s, 1), ZKL_CONTENDER_HOLDING);
}

/* Goal: no event grants the lock to a waiter that does not know yet that its own node exists: it
 * waits for the answer that is under way, and lists if that shows nothing. Method: the predecessor
 * leaves while the watch on the own node is being armed, which then is, finds no node, cannot be,
 * or loses its link; or the window has got stale. Modes: F12. */
static void it_waits_for_word_of_its_own_node(void **state)
{
    (void)state;
    for (int i = 0; i < 5; i++) {
        struct script *s = script_connected();
        script_queue(s, "/r", 9, "5:7");
        script_answer(s, ZKL_REQ_WATCH, ZKL_ANSWER_OK); /* the predecessor's */
        script_forget(s);
        script_fired(s, PRED, ZKL_FIRED_DELETED);
        script_expect(s, "");
        assert_int_equal(state_of(s, 1), ZKL_CONTENDER_WAITING);
        if (i == 4)
            script_at(s, SCRIPT_TIMEOUT_MS * 7 / 8);
        if (i == 3)
            script_down(s);
        else
            script_answer(s, ZKL_REQ_WATCH,
                          i == 1   ? ZKL_ANSWER_NONODE
                          : i == 2 ? ZKL_ANSWER_NOMEM
                                   : ZKL_ANSWER_OK);
        if (i == 3)
            script_up(s, SCRIPT_SESSION);
        assert_int_equal(state_of(s, 1), i == 0   ? ZKL_CONTENDER_HOLDING
                                         : i == 1 ? ZKL_CONTENDER_QUEUEING
                                                  : ZKL_CONTENDER_LISTING);
        assert_int_equal(script_has(s, "> list /r\n"), i > 0);
        if (i == 2 || i == 3)
            be_listed_first(s, "1:9");
        if (i == 1 || i == 4)
            script_stop(s, 1, ZKL_ECANCELED);
        else
            script_unlock(s, 1);
        script_close(s);
        script_free(s);
    }
}

/* Goal: the answer about its own node grants nothing to a waiter with others before it. Method: it
 * has waited for so much time that it asks for that answer all the same when its predecessor
 * leaves. */
static void with_others_before_it_a_waiter_lists(void **state)
{
    struct script *s = script_connected();
    (void)state;
    script_queue(s, "/r", 9, "4:6 5:7");
    script_answer(s, ZKL_REQ_WATCH, ZKL_ANSWER_OK); /* the predecessor's */
    script_forget(s);
    script_at(s, 300);
    assert_true(script_has(s, "  > watch /r/G1-0000000009\n"));
    script_fired(s, PRED, ZKL_FIRED_DELETED);
    be_listed_first(s, "1:9");
    script_unlock(s, 1);
    script_close(s);
    script_free(s);
}

/* Goal: a watch that waited for no leaving grants nothing. Method: the predecessor stays. */
static void its_own_node_alone_grants_nothing(void **state)
{
    struct script *s = script_connected();
    (void)state;
    script_wait(s, "/r", 9, "5:7");
    assert_int_equal(state_of(s, 1), ZKL_CONTENDER_WAITING);
    script_stop(s, 1, ZKL_ECANCELED);
    script_close(s);
    script_free(s);
}

/* Goal: behind a node that may become a read node, or that is known by no plain name, only a list
 * grants. Method: a writer of a read-write lock is before a mutex, and a mutex of Kazoo's, which is
 * called as its writers are. Modes: F36. */
static void behind_what_may_be_a_writer_a_waiter_lists(void **state)
{
    static const char *const names[] = {"x-__WRIT__0000000007", "x__lock__0000000007"};
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct script *s = script_connected();
        char path[64];
        script_wait(s, "/r", 9, names[i]);
        snprintf(path, sizeof path, "/r/%s", names[i]);
        script_fired(s, path, ZKL_FIRED_DELETED);
        be_listed_first(s, "1:9");
        leave(s, 1);
        script_free(s);
    }
}

/* Goal: events over a link that came back are not trusted to come in order: libzookeeper has armed
 * the watches again in one request. Method: the link breaks and returns. */
static void after_a_reconnect_a_waiter_lists(void **state)
{
    struct script *s = script_connected();
    (void)state;
    script_wait(s, "/r", 9, "5:7");
    script_down(s);
    script_up(s, SCRIPT_SESSION);
    script_listed(s, "1:9 5:7");
    assert_int_equal(state_of(s, 1), ZKL_CONTENDER_WAITING);
    script_fired(s, PRED, ZKL_FIRED_DELETED);
    be_listed_first(s, "1:9");
    leave(s, 1);
    script_free(s);
}

/* Goal: a change of the predecessor's data is no deletion. */
static void a_changed_predecessor_grants_nothing(void **state)
{
    struct script *s = script_connected();
    (void)state;
    script_wait(s, "/r", 9, "5:7");
    script_fired(s, PRED, ZKL_FIRED_OTHER);
    assert_int_equal(state_of(s, 1), ZKL_CONTENDER_LISTING);
    script_listed(s, "1:9 5:7");
    assert_int_equal(state_of(s, 1), ZKL_CONTENDER_WAITING);
    script_event(s, ZKL_SE_EXPIRED);
    script_stop(s, 1, ZKL_ECANCELED);
    script_free(s);
}

/* Goal: a stale window is no reason to trust an event. Method: the machine slept, and the event is the
 * first thing that is heard afterwards. */
static void with_a_stale_window_a_waiter_lists(void **state)
{
    struct script *s = script_connected();
    (void)state;
    script_wait(s, "/r", 9, "5:7");
    script_sleep_until(s, 2500);
    script_fired(s, PRED, ZKL_FIRED_DELETED);
    assert_int_equal(state_of(s, 1), ZKL_CONTENDER_LISTING);
    script_listed(s, "1:9");
    assert_int_equal(state_of(s, 1), ZKL_CONTENDER_CONFIRMING);
    script_event(s, ZKL_SE_EXPIRED);
    script_stop(s, 1, ZKL_ECANCELED);
    script_free(s);
}

/* Goal: a node of our own session may be deleted because that has ended: its deletion by itself
 * grants nothing. Method: the watch says whose node it was armed on. Modes: F10. */
static void a_node_of_our_own_session_grants_nothing(void **state)
{
    struct script *s = script_connected();
    (void)state;
    script_lock(s, "/r");
    script_created(s, 9);
    script_listed(s, "1:9 5:7");
    script_reply(s, ZKL_REQ_WATCH, (struct zkl_reply){.node_session = SCRIPT_SESSION});
    script_answer(s, ZKL_REQ_WATCH, ZKL_ANSWER_OK);
    script_fired(s, PRED, ZKL_FIRED_DELETED);
    be_listed_first(s, "1:9");
    leave(s, 1);
    script_free(s);
}

/* --- within one client ---------------------------------------------------- */

/* #1 has the lock, with a watch on its node, and is about to give it back; #2 waits for it. */
static struct script *a_holder_and_its_successor(void)
{
    struct script *s = script_connected();
    script_lock_watched(s, "/r");
    script_created(s, 7);
    script_listed(s, "1:7");
    script_lock(s, "/r");
    script_created(s, 8);
    script_listed(s, "1:7 2:8");
    script_reply(s, ZKL_REQ_WATCH, (struct zkl_reply){.node_session = SCRIPT_SESSION});
    script_answer(s, ZKL_REQ_WATCH, ZKL_ANSWER_OK);
    script_forget(s);
    return s;
}

/* Goal: the successor of a holder of the same client relies on the answer to the delete, with no
 * list, however many were before it when it listed. Method: three in a row. */
static void the_next_of_the_same_client_needs_no_list(void **state)
{
    struct script *s = a_holder_and_its_successor();
    (void)state;
    script_wait(s, "/r", 9, "1:7 2:8");
    script_at(s, 300);
    script_answer(s, ZKL_REQ_WATCH, ZKL_ANSWER_OK);
    script_forget(s);
    script_unlock(s, 1);
    script_fired(s, "/r/G1-0000000007", ZKL_FIRED_DELETED);
    script_answer(s, ZKL_REQ_DELETE, ZKL_ANSWER_OK);
    script_unlock(s, 2);
    script_fired(s, "/r/G2-0000000008", ZKL_FIRED_DELETED);
    script_answer(s, ZKL_REQ_DELETE, ZKL_ANSWER_OK);
    script_expect(s, "[   300] #1 HOLDING -> RELEASING: unlocked\n"
                     "  > delete /r/G1-0000000007\n"
                     "[   300] #1 RELEASING -> ENDED: deleted\n"
                     "  #1 released OK\n"
                     "  #1 ended\n"
                     "[   300] #2 WAITING -> HOLDING: predecessor deleted\n"
                     "  #2 granted 102\n"
                     "[   300] #2 HOLDING -> RELEASING: unlocked\n"
                     "  > delete /r/G2-0000000008\n"
                     "[   300] #2 RELEASING -> ENDED: deleted\n"
                     "  #2 released OK\n"
                     "  #2 ended\n"
                     "[   300] #3 WAITING -> HOLDING: predecessor deleted\n"
                     "  #3 granted 103\n");
    leave(s, 3);
    script_free(s);
}

/* Goal: a contender that waited and left was never the first, and hands nothing on. Method: the
 * second of three gives up. Modes: F34. */
static void who_only_waited_hands_nothing_on(void **state)
{
    struct script *s = a_holder_and_its_successor();
    (void)state;
    script_wait(s, "/r", 9, "1:7 2:8");
    script_stop(s, 2, ZKL_ECANCELED);
    script_fired(s, "/r/G2-0000000008", ZKL_FIRED_DELETED);
    script_answer(s, ZKL_REQ_DELETE, ZKL_ANSWER_OK);
    assert_int_equal(state_of(s, 3), ZKL_CONTENDER_LISTING);
    script_listed(s, "1:7 3:9");
    assert_int_equal(state_of(s, 3), ZKL_CONTENDER_WAITING);
    script_event(s, ZKL_SE_EXPIRED);
    script_unlock(s, 1);
    script_stop(s, 3, ZKL_ECANCELED);
    script_free(s);
}

/* Goal: without the answer the node may have been deleted with the session, or by a stranger: then
 * a list shows it. Method: the answers that a delete can have. */
static void without_a_good_answer_the_next_lists(void **state)
{
    (void)state;
    struct script *s = a_holder_and_its_successor();
    script_unlock(s, 1);
    script_fired(s, "/r/G1-0000000007", ZKL_FIRED_DELETED);
    assert_int_equal(state_of(s, 2), ZKL_CONTENDER_WAITING);
    script_answer(s, ZKL_REQ_DELETE, ZKL_ANSWER_NONODE);
    assert_int_equal(state_of(s, 2), ZKL_CONTENDER_LISTING);
    script_listed(s, "2:8");
    leave(s, 2);
    script_free(s);

    s = a_holder_and_its_successor();
    script_unlock(s, 1);
    script_fired(s, "/r/G1-0000000007", ZKL_FIRED_DELETED);
    script_down(s);
    assert_int_equal(state_of(s, 2), ZKL_CONTENDER_LISTING);
    script_event(s, ZKL_SE_EXPIRED);
    script_stop(s, 2, ZKL_ECANCELED);
    script_free(s);

    s = a_holder_and_its_successor();
    script_unlock(s, 1);
    script_fired(s, "/r/G1-0000000007", ZKL_FIRED_DELETED);
    script_event(s, ZKL_SE_EXPIRED);
    assert_int_equal(state_of(s, 2), ZKL_CONTENDER_PARKED);
    script_stop(s, 2, ZKL_ECANCELED);
    script_free(s);
}

/* Goal: a contender that gives up between the event and the answer is not granted, and the answer
 * is dropped. */
static void an_heir_can_give_up(void **state)
{
    struct script *s = a_holder_and_its_successor();
    (void)state;
    script_unlock(s, 1);
    script_fired(s, "/r/G1-0000000007", ZKL_FIRED_DELETED);
    script_stop(s, 2, ZKL_ECANCELED);
    assert_null(script_contender(s, 1)->heir); /* which may be freed before the answer comes */
    script_answer(s, ZKL_REQ_DELETE, ZKL_ANSWER_OK);
    script_answer(s, ZKL_REQ_DELETE, ZKL_ANSWER_OK);
    script_free(s);
}

/* --- many together -------------------------------------------------------- */

static void all_go(struct script *s)
{
    script_event(s, ZKL_SE_EXPIRED);
    for (int i = 1; i <= SCRIPT_CONTENDERS; i++) {
        if (s->live[i - 1] && state_of(s, i) == ZKL_CONTENDER_LOSTHOLD)
            script_unlock(s, i);
        else if (s->live[i - 1])
            script_stop(s, i, ZKL_ECANCELED);
    }
    script_free(s);
}

/* The fourth to the sixth of six that queue together follow the third. */
static struct script *six_at_once(void)
{
    struct script *s = script_connected();
    s->core.share_from = 3;
    for (int i = 1; i <= 6; i++)
        script_lock(s, "/r");
    script_lock(s, "/q");
    for (int i = 1; i <= 6; i++)
        script_created(s, i);
    script_created(s, 1);
    script_forget(s);
    return s;
}

/* Goal: of many that queue together only some fetch the names of all; one list is then for the
 * rest. Method: the answers come one by one; another path is not concerned. */
static void who_comes_in_a_crowd_shares_a_later_list(void **state)
{
    struct script *s = six_at_once();
    (void)state;
    script_listed(s, "1:1");
    script_listed(s, "1:1 2:2");
    assert_false(script_has(s, "> list"));
    script_listed(s, "1:1 2:2 3:3");
    assert_true(script_has(s, "> list /r\n"));
    script_forget(s);
    script_listed(s, "7:1");
    assert_int_equal(state_of(s, 7), ZKL_CONTENDER_HOLDING);
    assert_int_equal(state_of(s, 6), ZKL_CONTENDER_QUEUEING);
    script_listed(s, "1:1 2:2 3:3 4:4 5:5 6:6");
    for (int i = 2; i <= 6; i++)
        assert_int_equal(state_of(s, i), ZKL_CONTENDER_WAITING);
    assert_false(script_has(s, "> list"));
    all_go(s);
}

/* Goal: whichever contender leaves, the others get their list. Method: a follower gives up, then
 * the sender of the list. */
static void a_crowd_does_not_depend_on_one(void **state)
{
    struct script *s = six_at_once();
    (void)state;
    script_stop(s, 5, ZKL_ECANCELED);
    script_stop(s, 3, ZKL_ECANCELED);
    assert_true(script_has(s, "> list /r\n"));
    script_listed(s, "1:1");
    script_listed(s, "1:1 2:2");
    script_listed(s, "7:1");
    script_listed(s, "1:1 2:2 4:4 6:6");
    assert_int_equal(state_of(s, 4), ZKL_CONTENDER_WAITING);
    assert_int_equal(state_of(s, 6), ZKL_CONTENDER_WAITING);
    all_go(s);
}

/* Goal: a lost link is one for the followers, too. Method: it breaks before any answer, and
 * returns. */
static void a_crowd_lists_again_after_a_lost_link(void **state)
{
    struct script *s = six_at_once();
    (void)state;
    script_down(s);
    for (int i = 1; i <= 6; i++)
        assert_int_equal(state_of(s, i), ZKL_CONTENDER_LISTING);
    script_up(s, SCRIPT_SESSION);
    script_listed(s, "1:1 2:2 3:3 4:4 5:5 6:6");
    assert_int_equal(state_of(s, 1), ZKL_CONTENDER_HOLDING);
    assert_int_equal(state_of(s, 6), ZKL_CONTENDER_WAITING);
    all_go(s);
}

/* --- after a reconnect ---------------------------------------------------- */

/* Three of one path and one of another have been waiting, and the link is back. */
static struct script *four_that_list_again(void)
{
    struct script *s = script_connected();
    script_wait(s, "/r", 8, "9:7");
    script_wait(s, "/r", 9, "1:8 9:7");
    script_wait(s, "/q", 3, "9:1");
    script_wait(s, "/r", 10, "1:8 2:9 9:7");
    script_down(s);
    script_up(s, SCRIPT_SESSION);
    script_forget(s);
    return s;
}

/* Goal: after a reconnect the waiters of a path share one list, whatever their number. */
static void a_reconnect_lists_each_path_once(void **state)
{
    struct script *s = script_connected();
    (void)state;
    script_wait(s, "/r", 8, "9:7");
    script_wait(s, "/r", 9, "1:8 9:7");
    script_wait(s, "/q", 3, "9:1");
    script_down(s);
    script_forget(s);
    script_up(s, SCRIPT_SESSION);
    script_expect(s, "[     0] session SUSPENDED -> CONNECTED: connected\n"
                     "  session: link up\n"
                     "[     0] #1 WAITING -> LISTING: link up\n"
                     "  > list /r\n"
                     "[     0] #2 WAITING -> LISTING: link up\n"
                     "[     0] #3 WAITING -> LISTING: link up\n"
                     "  > list /q\n");
    script_listed(s, "1:8 2:9 9:7");
    script_expect(s, "[     0] #2 LISTING -> WAITING: behind others\n"
                     "[     0] #1 LISTING -> WAITING: next in line\n");
    script_listed(s, "3:3 9:1");
    all_go(s);
}

/* Goal: an event that several wait for, as readers do behind a writer, is looked into once. Method: two
 * watch one node, as a stranger had deleted the first one's when the second looked. */
static void an_event_is_looked_into_once(void **state)
{
    struct script *s = script_connected();
    (void)state;
    script_wait(s, "/r", 8, "x__lock__0000000007");
    script_wait(s, "/r", 9, "x__lock__0000000007");
    script_forget(s);
    script_fired(s, "/r/x__lock__0000000007", ZKL_FIRED_DELETED);
    script_expect(s, "[     0] #2 WAITING -> LISTING: predecessor fired\n"
                     "  > list /r\n"
                     "[     0] #1 WAITING -> LISTING: predecessor fired\n");
    script_listed(s, "1:8 2:9");
    assert_int_equal(state_of(s, 1), ZKL_CONTENDER_HOLDING);
    assert_int_equal(state_of(s, 2), ZKL_CONTENDER_WAITING);
    all_go(s);
}

/* Goal: no contender that shares a list is forgotten when its sender gives up, and one that shares
 * can give up alone. */
static void a_shared_list_outlives_who_sent_it(void **state)
{
    struct script *s = four_that_list_again();
    (void)state;
    script_stop(s, 2, ZKL_ECANCELED);
    script_stop(s, 1, ZKL_ECANCELED);
    assert_true(script_has(s, "> list /r\n"));
    script_listed(s, "3:3 9:1"); /* of the other path */
    assert_int_equal(state_of(s, 4), ZKL_CONTENDER_LISTING);
    script_listed(s, "4:10 9:7");
    assert_int_equal(state_of(s, 4), ZKL_CONTENDER_WAITING);
    all_go(s);
}

/* Goal: a shared list without an answer has none for any of them. Method: the link breaks again,
 * and returns. */
static void a_shared_list_without_an_answer_is_repeated(void **state)
{
    struct script *s = four_that_list_again();
    (void)state;
    script_down(s);
    for (int i = 1; i <= 4; i++)
        assert_int_equal(state_of(s, i), ZKL_CONTENDER_LISTING);
    script_up(s, SCRIPT_SESSION);
    script_listed(s, "1:8 2:9 4:10 9:7");
    script_listed(s, "3:3 9:1");
    for (int i = 1; i <= 4; i++)
        assert_int_equal(state_of(s, i), ZKL_CONTENDER_WAITING);
    all_go(s);
}

/* --- posted unlock -------------------------------------------------------- */

static void posted(struct script *s)
{
    script_hold(s, "/r", 7);
    script_contender(s, 1)->machine.lock_request.posted = true;
    script_forget(s);
}

/* Goal: a posted unlock is answered before the server has; the node is the janitor's. */
static void a_posted_unlock_does_not_wait(void **state)
{
    struct script *s = script_connected();
    (void)state;
    posted(s);
    script_unlock(s, 1);
    script_expect(s, "[     0] #1 HOLDING -> LEAVING: unlocked, the delete is posted\n"
                     "  #1 released OK\n"
                     "  > delete /r/G1-0000000007\n");
    script_down(s);
    script_up(s, SCRIPT_SESSION); /* sent again, until it is answered */
    script_answer(s, ZKL_REQ_DELETE, ZKL_ANSWER_OK);
    script_free(s);
}

/* Goal: a posted unlock does not say that all is well where nothing proves it. Method: without a link,
 * and after the window's end. */
static void a_posted_unlock_says_what_it_does_not_know(void **state)
{
    struct script *s = script_connected();
    (void)state;
    posted(s);
    script_down(s);
    script_unlock(s, 1);
    assert_true(script_has(s, "#1 released EUNCONFIRMED"));
    script_event(s, ZKL_SE_EXPIRED);
    script_free(s);

    s = script_connected();
    posted(s);
    script_sleep_until(s, SCRIPT_TIMEOUT_MS);
    script_unlock(s, 1);
    assert_true(script_has(s, "#1 released EDOUBT"));
    script_answer(s, ZKL_REQ_DELETE, ZKL_ANSWER_OK);
    script_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_waits_for_word_of_its_own_node),
        cmocka_unit_test(with_others_before_it_a_waiter_lists),
        cmocka_unit_test(its_own_node_alone_grants_nothing),
        cmocka_unit_test(behind_what_may_be_a_writer_a_waiter_lists),
        cmocka_unit_test(after_a_reconnect_a_waiter_lists),
        cmocka_unit_test(a_changed_predecessor_grants_nothing),
        cmocka_unit_test(with_a_stale_window_a_waiter_lists),
        cmocka_unit_test(a_node_of_our_own_session_grants_nothing),
        cmocka_unit_test(the_next_of_the_same_client_needs_no_list),
        cmocka_unit_test(who_only_waited_hands_nothing_on),
        cmocka_unit_test(without_a_good_answer_the_next_lists),
        cmocka_unit_test(an_heir_can_give_up),
        cmocka_unit_test(a_reconnect_lists_each_path_once),
        cmocka_unit_test(who_comes_in_a_crowd_shares_a_later_list),
        cmocka_unit_test(a_crowd_does_not_depend_on_one),
        cmocka_unit_test(a_crowd_lists_again_after_a_lost_link),
        cmocka_unit_test(an_event_is_looked_into_once),
        cmocka_unit_test(a_shared_list_outlives_who_sent_it),
        cmocka_unit_test(a_shared_list_without_an_answer_is_repeated),
        cmocka_unit_test(a_posted_unlock_does_not_wait),
        cmocka_unit_test(a_posted_unlock_says_what_it_does_not_know),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
