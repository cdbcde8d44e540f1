/* SPDX-License-Identifier: Apache-2.0 */
#include "bench.h"

#include <stdio.h>
#include <stdlib.h>

/* "/TOP" of "/TOP/NAME". */
struct top {
    char path[64];
};

static struct top top_of(const char *path)
{
    struct top top;

    snprintf(top.path, sizeof top.path, "%.*s", (int)strcspn(path + 1, "/") + 1, path);
    return top;
}

int bench_set_up_with(void **state, const char *path, int client_ms, int direct_ms)
{
    struct bench *b = calloc(1, sizeof *b);

    check_true(b != NULL);
    b->proxy = proxy_before(server, 0);
    b->path = path;
    if (client_ms != 0) {
        b->client = fault_open(proxy_address(b->proxy), client_ms);
        b->mutex = fault_mutex(b->client, path);
    }
    if (direct_ms != 0) {
        b->direct = fault_open(zks_connect_string(server), direct_ms);
        b->rival = fault_mutex(b->direct, path);
    }
    b->wire = fault_wire();
    b->actor = actor_new();
    *state = b;
    return 0;
}

int bench_set_up(void **state, const char *path, int session_ms)
{
    return bench_set_up_with(state, path, session_ms, session_ms);
}

void bench_make_path(struct bench *b)
{
    check_ok(wire_create(b->wire, top_of(b->path).path, "", WIRE_PERSISTENT, NULL, 0));
    check_ok(wire_create(b->wire, b->path, "", WIRE_PERSISTENT, NULL, 0));
}

int bench_tear_down(void **state)
{
    struct bench *b = *state;

    zkl_mutex_free(b->rival);
    zkl_client_free(b->direct);
    zkl_mutex_free(b->mutex);
    zkl_client_free(b->client);
    proxy_stop(b->proxy);
    wire_delete_tree(b->wire, top_of(b->path).path);
    wire_close(b->wire);
    actor_free(b->actor);
    free(b);
    return 0;
}
