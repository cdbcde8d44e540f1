/* SPDX-License-Identifier: Apache-2.0 */
#include "inspection.h"

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

    bool is_below = strncmp(e->node_path, path, strlen(path)) == 0;
    if (e->waits_for != ZKL_NO_ENTRY)
        snprintf(waits_for, sizeof waits_for, " for %zu", e->waits_for);
    snprintf(out, size, "%s %s%s%s%s %s %lld %s", roles[e->role], accesses[e->access],
             e->name[0] ? " " : "", e->name, waits_for, e->peer[0] ? e->peer : "-",
             (long long)e->sequence, is_below ? e->node_path + strlen(path) + 1 : "elsewhere");
}

/* The code, and what the detail says behind the code's sentence. */
static void say_failure(int code, bool given, char *out, size_t size)
{
    const char *detail = zkl_error_detail(), *sentence = zkl_strerror(code);
    size_t length = strlen(sentence);

    snprintf(out, size, "%s%s%s", zkl_error_name(code) + strlen("ZKL_"),
             strncmp(detail, sentence, length) == 0 ? detail + length : "",
             given ? ", and an inspection" : "");
}

void say_inspection(struct zkl_client *client, const char *path, int64_t timeout_ms, char *out,
                    size_t size)
{
    static const char *const kinds[] = {"none", "mutex", "rwlock", "semaphore"};
    const struct zkl_inspection *inspection = NULL;
    int rc = zkl_inspect(client, path, timeout_ms, &inspection);

    if (rc != 0) {
        say_failure(rc, inspection != NULL, out, size);
        return;
    }
    size_t length = (size_t)snprintf(out, size, "%s", kinds[inspection->kind]);
    if (inspection->permits > 0)
        length += (size_t)snprintf(out + length, size - length, " %d", (int)inspection->permits);
    for (size_t i = 0; i < inspection->count && length < size; i++) {
        char text[256];
        entry_text(&inspection->entries[i], path, text, sizeof text);
        length += (size_t)snprintf(out + length, size - length, " | %s", text);
    }
    zkl_inspection_free(inspection);
}
