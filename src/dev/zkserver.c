/* SPDX-License-Identifier: Apache-2.0
 *
 * A private ZooKeeper for one test or one demonstration: this file starts it, waits until it is
 * ready, pauses, kills and wipes it, and removes it with its folder at the end. The keeper owns the
 * processes; this file owns their plan. Any thread may make calls, but only one at a time may
 * start, stop or pause nodes of one ensemble. The tests and zklock-dev call it. */
#include "zkserver.h"

#include "tool/fourlw.h"
#include "keeper.h"
#include "tool/net.h"
#include "zkconfig.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define START_TRIES 3
#define STOP_MS 5000
#define KILL_MS 60000
#define RESPAWNS_MAX 10 /* in one wait: another process has a node's port for a while */
#define PROBE_MS 500
#define NAP_MS 10

enum wanted_state { WANTED_OFF, WANTED_RUNNING, WANTED_PAUSED };

struct zks {
    struct keeper *keeper;
    struct zkc_plan plan;
    enum wanted_state wanted[ZKS_NODES_MAX];
    pid_t owner;
};

static int fail(char *err, size_t size, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static int fail(char *err, size_t size, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    if (size > 0)
        vsnprintf(err, size, format, args);
    va_end(args);
    return ZKS_FAILED;
}

/* --- one node --------------------------------------------------------------------------------- */

static int usable(const struct zks *zks, size_t node)
{
    return zks != NULL && node < zks->plan.options.nodes && getpid() == zks->owner;
}

static int wait_gone(struct zks *zks, size_t node, int timeout_ms)
{
    int64_t deadline_ms = net_now_ms() + timeout_ms;
    struct keeper_state state;

    for (;;) {
        if (keeper_look(zks->keeper, node, &state) != 0)
            return -1;
        if (!state.running)
            return 0;
        if (net_now_ms() >= deadline_ms)
            return -1;
        net_nap_ms(NAP_MS);
    }
}

int zks_kill_node(struct zks *zks, size_t node)
{
    if (!usable(zks, node))
        return -1;
    zks->wanted[node] = WANTED_OFF;
    if (zks_pid(zks, node) == 0)
        return 0;
    keeper_signal(zks->keeper, node, SIGKILL); /* fails if the server ended before: no harm */
    return wait_gone(zks, node, KILL_MS);
}

int zks_stop_node(struct zks *zks, size_t node)
{
    if (!usable(zks, node))
        return -1;
    zks->wanted[node] = WANTED_OFF;
    if (zks_pid(zks, node) == 0)
        return 0;
    keeper_signal(zks->keeper, node, SIGTERM);
    keeper_signal(zks->keeper, node, SIGCONT); /* a paused one acts on the SIGTERM now */
    if (wait_gone(zks, node, STOP_MS) == 0)
        return 0;
    return zks_kill_node(zks, node);
}

int zks_pause_node(struct zks *zks, size_t node)
{
    if (!usable(zks, node) || keeper_signal(zks->keeper, node, SIGSTOP) != 0)
        return -1;
    zks->wanted[node] = WANTED_PAUSED;
    return 0;
}

int zks_resume_node(struct zks *zks, size_t node)
{
    if (!usable(zks, node) || keeper_signal(zks->keeper, node, SIGCONT) != 0)
        return -1;
    zks->wanted[node] = WANTED_RUNNING;
    return 0;
}

int zks_start_node(struct zks *zks, size_t node)
{
    if (!usable(zks, node))
        return -1;
    if (zks_pid(zks, node) != 0)
        return 0;
    if (keeper_spawn(zks->keeper, node) != 0)
        return -1;
    zks->wanted[node] = WANTED_RUNNING;
    return 0;
}

int zks_restart_node(struct zks *zks, size_t node)
{
    if (zks_stop_node(zks, node) != 0 || zks_start_node(zks, node) != 0)
        return -1;
    return zks_wait_ready(zks, ZKS_READY_MS);
}

int zks_wipe_node(struct zks *zks, size_t node)
{
    if (!usable(zks, node) || zks_pid(zks, node) != 0)
        return -1;
    return zkc_wipe_data(&zks->plan, node);
}

pid_t zks_pid(struct zks *zks, size_t node)
{
    struct keeper_state state;

    if (!usable(zks, node) || keeper_look(zks->keeper, node, &state) != 0 || !state.running)
        return 0;
    return state.pid;
}

/* --- all nodes -------------------------------------------------------------------------------- */

static enum flw_mode mode_of(const struct zks *zks, size_t node)
{
    return flw_mode(zks->plan.host[node], zks->plan.client_port[node], PROBE_MS);
}

int zks_leader(struct zks *zks)
{
    for (size_t i = 0; usable(zks, i); i++) {
        enum flw_mode mode = FLW_NO_ANSWER;
        if (zks->wanted[i] == WANTED_RUNNING)
            mode = mode_of(zks, i);
        if (mode == FLW_LEADER || mode == FLW_STANDALONE)
            return (int)i;
    }
    return -1;
}

int zks_wait_leader(struct zks *zks, int timeout_ms)
{
    int64_t deadline_ms = net_now_ms() + timeout_ms;

    for (;;) {
        int leader = zks_leader(zks);
        if (leader >= 0 || net_now_ms() >= deadline_ms)
            return leader;
        net_nap_ms(NAP_MS);
    }
}

bool zks_serves(struct zks *zks, size_t node)
{
    enum flw_mode mode = usable(zks, node) ? mode_of(zks, node) : FLW_NO_ANSWER;

    return mode != FLW_NO_ANSWER && mode != FLW_NO_QUORUM;
}

/* How many of the nodes that should serve do not yet; a leader that is missing counts as one. */
static size_t not_ready(struct zks *zks)
{
    size_t missing = 0;
    size_t serving = 0;
    size_t leaders = 0;

    for (size_t i = 0; i < zks->plan.options.nodes; i++) {
        if (zks->wanted[i] != WANTED_RUNNING)
            continue;
        switch (mode_of(zks, i)) {
        case FLW_LEADER:
        case FLW_STANDALONE:
            leaders++;
            serving++;
            break;
        case FLW_FOLLOWER:
        case FLW_OBSERVER:
            serving++;
            break;
        case FLW_NO_ANSWER:
        case FLW_NO_QUORUM:
            missing++;
            break;
        }
    }
    return serving > 0 && leaders != 1 ? missing + 1 : missing;
}

/* Start again what should run and does not. -1: a node fell over too often. */
static int revive(struct zks *zks, int *respawns)
{
    for (size_t i = 0; i < zks->plan.options.nodes; i++) {
        if (zks->wanted[i] != WANTED_RUNNING || zks_pid(zks, i) != 0)
            continue;
        if ((*respawns)-- <= 0 || zks_start_node(zks, i) != 0)
            return -1;
    }
    return 0;
}

static int wait_ready(struct zks *zks, int timeout_ms, int respawns)
{
    int64_t deadline_ms = net_now_ms() + timeout_ms;

    for (;;) {
        if (revive(zks, &respawns) != 0)
            return -1;
        if (not_ready(zks) == 0)
            return 0;
        if (net_now_ms() >= deadline_ms)
            return -1;
        net_nap_ms(NAP_MS);
    }
}

/* A line for each node that does not serve: what its log says last. */
static void print_reasons(struct zks *zks)
{
    char tail[300];

    for (size_t i = 0; i < zks->plan.options.nodes; i++) {
        if (zks->wanted[i] != WANTED_RUNNING || zks_serves(zks, i))
            continue;
        zkc_log_tail(&zks->plan, i, tail, sizeof tail);
        for (char *c = tail; *c != '\0'; c++)
            *c = *c == '\n' ? ' ' : *c;
        fprintf(stderr, "ZooKeeper node %zu does not serve; its log ends: %s\n", i, tail);
    }
}

int zks_wait_ready(struct zks *zks, int timeout_ms)
{
    if (!usable(zks, 0))
        return -1;
    if (wait_ready(zks, timeout_ms, RESPAWNS_MAX) == 0)
        return 0;
    print_reasons(zks);
    return -1;
}

/* --- start and stop --------------------------------------------------------------------------- */

static int keeper_of_plan(struct zks *zks)
{
    struct keeper_plan kp;

    memset(&kp, 0, sizeof kp);
    kp.nodes = zks->plan.options.nodes;
    kp.dir = zks->plan.dir;
    kp.keep_dir = getenv("ZKS_KEEP") != NULL;
    for (size_t i = 0; i < kp.nodes; i++) {
        kp.argv[i] = zks->plan.argv[i];
        kp.log[i] = zks->plan.log[i];
    }
    return keeper_start(&zks->keeper, &kp);
}

/* One try on one set of ports. */
static int try_ports(struct zks *zks)
{
    if (zkc_choose_ports(&zks->plan) != 0 || zkc_write_files(&zks->plan) != 0)
        return -1;
    for (size_t i = 0; i < zks->plan.options.nodes; i++) {
        if (zks_start_node(zks, i) != 0)
            return -1;
    }
    return wait_ready(zks, ZKS_READY_MS, 0);
}

/* Several tries: a port that was free when it was chosen may be taken when the server wants it. */
static int start_servers(struct zks *zks, char *err, size_t size)
{
    char tail[300];

    for (int i = 0; i < START_TRIES; i++) {
        if (try_ports(zks) == 0)
            return 0;
        if (zks->plan.taken_port != 0)
            return fail(err, size,
                        "port %d cannot be had: another program listens there, or it is reserved",
                        zks->plan.taken_port);
        for (size_t node = 0; node < zks->plan.options.nodes; node++) {
            zks_kill_node(zks, node);
            zks_wipe_node(zks, node);
        }
    }
    zkc_log_tail(&zks->plan, 0, tail, sizeof tail);
    return fail(err, size, "the ZooKeeper server does not start; its log ends: %s", tail);
}

static void give_up(struct zks *zks)
{
    if (zks->keeper != NULL)
        keeper_end(zks->keeper);
    zkc_free(&zks->plan);
    free(zks);
}

int zks_start(struct zks **zks, const struct zks_options *options, char *err, size_t size)
{
    struct zks *z = calloc(1, sizeof *z);
    int rc;

    if (z == NULL)
        return fail(err, size, "out of memory");
    z->owner = getpid();
    rc = zkc_make(&z->plan, options, err, size);
    if (rc == 0 && keeper_of_plan(z) != 0)
        rc = fail(err, size, "cannot create %s: %s", z->plan.dir, strerror(errno));
    if (rc == 0)
        rc = start_servers(z, err, size);
    if (rc != 0) {
        give_up(z);
        return rc;
    }
    *zks = z;
    return 0;
}

void zks_stop(struct zks *zks)
{
    if (zks == NULL || getpid() != zks->owner)
        return;
    /* The keeper removes the folder. If it was killed, the kernel has killed the servers. */
    if (keeper_end(zks->keeper) != 0 && getenv("ZKS_KEEP") == NULL)
        keeper_remove_tree(zks->plan.dir);
    if (getenv("ZKS_KEEP") != NULL)
        fprintf(stderr, "the ZooKeeper servers' files are in %s\n", zks->plan.dir);
    zkc_free(&zks->plan);
    free(zks);
}

int zks_available(char *err, size_t size)
{
    return zkc_find_java(NULL, err, size) == 0 ? zkc_find_jars(NULL, err, size) : ZKS_MISSING;
}

/* --- what a user may know --------------------------------------------------------------------- */

const char *zks_node_host(const struct zks *zks, size_t node)
{
    return zks->plan.host[node];
}

const char *zks_connect_string(const struct zks *zks)
{
    return zks->plan.connect;
}

size_t zks_nodes(const struct zks *zks)
{
    return zks->plan.options.nodes;
}

int zks_port(const struct zks *zks, size_t node)
{
    return zks->plan.client_port[node];
}

const char *zks_address(const struct zks *zks, size_t node)
{
    return zks->plan.address[node];
}

const char *zks_dir(const struct zks *zks)
{
    return zks->plan.dir;
}

const char *zks_data_dir(const struct zks *zks, size_t node)
{
    return zks->plan.data[node];
}

const char *zks_log_path(const struct zks *zks, size_t node)
{
    return zks->plan.log[node];
}

void zks_print_logs(const struct zks *zks, FILE *to)
{
    char tail[4000];

    for (size_t i = 0; i < zks->plan.options.nodes; i++) {
        zkc_log_tail(&zks->plan, i, tail, sizeof tail);
        fprintf(to, "--- ZooKeeper node %zu, end of its log:\n%s\n", i, tail);
    }
}
