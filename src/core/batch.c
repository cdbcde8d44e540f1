/* SPDX-License-Identifier: Apache-2.0
 *
 * Combines the requests of a batch's members: creates in one transaction, with the lists that can
 * be sent along, and deletes in one. feed.c calls this file for each request of a member; group.c
 * and permits.c make batches and say when deletes are complete; group_commit.c makes batches that
 * are one transaction of both. batch_reply.c distributes the server's answers. */
#include "batch.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "unlisted_grant.h"
#include "due.h"
#include "requests.h"
#include "list_coalescing.h"

struct zkl_batch *zkl_batch_new(size_t size)
{
    size_t list = size * sizeof(struct zkl_contender *);
    struct zkl_batch *batch = calloc(1, sizeof *batch + 3 * list + size * sizeof *batch->names);
    if (!batch)
        return NULL;
    batch->refs = 1;
    batch->size = size;
    batch->members = (struct zkl_contender **)(batch + 1);
    batch->made = batch->members + size;
    batch->gone = batch->made + size;
    batch->names = (void *)(batch->gone + size);
    batch->create = batch->stat = batch->remove =
        (struct zkl_pending){.awaiter = ZKL_AWAITER_BATCH, .owner = batch};
    return batch;
}

void zkl_batch_unref(struct zkl_core *core, struct zkl_batch *batch)
{
    if (--batch->refs > 0)
        return;
    zkl_due_forget(core, &batch->due, ZKL_DUE_BATCH);
    zkl_pending_forget(core, &batch->create);
    zkl_pending_forget(core, &batch->stat);
    zkl_pending_forget(core, &batch->remove);
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

/* Its place stays empty: others are known by theirs. */
static void forget_in(struct zkl_contender **list, size_t count,
                      const struct zkl_contender *contender)
{
    for (size_t i = 0; i < count; i++) {
        if (list[i] == contender)
            list[i] = NULL;
    }
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
    forget_in(batch->made, batch->made_count, contender);
    forget_in(batch->gone, batch->gone_count, contender);
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
    batch->made_count = batch->gone_count = 0;
    batch->ahead = false;
}

/* --- which transaction it was ------------------------------------------- */

/* Apparently no other client changes this path's children: a list behind our nodes will do. */
static bool is_calm(const struct zkl_core *core, const struct zkl_contender *c)
{
    return c->machine.lock_request.views && c->machine.lock_request.path->view.calm &&
           c->machine.lock_request.path->view.link == core->link;
}

void zkl_batch_count_own(struct zkl_contender *c)
{
    if (c->machine.lock_request.views)
        c->machine.lock_request.path->view.own++;
}

/* There were as many changes since the last look as this client's own, of which the making of our
 * node was the last. */
static bool is_last_change_ours(const struct zkl_core *core, const struct zkl_contender *c,
                                const struct zkl_reply *reply)
{
    const struct zkl_children_view *view = &c->machine.lock_request.path->view;
    return view->link == core->link && view->czxid == reply->czxid &&
           (uint32_t)view->cversion + view->own == (uint32_t)reply->cversion; /* both wrap round */
}

void zkl_batch_look_at(const struct zkl_core *core, struct zkl_contender *c,
                       const struct zkl_reply *reply)
{
    c->machine.lock_request.path->view = (struct zkl_children_view){
        .link = core->link,
        .czxid = reply->czxid,
        .cversion = reply->cversion,
        .calm = is_last_change_ours(core, c, reply),
        .singly_until_mono_ns = c->machine.lock_request.path->view.singly_until_mono_ns};
}

/* --- creating ----------------------------------------------------------- */

bool zkl_batch_create(struct zkl_core *core, struct zkl_contender *contender)
{
    if (!contender->machine.lock_request.batch)
        return false;
    contender->batch_wants_create = true;
    zkl_batch_touch(core, contender->machine.lock_request.batch);
    return true;
}

bool zkl_batch_list(struct zkl_contender *contender)
{
    contender->batch_wants_list = contender->batch_wants_create;
    return contender->batch_wants_create;
}

/* Will this member ask for its create without anything but the server's answers? */
static bool is_coming(const struct zkl_contender *c)
{
    enum zkl_contender_state state = c->machine.state;
    return state == ZKL_CONTENDER_NEW || state == ZKL_CONTENDER_PARKED ||
           state == ZKL_CONTENDER_LOOKING || state == ZKL_CONTENDER_MAKING;
}

/* Some nodes may have been made, and an answer will show it. */
bool zkl_batch_is_creating(const struct zkl_batch *batch)
{
    return batch->create.id != 0 || batch->stat.id != 0 || batch->ahead;
}

static bool creates_are_due(const struct zkl_batch *batch)
{
    size_t wanted = 0;
    if (zkl_batch_is_creating(batch))
        return false;
    for (size_t i = 0; i < batch->count; i++) {
        if (is_coming(batch->members[i]))
            return false;
        wanted += batch->members[i]->batch_wants_create;
    }
    return wanted > 0;
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

/* The member before the ith one that sends, and waits for, a list of the same path, or NULL. */
static struct zkl_contender *list_owner(const struct zkl_batch *batch, size_t i)
{
    const struct zkl_path *path = batch->made[i]->machine.lock_request.path;
    for (size_t j = 0; j < i; j++) {
        struct zkl_contender *c = batch->made[j];
        if (c->batch_wants_list && !c->shares_list && c->machine.lock_request.path == path)
            return c;
    }
    return NULL;
}

/* One for each path where a list is waited for; of the first one's also to see how calm it is. */
static void send_lists(struct zkl_core *core, struct zkl_batch *batch)
{
    for (size_t i = 0; i < batch->made_count; i++) {
        struct zkl_contender *c = batch->made[i];
        assert(c);
        if (!c->batch_wants_list && !(i == 0 && c->machine.lock_request.views))
            continue;
        struct zkl_contender *owner = list_owner(batch, i);
        if (owner)
            zkl_shared_list_join(owner, c);
        else
            zkl_core_send_list(core, c);
        c->batch_list_for_view = !c->batch_wants_list;
    }
}

/* Without another list: those who share one first. */
void zkl_batch_forget_lists(struct zkl_core *core, struct zkl_batch *batch)
{
    for (size_t i = batch->made_count; i-- > 0;) {
        zkl_pending_forget(core, &batch->made[i]->slots[ZKL_SLOT_LIST]);
        zkl_shared_list_leave(core, batch->made[i]);
    }
}

static void leaves(struct zkl_core *core, struct zkl_contender *c)
{
    c->delete_sent = true;
    zkl_unlisted_leaves(core, c);
}

void zkl_core_send_delete(struct zkl_core *core, struct zkl_contender *c)
{
    leaves(core, c);
    zkl_core_send_node(core, c, ZKL_SLOT_DELETE, ZKL_REQ_DELETE);
}

/* The paths of those to be deleted, which leave. */
static void put_deletes(struct zkl_core *core, struct zkl_batch *batch,
                        char (*paths)[ZKL_NODE_PATH_MAX + 1])
{
    for (size_t i = 0; i < batch->gone_count; i++) {
        struct zkl_contender *c = batch->gone[i];
        zkl_core_node_path(c, c->machine.node, paths[i]);
        leaves(core, c);
    }
}

static void send_many(struct zkl_core *core, struct zkl_batch *batch)
{
    size_t first = batch->deletes_along ? batch->gone_count : 0, n = first + batch->made_count;
    char(*paths)[ZKL_NODE_PATH_MAX + 1] = malloc(n * sizeof *paths);
    const char **list = calloc(2 * n, sizeof *list);
    if (paths && list) {
        if (batch->deletes_along)
            put_deletes(core, batch, paths);
        for (size_t i = 0; i < batch->made_count; i++) {
            zkl_core_new_name(core, batch->made[i], paths[first + i]);
            list[n + first + i] = batch->made[i]->machine.lock_request.data;
        }
        for (size_t i = 0; i < n; i++)
            list[i] = paths[i];
        struct zkl_request request = {
            .kind = ZKL_REQ_CREATE_ALL, .checks = list, .check_count = n, .texts = list + n};
        zkl_pending_send(core, &batch->create, &request);
        batch->named = false;
        batch->ahead = is_calm(core, batch->made[0]);
        if (batch->ahead)
            send_lists(core, batch);
    } else {
        zkl_pending_refuse(core, &batch->create, ZKL_REQ_CREATE_ALL, ZKL_ANSWER_NOMEM);
    }
    free(paths);
    free(list);
}

static void send_creates(struct zkl_core *core, struct zkl_batch *batch)
{
    batch->made_count = 0;
    for (size_t i = 0; i < batch->count; i++) {
        if (batch->members[i]->batch_wants_create)
            batch->made[batch->made_count++] = batch->members[i];
    }
    if (batch->made_count == 1)
        send_one(core, batch->made[0]);
    else
        send_many(core, batch);
}

void zkl_batch_settle(struct zkl_core *core, struct zkl_batch *batch)
{
    if (creates_are_due(batch))
        send_creates(core, batch);
}

/* The answer names the nodes but not their zxid, which they all share: query one of them. The
 * lists, one for each lock path, are sent along. */
void zkl_batch_ask_for_zxid(struct zkl_core *core, struct zkl_batch *batch)
{
    char path[ZKL_NODE_PATH_MAX + 1];
    zkl_core_node_path(batch->made[batch->stat_member], batch->names[batch->stat_member], path);
    struct zkl_request request = {.kind = ZKL_REQ_STAT, .path = path};
    zkl_pending_send(core, &batch->stat, &request);
    send_lists(core, batch);
}

/* --- deleting ----------------------------------------------------------- */

void zkl_batch_collect(struct zkl_batch *batch)
{
    assert(!batch->collecting);
    batch->collecting = batch->remove.id == 0; /* else one by one: the last is still out */
    if (batch->collecting)
        batch->gone_count = 0;
}

bool zkl_batch_delete(struct zkl_contender *contender)
{
    struct zkl_batch *batch = contender->machine.lock_request.batch;
    if (!batch || !batch->collecting)
        return false;
    batch->gone[batch->gone_count++] = contender;
    return true;
}

void zkl_batch_delete_singly(struct zkl_core *core, struct zkl_batch *batch)
{
    for (size_t i = 0; i < batch->gone_count; i++) {
        if (batch->gone[i])
            zkl_core_send_delete(core, batch->gone[i]);
    }
    batch->gone_count = 0;
}

void zkl_batch_send_deletes(struct zkl_core *core, struct zkl_batch *batch)
{
    size_t room = ZKL_NODE_PATH_MAX + 1, n = batch->gone_count;
    if (!batch->collecting)
        return;
    batch->collecting = false;
    char(*paths)[ZKL_NODE_PATH_MAX + 1] = n > 1 ? malloc(n * room) : NULL;
    const char **list = n > 1 ? malloc(n * sizeof *list) : NULL;
    if (paths && list) {
        put_deletes(core, batch, paths);
        for (size_t i = 0; i < n; i++)
            list[i] = paths[i];
        struct zkl_request request = {.kind = ZKL_REQ_DELETE_ALL, .checks = list, .check_count = n};
        zkl_pending_send(core, &batch->remove, &request);
    } else {
        zkl_batch_delete_singly(core, batch);
    }
    free(paths);
    free(list);
}

/* --- a group commit ----------------------------------------------------- */

void zkl_batch_add(struct zkl_batch *batch, struct zkl_contender *contender, bool is_delete)
{
    if (is_delete)
        batch->gone[batch->gone_count++] = contender;
    else
        batch->made[batch->made_count++] = contender;
}

/* The member whose zxid a list may show comes first. */
static void put_calm_first(const struct zkl_core *core, const struct zkl_batch *batch)
{
    size_t i = 0;
    while (i < batch->made_count && !is_calm(core, batch->made[i]))
        i++;
    if (i == batch->made_count)
        return;
    struct zkl_contender *calm = batch->made[i];
    memmove(&batch->made[1], &batch->made[0], i * sizeof(struct zkl_contender *));
    batch->made[0] = calm;
}

void zkl_batch_send(struct zkl_core *core, struct zkl_batch *batch)
{
    batch->collecting = batch->made_count == 0;
    batch->deletes_along = batch->made_count > 0;
    if (batch->collecting) {
        zkl_batch_send_deletes(core, batch);
        return;
    }
    put_calm_first(core, batch);
    send_many(core, batch);
}
