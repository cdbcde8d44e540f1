/* SPDX-License-Identifier: Apache-2.0
 * Objects that consist of several contenders: a group, a request for permits, a handle's local
 * queue. These calls receive the notifications of their members and record them. group.c, permits.c
 * and local_queue.c decide what follows when the event is over. */
#ifndef ZKL_CORE_COMPOSITE_H
#define ZKL_CORE_COMPOSITE_H

#include "group.h"
#include "permits.h"
#include "local_queue.h"
#include "read_cache.h"

/* News of a contender, to all that it is part of; false: they are its owner's, too. */
bool zkl_composite_notification(struct zkl_core *core, struct zkl_contender *c,
                                const struct zkl_notification *notification);

/* Check the group when the event is over. */
void zkl_group_touch(struct zkl_core *core, struct zkl_group *group);
void zkl_permits_touch(struct zkl_core *core, struct zkl_permits *permits);
void zkl_local_queue_touch(struct zkl_core *core, struct zkl_local_queue *local_queue);
void zkl_read_cache_touch(struct zkl_core *core, struct zkl_read_cache *cache);

/* It ends with this code, unless it does already. culprit: the member; notification: of it, or
 * NULL. */
void zkl_group_fail(struct zkl_group *group, int code, size_t culprit,
                    const struct zkl_notification *notification);
void zkl_permits_fail(struct zkl_permits *permits, int code, int number, const char *detail);
bool zkl_group_is_in_core(const struct zkl_group *group, const struct zkl_group_member *member);
bool zkl_permits_is_in_core(const struct zkl_permits *permits, const struct zkl_contender *c);

/* The only places that assign their states. */
void zkl_permits_move(struct zkl_core *core, struct zkl_permits *permits, enum zkl_permits_state to,
                      const char *why);
void zkl_local_queue_move(struct zkl_core *core, struct zkl_local_queue *local_queue,
                          enum zkl_local_queue_state to, const char *why);

void zkl_local_queue_set_holder(struct zkl_local_queue *local_queue, struct zkl_contender *c);
/* The fate of its node does not concern the others any more. */
void zkl_local_queue_forget_holder(struct zkl_core *core, struct zkl_local_queue *local_queue,
                                   const char *why);

/* A lease asks for the number of permits; true: another one of the request has, and shares it. */
bool zkl_permits_shares_limit(const struct zkl_contender *contender);

#endif
