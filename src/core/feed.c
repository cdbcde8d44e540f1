/* SPDX-License-Identifier: Apache-2.0
 *
 * One event to one contender: its machine takes a step (contender.c), and this file executes the
 * resulting actions in order. A bundle or list_coalescing.c receive requests first and may combine
 * them with others'; requests.c receives the rest. What the contender is part of
 * receives its owner's notifications first and may keep them. Everything with an answer, an event or a moment to report calls this
 * file, with the client's lock held. It calls down only: what follows for a bundle, a local
 * queue or cached readers enters the list of what is due, which core.c drains. It calls
 * itself for one more contender in two places: a watch that was armed with the owner's revocation
 * in it, and the heir of a delete that has ended. */
#include "feed.h"

#include <assert.h>
#include <stdlib.h>

#include <zklock/zklock.h>

#include "bundle.h"
#include "due.h"
#include "ephemerals.h"
#include "group_commit.h"
#include "leftovers.h"
#include "list_coalescing.h"
#include "local_queue.h"
#include "opcode.h"
#include "read_cache.h"
#include "requests.h"
#include "timers.h"
#include "transaction.h"
#include "unlisted_grant.h"
#include "watch.h"

/* --- watches ------------------------------------------------------------ */

/* name: a child's, "" for the lock path itself. */
static void arm_data_watch(struct zkl_core *core, struct zkl_contender *c, int which,
                           const char *name)
{
    char small[ZKL_NODE_PATH_MAX + 1], *path = zkl_core_child_path(c, name, small);
    enum zkl_subscribed result = ZKL_SUBSCRIBED_REFUSED;
    enum zkl_answer why = ZKL_ANSWER_NOMEM;
    if (path)
        result = zkl_watch_data(core, &c->subs[which], c, path, &why);
    if (result == ZKL_SUBSCRIBED_SHARED && which == ZKL_SUB_OWN && c->subs[which].watch->revoked) {
        zkl_core_feed_type(core, c, ZKL_EV_REVOKED); /* armed by a waiter, which ignores it */
    } else if (result == ZKL_SUBSCRIBED_REFUSED && which != ZKL_SUB_OWN) {
        /* Waiting without a watch would be forever: end the lock request. Reported when this step
         * is over. */
        zkl_pending_refuse(core, &c->slots[ZKL_SLOT_SYNC], ZKL_REQ_WATCH, why);
    }
    if (path != small)
        free(path);
}

/* A successor of the same client may ask for it sooner, to watch its predecessor. */
static void watch_own_later(struct zkl_core *core, struct zkl_contender *c)
{
    char path[ZKL_NODE_PATH_MAX + 1];
    zkl_core_node_path(c, c->machine.node, path);
    zkl_watch_plan(core, &c->subs[ZKL_SUB_OWN], c, path, ZKL_WATCH_DATA);
    zkl_timers_put_off(core);
}

/* The list and the child watch are one request, shared by all contenders that read this path. Its
 * answer also serves a contender that joins while it is out, because any later change fires the
 * watch.
 */
static void list_lock_path(struct zkl_core *core, struct zkl_contender *c)
{
    struct zkl_subscription *sub = &c->subs[ZKL_SUB_LOCK_PATH];
    enum zkl_answer why;
    if (zkl_watch_subscribe(core, sub, c, c->machine.lock_request.path->text, ZKL_WATCH_CHILD,
                            &why) == ZKL_SUBSCRIBED_REFUSED) {
        zkl_pending_refuse(core, &c->slots[ZKL_SLOT_LIST], ZKL_REQ_LIST_LOCK_PATH, why);
        return;
    }
    if (sub->watch->request.id != 0) {
        if (c->machine
                .watches_contention) /* it shows no more than what was there when it was sent */
            c->machine.looked_boot = sub->watch->request.sent_boot_ns;
        return;
    }
    struct zkl_request request = {.kind = ZKL_REQ_LIST_LOCK_PATH,
                                  .path = c->machine.lock_request.path->text,
                                  .watch_id = sub->watch->id};
    sub->watch->state = ZKL_WATCH_ARMING; /* again, perhaps: not to be removed before its answer */
    zkl_pending_send(core, &sub->watch->request, &request);
}

/* --- doing what a contender asks ---------------------------------------- */

static void notify(struct zkl_core *core, struct zkl_contender *c, enum zkl_notification_type type,
                   const struct zkl_action *action)
{
    struct zkl_notification notification = {.type = type,
                                            .code = action->code,
                                            .state = action->state,
                                            .reason = action->reason,
                                            .number = action->number,
                                            .detail = action->detail};
    if (!core->tell_composites(core, c, &notification))
        core->port->notification(core->port, c, &notification);
}

static void unlink_contender(struct zkl_core *core, struct zkl_contender *c)
{
    *(c->prev ? &c->prev->next : &core->first) = c->next;
    *(c->next ? &c->next->prev : &core->last) = c->prev;
}

static void forget_list(struct zkl_core *core, struct zkl_contender *c)
{
    zkl_pending_forget(core, &c->slots[ZKL_SLOT_LIST]);
    c->wants_list = false;
    zkl_shared_list_leave(core, c);
}

static void finish(struct zkl_core *core, struct zkl_contender *c, const struct zkl_action *action)
{
    for (int i = 0; i < ZKL_SLOTS; i++)
        zkl_pending_forget(core, &c->slots[i]);
    forget_list(core, c);
    zkl_unlisted_forget(c);
    zkl_transaction_leave(core, c);
    zkl_group_commit_forget(core, c);
    unlink_contender(core, c);
    notify(core, c, ZKL_NOTIFY_ENDED, action);
}

static void unwatch(struct zkl_core *core, struct zkl_contender *c, bool own_too)
{
    for (int i = 0; i < ZKL_SUBS; i++) {
        if (i != ZKL_SUB_OWN || own_too)
            zkl_watch_unsubscribe(core, &c->subs[i]);
    }
}

static bool asks_for_limit(const struct zkl_contender *c)
{
    return c->slots[ZKL_SLOT_LIMIT].id != 0 && c->slots[ZKL_SLOT_LIMIT].kind == ZKL_REQ_GET;
}

/* The first lease of the same request has asked for the number of permits, for all of them. */
static bool shares_limit(const struct zkl_contender *contender)
{
    const struct zkl_bundle *b = contender->machine.lock_request.bundle;
    const struct zkl_contender *first = b ? b->members[1].contender : contender;
    return first != contender && first->machine.lock_request.bundle == b && asks_for_limit(first);
}

/* False: it is not a request. */
static bool send(struct zkl_core *core, struct zkl_contender *c, const struct zkl_action *action)
{
    switch ((int)action->type) {
    case ZKL_DO_MAKE:
        zkl_core_send_make(core, c);
        break;
    case ZKL_DO_CREATE:
        if (c->machine.lock_request.together)
            c->wants_create = true; /* bundle.c sends it */
        else if (!zkl_group_commit_holds_create(core, c))
            zkl_core_send_create(core, c);
        break;
    case ZKL_DO_CREATE_UNDER:
        zkl_core_send_create_downgraded(core, c);
        break;
    case ZKL_DO_LIST:
        if (c->wants_create)
            c->wants_list = true; /* behind it */
        else if (!zkl_shared_list_list(core, c))
            zkl_core_send_list(core, c);
        break;
    case ZKL_DO_SYNC:
        zkl_core_send_lock_path(core, c, ZKL_SLOT_SYNC, ZKL_REQ_SYNC);
        break;
    case ZKL_DO_BARRIER:
        zkl_core_send_barrier(core, c);
        break;
    case ZKL_DO_STAT:
        zkl_core_send_node(core, c, ZKL_SLOT_STAT, ZKL_REQ_STAT);
        break;
    case ZKL_DO_RENEW:
        zkl_core_send_lock_path(core, c, ZKL_SLOT_STAT, ZKL_REQ_RENEW);
        break;
    case ZKL_DO_REVOKE:
        zkl_core_send_revocation(core, c, action->name);
        break;
    case ZKL_DO_DELETE:
        if (!zkl_transaction_takes_delete(core, c) && !zkl_group_commit_holds_delete(core, c))
            zkl_core_send_delete(core, c);
        break;
    case ZKL_DO_GET_LIMIT:
        if (!shares_limit(c))
            zkl_core_send_lock_path(core, c, ZKL_SLOT_LIMIT, ZKL_REQ_GET);
        break;
    case ZKL_DO_SET_LIMIT:
        zkl_core_send_limit(core, c);
        break;
    default:
        return false;
    }
    return true;
}

/* False: it is not about watches. */
static bool watch(struct zkl_core *core, struct zkl_contender *c, const struct zkl_action *action)
{
    switch ((int)action->type) {
    case ZKL_DO_LIST_LOCK_PATH:
        list_lock_path(core, c);
        break;
    case ZKL_DO_WATCH_PRED:
        arm_data_watch(core, c, ZKL_SUB_PRED, action->name);
        break;
    case ZKL_DO_WATCH_OWN:
        arm_data_watch(core, c, ZKL_SUB_OWN, c->machine.node);
        break;
    case ZKL_DO_WATCH_OWN_LATER:
        watch_own_later(core, c);
        break;
    case ZKL_DO_WATCH_LIMIT:
        arm_data_watch(core, c, ZKL_SUB_LIMIT, "");
        break;
    case ZKL_DO_UNWATCH:
        unwatch(core, c, true);
        break;
    case ZKL_DO_UNWATCH_OTHERS:
        unwatch(core, c, false);
        break;
    default:
        return false;
    }
    return true;
}

static void execute(struct zkl_core *core, struct zkl_contender *c, const struct zkl_action *action)
{
    if (send(core, c, action) || watch(core, c, action))
        return;
    switch ((int)action->type) {
    case ZKL_DO_FORGET_LIST:
        forget_list(core, c);
        break;
    case ZKL_DO_EXPECT_LATE:
        zkl_leftovers_expect(core, c);
        break;
    case ZKL_DO_HEARTBEAT:
        core->heartbeat_wanted = true;
        break;
    case ZKL_DO_GRANT:
        zkl_timers_note_lease(core, c);
        notify(core, c, ZKL_NOTIFY_GRANTED, action);
        break;
    case ZKL_DO_FAIL:
        notify(core, c, ZKL_NOTIFY_FAILED, action);
        break;
    case ZKL_DO_RELEASED:
        notify(core, c, ZKL_NOTIFY_RELEASED, action);
        break;
    case ZKL_DO_NOTIFY_STATE:
    case ZKL_DO_LOST:
        notify(core, c, ZKL_NOTIFY_STATE, action);
        break;
    case ZKL_DO_END:
        finish(core, c, action);
        break;
    default:
        assert(!"these are all kinds of actions");
    }
}

/* --- an heir ------------------------------------------------------------- */

void zkl_feed_pred_gone(struct zkl_core *core, struct zkl_contender *c, struct zkl_event event,
                        enum zkl_pred_end end)
{
    event.pred_proof = zkl_pred_proof(core, c, end);
    zkl_core_feed(core, c, event);
}

/* The delete that the contender waited for has ended; given_back: by its answer the node is
 * deleted. */
static void feed_heir(struct zkl_core *core, struct zkl_contender *heir, bool given_back)
{
    zkl_feed_pred_gone(core, heir, (struct zkl_event){.type = ZKL_EV_PRED_FIRED},
                       given_back ? ZKL_PRED_END_GIVEN_BACK : ZKL_PRED_END_UNSURE);
}

static void no_heir_of(struct zkl_contender *c)
{
    if (c->heir_of)
        c->heir_of->heir = NULL;
    c->heir_of = NULL;
}

/* The contender that waits for the end of this one's delete, once that has come. */
static struct zkl_contender *take_heir(struct zkl_contender *c)
{
    struct zkl_contender *heir = c->heir;
    if (!heir || (c->machine.delete_out && c->machine.state != ZKL_CONTENDER_ENDED))
        return NULL;
    no_heir_of(heir);
    return heir;
}

/* --- feeding ------------------------------------------------------------- */

/* What the checks before its step ask of the others: it joins these, or leaves them. */
static void count_among_others(struct zkl_core *core, const struct zkl_contender *c, bool joins)
{
    size_t one = joins ? 1 : -(size_t)1;
    core->ephemeral_bytes += one * (c->counted >> ZKL_COUNT_OWNS & 1) * c->node_bytes;
    if (c->machine.lock_request.unlisted)
        c->machine.lock_request.path->unlisted.live_count +=
            one * (c->counted >> ZKL_COUNT_HERE & 1);
}

/* From now on it counts for these. */
static void count(struct zkl_core *core, struct zkl_contender *c, unsigned now)
{
    unsigned changed = c->counted ^ now;
    c->counted = now;
    for (unsigned i = 0; changed >> i != 0; i++) {
        if (changed >> i & 1)
            core->counts[i] += now >> i & 1 ? 1 : -(size_t)1;
    }
}

/* It had a node, or may have, and by this event gives up on it: only a missing right ends that
 * without the server's word. */
static void count_left(struct zkl_core *core, const struct zkl_contender *c,
                       const struct zkl_event *event)
{
    if (event->reply->answer == ZKL_ANSWER_NOAUTH && event->type != ZKL_EV_CREATED &&
        !zkl_contender_counts_for(c, ZKL_COUNT_OWNS))
        zkl_ephemerals_leave(core, c);
}

void zkl_core_feed(struct zkl_core *core, struct zkl_contender *c, struct zkl_event event)
{
    static const struct zkl_reply none = {0};
    struct zkl_actions actions;
    event.reply = event.reply ? event.reply : &none;
    count_among_others(core, c, false);
    bool was_there = c->machine.on_server, owned = zkl_contender_counts_for(c, ZKL_COUNT_OWNS);
    bool has_room = owned && (was_there || !c->machine.may_be_late);
    event.full = !has_room && zkl_ephemerals_are_full(core, c);
    event.unlisted =
        zkl_unlisted_expects(core, c) || zkl_opcode_is_unknown(core, ZKL_OPCODE_CREATE2);
    zkl_contender_step(core, &c->machine, &event, &actions);
    count(core, c, zkl_contender_counts(&c->machine));
    count_among_others(core, c, true);
    if (owned)
        count_left(core, c, &event);
    if (!was_there && c->machine.on_server)
        zkl_opcode_carried_out(core, &c->slots[ZKL_SLOT_CREATE]);
    if (c->machine.state != ZKL_CONTENDER_WAITING)
        no_heir_of(c);
    struct zkl_contender *heir = take_heir(c);
    if (c->machine.lock_request.bundle)
        zkl_due_add(core, &c->machine.lock_request.bundle->due, ZKL_DUE_BUNDLE);
    if (c->machine.lock_request.local_queue)
        zkl_due_add(core, &c->machine.lock_request.local_queue->due, ZKL_DUE_LOCAL_QUEUE);
    if (c->machine.lock_request.read_cache)
        zkl_due_add(core, &c->machine.lock_request.read_cache->due, ZKL_DUE_CACHE);
    for (size_t i = 0; i < actions.count; i++)
        execute(core, c, &actions.list[i]); /* END is the last one: c may be freed after it */
    if (heir)
        feed_heir(core, heir, event.type == ZKL_EV_DELETED && event.reply->answer == ZKL_ANSWER_OK);
}

void zkl_core_feed_reply(struct zkl_core *core, struct zkl_contender *c, enum zkl_event_type type,
                         const struct zkl_reply *reply)
{
    zkl_core_feed(core, c, (struct zkl_event){.type = type, .reply = reply});
}

void zkl_core_feed_answer(struct zkl_core *core, struct zkl_contender *c, enum zkl_event_type type,
                          enum zkl_answer answer)
{
    zkl_core_feed_reply(core, c, type, &(struct zkl_reply){.answer = answer});
}

void zkl_core_feed_type(struct zkl_core *core, struct zkl_contender *c, enum zkl_event_type type)
{
    zkl_core_feed(core, c, (struct zkl_event){.type = type});
}

void zkl_core_feed_stop(struct zkl_core *core, struct zkl_contender *c, int code)
{
    zkl_core_feed(core, c, (struct zkl_event){.type = ZKL_EV_STOP, .code = code});
}

void zkl_core_back_out(struct zkl_core *core, struct zkl_contender *c)
{
    enum zkl_contender_state state = c->machine.state;
    if (state == ZKL_CONTENDER_LEAVING || state == ZKL_CONTENDER_RELEASING)
        return;
    if (state == ZKL_CONTENDER_HOLDING || state == ZKL_CONTENDER_LOSTHOLD)
        zkl_core_feed_type(core, c, ZKL_EV_RELEASE);
    else
        zkl_core_feed_stop(core, c, ZKL_ECANCELED);
}

/* To all for which want returns true, oldest first. A step ends at most the contender that it
 * concerns. */
void zkl_core_feed_all(struct zkl_core *core, struct zkl_event event,
                       bool (*want)(const struct zkl_contender_machine *m))
{
    struct zkl_contender *next;
    for (struct zkl_contender *c = core->first; c; c = next) {
        next = c->next;
        if (!want || want(&c->machine))
            zkl_core_feed(core, c, event);
    }
}

void zkl_core_feed_counted(struct zkl_core *core, enum zkl_event_type type, enum zkl_count count)
{
    struct zkl_contender *next;
    for (struct zkl_contender *c = core->first; c && core->counts[count] > 0; c = next) {
        next = c->next;
        if (zkl_contender_counts_for(c, count))
            zkl_core_feed_type(core, c, type);
    }
}

/* --- beginning ----------------------------------------------------------- */

static void append_contender(struct zkl_core *core, struct zkl_contender *c)
{
    c->number = ++core->last_number;
    c->next = NULL;
    c->prev = core->last;
    *(core->last ? &core->last->next : &core->first) = c;
    core->last = c;
}

void zkl_core_start(struct zkl_core *core, struct zkl_contender *contender,
                    const struct zkl_lock_request *lock_request)
{
    *contender = (struct zkl_contender){
        .machine = {.state = ZKL_CONTENDER_NEW, .lock_request = *lock_request}};
    contender->node_bytes = zkl_ephemerals_bytes_of(core, &contender->machine);
    for (int i = 0; i < ZKL_SLOTS; i++)
        contender->slots[i] =
            (struct zkl_pending){.awaiter = ZKL_AWAITER_CONTENDER, .owner = contender};
    if (lock_request->downgrade_from) {
        const struct zkl_contender_machine *writer = &lock_request->downgrade_from->machine;
        zkl_text_copy(contender->machine.downgrade_from, sizeof contender->machine.downgrade_from,
                      writer->node);
        contender->machine.downgrade_from_czxid = writer->czxid;
    }
    append_contender(core, contender);
    zkl_group_commit_before(core, contender);
    zkl_core_feed_type(core, contender, ZKL_EV_START);
    if (core->session.state == ZKL_SESSION_FAILED)
        zkl_core_feed_stop(core, contender, ZKL_EAUTH);
    else if (core->session.state == ZKL_SESSION_CLOSED)
        zkl_core_feed_stop(core, contender, ZKL_ECLOSED);
}
