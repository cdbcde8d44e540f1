/* SPDX-License-Identifier: Apache-2.0
 *
 * The entry points, each of which is one event: it sets the time, passes the event to the
 * contenders that it concerns, and drains what is due in the one loop below. The caller (the
 * driver, or a simulation) holds the lock of the client around each of them. Only feed.c calls back
 * into this file, with the news of a contender that may be part of something larger. */
#include "core.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <zklock/zklock.h>

#include "bundle.h"
#include "dispatch_reply.h"
#include "due.h"
#include "ephemerals.h"
#include "feed.h"
#include "group_commit.h"
#include "heartbeat.h"
#include "leftovers.h"
#include "link.h"
#include "list_coalescing.h"
#include "local_queue.h"
#include "opcode.h"
#include "query.h"
#include "read_cache.h"
#include "requests.h"
#include "timers.h"
#include "transaction.h"
#include "unlisted_grant.h"
#include "watch.h"

#define MS INT64_C(1000000)

/* --- traces ------------------------------------------------------------- */

const char *zkl_trace_state_name(enum zkl_trace_kind kind, int state)
{
    switch (kind) {
    case ZKL_TRACE_SESSION:
        return zkl_session_state_name((enum zkl_session_state)state);
    case ZKL_TRACE_PERMITS:
        return zkl_bundle_state_name((enum zkl_bundle_state)state);
    case ZKL_TRACE_LOCAL_QUEUE:
        return zkl_local_queue_state_name((enum zkl_local_queue_state)state);
    case ZKL_TRACE_CACHE:
        return zkl_read_cache_state_name((enum zkl_read_cache_state)state);
    case ZKL_TRACE_CONTENDER:
        break;
    }
    return zkl_contender_state_name((enum zkl_contender_state)state);
}

void zkl_trace_format(const struct zkl_trace *trace, char line[ZKL_TRACE_MAX])
{
    static const char *const names[] = {[ZKL_TRACE_SESSION] = "session",
                                        [ZKL_TRACE_PERMITS] = "permits",
                                        [ZKL_TRACE_LOCAL_QUEUE] = "local queue",
                                        [ZKL_TRACE_CACHE] = "cache"};
    char who[24];
    if (trace->kind == ZKL_TRACE_CONTENDER)
        snprintf(who, sizeof who, "#%llu", (unsigned long long)trace->number);
    else
        strcpy(who, names[trace->kind]);
    snprintf(line, ZKL_TRACE_MAX, "[%6lld] %s %s -> %s: %s", (long long)(trace->mono_ns / MS), who,
             zkl_trace_state_name(trace->kind, trace->from),
             zkl_trace_state_name(trace->kind, trace->to), trace->why);
}

static void contender_moved(void *arg, const struct zkl_contender_machine *m,
                            enum zkl_contender_state from, const char *why)
{
    const struct zkl_contender *contender = (const struct zkl_contender *)m;
    zkl_core_trace(arg, (struct zkl_trace){.kind = ZKL_TRACE_CONTENDER,
                                           .from = from,
                                           .to = m->state,
                                           .why = why,
                                           .contender = contender,
                                           .number = contender->number});
}

static void session_moved(void *arg, enum zkl_session_state from, const char *why)
{
    struct zkl_core *core = arg;
    zkl_core_trace(
        core, (struct zkl_trace){
                  .kind = ZKL_TRACE_SESSION, .from = from, .to = core->session.state, .why = why});
}

/* --- what is made of several contenders ----------------------------------- */

static bool tell_composites(struct zkl_core *core, struct zkl_contender *c,
                            const struct zkl_notification *notification)
{
    if (c->machine.lock_request.local_queue)
        zkl_local_queue_notification(core, c, notification);
    bool is_member = c->machine.lock_request.bundle || c->bundle_has_failed;
    return is_member && zkl_bundle_notification(c, notification);
}

static void look_at(struct zkl_core *core, struct zkl_due *due, enum zkl_due_kind kind)
{
    static void (*const settle[ZKL_DUE_KINDS])(struct zkl_core *, struct zkl_due *) = {
        [ZKL_DUE_BUNDLE] = zkl_bundle_settle,
        [ZKL_DUE_LOCAL_QUEUE] = zkl_local_queue_settle,
        [ZKL_DUE_CACHE] = zkl_read_cache_settle,
    };
    settle[kind](core, due);
}

/* --- init --------------------------------------------------------------- */

void zkl_core_init(struct zkl_core *core, struct zkl_port *port, int timeout_ms, int tick_ms)
{
    *core = (struct zkl_core){.port = port,
                              .tell_composites = tell_composites,
                              .tracer = {port->trace ? contender_moved : NULL, core},
                              .lease_boot = INT64_MAX,
                              .put_off_mono_ns = INT64_MAX,
                              .again_mono_ns = INT64_MAX,
                              .leftovers = {.due_mono_ns = INT64_MAX,
                                            .remove.awaiter = ZKL_AWAITER_LEFTOVERS,
                                            .barrier.awaiter = ZKL_AWAITER_LEFTOVERS,
                                            .list.awaiter = ZKL_AWAITER_LEFTOVERS},
                              .recheck.pending.awaiter = ZKL_AWAITER_HEARTBEAT,
                              .first_read.awaiter = ZKL_AWAITER_FIRST_READ,
                              .watched_read.awaiter = ZKL_AWAITER_WATCHED_READ,
                              .leader_check.awaiter = ZKL_AWAITER_LEADER_CHECK,
                              .local_queues_mono_ns = INT64_MAX,
                              .caches_mono_ns = INT64_MAX,
                              .share_from = ZKL_SHARE_FROM,
                              .unlisted_from = ZKL_UNLISTED_FROM,
                              .group_commit.from = ZKL_GROUP_COMMIT_FROM,
                              .watch_bytes_max = ZKL_WATCH_BYTES_MAX,
                              .ephemeral_bytes_max = ZKL_EPHEMERAL_BYTES_MAX};
    for (int i = 0; i < ZKL_HEARTBEATS_MAX; i++)
        core->heartbeats[i].pending.awaiter = ZKL_AWAITER_HEARTBEAT;
    zkl_session_init(&core->session, timeout_ms, tick_ms);
    /* The machine is the contender's first member: traces cast from one to the other. */
    _Static_assert(offsetof(struct zkl_contender, machine) == 0, "machine comes first");
    _Static_assert(offsetof(struct zkl_bundle, due) == 0 &&
                       offsetof(struct zkl_local_queue, due) == 0 &&
                       offsetof(struct zkl_read_cache, due) == 0,
                   "what is due comes first");
}

void zkl_core_fini(struct zkl_core *core)
{
    assert(!core->first && !core->queries);
    zkl_leftovers_clear(core);
    zkl_pending_clear(core);
    zkl_watch_clear(core);
    assert(core->watch_bytes == 0 && core->ephemeral_bytes == core->ephemeral_bytes_left);
}

static bool is_held(const struct zkl_contender_machine *m)
{
    return m->state == ZKL_CONTENDER_HOLDING || m->state == ZKL_CONTENDER_RELEASING;
}

/* These come again by themselves. */
static bool is_paced(const struct zkl_pending *slot)
{
    return slot->awaiter == ZKL_AWAITER_NONE || slot->awaiter == ZKL_AWAITER_WATCHED_READ ||
           slot->awaiter == ZKL_AWAITER_LEADER_CHECK || slot->awaiter == ZKL_AWAITER_HEARTBEAT;
}

/* --- entry points ------------------------------------------------------- */

static void begin_event(struct zkl_core *core, struct zkl_time now)
{
    core->now = now;
    core->changed = true;
}

/* Sends the requests that wait to be grouped, once they must be sent. */
static bool group_commit_goes_on(struct zkl_core *core)
{
    if (!zkl_group_commit_is_due(core))
        return false;
    zkl_transaction_cancel_held(core);
    zkl_group_commit_send(core);
    return true;
}

/* The one loop: the consequences of an event beyond the contender that it concerned. In this order:
 * answer the requests that could not be sent; then check bundles, local queues
 * and cached readers, one at a time and the refused requests again after each; and send a requested
 * heartbeat last, behind the requests that waited to be grouped. Bounded: a refused request is answered once, and its consequences are
 * refused by a link that the contender then waits for. */
static void settle(struct zkl_core *core)
{
    enum zkl_answer refusal;
    enum zkl_due_kind kind;
    struct zkl_pending *slot;
    struct zkl_due *due;
    do {
        while ((slot = zkl_pending_take_refused(core, &refusal)))
            zkl_answer(core, slot, &(struct zkl_reply){.answer = refusal, .refused = true});
        due = zkl_due_take(core, &kind);
        if (due)
            look_at(core, due, kind);
    } while (due || group_commit_goes_on(core) ||
             zkl_heartbeat_if_wanted(core)); /* refused, it is held off */
}

/* The session is over: nothing is awaited, no watch is left. */
static void forget_session(struct zkl_core *core)
{
    core->forgets = true;
    zkl_pending_clear(core);
    zkl_watch_clear(core);
    zkl_shared_list_reset(core);
    zkl_opcode_session_ended(core);
    zkl_group_commit_reset(core);
    for (struct zkl_contender *c = core->first; c; c = c->next) {
        c->wants_create = c->wants_list = false;
        zkl_transaction_leave(core, c);
    }
    zkl_core_feed_all(core, (struct zkl_event){.type = ZKL_EV_EXPIRED}, NULL);
    zkl_ephemerals_forget(core);
    zkl_query_expired(core);
    core->forgets = false;
}

void zkl_core_session_event(struct zkl_core *core, const struct zkl_session_event *event)
{
    begin_event(core, event->now);
    int64_t window_end_boot = zkl_session_window_end(&core->session);
    int64_t timeout_ns = zkl_session_timeout_ns(&core->session);
    if (event->type == ZKL_SE_UP)
        zkl_opcode_link_comes(core);
    unsigned actions = zkl_session_step(&core->session, event, session_moved, core);
    core->link += actions != 0;
    /* An expiry says all that a lost link could, and more. */
    if ((actions & ZKL_SA_LINK_DOWN) && !(actions & (ZKL_SA_EXPIRE | ZKL_SA_FAIL)))
        zkl_core_feed_all(core, (struct zkl_event){.type = ZKL_EV_LINK_DOWN}, NULL);
    if (actions & ZKL_SA_FAIL)
        zkl_query_end_all(core, ZKL_EAUTH);
    if (actions & (ZKL_SA_FAIL | ZKL_SA_CLOSED))
        zkl_leftovers_clear(core);
    else if (actions & ZKL_SA_EXPIRE)
        zkl_leftovers_inherit(core, window_end_boot, timeout_ns);
    if (actions & (ZKL_SA_EXPIRE | ZKL_SA_FAIL))
        forget_session(core);
    if (actions & ZKL_SA_FAIL)
        zkl_core_feed_all(core, (struct zkl_event){.type = ZKL_EV_STOP, .code = ZKL_EAUTH}, NULL);
    if (actions)
        core->port->session(core->port, actions);
    if (actions & ZKL_SA_LINK_UP) {
        zkl_opcode_link_up(core);
        core->heartbeat_hold_off = 0;
        core->again_mono_ns = INT64_MAX;
        zkl_link_go_on(core);
    }
    settle(core);
}

void zkl_core_reply(struct zkl_core *core, struct zkl_time now, const struct zkl_reply *reply)
{
    begin_event(core, now);
    if (reply->answer == ZKL_ANSWER_AUTH) {
        zkl_core_session_event(core,
                               &(struct zkl_session_event){.type = ZKL_SE_AUTH_FAILED, .now = now});
        return;
    }
    zkl_answer_stamp(core, reply);
    struct zkl_pending *slot = zkl_pending_take(core, reply->id);
    if (reply->answer == ZKL_ANSWER_LINK && zkl_core_connected(core) && !(slot && is_paced(slot)))
        zkl_timers_ask_again(core);
    if (reply->hung_up) /* they are handed back in the order of their sending */
        zkl_opcode_hung_up(core, slot);
    struct zkl_reply refusal;
    if (slot && reply->answer != ZKL_ANSWER_LINK &&
        zkl_opcode_answered(core, slot, reply->answer)) {
        refusal = *reply;
        refusal.otherwise = true;
        reply = &refusal;
    }
    if (slot)
        zkl_answer(core, slot, reply);
    settle(core);
}

void zkl_core_fired(struct zkl_core *core, struct zkl_time now, uint64_t watch_id,
                    enum zkl_fired what)
{
    begin_event(core, now);
    struct zkl_watch *watch = zkl_watch_fired(core, watch_id);
    if (watch && watch->type == ZKL_WATCH_CHILD && watch->request.id != 0)
        watch->armed = false; /* the list that is out was made after this and arms it again */
    else if (watch)
        zkl_answer_fired(core, watch, what);
    settle(core);
}

void zkl_core_timer(struct zkl_core *core, struct zkl_time now)
{
    begin_event(core, now);
    if (now.mono_ns >= core->session.timer_mono_ns)
        zkl_core_session_event(core, &(struct zkl_session_event){.type = ZKL_SE_TIMER, .now = now});
    zkl_timers_timer(core);
    settle(core);
}

int64_t zkl_core_next_timeout(const struct zkl_core *core, struct zkl_time now)
{
    int64_t at = zkl_timers_next(core, now);
    return core->session.timer_mono_ns < at ? core->session.timer_mono_ns : at;
}

void zkl_core_acquire(struct zkl_core *core, struct zkl_time now, struct zkl_contender *contender,
                      const struct zkl_lock_request *lock_request)
{
    begin_event(core, now);
    zkl_core_start(core, contender, lock_request);
    settle(core);
}

void zkl_core_stop(struct zkl_core *core, struct zkl_time now, struct zkl_contender *contender,
                   int code)
{
    begin_event(core, now);
    zkl_core_feed_stop(core, contender, code);
    settle(core);
}

void zkl_core_release(struct zkl_core *core, struct zkl_time now, struct zkl_contender *contender)
{
    begin_event(core, now);
    zkl_core_feed_type(core, contender, ZKL_EV_RELEASE);
    settle(core);
}

void zkl_core_abandon(struct zkl_core *core, struct zkl_time now, struct zkl_contender *contender,
                      int reason)
{
    begin_event(core, now);
    zkl_core_feed(core, contender, (struct zkl_event){.type = ZKL_EV_ABANDON, .reason = reason});
    settle(core);
}

bool zkl_core_renew(struct zkl_core *core, struct zkl_time now, struct zkl_contender *contender,
                    int64_t lease_ns)
{
    begin_event(core, now);
    return zkl_timers_begin_lease(core, contender, lease_ns);
}

void zkl_core_query(struct zkl_core *core, struct zkl_time now, struct zkl_query *query)
{
    begin_event(core, now);
    zkl_transaction_cancel_held(core);
    zkl_group_commit_send(core); /* it must not find what the caller unlocked before */
    zkl_query_begin(core, query);
    settle(core);
}

void zkl_core_withdraw(struct zkl_core *core, struct zkl_time now, struct zkl_query *query)
{
    begin_event(core, now);
    zkl_query_withdraw(core, query);
    settle(core);
}

void zkl_core_close(struct zkl_core *core, struct zkl_time now)
{
    begin_event(core, now);
    zkl_core_feed_all(core, (struct zkl_event){.type = ZKL_EV_ABANDON, .reason = ZKL_REASON_CLOSED},
                      is_held);
    zkl_core_feed_all(core, (struct zkl_event){.type = ZKL_EV_STOP, .code = ZKL_ECLOSED}, NULL);
    zkl_core_session_event(core, &(struct zkl_session_event){.type = ZKL_SE_CLOSE, .now = now});
    /* The session is about to end, and every node with it. */
    zkl_query_end_all(core, ZKL_ECLOSED);
    forget_session(core);
    settle(core);
}

/* --- several contenders ---------------------------------------------------- */

void zkl_bundle_acquire(struct zkl_core *core, struct zkl_time now, struct zkl_bundle *bundle)
{
    begin_event(core, now);
    zkl_bundle_begin(core, bundle);
    settle(core);
}

void zkl_bundle_stop(struct zkl_core *core, struct zkl_time now, struct zkl_bundle *bundle,
                     int code)
{
    begin_event(core, now);
    zkl_bundle_end(core, bundle, code);
    settle(core);
}

void zkl_bundle_release(struct zkl_core *core, struct zkl_time now,
                        struct zkl_contender *const *contenders, size_t count)
{
    begin_event(core, now);
    zkl_bundle_unlock(core, contenders, count);
    settle(core);
}

/* --- local queues ------------------------------------------------------------ */

enum zkl_local_queue_answer zkl_local_queue_join(struct zkl_core *core, struct zkl_time now,
                                                 struct zkl_local_queue *local_queue,
                                                 struct zkl_local_waiter *local_waiter, bool ahead)
{
    begin_event(core, now);
    /* A grant needs more: a contender that queues waits for a proof. */
    if (!zkl_local_queue_is_fresh(core) && zkl_local_queue_give_up(core, local_queue))
        settle(core);
    enum zkl_local_queue_answer answer =
        zkl_local_queue_begin(core, local_queue, local_waiter, ahead);
    if (answer == ZKL_LOCAL_QUEUE_QUEUES)
        settle(core);
    return answer;
}

void zkl_local_queue_part(struct zkl_core *core, struct zkl_time now,
                          struct zkl_local_queue *local_queue, struct zkl_contender *c)
{
    begin_event(core, now);
    if (local_queue->holder == c)
        zkl_local_queue_forget_holder(core, local_queue, "unlocked");
}

bool zkl_local_queue_pass(struct zkl_core *core, struct zkl_time now,
                          struct zkl_local_queue *local_queue, struct zkl_contender *c)
{
    begin_event(core, now);
    /* Another one was parted just now: what is due with it waits for its release, which follows. */
    bool settles = !zkl_due_any(core);
    if (zkl_local_queue_look(core, local_queue, c) && settles)
        settle(core);
    if (zkl_local_queue_hand_on(core, local_queue, c))
        return true;
    if (zkl_local_queue_keep(core, local_queue, c)) {
        if (settles)
            settle(core);
        return true;
    }
    zkl_local_queue_part(core, now, local_queue, c);
    return false;
}

void zkl_local_queue_drop(struct zkl_core *core, struct zkl_time now,
                          struct zkl_local_queue *local_queue)
{
    begin_event(core, now);
    if (zkl_local_queue_give_up(core, local_queue))
        settle(core);
}

void zkl_local_queue_fini(struct zkl_core *core, struct zkl_time now,
                          struct zkl_local_queue *local_queue)
{
    zkl_local_queue_drop(core, now, local_queue);
    zkl_local_queue_forget(core, local_queue);
}

/* --- readers of one node ------------------------------------------------------ */

bool zkl_read_cache_open(struct zkl_core *core, struct zkl_time now, struct zkl_read_cache *cache,
                         struct zkl_contender *contender)
{
    begin_event(core, now);
    bool opened = zkl_read_cache_begin(core, cache, contender);
    if (opened)
        settle(core);
    return opened;
}

void zkl_read_cache_left(struct zkl_core *core, struct zkl_time now, struct zkl_read_cache *cache)
{
    begin_event(core, now);
    zkl_due_add(core, &cache->due, ZKL_DUE_CACHE);
    settle(core);
}

void zkl_read_cache_close(struct zkl_core *core, struct zkl_time now, struct zkl_read_cache *cache)
{
    begin_event(core, now);
    zkl_read_cache_end(core, cache, "not wanted");
    settle(core);
}

void zkl_read_cache_fini(struct zkl_core *core, struct zkl_time now, struct zkl_read_cache *cache)
{
    zkl_read_cache_close(core, now, cache);
    assert(cache->state == ZKL_READ_CACHE_EMPTY && !cache->due.listed);
}

/* --- grants without a list --------------------------------------------------- */

void zkl_unlisted_end(struct zkl_core *core, struct zkl_time now,
                      struct zkl_unlisted_grant *unlisted)
{
    if (!unlisted->lock_path.watch)
        return;
    begin_event(core, now);
    zkl_watch_unsubscribe(core, &unlisted->lock_path);
    settle(core);
}
