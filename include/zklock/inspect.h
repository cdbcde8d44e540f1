/* SPDX-License-Identifier: Apache-2.0
 *
 * inspect.h - list the holders and waiters of a lock, ask a holder to release it, and take a lock
 * away. For tools and for programs that watch locks; no call here acquires one.
 *
 *     const struct zkl_inspection *seen;
 *     if (zkl_inspect(client, "/locks/report", 5000, &seen) == 0) {
 *         for (size_t i = 0; i < seen->count; i++)
 *             if (zkl_inspection_entry(seen, i)->role == ZKL_ENTRY_ROLE_HOLDER)
 *                 printf("held by %s\n", zkl_inspection_entry(seen, i)->owner);
 *         zkl_inspection_free(seen);
 *     }
 *
 * zkl_inspect, zkl_revoke and zkl_break wait for the server, at most timeout_ms (or until wait's
 * deadline or cancel). Any thread may make them.
 * Illegal: these calls in a callback of the library (ZKL_EINCALLBACK); text of an inspection that
 * was freed.
 */
#ifndef ZKLOCK_INSPECT_H
#define ZKLOCK_INSPECT_H

#include <zklock/zklock.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- list the holders and waiters of a lock ------------------------------- */

enum zkl_lock_kind {
    ZKL_LOCK_KIND_NONE = 0, /* no contender is there, or no path */
    ZKL_LOCK_KIND_MUTEX = 1,
    ZKL_LOCK_KIND_RWLOCK = 2,
    /* Curator's layout: the path has children "locks" and "leases". If a mutex or a read-write lock
     * shares the path by mistake, its contenders are among the entries. */
    ZKL_LOCK_KIND_SEMAPHORE = 3
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
    const char *peer;      /* whose names these are: "curator", "kazoo", "zookeeper", or "" */
    int64_t sequence;      /* place in the queue; 0 for a foreign child */
    uint64_t czxid;        /* the token, of a holder */
    /* The session of its owner; 0: the node is not ephemeral and stays until a client deletes it;
     * or not known, with a czxid of 0. */
    int64_t session;
    int64_t age_ms; /* by the server's clock against this machine's: as exact as those are */
    /* the node's data if it is printable text of at most 512 bytes, else ""; also "" if this client
     * may not read it */
    const char *owner;
    const char *host;     /* from an owner text "host pid thread [under TOKEN]", else "" */
    int64_t pid, thread;  /* likewise, else 0 */
    int revoke_requested; /* its data is a release request, which replaced the owner text */
    /* the ACL denies READ: no owner text. From 3.8.4 and 3.9.2 on the server then reveals nothing
     * else either, and czxid, session and age_ms are 0, for not known */
    int denied;
    /* index of the entry whose end it waits for. ZKL_NO_ENTRY: a holder, a foreign child, or a
     * contender that waits for any permit */
    size_t waits_for;
    size_t children; /* of the node itself; 0 also if not known */
};

/* One view of a lock: holders first, then waiters in the order of the queue, then foreign children
 * by name.
 * The library lists the children at one moment and reads each of them just after. It omits a child
 * that is deleted in between. */
struct zkl_inspection {
    size_t size;
    enum zkl_lock_kind kind;
    int permits; /* of a semaphore, 0 if the path has no number */
    size_t count;
    const struct zkl_entry *entries; /* read them by zkl_inspection_entry */
};

/* Inspect the lock at path, or list "/", where none can be. The call acquires nothing and changes
 * nothing. A path that does not exist is 0 with ZKL_LOCK_KIND_NONE. Of a child that the client may
 * not read, the entry has the path, and what the server tells (denied).
 * 0: the caller must free *inspection with zkl_inspection_free.
 * Otherwise *inspection is untouched: ZKL_ETIMEDOUT; ZKL_EDISCONNECTED: time was up, and there was
 * no link; ZKL_ECLOSED; ZKL_EACCES (no READ on the path, or a semaphore's parts); ZKL_EAUTH,
 * ZKL_EPROTO, ZKL_EREADONLY, ZKL_EUNIMPLEMENTED, ZKL_ENOMEM.
 * Refused, and nothing was sent: ZKL_EINVAL, ZKL_EBADPATH, ZKL_EBADTIMEOUT, ZKL_EFORK,
 * ZKL_EINCALLBACK. */
ZKL_API int zkl_inspect(struct zkl_client *client, const char *path, int64_t timeout_ms,
                        const struct zkl_inspection **inspection);
/* Free an inspection and all its text, on any thread, in callbacks too. The call ignores NULL. */
ZKL_API void zkl_inspection_free(const struct zkl_inspection *inspection);

/* Entry index, less than count. A newer library's entries may be longer than this struct. */
static inline const struct zkl_entry *zkl_inspection_entry(const struct zkl_inspection *inspection,
                                                           size_t index)
{
    const char *first = (const char *)inspection->entries;
    return (const struct zkl_entry *)(const void *)(first + index * inspection->entries->size);
}

/* --- ask a holder to release its lock, or take the lock away -------------- */

#define ZKL_INSPECT_FORCE 1u

/* Ask the contender at node_path (of an entry, or zkl_mutex_node_path) to release the lock, and
 * wait until its node is removed, as long as wait says (NULL: forever; its flags and lease_ms must
 * be 0). The call writes "__REVOKE__" to the node as Curator's Revoker does. With a passed deadline
 * it only asks, and waits only for the server's answer, one session timeout at most. With
 * ZKL_INSPECT_FORCE in flags it deletes the node when the deadline passes, which takes one session
 * timeout more at most. Ask the holder of a mutex, and take the lock away after ten seconds:
 *
 *     #include <zklock/inspect.h>
 *
 *     int take_away(struct zkl_client *client, const char *path)
 *     {
 *         const struct zkl_inspection *seen;
 *         struct zkl_wait wait = ZKL_WAIT_INIT;
 *         int rc = zkl_inspect(client, path, 5000, &seen);
 *         if (rc != 0)
 *             return rc;
 *         wait.deadline_ns = zkl_now_ns() + 10000 * INT64_C(1000000);
 *         for (size_t i = 0; i < seen->count && rc == 0; i++) {
 *             const struct zkl_entry *entry = zkl_inspection_entry(seen, i);
 *             if (entry->role == ZKL_ENTRY_ROLE_HOLDER)
 *                 rc = zkl_revoke(client, entry->node_path, &wait, ZKL_INSPECT_FORCE);
 *             if (rc == ZKL_ENONODE)
 *                 rc = 0;
 *         }
 *         zkl_inspection_free(seen);
 *         return rc;
 *     }
 *
 * 0: the node is removed. ZKL_ETIMEDOUT: asked, but the node is still there; with ZKL_INSPECT_FORCE
 * the deletion got no answer, and it is there or not. ZKL_EDISCONNECTED, ZKL_ECANCELED: it may have
 * asked, and with ZKL_INSPECT_FORCE deleted. ZKL_ENONODE: there was none (0, if the link broke
 * before that answer). ZKL_EFOREIGN: not the name of a contender, and no ZKL_INSPECT_FORCE; or the
 * node has children, which no force deletes. ZKL_EPROTO: an answer that is not understood; or a
 * server shows the node and the leader has none: that server has data of its own, and zklock doctor
 * says which. ZKL_EACCES: the detail names the right: WRITE to ask, READ to wait, DELETE on the
 * node above to force; where one of the first two is denied, nothing is deleted: zkl_break does.
 * ZKL_ECLOSED, ZKL_EAUTH, ZKL_EQUOTA, ZKL_EREADONLY, ZKL_EUNIMPLEMENTED, ZKL_ENOMEM, ZKL_ESYSTEM.
 * Refused, and nothing was sent: ZKL_EINVAL, ZKL_EBADPATH, ZKL_EBADTIMEOUT (negative); ZKL_EFORK,
 * ZKL_EINCALLBACK. */
ZKL_API int zkl_revoke(struct zkl_client *client, const char *node_path,
                       const struct zkl_wait *wait, unsigned flags);

/* Delete the node of a contender, holder or waiter, immediately. Its owner is notified that the
 * hold is lost (a waiter queues again), but may continue its work until then; only the token
 * protects what it writes. czxid: of the intended entry, compared just before the deletion. 0: any
 * node with that path, which is enough for a contender's: no other node gets its name.
 * 0: deleted. ZKL_ENONODE: there is no such node, or another one took its place. ZKL_ETIMEDOUT,
 * ZKL_EDISCONNECTED: the server may have deleted it or not. ZKL_EFOREIGN, ZKL_EPROTO: as
 * zkl_revoke. ZKL_EACCES: DELETE on the node above; or READ, which servers from 3.8.4 and 3.9.2 on
 * want for a czxid. ZKL_ECLOSED, ZKL_EAUTH, ZKL_EREADONLY, ZKL_EUNIMPLEMENTED, ZKL_ENOMEM.
 * Refused, and nothing was sent: ZKL_EINVAL, ZKL_EBADPATH, ZKL_EBADTIMEOUT, ZKL_EFORK,
 * ZKL_EINCALLBACK. */
ZKL_API int zkl_break(struct zkl_client *client, const char *node_path, uint64_t czxid,
                      unsigned flags, int64_t timeout_ms);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif
