/* SPDX-License-Identifier: Apache-2.0
 *
 * The exhausted counter. ZooKeeper's sequence counter stops at 2^31-1. From there on every
 * contender would get the same number, so such a number is never granted. Its owner withdraws,
 * waits until the path is empty, and has it deleted and made again. One state of the contender's
 * machine, a pure step; contender.c calls it. */
#include <zklock/zklock.h>

#include "step.h"

/* --- the exhausted counter ---------------------------------------------- */

static void fail_blocked(struct zkl_step *s, const char *detail)
{
    zkl_step_fail(s, ZKL_EEXHAUSTED, detail, "root can't be renewed");
}

/* A child that no lock's end will take away; named locks of other names are contenders, too. */
static const char *find_blocker(const struct zkl_step *s)
{
    for (size_t i = 0; i < s->ev->reply->child_count; i++) {
        struct zkl_naming naming;
        struct zkl_node_name place;
        if (!zkl_name_recognise(s->ev->reply->children[i], &naming, &place))
            return s->ev->reply->children[i];
    }
    return NULL;
}

/* A node that stays until a contender queues behind it, which none can here. If several hold
 * together and no other contender is there, the first of them: the next one after its deletion.
 * NULL: the others leave by themselves. */
static const char *find_kept(const struct zkl_step *s, const struct zkl_look *look)
{
    struct zkl_node_name place;
    bool all = look->retained_before + look->retained_beside == look->contenders;
    for (size_t i = 0; (all || look->contenders == 1) && i < s->ev->reply->child_count; i++) {
        const char *name = s->ev->reply->children[i];
        if (zkl_name_parse(name, &s->m->lock_request.naming, &place) && zkl_name_is_retained(name))
            return name;
    }
    return NULL;
}

static void judge_lock_path(struct zkl_step *s)
{
    const struct zkl_event *ev = s->ev;
    struct zkl_look look = zkl_step_look(s, NULL);
    const char *blocker = find_blocker(s);
    if (s->m->exhausted_at == 0) {
        /* The create failed without a number of ours to date it. Try once more under a path whose
         * birth is known; if that fails too, this one is exhausted. */
        s->m->exhausted_at = ev->reply->czxid;
        zkl_step_requeue(s, "dating the root");
    } else if (ev->reply->czxid > s->m->exhausted_at) {
        s->m->exhausted_at = 0;
        zkl_step_requeue(s, "root is new");
    } else if (look.contenders == 0 && blocker) {
        fail_blocked(s, blocker);
    } else if (ev->reply->child_count > 0 && s->m->lock_request.try_only) {
        zkl_step_fail(s, ZKL_EBUSY, NULL, "path waits for its renewal");
    } else if (ev->reply->child_count == 0 && !s->m->renew_out) {
        s->m->renew_out = true;
        zkl_step_emit(s, ZKL_DO_RENEW);
    } else if (find_kept(s, &look)) {
        zkl_step_emit(s, ZKL_DO_REVOKE)->name = find_kept(s, &look);
    } /* else: contenders leave, and the child watch reports it */
}

static void on_lock_path_listed(struct zkl_step *s)
{
    switch ((int)s->ev->reply->answer) {
    case ZKL_ANSWER_OK:
        judge_lock_path(s);
        break;
    case ZKL_ANSWER_NONODE:
        s->m->exhausted_at = 0;
        zkl_step_requeue(s, "root is gone");
        break;
    case ZKL_ANSWER_LINK:
        break; /* again with the link */
    case ZKL_ANSWER_NOAUTH:
        zkl_step_fail_denied(s, "READ");
        break;
    default:
        zkl_step_fail_odd(s, "listing the path");
        break;
    }
}

static void on_renewed(struct zkl_step *s)
{
    if (s->ev->reply->answer == ZKL_ANSWER_NOAUTH)
        fail_blocked(s, "its ACL or its parent's (DELETE and CREATE are needed there)");
    else if (s->ev->reply->answer != ZKL_ANSWER_OK && s->ev->reply->answer != ZKL_ANSWER_LINK &&
             s->ev->reply->answer != ZKL_ANSWER_NONODE &&
             s->ev->reply->answer != ZKL_ANSWER_EXISTS &&
             s->ev->reply->answer != ZKL_ANSWER_NOTEMPTY)
        zkl_step_fail_odd(s, "renewing the path");
    else
        /* done, or another contender arrived in between: the path shows which */
        zkl_step_look_at_lock_path(s);
}

static void on_withdrawn(struct zkl_step *s)
{
    s->m->delete_out = false;
    if (s->ev->reply->answer == ZKL_ANSWER_NOAUTH) {
        s->m->on_server = false; /* it can't be deleted by us; nothing to hand to the janitor */
        fail_blocked(s, "our own node there, which the path's ACL forbids to delete");
    } else if (s->ev->reply->answer == ZKL_ANSWER_OK || s->ev->reply->answer == ZKL_ANSWER_NONODE) {
        s->m->on_server = false;
        zkl_step_look_at_lock_path(s);
    } else if (s->ev->reply->answer != ZKL_ANSWER_LINK) {
        zkl_step_fail_odd(s, "withdrawing the node"); /* the janitor tries on */
    }
}

void zkl_in_exhausted(struct zkl_step *s)
{
    const struct zkl_event *ev = s->ev;
    if (ev->type == ZKL_EV_DELETED)
        on_withdrawn(s);
    else if (ev->type == ZKL_EV_LOCK_PATH_LISTED)
        on_lock_path_listed(s);
    else if (ev->type == ZKL_EV_RENEWED)
        on_renewed(s);
    else if (ev->type == ZKL_EV_LOCK_PATH_FIRED)
        zkl_step_look_at_lock_path(s);
    else if (ev->type == ZKL_EV_LINK_UP && s->m->on_server)
        zkl_step_send_delete(s);
    else if (ev->type == ZKL_EV_LINK_UP)
        zkl_step_look_at_lock_path(s);
    else
        zkl_step_common_lock_request(s);
}
