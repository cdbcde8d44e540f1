/* SPDX-License-Identifier: Apache-2.0
 *
 * rwlock.h - any number of readers, or one writer.
 *
 * Readers and writers queue first come, first served: a reader waits for the writers before it,
 * those that wait included, a writer for every contender before it: neither side starves. The two
 * halves are mutex handles, so every zkl_mutex call works with them, each half with its own hold,
 * count and token:
 *
 *     struct zkl_mutex *reader = zkl_rwlock_reader(rwlock);
 *     if (zkl_mutex_lock_for(reader, 5000) == 0) {
 *         work();
 *         zkl_mutex_unlock(reader);
 *     }
 *
 * A thread may lock each half again. A thread that has the write lock can take the read lock too,
 * and keeps it when it unlocks the write lock (a downgrade). No other client can get the lock in
 * between: the thread waits only for the server's answer. The read lock then has the write lock's
 * token, but not its lease. If the read lock fails, the write lock stays held. A downgrade:
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
 * Illegal: asking for the write lock with only the read lock held (ZKL_EDEADLK, immediately);
 * freeing one half (ZKL_EINVAL); what mutex.h says.
 */
#ifndef ZKLOCK_RWLOCK_H
#define ZKLOCK_RWLOCK_H

#include <zklock/mutex.h>

#ifdef __cplusplus
extern "C" {
#endif

struct zkl_rwlock;

/* --- make and use a lock for many readers or one writer ------------------- */

/* Make a handle on the read-write lock at path. Arguments and codes as of zkl_mutex_new, but names
 * may not be ZKL_NAMES_NAMED (ZKL_EINVAL). */
ZKL_API int zkl_rwlock_new(struct zkl_rwlock **rwlock, struct zkl_client *client, const char *path,
                           const struct zkl_lock_options *options);
/* Free the handle and both halves, as zkl_mutex_free frees a mutex.
 * Nothing is freed: ZKL_EBUSY: a thread holds one of the halves or waits; ZKL_EFORK;
 * ZKL_EINCALLBACK: as zkl_mutex_free. */
ZKL_API int zkl_rwlock_free(struct zkl_rwlock *rwlock);
/* Keep the reader's node on the server for up to retain_ms (0 to 3,600,000) from its grant, also
 * while no thread is in it. Threads that lock the reader of this handle enter the node and leave it
 * without a request, at the speed of memory, with the node's token and window. 0, the initial
 * value: each thread's lock has its own node. The call is opt-in, as it has a price:
 * - The client has a child watch on the path while it keeps a node. (Other readers watch only the
 *   writer before them.) The server notifies it whenever a node is created or deleted there, nodes
 *   of other clients' readers included. The client lists the path each time, and every quarter of
 *   the session timeout. At most 32 clients of a path keep a node. The readers of other clients
 *   continue as without this call, and one of them tries again after a session timeout.
 * - A writer of another client must wait until this client has been notified, has listed, and has
 *   no reader in: some round trips more than behind a reader that unlocks just then. Up to then
 *   readers enter, for one session timeout at most, however late the server reports the writer;
 *   from then on no reader enters, and readers queue behind the writer. A writer of this handle
 *   closes the node itself.
 * - A try for the writer by zklock asks for the node, like a try for a mutex with retain_ms: it
 *   gets the lock, or is busy 200 ms later. Tries of other libraries are busy, even if no reader is
 *   in. They, too, close the node.
 * No thread enters while the link is lost, nor before a list over the next link; a thread that is
 * in keeps the lock as long as its window. A reader in such a node cannot have a lease
 * (zkl_mutex_renew: ZKL_EINVAL). A reader that is acquired with a lease, below the write lock, by
 * an operation or as part of a multi-lock has its own node. The state callback reports changes of
 * the node, once for all threads that are in. It does not report a thread that exits while it is
 * in. While no thread is in, the callback reports nothing except HELD after a reported SUSPECT:
 * when a release is requested, the library then deletes the node, and no thread enters before that.
 * The node's last unlock says whether the window was open then, and waits for nothing. In the
 * figures (metrics.h) the node is one hold.
 * The call itself sends no request, except for the deletion of a node that was kept so far.
 * zkl_rwlock_free may be called only after each reader's last unlock has returned.
 * 0, ZKL_EINVAL, ZKL_EBADTIMEOUT, ZKL_ECLOSED, ZKL_EFORK. */
ZKL_API int zkl_rwlock_retain_readers(struct zkl_rwlock *rwlock, int64_t retain_ms);
/* The halves: borrowed, valid until zkl_rwlock_free. zkl_mutex_free refuses them (ZKL_EINVAL). NULL
 * if rwlock is NULL. */
ZKL_API struct zkl_mutex *zkl_rwlock_reader(struct zkl_rwlock *rwlock);
ZKL_API struct zkl_mutex *zkl_rwlock_writer(struct zkl_rwlock *rwlock);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif
