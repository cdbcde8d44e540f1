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

/* A list of X(NAME, "name") as an enum, and as an array of its names. */
#define FAKE_ENUM(value, name) value,
#define FAKE_NAME(value, name) [value] = name,

/* What exclusion, order, tokens and the window rest on is turned off by these, and then some schedule must
 * go wrong: the beliefs are those of docs/evidence/beliefs.md. */
#define FAKE_SWITCH_LIST(X)                                                                        \
    X(FAKE_SHUFFLED_NUMBERS, "numbers-shuffled")       /* B1 */                                    \
    X(FAKE_REUSED_NUMBERS, "numbers-reused")           /* B2 */                                    \
    X(FAKE_ZXID_RESTARTS, "zxid-restarts")             /* B4: with each leader */                  \
    X(FAKE_HALF_A_TRANSACTION, "half-a-transaction")   /* B5: the failing part undoes nothing */   \
    X(FAKE_WRITE_LOST, "write-lost")                   /* B7: by an election */                    \
    X(FAKE_TAKES_CHILDREN, "container-takes-children") /* B9: the removal of a container */        \
    X(FAKE_ONE_BY_ONE, "nodes-go-one-by-one")          /* B10: one with the link */                \
    X(FAKE_CREATE_AFTER_END, "create-after-end")       /* B11 */                                   \
    X(FAKE_BARRIER_IS_A_READ, "barrier-is-a-read")     /* B14 */                                   \
    X(FAKE_CLOSED_BY_HAND, "closed-by-hand")           /* B15 */                                   \
    X(FAKE_LIST_OVERTAKES, "list-overtakes")           /* B16, B70: the create before it */        \
    X(FAKE_BACK_IN_TIME, "back-in-time")               /* B18 */                                   \
    X(FAKE_EVENT_LATE, "event-late")           /* B19: behind an answer that shows the change */   \
    X(FAKE_EVENTS_SHUFFLED, "events-shuffled") /* B20 */                                           \
    X(FAKE_EVENT_NEVER, "event-lost")          /* B22 */                                           \
    X(FAKE_LATE_ROUND, "late-round")           /* B35, B37: one comes later than P + D */          \
    X(FAKE_TOUCH_DROPPED, "touch-lost")        /* B38: on its way into the table */                \
    X(FAKE_UNTOUCHED_ANSWER, "answer-without-touch") /* B39 */                                     \
    X(FAKE_LATE_BATCH, "late-batch")           /* B52: a bucket is worked off for longer than D */ \
    X(FAKE_LOWERED_TIMEOUT, "lowered-timeout") /* B32, B40, B41: under an open window */           \
    X(FAKE_UNCHECKED, "local-sessions")        /* B51: for one's own ephemeral nodes too */        \
    X(FAKE_TWO_ROUNDS, "two-rounds")           /* B55: each as long as one is declared to be */    \
    X(FAKE_CLOCKS_APART, "clocks-apart")       /* by more than R in T */                           \
    X(FAKE_BOOTTIME_STOPS, "boottime-stops")   /* while a machine sleeps */                        \
    X(FAKE_NOT_RENEWED, "election-renews-nothing") /* B43 */                                       \
    X(FAKE_UNTOUCHED_LINK, "answer-to-another")    /* B54, when nothing has touched the session */ \
    X(FAKE_OVERTAKEN, "proof-overtakes")           /* B36: what was written before it */           \
    X(FAKE_TOUCH_NEVER, "touch-never")             /* B33: of the leader's own clients */          \
    X(FAKE_MINORITY_WRITES, "minority-writes")     /* B8 */                                        \
    X(FAKE_EXPIRES_EARLY, "expires-early")         /* B31: rounded down */                         \
    X(FAKE_STORED_LESS, "stored-timeout")          /* B42: less than was ever announced */         \
    X(FAKE_PROVED_ALONE, "proof-without-leader") /* B50: a server answers a heartbeat by itself */ \
    X(FAKE_LOST_LATE, "loss-after-socket") /* B61: for requests behind the next socket's begin */  \
    X(FAKE_FORGED, "forged-answer")        /* B64, B67: what is lost is answered with OK */        \
    X(FAKE_LINK_STAYS, "link-outlives-role") /* B44: with a server that follows another leader */  \
    X(FAKE_SILENT_LINK, "silent-link")       /* B62: a link after another, without a report */     \
    X(FAKE_NEW_SESSION, "new-session-in-silence") /* B73: in silence */                            \
    X(FAKE_SHORT_CLOSE, "short-close") /* B92: servers read less again than they write */          \
    X(FAKE_OLDER_DATA, "data-older-than-version") /* B118: than its version */

enum fake_switch { FAKE_SWITCH_LIST(FAKE_ENUM) FAKE_SWITCHES };

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
