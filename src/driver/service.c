/* SPDX-License-Identifier: Apache-2.0
 *
 * The service thread: timers of the core and of operations, the opening of handles, new addresses.
 * Closing a handle can take seconds, so the undertaker does that, in its own thread that the
 * service thread starts and joins. The service thread takes the client's mutex for each round, and
 * sleeps, opens and closes without it. driver.c starts and stops it. */
#include "driver.h"

#define MS INT64_C(1000000)
#define DRAIN_MS 200 /* for answers that are still due when a handle is closed */
#define MOMENT_MS 20 /* if nobody waits for one */
#define BUSY_MS 1000 /* a client that sent something so recently is busy */

/* What libzookeeper is still owed when it is closed can be lost, and its memory then (B72). That is worth a moment: a
 * server may be silent, and gives others the client's locks by the request that the close sends. So all that is in the
 * graveyard has one time together. */
static void bury_all(struct zkl_driver *d)
{
    int64_t now = zkl_clock_mono_ns();
    if (d->graveyard) { /* waiters that must be woken do not wait for that */
        zkl_driver_unlock(d);
        zkl_driver_lock(d);
    }
    while (d->graveyard) {
        struct zkl_handle *h = d->graveyard;
        d->graveyard = zkl_handle_next(h);
        int64_t until = now + (zkl_handle_is_awaited(h) ? DRAIN_MS : MOMENT_MS) * MS;
        while (zkl_handle_is_owed(h) && zkl_driver_wait_for(d, &d->changed, until) == 0)
            continue;
        zkl_driver_unlock(d);
        zkl_handle_close(d, h);
        zkl_driver_lock(d);
    }
}

static void open_one(struct zkl_driver *d, bool probe)
{
    bool wanted = probe ? d->open_probe : d->open_current;
    if (!wanted || d->closing || !d->resolver.addresses || zkl_clock_mono_ns() < d->open_not_before)
        return;
    zkl_driver_unlock(d);
    int rc = zkl_handle_open(d, probe);
    zkl_driver_lock(d);
    if (rc != 0)
        d->open_not_before = zkl_clock_mono_ns() + ZKL_OPEN_RETRY_MS * MS;
}

static int64_t next_wake(struct zkl_driver *d)
{
    struct zkl_time now = zkl_clock_now();
    int64_t at = zkl_driver_next_timeout(d, now);
    /* While requests come and go, each would set a timer and wake this thread for it: it rather
     * looks up now and then by itself. */
    if (now.mono_ns - d->core.last_send_mono_ns < BUSY_MS * MS &&
        now.mono_ns + ZKL_KEEPALIVE_MS * MS < at)
        at = now.mono_ns + ZKL_KEEPALIVE_MS * MS;
    if ((d->open_current || d->open_probe) && d->resolver.addresses && d->open_not_before < at)
        at = d->open_not_before;
    if (zkl_resolver_due(d) < at)
        at = zkl_resolver_due(d);
    int64_t look_ns = zkl_secure_watch(d, now.mono_ns);
    if (look_ns < at)
        at = look_ns;
    if ((d->graveyard && !d->burying) || d->closing)
        at = 0;
    return at;
}

static void *undertaker_main(void *driver)
{
    struct zkl_driver *d = driver;
    zkl_driver_lock(d);
    bury_all(d);
    d->burying = false;
    pthread_cond_broadcast(&d->changed);
    zkl_driver_unlock(d);
    return NULL;
}

static void join_undertaker(struct zkl_driver *d)
{
    if (!d->undertaken)
        return;
    d->undertaken = false;
    zkl_driver_unlock(d);
    pthread_join(d->undertaker, NULL);
    zkl_driver_lock(d);
}

/* Elsewhere, as it can take seconds; here if there is nothing else to do any more, or no thread. */
static void bury(struct zkl_driver *d)
{
    if (d->graveyard && !d->burying && !d->closing) {
        join_undertaker(d);
        d->burying = d->undertaken = zkl_thread_start(&d->undertaker, undertaker_main, d) == 0;
    }
    if (!d->burying || d->closing)
        bury_all(d);
    if (d->burying && d->closing)
        zkl_driver_wait_for(d, &d->changed, INT64_MAX);
}

static void follow_names(struct zkl_driver *d)
{
    zkl_resolver_publish(d, zkl_clock_mono_ns());
    zkl_handle_follow(d, d->current);
    zkl_handle_follow(d, d->probe);
}

void zkl_service_run(struct zkl_driver *d)
{
    zkl_driver_lock(d);
    while (!d->closing || d->graveyard || d->burying) {
        follow_names(d);
        open_one(d, false);
        open_one(d, true);
        bury(d);
        struct zkl_time now = zkl_clock_now();
        if (!d->closing && zkl_core_next_timeout(&d->core, now) <= now.mono_ns)
            zkl_core_timer(&d->core, now);
        if (!d->closing && d->due_ns <= now.mono_ns)
            d->config.due(d->config.arg, now.mono_ns);
        if (!d->closing)
            zkl_descriptors_sleep(d, next_wake(d));
    }
    join_undertaker(d);
    if (d->config.closed)
        d->config.closed(d->config.arg, !d->end_unconfirmed);
    d->closed = true;
    pthread_cond_broadcast(&d->changed);
    pthread_cond_signal(&d->has_notes);
    zkl_driver_unlock(d);
}
