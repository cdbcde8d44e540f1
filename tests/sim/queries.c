/* SPDX-License-Identifier: Apache-2.0
 * Clients that query roots and nodes of others, and lose patience now and then. Each query is
 * answered once, with something that can be true; a client that waits for a node's end is notified
 * of it, and not before; no watch stays. */
#include "world.h"

static const enum zkl_request_kind kinds[] = {ZKL_REQ_GET,  ZKL_REQ_STAT, ZKL_REQ_LIST_LOCK_PATH,
                                              ZKL_REQ_SYNC, ZKL_REQ_SET,  ZKL_REQ_WATCH};

static void answered(struct zkl_query *query, int code, const struct zkl_reply *reply)
{
    struct question *q = (struct question *)query;
    if (q->client->dead)
        return; /* no process receives it */
    must(q->out);
    q->out = false;
    say("  %d query %s: %d %d", name_of(q->client), q->path, code, reply ? (int)reply->answer : -1);
    check_answer(q->client, query, code, reply);
}

/* A contender's, which its server has shown to this process. */
static const struct fake_node *some_node(const struct client *p)
{
    const struct fake *fake = &p->world->fake;
    if (fake->node_count == 0 || !p->current)
        return NULL;
    const struct fake_node *node = &fake->nodes[rnd(p->world, (unsigned)fake->node_count)];
    return node->dzxid == 0 && node->owner != 0 && node->czxid <= p->current->seen ? node : NULL;
}

static void ask(struct question *q)
{
    struct client *p = q->client;
    struct world *w = p->world;
    const struct fake_node *node = some_node(p);
    enum zkl_request_kind kind = kinds[rnd(w, sizeof kinds / sizeof *kinds)];
    if (kind == ZKL_REQ_WATCH && !node)
        return;
    *q = (struct question){.client = p, .out = true, .until_ms = INT64_MAX};
    snprintf(q->path, sizeof q->path, "%s",
             node && (kind == ZKL_REQ_WATCH || chance(w, 2)) ? node->path : "/a");
    q->query = (struct zkl_query){.kind = kind, .path = q->path, .data = "", .answered = answered};
    q->query.once = kind == ZKL_REQ_SET && chance(w, 2);
    q->query.czxid = kind == ZKL_REQ_WATCH ? node->czxid : 0;
    happened(w, SIM_QUERY);
    if (chance(w, 3))
        q->until_ms = w->fake.now_ms + rnd(w, 400);
    say("[%6lld] %d asks %d of %s", (long long)w->fake.now_ms, name_of(p), (int)kind, q->path);
    zkl_core_query(core_of(p), now_of(p), &q->query);
}

void queries_run(struct client *p)
{
    struct world *w = p->world;
    each_of(p->questions, QUESTIONS, q) {
        if (q->out && q->until_ms <= w->fake.now_ms) {
            say("[%6lld] %d withdraws %s", (long long)w->fake.now_ms, name_of(p), q->path);
            zkl_core_withdraw(core_of(p), now_of(p), &q->query);
            q->out = false;
        } else if (!q->out && !w->healing && !p->closed && chance(w, 10)) {
            ask(q);
        }
    }
}

size_t queries_out(const struct client *p)
{
    size_t out = 0;
    for (int i = 0; i < QUESTIONS; i++)
        out += p->questions[i].out;
    return out;
}

void queries_check(const struct client *p)
{
    size_t asked = 0, parked = 0;
    for (const struct zkl_query *q = p->core.queries; q; q = q->next) {
        asked++;
        parked += q->parked;
        /* Something of it is under way, or it goes out with the next link. */
        must(q->parked || q->slot.id != 0 || q->sub.watch);
    }
    must(asked == queries_out(p));
    must(parked == p->core.parked);
}
