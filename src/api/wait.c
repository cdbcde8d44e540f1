/* SPDX-License-Identifier: Apache-2.0
 * The only place that blocks an application's thread. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver/clock.h"
#include "error.h"
#include "hold.h"

#define MS INT64_C(1000000)

/* --- cancel objects ----------------------------------------------------- */

static void stop_canceled(struct zkl_client *client, const struct zkl_cancel *cancel)
{
    struct zkl_hold *next;
    for (struct zkl_hold *hold = client->waiting; hold; hold = next) {
        next = hold->wait_next;
        if (hold->cancel != cancel)
            continue;
        if (hold->phase == ZKL_PHASE_WAITING)
            zkl_core_stop(&client->driver->core, zkl_clock_now(), &hold->contender, ZKL_ECANCELED);
        zkl_hold_wake(hold);
    }
}

static void on_canceled(void *arg, struct zkl_fd_watch *watch)
{
    struct zkl_cancel_use *use =
        (struct zkl_cancel_use *)((char *)watch - offsetof(struct zkl_cancel_use, watch));
    if (zkl_cancel_is_set(use->cancel)) /* and not just its descriptor, by a forked child */
        stop_canceled(arg, use->cancel);
}

static int use_cancel(struct zkl_client *client, struct zkl_cancel *cancel)
{
    struct zkl_cancel_use *use = client->cancels;
    while (use && use->cancel != cancel)
        use = use->next;
    if (use) {
        use->users++;
        return 0;
    }
    use = calloc(1, sizeof *use);
    if (!use)
        return ZKL_ENOMEM;
    use->cancel = zkl_cancel_ref(cancel);
    use->users = 1;
    use->watch.fd = cancel->fd;
    use->watch.readable = on_canceled;
    int rc = zkl_driver_watch_fd(client->driver, &use->watch);
    if (rc != 0) {
        zkl_cancel_free(cancel);
        free(use);
        return rc;
    }
    use->next = client->cancels;
    client->cancels = use;
    return 0;
}

static void unuse_cancel(struct zkl_client *client, struct zkl_cancel *cancel)
{
    struct zkl_cancel_use **at = &client->cancels;
    while ((*at)->cancel != cancel)
        at = &(*at)->next;
    struct zkl_cancel_use *use = *at;
    if (--use->users > 0)
        return;
    *at = use->next;
    zkl_driver_unwatch_fd(client->driver, &use->watch);
    zkl_cancel_free(use->cancel);
    free(use);
}

/* --- acquire ------------------------------------------------------------ */

static void enter_wait(struct zkl_hold *hold, struct zkl_cancel *cancel)
{
    struct zkl_client *client = hold->client;
    hold->mutex->uses++;
    hold->cancel = cancel;
    hold->wait_prev = NULL;
    hold->wait_next = client->waiting;
    if (hold->wait_next)
        hold->wait_next->wait_prev = hold;
    client->waiting = hold;
}

static void leave_wait(struct zkl_hold *hold)
{
    if (hold->wait_prev)
        hold->wait_prev->wait_next = hold->wait_next;
    else
        hold->client->waiting = hold->wait_next;
    if (hold->wait_next)
        hold->wait_next->wait_prev = hold->wait_prev;
    if (hold->cancel)
        unuse_cancel(hold->client, hold->cancel);
}

static void start(struct zkl_hold *hold, const struct zkl_wait *wait)
{
    struct zkl_core *core = &hold->client->driver->core;
    struct zkl_wish wish = {.root = hold->root->path,
                            .data = hold->data,
                            .try_only = (wait->flags & ZKL_WAIT_TRY) != 0,
                            .try_sync = (wait->flags & ZKL_WAIT_SYNC) != 0,
                            .watch_own = hold->fn != NULL};
    hold->phase = ZKL_PHASE_WAITING;
    hold->ended = false;
    atomic_store(&hold->lost, false);
    atomic_fetch_add(&hold->refs, 1); /* the core's, until ENDED */
    zkl_core_acquire(core, zkl_clock_now(), &hold->contender, &wish);
}

/* Grant or failure, whichever the core decides first; the deadline is one of its events. */
static void wait_for_decision(struct zkl_hold *hold, int64_t deadline)
{
    struct zkl_driver *d = hold->client->driver;
    while (hold->phase == ZKL_PHASE_WAITING) {
        struct zkl_time now = zkl_clock_now();
        if (now.mono_ns >= deadline)
            zkl_core_stop(&d->core, now, &hold->contender, ZKL_ETIMEDOUT);
        else
            zkl_driver_wait(d, &hold->waker, deadline);
    }
}

/* The thread may get the processor long after the grant: what it returns must be proved now. True:
 * it is. */
static bool wait_for_window(struct zkl_hold *hold, int64_t deadline)
{
    struct zkl_driver *d = hold->client->driver;
    for (;;) {
        struct zkl_time now = zkl_clock_now();
        if (atomic_load(&hold->lost))
            return false;
        if (now.boot_ns + MS < zkl_session_window_end(&d->core.session))
            return true;
        if (now.mono_ns >= deadline || zkl_cancel_is_set(hold->cancel))
            return false;
        zkl_core_timer(&d->core,
                       now); /* tells the contender that it is suspect: its proof wakes us */
        /* In the window's last millisecond it is not suspect yet, and nobody tells of a proof. */
        int64_t until = now.mono_ns + 2 * MS;
        if (hold->contender.machine.suspect || until > deadline)
            until = deadline;
        if (!atomic_load(&hold->lost))
            zkl_driver_wait(d, &hold->waker, until);
    }
}

static void give_back(struct zkl_hold *hold)
{
    struct zkl_driver *d = hold->client->driver;
    zkl_core_release(&d->core, zkl_clock_now(), &hold->contender);
    while (hold->phase == ZKL_PHASE_GRANTED)
        zkl_driver_wait(d, &hold->waker, ZKL_NO_DEADLINE);
}

/* The same contender can start again only once the core is done with it. */
static void wait_for_end(struct zkl_hold *hold)
{
    while (!hold->ended)
        zkl_driver_wait(hold->client->driver, &hold->waker, ZKL_NO_DEADLINE);
}

static int acquire_locked(struct zkl_hold *hold, const struct zkl_wait *wait, int64_t deadline)
{
    for (;;) {
        if (zkl_cancel_is_set(hold->cancel))
            return ZKL_ECANCELED;
        start(hold, wait);
        wait_for_decision(hold, deadline);
        if (hold->phase == ZKL_PHASE_FAILED)
            return hold->code;
        if (wait_for_window(hold, deadline)) {
            zkl_hold_returned(hold);
            return 0;
        }
        /* Lost between the grant and here, or out of time: the caller never had it. */
        bool lost = atomic_load(&hold->lost);
        give_back(hold);
        if (atomic_load(&hold->client->closed))
            return ZKL_ECLOSED;
        if (!lost)
            return zkl_cancel_is_set(hold->cancel) ? ZKL_ECANCELED : ZKL_ETIMEDOUT;
        wait_for_end(hold);
    }
}

int zkl_hold_acquire(struct zkl_hold *hold, const struct zkl_wait *wait)
{
    struct zkl_client *client = hold->client;
    struct zkl_driver *d = client->driver;
    int64_t deadline = wait->deadline_ns;
    int rc = 0;

    zkl_driver_lock(d);
    hold->root->refs++; /* the hold's, given up with it */
    if (wait->flags & ZKL_WAIT_TRY) {
        int64_t bound = zkl_clock_mono_ns() + d->core.session.timeout_ms * MS;
        deadline = bound < deadline ? bound : deadline;
    }
    if (wait->cancel)
        rc = use_cancel(client, wait->cancel);
    if (rc == 0) {
        hold->fn = hold->mutex->fn;
        hold->fn_arg = hold->mutex->fn_arg;
        enter_wait(hold, wait->cancel);
        rc = acquire_locked(hold, wait, deadline);
        leave_wait(hold);
        if (rc != 0)
            hold->mutex->uses--;
    }
    zkl_driver_unlock(d);
    /* A try has no deadline of the caller's choice: running out of time means that no server
     * answered. */
    if (rc == ZKL_ETIMEDOUT && deadline != wait->deadline_ns)
        rc = ZKL_EDISCONNECTED;
    return rc;
}

/* --- release ------------------------------------------------------------ */

int zkl_hold_release(struct zkl_hold *hold)
{
    struct zkl_driver *d = hold->client->driver;
    zkl_driver_lock(d);
    give_back(hold); /* bounded by the core: the link breaks, or the window ends */
    hold->mutex->uses--;
    int rc = hold->code;
    zkl_driver_unlock(d);
    return rc;
}
