/* SPDX-License-Identifier: Apache-2.0
 * Group commit: creates and deletes of single locks that have nothing to do with each other, in
 * one transaction. The ensemble commits it once, and the client makes one call for all of them.
 *
 * Which requests wait for others. First, a create that needs no list, because its number alone
 * will say that it is the first (unlisted_grant.h), while no other contender of this client is
 * there. Second, the first delete of an unlocked hold's node, if the client knows of no contender
 * that waits for it: no other contender of its own is there, none queued before or behind it, and
 * none asked for its release. So these are never grouped: requests that others wait for, deletes
 * that may find nothing (a second one, a leftover's, a lapsed lease's), creates of contended
 * locks, of readers and writers, of permits, heartbeats and parents.
 *
 * When. Only while ZKL_GROUP_COMMIT_FROM creates and deletes of the client are under way, and
 * until the next of them is answered, or a transaction is full: the requests that came meanwhile
 * are sent then, deletes first. So there is no timer, a client that does one thing at a time never
 * waits, and no request waits longer than the answer to a request that is out already. The threads
 * of a transaction's members come back one after the other. So after as many parts were sent
 * together, one write under way is enough, until ZKL_GROUP_COMMIT_CREDIT times in a row fewer
 * were: else the first of them would be sent singly each time.
 *
 * What is sure.
 * - Tokens. All nodes of a transaction have its zxid, so it never has two creates of one path:
 *   both would be granted, one after the other, with equal tokens. A second one is not even
 *   without a list while the first is there, and is refused here besides. (Readers of one path
 *   could share one, as none excludes the other; their creates need a list, so they are not
 *   grouped.) A delete and a create at one path may be in it, in this order: the token of the
 *   deleted node is that of an earlier transaction.
 * - The zxid. It is found as a multi-lock's (transaction.h), by one request for all of them. An
 *   unexpected answer to it may concern the one path alone: then each member reads its own node,
 *   as after a create that is answered without a Stat, and none has the lock before.
 * - Failure. All or nothing is done (B5). If an answer names the part to blame, all are sent
 *   singly, deletes first, each in the order in which they came, so that it fails its own call
 *   only; and its path's writes are sent singly for ZKL_GROUP_COMMIT_SINGLY_MS, so that the next
 *   transaction does not meet it again. A transaction that could not be sent at all names no part:
 *   all are sent singly, and the next one leaves out none.
 * - A lost answer. Each create has a GUID of its own, drawn when it is sent, and the client
 *   searches for that; each delete is repeated singly. A request that has not been sent when the
 *   link breaks was not carried out, and is made anew. */
#ifndef ZKL_CORE_GROUP_COMMIT_H
#define ZKL_CORE_GROUP_COMMIT_H

#include "core.h"

#define ZKL_GROUP_COMMIT_CREDIT 8
#define ZKL_GROUP_COMMIT_SINGLY_MS 10000
#define ZKL_GROUP_COMMIT_BYTES_MAX (128 * 1024) /* of one transaction: a server takes 1 MB */

/* --- from feed.c -------------------------------------------------------- */

/* True: the create, or the delete, waits for others. False: it must be sent now, singly. */
bool zkl_group_commit_holds_create(struct zkl_core *core, struct zkl_contender *c);
bool zkl_group_commit_holds_delete(struct zkl_core *core, struct zkl_contender *c);
/* The contender ends, or the request that it waits for will not be sent. */
void zkl_group_commit_forget(struct zkl_core *core, struct zkl_contender *c);
/* This contender begins. A try looks first, a multi-lock makes its nodes in a transaction of its
 * own, and readers and writers need a list: none of them may find what waits at its path. A mutex's
 * single create is sent behind or along. */
void zkl_group_commit_before(struct zkl_core *core, const struct zkl_contender *c);

/* --- when the event is over --------------------------------------------- */

/* Some wait, and what they waited for has come. */
bool zkl_group_commit_is_due(struct zkl_core *core);
/* All that wait. */
void zkl_group_commit_send(struct zkl_core *core);
/* The session ended, and with it all that was asked for. */
void zkl_group_commit_reset(struct zkl_core *core);

#endif
