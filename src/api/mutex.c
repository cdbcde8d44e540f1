/* SPDX-License-Identifier: Apache-2.0
 *
 * The public calls on a mutex, and on each half of a read-write lock: re-entry by the map of what
 * the owner holds (owner.c), the first acquisition and the last unlock by the hold (wait.c).
 * semaphore_mutex.c takes over for a semaphore's mutex. Users and multi.c call this file, without
 * any lock held. */
#include <stdlib.h>

#include <assert.h>

#include "cached_reader.h"
#include "counts.h"
#include "driver/clock.h"
#include "error.h"
#include "hold.h"
#include "owner.h"

#define MS INT64_C(1000000)

static int do_mutex_new(struct zkl_mutex **mutex, struct zkl_client *client, const char *path,
                        const struct zkl_mutex_options *options)
{
    struct zkl_mutex_options ours;
    int rc = zkl_mutex_options_take(&ours, options, "zkl_mutex_new");
    if (rc == 0)
        rc = zkl_lock_check_new(mutex, client, path, &ours, "zkl_mutex_new");
    if (rc != 0)
        return rc;
    struct zkl_mutex *m = calloc(1, sizeof *m);
    if (!m)
        return zkl_fail(ZKL_ENOMEM, "zkl_mutex_new");
    rc = zkl_mutex_init(m, client, path, &ours, "zkl_mutex_new");
    m->kind = &zkl_own_mutex_kind;
    zkl_local_queue_setup(m, &ours);
    if (rc == 0)
        *mutex = m;
    else
        free(m);
    return rc;
}

int zkl_mutex_new(struct zkl_mutex **mutex, struct zkl_client *client, const char *path,
                  const struct zkl_mutex_options *options)
{
    int shield = zkl_shield();
    int rc = do_mutex_new(mutex, client, path, options);
    zkl_shield_end(shield);
    return rc;
}

static struct zkl_hold *find_in_owner(struct zkl_mutex *mutex)
{
    return zkl_owner_find(mutex->lock_path, mutex);
}

static void put_in_owner(struct zkl_hold *hold)
{
    (void)hold; /* the owner has it */
}

static int give_up_own(struct zkl_mutex *mutex, struct zkl_hold **hold)
{
    struct zkl_hold *own = zkl_owner_find(mutex->lock_path, mutex);
    *hold = NULL;
    if (!own)
        return zkl_fail(ZKL_ENOTOWNER, "%s", mutex->lock_path->path);
    assert(own->count > 0);
    if (own->count > 1)
        return zkl_hold_leave_again(own);
    own->count = 0;
    zkl_owner_remove(own);
    if (own->base)
        return zkl_cached_leave(own);
    *hold = own;
    return 0;
}

static void free_mutex(struct zkl_mutex *mutex)
{
    zkl_mutex_fini(mutex);
    free(mutex);
}

static int do_mutex_free(struct zkl_mutex *mutex)
{
    if (!mutex)
        return 0;
    if (mutex->rwlock)
        return zkl_fail(ZKL_EINVAL,
                        "zkl_mutex_free: %s is half of a read-write lock: free the read-write lock",
                        mutex->lock_path->path);
    int rc = zkl_mutex_retire(&mutex, 1, "zkl_mutex_free");
    if (rc != 0)
        return rc;
    mutex->kind->free(mutex);
    return 0;
}

int zkl_mutex_free(struct zkl_mutex *mutex)
{
    int shield = zkl_shield();
    int rc = do_mutex_free(mutex);
    zkl_shield_end(shield);
    return rc;
}

/* --- acquire ------------------------------------------------------------ */

static int check_again(const struct zkl_hold *hold)
{
    const char *path = hold->lock_path->path;
    if (zkl_hold_is_lost(hold))
        return zkl_fail(ZKL_ELOST, "%s: %d unlock(s) due", path, hold->count);
    if (hold->count == ZKL_HOLD_COUNT_MAX)
        return zkl_fail(ZKL_EOVERFLOW, "%s", path);
    return 0;
}

int zkl_mutex_fail_acquire(const struct zkl_hold *hold, int rc)
{
    const char *path = hold->lock_path->path;
    if (rc == ZKL_EACCES)
        return zkl_fail(rc,
                        "%s: the ACL denies %s; a node that was created is removed when the "
                        "session ends at the latest",
                        path, hold->detail);
    if (rc == ZKL_EEXHAUSTED)
        return zkl_fail(rc, "%s: it is blocked by %s", path, hold->detail);
    if (rc == ZKL_EFULL)
        return zkl_hold_fail_full(hold);
    if (zkl_error_is_answer(rc))
        return zkl_hold_fail_answer(hold, rc, path);
    if (rc == ZKL_ESYSTEM && hold->detail[0])
        return zkl_fail(rc,
                        "%s: while %s; the client already watches as many nodes as it can restore",
                        path, hold->detail);
    return zkl_fail_unserved(hold->client, rc, path);
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
    if (zkl_hold_is_lost(other))
        return zkl_fail(ZKL_ELOST, "%s: this thread's write lock is lost", path);
    return 0;
}

int zkl_mutex_check_owner(const struct zkl_mutex *mutex, struct zkl_hold **own,
                          struct zkl_hold **other)
{
    *other = NULL;
    *own = zkl_owner_find(mutex->lock_path, mutex);
    if (*own)
        return check_again(*own);
    if (zkl_owner_awaits(mutex))
        return zkl_fail(ZKL_EDEADLK, "%s: another operation of this owner is already acquiring it",
                        mutex->lock_path->path);
    *other = zkl_owner_find_other(mutex);
    return *other ? check_other(mutex, *other) : 0;
}

/* The failure of a call that has not waited; zkl_hold_acquire counts that of one that has. */
static int refuse(const struct zkl_mutex *mutex, int rc)
{
    return rc == 0 ? 0 : zkl_count_failure(mutex, rc);
}

static int acquire_new(struct zkl_mutex *mutex, const struct zkl_wait *wait,
                       const struct zkl_hold *downgrade_from, struct zkl_hold **got)
{
    struct zkl_hold *hold = zkl_hold_new(mutex);
    if (!hold)
        return refuse(mutex, zkl_fail(ZKL_ENOMEM, "%s", mutex->lock_path->path));
    hold->downgrade_from = downgrade_from;
    hold->may_cache = !downgrade_from;
    int rc = zkl_hold_acquire(hold, wait);
    hold->downgrade_from = NULL;
    if (rc != 0) {
        rc = zkl_mutex_fail_acquire(hold, rc);
        zkl_hold_unref(hold);
        return rc;
    }
    *got = zkl_cached_open(zkl_hold_exchange(hold));
    return 0;
}

static int have(struct zkl_hold *hold, struct zkl_grant *grant)
{
    hold->count = 1;
    zkl_owner_add(hold);
    zkl_mutex_fill_grant(grant, hold);
    return 0;
}

static int acquire_first(struct zkl_mutex *mutex, const struct zkl_wait *wait,
                         const struct zkl_hold *downgrade_from, struct zkl_grant *grant)
{
    int rc = zkl_owner_prepare();
    if (rc != 0)
        return refuse(mutex, zkl_fail(rc, "%s: the system has no thread-specific key left",
                                      mutex->lock_path->path));
    struct zkl_hold *hold = zkl_local_queue_take_idle(mutex, wait);
    rc = hold ? 0 : acquire_new(mutex, wait, downgrade_from, &hold);
    return rc == 0 ? have(hold, grant) : rc;
}

static int acquire_own(struct zkl_mutex *mutex, const struct zkl_wait *wait,
                       struct zkl_grant *grant)
{
    struct zkl_hold *hold, *other;
    int rc = zkl_mutex_check_owner(mutex, &hold, &other);
    if (rc == 0 && hold) {
        zkl_hold_enter(hold);
        zkl_mutex_fill_grant(grant, hold);
        return 0;
    }
    if (rc == 0)
        rc = zkl_wait_check_over(wait, mutex->lock_path->path);
    if (rc != 0)
        return refuse(mutex, rc);
    hold = other ? NULL : zkl_cached_enter(mutex, wait);
    if (hold)
        return have(hold, grant);
    int shield = zkl_shield();
    rc = acquire_first(mutex, wait, other, grant);
    zkl_shield_end(shield);
    return rc;
}

const struct zkl_mutex_kind zkl_own_mutex_kind = {
    .acquire = acquire_own,
    .find = find_in_owner,
    .put = put_in_owner,
    .give_up = give_up_own,
    .free = free_mutex,
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

static int release(struct zkl_hold *hold)
{
    int shield = zkl_shield();
    int rc = zkl_mutex_fail_unlock(hold, zkl_hold_release(hold));
    zkl_hold_unref(hold);
    zkl_shield_end(shield);
    return rc;
}

/* The calling thread's hold through this handle (of a semaphore's mutex: the hold of all threads),
 * NULL if there is none; the caller must return it with put_own. Or the reason why there is no
 * answer. */
static int find_own(struct zkl_mutex *mutex, const char *call, struct zkl_hold **hold)
{
    *hold = NULL;
    if (!mutex)
        return zkl_fail(ZKL_EINVAL, "%s: mutex is NULL", call);
    int rc = zkl_client_check(mutex->client, false, call);
    if (rc != 0)
        return rc;
    *hold = mutex->kind->find(mutex);
    return 0;
}

static void put_own(const struct zkl_mutex *mutex, struct zkl_hold *hold)
{
    if (hold)
        mutex->kind->put(hold);
}

int zkl_mutex_unlock(struct zkl_mutex *mutex)
{
    if (!mutex)
        return zkl_fail(ZKL_EINVAL, "zkl_mutex_unlock: mutex is NULL");
    int rc = zkl_client_check(mutex->client, false, "zkl_mutex_unlock");
    if (rc != 0)
        return rc;
    if (zkl_driver_in_callback())
        return zkl_fail(ZKL_EINCALLBACK, "%s", mutex->lock_path->path);
    struct zkl_hold *hold;
    rc = mutex->kind->give_up(mutex, &hold);
    return hold ? release(hold) : rc;
}

/* --- questions ---------------------------------------------------------- */

int zkl_mutex_still_held(struct zkl_mutex *mutex, int64_t need_ms)
{
    struct zkl_hold *hold;
    if (find_own(mutex, "zkl_mutex_still_held", &hold) != 0)
        return 0;
    int64_t window_ms = hold ? zkl_hold_window_ms(hold) : 0;
    put_own(mutex, hold);
    return zkl_hold_still_held(window_ms, need_ms, "zkl_mutex_still_held");
}

int zkl_mutex_check(struct zkl_mutex *mutex, int64_t need_ms)
{
    struct zkl_hold *hold;
    int rc = find_own(mutex, "zkl_mutex_check", &hold);
    if (rc != 0)
        return rc;
    rc = zkl_hold_check(mutex->client, hold, hold && zkl_hold_is_lost(hold),
                        hold ? zkl_hold_window_ms(hold) : 0, need_ms, mutex->lock_path->path,
                        "zkl_mutex_check");
    put_own(mutex, hold);
    return rc;
}

int zkl_mutex_hold_count(struct zkl_mutex *mutex)
{
    struct zkl_hold *hold;
    if (find_own(mutex, "zkl_mutex_hold_count", &hold) != 0)
        return 0;
    zkl_fail_none();
    int count = hold ? hold->count : 0;
    put_own(mutex, hold);
    return count;
}

uint64_t zkl_mutex_token(struct zkl_mutex *mutex)
{
    struct zkl_hold *hold;
    if (find_own(mutex, "zkl_mutex_token", &hold) != 0)
        return 0;
    zkl_fail_none();
    if (!hold)
        return 0;
    uint64_t token = zkl_hold_is_lost(hold) ? 0 : hold->token;
    put_own(mutex, hold);
    return token;
}

int64_t zkl_mutex_window_ms(struct zkl_mutex *mutex)
{
    struct zkl_hold *hold;
    if (find_own(mutex, "zkl_mutex_window_ms", &hold) != 0)
        return 0;
    zkl_fail_none();
    int64_t window = hold ? zkl_hold_window_ms(hold) : 0;
    put_own(mutex, hold);
    return window;
}

int zkl_mutex_hold_state(struct zkl_mutex *mutex, enum zkl_reason *reason)
{
    struct zkl_hold *hold;
    zkl_hold_no_reason(reason);
    if (find_own(mutex, "zkl_mutex_hold_state", &hold) != 0)
        return 0;
    int state = zkl_hold_read_state(hold, reason);
    put_own(mutex, hold);
    return state;
}

int zkl_mutex_node_path(struct zkl_mutex *mutex, char *buf, size_t size)
{
    struct zkl_hold *hold;
    int rc = find_own(mutex, "zkl_mutex_node_path", &hold);
    if (rc != 0)
        return rc;
    if (!hold && (buf || size == 0))
        return zkl_fail(ZKL_ENOTOWNER, "%s", mutex->lock_path->path);
    rc = zkl_hold_node_path(hold, buf, size, "zkl_mutex_node_path");
    put_own(mutex, hold);
    return rc;
}

int zkl_mutex_renew(struct zkl_mutex *mutex, int64_t lease_ms)
{
    struct zkl_hold *hold;
    int rc = find_own(mutex, "zkl_mutex_renew", &hold);
    if (rc != 0)
        return rc;
    if (!hold && lease_ms > 0 && lease_ms <= ZKL_TIMEOUT_MAX_MS)
        return zkl_fail(ZKL_ENOTOWNER, "%s", mutex->lock_path->path);
    rc = zkl_hold_extend(hold, lease_ms, "zkl_mutex_renew");
    put_own(mutex, hold);
    return rc;
}

int zkl_mutex_revoke_requested(struct zkl_mutex *mutex)
{
    struct zkl_hold *hold;
    if (find_own(mutex, "zkl_mutex_revoke_requested", &hold) != 0)
        return 0;
    zkl_fail_none();
    bool requested =
        hold && atomic_load_explicit(&zkl_hold_told(hold)->revoked, memory_order_acquire);
    put_own(mutex, hold);
    return requested;
}
