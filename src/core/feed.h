/* SPDX-License-Identifier: Apache-2.0
 * One event to one contender, and its immediate consequences. */
#ifndef ZKL_CORE_FEED_H
#define ZKL_CORE_FEED_H

#include "pred_proof.h"
#include "requests.h"

/* One step, and its consequences; the contender may be freed afterwards. */
void zkl_core_feed(struct zkl_core *core, struct zkl_contender *c, struct zkl_event event);
void zkl_core_feed_reply(struct zkl_core *core, struct zkl_contender *c, enum zkl_event_type type,
                         const struct zkl_reply *reply);
void zkl_core_feed_type(struct zkl_core *core, struct zkl_contender *c, enum zkl_event_type type);
/* As zkl_core_feed_reply, of an answer that no server has given. */
void zkl_core_feed_answer(struct zkl_core *core, struct zkl_contender *c, enum zkl_event_type type,
                          enum zkl_answer answer);
/* To all for which want returns true (NULL: to all), oldest first. */
void zkl_core_feed_all(struct zkl_core *core, struct zkl_event event,
                       bool (*want)(const struct zkl_contender_machine *m));
/* To those that count for it, oldest first. */
void zkl_core_feed_counted(struct zkl_core *core, enum zkl_event_type type, enum zkl_count count);
/* End its lock request with this code. */
void zkl_core_feed_stop(struct zkl_core *core, struct zkl_contender *c, int code);
/* The predecessor's node is deleted, as the event says. */
void zkl_feed_pred_gone(struct zkl_core *core, struct zkl_contender *c, struct zkl_event event,
                        enum zkl_pred_end end);
/* Unlock it or end its lock request, whichever applies; nothing if it is on its way out. Its owner
 * has been notified of something else, or will be. */
void zkl_core_back_out(struct zkl_core *core, struct zkl_contender *c);
/* Its first step. */
void zkl_core_start(struct zkl_core *core, struct zkl_contender *c,
                    const struct zkl_lock_request *lock_request);

#endif
