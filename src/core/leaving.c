/* SPDX-License-Identifier: Apache-2.0
 *
 * The way out of every state. The owner is notified that there will be no grant, and from then on
 * the janitor owns what is or may be on the server. Every branch of the janitor ends, or waits for
 * an answer or for the link. All states that can fail call this file, and holding.c once a hold is
 * over. */
#include <zklock/zklock.h>

#include "step.h"

/* --- leaving ------------------------------------------------------------ */

/* There is nothing left to do about the node: it is deleted, or stays whatever we do. After any
 * other answer a later try may succeed. */
bool zkl_step_is_deleted(enum zkl_answer answer)
{
    return answer == ZKL_ANSWER_OK || answer == ZKL_ANSWER_NONODE || answer == ZKL_ANSWER_NOAUTH ||
           answer == ZKL_ANSWER_NOTEMPTY;
}

void zkl_step_send_delete(struct zkl_step *s)
{
    if (zkl_core_connected(s->core) && !s->m->delete_out) {
        s->m->delete_out = true;
        zkl_step_emit(s, ZKL_DO_DELETE);
    }
}

void zkl_step_look_for_leftover(struct zkl_step *s)
{
    /* The server we are now connected to may lag behind the one that carried the create out, and a
     * sync does not help if it is a leader that was deposed and does not know. */
    zkl_step_emit(s, ZKL_DO_BARRIER);
    zkl_step_emit(s, ZKL_DO_LIST);
    s->m->list_out = true;
}

void zkl_step_end(struct zkl_step *s, const char *why)
{
    zkl_step_forget_list(s);
    zkl_step_emit(s, ZKL_DO_UNWATCH);
    zkl_step_move(s, ZKL_CONTENDER_ENDED, why);
    zkl_step_emit(s, ZKL_DO_END);
}

/* The owner has its answer; what may be on the server is the janitor's from here on. */
void zkl_step_leave(struct zkl_step *s, const char *why)
{
    if (s->m->on_server)
        zkl_step_forget_list(s); /* else the list that is out may show where the node is */
    if (!s->m->create_out && !s->m->on_server && !s->m->maybe_on_server) {
        zkl_step_end(s, why);
        return;
    }
    zkl_step_emit(s, ZKL_DO_UNWATCH_OTHERS);
    zkl_step_move(s, ZKL_CONTENDER_LEAVING, why);
    if (s->m->on_server)
        zkl_step_send_delete(s);
    else if (!s->m->create_out && !s->m->list_out && zkl_core_connected(s->core))
        zkl_step_look_for_leftover(s);
}

void zkl_step_fail(struct zkl_step *s, int code, const char *detail, const char *why)
{
    zkl_step_emit_code(s, ZKL_DO_FAIL, code, detail);
    zkl_step_leave(s, why);
}

void zkl_step_fail_denied(struct zkl_step *s, const char *detail)
{
    zkl_step_fail(s, ZKL_EACCES, detail, "denied");
}

/* An answer that nothing else accounts for. */
void zkl_step_fail_odd(struct zkl_step *s, const char *what)
{
    const char *why = s->ev->reply->answer == ZKL_ANSWER_NOMEM  ? "no memory"
                      : s->ev->reply->answer == ZKL_ANSWER_FULL ? "too many watches"
                                                                : "odd answer";
    zkl_step_fail(s, zkl_answer_code(s->ev->reply->answer), what, why);
}

/* --- the janitor -------------------------------------------------------- */

/* The janitor. Every branch either ends or waits for an answer or for the link. */
static void on_leftover_listed(struct zkl_step *s)
{
    const struct zkl_event *ev = s->ev;
    const char *found = NULL;
    bool answered = ev->reply->answer == ZKL_ANSWER_OK || ev->reply->answer == ZKL_ANSWER_NONODE ||
                    ev->reply->answer == ZKL_ANSWER_NOAUTH;
    if (!answered || s->m->create_out || s->m->on_server)
        return;
    if (ev->reply->answer == ZKL_ANSWER_OK)
        found = zkl_step_find_own(s);
    if (!found) {
        zkl_step_give_up_create(s);
        zkl_step_end(s, ev->reply->answer == ZKL_ANSWER_OK ? "nothing was left"
                                                           : "can't be looked for");
        return;
    }
    zkl_step_know_node(s, found, 0);
    zkl_step_send_delete(s);
}

void zkl_in_leaving(struct zkl_step *s)
{
    const struct zkl_event *ev = s->ev;
    if (ev->type == ZKL_EV_EXPIRED) {
        s->m->list_out = false;
        zkl_step_end(s, "expired");
    } else if (ev->type == ZKL_EV_CREATED) {
        s->m->create_out = false;
        if (ev->reply->answer == ZKL_ANSWER_OK) {
            zkl_step_know_node(s, ev->reply->name, ev->reply->czxid);
            zkl_step_send_delete(s);
        } else if (zkl_step_outcome_unknown(ev->reply->answer)) {
            zkl_step_lose_create(s); /* looked for with the link, or after a while */
            /* A list that is out may have gone over the next link already, to a server that
             * lags. */
            zkl_step_forget_list(s);
        } else {
            zkl_step_end(s, "never created");
        }
    } else if (ev->type == ZKL_EV_DELETED) {
        s->m->delete_out = false;
        if (zkl_step_is_deleted(ev->reply->answer))
            zkl_step_end(s, ev->reply->answer == ZKL_ANSWER_NOAUTH ? "delete denied" : "deleted");
    } else if (ev->type == ZKL_EV_LISTED) {
        on_leftover_listed(s);
    } else if (ev->type == ZKL_EV_LINK_UP && s->m->on_server) {
        zkl_step_send_delete(s);
    } else if (ev->type == ZKL_EV_LINK_UP && !s->m->create_out && !s->m->list_out) {
        zkl_step_look_for_leftover(s);
    }
}
