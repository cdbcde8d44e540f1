/* SPDX-License-Identifier: Apache-2.0
 *
 * What groups, requests for permits and local queues record of their members, and the states of the
 * latter two; and what puts these, and cached readers, into the list of what is due. feed.c calls
 * this file with news of a contender. group.c, permits.c, local_queue.c and read_cache.c decide
 * later what follows: this file feeds no contender and sends no request. */
#include "composite.h"

#include <assert.h>

#include <zklock/zklock.h>

#include "due.h"

#define BIT(state) (1u << (state))

void zkl_group_touch(struct zkl_core *core, struct zkl_group *group)
{
    zkl_due_add(core, &group->due, ZKL_DUE_GROUP);
}

void zkl_permits_touch(struct zkl_core *core, struct zkl_permits *permits)
{
    zkl_due_add(core, &permits->due, ZKL_DUE_PERMITS);
}

void zkl_local_queue_touch(struct zkl_core *core, struct zkl_local_queue *local_queue)
{
    zkl_due_add(core, &local_queue->due, ZKL_DUE_LOCAL_QUEUE);
}

void zkl_read_cache_touch(struct zkl_core *core, struct zkl_read_cache *cache)
{
    zkl_due_add(core, &cache->due, ZKL_DUE_CACHE);
}

/* --- groups --------------------------------------------------------------- */

void zkl_group_fail(struct zkl_group *group, int code, size_t culprit,
                    const struct zkl_notification *notification)
{
    if (group->code != 0)
        return;
    group->code = code;
    group->culprit = culprit;
    group->number = notification ? notification->number : 0;
    zkl_text_copy(group->detail, sizeof group->detail, notification ? notification->detail : NULL);
}

bool zkl_group_is_in_core(const struct zkl_group *group, const struct zkl_group_member *member)
{
    return member->contender->machine.lock_request.group == group;
}

static bool group_notification(struct zkl_core *core, struct zkl_contender *contender,
                               const struct zkl_notification *notification)
{
    struct zkl_group *group = contender->machine.lock_request.group;
    if (!group)
        return contender->group_has_failed && notification->type != ZKL_NOTIFY_ENDED;
    size_t i = 0;
    while (group->members[i].contender != contender)
        i++;
    struct zkl_group_member *member = &group->members[i];
    if (notification->type == ZKL_NOTIFY_ENDED) {
        member->backs_out = false;
        contender->machine.lock_request.group = NULL; /* until it is started again */
    } else if (notification->type == ZKL_NOTIFY_FAILED && !member->backs_out) {
        zkl_group_fail(group, notification->code, i, notification);
    } else if (notification->type == ZKL_NOTIFY_STATE && notification->state == ZKL_HOLD_LOST &&
               !member->backs_out) {
        group->lost = true;
        zkl_group_fail(group, ZKL_ELOST, i, notification);
    }
    zkl_group_touch(core, group);
    return true;
}

/* --- requests for permits -------------------------------------------------- */

static const unsigned permits_allowed[ZKL_PERMITS_STATES] = {
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
    return (permits_allowed[from] & BIT(to)) != 0;
}

/* The only function that assigns a state. Its consequences are checked before the event is over. */
void zkl_permits_move(struct zkl_core *core, struct zkl_permits *p, enum zkl_permits_state to,
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
    zkl_permits_touch(core, p);
}

bool zkl_permits_is_in_core(const struct zkl_permits *p, const struct zkl_contender *c)
{
    return c->machine.lock_request.permits == p;
}

void zkl_permits_fail(struct zkl_permits *p, int code, int number, const char *detail)
{
    p->code = code;
    p->number = number;
    zkl_text_copy(p->detail, sizeof p->detail, detail);
}

static bool permits_notification(struct zkl_core *core, struct zkl_contender *contender,
                                 const struct zkl_notification *notification)
{
    struct zkl_permits *p = contender->machine.lock_request.permits;
    if (!p)
        return false;
    bool wanted = p->state == ZKL_PERMITS_LOOKING || p->state == ZKL_PERMITS_ENTERING ||
                  p->state == ZKL_PERMITS_TAKING;
    if (notification->type == ZKL_NOTIFY_FAILED && wanted && p->code == 0)
        zkl_permits_fail(p, notification->code, notification->number, notification->detail);
    if (notification->type == ZKL_NOTIFY_ENDED)
        contender->machine.lock_request.permits = NULL;
    zkl_permits_touch(core, p);
    return true;
}

static bool asks_for_limit(const struct zkl_contender *c)
{
    return c->slots[ZKL_SLOT_LIMIT].id != 0 && c->slots[ZKL_SLOT_LIMIT].kind == ZKL_REQ_GET;
}

bool zkl_permits_shares_limit(const struct zkl_contender *contender)
{
    const struct zkl_permits *p = contender->machine.lock_request.permits;
    const struct zkl_contender *first = p ? p->members[0] : contender;
    return first != contender && zkl_permits_is_in_core(p, first) && asks_for_limit(first);
}

/* --- local queues ----------------------------------------------------------- */

static const unsigned local_queue_allowed[ZKL_LOCAL_QUEUE_STATES] = {
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
    return (local_queue_allowed[from] & BIT(to)) != 0;
}

/* The only place that assigns a state. */
void zkl_local_queue_move(struct zkl_core *core, struct zkl_local_queue *local_queue,
                          enum zkl_local_queue_state to, const char *why)
{
    enum zkl_local_queue_state from = local_queue->state;
    assert(zkl_local_queue_may_move(from, to));
    local_queue->state = to;
    zkl_core_trace(core, (struct zkl_trace){
                             .kind = ZKL_TRACE_LOCAL_QUEUE, .from = from, .to = to, .why = why});
}

void zkl_local_queue_set_holder(struct zkl_local_queue *local_queue, struct zkl_contender *c)
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
    zkl_local_queue_move(core, local_queue,
                         local_queue->queueing > 0 ? ZKL_LOCAL_QUEUE_QUEUED : ZKL_LOCAL_QUEUE_FREE,
                         why);
    zkl_local_queue_touch(core, local_queue);
}

static void on_granted(struct zkl_core *core, struct zkl_local_queue *local_queue,
                       struct zkl_contender *c)
{
    local_queue->queueing--;
    if (local_queue->holder) { /* whose node another client deleted, which we do not know yet */
        c->machine.lock_request.local_queue = NULL;
        return;
    }
    zkl_local_queue_set_holder(local_queue, c);
    zkl_local_queue_move(core, local_queue, ZKL_LOCAL_QUEUE_TAKEN, "granted");
}

static void on_failed(struct zkl_core *core, struct zkl_local_queue *local_queue,
                      struct zkl_contender *c)
{
    c->machine.lock_request.local_queue = NULL;
    local_queue->queueing--;
    if (local_queue->state == ZKL_LOCAL_QUEUE_QUEUED && local_queue->queueing == 0)
        zkl_local_queue_move(core, local_queue, ZKL_LOCAL_QUEUE_FREE, "in vain");
    zkl_local_queue_touch(core, local_queue);
}

static void local_queue_notification(struct zkl_core *core, struct zkl_contender *c,
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
    else
        zkl_local_queue_touch(core, local_queue);
}

/* --- all of them -------------------------------------------------------------- */

bool zkl_composite_notification(struct zkl_core *core, struct zkl_contender *c,
                                const struct zkl_notification *notification)
{
    if (c->machine.lock_request.local_queue)
        local_queue_notification(core, c, notification);
    return group_notification(core, c, notification) || permits_notification(core, c, notification);
}
