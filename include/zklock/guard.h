/* SPDX-License-Identifier: Apache-2.0
 *
 * guard.h - "this lock is still held", checked by the server itself in the caller's own
 * transaction.
 *
 * A holder can be stopped between looking at its lock and writing, for longer than its session
 * lives. What it writes into ZooKeeper itself can be made to fail then: a transaction (zoo_multi,
 * zoo_amulti) that also checks the node of the hold is carried out as a whole or, with ZNONODE, not
 * at all.
 *
 *     struct zkl_guard guard;
 *     zoo_op_t ops[2];
 *     zoo_op_result_t results[2];
 *     if (zkl_guard_mutex(&guard, mutex, 0, NULL, &ops[0]) == 0) {
 *         zoo_set_op_init(&ops[1], "/data", "done", 4, -1, NULL);
 *         if (zoo_multi(zh, 2, ops, results) != ZOK)
 *             stop_writing();
 *     }
 *
 * The handle zh is the caller's own: another connection and session, of the same ensemble. It
 * protects what the transaction writes, not what is done beside it. Grants that share a token share
 * their node too: threads that hand a lock on among them (options of the mutex) can't be told from
 * each other by it.
 *
 * libzookeeper 3.8.0 does not survive a transaction that is begun once zh's session has ended (it
 * frees paths that are not its own): ask is_unrecoverable(zh) before each.
 *
 * Illegal: to use or free a guard's memory for anything else before the transaction has ended; a
 * guard of a lock of another ensemble than zh's, which would check another node of that name.
 *
 * The one header that needs ZooKeeper's: pkg-config --cflags --libs zklock-guard.
 */
#ifndef ZKLOCK_GUARD_H
#define ZKLOCK_GUARD_H

#include <zklock/zklock.h>
#include <zookeeper/zookeeper.h>

#ifdef __cplusplus
extern "C" {
#endif

#define ZKL_GUARD_PATH_SIZE 1280

/* The path of a check, which points here: to stay until zoo_multi has returned, or zoo_amulti's
 * completion has run. */
struct zkl_guard {
    char path[ZKL_GUARD_PATH_SIZE];
};

/* What the calls below are made of: the node's path as the caller's handle is to name it. */
ZKL_API int zkl_guard_mutex_path(struct zkl_mutex *mutex, int64_t need_ms, const char *chroot,
                                 struct zkl_guard *guard);
ZKL_API int zkl_guard_permit_path(struct zkl_permit *permit, int64_t need_ms, const char *chroot,
                                  struct zkl_guard *guard);
ZKL_API int zkl_guard_multi_paths(struct zkl_multi *multi, int64_t need_ms, const char *chroot,
                                  struct zkl_guard *guards, size_t count);

/* Make *op the check of the calling thread's hold (or of the owner's that it uses: async.h),
 * through this mutex handle of any kind. chroot is that of the handle which makes the transaction:
 * NULL or "" if its server list has none; the lock's own client may have another one. Sends nothing
 * and never waits; may be made in callbacks.
 * 0: the hold is proved for need_ms (>= 0) at least. Else *op is untouched: ZKL_ENOTOWNER;
 * ZKL_ELOST: lost, or its window is shorter, so that it may be lost any moment; ZKL_EINVAL: a NULL,
 * or the node is not below that chroot, or has a path of more than ZKL_GUARD_PATH_SIZE bytes;
 * ZKL_EBADTIMEOUT, ZKL_EFORK. */
static inline int zkl_guard_mutex(struct zkl_guard *guard, struct zkl_mutex *mutex, int64_t need_ms,
                                  const char *chroot, struct zoo_op *op)
{
    int rc = zkl_guard_mutex_path(mutex, need_ms, chroot, guard);
    if (rc == 0)
        zoo_check_op_init(op, guard->path, -1); /* of any version: a request to let go changes it */
    return rc;
}

/* The same of a permit; but for ZKL_ENOTOWNER, as a permit belongs to nobody. */
static inline int zkl_guard_permit(struct zkl_guard *guard, struct zkl_permit *permit,
                                   int64_t need_ms, const char *chroot, struct zoo_op *op)
{
    int rc = zkl_guard_permit_path(permit, need_ms, chroot, guard);
    if (rc == 0)
        zoo_check_op_init(op, guard->path, -1);
    return rc;
}

/* The same of a multi-lock: a check for each node, in the order of its members, one for each permit
 * of a semaphore. guards and ops have room for count. Returns how many there are; ZKL_EINVAL too if
 * count is less. */
static inline int zkl_guard_multi(struct zkl_guard *guards, size_t count, struct zkl_multi *multi,
                                  int64_t need_ms, const char *chroot, struct zoo_op *ops)
{
    int n = zkl_guard_multi_paths(multi, need_ms, chroot, guards, count);
    for (int i = 0; i < n; i++)
        zoo_check_op_init(&ops[i], guards[i].path, -1);
    return n;
}

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif
