/* SPDX-License-Identifier: Apache-2.0
 * Owners that take turns on one node, and the node that stays without a holder, on a script. */
#include <stdio.h>
#include <string.h>

#include <zklock/zklock.h>

#include "core/local_queue.h"
#include "script.h"

#define OWNERS 6
#define ALONE "r1:7"
#define OTHERS "r1:7 5:8"

static struct zkl_local_queue local_queue;
static struct zkl_local_waiter owners[OWNERS + 1]; /* from 1 */
static struct script *s;

static struct zkl_time now(void)
{
    return (struct zkl_time){s->now_ms * 1000000, (s->now_ms + 5000000) * 1000000};
}

static void queues(struct zkl_local_queue *t, struct zkl_local_waiter *turn)
{
    assert_ptr_equal(t, &local_queue);
    s->live[turn->contender - s->contenders] = true;
}

static void given(struct zkl_local_queue *t, struct zkl_local_waiter *turn)
{
    assert_ptr_equal(t, &local_queue);
    assert_non_null(turn->given);
    assert_false(turn->waits);
}

static int dropped_count;
static void dropped(struct zkl_local_queue *t, struct zkl_contender *c)
{
    assert_null(c->machine.lock_request.local_queue);
    assert_ptr_equal(t, &local_queue);
    dropped_count++;
}

static void begin(unsigned handoffs_max, int64_t retain_ms)
{
    s = script_connected();
    dropped_count = 0;
    memset(owners, 0, sizeof owners);
    local_queue = (struct zkl_local_queue){.handoffs_max = handoffs_max,
                                           .retain_ns = retain_ms * 1000000,
                                           .queues = queues,
                                           .given = given,
                                           .dropped = dropped};
}

static void end(void)
{
    zkl_local_queue_fini(&s->core, now(), &local_queue);
    assert_int_equal(local_queue.state, ZKL_LOCAL_QUEUE_FREE);
    script_free(s);
}

static enum zkl_local_queue_answer ask(int owner, bool try_only, bool ahead)
{
    owners[owner] = (struct zkl_local_waiter){
        .contender = &s->contenders[owner - 1],
        .lock_request = {
            .path = script_path(s, "/r"), .data = "owner", .try_only = try_only, .retained = true}};
    return zkl_local_queue_join(&s->core, now(), &local_queue, &owners[owner], ahead);
}

static void join(int owner, enum zkl_local_queue_answer answer)
{
    assert_int_equal(ask(owner, false, false), answer);
}

static struct zkl_contender *held(int owner)
{
    return owners[owner].given ? owners[owner].given : owners[owner].contender;
}

/* True: it was handed on, or stays. */
static bool unlock(int owner)
{
    struct zkl_contender *c = held(owner);
    if (zkl_local_queue_pass(&s->core, now(), &local_queue, c))
        return true;
    zkl_core_release(&s->core, now(), c);
    return false;
}

/* Owner 1 gets it, with that node of the first GUID. */
static void get_number(int32_t number)
{
    char alone[32];
    snprintf(alone, sizeof alone, "r1:%d", number);
    join(1, ZKL_LOCAL_QUEUE_QUEUES);
    script_created(s, number);
    script_listed(s, alone);
    assert_int_equal(local_queue.state, ZKL_LOCAL_QUEUE_TAKEN);
    script_forget(s);
}

static void get(void)
{
    get_number(7);
}

/* It is kept, and the watches are armed. */
static void keep(void)
{
    get();
    assert_true(unlock(1));
    script_lock_path_listed(s, 50, ALONE);
    script_answer(s, ZKL_REQ_WATCH, ZKL_ANSWER_OK);
    assert_int_equal(local_queue.state, ZKL_LOCAL_QUEUE_IDLE);
    script_forget(s);
}

/* The node is deleted, and with it the watches fire. */
static void gone(void)
{
    script_answer(s, ZKL_REQ_DELETE, ZKL_ANSWER_OK);
    enum zkl_request_kind kind;
    while (script_next(s, &kind))
        script_answer(s, kind, ZKL_ANSWER_OK);
}

/* --- handing on --------------------------------------------------------------------------------- */

/* Goal: those who wait get it in their order, without a request; a try does not wait. */
TEST(it_is_handed_on_in_order)
{
    begin(10, 0);
    get();
    join(2, ZKL_LOCAL_QUEUE_WAITS);
    join(3, ZKL_LOCAL_QUEUE_WAITS);
    assert_int_equal(ask(4, true, false), ZKL_LOCAL_QUEUE_BUSY);
    assert_int_equal(ask(4, false, true), ZKL_LOCAL_QUEUE_WAITS);
    assert_true(unlock(1));
    assert_ptr_equal(held(4), &s->contenders[0]);
    zkl_local_queue_leave(&local_queue, &owners[2]);
    assert_true(unlock(4));
    assert_ptr_equal(held(3), &s->contenders[0]);
    script_expect(s, "[     0] local queue TAKEN -> TAKEN: handed on\n"
                     "[     0] local queue TAKEN -> TAKEN: handed on\n");
    assert_false(unlock(3));
    script_answer(s, ZKL_REQ_DELETE, ZKL_ANSWER_OK);
    script_expect(s, "[     0] local queue TAKEN -> FREE: unlocked\n"
                     "[     0] #1 HOLDING -> RELEASING: unlocked\n"
                     "  > delete /r/G1-0000000007\n"
                     "[     0] #1 RELEASING -> ENDED: deleted\n"
                     "  #1 released OK\n"
                     "  #1 ended\n");
    end();
}

/* Goal: without other clients it is handed on forever, after one list; with another client at most
 * this often in a row, and then the next one queues behind the delete. */
TEST(it_is_handed_on_so_often)
{
    begin(2, 0);
    get();
    for (int i = 0; i < 3; i++) { /* the third one asks whether others queue */
        join(2 - i % 2, ZKL_LOCAL_QUEUE_WAITS);
        assert_true(unlock(1 + i % 2));
    }
    script_expect(s, "[     0] local queue TAKEN -> TAKEN: handed on\n"
                     "[     0] local queue TAKEN -> TAKEN: handed on\n"
                     "  > list root /r\n"
                     "[     0] local queue TAKEN -> TAKEN: handed on\n");
    script_lock_path_listed(s, 50, ALONE);
    for (int i = 1; i < 9; i++) {
        join(2 - i % 2, ZKL_LOCAL_QUEUE_WAITS);
        assert_true(unlock(1 + i % 2));
    }
    assert_int_equal(s->request_count, 0);
    assert_int_equal(local_queue.handoffs, 2);
    script_forget(s);
    script_fired(s, "/r", ZKL_FIRED_OTHER);
    join(3, ZKL_LOCAL_QUEUE_WAITS);
    assert_false(unlock(2 - 1));
    script_expect(s, "[     0] local queue TAKEN -> FREE: unlocked\n"
                     "[     0] #1 HOLDING -> RELEASING: unlocked\n"
                     "  > delete /r/G1-0000000007\n"
                     "[     0] local queue FREE -> QUEUED: queues\n"
                     "[     0] #2 NEW -> QUEUEING: started\n"
                     "  > create /r/G2-\n"
                     "  > list /r\n");
    script_answer(s, ZKL_REQ_DELETE, ZKL_ANSWER_OK);
    zkl_core_stop(&s->core, now(), held(3), ZKL_ETIMEDOUT);
    script_created(s, 8);
    script_answer(s, ZKL_REQ_DELETE, ZKL_ANSWER_OK);
    end();
}

/* Goal: when the owner that queues for all gives up, the next one follows; when it loses the node,
 * immediately. */
TEST(the_next_one_queues)
{
    begin(2, 0);
    join(1, ZKL_LOCAL_QUEUE_QUEUES);
    join(2, ZKL_LOCAL_QUEUE_WAITS);
    join(3, ZKL_LOCAL_QUEUE_WAITS);
    script_forget(s);
    zkl_core_stop(&s->core, now(), held(1), ZKL_ETIMEDOUT);
    script_expect(s, "[     0] #1 QUEUEING -> LEAVING: stopped\n"
                     "[     0] local queue QUEUED -> FREE: in vain\n"
                     "  #1 failed ETIMEDOUT\n"
                     "[     0] local queue FREE -> QUEUED: queues\n"
                     "[     0] #2 NEW -> QUEUEING: started\n"
                     "  > create /r/G2-\n"
                     "  > list /r\n");
    script_created(s, 7);
    script_answer(s, ZKL_REQ_DELETE, ZKL_ANSWER_OK);
    script_created(s, 8);
    script_listed(s, "r2:8");
    assert_int_equal(local_queue.state, ZKL_LOCAL_QUEUE_TAKEN);
    script_forget(s);
    script_event(s, ZKL_SE_EXPIRED);
    assert_true(script_has(s, "local queue TAKEN -> FREE: lost"));
    assert_true(script_has(s, "local queue FREE -> QUEUED: queues"));
    assert_false(unlock(2));
    script_up(s, SCRIPT_SESSION + 1);
    script_created(s, 9);
    script_listed(s, "r3:9");
    assert_int_equal(local_queue.state, ZKL_LOCAL_QUEUE_TAKEN);
    assert_false(unlock(3));
    gone();
    end();
}

/* Goal: what is in doubt, asked for, or leased is not handed on. */
TEST(what_is_not_sure_is_not_handed_on)
{
    for (int i = 0; i < 4; i++) {
        begin(2, 60000);
        get();
        if (i == 0)
            script_down(s);
        else if (i == 1)
            assert_true(zkl_core_renew(&s->core, now(), held(1), 1000000000));
        else if (i == 2)
            held(1)->machine.revoked = true;
        else
            script_sleep_until(s, 10000); /* past the window, and no timer has said so */
        join(2, ZKL_LOCAL_QUEUE_WAITS);
        assert_false(unlock(1));
        assert_int_equal(local_queue.state, ZKL_LOCAL_QUEUE_QUEUED);
        script_close(s);
        end();
    }
}

/* --- without a holder
 * --------------------------------------------------------------------------- */

/* Goal: it is kept after two requests, once for the node, and taken again without any. */
TEST(it_is_kept)
{
    begin(0, 60000);
    get();
    assert_true(unlock(1));
    script_expect(s, "[     0] local queue TAKEN -> IDLE: kept\n"
                     "  > list root /r\n"
                     "  > watch /r/G1-0000000007\n");
    script_lock_path_listed(s, 50, ALONE);
    script_answer(s, ZKL_REQ_WATCH, ZKL_ANSWER_OK);
    for (int i = 0; i < 3; i++) {
        join(2, ZKL_LOCAL_QUEUE_GIVEN);
        assert_ptr_equal(held(2), &s->contenders[0]);
        assert_true(unlock(2));
    }
    script_forget(s);
    assert_int_equal(s->request_count, 0);
    zkl_local_queue_drop(&s->core, now(), &local_queue);
    assert_int_equal(dropped_count, 1);
    script_expect(s, "[     0] local queue IDLE -> FREE: not wanted\n"
                     "[     0] #1 HOLDING -> RELEASING: unlocked\n"
                     "  > delete /r/G1-0000000007\n");
    gone();
    end();
}

/* Goal: no contender is overlooked behind it. Method: all that can show others, or forbid keeping
 * it. */
TEST(it_is_given_up)
{
    for (int i = 0; i < 7; i++) {
        begin(0, 60000);
        if (i < 3) {
            get();
            assert_true(unlock(1));
        } else {
            keep();
        }
        if (i == 0)
            script_lock_path_listed(s, 50, OTHERS);
        else if (i == 1)
            script_answer(s, ZKL_REQ_LIST_LOCK_PATH, ZKL_ANSWER_NOAUTH);
        else if (i == 2)
            script_reply(s, ZKL_REQ_WATCH,
                         (struct zkl_reply){.data = "__REVOKE__", .data_size = 10});
        else if (i == 3)
            script_fired(s, "/r", ZKL_FIRED_OTHER);
        else if (i == 4)
            script_down(s);
        else if (i == 5)
            script_fired(s, "/r/G1-0000000007", ZKL_FIRED_DELETED);
        else
            script_event(s, ZKL_SE_EXPIRED);
        assert_int_equal(local_queue.state, ZKL_LOCAL_QUEUE_FREE);
        assert_int_equal(dropped_count, 1);
        script_close(s);
        end();
    }
}

/* Goal: if the path's numbers are about to be used up, and the next contender could only wait for a
 * new path, without a visible node, nothing is kept. */
TEST(the_last_numbers_are_not_kept)
{
    for (int early = 0; early < 2; early++) {
        char alone[32];
        int32_t number = ZKL_SEQUENCE_HARD - ZKL_SEQUENCE_NEAR - early;
        begin(0, 60000);
        get_number(number);
        assert_true(unlock(1));
        snprintf(alone, sizeof alone, "r1:%d", number);
        script_lock_path_listed(s, 50, alone);
        assert_int_equal(local_queue.state, early ? ZKL_LOCAL_QUEUE_IDLE : ZKL_LOCAL_QUEUE_FREE);
        script_close(s);
        end();
    }
}

/* Goal: a node that could not receive a request for its release, as there is no room for the watch
 * on it, is not kept. Method: room for that on the path and half of the node's, which is what a
 * node's own watch gets. */
TEST(who_can_not_be_asked_is_not_kept)
{
    begin(0, 60000);
    s->core.watch_bytes_max = 40;
    get();
    assert_true(unlock(1));
    assert_int_equal(local_queue.state, ZKL_LOCAL_QUEUE_FREE);
    assert_int_equal(dropped_count, 1);
    assert_true(script_has(s, "  > delete /r/G1-0000000007\n"));
    script_close(s);
    end();
}

/* Goal: while an owner is in it, a contender is reported to the next unlock only, also after
 * another link. */
TEST(who_queues_meanwhile_is_not_forgotten)
{
    begin(0, 60000);
    keep();
    join(2, ZKL_LOCAL_QUEUE_GIVEN);
    script_down(s);
    script_up(s, SCRIPT_SESSION);
    assert_true(script_has(s, "  > list root /r\n"));
    script_answer(s, ZKL_REQ_CHECK_ALL, ZKL_ANSWER_OK);
    script_lock_path_listed(s, 50, OTHERS);
    assert_int_equal(local_queue.state, ZKL_LOCAL_QUEUE_TAKEN);
    assert_false(unlock(2));
    script_close(s);
    end();
}

/* Goal: it is deleted when its time is over, counted from the last unlock; the timer is set once
 * for many. */
TEST(it_goes_when_its_time_is_over)
{
    begin(0, 1000);
    keep();
    script_at(s, 600);
    join(2, ZKL_LOCAL_QUEUE_GIVEN);
    assert_true(unlock(2));
    assert_int_equal(s->core.local_queues_mono_ns, 1000 * 1000000);
    script_forget(s);
    script_at(s, 1500);
    assert_int_equal(local_queue.state, ZKL_LOCAL_QUEUE_IDLE);
    assert_int_equal(s->core.local_queues_mono_ns, 1600 * 1000000);
    script_at(s, 1600);
    assert_int_equal(local_queue.state, ZKL_LOCAL_QUEUE_FREE);
    assert_true(script_has(s, "[  1600] local queue IDLE -> FREE: for long enough\n"));
    script_close(s);
    end();
}

/* Goal: only its own time decides when it is deleted. Method: another lock's timer comes first. */
TEST(another_timer_is_not_its_own)
{
    begin(0, 1000);
    keep();
    struct zkl_local_queue sooner = {.timed = true, .next_timed = s->core.timed_local_queues};
    s->core.timed_local_queues = &sooner;
    s->core.local_queues_mono_ns = 500 * 1000000;
    script_at(s, 500);
    assert_false(sooner.timed);
    assert_int_equal(local_queue.state, ZKL_LOCAL_QUEUE_IDLE);
    assert_int_equal(s->core.local_queues_mono_ns, 1000 * 1000000);
    script_at(s, 1000);
    assert_int_equal(local_queue.state, ZKL_LOCAL_QUEUE_FREE);
    script_close(s);
    end();
}

/* Goal: a holder whose node was deleted is not forgotten if the next one gets it first. Method: the
 * list of the next contender shows its own node alone. */
TEST(the_next_one_may_be_first_to_know)
{
    begin(0, 0);
    get();
    join(2, ZKL_LOCAL_QUEUE_QUEUES);
    script_created(s, 8);
    script_listed(s, "r2:8");
    assert_true(script_has(s, "  #2 granted 102\n"));
    assert_ptr_equal(local_queue.holder, &s->contenders[0]);
    assert_false(unlock(2));
    script_answer(s, ZKL_REQ_DELETE, ZKL_ANSWER_OK);
    assert_int_equal(local_queue.state, ZKL_LOCAL_QUEUE_TAKEN);
    assert_false(unlock(1));
    script_answer(s, ZKL_REQ_DELETE, ZKL_ANSWER_NONODE);
    assert_int_equal(local_queue.state, ZKL_LOCAL_QUEUE_FREE);
    script_close(s);
    end();
}

/* Goal: a hold that came another way, by a multi-lock, is kept too; but not if another contender
 * queues. */
TEST(another_hold_is_kept)
{
    begin(0, 1000);
    script_hold(s, "/r", 7);
    assert_true(zkl_local_queue_pass(&s->core, now(), &local_queue, script_contender(s, 1)));
    assert_int_equal(local_queue.state, ZKL_LOCAL_QUEUE_IDLE);
    script_close(s);
    end();
    begin(0, 1000);
    script_hold(s, "/r", 7);
    owners[2].contender = &s->contenders[1];
    join(2, ZKL_LOCAL_QUEUE_QUEUES);
    assert_false(zkl_local_queue_pass(&s->core, now(), &local_queue, script_contender(s, 1)));
    script_unlock(s, 1);
    script_close(s);
    end();
}

/* --- a try elsewhere ---------------------------------------------------------------------------- */

/* Goal: a try that finds one node that may have no holder queues behind it; else, or without leave
 * to, it says busy after one read. */
TEST(a_try_queues_behind_it)
{
    s = script_connected();
    script_try_behind_retained(s, "/r");
    script_listed(s, "r5:3");
    script_created(s, 4);
    script_listed(s, "r5:3 1:4");
    script_expect(s, "[     0] #1 NEW -> LOOKING: started\n"
                     "  > list /r\n"
                     "[     0] #1 LOOKING -> QUEUEING: nobody may be in it\n"
                     "  > create /r/G1-\n"
                     "  > list /r\n"
                     "[     0] #1 QUEUEING -> WAITING: next in line\n"
                     "  > watch /r/G5-0000000003\n"
                     "  > watch /r/G1-0000000004\n");
    assert_true(zkl_contender_awaits_retained(&script_contender(s, 1)->machine));
    script_answer(s, ZKL_REQ_WATCH, ZKL_ANSWER_OK);
    script_answer(s, ZKL_REQ_WATCH, ZKL_ANSWER_OK);
    script_fired(s, "/r/G5-0000000003", ZKL_FIRED_DELETED);
    assert_true(script_has(s, "  #1 granted 101\n"));
    static const char *const busy[] = {"5:3", "r5:3 r6:4", "r5:3 6:4"};
    for (int i = 0; i < 3; i++) {
        script_try_behind_retained(s, "/r");
        script_listed(s, busy[i]);
        assert_true(script_has(s, "failed EBUSY"));
        script_forget(s);
    }
    script_try(s, "/r", false);
    script_listed(s, "r5:3");
    assert_true(script_has(s, "failed EBUSY"));
    script_close(s);
    script_unlock(s, 1);
    script_free(s);
}

/* Goal: no idle node stays that cannot hear of a request to release it. Method: its own watch is
 * refused by the server, after the step that asked for it. */
TEST(whose_watch_is_denied_is_not_kept)
{
    begin(0, 60000);
    get();
    assert_true(unlock(1));
    script_lock_path_listed(s, 50, ALONE);
    script_answer(s, ZKL_REQ_WATCH, ZKL_ANSWER_NOAUTH);
    assert_int_equal(local_queue.state, ZKL_LOCAL_QUEUE_FREE);
    gone();
    end();
}

/* Likewise where its data changed (another client asks for it): the watch is used up, and can't be
 * set anew for want of memory. */
TEST(whose_watch_is_not_set_anew_is_not_kept)
{
    begin(0, 60000);
    keep();
    s->refuse[ZKL_REQ_WATCH] = ZKL_ANSWER_NOMEM;
    script_fired(s, "/r/G1-0000000007", ZKL_FIRED_OTHER);
    s->refuse[ZKL_REQ_WATCH] = ZKL_ANSWER_OK;
    assert_int_equal(local_queue.state, ZKL_LOCAL_QUEUE_FREE);
    gone();
    end();
}

static void other_dropped(struct zkl_local_queue *t, struct zkl_contender *c)
{
    assert_ptr_not_equal(t, &local_queue);
    assert_null(c->machine.lock_request.local_queue);
}

/* Goal: a waiter's create goes out behind the delete before it also where a multi-lock passes another
 * member in between, which is kept. */
TEST(the_next_one_queues_behind_the_delete)
{
    static struct zkl_local_queue other;
    struct zkl_contender *c2;
    begin(1, 0);
    get();
    c2 = &s->contenders[10];
    s->live[10] = true;
    zkl_core_acquire(&s->core, now(), c2,
                     &(struct zkl_lock_request){
                         .path = script_path(s, "/q"), .data = "owner", .retained = true});
    script_created(s, 3);
    script_listed(s, "r2:3");
    assert_int_equal(c2->machine.state, ZKL_CONTENDER_HOLDING);
    other = (struct zkl_local_queue){.retain_ns = INT64_C(60000000000),
                                     .queues = queues,
                                     .given = given,
                                     .dropped = other_dropped};
    join(2, ZKL_LOCAL_QUEUE_WAITS);
    assert_true(unlock(1));
    join(3, ZKL_LOCAL_QUEUE_WAITS);
    assert_true(unlock(2));
    script_lock_path_listed(s, 50, OTHERS); /* others queue, and two hand-offs were */
    join(4, ZKL_LOCAL_QUEUE_WAITS);
    script_forget(s);
    assert_false(zkl_local_queue_pass(&s->core, now(), &local_queue, held(3)));
    assert_true(zkl_local_queue_pass(&s->core, now(), &other, c2));
    zkl_core_release(&s->core, now(), held(3));
    assert_true(strstr(s->text, "> delete /r/") < strstr(s->text, "> create /r/"));
    script_close(s);
    zkl_local_queue_fini(&s->core, now(), &other);
    end();
}
