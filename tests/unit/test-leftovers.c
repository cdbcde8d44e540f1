/* SPDX-License-Identifier: Apache-2.0
 * Nodes of a client that belong to no place of it (src/core/leftovers.c): a create that a server
 * carries out behind everything that the client asked for since, and the nodes of a session that a
 * server has ended for its client and not for itself. */
#include <zklock/zklock.h>

#include "script.h"

/* A create is given up, which no list over the next link has shown. */
static struct script *late_create(void)
{
    struct script *s = script_connected();
    script_lock(s, "/r");
    script_down(s);
    script_stop(s, 1, ZKL_ECANCELED);
    script_up(s, SCRIPT_SESSION);
    script_answer(s, ZKL_REQ_CHECK_ALL, ZKL_ANSWER_OK);
    script_listed(s, "");
    script_forget(s);
    return s;
}

/* Goal: a create that is carried out late leaves no node, though nobody of this client is there any more.
 * Method: the list a session timeout later shows it. */
static void a_late_create_is_looked_for_once_more(void **state)
{
    struct script *s = late_create();
    (void)state;
    script_at(s, 2999);
    assert_false(script_has(s, "list"));
    script_at(s, 3000);
    assert_true(script_has(s, "  > heartbeat /r\n  > list /r\n"));
    script_answer(s, ZKL_REQ_CHECK_ALL, ZKL_ANSWER_OK);
    script_listed(s, "5:8 1:9");
    assert_true(script_has(s, "  > delete all /r/G1-0000000009\n"));
    script_answer(s, ZKL_REQ_DELETE_ALL, ZKL_ANSWER_OK);
    script_forget(s);
    script_at(s, 60000);
    assert_false(script_has(s, "list") || script_has(s, "delete"));
    script_free(s);
}

/* Goal: whoever of this client lists the path finds it sooner. Method: another one locks there; its list
 * has the node before its own. */
static void a_late_create_is_deleted_on_sight(void **state)
{
    struct script *s = late_create();
    (void)state;
    script_lock(s, "/r");
    script_created(s, 10);
    script_forget(s);
    script_listed(s, "1:9 2:10");
    assert_true(script_has(s, "  > delete all /r/G1-0000000009\n"));
    script_down(s);
    script_forget(s);
    script_up(s, SCRIPT_SESSION); /* the delete may be lost: again, before anything else */
    assert_true(script_has(s, "  session: link up\n  > delete all /r/G1-0000000009\n"));
    script_answer(s, ZKL_REQ_DELETE_ALL, ZKL_ANSWER_NONODE);
    script_forget(s);
    script_at(s, 60000);
    assert_false(script_has(s, "delete"));
    script_event(s, ZKL_SE_EXPIRED);
    script_stop(s, 2, ZKL_ECANCELED);
    script_free(s);
}

/* Goal: a hold's node outlives the session for as long as its owner may count on the window that it saw
 * (15/16 of the timeout). Method: a server that ends the session early, a waiter and a holder. */
static void a_holders_node_stays_until_its_window_is_over(void **state)
{
    struct script *s = script_connected();
    (void)state;
    script_hold(s, "/r", 7);
    script_wait(s, "/s", 9, "5:7");
    script_down(s);
    script_event(s, ZKL_SE_EXPIRED);
    script_forget(s);
    script_up(s, SCRIPT_SESSION + 1);
    assert_true(script_has(s, "  > delete all /s/G2-0000000009\n"));
    script_answer(s, ZKL_REQ_DELETE_ALL, ZKL_ANSWER_OK);
    script_at(s, 2812);
    assert_false(script_has(s, "/r/G1"));
    script_at(s, 2813);
    assert_true(script_has(s, "  > delete all /r/G1-0000000007\n"));
    script_event(s, ZKL_SE_EXPIRED);
    script_unlock(s, 1);
    script_stop(s, 2, ZKL_ECANCELED);
    script_free(s);
}

/* Goal: where the session's end has removed the nodes, that costs one request. Method: its answer blames
 * the first. */
static void nodes_that_went_with_the_session_cost_one_request(void **state)
{
    struct script *s = script_connected();
    (void)state;
    script_wait(s, "/r", 9, "5:7");
    script_wait(s, "/s", 9, "6:7");
    script_event(s, ZKL_SE_EXPIRED);
    script_up(s, SCRIPT_SESSION + 1);
    assert_true(script_has(s, "  > delete all /r/G1-0000000009 /s/G2-0000000009\n"));
    script_stop(s, 1, ZKL_ECANCELED);
    script_stop(s, 2, ZKL_ECANCELED);
    script_answer(s, ZKL_REQ_DELETE_ALL, ZKL_ANSWER_NONODE);
    script_forget(s);
    script_at(s, 20000);
    assert_false(script_has(s, "delete all"));
    script_event(s, ZKL_SE_EXPIRED);
    script_free(s);
}

/* Goal: of nodes that were seen those are deleted again that the answer does not blame. Method: two late creates. */
static void what_was_seen_is_deleted_until_it_is_gone(void **state)
{
    struct script *s = script_connected();
    (void)state;
    script_lock(s, "/r");
    script_lock(s, "/r");
    script_down(s);
    script_stop(s, 1, ZKL_ECANCELED);
    script_stop(s, 2, ZKL_ECANCELED);
    script_up(s, SCRIPT_SESSION);
    for (int i = 0; i < 2; i++) {
        script_answer(s, ZKL_REQ_CHECK_ALL, ZKL_ANSWER_OK);
        script_listed(s, "");
    }
    script_at(s, 3000);
    script_answer(s, ZKL_REQ_CHECK_ALL, ZKL_ANSWER_OK);
    script_listed(s, "1:9 2:10");
    assert_true(script_has(s, "  > delete all /r/G1-0000000009 /r/G2-0000000010\n"));
    script_forget(s);
    script_answer(s, ZKL_REQ_DELETE_ALL, ZKL_ANSWER_NONODE); /* of the first */
    assert_true(script_has(s, "  > delete all /r/G2-0000000010\n"));
    assert_int_equal(s->core.leftovers.count, 1);
    script_answer(s, ZKL_REQ_DELETE_ALL, ZKL_ANSWER_OK);
    assert_int_equal(s->core.leftovers.count, 0);
    script_forget(s);
    script_at(s, 60000);
    assert_false(script_has(s, "delete"));
    script_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_late_create_is_looked_for_once_more),
        cmocka_unit_test(a_late_create_is_deleted_on_sight),
        cmocka_unit_test(a_holders_node_stays_until_its_window_is_over),
        cmocka_unit_test(nodes_that_went_with_the_session_cost_one_request),
        cmocka_unit_test(what_was_seen_is_deleted_until_it_is_gone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
