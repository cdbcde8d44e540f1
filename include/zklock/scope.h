/* SPDX-License-Identifier: Apache-2.0
 *
 * scope.h - a mutex for the length of a block, in C with gcc or clang. C++ has zklock.hpp.
 *
 *     {
 *         ZKL_MUTEX_SCOPE(scope, mutex);
 *         if (scope.rc == 0)
 *             write_report(zkl_mutex_token(mutex));
 *     }
 *
 * The scope waits without a deadline. The program does not see what the unlock at the end of the
 * block returns: call zkl_mutex_scope_end where that matters.
 * Illegal: using the scope's mutex for another unlock than its own.
 */
#ifndef ZKLOCK_SCOPE_H
#define ZKLOCK_SCOPE_H

#include <zklock/mutex.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- hold a mutex until the end of a block -------------------------------- */

struct zkl_mutex_scope {
    struct zkl_mutex *mutex;
    int rc; /* of zkl_mutex_lock; 0: held until the end of the block */
};

static inline struct zkl_mutex_scope zkl_mutex_scope_begin(struct zkl_mutex *mutex)
{
    struct zkl_mutex_scope s;
    s.mutex = mutex;
    s.rc = zkl_mutex_lock(mutex);
    return s;
}

/* Unlock now and not at the end of the block. Returns zkl_mutex_unlock's code, or 0 if there was no
 * hold. Threads and callbacks as of zkl_mutex_lock and zkl_mutex_unlock. */
static inline int zkl_mutex_scope_end(struct zkl_mutex_scope *scope)
{
    struct zkl_mutex *mutex = scope->rc == 0 ? scope->mutex : NULL;
    scope->mutex = NULL;
    return mutex ? zkl_mutex_unlock(mutex) : 0;
}

static inline void zkl_mutex_scope_cleanup(struct zkl_mutex_scope *scope)
{
    (void)zkl_mutex_scope_end(scope);
}

#if defined(__GNUC__)
/* Declare a struct zkl_mutex_scope of that name, and lock the mutex m. The end of the block unlocks
 * it, also by return, break, continue and goto; longjmp leaves the block without. */
#define ZKL_MUTEX_SCOPE(name, m)                                                                   \
    __attribute__((cleanup(zkl_mutex_scope_cleanup))) struct zkl_mutex_scope name =                \
        zkl_mutex_scope_begin(m)
#endif

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif
