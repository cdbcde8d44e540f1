/* SPDX-License-Identifier: Apache-2.0
 *
 * Descriptions of a lock in words: the owner of a contender, its age, the kind of the lock. The
 * caller provides the memory. Pure, any thread. status, doctor, revoke, break and record.c call
 * it. */
#include "describe.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

const char *describe_kind(enum zkl_lock_kind kind)
{
    static const char *const kinds[] = {[ZKL_LOCK_KIND_NONE] = "free",
                                        [ZKL_LOCK_KIND_MUTEX] = "mutex",
                                        [ZKL_LOCK_KIND_RWLOCK] = "rwlock",
                                        [ZKL_LOCK_KIND_SEMAPHORE] = "semaphore"};
    return kinds[kind];
}

const char *describe_access(enum zkl_entry_access access)
{
    static const char *const accesses[] = {
        [ZKL_ENTRY_ACCESS_NONE] = "-",        [ZKL_ENTRY_ACCESS_LOCK] = "lock",
        [ZKL_ENTRY_ACCESS_READ] = "read",     [ZKL_ENTRY_ACCESS_WRITE] = "write",
        [ZKL_ENTRY_ACCESS_PERMIT] = "permit", [ZKL_ENTRY_ACCESS_ENTRY] = "entry"};
    return accesses[access];
}

bool describe_is_unknown(const struct zkl_entry *e)
{
    return e->denied && e->czxid == 0;
}

const char *describe_owner(const struct zkl_entry *e, char text[DESCRIBE_SIZE])
{
    if (e->host[0] && e->thread == e->pid) /* a program's first thread */
        snprintf(text, DESCRIBE_SIZE, "%s pid %" PRId64, e->host, e->pid);
    else if (e->host[0])
        snprintf(text, DESCRIBE_SIZE, "%s pid %" PRId64 " thread %" PRId64, e->host, e->pid,
                 e->thread);
    else if (e->owner[0])
        snprintf(text, DESCRIBE_SIZE, "%s", e->owner);
    else if (e->session)
        snprintf(text, DESCRIBE_SIZE, "session 0x%" PRIx64, (uint64_t)e->session);
    else if (describe_is_unknown(e))
        strcpy(text, "not readable");
    else
        snprintf(text, DESCRIBE_SIZE, "no session");
    return text;
}

const char *describe_age(int64_t age_ms, char text[DESCRIBE_SIZE])
{
    double seconds = (double)age_ms / 1000;
    if (seconds < 600)
        snprintf(text, DESCRIBE_SIZE, "%.1f s", seconds);
    else if (seconds < 100 * 60)
        snprintf(text, DESCRIBE_SIZE, "%.0f min", seconds / 60);
    else if (seconds < 48 * 3600)
        snprintf(text, DESCRIBE_SIZE, "%.1f h", seconds / 3600);
    else
        snprintf(text, DESCRIBE_SIZE, "%.0f d", seconds / 86400);
    return text;
}

const char *describe_age_of(const struct zkl_entry *e, char text[DESCRIBE_SIZE])
{
    return describe_is_unknown(e) ? "?" : describe_age(e->age_ms, text);
}

const char *describe_node(const struct zkl_entry *e, const char *path)
{
    const char *node = e->node_path + strlen(path);
    return node + (*node == '/'); /* none is behind "/" */
}
