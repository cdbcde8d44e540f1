/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "counts.h"
#include "driver/clock.h"
#include "error.h"
#include "hold.h"
#include "owner.h"

#define MS INT64_C(1000000)
#define RETAIN_MAX_MS 3600000

static int check_options(const struct zkl_lock_options *o, const char *call)
{
    if (!o)
        return 0;
    if (o->size != sizeof *o)
        return zkl_fail(ZKL_EINVAL, "%s: fill options with ZKL_LOCK_OPTIONS_INIT", call);
    if (o->names < ZKL_NAMES_CURATOR || o->names > ZKL_NAMES_NAMED)
        return zkl_fail(ZKL_EINVAL, "%s: names is %d, not a ZKL_NAMES_* value", call,
                        (int)o->names);
    if ((o->names == ZKL_NAMES_NAMED) != (o->name != NULL))
        return zkl_fail(ZKL_EINVAL, "%s: ZKL_NAMES_NAMED and a name go together", call);
    const char *fault = o->name ? zkl_lock_name_fault(o->name) : NULL;
    if (fault)
        return zkl_fail(ZKL_EINVAL, "%s: the name \"%.64s\" %s", call, o->name, fault);
    if (o->owner && strlen(o->owner) > ZKL_OWNER_MAX)
        return zkl_fail(ZKL_EINVAL, "%s: owner is longer than %d bytes", call, ZKL_OWNER_MAX);
    if (o->local_handoffs_max < 0)
        return zkl_fail(ZKL_EINVAL, "%s: local_handoffs_max is %d, not 0 or more", call,
                        o->local_handoffs_max);
    if (o->retain_ms < 0 || o->retain_ms > RETAIN_MAX_MS)
        return zkl_fail(ZKL_EBADTIMEOUT, "%s: retain_ms is %lld, not 0 to %d", call,
                        (long long)o->retain_ms, RETAIN_MAX_MS);
    return 0;
}

int zkl_lock_check_new(const void *out, struct zkl_client *client, const char *path,
                       const struct zkl_lock_options *options, const char *call)
{
    if (!out || !client || !path)
        return zkl_fail(ZKL_EINVAL, "%s: %s is NULL", call,
                        !out ? "the place for the handle" : (!client ? "client" : "path"));
    int rc = zkl_client_check(client, true, call);
    if (rc != 0)
        return rc;
    const char *fault = zkl_path_fault(path);
    if (fault)
        return zkl_fail(ZKL_EBADPATH, "\"%.64s\" %s", path, fault);
    return check_options(options, call);
}

int zkl_lock_check_no_mutex(const struct zkl_lock_options *o, const char *call)
{
    const char *what = NULL;
    if (o && o->names == ZKL_NAMES_NAMED)
        what = "ZKL_NAMES_NAMED";
    else if (o && o->local_handoffs_max != 0)
        what = "local_handoffs_max";
    else if (o && o->retain_ms != 0)
        what = "retain_ms";
    return what ? zkl_fail(ZKL_EINVAL, "%s: %s is for mutexes only", call, what) : 0;
}

int zkl_mutex_init(struct zkl_mutex *mutex, struct zkl_client *client, const char *path,
                   const struct zkl_lock_options *o, const char *call)
{
    mutex->naming.names = o ? o->names : ZKL_NAMES_CURATOR;
    if (o && o->name)
        strcpy(mutex->naming.name, o->name);
    mutex->revocable = o && o->revocable;
    mutex->posted_unlock = o && o->posted_unlock;
    mutex->owner = o && o->owner ? strdup(o->owner) : NULL;
    bool copied = !o || !o->owner == !mutex->owner;
    mutex->root = copied ? zkl_root_get(client, path) : NULL;
    bool counted = mutex->root && (!o || !o->metrics || zkl_root_keep_counts(client, mutex->root));
    if (!counted) {
        if (mutex->root)
            zkl_root_put(client, mutex->root);
        free(mutex->owner);
        return zkl_fail(ZKL_ENOMEM, "%s", call);
    }
    mutex->client = client;
    zkl_client_ref(client);
    return 0;
}

void zkl_mutex_fini(struct zkl_mutex *mutex)
{
    struct zkl_client *client = mutex->client;
    zkl_root_put(client, mutex->root);
    free(mutex->owner);
    zkl_client_unref(client);
}

static int do_mutex_new(struct zkl_mutex **mutex, struct zkl_client *client, const char *path,
                        const struct zkl_lock_options *options)
{
    int rc = zkl_lock_check_new(mutex, client, path, options, "zkl_mutex_new");
    if (rc != 0)
        return rc;
    struct zkl_mutex *m = calloc(1, sizeof *m);
    if (!m)
        return zkl_fail(ZKL_ENOMEM, "zkl_mutex_new");
    rc = zkl_mutex_init(m, client, path, options, "zkl_mutex_new");
    zkl_turns_setup(m, options);
    if (rc == 0)
        *mutex = m;
    else
        free(m);
    return rc;
}

int zkl_mutex_new(struct zkl_mutex **mutex, struct zkl_client *client, const char *path,
                  const struct zkl_lock_options *options)
{
    int shield = zkl_shield();
    int rc = do_mutex_new(mutex, client, path, options);
    zkl_shield_end(shield);
    return rc;
}

/* Why the handles can't be given up now, with the mutex; 0: they can. */
static int check_retire(struct zkl_mutex *const *mutexes, size_t count, const char *call)
{
    for (size_t i = 0; i < count; i++) {
        const char *path = mutexes[i]->root->path;
        if (mutexes[i]->uses > 0)
            return zkl_fail(ZKL_EBUSY, "%s: %s is held or waited on", call, path);
        if (zkl_driver_would_cross(mutexes[i]->client->driver, mutexes[i]))
            return zkl_fail(ZKL_EINCALLBACK, "%s: %s: its own callback runs, on another client",
                            call, path);
    }
    return 0;
}

int zkl_mutex_retire(struct zkl_mutex *const *mutexes, size_t count, const char *call)
{
    struct zkl_driver *d = mutexes[0]->client->driver;
    struct zkl_note *notes[2] = {NULL};
    int rc = zkl_client_check(mutexes[0]->client, false, call);
    if (rc != 0)
        return rc;
    zkl_driver_lock(d);
    rc = check_retire(mutexes, count, call);
    for (size_t i = 0; rc == 0 && i < count; i++) {
        zkl_turns_retire(mutexes[i]);
        notes[i] = zkl_driver_quiesce(d, mutexes[i]);
    }
    zkl_driver_unlock(d);
    for (size_t i = 0; i < count; i++)
        zkl_hold_drop_notes(notes[i]);
    return rc;
}

static int do_mutex_free(struct zkl_mutex *mutex)
{
    if (!mutex)
        return 0;
    if (mutex->rwlock)
        return zkl_fail(ZKL_EINVAL, "zkl_mutex_free: %s is half of a read-write lock: free that",
                        mutex->root->path);
    int rc = zkl_mutex_retire(&mutex, 1, "zkl_mutex_free");
    if (rc != 0)
        return rc;
    if (mutex->semaphore) { /* which it is part of */
        zkl_semaphore_fini(mutex->semaphore);
        free(mutex->semaphore);
        return 0;
    }
    zkl_mutex_fini(mutex);
    free(mutex);
    return 0;
}

int zkl_mutex_free(struct zkl_mutex *mutex)
{
    int shield = zkl_shield();
    int rc = do_mutex_free(mutex);
    zkl_shield_end(shield);
    return rc;
}

static int do_mutex_set_callback(struct zkl_mutex *mutex, zkl_hold_fn fn, void *arg)
{
    if (!mutex)
        return zkl_fail(ZKL_EINVAL, "zkl_mutex_set_callback: mutex is NULL");
    int rc = zkl_client_check(mutex->client, false, "zkl_mutex_set_callback");
    if (rc != 0)
        return rc;
    struct zkl_driver *d = mutex->client->driver;
    zkl_driver_lock(d);
    bool replaced = mutex->fn != fn || mutex->fn_arg != arg;
    mutex->fn = fn;
    mutex->fn_arg = arg;
    if (replaced)
        zkl_turns_drop(&d->core, zkl_clock_now(), &mutex->turns);
    zkl_driver_unlock(d);
    return 0;
}

int zkl_mutex_set_callback(struct zkl_mutex *mutex, zkl_hold_fn fn, void *arg)
{
    int shield = zkl_shield();
    int rc = do_mutex_set_callback(mutex, fn, arg);
    zkl_shield_end(shield);
    return rc;
}

/* --- acquire ------------------------------------------------------------ */

void zkl_mutex_fill_grant(struct zkl_grant *grant, const struct zkl_hold *hold)
{
    if (!grant)
        return;
    grant->token = hold->token;
    grant->window_ms = zkl_hold_window_ms(hold);
    grant->hold_count = hold->count;
}

int zkl_mutex_check_again(const struct zkl_hold *hold)
{
    const char *path = hold->root->path;
    if (zkl_hold_is_lost(hold))
        return zkl_fail(ZKL_ELOST, "%s: %d unlock(s) due", path, hold->count);
    if (hold->count == ZKL_HOLD_COUNT_MAX)
        return zkl_fail(ZKL_EOVERFLOW, "%s", path);
    return 0;
}

static int reenter(struct zkl_hold *hold, struct zkl_grant *grant)
{
    int rc = zkl_mutex_check_again(hold);
    if (rc != 0)
        return rc;
    zkl_hold_enter(hold);
    zkl_mutex_fill_grant(grant, hold);
    return 0;
}

int zkl_mutex_fail_acquire(const struct zkl_hold *hold, int rc)
{
    const char *path = hold->root->path;
    if (rc == ZKL_EACCES)
        return zkl_fail(rc, "%s: no %s; what was created goes when the session ends at the latest",
                        path, hold->detail);
    if (rc == ZKL_EEXHAUSTED)
        return zkl_fail(rc, "%s: blocked by %s", path, hold->detail);
    if (zkl_error_is_answer(rc))
        return zkl_fail(rc, "%s: while %s, ZooKeeper said %d", path, hold->detail, hold->number);
    if (rc == ZKL_ESYSTEM && hold->detail[0])
        return zkl_fail(rc, "%s: %s beside all that this client watches", path, hold->detail);
    return zkl_fail(rc, "%s", path);
}

/* The calling thread has something at this path, but not through this handle: only the read lock of
 * who has the write lock goes on, under that. */
int zkl_mutex_check_other(const struct zkl_mutex *mutex, const struct zkl_hold *other)
{
    const char *path = mutex->root->path;
    if (!mutex->rwlock || other->mutex->rwlock != mutex->rwlock)
        return zkl_fail(ZKL_EDEADLK, "%s: held by this thread through another handle", path);
    if (mutex->naming.role == ZKL_ROLE_WRITE)
        return zkl_fail(ZKL_EDEADLK,
                        "%s: this thread has the read lock, which can't become the write lock: "
                        "unlock it first",
                        path);
    if (zkl_hold_is_lost(other))
        return zkl_fail(ZKL_ELOST, "%s: the write lock of this thread is lost", path);
    return 0;
}

static int acquire_new(struct zkl_mutex *mutex, const struct zkl_wait *wait,
                       const struct zkl_hold *under, struct zkl_hold **got)
{
    struct zkl_hold *hold = zkl_hold_new(mutex);
    if (!hold)
        return zkl_fail(ZKL_ENOMEM, "%s", mutex->root->path);
    hold->under = under;
    int rc = zkl_hold_acquire(hold, wait);
    hold->under = NULL;
    if (rc != 0) {
        rc = zkl_mutex_fail_acquire(hold, rc);
        zkl_hold_unref(hold);
        return rc;
    }
    *got = zkl_hold_exchange(hold);
    return 0;
}

static int acquire_first(struct zkl_mutex *mutex, const struct zkl_wait *wait,
                         const struct zkl_hold *under, struct zkl_grant *grant)
{
    int rc = zkl_owner_prepare();
    if (rc != 0)
        return zkl_fail(rc, "%s: no thread-specific key", mutex->root->path);
    struct zkl_hold *hold = zkl_turns_take_idle(mutex, wait);
    rc = hold ? 0 : acquire_new(mutex, wait, under, &hold);
    if (rc != 0)
        return rc;
    hold->count = 1;
    zkl_owner_add(hold);
    zkl_mutex_fill_grant(grant, hold);
    return 0;
}

static int check_fields(const struct zkl_wait *wait, const char *call)
{
    if (wait->size != sizeof *wait)
        return zkl_fail(ZKL_EINVAL, "%s: fill wait with ZKL_WAIT_INIT", call);
    if (wait->flags & ~(ZKL_WAIT_TRY | ZKL_WAIT_SYNC))
        return zkl_fail(ZKL_EINVAL, "%s: unknown flags 0x%x", call, wait->flags);
    if ((wait->flags & ZKL_WAIT_SYNC) && !(wait->flags & ZKL_WAIT_TRY))
        return zkl_fail(ZKL_EINVAL, "%s: ZKL_WAIT_SYNC goes with ZKL_WAIT_TRY", call);
    if (wait->deadline_ns < 0)
        return zkl_fail(ZKL_EBADTIMEOUT, "%s: deadline_ns is negative", call);
    bool too_short = wait->lease_ms != 0 && wait->lease_ms < ZKL_LEASE_MIN_MS;
    if (too_short || wait->lease_ms > ZKL_TIMEOUT_MAX_MS)
        return zkl_fail(ZKL_EBADTIMEOUT, "%s: lease_ms is %lld: take 0 for none, or %d and more",
                        call, (long long)wait->lease_ms, ZKL_LEASE_MIN_MS);
    return 0;
}

int zkl_wait_check(const struct zkl_wait *wait, const struct zkl_client *client, const char *call,
                   bool blocks)
{
    int rc = check_fields(wait, call);
    if (rc == 0)
        rc = zkl_client_check(client, true, call);
    if (rc == 0 && blocks && zkl_driver_in_callback())
        rc = zkl_fail(ZKL_EINCALLBACK, "%s", call);
    return rc;
}

int zkl_wait_check_over(const struct zkl_wait *wait, const char *path)
{
    int rc = zkl_cancel_check(wait->cancel, path);
    if (rc != 0)
        return rc;
    if (zkl_cancel_is_set(wait->cancel))
        return zkl_fail(ZKL_ECANCELED, "%s", path);
    if (wait->deadline_ns != ZKL_NO_DEADLINE && zkl_clock_mono_ns() >= wait->deadline_ns)
        return zkl_fail(ZKL_ETIMEDOUT, "%s: the deadline had passed before the call", path);
    return 0;
}

int zkl_mutex_fail_awaited(const struct zkl_mutex *mutex)
{
    return zkl_fail(ZKL_EDEADLK, "%s: another operation of this owner is to acquire it",
                    mutex->root->path);
}

static int acquire_own(struct zkl_mutex *mutex, const struct zkl_wait *wait,
                       struct zkl_grant *grant)
{
    struct zkl_hold *hold = zkl_owner_find(mutex->root, mutex);
    if (hold)
        return reenter(hold, grant);
    if (zkl_owner_awaits(mutex))
        return zkl_mutex_fail_awaited(mutex);
    const struct zkl_hold *other = zkl_owner_find_other(mutex);
    int rc = other ? zkl_mutex_check_other(mutex, other) : 0;
    if (rc == 0)
        rc = zkl_wait_check_over(wait, mutex->root->path);
    if (rc != 0)
        return rc;
    int shield = zkl_shield();
    rc = acquire_first(mutex, wait, other, grant);
    zkl_shield_end(shield);
    return rc;
}

int zkl_mutex_acquire_checked(struct zkl_mutex *mutex, const struct zkl_wait *wait,
                              struct zkl_grant *grant)
{
    return mutex->semaphore ? zkl_semaphore_lock(mutex, wait, grant)
                            : acquire_own(mutex, wait, grant);
}

int zkl_mutex_acquire(struct zkl_mutex *mutex, const struct zkl_wait *wait, struct zkl_grant *grant)
{
    static const char call[] = "zkl_mutex_acquire";
    struct zkl_wait forever = ZKL_WAIT_INIT;
    if (!mutex)
        return zkl_fail(ZKL_EINVAL, "%s: mutex is NULL", call);
    if (grant && grant->size != sizeof *grant)
        return zkl_fail(ZKL_EINVAL, "%s: fill grant with ZKL_GRANT_INIT", call);
    if (!wait)
        wait = &forever;
    int rc = zkl_wait_check(wait, mutex->client, call, true);
    if (rc != 0)
        return rc;
    rc = zkl_mutex_acquire_checked(mutex, wait, grant);
    return rc == 0 ? 0 : zkl_count_failure(mutex, rc);
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

int zkl_mutex_fail_unlock(const struct zkl_hold *hold, int rc)
{
    const char *path = hold->root->path;
    if (rc == ZKL_EACCES)
        return zkl_fail(
            rc,
            "%s: not held any more, but DELETE is denied: the node blocks the path until "
            "this client's session ends; close the client to end it",
            path);
    if (rc == ZKL_EUNCONFIRMED || rc == ZKL_EDOUBT)
        return zkl_fail(rc, "%s: %s", path, hold->detail);
    return rc == 0 ? 0 : zkl_fail(rc, "%s", path);
}

static int release_last(struct zkl_hold *hold)
{
    zkl_owner_remove(hold);
    int rc = zkl_mutex_fail_unlock(hold, zkl_hold_release(hold));
    zkl_hold_unref(hold);
    return rc;
}

/* The calling thread's hold through this handle (of a semaphore's mutex: everybody's), NULL if there is
 * none; to be given back with put_own. Or why nobody can say. */
static int find_own(struct zkl_mutex *mutex, const char *call, struct zkl_hold **hold)
{
    *hold = NULL;
    if (!mutex)
        return zkl_fail(ZKL_EINVAL, "%s: mutex is NULL", call);
    int rc = zkl_client_check(mutex->client, false, call);
    if (rc != 0)
        return rc;
    *hold = mutex->semaphore ? zkl_semaphore_find(mutex) : zkl_owner_find(mutex->root, mutex);
    return 0;
}

static void put_own(const struct zkl_mutex *mutex, struct zkl_hold *hold)
{
    if (hold && mutex->semaphore)
        zkl_hold_unref(hold);
}

/* With the calling thread's hold; of the last unlock it is the end. */
static int unlock_own(struct zkl_mutex *mutex)
{
    struct zkl_hold *hold = zkl_owner_find(mutex->root, mutex);
    if (!hold)
        return zkl_fail(ZKL_ENOTOWNER, "%s", mutex->root->path);
    if (hold->count > 1)
        return zkl_hold_leave_again(hold);
    hold->count = 0;
    int shield = zkl_shield();
    int rc = release_last(hold);
    zkl_shield_end(shield);
    return rc;
}

int zkl_mutex_unlock(struct zkl_mutex *mutex)
{
    if (!mutex)
        return zkl_fail(ZKL_EINVAL, "zkl_mutex_unlock: mutex is NULL");
    int rc = zkl_client_check(mutex->client, false, "zkl_mutex_unlock");
    if (rc != 0)
        return rc;
    if (zkl_driver_in_callback())
        return zkl_fail(ZKL_EINCALLBACK, "%s", mutex->root->path);
    return mutex->semaphore ? zkl_semaphore_unlock(mutex) : unlock_own(mutex);
}

/* --- questions ---------------------------------------------------------- */

int zkl_hold_still_held(const struct zkl_hold *hold, int64_t need_ms, const char *call)
{
    if (zkl_check_ms(need_ms, call) != 0)
        return ZKL_EBADTIMEOUT;
    return hold && zkl_hold_window_ms(hold) >= (need_ms > 0 ? need_ms : 1);
}

int zkl_hold_node_path(const struct zkl_hold *hold, char *buf, size_t size, const char *call)
{
    if (!buf && size > 0)
        return zkl_fail(ZKL_EINVAL, "%s: buf is NULL", call);
    return snprintf(buf, size, "%s/%s", hold->root->path, hold->node);
}

int zkl_hold_extend(struct zkl_hold *hold, int64_t lease_ms, const char *call)
{
    if (lease_ms <= 0 || lease_ms > ZKL_TIMEOUT_MAX_MS)
        return zkl_fail(ZKL_EBADTIMEOUT, "%s: %lld ms", call, (long long)lease_ms);
    int shield = zkl_shield();
    int rc = zkl_hold_renew(hold, lease_ms);
    if (rc != 0)
        zkl_fail(rc, "%s: %d unlock(s) due", hold->root->path, hold->count);
    zkl_shield_end(shield);
    return rc;
}

int zkl_mutex_still_held(struct zkl_mutex *mutex, int64_t need_ms)
{
    struct zkl_hold *hold;
    int rc = find_own(mutex, "zkl_mutex_still_held", &hold);
    if (rc != 0)
        return rc;
    rc = zkl_hold_still_held(hold, need_ms, "zkl_mutex_still_held");
    put_own(mutex, hold);
    return rc;
}

int zkl_mutex_hold_count(struct zkl_mutex *mutex)
{
    struct zkl_hold *hold;
    int rc = find_own(mutex, "zkl_mutex_hold_count", &hold);
    if (rc != 0)
        return rc;
    int count = hold ? hold->count : 0;
    put_own(mutex, hold);
    return count;
}

uint64_t zkl_mutex_token(struct zkl_mutex *mutex)
{
    struct zkl_hold *hold;
    if (find_own(mutex, "zkl_mutex_token", &hold) != 0 || !hold)
        return 0;
    uint64_t token = zkl_hold_is_lost(hold) ? 0 : hold->token;
    put_own(mutex, hold);
    return token;
}

int64_t zkl_mutex_window_ms(struct zkl_mutex *mutex)
{
    struct zkl_hold *hold;
    int rc = find_own(mutex, "zkl_mutex_window_ms", &hold);
    if (rc != 0)
        return rc;
    int64_t window = hold ? zkl_hold_window_ms(hold) : 0;
    put_own(mutex, hold);
    return window;
}

int zkl_mutex_node_path(struct zkl_mutex *mutex, char *buf, size_t size)
{
    struct zkl_hold *hold;
    int rc = find_own(mutex, "zkl_mutex_node_path", &hold);
    if (rc != 0)
        return rc;
    if (!hold && (buf || size == 0))
        return zkl_fail(ZKL_ENOTOWNER, "%s", mutex->root->path);
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
        return zkl_fail(ZKL_ENOTOWNER, "%s", mutex->root->path);
    rc = zkl_hold_extend(hold, lease_ms, "zkl_mutex_renew");
    put_own(mutex, hold);
    return rc;
}

int zkl_mutex_revoke_requested(struct zkl_mutex *mutex)
{
    struct zkl_hold *hold;
    int rc = find_own(mutex, "zkl_mutex_revoke_requested", &hold);
    if (rc != 0)
        return rc;
    rc = hold && atomic_load_explicit(&hold->revoked, memory_order_acquire);
    put_own(mutex, hold);
    return rc;
}
