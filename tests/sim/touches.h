/* SPDX-License-Identifier: Apache-2.0
 * When the leader has heard of a session, as ZooKeeper has it: it alone expires sessions, and a client's
 * requests reach it only as the server that it is linked to hands its table of touches on. */
#ifndef ZKL_SIM_TOUCHES_H
#define ZKL_SIM_TOUCHES_H

#include <stdbool.h>
#include <stdint.h>

struct fake;
struct fake_handle;
struct fake_session;

/* What the window rests on; each can be turned off, and then some schedule must go wrong. */
enum fake_belief {
    FAKE_ROUNDS_IN_TIME,  /* Leader.lead, Learner.ping: no round is later than P + D */
    FAKE_TOUCHES_KEPT,    /* LearnerSessionTracker.touchSession: none gets lost on the way */
    FAKE_ANSWERS_TOUCH,   /* ZooKeeperServer.submitRequestNow: what is answered was noted */
    FAKE_BATCHES_IN_TIME, /* SessionTrackerImpl.run: a bucket is worked off within D */
    FAKE_TIMEOUTS_STAY,   /* ZooKeeperServer.reopenSession: no server grants less, under a window */
    FAKE_WRITES_CHECKED,  /* PrepRequestProcessor.checkSession */
    FAKE_ONE_ROUND,       /* ObserverMaster: no second round of that length on the way */
    FAKE_CLOCKS_AGREE,    /* within R */
    FAKE_BOOTTIME_GOES_ON, /* in a machine that sleeps */
    FAKE_ELECTIONS_RENEW,  /* SessionTrackerImpl's constructor: the whole stored timeout */
    FAKE_LINKS_TOUCH,      /* LearnerHandler, REVALIDATE */
    FAKE_ORDER_KEPT,       /* from a server to the leader: an answer to a ping, then a request */
    FAKE_LEADER_TOUCHES,   /* of its own clients, with each request */
    FAKE_QUORUM_WRITES,    /* a server without the others writes nothing */
    FAKE_ROUNDED_UP,       /* ExpiryQueue.roundToNextInterval */
    FAKE_BELIEFS
};

extern const char *const fake_belief_names[FAKE_BELIEFS];

/* What the servers are like: the same for the whole schedule. */
struct fake_rules {
    int tick_ms;      /* of the expiries */
    int declared_ms;  /* what a client may be told of the tick */
    int round_ms;     /* how often a server is asked for its table */
    int late_ms;      /* a round, a packet, a batch */
    int64_t phase_ms; /* of the rounds against the expiries */
    int capped_ms;    /* some servers grant no more; 0: there is none */
    int raised_ms;    /* and some no less */
    bool relayed;     /* an observer's table goes through another server's */
    bool eager;       /* servers answer errors of their own */
    bool local_sessions;
    unsigned broken; /* beliefs, as bits */
};

/* One table of touches on its way: 0 where it does not name the session, else the timeout. */
struct fake_hop {
    int table, taken, sent;
    int64_t nominal_ms; /* when the leader asks next if nothing is late, */
    int64_t late_ms;    /* and how late the answer will be */
    int64_t take_ms, write_ms, arrive_ms;
};

/* The server that a handle is linked to. */
struct fake_learner {
    bool leads; /* it is the leader */
    int hop_count;
    struct fake_hop hops[2]; /* its own, and that of the server between it and the leader */
    int revalidation;        /* on its way: the timeout; 0: none */
    int64_t revalidate_ms;
    int64_t ping_ms; /* the client's next */
    int64_t due_ms;  /* the first of all these */
};

/* Before the first handle is opened: another ensemble than the plain one. */
void fake_draw_rules(struct fake *fake, unsigned broken);
bool fake_holds(const struct fake *fake, enum fake_belief belief);

/* --- for fake.c ----------------------------------------------------------- */

/* The leader starts the session's clock anew. */
void touches_renew(struct fake *fake, struct fake_session *session, int timeout_ms);
/* A new leader does, with the stored timeout. */
void touches_elect(struct fake *fake, struct fake_session *session);
/* A link to some server begins. wrongly: by the answer to an earlier attempt, whose own is still on its
 * way. */
void touches_meet(struct fake_handle *h, bool wrongly);
/* It ends, or the server is cut off from the others: what it has noted may be lost. */
void touches_part(struct fake_handle *h);
/* The server takes a request, or a ping. */
void touches_note(struct fake_handle *h);
/* What is on its way to the leader reaches it before the request that follows. */
void touches_flush(struct fake_handle *h);
/* The next thing that happens by itself to what this link knows; INT64_MAX: none. */
void touches_run(struct fake_handle *h);
int touches_negotiate(struct fake_handle *h);

#endif
