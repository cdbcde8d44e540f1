/* SPDX-License-Identifier: Apache-2.0
 *
 * A request's paths below the chroot. libzookeeper could prefix the chroot itself, but its
 * zoo_amulti frees such a path twice if the session has just ended (3.8.0; see zkl_call_multi), so
 * the driver never gives it a chroot. This file owns the longer texts until the call is answered.
 * Under the client's mutex; handle.c calls it for each request. */
#include "chroot.h"

#include <stdlib.h>
#include <string.h>

static size_t room_for(const char *chroot, const char *path)
{
    return strlen(chroot) + strlen(path) + 1;
}

/* Write the path with its chroot. Returns where the next path begins. */
static char *put(char *out, const char *chroot, const char *path)
{
    out = stpcpy(out, chroot);
    return stpcpy(out, strcmp(path, "/") == 0 ? "" : path) + 1;
}

static size_t room_for_all(const char *chroot, const struct zkl_request *request)
{
    size_t room = request->path ? room_for(chroot, request->path) : 0;
    for (size_t i = 0; i < request->check_count; i++)
        room += room_for(chroot, request->checks[i]);
    for (size_t i = 0; i < request->part_count; i++)
        room += room_for(chroot, request->parts[i].path);
    return room;
}

bool zkl_chroot_begin(struct zkl_rooted *rooted, const char *chroot,
                      const struct zkl_request *request)
{
    rooted->request = *request;
    rooted->texts = malloc(room_for_all(chroot, request) + 1);
    rooted->checks = calloc(request->check_count + 1, sizeof *rooted->checks);
    rooted->parts = request->part_count ? calloc(request->part_count, sizeof *rooted->parts) : NULL;
    if (!rooted->texts || !rooted->checks || (request->part_count && !rooted->parts)) {
        zkl_chroot_end(rooted);
        return false;
    }
    char *at = rooted->texts;
    if (request->path) {
        rooted->request.path = at;
        at = put(at, chroot, request->path);
    }
    for (size_t i = 0; i < request->check_count; i++) {
        rooted->checks[i] = at;
        at = put(at, chroot, request->checks[i]);
    }
    rooted->request.checks = rooted->checks;
    for (size_t i = 0; i < request->part_count; i++) {
        rooted->parts[i] = request->parts[i];
        rooted->parts[i].path = at;
        at = put(at, chroot, request->parts[i].path);
    }
    rooted->request.parts = rooted->parts;
    return true;
}

void zkl_chroot_end(struct zkl_rooted *rooted)
{
    free(rooted->parts);
    free(rooted->checks);
    free(rooted->texts);
}
