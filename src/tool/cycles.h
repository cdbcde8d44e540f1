/* SPDX-License-Identifier: Apache-2.0 */
/* Cycles of waiting across locks: threads that wait for each other in a circle, as far
 * as each has what its nodes say. Known only for contenders whose data says "host pid thread"; see
 * nested.h for commands of zklock run. */
#ifndef ZKLOCK_TOOL_CYCLES_H
#define ZKLOCK_TOOL_CYCLES_H

#include "look.h"

/* One step of a circle: this one waits for the end of whom, which is the next one's. */
struct waiting {
    const struct seen *lock;
    const struct zkl_entry *waiter, *whom;
};

/* Called once for each circle that is found. */
typedef void cycle_fn(void *arg, const struct waiting *steps, size_t count);

/* 0, or -1: no memory. */
int cycles_find(const struct look *look, cycle_fn *fn, void *arg);

#endif
