/* SPDX-License-Identifier: Apache-2.0
 * The whole client without I/O: contenders, session, watches, heartbeat, and the outstanding
 * requests to the server. The driver (or a simulation) feeds it each event with its time, and
 * carries out its requests through the port. Not thread safe: the caller serializes (in the
 * library: the client's mutex). */
#ifndef ZKL_CORE_CORE_H
#define ZKL_CORE_CORE_H

#include <string.h>

#include "contender.h"
#include "histogram.h"
#include "part.h"
#include "session.h"

/* --- requests to the server --------------------------------------------- */

enum zkl_request_kind {
    /* ephemeral sequential: path is the prefix; answered by name and czxid. With checks: exactly
     * path, in one transaction with checks of these nodes, which answers neither */
    ZKL_REQ_CREATE,
    ZKL_REQ_MAKE, /* path: a container, or persistent if flag is set; with data, or empty */
    ZKL_REQ_LIST, /* path: children */
    /* path: children and what the reply says of a node; with watch_id a child watch is armed */
    ZKL_REQ_LIST_LOCK_PATH,
    ZKL_REQ_SYNC,    /* path */
    ZKL_REQ_STAT,    /* path: what the reply says of a node */
    ZKL_REQ_GET,     /* path: that, and the data */
    ZKL_REQ_SET,     /* path, data, which is text; with flag only if it has the version */
    ZKL_REQ_WATCH,   /* path, watch_id: data watch, left only if the node exists */
    ZKL_REQ_UNWATCH, /* path: all data (flag: child) watches of this client, on the server too */
    ZKL_REQ_DELETE,  /* path; with flag only if it has the version */
    /* checks: as CREATE, all in one transaction, with texts as data, or deleted in it if the text
     * is NULL; answered by names (as children), without zxids */
    ZKL_REQ_CREATE_ALL,
    ZKL_REQ_DELETE_ALL, /* checks: all these nodes, in one transaction */
    ZKL_REQ_RENEW,      /* path: delete the empty node and make it again with its ACL and data */
    /* checks: one transaction that checks all these nodes, which is a quorum write: a heartbeat, or
     * a barrier */
    ZKL_REQ_CHECK_ALL,
    ZKL_REQ_KEEPALIVE, /* some read, so that the server gets going */
    ZKL_REQ_ACL,       /* path: its ACL as data, a line "PERMISSIONS SCHEME" for each entry */
    ZKL_REQ_PARTS,     /* parts, in one transaction; answered by the mtime of the last that sets */
    ZKL_REQUEST_KINDS
};

/* What a server may not know; see opcode.h. */
enum zkl_opcode {
    ZKL_OPCODE_OTHER, /* every server knows it */
    ZKL_OPCODE_CREATE2,
    ZKL_OPCODE_CONTAINER,
    ZKL_OPCODE_REMOVE_WATCHES,
    ZKL_OPCODE_MULTI,
    ZKL_OPCODE_CHILDREN2, /* a list with the czxid of its path */
    ZKL_OPCODES
};

struct zkl_request {
    uint64_t id;
    enum zkl_request_kind kind;
    const char *path; /* borrowed until send returns */
    const char *data; /* CREATE, MAKE, SET: the node's */
    bool flag;        /* LIST: with cversion, pzxid and czxid of the node itself */
    bool plain;       /* CREATE, MAKE: as servers without create2 know it, which answers no czxid */
    int32_t version;
    uint64_t watch_id;
    const char *const *checks;
    size_t check_count;
    const char *const *texts;
    const struct zkl_part *parts;
    size_t part_count;
    struct zkl_stamp stamp; /* the port must return it with the reply */
};

struct zkl_reply {
    uint64_t id;
    enum zkl_answer answer;
    int number;   /* what ZooKeeper called it, for messages */
    bool hung_up; /* LINK: the link broke, by whatever means but silence */
    bool refused; /* it was never sent; set by the core */
    /* UNIMPLEMENTED: the next request will use another operation; set by the core */
    bool otherwise;
    const char *name; /* CREATE: the last component */
    /* Of a node. */
    int64_t czxid;
    int64_t node_session; /* its owner's; 0: it is not ephemeral */
    int64_t ctime_ms;     /* since 1970, by the server's clock; */
    int64_t mtime_ms;     /* likewise, of its data */
    int32_t version;
    int32_t aversion;      /* how often its ACL was set */
    int32_t node_children; /* how many */
    int32_t cversion;      /* LIST: how often the node's children changed, */
    int64_t pzxid;         /* and by which transaction last */
    const char *data;      /* GET, WATCH, ACL; NULL: it has none */
    size_t data_size;
    const char *const *children;
    size_t child_count;
    size_t failed_check; /* of a transaction that failed: the part to blame */
    /* The request's; sent_boot 0: this is no answer of a server, nor the end of a link or of the
     * attempt to make one. */
    struct zkl_stamp stamp;
};

/* --- notifications of a contender --------------------------------------- */

enum zkl_notification_type {
    ZKL_NOTIFY_GRANTED,
    ZKL_NOTIFY_FAILED,   /* code, detail; the contender ends */
    ZKL_NOTIFY_RELEASED, /* code, detail */
    ZKL_NOTIFY_STATE,    /* state, reason: SUSPECT, HELD or LOST */
    ZKL_NOTIFY_ENDED     /* the core has no pointer to it any more */
};

struct zkl_notification {
    enum zkl_notification_type type;
    int code;
    int state;
    int reason;
    int number;         /* ZooKeeper's code of the answer that led here, if any */
    const char *detail; /* borrowed; may be NULL */
};

/* A decision: one of the state machines moved. */
enum zkl_trace_kind {
    ZKL_TRACE_SESSION,
    ZKL_TRACE_CONTENDER,
    ZKL_TRACE_PERMITS,
    ZKL_TRACE_LOCAL_QUEUE,
    ZKL_TRACE_CACHE
};

struct zkl_trace {
    enum zkl_trace_kind kind;
    int from, to;                          /* of that machine's states */
    const char *why;                       /* static */
    const struct zkl_contender *contender; /* CONTENDER: which; PERMITS: the first of the request */
    uint64_t number;                       /* CONTENDER: its */
    int64_t mono_ns;
};

const char *zkl_trace_state_name(enum zkl_trace_kind kind, int state);
#define ZKL_TRACE_MAX 160
/* As one line: "[time] WHO FROM -> TO: WHY". The call does not read the contender. */
void zkl_trace_format(const struct zkl_trace *trace, char line[ZKL_TRACE_MAX]);

struct zkl_core;

/* The core's interface to its surroundings. None of these may call the core again. */
struct zkl_port {
    /* Send the request, or answer immediately with the obstacle (LINK, NOMEM); OK: the reply will
     * come. While the session is not connected the core sends only a KEEPALIVE: it waits for the
     * next link, or for the failure of the next attempt to make one. */
    enum zkl_answer (*send)(struct zkl_port *port, const struct zkl_request *request);
    void (*notification)(struct zkl_port *port, struct zkl_contender *contender,
                         const struct zkl_notification *notification);
    void (*session)(struct zkl_port *port, unsigned actions); /* ZKL_SA_* */
    void (*random)(struct zkl_port *port, unsigned char bytes[16]);
    void (*trace)(struct zkl_port *port, const struct zkl_trace *trace); /* NULL: no traces */
};

/* --- objects ------------------------------------------------------------ */

/* Who awaits an answer: dispatch_reply.c has a function for each. */
enum zkl_awaiter {
    ZKL_AWAITER_NONE, /* the keepalive's says nothing more */
    ZKL_AWAITER_CONTENDER,
    ZKL_AWAITER_WATCH,
    ZKL_AWAITER_TRANSACTION,
    ZKL_AWAITER_QUERY,
    ZKL_AWAITER_LEFTOVERS,
    ZKL_AWAITER_HEARTBEAT,
    ZKL_AWAITER_FIRST_READ,
    ZKL_AWAITER_WATCHED_READ,
    ZKL_AWAITER_LEADER_CHECK,
    ZKL_AWAITERS
};

/* One awaited answer. Embedded where it belongs, so that awaiting needs no memory. */
struct zkl_pending {
    uint64_t id; /* 0: nothing is awaited */
    struct zkl_pending *next;
    enum zkl_awaiter awaiter;
    void *owner; /* the contender, watch, transaction or query */
    enum zkl_request_kind kind;
    enum zkl_opcode opcode;
    unsigned doubted; /* a set of those that the server may have hung up on, or carried out */
    unsigned writes;  /* how many creates and deletes are in it: see group_commit.h */
    enum zkl_answer refusal; /* why it could not be sent */
    int64_t sent_boot_ns;
};

enum zkl_watch_type { ZKL_WATCH_DATA, ZKL_WATCH_CHILD };

/* One subscriber's interest in a watch. */
struct zkl_subscription {
    struct zkl_watch *watch;
    struct zkl_subscription *next, *prev;
    struct zkl_contender *contender; /* whose it is; one of the three is set */
    struct zkl_query *query;
    struct zkl_unlisted_grant *unlisted;
};

enum { ZKL_SUB_PRED, ZKL_SUB_OWN, ZKL_SUB_LOCK_PATH, ZKL_SUB_LIMIT, ZKL_SUBS };
enum {
    ZKL_SLOT_CREATE, /* MAKE too */
    ZKL_SLOT_LIST,
    ZKL_SLOT_SYNC, /* or a barrier */
    ZKL_SLOT_STAT, /* RENEW too */
    ZKL_SLOT_DELETE,
    ZKL_SLOT_LIMIT, /* GET and SET; or, of a lock, the request that another one is released */
    ZKL_SLOTS
};

enum zkl_held_write { ZKL_HELD_NONE, ZKL_HELD_CREATE, ZKL_HELD_DELETE };

struct zkl_contender {
    struct zkl_contender_machine machine;
    struct zkl_contender *next, *prev; /* in the core's queue of contenders, oldest first */
    uint64_t number;                   /* for traces */
    unsigned counted;                  /* what it counts for since its last step, as bits */
    size_t node_bytes;                 /* see ephemerals.h */
    uint64_t heartbeat_serial;         /* the heartbeat that checks our node last, and where */
    size_t heartbeat_index;
    struct zkl_pending slots[ZKL_SLOTS];
    struct zkl_subscription subs[ZKL_SUBS];
    struct zkl_transaction *transaction; /* its create or delete is in it; NULL: in none */
    /* With lock_request.together: it wants these, and waits for others or the answer; */
    bool wants_create, wants_list;
    bool list_for_view;       /* its list is out for the view only, and not waited for, */
    bool list_has_stat;       /* the list that is out is for the view, too */
    bool delete_sent;         /* of its node, once: another time it may find nothing */
    enum zkl_held_write held; /* what of it waits for others: see group_commit.h */
    struct zkl_contender *next_held;
    /* For lock_request.unlisted: the watch that stood when its delete went out. */
    uint64_t release_watch_id;
    struct zkl_contender *shares_list; /* whose list answers for it too; NULL: its own */
    struct zkl_contender *sharers, *next_sharer;
    bool shares_next_list;  /* not that list: the one that follows its answer */
    bool first_list_is_out; /* and counted in zkl_shared_list's out */
    /* bundle.c's: the owner was notified of its failure, and only its end is still to report */
    bool bundle_has_failed;
    /* The contender that waits for this one's node, which is deleted, and is notified once the
     * reason is known. */
    struct zkl_contender *heir, *heir_of;
};

/* It shares a transaction with others, or will. */
static inline bool zkl_contender_is_together(const struct zkl_contender *c)
{
    return c->transaction || c->machine.lock_request.together;
}

static inline bool zkl_contender_counts_for(const struct zkl_contender *c, enum zkl_count count)
{
    return c->counted >> count & 1;
}

/* What a client knows of the children of a path that it makes nodes at by transactions:
 * transaction.h. */
struct zkl_children_view {
    uint64_t link;    /* the number of the link it was got over; 0: nothing is known */
    int64_t czxid;    /* the node's */
    int32_t cversion; /* its number of changes when it was listed last, */
    uint32_t own;     /* and how many this client has made since, as far as was answered */
    bool calm;        /* when it was listed last, no other client had changed anything */
    /* A transaction failed by a part at this path: until then its writes are sent singly;
     * CLOCK_MONOTONIC. */
    int64_t singly_until_mono_ns;
};

/* Creates and deletes of single contenders that wait for others, to go out in one transaction:
 * group_commit.h. */
struct zkl_group_commit {
    unsigned from;    /* ZKL_GROUP_COMMIT_FROM, except in tests; 0: none wait */
    size_t under_way; /* creates and deletes whose answers are awaited */
    bool answered;    /* one was answered since the last check */
    unsigned credit;  /* how many times few may be sent together before it counts as quiet */
    size_t held;
    struct zkl_contender *first, *last;
};

/* What a client knows of a path at which it locks a mutex and no other client comes between:
 * unlisted_grant.c. */
struct zkl_unlisted_grant {
    struct zkl_subscription lock_path; /* the watch on the path's node */
    size_t live_count;                 /* contenders of this client that queue there, or hold */
    unsigned streak; /* nodes in a row, each with the number after that of the one before, ... */
    int32_t next_number; /* ... which was first and is deleted: the next node's; 0: none was yet */
    uint64_t release_watch_id; /* the watch that stood since before that; 0: none */
    /* the contender that made this client's newest node there; NULL: it has ended */
    struct zkl_contender *last;
    uint64_t last_link; /* the number of the link over which that was answered */
    /* Nodes in a row, each with the number after that of this client's node before, which was
     * there. */
    unsigned row;
    bool last_is_behind; /* next_number is of the same path's node as the newest node's number */
};

/* The lists of one path that are out; see list_coalescing.h. */
struct zkl_shared_list {
    struct zkl_contender *leader; /* whose list is for all that list again, ... */
    uint64_t round;               /* in this round: else it says nothing */
    /* the contender that sent the last of the first lists that are out */
    struct zkl_contender *last;
    size_t out; /* how many these are */
};

/* A path at which a client locks: one object for all that lock there, which outlives them. */
struct zkl_path {
    const char *text;
    size_t length;
    struct zkl_children_view view;
    struct zkl_unlisted_grant unlisted;
    struct zkl_shared_list lists;
};

/* Of a path where nobody has locked yet. text: as long as the path. */
static inline struct zkl_path zkl_path_of(const char *text)
{
    return (struct zkl_path){.text = text, .length = strlen(text)};
}

/* One thing that a caller wants to know or done, apart from any contender. It waits for the link,
 * is sent, and sent again if the answer was lost; see query.c. */
struct zkl_query {
    /* The asker's, unchanged until it is answered: GET, STAT, LIST_LOCK_PATH, SYNC, SET, DELETE,
     * MAKE, ACL, PARTS as in a request; or WATCH, which is answered by NONODE as soon as path is not
     * the node with this czxid (0: any) any more. Text is borrowed. */
    enum zkl_request_kind kind;
    const char *path;
    const char *data;
    bool flag;
    int32_t version;
    const struct zkl_part *parts;
    size_t part_count;
    int64_t czxid;
    bool once; /* a write that must not be repeated: a lost answer is reported (LINK) */
    /* Called once: with a reply (borrowed), or, if reply is NULL, with ZKL_ECLOSED or ZKL_EAUTH. It
     * must not call the core; from then on the core has no pointer to the query any more. */
    void (*answered)(struct zkl_query *query, int code, const struct zkl_reply *reply);

    /* The core's. */
    struct zkl_query *next, *prev;
    bool parked; /* nothing is under way */
    struct zkl_pending slot;
    struct zkl_subscription sub;
};

/* The kinds of what is due, in the order in which they are checked; see due.h. */
enum zkl_due_kind { ZKL_DUE_BUNDLE, ZKL_DUE_LOCAL_QUEUE, ZKL_DUE_CACHE, ZKL_DUE_KINDS };

struct zkl_due {
    struct zkl_due *next;
    bool listed;
};

struct zkl_leftover;

/* Nodes of this client that belong to no place of it: leftovers.h. */
struct zkl_leftovers {
    struct zkl_leftover *first, *last;
    size_t count;
    int64_t due_mono_ns; /* when the next one is deleted or looked for; INT64_MAX: none is */
    struct zkl_pending remove, barrier, list;
};

#define ZKL_HEARTBEAT_CHECKS_MAX 128
#define ZKL_LEADER_CHECKS_MAX 16
#define ZKL_HEARTBEATS_MAX 16  /* under way together */
#define ZKL_TRANSACTION_MAX 64 /* nodes made or deleted in one; ZKL_MULTI_MEMBERS_MAX at least */
#define ZKL_PENDING_BUCKETS 256
#define ZKL_WATCH_BUCKETS 256
#define ZKL_SHARE_FROM 4 /* first lists of one path, before others follow: a few race as before */

#define ZKL_GROUP_COMMIT_FROM 4 /* writes under way, before others wait to go out together */
/* Locks in a row without another client between, before the core asks for no list. */
#define ZKL_UNLISTED_FROM 8

/* After a reconnect libzookeeper restores all watches with one request, of this many bytes at most:
 * a server hangs up on a longer one (jute.maxbuffer, 0xfffff unless configured), and the client
 * would come back with it for ever. */
#define ZKL_WATCH_BYTES_MAX 1000000

/* The end of a session is one transaction with the paths of all nodes that it owns. Of more bytes
 * than jute.maxbuffer twice (2 x 0xfffff unless configured) no server can read it again. Half of
 * that is for this client's nodes; the rest, for a second node of each that a lost answer hides. */
#define ZKL_EPHEMERAL_BYTES_MAX 1000000

/* One transaction that checks our own nodes. */
struct zkl_heartbeat {
    struct zkl_pending pending;
    uint64_t serial; /* of the last one that was sent */
    uint64_t round;  /* number of the last contender checked, where one can't check all */
};

struct zkl_core {
    struct zkl_port *port;
    struct zkl_session session;
    struct zkl_time now; /* of the event being handled */
    bool changed;        /* perhaps, since the driver looked last */
    struct zkl_tracer tracer;
    uint64_t last_id, last_watch, last_number;
    uint64_t link; /* a number for each time that it was made or broke */
    bool forgets;  /* the ended session, at this moment; the driver's handle is still that one's */
    size_t counts[ZKL_COUNTS]; /* how many contenders */
    int64_t lease_boot; /* when the first lease ends, or before; CLOCK_BOOTTIME, INT64_MAX: none */
    struct zkl_contender *first, *last;
    struct zkl_query *queries;
    size_t parked; /* how many of those must be sent */
    struct zkl_pending *pending[ZKL_PENDING_BUCKETS];
    size_t pending_count;
    struct zkl_pending *refused; /* could not be sent: answered when the present step is over */
    struct zkl_watch *watches[ZKL_WATCH_BUCKETS];
    struct zkl_watch *removing; /* unwanted watches, until the server has dropped them */
    size_t removals_due;        /* how many of those the server does not know of yet */
    size_t watch_count;
    size_t watch_bytes, watch_bytes_max; /* those to be removed included */
    /* of the nodes that the session owns or may own: see ephemerals.h; those that will stay until
     * its end are in it */
    size_t ephemeral_bytes, ephemeral_bytes_left;
    uint64_t ephemeral_bytes_max; /* set by the driver, if it is not the usual one */
    /* contenders that list again from here on share one list; see list_coalescing.c */
    bool sharing;
    uint64_t share_round; /* how often that has begun */
    size_t share_from;    /* ZKL_SHARE_FROM, except in tests; likewise: */
    unsigned unlisted_from;
    struct {
        unsigned hung_up; /* in a row */
        bool unknown;
        bool answered; /* over this link */
    } opcodes[ZKL_OPCODES];
    struct zkl_group_commit group_commit;
    /* Deletes that are asked for now go out in it, by who has set it; NULL: each by itself. */
    struct zkl_transaction *collecting;
    struct zkl_leftovers leftovers;
    int64_t learned_mono_ns; /* when that was learned last */
    bool is_blamed;          /* of the last link that broke, what was out first is known, */
    bool is_suspected;       /* and what was out but for keepalives: */
    bool is_useful;          /* something was answered over this link */
    uint32_t suspects;       /* bits: these requests, none of which was answered since, */
    unsigned suspicions;     /* over so many links in a row */
    uint32_t answered_kinds; /* bits: of these requests one was answered over this link */
    size_t chroot_length;    /* set by the driver: it is part of each path there */
    struct zkl_due *due[ZKL_DUE_KINDS]; /* what to check when the event is over */
    /* News of a contender, to all that it is part of; false: they are its owner's, too. */
    bool (*tell_composites)(struct zkl_core *core, struct zkl_contender *c,
                            const struct zkl_notification *notification);
    struct zkl_local_queue *timed_local_queues; /* those with a time to be checked, */
    int64_t local_queues_mono_ns;  /* of which this is the first; INT64_MAX: there is none */
    struct zkl_read_cache *caches; /* those with a node, */
    int64_t caches_mono_ns;        /* and when to check the first, or before */
    struct zkl_heartbeat heartbeats[ZKL_HEARTBEATS_MAX]; /* the first alone, but after failures */
    struct zkl_heartbeat recheck; /* of the nodes that may not be checked; see heartbeat.h */
    struct zkl_pending keepalive, first_read;
    struct zkl_pending watched_read;         /* a keepalive that asks for a watched node, */
    uint64_t looked_at;                      /* this watch's, */
    int64_t looked_mono_ns;                  /* and when it was sent */
    struct zkl_pending leader_check;         /* of nodes that contenders wait for, */
    uint64_t checked[ZKL_LEADER_CHECKS_MAX]; /* by these watches, */
    int64_t check_mono_ns;                   /* and when it is due next */
    /* The leader had no node of this one, asked over that link; 0: it has not said so. */
    uint64_t denied_watch, denied_link;
    /* set by the driver: one read at the first link, requested by ZKL_SA_FIRST_READ */
    bool first_read_wanted;
    enum zkl_answer first_read_answer;
    bool heartbeat_wanted;       /* immediately, whatever the pace */
    bool heartbeat_failed;       /* by one of its nodes */
    unsigned heartbeat_failures; /* in a row */
    int64_t heartbeat_hold_off;  /* not before this, after a failed one; CLOCK_MONOTONIC */
    int64_t recheck_mono_ns;     /* when the next one is due, if there is a node to check */
    uint64_t heartbeats_sent;
    int64_t last_send_mono_ns;
    int64_t put_off_mono_ns;    /* when what waiters put off is due; INT64_MAX: nothing is */
    int64_t last_retry_mono_ns; /* of what could not be sent for want of memory */
    /* When to ask again for something that a server refused; INT64_MAX: never. */
    int64_t again_mono_ns;
    int64_t last_again_mono_ns;       /* when that was done last */
    int64_t again_ns;                 /* how long that waits, more each time */
    uint64_t sent[ZKL_REQUEST_KINDS]; /* for metrics: requests that left, */
    struct zkl_histogram writes;      /* and how long quorum writes took */
};

/* Report a decision, at the present time. */
static inline void zkl_core_trace(struct zkl_core *core, struct zkl_trace trace)
{
    trace.mono_ns = core->now.mono_ns;
    if (core->port->trace)
        core->port->trace(core->port, &trace);
}

/* May requests be sent? The next session can be connected while the last one is being forgotten,
 * and then the driver does not know its handle yet. */
static inline bool zkl_core_connected(const struct zkl_core *core)
{
    return zkl_session_connected(&core->session) && !core->forgets;
}

/* Is the contender notified of release requests at its node while that has no holder? The limit of
 * watches refuses these subscriptions first. */
static inline bool zkl_contender_hears(const struct zkl_contender *c)
{
    return !c->machine.lock_request.watch_own || c->subs[ZKL_SUB_OWN].watch;
}

/* While a contender waits or an answer is due, some request is sent at least this often: a
 * ZooKeeper server can hold back an answer or a watch event until any request reaches it
 * (ZOOKEEPER-4537). */
#define ZKL_KEEPALIVE_MS 300
#define ZKL_RETRY_MS 300
#define ZKL_AGAIN_MAX_MS 5000
#define ZKL_PUT_OFF_MS 300

/* tick_ms: of the servers that may lead; 0: unknown. */
void zkl_core_init(struct zkl_core *core, struct zkl_port *port, int timeout_ms, int tick_ms);
/* Frees what the core itself allocated. No contender may be left. */
void zkl_core_fini(struct zkl_core *core);

/* --- what happened ------------------------------------------------------ */

void zkl_core_session_event(struct zkl_core *core, const struct zkl_session_event *event);
void zkl_core_reply(struct zkl_core *core, struct zkl_time now, const struct zkl_reply *reply);

enum zkl_fired { ZKL_FIRED_DELETED, ZKL_FIRED_OTHER };
void zkl_core_fired(struct zkl_core *core, struct zkl_time now, uint64_t watch_id,
                    enum zkl_fired what);
void zkl_core_timer(struct zkl_core *core, struct zkl_time now);
/* When zkl_core_timer is due next, on CLOCK_MONOTONIC; INT64_MAX: never. */
int64_t zkl_core_next_timeout(const struct zkl_core *core, struct zkl_time now);

/* --- what the owner wants ----------------------------------------------- */

/* contender is the caller's memory, which the core uses until ZKL_NOTIFY_ENDED. */
void zkl_core_acquire(struct zkl_core *core, struct zkl_time now, struct zkl_contender *contender,
                      const struct zkl_lock_request *lock_request);
/* End the lock request with this code, unless it was granted or ended before. */
void zkl_core_stop(struct zkl_core *core, struct zkl_time now, struct zkl_contender *contender,
                   int code);
/* The owner's last unlock; answered by RELEASED, perhaps before this returns. */
void zkl_core_release(struct zkl_core *core, struct zkl_time now, struct zkl_contender *contender);
/* The owner ends while it holds. */
void zkl_core_abandon(struct zkl_core *core, struct zkl_time now, struct zkl_contender *contender,
                      int reason);
/* Let the hold end lease_ns from now; false: it has ended. */
bool zkl_core_renew(struct zkl_core *core, struct zkl_time now, struct zkl_contender *contender,
                    int64_t lease_ns);
/* query is the caller's memory, which the core uses until it is answered (perhaps before this
 * returns) or withdrawn. */
void zkl_core_query(struct zkl_core *core, struct zkl_time now, struct zkl_query *query);
/* The caller wants no answer any more, if none came. */
void zkl_core_withdraw(struct zkl_core *core, struct zkl_time now, struct zkl_query *query);
/* Stop every lock request and lose every hold; the session's end follows. */
void zkl_core_close(struct zkl_core *core, struct zkl_time now);

#endif
