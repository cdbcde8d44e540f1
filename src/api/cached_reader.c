/* SPDX-License-Identifier: Apache-2.0
 *
 * Readers of one handle that share one node, which stays on the server (src/core/read_cache.h).
 * This file decides which threads enter without a request, whose node becomes the shared one, and
 * when the node closes. zkl_cached_enter and zkl_cached_leave take no lock and no memory; the rest
 * runs under the client's mutex or takes it. No thread waits with a shared hold. mutex.c and
 * rwlock.c call this file, owner.c when a thread ends, wait.c and lock.c to close the node, and
 * users for the option. */
#include "cached_reader.h"

#include "counts.h"
#include "driver/clock.h"
#include "error.h"

#define MS INT64_C(1000000)

/* The node that this handle's holds may be in together; NULL: it is no reader's handle. */
static struct zkl_read_cache *cache_of(const struct zkl_mutex *mutex)
{
    struct zkl_rwlock *rwlock = mutex->rwlock;
    return rwlock && mutex == &rwlock->read ? &rwlock->cache : NULL;
}

/* --- coming and going ------------------------------------------------------- */

/* Counted in: is that any good? */
static bool is_in(const struct zkl_read_cache *cache, int64_t until_boot)
{
    return until_boot != 0 && zkl_clock_boot_ns() < until_boot &&
           !zkl_place_is_lost((struct zkl_place *)cache->holder);
}

bool zkl_cached_enter(struct zkl_hold *hold, const struct zkl_wait *wait)
{
    struct zkl_read_cache *cache = cache_of(hold->mutex);
    if (!cache || wait->lease_ms > 0 ||
        atomic_load_explicit(&cache->gate.until_boot, memory_order_relaxed) == 0)
        return false; /* not even counted */
    struct zkl_driver *d = hold->mutex->client->driver;
    hold->shared = is_in(cache, zkl_read_gate_enter(&cache->gate, &d->fresh_until_boot));
    if (hold->shared)
        hold->place = (struct zkl_place *)cache->holder;
    else
        zkl_cached_leave_gate(hold->mutex);
    return hold->shared;
}

void zkl_cached_leave_gate(const struct zkl_mutex *mutex)
{
    struct zkl_read_cache *cache = &mutex->rwlock->cache;
    struct zkl_driver *d = mutex->client->driver;
    if (!zkl_read_gate_leave(&cache->gate))
        return;
    ZKL_SHIELDED();
    zkl_driver_lock(d);
    zkl_read_cache_left(&d->core, zkl_clock_now(), cache);
    zkl_driver_unlock(d);
}

int zkl_cached_leave(const struct zkl_hold *hold)
{
    int rc = zkl_place_doubt(hold->place);
    if (rc != 0)
        zkl_fail(rc, "%s: %s", hold->mutex->lock_path->path,
                 rc == ZKL_EDOUBT ? "the window is empty" : "the readers' node is lost");
    zkl_cached_leave_gate(hold->mutex); /* the place may be freed from here on */
    return rc;
}

/* --- whose node -------------------------------------------------------------- */

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
    const struct zkl_read_cache *cache = cache_of(place->mutex);
    zkl_cached_want_no_more(place); /* it may begin anew */
    bool wants = cache && wait->lease_ms == 0 && zkl_read_cache_may_begin(cache, zkl_clock_now()) &&
                 !place->mutex->rwlock->candidate;
    if (wants)
        place->mutex->rwlock->candidate = place;
    return wants;
}

/* With the mutex. A writer of the same handle would wait for what is opened now. */
static bool open_locked(struct zkl_place *place)
{
    struct zkl_mutex *mutex = place->mutex;
    struct zkl_core *core = &place->client->driver->core;
    bool may = mutex->rwlock->write.uses == 0 && place->fn == mutex->fn &&
               place->fn_arg == mutex->fn_arg && !zkl_place_is_lost(place);
    if (!may || !zkl_read_cache_open(core, zkl_clock_now(), cache_of(mutex), &place->contender))
        return false;
    mutex->uses--; /* the gate counts from here on, and the handle has the reference */
    return true;
}

void zkl_cached_open(struct zkl_hold *hold)
{
    struct zkl_place *place = hold->place;
    if (!place->caches)
        return;
    zkl_driver_lock(place->client->driver);
    hold->shared = open_locked(place);
    zkl_cached_want_no_more(place);
    zkl_driver_unlock(place->client->driver);
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

void zkl_cached_close(const struct zkl_mutex *mutex)
{
    struct zkl_read_cache *cache = mutex->rwlock ? &mutex->rwlock->cache : NULL;
    if (cache && cache->state == ZKL_READ_CACHE_OPEN)
        zkl_read_cache_close(&mutex->client->driver->core, zkl_clock_now(), cache);
}

bool zkl_cached_any(const struct zkl_mutex *mutex)
{
    const struct zkl_read_cache *cache = cache_of(mutex);
    return cache && zkl_read_gate_any(&cache->gate);
}

void zkl_cached_retire(const struct zkl_mutex *mutex)
{
    struct zkl_read_cache *cache = cache_of(mutex);
    if (cache)
        zkl_read_cache_fini(&mutex->client->driver->core, zkl_clock_now(), cache);
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
    ZKL_SHIELDED();
    zkl_driver_lock(rwlock->read.client->driver);
    rwlock->cache.age_ns = retain_ms * MS;
    zkl_cached_close(&rwlock->read);
    zkl_driver_unlock(rwlock->read.client->driver);
    return 0;
}
