/* SPDX-License-Identifier: Apache-2.0 */
/* Does the ensemble keep its own promise? A client that shares no code with the library counts in one
 * node, at whatever server answers, as long as there are faults. A count that goes back is a write that
 * was acknowledged and is lost: then nothing that is built on the ensemble can be judged. */
#ifndef ZKCHAOS_CANARY_H
#define ZKCHAOS_CANARY_H

#include <pthread.h>

#include "shared.h"
#include "zkserver.h"

struct canary {
    pthread_t thread;
    struct shared *shared;
    const struct zks *zks;
    atomic_bool ends;
    atomic_bool still; /* it has no session: the shared's phase is not RUN */
    atomic_long counted;
    int32_t version; /* of its node, as it was last seen */
    int era;
};

/* 0 or -1. */
int canary_start(struct canary *c, struct shared *shared, const struct zks *zks);
void canary_stop(struct canary *c);

#endif
