/* SPDX-License-Identifier: Apache-2.0
 *
 * Nodes of this client that belong to no place of it: which those may be, and when they are looked
 * for and deleted. leftovers.h has the argument. The entries are a list, oldest first, and one
 * request of this file is out at a time: a delete of what is known by name, or else a barrier and a
 * list of the path that has waited longest. With the client's mutex. feed.c and core.c bring
 * entries, dispatch_reply.c lists and answers, link.c and timers.c say when to go on. */
#include "leftovers.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "requests.h"

#define MS INT64_C(1000000)

static void go_on(struct zkl_core *core);

/* --- the list ------------------------------------------------------------- */

static void plan(struct zkl_core *core)
{
    core->leftovers.due_mono_ns = INT64_MAX;
    for (const struct zkl_leftover *l = core->leftovers.first; l; l = l->next) {
        if (!l->is_out && l->due_mono_ns < core->leftovers.due_mono_ns)
            core->leftovers.due_mono_ns = l->due_mono_ns;
    }
}

/* It is not the session's, or not any more. */
static void give_back(struct zkl_core *core, struct zkl_leftover *l)
{
    core->ephemeral_bytes -= l->bytes;
    l->bytes = 0;
}

static void drop_where(struct zkl_core *core,
                       bool (*where)(const struct zkl_core *core, const struct zkl_leftover *l))
{
    struct zkl_leftover **at = &core->leftovers.first;
    core->leftovers.last = NULL;
    while (*at) {
        struct zkl_leftover *l = *at;
        if (where(core, l)) {
            *at = l->next;
            core->leftovers.count--;
            give_back(core, l);
            free(l);
        } else {
            core->leftovers.last = l;
            at = &l->next;
        }
    }
}

static bool is_over(const struct zkl_core *core, const struct zkl_leftover *l)
{
    return !l->is_out && l->until_mono_ns <= core->now.mono_ns;
}

static bool is_oldest(const struct zkl_core *core, const struct zkl_leftover *l)
{
    return l == core->leftovers.first && !l->is_out;
}

static bool is_any(const struct zkl_core *core, const struct zkl_leftover *l)
{
    (void)core;
    (void)l;
    return true;
}

void zkl_leftovers_clear(struct zkl_core *core)
{
    drop_where(core, is_any);
    plan(core);
}

static void make_room(struct zkl_core *core)
{
    drop_where(core, is_over);
    if (core->leftovers.count >= ZKL_LEFTOVERS_MAX)
        drop_where(core, is_oldest);
}

/* Without memory it is not kept: as if it came too late. */
static struct zkl_leftover *add(struct zkl_core *core, const struct zkl_contender *c)
{
    const struct zkl_contender_machine *m = &c->machine;
    make_room(core);
    struct zkl_leftover *l = malloc(sizeof *l + m->lock_request.path->length + 1);
    if (!l)
        return NULL;
    *l = (struct zkl_leftover){.due_mono_ns = INT64_MAX,
                               .until_mono_ns = INT64_MAX,
                               .path_hash = zkl_text_hash(m->lock_request.path->text),
                               .is_named = m->on_server};
    if (m->on_server)
        zkl_text_copy(l->name, sizeof l->name, m->node);
    else
        zkl_name_prefix(&m->lock_request.naming, m->guid, l->name);
    memcpy(l->path, m->lock_request.path->text, m->lock_request.path->length + 1);
    *(core->leftovers.last ? &core->leftovers.last->next : &core->leftovers.first) = l;
    core->leftovers.last = l;
    core->leftovers.count++;
    return l;
}

/* --- what is kept --------------------------------------------------------- */

void zkl_leftovers_expect(struct zkl_core *core, const struct zkl_contender *c)
{
    struct zkl_leftover *l = add(core, c);
    if (l) {
        l->due_mono_ns = core->now.mono_ns + zkl_session_timeout_ns(&core->session);
        l->bytes = c->node_bytes;
        core->ephemeral_bytes += l->bytes;
    }
    plan(core);
}

/* The owner of a hold may count on the window that it was told. */
static int64_t deferred_until(const struct zkl_core *core, const struct zkl_contender *c,
                              int64_t window_end_boot)
{
    bool counts = c->machine.state == ZKL_CONTENDER_HOLDING && window_end_boot > core->now.boot_ns;
    return counts ? zkl_time_mono(core->now, window_end_boot) : core->now.mono_ns;
}

void zkl_leftovers_inherit(struct zkl_core *core, int64_t window_end_boot, int64_t timeout_ns)
{
    int64_t until_mono_ns = core->now.mono_ns + 2 * timeout_ns;
    for (struct zkl_leftover *l = core->leftovers.first; l; l = l->next) {
        l->is_out = false;
        give_back(core, l);
        if (l->until_mono_ns == INT64_MAX) {
            l->until_mono_ns = until_mono_ns;
            l->due_mono_ns = l->is_named ? core->now.mono_ns : INT64_MAX;
        }
    }
    for (const struct zkl_contender *c = core->first; c; c = c->next) {
        const struct zkl_contender_machine *m = &c->machine;
        if (!m->on_server && !m->maybe_on_server && !m->create_out)
            continue;
        struct zkl_leftover *l = m->guid[0] ? add(core, c) : NULL;
        if (l)
            l->until_mono_ns = until_mono_ns;
        if (l && l->is_named)
            l->due_mono_ns = deferred_until(core, c, window_end_boot);
    }
    plan(core);
}

/* --- what lists show ------------------------------------------------------- */

void zkl_leftovers_listed(struct zkl_core *core, const char *path, const struct zkl_reply *reply)
{
    if (!core->leftovers.first || reply->answer != ZKL_ANSWER_OK)
        return;
    uint32_t hash = zkl_text_hash(path);
    for (struct zkl_leftover *l = core->leftovers.first; l; l = l->next) {
        if (l->path_hash != hash || strcmp(l->path, path) != 0 || (l->is_named && l->is_out))
            continue;
        const char *name = zkl_queue_find(reply->children, reply->child_count, l->name);
        if (!name)
            continue;
        zkl_text_copy(l->name, sizeof l->name, name);
        if (!l->is_named || l->due_mono_ns == INT64_MAX)
            l->due_mono_ns = core->now.mono_ns;
        l->is_named = l->is_seen = true;
        l->is_out = false;
    }
    go_on(core);
}

/* --- requests ------------------------------------------------------------- */

static bool is_under_way(const struct zkl_core *core)
{
    return core->leftovers.remove.id != 0 || core->leftovers.list.id != 0;
}

static bool is_due(const struct zkl_core *core, const struct zkl_leftover *l)
{
    return !l->is_out && l->due_mono_ns <= core->now.mono_ns;
}

/* With the next link, or after a while. */
static int64_t again(const struct zkl_core *core)
{
    return core->now.mono_ns + (zkl_core_connected(core) ? ZKL_RETRY_MS * MS : 0);
}

static void send_delete(struct zkl_core *core, const char *const *paths, size_t count)
{
    struct zkl_request request = {
        .kind = ZKL_REQ_DELETE_ALL, .checks = paths, .check_count = count};
    zkl_pending_send(core, &core->leftovers.remove, &request);
}

/* Those that were seen, or those that are only named, whose transaction may fail; false: there is
 * none. */
static bool delete_some(struct zkl_core *core, bool seen)
{
    const char *list[ZKL_TRANSACTION_MAX];
    size_t count = 0, room = ZKL_NODE_PATH_MAX + 1;
    char *paths = NULL;
    for (struct zkl_leftover *l = core->leftovers.first; l; l = l->next) {
        if (!l->is_named || l->is_seen != seen || !is_due(core, l) || count == ZKL_TRANSACTION_MAX)
            continue;
        paths = paths ? paths : malloc(ZKL_TRANSACTION_MAX * room);
        if (!paths) {
            l->due_mono_ns = again(core);
            continue;
        }
        list[count] = paths + count * room;
        strcpy(stpcpy(stpcpy(paths + count++ * room, l->path), "/"), l->name);
        l->is_out = true;
    }
    if (count > 0)
        send_delete(core, list, count);
    free(paths);
    return count > 0;
}

/* The path that has waited longest; its list shows whatever was made before the barrier. */
static void look(struct zkl_core *core)
{
    struct zkl_leftover *first = core->leftovers.first;
    while (first && (first->is_named || !is_due(core, first)))
        first = first->next;
    if (!first)
        return;
    for (struct zkl_leftover *l = first; l; l = l->next)
        l->is_out |= !l->is_named && is_due(core, l) && strcmp(l->path, first->path) == 0;
    const char *check = first->path;
    zkl_pending_send(
        core, &core->leftovers.barrier,
        &(struct zkl_request){.kind = ZKL_REQ_CHECK_ALL, .checks = &check, .check_count = 1});
    zkl_pending_send(core, &core->leftovers.list,
                     &(struct zkl_request){.kind = ZKL_REQ_LIST, .path = first->path});
}

static void go_on(struct zkl_core *core)
{
    if (zkl_core_connected(core) && !is_under_way(core)) {
        drop_where(core, is_over);
        if (!delete_some(core, true) && !delete_some(core, false))
            look(core);
    }
    plan(core);
}

void zkl_leftovers_link_up(struct zkl_core *core)
{
    if (core->leftovers.first)
        go_on(core);
}

void zkl_leftovers_timer(struct zkl_core *core)
{
    if (core->leftovers.due_mono_ns <= core->now.mono_ns)
        go_on(core);
}

int64_t zkl_leftovers_next(const struct zkl_core *core)
{
    bool may = zkl_core_connected(core) && !is_under_way(core);
    return may ? core->leftovers.due_mono_ns : INT64_MAX;
}

/* --- answers ---------------------------------------------------------------- */

static bool is_there_no_more(enum zkl_answer answer)
{
    return answer == ZKL_ANSWER_OK || answer == ZKL_ANSWER_NONODE || answer == ZKL_ANSWER_NOAUTH ||
           answer == ZKL_ANSWER_NOTEMPTY;
}

static bool is_deleted(const struct zkl_core *core, const struct zkl_leftover *l)
{
    (void)core;
    return l->is_out && l->due_mono_ns == INT64_MIN;
}

/* A transaction that failed by one of its parts did nothing. Those before the part were there, so
 * that this session's end did not remove them, nor the others. Where already the first of those
 * that are only named is gone, all are, most likely. */
static void on_removed(struct zkl_core *core, const struct zkl_reply *reply)
{
    bool all = reply->answer == ZKL_ANSWER_OK, one = !all && is_there_no_more(reply->answer);
    size_t i = 0;
    for (struct zkl_leftover *l = core->leftovers.first; l; l = l->next) {
        if (!l->is_out)
            continue;
        if (all || (one && i == reply->failed_check)) {
            l->due_mono_ns = INT64_MIN;
        } else {
            bool guessed = one && !l->is_seen && reply->failed_check == 0;
            l->due_mono_ns = guessed ? INT64_MAX : one ? core->now.mono_ns : again(core);
            l->is_seen |= one && i < reply->failed_check;
            l->is_out = false;
        }
        i++;
    }
    drop_where(core, is_deleted);
}

/* lost: whether it showed what it had to. */
static void on_looked(struct zkl_core *core, bool lost)
{
    for (struct zkl_leftover *l = core->leftovers.first; l; l = l->next) {
        if (!l->is_out || l->is_named)
            continue;
        l->is_out = false;
        l->due_mono_ns = lost ? again(core) : INT64_MAX;
    }
}

/* What was looked for and not found comes no more (B105). */
static void give_back_unseen(struct zkl_core *core)
{
    for (struct zkl_leftover *l = core->leftovers.first; l; l = l->next) {
        if (!l->is_named && !l->is_out && l->due_mono_ns == INT64_MAX)
            give_back(core, l);
    }
}

/* Only these say that there is nothing to be seen. */
static bool is_lost(enum zkl_answer answer)
{
    return answer != ZKL_ANSWER_OK && answer != ZKL_ANSWER_NONODE && answer != ZKL_ANSWER_NOAUTH;
}

static const char *looked_path(const struct zkl_core *core)
{
    const struct zkl_leftover *l = core->leftovers.first;
    while (l && (!l->is_out || l->is_named))
        l = l->next;
    return l ? l->path : NULL;
}

void zkl_leftovers_answer(struct zkl_core *core, struct zkl_pending *slot,
                          const struct zkl_reply *reply)
{
    struct zkl_leftovers *own = &core->leftovers;
    if (slot == &own->remove) {
        on_removed(core, reply);
    } else if (slot == &own->barrier && is_lost(reply->answer)) {
        zkl_pending_forget(core, &own->list);
        on_looked(core, true);
    } else if (slot == &own->list) {
        const char *path = looked_path(core);
        on_looked(core, is_lost(reply->answer));
        if (path)
            zkl_leftovers_listed(core, path, reply);
        give_back_unseen(core);
    }
    go_on(core);
}
