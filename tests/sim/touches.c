/* SPDX-License-Identifier: Apache-2.0 */
#include "fake.h"

#define NEVER INT64_MAX

const char *const fake_switch_names[FAKE_SWITCHES] = {FAKE_SWITCH_LIST(FAKE_NAME)};

bool fake_breaks(const struct fake *fake, enum fake_switch which)
{
    return fake->rules.broken & (UINT64_C(1) << which);
}

/* 0 to most: the ends are where things go wrong. */
static int some_of(struct fake *fake, int most)
{
    unsigned which = fake_random(fake->prng, 4);
    if (which == 0 || most <= 0)
        return 0;
    return which == 1 ? most : (int)fake_random(fake->prng, (unsigned)most + 1);
}

bool fake_breaks_once(const struct fake *fake, enum fake_switch which, unsigned once_in)
{
    return fake_breaks(fake, which) && fake_chance(fake->prng, once_in);
}

bool fake_is_mended_soon(const struct fake *fake)
{
    return fake_breaks(fake, FAKE_TWO_ROUNDS) || fake_breaks(fake, FAKE_OVERTAKEN) ||
           fake_breaks(fake, FAKE_UNTOUCHED_LINK) || fake_breaks(fake, FAKE_LOST_LATE);
}

/* P and D follow from the smallest timeout that any client was granted. */
void fake_draw_rules(struct fake *fake, uint64_t broken)
{
    static const int ticks[] = {20, 10, 5, 4, 2}; /* in a timeout; the last is what is assumed */
    struct fake_prng *prng = fake->prng;
    struct fake_rules *rules = &fake->rules;
    *rules = (struct fake_rules){.broken = broken};
    bool lowers = fake_breaks(fake, FAKE_LOWERED_TIMEOUT);
    int capped_ms = lowers || fake_chance(prng, 4) ? FAKE_TIMEOUT_MS / 2 : 0;
    int least_ms = capped_ms ? capped_ms : FAKE_TIMEOUT_MS;
    rules->capped_ms = capped_ms;
    rules->declared_ms = least_ms / ticks[fake_random(prng, 5)];
    rules->relayed = fake_chance(prng, 6) || fake_breaks(fake, FAKE_TWO_ROUNDS);
    if (fake_is_mended_soon(fake)) /* then rounds are rare */
        rules->declared_ms = least_ms / 2;
    bool two_in_one = rules->relayed && !fake_breaks(fake, FAKE_TWO_ROUNDS);
    rules->tick_ms = two_in_one ? rules->declared_ms / 2 : rules->declared_ms;
    rules->round_ms = rules->tick_ms / 2;
    rules->late_ms = least_ms / 16 / (two_in_one ? 4 : 1);
    rules->packet_ms = some_of(fake, rules->late_ms);
    rules->batch_ms = rules->late_ms - rules->packet_ms;
    rules->phase_ms = fake_random(prng, (unsigned)rules->tick_ms);
    rules->raised_ms =
        fake_chance(prng, 4) ? FAKE_TIMEOUT_MS + (int)fake_random(prng, 2 * FAKE_TIMEOUT_MS) : 0;
    rules->eager = fake_chance(prng, 3);
    rules->local_sessions = fake_chance(prng, 3);
}

/* --- at the leader -------------------------------------------------------- */

/* SessionTrackerImpl.touchSession, ExpiryQueue.update: what is taken off the queue already stays so. */
static void renew_at(struct fake *fake, struct fake_session *session, int64_t at)
{
    int64_t tick = fake->rules.tick_ms;
    if (session->close_ms != 0)
        fake->tally[FAKE_TOUCH_LATE]++;
    if (session->dead || session->close_ms != 0)
        return;
    session->expire_ms = (at / tick + !fake_breaks(fake, FAKE_EXPIRES_EARLY)) * tick;
}

void touches_renew(struct fake *fake, struct fake_session *session, int timeout_ms)
{
    renew_at(fake, session, fake->now_ms + timeout_ms);
}

/* It lasts two thirds of the timeout at most. */
void touches_attempt(struct fake_handle *h, struct fake_session *session)
{
    int64_t lasted_ms = h->fake->now_ms - h->down_ms;
    int64_t most_ms = h->timeout_ms * INT64_C(2) / 3;
    int64_t ago_ms = some_of(h->fake, (int)(lasted_ms < most_ms ? lasted_ms : most_ms));
    h->down_ms = h->fake->now_ms;
    int64_t at = h->fake->now_ms - ago_ms + h->timeout_ms;
    if (at > session->expire_ms)
        renew_at(h->fake, session, at);
}

/* The old leader's queue, and what was taken off it, is lost with it. */
void touches_elect(struct fake *fake, struct fake_session *session)
{
    int timeout_ms = session->timeout_ms;
    if (fake_breaks(fake, FAKE_STORED_LESS))
        timeout_ms = timeout_ms * 3 / 4;
    if (fake_breaks(fake, FAKE_NOT_RENEWED)) /* as if its clock had run on at the new one, too */
        timeout_ms -= (int)fake_random(fake->prng, (unsigned)timeout_ms);
    session->close_ms = 0;
    touches_renew(fake, session, timeout_ms);
}

/* --- on the way there ----------------------------------------------------- */

static void leader_hears(struct fake_handle *h, int timeout_ms)
{
    struct fake_session *session = fake_session_of(h->fake, h->session);
    if (session && timeout_ms != 0)
        touches_renew(h->fake, session, timeout_ms);
}

/* The packet of this hop, if there is one, arrives. */
static void arrive(struct fake_handle *h, int i)
{
    struct fake_learner *l = &h->learner;
    int timeout_ms = l->hops[i].sent;
    l->hops[i].sent = 0;
    l->hops[i].arrive_ms = NEVER;
    if (timeout_ms == 0)
        return;
    if (i + 1 < l->hop_count)
        l->hops[i + 1].table = timeout_ms;
    else
        leader_hears(h, timeout_ms);
}

static void revalidate(struct fake_handle *h)
{
    int timeout_ms = h->learner.revalidation;
    h->learner.revalidation = 0;
    h->learner.revalidate_ms = NEVER;
    leader_hears(h, timeout_ms);
}

void touches_flush(struct fake_handle *h)
{
    if (h->learner.revalidation)
        revalidate(h);
    if (fake_breaks(h->fake, FAKE_OVERTAKEN))
        return;
    for (int i = 0; i < h->learner.hop_count; i++)
        arrive(h, i);
}

/* When the next snapshot is taken: with the time that its packet waits to be written no later than all
 * of them may be. */
static void plan(struct fake *fake, struct fake_hop *hop)
{
    int late_ms = some_of(fake, fake->rules.late_ms);
    if (fake_breaks_once(fake, FAKE_LATE_ROUND, 2))
        late_ms += (int)fake_random(fake->prng, 3 * (unsigned)FAKE_TIMEOUT_MS / 4);
    hop->late_ms = late_ms;
    hop->take_ms = hop->nominal_ms + some_of(fake, late_ms);
    if (hop->take_ms < fake->now_ms)
        hop->take_ms = fake->now_ms;
    hop->write_ms = NEVER;
}

/* Learner.ping takes the snapshot, then may wait for the stream: requests get ahead of it meanwhile. */
static void take(struct fake *fake, struct fake_hop *hop)
{
    hop->taken = hop->table;
    hop->table = 0;
    hop->take_ms = NEVER;
    hop->write_ms = hop->nominal_ms + hop->late_ms;
    if (hop->write_ms < fake->now_ms)
        hop->write_ms = fake->now_ms;
}

static void write_out(struct fake_handle *h, int i)
{
    struct fake *fake = h->fake;
    struct fake_hop *hop = &h->learner.hops[i];
    arrive(h, i); /* the one before it */
    hop->sent = hop->taken;
    hop->taken = 0;
    hop->arrive_ms = fake->now_ms + some_of(fake, fake->rules.packet_ms);
    if (fake_breaks_once(fake, FAKE_OVERTAKEN, 2))
        hop->arrive_ms += fake_random(fake->prng, FAKE_TIMEOUT_MS);
    hop->nominal_ms += fake->rules.round_ms;
    plan(fake, hop);
}

static void run_hop(struct fake_handle *h, int i)
{
    struct fake_hop *hop = &h->learner.hops[i];
    int64_t now_ms = h->fake->now_ms;
    if (hop->arrive_ms <= now_ms)
        arrive(h, i);
    if (hop->take_ms <= now_ms)
        take(h->fake, hop);
    if (hop->write_ms <= now_ms)
        write_out(h, i);
}

static int64_t first_of(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static void find_due(struct fake_handle *h)
{
    struct fake_learner *l = &h->learner;
    l->due_ms = first_of(l->ping_ms, l->revalidate_ms);
    for (int i = 0; i < l->hop_count; i++) {
        l->due_ms = first_of(l->due_ms, l->hops[i].take_ms);
        l->due_ms = first_of(l->due_ms, l->hops[i].write_ms);
        l->due_ms = first_of(l->due_ms, l->hops[i].arrive_ms);
    }
}

void touches_run(struct fake_handle *h)
{
    struct fake_learner *l = &h->learner;
    if (l->due_ms > h->fake->now_ms)
        return;
    if (l->revalidate_ms <= h->fake->now_ms)
        revalidate(h);
    if (l->ping_ms <= h->fake->now_ms) {
        if (!h->stuck)
            touches_note(h);
        l->ping_ms = h->fake->now_ms + h->timeout_ms / 3;
    }
    for (int i = 0; i < l->hop_count; i++)
        run_hop(h, i);
    find_due(h);
}

/* --- links ---------------------------------------------------------------- */

static void begin_rounds(struct fake *fake, struct fake_hop *hop)
{
    int64_t round_ms = fake->rules.round_ms;
    int64_t since_ms = fake->now_ms + fake->rules.phase_ms;
    *hop = (struct fake_hop){.arrive_ms = NEVER};
    hop->nominal_ms = (since_ms / round_ms + 1) * round_ms - fake->rules.phase_ms;
    plan(fake, hop);
}

void touches_meet(struct fake_handle *h, bool wrongly)
{
    struct fake *fake = h->fake;
    struct fake_learner *l = &h->learner;
    *l = (struct fake_learner){.leads = fake_chance(fake->prng, 4), .revalidate_ms = NEVER};
    bool relayed =
        fake->rules.relayed && (fake_breaks(fake, FAKE_TWO_ROUNDS) || !fake_chance(fake->prng, 3));
    l->hop_count = l->leads ? 0 : relayed ? 2 : 1;
    for (int i = 0; i < l->hop_count; i++)
        begin_rounds(fake, &l->hops[i]);
    l->revalidation = h->timeout_ms;
    l->ping_ms = fake->now_ms + h->timeout_ms / 3;
    if (wrongly && (fake_breaks(fake, FAKE_UNTOUCHED_LINK) || h->outdated))
        l->revalidation = 0;
    else if (wrongly)
        l->revalidate_ms = fake->now_ms + some_of(fake, fake->rules.packet_ms);
    else
        revalidate(h);
    find_due(h);
}

void touches_follow(struct fake_handle *h)
{
    h->learner = (struct fake_learner){.ping_ms = NEVER, .revalidate_ms = NEVER, .due_ms = NEVER};
}

void touches_part(struct fake_handle *h)
{
    struct fake_learner *l = &h->learner;
    if (fake_chance(h->fake->prng, 2)) /* it lives, and hands its table on some time */
        touches_flush(h);
    for (int i = 0; i < l->hop_count; i++)
        h->fake->tally[FAKE_TOUCH_LOST] += l->hops[i].table || l->hops[i].taken || l->hops[i].sent;
    *l = (struct fake_learner){.leads = l->leads, .due_ms = NEVER};
}

void touches_note(struct fake_handle *h)
{
    struct fake_learner *l = &h->learner;
    if (fake_breaks_once(h->fake, FAKE_TOUCH_DROPPED, 2))
        return;
    if (l->hop_count > 0)
        l->hops[0].table = h->timeout_ms;
    else if (l->leads && !h->isolated && !fake_breaks(h->fake, FAKE_TOUCH_NEVER))
        leader_hears(h, h->timeout_ms);
}

/* Under a window no server grants less than it did. */
int touches_negotiate(struct fake_handle *h)
{
    const struct fake_rules *rules = &h->fake->rules;
    bool may_lower = h->session == 0 || h->may_lower || fake_breaks(h->fake, FAKE_LOWERED_TIMEOUT);
    if (rules->capped_ms && h->timeout_ms > rules->capped_ms && may_lower &&
        fake_chance(h->fake->prng, 2))
        return rules->capped_ms;
    if (h->timeout_ms < rules->raised_ms && fake_chance(h->fake->prng, 3))
        return rules->raised_ms;
    return h->timeout_ms;
}
