/* SPDX-License-Identifier: Apache-2.0
 * Outstanding requests, by number, and those that a contender sends for itself. Nothing is decided
 * here. */
#ifndef ZKL_CORE_REQUESTS_H
#define ZKL_CORE_REQUESTS_H

#include "core.h"

#define ZKL_NODE_PATH_MAX (ZKL_PATH_MAX + 1 + ZKL_NODE_NAME_MAX)

/* --- what is awaited ------------------------------------------------------ */

/* Send request and await its answer in slot (whose older answer, if any, is forgotten). The slot's
 * owner, if it has one, is set by the caller. */
void zkl_pending_send(struct zkl_core *core, struct zkl_pending *slot, struct zkl_request *request);
/* Act as if the port had refused a request of this kind: the answer comes when the present step is
 * over. */
void zkl_pending_refuse(struct zkl_core *core, struct zkl_pending *slot, enum zkl_request_kind kind,
                        enum zkl_answer refusal);
/* The answer, should it come, is dropped. */
void zkl_pending_forget(struct zkl_core *core, struct zkl_pending *slot);
/* Take the slot of an answer that came; NULL: no object awaits it. */
struct zkl_pending *zkl_pending_take(struct zkl_core *core, uint64_t id);
/* A request that could not be sent, one after the other; NULL: none is left. */
struct zkl_pending *zkl_pending_take_refused(struct zkl_core *core, enum zkl_answer *answer);
/* The session ended: nothing is awaited. */
void zkl_pending_clear(struct zkl_core *core);

/* --- what a contender sends ----------------------------------------------- */

/* The path of a child of the contender's lock path. */
void zkl_core_node_path(const struct zkl_contender *c, const char *name, char *out);
/* Likewise, or the lock path itself if name is "". A stranger's name may be long: small if it fits,
 * else memory that the caller must free; NULL: no memory. */
char *zkl_core_child_path(const struct zkl_contender *c, const char *name,
                          char small[ZKL_NODE_PATH_MAX + 1]);
/* Draws a new GUID: the path of a sequential create. */
void zkl_core_new_name(struct zkl_core *core, struct zkl_contender *c, char *path);

void zkl_core_send_create(struct zkl_core *core, struct zkl_contender *c);
/* A read lock's, under its owner's write lock. */
void zkl_core_send_create_downgraded(struct zkl_core *core, struct zkl_contender *c);
/* The path or a parent of it. */
void zkl_core_send_make(struct zkl_core *core, struct zkl_contender *c);
void zkl_core_send_list(struct zkl_core *core, struct zkl_contender *c);
void zkl_core_send_barrier(struct zkl_core *core, struct zkl_contender *c);
/* About the path's node; or about the contender's own. */
void zkl_core_send_lock_path(struct zkl_core *core, struct zkl_contender *c, int slot,
                             enum zkl_request_kind kind);
void zkl_core_send_node(struct zkl_core *core, struct zkl_contender *c, int slot,
                        enum zkl_request_kind kind);
/* The semaphore's number of permits. */
void zkl_core_send_limit(struct zkl_core *core, struct zkl_contender *c);
/* Ask the owner of this child to release the lock. */
void zkl_core_send_revocation(struct zkl_core *core, struct zkl_contender *c, const char *name);

#endif
