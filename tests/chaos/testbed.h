/* SPDX-License-Identifier: Apache-2.0 */
/* What the faults strike: three servers, the clients, a proxy on each link between them, and the
 * clients' wall clocks. Every choice comes from one seed. Every fault ends by itself when its time
 * is over. */
#ifndef ZKCHAOS_TESTBED_H
#define ZKCHAOS_TESTBED_H

#include <sys/types.h>

#include "secure.h"
#include "shared.h"
#include "nets.h"
#include "proxy.h"
#include "zkserver.h"

enum fault {
    SERVER_KILL,
    SERVER_PAUSE,
    SERVER_WIPE, /* killed, and its data deleted */
    CLIENT_KILL,
    CLIENT_PAUSE,
    LINK_CUT,
    LINK_HOLE, /* either way, or both */
    LINK_DELAY,
    LINK_LOSE_ANSWER,
    LINK_LOSE_REQUEST,
    LINK_HALF_OPEN,
    LINK_TRICKLE,
    NODE_CUT, /* between two servers, or one and both others */
    CLOCK_STEP,
    FAULTS
};

/* COMING: started, and not serving yet. */
enum condition { RUNNING, STOPPED, DEAD, COMING };

struct body {
    enum condition condition;
    int64_t until_ms; /* of STOPPED and DEAD */
    pid_t pid;        /* of a client */
    int made;         /* its handles; one more: its workers play */
};

struct testbed {
    struct shared *shared;
    int fd;
    uint64_t chance;
    struct zks *zks;
    struct secure secure;
    struct body node[CHAOS_NODES];
    struct body client[CHAOS_PROCESSES];
    struct proxy *link[CHAOS_PROCESSES][CHAOS_NODES];
    int64_t link_until_ms[CHAOS_PROCESSES][CHAOS_NODES]; /* 0: nothing is wrong with it */
    struct nets nets;                  /* no nodes: this machine does not allow it */
    int64_t cut_until_ms[CHAOS_NODES]; /* of a node and the next one; 0: they are not cut apart */
    int64_t calm_since_ms;             /* of the servers */
    long count[FAULTS];
    bool trace; /* print each fault */
    bool tls;   /* between clients and servers */
};

/* Servers, proxies and clients. 0, or -1: err says why. 77: what TLS needs is not installed. */
int testbed_start(struct testbed *s, char *err, size_t size);
void testbed_stop(struct testbed *s);

const char *fault_name(int fault);
/* One fault, by chance. */
void testbed_fault(struct testbed *s);
/* End each fault that is due, and find each client that has ended without a request. */
void testbed_tick(struct testbed *s);
/* End all. -1: the servers do not come back. */
int testbed_heal(struct testbed *s);
/* All servers lose their data, when all windows are over. -1: they do not come back. */
int testbed_wipe_all(struct testbed *s);

/* --- clients (client_process.c) -------------------------------------------------------------------------- */

void client_process_start(struct testbed *s, int client);
void client_process_kill(struct testbed *s, int client);
int client_process_threads(int client);
void client_process_pause(struct testbed *s, int client);
void client_process_resume(struct testbed *s, int client);
/* Often: each goes on with what it has to make at first; one that has ended by itself is reported. */
void client_processes_tick(struct testbed *s);
/* All come to an end, and end well: else false. */
bool client_processes_close(struct testbed *s);

/* --- links (links.c) ---------------------------------------------------------------------------- */

int links_start(struct testbed *s);
void links_stop(struct testbed *s);
void links_fault(struct testbed *s, enum fault fault, int client, int64_t until_ms);
void links_heal(struct testbed *s, int client, int node);

#endif
