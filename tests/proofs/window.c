/* SPDX-License-Identifier: Apache-2.0 */
/* The window of a session, from any state that its rules allow. Times are from 1 ns to 2^62 ns (146 years of
 * uptime), timeouts from 1 ms to INT32_MAX ms, ticks up to as much; every overflow of a signed number is an error. */
#include "proof.h"

#include "core/proof.h"

#define MS INT64_C(1000000)
#ifndef TIME_BITS
#define TIME_BITS 62
#endif
#define TIME_MAX (INT64_C(1) << TIME_BITS)
#ifndef TIMEOUT_MS_MAX
#define TIMEOUT_MS_MAX INT32_MAX
#endif

#ifndef ANSWERED
#define ANSWERED 3 /* requests remembered at most; the code has room for ZKL_ANSWERED_MAX */
#endif

static int64_t round_of(const struct zkl_proof *p)
{
    int64_t round = p->tick_ns > 0 ? p->tick_ns / 2 : p->timeout_ns / 4;

    return (round < p->timeout_ns / 2 ? round : p->timeout_ns / 2) + p->timeout_ns / 16 * 2;
}

/* What was answered, oldest first: sent before it was answered, each later than the one before. */
static void any_answered(struct zkl_proof *p, int64_t now)
{
    int64_t earlier = 1;

    p->first = ZKL_ANSWERED_MAX - 1; /* round the end; the ring is the same from anywhere */
    p->count = (unsigned)any_between(0, ANSWERED);
    for (unsigned i = 0; i < ANSWERED; i++) {
        struct zkl_answered *a = &p->answered[(p->first + i) % ZKL_ANSWERED_MAX];
        a->at_boot = any_between(earlier, now);
        a->sent_boot = any_between(1, a->at_boot);
        earlier = a->at_boot;
    }
}

static struct zkl_proof any_proof(int64_t now)
{
    struct zkl_proof p = {.tick_ns = any_between(0, TIMEOUT_MS_MAX * MS),
                          .timeout_ns = any_between(MS, TIMEOUT_MS_MAX * MS),
                          .touched_boot = any_between(0, now),
                          .newest_proof_boot = any_between(0, now),
                          .is_known = nondet_bool(),
                          .ended_boot = any_between(0, now),
                          .link = (uint64_t)any_between(1, 1000),
                          .up = nondet_bool()};

    if (p.up) {
        p.start_boot = any_between(0, now);
        p.settled_boot = any_between(0, now + zkl_proof_late(&p));
        p.old_boot = any_between(0, now);
        any_answered(&p, now);
    }
    return p;
}

static struct zkl_stamp any_stamp(const struct zkl_proof *p, int64_t now)
{
    struct zkl_stamp stamp = {.sent_boot = any_between(0, now),
                              .link = (uint64_t)any_between(1, (int64_t)p->link),
                              .writes = nondet_bool()};

    stamp.proves_boot = any_between(0, stamp.sent_boot);
    return stamp;
}

/* --- the parts of a timeout ------------------------------------------------------------------- */

/* The proof of the_moment_that_is_told_is_enough did not end with divisions in it. So there
 * run.py has the code ask here for P + 2 D, for D, and for how much of a timeout is fresh. They
 * may be any numbers that the next harness allows: from 0 to the timeout, and always the same
 * ones for one timeout and tick. */
static int64_t told, late, fresh;

int64_t assumed_told(void)
{
    return told;
}

int64_t assumed_late(void)
{
    return late;
}

int64_t assumed_fresh(void)
{
    return fresh;
}

int64_t called_told(const struct zkl_proof
                        *proof); /* told_after(), which is static, in the copy that run.py makes */

void the_parts_of_a_timeout_are_no_more_than_it(void)
{
    int64_t now = any_between(1, TIME_MAX), touched = any_between(0, TIME_MAX);
    struct zkl_proof p = any_proof(now), same = any_proof(now);

    same.timeout_ns = p.timeout_ns;
    same.tick_ns = p.tick_ns;
    prove(zkl_proof_late(&p) >= 0 && zkl_proof_late(&p) <= p.timeout_ns);
    prove(called_told(&p) >= 0 && called_told(&p) <= p.timeout_ns);
    int64_t left = zkl_proof_fresh_end(&p, 0);
    prove(left >= 0 && left <= p.timeout_ns);
    prove(zkl_proof_late(&same) == zkl_proof_late(&p));
    prove(called_told(&same) == called_told(&p));
    prove(zkl_proof_fresh_end(&same, touched) == touched + left);
}

/* --- the window ------------------------------------------------------------------------------- */

/* An answer never takes back what was proved, and proves no more than it may: not with a read, a failure,
 * or an answer over another link. */
void an_answer_moves_the_window_forward_only(void)
{
    int64_t now = any_between(1, TIME_MAX);
    struct zkl_proof p = any_proof(now), before = p;
    struct zkl_stamp stamp = any_stamp(&p, now);
    bool succeeded = nondet_bool();

    bool proved = zkl_proof_answered(&p, now, stamp, succeeded);
    prove(p.touched_boot >= before.touched_boot);
    prove(p.newest_proof_boot >= before.newest_proof_boot && p.ended_boot >= before.ended_boot);
    prove(p.timeout_ns == before.timeout_ns && p.link == before.link);
    prove(p.touched_boot == before.touched_boot || p.touched_boot == stamp.proves_boot);
    prove(!proved || (succeeded && stamp.writes && before.up && stamp.link == before.link));
    prove(proved || p.touched_boot == before.touched_boot);
}

/* With that the window's end and that of what is fresh move forward only, and neither overflows. */
void a_later_touch_has_a_later_end(void)
{
    struct zkl_proof p = {.timeout_ns = any_between(MS, TIMEOUT_MS_MAX * MS),
                          .touched_boot = any_between(0, TIME_MAX)},
                     before = p;

    before.touched_boot = any_between(0, p.touched_boot);
    prove(zkl_proof_window_end(&p) >= zkl_proof_window_end(&before));
    prove(zkl_proof_fresh_until(&p) >= zkl_proof_fresh_until(&before));
    prove(zkl_proof_window_end(&p) >= zkl_proof_fresh_until(&p));
    prove(p.touched_boot == 0 || zkl_proof_fresh_until(&p) > p.touched_boot);
    prove(p.touched_boot == 0 ||
          zkl_proof_window_end(&p) <= p.touched_boot + p.timeout_ns - p.timeout_ns / 16);
}

/* No window is wider than T - R, from the sending of the request that proves it. */
void a_stamp_proves_nothing_later_than_its_sending(void)
{
    int64_t now = any_between(1, TIME_MAX), at = any_between(1, TIME_MAX);
    struct zkl_proof p = any_proof(now);

    assume(at >= now);
    struct zkl_stamp stamp = zkl_proof_stamp(&p, now, nondet_bool());
    prove(stamp.proves_boot <= now && stamp.sent_boot == now);
    prove(stamp.writes || stamp.proves_boot == 0);
    struct zkl_proof fresh = p;
    fresh.touched_boot = 0;
    if (zkl_proof_answered(&fresh, at, stamp, true))
        prove(zkl_proof_window_end(&fresh) <= now + p.timeout_ns - p.timeout_ns / 16);
}

/* A link that is down, and one that has come up just now over an old session, proves nothing. */
void a_new_link_proves_nothing_at_once(void)
{
    int64_t now = any_between(1, TIME_MAX);
    struct zkl_proof p = any_proof(now);
    bool first = nondet_bool();
    int64_t opened = any_between(1, now);

    zkl_proof_link_down(&p);
    prove(zkl_proof_stamp(&p, now, true).proves_boot == 0);
    zkl_proof_link_up(&p, now, opened, first);
    struct zkl_stamp stamp = zkl_proof_stamp(&p, now, true);
    assume(p.timeout_ns >= 16);
    prove(first || stamp.proves_boot == 0);
    prove(!first || stamp.proves_boot == (opened > p.ended_boot ? opened : p.ended_boot));
}

void a_larger_timeout_is_not_believed(void)
{
    struct zkl_proof p = any_proof(any_between(1, TIME_MAX));
    int64_t before = p.timeout_ns, said = any_between(1, INT32_MAX);

    zkl_proof_announced(&p, (int)said);
    prove(p.timeout_ns > 0 && p.timeout_ns <= before);
}

/* A call that waits until then has a stamp that will do, at the last; never a moment that is
 * over. For any parts of a timeout: above. */
void the_moment_that_is_told_is_enough(void)
{
    int64_t now = any_between(1, TIME_MAX);

    late = any_between(0, TIMEOUT_MS_MAX * MS);
    struct zkl_proof p = any_proof(now);
    told = any_between(0, p.timeout_ns);
    fresh = any_between(0, p.timeout_ns);
    assume(late <= p.timeout_ns);

    int64_t at = zkl_proof_enough_at(&p, now);
    prove(at >= now);
    if (at == INT64_MAX)
        return;
    struct zkl_stamp stamp = zkl_proof_stamp(&p, at, true);
    prove(p.up && stamp.proves_boot != 0);
    prove(at < zkl_proof_fresh_end(&p, stamp.proves_boot));
}

static int64_t nth_at(const struct zkl_proof *p, unsigned i)
{
    return p->answered[(p->first + i) % ZKL_ANSWERED_MAX].at_boot;
}

/* The room for answers is enough (the code asserts it): those remembered lie at least so far apart, whatever comes,
 * and none is older than P + 2 D when one is added. */
void there_is_always_room_for_an_answer(void)
{
    int64_t before = any_between(1, TIME_MAX), now = any_between(1, TIME_MAX);
    struct zkl_proof p = any_proof(before);
    int64_t apart = round_of(&p) / (ZKL_ANSWERED_MAX - 2);

    assume(now >= before && p.up && p.count < ZKL_ANSWERED_MAX);
    for (unsigned i = 1; i < p.count; i++)
        assume(nth_at(&p, i) - nth_at(&p, i - 1) >= apart);
    struct zkl_stamp stamp = any_stamp(&p, now);
    zkl_proof_answered(&p, now, stamp, nondet_bool());
    prove(p.count < ZKL_ANSWERED_MAX);
    for (unsigned i = 1; i < p.count; i++)
        prove(nth_at(&p, i) - nth_at(&p, i - 1) >= apart);
}
