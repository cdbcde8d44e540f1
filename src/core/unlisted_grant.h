/* SPDX-License-Identifier: Apache-2.0
 * Grants without a list. ZooKeeper numbers the children of a node by counting those that were ever made
 * there. So who was first in the queue with number n, gave it back, and gets n + 1 for its next node is
 * first again: no other node was made in between, and none of those before n was left. The
 * answer to the create says it all.
 *
 * Three things have to be sure. The own delete of n has succeeded: its answer comes before that to the
 * create. Everybody before n had gone: n was granted. And the path's node is still the one
 * that gave the number n, as one made anew counts from 0: a watch on it, armed over the link that is up
 * since before n was deleted, has not fired, and the server tells of that before it answers the
 * create. (Until n was deleted the path's node had a child, so that nobody could delete it.) A client from which the
 * right to READ that node is taken hears nothing (B22): the keepalive finds that out by the ACL's version, a little
 * later; guarantees.md excepts it.
 *
 * The watch is asked for after some acquisitions in a row that nobody came between. From then on the
 * grant does not wait for the list. While other requests of the client are under way the list is not
 * even sent: two requests for a lock and its unlock, not three. Where somebody did come between, it
 * is sent then, which takes one round trip more, and the row begins anew. With nothing else under way it
 * goes out along with the create as ever: that takes no time, and spares the round trip. A multi-lock
 * leaves the lists out always, but for the first member's, which may tell the transaction's zxid. */
#ifndef ZKL_CORE_UNLISTED_GRANT_H
#define ZKL_CORE_UNLISTED_GRANT_H

#include "core.h"

/* Is the create of a contender that begins now to be sent without a list? */
bool zkl_unlisted_expects(const struct zkl_core *core, const struct zkl_contender *c);
/* Its create succeeded. Returns whether that alone makes it the first in the queue. */
bool zkl_unlisted_created(struct zkl_core *core, struct zkl_contender *c, const char *name);
/* Its delete goes out. */
void zkl_unlisted_leaves(const struct zkl_core *core, struct zkl_contender *c);
/* Its delete succeeded. */
void zkl_unlisted_left(struct zkl_contender *c);
/* The path's node was changed or deleted, or could not be watched. */
void zkl_unlisted_unsure(struct zkl_unlisted_grant *unlisted);
/* The owner gives it up: no contender uses it any more. In core.c. */
void zkl_unlisted_end(struct zkl_core *core, struct zkl_time now,
                      struct zkl_unlisted_grant *unlisted);

#endif
