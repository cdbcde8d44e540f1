/* SPDX-License-Identifier: Apache-2.0 */
#include "lag.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "tool/net.h"

#define MS INT64_C(1000000)
#define NAP_MS 2
#define WORK_NS (MS / 4)
#define ROOM 20 /* so many times longer */
#define SESSION_TIMES 5
#define ALONE_NS (MS / 2) /* what a wake-up and the work take where nothing else runs */

static int64_t ns_of(clockid_t clock)
{
    struct timespec now;

    clock_gettime(clock, &now);
    return now.tv_sec * 1000 * MS + now.tv_nsec;
}

struct lag lag_of_now(void)
{
    return (struct lag){.at_ns = ns_of(CLOCK_MONOTONIC)};
}

static void work(void)
{
    int64_t end_ns = ns_of(CLOCK_THREAD_CPUTIME_ID) + WORK_NS;

    while (ns_of(CLOCK_THREAD_CPUTIME_ID) < end_ns)
        ;
}

/* A thread that sleeps is preferred when it wakes, so that a nap alone is hardly late on the busiest machine. */
void lag_nap(struct lag *lag, bool measure)
{
    int64_t nap_ns = ns_of(CLOCK_MONOTONIC), taken_ns = ALONE_NS;

    net_nap_ms(NAP_MS);
    if (measure) {
        work();
        taken_ns = ns_of(CLOCK_MONOTONIC) - nap_ns - NAP_MS * MS;
    }
    int64_t now_ns = ns_of(CLOCK_MONOTONIC), passed_ns = now_ns - lag->at_ns;
    lag->counted_ns += taken_ns > ALONE_NS ? passed_ns * ALONE_NS / taken_ns : passed_ns;
    lag->at_ns = now_ns;
}

bool lag_is_slow(void)
{
    struct lag lag = lag_of_now();
    int64_t start_ns = lag.at_ns;

    for (int i = 0; i < 20; i++)
        lag_nap(&lag, true);
    return lag.counted_ns < (lag.at_ns - start_ns) / 2;
}

int64_t lag_room_ms(int64_t ms)
{
    return lag_is_slow() ? ROOM * ms : ms;
}

static int session_times;

static void measure_once(void)
{
    session_times = lag_is_slow() ? SESSION_TIMES : 1;
}

int lag_session_ms(int ms)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, measure_once);
    return session_times * ms;
}

/* --- a thread that measures ---------------------------------------------------------------------- */

static pthread_t meter;
static bool is_running;
static atomic_bool ends;
static struct lag metered;

static void *meter_main(void *unused)
{
    metered = lag_of_now();
    while (!ends)
        lag_nap(&metered, true);
    return unused;
}

/* A test that failed between the two has left it running. */
void lag_begin(void)
{
    if (is_running)
        lag_end_ms();
    ends = false;
    is_running = pthread_create(&meter, NULL, meter_main, NULL) == 0;
}

int64_t lag_end_ms(void)
{
    ends = true;
    if (!is_running || pthread_join(meter, NULL) != 0)
        return INT64_MAX;
    is_running = false;
    return metered.counted_ns / MS;
}
