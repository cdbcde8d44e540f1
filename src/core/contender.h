/* SPDX-License-Identifier: Apache-2.0
 * The contender: one place in one queue, for one owner, as a state machine. It is pure: an event,
 * and the core's time and session, which it only reads, are its input, actions its output; feed.c
 * executes them. When its owner has its answer and something may still be on the server, the same
 * object continues as the janitor's (LEAVING). So a GUID belongs to one of the two at any time, and
 * the handover cannot fail.
 */
#ifndef ZKL_CORE_CONTENDER_H
#define ZKL_CORE_CONTENDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "name.h"
#include "queue.h"

struct zkl_time {
    int64_t mono_ns; /* CLOCK_MONOTONIC: deadlines and pacing */
    int64_t boot_ns; /* CLOCK_BOOTTIME: the window, which must go on while the machine sleeps */
};

/* A moment of CLOCK_BOOTTIME on CLOCK_MONOTONIC, as if the machine did not sleep from now on. */
static inline int64_t zkl_time_mono(struct zkl_time now, int64_t boot_ns)
{
    return boot_ns - now.boot_ns + now.mono_ns;
}

/* ZooKeeper's answer, as far as a lock needs it. */
enum zkl_answer {
    ZKL_ANSWER_OK,
    /* none came, or one to be asked again for: whether the request was carried out is unknown */
    ZKL_ANSWER_LINK,
    ZKL_ANSWER_NONODE,
    ZKL_ANSWER_EXISTS,
    ZKL_ANSWER_NOTEMPTY,
    ZKL_ANSWER_NOAUTH,
    ZKL_ANSWER_UNIMPLEMENTED,
    ZKL_ANSWER_NOWATCHER,
    ZKL_ANSWER_QUOTA,
    ZKL_ANSWER_READONLY, /* the server has lost the others, and writes nothing */
    ZKL_ANSWER_BADPATH,
    ZKL_ANSWER_AUTH,        /* the server wants a credential, and has ended the session */
    ZKL_ANSWER_NOMEM,       /* never sent, for want of memory */
    ZKL_ANSWER_FULL,        /* never sent: a watch more than a reconnect can restore */
    ZKL_ANSWER_ROLLED_BACK, /* not carried out, because of another one in the same transaction */
    ZKL_ANSWER_OTHER
};

enum zkl_contender_state {
    ZKL_CONTENDER_NEW,
    ZKL_CONTENDER_PARKED,     /* nothing on the server; waits for the link */
    ZKL_CONTENDER_LOOKING,    /* a try's first read is out */
    ZKL_CONTENDER_MAKING,     /* the lock path is being made */
    ZKL_CONTENDER_QUEUEING,   /* the create is out, and the list if one follows */
    ZKL_CONTENDER_RECOVERING, /* the create's outcome is unknown */
    ZKL_CONTENDER_LISTING,    /* our node exists; a list is out or waits for the link */
    ZKL_CONTENDER_WAITING,    /* behind a predecessor */
    ZKL_CONTENDER_CONFIRMING, /* first, but the window is empty: waits for an answered heartbeat */
    ZKL_CONTENDER_EXHAUSTED,  /* the counter is used up: waits for a new lock path */
    ZKL_CONTENDER_HOLDING,
    ZKL_CONTENDER_LOSTHOLD,  /* was HOLDING; the owner has not unlocked yet */
    ZKL_CONTENDER_RELEASING, /* the owner waits for the delete's answer */
    ZKL_CONTENDER_LEAVING,   /* the janitor's: the owner has its answer */
    ZKL_CONTENDER_ENDED,     /* nothing is left of it on the server */
    ZKL_CONTENDER_STATES
};

enum zkl_event_type {
    ZKL_EV_START,
    ZKL_EV_LINK_UP,
    ZKL_EV_LINK_DOWN,
    ZKL_EV_EXPIRED,
    ZKL_EV_MADE,             /* answer */
    ZKL_EV_CREATED,          /* answer, name, czxid */
    ZKL_EV_LISTED,           /* answer, children */
    ZKL_EV_LOCK_PATH_LISTED, /* answer, children, czxid (the path's) */
    ZKL_EV_STATTED,          /* answer, session (the node's), czxid */
    ZKL_EV_RENEWED,          /* answer */
    ZKL_EV_DELETED,          /* answer */
    ZKL_EV_WATCHED,          /* answer: of the watch on the predecessor */
    ZKL_EV_PRED_FIRED,
    ZKL_EV_OWN_DELETED,
    ZKL_EV_OWN_CHANGED,
    ZKL_EV_OWN_ARMED, /* the watch on our own node: it is there */
    ZKL_EV_WAITED,    /* for a while: what was put off is due */
    ZKL_EV_LOCK_PATH_FIRED,
    ZKL_EV_NODE_GONE, /* a heartbeat's check found our node missing */
    ZKL_EV_UNCHECKED, /* answer: the server does not let us check our node, so no heartbeat does */
    ZKL_EV_CHECKED,   /* it does again */
    ZKL_EV_PROVED,    /* a proof of the session succeeded */
    ZKL_EV_WINDOW_ENDED,
    ZKL_EV_LEASE_ENDED, /* of some contender: each looks at its own */
    ZKL_EV_REVOKED,     /* our node's data asks us to release the lock */
    ZKL_EV_LIMIT,       /* answer, data, version: of a semaphore's lock path */
    ZKL_EV_LIMIT_SET,   /* answer */
    ZKL_EV_LIMIT_FIRED, /* that data changed */
    ZKL_EV_STOP,        /* code: ZKL_ETIMEDOUT, ZKL_ECANCELED, ZKL_ECLOSED */
    ZKL_EV_STAY,    /* unlocked, but the node stays, for the next owner or (idle) for none yet */
    ZKL_EV_RELEASE, /* the owner's last unlock */
    ZKL_EV_ABANDON, /* reason: the owner ends without unlock, or the client closes */
    ZKL_EVENT_TYPES
};

/* Whether the end of the predecessor's node leaves no contender before ours; see pred_proof.c. */
enum zkl_pred_proof {
    ZKL_PRED_PROOF_NONE,    /* a list is needed */
    ZKL_PRED_PROOF_PENDING, /* proved if our own node exists, which the next answer shows */
    ZKL_PRED_PROOF_PROVEN
};

struct zkl_event {
    enum zkl_event_type type;
    const struct zkl_reply *reply; /* borrowed; NULL to zkl_core_feed: the event is no answer */
    int code;                      /* enum zkl_error */
    int reason;                    /* enum zkl_reason */
    /* PRED_FIRED, WATCHED: whether no contender is before us any more */
    enum zkl_pred_proof pred_proof;
    bool idle;     /* STAY: the node has no holder */
    bool full;     /* the session may own no further node of this size: see ephemerals.h */
    bool unlisted; /* a create that is sent now most likely needs no list: see unlisted_grant.h */
    bool first;    /* CREATED: by its number the node is the first in the queue */
    /* CREATED: by its number it is just behind this one of the same client, or NULL; and with that
     * one, at most this many are before it. */
    const char *behind;
    size_t before;
};

enum zkl_action_type {
    ZKL_DO_MAKE,         /* the first make_length bytes of the lock path */
    ZKL_DO_CREATE,       /* under a new GUID */
    ZKL_DO_CREATE_UNDER, /* likewise, with the write node's number, if that node is there */
    ZKL_DO_LIST,
    ZKL_DO_SYNC,
    ZKL_DO_BARRIER, /* a quorum write: what is read behind it shows all that was committed before */
    ZKL_DO_LIST_LOCK_PATH, /* with the path's czxid, and a child watch on it */
    ZKL_DO_STAT,
    ZKL_DO_RENEW,       /* delete the empty lock path and make it again */
    ZKL_DO_EXPECT_LATE, /* the create that no list showed may be carried out yet */
    ZKL_DO_REVOKE,      /* name: a child of the path; request its release */
    ZKL_DO_DELETE,
    ZKL_DO_FORGET_LIST,
    ZKL_DO_WATCH_PRED, /* name: a child of the path */
    ZKL_DO_WATCH_OWN,
    ZKL_DO_WATCH_OWN_LATER, /* by ZKL_EV_WAITED, or when another of this client asks for it */
    ZKL_DO_GET_LIMIT,       /* the lock path's data */
    ZKL_DO_SET_LIMIT,       /* our number there, if no other client was faster */
    ZKL_DO_WATCH_LIMIT,     /* the data, now and when it changes */
    ZKL_DO_UNWATCH,         /* every watch of this contender */
    ZKL_DO_UNWATCH_OTHERS,  /* but the own node's: its deletion, which follows, clears that */
    ZKL_DO_HEARTBEAT,
    ZKL_DO_GRANT,        /* the rest notify the owner */
    ZKL_DO_FAIL,         /* code */
    ZKL_DO_RELEASED,     /* code */
    ZKL_DO_NOTIFY_STATE, /* hold state and reason */
    ZKL_DO_LOST,         /* reason */
    ZKL_DO_END
};

struct zkl_action {
    enum zkl_action_type type;
    int code;
    int state;
    int reason;
    int number;
    const char *name;   /* borrowed from the event */
    const char *detail; /* for FAIL: static text, or a name borrowed from the event */
};

#define ZKL_ACTIONS_MAX 8
struct zkl_actions {
    size_t count;
    struct zkl_action list[ZKL_ACTIONS_MAX];
};

/* A handle's idea of how many permits a semaphore has. */
struct zkl_semaphore_view {
    int permits; /* 0: none */
    bool agreed; /* it agreed with the path's number once: from then on the path's number counts */
    int changes; /* of it by this handle, under way or perhaps carried out: the path's counts too */
};

/* What a contender for a permit should get of its semaphore. */
struct zkl_quota {
    struct zkl_semaphore_view *view; /* the handle's; until the grant or the failure */
    int want;                        /* how many the whole request is for */
    bool looked; /* a try: somebody has looked; else it only looks, and fails with ZKL_EBUSY or 0 */
};

/* What it knows of the number of permits: see permit_limit.c. */
struct zkl_limit {
    int permits;     /* how many there are; 0: not known yet */
    int given;       /* what it writes now; 0: nothing */
    int32_t version; /* of the data that it was read from, */
    int64_t czxid;   /* and its node's */
    bool out;        /* an answer about it is awaited */
    bool watched;    /* its changes are reported */
};

struct zkl_bundle;
struct zkl_contender;
struct zkl_core;
struct zkl_local_queue;
struct zkl_path;
struct zkl_read_cache;
struct zkl_reply;
struct zkl_transaction;

struct zkl_lock_request {
    struct zkl_path *path; /* outlives the contender's ENDED */
    const char *data;      /* of the node, text; likewise */
    struct zkl_naming naming;
    int64_t lease_ns;       /* > 0: how long the hold lasts, from its grant, unless renewed */
    struct zkl_quota quota; /* with ZKL_ROLE_PERMIT */
    bool try_only, try_sync;
    bool watch_own; /* the owner must learn of the node's deletion immediately */
    /* a try queues behind a retained node, which may have no holder, if that is the only one */
    bool try_behind_retained;
    bool retained; /* the node may stay without a holder: its name says so */
    bool posted;   /* unlock does not wait for the answer */
    /* A read lock's: the same owner's held write lock, read when the contender begins. */
    const struct zkl_contender *downgrade_from;
    /* Not for the machine: what the contender is part of; NULL: none. */
    bool together;             /* its create goes out with those of others of its bundle */
    bool views;                /* it counts in path->view, */
    bool unlisted;             /* and, a mutex's, in path->unlisted */
    struct zkl_bundle *bundle; /* which decides for it, until all members are held */
    /* The local queue whose owners may have it in turn, as long as they may; only
     * zkl_local_queue_join sets it. */
    struct zkl_local_queue *local_queue;
    struct zkl_read_cache *read_cache; /* of those who have it together, likewise */
};

/* At most this many clients of a path keep a reader's node. The server notifies each of them
 * whenever a child is created or deleted. */
#define ZKL_CACHED_READERS_MAX 32

struct zkl_contender_machine {
    enum zkl_contender_state state;
    struct zkl_lock_request lock_request; /* set before START */
    /* a read lock's: the same owner's held write node, or "" */
    char downgrade_from[ZKL_NODE_NAME_MAX + 1];
    int64_t downgrade_from_czxid;
    struct zkl_limit limit; /* with ZKL_ROLE_PERMIT */
    size_t make_length;     /* the prefix of the lock path that is being made */
    bool create_out;        /* requests whose answer is awaited */
    bool list_out;
    bool stat_out;
    bool renew_out;
    bool delete_out;
    /* node and czxid are known, and no answer said that the node was deleted */
    bool on_server;
    /* the link broke before a create's answer: a server may carry it out yet */
    bool may_be_late;
    bool maybe_on_server; /* a create's answer was lost and no list has resolved it since */
    bool suspect;         /* HOLDING, and reported as suspect */
    bool unprovable;      /* HOLDING: it stays suspect, as nothing proves the session */
    bool unchecked;       /* heartbeats leave our node out: they would fail by it */
    bool revoked;         /* another client asked us to release the lock */
    /* WAITING: contenders before us at most, as the last list said or our number; 0: of a permit,
     * whose turn it is already */
    size_t before;
    bool behind_retained;    /* a try that queued so */
    bool watches_contention; /* HOLDING: the owner needs to know of others that queue */
    bool contended;          /* some do, or were before us */
    bool crowded;            /* because ZKL_CACHED_READERS_MAX were */
    int64_t looked_boot;     /* when the last list for that was asked for; */
    /* likewise of the last list that showed no contender, over this link; 0: none has */
    int64_t uncontended_boot;
    enum zkl_pred_proof pred_proof; /* WAITING: PENDING, or NONE */
    /* WAITING: what we watch is just before us, surely for a mutex, and so are we */
    bool pred_is_exclusive_mutex;
    bool pred_is_by_number; /* WAITING: no list showed it; see unlisted_grant.h */
    bool own_is_put_off;    /* WAITING: the watch on our own node */
    /* our node was at the head of the queue: no contender comes before it any more */
    bool was_first;
    char guid[ZKL_GUID_LEN + 1];
    char node[ZKL_NODE_NAME_MAX + 1]; /* name of our child */
    int64_t sequence;                 /* its number, or ZKL_SEQUENCE_NONE */
    int64_t czxid;                    /* the token */
    int64_t lease_end_boot;           /* of the hold; 0: it has no lease */
    int64_t unlocked_boot;            /* its owner unlocked it then; 0: it has not */
    /* zxid not before the exhausted lock path's birth; one of a later birth is fresh */
    int64_t exhausted_at;
};

/* The code for an answer that ends a call. */
int zkl_answer_code(enum zkl_answer answer);

/* For traces and tests. */
const char *zkl_contender_state_name(enum zkl_contender_state state);

/* May a contender change from one state to the other? */
bool zkl_contender_may_move(enum zkl_contender_state from, enum zkl_contender_state to);

/* Called with each change of state, for traces and coverage of the table. */
struct zkl_tracer {
    void (*moved)(void *arg, const struct zkl_contender_machine *m, enum zkl_contender_state from,
                  const char *why);
    void *arg;
};

/* One event: the new state is in m, the resulting actions in actions (to execute in their
 * order). */
void zkl_contender_step(const struct zkl_core *core, struct zkl_contender_machine *m,
                        const struct zkl_event *event, struct zkl_actions *actions);

/* The name of a node made under the write node: our prefix and that one's digits; out has room for
 * ZKL_NODE_NAME_MAX + 1. */
void zkl_contender_name_downgraded(const struct zkl_contender_machine *m, char *out);

/* From now on the hold ends at end_boot_ns; false: it has ended already. */
bool zkl_contender_renew(struct zkl_contender_machine *m, struct zkl_time now, int64_t end_boot_ns);

/* What the rest of the core asks of a contender after each step, and counts. */
enum zkl_count {
    ZKL_COUNT_HERE, /* it has a node, or will have one, and has not begun to give it up */
    /* The session owns its node, or may: the create was sent or is about to be, or its answer was
     * lost. ENDED: nothing more can be done about it. */
    ZKL_COUNT_OWNS,
    ZKL_COUNT_HEARTBEATS,     /* they are sent for it */
    ZKL_COUNT_UNCHECKED,      /* its node is tried now and then, whether it may be checked again */
    ZKL_COUNT_WAITS,          /* for something outside; queries count, too */
    ZKL_COUNT_AWAITS_PROOF,   /* a proof of the session would help it */
    ZKL_COUNT_WINDOW_LIMITED, /* it must be notified when the window ends */
    /* Something remains to delete and nothing is under way: it waits for the link, or its request
     * could not be sent for want of memory. */
    ZKL_COUNT_RETRIES,
    ZKL_COUNTS
};

/* A bit for each that it counts for. */
unsigned zkl_contender_counts(const struct zkl_contender_machine *m);

/* --- what the rest of the core asks of a contender, at every step: inline -------------------- */

/* WAITING: only one contender is before us; a contender that waits for a permit has the inner
 * mutex. */
static inline bool zkl_contender_is_next(const struct zkl_contender_machine *m)
{
    return m->before <= 1;
}

/* The watch on its own node. */
static inline bool zkl_contender_puts_off(const struct zkl_contender_machine *m)
{
    return m->state == ZKL_CONTENDER_WAITING && m->own_is_put_off;
}

/* Nothing speaks against another owner's having what it holds, or having it again. */
static inline bool zkl_contender_may_stay(const struct zkl_contender_machine *m)
{
    return m->state == ZKL_CONTENDER_HOLDING && !m->suspect && !m->revoked &&
           m->lease_end_boot == 0;
}

/* A try that waits for the release of a retained node, which may have no holder. */
static inline bool zkl_contender_awaits_retained(const struct zkl_contender_machine *m)
{
    return m->behind_retained &&
           (m->state == ZKL_CONTENDER_WAITING || m->state == ZKL_CONTENDER_LISTING);
}

#endif
