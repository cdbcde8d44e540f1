/* SPDX-License-Identifier: Apache-2.0
 *
 * The public calls on a mutex, and on each half of a read-write lock: re-entry by the map of what
 * the owner holds (owner.c), the first acquisition by an attempt (attempt.c), the last unlock by the
 * place (wait.c). semaphore.c takes over for a semaphore's mutex. Users and multi.c call this file,
 * without any lock held. */
#include <stdlib.h>

#include <assert.h>

#include "attempt.h"
#include "cached_reader.h"
#include "counts.h"
#include "driver/clock.h"
#include "error.h"
#include "place.h"
#include "owner.h"

#define MS INT64_C(1000000)

static int init(void *handle, struct zkl_client *client, const char *path, int permits,
                const struct zkl_mutex_options *options, const char *call)
{
    struct zkl_mutex *mutex = handle;
    (void)permits;
    mutex->kind = &zkl_own_mutex_kind;
    zkl_local_queue_setup(mutex, options);
    return zkl_mutex_init(mutex, client, path, options, call);
}

int zkl_mutex_new(struct zkl_mutex **mutex, struct zkl_client *client, const char *path,
                  const struct zkl_mutex_options *options)
{
    static const struct zkl_lock_maker maker = {"zkl_mutex_new", sizeof(struct zkl_mutex),
                                                zkl_mutex_options_take, init};
    void *made;
    int rc = zkl_lock_new(&maker, mutex, client, path, 0, options, &made);
    if (rc == 0)
        *mutex = made;
    return rc;
}

static struct zkl_hold find_in_owner(struct zkl_mutex *mutex)
{
    const struct zkl_hold *own = zkl_owner_find(mutex);
    if (!own)
        return (struct zkl_hold){0};
    return (struct zkl_hold){
        .mutex = mutex, .place = own->place, .shared = own->shared, .count = own->count};
}

static void put_in_owner(const struct zkl_hold *hold)
{
    (void)hold; /* the owner has it */
}

/* An unlock that is not the last one says what is known to be wrong by now. */
static int leave_again(struct zkl_hold *own)
{
    own->count--;
    int rc = zkl_place_doubt(own->place);
    return rc == 0
               ? 0
               : zkl_fail(rc, "%s: %d more unlock(s) due", own->mutex->lock_path->path, own->count);
}

static int give_up_own(struct zkl_mutex *mutex, struct zkl_place **place)
{
    struct zkl_hold *own = zkl_owner_find(mutex);
    int rc = 0;
    *place = NULL;
    if (!own)
        return zkl_fail(ZKL_ENOTOWNER, "%s", mutex->lock_path->path);
    assert(own->count > 0);
    if (own->count > 1)
        return leave_again(own);
    zkl_owner_remove(own);
    if (own->shared) {
        rc = zkl_cached_leave(own);
    } else {
        own->place->reentries = own->reentries;
        *place = own->place;
    }
    zkl_hold_free(own);
    return rc;
}

int zkl_mutex_free(struct zkl_mutex *mutex)
{
    if (!mutex)
        return 0;
    if (mutex->rwlock)
        return zkl_fail(ZKL_EINVAL,
                        "zkl_mutex_free: %s is half of a read-write lock: free the read-write lock",
                        mutex->lock_path->path);
    return zkl_lock_free(mutex, &mutex, 1, mutex->kind->fini, "zkl_mutex_free");
}

/* --- acquire ------------------------------------------------------------ */

static int check_again(const struct zkl_hold *hold)
{
    const char *path = hold->mutex->lock_path->path;
    if (zkl_place_is_lost(hold->place))
        return zkl_fail(ZKL_ELOST, "%s: %d unlock(s) due", path, hold->count);
    if (hold->count == ZKL_HOLD_COUNT_MAX)
        return zkl_fail(ZKL_EOVERFLOW, "%s", path);
    return 0;
}

/* The calling thread has something at this path, but not through this handle. Only one case may
 * continue: the read lock under the write lock of the same thread. */
static int check_other(const struct zkl_mutex *mutex, const struct zkl_hold *other)
{
    const char *path = mutex->lock_path->path;
    if (!mutex->rwlock || other->mutex->rwlock != mutex->rwlock)
        return zkl_fail(ZKL_EDEADLK, "%s: this thread holds it through another handle", path);
    if (mutex == &mutex->rwlock->write)
        return zkl_fail(ZKL_EDEADLK,
                        "%s: this thread holds the read lock, which cannot become the write lock: "
                        "unlock it first",
                        path);
    if (zkl_place_is_lost(other->place))
        return zkl_fail(ZKL_ELOST, "%s: this thread's write lock is lost", path);
    return 0;
}

int zkl_mutex_check_owner(const struct zkl_mutex *mutex, struct zkl_hold **own,
                          struct zkl_hold **other)
{
    bool comes = zkl_owner_look(mutex, own, other);
    if (*own)
        return check_again(*own);
    if (comes)
        return zkl_fail(ZKL_EDEADLK, "%s: another operation of this owner is already acquiring it",
                        mutex->lock_path->path);
    return *other ? check_other(mutex, *other) : 0;
}

/* What the handle has already is entered without a request. */
static bool has_already(struct zkl_hold *hold, const struct zkl_wait *wait,
                        const struct zkl_hold *under)
{
    if (!under && zkl_cached_enter(hold, wait))
        return true;
    hold->place = zkl_local_queue_take_idle(hold->mutex, wait);
    return hold->place;
}

/* With a node of its own. */
static int acquire_new(struct zkl_hold *hold, const struct zkl_wait *wait,
                       const struct zkl_hold *under, struct zkl_grant *grant)
{
    struct zkl_attempt_of_one one;
    ZKL_SHIELDED();
    int rc = zkl_attempt_of_mutex(&one, hold, under, wait);
    return zkl_attempt_take_one(&one, hold->mutex, rc, grant, NULL);
}

static int acquire_own(struct zkl_mutex *mutex, const struct zkl_wait *wait,
                       struct zkl_grant *grant)
{
    struct zkl_hold *own, *under;
    int rc = zkl_mutex_check_owner(mutex, &own, &under);
    bool again = rc == 0 && own;
    if (rc == 0 && !again)
        rc = zkl_wait_check_over(wait, mutex->lock_path->path);
    if (rc == 0 && !again)
        rc = zkl_hold_new(&own, mutex);
    if (rc != 0)
        return zkl_count_failure(mutex, rc);
    if (!again && !has_already(own, wait, under))
        return acquire_new(own, wait, under, grant);
    zkl_hold_enter(own);
    if (!again)
        zkl_owner_add(own);
    zkl_mutex_fill_grant(grant, own->place, own->count);
    return 0;
}

const struct zkl_mutex_kind zkl_own_mutex_kind = {
    .acquire = acquire_own,
    .find = find_in_owner,
    .put = put_in_owner,
    .give_up = give_up_own,
    .fini = zkl_mutex_fini,
};

int zkl_mutex_acquire(struct zkl_mutex *mutex, const struct zkl_wait *wait, struct zkl_grant *grant)
{
    static const char call[] = "zkl_mutex_acquire";
    struct zkl_wait ours;
    if (!mutex)
        return zkl_fail(ZKL_EINVAL, "%s: mutex is NULL", call);
    int rc = zkl_grant_check(grant, call);
    if (rc == 0)
        rc = zkl_wait_take(&ours, wait, call);
    if (rc == 0)
        rc = zkl_wait_check(&ours, mutex->client, call, true);
    if (rc != 0)
        return rc;
    return mutex->kind->acquire(mutex, &ours, grant);
}

int zkl_mutex_lock(struct zkl_mutex *mutex)
{
    return zkl_mutex_acquire(mutex, NULL, NULL);
}

int zkl_mutex_trylock(struct zkl_mutex *mutex)
{
    struct zkl_wait wait = ZKL_WAIT_INIT;
    wait.flags = ZKL_WAIT_TRY;
    return zkl_mutex_acquire(mutex, &wait, NULL);
}

int zkl_mutex_lock_for(struct zkl_mutex *mutex, int64_t timeout_ms)
{
    if (zkl_check_ms(timeout_ms, "zkl_mutex_lock_for") != 0)
        return ZKL_EBADTIMEOUT;
    return zkl_mutex_lock_until(mutex, zkl_clock_mono_ns() + timeout_ms * MS, NULL);
}

int zkl_mutex_lock_until(struct zkl_mutex *mutex, int64_t deadline_ns, struct zkl_cancel *cancel)
{
    struct zkl_wait wait = ZKL_WAIT_INIT;
    wait.deadline_ns = deadline_ns;
    wait.cancel = cancel;
    return zkl_mutex_acquire(mutex, &wait, NULL);
}

/* --- release ------------------------------------------------------------ */

int zkl_mutex_unlock(struct zkl_mutex *mutex)
{
    if (!mutex)
        return zkl_fail(ZKL_EINVAL, "zkl_mutex_unlock: mutex is NULL");
    int rc = zkl_client_check(mutex->client, false, "zkl_mutex_unlock");
    if (rc != 0)
        return rc;
    if (zkl_driver_in_callback())
        return zkl_fail(ZKL_EINCALLBACK, "%s", mutex->lock_path->path);
    struct zkl_place *place;
    rc = mutex->kind->give_up(mutex, &place);
    return place ? zkl_lock_release(place) : rc;
}
