/* SPDX-License-Identifier: Apache-2.0
 *
 * mutex.h - the mutex: one thread of all processes holds a path.
 *
 * The mutex is reentrant, with a count, and serves contenders first come, first served. The threads
 * of a process can share one handle: they exclude each other as threads of other processes do.
 * Mutexes, rwlocks and the mutexes of semaphore.h share the calls of this header.
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
 * library makes missing parents, as containers that the server removes once they are empty. options
 * may be NULL. The call sends no request.
 * Several handles may name one path, but one thread must use one of them at a time (ZKL_EDEADLK),
 * unless they are named locks of different names.
 * 0, ZKL_EINVAL, ZKL_EBADPATH, ZKL_EBADTIMEOUT (retain_ms), ZKL_ECLOSED, ZKL_EFORK, ZKL_ENOMEM. */
ZKL_API int zkl_mutex_new(struct zkl_mutex **mutex, struct zkl_client *client, const char *path,
                          const struct zkl_mutex_options *options);

/* Free the handle. After 0 no callback of this mutex runs any more (if called within that very
 * callback: none after it). The library deletes a node that retain_ms keeps, in the background. The
 * call ignores NULL.
 * Nothing is freed: ZKL_EBUSY, a thread holds or waits; ZKL_EFORK; ZKL_EINVAL, the handle is half
 * of a read-write lock; ZKL_EINCALLBACK, called in a callback of another client while this mutex's
 * own callback runs. Otherwise the call is legal in callbacks. */
ZKL_API int zkl_mutex_free(struct zkl_mutex *mutex);

/* --- acquire a mutex ------------------------------------------------------ */

/* Acquire the mutex. All other acquiring calls are defined by this one. wait NULL means
 * ZKL_WAIT_INIT. grant may be NULL; its size must be set, and the call writes it only on success.
 * If the calling thread holds the mutex already, the count grows by one, whatever the deadline, and
 * the call sends no request. Otherwise a passed deadline, or a set cancel object, ends the call
 * before any request. A try (ZKL_WAIT_TRY) that finds another contender sends one read. It waits
 * for a lost link no longer than one session timeout. If it finds only one node that may be without
 * a holder (of a mutex with retain_ms), it asks for that node, and is busy if it has not got it
 * after 200 ms. If the link breaks during the wait, the thread keeps its place in the queue. If the
 * session expires, the thread queues again, at the end, within its deadline.
 * 0: the calling thread holds the mutex, until it has called unlock as often as lock.
 * Not held: ZKL_ETIMEDOUT, ZKL_ECANCELED; ZKL_EBUSY, ZKL_EDISCONNECTED and ZKL_EUNPROVED (tries
 * only); ZKL_ECLOSED, ZKL_EACCES, ZKL_EAUTH, ZKL_ENOCHROOT, ZKL_EEXHAUSTED, ZKL_EQUOTA,
 * ZKL_EREADONLY, ZKL_EUNIMPLEMENTED, ZKL_EPROTO, ZKL_ENOMEM, ZKL_ESYSTEM, ZKL_EFULL, ZKL_EINVAL,
 * ZKL_EBADTIMEOUT (a negative deadline, a lease out of range), ZKL_EFORK, ZKL_EINCALLBACK,
 * ZKL_EDEADLK, ZKL_EOVERFLOW, ZKL_EMISMATCH (of a semaphore's mutex); and ZKL_ELOST: this thread's
 * hold, or for a read lock its write lock, was lost and must still be unlocked.
 * ZKL_ESYSTEM also if this client watches some 12,000 nodes for waiters and could not restore one
 * more after a reconnect; ZKL_EFULL if its session owns some 12,000 nodes, which the servers could
 * not bear to end with many more (docs/guarantees-limits.md).
 * The library deletes the nodes of a failed call in the background, after a lost link once it is
 * back. The session's end removes them in any case. */
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

/* Release one hold of the calling thread. The last unlock deletes the node and waits for the
 * server's answer, at most until the link breaks or the window ends. With the option posted_unlock
 * it sends the delete and does not wait. 0 then says that the hold was good at its release; a
 * deletion by another client, or a denied one, may remain unnoticed.
 * 0: released, and no other client held the lock before. ZKL_EUNCONFIRMED: not held any more, but
 * no answer came; the library deletes the node as soon as it can. The window was open when unlock
 * was called, so no other client held the lock before, unless one had deleted the node by hand.
 * ZKL_EDOUBT: no answer, or a denied delete, and the window was empty when unlock was called:
 * another client may have held the lock. Also from an unlock that is not the last one, if the
 * window is empty then. With an empty window unlock does not wait.
 * ZKL_ELOST: the hold had been lost before; it counts as released. ZKL_EACCES: not held any more,
 * but the ACL denies DELETE: the node blocks the path until this client's session ends.
 * Nothing changed: ZKL_ENOTOWNER, ZKL_EINVAL, ZKL_EFORK, ZKL_EINCALLBACK. After close:
 * ZKL_ELOST. */
ZKL_API int zkl_mutex_unlock(struct zkl_mutex *mutex);

/* --- query the calling thread's own hold ---------------------------------- */

/* The calls below concern the calling thread's own hold, send nothing and never wait. Those that
 * return yes or no, a count, a time or a token return 0, never less, if the call is wrong: with
 * NULL, with a number out of range, in a forked child. zkl_error_detail then says why. It is empty
 * after any other answer. */

/* 1 if held with at least need_ms (>= 0) of the window left, else 0. */
ZKL_API int zkl_mutex_still_held(struct zkl_mutex *mutex, int64_t need_ms);
/* The same, with a reason: 0 if so; ZKL_ENOTOWNER: not held; ZKL_ELOST: the hold is lost;
 * ZKL_EUNPROVED: less than need_ms is proved, which may change; ZKL_EINVAL, ZKL_EBADTIMEOUT,
 * ZKL_EFORK. */
ZKL_API int zkl_mutex_check(struct zkl_mutex *mutex, int64_t need_ms);
/* How many unlocks are due, lost holds included; 0 if not held. */
ZKL_API int zkl_mutex_hold_count(struct zkl_mutex *mutex);
/* The fencing token, > 0; 0 if not held, or lost. */
ZKL_API uint64_t zkl_mutex_token(struct zkl_mutex *mutex);
/* Milliseconds for which the hold is proved: no other client can be granted the lock before they
 * are over, by this machine's CLOCK_BOOTTIME, which runs on while process or machine sleeps, but
 * may stop if a hypervisor freezes the machine (docs/guarantees.md). 0: not provably held. */
ZKL_API int64_t zkl_mutex_window_ms(struct zkl_mutex *mutex);
/* Copy the path of the hold's node (without the chroot) into buf with a final NUL. Returns its
 * length as snprintf does (cut if >= size); ZKL_ENOTOWNER if not held; ZKL_EINVAL, ZKL_EFORK. */
ZKL_API int zkl_mutex_node_path(struct zkl_mutex *mutex, char *buf, size_t size);

/* The state of the hold: ZKL_HOLD_HELD, ZKL_HOLD_SUSPECT or ZKL_HOLD_LOST. For the last two *reason
 * (which may be NULL) receives the reason that a callback would have received. 0: not held. */
ZKL_API int zkl_mutex_hold_state(struct zkl_mutex *mutex, enum zkl_reason *reason);

/* --- query the waiters of a lock and their place in the queue ------------- */

/* How many calls and operations wait for the lock through this handle now, those of a multi-lock
 * included. *standing, unless standing is NULL, receives the place of the one that has waited
 * longest. Call it on another thread than one that waits, or in a callback. It sends nothing and
 * does not wait. With local_handoffs_max, a thread that waits for a turn within the handle counts
 * the threads before it there, and has no predecessor's node.
 * 0: nobody waits; or the call is wrong, and zkl_error_detail says why: NULL, a standing without
 * its size, a closed client, a forked child. The call does not write standing then. */
ZKL_API int zkl_mutex_waiting(struct zkl_mutex *mutex, struct zkl_standing *standing);

/* --- set a callback for changes of holds ---------------------------------- */

/* Set, replace or (fn NULL) remove the callback. It takes effect at the next first-time acquire,
 * for which the library does not use a node that retain_ms keeps or that it would hand on. With a
 * callback each acquire arms a watch on its own node: one more request per lock. The callback then
 * reports a deletion from outside immediately and not with the next heartbeat, for up to some 6,000
 * holds of a client (docs/guarantees.md). 0, ZKL_EINVAL, ZKL_EFORK. */
ZKL_API int zkl_mutex_set_callback(struct zkl_mutex *mutex, zkl_hold_fn fn, void *arg);

/* --- set the end of a hold's lease ---------------------------------------- */

/* Let the calling thread's hold end lease_ms (> 0) from now, earlier or later than it would have,
 * whether it had a lease or not. The call sends no request.
 * 0; ZKL_ELOST: the lease had ended, or the hold was lost otherwise; ZKL_ENOTOWNER,
 * ZKL_EBADTIMEOUT, ZKL_EINVAL, ZKL_EFORK. */
ZKL_API int zkl_mutex_renew(struct zkl_mutex *mutex, int64_t lease_ms);

/* --- check for a request to release a lock -------------------------------- */

/* 1 if another client has requested the release of the calling thread's hold (zkl_revoke in
 * inspect.h, zklock revoke, Curator's Revoker) and this lock has a callback or the option
 * revocable; 0 if not, or not held. The library takes nothing away: the caller decides when to
 * unlock; the other client may force it later. */
ZKL_API int zkl_mutex_revoke_requested(struct zkl_mutex *mutex);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif
