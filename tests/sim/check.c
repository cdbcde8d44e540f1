/* SPDX-License-Identifier: Apache-2.0
 * What must be true: at each grant, after each step, and at the end. */
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <zklock/zklock.h>

#include "core/due.h"
#include "core/leftovers.h"
#include "core/watch.h"
#include "world.h"

#define SESSIONS_APART_MS 1000

bool is_proved(const struct proc *p, const struct zkl_contender *c)
{
    int64_t now = now_of(p).boot_ns;
    return c->machine.state == ZKL_CONTENDER_HOLDING && !c->machine.unchecked &&
           now < zkl_session_window_end(&p->core.session) &&
           (c->machine.lease_end_boot == 0 || now < c->machine.lease_end_boot);
}

bool may_be_denied(const struct world *w)
{
    return w->denied || w->fake.rules.eager || w->says_no;
}

bool may_be_refused(const struct world *w, int code)
{
    bool says_so = code == ZKL_EQUOTA || code == ZKL_EREADONLY || code == ZKL_EBADPATH ||
                   code == ZKL_EUNIMPLEMENTED;
    return w->says_no && says_so;
}

void check_state(const struct proc *p, bool was_suspect, const struct zkl_notification *news)
{
    if (news->state == ZKL_HOLD_HELD)
        must(was_suspect);
    else
        must(news->state == ZKL_HOLD_SUSPECT);
    if (news->state == ZKL_HOLD_SUSPECT && news->reason == ZKL_REASON_UNCHECKED)
        must(may_be_denied(p->world));
    else
        must(was_suspect == (news->state == ZKL_HOLD_HELD));
}

static bool was_deleted(const struct app *app)
{
    return app->deleted_guid[0] && strcmp(app->deleted_guid, app->contender.machine.guid) == 0;
}

/* --- at a grant ----------------------------------------------------------- */

/* First come, first served, and tokens grow: an exclusive grant's over all before it, a reader's over
 * the writers'. A reader that has the write lock shares that one's token. */
static void check_token(struct world *w, const struct app *app)
{
    const struct zkl_contender_machine *m = &app->contender.machine;
    bool reader = m->lock_request.naming.role == ZKL_ROLE_READ;
    if (app->writer) {
        must(m->czxid == m->downgrade_from_czxid);
        return;
    }
    must(m->czxid > (reader ? w->last_writer : w->last_token)[app->root]);
    if (m->czxid > w->last_token[app->root])
        w->last_token[app->root] = m->czxid;
    if (!reader)
        w->last_writer[app->root] = m->czxid;
}

static void path_of(const struct zkl_contender_machine *m, char *path, size_t size)
{
    snprintf(path, size, "%s/%s", m->lock_request.path->text, m->node);
}

/* A stranger deleted the node: if its server has shown that to the client, no lock is granted on
 * it. */
void check_hold(const struct proc *p, const struct zkl_contender_machine *m)
{
    const struct fake *fake = &p->world->fake;
    char path[ZKL_PATH_MAX + ZKL_NODE_NAME_MAX + 2];
    path_of(m, path, sizeof path);
    for (size_t i = 0; p->current && i < fake->node_count; i++) {
        const struct fake_node *node = &fake->nodes[i];
        if (fake_has_told(p->current, node) && strcmp(node->path, path) == 0)
            wrong("a lock is granted on a node that is gone");
    }
}

/* libzookeeper is connected again, but its completion thread was so late, all the time that the
 * second handle was connected, that the core has not been notified. The core gives such a session
 * up alive, and it ends as its handle is closed. */
static bool is_back_unheard(const struct proc *p, int64_t session)
{
    const struct fake_handle *h = p->current;
    const struct fake_message *message = h && h->session == session ? h->in.first : NULL;
    while (message && message->type != FAKE_UP)
        message = message->next;
    return message != NULL;
}

/* A reported loss has happened. */
void check_loss(struct world *w, const struct app *app, int reason)
{
    char path[ZKL_PATH_MAX + ZKL_NODE_NAME_MAX + 2];
    path_of(&app->contender.machine, path, sizeof path);
    if (reason == ZKL_REASON_NODE_DELETED)
        must(!fake_find(&w->fake, path));
    if (reason == ZKL_REASON_EXPIRED && !w->elected && !app->proc->refused)
        must(!fake_alive(&w->fake, app->session) || w->fake.resumes_none ||
             is_back_unheard(app->proc, app->session));
}

/* No promise covers a stranger that deletes nodes, or lost data. */
struct unlocked check_unlock(struct proc *p, const struct zkl_contender *c,
                             const char *deleted_guid)
{
    struct world *w = p->world;
    char path[ZKL_PATH_MAX + ZKL_NODE_NAME_MAX + 2];
    path_of(&c->machine, path, sizeof path);
    bool excused = w->wiped || strcmp(deleted_guid, c->machine.guid) == 0;
    /* Of an unchecked one the window is 0. */
    bool holds = c->machine.state == ZKL_CONTENDER_HOLDING && !c->machine.unchecked;
    return (struct unlocked){.proved = holds &&
                                       now_of(p).boot_ns < zkl_session_window_end(&p->core.session),
                             .gone = !excused && !fake_find(&w->fake, path)};
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
    if (unlocked->gone)
        happened(w, SIM_GONE_AT_UNLOCK);
    if (code == ZKL_EDOUBT)
        happened(w, SIM_DOUBTED);
}

/* The node of the grant exists and is of this session, and no node of another contender comes
 * before it. Modes: F5, F10, F58. */
static void check_node(struct world *w, const struct app *app)
{
    const struct zkl_contender_machine *m = &app->contender.machine;
    char path[ZKL_PATH_MAX + ZKL_NODE_NAME_MAX + 2];
    path_of(&app->contender.machine, path, sizeof path);
    const struct fake_node *own = fake_find(&w->fake, path);
    must(own && own->owner == app->proc->core.session.id);
    must(m->downgrade_from[0] || own->shown_czxid == m->czxid);
    for (size_t i = 0; app->root != RW_ROOT && i < w->fake.node_count; i++) {
        const struct fake_node *node = &w->fake.nodes[i];
        struct zkl_node_name place;
        const char *name = fake_child_of(node, m->lock_request.path->text);
        if (node == own || !name || node->dzxid != 0 ||
            !zkl_name_parse(name, &m->lock_request.naming, &place))
            continue;
        must(node->czxid > own->czxid);
    }
}

/* Modes: F27. */
void check_grant(struct world *w, const struct app *app)
{
    const struct zkl_contender_machine *m = &app->contender.machine;
    struct zkl_node_name place;
    must(zkl_name_parse(m->node, &m->lock_request.naming, &place) &&
         !zkl_sequence_exhausted(place.sequence));
    must(zkl_name_is_retained(m->node) ==
         m->lock_request.retained); /* others ask for it by its name */
    must(now_of(app->proc).boot_ns < zkl_session_window_end(&app->proc->core.session));
    if (was_deleted(app))
        return;
    /* Answers of before the data was lost may be read after it: a session that is lost too. */
    if (!fake_alive(&w->fake, app->proc->core.session.id)) {
        must(w->wiped);
        return;
    }
    check_token(w, app);
    check_node(w, app);
}

/* --- all the time --------------------------------------------------------- */

static bool holds_now(const struct app *app)
{
    if (app->phase == GRANTED && app->lost) /* it may have looked at its window before */
        return now_of(app->proc).boot_ns < app->told_until_boot;
    return app->in_core && app->phase == GRANTED && !app->lost &&
           is_proved(app->proc, &app->contender);
}

/* May these two hold together? Two readers, and a reader that has the write lock itself. */
static bool go_together(const struct app *a, const struct app *b)
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
    const struct app *holders[ROOTS + 1][PROCS * ALL_APPS];
    int count[ROOTS + 1] = {0};
    for (int i = 0; i < PROCS * ALL_APPS; i++) {
        struct app *app = &w->procs[i / ALL_APPS].apps[i % ALL_APPS];
        if (app->phase != GRANTED || !holds_now(app) || was_deleted(app))
            continue;
        /* Lost data is not covered by any promise. */
        if (!app->lost && !fake_alive(&w->fake, app->proc->core.session.id)) {
            must(w->wiped);
            continue;
        }
        for (int j = 0; j < count[app->root]; j++) {
            if (!go_together(app, holders[app->root][j]))
                wrong("a lock is held twice");
        }
        holders[app->root][count[app->root]++] = app;
    }
}

/* By the true clock the session lives as long as its window. Modes: F8. */
static void check_windows(const struct world *w)
{
    for (int i = 0; i < PROCS; i++) {
        const struct proc *p = &w->procs[i];
        if (p->dead_until_ms == 0 && !p->closed &&
            now_of(p).boot_ns < zkl_session_window_end(&p->core.session) &&
            !fake_alive(&w->fake, p->core.session.id) && !w->wiped)
            wrong("a window outlives its session");
    }
}

static void note_margin(struct world *w, int64_t margin_ns)
{
    struct tally *tally = w->tally;
    if (tally->margins++ == 0 || margin_ns < tally->margin_ns)
        tally->margin_ns = margin_ns;
    if (margin_ns < FAKE_TIMEOUT_MS / 16 * MS)
        happened(w, SIM_EXPIRED_CLOSE);
}

/* Whoever the leader gives up knows that by its own clock. Modes: F8. */
void check_expiry(struct fake *fake, int64_t session)
{
    struct world *w = (struct world *)((char *)fake - offsetof(struct world, fake));
    for (int i = 0; i < PROCS; i++) {
        const struct proc *p = &w->procs[i];
        int64_t end_ns = zkl_session_window_end(&p->core.session);
        if (p->dead_until_ms != 0 || p->closed || p->core.session.id != session || end_ns == 0)
            continue;
        say("[%6lld] %d's session expires %lld us after its window", (long long)fake->now_ms, i,
            (long long)((now_of(p).boot_ns - end_ns) / 1000));
        if (now_of(p).boot_ns < end_ns)
            wrong("a session expires under its window");
        note_margin(w, now_of(p).boot_ns - end_ns);
    }
}

void check_world(struct world *w)
{
    if (w->fake.unreadable)
        wrong("a session ends with more nodes than servers can read again");
    if (w->semaphores)
        permits_note_limit(w);
    check_exclusion(w);
    check_windows(w);
}

/* Nothing is queued ahead of a lock that is not held; all members are of one fate. Modes: F26. */
static void check_group(const struct proc *p)
{
    const struct zkl_bundle *group = &p->group;
    bool contended = false;
    for (size_t i = 0; i < group->count; i++) {
        const struct app *app = (const struct app *)p->members[i].contender;
        enum zkl_contender_state state = app->contender.machine.state;
        must((app->phase == WAITING) == (group->state == ZKL_BUNDLE_TAKING));
        if (group->state != ZKL_BUNDLE_TAKING ||
            app->contender.machine.lock_request.bundle != group)
            continue;
        must(!contended || state == ZKL_CONTENDER_LEAVING || state == ZKL_CONTENDER_RELEASING);
        contended = contended || state == ZKL_CONTENDER_WAITING || state == ZKL_CONTENDER_EXHAUSTED;
    }
}

/* A waiter watches its immediate predecessor: no node that it would have to wait for is between the
 * two. Modes: F34. */
static void check_predecessor(const struct proc *p, const struct zkl_contender *c)
{
    const struct world *w = p->world;
    const struct zkl_watch *watch = c->subs[ZKL_SUB_PRED].watch;
    const struct zkl_contender_machine *m = &c->machine;
    struct zkl_node_name own, at, place;
    int between = 0;
    if (!watch || m->state != ZKL_CONTENDER_WAITING || w->counter_moved ||
        m->lock_request.naming.role == ZKL_ROLE_PERMIT)
        return;
    const char *watched = strrchr(watch->path, '/') + 1;
    if (!zkl_name_parse(watched, &m->lock_request.naming, &at) ||
        !zkl_name_parse(m->node, &m->lock_request.naming, &own))
        return;
    must(!m->lock_request.try_only || zkl_name_is_retained(watched)); /* else it must not wait */
    must(zkl_queue_waits_for(m->lock_request.naming.role, own.sequence, m->node, &at, watched));
    for (size_t i = 0; i < w->fake.node_count; i++) {
        const struct fake_node *node = &w->fake.nodes[i];
        const char *name = fake_child_of(node, m->lock_request.path->text);
        if (!name || node->dzxid != 0 || node->shown_czxid >= m->czxid ||
            !zkl_name_parse(name, &m->lock_request.naming, &place))
            continue;
        between +=
            place.sequence > at.sequence && place.sequence < own.sequence &&
            zkl_queue_waits_for(m->lock_request.naming.role, own.sequence, m->node, &place, name);
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
    for (int i = 0; i < ZKL_WATCH_BUCKETS; i++) {
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
static void check_watches(const struct proc *p)
{
    const struct fake_handle *h = p->current;
    for (size_t i = 0; h && i < h->armed.count; i++)
        must(is_known(&p->core, h->armed.list[i].path));
    for (int i = 0; p->core.watch_count > 0 && i < ZKL_WATCH_BUCKETS; i++) {
        for (const struct zkl_watch *watch = p->core.watches[i]; watch; watch = watch->next)
            must(watch->subscribers || watch->state != ZKL_WATCH_ARMED || leaves_watches(&p->core));
    }
}

static void check_subscriptions(const struct proc *p)
{
    for (const struct zkl_contender *c = p->core.first; c; c = c->next) {
        enum zkl_contender_state state = c->machine.state;
        const struct zkl_watch *watch = c->subs[ZKL_SUB_PRED].watch;
        must(!watch || state == ZKL_CONTENDER_WAITING || state == ZKL_CONTENDER_LISTING ||
             !fake_find(&p->world->fake, watch->path)); /* that ends it */
    }
}

/* A node must be deleted, and its contender has no request under way: the core tries again. */
static void check_leftovers(const struct proc *p)
{
    for (const struct zkl_contender *c = p->core.first; c; c = c->next) {
        const struct zkl_contender_machine *m = &c->machine;
        bool leaves = m->state == ZKL_CONTENDER_LEAVING || m->state == ZKL_CONTENDER_LOSTHOLD;
        bool busy = m->create_out || m->list_out || m->delete_out;
        must(!leaves || !m->on_server || busy || p->core.counts[ZKL_COUNT_RETRIES] > 0);
    }
}

static void check_pending(const struct proc *p)
{
    size_t awaited = 0;
    for (int i = 0; i < ZKL_PENDING_BUCKETS; i++) {
        for (const struct zkl_pending *slot = p->core.pending[i]; slot; slot = slot->next)
            awaited++;
    }
    must(awaited == p->core.pending_count);
}

static void check_counts(const struct proc *p)
{
    size_t counts[ZKL_COUNTS] = {[ZKL_COUNT_WAITS] = queries_out(p)};
    size_t owned = p->core.ephemeral_bytes_left;
    for (const struct zkl_contender *c = p->core.first; c; c = c->next) {
        must(c->counted == zkl_contender_counts(&c->machine));
        for (unsigned i = 0; i < ZKL_COUNTS; i++)
            counts[i] += c->counted >> i & 1;
        for (int i = 0; i < ZKL_HEARTBEATS_MAX; i++) {
            const struct zkl_heartbeat *heartbeat = &p->core.heartbeats[i];
            if (heartbeat->pending.id != 0 && c->heartbeat_serial == heartbeat->serial)
                must(!c->machine.unchecked); /* it would fail all others */
        }
        owned += zkl_contender_counts_for(c, ZKL_COUNT_OWNS) ? c->node_bytes : 0;
        must(c->machine.state != ZKL_CONTENDER_ENDED);
        check_predecessor(p, c);
    }
    for (const struct zkl_leftover *l = p->core.leftovers.first; l; l = l->next)
        owned += l->bytes;
    must(memcmp(counts, p->core.counts, sizeof counts) == 0);
    must(owned == p->core.ephemeral_bytes && owned <= p->core.ephemeral_bytes_max);
    must(!p->core.refused);
}

/* Whatever the server does with sessions, they come slowly; one that lived its timeout, be it while
 * its client slept, may be followed at once. */
void check_opening(struct proc *p)
{
    int64_t now_ns = now_of(p).boot_ns, timeout_ms = p->core.session.timeout_ms;
    int64_t apart_ms = timeout_ms < SESSIONS_APART_MS ? timeout_ms : SESSIONS_APART_MS;
    must(p->opened_boot_ns == 0 || now_ns - p->opened_boot_ns >= apart_ms * MS);
    p->opened_boot_ns = now_ns;
}

/* With a node that may be checked, and nothing in the way, the session is proved. */
static void check_proof(struct proc *p)
{
    int64_t now_ms = p->world->fake.now_ms;
    if (!p->world->calm || !proc_is_awake(p) || p->core.counts[ZKL_COUNT_HEARTBEATS] == 0 ||
        !zkl_session_connected(&p->core.session))
        p->unproved_ms = now_ms;
    int64_t timeout_ns = zkl_session_timeout_ns(&p->core.session);
    if (timeout_ns < FAKE_TIMEOUT_MS * MS)
        timeout_ns = FAKE_TIMEOUT_MS * MS;
    if ((now_ms - p->unproved_ms) * MS > timeout_ns)
        must(now_of(p).boot_ns - p->core.session.proof.newest_proof_boot < timeout_ns / 2);
}

void check_process(struct proc *p)
{
    if (p->dead_until_ms != 0)
        return;
    p->window_end_boot = zkl_session_window_end(&p->core.session);
    check_proof(p);
    check_group(p);
    check_counts(p);
    check_subscriptions(p);
    check_leftovers(p);
    queries_check(p);
    if (p->world->core_steps % 8 != 0)
        return; /* the tables are large: what is wrong with them stays so for a while */
    check_pending(p);
    check_watches(p);
}

/* --- at the end ----------------------------------------------------------- */

static bool is_done(const struct proc *p)
{
    if (p->dead_until_ms != 0)
        return false;
    if (zkl_due_any(&p->core) || !permits_done(p) || !local_queue_done(p) || !readers_done(p))
        return false;
    if (p->core.first || p->core.queries || p->core.pending_count || p->core.removing ||
        (p->core.watch_count > 0 && !leaves_watches(&p->core)))
        return false;
    /* What a late write leaves is removed by a look. */
    if ((p->current && p->current->late.first) || p->core.leftovers.due_mono_ns != INT64_MAX)
        return false;
    for (int i = 0; i < ALL_APPS; i++) {
        if (p->apps[i].phase != IDLE)
            return false;
    }
    return true;
}

/* No contender waits for anything any more. Modes: F6, F21. */
bool check_done(const struct world *w)
{
    for (int i = 0; i < PROCS; i++) {
        if (!is_done(&w->procs[i]))
            return false;
    }
    return true;
}

void check_complain(struct world *w)
{
    for (int i = 0; i < PROCS; i++) {
        struct proc *p = &w->procs[i];
        say("process %d: session %lld %s, %zu pending, %zu watches%s", i,
            (long long)p->core.session.id, zkl_session_state_name(p->core.session.state),
            p->core.pending_count, p->core.watch_count, p->core.removing ? ", removals" : "");
        for (struct zkl_contender *c = p->core.first; c; c = c->next)
            say("  #%llu %s %s", (unsigned long long)c->number,
                zkl_contender_state_name(c->machine.state), c->machine.lock_request.path->text);
    }
    for (size_t i = 0; i < w->fake.node_count; i++)
        say("  node %s of %lld %s", w->fake.nodes[i].path, (long long)w->fake.nodes[i].owner,
            w->fake.nodes[i].dzxid ? "(deleted)" : "");
    wrong("somebody does not get through");
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

/* No node of a session that lives, and no watch. Modes: F2, F18, F19, F40. */
void check_nothing_left(struct world *w)
{
    fake_pass(&w->fake, 4 * FAKE_TIMEOUT_MS); /* sessions that were closed without a link expire */
    for (size_t i = 0; i < w->fake.node_count; i++) {
        const struct fake_node *node = &w->fake.nodes[i];
        if (node->dzxid != 0 || node->owner == 0 || !fake_alive(&w->fake, node->owner))
            continue;
        say("%s of %lld, zxid %lld", node->path, (long long)node->owner, (long long)node->czxid);
        wrong("a node is left behind");
    }
    for (int i = 0; i < PROCS; i++) {
        const struct fake_handle *h = w->procs[i].current;
        /* An answer that was held back may still be on its way. */
        if (!h || h->in.first || h->held.first)
            continue;
        check_left(&w->procs[i].core, &h->known);
        check_left(&w->procs[i].core, &h->armed);
    }
}
