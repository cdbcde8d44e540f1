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
 * A thread may lock each half again. A thread that has the write lock gets the read lock at once
 * and keeps it when it gives the write lock back (a downgrade: nobody was in between).
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
