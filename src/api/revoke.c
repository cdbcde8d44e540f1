/* SPDX-License-Identifier: Apache-2.0
 *
 * Requests to release a lock, and breaking one. Each attempt reads the node, writes or deletes it
 * by its version, and waits for its end if the caller wants that. Users call this file from any
 * thread, without a lock held; it blocks in awaited_query.c, up to the deadline given. */
#include <zklock/inspect.h>

#include <string.h>

#include "driver/clock.h"
#include "error.h"
#include "place.h"
#include "awaited_query.h"

#define MS INT64_C(1000000)

/* One call. */
struct attempt {
    const char *call;
    struct zkl_client *client;
    const char *path;
    unsigned flags;
    int64_t deadline;
    struct zkl_cancel *cancel;
};

/* --- arguments ---------------------------------------------------------- */

static bool is_contender(const char *path)
{
    static const struct zkl_naming permit = {.role = ZKL_ROLE_PERMIT};
    const char *name = strrchr(path, '/') + 1;
    struct zkl_naming naming;
    struct zkl_node_name place;
    return zkl_name_recognise(name, &naming, &place) || zkl_name_parse(name, &permit, &place);
}

static int check(const struct attempt *a)
{
    if (!a->client || !a->path)
        return zkl_fail(ZKL_EINVAL, "%s: %s is NULL", a->call, a->client ? "node_path" : "client");
    if (a->flags & ~ZKL_INSPECT_FORCE)
        return zkl_fail(ZKL_EINVAL, "%s: unknown flags 0x%x", a->call, a->flags);
    const char *fault = zkl_node_path_fault(a->path);
    if (fault)
        return zkl_fail(ZKL_EBADPATH, "\"%.64s\" %s", a->path, fault);
    int rc = zkl_query_check(a->client, a->call);
    if (rc != 0)
        return rc;
    if (!(a->flags & ZKL_INSPECT_FORCE) && !is_contender(a->path))
        return zkl_fail(ZKL_EFOREIGN, "%s: %.512s", a->call, a->path);
    return 0;
}

/* --- querying ----------------------------------------------------------- */

static int query(const struct attempt *a, struct zkl_awaited_query *queries, size_t count,
                 int64_t deadline)
{
    return zkl_query_all(a->client, queries, count, deadline, a->cancel);
}

static int fail(const struct attempt *a, int rc, const char *what)
{
    return zkl_fail(rc, "%s: %.512s: %s", a->call, a->path, what);
}

static int fail_answer(const struct attempt *a, const struct zkl_awaited_query *q,
                       const char *right, const char *doing)
{
    switch ((int)q->answer) {
    case ZKL_ANSWER_NOAUTH:
        return fail(a, ZKL_EACCES, right);
    case ZKL_ANSWER_NONODE:
        return fail(a, ZKL_ENONODE, doing);
    default:
        return zkl_fail(zkl_answer_code(q->answer), "%s: %.512s: while %s, ZooKeeper returned %d",
                        a->call, a->path, doing, q->number);
    }
}

/* The time for a call that must wait only for the server. */
static int64_t patience(const struct attempt *a)
{
    struct zkl_driver *d = a->client->driver;
    zkl_driver_lock(d);
    int64_t until = zkl_clock_mono_ns() + d->core.session.timeout_ms * MS;
    zkl_driver_unlock(d);
    return until;
}

/* --- deleting one node and no other ------------------------------------- */

static int fail_parent(const struct attempt *a)
{
    return fail(a, ZKL_EFOREIGN,
                "the node has children, and force does not delete such a node either");
}

/* The node with that czxid (0: any), as of now: behind a sync, as a server can lag behind. */
static int find(const struct attempt *a, int64_t czxid, int64_t deadline,
                struct zkl_awaited_query *found)
{
    struct zkl_awaited_query q[] = {zkl_awaited_query_of(ZKL_REQ_SYNC, a->path),
                                    zkl_awaited_query_of(ZKL_REQ_STAT, a->path)};
    int rc = query(a, q, 2, deadline);
    *found = q[1];
    if (rc != 0)
        return fail(a, rc, "reading the node");
    if (found->answer == ZKL_ANSWER_NOAUTH && czxid == 0)
        return 0; /* there, and any will do; newer servers say no more */
    if (found->answer != ZKL_ANSWER_OK)
        return fail_answer(a, found, "the ACL denies READ", "reading the node");
    if (czxid != 0 && found->czxid != czxid)
        return fail(a, ZKL_ENONODE, "another node has its path now");
    return found->node_children > 0 ? fail_parent(a) : 0;
}

/* A write is the leader's to judge, and it knows no such node; a read shows the same node before and
 * after, each behind a sync. */
static int fail_diverged(const struct attempt *a)
{
    return fail(
        a, ZKL_EPROTO,
        "the server that this client reads from shows the node, but the leader says that it "
        "does not exist: that server has data of its own, and zklock doctor, with each server of "
        "the ensemble in its list, says which");
}

/* With the version that was seen just before, if one was. *again: look again, the answer was lost
 * (*lost), the leader knows no such node (*none), or something happened to the node in between. */
static int delete_found(const struct attempt *a, const struct zkl_awaited_query *found,
                        int64_t deadline, bool *again, bool *lost, bool *none)
{
    struct zkl_awaited_query q = zkl_awaited_query_of(ZKL_REQ_DELETE, a->path);
    bool unseen = found->answer != ZKL_ANSWER_OK;
    q.query.flag = !unseen;
    q.query.once = true;
    q.query.version = found->version;
    int rc = query(a, &q, 1, deadline);
    if (rc != 0)
        return fail(a, rc, "deleting the node, which may or may not be deleted");
    if (unseen && q.answer == ZKL_ANSWER_NOTEMPTY)
        return fail_parent(a); /* a look would show nothing else */
    *lost = *lost || q.answer == ZKL_ANSWER_LINK;
    *none = q.answer == ZKL_ANSWER_NONODE;
    *again = *none || q.answer == ZKL_ANSWER_LINK || q.answer == ZKL_ANSWER_NOTEMPTY;
    if (*again || q.answer == ZKL_ANSWER_OK)
        return 0;
    return fail_answer(a, &q, "the ACL denies DELETE on the node above", "deleting the node");
}

/* ZKL_ENONODE: it was not there; 0 instead if the answer to a try was lost, which may have done
 * it. */
static int delete_node(const struct attempt *a, int64_t czxid, int64_t deadline)
{
    bool again = true, lost = false, none = false;
    int rc = 0;
    while (rc == 0 && again) {
        struct zkl_awaited_query found;
        rc = find(a, czxid, deadline, &found);
        if (rc == ZKL_ENONODE && lost)
            return 0;
        czxid = found.czxid;
        if (rc == 0 && none)
            return fail_diverged(a);
        if (rc == 0)
            rc = delete_found(a, &found, deadline, &again, &lost, &none);
    }
    return rc;
}

int zkl_break(struct zkl_client *client, const char *node_path, uint64_t czxid, unsigned flags,
              int64_t timeout_ms)
{
    struct attempt a = {.call = "zkl_break", .client = client, .path = node_path, .flags = flags};
    int rc = zkl_check_ms(timeout_ms, a.call) == 0 ? check(&a) : ZKL_EBADTIMEOUT;
    if (rc != 0)
        return rc;
    a.deadline = zkl_clock_mono_ns() + timeout_ms * MS;
    ZKL_SHIELDED();
    zkl_client_ref(client);
    rc = delete_node(&a, (int64_t)czxid, a.deadline);
    zkl_client_unref(client);
    return rc;
}

/* --- requests to release ------------------------------------------------ */

/* The leader knows no such node. 0: this server shows none either. *shown: the node that it showed
 * when this was called before, or 0; then the one that it shows now. */
static int check_none(const struct attempt *a, int64_t deadline, int64_t *shown)
{
    enum { NOT_READABLE = -1 };
    struct zkl_awaited_query q[] = {zkl_awaited_query_of(ZKL_REQ_SYNC, a->path),
                                    zkl_awaited_query_of(ZKL_REQ_STAT, a->path)};
    int64_t before = *shown;
    int rc = query(a, q, 2, deadline);
    if (rc != 0)
        return fail(a, rc == ZKL_ETIMEDOUT ? ZKL_EDISCONNECTED : rc, "looking for the node");
    *shown = q[1].answer == ZKL_ANSWER_OK       ? q[1].czxid
             : q[1].answer == ZKL_ANSWER_NOAUTH ? NOT_READABLE
                                                : 0;
    return *shown != 0 && *shown == before ? fail_diverged(a) : 0;
}

/* Write the request. 0: *czxid is the node's, or 0 if the node does not exist any more. */
static int request(const struct attempt *a, int64_t deadline, int64_t *czxid)
{
    struct zkl_awaited_query q = zkl_awaited_query_of(ZKL_REQ_SET, a->path);
    q.query.data = ZKL_REVOCATION;
    q.query.once = true;
    bool tried = false;
    for (int64_t shown = 0;;) {
        int rc = query(a, &q, 1, deadline);
        if (rc == ZKL_ETIMEDOUT) /* which means that it was asked */
            rc = ZKL_EDISCONNECTED;
        if (rc != 0)
            return fail(a, rc, "asking, and the request may or may not have reached the server");
        tried |= q.answer == ZKL_ANSWER_LINK; /* to ask twice does no harm */
        if (q.answer == ZKL_ANSWER_NONODE && (rc = check_none(a, deadline, &shown)) != 0)
            return rc;
        bool again = q.answer == ZKL_ANSWER_LINK || (q.answer == ZKL_ANSWER_NONODE && shown != 0);
        if (!again)
            break;
    }
    *czxid = q.answer == ZKL_ANSWER_OK ? q.czxid : 0;
    if (q.answer == ZKL_ANSWER_OK || (q.answer == ZKL_ANSWER_NONODE && tried))
        return 0;
    return fail_answer(a, &q, "the ACL denies WRITE", "asking");
}

static int wait_for_end(const struct attempt *a, int64_t czxid)
{
    struct zkl_awaited_query q = zkl_awaited_query_of(ZKL_REQ_WATCH, a->path);
    q.query.czxid = czxid;
    int rc = query(a, &q, 1, a->deadline);
    if (rc == ZKL_ETIMEDOUT || rc == ZKL_EDISCONNECTED)
        return fail(a, ZKL_ETIMEDOUT, "the holder was asked and has not released the lock");
    if (rc != 0)
        return fail(a, rc, "the holder was asked");
    if (q.answer == ZKL_ANSWER_NONODE)
        return 0;
    return fail_answer(
        a, &q,
        "the holder was asked, but the ACL denies READ, so the call cannot wait for its release",
        "waiting for its release");
}

static int revoke(const struct attempt *a)
{
    int64_t czxid = 0;
    bool passed = zkl_clock_mono_ns() >= a->deadline;
    int rc = request(a, passed ? patience(a) : a->deadline, &czxid);
    bool asked = rc == 0;
    if (asked && czxid != 0)
        rc = wait_for_end(a, czxid);
    bool out_of_time = rc == ZKL_ETIMEDOUT || rc == ZKL_EDISCONNECTED;
    if (!out_of_time || !(a->flags & ZKL_INSPECT_FORCE))
        return rc;
    rc = delete_node(a, czxid, patience(a));
    return rc == ZKL_ENONODE && asked ? 0 : rc;
}

static int check_wait(const struct zkl_wait *wait, const char *call)
{
    if (wait->flags != 0 || wait->lease_ms != 0)
        return zkl_fail(ZKL_EINVAL, "%s: wait's flags and lease_ms must be 0", call);
    if (wait->deadline_ns < 0)
        return zkl_fail(ZKL_EBADTIMEOUT, "%s: deadline_ns is negative", call);
    return zkl_cancel_check(wait->cancel, call);
}

int zkl_revoke(struct zkl_client *client, const char *node_path, const struct zkl_wait *wait,
               unsigned flags)
{
    struct zkl_wait ours;
    int rc = zkl_wait_take(&ours, wait, "zkl_revoke");
    if (rc == 0)
        rc = check_wait(&ours, "zkl_revoke");
    if (rc != 0)
        return rc;
    struct attempt a = {.call = "zkl_revoke",
                        .client = client,
                        .path = node_path,
                        .flags = flags,
                        .deadline = ours.deadline_ns,
                        .cancel = ours.cancel};
    rc = check(&a);
    if (rc != 0)
        return rc;
    ZKL_SHIELDED();
    zkl_client_ref(client);
    zkl_cancel_ref(a.cancel);
    rc = revoke(&a);
    zkl_cancel_free(a.cancel);
    zkl_client_unref(client);
    return rc;
}
