/* SPDX-License-Identifier: Apache-2.0
 * From the grant to the end of a hold, on a script: unlock, window, loss, heartbeats, close. */
#include <string.h>

#include <zklock/zklock.h>

#include "script.h"

/* --- unlock --------------------------------------------------------------- */

/* Goal: unlock does not wait for a broken link, and the node is deleted before anything new comes.
 * Method: the link breaks with the delete out; at the next link a new lock request is parked beside
 * it. Modes: F13. */
static void after_a_broken_unlock_the_delete_goes_before_any_create(void **state)
{
    struct script *s = script_connected();
    (void)state;
    script_lock(s, "/other");
    script_answer(s, ZKL_REQ_CREATE, ZKL_ANSWER_NONODE);
    script_hold(s, "/r", 7);
    script_forget(s);
    script_unlock(s, 2);
    script_at(s, 20);
    script_down(s);
    script_lock(s, "/r");
    script_at(s, 40);
    script_up(s, SCRIPT_SESSION);
    script_expect(s, "[     0] #2 HOLDING -> RELEASING: unlocked\n"
                     "  > delete /r/G2-0000000007\n"
                     "[    20] session CONNECTED -> SUSPENDED: link lost\n"
                     "[    20] #2 RELEASING -> LEAVING: the link broke\n"
                     "  #2 released EUNCONFIRMED: the link broke\n"
                     "  session: link down\n"
                     "[    20] #1 MAKING -> PARKED: no answer\n"
                     "[    20] #3 NEW -> PARKED: started\n"
                     "[    40] session SUSPENDED -> CONNECTED: connected\n"
                     "  session: link up\n"
                     "  > delete /r/G2-0000000007\n"
                     "[    40] #1 PARKED -> QUEUEING: link up\n"
                     "  > create /other/G3-\n"
                     "  > list /other\n"
                     "[    40] #3 PARKED -> QUEUEING: link up\n"
                     "  > create /r/G4-\n"
                     "  > list /r\n");
    script_event(s, ZKL_SE_EXPIRED);
    script_stop(s, 1, ZKL_ECANCELED);
    script_stop(s, 3, ZKL_ECANCELED);
    script_free(s);
}

/* Goal: unlock without a link answers immediately. Method: the link is down already. */
static void unlock_without_a_link_is_unconfirmed_at_once(void **state)
{
    struct script *s = script_connected();
    (void)state;
    script_hold(s, "/r", 7);
    script_forget(s);
    script_down(s);
    script_unlock(s, 1);
    script_up(s, SCRIPT_SESSION);
    script_answer(s, ZKL_REQ_DELETE, ZKL_ANSWER_NONODE);
    script_expect(s, "[     0] session CONNECTED -> SUSPENDED: link lost\n"
                     "  #1 SUSPECT (link)\n"
                     "  session: link down\n"
                     "[     0] #1 HOLDING -> LEAVING: unlocked without a link\n"
                     "  #1 released EUNCONFIRMED: the link is down\n"
                     "[     0] session SUSPENDED -> CONNECTED: connected\n"
                     "  session: link up\n"
                     "  > delete /r/G1-0000000007\n"
                     "[     0] #1 LEAVING -> ENDED: deleted\n"
                     "  #1 ended\n");
    script_free(s);
}

/* Goal: unlock waits at most until the window ends. Method: the server never answers. */
static void unlock_waits_at_most_until_the_window_ends(void **state)
{
    struct script *s = script_connected();
    (void)state;
    script_hold(s, "/r", 7);
    script_at(s, 100);
    script_forget(s);
    script_unlock(s, 1);
    script_at(s, 2900);
    script_expect(s, "[   100] #1 HOLDING -> RELEASING: unlocked\n"
                     "  > delete /r/G1-0000000007\n"
                     "[  2813] #1 RELEASING -> LEAVING: the window ended\n"
                     "  #1 released EUNCONFIRMED: the window ended\n");
    script_answer(s, ZKL_REQ_DELETE, ZKL_ANSWER_OK);
    script_free(s);
}

/* Goal: unlock reports that the hold had ended unnoticed. Method: the delete finds no node. */
static void unlock_of_a_deleted_node_is_lost(void **state)
{
    struct script *s = script_connected();
    (void)state;
    script_hold(s, "/r", 7);
    script_forget(s);
    script_unlock(s, 1);
    script_answer(s, ZKL_REQ_DELETE, ZKL_ANSWER_NONODE);
    script_expect(s, "[     0] #1 HOLDING -> RELEASING: unlocked\n"
                     "  > delete /r/G1-0000000007\n"
                     "[     0] #1 RELEASING -> ENDED: was deleted\n"
                     "  #1 LOST (node deleted)\n"
                     "  #1 released ELOST\n"
                     "  #1 ended\n");
    script_free(s);
}

/* Goal: unlock reports that the session ended meanwhile. Method: it expires with the delete out,
 * and no loss of the link was reported before. */
static void unlock_in_an_expired_session_is_lost(void **state)
{
    struct script *s = script_connected();
    (void)state;
    script_hold(s, "/r", 8);
    script_forget(s);
    script_unlock(s, 1);
    script_event(s, ZKL_SE_EXPIRED);
    script_expect(s, "[     0] #1 HOLDING -> RELEASING: unlocked\n"
                     "  > delete /r/G1-0000000008\n"
                     "[     0] session CONNECTED -> STARTING: expired\n"
                     "[     0] #1 RELEASING -> ENDED: expired\n"
                     "  #1 LOST (expired)\n"
                     "  #1 released ELOST\n"
                     "  #1 ended\n"
                     "  session: link down, expired, replace handle\n");
    script_free(s);
}

/* Goal: nothing is sent for a session that has ended, not even where the next one is connected
 * already: the handle is still the old one, and its answers do not count. Method: the service
 * thread comes so late that a lease's end and the adoption of the second handle meet, and another
 * contender waits for the holder's delete. */
static void nothing_is_sent_between_two_sessions(void **state)
{
    struct script *s = script_connected();
    (void)state;
    script_acquire(s, (struct zkl_lock_request){.path = script_path(s, "/r"),
                                                .lease_ns = 8900 * INT64_C(1000000)});
    script_created(s, 7);
    script_listed(s, "1:7");
    script_ask(s, (struct zkl_query){.kind = ZKL_REQ_STAT, .path = "/q"});
    script_down(s);
    script_at(s, 6000);
    script_event(s, ZKL_SE_PROBE_UP);
    script_sleep_until(s, 9001);
    script_forget(s);
    script_at(s, 9001);
    script_expect(s, "[  9001] session PROBED -> STARTING: server does not know the session\n"
                     "[  9001] session STARTING -> CONNECTED: second handle\n"
                     "[  9001] #1 HOLDING -> LOSTHOLD: lease ended\n"
                     "  #1 LOST (lease)\n"
                     "  session: link up, expired, adopt probe\n"
                     "  > delete all /r/G1-0000000007\n"
                     "  > stat /q\n");
    assert_int_equal(s->core.group_commit.under_way, 1); /* that delete */
    script_withdraw(s, 1);
    script_unlock(s, 1);
    script_free(s);
}

/* Goal: the node of an owner that exited is deleted. Method: it holds, with a link and without. */
static void an_owner_that_exits_leaves_its_node_to_the_janitor(void **state)
{
    struct script *s = script_connected();
    (void)state;
    script_hold(s, "/r", 7);
    script_hold(s, "/q", 3);
    script_forget(s);
    script_abandon(s, 1);
    script_answer(s, ZKL_REQ_DELETE, ZKL_ANSWER_OK);
    script_down(s);
    script_abandon(s, 2);
    script_up(s, SCRIPT_SESSION);
    script_answer(s, ZKL_REQ_DELETE, ZKL_ANSWER_OK);
    script_expect(s, "[     0] #1 HOLDING -> LEAVING: abandoned\n"
                     "  #1 LOST (exited)\n"
                     "  > delete /r/G1-0000000007\n"
                     "[     0] #1 LEAVING -> ENDED: deleted\n"
                     "  #1 ended\n"
                     "[     0] session CONNECTED -> SUSPENDED: link lost\n"
                     "  #2 SUSPECT (link)\n"
                     "  session: link down\n"
                     "[     0] #2 HOLDING -> LEAVING: abandoned\n"
                     "  #2 LOST (exited)\n"
                     "[     0] session SUSPENDED -> CONNECTED: connected\n"
                     "  session: link up\n"
                     "  > delete /q/G2-0000000003\n"
                     "[     0] #2 LEAVING -> ENDED: deleted\n"
                     "  #2 ended\n");
    script_free(s);
}

/* --- holding and losing --------------------------------------------------- */

/* Goal: a hold that runs out of the window is suspect until proved: what is proved first is the timeout from
 * the opening of the handle, less R. Method: the server stops answering heartbeats, then those of then and
 * of now are answered. Modes: F8. */
static void a_hold_is_suspect_at_the_window_s_end_until_it_is_proved(void **state)
{
    struct script *s = script_connected();
    (void)state;
    script_lock(s, "/r");
    script_at(s, 40);
    script_created(s, 7);
    script_listed(s, "1:7");
    script_forget(s);
    script_at(s, 415);
    script_expect(s, "  > heartbeat /r/G1-0000000007\n");
    script_at(s, 2812);
    script_expect(s, "");
    script_at(s, 2813);
    script_expect(s, "  #1 SUSPECT (window)\n");
    script_answer(s, ZKL_REQ_CHECK_ALL, ZKL_ANSWER_OK);
    script_at(s, 2900);
    script_answer(s, ZKL_REQ_CHECK_ALL, ZKL_ANSWER_OK);
    script_expect(s, "  > heartbeat /r/G1-0000000007\n"
                     "  #1 HELD\n");
    script_unlock(s, 1);
    script_answer(s, ZKL_REQ_DELETE, ZKL_ANSWER_OK);
    script_free(s);
}

/* Goal: heartbeats run every quarter of the timeout while something is held, and only then.
 * Method: 3 s with a hold, then without. */
static void heartbeats_run_while_something_is_held(void **state)
{
    struct script *s = script_connected();
    (void)state;
    script_hold(s, "/r", 7);
    script_forget(s);
    for (int i = 1; i <= 3; i++) {
        script_at(s, 750 * i);
        script_answer(s, ZKL_REQ_CHECK_ALL, ZKL_ANSWER_OK);
    }
    script_unlock(s, 1);
    script_answer(s, ZKL_REQ_DELETE, ZKL_ANSWER_OK);
    script_at(s, 60000);
    script_expect(s, "  > heartbeat /r/G1-0000000007\n"
                     "  > heartbeat /r/G1-0000000007\n"
                     "  > heartbeat /r/G1-0000000007\n"
                     "[  2250] #1 HOLDING -> RELEASING: unlocked\n"
                     "  > delete /r/G1-0000000007\n"
                     "[  2250] #1 RELEASING -> ENDED: deleted\n"
                     "  #1 released OK\n"
                     "  #1 ended\n");
    script_free(s);
}

/* Goal: a lost hold is reported exactly once, and unlock says so. Method: the session expires; more
 * events follow. Modes: F7. */
static void an_expired_hold_is_lost_exactly_once(void **state)
{
    struct script *s = script_connected();
    (void)state;
    script_hold(s, "/r", 7);
    script_forget(s);
    script_down(s);
    script_event(s, ZKL_SE_EXPIRED);
    script_up(s, SCRIPT_SESSION + 1);
    script_at(s, 5000);
    script_event(s, ZKL_SE_EXPIRED);
    script_unlock(s, 1);
    script_expect(s, "[     0] session CONNECTED -> SUSPENDED: link lost\n"
                     "  #1 SUSPECT (link)\n"
                     "  session: link down\n"
                     "[     0] session SUSPENDED -> STARTING: expired\n"
                     "[     0] #1 HOLDING -> LOSTHOLD: expired\n"
                     "  #1 LOST (expired)\n"
                     "  session: expired, replace handle\n"
                     "[     0] session STARTING -> CONNECTED: connected\n"
                     "  session: link up\n"
                     "  > delete all /r/G1-0000000007\n"
                     "[  5000] session CONNECTED -> STARTING: expired\n"
                     "  session: link down, expired, replace handle\n"
                     "[  5000] #1 LOSTHOLD -> ENDED: lost hold given back\n"
                     "  #1 released ELOST\n"
                     "  #1 ended\n");
    assert_int_equal(s->lost[0], 1);
    script_free(s);
}

/* Goal: the next heartbeat notices a deleted node, and only its holder is notified. Method: two
 * hold, the second check fails. */
static void a_heartbeat_tells_whose_node_is_gone(void **state)
{
    struct script *s = script_connected();
    (void)state;
    script_hold(s, "/r", 7);
    script_hold(s, "/q", 3);
    script_at(s, 750);
    script_forget(s);
    script_missing(s, 1);
    script_expect(s, "[   750] #2 HOLDING -> LOSTHOLD: node deleted\n"
                     "  #2 LOST (node deleted)\n"
                     "  > heartbeat /r/G1-0000000007\n");
    script_answer(s, ZKL_REQ_CHECK_ALL, ZKL_ANSWER_OK);
    script_unlock(s, 2);
    script_unlock(s, 1);
    script_answer(s, ZKL_REQ_DELETE, ZKL_ANSWER_OK);
    script_free(s);
}

/* Goal: with a callback a deletion is reported immediately. Method: the own node is watched; its
 * data changes, then it is deleted. */
static void a_watched_hold_hears_of_its_deletion_at_once(void **state)
{
    struct script *s = script_connected();
    (void)state;
    script_lock_watched(s, "/r");
    script_created(s, 7);
    script_listed(s, "1:7");
    script_answer(s, ZKL_REQ_WATCH, ZKL_ANSWER_OK);
    script_forget(s);
    script_fired(s, "/r/G1-0000000007", ZKL_FIRED_OTHER);
    script_answer(s, ZKL_REQ_WATCH, ZKL_ANSWER_OK);
    script_fired(s, "/r/G1-0000000007", ZKL_FIRED_DELETED);
    script_unlock(s, 1);
    script_expect(s, "  > watch /r/G1-0000000007\n"
                     "[     0] #1 HOLDING -> LOSTHOLD: node deleted\n"
                     "  #1 LOST (node deleted)\n"
                     "[     0] #1 LOSTHOLD -> ENDED: lost hold given back\n"
                     "  #1 released ELOST\n"
                     "  #1 ended\n");
    script_free(s);
}

/* Goal: a waiter that was asked for its release learns of that with the grant. Method: the own
 * node's data, which the arming of its watch carries, asks; then the predecessor leaves. */
static void a_waiter_that_was_asked_hears_of_it_with_the_grant(void **state)
{
    struct script *s = script_connected();
    (void)state;
    script_lock(s, "/r");
    script_created(s, 9);
    script_listed(s, "1:9 5:7");
    script_answer(s, ZKL_REQ_WATCH, ZKL_ANSWER_OK);
    script_reply(s, ZKL_REQ_WATCH,
                 (struct zkl_reply){.data = ZKL_REVOCATION, .data_size = strlen(ZKL_REVOCATION)});
    script_forget(s);
    script_fired(s, "/r/G5-0000000007", ZKL_FIRED_DELETED);
    script_expect(s, "[     0] #1 WAITING -> HOLDING: predecessor deleted\n"
                     "  #1 granted 101\n"
                     "  #1 REVOKED\n");
    script_unlock(s, 1);
    script_fired(s, "/r/G1-0000000009", ZKL_FIRED_DELETED);
    script_answer(s, ZKL_REQ_DELETE, ZKL_ANSWER_OK);
    script_free(s);
}

/* Goal: the end of a lease is one of the times at which the core wants to be called. Method: a hold gets a
 * lease that ends before the first heartbeat: there is nothing else to wait for. */
static void a_lease_ends_in_time(void **state)
{
    struct script *s = script_connected();
    (void)state;
    script_hold(s, "/r", 7);
    assert_true(
        zkl_core_renew(&s->core, s->core.now, script_contender(s, 1), 100 * INT64_C(1000000)));
    script_forget(s);
    script_at(s, 300);
    script_expect(s, "[   100] #1 HOLDING -> LOSTHOLD: lease ended\n"
                     "  #1 LOST (lease)\n"
                     "  > delete /r/G1-0000000007\n");
    script_answer(s, ZKL_REQ_DELETE, ZKL_ANSWER_OK);
    script_unlock(s, 1);
    script_free(s);
}

/* --- an empty window ------------------------------------------------------ */

/* The waiter is first after a stop of the process that was longer than the window. */
/* Every heartbeat is answered until then. */
static void prove_until(struct script *s, int64_t ms)
{
    enum zkl_request_kind kind;
    while (s->now_ms < ms) {
        script_at(s, s->now_ms + 1);
        while (script_next(s, &kind) && kind == ZKL_REQ_CHECK_ALL)
            script_answer(s, ZKL_REQ_CHECK_ALL, ZKL_ANSWER_OK);
    }
}

static struct script *confirming(void)
{
    struct script *s = script_connected();
    script_wait(s, "/r", 9, "5:7");
    script_at(s, 10);
    script_sleep_until(s, 4000);
    script_fired(s, "/r/G5-0000000007", ZKL_FIRED_DELETED);
    script_forget(s);
    return s;
}

/* Goal: no grant with an empty window. Method: first in the queue long after the last answer: the
 * grant waits for a heartbeat that rests on one of now. */
static void a_grant_with_an_empty_window_waits_for_a_heartbeat(void **state)
{
    struct script *s = confirming();
    (void)state;
    script_listed(s, "1:9");
    script_at(s, 4020);
    script_answer(s, ZKL_REQ_CHECK_ALL, ZKL_ANSWER_OK);
    script_expect(s, "[  4000] #1 LISTING -> CONFIRMING: first\n"
                     "  > heartbeat /r/G1-0000000009\n");
    prove_until(s, 5120);
    script_forget(s);
    prove_until(s, 5130);
    script_expect(s, "  > heartbeat /r/G1-0000000009\n"
                     "[  5125] #1 CONFIRMING -> HOLDING: proved\n"
                     "  #1 granted 101\n");
    script_unlock(s, 1);
    script_answer(s, ZKL_REQ_DELETE, ZKL_ANSWER_OK);
    script_free(s);
}

/* Goal: a try that is first does not wait for a proof: it gives its node up and says so. Method: a
 * pause of the process after the last answer. */
static void a_try_does_not_wait_for_a_proof(void **state)
{
    struct script *s = script_connected();
    (void)state;
    script_sleep_until(s, 4000);
    script_try(s, "/r", false);
    script_listed(s, "");
    script_created(s, 7);
    script_forget(s);
    script_listed(s, "1:7");
    script_expect(s, "[  4000] #1 QUEUEING -> LEAVING: too little is proved\n"
                     "  #1 failed EUNPROVED\n"
                     "  > delete /r/G1-0000000007\n");
    script_answer(s, ZKL_REQ_DELETE, ZKL_ANSWER_OK);
    script_free(s);
}

/* Goal: a heartbeat that fails does not grant. Method: the node is missing; in a second run the
 * link breaks and the place is looked at again; in a third the lock request ends. Modes: F10. */
static void an_unproved_first_is_never_granted(void **state)
{
    struct script *s = confirming();
    (void)state;
    script_listed(s, "1:9");
    script_missing(s, 0);
    script_expect(s, "[  4000] #1 LISTING -> CONFIRMING: first\n"
                     "  > heartbeat /r/G1-0000000009\n"
                     "[  4000] #1 CONFIRMING -> QUEUEING: own node deleted\n"
                     "  > unwatch /r/G1-0000000009\n"
                     "  > create /r/G2-\n"
                     "  > list /r\n");
    script_event(s, ZKL_SE_EXPIRED);
    script_stop(s, 1, ZKL_ECANCELED);
    script_free(s);

    s = confirming();
    script_listed(s, "1:9");
    script_down(s);
    script_up(s, SCRIPT_SESSION);
    script_listed(s, "1:9");
    script_expect(s, "[  4000] #1 LISTING -> CONFIRMING: first\n"
                     "  > heartbeat /r/G1-0000000009\n"
                     "[  4000] session CONNECTED -> SUSPENDED: link lost\n"
                     "  session: link down\n"
                     "[  4000] session SUSPENDED -> CONNECTED: connected\n"
                     "  session: link up\n"
                     "[  4000] #1 CONFIRMING -> LISTING: link up\n"
                     "  > list /r\n"
                     "[  4000] #1 LISTING -> CONFIRMING: first\n"
                     "  > heartbeat /r/G1-0000000009\n");
    script_stop(s, 1, ZKL_ECANCELED);
    script_answer(s, ZKL_REQ_DELETE, ZKL_ANSWER_OK);
    script_free(s);
}

/* Goal: a heartbeat that could not be sent is sent later, by the timer alone. Method: no memory
 * for it while a contender needs it and nothing else is awaited. */
static void a_refused_heartbeat_is_sent_later(void **state)
{
    struct script *s = confirming();
    (void)state;
    s->refuse[ZKL_REQ_CHECK_ALL] = ZKL_ANSWER_NOMEM;
    script_listed(s, "1:9");
    s->refuse[ZKL_REQ_CHECK_ALL] = ZKL_ANSWER_OK;
    prove_until(s, 6000);
    assert_true(script_has(s, "granted"));
    script_unlock(s, 1);
    script_answer(s, ZKL_REQ_DELETE, ZKL_ANSWER_OK);
    script_free(s);
}

/* --- many holds ----------------------------------------------------------- */

/* Goal: more nodes than one heartbeat carries are proved in turn. Method: 130 holds; the last
 * nodes of the first beat and of the second are looked at, and a missing one in the second is
 * found. */
static void heartbeats_of_many_nodes_rotate(void **state)
{
    struct script *s = script_connected();
    (void)state;
    s->quiet = true;
    for (int i = 0; i < 130; i++)
        script_hold(s, "/r", 7);
    s->quiet = false;
    script_at(s, 750);
    script_answer(s, ZKL_REQ_CHECK_ALL, ZKL_ANSWER_OK);
    script_at(s, 1500);
    script_missing(s, 1);
    script_expect(
        s, "  > heartbeat /r/G1-0000000007 /r/G2-0000000007 /r/G3-0000000007 and 125 more\n"
           "  > heartbeat /r/G129-0000000007 /r/G130-0000000007 /r/G1-0000000007 and 125 more\n"
           "[  1500] #130 HOLDING -> LOSTHOLD: node deleted\n"
           "  #130 LOST (node deleted)\n"
           "  > heartbeat /r/G127-0000000007 /r/G128-0000000007 /r/G129-0000000007 and 125 more\n");
    s->quiet = true;
    script_close(s);
    for (int i = 1; i <= 130; i++)
        script_unlock(s, i);
    script_free(s);
}

/* Goal: more requests are awaited than the table has places, and each answer finds its own. Method:
 * 150 creates with their lists; the first create shares its place with a list. */
static void answers_of_many_requests_find_their_own(void **state)
{
    struct script *s = script_connected();
    (void)state;
    s->quiet = true;
    s->core.share_from = 150;
    for (int i = 0; i < 150; i++)
        script_lock(s, "/r");
    assert_true(s->core.pending_count > ZKL_PENDING_BUCKETS);
    for (int i = 0; i < 150; i++)
        script_created(s, i);
    for (int i = 1; i <= 150; i++)
        assert_int_equal(script_contender(s, i)->machine.czxid, 100 + i);
    script_close(s);
    script_free(s);
}

/* Goal: at close no caller waits on, and holders are notified once. Method: one holds, one waits,
 * one is parked on nothing, one unlocks, one is the janitor's. */
static void close_ends_waits_and_loses_holds(void **state)
{
    struct script *s = script_connected();
    (void)state;
    script_hold(s, "/a", 1);
    script_wait(s, "/b", 9, "7:8");
    script_hold(s, "/c", 1);
    script_unlock(s, 3);
    script_lock(s, "/d");
    script_stop(s, 4, ZKL_ECANCELED);
    script_lock(s, "/e");
    script_forget(s);
    script_close(s);
    script_lock(s, "/f");
    script_unlock(s, 1);
    script_expect(s, "[     0] #1 HOLDING -> LOSTHOLD: closed\n"
                     "  #1 LOST (closed)\n"
                     "[     0] #3 RELEASING -> LEAVING: the client was closed\n"
                     "  #3 released EUNCONFIRMED: the client was closed\n"
                     "[     0] #2 WAITING -> LEAVING: stopped\n"
                     "  #2 failed ECLOSED\n"
                     "  > unwatch /b/G7-0000000008\n"
                     "  > delete /b/G2-0000000009\n"
                     "[     0] #5 QUEUEING -> LEAVING: stopped\n"
                     "  #5 failed ECLOSED\n"
                     "[     0] session CONNECTED -> CLOSED: closed\n"
                     "  session: link down, closed\n"
                     "[     0] #2 LEAVING -> ENDED: expired\n"
                     "  #2 ended\n"
                     "[     0] #3 LEAVING -> ENDED: expired\n"
                     "  #3 ended\n"
                     "[     0] #4 LEAVING -> ENDED: expired\n"
                     "  #4 ended\n"
                     "[     0] #5 LEAVING -> ENDED: expired\n"
                     "  #5 ended\n"
                     "[     0] #6 NEW -> PARKED: started\n"
                     "[     0] #6 PARKED -> ENDED: stopped\n"
                     "  #6 failed ECLOSED\n"
                     "  #6 ended\n"
                     "[     0] #1 LOSTHOLD -> ENDED: lost hold given back\n"
                     "  #1 released ELOST\n"
                     "  #1 ended\n");
    script_free(s);
}

/* Goal: a refused credential ends everything with its own code. Method: one holds, one waits,
 * one comes later. */
static void a_refused_credential_ends_waits_and_holds(void **state)
{
    struct script *s = script_connected();
    (void)state;
    script_hold(s, "/a", 1);
    script_wait(s, "/b", 9, "7:8");
    script_forget(s);
    script_event(s, ZKL_SE_AUTH_FAILED);
    script_lock(s, "/c");
    script_unlock(s, 1);
    script_close(s);
    script_expect(s, "[     0] session CONNECTED -> FAILED: credential refused\n"
                     "[     0] #1 HOLDING -> LOSTHOLD: expired\n"
                     "  #1 LOST (expired)\n"
                     "[     0] #2 WAITING -> PARKED: expired\n"
                     "[     0] #2 PARKED -> ENDED: stopped\n"
                     "  #2 failed EAUTH\n"
                     "  #2 ended\n"
                     "  session: link down, failed\n"
                     "[     0] #3 NEW -> PARKED: started\n"
                     "[     0] #3 PARKED -> ENDED: stopped\n"
                     "  #3 failed EAUTH\n"
                     "  #3 ended\n"
                     "[     0] #1 LOSTHOLD -> ENDED: lost hold given back\n"
                     "  #1 released ELOST\n"
                     "  #1 ended\n"
                     "[     0] session FAILED -> CLOSED: closed\n"
                     "  session: closed\n");
    script_free(s);
}

/* --- a server of another make ----------------------------------------------- */

static struct script *script_elsewhere(void)
{
    struct script *s = script_new();
    s->unprovable = true;
    script_up(s, SCRIPT_SESSION);
    script_forget(s);
    return s;
}

/* Goal: where it is not known how a server ends sessions, a lock is granted as ever, but nothing of
 * it is proved, and its owner hears so at once; no more is asked than elsewhere, a broken link is no
 * news, and the loss comes once. Method: three seconds of answered heartbeats, eight a timeout. */
static void a_hold_that_cannot_be_proved_stays_suspect(void **state)
{
    struct script *s = script_elsewhere();
    int heartbeats = 0;
    (void)state;
    script_hold(s, "/r", 7);
    script_expect(s, "[     0] #1 NEW -> QUEUEING: started\n"
                     "  > create /r/G1-\n"
                     "  > list /r\n"
                     "[     0] #1 QUEUEING -> HOLDING: first\n"
                     "  #1 granted 101\n"
                     "  #1 SUSPECT (window)\n");
    for (int ms = 10; ms <= 3000; ms += 10) {
        script_at(s, ms);
        assert_int_equal(zkl_session_proved_until(&s->core.session), 0);
        for (enum zkl_request_kind kind; script_next(s, &kind); heartbeats++)
            script_answer(s, ZKL_REQ_CHECK_ALL, ZKL_ANSWER_OK);
    }
    assert_in_range(heartbeats, 7, 9);
    script_forget(s);
    script_down(s);
    script_at(s, 3100);
    script_up(s, SCRIPT_SESSION);
    script_answer(s, ZKL_REQ_CHECK_ALL, ZKL_ANSWER_OK);
    script_event(s, ZKL_SE_EXPIRED);
    script_unlock(s, 1);
    script_expect(s, "[  3000] session CONNECTED -> SUSPENDED: link lost\n"
                     "  session: link down\n"
                     "[  3100] session SUSPENDED -> CONNECTED: connected\n"
                     "  session: link up\n"
                     "  > heartbeat /r/G1-0000000007\n"
                     "[  3100] session CONNECTED -> STARTING: expired\n"
                     "[  3100] #1 HOLDING -> LOSTHOLD: expired\n"
                     "  #1 LOST (expired)\n"
                     "  session: link down, expired, replace handle\n"
                     "[  3100] #1 LOSTHOLD -> ENDED: lost hold given back\n"
                     "  #1 released ELOST\n"
                     "  #1 ended\n");
    script_free(s);
}

/* Goal: a node that may not be read, and then may again, proves no more than before. Method: the check of the only hold
 * is denied once, and then is not. */
static void a_node_that_can_be_read_again_proves_nothing(void **state)
{
    struct script *s = script_elsewhere();
    (void)state;
    script_hold(s, "/r", 7);
    script_at(s, 375);
    script_forget(s);
    script_reply(s, ZKL_REQ_CHECK_ALL,
                 (struct zkl_reply){.answer = ZKL_ANSWER_NOAUTH, .failed_check = 0});
    script_at(s, 750);
    script_answer(s, ZKL_REQ_CHECK_ALL, ZKL_ANSWER_OK);
    script_at(s, 1125);
    script_answer(s, ZKL_REQ_CHECK_ALL, ZKL_ANSWER_OK);
    script_expect(s, "  #1 SUSPECT (unchecked)\n"
                     "  > heartbeat /r/G1-0000000007\n"
                     "  > heartbeat /r/G1-0000000007\n");
    script_unlock(s, 1);
    script_answer(s, ZKL_REQ_DELETE, ZKL_ANSWER_OK);
    script_free(s);
}

/* Goal: what no server confirms is in doubt, as no window shows that the hold was whole; the answer
 * to the delete shows it here as well. */
static void an_unlock_that_nothing_proves_is_in_doubt(void **state)
{
    struct script *s = script_elsewhere();
    (void)state;
    script_hold(s, "/r", 7);
    script_unlock(s, 1);
    script_forget(s);
    script_answer(s, ZKL_REQ_DELETE, ZKL_ANSWER_OK);
    script_expect(s, "[     0] #1 RELEASING -> ENDED: deleted\n"
                     "  #1 released OK\n"
                     "  #1 ended\n");
    script_hold(s, "/r", 8);
    script_down(s);
    script_forget(s);
    script_unlock(s, 2);
    script_up(s, SCRIPT_SESSION);
    script_answer(s, ZKL_REQ_DELETE, ZKL_ANSWER_OK);
    script_expect(s, "[     0] #2 HOLDING -> LEAVING: unlocked without a link\n"
                     "  #2 released EDOUBT: the link is down\n"
                     "[     0] session SUSPENDED -> CONNECTED: connected\n"
                     "  session: link up\n"
                     "  > delete /r/G2-0000000008\n"
                     "[     0] #2 LEAVING -> ENDED: deleted\n"
                     "  #2 ended\n");
    script_free(s);
}

/* Goal: a lease ends a hold that nothing proves. */
static void a_lease_ends_without_a_proof(void **state)
{
    struct script *s = script_elsewhere();
    (void)state;
    script_acquire(s, (struct zkl_lock_request){.path = script_path(s, "/r"),
                                                .lease_ns = 200 * INT64_C(1000000)});
    script_created(s, 7);
    script_listed(s, "1:7");
    script_forget(s);
    script_at(s, 300);
    script_answer(s, ZKL_REQ_DELETE, ZKL_ANSWER_OK);
    script_unlock(s, 1);
    script_expect(s, "[   200] #1 HOLDING -> LOSTHOLD: lease ended\n"
                     "  #1 LOST (lease)\n"
                     "  > delete /r/G1-0000000007\n"
                     "[   300] #1 LOSTHOLD -> ENDED: lost hold given back\n"
                     "  #1 released ELOST\n"
                     "  #1 ended\n");
    script_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(after_a_broken_unlock_the_delete_goes_before_any_create),
        cmocka_unit_test(unlock_without_a_link_is_unconfirmed_at_once),
        cmocka_unit_test(unlock_waits_at_most_until_the_window_ends),
        cmocka_unit_test(unlock_of_a_deleted_node_is_lost),
        cmocka_unit_test(unlock_in_an_expired_session_is_lost),
        cmocka_unit_test(nothing_is_sent_between_two_sessions),
        cmocka_unit_test(an_owner_that_exits_leaves_its_node_to_the_janitor),
        cmocka_unit_test(a_hold_is_suspect_at_the_window_s_end_until_it_is_proved),
        cmocka_unit_test(heartbeats_run_while_something_is_held),
        cmocka_unit_test(an_expired_hold_is_lost_exactly_once),
        cmocka_unit_test(a_heartbeat_tells_whose_node_is_gone),
        cmocka_unit_test(a_watched_hold_hears_of_its_deletion_at_once),
        cmocka_unit_test(a_waiter_that_was_asked_hears_of_it_with_the_grant),
        cmocka_unit_test(a_lease_ends_in_time),
        cmocka_unit_test(a_grant_with_an_empty_window_waits_for_a_heartbeat),
        cmocka_unit_test(a_try_does_not_wait_for_a_proof),
        cmocka_unit_test(an_unproved_first_is_never_granted),
        cmocka_unit_test(a_refused_heartbeat_is_sent_later),
        cmocka_unit_test(heartbeats_of_many_nodes_rotate),
        cmocka_unit_test(answers_of_many_requests_find_their_own),
        cmocka_unit_test(close_ends_waits_and_loses_holds),
        cmocka_unit_test(a_refused_credential_ends_waits_and_holds),
        cmocka_unit_test(a_hold_that_cannot_be_proved_stays_suspect),
        cmocka_unit_test(a_node_that_can_be_read_again_proves_nothing),
        cmocka_unit_test(an_unlock_that_nothing_proves_is_in_doubt),
        cmocka_unit_test(a_lease_ends_without_a_proof),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
