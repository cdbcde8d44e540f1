/* SPDX-License-Identifier: Apache-2.0 */
/* A second judge, without faults: a lock that is free, and that nobody is granted though somebody waits,
 * is a wake-up that was lost. Time is counted in writes of the canary, so a slow machine is no fault.
 *
 * A lock is free while no seat has a hold of it. A multi-lock that waits may stand first at a lock
 * that it has not been granted (core/bundle.h): at one of LINKED. So these stand still only when all
 * of them are free and nobody is granted any, or when the others were granted so often meanwhile that
 * the multi-lock must have had its turn. The nodes of whoever was lost stand for a session's length:
 * nothing is judged until that time has passed without a new link or a loss. */
#ifndef ZKCHAOS_STANDSTILL_H
#define ZKCHAOS_STANDSTILL_H

#include "canary.h"
#include "testbed.h"

struct still {
    int64_t since_ms;
    long writes;         /* the canary's, at the beginning */
    long grants, others; /* of the lock, and of all LINKED, at the beginning */
};

struct standstill {
    struct testbed *testbed;
    const struct canary *canary;
    int64_t disturbances[CHAOS_PROCESSES], disturbed_ms[CHAOS_PROCESSES];
    struct still place[PLACES], linked;
    long seen;            /* writes of the canary */
    long judged, longest; /* the same: under this judge, and while one lock stood still */
};

/* As a time without faults begins. */
void standstill_begin(struct standstill *s, struct testbed *testbed, const struct canary *canary);
/* Often. A lock that stands still is reported. */
void standstill_look(struct standstill *s);

#endif
