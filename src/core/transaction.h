/* SPDX-License-Identifier: Apache-2.0
 * A transaction: creates and deletes of several contenders that the ensemble carries out together
 * or not at all. It lives as long as its answers: a bundle or a group commit fills and sends it, or
 * whoever lets several contenders go at once; each contender leaves it with its own answer, and
 * the last one frees it.
 *
 * Failure. If one create of a bundle's fails, nothing was made: the contender to blame hears why,
 * the others hear ROLLED_BACK and ask again. If the answer is lost, each contender looks for its
 * own node. If one delete of several fails, all are sent singly. What follows for a group commit
 * stands in group_commit.h.
 *
 * The zxid, which all nodes of a transaction share, is the token. The answer does not contain it:
 * that to a plain create in a transaction has no Stat, and libzookeeper knows no other one there
 * (B85). So one of the nodes is read for it, and the lists are sent along: two round trips. A
 * contender whose node that shows to be missing queues again. A node that another client deletes
 * afterwards, and any other one that is missing, is a holder's that was deleted by hand:
 * heartbeats notice it.
 *
 * Where no other client changes the children of the first path, the first round trip shows the
 * zxid. A list comes with the path's Stat: how often its children have changed (cversion), and
 * which transaction changed them last (pzxid). The client keeps the first (struct
 * zkl_children_view), and counts its own creates and deletes that were answered since. If a later
 * list shows just as many changes, and the last one answered was the making of our nodes, then
 * nothing came after that, and pzxid is its zxid. So the lists are sent with the creates if the
 * list before this one was calm. If they don't show it after all, everything is asked for again
 * behind the names. What is kept counts over one link only, and for one incarnation of the path.
 *
 * Where the grants need no lists (unlisted_grant.h), only the first path's is sent, for the zxid:
 * 2 transactions and 1 read for a multi-lock; or 2 reads, where other clients change that path. */
#ifndef ZKL_CORE_TRANSACTION_H
#define ZKL_CORE_TRANSACTION_H

#include "requests.h"

struct zkl_transaction {
    size_t refs;      /* its contenders, and who fills or answers it */
    size_t size;      /* of each list below */
    bool ahead;       /* lists went out with the creates, whose zxid is still to be found */
    bool named;       /* names is set */
    size_t stat_part; /* the create whose node is read for the zxid */
    struct zkl_pending write, stat;
    /* Of each part its contender, or NULL once that has left; deletes come first. */
    struct zkl_contender **gone, **made;
    size_t gone_count, made_count;
    char (*names)[ZKL_NODE_NAME_MAX + 1]; /* of the nodes made, until the zxid is known */
};

/* For at most size creates and as many deletes; NULL: no memory. It is filled and sent by its
 * maker, whose it is no more then. */
struct zkl_transaction *zkl_transaction_new(size_t size);
void zkl_transaction_add(struct zkl_transaction *t, struct zkl_contender *c,
                         enum zkl_held_write what);
/* The first create's list may show the zxid: let it be one of a path where that is likely. */
void zkl_transaction_put_calm_first(const struct zkl_core *core, const struct zkl_transaction *t);
void zkl_transaction_send(struct zkl_core *core, struct zkl_transaction *t);

/* From here on deletes that contenders ask for go out together, in the order asked, by the second;
 * without memory they go singly. At most size are asked for. */
void zkl_transaction_collect_deletes(struct zkl_core *core, size_t size);
void zkl_transaction_send_deletes(struct zkl_core *core);

/* --- from feed.c -------------------------------------------------------- */

/* A contender asks for its delete; false: send it otherwise. */
bool zkl_transaction_takes_delete(struct zkl_core *core, struct zkl_contender *c);
/* Singly. */
void zkl_core_send_delete(struct zkl_core *core, struct zkl_contender *c);
/* The contender ends, or the session did: its part's answer concerns it no more. */
void zkl_transaction_leave(struct zkl_core *core, struct zkl_contender *c);

/* --- transaction_reply.c ------------------------------------------------ */

void zkl_transaction_answer(struct zkl_core *core, struct zkl_pending *slot,
                            const struct zkl_reply *reply);
/* A list of a contender was answered. True: do not feed it to the contender. It does not wait for
 * it, or its transaction asks for everything once more. */
bool zkl_transaction_listed(struct zkl_core *core, struct zkl_contender *c,
                            const struct zkl_reply *reply);
/* Creates and deletes that wait to be grouped and will not be sent: of stopped contenders, or all,
 * as the link is down. */
void zkl_transaction_cancel_held(struct zkl_core *core);

/* --- for transaction_reply.c -------------------------------------------- */

void zkl_transaction_unref(struct zkl_core *core, struct zkl_transaction *t);
/* In their order, what is left of them. */
void zkl_transaction_delete_singly(struct zkl_core *core, struct zkl_transaction *t);
/* This client changed the children of the contender's path. */
static inline void zkl_transaction_count_own(struct zkl_contender *c)
{
    c->machine.lock_request.path->view.own += c->machine.lock_request.views;
}
void zkl_transaction_look_at(const struct zkl_core *core, struct zkl_contender *c,
                             const struct zkl_reply *reply);
/* Without another list: those who share one first. */
void zkl_transaction_forget_lists(struct zkl_core *core, struct zkl_transaction *t);
/* The answer names the nodes but not their zxid, which they all share: query one of them. The
 * lists, one for each lock path, are sent along. */
void zkl_transaction_ask_for_zxid(struct zkl_core *core, struct zkl_transaction *t);

#endif
