/* SPDX-License-Identifier: Apache-2.0
 *
 * wait.h - how long a call waits, how to stop it, its place in the queue, and what an acquire
 * returns.
 *
 * Deadlines are absolute, so that one deadline serves a whole chain of calls. Their clock is
 * CLOCK_MONOTONIC (zkl_now_ns). A cancel object stops waits from outside, also from a signal
 * handler:
 *
 *     struct zkl_wait wait = ZKL_WAIT_INIT;
 *     struct zkl_grant grant = ZKL_GRANT_INIT;
 *     wait.deadline_ns = zkl_now_ns() + 5000 * INT64_C(1000000);
 *     wait.cancel = cancel;
 *     wait.lease_ms = 60000;
 *     if (zkl_mutex_acquire(mutex, &wait, &grant) == 0) {
 *         printf("token %llu, proved for %lld ms\n", (unsigned long long)grant.token,
 *                (long long)grant.window_ms);
 *         zkl_mutex_unlock(mutex);
 *     }
 *
 * Illegal: a struct that was not filled with its initializer (ZKL_EINVAL); a cancel object in a
 * forked child (ZKL_EFORK), or after zkl_cancel_free.
 */
#ifndef ZKLOCK_WAIT_H
#define ZKLOCK_WAIT_H

#include <stddef.h>
#include <stdint.h>
#include <zklock/error.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- read the clock of all deadlines -------------------------------------- */

#define ZKL_NO_DEADLINE INT64_MAX
#define ZKL_TIMEOUT_MAX_MS INT64_C(315360000000) /* ten years */
#define ZKL_LEASE_MIN_MS 10                      /* of a grant; a renewal may be shorter */

/* Returns CLOCK_MONOTONIC in nanoseconds: the clock of every deadline in this library. A change of
 * the time of day does not move it. The window of a hold is measured by another clock, which runs
 * on while the machine sleeps (zkl_mutex_window_ms). The call cannot fail; any thread may make it,
 * in callbacks and in a forked child too. Two locks within one deadline:
 *
 *     int64_t deadline_ns = zkl_now_ns() + 3000 * INT64_C(1000000);
 *     if (zkl_mutex_lock_until(mutex, deadline_ns, cancel) == 0) {
 *         if (zkl_mutex_lock_until(other, deadline_ns, cancel) == 0) {
 *             work();
 *             zkl_mutex_unlock(other);
 *         }
 *         zkl_mutex_unlock(mutex);
 *     }
 */
ZKL_API int64_t zkl_now_ns(void);

/* --- cancel a wait -------------------------------------------------------- */

/* A cancel object is one bit that changes from 0 to 1 at most once. Several waits, in several
 * threads and on several clients, may share one. When the bit is set they all end with
 * ZKL_ECANCELED, and hold nothing. A wait that begins later with this object ends before any
 * request; a re-entry ignores it. If the bit is set while the lock is being granted, the library
 * decides once: the wait returns ZKL_ECANCELED and holds nothing, or 0 and holds the lock. Holds
 * that exist stay as they are.
 * Like a client, a cancel object belongs to the process that made it: a wait with it in a forked
 * child returns ZKL_EFORK, and setting it there ends no wait of the parent's.
 * pthread_cancel ends no wait, as calls turn cancellation off. The request stays pending and acts
 * behind the call, when the thread may hold the lock; the library releases what belongs to a thread
 * (permits do not) at its end. Ctrl-C ends a wait:
 *
 *     #include <signal.h>
 *     #include <zklock/zklock.h>
 *
 *     static struct zkl_cancel *stop;
 *
 *     static void on_interrupt(int number)
 *     {
 *         (void)number;
 *         zkl_cancel_set(stop);
 *     }
 *
 *     int lock_or_interrupt(struct zkl_mutex *mutex)
 *     {
 *         int rc = zkl_cancel_new(&stop);
 *         if (rc != 0)
 *             return rc;
 *         signal(SIGINT, on_interrupt);
 *         rc = zkl_mutex_lock_until(mutex, ZKL_NO_DEADLINE, stop);
 *         signal(SIGINT, SIG_DFL);
 *         zkl_cancel_free(stop);
 *         return rc;
 *     }
 */
struct zkl_cancel;

/* Make a cancel object. It has a descriptor of its own, which is close-on-exec.
 * 0, ZKL_EINVAL, ZKL_ENOMEM, ZKL_ESYSTEM (no descriptor). */
ZKL_API int zkl_cancel_new(struct zkl_cancel **cancel);
/* Set the bit. Async-signal-safe; the call preserves errno and ignores NULL. As soon as the bit is
 * visible, by zkl_cancel_is_set or by a wait that returns ZKL_ECANCELED, the object may be freed,
 * even while this call still runs in another thread. */
ZKL_API void zkl_cancel_set(struct zkl_cancel *cancel);
/* 1 if set. Async-signal-safe. */
ZKL_API int zkl_cancel_is_set(const struct zkl_cancel *cancel);
/* Must be the last call with this object. Waits that still use the object keep what they need. The
 * call ignores NULL. */
ZKL_API void zkl_cancel_free(struct zkl_cancel *cancel);

/* --- acquire a mutex ------------------------------------------------------ */

#define ZKL_WAIT_TRY UINT64_C(1) /* do not queue: ZKL_EBUSY if anybody is before us */
/* With TRY: read behind a sync, so that the answer is as of the call's start. Without it the answer
 * may be as old as the server's replication lag. Costs one more request. */
#define ZKL_WAIT_SYNC UINT64_C(2)

/* How to wait, and for what. Fill with ZKL_WAIT_INIT: no deadline, no cancel, no flags, no lease. A
 * lease begins with the grant. If less than 2 ms of it are left when the caller gets the processor,
 * the call asks for the lock again, and a try ends with ZKL_ETIMEDOUT. A re-entry has no lease of
 * its own. */
struct zkl_wait {
    size_t size;
    int64_t deadline_ns;       /* absolute, of zkl_now_ns()'s clock, or ZKL_NO_DEADLINE */
    struct zkl_cancel *cancel; /* borrowed until the call returns; may be NULL */
    uint64_t flags;            /* ZKL_WAIT_* */
    /* ZKL_LEASE_MIN_MS or more: the hold ends this long after its grant, unless renewed; 0: none */
    int64_t lease_ms;
};

#define ZKL_WAIT_INIT                                                                              \
    {                                                                                              \
        sizeof(struct zkl_wait), ZKL_NO_DEADLINE, NULL, 0, 0                                       \
    }

/* What a successful acquire returns. */
struct zkl_grant {
    size_t size;
    uint64_t token; /* fencing token: larger for each later node of this path */
    /* how long, from now, the hold is proved; can be 0 in a re-entry, and always is with a server
     * of another make */
    int64_t window_ms;
    int64_t hold_count; /* 1 for a first grant, more for a re-entry */
};

#define ZKL_GRANT_INIT                                                                             \
    {                                                                                              \
        sizeof(struct zkl_grant), 0, 0, 0                                                          \
    }

/* --- query the waiters of a lock and their place in the queue ------------- */

/* The place of a call or an operation that waits for a lock, by what its client knows already: see
 * zkl_mutex_waiting. Fill with ZKL_STANDING_INIT. */
struct zkl_standing {
    size_t size;
    int64_t since_ns; /* it has waited since then, by zkl_now_ns()'s clock */
    /* The largest number of contenders that it waits for, by its last list or its number (a reader:
     * of writers). The true number can only be smaller, as later contenders queue behind it. 0: it
     * waits for none, or does not know its place yet. */
    uint64_t before;
    char predecessor[128]; /* the nearest of them: the name of its node; "": not known */
    /* And that contender's owner text; "": not known, none, or replaced by a request to release. */
    char owner[520];
};

#define ZKL_STANDING_INIT                                                                          \
    {                                                                                              \
        sizeof(struct zkl_standing), 0, 0, {0},                                                    \
        {                                                                                          \
            0                                                                                      \
        }                                                                                          \
    }

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif
