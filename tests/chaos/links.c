/* SPDX-License-Identifier: Apache-2.0 */
#include "testbed.h"

#include <stdio.h>

#include "chance.h"
#include "tool/net.h"

int links_start(struct testbed *s)
{
    for (int i = 0; i < CHAOS_PROCESSES; i++) {
        char *servers = s->shared->process[i].servers;
        size_t size = sizeof s->shared->process[i].servers, n = 0;
        for (int k = 0; k < CHAOS_NODES; k++) {
            int port = s->tls ? s->secure.port[k] : zks_port(s->zks, (size_t)k);
            if (proxy_start(&s->link[i][k], zks_node_host(s->zks, (size_t)k), port) != 0)
                return -1;
            if (s->tls)
                proxy_set_opaque(s->link[i][k]);
            n += (size_t)snprintf(servers + n, size - n, "%s%s", k > 0 ? "," : "",
                                  proxy_address(s->link[i][k]));
        }
    }
    return 0;
}

void links_stop(struct testbed *s)
{
    for (int i = 0; i < CHAOS_PROCESSES; i++) {
        for (int k = 0; k < CHAOS_NODES; k++)
            proxy_stop(s->link[i][k]);
    }
}

void links_heal(struct testbed *s, int client, int node)
{
    struct proxy *proxy = s->link[client][node];

    proxy_disarm(proxy);
    proxy_trickle(proxy, 0);
    proxy_delay_ms(proxy, 0);
    if (chance(&s->chance, 50)) /* else all that was kept is passed on */
        proxy_cut(proxy);
    proxy_heal(proxy);
    s->link_until_ms[client][node] = 0;
}

/* The server that the client talks to now. */
static int connected_to(struct testbed *s, int client)
{
    int any = chance_between(&s->chance, 0, CHAOS_NODES - 1);

    for (int i = 0; i < CHAOS_NODES; i++) {
        int node = (any + i) % CHAOS_NODES;
        if (proxy_connections(s->link[client][node]) > 0)
            return node;
    }
    return any;
}

/* What a lock is made of. */
static enum proxy_op draw_request(struct testbed *s)
{
    static const enum proxy_op ops[] = {PROXY_CREATE2, PROXY_CREATE2,   PROXY_DELETE, PROXY_DELETE,
                                        PROXY_MULTI,   PROXY_CHILDREN2, PROXY_GET,    PROXY_EXISTS,
                                        PROXY_CONNECT, PROXY_PING};

    return ops[chance_between(&s->chance, 0, 9)];
}

static void lose(struct testbed *s, struct proxy *proxy, bool answer)
{
    enum proxy_op op = s->tls ? PROXY_ANY : draw_request(s);
    int nth = chance_between(&s->chance, 1, s->tls ? 10 : 3);
    enum proxy_then then = chance(&s->chance, 60) ? PROXY_THEN_CUT : PROXY_THEN_SILENT;

    if (!answer)
        proxy_drop_request(proxy, op, nth, then);
    else
        proxy_drop_reply(proxy, s->tls || chance(&s->chance, 20) ? PROXY_EVENT : op, nth, then);
}

static void strike(struct testbed *s, enum fault fault, struct proxy *proxy)
{
    if (fault == LINK_HOLE)
        proxy_hole(proxy, (enum proxy_dir)chance_between(&s->chance, PROXY_TO_SERVER, PROXY_BOTH));
    else if (fault == LINK_DELAY)
        proxy_delay_ms(proxy, chance_between(&s->chance, 5, 300));
    else if (fault == LINK_LOSE_ANSWER || fault == LINK_LOSE_REQUEST)
        lose(s, proxy, fault == LINK_LOSE_ANSWER);
    else if (fault == LINK_HALF_OPEN)
        proxy_half_open(proxy);
    else if (fault == LINK_TRICKLE)
        proxy_trickle(proxy, (size_t)chance_between(&s->chance, 1, 9));
    else
        proxy_cut(proxy);
}

/* On the link that is in use, or on all of the client. */
void links_fault(struct testbed *s, enum fault fault, int client, int64_t until_ms)
{
    bool all = chance(&s->chance, 40);
    int used = connected_to(s, client);

    for (int i = 0; i < CHAOS_NODES; i++) {
        if (!all && i != used)
            continue;
        strike(s, fault, s->link[client][i]);
        s->link_until_ms[client][i] = until_ms;
    }
}
