/* SPDX-License-Identifier: Apache-2.0
 * What owners want, as the scenario says, and when they may go on; what they do is in tests/owners. Questions of a
 * client are here, too. */
#include "core/unlisted_grant.h"
#include "core/transaction.h"
#include "world.h"

struct zkl_transaction *__real_zkl_transaction_new(size_t size);
struct zkl_transaction *__wrap_zkl_transaction_new(size_t size);
void __real_zkl_transaction_collect_deletes(struct zkl_core *core, size_t size);
void __wrap_zkl_transaction_collect_deletes(struct zkl_core *core, size_t size);
uint32_t __wrap_zkl_text_hash(const char *text);

/* Of what comes before a GUID. The core looks at watches in the order of their buckets: by the whole path that
 * would be another order for each GUID, and no state would be like any other. */
uint32_t __wrap_zkl_text_hash(const char *text)
{
    const char *guid = strstr(text, "_c_");
    uint32_t hash = 0;
    for (const char *at = text; *at && at != guid; at++)
        hash = 31 * hash + (unsigned char)*at;
    return hash;
}

/* Its own file's calls are not those of others for the linker: one of these for each. */
struct zkl_transaction *__wrap_zkl_transaction_new(size_t size)
{
    return world->bounds->scenario->scarce ? NULL : __real_zkl_transaction_new(size);
}

void __wrap_zkl_transaction_collect_deletes(struct zkl_core *core, size_t size)
{
    if (!world->bounds->scenario->scarce)
        __real_zkl_transaction_collect_deletes(core, size);
}

/* --- queries -------------------------------------------------------------- */

static void query_answered(struct zkl_query *query, int code, const struct zkl_reply *reply)
{
    struct owner *o = (struct owner *)((char *)query - offsetof(struct owner, query));
    if (!o->client->dead)
        check_answer(o->client, query, code, reply);
    o->phase = ANSWERED;
}

/* --- what they want --------------------------------------------------------- */

static struct owner *reader_of(const struct owner *o)
{
    struct world *w = o->client->world;
    for (int i = 0; i < w->owner_count; i++) {
        if (w->owners[i].writer == o)
            return &w->owners[i];
    }
    return NULL;
}

static bool is_done(const struct owner *o)
{
    const struct owner *writer = o->writer;
    return o->client->dead ||
           (owner_is_idle(o) &&
            (o->cycles >= o->part->cycles || (writer && writer->cycles >= writer->part->cycles)));
}

bool owner_may_start(const struct owner *o)
{
    const struct owner *writer = o->writer;
    return !o->client->dead && owner_is_idle(o) && o->cycles < o->part->cycles &&
           (!writer || (writer->place->phase == GRANTED && writer->place->in_core));
}

void owner_starts(struct owner *o)
{
    const struct part *part = o->part;
    struct client *c = o->client;
    const struct scenario *scenario = c->world->bounds->scenario;
    struct zkl_lock_request lock_request = {.path = &c->paths[part->root],
                                            .data = "owner",
                                            .naming.role = part->role,
                                            .try_only = part->try_only,
                                            .try_sync = part->try_sync,
                                            .try_behind_retained = scenario->retain_ms > 0,
                                            .posted = part->posted,
                                            .watch_own = part->watch_own,
                                            .lease_ns = part->leases * scenario->lease_ms * MS,
                                            .unlisted = part->unlisted,
                                            .views = part->unlisted};
    if (part->kind == PART_QUERY) {
        o->phase = WAITING;
        o->query = (struct zkl_query){
            .kind = part->query, .path = root_paths[part->root], .answered = query_answered};
        zkl_core_query(&c->core, now_of(c), &o->query);
        return;
    }
    for (int i = 0; part->kind == PART_MULTI && i < part->count; i++)
        c->paths[o->place[i].root].view.calm = true; /* a hint, which may be wrong */
    if (part->kind == PART_PERMITS && !scenario->unsaid)
        c->view.permits = scenario->permits;
    owner_start(o, &lock_request);
}

/* A writer waits for its reader, which must be there first. */
static bool is_awaited(const struct owner *writer)
{
    const struct owner *reader = reader_of(writer);
    return reader && !writer->place->lost &&
           (reader->place->phase == WAITING ||
            (reader->place->phase == IDLE && reader->cycles == 0));
}

bool owner_may_unlock(const struct owner *o)
{
    return !o->client->dead && owner_has_it(o) && (o->part->kind != PART_LOCK || !is_awaited(o));
}

void owner_is_stopped(struct owner *o)
{
    if (o->part->kind != PART_QUERY) {
        owner_stop(o, ZKL_ETIMEDOUT);
        return;
    }
    zkl_core_withdraw(&o->client->core, now_of(o->client), &o->query);
    o->phase = ANSWERED;
}

void owner_renews(struct owner *o)
{
    owner_renew(o, o->part->leases * o->client->world->bounds->scenario->lease_ms * MS);
}

/* --- and on --------------------------------------------------------------- */

/* Something that ends with its last handle: a node, or a watch. */
static bool keeps(const struct client *c)
{
    bool keeps = c->local_queue.given != NULL || c->cache.dropped != NULL;
    for (int i = 0; i < c->world->owner_count; i++)
        keeps = keeps || (c->world->owners[i].client == c && c->world->owners[i].part->unlisted);
    return keeps;
}

void world_run(struct world *w)
{
    each_client(w, c) {
        if (!c->dead)
            owners_run(c);
        if (!keeps(c) && client_may_be_freed(c))
            c->freed = true;
    }
}

/* Another client waits for what this one keeps: the core must then notify this one, which must
 * give it up. */
static bool is_wanted(const struct client *c)
{
    const struct world *w = c->world;
    each_place(w, place) {
        bool is_kept = c->local_queue.state == ZKL_LOCAL_QUEUE_IDLE || c->cache.holder != NULL;
        if (is_kept && place->client != c && place->phase == WAITING && place->root == 0)
            return true;
    }
    return false;
}

bool client_may_be_freed(const struct client *c)
{
    const struct world *w = c->world;
    bool done = !c->dead && !c->freed && !is_wanted(c);
    for (int i = 0; i < w->owner_count; i++)
        done = done && (w->owners[i].client != c || is_done(&w->owners[i]));
    for (const struct zkl_contender *contender = c->core.first; done && contender;
         contender = contender->next)
        done =
            (c->local_queue.state == ZKL_LOCAL_QUEUE_IDLE && c->local_queue.holder == contender) ||
            c->cache.holder == contender;
    return done;
}

void client_free(struct client *c)
{
    struct zkl_time now = now_of(c);
    c->freed = true;
    if (c->local_queue.given)
        zkl_local_queue_drop(&c->core, now, &c->local_queue);
    if (c->cache.dropped)
        zkl_read_cache_close(&c->core, now, &c->cache);
    for (int i = 0; i < ROOTS; i++)
        zkl_unlisted_end(&c->core, now, &c->paths[i].unlisted);
}

/* --- the beginning -------------------------------------------------------- */

static int places_of(const struct part *part)
{
    bool several = part->kind == PART_MULTI || part->kind == PART_PERMITS;
    return several                                                ? part->count
           : part->kind == PART_TURN || part->kind == PART_READER ? 2
           : part->kind == PART_LOCK                              ? 1
                                                                  : 0;
}

static void begin(struct world *w, const struct part *part)
{
    struct owner *o = &w->owners[w->owner_count++];
    struct client *c = &w->clients[part->client];
    owner_begin(o, c, part->kind, places_of(part),
                part->kind == PART_PERMITS ? LEASES : part->root);
    o->part = part;
    o->writer = part->downgrade_from ? &w->owners[part->downgrade_from - 1] : NULL;
    if (part->kind == PART_TURN) {
        c->local_queue.handoffs_max = (unsigned)w->bounds->scenario->handoffs_max;
        c->local_queue.retain_ns = w->bounds->scenario->retain_ms * MS;
    }
    if (part->kind == PART_READER)
        c->cache.age_ns = w->bounds->scenario->retain_ms * MS;
    if (part->kind == PART_PERMITS)
        o->permits = calloc(1, sizeof *o->permits);
}

void owners_begin(struct world *w)
{
    const struct part *parts = w->bounds->scenario->parts;
    int count = 0, places = 1;
    while (count < OWNERS && parts[count].cycles > 0 && parts[count].client < w->client_count)
        places += places_of(&parts[count++]);
    w->places = calloc((size_t)places, sizeof *w->places);
    for (int i = 0; i < count; i++)
        begin(w, &parts[i]);
}
