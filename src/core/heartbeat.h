/* SPDX-License-Identifier: Apache-2.0
 * The checks of our own nodes: they prove the session, and show which nodes were deleted. A node
 * that the server does not let us check would fail every one of these transactions. So the
 * heartbeat leaves it out, its own hold is suspect, and now and then the client tries it again,
 * apart from the others. */
#ifndef ZKL_CORE_HEARTBEAT_H
#define ZKL_CORE_HEARTBEAT_H

#include "core.h"

/* Send what is due. */
void zkl_heartbeat_timer(struct zkl_core *core);
/* When something will be, on CLOCK_MONOTONIC; INT64_MAX: never. */
int64_t zkl_heartbeat_next(const struct zkl_core *core, struct zkl_time now);
/* Send the requested heartbeat; false: none is requested, or it is too early. */
bool zkl_heartbeat_if_wanted(struct zkl_core *core);
void zkl_heartbeat_answered(struct zkl_core *core, struct zkl_pending *slot,
                            const struct zkl_reply *reply);

#endif
