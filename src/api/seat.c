/* SPDX-License-Identifier: Apache-2.0
 *
 * Seats in a node that several readers share, and what threads that acquire or free a lock ask of
 * that node: whether one is wanted, whether it closes, whether no reader is in (seat.h). Entering
 * and leaving takes no lock and no memory: a thread that leaves keeps its seat for the next time.
 * No thread waits with a seat. cached_reader.c assigns seats. place.c calls this file for a thread
 * that has ended, owner.c when the thread ends; wait.c and lock.c close the node, with the
 * client's mutex. */
#include "seat.h"

#include <stdlib.h>
#include <string.h>

#include "driver/clock.h"

static _Thread_local struct zkl_place *spare;

struct zkl_place *zkl_seat_new(void)
{
    struct zkl_place *seat = spare;
    spare = NULL;
    return seat ? seat : calloc(1, sizeof *seat);
}

void zkl_seat_free(struct zkl_place *seat, bool keep)
{
    if (ZKL_KEEPS_SPARES && keep && !spare)
        spare = seat;
    else
        free(seat);
}

void zkl_seat_thread_exits(void)
{
    free(spare);
    spare = NULL;
}

void zkl_seat_take(struct zkl_place *seat, struct zkl_place *base)
{
    seat->client = base->client;
    seat->lock_path = base->lock_path;
    seat->mutex = base->mutex;
    seat->base = base;
    seat->token = base->token;
    memcpy(seat->node, base->node, sizeof seat->node);
    seat->count = 1;
    seat->reentries = 0;
    atomic_store_explicit(&seat->refs, 1, memory_order_relaxed);
}

void zkl_seat_leave(struct zkl_place *seat)
{
    struct zkl_read_cache *cache = &seat->mutex->rwlock->cache;
    seat->base = NULL; /* may be freed from here on */
    zkl_seat_leave_gate(seat->client->driver, cache);
}

void zkl_seat_leave_gate(struct zkl_driver *d, struct zkl_read_cache *cache)
{
    if (!zkl_read_gate_leave(&cache->gate))
        return;
    int shield = zkl_shield();
    zkl_driver_lock(d);
    zkl_read_cache_left(&d->core, zkl_clock_now(), cache);
    zkl_driver_unlock(d);
    zkl_shield_end(shield);
}

/* --- the node that all are in, with the mutex ---------------------------------- */

struct zkl_read_cache *zkl_cached_of(const struct zkl_mutex *mutex)
{
    struct zkl_rwlock *rwlock = mutex->rwlock;
    return rwlock && mutex == &rwlock->read ? &rwlock->cache : NULL;
}

void zkl_cached_want_no_more(const struct zkl_place *place)
{
    struct zkl_rwlock *rwlock = place->mutex->rwlock;
    if (rwlock && rwlock->candidate == place)
        rwlock->candidate = NULL;
}

/* One at a time: the node of another one would have the mark for nothing, and others' tries would
 * wait for it. */
bool zkl_cached_wants(const struct zkl_place *place, const struct zkl_wait *wait)
{
    const struct zkl_read_cache *cache = zkl_cached_of(place->mutex);
    zkl_cached_want_no_more(place); /* it may begin anew */
    bool wants = cache && wait->lease_ms == 0 && zkl_read_cache_may_begin(cache, zkl_clock_now()) &&
                 !place->mutex->rwlock->candidate;
    if (wants)
        place->mutex->rwlock->candidate = place;
    return wants;
}

void zkl_cached_close(const struct zkl_mutex *mutex)
{
    struct zkl_read_cache *cache = mutex->rwlock ? &mutex->rwlock->cache : NULL;
    if (cache && cache->state == ZKL_READ_CACHE_OPEN)
        zkl_read_cache_close(&mutex->client->driver->core, zkl_clock_now(), cache);
}

bool zkl_cached_any(const struct zkl_mutex *mutex)
{
    const struct zkl_read_cache *cache = zkl_cached_of(mutex);
    return cache && zkl_read_gate_any(&cache->gate);
}

void zkl_cached_retire(const struct zkl_mutex *mutex)
{
    struct zkl_read_cache *cache = zkl_cached_of(mutex);
    if (cache)
        zkl_read_cache_fini(&mutex->client->driver->core, zkl_clock_now(), cache);
}
