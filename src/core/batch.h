/* SPDX-License-Identifier: Apache-2.0
 * A batch: contenders whose nodes are made in one transaction, and deleted in one. Each is a
 * machine of its own that knows nothing of the others, and asks for its create and its list as
 * ever. The batch waits until all that still will ask have asked, sends one transaction, and
 * distributes the one answer to all.
 *
 * Failure. If one create fails, nothing was made: the contender to blame hears why, the others
 * hear ROLLED_BACK and ask again. If the answer is lost, each contender looks for its own node. If
 * one delete of several fails, all are sent singly.
 *
 * The zxid, which all nodes of a transaction share, is the token. The answer does not contain it:
 * that to a plain create in a transaction has no Stat, and libzookeeper knows no other one there
 * (B85). So one of the nodes is read for it, and the lists are sent along: two round trips. A
 * member whose node that shows to be missing queues again. A node that another client deletes
 * afterwards, and any other member's that is missing, is a holder's that was deleted by hand:
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
#ifndef ZKL_CORE_BATCH_H
#define ZKL_CORE_BATCH_H

#include "requests.h"

struct zkl_batch {
    struct zkl_due due; /* first, see due.h */
    size_t refs;        /* its members, and its maker */
    size_t size, count;
    bool ahead;           /* lists went out with the creates, whose zxid is still to be found */
    bool named;           /* names is set */
    bool collecting;      /* deletes are put together until zkl_batch_send_deletes */
    bool is_group_commit; /* of one transaction, which its members leave with the answer */
    /* the deletes in gone are in the creating transaction, before the creates */
    bool deletes_along;
    size_t stat_member; /* the member whose node is read for the transaction's zxid */
    struct zkl_pending create, stat, remove;
    struct zkl_contender **members; /* count of them, in their order */
    struct zkl_contender **made;    /* size: those in the creating transaction; NULL: not in it */
    struct zkl_contender **gone;    /* size: likewise for the deleting one */
    size_t made_count, gone_count;
    char (*names)[ZKL_NODE_NAME_MAX + 1]; /* of the nodes made, until the zxid is known */
};

/* For at most size members, with one reference, the caller's; NULL: no memory. */
struct zkl_batch *zkl_batch_new(size_t size);
void zkl_batch_unref(struct zkl_core *core, struct zkl_batch *batch);
/* The contender's requests go through the batch until it ends or is detached. */
void zkl_batch_attach(struct zkl_batch *batch, struct zkl_contender *contender);
void zkl_batch_detach(struct zkl_core *core, struct zkl_contender *contender);

/* --- from feed.c -------------------------------------------------------- */

/* A member asks for its create, its list, or its delete; false: send it singly. */
bool zkl_batch_create(struct zkl_core *core, struct zkl_contender *contender);
bool zkl_batch_list(struct zkl_contender *contender);
bool zkl_batch_delete(struct zkl_contender *contender);
/* Singly. */
void zkl_core_send_delete(struct zkl_core *core, struct zkl_contender *contender);
/* A member changed: check the batch when the event is over. */
void zkl_batch_touch(struct zkl_core *core, struct zkl_batch *batch);
/* When the event is over: send what the members asked for, if all have that still will. */
void zkl_batch_settle(struct zkl_core *core, struct zkl_batch *batch);
/* The session ended, and with it all that was asked for. */
void zkl_batch_reset(struct zkl_batch *batch);

/* --- from those who use it ---------------------------------------------- */

/* Deletes from here on go out together, in the order asked, by zkl_batch_send_deletes. */
void zkl_batch_collect(struct zkl_batch *batch);
void zkl_batch_send_deletes(struct zkl_core *core, struct zkl_batch *batch);
/* Or, of a group commit: what a member asks for, and all of that. */
void zkl_batch_add(struct zkl_batch *batch, struct zkl_contender *contender, bool is_delete);
void zkl_batch_send(struct zkl_core *core, struct zkl_batch *batch);

/* --- batch_reply.c ------------------------------------------------------ */

void zkl_batch_answer(struct zkl_core *core, struct zkl_pending *slot,
                      const struct zkl_reply *reply);
/* A list of a member was answered. True: do not feed it to the member. No member waits for it, or
 * the batch asks for everything once more. */
bool zkl_batch_listed(struct zkl_core *core, struct zkl_contender *contender,
                      const struct zkl_reply *reply);
/* Creates and deletes that wait to be grouped and will not be sent: of stopped contenders, or all,
 * as the link is down. */
void zkl_batch_cancel_held(struct zkl_core *core);
/* Notify the members that were stopped before their creates had been sent that they will not be. */
void zkl_batch_cancel_creates(struct zkl_core *core, struct zkl_batch *batch);

/* --- for batch_reply.c ---------------------------------------------------- */

/* Some nodes may have been made, and an answer will show it. */
bool zkl_batch_is_creating(const struct zkl_batch *batch);
/* This client changed the children of the contender's path. */
void zkl_batch_count_own(struct zkl_contender *c);
void zkl_batch_look_at(const struct zkl_core *core, struct zkl_contender *c,
                       const struct zkl_reply *reply);
/* Without another list: those who share one first. */
void zkl_batch_forget_lists(struct zkl_core *core, struct zkl_batch *batch);
/* The answer names the nodes but not their zxid, which they all share: query one of them. The
 * lists, one for each lock path, are sent along. */
void zkl_batch_ask_for_zxid(struct zkl_core *core, struct zkl_batch *batch);
void zkl_batch_delete_singly(struct zkl_core *core, struct zkl_batch *batch);

#endif
