/* SPDX-License-Identifier: Apache-2.0
 * When two worlds are the same: 128 bits of what they will do, which stand for the state itself (Wolper, Leroy:
 * Reliable Hashing without Collision Detection, CAV 1993; "hash compaction" in Holzmann's SPIN). Pointers count
 * as places, moments as the time from now, and zxids, sessions, numbers of requests, watches, links and GUIDs by
 * their order alone. What is left out here (histograms, counters of requests, numbers of traces, texts of owners)
 * decides nothing: fields.py has the list of it, and `explore --audit` takes each state that is met again: its
 * successors have to be the known ones. */
#include "core/transaction.h"
#include "core/leftovers.h"
#include "core/watch.h"
#include "world.h"

#define WORDS 4096
#define RANKED 96                 /* different values of one kind */
#define OLD (2 * TIMEOUT_MS * MS) /* nothing depends on how much longer ago it was */

/* What is ranked: those of one client, and those of all. */
enum kind {
    REQUEST,
    WATCH,
    LINK,       /* the core's number of it, */
    PROOF_LINK, /* and the proof's */
    NUMBER,
    BEAT,
    GUID,
    OF_CLIENT,
    ZXID = OF_CLIENT * CLIENTS,
    SESSION,
    SEQUENCE, /* of locks, */
    LEASE,    /* and of permits, which nobody compares with those */
    KINDS
};
#define VALUE (-1) /* it counts itself */
#define VIEW (-2)  /* a zxid, of which the changes up to it count */

static struct {
    struct {
        int kind, line; /* line: where it comes from, in this file */
        int64_t value;
    } words[WORDS];
    size_t count;
    int64_t ranked[KINDS][RANKED];
    size_t ranks[KINDS];
    const struct world *w;
    int client;
    bool absolute; /* numbers of nodes count, and not their order alone */
    bool changes;  /* how often children change counts: somebody takes a multi-lock */
} d;

/* --- words ---------------------------------------------------------------- */

static void rank(int kind, int64_t value)
{
    size_t i = 0, n = d.ranks[kind];
    while (i < n && d.ranked[kind][i] < value)
        i++;
    if (i < n && d.ranked[kind][i] == value)
        return;
    must(n < RANKED);
    memmove(&d.ranked[kind][i + 1], &d.ranked[kind][i], (n - i) * sizeof d.ranked[kind][0]);
    d.ranked[kind][i] = value;
    d.ranks[kind]++;
}

static inline void word(int line, int kind, int64_t value)
{
    must(d.count < WORDS);
    d.words[d.count].kind = kind;
    d.words[d.count].line = line;
    d.words[d.count++].value = value;
    if (kind >= 0 && value != 0)
        rank(kind, value);
}

/* For each value of a list. */
#define EACH(type, do_this, ...)                                                                   \
    do {                                                                                           \
        type values_[] = {__VA_ARGS__};                                                            \
        for (size_t at_ = 0; at_ < sizeof values_ / sizeof *values_; at_++) {                      \
            type value_ = values_[at_];                                                            \
            do_this;                                                                               \
        }                                                                                          \
    } while (0)
#define WORDS_OF(kind, ...) EACH(const int64_t, word(__LINE__, kind, value_), __VA_ARGS__)
#define raw(...) WORDS_OF(VALUE, __VA_ARGS__)
#define own(kind, ...) WORDS_OF(d.client *OF_CLIENT + (int)(kind), __VA_ARGS__)
#define zxid(...) WORDS_OF(ZXID, __VA_ARGS__)
#define view(...) WORDS_OF(VIEW, __VA_ARGS__)
#define session(...) WORDS_OF(SESSION, __VA_ARGS__)
#define name(...) EACH(const char *const, put_name(value_), __VA_ARGS__)
#define pending(...) EACH(const struct zkl_pending *const, put_pending(value_), __VA_ARGS__)
#define flags(...)                                                                                 \
    do {                                                                                           \
        int64_t bits_ = 0;                                                                         \
        EACH(const bool, bits_ |= (int64_t)value_ << at_, __VA_ARGS__);                            \
        word(__LINE__, VALUE, bits_);                                                              \
    } while (0)

uint64_t mix(uint64_t h, uint64_t value)
{
    h = (h ^ value) * UINT64_C(0x9e3779b97f4a7c15);
    return h ^ (h >> 29);
}

static uint64_t bytes_hash(const char *text, size_t length)
{
    uint64_t h = length + 1;
    for (size_t i = 0; i < length; i++)
        h = (h ^ (unsigned char)text[i]) * UINT64_C(0x100000001b3);
    return mix(h, length);
}

static int hex(char c)
{
    return c <= '9' ? c - '0' : c - 'a' + 10;
}

/* As client.c draws it: the client, and how many it has drawn. */
static void guid(const char *text)
{
    if (!text[0]) {
        raw(0);
        return;
    }
    int client = hex(text[0]) * 16 + hex(text[1]) - 1, number = hex(text[2]) * 16 + hex(text[3]);
    word(__LINE__, client * OF_CLIENT + (int)GUID, number);
    raw(client * 256 + text[14]);
}

/* A name or a path may have a GUID in it. */
static void put_name(const char *text)
{
    const char *found = text ? strstr(text, "_c_") : NULL;
    if (!text) {
        raw(-1);
    } else if (!found) {
        raw(bytes_hash(text, strlen(text)));
    } else {
        const char *rest = found + 3 + ZKL_GUID_LEN;
        size_t length = strlen(rest);
        raw(bytes_hash(text, (size_t)(found - text)));
        guid(found + 3);
        bool numbered = length > 10 && rest[length - 1] <= '9' && !d.absolute;
        raw(bytes_hash(rest, numbered ? length - 10 : length));
        if (numbered)
            word(__LINE__, strncmp(rest, "-lease-", 7) == 0 ? LEASE : SEQUENCE,
                 1 + atoi(rest + length - 10));
    }
}

/* A moment that is waited for: one that has passed is due, however long ago. */
static int64_t due_ns(int64_t at, int64_t now)
{
    return at == INT64_MAX ? INT64_MAX : at <= now ? 0 : at - now;
}

/* A moment that something is reckoned from; 0: none. */
static int64_t past_ns(int64_t at, int64_t now)
{
    return at == 0 ? INT64_MAX : at - now < -OLD ? -OLD : at - now;
}

#define MOMENTS(since, now, ...)                                                                   \
    EACH(const int64_t, word(__LINE__, VALUE, since(value_, time_of(d.w).now)), __VA_ARGS__)
#define due_boot(...) MOMENTS(due_ns, boot_ns, __VA_ARGS__)
#define due_mono(...) MOMENTS(due_ns, mono_ns, __VA_ARGS__)
#define boot(...) MOMENTS(past_ns, boot_ns, __VA_ARGS__)
#define mono(...) MOMENTS(past_ns, mono_ns, __VA_ARGS__)
#define ms(...)                                                                                    \
    EACH(const int64_t, word(__LINE__, VALUE, past_ns(value_ *MS, d.w->fake.now_ms *MS)),          \
         __VA_ARGS__)

/* --- parts of a core ------------------------------------------------------ */

static int contender_number(const struct zkl_core *core, const struct zkl_contender *wanted)
{
    int n = 1;
    for (const struct zkl_contender *c = core->first; c; c = c->next, n++) {
        if (c == wanted)
            return n;
    }
    return wanted ? -1 : 0;
}

static int place_number(const void *place)
{
    return place ? 1 + (int)((const struct place *)place - d.w->places) : 0;
}

static void put_pending(const struct zkl_pending *slot)
{
    own(REQUEST, slot->id);
    if (slot->id != 0)
        raw(slot->kind * 256 + (int)slot->opcode);
    raw(slot->doubted, slot->writes);
}

static void stamp(const struct zkl_stamp *s)
{
    boot(s->sent_boot, s->proves_boot);
    own(PROOF_LINK, s->link);
    raw(s->writes);
}

static void watch_ref(const struct zkl_watch *watch)
{
    own(WATCH, watch ? watch->id : 0);
}

static void machine(const struct zkl_contender_machine *m)
{
    const struct zkl_lock_request *asked = &m->lock_request;
    flags(asked->try_only, asked->try_sync, asked->try_behind_retained, asked->watch_own,
          asked->retained, asked->posted, asked->views, asked->unlisted, asked->together,
          asked->bundle, asked->local_queue, asked->read_cache, asked->quota.looked,
          asked->quota.view);
    flags(m->create_out, m->list_out, m->stat_out, m->renew_out, m->delete_out, m->on_server,
          m->maybe_on_server, m->may_be_late, m->suspect, m->unchecked, m->revoked,
          m->behind_retained, m->watches_contention, m->contended, m->crowded,
          m->pred_is_exclusive_mutex, m->pred_is_by_number, m->own_is_put_off, m->was_first,
          m->limit.out, m->limit.watched);
    raw(m->state, m->pred_proof, asked->naming.role, m->before, m->make_length, asked->path->length,
        asked->quota.want, m->limit.permits, m->limit.given, m->limit.version);
    name(asked->path->text, m->downgrade_from, m->node);
    zxid(m->downgrade_from_czxid, m->limit.czxid, m->czxid, m->exhausted_at);
    guid(m->guid);
    boot(m->lease_end_boot, m->unlocked_boot);
    if (asked->read_cache)
        boot(m->looked_boot, m->uncontended_boot);
}

static void transaction(const struct zkl_core *core, const struct zkl_transaction *x)
{
    raw(x->refs, x->ahead | x->named << 1, x->stat_part, x->made_count);
    pending(&x->write, &x->stat);
    for (size_t i = 0; i < x->made_count; i++) {
        raw(contender_number(core, x->made[i]));
        if (x->named)
            name(x->names[i]);
    }
    raw(x->gone_count);
    for (size_t i = 0; i < x->gone_count; i++)
        raw(contender_number(core, x->gone[i]));
}

static void contender(const struct client *c, const struct zkl_contender *o)
{
    const struct zkl_core *core = &c->core;
    raw(place_number(o), o->heartbeat_index);
    machine(&o->machine);
    own(NUMBER, o->number);
    own(BEAT, o->heartbeat_serial);
    for (int i = 0; i < ZKL_SLOTS; i++)
        pending(&o->slots[i]);
    for (int i = 0; i < ZKL_SUBS; i++)
        watch_ref(o->subs[i].watch);
    flags(o->wants_create, o->wants_list, o->list_for_view, o->shares_next_list,
          o->first_list_is_out, o->bundle_has_failed, o->list_has_stat, o->delete_sent,
          o->machine.lock_request.path->lists.last == o, o->transaction);
    raw(o->held, contender_number(core, o->next_held), contender_number(core, o->shares_list),
        contender_number(core, o->heir), contender_number(core, o->heir_of));
    own(WATCH, o->release_watch_id);
    for (const struct zkl_contender *s = o->sharers; s; s = s->next_sharer)
        raw(contender_number(core, s));
    if (o->transaction)
        transaction(core, o->transaction);
}

static void beat(const struct zkl_heartbeat *b)
{
    pending(&b->pending);
    own(BEAT, b->serial);
    own(NUMBER, b->round);
}

static void watch(const struct zkl_core *core, const struct zkl_watch *watch)
{
    watch_ref(watch);
    raw(watch->id % ZKL_WATCH_BUCKETS, watch->state * 8 + (int)watch->type);
    flags(watch->revoked, watch->fired, watch->armed, watch->was_there);
    own(LINK, watch->link);
    session(watch->node_session);
    pending(&watch->request);
    name(watch->path);
    for (const struct zkl_subscription *sub = watch->subscribers; sub; sub = sub->next) {
        int which = 0;
        for (int i = 0; sub->contender && i < ZKL_SUBS; i++)
            which = sub == &sub->contender->subs[i] ? i : which;
        raw(1 + which + 8 * contender_number(core, sub->contender) + 1024 * (sub->query != NULL) +
            2048 * (sub->unlisted != NULL));
    }
}

/* By their age: which bucket one is in depends on a GUID. */
static void watches(const struct zkl_core *core)
{
    const struct zkl_watch *list[RANKED];
    size_t count = 0;
    for (int i = 0; core->watch_count > count && i < ZKL_WATCH_BUCKETS; i++) {
        for (const struct zkl_watch *w = core->watches[i]; w; w = w->next) {
            size_t at = count++;
            must(count < RANKED);
            for (; at > 0 && list[at - 1]->id > w->id; at--)
                list[at] = list[at - 1];
            list[at] = w;
        }
    }
    raw(count);
    for (size_t i = 0; i < count; i++)
        watch(core, list[i]);
    raw(core->removals_due);
    for (const struct zkl_watch *w = core->removing; w; w = w->next)
        watch(core, w);
}

static bool is_behind(const struct zkl_watch *watch, uint64_t id)
{
    return watch->id <= id && watch->id % ZKL_WATCH_BUCKETS == id % ZKL_WATCH_BUCKETS;
}

/* Where the core looks for the next watch: in which bucket, and behind how many there. */
static void looked_at(const struct zkl_core *core)
{
    size_t place = core->looked_at % ZKL_WATCH_BUCKETS, behind = 0;
    for (const struct zkl_watch *w = core->watches[place]; w; w = w->next)
        behind += is_behind(w, core->looked_at);
    for (const struct zkl_watch *w = core->removing; w; w = w->next)
        behind += is_behind(w, core->looked_at);
    raw(place, behind);
    if (core->watched_read.id != 0)
        watch_ref(zkl_watch_find((struct zkl_core *)core, core->looked_at));
}

static void proof(const struct zkl_proof *p)
{
    raw(p->timeout_ns, p->is_known, p->up, p->count);
    boot(p->touched_boot, p->newest_proof_boot, p->ended_boot, p->start_boot, p->settled_boot,
         p->old_boot);
    own(PROOF_LINK, p->link);
    for (unsigned i = 0; i < p->count; i++) {
        const struct zkl_answered *a = &p->answered[(p->first + i) % ZKL_ANSWERED_MAX];
        boot(a->sent_boot, a->at_boot);
    }
}

static void session_machine(const struct zkl_session *s)
{
    raw(s->state, s->timeout_ms, (uint64_t)s->pause_ns);
    session(s->id);
    due_mono(s->timer_mono_ns);
    mono(s->born.mono_ns);
    boot(s->born.boot_ns);
    if (s->use_mono_ns != 0)
        due_mono(s->use_mono_ns);
    raw(s->useless | s->waits << 1);
    if (s->state == ZKL_SESSION_PROBED) {
        session(s->probe.session);
        raw(s->probe.timeout_ms, s->probe.first);
        boot(s->probe.opened_boot_ns);
    }
    proof(&s->proof);
}

static void times(const struct zkl_core *core)
{
    struct zkl_time now = time_of(d.w);
    due_boot(core->lease_boot);
    due_mono(core->heartbeat_hold_off);
    if (core->counts[ZKL_COUNT_UNCHECKED] > 0)
        due_mono(core->recheck_mono_ns);
    mono(core->last_send_mono_ns);
    mono(core->looked_mono_ns); /* whatever is watched: it counts as soon as something is */
    due_mono(core->put_off_mono_ns, core->check_mono_ns, core->again_mono_ns);
    mono(core->last_retry_mono_ns);
    raw(core->again_ns);
    if (core->again_ns != 0)
        raw(core->last_again_mono_ns - now.mono_ns < -2 * core->again_ns
                ? INT64_MIN
                : core->last_again_mono_ns - now.mono_ns);
    due_mono(core->local_queues_mono_ns, core->caches_mono_ns);
}

static void cache(const struct zkl_read_cache *r)
{
    const struct zkl_read_gate *gate = &r->gate;
    if (!r->dropped)
        return;
    raw(r->state * 2 + r->due.listed, place_number(r->holder), atomic_load(&gate->inside));
    due_mono(r->again_mono_ns);
    if (r->state == ZKL_READ_CACHE_EMPTY)
        return;
    due_boot(r->ends_boot, atomic_load(&gate->until_boot));
    due_mono(r->look_mono_ns);
}

static void local_queue(const struct zkl_local_queue *t)
{
    if (!t->given)
        return;
    raw(t->state, place_number(t->holder));
    for (const struct zkl_local_waiter *turn = t->first; turn; turn = turn->next)
        raw(1 + (const struct owner *)turn - d.w->owners);
    raw(t->queueing, t->handoffs, t->timed | t->due.listed << 1);
    if (t->timed)
        due_mono(t->idle_until);
}

static void group_commit(const struct zkl_core *core, const struct zkl_group_commit *waiting)
{
    raw(waiting->credit, contender_number(core, waiting->first));
}

static void leftovers(const struct zkl_core *k)
{
    for (const struct zkl_leftover *l = k->leftovers.first; l; l = l->next) {
        flags(l->is_named, l->is_seen, l->is_out);
        due_mono(l->due_mono_ns, l->until_mono_ns);
        name(l->path, l->name);
    }
    pending(&k->leftovers.remove, &k->leftovers.barrier, &k->leftovers.list);
}

static void group(const struct client *c)
{
    const struct zkl_bundle *g = &c->group;
    raw(g->state, g->count, g->code, g->lost | g->due.listed << 1, g->culprit);
    for (size_t i = 0; i < g->count; i++)
        raw(c->members[i].backs_out | (c->members[i].contender->machine.lock_request.bundle == g)
                                          << 1);
    for (int i = 0; i < ROOTS && (g->count > 0 || c->core.group_commit.from > 0); i++) {
        own(LINK, c->paths[i].view.link);
        due_mono(c->paths[i].view.singly_until_mono_ns);
        zxid(c->paths[i].view.czxid);
        raw(c->paths[i].view.cversion, c->paths[i].view.own, c->paths[i].view.calm);
    }
}

static void unlisted(const struct zkl_core *core, const struct zkl_unlisted_grant *a)
{
    if (a->next_number == 0 && a->streak == 0 && !a->lock_path.watch && a->live_count == 0 &&
        !a->last && a->row == 0)
        return;
    watch_ref(a->lock_path.watch);
    raw(a->live_count, a->streak, a->next_number, contender_number(core, a->last),
        a->row * 2 + a->last_is_behind);
    own(WATCH, a->release_watch_id);
    own(LINK, a->last_link);
}

static void core(const struct client *c)
{
    const struct zkl_core *k = &c->core;
    session_machine(&k->session);
    own(LINK, k->link);
    times(k);
    for (const struct zkl_contender *o = k->first; o; o = o->next)
        contender(c, o);
    for (const struct zkl_query *q = k->queries; q; q = q->next) {
        raw(q->parked);
        pending(&q->slot);
        watch_ref(q->sub.watch);
    }
    watches(k);
    for (int i = 0; i < ZKL_OPCODES; i++)
        raw(k->opcodes[i].hung_up * 4 + k->opcodes[i].unknown * 2 + k->opcodes[i].answered);
    mono(k->learned_mono_ns);
    flags(k->is_suspected, k->is_useful, k->is_blamed, k->heartbeat_wanted, k->heartbeat_failed);
    raw(k->suspects, k->suspicions, k->answered_kinds, k->heartbeat_failures);
    for (int i = 0; i < ZKL_HEARTBEATS_MAX; i++)
        beat(&k->heartbeats[i]);
    beat(&k->recheck);
    pending(&k->keepalive, &k->watched_read, &k->leader_check);
    raw(k->checked[0] % ZKL_WATCH_BUCKETS); /* where the next check begins */
    for (int i = 0; k->leader_check.id != 0 && i < ZKL_LEADER_CHECKS_MAX; i++)
        own(WATCH, k->checked[i]);
    own(WATCH, k->denied_watch);
    own(LINK, k->denied_link);
    looked_at(k);
    group_commit(k, &k->group_commit);
    leftovers(k);
    group(c);
    local_queue(&c->local_queue);
    cache(&c->cache);
    for (int i = 0; i < ROOTS; i++)
        unlisted(&c->core, &c->paths[i].unlisted);
}

/* --- the rest of a client ------------------------------------------------- */

static void request(const struct zkl_request *r)
{
    own(REQUEST, r->id);
    raw(r->kind, r->flag | r->plain << 1, r->version, r->check_count);
    name(r->path, r->data);
    own(WATCH, r->watch_id);
    for (size_t i = 0; i < r->check_count; i++)
        name(r->checks[i]);
    for (size_t i = 0; r->texts && i < r->check_count; i++)
        raw(r->texts[i] != NULL);
    stamp(&r->stamp);
}

static void reply(const struct zkl_reply *r)
{
    own(REQUEST, r->id);
    raw(r->answer, r->hung_up, r->version, r->node_children);
    name(r->name);
    zxid(r->czxid);
    session(r->node_session);
    if (d.changes) {
        raw(r->cversion);
        zxid(r->pzxid);
    }
    raw(r->data ? (int64_t)bytes_hash(r->data, r->data_size) : 0, r->child_count);
    for (size_t i = 0; i < r->child_count; i++)
        name(r->children[i]);
    raw(r->failed_check);
    stamp(&r->stamp);
}

static void queue(const struct fake_queue *q)
{
    raw(q->count);
    for (const struct fake_message *m = q->first; m; m = m->next) {
        raw((int)m->type * 2 + m->received);
        view(m->zxid);
        request(&m->request);
        if (m->type == FAKE_REQUEST)
            continue;
        reply(&m->reply);
        name(m->path);
        raw((int)m->fired * 4 + (int)m->watch);
        for (size_t i = 0; i < m->id_count; i++)
            own(WATCH, m->ids[i]);
    }
}

static void handle(const struct fake_handle *h)
{
    size_t found = 0;
    int armed = 0;
    raw(h != NULL);
    if (!h)
        return;
    session(h->session);
    flags(h->linked, h->expired, h->forgotten, h->hung_up, h->isolated, h->deposed, h->links > 0);
    raw(h->timeout_ms);
    ms(h->opened_ms);
    view(h->view, h->seen, h->told);
    queue(&h->out);
    queue(&h->in);
    raw(h->known.count);
    for (size_t i = 0; i < h->known.count; i++) {
        name(h->known.list[i].path);
        raw(h->known.list[i].type);
        own(WATCH, h->known.list[i].id);
    }
    raw(h->armed.count);
    for (size_t i = 0; i < h->armed.count; i++) { /* always one of those */
        for (size_t j = 0; j < h->known.count; j++) {
            if (h->known.list[j].type == h->armed.list[i].type &&
                strcmp(h->known.list[j].path, h->armed.list[i].path) == 0)
                armed |= 1 << j, found++;
        }
    }
    raw(armed);
    for (size_t i = 0; found < h->armed.count && i < h->armed.count;
         i++) { /* its answer is under way */
        name(h->armed.list[i].path);
        raw(h->armed.list[i].type);
    }
}

static void client(const struct client *c)
{
    d.client = name_of(c);
    flags(c->dead, c->freed, c->muted, c->deaf, c->behind, c->starved);
    if (c->dead)
        return;
    if (c->muted)
        ms(c->muted_ms);
    if (c->current && c->current->isolated)
        ms(c->alone_ms);
    raw(c->sessions > 1, c->view.permits * 2 + c->view.agreed);
    core(c);
    handle(c->current);
    handle(c->probe);
}

static void place(const struct place *p)
{
    raw(p->phase, p->owner ? 1 + (p->owner - d.w->owners) : 0);
    flags(p->in_core, p->lost, p->suspect, p->revoked);
    if (p->phase == IDLE)
        return;
    raw(p->phase == WAITING ? p->stop_code : 0, p->handed,
        p->phase == GRANTED || p->phase == UNLOCKING ? fake_alive(&d.w->fake, p->session) : 0,
        p->phase == UNLOCKING ? p->unlocked.proved | p->unlocked.gone << 1 : 0,
        p->deleted_guid[0] && strcmp(p->deleted_guid, p->contender.machine.guid) == 0);
    guid(p->writer_guid);
    if (!p->in_core)
        guid(p->contender.machine.guid);
}

/* How many owners of this client asked for a turn before this one. */
static int asked_before(const struct owner *o)
{
    int before = 0;
    each_owner(d.w, other) {
        before += other->client == o->client && other->turn.waits && other->tickets < o->tickets;
    }
    return before;
}

static void owner(const struct owner *o)
{
    raw(o->phase, o->inside, o->cycles, o->over, o->turn.waits ? 1 + asked_before(o) : 0,
        place_number(o->place));
    if (o->part->kind != PART_PERMITS || o->phase == IDLE)
        return;
    d.client = name_of(o->client);
    raw(o->permits->bundle.state, o->permits->bundle.code, o->permits->bundle.due.listed,
        o->permits->gate.machine.state);
    zxid(o->permits->gate.machine.czxid);
}

/* --- the ensemble --------------------------------------------------------- */

static int64_t oldest_view(const struct fake *fake)
{
    int64_t oldest = fake->zxid;
    each_fake_handle(fake, h) {
        if (!h->session || h->expired)
            continue;
        oldest = h->seen < oldest ? h->seen : oldest;
        oldest = h->view < oldest ? h->view : oldest;
        oldest = h->told < oldest ? h->told : oldest;
    }
    return oldest;
}

static void ensemble(const struct fake *fake)
{
    int64_t oldest = oldest_view(fake);
    each_node(fake, n) {
        if (n->dzxid != 0 && n->dzxid <= oldest)
            continue;
        name(n->path, n->text);
        zxid(n->czxid, n->dzxid);
        session(n->owner);
        raw(d.absolute ? n->counter : 0, n->version, n->denied,
            n->is_told); /* all that come are larger */
        int changes = 0;
        int64_t pzxid = 0;
        each_change(fake, c) {
            if (c->what != FAKE_CHILDREN || c->zxid <= n->czxid || c->zxid > oldest ||
                strcmp(c->path, n->path) != 0)
                continue;
            changes++;
            pzxid = c->zxid;
        }
        if (d.changes) {
            raw(changes);
            zxid(pzxid);
        }
    }
    each_change(fake, c) {
        if (c->zxid <= oldest)
            continue;
        zxid(c->zxid);
        name(c->path, c->old_text);
        raw((int)c->what);
    }
}

/* The touches of the next living session after this one; NULL: there is none. Places in the
 * array depend on dead sessions, and so are no order. */
static const struct touches *touches_after(const struct world *w, int64_t session)
{
    const struct touches *found = NULL;
    each_of(w->touches, w->touches_count, t) {
        if (t->session > session && fake_alive(&w->fake, t->session) &&
            (!found || t->session < found->session))
            found = t;
    }
    return found;
}

static void touches(const struct world *w)
{
    for (const struct touches *t = touches_after(w, 0); t; t = touches_after(w, t->session)) {
        session(t->session);
        ms(t->last_ms, t->close_ms);
        raw(t->held);
        for (int j = 0; j < t->held; j++)
            ms(t->held_ms[j]);
    }
}

/* A dead session makes a difference only by its nodes and events. */
static void collect(const struct world *w)
{
    d.count = 0;
    memset(d.ranks, 0, sizeof d.ranks);
    d.w = w;
    d.absolute = w->bounds->scenario->counter != 0;
    d.changes = false;
    for (int i = 0; i < w->owner_count; i++) {
        d.absolute = d.absolute || w->owners[i].part->unlisted;
        d.changes = d.changes || w->owners[i].part->kind == PART_MULTI;
    }
    raw(w->faults, w->delays, w->delays >= 0 ? w->last : 0, w->waits,
        w->calm | w->denied << 1 | w->raised << 2);
    ensemble(&w->fake);
    touches(w);
    for (int i = 0; i < w->client_count; i++)
        client(&w->clients[i]);
    for (int i = 0; i < w->place_count; i++)
        place(&w->places[i]);
    for (int i = 0; i < w->owner_count; i++)
        owner(&w->owners[i]);
    for (int i = 0; i < ROOTS; i++) {
        view(w->last_token[i], w->last_writer[i]);
    }
    view(w->last_gate);
}

static uint64_t rank_of(int kind, int64_t value)
{
    size_t i = 0, at = kind == VIEW ? ZXID : (size_t)kind;
    while (i < d.ranks[at] && d.ranked[at][i] < value + (kind == VIEW))
        i++;
    return i + 1;
}

static inline uint64_t value_of(size_t i)
{
    int64_t value = d.words[i].value;
    return d.words[i].kind == VALUE || value == 0 ? (uint64_t)value
                                                  : rank_of(d.words[i].kind, value);
}

static inline struct digest absorb(struct digest h, uint64_t value)
{
    h.b = (h.b + value) * UINT64_C(0xd6e8feb86659fd93);
    return (struct digest){mix(h.a, value), h.b ^ h.b >> 32};
}

/* Every other word has a chain of its own, as a chain waits for its multiplications. */
struct digest digest_of(const struct world *w)
{
    struct digest even = {UINT64_C(0x243f6a8885a308d3), UINT64_C(0x13198a2e03707344)},
                  odd = {UINT64_C(0xa4093822299f31d0), UINT64_C(0x082efa98ec4e6c89)};
    collect(w);
    raw(0); /* so that no pair lacks its second */
    for (size_t i = 0; i + 1 < d.count; i += 2) {
        even = absorb(even, value_of(i));
        odd = absorb(odd, value_of(i + 1));
    }
    even = (struct digest){mix(mix(even.a, odd.a), d.count), mix(even.b, odd.b)};
    even.a += even.a == 0;
    return even;
}

size_t digest_words(const struct world *w, struct digest_word *list, size_t room)
{
    (void)digest_of(w);
    for (size_t i = 0; i < d.count && i < room; i++) {
        list[i].line = d.words[i].line;
        list[i].value = (int64_t)value_of(i);
    }
    return d.count;
}
