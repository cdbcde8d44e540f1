/* SPDX-License-Identifier: Apache-2.0
 *
 * guard.h - "this lock is still held", checked by the server itself in the caller's own
 * transaction.
 *
 * The system can suspend a holder between its check of the lock and its write, for longer than its
 * session lives. A transaction (zoo_multi, zoo_amulti) that also checks the node of the hold makes
 * the late write into ZooKeeper fail: the server carries the transaction out as a whole or, with
 * ZNONODE, not at all.
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
 * The handle zh is the caller's own: another connection and session, of the same ensemble. The
 * guard protects what the transaction writes, and nothing beside it. Grants that share a token also
 * share their node: the guard cannot distinguish threads that hand a lock on among them (options of
 * the mutex).
 *
 * libzookeeper 3.8.0 does not survive a transaction that begins after zh's session has ended (it
 * frees paths that are not its own): check is_unrecoverable(zh) before each.
 *
 * Illegal: using or freeing a guard's memory for anything else before the transaction has ended; a
 * guard of a lock of another ensemble than zh's, which would check another node of that name.
 *
 * Only this header needs ZooKeeper's: pkg-config --cflags --libs zklock-guard.
 */
#ifndef ZKLOCK_GUARD_H
#define ZKLOCK_GUARD_H

#include <zklock/zklock.h>
#include <zookeeper/zookeeper.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- make a transaction fail once a lock is lost -------------------------- */

#define ZKL_GUARD_PATH_SIZE 1280

/* The path of a check. The check points to it, so it must stay valid until zoo_multi has returned,
 * or zoo_amulti's completion has run. */
struct zkl_guard {
    char path[ZKL_GUARD_PATH_SIZE];
};

/* The calls below use these. They write the node's path as the caller's handle must name it. */
ZKL_API int zkl_guard_mutex_path(struct zkl_mutex *mutex, int64_t need_ms, const char *chroot,
                                 struct zkl_guard *guard);
ZKL_API int zkl_guard_permit_path(struct zkl_permit *permit, int64_t need_ms, const char *chroot,
                                  struct zkl_guard *guard);
ZKL_API int zkl_guard_multi_paths(struct zkl_multi *multi, int64_t need_ms, const char *chroot,
                                  struct zkl_guard *guards, size_t count);

/* Make *op the check of the calling thread's hold (or of the owner's that the thread uses:
 * async.h), through this mutex handle of any kind. chroot is that of the handle which makes the
 * transaction: NULL or "" if its server list has none; the lock's own client may have another one.
 * The call sends nothing and never waits; it is legal in callbacks.
 * 0: the hold is proved for need_ms (>= 0) at least.
 * Otherwise *op is untouched: ZKL_ENOTOWNER; ZKL_ELOST: lost, or the window is shorter, so that the
 * hold may be lost any moment; ZKL_EINVAL: a NULL, or the node is not below that chroot, or has a
 * path of ZKL_GUARD_PATH_SIZE bytes or more; ZKL_EBADTIMEOUT, ZKL_EFORK. */
static inline int zkl_guard_mutex(struct zkl_guard *guard, struct zkl_mutex *mutex, int64_t need_ms,
                                  const char *chroot, struct zoo_op *op)
{
    int rc = zkl_guard_mutex_path(mutex, need_ms, chroot, guard);
    if (rc == 0)
        zoo_check_op_init(op, guard->path, -1); /* any version: a release request changes it */
    return rc;
}

/* The same for a permit, on any thread; never ZKL_ENOTOWNER, as a permit belongs to no thread. */
static inline int zkl_guard_permit(struct zkl_guard *guard, struct zkl_permit *permit,
                                   int64_t need_ms, const char *chroot, struct zoo_op *op)
{
    int rc = zkl_guard_permit_path(permit, need_ms, chroot, guard);
    if (rc == 0)
        zoo_check_op_init(op, guard->path, -1);
    return rc;
}

/* The same for a multi-lock: a check for each node, in the order of its members, one for each
 * permit of a semaphore. guards and ops have room for count. Returns the number of checks;
 * ZKL_EINVAL also if count is less. */
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
