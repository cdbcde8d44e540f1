/* SPDX-License-Identifier: Apache-2.0
 * Distributes what comes from the server to the objects that it concerns. */
#ifndef ZKL_CORE_DISPATCH_REPLY_H
#define ZKL_CORE_DISPATCH_REPLY_H

#include "core.h"

/* The slot is awaited no more. */
void zkl_answer(struct zkl_core *core, struct zkl_pending *slot, const struct zkl_reply *reply);
void zkl_answer_stamp(struct zkl_core *core, const struct zkl_reply *reply);
/* The watch has fired and is over: notify each subscriber. */
void zkl_answer_fired(struct zkl_core *core, struct zkl_watch *watch, enum zkl_fired what);

#endif
