/* SPDX-License-Identifier: Apache-2.0
 * What stands in for the driver beside tests/owners/port.c: handles, timers; and time, which moves only when the search moves it,
 * to the next moment that is due.
 *
 * A client receives an answer or an event as soon as its server has sent it, unless the link is muted or the
 * client deaf. The search loses nothing by that. A link is first in, first out both ways. A client that receives
 * something later does nothing meanwhile that it could not have done before its server took the request: what it
 * sends stands behind what it sent before, and its server does for others what it would do anyway. Likewise a
 * server takes a keepalive or a heartbeat immediately, because these concern nobody except the client. These are
 * partial-order reductions in the sense of Godefroid (Partial-Order Methods for the Verification of Concurrent
 * Systems, 1996): of steps that commute with all others the search tries one order. */
#include "arena.h"
#include "world.h"

#define SPINS_MAX 20
#define SETTLES_MAX 1000

struct world *world;

int64_t boot_of(const struct client *c, int64_t ms)
{
    (void)c;
    return (ms + BOOT_AHEAD_MS) * MS;
}

struct zkl_time now_of(const struct client *c)
{
    return time_of(c->world);
}

struct zkl_time time_of(const struct world *w)
{
    return (struct zkl_time){w->fake.now_ms * MS, (w->fake.now_ms + BOOT_AHEAD_MS) * MS};
}

/* --- what the leader has heard -------------------------------------------- */

/* The server that a client is linked to reports a request to the leader immediately, or up to P + D later. If
 * the link or the server ends before that, the server may never report it. Here the server reports each request
 * as late as it may, and the leader counts from when the server took it: no schedule of rounds ends a session
 * earlier (docs/evidence/beliefs.md, B30 to B57). */
struct touches *touches_of(struct world *w, int64_t session)
{
    for (int i = 0; i < w->touches_count; i++) {
        if (w->touches[i].session == session)
            return &w->touches[i];
    }
    return NULL;
}

static void touches_told(struct touches *t, int64_t now_ms)
{
    int kept = 0;
    for (int i = 0; i < t->held; i++) {
        if (t->held_ms[i] + ROUND_MS + LATE_MS > now_ms)
            t->held_ms[kept++] = t->held_ms[i];
        else if (t->close_ms == 0 && t->held_ms[i] > t->last_ms)
            t->last_ms = t->held_ms[i];
    }
    t->held = kept;
}

/* As a link begins. */
static void touches_link(struct world *w, int64_t session)
{
    struct touches *t = touches_of(w, session);
    if (!t) {
        int i = 0;
        while (i < w->touches_count && fake_alive(&w->fake, w->touches[i].session))
            i++;
        must(i < SESSIONS);
        w->touches_count += i == w->touches_count;
        t = &w->touches[i];
        *t = (struct touches){.session = session};
    }
    touches_told(t, w->fake.now_ms);
    t->held = 0;
    if (t->close_ms == 0)
        t->last_ms = w->fake.now_ms;
}

static void touches_request(struct world *w, int64_t session)
{
    struct touches *t = touches_of(w, session);
    int64_t now_ms = w->fake.now_ms;
    touches_told(t, now_ms);
    if (t->held > 0 && t->held_ms[t->held - 1] == now_ms)
        return;
    must(t->held < (int)(sizeof t->held_ms / sizeof *t->held_ms));
    t->held_ms[t->held++] = now_ms;
}

static void touches_unlink(struct world *w, int64_t session)
{
    struct touches *t = touches_of(w, session);
    if (!t)
        return;
    touches_told(t, w->fake.now_ms);
    t->held = 0;
}

static int64_t expiry_ms(const struct touches *t)
{
    int64_t at = t->last_ms + TIMEOUT_MS;
    if (t->close_ms != 0)
        return t->close_ms;
    for (int i = 0; i < t->held; i++) {
        if (t->held_ms[i] + ROUND_MS + LATE_MS <= at)
            at = t->held_ms[i] + TIMEOUT_MS;
    }
    return at;
}

/* --- the port ------------------------------------------------------------- */

void handle_goes(struct client *c, struct fake_handle *h)
{
    if (h == c->current) {
        h->stuck = c->muted;
        c->muted = c->behind = false;
    }
    touches_unlink(c->world, h->session);
}

void client_draws(struct client *c, unsigned char bytes[16])
{
    memset(bytes, 0, 16);
    bytes[0] = (unsigned char)(name_of(c) + 1);
    bytes[1] = (unsigned char)++c->guids;
    must(c->guids < 256);
}

/* --- what the core hears -------------------------------------------------- */

bool client_timer_is_due(const struct client *c)
{
    struct zkl_time now = now_of(c);
    return !c->dead && zkl_core_next_timeout(&c->core, now) <= now.mono_ns;
}

bool client_may_hear(const struct client *c)
{
    return (c->current && !c->muted && c->current->in.first) || (c->probe && c->probe->in.first) ||
           client_timer_is_due(c);
}

void client_timer(struct client *c)
{
    c->starved = false;
    zkl_core_timer(&c->core, now_of(c));
}

/* --- links ---------------------------------------------------------------- */

struct fake_handle *handle_opens(struct client *c)
{
    struct fake_handle *h = fake_open(&c->world->fake);
    h->timeout_ms = TIMEOUT_MS;
    return h;
}

bool client_is_linked(const struct client *c)
{
    return !c->dead && c->current && c->current->linked;
}

bool client_is_served(const struct client *c)
{
    if (!client_is_linked(c) || !c->current->out.first)
        return false;
    enum zkl_request_kind kind = c->current->out.first->request.kind;
    if (c->current->isolated)
        return fake_is_read(kind) || (kind == ZKL_REQ_SYNC && c->current->deposed);
    return fake_alive(&c->world->fake, c->current->session);
}

/* Every server applies what was done, except those that are behind, or alone. */
static void spread(struct world *w)
{
    each_client(w, c) {
        if (client_is_linked(c) && !c->behind && c->current->view < w->fake.zxid)
            fake_catch_up(c->current, w->fake.zxid);
        if (c->behind && client_is_linked(c))
            c->behind = c->current->view < w->fake.zxid;
    }
}

void client_serve(struct client *c)
{
    bool isolated = c->current->isolated;
    if (fake_serve(c->current) && !isolated)
        touches_request(c->world, c->current->session);
    spread(c->world);
}

void client_break(struct client *c)
{
    if (!client_is_linked(c))
        return;
    touches_unlink(c->world, c->current->session);
    c->current->stuck = c->muted && c->world->fake.now_ms > c->muted_ms;
    c->muted = c->behind = false;
    fake_break(c->current);
}

void client_connect(struct client *c, struct fake_handle *h, bool behind)
{
    struct world *w = c->world;
    c->sessions += h->session == 0;
    h->comes_behind = behind;
    if (w->raised && h->session != 0)
        h->timeout_ms = 2 * TIMEOUT_MS;
    fake_connect(h, true);
    if (h->linked)
        touches_link(w, h->session);
    if (h->told == 0)
        h->told = h->seen; /* it can't have seen more before */
    if (h == c->current)
        c->behind = behind && h->linked;
}

void client_kill(struct client *c)
{
    client_dies(c);
    c->open_current = c->open_probe = c->deaf = c->starved = c->muted = c->behind = false;
}

/* --- what follows by itself ----------------------------------------------- */

static bool is_background(const struct client *c)
{
    enum zkl_request_kind kind = c->current->out.first->request.kind;
    bool first = c->world->bounds->scenario->unlinked && !c->core.session.proof.is_known;
    return (kind == ZKL_REQ_KEEPALIVE || kind == ZKL_REQ_CHECK_ALL) && !first && !c->behind &&
           !c->muted && !c->current->isolated;
}

static bool settle_handles(struct client *c)
{
    bool busy = client_opens(c);
    bool ended = client_is_linked(c) && !c->current->isolated && !c->muted &&
                 !fake_alive(&c->world->fake, c->current->session);
    if (ended) {
        client_break(c);
        busy = true;
    }
    if (c->probe && c->probe->linked && !fake_alive(&c->world->fake, c->probe->session)) {
        fake_break(c->probe);
        busy = true;
    }
    return busy;
}

static bool settle_client(struct client *c)
{
    if (c->dead)
        return false;
    bool busy = settle_handles(c);
    if (c->deaf) {
        if (c->current && !c->muted)
            fake_receive(c->current);
    } else {
        while ((!c->muted && client_is_told(c, c->current)) || client_is_told(c, c->probe))
            busy = true;
        for (int spins = 0; !c->starved && client_timer_is_due(c); spins++) {
            must(spins < SPINS_MAX); /* the service thread would spin */
            client_timer(c);
            busy = true;
        }
    }
    while (client_is_served(c) && is_background(c)) {
        check_heartbeat(c);
        client_serve(c);
        busy = true;
    }
    return busy;
}

void world_settle(struct world *w)
{
    int rounds = 0;
    spread(w);
    for (bool busy = true; busy; rounds++) {
        busy = false;
        must(rounds < SETTLES_MAX);
        for (int i = 0; i < w->client_count; i++)
            busy |= settle_client(&w->clients[i]);
        world_run(w);
    }
}

/* --- time ----------------------------------------------------------------- */

static int64_t first_of(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* When the leader has surely heard of a request that was answered. */
static int64_t told_next_ms(const struct client *c)
{
    const struct zkl_proof *proof = &c->core.session.proof;
    int64_t next = INT64_MAX, now = now_of(c).boot_ns;
    for (unsigned i = 0; i < proof->count; i++) {
        int64_t at = proof->answered[(proof->first + i) % ZKL_ANSWERED_MAX].at_boot +
                     (ROUND_MS + 2 * LATE_MS) * MS;
        if (at > now)
            next = first_of(next, c->world->fake.now_ms + (at - now + MS - 1) / MS);
    }
    return next;
}

int64_t time_next_ms(const struct world *w)
{
    int64_t next = INT64_MAX, now_ms = w->fake.now_ms;
    each_client(w, c) {
        if (c->dead)
            continue;
        int64_t timer = zkl_core_next_timeout(&c->core, time_of(w));
        if (timer != INT64_MAX && timer > now_ms * MS)
            next = first_of(next, (timer + MS - 1) / MS);
        if (c->starved)
            next = first_of(next, told_next_ms(c));
        if (c->muted)
            next = first_of(next, c->muted_ms + SILENCE_MS);
        if (client_is_linked(c) && c->current->isolated)
            next = first_of(next, c->alone_ms + TIMEOUT_MS);
    }
    for (int i = 0; i < w->touches_count; i++) {
        if (fake_alive(&w->fake, w->touches[i].session))
            next = first_of(next, expiry_ms(&w->touches[i]));
    }
    return next;
}

bool time_may_be_late(const struct world *w, int64_t ms)
{
    each_of(w->touches, w->touches_count, t) {
        bool due = fake_alive(&w->fake, t->session) && t->close_ms == 0 && expiry_ms(t) <= ms;
        for (int j = 0; due && j < w->client_count; j++) {
            const struct client *c = &w->clients[j];
            if (!c->dead && c->current && c->current->session == t->session)
                return true;
        }
    }
    return false;
}

static void end_sessions(struct world *w, bool late)
{
    each_of(w->touches, w->touches_count, t) {
        touches_told(t, w->fake.now_ms);
        if (!fake_alive(&w->fake, t->session) || expiry_ms(t) > w->fake.now_ms)
            continue;
        if (late && t->close_ms == 0) {
            say("  the leader gives session %#llx up", (unsigned long long)t->session);
            t->close_ms = w->fake.now_ms + LATE_MS;
            continue;
        }
        say("  session %#llx ends", (unsigned long long)t->session);
        check_expiry(w, t->session);
        fake_expire(&w->fake, t->session);
    }
}

void time_pass(struct world *w, int64_t ms, bool late)
{
    must(ms > w->fake.now_ms);
    w->fake.now_ms = ms;
    each_client(w, c) {
        bool silent = c->muted && ms >= c->muted_ms + SILENCE_MS;
        bool alone = client_is_linked(c) && c->current->isolated && ms >= c->alone_ms + TIMEOUT_MS;
        if (silent || alone)
            client_break(c);
        if (!c->dead && c->current && !c->current->linked && !c->current->expired)
            fake_connect(c->current, false);
    }
    end_sessions(w, late);
    world_settle(w);
}

/* --- the beginning -------------------------------------------------------- */

static void client_init(struct world *w, struct client *c)
{
    c->world = w;
    client_begin(c, TIMEOUT_MS, 0);
    c->core.session.is_exact = true;
    c->core.unlisted_from = 0;
    c->core.group_commit.from = w->bounds->scenario->grouped ? 1 : 0;
    /* As if it had locked there alone: the first lock has the watch armed, the next one needs no list. */
    for (int i = 0; i < ROOTS && w->bounds->scenario->grouped; i++)
        c->paths[i].unlisted.next_number = w->bounds->scenario->counter;
    c->current = handle_opens(c);
}

static void make_paths(struct world *w)
{
    const struct scenario *scenario = w->bounds->scenario;
    char text[16];
    if (scenario->rootless)
        return;
    for (int i = 0; i < ROOTS; i++) {
        bool worn = i != LEASES && (i == 0 || !scenario->worn_first);
        fake_create(&w->fake, root_paths[i], 0, worn ? scenario->counter : 0);
    }
    fake_create(&w->fake, GATE, 0, 0);
    snprintf(text, sizeof text, "%d", scenario->permits);
    if (scenario->permits > 0)
        fake_write(&w->fake, fake_find(&w->fake, root_paths[LEASES]), text);
}

void world_begin(const struct bounds *bounds)
{
    arena_reset();
    arena_on = true;
    struct world *w = world = calloc(1, sizeof *w);
    *w = (struct world){.prng = {.plain = true},
                        .bounds = bounds,
                        .client_count = bounds->clients,
                        .faults = bounds->faults,
                        .delays = bounds->delays,
                        .waits = bounds->waits};
    w->clients = calloc((size_t)bounds->clients, sizeof *w->clients);
    fake_init(&w->fake, &w->prng);
    make_paths(w);
    for (int i = 0; i < bounds->clients; i++)
        client_init(w, &w->clients[i]);
    w->fake.unknown[ZKL_OPCODE_REMOVE_WATCHES] = bounds->scenario->unremoving;
    owners_begin(w);
    for (int i = 0; i < bounds->clients && !bounds->scenario->unlinked; i++) {
        client_connect(&w->clients[i], w->clients[i].current, false);
        world_settle(w);
    }
}
