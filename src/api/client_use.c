/* SPDX-License-Identifier: Apache-2.0
 *
 * The services of a client for its objects: the check that it may be used, the references that keep
 * it, and the one record of each path. The client's mutex guards the records. Any thread may take
 * and drop a reference on the client without it. All files of src/api call this file. */
#include "client.h"

#include <stdlib.h>
#include <string.h>

#include "core/unlisted_grant.h"
#include "counts.h"
#include "driver/clock.h"
#include "error.h"

int zkl_client_check(const struct zkl_client *client, bool closed_too, const char *call)
{
    if (client->fork_generation != zkl_fork_generation())
        return zkl_fail(ZKL_EFORK, "%s", call);
    if (closed_too && atomic_load_explicit(&client->closed, memory_order_relaxed))
        return zkl_fail(ZKL_ECLOSED, "%s", call);
    return 0;
}

void zkl_client_ref(struct zkl_client *client)
{
    atomic_fetch_add(&client->refs, 1);
}

void zkl_client_unref(struct zkl_client *client)
{
    if (atomic_fetch_sub(&client->refs, 1) > 1)
        return;
    /* Its threads may have to finish what a close that ran out of time began: they end with the
     * client. */
    zkl_driver_free(client->driver);
}

/* --- paths -------------------------------------------------------------- */

static struct zkl_lock_path **lock_path_bucket(struct zkl_client *client, const char *path)
{
    return &client->lock_paths[zkl_text_hash(path) % ZKL_LOCK_PATH_BUCKETS];
}

static struct zkl_lock_path *new_lock_path(struct zkl_lock_path **bucket, const char *path)
{
    size_t size = strlen(path) + 1;
    struct zkl_lock_path *lock_path = calloc(1, sizeof *lock_path + size);
    if (lock_path) {
        memcpy(lock_path->path, path, size);
        lock_path->core = zkl_path_of(lock_path->path);
        lock_path->next = *bucket;
        *bucket = lock_path;
    }
    return lock_path;
}

struct zkl_lock_path *zkl_lock_path_get(struct zkl_client *client, const char *path)
{
    zkl_driver_lock(client->driver);
    struct zkl_lock_path **bucket = lock_path_bucket(client, path);
    struct zkl_lock_path *lock_path = *bucket;
    while (lock_path && strcmp(lock_path->path, path) != 0)
        lock_path = lock_path->next;
    if (!lock_path)
        lock_path = new_lock_path(bucket, path);
    if (lock_path)
        lock_path->refs++;
    zkl_driver_unlock(client->driver);
    return lock_path;
}

void zkl_lock_path_put(struct zkl_client *client, struct zkl_lock_path *lock_path)
{
    zkl_driver_lock(client->driver);
    bool last = --lock_path->refs == 0;
    if (last) {
        struct zkl_lock_path **at = lock_path_bucket(client, lock_path->path);
        while (*at != lock_path)
            at = &(*at)->next;
        *at = lock_path->next;
    }
    if (last)
        zkl_unlisted_end(&client->driver->core, zkl_clock_now(), &lock_path->core.unlisted);
    if (last && lock_path->counts)
        zkl_counts_fold(&client->counts, lock_path->counts);
    zkl_driver_unlock(client->driver);
    if (last) {
        free(lock_path->counts);
        free(lock_path);
    }
}
