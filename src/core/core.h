/* SPDX-License-Identifier: Apache-2.0
 * The whole client without I/O: contenders, session, watches, heartbeat, and what is awaited from
 * the server. The driver (or a simulation) feeds it what happened and when, and does what it asks
 * through the port. Not thread safe: the caller serialises (in the library: the client's mutex). */
#ifndef ZKL_CORE_CORE_H
#define ZKL_CORE_CORE_H

#include "contender.h"
#include "session.h"

/* --- requests to the server --------------------------------------------- */

enum zkl_request_kind {
    ZKL_REQ_CREATE,    /* ephemeral sequential: path is the prefix; answered by name and czxid */
    ZKL_REQ_MAKE,      /* path: a container, or persistent if flag is set */
    ZKL_REQ_LIST,      /* path: children */
    ZKL_REQ_LIST_ROOT, /* path: children and the node's czxid; with watch_id a child watch is armed
                        */
    ZKL_REQ_SYNC,      /* path */
    ZKL_REQ_STAT,      /* path: czxid and owning session */
    ZKL_REQ_WATCH,     /* path, watch_id: data watch, left only if the node exists */
    ZKL_REQ_UNWATCH,   /* path: all data (flag: child) watches of this client, on the server too */
    ZKL_REQ_DELETE,    /* path */
    ZKL_REQ_RENEW,     /* path: delete the empty node and make it again with its ACL and data */
    ZKL_REQ_HEARTBEAT, /* checks: one transaction that checks all these nodes; a quorum write */
    ZKL_REQ_NUDGE,     /* some read, so that the server gets going */
    ZKL_REQUEST_KINDS
};

struct zkl_request {
    uint64_t id;
    enum zkl_request_kind kind;
    const char *path; /* borrowed until send returns */
    const char *data; /* CREATE: the node's */
    bool flag;
    uint64_t watch_id;
    const char *const *checks;
    size_t check_count;
};

struct zkl_reply {
    uint64_t id;
    enum zkl_answer answer;
    int number;       /* what ZooKeeper called it, for messages */
    const char *name; /* CREATE: the last component */
    int64_t czxid;
    int64_t node_session;
    const char *const *children;
    size_t child_count;
    size_t failed_check; /* HEARTBEAT with NONODE: which one */
};

/* --- what the core tells about a contender ------------------------------ */

enum zkl_news_type {
    ZKL_NEWS_GRANTED,
    ZKL_NEWS_FAILED,   /* code, detail; the contender ends */
    ZKL_NEWS_RELEASED, /* code, detail */
    ZKL_NEWS_STATE,    /* state, reason: SUSPECT, HELD or LOST */
    ZKL_NEWS_ENDED     /* the core has no pointer to it any more */
};

struct zkl_news {
    enum zkl_news_type type;
    int code;
    int state;
    int reason;
    int number;         /* ZooKeeper's code of the answer that led here, if any */
    const char *detail; /* borrowed; may be NULL */
};

struct zkl_core;
struct zkl_contender;

/* What the core needs of its surroundings. None of these may call the core again. */
struct zkl_port {
    /* Send, or answer at once with what keeps it from being sent (LINK, NOMEM); OK: the reply will
     * come. */
    enum zkl_answer (*send)(struct zkl_port *port, const struct zkl_request *request);
    void (*news)(struct zkl_port *port, struct zkl_contender *contender,
                 const struct zkl_news *news);
    void (*session)(struct zkl_port *port, unsigned actions); /* ZKL_SA_* */
    void (*random)(struct zkl_port *port, unsigned char bytes[16]);
    void (*trace)(struct zkl_port *port, const char *line); /* NULL: no traces */
};

/* --- objects ------------------------------------------------------------ */

/* One awaited answer. Embedded where it belongs, so that awaiting needs no memory. */
struct zkl_pending {
    uint64_t id; /* 0: nothing is awaited */
    struct zkl_pending *next;
    struct zkl_contender *contender; /* whose it is; at most one of the two is set */
    struct zkl_watch *watch;
    enum zkl_request_kind kind;
    enum zkl_answer refusal; /* why it could not be sent */
    int64_t sent_boot_ns;
};

enum zkl_watch_type { ZKL_WATCH_DATA, ZKL_WATCH_CHILD };

/* A contender's interest in a watch. */
struct zkl_subscription {
    struct zkl_watch *watch;
    struct zkl_subscription *next, *prev;
    struct zkl_contender *contender;
};

enum { ZKL_SUB_PRED, ZKL_SUB_OWN, ZKL_SUB_ROOT, ZKL_SUBS };
enum {
    ZKL_SLOT_CREATE, /* MAKE too */
    ZKL_SLOT_LIST,
    ZKL_SLOT_SYNC,
    ZKL_SLOT_STAT, /* RENEW too */
    ZKL_SLOT_DELETE,
    ZKL_SLOTS
};

struct zkl_contender {
    struct zkl_contender_machine machine;
    struct zkl_contender *next, *prev; /* in the core's queue of contenders, oldest first */
    const char *data;                  /* the node's: who we are */
    uint64_t number;                   /* for traces */
    uint64_t beat;                     /* the heartbeat that checks our node last, and where */
    size_t beat_index;
    struct zkl_pending slots[ZKL_SLOTS];
    struct zkl_subscription subs[ZKL_SUBS];
};

#define ZKL_HEARTBEAT_CHECKS_MAX 128
#define ZKL_PENDING_BUCKETS 256
#define ZKL_WATCH_BUCKETS 256

struct zkl_core {
    struct zkl_port *port;
    struct zkl_session session;
    struct zkl_time now; /* of the event being handled */
    struct zkl_tracer tracer;
    uint64_t last_id, last_watch, last_number;
    /* How many contenders ... */
    size_t contenders;
    size_t need_window; /* ... want heartbeats */
    size_t waiting;     /* ... wait for something outside */
    size_t hopeful;     /* ... would be helped by a proof of the session */
    size_t bounded;     /* ... are to hear when the window ends */
    size_t stranded;    /* ... leave, with nothing under way */
    struct zkl_contender *first, *last;
    struct zkl_pending *pending[ZKL_PENDING_BUCKETS];
    size_t pending_count;
    struct zkl_pending *refused; /* could not be sent: answered when the present step is over */
    struct zkl_watch *watches[ZKL_WATCH_BUCKETS];
    struct zkl_watch *removing; /* watches nobody wants, until the server has dropped them */
    size_t removals_due;        /* of those, the server is yet to be told of */
    size_t watch_count;
    struct zkl_pending heartbeat, nudge, hello;
    bool hello_wanted; /* set by the driver: one read at the first link, told by ZKL_SA_HELLO */
    enum zkl_answer hello_answer;
    bool heartbeat_wanted;      /* at once, whatever the pace */
    int64_t heartbeat_hold_off; /* not before this, after a failed one; CLOCK_MONOTONIC */
    uint64_t beats;
    uint64_t beat_round; /* number of the last contender checked, where one beat can't check all */
    int64_t last_send_mono_ns;
    int64_t last_retry_mono_ns; /* of what could not be sent for want of memory */
};

/* While somebody waits or an answer is due, some request goes out this often: a ZooKeeper server
 * can sit on an answer or a watch event until any request reaches it (ZOOKEEPER-4537). */
#define ZKL_NUDGE_MS 300
#define ZKL_RETRY_MS 300

void zkl_core_init(struct zkl_core *core, struct zkl_port *port, int timeout_ms);
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

struct zkl_wish {
    const char *root; /* path; outlives the contender's ENDED */
    const char *data; /* of the node, text; likewise */
    bool try_only, try_sync, watch_own;
};

/* contender is the caller's memory, which the core uses until ZKL_NEWS_ENDED. */
void zkl_core_acquire(struct zkl_core *core, struct zkl_time now, struct zkl_contender *contender,
                      const struct zkl_wish *wish);
/* End the wish with this code, unless it was granted or ended before. */
void zkl_core_stop(struct zkl_core *core, struct zkl_time now, struct zkl_contender *contender,
                   int code);
/* The owner's last unlock; answered by RELEASED, perhaps before this returns. */
void zkl_core_release(struct zkl_core *core, struct zkl_time now, struct zkl_contender *contender);
/* The owner goes away holding. */
void zkl_core_abandon(struct zkl_core *core, struct zkl_time now, struct zkl_contender *contender,
                      int reason);
/* Stop every wish and lose every hold; the session's end is to follow. */
void zkl_core_close(struct zkl_core *core, struct zkl_time now);

#endif
