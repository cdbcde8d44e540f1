/* SPDX-License-Identifier: Apache-2.0
 * A ZooKeeper ensemble in memory, and the part of libzookeeper between it and a core: sessions,
 * ephemeral and sequential nodes, one-shot watches, servers that lag behind the leader or hold back
 * their answers, lost answers, expiry, wiped data. Nothing happens by itself: the test decides what
 * comes next. */
#ifndef ZKL_SIM_FAKE_H
#define ZKL_SIM_FAKE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/core.h"
#include "touches.h"

#define FAKE_TIMEOUT_MS 1000

/* What an ensemble does to its clients, for the tally. */
#define FAKE_FAULT_LIST(X)                                                                         \
    X(FAKE_REQUEST_LOST, "request lost")                                                           \
    X(FAKE_ANSWER_LOST, "answer lost") /* the request was carried out */                           \
    X(FAKE_EVENT_LOST, "watch event caught up")                                                    \
    X(FAKE_CUT, "link cut")                                                                        \
    X(FAKE_LAG, "connected to a lagging server")                                                   \
    X(FAKE_EXPIRY, "session expired")                                                              \
    X(FAKE_STALE_READ, "read answered without quorum")                                             \
    X(FAKE_STALE_SYNC, "sync answered by a deposed leader")                                        \
    X(FAKE_NEVER_WRITTEN, "write kept by a server without quorum")                                 \
    X(FAKE_COUNTER_STUCK, "sequence counter stuck")                                                \
    X(FAKE_COUNTER_BELOW, "negative sequence number")                                              \
    X(FAKE_TOUCH_LOST, "touch lost with its server")                                               \
    X(FAKE_TOUCH_LATE, "touch of a session off the queue")                                         \
    X(FAKE_RAISED, "timeout raised by a reconnect")                                                \
    X(FAKE_LOWERED, "timeout lowered by a reconnect")                                              \
    X(FAKE_WRONG_ANSWER, "connected by an earlier attempt's answer")                               \
    X(FAKE_OWN_ERROR, "error by a server of its own")       /* the leader does not hear of it */   \
    X(FAKE_UNKNOWN_WRITES, "write of an unknown session")   /* it has ended */                     \
    X(FAKE_WOULD_NOT, "request that a server would not do") /* too busy, over quota, or such */    \
    X(FAKE_HUNG_UP, "request that a server hung up on")                                            \
    X(FAKE_NOT_RESUMED, "session that no server resumes") /* and that lives on */                  \
    X(FAKE_LATE_WRITE,                                                                             \
      "write of an old link carried out over the new one") /* behind what it showed */

enum fake_fault { FAKE_FAULT_LIST(FAKE_ENUM) FAKE_FAULTS };

/* Repeatable random numbers. */
struct fake_prng {
    uint64_t state;
    bool plain; /* nothing out of the ordinary happens: always 0, and no chance */
};
uint64_t fake_random64(struct fake_prng *prng);
/* 0 to n - 1. */
unsigned fake_random(struct fake_prng *prng, unsigned n);
/* True once in n. */
bool fake_chance(struct fake_prng *prng, unsigned n);

struct fake_node {
    char *path;
    int64_t czxid, dzxid; /* dzxid 0: it exists */
    int64_t owner;        /* session of an ephemeral node */
    int32_t counter;      /* how many children were ever made: the next sequence number */
    int32_t old_changes;  /* of its children that are not remembered one by one, */
    int64_t old_pzxid;    /* and the last of them */
    char *text;           /* its data; NULL: none */
    int32_t version;      /* of that */
    int64_t shown_czxid;  /* the czxid in answers */
    bool denied;          /* to its owner's heartbeats: its ACL was replaced */
    bool is_told;         /* its owner has the event of its deletion */
};

struct fake_change {
    int64_t zxid;
    char *path;
    enum { FAKE_DELETED, FAKE_CHANGED, FAKE_CHILDREN } what;
    char *old_text; /* CHANGED: the data until then */
};

struct fake_session {
    int64_t id;
    int timeout_ms;    /* stored at its creation */
    int64_t expire_ms; /* when it is taken off the leader's queue, */
    int64_t close_ms;  /* and when its turn comes after that; 0: it was not taken off */
    bool dead;
};

struct fake_watch {
    char *path;
    enum zkl_watch_type type;
    uint64_t id; /* libzookeeper's context; 0 in the server's own list */
};

struct fake_watches {
    struct fake_watch *list;
    size_t count, room;
};

/* A request on its way to the server, or what comes back. */
struct fake_message {
    struct fake_message *next;
    enum { FAKE_REQUEST, FAKE_REPLY, FAKE_FIRED, FAKE_UP, FAKE_DOWN, FAKE_EXPIRED } type;
    struct zkl_request request; /* its texts are owned here */
    struct zkl_reply reply;     /* likewise */
    int64_t zxid;               /* of the server's view when it was sent */
    bool received;              /* libzookeeper's tables know of it */
    /* FIRED */
    char *path;
    enum zkl_fired fired;
    enum zkl_watch_type watch;
    uint64_t ids[8]; /* of the contexts to notify */
    size_t id_count;
};

struct fake_queue {
    struct fake_message *first, **end;
    size_t count;
};

/* One handle of libzookeeper. */
struct fake_handle {
    struct fake *fake;
    int64_t session; /* 0: none yet */
    int64_t opened_ms;
    unsigned links; /* reported */
    bool linked;    /* TCP */
    /* by the server; or the link broke in some other way that is noticed immediately */
    bool hung_up;
    bool serves_no_more; /* it is about to hang up */
    bool too_busy;       /* for the next request, which is not carried out */
    bool stuck;          /* packets get lost both ways, unnoticed so far */
    int64_t stuck_ms;
    bool stalled;  /* the server sits on its answers until any request reaches it */
    bool isolated; /* the server is cut off from the others: it answers reads, and writes nothing */
    bool deposed;  /* and believes to be the leader: it answers sync too */
    bool expired;  /* libzookeeper knows, the core may not */
    bool forgotten;    /* the server lost its data: never connects again, never reported */
    bool may_lower;    /* a reconnect may negotiate less */
    bool comes_behind; /* a reconnect leads to the oldest server that takes it */
    bool attempted;    /* one that failed has touched the session */
    int64_t down_ms;   /* when the link broke, or the last attempt failed */
    int timeout_ms;    /* negotiated last, asked for next */
    struct fake_learner learner;
    int64_t view; /* what its server has applied */
    int64_t seen; /* the newest zxid that libzookeeper knows of */
    int64_t told; /* of what it has reported */
    struct fake_queue out, held, in;
    /* Requests of links that have broken: a server has read them, and carries them out later. */
    struct fake_queue late;
    int64_t late_ms;           /* when; INT64_MAX: not before the next link */
    struct fake_watches known; /* libzookeeper's */
    struct fake_watches armed; /* the server's */
    /* With switches only: */
    int64_t claimed; /* the session that events still name */
    bool outdated;   /* what begins this link touched the session some time ago */
};

/* For each of a list; it may be const, or NULL, and must not grow meanwhile. */
#define each_of(list, count, item)                                                                 \
    for (__typeof__((list) + 0) item = (list); item && item < (list) + (count); item++)
#define each_node(fake, node) each_of((fake)->nodes, (fake)->node_count, node)
#define each_change(fake, change) each_of((fake)->changes, (fake)->change_count, change)

#define FAKE_HANDLES 16
/* For each handle that is open. */
#define each_fake_handle(fake, h)                                                                  \
    for (size_t at_ = 0; at_ < FAKE_HANDLES; at_++)                                                \
        for (struct fake_handle *h = (fake)->handles[at_]; h; h = NULL)

struct fake {
    struct fake_prng *prng;
    int64_t now_ms;
    int64_t zxid;
    int64_t zxid_back; /* how much lower the reported zxid is, since the last election */
    int64_t last_session;
    bool unknown[ZKL_OPCODES]; /* to all servers of this ensemble, */
    /* And then. */
    enum { FAKE_SAYS_SO, FAKE_SAYS_SO_AND_HANGS_UP, FAKE_HANGS_UP, FAKE_MANNERS } manner;
    unsigned would_not_once_in; /* the server refuses one request in this many; 0: none */
    bool resumes_none;          /* they end a session for its client with the link */
    bool reads_ahead;           /* what its servers have read of a link outlives that link */
    struct fake_node *nodes;
    size_t node_count, node_room;
    struct fake_change *changes;
    size_t change_count, change_room;
    struct fake_session *sessions;
    size_t session_count, session_room;
    struct fake_handle *handles[FAKE_HANDLES];
    size_t tally[FAKE_FAULTS];
    struct fake_rules rules;
    size_t close_bytes_max; /* of the paths in the transaction that ends a session: */
    bool unreadable;        /* one was longer, and no server can read it again */
    /* A session is about to expire; NULL: no observer. */
    void (*expires)(struct fake *fake, int64_t session);
};

void fake_init(struct fake *fake, struct fake_prng *prng);
void fake_fini(struct fake *fake);

/* --- the tree ------------------------------------------------------------- */

struct fake_node *fake_find(struct fake *fake, const char *path);
void fake_create(struct fake *fake, const char *path, int64_t owner, int32_t counter);
void fake_delete(struct fake *fake, struct fake_node *node);
void fake_write(struct fake *fake, struct fake_node *node, const char *text);
/* Its name, if it is a child of path, else NULL. */
const char *fake_child_of(const struct fake_node *node, const char *path);
bool fake_has_children(const struct fake *fake, const char *path);
bool fake_alive(const struct fake *fake, int64_t session);
int fake_timeout_ms(const struct fake *fake, int64_t session);
struct fake_session *fake_session_of(const struct fake *fake, int64_t id);
/* A leader is elected: it gives every session its whole timeout again. */
void fake_elect(struct fake *fake);
/* All data is lost: nodes, sessions, and clients with a session never get an answer again. */
void fake_wipe(struct fake *fake);
/* The session ends now, whoever it belongs to. */
void fake_expire(struct fake *fake, int64_t session);
/* Time passes: links that work are kept alive, tables of touches handed on, silent sessions
 * expire. */
void fake_pass(struct fake *fake, int64_t ms);

/* --- handles -------------------------------------------------------------- */

struct fake_handle *fake_open(struct fake *fake);
void fake_close(struct fake_handle *h);
/* The process is killed: some of its requests were under way, the session lives on. */
void fake_kill(struct fake_handle *h);
/* The result for zkl_port.send. */
enum zkl_answer fake_send(struct fake_handle *h, const struct zkl_request *request);
bool fake_is_read(enum zkl_request_kind kind);
/* The server takes the oldest request of this handle; false: there is none, or it can't. */
bool fake_serve(struct fake_handle *h);
/* The server of this handle applies some of what it does not know yet. */
void fake_catch_up(struct fake_handle *h, int64_t zxid);
/* The server of this handle loses the others until the link breaks, as it does itself when it
 * notices. */
void fake_isolate(struct fake_handle *h, bool deposed);
/* That server gets to the others again and keeps its link. */
void fake_rejoin(struct fake_handle *h);
/* The link breaks: some answers had come, some requests were carried out, the rest is lost. */
void fake_break(struct fake_handle *h);
/* One attempt to connect. */
void fake_connect(struct fake_handle *h, bool succeeds);
/* libzookeeper has read everything that came so far, and its completion thread delivers it later:
 * no break loses it. */
void fake_receive(struct fake_handle *h);
/* Its messages say that the node is gone: the event, or whatever is newer from a server that knows.
 * An event about another node says nothing: its zxid moves none, and the next server may be
 * behind it. */
bool fake_has_told(const struct fake_handle *h, const struct fake_node *node);
/* The next message that libzookeeper's completion thread delivers; NULL: none. The caller frees
 * it. */
struct fake_message *fake_next(struct fake_handle *h);
void fake_message_free(struct fake_message *message);

#endif
