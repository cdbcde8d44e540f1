/* SPDX-License-Identifier: Apache-2.0
 *
 * Fills and sends transactions, and finds out a sent one's zxid: transaction.h says why so. bundle.c
 * and group_commit.c fill them with creates, feed.c with the deletes that bundle.c collects.
 * transaction_reply.c distributes the server's answers. */
#include "transaction.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "list_coalescing.h"
#include "unlisted_grant.h"

/* --- who is in it --------------------------------------------------------- */

struct zkl_transaction *zkl_transaction_new(size_t size)
{
    size_t list = size * sizeof(struct zkl_contender *);
    struct zkl_transaction *t = calloc(1, sizeof *t + 2 * list + size * sizeof *t->names);
    if (!t)
        return NULL;
    t->refs = 1;
    t->size = size;
    t->gone = (struct zkl_contender **)(t + 1);
    t->made = t->gone + size;
    t->names = (void *)(t->made + size);
    t->write = t->stat = (struct zkl_pending){.awaiter = ZKL_AWAITER_TRANSACTION, .owner = t};
    return t;
}

void zkl_transaction_unref(struct zkl_core *core, struct zkl_transaction *t)
{
    if (--t->refs > 0)
        return;
    zkl_pending_forget(core, &t->write);
    zkl_pending_forget(core, &t->stat);
    free(t);
}

void zkl_transaction_add(struct zkl_transaction *t, struct zkl_contender *c,
                         enum zkl_held_write what)
{
    assert(!c->transaction);
    c->transaction = t;
    t->refs++;
    if (what == ZKL_HELD_DELETE)
        t->gone[t->gone_count++] = c;
    else
        t->made[t->made_count++] = c;
}

/* Its place stays empty: others are known by theirs. */
static void forget_in(struct zkl_contender **list, size_t count, const struct zkl_contender *c)
{
    for (size_t i = 0; i < count; i++) {
        if (list[i] == c)
            list[i] = NULL;
    }
}

void zkl_transaction_leave(struct zkl_core *core, struct zkl_contender *c)
{
    struct zkl_transaction *t = c->transaction;
    if (!t)
        return;
    forget_in(t->made, t->made_count, c);
    forget_in(t->gone, t->gone_count, c);
    c->transaction = NULL;
    zkl_transaction_unref(core, t);
}

/* --- which transaction it was ------------------------------------------- */

/* Apparently no other client changes this path's children: a list behind our nodes will do. */
static bool is_calm(const struct zkl_core *core, const struct zkl_contender *c)
{
    return c->machine.lock_request.views && c->machine.lock_request.path->view.calm &&
           c->machine.lock_request.path->view.link == core->link;
}

void zkl_transaction_put_calm_first(const struct zkl_core *core, const struct zkl_transaction *t)
{
    size_t i = 0;
    while (i < t->made_count && !is_calm(core, t->made[i]))
        i++;
    if (i == t->made_count)
        return;
    struct zkl_contender *calm = t->made[i];
    memmove(&t->made[1], &t->made[0], i * sizeof(struct zkl_contender *));
    t->made[0] = calm;
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

void zkl_transaction_look_at(const struct zkl_core *core, struct zkl_contender *c,
                             const struct zkl_reply *reply)
{
    c->machine.lock_request.path->view = (struct zkl_children_view){
        .link = core->link,
        .czxid = reply->czxid,
        .cversion = reply->cversion,
        .calm = is_last_change_ours(core, c, reply),
        .singly_until_mono_ns = c->machine.lock_request.path->view.singly_until_mono_ns};
}

/* --- the lists that are sent along ------------------------------------------ */

/* The contender before the ith one that sends, and waits for, a list of the same path, or NULL. */
static struct zkl_contender *list_owner(const struct zkl_transaction *t, size_t i)
{
    const struct zkl_path *path = t->made[i]->machine.lock_request.path;
    for (size_t j = 0; j < i; j++) {
        struct zkl_contender *c = t->made[j];
        if (c->wants_list && !c->shares_list && c->machine.lock_request.path == path)
            return c;
    }
    return NULL;
}

/* One for each path where a list is waited for; of the first one's also to see how calm it is. */
static void send_lists(struct zkl_core *core, struct zkl_transaction *t)
{
    for (size_t i = 0; i < t->made_count; i++) {
        struct zkl_contender *c = t->made[i];
        assert(c);
        if (!c->wants_list && !(i == 0 && c->machine.lock_request.views))
            continue;
        struct zkl_contender *owner = list_owner(t, i);
        if (owner)
            zkl_shared_list_join(owner, c);
        else
            zkl_core_send_list(core, c);
        c->list_for_view = !c->wants_list;
    }
}

/* Without another list: those who share one first. */
void zkl_transaction_forget_lists(struct zkl_core *core, struct zkl_transaction *t)
{
    for (size_t i = t->made_count; i-- > 0;) {
        zkl_pending_forget(core, &t->made[i]->slots[ZKL_SLOT_LIST]);
        zkl_shared_list_leave(core, t->made[i]);
    }
}

/* The answer names the nodes but not their zxid, which they all share: query one of them. The
 * lists, one for each lock path, are sent along. */
void zkl_transaction_ask_for_zxid(struct zkl_core *core, struct zkl_transaction *t)
{
    char path[ZKL_NODE_PATH_MAX + 1];
    zkl_core_node_path(t->made[t->stat_part], t->names[t->stat_part], path);
    struct zkl_request request = {.kind = ZKL_REQ_STAT, .path = path};
    zkl_pending_send(core, &t->stat, &request);
    send_lists(core, t);
}

/* --- sending -------------------------------------------------------------- */

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

static enum zkl_request_kind kind_of(const struct zkl_transaction *t)
{
    return t->made_count > 0 ? ZKL_REQ_CREATE_ALL : ZKL_REQ_DELETE_ALL;
}

/* list: the paths of all parts, and behind them the data of each create. */
static void send_parts(struct zkl_core *core, struct zkl_transaction *t,
                       char (*paths)[ZKL_NODE_PATH_MAX + 1], const char **list)
{
    size_t first = t->gone_count, n = first + t->made_count;
    for (size_t i = 0; i < first; i++) {
        zkl_core_node_path(t->gone[i], t->gone[i]->machine.node, paths[i]);
        leaves(core, t->gone[i]);
    }
    for (size_t i = first; i < n; i++) {
        zkl_core_new_name(core, t->made[i - first], paths[i]);
        list[n + i] = t->made[i - first]->machine.lock_request.data;
    }
    for (size_t i = 0; i < n; i++)
        list[i] = paths[i];
    struct zkl_request request = {
        .kind = kind_of(t), .checks = list, .check_count = n, .texts = list + n};
    zkl_pending_send(core, &t->write, &request);
    t->ahead = t->made_count > 0 && is_calm(core, t->made[0]);
    if (t->ahead)
        send_lists(core, t);
}

void zkl_transaction_send(struct zkl_core *core, struct zkl_transaction *t)
{
    size_t n = t->gone_count + t->made_count;
    const char **list = calloc(n, 2 * sizeof *list + ZKL_NODE_PATH_MAX + 1);
    if (list)
        send_parts(core, t, (void *)(list + 2 * n), list);
    else
        zkl_pending_refuse(core, &t->write, kind_of(t), ZKL_ANSWER_NOMEM);
    free(list);
    zkl_transaction_unref(core, t);
}

/* --- deletes of several at once ------------------------------------------- */

void zkl_transaction_collect_deletes(struct zkl_core *core, size_t size)
{
    assert(!core->collecting);
    core->collecting = size > 1 ? zkl_transaction_new(size) : NULL;
}

bool zkl_transaction_takes_delete(struct zkl_core *core, struct zkl_contender *c)
{
    struct zkl_transaction *t = core->collecting;
    if (!t || t->gone_count == t->size)
        return false;
    zkl_transaction_add(t, c, ZKL_HELD_DELETE);
    return true;
}

void zkl_transaction_delete_singly(struct zkl_core *core, struct zkl_transaction *t)
{
    for (size_t i = 0; i < t->gone_count; i++) {
        struct zkl_contender *c = t->gone[i];
        if (!c)
            continue;
        zkl_transaction_leave(core, c);
        zkl_core_send_delete(core, c);
    }
}

void zkl_transaction_send_deletes(struct zkl_core *core)
{
    struct zkl_transaction *t = core->collecting;
    if (!t)
        return;
    core->collecting = NULL;
    if (t->gone_count > 1) {
        zkl_transaction_send(core, t);
    } else {
        zkl_transaction_delete_singly(core, t);
        zkl_transaction_unref(core, t);
    }
}
