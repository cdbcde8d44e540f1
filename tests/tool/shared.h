/* SPDX-License-Identifier: Apache-2.0 */
/* What a command under test leaves behind, also when it is killed: a file that it and the test have
 * mapped. */
#ifndef ZKTEST_TOOL_SHARED_H
#define ZKTEST_TOOL_SHARED_H

#include <stdatomic.h>
#include <stdint.h>

#include "mapped.h"

struct shared {
    atomic_llong alive_ns; /* CLOCK_BOOTTIME, the last time that a command worked */
    atomic_int pid;        /* of the last command that began */
    atomic_int begun, done;
    atomic_int overlaps;    /* found another one at work when it began */
    atomic_int signals[65]; /* how often each one came */
};

/* As mapped_file. */
static inline struct shared *shared_map(const char *name)
{
    return mapped_file(name, sizeof(struct shared));
}

#endif
