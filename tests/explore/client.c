/* SPDX-License-Identifier: Apache-2.0
 * What stands in for the driver: the port, handles, timers; and time, which moves only when the search moves it,
 * to the next moment that is due.
 *
 * A client receives an answer or an event as soon as its server has sent it, unless the link is muted or the
 * client deaf. The search loses nothing by that. A link is first in, first out both ways. A client that receives
 * something later does nothing meanwhile that it could not have done before its server took the request: what it
 * sends stands behind what it sent before, and its server does for others what it would do anyway. Likewise a
 * server takes a keepalive or a heartbeat immediately, because these concern nobody except the client. These are
 * partial-order reductions in the sense of Godefroid (Partial-Order Methods for the Verification of Concurrent
 * Systems, 1996): of steps that commute with all others the search tries one order. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <zklock/zklock.h>

#include "arena.h"
#include "sim/kinds.h"
#include "world.h"

#define SPINS_MAX 20
#define SETTLES_MAX 1000

struct world *world;

int name_of(const struct client *c)
{
    return (int)(c - c->world->clients);
}

static int64_t boot_of(int64_t ms)
{
    return (ms + BOOT_AHEAD_MS) * MS;
}

struct zkl_time now_of(const struct client *c)
{
    return time_of(c->world);
}

struct zkl_time time_of(const struct world *w)
{
    return (struct zkl_time){w->fake.now_ms * MS, boot_of(w->fake.now_ms)};
}

static struct client *client_of(struct zkl_port *port)
{
    return (struct client *)((char *)port - offsetof(struct client, port));
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

static enum zkl_answer port_send(struct zkl_port *port, const struct zkl_request *request)
{
    struct client *c = client_of(port);
    enum zkl_answer answer = c->current ? fake_send(c->current, request) : ZKL_ANSWER_LINK;
    if (saying)
        say("  %d > %s %s%s (%llu)%s", name_of(c), request_kinds[request->kind],
            request->path              ? request->path
            : request->check_count > 0 ? request->checks[0]
                                       : "",
            request->check_count > 1 ? "..." : "", (unsigned long long)request->id,
            answer == ZKL_ANSWER_OK ? "" : " refused");
    return answer;
}

static void port_notification(struct zkl_port *port, struct zkl_contender *contender,
                              const struct zkl_notification *news)
{
    static const char *const names[] = {"granted", "failed", "released", "state", "ended"};
    struct client *c = client_of(port);
    if (c->dead)
        return; /* nobody hears it */
    if (saying)
        say("  %d #%llu: %s %d %d %s", name_of(c), (unsigned long long)contender->number,
            names[news->type], news->code, news->state, news->detail ? news->detail : "");
    owners_notification(c, contender, news);
}

static void drop_handle(struct client *c, struct fake_handle **h, void (*how)(struct fake_handle *))
{
    if (!*h)
        return;
    if (h == &c->current) {
        (*h)->stuck = c->muted;
        c->muted = c->behind = false;
    }
    touches_unlink(c->world, (*h)->session);
    how(*h);
    *h = NULL;
}

static void port_session(struct zkl_port *port, unsigned actions)
{
    struct client *c = client_of(port);
    if (actions & ZKL_SA_LEAVE_SERVER)
        wrong("a server was left that has no data of its own");
    if (actions & (ZKL_SA_REPLACE_HANDLE | ZKL_SA_DROP_HANDLE | ZKL_SA_ADOPT_PROBE | ZKL_SA_CLOSED))
        drop_handle(c, &c->current, fake_close);
    if (actions & ZKL_SA_REPLACE_HANDLE)
        c->open_current = true;
    if (actions & ZKL_SA_ADOPT_PROBE) {
        c->current = c->probe;
        c->probe = NULL;
    }
    if (actions & ZKL_SA_DROP_PROBE) {
        drop_handle(c, &c->probe, fake_close);
        c->open_probe = false;
    }
    if (actions & ZKL_SA_OPEN_PROBE)
        c->open_probe = true;
}

static void port_random(struct zkl_port *port, unsigned char bytes[16])
{
    struct client *c = client_of(port);
    memset(bytes, 0, 16);
    bytes[0] = (unsigned char)(name_of(c) + 1);
    bytes[1] = (unsigned char)++c->guids;
    must(c->guids < 256);
}

static void note_move(void *arg, const struct zkl_contender_machine *m,
                      enum zkl_contender_state from, const char *why)
{
    struct client *c = arg;
    const struct zkl_contender *contender = (const struct zkl_contender *)m;
    if (saying)
        say("  %d #%llu %s -> %s: %s", name_of(c), (unsigned long long)contender->number,
            zkl_contender_state_name(from), zkl_contender_state_name(m->state), why);
    /* The core grants the members of one transaction once it knows the zxid, without another
     * look at each node. */
    bool together = zkl_contender_is_together(contender) || c->core.group_commit.from > 0;
    bool member = together && strcmp(why, "nobody came between") == 0;
    if (m->state == ZKL_CONTENDER_HOLDING && from != ZKL_CONTENDER_CONFIRMING && !member)
        check_hold(c, m);
}

static void port_trace(struct zkl_port *port, const struct zkl_trace *trace)
{
    char line[ZKL_TRACE_MAX];
    if (!saying)
        return;
    zkl_trace_format(trace, line);
    say("  %d %s", name_of(client_of(port)), line);
}

/* --- what the core hears -------------------------------------------------- */

static void tell_link(struct client *c, struct fake_handle *h, int type)
{
    static const enum zkl_session_event_type types[] = {
        [FAKE_UP] = ZKL_SE_UP, [FAKE_DOWN] = ZKL_SE_DOWN, [FAKE_EXPIRED] = ZKL_SE_EXPIRED};
    struct zkl_session_event event = {.type = types[type],
                                      .now = now_of(c),
                                      .session = h->session,
                                      .timeout_ms = h->timeout_ms,
                                      .opened_boot_ns = boot_of(h->opened_ms),
                                      .first = type == FAKE_UP && ++h->links == 1};
    if (h == c->probe)
        event.type = type == FAKE_UP ? ZKL_SE_PROBE_UP : ZKL_SE_PROBE_DOWN;
    say("  %d < %s%s", name_of(c),
        type == FAKE_UP     ? "up"
        : type == FAKE_DOWN ? "down"
                            : "expired",
        h == c->probe ? " (probe)" : "");
    zkl_core_session_event(&c->core, &event);
    if (type == FAKE_EXPIRED && h == c->probe) {
        drop_handle(c, &c->probe, fake_close);
        c->open_probe = true;
    }
}

/* libzookeeper's completion thread calls back once. */
static bool tell(struct client *c, struct fake_handle *h)
{
    struct fake_message *message = h ? fake_next(h) : NULL;
    if (!message)
        return false;
    if (message->type == FAKE_REPLY && h == c->current) {
        say("  %d < (%llu) %d %s", name_of(c), (unsigned long long)message->reply.id,
            message->reply.answer, message->reply.name ? message->reply.name : "");
        zkl_core_reply(&c->core, now_of(c), &message->reply);
    } else if (message->type == FAKE_FIRED && h == c->current) {
        say("  %d < fired %s", name_of(c), message->path);
        for (size_t i = 0; i < message->id_count; i++)
            zkl_core_fired(&c->core, now_of(c), message->ids[i], message->fired);
    } else if (message->type != FAKE_REPLY && message->type != FAKE_FIRED) {
        tell_link(c, h, (int)message->type);
    }
    fake_message_free(message);
    return true;
}

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

void client_hear(struct client *c)
{
    c->deaf = false;
}

void client_timer(struct client *c)
{
    c->starved = false;
    zkl_core_timer(&c->core, now_of(c));
}

/* --- links ---------------------------------------------------------------- */

static struct fake_handle *open_handle(struct client *c)
{
    struct fake_handle *h = fake_open(&c->world->fake);
    h->timeout_ms = TIMEOUT_MS;
    return h;
}

bool client_is_linked(const struct client *c)
{
    return !c->dead && c->current && c->current->linked;
}

static bool is_read(enum zkl_request_kind kind)
{
    return kind == ZKL_REQ_LIST || kind == ZKL_REQ_LIST_LOCK_PATH || kind == ZKL_REQ_STAT ||
           kind == ZKL_REQ_GET || kind == ZKL_REQ_WATCH || kind == ZKL_REQ_UNWATCH ||
           kind == ZKL_REQ_KEEPALIVE;
}

bool client_is_served(const struct client *c)
{
    if (!client_is_linked(c) || !c->current->out.first)
        return false;
    enum zkl_request_kind kind = c->current->out.first->request.kind;
    if (c->current->isolated)
        return is_read(kind) || (kind == ZKL_REQ_SYNC && c->current->deposed);
    return fake_alive(&c->world->fake, c->current->session);
}

/* Every server applies what was done, except those that are behind, or alone. */
static void spread(struct world *w)
{
    for (int i = 0; i < w->client_count; i++) {
        struct client *c = &w->clients[i];
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

void client_catch_up(struct client *c)
{
    c->behind = false;
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

static void connect_handle(struct client *c, struct fake_handle *h, bool behind)
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
}

void client_connect(struct client *c, bool behind)
{
    connect_handle(c, c->current, behind);
    c->behind = behind && c->current->linked;
}

void client_connect_probe(struct client *c)
{
    connect_handle(c, c->probe, false);
}

void client_kill(struct client *c)
{
    struct zkl_time now = now_of(c);
    drop_handle(c, &c->current, fake_kill);
    drop_handle(c, &c->probe, fake_kill);
    c->dead = true; /* what follows only frees its memory */
    zkl_core_close(&c->core, now);
    while (c->core.first)
        zkl_core_abandon(&c->core, now, c->core.first, ZKL_REASON_OWNER_EXITED);
    zkl_core_fini(&c->core);
    c->open_current = c->open_probe = c->deaf = c->starved = c->muted = c->behind = false;
    owners_forget(c);
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
    bool busy = false;
    if (c->open_current && !c->current)
        c->current = open_handle(c), busy = true;
    if (c->open_probe && !c->probe)
        c->probe = open_handle(c), busy = true;
    c->open_current = c->open_probe = false;
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
        while ((!c->muted && tell(c, c->current)) || tell(c, c->probe))
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
    for (int i = 0; i < w->client_count; i++) {
        const struct client *c = &w->clients[i];
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
    for (int i = 0; i < w->touches_count; i++) {
        const struct touches *t = &w->touches[i];
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
    for (int i = 0; i < w->touches_count; i++) {
        struct touches *t = &w->touches[i];
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
    for (int i = 0; i < w->client_count; i++) {
        struct client *c = &w->clients[i];
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
    c->port = (struct zkl_port){.send = port_send,
                                .notification = port_notification,
                                .session = port_session,
                                .random = port_random,
                                .trace = port_trace};
    zkl_core_init(&c->core, &c->port, TIMEOUT_MS, 0);
    c->core.session.is_exact = true;
    c->core.unlisted_from = 0;
    c->core.group_commit.from = w->bounds->scenario->grouped ? 1 : 0;
    for (int i = 0; i < ROOTS; i++)
        c->paths[i] = zkl_path_of(root_paths[i]);
    c->gate = zkl_path_of(GATE);
    /* As if it had locked there alone: the first lock has the watch armed, the next one needs no list. */
    for (int i = 0; i < ROOTS && w->bounds->scenario->grouped; i++)
        c->paths[i].unlisted.next_number = w->bounds->scenario->counter;
    c->core.tracer = (struct zkl_tracer){note_move, c};
    c->current = open_handle(c);
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
        client_connect(&w->clients[i], false);
        world_settle(w);
    }
}
