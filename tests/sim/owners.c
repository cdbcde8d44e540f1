/* SPDX-License-Identifier: Apache-2.0
 * When the owners of a process do what tests/owners has, and with which options: all of it is drawn. Owners of
 * mutexes and read-write locks, one of a multi-lock, some that take turns on one node, that read in one node, that
 * take permits. They lock, try, lose patience, renew leases, downgrade, unlock, or exit holding. */
#include "core/unlisted_grant.h"
#include "world.h"

#define FOR_EVER_MS 100000000

/* --- what they hear ------------------------------------------------------- */

void note_news(struct client *c, struct place *place, const struct zkl_notification *news)
{
    struct world *w = c->world;
    bool lost = news->type == ZKL_NOTIFY_STATE && news->state == ZKL_HOLD_LOST;
    w->tally->grants += news->type == ZKL_NOTIFY_GRANTED;
    w->tally->losses += lost;
    if (lost && news->reason == ZKL_REASON_LEASE_ENDED)
        happened(w, SIM_LEASE_ENDED);
    if (lost && news->reason == ZKL_REASON_EXPIRED && !w->wiped)
        place->told_until_boot = c->window_end_boot;
    if (news->type != ZKL_NOTIFY_FAILED)
        return;
    must(news->code < 0 && news->code > -TALLY_CODES);
    say("failed with %d: %s", news->code, news->detail ? news->detail : "");
    w->tally->failures[-news->code]++;
    if (news->code == ZKL_ESYSTEM)
        happened(w, SIM_NO_WATCH);
    if (news->code == ZKL_EFULL)
        happened(w, SIM_NO_ROOM);
}

bool may_be_denied(const struct world *w)
{
    return w->denied || w->fake.rules.eager || w->says_no;
}

bool may_fail(const struct client *c, int code)
{
    const struct world *w = c->world;
    bool says_so = code == ZKL_EQUOTA || code == ZKL_EREADONLY || code == ZKL_EBADPATH ||
                   code == ZKL_EUNIMPLEMENTED;
    return (code == ZKL_EEXHAUSTED && w->foreign_seen) ||
           (code == ZKL_ENOMEM && w->out_of_memory) || (code == ZKL_ESYSTEM && w->few_watches) ||
           (code == ZKL_EFULL && w->few_nodes) || (code == ZKL_ECLOSED && c->closed) ||
           (code == ZKL_EAUTH && c->refused) || (code == ZKL_EACCES && may_be_denied(w)) ||
           (says_so && w->says_no);
}

bool may_answer(const struct world *w, enum zkl_answer answer)
{
    return answer == ZKL_ANSWER_NOMEM  ? w->out_of_memory
           : answer == ZKL_ANSWER_FULL ? w->few_watches
                                       : w->says_no;
}

/* --- whether they begin --------------------------------------------------- */

static int number_of(const struct owner *o)
{
    return (int)(o - o->client->world->owners) % OWNERS_EACH;
}

/* Some hold of the write lock, by the same process; its owner, a thread, now asks for the read lock
 * too. */
static struct owner *some_writer(const struct client *c)
{
    each_of(c->owners, LOCKERS, o) {
        if (owner_has_it(o) && o->place->in_core &&
            o->place->contender.machine.lock_request.naming.role == ZKL_ROLE_WRITE)
            return o;
    }
    return NULL;
}

static bool is_busy(const struct owner *writer)
{
    each_of(writer->client->owners, LOCKERS, o) {
        if (o->writer == writer && owner_may_stop(o))
            return true;
    }
    return false;
}

static bool is_lonely(struct world *w)
{
    return w->lonely && !chance(w, 12);
}

/* In a lonely world the first one only, mostly; or those of the first process. Beside a writer soon: it may be a
 * downgrade, which is rare. */
static bool locker_begins(const struct owner *o)
{
    struct world *w = o->client->world;
    bool at_first = o->client == w->clients, first = number_of(o) == 0;
    bool is_one = w->grouped ? at_first && (first || !chance(w, 3)) : first;
    bool stays = !is_one && is_lonely(w);
    return chance(w, some_writer(o->client) || w->grouped ? 2 : w->lonely ? 4 : 8) && !stays;
}

/* If there are no other processes, the threads of one process are often alone. */
static unsigned turns_once_in(const struct client *c)
{
    if (c->world->local_queue_root != LOCAL_QUEUE_ROOT)
        return 4;
    return name_of(c) > 0 ? 100 : 15;
}

static bool begins(const struct owner *o)
{
    struct client *c = o->client;
    struct world *w = c->world;
    if (!proc_is_lively(c))
        return false;
    if (o->kind == PART_LOCK)
        return locker_begins(o);
    if (o->kind == PART_TURN)
        return w->local_queue && chance(w, turns_once_in(c)) && free_place(c, o->kind);
    if (o->kind == PART_READER)
        return w->readers && chance(w, 2) && free_place(c, o->kind);
    return (o->kind == PART_MULTI || w->semaphores) && chance(w, 8);
}

/* --- what they ask for ---------------------------------------------------- */

static int choose_root(const struct owner *o)
{
    struct client *c = o->client;
    struct world *w = c->world;
    static const int own[LOCKERS] = {0, 2, LOCAL_QUEUE_ROOT, 0};
    if (w->grouped && !chance(w, 12))
        return c == w->clients ? own[number_of(o)] : RW_ROOT;
    if (w->in_rows ? !chance(w, 12) : is_lonely(w))
        return name_of(c) % 2 == 0 ? 0 : 2; /* without the read-write lock: two are rivals */
    if ((w->many_writers || some_writer(c)) && !chance(w, 3))
        return RW_ROOT;
    bool keeps_away = w->readers && !chance(w, 6); /* so that readers come and go for a while */
    return keeps_away ? (rnd(w, 2) == 0 ? 0 : 2) : (int)rnd(w, ROOTS);
}

static void choose_lock(struct owner *o, struct zkl_lock_request *lock_request)
{
    struct world *w = o->client->world;
    struct owner *writer = some_writer(o->client);
    int root = o->place->root = choose_root(o);
    lock_request->path = &o->client->paths[root];
    lock_request->views = true;
    o->writer = NULL;
    if (root != RW_ROOT) {
        lock_request->unlisted = !chance(w, 8);
        return;
    }
    bool reads = writer || chance(w, w->many_writers ? 8 : 2);
    lock_request->naming.role = reads ? ZKL_ROLE_READ : ZKL_ROLE_WRITE;
    if (!writer || chance(w, 6))
        return;
    happened(w, SIM_DOWNGRADE);
    o->writer = writer;
}

static void choose_members(struct owner *o, struct zkl_lock_request *lock_request)
{
    struct world *w = o->client->world;
    o->without = 0;
    for (int i = 0; i < ROOTS; i++) {
        o->without |= (unsigned)chance(w, 4) << i;
        o->client->paths[i].view.calm |= chance(w, 2); /* a hint, which may be wrong */
    }
    o->without %= (1U << ROOTS) - 1; /* not all of them */
    lock_request->unlisted = true;
    lock_request->naming.role = chance(w, 2) ? ZKL_ROLE_READ : ZKL_ROLE_WRITE;
    happened(w, SIM_MULTI);
}

static void start(struct owner *o)
{
    static const char *const what[] = {[PART_LOCK] = "locks",
                                       [PART_MULTI] = "locks several",
                                       [PART_TURN] = "joins",
                                       [PART_READER] = "reads",
                                       [PART_PERMITS] = "acquires permits"};
    struct client *c = o->client;
    struct world *w = c->world;
    struct zkl_lock_request lock_request = {.path = &c->paths[w->local_queue_root],
                                            .data = "owner",
                                            .try_only = chance(w, 5),
                                            .try_sync = chance(w, 2),
                                            .try_behind_retained = w->local_queue || w->readers,
                                            .watch_own = chance(w, 3),
                                            .posted = chance(w, 4)};
    if (o->kind != PART_READER && chance(w, 6))
        lock_request.lease_ns = (1 + rnd(w, 100)) * MS;
    o->holds = false;
    o->until_ms = chance(w, 3) ? w->fake.now_ms + rnd(w, 400) : INT64_MAX;
    if (o->kind == PART_READER)
        o->until_ms = w->fake.now_ms + rnd(w, 100);
    if (lock_request.try_only)
        happened(w, SIM_TRY);
    if (lock_request.lease_ns)
        happened(w, SIM_LEASE);
    if (o->kind == PART_LOCK)
        choose_lock(o, &lock_request);
    else if (o->kind == PART_MULTI)
        choose_members(o, &lock_request);
    else if (o->kind == PART_READER)
        lock_request.path = &c->paths[RW_ROOT];
    else if (o->kind == PART_PERMITS)
        o->count = 1 + (int)rnd(w, chance(w, 2) ? 1 : MEMBERS);
    lock_request.unlisted |= o->kind == PART_TURN;
    o->ahead = chance(w, 10);
    if (o->kind == PART_PERMITS && o->count > 1)
        happened(w, SIM_SEVERAL_PERMITS);
    say("[%6lld] %d.%d %s at %s%s", (long long)w->fake.now_ms, name_of(c), number_of(o),
        what[o->kind], lock_request.path->text, lock_request.try_only ? " (try)" : "");
    owner_start(o, &lock_request);
}

/* --- when they end it ----------------------------------------------------- */

static void stop(struct owner *o)
{
    struct world *w = o->client->world;
    int code = chance(w, 2) ? ZKL_ETIMEDOUT : ZKL_ECANCELED;
    if (o->kind == PART_TURN && o->try_only)
        code = ZKL_EBUSY;
    happened(w, o->kind == PART_MULTI   ? SIM_MULTI_STOPPED
                : code == ZKL_ECANCELED ? SIM_CANCEL
                                        : SIM_DEADLINE);
    say("[%6lld] %d.%d stops", (long long)w->fake.now_ms, name_of(o->client), number_of(o));
    owner_stop(o, code);
}

static bool gives_up(struct owner *o)
{
    struct world *w = o->client->world;
    bool due = o->until_ms <= w->fake.now_ms || (w->calm && o->until_ms != INT64_MAX);
    if (o->kind == PART_READER)
        return due && chance(w, 4);
    return due || (o->kind == PART_PERMITS && o->permits->bundle.state == ZKL_BUNDLE_BACKING &&
                   chance(w, 4));
}

static bool exits(struct client *c)
{
    bool exits = chance(c->world, 6);
    if (exits)
        happened(c->world, SIM_THREAD_EXIT);
    return exits;
}

/* It holds from now on: how long? What was handed to it has no lease yet. */
static void hold(struct owner *o)
{
    struct world *w = o->client->world;
    o->holds = true;
    if (o->kind == PART_READER)
        return;
    const struct zkl_lock_request *lock_request = &o->place->contender.machine.lock_request;
    unsigned usual = w->lonely && o->kind == PART_LOCK ? 4 : 60;
    unsigned once_in = lock_request->naming.role == ZKL_ROLE_WRITE ? 2 : 6; /* it may downgrade */
    o->until_ms = w->fake.now_ms +
                  rnd(w, o->kind != PART_TURN && chance(w, once_in) ? FAKE_TIMEOUT_MS : usual);
    if (o->kind == PART_TURN && o->turn.given && o->turn.lock_request.lease_ns > 0)
        owner_renew(o, o->turn.lock_request.lease_ns);
}

static void end(struct owner *o)
{
    bool may_exit = o->kind != PART_PERMITS && o->kind != PART_MULTI;
    bool leaves = may_exit && exits(o->client);
    say("[%6lld] %d.%d %s", (long long)o->client->world->fake.now_ms, name_of(o->client),
        number_of(o), leaves ? "exits" : "unlocks");
    if (leaves)
        owner_exit(o);
    else
        owner_unlock(o);
}

/* Members of a multi-lock, now and then, and permits by themselves; true: the rest, too. */
static bool end_some(struct owner *o, bool due)
{
    struct client *c = o->client;
    struct world *w = c->world;
    bool multi = o->kind == PART_MULTI, all = due;
    for (int i = 0; (multi || due) && i < o->count; i++) {
        struct place *place = &o->place[i];
        if (place->phase != GRANTED || place->kept)
            continue;
        if (!chance(w, multi ? 60 : 2))
            all = all && (multi || w->calm);
        else if (multi && exits(c))
            place_exit(place);
        else
            place_unlock(place);
    }
    return all;
}

static void run(struct owner *o)
{
    struct world *w = o->client->world;
    bool due = o->until_ms <= w->fake.now_ms, several = o->kind == PART_MULTI;
    if (owner_is_idle(o)) {
        if (begins(o))
            start(o);
    } else if (owner_may_stop(o)) {
        if (gives_up(o))
            stop(o);
    } else if (!owner_has_it(o)) {
        return;
    } else if (!o->holds) {
        hold(o);
    } else if (several || o->kind == PART_PERMITS) {
        if (end_some(o, several ? w->calm || chance(w, 12) : due))
            end(o);
    } else if ((due && !is_busy(o)) || (w->calm && o->kind != PART_LOCK)) {
        end(o);
    } else if (o->kind == PART_LOCK && !o->place->lost && chance(w, 20)) {
        happened(w, SIM_LEASE_RENEWED);
        owner_renew(o, (1 + rnd(w, 100)) * MS);
    }
}

/* --- what ends with the last handle of a path ------------------------------ */

static bool is_used(const struct client *c, const struct zkl_path *path)
{
    const struct zkl_contender *o = c->core.first;
    while (o && !(o->machine.lock_request.path == path && o->machine.lock_request.unlisted))
        o = o->next;
    return o != NULL;
}

static void give_up(struct client *c, struct zkl_path *path)
{
    must(path->unlisted.live_count == 0);
    zkl_unlisted_end(core_of(c), now_of(c), &path->unlisted);
    path->unlisted = (struct zkl_unlisted_grant){0};
}

/* Some process waits for what this one may keep: then it must be notified, and give it up. */
static bool is_wanted(const struct world *w, int root)
{
    bool wanted = false;
    for (int i = 0; i < w->place_count; i++)
        wanted = wanted || (w->places[i].phase == WAITING && w->places[i].root == root);
    return wanted;
}

static bool gives_back(struct world *w, int root)
{
    return w->calm ? !is_wanted(w, root) : chance(w, 300);
}

void owners_step(struct client *c)
{
    struct world *w = c->world;
    bool all = !w->grouped || w->healing || chance(w, 12); /* else they would come between */
    owners_run(c);
    each_of(c->owners, OWNERS_EACH, o) {
        if (all || (o->kind != PART_MULTI && o->kind != PART_PERMITS))
            run(o);
    }
    if (all)
        queries_run(c);
    for (int i = 0; i <= ROOTS; i++) {
        bool done = w->healing || chance(w, 100);
        if (done && !is_used(c, &c->paths[i]))
            give_up(c, &c->paths[i]);
    }
    if (w->local_queue && gives_back(w, w->local_queue_root))
        zkl_local_queue_drop(core_of(c), now_of(c), &c->local_queue);
    if (w->readers && gives_back(w, RW_ROOT))
        zkl_read_cache_close(core_of(c), now_of(c), &c->cache);
}

bool owners_done(const struct client *c)
{
    bool done = c->local_queue.state == ZKL_LOCAL_QUEUE_FREE && !c->local_queue.first &&
                c->cache.state == ZKL_READ_CACHE_EMPTY && !zkl_read_gate_any(&c->cache.gate);
    for (int i = 0; i < OWNERS_EACH; i++)
        done = done && owner_is_idle(&c->owners[i]);
    for (int i = 0; i < PLACES_EACH; i++)
        done = done && c->places[i].phase == IDLE;
    return done;
}

/* --- the beginning -------------------------------------------------------- */

void owners_init(struct client *c)
{
    static const struct {
        enum part_kind kind;
        int owners, places, root; /* places of each owner, or of all */
    } kinds[] = {{PART_LOCK, LOCKERS, 1, 0},
                 {PART_MULTI, 1, ROOTS, 0},
                 {PART_TURN, 4, 7, LOCAL_QUEUE_ROOT},
                 {PART_READER, 4, 6, RW_ROOT},
                 {PART_PERMITS, ASKS, MEMBERS, LEASES}};
    static const struct {
        unsigned handoffs_max;
        int64_t retain_ms;
    } options[] = {{1, 0}, {2, 0}, {0, 20}, {0, FOR_EVER_MS}, {3, 200}, {2, FOR_EVER_MS}};
    static const int64_t ages_ms[] = {20, 200, FOR_EVER_MS};
    struct world *w = c->world;
    int n = 0;
    w->place_count = name_of(c) * PLACES_EACH;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        bool shared = kinds[i].kind == PART_TURN || kinds[i].kind == PART_READER;
        int root = kinds[i].kind == PART_TURN ? w->local_queue_root : kinds[i].root;
        for (int j = 0; j < kinds[i].owners; j++)
            owner_begin(&c->owners[n++], c, kinds[i].kind, shared && j > 0 ? 0 : kinds[i].places,
                        root);
    }
    for (int i = 0; i < ASKS; i++)
        c->owners[OWNERS_EACH - ASKS + i].permits = &c->asks[i];
    must(n == OWNERS_EACH && w->place_count == (name_of(c) + 1) * PLACES_EACH);
    w->place_count = CLIENTS * PLACES_EACH;
    size_t which = (size_t)(w->seed / LOCAL_QUEUE_ONCE_IN / 2 + (unsigned)name_of(c)) %
                   (sizeof options / sizeof *options);
    c->local_queue.handoffs_max = options[which].handoffs_max;
    c->local_queue.retain_ns = options[which].retain_ms * MS;
    c->cache.age_ns = ages_ms[(w->seed / READERS_ONCE_IN + (unsigned)name_of(c)) % 3] * MS;
}
