/* SPDX-License-Identifier: Apache-2.0
 *
 * A proof that is sent at p over a link shows that the leader was touched for this session at a or
 * later, where a is the later of
 *   - the sending of the newest request that was answered over the same link by
 *     p - (P + 2 D): its server had heard of the session then and reported it by p - D; had
 *     that come too late, the session would have ended by p, and the proof would have failed;
 *   - the link's start, once the link has been up for D, or if it is the session's first: the
 *     session was created, or revalidated at the leader, since.
 * From a on the leader waits for a whole timeout T. The window ends R before that. */
#include "proof.h"

#include <assert.h>

#define MS INT64_C(1000000)

static int64_t later(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* P + 2 D: this long after a request was answered the leader knows of it (a round, at most D late),
 * and a session that it had given up before that has ended (a batch, D). */
static int64_t told_after(const struct zkl_proof *proof)
{
    int64_t round = proof->tick_ns > 0 ? proof->tick_ns / 2 : proof->timeout_ns / 4;
    if (round > proof->timeout_ns / 2) /* two rounds, of observer masters, take no more */
        round = proof->timeout_ns / 2;
    return round + 2 * zkl_proof_late(proof);
}

void zkl_proof_begin(struct zkl_proof *proof)
{
    *proof = (struct zkl_proof){.tick_ns = proof->tick_ns, .link = proof->link + 1};
}

void zkl_proof_announced(struct zkl_proof *proof, int timeout_ms)
{
    int64_t announced = timeout_ms * MS;
    if (proof->timeout_ns == 0 || announced < proof->timeout_ns)
        proof->timeout_ns = announced;
}

void zkl_proof_link_up(struct zkl_proof *proof, int64_t now_boot, int64_t opened_boot, bool first)
{
    zkl_proof_link_down(proof);
    proof->up = true;
    proof->start_boot = later(opened_boot, proof->ended_boot);
    proof->settled_boot = first ? now_boot : now_boot + zkl_proof_late(proof);
}

void zkl_proof_link_down(struct zkl_proof *proof)
{
    proof->link++;
    proof->up = false;
    proof->start_boot = proof->settled_boot = proof->old_boot = 0;
    proof->first = proof->count = 0;
}

static const struct zkl_answered *answered_at(const struct zkl_proof *proof, unsigned i)
{
    return &proof->answered[(proof->first + i) % ZKL_ANSWERED_MAX];
}

/* Requests that are P + 2 D old by now need not be distinguished any more. */
static void age(struct zkl_proof *proof, int64_t now_boot)
{
    int64_t old = now_boot - told_after(proof);
    while (proof->count > 0 && answered_at(proof, 0)->at_boot <= old) {
        proof->old_boot = later(proof->old_boot, answered_at(proof, 0)->sent_boot);
        proof->first = (proof->first + 1) % ZKL_ANSWERED_MAX;
        proof->count--;
    }
}

struct zkl_stamp zkl_proof_stamp(struct zkl_proof *proof, int64_t now_boot, bool writes)
{
    struct zkl_stamp stamp = {.sent_boot = now_boot, .link = proof->link, .writes = writes};
    if (!writes || !proof->up)
        return stamp;
    age(proof, now_boot);
    stamp.proves_boot = proof->old_boot;
    if (now_boot >= proof->settled_boot)
        stamp.proves_boot = later(stamp.proves_boot, proof->start_boot);
    return stamp;
}

void zkl_proof_handed_back(struct zkl_proof *proof, struct zkl_stamp stamp)
{
    proof->ended_boot = later(proof->ended_boot, stamp.sent_boot);
}

/* Busy clients have thousands of answers in that time: those just behind another one are left
 * out. */
static void remember(struct zkl_proof *proof, int64_t now_boot, int64_t sent_boot)
{
    age(proof, now_boot);
    int64_t apart = told_after(proof) / (ZKL_ANSWERED_MAX - 2);
    if (proof->count > 0 && now_boot - answered_at(proof, proof->count - 1)->at_boot < apart)
        return;
    assert(proof->count < ZKL_ANSWERED_MAX);
    proof->answered[(proof->first + proof->count++) % ZKL_ANSWERED_MAX] =
        (struct zkl_answered){sent_boot, now_boot};
}

bool zkl_proof_answered(struct zkl_proof *proof, int64_t now_boot, struct zkl_stamp stamp,
                        bool succeeded)
{
    if (!proof->up || stamp.sent_boot == 0)
        return false;
    proof->ended_boot = later(proof->ended_boot, stamp.sent_boot);
    proof->is_known = proof->is_known || stamp.link == proof->link;
    remember(proof, now_boot, stamp.sent_boot);
    if (!succeeded || !stamp.writes || stamp.link != proof->link)
        return false;
    proof->newest_proof_boot = later(proof->newest_proof_boot, stamp.sent_boot);
    proof->touched_boot = later(proof->touched_boot, stamp.proves_boot);
    return true;
}

/* Would a proof do that is sent then and shows this touch? */
static bool is_enough(const struct zkl_proof *proof, int64_t then_boot, int64_t touched_boot)
{
    return touched_boot != 0 && then_boot < zkl_proof_fresh_end(proof, touched_boot);
}

int64_t zkl_proof_enough_at(const struct zkl_proof *proof, int64_t now_boot)
{
    int64_t settled = later(now_boot, proof->settled_boot);
    int64_t at = INT64_MAX;
    if (!proof->up)
        return at;
    if (is_enough(proof, now_boot, proof->old_boot))
        return now_boot;
    if (is_enough(proof, settled, proof->start_boot))
        at = settled;
    for (unsigned i = 0; i < proof->count; i++) {
        int64_t told = later(now_boot, answered_at(proof, i)->at_boot + told_after(proof));
        if (told < at && is_enough(proof, told, answered_at(proof, i)->sent_boot))
            return told;
    }
    return at;
}
