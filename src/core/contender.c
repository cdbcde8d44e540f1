/* SPDX-License-Identifier: Apache-2.0
 *
 * The queue protocol is the lock recipe of the ZooKeeper documentation with Curator's names: an
 * ephemeral sequential child for each contender, the smallest number holds, each waiter watches the child
 * just before its own. What is added: create and list in one round trip, recovery of a create whose answer
 * was lost, the validity window, the renewal of an exhausted counter, and a way out of every state. */
#include "contender.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include <zklock/zklock.h>

#define BIT(state) (1u << (state))

/* state -> the states it may be followed by. ENDED and LEAVING are listed where they can really come. */
static const unsigned allowed[ZKL_CONTENDER_STATES] = {
    [ZKL_NEW] = BIT(ZKL_PARKED) | BIT(ZKL_LOOKING) | BIT(ZKL_QUEUEING),
    [ZKL_PARKED] = BIT(ZKL_LOOKING) | BIT(ZKL_QUEUEING) | BIT(ZKL_ENDED),
    [ZKL_LOOKING] = BIT(ZKL_PARKED) | BIT(ZKL_QUEUEING) | BIT(ZKL_ENDED),
    [ZKL_MAKING] = BIT(ZKL_PARKED) | BIT(ZKL_QUEUEING) | BIT(ZKL_ENDED),
    [ZKL_QUEUEING] = BIT(ZKL_PARKED) | BIT(ZKL_QUEUEING) | BIT(ZKL_MAKING) | BIT(ZKL_RECOVERING) |
                     BIT(ZKL_LISTING) | BIT(ZKL_WAITING) | BIT(ZKL_CONFIRMING) | BIT(ZKL_EXHAUSTED) |
                     BIT(ZKL_HOLDING) | BIT(ZKL_LEAVING) | BIT(ZKL_ENDED),
    [ZKL_RECOVERING] = BIT(ZKL_PARKED) | BIT(ZKL_QUEUEING) | BIT(ZKL_LISTING) | BIT(ZKL_EXHAUSTED) |
                       BIT(ZKL_LEAVING),
    [ZKL_LISTING] = BIT(ZKL_PARKED) | BIT(ZKL_QUEUEING) | BIT(ZKL_WAITING) | BIT(ZKL_CONFIRMING) |
                    BIT(ZKL_HOLDING) | BIT(ZKL_LEAVING),
    [ZKL_WAITING] = BIT(ZKL_PARKED) | BIT(ZKL_QUEUEING) | BIT(ZKL_LISTING) | BIT(ZKL_LEAVING),
    [ZKL_CONFIRMING] = BIT(ZKL_PARKED) | BIT(ZKL_QUEUEING) | BIT(ZKL_HOLDING) | BIT(ZKL_LISTING) |
                       BIT(ZKL_LEAVING),
    [ZKL_EXHAUSTED] = BIT(ZKL_PARKED) | BIT(ZKL_QUEUEING) | BIT(ZKL_LEAVING) | BIT(ZKL_ENDED),
    [ZKL_HOLDING] = BIT(ZKL_LOSTHOLD) | BIT(ZKL_RELEASING) | BIT(ZKL_LEAVING),
    [ZKL_LOSTHOLD] = BIT(ZKL_ENDED),
    [ZKL_RELEASING] = BIT(ZKL_LEAVING) | BIT(ZKL_ENDED),
    [ZKL_LEAVING] = BIT(ZKL_ENDED),
};

struct step {
    struct zkl_contender_machine *m;
    const struct zkl_event *ev;
    struct zkl_actions *out;
    const struct zkl_tracer *tracer;
};

const char *zkl_contender_state_name(enum zkl_contender_state state)
{
    static const char *const names[ZKL_CONTENDER_STATES] = {
        [ZKL_NEW] = "NEW",
        [ZKL_PARKED] = "PARKED",
        [ZKL_LOOKING] = "LOOKING",
        [ZKL_MAKING] = "MAKING",
        [ZKL_QUEUEING] = "QUEUEING",
        [ZKL_RECOVERING] = "RECOVERING",
        [ZKL_LISTING] = "LISTING",
        [ZKL_WAITING] = "WAITING",
        [ZKL_CONFIRMING] = "CONFIRMING",
        [ZKL_EXHAUSTED] = "EXHAUSTED",
        [ZKL_HOLDING] = "HOLDING",
        [ZKL_LOSTHOLD] = "LOSTHOLD",
        [ZKL_RELEASING] = "RELEASING",
        [ZKL_LEAVING] = "LEAVING",
        [ZKL_ENDED] = "ENDED",
    };
    return names[state];
}

const char *zkl_event_name(enum zkl_event_type type)
{
    static const char *const names[ZKL_EVENT_TYPES] = {
        [ZKL_EV_START] = "start",
        [ZKL_EV_LINK_UP] = "link up",
        [ZKL_EV_LINK_DOWN] = "link down",
        [ZKL_EV_EXPIRED] = "expired",
        [ZKL_EV_MADE] = "made",
        [ZKL_EV_CREATED] = "created",
        [ZKL_EV_LISTED] = "listed",
        [ZKL_EV_ROOTED] = "rooted",
        [ZKL_EV_STATTED] = "statted",
        [ZKL_EV_RENEWED] = "renewed",
        [ZKL_EV_DELETED] = "deleted",
        [ZKL_EV_WATCHED] = "watched",
        [ZKL_EV_PRED_FIRED] = "predecessor fired",
        [ZKL_EV_OWN_DELETED] = "own node deleted",
        [ZKL_EV_OWN_CHANGED] = "own node changed",
        [ZKL_EV_ROOT_FIRED] = "root fired",
        [ZKL_EV_NODE_GONE] = "node gone",
        [ZKL_EV_PROVED] = "proved",
        [ZKL_EV_WINDOW_ENDED] = "window ended",
        [ZKL_EV_STOP] = "stop",
        [ZKL_EV_RELEASE] = "release",
        [ZKL_EV_ABANDON] = "abandon",
    };
    return names[type];
}

bool zkl_contender_may_move(enum zkl_contender_state from, enum zkl_contender_state to)
{
    return (allowed[from] & BIT(to)) != 0;
}

bool zkl_contender_needs_window(const struct zkl_contender_machine *m)
{
    return m->state == ZKL_HOLDING || m->state == ZKL_CONFIRMING ||
           (m->state == ZKL_WAITING && m->pred_is_next);
}

bool zkl_contender_waits(const struct zkl_contender_machine *m)
{
    bool out = m->create_out || m->list_out || m->delete_out;
    return m->state == ZKL_WAITING || (m->state == ZKL_EXHAUSTED && !m->on_server) ||
           (m->state == ZKL_LEAVING && !out);
}

/* --- the only place that assigns a state -------------------------------------------------------- */

static void move(struct step *s, enum zkl_contender_state to, const char *why)
{
    enum zkl_contender_state from = s->m->state;
    assert(zkl_contender_may_move(from, to));
    s->m->state = to;
    if (s->tracer && s->tracer->moved)
        s->tracer->moved(s->tracer->arg, s->m, from, why);
}

static struct zkl_action *emit(struct step *s, enum zkl_action_type type)
{
    assert(s->out->count < ZKL_ACTIONS_MAX);
    struct zkl_action *action = &s->out->list[s->out->count++];
    *action = (struct zkl_action){.type = type};
    return action;
}

static void emit_code(struct step *s, enum zkl_action_type type, int code, const char *detail)
{
    struct zkl_action *action = emit(s, type);
    action->code = code;
    action->detail = detail;
}

static void emit_reason(struct step *s, enum zkl_action_type type, int state, int reason)
{
    struct zkl_action *action = emit(s, type);
    action->state = state;
    action->reason = reason;
}

static bool window_open(const struct zkl_event *ev)
{
    return ev->now.boot_ns < ev->window_end_boot;
}

/* --- getting a place ---------------------------------------------------------------------------- */

static void forget_node(struct step *s)
{
    s->m->on_server = false;
    s->m->maybe_on_server = false;
    s->m->pred_is_next = false;
    s->m->node[0] = '\0';
    s->m->czxid = 0;
}

/* Ask for a new place at the end of the queue. create and list go out together: ZooKeeper answers one
 * client in order, so the list shows the node that the create made. */
static void enqueue(struct step *s, const char *why)
{
    forget_node(s);
    if (!s->ev->connected) {
        move(s, ZKL_PARKED, why);
        return;
    }
    move(s, ZKL_QUEUEING, why);
    emit(s, ZKL_DO_CREATE);
    emit(s, ZKL_DO_LIST);
    s->m->create_out = s->m->list_out = true;
}

static void forget_list(struct step *s)
{
    if (s->m->list_out)
        emit(s, ZKL_DO_FORGET_LIST);
    s->m->list_out = false;
}

/* Our node vanished while we wanted it: watches go, and we start over with a new GUID. */
static void requeue(struct step *s, const char *why)
{
    forget_list(s);
    emit(s, ZKL_DO_UNWATCH);
    enqueue(s, why);
}

static void begin(struct step *s, const char *why)
{
    if (!s->ev->connected) {
        if (s->m->state != ZKL_PARKED)
            move(s, ZKL_PARKED, why);
        return;
    }
    if (!s->m->try_only) {
        enqueue(s, why);
        return;
    }
    /* A try reads first: a busy lock then costs one read and no write. */
    move(s, ZKL_LOOKING, why);
    if (s->m->try_sync)
        emit(s, ZKL_DO_SYNC);
    emit(s, ZKL_DO_LIST);
    s->m->list_out = true;
}

/* --- leaving ------------------------------------------------------------------------------------ */

static void send_delete(struct step *s)
{
    if (s->ev->connected && !s->m->delete_out) {
        s->m->delete_out = true;
        emit(s, ZKL_DO_DELETE);
    }
}

static void look_for_leftover(struct step *s)
{
    /* The server we are now connected to may lag behind the one that carried the create out. */
    emit(s, ZKL_DO_SYNC);
    emit(s, ZKL_DO_LIST);
    s->m->list_out = true;
}

static void end(struct step *s, const char *why)
{
    forget_list(s);
    emit(s, ZKL_DO_UNWATCH);
    move(s, ZKL_ENDED, why);
    emit(s, ZKL_DO_END);
}

/* The owner has its answer; what may be on the server is the janitor's from here on. */
static void leave(struct step *s, const char *why)
{
    if (s->m->on_server)
        forget_list(s); /* else the list that is out may tell where the node is */
    if (!s->m->create_out && !s->m->on_server && !s->m->maybe_on_server) {
        end(s, why);
        return;
    }
    emit(s, ZKL_DO_UNWATCH_OTHERS);
    move(s, ZKL_LEAVING, why);
    if (s->m->on_server)
        send_delete(s);
    else if (!s->m->create_out && !s->m->list_out && s->ev->connected)
        look_for_leftover(s);
}

static void fail(struct step *s, int code, const char *detail, const char *why)
{
    emit_code(s, ZKL_DO_FAIL, code, detail);
    leave(s, why);
}

static void fail_denied(struct step *s, const char *detail)
{
    fail(s, ZKL_EACCES, detail, "denied");
}

/* An answer that nothing else accounts for. */
static void fail_odd(struct step *s, const char *what)
{
    if (s->ev->answer == ZKL_ANSWER_NOMEM)
        fail(s, ZKL_ENOMEM, what, "no memory");
    else
        fail(s, ZKL_EPROTO, what, "odd answer");
}

/* --- the predicate and its consequences --------------------------------------------------------- */

static void hold(struct step *s, const char *why)
{
    s->m->suspect = false;
    move(s, ZKL_HOLDING, why);
    emit(s, ZKL_DO_GRANT);
    if (s->m->watch_own)
        emit(s, ZKL_DO_WATCH_OWN);
}

static void grant(struct step *s, const char *why)
{
    s->m->pred_is_next = false;
    if (window_open(s->ev)) {
        hold(s, why);
        return;
    }
    /* First in the queue, but of a session that nobody vouches for just now. */
    move(s, ZKL_CONFIRMING, why);
    emit(s, ZKL_DO_HEARTBEAT);
}

static void wait_behind(struct step *s, const struct zkl_look *look)
{
    s->m->pred_is_next = look->before == 1;
    move(s, ZKL_WAITING, look->before == 1 ? "next in line" : "behind others");
    emit(s, ZKL_DO_WATCH_PRED)->name = look->predecessor;
    /* Our own node is watched too: a waiter whose node was deleted learns of it at once, not when its
     * predecessor leaves. */
    emit(s, ZKL_DO_WATCH_OWN);
}

static void decide(struct step *s)
{
    struct zkl_look look =
        zkl_queue_look(s->ev->children, s->ev->child_count, s->m->node);
    if (!look.present)
        requeue(s, "own node not in the list");
    else if (!look.predecessor)
        grant(s, "first");
    else if (s->m->try_only)
        fail(s, ZKL_EBUSY, NULL, "somebody was faster");
    else
        wait_behind(s, &look);
}

static void list_again(struct step *s, const char *why)
{
    if (s->m->state != ZKL_LISTING)
        move(s, ZKL_LISTING, why);
    if (s->ev->connected && !s->m->list_out) {
        emit(s, ZKL_DO_LIST);
        s->m->list_out = true;
    }
}

/* --- the exhausted counter ---------------------------------------------------------------------- */

static void look_at_root(struct step *s)
{
    if (s->ev->connected && !s->m->list_out) {
        emit(s, ZKL_DO_LIST_ROOT);
        s->m->list_out = true;
    }
}

/* Our number is one that everybody may get: never granted. Withdraw and wait for a new root. */
static void exhaust(struct step *s, const char *why)
{
    forget_list(s);
    move(s, ZKL_EXHAUSTED, why);
    if (s->m->on_server) {
        s->m->exhausted_at = s->m->czxid;
        send_delete(s);
    } else {
        look_at_root(s);
    }
}

static void fail_blocked(struct step *s, const char *detail)
{
    fail(s, ZKL_EEXHAUSTED, detail, "root can't be renewed");
}

static void judge_root(struct step *s)
{
    const struct zkl_event *ev = s->ev;
    struct zkl_look look = zkl_queue_look(ev->children, ev->child_count, NULL);
    if (s->m->exhausted_at == 0) {
        /* The create failed without a number of ours to date it. Try once more under a root whose birth
         * is known; if that fails too, this root is the exhausted one. */
        s->m->exhausted_at = ev->czxid;
        requeue(s, "dating the root");
    } else if (ev->czxid > s->m->exhausted_at) {
        s->m->exhausted_at = 0;
        requeue(s, "root is new");
    } else if (look.contenders == 0 && look.foreign) {
        fail_blocked(s, look.foreign);
    } else if (ev->child_count > 0 && s->m->try_only) {
        fail(s, ZKL_EBUSY, NULL, "path waits for its renewal");
    } else if (ev->child_count == 0 && !s->m->renew_out) {
        s->m->renew_out = true;
        emit(s, ZKL_DO_RENEW);
    } /* else: contenders leave, the child watch tells */
}

static void on_rooted(struct step *s)
{
    switch (s->ev->answer) {
    case ZKL_ANSWER_OK:
        judge_root(s);
        break;
    case ZKL_ANSWER_NONODE:
        s->m->exhausted_at = 0;
        requeue(s, "root is gone");
        break;
    case ZKL_ANSWER_LINK:
        break; /* again with the link */
    case ZKL_ANSWER_NOAUTH:
        fail_denied(s, "READ");
        break;
    case ZKL_ANSWER_EXISTS:
    case ZKL_ANSWER_NOTEMPTY:
    case ZKL_ANSWER_UNIMPLEMENTED:
    case ZKL_ANSWER_NOWATCHER:
    case ZKL_ANSWER_NOMEM:
    case ZKL_ANSWER_OTHER:
        fail_odd(s, "listing the path");
        break;
    }
}

static void on_renewed(struct step *s)
{
    s->m->renew_out = false;
    if (s->ev->answer == ZKL_ANSWER_NOAUTH)
        fail_blocked(s, "its parent's ACL (DELETE and CREATE are needed)");
    else if (s->ev->answer == ZKL_ANSWER_NOMEM)
        fail(s, ZKL_ENOMEM, "renewing the path", "no memory");
    else
        look_at_root(s); /* whatever came of it, the root tells */
}

/* --- one function for each state ---------------------------------------------------------------- */

static void in_parked(struct step *s)
{
    if (s->ev->type == ZKL_EV_LINK_UP)
        begin(s, "link up");
    else if (s->ev->type == ZKL_EV_STOP)
        fail(s, s->ev->code, NULL, "stopped");
}

static void in_looking(struct step *s)
{
    const struct zkl_event *ev = s->ev;
    if (ev->type == ZKL_EV_STOP) {
        fail(s, ev->code, NULL, "stopped");
    } else if (ev->type == ZKL_EV_EXPIRED) {
        s->m->list_out = false;
        move(s, ZKL_PARKED, "expired");
    } else if (ev->type == ZKL_EV_LISTED && ev->answer == ZKL_ANSWER_LINK) {
        move(s, ZKL_PARKED, "no answer");
    } else if (ev->type == ZKL_EV_LISTED && ev->answer == ZKL_ANSWER_NOAUTH) {
        fail_denied(s, "READ");
    } else if (ev->type == ZKL_EV_LISTED && ev->answer == ZKL_ANSWER_OK &&
               zkl_queue_look(ev->children, ev->child_count, NULL).contenders > 0) {
        fail(s, ZKL_EBUSY, NULL, "somebody is there");
    } else if (ev->type == ZKL_EV_LISTED &&
               (ev->answer == ZKL_ANSWER_OK || ev->answer == ZKL_ANSWER_NONODE)) {
        enqueue(s, "nobody is there");
    } else if (ev->type == ZKL_EV_LISTED) {
        fail_odd(s, "listing the path");
    }
}

/* Length of the root's prefix one component shorter than length; 0: there is none. */
static size_t parent_length(const struct zkl_contender_machine *m, size_t length)
{
    while (length > 0 && m->root[length - 1] != '/')
        length--;
    return length > 0 ? length - 1 : 0;
}

static size_t child_length(const struct zkl_contender_machine *m, size_t length)
{
    length++;
    while (length < m->root_length && m->root[length] != '/')
        length++;
    return length;
}

static void make(struct step *s, size_t length)
{
    s->m->make_length = length;
    emit(s, ZKL_DO_MAKE);
}

static void made_one(struct step *s)
{
    if (s->m->make_length == s->m->root_length)
        enqueue(s, "root made");
    else
        make(s, child_length(s->m, s->m->make_length));
}

static void on_made(struct step *s)
{
    size_t above = parent_length(s->m, s->m->make_length);
    switch (s->ev->answer) {
    case ZKL_ANSWER_OK:
    case ZKL_ANSWER_EXISTS:
        made_one(s);
        break;
    case ZKL_ANSWER_NONODE:
        if (above > 0)
            make(s, above);
        else
            fail(s, ZKL_ENOCHROOT, NULL, "no chroot");
        break;
    case ZKL_ANSWER_UNIMPLEMENTED:
        if (s->m->persistent) {
            fail_odd(s, "making the path");
            break;
        }
        s->m->persistent = true;
        make(s, s->m->make_length);
        break;
    case ZKL_ANSWER_LINK:
        move(s, ZKL_PARKED, "no answer");
        break;
    case ZKL_ANSWER_NOAUTH:
        fail_denied(s, "CREATE on a parent");
        break;
    case ZKL_ANSWER_NOTEMPTY:
    case ZKL_ANSWER_NOWATCHER:
    case ZKL_ANSWER_NOMEM:
    case ZKL_ANSWER_OTHER:
        fail_odd(s, "making the path");
        break;
    }
}

static void in_making(struct step *s)
{
    if (s->ev->type == ZKL_EV_MADE)
        on_made(s);
    else if (s->ev->type == ZKL_EV_EXPIRED)
        move(s, ZKL_PARKED, "expired");
    else if (s->ev->type == ZKL_EV_STOP)
        fail(s, s->ev->code, NULL, "stopped");
}

static void know_node(struct step *s, const char *name, int64_t czxid)
{
    snprintf(s->m->node, sizeof s->m->node, "%s", name);
    s->m->czxid = czxid;
    s->m->on_server = true;
    s->m->maybe_on_server = false;
}

static bool node_is_exhausted(const struct zkl_contender_machine *m)
{
    int32_t sequence;
    return !zkl_name_parse(m->node, &sequence) || zkl_sequence_exhausted(sequence);
}

static void on_create_refused(struct step *s)
{
    switch (s->ev->answer) {
    case ZKL_ANSWER_NONODE:
        forget_list(s);
        move(s, ZKL_MAKING, "no root");
        make(s, s->m->root_length);
        break;
    case ZKL_ANSWER_EXISTS:
        exhaust(s, "counter stuck");
        break;
    case ZKL_ANSWER_LINK:
        forget_list(s);
        s->m->maybe_on_server = true;
        move(s, ZKL_RECOVERING, "create unanswered");
        break;
    case ZKL_ANSWER_NOAUTH:
        fail_denied(s, "CREATE");
        break;
    case ZKL_ANSWER_OK:
    case ZKL_ANSWER_NOTEMPTY:
    case ZKL_ANSWER_UNIMPLEMENTED:
    case ZKL_ANSWER_NOWATCHER:
    case ZKL_ANSWER_NOMEM:
    case ZKL_ANSWER_OTHER:
        fail_odd(s, "creating the node");
        break;
    }
}

static void on_created(struct step *s)
{
    s->m->create_out = false;
    if (s->ev->answer != ZKL_ANSWER_OK) {
        on_create_refused(s);
        return;
    }
    know_node(s, s->ev->name, s->ev->czxid);
    if (node_is_exhausted(s->m))
        exhaust(s, "number exhausted");
    else
        s->m->exhausted_at = 0; /* the list's answer follows */
    if (s->m->state == ZKL_QUEUEING && !s->m->list_out)
        list_again(s, "list could not be sent");
}

static void on_listed(struct step *s)
{
    switch (s->ev->answer) {
    case ZKL_ANSWER_OK:
        decide(s);
        break;
    case ZKL_ANSWER_LINK:
        if (s->m->state != ZKL_LISTING && !s->m->create_out)
            move(s, ZKL_LISTING, "list unanswered");
        break;
    case ZKL_ANSWER_NONODE:
        requeue(s, "root is gone");
        break;
    case ZKL_ANSWER_NOAUTH:
        fail_denied(s, "READ");
        break;
    case ZKL_ANSWER_EXISTS:
    case ZKL_ANSWER_NOTEMPTY:
    case ZKL_ANSWER_UNIMPLEMENTED:
    case ZKL_ANSWER_NOWATCHER:
    case ZKL_ANSWER_NOMEM:
    case ZKL_ANSWER_OTHER:
        fail_odd(s, "listing the path");
        break;
    }
}

/* What every state with a wish for the lock and a session does. Returns true if the event is dealt with. */
static bool common_wish(struct step *s)
{
    switch ((int)s->ev->type) {
    case ZKL_EV_STOP:
        fail(s, s->ev->code, NULL, "stopped");
        return true;
    case ZKL_EV_EXPIRED:
        /* Whatever was there is gone with the session, whatever is out is forgotten. */
        s->m->create_out = s->m->list_out = s->m->delete_out = false;
        s->m->stat_out = s->m->renew_out = false;
        s->m->exhausted_at = 0;
        forget_node(s);
        emit(s, ZKL_DO_UNWATCH);
        move(s, ZKL_PARKED, "expired");
        return true;
    case ZKL_EV_OWN_DELETED:
    case ZKL_EV_NODE_GONE:
        if (!s->m->on_server || s->m->state == ZKL_EXHAUSTED)
            return true;
        requeue(s, "own node deleted");
        return true;
    case ZKL_EV_OWN_CHANGED:
        if (s->m->state == ZKL_WAITING)
            emit(s, ZKL_DO_WATCH_OWN);
        return true;
    default:
        return false;
    }
}

static void in_queueing(struct step *s)
{
    if (s->ev->type == ZKL_EV_CREATED)
        on_created(s);
    else if (s->ev->type == ZKL_EV_LISTED)
        on_listed(s);
    else
        common_wish(s);
}

static void on_found(struct step *s, const char *name)
{
    if (name) {
        /* Ours by GUID; whether of this session, the Stat tells. */
        know_node(s, name, 0);
        s->m->stat_out = true;
        emit(s, ZKL_DO_STAT);
    } else {
        enqueue(s, "create was not carried out");
    }
}

static void adopt(struct step *s)
{
    s->m->czxid = s->ev->czxid;
    if (node_is_exhausted(s->m))
        exhaust(s, "number exhausted");
    else
        list_again(s, "adopted");
}

static void in_recovering(struct step *s)
{
    const struct zkl_event *ev = s->ev;
    if (ev->type == ZKL_EV_STATTED)
        s->m->stat_out = false;
    if (ev->type == ZKL_EV_LINK_UP) {
        if (!s->m->list_out && !s->m->stat_out)
            look_for_leftover(s);
    } else if (ev->type == ZKL_EV_LISTED && ev->answer == ZKL_ANSWER_OK) {
        on_found(s, zkl_queue_find_guid(ev->children, ev->child_count, s->m->guid));
    } else if (ev->type == ZKL_EV_LISTED && ev->answer == ZKL_ANSWER_NONODE) {
        on_found(s, NULL);
    } else if (ev->type == ZKL_EV_LISTED && ev->answer == ZKL_ANSWER_NOAUTH) {
        fail_denied(s, "READ");
    } else if (ev->type == ZKL_EV_STATTED && ev->answer == ZKL_ANSWER_OK) {
        /* A node of an old session may still be listed; it will go by itself, and granting on it would
         * give the lock twice (CURATOR-498, CURATOR-604). */
        if (ev->node_session == ev->session)
            adopt(s);
        else
            enqueue(s, "node of an old session");
    } else if (ev->type == ZKL_EV_STATTED && ev->answer == ZKL_ANSWER_NONODE) {
        enqueue(s, "node is gone");
    } else if ((ev->type == ZKL_EV_LISTED || ev->type == ZKL_EV_STATTED) &&
               ev->answer != ZKL_ANSWER_LINK) {
        fail_odd(s, "looking for the node");
    } else if (ev->type == ZKL_EV_STATTED) {
        s->m->on_server = false; /* no answer: look again with the link */
        s->m->maybe_on_server = true;
    } else {
        common_wish(s);
    }
}

static void in_listing(struct step *s)
{
    if (s->ev->type == ZKL_EV_LISTED)
        on_listed(s);
    else if (s->ev->type == ZKL_EV_LINK_UP)
        list_again(s, "link up");
    else
        common_wish(s);
}

static void in_waiting(struct step *s)
{
    const struct zkl_event *ev = s->ev;
    if (ev->type == ZKL_EV_PRED_FIRED)
        list_again(s, "predecessor fired");
    else if (ev->type == ZKL_EV_LINK_UP)
        list_again(s, "link up"); /* what a watch tells after a reconnect is not the whole truth */
    else if (ev->type == ZKL_EV_WATCHED && ev->answer == ZKL_ANSWER_NONODE)
        list_again(s, "predecessor gone before the watch");
    else if (ev->type == ZKL_EV_WATCHED && ev->answer == ZKL_ANSWER_NOAUTH)
        fail_denied(s, "READ on the predecessor's node");
    else if (ev->type == ZKL_EV_WATCHED && ev->answer != ZKL_ANSWER_OK &&
             ev->answer != ZKL_ANSWER_LINK)
        fail_odd(s, "watching the predecessor");
    else
        common_wish(s);
}

static void in_confirming(struct step *s)
{
    if (s->ev->type == ZKL_EV_PROVED && window_open(s->ev))
        hold(s, "proved");
    else if (s->ev->type == ZKL_EV_LINK_UP)
        list_again(s, "link up");
    else
        common_wish(s);
}

static void on_withdrawn(struct step *s)
{
    s->m->delete_out = false;
    if (s->ev->answer == ZKL_ANSWER_NOAUTH) {
        s->m->on_server = false; /* it can't be deleted by us; nothing to hand to the janitor */
        fail_blocked(s, "our own node there, which the path's ACL forbids to delete");
    } else if (s->ev->answer == ZKL_ANSWER_NOMEM) {
        fail(s, ZKL_ENOMEM, "withdrawing the node", "no memory");
    } else if (s->ev->answer != ZKL_ANSWER_LINK) {
        s->m->on_server = false;
        look_at_root(s);
    }
}

static void in_exhausted(struct step *s)
{
    const struct zkl_event *ev = s->ev;
    if (ev->type == ZKL_EV_DELETED)
        on_withdrawn(s);
    else if (ev->type == ZKL_EV_ROOTED)
        on_rooted(s);
    else if (ev->type == ZKL_EV_RENEWED)
        on_renewed(s);
    else if (ev->type == ZKL_EV_ROOT_FIRED)
        look_at_root(s);
    else if (ev->type == ZKL_EV_LINK_UP && s->m->on_server)
        send_delete(s);
    else if (ev->type == ZKL_EV_LINK_UP)
        look_at_root(s);
    else
        common_wish(s);
}

static void lose(struct step *s, int reason, const char *why)
{
    s->m->on_server = false;
    emit(s, ZKL_DO_UNWATCH);
    move(s, ZKL_LOSTHOLD, why);
    emit_reason(s, ZKL_DO_LOST, ZKL_LOST, reason);
}

static void suspect(struct step *s, int reason)
{
    if (!s->m->suspect)
        emit_reason(s, ZKL_DO_TELL, ZKL_SUSPECT, reason);
    s->m->suspect = true;
}

static void release(struct step *s)
{
    if (!s->ev->connected) {
        emit_code(s, ZKL_DO_RELEASED, ZKL_EUNCONFIRMED, "the link is down");
        leave(s, "unlocked without a link");
        return;
    }
    move(s, ZKL_RELEASING, "unlocked");
    send_delete(s);
}

static void in_holding(struct step *s)
{
    switch (s->ev->type) {
    case ZKL_EV_EXPIRED:
        lose(s, ZKL_REASON_EXPIRED, "expired");
        break;
    case ZKL_EV_OWN_DELETED:
    case ZKL_EV_NODE_GONE:
        lose(s, ZKL_REASON_NODE_DELETED, "node deleted");
        break;
    case ZKL_EV_RELEASE:
        release(s);
        break;
    case ZKL_EV_ABANDON:
        if (s->ev->reason == ZKL_REASON_CLOSED) {
            lose(s, ZKL_REASON_CLOSED, "closed"); /* the owner is there and will unlock */
            break;
        }
        emit_reason(s, ZKL_DO_LOST, ZKL_LOST, s->ev->reason);
        leave(s, "abandoned");
        break;
    case ZKL_EV_LINK_DOWN:
        suspect(s, ZKL_REASON_LINK);
        break;
    case ZKL_EV_WINDOW_ENDED:
        suspect(s, ZKL_REASON_WINDOW);
        break;
    case ZKL_EV_LINK_UP:
        emit(s, ZKL_DO_HEARTBEAT);
        if (s->m->watch_own)
            emit(s, ZKL_DO_WATCH_OWN); /* its arming may have been cut off */
        break;
    case ZKL_EV_PROVED:
        if (s->m->suspect && window_open(s->ev)) {
            s->m->suspect = false;
            emit_reason(s, ZKL_DO_TELL, ZKL_HELD, ZKL_REASON_NONE);
        }
        break;
    case ZKL_EV_OWN_CHANGED:
        if (s->m->watch_own)
            emit(s, ZKL_DO_WATCH_OWN);
        break;
    case ZKL_EV_START:
    case ZKL_EV_MADE:
    case ZKL_EV_CREATED:
    case ZKL_EV_LISTED:
    case ZKL_EV_ROOTED:
    case ZKL_EV_STATTED:
    case ZKL_EV_RENEWED:
    case ZKL_EV_DELETED:
    case ZKL_EV_WATCHED:
    case ZKL_EV_PRED_FIRED:
    case ZKL_EV_ROOT_FIRED:
    case ZKL_EV_STOP:
    case ZKL_EVENT_TYPES:
        break;
    }
}

static void in_losthold(struct step *s)
{
    if (s->ev->type == ZKL_EV_RELEASE)
        emit_code(s, ZKL_DO_RELEASED, ZKL_ELOST, NULL);
    if (s->ev->type == ZKL_EV_RELEASE || s->ev->type == ZKL_EV_ABANDON)
        end(s, "lost hold given back");
}

static void released(struct step *s, int code, const char *detail, const char *why)
{
    emit_code(s, ZKL_DO_RELEASED, code, detail);
    end(s, why);
}

static void unconfirmed(struct step *s, const char *why)
{
    emit_code(s, ZKL_DO_RELEASED, ZKL_EUNCONFIRMED, why);
    leave(s, why);
}

static void on_unlock_answered(struct step *s)
{
    s->m->delete_out = false;
    switch (s->ev->answer) {
    case ZKL_ANSWER_OK:
        s->m->on_server = false;
        released(s, ZKL_OK, NULL, "deleted");
        break;
    case ZKL_ANSWER_NONODE:
        /* Somebody deleted it before us: the hold had ended without our knowing. */
        s->m->on_server = false;
        emit_reason(s, ZKL_DO_LOST, ZKL_LOST, ZKL_REASON_NODE_DELETED);
        released(s, ZKL_ELOST, NULL, "was deleted");
        break;
    case ZKL_ANSWER_NOAUTH:
        released(s, ZKL_EACCES, "DELETE", "delete denied");
        break;
    case ZKL_ANSWER_LINK:
        unconfirmed(s, "no answer came");
        break;
    case ZKL_ANSWER_EXISTS:
    case ZKL_ANSWER_NOTEMPTY:
    case ZKL_ANSWER_UNIMPLEMENTED:
    case ZKL_ANSWER_NOWATCHER:
    case ZKL_ANSWER_NOMEM:
    case ZKL_ANSWER_OTHER:
        unconfirmed(s, "the delete failed");
        break;
    }
}

static void in_releasing(struct step *s)
{
    if (s->ev->type == ZKL_EV_DELETED) {
        on_unlock_answered(s);
    } else if (s->ev->type == ZKL_EV_LINK_DOWN) {
        unconfirmed(s, "the link broke");
    } else if (s->ev->type == ZKL_EV_WINDOW_ENDED) {
        unconfirmed(s, "the window ended");
    } else if (s->ev->type == ZKL_EV_ABANDON || s->ev->type == ZKL_EV_STOP) {
        unconfirmed(s, "the client was closed");
    } else if (s->ev->type == ZKL_EV_EXPIRED) {
        s->m->on_server = false;
        emit_reason(s, ZKL_DO_LOST, ZKL_LOST, ZKL_REASON_EXPIRED);
        released(s, ZKL_ELOST, NULL, "expired");
    }
}

/* The janitor. Every branch either ends or waits for an answer or for the link. */
static void on_leftover_listed(struct step *s)
{
    const struct zkl_event *ev = s->ev;
    const char *found = NULL;
    if (ev->answer == ZKL_ANSWER_LINK || s->m->create_out || s->m->on_server)
        return;
    if (ev->answer == ZKL_ANSWER_OK)
        found = zkl_queue_find_guid(ev->children, ev->child_count, s->m->guid);
    if (!found) {
        end(s, ev->answer == ZKL_ANSWER_OK ? "nothing was left" : "can't be looked for");
        return;
    }
    know_node(s, found, 0);
    send_delete(s);
}

static void in_leaving(struct step *s)
{
    const struct zkl_event *ev = s->ev;
    if (ev->type == ZKL_EV_EXPIRED) {
        s->m->list_out = false;
        end(s, "expired");
    } else if (ev->type == ZKL_EV_CREATED) {
        s->m->create_out = false;
        if (ev->answer == ZKL_ANSWER_OK) {
            know_node(s, ev->name, ev->czxid);
            send_delete(s);
        } else if (ev->answer == ZKL_ANSWER_LINK) {
            s->m->maybe_on_server = true;
        } else {
            end(s, "never created");
        }
    } else if (ev->type == ZKL_EV_DELETED) {
        s->m->delete_out = false;
        if (ev->answer != ZKL_ANSWER_LINK && ev->answer != ZKL_ANSWER_NOMEM)
            end(s, ev->answer == ZKL_ANSWER_NOAUTH ? "delete denied" : "deleted");
    } else if (ev->type == ZKL_EV_LISTED) {
        on_leftover_listed(s);
    } else if (ev->type == ZKL_EV_LINK_UP && s->m->on_server) {
        send_delete(s);
    } else if (ev->type == ZKL_EV_LINK_UP && !s->m->create_out && !s->m->list_out) {
        look_for_leftover(s);
    }
}

void zkl_contender_step(struct zkl_contender_machine *m, const struct zkl_event *event,
                        struct zkl_actions *actions, const struct zkl_tracer *tracer)
{
    struct step s = {m, event, actions, tracer};
    actions->count = 0;
    if (event->type == ZKL_EV_LISTED || event->type == ZKL_EV_ROOTED)
        m->list_out = false;

    switch (m->state) {
    case ZKL_NEW:
        begin(&s, "started");
        break;
    case ZKL_PARKED:
        in_parked(&s);
        break;
    case ZKL_LOOKING:
        in_looking(&s);
        break;
    case ZKL_MAKING:
        in_making(&s);
        break;
    case ZKL_QUEUEING:
        in_queueing(&s);
        break;
    case ZKL_RECOVERING:
        in_recovering(&s);
        break;
    case ZKL_LISTING:
        in_listing(&s);
        break;
    case ZKL_WAITING:
        in_waiting(&s);
        break;
    case ZKL_CONFIRMING:
        in_confirming(&s);
        break;
    case ZKL_EXHAUSTED:
        in_exhausted(&s);
        break;
    case ZKL_HOLDING:
        in_holding(&s);
        break;
    case ZKL_LOSTHOLD:
        in_losthold(&s);
        break;
    case ZKL_RELEASING:
        in_releasing(&s);
        break;
    case ZKL_LEAVING:
        in_leaving(&s);
        break;
    case ZKL_ENDED:
    case ZKL_CONTENDER_STATES:
        assert(!"an ended contender gets no event");
        break;
    }
}
