/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ZKTEST_LEASES_H
#define ZKTEST_LEASES_H

#include "cluster.h"

/* That many, and no waiting for longer. */
static inline int take_permits(struct zkl_semaphore *semaphore, int count, int64_t ms,
                               struct zkl_permit *permits[])
{
    struct zkl_wait wait = ZKL_WAIT_INIT;

    wait.deadline_ns = zkl_now_ns() + ms * INT64_C(1000000);
    return zkl_semaphore_acquire(semaphore, count, &wait, permits);
}

#endif
