/* SPDX-License-Identifier: Apache-2.0 */
#include "core.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <zklock/zklock.h>

#include "alone.h"
#include "answer.h"
#include "batch.h"
#include "feed.h"
#include "group.h"
#include "heartbeat.h"
#include "opcode.h"
#include "pace.h"
#include "pending.h"
#include "permits.h"
#include "query.h"
#include "share.h"
#include "turns.h"
#include "watch.h"

#define MS INT64_C(1000000)

/* --- traces ------------------------------------------------------------- */

const char *zkl_trace_state_name(enum zkl_trace_kind kind, int state)
{
    switch (kind) {
    case ZKL_TRACE_SESSION:
        return zkl_session_state_name((enum zkl_session_state)state);
    case ZKL_TRACE_PERMITS:
        return zkl_permits_state_name((enum zkl_permits_state)state);
    case ZKL_TRACE_TURNS:
        return zkl_turns_state_name((enum zkl_turns_state)state);
    case ZKL_TRACE_CONTENDER:
        break;
    }
    return zkl_contender_state_name((enum zkl_contender_state)state);
}

void zkl_trace_format(const struct zkl_trace *trace, char line[ZKL_TRACE_MAX])
{
    static const char *const names[] = {[ZKL_TRACE_SESSION] = "session",
                                        [ZKL_TRACE_PERMITS] = "permits",
                                        [ZKL_TRACE_TURNS] = "turns"};
    char who[24];
    if (trace->kind == ZKL_TRACE_CONTENDER)
        snprintf(who, sizeof who, "#%llu", (unsigned long long)trace->number);
    else
        strcpy(who, names[trace->kind]);
    snprintf(line, ZKL_TRACE_MAX, "[%6lld] %s %s -> %s: %s", (long long)(trace->mono_ns / MS), who,
             zkl_trace_state_name(trace->kind, trace->from),
             zkl_trace_state_name(trace->kind, trace->to), trace->why);
}

void zkl_core_trace(struct zkl_core *core, struct zkl_trace trace)
{
    trace.mono_ns = core->now.mono_ns;
    if (core->port->trace)
        core->port->trace(core->port, &trace);
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

/* --- init --------------------------------------------------------------- */

void zkl_core_init(struct zkl_core *core, struct zkl_port *port, int timeout_ms, int tick_ms)
{
    *core = (struct zkl_core){.port = port,
                              .tracer = {port->trace ? contender_moved : NULL, core},
                              .lease_boot = INT64_MAX,
                              .put_off_mono_ns = INT64_MAX,
                              .again_mono_ns = INT64_MAX,
                              .turns_mono_ns = INT64_MAX,
                              .share_from = ZKL_SHARE_FROM,
                              .alone_from = ZKL_ALONE_FROM,
                              .watch_bytes_max = ZKL_WATCH_BYTES_MAX};
    zkl_session_init(&core->session, timeout_ms, tick_ms);
    /* The machine is the contender's first member: traces go from one to the other. */
    _Static_assert(offsetof(struct zkl_contender, machine) == 0, "machine comes first");
}

void zkl_core_fini(struct zkl_core *core)
{
    assert(!core->first && !core->queries);
    zkl_pending_clear(core);
    zkl_watch_clear(core);
    assert(core->watch_bytes == 0);
}

/* --- sending for a contender -------------------------------------------- */

static void send_for(struct zkl_core *core, struct zkl_contender *c, int slot,
                     struct zkl_request request)
{
    zkl_pending_send(core, &c->slots[slot], &request);
}

void zkl_core_node_path(const struct zkl_contender *c, const char *name, char *out)
{
    memcpy(out, c->machine.root, c->machine.root_length);
    out[c->machine.root_length] = '/';
    strcpy(out + c->machine.root_length + 1, name);
}

static void draw_guid(struct zkl_core *core, struct zkl_contender *c)
{
    unsigned char random[16];
    core->port->random(core->port, random);
    zkl_guid_format(random, c->machine.guid);
    if (c->machine.retained)
        zkl_guid_mark_retained(c->machine.guid);
    c->beat = 0; /* an older heartbeat says nothing of the new node */
}

void zkl_core_new_name(struct zkl_core *core, struct zkl_contender *c, char *path)
{
    char prefix[ZKL_NODE_NAME_MAX + 1];
    draw_guid(core, c);
    zkl_name_prefix(&c->machine.naming, c->machine.guid, prefix);
    zkl_core_node_path(c, prefix, path);
}

void zkl_core_send_create(struct zkl_core *core, struct zkl_contender *c)
{
    char path[ZKL_NODE_PATH_MAX + 1];
    zkl_core_new_name(core, c, path);
    send_for(core, c, ZKL_SLOT_CREATE,
             (struct zkl_request){.kind = ZKL_REQ_CREATE, .path = path, .data = c->data});
}

static void send_create_under(struct zkl_core *core, struct zkl_contender *c)
{
    char name[ZKL_NODE_NAME_MAX + 1], path[ZKL_NODE_PATH_MAX + 1], under[ZKL_NODE_PATH_MAX + 1];
    const char *check = under;
    draw_guid(core, c);
    zkl_contender_name_under(&c->machine, name);
    zkl_core_node_path(c, name, path);
    zkl_core_node_path(c, c->machine.under, under);
    send_for(core, c, ZKL_SLOT_CREATE,
             (struct zkl_request){.kind = ZKL_REQ_CREATE,
                                  .path = path,
                                  .data = c->data,
                                  .checks = &check,
                                  .check_count = 1});
}

static void send_make(struct zkl_core *core, struct zkl_contender *c)
{
    const struct zkl_contender_machine *m = &c->machine;
    char path[ZKL_PATH_MAX + 1], text[16];
    snprintf(path, sizeof path, "%.*s", (int)m->make_length, m->root);
    int permits = m->quota.view ? m->quota.view->permits : 0;
    bool numbered = permits > 0 && m->make_length == m->root_length;
    snprintf(text, sizeof text, "%d", permits);
    send_for(core, c, ZKL_SLOT_CREATE,
             (struct zkl_request){.kind = ZKL_REQ_MAKE,
                                  .path = path,
                                  .data = numbered ? text : NULL});
}

static void send_set_limit(struct zkl_core *core, struct zkl_contender *c)
{
    char text[16];
    snprintf(text, sizeof text, "%d", c->machine.quota.view->permits);
    send_for(core, c, ZKL_SLOT_LIMIT,
             (struct zkl_request){.kind = ZKL_REQ_SET,
                                  .path = c->machine.root,
                                  .data = text,
                                  .flag = true,
                                  .version = c->machine.quota.version});
}

static void send_root(struct zkl_core *core, struct zkl_contender *c, int slot,
                      enum zkl_request_kind kind)
{
    send_for(core, c, slot, (struct zkl_request){.kind = kind, .path = c->machine.root});
}

void zkl_core_send_list(struct zkl_core *core, struct zkl_contender *c)
{
    c->looks_only = false;
    send_for(core, c, ZKL_SLOT_LIST,
             (struct zkl_request){
                 .kind = ZKL_REQ_LIST, .path = c->machine.root, .flag = c->view != NULL});
}

/* A check is a transaction even where it fails, because the root is gone. */
static void send_barrier(struct zkl_core *core, struct zkl_contender *c)
{
    const char *check = c->machine.root;
    send_for(core, c, ZKL_SLOT_SYNC,
             (struct zkl_request){.kind = ZKL_REQ_HEARTBEAT, .checks = &check, .check_count = 1});
}

static void send_node(struct zkl_core *core, struct zkl_contender *c, int slot,
                      enum zkl_request_kind kind)
{
    char path[ZKL_NODE_PATH_MAX + 1];
    zkl_core_node_path(c, c->machine.node, path);
    send_for(core, c, slot, (struct zkl_request){.kind = kind, .path = path});
}

void zkl_core_send_delete(struct zkl_core *core, struct zkl_contender *c)
{
    zkl_alone_leaves(core, c);
    send_node(core, c, ZKL_SLOT_DELETE, ZKL_REQ_DELETE);
}

/* Of a child, or of the root itself if name is "". A stranger's name may be long: small if it has the
 * room, else to be freed; NULL: no memory. */
static char *child_path(const struct zkl_contender *c, const char *name,
                        char small[ZKL_NODE_PATH_MAX + 1])
{
    size_t size = c->machine.root_length + 1 + strlen(name) + 1;
    char *path = size <= ZKL_NODE_PATH_MAX + 1 ? small : malloc(size);
    if (path)
        strcpy(stpcpy(stpcpy(path, c->machine.root), *name ? "/" : ""), name);
    return path;
}

/* No answer is waited for: whoever is asked goes, or the root is looked at again. */
static void ask_to_go(struct zkl_core *core, struct zkl_contender *c, const char *name)
{
    char small[ZKL_NODE_PATH_MAX + 1], *path = child_path(c, name, small);
    if (path)
        send_for(core, c, ZKL_SLOT_LIMIT,
                 (struct zkl_request){.kind = ZKL_REQ_SET, .path = path, .data = ZKL_REVOCATION});
    if (path != small)
        free(path);
}

/* --- watches ------------------------------------------------------------ */

/* name: a child's, "" for the root itself. */
static void arm_data_watch(struct zkl_core *core, struct zkl_contender *c, int which,
                           const char *name)
{
    char small[ZKL_NODE_PATH_MAX + 1], *path = child_path(c, name, small);
    enum zkl_subscribed result = ZKL_SUBSCRIBED_REFUSED;
    enum zkl_answer why = ZKL_ANSWER_NOMEM;
    if (path)
        result = zkl_watch_data(core, &c->subs[which], c, path, &why);
    if (result == ZKL_SUBSCRIBED_SHARED && which == ZKL_SUB_OWN && c->subs[which].watch->revoked) {
        zkl_core_feed_type(core, c, ZKL_EV_REVOKED); /* armed by a waiter, who does not care */
    } else if (result == ZKL_SUBSCRIBED_REFUSED && which != ZKL_SUB_OWN) {
        /* Waiting without a watch would be for ever: end the wish. Told when this step is over. */
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
    zkl_pace_put_off(core);
}

/* The list and the child watch are one request, shared by all contenders that look at this root:
 * whoever joins while it is out is served by its answer, because any later change fires the watch.
 */
static void list_root(struct zkl_core *core, struct zkl_contender *c)
{
    struct zkl_subscription *sub = &c->subs[ZKL_SUB_ROOT];
    enum zkl_answer why;
    if (zkl_watch_subscribe(core, sub, c, c->machine.root, ZKL_WATCH_CHILD, &why) ==
        ZKL_SUBSCRIBED_REFUSED) {
        zkl_pending_refuse(core, &c->slots[ZKL_SLOT_LIST], ZKL_REQ_LIST_ROOT, why);
        return;
    }
    if (sub->watch->request.id != 0)
        return;
    struct zkl_request request = {
        .kind = ZKL_REQ_LIST_ROOT, .path = c->machine.root, .watch_id = sub->watch->id};
    sub->watch->state = ZKL_WATCH_ARMING; /* again, perhaps: not to be removed before its answer */
    zkl_pending_send(core, &sub->watch->request, &request);
}

/* --- doing what a contender asks ---------------------------------------- */

static void tell(struct zkl_core *core, struct zkl_contender *c, enum zkl_news_type type,
                 const struct zkl_action *action)
{
    struct zkl_news news = {.type = type,
                            .code = action->code,
                            .state = action->state,
                            .reason = action->reason,
                            .number = action->number,
                            .detail = action->detail};
    if (c->turns)
        zkl_turns_news(core, c, &news);
    if (!zkl_group_news(core, c, &news) && !zkl_permits_news(core, c, &news))
        core->port->news(core->port, c, &news);
}

static void unlink_contender(struct zkl_core *core, struct zkl_contender *c)
{
    *(c->prev ? &c->prev->next : &core->first) = c->next;
    *(c->next ? &c->next->prev : &core->last) = c->prev;
    core->contenders--;
}

static void forget_list(struct zkl_core *core, struct zkl_contender *c)
{
    zkl_pending_forget(core, &c->slots[ZKL_SLOT_LIST]);
    c->wants_list = false;
    zkl_share_leave(core, c);
}

static void finish(struct zkl_core *core, struct zkl_contender *c, const struct zkl_action *action)
{
    for (int i = 0; i < ZKL_SLOTS; i++)
        zkl_pending_forget(core, &c->slots[i]);
    forget_list(core, c);
    zkl_batch_detach(core, c);
    unlink_contender(core, c);
    tell(core, c, ZKL_NEWS_ENDED, action);
}

static void unwatch(struct zkl_core *core, struct zkl_contender *c, bool own_too)
{
    for (int i = 0; i < ZKL_SUBS; i++) {
        if (i != ZKL_SUB_OWN || own_too)
            zkl_watch_unsubscribe(core, &c->subs[i]);
    }
}

static void execute(struct zkl_core *core, struct zkl_contender *c, const struct zkl_action *action)
{
    switch (action->type) {
    case ZKL_DO_MAKE:
        send_make(core, c);
        break;
    case ZKL_DO_CREATE:
        if (!zkl_batch_create(core, c))
            zkl_core_send_create(core, c);
        break;
    case ZKL_DO_CREATE_UNDER:
        send_create_under(core, c);
        break;
    case ZKL_DO_LIST:
        if (!zkl_batch_list(c) && !zkl_share_list(core, c))
            zkl_core_send_list(core, c);
        break;
    case ZKL_DO_SYNC:
        send_root(core, c, ZKL_SLOT_SYNC, ZKL_REQ_SYNC);
        break;
    case ZKL_DO_BARRIER:
        send_barrier(core, c);
        break;
    case ZKL_DO_LIST_ROOT:
        list_root(core, c);
        break;
    case ZKL_DO_STAT:
        send_node(core, c, ZKL_SLOT_STAT, ZKL_REQ_STAT);
        break;
    case ZKL_DO_RENEW:
        send_root(core, c, ZKL_SLOT_STAT, ZKL_REQ_RENEW);
        break;
    case ZKL_DO_ASK:
        ask_to_go(core, c, action->name);
        break;
    case ZKL_DO_DELETE:
        if (!zkl_batch_delete(c))
            zkl_core_send_delete(core, c);
        break;
    case ZKL_DO_FORGET_LIST:
        forget_list(core, c);
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
    case ZKL_DO_GET_LIMIT:
        if (!zkl_permits_shares_limit(c))
            send_root(core, c, ZKL_SLOT_LIMIT, ZKL_REQ_GET);
        break;
    case ZKL_DO_SET_LIMIT:
        send_set_limit(core, c);
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
    case ZKL_DO_HEARTBEAT:
        core->heartbeat_wanted = true;
        break;
    case ZKL_DO_GRANT:
        zkl_pace_note_lease(core, c);
        tell(core, c, ZKL_NEWS_GRANTED, action);
        break;
    case ZKL_DO_FAIL:
        tell(core, c, ZKL_NEWS_FAILED, action);
        break;
    case ZKL_DO_RELEASED:
        tell(core, c, ZKL_NEWS_RELEASED, action);
        break;
    case ZKL_DO_CONTENDED:
        if (c->turns)
            zkl_turns_touch(core, c->turns);
        break;
    case ZKL_DO_TELL:
    case ZKL_DO_LOST:
        tell(core, c, ZKL_NEWS_STATE, action);
        break;
    case ZKL_DO_END:
        finish(core, c, action);
        break;
    }
}

/* by: 1 or (size_t)-1. */
static void count(struct zkl_core *core, struct zkl_contender *c, size_t by)
{
    const struct zkl_contender_machine *m = &c->machine;
    if (c->alone)
        c->alone->here += by * zkl_contender_is_here(m);
    core->need_window += by * zkl_contender_needs_window(m);
    core->unchecked += by * zkl_contender_is_unchecked(m);
    core->waiting += by * zkl_contender_waits(m);
    core->hopeful += by * zkl_contender_is_hopeful(m);
    core->bounded += by * zkl_contender_is_bounded(m);
    core->stranded += by * zkl_contender_is_stranded(m);
}

static void no_heir_of(struct zkl_contender *c)
{
    if (c->heir_of)
        c->heir_of->heir = NULL;
    c->heir_of = NULL;
}

/* Who waits to hear how this one's delete ended, once it has. */
static struct zkl_contender *take_heir(struct zkl_contender *c)
{
    struct zkl_contender *heir = c->heir;
    if (!heir || (c->machine.delete_out && c->machine.state != ZKL_ENDED))
        return NULL;
    no_heir_of(heir);
    return heir;
}

void zkl_core_feed(struct zkl_core *core, struct zkl_contender *c, struct zkl_event event)
{
    struct zkl_actions actions;
    event.now = core->now;
    event.connected = zkl_session_connected(&core->session);
    event.session = core->session.id;
    event.window_end_boot = zkl_session_window_end(&core->session);
    event.fresh_until_boot = zkl_proof_fresh_until(&core->session.proof);
    event.timeout_ns = zkl_session_timeout_ns(&core->session);
    event.again_mono_ns = core->again_mono_ns;
    count(core, c, (size_t)-1);
    bool was_there = c->machine.on_server;
    event.unlisted =
        zkl_alone_expects(core, c) || zkl_opcode_is_unknown(core, ZKL_OPCODE_CREATE2);
    zkl_contender_step(&c->machine, &event, &actions, &core->tracer);
    count(core, c, 1);
    if (!was_there && c->machine.on_server)
        zkl_opcode_carried_out(core, &c->slots[ZKL_SLOT_CREATE]);
    if (c->machine.state != ZKL_WAITING)
        no_heir_of(c);
    struct zkl_contender *heir = take_heir(c);
    if (c->batch)
        zkl_batch_touch(core, c->batch);
    if (c->group)
        zkl_group_touch(core, c->group);
    for (size_t i = 0; i < actions.count; i++)
        execute(core, c, &actions.list[i]); /* END is the last one: c may be gone after it */
    if (heir)
        zkl_answer_heir(core, heir, event.type == ZKL_EV_DELETED && event.answer == ZKL_ANSWER_OK);
}

void zkl_core_feed_stop(struct zkl_core *core, struct zkl_contender *c, int code)
{
    zkl_core_feed(core, c, (struct zkl_event){.type = ZKL_EV_STOP, .code = code});
}

void zkl_core_back_out(struct zkl_core *core, struct zkl_contender *c)
{
    enum zkl_contender_state state = c->machine.state;
    if (state == ZKL_LEAVING || state == ZKL_RELEASING)
        return;
    if (state == ZKL_HOLDING || state == ZKL_LOSTHOLD)
        zkl_core_feed_type(core, c, ZKL_EV_RELEASE);
    else
        zkl_core_feed_stop(core, c, ZKL_ECANCELED);
}

void zkl_core_feed_type(struct zkl_core *core, struct zkl_contender *c, enum zkl_event_type type)
{
    zkl_core_feed(core, c, (struct zkl_event){.type = type});
}

/* To all for which want says yes, oldest first. A step ends at most the contender it is for. */
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

static bool is_leaving(const struct zkl_contender_machine *m)
{
    return m->state == ZKL_LEAVING;
}

static bool is_not_leaving(const struct zkl_contender_machine *m)
{
    return m->state != ZKL_LEAVING;
}

static bool is_held(const struct zkl_contender_machine *m)
{
    return m->state == ZKL_HOLDING || m->state == ZKL_RELEASING;
}

static void send_hello(struct zkl_core *core)
{
    struct zkl_request request = {.kind = ZKL_REQ_STAT, .path = "/"};
    if (core->hello_wanted && core->hello.id == 0)
        zkl_pending_send(core, &core->hello, &request);
}

static void go_on(struct zkl_core *core, bool (*who)(const struct zkl_contender_machine *m))
{
    send_hello(core);
    /* What is to go goes before anything new comes. */
    zkl_watch_retry(core);
    zkl_core_feed_all(core, (struct zkl_event){.type = ZKL_EV_LINK_UP}, is_leaving);
    zkl_share_begin(core);
    zkl_core_feed_all(core, (struct zkl_event){.type = ZKL_EV_LINK_UP}, who);
    zkl_share_end(core);
    zkl_query_link_up(core);
}

void zkl_core_go_on(struct zkl_core *core)
{
    go_on(core, is_not_leaving);
}

/* Whoever only waits or holds, with its watches armed, has had its answers. */
static bool may_miss_an_answer(const struct zkl_contender_machine *m)
{
    const struct zkl_contender *c =
        (const struct zkl_contender *)((const char *)m - offsetof(struct zkl_contender, machine));
    bool rests = m->state == ZKL_WAITING || m->state == ZKL_HOLDING;
    bool wants[ZKL_SUBS] = {[ZKL_SUB_PRED] = m->state == ZKL_WAITING,
                            [ZKL_SUB_OWN] = m->watch_own,
                            [ZKL_SUB_ROOT] = m->looks_out && !m->contended};
    for (int i = 0; rests && i < ZKL_SUBS; i++) {
        const struct zkl_watch *watch = c->subs[i].watch;
        rests = watch ? watch->state == ZKL_WATCH_ARMED : !wants[i];
    }
    return m->state != ZKL_LEAVING && !rests;
}

void zkl_core_ask_again(struct zkl_core *core)
{
    go_on(core, may_miss_an_answer);
}

/* These come again by themselves. */
static bool is_paced(const struct zkl_core *core, const struct zkl_pending *slot)
{
    return slot == &core->nudge || slot == &core->look || zkl_heartbeat_is(slot);
}

/* --- entry points ------------------------------------------------------- */

void zkl_core_enter(struct zkl_core *core, struct zkl_time now)
{
    core->now = now;
}

static bool settle_group(struct zkl_core *core)
{
    struct zkl_group *group = core->due_groups;
    if (!group)
        return false;
    core->due_groups = group->next_due;
    group->due = false;
    zkl_group_settle(core, group);
    return true;
}

static bool settle_permits(struct zkl_core *core)
{
    struct zkl_permits *permits = core->due_permits;
    if (!permits)
        return false;
    core->due_permits = permits->next_due;
    permits->due = false;
    zkl_permits_settle(core, permits);
    return true;
}

static bool settle_turns(struct zkl_core *core)
{
    struct zkl_turns *turns = core->due_turns;
    if (!turns)
        return false;
    core->due_turns = turns->next_due;
    turns->due = false;
    zkl_turns_settle(core, turns);
    return true;
}

static bool settle_batch(struct zkl_core *core)
{
    struct zkl_batch *batch = core->due_batches;
    if (!batch)
        return false;
    core->due_batches = batch->next_due;
    batch->due = false;
    zkl_batch_settle(core, batch);
    return true;
}

/* What the event set off beyond the contender it was for: requests that could not be sent are
 * answered, and a heartbeat that was asked for goes out. Bounded: a refused request is answered
 * once, and what it leads to is refused by a link that the contender then waits for. */
static void settle(struct zkl_core *core)
{
    enum zkl_answer refusal;
    struct zkl_pending *slot;
    for (;;) {
        while ((slot = zkl_pending_take_refused(core, &refusal)))
            zkl_answer(core, slot, &(struct zkl_reply){.answer = refusal});
        if (settle_group(core) || settle_permits(core) || settle_turns(core) || settle_batch(core))
            continue;
        if (!zkl_heartbeat_if_wanted(core)) /* refused, it is held off */
            break;
    }
}

void zkl_core_settle(struct zkl_core *core, struct zkl_time now)
{
    zkl_core_enter(core, now);
    settle(core);
}

/* The session is over: nothing is awaited, no watch is left. */
static void forget_session(struct zkl_core *core)
{
    zkl_pending_clear(core);
    zkl_watch_clear(core);
    zkl_share_reset(core);
    zkl_opcode_reset(core);
    for (struct zkl_contender *c = core->first; c; c = c->next) {
        if (c->batch)
            zkl_batch_reset(c->batch);
    }
    zkl_core_feed_all(core, (struct zkl_event){.type = ZKL_EV_EXPIRED}, NULL);
    zkl_query_expired(core);
}

void zkl_core_session_event(struct zkl_core *core, const struct zkl_session_event *event)
{
    zkl_core_enter(core, event->now);
    unsigned actions = zkl_session_step(&core->session, event, session_moved, core);
    core->link += actions != 0;
    /* An expiry says all that a lost link could, and more. */
    if ((actions & ZKL_SA_LINK_DOWN) && !(actions & (ZKL_SA_EXPIRE | ZKL_SA_FAIL)))
        zkl_core_feed_all(core, (struct zkl_event){.type = ZKL_EV_LINK_DOWN}, NULL);
    if (actions & ZKL_SA_FAIL)
        zkl_query_end_all(core, ZKL_EAUTH);
    if (actions & (ZKL_SA_EXPIRE | ZKL_SA_FAIL))
        forget_session(core);
    if (actions & ZKL_SA_FAIL)
        zkl_core_feed_all(core, (struct zkl_event){.type = ZKL_EV_STOP, .code = ZKL_EAUTH}, NULL);
    if (actions)
        core->port->session(core->port, actions);
    if (actions & ZKL_SA_LINK_UP) {
        core->is_blamed = false;
        zkl_opcode_link_up(core);
        core->heartbeat_hold_off = 0;
        core->again_mono_ns = INT64_MAX;
        zkl_core_go_on(core);
    }
    settle(core);
}

void zkl_core_reply(struct zkl_core *core, struct zkl_time now, const struct zkl_reply *reply)
{
    zkl_core_enter(core, now);
    if (reply->answer == ZKL_ANSWER_AUTH) {
        zkl_core_session_event(core,
                               &(struct zkl_session_event){.type = ZKL_SE_AUTH_FAILED, .now = now});
        return;
    }
    zkl_answer_stamp(core, reply);
    struct zkl_pending *slot = zkl_pending_take(core, reply->id);
    if (reply->answer == ZKL_ANSWER_LINK && zkl_session_connected(&core->session) &&
        !(slot && is_paced(core, slot)))
        zkl_pace_ask_again(core);
    if (reply->hung_up && !core->is_blamed) /* they are handed back in the order of their sending */
        core->is_blamed = zkl_opcode_hung_up(core, slot);
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
    zkl_core_enter(core, now);
    struct zkl_watch *watch = zkl_watch_fired(core, watch_id);
    if (watch && watch->type == ZKL_WATCH_CHILD && watch->request.id != 0)
        watch->armed = false; /* the list that is out was made after this and arms it again */
    else if (watch)
        zkl_answer_fired(core, watch, what);
    settle(core);
}

void zkl_core_timer(struct zkl_core *core, struct zkl_time now)
{
    zkl_core_enter(core, now);
    if (now.mono_ns >= core->session.timer_mono_ns)
        zkl_core_session_event(core, &(struct zkl_session_event){.type = ZKL_SE_TIMER, .now = now});
    zkl_pace_timer(core);
    settle(core);
}

int64_t zkl_core_next_timeout(const struct zkl_core *core, struct zkl_time now)
{
    int64_t at = zkl_pace_next(core, now);
    return core->session.timer_mono_ns < at ? core->session.timer_mono_ns : at;
}

static void append_contender(struct zkl_core *core, struct zkl_contender *c)
{
    c->number = ++core->last_number;
    c->next = NULL;
    c->prev = core->last;
    *(core->last ? &core->last->next : &core->first) = c;
    core->last = c;
    core->contenders++;
}

void zkl_core_start(struct zkl_core *core, struct zkl_contender *contender,
                    const struct zkl_wish *wish)
{
    *contender = (struct zkl_contender){.machine = {.state = ZKL_NEW,
                                                    .try_only = wish->try_only,
                                                    .try_sync = wish->try_sync,
                                                    .try_asks = wish->try_asks,
                                                    .watch_own = wish->watch_own,
                                                    .retained = wish->retained,
                                                    .posted = wish->posted,
                                                    .lookahead = wish->lookahead,
                                                    .naming = wish->naming,
                                                    .lease_ns = wish->lease_ns,
                                                    .quota = wish->quota,
                                                    .root = wish->root,
                                                    .root_length = strlen(wish->root)},
                                        .data = wish->data,
                                        .view = wish->view,
                                        .alone = wish->alone,
                                        .group = wish->group,
                                        .permits = wish->permits,
                                        .turns = wish->turns};
    zkl_share_setup(core, contender);
    for (int i = 0; i < ZKL_SLOTS; i++)
        contender->slots[i].contender = contender;
    if (wish->under) {
        const struct zkl_contender_machine *writer = &wish->under->machine;
        zkl_text_copy(contender->machine.under, sizeof contender->machine.under, writer->node);
        contender->machine.under_czxid = writer->czxid;
    }
    if (wish->batch)
        zkl_batch_attach(wish->batch, contender);
    append_contender(core, contender);
    zkl_core_feed_type(core, contender, ZKL_EV_START);
    if (core->session.state == ZKL_SESSION_FAILED)
        zkl_core_feed_stop(core, contender, ZKL_EAUTH);
    else if (core->session.state == ZKL_SESSION_CLOSED)
        zkl_core_feed_stop(core, contender, ZKL_ECLOSED);
}

void zkl_core_acquire(struct zkl_core *core, struct zkl_time now, struct zkl_contender *contender,
                      const struct zkl_wish *wish)
{
    zkl_core_enter(core, now);
    zkl_core_start(core, contender, wish);
    settle(core);
}

void zkl_core_stop(struct zkl_core *core, struct zkl_time now, struct zkl_contender *contender,
                   int code)
{
    zkl_core_enter(core, now);
    zkl_core_feed_stop(core, contender, code);
    settle(core);
}

void zkl_core_release(struct zkl_core *core, struct zkl_time now, struct zkl_contender *contender)
{
    zkl_core_enter(core, now);
    zkl_core_feed_type(core, contender, ZKL_EV_RELEASE);
    settle(core);
}

void zkl_core_abandon(struct zkl_core *core, struct zkl_time now, struct zkl_contender *contender,
                      int reason)
{
    zkl_core_enter(core, now);
    zkl_core_feed(core, contender, (struct zkl_event){.type = ZKL_EV_ABANDON, .reason = reason});
    settle(core);
}

bool zkl_core_renew(struct zkl_core *core, struct zkl_time now, struct zkl_contender *contender,
                    int64_t lease_ns)
{
    zkl_core_enter(core, now);
    return zkl_pace_begin_lease(core, contender, lease_ns);
}

void zkl_core_ask(struct zkl_core *core, struct zkl_time now, struct zkl_query *query)
{
    zkl_core_enter(core, now);
    zkl_query_begin(core, query);
    settle(core);
}

void zkl_core_withdraw(struct zkl_core *core, struct zkl_time now, struct zkl_query *query)
{
    zkl_core_enter(core, now);
    zkl_query_withdraw(core, query);
    settle(core);
}

void zkl_core_close(struct zkl_core *core, struct zkl_time now)
{
    zkl_core_enter(core, now);
    zkl_core_feed_all(core, (struct zkl_event){.type = ZKL_EV_ABANDON, .reason = ZKL_REASON_CLOSED},
                      is_held);
    zkl_core_feed_all(core, (struct zkl_event){.type = ZKL_EV_STOP, .code = ZKL_ECLOSED}, NULL);
    zkl_core_session_event(core, &(struct zkl_session_event){.type = ZKL_SE_CLOSE, .now = now});
    /* The session is about to end, and every node with it. */
    zkl_query_end_all(core, ZKL_ECLOSED);
    forget_session(core);
    settle(core);
}
