/* SPDX-License-Identifier: Apache-2.0
 *
 * inspect.h - who holds a lock and who waits for it, asking a holder to let go, and taking a lock
 * away. For tools and for programs that watch locks; nothing here acquires one.
 *
 *     const struct zkl_inspection *seen;
 *     if (zkl_inspect(client, "/locks/report", 5000, &seen) == 0) {
 *         for (size_t i = 0; i < seen->count; i++)
 *             if (zkl_inspection_entry(seen, i)->role == ZKL_ENTRY_ROLE_HOLDER)
 *                 printf("held by %s\n", zkl_inspection_entry(seen, i)->owner);
 *         zkl_inspection_free(seen);
 *     }
 *
 * All calls wait for the server, at most timeout_ms (or until wait's deadline or cancel), and may
 * be made from any thread.
 * Illegal: these calls in a callback of the library (ZKL_EINCALLBACK); text of an inspection that
 * was freed.
 */
#ifndef ZKLOCK_INSPECT_H
#define ZKLOCK_INSPECT_H

#include <zklock/zklock.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- inspect ------------------------------------------------------------ */

enum zkl_lock_kind {
    ZKL_LOCK_KIND_NONE = 0, /* nobody is there: no path, or no contender */
    ZKL_LOCK_KIND_MUTEX = 1,
    ZKL_LOCK_KIND_RWLOCK = 2,
    ZKL_LOCK_KIND_SEMAPHORE = 3 /* Curator's layout: the path has children "locks" and "leases" */
};

enum zkl_entry_role {
    ZKL_ENTRY_ROLE_HOLDER = 1,
    ZKL_ENTRY_ROLE_WAITER = 2,
    ZKL_ENTRY_ROLE_FOREIGN = 3 /* no contender: a child that this library does not count */
};

enum zkl_entry_access {
    ZKL_ENTRY_ACCESS_NONE = 0, /* of a foreign child */
    ZKL_ENTRY_ACCESS_LOCK = 1,
    ZKL_ENTRY_ACCESS_READ = 2,
    ZKL_ENTRY_ACCESS_WRITE = 3,
    ZKL_ENTRY_ACCESS_PERMIT = 4,
    ZKL_ENTRY_ACCESS_ENTRY = 5 /* in a semaphore's inner queue: about to ask for a permit */
};

#define ZKL_NO_ENTRY ((size_t)-1)

/* One child. Text belongs to the inspection. */
struct zkl_entry {
    size_t size;
    enum zkl_entry_role role;
    enum zkl_entry_access access;
    const char *node_path; /* without the chroot: what zkl_revoke and zkl_break take */
    const char *name;      /* of a named lock, else "" */
    const char *peer;      /* who names its nodes so: "curator", "kazoo", "zookeeper", or "" */
    int64_t sequence;      /* place in the queue; 0 for a foreign child */
    uint64_t czxid;        /* the token, of a holder */
    /* Its owner's; 0: not ephemeral, goes only by being deleted; or not known, with a czxid of
     * 0. */
    int64_t session;
    int64_t age_ms; /* by the server's clock against this machine's: as good as those are */
    /* the node's data if it is printable text of at most 512 bytes, else ""; also "" if it may not
     * be read */
    const char *owner;
    const char *host;     /* from an owner text "host pid thread", else "" */
    int64_t pid, thread;  /* likewise, else 0 */
    int revoke_requested; /* its data is a request to let go, which replaced the owner text */
    /* READ is: no owner text; and where the server tells nothing else either, as from 3.8.4 and
     * 3.9.2 on, czxid, session and age_ms are 0, for not known */
    int denied;
    /* index of the entry whose end it waits for, or ZKL_NO_ENTRY: a holder, a foreign child, or who
     * waits for any permit */
    size_t waits_for;
};

/* What one look saw: holders first, then waiters in the order of the queue, then foreign children.
 * The children are listed at one moment, what is told of each is read just after; a child that goes
 * in between is left out. */
struct zkl_inspection {
    size_t size;
    enum zkl_lock_kind kind;
    int permits; /* of a semaphore, 0 if not said there */
    size_t count;
    const struct zkl_entry *entries; /* take them by zkl_inspection_entry */
};

/* Entry index, less than count. A newer library's entries may be longer than this struct. */
static inline const struct zkl_entry *zkl_inspection_entry(const struct zkl_inspection *inspection,
                                                           size_t index)
{
    const char *first = (const char *)inspection->entries;
    return (const struct zkl_entry *)(const void *)(first + index * inspection->entries->size);
}

/* Look at the lock at path. 0: *inspection is to be freed with zkl_inspection_free. ZKL_EINVAL,
 * ZKL_EBADPATH, ZKL_EBADTIMEOUT, ZKL_ETIMEDOUT, ZKL_EDISCONNECTED, ZKL_ECLOSED, ZKL_EACCES (no READ
 * on the path, or a semaphore's parts), ZKL_EAUTH, ZKL_EPROTO, ZKL_ENOMEM, ZKL_EFORK,
 * ZKL_EINCALLBACK, ZKL_EREADONLY, ZKL_EUNIMPLEMENTED. A path that does not exist is 0 with
 * ZKL_LOCK_KIND_NONE; a child that may not be read is told by its name. */
ZKL_API int zkl_inspect(struct zkl_client *client, const char *path, int64_t timeout_ms,
                        const struct zkl_inspection **inspection);
/* NULL is ignored. */
ZKL_API void zkl_inspection_free(const struct zkl_inspection *inspection);

/* --- revoke and break --------------------------------------------------- */

#define ZKL_INSPECT_FORCE 1u

/* Ask the contender at node_path (of an entry, or zkl_mutex_node_path) to let go, by writing
 * "__REVOKE__" to it as Curator's Revoker does, and wait until the node is gone, as long as wait
 * says (NULL: for ever; its flags and lease_ms are to be 0). A deadline that has passed: ask only,
 * and wait for nothing but the server's answer, one session timeout at most. With ZKL_INSPECT_FORCE
 * in flags the node is deleted when the deadline passes, which takes one session timeout more at
 * most.
 * 0: the node is gone. ZKL_ETIMEDOUT: asked, still there; ZKL_EDISCONNECTED: it is not known
 * whether the request came through. ZKL_ECANCELED. ZKL_ENONODE: there was none (0, if the link
 * broke before that was told). ZKL_EFOREIGN: not the name of a contender, and no ZKL_INSPECT_FORCE;
 * or it has children, which no force deletes. ZKL_EINVAL, ZKL_EBADPATH, ZKL_EBADTIMEOUT (negative),
 * ZKL_ECLOSED, ZKL_EACCES, ZKL_EAUTH, ZKL_EPROTO, ZKL_ENOMEM, ZKL_ESYSTEM, ZKL_EFORK,
 * ZKL_EINCALLBACK. */
ZKL_API int zkl_revoke(struct zkl_client *client, const char *node_path,
                       const struct zkl_wait *wait, unsigned flags);

/* Delete the node of a contender, holder or waiter, at once: its owner hears that the hold is lost
 * (a waiter queues again), but may go on working until then; only the token protects what it
 * writes. czxid: of the entry meant, compared just before (ZKL_EACCES where that takes READ, and it
 * is denied); 0: whatever has that path, which is enough for a contender's: no other node gets its
 * name.
 * 0: deleted. ZKL_ENONODE: there is no such node, or another one took its place. ZKL_ETIMEDOUT,
 * ZKL_EDISCONNECTED: it is not known whether it was deleted. ZKL_EFOREIGN as zkl_revoke.
 * ZKL_EINVAL, ZKL_EBADPATH, ZKL_EBADTIMEOUT, ZKL_ECLOSED, ZKL_EACCES (DELETE on the node above),
 * ZKL_EAUTH, ZKL_EPROTO, ZKL_ENOMEM, ZKL_EFORK, ZKL_EINCALLBACK. */
ZKL_API int zkl_break(struct zkl_client *client, const char *node_path, uint64_t czxid,
                      unsigned flags, int64_t timeout_ms);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif
