/* SPDX-License-Identifier: Apache-2.0
 *
 * Adds up what each session owns of the nodes that doctor has seen, whoever made them. A session
 * that owns too much takes the servers down with its end. This file owns a list of the nodes for
 * the length of one search. One thread; doctor.c calls it, when it has inspected all locks. */
#include "owned.h"

#include <stdlib.h>
#include <string.h>

struct owned {
    int64_t session;
    size_t bytes;
};

static int by_session(const void *left, const void *right)
{
    const struct owned *a = left, *b = right;
    return (a->session > b->session) - (a->session < b->session);
}

static size_t count_entries(const struct look *look)
{
    size_t count = 0;
    for (size_t i = 0; i < look->count; i++)
        count += look->all[i].inside ? look->all[i].inside->count : 0;
    return count;
}

/* Nodes that are of no session, or of an unknown one, are left out. */
static size_t collect(const struct look *look, size_t chroot, struct owned *list)
{
    size_t count = 0;
    for (size_t i = 0; i < look->count; i++) {
        const struct zkl_inspection *inside = look->all[i].inside;
        for (size_t j = 0; inside && j < inside->count; j++) {
            const struct zkl_entry *e = zkl_inspection_entry(inside, j);
            if (e->session != 0)
                list[count++] =
                    (struct owned){e->session, sizeof(int32_t) + chroot + strlen(e->node_path)};
        }
    }
    return count;
}

int owned_find(const struct look *look, size_t chroot, owned_fn *fn, void *arg)
{
    struct owned *list = calloc(count_entries(look) + 1, sizeof *list);
    if (!list)
        return -1;
    size_t count = collect(look, chroot, list);
    qsort(list, count, sizeof *list, by_session);
    for (size_t first = 0, end; first < count; first = end) {
        size_t bytes = 0;
        for (end = first; end < count && list[end].session == list[first].session; end++)
            bytes += list[end].bytes;
        if (bytes >= OWNED_NEAR)
            fn(arg, list[first].session, end - first, bytes);
    }
    free(list);
    return 0;
}
