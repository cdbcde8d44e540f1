/* SPDX-License-Identifier: Apache-2.0 */
/* A wall clock that can be stepped: this program's own time(), gettimeofday() and clock_gettime() of
 * CLOCK_REALTIME, which the libraries it is linked with call too. All other clocks are the true
 * ones. */
#ifndef ZKCHAOS_CLOCK_H
#define ZKCHAOS_CLOCK_H

#include <stdatomic.h>

/* What the wall clock is off by, in nanoseconds; NULL: nothing. Before threads. */
void clock_step_by(atomic_llong *off_ns);

#endif
