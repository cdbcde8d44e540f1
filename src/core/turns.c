/* SPDX-License-Identifier: Apache-2.0 */
#include "turns.h"

#include <assert.h>

#include <zklock/zklock.h>

#include "feed.h"

#define BIT(state) (1u << (state))

static const unsigned allowed[ZKL_TURNS_STATES] = {
    [ZKL_TURNS_FREE] = BIT(ZKL_TURNS_ASKING) | BIT(ZKL_TURNS_IDLE),
    [ZKL_TURNS_ASKING] = BIT(ZKL_TURNS_TAKEN) | BIT(ZKL_TURNS_FREE),
    [ZKL_TURNS_TAKEN] =
        BIT(ZKL_TURNS_TAKEN) | BIT(ZKL_TURNS_IDLE) | BIT(ZKL_TURNS_FREE) | BIT(ZKL_TURNS_ASKING),
    [ZKL_TURNS_IDLE] = BIT(ZKL_TURNS_TAKEN) | BIT(ZKL_TURNS_FREE),
};

const char *zkl_turns_state_name(enum zkl_turns_state state)
{
    static const char *const names[ZKL_TURNS_STATES] = {
        [ZKL_TURNS_FREE] = "FREE",
        [ZKL_TURNS_ASKING] = "ASKING",
        [ZKL_TURNS_TAKEN] = "TAKEN",
        [ZKL_TURNS_IDLE] = "IDLE",
    };
    return names[state];
}

bool zkl_turns_may_move(enum zkl_turns_state from, enum zkl_turns_state to)
{
    return (allowed[from] & BIT(to)) != 0;
}

/* The only place that assigns a state. */
static void move(struct zkl_core *core, struct zkl_turns *turns, enum zkl_turns_state to,
                 const char *why)
{
    enum zkl_turns_state from = turns->state;
    assert(zkl_turns_may_move(from, to));
    turns->state = to;
    zkl_core_trace(core,
                   (struct zkl_trace){.kind = ZKL_TRACE_TURNS, .from = from, .to = to, .why = why});
}

void zkl_turns_touch(struct zkl_core *core, struct zkl_turns *turns)
{
    if (turns->due)
        return;
    turns->due = true;
    turns->next_due = core->due_turns;
    core->due_turns = turns;
}

/* --- who waits ---------------------------------------------------------- */

static void append(struct zkl_turns *turns, struct zkl_turn *turn)
{
    turn->next = NULL;
    turn->prev = turns->last;
    *(turns->last ? &turns->last->next : &turns->first) = turn;
    turns->last = turn;
}

static void prepend(struct zkl_turns *turns, struct zkl_turn *turn)
{
    turn->prev = NULL;
    turn->next = turns->first;
    *(turns->first ? &turns->first->prev : &turns->last) = turn;
    turns->first = turn;
}

static void take_out(struct zkl_turns *turns, struct zkl_turn *turn)
{
    *(turn->prev ? &turn->prev->next : &turns->first) = turn->next;
    *(turn->next ? &turn->next->prev : &turns->last) = turn->prev;
    turn->waits = false;
}

void zkl_turns_leave(struct zkl_turns *turns, struct zkl_turn *turn)
{
    assert(turn->waits);
    take_out(turns, turn);
}

/* --- asking ------------------------------------------------------------- */

static void queue(struct zkl_core *core, struct zkl_turns *turns, struct zkl_turn *turn)
{
    turns->asking++;
    if (turns->state == ZKL_TURNS_FREE)
        move(core, turns, ZKL_TURNS_ASKING, "queues");
    turn->wish.turns = turns;
    turns->asks(turns, turn);
    zkl_core_start(core, turn->contender, &turn->wish);
}

static bool is_fresh(const struct zkl_core *core, struct zkl_time now)
{
    return now.boot_ns < zkl_proof_fresh_until(&core->session.proof);
}

enum zkl_turns_answer zkl_turns_join(struct zkl_core *core, struct zkl_time now,
                                     struct zkl_turns *turns, struct zkl_turn *turn, bool ahead)
{
    if (!is_fresh(core, now))
        zkl_turns_drop(core, now, turns); /* a grant wants more: whoever queues waits for a proof */
    bool shared = turns->handoffs_max > 0 && turns->state != ZKL_TURNS_FREE;
    turn->given = zkl_turns_take(core, turns);
    if (turn->given)
        return ZKL_TURNS_GIVEN;
    if (turn->wish.try_only && (shared || turns->state == ZKL_TURNS_TAKEN))
        return ZKL_TURNS_BUSY;
    if (shared) {
        turn->waits = true;
        (ahead ? prepend : append)(turns, turn);
        return ZKL_TURNS_WAITS;
    }
    zkl_core_enter(core, now);
    queue(core, turns, turn);
    zkl_core_settle(core, now);
    return ZKL_TURNS_QUEUES;
}

/* --- the holder --------------------------------------------------------- */

static void set_holder(struct zkl_turns *turns, struct zkl_contender *c)
{
    turns->holder = c;
    c->turns = turns;
    turns->handoffs = 0;
}

/* What becomes of its node does not concern the others any more. */
static void forget_holder(struct zkl_core *core, struct zkl_turns *turns, const char *why)
{
    turns->holder->turns = NULL;
    turns->holder = NULL;
    move(core, turns, turns->asking > 0 ? ZKL_TURNS_ASKING : ZKL_TURNS_FREE, why);
    zkl_turns_touch(core, turns);
}

static void on_granted(struct zkl_core *core, struct zkl_turns *turns, struct zkl_contender *c)
{
    turns->asking--;
    if (turns->holder) { /* whose node somebody deleted, unknown to us yet */
        c->turns = NULL;
        return;
    }
    set_holder(turns, c);
    move(core, turns, ZKL_TURNS_TAKEN, "granted");
}

static void on_failed(struct zkl_core *core, struct zkl_turns *turns, struct zkl_contender *c)
{
    c->turns = NULL;
    turns->asking--;
    if (turns->state == ZKL_TURNS_ASKING && turns->asking == 0)
        move(core, turns, ZKL_TURNS_FREE, "in vain");
    zkl_turns_touch(core, turns);
}

void zkl_turns_news(struct zkl_core *core, struct zkl_contender *c, const struct zkl_news *news)
{
    struct zkl_turns *turns = c->turns;
    bool lost = news->type == ZKL_NEWS_STATE && news->state == ZKL_LOST;
    if (news->type == ZKL_NEWS_GRANTED)
        on_granted(core, turns, c);
    else if (news->type == ZKL_NEWS_FAILED)
        on_failed(core, turns, c);
    else if (turns->state == ZKL_TURNS_TAKEN && (lost || news->type == ZKL_NEWS_RELEASED))
        forget_holder(core, turns, lost ? "lost" : "released");
    else
        zkl_turns_touch(core, turns);
}

/* Nothing speaks against somebody else's having it, or having it again. */
static bool may_stay(const struct zkl_contender *c)
{
    const struct zkl_contender_machine *m = &c->machine;
    return m->state == ZKL_HOLDING && !m->suspect && !m->revoked && m->lease_end_boot == 0;
}

static void stay(struct zkl_core *core, struct zkl_time now, struct zkl_contender *c, bool idle)
{
    zkl_core_enter(core, now);
    zkl_core_feed(core, c, (struct zkl_event){.type = ZKL_EV_STAY, .idle = idle});
    zkl_core_settle(core, now);
}

/* --- handing on --------------------------------------------------------- */

/* Whether others queue is looked into when it matters for the first time. Until the answer is there it
 * goes on: not for long, as a window that is fresh is proved by answers that came after it. */
static bool may_hand_on(struct zkl_core *core, struct zkl_time now, struct zkl_turns *turns)
{
    struct zkl_contender *c = turns->holder;
    if (turns->handoffs < turns->handoffs_max)
        return true;
    if (c->machine.contended)
        return false;
    if (!c->machine.looks_out)
        stay(core, now, c, false);
    else if (!c->machine.list_out)
        turns->handoffs = 0;
    return true;
}

static void hand_on(struct zkl_core *core, struct zkl_turns *turns)
{
    struct zkl_turn *turn = turns->first;
    take_out(turns, turn);
    turns->handoffs++;
    turn->given = turns->holder;
    move(core, turns, ZKL_TURNS_TAKEN, "handed on");
    turns->given(turns, turn);
}

/* --- the idle one ------------------------------------------------------- */

/* A timer that is set stays so when the lock is taken and left again: else each time would set one. */
static void set_timer(struct zkl_core *core, struct zkl_turns *turns)
{
    if (turns->timed)
        return;
    turns->timed = true;
    turns->next_timed = core->timed_turns;
    core->timed_turns = turns;
    if (turns->idle_until < core->turns_mono_ns)
        core->turns_mono_ns = turns->idle_until;
}

/* Of what is asked of its node, while nobody is in it. Watches have a limit, which comes first to these. */
static bool hears(const struct zkl_contender *c)
{
    return !c->machine.watch_own || c->subs[ZKL_SUB_OWN].watch;
}

static bool may_keep(const struct zkl_turns *turns, const struct zkl_contender *c)
{
    bool ours = turns->holder == c || turns->state == ZKL_TURNS_FREE; /* a multi-lock's member */
    return turns->retain_ns > 0 && ours && !turns->first && turns->asking == 0 &&
           !c->machine.contended && hears(c);
}

static void keep(struct zkl_core *core, struct zkl_time now, struct zkl_turns *turns,
                 struct zkl_contender *c)
{
    set_holder(turns, c);
    move(core, turns, ZKL_TURNS_IDLE, "kept");
    turns->idle_until = now.mono_ns + turns->retain_ns;
    set_timer(core, turns);
    if (!c->machine.looks_out || !c->machine.watch_own) {
        zkl_turns_touch(core, turns);
        stay(core, now, c, true);
    }
}

struct zkl_contender *zkl_turns_take(struct zkl_core *core, struct zkl_turns *turns)
{
    if (turns->state != ZKL_TURNS_IDLE)
        return NULL;
    turns->handoffs = 0;
    move(core, turns, ZKL_TURNS_TAKEN, "taken");
    return turns->holder;
}

static void drop(struct zkl_core *core, struct zkl_turns *turns, const char *why)
{
    struct zkl_contender *c = turns->holder;
    forget_holder(core, turns, why);
    zkl_core_feed_type(core, c, ZKL_EV_RELEASE);
    turns->dropped(turns, c);
}

void zkl_turns_drop(struct zkl_core *core, struct zkl_time now, struct zkl_turns *turns)
{
    if (turns->state != ZKL_TURNS_IDLE)
        return;
    zkl_core_enter(core, now);
    drop(core, turns, "not wanted");
    zkl_core_settle(core, now);
}

void zkl_turns_timer(struct zkl_core *core)
{
    struct zkl_turns *turns = core->timed_turns;
    core->timed_turns = NULL;
    core->turns_mono_ns = INT64_MAX;
    while (turns) {
        struct zkl_turns *next = turns->next_timed;
        bool idle = turns->state == ZKL_TURNS_IDLE;
        turns->timed = false;
        if (idle && turns->idle_until > core->now.mono_ns)
            set_timer(core, turns);
        else if (idle)
            drop(core, turns, "for long enough");
        turns = next;
    }
}

/* --- unlocking, and the end --------------------------------------------- */

bool zkl_turns_pass(struct zkl_core *core, struct zkl_time now, struct zkl_turns *turns,
                    struct zkl_contender *c)
{
    zkl_core_enter(core, now);
    bool stays = is_fresh(core, now) && may_stay(c);
    bool hands = stays && turns->holder == c && turns->first && may_hand_on(core, now, turns);
    if (hands && may_stay(c)) {
        hand_on(core, turns);
        return true;
    }
    if (stays && may_keep(turns, c)) {
        keep(core, now, turns, c);
        return true;
    }
    if (turns->holder == c)
        forget_holder(core, turns, "unlocked");
    return false;
}

void zkl_turns_settle(struct zkl_core *core, struct zkl_turns *turns)
{
    if (turns->state == ZKL_TURNS_IDLE &&
        (!may_stay(turns->holder) || turns->holder->machine.contended || !hears(turns->holder)))
        drop(core, turns, "wanted elsewhere, or not sure");
    if (turns->state != ZKL_TURNS_FREE || !turns->first)
        return;
    struct zkl_turn *turn = turns->first;
    take_out(turns, turn);
    queue(core, turns, turn);
}

void zkl_turns_fini(struct zkl_core *core, struct zkl_time now, struct zkl_turns *turns)
{
    zkl_turns_drop(core, now, turns);
    assert(turns->state == ZKL_TURNS_FREE && !turns->first && !turns->due);
    for (struct zkl_turns **at = &core->timed_turns; *at; at = &(*at)->next_timed) {
        if (*at == turns) {
            *at = turns->next_timed;
            break;
        }
    }
}
