/* SPDX-License-Identifier: Apache-2.0
 * The dispatch thread: user callbacks, one at a time, in order, without the mutex. */
#include <errno.h>

#include "driver.h"

static _Thread_local const struct zkl_driver *dispatching;
static _Thread_local unsigned generation; /* a child forked in a callback is no dispatch thread */

bool zkl_driver_in_callback(void)
{
    return dispatching && generation == zkl_fork_generation();
}

bool zkl_driver_post(struct zkl_driver *d, struct zkl_note *note)
{
    if (note->queued || d->dispatch_done)
        return false;
    note->queued = true;
    note->next = NULL;
    *d->notes_end = note;
    d->notes_end = &note->next;
    pthread_cond_signal(&d->has_notes);
    return true;
}

static struct zkl_note *pop(struct zkl_driver *d)
{
    struct zkl_note *note = d->notes;
    d->notes = note->next;
    if (!d->notes)
        d->notes_end = &d->notes;
    note->queued = false;
    return note;
}

void *zkl_dispatch_main(void *driver)
{
    struct zkl_driver *d = driver;
    dispatching = d;
    generation = zkl_fork_generation();
    zkl_driver_lock(d);
    for (;;) {
        while (!d->notes && !d->closed)
            pthread_cond_wait(&d->has_notes, &d->mu);
        if (!d->notes)
            break;
        struct zkl_note *note = pop(d);
        d->running_owner = note->owner;
        d->running_quiesced = false;
        zkl_driver_unlock(d);
        note->run(note);
        zkl_driver_lock(d);
        d->running_owner = NULL;
        pthread_cond_broadcast(&d->changed);
    }
    d->dispatch_done = true;
    pthread_cond_broadcast(&d->changed);
    zkl_driver_unlock(d);
    zkl_driver_unref(d);
    return NULL;
}

bool zkl_driver_would_cross(const struct zkl_driver *d, const void *owner)
{
    return dispatching && dispatching != d && d->running_owner == owner;
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
        pthread_cond_wait(&d->changed, &d->mu);
    return taken;
}
