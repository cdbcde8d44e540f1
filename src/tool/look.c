/* SPDX-License-Identifier: Apache-2.0
 *
 * All locks at and below a path, each as it was when it was inspected, one after the other. This
 * file owns the results until the subcommand frees them. One thread; status, doctor, revoke and
 * break call it. */
#include "look.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <zklock/metrics.h>

/* Of a path that is known to have no children. */
static const struct zkl_inspection nothing = {.size = sizeof nothing};

/* Take over the inspection. NULL: no memory. */
static struct seen *add(struct look *look, const char *path, int code,
                        const struct zkl_inspection *inside)
{
    if (look->count == look->room) {
        size_t room = look->room ? look->room * 2 : 16;
        struct seen *all = realloc(look->all, room * sizeof *all);
        if (!all)
            return NULL;
        look->all = all;
        look->room = room;
    }
    char *copy = strdup(path);
    if (!copy)
        return NULL;
    look->all[look->count] = (struct seen){.path = copy, .code = code, .inside = inside};
    return &look->all[look->count++];
}

static uint64_t count_requests(struct zkl_client *client)
{
    struct zkl_client_metrics metrics = ZKL_CLIENT_METRICS_INIT;
    uint64_t count = 0;
    zkl_client_get_metrics(client, &metrics);
    for (size_t i = 0; i < ZKL_METRICS_REQUESTS_MAX; i++)
        count += metrics.requests[i];
    return count;
}

/* A path with a hundred thousand children takes a busy server longer than it may take one to answer. So many
 * requests are sent only if it does answer. */
static int inspect(struct zkl_client *client, const char *path,
                   const struct zkl_inspection **inside)
{
    enum { MANY = 5000, MANY_MS = 10 * LOOK_MS };
    uint64_t before = count_requests(client);
    int rc = zkl_inspect(client, path, LOOK_MS, inside);
    bool is_slow = rc == ZKL_ETIMEDOUT && count_requests(client) - before > MANY;
    return is_slow ? zkl_inspect(client, path, MANY_MS, inside) : rc;
}

/* Inspect the lock at the path, and add it. */
static int add_lock(struct look *look, struct zkl_client *client, const char *path)
{
    const struct zkl_inspection *inside;
    int rc = inspect(client, path, &inside);
    if (rc != 0)
        return rc;
    if (add(look, path, 0, inside))
        return 0;
    zkl_inspection_free(inside);
    return ZKL_ENOMEM;
}

/* --- children ----------------------------------------------------------- */

/* A child that may have children of its own: neither a contender nor ephemeral. */
static bool may_have_children(const struct zkl_entry *e)
{
    return e->role == ZKL_ENTRY_ROLE_FOREIGN && e->session == 0;
}

/* And can be read. A library that is older than this program says nothing of it. */
static bool is_known_empty(const struct zkl_entry *e)
{
    return e->size >= sizeof *e && e->czxid != 0 && !e->denied && e->children == 0;
}

/* A folder can have very many children; they are listed by name. */
static const struct zkl_entry *find_sorted(const struct zkl_inspection *inside,
                                           const char *node_path)
{
    size_t from = 0, to = inside->count;
    while (from < to) {
        size_t middle = from + (to - from) / 2;
        const struct zkl_entry *e = zkl_inspection_entry(inside, middle);
        int order = strcmp(e->node_path, node_path);
        if (order == 0)
            return e;
        if (order < 0)
            from = middle + 1;
        else
            to = middle;
    }
    return NULL;
}

static const struct zkl_entry *find(const struct zkl_inspection *inside, const char *node_path)
{
    if (inside->kind == ZKL_LOCK_KIND_NONE)
        return find_sorted(inside, node_path);
    for (size_t i = 0; i < inside->count; i++) {
        if (strcmp(zkl_inspection_entry(inside, i)->node_path, node_path) == 0)
            return zkl_inspection_entry(inside, i);
    }
    return NULL;
}

/* Has the lock, which is a child of what is inside, a record beside it? */
static int find_record(const struct zkl_inspection *inside, const char *path, bool *none)
{
    char *record;
    if (asprintf(&record, "%s" LAST_RUN_SUFFIX, path) < 0)
        return ZKL_ENOMEM;
    *none = !find(inside, record);
    free(record);
    return 0;
}

/* --- the walk ----------------------------------------------------------- */

static int walk(struct look *look, struct zkl_client *client, const char *path, bool top);

/* The lock at or in the folder's child, whose path may be a record's: a lock that was used is there
 * still by that when the server has removed its own node. */
static int walk_child(struct look *look, struct zkl_client *client,
                      const struct zkl_inspection *inside, const struct zkl_entry *e)
{
    size_t length = last_run_lock_length(e->node_path), first = look->count;
    char *path = length > 0 ? strndup(e->node_path, length) : strdup(e->node_path);
    bool none = false;
    int rc = path ? 0 : ZKL_ENOMEM;
    if (rc == 0 && length > 0)
        rc = find(inside, path) ? 0 : walk(look, client, path, false);
    else if (rc == 0 && is_known_empty(e) && strlen(path) <= LOOK_PATH_MAX)
        rc = add(look, path, 0, &nothing) ? 0 : ZKL_ENOMEM;
    else if (rc == 0)
        rc = walk(look, client, path, false);
    if (rc == 0 && length == 0 && look->count > first) {
        rc = find_record(inside, path, &none);
        if (strcmp(look->all[first].path, path) == 0)
            look->all[first].no_record = none;
    }
    free(path);
    return rc;
}

/* No lock can be below the server's own node. */
static int walk_children(struct look *look, struct zkl_client *client,
                         const struct zkl_inspection *inside)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < inside->count; i++) {
        const struct zkl_entry *e = zkl_inspection_entry(inside, i);
        if (may_have_children(e) && strcmp(e->node_path, "/zookeeper") != 0)
            rc = walk_child(look, client, inside, e);
    }
    return rc;
}

/* A folder is no lock, and is only shown if it was asked for and nothing else can be. */
static int walk_folder(struct look *look, struct zkl_client *client, const char *path,
                       const struct zkl_inspection *inside, bool top)
{
    int rc = walk_children(look, client, inside);
    if (rc == 0 && top && look->count == 0) {
        if (add(look, path, 0, inside))
            return 0;
        rc = ZKL_ENOMEM;
    }
    zkl_inspection_free(inside);
    return rc;
}

static int walk(struct look *look, struct zkl_client *client, const char *path, bool top)
{
    const struct zkl_inspection *inside = NULL;
    int rc = inspect(client, path, &inside);
    bool is_told = rc == 0 || (!top && (rc == ZKL_EACCES || rc == ZKL_EBADPATH));
    if (!is_told)
        return rc;
    if (inside && inside->kind == ZKL_LOCK_KIND_NONE && inside->count > 0)
        return walk_folder(look, client, path, inside, top);
    if (!add(look, path, rc, inside)) {
        zkl_inspection_free(inside);
        return ZKL_ENOMEM;
    }
    return inside ? walk_children(look, client, inside) : 0;
}

/* --- what callers want -------------------------------------------------- */

/* Cuts the last component off. False: there is none above. */
static bool cut(char *path)
{
    char *slash = strrchr(path, '/');
    if (!slash || slash[1] == '\0')
        return false;
    slash[slash == path] = '\0';
    return true;
}

/* A semaphore's nodes are below "leases" or "locks" of its path. */
static bool is_in_semaphore(const char *path)
{
    const char *name = strrchr(path, '/');
    return name && name != path && (strcmp(name, "/leases") == 0 || strcmp(name, "/locks") == 0);
}

/* The semaphore of which this path is a part; none of that is an error. */
static int add_semaphore(struct look *look, struct zkl_client *client, const char *path)
{
    char *above = is_in_semaphore(path) ? strdup(path) : NULL;
    int rc = above && cut(above) ? add_lock(look, client, above) : 0;
    free(above);
    if (look->count > 0 && look->all[0].inside->kind != ZKL_LOCK_KIND_SEMAPHORE)
        look_free(look);
    return rc == ZKL_EACCES || rc == ZKL_EBADPATH ? 0 : rc;
}

int look_below(struct look *look, struct zkl_client *client, const char *path)
{
    *look = (struct look){0};
    int rc = add_semaphore(look, client, path);
    if (rc == 0 && look->count == 0)
        rc = walk(look, client, path, true);
    if (rc != 0)
        look_free(look);
    return rc;
}

int look_at(struct look *look, struct zkl_client *client, const char *path)
{
    *look = (struct look){0};
    int rc = add_semaphore(look, client, path);
    if (rc == 0 && look->count == 0)
        rc = add_lock(look, client, path);
    if (rc != 0)
        look_free(look);
    return rc;
}

static void free_seen(const struct seen *seen)
{
    if (seen->inside != &nothing)
        zkl_inspection_free(seen->inside);
    free(seen->path);
}

bool seen_is_busy(const struct seen *seen)
{
    for (size_t i = 0; seen->inside && i < seen->inside->count; i++) {
        if (zkl_inspection_entry(seen->inside, i)->role != ZKL_ENTRY_ROLE_FOREIGN)
            return true;
    }
    return seen->code == ZKL_EACCES; /* for all that is known */
}

void look_keep_busy(struct look *look)
{
    size_t kept = 0;
    for (size_t i = 0; i < look->count; i++) {
        if (seen_is_busy(&look->all[i]))
            look->all[kept++] = look->all[i];
        else
            free_seen(&look->all[i]);
    }
    look->count = kept;
}

void look_free(struct look *look)
{
    for (size_t i = 0; i < look->count; i++)
        free_seen(&look->all[i]);
    free(look->all);
    *look = (struct look){0};
}

/* --- one node ----------------------------------------------------------- */

static int look_in(struct look *look, struct zkl_client *client, const char *path,
                   const char *node_path, const struct zkl_entry **entry)
{
    int rc = add_lock(look, client, path);
    if (rc != 0)
        return rc;
    *entry = find(look->all[0].inside, node_path);
    if (*entry)
        return 0;
    bool part = look->all[0].inside->kind == ZKL_LOCK_KIND_SEMAPHORE && is_in_semaphore(node_path);
    return part ? ZKL_EFOREIGN : ZKL_ENONODE;
}

const struct zkl_entry *look_again(const struct zkl_inspection *inside, const struct zkl_entry *e)
{
    const struct zkl_entry *now = find(inside, e->node_path);
    return now && now->czxid == e->czxid ? now : NULL;
}

/* No node has such a path. Of one that is too long for a lock the library says nothing else. */
static bool is_bad(struct zkl_client *client, const char *node_path)
{
    const struct zkl_inspection *inside = NULL;
    int rc =
        strlen(node_path) > LOOK_PATH_MAX ? 0 : zkl_inspect(client, node_path, LOOK_MS, &inside);
    zkl_inspection_free(inside);
    return rc == ZKL_EBADPATH;
}

int look_up(struct look *look, struct zkl_client *client, const char *node_path,
            const struct zkl_entry **entry)
{
    *look = (struct look){0};
    char *path = strdup(node_path);
    if (!path)
        return ZKL_ENOMEM;
    int rc = cut(path) ? look_in(look, client, path, node_path, entry) : ZKL_ENONODE;
    bool again = (rc == ZKL_ENONODE || (rc == 0 && (*entry)->role == ZKL_ENTRY_ROLE_FOREIGN)) &&
                 is_in_semaphore(path);
    if (again && cut(path)) {
        look_free(look);
        rc = look_in(look, client, path, node_path, entry);
    }
    free(path);
    return rc == ZKL_ENONODE && is_bad(client, node_path) ? ZKL_EBADPATH : rc;
}
