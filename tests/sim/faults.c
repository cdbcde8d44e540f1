/* SPDX-License-Identifier: Apache-2.0
 * Faults of processes, links, servers and nodes. */
#include "world.h"

/* --- links and servers ---------------------------------------------------- */

/* Nothing that could still open a window is on its way. */
static bool may_lower(const struct client *p, const struct fake_handle *h)
{
    return !h->in.first && zkl_session_window_end(&p->core.session) <= now_of(p).boot_ns;
}

static void cut(struct client *p)
{
    if (!p->current)
        return;
    p->current->may_lower = may_lower(p, p->current);
    fake_break(p->current);
}

static void cut_probe(struct client *p)
{
    if (!p->probe)
        return;
    happened(p->world, SIM_PROBE_CUT);
    fake_break(p->probe);
}

static void hole(struct fake_handle *h)
{
    if (!h || !h->linked || h->stuck)
        return;
    h->stuck = true;
    h->stuck_ms = h->fake->now_ms;
}

static void stall(struct client *p)
{
    if (!p->current || !p->current->linked)
        return;
    happened(p->world, SIM_STALL);
    p->current->stalled = true;
}

/* The old leader has ended. No link outlives it, except those of servers that have not noticed:
 * B44. */
static void elect(struct world *w)
{
    happened(w, SIM_ELECTION);
    say("[%6lld] a leader is elected", (long long)w->fake.now_ms);
    w->elected = true;
    each_client(w, p) {
        if (p->current && !p->current->isolated)
            cut(p);
        if (p->probe)
            cut_probe(p);
    }
    fake_elect(&w->fake);
}

static void isolate(struct client *p)
{
    struct world *w = p->world;
    bool deposed = chance(w, 2);
    if (!p->current || !p->current->linked || p->current->isolated)
        return;
    happened(w, deposed ? SIM_DEPOSED : SIM_ISOLATED);
    say("[%6lld] %d's server is alone", (long long)w->fake.now_ms, name_of(p));
    fake_isolate(p->current, deposed);
    p->alone_ms = w->fake.now_ms;
    p->quiet = chance(w, 2);
    if (p->current->learner.leads)
        elect(w); /* the others have a leader again */
}

static void begin_outage(struct world *w)
{
    happened(w, SIM_OUTAGE);
    say("[%6lld] all servers are down", (long long)w->fake.now_ms);
    w->outage_until_ms = w->fake.now_ms + rnd(w, 4 * FAKE_TIMEOUT_MS);
    for (int i = 0; i < CLIENTS; i++) {
        cut(&w->clients[i]);
        cut_probe(&w->clients[i]);
    }
    fake_elect(&w->fake);
}

/* --- processes ------------------------------------------------------------ */

/* Halts the machine, with all of the process's links: no answer, and no notice. */
static void halt(struct client *p, int64_t ms)
{
    struct world *w = p->world;
    bool suspend = chance(w, 3);
    if (!proc_is_awake(p) || p->dead)
        return;
    happened(w, suspend ? SIM_SUSPEND : SIM_PAUSE);
    w->fault_seen = true; /* its session may end */
    say("[%6lld] %d sleeps %lld ms", (long long)w->fake.now_ms, name_of(p), (long long)ms);
    p->asleep_until_ms = w->fake.now_ms + ms;
    p->suspended_ms += suspend ? ms : 0;
    hole(p->current);
    hole(p->probe);
}

static void kill_some(struct client *p)
{
    if (p->closed || p->dead)
        return;
    happened(p->world, SIM_KILL);
    proc_kill(p);
}

static void refuse_credential(struct client *p)
{
    struct zkl_session_event event = {.type = ZKL_SE_AUTH_FAILED, .now = now_of(p)};
    if (p->closed || p->dead || !proc_is_awake(p))
        return;
    happened(p->world, SIM_REFUSED);
    p->refused = true;
    zkl_core_session_event(core_of(p), &event);
}

/* The completion thread gets no processor, or some callback of the user's holds it up. */
static void deafen(struct client *p)
{
    struct world *w = p->world;
    if (p->closed || p->dead || !w->late_answers)
        return;
    happened(w, SIM_LATE_ANSWERS);
    p->deaf_until_ms = w->fake.now_ms + 1 + rnd(w, FAKE_TIMEOUT_MS);
    say("[%6lld] %d hears nothing until %lld", (long long)w->fake.now_ms, name_of(p),
        (long long)p->deaf_until_ms);
}

static void lose_unnoticed(struct client *p)
{
    if (p->current && p->current->linked)
        happened(p->world, SIM_HOLE);
    hole(p->current);
}

static void halt_for_a_while(struct client *p)
{
    struct world *w = p->world;
    halt(p, chance(w, 2) ? rnd(w, 300) : rnd(w, 3 * FAKE_TIMEOUT_MS));
}

static void kill_or_elect(struct client *p)
{
    struct world *w = p->world;
    if (chance(w, 4))
        kill_some(p);
    else if (chance(w, 4))
        begin_outage(w);
    else
        elect(w);
}

static void disturb(struct client *p)
{
    static void (*const ways[])(struct client *) = {
        cut,           cut,   lose_unnoticed, halt_for_a_while, cut_probe, isolate,
        kill_or_elect, stall, deafen};
    p->world->fault_seen = true;
    ways[rnd(p->world, sizeof ways / sizeof *ways)](p);
}

/* --- where it is rare ----------------------------------------------------- */

/* The state of some reader under a write lock, where what may happen takes long to come by itself. */
static enum zkl_contender_state state_under(const struct client *p)
{
    each_of(p->places, PLACES_EACH, place) {
        enum zkl_contender_state state = place->contender.machine.state;
        if (place->in_core && place->writer_guid[0] &&
            (state == ZKL_CONTENDER_RECOVERING || state == ZKL_CONTENDER_CONFIRMING))
            return state;
    }
    return ZKL_CONTENDER_NEW;
}

/* Were its server cut off now, so much time the session would have from the end of the window on. */
static int64_t margin_ns(const struct client *p)
{
    const struct fake_session *s = fake_session_of(&p->world->fake, p->core.session.id);
    int64_t end_ns = zkl_session_window_end(&p->core.session);
    struct zkl_time now = now_of(p);
    if (!s || s->dead || end_ns <= now.boot_ns)
        return INT64_MAX;
    return (s->expire_ms - p->world->fake.now_ms) * MS - (end_ns - now.boot_ns);
}

/* The server is cut off where what it has noted matters most; the less is left, the likelier. */
static bool aim_at_window(struct client *p)
{
    struct world *w = p->world;
    int64_t margin = margin_ns(p);
    if (!p->current || !p->current->linked || p->current->isolated || p->current->learner.leads ||
        margin == INT64_MAX || margin > FAKE_TIMEOUT_MS / 2 * MS ||
        !chance(w, margin > FAKE_TIMEOUT_MS / 4 * MS   ? 200
                   : margin > FAKE_TIMEOUT_MS / 8 * MS ? 40
                                                       : 4))
        return false;
    happened(w, SIM_CLOSE_CALL);
    w->fault_seen = true;
    isolate(p);
    return true;
}

/* Nothing is heard of it for most of a timeout, over a link that goes on: what its server notes then is all
 * that the session lives by. */
static bool aim_at_silence(struct client *p)
{
    struct world *w = p->world;
    if (!p->current || !p->current->linked || p->current->stuck || p->current->learner.leads ||
        !proc_is_awake(p) || !p->core.first || !chance(w, fake_is_mended_soon(&w->fake) ? 15 : 60))
        return false;
    halt(p, FAKE_TIMEOUT_MS * 5 / 8 - (chance(w, 2) ? 0 : rnd(w, FAKE_TIMEOUT_MS * 3 / 8)));
    p->dozes = true;
    return true;
}

/* The session is about to be taken off the leader's queue, or was just now: it is linked again then. */
static bool aim_at_batch(struct client *p)
{
    struct world *w = p->world;
    struct fake_handle *h = p->current;
    const struct fake_session *s = h ? fake_session_of(&w->fake, h->session) : NULL;
    int64_t left_ms = s && !s->dead ? s->expire_ms - w->fake.now_ms : -1;
    if (left_ms < 0 || left_ms > FAKE_TIMEOUT_MS / 2 || h->linked || !chance(w, 6))
        return false;
    w->fault_seen = true;
    fake_pass(&w->fake, left_ms + rnd(w, 2));
    if (w->fake.now_ms < w->outage_until_ms)
        return true;
    h->may_lower = false;
    fake_connect(h, true);
    return true;
}

/* A new leader goes back to the stored timeout. */
static bool aim_at_raised(struct client *p)
{
    struct world *w = p->world;
    const struct fake_session *s = fake_session_of(&w->fake, p->core.session.id);
    bool raised = s && p->current && p->current->linked && p->current->timeout_ms > s->timeout_ms;
    if (!raised || margin_ns(p) == INT64_MAX || !chance(w, 30))
        return false;
    w->fault_seen = true;
    begin_outage(w);
    return true;
}

/* A link is lost and another made, immediately or some time after that, and the core learns of
 * neither. */
static void relink_unheard(struct client *p)
{
    struct world *w = p->world;
    happened(w, SIM_RELINKED_UNHEARD);
    w->fault_seen = true;
    if (chance(w, 2))
        deafen(p);
    fake_break(p->current);
    if (chance(w, 2))
        return;
    fake_pass(&w->fake, rnd(w, FAKE_TIMEOUT_MS / 4));
    if (chance(w, 3))
        fake_connect(p->current, false);
    fake_pass(&w->fake, rnd(w, FAKE_TIMEOUT_MS / 4));
    if (p->current->linked || w->fake.now_ms < w->outage_until_ms)
        return;
    p->current->may_lower = false;
    fake_connect(p->current, true);
}

static void aim(struct client *p)
{
    struct world *w = p->world;
    enum zkl_session_state session = p->core.session.state;
    enum zkl_contender_state downgrade_from = state_under(p);
    if (p->dead || p->closed || w->fault_rate > 1000 || aim_at_window(p) || aim_at_batch(p) ||
        aim_at_raised(p) || aim_at_silence(p))
        return;
    unsigned unheard = fake_is_mended_soon(&w->fake) ? 50 : 1000;
    if (w->late_answers && p->current && p->current->linked && chance(w, unheard))
        relink_unheard(p);
    if (downgrade_from == ZKL_CONTENDER_RECOVERING && p->current && p->current->linked &&
        chance(w, 4))
        fake_pass(&w->fake, FAKE_TIMEOUT_MS / 4 + rnd(w, FAKE_TIMEOUT_MS / 4));
    else if (downgrade_from == ZKL_CONTENDER_CONFIRMING && chance(w, 2))
        halt(p, FAKE_TIMEOUT_MS + rnd(w, FAKE_TIMEOUT_MS));
    else if (session == ZKL_SESSION_STARTING && p->current && p->current->linked && chance(w, 6))
        halt(p, FAKE_TIMEOUT_MS + rnd(w, FAKE_TIMEOUT_MS));
    else if (session == ZKL_SESSION_PROBED && chance(w, 20))
        refuse_credential(p);
}

/* --- strangers ------------------------------------------------------------ */

static struct fake_node *some_node(struct world *w)
{
    if (w->fake.node_count == 0)
        return NULL;
    struct fake_node *node = &w->fake.nodes[rnd(w, (unsigned)w->fake.node_count)];
    return node->dzxid == 0 && node->owner != 0 ? node : NULL;
}

static void delete_node(struct world *w, struct fake_node *node)
{
    happened(w, SIM_DELETED);
    say("[%6lld] a stranger deletes %s", (long long)w->fake.now_ms, node->path);
    owners_note_deletion(w, node->path);
    fake_delete(&w->fake, node);
}

static void write_node(struct world *w, struct fake_node *node)
{
    bool revoke = chance(w, 2);
    happened(w, revoke ? SIM_REVOKED : SIM_OVERWRITTEN);
    fake_write(&w->fake, node, revoke ? ZKL_REVOCATION : "");
}

/* Its ACL is replaced, or the old one comes back. */
static void deny_node(struct world *w, struct fake_node *node)
{
    node->denied = !node->denied;
    w->denied = true;
    happened(w, node->denied ? SIM_DENIED : SIM_ALLOWED);
    say("[%6lld] the owner of %s may%s check it", (long long)w->fake.now_ms, node->path,
        node->denied ? " not" : "");
}

static void delete_children(struct world *w, const struct fake_node *root)
{
    each_node(&w->fake, node) {
        if (node->dzxid == 0 && fake_child_of(node, root->path))
            fake_delete(&w->fake, node);
    }
}

/* The server removes empty containers. */
static void collect(struct world *w, struct fake_node *root)
{
    if (fake_has_children(&w->fake, root->path)) {
        if (fake_breaks(&w->fake, FAKE_TAKES_CHILDREN))
            delete_children(w, root);
        return;
    }
    happened(w, SIM_COLLECTED);
    fake_delete(&w->fake, root);
}

/* So early that it may come between two locks of the same owner. */
static void collect_soon(struct world *w)
{
    struct fake_node *root = fake_find(&w->fake, root_paths[rnd(w, ROOTS)]);
    if (!root || root->counter == 0 || !chance(w, 20))
        return;
    w->fault_seen = true;
    collect(w, root);
}

/* A path with contenders is deleted with all of them. A stranger makes it anew, makes enough
 * children there, and deletes them, so that the numbers continue, or nearly. */
static void make_anew(struct world *w)
{
    const char *path = root_paths[chance(w, 2) ? 0 : 2];
    struct fake_node *root = fake_find(&w->fake, path);
    if (!root || root->counter < 3 || !fake_has_children(&w->fake, path) || !chance(w, 40))
        return;
    int32_t counter = root->counter - (int32_t)rnd(w, 3);
    w->fault_seen = true;
    happened(w, SIM_MADE_ANEW);
    for (size_t i = 0; i < w->fake.node_count; i++) {
        if (w->fake.nodes[i].dzxid == 0 && fake_child_of(&w->fake.nodes[i], path))
            delete_node(w, &w->fake.nodes[i]);
    }
    fake_delete(&w->fake, fake_find(&w->fake, path));
    fake_create(&w->fake, path, 0, counter);
}

static void add_stranger(struct world *w, struct fake_node *root)
{
    char path[64];
    snprintf(path, sizeof path, "%s/note", root->path);
    if (!chance(w, 4) || fake_find(&w->fake, path))
        return;
    happened(w, SIM_STRANGER);
    w->foreign_seen = true;
    fake_create(&w->fake, path, 0, 0);
}

static void use_up_counter(struct world *w, struct fake_node *root)
{
    if (!chance(w, 3))
        return;
    bool end = chance(w, 2);
    if (root->counter >= ZKL_SEQUENCE_HARD - 16)
        return;
    happened(w, end ? SIM_COUNTER_END : SIM_COUNTER_ZONE);
    w->counter_moved = true;
    root->counter = end ? INT32_MAX - (int)rnd(w, 6) : ZKL_SEQUENCE_HARD - (int)rnd(w, 6);
}

static void interfere(struct world *w)
{
    static void (*const ways[])(struct world * w, struct fake_node * node) = {
        delete_node, write_node, write_node, collect, add_stranger, use_up_counter, deny_node};
    struct fake_node *node = some_node(w);
    struct fake_node *root = fake_find(&w->fake, root_paths[rnd(w, ROOTS)]);
    w->fault_seen = true;
    unsigned way = rnd(w, sizeof ways / sizeof *ways);
    bool of_root = way >= 3 && way <= 5;
    if (of_root ? root : node)
        ways[way](w, of_root ? root : node);
}

/* --- a group commit -------------------------------------------------------- */

/* A contender that waits to be grouped, or is in a transaction; NULL: there is none. */
static const struct zkl_contender *some_grouped(const struct client *p)
{
    const struct zkl_contender *c = p->core.first;
    while (c && c->held == ZKL_HELD_NONE && !(c->transaction && !c->machine.lock_request.together))
        c = c->next;
    return c;
}

static struct fake_node *node_of(struct world *w, const struct zkl_contender *c)
{
    char path[ZKL_PATH_MAX + ZKL_NODE_NAME_MAX + 2];
    snprintf(path, sizeof path, "%s/%s", c->machine.lock_request.path->text, c->machine.node);
    return c->machine.node[0] ? fake_find(&w->fake, path) : NULL;
}

/* What makes its transaction fail, or its answer get lost. */
static void aim_at_group(struct world *w, struct client *p)
{
    const struct zkl_contender *c = some_grouped(p);
    if (!c || !chance(w, 6))
        return;
    w->fault_seen = true;
    struct fake_node *node = node_of(w, c);
    struct fake_node *root = fake_find(&w->fake, c->machine.lock_request.path->text);
    if (node && chance(w, 2))
        delete_node(w, node);
    else if (root && root->counter > 0 && chance(w, 2))
        collect(w, root);
    else if (chance(w, 2))
        cut(p);
}

/* While it waits for permits the number is written again, or one of its nodes deleted. */
static void aim_at_permits(struct world *w, const struct owner *o)
{
    struct fake_node *leases = fake_find(&w->fake, SIM_LEASES);
    bool waits = owner_may_stop(o) && o->count > 1 && o->place->contender.subs[ZKL_SUB_LIMIT].watch;
    if (!waits || !leases || !chance(w, 3))
        return;
    struct fake_node *node = node_of(w, &o->place[rnd(w, (unsigned)o->count)].contender);
    w->fault_seen = true;
    if (node && chance(w, 3))
        delete_node(w, node);
    else
        fake_write(&w->fake, leases, "3");
}

/* --- when ----------------------------------------------------------------- */

void faults_maybe(struct world *w)
{
    struct client *p = &w->clients[rnd(w, CLIENTS)];
    if (chance(w, w->fault_rate))
        disturb(p);
    else
        aim(p);
    if (w->strangers && chance(w, 20))
        interfere(w);
    if (w->lonely && !w->grouped)
        collect_soon(w);
    if (w->grouped)
        aim_at_group(w, &w->clients[0]);
    if (w->in_rows && w->strangers)
        make_anew(w);
    if (w->limit_changes && chance(w, 20))
        permits_interfere(w);
    for (int i = 1; w->full && i <= ASKS; i++)
        aim_at_permits(w, &p->owners[OWNERS_EACH - i]);
    if (fake_breaks_once(&w->fake, FAKE_CLOSED_BY_HAND, 300))
        fake_expire(&w->fake, p->core.session.id);
    if (w->fault_rate < 30 && chance(w, 3000) && !w->wiped) {
        say("[%6lld] the data is lost", (long long)w->fake.now_ms);
        happened(w, SIM_DATA_LOSS);
        w->wiped = true;
        fake_wipe(&w->fake);
    }
    if (chance(w, 2000) && !p->closed && !p->dead) {
        happened(w, SIM_CLOSE);
        proc_close(p);
    }
}

/* A dead link is noticed after two thirds of the timeout, and a server that is alone ends its links
 * some time after it was cut off. */
static void notice(struct client *p, struct fake_handle *h)
{
    struct world *w = p->world;
    /* A server that learns of the session's end hangs up. */
    if (h && h->linked && !h->isolated && !h->stuck && !fake_alive(&w->fake, h->session) &&
        (w->calm || chance(w, 8)))
        fake_break(h);
    if (h && h->stuck && proc_is_awake(p) && w->fake.now_ms - h->stuck_ms > FAKE_TIMEOUT_MS * 2 / 3)
        fake_break(h);
    if (h && h->isolated && fake_breaks_once(&w->fake, FAKE_LINK_STAYS, 20))
        fake_rejoin(h);
    if (h && h->isolated && (w->calm || w->fake.now_ms - p->alone_ms > 2 * FAKE_TIMEOUT_MS))
        fake_break(h);
}

/* Of what is rare otherwise: the create under a write lock is carried out, and not answered. */
static void cut_now(struct client *p)
{
    struct world *w = p->world;
    if (!p->cut_soon || !p->current)
        return;
    p->cut_soon = false;
    w->fault_seen = true;
    while (p->current->out.first && fake_serve(p->current))
        ;
    fake_break(p->current);
    if (chance(w, 2) || w->fake.now_ms < w->outage_until_ms)
        return;
    p->current->may_lower = false;
    fake_connect(p->current, true); /* soon enough for the window */
}

void faults_notice(struct client *p)
{
    cut_now(p);
    notice(p, p->current);
    notice(p, p->probe);
}

static void reconnect(struct client *p, struct fake_handle *h, bool succeeds)
{
    struct world *w = p->world;
    if (!h || h->linked)
        return;
    if (w->fault_rate < 1000 && !w->calm && chance(w, 150)) {
        refuse_credential(p);
        return;
    }
    succeeds = succeeds && (w->calm || w->fake.now_ms >= w->outage_until_ms);
    if (!succeeds)
        happened(w, SIM_CONNECT_FAILED);
    h->may_lower = may_lower(p, h);
    fake_connect(h, succeeds);
    if (h == p->current && w->fault_rate < 1000 && !w->calm && chance(w, 20))
        isolate(p); /* it came to a server that is alone */
}

void faults_mend(struct client *p)
{
    struct world *w = p->world;
    if (w->calm || chance(w, 10)) {
        reconnect(p, p->current, w->calm || chance(w, 2));
        reconnect(p, p->probe, w->calm || chance(w, 2));
    }
    if (p->current && p->current->linked && (w->calm || chance(w, 6)))
        fake_catch_up(p->current, w->fake.zxid);
}
