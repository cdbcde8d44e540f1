/* SPDX-License-Identifier: Apache-2.0 */
/* The wall clock jumps, and the library does not care: deadlines, leases, windows and sessions use
 * clocks that nobody can set. The wall clock of this process is a step ahead of the machine's, or
 * behind it. This program has its own functions that read it, for all of its libraries. */
#include "cluster.h"

#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>

#define HOUR_S 3600
#define WAITED_MS 800

static atomic_long step_s;

int clock_gettime(clockid_t id, struct timespec *ts)
{
    long rc = syscall(SYS_clock_gettime, id, ts);

    if (rc == 0 && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE))
        ts->tv_sec += step_s;
    return (int)rc;
}

int gettimeofday(struct timeval *restrict tv, void *restrict zone)
{
    struct timespec ts;

    (void)zone;
    clock_gettime(CLOCK_REALTIME, &ts);
    tv->tv_sec = ts.tv_sec;
    tv->tv_usec = ts.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *at)
{
    struct timespec ts;

    clock_gettime(CLOCK_REALTIME, &ts);
    if (at)
        *at = ts.tv_sec;
    return ts.tv_sec;
}

static const long steps_s[] = {HOUR_S, -HOUR_S};
#define STEPS (sizeof steps_s / sizeof steps_s[0])

static int set_back(void **state)
{
    step_s = 0;
    return cluster_world_end(state);
}

static int lock_for_a_while(void *mutex)
{
    return zkl_mutex_lock_for(mutex, WAITED_MS);
}

#define CLOCK_TEST(name) WORLD_TEST_IN(name, cluster_raw_open, set_back)

/* Goal: a wait takes its time, whichever way the clock jumps meanwhile. So does a wait that begins
 * after the jump. Method: another client holds. The clock jumps when the waiter is in the queue.
 * Modes: F23. */
CLOCK_TEST(a_wait_does_not_go_by_the_wall_clock)
{
    struct locker l = locker_of(cluster_path("wait"), NULL);
    struct zkl_mutex *held = world_mutex(world_client(), l.path);

    check_ok(zkl_mutex_lock(held));
    for (size_t i = 0; i < STEPS;) {
        int64_t start_ms = net_now_ms();
        actor_begin(l.actor, lock_for_a_while, l.mutex);
        check_wait((cluster_children(l.path) == 2 && node_watches(child_of(l.path, 1)) == 1) ||
                       actor_is_done(l.actor),
                   WAIT_MS);
        if (!actor_is_done(l.actor)) /* else it was over before it was seen: once more */
            step_s = steps_s[i++];
        check_num(actor_result(l.actor), ==, ZKL_ETIMEDOUT);
        check_num(net_now_ms() - start_ms, >=, WAITED_MS);
        check_wait(cluster_children(l.path) == 1, WAIT_MS);
    }
    check_ok(zkl_mutex_unlock(held));
}

/* Modes: F23. */
CLOCK_TEST(a_lease_does_not_go_by_the_wall_clock)
{
    struct zkl_client *client = world_client();

    for (size_t i = 0; i < STEPS; i++) {
        struct notes notes = NOTES_INIT;
        struct take take = take_of(world_mutex(client, cluster_path("lease")));
        check_ok(zkl_mutex_set_callback(take.mutex, take_note, &notes));
        take.wait.lease_ms = WAITED_MS;
        int64_t start_ms = net_now_ms();
        check_ok(do_acquire(&take));
        step_s = steps_s[i];
        check_note(&notes, 0, ZKL_HOLD_LOST, ZKL_REASON_LEASE_ENDED);
        check_num(net_now_ms() - start_ms, >=, WAITED_MS);
        check_num(zkl_mutex_unlock(take.mutex), ==, ZKL_ELOST);
    }
}

/* The age of the only entry at path. Its value depends on the wall clock. */
static int64_t age_of_holder(struct zkl_client *client, const char *path)
{
    const struct zkl_inspection *inspection;

    check_ok(zkl_inspect(client, path, WAIT_MS, &inspection));
    check_num(inspection->count, ==, 1);
    int64_t age_ms = inspection->entries[0].age_ms;
    zkl_inspection_free(inspection);
    return age_ms;
}

/* Goal: a hold lives through all that: its window neither ends with the jump nor gets longer than it may
 * be, heartbeats go on, and it is not lost. That the library sees this program's clock at all is seen
 * by the age of its node. Modes: F23. */
CLOCK_TEST(a_hold_does_not_go_by_the_wall_clock)
{
    struct locker l = locker_behind(cluster_path("hold"), NULL, BRIEF_MS);
    struct zkl_mutex *mutex = l.mutex;
    struct notes notes = NOTES_INIT;

    check_ok(zkl_mutex_set_callback(mutex, take_note, &notes));
    check_ok(zkl_mutex_lock(mutex));
    uint64_t token = zkl_mutex_token(mutex);
    for (size_t i = 0; i < STEPS; i++) {
        check_wait(zkl_mutex_window_ms(mutex) > BRIEF_MS / 4, WAIT_MS);
        step_s = steps_s[i];
        int64_t window_ms = zkl_mutex_window_ms(mutex), end_ms = net_now_ms() + window_ms;
        check_num(window_ms, >, 0);
        check_num(window_ms, <=, BRIEF_MS * 15 / 16);
        check_wait(net_now_ms() + zkl_mutex_window_ms(mutex) > end_ms + BRIEF_MS / 8, WAIT_MS);
        check_true(zkl_mutex_token(mutex) == token);
        check_num(age_of_holder(l.client, l.path) > HOUR_S * 1000, ==, steps_s[i] > 0);
    }
    check_ok(zkl_mutex_unlock(mutex));
    for (size_t i = 0; i < noted(&notes); i++)
        check_num(notes.list[i].state, !=, ZKL_HOLD_LOST);
}
