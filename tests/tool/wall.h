/* SPDX-License-Identifier: Apache-2.0 */
/* Wall clocks of servers that a test sets: wall.so, given to a server by LD_PRELOAD, adds to the machine's clock
 * what stands in a file. All other clocks of the server stay the true ones, and with them ticks and sessions. */
#ifndef ZKTEST_WALL_H
#define ZKTEST_WALL_H

#include <stdatomic.h>

#include "mapped.h"

#define WALL_VARIABLE "ZKL_TEST_WALL" /* names the file */

enum { WALL_CLOCKS = 32 };

struct wall {
    struct {
        atomic_int pid; /* 0: nobody's yet */
        atomic_llong off_ns;
    } clock[WALL_CLOCKS];
};

/* As mapped_file. */
static inline struct wall *wall_map(const char *name)
{
    return mapped_file(name, sizeof(struct wall));
}

/* What the clock of that process is off by; a new one is right. NULL: there are too many. */
static inline atomic_llong *wall_of(struct wall *wall, int pid)
{
    for (int i = 0; i < WALL_CLOCKS; i++) {
        int nobody = 0;
        if (atomic_load(&wall->clock[i].pid) == pid ||
            atomic_compare_exchange_strong(&wall->clock[i].pid, &nobody, pid))
            return &wall->clock[i].off_ns;
    }
    return NULL;
}

#endif
