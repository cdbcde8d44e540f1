/* SPDX-License-Identifier: Apache-2.0
 *
 * The client's one mutex, and the duties of its release: the releasing thread runs tasks with it,
 * sets the service thread's timer, and then, without it, wakes waiters. The holder may change the
 * core; no other thread reads the core. docs/architecture.md has the order of locks. Every thread
 * of the library takes the mutex, and nearly every call does. */
#include "driver.h"

#include <assert.h>

#include <zklock/zklock.h>

#define MS INT64_C(1000000)
#define WAKERS_AT_ONCE 32

void zkl_cond_init(pthread_cond_t *cond)
{
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(cond, &attr);
    pthread_condattr_destroy(&attr);
}

void zkl_waker_init(struct zkl_waker *waker, void (*woken)(struct zkl_waker *waker))
{
    waker->woken = woken;
    waker->next = NULL;
    waker->queued = false;
    zkl_cond_init(&waker->cond);
}

void zkl_waker_fini(struct zkl_waker *waker)
{
    pthread_cond_destroy(&waker->cond);
}

/* Its address distinguishes a thread from all others. */
static _Thread_local char self;

bool zkl_driver_is_locked(const struct zkl_driver *d)
{
    return atomic_load_explicit(&d->has_mu, memory_order_relaxed) == &self;
}

static void has_mutex(struct zkl_driver *d, const void *who)
{
    atomic_store_explicit(&d->has_mu, who, memory_order_relaxed);
}

void zkl_driver_lock(struct zkl_driver *d)
{
    pthread_mutex_lock(&d->mu);
    has_mutex(d, &self);
}

void zkl_driver_kick(struct zkl_driver *d)
{
    d->service_until = 0; /* once is enough until it has looked */
    zkl_event_set(d->wake_fd);
}

/* Take some of the waiters off the list: once off, they may enter it again. */
static size_t take_wakers(struct zkl_driver *d, struct zkl_waker **taken, size_t max)
{
    size_t n = 0;
    for (; d->wakers && n < max; n++) {
        taken[n] = d->wakers;
        d->wakers = taken[n]->next;
        taken[n]->queued = false;
    }
    return n;
}

/* Before the service thread's timer is read, as tasks may set it. */
static void run_tasks(struct zkl_driver *d)
{
    while (d->tasks) {
        struct zkl_task *task = d->tasks;
        d->tasks = task->next;
        if (!d->tasks)
            d->tasks_end = &d->tasks;
        task->queued = false;
        task->run(task);
    }
}

int64_t zkl_driver_next_timeout(const struct zkl_driver *d, struct zkl_time now)
{
    int64_t at = zkl_core_next_timeout(&d->core, now);
    return d->due_ns < at ? d->due_ns : at;
}

/* The values that others read without the mutex. */
static void publish(struct zkl_driver *d)
{
    atomic_store_explicit(&d->window_end_boot, zkl_session_proved_until(&d->core.session),
                          memory_order_release);
    atomic_store_explicit(&d->unprovable, d->core.session.unprovable, memory_order_relaxed);
    /* The value that opens a gate is read after this: zkl_read_gate_enter. */
    int64_t fresh = zkl_proof_fresh_until(&d->core.session.proof);
    if (fresh != atomic_load_explicit(&d->fresh_until_boot, memory_order_relaxed))
        atomic_store(&d->fresh_until_boot, fresh);
}

/* At each release of the mutex: what the core has changed, and the service thread's timer. */
static void tell_others(struct zkl_driver *d)
{
    int64_t at = d->due_ns;
    if (d->core.changed) {
        publish(d);
        at = zkl_driver_next_timeout(d, d->core.now);
    }
    d->core.changed = false;
    /* Not for less than its resolution: the two clocks of one time are not read at one instant. */
    if (d->service_until != 0 && at < d->service_until - MS)
        zkl_driver_kick(d);
}

void zkl_driver_unlock(struct zkl_driver *d)
{
    struct zkl_waker *taken[WAKERS_AT_ONCE];
    bool more;
    assert(zkl_driver_is_locked(d));
    do {
        size_t n = take_wakers(d, taken, WAKERS_AT_ONCE);
        run_tasks(d);
        tell_others(d);
        more = d->wakers != NULL;
        has_mutex(d, NULL);
        pthread_mutex_unlock(&d->mu);
        /* Without the mutex, so that a woken thread finds it free. Each waker is kept alive for
         * this. */
        for (size_t i = 0; i < n; i++) {
            pthread_cond_signal(&taken[i]->cond);
            if (taken[i]->woken)
                taken[i]->woken(taken[i]);
        }
        if (more)
            zkl_driver_lock(d);
    } while (more);
}

int zkl_driver_wait_for(struct zkl_driver *d, pthread_cond_t *cond, int64_t deadline_mono_ns)
{
    int rc;
    assert(zkl_driver_is_locked(d));
    has_mutex(d, NULL);
    if (deadline_mono_ns == INT64_MAX) {
        rc = pthread_cond_wait(cond, &d->mu);
    } else {
        struct timespec ts = zkl_clock_timespec(deadline_mono_ns);
        rc = pthread_cond_timedwait(cond, &d->mu, &ts);
    }
    has_mutex(d, &self);
    return rc;
}

int zkl_driver_wait(struct zkl_driver *d, struct zkl_waker *waker, int64_t deadline_mono_ns)
{
    if (d->wakers || d->tasks) { /* others first: they are owed their wake-up */
        zkl_driver_unlock(d);
        zkl_driver_lock(d);
        return 0;
    }
    publish(d);
    return zkl_driver_wait_for(d, &waker->cond, deadline_mono_ns);
}

void zkl_driver_wake(struct zkl_driver *d, struct zkl_waker *waker)
{
    assert(zkl_driver_is_locked(d));
    if (waker->queued)
        return;
    waker->queued = true;
    waker->next = d->wakers;
    d->wakers = waker;
}

void zkl_driver_defer(struct zkl_driver *d, struct zkl_task *task)
{
    assert(zkl_driver_is_locked(d));
    if (task->queued)
        return;
    task->queued = true;
    task->next = NULL;
    *d->tasks_end = task;
    d->tasks_end = &task->next;
}
