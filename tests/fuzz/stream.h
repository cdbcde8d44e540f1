/* SPDX-License-Identifier: Apache-2.0
 * Fuzz target core: one core, its owners, and a server that may answer anything. What the three
 * files of it share: server.c has the requests and their answers, owners.c the owners and their
 * notifications, core.c the events. */
#ifndef ZKL_FUZZ_STREAM_H
#define ZKL_FUZZ_STREAM_H

#include <zklock/zklock.h>

#include "core/bundle.h"
#include "core/query.h"
#include "fuzz.h"

#define MS INT64_C(1000000)
#define TIMEOUT_MS 1000
#define SINGLES 5
#define MEMBERS 3 /* of the group, and of a request for permits */
#define ASKS 2
#define OWNERS (SINGLES + MEMBERS + ASKS * MEMBERS)
#define QUERIES 3

/* --- server.c ----------------------------------------------------------- */

#define PATH_ROOM 192
#define CHECKS_KEPT MEMBERS
#define REQUESTS 256
#define NODES 48
#define WATCHES 16

struct request {
    uint64_t id;
    enum zkl_request_kind kind;
    struct zkl_stamp stamp;
    bool lost;
    char path[PATH_ROOM];
    size_t check_count;
    char checks[CHECKS_KEPT][PATH_ROOM];
    uint64_t vouched; /* DELETE: by this watch of the path above */
};

struct node {
    char path[PATH_ROOM];
    int64_t czxid, session;
};

struct server {
    struct request requests[REQUESTS]; /* the oldest first */
    size_t request_count;
    struct node nodes[NODES];
    size_t node_count;
    int64_t zxid;
    int32_t counter;
    uint64_t watches[WATCHES], watch_count; /* the last that were armed, or asked for */
    uint64_t answered;                      /* some request that was */
    enum zkl_answer refuse;                 /* OK: requests are taken */
};

struct stream;

enum zkl_answer server_send(struct stream *s, const struct zkl_request *request);
/* The next of the awaited answers; honest: a true one. */
void server_answer(struct stream *s, bool honest);
/* The link broke: no other answer comes to what is out. The core hears of it immediately, or
 * before the next link. What is sent without a link waits for the next one. */
void server_lose(struct stream *s);
void server_tell_lost(struct stream *s);
/* The session is over: nobody answers. */
void server_forget(struct stream *s);
/* A contender of somebody else's, or a node that is removed. */
void server_interfere(struct stream *s);
void server_fire(struct stream *s);

/* --- owners.c ----------------------------------------------------------- */

enum phase { IDLE, WAITING, GRANTED, UNLOCKING, ANSWERED };

struct owner {
    struct zkl_contender contender; /* first */
    enum phase phase;
    bool lost, suspect, revoked, stopped, abandoned;
    enum zkl_contender_state before; /* of the event that happens now */
    bool was_gone;                   /* likewise: its predecessor's deletion, known to it */
    bool told;                       /* while it waits: of the deletion of some node */
    bool alone;                      /* it may be granted by its node's number */
    char first[PATH_ROOM];           /* its node that was first in the queue */
};

/* What is known of a path at which a number may grant. */
struct alone {
    /* The watch on it that was armed last, and the link's number then; 0: none. */
    uint64_t watch, link;
    /* That watch, when the last contender that was first left, if it stood since before; 0:
     * none. */
    uint64_t vouched;
    int32_t left; /* that one's number */
};

#define PATHS 3
#define ALONE 2 /* of them */

/* A request for permits. */
struct ask {
    struct zkl_bundle bundle; /* first */
    struct zkl_contender gate;
    struct owner *owners; /* MEMBERS of them */
    struct zkl_bundle_member members[1 + MEMBERS];
    enum phase phase; /* of the whole; ANSWERED until the core is done with it */
    bool stopped;
};

struct question {
    struct zkl_query query; /* first */
    bool out;
};

void owners_notification(struct stream *s, struct zkl_contender *contender,
                         const struct zkl_notification *news);
void owners_note_states(struct stream *s);
/* A request of that kind goes out: what vouches for it. */
uint64_t owners_vouch(const struct stream *s, const struct zkl_request *request);
/* It is about to be answered so. */
void owners_answered(struct stream *s, const struct request *request, enum zkl_answer answer,
                     const struct zkl_reply *reply);
/* A watch is about to fire. */
void owners_fired(struct stream *s, uint64_t watch);
/* An owner that got the lock by this event saw this in this list, if not before, or the lock was
 * passed on, or its number granted it. */
void owners_check(struct stream *s);
void owners_act(struct stream *s); /* one of them does something */
void owners_init(struct stream *s);
void owners_go(struct stream *s); /* all of them give up, or give back */
bool owners_are_gone(const struct stream *s);

/* --- core.c ------------------------------------------------------------- */

struct stream {
    struct zkl_core core;
    struct zkl_port port;
    struct fuzz_bytes in;
    struct zkl_time now;
    int64_t session;
    bool closed, failed, verbose;
    bool left_watches; /* the server did not know how to remove them, once */
    struct server server;
    struct owner owners[OWNERS]; /* singles, the group's, the requests' for permits */
    struct zkl_bundle group;
    struct zkl_bundle_member members[MEMBERS];
    struct ask asks[ASKS];
    struct zkl_semaphore_view view;
    struct question questions[QUERIES];
    unsigned guids;
    /* The list that the core is being given, if it is given one. */
    const char *listed_root;
    const struct zkl_reply *listed;
    struct alone alone[ALONE];
    struct zkl_path paths[PATHS], gate, leases;
    /* By this event the core learns that this path's node has the number after that of the
     * contender that left. */
    const char *numbered;
    bool passed_on;    /* the core learns by this event that some node was deleted */
    const char *armed; /* the core learns by this event that this node is there, with a watch */
};

/* In a replay that somebody reads. */
void say(const struct stream *s, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
