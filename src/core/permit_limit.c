/* SPDX-License-Identifier: Apache-2.0
 * A contender for a permit of a semaphore. Its lock path is Curator's `leases`. It is granted when
 * its own node exists and the leases are not more than the permits, whatever their numbers; the
 * inner mutex (bundle.h) has decided the order before. The number of permits is a decimal number
 * in the path's data. The contender reads it before the first list of the path, and watches it
 * while it waits.
 *
 * A list decides by the number that stood there when the list was made, and by no other: each list
 * has the Stat of the path's node, whose data the number is, and a number that was read from another
 * version, or another node, is read again, and the path listed again. (So it may be read over
 * another link than the list, and its watch may come late or not at all.) Why that is enough: of
 * all who hold at some moment take the one whose list was made last. Each other one's node was there
 * before its own list, and so before this one, and it is there still; so this list counted them all,
 * and they were not more than the number at that moment. A number that is lowered later takes no
 * permit back. */
#include <zklock/zklock.h>

#include "step.h"

/* --- the number --------------------------------------------------------- */

/* number: the path's number, for the message. */
static void refuse(struct zkl_step *s, int code, int number, const char *why)
{
    zkl_step_emit_code(s, ZKL_DO_FAIL, code, NULL);
    s->out->list[s->out->count - 1].number = number;
    zkl_step_leave(s, why);
}

/* Decide again, now that this is known. */
static void look_again(struct zkl_step *s, bool changed)
{
    bool listing = s->m->state == ZKL_CONTENDER_LISTING && !s->m->list_out;
    if (listing || (changed && s->m->state == ZKL_CONTENDER_WAITING))
        zkl_step_list_again(s, "another number of permits");
}

static void take_limit(struct zkl_step *s, int number)
{
    const struct zkl_quota *q = &s->m->lock_request.quota;
    bool changed = number != s->m->limit.permits;
    bool insists = !q->view->agreed && q->view->changes == 0 && q->view->permits != 0;
    if (insists && number != q->view->permits) {
        refuse(s, ZKL_EMISMATCH, number, "another number stands there");
        return;
    }
    if (number < q->want) {
        refuse(s, ZKL_EINVAL, number, "more than there are");
        return;
    }
    q->view->agreed = true;
    s->m->limit.permits = q->view->permits = number;
    s->m->limit.version = s->ev->reply->version;
    s->m->limit.czxid = s->ev->reply->czxid;
    look_again(s, changed);
}

/* No client has written the number, or Curator made the path. */
static void give_limit(struct zkl_step *s)
{
    struct zkl_limit *limit = &s->m->limit;
    limit->permits = 0;
    limit->version = s->ev->reply->version;
    if (s->m->lock_request.quota.view->permits == 0) {
        refuse(s, ZKL_EMISMATCH, 0, "no number stands there");
    } else if (!limit->out && s->m->state != ZKL_CONTENDER_LOOKING) { /* a look writes nothing */
        limit->out = true;
        limit->given = s->m->lock_request.quota.view->permits;
        zkl_step_emit(s, ZKL_DO_SET_LIMIT);
    }
}

static void on_limit(struct zkl_step *s)
{
    const struct zkl_event *ev = s->ev;
    int number = zkl_permits_parse(ev->reply->data, ev->reply->data_size);
    switch ((int)ev->reply->answer) {
    case ZKL_ANSWER_OK:
        if (number > 0)
            take_limit(s, number);
        else
            give_limit(s);
        break;
    case ZKL_ANSWER_LINK:
        s->m->limit.watched = false; /* again with the link */
        break;
    case ZKL_ANSWER_NONODE:
        s->m->limit.watched = false;
        if (s->m->lock_request.quota.view->permits == 0)
            refuse(s, ZKL_EMISMATCH, 0, "no number stands there");
        else
            look_again(s, false);
        break;
    case ZKL_ANSWER_NOAUTH:
        zkl_step_fail_denied(s, "READ");
        break;
    default:
        zkl_step_fail_odd(s, "reading the number of permits");
        break;
    }
}

static void on_limit_set(struct zkl_step *s)
{
    int given = s->m->limit.given;
    s->m->limit.given = 0;
    switch ((int)s->ev->reply->answer) {
    case ZKL_ANSWER_OK:
        if (given != 0)
            take_limit(s, given);
        else /* another one of the request wrote it */
            zkl_step_get_limit(s);
        break;
    case ZKL_ANSWER_LINK:
        break;
    case ZKL_ANSWER_NOTEMPTY: /* another client was faster */
        zkl_step_get_limit(s);
        break;
    case ZKL_ANSWER_NONODE:
        look_again(s, false);
        break;
    case ZKL_ANSWER_NOAUTH:
        zkl_step_fail_denied(s, "WRITE");
        break;
    default:
        zkl_step_fail_odd(s, "writing the number of permits");
        break;
    }
}

bool zkl_step_limit(struct zkl_step *s)
{
    const struct zkl_event *ev = s->ev;
    if (ev->type == ZKL_EV_LIMIT)
        on_limit(s);
    else if (ev->type == ZKL_EV_LIMIT_SET)
        on_limit_set(s);
    else if (ev->type == ZKL_EV_LIMIT_FIRED && !zkl_core_connected(s->core))
        s->m->limit.watched = false; /* again with the link */
    else if (ev->type == ZKL_EV_LIMIT_FIRED && s->m->limit.watched)
        zkl_step_emit(s, ZKL_DO_WATCH_LIMIT);
    else if (ev->type == ZKL_EV_WATCHED &&
             (ev->reply->answer == ZKL_ANSWER_NOMEM || ev->reply->answer == ZKL_ANSWER_FULL))
        zkl_step_fail_odd(s, "watching the number of permits");
    else
        return ev->type == ZKL_EV_LIMIT_FIRED;
    return true;
}

/* --- the predicate ------------------------------------------------------ */

/* What a look has shown is reported as a failure is, as no grant follows: ZKL_OK: there is room. */
static void end_look(struct zkl_step *s, int code, const char *why)
{
    zkl_step_fail(s, code, NULL, why);
}

void zkl_step_look_for_room(struct zkl_step *s)
{
    const struct zkl_quota *q = &s->m->lock_request.quota;
    bool there = s->ev->reply->answer == ZKL_ANSWER_OK;
    size_t leases = there ? zkl_step_look(s, NULL).contenders : 0;
    int known = s->m->limit.permits, limit = known > 0 ? known : q->view->permits;
    if (limit == 0) /* no server would say it now */
        zkl_step_move(s, ZKL_CONTENDER_PARKED, "number of permits not known");
    else if (leases + (size_t)q->want > (size_t)limit)
        end_look(s, ZKL_EBUSY, "full");
    else
        end_look(s, ZKL_OK, "some are free");
}

static void to_listing(struct zkl_step *s, const char *why)
{
    if (s->m->state != ZKL_CONTENDER_LISTING)
        zkl_step_move(s, ZKL_CONTENDER_LISTING, why);
}

/* The list was one without a watch: another one, with it, and then we wait. */
static void watch_lock_path(struct zkl_step *s)
{
    to_listing(s, "leases are to be watched");
    if (!zkl_core_connected(s->core))
        return; /* with the link */
    s->m->limit.watched = true;
    s->m->list_out = true;
    zkl_step_emit(s, ZKL_DO_WATCH_LIMIT);
    zkl_step_emit(s, ZKL_DO_LIST_LOCK_PATH);
}

static void wait_for_permit(struct zkl_step *s)
{
    zkl_step_move(s, ZKL_CONTENDER_WAITING, "full");
    if (!s->m->limit.watched) /* that was lost with a link, and this list is another one's */
        zkl_step_emit(s, ZKL_DO_WATCH_LIMIT);
    s->m->limit.watched = true;
    zkl_step_emit(s, ZKL_DO_WATCH_OWN);
}

/* It stood there when the list was made. */
static bool is_number_of_list(const struct zkl_step *s)
{
    const struct zkl_limit *limit = &s->m->limit;
    return limit->permits != 0 && limit->version == s->ev->reply->version &&
           limit->czxid == s->ev->reply->czxid;
}

void zkl_step_decide_permit(struct zkl_step *s)
{
    struct zkl_look look = zkl_step_look(s, s->m->node);
    if (!look.present) {
        zkl_step_requeue(s, "own node not in the list");
    } else if (!is_number_of_list(s)) {
        s->m->limit.permits = 0;
        to_listing(s, "number of permits not known");
        zkl_step_get_limit(s); /* and then the list again */
    } else if (look.contenders <= (size_t)s->m->limit.permits) {
        s->m->limit.watched = false;
        zkl_step_emit(s, ZKL_DO_UNWATCH_OTHERS);
        zkl_step_grant(s, "not more leases than permits");
    } else if (s->m->lock_request.try_only) {
        zkl_step_fail(s, ZKL_EBUSY, NULL, "somebody was faster");
    } else if (s->ev->type == ZKL_EV_LOCK_PATH_LISTED) {
        wait_for_permit(s);
    } else {
        watch_lock_path(s);
    }
}

/* The watch is used up: it fired, or a list that should have set it anew failed, which shows
 * nothing. */
static bool is_watch_over(const struct zkl_event *ev)
{
    bool failed = ev->reply->answer != ZKL_ANSWER_OK && ev->reply->answer != ZKL_ANSWER_NONODE;
    return ev->type == ZKL_EV_LOCK_PATH_FIRED || (ev->type == ZKL_EV_LOCK_PATH_LISTED && failed);
}

void zkl_in_waiting_for_permit(struct zkl_step *s)
{
    const struct zkl_event *ev = s->ev;
    if (zkl_step_limit(s))
        ;
    else if (is_watch_over(ev) && s->m->lock_request.quota.want > 1)
        watch_lock_path(s); /* one list for all of the request */
    else if (is_watch_over(ev))
        zkl_step_list_again(s, "leases changed");
    else if (ev->type == ZKL_EV_LINK_UP)
        zkl_step_list_again(s, "link up");
    else if (ev->type == ZKL_EV_LOCK_PATH_LISTED) { /* another one of this path had it listed */
        to_listing(s, "listed");
        zkl_step_decide_permit(s);
    } else
        zkl_step_common_lock_request(s);
}
