/* SPDX-License-Identifier: Apache-2.0
 *
 * Getting a place and waiting in it: every state from the start to the grant, except a permit's
 * wait and the used-up counter. Where kinds of locks differ, it asks the row of kind.c. Each is a
 * pure step of the contender's machine. contender.c calls it with each event; kind.c names some of
 * it in its rows. */
#include <zklock/zklock.h>

#include "pred_proof.h"

static bool node_is_exhausted(const struct zkl_contender_machine *m)
{
    return m->sequence == ZKL_SEQUENCE_NONE || (!zkl_roles[m->lock_request.naming.role].counted &&
                                                zkl_sequence_exhausted((int32_t)m->sequence));
}

/* --- the predicate ------------------------------------------------------- */

static void wait_behind(struct zkl_step *s, const struct zkl_look *look)
{
    s->m->contended = true; /* most likely they will be back */
    s->m->before = look->before;
    s->m->pred_is_exclusive_mutex = look->plain;
    s->m->pred_proof = ZKL_PRED_PROOF_NONE;
    zkl_step_move(s, ZKL_CONTENDER_WAITING, look->before == 1 ? "next in line" : "behind others");
    zkl_step_emit(s, ZKL_DO_WATCH_PRED)->name = look->predecessor;
    /* Our own node is watched too: a waiter whose node was deleted learns of it immediately, not
     * when its predecessor leaves. Only a contender whose grant may depend on that watch needs it
     * now. For others, which will have moved on in a moment, the request would be wasted. */
    s->m->own_is_put_off = look->before > 1 || !look->plain;
    zkl_step_emit(s, s->m->own_is_put_off ? ZKL_DO_WATCH_OWN_LATER : ZKL_DO_WATCH_OWN);
}

/* The one before us has a node that may have no holder; or all have, which hold together. */
static bool may_be_given_up(const struct zkl_look *look)
{
    return look->before == look->retained_before ||
           (look->before == 1 && zkl_name_is_retained(look->predecessor));
}

void zkl_step_decide_place(struct zkl_step *s)
{
    struct zkl_look look = zkl_step_look(s, s->m->node);
    if (!look.present)
        zkl_step_requeue(s, "own node not in the list");
    else if (!look.predecessor || s->kind->within_hold)
        zkl_step_grant(s, "first");
    else if (s->m->lock_request.try_only && !(s->m->behind_retained && may_be_given_up(&look)))
        zkl_step_fail(s, ZKL_EBUSY, NULL, "somebody was faster");
    else {
        s->m->pred_is_by_number = false;
        wait_behind(s, &look);
    }
}

/* By its number it is just behind a node of this client: the result is that of a list without
 * others. */
static void wait_unlisted(struct zkl_step *s)
{
    const char *const both[] = {s->ev->behind, s->m->node};
    struct zkl_look look = zkl_queue_position(&s->m->lock_request.naming, both, 2, s->m->node);
    if (!look.plain) {
        zkl_step_list_again(s, "not listed yet");
        return;
    }
    look.before = s->ev->before;
    s->m->pred_is_by_number = true;
    wait_behind(s, &look);
}

/* --- one function for each state ---------------------------------------- */

void zkl_in_parked(struct zkl_step *s)
{
    if (s->ev->type == ZKL_EV_LINK_UP)
        zkl_step_begin(s, "link up");
    else if (s->ev->type == ZKL_EV_EXPIRED)
        s->m->limit.out = false; /* of a look that was over before the session was */
    else if (s->ev->type == ZKL_EV_STOP)
        zkl_step_fail(s, s->ev->code, NULL, "stopped");
}

void zkl_step_look_for_others(struct zkl_step *s)
{
    bool there = s->ev->reply->answer == ZKL_ANSWER_OK;
    struct zkl_look look = there ? zkl_step_look(s, NULL) : (struct zkl_look){0};
    s->m->behind_retained =
        look.before > 0 && s->m->lock_request.try_behind_retained && may_be_given_up(&look);
    if (look.before == 0)
        zkl_step_enqueue(s, "nobody is there");
    else if (s->m->behind_retained)
        zkl_step_enqueue(s, "nobody may be in it");
    else
        zkl_step_fail(s, ZKL_EBUSY, NULL, "somebody is there");
}

void zkl_in_looking(struct zkl_step *s)
{
    const struct zkl_event *ev = s->ev;
    if (ev->type == ZKL_EV_STOP) {
        zkl_step_fail(s, ev->code, NULL, "stopped");
    } else if (zkl_step_own_event(s)) {
        ;
    } else if (ev->type == ZKL_EV_EXPIRED) {
        s->m->list_out = s->m->limit.out = false;
        zkl_step_move(s, ZKL_CONTENDER_PARKED, "expired");
    } else if (ev->type == ZKL_EV_LISTED && ev->reply->answer == ZKL_ANSWER_LINK) {
        zkl_step_move(s, ZKL_CONTENDER_PARKED, "no answer");
    } else if (ev->type == ZKL_EV_LISTED && ev->reply->answer == ZKL_ANSWER_NOAUTH) {
        zkl_step_fail_denied(s, "READ");
    } else if (ev->type == ZKL_EV_LISTED &&
               (ev->reply->answer == ZKL_ANSWER_OK || ev->reply->answer == ZKL_ANSWER_NONODE)) {
        s->kind->on_first_look(s);
    } else if (ev->type == ZKL_EV_LISTED) {
        zkl_step_fail_odd(s, "listing the path");
    }
}

/* Length of the lock path's prefix one component shorter than length; 0: there is none. */
static size_t parent_length(const struct zkl_contender_machine *m, size_t length)
{
    while (length > 0 && m->lock_request.path->text[length - 1] != '/')
        length--;
    return length > 0 ? length - 1 : 0;
}

static size_t child_length(const struct zkl_contender_machine *m, size_t length)
{
    length++;
    while (length < m->lock_request.path->length && m->lock_request.path->text[length] != '/')
        length++;
    return length;
}

static void make(struct zkl_step *s, size_t length)
{
    s->m->make_length = length;
    zkl_step_emit(s, ZKL_DO_MAKE);
}

static void made_one(struct zkl_step *s)
{
    if (s->m->make_length == s->m->lock_request.path->length)
        zkl_step_enqueue(s, "root made");
    else
        make(s, child_length(s->m, s->m->make_length));
}

static void on_made(struct zkl_step *s)
{
    size_t above = parent_length(s->m, s->m->make_length);
    switch ((int)s->ev->reply->answer) {
    case ZKL_ANSWER_OK:
    case ZKL_ANSWER_EXISTS:
        made_one(s);
        break;
    case ZKL_ANSWER_NONODE:
        if (above > 0)
            make(s, above);
        else
            zkl_step_fail(s, ZKL_ENOCHROOT, NULL, "no chroot");
        break;
    case ZKL_ANSWER_UNIMPLEMENTED:
        if (s->ev->reply->otherwise)
            make(s, s->m->make_length);
        else
            zkl_step_fail_odd(s, "making the path");
        break;
    case ZKL_ANSWER_LINK:
        zkl_step_move(s, ZKL_CONTENDER_PARKED, "no answer");
        break;
    case ZKL_ANSWER_NOAUTH:
        zkl_step_fail_denied(s, "CREATE on a parent");
        break;
    default:
        zkl_step_fail_odd(s, "making the path");
        break;
    }
}

void zkl_in_making(struct zkl_step *s)
{
    if (s->ev->type == ZKL_EV_MADE)
        on_made(s);
    else if (s->ev->type == ZKL_EV_EXPIRED)
        zkl_step_move(s, ZKL_CONTENDER_PARKED, "expired");
    else if (s->ev->type == ZKL_EV_STOP)
        zkl_step_fail(s, s->ev->code, NULL, "stopped");
}

static void on_create_refused(struct zkl_step *s)
{
    switch ((int)s->ev->reply->answer) {
    case ZKL_ANSWER_NONODE:
        if (s->kind->within_hold) {
            zkl_step_fail(s, ZKL_ELOST, NULL, "the write node is gone");
            break;
        }
        zkl_step_forget_list(s);
        zkl_step_move(s, ZKL_CONTENDER_MAKING, "no root");
        make(s, s->m->lock_request.path->length);
        break;
    case ZKL_ANSWER_EXISTS:
        if (zkl_roles[s->m->lock_request.naming.role].counted)
            zkl_step_fail_odd(s, "creating the node");
        else
            zkl_step_exhaust(s, "counter stuck");
        break;
    case ZKL_ANSWER_LINK:
        zkl_step_forget_list(s);
        zkl_step_lose_create(s);
        zkl_step_move(s, ZKL_CONTENDER_RECOVERING, "create unanswered");
        break;
    case ZKL_ANSWER_NOAUTH:
        zkl_step_fail_denied(s, "CREATE");
        break;
    case ZKL_ANSWER_ROLLED_BACK:
        zkl_step_forget_list(s);
        zkl_step_enqueue(s, "another one's create failed");
        break;
    case ZKL_ANSWER_UNIMPLEMENTED:
        if (s->ev->reply->otherwise) {
            zkl_step_forget_list(s);
            zkl_step_enqueue(s, "create2 is not known");
            break;
        }
        zkl_step_fail_odd(s, "creating the node");
        break;
    default:
        s->m->maybe_on_server = zkl_step_outcome_unknown(s->ev->reply->answer);
        zkl_step_fail_odd(s, "creating the node");
        break;
    }
}

static void grant_unlisted(struct zkl_step *s)
{
    zkl_step_forget_list(s);
    zkl_step_grant(s, "nobody came between");
}

/* Reads the session of the node, which is known by name alone: the Stat has its zxid. */
static void look_at_own(struct zkl_step *s, const char *why)
{
    if (s->m->state != ZKL_CONTENDER_RECOVERING)
        zkl_step_move(s, ZKL_CONTENDER_RECOVERING, why);
    s->m->stat_out = true;
    zkl_step_emit(s, ZKL_DO_STAT);
}

static void on_created(struct zkl_step *s)
{
    s->m->create_out = false;
    if (s->ev->reply->answer != ZKL_ANSWER_OK) {
        on_create_refused(s);
        return;
    }
    zkl_step_know_node(s, s->ev->reply->name, s->ev->reply->czxid);
    if (s->m->czxid == 0) {
        zkl_step_forget_list(s);
        look_at_own(s, "its zxid is not known");
        return;
    }
    if (node_is_exhausted(s->m))
        zkl_step_exhaust(s, "number exhausted");
    else
        s->m->exhausted_at = 0;
    if (s->m->state == ZKL_CONTENDER_QUEUEING && s->kind->within_hold)
        zkl_step_grant(s, "under the write lock");
    else if (s->m->state == ZKL_CONTENDER_QUEUEING && s->ev->first)
        grant_unlisted(s);
    else if (s->m->state == ZKL_CONTENDER_QUEUEING && !s->m->list_out && s->ev->behind)
        wait_unlisted(s);
    else if (s->m->state == ZKL_CONTENDER_QUEUEING && !s->m->list_out)
        zkl_step_list_again(s, "not listed yet");
}

static void on_listed(struct zkl_step *s)
{
    if (s->ev->reply->answer == ZKL_ANSWER_OK)
        s->kind->on_list(s);
    else
        zkl_step_on_unlisted(s);
}

void zkl_in_queueing(struct zkl_step *s)
{
    if (s->ev->type == ZKL_EV_CREATED)
        on_created(s);
    else if (zkl_step_own_event(s))
        ;
    else if (s->ev->type == ZKL_EV_LISTED)
        on_listed(s);
    else
        zkl_step_common_lock_request(s);
}

static void on_found(struct zkl_step *s, const char *name)
{
    if (name) {
        /* Ours by GUID; the Stat says whether it is of this session. */
        zkl_step_know_node(s, name, 0);
        look_at_own(s, NULL);
    } else {
        zkl_step_give_up_create(s);
        zkl_step_enqueue(s, "create was not carried out");
    }
}

static void adopt(struct zkl_step *s)
{
    s->m->czxid = s->kind->within_hold ? s->m->downgrade_from_czxid : s->ev->reply->czxid;
    if (node_is_exhausted(s->m))
        zkl_step_exhaust(s, "number exhausted");
    else if (s->kind->within_hold)
        zkl_step_grant(s, "adopted under the write lock");
    else
        zkl_step_list_again(s, "adopted");
}

void zkl_in_recovering(struct zkl_step *s)
{
    const struct zkl_event *ev = s->ev;
    if (zkl_step_own_event(s)) {
        ;
    } else if (ev->type == ZKL_EV_LINK_UP) {
        if (!s->m->list_out && !s->m->stat_out)
            zkl_step_look_for_leftover(s);
    } else if (ev->type == ZKL_EV_LISTED && ev->reply->answer == ZKL_ANSWER_OK) {
        on_found(s, zkl_step_find_own(s));
    } else if (ev->type == ZKL_EV_LISTED && ev->reply->answer == ZKL_ANSWER_NONODE) {
        on_found(s, NULL);
    } else if (ev->type == ZKL_EV_LISTED && ev->reply->answer == ZKL_ANSWER_NOAUTH) {
        zkl_step_fail_denied(s, "READ");
    } else if (ev->type == ZKL_EV_STATTED && ev->reply->answer == ZKL_ANSWER_OK) {
        /* A list may still contain a node of an old session; the server will delete it by itself,
         * and granting on it would give the lock twice (CURATOR-498, CURATOR-604). */
        if (ev->reply->node_session == s->core->session.id)
            adopt(s);
        else
            zkl_step_enqueue(s, "node of an old session");
    } else if (ev->type == ZKL_EV_STATTED && ev->reply->answer == ZKL_ANSWER_NONODE) {
        zkl_step_enqueue(s, "node is gone");
    } else if ((ev->type == ZKL_EV_LISTED || ev->type == ZKL_EV_STATTED) &&
               ev->reply->answer != ZKL_ANSWER_LINK) {
        zkl_step_fail_odd(s, "looking for the node");
    } else if (ev->type == ZKL_EV_STATTED) {
        s->m->on_server = false; /* no answer: look again with the link */
        s->m->maybe_on_server = true;
    } else {
        zkl_step_common_lock_request(s);
    }
}

void zkl_in_listing(struct zkl_step *s)
{
    if (zkl_step_own_event(s))
        ;
    else if (s->ev->type == ZKL_EV_LISTED || s->ev->type == ZKL_EV_LOCK_PATH_LISTED)
        on_listed(s);
    else if (s->ev->type == ZKL_EV_LINK_UP)
        zkl_step_list_again(s, "link up");
    else
        zkl_step_common_lock_request(s);
}

static void stop_putting_off(struct zkl_step *s)
{
    s->m->own_is_put_off = false;
    zkl_step_emit(s, ZKL_DO_WATCH_OWN);
}

static void on_pred_heard_of(struct zkl_step *s)
{
    bool was_pending = s->m->pred_proof == ZKL_PRED_PROOF_PENDING;
    switch (zkl_pred_proof_now(s)) {
    case ZKL_PRED_PROOF_PROVEN:
        zkl_step_grant(s, "predecessor deleted");
        break;
    case ZKL_PRED_PROOF_PENDING:
        s->m->pred_proof = ZKL_PRED_PROOF_PENDING;
        break;
    case ZKL_PRED_PROOF_NONE:
        zkl_step_list_again(s, s->ev->type == ZKL_EV_PRED_FIRED ? "predecessor fired"
                               : was_pending                    ? "predecessor deleted"
                                             : "predecessor gone before the watch");
        break;
    }
}

void zkl_in_waiting(struct zkl_step *s)
{
    const struct zkl_event *ev = s->ev;
    if (zkl_pred_is_heard_of(s))
        on_pred_heard_of(s);
    else if (ev->type == ZKL_EV_LINK_UP)
        /* what a watch reports after a reconnect is not the whole truth */
        zkl_step_list_again(s, "link up");
    else if (ev->type == ZKL_EV_WATCHED && ev->reply->answer == ZKL_ANSWER_NOAUTH)
        zkl_step_fail_denied(s, "READ on the predecessor's node");
    else if (ev->type == ZKL_EV_WATCHED && ev->reply->answer != ZKL_ANSWER_OK &&
             ev->reply->answer != ZKL_ANSWER_LINK)
        zkl_step_fail_odd(s, "watching the predecessor");
    else if (ev->type == ZKL_EV_WAITED)
        stop_putting_off(s);
    else
        zkl_step_common_lock_request(s);
}

void zkl_in_confirming(struct zkl_step *s)
{
    if (s->ev->type == ZKL_EV_PROVED && zkl_step_window_fresh(s))
        zkl_step_hold(s, "proved");
    else if (s->ev->type == ZKL_EV_UNCHECKED && s->ev->reply->answer == ZKL_ANSWER_NOAUTH)
        zkl_step_fail_denied(s, "READ on its own node"); /* which is how this waits to be proved */
    else if (s->ev->type == ZKL_EV_LINK_UP && s->kind->within_hold)
        zkl_step_emit(s, ZKL_DO_HEARTBEAT); /* its turn does not depend on a list */
    else if (s->ev->type == ZKL_EV_LINK_UP)
        zkl_step_list_again(s, "link up");
    else
        zkl_step_common_lock_request(s);
}
