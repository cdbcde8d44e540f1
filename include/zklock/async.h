/* SPDX-License-Identifier: Apache-2.0
 *
 * async.h - the calls that wait, for programs that can't: each starts here and ends in a callback.
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
 * In an event loop (epoll, poll, libuv) all callbacks run on its own thread:
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
 * Each call here starts what the call of the same name without _async does: its arguments mean the
 * same, and the callback gets the code that that call would return. If the starting call itself
 * returns anything but 0, nothing was begun and no callback comes: it so returns the codes of a
 * wrong call (ZKL_EINVAL to ZKL_EOVERFLOW in error.h, ZKL_EDEADLK and ZKL_ENOTOWNER among them),
 * and ZKL_ENOMEM, ZKL_ESYSTEM and ZKL_EBUSY where its comment says so. If it returns 0 the callback
 * runs exactly once, whatever happens: also for what was known at once, and at the latest when the
 * client is closed (ZKL_ECLOSED). It does not run within the starting call. The memory handed in
 * for results (a grant, permits, codes) must stay until the callback, and is written just before
 * it; all other arguments are copied.
 *
 * Callbacks of one client run one after the other, with no library lock held: on a thread of the
 * client's, perhaps at the very moment in which the starting call returns on another; or, for an
 * event loop, on the application's own (zkl_client_event_fd). zkl_error_detail() explains the code
 * there.
 * Calls that wait return ZKL_EINCALLBACK in a callback, but all calls of this header that start
 * something may be made there. An operation takes no thread.
 *
 * zkl_client_open has no twin: with a connect_timeout_ms of 0 it does not wait, and state_fn tells
 * the rest. Nor have the calls of administration (zkl_inspect, zkl_revoke, zkl_break,
 * zkl_semaphore_set_permits): make them on a thread of your own.
 * Illegal: to use an owner in two threads at a time, or while the operation of a multi-lock has it;
 * to free or reuse what a result is written to before the callback has run; a call that waits in a
 * callback.
 */
#ifndef ZKLOCK_ASYNC_H
#define ZKLOCK_ASYNC_H

#include <zklock/zklock.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- owners ------------------------------------------------------------- */

/* An owner is for a mutex and a multi-lock what a thread is in zklock.h: it holds, with a count,
 * and has its own place in each queue; two owners exclude each other, in one thread too. A server
 * makes one for each connection or job; one handle for each path serves them all. An owner is
 * bound to no thread and no client, and to the process that made it. Any thread may use it, but not
 * two at a time (nor while the operation of a multi-lock has it). An owner can have many
 * acquisitions under way, but one for a path: another one that would wait for the first is refused
 * (ZKL_EDEADLK). */
struct zkl_owner;

/* 0, ZKL_EINVAL, ZKL_ENOMEM. */
ZKL_API int zkl_owner_new(struct zkl_owner **owner);
/* 0; ZKL_EBUSY: it holds something (lost holds count until they are unlocked), an acquisition is
 * under way, or the calling thread uses it; ZKL_EFORK. May be called as soon as its last
 * zkl_mutex_unlock_async has returned 0, and in the callback of its last acquisition if that
 * failed. Must be the last call with it: no other thread uses it, and nobody puts it back later.
 * NULL is ignored. */
ZKL_API int zkl_owner_free(struct zkl_owner *owner);

/* From now on all calls of zklock.h that the calling thread makes, those that wait too, are made as
 * owner: the questions about a hold are so asked for an owner. NULL: as the thread itself again.
 * Returns the owner so far, which is to be put back. A forked child's thread is itself again:
 *
 *     struct zkl_owner *before = zkl_owner_use(owner);
 *     if (!zkl_mutex_still_held(mutex, 500))
 *         stop_writing();
 *     zkl_owner_use(before);
 */
ZKL_API struct zkl_owner *zkl_owner_use(struct zkl_owner *owner);

/* --- operations --------------------------------------------------------- */

typedef void (*zkl_done_fn)(int code, void *arg);

/* zkl_mutex_acquire for that owner. op, if not NULL, gets the operation's number, for
 * zkl_op_cancel.
 * At once: ZKL_EINVAL, ZKL_EBADTIMEOUT, ZKL_ECLOSED, ZKL_EFORK, ZKL_EDEADLK, ZKL_EOVERFLOW,
 * ZKL_ENOMEM, ZKL_ESYSTEM; ZKL_EBUSY: the operation of a multi-lock has the owner. */
ZKL_API int zkl_mutex_acquire_async(struct zkl_owner *owner, struct zkl_mutex *mutex,
                                    const struct zkl_wait *wait, struct zkl_grant *grant,
                                    zkl_done_fn fn, void *arg, uint64_t *op);
/* zkl_mutex_unlock for that owner: from here on it does not hold, or once less; the callback tells
 * what zkl_mutex_unlock returns. It can't be canceled.
 * At once: ZKL_EINVAL, ZKL_EFORK, ZKL_ENOTOWNER, ZKL_ENOMEM, ZKL_EBUSY as above: nothing changed.
 * After close ZKL_ELOST: given back, and there is no callback. */
ZKL_API int zkl_mutex_unlock_async(struct zkl_owner *owner, struct zkl_mutex *mutex, zkl_done_fn fn,
                                   void *arg);

/* zkl_semaphore_acquire: permits belong to no owner. At once: ZKL_EINVAL, ZKL_EBADTIMEOUT,
 * ZKL_ECLOSED, ZKL_EFORK, ZKL_ENOMEM, ZKL_ESYSTEM. */
ZKL_API int zkl_semaphore_acquire_async(struct zkl_semaphore *semaphore, int count,
                                        const struct zkl_wait *wait, struct zkl_permit **permits,
                                        zkl_done_fn fn, void *arg, uint64_t *op);
/* zkl_permit_release: the handle is freed at the callback, and may not be used from here on. At
 * once: ZKL_EINVAL, ZKL_EFORK, ZKL_ENOMEM: nothing changed. After close ZKL_ELOST: released, and
 * there is no callback. In its own state callback too: it is then told of no more. */
ZKL_API int zkl_permit_release_async(struct zkl_permit *permit, zkl_done_fn fn, void *arg);

/* zkl_multi_acquire and zkl_multi_unlock. Until the callback the owner is this operation's: another
 * one that names it is refused (ZKL_EBUSY), and no thread may use it. At once: ZKL_EINVAL,
 * ZKL_EBADTIMEOUT, ZKL_ECLOSED, ZKL_EFORK, ZKL_EDEADLK, ZKL_EOVERFLOW, ZKL_EBUSY, ZKL_ENOMEM,
 * ZKL_ESYSTEM; to unlock ZKL_ENOTOWNER, and after close ZKL_ELOST: given back, and there is no
 * callback. */
ZKL_API int zkl_multi_acquire_async(struct zkl_owner *owner, struct zkl_multi *multi,
                                    const struct zkl_wait *wait, struct zkl_grant *grants,
                                    zkl_done_fn fn, void *arg, uint64_t *op);
ZKL_API int zkl_multi_unlock_async(struct zkl_owner *owner, struct zkl_multi *multi, int *codes,
                                   zkl_done_fn fn, void *arg);

/* --- the client's end --------------------------------------------------- */

/* zkl_client_close, which at once is as if it had been called: holds are lost, operations end with
 * ZKL_ECLOSED, before this one or after it. The callback comes when a server has confirmed the
 * session's end (0), or when none is waited for any more, after some seconds (ZKL_ETIMEDOUT: the
 * nodes go when the session times out at the latest), and at the latest in zkl_client_free. May be
 * called several times while it goes on.
 * At once: ZKL_EINVAL, ZKL_EFORK, ZKL_ENOMEM: nothing was done; ZKL_ECLOSED: the client is
 * closed. */
ZKL_API int zkl_client_close_async(struct zkl_client *client, zkl_done_fn fn, void *arg);

/* --- any operation ------------------------------------------------------ */

/* End an operation's wait: its callback gets ZKL_ECANCELED, unless the outcome was decided before,
 * which may be a grant (0): be ready to unlock it. The callback comes later, as always.
 * Cheaper than a cancel object where there are many. A number that is no operation of this client
 * any more, or of one that can't be canceled, is ignored. May be called in callbacks. 0,
 * ZKL_EINVAL, ZKL_EFORK. */
ZKL_API int zkl_op_cancel(struct zkl_client *client, uint64_t op);

/* As zkl_mutex_waiting, of one operation (of a multi-lock: of the member that it waits for now): 1
 * if it waits for its lock, 0 if not, or not any more. */
ZKL_API int zkl_op_waiting(struct zkl_client *client, uint64_t op, struct zkl_standing *standing);

/* --- event loops -------------------------------------------------------- */

/* The client's descriptor for poll, epoll and the like, the same at each call: readable while a
 * callback is due. No timer is needed beside it: deadlines and lost sessions make it readable. From
 * the first call on all callbacks of this client, those of its states, its log and its holds too,
 * run in zkl_client_dispatch and nowhere else; what runs on the client's thread just then is waited
 * for. The descriptor is the client's: only look whether it is readable. Returns it (>= 0), or
 * ZKL_EINVAL, ZKL_EFORK, ZKL_EINCALLBACK, ZKL_ECLOSED, ZKL_ESYSTEM (no descriptor). */
ZKL_API int zkl_client_event_fd(struct zkl_client *client);
/* Run callbacks that are due, in their order, on the calling thread, at most max (what has gathered
 * of one hold's states, of the client's, or of its log counts as one); never waits for one to come.
 * What is left after zkl_client_close is run so too, or by zkl_client_free, on the thread that
 * calls it.
 * Returns how many it ran, or ZKL_EINVAL (max < 1, or zkl_client_event_fd was not called),
 * ZKL_EFORK, ZKL_EINCALLBACK, ZKL_EBUSY (another thread is running them). */
ZKL_API int zkl_client_dispatch(struct zkl_client *client, int max);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif
