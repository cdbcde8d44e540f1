/* SPDX-License-Identifier: Apache-2.0
 *
 * lock.h - what all locks share: options, and a callback for changes of a hold.
 *
 * A holder can lose its hold while it works. zkl_mutex_still_held shows that in time, by the
 * window. A callback reports it too, with the reason:
 *
 *     static void changed(const struct zkl_hold_event *event, void *arg)
 *     {
 *         (void)arg;
 *         if (event->state == ZKL_HOLD_LOST)
 *             stop_writing();
 *     }
 *     ...
 *     struct zkl_mutex_options options = ZKL_MUTEX_OPTIONS_INIT;
 *     struct zkl_mutex *report;
 *     options.owner = "the nightly report";
 *     if (zkl_mutex_new(&report, client, "/locks/report", &options) == 0)
 *         zkl_mutex_set_callback(report, changed, NULL);
 *
 * Illegal: options without their initializer (ZKL_EINVAL); in the callback, calls that wait
 * (ZKL_EINCALLBACK), and keeping the event.
 */
#ifndef ZKLOCK_LOCK_H
#define ZKLOCK_LOCK_H

#include <stddef.h>
#include <stdint.h>
#include <zklock/error.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- make and free a handle on a mutex ------------------------------------ */

/* How contenders name their nodes; docs/peers.md has which libraries exclude each other. All
 * processes that use one path must use names that see each other. */
enum zkl_names {
    ZKL_NAMES_CURATOR = 0, /* "_c_<uuid>-lock-<n>", "..-__READ__<n>", "..-__WRIT__<n>" */
    ZKL_NAMES_KAZOO = 1,   /* "<hex32>__lock__<n>", "<hex32>__rlock__<n>" */
    /* "_c_<uuid>-<name>_lock_<n>": several mutexes under one path, each with its own name; they
     * ignore each other. For mutexes only */
    ZKL_NAMES_NAMED = 2
};

/* Options of all locks. Fill with ZKL_LOCK_OPTIONS_INIT. NULL instead of options means these
 * defaults. The library copies all text. zkl_mutex_options (mutex.h) has these fields and those of
 * a mutex. */
struct zkl_lock_options {
    size_t size;
    enum zkl_names names;
    /* 1: have the server report requests to release the lock (see zkl_mutex_revoke_requested); a
     * lock with a callback always does */
    int revocable;
    int posted_unlock; /* 1: unlock does not wait for the server's answer (see zkl_mutex_unlock) */
    int metrics;       /* 1: the client keeps figures of this path, in some 2 kB (see metrics.h) */
    const char *owner; /* data of this lock's nodes; NULL: the client's. At most 512 bytes */
};

#define ZKL_LOCK_OPTIONS_INIT                                                                      \
    {                                                                                              \
        sizeof(struct zkl_lock_options), ZKL_NAMES_CURATOR, 0, 0, 0, NULL                          \
    }

struct zkl_mutex;
struct zkl_permit;

/* --- set a callback for changes of holds ---------------------------------- */

enum zkl_hold_state {
    ZKL_HOLD_HELD = 1, /* a suspect hold is proved again */
    /* the link is down, the window ended, or the client cannot check the node; may turn to HELD or
     * LOST */
    ZKL_HOLD_SUSPECT = 2,
    ZKL_HOLD_LOST = 3, /* final; reported exactly once for each hold that is lost */
    /* another client asks for the lock: finish and unlock soon; reported once for each hold */
    ZKL_HOLD_REVOKE_REQUESTED = 4
};

enum zkl_reason {
    ZKL_REASON_NONE = 0,
    ZKL_REASON_LINK = 1, /* SUSPECT: the connection broke */
    /* SUSPECT: no quorum write was answered for too long, or the server is of another make, where
     * nothing proves a hold: then from its grant on */
    ZKL_REASON_WINDOW = 2,
    ZKL_REASON_EXPIRED = 3, /* LOST: the session ended */
    /* LOST: another client deleted the node, or the server did as the session ended and the client
     * learned of the deletion first */
    ZKL_REASON_NODE_DELETED = 4,
    ZKL_REASON_LEASE_ENDED = 5,  /* LOST: the lease ended without renewal */
    ZKL_REASON_CLOSED = 6,       /* LOST: zkl_client_close */
    ZKL_REASON_OWNER_EXITED = 7, /* LOST: the holding thread ended without unlock */
    /* SUSPECT: the server no longer lets this client check the node (its ACL was replaced); the
     * window is 0 until it does. The client's other holds are as before. A hold that is suspect
     * already is reported once more */
    ZKL_REASON_UNCHECKED = 8
};

/* What happened to one hold. The event is valid during the callback only. */
struct zkl_hold_event {
    size_t size;
    struct zkl_mutex *mutex;   /* or NULL */
    struct zkl_permit *permit; /* or NULL */
    enum zkl_hold_state state;
    enum zkl_reason reason;
    uint64_t token;        /* of the hold in question */
    const char *node_path; /* its node, without the chroot */
};

/* Runs on a thread of the client, or in zkl_client_dispatch (async.h), with no library lock held,
 * one callback of a client at a time: it can be late, but the window cannot. The client's thread
 * does not hold the lock, so the work belongs to the one that does. Calls that wait return
 * ZKL_EINCALLBACK in it. The library does not call it for a grant or an unlock.
 * A flag for the thread that works:
 *
 *     #include <stdatomic.h>
 *     #include <zklock/zklock.h>
 *
 *     static atomic_int stop_writing;
 *
 *     static void on_hold(const struct zkl_hold_event *event, void *arg)
 *     {
 *         (void)arg;
 *         if (event->state == ZKL_HOLD_SUSPECT || event->state == ZKL_HOLD_LOST)
 *             atomic_store(&stop_writing, 1);
 *         if (event->state == ZKL_HOLD_HELD)
 *             atomic_store(&stop_writing, 0);
 *     }
 *
 *     int watch_holds(struct zkl_mutex *mutex)
 *     {
 *         return zkl_mutex_set_callback(mutex, on_hold, NULL);
 *     }
 */
typedef void (*zkl_hold_fn)(const struct zkl_hold_event *event, void *arg);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif
