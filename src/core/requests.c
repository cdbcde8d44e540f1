/* SPDX-License-Identifier: Apache-2.0
 *
 * Requests, from what is asked to what is awaited. A request goes out with a number, under which its
 * sender's slot is found again by the answer; one that the port refuses is answered when the event
 * is over, as nothing here feeds a contender. Below that what a contender sends for itself is built:
 * paths, data, and its node's name, for which each create has a new GUID. With the client's mutex.
 * All files of the core that send use this one: feed.c for a single contender, bundle.c and
 * list_coalescing.c for several. */
#include "requests.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "opcode.h"

/* --- what is awaited ------------------------------------------------------ */

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

/* --- what a contender sends ----------------------------------------------- */

static void send_for(struct zkl_core *core, struct zkl_contender *c, int slot,
                     struct zkl_request request)
{
    zkl_pending_send(core, &c->slots[slot], &request);
}

void zkl_core_node_path(const struct zkl_contender *c, const char *name, char *out)
{
    memcpy(out, c->machine.lock_request.path->text, c->machine.lock_request.path->length);
    out[c->machine.lock_request.path->length] = '/';
    strcpy(out + c->machine.lock_request.path->length + 1, name);
}

static void draw_guid(struct zkl_core *core, struct zkl_contender *c)
{
    unsigned char random[16];
    core->port->random(core->port, random);
    zkl_guid_format(random, c->machine.guid);
    if (c->machine.lock_request.retained)
        zkl_guid_mark_retained(c->machine.guid);
    c->heartbeat_serial = 0; /* an older heartbeat says nothing of the new node */
    c->delete_sent = false;
}

void zkl_core_new_name(struct zkl_core *core, struct zkl_contender *c, char *path)
{
    char prefix[ZKL_NODE_NAME_MAX + 1];
    draw_guid(core, c);
    zkl_name_prefix(&c->machine.lock_request.naming, c->machine.guid, prefix);
    zkl_core_node_path(c, prefix, path);
}

void zkl_core_send_create(struct zkl_core *core, struct zkl_contender *c)
{
    char path[ZKL_NODE_PATH_MAX + 1];
    zkl_core_new_name(core, c, path);
    send_for(core, c, ZKL_SLOT_CREATE,
             (struct zkl_request){
                 .kind = ZKL_REQ_CREATE, .path = path, .data = c->machine.lock_request.data});
}

void zkl_core_send_create_downgraded(struct zkl_core *core, struct zkl_contender *c)
{
    char name[ZKL_NODE_NAME_MAX + 1], path[ZKL_NODE_PATH_MAX + 1],
        downgrade_from[ZKL_NODE_PATH_MAX + 1];
    const char *check = downgrade_from;
    draw_guid(core, c);
    zkl_contender_name_downgraded(&c->machine, name);
    zkl_core_node_path(c, name, path);
    zkl_core_node_path(c, c->machine.downgrade_from, downgrade_from);
    send_for(core, c, ZKL_SLOT_CREATE,
             (struct zkl_request){.kind = ZKL_REQ_CREATE,
                                  .path = path,
                                  .data = c->machine.lock_request.data,
                                  .checks = &check,
                                  .check_count = 1});
}

void zkl_core_send_make(struct zkl_core *core, struct zkl_contender *c)
{
    const struct zkl_contender_machine *m = &c->machine;
    char path[ZKL_PATH_MAX + 1], text[16];
    snprintf(path, sizeof path, "%.*s", (int)m->make_length, m->lock_request.path->text);
    int permits = m->lock_request.quota.view ? m->lock_request.quota.view->permits : 0;
    bool numbered = permits > 0 && m->make_length == m->lock_request.path->length;
    snprintf(text, sizeof text, "%d", permits);
    send_for(
        core, c, ZKL_SLOT_CREATE,
        (struct zkl_request){.kind = ZKL_REQ_MAKE, .path = path, .data = numbered ? text : NULL});
}

void zkl_core_send_limit(struct zkl_core *core, struct zkl_contender *c)
{
    char text[16];
    snprintf(text, sizeof text, "%d", c->machine.lock_request.quota.view->permits);
    send_for(core, c, ZKL_SLOT_LIMIT,
             (struct zkl_request){.kind = ZKL_REQ_SET,
                                  .path = c->machine.lock_request.path->text,
                                  .data = text,
                                  .flag = true,
                                  .version = c->machine.limit.version});
}

void zkl_core_send_lock_path(struct zkl_core *core, struct zkl_contender *c, int slot,
                             enum zkl_request_kind kind)
{
    send_for(core, c, slot,
             (struct zkl_request){.kind = kind, .path = c->machine.lock_request.path->text});
}

/* With the Stat of the path, if it tells more than the view needs: see permit_limit.c. */
void zkl_core_send_list(struct zkl_core *core, struct zkl_contender *c)
{
    bool counted = zkl_roles[c->machine.lock_request.naming.role].counted;
    c->list_for_view = false;
    c->list_has_stat = c->machine.lock_request.views && zkl_contender_is_together(c);
    send_for(core, c, ZKL_SLOT_LIST,
             (struct zkl_request){.kind = ZKL_REQ_LIST,
                                  .path = c->machine.lock_request.path->text,
                                  .flag = c->list_has_stat || counted});
}

/* A check is a transaction even if it fails because the path is deleted. */
void zkl_core_send_barrier(struct zkl_core *core, struct zkl_contender *c)
{
    const char *check = c->machine.lock_request.path->text;
    send_for(core, c, ZKL_SLOT_SYNC,
             (struct zkl_request){.kind = ZKL_REQ_CHECK_ALL, .checks = &check, .check_count = 1});
}

void zkl_core_send_node(struct zkl_core *core, struct zkl_contender *c, int slot,
                        enum zkl_request_kind kind)
{
    char path[ZKL_NODE_PATH_MAX + 1];
    zkl_core_node_path(c, c->machine.node, path);
    send_for(core, c, slot, (struct zkl_request){.kind = kind, .path = path});
}

char *zkl_core_child_path(const struct zkl_contender *c, const char *name,
                          char small[ZKL_NODE_PATH_MAX + 1])
{
    size_t size = c->machine.lock_request.path->length + 1 + strlen(name) + 1;
    char *path = size <= ZKL_NODE_PATH_MAX + 1 ? small : malloc(size);
    if (path)
        strcpy(stpcpy(stpcpy(path, c->machine.lock_request.path->text), *name ? "/" : ""), name);
    return path;
}

/* The sender waits for no answer: the contender that is asked leaves, or the path is listed
 * again. */
void zkl_core_send_revocation(struct zkl_core *core, struct zkl_contender *c, const char *name)
{
    char small[ZKL_NODE_PATH_MAX + 1], *path = zkl_core_child_path(c, name, small);
    if (path)
        send_for(core, c, ZKL_SLOT_LIMIT,
                 (struct zkl_request){.kind = ZKL_REQ_SET, .path = path, .data = ZKL_REVOCATION});
    if (path != small)
        free(path);
}
