/* SPDX-License-Identifier: Apache-2.0
 * Contenders on a script: the requests and reports of a core, line by line, in virtual
 * milliseconds. */
#include <string.h>

#include <zklock/zklock.h>

#include "script.h"

/* --- getting and giving back ---------------------------------------------- */

/* Goal: a free lock costs three requests. Method: lock and unlock with no other contender. */
static void an_uncontended_lock_is_create_list_and_delete(void **state)
{
    struct script *s = script_connected();
    (void)state;
    script_lock(s, "/r");
    script_at(s, 2);
    script_created(s, 7);
    script_listed(s, "1:7");
    script_at(s, 10);
    script_unlock(s, 1);
    script_at(s, 12);
    script_answer(s, ZKL_REQ_DELETE, ZKL_ANSWER_OK);
    script_expect(s, "[     0] #1 NEW -> QUEUEING: started\n"
                     "  > create /r/G1-\n"
                     "  > list /r\n"
                     "[     2] #1 QUEUEING -> HOLDING: first\n"
                     "  #1 granted 101\n"
                     "[    10] #1 HOLDING -> RELEASING: unlocked\n"
                     "  > delete /r/G1-0000000007\n"
                     "[    12] #1 RELEASING -> ENDED: deleted\n"
                     "  #1 released OK\n"
                     "  #1 ended\n");
    script_free(s);
}

/* Goal: a waiter watches only its predecessor and lists once when that leaves. Method: two are
 * before it; the nearer one leaves, then the other. */
static void a_waiter_watches_its_predecessor_and_lists_until_it_is_next(void **state)
{
    struct script *s = script_connected();
    (void)state;
    script_lock(s, "/r");
    script_created(s, 9);
    script_listed(s, "1:9 5:7 6:8");
    script_answer(s, ZKL_REQ_WATCH, ZKL_ANSWER_OK);
    script_at(s, 100);
    script_fired(s, "/r/G6-0000000008", ZKL_FIRED_DELETED);
    script_listed(s, "1:9 5:7");
    script_answer(s, ZKL_REQ_WATCH, ZKL_ANSWER_OK);
    script_answer(s, ZKL_REQ_WATCH, ZKL_ANSWER_OK);
    script_at(s, 200);
    script_fired(s, "/r/G5-0000000007", ZKL_FIRED_DELETED);
    script_expect(s, "[     0] #1 NEW -> QUEUEING: started\n"
                     "  > create /r/G1-\n"
                     "  > list /r\n"
                     "[     0] #1 QUEUEING -> WAITING: behind others\n"
                     "  > watch /r/G6-0000000008\n"
                     "[   100] #1 WAITING -> LISTING: predecessor fired\n"
                     "  > list /r\n"
                     "[   100] #1 LISTING -> WAITING: next in line\n"
                     "  > watch /r/G5-0000000007\n"
                     "  > watch /r/G1-0000000009\n"
                     "[   200] #1 WAITING -> HOLDING: predecessor deleted\n"
                     "  #1 granted 101\n");
    script_unlock(s, 1);
    script_fired(s, "/r/G1-0000000009", ZKL_FIRED_DELETED);
    script_answer(s, ZKL_REQ_DELETE, ZKL_ANSWER_OK);
    script_free(s);
}

/* Goal: a predecessor that left before the watch was armed is not waited for: if only that was before us, the
 * answer that our own node is there is enough, which is under way; else the queue is looked at. Method: the watch
 * finds no node. Modes: F20, F21. */
static void a_predecessor_gone_before_the_watch_is_not_waited_for(void **state)
{
    (void)state;
    for (int others = 0; others < 2; others++) {
        struct script *s = script_connected();
        script_queue(s, "/r", 9, others ? "4:6 5:7" : "5:7");
        script_forget(s);
        script_answer(s, ZKL_REQ_WATCH, ZKL_ANSWER_NONODE);
        if (others) {
            script_expect(s, "[     0] #1 WAITING -> LISTING: predecessor gone before the watch\n"
                             "  > list /r\n");
            script_listed(s, "1:9");
        } else {
            script_expect(s, "");
            script_answer(s, ZKL_REQ_WATCH, ZKL_ANSWER_OK);
            script_expect(s, "[     0] #1 WAITING -> HOLDING: predecessor deleted\n"
                             "  #1 granted 101\n");
        }
        script_unlock(s, 1);
        script_close(s);
        script_free(s);
    }
}

/* Goal: a data change of the predecessor (a revocation) costs one look and no place. Method: its
 * watch fires without a deletion. */
static void a_changed_predecessor_is_watched_again(void **state)
{
    struct script *s = script_connected();
    (void)state;
    script_wait(s, "/r", 9, "5:7");
    script_forget(s);
    script_fired(s, "/r/G5-0000000007", ZKL_FIRED_OTHER);
    script_listed(s, "1:9 5:7");
    script_expect(s, "[     0] #1 WAITING -> LISTING: predecessor fired\n"
                     "  > list /r\n"
                     "[     0] #1 LISTING -> WAITING: next in line\n"
                     "  > watch /r/G5-0000000007\n");
    script_stop(s, 1, ZKL_ECANCELED);
    script_answer(s, ZKL_REQ_DELETE, ZKL_ANSWER_OK);
    script_free(s);
}

/* Goal: parents are made only when they are missing, the leaf first. Method: no part of /a/b/c
 * exists; the server knows containers. */
static void a_missing_root_is_made_leaf_first_then_parents(void **state)
{
    struct script *s = script_connected();
    (void)state;
    script_lock(s, "/a/b/c");
    script_answer(s, ZKL_REQ_CREATE, ZKL_ANSWER_NONODE);
    script_answer(s, ZKL_REQ_MAKE, ZKL_ANSWER_NONODE);
    script_answer(s, ZKL_REQ_MAKE, ZKL_ANSWER_NONODE);
    script_answer(s, ZKL_REQ_MAKE, ZKL_ANSWER_OK);
    script_answer(s, ZKL_REQ_MAKE, ZKL_ANSWER_EXISTS);
    script_answer(s, ZKL_REQ_MAKE, ZKL_ANSWER_OK);
    script_created(s, 0);
    script_listed(s, "2:0");
    script_expect(s, "[     0] #1 NEW -> QUEUEING: started\n"
                     "  > create /a/b/c/G1-\n"
                     "  > list /a/b/c\n"
                     "[     0] #1 QUEUEING -> MAKING: no root\n"
                     "  > make /a/b/c\n"
                     "  > make /a/b\n"
                     "  > make /a\n"
                     "  > make /a/b\n"
                     "  > make /a/b/c\n"
                     "[     0] #1 MAKING -> QUEUEING: root made\n"
                     "  > create /a/b/c/G2-\n"
                     "  > list /a/b/c\n"
                     "[     0] #1 QUEUEING -> HOLDING: first\n"
                     "  #1 granted 101\n");
    script_unlock(s, 1);
    script_answer(s, ZKL_REQ_DELETE, ZKL_ANSWER_OK);
    script_free(s);
}

/* Goal: where the server refuses containers, plain nodes do. Method: it answers so once. */
static void persistent_parents_where_containers_are_refused(void **state)
{
    struct script *s = script_connected();
    (void)state;
    script_lock(s, "/r");
    script_answer(s, ZKL_REQ_CREATE, ZKL_ANSWER_NONODE);
    script_answer(s, ZKL_REQ_MAKE, ZKL_ANSWER_UNIMPLEMENTED);
    script_answer(s, ZKL_REQ_MAKE, ZKL_ANSWER_OK);
    script_expect(s,
                  "[     0] #1 NEW -> QUEUEING: started\n"
                  "  > create /r/G1-\n"
                  "  > list /r\n"
                  "[     0] #1 QUEUEING -> MAKING: no root\n"
                  "  > make /r\n"
                  "[     0] session CONNECTED -> CONNECTED: the server does not know containers: "
                  "persistent parents instead\n"
                  "  > make /r (persistent)\n"
                  "[     0] #1 MAKING -> QUEUEING: root made\n"
                  "  > create /r/G2-\n"
                  "  > list /r\n");
    script_stop(s, 1, ZKL_ECANCELED);
    script_created(s, 0);
    script_answer(s, ZKL_REQ_DELETE, ZKL_ANSWER_OK);
    script_free(s);
}

/* Goal: a core works without an observer of its traces. */
static void a_core_works_without_a_trace(void **state)
{
    struct script *s = script_connected();
    (void)state;
    s->port.trace = NULL;
    script_hold(s, "/r", 7);
    script_unlock(s, 1);
    script_answer(s, ZKL_REQ_DELETE, ZKL_ANSWER_OK);
    script_expect(s, "  > create /r/G1-\n"
                     "  > list /r\n"
                     "  #1 granted 101\n"
                     "  > delete /r/G1-0000000007\n"
                     "  #1 released OK\n"
                     "  #1 ended\n");
    script_free(s);
}

/* Goal: a server that makes neither containers nor nodes of either kind is no reason to go on asking. */
static void a_server_that_makes_nothing_is_odd(void **state)
{
    struct script *s = script_connected();
    (void)state;
    script_lock(s, "/r");
    script_answer(s, ZKL_REQ_CREATE, ZKL_ANSWER_NONODE);
    script_answer(s, ZKL_REQ_MAKE, ZKL_ANSWER_UNIMPLEMENTED);
    script_answer(s, ZKL_REQ_MAKE, ZKL_ANSWER_UNIMPLEMENTED);
    assert_true(script_has(s, "  > make /r (persistent) (plain)\n"));
    script_forget(s);
    script_answer(s, ZKL_REQ_MAKE, ZKL_ANSWER_UNIMPLEMENTED);
    script_expect(s, "[     0] #1 MAKING -> ENDED: odd answer\n"
                     "  #1 failed EUNIMPLEMENTED: making the path\n"
                     "  #1 ended\n");
    script_free(s);
}

/* Goal: a missing chroot and a missing root have different codes. Method: not even the topmost node
 * can be made. */
static void a_missing_chroot_has_its_own_code(void **state)
{
    struct script *s = script_connected();
    (void)state;
    script_lock(s, "/r");
    script_answer(s, ZKL_REQ_CREATE, ZKL_ANSWER_NONODE);
    script_answer(s, ZKL_REQ_MAKE, ZKL_ANSWER_NONODE);
    script_expect(s, "[     0] #1 NEW -> QUEUEING: started\n"
                     "  > create /r/G1-\n"
                     "  > list /r\n"
                     "[     0] #1 QUEUEING -> MAKING: no root\n"
                     "  > make /r\n"
                     "[     0] #1 MAKING -> ENDED: no chroot\n"
                     "  #1 failed ENOCHROOT\n"
                     "  #1 ended\n");
    script_free(s);
}

/* Goal: a try on a busy lock costs one read and no write. Method: another contender is there; then
 * the same behind a sync. */
static void a_busy_trylock_is_one_list(void **state)
{
    struct script *s = script_connected();
    (void)state;
    script_try(s, "/r", false);
    script_listed(s, "5:7");
    script_try(s, "/r", true);
    script_answer(s, ZKL_REQ_SYNC, ZKL_ANSWER_OK);
    script_listed(s, "note 5:7");
    script_expect(s, "[     0] #1 NEW -> LOOKING: started\n"
                     "  > list /r\n"
                     "[     0] #1 LOOKING -> ENDED: somebody is there\n"
                     "  #1 failed EBUSY\n"
                     "  #1 ended\n"
                     "[     0] #2 NEW -> LOOKING: started\n"
                     "  > sync /r\n"
                     "  > list /r\n"
                     "[     0] #2 LOOKING -> ENDED: somebody is there\n"
                     "  #2 failed EBUSY\n"
                     "  #2 ended\n");
    script_free(s);
}

/* Goal: a try on a free lock gets it, and one that lost the race leaves nothing. Method: two tries
 * see no contender; a stranger's node comes between for the second. */
static void a_trylock_that_lost_the_race_leaves_nothing(void **state)
{
    struct script *s = script_connected();
    (void)state;
    script_try(s, "/r", false);
    script_answer(s, ZKL_REQ_LIST, ZKL_ANSWER_NONODE);
    script_created(s, 7);
    script_listed(s, "1:7 note");
    script_unlock(s, 1);
    script_answer(s, ZKL_REQ_DELETE, ZKL_ANSWER_OK);
    script_try(s, "/r", false);
    script_listed(s, "note");
    script_created(s, 9);
    script_listed(s, "2:9 5:8");
    script_answer(s, ZKL_REQ_DELETE, ZKL_ANSWER_OK);
    script_expect(s, "[     0] #1 NEW -> LOOKING: started\n"
                     "  > list /r\n"
                     "[     0] #1 LOOKING -> QUEUEING: nobody is there\n"
                     "  > create /r/G1-\n"
                     "  > list /r\n"
                     "[     0] #1 QUEUEING -> HOLDING: first\n"
                     "  #1 granted 101\n"
                     "[     0] #1 HOLDING -> RELEASING: unlocked\n"
                     "  > delete /r/G1-0000000007\n"
                     "[     0] #1 RELEASING -> ENDED: deleted\n"
                     "  #1 released OK\n"
                     "  #1 ended\n"
                     "[     0] #2 NEW -> LOOKING: started\n"
                     "  > list /r\n"
                     "[     0] #2 LOOKING -> QUEUEING: nobody is there\n"
                     "  > create /r/G2-\n"
                     "  > list /r\n"
                     "[     0] #2 QUEUEING -> LEAVING: somebody was faster\n"
                     "  #2 failed EBUSY\n"
                     "  > delete /r/G2-0000000009\n"
                     "[     0] #2 LEAVING -> ENDED: deleted\n"
                     "  #2 ended\n");
    script_free(s);
}

/* --- denied --------------------------------------------------------------- */

/* Goal: each missing permission ends the lock request with EACCES and names what is missing.
 * Method: NOAUTH as the answer to each request in turn. */
static void a_denied_request_fails_with_the_missing_permission(void **state)
{
    struct script *s = script_connected();
    (void)state;
    script_lock(s, "/r");
    script_answer(s, ZKL_REQ_CREATE, ZKL_ANSWER_NOAUTH);
    script_lock(s, "/r");
    script_created(s, 1);
    script_answer(s, ZKL_REQ_LIST, ZKL_ANSWER_NOAUTH);
    script_answer(s, ZKL_REQ_DELETE, ZKL_ANSWER_OK);
    script_lock(s, "/r");
    script_answer(s, ZKL_REQ_CREATE, ZKL_ANSWER_NONODE);
    script_answer(s, ZKL_REQ_MAKE, ZKL_ANSWER_NOAUTH);
    script_try(s, "/r", false);
    script_answer(s, ZKL_REQ_LIST, ZKL_ANSWER_NOAUTH);
    script_lock(s, "/r");
    script_created(s, 9);
    script_listed(s, "4:9 9:7");
    script_answer(s, ZKL_REQ_WATCH, ZKL_ANSWER_NOAUTH);
    script_answer(s, ZKL_REQ_WATCH, ZKL_ANSWER_OK);
    script_answer(s, ZKL_REQ_DELETE, ZKL_ANSWER_OK);
    script_expect(s, "[     0] #1 NEW -> QUEUEING: started\n"
                     "  > create /r/G1-\n"
                     "  > list /r\n"
                     "[     0] #1 QUEUEING -> ENDED: denied\n"
                     "  #1 failed EACCES: CREATE\n"
                     "  #1 ended\n"
                     "[     0] #2 NEW -> QUEUEING: started\n"
                     "  > create /r/G2-\n"
                     "  > list /r\n"
                     "[     0] #2 QUEUEING -> LEAVING: denied\n"
                     "  #2 failed EACCES: READ\n"
                     "  > delete /r/G2-0000000001\n"
                     "[     0] #2 LEAVING -> ENDED: deleted\n"
                     "  #2 ended\n"
                     "[     0] #3 NEW -> QUEUEING: started\n"
                     "  > create /r/G3-\n"
                     "  > list /r\n"
                     "[     0] #3 QUEUEING -> MAKING: no root\n"
                     "  > make /r\n"
                     "[     0] #3 MAKING -> ENDED: denied\n"
                     "  #3 failed EACCES: CREATE on a parent\n"
                     "  #3 ended\n"
                     "[     0] #4 NEW -> LOOKING: started\n"
                     "  > list /r\n"
                     "[     0] #4 LOOKING -> ENDED: denied\n"
                     "  #4 failed EACCES: READ\n"
                     "  #4 ended\n"
                     "[     0] #5 NEW -> QUEUEING: started\n"
                     "  > create /r/G4-\n"
                     "  > list /r\n"
                     "[     0] #5 QUEUEING -> WAITING: next in line\n"
                     "  > watch /r/G9-0000000007\n"
                     "  > watch /r/G4-0000000009\n"
                     "[     0] #5 WAITING -> LEAVING: denied\n"
                     "  #5 failed EACCES: READ on the predecessor's node\n"
                     "  > delete /r/G4-0000000009\n"
                     "[     0] #5 LEAVING -> ENDED: deleted\n"
                     "  > unwatch /r/G4-0000000009\n"
                     "  #5 ended\n");
    script_free(s);
}

/* Goal: unlock where the ACL has CREATE but no DELETE says so and does not hang. Method: NOAUTH
 * to the delete. */
static void a_denied_delete_is_told_by_unlock(void **state)
{
    struct script *s = script_connected();
    (void)state;
    script_hold(s, "/r", 7);
    script_forget(s);
    script_unlock(s, 1);
    script_answer(s, ZKL_REQ_DELETE, ZKL_ANSWER_NOAUTH);
    script_expect(s, "[     0] #1 HOLDING -> RELEASING: unlocked\n"
                     "  > delete /r/G1-0000000007\n"
                     "[     0] #1 RELEASING -> ENDED: delete denied\n"
                     "  #1 released EACCES: DELETE is denied\n"
                     "  #1 ended\n");
    script_free(s);
}

/* --- a create without an answer ------------------------------------------- */

static struct script *create_unanswered(void)
{
    struct script *s = script_connected();
    script_lock(s, "/r");
    script_at(s, 50);
    script_down(s);
    script_at(s, 80);
    script_forget(s);
    return s;
}

/* Goal: a node whose create was never answered is adopted, not made twice. Method: after the
 * link is back a list behind a barrier shows our GUID, its Stat our session; the grant is for the time when the
 * new link counts as a proof. Modes: F1. */
static void an_unanswered_create_is_found_and_adopted(void **state)
{
    struct script *s = create_unanswered();
    (void)state;
    script_up(s, SCRIPT_SESSION);
    script_answer(s, ZKL_REQ_CHECK_ALL, ZKL_ANSWER_OK);
    script_listed(s, "1:7");
    script_statted(s, SCRIPT_SESSION, 333);
    script_listed(s, "1:7");
    script_expect(s, "[    80] session SUSPENDED -> CONNECTED: connected\n"
                     "  session: link up\n"
                     "  > heartbeat /r\n"
                     "  > list /r\n"
                     "  > stat /r/G1-0000000007\n"
                     "[    80] #1 RECOVERING -> LISTING: adopted\n"
                     "  > list /r\n"
                     "[    80] #1 LISTING -> CONFIRMING: first\n"
                     "  > heartbeat /r/G1-0000000007\n");
    script_answer(s, ZKL_REQ_CHECK_ALL, ZKL_ANSWER_OK);
    script_at(s, 300);
    script_answer(s, ZKL_REQ_CHECK_ALL, ZKL_ANSWER_OK);
    script_expect(s, "  > heartbeat /r/G1-0000000007\n"
                     "[   300] #1 CONFIRMING -> HOLDING: proved\n"
                     "  #1 granted 333\n");
    script_unlock(s, 1);
    script_answer(s, ZKL_REQ_DELETE, ZKL_ANSWER_OK);
    script_free(s);
}

/* Goal: a node of an old session is never granted. Method: the Stat shows another session.
 * Modes: F4, F5. */
static void a_node_of_another_session_is_not_adopted(void **state)
{
    struct script *s = create_unanswered();
    (void)state;
    script_up(s, SCRIPT_SESSION);
    script_answer(s, ZKL_REQ_CHECK_ALL, ZKL_ANSWER_OK);
    script_listed(s, "1:7");
    script_statted(s, SCRIPT_SESSION + 7, 333);
    script_expect(s, "[    80] session SUSPENDED -> CONNECTED: connected\n"
                     "  session: link up\n"
                     "  > heartbeat /r\n"
                     "  > list /r\n"
                     "  > stat /r/G1-0000000007\n"
                     "[    80] #1 RECOVERING -> QUEUEING: node of an old session\n"
                     "  > create /r/G2-\n"
                     "  > list /r\n");
    script_stop(s, 1, ZKL_ETIMEDOUT);
    script_created(s, 8);
    script_answer(s, ZKL_REQ_DELETE, ZKL_ANSWER_OK);
    script_free(s);
}

/* Goal: a node that was never created is created once, under a new GUID. Method: the list shows no
 * GUID of ours; then, in a second run, the Stat does not find the node. */
static void a_create_that_was_not_carried_out_is_repeated(void **state)
{
    struct script *s = create_unanswered();
    (void)state;
    script_up(s, SCRIPT_SESSION);
    script_answer(s, ZKL_REQ_CHECK_ALL, ZKL_ANSWER_OK);
    script_listed(s, "5:7");
    script_at(s, 90);
    script_down(s);
    script_up(s, SCRIPT_SESSION);
    script_answer(s, ZKL_REQ_CHECK_ALL, ZKL_ANSWER_OK);
    script_listed(s, "5:7 2:8");
    script_answer(s, ZKL_REQ_STAT, ZKL_ANSWER_NONODE);
    script_expect(s, "[    80] session SUSPENDED -> CONNECTED: connected\n"
                     "  session: link up\n"
                     "  > heartbeat /r\n"
                     "  > list /r\n"
                     "[    80] #1 RECOVERING -> QUEUEING: create was not carried out\n"
                     "  > create /r/G2-\n"
                     "  > list /r\n"
                     "[    90] session CONNECTED -> SUSPENDED: link lost\n"
                     "  session: link down\n"
                     "[    90] #1 QUEUEING -> RECOVERING: create unanswered\n"
                     "[    90] session SUSPENDED -> CONNECTED: connected\n"
                     "  session: link up\n"
                     "  > heartbeat /r\n"
                     "  > list /r\n"
                     "  > stat /r/G2-0000000008\n"
                     "[    90] #1 RECOVERING -> QUEUEING: node is gone\n"
                     "  > create /r/G3-\n"
                     "  > list /r\n");
    script_event(s, ZKL_SE_EXPIRED);
    script_stop(s, 1, ZKL_ETIMEDOUT);
    script_free(s);
}

/* Goal: a second loss of the link in the middle of the recovery starts it over. Method: the Stat
 * and then the barrier and the list stay unanswered. */
static void recovery_starts_over_with_each_link(void **state)
{
    struct script *s = create_unanswered();
    (void)state;
    script_up(s, SCRIPT_SESSION);
    script_answer(s, ZKL_REQ_CHECK_ALL, ZKL_ANSWER_OK);
    script_listed(s, "1:7");
    script_down(s);
    script_up(s, SCRIPT_SESSION);
    script_down(s);
    script_up(s, SCRIPT_SESSION);
    script_expect(s, "[    80] session SUSPENDED -> CONNECTED: connected\n"
                     "  session: link up\n"
                     "  > heartbeat /r\n"
                     "  > list /r\n"
                     "  > stat /r/G1-0000000007\n"
                     "[    80] session CONNECTED -> SUSPENDED: link lost\n"
                     "  session: link down\n"
                     "[    80] session SUSPENDED -> CONNECTED: connected\n"
                     "  session: link up\n"
                     "  > heartbeat /r\n"
                     "  > list /r\n"
                     "[    80] session CONNECTED -> SUSPENDED: link lost\n"
                     "  session: link down\n"
                     "[    80] session SUSPENDED -> CONNECTED: connected\n"
                     "  session: link up\n"
                     "  > heartbeat /r\n"
                     "  > list /r\n");
    script_event(s, ZKL_SE_EXPIRED);
    script_stop(s, 1, ZKL_ETIMEDOUT);
    script_free(s);
}

/* Goal: a list that no barrier vouches for decides nothing: the server may lag behind the create.
 * Method: the barrier can't be sent for want of memory, the list can, and does not show the node.
 * Modes: F58. */
static void a_list_without_its_barrier_does_not_prove_the_node_missing(void **state)
{
    struct script *s = create_unanswered();
    (void)state;
    s->refuse[ZKL_REQ_CHECK_ALL] = ZKL_ANSWER_NOMEM;
    script_up(s, SCRIPT_SESSION);
    s->refuse[ZKL_REQ_CHECK_ALL] = ZKL_ANSWER_OK;
    if (script_contender(s, 1)->machine.state == ZKL_CONTENDER_RECOVERING)
        script_listed(s, "");
    assert_false(script_has(s, "create was not carried out"));
    script_event(s, ZKL_SE_EXPIRED);
    if (s->live[0])
        script_stop(s, 1, ZKL_ETIMEDOUT);
    script_free(s);
}

/* --- stopping ------------------------------------------------------------- */

/* Goal: a lock request that ends while its create is out leaves nothing. Method: cancel, then the
 * create's answer comes. Modes: F3. */
static void a_cancel_with_the_create_out_deletes_what_it_made(void **state)
{
    struct script *s = script_connected();
    (void)state;
    script_lock(s, "/r");
    script_stop(s, 1, ZKL_ECANCELED);
    script_created(s, 7);
    script_answer(s, ZKL_REQ_DELETE, ZKL_ANSWER_OK);
    script_lock(s, "/r");
    script_stop(s, 2, ZKL_ETIMEDOUT);
    script_answer(s, ZKL_REQ_CREATE, ZKL_ANSWER_NONODE);
    script_expect(s, "[     0] #1 NEW -> QUEUEING: started\n"
                     "  > create /r/G1-\n"
                     "  > list /r\n"
                     "[     0] #1 QUEUEING -> LEAVING: stopped\n"
                     "  #1 failed ECANCELED\n"
                     "  > delete /r/G1-0000000007\n"
                     "[     0] #1 LEAVING -> ENDED: deleted\n"
                     "  #1 ended\n"
                     "[     0] #2 NEW -> QUEUEING: started\n"
                     "  > create /r/G2-\n"
                     "  > list /r\n"
                     "[     0] #2 QUEUEING -> LEAVING: stopped\n"
                     "  #2 failed ETIMEDOUT\n"
                     "[     0] #2 LEAVING -> ENDED: never created\n"
                     "  #2 ended\n");
    script_free(s);
}

/* Goal: a timeout while it is unknown whether the node exists leaves nothing. Method: after the
 * link is back the janitor lists behind a barrier and deletes what it finds. Modes: F2. */
static void a_timeout_with_unknown_outcome_looks_and_deletes(void **state)
{
    struct script *s = create_unanswered();
    (void)state;
    script_stop(s, 1, ZKL_ETIMEDOUT);
    script_at(s, 100);
    script_up(s, SCRIPT_SESSION);
    script_answer(s, ZKL_REQ_CHECK_ALL, ZKL_ANSWER_OK);
    script_listed(s, "1:7");
    script_down(s);
    script_up(s, SCRIPT_SESSION);
    script_answer(s, ZKL_REQ_DELETE, ZKL_ANSWER_OK);
    script_expect(s, "[    80] #1 RECOVERING -> LEAVING: stopped\n"
                     "  #1 failed ETIMEDOUT\n"
                     "[   100] session SUSPENDED -> CONNECTED: connected\n"
                     "  session: link up\n"
                     "  > heartbeat /r\n"
                     "  > list /r\n"
                     "  > delete /r/G1-0000000007\n"
                     "[   100] session CONNECTED -> SUSPENDED: link lost\n"
                     "  session: link down\n"
                     "[   100] session SUSPENDED -> CONNECTED: connected\n"
                     "  session: link up\n"
                     "  > delete /r/G1-0000000007\n"
                     "[   100] #1 LEAVING -> ENDED: deleted\n"
                     "  #1 ended\n");
    script_free(s);
}

/* Goal: the janitor ends when there is nothing to clean up. Method: the list shows no GUID of
 * ours. */
static void a_timeout_with_unknown_outcome_may_find_nothing(void **state)
{
    struct script *s = create_unanswered();
    (void)state;
    script_up(s, SCRIPT_SESSION);
    script_stop(s, 1, ZKL_ETIMEDOUT);
    script_answer(s, ZKL_REQ_CHECK_ALL, ZKL_ANSWER_OK);
    script_listed(s, "5:7");
    script_expect(s, "[    80] session SUSPENDED -> CONNECTED: connected\n"
                     "  session: link up\n"
                     "  > heartbeat /r\n"
                     "  > list /r\n"
                     "[    80] #1 RECOVERING -> LEAVING: stopped\n"
                     "  #1 failed ETIMEDOUT\n"
                     "[    80] #1 LEAVING -> ENDED: nothing was left\n"
                     "  #1 ended\n");
    script_free(s);
}

/* Goal: a list that went over another link than the create proves nothing, as the server there may lag.
 * Method: a lock request is given up, the create is lost, and the link comes. Modes: F1. */
static void a_list_over_the_next_link_does_not_prove_the_node_missing(void **state)
{
    struct script *s = script_connected();
    (void)state;
    script_lock(s, "/r");
    script_stop(s, 1, ZKL_ETIMEDOUT);
    script_answer(s, ZKL_REQ_CREATE, ZKL_ANSWER_LINK);
    script_down(s);
    script_up(s, SCRIPT_SESSION); /* the first list is not awaited any more */
    script_answer(s, ZKL_REQ_CHECK_ALL, ZKL_ANSWER_OK);
    script_listed(s, "1:9 5:7");
    assert_true(script_has(s, "> delete /r/G1-0000000009\n"));
    script_answer(s, ZKL_REQ_DELETE, ZKL_ANSWER_OK);
    script_free(s);
}

/* Goal: a waiter that gives up takes its node and its watch along. Method: cancel while waiting.
 * Modes: F19. */
static void a_canceled_waiter_removes_node_and_watch(void **state)
{
    struct script *s = script_connected();
    (void)state;
    script_wait(s, "/r", 9, "5:7");
    script_forget(s);
    script_stop(s, 1, ZKL_ECANCELED);
    script_answer(s, ZKL_REQ_UNWATCH, ZKL_ANSWER_OK);
    script_fired(s, "/r/G1-0000000009", ZKL_FIRED_DELETED);
    script_answer(s, ZKL_REQ_DELETE, ZKL_ANSWER_OK);
    assert_int_equal(s->core.watch_count, 0);
    script_expect(s, "[     0] #1 WAITING -> LEAVING: stopped\n"
                     "  #1 failed ECANCELED\n"
                     "  > unwatch /r/G5-0000000007\n"
                     "  > delete /r/G1-0000000009\n"
                     "[     0] #1 LEAVING -> ENDED: deleted\n"
                     "  #1 ended\n");
    script_free(s);
}

/* Goal: a lock request can be ended in every other state too, immediately and without a trace.
 * Method: parked, looking, making, listing. */
static void a_lock_request_can_be_ended_in_every_state(void **state)
{
    struct script *s = script_new();
    (void)state;
    script_lock(s, "/r");
    script_stop(s, 1, ZKL_ETIMEDOUT); /* parked */
    script_up(s, SCRIPT_SESSION);
    script_try(s, "/r", false);
    script_stop(s, 2, ZKL_ETIMEDOUT); /* looking */
    script_lock(s, "/r");
    script_answer(s, ZKL_REQ_CREATE, ZKL_ANSWER_NONODE);
    script_stop(s, 3, ZKL_ETIMEDOUT); /* making */
    script_wait(s, "/r", 9, "5:7 6:8");
    script_fired(s, "/r/G6-0000000008", ZKL_FIRED_DELETED);
    script_stop(s, 4, ZKL_ETIMEDOUT); /* listing */
    script_answer(s, ZKL_REQ_DELETE, ZKL_ANSWER_OK);
    script_expect(s, "[     0] #1 NEW -> PARKED: started\n"
                     "[     0] #1 PARKED -> ENDED: stopped\n"
                     "  #1 failed ETIMEDOUT\n"
                     "  #1 ended\n"
                     "[     0] session STARTING -> CONNECTED: connected\n"
                     "  session: link up\n"
                     "[     0] #2 NEW -> LOOKING: started\n"
                     "  > list /r\n"
                     "[     0] #2 LOOKING -> ENDED: stopped\n"
                     "  #2 failed ETIMEDOUT\n"
                     "  #2 ended\n"
                     "[     0] #3 NEW -> QUEUEING: started\n"
                     "  > create /r/G1-\n"
                     "  > list /r\n"
                     "[     0] #3 QUEUEING -> MAKING: no root\n"
                     "  > make /r\n"
                     "[     0] #3 MAKING -> ENDED: stopped\n"
                     "  #3 failed ETIMEDOUT\n"
                     "  #3 ended\n"
                     "[     0] #4 NEW -> QUEUEING: started\n"
                     "  > create /r/G2-\n"
                     "  > list /r\n"
                     "[     0] #4 QUEUEING -> WAITING: behind others\n"
                     "  > watch /r/G6-0000000008\n"
                     "[     0] #4 WAITING -> LISTING: predecessor fired\n"
                     "  > list /r\n"
                     "[     0] #4 LISTING -> LEAVING: stopped\n"
                     "  #4 failed ETIMEDOUT\n"
                     "  > delete /r/G2-0000000009\n"
                     "[     0] #4 LEAVING -> ENDED: deleted\n"
                     "  #4 ended\n");
    script_free(s);
}

/* --- waiting -------------------------------------------------------------- */

/* Goal: no contender is granted on a node that does not exist any more. Method: a stranger deletes
 * the waiter's own node, then its predecessor's. */
static void a_waiter_whose_node_was_deleted_queues_again(void **state)
{
    struct script *s = script_connected();
    (void)state;
    script_wait(s, "/r", 9, "5:7");
    script_forget(s);
    script_fired(s, "/r/G1-0000000009", ZKL_FIRED_DELETED);
    script_answer(s, ZKL_REQ_UNWATCH, ZKL_ANSWER_OK);
    script_created(s, 10);
    script_listed(s, "2:10 6:8");
    script_expect(s, "[     0] #1 WAITING -> QUEUEING: own node deleted\n"
                     "  > unwatch /r/G5-0000000007\n"
                     "  > create /r/G2-\n"
                     "  > list /r\n"
                     "[     0] #1 QUEUEING -> WAITING: next in line\n"
                     "  > watch /r/G6-0000000008\n"
                     "  > watch /r/G2-0000000010\n");
    script_stop(s, 1, ZKL_ECANCELED);
    script_answer(s, ZKL_REQ_DELETE, ZKL_ANSWER_OK);
    script_answer(s, ZKL_REQ_WATCH, ZKL_ANSWER_OK);
    script_free(s);
}

/* Goal: the same without a link: it queues again with the next one. */
static void a_waiter_hears_of_its_deletion_without_a_link(void **state)
{
    struct script *s = script_connected();
    (void)state;
    script_wait(s, "/r", 9, "5:7");
    script_forget(s);
    script_down(s);
    script_fired(s, "/r/G1-0000000009", ZKL_FIRED_DELETED);
    script_up(s, SCRIPT_SESSION);
    script_answer(s, ZKL_REQ_UNWATCH, ZKL_ANSWER_OK);
    script_expect(s, "[     0] session CONNECTED -> SUSPENDED: link lost\n"
                     "  session: link down\n"
                     "[     0] #1 WAITING -> PARKED: own node deleted\n"
                     "[     0] session SUSPENDED -> CONNECTED: connected\n"
                     "  session: link up\n"
                     "  > unwatch /r/G5-0000000007\n"
                     "[     0] #1 PARKED -> QUEUEING: link up\n"
                     "  > create /r/G2-\n"
                     "  > list /r\n");
    script_stop(s, 1, ZKL_ECANCELED);
    script_created(s, 10);
    script_answer(s, ZKL_REQ_DELETE, ZKL_ANSWER_OK);
    script_free(s);
}

/* Goal: a waiter that reconnects trusts no watch. Method: the link flaps; the node is listed,
 * then missing. */
static void a_waiter_lists_again_after_each_link(void **state)
{
    struct script *s = script_connected();
    (void)state;
    script_wait(s, "/r", 9, "5:7");
    script_forget(s);
    script_down(s);
    script_up(s, SCRIPT_SESSION);
    script_listed(s, "1:9 5:7");
    script_down(s);
    script_up(s, SCRIPT_SESSION);
    script_listed(s, "5:7");
    script_expect(s, "[     0] session CONNECTED -> SUSPENDED: link lost\n"
                     "  session: link down\n"
                     "[     0] session SUSPENDED -> CONNECTED: connected\n"
                     "  session: link up\n"
                     "[     0] #1 WAITING -> LISTING: link up\n"
                     "  > list /r\n"
                     "[     0] #1 LISTING -> WAITING: next in line\n"
                     "[     0] session CONNECTED -> SUSPENDED: link lost\n"
                     "  session: link down\n"
                     "[     0] session SUSPENDED -> CONNECTED: connected\n"
                     "  session: link up\n"
                     "[     0] #1 WAITING -> LISTING: link up\n"
                     "  > list /r\n"
                     "[     0] #1 LISTING -> QUEUEING: own node not in the list\n"
                     "  > unwatch /r/G5-0000000007\n"
                     "  > unwatch /r/G1-0000000009\n"
                     "  > create /r/G2-\n"
                     "  > list /r\n");
    script_event(s, ZKL_SE_EXPIRED);
    script_stop(s, 1, ZKL_ECANCELED);
    script_free(s);
}

/* Goal: a waiter outlives the session and queues again in the next one. Method: expiry while
 * waiting. Modes: F6. */
static void a_waiter_queues_again_in_the_next_session(void **state)
{
    struct script *s = script_connected();
    (void)state;
    script_wait(s, "/r", 9, "5:7");
    script_forget(s);
    script_event(s, ZKL_SE_EXPIRED);
    script_up(s, SCRIPT_SESSION + 1);
    script_expect(s, "[     0] session CONNECTED -> STARTING: expired\n"
                     "[     0] #1 WAITING -> PARKED: expired\n"
                     "  session: link down, expired, replace handle\n"
                     "[     0] session STARTING -> CONNECTED: connected\n"
                     "  session: link up\n"
                     "  > delete all /r/G1-0000000009\n"
                     "[     0] #1 PARKED -> QUEUEING: link up\n"
                     "  > create /r/G2-\n"
                     "  > list /r\n");
    script_stop(s, 1, ZKL_ECANCELED);
    script_created(s, 10);
    script_answer(s, ZKL_REQ_DELETE, ZKL_ANSWER_OK);
    script_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_uncontended_lock_is_create_list_and_delete),
        cmocka_unit_test(a_waiter_watches_its_predecessor_and_lists_until_it_is_next),
        cmocka_unit_test(a_predecessor_gone_before_the_watch_is_not_waited_for),
        cmocka_unit_test(a_changed_predecessor_is_watched_again),
        cmocka_unit_test(a_missing_root_is_made_leaf_first_then_parents),
        cmocka_unit_test(persistent_parents_where_containers_are_refused),
        cmocka_unit_test(a_core_works_without_a_trace),
        cmocka_unit_test(a_server_that_makes_nothing_is_odd),
        cmocka_unit_test(a_missing_chroot_has_its_own_code),
        cmocka_unit_test(a_busy_trylock_is_one_list),
        cmocka_unit_test(a_trylock_that_lost_the_race_leaves_nothing),
        cmocka_unit_test(a_denied_request_fails_with_the_missing_permission),
        cmocka_unit_test(a_denied_delete_is_told_by_unlock),
        cmocka_unit_test(an_unanswered_create_is_found_and_adopted),
        cmocka_unit_test(a_node_of_another_session_is_not_adopted),
        cmocka_unit_test(a_create_that_was_not_carried_out_is_repeated),
        cmocka_unit_test(recovery_starts_over_with_each_link),
        cmocka_unit_test(a_list_without_its_barrier_does_not_prove_the_node_missing),
        cmocka_unit_test(a_cancel_with_the_create_out_deletes_what_it_made),
        cmocka_unit_test(a_timeout_with_unknown_outcome_looks_and_deletes),
        cmocka_unit_test(a_timeout_with_unknown_outcome_may_find_nothing),
        cmocka_unit_test(a_list_over_the_next_link_does_not_prove_the_node_missing),
        cmocka_unit_test(a_canceled_waiter_removes_node_and_watch),
        cmocka_unit_test(a_lock_request_can_be_ended_in_every_state),
        cmocka_unit_test(a_waiter_whose_node_was_deleted_queues_again),
        cmocka_unit_test(a_waiter_hears_of_its_deletion_without_a_link),
        cmocka_unit_test(a_waiter_lists_again_after_each_link),
        cmocka_unit_test(a_waiter_queues_again_in_the_next_session),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
