/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ZKL_DRIVER_CLOCK_H
#define ZKL_DRIVER_CLOCK_H

#include <stdint.h>
#include <time.h>

#include "core/contender.h"

int64_t zkl_clock_mono_ns(void);
int64_t zkl_clock_boot_ns(void);
struct zkl_time zkl_clock_now(void);
/* The time of day, since 1970: for the ages of nodes, nothing else. */
int64_t zkl_clock_real_ms(void);
/* For pthread_cond_timedwait on a condition variable with that clock. */
struct timespec zkl_clock_timespec(int64_t mono_ns);

#endif
