/* SPDX-License-Identifier: Apache-2.0
 * Heartbeats when the server denies the check of some node, on a script. */
#include <zklock/zklock.h>

#include "script.h"

static void deny(struct script *s, size_t check)
{
    script_reply(s, ZKL_REQ_CHECK_ALL,
                 (struct zkl_reply){.answer = ZKL_ANSWER_NOAUTH, .failed_check = check});
}

static void expect_window(const struct script *s, bool open)
{
    assert_int_equal(zkl_session_window_end(&s->core.session) > s->core.now.boot_ns, open);
}

static void end(struct script *s, int count)
{
    for (int i = 1; i <= count; i++) {
        script_unlock(s, i);
        script_answer(s, ZKL_REQ_DELETE, ZKL_ANSWER_OK);
    }
    script_free(s);
}

/* Goal: a node that may not be checked costs its own hold the proof and no other one, and its hold is back when
 * it may be checked again. Method: of two holds the second's check is denied, for longer than the session's timeout,
 * and then not any more. */
static void a_node_that_may_not_be_checked_is_left_out(void **state)
{
    struct script *s = script_connected();
    (void)state;
    script_hold(s, "/r", 7);
    script_hold(s, "/q", 3);
    script_at(s, 750);
    script_forget(s);
    deny(s, 1);
    script_expect(s, "  #2 SUSPECT (unchecked)\n"
                     "  > heartbeat /r/G1-0000000007\n");
    script_answer(s, ZKL_REQ_CHECK_ALL, ZKL_ANSWER_OK);
    for (int i = 1; i <= 9; i++) {
        script_at(s, 750 + 375 * i);
        script_answer(s, ZKL_REQ_CHECK_ALL, ZKL_ANSWER_OK);
        deny(s, 0);
        script_expect(s, "  > heartbeat /r/G1-0000000007\n"
                         "  > heartbeat /q/G2-0000000003\n");
    }
    expect_window(s, true);
    script_at(s, 4500);
    script_expect(s, "  > heartbeat /r/G1-0000000007\n"
                     "  > heartbeat /q/G2-0000000003\n");
    script_answer(s, ZKL_REQ_CHECK_ALL, ZKL_ANSWER_OK);
    script_answer(s, ZKL_REQ_CHECK_ALL, ZKL_ANSWER_OK);
    script_at(s, 4875);
    script_expect(s, "  #2 HELD\n"
                     "  > heartbeat /r/G1-0000000007 /q/G2-0000000003\n");
    script_answer(s, ZKL_REQ_CHECK_ALL, ZKL_ANSWER_OK);
    end(s, 2);
}

/* Goal: the end of a hold whose node could not be checked is in doubt, though the session's window
 * is open: no answer has shown whether the node existed. Method: its unlock is posted, unanswered,
 * denied; and answered. */
static void an_unchecked_hold_is_in_doubt(void **state)
{
    static const struct {
        bool posted;
        enum zkl_answer answer;
        const char *said;
    } ends[] = {{true, ZKL_ANSWER_OK, "  #2 released EDOUBT"},
                {false, ZKL_ANSWER_NOMEM, "  #2 released EDOUBT"},
                {false, ZKL_ANSWER_NOAUTH, "  #2 released EDOUBT"},
                {false, ZKL_ANSWER_OK, "  #2 released OK"}};
    (void)state;
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        struct script *s = script_connected();
        script_hold(s, "/r", 7);
        script_hold(s, "/q", 3);
        script_contender(s, 2)->machine.lock_request.posted = ends[i].posted;
        script_at(s, 750);
        deny(s, 1);
        script_answer(s, ZKL_REQ_CHECK_ALL, ZKL_ANSWER_OK);
        expect_window(s, true);
        script_forget(s);
        script_unlock(s, 2);
        script_answer(s, ZKL_REQ_DELETE, ends[i].answer);
        assert_true(script_has(s, ends[i].said));
        script_unlock(s, 1);
        script_close(s);
        script_free(s);
    }
}

/* Goal: where no node may be checked, no heartbeat goes out and nothing is proved; unlock deletes all the same.
 * Method: the only hold's check is denied, for longer than the session's timeout. */
static void without_a_node_to_check_nothing_is_proved(void **state)
{
    struct script *s = script_connected();
    (void)state;
    script_hold(s, "/r", 7);
    script_at(s, 375);
    script_forget(s);
    deny(s, 0);
    script_at(s, 749);
    script_expect(s, "  #1 SUSPECT (unchecked)\n");
    script_at(s, 750);
    script_expect(s, "  > heartbeat /r/G1-0000000007\n");
    for (int i = 2; i <= 10; i++) {
        deny(s, 0);
        script_at(s, 375 + 375 * i);
        script_expect(s, "  > heartbeat /r/G1-0000000007\n");
    }
    expect_window(s, false);
    deny(s, 0);
    script_unlock(s, 1);
    script_expect(s, "[  4125] #1 HOLDING -> RELEASING: unlocked\n"
                     "  > delete /r/G1-0000000007\n");
    script_answer(s, ZKL_REQ_DELETE, ZKL_ANSWER_OK);
    script_expect(s, "[  4125] #1 RELEASING -> ENDED: deleted\n"
                     "  #1 released OK\n"
                     "  #1 ended\n");
    script_free(s);
}

/* Goal: of several such nodes each is tried in its turn, and each is back as soon as it may be checked. Method:
 * three are denied one after the other; the first two are tried in vain, and then the last two are not denied any more. */
static void nodes_that_may_not_be_checked_are_tried_in_turn(void **state)
{
    struct script *s = script_connected();
    (void)state;
    script_hold(s, "/p", 1);
    script_hold(s, "/q", 2);
    script_hold(s, "/r", 3);
    script_at(s, 375);
    script_forget(s);
    deny(s, 0);
    deny(s, 0);
    deny(s, 0);
    script_at(s, 750);
    script_expect(s, "  #1 SUSPECT (unchecked)\n"
                     "  > heartbeat /q/G2-0000000002 /r/G3-0000000003\n"
                     "  #2 SUSPECT (unchecked)\n"
                     "  > heartbeat /r/G3-0000000003\n"
                     "  #3 SUSPECT (unchecked)\n"
                     "  > heartbeat /p/G1-0000000001 /q/G2-0000000002 /r/G3-0000000003\n");
    deny(s, 0);
    script_at(s, 1125);
    script_expect(s, "  > heartbeat /q/G2-0000000002 /r/G3-0000000003 /p/G1-0000000001\n");
    deny(s, 2); /* the two before it were fine */
    script_expect(s, "  #2 HELD\n"
                     "  #3 HELD\n"
                     "  > heartbeat /q/G2-0000000002\n" /* apart: three have failed in a row */
                     "  > heartbeat /r/G3-0000000003\n");
    script_answer(s, ZKL_REQ_CHECK_ALL, ZKL_ANSWER_OK);
    script_answer(s, ZKL_REQ_CHECK_ALL, ZKL_ANSWER_OK);
    script_at(s, 1500);
    script_expect(s, "  > heartbeat /q/G2-0000000002 /r/G3-0000000003\n"
                     "  > heartbeat /p/G1-0000000001\n");
    script_answer(s, ZKL_REQ_CHECK_ALL, ZKL_ANSWER_OK);
    script_missing(s, 0);
    script_expect(s, "[  1500] #1 HOLDING -> LOSTHOLD: node deleted\n"
                     "  #1 LOST (node deleted)\n");
    script_unlock(s, 1);
    script_unlock(s, 2);
    script_unlock(s, 3);
    script_answer(s, ZKL_REQ_DELETE, ZKL_ANSWER_OK);
    script_answer(s, ZKL_REQ_DELETE, ZKL_ANSWER_OK);
    script_free(s);
}

static int heartbeats_out(const struct script *s)
{
    int out = 0;
    for (int i = 0; i < ZKL_HEARTBEATS_MAX; i++)
        out += s->core.heartbeats[i].pending.id != 0;
    return out;
}

/* Each node but one is denied: the answer names the first such. */
static void answer_heartbeat(struct script *s, int good)
{
    const struct script_request *request = s->requests;
    const struct zkl_heartbeat *heartbeat = s->core.heartbeats;
    size_t denied = ZKL_HEARTBEAT_CHECKS_MAX;
    while (request->kind != ZKL_REQ_CHECK_ALL)
        request++;
    while (heartbeat->pending.id != request->id)
        heartbeat++;
    for (const struct zkl_contender *c = s->core.first; c; c = c->next) {
        if (c->heartbeat_serial == heartbeat->serial && c != script_contender(s, good) &&
            c->heartbeat_index < denied)
            denied = c->heartbeat_index;
    }
    if (denied < ZKL_HEARTBEAT_CHECKS_MAX)
        deny(s, denied);
    else
        script_answer(s, ZKL_REQ_CHECK_ALL, ZKL_ANSWER_OK);
}

/* Goal: a hold is proved in a few round trips, however many others may not be checked, and wherever it stands
 * among them. Method: of 61 holds 60 are denied; in each round trip all heartbeats under way are answered. */
static void many_bad_nodes_cost_few_round_trips(void **state)
{
    enum { HOLDS = 61, ROUND_TRIPS = 6 };
    (void)state;
    for (int good = 1; good <= HOLDS; good += 20) {
        struct script *s = script_connected();
        const int64_t *heartbeat = &s->core.session.proof.newest_proof_boot, before = *heartbeat;
        s->quiet = true;
        for (int i = 0; i < HOLDS; i++)
            script_hold(s, "/r", 7);
        script_at(s, 750);
        for (int round_trips = 0; *heartbeat < s->core.now.boot_ns; round_trips++) {
            assert_int_not_equal(round_trips, ROUND_TRIPS);
            for (int out = heartbeats_out(s); out > 0; out--)
                answer_heartbeat(s, good);
        }
        assert_true(*heartbeat > before);
        end(s, HOLDS);
    }
}

/* Goal: a contender that waits for a proof of the session with a node that may not be checked
 * learns why there is none. Method: the answer to the create comes so late that a grant needs a
 * proof, which is denied. */
static void who_can_t_be_proved_hears_why(void **state)
{
    struct script *s = script_connected();
    (void)state;
    script_lock(s, "/r");
    script_sleep_until(s, 4000);
    script_created(s, 7);
    script_listed(s, "1:7");
    script_forget(s);
    deny(s, 0);
    script_answer(s, ZKL_REQ_DELETE, ZKL_ANSWER_OK);
    script_expect(s, "[  4000] #1 CONFIRMING -> LEAVING: denied\n"
                     "  #1 failed EACCES: READ on its own node\n"
                     "  > delete /r/G1-0000000007\n"
                     "[  4000] #1 LEAVING -> ENDED: deleted\n"
                     "  #1 ended\n");
    script_free(s);
}

/* Goal: a failure that names no node blames none. Method: a heartbeat fails as a whole. */
static void a_failure_of_the_whole_is_nobody_s(void **state)
{
    struct script *s = script_connected();
    (void)state;
    script_hold(s, "/r", 7);
    script_at(s, 375);
    script_forget(s);
    deny(s, 1);
    script_expect(s, "");
    script_at(s, 375 + 3000 / 16 + 1);
    script_expect(s, "  > heartbeat /r/G1-0000000007\n");
    script_answer(s, ZKL_REQ_CHECK_ALL, ZKL_ANSWER_OK);
    end(s, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_node_that_may_not_be_checked_is_left_out),
        cmocka_unit_test(an_unchecked_hold_is_in_doubt),
        cmocka_unit_test(without_a_node_to_check_nothing_is_proved),
        cmocka_unit_test(nodes_that_may_not_be_checked_are_tried_in_turn),
        cmocka_unit_test(many_bad_nodes_cost_few_round_trips),
        cmocka_unit_test(who_can_t_be_proved_hears_why),
        cmocka_unit_test(a_failure_of_the_whole_is_nobody_s),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
