/* SPDX-License-Identifier: Apache-2.0 */
/* What zklock run -v says while it waits, and tells a service manager: behind whom, since when, at
 * which place. */
#ifndef ZKLOCK_TOOL_STANDING_H
#define ZKLOCK_TOOL_STANDING_H

#include <pthread.h>
#include <stdbool.h>

#include "claim.h"

struct standing {
    const struct claim *claim;
    bool says; /* on standard error, too */
    int over;  /* a descriptor, readable once the wait is over */
    pthread_t thread;
    bool is_reported;
    int waited_ms; /* say_waits_ms before */
};

/* Report the claim's place once it is known, when it changes, and each minute, until standing_end,
 * and to a service manager, which else thinks that a start takes too long, that zklock is well.
 * Without memory or descriptors nothing is reported. */
void standing_report(struct standing *standing, const struct claim *claim, bool says);
void standing_end(struct standing *standing);

/* A log_fn: what the client finds wrong with the server. */
void standing_log(const struct zkl_log_event *event, void *unused);

#endif
