/* SPDX-License-Identifier: Apache-2.0 */
#include "testbed.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <zklock/wait.h>

#include "calls.h"
#include "chance.h"
#include "tool/fourlw.h"
#include "tool/net.h"

#define TICK_MS 500
#define SYNC_LIMIT_MS 3000 /* the leader drops a follower that is silent for longer */
#define PROBE_MS 50        /* the test asks a silent server again */
#define DRAWS_MAX 10
#define LATE_SESSION_MS 60000 /* its links outlast what is held back */
#define CALM_MS 3500          /* before a server is struck */

static bool server_fault(struct testbed *s, enum fault fault, int64_t until_ms);
static bool client_fault(struct testbed *s, enum fault fault, int64_t until_ms);
static bool link_fault(struct testbed *s, enum fault fault, int64_t until_ms);
static bool cut_fault(struct testbed *s, enum fault fault, int64_t until_ms);
static bool step_clock(struct testbed *s, enum fault fault, int64_t until_ms);

static const struct {
    const char *name;
    int often; /* of 110 */
    /* Whom it strikes, by chance; false: it would be too much just now. */
    bool (*strike)(struct testbed *s, enum fault fault, int64_t until_ms);
    int least_ms, most_ms; /* how long; a client stands still by its session */
} faults[FAULTS] = {
    [SERVER_KILL] = {"server killed", 18, server_fault, 100, 2500},
    [SERVER_PAUSE] = {"server paused", 13, server_fault, 200, 4000},
    [SERVER_WIPE] = {"server's data wiped", 4, server_fault, 100, 2500},
    [CLIENT_KILL] = {"client killed", 14, client_fault, 50, 2000},
    [CLIENT_PAUSE] = {"client paused", 18, client_fault, 0, 0},
    [LINK_CUT] = {"link cut", 4, link_fault, 100, 4000},
    [LINK_HOLE] = {"link with a hole", 6, link_fault, 100, 4000},
    [LINK_DELAY] = {"link delayed", 3, link_fault, 100, 4000},
    [LINK_LOSE_ANSWER] = {"answer lost", 6, link_fault, 100, 4000},
    [LINK_LOSE_REQUEST] = {"request lost", 3, link_fault, 100, 4000},
    [LINK_HALF_OPEN] = {"link half open", 3, link_fault, 100, 4000},
    [LINK_TRICKLE] = {"link trickling", 3, link_fault, 100, 4000},
    [NODE_CUT] = {"servers cut apart", 10, cut_fault, 500, 5000},
    [CLOCK_STEP] = {"clock stepped", 5, step_clock, 0, 0},
};

const char *fault_name(int fault)
{
    return faults[fault].name;
}

static void say(struct testbed *s, enum fault fault, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void say(struct testbed *s, enum fault fault, const char *format, ...)
{
    va_list args;

    s->count[fault]++;
    if (!s->trace)
        return;
    printf("[%lld] %s: ", (long long)(net_boot_ns() / 1000000), fault_name(fault));
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    printf("\n");
}

static int64_t until(struct testbed *s, int least_ms, int most_ms)
{
    return net_now_ms() + chance_between(&s->chance, least_ms, most_ms);
}

/* --- start and stop --------------------------------------------------------------------------- */

int testbed_start(struct testbed *s, char *err, size_t size)
{
    struct zks_options options = {.nodes = CHAOS_NODES,
                                  .tick_ms = TICK_MS,
                                  .sync_limit_ms = SYNC_LIMIT_MS,
                                  .container_check_ms = 1000};
    for (size_t i = 0; i < s->nets.nodes; i++) {
        options.hosts[i] = s->nets.host[i];
        options.nets[i] = s->nets.file[i];
    }
    int rc = s->tls ? secure_start(&s->secure, &s->nets, &options, err, size) : 0;

    rc = rc == 0 ? zks_start(&s->zks, &options, err, size) : rc;
    if (rc != 0)
        return rc;
    snprintf(s->shared->tls, sizeof s->shared->tls, "%s", s->secure.folder);
    if (links_start(s) != 0) {
        snprintf(err, size, "a proxy does not start");
        return -1;
    }
    for (int i = 0; i < CHAOS_PROCESSES; i++) {
        static const int sessions_ms[] = {2000, 3000, 5000, 10000};
        bool late = s->shared->broken == BREAK_WAKE && i == CHAOS_LATE;
        s->shared->process[i].session_ms = late ? LATE_SESSION_MS : sessions_ms[i % 4];
        client_process_start(s, i);
    }
    return 0;
}

void testbed_stop(struct testbed *s)
{
    for (int i = 0; i < CHAOS_PROCESSES; i++)
        client_process_kill(s, i);
    links_stop(s);
    zks_stop(s->zks);
    nets_stop(&s->nets);
    secure_stop(&s->secure);
}

/* --- servers ---------------------------------------------------------------------------------- */

static int nodes_in_trouble(const struct testbed *s)
{
    int n = 0;

    for (int i = 0; i < CHAOS_NODES; i++) {
        n += s->node[i].condition != RUNNING;
        n += s->cut_until_ms[i] != 0;
    }
    return n;
}

static bool only_pauses(const struct testbed *s)
{
    bool only = true;

    for (int i = 0; i < CHAOS_NODES; i++)
        only &= s->node[i].condition <= STOPPED && s->cut_until_ms[i] == 0;
    return only;
}

/* May a server be struck, or cut off, now? Two may stand still at a time: nobody serves then. But while one comes back,
 * with its data or without, the others stay: ZooKeeper 3.8.0 loses committed writes if another one is
 * killed or cut off meanwhile, as the canary shows. */
static bool may_strike(struct testbed *s, enum fault fault)
{
    if (nodes_in_trouble(s) == 0)
        return net_now_ms() >= s->calm_since_ms + CALM_MS;
    return fault == SERVER_PAUSE && nodes_in_trouble(s) == 1 && only_pauses(s) &&
           chance(&s->chance, 30);
}

/* Often the leader, if there is one; never to lose its data. -1: nobody. */
static int draw_node(struct testbed *s, enum fault fault, int leader)
{
    int any = chance_between(&s->chance, 0, CHAOS_NODES - 1);
    bool wipe = fault == SERVER_WIPE;

    if (!may_strike(s, fault) || (wipe && leader < 0))
        return -1;
    if (!wipe && leader >= 0 && chance(&s->chance, 30))
        any = leader;
    if (wipe && any == leader)
        any = (any + 1) % CHAOS_NODES;
    return s->node[any].condition == RUNNING ? any : -1;
}

static void kill_node(struct testbed *s, int node, bool wipe, int64_t until_ms)
{
    struct body *body = &s->node[node];

    if (zks_kill_node(s->zks, (size_t)node) != 0 ||
        (wipe && zks_wipe_node(s->zks, (size_t)node) != 0))
        shared_odd(s->shared, "server %d was not killed", node);
    body->condition = DEAD;
    body->until_ms = until_ms;
}

static void pause_node(struct testbed *s, int node, int64_t until_ms)
{
    if (zks_pause_node(s->zks, (size_t)node) != 0)
        shared_odd(s->shared, "server %d was not stopped", node);
    s->node[node].condition = STOPPED;
    s->node[node].until_ms = until_ms;
}

static void start_node(struct testbed *s, int node)
{
    if (s->tls)
        secure_renew(&s->secure, node);
    if (zks_start_node(s->zks, (size_t)node) != 0)
        shared_odd(s->shared, "server %d was not started", node);
    s->node[node].condition = COMING;
}

static bool serves(const struct testbed *s, int node)
{
    enum flw_mode mode =
        flw_mode(zks_node_host(s->zks, (size_t)node), zks_port(s->zks, (size_t)node), PROBE_MS);

    return mode == FLW_LEADER || mode == FLW_FOLLOWER;
}

static void node_tick(struct testbed *s, int node, int64_t now_ms)
{
    struct body *body = &s->node[node];

    if (body->condition == COMING && serves(s, node)) {
        body->condition = RUNNING;
    } else if (body->condition == COMING && zks_pid(s->zks, (size_t)node) == 0) {
        start_node(s, node); /* somebody else had its port */
    } else if (body->condition == DEAD && now_ms >= body->until_ms) {
        start_node(s, node);
    } else if (body->condition == STOPPED && now_ms >= body->until_ms) {
        zks_resume_node(s->zks, (size_t)node);
        body->condition = COMING;
    }
}

/* --- between servers -------------------------------------------------------------------------- */

static void cut(struct testbed *s, int node, bool apart)
{
    int next = (node + 1) % CHAOS_NODES;

    if (nets_cut(&s->nets, (size_t)node, (size_t)next, apart) != 0)
        shared_odd(s->shared, "servers %d and %d: the cut was not %s", node, next,
                   apart ? "made" : "mended");
    if (apart)
        return;
    s->cut_until_ms[node] = 0;
    for (int i = 0; i < CHAOS_NODES; i++) { /* whoever was out has to come in again */
        if ((i == node || i == next) && s->node[i].condition == RUNNING)
            s->node[i].condition = COMING;
    }
}

/* Two that do not hear each other, or one that is alone. */
static bool cut_fault(struct testbed *s, enum fault fault, int64_t until_ms)
{
    int node = chance_between(&s->chance, 0, CHAOS_NODES - 1);
    int before = (node + CHAOS_NODES - 1) % CHAOS_NODES;
    bool alone = chance(&s->chance, 60);

    if (s->nets.nodes == 0 || !may_strike(s, fault))
        return false;
    s->cut_until_ms[node] = until_ms;
    cut(s, node, true);
    if (alone) {
        s->cut_until_ms[before] = until_ms;
        cut(s, before, true);
    }
    say(s, fault, "%d from %s", node, alone ? "both others" : "the next one");
    return true;
}

/* --- faults ----------------------------------------------------------------------------------- */

static bool server_fault(struct testbed *s, enum fault fault, int64_t until_ms)
{
    int leader = zks_leader(s->zks), node = draw_node(s, fault, leader);

    if (node < 0)
        return false;
    say(s, fault, "%d%s", node, node == leader ? ", the leader" : "");
    if (fault == SERVER_PAUSE)
        pause_node(s, node, until_ms);
    else
        kill_node(s, node, fault == SERVER_WIPE, until_ms);
    return true;
}

static bool holds_something(const struct testbed *s, int client)
{
    bool open = false;

    for (int i = 0; i < CHAOS_THREADS * CHAOS_SLOTS; i++) {
        const struct seat *seat = &s->shared->seat[client * CHAOS_THREADS + i / CHAOS_SLOTS];
        const struct record *hold = &seat->hold[i % CHAOS_SLOTS];
        open |= seat->open[i % CHAOS_SLOTS] && hold->access == ALONE && hold->left_ns == 0;
    }
    return open;
}

/* Mostly one that has a lock just now. */
static int draw_client(struct testbed *s, int first)
{
    int client = chance_between(&s->chance, first, CHAOS_PROCESSES - 1);
    bool any = s->shared->broken == BREAK_NOTHING && chance(&s->chance, 30);

    for (int i = 0; !any && i < CHAOS_PROCESSES; i++) {
        int at = first + (client - first + i) % (CHAOS_PROCESSES - first);
        if (s->client[at].condition == RUNNING && holds_something(s, at))
            return at;
    }
    return client;
}

static bool client_fault(struct testbed *s, enum fault fault, int64_t until_ms)
{
    int client = draw_client(s, fault == CLIENT_KILL ? CHAOS_LASTING : 0);
    struct body *body = &s->client[client];
    int session_ms = s->shared->process[client].session_ms;

    if (body->condition != RUNNING)
        return false;
    if (fault == CLIENT_KILL) {
        body->until_ms = until_ms;
        client_process_kill(s, client);
    } else { /* past its session, or not */
        bool past = s->shared->broken != BREAK_NOTHING || chance(&s->chance, 75);
        body->until_ms = past ? until(s, session_ms + session_ms / 4, 5 * session_ms / 2)
                              : until(s, session_ms / 4, session_ms);
        client_process_pause(s, client);
    }
    say(s, fault, "%d for %lld ms", client, (long long)(body->until_ms - net_now_ms()));
    return true;
}

/* A second or a year, to and fro. */
static bool step_clock(struct testbed *s, enum fault fault, int64_t until_ms)
{
    static const long long seconds[] = {0, 1, -1, 60, -3600, 86400, -31536000};
    int client = chance_between(&s->chance, 0, CHAOS_PROCESSES - 1);
    long long by = seconds[chance_between(&s->chance, 0, 6)];

    (void)until_ms;
    s->shared->process[client].clock_ns = by * 1000000000;
    say(s, fault, "%d: %lld s", client, by);
    return true;
}

static bool link_fault(struct testbed *s, enum fault fault, int64_t until_ms)
{
    int client = chance_between(&s->chance, 0, CHAOS_PROCESSES - 1);

    say(s, fault, "of client %d", client);
    links_fault(s, fault, client, until_ms);
    return true;
}

static enum fault draw_fault(struct testbed *s)
{
    int all = 0, fault = 0;

    if (s->shared->broken != BREAK_NOTHING) /* what shows it best */
        return CLIENT_PAUSE;
    for (int i = 0; i < FAULTS; i++)
        all += faults[i].often;
    for (int drawn = chance_between(&s->chance, 1, all); drawn > faults[fault].often; fault++)
        drawn -= faults[fault].often;
    return (enum fault)fault;
}

/* What would be too much just now is left out. */
void testbed_fault(struct testbed *s)
{
    bool struck = false;

    for (int i = 0; i < DRAWS_MAX && !struck; i++) {
        enum fault fault = draw_fault(s);
        struck =
            faults[fault].strike(s, fault, until(s, faults[fault].least_ms, faults[fault].most_ms));
    }
}

/* --- the end of faults ------------------------------------------------------------------------ */

static void end_due(struct testbed *s, int64_t now_ms)
{
    for (int i = 0; i < CHAOS_NODES; i++) {
        if (s->cut_until_ms[i] != 0 && now_ms >= s->cut_until_ms[i])
            cut(s, i, false);
        node_tick(s, i, now_ms);
    }
    if (nodes_in_trouble(s) > 0)
        s->calm_since_ms = net_now_ms();
    for (int i = 0; i < CHAOS_PROCESSES; i++) {
        struct body *body = &s->client[i];
        if (body->condition == DEAD && now_ms >= body->until_ms)
            client_process_start(s, i);
        else if (body->condition == STOPPED && now_ms >= body->until_ms)
            client_process_resume(s, i);
        for (int k = 0; k < CHAOS_NODES; k++) {
            if (s->link_until_ms[i][k] != 0 && now_ms >= s->link_until_ms[i][k])
                links_heal(s, i, k);
        }
    }
}

void testbed_tick(struct testbed *s)
{
    client_processes_tick(s);
    end_due(s, net_now_ms());
}

int testbed_heal(struct testbed *s)
{
    int64_t end_ms = net_now_ms() + ZKS_READY_MS;

    end_due(s, INT64_MAX);
    while (nodes_in_trouble(s) > 0 && net_now_ms() < end_ms) {
        net_nap_ms(20);
        end_due(s, INT64_MAX);
    }
    return zks_wait_ready(s->zks, ZKS_READY_MS);
}

int testbed_wipe_all(struct testbed *s)
{
    int64_t longest_ms = 0;

    for (int i = 0; i < CHAOS_NODES; i++)
        kill_node(s, i, false, 0);
    for (int i = 0; i < CHAOS_PROCESSES; i++) {
        if (s->shared->process[i].session_ms > longest_ms)
            longest_ms = s->shared->process[i].session_ms;
    }
    for (int64_t end_ms = net_now_ms() + longest_ms; net_now_ms() < end_ms;
         client_processes_tick(s))
        net_nap_ms(20);
    s->shared->era++;
    int64_t from_ns = zkl_now_ns();
    for (int i = 0; i < PLACES; i++)
        s->shared->newest[i] = 0;
    for (int i = 0; i < CHAOS_NODES; i++) {
        if (zks_wipe_node(s->zks, (size_t)i) != 0)
            return -1;
    }
    calls_write_wipe(from_ns, zkl_now_ns());
    return testbed_heal(s);
}
