/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of this folder share: three servers whose links pass a relay, holders in processes of
 * their own, and the others that wait for the same locks. Whatever goes wrong here ends the program. */
#ifndef ZKWINDOW_TESTBED_H
#define ZKWINDOW_TESTBED_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <zklock/zklock.h>

#include "relay.h"
#include "seat.h"
#include "zkserver.h"

#define TRIES 5 /* times the runs that are wanted: on a busy machine few come near */
#define NODES 3
#define WAIT_MS 60000
#define MS INT64_C(1000000)

struct testbed {
    struct zks *zks;
    struct relay *relay;
    struct shared *shared;
    int shared_fd, tick_ms;
};

_Noreturn void give_up(const char *what);
/* The servers do not do what they should in time, on this machine: the test is skipped. */
_Noreturn void give_way(const char *what);

/* options NULL: defaults; nodes, tick and route are set here. 0, or 77: no servers are installed. */
int testbed_start(struct testbed *testbed, int tick_ms, const struct zks_options *options);
void testbed_end(struct testbed *testbed);
/* A seed that nobody had. */
uint64_t testbed_seed(void);

/* main begins with this. It runs the seat and does not return if seat_start has started the
 * program. */
void seat_if_asked(int argc, char **argv);
/* Start the process of a seat that is filled in, and kill it. */
void seat_start(struct testbed *testbed, int i);
void seat_end(struct seat *seat);

/* A client that waits for a lock, and gives it back. granted_ns: when it had it; 0: never, until ended_ns, which is 0 while
 * it waits. */
struct rival {
    struct zkl_client *client;
    const char *path;
    atomic_llong granted_ns, ended_ns;
    pthread_t thread;
};
struct zkl_client *rival_client(const struct testbed *testbed, size_t node);
void rival_begin(struct rival *rival, struct zkl_client *client, const char *path);
void rival_end(struct rival *rival);

/* When the leader closes a session that it heard of at that moment: at the first whole tick of its clock
 * behind the session's end. */
int64_t expiry_ns(const struct testbed *testbed, int64_t touched_ns, int session_ms);
/* The latest end that a window has by the rule of core/proof.h, of a seat that saw its last
 * proof at a moment, and of whose session the leader heard last at told_ns. The leader has heard
 * of what is half a tick and twice T/16 older than the proof. A client that does not know the
 * tick counts on two in T. A link that is younger than that proves more: the leader has heard of its beginning. */
int64_t rule_end_ns(const struct testbed *testbed, const struct seat *seat, int64_t told_ns);

#endif
