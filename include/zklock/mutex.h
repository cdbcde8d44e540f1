/* SPDX-License-Identifier: Apache-2.0
 *
 * mutex.h - the mutex: one thread of all processes holds a path.
 *
 * The mutex is reentrant, with a count, and serves contenders first come, first served. Each thread
 * has its own place in the queue. The threads of a process can share one handle: they exclude each
 * other as threads of other processes do. Mutexes, rwlocks and the mutexes of semaphore.h share the
 * calls of this header.
 *
 *     if (zkl_mutex_lock_for(mutex, 5000) != 0) {
 *         fprintf(stderr, "report: %s\n", zkl_error_detail());
 *         exit(EXIT_FAILURE);
 *     }
 *     while (more_rows() && zkl_mutex_still_held(mutex, 500))
 *         write_row(zkl_mutex_token(mutex));
 *     if (zkl_error_is_lost(zkl_mutex_unlock(mutex)))
 *         fprintf(stderr, "another client may have held it meanwhile\n");
 *
 * Illegal: unlocking in another thread than the one that locked (ZKL_ENOTOWNER); locking one path
 * through two handles in one thread (ZKL_EDEADLK); waiting in a callback of the library
 * (ZKL_EINCALLBACK); using the handle in a forked child (ZKL_EFORK), or after zkl_mutex_free.
 */
#ifndef ZKLOCK_MUTEX_H
#define ZKLOCK_MUTEX_H

#include <stddef.h>
#include <stdint.h>
#include <zklock/client.h>
#include <zklock/lock.h>
#include <zklock/wait.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- make and free a handle on a mutex ------------------------------------ */

#define ZKL_HOLD_COUNT_MAX 1000000000

#define ZKL_LOCK_NAME_MAX 64 /* bytes of a lock's name */

/* Fill with ZKL_MUTEX_OPTIONS_INIT. NULL instead of options means these defaults. The library
 * copies all text. The first fields are those of zkl_lock_options. */
struct zkl_mutex_options {
    size_t size;
    enum zkl_names names;
    int revocable;
    int posted_unlock;
    int metrics;
    const char *owner;
    /* with ZKL_NAMES_NAMED: at most ZKL_LOCK_NAME_MAX bytes, without "/" and "_lock_" */
    const char *name;

    /* The last two fields change the meaning of "first come, first served": see
     * docs/guarantees.md. */

    /* > 0: the threads that lock this handle queue with one node, and take turns first come, first
     * served. unlock hands the lock on to the next thread without a request, at most this often in
     * a row while other contenders are known to queue. All these holds have the same node and
     * token. The library does not hand on a hold that is suspect, revoked, or has a lease. A try is
     * busy while another thread of this handle has the lock or queues */
    int64_t local_handoffs_max;
    /* > 0, at most 3,600,000: the last unlock leaves the node on the server without a holder. This
     * handle takes it again without a request, with the same node and token. The library deletes
     * the node when this time is over, when another contender queues or requests a release, and
     * when the link breaks. It does not keep a hold that had to wait, or has a lease. Two more
     * requests for each node */
    int64_t retain_ms;
};

#define ZKL_MUTEX_OPTIONS_INIT                                                                     \
    {                                                                                              \
        sizeof(struct zkl_mutex_options), ZKL_NAMES_CURATOR, 0, 0, 0, NULL, NULL, 0, 0             \
    }

/* Make a handle on the mutex at path (absolute, below the client's chroot, at most 512 bytes). The
 * library makes missing parents, as containers that the server removes once they are empty. Nothing
 * else should be below the path, and no lock's path below another one's. options may be NULL. The
 * call sends no request and does not wait; it is legal in callbacks.
 * Several handles may name one path, but one thread must use one of them at a time (ZKL_EDEADLK),
 * unless they are named locks of different names. One of several mutexes under one path:
 *
 *     #include <zklock/zklock.h>
 *
 *     int new_named(struct zkl_mutex **mutex, struct zkl_client *client, const char *name)
 *     {
 *         struct zkl_mutex_options options = ZKL_MUTEX_OPTIONS_INIT;
 *         options.names = ZKL_NAMES_NAMED;
 *         options.name = name;
 *         return zkl_mutex_new(mutex, client, "/locks/tables", &options);
 *     }
 *
 * Nothing is made, and *mutex is untouched: ZKL_EINVAL; ZKL_EBADPATH: the detail says what is wrong
 * with the path; ZKL_EBADTIMEOUT (retain_ms); ZKL_ECLOSED, ZKL_EFORK, ZKL_ENOMEM. */
ZKL_API int zkl_mutex_new(struct zkl_mutex **mutex, struct zkl_client *client, const char *path,
                          const struct zkl_mutex_options *options);

/* Free the handle. The call waits for a callback of this mutex that runs; after 0 none runs any
 * more (if called within that very callback: none after it). The library deletes a node that
 * retain_ms keeps, in the background. The call ignores NULL, and is legal in callbacks, with one
 * exception.
 * Nothing is freed: ZKL_EBUSY: a thread holds or waits; ZKL_EFORK; ZKL_EINVAL: the handle is half
 * of a read-write lock, which is freed as a whole; ZKL_EINCALLBACK: called in a callback of another
 * client while this mutex's own callback runs. */
ZKL_API int zkl_mutex_free(struct zkl_mutex *mutex);

/* --- acquire a mutex ------------------------------------------------------ */

/* Acquire the mutex. All other acquiring calls are defined by this one. wait NULL means
 * ZKL_WAIT_INIT. grant may be NULL; its size must be set, and the call writes it only on success.
 * If the calling thread holds the mutex already, the count grows by one, whatever the deadline, and
 * the call sends no request. Otherwise a passed deadline, or a set cancel object, ends the call
 * before any request. A first grant comes with an open window, except from a server of another make
 * (docs/peers.md), where nothing is ever proved.
 * A try (ZKL_WAIT_TRY) that finds another contender sends one read. It waits for a lost link no
 * longer than one session timeout. If it finds only one node that may be without a holder (of a
 * mutex with retain_ms), it asks for that node, and gets it in some round trips, or is busy after
 * 200 ms, if a thread is in it. Tries of other libraries don't ask: they are busy.
 * If the link breaks during the wait, the thread keeps its place in the queue. If the session
 * expires, the thread queues again, at the end, within its deadline.
 * 0: the calling thread holds the mutex, until it has called unlock as often as lock. If it ends
 * without, the library releases the hold.
 * Not held: ZKL_ETIMEDOUT, ZKL_ECANCELED; ZKL_EBUSY: a try: another contender is before this one;
 * ZKL_EUNPROVED; ZKL_EDISCONNECTED: a try: no server was reached within one session timeout;
 * ZKL_ECLOSED: the client is closed, or was closed during the wait; ZKL_EBADPATH: the path is below
 * an ephemeral node; ZKL_EACCES: the detail names the right that the lock needs; without DELETE the
 * node stays until the session ends; ZKL_EAUTH, ZKL_ENOCHROOT, ZKL_EEXHAUSTED, ZKL_EQUOTA,
 * ZKL_EREADONLY, ZKL_EUNIMPLEMENTED, ZKL_EPROTO, ZKL_ENOMEM; ZKL_ESYSTEM: no key for the thread's
 * holds, no watch on the cancel object's descriptor, or this client watches as many nodes for
 * waiters as it can restore after a reconnect (12,000 with paths of 80 bytes); ZKL_EFULL: the
 * client's session owns as many nodes as it may (ephemeral_bytes_max in client.h: 12,000 with paths
 * of 80 bytes); ZKL_EMISMATCH: of a semaphore's mutex: the semaphore at the path has not one permit
 * but another number; ZKL_ELOST: this thread's hold, or for a read lock its write lock, was lost
 * and must still be unlocked, once for each lock.
 * Refused, and nothing was sent: ZKL_EINVAL: NULL, a struct without its size, an unknown flag,
 * ZKL_WAIT_SYNC without ZKL_WAIT_TRY; ZKL_EBADTIMEOUT: a negative deadline, timeout_ms negative or
 * above ZKL_TIMEOUT_MAX_MS, a lease out of range; ZKL_EDEADLK: this thread holds the same path
 * through another handle, or has the read lock and asks for the write lock; ZKL_EOVERFLOW,
 * ZKL_EFORK, ZKL_EINCALLBACK.
 * The library deletes the nodes of a failed call in the background, after a lost link once it is
 * back. The session's end removes them in any case. An acquire with a deadline and a cancel object,
 * which writes with the token of its grant:
 *
 *     struct zkl_wait wait = ZKL_WAIT_INIT;
 *     struct zkl_grant grant = ZKL_GRANT_INIT;
 *     wait.deadline_ns = zkl_now_ns() + 5000 * INT64_C(1000000);
 *     wait.cancel = cancel;
 *     if (zkl_mutex_acquire(mutex, &wait, &grant) == 0) {
 *         write_report(grant.token);
 *         zkl_mutex_unlock(mutex);
 *     }
 */
ZKL_API int zkl_mutex_acquire(struct zkl_mutex *mutex, const struct zkl_wait *wait,
                              struct zkl_grant *grant);

/* zkl_mutex_acquire(mutex, NULL, NULL). */
ZKL_API int zkl_mutex_lock(struct zkl_mutex *mutex);
/* zkl_mutex_acquire with ZKL_WAIT_TRY. */
ZKL_API int zkl_mutex_trylock(struct zkl_mutex *mutex);
/* zkl_mutex_acquire with a deadline timeout_ms from now. ZKL_EBADTIMEOUT besides. 0 ms is no try:
 * the call sends no request, and only a re-entry succeeds; see zkl_mutex_trylock. */
ZKL_API int zkl_mutex_lock_for(struct zkl_mutex *mutex, int64_t timeout_ms);
/* zkl_mutex_acquire with deadline_ns (absolute, zkl_now_ns()'s clock) and cancel (may be NULL). */
ZKL_API int zkl_mutex_lock_until(struct zkl_mutex *mutex, int64_t deadline_ns,
                                 struct zkl_cancel *cancel);

/* --- release a mutex ------------------------------------------------------ */

/* Release one hold of the calling thread, which took it through this handle. The last unlock
 * deletes the node and waits for the server's answer, at most until the link breaks or the window
 * ends; with an empty window it does not wait. With the option posted_unlock it sends the delete
 * and does not wait. 0 then says that the hold was good at its release; a deletion by another
 * client, or a denied one, may remain unnoticed.
 * The work under the lock has ended when the thread calls unlock. ZKL_ELOST and ZKL_EDOUBT
 * (zkl_error_is_lost) say that another client held the lock before that, or may have. After any
 * other code none did, unless one had deleted the node by hand.
 * 0: released, and after the last unlock nothing is left on the server, unless the node is kept or
 * handed on (retain_ms, local_handoffs_max, zkl_rwlock_retain_readers), or the unlock was posted:
 * then the delete is on its way, and if the link breaks, the node stays until the link is back or
 * the session ends. ZKL_EUNCONFIRMED: not held any more, but no answer came. The library deletes
 * the node as soon as it can, and the caller need do nothing: the window was open when unlock was
 * called. ZKL_EDOUBT: no answer, or a denied delete, and the window was empty when unlock was
 * called, as after a pause of the process or a long outage. The library deletes the node as soon as
 * it can, if the ACL allows it. Also from an unlock that is not the last one, if the window is
 * empty then: it ends one lock, and the others are still due. ZKL_ELOST: the hold had been lost
 * before, or the client is closed; it counts as released. A lost hold has to be unlocked as often
 * as it was locked. ZKL_EACCES: not held any more, but the ACL denies DELETE: the node blocks the
 * path until this client's session ends.
 * Nothing changed: ZKL_ENOTOWNER, ZKL_EINVAL, ZKL_EFORK, ZKL_EINCALLBACK. */
ZKL_API int zkl_mutex_unlock(struct zkl_mutex *mutex);

/* --- query the calling thread's own hold ---------------------------------- */

/* The calls below concern the calling thread's own hold, send nothing and never wait. A callback
 * runs on a thread of the client, which holds nothing, or in zkl_client_dispatch, on the thread
 * that calls that. Those that return yes or no, a count, a time or a token return 0, never less, if
 * the call is wrong: with NULL, with a number out of range, in a forked child. zkl_error_detail
 * then says why. It is empty after any other answer.
 * Before a write ask for the window and not for the state: a hold is ZKL_HOLD_HELD up to its last
 * millisecond. A window that is open now may end before the next instruction, so ask for as much as
 * the write takes, and let the resource compare tokens. Rows, each with two proved seconds:
 *
 *     while (more_rows()) {
 *         if (!zkl_mutex_still_held(mutex, 2000)) {
 *             fprintf(stderr, "not proved for two seconds: unlock, and lock again\n");
 *             break;
 *         }
 *         write_row(zkl_mutex_token(mutex));
 *     }
 */

/* 1 if held with at least need_ms (>= 0) of the window left, else 0. */
ZKL_API int zkl_mutex_still_held(struct zkl_mutex *mutex, int64_t need_ms);
/* The same, with a reason.
 * 0: so it is. ZKL_ENOTOWNER; ZKL_ELOST; ZKL_EUNPROVED: less than need_ms is proved, which may
 * change. With a server that is no ZooKeeper, by the id of its session, it never does, and the
 * detail says so. ZKL_EINVAL, ZKL_EBADTIMEOUT, ZKL_EFORK. */
ZKL_API int zkl_mutex_check(struct zkl_mutex *mutex, int64_t need_ms);
/* How many unlocks are due, lost holds included; 0 if not held. */
ZKL_API int zkl_mutex_hold_count(struct zkl_mutex *mutex);
/* The fencing token, > 0; 0 if not held, or lost. */
ZKL_API uint64_t zkl_mutex_token(struct zkl_mutex *mutex);
/* Milliseconds for which the hold is proved: no other client can be granted the lock before they
 * are over, by this machine's CLOCK_BOOTTIME, which runs on while process or machine sleeps, but
 * may stop if a hypervisor freezes the machine (docs/guarantees.md). 0: not held, lost, without a
 * recent answer of the ensemble, or this client may not check the node any more. */
ZKL_API int64_t zkl_mutex_window_ms(struct zkl_mutex *mutex);
/* Copy the path of the hold's node (without the chroot) into buf with a final NUL. Returns its
 * length as snprintf does (cut if >= size).
 * Otherwise: ZKL_ENOTOWNER, ZKL_EINVAL, ZKL_EFORK. */
ZKL_API int zkl_mutex_node_path(struct zkl_mutex *mutex, char *buf, size_t size);

/* The state of the hold: ZKL_HOLD_HELD, ZKL_HOLD_SUSPECT or ZKL_HOLD_LOST. *reason (which may be
 * NULL) receives ZKL_REASON_NONE for the first, and for the last two the reason that a callback
 * would have received (zkl_mutex_set_callback). 0: not held, or the call is wrong. */
ZKL_API int zkl_mutex_hold_state(struct zkl_mutex *mutex, enum zkl_reason *reason);

/* --- query the waiters of a lock and their place in the queue ------------- */

/* How many calls and operations wait for the lock through this handle now, those of a multi-lock
 * included. *standing, unless standing is NULL, receives the place of the one that has waited
 * longest. Call it on another thread than one that waits, or in a callback. It sends nothing and
 * does not wait. With local_handoffs_max, a thread that waits for a turn within the handle counts
 * the threads before it there, and has no predecessor's node.
 * 0: nobody waits; or the call is wrong, and zkl_error_detail says why: NULL, a standing without
 * its size, a closed client, a forked child. The call does not write standing then.
 * What the one that has waited longest waits for:
 *
 *     struct zkl_standing standing = ZKL_STANDING_INIT;
 *     if (zkl_mutex_waiting(mutex, &standing) > 0)
 *         printf("has waited %d s for %d others, next is %s\n",
 *                (int)((zkl_now_ns() - standing.since_ns) / 1000000000), (int)standing.before,
 *                standing.owner);
 */
ZKL_API int zkl_mutex_waiting(struct zkl_mutex *mutex, struct zkl_standing *standing);

/* --- set a callback for changes of holds ---------------------------------- */

/* Set, replace or (fn NULL) remove the callback. It takes effect at the next first-time acquire,
 * for which the library does not use a node that retain_ms keeps or that it would hand on. With a
 * callback each acquire arms a watch on its own node: one more request per lock. The callback then
 * reports a deletion from outside immediately and not with the next heartbeat, for up to some 6,000
 * holds of a client, with paths of 80 bytes (docs/guarantees-limits.md). Legal in callbacks; the
 * call sends nothing and does not wait. A lost hold must still be unlocked, once for each lock.
 * 0, ZKL_EINVAL, ZKL_EFORK. */
ZKL_API int zkl_mutex_set_callback(struct zkl_mutex *mutex, zkl_hold_fn fn, void *arg);

/* --- set the end of a hold's lease ---------------------------------------- */

/* A lease is the longest time that a hold may last; lease_ms of struct zkl_wait sets it. If the
 * holder has neither renewed nor unlocked by then, the hold is lost (ZKL_REASON_LEASE_ENDED). Its
 * window never reaches beyond its lease, and the library deletes the node after the lease has
 * ended, so that no other client has the lock before.
 * zkl_mutex_renew lets the calling thread's hold end lease_ms (> 0) from now, earlier or later than
 * it would have, whether it had a lease or not. The call sends no request and does not wait. At
 * most ten seconds for each step:
 *
 *     struct zkl_wait wait = ZKL_WAIT_INIT;
 *     wait.deadline_ns = zkl_now_ns() + 5000 * INT64_C(1000000);
 *     wait.lease_ms = 10000;
 *     if (zkl_mutex_acquire(mutex, &wait, NULL) == 0) {
 *         do {
 *             work();
 *         } while (more_rows() && zkl_mutex_renew(mutex, 10000) == 0);
 *         zkl_mutex_unlock(mutex);
 *     }
 *
 * 0; ZKL_ELOST: the lease had ended, or the hold was lost otherwise: unlock, then lock again;
 * ZKL_ENOTOWNER; ZKL_EBADTIMEOUT: lease_ms is not above 0, or above ZKL_TIMEOUT_MAX_MS; ZKL_EINVAL:
 * NULL, or the hold is in a node of zkl_rwlock_retain_readers; ZKL_EFORK. */
ZKL_API int zkl_mutex_renew(struct zkl_mutex *mutex, int64_t lease_ms);

/* --- check for a request to release a lock -------------------------------- */

/* 1 if another client has requested the release of the calling thread's hold (zkl_revoke in
 * inspect.h, zklock revoke, Curator's Revoker) and this lock has a callback or the option
 * revocable, without which the library does not ask the server; 0 if not, or not held, or if the
 * call is wrong, as zkl_error_detail then says. It sends nothing and never waits. The library takes
 * nothing away: the caller decides when to unlock; the other client may force it later, and the
 * hold is lost then. Work until another client asks:
 *
 *     if (zkl_mutex_lock_for(mutex, 5000) == 0) {
 *         while (more_rows() && !zkl_mutex_revoke_requested(mutex))
 *             write_row(zkl_mutex_token(mutex));
 *         zkl_mutex_unlock(mutex);
 *     }
 */
ZKL_API int zkl_mutex_revoke_requested(struct zkl_mutex *mutex);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif
