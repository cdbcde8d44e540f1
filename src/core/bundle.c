/* SPDX-License-Identifier: Apache-2.0
 *
 * The decisions of a bundle: which members begin, which are backed out, and when the owner is
 * notified. They follow from the members' states alone, which core.c's loop has looked at whenever
 * there was news of a member. The bundle is its owner's memory. With the client's mutex; core.c
 * calls this file, and by it src/api to begin, stop and release one. */
#include "bundle.h"

#include <assert.h>

#include <zklock/zklock.h>

#include "due.h"
#include "feed.h"
#include "requests.h"
#include "timers.h"
#include "transaction.h"

#define BIT(state) (1u << (state))

/* --- states ------------------------------------------------------------- */

static const unsigned allowed[ZKL_BUNDLE_STATES] = {
    [ZKL_BUNDLE_IDLE] = BIT(ZKL_BUNDLE_LOOKING) | BIT(ZKL_BUNDLE_ENTERING),
    [ZKL_BUNDLE_LOOKING] = BIT(ZKL_BUNDLE_ENTERING) | BIT(ZKL_BUNDLE_FAILED),
    [ZKL_BUNDLE_ENTERING] = BIT(ZKL_BUNDLE_TAKING) | BIT(ZKL_BUNDLE_FAILED),
    [ZKL_BUNDLE_TAKING] =
        BIT(ZKL_BUNDLE_GRANTED) | BIT(ZKL_BUNDLE_BACKING) | BIT(ZKL_BUNDLE_FAILED),
    [ZKL_BUNDLE_BACKING] = BIT(ZKL_BUNDLE_ENTERING) | BIT(ZKL_BUNDLE_FAILED),
    [ZKL_BUNDLE_GRANTED] = BIT(ZKL_BUNDLE_IDLE),
    [ZKL_BUNDLE_FAILED] = BIT(ZKL_BUNDLE_IDLE),
};

const char *zkl_bundle_state_name(enum zkl_bundle_state state)
{
    static const char *const names[ZKL_BUNDLE_STATES] = {
        [ZKL_BUNDLE_IDLE] = "IDLE",         [ZKL_BUNDLE_LOOKING] = "LOOKING",
        [ZKL_BUNDLE_ENTERING] = "ENTERING", [ZKL_BUNDLE_TAKING] = "TAKING",
        [ZKL_BUNDLE_BACKING] = "BACKING",   [ZKL_BUNDLE_GRANTED] = "GRANTED",
        [ZKL_BUNDLE_FAILED] = "FAILED",
    };
    return names[state];
}

bool zkl_bundle_may_move(enum zkl_bundle_state from, enum zkl_bundle_state to)
{
    return (allowed[from] & BIT(to)) != 0;
}

/* Of a multi-lock, whose states are three, there is no trace: its members' say the same. */
static void move(struct zkl_core *core, struct zkl_bundle *b, enum zkl_bundle_state to,
                 const char *why)
{
    enum zkl_bundle_state from = b->state;
    b->state = to;
    if (!b->gated)
        return;
    assert(zkl_bundle_may_move(from, to));
    zkl_core_trace(core, (struct zkl_trace){.kind = ZKL_TRACE_PERMITS,
                                            .from = from,
                                            .to = to,
                                            .why = why,
                                            .contender = b->members[1].contender});
    if (to != ZKL_BUNDLE_IDLE) /* the core has no use for it then */
        zkl_due_add(core, &b->due, ZKL_DUE_BUNDLE);
}

static bool is_acquiring(const struct zkl_bundle *b)
{
    return b->state == ZKL_BUNDLE_LOOKING || b->state == ZKL_BUNDLE_ENTERING ||
           b->state == ZKL_BUNDLE_TAKING;
}

/* --- news of a member --------------------------------------------------- */

/* It ends with this code, unless it does already. culprit: the member; notification: of it, or
 * NULL. */
static void fail_with(struct zkl_bundle *b, int code, size_t culprit,
                      const struct zkl_notification *notification)
{
    if (b->code != 0)
        return;
    b->code = code;
    b->culprit = culprit;
    b->number = notification ? notification->number : 0;
    zkl_text_copy(b->detail, sizeof b->detail, notification ? notification->detail : NULL);
}

static bool is_in_core(const struct zkl_bundle *b, size_t i)
{
    return b->members[i].contender->machine.lock_request.bundle == b;
}

bool zkl_bundle_notification(struct zkl_contender *contender,
                             const struct zkl_notification *notification)
{
    struct zkl_bundle *b = contender->machine.lock_request.bundle;
    if (!b)
        return contender->bundle_has_failed && notification->type != ZKL_NOTIFY_ENDED;
    size_t i = 0;
    while (b->members[i].contender != contender)
        i++;
    bool matters = is_acquiring(b) && !b->members[i].backs_out;
    if (notification->type == ZKL_NOTIFY_ENDED) {
        b->members[i].backs_out = false;
        contender->machine.lock_request.bundle = NULL; /* until it is started again */
    } else if (notification->type == ZKL_NOTIFY_FAILED && matters) {
        fail_with(b, notification->code, i, notification);
    } else if (notification->type == ZKL_NOTIFY_STATE && notification->state == ZKL_HOLD_LOST &&
               matters && !b->gated) {
        b->lost = true;
        fail_with(b, ZKL_ELOST, i, notification);
    }
    return true;
}

/* --- the members' states -------------------------------------------------- */

static bool is_in(const struct zkl_bundle *b, size_t i, enum zkl_contender_state state)
{
    return is_in_core(b, i) && b->members[i].contender->machine.state == state;
}

static bool any_in_core(const struct zkl_bundle *b, size_t first)
{
    for (size_t i = first; i < b->count; i++) {
        if (is_in_core(b, i))
            return true;
    }
    return false;
}

static bool any_lost(const struct zkl_bundle *b)
{
    for (size_t i = 0; i < b->count; i++) {
        if (is_in(b, i, ZKL_CONTENDER_LOSTHOLD))
            return true;
    }
    return false;
}

static size_t first_contended(const struct zkl_bundle *b)
{
    size_t i = 0;
    while (i < b->count && !is_in(b, i, ZKL_CONTENDER_WAITING) &&
           !is_in(b, i, ZKL_CONTENDER_EXHAUSTED))
        i++;
    return i;
}

static size_t first_not_held(const struct zkl_bundle *b, size_t first)
{
    size_t i = first;
    while (i < b->count && !b->members[i].backs_out && is_in(b, i, ZKL_CONTENDER_HOLDING))
        i++;
    return i;
}

/* --- their creates, in one transaction ------------------------------------ */

/* Will it ask for its create without anything but the server's answers? */
static bool is_coming(const struct zkl_contender *c)
{
    enum zkl_contender_state state = c->machine.state;
    return state == ZKL_CONTENDER_NEW || state == ZKL_CONTENDER_PARKED ||
           state == ZKL_CONTENDER_LOOKING || state == ZKL_CONTENDER_MAKING;
}

/* How many creates go out now: none while some are out, or still to come. */
static size_t count_due(const struct zkl_bundle *b)
{
    size_t due = 0;
    for (size_t i = 0; i < b->count; i++) {
        const struct zkl_contender *c = b->members[i].contender;
        if (!is_in_core(b, i) || !c->machine.lock_request.together)
            continue;
        if (is_coming(c) || (c->wants_create && c->transaction))
            return 0;
        due += c->wants_create;
    }
    return due;
}

/* A single one is made as if there were no bundle: that answers the zxid as well. */
static void send_one(struct zkl_core *core, struct zkl_contender *c)
{
    c->wants_create = false;
    zkl_core_send_create(core, c);
    if (c->wants_list)
        zkl_core_send_list(core, c);
    c->wants_list = false;
}

/* Without memory for a transaction one by one, too. */
static void send_creates(struct zkl_core *core, const struct zkl_bundle *b)
{
    size_t due = count_due(b);
    struct zkl_transaction *t = due > 1 ? zkl_transaction_new(due) : NULL;
    for (size_t i = 0; due > 0 && i < b->count; i++) {
        struct zkl_contender *c = b->members[i].contender;
        if (!is_in_core(b, i) || !c->wants_create)
            continue;
        if (t)
            zkl_transaction_add(t, c, ZKL_HELD_CREATE);
        else
            send_one(core, c);
    }
    if (t)
        zkl_transaction_send(core, t);
}

/* Those that were stopped before their creates had been sent: they will not be. */
static void cancel_creates(struct zkl_core *core, struct zkl_bundle *b)
{
    for (size_t i = b->count; i-- > 0;) {
        struct zkl_contender *c = b->members[i].contender;
        if (!is_in(b, i, ZKL_CONTENDER_LEAVING) || !c->wants_create || c->transaction)
            continue;
        c->wants_create = c->wants_list = false;
        zkl_core_feed_answer(core, c, ZKL_EV_CREATED, ZKL_ANSWER_ROLLED_BACK); /* may end it */
    }
}

/* --- beginning and backing out --------------------------------------------- */

static void start(struct zkl_core *core, struct zkl_bundle *b, size_t first, size_t end)
{
    for (size_t i = first; i < end && (b->code == 0 || b->gated); i++) {
        struct zkl_bundle_member *member = &b->members[i];
        member->lock_request.bundle = b;
        member->lock_request.together = !b->gated || (i > 0 && b->count > 2);
        member->lock_request.quota.looked = b->gated && b->state == ZKL_BUNDLE_TAKING;
        zkl_core_start(core, member->contender, &member->lock_request);
    }
}

static void leave(struct zkl_core *core, struct zkl_bundle *b, size_t i)
{
    if (!is_in_core(b, i))
        return;
    b->members[i].backs_out = true;
    zkl_core_back_out(core, b->members[i].contender);
}

/* Members from first on, the last first, in one transaction; the leases before the gate, as the
 * next request must not find them. */
static void back_out(struct zkl_core *core, struct zkl_bundle *b, size_t first)
{
    size_t gates = b->gated;
    zkl_transaction_collect_deletes(core, b->count - gates);
    for (size_t i = b->count; i-- > (first > gates ? first : gates);)
        leave(core, b, i);
    zkl_transaction_send_deletes(core);
    cancel_creates(core, b);
    if (b->gated)
        leave(core, b, 0);
}

/* --- the steps ---------------------------------------------------------- */

static void enter_gate(struct zkl_core *core, struct zkl_bundle *b)
{
    move(core, b, ZKL_BUNDLE_ENTERING, "for the gate");
    start(core, b, 0, 1);
}

static void take(struct zkl_core *core, struct zkl_bundle *b)
{
    move(core, b, ZKL_BUNDLE_TAKING, "has the gate");
    start(core, b, 1, b->count);
}

static void tell(struct zkl_bundle *b, enum zkl_notification_type type)
{
    struct zkl_notification notification = {
        .type = type, .code = b->code, .number = b->number, .detail = b->detail};
    b->told(b, &notification);
}

/* From here on its news come as if it had been alone; of a failure only its end is still to
 * come. */
static void let_go(struct zkl_core *core, struct zkl_bundle *b, size_t i)
{
    struct zkl_contender *c = b->members[i].contender;
    struct zkl_notification notification = {
        .type = ZKL_NOTIFY_GRANTED, .code = b->code, .number = b->number, .detail = b->detail};
    bool ended = !is_in_core(b, i);
    c->machine.lock_request.bundle = NULL;
    c->bundle_has_failed = b->state == ZKL_BUNDLE_FAILED;
    if (!c->bundle_has_failed && b->lease_ns > 0)
        (void)zkl_timers_begin_lease(core, c, b->lease_ns);
    if (b->gated)
        return;
    if (c->bundle_has_failed)
        notification.type = ZKL_NOTIFY_FAILED;
    core->port->notification(core->port, c, &notification);
    notification.type = ZKL_NOTIFY_ENDED;
    if (ended)
        core->port->notification(core->port, c, &notification);
}

static void fail(struct zkl_core *core, struct zkl_bundle *b)
{
    move(core, b, ZKL_BUNDLE_FAILED, "failed");
    back_out(core, b, 0);
    if (b->gated) {
        tell(b, ZKL_NOTIFY_FAILED);
        return;
    }
    for (size_t i = 0; i < b->count; i++)
        let_go(core, b, i);
}

static void grant(struct zkl_core *core, struct zkl_bundle *b)
{
    move(core, b, ZKL_BUNDLE_GRANTED, "all are there");
    for (size_t i = b->gated; i < b->count; i++)
        let_go(core, b, i);
    if (!b->gated)
        return;
    leave(core, b, 0); /* its answer concerns no contender */
    tell(b, ZKL_NOTIFY_GRANTED);
}

/* The members but the gate are to be held. */
static void settle_taking(struct zkl_core *core, struct zkl_bundle *b)
{
    size_t i = first_not_held(b, b->gated), contended = first_contended(b);
    if (i == b->count) {
        grant(core, b);
    } else if (b->gated) {
        if (!any_lost(b))
            return;
        move(core, b, ZKL_BUNDLE_BACKING, "a part was lost");
        back_out(core, b, 0);
    } else if (contended + 1 < b->count) {
        back_out(core, b, contended + 1);
    } else if (!any_in_core(b, i)) {
        start(core, b, i, b->count);
    }
}

void zkl_bundle_settle(struct zkl_core *core, struct zkl_due *due)
{
    struct zkl_bundle *b = (struct zkl_bundle *)due;
    if (b->code != 0 && (is_acquiring(b) || b->state == ZKL_BUNDLE_BACKING)) {
        fail(core, b);
        return;
    }
    switch ((int)b->state) {
    case ZKL_BUNDLE_LOOKING:
    case ZKL_BUNDLE_BACKING:
        if (!any_in_core(b, 0))
            enter_gate(core, b);
        break;
    case ZKL_BUNDLE_ENTERING:
        if (is_in(b, 0, ZKL_CONTENDER_HOLDING))
            take(core, b);
        break;
    case ZKL_BUNDLE_TAKING:
        settle_taking(core, b);
        /* Not before what this has brought is decided on, too: one of them may have failed. */
        if (b->state == ZKL_BUNDLE_TAKING && !b->due.listed)
            send_creates(core, b);
        break;
    case ZKL_BUNDLE_GRANTED:
    case ZKL_BUNDLE_FAILED:
        if (!b->gated || any_in_core(b, 0))
            break;
        move(core, b, ZKL_BUNDLE_IDLE, "nothing is left");
        tell(b, ZKL_NOTIFY_ENDED); /* last: the owner may free it */
        break;
    }
}

/* --- one question for all leases ------------------------------------------ */

void zkl_bundle_share_limit(struct zkl_core *core, struct zkl_contender *contender,
                            struct zkl_event event)
{
    const struct zkl_bundle *b = contender->machine.lock_request.bundle;
    for (size_t i = 2; b && contender == b->members[1].contender && i < b->count; i++) {
        struct zkl_contender *other = b->members[i].contender;
        if (is_in_core(b, i) && other->machine.limit.out && other->slots[ZKL_SLOT_LIMIT].id == 0)
            zkl_core_feed(core, other, event);
    }
}

/* --- what the owner wants ----------------------------------------------- */

static void begin_gated(struct zkl_core *core, struct zkl_bundle *b)
{
    for (size_t i = 1; i < b->count; i++)
        b->members[i].lock_request.quota.want = (int)b->count - 1;
    if (!b->members[1].lock_request.try_only) {
        enter_gate(core, b);
        return;
    }
    move(core, b, ZKL_BUNDLE_LOOKING, "is there room");
    start(core, b, 1, 2);
}

void zkl_bundle_begin(struct zkl_core *core, struct zkl_bundle *b)
{
    b->code = b->number = 0;
    b->detail[0] = '\0';
    b->culprit = b->count;
    b->lost = false;
    b->due = (struct zkl_due){0};
    for (size_t i = 0; i < b->count; i++)
        b->members[i].backs_out = false;
    if (b->gated) {
        begin_gated(core, b);
        return;
    }
    b->state = ZKL_BUNDLE_TAKING;
    zkl_due_add(core, &b->due, ZKL_DUE_BUNDLE);
}

void zkl_bundle_end(struct zkl_core *core, struct zkl_bundle *b, int code)
{
    if (!is_acquiring(b) && b->state != ZKL_BUNDLE_BACKING)
        return;
    fail_with(b, code, b->count, NULL);
    zkl_due_add(core, &b->due, ZKL_DUE_BUNDLE);
}

void zkl_bundle_unlock(struct zkl_core *core, struct zkl_contender *const *contenders, size_t count)
{
    zkl_transaction_collect_deletes(core, count);
    for (size_t i = count; i-- > 0;)
        zkl_core_feed(core, contenders[i], (struct zkl_event){.type = ZKL_EV_RELEASE});
    zkl_transaction_send_deletes(core);
}

bool zkl_bundle_is_behind(const struct zkl_bundle *b)
{
    enum zkl_contender_state state = b->members[0].contender->machine.state;
    return b->state == ZKL_BUNDLE_ENTERING &&
           (state == ZKL_CONTENDER_WAITING || state == ZKL_CONTENDER_LISTING ||
            state == ZKL_CONTENDER_EXHAUSTED);
}
