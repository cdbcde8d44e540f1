/* SPDX-License-Identifier: Apache-2.0
 * Outstanding requests, by number. */
#ifndef ZKL_CORE_PENDING_H
#define ZKL_CORE_PENDING_H

#include "core.h"

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

#endif
