/* SPDX-License-Identifier: Apache-2.0 */
/* CLOCK_BOOTTIME, the clock of windows: it runs on while the machine sleeps. */
#ifndef ZKLOCK_TOOL_CLOCK_H
#define ZKLOCK_TOOL_CLOCK_H

#include <stdint.h>
#include <time.h>

#define MS_NS INT64_C(1000000)
#define SECOND_NS INT64_C(1000000000)

static inline int64_t boot_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_BOOTTIME, &now);
    return now.tv_sec * SECOND_NS + now.tv_nsec;
}

#endif
