/* SPDX-License-Identifier: Apache-2.0 */
/* Permits that are asked for, and a look at their nodes. */
#ifndef ZKTEST_LEASES_H
#define ZKTEST_LEASES_H

#include "cluster.h"

/* Nodes below path/leases: of the permits that are out, and of the next contender. */
int leases(const char *path);

/* An acquire, for actors: do_permits(ask). */
struct ask {
    struct zkl_semaphore *semaphore;
    int count;
    int64_t ms;
    struct zkl_cancel *cancel;
    struct zkl_permit *permits[ZKL_PERMITS_AT_ONCE_MAX];
};
int do_permits(void *ask);
/* One permit, and no waiting for longer. */
int one_permit(struct zkl_semaphore *semaphore, int64_t ms, struct zkl_permit **permit);

#endif
