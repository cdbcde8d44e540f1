/* SPDX-License-Identifier: Apache-2.0 */
#include "batch.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "alone.h"
#include "feed.h"
#include "pending.h"
#include "share.h"

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
    batch->create.batch = batch->stat.batch = batch->remove.batch = batch;
    return batch;
}

void zkl_batch_unref(struct zkl_core *core, struct zkl_batch *batch)
{
    if (--batch->refs > 0)
        return;
    struct zkl_batch **at = &core->due_batches;
    while (*at && *at != batch)
        at = &(*at)->next_due;
    if (*at)
        *at = batch->next_due;
    zkl_pending_forget(core, &batch->create);
    zkl_pending_forget(core, &batch->stat);
    zkl_pending_forget(core, &batch->remove);
    free(batch);
}

static void forget_wishes(struct zkl_contender *c)
{
    c->wants_create = c->wants_list = false;
}

void zkl_batch_attach(struct zkl_batch *batch, struct zkl_contender *contender)
{
    assert(batch->count < batch->size && !contender->batch);
    contender->batch = batch;
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
    struct zkl_batch *batch = contender->batch;
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
    contender->batch = NULL;
    zkl_batch_unref(core, batch);
}

void zkl_batch_touch(struct zkl_core *core, struct zkl_batch *batch)
{
    if (batch->due)
        return;
    batch->due = true;
    batch->next_due = core->due_batches;
    core->due_batches = batch;
}

void zkl_batch_reset(struct zkl_batch *batch)
{
    for (size_t i = 0; i < batch->count; i++)
        forget_wishes(batch->members[i]);
    batch->made_count = batch->gone_count = 0;
    batch->ahead = false;
}

/* --- which transaction it was ------------------------------------------- */

/* Nobody else changes a path's children, it seems, so that the list behind our nodes will tell the zxid
 * they were made with, which they share. */
static bool is_calm(const struct zkl_core *core, const struct zkl_contender *c)
{
    return c->view && c->view->calm && c->view->link == core->link;
}

static void count_own(struct zkl_contender *c)
{
    if (c->view)
        c->view->own++;
}

/* The children's changes are counted by the server: if those since the last look are as many as this
 * client's own, of which the making of our node was the last, then nothing came after that, and the
 * transaction that changed them last is ours. */
static bool is_last_change_ours(const struct zkl_core *core, const struct zkl_contender *c,
                                const struct zkl_reply *reply)
{
    const struct zkl_children_view *view = c->view;
    return view->link == core->link && view->czxid == reply->czxid &&
           (uint32_t)view->cversion + view->own == (uint32_t)reply->cversion; /* both wrap round */
}

static void look_at(const struct zkl_core *core, struct zkl_contender *c,
                    const struct zkl_reply *reply)
{
    *c->view = (struct zkl_children_view){.link = core->link,
                                          .czxid = reply->czxid,
                                          .cversion = reply->cversion,
                                          .calm = is_last_change_ours(core, c, reply)};
}

/* --- creating ----------------------------------------------------------- */

bool zkl_batch_create(struct zkl_core *core, struct zkl_contender *contender)
{
    if (!contender->batch)
        return false;
    contender->wants_create = true;
    zkl_batch_touch(core, contender->batch);
    return true;
}

bool zkl_batch_list(struct zkl_contender *contender)
{
    contender->wants_list = contender->wants_create;
    return contender->wants_create;
}

/* Will this member ask for its create without anything but the server's answers? */
static bool is_coming(const struct zkl_contender *c)
{
    enum zkl_contender_state state = c->machine.state;
    return state == ZKL_NEW || state == ZKL_PARKED || state == ZKL_LOOKING || state == ZKL_MAKING;
}

/* Some nodes may have been made, and an answer tells. */
static bool is_creating(const struct zkl_batch *batch)
{
    return batch->create.id != 0 || batch->stat.id != 0 || batch->ahead;
}

static bool creates_are_due(const struct zkl_batch *batch)
{
    size_t wanted = 0;
    if (is_creating(batch))
        return false;
    for (size_t i = 0; i < batch->count; i++) {
        if (is_coming(batch->members[i]))
            return false;
        wanted += batch->members[i]->wants_create;
    }
    return wanted > 0;
}

/* A single one is made as if there were no batch: that answers the zxid as well. */
static void send_one(struct zkl_core *core, struct zkl_contender *c)
{
    c->wants_create = false;
    zkl_core_send_create(core, c);
    if (c->wants_list)
        zkl_core_send_list(core, c);
    c->wants_list = false;
}

/* The member before the ith one that sends, and waits for, a list of the same root, or NULL. */
static struct zkl_contender *list_owner(const struct zkl_batch *batch, size_t i)
{
    const char *root = batch->made[i]->machine.root;
    for (size_t j = 0; j < i; j++) {
        struct zkl_contender *c = batch->made[j];
        if (c->wants_list && !c->shares_list && strcmp(c->machine.root, root) == 0)
            return c;
    }
    return NULL;
}

/* One for each root where a list is waited for; of the first one's also to see how calm it is. */
static void send_lists(struct zkl_core *core, struct zkl_batch *batch)
{
    for (size_t i = 0; i < batch->made_count; i++) {
        struct zkl_contender *c = batch->made[i];
        assert(c);
        if (!c->wants_list && !(i == 0 && c->view))
            continue;
        struct zkl_contender *owner = list_owner(batch, i);
        if (owner)
            zkl_share_join(owner, c);
        else
            zkl_core_send_list(core, c);
        c->looks_only = !c->wants_list;
    }
}

/* Without another list: those who share one first. */
static void forget_lists(struct zkl_core *core, struct zkl_batch *batch)
{
    for (size_t i = batch->made_count; i-- > 0;) {
        zkl_pending_forget(core, &batch->made[i]->slots[ZKL_SLOT_LIST]);
        zkl_share_leave(core, batch->made[i]);
    }
}

static void send_many(struct zkl_core *core, struct zkl_batch *batch)
{
    size_t room = ZKL_NODE_PATH_MAX + 1, n = batch->made_count;
    char(*paths)[ZKL_NODE_PATH_MAX + 1] = malloc(n * room);
    const char **list = malloc(2 * n * sizeof *list);
    if (paths && list) {
        for (size_t i = 0; i < n; i++) {
            zkl_core_new_name(core, batch->made[i], paths[i]);
            list[i] = paths[i];
            list[n + i] = batch->made[i]->data;
        }
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
        if (batch->members[i]->wants_create)
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

void zkl_batch_cancel_creates(struct zkl_core *core, struct zkl_batch *batch)
{
    if (is_creating(batch))
        return; /* who asked since is made and deleted */
    for (size_t i = batch->count; i-- > 0;) {
        struct zkl_contender *c = batch->members[i];
        if (!c->wants_create || c->machine.state != ZKL_LEAVING)
            continue;
        c->wants_create = c->wants_list = false;
        zkl_core_feed(core, c,
                      (struct zkl_event){.type = ZKL_EV_CREATED, /* may end it */
                                         .answer = ZKL_ANSWER_ROLLED_BACK});
    }
}

static void feed_created(struct zkl_core *core, struct zkl_batch *batch, size_t i,
                         struct zkl_event event)
{
    struct zkl_contender *c = batch->made[i];
    assert(c); /* until its create is answered it stays */
    event.type = ZKL_EV_CREATED;
    batch->made[i] = NULL;
    c->wants_create = c->wants_list = false;
    zkl_core_feed(core, c, event);
}

/* Its list was to follow and does not: it counts on that, too, and as the janitor's waits for it. */
static void feed_unsent_list(struct zkl_core *core, struct zkl_contender *c)
{
    zkl_core_feed(core, c, (struct zkl_event){.type = ZKL_EV_LISTED, .answer = ZKL_ANSWER_LINK});
}

/* The transaction failed as a whole: the one to blame hears why, the others that they are to ask
 * again. */
static void create_failed(struct zkl_core *core, struct zkl_batch *batch,
                          const struct zkl_reply *reply)
{
    bool blame_one = reply->answer != ZKL_ANSWER_LINK && reply->answer != ZKL_ANSWER_NOMEM &&
                     reply->failed_check < batch->made_count;
    if (batch->ahead)
        forget_lists(core, batch);
    batch->ahead = false;
    for (size_t i = 0; i < batch->made_count; i++) {
        bool other = blame_one && i != reply->failed_check;
        if (batch->made[i]->machine.list_out)
            feed_unsent_list(core, batch->made[i]);
        feed_created(core, batch, i,
                     (struct zkl_event){.answer = other ? ZKL_ANSWER_ROLLED_BACK : reply->answer,
                                        .number = other ? 0 : reply->number});
    }
}

/* The answer names the nodes but not their zxid, which they all share: one of them is asked. The
 * lists, one for each root, go along. */
static void ask_for_zxid(struct zkl_core *core, struct zkl_batch *batch)
{
    char path[ZKL_NODE_PATH_MAX + 1];
    zkl_core_node_path(batch->made[batch->stat_member], batch->names[batch->stat_member], path);
    struct zkl_request request = {.kind = ZKL_REQ_STAT, .path = path};
    zkl_pending_send(core, &batch->stat, &request);
    send_lists(core, batch);
}

static void on_created(struct zkl_core *core, struct zkl_batch *batch,
                       const struct zkl_reply *reply)
{
    if (reply->answer != ZKL_ANSWER_OK) {
        create_failed(core, batch, reply);
        return;
    }
    for (size_t i = 0; i < batch->made_count && i < reply->child_count; i++)
        zkl_text_copy(batch->names[i], sizeof batch->names[i], reply->children[i]);
    for (size_t i = 0; i < batch->made_count; i++)
        count_own(batch->made[i]);
    batch->stat_member = 0;
    batch->named = true;
    if (!batch->ahead)
        ask_for_zxid(core, batch);
}

static void all_created(struct zkl_core *core, struct zkl_batch *batch, int64_t zxid)
{
    for (size_t i = 0; i < batch->made_count; i++) {
        bool next = zkl_alone_created(core, batch->made[i], batch->names[i]);
        bool gone = i < batch->stat_member;
        feed_created(core, batch, i,
                     (struct zkl_event){.answer = ZKL_ANSWER_OK,
                                        .name = batch->names[i],
                                        .czxid = zxid,
                                        .first = next && !gone});
    }
}

/* Its create is among those that are out. */
static bool is_being_made(const struct zkl_batch *batch, const struct zkl_contender *c)
{
    for (size_t i = 0; i < batch->made_count; i++) {
        if (batch->made[i] == c)
            return true;
    }
    return false;
}

bool zkl_batch_listed(struct zkl_core *core, struct zkl_contender *c, const struct zkl_reply *reply)
{
    struct zkl_batch *batch = c->batch;
    bool known = c->view && reply->answer == ZKL_ANSWER_OK;
    if (known)
        look_at(core, c, reply);
    bool waited = c->machine.list_out && !c->looks_only;
    if (!batch || !batch->ahead || !is_being_made(batch, c))
        return batch && !waited;
    batch->ahead = false;
    known = known && c->view->calm && batch->named;
    if (known) {
        all_created(core, batch, reply->pzxid);
    } else {
        forget_lists(core, batch);
        if (batch->named) /* else the list could not be sent, and the creates' answer is to come */
            ask_for_zxid(core, batch);
    }
    /* Nobody waited for it, or nobody does any more: who is not the first after all has asked for another. */
    return !known || !waited || !c->machine.list_out;
}

static void on_zxid(struct zkl_core *core, struct zkl_batch *batch, const struct zkl_reply *reply)
{
    if (reply->answer == ZKL_ANSWER_NONODE && batch->stat_member + 1 < batch->made_count) {
        batch->stat_member++; /* somebody deleted that one: another, and lists that show it */
        ask_for_zxid(core, batch);
        return;
    }
    if (reply->answer == ZKL_ANSWER_OK) {
        all_created(core, batch, reply->czxid);
        return;
    }
    bool known = reply->answer != ZKL_ANSWER_LINK; /* else each looks for its own */
    bool failed = known && reply->answer != ZKL_ANSWER_NONODE;
    for (size_t i = 0; i < batch->made_count; i++) {
        struct zkl_contender *c = batch->made[i];
        feed_created(core, batch, i,
                     (struct zkl_event){.answer = known ? ZKL_ANSWER_OK : ZKL_ANSWER_LINK,
                                        .name = batch->names[i],
                                        .czxid = reply->czxid});
        if (c && failed) /* its node is known, to be deleted */
            zkl_core_feed_stop(core, c, zkl_answer_code(reply->answer));
    }
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
    struct zkl_batch *batch = contender->batch;
    if (!batch || !batch->collecting)
        return false;
    batch->gone[batch->gone_count++] = contender;
    return true;
}

static void delete_singly(struct zkl_core *core, struct zkl_batch *batch)
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
        for (size_t i = 0; i < n; i++) {
            zkl_core_node_path(batch->gone[i], batch->gone[i]->machine.node, paths[i]);
            list[i] = paths[i];
            zkl_alone_leaves(core, batch->gone[i]);
        }
        struct zkl_request request = {.kind = ZKL_REQ_DELETE_ALL, .checks = list, .check_count = n};
        zkl_pending_send(core, &batch->remove, &request);
    } else {
        delete_singly(core, batch);
    }
    free(paths);
    free(list);
}

static void on_deleted(struct zkl_core *core, struct zkl_batch *batch,
                       const struct zkl_reply *reply)
{
    bool all = reply->answer == ZKL_ANSWER_OK || reply->answer == ZKL_ANSWER_LINK;
    if (!all) { /* one of them is gone, or denied: that must not keep the others */
        delete_singly(core, batch);
        return;
    }
    for (size_t i = 0; i < batch->gone_count; i++) {
        struct zkl_contender *c = batch->gone[i];
        batch->gone[i] = NULL;
        if (c && reply->answer == ZKL_ANSWER_OK) {
            count_own(c);
            zkl_alone_left(c);
        }
        if (c)
            zkl_core_feed(core, c,
                          (struct zkl_event){.type = ZKL_EV_DELETED, .answer = reply->answer});
    }
}

void zkl_batch_answer(struct zkl_core *core, struct zkl_pending *slot,
                      const struct zkl_reply *reply)
{
    struct zkl_batch *batch = slot->batch;
    batch->refs++; /* the last member may end in here */
    if (slot == &batch->create)
        on_created(core, batch, reply);
    else if (slot == &batch->stat)
        on_zxid(core, batch, reply);
    else
        on_deleted(core, batch, reply);
    zkl_batch_touch(core, batch);
    zkl_batch_unref(core, batch);
}
