/* SPDX-License-Identifier: Apache-2.0
 *
 * A request for permits: the object that one call of zkl_semaphore_acquire, or one lock of a
 * semaphore's mutex, waits for. It owns the places that become permits, and outlives the call until
 * the core has finished with it. Under the client's mutex, except its creation and its end.
 * semaphore.c, async.c and multi_acquire.c make requests; wait.c takes their steps. */
#include "permit_request.h"

#include <stdlib.h>

#include "driver/clock.h"
#include "error.h"

#define MS INT64_C(1000000)
#define MIDWAY_MS 1000 /* how long a try waits for a contender that is just acquiring */
#define LOOK_MS 100

struct zkl_place *zkl_permit_request_place(const struct zkl_permit_request *request, size_t i)
{
    return (struct zkl_place *)request->members[1 + i].contender;
}

static void free_request(struct zkl_permit_request *request)
{
    struct zkl_client *client = request->client;
    for (size_t i = 0; i < request->count; i++)
        zkl_place_unref(zkl_permit_request_place(request, i));
    zkl_waker_fini(&request->ending);
    zkl_lock_path_put(client, request->gate);
    zkl_lock_path_put(client, request->path);
    free(request);
    zkl_client_unref(client);
}

void zkl_permit_request_unref(struct zkl_permit_request *request)
{
    if (atomic_fetch_sub(&request->refs, 1) == 1)
        free_request(request);
}

static void ended(struct zkl_waker *waker)
{
    zkl_permit_request_unref(
        (struct zkl_permit_request *)((char *)waker - offsetof(struct zkl_permit_request, ending)));
}

static bool add_places(struct zkl_permit_request *request, struct zkl_mutex *mutex, size_t count)
{
    for (; request->count < count; request->count++) {
        struct zkl_place *place = zkl_place_new(mutex, NULL);
        if (!place)
            return false;
        place->request = request;
        request->members[1 + request->count].contender = &place->contender;
    }
    return true;
}

struct zkl_permit_request *zkl_permit_request_new(struct zkl_semaphore *semaphore, size_t count)
{
    struct zkl_permit_request *request =
        calloc(1, sizeof *request + (1 + count) * sizeof *request->members);
    if (!request)
        return NULL;
    struct zkl_client *client = semaphore->base.client;
    request->client = client;
    request->semaphore = semaphore;
    request->gate = semaphore->gate;
    request->path = semaphore->path;
    atomic_init(&request->refs, 1);
    zkl_waker_init(&request->ending, ended);
    zkl_client_ref(client);
    bool complete = add_places(request, &semaphore->base, count);
    zkl_driver_lock(client->driver);
    request->declared = semaphore->view.permits;
    request->gate->refs++;
    request->path->refs++;
    semaphore->base.lock_path->refs += request->count; /* each place's, given up with it */
    for (size_t i = 0; i < request->count; i++)
        zkl_permit_request_place(request, i)->has_lock_path = true;
    zkl_driver_unlock(client->driver);
    if (complete)
        return request;
    zkl_permit_request_unref(request);
    return NULL;
}

/* --- what the core says ------------------------------------------------- */

static void told(struct zkl_bundle *bundle, const struct zkl_notification *notification)
{
    struct zkl_permit_request *request = (struct zkl_permit_request *)bundle;
    if (notification->type == ZKL_NOTIFY_ENDED) {
        /* After a failure the core has none of them; some may never have begun. */
        for (size_t i = 0; i < request->count; i++)
            zkl_permit_request_place(request, i)->ended |=
                zkl_permit_request_place(request, i)->phase == ZKL_PHASE_FAILED;
        zkl_place_wake(zkl_permit_request_place(request, 0));
        zkl_driver_wake(request->client->driver, &request->ending);
        return;
    }
    for (size_t i = 0; i < request->count; i++) {
        struct zkl_place *place = zkl_permit_request_place(request, i);
        if (notification->type == ZKL_NOTIFY_GRANTED) /* from here on it is the core's by itself */
            atomic_fetch_add(&place->refs, 1);
        zkl_place_notification(&request->client->driver->port, &place->contender, notification);
    }
}

/* --- the call ----------------------------------------------------------- */

static struct zkl_lock_request lock_request_of(const struct zkl_permit_request *request,
                                               const struct zkl_wait *wait)
{
    const struct zkl_mutex *base = &request->semaphore->base;
    return (struct zkl_lock_request){.path = &base->lock_path->core,
                                     .data = zkl_permit_request_place(request, 0)->data,
                                     .naming = base->naming,
                                     .quota.view = &request->semaphore->view,
                                     .try_only = (wait->flags & ZKL_WAIT_TRY) != 0,
                                     .try_sync = (wait->flags & ZKL_WAIT_SYNC) != 0,
                                     .watch_own = base->fn != NULL || base->revocable,
                                     .posted = base->posted_unlock};
}

void zkl_permit_request_begin(struct zkl_permit_request *request, const struct zkl_wait *wait)
{
    struct zkl_time now = zkl_clock_now();
    struct zkl_lock_request lock_request = lock_request_of(request, wait);
    request->members[0] = (struct zkl_bundle_member){
        .contender = &request->gate_place,
        .lock_request = {.path = &request->gate->core, .data = lock_request.data}};
    for (size_t i = 0; i < request->count; i++) {
        struct zkl_place *place = zkl_permit_request_place(request, i);
        request->members[1 + i].lock_request = lock_request;
        place->phase = ZKL_PHASE_WAITING;
        place->ended = false;
        place->given_back = false; /* of an earlier try of the same call */
        atomic_store(&place->lost, false);
        atomic_store(&place->revoked, false);
        place->reason = ZKL_REASON_NONE;
    }
    if (wait->flags & ZKL_WAIT_TRY)
        request->busy_at = now.mono_ns + MIDWAY_MS * MS;
    request->bundle.members = request->members;
    request->bundle.count = 1 + request->count;
    request->bundle.gated = true;
    request->bundle.lease_ns = wait->lease_ms * MS;
    request->bundle.told = told;
    atomic_fetch_add(&request->refs, 1); /* the core's, until ENDED */
    zkl_bundle_acquire(&request->client->driver->core, now, &request->bundle);
}

bool zkl_permit_request_is_over(const struct zkl_permit_request *request)
{
    return request->bundle.state == ZKL_BUNDLE_IDLE && !request->ending.queued;
}

bool zkl_permit_request_is_busy(const struct zkl_permit_request *request, int64_t now_ns)
{
    return request->busy_at != 0 && now_ns >= request->busy_at &&
           zkl_bundle_is_behind(&request->bundle);
}

int64_t zkl_permit_request_next_look(const struct zkl_permit_request *request, int64_t now_ns)
{
    if (request->busy_at == 0)
        return INT64_MAX;
    return now_ns < request->busy_at ? request->busy_at : now_ns + LOOK_MS * MS;
}

void zkl_permit_request_returned(struct zkl_permit_request *request, int rc)
{
    if (rc == 0 && request->semaphore->base.kind)
        request->semaphore->place =
            zkl_permit_request_place(request, 0); /* with the owner's reference */
    request->semaphore = NULL;
    for (size_t i = 0; i < request->count; i++) {
        struct zkl_place *place = zkl_permit_request_place(request, i);
        place->request = NULL;
        if (rc == 0)
            atomic_fetch_add(&place->refs, 1); /* the owner's */
    }
}

int zkl_permit_request_fail(const struct zkl_permit_request *request, int rc)
{
    const struct zkl_place *place = zkl_permit_request_place(request, 0);
    const char *path = request->path->path;
    if (rc == ZKL_EMISMATCH && place->number == 0)
        return zkl_fail(rc, "%s: the path has no number of permits, and the handle gives none",
                        path);
    if (rc == ZKL_EMISMATCH)
        return zkl_fail(rc, "%s has %d permits, not %d", path, place->number, request->declared);
    if (rc == ZKL_EINVAL)
        return zkl_fail(rc, "%s has %d permits: a call cannot acquire %zu", path, place->number,
                        request->count);
    if (rc == ZKL_EACCES)
        return zkl_fail(rc, "%s: the ACL denies %s there or below", path, place->detail);
    if (rc == ZKL_EEXHAUSTED)
        return zkl_fail(rc, "%s: its inner lock is blocked by %s", path, place->detail);
    if (rc == ZKL_EFULL)
        return zkl_place_fail_full(place);
    if (zkl_error_is_answer(rc))
        return zkl_place_fail_answer(place, rc, path);
    return zkl_fail_unserved(place->client, rc, path);
}

/* --- the one hold of a semaphore's mutex ---------------------------------- */

struct zkl_place *zkl_semaphore_find(struct zkl_mutex *mutex)
{
    ZKL_SHIELDED();
    zkl_driver_lock(mutex->client->driver);
    struct zkl_place *place = mutex->semaphore->place;
    if (place)
        atomic_fetch_add(&place->refs, 1);
    zkl_driver_unlock(mutex->client->driver);
    return place;
}

/* Threads that have their permit and wait for the handle go on. */
struct zkl_place *zkl_semaphore_take(struct zkl_mutex *mutex, const struct zkl_place *only)
{
    zkl_driver_lock(mutex->client->driver);
    struct zkl_place *place = mutex->semaphore->place;
    if (only && place != only)
        place = NULL;
    else
        mutex->semaphore->place = NULL;
    for (struct zkl_place *other = mutex->client->waiting; place && other;
         other = other->wait_next) {
        if (other->mutex == mutex)
            zkl_place_wake(other);
    }
    zkl_driver_unlock(mutex->client->driver);
    return place;
}

int zkl_semaphore_check_handle(struct zkl_mutex *mutex, const struct zkl_wait *wait)
{
    struct zkl_place *held = wait->flags & ZKL_WAIT_TRY ? zkl_semaphore_find(mutex) : NULL;
    if (!held)
        return 0;
    zkl_place_unref(held);
    return zkl_fail(ZKL_EBUSY, "%s: this handle already holds it", mutex->semaphore->path->path);
}
