/* SPDX-License-Identifier: Apache-2.0
 * What must be true, as tests/sim/check.c has it: at each grant, after each step, and at the end. */
#include <stdio.h>
#include <string.h>

#include <zklock/zklock.h>

#include "core/due.h"
#include "core/opcode.h"
#include "core/watch.h"
#include "world.h"

bool is_proved(const struct place *place)
{
    const struct zkl_contender_machine *m = &place->contender.machine;
    int64_t now = now_of(place->client->world).boot_ns;
    return m->state == ZKL_CONTENDER_HOLDING && !m->unchecked &&
           now < zkl_session_window_end(&place->client->core.session) &&
           (m->lease_end_boot == 0 || now < m->lease_end_boot);
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

void check_state(const struct world *w, bool was_suspect, const struct zkl_notification *news)
{
    must(news->state == ZKL_HOLD_HELD ? was_suspect : news->state == ZKL_HOLD_SUSPECT);
    if (news->state == ZKL_HOLD_SUSPECT && news->reason == ZKL_REASON_UNCHECKED)
        must(w->denied);
    else
        must(was_suspect == (news->state == ZKL_HOLD_HELD));
}

/* --- at a grant ----------------------------------------------------------- */

static void check_token(struct world *w, const struct place *place)
{
    const struct zkl_contender_machine *m = &place->contender.machine;
    bool reader = m->lock_request.naming.role == ZKL_ROLE_READ;
    if (m->downgrade_from[0]) {
        must(m->czxid == m->downgrade_from_czxid);
        return;
    }
    must(m->czxid > (reader ? w->last_writer : w->last_token)[place->root]);
    if (m->czxid > w->last_token[place->root])
        w->last_token[place->root] = m->czxid;
    if (!reader)
        w->last_writer[place->root] = m->czxid;
}

/* A stranger deleted the node: if its server has shown that to the client, no lock is granted on it. */
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

/* libzookeeper is connected again, but the core has not yet received that event, all the time
 * that the second handle was connected. Such a session is given up alive. */
static bool is_back_unheard(const struct client *c, int64_t session)
{
    const struct fake_handle *h = c->current;
    const struct fake_message *message = h && h->session == session ? h->in.first : NULL;
    while (message && message->type != FAKE_UP)
        message = message->next;
    return message != NULL;
}

void check_loss(struct world *w, const struct place *place, int reason)
{
    char path[ZKL_PATH_MAX + ZKL_NODE_NAME_MAX + 2];
    path_of(&place->contender.machine, path, sizeof path);
    if (reason == ZKL_REASON_NODE_DELETED)
        must(!fake_find(&w->fake, path));
    if (reason == ZKL_REASON_EXPIRED)
        must(!fake_alive(&w->fake, place->session) ||
             is_back_unheard(place->client, place->session));
    if (reason == ZKL_REASON_LEASE_ENDED)
        must(now_of(w).boot_ns >= place->contender.machine.lease_end_boot);
}

struct unlocked check_unlock(const struct place *place)
{
    struct world *w = place->client->world;
    const struct zkl_contender_machine *m = &place->contender.machine;
    char path[ZKL_PATH_MAX + ZKL_NODE_NAME_MAX + 2];
    path_of(m, path, sizeof path);
    int64_t end = zkl_session_window_end(&place->client->core.session);
    return (struct unlocked){.proved = m->state == ZKL_CONTENDER_HOLDING && !m->unchecked &&
                                       now_of(w).boot_ns < end,
                             .gone = !was_deleted(place) && !fake_find(&w->fake, path)};
}

void check_unlocked(const struct unlocked *unlocked, int code)
{
    must(code == ZKL_OK || code == ZKL_EUNCONFIRMED || code == ZKL_EDOUBT || code == ZKL_ELOST);
    if (unlocked->gone && code != ZKL_ELOST && code != ZKL_EDOUBT)
        wrong("an unlock hides that the lock was somebody else's");
    if (unlocked->proved && code == ZKL_EDOUBT)
        wrong("an unlock doubts a hold that was proved");
}

static bool waits_for(const struct zkl_contender_machine *m, const char *name)
{
    struct zkl_node_name own, place;
    return zkl_name_parse(m->node, &m->lock_request.naming, &own) &&
           zkl_name_parse(name, &m->lock_request.naming, &place) &&
           zkl_queue_waits_for(m->lock_request.naming.role, own.sequence, m->node, &place, name);
}

/* The node of the grant is there and belongs to this session, and nobody has a node for which
 * the contender would have to wait. */
static void check_node(struct world *w, const struct place *place)
{
    const struct zkl_contender_machine *m = &place->contender.machine;
    char path[ZKL_PATH_MAX + ZKL_NODE_NAME_MAX + 2];
    path_of(m, path, sizeof path);
    const struct fake_node *own = fake_find(&w->fake, path);
    must(own && own->owner == place->client->core.session.id);
    must(m->downgrade_from[0] || own->shown_czxid == m->czxid);
    for (size_t i = 0; i < w->fake.node_count; i++) {
        const struct fake_node *node = &w->fake.nodes[i];
        const char *name = fake_child_of(node, m->lock_request.path->text);
        if (node != own && name && node->dzxid == 0 && node->czxid < own->czxid &&
            !m->downgrade_from[0])
            must(!waits_for(m, name));
    }
}

void check_grant(struct world *w, const struct place *place)
{
    const struct zkl_contender_machine *m = &place->contender.machine;
    const struct client *c = place->client;
    struct zkl_node_name at;
    must(zkl_name_parse(m->node, &m->lock_request.naming, &at) &&
         !zkl_sequence_exhausted(at.sequence));
    must(zkl_name_is_retained(m->node) ==
         m->lock_request.retained); /* others ask for it by its name */
    must(now_of(w).boot_ns < zkl_session_window_end(&c->core.session));
    if (was_deleted(place))
        return;
    must(fake_alive(&w->fake, c->core.session.id));
    check_token(w, place);
    check_node(w, place);
}

/* --- all the time --------------------------------------------------------- */

static bool holds_now(const struct place *place)
{
    return place->in_core && place->phase == GRANTED && !place->lost && !place->permit &&
           !place->client->dead && is_proved(place) && !was_deleted(place);
}

/* Two readers, and a reader that has the write lock itself. */
static bool go_together(const struct place *a, const struct place *b)
{
    const struct zkl_contender_machine *one = &a->contender.machine, *other = &b->contender.machine;
    if (one->lock_request.naming.role != ZKL_ROLE_READ)
        return other->lock_request.naming.role == ZKL_ROLE_READ &&
               strcmp(b->writer_guid, one->guid) == 0;
    return other->lock_request.naming.role == ZKL_ROLE_READ ||
           strcmp(a->writer_guid, other->guid) == 0;
}

static void check_exclusion(struct world *w)
{
    for (int i = 0; i < w->place_count; i++) {
        const struct place *a = &w->places[i];
        if (!holds_now(a))
            continue;
        must(fake_alive(&w->fake, a->client->core.session.id));
        for (int j = 0; j < i; j++) {
            const struct place *b = &w->places[j];
            if (b->root == a->root && holds_now(b) && !go_together(a, b))
                wrong("a lock is held twice");
        }
    }
}

static void check_permits(const struct world *w)
{
    int out = 0;
    for (int i = 0; i < w->owner_count; i++) {
        const struct owner *o = &w->owners[i];
        if (!o->client->dead && fake_alive(&w->fake, o->client->core.session.id))
            out += owner_permits_out(o);
    }
    if (out > w->bounds->scenario->permits)
        wrong("more permits are out than there are");
}

/* By the true clock the session lives as long as its window. */
static void check_window(const struct client *c)
{
    int64_t end = zkl_session_window_end(&c->core.session);
    if (now_of(c->world).boot_ns < end && !fake_alive(&c->world->fake, c->core.session.id))
        wrong("a window outlives its session");
}

void check_expiry(struct world *w, int64_t session)
{
    for (int i = 0; i < w->bounds->clients; i++) {
        const struct client *c = &w->clients[i];
        int64_t end = zkl_session_window_end(&c->core.session);
        if (!c->dead && c->core.session.id == session && now_of(w).boot_ns < end)
            wrong("a session expires under its window");
    }
}

/* Nothing is queued ahead of a lock that is not held; all members are of one fate. */
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

/* A waiter watches its immediate predecessor. */
static void check_predecessor(const struct client *c, const struct zkl_contender *contender)
{
    struct world *w = c->world;
    const struct zkl_watch *watch = contender->subs[ZKL_SUB_PRED].watch;
    const struct zkl_contender_machine *m = &contender->machine;
    struct zkl_node_name own, at, place;
    int between = 0;
    if (!watch || m->state != ZKL_CONTENDER_WAITING ||
        m->lock_request.naming.role == ZKL_ROLE_PERMIT || w->bounds->scenario->counter > 1000000)
        return;
    const char *watched = strrchr(watch->path, '/') + 1;
    if (!zkl_name_parse(watched, &m->lock_request.naming, &at) ||
        !zkl_name_parse(m->node, &m->lock_request.naming, &own))
        return;
    must(!m->lock_request.try_only || zkl_name_is_retained(watched)); /* else it must not wait */
    must(waits_for(m, watched));
    for (size_t i = 0; i < w->fake.node_count; i++) {
        const struct fake_node *node = &w->fake.nodes[i];
        const char *name = fake_child_of(node, m->lock_request.path->text);
        if (name && node->dzxid == 0 && node->shown_czxid < m->czxid &&
            zkl_name_parse(name, &m->lock_request.naming, &place))
            between +=
                place.sequence > at.sequence && place.sequence < own.sequence && waits_for(m, name);
    }
    must(between == 0);
}

/* A client that hears, and whose timers run, ends a hold as soon as its lease is over. */
static void check_lease(const struct client *c, const struct zkl_contender_machine *m)
{
    bool over = m->lease_end_boot != 0 && now_of(c->world).boot_ns >= m->lease_end_boot;
    must(!over || m->state != ZKL_CONTENDER_HOLDING || c->deaf || c->starved);
}

static void check_contenders(const struct client *c)
{
    size_t counts[ZKL_COUNTS] = {0};
    for (const struct zkl_contender *o = c->core.first; o; o = o->next) {
        must(o->counted == zkl_contender_counts(&o->machine));
        for (unsigned i = 0; i < ZKL_COUNTS; i++)
            counts[i] += o->counted >> i & 1;
        must(o->machine.state != ZKL_CONTENDER_ENDED);
        check_predecessor(c, o);
        check_lease(c, &o->machine);
        const struct zkl_watch *watch = o->subs[ZKL_SUB_PRED].watch;
        must(!watch || o->machine.state == ZKL_CONTENDER_WAITING ||
             o->machine.state == ZKL_CONTENDER_LISTING ||
             !fake_find(&c->world->fake, watch->path)); /* that ends it */
    }
    for (const struct zkl_query *query = c->core.queries; query; query = query->next)
        counts[ZKL_COUNT_WAITS]++;
    must(memcmp(counts, c->core.counts, sizeof counts) == 0);
    must(!c->core.refused);
}

/* A heartbeat has no unchecked node in it, because that would fail the whole heartbeat. */
void check_heartbeat(const struct client *c)
{
    for (const struct zkl_contender *o = c->core.first; o; o = o->next) {
        for (const struct zkl_heartbeat *heartbeat = c->core.heartbeats;
             heartbeat < c->core.heartbeats + ZKL_HEARTBEATS_MAX; heartbeat++)
            must(!o->machine.unchecked || heartbeat->pending.id == 0 ||
                 o->heartbeat_serial != heartbeat->serial);
    }
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
        if (is_among(core->watches[i], path))
            return true;
    }
    return is_among(core->removing, path);
}

/* If the server can't remove watches, they stay until they fire. */
static bool leaves_watches(const struct zkl_core *core)
{
    return zkl_opcode_is_unknown(core, ZKL_OPCODE_REMOVE_WATCHES);
}

/* The core knows of every watch on the server, and every armed watch of the core has a
 * subscriber. */
static void check_watches(const struct client *c)
{
    const struct fake_handle *h = c->current;
    for (size_t i = 0; h && i < h->armed.count && !c->deaf && !c->muted; i++)
        must(is_known(&c->core, h->armed.list[i].path));
    for (int i = 0; c->core.watch_count > 0 && i < ZKL_WATCH_BUCKETS; i++) {
        for (const struct zkl_watch *watch = c->core.watches[i]; watch; watch = watch->next)
            must(watch->subscribers || watch->state != ZKL_WATCH_ARMED || leaves_watches(&c->core));
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

void check_world(struct world *w)
{
    for (int i = 0; i < w->bounds->clients; i++) {
        struct client *c = &w->clients[i];
        if (c->dead)
            continue;
        check_window(c);
        check_group(c);
        check_contenders(c);
        check_heartbeat(c);
        check_watches(c);
        check_idle(c);
    }
    check_exclusion(w);
    check_permits(w);
}

/* --- at the end ----------------------------------------------------------- */

static bool is_done(const struct client *c)
{
    const struct zkl_core *core = &c->core;
    return c->dead || (c->freed && !core->first && !core->queries && core->pending_count == 0 &&
                       !core->removing && (core->watch_count == 0 || leaves_watches(core)) &&
                       !zkl_due_any(core));
}

bool check_done(const struct world *w)
{
    for (int i = 0; i < w->bounds->clients; i++) {
        if (!is_done(&w->clients[i]))
            return false;
    }
    return true;
}

static void check_left(const struct zkl_core *core, const struct fake_watches *watches)
{
    for (size_t i = 0; i < watches->count; i++) {
        if (!leaves_watches(core) || !is_known(core, watches->list[i].path))
            wrong("a watch is left behind");
    }
}

/* No node of a session that lives, and no watch. */
void check_nothing_left(struct world *w)
{
    for (size_t i = 0; i < w->fake.node_count; i++) {
        const struct fake_node *node = &w->fake.nodes[i];
        bool owned = false;
        for (int j = 0; j < w->bounds->clients; j++) {
            const struct client *c = &w->clients[j];
            owned = owned || (!c->dead && c->current && c->current->session == node->owner);
        }
        if (node->dzxid == 0 && node->owner != 0 && owned && fake_alive(&w->fake, node->owner))
            wrong("a node is left behind");
    }
    for (int i = 0; i < w->bounds->clients; i++) {
        const struct client *c = &w->clients[i];
        if (c->dead || !c->current || c->current->in.first)
            continue;
        check_left(&c->core, &c->current->known);
        check_left(&c->core, &c->current->armed);
    }
}
