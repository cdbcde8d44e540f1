/* SPDX-License-Identifier: Apache-2.0
 *
 * rwlock.h - any number of readers, or one writer.
 *
 * All queue first come, first served: a reader waits for the writers before it, a writer for
 * everybody before it. The two halves are mutex handles, so every zkl_mutex call is for them too,
 * each with its own hold, count and token:
 *
 *     struct zkl_mutex *reader = zkl_rwlock_reader(rwlock);
 *     if (zkl_mutex_lock_for(reader, 5000) == 0) {
 *         work();
 *         zkl_mutex_unlock(reader);
 *     }
 *
 * A thread may lock each half again. A thread that has the write lock can take the read lock too,
 * and keeps it when it gives the write lock back (a downgrade). Nobody gets in between: it waits
 * for no other client, only for the server's answer. The read lock then has the write lock's token:
 *
 *     struct zkl_mutex *writer = zkl_rwlock_writer(rwlock);
 *     if (zkl_mutex_lock_for(writer, 5000) == 0) {
 *         int rc = ZKL_ELOST;
 *         if (zkl_mutex_still_held(writer, 500)) {
 *             write_report(zkl_mutex_token(writer));
 *             rc = zkl_mutex_lock_for(zkl_rwlock_reader(rwlock), 5000);
 *         }
 *         zkl_mutex_unlock(writer);
 *         if (rc == 0) {
 *             if (zkl_mutex_still_held(zkl_rwlock_reader(rwlock), 500))
 *                 work();
 *             zkl_mutex_unlock(zkl_rwlock_reader(rwlock));
 *         }
 *     }
 *
 * Illegal: to ask for the write lock with only the read lock held (ZKL_EDEADLK, at once); to free a
 * half by itself (ZKL_EINVAL); what mutex.h says.
 */
#ifndef ZKLOCK_RWLOCK_H
#define ZKLOCK_RWLOCK_H

#include <zklock/mutex.h>

#ifdef __cplusplus
extern "C" {
#endif

struct zkl_rwlock;

/* As zkl_mutex_new. ZKL_NAMES_NAMED is refused (ZKL_EINVAL). */
ZKL_API int zkl_rwlock_new(struct zkl_rwlock **rwlock, struct zkl_client *client, const char *path,
                           const struct zkl_lock_options *options);
/* As zkl_mutex_free, for both halves. */
ZKL_API int zkl_rwlock_free(struct zkl_rwlock *rwlock);
/* Keep the reader's node on the server for up to retain_ms (0 to 3,600,000) from its grant, whether
 * somebody is in it or not: threads that lock the reader of this handle come into it and leave
 * without a request, at the speed of memory, with the node's token and window. 0, as at the begin:
 * each thread's lock is a node of its own. Opt-in, as it has its price:
 * - The client has a child watch on the path while it keeps a node (readers else watch nobody but
 *   the writer before them): it is told of everybody who comes or goes there, other clients'
 *   readers included, and lists the path each time, and every quarter of the session timeout. At
 *   most 32 clients of a path keep one; the readers of the others go on as without this, and one of
 *   them tries again when a session timeout is over.
 * - A writer of another client has to wait until this one has heard of it, listed, and has nobody
 *   in: some round trips more than behind a reader that unlocks just then. From then on nobody
 *   comes in, and readers queue behind the writer. A writer of this handle closes the node itself.
 * - A try for the writer by zklock asks for the node, as one for a mutex with retain_ms: it gets
 *   the lock, or is busy 200 ms later. Other libraries' tries are told "busy", though nobody may be
 *   in; they, too, close the node.
 * Nobody comes in while the link is lost, nor before a list over the next one; who is in keeps the
 * lock as long as its window. A reader in such a node is not given a lease (zkl_mutex_renew:
 * ZKL_EINVAL): one that is acquired with a lease, below the write lock, by an operation or as part
 * of a multi-lock has a node of its own. The state callback tells of the node, once for all threads
 * that are in; of one that exits while it is in, nothing is told. What comes while nobody is in is
 * told to nobody, but for HELD after a SUSPECT that was: a node that was asked to let go is gone
 * then, and nobody comes in before that.
 * Its last unlock says whether the window was open then, and waits for nothing. In the figures
 * (metrics.h) the node is one hold.
 * No request is sent by the call itself, but for the deletion of a node that was kept so far.
 * zkl_rwlock_free may be called only when each reader's last unlock has returned.
 * 0, ZKL_EINVAL, ZKL_EBADTIMEOUT, ZKL_ECLOSED, ZKL_EFORK. */
ZKL_API int zkl_rwlock_retain_readers(struct zkl_rwlock *rwlock, int64_t retain_ms);
/* The halves: borrowed, gone with the rwlock; zkl_mutex_free refuses them (ZKL_EINVAL). NULL if
 * rwlock is NULL. */
ZKL_API struct zkl_mutex *zkl_rwlock_reader(struct zkl_rwlock *rwlock);
ZKL_API struct zkl_mutex *zkl_rwlock_writer(struct zkl_rwlock *rwlock);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif
