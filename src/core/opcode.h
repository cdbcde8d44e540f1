/* SPDX-License-Identifier: Apache-2.0
 * What the server at the other end does not know. ZooKeeper answers a request that it has no name for with
 * UNIMPLEMENTED and then hangs up (UnimplementedRequestProcessor); other servers just hang up, so that whoever
 * asks again comes back for ever. Twice in a row is taken for an answer: from then on, as long as the session
 * lasts, it is asked another way. */
#ifndef ZKL_CORE_OPCODE_H
#define ZKL_CORE_OPCODE_H

#include "core.h"

/* Let the request go another way where that is known to be needed; which operation it is then. */
enum zkl_opcode zkl_opcode_choose(const struct zkl_core *core, struct zkl_request *request);
/* A link broke, and this is of a request that has no answer because of that; NULL: it is not known any more. True:
 * that may be why. Those that were sent after it then are not asked. */
bool zkl_opcode_hung_up(struct zkl_core *core, struct zkl_pending *slot);
/* What it was to do is seen to be done, so it knew it. */
void zkl_opcode_carried_out(struct zkl_core *core, struct zkl_pending *slot);
/* The server has answered; true: that it does not know the request, and the next one goes another way. */
bool zkl_opcode_answered(struct zkl_core *core, const struct zkl_pending *slot,
                         enum zkl_answer answer);
/* Perhaps to another server. */
void zkl_opcode_link_up(struct zkl_core *core);
/* A new session: its servers may be others. */
void zkl_opcode_reset(struct zkl_core *core);

static inline bool zkl_opcode_is_unknown(const struct zkl_core *core, enum zkl_opcode opcode)
{
    return core->opcodes[opcode].unknown;
}

#endif
