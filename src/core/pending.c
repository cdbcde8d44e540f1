/* SPDX-License-Identifier: Apache-2.0
 *
 * Outstanding requests, by number: the sender's slot enters a list when its request is sent, and
 * the answer finds it again. If the port refuses a request, this file answers it immediately. With
 * the client's mutex; all files of the core that send requests call it. */
#include "pending.h"

#include <assert.h>

#include "opcode.h"

static struct zkl_pending **bucket(struct zkl_core *core, uint64_t id)
{
    return &core->pending[id % ZKL_PENDING_BUCKETS];
}

void zkl_pending_refuse(struct zkl_core *core, struct zkl_pending *slot, enum zkl_request_kind kind,
                        enum zkl_answer refusal)
{
    zkl_pending_forget(core, slot);
    slot->id = ++core->last_id;
    slot->kind = kind;
    slot->refusal = refusal;
    slot->next = core->refused;
    core->refused = slot;
}

/* Nodes that are made are this session's own, and so are those that a heartbeat checks: the leader
 * does neither for a session that has ended. Where the barrier of a search is a check, it is the
 * lock path's. */
static bool is_proof(const struct zkl_pending *slot)
{
    return slot->kind == ZKL_REQ_CREATE || slot->kind == ZKL_REQ_CREATE_ALL ||
           slot->awaiter == ZKL_AWAITER_HEARTBEAT;
}

/* Nothing is known here of a read lock's create under its owner's write lock: it is one, too. */
static unsigned writes_of(const struct zkl_request *request)
{
    switch ((int)request->kind) {
    case ZKL_REQ_CREATE:
    case ZKL_REQ_DELETE:
        return 1;
    case ZKL_REQ_CREATE_ALL:
    case ZKL_REQ_DELETE_ALL:
        return (unsigned)request->check_count;
    default:
        return 0;
    }
}

/* A removal of watches can be answered by libzookeeper itself, and a renewal is several
 * requests. */
static struct zkl_stamp stamp(struct zkl_core *core, const struct zkl_pending *slot)
{
    if (slot->kind == ZKL_REQ_UNWATCH || slot->kind == ZKL_REQ_RENEW)
        return (struct zkl_stamp){0};
    return zkl_proof_stamp(&core->session.proof, core->now.boot_ns, is_proof(slot));
}

void zkl_pending_send(struct zkl_core *core, struct zkl_pending *slot, struct zkl_request *request)
{
    zkl_pending_forget(core, slot);
    slot->id = request->id = ++core->last_id;
    slot->kind = request->kind;
    slot->opcode = zkl_opcode_choose(core, request);
    slot->sent_boot_ns = core->now.boot_ns;
    request->stamp = stamp(core, slot);
    bool goes = zkl_core_connected(core) || slot->kind == ZKL_REQ_KEEPALIVE;
    enum zkl_answer refusal = goes ? core->port->send(core->port, request) : ZKL_ANSWER_LINK;
    if (refusal != ZKL_ANSWER_OK) {
        slot->id = 0;
        zkl_pending_refuse(core, slot, request->kind, refusal);
        return;
    }
    core->last_send_mono_ns = core->now.mono_ns;
    core->sent[request->kind]++;
    slot->writes = writes_of(request);
    core->group_commit.under_way += slot->writes;
    struct zkl_pending **head = bucket(core, slot->id);
    slot->next = *head;
    *head = slot;
    core->pending_count++;
}

static bool unlink_from(struct zkl_pending **at, struct zkl_pending *slot)
{
    for (; *at; at = &(*at)->next) {
        if (*at == slot) {
            *at = slot->next;
            slot->id = 0;
            return true;
        }
    }
    return false;
}

void zkl_pending_forget(struct zkl_core *core, struct zkl_pending *slot)
{
    if (slot->id == 0)
        return;
    core->group_commit.under_way -= slot->writes;
    core->group_commit.answered |= slot->writes > 0;
    slot->writes = 0;
    if (unlink_from(bucket(core, slot->id), slot))
        core->pending_count--;
    else
        unlink_from(&core->refused, slot);
    assert(slot->id == 0);
}

struct zkl_pending *zkl_pending_take(struct zkl_core *core, uint64_t id)
{
    struct zkl_pending *slot = *bucket(core, id);
    while (slot && slot->id != id)
        slot = slot->next;
    if (slot)
        zkl_pending_forget(core, slot);
    return slot;
}

struct zkl_pending *zkl_pending_take_refused(struct zkl_core *core, enum zkl_answer *answer)
{
    struct zkl_pending *slot = core->refused;
    if (slot) {
        *answer = slot->refusal;
        zkl_pending_forget(core, slot);
    }
    return slot;
}

void zkl_pending_clear(struct zkl_core *core)
{
    assert(!core->refused); /* those are answered before the step that refused them is over */
    for (size_t i = 0; i < ZKL_PENDING_BUCKETS; i++) {
        while (core->pending[i])
            zkl_pending_forget(core, core->pending[i]);
    }
}
