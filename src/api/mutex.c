/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver/clock.h"
#include "error.h"
#include "hold.h"

#define MS INT64_C(1000000)

static int do_mutex_new(struct zkl_mutex **mutex, struct zkl_client *client, const char *path)
{
    if (!mutex || !client || !path)
        return zkl_fail(ZKL_EINVAL, "zkl_mutex_new: %s is NULL",
                        !mutex ? "mutex" : (!client ? "client" : "path"));
    int rc = zkl_client_check(client, true, "zkl_mutex_new");
    if (rc != 0)
        return rc;
    const char *fault = zkl_path_fault(path);
    if (fault)
        return zkl_fail(ZKL_EBADPATH, "\"%.64s\" %s", path, fault);
    struct zkl_mutex *m = calloc(1, sizeof *m);
    struct zkl_root *root = m ? zkl_root_get(client, path) : NULL;
    if (!root) {
        free(m);
        return zkl_fail(ZKL_ENOMEM, "zkl_mutex_new");
    }
    m->client = client;
    m->root = root;
    zkl_client_ref(client);
    *mutex = m;
    return 0;
}

int zkl_mutex_new(struct zkl_mutex **mutex, struct zkl_client *client, const char *path)
{
    int shield = zkl_shield();
    int rc = do_mutex_new(mutex, client, path);
    zkl_shield_end(shield);
    return rc;
}

static int do_mutex_free(struct zkl_mutex *mutex)
{
    if (!mutex)
        return 0;
    struct zkl_client *client = mutex->client;
    int rc = zkl_client_check(client, false, "zkl_mutex_free");
    if (rc != 0)
        return rc;
    zkl_driver_lock(client->driver);
    if (mutex->uses > 0) {
        zkl_driver_unlock(client->driver);
        return zkl_fail(ZKL_EBUSY, "zkl_mutex_free: %s is held or waited on", mutex->root->path);
    }
    if (zkl_driver_would_cross(client->driver, mutex)) {
        zkl_driver_unlock(client->driver);
        return zkl_fail(ZKL_EINCALLBACK,
                        "zkl_mutex_free: %s: its own callback runs, on another client",
                        mutex->root->path);
    }
    struct zkl_note *notes = zkl_driver_quiesce(client->driver, mutex);
    zkl_driver_unlock(client->driver);
    zkl_hold_drop_notes(notes);
    zkl_root_put(client, mutex->root);
    free(mutex);
    zkl_client_unref(client);
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
    zkl_driver_lock(mutex->client->driver);
    mutex->fn = fn;
    mutex->fn_arg = arg;
    zkl_driver_unlock(mutex->client->driver);
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

static void fill_grant(struct zkl_grant *grant, const struct zkl_hold *hold)
{
    if (!grant)
        return;
    grant->token = hold->token;
    grant->window_ms = zkl_hold_window_ms(hold);
    grant->hold_count = hold->count;
}

static int reenter(struct zkl_mutex *mutex, struct zkl_hold *hold, struct zkl_grant *grant)
{
    if (hold->mutex != mutex)
        return zkl_fail(ZKL_EDEADLK, "%s", mutex->root->path);
    if (atomic_load_explicit(&hold->lost, memory_order_acquire))
        return zkl_fail(ZKL_ELOST, "%s: %d unlock(s) due", mutex->root->path, hold->count);
    if (hold->count == ZKL_HOLD_COUNT_MAX)
        return zkl_fail(ZKL_EOVERFLOW, "%s", mutex->root->path);
    hold->count++;
    fill_grant(grant, hold);
    return 0;
}

static int fail_acquire(const struct zkl_hold *hold, int rc)
{
    const char *path = hold->root->path;
    if (rc == ZKL_EACCES)
        return zkl_fail(rc, "%s: no %s; what was created goes when the session ends at the latest",
                        path, hold->detail);
    if (rc == ZKL_EEXHAUSTED)
        return zkl_fail(rc, "%s: blocked by %s", path, hold->detail);
    if (rc == ZKL_EPROTO)
        return zkl_fail(rc, "%s: while %s, ZooKeeper said %d", path, hold->detail, hold->number);
    return zkl_fail(rc, "%s", path);
}

static int acquire_first(struct zkl_mutex *mutex, const struct zkl_wait *wait,
                         struct zkl_grant *grant)
{
    int rc = zkl_owner_prepare();
    if (rc != 0)
        return zkl_fail(rc, "%s: no thread-specific key", mutex->root->path);
    struct zkl_hold *hold = zkl_hold_new(mutex);
    if (!hold)
        return zkl_fail(ZKL_ENOMEM, "%s", mutex->root->path);
    rc = zkl_hold_acquire(hold, wait);
    if (rc != 0) {
        rc = fail_acquire(hold, rc);
        zkl_hold_unref(hold);
        return rc;
    }
    hold->count = 1;
    zkl_owner_add(hold);
    fill_grant(grant, hold);
    return 0;
}

static int check_wait(const struct zkl_wait *wait, const struct zkl_grant *grant)
{
    if (wait->size != sizeof *wait || (grant && grant->size != sizeof *grant))
        return zkl_fail(ZKL_EINVAL, "zkl_mutex_acquire: fill the structs with ZKL_WAIT_INIT and "
                                    "ZKL_GRANT_INIT");
    if (wait->flags & ~(ZKL_WAIT_TRY | ZKL_WAIT_SYNC))
        return zkl_fail(ZKL_EINVAL, "zkl_mutex_acquire: unknown flags 0x%x", wait->flags);
    if ((wait->flags & ZKL_WAIT_SYNC) && !(wait->flags & ZKL_WAIT_TRY))
        return zkl_fail(ZKL_EINVAL, "zkl_mutex_acquire: ZKL_WAIT_SYNC goes with ZKL_WAIT_TRY");
    if (wait->deadline_ns < 0)
        return zkl_fail(ZKL_EBADTIMEOUT, "zkl_mutex_acquire: deadline_ns is negative");
    return 0;
}

int zkl_mutex_acquire(struct zkl_mutex *mutex, const struct zkl_wait *wait, struct zkl_grant *grant)
{
    struct zkl_wait forever = ZKL_WAIT_INIT;
    if (!mutex)
        return zkl_fail(ZKL_EINVAL, "zkl_mutex_acquire: mutex is NULL");
    if (!wait)
        wait = &forever;
    int rc = check_wait(wait, grant);
    if (rc == 0)
        rc = zkl_client_check(mutex->client, true, "zkl_mutex_acquire");
    if (rc != 0)
        return rc;
    if (zkl_driver_in_callback())
        return zkl_fail(ZKL_EINCALLBACK, "%s", mutex->root->path);

    struct zkl_hold *hold = zkl_owner_find(mutex->root);
    if (hold)
        return reenter(mutex, hold, grant);
    if (wait->cancel && wait->cancel->fork_generation != zkl_fork_generation())
        return zkl_fail(ZKL_EFORK, "%s: the cancel object was made by the parent process",
                        mutex->root->path);
    if (zkl_cancel_is_set(wait->cancel))
        return zkl_fail(ZKL_ECANCELED, "%s", mutex->root->path);
    if (wait->deadline_ns != ZKL_NO_DEADLINE && zkl_clock_mono_ns() >= wait->deadline_ns)
        return zkl_fail(ZKL_ETIMEDOUT, "%s: the deadline had passed before the call",
                        mutex->root->path);
    int shield = zkl_shield();
    rc = acquire_first(mutex, wait, grant);
    zkl_shield_end(shield);
    return rc;
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
    if (timeout_ms < 0 || timeout_ms > ZKL_TIMEOUT_MAX_MS)
        return zkl_fail(ZKL_EBADTIMEOUT, "zkl_mutex_lock_for: %lld ms", (long long)timeout_ms);
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

static int fail_unlock(const struct zkl_hold *hold, int rc)
{
    const char *path = hold->root->path;
    if (rc == ZKL_EACCES)
        return zkl_fail(
            rc,
            "%s: not held any more, but DELETE is denied: the node blocks the path until "
            "this client's session ends; close the client to end it",
            path);
    if (rc == ZKL_EUNCONFIRMED)
        return zkl_fail(rc, "%s: %s", path, hold->detail);
    return rc == 0 ? 0 : zkl_fail(rc, "%s", path);
}

static int release_last(struct zkl_hold *hold)
{
    zkl_owner_remove(hold);
    int rc = fail_unlock(hold, zkl_hold_release(hold));
    zkl_hold_unref(hold);
    return rc;
}

/* The calling thread's hold through this handle, or why there is none. */
static int find_own(struct zkl_mutex *mutex, const char *call, struct zkl_hold **hold)
{
    if (!mutex)
        return zkl_fail(ZKL_EINVAL, "%s: mutex is NULL", call);
    int rc = zkl_client_check(mutex->client, false, call);
    if (rc != 0)
        return rc;
    *hold = zkl_owner_find(mutex->root);
    if (*hold && (*hold)->mutex != mutex)
        *hold = NULL;
    return 0;
}

int zkl_mutex_unlock(struct zkl_mutex *mutex)
{
    struct zkl_hold *hold;
    int rc = find_own(mutex, "zkl_mutex_unlock", &hold);
    if (rc != 0)
        return rc;
    if (zkl_driver_in_callback())
        return zkl_fail(ZKL_EINCALLBACK, "%s", mutex->root->path);
    if (!hold)
        return zkl_fail(ZKL_ENOTOWNER, "%s", mutex->root->path);
    if (--hold->count > 0) {
        return atomic_load_explicit(&hold->lost, memory_order_acquire)
                   ? zkl_fail(ZKL_ELOST, "%s: %d more unlock(s) due", mutex->root->path,
                              hold->count)
                   : 0;
    }
    int shield = zkl_shield();
    rc = release_last(hold);
    zkl_shield_end(shield);
    return rc;
}

/* --- questions ---------------------------------------------------------- */

int zkl_mutex_still_held(struct zkl_mutex *mutex, int64_t need_ms)
{
    struct zkl_hold *hold;
    int rc = find_own(mutex, "zkl_mutex_still_held", &hold);
    if (rc != 0)
        return rc;
    if (need_ms < 0 || need_ms > ZKL_TIMEOUT_MAX_MS)
        return zkl_fail(ZKL_EBADTIMEOUT, "zkl_mutex_still_held: %lld ms", (long long)need_ms);
    return hold && zkl_hold_window_ms(hold) >= (need_ms > 0 ? need_ms : 1);
}

int zkl_mutex_hold_count(struct zkl_mutex *mutex)
{
    struct zkl_hold *hold;
    int rc = find_own(mutex, "zkl_mutex_hold_count", &hold);
    if (rc != 0)
        return rc;
    return hold ? hold->count : 0;
}

uint64_t zkl_mutex_token(struct zkl_mutex *mutex)
{
    struct zkl_hold *hold;
    if (find_own(mutex, "zkl_mutex_token", &hold) != 0 || !hold)
        return 0;
    return atomic_load_explicit(&hold->lost, memory_order_acquire) ? 0 : hold->token;
}

int64_t zkl_mutex_window_ms(struct zkl_mutex *mutex)
{
    struct zkl_hold *hold;
    int rc = find_own(mutex, "zkl_mutex_window_ms", &hold);
    if (rc != 0)
        return rc;
    return hold ? zkl_hold_window_ms(hold) : 0;
}

int zkl_mutex_node_path(struct zkl_mutex *mutex, char *buf, size_t size)
{
    struct zkl_hold *hold;
    int rc = find_own(mutex, "zkl_mutex_node_path", &hold);
    if (rc != 0)
        return rc;
    if (!buf && size > 0)
        return zkl_fail(ZKL_EINVAL, "zkl_mutex_node_path: buf is NULL");
    if (!hold)
        return zkl_fail(ZKL_ENOTOWNER, "%s", mutex->root->path);
    return snprintf(buf, size, "%s/%s", hold->root->path, hold->node);
}
