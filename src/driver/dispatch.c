/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs user callbacks, one at a time, in order, without the mutex: on the dispatch thread, or on
 * the application's own thread if the application has asked for the descriptor of an event loop.
 * This file owns the queue of notes. A note belongs to the object that it reports. All files of
 * src/api that report to users queue notes, with the client's mutex. */
#include <errno.h>
#include <sys/eventfd.h>

#include <zklock/zklock.h>

#include "driver.h"

static _Thread_local const struct zkl_driver *dispatching;
static _Thread_local unsigned generation; /* a child forked in a callback is no dispatch thread */

bool zkl_driver_in_callback(void)
{
    return dispatching && generation == zkl_fork_generation();
}

bool zkl_driver_post(struct zkl_driver *d, struct zkl_note *note)
{
    bool first = !d->notes;
    if (note->queued || d->notes_refused)
        return false;
    note->queued = true;
    note->next = NULL;
    *d->notes_end = note;
    d->notes_end = &note->next;
    if (d->event_fd < 0) {
        pthread_cond_signal(&d->has_notes);
    } else {
        if (first)
            zkl_event_set(d->event_fd);
        pthread_cond_broadcast(&d->changed); /* zkl_driver_drain */
    }
    return true;
}

/* --- running them ------------------------------------------------------- */

static struct zkl_note *pop(struct zkl_driver *d)
{
    struct zkl_note *note = d->notes;
    d->notes = note->next;
    if (!d->notes)
        d->notes_end = &d->notes;
    note->queued = false;
    return note;
}

/* From here on this thread is in callbacks of d; NULL: not any more. */
static void set_dispatching(const struct zkl_driver *d)
{
    dispatching = d;
    generation = zkl_fork_generation();
}

/* False: in a child that the callback forked, to which nothing of the parent's is due; without the
 * mutex then. */
static bool run_first(struct zkl_driver *d)
{
    struct zkl_note *note = pop(d);
    d->running_owner = note->owner;
    d->running_quiesced = false;
    zkl_driver_unlock(d);
    note->run(note);
    if (generation != zkl_fork_generation())
        return false;
    zkl_driver_lock(d);
    d->running_owner = NULL;
    pthread_cond_broadcast(&d->changed);
    return true;
}

static bool is_idle(const struct zkl_driver *d)
{
    if (d->event_fd >= 0)
        return !d->closed;
    return !d->notes && (!d->closed || d->owed > 0);
}

void zkl_dispatch_run(struct zkl_driver *d)
{
    set_dispatching(d);
    zkl_driver_lock(d);
    for (;;) {
        while (is_idle(d))
            zkl_driver_wait_for(d, &d->has_notes, INT64_MAX);
        if (!d->notes || d->event_fd >= 0)
            break;
        if (!run_first(d))
            return;
    }
    d->dispatch_done = true;
    d->notes_refused = d->event_fd < 0;
    pthread_cond_broadcast(&d->changed);
    zkl_driver_unlock(d);
}

/* --- on the application's own thread ------------------------------------ */

int zkl_driver_use_events(struct zkl_driver *d, int *fd)
{
    if (d->event_fd < 0) {
        int event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        if (event_fd < 0)
            return ZKL_ESYSTEM;
        d->event_fd = event_fd;
        while (d->running_owner)
            zkl_driver_wait_for(d, &d->changed, INT64_MAX);
        if (d->notes)
            zkl_event_set(event_fd);
    }
    *fd = d->event_fd;
    return 0;
}

/* With the mutex, except for ZKL_EFORK. */
static int run_some(struct zkl_driver *d, int max)
{
    int count = 0;
    if (d->event_fd < 0)
        return ZKL_EINVAL;
    if (d->running_owner)
        return ZKL_EBUSY;
    set_dispatching(d);
    for (; count < max && d->notes; count++) {
        if (!run_first(d))
            return ZKL_EFORK;
    }
    if (!d->notes)
        zkl_event_clear(d->event_fd);
    set_dispatching(NULL);
    return count;
}

int zkl_driver_dispatch(struct zkl_driver *d, int max)
{
    zkl_driver_lock(d);
    int rc = run_some(d, max);
    if (rc != ZKL_EFORK)
        zkl_driver_unlock(d);
    return rc;
}

void zkl_driver_drain(struct zkl_driver *d)
{
    zkl_driver_lock(d);
    if (d->event_fd >= 0) {
        set_dispatching(d);
        while (d->notes || d->owed > 0) {
            if (!d->notes)
                zkl_driver_wait_for(d, &d->changed, INT64_MAX);
            else if (!run_first(d))
                return;
        }
        set_dispatching(NULL);
        d->notes_refused = true;
    }
    zkl_driver_unlock(d);
}

void zkl_driver_hush(struct zkl_driver *d)
{
    zkl_driver_lock(d);
    d->notes_refused = true;
    while (d->notes || d->running_owner)
        zkl_driver_wait_for(d, &d->changed, INT64_MAX);
    zkl_driver_unlock(d);
}

/* --- waiting for them --------------------------------------------------- */

bool zkl_driver_would_cross(const struct zkl_driver *d, const void *owner)
{
    return zkl_driver_in_callback() && dispatching != d && d->running_owner == owner;
}

struct zkl_note *zkl_driver_quiesce(struct zkl_driver *d, const void *owner)
{
    struct zkl_note **at = &d->notes;
    struct zkl_note *taken = NULL;
    while (*at) {
        struct zkl_note *note = *at;
        if (note->owner != owner) {
            at = &note->next;
            continue;
        }
        *at = note->next;
        note->queued = false;
        note->next = taken;
        taken = note;
    }
    d->notes_end = at;
    if (d->running_owner == owner)
        d->running_quiesced = true;
    while (dispatching != d && d->running_owner == owner)
        zkl_driver_wait_for(d, &d->changed, INT64_MAX);
    return taken;
}
