/* SPDX-License-Identifier: Apache-2.0
 * What every object needs of its client: that it may be used, that it stays, and the one record of each path. The
 * records are guarded by the client's mutex; a reference can be taken and given back from any thread, without it. */
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
    /* Its threads may have to finish what a close that ran out of time began: they end with the client. */
    zkl_driver_free(client->driver);
}

/* --- paths -------------------------------------------------------------- */

static struct zkl_root **root_bucket(struct zkl_client *client, const char *path)
{
    return &client->roots[zkl_text_hash(path) % ZKL_ROOT_BUCKETS];
}

static struct zkl_root *new_root(struct zkl_root **bucket, const char *path)
{
    size_t size = strlen(path) + 1;
    struct zkl_root *root = calloc(1, sizeof *root + size);
    if (root) {
        memcpy(root->path, path, size);
        root->next = *bucket;
        *bucket = root;
    }
    return root;
}

struct zkl_root *zkl_root_get(struct zkl_client *client, const char *path)
{
    zkl_driver_lock(client->driver);
    struct zkl_root **bucket = root_bucket(client, path);
    struct zkl_root *root = *bucket;
    while (root && strcmp(root->path, path) != 0)
        root = root->next;
    if (!root)
        root = new_root(bucket, path);
    if (root)
        root->refs++;
    zkl_driver_unlock(client->driver);
    return root;
}

void zkl_root_put(struct zkl_client *client, struct zkl_root *root)
{
    zkl_driver_lock(client->driver);
    bool last = --root->refs == 0;
    if (last) {
        struct zkl_root **at = root_bucket(client, root->path);
        while (*at != root)
            at = &(*at)->next;
        *at = root->next;
    }
    if (last)
        zkl_unlisted_end(&client->driver->core, zkl_clock_now(), &root->alone);
    if (last && root->counts)
        zkl_counts_fold(&client->counts, root->counts);
    zkl_driver_unlock(client->driver);
    if (last) {
        free(root->counts);
        free(root);
    }
}
