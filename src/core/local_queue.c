/* SPDX-License-Identifier: Apache-2.0
 *
 * Decides which of a handle's owners has its node next: the queue of those that wait in this
 * process, the hand-over, and the node that is kept without a holder. This file never waits for a
 * server: each call decides, and feeds the contender the result. core.c calls it, for an owner or
 * when something is due, and timers.c when a kept node's time is over. */
#include "local_queue.h"

#include <assert.h>

#include <zklock/zklock.h>

#include "due.h"
#include "feed.h"

#define BIT(state) (1u << (state))

/* --- states and news ----------------------------------------------------- */

static const unsigned allowed[ZKL_LOCAL_QUEUE_STATES] = {
    [ZKL_LOCAL_QUEUE_FREE] = BIT(ZKL_LOCAL_QUEUE_QUEUED) | BIT(ZKL_LOCAL_QUEUE_IDLE),
    [ZKL_LOCAL_QUEUE_QUEUED] = BIT(ZKL_LOCAL_QUEUE_TAKEN) | BIT(ZKL_LOCAL_QUEUE_FREE),
    [ZKL_LOCAL_QUEUE_TAKEN] = BIT(ZKL_LOCAL_QUEUE_TAKEN) | BIT(ZKL_LOCAL_QUEUE_IDLE) |
                              BIT(ZKL_LOCAL_QUEUE_FREE) | BIT(ZKL_LOCAL_QUEUE_QUEUED),
    [ZKL_LOCAL_QUEUE_IDLE] = BIT(ZKL_LOCAL_QUEUE_TAKEN) | BIT(ZKL_LOCAL_QUEUE_FREE),
};

const char *zkl_local_queue_state_name(enum zkl_local_queue_state state)
{
    static const char *const names[ZKL_LOCAL_QUEUE_STATES] = {
        [ZKL_LOCAL_QUEUE_FREE] = "FREE",
        [ZKL_LOCAL_QUEUE_QUEUED] = "QUEUED",
        [ZKL_LOCAL_QUEUE_TAKEN] = "TAKEN",
        [ZKL_LOCAL_QUEUE_IDLE] = "IDLE",
    };
    return names[state];
}

bool zkl_local_queue_may_move(enum zkl_local_queue_state from, enum zkl_local_queue_state to)
{
    return (allowed[from] & BIT(to)) != 0;
}

/* The only place that assigns a state. */
static void move(struct zkl_core *core, struct zkl_local_queue *local_queue,
                 enum zkl_local_queue_state to, const char *why)
{
    enum zkl_local_queue_state from = local_queue->state;
    assert(zkl_local_queue_may_move(from, to));
    local_queue->state = to;
    zkl_core_trace(core, (struct zkl_trace){
                             .kind = ZKL_TRACE_LOCAL_QUEUE, .from = from, .to = to, .why = why});
}

static void set_holder(struct zkl_local_queue *local_queue, struct zkl_contender *c)
{
    local_queue->holder = c;
    c->machine.lock_request.local_queue = local_queue;
    local_queue->handoffs = 0;
}

/* The fate of its node does not concern the others any more. */
void zkl_local_queue_forget_holder(struct zkl_core *core, struct zkl_local_queue *local_queue,
                                   const char *why)
{
    local_queue->holder->machine.lock_request.local_queue = NULL;
    local_queue->holder = NULL;
    move(core, local_queue,
         local_queue->queueing > 0 ? ZKL_LOCAL_QUEUE_QUEUED : ZKL_LOCAL_QUEUE_FREE, why);
    zkl_due_add(core, &local_queue->due, ZKL_DUE_LOCAL_QUEUE);
}

static void on_granted(struct zkl_core *core, struct zkl_local_queue *local_queue,
                       struct zkl_contender *c)
{
    local_queue->queueing--;
    if (local_queue->holder) { /* whose node another client deleted, which we do not know yet */
        c->machine.lock_request.local_queue = NULL;
        return;
    }
    set_holder(local_queue, c);
    move(core, local_queue, ZKL_LOCAL_QUEUE_TAKEN, "granted");
}

static void on_failed(struct zkl_core *core, struct zkl_local_queue *local_queue,
                      struct zkl_contender *c)
{
    c->machine.lock_request.local_queue = NULL;
    local_queue->queueing--;
    if (local_queue->state == ZKL_LOCAL_QUEUE_QUEUED && local_queue->queueing == 0)
        move(core, local_queue, ZKL_LOCAL_QUEUE_FREE, "in vain");
}

void zkl_local_queue_notification(struct zkl_core *core, struct zkl_contender *c,
                                  const struct zkl_notification *notification)
{
    struct zkl_local_queue *local_queue = c->machine.lock_request.local_queue;
    bool lost = notification->type == ZKL_NOTIFY_STATE && notification->state == ZKL_HOLD_LOST;
    if (notification->type == ZKL_NOTIFY_GRANTED)
        on_granted(core, local_queue, c);
    else if (notification->type == ZKL_NOTIFY_FAILED)
        on_failed(core, local_queue, c);
    else if (local_queue->state == ZKL_LOCAL_QUEUE_TAKEN &&
             (lost || notification->type == ZKL_NOTIFY_RELEASED))
        zkl_local_queue_forget_holder(core, local_queue, lost ? "lost" : "released");
}

/* --- waiters ------------------------------------------------------------ */

static void append(struct zkl_local_queue *local_queue, struct zkl_local_waiter *local_waiter)
{
    local_waiter->next = NULL;
    local_waiter->prev = local_queue->last;
    *(local_queue->last ? &local_queue->last->next : &local_queue->first) = local_waiter;
    local_queue->last = local_waiter;
}

static void prepend(struct zkl_local_queue *local_queue, struct zkl_local_waiter *local_waiter)
{
    local_waiter->prev = NULL;
    local_waiter->next = local_queue->first;
    *(local_queue->first ? &local_queue->first->prev : &local_queue->last) = local_waiter;
    local_queue->first = local_waiter;
}

static void take_out(struct zkl_local_queue *local_queue, struct zkl_local_waiter *local_waiter)
{
    *(local_waiter->prev ? &local_waiter->prev->next : &local_queue->first) = local_waiter->next;
    *(local_waiter->next ? &local_waiter->next->prev : &local_queue->last) = local_waiter->prev;
    local_waiter->waits = false;
}

void zkl_local_queue_leave(struct zkl_local_queue *local_queue,
                           struct zkl_local_waiter *local_waiter)
{
    assert(local_waiter->waits);
    take_out(local_queue, local_waiter);
}

/* --- joining ------------------------------------------------------------ */

static void queue(struct zkl_core *core, struct zkl_local_queue *local_queue,
                  struct zkl_local_waiter *local_waiter)
{
    local_queue->queueing++;
    if (local_queue->state == ZKL_LOCAL_QUEUE_FREE)
        move(core, local_queue, ZKL_LOCAL_QUEUE_QUEUED, "queues");
    local_waiter->lock_request.local_queue = local_queue;
    local_queue->queues(local_queue, local_waiter);
    zkl_core_start(core, local_waiter->contender, &local_waiter->lock_request);
}

bool zkl_local_queue_is_fresh(const struct zkl_core *core)
{
    return core->now.boot_ns < zkl_proof_fresh_until(&core->session.proof);
}

enum zkl_local_queue_answer zkl_local_queue_begin(struct zkl_core *core,
                                                  struct zkl_local_queue *local_queue,
                                                  struct zkl_local_waiter *local_waiter, bool ahead)
{
    bool shared = local_queue->handoffs_max > 0 && local_queue->state != ZKL_LOCAL_QUEUE_FREE;
    local_waiter->given = zkl_local_queue_take(core, local_queue);
    if (local_waiter->given)
        return ZKL_LOCAL_QUEUE_GIVEN;
    if (local_waiter->lock_request.try_only &&
        (shared || local_queue->state == ZKL_LOCAL_QUEUE_TAKEN))
        return ZKL_LOCAL_QUEUE_BUSY;
    if (shared) {
        local_waiter->waits = true;
        (ahead ? prepend : append)(local_queue, local_waiter);
        return ZKL_LOCAL_QUEUE_WAITS;
    }
    queue(core, local_queue, local_waiter);
    return ZKL_LOCAL_QUEUE_QUEUES;
}

/* --- handing on --------------------------------------------------------- */

static void stay(struct zkl_core *core, struct zkl_contender *c, bool idle)
{
    zkl_core_feed(core, c, (struct zkl_event){.type = ZKL_EV_STAY, .idle = idle});
}

static bool somebody_waits(const struct zkl_core *core, const struct zkl_local_queue *local_queue,
                           const struct zkl_contender *c)
{
    return local_queue->holder == c && local_queue->first && zkl_local_queue_is_fresh(core) &&
           zkl_contender_may_stay(&c->machine);
}

/* The client checks whether others queue when that matters for the first time. Until the answer
 * comes it hands the lock on: not for long, as a fresh window is proved by answers that came after
 * it. */
bool zkl_local_queue_look(struct zkl_core *core, struct zkl_local_queue *local_queue,
                          struct zkl_contender *c)
{
    const struct zkl_contender_machine *m = &c->machine;
    bool looks = somebody_waits(core, local_queue, c) &&
                 local_queue->handoffs >= local_queue->handoffs_max && !m->contended &&
                 !m->watches_contention;
    if (looks)
        stay(core, c, false);
    return looks;
}

static bool may_hand_on(struct zkl_local_queue *local_queue)
{
    const struct zkl_contender_machine *m = &local_queue->holder->machine;
    if (local_queue->handoffs < local_queue->handoffs_max)
        return true;
    if (m->watches_contention && !m->list_out && !m->contended)
        local_queue->handoffs = 0;
    return !m->contended;
}

bool zkl_local_queue_hand_on(struct zkl_core *core, struct zkl_local_queue *local_queue,
                             struct zkl_contender *c)
{
    if (!somebody_waits(core, local_queue, c) || !may_hand_on(local_queue))
        return false;
    struct zkl_local_waiter *local_waiter = local_queue->first;
    take_out(local_queue, local_waiter);
    local_queue->handoffs++;
    local_waiter->given = local_queue->holder;
    move(core, local_queue, ZKL_LOCAL_QUEUE_TAKEN, "handed on");
    local_queue->given(local_queue, local_waiter);
    return true;
}

/* --- the idle one ------------------------------------------------------- */

/* A timer that is set stays so when the lock is taken and left again: else each time would set
 * one. */
static void set_timer(struct zkl_core *core, struct zkl_local_queue *local_queue)
{
    if (local_queue->timed)
        return;
    local_queue->timed = true;
    local_queue->next_timed = core->timed_local_queues;
    core->timed_local_queues = local_queue;
    if (local_queue->idle_until < core->local_queues_mono_ns)
        core->local_queues_mono_ns = local_queue->idle_until;
}

static bool may_keep(const struct zkl_local_queue *local_queue, const struct zkl_contender *c)
{
    bool ours = local_queue->holder == c ||
                local_queue->state == ZKL_LOCAL_QUEUE_FREE; /* a multi-lock's member */
    return local_queue->retain_ns > 0 && ours && !local_queue->first &&
           local_queue->queueing == 0 && !c->machine.contended && zkl_contender_hears(c);
}

bool zkl_local_queue_keep(struct zkl_core *core, struct zkl_local_queue *local_queue,
                          struct zkl_contender *c)
{
    if (!zkl_local_queue_is_fresh(core) || !zkl_contender_may_stay(&c->machine) ||
        !may_keep(local_queue, c))
        return false;
    set_holder(local_queue, c);
    move(core, local_queue, ZKL_LOCAL_QUEUE_IDLE, "kept");
    local_queue->idle_until = core->now.mono_ns + local_queue->retain_ns;
    set_timer(core, local_queue);
    if (!c->machine.watches_contention || !c->machine.lock_request.watch_own)
        stay(core, c, true);
    return true;
}

struct zkl_contender *zkl_local_queue_take(struct zkl_core *core,
                                           struct zkl_local_queue *local_queue)
{
    if (local_queue->state != ZKL_LOCAL_QUEUE_IDLE)
        return NULL;
    local_queue->handoffs = 0;
    move(core, local_queue, ZKL_LOCAL_QUEUE_TAKEN, "taken");
    return local_queue->holder;
}

static void drop(struct zkl_core *core, struct zkl_local_queue *local_queue, const char *why)
{
    struct zkl_contender *c = local_queue->holder;
    zkl_local_queue_forget_holder(core, local_queue, why);
    zkl_core_feed_type(core, c, ZKL_EV_RELEASE);
    local_queue->dropped(local_queue, c);
}

bool zkl_local_queue_give_up(struct zkl_core *core, struct zkl_local_queue *local_queue)
{
    bool is_idle = local_queue->state == ZKL_LOCAL_QUEUE_IDLE;
    if (is_idle)
        drop(core, local_queue, "not wanted");
    return is_idle;
}

void zkl_local_queue_timer(struct zkl_core *core)
{
    struct zkl_local_queue *local_queue = core->timed_local_queues;
    core->timed_local_queues = NULL;
    core->local_queues_mono_ns = INT64_MAX;
    while (local_queue) {
        struct zkl_local_queue *next = local_queue->next_timed;
        bool idle = local_queue->state == ZKL_LOCAL_QUEUE_IDLE;
        local_queue->timed = false;
        if (idle && local_queue->idle_until > core->now.mono_ns)
            set_timer(core, local_queue);
        else if (idle)
            drop(core, local_queue, "for long enough");
        local_queue = next;
    }
}

/* --- what is due ---------------------------------------------------------- */

void zkl_local_queue_settle(struct zkl_core *core, struct zkl_due *due)
{
    struct zkl_local_queue *local_queue = (struct zkl_local_queue *)due;
    if (local_queue->state == ZKL_LOCAL_QUEUE_IDLE &&
        (!zkl_contender_may_stay(&local_queue->holder->machine) ||
         local_queue->holder->machine.contended || !zkl_contender_hears(local_queue->holder)))
        drop(core, local_queue, "wanted elsewhere, or not sure");
    if (local_queue->state != ZKL_LOCAL_QUEUE_FREE || !local_queue->first)
        return;
    struct zkl_local_waiter *local_waiter = local_queue->first;
    take_out(local_queue, local_waiter);
    queue(core, local_queue, local_waiter);
}

void zkl_local_queue_forget(struct zkl_core *core, struct zkl_local_queue *local_queue)
{
    assert(local_queue->state == ZKL_LOCAL_QUEUE_FREE && !local_queue->first &&
           !local_queue->due.listed);
    for (struct zkl_local_queue **at = &core->timed_local_queues; *at; at = &(*at)->next_timed) {
        if (*at == local_queue) {
            *at = local_queue->next_timed;
            break;
        }
    }
}
