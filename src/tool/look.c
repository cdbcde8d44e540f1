/* SPDX-License-Identifier: Apache-2.0
 *
 * All locks at and below a path, each as it was when it was inspected, one after the other. This
 * file owns the results until the subcommand frees them. One thread; status, doctor, revoke and
 * break call it. */
#include "look.h"

#include <stdlib.h>
#include <string.h>

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

/* A child that may have children of its own: neither a contender nor ephemeral. */
static bool may_have_children(const struct zkl_entry *e)
{
    return e->role == ZKL_ENTRY_ROLE_FOREIGN && e->session == 0;
}

static const struct zkl_entry *find(const struct zkl_inspection *inside, const char *node_path)
{
    for (size_t i = 0; i < inside->count; i++) {
        if (strcmp(zkl_inspection_entry(inside, i)->node_path, node_path) == 0)
            return zkl_inspection_entry(inside, i);
    }
    return NULL;
}

static int walk(struct look *look, struct zkl_client *client, const char *path, bool top);

/* A lock that was used is there still by its record, when the server has removed its own node. */
static int walk_record(struct look *look, struct zkl_client *client,
                       const struct zkl_inspection *inside, const char *node_path, size_t length)
{
    char *path = strndup(node_path, length);
    if (!path)
        return ZKL_ENOMEM;
    int rc = find(inside, path) ? 0 : walk(look, client, path, false);
    free(path);
    return rc;
}

static int walk_children(struct look *look, struct zkl_client *client,
                         const struct zkl_inspection *inside)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < inside->count; i++) {
        const char *node_path = zkl_inspection_entry(inside, i)->node_path;
        size_t length = last_run_lock_length(node_path);
        if (!may_have_children(zkl_inspection_entry(inside, i)))
            continue;
        if (length > 0)
            rc = walk_record(look, client, inside, node_path, length);
        else
            rc = walk(look, client, node_path, false);
    }
    return rc;
}

static int walk(struct look *look, struct zkl_client *client, const char *path, bool top)
{
    const struct zkl_inspection *inside = NULL;
    int rc = zkl_inspect(client, path, LOOK_MS, &inside);
    bool is_told = rc == 0 || (!top && (rc == ZKL_EACCES || rc == ZKL_EBADPATH));
    if (!is_told)
        return rc;
    if (inside && inside->kind == ZKL_LOCK_KIND_NONE && inside->count > 0) {
        rc = walk_children(look, client, inside); /* a folder */
        zkl_inspection_free(inside);
        return rc;
    }
    if (!add(look, path, rc, inside)) {
        zkl_inspection_free(inside);
        return ZKL_ENOMEM;
    }
    return inside ? walk_children(look, client, inside) : 0;
}

int look_below(struct look *look, struct zkl_client *client, const char *path)
{
    *look = (struct look){0};
    int rc = walk(look, client, path, true);
    if (rc != 0)
        look_free(look);
    return rc;
}

void look_free(struct look *look)
{
    for (size_t i = 0; i < look->count; i++) {
        zkl_inspection_free(look->all[i].inside);
        free(look->all[i].path);
    }
    free(look->all);
    *look = (struct look){0};
}

/* --- one node ----------------------------------------------------------- */

/* Cuts the last component off. False: there is none above. */
static bool cut(char *path)
{
    char *slash = strrchr(path, '/');
    if (!slash || slash == path)
        return false;
    *slash = '\0';
    return true;
}

/* A semaphore's nodes are below "leases" or "locks" of its path. */
static bool is_in_semaphore(const char *path)
{
    const char *name = strrchr(path, '/');
    return name && (strcmp(name, "/leases") == 0 || strcmp(name, "/locks") == 0);
}

static int look_in(struct look *look, struct zkl_client *client, const char *path,
                   const char *node_path, const struct zkl_entry **entry)
{
    const struct zkl_inspection *inside;
    int rc = zkl_inspect(client, path, LOOK_MS, &inside);
    if (rc != 0)
        return rc;
    if (!add(look, path, 0, inside)) {
        zkl_inspection_free(inside);
        return ZKL_ENOMEM;
    }
    *entry = find(inside, node_path);
    return *entry ? 0 : ZKL_ENONODE;
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
    return rc;
}
