/* SPDX-License-Identifier: Apache-2.0
 *
 * Readers of one handle that share one node, which stays on the server (src/core/read_cache.h).
 * This file decides which threads enter without a request, whose node becomes the shared one, and
 * when the node closes. Each thread has a seat (seat.h). zkl_cached_enter and zkl_cached_leave
 * take no lock; the rest runs under the client's mutex or takes it. mutex.c and rwlock.c call this
 * file, and users for the option. */
#include "cached_reader.h"

#include "counts.h"
#include "driver/clock.h"
#include "error.h"
#include "owner.h"
#include "seat.h"

#define MS INT64_C(1000000)

/* --- coming and going ------------------------------------------------------- */

static struct zkl_place *base_of(const struct zkl_read_cache *cache)
{
    return (struct zkl_place *)cache->holder;
}

/* Counted in: is that any good? */
static bool is_in(const struct zkl_read_cache *cache, int64_t until_boot)
{
    return until_boot != 0 && zkl_clock_boot_ns() < until_boot &&
           !zkl_place_is_lost(base_of(cache));
}

struct zkl_place *zkl_cached_enter(const struct zkl_mutex *mutex, const struct zkl_wait *wait)
{
    struct zkl_read_cache *cache = zkl_cached_of(mutex);
    if (!cache || wait->lease_ms > 0 ||
        atomic_load_explicit(&cache->gate.until_boot, memory_order_relaxed) == 0)
        return NULL; /* not even counted */
    struct zkl_place *seat = zkl_owner_prepare() == 0 ? zkl_seat_new() : NULL;
    if (!seat)
        return NULL;
    struct zkl_driver *d = mutex->client->driver;
    if (is_in(cache, zkl_read_gate_enter(&cache->gate, &d->fresh_until_boot))) {
        zkl_seat_take(seat, base_of(cache));
        return seat;
    }
    zkl_seat_leave_gate(d, cache);
    zkl_seat_free(seat, zkl_owner_is_thread());
    return NULL;
}

int zkl_cached_leave(struct zkl_place *seat)
{
    int rc =
        zkl_place_is_lost(seat) ? ZKL_ELOST : (zkl_place_window_ns(seat) == 0 ? ZKL_EDOUBT : 0);
    if (rc != 0)
        zkl_fail(rc, "%s: %s", seat->lock_path->path,
                 rc == ZKL_EDOUBT ? "the window is empty" : "the readers' node is lost");
    zkl_seat_leave(seat);
    zkl_seat_free(seat, zkl_owner_is_thread());
    return rc;
}

/* --- whose node -------------------------------------------------------------- */

/* With the mutex. A writer of the same handle would wait for what is opened now. */
static bool open_locked(struct zkl_place *place, struct zkl_place *seat)
{
    struct zkl_mutex *mutex = place->mutex;
    struct zkl_core *core = &place->client->driver->core;
    bool may = mutex->rwlock->write.uses == 0 && place->fn == mutex->fn &&
               place->fn_arg == mutex->fn_arg && !zkl_place_is_lost(place);
    if (!may ||
        !zkl_read_cache_open(core, zkl_clock_now(), zkl_cached_of(mutex), &place->contender))
        return false;
    zkl_seat_take(seat, place);
    mutex->uses--; /* the gate counts from here on */
    return true;
}

struct zkl_place *zkl_cached_open(struct zkl_place *place)
{
    struct zkl_driver *d = place->client->driver;
    if (!place->caches)
        return place;
    struct zkl_place *seat = zkl_seat_new();
    zkl_driver_lock(d);
    bool opened = seat && open_locked(place, seat);
    zkl_cached_want_no_more(place);
    zkl_driver_unlock(d);
    if (opened)
        return seat;
    if (seat)
        zkl_seat_free(seat, zkl_owner_is_thread());
    return place;
}

/* --- closing ------------------------------------------------------------------ */

/* The handle's reference; it was counted once when it was granted. */
static void dropped(struct zkl_read_cache *cache, struct zkl_contender *contender)
{
    struct zkl_place *place = (struct zkl_place *)contender;
    (void)cache;
    place->returned = false; /* no thread has it: the library reports nothing of the node */
    zkl_count_released(place);
    zkl_count_end(place);
    zkl_place_put(place);
}

void zkl_cached_setup(struct zkl_rwlock *rwlock)
{
    rwlock->cache.dropped = dropped;
}

/* --- the option ----------------------------------------------------------------- */

int zkl_rwlock_retain_readers(struct zkl_rwlock *rwlock, int64_t retain_ms)
{
    static const char call[] = "zkl_rwlock_retain_readers";
    if (!rwlock)
        return zkl_fail(ZKL_EINVAL, "%s: rwlock is NULL", call);
    int rc = zkl_client_check(rwlock->read.client, true, call);
    if (rc != 0)
        return rc;
    if (retain_ms < 0 || retain_ms > ZKL_RETAIN_MAX_MS)
        return zkl_fail(ZKL_EBADTIMEOUT, "%s: retain_ms is %lld, not 0 to %d", call,
                        (long long)retain_ms, ZKL_RETAIN_MAX_MS);
    int shield = zkl_shield();
    zkl_driver_lock(rwlock->read.client->driver);
    rwlock->cache.age_ns = retain_ms * MS;
    zkl_cached_close(&rwlock->read);
    zkl_driver_unlock(rwlock->read.client->driver);
    zkl_shield_end(shield);
    return 0;
}
