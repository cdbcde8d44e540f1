/* SPDX-License-Identifier: Apache-2.0
 *
 * Each part is a contender of its own and acts by itself, except for three decisions: when the next
 * part begins, when all are backed out, and when the owner is notified. They follow from the states
 * of the parts alone, which are checked whenever there is news of one of them. */
#include "permits.h"

#include <assert.h>

#include <zklock/zklock.h>

#include "batch.h"
#include "transaction.h"
#include "due.h"
#include "feed.h"
#include "timers.h"

#define BIT(state) (1u << (state))

/* --- states and news ----------------------------------------------------- */

static const unsigned allowed[ZKL_PERMITS_STATES] = {
    [ZKL_PERMITS_IDLE] = BIT(ZKL_PERMITS_LOOKING) | BIT(ZKL_PERMITS_ENTERING),
    [ZKL_PERMITS_LOOKING] = BIT(ZKL_PERMITS_ENTERING) | BIT(ZKL_PERMITS_FAILED),
    [ZKL_PERMITS_ENTERING] = BIT(ZKL_PERMITS_TAKING) | BIT(ZKL_PERMITS_FAILED),
    [ZKL_PERMITS_TAKING] =
        BIT(ZKL_PERMITS_GRANTED) | BIT(ZKL_PERMITS_BACKING) | BIT(ZKL_PERMITS_FAILED),
    [ZKL_PERMITS_BACKING] = BIT(ZKL_PERMITS_ENTERING) | BIT(ZKL_PERMITS_FAILED),
    [ZKL_PERMITS_GRANTED] = BIT(ZKL_PERMITS_IDLE),
    [ZKL_PERMITS_FAILED] = BIT(ZKL_PERMITS_IDLE),
};

const char *zkl_permits_state_name(enum zkl_permits_state state)
{
    static const char *const names[ZKL_PERMITS_STATES] = {
        [ZKL_PERMITS_IDLE] = "IDLE",         [ZKL_PERMITS_LOOKING] = "LOOKING",
        [ZKL_PERMITS_ENTERING] = "ENTERING", [ZKL_PERMITS_TAKING] = "TAKING",
        [ZKL_PERMITS_BACKING] = "BACKING",   [ZKL_PERMITS_GRANTED] = "GRANTED",
        [ZKL_PERMITS_FAILED] = "FAILED",
    };
    return names[state];
}

bool zkl_permits_may_move(enum zkl_permits_state from, enum zkl_permits_state to)
{
    return (allowed[from] & BIT(to)) != 0;
}

/* The only function that assigns a state. Its consequences are checked before the event is over. */
static void move(struct zkl_core *core, struct zkl_permits *p, enum zkl_permits_state to,
                 const char *why)
{
    enum zkl_permits_state from = p->state;
    assert(zkl_permits_may_move(from, to));
    p->state = to;
    zkl_core_trace(core, (struct zkl_trace){.kind = ZKL_TRACE_PERMITS,
                                            .from = from,
                                            .to = to,
                                            .why = why,
                                            .contender = p->members[0]});
    zkl_due_add(core, &p->due, ZKL_DUE_PERMITS);
}

static bool is_in_core(const struct zkl_permits *p, const struct zkl_contender *c)
{
    return c->machine.lock_request.permits == p;
}

static void fail_with(struct zkl_permits *p, int code, int number, const char *detail)
{
    p->code = code;
    p->number = number;
    zkl_text_copy(p->detail, sizeof p->detail, detail);
}

bool zkl_permits_notification(struct zkl_core *core, struct zkl_contender *contender,
                              const struct zkl_notification *notification)
{
    struct zkl_permits *p = contender->machine.lock_request.permits;
    if (!p)
        return false;
    bool wanted = p->state == ZKL_PERMITS_LOOKING || p->state == ZKL_PERMITS_ENTERING ||
                  p->state == ZKL_PERMITS_TAKING;
    if (notification->type == ZKL_NOTIFY_FAILED && wanted && p->code == 0)
        fail_with(p, notification->code, notification->number, notification->detail);
    if (notification->type == ZKL_NOTIFY_ENDED)
        contender->machine.lock_request.permits = NULL;
    zkl_due_add(core, &p->due, ZKL_DUE_PERMITS);
    return true;
}

/* --- the parts ---------------------------------------------------------- */

static bool is_in(const struct zkl_permits *p, const struct zkl_contender *c,
                  enum zkl_contender_state state)
{
    return is_in_core(p, c) && c->machine.state == state;
}

static bool any_in_core(const struct zkl_permits *p)
{
    bool any = is_in_core(p, &p->gate);
    for (size_t i = 0; i < p->count; i++)
        any |= is_in_core(p, p->members[i]);
    return any;
}

static bool any_lost(const struct zkl_permits *p)
{
    bool lost = is_in(p, &p->gate, ZKL_CONTENDER_LOSTHOLD);
    for (size_t i = 0; i < p->count; i++)
        lost |= is_in(p, p->members[i], ZKL_CONTENDER_LOSTHOLD);
    return lost;
}

static bool all_held(const struct zkl_permits *p)
{
    size_t held = 0;
    for (size_t i = 0; i < p->count; i++)
        held += is_in(p, p->members[i], ZKL_CONTENDER_HOLDING);
    return held == p->count;
}

static void leave(struct zkl_core *core, struct zkl_permits *p, struct zkl_contender *c)
{
    if (is_in_core(p, c))
        zkl_core_back_out(core, c);
}

static void drop_batch(struct zkl_core *core, struct zkl_permits *p)
{
    if (p->batch)
        zkl_batch_unref(core, p->batch);
    p->batch = NULL;
}

/* The leases before the gate: the next request must not find them. */
static void leave_all(struct zkl_core *core, struct zkl_permits *p)
{
    zkl_transaction_collect_deletes(core, p->count);
    for (size_t i = p->count; i-- > 0;)
        leave(core, p, p->members[i]);
    zkl_transaction_send_deletes(core);
    if (p->batch)
        zkl_transaction_cancel_creates(core, p->batch);
    drop_batch(core, p);
    leave(core, p, &p->gate);
}

static void start_member(struct zkl_core *core, struct zkl_permits *p, size_t i)
{
    p->lock_request.permits = p;
    struct zkl_lock_request lock_request = p->lock_request;
    lock_request.quota.want = (int)p->count;
    lock_request.quota.looked = p->state == ZKL_PERMITS_TAKING;
    lock_request.lease_ns = 0; /* that counts from the grant of all */
    lock_request.batch = p->batch;
    zkl_core_start(core, p->members[i], &lock_request);
}

/* --- one question for all ------------------------------------------------ */

void zkl_permits_share_limit(struct zkl_core *core, struct zkl_contender *contender,
                             struct zkl_event event)
{
    struct zkl_permits *p = contender->machine.lock_request.permits;
    for (size_t i = 1; p && contender == p->members[0] && i < p->count; i++) {
        struct zkl_contender *other = p->members[i];
        if (is_in_core(p, other) && other->machine.limit.out &&
            other->slots[ZKL_SLOT_LIMIT].id == 0)
            zkl_core_feed(core, other, event);
    }
}

/* --- the steps ---------------------------------------------------------- */

static void look(struct zkl_core *core, struct zkl_permits *p)
{
    move(core, p, ZKL_PERMITS_LOOKING, "is there room");
    start_member(core, p, 0);
}

static void enter_gate(struct zkl_core *core, struct zkl_permits *p)
{
    struct zkl_lock_request lock_request = {
        .path = p->gate_path, .data = p->lock_request.data, .permits = p};
    move(core, p, ZKL_PERMITS_ENTERING, "for the gate");
    zkl_core_start(core, &p->gate, &lock_request);
}

static void take(struct zkl_core *core, struct zkl_permits *p)
{
    move(core, p, ZKL_PERMITS_TAKING, "has the gate");
    p->batch = p->count > 1 ? zkl_batch_new(p->count) : NULL; /* no memory: one by one */
    for (size_t i = 0; i < p->count; i++)
        start_member(core, p, i);
}

static void notify(struct zkl_permits *p, enum zkl_notification_type type)
{
    struct zkl_notification notification = {
        .type = type, .code = p->code, .number = p->number, .detail = p->detail};
    p->told(p, &notification);
}

static void fail(struct zkl_core *core, struct zkl_permits *p)
{
    move(core, p, ZKL_PERMITS_FAILED, "failed");
    leave_all(core, p);
    notify(p, ZKL_NOTIFY_FAILED);
}

static void start_over(struct zkl_core *core, struct zkl_permits *p)
{
    move(core, p, ZKL_PERMITS_BACKING, "a part was lost");
    leave_all(core, p);
}

static void grant(struct zkl_core *core, struct zkl_permits *p)
{
    move(core, p, ZKL_PERMITS_GRANTED, "all are there");
    for (size_t i = 0; i < p->count; i++) {
        p->members[i]->machine.lock_request.permits = NULL;
        if (p->lock_request.lease_ns > 0)
            (void)zkl_timers_begin_lease(core, p->members[i], p->lock_request.lease_ns);
    }
    drop_batch(core, p);
    leave(core, p, &p->gate); /* its answer concerns no contender */
    notify(p, ZKL_NOTIFY_GRANTED);
}

static void end(struct zkl_core *core, struct zkl_permits *p)
{
    move(core, p, ZKL_PERMITS_IDLE, "nothing is left");
    notify(p, ZKL_NOTIFY_ENDED);
}

void zkl_permits_settle(struct zkl_core *core, struct zkl_due *due)
{
    struct zkl_permits *p = (struct zkl_permits *)due;
    switch (p->state) {
    case ZKL_PERMITS_LOOKING:
        if (p->code != 0)
            fail(core, p);
        else if (!any_in_core(p))
            enter_gate(core, p);
        break;
    case ZKL_PERMITS_ENTERING:
        if (p->code != 0)
            fail(core, p);
        else if (is_in(p, &p->gate, ZKL_CONTENDER_HOLDING))
            take(core, p);
        break;
    case ZKL_PERMITS_TAKING:
        if (p->code != 0)
            fail(core, p);
        else if (all_held(p))
            grant(core, p);
        else if (any_lost(p))
            start_over(core, p);
        break;
    case ZKL_PERMITS_BACKING:
        if (p->code != 0)
            fail(core, p);
        else if (!any_in_core(p))
            enter_gate(core, p);
        break;
    case ZKL_PERMITS_GRANTED:
    case ZKL_PERMITS_FAILED:
        if (!any_in_core(p))
            end(core, p);
        break;
    case ZKL_PERMITS_IDLE:
    case ZKL_PERMITS_STATES:
        break;
    }
}

/* --- what the owner wants ----------------------------------------------- */

void zkl_permits_begin(struct zkl_core *core, struct zkl_permits *p)
{
    fail_with(p, 0, 0, NULL);
    if (p->lock_request.try_only)
        look(core, p);
    else
        enter_gate(core, p);
}

void zkl_permits_end(struct zkl_core *core, struct zkl_permits *p, int code)
{
    if (p->state == ZKL_PERMITS_IDLE || p->state == ZKL_PERMITS_GRANTED ||
        p->state == ZKL_PERMITS_FAILED)
        return;
    if (p->code == 0)
        fail_with(p, code, 0, NULL);
    zkl_due_add(core, &p->due, ZKL_DUE_PERMITS);
}

bool zkl_permits_is_behind(const struct zkl_permits *p)
{
    enum zkl_contender_state state = p->gate.machine.state;
    return p->state == ZKL_PERMITS_ENTERING &&
           (state == ZKL_CONTENDER_WAITING || state == ZKL_CONTENDER_LISTING ||
            state == ZKL_CONTENDER_EXHAUSTED);
}
