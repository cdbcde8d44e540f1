/* SPDX-License-Identifier: Apache-2.0
 *
 * zklock.h - distributed locks on Apache ZooKeeper for multi-process C programs.
 *
 * A client is one connection to a ZooKeeper ensemble; it lives through reconnects and through new
 * sessions. A mutex is a handle on one path of that ensemble. Any number of threads and processes
 * may contend for the same path, each thread with its own place in one first-come-first-served
 * queue; a thread that holds a mutex may lock it again (the mutex is reentrant, with a count).
 *
 *     struct zkl_client_options options = ZKL_CLIENT_OPTIONS_INIT;
 *     struct zkl_client *client;
 *     struct zkl_mutex *mutex;
 *
 *     options.servers = "127.0.0.1:2181";
 *     if (zkl_client_open(&client, &options) == 0) {
 *         if (zkl_mutex_new(&mutex, client, "/locks/report", NULL) == 0) {
 *             if (zkl_mutex_lock(mutex) == 0) {
 *                 write_report(zkl_mutex_token(mutex));
 *                 zkl_mutex_unlock(mutex);
 *             }
 *             zkl_mutex_free(mutex);
 *         }
 *         zkl_client_free(client);
 *     }
 *
 * Every call returns 0 or one negative enum zkl_error unless its comment says otherwise, never
 * errno and never a ZooKeeper number; zkl_error_detail() gives the sentence with the particulars.
 * Every call may be made from any thread unless its comment says otherwise. Calls that can wait
 * are not to be made from a library callback (ZKL_EINCALLBACK) nor, with an inherited client, from
 * a forked child (ZKL_EFORK): open a client of its own in each process. While a call runs, pthread
 * cancellation of the calling thread is off; a zkl_cancel object is the way to stop a wait.
 *
 * What a lock promises, and what it does not, is in docs/guarantees.md.
 */
#ifndef ZKLOCK_ZKLOCK_H
#define ZKLOCK_ZKLOCK_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define ZKL_API __attribute__((visibility("default")))
#else
#define ZKL_API
#endif

/* --- version ------------------------------------------------------------ */

#define ZKL_VERSION_MAJOR 0
#define ZKL_VERSION_MINOR 1
#define ZKL_VERSION_PATCH 0
/* One number that grows with every release: 1.2.3 is 10203. */
#define ZKL_VERSION_NUMBER (ZKL_VERSION_MAJOR * 10000 + ZKL_VERSION_MINOR * 100 + ZKL_VERSION_PATCH)

/* The version of the library that runs, as text ("0.1.0") and, through number if not NULL, as
 * ZKL_VERSION_NUMBER was when it was built. */
ZKL_API const char *zkl_version(int *number);

/* --- errors ------------------------------------------------------------- */

enum zkl_error {
    ZKL_OK = 0,
    /* The call itself is wrong: mend the program. */
    ZKL_EINVAL = -1,      /* a NULL, a struct without its size, or an option out of range */
    ZKL_EBADPATH = -2,    /* the path is not an absolute, normalised ZooKeeper path below "/" */
    ZKL_EBADTIMEOUT = -3, /* a negative timeout, one above ZKL_TIMEOUT_MAX_MS, too short a lease */
    ZKL_EBADSERVERS = -4, /* not HOST:PORT[,HOST:PORT...][/CHROOT], an IPv6 address in brackets */
    ZKL_ECLOSED = -5,     /* the client is closed */
    ZKL_EFORK = -6,       /* the client was opened by the parent process */
    ZKL_EINCALLBACK = -7, /* a call that waits, made from a library callback */
    ZKL_EDEADLK = -8,     /* this thread holds the same path through another handle, or has the read
                             lock and asks for the write lock, or a multi-lock names a path twice */
    ZKL_ENOTOWNER = -9,   /* the calling thread does not hold the lock */
    ZKL_EOVERFLOW = -10,  /* locked again more than ZKL_HOLD_COUNT_MAX times */
    /* Not held, and nothing is wrong: what the caller does next is its own choice. */
    ZKL_EBUSY = -11,     /* trylock: somebody else has it; free: held or waited on */
    ZKL_ETIMEDOUT = -12, /* the deadline passed */
    ZKL_ECANCELED = -13, /* the wait's cancel object was set */
    /* The service: may pass. */
    ZKL_EDISCONNECTED = -14, /* no server could be reached within the bound of this call */
    ZKL_EUNCONFIRMED = -15,  /* unlock: not held any more, but unanswered; the library goes on
                                deleting the node by itself */
    ZKL_ELOST = -16,         /* the hold was lost; unlock once for each lock, then lock again */
    ZKL_ENOMEM = -17,        /* no memory */
    ZKL_ESYSTEM = -18,       /* a thread, a descriptor or one more watch could not be had */
    /* The service: will not pass by itself. */
    ZKL_EACCES = -19,     /* an ACL denies what the call needs: CREATE, READ, DELETE; WRITE for a
                             semaphore's number and for zkl_revoke */
    ZKL_EAUTH = -20,      /* the credential was refused */
    ZKL_ENOCHROOT = -21,  /* the chroot of the server list does not exist */
    ZKL_EEXHAUSTED = -22, /* the path's sequence counter is used up and a child that is no contender
                             keeps the path from being renewed */
    ZKL_EPROTO = -23,     /* an answer the library does not understand; the detail has the number */
    ZKL_EMISMATCH = -24,  /* the semaphore at the path has another number of permits */
    ZKL_ENONODE = -25,    /* inspect.h: there is no such node */
    ZKL_EFOREIGN = -26,   /* inspect.h: the node is not one of a lock; force is needed */
    ZKL_EUNPROVED = -27,  /* trylock: nobody else has it, but too little of the session is proved for a
                             grant, as after a new link or a pause; soon it will be */
    ZKL_EDOUBT = -28,     /* unlock: not held any more, and in doubt: the window had run empty before, and
                             nothing proved the hold afterwards: somebody else may have held the lock */
    ZKL_EQUOTA = -29,     /* a quota on the path, or above it, is used up */
    ZKL_EREADONLY = -30,  /* the server has lost the others and only answers reads; may pass */
    ZKL_EUNIMPLEMENTED = -31 /* the server does not do what the call needs; the detail has what it said */
};

/* A sentence for a code: what happened and what to do. Never NULL; static memory.
 * Async-signal-safe. */
ZKL_API const char *zkl_strerror(int code);

/* The last failure on the calling thread in full, with path and cause. Never NULL; valid until the
 * thread's next zklock call. Empty if no call of this thread has failed. */
ZKL_API const char *zkl_error_detail(void);

/* 1 if the same call may succeed later without any change: EBUSY, ETIMEDOUT, EDISCONNECTED, ENOMEM,
 * ESYSTEM, EUNPROVED, EREADONLY. 0 otherwise. */
ZKL_API int zkl_error_is_retryable(int code);

/* 1 if the code says that a hold existed and may be, or have been, somebody else's: stop writing.
 * ELOST, EDOUBT. */
ZKL_API int zkl_error_is_lost(int code);

/* --- waiting ------------------------------------------------------------ */

#define ZKL_NO_DEADLINE INT64_MAX
#define ZKL_TIMEOUT_MAX_MS INT64_C(315360000000) /* ten years */
#define ZKL_LEASE_MIN_MS 10 /* of a grant; a renewal can be shorter */

/* CLOCK_MONOTONIC in nanoseconds: the clock of every deadline in this library. */
ZKL_API int64_t zkl_now_ns(void);

/* A cancel object is one bit that goes from 0 to 1 at most once. Several waits, in several threads
 * and on several clients, may share one; when it is set they all end with ZKL_ECANCELED.
 * Like a client it belongs to the process that made it (ZKL_EFORK in a forked child). */
struct zkl_cancel;

/* 0, EINVAL, ENOMEM, ESYSTEM (no descriptor: each object has one). */
ZKL_API int zkl_cancel_new(struct zkl_cancel **cancel);
/* Set the bit. Async-signal-safe; errno is kept. NULL is ignored. As soon as the bit can be seen, by
 * zkl_cancel_is_set or by a wait that says ECANCELED, the object may be freed, also while this call
 * goes on in another thread. */
ZKL_API void zkl_cancel_set(struct zkl_cancel *cancel);
/* 1 if set. Async-signal-safe. */
ZKL_API int zkl_cancel_is_set(const struct zkl_cancel *cancel);
/* Requires: no later call with this object. Waits that still use it keep what they need. NULL is
 * ignored. */
ZKL_API void zkl_cancel_free(struct zkl_cancel *cancel);

#define ZKL_WAIT_TRY 1u /* do not queue: ZKL_EBUSY if anybody is before us */
#define ZKL_WAIT_SYNC                                                                              \
    2u /* with TRY: read behind a sync, so that the answer is as of the call's start
                            and not as old as the server's replication lag; one more request */

/* How to wait, and for what. Fill with ZKL_WAIT_INIT: no deadline, no cancel, no flags, no lease. A lease begins with
 * the grant; if less than 2 ms of it are left when the caller gets the processor, the call asks for the lock again,
 * and a try ends with ETIMEDOUT. */
struct zkl_wait {
    size_t size;
    int64_t deadline_ns;       /* absolute, zkl_now_ns()'s clock, or ZKL_NO_DEADLINE */
    struct zkl_cancel *cancel; /* borrowed until the call returns; may be NULL */
    unsigned flags;            /* ZKL_WAIT_* */
    int64_t lease_ms;          /* ZKL_LEASE_MIN_MS or more: the hold is lost so long after its grant,
                                  unless renewed; 0: none */
};

static inline struct zkl_wait zkl_wait_init(void)
{
    struct zkl_wait w;
    memset(&w, 0, sizeof w);
    w.size = sizeof w;
    w.deadline_ns = ZKL_NO_DEADLINE;
    return w;
}
#define ZKL_WAIT_INIT zkl_wait_init()

/* What a successful acquire gives. */
struct zkl_grant {
    size_t size;
    uint64_t token;    /* fencing token: grows with every later grant of this path */
    int64_t window_ms; /* for so long, from now, the hold is proved; can be 0 in a re-entry */
    int hold_count;    /* 1 for a first grant, more for a re-entry */
};

static inline struct zkl_grant zkl_grant_init(void)
{
    struct zkl_grant g;
    memset(&g, 0, sizeof g);
    g.size = sizeof g;
    return g;
}
#define ZKL_GRANT_INIT zkl_grant_init()

/* --- client ------------------------------------------------------------- */

struct zkl_client;

enum zkl_client_state {
    ZKL_CLIENT_CONNECTING = 1, /* no session yet, or the next one after an expiry */
    ZKL_CLIENT_CONNECTED = 2,
    ZKL_CLIENT_SUSPENDED = 3,   /* the link is down; the session may or may not live */
    ZKL_CLIENT_EXPIRED = 4,     /* the session ended: every hold is lost, waiters queue again */
    ZKL_CLIENT_AUTH_FAILED = 5, /* final: the credential was refused */
    ZKL_CLIENT_CLOSED = 6
};

/* Runs on the client's dispatch thread, with no library lock held, in the order of the changes; the
 * state may have changed again since. Calls that wait return ZKL_EINCALLBACK in it. */
typedef void (*zkl_client_state_fn)(struct zkl_client *client, enum zkl_client_state state,
                                    void *arg);

enum zkl_log_level {
    ZKL_LOG_ERROR = 1,   /* a hold was lost, or the client can't go on */
    ZKL_LOG_WARNING = 2, /* the link, a proof, an answer or a right is missing */
    ZKL_LOG_INFO = 3,    /* the session and the holds are well again; requests to let go */
    ZKL_LOG_DEBUG = 4    /* every decision, grant and unlock */
};

enum zkl_log_kind {
    ZKL_LOG_SESSION = 1,   /* the session's state changed: from, to */
    ZKL_LOG_CONTENDER = 2, /* that of one place in one queue: likewise */
    ZKL_LOG_PERMITS = 3,   /* that of a request for permits: likewise */
    ZKL_LOG_GRANTED = 4,   /* token */
    ZKL_LOG_FAILED = 5,    /* code: there will be no grant */
    ZKL_LOG_RELEASED = 6,  /* code, of the unlock */
    ZKL_LOG_HOLD = 7,      /* state and reason, of a caller's hold */
    ZKL_LOG_DROPPED = 8,   /* dropped */
    ZKL_LOG_RESOLVER = 9   /* node: a server's name that has no address, and why; "": now it has */
};

/* One thing that happened. What does not belong to its kind is 0 or "". Valid during the callback
 * only, but for from, to and why, which are static text; there is no credential in it. */
struct zkl_log_event {
    size_t size;
    enum zkl_log_level level;
    enum zkl_log_kind kind;
    int64_t time_ns;       /* zkl_now_ns's clock */
    int64_t session;       /* ZooKeeper's id; 0: none yet */
    const char *path;      /* of the queue, without the chroot; a semaphore has two below its own */
    const char *node;      /* name of the contender's child there; of RESOLVER: the server's */
    uint64_t contender;    /* its number in this client */
    const char *from, *to; /* names of states, in docs/design.md */
    const char *why;       /* in some words */
    int code;              /* enum zkl_error */
    int state;             /* enum zkl_hold_state */
    int reason;            /* enum zkl_reason */
    uint64_t token;
    uint64_t dropped;    /* so many events are missing here: the callback is slow */
    const char *message; /* all of it as one line of text, without a newline */
};

/* Runs on the same thread, by the same rules, as zkl_client_state_fn. To print one line a message:
 *
 *     static void print_line(const struct zkl_log_event *event, void *file)
 *     {
 *         fprintf(file, "%s\n", event->message);
 *     }
 *     ...
 *     options.log_fn = print_line;
 *     options.log_arg = stderr;
 */
typedef void (*zkl_log_fn)(const struct zkl_log_event *event, void *arg);

enum zkl_acl {
    ZKL_ACL_OPEN = 0,   /* anybody may do anything: ZooKeeper's usual default */
    ZKL_ACL_CREATOR = 1 /* only this client's credential, which is to be given */
};

/* Fill with ZKL_CLIENT_OPTIONS_INIT, then set at least servers. All text is copied. */
struct zkl_client_options {
    size_t size;
    const char *servers;         /* "host:port[,host:port...][/chroot]"; an IPv6 address in brackets */
    int session_timeout_ms;      /* asked for; the server may negotiate another. 0: 10000 */
    int connect_timeout_ms;      /* > 0: open waits so long for the first answer */
    int tick_ms;                 /* the largest tickTime of any server that may lead the ensemble, where
                                    it is known: windows are longer then. 0: half of the negotiated
                                    timeout, which no server's is above unless configured so */
    const char *auth_scheme;     /* "digest", or NULL for none */
    const char *auth_credential; /* for digest "user:password", or "digest:user:password": with two
                                    colons or more "digest:" in front is the scheme, with one it is a
                                    user of that name; neither part is empty. Or one of the next two */
    const char *auth_file;       /* a file whose first line is the credential; a pipe's writer has 10 s
                                    for it */
    const char *auth_env;        /* an environment variable that holds it */
    enum zkl_acl acl;            /* of every node and parent this client makes */
    const char *owner;           /* data of the nodes; NULL: "host pid thread". At most 512 bytes */
    zkl_client_state_fn state_fn;
    void *state_arg;
    zkl_log_fn log_fn; /* what is of log_level or worse; NULL: silent */
    void *log_arg;
    enum zkl_log_level log_level; /* 0: ZKL_LOG_INFO */
    char *errbuf;                 /* gets open's failure in words; may be NULL */
    size_t errbuf_size;
};

static inline struct zkl_client_options zkl_client_options_init(void)
{
    struct zkl_client_options o;
    memset(&o, 0, sizeof o);
    o.size = sizeof o;
    return o;
}
#define ZKL_CLIENT_OPTIONS_INIT zkl_client_options_init()

/* Open a client. The connection is made in the background and kept: a client survives the loss of
 * the link, of a server and of its session. It has two threads of its own beside libzookeeper's
 * two, and a third where a server is a name; all have every signal blocked. (libzookeeper aborts the
 * process where its own can't be made: ESYSTEM comes before that, unless somebody takes the last
 * ones at that very moment.)
 * 0: *client is to be freed with zkl_client_free. Otherwise *client is untouched and errbuf says
 * why: EINVAL, EBADSERVERS, EBADTIMEOUT (connect_timeout_ms), ENOMEM, ESYSTEM; with
 * connect_timeout_ms also EDISCONNECTED, EAUTH, ENOCHROOT, EINCALLBACK. Names are looked up in
 * the background, again while no server answers: no call waits for the resolver, and a name that has
 * no address is as a server that does not answer (EDISCONNECTED, with connect_timeout_ms; errbuf
 * names it). Callbacks may run before this returns; once it has failed none does any more: those
 * that are due are waited for, however long they take, and the client they were given is gone. */
ZKL_API int zkl_client_open(struct zkl_client **client, const struct zkl_client_options *options);

/* The state now, or ZKL_EINVAL, ZKL_EFORK. Information only: a connected client may hold a lost
 * lock. */
ZKL_API int zkl_client_state(struct zkl_client *client);

/* End the session: every hold is lost (reason CLOSED), every waiting call returns ZKL_ECLOSED,
 * every node goes. Waits at most timeout_ms for the server's answer and for running callbacks.
 * Later calls that make or acquire a lock return ZKL_ECLOSED, unlock returns ZKL_ELOST, and the
 * questions answer as for a lost hold; the free calls remain.
 * 0: the server confirmed that the session ended, or it had ended before. ETIMEDOUT: closed on
 * this side, but the time was up or no server answered; what is left of the work goes on in the
 * background, and the nodes go when the session times out at the latest. EBADTIMEOUT, EINVAL,
 * EFORK, EINCALLBACK. */
ZKL_API int zkl_client_close(struct zkl_client *client, int64_t timeout_ms);

/* Close if still open (waiting at most 10 s), then give the handle up. A callback that takes longer
 * than that is not waited for: it, and those behind it, run on after this has returned, and what
 * they use is to outlive them. Mutexes of this client may be freed before or after. In a forked child: the inherited client is left alone, memory included.
 * 0, EINVAL, EFORK, EINCALLBACK (nothing done). */
ZKL_API int zkl_client_free(struct zkl_client *client);

/* --- options of one lock ------------------------------------------------ */

/* How contenders name themselves on the wire; docs/wire-format.md has who excludes whom. All
 * processes that use one path are to use names that see each other. */
enum zkl_names {
    ZKL_NAMES_CURATOR = 0, /* "_c_<uuid>-lock-<n>", "..-__READ__<n>", "..-__WRIT__<n>" */
    ZKL_NAMES_KAZOO = 1,   /* "<hex32>__lock__<n>", "<hex32>__rlock__<n>" */
    ZKL_NAMES_NAMED = 2    /* "_c_<uuid>-<name>_lock_<n>": several mutexes under one path, each of
                              its own name, that know nothing of each other; for mutexes only */
};

#define ZKL_LOCK_NAME_MAX 64 /* bytes of a lock's name */

/* Fill with ZKL_LOCK_OPTIONS_INIT. A NULL instead of options means just that. All text is copied. */
struct zkl_lock_options {
    size_t size;
    enum zkl_names names;
    const char *name;  /* with ZKL_NAMES_NAMED: at most ZKL_LOCK_NAME_MAX bytes, without "/" and
                          "_lock_" */
    const char *owner; /* data of this lock's nodes; NULL: the client's. At most 512 bytes */
    int revocable;     /* 1: ask the server to tell of requests to let go (see
                          zkl_mutex_revoke_requested); a lock with a callback always does */
    int posted_unlock; /* 1: unlock does not wait for the server's answer (see zkl_mutex_unlock) */
    int metrics;       /* 1: figures are kept of this path, in some 1.5 kB (see metrics.h) */
    /* The last two, for mutexes only, change what "first come, first served" means: see
     * docs/guarantees.md. */
    int local_handoffs_max; /* > 0: the threads that lock this handle queue with one node, and have
                               it in turn, first come first served among them: unlock hands it on to
                               the next one without a request, so often in a row while others are
                               known to queue. The node, and so the token, is one for all of them. A
                               hold that is suspect, revoked, or has a lease is not handed on. A try
                               is busy while another thread of this handle has the lock or queues */
    int64_t retain_ms;      /* > 0, at most 3,600,000: the last unlock leaves the node on the server
                               with nobody in it; this handle takes it again without a request, on the
                               same node with the same token. It goes when this time is over, when
                               anybody else queues or asks it to let go, and when the link breaks. A
                               hold that had to be waited for, or has a lease, is not kept. Two
                               requests more for each node */
};

static inline struct zkl_lock_options zkl_lock_options_init(void)
{
    struct zkl_lock_options o;
    memset(&o, 0, sizeof o);
    o.size = sizeof o;
    return o;
}
#define ZKL_LOCK_OPTIONS_INIT zkl_lock_options_init()

/* --- mutex -------------------------------------------------------------- */

struct zkl_mutex;
struct zkl_permit;

#define ZKL_HOLD_COUNT_MAX 1000000000

/* A handle on the mutex at path (absolute, below the client's chroot, at most 512 bytes; parents
 * are made when needed, as containers that the server removes once they are empty). options may be
 * NULL. No request is sent.
 * Several handles may name one path; but one thread must use one of them at a time (ZKL_EDEADLK),
 * unless they are named locks of different names.
 * 0, EINVAL, EBADPATH, EBADTIMEOUT (retain_ms), ECLOSED, EFORK, ENOMEM. */
ZKL_API int zkl_mutex_new(struct zkl_mutex **mutex, struct zkl_client *client, const char *path,
                          const struct zkl_lock_options *options);

/* Give the handle up. After 0 no callback of this mutex runs any more (called from within that very
 * callback: none after it). A node that retain_ms keeps is deleted in the background. NULL is ignored.
 * Nothing is freed: EBUSY, some thread holds or waits; EFORK; EINVAL, it is half of a read-write
 * lock; EINCALLBACK, called in a callback of
 * another client while this mutex's own callback runs. Otherwise allowed in callbacks. */
ZKL_API int zkl_mutex_free(struct zkl_mutex *mutex);

/* Acquire the mutex: the call that all others are defined by. wait NULL means ZKL_WAIT_INIT; grant
 * may be NULL, is written only on success, and its size is to be set.
 * If the calling thread holds it already the count goes up by one and no request is sent, whatever
 * the deadline. Else a deadline that has passed, or a cancel object that is set, ends the call
 * before any request. A try (ZKL_WAIT_TRY) that finds somebody else sends one read; it waits for a
 * lost link no longer than one session timeout. If all it finds is one node that may stay with nobody
 * in it (of a mutex with retain_ms), it asks for that, and is busy if it has not got it after 200 ms.
 * The link may be lost and come back during the wait: the place in the queue is kept. If the
 * session expires the thread queues again, at the end, within its deadline.
 * 0: held by the calling thread, until it has called unlock as often as lock.
 * Not held: ETIMEDOUT, ECANCELED; EBUSY, EDISCONNECTED and EUNPROVED (tries only); ECLOSED, EACCES,
 * EAUTH, ENOCHROOT, EEXHAUSTED, EQUOTA, EREADONLY, EUNIMPLEMENTED, EPROTO, ENOMEM, ESYSTEM, EINVAL,
 * EBADTIMEOUT (a negative deadline, a
 * lease out of range), EFORK, EINCALLBACK, EDEADLK, EOVERFLOW, EMISMATCH (of a semaphore's mutex);
 * and ELOST: this thread's hold, or for a read lock its write lock, was lost and is still to be
 * unlocked.
 * ESYSTEM also where this client watches so many nodes for waiters, some 12,000, that it could not
 * restore one more after a reconnect (docs/guarantees.md).
 * Whatever was put on the server by a call that failed is deleted in the background, after a lost
 * link once it is back; the session's end removes it in any case. */
ZKL_API int zkl_mutex_acquire(struct zkl_mutex *mutex, const struct zkl_wait *wait,
                              struct zkl_grant *grant);

/* zkl_mutex_acquire(mutex, NULL, NULL). */
ZKL_API int zkl_mutex_lock(struct zkl_mutex *mutex);
/* zkl_mutex_acquire with ZKL_WAIT_TRY. */
ZKL_API int zkl_mutex_trylock(struct zkl_mutex *mutex);
/* zkl_mutex_acquire with a deadline timeout_ms from now. EBADTIMEOUT besides. 0 ms: only a
 * re-entry succeeds. */
ZKL_API int zkl_mutex_lock_for(struct zkl_mutex *mutex, int64_t timeout_ms);
/* zkl_mutex_acquire with deadline_ns (absolute, zkl_now_ns()'s clock) and cancel (may be NULL). */
ZKL_API int zkl_mutex_lock_until(struct zkl_mutex *mutex, int64_t deadline_ns,
                                 struct zkl_cancel *cancel);

/* Give one hold of the calling thread back; the last one deletes the node and waits for the
 * server's answer, at most until the link breaks or the window ends. With the option posted_unlock it
 * sends the delete and does not wait: 0 says that the hold was good when it was given back, and a
 * deletion by somebody else, or a denied one, may go unnoticed.
 * 0: given back, and nobody else held the lock before. EUNCONFIRMED: not held any more, but no answer
 * came: the library deletes the node as soon as it can; the window was open when unlock was called, so
 * nobody else held before. EDOUBT: likewise without an answer, or a denied one, but the window was
 * empty by then, and nothing proved the hold afterwards: somebody else may have held the lock; also
 * from an unlock that is not the last one, whose window is empty. ELOST: the hold had been lost
 * before; it counts as given back. EACCES: not held any more, but the ACL denies DELETE: the node
 * blocks the path until this client's session ends.
 * Nothing changed: ENOTOWNER, EINVAL, EFORK, EINCALLBACK. After close: ELOST. */
ZKL_API int zkl_mutex_unlock(struct zkl_mutex *mutex);

/* The calls below speak of the calling thread's own hold, send nothing and never wait. Each that answers
 * with yes or no, a count, a time or a token answers 0, never less, where it is called wrongly: with NULL, with a
 * number out of range, in a child that was forked. zkl_error_detail then says why, and is empty after any
 * other answer. */

/* 1 if held with at least need_ms (>= 0) of the window left, else 0. */
ZKL_API int zkl_mutex_still_held(struct zkl_mutex *mutex, int64_t need_ms);
/* The same, with a reason: 0 if so; ZKL_ENOTOWNER: not held; ZKL_ELOST: the hold is lost; ZKL_EUNPROVED: less
 * than need_ms is proved, which may come back; EINVAL, EBADTIMEOUT, EFORK. */
ZKL_API int zkl_mutex_check(struct zkl_mutex *mutex, int64_t need_ms);
/* How often unlock is due, lost holds included; 0 if not held. */
ZKL_API int zkl_mutex_hold_count(struct zkl_mutex *mutex);
/* The fencing token, > 0; 0 if not held, or lost. */
ZKL_API uint64_t zkl_mutex_token(struct zkl_mutex *mutex);
/* Milliseconds for which the hold is proved: no other client can be granted the lock before they
 * are over, by this machine's CLOCK_BOOTTIME, which goes on while the process or the machine
 * sleeps. 0: not provably held (not held, lost, or no recent answer of the ensemble). */
ZKL_API int64_t zkl_mutex_window_ms(struct zkl_mutex *mutex);
/* Copy the path of the hold's node (without the chroot) into buf with a final NUL. Returns its
 * length as snprintf does (cut if >= size); ENOTOWNER if not held; EINVAL, EFORK. */
ZKL_API int zkl_mutex_node_path(struct zkl_mutex *mutex, char *buf, size_t size);

enum zkl_hold_state {
    ZKL_HELD = 1,    /* a suspect hold is proved again */
    ZKL_SUSPECT = 2, /* the link is down, the window ended, or the node can't be checked; may turn to
                        HELD or LOST */
    ZKL_LOST = 3,    /* for good; exactly once for each hold that is lost */
    ZKL_REVOKED = 4  /* somebody asks for the lock: finish and unlock soon; once for each hold */
};

enum zkl_reason {
    ZKL_REASON_NONE = 0,
    ZKL_REASON_LINK = 1,         /* SUSPECT: the connection broke */
    ZKL_REASON_WINDOW = 2,       /* SUSPECT: no quorum write was answered for too long */
    ZKL_REASON_EXPIRED = 3,      /* LOST: the session ended */
    ZKL_REASON_NODE_DELETED = 4, /* LOST: somebody deleted the node, or the server did
                                    as the session ended and this was heard of first */
    ZKL_REASON_LEASE_ENDED = 5,  /* LOST: the lease ended without renewal */
    ZKL_REASON_CLOSED = 6,       /* LOST: zkl_client_close */
    ZKL_REASON_OWNER_EXITED = 7, /* LOST: the holding thread ended without unlock */
    ZKL_REASON_UNCHECKED = 8     /* SUSPECT: the server does not let this client check the node
                                    any more (its ACL was replaced); the window is 0 until it does */
};

/* What happened to one hold. Valid during the callback only. */
struct zkl_hold_event {
    size_t size;
    struct zkl_mutex *mutex;   /* or NULL */
    struct zkl_permit *permit; /* or NULL */
    enum zkl_hold_state state;
    enum zkl_reason reason;
    uint64_t token;        /* of the hold in question */
    const char *node_path; /* its node, without the chroot */
};

/* Runs on the client's dispatch thread with no library lock held. It is not called for a grant or
 * an unlock. */
typedef void (*zkl_hold_fn)(const struct zkl_hold_event *event, void *arg);

/* Set, replace or (fn NULL) remove the callback; takes effect for the next first-time acquire
 * (for which a node that retain_ms keeps, or that would be handed on, is not used any more).
 * With a callback each acquire arms a watch on its own node: one more request per lock, and a
 * deletion from outside is reported at once instead of with the next heartbeat. 0, EINVAL, EFORK. */
ZKL_API int zkl_mutex_set_callback(struct zkl_mutex *mutex, zkl_hold_fn fn, void *arg);

/* Let the calling thread's hold end lease_ms (> 0) from now, earlier or later than it would have,
 * whether it had a lease or not. No request is sent.
 * 0; ELOST: the lease had ended, or the hold was lost otherwise; ENOTOWNER, EBADTIMEOUT, EINVAL,
 * EFORK. */
ZKL_API int zkl_mutex_renew(struct zkl_mutex *mutex, int64_t lease_ms);

/* 1 if somebody has asked the calling thread's hold to let go (zkl_revoke in inspect.h, zklock
 * revoke, Curator's Revoker) and this lock has a callback or the option revocable; 0 if not, or not
 * held. Nothing is taken away: to unlock is up to the caller, the asker may force it later. */
ZKL_API int zkl_mutex_revoke_requested(struct zkl_mutex *mutex);

/* --- read-write lock ---------------------------------------------------- */

/* Any number of readers, or one writer, in one first-come-first-served queue: a reader waits for
 * the writers before it, a writer for everybody before it. The two halves are mutex handles, so
 * every zkl_mutex call is for them too, each with its own hold, count and token:
 *
 *     zkl_mutex_lock(zkl_rwlock_read(rwlock));
 *     ...
 *     zkl_mutex_unlock(zkl_rwlock_read(rwlock));
 *
 * A thread may lock each half again. A thread that has the write lock gets the read lock at once
 * and keeps it when it gives the write lock back (a downgrade: nobody was in between). A thread
 * that has only the read lock and asks for the write lock gets ZKL_EDEADLK at once. */
struct zkl_rwlock;

/* As zkl_mutex_new. ZKL_NAMES_NAMED, local_handoffs_max and retain_ms are refused (EINVAL). */
ZKL_API int zkl_rwlock_new(struct zkl_rwlock **rwlock, struct zkl_client *client, const char *path,
                           const struct zkl_lock_options *options);
/* As zkl_mutex_free, for both halves. */
ZKL_API int zkl_rwlock_free(struct zkl_rwlock *rwlock);
/* The halves: borrowed, gone with the rwlock; zkl_mutex_free refuses them (EINVAL). NULL if rwlock
 * is NULL. */
ZKL_API struct zkl_mutex *zkl_rwlock_read(struct zkl_rwlock *rwlock);
ZKL_API struct zkl_mutex *zkl_rwlock_write(struct zkl_rwlock *rwlock);

/* --- semaphore ---------------------------------------------------------- */

/* At most a number of permits are out at a time, over all clients of the path. A permit is a handle
 * of its own: it belongs to no thread, any thread may give it back, and it does not end with the
 * thread that got it. The layout is that of Curator's InterProcessSemaphoreV2; its clients can
 * take part.
 * The number stands in the data of <path>/leases while somebody uses the semaphore. The first
 * client writes it; one that names another number is refused (EMISMATCH), and
 * zkl_semaphore_set_permits changes it for all. Clients of Curator neither read nor write it. */
struct zkl_semaphore;

#define ZKL_PERMITS_MAX 100000
#define ZKL_PERMITS_AT_ONCE_MAX 64

/* A handle on the semaphore at path. permits: 1 to ZKL_PERMITS_MAX, or 0 for the number that
 * stands there (an acquire returns EMISMATCH if none does). After the first acquire the handle
 * follows changes of it. path: at most 505 bytes. options as for zkl_mutex_new; ZKL_NAMES_KAZOO,
 * ZKL_NAMES_NAMED, local_handoffs_max and retain_ms are refused. No request is sent. 0,
 * EINVAL, EBADPATH, ECLOSED, EFORK, ENOMEM. */
ZKL_API int zkl_semaphore_new(struct zkl_semaphore **semaphore, struct zkl_client *client,
                              const char *path, int permits,
                              const struct zkl_lock_options *options);
/* Give the handle up. EBUSY: permits are out or threads wait; EFORK, EINCALLBACK as
 * zkl_mutex_free. */
ZKL_API int zkl_semaphore_free(struct zkl_semaphore *semaphore);

/* Acquire count permits (1 to ZKL_PERMITS_AT_ONCE_MAX, at most the semaphore's number), all or
 * none; requests are served in the order they come, big ones too. wait as for zkl_mutex_acquire; a
 * try waits, for one second at most, for somebody who is just acquiring, and otherwise not at all.
 * 0: permits[0] to permits[count - 1] are each to be given to zkl_permit_release.
 * Not acquired, permits untouched: EMISMATCH, and what zkl_mutex_acquire returns but for EDEADLK,
 * EOVERFLOW and ELOST. */
ZKL_API int zkl_semaphore_acquire(struct zkl_semaphore *semaphore, int count,
                                  const struct zkl_wait *wait, struct zkl_permit **permits);
/* The number of permits as this handle knows it; 0: not yet, or a wrong call. */
ZKL_API int zkl_semaphore_permits(struct zkl_semaphore *semaphore);
/* Set the number for all clients, running ones too: waiters go on at once if it grew; permits that
 * are out stay out if it shrank. wait may be NULL; its deadline and cancel count. 0, EINVAL,
 * ETIMEDOUT, ECANCELED, EDISCONNECTED, ECLOSED, EACCES, EAUTH, ENOCHROOT, EPROTO, ENOMEM, ESYSTEM,
 * EFORK, EINCALLBACK. */
ZKL_API int zkl_semaphore_set_permits(struct zkl_semaphore *semaphore, int permits,
                                      const struct zkl_wait *wait);
/* As zkl_mutex_set_callback, for permits acquired from now on; the event's permit is set. */
ZKL_API int zkl_semaphore_set_callback(struct zkl_semaphore *semaphore, zkl_hold_fn fn, void *arg);

/* Give a permit back and free the handle, whatever is returned but for EINVAL, EFORK and
 * EINCALLBACK. Codes as zkl_mutex_unlock. */
ZKL_API int zkl_permit_release(struct zkl_permit *permit);
/* As the zkl_mutex calls of these names, for one permit. */
ZKL_API int zkl_permit_still_held(struct zkl_permit *permit, int64_t need_ms);
ZKL_API int zkl_permit_check(struct zkl_permit *permit, int64_t need_ms);
ZKL_API uint64_t zkl_permit_token(struct zkl_permit *permit);
ZKL_API int64_t zkl_permit_window_ms(struct zkl_permit *permit);
ZKL_API int zkl_permit_node_path(struct zkl_permit *permit, char *buf, size_t size);
ZKL_API int zkl_permit_renew(struct zkl_permit *permit, int64_t lease_ms);
ZKL_API int zkl_permit_revoke_requested(struct zkl_permit *permit);

/* A mutex that is not reentrant and that any thread may unlock: a semaphore with one permit, as
 * Curator's InterProcessSemaphoreMutex. *mutex is for all zkl_mutex calls, with these differences:
 * the hold belongs to the handle, so all threads that use one handle see one and the same hold; a
 * second lock waits, in the same thread too; nothing is given up when a thread ends. Codes as
 * zkl_semaphore_new. */
ZKL_API int zkl_semaphore_mutex_new(struct zkl_mutex **mutex, struct zkl_client *client,
                                    const char *path, const struct zkl_lock_options *options);

/* --- multi-lock --------------------------------------------------------- */

/* Several locks as one: all or none. Whatever order they are named in, they are taken in the order
 * of their paths, so two multi-locks can't wait for each other; a lock that is taken by itself
 * while another one is held, in another order, still can (docs/guarantees.md). */
struct zkl_multi;

enum zkl_member_type {
    ZKL_MEMBER_MUTEX = 1,    /* of any kind: also half of a read-write lock */
    ZKL_MEMBER_SEMAPHORE = 2 /* count permits of it */
};

struct zkl_member {
    enum zkl_member_type type;
    struct zkl_mutex *mutex;
    struct zkl_semaphore *semaphore;
    int count; /* of permits */
};

static inline struct zkl_member zkl_member_mutex(struct zkl_mutex *mutex)
{
    struct zkl_member m;
    memset(&m, 0, sizeof m);
    m.type = ZKL_MEMBER_MUTEX;
    m.mutex = mutex;
    return m;
}

static inline struct zkl_member zkl_member_semaphore(struct zkl_semaphore *semaphore, int count)
{
    struct zkl_member m;
    memset(&m, 0, sizeof m);
    m.type = ZKL_MEMBER_SEMAPHORE;
    m.semaphore = semaphore;
    m.count = count;
    return m;
}

#define ZKL_MULTI_MEMBERS_MAX 64

/* A handle on count (1 to ZKL_MULTI_MEMBERS_MAX) members, all of this client; they stay the
 * caller's and are to outlive the multi-lock. No request is sent.
 * 0, EINVAL, ECLOSED, EFORK, ENOMEM; EDEADLK: two members have the same path. */
ZKL_API int zkl_multi_new(struct zkl_multi **multi, struct zkl_client *client,
                          const struct zkl_member *members, size_t count);
/* Give the handle up; the members are not freed. 0; EBUSY: held or waited on; EFORK. NULL is
 * ignored. */
ZKL_API int zkl_multi_free(struct zkl_multi *multi);

/* Acquire all members for the calling thread, as if zkl_mutex_acquire had been called for each mutex
 * and zkl_semaphore_acquire for each semaphore, within one deadline; a mutex that the thread holds
 * already is entered again. In a re-entry of the whole what belongs to no thread (permits, and
 * mutexes of zkl_semaphore_mutex_new) stays as it is. A lease begins when all are held. grants: one
 * for each member in the order of zkl_multi_new, each filled with ZKL_GRANT_INIT, or NULL.
 * 0: all are held. Anything else: none is held that was not held before; codes as
 * zkl_mutex_acquire and zkl_semaphore_acquire, the detail names the member. EDEADLK, before any
 * request: a member's path is held by this thread through another handle, or as a reader while the
 * member writes. ELOST: what the thread held before was lost, and is still to be unlocked. */
ZKL_API int zkl_multi_acquire(struct zkl_multi *multi, const struct zkl_wait *wait,
                              struct zkl_grant *grants);
/* As the zkl_mutex calls of these names. */
ZKL_API int zkl_multi_lock(struct zkl_multi *multi);
ZKL_API int zkl_multi_trylock(struct zkl_multi *multi);
ZKL_API int zkl_multi_lock_for(struct zkl_multi *multi, int64_t timeout_ms);
ZKL_API int zkl_multi_lock_until(struct zkl_multi *multi, int64_t deadline_ns,
                                 struct zkl_cancel *cancel);
/* Give all members back, the last path first; whatever goes wrong with one, the others are given
 * back. codes: one for each member in the order of zkl_multi_new, or NULL. Returns the worst of
 * them: ELOST, then EDOUBT, EACCES, EUNCONFIRMED, ENOTOWNER (of a member that was unlocked by
 * itself before), else 0. Nothing changed: ENOTOWNER, the calling thread does not hold the
 * multi-lock; EINVAL, EFORK, EINCALLBACK. */
ZKL_API int zkl_multi_unlock(struct zkl_multi *multi, int *codes);
/* 1 if all members are held with at least need_ms of the window left. */
ZKL_API int zkl_multi_still_held(struct zkl_multi *multi, int64_t need_ms);
/* As zkl_mutex_check, for all members; ELOST: one is lost. */
ZKL_API int zkl_multi_check(struct zkl_multi *multi, int64_t need_ms);
/* The shortest of the members' windows. */
ZKL_API int64_t zkl_multi_window_ms(struct zkl_multi *multi);
/* The token of member index (as in zkl_multi_new; of several permits the first one's); 0 if it is
 * not held, is lost, or does not exist. There is no token for the whole. */
ZKL_API uint64_t zkl_multi_token(struct zkl_multi *multi, size_t index);
/* As zkl_mutex_node_path, for member index; of several permits the first one's. EINVAL too if there is
 * no such member. */
ZKL_API int zkl_multi_node_path(struct zkl_multi *multi, size_t index, char *buf, size_t size);

/* --- scope guards ------------------------------------------------------- */

/* A lock for the length of a block, in C with gcc or clang:
 *
 *     {
 *         ZKL_MUTEX_SCOPE(scope, mutex);
 *         if (scope.rc == 0)
 *             write_report(zkl_mutex_token(mutex));
 *     }
 */
struct zkl_mutex_scope {
    struct zkl_mutex *mutex;
    int rc; /* of zkl_mutex_lock; 0: held until the end of the block */
};

static inline struct zkl_mutex_scope zkl_mutex_scope_begin(struct zkl_mutex *mutex)
{
    struct zkl_mutex_scope s;
    s.mutex = mutex;
    s.rc = zkl_mutex_lock(mutex);
    return s;
}

/* Unlock now instead of at the end of the block; returns zkl_mutex_unlock's code, 0 if there was
 * no hold. */
static inline int zkl_mutex_scope_end(struct zkl_mutex_scope *scope)
{
    struct zkl_mutex *mutex = scope->rc == 0 ? scope->mutex : NULL;
    scope->mutex = NULL;
    return mutex ? zkl_mutex_unlock(mutex) : 0;
}

static inline void zkl_mutex_scope_cleanup(struct zkl_mutex_scope *scope)
{
    (void)zkl_mutex_scope_end(scope);
}

#if defined(__GNUC__)
#define ZKL_MUTEX_SCOPE(name, m)                                                                   \
    __attribute__((cleanup(zkl_mutex_scope_cleanup))) struct zkl_mutex_scope name =                \
        zkl_mutex_scope_begin(m)
#endif

#ifdef __cplusplus
} /* extern "C" */

namespace zkl
{
/* The same for C++: zkl::mutex_scope scope(mutex); if (scope.rc() == 0) ... */
class mutex_scope
{
  public:
    explicit mutex_scope(struct zkl_mutex *mutex) : scope_(zkl_mutex_scope_begin(mutex)) {}
    ~mutex_scope() { zkl_mutex_scope_cleanup(&scope_); }
    int rc() const { return scope_.rc; }
    int unlock() { return zkl_mutex_scope_end(&scope_); }

  private:
    mutex_scope(const mutex_scope &);
    mutex_scope &operator=(const mutex_scope &);
    struct zkl_mutex_scope scope_;
};
} /* namespace zkl */
#endif

#endif
