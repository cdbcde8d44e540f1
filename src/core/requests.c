/* SPDX-License-Identifier: Apache-2.0
 *
 * Builds the requests of contenders and passes them to pending.c. Only this file gives a node its
 * name: a new GUID for each create. feed.c calls it for a single contender, batch.c and
 * list_coalescing.c for several. It never feeds a contender: a request that could not be sent is
 * answered when the event is over. */
#include "requests.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "unlisted_grant.h"
#include "pending.h"

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

void zkl_core_send_list(struct zkl_core *core, struct zkl_contender *c)
{
    c->batch_list_for_view = false;
    c->batch_list_has_stat = c->machine.lock_request.views && c->machine.lock_request.batch;
    send_for(core, c, ZKL_SLOT_LIST,
             (struct zkl_request){.kind = ZKL_REQ_LIST,
                                  .path = c->machine.lock_request.path->text,
                                  .flag = c->batch_list_has_stat});
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

void zkl_core_send_delete(struct zkl_core *core, struct zkl_contender *c)
{
    zkl_unlisted_leaves(core, c);
    c->delete_sent = true;
    zkl_core_send_node(core, c, ZKL_SLOT_DELETE, ZKL_REQ_DELETE);
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
