/* SPDX-License-Identifier: Apache-2.0 */
#include "inspection.h"

#include <fnmatch.h>

static int free_inspection(void *inspection)
{
    zkl_inspection_free(inspection);
    return 0;
}

const struct zkl_inspection *inspect_lock(struct zkl_client *client, const char *path)
{
    const struct zkl_inspection *inspection = NULL;

    if (zkl_inspect(client, path, WAIT_MS, &inspection) != 0)
        fail_msg("%s", zkl_error_detail());
    return world_keep((void *)inspection, WORLD_MEMORY, free_inspection);
}

/* As "role access[ name][ for N] peer sequence node", the node without the path. */
static void entry_text(const struct zkl_entry *e, const char *path, char *out, size_t size)
{
    static const char *const roles[] = {"", "holds", "waits", "foreign"};
    static const char *const accesses[] = {"-", "lock", "read", "write", "permit", "entry"};
    char waits_for[32] = "";

    check_ok(strncmp(e->node_path, path, strlen(path)));
    if (e->waits_for != ZKL_NO_ENTRY)
        snprintf(waits_for, sizeof waits_for, " for %zu", e->waits_for);
    snprintf(out, size, "%s %s%s%s%s %s %lld %s", roles[e->role], accesses[e->access],
             e->name[0] ? " " : "", e->name, waits_for, e->peer[0] ? e->peer : "-",
             (long long)e->sequence, e->node_path + strlen(path) + 1);
}

void say_inspection(struct zkl_client *client, const char *path, char *out, size_t size)
{
    static const char *const kinds[] = {"none", "mutex", "rwlock", "semaphore"};
    const struct zkl_inspection *inspection = inspect_lock(client, path);
    size_t length = (size_t)snprintf(out, size, "%s", kinds[inspection->kind]);

    if (inspection->permits > 0)
        length += (size_t)snprintf(out + length, size - length, " %d", (int)inspection->permits);
    for (size_t i = 0; i < inspection->count && length < size; i++) {
        char text[256];
        entry_text(&inspection->entries[i], path, text, sizeof text);
        length += (size_t)snprintf(out + length, size - length, " | %s", text);
    }
}

void check_inspection(const struct zkl_inspection *inspection, const char *path,
                      enum zkl_lock_kind kind, const char *const *lines, size_t count)
{
    char text[256];

    check_num(inspection->kind, ==, kind);
    for (size_t i = 0; i < inspection->count && i < count; i++) {
        entry_text(&inspection->entries[i], path, text, sizeof text);
        if (fnmatch(lines[i], text, 0) != 0)
            fail_msg("entry %zu is \"%s\", not \"%s\"", i, text, lines[i]);
    }
    check_num(inspection->count, ==, count);
}

const struct zkl_inspection *check_entry_lines(struct zkl_client *client, const char *path,
                                               enum zkl_lock_kind kind, const char *const *lines,
                                               size_t count)
{
    const struct zkl_inspection *inspection = inspect_lock(client, path);

    check_inspection(inspection, path, kind, lines, count);
    return inspection;
}
