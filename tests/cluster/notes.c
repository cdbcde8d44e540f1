/* SPDX-License-Identifier: Apache-2.0 */
#include "notes.h"

#include <stdio.h>

size_t noted(struct notes *notes)
{
    pthread_mutex_lock(&notes->mu);
    size_t n = notes->count;
    pthread_mutex_unlock(&notes->mu);
    return n;
}

size_t running(struct notes *notes)
{
    pthread_mutex_lock(&notes->mu);
    size_t n = notes->running;
    pthread_mutex_unlock(&notes->mu);
    return n;
}

/* Its number, from 0. */
static size_t write_down(struct notes *notes, const struct zkl_hold_event *event)
{
    pthread_mutex_lock(&notes->mu);
    size_t n = notes->count;
    if (n < NOTES_MAX) {
        struct note *note = &notes->list[n];
        note->state = event->state;
        note->reason = event->reason;
        note->token = event->token;
        snprintf(note->node, sizeof note->node, "%s", event->node_path);
    }
    notes->count++;
    notes->running++;
    pthread_mutex_unlock(&notes->mu);
    return n;
}

void take_note(const struct zkl_hold_event *event, void *arg)
{
    struct notes *notes = arg;
    size_t n = write_down(notes, event);

    if (notes->gate) {
        while (sem_wait(notes->gate) != 0)
            ;
    }
    if (notes->free_at == (int)n + 1)
        notes->freed = zkl_mutex_free(event->mutex);
    pthread_mutex_lock(&notes->mu);
    notes->running--;
    pthread_mutex_unlock(&notes->mu);
}
