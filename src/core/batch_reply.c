/* SPDX-License-Identifier: Apache-2.0
 *
 * Distributes the answer to a transaction to the members of the batch, each as if it had asked
 * alone: batch.h says what an answer proves, group_commit.h what follows from one of a group
 * commit. dispatch_reply.c calls this file, group.c and permits.c for creates that will not be
 * sent, and core.c for creates that wait to be grouped and will not be sent. */
#include <assert.h>

#include "group_commit.h"

#include "unlisted_grant.h"
#include "batch.h"
#include "feed.h"
#include "requests.h"

void zkl_batch_cancel_creates(struct zkl_core *core, struct zkl_batch *batch)
{
    if (zkl_batch_is_creating(batch))
        return; /* a member that asked since then is made and deleted */
    for (size_t i = batch->count; i-- > 0;) {
        struct zkl_contender *c = batch->members[i];
        if (!c->batch_wants_create || c->machine.state != ZKL_CONTENDER_LEAVING)
            continue;
        c->batch_wants_create = c->batch_wants_list = false;
        zkl_core_feed_answer(core, c, ZKL_EV_CREATED, ZKL_ANSWER_ROLLED_BACK); /* may end it */
    }
}

/* The members of a group commit have only the transaction in common. */
static void let_go(struct zkl_core *core, const struct zkl_batch *batch, struct zkl_contender *c)
{
    if (batch->is_group_commit)
        zkl_batch_detach(core, c);
}

static void feed_created(struct zkl_core *core, struct zkl_batch *batch, size_t i,
                         struct zkl_event event)
{
    struct zkl_contender *c = batch->made[i];
    assert(c); /* until its create is answered it stays */
    event.type = ZKL_EV_CREATED;
    batch->made[i] = NULL;
    c->batch_wants_create = c->batch_wants_list = false;
    let_go(core, batch, c);
    zkl_core_feed(core, c, event);
}

static void feed_deleted(struct zkl_core *core, struct zkl_batch *batch, size_t i,
                         const struct zkl_reply *reply)
{
    struct zkl_contender *c = batch->gone[i];
    batch->gone[i] = NULL;
    if (!c)
        return;
    if (reply->answer == ZKL_ANSWER_OK) {
        zkl_batch_count_own(c);
        zkl_unlisted_left(c);
    }
    let_go(core, batch, c);
    zkl_core_feed_reply(core, c, ZKL_EV_DELETED, reply);
}

/* The member's list was to follow and does not. The member counts on it too, and as the janitor's
 * it waits for it. */
static void feed_unsent_list(struct zkl_core *core, struct zkl_contender *c)
{
    zkl_core_feed_answer(core, c, ZKL_EV_LISTED, ZKL_ANSWER_LINK);
}

/* --- a group commit that failed ------------------------------------------ */

static void feed_not_created(struct zkl_core *core, struct zkl_contender *c)
{
    zkl_core_feed_answer(core, c, ZKL_EV_CREATED, ZKL_ANSWER_ROLLED_BACK);
}

/* The writes at its path are sent singly for a while. */
static void blame(const struct zkl_core *core, const struct zkl_batch *batch, size_t part)
{
    struct zkl_contender *c =
        part < batch->gone_count ? batch->gone[part] : batch->made[part - batch->gone_count];
    if (c)
        c->machine.lock_request.path->view.singly_until_mono_ns =
            core->now.mono_ns + ZKL_GROUP_COMMIT_SINGLY_MS * INT64_C(1000000);
}

/* In their order. A member that was stopped meanwhile has no use for a node. */
static void send_singly(struct zkl_core *core, struct zkl_batch *batch)
{
    size_t made = batch->made_count, gone = batch->gone_count;
    for (size_t i = 0; i < gone; i++) {
        struct zkl_contender *c = batch->gone[i];
        if (!c)
            continue;
        let_go(core, batch, c);
        zkl_core_send_delete(core, c);
    }
    for (size_t i = 0; i < made; i++) {
        struct zkl_contender *c = batch->made[i];
        let_go(core, batch, c);
        if (c->machine.state == ZKL_CONTENDER_LEAVING)
            feed_not_created(core, c);
        else
            zkl_core_send_create(core, c);
    }
}

/* False: whether the transaction was carried out is unknown. A transaction that was not even sent
 * says nothing about any part. */
static bool retry_singly(struct zkl_core *core, struct zkl_batch *batch,
                         const struct zkl_reply *reply)
{
    size_t parts = batch->gone_count + batch->made_count;
    bool named = reply->answer != ZKL_ANSWER_LINK && !reply->refused && reply->failed_check < parts;
    bool unknown = reply->answer == ZKL_ANSWER_LINK ||
                   (reply->answer == ZKL_ANSWER_OTHER && !named && !reply->refused);
    if (unknown)
        return false;
    if (named)
        blame(core, batch, reply->failed_check);
    send_singly(core, batch);
    return true;
}

void zkl_batch_cancel_held(struct zkl_core *core)
{
    bool is_up = zkl_core_connected(core);
    struct zkl_contender *next;
    for (struct zkl_contender *c = core->group_commit.first; c; c = next) {
        next = c->next_held;
        bool is_create = c->held == ZKL_HELD_CREATE;
        if (is_up && !(is_create && c->machine.state == ZKL_CONTENDER_LEAVING))
            continue;
        zkl_group_commit_forget(core, c);
        if (is_create)
            feed_not_created(core, c);
        else
            zkl_core_feed_answer(core, c, ZKL_EV_DELETED, ZKL_ANSWER_LINK);
    }
}

/* --- creates and deletes ------------------------------------------------- */

/* The transaction failed as a whole: the member to blame is notified of the reason, the others that
 * they must ask again. */
static void create_failed(struct zkl_core *core, struct zkl_batch *batch,
                          const struct zkl_reply *reply)
{
    bool blame_one = reply->answer != ZKL_ANSWER_LINK && !reply->refused &&
                     reply->failed_check < batch->made_count;
    if (batch->ahead)
        zkl_batch_forget_lists(core, batch);
    batch->ahead = false;
    if (batch->is_group_commit && retry_singly(core, batch, reply))
        return;
    for (size_t i = 0; batch->deletes_along && i < batch->gone_count; i++)
        feed_deleted(core, batch, i, reply);
    const struct zkl_reply rolled_back = {.answer = ZKL_ANSWER_ROLLED_BACK};
    for (size_t i = 0; i < batch->made_count; i++) {
        bool other = blame_one && i != reply->failed_check;
        if (batch->made[i]->machine.list_out)
            feed_unsent_list(core, batch->made[i]);
        feed_created(core, batch, i, (struct zkl_event){.reply = other ? &rolled_back : reply});
    }
}

static void on_created(struct zkl_core *core, struct zkl_batch *batch,
                       const struct zkl_reply *reply)
{
    if (reply->answer != ZKL_ANSWER_OK) {
        create_failed(core, batch, reply);
        return;
    }
    size_t first = batch->deletes_along ? batch->gone_count : 0;
    for (size_t i = 0; i < batch->made_count && first + i < reply->child_count; i++)
        zkl_text_copy(batch->names[i], sizeof batch->names[i], reply->children[first + i]);
    for (size_t i = 0; i < batch->made_count; i++)
        zkl_batch_count_own(batch->made[i]);
    batch->stat_member = 0;
    batch->named = true;
    if (!batch->ahead)
        zkl_batch_ask_for_zxid(core, batch);
    for (size_t i = 0; i < first; i++)
        feed_deleted(core, batch, i, reply);
}

static void all_created(struct zkl_core *core, struct zkl_batch *batch, int64_t zxid)
{
    for (size_t i = 0; i < batch->made_count; i++) {
        struct zkl_reply reply = {.answer = ZKL_ANSWER_OK, .name = batch->names[i], .czxid = zxid};
        struct zkl_event event = {.reply = &reply};
        zkl_unlisted_created(core, batch->made[i], batch->names[i], &event);
        /* else the node does not exist any more */
        event.first = event.first && i >= batch->stat_member;
        feed_created(core, batch, i, event);
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
    struct zkl_batch *batch = c->machine.lock_request.batch;
    bool known = c->batch_list_has_stat && reply->answer == ZKL_ANSWER_OK;
    if (known)
        zkl_batch_look_at(core, c, reply);
    bool waited = c->machine.list_out && !c->batch_list_for_view;
    if (!batch || !batch->ahead || !is_being_made(batch, c))
        return !waited && (batch || c->batch_list_for_view);
    batch->ahead = false;
    known = known && c->machine.lock_request.path->view.calm && batch->named;
    batch->refs++; /* members leave it */
    if (known) {
        all_created(core, batch, reply->pzxid);
    } else {
        zkl_batch_forget_lists(core, batch);
        /* else the list could not be sent, and the creates' answer is still to come */
        if (batch->named)
            zkl_batch_ask_for_zxid(core, batch);
    }
    zkl_batch_unref(core, batch);
    /* No member waited for it, or none does any more: a member that is not the first after all has
     * asked for another. */
    return !known || !waited || !c->machine.list_out;
}

static void on_zxid(struct zkl_core *core, struct zkl_batch *batch, const struct zkl_reply *reply)
{
    if (reply->answer == ZKL_ANSWER_NONODE && batch->stat_member + 1 < batch->made_count) {
        /* that node was deleted: query another one, with lists that show it */
        batch->stat_member++;
        zkl_batch_ask_for_zxid(core, batch);
        return;
    }
    if (reply->answer == ZKL_ANSWER_OK) {
        all_created(core, batch, reply->czxid);
        return;
    }
    bool known = reply->answer != ZKL_ANSWER_LINK; /* else each looks for its own */
    /* Of a group commit each member queries its own node: a node that may not be read concerns only
     * its own member. */
    bool failed = known && reply->answer != ZKL_ANSWER_NONODE && !batch->is_group_commit;
    for (size_t i = 0; i < batch->made_count; i++) {
        struct zkl_contender *c = batch->made[i];
        struct zkl_reply made = {.answer = known ? ZKL_ANSWER_OK : ZKL_ANSWER_LINK,
                                 .name = batch->names[i]};
        feed_created(core, batch, i, (struct zkl_event){.reply = &made});
        if (c && failed) /* its node is known, to be deleted */
            zkl_core_feed_stop(core, c, zkl_answer_code(reply->answer));
    }
}

static void on_deleted(struct zkl_core *core, struct zkl_batch *batch,
                       const struct zkl_reply *reply)
{
    bool all = reply->answer == ZKL_ANSWER_OK || reply->answer == ZKL_ANSWER_LINK;
    if (batch->is_group_commit && !all && retry_singly(core, batch, reply))
        return;
    /* A node is deleted, or its delete denied: that must not stop the others. */
    if (!all && !batch->is_group_commit) {
        zkl_batch_delete_singly(core, batch);
        return;
    }
    for (size_t i = 0; i < batch->gone_count; i++)
        feed_deleted(core, batch, i, reply);
}

void zkl_batch_answer(struct zkl_core *core, struct zkl_pending *slot,
                      const struct zkl_reply *reply)
{
    struct zkl_batch *batch = slot->owner;
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
