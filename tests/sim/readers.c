/* SPDX-License-Identifier: Apache-2.0
 * Threads of one handle that read in one node, in some of the schedules: they enter and leave
 * through its gate, queue with a node of their own if that is closed, or exit. This file knows the
 * gate's conditions from the messages alone: over which link a list came last, and when it was
 * sent. */
#include <string.h>

#include <zklock/zklock.h>

#include "world.h"

#define FOR_EVER_MS 100000000
#define SLACK_MS 2 /* of clocks that are rounded */

static const char *lock_path(void)
{
    return root_paths[RW_ROOT];
}

static struct client *of_cache(struct zkl_read_cache *cache)
{
    return (struct client *)((char *)cache - offsetof(struct client, cache));
}

static void dropped(struct zkl_read_cache *cache, struct zkl_contender *contender)
{
    const struct client *p = of_cache(cache);
    (void)contender;
    for (int i = 0; !p->dead && i < SITTERS; i++)
        must(p->sitters[i].phase != INSIDE);
}

void readers_init(struct client *p)
{
    static const int64_t ages_ms[] = {20, 200, FOR_EVER_MS};
    size_t which = (size_t)(p->world->seed / READERS_ONCE_IN + (unsigned)name_of(p)) % 3;
    p->cache = (struct zkl_read_cache){.age_ns = ages_ms[which] * MS, .dropped = dropped};
    for (int i = 0; i < SITTERS; i++)
        p->sitters[i] = (struct sitter){.client = p};
}

bool app_is_reader_place(const struct place *app)
{
    return app - app->client->apps >= APPS + ROOTS + PLACES;
}

/* Before the place itself hears of it. */
void readers_notification(struct place *place, const struct zkl_notification *news)
{
    if (news->type == ZKL_NOTIFY_RELEASED && place->phase == GRANTED)
        place->phase = UNLOCKING; /* the last one is out */
}

/* --- what messages say ------------------------------------------------------- */

void readers_sent(struct client *p, const struct zkl_request *request)
{
    if (request->kind != ZKL_REQ_LIST_LOCK_PATH || strcmp(request->path, lock_path()) != 0)
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

/* --- coming in --------------------------------------------------------------- */

static bool writes(const struct place *app)
{
    return app->root == RW_ROOT && app->phase == WAITING &&
           app->contender.machine.lock_request.naming.role == ZKL_ROLE_WRITE;
}

/* A thread of this process wants to write. */
static bool is_writing(const struct client *p)
{
    bool any = false;
    for (int i = 0; i < APPS; i++)
        any = any || writes(&p->apps[i]);
    return any;
}

static void check_entry(const struct client *p)
{
    const struct place *place = (const struct place *)p->cache.holder;
    int64_t now_ms = p->world->fake.now_ms;
    must(place && place->phase == GRANTED && !place->lost);
    must(is_proved(p, p->cache.holder) && !place->contender.machine.revoked);
    if (p->list_link != p->links)
        wrong("a reader comes in over a link that no list has come over");
    if ((now_ms - p->listed_ms) * MS > zkl_session_timeout_ns(&p->core.session) / 10 * 6)
        wrong("a reader comes in by an old list");
    if ((now_ms - p->opened_ms) * MS > p->cache.age_ns + p->cache.age_ns / 16 + SLACK_MS * MS)
        wrong("a reader comes into a node that is too old");
    if (is_writing(p))
        wrong("a reader comes in before a writer of its own handle");
}

static bool enter(struct sitter *sitter)
{
    struct client *p = sitter->client;
    atomic_store(&p->fresh_until_boot, zkl_proof_fresh_until(&p->core.session.proof));
    int64_t until = zkl_read_gate_enter(&p->cache.gate, &p->fresh_until_boot);
    if (now_of(p).boot_ns < until) {
        check_entry(p);
        happened(p->world, SIM_READER_CAME_IN);
        return true;
    }
    if (zkl_read_gate_leave(&p->cache.gate))
        zkl_read_cache_left(core_of(p), now_of(p), &p->cache);
    return false;
}

/* Some thread has not heard yet how it failed. */
static bool is_asked_about(const struct client *p, const struct place *place)
{
    bool any = false;
    for (int i = 0; i < SITTERS; i++)
        any = any || (p->sitters[i].phase == WAITING && p->sitters[i].place == place);
    return any;
}

static struct place *free_place(struct client *p)
{
    for (int i = APPS + ROOTS + PLACES; i < ALL_APPS; i++) {
        if (p->apps[i].phase == IDLE && !is_asked_about(p, &p->apps[i]))
            return &p->apps[i];
    }
    return NULL;
}

static void queue(struct sitter *sitter)
{
    struct client *p = sitter->client;
    struct world *w = p->world;
    struct place *place = free_place(p);
    if (!place)
        return;
    struct zkl_lock_request lock_request = {.path = &p->paths[RW_ROOT],
                                            .data = "owner",
                                            .naming = {.role = ZKL_ROLE_READ},
                                            .try_only = chance(w, 6),
                                            .retained = p->cache.state == ZKL_READ_CACHE_EMPTY,
                                            .posted = chance(w, 4)};
    *place = (struct place){.client = p,
                            .phase = WAITING,
                            .root = RW_ROOT,
                            .in_core = true,
                            .try_only = lock_request.try_only,
                            .until_ms = INT64_MAX};
    sitter->place = place;
    sitter->phase = WAITING;
    zkl_core_acquire(core_of(p), now_of(p), &place->contender, &lock_request);
}

static void start(struct sitter *sitter)
{
    struct world *w = sitter->client->world;
    sitter->until_ms = w->fake.now_ms + rnd(w, 100);
    if (enter(sitter))
        sitter->phase = INSIDE;
    else
        queue(sitter);
}

/* Its own node was granted: it becomes that of all, if that may be. */
static void granted(struct sitter *sitter)
{
    struct client *p = sitter->client;
    bool opens = sitter->place->contender.machine.lock_request.retained && !is_writing(p) &&
                 zkl_read_cache_open(core_of(p), now_of(p), &p->cache, &sitter->place->contender);
    sitter->phase = opens ? INSIDE : GRANTED;
    if (!opens)
        return;
    p->opened_ms = p->world->fake.now_ms;
    happened(p->world, SIM_READERS_NODE);
}

/* --- leaving ----------------------------------------------------------------- */

static void leave(struct sitter *sitter)
{
    struct client *p = sitter->client;
    struct place *place = (struct place *)p->cache.holder;
    must(place && (place->phase == GRANTED || place->phase == ORPHANED));
    struct unlocked unlocked = check_unlock(p, &place->contender, place->deleted_guid);
    sitter->phase = IDLE;
    if (!chance(p->world, 8)) /* else it exits, and receives nothing */
        check_unlocked(p->world, &unlocked,
                       place->lost ? ZKL_ELOST : (unlocked.proved ? ZKL_OK : ZKL_EDOUBT));
    if (zkl_read_gate_leave(&p->cache.gate))
        zkl_read_cache_left(core_of(p), now_of(p), &p->cache);
}

static void stop(struct sitter *sitter)
{
    struct client *p = sitter->client;
    sitter->place->stop_code = ZKL_ETIMEDOUT;
    zkl_core_stop(core_of(p), now_of(p), &sitter->place->contender, ZKL_ETIMEDOUT);
}

static void run(struct sitter *sitter)
{
    struct world *w = sitter->client->world;
    bool due = w->calm || sitter->until_ms <= w->fake.now_ms;
    if (sitter->phase == WAITING && sitter->place->phase == GRANTED) {
        granted(sitter);
    } else if (sitter->phase == WAITING && sitter->place->phase != WAITING) {
        sitter->phase = IDLE;
    } else if (sitter->phase == WAITING && due && chance(w, 4)) {
        stop(sitter);
    } else if (sitter->phase == INSIDE && due) {
        leave(sitter);
    } else if (sitter->phase == GRANTED && due) {
        sitter->phase = IDLE;
        app_end_hold(sitter->place);
    } else if (sitter->phase == IDLE && proc_is_lively(sitter->client) && chance(w, 2)) {
        start(sitter);
    }
}

/* Some process waits to write: then this one must be notified, and its readers must make room. */
static bool is_wanted(const struct world *w)
{
    for (int i = 0; i < CLIENTS * ALL_APPS; i++) {
        const struct place *app = &w->clients[i / ALL_APPS].apps[i % ALL_APPS];
        if (app->phase == WAITING && app->root == RW_ROOT)
            return true;
    }
    return false;
}

void readers_run(struct client *p)
{
    struct world *w = p->world;
    if (!w->readers)
        return;
    for (int i = 0; i < SITTERS; i++)
        run(&p->sitters[i]);
    for (int i = APPS + ROOTS + PLACES; i < ALL_APPS; i++) {
        struct place *place = &p->apps[i];
        if (!place->in_core && (place->phase == ANSWERED || place->phase == ORPHANED))
            place->phase = IDLE;
    }
    if (w->calm ? !is_wanted(w) : chance(w, 300))
        zkl_read_cache_close(core_of(p), now_of(p), &p->cache);
}

/* A writer of this process is about to ask. */
void readers_make_room(struct client *p)
{
    if (p->world->readers)
        zkl_read_cache_close(core_of(p), now_of(p), &p->cache);
}

bool readers_done(const struct client *p)
{
    bool done = p->cache.state == ZKL_READ_CACHE_EMPTY && !zkl_read_gate_any(&p->cache.gate);
    for (int i = 0; i < SITTERS; i++)
        done = done && p->sitters[i].phase == IDLE;
    return done;
}
