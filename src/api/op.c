/* SPDX-License-Identifier: Apache-2.0
 *
 * An operation: a call of async.h from its start to its callback. A thread begins it with the
 * client's mutex. It takes a step whenever it is woken or its next check is due, on whatever thread
 * releases the mutex then. When a step decides it, this file queues its callback for the thread
 * that runs callbacks. The client owns the operation until then. async.c begins
 * operations; place.c wakes them. */
#include "op.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "error.h"
#include "place.h"

#define SLOT_BITS 24 /* of an operation's number: its place in the table */
#define ROOM_MIN 16
#define NOWHERE ((size_t)-1)

/* --- the operations with a due check: a heap ---------------------------- */

static void put(struct zkl_ops *ops, size_t at, struct zkl_op *op)
{
    ops->heap[at] = op;
    op->heap_at = at;
}

static void sift(struct zkl_ops *ops, size_t at, struct zkl_op *op)
{
    while (at > 0 && ops->heap[(at - 1) / 2]->next_ns > op->next_ns) {
        put(ops, at, ops->heap[(at - 1) / 2]);
        at = (at - 1) / 2;
    }
    for (size_t child; (child = 2 * at + 1) < ops->heap_count; at = child) {
        if (child + 1 < ops->heap_count &&
            ops->heap[child + 1]->next_ns < ops->heap[child]->next_ns)
            child++;
        if (ops->heap[child]->next_ns >= op->next_ns)
            break;
        put(ops, at, ops->heap[child]);
    }
    put(ops, at, op);
}

static void unschedule(struct zkl_ops *ops, struct zkl_op *op)
{
    size_t at = op->heap_at;
    if (at == NOWHERE)
        return;
    op->heap_at = NOWHERE;
    struct zkl_op *last = ops->heap[--ops->heap_count];
    if (last != op)
        sift(ops, at, last);
}

/* INT64_MAX: only when it is woken. */
static void schedule(struct zkl_op *op, int64_t next_ns)
{
    struct zkl_ops *ops = &op->client->ops;
    op->next_ns = next_ns;
    if (next_ns == INT64_MAX)
        unschedule(ops, op);
    else
        sift(ops, op->heap_at != NOWHERE ? op->heap_at : ops->heap_count++, op);
    op->client->driver->due_ns = ops->heap_count > 0 ? ops->heap[0]->next_ns : INT64_MAX;
}

void zkl_ops_due(void *client, int64_t mono_ns)
{
    struct zkl_ops *ops = &((struct zkl_client *)client)->ops;
    while (ops->heap_count > 0 && ops->heap[0]->next_ns <= mono_ns) {
        struct zkl_op *op = ops->heap[0];
        schedule(op, INT64_MAX);
        zkl_op_wake(op);
    }
}

/* --- by number: a table ------------------------------------------------- */

static bool grow(struct zkl_ops *ops)
{
    size_t room = ops->room > 0 ? 2 * ops->room : ROOM_MIN;
    struct zkl_op **slots = realloc(ops->slots, room * sizeof *slots);
    if (slots)
        ops->slots = slots;
    struct zkl_op **heap = realloc(ops->heap, room * sizeof *heap);
    if (heap)
        ops->heap = heap;
    if (!slots || !heap || room > (size_t)1 << SLOT_BITS)
        return false;
    memset(slots + ops->room, 0, (room - ops->room) * sizeof *slots);
    ops->next = ops->room;
    ops->room = room;
    return true;
}

/* At most half of it is in use, so that a free slot is soon found. */
static bool add(struct zkl_ops *ops, struct zkl_op *op)
{
    if (2 * ops->count >= ops->room && !grow(ops))
        return false;
    while (ops->slots[ops->next])
        ops->next = (ops->next + 1) % ops->room;
    op->slot = ops->next;
    op->id = ++ops->serial << SLOT_BITS | op->slot;
    ops->slots[op->slot] = op;
    ops->count++;
    return true;
}

struct zkl_op *zkl_op_find(const struct zkl_client *client, uint64_t id)
{
    const struct zkl_ops *ops = &client->ops;
    size_t slot = id & (((uint64_t)1 << SLOT_BITS) - 1);
    struct zkl_op *op = slot < ops->room ? ops->slots[slot] : NULL;
    return op && op->id == id ? op : NULL;
}

/* --- from start to callback --------------------------------------------- */

static void run_step(struct zkl_task *task)
{
    zkl_op_step((struct zkl_op *)((char *)task - offsetof(struct zkl_op, task)));
}

static void run_callback(struct zkl_note *note)
{
    struct zkl_op *op = (struct zkl_op *)note;
    struct zkl_client *client = op->client;
    zkl_done_fn fn = op->fn;
    void *arg = op->arg;
    int rc = op->kind->finish(op, op->rc);
    if (op->detail)
        zkl_fail_again(op->detail);
    free(op->detail);
    free(op);
    fn(rc, arg);
    zkl_client_unref(client);
}

void *zkl_op_new(size_t size, struct zkl_client *client, const struct zkl_op_kind *kind,
                 zkl_done_fn fn, void *arg)
{
    struct zkl_op *op = calloc(1, size);
    if (!op)
        return NULL;
    op->note.run = run_callback;
    op->note.owner = client; /* of nothing that could be freed while it runs */
    op->task.run = run_step;
    op->kind = kind;
    op->client = client;
    op->fn = fn;
    op->arg = arg;
    op->heap_at = NOWHERE;
    zkl_client_ref(client);
    return op;
}

void zkl_op_free(struct zkl_op *op)
{
    struct zkl_client *client = op->client;
    free(op->detail);
    free(op);
    zkl_client_unref(client);
}

void zkl_op_know(struct zkl_op *op, int rc)
{
    op->rc = rc;
    if (rc != 0)
        op->detail = strdup(zkl_error_detail()); /* else the callback has the bare sentence */
}

int zkl_op_begin(struct zkl_op *op, uint64_t *id)
{
    assert(zkl_driver_is_locked(op->client->driver));
    struct zkl_client *client = op->client;
    if (op->kind->closes ? client->driver->closed : client->driver->closing)
        return ZKL_ECLOSED;
    if (!add(&client->ops, op))
        return ZKL_ENOMEM;
    client->driver->owed++;
    if (id)
        *id = op->id;
    return 0;
}

void zkl_op_withdraw(struct zkl_op *op)
{
    struct zkl_client *client = op->client;
    client->ops.slots[op->slot] = NULL;
    client->ops.count--;
    client->driver->owed--;
}

void zkl_op_step(struct zkl_op *op)
{
    assert(zkl_driver_is_locked(op->client->driver));
    int64_t next_ns = INT64_MAX;
    if (op->is_decided) /* by the step that it was woken in */
        return;
    int rc = op->kind->step(op, &next_ns);
    if (rc == ZKL_GOES_ON)
        schedule(op, next_ns);
    else
        zkl_op_decide(op, rc);
}

void zkl_op_wake(struct zkl_op *op)
{
    zkl_driver_defer(op->client->driver, &op->task);
}

void zkl_op_decide(struct zkl_op *op, int rc)
{
    assert(zkl_driver_is_locked(op->client->driver));
    struct zkl_client *client = op->client;
    schedule(op, INT64_MAX);
    zkl_op_withdraw(op);
    op->is_decided = true;
    op->rc = rc;
    zkl_driver_post(client->driver, &op->note);
    if (op->kind->decided)
        op->kind->decided(op, rc);
}

void zkl_ops_closed(void *arg, bool confirmed)
{
    struct zkl_client *client = arg;
    for (size_t i = 0; i < client->ops.room; i++) {
        struct zkl_op *op = client->ops.slots[i];
        if (op && op->kind->closes)
            zkl_op_decide(op, confirmed ? 0 : ZKL_ETIMEDOUT);
    }
}

/* --- for the application ------------------------------------------------ */

int zkl_op_cancel(struct zkl_client *client, uint64_t id)
{
    ZKL_SHIELDED();
    if (!client)
        return zkl_fail(ZKL_EINVAL, "zkl_op_cancel: client is NULL");
    int rc = zkl_client_check(client, false, "zkl_op_cancel");
    if (rc != 0)
        return rc;
    zkl_driver_lock(client->driver);
    struct zkl_op *op = zkl_op_find(client, id);
    if (op && op->kind->cancel)
        op->kind->cancel(op);
    zkl_driver_unlock(client->driver);
    return 0;
}

int zkl_client_event_fd(struct zkl_client *client)
{
    ZKL_SHIELDED();
    static const char call[] = "zkl_client_event_fd";
    int fd = -1;
    if (!client)
        return zkl_fail(ZKL_EINVAL, "%s: client is NULL", call);
    int rc = zkl_client_check(client, true, call);
    if (rc == 0 && zkl_driver_in_callback())
        rc = zkl_fail(ZKL_EINCALLBACK, "%s", call);
    if (rc != 0)
        return rc;
    zkl_driver_lock(client->driver);
    rc = client->driver->closing ? ZKL_ECLOSED : zkl_driver_use_events(client->driver, &fd);
    zkl_driver_unlock(client->driver);
    return rc == 0 ? fd : zkl_fail(rc, "%s", call);
}

int zkl_client_dispatch(struct zkl_client *client, int max)
{
    ZKL_SHIELDED();
    static const char call[] = "zkl_client_dispatch";
    if (!client || max < 1)
        return zkl_fail(ZKL_EINVAL, client ? "%s: max is less than 1" : "%s: client is NULL", call);
    int rc = zkl_client_check(client, false, call);
    if (rc == 0 && zkl_driver_in_callback())
        rc = zkl_fail(ZKL_EINCALLBACK, "%s", call);
    if (rc != 0)
        return rc;
    rc = zkl_driver_dispatch(client->driver, max);
    if (rc == ZKL_EINVAL)
        zkl_fail(rc, "%s: call zkl_client_event_fd first", call);
    else if (rc == ZKL_EFORK)
        zkl_fail(rc, "%s: this is a child that a callback forked", call);
    else if (rc < 0)
        zkl_fail(rc, "%s: another thread is running callbacks", call);
    return rc;
}
