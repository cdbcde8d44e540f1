/* SPDX-License-Identifier: Apache-2.0 */
#include "core.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <zklock/zklock.h>

#include "pending.h"
#include "watch.h"

#define MS INT64_C(1000000)
#define NODE_PATH_MAX (ZKL_PATH_MAX + 1 + ZKL_NODE_NAME_MAX)

/* --- traces ------------------------------------------------------------- */

static void trace(struct zkl_core *core, const char *who, const char *from, const char *to,
                  const char *why)
{
    char line[160];
    if (!core->port->trace)
        return;
    snprintf(line, sizeof line, "[%6lld] %s %s -> %s: %s", (long long)(core->now.mono_ns / MS), who,
             from, to, why);
    core->port->trace(core->port, line);
}

static void contender_moved(void *arg, const struct zkl_contender_machine *m,
                            enum zkl_contender_state from, const char *why)
{
    const struct zkl_contender *contender = (const struct zkl_contender *)m;
    char who[24];
    snprintf(who, sizeof who, "#%llu", (unsigned long long)contender->number);
    trace(arg, who, zkl_contender_state_name(from), zkl_contender_state_name(m->state), why);
}

static void session_moved(void *arg, enum zkl_session_state from, const char *why)
{
    struct zkl_core *core = arg;
    trace(core, "session", zkl_session_state_name(from),
          zkl_session_state_name(core->session.state), why);
}

/* --- init --------------------------------------------------------------- */

void zkl_core_init(struct zkl_core *core, struct zkl_port *port, int timeout_ms)
{
    *core = (struct zkl_core){.port = port, .tracer = {contender_moved, core}};
    zkl_session_init(&core->session, timeout_ms);
    /* The machine is the contender's first member: traces go from one to the other. */
    _Static_assert(offsetof(struct zkl_contender, machine) == 0, "machine comes first");
}

void zkl_core_fini(struct zkl_core *core)
{
    assert(!core->first);
    zkl_pending_clear(core);
    zkl_watch_clear(core);
}

/* --- sending for a contender -------------------------------------------- */

static void send_for(struct zkl_core *core, struct zkl_contender *c, int slot,
                     struct zkl_request request)
{
    zkl_pending_send(core, &c->slots[slot], &request);
}

static void node_path(const struct zkl_contender *c, const char *name, char *out)
{
    snprintf(out, NODE_PATH_MAX + 1, "%s/%s", c->machine.root, name);
}

static void send_create(struct zkl_core *core, struct zkl_contender *c)
{
    unsigned char random[16];
    char prefix[ZKL_NODE_NAME_MAX + 1], path[NODE_PATH_MAX + 1];
    core->port->random(core->port, random);
    zkl_guid_format(random, c->machine.guid);
    zkl_name_prefix(c->machine.guid, prefix);
    node_path(c, prefix, path);
    c->beat = 0; /* an older heartbeat says nothing of the new node */
    send_for(core, c, ZKL_SLOT_CREATE,
             (struct zkl_request){.kind = ZKL_REQ_CREATE, .path = path, .data = c->data});
}

static void send_make(struct zkl_core *core, struct zkl_contender *c)
{
    char path[ZKL_PATH_MAX + 1];
    snprintf(path, sizeof path, "%.*s", (int)c->machine.make_length, c->machine.root);
    send_for(
        core, c, ZKL_SLOT_CREATE,
        (struct zkl_request){.kind = ZKL_REQ_MAKE, .path = path, .flag = c->machine.persistent});
}

static void send_root(struct zkl_core *core, struct zkl_contender *c, int slot,
                      enum zkl_request_kind kind)
{
    send_for(core, c, slot, (struct zkl_request){.kind = kind, .path = c->machine.root});
}

static void send_node(struct zkl_core *core, struct zkl_contender *c, int slot,
                      enum zkl_request_kind kind)
{
    char path[NODE_PATH_MAX + 1];
    node_path(c, c->machine.node, path);
    send_for(core, c, slot, (struct zkl_request){.kind = kind, .path = path});
}

/* --- watches ------------------------------------------------------------ */

static void feed(struct zkl_core *core, struct zkl_contender *c, struct zkl_event event);

static void arm_data_watch(struct zkl_core *core, struct zkl_contender *c, int which,
                           const char *name)
{
    size_t size = strlen(c->machine.root) + 1 + strlen(name) + 1;
    char small[NODE_PATH_MAX + 1];
    char *path = size <= sizeof small ? small : malloc(size); /* a stranger's name may be long */
    enum zkl_subscribed result = ZKL_SUBSCRIBED_NOMEM;
    if (path) {
        snprintf(path, size, "%s/%s", c->machine.root, name);
        result = zkl_watch_subscribe(core, &c->subs[which], c, path, ZKL_WATCH_DATA);
    }
    struct zkl_watch *watch = c->subs[which].watch;
    if (result == ZKL_SUBSCRIBED_NEW) {
        struct zkl_request request = {.kind = ZKL_REQ_WATCH, .path = path, .watch_id = watch->id};
        zkl_pending_send(core, &watch->request, &request);
    } else if (result == ZKL_SUBSCRIBED_NOMEM && which == ZKL_SUB_PRED) {
        /* Waiting without a watch would be for ever: end the wish. Told when this step is over. */
        zkl_pending_refuse(core, &c->slots[ZKL_SLOT_SYNC], ZKL_REQ_WATCH, ZKL_ANSWER_NOMEM);
    }
    if (path != small)
        free(path);
}

/* The list and the child watch are one request, shared by all contenders that look at this root:
 * whoever joins while it is out is served by its answer, because any later change fires the watch.
 */
static void list_root(struct zkl_core *core, struct zkl_contender *c)
{
    struct zkl_subscription *sub = &c->subs[ZKL_SUB_ROOT];
    if (zkl_watch_subscribe(core, sub, c, c->machine.root, ZKL_WATCH_CHILD) ==
        ZKL_SUBSCRIBED_NOMEM) {
        zkl_pending_refuse(core, &c->slots[ZKL_SLOT_LIST], ZKL_REQ_LIST_ROOT, ZKL_ANSWER_NOMEM);
        return;
    }
    if (sub->watch->request.id != 0)
        return;
    struct zkl_request request = {
        .kind = ZKL_REQ_LIST_ROOT, .path = c->machine.root, .watch_id = sub->watch->id};
    sub->watch->state = ZKL_WATCH_ARMING; /* again, perhaps: not to be removed before its answer */
    zkl_pending_send(core, &sub->watch->request, &request);
}

static void feed_subscription(struct zkl_core *core, struct zkl_subscription *sub,
                              struct zkl_event pred, struct zkl_event own, struct zkl_event root)
{
    struct zkl_contender *c = sub->contender;
    if (sub == &c->subs[ZKL_SUB_PRED])
        feed(core, c, pred);
    else if (sub == &c->subs[ZKL_SUB_OWN])
        feed(core, c, own);
    else
        feed(core, c, root);
}

/* The watch is over: each subscriber is told what for. */
static void disperse(struct zkl_core *core, struct zkl_watch *watch, struct zkl_event pred,
                     struct zkl_event own, struct zkl_event root)
{
    zkl_watch_detach(core, watch);
    zkl_pending_forget(core, &watch->request);
    while (watch->subscribers) {
        struct zkl_subscription *sub = watch->subscribers;
        zkl_watch_unlink(sub);
        feed_subscription(core, sub, pred, own, root);
    }
    free(watch);
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
    core->port->news(core->port, c, &news);
}

static void unlink_contender(struct zkl_core *core, struct zkl_contender *c)
{
    *(c->prev ? &c->prev->next : &core->first) = c->next;
    *(c->next ? &c->next->prev : &core->last) = c->prev;
    core->contenders--;
}

static void finish(struct zkl_core *core, struct zkl_contender *c, const struct zkl_action *action)
{
    for (int i = 0; i < ZKL_SLOTS; i++)
        zkl_pending_forget(core, &c->slots[i]);
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
        send_create(core, c);
        break;
    case ZKL_DO_LIST:
        send_root(core, c, ZKL_SLOT_LIST, ZKL_REQ_LIST);
        break;
    case ZKL_DO_SYNC:
        send_root(core, c, ZKL_SLOT_SYNC, ZKL_REQ_SYNC);
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
    case ZKL_DO_DELETE:
        send_node(core, c, ZKL_SLOT_DELETE, ZKL_REQ_DELETE);
        break;
    case ZKL_DO_FORGET_LIST:
        zkl_pending_forget(core, &c->slots[ZKL_SLOT_LIST]);
        break;
    case ZKL_DO_WATCH_PRED:
        arm_data_watch(core, c, ZKL_SUB_PRED, action->name);
        break;
    case ZKL_DO_WATCH_OWN:
        arm_data_watch(core, c, ZKL_SUB_OWN, c->machine.node);
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
        tell(core, c, ZKL_NEWS_GRANTED, action);
        break;
    case ZKL_DO_FAIL:
        tell(core, c, ZKL_NEWS_FAILED, action);
        break;
    case ZKL_DO_RELEASED:
        tell(core, c, ZKL_NEWS_RELEASED, action);
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

static bool hopeful(const struct zkl_contender_machine *m)
{
    return m->state == ZKL_CONFIRMING || (m->state == ZKL_HOLDING && m->suspect);
}

static bool bounded(const struct zkl_contender_machine *m)
{
    return m->state == ZKL_RELEASING || (m->state == ZKL_HOLDING && !m->suspect);
}

static void count(struct zkl_core *core, const struct zkl_contender_machine *m, size_t by)
{
    core->need_window += zkl_contender_needs_window(m) ? by : 0;
    core->waiting += zkl_contender_waits(m) ? by : 0;
    core->hopeful += hopeful(m) ? by : 0;
    core->bounded += bounded(m) ? by : 0;
    core->stranded += zkl_contender_is_stranded(m) ? by : 0;
}

static void feed(struct zkl_core *core, struct zkl_contender *c, struct zkl_event event)
{
    struct zkl_actions actions;
    event.now = core->now;
    event.connected = zkl_session_connected(&core->session);
    event.session = core->session.id;
    event.window_end_boot = zkl_session_window_end(&core->session);
    event.fresh_until_boot = zkl_session_fresh_until(&core->session);
    count(core, &c->machine, (size_t)-1);
    zkl_contender_step(&c->machine, &event, &actions, &core->tracer);
    count(core, &c->machine, 1);
    for (size_t i = 0; i < actions.count; i++)
        execute(core, c, &actions.list[i]); /* END is the last one: c may be gone after it */
}

static void feed_type(struct zkl_core *core, struct zkl_contender *c, enum zkl_event_type type)
{
    feed(core, c, (struct zkl_event){.type = type});
}

/* To all for which want says yes, oldest first. A step ends at most the contender it is for. */
static void feed_all(struct zkl_core *core, struct zkl_event event,
                     bool (*want)(const struct zkl_contender_machine *m))
{
    struct zkl_contender *next;
    for (struct zkl_contender *c = core->first; c; c = next) {
        next = c->next;
        if (!want || want(&c->machine))
            feed(core, c, event);
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

/* --- heartbeat ---------------------------------------------------------- */

static bool beats_for(const struct zkl_contender *c)
{
    return zkl_contender_needs_window(&c->machine) && c->machine.on_server;
}

/* The contenders that this beat checks: in turn, where there are more than one beat can carry. */
static size_t choose_checked(struct zkl_core *core, struct zkl_contender **chosen, size_t max)
{
    size_t n = 0;
    for (int pass = 0; pass < 2 && n < max; pass++) {
        for (struct zkl_contender *c = core->first; c && n < max; c = c->next) {
            if ((c->number > core->beat_round) == (pass == 0) && beats_for(c))
                chosen[n++] = c;
        }
    }
    if (n > 0)
        core->beat_round = n < max ? 0 : chosen[n - 1]->number;
    return n;
}

static void send_heartbeat(struct zkl_core *core)
{
    struct zkl_contender *chosen[ZKL_HEARTBEAT_CHECKS_MAX];
    const char *checks[ZKL_HEARTBEAT_CHECKS_MAX];
    char one[NODE_PATH_MAX + 1];
    size_t n = choose_checked(core, chosen, ZKL_HEARTBEAT_CHECKS_MAX);
    core->heartbeat_wanted = false;
    if (n == 0)
        return;
    char *many = n > 1 ? malloc(n * sizeof one) : NULL;
    if (!many)
        n = 1; /* one node proves the session too */
    core->beats++;
    for (size_t i = 0; i < n; i++) {
        char *path = many ? many + i * sizeof one : one;
        node_path(chosen[i], chosen[i]->machine.node, path);
        checks[i] = path;
        chosen[i]->beat = core->beats;
        chosen[i]->beat_index = i;
    }
    struct zkl_request request = {.kind = ZKL_REQ_HEARTBEAT, .checks = checks, .check_count = n};
    zkl_pending_send(core, &core->heartbeat, &request);
    free(many);
}

static void on_heartbeat(struct zkl_core *core, const struct zkl_reply *reply)
{
    if (reply->answer == ZKL_ANSWER_OK)
        return;
    core->heartbeat_hold_off = core->now.mono_ns + core->session.timeout_ms * MS / 16;
    if (reply->answer != ZKL_ANSWER_NONODE)
        return;
    struct zkl_contender *next;
    for (struct zkl_contender *c = core->first; c; c = next) {
        next = c->next;
        if (c->beat == core->beats && c->beat_index == reply->failed_check && beats_for(c)) {
            feed_type(core, c, ZKL_EV_NODE_GONE);
            break;
        }
    }
    core->heartbeat_hold_off = core->now.mono_ns;
    core->heartbeat_wanted = true; /* the others are not proved yet */
}

static int64_t to_mono(struct zkl_time now, int64_t boot_ns)
{
    return boot_ns - now.boot_ns + now.mono_ns;
}

/* INT64_MAX: none is wanted now. */
static int64_t heartbeat_at(const struct zkl_core *core, struct zkl_time now)
{
    if (!zkl_session_connected(&core->session) || core->heartbeat.id != 0)
        return INT64_MAX;
    if (core->need_window == 0)
        return INT64_MAX;
    int64_t due = to_mono(now, zkl_session_heartbeat_due(&core->session));
    if (core->heartbeat_wanted)
        due = now.mono_ns;
    return due > core->heartbeat_hold_off ? due : core->heartbeat_hold_off;
}

/* --- nudge -------------------------------------------------------------- */

static int64_t nudge_at(const struct zkl_core *core)
{
    size_t own = core->nudge.id != 0;
    bool idle = core->waiting == 0 && core->pending_count <= own;
    if (!zkl_session_connected(&core->session) || idle)
        return INT64_MAX;
    return core->last_send_mono_ns + ZKL_NUDGE_MS * MS;
}

/* INT64_MAX: nothing is left to be sent again. */
static int64_t retry_at(const struct zkl_core *core)
{
    if (!zkl_session_connected(&core->session) || (core->stranded == 0 && core->removals_due == 0))
        return INT64_MAX;
    return core->last_retry_mono_ns + ZKL_RETRY_MS * MS;
}

static void retry(struct zkl_core *core)
{
    core->last_retry_mono_ns = core->now.mono_ns;
    zkl_watch_retry(core);
    feed_all(core, (struct zkl_event){.type = ZKL_EV_LINK_UP}, zkl_contender_is_stranded);
}

/* --- answers ------------------------------------------------------------ */

static bool is_quorum_write(enum zkl_request_kind kind)
{
    return kind == ZKL_REQ_CREATE || kind == ZKL_REQ_DELETE || kind == ZKL_REQ_HEARTBEAT;
}

static void on_data_watch(struct zkl_core *core, struct zkl_watch *watch,
                          const struct zkl_reply *reply)
{
    if (reply->answer == ZKL_ANSWER_OK) {
        zkl_watch_armed(core, watch);
        return;
    }
    struct zkl_event pred = {
        .type = ZKL_EV_WATCHED, .answer = reply->answer, .number = reply->number};
    /* Our own node missing is a deletion; any other failure to watch it leaves us to the heartbeat.
     */
    struct zkl_event own = {.type = reply->answer == ZKL_ANSWER_NONODE ? ZKL_EV_OWN_DELETED
                                                                       : ZKL_EV_WATCHED};
    disperse(core, watch, pred, own, own);
}

/* A list is good for everybody who waits at this root, a failure only for those who asked. */
static void feed_rooted(struct zkl_core *core, struct zkl_watch *watch, struct zkl_event event)
{
    struct zkl_subscription *next;
    for (struct zkl_subscription *sub = watch->subscribers; sub; sub = next) {
        next = sub->next;
        if (event.answer == ZKL_ANSWER_OK || sub->contender->machine.list_out)
            feed(core, sub->contender, event);
    }
}

static void on_child_watch(struct zkl_core *core, struct zkl_watch *watch,
                           const struct zkl_reply *reply)
{
    struct zkl_event event = {.type = ZKL_EV_ROOTED,
                              .answer = reply->answer,
                              .number = reply->number,
                              .children = reply->children,
                              .child_count = reply->child_count,
                              .czxid = reply->czxid};
    /* Once armed it stays so, whatever became of another look at the root, unless that is gone. */
    bool stays = reply->answer == ZKL_ANSWER_OK ||
                 (reply->answer != ZKL_ANSWER_NONODE && watch->armed);
    if (!stays) {
        disperse(core, watch, event, event, event);
        return;
    }
    watch->armed = true;
    /* Subscribers may leave one by one as they are told: it stays ARMING until all are. */
    feed_rooted(core, watch, event);
    if (watch->request.id == 0)
        zkl_watch_armed(core, watch);
}

static void on_watch_answer(struct zkl_core *core, struct zkl_pending *slot,
                            const struct zkl_reply *reply)
{
    if (slot->kind == ZKL_REQ_UNWATCH)
        zkl_watch_removed(core, slot->watch, reply->answer);
    else if (slot->kind == ZKL_REQ_WATCH)
        on_data_watch(core, slot->watch, reply);
    else
        on_child_watch(core, slot->watch, reply);
}

/* The list behind it speaks for both, unless the sync failed alone: such a list may be older than
 * what it is to tell of. */
static void on_sync(struct zkl_core *core, struct zkl_contender *c, const struct zkl_reply *reply)
{
    bool fine = reply->answer == ZKL_ANSWER_OK || reply->answer == ZKL_ANSWER_LINK;
    if (fine || !c->machine.list_out)
        return;
    zkl_pending_forget(core, &c->slots[ZKL_SLOT_LIST]);
    feed(core, c,
         (struct zkl_event){
             .type = ZKL_EV_LISTED, .answer = reply->answer, .number = reply->number});
}

static void on_contender_answer(struct zkl_core *core, struct zkl_pending *slot,
                                const struct zkl_reply *reply)
{
    static const int types[ZKL_REQUEST_KINDS] = {
        [ZKL_REQ_CREATE] = ZKL_EV_CREATED, [ZKL_REQ_MAKE] = ZKL_EV_MADE,
        [ZKL_REQ_LIST] = ZKL_EV_LISTED,    [ZKL_REQ_LIST_ROOT] = ZKL_EV_ROOTED,
        [ZKL_REQ_STAT] = ZKL_EV_STATTED,   [ZKL_REQ_DELETE] = ZKL_EV_DELETED,
        [ZKL_REQ_RENEW] = ZKL_EV_RENEWED,  [ZKL_REQ_WATCH] = ZKL_EV_WATCHED,
    };
    if (slot->kind == ZKL_REQ_SYNC) {
        on_sync(core, slot->contender, reply);
        return;
    }
    feed(core, slot->contender,
         (struct zkl_event){.type = (enum zkl_event_type)types[slot->kind],
                            .answer = reply->answer,
                            .number = reply->number,
                            .name = reply->name,
                            .children = reply->children,
                            .child_count = reply->child_count,
                            .czxid = reply->czxid,
                            .node_session = reply->node_session});
}

/* The first answer of the server, behind that to the credential: what zkl_client_open waits for. */
static void on_hello(struct zkl_core *core, const struct zkl_reply *reply)
{
    if (reply->answer == ZKL_ANSWER_LINK)
        return;
    core->hello_wanted = false;
    core->hello_answer = reply->answer;
    core->port->session(core->port, ZKL_SA_HELLO);
}

static void send_hello(struct zkl_core *core)
{
    struct zkl_request request = {.kind = ZKL_REQ_STAT, .path = "/"};
    if (core->hello_wanted)
        zkl_pending_send(core, &core->hello, &request);
}

static void answer(struct zkl_core *core, struct zkl_pending *slot, const struct zkl_reply *reply)
{
    if (is_quorum_write(slot->kind) && reply->answer == ZKL_ANSWER_OK) {
        zkl_session_proved(&core->session, slot->sent_boot_ns);
        if (core->hopeful > 0)
            feed_all(core, (struct zkl_event){.type = ZKL_EV_PROVED}, hopeful);
    }
    if (slot == &core->heartbeat)
        on_heartbeat(core, reply);
    else if (slot == &core->hello)
        on_hello(core, reply);
    else if (slot->watch)
        on_watch_answer(core, slot, reply);
    else if (slot->contender)
        on_contender_answer(core, slot, reply);
}

/* --- entry points ------------------------------------------------------- */

static void enter(struct zkl_core *core, struct zkl_time now)
{
    core->now = now;
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
            answer(core, slot, &(struct zkl_reply){.answer = refusal});
        if (!core->heartbeat_wanted || heartbeat_at(core, core->now) > core->now.mono_ns)
            break;
        send_heartbeat(core); /* refused, it is held off */
    }
}

void zkl_core_session_event(struct zkl_core *core, const struct zkl_session_event *event)
{
    enter(core, event->now);
    unsigned actions = zkl_session_step(&core->session, event, session_moved, core);
    /* An expiry says all that a lost link could, and more. */
    if ((actions & ZKL_SA_LINK_DOWN) && !(actions & (ZKL_SA_EXPIRE | ZKL_SA_FAIL)))
        feed_all(core, (struct zkl_event){.type = ZKL_EV_LINK_DOWN}, NULL);
    if (actions & (ZKL_SA_EXPIRE | ZKL_SA_FAIL)) {
        zkl_pending_clear(core);
        zkl_watch_clear(core);
        feed_all(core, (struct zkl_event){.type = ZKL_EV_EXPIRED}, NULL);
    }
    if (actions & ZKL_SA_FAIL)
        feed_all(core, (struct zkl_event){.type = ZKL_EV_STOP, .code = ZKL_EAUTH}, NULL);
    if (actions)
        core->port->session(core->port, actions);
    if (actions & ZKL_SA_LINK_UP) {
        core->heartbeat_hold_off = 0;
        send_hello(core);
        /* What is to go goes before anything new comes. */
        zkl_watch_retry(core);
        feed_all(core, (struct zkl_event){.type = ZKL_EV_LINK_UP}, is_leaving);
        feed_all(core, (struct zkl_event){.type = ZKL_EV_LINK_UP}, is_not_leaving);
    }
    settle(core);
}

void zkl_core_reply(struct zkl_core *core, struct zkl_time now, const struct zkl_reply *reply)
{
    enter(core, now);
    struct zkl_pending *slot = zkl_pending_take(core, reply->id);
    if (slot)
        answer(core, slot, reply);
    settle(core);
}

void zkl_core_fired(struct zkl_core *core, struct zkl_time now, uint64_t watch_id,
                    enum zkl_fired what)
{
    enter(core, now);
    struct zkl_watch *watch = zkl_watch_find(core, watch_id);
    if (watch && watch->type == ZKL_WATCH_CHILD && watch->request.id != 0)
        watch->armed = false; /* the list that is out was made after this and arms it again */
    else if (watch)
        disperse(core, watch, (struct zkl_event){.type = ZKL_EV_PRED_FIRED},
                 (struct zkl_event){.type = what == ZKL_FIRED_DELETED ? ZKL_EV_OWN_DELETED
                                                                      : ZKL_EV_OWN_CHANGED},
                 (struct zkl_event){.type = ZKL_EV_ROOT_FIRED});
    settle(core);
}

static bool window_ended(const struct zkl_core *core)
{
    return core->now.boot_ns >= zkl_session_window_end(&core->session);
}

void zkl_core_timer(struct zkl_core *core, struct zkl_time now)
{
    enter(core, now);
    if (now.mono_ns >= core->session.timer_mono_ns)
        zkl_core_session_event(core, &(struct zkl_session_event){.type = ZKL_SE_TIMER, .now = now});
    if (core->bounded > 0 && window_ended(core))
        feed_all(core, (struct zkl_event){.type = ZKL_EV_WINDOW_ENDED}, bounded);
    if (heartbeat_at(core, now) <= now.mono_ns)
        send_heartbeat(core);
    if (nudge_at(core) <= now.mono_ns) {
        struct zkl_request request = {.kind = ZKL_REQ_NUDGE, .path = "/"};
        zkl_pending_send(core, &core->nudge, &request);
        core->last_send_mono_ns = now.mono_ns; /* sent or refused: not again at once */
    }
    if (retry_at(core) <= now.mono_ns)
        retry(core);
    settle(core);
}

int64_t zkl_core_next_timeout(const struct zkl_core *core, struct zkl_time now)
{
    int64_t at = core->session.timer_mono_ns;
    int64_t beat = heartbeat_at(core, now);
    int64_t nudge = nudge_at(core);
    int64_t again = retry_at(core);
    at = beat < at ? beat : at;
    at = nudge < at ? nudge : at;
    at = again < at ? again : at;
    if (core->bounded > 0) {
        int64_t end = to_mono(now, zkl_session_window_end(&core->session));
        at = end < at ? end : at;
    }
    return at;
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

void zkl_core_acquire(struct zkl_core *core, struct zkl_time now, struct zkl_contender *contender,
                      const struct zkl_wish *wish)
{
    enter(core, now);
    *contender = (struct zkl_contender){.machine = {.state = ZKL_NEW,
                                                    .try_only = wish->try_only,
                                                    .try_sync = wish->try_sync,
                                                    .watch_own = wish->watch_own,
                                                    .root = wish->root,
                                                    .root_length = strlen(wish->root)},
                                        .data = wish->data};
    for (int i = 0; i < ZKL_SLOTS; i++)
        contender->slots[i].contender = contender;
    append_contender(core, contender);
    feed_type(core, contender, ZKL_EV_START);
    if (core->session.state == ZKL_SESSION_FAILED || core->session.state == ZKL_SESSION_CLOSED)
        feed(core, contender,
             (struct zkl_event){.type = ZKL_EV_STOP,
                                .code = core->session.state == ZKL_SESSION_FAILED ? ZKL_EAUTH
                                                                                  : ZKL_ECLOSED});
    settle(core);
}

void zkl_core_stop(struct zkl_core *core, struct zkl_time now, struct zkl_contender *contender,
                   int code)
{
    enter(core, now);
    feed(core, contender, (struct zkl_event){.type = ZKL_EV_STOP, .code = code});
    settle(core);
}

void zkl_core_release(struct zkl_core *core, struct zkl_time now, struct zkl_contender *contender)
{
    enter(core, now);
    feed_type(core, contender, ZKL_EV_RELEASE);
    settle(core);
}

void zkl_core_abandon(struct zkl_core *core, struct zkl_time now, struct zkl_contender *contender,
                      int reason)
{
    enter(core, now);
    feed(core, contender, (struct zkl_event){.type = ZKL_EV_ABANDON, .reason = reason});
    settle(core);
}

void zkl_core_close(struct zkl_core *core, struct zkl_time now)
{
    enter(core, now);
    feed_all(core, (struct zkl_event){.type = ZKL_EV_ABANDON, .reason = ZKL_REASON_CLOSED},
             is_held);
    feed_all(core, (struct zkl_event){.type = ZKL_EV_STOP, .code = ZKL_ECLOSED}, NULL);
    zkl_core_session_event(core, &(struct zkl_session_event){.type = ZKL_SE_CLOSE, .now = now});
    /* The session is about to end, and every node with it. */
    zkl_pending_clear(core);
    zkl_watch_clear(core);
    feed_all(core, (struct zkl_event){.type = ZKL_EV_EXPIRED}, NULL);
    settle(core);
}
