/* SPDX-License-Identifier: Apache-2.0
 * What a core does by the clock: heartbeats, ends of leases and of the window, the keepalive, and
 * second attempts at requests that could not be sent. */
#ifndef ZKL_CORE_TIMERS_H
#define ZKL_CORE_TIMERS_H

#include "core.h"

/* Do what is due. */
void zkl_timers_timer(struct zkl_core *core);
/* When something will be, on CLOCK_MONOTONIC; INT64_MAX: never. */
int64_t zkl_timers_next(const struct zkl_core *core, struct zkl_time now);
/* A server refused something, over a link that stays: do not ask again immediately. */
void zkl_timers_ask_again(struct zkl_core *core);
/* From now on its hold lasts lease_ns more; false: it has ended. */
bool zkl_timers_begin_lease(struct zkl_core *core, struct zkl_contender *c, int64_t lease_ns);
/* A waiter delays something: ZKL_EV_WAITED within ZKL_PUT_OFF_MS. One time for all: the latest one
 * waits the shortest. */
static inline void zkl_timers_put_off(struct zkl_core *core)
{
    if (core->put_off_mono_ns == INT64_MAX)
        core->put_off_mono_ns = core->now.mono_ns + ZKL_PUT_OFF_MS * INT64_C(1000000);
}

/* The contender's hold may have a lease that ends before all others. */
static inline void zkl_timers_note_lease(struct zkl_core *core, const struct zkl_contender *c)
{
    int64_t end = c->machine.lease_end_boot;
    if (end != 0 && end < core->lease_boot)
        core->lease_boot = end;
}

#endif
