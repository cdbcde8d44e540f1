/* SPDX-License-Identifier: Apache-2.0
 *
 * async.h - the calls that wait, for programs that must not wait: each starts an operation that
 * ends in a callback.
 *
 *     static void granted(int code, void *arg)
 *     {
 *         if (code == 0)
 *             begin_work(arg);
 *     }
 *     ...
 *     struct zkl_wait wait = ZKL_WAIT_INIT;
 *     wait.deadline_ns = zkl_now_ns() + 5000 * INT64_C(1000000);
 *     if (zkl_mutex_acquire_async(owner, mutex, &wait, NULL, granted, job, NULL) != 0)
 *         fprintf(stderr, "%s\n", zkl_error_detail());
 *
 * In an event loop (epoll, poll, libuv) all callbacks run on the loop's own thread:
 *
 *     #include <poll.h>
 *     #include <zklock/async.h>
 *
 *     void serve(struct zkl_client *client, const int *stop)
 *     {
 *         struct pollfd p = {zkl_client_event_fd(client), POLLIN, 0};
 *         while (p.fd >= 0 && !*stop) {
 *             if (poll(&p, 1, -1) > 0)
 *                 zkl_client_dispatch(client, 100);
 *         }
 *     }
 *
 * Each call here starts what the call of the same name without _async does. Its arguments mean the
 * same, and the callback receives the code that the other call would return. If the starting call
 * returns anything but 0, it has started nothing and no callback comes (after a close a release
 * returns ZKL_ELOST, and has released): it returns in this way the codes of a wrong call
 * (ZKL_EINVAL to ZKL_EOVERFLOW in error.h, ZKL_EDEADLK and ZKL_ENOTOWNER among them), and
 * ZKL_ENOMEM, ZKL_ESYSTEM and ZKL_EBUSY where its comment says so. If it returns 0 the callback
 * runs exactly once, whatever happens: also if the result was known immediately, and at the latest
 * when the client is closed (ZKL_ECLOSED). The callback does not run within the starting call. The
 * memory for results (a grant, permits, codes) must stay valid until the callback; the library
 * writes it just before. It copies all other arguments.
 *
 * Callbacks of one client run one after the other, with no library lock held: on a thread of the
 * client, possibly before the starting call has returned on another thread; or, for an event loop,
 * on the application's own (zkl_client_event_fd). zkl_error_detail() explains the code there.
 * Calls that wait return ZKL_EINCALLBACK in a callback, but all calls of this header that start
 * something are legal there. An operation uses no thread of its own.
 *
 * zkl_client_open has no asynchronous twin: with a connect_timeout_ms of 0 it does not wait, and
 * state_fn reports the rest. Nor have the calls of administration (zkl_inspect, zkl_revoke,
 * zkl_break, zkl_semaphore_set_permits): make them on a thread of your own.
 * Illegal: using an owner in two threads at the same time, or while the operation of a multi-lock
 * has it; freeing or reusing the memory for a result before the callback has run; a call that waits
 * in a callback.
 */
#ifndef ZKLOCK_ASYNC_H
#define ZKLOCK_ASYNC_H

#include <zklock/zklock.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- hold locks for something other than a thread ------------------------- */

/* For a mutex and a multi-lock, an owner is what a thread is in zklock.h: it holds, with a count,
 * and has its own place in each queue. Two owners exclude each other, in one thread too. A server
 * makes an owner for each connection or job; one handle for each path serves them all. An owner is
 * bound to no thread and no client, but to the process that made it. Any thread may use it, but not
 * two at the same time (nor while the operation of a multi-lock has it). An owner can have many
 * acquisitions under way, but one for a path: the library refuses one that would wait for the first
 * (ZKL_EDEADLK). */
struct zkl_owner;

/* Make an owner.
 * 0, ZKL_EINVAL, ZKL_ENOMEM. */
ZKL_API int zkl_owner_new(struct zkl_owner **owner);
/* Free the owner. The call is legal as soon as the owner's last zkl_mutex_unlock_async has returned
 * 0, and in the callback of its last acquisition if that failed. Must be the last call with the
 * owner: no other thread uses it, and no thread restores it later. The call ignores NULL.
 * Nothing is freed: ZKL_EBUSY: the owner holds something (lost holds count until they are
 * unlocked), an acquisition is under way, or the calling thread uses it; ZKL_EFORK. */
ZKL_API int zkl_owner_free(struct zkl_owner *owner);

/* From now on the calling thread makes all calls of zklock.h as owner, those that wait too. That is
 * how a program queries a hold of an owner. NULL: as the thread itself again. Returns the previous
 * owner, which the caller must restore, or NULL for the thread itself. A thread's end leaves alone
 * what its owner holds. A forked child's thread is itself again, and the holds stay the parent's.
 * May this owner write:
 *
 *     struct zkl_owner *before = zkl_owner_use(owner);
 *     if (!zkl_mutex_still_held(mutex, 500))
 *         stop_writing();
 *     zkl_owner_use(before);
 */
ZKL_API struct zkl_owner *zkl_owner_use(struct zkl_owner *owner);

/* --- acquire and release with a callback instead of waiting --------------- */

typedef void (*zkl_done_fn)(int code, void *arg);

/* zkl_mutex_acquire for that owner. *op, unless op is NULL, receives the operation's number, for
 * zkl_op_cancel. mutex may be half of a read-write lock, or one of zkl_semaphore_mutex_new. Lock,
 * work, unlock:
 *
 *     #include <stdio.h>
 *     #include <zklock/async.h>
 *
 *     struct job {
 *         struct zkl_owner *owner;
 *         struct zkl_mutex *mutex;
 *         void (*work)(void);
 *     };
 *
 *     static void unlocked(int code, void *arg)
 *     {
 *         (void)arg;
 *         if (code != 0)
 *             fprintf(stderr, "%s\n", zkl_error_detail());
 *     }
 *
 *     static void locked(int code, void *arg)
 *     {
 *         struct job *job = arg;
 *         if (code != 0) {
 *             unlocked(code, job);
 *             return;
 *         }
 *         job->work();
 *         zkl_mutex_unlock_async(job->owner, job->mutex, unlocked, job);
 *     }
 *
 *     int begin(struct job *job)
 *     {
 *         struct zkl_wait wait = ZKL_WAIT_INIT;
 *         wait.deadline_ns = zkl_now_ns() + 10000 * INT64_C(1000000);
 *         return zkl_mutex_acquire_async(job->owner, job->mutex, &wait, NULL, locked, job, NULL);
 *     }
 *
 * Immediately: ZKL_EINVAL, ZKL_EBADTIMEOUT, ZKL_ECLOSED, ZKL_EFORK; ZKL_EDEADLK: the owner would
 * wait for itself: as in zkl_mutex_acquire, or another operation acquires the path for it;
 * ZKL_EOVERFLOW, ZKL_ENOMEM, ZKL_ESYSTEM; ZKL_EBUSY: the operation of a multi-lock has the
 * owner. */
ZKL_API int zkl_mutex_acquire_async(struct zkl_owner *owner, struct zkl_mutex *mutex,
                                    const struct zkl_wait *wait, struct zkl_grant *grant,
                                    zkl_done_fn fn, void *arg, uint64_t *op);
/* zkl_mutex_unlock for that owner: from here on it has one hold less, or none. The callback
 * receives what zkl_mutex_unlock returns. The operation cannot be canceled.
 * Immediately, and nothing changed: ZKL_EINVAL, ZKL_EFORK; ZKL_ENOTOWNER: the owner does not hold
 * it through this handle; ZKL_ENOMEM; ZKL_EBUSY: the operation of a multi-lock has the owner.
 * After close: ZKL_ELOST: released, and no callback comes. */
ZKL_API int zkl_mutex_unlock_async(struct zkl_owner *owner, struct zkl_mutex *mutex, zkl_done_fn fn,
                                   void *arg);

/* zkl_semaphore_acquire: permits belong to no owner. op may be NULL.
 * Immediately: ZKL_EINVAL, ZKL_EBADTIMEOUT, ZKL_ECLOSED, ZKL_EFORK, ZKL_ENOMEM, ZKL_ESYSTEM. */
ZKL_API int zkl_semaphore_acquire_async(struct zkl_semaphore *semaphore, int count,
                                        const struct zkl_wait *wait, struct zkl_permit **permits,
                                        zkl_done_fn fn, void *arg, uint64_t *op);
/* zkl_permit_release: the library frees the handle at the callback; the caller must not use it from
 * here on. Legal in the permit's own state callback too, which then reports nothing more of it.
 * Immediately, and nothing changed: ZKL_EINVAL: NULL, or a multi-lock has the permit; ZKL_EFORK,
 * ZKL_ENOMEM.
 * After close: ZKL_ELOST: released, and no callback comes. */
ZKL_API int zkl_permit_release_async(struct zkl_permit *permit, zkl_done_fn fn, void *arg);

/* End an operation's wait: its callback receives ZKL_ECANCELED, unless the outcome was decided
 * before, which may be a grant (0): be ready to unlock it. The callback comes later, as always.
 * Cheaper than a cancel object if there are many. The call ignores a number that is no operation of
 * this client any more, or one of an operation that cannot be canceled. Legal in callbacks.
 * 0, ZKL_EINVAL, ZKL_EFORK. */
ZKL_API int zkl_op_cancel(struct zkl_client *client, uint64_t op);

/* --- acquire and release several locks as one with a callback ------------- */

/* zkl_multi_acquire for that owner; op may be NULL. Until the callback the owner belongs to this
 * operation: the library refuses another one that names it (ZKL_EBUSY), and no thread may use it.
 * Two locks as one, within 30 seconds:
 *
 *     #include <stdio.h>
 *     #include <zklock/async.h>
 *
 *     static void both_locked(int code, void *arg)
 *     {
 *         (void)arg;
 *         puts(code == 0 ? "both are held" : zkl_error_detail());
 *     }
 *
 *     int lock_both(struct zkl_owner *owner, struct zkl_multi *both)
 *     {
 *         struct zkl_wait wait = ZKL_WAIT_INIT;
 *         wait.deadline_ns = zkl_now_ns() + 30000 * INT64_C(1000000);
 *         return zkl_multi_acquire_async(owner, both, &wait, NULL, both_locked, NULL, NULL);
 *     }
 *
 * Immediately: ZKL_EINVAL, ZKL_EBADTIMEOUT, ZKL_ECLOSED, ZKL_EFORK; ZKL_EDEADLK: the owner would
 * wait for itself; ZKL_EOVERFLOW, ZKL_ENOMEM, ZKL_ESYSTEM; ZKL_EBUSY: the operation of another
 * multi-lock has the owner.
 */
ZKL_API int zkl_multi_acquire_async(struct zkl_owner *owner, struct zkl_multi *multi,
                                    const struct zkl_wait *wait, struct zkl_grant *grants,
                                    zkl_done_fn fn, void *arg, uint64_t *op);
/* zkl_multi_unlock for that owner, which belongs to the operation as above.
 * Immediately, and nothing changed: ZKL_EINVAL, ZKL_EFORK, ZKL_ENOMEM; ZKL_ENOTOWNER: the owner
 * does not hold the multi-lock; ZKL_EBUSY: the operation of another multi-lock has the owner.
 * After close: ZKL_ELOST: released, and no callback comes. */
ZKL_API int zkl_multi_unlock_async(struct zkl_owner *owner, struct zkl_multi *multi, int *codes,
                                   zkl_done_fn fn, void *arg);

/* --- end a client's session and free the client --------------------------- */

/* zkl_client_close without a wait. It takes effect immediately: holds are lost, operations end with
 * ZKL_ECLOSED, before this one or after it. The callback comes when a server has confirmed the
 * session's end (0), or when the client gives up waiting for one, after some seconds
 * (ZKL_ETIMEDOUT: the server removes the nodes when the session times out at the latest), and at
 * the latest in zkl_client_free. Legal in callbacks; several calls may be under way at the same
 * time.
 * Immediately: ZKL_EINVAL, ZKL_EFORK, ZKL_ENOMEM: nothing was done; ZKL_ECLOSED: the client is
 * closed. */
ZKL_API int zkl_client_close_async(struct zkl_client *client, zkl_done_fn fn, void *arg);

/* --- query the waiters of a lock and their place in the queue ------------- */

/* As zkl_mutex_waiting, of one operation (of a multi-lock: of the member that it waits for now): 1
 * if it waits for its lock, 0 if not, or not any more. */
ZKL_API int zkl_op_waiting(struct zkl_client *client, uint64_t op, struct zkl_standing *standing);

/* --- run a client's callbacks in an event loop ---------------------------- */

/* The client's descriptor for poll, epoll and the like, the same at each call. It is readable while
 * a callback is due. No timer is needed beside it: deadlines and lost sessions make it readable.
 * From the first call on, all callbacks of this client run in zkl_client_dispatch and nowhere else,
 * those of its states, its log and its holds too; the call waits for a callback that runs on the
 * client's thread at that moment. The descriptor belongs to the client: only poll whether it is
 * readable. Returns it (>= 0).
 * Otherwise: ZKL_EINVAL, ZKL_EFORK, ZKL_EINCALLBACK, ZKL_ECLOSED, ZKL_ESYSTEM (no descriptor). */
ZKL_API int zkl_client_event_fd(struct zkl_client *client);
/* Run callbacks that are due, in their order, on the calling thread, at most max (the gathered
 * states of one hold count as one, and so do the client's states, or its log). The call never waits
 * for a callback to become due. It also runs those that remain after zkl_client_close; otherwise
 * zkl_client_free does, on the thread that calls it. Any thread that is in no callback may call it,
 * one at a time. Returns how many it ran.
 * Otherwise: ZKL_EINVAL: client is NULL, max is below 1, or zkl_client_event_fd was not called;
 * ZKL_EFORK, ZKL_EINCALLBACK; ZKL_EBUSY (another thread is running them). */
ZKL_API int zkl_client_dispatch(struct zkl_client *client, int max);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif
