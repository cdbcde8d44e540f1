/* SPDX-License-Identifier: Apache-2.0
 *
 * The mutex that any thread may unlock: a semaphore with one permit, which belongs to the handle.
 * The handle has the one hold, with a reference (permit_request.c). mutex.c calls this file, through
 * the row of its kind. */
#include <stdlib.h>

#include "attempt.h"
#include "counts.h"
#include "error.h"

/* --- lock and unlock ---------------------------------------------------- */

static int lock(struct zkl_mutex *mutex, const struct zkl_wait *wait, struct zkl_grant *grant)
{
    struct zkl_attempt_of_one one;
    int rc = zkl_attempt_of_permits(&one, mutex->semaphore, 1, wait);
    return zkl_attempt_take_one(&one, mutex, rc, grant, NULL);
}

static int acquire(struct zkl_mutex *mutex, const struct zkl_wait *wait, struct zkl_grant *grant)
{
    int rc = zkl_wait_check_over(wait, mutex->semaphore->path->path);
    ZKL_SHIELDED();
    if (rc == 0)
        rc = zkl_semaphore_check_handle(mutex, wait);
    return rc == 0 ? lock(mutex, wait, grant) : zkl_count_failure(mutex, rc);
}

static int give_up(struct zkl_mutex *mutex, struct zkl_place **place)
{
    ZKL_SHIELDED();
    *place = zkl_semaphore_take(mutex, NULL);
    return *place ? 0 : zkl_fail(ZKL_ENOTOWNER, "%s", mutex->semaphore->path->path);
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
    .fini = zkl_semaphore_fini, /* which begins with it */
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
