/* SPDX-License-Identifier: Apache-2.0
 * What came from the server, dealt out to those whom it is about. */
#ifndef ZKL_CORE_ANSWER_H
#define ZKL_CORE_ANSWER_H

#include "core.h"

/* The slot is awaited no more. */
void zkl_answer(struct zkl_core *core, struct zkl_pending *slot, const struct zkl_reply *reply);
/* The watch is over: each subscriber is told what for. */
void zkl_answer_disperse(struct zkl_core *core, struct zkl_watch *watch, struct zkl_event pred,
                         struct zkl_event own, struct zkl_event root);

#endif
