/* SPDX-License-Identifier: Apache-2.0
 * Queries: what a caller wants to know or done apart from any contender (inspect, revoke, break,
 * the number of permits for all). One request, and one answer. Without a link the query is parked
 * and goes out with the next one. When its answer was lost the client asks again, except for writes
 * that say `once`. The asker of such a write hears that the outcome is unknown, and looks for
 * itself. An expiry changes nothing for a query. Close and a refused credential end it with their
 * codes.
 *
 * One kind gets a state for an answer instead of a reply: WATCH waits until a path is not the node
 * with a given czxid any more. It subscribes to the path's data watch, which contenders of the
 * client may share, and sends an `exists` behind it. ZooKeeper answers in order, so the node that
 * the answer shows is watched. A deletion event is the end. After any other event, and after each
 * reconnect, WATCH looks again. The last subscriber to withdraw has the watch removed, as with
 * contenders.
 *
 * A thread asks one or more at the same time with `zkl_query_all` (`src/api/awaited_query.h`). That
 * waits in `wait.c` as a lock call does: one deadline, one cancel object, the same list of cancel
 * descriptors.
 *
 * - `zkl_inspect` lists behind a sync and reads all children together (512 at a time). It judges
 *   them by name with the predicate that grants locks (`src/core/listing.c`). It first leaves out
 *   what was deleted in between, so the first that is left is the holder it has become. `leases`
 *   with a permit, or beside `locks`, makes a path a semaphore. `locks` alone is a mutex of that
 *   name: a semaphore looks like that only until its first permit.
 * - `zkl_break` reads the node behind a sync, compares the czxid, and deletes with the version it
 *   saw. What another client wrote in between makes it look again. If the leader knows no node that
 *   a read shows before and after, the server has data of its own (B113 of beliefs-reads.md), and
 *   the call fails with `ZKL_EPROTO`. So does `zkl_revoke`.
 * - `zkl_revoke` is a write, a WATCH, and with force the same deletion. */
#ifndef ZKL_CORE_QUERY_H
#define ZKL_CORE_QUERY_H

#include "core.h"

void zkl_query_begin(struct zkl_core *core, struct zkl_query *query);
void zkl_query_withdraw(struct zkl_core *core, struct zkl_query *query);

/* The answer to its request. */
void zkl_query_answer(struct zkl_core *core, struct zkl_query *query,
                      const struct zkl_reply *reply);
/* The watch it subscribed to fired (PRED_FIRED) or could not be armed (WATCHED); deleted: the node
 * at the path was deleted. */
void zkl_query_watched(struct zkl_core *core, struct zkl_query *query, bool deleted,
                       const struct zkl_event *event);

/* Send waiting queries again: with the link, ... */
void zkl_query_link_up(struct zkl_core *core);
/* ... or after a while, where it did not go out. */
void zkl_query_retry(struct zkl_core *core);
/* The session ended: nothing is awaited and nothing watched any more. */
void zkl_query_expired(struct zkl_core *core);
/* All end with this code. */
void zkl_query_end_all(struct zkl_core *core, int code);

#endif
