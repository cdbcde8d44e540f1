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
/* The halves: borrowed, gone with the rwlock; zkl_mutex_free refuses them (ZKL_EINVAL). NULL if
 * rwlock is NULL. */
ZKL_API struct zkl_mutex *zkl_rwlock_reader(struct zkl_rwlock *rwlock);
ZKL_API struct zkl_mutex *zkl_rwlock_writer(struct zkl_rwlock *rwlock);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif
