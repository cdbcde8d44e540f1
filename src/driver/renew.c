/* SPDX-License-Identifier: Apache-2.0
 * Renewing a lock path whose sequence counter is used up: delete the empty node, make it again as
 * it was. The driver first reads what the node holds. If the library itself would make such a node
 * (no data, the client's ACL), the driver deletes it and makes it again as a container: any client
 * that makes it in between makes the same node. The deletion is a transaction that also makes the
 * node once more and deletes that, so that it fails if the parent's ACL would not let us make it
 * again. Any other node is deleted and made in one transaction, so that its ACL and data cannot be
 * lost in between. It is made as a persistent node then, because libzookeeper aborts on a container
 * in a transaction. */
#include "handle.h"

#include <stdlib.h>
#include <string.h>

#include <zklock/zklock.h>

#include "zkmap.h"

static bool copy_acl(struct ACL_vector *to, const struct ACL_vector *from)
{
    to->data = calloc((size_t)from->count + 1, sizeof *to->data);
    if (!to->data)
        return false;
    for (to->count = 0; to->count < from->count; to->count++) {
        struct ACL *entry = &to->data[to->count];
        entry->perms = from->data[to->count].perms;
        entry->id.scheme = strdup(from->data[to->count].id.scheme);
        entry->id.id = strdup(from->data[to->count].id.id);
        if (!entry->id.scheme || !entry->id.id) {
            to->count++;
            return false;
        }
    }
    return true;
}

/* To a client that may not administer the node the server shows "user:x" for a digest. Making the
 * node again with that ACL would lock everybody out. */
static bool acl_is_masked(const struct ACL_vector *acl)
{
    for (int i = 0; i < acl->count; i++) {
        const char *id = acl->data[i].id.id;
        size_t length = strlen(id);
        if (strcmp(acl->data[i].id.scheme, "digest") == 0 && length >= 2 &&
            strcmp(id + length - 2, ":x") == 0)
            return true;
    }
    return false;
}

static bool is_what_we_make(const struct zkl_driver *d, const struct zkl_renewal *renewal)
{
    const struct ACL_vector *acl = &renewal->acl;
    return renewal->length <= 0 && !d->config.creator_acl && acl->count == 1 &&
           acl->data[0].perms == ZOO_PERM_ALL && strcmp(acl->data[0].id.scheme, "world") == 0;
}

static void finish(struct zkl_call *call, enum zkl_answer answer)
{
    struct zkl_reply reply = {.answer = answer};
    zkl_call_leave(call, &reply);
}

/* After a failure, or once the handle is being closed, the sequence ends. True: the call is
 * freed. */
static bool stop_here(struct zkl_call *call, int rc)
{
    if (rc == ZOK && !call->handle->buried)
        return false;
    finish(call, rc == ZOK ? ZKL_ANSWER_LINK : zkl_map_rc(rc));
    return true;
}

/* The next call of the row: if libzookeeper does not take it, the row ends. */
static void go_on(struct zkl_call *call, int rc)
{
    struct zkl_driver *d = call->handle->driver;
    uint64_t id = call->id;
    if (rc != ZOK && zkl_call_is_kept(call, rc)) {
        struct zkl_reply reply = {.id = id, .answer = zkl_handle_refusal(call->handle, rc)};
        zkl_core_reply(&d->core, zkl_clock_now(), &reply);
    } else if (rc != ZOK) {
        finish(call, zkl_handle_refusal(call->handle, rc));
        return;
    }
    zkl_driver_unlock(d);
}

static void on_transaction(int rc, const void *data)
{
    finish(zkl_call_enter(data), zkl_map_rc(rc));
}

/* If the server does not know containers, the client that needs the node makes it another way; the
 * old node is deleted. */
static void on_made(int rc, const char *path, const struct Stat *stat, const void *data)
{
    (void)path;
    (void)stat;
    finish(zkl_call_enter(data), rc == ZUNIMPLEMENTED ? ZKL_ANSWER_OK : zkl_map_rc(rc));
}

static void on_deleted(int rc, const void *data)
{
    struct zkl_call *call = zkl_call_enter(data);
    if (stop_here(call, rc))
        return;
    go_on(call, zoo_acreate2(call->handle->zh, call->renewal->path, "", 0,
                             zkl_handle_acl(call->handle->driver), ZOO_CONTAINER, on_made, call));
}

static int send_transaction(struct zkl_call *call, int count, void_completion_t then)
{
    struct zkl_renewal *r = call->renewal;
    call->results = calloc((size_t)count, sizeof *call->results);
    call->result_count = (size_t)count;
    if (!call->results)
        return ZSYSTEMERROR;
    zoo_delete_op_init(&r->ops[0], r->path, r->version);
    zoo_create_op_init(&r->ops[1], r->path, r->data, r->length, &r->acl, ZOO_PERSISTENT, r->created,
                       sizeof r->created);
    zoo_delete_op_init(&r->ops[2], r->path, -1);
    return zkl_call_multi(call, count, r->ops, then);
}

static void on_acl(int rc, struct ACL_vector *acl, struct Stat *stat, const void *data)
{
    struct zkl_call *call = zkl_call_enter(data);
    struct zkl_renewal *renewal = call->renewal;
    (void)stat;
    if (stop_here(call, rc))
        return;
    if (acl_is_masked(acl))
        finish(call, ZKL_ANSWER_NOAUTH);
    else if (!copy_acl(&renewal->acl, acl))
        finish(call, ZKL_ANSWER_NOMEM);
    else if (is_what_we_make(call->handle->driver, renewal))
        go_on(call, send_transaction(call, 3, on_deleted));
    else
        go_on(call, send_transaction(call, 2, on_transaction));
}

static void on_data(int rc, const char *value, int length, const struct Stat *stat,
                    const void *data)
{
    struct zkl_call *call = zkl_call_enter(data);
    struct zkl_renewal *renewal = call->renewal;
    if (stop_here(call, rc))
        return;
    renewal->version = stat->version;
    renewal->length = length; /* -1: NULL data */
    renewal->data = length > 0 ? malloc((size_t)length) : NULL;
    if (length > 0 && !renewal->data) {
        finish(call, ZKL_ANSWER_NOMEM);
        return;
    }
    if (length > 0)
        memcpy(renewal->data, value, (size_t)length);
    go_on(call, zoo_aget_acl(call->handle->zh, renewal->path, on_acl, call));
}

int zkl_renew_start(struct zkl_call *call, const char *path)
{
    call->renewal = calloc(1, sizeof *call->renewal);
    if (!call->renewal)
        return ZSYSTEMERROR;
    call->renewal->path = strdup(path);
    if (!call->renewal->path)
        return ZSYSTEMERROR;
    return zoo_aget(call->handle->zh, path, 0, on_data, call);
}
