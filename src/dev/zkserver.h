/* SPDX-License-Identifier: Apache-2.0 */
/* A private ZooKeeper for one test or one demonstration: one real server or an ensemble, on free
 * loopback ports, with its files in a new folder below TMPDIR.
 *
 *     struct zks_options options = {.nodes = 3};
 *     struct zks *zks;
 *     char err[512];
 *
 *     if (zks_start(&zks, &options, err, sizeof err) != 0)
 *         ...
 *     use(zks_connect_string(zks));
 *     zks_stop(zks);
 *
 * zks_stop ends the servers and removes the folder. The same happens, within moments, if the
 * process that called zks_start ends in any other way, SIGKILL included. Children that it has
 * forked do not matter for this: they need do nothing, and every call made in one of them fails
 * without effect.
 *
 * Any thread may make all calls, but only one thread at a time may make those that start, stop or
 * pause nodes of one zks. Every wait has a bound. ZKS_KEEP=1 in the environment keeps the folder
 * for a look at the logs; ZKS_CLASSPATH replaces Debian's jars by another server's. */
#ifndef ZKLOCK_SERVERS_ZKSERVER_H
#define ZKLOCK_SERVERS_ZKSERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/types.h>

#define ZKS_NODES_MAX 6
#define ZKS_READY_MS 240000 /* how long a start may take on a busy machine */

struct zks;

/* Zero it, then set what should differ: the comments say what 0 and NULL mean. */
struct zks_options {
    size_t nodes;           /* 1 */
    int tick_ms;            /* 100; expiry comes in steps of this */
    int min_session_ms;     /* 200 */
    int max_session_ms;     /* 60000 */
    int sync_limit_ms;      /* 10 ticks, at least 5000: for how long a follower may lag behind */
    int container_check_ms; /* 60000: how often empty containers and TTLs are looked for */
    bool fsync;             /* wait for the disk at each write, as a real ensemble does */
    /* Nothing behind a snapshot's seal, for snap_set_counter: at all starts of a node. */
    bool no_digest;
    bool extended_types; /* TTL nodes */
    /* The first node's client port; the others have the next ones. 0: free ones. */
    int port;
    bool reconfig;         /* of several nodes: their list can be changed, and has client ports */
    const char *jvm_extra; /* more options for java, separated by blanks */
    const char *cfg_extra; /* more lines for zoo.cfg */
    /* Of each node: its listen address (127.0.0.1), and its network namespace, as a file in /proc
     * (the caller's). See nets.h. */
    const char *hosts[ZKS_NODES_MAX], *nets[ZKS_NODES_MAX];
    /* More lines for the zoo.cfg of each node: of lines with one key the last counts. */
    const char *node_extra[ZKS_NODES_MAX];
    bool observer[ZKS_NODES_MAX]; /* does not vote */
    /* The port at which one node must look for another's quorum port: a proxy's. May be called anew
     * with other ports while zks_start still tries. 0: there is none, and zks_start fails. */
    int (*route)(void *arg, size_t from, size_t to, int port);
    void *route_arg;
};

enum zks_result {
    ZKS_OK = 0,
    ZKS_FAILED = -1,
    ZKS_MISSING = -2 /* java or the jars are not installed: a test may skip itself (exit code 77) */
};

/* 0 if java and the jars are there. Otherwise ZKS_MISSING, and err says which package to
 * install. */
int zks_available(char *err, size_t size);

/* Start the servers and wait until they serve. On failure nothing is left and err says why, with
 * the end of the log. options NULL: all defaults. */
int zks_start(struct zks **zks, const struct zks_options *options, char *err, size_t size);
/* End them all, remove the folder, free. NULL is ignored. */
void zks_stop(struct zks *zks);

/* "127.0.0.1:PORT[,127.0.0.1:PORT...]". */
const char *zks_connect_string(const struct zks *zks);
size_t zks_nodes(const struct zks *zks);
static inline const char *zks_host(void)
{
    return "127.0.0.1";
}
/* The address that this node listens at. */
const char *zks_node_host(const struct zks *zks, size_t node);
int zks_port(const struct zks *zks, size_t node);
/* "127.0.0.1:PORT" of one node. */
const char *zks_address(const struct zks *zks, size_t node);
const char *zks_dir(const struct zks *zks);
const char *zks_data_dir(const struct zks *zks, size_t node);
const char *zks_log_path(const struct zks *zks, size_t node);
/* The server's process, or 0 if it does not run. */
pid_t zks_pid(struct zks *zks, size_t node);
/* The last lines of every node's log, for the output of a test that failed. */
void zks_print_logs(const struct zks *zks, FILE *to);

/* One node, 0 to nodes - 1. All return 0 or -1. Asking for the present state is no error. stop is
 * SIGTERM, and after 5 s SIGKILL; kill is SIGKILL; both return when the process has ended. pause is
 * SIGSTOP and returns when the process has stopped. */
int zks_stop_node(struct zks *zks, size_t node);
int zks_kill_node(struct zks *zks, size_t node);
int zks_pause_node(struct zks *zks, size_t node);
int zks_resume_node(struct zks *zks, size_t node);
/* Start a node that does not run, on its old port with its old data. Does not wait until it serves:
 * a node of an ensemble cannot serve without a quorum. */
int zks_start_node(struct zks *zks, size_t node);
/* Stop, start, and wait until all nodes that should run serve. */
int zks_restart_node(struct zks *zks, size_t node);
/* Forget all data of a node that does not run. */
int zks_wipe_node(struct zks *zks, size_t node);

/* Does the node serve clients now? */
bool zks_serves(struct zks *zks, size_t node);
/* Wait until every node that is neither stopped nor paused serves clients, and an ensemble has its
 * leader. A node that could not start because another process had its port is started again. */
int zks_wait_ready(struct zks *zks, int timeout_ms);
/* The node that leads (a single server leads itself), or -1 if there is none now. */
int zks_leader(struct zks *zks);
/* Wait for a leader. The node, or -1 after the timeout. */
int zks_wait_leader(struct zks *zks, int timeout_ms);

#endif
