/* SPDX-License-Identifier: Apache-2.0
 *
 * mutex.h - the mutex: one thread of all processes holds a path.
 *
 * It is reentrant, with a count, and served first come, first served. The threads of a process can
 * share one handle: they exclude each other as those of other processes do. Mutexes, rwlocks and
 * the mutexes of semaphore.h have the calls of this header in common.
 *
 *     if (zkl_mutex_lock_for(mutex, 5000) != 0) {
 *         fprintf(stderr, "report: %s\n", zkl_error_detail());
 *         exit(EXIT_FAILURE);
 *     }
 *     while (more_rows() && zkl_mutex_still_held(mutex, 500))
 *         write_row(zkl_mutex_token(mutex));
 *     if (zkl_error_is_lost(zkl_mutex_unlock(mutex)))
 *         fprintf(stderr, "somebody else may have held it meanwhile\n");
 *
 * Illegal: to unlock in another thread than the one that locked (ZKL_ENOTOWNER); to lock one path
 * through two handles in one thread (ZKL_EDEADLK); to wait in a callback of the library
 * (ZKL_EINCALLBACK); to use the handle in a forked child (ZKL_EFORK), or after zkl_mutex_free.
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

#define ZKL_HOLD_COUNT_MAX 1000000000

#define ZKL_LOCK_NAME_MAX 64 /* bytes of a lock's name */

/* Fill with ZKL_MUTEX_OPTIONS_INIT. A NULL instead of options means just that. All text is copied.
 * The first ones are those of zkl_lock_options. */
struct zkl_mutex_options {
    size_t size;
    enum zkl_names names;
    int revocable;
    int posted_unlock;
    int metrics;
    const char *owner;
    /* with ZKL_NAMES_NAMED: at most ZKL_LOCK_NAME_MAX bytes, without "/" and "_lock_" */
    const char *name;

    /* The last two change what "first come, first served" means: see docs/guarantees.md. */

    /* > 0: the threads that lock this handle queue with one node, and have it in turn, first come
     * first served among them: unlock hands it on to the next one without a request, so often in a
     * row while others are known to queue. The node, and so the token, is one for all of them. A
     * hold that is suspect, revoked, or has a lease is not handed on. A try is busy while another
     * thread of this handle has the lock or queues */
    int64_t local_handoffs_max;
    /* > 0, at most 3,600,000: the last unlock leaves the node on the server with nobody in it; this
     * handle takes it again without a request, on the same node with the same token. It goes when
     * this time is over, when anybody else queues or asks it to let go, and when the link breaks. A
     * hold that had to be waited for, or has a lease, is not kept. Two requests more for each
     * node */
    int64_t retain_ms;
};

#define ZKL_MUTEX_OPTIONS_INIT                                                                     \
    {                                                                                              \
        sizeof(struct zkl_mutex_options), ZKL_NAMES_CURATOR, 0, 0, 0, NULL, NULL, 0, 0             \
    }

/* A handle on the mutex at path (absolute, below the client's chroot, at most 512 bytes; parents
 * are made when needed, as containers that the server removes once they are empty). options may be
 * NULL. No request is sent.
 * Several handles may name one path; but one thread must use one of them at a time (ZKL_EDEADLK),
 * unless they are named locks of different names.
 * 0, ZKL_EINVAL, ZKL_EBADPATH, ZKL_EBADTIMEOUT (retain_ms), ZKL_ECLOSED, ZKL_EFORK, ZKL_ENOMEM. */
ZKL_API int zkl_mutex_new(struct zkl_mutex **mutex, struct zkl_client *client, const char *path,
                          const struct zkl_mutex_options *options);

/* Give the handle up. After 0 no callback of this mutex runs any more (called from within that very
 * callback: none after it). A node that retain_ms keeps is deleted in the background. NULL is
 * ignored.
 * Nothing is freed: ZKL_EBUSY, some thread holds or waits; ZKL_EFORK; ZKL_EINVAL, it is half of a
 * read-write lock; ZKL_EINCALLBACK, called in a callback of another client while this mutex's own
 * callback runs. Otherwise allowed in callbacks. */
ZKL_API int zkl_mutex_free(struct zkl_mutex *mutex);

/* Acquire the mutex: the call that all others are defined by. wait NULL means ZKL_WAIT_INIT; grant
 * may be NULL, is written only on success, and its size is to be set.
 * If the calling thread holds it already the count goes up by one and no request is sent, whatever
 * the deadline. Else a deadline that has passed, or a cancel object that is set, ends the call
 * before any request. A try (ZKL_WAIT_TRY) that finds somebody else sends one read; it waits for a
 * lost link no longer than one session timeout. If all it finds is one node that may stay with
 * nobody in it (of a mutex with retain_ms), it asks for that, and is busy if it has not got it
 * after 200 ms. The link may be lost and come back during the wait: the place in the queue is kept.
 * If the session expires the thread queues again, at the end, within its deadline.
 * 0: held by the calling thread, until it has called unlock as often as lock.
 * Not held: ZKL_ETIMEDOUT, ZKL_ECANCELED; ZKL_EBUSY, ZKL_EDISCONNECTED and ZKL_EUNPROVED (tries
 * only); ZKL_ECLOSED, ZKL_EACCES, ZKL_EAUTH, ZKL_ENOCHROOT, ZKL_EEXHAUSTED, ZKL_EQUOTA,
 * ZKL_EREADONLY, ZKL_EUNIMPLEMENTED, ZKL_EPROTO, ZKL_ENOMEM, ZKL_ESYSTEM, ZKL_EINVAL,
 * ZKL_EBADTIMEOUT (a negative deadline, a lease out of range), ZKL_EFORK, ZKL_EINCALLBACK,
 * ZKL_EDEADLK, ZKL_EOVERFLOW, ZKL_EMISMATCH (of a semaphore's mutex); and ZKL_ELOST: this thread's
 * hold, or for a read lock its write lock, was lost and is still to be unlocked.
 * ZKL_ESYSTEM also where this client watches so many nodes for waiters, some 12,000, that it could
 * not restore one more after a reconnect (docs/guarantees.md).
 * Whatever was put on the server by a call that failed is deleted in the background, after a lost
 * link once it is back; the session's end removes it in any case. */
ZKL_API int zkl_mutex_acquire(struct zkl_mutex *mutex, const struct zkl_wait *wait,
                              struct zkl_grant *grant);

/* zkl_mutex_acquire(mutex, NULL, NULL). */
ZKL_API int zkl_mutex_lock(struct zkl_mutex *mutex);
/* zkl_mutex_acquire with ZKL_WAIT_TRY. */
ZKL_API int zkl_mutex_trylock(struct zkl_mutex *mutex);
/* zkl_mutex_acquire with a deadline timeout_ms from now. ZKL_EBADTIMEOUT besides. 0 ms is no try:
 * no request is sent, and only a re-entry succeeds; see zkl_mutex_trylock. */
ZKL_API int zkl_mutex_lock_for(struct zkl_mutex *mutex, int64_t timeout_ms);
/* zkl_mutex_acquire with deadline_ns (absolute, zkl_now_ns()'s clock) and cancel (may be NULL). */
ZKL_API int zkl_mutex_lock_until(struct zkl_mutex *mutex, int64_t deadline_ns,
                                 struct zkl_cancel *cancel);

/* Give one hold of the calling thread back; the last one deletes the node and waits for the
 * server's answer, at most until the link breaks or the window ends. With the option posted_unlock
 * it sends the delete and does not wait: 0 says that the hold was good when it was given back, and
 * a deletion by somebody else, or a denied one, may go unnoticed.
 * 0: given back, and nobody else held the lock before. ZKL_EUNCONFIRMED: not held any more, but no
 * answer came: the library deletes the node as soon as it can; the window was open when unlock was
 * called, so nobody else held before. ZKL_EDOUBT: likewise without an answer, or a denied one, but
 * the window was empty by then, and nothing proved the hold afterwards: somebody else may have held
 * the lock; also from an unlock that is not the last one, whose window is empty. ZKL_ELOST: the
 * hold had been lost before; it counts as given back. ZKL_EACCES: not held any more, but the ACL
 * denies DELETE: the node blocks the path until this client's session ends.
 * Nothing changed: ZKL_ENOTOWNER, ZKL_EINVAL, ZKL_EFORK, ZKL_EINCALLBACK. After close:
 * ZKL_ELOST. */
ZKL_API int zkl_mutex_unlock(struct zkl_mutex *mutex);

/* The calls below speak of the calling thread's own hold, send nothing and never wait. Each that
 * answers with yes or no, a count, a time or a token answers 0, never less, where it is called
 * wrongly: with NULL, with a number out of range, in a child that was forked. zkl_error_detail then
 * says why, and is empty after any other answer. */

/* 1 if held with at least need_ms (>= 0) of the window left, else 0. */
ZKL_API int zkl_mutex_still_held(struct zkl_mutex *mutex, int64_t need_ms);
/* The same, with a reason: 0 if so; ZKL_ENOTOWNER: not held; ZKL_ELOST: the hold is lost;
 * ZKL_EUNPROVED: less than need_ms is proved, which may come back; ZKL_EINVAL, ZKL_EBADTIMEOUT,
 * ZKL_EFORK. */
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
 * length as snprintf does (cut if >= size); ZKL_ENOTOWNER if not held; ZKL_EINVAL, ZKL_EFORK. */
ZKL_API int zkl_mutex_node_path(struct zkl_mutex *mutex, char *buf, size_t size);

/* How the hold is: ZKL_HOLD_HELD, ZKL_HOLD_SUSPECT or ZKL_HOLD_LOST, and of the last two the reason
 * in *reason, which may be NULL: what a callback would have been told. 0: not held. */
ZKL_API int zkl_mutex_hold_state(struct zkl_mutex *mutex, enum zkl_reason *reason);

/* How many calls and operations wait for the lock through this handle now, those of a multi-lock
 * included; and, unless standing is NULL, where the one stands that has waited longest. To be asked
 * on another thread than one that waits, or in a callback. Nothing is sent, and it does not wait.
 * With local_handoffs_max, who waits for a turn within the handle counts those before it there, and
 * has no predecessor's node.
 * 0: nobody waits; or the call is wrong, and zkl_error_detail says why: NULL, a standing without
 * its size, a closed client, a forked child. standing is not written then. */
ZKL_API int zkl_mutex_waiting(struct zkl_mutex *mutex, struct zkl_standing *standing);

/* Set, replace or (fn NULL) remove the callback; takes effect for the next first-time acquire (for
 * which a node that retain_ms keeps, or that would be handed on, is not used any more). With a
 * callback each acquire arms a watch on its own node: one more request per lock, and a deletion
 * from outside is reported at once instead of with the next heartbeat. 0, ZKL_EINVAL, ZKL_EFORK. */
ZKL_API int zkl_mutex_set_callback(struct zkl_mutex *mutex, zkl_hold_fn fn, void *arg);

/* Let the calling thread's hold end lease_ms (> 0) from now, earlier or later than it would have,
 * whether it had a lease or not. No request is sent.
 * 0; ZKL_ELOST: the lease had ended, or the hold was lost otherwise; ZKL_ENOTOWNER,
 * ZKL_EBADTIMEOUT, ZKL_EINVAL, ZKL_EFORK. */
ZKL_API int zkl_mutex_renew(struct zkl_mutex *mutex, int64_t lease_ms);

/* 1 if somebody has asked the calling thread's hold to let go (zkl_revoke in inspect.h, zklock
 * revoke, Curator's Revoker) and this lock has a callback or the option revocable; 0 if not, or not
 * held. Nothing is taken away: to unlock is up to the caller, the asker may force it later. */
ZKL_API int zkl_mutex_revoke_requested(struct zkl_mutex *mutex);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif
