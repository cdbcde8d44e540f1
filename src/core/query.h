/* SPDX-License-Identifier: Apache-2.0
 * Queries: one thing that a caller wants to know or done, apart from any contender. */
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
