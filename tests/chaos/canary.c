/* SPDX-License-Identifier: Apache-2.0 */
#include "canary.h"

#include "tool/net.h"
#include "wire.h"

#define NODE "/canary"
#define SESSION_MS 10000
#define NAP_MS 20

static bool goes_on(const struct canary *c)
{
    return c->shared->phase == RUN && !c->ends;
}

/* The version that is read has been committed: the same server has answered the write before it. */
static int count_once(struct canary *c, struct wire *wire)
{
    struct wire_stat stat = {0};
    int rc = wire_set(wire, NODE, "", -1);

    if (rc == WIRE_NONODE && c->version < 0)
        rc = wire_create(wire, NODE, "", WIRE_PERSISTENT, NULL, 0);
    if (rc == 0 || rc == WIRE_NONODE)
        rc = rc == 0 ? wire_exists(wire, NODE, &stat) : rc;
    if (rc == WIRE_IO)
        return rc;
    if (rc != 0 || stat.version <= c->version) {
        shared_odd(c->shared,
                   "THE ENSEMBLE ITSELF lost committed writes: its count was %d and is %d (%d)",
                   c->version, stat.version, rc);
        c->ends = true;
        return WIRE_IO;
    }
    c->version = stat.version;
    c->counted++;
    return 0;
}

static void visit(struct canary *c, size_t node)
{
    struct wire *wire = NULL;
    int rc = wire_open(&wire, zks_node_host(c->zks, node), zks_port(c->zks, node), SESSION_MS);

    while (rc == 0 && goes_on(c)) {
        rc = count_once(c, wire);
        net_nap_ms(NAP_MS);
    }
    if (wire == NULL)
        return;
    if (rc == 0)
        wire_close(wire);
    else
        wire_abandon(wire);
}

static void *run(void *arg)
{
    struct canary *c = arg;

    for (size_t node = 0; !c->ends; node = (node + 1) % zks_nodes(c->zks)) {
        c->still = !goes_on(c);
        if (c->era != c->shared->era) /* all data were wiped on purpose */
            c->version = -1;
        c->era = c->shared->era;
        if (!c->still)
            visit(c, node);
        net_nap_ms(NAP_MS);
    }
    c->still = true;
    return NULL;
}

int canary_start(struct canary *c, struct shared *shared, const struct zks *zks)
{
    c->shared = shared;
    c->zks = zks;
    c->version = -1;
    return pthread_create(&c->thread, NULL, run, c) == 0 ? 0 : -1;
}

void canary_stop(struct canary *c)
{
    c->ends = true;
    pthread_join(c->thread, NULL);
}
