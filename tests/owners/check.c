/* SPDX-License-Identifier: Apache-2.0
 * What must be true: at each grant, after each step, and at the end. Exclusion, order, tokens, windows, watches,
 * what the core counts, what is left on the server. All of it is judged by the true state of the ensemble, and not
 * by what a client knows. Modes are those of docs/failure-modes.md. Each of the two suites checks more in a check.c
 * of its own. */
#include "core/due.h"
#include "core/leftovers.h"
#include "core/watch.h"
#include "world.h"

bool is_proved(const struct place *place)
{
    const struct client *c = place->client;
    const struct zkl_contender_machine *m = &place->contender.machine;
    int64_t now = now_of(c).boot_ns;
    return m->state == ZKL_CONTENDER_HOLDING && !m->unchecked &&
           now < zkl_session_window_end(&c->core.session) &&
           (m->lease_end_boot == 0 || now < m->lease_end_boot);
}

void check_state(const struct world *w, bool was_suspect, const struct zkl_notification *news)
{
    must(news->state == ZKL_HOLD_HELD ? was_suspect : news->state == ZKL_HOLD_SUSPECT);
    if (news->state == ZKL_HOLD_SUSPECT && news->reason == ZKL_REASON_UNCHECKED)
        must(may_be_denied(w));
    else
        must(was_suspect == (news->state == ZKL_HOLD_HELD));
}

static bool was_deleted(const struct place *place)
{
    return place->deleted_guid[0] &&
           strcmp(place->deleted_guid, place->contender.machine.guid) == 0;
}

static void path_of(const struct zkl_contender_machine *m, char *path, size_t size)
{
    snprintf(path, size, "%s/%s", m->lock_request.path->text, m->node);
}

/* --- at a grant ----------------------------------------------------------- */

/* First come, first served, and tokens grow: an exclusive grant's over all before it, a reader's over
 * the writers'. A reader that has the write lock shares that one's token. */
static void check_token(struct world *w, const struct place *place)
{
    const struct zkl_contender_machine *m = &place->contender.machine;
    bool reader = m->lock_request.naming.role == ZKL_ROLE_READ;
    if (place->writer_guid[0]) {
        must(m->czxid == m->downgrade_from_czxid);
        return;
    }
    must(m->czxid > (reader ? w->last_writer : w->last_token)[place->root]);
    if (m->czxid > w->last_token[place->root])
        w->last_token[place->root] = m->czxid;
    if (!reader)
        w->last_writer[place->root] = m->czxid;
}

/* A stranger deleted the node: if its server has shown that to the client, no lock is granted on
 * it. */
void check_hold(const struct client *c, const struct zkl_contender_machine *m)
{
    const struct fake *fake = &c->world->fake;
    char path[ZKL_PATH_MAX + ZKL_NODE_NAME_MAX + 2];
    path_of(m, path, sizeof path);
    for (size_t i = 0; c->current && i < fake->node_count; i++) {
        const struct fake_node *node = &fake->nodes[i];
        if (fake_has_told(c->current, node) && strcmp(node->path, path) == 0)
            wrong("a lock is granted on a node that is gone");
    }
}

/* libzookeeper is connected again, but its completion thread was so late, all the time that the
 * second handle was connected, that the core has not been notified. The core gives such a session
 * up alive, and it ends as its handle is closed. */
static bool is_back_unheard(const struct client *c, int64_t session)
{
    const struct fake_handle *h = c->current;
    const struct fake_message *message = h && h->session == session ? h->in.first : NULL;
    while (message && message->type != FAKE_UP)
        message = message->next;
    return message != NULL;
}

/* A reported loss has happened. */
void check_loss(struct world *w, const struct place *place, int reason)
{
    char path[ZKL_PATH_MAX + ZKL_NODE_NAME_MAX + 2];
    path_of(&place->contender.machine, path, sizeof path);
    if (reason == ZKL_REASON_NODE_DELETED)
        must(!fake_find(&w->fake, path));
    if (reason == ZKL_REASON_EXPIRED)
        must(!fake_alive(&w->fake, place->session) || may_end_alive(place->client) ||
             is_back_unheard(place->client, place->session));
    if (reason == ZKL_REASON_LEASE_ENDED)
        must(now_of(place->client).boot_ns >= place->contender.machine.lease_end_boot);
}

/* No promise covers a stranger that deletes nodes, or lost data. */
struct unlocked check_unlock(const struct place *place)
{
    const struct client *c = place->client;
    const struct zkl_contender_machine *m = &place->contender.machine;
    char path[ZKL_PATH_MAX + ZKL_NODE_NAME_MAX + 2];
    path_of(m, path, sizeof path);
    bool excused = data_was_lost(c->world) || was_deleted(place);
    /* Of an unchecked one the window is 0. */
    bool holds = m->state == ZKL_CONTENDER_HOLDING && !m->unchecked;
    return (struct unlocked){.proved = holds &&
                                       now_of(c).boot_ns < zkl_session_window_end(&c->core.session),
                             .gone = !excused && !fake_find(&c->world->fake, path)};
}

/* No other contender can have held before the node was deleted, so a result that says there is
 * nothing to fear is wrong from then on. Modes: F9. */
void check_unlocked(struct world *w, const struct unlocked *unlocked, int code)
{
    must(code == ZKL_OK || code == ZKL_EUNCONFIRMED || code == ZKL_EDOUBT || code == ZKL_ELOST);
    if (unlocked->gone && code != ZKL_ELOST && code != ZKL_EDOUBT)
        wrong("an unlock hides that the lock was somebody else's");
    if (unlocked->proved && code == ZKL_EDOUBT)
        wrong("an unlock doubts a hold that was proved");
    unlock_was_noted(w, unlocked, code);
}

static bool waits_for(const struct zkl_contender_machine *m, const char *name)
{
    struct zkl_node_name own, place;
    return zkl_name_parse(m->node, &m->lock_request.naming, &own) &&
           zkl_name_parse(name, &m->lock_request.naming, &place) &&
           zkl_queue_waits_for(m->lock_request.naming.role, own.sequence, m->node, &place, name);
}

static bool is_contender(const struct zkl_contender_machine *m, const char *name)
{
    struct zkl_node_name place;
    return zkl_name_parse(name, &m->lock_request.naming, &place);
}

/* The node of the grant exists and is of this session; of a mutex no node of another contender comes
 * before it, of the others none that it would have to wait for. Modes: F5, F10, F58. */
static void check_node(struct world *w, const struct place *place)
{
    const struct zkl_contender_machine *m = &place->contender.machine;
    bool alone = m->lock_request.naming.role == ZKL_ROLE_LOCK;
    char path[ZKL_PATH_MAX + ZKL_NODE_NAME_MAX + 2];
    path_of(m, path, sizeof path);
    const struct fake_node *own = fake_find(&w->fake, path);
    must(own && own->owner == place->client->core.session.id);
    must(m->downgrade_from[0] || own->shown_czxid == m->czxid);
    for (size_t i = 0; !m->downgrade_from[0] && i < w->fake.node_count; i++) {
        const struct fake_node *node = &w->fake.nodes[i];
        const char *name = fake_child_of(node, m->lock_request.path->text);
        if (node != own && name && node->dzxid == 0 && node->czxid < own->czxid)
            must(!(alone ? is_contender(m, name) : waits_for(m, name)));
    }
}

/* Modes: F27. */
void check_granted(const struct place *place)
{
    const struct zkl_contender_machine *m = &place->contender.machine;
    struct zkl_node_name at;
    must(zkl_name_parse(m->node, &m->lock_request.naming, &at) &&
         !zkl_sequence_exhausted(at.sequence));
    must(zkl_name_is_retained(m->node) ==
         m->lock_request.retained); /* others ask for it by its name */
    must(now_of(place->client).boot_ns < zkl_session_window_end(&place->client->core.session));
}

void check_grant(struct world *w, const struct place *place)
{
    const struct client *c = place->client;
    if (was_deleted(place))
        return;
    /* Answers of before the data was lost may be read after it: a session that is lost too. */
    if (!fake_alive(&w->fake, c->core.session.id)) {
        must(data_was_lost(w));
        return;
    }
    check_token(w, place);
    check_node(w, place);
}

/* --- all the time --------------------------------------------------------- */

static bool holds_now(const struct place *place)
{
    const struct client *c = place->client;
    if (place->phase != GRANTED || place->kind == PART_PERMITS || c->dead || was_deleted(place))
        return false;
    if (place->lost) /* it may have looked at its window before */
        return now_of(c).boot_ns < place->told_until_boot &&
               (!data_was_lost(c->world) || fake_alive(&c->world->fake, place->session));
    if (!place->in_core || !is_proved(place))
        return false;
    bool lives = fake_alive(&c->world->fake, c->core.session.id);
    must(lives || data_was_lost(c->world)); /* which no promise covers */
    return lives;
}

/* May these two hold together? Two readers, and a reader that has the write lock itself. */
static bool go_together(const struct place *a, const struct place *b)
{
    const struct zkl_contender_machine *one = &a->contender.machine, *other = &b->contender.machine;
    if (one->lock_request.naming.role != ZKL_ROLE_READ)
        return other->lock_request.naming.role == ZKL_ROLE_READ &&
               strcmp(b->writer_guid, one->guid) == 0;
    return other->lock_request.naming.role == ZKL_ROLE_READ ||
           strcmp(a->writer_guid, other->guid) == 0;
}

void check_exclusion(struct world *w)
{
    for (int i = 0; i < w->place_count; i++) {
        const struct place *a = &w->places[i];
        for (int j = 0; holds_now(a) && j < i; j++) {
            const struct place *b = &w->places[j];
            if (b->root == a->root && holds_now(b) && !go_together(a, b))
                wrong("a lock is held twice");
        }
    }
}

/* Modes: F8. */
void check_window(const struct client *c)
{
    if (!client_is_gone(c) && now_of(c).boot_ns < zkl_session_window_end(&c->core.session) &&
        !fake_alive(&c->world->fake, c->core.session.id) && !data_was_lost(c->world))
        wrong("a window outlives its session");
}

/* Whoever the leader gives up knows that by its own clock. Modes: F8. */
void check_expiry(struct world *w, int64_t session)
{
    each_client(w, c) {
        int64_t end = zkl_session_window_end(&c->core.session);
        if (!client_is_gone(c) && c->core.session.id == session && now_of(c).boot_ns < end)
            wrong("a session expires under its window");
    }
}

/* Nothing is queued ahead of a lock that is not held; all members are of one fate. Modes: F26. */
static void check_group(const struct client *c)
{
    const struct zkl_bundle *group = &c->group;
    bool contended = false;
    for (size_t i = 0; i < group->count; i++) {
        const struct place *place = (const struct place *)c->members[i].contender;
        enum zkl_contender_state state = place->contender.machine.state;
        must((place->phase == WAITING) == (group->state == ZKL_BUNDLE_TAKING));
        if (group->state != ZKL_BUNDLE_TAKING ||
            place->contender.machine.lock_request.bundle != group)
            continue;
        must(!contended || state == ZKL_CONTENDER_LEAVING || state == ZKL_CONTENDER_RELEASING);
        contended = contended || state == ZKL_CONTENDER_WAITING || state == ZKL_CONTENDER_EXHAUSTED;
    }
}

/* A waiter watches its immediate predecessor: no node that it would have to wait for is between the
 * two. Modes: F34. */
static void check_predecessor(const struct client *c, const struct zkl_contender *contender)
{
    const struct world *w = c->world;
    const struct zkl_watch *watch = contender->subs[ZKL_SUB_PRED].watch;
    const struct zkl_contender_machine *m = &contender->machine;
    struct zkl_node_name own, at, place;
    int between = 0;
    if (!watch || m->state != ZKL_CONTENDER_WAITING || counter_is_odd(w) ||
        m->lock_request.naming.role == ZKL_ROLE_PERMIT)
        return;
    const char *watched = strrchr(watch->path, '/') + 1;
    if (!zkl_name_parse(watched, &m->lock_request.naming, &at) ||
        !zkl_name_parse(m->node, &m->lock_request.naming, &own))
        return;
    must(!m->lock_request.try_only || zkl_name_is_retained(watched)); /* else it must not wait */
    must(waits_for(m, watched));
    each_node(&w->fake, node) {
        const char *name = fake_child_of(node, m->lock_request.path->text);
        if (name && node->dzxid == 0 && node->shown_czxid < m->czxid &&
            zkl_name_parse(name, &m->lock_request.naming, &place))
            between +=
                place.sequence > at.sequence && place.sequence < own.sequence && waits_for(m, name);
    }
    must(between == 0);
}

static bool is_among(const struct zkl_watch *watch, const char *path)
{
    while (watch && strcmp(watch->path, path) != 0)
        watch = watch->next;
    return watch != NULL;
}

static bool is_known(const struct zkl_core *core, const char *path)
{
    for (int i = 0; core->watch_count > 0 && i < ZKL_WATCH_BUCKETS; i++) {
        if (core->watches[i] && is_among(core->watches[i], path))
            return true;
    }
    return is_among(core->removing, path);
}

/* Where the server removes none, they stay until they fire; those stay too when it has learned. */
static bool leaves_watches(const struct zkl_core *core)
{
    return core->learned_mono_ns != 0;
}

/* The core knows every watch on the server, and each armed one belongs to a waiter. */
static void check_watches(const struct client *c)
{
    const struct fake_handle *h = c->current;
    for (size_t i = 0; h && i < h->armed.count && client_hears(c); i++)
        must(is_known(&c->core, h->armed.list[i].path));
    for (int i = 0; c->core.watch_count > 0 && i < ZKL_WATCH_BUCKETS; i++) {
        for (const struct zkl_watch *watch = c->core.watches[i]; watch; watch = watch->next)
            must(watch->subscribers || watch->state != ZKL_WATCH_ARMED || leaves_watches(&c->core));
    }
}

/* One for each path and kind; one that was left to fire may have another one planned beside it. */
static void check_watch_count(const struct zkl_core *core)
{
    size_t watches = 0;
    for (int i = 0; i < ZKL_WATCH_BUCKETS; i++) {
        for (const struct zkl_watch *watch = core->watches[i]; watch; watch = watch->next) {
            watches++;
            for (const struct zkl_watch *other = watch->next; other; other = other->next)
                must(watch->type != other->type || strcmp(watch->path, other->path) != 0 ||
                     leaves_watches(core));
        }
    }
    must(watches == core->watch_count && core->watch_bytes <= core->watch_bytes_max);
}

static void check_pending(const struct client *c)
{
    size_t awaited = 0;
    for (int i = 0; i < ZKL_PENDING_BUCKETS; i++) {
        for (const struct zkl_pending *slot = c->core.pending[i]; slot; slot = slot->next)
            awaited++;
    }
    must(awaited == c->core.pending_count);
}

/* A client that hears, and whose timers run, ends a hold as soon as its lease is over. */
static void check_lease(const struct client *c, const struct zkl_contender_machine *m)
{
    bool over = m->lease_end_boot != 0 && now_of(c).boot_ns >= m->lease_end_boot;
    must(!over || m->state != ZKL_CONTENDER_HOLDING || timers_are_late(c));
}

/* Who waits for an answer has a request out, or waits for another one's. Modes: F6, F21. */
static void check_awaited(const struct zkl_contender *o)
{
    const struct zkl_contender_machine *m = &o->machine;
    const struct zkl_bundle *b = m->lock_request.bundle;
    const struct zkl_contender *first = b ? b->members[b->gated].contender : o;
    const struct zkl_watch *list = o->subs[ZKL_SUB_LOCK_PATH].watch;
    bool together = o->transaction || o->wants_create || o->held != ZKL_HELD_NONE;
    must(!m->create_out || together || o->slots[ZKL_SLOT_CREATE].id != 0);
    must(!m->list_out || together || o->shares_list || o->slots[ZKL_SLOT_LIST].id != 0 ||
         (list && list->request.id != 0));
    must(!(m->stat_out || m->renew_out) || o->slots[ZKL_SLOT_STAT].id != 0);
    must(!m->limit.out || o->slots[ZKL_SLOT_LIMIT].id != 0 || first->slots[ZKL_SLOT_LIMIT].id != 0);
    must(m->state != ZKL_CONTENDER_MAKING || o->slots[ZKL_SLOT_CREATE].id != 0);
}

/* Nor does anybody stay where only an answer leads on, or wait for a permit without a watch on the
 * leases and on their number, except for the link, or until servers are asked again. */
static void check_waits(const struct client *c, const struct zkl_contender *o)
{
    const struct zkl_contender_machine *m = &o->machine;
    const struct fake_handle *h = c->current;
    bool rests = h && h->linked && !h->in.first && zkl_core_connected(&c->core) &&
                 c->core.again_mono_ns == INT64_MAX;
    bool asks = m->create_out || m->list_out || m->stat_out || m->limit.out;
    bool must_ask = m->state == ZKL_CONTENDER_QUEUEING || m->state == ZKL_CONTENDER_RECOVERING ||
                    m->state == ZKL_CONTENDER_LISTING;
    must(!rests || !must_ask || asks);
    if (rests && m->state == ZKL_CONTENDER_WAITING &&
        m->lock_request.naming.role == ZKL_ROLE_PERMIT)
        must(o->subs[ZKL_SUB_LOCK_PATH].watch && o->subs[ZKL_SUB_LIMIT].watch);
}

static void check_contender(const struct client *c, const struct zkl_contender *o)
{
    if (o->machine.state < ZKL_CONTENDER_HOLDING)
        check_awaited(o);
    check_waits(c, o);
    const struct zkl_contender_machine *m = &o->machine;
    const struct zkl_watch *watch = o->subs[ZKL_SUB_PRED].watch;
    must(!watch || m->state == ZKL_CONTENDER_WAITING || m->state == ZKL_CONTENDER_LISTING ||
         !fake_find(&c->world->fake, watch->path)); /* that ends it */
    /* A node must be deleted, and its contender has no request under way: the core tries again. */
    bool leaves = m->state == ZKL_CONTENDER_LEAVING || m->state == ZKL_CONTENDER_LOSTHOLD;
    bool busy = m->create_out || m->list_out || m->delete_out;
    must(!leaves || !m->on_server || busy || c->core.counts[ZKL_COUNT_RETRIES] > 0);
    check_predecessor(c, o);
}

static void check_counts(const struct client *c)
{
    size_t counts[ZKL_COUNTS] = {0};
    size_t owned = c->core.ephemeral_bytes_left;
    for (const struct zkl_contender *o = c->core.first; o; o = o->next) {
        must(o->counted == zkl_contender_counts(&o->machine));
        for (unsigned i = 0; i < ZKL_COUNTS; i++)
            counts[i] += o->counted >> i & 1;
        owned += zkl_contender_counts_for(o, ZKL_COUNT_OWNS) ? o->node_bytes : 0;
    }
    for (const struct zkl_query *query = c->core.queries; query; query = query->next)
        counts[ZKL_COUNT_WAITS]++;
    for (const struct zkl_leftover *l = c->core.leftovers.first; l; l = l->next)
        owned += l->bytes;
    must(memcmp(counts, c->core.counts, sizeof counts) == 0);
    must(owned == c->core.ephemeral_bytes);
    must(!c->core.refused && !zkl_due_any(&c->core));
}

/* Is the node that was asked about there, in the leader's eyes? */
static bool is_there(const struct client *c, const struct zkl_query *query)
{
    const struct fake_node *node = fake_find(&c->world->fake, query->path);
    return node && node->czxid == query->czxid;
}

void check_answer(const struct client *c, const struct zkl_query *query, int code,
                  const struct zkl_reply *reply)
{
    if (!reply) {
        must(may_fail(c, code));
        return;
    }
    must(code == 0);
    bool watches = query->kind == ZKL_REQ_WATCH;
    if (reply->answer == ZKL_ANSWER_OK) {
        must(!watches);
    } else if (reply->answer == ZKL_ANSWER_NONODE) {
        must(query->kind != ZKL_REQ_SYNC);
        must(!watches || data_was_lost(c->world) || !is_there(c, query));
    } else if (reply->answer == ZKL_ANSWER_LINK) {
        must(query->once);
    } else if (!may_answer(c->world, reply->answer)) {
        wrong("a query has an answer of another kind");
    }
}

void check_heartbeat(const struct client *c)
{
    for (const struct zkl_contender *o = c->core.first; o; o = o->next) {
        for (int i = 0; o->machine.unchecked && i < ZKL_HEARTBEATS_MAX; i++)
            must(c->core.heartbeats[i].pending.id == 0 ||
                 o->heartbeat_serial != c->core.heartbeats[i].serial);
    }
}

/* When an event is over, nothing speaks against keeping a lock that is kept for the next turn. */
static void check_idle(const struct client *c)
{
    if (!c->local_queue.given || c->local_queue.state != ZKL_LOCAL_QUEUE_IDLE)
        return;
    const struct zkl_contender_machine *m = &c->local_queue.holder->machine;
    must(m->state == ZKL_CONTENDER_HOLDING && !m->suspect && !m->revoked && !m->contended);
    must(((const struct place *)c->local_queue.holder)->owner == NULL && !c->local_queue.first);
}

void check_figures(const struct client *c, bool with_tables)
{
    check_group(c);
    check_counts(c);
    for (const struct zkl_contender *o = c->core.first; o; o = o->next) {
        must(o->machine.state != ZKL_CONTENDER_ENDED);
        must(o->next ? o->next->prev == o : c->core.last == o);
        check_lease(c, &o->machine);
    }
    check_heartbeat(c);
    check_idle(c);
    if (!with_tables)
        return;
    check_pending(c);
    check_watch_count(&c->core);
}

void check_core(const struct client *c, bool with_tables)
{
    check_figures(c, with_tables);
    must(c->core.ephemeral_bytes <= c->core.ephemeral_bytes_max);
    for (const struct zkl_contender *o = c->core.first; o; o = o->next)
        check_contender(c, o);
    if (with_tables)
        check_watches(c);
}

/* --- at the end ----------------------------------------------------------- */

bool core_is_done(const struct zkl_core *core)
{
    return !zkl_due_any(core) && !core->first && !core->queries && core->pending_count == 0 &&
           !core->removing && (core->watch_count == 0 || leaves_watches(core));
}

static void check_left(const struct zkl_core *core, const struct fake_watches *watches)
{
    for (size_t i = 0; i < watches->count; i++) {
        if (leaves_watches(core) && is_known(core, watches->list[i].path))
            continue;
        say("%s", watches->list[i].path);
        wrong("a watch is left behind");
    }
}

/* Modes: F2, F18, F19, F40. */
void check_nothing_left(struct world *w)
{
    each_node(&w->fake, node) {
        if (node->dzxid != 0 || node->owner == 0 || !fake_alive(&w->fake, node->owner) ||
            !must_be_gone(w, node->owner))
            continue;
        say("%s of %lld, zxid %lld", node->path, (long long)node->owner, (long long)node->czxid);
        wrong("a node is left behind");
    }
    each_client(w, c) {
        /* An answer that was held back may still be on its way. */
        if (c->dead || !c->current || c->current->in.first || c->current->held.first)
            continue;
        check_left(&c->core, &c->current->known);
        check_left(&c->core, &c->current->armed);
    }
}
