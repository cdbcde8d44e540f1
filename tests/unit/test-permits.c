/* SPDX-License-Identifier: Apache-2.0 */
/* A request for permits on a script: what it asks of the server, in what order, and what it takes back. */
#include <stdio.h>
#include <string.h>

#include <zklock/zklock.h>

#include "core/bundle.h"
#include "core/place.h"
#include "core/watch.h"
#include "script.h"

static struct zkl_semaphore_view view;
static struct zkl_bundle permits;
static struct zkl_contender *lease; /* the script's: its news are recorded once it is granted */
static struct zkl_contender gate;
static struct zkl_bundle_member parts[4];
static struct zkl_contender *members[3];
static char said[64];
static int64_t lease_ns; /* that is asked for */
static bool trying;

static void told(struct zkl_bundle *p, const struct zkl_notification *news)
{
    const char *const what[] = {"granted", "failed", "", "", "ended"};
    (void)p;
    snprintf(said + strlen(said), sizeof said - strlen(said), "%s %d %d;", what[news->type],
             news->code, news->number);
}

static void begin_some(struct script *s, int number, size_t count)
{
    struct zkl_time now = {s->now_ms * 1000000, (s->now_ms + 5000000) * 1000000};
    view = (struct zkl_semaphore_view){.permits = number};
    said[0] = '\0';
    lease = &s->contenders[0];
    gate = (struct zkl_contender){0};
    parts[0] = (struct zkl_bundle_member){
        .contender = &gate, .lock_request = {.path = script_path(s, "/s/locks"), .data = "us"}};
    for (size_t i = 0; i < count; i++) {
        members[i] = &s->contenders[i];
        s->live[i] = true;
        parts[1 + i] =
            (struct zkl_bundle_member){.contender = members[i],
                                       .lock_request = {.path = script_path(s, "/s/leases"),
                                                        .data = "us",
                                                        .naming.role = ZKL_ROLE_PERMIT,
                                                        .quota.view = &view,
                                                        .try_only = trying}};
    }
    permits = (struct zkl_bundle){
        .members = parts, .count = 1 + count, .gated = true, .lease_ns = lease_ns, .told = told};
    zkl_bundle_acquire(&s->core, now, &permits);
}

static void begin(struct script *s, int number)
{
    begin_some(s, number, 1);
}

static void number_of(struct script *s, enum zkl_request_kind kind, const char *text,
                      int32_t version)
{
    script_reply(s, kind,
                 (struct zkl_reply){.data = text, .data_size = strlen(text), .version = version});
}

static void number(struct script *s, enum zkl_request_kind kind, const char *text)
{
    number_of(s, kind, text, 0);
}

static void release(struct script *s)
{
    struct zkl_time now = {s->now_ms * 1000000, (s->now_ms + 5000000) * 1000000};
    zkl_core_release(&s->core, now, lease);
}

/* Goal: uncontended, two round trips: the gate; then number, node and list together. The gate is left
 * in the moment of the grant. */
static void uncontended(void **state)
{
    struct script *s = script_connected();
    (void)state;
    begin(s, 2);
    script_expect(s, "[     0] permits IDLE -> ENTERING: for the gate\n"
                     "[     0] #1 NEW -> QUEUEING: started\n"
                     "  > create /s/locks/G1-\n"
                     "  > list /s/locks\n");
    script_created(s, 0);
    script_listed(s, gate.machine.node);
    script_expect(s, "[     0] #1 QUEUEING -> HOLDING: first\n"
                     "[     0] permits ENTERING -> TAKING: has the gate\n"
                     "[     0] #2 NEW -> QUEUEING: started\n"
                     "  > get /s/leases\n"
                     "  > create /s/leases/G2--\n"
                     "  > list /s/leases\n");
    number(s, ZKL_REQ_GET, "2");
    script_created(s, 0);
    script_listed(s, lease->machine.node);
    script_expect(s, "[     0] #2 QUEUEING -> HOLDING: not more leases than permits\n"
                     "[     0] permits TAKING -> GRANTED: all are there\n"
                     "[     0] #1 HOLDING -> RELEASING: unlocked\n"
                     "  > delete /s/locks/G1-0000000000\n");
    assert_string_equal(said, "granted 0 0;");
    assert_true(view.agreed);
    script_answer(s, ZKL_REQ_DELETE, ZKL_ANSWER_OK);
    assert_string_equal(said, "granted 0 0;ended 0 0;");
    script_forget(s);
    zkl_bundle_stop(&s->core, s->core.now, &permits, ZKL_ETIMEDOUT); /* too late */
    assert_int_equal(permits.code, 0);
    release(s);
    script_answer(s, ZKL_REQ_DELETE, ZKL_ANSWER_OK);
    script_expect(s, "[     0] #2 HOLDING -> RELEASING: unlocked\n"
                     "  > delete /s/leases/G2--0000000000\n"
                     "[     0] #2 RELEASING -> ENDED: deleted\n"
                     "  #2 released OK\n"
                     "  #2 ended\n");
    script_free(s);
}

/* Goal: a try whose server is too busy to answer the number asks again, and does not say that all
 * are out. Method: the path has the number; the answer to its GET is refused over the link that
 * stays. */
static void a_try_waits_for_the_number(void **state)
{
    struct script *s = script_connected();
    (void)state;
    trying = true;
    begin(s, 0);
    trying = false;
    script_reply(s, ZKL_REQ_GET, (struct zkl_reply){.answer = ZKL_ANSWER_LINK, .number = -127});
    script_listed(s, "");
    assert_string_equal(said, "");
    script_forget(s);
    script_at(s, 400);
    assert_true(script_has(s, "  > get /s/leases\n"));
    number(s, ZKL_REQ_GET, "2");
    script_listed(s, "");
    assert_true(script_has(s, "LOOKING -> ENDED: some are free\n"));
    zkl_bundle_stop(&s->core, s->core.now, &permits, ZKL_ECANCELED);
    script_created(s, 0);
    script_answer(s, ZKL_REQ_DELETE, ZKL_ANSWER_OK);
    script_free(s);
}

/* Goal: the time of a lease counts from the grant of all. Method: the grant comes later than the node. */
static void a_lease_begins_with_the_grant(void **state)
{
    struct script *s = script_connected();
    (void)state;
    lease_ns = 500 * INT64_C(1000000);
    begin(s, 2);
    lease_ns = 0;
    script_created(s, 0);
    script_listed(s, gate.machine.node);
    number(s, ZKL_REQ_GET, "2");
    script_created(s, 0);
    script_at(s, 100);
    script_listed(s, lease->machine.node);
    assert_string_equal(said, "granted 0 0;");
    assert_true(lease->machine.lease_end_boot == s->core.now.boot_ns + 500 * INT64_C(1000000));
    script_answer(s, ZKL_REQ_DELETE, ZKL_ANSWER_OK);
    release(s);
    script_answer(s, ZKL_REQ_DELETE, ZKL_ANSWER_OK);
    script_free(s);
}

/* Goal: another number than ours ends the request before the node's answer; the node is deleted
 * when its name is known, the gate immediately. */
static void mismatch(void **state)
{
    struct script *s = script_connected();
    (void)state;
    begin(s, 2);
    script_created(s, 0);
    script_listed(s, gate.machine.node);
    script_forget(s);
    number(s, ZKL_REQ_GET, "3");
    script_expect(s, "[     0] #2 QUEUEING -> LEAVING: another number stands there\n"
                     "[     0] permits TAKING -> FAILED: failed\n"
                     "[     0] #1 HOLDING -> RELEASING: unlocked\n"
                     "  > delete /s/locks/G1-0000000000\n");
    assert_string_equal(said, "failed -24 3;");
    script_created(s, 0);
    script_listed(s, "");
    script_answer(s, ZKL_REQ_DELETE, ZKL_ANSWER_OK);
    script_answer(s, ZKL_REQ_DELETE, ZKL_ANSWER_OK);
    script_expect(s, "  > delete /s/leases/G2--0000000000\n"
                     "[     0] #1 RELEASING -> ENDED: deleted\n"
                     "[     0] #2 LEAVING -> ENDED: deleted\n"
                     "[     0] permits FAILED -> IDLE: nothing is left\n");
    assert_string_equal(said, "failed -24 3;ended -24 3;");
    assert_false(view.agreed);
    s->live[0] = false;
    script_free(s);
}

/* Its memory is the owner's again, who uses it for something else at once. */
static void told_and_gone(struct zkl_bundle *p, const struct zkl_notification *news)
{
    bool listed = p->due.listed;
    told(p, news);
    if (news->type != ZKL_NOTIFY_ENDED)
        return;
    assert_false(listed);
    *p = (struct zkl_bundle){.state = ZKL_BUNDLE_TAKING, .count = 1};
}

/* Goal: from its end on the core has no pointer to a request, nor looks at it once more. */
static void what_has_ended_is_the_owners(void **state)
{
    struct script *s = script_connected();
    (void)state;
    begin(s, 1);
    permits.told = told_and_gone;
    zkl_bundle_stop(&s->core, s->core.now, &permits, ZKL_ETIMEDOUT);
    script_created(s, 0);
    script_answer(s, ZKL_REQ_DELETE, ZKL_ANSWER_OK);
    assert_string_equal(said, "failed -12 0;ended -12 0;");
    script_free(s);
}

/* Goal: a full semaphore: number, children and own node are watched; a stop takes all of it back. */
static void full_and_stopped(void **state)
{
    struct script *s = script_connected();
    char list[300];
    (void)state;
    begin(s, 1);
    script_created(s, 0);
    script_listed(s, gate.machine.node);
    number(s, ZKL_REQ_GET, "1");
    script_created(s, 7);
    script_forget(s);
    snprintf(list, sizeof list, "x-lease-0000000001 %s", lease->machine.node);
    script_listed(s, list);
    script_expect(s, "[     0] #2 QUEUEING -> LISTING: leases are to be watched\n"
                     "  > watch /s/leases\n"
                     "  > list root /s/leases\n");
    number(s, ZKL_REQ_WATCH, "1");
    script_lock_path_listed(s, 0, list);
    script_expect(s, "[     0] #2 LISTING -> WAITING: full\n"
                     "  > watch /s/leases/G2--0000000007\n");
    script_answer(s, ZKL_REQ_WATCH, ZKL_ANSWER_OK);
    assert_null(zkl_queue_place_of(lease).predecessor); /* it waits for any of them */
    zkl_bundle_stop(&s->core, s->core.now, &permits, ZKL_ETIMEDOUT);
    script_expect(s, "[     0] permits TAKING -> FAILED: failed\n"
                     "[     0] #2 WAITING -> LEAVING: stopped\n"
                     "  > unwatch /s/leases\n"
                     "  > unwatch /s/leases\n"
                     "  > delete /s/leases/G2--0000000007\n"
                     "[     0] #1 HOLDING -> RELEASING: unlocked\n"
                     "  > delete /s/locks/G1-0000000000\n");
    assert_string_equal(said, "failed -12 0;");
    script_fired(s, "/s/leases/G2--0000000007", ZKL_FIRED_DELETED);
    for (int i = 0; i < 2; i++) {
        script_answer(s, ZKL_REQ_UNWATCH, ZKL_ANSWER_OK);
        script_answer(s, ZKL_REQ_DELETE, ZKL_ANSWER_OK);
    }
    assert_string_equal(said, "failed -12 0;ended -12 0;");
    s->live[0] = false;
    script_free(s);
}

/* Goal: the number grew: it is read again, then the list, and the grant leaves no watch but that of the
 * node itself. */
static void the_number_grows(void **state)
{
    struct script *s = script_connected();
    char list[300];
    (void)state;
    begin(s, 1);
    script_created(s, 0);
    script_listed(s, gate.machine.node);
    number(s, ZKL_REQ_GET, "1");
    script_created(s, 7);
    snprintf(list, sizeof list, "x-lease-0000000001 %s", lease->machine.node);
    script_listed(s, list);
    number(s, ZKL_REQ_WATCH, "1");
    script_lock_path_listed(s, 0, list);
    script_answer(s, ZKL_REQ_WATCH, ZKL_ANSWER_OK);
    script_forget(s);
    script_fired(s, "/s/leases", ZKL_FIRED_OTHER); /* the data */
    number(s, ZKL_REQ_WATCH, "2");
    script_listed(s, list);
    script_expect(s, "  > watch /s/leases\n"
                     "[     0] #2 WAITING -> LISTING: another number of permits\n"
                     "  > list /s/leases\n"
                     "[     0] #2 LISTING -> HOLDING: not more leases than permits\n"
                     "  > unwatch /s/leases\n"
                     "  > unwatch /s/leases\n"
                     "[     0] permits TAKING -> GRANTED: all are there\n"
                     "[     0] #1 HOLDING -> RELEASING: unlocked\n"
                     "  > delete /s/locks/G1-0000000000\n");
    assert_string_equal(said, "granted 0 0;");
    release(s);
    script_fired(s, "/s/leases/G2--0000000007", ZKL_FIRED_DELETED);
    for (int i = 0; i < 2; i++) {
        script_answer(s, ZKL_REQ_UNWATCH, ZKL_ANSWER_OK);
        script_answer(s, ZKL_REQ_DELETE, ZKL_ANSWER_OK);
    }
    script_free(s);
}

/* --- a number that is lowered ---------------------------------------------- */

/* Of one that is out, and our own, with this Stat. */
static void listed_of(struct script *s, const char *own, struct zkl_reply stat)
{
    const char *const both[] = {"x-lease-0000000001", own};
    stat.children = both;
    stat.child_count = 2;
    script_reply(s, ZKL_REQ_LIST, stat);
}

/* The number is 3. A waiter has read it and has its node; else the create and the list are out. */
static struct script *third_of_three(bool waits)
{
    struct script *s = script_connected();
    begin(s, 3);
    script_created(s, 0);
    script_listed(s, gate.machine.node);
    number_of(s, ZKL_REQ_GET, "3", 0);
    if (!waits)
        return s;
    script_created(s, 7);
    char list[400];
    snprintf(list, sizeof list, "x-lease-0000000001 x-lease-0000000002 x-lease-0000000003 %s",
             lease->machine.node);
    script_listed(s, list);
    number_of(s, ZKL_REQ_WATCH, "3", 0);
    script_lock_path_listed(s, 0, list);
    script_answer(s, ZKL_REQ_WATCH, ZKL_ANSWER_OK);
    assert_int_equal(lease->machine.state, ZKL_CONTENDER_WAITING);
    return s;
}

static void takes_back(struct script *s)
{
    script_close(s);
    s->live[0] = false;
    script_free(s);
}

/* The list is of the number 1, of which nothing was heard before: it decides nothing; nor does the next one, by 1. */
static void check_not_granted(struct script *s, const char *own)
{
    listed_of(s, own, (struct zkl_reply){.version = 1});
    assert_int_equal(lease->machine.state, ZKL_CONTENDER_LISTING);
    number_of(s, ZKL_REQ_GET, "1", 1);
    script_forget(s);
    listed_of(s, own, (struct zkl_reply){.version = 1});
    assert_int_equal(lease->machine.state, ZKL_CONTENDER_LISTING);
    assert_true(script_has(s, "  > list root /s/leases\n")); /* it is full: it will wait */
    takes_back(s);
}

/* Goal: no list decides by a number that was another one when it was made. Method: the number is read,
 * lowered, and the list is made; over one link. */
static void a_number_that_was_read_before_decides_nothing(void **state)
{
    struct script *s = third_of_three(false);
    (void)state;
    script_created(s, 7);
    check_not_granted(s, lease->machine.node);
}

/* Likewise for a waiter whose link was down, and which hears of the change after the list, or never. */
static void a_number_of_another_link_decides_nothing(void **state)
{
    (void)state;
    struct script *s = third_of_three(true);
    script_down(s);
    script_up(s, SCRIPT_SESSION);
    check_not_granted(s, lease->machine.node);
}

/* Likewise where the answer that was lost with the link is that to the create. */
static void a_number_read_before_a_lost_create_decides_nothing(void **state)
{
    struct script *s = third_of_three(false);
    char own[ZKL_NODE_NAME_MAX + 1];
    (void)state;
    zkl_name_prefix(&lease->machine.lock_request.naming, lease->machine.guid, own);
    strcat(own, "0000000007");
    script_down(s);
    script_up(s, SCRIPT_SESSION);
    script_answer(s, ZKL_REQ_CHECK_ALL, ZKL_ANSWER_OK); /* the barrier */
    script_listed(s, own);
    script_statted(s, SCRIPT_SESSION, 100);
    check_not_granted(s, own);
}

/* Goal: the number of a node that was deleted is not that of the next one, which has the same version. */
static void a_number_of_another_node_decides_nothing(void **state)
{
    struct script *s = third_of_three(true);
    (void)state;
    zkl_core_fired(&s->core, s->core.now, lease->subs[ZKL_SUB_LOCK_PATH].watch->id,
                   ZKL_FIRED_OTHER);
    script_forget(s);
    listed_of(s, lease->machine.node, (struct zkl_reply){.czxid = 9});
    assert_true(script_has(s, "  > get /s/leases\n"));
    assert_int_equal(lease->machine.state, ZKL_CONTENDER_LISTING);
    takes_back(s);
}

/* Goal: the number that was written is the one that stands there, whatever the handle knows when the answer comes. Method:
 * set_permits of the same handle ends in between, and others have written the data. */
static void a_number_that_was_written_is_what_was_sent(void **state)
{
    struct script *s = script_connected();
    (void)state;
    begin(s, 3);
    script_created(s, 0);
    script_listed(s, gate.machine.node);
    number_of(s, ZKL_REQ_GET, "", 2);
    view.permits = 5;
    view.agreed = true;
    script_created(s, 7);
    const char *const all[] = {"x-lease-0000000001", "x-lease-0000000002", "x-lease-0000000003",
                               lease->machine.node};
    struct zkl_reply list = {.children = all, .child_count = 4, .version = 2};
    script_reply(s, ZKL_REQ_LIST, list);
    script_reply(s, ZKL_REQ_SET, (struct zkl_reply){.version = 3});
    list.version = 3;
    script_reply(s, ZKL_REQ_LIST, list);
    assert_int_equal(lease->machine.limit.permits, 3);
    assert_int_equal(lease->machine.state, ZKL_CONTENDER_LISTING);
    takes_back(s);
}

/* Goal: where it is the same number still, the list after a lost link decides at once. */
static void a_number_that_stayed_decides(void **state)
{
    struct script *s = third_of_three(true);
    (void)state;
    script_down(s);
    script_up(s, SCRIPT_SESSION);
    script_forget(s);
    listed_of(s, lease->machine.node, (struct zkl_reply){0});
    assert_true(script_has(s, "LISTING -> HOLDING: not more leases than permits\n"));
    assert_false(script_has(s, "  > get /s/leases\n"));
    script_close(s);
    release(s);
    script_free(s);
}

/* Goal: an answer that was lost with its session is not waited for in the next one. Method: a try's list is
 * refused by a handle that has just expired. */
static void a_number_is_asked_for_in_the_next_session(void **state)
{
    struct script *s = script_connected();
    (void)state;
    trying = true;
    s->refuse[ZKL_REQ_LIST] = ZKL_ANSWER_LINK;
    begin(s, 0);
    trying = false;
    s->refuse[ZKL_REQ_LIST] = ZKL_ANSWER_OK;
    script_event(s, ZKL_SE_EXPIRED);
    script_forget(s);
    script_up(s, SCRIPT_SESSION + 1);
    assert_true(script_has(s, "  > get /s/leases\n"));
    takes_back(s);
}

/* Goal: a caller that gives up while the request is being backed out learns that, and nothing
 * begins again. Method: the gate is lost while the lease is under way; the delete of the lease is
 * out. */
static void stopped_while_it_is_taken_back(void **state)
{
    struct script *s = script_connected();
    (void)state;
    begin(s, 1);
    script_created(s, 0);
    script_listed(s, gate.machine.node);
    number(s, ZKL_REQ_GET, "1");
    script_created(s, 7);
    assert_int_equal(permits.state, ZKL_BUNDLE_TAKING);
    script_at(s, 750);
    script_missing(s, 0);
    assert_int_equal(permits.state, ZKL_BUNDLE_BACKING);
    script_forget(s);
    zkl_bundle_stop(&s->core, s->core.now, &permits, ZKL_ECANCELED);
    assert_string_equal(said, "failed -13 0;");
    script_answer(s, ZKL_REQ_DELETE, ZKL_ANSWER_OK);
    assert_string_equal(said, "failed -13 0;ended -13 0;");
    zkl_bundle_stop(&s->core, s->core.now, &permits, ZKL_ECANCELED); /* it is over */
    assert_string_equal(said, "failed -13 0;ended -13 0;");
    s->live[0] = false;
    script_free(s);
}

/* --- two together --------------------------------------------------------- */

static char names[3][ZKL_NODE_NAME_MAX + 1];

/* A request for both of two permits that has the gate; its nodes, 7 and 8, are made. */
static struct script *taking_two(void)
{
    struct script *s = script_connected();
    const char *const made[] = {names[0], names[1]};
    begin_some(s, 2, 2);
    script_created(s, 0);
    script_listed(s, gate.machine.node);
    number(s, ZKL_REQ_GET, "2");
    for (int i = 0; i < 2; i++) {
        zkl_name_prefix(&members[i]->machine.lock_request.naming, members[i]->machine.guid,
                        names[i]);
        strcat(names[i], i == 0 ? "0000000007" : "0000000008");
    }
    script_reply(s, ZKL_REQ_CREATE_ALL, (struct zkl_reply){.children = made, .child_count = 2});
    script_statted(s, SCRIPT_SESSION, 100);
    return s;
}

/* Both of them behind a stranger's; nothing is recorded. */
static struct script *waiting_for_two(void)
{
    struct script *s = taking_two();
    char list[400];
    snprintf(list, sizeof list, "x-lease-0000000001 %s %s", names[0], names[1]);
    script_listed(s, list);
    number(s, ZKL_REQ_WATCH, "2");
    script_lock_path_listed(s, 0, list);
    script_answer(s, ZKL_REQ_WATCH, ZKL_ANSWER_OK);
    script_answer(s, ZKL_REQ_WATCH, ZKL_ANSWER_OK);
    script_forget(s);
    return s;
}

/* It ends with the session. */
static void end_in_time(struct script *s)
{
    script_close(s);
    s->live[0] = s->live[1] = false;
    script_free(s);
}

/* Goal: a list of one of two waiters serves the other one too. Method: the second node is deleted
 * and made again by a stranger; its list with a watch serves both. */
static void one_of_two_looks_for_both(void **state)
{
    struct script *s = waiting_for_two();
    char list[400];
    (void)state;
    script_fired(s, "/s/leases/G3--0000000008", ZKL_FIRED_DELETED);
    number(s, ZKL_REQ_GET, "2");
    script_created(s, 9);
    snprintf(list, sizeof list, "x-lease-0000000001 %s %s", names[0], members[1]->machine.node);
    script_listed(s, list);
    script_forget(s);
    script_lock_path_listed(s, 0, list);
    script_expect(s, "[     0] #3 LISTING -> WAITING: full\n"
                     "  > watch /s/leases/G4--0000000009\n"
                     "[     0] #2 WAITING -> LISTING: listed\n"
                     "[     0] #2 LISTING -> WAITING: full\n");
    end_in_time(s);
}

/* The transaction for the nodes from the first-th to the third is answered: they have the numbers from
 * this one on. */
static void three_are_made(struct script *s, size_t first, int number)
{
    const char *made[3];
    for (size_t i = first; i < 3; i++) {
        const struct zkl_contender_machine *m = &members[i]->machine;
        char prefix[ZKL_NODE_NAME_MAX + 1];
        zkl_name_prefix(&m->lock_request.naming, m->guid, prefix);
        snprintf(names[i], sizeof names[i], "%.60s%010d", prefix, number++);
        made[i - first] = names[i];
    }
    script_reply(s, ZKL_REQ_CREATE_ALL,
                 (struct zkl_reply){.children = made, .child_count = 3 - first});
}

/* Goal: a list answers for those of the request that share it, not for others. Method: two of three
 * nodes are deleted, and made again while the first one's next list is out; that is older than they
 * may be, and their own follows. */
static void an_older_list_answers_for_nobody_else(void **state)
{
    struct script *s = script_connected();
    char list[400];
    (void)state;
    begin_some(s, 3, 3);
    script_created(s, 0);
    script_listed(s, gate.machine.node);
    three_are_made(s, 0, 7);
    script_statted(s, SCRIPT_SESSION, 100);
    script_listed(s, names[0]);
    number(s, ZKL_REQ_GET, "3");
    three_are_made(s, 1, 10);
    snprintf(list, sizeof list, "%s %s %s", names[0], names[1], names[2]);
    script_listed(s, list);
    script_statted(s, SCRIPT_SESSION, 101);
    assert_string_equal(said, "");
    script_listed(s, list);
    assert_string_equal(said, "granted 0 0;");
    script_close(s);
    for (int i = 0; i < 3; i++)
        zkl_core_release(&s->core, s->core.now, members[i]);
    script_free(s);
}

/* Goal: the node to query for the zxid may be deleted by then; the client queries another one, and
 * sends the shared list once more, for the same members. Method: the first node's Stat finds
 * none. */
static void a_list_is_shared_once_more(void **state)
{
    struct script *s = script_connected();
    char list[400];
    (void)state;
    begin_some(s, 3, 3);
    script_created(s, 0);
    script_listed(s, gate.machine.node);
    number(s, ZKL_REQ_GET, "3");
    three_are_made(s, 0, 7);
    script_answer(s, ZKL_REQ_STAT, ZKL_ANSWER_NONODE);
    script_statted(s, SCRIPT_SESSION, 100);
    snprintf(list, sizeof list, "%s %s %s", names[0], names[1], names[2]);
    script_listed(s, list);
    assert_string_equal(said, "granted 0 0;");
    script_close(s);
    for (int i = 0; i < 3; i++)
        zkl_core_release(&s->core, s->core.now, members[i]);
    script_free(s);
}

static void the_data_is(struct script *s, const char *text)
{
    zkl_core_fired(&s->core, s->core.now, members[0]->subs[ZKL_SUB_LIMIT].watch->id,
                   ZKL_FIRED_OTHER);
    number(s, ZKL_REQ_WATCH, text);
}

/* Goal: no contender waits for an answer that never comes: the second one shares the first one's
 * GET, whose place a SET takes. Method: a stranger deletes the number and writes it again and
 * again, and the second one's node is deleted in between. Found by the simulation after 1.3 million
 * schedules. */
static void a_write_answers_who_shared_the_read(void **state)
{
    struct script *s = waiting_for_two();
    (void)state;
    the_data_is(s, "");
    script_answer(s, ZKL_REQ_SET, ZKL_ANSWER_NOTEMPTY); /* the version is another one */
    script_answer(s, ZKL_REQ_SET, ZKL_ANSWER_NOTEMPTY);
    number(s, ZKL_REQ_GET, ""); /* the second one's, which writes and is late again */
    script_answer(s, ZKL_REQ_SET, ZKL_ANSWER_NOTEMPTY);
    script_fired(s, "/s/leases/G3--0000000008", ZKL_FIRED_DELETED);
    assert_true(members[1]->machine.limit.out);
    the_data_is(s, "");
    script_answer(s, ZKL_REQ_SET, ZKL_ANSWER_OK);
    number(s, ZKL_REQ_GET, "2");
    assert_false(members[1]->machine.limit.out);
    assert_int_equal(members[1]->machine.limit.permits, 2);
    end_in_time(s);
}

/* One of two that wait lists the leases anew; their watch has fired meanwhile. */
static struct script *one_of_two_lists_anew(void)
{
    struct script *s = waiting_for_two();
    char list[400];
    script_fired(s, "/s/leases/G3--0000000008", ZKL_FIRED_DELETED);
    number(s, ZKL_REQ_GET, "2");
    script_created(s, 9);
    snprintf(list, sizeof list, "x-lease-0000000001 %s %s", names[0], members[1]->machine.node);
    script_listed(s, list);
    zkl_core_fired(&s->core, s->core.now, members[0]->subs[ZKL_SUB_LOCK_PATH].watch->id,
                   ZKL_FIRED_OTHER);
    script_forget(s);
    return s;
}

/* Goal: a list that fails is no list without one's node: a contender that waited by the watch that
 * is lost with it lists for itself, and a request that fails backs out all its nodes. Found by the
 * simulation (seed 20450885). */
static void a_list_that_fails_hides_no_node(void **state)
{
    struct script *s = one_of_two_lists_anew();
    (void)state;
    script_answer(s, ZKL_REQ_LIST_LOCK_PATH, ZKL_ANSWER_UNIMPLEMENTED);
    assert_true(script_has(s, "  > delete /s/leases/G4--0000000009\n"));
    assert_true(script_has(s, "  > delete /s/leases/G2--0000000007\n"));
    end_in_time(s);
}

/* Goal: likewise where the server was too busy. */
static void a_list_that_is_refused_is_asked_for_again(void **state)
{
    struct script *s = one_of_two_lists_anew();
    (void)state;
    script_answer(s, ZKL_REQ_LIST_LOCK_PATH, ZKL_ANSWER_LINK);
    assert_true(members[0]->machine.on_server);
    assert_true(script_has(s, "[     0] #2 WAITING -> LISTING: leases are to be watched\n"
                              "  > list root /s/leases\n"));
    end_in_time(s);
}

/* Goal: a change that is heard of without a link is looked at with the next one. */
static void a_change_without_a_link_waits(void **state)
{
    struct script *s = waiting_for_two();
    (void)state;
    script_down(s);
    script_forget(s);
    zkl_core_fired(&s->core, s->core.now, members[0]->subs[ZKL_SUB_LOCK_PATH].watch->id,
                   ZKL_FIRED_OTHER);
    script_expect(s, "[     0] #2 WAITING -> LISTING: leases are to be watched\n"
                     "[     0] #3 WAITING -> LISTING: leases are to be watched\n");
    script_up(s, SCRIPT_SESSION);
    script_expect(s, "[     0] session SUSPENDED -> CONNECTED: connected\n"
                     "  session: link up\n"
                     "  > list /s/leases\n" /* for both */
                     "  > heartbeat /s/locks/G1-0000000000\n");
    end_in_time(s);
}

/* Goal: two permits that are waited for are both taken back by a stop, in one transaction. */
static void two_that_wait_are_stopped(void **state)
{
    struct script *s = waiting_for_two();
    (void)state;
    zkl_bundle_stop(&s->core, s->core.now, &permits, ZKL_ETIMEDOUT);
    script_expect(s, "[     0] permits TAKING -> FAILED: failed\n"
                     "[     0] #3 WAITING -> LEAVING: stopped\n"
                     "[     0] #2 WAITING -> LEAVING: stopped\n"
                     "  > unwatch /s/leases\n"
                     "  > unwatch /s/leases\n"
                     "  > delete all /s/leases/G3--0000000008 /s/leases/G2--0000000007\n"
                     "[     0] #1 HOLDING -> RELEASING: unlocked\n"
                     "  > delete /s/locks/G1-0000000000\n");
    script_fired(s, "/s/leases/G2--0000000007", ZKL_FIRED_DELETED);
    script_fired(s, "/s/leases/G3--0000000008", ZKL_FIRED_DELETED);
    script_answer(s, ZKL_REQ_UNWATCH, ZKL_ANSWER_OK);
    script_answer(s, ZKL_REQ_UNWATCH, ZKL_ANSWER_OK);
    script_answer(s, ZKL_REQ_DELETE_ALL, ZKL_ANSWER_OK);
    script_answer(s, ZKL_REQ_DELETE, ZKL_ANSWER_OK);
    assert_string_equal(said, "failed -12 0;ended -12 0;");
    s->live[0] = s->live[1] = false;
    script_free(s);
}

/* Goal: a permit that is lost while another one of the request is still waited for: all over again. Method:
 * the list shows the second node only, which is deleted later, as a heartbeat finds. */
static void one_of_two_is_lost_meanwhile(void **state)
{
    struct script *s = taking_two();
    (void)state;
    script_forget(s);
    script_listed(s, names[1]);
    script_at(s, 750);
    script_missing(s, 1);
    assert_true(script_has(s, "[   750] #3 HOLDING -> LOSTHOLD: node deleted\n"
                              "[   750] permits TAKING -> BACKING: a part was lost\n"
                              "[   750] #3 LOSTHOLD -> ENDED: lost hold given back\n"
                              "[   750] #2 QUEUEING -> LEAVING: stopped\n"
                              "[   750] #1 HOLDING -> RELEASING: unlocked\n"
                              "  > delete /s/locks/G1-0000000000\n"));
    end_in_time(s);
}

/* Goal: each state has a name of its own. */
static void states_have_names(void **state)
{
    (void)state;
    for (int i = 0; i < ZKL_BUNDLE_STATES; i++) {
        const char *name = zkl_bundle_state_name((enum zkl_bundle_state)i);
        assert_non_null(name);
        for (int j = 0; j < i; j++)
            assert_string_not_equal(name, zkl_bundle_state_name((enum zkl_bundle_state)j));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(uncontended),
        cmocka_unit_test(a_try_waits_for_the_number),
        cmocka_unit_test(a_lease_begins_with_the_grant),
        cmocka_unit_test(mismatch),
        cmocka_unit_test(what_has_ended_is_the_owners),
        cmocka_unit_test(full_and_stopped),
        cmocka_unit_test(the_number_grows),
        cmocka_unit_test(a_number_that_was_read_before_decides_nothing),
        cmocka_unit_test(a_number_of_another_link_decides_nothing),
        cmocka_unit_test(a_number_read_before_a_lost_create_decides_nothing),
        cmocka_unit_test(a_number_of_another_node_decides_nothing),
        cmocka_unit_test(a_number_that_was_written_is_what_was_sent),
        cmocka_unit_test(a_number_that_stayed_decides),
        cmocka_unit_test(a_number_is_asked_for_in_the_next_session),
        cmocka_unit_test(stopped_while_it_is_taken_back),
        cmocka_unit_test(one_of_two_looks_for_both),
        cmocka_unit_test(a_write_answers_who_shared_the_read),
        cmocka_unit_test(a_list_that_fails_hides_no_node),
        cmocka_unit_test(a_list_that_is_refused_is_asked_for_again),
        cmocka_unit_test(a_change_without_a_link_waits),
        cmocka_unit_test(two_that_wait_are_stopped),
        cmocka_unit_test(one_of_two_is_lost_meanwhile),
        cmocka_unit_test(an_older_list_answers_for_nobody_else),
        cmocka_unit_test(a_list_is_shared_once_more),
        cmocka_unit_test(states_have_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
