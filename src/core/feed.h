/* SPDX-License-Identifier: Apache-2.0
 * What core.c does for the other parts of the core: one event to one contender, and its requests. */
#ifndef ZKL_CORE_FEED_H
#define ZKL_CORE_FEED_H

#include "core.h"

#define ZKL_NODE_PATH_MAX (ZKL_PATH_MAX + 1 + ZKL_NODE_NAME_MAX)

/* One step, and what follows from it; the contender may be gone afterwards. */
void zkl_core_feed(struct zkl_core *core, struct zkl_contender *c, struct zkl_event event);
void zkl_core_feed_type(struct zkl_core *core, struct zkl_contender *c, enum zkl_event_type type);
/* To all for which want says yes (NULL: to all), oldest first. */
void zkl_core_feed_all(struct zkl_core *core, struct zkl_event event,
                       bool (*want)(const struct zkl_contender_machine *m));
/* End its wish with this code. */
void zkl_core_feed_stop(struct zkl_core *core, struct zkl_contender *c, int code);
/* Tell of a decision, at the present time. */
void zkl_core_trace(struct zkl_core *core, struct zkl_trace trace);
/* Unlock it or end its wish, whichever it is; nothing if it is on its way out. Its owner has been told
 * of something else, or will be. */
void zkl_core_back_out(struct zkl_core *core, struct zkl_contender *c);
/* The link is up, or a server that would not do something is asked again: all that waited for that. */
void zkl_core_go_on(struct zkl_core *core);
/* A server would not do something: whoever may still want an answer asks again. */
void zkl_core_ask_again(struct zkl_core *core);
/* Its first step. */
void zkl_core_start(struct zkl_core *core, struct zkl_contender *c, const struct zkl_wish *wish);

/* Around everything that the owner asks for: the time, and what follows. */
void zkl_core_enter(struct zkl_core *core, struct zkl_time now);
void zkl_core_settle(struct zkl_core *core, struct zkl_time now);

/* Of a child of the contender's root. */
void zkl_core_node_path(const struct zkl_contender *c, const char *name, char *out);
/* Under a new GUID: the path that a sequential create is asked with. */
void zkl_core_new_name(struct zkl_core *core, struct zkl_contender *c, char *path);
void zkl_core_send_create(struct zkl_core *core, struct zkl_contender *c);
void zkl_core_send_list(struct zkl_core *core, struct zkl_contender *c);
void zkl_core_send_delete(struct zkl_core *core, struct zkl_contender *c);

#endif
