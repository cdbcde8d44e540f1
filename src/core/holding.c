/* SPDX-License-Identifier: Apache-2.0
 *
 * From the grant on: holding, losing, the lease's end, the unlock, and the deletion of the node.
 * Each is a state of the contender's machine, a pure step that asks for actions and touches nothing
 * else. contender.c calls it with each event; timers.c asks when a hold ends by itself. */
#include <zklock/zklock.h>

#include "step.h"

/* --- holding ------------------------------------------------------------ */

static void lose(struct zkl_step *s, int reason, const char *why)
{
    s->m->on_server = false;
    zkl_step_emit(s, ZKL_DO_UNWATCH);
    zkl_step_move(s, ZKL_CONTENDER_LOSTHOLD, why);
    zkl_step_emit_reason(s, ZKL_DO_LOST, ZKL_HOLD_LOST, reason);
}

/* The lease's end came first: whatever the event is, it finds the hold lost, and the node is
 * deleted only now. */
static bool lapse(struct zkl_step *s)
{
    if (s->m->lease_end_boot == 0 || s->core->now.boot_ns < s->m->lease_end_boot)
        return false;
    zkl_step_emit(s, ZKL_DO_UNWATCH);
    zkl_step_move(s, ZKL_CONTENDER_LOSTHOLD, "lease ended");
    zkl_step_emit_reason(s, ZKL_DO_LOST, ZKL_HOLD_LOST, ZKL_REASON_LEASE_ENDED);
    zkl_step_send_delete(s);
    return true;
}

bool zkl_contender_renew(struct zkl_contender_machine *m, struct zkl_time now, int64_t end_boot_ns)
{
    bool ended = m->lease_end_boot != 0 && now.boot_ns >= m->lease_end_boot;
    if (m->state != ZKL_CONTENDER_HOLDING || ended)
        return false;
    m->lease_end_boot = end_boot_ns;
    return true;
}

/* The session proves nothing about a node that cannot be read. */
static void on_unchecked(struct zkl_step *s)
{
    if (!s->m->unchecked)
        zkl_step_emit_reason(s, ZKL_DO_NOTIFY_STATE, ZKL_HOLD_SUSPECT, ZKL_REASON_UNCHECKED);
    s->m->suspect = s->m->unchecked = true;
}

static void on_proved(struct zkl_step *s)
{
    if (!s->m->suspect || s->m->unchecked || s->m->unprovable || !zkl_step_window_open(s))
        return;
    s->m->suspect = false;
    zkl_step_emit_reason(s, ZKL_DO_NOTIFY_STATE, ZKL_HOLD_HELD, ZKL_REASON_NONE);
}

static void suspect(struct zkl_step *s, int reason)
{
    if (!s->m->suspect)
        zkl_step_emit_reason(s, ZKL_DO_NOTIFY_STATE, ZKL_HOLD_SUSPECT, reason);
    s->m->suspect = true;
}

/* The purpose of a hold ends when its owner unlocks it. A window that reaches that far, even if it
 * was proved only later, shows that no other client can have held before. */
static bool was_whole(const struct zkl_step *s)
{
    return !s->m->unchecked && !s->m->unprovable &&
           s->m->unlocked_boot < zkl_session_window_end(&s->core->session);
}

/* No node shows how the hold ended: code is the result for a hold that was whole. */
static int unless_doubted(const struct zkl_step *s, int code)
{
    return was_whole(s) ? code : ZKL_EDOUBT;
}

static void release(struct zkl_step *s)
{
    s->m->unlocked_boot = s->core->now.boot_ns;
    if (!zkl_core_connected(s->core)) {
        zkl_step_emit_code(s, ZKL_DO_RELEASED, unless_doubted(s, ZKL_EUNCONFIRMED),
                           "the link is down");
        zkl_step_leave(s, "unlocked without a link");
        return;
    }
    if (s->m->lock_request.posted) {
        int code = unless_doubted(s, ZKL_OK);
        zkl_step_emit_code(s, ZKL_DO_RELEASED, code, code == 0 ? NULL : "the window ended");
        zkl_step_leave(s, "unlocked, the delete is posted");
        return;
    }
    zkl_step_move(s, ZKL_CONTENDER_RELEASING, "unlocked");
    zkl_step_send_delete(s);
}

/* The watch stays armed over all that the node is used for: one request, and one for each new
 * link. */
static void look_out(struct zkl_step *s)
{
    s->m->watches_contention = true;
    if (zkl_core_connected(s->core) && !s->m->list_out && !s->m->contended) {
        zkl_step_emit(s, ZKL_DO_LIST_LOCK_PATH);
        s->m->list_out = true;
        s->m->looked_boot = s->core->now.boot_ns;
    }
}

static void stay(struct zkl_step *s)
{
    if (!s->m->watches_contention)
        look_out(s);
    if (s->ev->idle && !s->m->lock_request.watch_own) {
        /* without a holder, the node must learn of requests to release it */
        s->m->lock_request.watch_own = true;
        zkl_step_emit(s, ZKL_DO_WATCH_OWN);
    }
}

static void contend(struct zkl_step *s)
{
    s->m->contended |= s->m->watches_contention;
}

/* No contender can queue behind the last numbers: a new one has no node that could be seen. */
static bool is_near_the_end(const struct zkl_contender_machine *m)
{
    return m->sequence < 0 || m->sequence >= ZKL_SEQUENCE_HARD - ZKL_SEQUENCE_NEAR;
}

/* A path that cannot be read may hide another contender. */
static void on_lock_path_listed(struct zkl_step *s)
{
    struct zkl_look look = {0};
    if (s->ev->reply->answer == ZKL_ANSWER_LINK)
        return; /* again with the link */
    if (s->ev->reply->answer == ZKL_ANSWER_OK)
        look = zkl_step_look(s, s->m->node);
    s->m->crowded = look.retained_beside >= ZKL_CACHED_READERS_MAX;
    if (look.against > 0 || s->m->crowded || !look.present || is_near_the_end(s->m))
        contend(s);
    else
        s->m->uncontended_boot = s->m->looked_boot;
}

/* The contender that came or left may be one that we can be beside. */
static void on_lock_path_fired(struct zkl_step *s)
{
    if (zkl_roles[s->m->lock_request.naming.role].beside == 0)
        contend(s);
    else if (s->m->watches_contention)
        look_out(s);
}

/* What may end the hold; false: it does not. */
static bool hold_ends(struct zkl_step *s)
{
    switch ((int)s->ev->type) {
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
        zkl_step_emit_reason(s, ZKL_DO_LOST, ZKL_HOLD_LOST, s->ev->reason);
        zkl_step_leave(s, "abandoned");
        break;
    default:
        return false;
    }
    return true;
}

void zkl_in_holding(struct zkl_step *s)
{
    if (lapse(s)) {
        zkl_in_losthold(s);
        return;
    }
    if (hold_ends(s))
        return;
    switch ((int)s->ev->type) {
    case ZKL_EV_LINK_DOWN:
        s->m->uncontended_boot = 0; /* contenders that queue meanwhile are not reported */
        suspect(s, ZKL_REASON_LINK);
        break;
    case ZKL_EV_WINDOW_ENDED:
        suspect(s, ZKL_REASON_WINDOW);
        break;
    case ZKL_EV_LINK_UP:
        zkl_step_emit(s, ZKL_DO_HEARTBEAT);
        if (s->m->lock_request.watch_own)
            zkl_step_emit(s, ZKL_DO_WATCH_OWN); /* its arming may have been cut off */
        if (s->m->watches_contention)
            look_out(s); /* likewise, and those that queued meanwhile may not be reported */
        break;
    case ZKL_EV_UNCHECKED:
        on_unchecked(s);
        break;
    case ZKL_EV_CHECKED:
        s->m->unchecked = false;
        on_proved(s);
        break;
    case ZKL_EV_PROVED:
        on_proved(s);
        break;
    case ZKL_EV_OWN_CHANGED:
        if (s->m->lock_request.watch_own)
            zkl_step_emit(s, ZKL_DO_WATCH_OWN);
        break;
    case ZKL_EV_REVOKED:
        if (!s->m->revoked)
            zkl_step_emit_reason(s, ZKL_DO_NOTIFY_STATE, ZKL_HOLD_REVOKE_REQUESTED,
                                 ZKL_REASON_NONE);
        s->m->revoked = true;
        break;
    case ZKL_EV_STAY:
        stay(s);
        break;
    case ZKL_EV_LOCK_PATH_LISTED:
        on_lock_path_listed(s);
        break;
    case ZKL_EV_LOCK_PATH_FIRED:
        on_lock_path_fired(s);
        break;
    default: /* another contender's, or of a request that does not matter any more */
        break;
    }
}

/* The owner has not unlocked yet; the node of a lapsed lease is being deleted. */
void zkl_in_losthold(struct zkl_step *s)
{
    const struct zkl_event *ev = s->ev;
    if (ev->type == ZKL_EV_EXPIRED) {
        s->m->on_server = s->m->delete_out = false;
    } else if (ev->type == ZKL_EV_DELETED) {
        s->m->delete_out = false;
        s->m->on_server = !zkl_step_is_deleted(ev->reply->answer);
    } else if (ev->type == ZKL_EV_LINK_UP && s->m->on_server) {
        zkl_step_send_delete(s);
    } else if (ev->type == ZKL_EV_RELEASE ||
               (ev->type == ZKL_EV_ABANDON && ev->reason != ZKL_REASON_CLOSED)) {
        if (ev->type == ZKL_EV_RELEASE)
            zkl_step_emit_code(s, ZKL_DO_RELEASED, ZKL_ELOST, NULL);
        zkl_step_leave(s, "lost hold given back");
    }
}

static void released(struct zkl_step *s, int code, const char *detail, const char *why)
{
    zkl_step_emit_code(s, ZKL_DO_RELEASED, code, detail);
    zkl_step_end(s, why);
}

static void unconfirmed(struct zkl_step *s, const char *why)
{
    zkl_step_emit_code(s, ZKL_DO_RELEASED, unless_doubted(s, ZKL_EUNCONFIRMED), why);
    zkl_step_leave(s, why);
}

/* Ask a server that refused the delete again, if that happens while the window of then can last:
 * the link is up. */
static bool waits_to_ask_again(const struct zkl_step *s)
{
    int64_t since = s->core->now.boot_ns - s->m->unlocked_boot;
    return zkl_core_connected(s->core) && zkl_step_window_open(s) &&
           s->core->again_mono_ns != INT64_MAX &&
           since + s->core->again_mono_ns - s->core->now.mono_ns <
               zkl_session_timeout_ns(&s->core->session);
}

static void on_unlock_answered(struct zkl_step *s)
{
    s->m->delete_out = false;
    switch ((int)s->ev->reply->answer) {
    /* the node existed until now, as no client makes it twice: so no other contender was granted */
    case ZKL_ANSWER_OK:
        s->m->on_server = false;
        released(s, ZKL_OK, NULL, "deleted");
        break;
    case ZKL_ANSWER_NONODE:
        /* Another client deleted it before us: the hold had ended without our knowledge. */
        s->m->on_server = false;
        zkl_step_emit_reason(s, ZKL_DO_LOST, ZKL_HOLD_LOST, ZKL_REASON_NODE_DELETED);
        released(s, ZKL_ELOST, NULL, "was deleted");
        break;
    /* the server checks rights first: it did not look whether the node existed */
    case ZKL_ANSWER_NOAUTH:
        released(s, unless_doubted(s, ZKL_EACCES), "DELETE is denied", "delete denied");
        break;
    case ZKL_ANSWER_LINK:
        if (!waits_to_ask_again(s))
            unconfirmed(s, "no answer came");
        break;
    default:
        unconfirmed(s, "the delete failed");
        break;
    }
}

void zkl_in_releasing(struct zkl_step *s)
{
    if (s->ev->type == ZKL_EV_DELETED) {
        on_unlock_answered(s);
    } else if (s->ev->type == ZKL_EV_LINK_UP) {
        zkl_step_send_delete(s); /* unless it is out */
    } else if (s->ev->type == ZKL_EV_LINK_DOWN) {
        unconfirmed(s, "the link broke");
    } else if (s->ev->type == ZKL_EV_WINDOW_ENDED) {
        unconfirmed(s, "the window ended");
    } else if (s->ev->type == ZKL_EV_ABANDON || s->ev->type == ZKL_EV_STOP) {
        unconfirmed(s, "the client was closed");
    } else if (s->ev->type == ZKL_EV_EXPIRED) {
        s->m->on_server = false;
        zkl_step_emit_reason(s, ZKL_DO_LOST, ZKL_HOLD_LOST, ZKL_REASON_EXPIRED);
        released(s, ZKL_ELOST, NULL, "expired");
    }
}
