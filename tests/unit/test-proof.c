/* SPDX-License-Identifier: Apache-2.0
 * How long the session is proved: the rule of proof.c, case by case. T is 1600 ms, so that D = R =
 * 100, P = 400 and what is P + 2 D old is 600 ms old. */

#include "tests.h"

#include "core/proof.h"

#define MS INT64_C(1000000)
#define T 1600
#define D 100
#define OLD 600
#define OPENED 10000 /* when the handle was */

static struct zkl_proof connected_at(int64_t ms, bool first)
{
    struct zkl_proof p = {0};
    zkl_proof_announced(&p, T);
    zkl_proof_link_up(&p, ms * MS, OPENED * MS, first);
    return p;
}

static bool ask(struct zkl_proof *p, int64_t sent_ms, int64_t answered_ms, bool writes)
{
    struct zkl_stamp stamp = zkl_proof_stamp(p, sent_ms * MS, writes);
    return zkl_proof_answered(p, answered_ms * MS, stamp, true);
}

static bool prove(struct zkl_proof *p, int64_t sent_ms)
{
    return ask(p, sent_ms, sent_ms + 1, true);
}

static int64_t end_ms(const struct zkl_proof *p)
{
    return zkl_proof_window_end(p) / MS;
}

/* Where the leader was touched last at ms. */
static int64_t end_of(int64_t ms)
{
    return ms + T - D;
}

/* Goal: the creation of a session counts from the opening of its handle, and immediately. */
TEST(a_new_session_counts_from_the_opening)
{
    struct zkl_proof p = connected_at(OPENED + 50, true);
    assert_int_equal(end_ms(&p), 0);
    assert_true(prove(&p, OPENED + 50));
    assert_int_equal(end_ms(&p), end_of(OPENED));
}

/* Goal: a later link counts from its start, and only once it has been up for D. Method: a millisecond early,
 * and on time. */
TEST(another_link_counts_once_it_is_settled)
{
    struct zkl_proof p = connected_at(OPENED + 50, false);
    assert_true(prove(&p, OPENED + 50 + D - 1));
    assert_int_equal(end_ms(&p), 0);
    assert_int_equal(zkl_proof_heartbeat_due(&p), (OPENED + 50 + D) * MS);
    prove(&p, OPENED + 50 + D);
    assert_int_equal(end_ms(&p), end_of(OPENED));
}

/* Goal: a link's start is the sending of the newest request that had ended before, answered or handed back,
 * whenever its event is handled. */
TEST(a_link_starts_behind_what_ended_before_it)
{
    struct zkl_proof p = connected_at(OPENED + 50, true);
    ask(&p, OPENED + 700, OPENED + 710, false);
    zkl_proof_link_down(&p);
    zkl_proof_link_up(&p, (OPENED + 5000) * MS, OPENED * MS, false);
    prove(&p, OPENED + 5000 + D);
    assert_int_equal(end_ms(&p), end_of(OPENED + 700));
    zkl_proof_link_down(&p);
    struct zkl_stamp queued = zkl_proof_stamp(&p, (OPENED + 5800) * MS, false);
    zkl_proof_stamp(&p, (OPENED + 5900) * MS, false); /* that one may go over the next link */
    zkl_proof_handed_back(&p, queued);
    zkl_proof_link_up(&p, (OPENED + 6000) * MS, OPENED * MS, false);
    prove(&p, OPENED + 6000 + D);
    assert_int_equal(end_ms(&p), end_of(OPENED + 5800));
}

/* Goal: what was answered counts once its answer is P + 2 D old, from its sending. Method: a proof a
 * millisecond early, then on time. */
TEST(an_answer_counts_when_it_is_old)
{
    struct zkl_proof p = connected_at(OPENED, true);
    prove(&p, OPENED);
    ask(&p, OPENED + 1000, OPENED + 1040, false);
    prove(&p, OPENED + 1040 + OLD - 1);
    assert_int_equal(end_ms(&p), end_of(OPENED));
    prove(&p, OPENED + 1040 + OLD);
    assert_int_equal(end_ms(&p), end_of(OPENED + 1000));
}

/* Goal: a request that was sent before the link broke, and is answered over the next one, is an
 * answer over that one, and no proof. */
TEST(a_proof_counts_over_its_own_link_only)
{
    struct zkl_proof p = connected_at(OPENED, true);
    ask(&p, OPENED + 100, OPENED + 110, false);
    struct zkl_stamp late = zkl_proof_stamp(&p, (OPENED + 900) * MS, true);
    assert_int_equal(late.proves_boot, (OPENED + 100) * MS);
    zkl_proof_link_down(&p);
    zkl_proof_link_up(&p, (OPENED + 950) * MS, OPENED * MS, false);
    assert_false(zkl_proof_answered(&p, (OPENED + 1000) * MS, late, true));
    assert_int_equal(end_ms(&p), 0);
    prove(&p, OPENED + 1000 + OLD);
    assert_int_equal(end_ms(&p), end_of(OPENED + 900));
}

/* Goal: only a write of the session's own that succeeded proves, and an answer that no server gave says
 * nothing at all. */
TEST(reads_and_failures_prove_nothing)
{
    struct zkl_proof p = connected_at(OPENED, true);
    assert_false(ask(&p, OPENED + 10, OPENED + 20, false));
    struct zkl_stamp write = zkl_proof_stamp(&p, (OPENED + 30) * MS, true);
    assert_false(zkl_proof_answered(&p, (OPENED + 40) * MS, write, false));
    write.sent_boot = 0;
    assert_false(zkl_proof_answered(&p, (OPENED + 40) * MS, write, true));
    assert_int_equal(end_ms(&p), 0);
    zkl_proof_link_down(&p);
    assert_false(prove(&p, OPENED + 50));
    assert_int_equal(end_ms(&p), 0);
}

/* Goal: the smallest timeout that was announced counts, also for what is proved already; a larger one is not
 * believed. */
TEST(the_smallest_timeout_counts)
{
    struct zkl_proof p = connected_at(OPENED, true);
    prove(&p, OPENED + 10);
    zkl_proof_announced(&p, 3 * T);
    assert_int_equal(end_ms(&p), end_of(OPENED));
    zkl_proof_announced(&p, T / 2);
    assert_int_equal(end_ms(&p), OPENED + T / 2 - D / 2);
    zkl_proof_begin(&p);
    assert_int_equal(end_ms(&p), 0);
    zkl_proof_announced(&p, 2 * T);
    assert_int_equal(p.timeout_ns, 2 * T * MS);
}

/* Goal: where the servers' tick is known, an answer is old enough sooner: P is half of it. */
TEST(a_known_tick_makes_answers_old_sooner)
{
    struct zkl_proof p = {.tick_ns = 200 * MS};
    zkl_proof_announced(&p, T);
    zkl_proof_link_up(&p, OPENED * MS, OPENED * MS, true);
    ask(&p, OPENED + 1000, OPENED + 1000, false);
    prove(&p, OPENED + 1000 + 100 + 2 * D - 1);
    assert_int_equal(end_ms(&p), end_of(OPENED));
    prove(&p, OPENED + 1000 + 100 + 2 * D);
    assert_int_equal(end_ms(&p), end_of(OPENED + 1000));
}

/* Goal: a tick that can't be, as T is two of them at least, does not keep a session from ever being proved.
 * Method: a tick of 4 T, and a read each T/16 for ten T. */
TEST(a_tick_that_is_too_long_is_survived)
{
    struct zkl_proof p = {.tick_ns = 4 * T * MS};
    int64_t now = OPENED;
    zkl_proof_announced(&p, T);
    zkl_proof_link_up(&p, OPENED * MS, OPENED * MS, true);
    for (; now < OPENED + 10 * T; now += D)
        ask(&p, now, now + 1, false);
    assert_int_equal(zkl_proof_enough_at(&p, now * MS), now * MS);
}

/* Goal: however many answers come, a proof rests on one that is hardly older than need be. Method: one each
 * millisecond for ten timeouts, with a proof each 50 ms. */
TEST(busy_clients_are_remembered_in_steps)
{
    struct zkl_proof p = connected_at(OPENED, true);
    for (int64_t ms = OPENED; ms < OPENED + 10 * T; ms++) {
        ask(&p, ms, ms + 2, ms % 50 == 0);
        if (ms > OPENED + 2 * OLD && ms % 50 == 0)
            assert_in_range(end_ms(&p), end_of(ms - OLD - 2) - OLD / 20, end_of(ms - OLD - 2));
    }
}

/* Goal: the rule says to the moment when a proof suffices for a grant. Method: after a pause
 * without an answer a proof does nothing, until the first answer after it is old enough. */
TEST(it_tells_when_a_proof_is_enough)
{
    struct zkl_proof p = connected_at(OPENED, true);
    assert_int_equal(zkl_proof_enough_at(&p, (OPENED + 100) * MS), (OPENED + 100) * MS);
    assert_true(zkl_proof_enough_at(&p, (OPENED + 3000) * MS) == INT64_MAX);
    ask(&p, OPENED + 3000, OPENED + 3010, false);
    assert_int_equal(zkl_proof_enough_at(&p, (OPENED + 3020) * MS), (OPENED + 3010 + OLD) * MS);
    prove(&p, OPENED + 3010 + OLD);
    assert_true(zkl_proof_fresh_until(&p) > (OPENED + 3010 + OLD) * MS);
    zkl_proof_link_down(&p);
    assert_true(zkl_proof_enough_at(&p, (OPENED + 3800) * MS) == INT64_MAX);
    zkl_proof_link_up(&p, (OPENED + 3800) * MS, OPENED * MS, false);
    assert_int_equal(zkl_proof_enough_at(&p, (OPENED + 3800) * MS), (OPENED + 3800 + D) * MS);
}
