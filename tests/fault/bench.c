/* SPDX-License-Identifier: Apache-2.0 */
#include "bench.h"

#include <stdlib.h>

struct bench *bench_open(const char *path, int session_ms)
{
    struct bench *b = calloc(1, sizeof *b);

    if (b == NULL || proxy_start(&b->proxy, zks_host(), zks_port(server, 0)) != 0) {
        free(b);
        return NULL;
    }
    b->client = fault_open(proxy_address(b->proxy), session_ms);
    b->mutex = fault_mutex(b->client, path);
    b->direct = fault_open(zks_connect_string(server), session_ms);
    b->rival = fault_mutex(b->direct, path);
    b->wire = fault_wire();
    return b;
}

void bench_close(struct bench *b, const char *top)
{
    zkl_mutex_free(b->rival);
    zkl_client_free(b->direct);
    zkl_mutex_free(b->mutex);
    zkl_client_free(b->client);
    proxy_stop(b->proxy);
    wire_delete_tree(b->wire, top);
    wire_close(b->wire);
    free(b);
}
