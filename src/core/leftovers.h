/* SPDX-License-Identifier: Apache-2.0
 * Leftovers: nodes that are this client's, or may still become so, and belong to no place of it. A
 * contender deletes its own node, as the janitor's (LEAVING) if its owner has gone on. Two kinds of
 * nodes it can't, because it does not know them in time. They are kept here, by their GUIDs, and
 * deleted by whoever sees them: a list of the path that anyone asked for, or the look below.
 *
 * Late creates. A create whose answer was lost with the link, and that a list behind a barrier over
 * the next link did not show. Usually it was not carried out. But a server may have read it from
 * the old connection, and carry it out whenever that thread goes on (B13). The contender makes
 * another node, or ends. So the GUID is kept until the session ends. The janitor lists the path
 * once more, a session timeout later. Until then a late node may block others. One that comes later
 * still is deleted once a contender of this client lists the path, or with the session.
 *
 * Nodes of the session before. Where a server ends a session that it could go on with, or the
 * second handle is taken, they live on for up to a timeout, and the client's next node would wait
 * behind its own. Their names are known, with few exceptions: those that are kept as above. They
 * are deleted by one transaction (ZKL_TRANSACTION_MAX nodes each) before anything is made in the new
 * session. Where the session's end has removed them already it fails, and nothing else is sent:
 * then they are looked for in lists only, for two timeouts.
 *
 * Why this breaks no exclusion. A name has a GUID, and is never made twice. So a delete hits this
 * node or none, and a node that is no hold's excludes nobody. A hold's node is deleted only when its
 * owner can't rely on it any more: the owner was notified of the loss, as the session ended, and the
 * window is empty from then on. But an owner that asked before may still count on the window that it
 * was told. So the node stays until that window is over by CLOCK_BOOTTIME, as it would have done on
 * a server that ends no session early (deferred_until in leftovers.c). That covers retained nodes,
 * permits, members of a multi-lock and readers' common node: each is a contender that HOLDS. An
 * owner that has unlocked counts on nothing.
 *
 * How much. An entry is 100 to 700 bytes. At most ZKL_LEFTOVERS_MAX are kept; the oldest goes first.
 * Creates that were answered are never here, so nothing is while links last. */
#ifndef ZKL_CORE_LEFTOVERS_H
#define ZKL_CORE_LEFTOVERS_H

#include "core.h"

#define ZKL_LEFTOVERS_MAX 4096

struct zkl_leftover {
    struct zkl_leftover *next;
    int64_t due_mono_ns;   /* when it is deleted, or looked for; INT64_MAX: when a list shows it */
    int64_t until_mono_ns; /* it can't be there any more; INT64_MAX: this session's */
    size_t bytes;          /* of it in ephemerals.h, while it may come, or is to be deleted */
    uint32_t path_hash;
    bool is_named; /* name is the whole one, else what it begins with */
    bool is_seen;  /* a list showed it; a node that is only named may be gone */
    bool is_out;   /* its delete is, or the list of its path */
    char name[ZKL_NODE_NAME_MAX + 1];
    char path[];
};

/* The contender gives up looking for its last create, which may be carried out yet. */
void zkl_leftovers_expect(struct zkl_core *core, const struct zkl_contender *c);
/* The contenders' nodes are those of a session that has ended; its window would have lasted until
 * window_end_boot. Before they are notified. */
void zkl_leftovers_inherit(struct zkl_core *core, int64_t window_end_boot, int64_t timeout_ns);
/* A link is up: what is known by name is deleted before anything is made. */
void zkl_leftovers_link_up(struct zkl_core *core);
/* A list of path's children. */
void zkl_leftovers_listed(struct zkl_core *core, const char *path, const struct zkl_reply *reply);
/* The answer to a request of this file. */
void zkl_leftovers_answer(struct zkl_core *core, struct zkl_pending *slot,
                          const struct zkl_reply *reply);
void zkl_leftovers_timer(struct zkl_core *core);
/* When that is due, on CLOCK_MONOTONIC; INT64_MAX: never. */
int64_t zkl_leftovers_next(const struct zkl_core *core);
void zkl_leftovers_clear(struct zkl_core *core);

#endif
