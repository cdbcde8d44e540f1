/* SPDX-License-Identifier: Apache-2.0 */
#include "crowd.h"

#include <limits.h>

enum { GRANTED = 1, LEAVES = 2 };

struct crowd *crowd_open(const char *servers, int session_ms, size_t size,
                         struct crowd_queue *queue)
{
    struct crowd *crowd = world_alloc(sizeof *crowd);

    *crowd = (struct crowd){.client = world_open(servers, session_ms),
                            .queue = queue,
                            .places = world_alloc(size * sizeof *crowd->places),
                            .size = size};
    fault_alone_from(crowd->client, UINT_MAX);
    for (size_t i = 0; i < size; i++)
        crowd->places[i] =
            (struct crowd_place){.crowd = crowd, .owner = world_owner(), .grant = ZKL_GRANT_INIT};
    return crowd;
}

/* --- what the client reports ------------------------------------------------------------------ */

static void on_release(int code, void *arg)
{
    struct crowd *crowd = ((struct crowd_place *)arg)->crowd;

    crowd->unconfirmed += code != 0;
    crowd->ended++;
}

static void release(struct crowd_place *place)
{
    int rc = zkl_mutex_unlock_async(place->owner, place->mutex, on_release, place);

    if (rc != 0)
        on_release(rc, place);
}

static void on_grant(int code, void *arg)
{
    struct crowd_place *place = arg;
    struct crowd *crowd = place->crowd;

    if (code != 0) {
        place->code = code;
        place->failed = true;
        crowd->failed++;
        crowd->ended++;
        return;
    }
    crowd->granted++;
    if (crowd->queue != NULL)
        crowd->queue->order[crowd->queue->count++] = place;
    if (atomic_fetch_or(&place->came, GRANTED) & LEAVES)
        release(place);
}

/* --- what a place does ------------------------------------------------------------------------ */

struct crowd_place *crowd_acquire(struct crowd *crowd, struct zkl_mutex *mutex)
{
    check_num(crowd->begun, <, crowd->size);
    struct crowd_place *place = &crowd->places[crowd->begun++];
    place->mutex = mutex;
    check_ok(zkl_mutex_acquire_async(place->owner, mutex, NULL, &place->grant, on_grant, place,
                                     &place->op));
    return place;
}

bool crowd_holds(const struct crowd_place *place)
{
    return place->came == GRANTED;
}

void crowd_leave(struct crowd_place *place)
{
    unsigned came = atomic_fetch_or(&place->came, LEAVES);

    if (came == GRANTED)
        release(place);
    else if (came == 0 && !place->failed)
        check_ok(zkl_op_cancel(place->crowd->client, place->op));
}

void crowd_leave_all(struct crowd *crowd)
{
    /* The last first: whoever is before somebody else is not granted on the way. */
    for (size_t i = crowd->begun; i-- > 0;)
        crowd_leave(&crowd->places[i]);
}

size_t crowd_waiting(struct crowd *crowd)
{
    struct zkl_driver *d = crowd->client->driver;
    size_t n = 0;

    zkl_driver_lock(d);
    for (const struct zkl_contender *c = d->core.first; c; c = c->next)
        n += c->machine.state == ZKL_CONTENDER_WAITING;
    zkl_driver_unlock(d);
    return n;
}
