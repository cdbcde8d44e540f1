/* SPDX-License-Identifier: Apache-2.0
 *
 * multi.h - several locks as one: all or none.
 *
 * A multi-lock takes its members in the order of their paths, whatever order they are named in. So
 * two multi-locks cannot wait for each other. A lock by itself, or a second multi-lock, that a
 * thread takes while it holds a lock of a greater path, still can deadlock (docs/guarantees.md):
 * take all that one task needs through one multi-lock, or one by one in the order of the paths.
 *
 *     struct zkl_member members[] = {zkl_member_mutex(mutex), zkl_member_semaphore(semaphore, 2)};
 *     struct zkl_multi *both;
 *     if (zkl_multi_new(&both, client, members, 2) != 0)
 *         exit(EXIT_FAILURE);
 *     if (zkl_multi_lock_for(both, 5000) == 0) {
 *         if (zkl_multi_still_held(both, 500))
 *             work();
 *         zkl_multi_unlock(both, NULL);
 *     }
 *     zkl_multi_free(both);
 *
 * Illegal: members of several clients (ZKL_EINVAL), or two with one path (ZKL_EDEADLK); unlocking
 * in another thread than the one that locked (ZKL_ENOTOWNER); releasing a single permit of it,
 * which a semaphore's callback may have named (ZKL_EINVAL); freeing a member before the multi-lock.
 */
#ifndef ZKLOCK_MULTI_H
#define ZKLOCK_MULTI_H

#include <stddef.h>
#include <stdint.h>
#include <zklock/mutex.h>
#include <zklock/semaphore.h>

#ifdef __cplusplus
extern "C" {
#endif

struct zkl_multi;

/* --- make and free a multi-lock, which is several locks as one ------------ */

enum zkl_member_type {
    ZKL_MEMBER_MUTEX = 1,    /* of any kind: also half of a read-write lock */
    ZKL_MEMBER_SEMAPHORE = 2 /* count permits of it */
};

/* Fill with one of the two calls below. */
struct zkl_member {
    size_t size;
    enum zkl_member_type type;
    int count; /* of permits */
    struct zkl_mutex *mutex;
    struct zkl_semaphore *semaphore;
};

#define ZKL_MEMBER_INIT                                                                            \
    {                                                                                              \
        sizeof(struct zkl_member), ZKL_MEMBER_MUTEX, 0, NULL, NULL                                 \
    }

#define ZKL_MULTI_MEMBERS_MAX 64

/* Make a handle on count (1 to ZKL_MULTI_MEMBERS_MAX) members, all of this client. The members stay
 * the caller's and must outlive the multi-lock. The call sends no request, and acquires nothing.
 * Any thread may make this call and the next one, in callbacks too.
 * Nothing is made, and *multi is untouched: ZKL_EDEADLK: two members have the same path, as the
 * halves of a read-write lock have (mutexes of different names are different locks); ZKL_EINVAL:
 * NULL, a count out of range, or a member that is no lock of this client; ZKL_ECLOSED, ZKL_EFORK,
 * ZKL_ENOMEM. */
ZKL_API int zkl_multi_new(struct zkl_multi **multi, struct zkl_client *client,
                          const struct zkl_member *members, size_t count);
/* Free the handle, but not the members. The call ignores NULL.
 * Nothing is freed: ZKL_EBUSY: held or waited on; ZKL_EFORK. */
ZKL_API int zkl_multi_free(struct zkl_multi *multi);

/* Returns a member for a mutex of any kind: also half of a read-write lock, or of
 * zkl_semaphore_mutex_new. */
static inline struct zkl_member zkl_member_mutex(struct zkl_mutex *mutex)
{
    struct zkl_member m = ZKL_MEMBER_INIT;
    m.mutex = mutex;
    return m;
}

/* Returns a member for count permits of a semaphore. */
static inline struct zkl_member zkl_member_semaphore(struct zkl_semaphore *semaphore, int count)
{
    struct zkl_member m = ZKL_MEMBER_INIT;
    m.type = ZKL_MEMBER_SEMAPHORE;
    m.semaphore = semaphore;
    m.count = count;
    return m;
}

/* --- acquire, release and query several locks as one ---------------------- */

/* Acquire all members for the calling thread, within one deadline, as if it had called
 * zkl_mutex_acquire for each mutex and zkl_semaphore_acquire for each semaphore. A mutex that the
 * thread holds already gets a re-entry. A try asks for a kept node (retain_ms) only where a member
 * is acquired by itself (docs/guarantees.md). A re-entry of the whole multi-lock leaves members
 * that belong to no thread (permits, and mutexes of zkl_semaphore_mutex_new) as they are. A lease
 * begins when all members are held. grants: one for each member in the order of zkl_multi_new, each
 * filled with ZKL_GRANT_INIT, or NULL.
 * While another client has a member, the thread holds those before it in the order of the paths,
 * waits for that one, and does not queue yet for those behind it. If a member that this call
 * acquired is lost meanwhile, the call releases all that it acquired and begins anew, within its
 * deadline.
 * 0: all are held, until the thread has called zkl_multi_unlock as often. If it ends without, the
 * library releases all members, permits too.
 * None is held that was not held before: ZKL_EDEADLK: before any request: this thread holds a
 * member's path through another handle, or as a reader while the member writes; ZKL_ELOST: what the
 * thread held before was lost, and must still be unlocked; ZKL_EINCALLBACK. The other codes are
 * those of zkl_mutex_acquire and zkl_semaphore_acquire, and the detail names the member. */
ZKL_API int zkl_multi_acquire(struct zkl_multi *multi, const struct zkl_wait *wait,
                              struct zkl_grant *grants);
/* As the zkl_mutex calls of these names. */
ZKL_API int zkl_multi_lock(struct zkl_multi *multi);
ZKL_API int zkl_multi_trylock(struct zkl_multi *multi);
ZKL_API int zkl_multi_lock_for(struct zkl_multi *multi, int64_t timeout_ms);
ZKL_API int zkl_multi_lock_until(struct zkl_multi *multi, int64_t deadline_ns,
                                 struct zkl_cancel *cancel);
/* Release all members, the last path first. A failure with one member does not stop the release of
 * the others. codes: one for each member in the order of zkl_multi_new, or NULL. Returns the worst
 * of them, in the order of the list below. Which member was lost, or may have been:
 *
 *     int codes[2] = {0};
 *     if (zkl_error_is_lost(zkl_multi_unlock(both, codes)))
 *         fprintf(stderr, "the first: %s, the second: %s\n", zkl_error_name(codes[0]),
 *                 zkl_error_name(codes[1]));
 *
 * ZKL_ELOST: a member had been lost before. ZKL_EDOUBT: a member's window was empty, and no answer
 * proved its hold: another client may have held it. ZKL_EACCES: a member's ACL denies DELETE, and
 * its node blocks that path until the session ends. ZKL_EUNCONFIRMED: released, but no answer came
 * for a member. ZKL_ENOTOWNER: a member was unlocked by itself before. 0: released once; after the
 * last unlock nothing is left on the server, with the exceptions of zkl_mutex_unlock.
 * Nothing changed: ZKL_ENOTOWNER: the calling thread does not hold the multi-lock; ZKL_EINVAL,
 * ZKL_EFORK, ZKL_EINCALLBACK. */
ZKL_API int zkl_multi_unlock(struct zkl_multi *multi, int *codes);
/* 1 if all members are held with at least need_ms of the window left. This call and those below
 * concern the calling thread's own hold, as the zkl_mutex calls of these names do. */
ZKL_API int zkl_multi_still_held(struct zkl_multi *multi, int64_t need_ms);
/* As zkl_mutex_check, for all members.
 * 0: all are held so. ZKL_ENOTOWNER; ZKL_ELOST: a member is lost; ZKL_EUNPROVED: of a member less
 * is proved; ZKL_EINVAL, ZKL_EBADTIMEOUT, ZKL_EFORK. */
ZKL_API int zkl_multi_check(struct zkl_multi *multi, int64_t need_ms);
/* The shortest of the members' windows. */
ZKL_API int64_t zkl_multi_window_ms(struct zkl_multi *multi);
/* The token of member index (as in zkl_multi_new; of several permits the first one's); 0 if the
 * member is not held, is lost, or does not exist. The whole multi-lock has no token. Members that
 * were acquired in one transaction can have the same number. */
ZKL_API uint64_t zkl_multi_token(struct zkl_multi *multi, size_t index);
/* As zkl_mutex_node_path, for member index; of several permits the first one's. ZKL_EINVAL also if
 * there is no such member. */
ZKL_API int zkl_multi_node_path(struct zkl_multi *multi, size_t index, char *buf, size_t size);
/* As zkl_mutex_hold_state, of the member in the worst state: LOST, then SUSPECT; 0 also if a member
 * was unlocked by itself. The members' handles report the multi-lock's place in the queue
 * (zkl_mutex_waiting). */
ZKL_API int zkl_multi_hold_state(struct zkl_multi *multi, enum zkl_reason *reason);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif
