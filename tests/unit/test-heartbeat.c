/* SPDX-License-Identifier: Apache-2.0
 * Heartbeats when the server denies the check of some node, on a script. */
#include <zklock/zklock.h>

#include "script.h"

static void deny(struct script *s, size_t check)
{
    script_reply(s, ZKL_REQ_CHECK_ALL,
                 (struct zkl_reply){.answer = ZKL_ANSWER_NOAUTH, .failed_check = check});
}

static void end(struct script *s, int count)
{
    for (int i = 1; i <= count; i++) {
        script_unlock(s, i);
        script_answer(s, ZKL_REQ_DELETE, ZKL_ANSWER_OK);
    }
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
TEST(many_bad_nodes_cost_few_round_trips)
{
    enum { HOLDS = 61, ROUND_TRIPS = 6 };
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
