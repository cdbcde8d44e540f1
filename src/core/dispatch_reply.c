/* SPDX-License-Identifier: Apache-2.0
 *
 * Distributes what comes from the server to the objects that it concerns: an answer to its
 * contender, query, transaction or heartbeat; a watch's event to all subscribers of that watch. It proves
 * the session by each answer before any of them is notified. With the client's mutex; only core.c
 * calls this file, with each reply and each event. */
#include "dispatch_reply.h"

#include <stdlib.h>
#include <string.h>

#include "unlisted_grant.h"
#include "transaction.h"
#include "feed.h"
#include "heartbeat.h"
#include "leftovers.h"
#include "requests.h"
#include "bundle.h"
#include "query.h"
#include "list_coalescing.h"
#include "watch.h"

/* --- watches ------------------------------------------------------------ */

/* One of ours that had the lock and whose node, which the watch is on, is being deleted. */
static struct zkl_contender *departing_holder(const struct zkl_watch *watch)
{
    for (struct zkl_subscription *sub = watch->subscribers; sub; sub = sub->next) {
        if (zkl_watch_is_for(sub, ZKL_SUB_OWN) && sub->contender->machine.was_first &&
            sub->contender->machine.delete_out)
            return sub->contender;
    }
    return NULL;
}

/* A node of our own session may have been deleted with the session, and ours too, in any order.
 * Only the answer to our own delete, which comes next, shows whether it was. */
static void feed_pred_deleted(struct zkl_core *core, struct zkl_contender *c,
                              const struct zkl_watch *watch, struct zkl_contender *holder)
{
    bool may_inherit =
        c->machine.state == ZKL_CONTENDER_WAITING && c->machine.pred_is_exclusive_mutex;
    if (holder && !holder->heir && may_inherit) {
        holder->heir = c;
        c->heir_of = holder;
        return;
    }
    zkl_feed_pred_gone(core, c, (struct zkl_event){.type = ZKL_EV_PRED_FIRED},
                       zkl_pred_end_of(core, watch));
}

/* What a watch that is over reports to each of its subscribers. */
struct watch_outcome {
    struct zkl_event pred, own, lock_path;
    bool deleted;
};

static void feed_subscription(struct zkl_core *core, struct zkl_subscription *sub,
                              const struct zkl_watch *watch, struct zkl_contender *holder,
                              struct watch_outcome watch_outcome)
{
    struct zkl_contender *c = sub->contender;
    if (sub->query) {
        zkl_query_watched(core, sub->query, watch_outcome.own.type == ZKL_EV_OWN_DELETED,
                          &watch_outcome.pred);
    } else if (sub->unlisted) {
        zkl_unlisted_unsure(sub->unlisted);
    } else if (zkl_watch_is_for(sub, ZKL_SUB_PRED) && watch_outcome.deleted) {
        feed_pred_deleted(core, c, watch, holder);
    } else if (zkl_watch_is_for(sub, ZKL_SUB_PRED) && watch_outcome.pred.reply &&
               watch_outcome.pred.reply->answer == ZKL_ANSWER_NONODE) {
        zkl_feed_pred_gone(core, c, watch_outcome.pred, zkl_pred_end_unwatched(c));
    } else if (zkl_watch_is_for(sub, ZKL_SUB_PRED)) {
        zkl_core_feed(core, c, watch_outcome.pred);
    } else if (zkl_watch_is_for(sub, ZKL_SUB_OWN)) {
        zkl_core_feed(core, c, watch_outcome.own);
    } else if (zkl_watch_is_for(sub, ZKL_SUB_LOCK_PATH)) {
        zkl_core_feed(core, c, watch_outcome.lock_path);
    } else {
        bool fired = watch_outcome.pred.type == ZKL_EV_PRED_FIRED;
        watch_outcome.pred.type = fired ? ZKL_EV_LIMIT_FIRED : ZKL_EV_LIMIT;
        zkl_core_feed(core, c, watch_outcome.pred);
    }
}

static void notify_subscribers(struct zkl_core *core, struct zkl_watch *watch,
                               struct watch_outcome watch_outcome)
{
    struct zkl_contender *holder = watch_outcome.deleted ? departing_holder(watch) : NULL;
    zkl_watch_detach(core, watch);
    zkl_watch_gone(core, watch);
    zkl_shared_list_begin(core);
    while (watch->subscribers) {
        struct zkl_subscription *sub = watch->subscribers;
        zkl_watch_unlink(sub);
        feed_subscription(core, sub, watch, holder, watch_outcome);
    }
    zkl_shared_list_end(core);
    zkl_watch_free(watch);
}

void zkl_answer_fired(struct zkl_core *core, struct zkl_watch *watch, enum zkl_fired what)
{
    bool deleted = what == ZKL_FIRED_DELETED;
    notify_subscribers(
        core, watch,
        (struct watch_outcome){.pred = {.type = ZKL_EV_PRED_FIRED},
                               .own = {.type = deleted ? ZKL_EV_OWN_DELETED : ZKL_EV_OWN_CHANGED},
                               .lock_path = {.type = ZKL_EV_LOCK_PATH_FIRED},
                               .deleted = deleted});
}

/* --- answers ------------------------------------------------------------ */

static bool is_quorum_write(enum zkl_request_kind kind)
{
    return kind == ZKL_REQ_CREATE || kind == ZKL_REQ_DELETE || kind == ZKL_REQ_CREATE_ALL ||
           kind == ZKL_REQ_DELETE_ALL || kind == ZKL_REQ_SET || kind == ZKL_REQ_CHECK_ALL ||
           kind == ZKL_REQ_PARTS;
}

/* The stamp carries what the answer says of the session; and the object that awaits the answer, if
 * one still does. */
void zkl_answer_stamp(struct zkl_core *core, const struct zkl_reply *reply)
{
    struct zkl_proof *proof = &core->session.proof;
    bool is_ok = reply->answer == ZKL_ANSWER_OK;
    if (reply->answer == ZKL_ANSWER_LINK)
        zkl_proof_handed_back(proof, reply->stamp);
    else if (zkl_proof_answered(proof, core->now.boot_ns, reply->stamp, is_ok))
        zkl_core_feed_counted(core, ZKL_EV_PROVED, ZKL_COUNT_AWAITS_PROOF);
}

/* Curator's Revoker writes this; it counts wherever it is first seen, by the arming of the watch or
 * by the arming that follows a change. */
static bool carries_revocation(const struct zkl_reply *reply)
{
    return reply->data && zkl_is_revocation(reply->data, reply->data_size);
}

/* The contender whose node it is. */
static void feed_own(struct zkl_core *core, struct zkl_watch *watch, enum zkl_event_type type)
{
    struct zkl_subscription *next; /* a subscriber that finds its lease over leaves by it */
    for (struct zkl_subscription *sub = watch->subscribers; sub; sub = next) {
        next = sub->next;
        if (zkl_watch_is_for(sub, ZKL_SUB_OWN))
            zkl_core_feed_type(core, sub->contender, type);
    }
}

/* Subscribers may leave by it, each by its own. */
static void feed_limit(struct zkl_core *core, struct zkl_watch *watch,
                       const struct zkl_reply *reply)
{
    struct zkl_subscription *next;
    for (struct zkl_subscription *sub = watch->subscribers; sub; sub = next) {
        next = sub->next;
        if (zkl_watch_is_for(sub, ZKL_SUB_LIMIT))
            zkl_core_feed_reply(core, sub->contender, ZKL_EV_LIMIT, reply);
    }
}

static void on_data_watch(struct zkl_core *core, struct zkl_watch *watch,
                          const struct zkl_reply *reply)
{
    if (reply->answer == ZKL_ANSWER_OK) {
        watch->link = core->link;
        watch->node_session = reply->node_session;
        watch->armed_version = zkl_watch_version(watch, reply);
        zkl_watch_keep_owner(watch, reply);
        if (carries_revocation(reply)) {
            watch->revoked = true;
            feed_own(core, watch, ZKL_EV_REVOKED);
        }
        feed_own(core, watch, ZKL_EV_OWN_ARMED);
        feed_limit(core, watch, reply);
        zkl_watch_armed(core, watch);
        return;
    }
    struct zkl_event pred = {.type = ZKL_EV_WATCHED, .reply = reply};
    /* Our own node missing is a deletion; any other failure to watch it leaves us to the heartbeat.
     */
    struct zkl_event own = {.type = reply->answer == ZKL_ANSWER_NONODE ? ZKL_EV_OWN_DELETED
                                                                       : ZKL_EV_WATCHED};
    notify_subscribers(core, watch,
                       (struct watch_outcome){.pred = pred, .own = own, .lock_path = own});
}

/* A list is valid for every contender that waits at this path, a failure only for those that
 * asked. */
static void feed_lock_path_listed(struct zkl_core *core, struct zkl_watch *watch,
                                  struct zkl_event event)
{
    struct zkl_subscription *next;
    for (struct zkl_subscription *sub = watch->subscribers; sub; sub = next) {
        next = sub->next;
        if (event.reply->answer == ZKL_ANSWER_OK || sub->contender->machine.list_out)
            zkl_core_feed(core, sub->contender, event);
    }
}

static void on_child_watch(struct zkl_core *core, struct zkl_watch *watch,
                           const struct zkl_reply *reply)
{
    struct zkl_event event = {.type = ZKL_EV_LOCK_PATH_LISTED, .reply = reply};
    /* Once armed it stays so, whatever became of another read of the path, unless its node is
     * deleted. */
    bool stays =
        reply->answer == ZKL_ANSWER_OK || (reply->answer != ZKL_ANSWER_NONODE && watch->armed);
    if (!stays) {
        notify_subscribers(core, watch,
                           (struct watch_outcome){.pred = event, .own = event, .lock_path = event});
        return;
    }
    watch->armed = true;
    if (reply->answer == ZKL_ANSWER_OK)
        watch->armed_version = zkl_watch_version(watch, reply);
    /* Subscribers may leave one by one as they are notified: the watch stays ARMING until all
     * are. */
    feed_lock_path_listed(core, watch, event);
    if (watch->request.id == 0)
        zkl_watch_armed(core, watch);
}

static void on_watch_answer(struct zkl_core *core, struct zkl_pending *slot,
                            const struct zkl_reply *reply)
{
    struct zkl_watch *watch = slot->owner;
    if (slot->kind == ZKL_REQ_UNWATCH)
        zkl_watch_removed(core, watch, reply->answer);
    else if (slot->kind == ZKL_REQ_WATCH)
        on_data_watch(core, watch, reply);
    else {
        zkl_leftovers_listed(core, watch->path, reply);
        on_child_watch(core, watch, reply);
    }
}

/* The list behind a sync or a barrier answers for both, also if the path is deleted, unless the
 * sync or barrier alone failed: such a list may be older than what it must show. A missing right
 * may be the word of a follower, which checks it first if it is so configured
 * (zookeeper.enableEagerACLCheck): that is no barrier. */
static void on_sync(struct zkl_core *core, struct zkl_contender *c, const struct zkl_reply *reply)
{
    /* With the link the list is lost too; of a server that would not do this one it shows
     * nothing. */
    bool both_lost = reply->answer == ZKL_ANSWER_LINK && !zkl_core_connected(core);
    bool is_ok = reply->answer == ZKL_ANSWER_OK || reply->answer == ZKL_ANSWER_NONODE || both_lost;
    if (is_ok || !c->machine.list_out)
        return;
    zkl_pending_forget(core, &c->slots[ZKL_SLOT_LIST]);
    zkl_core_feed_reply(core, c, ZKL_EV_LISTED, reply);
}

static void feed_sharers(struct zkl_core *core, struct zkl_contender *owner, struct zkl_event event)
{
    struct zkl_contender *other;
    zkl_shared_list_answered(core, owner);
    while ((other = zkl_shared_list_next(owner)))
        zkl_core_feed(core, other, event);
}

static void on_contender_answer(struct zkl_core *core, struct zkl_pending *slot,
                                const struct zkl_reply *reply)
{
    static const int types[ZKL_REQUEST_KINDS] = {
        [ZKL_REQ_CREATE] = ZKL_EV_CREATED, [ZKL_REQ_MAKE] = ZKL_EV_MADE,
        [ZKL_REQ_LIST] = ZKL_EV_LISTED,    [ZKL_REQ_LIST_LOCK_PATH] = ZKL_EV_LOCK_PATH_LISTED,
        [ZKL_REQ_STAT] = ZKL_EV_STATTED,   [ZKL_REQ_DELETE] = ZKL_EV_DELETED,
        [ZKL_REQ_RENEW] = ZKL_EV_RENEWED,  [ZKL_REQ_WATCH] = ZKL_EV_WATCHED,
        [ZKL_REQ_GET] = ZKL_EV_LIMIT,      [ZKL_REQ_SET] = ZKL_EV_LIMIT_SET,
    };
    struct zkl_contender *c = slot->owner;
    if (slot->kind == ZKL_REQ_SYNC || slot->kind == ZKL_REQ_CHECK_ALL) {
        on_sync(core, c, reply);
        return;
    }
    if (slot->kind == ZKL_REQ_SET && !zkl_roles[c->machine.lock_request.naming.role].counted)
        return; /* a request for a release */
    if (slot->kind == ZKL_REQ_LIST)
        zkl_leftovers_listed(core, c->machine.lock_request.path->text, reply);
    bool for_others = zkl_contender_is_together(c) || c->list_has_stat;
    if (slot->kind == ZKL_REQ_LIST && for_others && zkl_transaction_listed(core, c, reply))
        return;
    struct zkl_event event = {.type = (enum zkl_event_type)types[slot->kind], .reply = reply};
    if (slot->kind == ZKL_REQ_LIST)
        feed_sharers(core, c, event); /* first: c may end by it */
    /* A SET may have taken the GET's place. */
    if (slot->kind == ZKL_REQ_GET || slot->kind == ZKL_REQ_SET)
        zkl_bundle_share_limit(core, c, event);
    if (slot->kind == ZKL_REQ_CREATE && reply->answer == ZKL_ANSWER_OK)
        zkl_unlisted_created(core, c, reply->name, &event);
    if (slot->kind == ZKL_REQ_DELETE && reply->answer == ZKL_ANSWER_OK)
        zkl_unlisted_left(c);
    if ((slot->kind == ZKL_REQ_CREATE || slot->kind == ZKL_REQ_DELETE) &&
        reply->answer == ZKL_ANSWER_OK)
        zkl_transaction_count_own(c);
    zkl_core_feed(core, c, event);
}

/* The first answer of the server, behind that to the credential: what zkl_client_open waits for. */
static void on_first_read(struct zkl_core *core, struct zkl_pending *slot,
                          const struct zkl_reply *reply)
{
    (void)slot;
    if (reply->answer == ZKL_ANSWER_LINK)
        return;
    core->first_read_wanted = false;
    core->first_read_answer = reply->answer;
    core->port->session(core->port, ZKL_SA_FIRST_READ);
}

static void on_leader_check(struct zkl_core *core, struct zkl_pending *slot,
                            const struct zkl_reply *reply)
{
    (void)slot;
    bool denied = reply->answer == ZKL_ANSWER_NONODE && !reply->refused &&
                  reply->failed_check < ZKL_LEADER_CHECKS_MAX;
    core->denied_link = denied ? core->link : 0;
    core->denied_watch = denied ? core->checked[reply->failed_check] : 0;
}

/* The check that denied the node is a transaction: a read behind it over the same link shows all
 * that was committed before, the node's end included. A server that shows the node all the same
 * has data of its own. */
static void leave_server(struct zkl_core *core)
{
    zkl_core_trace(core, (struct zkl_trace){.kind = ZKL_TRACE_SESSION,
                                            .from = ZKL_SESSION_CONNECTED,
                                            .to = ZKL_SESSION_CONNECTED,
                                            .why = "the server shows a node that the leader lacks: "
                                                   "to another one; zklock doctor says which"});
    core->denied_link = 0;
    core->port->session(core->port, ZKL_SA_LEAVE_SERVER);
}

/* An event comes before the answer that shows what it was for: else the watch was used up in
 * silence. */
static void on_watched_read(struct zkl_core *core, struct zkl_pending *slot,
                            const struct zkl_reply *reply)
{
    (void)slot;
    struct zkl_watch *watch = zkl_watch_find(core, core->looked_at);
    if (!watch || watch->state != ZKL_WATCH_ARMED)
        return;
    bool hidden = reply->answer == ZKL_ANSWER_NONODE || reply->answer == ZKL_ANSWER_NOAUTH;
    bool changed =
        reply->answer == ZKL_ANSWER_OK && zkl_watch_version(watch, reply) != watch->armed_version;
    if (hidden || changed)
        zkl_answer_fired(core, watch, ZKL_FIRED_OTHER);
    else if (reply->answer == ZKL_ANSWER_OK && watch->id == core->denied_watch &&
             core->denied_link == core->link)
        leave_server(core);
}

static void on_query_answer(struct zkl_core *core, struct zkl_pending *slot,
                            const struct zkl_reply *reply)
{
    zkl_query_answer(core, slot->owner, reply);
}

void zkl_answer(struct zkl_core *core, struct zkl_pending *slot, const struct zkl_reply *reply)
{
    static void (*const answered[ZKL_AWAITERS])(struct zkl_core *, struct zkl_pending *,
                                                const struct zkl_reply *) = {
        [ZKL_AWAITER_CONTENDER] = on_contender_answer,
        [ZKL_AWAITER_WATCH] = on_watch_answer,
        [ZKL_AWAITER_TRANSACTION] = zkl_transaction_answer,
        [ZKL_AWAITER_QUERY] = on_query_answer,
        [ZKL_AWAITER_LEFTOVERS] = zkl_leftovers_answer,
        [ZKL_AWAITER_HEARTBEAT] = zkl_heartbeat_answered,
        [ZKL_AWAITER_FIRST_READ] = on_first_read,
        [ZKL_AWAITER_WATCHED_READ] = on_watched_read,
        [ZKL_AWAITER_LEADER_CHECK] = on_leader_check,
    };
    if (is_quorum_write(slot->kind) && reply->answer == ZKL_ANSWER_OK)
        zkl_histogram_add(&core->writes, core->now.boot_ns - slot->sent_boot_ns);
    if (answered[slot->awaiter])
        answered[slot->awaiter](core, slot, reply);
}
