/* SPDX-License-Identifier: Apache-2.0
 *
 * A waiter whose predecessor's node is deleted is the first in the queue, and needs no list to see
 * it, if all of this holds:
 * - No contender was before it but the predecessor, by the list that it waits by
 *   (zkl_contender_is_next), or the predecessor had the lock until now, so that none was before
 *   that one (GIVEN_BACK). A waiter by its number instead of a list (unlisted_grant.h) knows as
 *   much once its predecessor's node was seen; if the watch did not find that (UNSEEN) the path
 *   may be another one, where others are before it.
 * - None can have come between since: a number before ours is never given again, except to a read
 *   node that is made under its writer's. So both nodes must be plain mutexes', "lock-"
 *   (pred_is_exclusive_mutex): Kazoo's writers have the names of its mutexes.
 * - Our own node exists. A server sends events in the order of what they report. So a watch on our
 *   own node that was armed over the link that is up, and has not fired, says that the node
 *   existed when the predecessor's was deleted. But the nodes of one session are deleted together
 *   when it ends, in any order: if both are this session's, the deletion proves nothing by itself
 *   (UNSURE), and only the answer to our own delete does (GIVEN_BACK). It comes next; until then
 *   the waiter is the heir of the one that leaves.
 * - The session is proved well enough for a grant: it has not ended, unless another client closed
 *   it on purpose. (Else the list is sent, and waits for a proof.)
 *
 * If only the third is open, because the answer to the watch on our own node is under way, that
 * answer decides, before any list (PENDING): our node was there after the predecessor's was not,
 * so a list could show no more. (Processes in turns outrun their watches.) All else means a list.
 *
 * feed.c, dispatch_reply.c (they know how a node ended) and queueing.c call this. It owns
 * nothing. */
#include "pred_proof.h"

enum zkl_pred_end zkl_pred_end_of(const struct zkl_core *core, const struct zkl_watch *watch)
{
    bool is_others = watch->node_session != core->session.id;
    return is_others && zkl_watch_is_reliable(core, watch) ? ZKL_PRED_END_DELETED
                                                           : ZKL_PRED_END_UNSURE;
}

enum zkl_pred_end zkl_pred_end_unwatched(const struct zkl_contender *c)
{
    return c->machine.pred_is_by_number ? ZKL_PRED_END_UNSEEN : ZKL_PRED_END_DELETED;
}

/* Its answer is under way, behind everything that the server has reported so far. */
static bool is_asked(const struct zkl_core *core, const struct zkl_watch *watch)
{
    return watch && watch->state == ZKL_WATCH_ARMING && zkl_core_connected(core);
}

enum zkl_pred_proof zkl_pred_proof(const struct zkl_core *core, const struct zkl_contender *c,
                                   enum zkl_pred_end end)
{
    const struct zkl_contender_machine *m = &c->machine;
    const struct zkl_watch *own = c->subs[ZKL_SUB_OWN].watch;
    bool is_next = zkl_contender_is_next(m) && end != ZKL_PRED_END_UNSEEN;
    bool is_first = is_next || end == ZKL_PRED_END_GIVEN_BACK;
    if (m->state != ZKL_CONTENDER_WAITING || !m->pred_is_exclusive_mutex)
        return ZKL_PRED_PROOF_NONE;
    if (end != ZKL_PRED_END_UNSURE && is_first && zkl_watch_is_reliable(core, own))
        return ZKL_PRED_PROOF_PROVEN;
    return is_next && is_asked(core, own) ? ZKL_PRED_PROOF_PENDING : ZKL_PRED_PROOF_NONE;
}

bool zkl_pred_is_heard_of(const struct zkl_step *s)
{
    bool is_missing = s->ev->type == ZKL_EV_WATCHED && s->ev->reply->answer == ZKL_ANSWER_NONODE;
    bool is_own = s->ev->type == ZKL_EV_OWN_ARMED || s->ev->type == ZKL_EV_WATCHED;
    return s->ev->type == ZKL_EV_PRED_FIRED || is_missing ||
           (is_own && s->m->pred_proof == ZKL_PRED_PROOF_PENDING);
}

enum zkl_pred_proof zkl_pred_proof_now(const struct zkl_step *s)
{
    bool is_armed = s->ev->type == ZKL_EV_OWN_ARMED; /* the answer to what was pending */
    enum zkl_pred_proof proof = is_armed ? ZKL_PRED_PROOF_PROVEN : s->ev->pred_proof;
    bool is_stale = proof == ZKL_PRED_PROOF_PROVEN && !zkl_step_window_fresh(s);
    return is_stale ? ZKL_PRED_PROOF_NONE : proof;
}
