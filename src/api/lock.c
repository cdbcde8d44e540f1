/* SPDX-License-Identifier: Apache-2.0
 *
 * What mutexes and semaphores have in common: checks of options, waits and handles before any
 * request, and the parts of a handle. mutex.c, semaphore.c, rwlock.c, multi.c and async.c call this
 * file. Only its functions that retire a handle or set a callback take the client's lock; none
 * waits. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cached_reader.h"
#include "counts.h"
#include "driver/clock.h"
#include "error.h"
#include "place.h"
#include "sized.h"

/* --- handles ------------------------------------------------------------ */

int zkl_mutex_options_take(struct zkl_mutex_options *ours, const void *theirs, const char *call)
{
    *ours = (struct zkl_mutex_options)ZKL_MUTEX_OPTIONS_INIT;
    if (!theirs)
        return 0;
    if (!zkl_sized_is_known(theirs, ZKL_SIZED_LEAST(struct zkl_mutex_options, retain_ms),
                            sizeof *ours))
        return zkl_fail(ZKL_EINVAL, "%s: initialize options with ZKL_MUTEX_OPTIONS_INIT", call);
    zkl_sized_read(ours, sizeof *ours, theirs);
    return 0;
}

int zkl_lock_options_take(struct zkl_mutex_options *ours, const void *theirs, const char *call)
{
    struct zkl_lock_options given = ZKL_LOCK_OPTIONS_INIT;
    *ours = (struct zkl_mutex_options)ZKL_MUTEX_OPTIONS_INIT;
    if (!theirs)
        return 0;
    if (!zkl_sized_is_known(theirs, ZKL_SIZED_LEAST(struct zkl_lock_options, owner), sizeof given))
        return zkl_fail(ZKL_EINVAL, "%s: initialize options with ZKL_LOCK_OPTIONS_INIT", call);
    zkl_sized_read(&given, sizeof given, theirs);
    if (given.names == ZKL_NAMES_NAMED)
        return zkl_fail(ZKL_EINVAL, "%s: only mutexes can have ZKL_NAMES_NAMED", call);
    ours->names = given.names;
    ours->revocable = given.revocable;
    ours->posted_unlock = given.posted_unlock;
    ours->metrics = given.metrics;
    ours->owner = given.owner;
    return 0;
}

static int check_options(const struct zkl_mutex_options *o, const char *call)
{
    if (o->names < ZKL_NAMES_CURATOR || o->names > ZKL_NAMES_NAMED)
        return zkl_fail(ZKL_EINVAL, "%s: names is %d, not a ZKL_NAMES_* value", call,
                        (int)o->names);
    if ((o->names == ZKL_NAMES_NAMED) != (o->name != NULL))
        return zkl_fail(ZKL_EINVAL, "%s: set both ZKL_NAMES_NAMED and a name, or neither", call);
    const char *fault = o->name ? zkl_lock_name_fault(o->name) : NULL;
    if (fault)
        return zkl_fail(ZKL_EINVAL, "%s: the name \"%.64s\" %s", call, o->name, fault);
    if (o->owner && strlen(o->owner) > ZKL_OWNER_MAX)
        return zkl_fail(ZKL_EINVAL, "%s: owner is longer than %d bytes", call, ZKL_OWNER_MAX);
    if (o->local_handoffs_max < 0)
        return zkl_fail(ZKL_EINVAL, "%s: local_handoffs_max is %lld, not 0 or more", call,
                        (long long)o->local_handoffs_max);
    if (o->retain_ms < 0 || o->retain_ms > ZKL_RETAIN_MAX_MS)
        return zkl_fail(ZKL_EBADTIMEOUT, "%s: retain_ms is %lld, not 0 to %d", call,
                        (long long)o->retain_ms, ZKL_RETAIN_MAX_MS);
    return 0;
}

static int check_new(const void *out, struct zkl_client *client, const char *path,
                     const struct zkl_mutex_options *options, const char *call)
{
    if (!out || !client || !path)
        return zkl_fail(ZKL_EINVAL, "%s: %s is NULL", call,
                        !out ? "the pointer for the handle" : (!client ? "client" : "path"));
    int rc = zkl_client_check(client, true, call);
    if (rc != 0)
        return rc;
    const char *fault = zkl_path_fault(path);
    if (fault)
        return zkl_fail(ZKL_EBADPATH, "\"%.64s\" %s", path, fault);
    return check_options(options, call);
}

int zkl_lock_new(const struct zkl_lock_maker *maker, const void *out, struct zkl_client *client,
                 const char *path, int permits, const void *options, void **handle)
{
    struct zkl_mutex_options ours;
    ZKL_SHIELDED();
    int rc = maker->take(&ours, options, maker->call);
    if (rc == 0)
        rc = check_new(out, client, path, &ours, maker->call);
    void *made = rc == 0 ? calloc(1, maker->size) : NULL;
    if (rc == 0)
        rc = made ? maker->init(made, client, path, permits, &ours, maker->call)
                  : zkl_fail(ZKL_ENOMEM, "%s", maker->call);
    if (rc == 0)
        *handle = made;
    else
        free(made);
    return rc;
}

int zkl_mutex_init(struct zkl_mutex *mutex, struct zkl_client *client, const char *path,
                   const struct zkl_mutex_options *o, const char *call)
{
    mutex->naming.names = o->names;
    if (o->name)
        strcpy(mutex->naming.name, o->name);
    mutex->revocable = o->revocable;
    mutex->posted_unlock = o->posted_unlock;
    mutex->owner = o->owner ? strdup(o->owner) : NULL;
    bool copied = !o->owner == !mutex->owner;
    mutex->lock_path = copied ? zkl_lock_path_get(client, path) : NULL;
    bool counted =
        mutex->lock_path && (!o->metrics || zkl_lock_path_keep_counts(client, mutex->lock_path));
    if (!counted) {
        if (mutex->lock_path)
            zkl_lock_path_put(client, mutex->lock_path);
        free(mutex->owner);
        return zkl_fail(ZKL_ENOMEM, "%s", call);
    }
    mutex->client = client;
    zkl_client_ref(client);
    return 0;
}

void zkl_mutex_fini(void *handle)
{
    struct zkl_mutex *mutex = handle;
    struct zkl_client *client = mutex->client;
    zkl_lock_path_put(client, mutex->lock_path);
    free(mutex->owner);
    zkl_client_unref(client);
}

/* Why the handles can't be given up now, with the mutex; 0: they can. */
static int check_retire(struct zkl_mutex *const *mutexes, size_t count, const char *call)
{
    for (size_t i = 0; i < count; i++) {
        const char *path = mutexes[i]->lock_path->path;
        if (mutexes[i]->uses > 0 || zkl_cached_any(mutexes[i]))
            return zkl_fail(ZKL_EBUSY, "%s: a thread holds %s or waits for it", call, path);
        if (zkl_driver_would_cross(mutexes[i]->client->driver, mutexes[i]))
            return zkl_fail(ZKL_EINCALLBACK,
                            "%s: %s: its own callback is running: do not free it from a callback "
                            "of another client",
                            call, path);
    }
    return 0;
}

static int retire(struct zkl_mutex *const *mutexes, size_t count, const char *call)
{
    struct zkl_driver *d = mutexes[0]->client->driver;
    struct zkl_note *notes[2] = {NULL};
    int rc = zkl_client_check(mutexes[0]->client, false, call);
    if (rc != 0)
        return rc;
    zkl_driver_lock(d);
    rc = check_retire(mutexes, count, call);
    for (size_t i = 0; rc == 0 && i < count; i++) {
        zkl_local_queue_retire(mutexes[i]);
        zkl_cached_retire(mutexes[i]);
        notes[i] = zkl_driver_quiesce(d, mutexes[i]);
    }
    zkl_driver_unlock(d);
    for (size_t i = 0; i < count; i++)
        zkl_place_drop_notes(notes[i]);
    return rc;
}

int zkl_lock_free(void *handle, struct zkl_mutex *const *mutexes, size_t count,
                  void (*fini)(void *handle), const char *call)
{
    ZKL_SHIELDED();
    int rc = retire(mutexes, count, call);
    if (rc != 0)
        return rc;
    fini(handle);
    free(handle);
    return 0;
}

int zkl_mutex_set_callback(struct zkl_mutex *mutex, zkl_hold_fn fn, void *arg)
{
    ZKL_SHIELDED();
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
    if (replaced) {
        zkl_local_queue_drop(&d->core, zkl_clock_now(), &mutex->local_queue);
        zkl_cached_close(mutex);
    }
    zkl_driver_unlock(d);
    return 0;
}

/* --- waits --------------------------------------------------------------- */

int zkl_wait_take(struct zkl_wait *ours, const struct zkl_wait *theirs, const char *call)
{
    *ours = (struct zkl_wait)ZKL_WAIT_INIT;
    if (!theirs)
        return 0;
    if (!zkl_sized_is_known(theirs, ZKL_SIZED_LEAST(struct zkl_wait, lease_ms), sizeof *ours))
        return zkl_fail(ZKL_EINVAL, "%s: initialize wait with ZKL_WAIT_INIT", call);
    zkl_sized_read(ours, sizeof *ours, theirs);
    return 0;
}

static int check_fields(const struct zkl_wait *wait, const char *call)
{
    if (wait->flags & ~(ZKL_WAIT_TRY | ZKL_WAIT_SYNC))
        return zkl_fail(ZKL_EINVAL, "%s: unknown flags 0x%llx", call,
                        (unsigned long long)wait->flags);
    if ((wait->flags & ZKL_WAIT_SYNC) && !(wait->flags & ZKL_WAIT_TRY))
        return zkl_fail(ZKL_EINVAL, "%s: ZKL_WAIT_SYNC requires ZKL_WAIT_TRY", call);
    if (wait->deadline_ns < 0)
        return zkl_fail(ZKL_EBADTIMEOUT, "%s: deadline_ns is negative", call);
    bool too_short = wait->lease_ms != 0 && wait->lease_ms < ZKL_LEASE_MIN_MS;
    if (too_short || wait->lease_ms > ZKL_TIMEOUT_MAX_MS)
        return zkl_fail(ZKL_EBADTIMEOUT, "%s: lease_ms is %lld: give 0 for no lease, or %d or more",
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

/* --- what a call returns ------------------------------------------------ */

int zkl_grant_check(const struct zkl_grant *grant, const char *call)
{
    if (!grant || zkl_sized_is_good(grant, ZKL_SIZED_LEAST(struct zkl_grant, hold_count)))
        return 0;
    return zkl_fail(ZKL_EINVAL, "%s: initialize grant with ZKL_GRANT_INIT", call);
}

void zkl_grant_give(struct zkl_grant *grant, uint64_t token, int64_t window_ms, int64_t hold_count)
{
    struct zkl_grant ours = {sizeof ours, token, window_ms, hold_count};
    if (grant)
        zkl_sized_write(grant, &ours, sizeof ours);
}

void zkl_mutex_fill_grant(struct zkl_grant *grant, const struct zkl_place *place, int hold_count)
{
    if (grant)
        zkl_grant_give(grant, place->token, zkl_place_window_ms(place), hold_count);
}

int zkl_mutex_fail_acquire(const struct zkl_place *place, int rc)
{
    const char *path = place->lock_path->path;
    if (rc == ZKL_EACCES)
        return zkl_fail(rc,
                        "%s: the ACL denies %s; a node that was created is removed when the "
                        "session ends at the latest",
                        path, place->detail);
    if (rc == ZKL_EEXHAUSTED)
        return zkl_fail(rc, "%s: it is blocked by %s", path, place->detail);
    if (rc == ZKL_EFULL)
        return zkl_place_fail_full(place);
    if (zkl_error_is_answer(rc))
        return zkl_place_fail_answer(place, rc, path);
    if (rc == ZKL_ESYSTEM && place->detail[0])
        return zkl_fail(rc,
                        "%s: while %s; the client already watches as many nodes as it can restore",
                        path, place->detail);
    return zkl_fail_unserved(place->client, rc, path);
}

int zkl_mutex_fail_unlock(const struct zkl_place *place, int rc)
{
    const char *path = place->lock_path->path;
    if (rc == ZKL_EACCES)
        return zkl_fail(
            rc,
            "%s: the hold is released, but the ACL denies DELETE: the node blocks the path until "
            "this client's session ends; to end the session, close the client",
            path);
    if (rc == ZKL_EUNCONFIRMED || rc == ZKL_EDOUBT)
        return zkl_fail(rc, "%s: %s", path, place->detail);
    return rc == 0 ? 0 : zkl_fail(rc, "%s", path);
}

int zkl_lock_release(struct zkl_place *place)
{
    ZKL_SHIELDED();
    int rc = zkl_mutex_fail_unlock(place, zkl_place_release(place));
    zkl_place_unref(place);
    return rc;
}
