/* SPDX-License-Identifier: Apache-2.0
 * When two worlds are the same: 128 bits of what they will do, which stand for the state itself (Wolper, Leroy:
 * Reliable Hashing without Collision Detection, CAV 1993; "hash compaction" in Holzmann's SPIN). Pointers count
 * as places, moments as the time from now, and zxids, sessions, numbers of requests, watches, links and GUIDs by
 * their order alone. What is left out here (histograms, counters of requests, numbers of traces, texts of owners)
 * decides nothing: fields.py has the list of it, and `explore --audit` takes each state that is met again: its
 * successors have to be the known ones. */
#include <stdlib.h>
#include <string.h>

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

static inline void put(int line, int kind, int64_t value)
{
    must(d.count < WORDS);
    d.words[d.count].kind = kind;
    d.words[d.count].line = line;
    d.words[d.count++].value = value;
}

static void word(int line, int kind, int64_t value)
{
    put(line, kind, value);
    if (kind < 0 || value == 0)
        return;
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

#define raw(value) put(__LINE__, VALUE, (int64_t)(value))
#define own(kind, value) word(__LINE__, d.client *OF_CLIENT + (int)(kind), (int64_t)(value))
#define zxid(value) word(__LINE__, ZXID, value)
#define view(value) word(__LINE__, VIEW, value)
#define session(value) word(__LINE__, SESSION, value)

static uint64_t mix(uint64_t h, uint64_t value)
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
static void name(const char *text)
{
    const char *found = text ? strstr(text, "_c_") : NULL;
    if (!text) {
        raw(-1);
    } else if (!found) {
        raw((int64_t)bytes_hash(text, strlen(text)));
    } else {
        const char *rest = found + 3 + ZKL_GUID_LEN;
        size_t length = strlen(rest);
        raw((int64_t)bytes_hash(text, (size_t)(found - text)));
        guid(found + 3);
        bool numbered = length > 10 && rest[length - 1] <= '9' && !d.absolute;
        raw((int64_t)bytes_hash(rest, numbered ? length - 10 : length));
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

#define due_boot(at) raw(due_ns(at, time_of(d.w).boot_ns))
#define due_mono(at) raw(due_ns(at, time_of(d.w).mono_ns))
#define boot(at) raw(past_ns(at, time_of(d.w).boot_ns))
#define mono(at) raw(past_ns(at, time_of(d.w).mono_ns))
#define ms(at) raw(past_ns((at)*MS, d.w->fake.now_ms *MS))

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

static void pending(const struct zkl_pending *slot)
{
    own(REQUEST, slot->id);
    if (slot->id != 0)
        raw(slot->kind * 256 + (int)slot->opcode);
    raw(slot->doubted);
    raw(slot->writes);
}

static void stamp(const struct zkl_stamp *s)
{
    boot(s->sent_boot);
    boot(s->proves_boot);
    own(PROOF_LINK, s->link);
    raw(s->writes);
}

static void watch_ref(const struct zkl_watch *watch)
{
    own(WATCH, watch ? watch->id : 0);
}

static void machine(const struct zkl_contender_machine *m)
{
    raw(m->state);
    raw(m->lock_request.try_only | m->lock_request.try_sync << 1 |
        m->lock_request.try_behind_retained << 2 | m->lock_request.watch_own << 3 |
        m->lock_request.retained << 4 | m->create_out << 5 | m->list_out << 6 | m->stat_out << 7 |
        m->renew_out << 8 | m->delete_out << 9 | m->on_server << 10 | m->maybe_on_server << 11 |
        m->suspect << 12 | m->unchecked << 13 | m->revoked << 14 | m->behind_retained << 15 |
        m->watches_contention << 16 | m->contended << 17 | m->crowded << 18 |
        (int)m->pred_proof << 24 | m->pred_is_exclusive_mutex << 20 | m->own_is_put_off << 21 |
        m->was_first << 22 | m->lock_request.posted << 23 | m->pred_is_by_number << 27 |
        m->may_be_late << 28);
    raw((int64_t)m->lock_request.naming.role);
    raw((int64_t)m->before);
    raw((int64_t)m->make_length);
    raw((int64_t)m->lock_request.path->length);
    name(m->lock_request.path->text);
    name(m->downgrade_from);
    zxid(m->downgrade_from_czxid);
    raw(m->lock_request.quota.want);
    raw(m->lock_request.quota.looked | m->limit.out << 1 | m->limit.watched << 2 |
        (m->lock_request.quota.view != NULL) << 3);
    raw(m->limit.permits);
    raw(m->limit.given);
    raw(m->limit.version);
    zxid(m->limit.czxid);
    guid(m->guid);
    name(m->node);
    zxid(m->czxid);
    zxid(m->exhausted_at);
    boot(m->lease_end_boot);
    boot(m->unlocked_boot);
    raw(m->lock_request.read_cache != NULL);
    if (m->lock_request.read_cache) {
        boot(m->looked_boot);
        boot(m->uncontended_boot);
    }
}

static void transaction(const struct zkl_core *core, const struct zkl_transaction *x)
{
    raw(x->refs);
    raw(x->ahead | x->named << 1);
    raw((int64_t)x->stat_part);
    pending(&x->write);
    pending(&x->stat);
    raw((int64_t)x->made_count);
    for (size_t i = 0; i < x->made_count; i++) {
        raw(contender_number(core, x->made[i]));
        if (x->named)
            name(x->names[i]);
    }
    raw((int64_t)x->gone_count);
    for (size_t i = 0; i < x->gone_count; i++)
        raw(contender_number(core, x->gone[i]));
}

static void contender(const struct client *c, const struct zkl_contender *o)
{
    const struct zkl_core *core = &c->core;
    raw(place_number(o));
    machine(&o->machine);
    own(NUMBER, o->number);
    own(BEAT, o->heartbeat_serial);
    raw((int64_t)o->heartbeat_index);
    for (int i = 0; i < ZKL_SLOTS; i++)
        pending(&o->slots[i]);
    for (int i = 0; i < ZKL_SUBS; i++)
        watch_ref(o->subs[i].watch);
    raw(o->wants_create | o->wants_list << 1 | o->list_for_view << 2 | o->shares_next_list << 3 |
        o->first_list_is_out << 4 | o->bundle_has_failed << 5 |
        (o->machine.lock_request.bundle != NULL) << 6 |
        (o->machine.lock_request.local_queue != NULL) << 8 | o->machine.lock_request.views << 9 |
        o->machine.lock_request.unlisted << 10 | o->list_has_stat << 11 | o->delete_sent << 12);
    raw(o->held);
    raw(contender_number(core, o->next_held));
    own(WATCH, o->release_watch_id);
    raw(contender_number(core, o->shares_list));
    for (const struct zkl_contender *s = o->sharers; s; s = s->next_sharer)
        raw(contender_number(core, s));
    raw(contender_number(core, o->heir));
    raw(contender_number(core, o->heir_of));
    raw(o->machine.lock_request.path && o->machine.lock_request.path->lists.last == o);
    raw(o->machine.lock_request.together);
    raw(o->transaction != NULL);
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
    raw(watch->id % ZKL_WATCH_BUCKETS);
    raw(watch->state * 8 + (int)watch->type);
    raw(watch->revoked | watch->fired << 1 | watch->armed << 2 | watch->was_there << 3);
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
    raw(place);
    raw(behind);
    if (core->watched_read.id != 0)
        watch_ref(zkl_watch_find((struct zkl_core *)core, core->looked_at));
}

static void proof(const struct zkl_proof *p)
{
    raw(p->timeout_ns);
    boot(p->touched_boot);
    boot(p->newest_proof_boot);
    raw(p->is_known | p->up << 1);
    boot(p->ended_boot);
    own(PROOF_LINK, p->link);
    boot(p->start_boot);
    boot(p->settled_boot);
    boot(p->old_boot);
    raw(p->count);
    for (unsigned i = 0; i < p->count; i++) {
        const struct zkl_answered *a = &p->answered[(p->first + i) % ZKL_ANSWERED_MAX];
        boot(a->sent_boot);
        boot(a->at_boot);
    }
}

static void session_machine(const struct zkl_session *s)
{
    raw(s->state);
    session(s->id);
    raw(s->timeout_ms);
    due_mono(s->timer_mono_ns);
    mono(s->born.mono_ns);
    boot(s->born.boot_ns);
    raw((uint64_t)s->pause_ns);
    if (s->use_mono_ns != 0)
        due_mono(s->use_mono_ns);
    raw(s->useless | s->waits << 1);
    if (s->state == ZKL_SESSION_PROBED) {
        session(s->probe.session);
        raw(s->probe.timeout_ms);
        boot(s->probe.opened_boot_ns);
        raw(s->probe.first);
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
    due_mono(core->put_off_mono_ns);
    due_mono(core->check_mono_ns);
    mono(core->last_retry_mono_ns);
    due_mono(core->again_mono_ns);
    raw(core->again_ns);
    if (core->again_ns != 0)
        raw(core->last_again_mono_ns - now.mono_ns < -2 * core->again_ns
                ? INT64_MIN
                : core->last_again_mono_ns - now.mono_ns);
    due_mono(core->local_queues_mono_ns);
    due_mono(core->caches_mono_ns);
}

static void cache(const struct zkl_read_cache *r)
{
    const struct zkl_read_gate *gate = &r->gate;
    if (!r->dropped)
        return;
    raw(r->state * 2 + r->due.listed);
    raw(place_number(r->holder));
    raw(atomic_load(&gate->inside));
    due_mono(r->again_mono_ns);
    if (r->state == ZKL_READ_CACHE_EMPTY)
        return;
    due_boot(r->ends_boot);
    due_mono(r->look_mono_ns);
    due_boot(atomic_load(&gate->until_boot));
}

static void local_queue(const struct zkl_local_queue *t)
{
    if (!t->given)
        return;
    raw(t->state);
    raw(place_number(t->holder));
    for (const struct zkl_local_waiter *turn = t->first; turn; turn = turn->next)
        raw(1 + (const struct owner *)turn - d.w->owners);
    raw((int64_t)t->queueing);
    raw(t->handoffs);
    raw(t->timed | t->due.listed << 1);
    if (t->timed)
        due_mono(t->idle_until);
}

static void group_commit(const struct zkl_core *core, const struct zkl_group_commit *waiting)
{
    raw(waiting->credit);
    raw(contender_number(core, waiting->first));
}

static void leftovers(const struct zkl_core *k)
{
    for (const struct zkl_leftover *l = k->leftovers.first; l; l = l->next) {
        raw(l->is_named | l->is_seen << 1 | l->is_out << 2);
        due_mono(l->due_mono_ns);
        due_mono(l->until_mono_ns);
        name(l->path);
        name(l->name);
    }
    pending(&k->leftovers.remove);
    pending(&k->leftovers.barrier);
    pending(&k->leftovers.list);
}

static void group(const struct client *c)
{
    const struct zkl_bundle *g = &c->group;
    raw(g->state);
    raw((int64_t)g->count);
    raw(g->code);
    raw(g->lost | g->due.listed << 1);
    raw((int64_t)g->culprit);
    for (size_t i = 0; i < g->count; i++)
        raw(c->members[i].backs_out | (c->members[i].contender->machine.lock_request.bundle == g)
                                          << 1);
    for (int i = 0; i < ROOTS && (g->count > 0 || c->core.group_commit.from > 0); i++) {
        own(LINK, c->paths[i].view.link);
        due_mono(c->paths[i].view.singly_until_mono_ns);
        zxid(c->paths[i].view.czxid);
        raw(c->paths[i].view.cversion);
        raw(c->paths[i].view.own);
        raw(c->paths[i].view.calm);
    }
}

static void unlisted(const struct zkl_core *core, const struct zkl_unlisted_grant *a)
{
    if (a->next_number == 0 && a->streak == 0 && !a->lock_path.watch && a->live_count == 0 &&
        !a->last && a->row == 0)
        return;
    watch_ref(a->lock_path.watch);
    raw((int64_t)a->live_count);
    raw(a->streak);
    raw(a->next_number);
    own(WATCH, a->release_watch_id);
    raw(contender_number(core, a->last));
    own(LINK, a->last_link);
    raw((int64_t)a->row * 2 + a->last_is_behind);
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
    raw(k->is_suspected);
    raw(k->is_useful);
    raw(k->suspects);
    raw(k->suspicions);
    raw(k->answered_kinds);
    raw(k->is_blamed | k->heartbeat_wanted << 1 | k->heartbeat_failed << 2);
    raw(k->heartbeat_failures);
    for (int i = 0; i < ZKL_HEARTBEATS_MAX; i++)
        beat(&k->heartbeats[i]);
    beat(&k->recheck);
    pending(&k->keepalive);
    pending(&k->watched_read);
    pending(&k->leader_check);
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
    raw(r->kind);
    name(r->path);
    name(r->data);
    raw(r->flag | r->plain << 1);
    raw(r->version);
    own(WATCH, r->watch_id);
    raw((int64_t)r->check_count);
    for (size_t i = 0; i < r->check_count; i++)
        name(r->checks[i]);
    for (size_t i = 0; r->texts && i < r->check_count; i++)
        raw(r->texts[i] != NULL);
    stamp(&r->stamp);
}

static void reply(const struct zkl_reply *r)
{
    own(REQUEST, r->id);
    raw(r->answer);
    raw(r->hung_up);
    name(r->name);
    zxid(r->czxid);
    session(r->node_session);
    raw(r->version);
    raw(r->node_children);
    if (d.changes) {
        raw(r->cversion);
        zxid(r->pzxid);
    }
    raw(r->data ? (int64_t)bytes_hash(r->data, r->data_size) : 0);
    raw((int64_t)r->child_count);
    for (size_t i = 0; i < r->child_count; i++)
        name(r->children[i]);
    raw((int64_t)r->failed_check);
    stamp(&r->stamp);
}

static void queue(const struct fake_queue *q)
{
    raw((int64_t)q->count);
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
    raw(h->linked | h->expired << 1 | h->forgotten << 2 | h->hung_up << 3 | h->isolated << 4 |
        h->deposed << 5 | (h->links > 0) << 6);
    ms(h->opened_ms);
    raw(h->timeout_ms);
    view(h->view);
    view(h->seen);
    view(h->told);
    queue(&h->out);
    queue(&h->in);
    raw((int64_t)h->known.count);
    for (size_t i = 0; i < h->known.count; i++) {
        name(h->known.list[i].path);
        raw(h->known.list[i].type);
        own(WATCH, h->known.list[i].id);
    }
    raw((int64_t)h->armed.count);
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
    raw(c->dead | c->freed << 1 | c->muted << 2 | c->deaf << 3 | c->behind << 4 | c->starved << 5);
    if (c->dead)
        return;
    if (c->muted)
        ms(c->muted_ms);
    if (c->current && c->current->isolated)
        ms(c->alone_ms);
    raw(c->sessions > 1);
    raw(c->view.permits * 2 + c->view.agreed);
    core(c);
    handle(c->current);
    handle(c->probe);
}

static void place(const struct place *p)
{
    raw(p->phase);
    raw(p->owner ? 1 + (p->owner - d.w->owners) : 0);
    raw(p->in_core | p->lost << 1 | p->suspect << 2 | p->revoked << 3);
    if (p->phase == IDLE)
        return;
    raw(p->phase == WAITING ? p->stop_code : 0);
    raw(p->handed);
    raw(p->phase == GRANTED || p->phase == UNLOCKING ? fake_alive(&d.w->fake, p->session) : 0);
    raw(p->phase == UNLOCKING ? p->unlocked.proved | p->unlocked.gone << 1 : 0);
    guid(p->writer_guid);
    raw(p->deleted_guid[0] && strcmp(p->deleted_guid, p->contender.machine.guid) == 0);
    if (!p->in_core)
        guid(p->contender.machine.guid);
}

/* How many owners of this client asked for a turn before this one. */
static int asked_before(const struct owner *o)
{
    int before = 0;
    for (int i = 0; i < d.w->owner_count; i++) {
        const struct owner *other = &d.w->owners[i];
        before += other->client == o->client && other->turn.waits && other->tickets < o->tickets;
    }
    return before;
}

static void owner(const struct owner *o)
{
    raw(o->phase);
    raw(o->inside);
    raw(o->cycles);
    raw(o->over);
    raw(o->turn.waits ? 1 + asked_before(o) : 0);
    raw(place_number(o->place));
    if (o->part->kind != PART_PERMITS || o->phase == IDLE)
        return;
    d.client = name_of(o->client);
    raw(o->permits->bundle.state);
    raw(o->permits->bundle.code);
    raw(o->permits->bundle.due.listed);
    raw(o->permits->gate.machine.state);
    zxid(o->permits->gate.machine.czxid);
}

/* --- the ensemble --------------------------------------------------------- */

static int64_t oldest_view(const struct fake *fake)
{
    int64_t oldest = fake->zxid;
    for (size_t i = 0; i < sizeof fake->handles / sizeof *fake->handles; i++) {
        const struct fake_handle *h = fake->handles[i];
        if (!h || !h->session || h->expired)
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
    for (size_t i = 0; i < fake->node_count; i++) {
        const struct fake_node *n = &fake->nodes[i];
        if (n->dzxid != 0 && n->dzxid <= oldest)
            continue;
        name(n->path);
        zxid(n->czxid);
        zxid(n->dzxid);
        session(n->owner);
        raw(d.absolute ? n->counter : 0); /* all that come are larger */
        raw(n->version);
        raw(n->denied);
        raw(n->is_told);
        name(n->text);
        int changes = 0;
        int64_t pzxid = 0;
        for (size_t j = 0; j < fake->change_count; j++) {
            const struct fake_change *c = &fake->changes[j];
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
    for (size_t i = 0; i < fake->change_count; i++) {
        const struct fake_change *c = &fake->changes[i];
        if (c->zxid <= oldest)
            continue;
        zxid(c->zxid);
        name(c->path);
        raw((int)c->what);
        name(c->old_text);
    }
}

/* The touches of the next living session after this one; NULL: there is none. Places in the
 * array depend on dead sessions, and so are no order. */
static const struct touches *touches_after(const struct world *w, int64_t session)
{
    const struct touches *found = NULL;
    for (int i = 0; i < w->touches_count; i++) {
        const struct touches *t = &w->touches[i];
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
        ms(t->last_ms);
        ms(t->close_ms);
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
    raw(w->faults);
    raw(w->delays);
    raw(w->delays >= 0 ? w->last : 0);
    raw(w->waits);
    raw(w->calm | w->denied << 1 | w->raised << 2);
    ensemble(&w->fake);
    touches(w);
    for (int i = 0; i < w->client_count; i++)
        client(&w->clients[i]);
    for (int i = 0; i < w->place_count; i++)
        place(&w->places[i]);
    for (int i = 0; i < w->owner_count; i++)
        owner(&w->owners[i]);
    for (int i = 0; i < ROOTS; i++) {
        view(w->last_token[i]);
        view(w->last_writer[i]);
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
