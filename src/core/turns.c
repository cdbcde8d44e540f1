/* SPDX-License-Identifier: Apache-2.0
 *
 * Who of a handle's owners has its node next: the line of those who wait in this process, handing on, and the node
 * that is kept with nobody in it. Nothing here waits for a server: each call decides, and feeds the
 * contender what that means for it. Called by core.c, for an owner or when something is due, and by pace.c when
 * a kept node's time is over. */
#include "turns.h"

#include <assert.h>

#include <zklock/zklock.h>

#include "composite.h"
#include "feed.h"

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
        zkl_turns_move(core, turns, ZKL_TURNS_ASKING, "queues");
    turn->wish.turns = turns;
    turns->asks(turns, turn);
    zkl_core_start(core, turn->contender, &turn->wish);
}

bool zkl_turns_is_fresh(const struct zkl_core *core)
{
    return core->now.boot_ns < zkl_proof_fresh_until(&core->session.proof);
}

enum zkl_turns_answer zkl_turns_ask(struct zkl_core *core, struct zkl_turns *turns,
                                    struct zkl_turn *turn, bool ahead)
{
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
    queue(core, turns, turn);
    return ZKL_TURNS_QUEUES;
}

/* --- the holder --------------------------------------------------------- */

/* Nothing speaks against somebody else's having it, or having it again. */
static bool may_stay(const struct zkl_contender *c)
{
    const struct zkl_contender_machine *m = &c->machine;
    return m->state == ZKL_HOLDING && !m->suspect && !m->revoked && m->lease_end_boot == 0;
}

/* --- handing on --------------------------------------------------------- */

static void stay(struct zkl_core *core, struct zkl_contender *c, bool idle)
{
    zkl_core_feed(core, c, (struct zkl_event){.type = ZKL_EV_STAY, .idle = idle});
}

static bool somebody_waits(const struct zkl_core *core, const struct zkl_turns *turns,
                           const struct zkl_contender *c)
{
    return turns->holder == c && turns->first && zkl_turns_is_fresh(core) && may_stay(c);
}

/* Whether others queue is looked into when it matters for the first time. Until the answer is there it
 * goes on: not for long, as a window that is fresh is proved by answers that came after it. */
bool zkl_turns_look(struct zkl_core *core, struct zkl_turns *turns, struct zkl_contender *c)
{
    const struct zkl_contender_machine *m = &c->machine;
    bool looks = somebody_waits(core, turns, c) && turns->handoffs >= turns->handoffs_max &&
                 !m->contended && !m->looks_out;
    if (looks)
        stay(core, c, false);
    return looks;
}

static bool may_hand_on(struct zkl_turns *turns)
{
    const struct zkl_contender_machine *m = &turns->holder->machine;
    if (turns->handoffs < turns->handoffs_max)
        return true;
    if (m->looks_out && !m->list_out && !m->contended)
        turns->handoffs = 0;
    return !m->contended;
}

bool zkl_turns_hand_on(struct zkl_core *core, struct zkl_turns *turns, struct zkl_contender *c)
{
    if (!somebody_waits(core, turns, c) || !may_hand_on(turns))
        return false;
    struct zkl_turn *turn = turns->first;
    take_out(turns, turn);
    turns->handoffs++;
    turn->given = turns->holder;
    zkl_turns_move(core, turns, ZKL_TURNS_TAKEN, "handed on");
    turns->given(turns, turn);
    return true;
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

bool zkl_turns_keep(struct zkl_core *core, struct zkl_turns *turns, struct zkl_contender *c)
{
    if (!zkl_turns_is_fresh(core) || !may_stay(c) || !may_keep(turns, c))
        return false;
    zkl_turns_set_holder(turns, c);
    zkl_turns_move(core, turns, ZKL_TURNS_IDLE, "kept");
    turns->idle_until = core->now.mono_ns + turns->retain_ns;
    set_timer(core, turns);
    if (!c->machine.looks_out || !c->machine.watch_own) {
        zkl_turns_touch(core, turns);
        stay(core, c, true);
    }
    return true;
}

struct zkl_contender *zkl_turns_take(struct zkl_core *core, struct zkl_turns *turns)
{
    if (turns->state != ZKL_TURNS_IDLE)
        return NULL;
    turns->handoffs = 0;
    zkl_turns_move(core, turns, ZKL_TURNS_TAKEN, "taken");
    return turns->holder;
}

static void drop(struct zkl_core *core, struct zkl_turns *turns, const char *why)
{
    struct zkl_contender *c = turns->holder;
    zkl_turns_forget_holder(core, turns, why);
    zkl_core_feed_type(core, c, ZKL_EV_RELEASE);
    turns->dropped(turns, c);
}

bool zkl_turns_give_up(struct zkl_core *core, struct zkl_turns *turns)
{
    bool is_idle = turns->state == ZKL_TURNS_IDLE;
    if (is_idle)
        drop(core, turns, "not wanted");
    return is_idle;
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

/* --- what is due ---------------------------------------------------------- */

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

void zkl_turns_forget(struct zkl_core *core, struct zkl_turns *turns)
{
    assert(turns->state == ZKL_TURNS_FREE && !turns->first && !turns->due.listed);
    for (struct zkl_turns **at = &core->timed_turns; *at; at = &(*at)->next_timed) {
        if (*at == turns) {
            *at = turns->next_timed;
            break;
        }
    }
}
