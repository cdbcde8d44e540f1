/* SPDX-License-Identifier: Apache-2.0
 *
 * The clocks: CLOCK_MONOTONIC for waits and deadlines, CLOCK_BOOTTIME for everything that a
 * session's life depends on, because it runs on while a machine sleeps. This file owns nothing and
 * takes no lock. src/api and the driver read time only here; the core receives it with each
 * event. */
#include "clock.h"

#define NS INT64_C(1000000000)

static int64_t read_clock(clockid_t id)
{
    struct timespec ts;
    clock_gettime(id, &ts);
    return ts.tv_sec * NS + ts.tv_nsec;
}

int64_t zkl_clock_mono_ns(void)
{
    return read_clock(CLOCK_MONOTONIC);
}

int64_t zkl_clock_boot_ns(void)
{
    return read_clock(CLOCK_BOOTTIME);
}

struct zkl_time zkl_clock_now(void)
{
    return (struct zkl_time){.mono_ns = read_clock(CLOCK_MONOTONIC),
                             .boot_ns = read_clock(CLOCK_BOOTTIME)};
}

int64_t zkl_clock_real_ms(void)
{
    return read_clock(CLOCK_REALTIME) / 1000000;
}

struct timespec zkl_clock_timespec(int64_t mono_ns)
{
    return (struct timespec){.tv_sec = mono_ns / NS, .tv_nsec = mono_ns % NS};
}
