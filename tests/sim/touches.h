/* SPDX-License-Identifier: Apache-2.0
 * When the leader has heard of a session, as in ZooKeeper: only the leader expires sessions, and a
 * client's requests reach it only when the server that it is linked to passes its table of touches
 * on. */
#ifndef ZKL_SIM_TOUCHES_H
#define ZKL_SIM_TOUCHES_H

#include <stdbool.h>
#include <stdint.h>

struct fake;
struct fake_handle;
struct fake_session;

/* What exclusion, order, tokens and the window rest on is turned off by these, and then some schedule must
 * go wrong: the beliefs are those of docs/evidence/beliefs.md. */
enum fake_switch {
    FAKE_SHUFFLED_NUMBERS,   /* B1 */
    FAKE_REUSED_NUMBERS,     /* B2 */
    FAKE_ZXID_RESTARTS,      /* B4: with each leader */
    FAKE_HALF_A_TRANSACTION, /* B5: what comes before the part that fails is done */
    FAKE_WRITE_LOST,         /* B7: by an election */
    FAKE_TAKES_CHILDREN,     /* B9: the removal of a container */
    FAKE_ONE_BY_ONE,         /* B10: a node is removed with the link, the others with the session */
    FAKE_CREATE_AFTER_END,   /* B11 */
    FAKE_BARRIER_IS_A_READ,  /* B14 */
    FAKE_CLOSED_BY_HAND,     /* B15 */
    FAKE_LIST_OVERTAKES,     /* B16, B70: the create before it */
    FAKE_BACK_IN_TIME,       /* B18 */
    FAKE_EVENT_LATE,         /* B19: behind an answer that shows the change */
    FAKE_EVENTS_SHUFFLED,    /* B20 */
    FAKE_EVENT_NEVER,        /* B22 */
    FAKE_LATE_ROUND,         /* B35, B37: one comes later than P + D */
    FAKE_TOUCH_DROPPED,      /* B38: on its way into the table */
    FAKE_UNTOUCHED_ANSWER,   /* B39 */
    FAKE_LATE_BATCH,         /* B52: a bucket is worked off for longer than D */
    FAKE_LOWERED_TIMEOUT,    /* B32, B40, B41: under an open window */
    FAKE_UNCHECKED,          /* B51: for one's own ephemeral nodes too */
    FAKE_TWO_ROUNDS,         /* B55: each as long as one is declared to be */
    FAKE_CLOCKS_APART,       /* by more than R in T */
    FAKE_BOOTTIME_STOPS,     /* while a machine sleeps */
    FAKE_NOT_RENEWED,        /* B43 */
    FAKE_UNTOUCHED_LINK,     /* B54, and no attempt of this time has touched the session */
    FAKE_OVERTAKEN,          /* B36: what was written before it */
    FAKE_TOUCH_NEVER,        /* B33: of the leader's own clients */
    FAKE_MINORITY_WRITES,    /* B8 */
    FAKE_EXPIRES_EARLY,      /* B31: rounded down */
    FAKE_STORED_LESS,        /* B42: a leader has less stored than was ever announced */
    FAKE_PROVED_ALONE,       /* B50: a server answers a heartbeat by itself */
    /* B61: a loss is reported for requests that were sent after the next socket was opened */
    FAKE_LOST_LATE,
    FAKE_FORGED,      /* B64, B67: what is lost is answered with OK */
    FAKE_LINK_STAYS,  /* B44: with a server that follows another leader */
    FAKE_SILENT_LINK, /* B62: a link that follows another one, without a report */
    FAKE_NEW_SESSION, /* B73: in silence */
    FAKE_SHORT_CLOSE, /* B92: servers read less again than they write */
    FAKE_OLDER_DATA,  /* B118: than its version */
    FAKE_SWITCHES
};

extern const char *const fake_switch_names[FAKE_SWITCHES];

/* What the servers are like: the same for the whole schedule. */
struct fake_rules {
    int tick_ms;      /* of the expiries */
    int declared_ms;  /* the tick that a client may assume */
    int round_ms;     /* how often a server is asked for its table */
    int late_ms;      /* a round; and together: */
    int packet_ms;    /* what is on its way to the leader, */
    int batch_ms;     /* and the expiries of one tick */
    int64_t phase_ms; /* of the rounds against the expiries */
    int capped_ms;    /* some servers grant no more; 0: there is none */
    int raised_ms;    /* and some no less */
    bool relayed;     /* an observer's table goes through another server's */
    bool eager;       /* servers answer errors of their own */
    bool local_sessions;
    uint64_t broken; /* enum fake_switch, as bits */
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
void fake_draw_rules(struct fake *fake, uint64_t broken);
bool fake_breaks(const struct fake *fake, enum fake_switch which);
/* That, and once in this many times. */
bool fake_breaks_once(const struct fake *fake, enum fake_switch which, unsigned once_in);
/* Does the next round repair what fails then? */
bool fake_is_mended_soon(const struct fake *fake);

/* --- for fake.c ----------------------------------------------------------- */

/* The leader starts the session's clock anew. */
void touches_renew(struct fake *fake, struct fake_session *session, int timeout_ms);
/* An attempt to link does, that began since the last one and fails now. */
void touches_attempt(struct fake_handle *h, struct fake_session *session);
/* A new leader does, with the stored timeout. */
void touches_elect(struct fake *fake, struct fake_session *session);
/* A link to some server begins. wrongly: by the answer to an earlier attempt, whose own is still on its
 * way. */
void touches_meet(struct fake_handle *h, bool wrongly);
/* The server follows another leader; it reports the link's touches to the old one. */
void touches_follow(struct fake_handle *h);
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
