/* SPDX-License-Identifier: Apache-2.0
 * What the server at the other end does not know. ZooKeeper answers a request of an unknown type
 * with UNIMPLEMENTED and then hangs up (UnimplementedRequestProcessor). Other servers just hang up,
 * so that a client that asks again would come back forever. Where there is another way, the library
 * takes two hang-ups in a row for an answer, or one that ended the session too. From then on it
 * uses another operation, until it tries the first one again ten minutes later, over the next new
 * link. Where there is none, links that end so six times in a row are used after a pause only
 * (session.c). */
#ifndef ZKL_CORE_OPCODE_H
#define ZKL_CORE_OPCODE_H

#include "core.h"

/* Let the request use another operation if that is known to be necessary; returns the operation. */
enum zkl_opcode zkl_opcode_choose(const struct zkl_core *core, struct zkl_request *request);
/* A link broke, and this is of a request that has no answer because of that, in the order of their
 * sending; NULL: it is not known any more. */
void zkl_opcode_hung_up(struct zkl_core *core, struct zkl_pending *slot);
/* The effect of the request has been seen, so the server knew the operation. */
void zkl_opcode_carried_out(struct zkl_core *core, struct zkl_pending *slot);
/* The server has answered; true: it does not know the operation, and the next request uses
 * another. */
bool zkl_opcode_answered(struct zkl_core *core, const struct zkl_pending *slot,
                         enum zkl_answer answer);
/* Before it is decided when a new link is used: what the last one that was used was good for. */
void zkl_opcode_link_comes(struct zkl_core *core);
/* Perhaps to another server. */
void zkl_opcode_link_up(struct zkl_core *core);
void zkl_opcode_session_ended(struct zkl_core *core);

static inline bool zkl_opcode_is_unknown(const struct zkl_core *core, enum zkl_opcode opcode)
{
    return core->opcodes[opcode].unknown;
}

#endif
