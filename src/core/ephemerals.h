/* SPDX-License-Identifier: Apache-2.0
 * What the session owns. A server ends a session by one transaction with the paths of all its
 * ephemeral nodes. Servers refuse to read a transaction that is too long: followers hang up, the
 * leader steps down, and no server that has written it starts again (ZOOKEEPER-4306). The end comes
 * by a close, a kill or an expiry alike, so the bound is where nodes are made: a contender begins
 * only if its node's path fits beside those of all nodes that the session owns or may own. The
 * bytes count from the moment in which the create is due until the server has said that the node is
 * gone, or never was. */
#ifndef ZKL_CORE_EPHEMERALS_H
#define ZKL_CORE_EPHEMERALS_H

#include "core.h"

/* Of the contender's node in that transaction: its length, as a number, and the path. */
static inline size_t zkl_ephemerals_bytes_of(const struct zkl_core *core,
                                             const struct zkl_contender_machine *m)
{
    return sizeof(int32_t) + core->chroot_length + m->lock_request.path->length + 1 +
           zkl_name_length(&m->lock_request.naming);
}

/* Another node, of this contender, does not fit; its own does not count. Where a server may carry
 * out its last create yet, that one counts beside the next (leftovers.h). */
static inline bool zkl_ephemerals_are_full(const struct zkl_core *core,
                                           const struct zkl_contender *c)
{
    size_t nodes = c->machine.may_be_late ? 2 : 1;
    return core->ephemeral_bytes + nodes * c->node_bytes > core->ephemeral_bytes_max;
}

/* Its node will stay until the session ends: it may not be deleted, or not be looked for. */
static inline void zkl_ephemerals_leave(struct zkl_core *core, const struct zkl_contender *c)
{
    core->ephemeral_bytes += c->node_bytes;
    core->ephemeral_bytes_left += c->node_bytes;
}

/* The session has ended, and its contenders know. */
static inline void zkl_ephemerals_forget(struct zkl_core *core)
{
    core->ephemeral_bytes -= core->ephemeral_bytes_left;
    core->ephemeral_bytes_left = 0;
}

#endif
