/* SPDX-License-Identifier: Apache-2.0 */
#include "clock.h"

#include <stdint.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define SECOND INT64_C(1000000000)

static atomic_llong *step;

void clock_step_by(atomic_llong *off_ns)
{
    step = off_ns;
}

/* The system call itself: this is the program's clock_gettime. */
static int64_t wall_ns(void)
{
    struct timespec t = {0, 0};

    syscall(SYS_clock_gettime, CLOCK_REALTIME, &t);
    return t.tv_sec * SECOND + t.tv_nsec + (step != NULL ? *step : 0);
}

int clock_gettime(clockid_t id, struct timespec *t)
{
    if (id != CLOCK_REALTIME && id != CLOCK_REALTIME_COARSE)
        return (int)syscall(SYS_clock_gettime, id, t);
    int64_t now = wall_ns();
    *t = (struct timespec){now / SECOND, now % SECOND};
    return 0;
}

int gettimeofday(struct timeval *restrict t, void *restrict zone)
{
    int64_t now = wall_ns();

    (void)zone;
    *t = (struct timeval){now / SECOND, now % SECOND / 1000};
    return 0;
}

time_t time(time_t *t)
{
    int64_t now = wall_ns() / SECOND;

    if (t != NULL)
        *t = now;
    return now;
}
