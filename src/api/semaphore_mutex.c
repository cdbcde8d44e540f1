/* SPDX-License-Identifier: Apache-2.0
 *
 * The mutex that any thread may unlock: a semaphore with one permit, which belongs to the handle.
 * The handle has the one hold, with a reference. Calls take and store the hold under the client's
 * mutex. mutex.c, async.c, guard.c and the files of the multi-lock call this file for a mutex of
 * this kind. */
#include <stdlib.h>

#include "permit_request.h"
#include "counts.h"
#include "error.h"

/* --- the handle's one hold ---------------------------------------------- */

struct zkl_place *zkl_semaphore_find(struct zkl_mutex *mutex)
{
    int shield = zkl_shield();
    zkl_driver_lock(mutex->client->driver);
    struct zkl_place *place = mutex->semaphore->place;
    if (place)
        atomic_fetch_add(&place->refs, 1);
    zkl_driver_unlock(mutex->client->driver);
    zkl_shield_end(shield);
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

/* --- lock and unlock ---------------------------------------------------- */

static int lock(struct zkl_mutex *mutex, const struct zkl_wait *wait, struct zkl_grant *grant)
{
    struct zkl_permit_request *request = zkl_permit_request_new(mutex->semaphore, 1);
    if (!request)
        return zkl_count_failure(mutex, zkl_fail(ZKL_ENOMEM, "%s", mutex->semaphore->path->path));
    int rc = zkl_permit_request_acquire(request, wait); /* the handle has the hold already */
    if (rc == 0)
        zkl_mutex_fill_grant(grant, zkl_permit_request_place(request, 0), 1);
    zkl_permit_request_unref(request);
    return rc;
}

static int acquire(struct zkl_mutex *mutex, const struct zkl_wait *wait, struct zkl_grant *grant)
{
    int rc = zkl_wait_check_over(wait, mutex->semaphore->path->path);
    int shield = zkl_shield();
    if (rc == 0)
        rc = zkl_semaphore_check_handle(mutex, wait);
    rc = rc == 0 ? lock(mutex, wait, grant) : zkl_count_failure(mutex, rc);
    zkl_shield_end(shield);
    return rc;
}

static int give_up(struct zkl_mutex *mutex, struct zkl_place **place)
{
    int shield = zkl_shield();
    *place = zkl_semaphore_take(mutex, NULL);
    zkl_shield_end(shield);
    return *place ? 0 : zkl_fail(ZKL_ENOTOWNER, "%s", mutex->semaphore->path->path);
}

static void free_with_semaphore(struct zkl_mutex *mutex)
{
    struct zkl_semaphore *semaphore = mutex->semaphore; /* which it is part of */
    zkl_semaphore_fini(semaphore);
    free(semaphore);
}

static struct zkl_hold find(struct zkl_mutex *mutex)
{
    struct zkl_place *place = zkl_semaphore_find(mutex);
    return (struct zkl_hold){.mutex = mutex, .place = place, .count = place != NULL};
}

static void put(const struct zkl_hold *hold)
{
    zkl_place_unref(hold->place);
}

static const struct zkl_mutex_kind handle_kind = {
    .acquire = acquire,
    .find = find,
    .put = put,
    .give_up = give_up,
    .free = free_with_semaphore,
};

/* --- a handle ----------------------------------------------------------- */

static int init(void *handle, struct zkl_client *client, const char *path, int permits,
                const struct zkl_mutex_options *options, const char *call)
{
    struct zkl_semaphore *semaphore = handle;
    semaphore->base.kind = &handle_kind;
    return zkl_semaphore_init(semaphore, client, path, permits, options, call);
}

int zkl_semaphore_mutex_new(struct zkl_mutex **mutex, struct zkl_client *client, const char *path,
                            const struct zkl_lock_options *options)
{
    static const struct zkl_lock_maker maker = {
        "zkl_semaphore_mutex_new", sizeof(struct zkl_semaphore), zkl_lock_options_take, init};
    void *made;
    int rc = zkl_lock_new(&maker, mutex, client, path, 1, options, &made);
    if (rc == 0)
        *mutex = &((struct zkl_semaphore *)made)->base;
    return rc;
}
