/* SPDX-License-Identifier: Apache-2.0
 * What came from the server, dealt out to those whom it is about. */
#ifndef ZKL_CORE_DISPATCH_REPLY_H
#define ZKL_CORE_DISPATCH_REPLY_H

#include "core.h"

/* The slot is awaited no more. */
void zkl_answer(struct zkl_core *core, struct zkl_pending *slot, const struct zkl_reply *reply);
void zkl_answer_stamp(struct zkl_core *core, const struct zkl_reply *reply);
/* The watch has fired and is over: each subscriber is told. */
void zkl_answer_fired(struct zkl_core *core, struct zkl_watch *watch, enum zkl_fired what);
#endif
