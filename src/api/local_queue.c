/* SPDX-License-Identifier: Apache-2.0
 *
 * Threads that take turns on one node (src/core/local_queue.h). The place moves from one thread to
 * the next, or belongs to the handle while no thread has it; each of them has a reference on it. A
 * thread that waits for its turn has a place of its own, which it frees unused if it receives
 * another one. Under the client's mutex. The files that acquire, retire and close call this
 * file. */
#include "counts.h"

#include <assert.h>
#include <limits.h>
#include "driver/clock.h"
#include "error.h"
#include "place.h"

#define MS INT64_C(1000000)

static struct zkl_place *of_local_waiter(struct zkl_local_waiter *local_waiter)
{
    return (struct zkl_place *)((char *)local_waiter - offsetof(struct zkl_place, local_waiter));
}

static void queues(struct zkl_local_queue *local_queue, struct zkl_local_waiter *local_waiter)
{
    (void)local_queue;
    zkl_place_begin(of_local_waiter(local_waiter));
}

static void take_given(struct zkl_place *place)
{
    place->given = (struct zkl_place *)place->local_waiter.given;
    place->given->caller = place->caller;
    place->given->began_ns = place->began_ns;
    place->phase = ZKL_PHASE_GRANTED;
}

static void given(struct zkl_local_queue *local_queue, struct zkl_local_waiter *local_waiter)
{
    (void)local_queue;
    take_given(of_local_waiter(local_waiter));
    zkl_place_wake(of_local_waiter(local_waiter));
}

static void dropped(struct zkl_local_queue *local_queue, struct zkl_contender *contender)
{
    (void)local_queue;
    zkl_place_put((struct zkl_place *)contender);
}

void zkl_local_queue_setup(struct zkl_mutex *mutex, const struct zkl_mutex_options *options)
{
    int64_t handoffs_max = options->local_handoffs_max;
    mutex->local_queue.handoffs_max = handoffs_max < UINT_MAX ? (unsigned)handoffs_max : UINT_MAX;
    mutex->local_queue.retain_ns = options->retain_ms * MS;
    mutex->local_queue.queues = queues;
    mutex->local_queue.given = given;
    mutex->local_queue.dropped = dropped;
    mutex->has_local_queue =
        mutex->local_queue.handoffs_max > 0 || mutex->local_queue.retain_ns > 0;
}

void zkl_place_join_local_queue(struct zkl_place *place,
                                const struct zkl_lock_request *lock_request, bool ahead)
{
    assert(zkl_driver_is_locked(place->client->driver));
    struct zkl_core *core = &place->client->driver->core;
    place->local_waiter.contender = &place->contender;
    place->local_waiter.lock_request = *lock_request;
    switch (zkl_local_queue_join(core, zkl_clock_now(), &place->mutex->local_queue,
                                 &place->local_waiter, ahead)) {
    case ZKL_LOCAL_QUEUE_GIVEN:
        take_given(place);
        break;
    case ZKL_LOCAL_QUEUE_BUSY:
        place->phase = ZKL_PHASE_FAILED;
        place->code = ZKL_EBUSY;
        break;
    case ZKL_LOCAL_QUEUE_QUEUES:
    case ZKL_LOCAL_QUEUE_WAITS:
        break;
    }
}

bool zkl_place_pass(struct zkl_place *place)
{
    struct zkl_mutex *mutex = place->mutex;
    if (!mutex->has_local_queue)
        return false;
    /* A place that its call never returned cannot pass to another owner: that call may need it
     * again. Nor can a place that reports to another callback than the next owner's would. */
    if (!place->returned || place->fn != mutex->fn || place->fn_arg != mutex->fn_arg) {
        zkl_local_queue_part(&place->client->driver->core, zkl_clock_now(), &mutex->local_queue,
                             &place->contender);
        return false;
    }
    place->returned = false;           /* to its next owner */
    atomic_fetch_add(&place->refs, 1); /* the next owner's, or the handle's */
    bool passed = zkl_local_queue_pass(&place->client->driver->core, zkl_clock_now(),
                                       &mutex->local_queue, &place->contender);
    if (passed) {
        zkl_count_passed(place);
    } else {
        place->returned = true;
        atomic_fetch_sub(&place->refs, 1); /* the caller has one */
    }
    return passed;
}

void zkl_place_put_given(struct zkl_place *place)
{
    struct zkl_place *got = place->given;
    if (!got)
        return;
    place->given = NULL;
    if (got->caller == place->caller)
        got->caller = NULL;
    zkl_place_put(got);
}

struct zkl_place *zkl_place_exchange(struct zkl_place *place)
{
    struct zkl_place *got = place->given;
    if (!got)
        return place;
    place->given = NULL;
    zkl_place_unref(place);
    return got;
}

/* Proved without doubt, and for as long as any grant: else the lock is acquired anew. */
static bool is_proved(const struct zkl_driver *d, const struct zkl_mutex *mutex, int64_t boot_ns)
{
    return mutex->local_queue.state == ZKL_LOCAL_QUEUE_IDLE &&
           boot_ns < zkl_proof_fresh_until(&d->core.session.proof);
}

static struct zkl_place *take_locked(struct zkl_driver *d, struct zkl_mutex *mutex, int64_t boot_ns)
{
    struct zkl_place *place =
        (struct zkl_place *)zkl_local_queue_take(&d->core, &mutex->local_queue);
    mutex->uses++;
    /* A clock is not read for the figures: the two differ as they did a moment ago. */
    place->began_ns = place->got_ns = zkl_time_mono(d->core.now, boot_ns);
    zkl_place_returned(place);
    return place;
}

struct zkl_place *zkl_local_queue_take_idle(struct zkl_mutex *mutex, const struct zkl_wait *wait)
{
    struct zkl_driver *d = mutex->client->driver;
    struct zkl_place *place = NULL;
    if (mutex->local_queue.retain_ns == 0 || wait->lease_ms > 0)
        return NULL;
    ZKL_SHIELDED();
    zkl_driver_lock(d);
    int64_t boot_ns = zkl_clock_boot_ns();
    if (is_proved(d, mutex, boot_ns))
        place = take_locked(d, mutex, boot_ns);
    zkl_driver_unlock(d);
    return place;
}

bool zkl_local_queue_take_all(struct zkl_mutex *const *mutexes, size_t count,
                              const struct zkl_wait *wait, struct zkl_place **places)
{
    struct zkl_driver *d = mutexes[0]->client->driver;
    bool all = true;
    zkl_driver_lock(d);
    struct zkl_time now = zkl_clock_now();
    for (size_t i = 0; i < count; i++)
        all = all && is_proved(d, mutexes[i], now.boot_ns);
    for (size_t i = 0; i < count; i++) {
        if (!all)
            zkl_local_queue_drop(&d->core, now, &mutexes[i]->local_queue);
        else
            places[i] = take_locked(d, mutexes[i], now.boot_ns);
        if (all && wait->lease_ms > 0)
            (void)zkl_place_lease(places[i], wait->lease_ms);
    }
    zkl_driver_unlock(d);
    return all;
}

void zkl_local_queue_retire(struct zkl_mutex *mutex)
{
    if (mutex->has_local_queue)
        zkl_local_queue_fini(&mutex->client->driver->core, zkl_clock_now(), &mutex->local_queue);
}
