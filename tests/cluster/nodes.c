/* SPDX-License-Identifier: Apache-2.0 */
#include "nodes.h"

#include <stdio.h>
#include <stdlib.h>

const char *below(const char *path, const char *name)
{
    static char texts[16][512];
    static unsigned last;
    char text[sizeof texts[0]];

    snprintf(text, sizeof text, "%s/%s", path, name); /* path may be one of them */
    return memcpy(texts[++last % 16], text, sizeof text);
}

uint64_t make_node(const char *node, const char *data)
{
    struct wire_stat stat;
    char path[512];

    snprintf(path, sizeof path, "%.*s", (int)(strrchr(node, '/') - node), node);
    int rc = wire_create(raw, cluster_at(path), "", WIRE_PERSISTENT, NULL, 0);
    check_true(rc == 0 || rc == WIRE_NODEEXISTS);
    check_ok(wire_create(raw, cluster_at(node), data, WIRE_EPHEMERAL, NULL, 0));
    check_ok(wire_exists(raw, cluster_at(node), &stat));
    return (uint64_t)stat.czxid;
}

void make_root(const char *path, const char *data)
{
    check_ok(wire_create(raw, cluster_at(path), data, WIRE_PERSISTENT, NULL, 0));
}

void drop_node(const char *node)
{
    check_ok(wire_delete(raw, cluster_at(node), -1));
}

bool node_is_there(const char *node)
{
    return wire_exists(raw, cluster_at(node), NULL) == 0;
}

bool node_has_data(const char *node, const char *data)
{
    char text[64];

    return wire_get(raw, cluster_at(node), text, sizeof text, NULL) == 0 && strcmp(text, data) == 0;
}

int node_watches(const char *node)
{
    return flw_watch_count(zks_host(), zks_port(server, 0), cluster_at(node));
}

int all_watches(void)
{
    char *text = flw_ask(zks_host(), zks_port(server, 0), "mntr");
    const char *line = text ? strstr(text, "zk_watch_count\t") : NULL;
    int n = line ? atoi(strchr(line, '\t')) : -1;

    free(text);
    return n;
}

struct zkl_client *client_through(struct proxy **proxy, int session_ms)
{
    struct zkl_client_options options = cluster_options();

    check_ok(proxy_start(proxy, zks_host(), zks_port(server, 0)));
    options.servers = cluster_servers(proxy_address(*proxy));
    options.session_timeout_ms = session_ms;
    return cluster_client_with(&options);
}
