/* SPDX-License-Identifier: Apache-2.0
 * Several contenders that are acquired as one, on a script: the contents of one transaction, and
 * what becomes of each of them when that fails. */
#include <string.h>

#include <zklock/zklock.h>

#include "core/unlisted_grant.h"
#include "core/transaction.h"
#include "core/bundle.h"
#include "script.h"

#define MEMBERS 3

static struct zkl_bundle group;
static struct zkl_bundle_member members[MEMBERS];

static const char *const roots[MEMBERS] = {"/a", "/b", "/c"};
static bool unlisted; /* they may be granted by their numbers */

static struct zkl_path *path_of(struct script *s, size_t i)
{
    return script_path(s, roots[i]);
}

/* The script's first contenders, at /a, /b, ...; views: of these paths. */
static void begin_with(struct script *s, size_t count, bool views)
{
    group = (struct zkl_bundle){.count = count, .members = members};
    for (size_t i = 0; i < count; i++) {
        members[i] = (struct zkl_bundle_member){
            .contender = &s->contenders[i],
            .lock_request = {
                .path = path_of(s, i), .data = "us", .views = views, .unlisted = unlisted}};
        s->live[i] = true;
    }
    zkl_bundle_acquire(&s->core, s->core.now, &group);
}

static void begin(struct script *s, size_t count)
{
    begin_with(s, count, false);
}

/* The names of the first two nodes, with these digits. */
static void name_two(const struct script *s, char names[2][ZKL_NODE_NAME_MAX + 1],
                     const char *first, const char *second)
{
    for (int i = 0; i < 2; i++) {
        const struct zkl_contender_machine *m = &s->contenders[i].machine;
        zkl_name_prefix(&m->lock_request.naming, m->guid, names[i]);
        strcat(names[i], i == 0 ? first : second);
    }
}

/* Goal: a transaction with an unknown outcome may have made the nodes: the member to blame searches
 * for its own, though its list had never been sent, and deletes it. Method: an odd answer that
 * names the first; found by the GUID. */
static void a_create_of_unknown_outcome_is_looked_for(void **state)
{
    struct script *s = script_connected();
    (void)state;
    begin(s, 2);
    script_reply(s, ZKL_REQ_CREATE_ALL, (struct zkl_reply){.answer = ZKL_ANSWER_OTHER});
    script_expect(s, "[     0] #1 NEW -> QUEUEING: started\n"
                     "[     0] #2 NEW -> QUEUEING: started\n"
                     "  > create all /a/G1- /b/G2-\n"
                     "[     0] #1 QUEUEING -> LEAVING: odd answer\n"
                     "  > heartbeat /a\n"
                     "  > list /a\n"
                     "[     0] #2 QUEUEING -> QUEUEING: another one's create failed\n"
                     "[     0] #2 QUEUEING -> LEAVING: stopped\n"
                     "[     0] #2 LEAVING -> ENDED: never created\n"
                     "  #1 failed EPROTO: creating the node\n"
                     "  #2 failed EPROTO: creating the node\n"
                     "  #2 ended\n");
    script_answer(s, ZKL_REQ_CHECK_ALL, ZKL_ANSWER_OK);
    script_listed(s, "7:6 1:7");
    script_answer(s, ZKL_REQ_DELETE, ZKL_ANSWER_OK);
    script_expect(s, "  > delete /a/G1-0000000007\n"
                     "[     0] #1 LEAVING -> ENDED: deleted\n"
                     "  #1 ended\n");
    script_free(s);
}

/* Goal: the client searches for nodes with an unknown zxid as for those of a lost create, and the
 * lists that were sent along do not count any more. Method: the lists stay unanswered; another
 * link, and both are found. */
static void a_lost_zxid_makes_the_lists_worthless(void **state)
{
    struct script *s = script_connected();
    const char *const made[] = {"A", "B"};
    enum zkl_request_kind kind;
    (void)state;
    begin(s, 2);
    script_reply(s, ZKL_REQ_CREATE_ALL, (struct zkl_reply){.children = made, .child_count = 2});
    script_forget(s);
    script_answer(s, ZKL_REQ_STAT, ZKL_ANSWER_LINK);
    script_expect(s, "[     0] session CONNECTED -> CONNECTED: a server would not do something "
                     "now: asked again later\n"
                     "[     0] #1 QUEUEING -> RECOVERING: create unanswered\n"
                     "[     0] #2 QUEUEING -> RECOVERING: create unanswered\n");
    assert_false(script_next(s, &kind));
    script_down(s);
    script_up(s, SCRIPT_SESSION);
    script_forget(s);
    script_answer(s, ZKL_REQ_CHECK_ALL, ZKL_ANSWER_OK);
    script_listed(s, "1:7");
    script_answer(s, ZKL_REQ_CHECK_ALL, ZKL_ANSWER_OK);
    script_listed(s, "2:8");
    script_statted(s, SCRIPT_SESSION, 100);
    script_statted(s, SCRIPT_SESSION, 100);
    script_listed(s, "1:7");
    script_listed(s, "2:8");
    assert_true(script_has(s, "#1 granted 100\n  #2 granted 100"));
    script_unlock(s, 1);
    script_unlock(s, 2);
    script_answer(s, ZKL_REQ_DELETE, ZKL_ANSWER_OK);
    script_answer(s, ZKL_REQ_DELETE, ZKL_ANSWER_OK);
    script_free(s);
}

/* Goal: a list that a member asked for by itself is its own, whatever the others wait for
 * meanwhile. Method: one's node was made alone, by a server without create2, and is listed while
 * the others' creates and the list that should show their zxid are out. */
static void a_list_of_ones_own_is_not_the_others(void **state)
{
    struct script *s = script_connected();
    (void)state;
    begin_with(s, MEMBERS, true);
    s->core.opcodes[ZKL_OPCODE_CREATE2].unknown = true;
    script_down(s);
    script_up(s, SCRIPT_SESSION);
    for (int i = 0; i < MEMBERS; i++) {
        script_answer(s, ZKL_REQ_CHECK_ALL, ZKL_ANSWER_OK);
        script_listed(s, "");
    }
    script_created_plain(s, 7);
    script_answer(s, ZKL_REQ_CREATE, ZKL_ANSWER_NONODE);
    script_answer(s, ZKL_REQ_CREATE, ZKL_ANSWER_NONODE);
    script_statted(s, SCRIPT_SESSION, 100);
    path_of(s, 1)->view = (struct zkl_children_view){.link = s->core.link, .calm = true};
    script_answer(s, ZKL_REQ_MAKE, ZKL_ANSWER_OK);
    script_answer(s, ZKL_REQ_MAKE, ZKL_ANSWER_OK);
    assert_true(script_has(s, "  > list /b\n"));
    assert_int_equal(s->contenders[0].machine.state, ZKL_CONTENDER_LISTING);
    script_listed(s, "4:7");
    assert_int_equal(s->contenders[0].machine.state, ZKL_CONTENDER_CONFIRMING);
    assert_true(s->contenders[1].transaction->ahead);
    zkl_bundle_stop(&s->core, s->core.now, &group, ZKL_ECANCELED);
    script_close(s);
    script_free(s);
}

/* Goal: a transaction that failed without a part to blame has failed for all, and each member
 * searches for its own node. Method: an odd answer that names a part behind the last. */
static void a_failure_that_names_nobody_is_everybodys(void **state)
{
    struct script *s = script_connected();
    (void)state;
    begin(s, 2);
    script_forget(s);
    script_reply(s, ZKL_REQ_CREATE_ALL,
                 (struct zkl_reply){.answer = ZKL_ANSWER_OTHER, .failed_check = 2});
    script_expect(s, "[     0] #1 QUEUEING -> LEAVING: odd answer\n"
                     "  > heartbeat /a\n"
                     "  > list /a\n"
                     "[     0] #2 QUEUEING -> LEAVING: odd answer\n"
                     "  > heartbeat /b\n"
                     "  > list /b\n"
                     "  #1 failed EPROTO: creating the node\n"
                     "  #2 failed EPROTO: creating the node\n");
    for (int i = 0; i < 2; i++) {
        script_answer(s, ZKL_REQ_CHECK_ALL, ZKL_ANSWER_OK);
        script_listed(s, "");
    }
    script_free(s);
}

/* Two that are held, from 100 ms on. */
static struct script *holding_two(int64_t lease_ns)
{
    struct script *s = script_connected();
    char names[2][ZKL_NODE_NAME_MAX + 1];
    const char *const made[] = {names[0], names[1]};
    begin(s, 2);
    group.lease_ns = lease_ns;
    name_two(s, names, "0000000001", "0000000002");
    script_reply(s, ZKL_REQ_CREATE_ALL, (struct zkl_reply){.children = made, .child_count = 2});
    script_statted(s, SCRIPT_SESSION, 100);
    script_listed(s, "1:1");
    script_at(s, 100);
    script_listed(s, "2:2");
    script_forget(s);
    return s;
}

/* --- the zxid from a list ------------------------------------------------- */

/* Two are being made, and their lists are out: at /a no other client had changed anything, ten
 * changes ago, and we one thing since. */
static struct script *making_two_at_calm_paths(void)
{
    struct script *s = script_connected();
    path_of(s, 0)->view = (struct zkl_children_view){
        .link = s->core.link, .czxid = 5, .cversion = 10, .own = 1, .calm = true};
    begin_with(s, 2, true);
    assert_true(script_has(s, "  > create all /a/G1- /b/G2-\n  > list /a\n  > list /b\n"));
    script_forget(s);
    return s;
}

/* The list of /a, after this many changes of its children, the last by this transaction. */
static void answer_creates_and_first_list(struct script *s, int64_t root, int32_t changes,
                                          int64_t last)
{
    char names[2][ZKL_NODE_NAME_MAX + 1];
    const char *const made[] = {names[0], names[1]};
    name_two(s, names, "0000000007", "0000000007");
    script_reply(s, ZKL_REQ_CREATE_ALL, (struct zkl_reply){.children = made, .child_count = 2});
    script_reply(
        s, ZKL_REQ_LIST,
        (struct zkl_reply){
            .children = made, .child_count = 1, .czxid = root, .cversion = changes, .pzxid = last});
}

/* Goal: if a path's children were changed last by the creating transaction, its list shows that
 * one's zxid, and all are granted in one round trip. Method: ten changes, one of ours, and the
 * create. */
static void a_calm_path_tells_the_zxid_of_all(void **state)
{
    struct script *s = making_two_at_calm_paths();
    (void)state;
    answer_creates_and_first_list(s, 5, 12, 777);
    script_listed(s, "2:7");
    assert_true(script_has(s, "#1 granted 777\n  #2 granted 777"));
    assert_false(script_has(s, "  > "));
    script_unlock(s, 1);
    script_unlock(s, 2);
    script_answer(s, ZKL_REQ_DELETE, ZKL_ANSWER_OK);
    script_answer(s, ZKL_REQ_DELETE, ZKL_ANSWER_OK);
    script_free(s);
}

/* Goal: a zxid that may be another's is not taken. Method: one change more; another node of that name;
 * both times all is asked for behind the names. */
static void a_path_that_others_change_does_not(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct script *s = making_two_at_calm_paths();
        answer_creates_and_first_list(s, i == 0 ? 5 : 6, i == 0 ? 13 : 12, 778);
        assert_true(script_has(s, "  > stat /a/G1-0000000007\n  > list /a\n  > list /b\n"));
        script_statted(s, SCRIPT_SESSION, 777);
        script_listed(s, "1:7");
        script_listed(s, "2:7");
        assert_true(script_has(s, "#1 granted 777\n  #2 granted 777"));
        script_unlock(s, 1);
        script_unlock(s, 2);
        script_answer(s, ZKL_REQ_DELETE, ZKL_ANSWER_OK);
        script_answer(s, ZKL_REQ_DELETE, ZKL_ANSWER_OK);
        script_free(s);
    }
}

/* Two in one transaction with these numbers, the list of /a after this many changes, and that of /b
 * if it was sent. */
static void make_two(struct script *s, const char *first, const char *second, int32_t changes)
{
    char names[2][ZKL_NODE_NAME_MAX + 1];
    const char *const made[] = {names[0], names[1]};
    begin_with(s, 2, true);
    bool listed = script_has(s, "  > list /b\n");
    name_two(s, names, first, second);
    script_reply(s, ZKL_REQ_CREATE_ALL, (struct zkl_reply){.children = made, .child_count = 2});
    for (int i = 0; i < 1 + listed; i++)
        script_reply(s, ZKL_REQ_LIST,
                     (struct zkl_reply){.children = &made[i],
                                        .child_count = 1,
                                        .czxid = 5,
                                        .cversion = changes,
                                        .pzxid = 700 + changes});
}

static void unmake_two(struct script *s)
{
    struct zkl_contender *list[] = {&s->contenders[0], &s->contenders[1]};
    zkl_bundle_release(&s->core, s->core.now, list, 2);
    script_answer(s, ZKL_REQ_DELETE_ALL, ZKL_ANSWER_OK);
    assert_false(s->live[0] || s->live[1]);
    script_forget(s);
}

/* Two that have been locked in a row; no other contender came between, and their paths are
 * watched. */
static struct script *two_alone(void)
{
    struct script *s = script_connected();
    s->core.unlisted_from = 1;
    path_of(s, 0)->view = (struct zkl_children_view){
        .link = s->core.link, .czxid = 5, .cversion = 10, .own = 1, .calm = true};
    unlisted = true;
    make_two(s, "0000000001", "0000000001", 12);
    unmake_two(s);
    make_two(s, "0000000002", "0000000002", 14);
    assert_true(script_has(s, "  > watch /a\n") && script_has(s, "  > watch /b\n"));
    script_answer(s, ZKL_REQ_WATCH, ZKL_ANSWER_OK);
    script_answer(s, ZKL_REQ_WATCH, ZKL_ANSWER_OK);
    unmake_two(s);
    return s;
}

static void end_two(struct script *s)
{
    for (int i = 0; i < 2; i++) {
        zkl_unlisted_end(&s->core, s->core.now, &path_of(s, i)->unlisted);
        script_answer(s, ZKL_REQ_UNWATCH, ZKL_ANSWER_OK);
    }
    unlisted = false;
    script_free(s);
}

/* Goal: if no other contender came between, two transactions and one list serve all members.
 * Method: the list, which is sent for one as it shows the transaction, shows it as the last
 * change. */
static void one_list_does_for_all_that_are_alone(void **state)
{
    struct script *s = two_alone();
    (void)state;
    make_two(s, "0000000003", "0000000003", 16);
    assert_true(script_has(s, "  > create all /a/G5- /b/G6-\n  > list /a\n"));
    assert_false(script_has(s, "  > list /b\n"));
    assert_int_equal(s->contenders[0].machine.czxid, 716);
    assert_int_equal(s->contenders[1].machine.czxid, 716);
    assert_int_equal(group.state, ZKL_BUNDLE_GRANTED);
    unmake_two(s);
    end_two(s);
}

/* Goal: a member that another contender came before must list, the others need not. Method: its
 * number says so. */
static void who_is_not_alone_is_listed(void **state)
{
    struct script *s = two_alone();
    (void)state;
    make_two(s, "0000000003", "0000000004", 16);
    assert_int_equal(s->contenders[0].machine.state, ZKL_CONTENDER_HOLDING);
    assert_int_equal(s->contenders[1].machine.state, ZKL_CONTENDER_LISTING);
    assert_true(script_has(s, "  > list /b\n"));
    script_listed(s, "6:4");
    assert_int_equal(group.state, ZKL_BUNDLE_GRANTED);
    unmake_two(s);
    end_two(s);
}

/* Goal: a member that needs a list gets one, even if others are granted without. Method: a mutex,
 * whose number suffices, and a named lock at the same path; nothing is known of the path's calm. */
static void a_list_that_nobody_sends_is_not_shared(void **state)
{
    char names[2][ZKL_NODE_NAME_MAX + 1];
    const char *const made[] = {names[0], names[1]};
    struct script *s = two_alone();
    (void)state;
    group = (struct zkl_bundle){.count = 2, .members = members};
    for (int i = 0; i < 2; i++) {
        members[i].lock_request = (struct zkl_lock_request){
            .path = script_path(s, "/a"), .data = "us", .unlisted = i == 0};
        s->live[i] = true;
    }
    members[1].lock_request.naming = (struct zkl_naming){ZKL_ROLE_LOCK, ZKL_NAMES_NAMED, "x"};
    zkl_bundle_acquire(&s->core, s->core.now, &group);
    name_two(s, names, "0000000003", "0000000004");
    script_reply(s, ZKL_REQ_CREATE_ALL, (struct zkl_reply){.children = made, .child_count = 2});
    assert_true(script_has(s, "  > list /a\n"));
    script_statted(s, SCRIPT_SESSION, 777);
    assert_int_equal(s->contenders[0].machine.state, ZKL_CONTENDER_HOLDING);
    script_reply(s, ZKL_REQ_LIST, (struct zkl_reply){.children = made, .child_count = 2});
    assert_int_equal(group.state, ZKL_BUNDLE_GRANTED);
    unmake_two(s);
    end_two(s);
}

/* Goal: without a zxid there is no token, whatever the numbers say. Method: others change /a, and the node that is asked
 * for its zxid is not there, nor is the other. */
static void a_number_is_no_token(void **state)
{
    struct script *s = two_alone();
    (void)state;
    make_two(s, "0000000003", "0000000003", 17);
    script_answer(s, ZKL_REQ_STAT, ZKL_ANSWER_NONODE);
    script_answer(s, ZKL_REQ_STAT, ZKL_ANSWER_NONODE);
    for (int i = 0; i < 2; i++)
        assert_int_equal(s->contenders[i].machine.state, ZKL_CONTENDER_RECOVERING);
    zkl_bundle_stop(&s->core, s->core.now, &group, ZKL_ECANCELED);
    while (s->live[0] || s->live[1])
        script_answer(s, script_has(s, "> delete all") ? ZKL_REQ_DELETE_ALL : ZKL_REQ_DELETE,
                      ZKL_ANSWER_OK);
    end_two(s);
}

/* Goal: a member whose node was deleted before its transaction's zxid was read is not granted by
 * its number: it queues again. Method: others change /a; the node there, which is read first, does
 * not exist any more. */
static void a_number_without_a_node_grants_nothing(void **state)
{
    struct script *s = two_alone();
    (void)state;
    make_two(s, "0000000003", "0000000003", 17);
    script_answer(s, ZKL_REQ_STAT, ZKL_ANSWER_NONODE);
    script_statted(s, SCRIPT_SESSION, 777);
    assert_int_equal(s->contenders[0].machine.state, ZKL_CONTENDER_LISTING);
    assert_int_equal(s->contenders[1].machine.state, ZKL_CONTENDER_HOLDING);
    script_listed(s, "");
    assert_true(script_has(s, "  > create /a/G7-\n"));
    script_created(s, 5);
    script_listed(s, "7:5");
    assert_int_equal(group.state, ZKL_BUNDLE_GRANTED);
    unmake_two(s);
    end_two(s);
}

/* Goal: a list that is out for the view alone answers nothing else. Method: it is answered when both are held, and
 * the first one waits for another list, as one that is handed on does. */
static void a_list_for_the_view_is_no_other(void **state)
{
    struct script *s = two_alone();
    (void)state;
    make_two(s, "0000000003", "0000000003", 17);
    script_statted(s, SCRIPT_SESSION, 777);
    assert_int_equal(group.state, ZKL_BUNDLE_GRANTED);
    s->contenders[0].machine.list_out = true;
    script_listed(s, "5:3");
    assert_true(s->contenders[0].machine.list_out);
    s->contenders[0].machine.list_out = false;
    unmake_two(s);
    end_two(s);
}

/* Goal: a transaction that failed leaves no list behind that counts. Method: a root is missing. */
static void lists_of_a_failed_transaction_are_forgotten(void **state)
{
    struct script *s = making_two_at_calm_paths();
    enum zkl_request_kind oldest;
    (void)state;
    script_reply(s, ZKL_REQ_CREATE_ALL,
                 (struct zkl_reply){.answer = ZKL_ANSWER_NONODE, .failed_check = 1});
    assert_true(script_has(s, "#2 QUEUEING -> MAKING: no root\n"));
    assert_true(script_next(s, &oldest));
    assert_int_equal(oldest, ZKL_REQ_MAKE);
    script_forget(s);
    script_close(s);
    script_free(s);
}

static void release_two(struct script *s)
{
    struct zkl_contender *const held[] = {&s->contenders[0], &s->contenders[1]};
    zkl_bundle_release(&s->core, s->core.now, held, 2);
}

/* Goal: what was acquired as one is given back in one transaction, also where it is only two. */
static void two_are_given_back_at_once(void **state)
{
    struct script *s = holding_two(0);
    (void)state;
    release_two(s);
    script_expect(s, "[   100] #2 HOLDING -> RELEASING: unlocked\n"
                     "[   100] #1 HOLDING -> RELEASING: unlocked\n"
                     "  > delete all /b/G2-0000000002 /a/G1-0000000001\n");
    script_answer(s, ZKL_REQ_DELETE_ALL, ZKL_ANSWER_OK);
    script_free(s);
}

/* Goal: nothing is asked for without a link, not even what became due by its loss. Method: the third
 * one's create waits for the others' transaction, which is answered by the lost link. */
static void a_create_due_without_a_link_is_not_sent(void **state)
{
    struct script *s = script_connected();
    (void)state;
    begin(s, 3);
    script_reply(s, ZKL_REQ_CREATE_ALL,
                 (struct zkl_reply){.answer = ZKL_ANSWER_EXISTS, .failed_check = 2});
    script_answer(s, ZKL_REQ_LIST_LOCK_PATH, ZKL_ANSWER_NONODE);
    script_forget(s);
    script_down(s);
    script_expect(s, "[     0] session CONNECTED -> SUSPENDED: link lost\n"
                     "  session: link down\n"
                     "[     0] #1 QUEUEING -> RECOVERING: create unanswered\n"
                     "[     0] #2 QUEUEING -> RECOVERING: create unanswered\n"
                     "[     0] #3 QUEUEING -> RECOVERING: create unanswered\n");
    zkl_bundle_stop(&s->core, s->core.now, &group, ZKL_ECANCELED);
    script_event(s, ZKL_SE_EXPIRED);
    script_free(s);
}

/* Goal: the time of a lease counts from the grant of all, for all. */
static void a_lease_begins_when_all_are_held(void **state)
{
    struct script *s = holding_two(500 * INT64_C(1000000));
    (void)state;
    for (int i = 0; i < 2; i++)
        assert_true(s->contenders[i].machine.lease_end_boot ==
                    s->core.now.boot_ns + 500 * INT64_C(1000000));
    release_two(s);
    script_answer(s, ZKL_REQ_DELETE_ALL, ZKL_ANSWER_OK);
    script_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_create_of_unknown_outcome_is_looked_for),
        cmocka_unit_test(a_lost_zxid_makes_the_lists_worthless),
        cmocka_unit_test(a_list_of_ones_own_is_not_the_others),
        cmocka_unit_test(a_failure_that_names_nobody_is_everybodys),
        cmocka_unit_test(a_calm_path_tells_the_zxid_of_all),
        cmocka_unit_test(a_path_that_others_change_does_not),
        cmocka_unit_test(one_list_does_for_all_that_are_alone),
        cmocka_unit_test(who_is_not_alone_is_listed),
        cmocka_unit_test(a_list_that_nobody_sends_is_not_shared),
        cmocka_unit_test(a_number_is_no_token),
        cmocka_unit_test(a_number_without_a_node_grants_nothing),
        cmocka_unit_test(a_list_for_the_view_is_no_other),
        cmocka_unit_test(lists_of_a_failed_transaction_are_forgotten),
        cmocka_unit_test(two_are_given_back_at_once),
        cmocka_unit_test(a_lease_begins_when_all_are_held),
        cmocka_unit_test(a_create_due_without_a_link_is_not_sent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
