/* SPDX-License-Identifier: Apache-2.0
 * Grants by the node's number alone, and the conditions that prevent them. */
#include <stdio.h>
#include <string.h>

#include <zklock/zklock.h>

#include "core/unlisted_grant.h"
#include "script.h"

static enum zkl_contender_state state_of(struct script *s, int number)
{
    return script_contender(s, number)->machine.state;
}

static bool is_waited_for(struct script *s, enum zkl_request_kind kind)
{
    for (size_t i = 0; i < s->request_count; i++) {
        if (s->requests[i].kind == kind)
            return true;
    }
    return false;
}

/* #number's create is answered, and its list, which is asked for: it is the first. */
static void have(struct script *s, int number, int32_t sequence)
{
    char children[32];
    script_created(s, sequence);
    snprintf(children, sizeof children, "%d:%d", number, sequence);
    if (state_of(s, number) != ZKL_CONTENDER_HOLDING)
        script_listed(s, children);
    assert_int_equal(state_of(s, number), ZKL_CONTENDER_HOLDING);
}

static void leave(struct script *s, int number)
{
    script_unlock(s, number);
    script_answer(s, ZKL_REQ_DELETE, ZKL_ANSWER_OK);
}

/* Three have locked /r in a row and unlocked it, with the numbers 1, 2 and 3; the watch was asked for by
 * the third, and armed in time or not yet. The next is #4. */
static struct script *three_in_a_row(bool armed)
{
    struct script *s = script_connected();
    s->core.unlisted_from = 2;
    for (int i = 1; i <= 3; i++) {
        script_lock_unlisted(s, "/r");
        have(s, i, i);
        if (i == 3 && armed)
            script_answer(s, ZKL_REQ_WATCH, ZKL_ANSWER_OK);
        leave(s, i);
    }
    script_forget(s);
    return s;
}

static struct script *alone(void)
{
    return three_in_a_row(true);
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
    script_free(s);
}

/* #4's create is answered with 4, and it has to wait for the list. */
static void is_not_granted(struct script *s)
{
    script_created(s, 4);
    assert_int_equal(state_of(s, 4), ZKL_CONTENDER_QUEUEING);
    script_listed(s, "4:4");
    assert_int_equal(state_of(s, 4), ZKL_CONTENDER_HOLDING);
}

/* Goal: the watch is asked for when some have come in a row, and then the grant does not wait for the
 * list. Method: the golden trace of the third lock, and the fourth's. */
static void the_next_number_is_granted_at_once(void **state)
{
    struct script *s = script_connected();
    (void)state;
    s->core.unlisted_from = 2;
    for (int i = 1; i <= 2; i++) {
        script_lock_unlisted(s, "/r");
        have(s, i, i);
        leave(s, i);
    }
    script_forget(s);
    script_lock_unlisted(s, "/r");
    have(s, 3, 3);
    script_expect(s, "[     0] #3 NEW -> QUEUEING: started\n"
                     "  > create /r/G3-\n"
                     "  > list /r\n"
                     "  > watch /r\n"
                     "[     0] #3 QUEUEING -> HOLDING: first\n"
                     "  #3 granted 103\n");
    script_answer(s, ZKL_REQ_WATCH, ZKL_ANSWER_OK);
    leave(s, 3);
    script_forget(s);
    script_lock_unlisted(s, "/r");
    script_created(s, 4);
    script_expect(s, "[     0] #4 NEW -> QUEUEING: started\n"
                     "  > create /r/G4-\n"
                     "  > list /r\n"
                     "[     0] #4 QUEUEING -> HOLDING: nobody came between\n"
                     "  #4 granted 104\n");
    enum zkl_request_kind kind;
    assert_false(script_next(s, &kind)); /* the list's answer is of no interest any more */
    end(s);
}

/* Goal: a busy client sends no list that no contender will wait for. Method: another lock is under
 * way; the unlock before has been answered, or is posted. */
static void a_busy_client_sends_no_list(void **state)
{
    struct script *s = alone();
    (void)state;
    script_lock(s, "/q");
    script_lock_unlisted(s, "/r");
    assert_false(script_has(s, "> list /r\n"));
    script_created(s, 1); /* of /q */
    script_created(s, 4);
    assert_int_equal(state_of(s, 5), ZKL_CONTENDER_HOLDING);
    script_contender(s, 5)->machine.lock_request.posted = true;
    script_unlock(s, 5);
    script_lock_unlisted(s, "/r");
    script_answer(s, ZKL_REQ_DELETE, ZKL_ANSWER_OK);
    script_created(s, 5);
    assert_int_equal(state_of(s, 6), ZKL_CONTENDER_HOLDING);
    assert_false(script_has(s, "> list /r\n"));
    end(s);
}

/* Goal: no round trip is lost if another contender is known to be there. Method: another thread
 * holds the lock. */
static void behind_another_thread_a_list_is_sent(void **state)
{
    struct script *s = alone();
    (void)state;
    script_lock_unlisted(s, "/r");
    script_created(s, 4);
    script_lock(s, "/q");
    script_forget(s);
    script_lock_unlisted(s, "/r");
    assert_true(script_has(s, "> list /r\n"));
    end(s);
}

/* Goal: with another contender between, the list is sent, and with the next create again. Method: a
 * number too high. */
static void who_comes_between_is_seen(void **state)
{
    struct script *s = alone();
    (void)state;
    script_lock(s, "/q");
    script_lock_unlisted(s, "/r");
    script_created(s, 1);
    script_created(s, 5);
    assert_true(script_has(s, "#5 QUEUEING -> LISTING: not listed yet\n  > list /r\n"));
    script_listed(s, "4:1"); /* /q's */
    script_listed(s, "5:5");
    assert_int_equal(state_of(s, 5), ZKL_CONTENDER_HOLDING);
    leave(s, 5);
    script_forget(s);
    script_lock(s, "/q");
    script_lock_unlisted(s, "/r");
    assert_true(script_has(s, "> list /r\n"));
    end(s);
}

/* Goal: a path that was deleted and made anew counts from 0: its numbers prove nothing. Method: the
 * watch on it reports that, before the create's answer. */
static void a_path_made_anew_is_listed(void **state)
{
    struct script *s = alone();
    (void)state;
    script_lock_unlisted(s, "/r");
    script_fired(s, "/r", ZKL_FIRED_DELETED);
    is_not_granted(s);
    end(s);
}

/* Goal: no deletion is overlooked. Method: the watch is armed only after the delete was sent, as
 * the path may have been deleted by then; or another one was, since. */
static void the_watch_has_to_stand_before_the_delete(void **state)
{
    struct script *s = three_in_a_row(false);
    (void)state;
    script_answer(s, ZKL_REQ_WATCH, ZKL_ANSWER_OK);
    script_lock_unlisted(s, "/r");
    is_not_granted(s);
    leave(s, 4);
    script_lock_unlisted(s, "/r");
    script_created(s, 5); /* by now it does */
    assert_int_equal(state_of(s, 5), ZKL_CONTENDER_HOLDING);
    end(s);
}

static void another_watch_is_none(void **state)
{
    struct script *s = alone();
    (void)state;
    s->core.unlisted_from = 0;
    script_fired(s, "/r", ZKL_FIRED_OTHER);
    script_lock_unlisted(s, "/r");
    script_created(s, 4);
    script_answer(s, ZKL_REQ_WATCH, ZKL_ANSWER_OK); /* a new one */
    script_stop(s, 4, ZKL_ECANCELED);
    script_answer(s, ZKL_REQ_DELETE, ZKL_ANSWER_OK);
    assert_int_equal(script_path(s, "/r")->unlisted.next_number, 4);
    script_lock_unlisted(s, "/r");
    script_created(s, 4); /* of a path made anew in between */
    assert_int_equal(state_of(s, 5), ZKL_CONTENDER_QUEUEING);
    end(s);
}

/* Goal: one watch is asked for, not one by each lock until it is there. Method: another lock meanwhile. */
static void one_watch_is_asked_for(void **state)
{
    struct script *s = three_in_a_row(false);
    (void)state;
    script_lock_unlisted(s, "/r");
    is_not_granted(s);
    assert_false(script_has(s, "  > watch /r\n"));
    script_answer(s, ZKL_REQ_WATCH, ZKL_ANSWER_OK);
    end(s);
}

/* Goal: what was missed without a link is not taken for silence. Method: the link breaks and comes back; then it takes
 * some in a row again, and another watch. */
static void a_new_link_needs_a_new_watch(void **state)
{
    struct script *s = alone();
    (void)state;
    script_down(s);
    script_up(s, SCRIPT_SESSION);
    script_lock_unlisted(s, "/r");
    script_created(s, 4);
    assert_true(script_has(s, "> unwatch /r\n  > watch /r\n"));
    assert_int_equal(state_of(s, 4), ZKL_CONTENDER_QUEUEING);
    script_listed(s, "4:4");
    script_answer(s, ZKL_REQ_UNWATCH, ZKL_ANSWER_OK);
    script_answer(s, ZKL_REQ_WATCH, ZKL_ANSWER_OK);
    leave(s, 4);
    script_lock_unlisted(s, "/r");
    script_created(s, 5);
    assert_int_equal(state_of(s, 5), ZKL_CONTENDER_HOLDING);
    end(s);
}

/* Goal: only a node that was first and is deleted by its owner vouches for the next number. Method: the delete finds
 * no node; or a waiter gives up. */
static void only_an_unlock_vouches(void **state)
{
    struct script *s = alone();
    (void)state;
    script_lock_unlisted(s, "/r");
    script_created(s, 4);
    script_unlock(s, 4);
    script_answer(s, ZKL_REQ_DELETE, ZKL_ANSWER_NONODE);
    assert_int_equal(script_path(s, "/r")->unlisted.next_number, 4);
    script_lock_unlisted(s, "/r");
    script_created(s, 5);
    assert_int_equal(state_of(s, 5), ZKL_CONTENDER_QUEUEING);
    script_stop(s, 5, ZKL_ECANCELED);
    script_answer(s, ZKL_REQ_DELETE, ZKL_ANSWER_OK);
    assert_int_equal(script_path(s, "/r")->unlisted.next_number, 4);
    end(s);
}

/* Goal: a path that can't be watched costs one request now and then, not one for each lock. Method: it is refused. */
static void a_refused_watch_is_not_asked_for_each_time(void **state)
{
    struct script *s = script_connected();
    (void)state;
    s->core.unlisted_from = 2;
    for (int i = 1; i <= 6; i++) {
        script_lock_unlisted(s, "/r");
        have(s, i, i);
        if (i == 3 || i == 5)
            script_answer(s, ZKL_REQ_WATCH, ZKL_ANSWER_NOAUTH);
        assert_false(is_waited_for(s, ZKL_REQ_WATCH));
        leave(s, i);
    }
    end(s);
}

/* Goal: paths get an eighth of the room for watches, so that waiters keep theirs. Method: room for this path eight
 * times, and for one byte less. */
static void paths_leave_room_to_waiters(void **state)
{
    (void)state;
    for (size_t less = 0; less < 2; less++) {
        struct script *s = script_connected();
        s->core.unlisted_from = 1;
        s->core.watch_bytes_max = 8 * (4 + strlen("/r") - less);
        for (int i = 1; i <= 2; i++) {
            script_lock_unlisted(s, "/r");
            have(s, i, i);
            assert_true(is_waited_for(s, ZKL_REQ_WATCH) == (i == 2 && less == 0));
            if (is_waited_for(s, ZKL_REQ_WATCH))
                script_answer(s, ZKL_REQ_WATCH, ZKL_ANSWER_OK);
            leave(s, i);
        }
        end(s);
    }
}

/* Goal: nothing is left of a path that is given up. Method: it is, with the watch armed, and with none. */
static void a_path_given_up_is_watched_no_more(void **state)
{
    struct script *s = alone();
    (void)state;
    zkl_unlisted_end(&s->core, s->core.now, &script_path(s, "/r")->unlisted);
    script_expect(s, "  > unwatch /r\n");
    script_answer(s, ZKL_REQ_UNWATCH, ZKL_ANSWER_OK);
    assert_int_equal(s->core.watch_bytes, 0);
    zkl_unlisted_end(&s->core, s->core.now, &script_path(s, "/r")->unlisted);
    script_expect(s, "");
    end(s);
}

/* Goal: after a pause no heartbeat is waited for: the create was a quorum write itself. Method: the window is stale. */
static void its_create_proves_the_session(void **state)
{
    struct script *s = alone();
    (void)state;
    script_at(s, SCRIPT_TIMEOUT_MS * 2 / 3);
    script_lock_unlisted(s, "/r");
    script_created(s, 4);
    assert_int_equal(state_of(s, 4), ZKL_CONTENDER_HOLDING);
    end(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_next_number_is_granted_at_once),
        cmocka_unit_test(a_busy_client_sends_no_list),
        cmocka_unit_test(behind_another_thread_a_list_is_sent),
        cmocka_unit_test(who_comes_between_is_seen),
        cmocka_unit_test(a_path_made_anew_is_listed),
        cmocka_unit_test(the_watch_has_to_stand_before_the_delete),
        cmocka_unit_test(another_watch_is_none),
        cmocka_unit_test(one_watch_is_asked_for),
        cmocka_unit_test(a_new_link_needs_a_new_watch),
        cmocka_unit_test(only_an_unlock_vouches),
        cmocka_unit_test(a_refused_watch_is_not_asked_for_each_time),
        cmocka_unit_test(paths_leave_room_to_waiters),
        cmocka_unit_test(a_path_given_up_is_watched_no_more),
        cmocka_unit_test(its_create_proves_the_session),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
