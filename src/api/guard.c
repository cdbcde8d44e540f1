/* SPDX-License-Identifier: Apache-2.0
 *
 * The nodes that a caller's own transaction must check, as long as the caller holds with an open
 * window. guard.h brings ZooKeeper's header, but this file uses none of it. It owns nothing: the
 * caller provides the memory. Users call it from the owner's thread; it reads the hold's state with
 * the client's mutex. */
#include <zklock/guard.h>

#include <stdio.h>
#include <string.h>

#include "error.h"
#include "place.h"
#include "owner.h"

static int put_path(const struct zkl_place *place, const char *chroot, char *path, size_t size,
                    const char *call)
{
    size_t cut = chroot ? strlen(chroot) : 0;
    /* The path from the ensemble's own root. */
    int n = snprintf(path, size, "%s%s/%s", place->client->driver->config.chroot,
                     place->lock_path->path, place->node);
    if ((size_t)n >= size)
        return zkl_fail(ZKL_EINVAL, "%s: %s: the node's path is longer than %zu bytes", call,
                        place->lock_path->path, size - 1);
    if (cut > 0 && (strncmp(path, chroot, cut) != 0 || path[cut] != '/'))
        return zkl_fail(ZKL_EINVAL, "%s: %s is not below the chroot \"%.64s\"", call, path, chroot);
    memmove(path, path + cut, (size_t)n + 1 - cut);
    return 0;
}

/* place NULL: there is none. */
static int guard_place(const struct zkl_place *place, int64_t need_ms, const char *chroot,
                       char *path, size_t size, const char *call)
{
    if (zkl_check_ms(need_ms, call) != 0)
        return ZKL_EBADTIMEOUT;
    if (!place)
        return zkl_fail(ZKL_ENOTOWNER, "%s", call);
    if (!zkl_hold_still_held(zkl_place_window_ms(place), need_ms, call))
        return zkl_fail(ZKL_ELOST, "%s: %s: the hold is lost, or not proved for that long%s", call,
                        place->lock_path->path, zkl_hold_why_unproved(place->client));
    return put_path(place, chroot, path, size, call);
}

int zkl_guard_mutex_path(struct zkl_mutex *mutex, int64_t need_ms, const char *chroot,
                         struct zkl_guard *guard)
{
    static const char call[] = "zkl_guard_mutex";
    if (!mutex || !guard)
        return zkl_fail(ZKL_EINVAL, "%s: %s is NULL", call, mutex ? "guard" : "mutex");
    int rc = zkl_client_check(mutex->client, false, call);
    if (rc != 0)
        return rc;
    struct zkl_hold own = mutex->kind->find(mutex);
    rc = guard_place(own.place, need_ms, chroot, guard->path, sizeof guard->path, call);
    if (own.place)
        mutex->kind->put(&own);
    return rc;
}

int zkl_guard_permit_path(struct zkl_permit *permit, int64_t need_ms, const char *chroot,
                          struct zkl_guard *guard)
{
    static const char call[] = "zkl_guard_permit";
    const struct zkl_place *place = (struct zkl_place *)permit;
    if (!permit || !guard)
        return zkl_fail(ZKL_EINVAL, "%s: %s is NULL", call, permit ? "guard" : "permit");
    int rc = zkl_client_check(place->client, false, call);
    return rc == 0 ? guard_place(place, need_ms, chroot, guard->path, sizeof guard->path, call)
                   : rc;
}

int zkl_guard_multi_paths(struct zkl_multi *multi, int64_t need_ms, const char *chroot,
                          struct zkl_guard *guards, size_t count)
{
    static const char call[] = "zkl_guard_multi";
    if (!multi || !guards)
        return zkl_fail(ZKL_EINVAL, "%s: %s is NULL", call, multi ? "guards" : "multi");
    size_t n = 0;
    struct zkl_place *place;
    int rc = zkl_multi_nth_hold(multi, n, call, &place);
    while (rc == 0 && place) {
        if (n < count)
            rc = guard_place(place, need_ms, chroot, guards[n].path, sizeof guards[n].path, call);
        else
            rc = zkl_fail(ZKL_EINVAL, "%s: there is room for only %zu checks", call, count);
        zkl_place_unref(place);
        if (rc == 0)
            rc = zkl_multi_nth_hold(multi, ++n, call, &place);
    }
    return rc == 0 ? (int)n : rc;
}
