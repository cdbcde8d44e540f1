/* SPDX-License-Identifier: Apache-2.0
 * What owners do: lock, try, take several locks together, take turns, take permits, ask; and
 * what they hear. */
#include <stdlib.h>
#include <string.h>

#include <zklock/zklock.h>

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

static struct place *place_of(struct zkl_contender *contender)
{
    return (struct place *)contender;
}

static struct client *of_local_queue(struct zkl_local_queue *local_queue)
{
    return (struct client *)((char *)local_queue - offsetof(struct client, local_queue));
}

/* --- what owners hear ----------------------------------------------------- */

static bool is_member(const struct place *place)
{
    return place->owner && place->owner->part->kind == PART_MULTI;
}

static bool may_fail_with(const struct place *place, int code)
{
    const struct world *w = place->client->world;
    const struct part *part = place->owner->part;
    bool ends_try = code == ZKL_EBUSY || code == ZKL_EUNPROVED;
    if (code == place->stop_code || (ends_try && part->try_only) ||
        (code == ZKL_EACCES && w->denied))
        return true;
    bool troubled = w->faults < w->bounds->faults || w->calm;
    return code == ZKL_ELOST &&
           ((is_member(place) && place->client->group.lost) || (part->downgrade_from && troubled));
}

static void on_granted(struct world *w, struct place *place)
{
    must(place->phase == WAITING);
    check_grant(w, place);
    place->session = place->client->core.session.id;
    place->phase = GRANTED;
    place->suspect = place->contender.machine.suspect;
}

static void on_failed(struct place *place, const struct zkl_notification *news)
{
    must(place->phase == WAITING);
    if (!may_fail_with(place, news->code))
        wrong("a lock failed for no reason: %d", news->code);
    place->phase = ANSWERED;
}

static void on_released(struct place *place, const struct zkl_notification *news)
{
    must(place->phase == UNLOCKING);
    must((news->code == ZKL_ELOST) == place->lost);
    check_unlocked(place->client->world, &place->unlocked, news->code);
    place->phase = ANSWERED;
}

static void on_state(struct world *w, struct place *place, const struct zkl_notification *news)
{
    must(place->phase == GRANTED || place->phase == UNLOCKING || place->phase == ORPHANED);
    must(!place->lost);
    if (news->state == ZKL_HOLD_LOST) {
        place->lost = true;
        check_loss(w, place, news->reason);
    } else if (news->state == ZKL_HOLD_REVOKE_REQUESTED) {
        must(!place->revoked);
        place->revoked = true;
    } else {
        check_state(w, place->suspect, news);
        place->suspect = news->state == ZKL_HOLD_SUSPECT;
    }
}

/* For a place that takes turns: the owner's phase changes here, before the rest sees the news. */
static void local_queue_notification(struct place *place, const struct zkl_notification *news)
{
    struct owner *o = place->owner;
    if (news->type == ZKL_NOTIFY_GRANTED) {
        o->phase = GRANTED;
    } else if (news->type == ZKL_NOTIFY_FAILED) {
        must(place->phase == WAITING && may_fail_with(place, news->code));
        place->stop_code = news->code;
        place->owner = NULL;
        place->phase = ANSWERED;
        o->phase = ANSWERED;
    } else if (news->type == ZKL_NOTIFY_RELEASED && !o && place->phase == GRANTED) {
        place->phase = UNLOCKING; /* given up while nobody was in it */
    }
}

/* For a place of readers that is nobody's own: its release says that the last reader is out. */
static void reader_notification(struct place *place, const struct zkl_notification *news)
{
    if (news->type == ZKL_NOTIFY_RELEASED && !place->owner && place->phase == GRANTED)
        place->phase = UNLOCKING;
}

static void permit_notification(struct place *place, const struct zkl_notification *news)
{
    must(place->in_core && news->type != ZKL_NOTIFY_GRANTED && news->type != ZKL_NOTIFY_FAILED);
    if (news->type == ZKL_NOTIFY_ENDED) {
        place->in_core = false;
    } else if (news->type == ZKL_NOTIFY_RELEASED) {
        must(place->phase == UNLOCKING && (news->code == ZKL_ELOST) == place->lost);
        check_unlocked(place->client->world, &place->unlocked, news->code);
    } else if (news->state == ZKL_HOLD_LOST) {
        must(!place->lost);
        place->lost = true;
    } else if (news->state != ZKL_HOLD_REVOKE_REQUESTED) {
        must(!place->lost);
        check_state(place->client->world, place->suspect, news);
        place->suspect = news->state == ZKL_HOLD_SUSPECT;
    }
}

void owners_notification(struct client *c, struct zkl_contender *contender,
                         const struct zkl_notification *news)
{
    struct world *w = c->world;
    struct place *place = place_of(contender);
    must(place->in_core);
    if (place->permit) {
        permit_notification(place, news);
        return;
    }
    if (c->cache.dropped && place->root == 0)
        reader_notification(place, news);
    bool is_local = c->local_queue.given && place->root == 0;
    if (is_local) {
        local_queue_notification(place, news);
        if (news->type == ZKL_NOTIFY_FAILED)
            return;
    }
    switch (news->type) {
    case ZKL_NOTIFY_GRANTED:
        on_granted(w, place);
        break;
    case ZKL_NOTIFY_FAILED:
        on_failed(place, news);
        break;
    case ZKL_NOTIFY_RELEASED:
        on_released(place, news);
        break;
    case ZKL_NOTIFY_STATE:
        on_state(w, place, news);
        break;
    case ZKL_NOTIFY_ENDED:
        must(place->phase == ANSWERED || place->phase == ORPHANED);
        place->in_core = false;
        break;
    }
}

/* --- local queues --------------------------------------------------------- */

/* First come, first served. */
static void check_first(const struct client *c, const struct owner *first)
{
    for (int i = 0; i < c->world->owner_count; i++) {
        const struct owner *o = &c->world->owners[i];
        must(o == first || o->client != c || o->part->kind != PART_TURN || !o->turn.waits ||
             o->tickets > first->tickets);
    }
}

static void place_begin(struct place *place, struct owner *o)
{
    struct client *c = place->client;
    int root = place->root;
    bool permit = place->permit;
    *place = (struct place){
        .client = c, .owner = o, .root = root, .permit = permit, .phase = WAITING, .in_core = true};
}

static void turn_queues(struct zkl_local_queue *local_queue, struct zkl_local_waiter *turn)
{
    struct owner *o = (struct owner *)turn;
    if (of_local_queue(local_queue)->dead)
        return;
    check_first(o->client, o);
    place_begin(o->place, o);
}

static void have(struct owner *o, struct place *place)
{
    must(place->owner == NULL && place->in_core);
    if (o->place != place)
        o->place->owner = NULL; /* what it brought is of no use */
    o->place = place;
    place->owner = o;
    o->phase = GRANTED;
}

/* A turn is given only with a lock that is surely held, without a lease, and that nobody asked
 * for. While others queue this happens at most handoffs_max times in a row. */
static void turn_given(struct zkl_local_queue *local_queue, struct zkl_local_waiter *turn)
{
    struct place *place = place_of(turn->given);
    const struct zkl_contender_machine *m = &turn->given->machine;
    must(m->state == ZKL_CONTENDER_HOLDING && !m->suspect && !m->revoked && m->lease_end_boot == 0);
    must(is_proved(place->client, &place->contender) && !place->lost);
    must(!m->contended || ++place->handed <= local_queue->handoffs_max);
    check_first(of_local_queue(local_queue), (struct owner *)turn);
    have((struct owner *)turn, place);
}

static void turn_dropped(struct zkl_local_queue *local_queue, struct zkl_contender *contender)
{
    (void)local_queue;
    must(place_of(contender)->owner == NULL);
}

static struct place *free_place(struct client *c)
{
    struct world *w = c->world;
    for (int i = 0; i < w->place_count; i++) {
        struct place *place = &w->places[i];
        if (place->client == c && place->phase == IDLE && !place->owner && !place->permit)
            return place;
    }
    wrong("no place is free");
}

static void turn_start(struct owner *o, const struct zkl_lock_request *lock_request)
{
    struct client *c = o->client;
    o->place = free_place(c);
    o->place->owner = o;
    o->turn =
        (struct zkl_local_waiter){.contender = &o->place->contender, .lock_request = *lock_request};
    o->turn.lock_request.retained = c->local_queue.retain_ns > 0;
    o->tickets = ++c->tickets;
    o->phase = WAITING;
    enum zkl_local_queue_answer answer =
        zkl_local_queue_join(&c->core, now_of(c), &c->local_queue, &o->turn, false);
    if (answer == ZKL_LOCAL_QUEUE_BUSY) {
        o->phase = ANSWERED;
        o->place->owner = NULL;
    }
    if (answer == ZKL_LOCAL_QUEUE_GIVEN)
        have(o, place_of(o->turn.given));
}

static void turn_unlock(struct owner *o, bool exits)
{
    struct client *c = o->client;
    struct place *place = o->place;
    struct zkl_time now = now_of(c);
    o->phase = ANSWERED;
    place->owner = NULL;
    if (exits) {
        place->phase = ORPHANED;
        zkl_core_abandon(&c->core, now, &place->contender, ZKL_REASON_OWNER_EXITED);
        return;
    }
    struct unlocked unlocked = check_unlock(place->client, &place->contender, place->deleted_guid);
    if (zkl_local_queue_pass(&c->core, now, &c->local_queue, &place->contender)) {
        check_unlocked(c->world, &unlocked, ZKL_OK);
    } else {
        place->phase = UNLOCKING;
        place->unlocked = unlocked;
        zkl_core_release(&c->core, now, &place->contender);
    }
}

static void turn_stop(struct owner *o)
{
    struct client *c = o->client;
    if (o->turn.waits) {
        zkl_local_queue_leave(&c->local_queue, &o->turn);
        o->place->owner = NULL;
        o->phase = ANSWERED;
    } else {
        o->place->stop_code = ZKL_ETIMEDOUT;
        zkl_core_stop(&c->core, now_of(c), &o->place->contender, ZKL_ETIMEDOUT);
    }
    must(o->phase != WAITING);
}

/* --- readers of one node -------------------------------------------------- */

static void reader_dropped(struct zkl_read_cache *cache, struct zkl_contender *contender)
{
    const struct client *c = (struct client *)((char *)cache - offsetof(struct client, cache));
    for (int i = 0; !c->dead && i < c->world->owner_count; i++)
        must(c->world->owners[i].client != c || !c->world->owners[i].inside);
    must(c->dead || place_of(contender)->owner == NULL);
}

static void reader_is_in(struct owner *o)
{
    o->place = place_of(o->client->cache.holder);
    o->inside = true;
    o->phase = GRANTED;
}

static bool reader_enters(struct owner *o)
{
    struct client *c = o->client;
    atomic_store(&c->fresh_until_boot, zkl_proof_fresh_until(&c->core.session.proof));
    int64_t until = zkl_read_gate_enter(&c->cache.gate, &c->fresh_until_boot);
    if (now_of(c).boot_ns < until) {
        reader_is_in(o);
        must(o->place->phase == GRANTED && !o->place->lost &&
             is_proved(o->client, &o->place->contender));
        must(!o->place->revoked && zkl_core_connected(&c->core)); /* as far as it has heard */
        return true;
    }
    if (zkl_read_gate_leave(&c->cache.gate))
        zkl_read_cache_left(&c->core, now_of(c), &c->cache);
    return false;
}

static void reader_start(struct owner *o, struct zkl_lock_request *lock_request)
{
    struct client *c = o->client;
    if (reader_enters(o))
        return;
    lock_request->naming.role = ZKL_ROLE_READ;
    lock_request->retained = c->cache.state == ZKL_READ_CACHE_EMPTY;
    o->place = free_place(c);
    place_begin(o->place, o);
    o->phase = WAITING;
    zkl_core_acquire(&c->core, now_of(c), &o->place->contender, lock_request);
}

/* The wait is over. The reader's node becomes that of all readers, if that may be. */
static void reader_decided(struct owner *o)
{
    struct client *c = o->client;
    struct place *place = o->place;
    if (place->phase != GRANTED) {
        o->phase = ANSWERED;
        place->owner = NULL;
        return;
    }
    o->phase = GRANTED;
    if (!place->contender.machine.lock_request.retained ||
        !zkl_read_cache_open(&c->core, now_of(c), &c->cache, &place->contender))
        return;
    place->owner = NULL;
    reader_is_in(o);
}

static void reader_unlock(struct owner *o, bool exits)
{
    struct client *c = o->client;
    struct place *place = o->place;
    o->phase = ANSWERED;
    struct unlocked unlocked = check_unlock(place->client, &place->contender, place->deleted_guid);
    if (o->inside) {
        o->inside = false;
        check_unlocked(c->world, &unlocked,
                       place->lost ? ZKL_ELOST : (unlocked.proved ? ZKL_OK : ZKL_EDOUBT));
        if (zkl_read_gate_leave(&c->cache.gate))
            zkl_read_cache_left(&c->core, now_of(c), &c->cache);
        return;
    }
    place->owner = NULL;
    place->phase = exits ? ORPHANED : UNLOCKING;
    place->unlocked = unlocked;
    if (exits)
        zkl_core_abandon(&c->core, now_of(c), &place->contender, ZKL_REASON_OWNER_EXITED);
    else
        zkl_core_release(&c->core, now_of(c), &place->contender);
}

/* --- permits -------------------------------------------------------------- */

static void permits_told(struct zkl_bundle *bundle, const struct zkl_notification *news)
{
    struct owner *o = ((struct place *)bundle->members[1].contender)->owner;
    if (o->client->dead)
        return;
    must(!o->over);
    if (news->type == ZKL_NOTIFY_ENDED) {
        must(o->phase != WAITING);
        o->over = true;
        return;
    }
    must(o->phase == WAITING);
    bool granted = news->type == ZKL_NOTIFY_GRANTED;
    bool refused = o->part->try_only && (news->code == ZKL_EBUSY || news->code == ZKL_EUNPROVED);
    must(granted || refused || news->code == ZKL_ETIMEDOUT);
    o->phase = granted ? GRANTED : ANSWERED;
    for (int i = 0; granted && i < o->part->count; i++) {
        o->place[i].phase = GRANTED;
        o->place[i].in_core = true; /* by itself, from here on */
        o->place[i].suspect = o->place[i].contender.machine.suspect;
    }
    if (granted && !o->part->try_only) {
        must(o->permits->gate.machine.czxid > o->client->world->last_gate);
        o->client->world->last_gate = o->permits->gate.machine.czxid;
    }
}

static void permits_start(struct owner *o, const struct zkl_lock_request *lock_request)
{
    struct client *c = o->client;
    o->phase = WAITING;
    o->over = false;
    for (int i = 0; i < o->part->count; i++) {
        place_begin(&o->place[i], o);
        o->place[i].in_core = false;
    }
    if (!c->world->bounds->scenario->unsaid)
        c->view.permits = c->world->bounds->scenario->permits;
    struct permits *permits = o->permits;
    *permits = (struct permits){.bundle = {.members = permits->members,
                                           .count = 1 + (size_t)o->part->count,
                                           .gated = true,
                                           .told = permits_told}};
    permits->members[0] =
        (struct zkl_bundle_member){.contender = &permits->gate,
                                   .lock_request = {.path = &c->gate, .data = lock_request->data}};
    for (int i = 0; i < o->part->count; i++) {
        struct zkl_bundle_member *member = &permits->members[1 + i];
        *member = (struct zkl_bundle_member){.contender = &o->place[i].contender,
                                             .lock_request = *lock_request};
        member->lock_request.path = &c->paths[LEASES];
        member->lock_request.quota.view = &c->view;
        member->lock_request.naming.role = ZKL_ROLE_PERMIT;
    }
    zkl_bundle_acquire(&c->core, now_of(c), &permits->bundle);
}

static void permits_release(struct owner *o)
{
    struct client *c = o->client;
    for (int i = 0; i < o->part->count; i++) {
        struct place *permit = &o->place[i];
        permit->phase = UNLOCKING;
        permit->unlocked = check_unlock(permit->client, &permit->contender, permit->deleted_guid);
        if (permit->in_core)
            zkl_core_release(&c->core, now_of(c), &permit->contender);
    }
    o->phase = ANSWERED;
}

int owner_permits_out(const struct owner *o)
{
    int out = 0;
    for (int i = 0; o->part->kind == PART_PERMITS && o->phase == GRANTED && i < o->part->count;
         i++) {
        const struct place *permit = &o->place[i];
        bool deleted = strcmp(permit->deleted_guid, permit->contender.machine.guid) == 0;
        out += permit->in_core && !permit->lost && !deleted &&
               is_proved(permit->client, &permit->contender);
    }
    return out;
}

/* --- several together ----------------------------------------------------- */

static void multi_start(struct owner *o, const struct zkl_lock_request *lock_request)
{
    struct client *c = o->client;
    c->group = (struct zkl_bundle){.members = c->members, .count = (size_t)o->part->count};
    for (int i = 0; i < o->part->count; i++) {
        struct place *place = &o->place[i];
        place_begin(place, o);
        c->members[i] = (struct zkl_bundle_member){.contender = &place->contender,
                                                   .lock_request = *lock_request};
        c->members[i].lock_request.path = &c->paths[place->root];
        c->members[i].lock_request.views = true;
        c->paths[place->root].view.calm = true; /* a hint, which may be wrong */
    }
    o->phase = WAITING;
    zkl_bundle_acquire(&c->core, now_of(c), &c->group);
}

static void multi_release(struct owner *o)
{
    struct client *c = o->client;
    size_t n = 0;
    for (int i = 0; i < o->part->count; i++) {
        struct place *place = &o->place[i];
        if (place->phase != GRANTED)
            continue;
        place->phase = UNLOCKING;
        place->unlocked = check_unlock(place->client, &place->contender, place->deleted_guid);
        o->members[n++] = &place->contender;
    }
    o->phase = UNLOCKING;
    if (n > 0)
        zkl_bundle_release(&c->core, now_of(c), o->members, n);
}

/* --- queries -------------------------------------------------------------- */

static void query_answered(struct zkl_query *query, int code, const struct zkl_reply *reply)
{
    struct owner *o = (struct owner *)((char *)query - offsetof(struct owner, query));
    must(reply != NULL || o->client->dead || code != 0);
    o->phase = ANSWERED;
}

/* --- what they do --------------------------------------------------------- */

static const struct owner *writer_of(const struct owner *o)
{
    return o->part->downgrade_from ? &o->client->world->owners[o->part->downgrade_from - 1] : NULL;
}

static struct owner *reader_of(const struct owner *o)
{
    struct world *w = o->client->world;
    for (int i = 0; i < w->owner_count; i++) {
        if (writer_of(&w->owners[i]) == o)
            return &w->owners[i];
    }
    return NULL;
}

bool owner_is_done(const struct owner *o)
{
    const struct owner *writer = writer_of(o);
    if (o->client->dead)
        return true;
    bool idle = o->part->kind == PART_LOCK ? o->place->phase == IDLE : o->phase == IDLE;
    return idle &&
           (o->cycles >= o->part->cycles || (writer && writer->cycles >= writer->part->cycles));
}

bool owner_may_start(const struct owner *o)
{
    const struct owner *writer = writer_of(o);
    bool idle = o->part->kind == PART_LOCK ? o->place->phase == IDLE : o->phase == IDLE;
    return !o->client->dead && idle && o->cycles < o->part->cycles &&
           (!writer || (writer->place->phase == GRANTED && writer->place->in_core));
}

void owner_start(struct owner *o)
{
    const struct part *part = o->part;
    struct client *c = o->client;
    struct world *w = c->world;
    struct zkl_lock_request lock_request = {
        .path = &c->paths[part->root],
        .data = "owner",
        .naming.role = part->role,
        .try_only = part->try_only,
        .try_sync = part->try_sync,
        .try_behind_retained = w->bounds->scenario->retain_ms > 0,
        .posted = part->posted,
        .watch_own = part->watch_own,
        .lease_ns = part->leases * w->bounds->scenario->lease_ms * MS,
        .unlisted = part->unlisted,
        .views = part->unlisted};
    const struct owner *writer = writer_of(o);
    switch (part->kind) {
    case PART_LOCK:
        place_begin(o->place, o);
        if (writer) {
            memcpy(o->place->writer_guid, writer->place->contender.machine.guid,
                   sizeof o->place->writer_guid);
            lock_request.downgrade_from = &writer->place->contender;
        }
        zkl_core_acquire(&c->core, time_of(w), &o->place->contender, &lock_request);
        break;
    case PART_MULTI:
        multi_start(o, &lock_request);
        break;
    case PART_TURN:
        turn_start(o, &lock_request);
        break;
    case PART_READER:
        reader_start(o, &lock_request);
        break;
    case PART_PERMITS:
        permits_start(o, &lock_request);
        break;
    case PART_QUERY:
        o->phase = WAITING;
        o->query = (struct zkl_query){
            .kind = part->query, .path = root_paths[part->root], .answered = query_answered};
        zkl_core_query(&c->core, time_of(w), &o->query);
        break;
    }
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
    if (o->client->dead)
        return false;
    if (o->part->kind == PART_LOCK)
        return o->place->phase == GRANTED && !is_awaited(o);
    if (o->part->kind == PART_MULTI)
        return o->phase == WAITING && o->client->group.state == ZKL_BUNDLE_GRANTED;
    return o->phase == GRANTED;
}

void owner_unlock(struct owner *o)
{
    struct client *c = o->client;
    if (o->part->kind == PART_TURN) {
        turn_unlock(o, false);
    } else if (o->part->kind == PART_READER) {
        reader_unlock(o, false);
    } else if (o->part->kind == PART_MULTI) {
        multi_release(o);
    } else if (o->part->kind == PART_PERMITS) {
        permits_release(o);
    } else {
        o->place->phase = UNLOCKING;
        o->place->unlocked =
            check_unlock(o->place->client, &o->place->contender, o->place->deleted_guid);
        zkl_core_release(&c->core, now_of(c), &o->place->contender);
    }
}

bool owner_may_stop(const struct owner *o)
{
    if (o->client->dead)
        return false;
    if (o->part->kind == PART_LOCK)
        return o->place->phase == WAITING;
    if (o->part->kind == PART_MULTI)
        return o->phase == WAITING && o->client->group.state == ZKL_BUNDLE_TAKING;
    return o->phase == WAITING;
}

void owner_stop(struct owner *o)
{
    struct client *c = o->client;
    struct zkl_time now = now_of(c);
    switch (o->part->kind) {
    case PART_LOCK:
    case PART_READER:
        o->place->stop_code = ZKL_ETIMEDOUT;
        zkl_core_stop(&c->core, now, &o->place->contender, ZKL_ETIMEDOUT);
        must(o->place->phase != WAITING);
        break;
    case PART_MULTI:
        for (int i = 0; i < o->part->count; i++)
            o->place[i].stop_code = ZKL_ETIMEDOUT;
        zkl_bundle_stop(&c->core, now, &c->group, ZKL_ETIMEDOUT);
        must(c->group.state != ZKL_BUNDLE_TAKING);
        break;
    case PART_TURN:
        turn_stop(o);
        break;
    case PART_PERMITS:
        zkl_bundle_stop(&c->core, now, &o->permits->bundle, ZKL_ETIMEDOUT);
        must(o->phase != WAITING);
        break;
    case PART_QUERY:
        zkl_core_withdraw(&c->core, now, &o->query);
        o->phase = ANSWERED;
        break;
    }
}

void owner_exit(struct owner *o)
{
    if (o->part->kind == PART_TURN) {
        turn_unlock(o, true);
        return;
    }
    if (o->part->kind == PART_READER) {
        reader_unlock(o, true);
        return;
    }
    o->place->phase = ORPHANED;
    zkl_core_abandon(&o->client->core, now_of(o->client), &o->place->contender,
                     ZKL_REASON_OWNER_EXITED);
}

void owner_renew(struct owner *o)
{
    struct world *w = o->client->world;
    (void)zkl_core_renew(&o->client->core, time_of(w), &o->place->contender,
                         o->part->leases * w->bounds->scenario->lease_ms * MS);
}

/* --- and on --------------------------------------------------------------- */

static bool is_over(const struct place *place)
{
    return !place->in_core && (place->phase == ANSWERED || place->phase == ORPHANED);
}

static void run_several(struct owner *o)
{
    bool over = o->phase != IDLE;
    for (int i = 0; i < o->part->count; i++) {
        struct place *place = &o->place[i];
        if (o->part->kind == PART_MULTI && is_over(place))
            place->phase = IDLE;
        over = over && (o->part->kind == PART_MULTI ? place->phase == IDLE : !place->in_core);
    }
    if (o->part->kind == PART_PERMITS && !(o->phase == ANSWERED && o->over))
        return;
    if (!over)
        return;
    for (int i = 0; i < o->part->count; i++)
        o->place[i].phase = IDLE;
    o->phase = IDLE;
    o->cycles++;
}

static void run_owner(struct owner *o)
{
    if (o->part->kind == PART_MULTI || o->part->kind == PART_PERMITS) {
        run_several(o);
    } else if (o->part->kind == PART_LOCK) {
        if (!is_over(o->place))
            return;
        o->place->phase = IDLE;
        o->cycles++;
    } else if (o->part->kind == PART_READER && o->phase == WAITING && o->place->phase != WAITING) {
        reader_decided(o);
    } else if (o->phase == ANSWERED) {
        o->phase = IDLE;
        o->cycles++;
    }
}

bool client_keeps(const struct client *c)
{
    bool keeps = c->local_queue.given != NULL || c->cache.dropped != NULL;
    for (int i = 0; i < c->world->owner_count; i++)
        keeps = keeps || (c->world->owners[i].client == c && c->world->owners[i].part->unlisted);
    return keeps;
}

void owners_run(struct world *w)
{
    for (int i = 0; i < w->owner_count; i++) {
        if (!w->owners[i].client->dead)
            run_owner(&w->owners[i]);
    }
    for (int i = 0; i < w->place_count; i++) {
        struct place *place = &w->places[i];
        if (!place->owner && !place->client->dead && is_over(place))
            place->phase = IDLE;
    }
    for (int i = 0; i < w->client_count; i++) {
        if (!client_keeps(&w->clients[i]) && client_may_be_freed(&w->clients[i]))
            w->clients[i].freed = true;
    }
}

/* Another client waits for what this one keeps: the core must then notify this one, which must
 * give it up. */
static bool is_wanted(const struct client *c)
{
    const struct world *w = c->world;
    for (int i = 0; i < w->place_count; i++) {
        const struct place *place = &w->places[i];
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
        done = done && (w->owners[i].client != c || owner_is_done(&w->owners[i]));
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

void owners_note_deletion(struct world *w, const char *path)
{
    for (int i = 0; i < w->place_count; i++) {
        struct place *place = &w->places[i];
        const char *guid = place->contender.machine.guid;
        if (place->phase != IDLE && guid[0] && strstr(path, guid))
            memcpy(place->deleted_guid, guid, sizeof place->deleted_guid);
    }
}

void owners_forget(struct client *c)
{
    struct world *w = c->world;
    for (int i = 0; i < w->place_count; i++) {
        if (w->places[i].client == c) {
            w->places[i].phase = IDLE;
            w->places[i].in_core = false;
        }
    }
    for (int i = 0; i < w->owner_count; i++) {
        if (w->owners[i].client == c)
            w->owners[i].phase = IDLE;
    }
}

/* --- the beginning -------------------------------------------------------- */

static struct place *add_places(struct client *c, int count, int root, bool permits)
{
    struct world *w = c->world;
    struct place *first = &w->places[w->place_count];
    w->place_count += count;
    for (int i = 0; i < count; i++)
        first[i] = (struct place){.client = c, .root = permits ? LEASES : root, .permit = permits};
    return first;
}

static void begin(struct owner *o)
{
    struct client *c = o->client;
    const struct part *part = o->part;
    switch (part->kind) {
    case PART_LOCK:
        o->place = add_places(c, 1, part->root, false);
        o->place->owner = o;
        break;
    case PART_MULTI:
        o->place = add_places(c, part->count, part->root, false);
        for (int i = 0; i < part->count; i++) {
            o->place[i].root = part->root + i;
            o->place[i].owner = o;
        }
        break;
    case PART_TURN:
        (void)add_places(c, 2, part->root, false);
        c->local_queue.handoffs_max = (unsigned)c->world->bounds->scenario->handoffs_max;
        c->local_queue.retain_ns = c->world->bounds->scenario->retain_ms * MS;
        c->local_queue.queues = turn_queues;
        c->local_queue.given = turn_given;
        c->local_queue.dropped = turn_dropped;
        break;
    case PART_READER:
        (void)add_places(c, 2, part->root, false);
        c->cache.age_ns = c->world->bounds->scenario->retain_ms * MS;
        c->cache.dropped = reader_dropped;
        break;
    case PART_PERMITS:
        o->permits = calloc(1, sizeof *o->permits);
        o->place = add_places(c, part->count, LEASES, true);
        break;
    case PART_QUERY:
        break;
    }
}

static size_t places_of(const struct bounds *bounds)
{
    size_t count = 0;
    for (int i = 0; i < OWNERS; i++) {
        const struct part *part = &bounds->scenario->parts[i];
        count += part->kind == PART_TURN || part->kind == PART_READER ? 2 : 1 + (size_t)part->count;
    }
    return count;
}

void owners_begin(struct world *w)
{
    w->places = calloc(places_of(w->bounds), sizeof *w->places);
    for (int i = 0; i < OWNERS; i++) {
        const struct part *part = &w->bounds->scenario->parts[i];
        if (part->cycles == 0 || part->client >= w->client_count)
            break;
        struct owner *o = &w->owners[w->owner_count++];
        *o = (struct owner){.part = part, .client = &w->clients[part->client]};
        begin(o);
    }
}
