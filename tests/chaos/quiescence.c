/* SPDX-License-Identifier: Apache-2.0 */
#include "quiescence.h"

#include <stdio.h>
#include <string.h>

#include "tool/fourlw.h"
#include "tool/net.h"
#include "wire.h"

#define GRANT_MS 90000
#define CLEAN_MS 30000
#define LOOK_MS 20

/* --- everybody -------------------------------------------------------------------------------- */

static int waiting_seat(const struct shared *b)
{
    for (int i = 0; i < CHAOS_SEATS; i++) {
        if (b->seat[i].rested != b->round)
            return i;
    }
    return -1;
}

/* Holders and waiters, in each seat and on the servers. */
static void report_seat(const struct shared *b, int seat)
{
    const struct seat *at = &b->seat[seat];
    int64_t since_ms = at->call_since_ms;

    fprintf(stderr, "  seat %d (%s)%s, in a call for %lld ms, has", seat, role_name(at->doing),
            at->rested == b->round ? ", at rest" : "",
            since_ms != 0 ? (long long)(net_now_ms() - since_ms) : 0);
    for (int i = 0; i < CHAOS_SLOTS; i++) {
        if (at->open[i])
            fprintf(stderr, " %s (token %llx)", place_name(at->hold[i].place),
                    (unsigned long long)at->hold[i].token);
    }
    fprintf(stderr, "\n");
}

/* The nodes as each server has them. All servers must have the same ones. */
static void report_server(struct testbed *s, size_t node)
{
    struct wire *wire = NULL;

    fprintf(stderr, "  server %zu%s:\n", node,
            zks_leader(s->zks) == (int)node ? ", the leader" : "");
    if (wire_open(&wire, zks_node_host(s->zks, node), zks_port(s->zks, node), 10000) == 0)
        wire_print_tree(wire, "/chaos");
    wire_close(wire);
}

static void report_standstill(struct testbed *s)
{

    for (int i = 0; i < CHAOS_PROCESSES; i++)
        fprintf(stderr, "  process %d: pid %d, clock off by %lld s, %d threads\n", i,
                s->client[i].pid, (long long)s->shared->process[i].clock_ns / 1000000000,
                client_process_threads(i));
    for (int i = 0; i < CHAOS_SEATS; i++)
        report_seat(s->shared, i);
    for (size_t i = 0; i < CHAOS_NODES; i++)
        report_server(s, i);
}

/* Once there are no faults everybody gets through. Modes: F6, F21. */
bool quiescence_reached(struct testbed *s)
{
    int64_t end_ms = net_now_ms() + GRANT_MS;
    int seat;

    s->shared->round++;
    s->shared->phase = REST;
    while ((seat = waiting_seat(s->shared)) >= 0 && net_now_ms() < end_ms) {
        net_nap_ms(LOOK_MS);
        client_processes_tick(s);
    }
    if (seat >= 0) {
        shared_odd(s->shared, "seat %d (%s) is granted nothing in %d s without faults", seat,
                   role_name(s->shared->seat[seat].doing), GRANT_MS / 1000);
        report_standstill(s);
    }
    return seat < 0;
}

static bool is_owed(const struct process *p, int place)
{
    return p->told[place] < p->owed[place];
}

/* Callbacks reported each loss that unlock reported, sooner or later. Modes: F7. */
void quiescence_check_losses(struct testbed *s)
{
    int64_t end_ms = net_now_ms() + GRANT_MS;

    for (int i = 0; i < CHAOS_PROCESSES; i++) {
        const struct process *p = &s->shared->process[i];
        for (int k = 0; k < PLACES; k++) {
            while (is_owed(p, k) && net_now_ms() < end_ms)
                net_nap_ms(LOOK_MS);
            if (is_owed(p, k))
                shared_odd(s->shared,
                           "process %d, %s: callbacks reported only %d losses, unlock %d", i,
                           place_name(k), p->told[k], p->owed[k]);
        }
    }
}

/* --- what is left ----------------------------------------------------------------------------- */

static int count_nodes(struct testbed *s)
{
    struct wire *wire = NULL;
    int n = WIRE_IO;

    if (wire_open(&wire, zks_node_host(s->zks, 0), zks_port(s->zks, 0), 10000) != 0)
        return -1;
    if (wire_sync(wire, "/") == 0)
        n = wire_ephemerals(wire, "/chaos");
    wire_close(wire);
    return n;
}

/* Of all servers; -1: one did not answer. */
static int sum(struct testbed *s, bool watches)
{
    int all = 0;

    for (int i = 0; i < CHAOS_NODES; i++) {
        const char *host = zks_node_host(s->zks, (size_t)i);
        int port = zks_port(s->zks, (size_t)i);
        int n = watches  ? flw_watch_count(host, port, NULL)
                : s->tls ? flw_all_connections(host, port)
                         : flw_connections(host, port);
        if (n < 0)
            return -1;
        all += n;
    }
    return all;
}

static int more_threads(void)
{
    int n = 0;

    for (int i = 0; i < CHAOS_PROCESSES; i++)
        n += client_process_threads(i) != CHAOS_THREADS + 1 + 4; /* see zkl_client_open */
    return n;
}

int quiescence_count(const struct remains *r)
{
    return r->nodes + r->watches + r->connections + r->threads;
}

static bool is_clean(const struct remains *r)
{
    return r->nodes == 0 && r->watches == 0 && r->connections == 0 && r->threads == 0;
}

/* A TLS server keeps a connection that has no session for ever (B90), and a lost
 * request may leave one whose client has closed it. */
static void end_abandoned(struct testbed *s)
{
    for (int client = 0; s->tls && client < CHAOS_PROCESSES; client++)
        for (int node = 0; node < CHAOS_NODES; node++)
            proxy_end_abandoned(s->link[client][node]);
}

/* Of all clients, by the servers themselves. Modes: F18, F19. */
struct remains quiescence_remains(struct testbed *s, int clients)
{
    int64_t end_ms = net_now_ms() + CLEAN_MS;
    struct remains r;

    do {
        net_nap_ms(LOOK_MS);
        end_abandoned(s);
        r.nodes = count_nodes(s);
        r.watches = sum(s, true);
        r.connections = sum(s, false) - clients;
        r.threads = clients > 0 ? more_threads() : 0;
    } while (!is_clean(&r) && net_now_ms() < end_ms);
    if (!is_clean(&r))
        shared_odd(s->shared,
                   "left behind: %d nodes, %d watches, %d connections, %d processes with other "
                   "threads than %d",
                   r.nodes, r.watches, r.connections, r.threads, CHAOS_THREADS + 5);
    return r;
}
