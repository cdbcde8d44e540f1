/* SPDX-License-Identifier: Apache-2.0
 *
 * Distributes the answer to a transaction to its contenders, each as if it had asked alone:
 * transaction.h says what an answer proves, group_commit.h what follows from one of a group commit.
 * dispatch_reply.c calls this file, and core.c for creates that wait to be grouped and will not be sent. */
#include "transaction.h"

#include <assert.h>

#include "feed.h"
#include "group_commit.h"
#include "unlisted_grant.h"

static void feed_created(struct zkl_core *core, struct zkl_transaction *t, size_t i,
                         struct zkl_event event)
{
    struct zkl_contender *c = t->made[i];
    assert(c); /* until its create is answered it stays */
    event.type = ZKL_EV_CREATED;
    c->wants_create = c->wants_list = false;
    zkl_transaction_leave(core, c);
    zkl_core_feed(core, c, event);
}

static void feed_deleted(struct zkl_core *core, struct zkl_transaction *t, size_t i,
                         const struct zkl_reply *reply)
{
    struct zkl_contender *c = t->gone[i];
    if (!c)
        return;
    if (reply->answer == ZKL_ANSWER_OK) {
        zkl_transaction_count_own(c);
        zkl_unlisted_left(c);
    }
    zkl_transaction_leave(core, c);
    zkl_core_feed_reply(core, c, ZKL_EV_DELETED, reply);
}

/* The member's list was to follow and does not. The member counts on it too, and as the janitor's
 * it waits for it. */
static void feed_unsent_list(struct zkl_core *core, struct zkl_contender *c)
{
    zkl_core_feed_answer(core, c, ZKL_EV_LISTED, ZKL_ANSWER_LINK);
}

/* --- a transaction that failed ------------------------------------------ */

static void feed_not_created(struct zkl_core *core, struct zkl_contender *c)
{
    zkl_core_feed_answer(core, c, ZKL_EV_CREATED, ZKL_ANSWER_ROLLED_BACK);
}

/* The part that the answer names: the writes at its path are sent singly for a while. False: it
 * names none. A transaction that was not even sent says nothing about any part. */
static bool blame(const struct zkl_core *core, const struct zkl_transaction *t,
                  const struct zkl_reply *reply)
{
    size_t part = reply->failed_check, first = t->gone_count;
    if (reply->refused || part >= first + t->made_count)
        return false;
    struct zkl_contender *c = part < first ? t->gone[part] : t->made[part - first];
    if (c)
        c->machine.lock_request.path->view.singly_until_mono_ns =
            core->now.mono_ns + ZKL_GROUP_COMMIT_SINGLY_MS * INT64_C(1000000);
    return true;
}

/* A contender that was stopped meanwhile has no use for a node. */
static void create_singly(struct zkl_core *core, struct zkl_transaction *t)
{
    for (size_t i = 0; i < t->made_count; i++) {
        struct zkl_contender *c = t->made[i];
        zkl_transaction_leave(core, c);
        if (c->machine.state == ZKL_CONTENDER_LEAVING)
            feed_not_created(core, c);
        else
            zkl_core_send_create(core, c);
    }
}

/* False: whether the transaction was carried out is unknown. */
static bool retry_singly(struct zkl_core *core, struct zkl_transaction *t,
                         const struct zkl_reply *reply)
{
    if (reply->answer == ZKL_ANSWER_LINK)
        return false;
    bool named = blame(core, t, reply);
    if (reply->answer == ZKL_ANSWER_OTHER && !named && !reply->refused)
        return false;
    zkl_transaction_delete_singly(core, t);
    create_singly(core, t);
    return true;
}

void zkl_transaction_cancel_held(struct zkl_core *core)
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

/* Its contenders ask again, all together. */
static bool is_of_a_bundle(const struct zkl_transaction *t)
{
    return t->made[0]->machine.lock_request.together;
}

/* The transaction failed as a whole: the member to blame is notified of the reason, the others that
 * they must ask again. */
static void create_failed(struct zkl_core *core, struct zkl_transaction *t,
                          const struct zkl_reply *reply)
{
    bool blame_one =
        reply->answer != ZKL_ANSWER_LINK && !reply->refused && reply->failed_check < t->made_count;
    if (t->ahead)
        zkl_transaction_forget_lists(core, t);
    t->ahead = false;
    if (!is_of_a_bundle(t) && retry_singly(core, t, reply))
        return;
    for (size_t i = 0; i < t->gone_count; i++)
        feed_deleted(core, t, i, reply);
    const struct zkl_reply rolled_back = {.answer = ZKL_ANSWER_ROLLED_BACK};
    for (size_t i = 0; i < t->made_count; i++) {
        bool other = blame_one && i != reply->failed_check;
        if (t->made[i]->machine.list_out)
            feed_unsent_list(core, t->made[i]);
        feed_created(core, t, i, (struct zkl_event){.reply = other ? &rolled_back : reply});
    }
}

static void on_created(struct zkl_core *core, struct zkl_transaction *t,
                       const struct zkl_reply *reply)
{
    if (reply->answer != ZKL_ANSWER_OK) {
        create_failed(core, t, reply);
        return;
    }
    size_t first = t->gone_count;
    for (size_t i = 0; i < t->made_count && first + i < reply->child_count; i++)
        zkl_text_copy(t->names[i], sizeof t->names[i], reply->children[first + i]);
    for (size_t i = 0; i < t->made_count; i++)
        zkl_transaction_count_own(t->made[i]);
    t->named = true;
    if (!t->ahead)
        zkl_transaction_ask_for_zxid(core, t);
    for (size_t i = 0; i < first; i++)
        feed_deleted(core, t, i, reply);
}

static void all_created(struct zkl_core *core, struct zkl_transaction *t, int64_t zxid)
{
    for (size_t i = 0; i < t->made_count; i++) {
        struct zkl_reply reply = {.answer = ZKL_ANSWER_OK, .name = t->names[i], .czxid = zxid};
        struct zkl_event event = {.reply = &reply};
        zkl_unlisted_created(core, t->made[i], t->names[i], &event);
        /* else the node does not exist any more */
        event.first = event.first && i >= t->stat_part;
        feed_created(core, t, i, event);
    }
}

bool zkl_transaction_listed(struct zkl_core *core, struct zkl_contender *c,
                            const struct zkl_reply *reply)
{
    struct zkl_transaction *t = c->transaction;
    bool known = c->list_has_stat && reply->answer == ZKL_ANSWER_OK;
    if (known)
        zkl_transaction_look_at(core, c, reply);
    bool waited = c->machine.list_out && !c->list_for_view;
    if (!t || !t->ahead || !c->machine.create_out)
        return !waited && (zkl_contender_is_together(c) || c->list_for_view);
    t->ahead = false;
    known = known && c->machine.lock_request.path->view.calm && t->named;
    t->refs++; /* the contenders leave it */
    if (known) {
        all_created(core, t, reply->pzxid);
    } else {
        zkl_transaction_forget_lists(core, t);
        /* else the list could not be sent, and the creates' answer is still to come */
        if (t->named)
            zkl_transaction_ask_for_zxid(core, t);
    }
    zkl_transaction_unref(core, t);
    /* No contender waited for it, or none does any more: one that is not the first after all
     * has asked for another. */
    return !known || !waited || !c->machine.list_out;
}

static void on_zxid(struct zkl_core *core, struct zkl_transaction *t, const struct zkl_reply *reply)
{
    if (reply->answer == ZKL_ANSWER_NONODE && t->stat_part + 1 < t->made_count) {
        /* that node was deleted: query another one, with lists that show it */
        t->stat_part++;
        zkl_transaction_ask_for_zxid(core, t);
        return;
    }
    if (reply->answer == ZKL_ANSWER_OK) {
        all_created(core, t, reply->czxid);
        return;
    }
    bool known = reply->answer != ZKL_ANSWER_LINK; /* else each looks for its own */
    /* Of a group commit each member queries its own node: a node that may not be read concerns only
     * its own member. */
    bool failed = known && reply->answer != ZKL_ANSWER_NONODE && is_of_a_bundle(t);
    for (size_t i = 0; i < t->made_count; i++) {
        struct zkl_contender *c = t->made[i];
        struct zkl_reply made = {.answer = known ? ZKL_ANSWER_OK : ZKL_ANSWER_LINK,
                                 .name = t->names[i]};
        feed_created(core, t, i, (struct zkl_event){.reply = &made});
        if (c && failed) /* its node is known, to be deleted */
            zkl_core_feed_stop(core, c, zkl_answer_code(reply->answer));
    }
}

/* A node is deleted, or its delete denied: that must not stop the others. */
static void on_deleted(struct zkl_core *core, struct zkl_transaction *t,
                       const struct zkl_reply *reply)
{
    bool all = reply->answer == ZKL_ANSWER_OK || reply->answer == ZKL_ANSWER_LINK;
    if (!all && retry_singly(core, t, reply))
        return;
    for (size_t i = 0; i < t->gone_count; i++)
        feed_deleted(core, t, i, reply);
}

void zkl_transaction_answer(struct zkl_core *core, struct zkl_pending *slot,
                            const struct zkl_reply *reply)
{
    struct zkl_transaction *t = slot->owner;
    t->refs++; /* the last contender may leave it in here */
    if (slot == &t->stat)
        on_zxid(core, t, reply);
    else if (t->made_count > 0)
        on_created(core, t, reply);
    else
        on_deleted(core, t, reply);
    zkl_transaction_unref(core, t);
}
