/* SPDX-License-Identifier: Apache-2.0
 *
 * semaphore.h - at most a number of permits are out at a time, over all clients of the path.
 *
 * A permit is a handle of its own. It belongs to no thread: any thread may release it, and it does
 * not end with the thread that acquired it.
 *
 *     struct zkl_semaphore *licenses;
 *     struct zkl_wait wait = ZKL_WAIT_INIT;
 *     struct zkl_permit *permit;
 *     wait.deadline_ns = zkl_now_ns() + 5000 * INT64_C(1000000);
 *     if (zkl_semaphore_new(&licenses, client, "/licenses", 10, NULL) != 0)
 *         exit(EXIT_FAILURE);
 *     if (zkl_semaphore_acquire(licenses, 1, &wait, &permit) == 0) {
 *         work();
 *         zkl_permit_release(permit);
 *     }
 *     zkl_semaphore_free(licenses);
 *
 * The layout is that of Curator's InterProcessSemaphoreV2; its clients can take part. The number of
 * permits is in the data of <path>/leases. The first acquire writes it. An acquire of a handle that
 * was made with another number is refused (ZKL_EMISMATCH). zkl_semaphore_set_permits changes it for
 * all, handles that acquired before included. The server removes <path>/leases about a minute after
 * the last permit, and the number with it: the next acquire writes its own. Clients of Curator
 * neither read nor write it.
 * Illegal: using a permit after its release, or releasing a multi-lock's permit (ZKL_EINVAL); a
 * handle in a forked child (ZKL_EFORK); waiting in a callback of the library (ZKL_EINCALLBACK).
 */
#ifndef ZKLOCK_SEMAPHORE_H
#define ZKLOCK_SEMAPHORE_H

#include <stddef.h>
#include <stdint.h>
#include <zklock/mutex.h>

#ifdef __cplusplus
extern "C" {
#endif

struct zkl_semaphore;

/* --- make and configure a semaphore --------------------------------------- */

#define ZKL_PERMITS_MAX 100000
#define ZKL_PERMITS_AT_ONCE_MAX 64

/* Make a handle on the semaphore at path. permits: 1 to ZKL_PERMITS_MAX, or 0 for the number that
 * the path has. After the first acquire the handle follows changes of the number. path: at most 505
 * bytes. options as of zkl_mutex_new, but names must be Curator's. The call sends no request and
 * does not wait.
 * Nothing is made, and *semaphore is untouched: ZKL_EINVAL, ZKL_EBADPATH, ZKL_ECLOSED, ZKL_EFORK,
 * ZKL_ENOMEM. */
ZKL_API int zkl_semaphore_new(struct zkl_semaphore **semaphore, struct zkl_client *client,
                              const char *path, int permits,
                              const struct zkl_lock_options *options);
/* Free the handle. The call waits for a callback of this semaphore that runs, and ignores NULL.
 * Nothing is freed: ZKL_EBUSY: permits are out, or a thread waits or sets the number; ZKL_EFORK;
 * ZKL_EINCALLBACK: as zkl_mutex_free. */
ZKL_API int zkl_semaphore_free(struct zkl_semaphore *semaphore);

/* The number of permits as this handle knows it; 0: not known yet, as before the first acquire, or
 * the call is wrong, and zkl_error_detail says why. */
ZKL_API int zkl_semaphore_permits(struct zkl_semaphore *semaphore);
/* Set the number, 1 to ZKL_PERMITS_MAX, for all clients, running ones too. If it grew, waiters are
 * granted permits immediately; if it shrank, permits that are out stay out. The call makes the
 * parts of the path that are missing, and waits for the server. wait may be NULL; its deadline and
 * cancel count.
 * 0: the path has the number. ZKL_ETIMEDOUT, ZKL_ECANCELED: it may have it or not.
 * ZKL_EDISCONNECTED: the deadline passed without a link; it may have it or not. ZKL_ECLOSED;
 * ZKL_EBADPATH: the path is below an ephemeral node; ZKL_EACCES (writing <path>/leases, or making
 * it); ZKL_EAUTH, ZKL_ENOCHROOT, ZKL_EQUOTA, ZKL_EREADONLY, ZKL_EUNIMPLEMENTED, ZKL_EPROTO,
 * ZKL_ENOMEM, ZKL_ESYSTEM.
 * Refused, and nothing was sent: ZKL_EINVAL; ZKL_EBADTIMEOUT (a negative deadline); ZKL_EFORK,
 * ZKL_EINCALLBACK. */
ZKL_API int zkl_semaphore_set_permits(struct zkl_semaphore *semaphore, int permits,
                                      const struct zkl_wait *wait);
/* As zkl_mutex_set_callback, for permits acquired from now on; the event's permit is set.
 * 0, ZKL_EINVAL, ZKL_EFORK. */
ZKL_API int zkl_semaphore_set_callback(struct zkl_semaphore *semaphore, zkl_hold_fn fn, void *arg);

/* --- acquire permits of a semaphore --------------------------------------- */

/* Acquire count permits (1 to ZKL_PERMITS_AT_ONCE_MAX, at most the semaphore's number), all or
 * none. The semaphore serves requests in their order, large ones too. wait as for
 * zkl_mutex_acquire; a lease is one of each permit, from the grant of all. A try waits, for one
 * second at most, for a contender that is just acquiring, and for a lost link as zkl_mutex_acquire
 * does; otherwise not at all. Three permits or none:
 *
 *     struct zkl_permit *permits[3];
 *     struct zkl_wait wait = ZKL_WAIT_INIT;
 *     wait.deadline_ns = zkl_now_ns() + 1000 * INT64_C(1000000);
 *     if (zkl_semaphore_acquire(semaphore, 3, &wait, permits) == 0) {
 *         work();
 *         for (int i = 0; i < 3; i++)
 *             zkl_permit_release(permits[i]);
 *     }
 *
 * 0: the caller must pass each of permits[0] to permits[count - 1] to zkl_permit_release, on any
 * thread and in any order.
 * Not acquired, and permits is untouched: ZKL_EMISMATCH: the path has another number than this
 * handle, or none where the handle was made with 0; ZKL_EBUSY: a try: too few permits are free, or
 * another contender is before this one; ZKL_EACCES: as zkl_mutex_acquire; where the path has no
 * number yet, WRITE on <path>/leases is needed too; ZKL_EINVAL: as zkl_mutex_acquire; also a count
 * out of range, or above the path's number; ZKL_EINCALLBACK. The other codes are those of
 * zkl_mutex_acquire, except ZKL_EDEADLK, ZKL_EOVERFLOW and ZKL_ELOST. */
ZKL_API int zkl_semaphore_acquire(struct zkl_semaphore *semaphore, int count,
                                  const struct zkl_wait *wait, struct zkl_permit **permits);

/* --- query the waiters of a lock and their place in the queue ------------- */

/* As zkl_mutex_waiting, for requests for permits. They queue one behind the other. The first one
 * waits, with none before it, until enough permits are free. */
ZKL_API int zkl_semaphore_waiting(struct zkl_semaphore *semaphore, struct zkl_standing *standing);

/* --- release and query a permit of a semaphore ---------------------------- */

/* Release a permit and free the handle, whatever the call returns, with the exceptions below. It
 * deletes the node and waits for the answer as zkl_mutex_unlock does. No other call with the permit
 * may run at the same time, or later.
 * 0: released, and nothing is left on the server, unless it was posted (zkl_mutex_unlock).
 * ZKL_EUNCONFIRMED, ZKL_EDOUBT, ZKL_ELOST: as zkl_mutex_unlock. ZKL_EACCES: not held any more, but
 * the ACL denies DELETE: the node takes up a permit until this client's session ends.
 * Nothing changed: ZKL_EINVAL: NULL, or a multi-lock has the permit (zkl_multi_unlock); ZKL_EFORK,
 * ZKL_EINCALLBACK. */
ZKL_API int zkl_permit_release(struct zkl_permit *permit);
/* As the zkl_mutex calls of these names, for one permit, on any thread. They send nothing and never
 * wait. Parts, each sent with one proved second:
 *
 *     #include <zklock/zklock.h>
 *
 *     int send_limited(struct zkl_permit *permit, int count, void (*send_part)(int number))
 *     {
 *         for (int i = 0; i < count && zkl_permit_still_held(permit, 1000); i++)
 *             send_part(i);
 *         return zkl_permit_release(permit);
 *     }
 */
ZKL_API int zkl_permit_still_held(struct zkl_permit *permit, int64_t need_ms);
ZKL_API int zkl_permit_check(struct zkl_permit *permit, int64_t need_ms);
ZKL_API uint64_t zkl_permit_token(struct zkl_permit *permit);
ZKL_API int64_t zkl_permit_window_ms(struct zkl_permit *permit);
ZKL_API int zkl_permit_node_path(struct zkl_permit *permit, char *buf, size_t size);
ZKL_API int zkl_permit_hold_state(struct zkl_permit *permit, enum zkl_reason *reason);
ZKL_API int zkl_permit_renew(struct zkl_permit *permit, int64_t lease_ms);
ZKL_API int zkl_permit_revoke_requested(struct zkl_permit *permit);

/* --- make a mutex that any thread may unlock ------------------------------ */

/* Make a mutex that is not reentrant and that any thread may unlock: a semaphore with one permit,
 * as Curator's InterProcessSemaphoreMutex. All zkl_mutex calls work with *mutex, with these
 * differences:
 * - The hold belongs to the handle, so all threads that use one handle see the same hold.
 * - A second lock waits, in the same thread too.
 * - A thread's end releases nothing.
 * A lock returns ZKL_EMISMATCH if the path is a semaphore with another number of permits. This
 * mutex and that of zkl_mutex_new do not exclude each other on one path: use one kind for each
 * path. Locked here, unlocked by another thread:
 *
 *     #include <pthread.h>
 *     #include <zklock/zklock.h>
 *
 *     static void *finish(void *mutex)
 *     {
 *         zkl_mutex_unlock(mutex);
 *         return NULL;
 *     }
 *
 *     int hand_over(struct zkl_client *client)
 *     {
 *         struct zkl_mutex *mutex;
 *         pthread_t thread;
 *         int rc = zkl_semaphore_mutex_new(&mutex, client, "/locks/job", NULL);
 *         if (rc != 0)
 *             return rc;
 *         rc = zkl_mutex_lock_for(mutex, 5000);
 *         if (rc == 0 && pthread_create(&thread, NULL, finish, mutex) != 0)
 *             zkl_mutex_unlock(mutex);
 *         else if (rc == 0)
 *             pthread_join(thread, NULL);
 *         zkl_mutex_free(mutex);
 *         return rc;
 *     }
 *
 * Nothing is made, and *mutex is untouched: ZKL_EINVAL, ZKL_EBADPATH, ZKL_ECLOSED, ZKL_EFORK,
 * ZKL_ENOMEM. */
ZKL_API int zkl_semaphore_mutex_new(struct zkl_mutex **mutex, struct zkl_client *client,
                                    const char *path, const struct zkl_lock_options *options);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif
