/* SPDX-License-Identifier: Apache-2.0
 *
 * Gathers the creates of a batch's members, and sends them in one transaction. feed.c calls this
 * file for each request of a member, core.c when an event is over; bundle.c makes batches, and is
 * told by the creates' answers alone. With the client's mutex. */
#include "batch.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "due.h"
#include "transaction.h"

struct zkl_batch *zkl_batch_new(size_t size)
{
    struct zkl_batch *batch = calloc(1, sizeof *batch + size * sizeof(struct zkl_contender *));
    if (!batch)
        return NULL;
    batch->refs = 1;
    batch->size = size;
    batch->members = (struct zkl_contender **)(batch + 1);
    return batch;
}

void zkl_batch_unref(struct zkl_core *core, struct zkl_batch *batch)
{
    if (--batch->refs > 0)
        return;
    zkl_due_forget(core, &batch->due, ZKL_DUE_BATCH);
    free(batch);
}

static void forget_wishes(struct zkl_contender *c)
{
    c->batch_wants_create = c->batch_wants_list = false;
}

void zkl_batch_attach(struct zkl_batch *batch, struct zkl_contender *contender)
{
    struct zkl_batch **its = &contender->machine.lock_request.batch;
    /* the contender that begins has asked for it */
    assert(batch->count < batch->size && (!*its || *its == batch));
    *its = batch;
    forget_wishes(contender);
    batch->members[batch->count++] = contender;
    batch->refs++;
}

void zkl_batch_detach(struct zkl_core *core, struct zkl_contender *contender)
{
    struct zkl_batch *batch = contender->machine.lock_request.batch;
    if (!batch)
        return;
    size_t i = 0;
    while (batch->members[i] != contender)
        i++;
    batch->count--;
    memmove(&batch->members[i], &batch->members[i + 1],
            (batch->count - i) * sizeof *batch->members);
    contender->machine.lock_request.batch = NULL;
    zkl_batch_unref(core, batch);
}

void zkl_batch_touch(struct zkl_core *core, struct zkl_batch *batch)
{
    zkl_due_add(core, &batch->due, ZKL_DUE_BATCH);
}

void zkl_batch_reset(struct zkl_batch *batch)
{
    for (size_t i = 0; i < batch->count; i++)
        forget_wishes(batch->members[i]);
}

void zkl_batch_create(struct zkl_core *core, struct zkl_contender *contender)
{
    contender->batch_wants_create = true;
    zkl_batch_touch(core, contender->machine.lock_request.batch);
}

/* Will this member ask for its create without anything but the server's answers? */
static bool is_coming(const struct zkl_contender *c)
{
    enum zkl_contender_state state = c->machine.state;
    return state == ZKL_CONTENDER_NEW || state == ZKL_CONTENDER_PARKED ||
           state == ZKL_CONTENDER_LOOKING || state == ZKL_CONTENDER_MAKING;
}

bool zkl_batch_is_creating(const struct zkl_batch *batch)
{
    bool any = false;
    for (size_t i = 0; i < batch->count; i++)
        any |= batch->members[i]->batch_wants_create && batch->members[i]->transaction;
    return any;
}

static bool creates_are_due(const struct zkl_batch *batch, size_t *wanted)
{
    *wanted = 0;
    if (zkl_batch_is_creating(batch))
        return false;
    for (size_t i = 0; i < batch->count; i++) {
        if (is_coming(batch->members[i]))
            return false;
        *wanted += batch->members[i]->batch_wants_create;
    }
    return *wanted > 0;
}

/* A single one is made as if there were no batch: that answers the zxid as well. */
static void send_one(struct zkl_core *core, struct zkl_contender *c)
{
    c->batch_wants_create = false;
    zkl_core_send_create(core, c);
    if (c->batch_wants_list)
        zkl_core_send_list(core, c);
    c->batch_wants_list = false;
}

/* Without memory for a transaction one by one, too. */
void zkl_batch_settle(struct zkl_core *core, struct zkl_due *due)
{
    const struct zkl_batch *batch = (const struct zkl_batch *)due;
    size_t wanted;
    if (!creates_are_due(batch, &wanted))
        return;
    struct zkl_transaction *t = wanted > 1 ? zkl_transaction_new(wanted) : NULL;
    for (size_t i = 0; i < batch->count; i++) {
        struct zkl_contender *c = batch->members[i];
        if (!c->batch_wants_create)
            continue;
        if (t)
            zkl_transaction_add(t, c, ZKL_HELD_CREATE);
        else
            send_one(core, c);
    }
    if (t)
        zkl_transaction_send(core, t);
}
