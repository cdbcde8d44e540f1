/* SPDX-License-Identifier: Apache-2.0
 * Threads of one handle that read in one node: the gate's conditions, from the messages alone. Over which link a
 * list came last, and when it was sent. tests/owners has what the readers do. */
#include "world.h"

#define SLACK_MS 2 /* of clocks that are rounded */

void readers_sent(struct client *p, const struct zkl_request *request)
{
    if (request->kind != ZKL_REQ_LIST_LOCK_PATH || strcmp(request->path, root_paths[RW_ROOT]) != 0)
        return;
    p->list_id = request->id;
    p->list_sent_ms = p->world->fake.now_ms;
}

void readers_answered(struct client *p, const struct zkl_reply *reply)
{
    if (reply->id != p->list_id || reply->answer != ZKL_ANSWER_OK)
        return;
    p->list_link = p->links;
    p->listed_ms = p->list_sent_ms;
}

void reader_came_in(struct client *p)
{
    int64_t now_ms = p->world->fake.now_ms;
    happened(p->world, SIM_READER_CAME_IN);
    if (p->list_link != p->links)
        wrong("a reader comes in over a link that no list has come over");
    if ((now_ms - p->listed_ms) * MS > zkl_session_timeout_ns(&p->core.session) / 10 * 6)
        wrong("a reader comes in by an old list");
    if ((now_ms - p->opened_ms) * MS > p->cache.age_ns + p->cache.age_ns / 16 + SLACK_MS * MS)
        wrong("a reader comes into a node that is too old");
}

void readers_node_opened(struct client *p)
{
    p->opened_ms = p->world->fake.now_ms;
    happened(p->world, SIM_READERS_NODE);
}
