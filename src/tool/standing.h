/* SPDX-License-Identifier: Apache-2.0 */
/* What zklock run -v says while it waits: behind whom, since when, at which place. */
#ifndef ZKLOCK_TOOL_STANDING_H
#define ZKLOCK_TOOL_STANDING_H

#include <pthread.h>
#include <stdbool.h>

#include "claim.h"

struct standing {
    const struct claim *claim;
    int over; /* a descriptor, readable once the wait is over */
    pthread_t thread;
    bool is_reported;
    int waited_ms; /* say_waits_ms before */
};

/* Report the claim's place once it is known, when it changes, and each minute, until standing_end.
 * Without memory or descriptors nothing is reported. */
void standing_report(struct standing *standing, const struct claim *claim);
void standing_end(struct standing *standing);

/* A log_fn: what the client finds wrong with the server. */
void standing_log(const struct zkl_log_event *event, void *unused);

#endif
