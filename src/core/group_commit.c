/* SPDX-License-Identifier: Apache-2.0
 *
 * Group commit: which creates and deletes wait for others, and how waiting ones are divided into
 * transactions. group_commit.h has the argument. The waiting requests are a list through the
 * contenders. With the client's mutex. feed.c asks for each create and
 * delete, core.c when an event is over. */
#include "group_commit.h"

#include <assert.h>
#include <string.h>

#include "opcode.h"
#include "requests.h"
#include "transaction.h"

/* --- what waits ----------------------------------------------------------- */

static void hold(struct zkl_core *core, struct zkl_contender *c, enum zkl_held_write what)
{
    struct zkl_group_commit *g = &core->group_commit;
    assert(c->held == ZKL_HELD_NONE);
    c->held = what;
    c->next_held = NULL;
    *(g->last ? &g->last->next_held : &g->first) = c;
    g->last = c;
    g->held++;
}

void zkl_group_commit_forget(struct zkl_core *core, struct zkl_contender *c)
{
    struct zkl_group_commit *g = &core->group_commit;
    struct zkl_contender *before = NULL;
    if (c->held == ZKL_HELD_NONE)
        return;
    for (struct zkl_contender *at = g->first; at != c; at = at->next_held)
        before = at;
    *(before ? &before->next_held : &g->first) = c->next_held;
    if (g->last == c)
        g->last = before;
    g->held--;
    c->held = ZKL_HELD_NONE;
    c->next_held = NULL;
}

static void send_singly(struct zkl_core *core, struct zkl_contender *c)
{
    enum zkl_held_write what = c->held;
    zkl_group_commit_forget(core, c);
    if (what == ZKL_HELD_CREATE)
        zkl_core_send_create(core, c);
    else
        zkl_core_send_delete(core, c);
}

static bool is_at_path_of(const struct zkl_contender *held, const struct zkl_contender *c)
{
    return held->machine.lock_request.path == c->machine.lock_request.path;
}

/* A create that waits, at the contender's path? */
static bool is_created_soon(const struct zkl_core *core, const struct zkl_contender *c)
{
    const struct zkl_contender *other = core->group_commit.first;
    while (other && !(other->held == ZKL_HELD_CREATE && is_at_path_of(other, c)))
        other = other->next_held;
    return other != NULL;
}

/* Requests that wait at the path of a create that does not wait: its maker waits for them, or came
 * later. */
static void go_before(struct zkl_core *core, const struct zkl_contender *c)
{
    struct zkl_contender *next;
    for (struct zkl_contender *other = core->group_commit.first; other; other = next) {
        next = other->next_held;
        bool is_wanted =
            other->held == ZKL_HELD_DELETE || other->machine.state != ZKL_CONTENDER_LEAVING;
        if (is_at_path_of(other, c) && is_wanted)
            send_singly(core, other);
    }
}

void zkl_group_commit_before(struct zkl_core *core, const struct zkl_contender *c)
{
    const struct zkl_lock_request *request = &c->machine.lock_request;
    bool makes_one = request->unlisted && !request->try_only && !request->together;
    if (core->group_commit.held > 0 && !makes_one)
        go_before(core, c);
}

/* --- which requests wait ------------------------------------------------ */

static bool is_crowded(const struct zkl_core *core)
{
    const struct zkl_group_commit *g = &core->group_commit;
    return g->from > 0 && (g->under_way >= g->from || (g->credit > 0 && g->under_way > 0));
}

/* At a server that does not know create2 nodes are made without a list for another reason. */
static bool may_wait(const struct zkl_core *core, const struct zkl_contender *c)
{
    const struct zkl_lock_request *request = &c->machine.lock_request;
    bool is_at_work = zkl_core_connected(core) && is_crowded(core);
    bool is_known = !zkl_opcode_is_unknown(core, ZKL_OPCODE_CREATE2) &&
                    !zkl_opcode_is_unknown(core, ZKL_OPCODE_MULTI);
    return is_at_work && is_known && !request->together && request->unlisted && request->views &&
           core->now.mono_ns >= request->path->view.singly_until_mono_ns;
}

bool zkl_group_commit_holds_create(struct zkl_core *core, struct zkl_contender *c)
{
    bool is_only =
        c->machine.lock_request.unlisted && c->machine.lock_request.path->unlisted.live_count == 1;
    bool waits = may_wait(core, c) && is_only && !c->machine.list_out && !is_created_soon(core, c);
    if (waits)
        hold(core, c, ZKL_HELD_CREATE);
    else if (core->group_commit.held > 0 && c->machine.lock_request.unlisted)
        go_before(core, c);
    return waits;
}

/* Its owner unlocks it, and no known contender waits for that; its node exists, as far as is
 * known. */
static bool is_free_to_wait(const struct zkl_contender *c)
{
    const struct zkl_contender_machine *m = &c->machine;
    bool unlocks =
        m->state == ZKL_CONTENDER_RELEASING ||
        (m->state == ZKL_CONTENDER_LEAVING && m->lock_request.posted && m->unlocked_boot != 0);
    return unlocks && m->on_server && !m->suspect && !c->delete_sent && !m->contended &&
           !m->revoked && m->lock_request.path->unlisted.live_count == 0;
}

bool zkl_group_commit_holds_delete(struct zkl_core *core, struct zkl_contender *c)
{
    if (!may_wait(core, c) || !is_free_to_wait(c))
        return false;
    hold(core, c, ZKL_HELD_DELETE);
    return true;
}

/* --- sending -------------------------------------------------------------- */

/* With the link all answers end: what waits then is not sent (transaction_reply.c). */
bool zkl_group_commit_is_due(struct zkl_core *core)
{
    struct zkl_group_commit *g = &core->group_commit;
    bool answered = g->answered || g->under_way == 0 || g->held >= ZKL_TRANSACTION_MAX;
    g->answered = false;
    return answered && g->held > 0;
}

/* The approximate size of its part in a transaction: an ACL and the codes of the protocol are in
 * it, too. */
static size_t bytes_of(const struct zkl_core *core, const struct zkl_contender *c)
{
    return core->chroot_length + c->machine.lock_request.path->length + 1 + ZKL_NODE_NAME_MAX +
           strlen(c->machine.lock_request.data) + 256;
}

/* How many of the first requests fit into one transaction. */
static size_t count_next(const struct zkl_core *core)
{
    size_t count = 0, bytes = 0;
    for (const struct zkl_contender *c = core->group_commit.first; c; c = c->next_held) {
        bytes += bytes_of(core, c);
        if (count == ZKL_TRANSACTION_MAX || (count > 0 && bytes > ZKL_GROUP_COMMIT_BYTES_MAX))
            break;
        count++;
    }
    return count;
}

static void send_together(struct zkl_core *core, size_t count)
{
    struct zkl_transaction *t = count > 1 ? zkl_transaction_new(count) : NULL;
    for (size_t i = 0; i < count; i++) {
        struct zkl_contender *c = core->group_commit.first;
        enum zkl_held_write what = c->held;
        if (!t) {
            send_singly(core, c);
            continue;
        }
        zkl_group_commit_forget(core, c);
        zkl_transaction_add(t, c, what);
    }
    if (!t)
        return;
    zkl_transaction_put_calm_first(core, t);
    zkl_transaction_send(core, t);
}

void zkl_group_commit_send(struct zkl_core *core)
{
    struct zkl_group_commit *g = &core->group_commit;
    if (g->held >= g->from)
        g->credit = ZKL_GROUP_COMMIT_CREDIT;
    else if (g->credit > 0 && g->held > 0)
        g->credit--;
    while (g->held > 0)
        send_together(core, count_next(core));
}

void zkl_group_commit_reset(struct zkl_core *core)
{
    while (core->group_commit.first)
        zkl_group_commit_forget(core, core->group_commit.first);
    core->group_commit.credit = 0;
}
