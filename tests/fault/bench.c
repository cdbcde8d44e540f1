/* SPDX-License-Identifier: Apache-2.0 */
#include "bench.h"

struct bench *bench_begin(const char *path, int client_ms, int direct_ms)
{
    struct bench *b = world_alloc(sizeof *b);

    b->path = path;
    b->wire = world_wire();
    b->proxy = world_proxy();
    b->actor = world_actor();
    if (client_ms != 0) {
        b->client = world_through(b->proxy, client_ms);
        b->mutex = world_mutex(b->client, path);
    }
    if (direct_ms != 0) {
        b->direct = world_direct(direct_ms);
        b->rival = world_mutex(b->direct, path);
    }
    return b;
}

struct bench *bench_make_path(struct bench *b)
{
    char top[64];

    snprintf(top, sizeof top, "%.*s", (int)strcspn(b->path + 1, "/") + 1, b->path);
    check_ok(wire_create(b->wire, top, "", WIRE_PERSISTENT, NULL, 0));
    check_ok(wire_create(b->wire, b->path, "", WIRE_PERSISTENT, NULL, 0));
    return b;
}
