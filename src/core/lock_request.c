/* SPDX-License-Identifier: Apache-2.0
 *
 * What the states that want the lock have in common: asking for a place, reading the queue again,
 * being granted, and the events that a state does not treat itself. queueing.c, permit_limit.c and
 * exhausted.c, which have the states, call this file. */
#include <string.h>

#include <zklock/zklock.h>

#include "step.h"

/* --- a permit's number ----------------------------------------------------- */

void zkl_step_get_limit(struct zkl_step *s)
{
    if (s->m->limit.out || !zkl_core_connected(s->core))
        return;
    s->m->limit.out = true;
    s->m->limit.given = 0;
    zkl_step_emit(s, ZKL_DO_GET_LIMIT);
}

void zkl_step_need_limit(struct zkl_step *s)
{
    if (s->m->limit.permits == 0)
        zkl_step_get_limit(s);
}

/* --- asking for a place ------------------------------------------------- */

static void forget_node(struct zkl_step *s)
{
    s->m->on_server = false;
    s->m->maybe_on_server = false;
    s->m->may_be_late = false;
    s->m->was_first = false;
    s->m->unchecked = false;
    s->m->revoked = false;
    s->m->watches_contention = false;
    s->m->contended = false;
    s->m->looked_boot = s->m->uncontended_boot = 0;
    s->m->limit.permits = 0;
    s->m->limit.watched = false;
    s->m->node[0] = '\0';
    s->m->czxid = 0;
}

/* First ask for what must be known when the list comes. */
static void before_list(struct zkl_step *s)
{
    if (s->kind->before_list)
        s->kind->before_list(s);
}

/* Ask for a new place at the end of the queue. create and list go out together: ZooKeeper answers
 * one client in order, so the list shows the node that the create made. */
void zkl_step_enqueue(struct zkl_step *s, const char *why)
{
    forget_node(s);
    if (!zkl_core_connected(s->core)) {
        zkl_step_move(s, ZKL_CONTENDER_PARKED, why);
        return;
    }
    if (s->ev->full) {
        zkl_step_fail(s, ZKL_EFULL, NULL, "the session owns too much");
        return;
    }
    zkl_step_move(s, ZKL_CONTENDER_QUEUEING, why);
    s->m->create_out = true;
    if (s->kind->within_hold) {
        /* No contender can be between us and our own write node: there is nothing to list. */
        zkl_step_emit(s, ZKL_DO_CREATE_UNDER);
        return;
    }
    before_list(s);
    zkl_step_emit(s, ZKL_DO_CREATE);
    s->m->list_out = !s->ev->unlisted;
    if (s->m->list_out)
        zkl_step_emit(s, ZKL_DO_LIST);
}

/* Our node vanished while we wanted it: drop the watches, and start over with a new GUID. */
void zkl_step_requeue(struct zkl_step *s, const char *why)
{
    zkl_step_forget_list(s);
    s->m->renew_out = false; /* its answer, if it still comes, is about another node of the path */
    zkl_step_emit(s, ZKL_DO_UNWATCH);
    zkl_step_enqueue(s, why);
}

void zkl_step_begin(struct zkl_step *s, const char *why)
{
    if (!zkl_core_connected(s->core)) {
        if (s->m->state != ZKL_CONTENDER_PARKED)
            zkl_step_move(s, ZKL_CONTENDER_PARKED, why);
        return;
    }
    if (!s->m->lock_request.try_only || s->kind->within_hold || s->m->lock_request.quota.looked) {
        zkl_step_enqueue(s, why);
        return;
    }
    /* A try reads first: a busy lock then costs one read and no write. */
    zkl_step_move(s, ZKL_CONTENDER_LOOKING, why);
    if (s->m->lock_request.try_sync)
        zkl_step_emit(s, ZKL_DO_SYNC);
    s->m->limit.permits = 0;
    before_list(s);
    zkl_step_emit(s, ZKL_DO_LIST);
    s->m->list_out = true;
}

/* --- the exhausted counter ---------------------------------------------- */

void zkl_step_look_at_lock_path(struct zkl_step *s)
{
    if (zkl_core_connected(s->core) && !s->m->list_out) {
        zkl_step_emit(s, ZKL_DO_LIST_LOCK_PATH);
        s->m->list_out = true;
    }
}

/* Every contender may get our number: never granted. Withdraw and wait until the path is made
 * anew. */
void zkl_step_exhaust(struct zkl_step *s, const char *why)
{
    zkl_step_forget_list(s);
    zkl_step_move(s, ZKL_CONTENDER_EXHAUSTED, why);
    if (s->m->on_server) {
        s->m->exhausted_at = s->m->czxid;
        zkl_step_send_delete(s);
    } else {
        zkl_step_look_at_lock_path(s);
    }
}

/* --- being granted ------------------------------------------------------- */

void zkl_step_hold(struct zkl_step *s, const char *why)
{
    s->m->suspect = s->m->unprovable = s->core->session.unprovable;
    s->m->unchecked = false;
    s->m->was_first = true;
    s->m->unlocked_boot = 0;
    s->m->lease_end_boot =
        s->m->lock_request.lease_ns > 0 ? s->core->now.boot_ns + s->m->lock_request.lease_ns : 0;
    zkl_step_move(s, ZKL_CONTENDER_HOLDING, why);
    zkl_step_emit(s, ZKL_DO_GRANT);
    if (s->m->unprovable)
        zkl_step_emit_reason(s, ZKL_DO_NOTIFY_STATE, ZKL_HOLD_SUSPECT, ZKL_REASON_WINDOW);
    if (s->m->revoked)
        zkl_step_emit_reason(s, ZKL_DO_NOTIFY_STATE, ZKL_HOLD_REVOKE_REQUESTED, ZKL_REASON_NONE);
    if (s->m->lock_request.watch_own)
        zkl_step_emit(s, ZKL_DO_WATCH_OWN);
}

void zkl_step_grant(struct zkl_step *s, const char *why)
{
    s->m->unchecked = false; /* it was seen just now; the next heartbeat tries it */
    if (zkl_step_window_fresh(s)) {
        zkl_step_hold(s, why);
        return;
    }
    if (s->m->lock_request.try_only) {
        zkl_step_fail(s, ZKL_EUNPROVED, NULL, "too little is proved");
        return;
    }
    /* First in the queue, but nothing has proved the session lately. */
    zkl_step_move(s, ZKL_CONTENDER_CONFIRMING, why);
    zkl_step_emit(s, ZKL_DO_HEARTBEAT);
}

/* --- looking again ------------------------------------------------------- */

void zkl_step_list_again(struct zkl_step *s, const char *why)
{
    if (s->m->state != ZKL_CONTENDER_LISTING)
        zkl_step_move(s, ZKL_CONTENDER_LISTING, why);
    if (zkl_core_connected(s->core) && !s->m->list_out) {
        before_list(s);
        zkl_step_emit(s, ZKL_DO_LIST);
        s->m->list_out = true;
    }
}

void zkl_step_on_unlisted(struct zkl_step *s)
{
    switch ((int)s->ev->reply->answer) {
    case ZKL_ANSWER_LINK:
        if (s->m->state != ZKL_CONTENDER_LISTING && !s->m->create_out)
            zkl_step_move(s, ZKL_CONTENDER_LISTING, "list unanswered");
        break;
    case ZKL_ANSWER_NONODE:
        zkl_step_requeue(s, "root is gone");
        break;
    case ZKL_ANSWER_NOAUTH:
        zkl_step_fail_denied(s, "READ");
        break;
    default: /* OK is not reached: the caller decides by such a list */
        zkl_step_fail_odd(s, "listing the path");
        break;
    }
}

/* --- all other events ------------------------------------------------------- */

void zkl_step_common_lock_request(struct zkl_step *s)
{
    switch ((int)s->ev->type) {
    case ZKL_EV_STOP:
        zkl_step_fail(s, s->ev->code, NULL, "stopped");
        break;
    case ZKL_EV_EXPIRED:
        /* The session's nodes are deleted, and outstanding answers are forgotten. */
        s->m->create_out = s->m->list_out = s->m->delete_out = s->m->limit.out = false;
        s->m->stat_out = s->m->renew_out = false;
        s->m->exhausted_at = 0;
        forget_node(s);
        if (s->kind->within_hold) {
            zkl_step_fail(s, ZKL_ELOST, NULL, "expired with the write lock");
            break;
        }
        zkl_step_emit(s, ZKL_DO_UNWATCH);
        zkl_step_move(s, ZKL_CONTENDER_PARKED, "expired");
        break;
    case ZKL_EV_OWN_DELETED:
    case ZKL_EV_NODE_GONE:
        if (!s->m->on_server || s->m->state == ZKL_CONTENDER_EXHAUSTED)
            break;
        zkl_step_requeue(s, "own node deleted");
        break;
    case ZKL_EV_OWN_CHANGED:
        if (s->m->state == ZKL_CONTENDER_WAITING)
            zkl_step_emit(s, ZKL_DO_WATCH_OWN);
        break;
    case ZKL_EV_UNCHECKED:
        s->m->unchecked = true;
        break;
    case ZKL_EV_CHECKED:
        s->m->unchecked = false;
        break;
    case ZKL_EV_REVOKED:
        s->m->revoked = true; /* reported with the grant */
        break;
    default:
        break;
    }
}
