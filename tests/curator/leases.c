/* SPDX-License-Identifier: Apache-2.0 */
#include "leases.h"

#include <stdio.h>

int leases(const char *path)
{
    char below[256];

    snprintf(below, sizeof below, "%s/leases", path);
    return cluster_children(below);
}

int do_permits(void *arg)
{
    struct ask *ask = arg;
    struct zkl_wait wait = ZKL_WAIT_INIT;

    wait.deadline_ns = zkl_now_ns() + ask->ms * 1000000;
    wait.cancel = ask->cancel;
    return zkl_semaphore_acquire(ask->semaphore, ask->count, &wait, ask->permits);
}

int one_permit(struct zkl_semaphore *semaphore, int64_t ms, struct zkl_permit **permit)
{
    struct ask ask = {.semaphore = semaphore, .count = 1, .ms = ms};
    int rc = do_permits(&ask);

    *permit = ask.permits[0];
    return rc;
}
