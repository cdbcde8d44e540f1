/* SPDX-License-Identifier: Apache-2.0
 * What owners do: lock, try, take several locks together, take turns, read in one node, take permits; and what
 * they hear. When they do it, and with which options, is decided by others: at random in tests/sim, in every way
 * in tests/explore. An owner is a thread; a place is a contender in its memory, which may go from one owner to
 * another. */
#include "world.h"

static struct place *place_of(struct zkl_contender *contender)
{
    return (struct place *)contender;
}

static struct client *of_local_queue(struct zkl_local_queue *local_queue)
{
    return (struct client *)((char *)local_queue - offsetof(struct client, local_queue));
}

static void place_begin(struct place *place, struct owner *o)
{
    *place = (struct place){.client = place->client,
                            .owner = o,
                            .kind = place->kind,
                            .root = place->root,
                            .phase = WAITING,
                            .in_core = true};
}

/* --- what owners hear ----------------------------------------------------- */

static bool may_fail_with(const struct place *place, int code)
{
    const struct client *c = place->client;
    const struct owner *o = place->owner;
    bool ends_try = code == ZKL_EBUSY || code == ZKL_EUNPROVED;
    if (code == place->stop_code || (ends_try && o->try_only) || may_fail(c, code))
        return true;
    bool writer_ends = o->writer && (is_troubled(c->world) ||
                                     o->writer->place->contender.machine.lease_end_boot != 0);
    return code == ZKL_ELOST && ((o->kind == PART_MULTI && c->group.lost) || writer_ends);
}

static void on_granted(struct world *w, struct place *place)
{
    must(place->phase == WAITING);
    check_granted(place);
    check_grant(w, place);
    place->session = place->client->core.session.id;
    place->phase = GRANTED;
    /* A member of a multi-lock may not have been notified of it. */
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
static void turn_notification(struct place *place, const struct zkl_notification *news)
{
    struct owner *o = place->owner;
    if (news->type == ZKL_NOTIFY_GRANTED) {
        o->phase = GRANTED;
    } else if (news->type == ZKL_NOTIFY_FAILED) {
        on_failed(place, news);
        place->owner = NULL;
        o->phase = ANSWERED;
    }
}

static void permit_notification(struct place *place, const struct zkl_notification *news)
{
    must(news->type != ZKL_NOTIFY_GRANTED && news->type != ZKL_NOTIFY_FAILED);
    if (news->type == ZKL_NOTIFY_ENDED) {
        place->in_core = false;
    } else if (news->type == ZKL_NOTIFY_RELEASED) {
        on_released(place, news);
        place->phase = UNLOCKING; /* until the others are, too */
    } else if (news->state != ZKL_HOLD_REVOKE_REQUESTED) {
        on_state(place->client->world, place, news);
    }
}

void owners_notification(struct client *c, struct zkl_contender *contender,
                         const struct zkl_notification *news)
{
    struct world *w = c->world;
    struct place *place = place_of(contender);
    bool takes_turns = place->kind == PART_TURN || place->kept;
    must(place->in_core);
    note_news(c, place, news);
    if (place->kind == PART_PERMITS) {
        permit_notification(place, news);
        return;
    }
    /* Given up while nobody was in it; or the last reader is out. */
    if (news->type == ZKL_NOTIFY_RELEASED && (takes_turns || place->kind == PART_READER) &&
        !place->owner && place->phase == GRANTED)
        place->phase = UNLOCKING;
    if (takes_turns)
        turn_notification(place, news);
    switch (news->type) {
    case ZKL_NOTIFY_GRANTED:
        on_granted(w, place);
        break;
    case ZKL_NOTIFY_FAILED:
        if (!takes_turns)
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

/* --- one place ------------------------------------------------------------ */

void place_unlock(struct place *place)
{
    place->phase = UNLOCKING;
    place->unlocked = check_unlock(place);
    if (place->in_core)
        zkl_core_release(core_of(place->client), now_of(place->client), &place->contender);
}

void place_exit(struct place *place)
{
    place->phase = ORPHANED;
    zkl_core_abandon(core_of(place->client), now_of(place->client), &place->contender,
                     ZKL_REASON_OWNER_EXITED);
}

struct place *free_place(const struct client *c, enum part_kind kind)
{
    struct world *w = c->world;
    each_place(w, place) {
        if (place->client == c && place->kind == kind && place->phase == IDLE && !place->owner)
            return place;
    }
    return NULL;
}

/* --- local queues --------------------------------------------------------- */

/* First come, first served. */
static void check_first(const struct client *c, const struct owner *first)
{
    each_owner(c->world, o) {
        must(o == first || o->client != c || o->kind != PART_TURN || !o->turn.waits ||
             o->tickets > first->tickets);
    }
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
    must(is_proved(place) && !place->lost);
    must(!m->contended || ++place->handed <= local_queue->handoffs_max);
    check_first(of_local_queue(local_queue), (struct owner *)turn);
    have((struct owner *)turn, place);
}

static void turn_dropped(struct zkl_local_queue *local_queue, struct zkl_contender *contender)
{
    (void)local_queue;
    must(place_of(contender)->owner == NULL);
}

static void turn_start(struct owner *o, const struct zkl_lock_request *lock_request)
{
    struct client *c = o->client;
    o->place = free_place(c, PART_TURN);
    must(o->place);
    o->place->owner = o;
    o->turn =
        (struct zkl_local_waiter){.contender = &o->place->contender, .lock_request = *lock_request};
    o->turn.lock_request.retained = c->local_queue.retain_ns > 0;
    o->tickets = ++c->tickets * (o->ahead ? -1 : 1);
    o->phase = WAITING;
    enum zkl_local_queue_answer answer =
        zkl_local_queue_join(core_of(c), now_of(c), &c->local_queue, &o->turn, o->ahead);
    if (answer == ZKL_LOCAL_QUEUE_BUSY) {
        o->phase = ANSWERED;
        o->place->owner = NULL;
    }
    if (answer == ZKL_LOCAL_QUEUE_GIVEN)
        have(o, place_of(o->turn.given));
}

/* Handed on, or kept with nobody in it? */
static bool turn_passes(struct place *place)
{
    struct client *c = place->client;
    struct owner *o = place->owner;
    struct unlocked unlocked = check_unlock(place);
    place->owner = NULL; /* before anything is heard of it */
    if (zkl_local_queue_pass(core_of(c), now_of(c), &c->local_queue, &place->contender)) {
        check_unlocked(c->world, &unlocked, ZKL_OK);
        return true;
    }
    place->owner = o;
    place->unlocked = unlocked;
    return false;
}

bool place_keep(struct place *place)
{
    place->kept = true;
    place->kept = turn_passes(place);
    return place->kept;
}

static void turn_unlock(struct owner *o)
{
    struct client *c = o->client;
    struct place *place = o->place;
    o->phase = ANSWERED;
    if (turn_passes(place))
        return;
    place->owner = NULL;
    place->phase = UNLOCKING;
    zkl_core_release(core_of(c), now_of(c), &place->contender);
}

static void turn_stop(struct owner *o, int code)
{
    struct client *c = o->client;
    if (o->turn.waits) {
        zkl_local_queue_leave(&c->local_queue, &o->turn);
        o->place->owner = NULL;
        o->phase = ANSWERED;
    } else {
        o->place->stop_code = code;
        zkl_core_stop(core_of(c), now_of(c), &o->place->contender, code);
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

/* A thread of this client wants to write. */
static bool is_writing(const struct client *c, int root)
{
    bool any = false;
    each_owner(c->world, o) {
        any = any || (o->client == c && o->kind == PART_LOCK && o->place->phase == WAITING &&
                      o->place->root == root &&
                      o->place->contender.machine.lock_request.naming.role == ZKL_ROLE_WRITE);
    }
    return any;
}

static void reader_is_in(struct owner *o)
{
    o->place = place_of(o->client->cache.holder);
    o->inside = true;
    o->phase = GRANTED;
}

static void reader_leaves(struct client *c)
{
    if (zkl_read_gate_leave(&c->cache.gate))
        zkl_read_cache_left(core_of(c), now_of(c), &c->cache);
}

static bool reader_enters(struct owner *o)
{
    struct client *c = o->client;
    atomic_store(&c->fresh_until_boot, zkl_proof_fresh_until(&c->core.session.proof));
    int64_t until = zkl_read_gate_enter(&c->cache.gate, &c->fresh_until_boot);
    if (now_of(c).boot_ns >= until) {
        reader_leaves(c);
        return false;
    }
    reader_is_in(o);
    must(o->place->phase == GRANTED && !o->place->lost && is_proved(o->place));
    must(!o->place->contender.machine.revoked && zkl_core_connected(&c->core));
    if (is_writing(c, o->place->root))
        wrong("a reader comes in before a writer of its own handle");
    reader_came_in(c);
    return true;
}

static void reader_start(struct owner *o, struct zkl_lock_request *lock_request)
{
    struct client *c = o->client;
    if (reader_enters(o))
        return;
    lock_request->naming.role = ZKL_ROLE_READ;
    lock_request->retained = c->cache.state == ZKL_READ_CACHE_EMPTY;
    o->place = free_place(c, PART_READER);
    must(o->place);
    place_begin(o->place, o);
    o->phase = WAITING;
    zkl_core_acquire(core_of(c), now_of(c), &o->place->contender, lock_request);
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
    if (!place->contender.machine.lock_request.retained || is_writing(c, place->root) ||
        !zkl_read_cache_open(core_of(c), now_of(c), &c->cache, &place->contender))
        return;
    place->owner = NULL;
    reader_is_in(o);
    readers_node_opened(c);
}

static void reader_unlock(struct owner *o, bool exits)
{
    struct place *place = o->place;
    o->phase = ANSWERED;
    if (o->inside) {
        struct unlocked unlocked = check_unlock(place);
        o->inside = false;
        check_unlocked(o->client->world, &unlocked,
                       place->lost ? ZKL_ELOST : (unlocked.proved ? ZKL_OK : ZKL_EDOUBT));
        reader_leaves(o->client);
        return;
    }
    place->owner = NULL;
    if (exits)
        place_exit(place);
    else
        place_unlock(place);
}

/* --- permits -------------------------------------------------------------- */

static void permits_told(struct zkl_bundle *bundle, const struct zkl_notification *news)
{
    struct owner *o = place_of(bundle->members[1].contender)->owner;
    struct world *w = o->client->world;
    if (o->client->dead)
        return;
    must(!o->over);
    if (news->type == ZKL_NOTIFY_ENDED) {
        must(o->phase != WAITING);
        o->over = true;
        return;
    }
    must(o->phase == WAITING);
    note_news(o->client, NULL, news);
    if (news->type != ZKL_NOTIFY_GRANTED) {
        if (news->code != o->stop_code && !may_fail_with(o->place, news->code) &&
            !may_fail_for_permits(o->client, news->code))
            wrong("permits failed for no reason: %d", news->code);
        o->phase = ANSWERED;
        return;
    }
    o->phase = GRANTED;
    for (int i = 0; i < o->count; i++) {
        must(o->place[i].contender.machine.state == ZKL_CONTENDER_HOLDING);
        o->place[i].phase = GRANTED;
        o->place[i].in_core = true; /* by itself, from here on */
        o->place[i].suspect = o->place[i].contender.machine.suspect;
    }
    /* First come, first served. */
    if (!order_is_lost(o)) {
        must(o->permits->gate.machine.czxid > w->last_gate);
        w->last_gate = o->permits->gate.machine.czxid;
    }
    permits_were_granted(o);
}

static void permits_start(struct owner *o, struct zkl_lock_request *lock_request)
{
    struct client *c = o->client;
    int64_t lease_ns = lock_request->lease_ns;
    o->phase = WAITING;
    o->over = false;
    o->stop_code = ZKL_OK;
    lock_request->path = &c->paths[LEASES];
    lock_request->naming.role = ZKL_ROLE_PERMIT;
    lock_request->quota.view = &c->view;
    lock_request->lease_ns = 0;
    struct permits *permits = o->permits;
    *permits = (struct permits){.bundle = {.members = permits->members,
                                           .count = 1 + (size_t)o->count,
                                           .gated = true,
                                           .lease_ns = lease_ns,
                                           .told = permits_told}};
    permits->members[0] =
        (struct zkl_bundle_member){.contender = &permits->gate,
                                   .lock_request = {.path = &c->gate, .data = lock_request->data}};
    for (int i = 0; i < o->count; i++) {
        place_begin(&o->place[i], o);
        o->place[i].in_core = false;
        permits->members[1 + i] = (struct zkl_bundle_member){.contender = &o->place[i].contender,
                                                             .lock_request = *lock_request};
    }
    zkl_bundle_acquire(core_of(c), now_of(c), &permits->bundle);
}

int permits_out(const struct world *w)
{
    int out = 0;
    each_place(w, p) {
        bool is_out = p->kind == PART_PERMITS && p->phase == GRANTED && p->in_core && !p->lost &&
                      !p->client->dead && strcmp(p->deleted_guid, p->contender.machine.guid) != 0 &&
                      is_proved(p);
        out += is_out && fake_alive(&w->fake, p->client->core.session.id);
    }
    return out;
}

/* --- several together ----------------------------------------------------- */

static void multi_start(struct owner *o, const struct zkl_lock_request *lock_request)
{
    struct client *c = o->client;
    c->group = (struct zkl_bundle){.members = c->members};
    for (int i = 0; i < o->count; i++) {
        struct place *place = &o->place[i];
        if (o->without >> i & 1)
            continue;
        place_begin(place, o);
        struct zkl_bundle_member *member = &c->members[c->group.count++];
        *member = (struct zkl_bundle_member){.contender = &place->contender,
                                             .lock_request = *lock_request};
        member->lock_request.path = &c->paths[place->root];
        member->lock_request.views = true;
        if (has_roles(place->root))
            member->lock_request.unlisted = false;
        else
            member->lock_request.naming.role = ZKL_ROLE_LOCK;
    }
    o->phase = WAITING;
    zkl_bundle_acquire(core_of(c), now_of(c), &c->group);
}

static void multi_release(struct owner *o)
{
    struct client *c = o->client;
    size_t n = 0;
    each_of(o->place, o->count, place) {
        if (place->phase != GRANTED || place->kept || may_keep(place))
            continue;
        place->phase = UNLOCKING;
        place->unlocked = check_unlock(place);
        o->members[n++] = &place->contender;
    }
    o->phase = UNLOCKING;
    if (n > 0)
        zkl_bundle_release(core_of(c), now_of(c), o->members, n);
}

/* --- what they do --------------------------------------------------------- */

bool owner_is_idle(const struct owner *o)
{
    return (o->kind == PART_LOCK ? o->place->phase : o->phase) == IDLE;
}

static void lock_start(struct owner *o, struct zkl_lock_request *lock_request)
{
    struct client *c = o->client;
    struct place *place = o->place;
    place_begin(place, o);
    if (o->writer) {
        lock_request->downgrade_from = &o->writer->place->contender;
        memcpy(place->writer_guid, lock_request->downgrade_from->machine.guid,
               sizeof place->writer_guid);
    }
    /* The readers of its client make room. */
    if (lock_request->naming.role == ZKL_ROLE_WRITE && c->cache.dropped)
        zkl_read_cache_close(core_of(c), now_of(c), &c->cache);
    zkl_core_acquire(core_of(c), now_of(c), &place->contender, lock_request);
}

void owner_start(struct owner *o, struct zkl_lock_request *lock_request)
{
    o->try_only = lock_request->try_only;
    if (o->kind == PART_LOCK)
        lock_start(o, lock_request);
    else if (o->kind == PART_MULTI)
        multi_start(o, lock_request);
    else if (o->kind == PART_TURN)
        turn_start(o, lock_request);
    else if (o->kind == PART_READER)
        reader_start(o, lock_request);
    else
        permits_start(o, lock_request);
}

bool owner_has_it(const struct owner *o)
{
    if (o->kind == PART_LOCK)
        return o->place->phase == GRANTED;
    if (o->kind == PART_MULTI)
        return o->phase == WAITING && o->client->group.state == ZKL_BUNDLE_GRANTED;
    return o->phase == GRANTED;
}

void owner_unlock(struct owner *o)
{
    if (o->kind == PART_TURN) {
        turn_unlock(o);
    } else if (o->kind == PART_READER) {
        reader_unlock(o, false);
    } else if (o->kind == PART_MULTI) {
        multi_release(o);
    } else if (o->kind == PART_PERMITS) {
        for (int i = 0; i < o->count; i++) {
            if (o->place[i].phase == GRANTED)
                place_unlock(&o->place[i]);
        }
        o->phase = ANSWERED;
    } else {
        place_unlock(o->place);
    }
}

bool owner_may_stop(const struct owner *o)
{
    if (o->client->dead)
        return false;
    if (o->kind == PART_LOCK)
        return o->place->phase == WAITING;
    if (o->kind == PART_MULTI)
        return o->phase == WAITING && o->client->group.state == ZKL_BUNDLE_TAKING;
    return o->phase == WAITING;
}

void owner_stop(struct owner *o, int code)
{
    struct client *c = o->client;
    o->stop_code = code;
    if (o->kind == PART_MULTI) {
        for (int i = 0; i < o->count; i++)
            o->place[i].stop_code = code;
        zkl_bundle_stop(core_of(c), now_of(c), &c->group, code);
        must(c->group.state != ZKL_BUNDLE_TAKING);
    } else if (o->kind == PART_TURN) {
        turn_stop(o, code);
    } else if (o->kind == PART_PERMITS) {
        zkl_bundle_stop(core_of(c), now_of(c), &o->permits->bundle, code);
        must(o->phase != WAITING);
    } else {
        o->place->stop_code = code;
        zkl_core_stop(core_of(c), now_of(c), &o->place->contender, code);
        must(o->place->phase != WAITING);
    }
}

void owner_exit(struct owner *o)
{
    if (o->kind == PART_READER) {
        reader_unlock(o, true);
        return;
    }
    if (o->kind == PART_TURN) {
        o->phase = ANSWERED;
        o->place->owner = NULL;
    }
    place_exit(o->place);
}

void owner_renew(struct owner *o, int64_t lease_ns)
{
    (void)zkl_core_renew(core_of(o->client), now_of(o->client), &o->place->contender, lease_ns);
}

/* --- and on --------------------------------------------------------------- */

static bool is_over(const struct place *place)
{
    return !place->in_core && (place->phase == ANSWERED || place->phase == ORPHANED);
}

static void run_several(struct owner *o)
{
    bool multi = o->kind == PART_MULTI, over = o->phase != IDLE;
    each_of(o->place, o->count, place) {
        if (multi && is_over(place))
            place->phase = IDLE;
        over = over && (multi ? place->phase == IDLE : !place->in_core);
    }
    if (!over || (!multi && !(o->phase == ANSWERED && o->over)))
        return;
    for (int i = 0; i < o->count; i++)
        o->place[i].phase = IDLE;
    o->phase = IDLE;
    o->cycles++;
}

static void run_owner(struct owner *o)
{
    if (o->kind == PART_MULTI || o->kind == PART_PERMITS) {
        run_several(o);
    } else if (o->kind == PART_LOCK) {
        if (!is_over(o->place))
            return;
        o->place->phase = IDLE;
        o->cycles++;
    } else if (o->kind == PART_READER && o->phase == WAITING && o->place->phase != WAITING) {
        reader_decided(o);
    } else if (o->phase == ANSWERED) {
        o->phase = IDLE;
        o->cycles++;
    }
}

void owners_run(struct client *c)
{
    struct world *w = c->world;
    for (int i = 0; i < w->owner_count; i++) {
        if (w->owners[i].client == c)
            run_owner(&w->owners[i]);
    }
    each_place(w, place) {
        if (place->client == c && !place->owner && is_over(place))
            place->phase = IDLE;
    }
}

void owners_note_deletion(struct world *w, const char *path)
{
    each_place(w, place) {
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

void owner_begin(struct owner *o, struct client *c, enum part_kind kind, int count, int root)
{
    struct world *w = c->world;
    bool shared = kind == PART_TURN || kind == PART_READER;
    bool multi = kind == PART_MULTI;
    struct place *first = &w->places[w->place_count];
    *o = (struct owner){.client = c, .kind = kind, .count = count};
    o->place = shared || count == 0 ? NULL : first;
    for (int i = 0; i < count; i++)
        first[i] = (struct place){.client = c,
                                  .kind = kind,
                                  .owner = multi || kind == PART_LOCK ? o : NULL,
                                  .root = root + (multi ? i : 0)};
    w->place_count += count;
    if (kind == PART_TURN) {
        c->local_queue.queues = turn_queues;
        c->local_queue.given = turn_given;
        c->local_queue.dropped = turn_dropped;
    }
    if (kind == PART_READER)
        c->cache.dropped = reader_dropped;
}
