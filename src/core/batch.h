/* SPDX-License-Identifier: Apache-2.0
 * A batch: contenders whose nodes are made in one transaction. Each is a machine of its own that
 * knows nothing of the others, and asks for its create and its list as ever. The batch waits until
 * all that still will ask have asked, and sends one transaction (transaction.h). */
#ifndef ZKL_CORE_BATCH_H
#define ZKL_CORE_BATCH_H

#include "requests.h"

struct zkl_batch {
    struct zkl_due due; /* first, see due.h */
    size_t refs;        /* its members, and its maker */
    size_t size, count;
    struct zkl_contender **members; /* count of them, in their order */
};

/* For at most size members, with one reference, the caller's; NULL: no memory. */
struct zkl_batch *zkl_batch_new(size_t size);
void zkl_batch_unref(struct zkl_core *core, struct zkl_batch *batch);
/* The contender's creates go through the batch until it ends. */
void zkl_batch_attach(struct zkl_batch *batch, struct zkl_contender *contender);
void zkl_batch_detach(struct zkl_core *core, struct zkl_contender *contender);
/* Creates of its members are out. */
bool zkl_batch_is_creating(const struct zkl_batch *batch);

/* --- from feed.c -------------------------------------------------------- */

/* A member asks for its create. A list that it asks for behind that is sent with it, or behind
 * it. */
void zkl_batch_create(struct zkl_core *core, struct zkl_contender *contender);
/* A member changed: check the batch when the event is over. */
void zkl_batch_touch(struct zkl_core *core, struct zkl_batch *batch);
/* When the event is over: send what the members asked for, if all have that still will. */
void zkl_batch_settle(struct zkl_core *core, struct zkl_due *due);
/* The session ended, and with it all that was asked for. */
void zkl_batch_reset(struct zkl_batch *batch);

#endif
