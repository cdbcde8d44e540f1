/* SPDX-License-Identifier: Apache-2.0
 *
 * The decisions of a group: which members begin, which are backed out, and when the owner is
 * notified. They follow from the members' states alone. core.c's loop checks them whenever there
 * was news of a member. The group is its owner's memory. With the client's mutex; core.c calls this
 * file, and src/api to begin, cancel and release a group. */
#include "group.h"

#include <zklock/zklock.h>

#include "batch.h"
#include "transaction.h"
#include "due.h"
#include "feed.h"
#include "timers.h"

/* --- news of a member ---------------------------------------------------- */

/* It ends with this code, unless it does already. culprit: the member; notification: of it, or
 * NULL. */
static void fail_with(struct zkl_group *group, int code, size_t culprit,
                      const struct zkl_notification *notification)
{
    if (group->code != 0)
        return;
    group->code = code;
    group->culprit = culprit;
    group->number = notification ? notification->number : 0;
    zkl_text_copy(group->detail, sizeof group->detail, notification ? notification->detail : NULL);
}

static bool is_in_core(const struct zkl_group *group, const struct zkl_group_member *member)
{
    return member->contender->machine.lock_request.group == group;
}

bool zkl_group_notification(struct zkl_core *core, struct zkl_contender *contender,
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
        fail_with(group, notification->code, i, notification);
    } else if (notification->type == ZKL_NOTIFY_STATE && notification->state == ZKL_HOLD_LOST &&
               !member->backs_out) {
        group->lost = true;
        fail_with(group, ZKL_ELOST, i, notification);
    }
    zkl_due_add(core, &group->due, ZKL_DUE_GROUP);
    return true;
}

/* --- backing out -------------------------------------------------------- */

/* Members from first on, the last first, in one transaction. */
static void back_out(struct zkl_core *core, struct zkl_group *group, size_t first)
{
    zkl_transaction_collect_deletes(core, group->count);
    for (size_t i = group->count; i-- > first;) {
        struct zkl_group_member *member = &group->members[i];
        member->backs_out = member->backs_out || is_in_core(group, member);
        if (member->backs_out)
            zkl_core_back_out(core, member->contender);
    }
    zkl_transaction_send_deletes(core);
    zkl_transaction_cancel_creates(core, group->batch);
}

/* --- deciding ----------------------------------------------------------- */

static void finish(struct zkl_core *core, struct zkl_group *group, enum zkl_group_state state)
{
    group->state = state;
    for (size_t i = 0; i < group->count; i++) {
        struct zkl_contender *c = group->members[i].contender;
        struct zkl_notification notification = {
            .code = group->code,
            .number = group->number,
            .detail = group->detail,
            .type = state == ZKL_GROUP_GRANTED ? ZKL_NOTIFY_GRANTED : ZKL_NOTIFY_FAILED};
        bool ended = !is_in_core(group, &group->members[i]);
        c->machine.lock_request.group = NULL;
        if (state == ZKL_GROUP_GRANTED && group->lease_ns > 0)
            (void)zkl_timers_begin_lease(core, c, group->lease_ns);
        core->port->notification(core->port, c, &notification);
        c->group_has_failed = state == ZKL_GROUP_FAILED;
        notification.type = ZKL_NOTIFY_ENDED;
        if (ended)
            core->port->notification(core->port, c, &notification);
    }
    zkl_batch_unref(core, group->batch);
    group->batch = NULL;
}

static bool is_contended(const struct zkl_group *group, const struct zkl_group_member *member)
{
    enum zkl_contender_state state = member->contender->machine.state;
    return is_in_core(group, member) &&
           (state == ZKL_CONTENDER_WAITING || state == ZKL_CONTENDER_EXHAUSTED);
}

static size_t first_contended(const struct zkl_group *group)
{
    size_t i = 0;
    while (i < group->count && !is_contended(group, &group->members[i]))
        i++;
    return i;
}

static size_t first_not_held(const struct zkl_group *group)
{
    size_t i = 0;
    while (i < group->count && is_in_core(group, &group->members[i]) &&
           !group->members[i].backs_out &&
           group->members[i].contender->machine.state == ZKL_CONTENDER_HOLDING)
        i++;
    return i;
}

static bool any_in_core(const struct zkl_group *group, size_t first)
{
    for (size_t i = first; i < group->count; i++) {
        if (is_in_core(group, &group->members[i]))
            return true;
    }
    return false;
}

/* The rest, in one transaction: the batch sends it when all of them have asked. */
static void start_from(struct zkl_core *core, struct zkl_group *group, size_t first)
{
    for (size_t i = first; i < group->count && group->code == 0; i++) {
        struct zkl_group_member *member = &group->members[i];
        member->lock_request.group = group;
        member->lock_request.batch = group->batch;
        zkl_core_start(core, member->contender, &member->lock_request);
    }
}

void zkl_group_settle(struct zkl_core *core, struct zkl_due *due)
{
    struct zkl_group *group = (struct zkl_group *)due;
    if (group->state != ZKL_GROUP_ACQUIRING)
        return;
    size_t i = first_not_held(group), contended = first_contended(group);
    if (group->code != 0) {
        back_out(core, group, 0);
        finish(core, group, ZKL_GROUP_FAILED);
    } else if (i == group->count) {
        finish(core, group, ZKL_GROUP_GRANTED);
    } else if (contended + 1 < group->count) {
        back_out(core, group, contended + 1);
    } else if (!any_in_core(group, i)) {
        start_from(core, group, i);
    }
}

/* --- what the owner wants ----------------------------------------------- */

int zkl_group_begin(struct zkl_core *core, struct zkl_group *group)
{
    group->state = ZKL_GROUP_ACQUIRING;
    group->code = group->number = 0;
    group->detail[0] = '\0';
    group->culprit = group->count;
    group->due = (struct zkl_due){0};
    group->lost = false;
    group->batch = zkl_batch_new(group->count);
    if (!group->batch)
        return ZKL_ENOMEM;
    for (size_t i = 0; i < group->count; i++)
        group->members[i].backs_out = false;
    zkl_due_add(core, &group->due, ZKL_DUE_GROUP);
    return 0;
}

void zkl_group_end(struct zkl_core *core, struct zkl_group *group, int code)
{
    if (group->state != ZKL_GROUP_ACQUIRING)
        return;
    fail_with(group, code, group->count, NULL);
    zkl_due_add(core, &group->due, ZKL_DUE_GROUP);
}

void zkl_group_unlock(struct zkl_core *core, struct zkl_contender *const *contenders, size_t count)
{
    zkl_transaction_collect_deletes(core, count);
    for (size_t i = count; i-- > 0;)
        zkl_core_feed(core, contenders[i], (struct zkl_event){.type = ZKL_EV_RELEASE});
    zkl_transaction_send_deletes(core);
}
