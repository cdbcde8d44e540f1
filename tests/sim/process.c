/* SPDX-License-Identifier: Apache-2.0
 * The driver's substitute: the port, handles, the timer. One callback at a time, as the client's
 * mutex ensures. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <zklock/zklock.h>

#include "kinds.h"
#include "world.h"

int name_of(const struct client *p)
{
    return (int)(p - p->world->clients);
}

static int64_t per_ms(const struct client *p)
{
    return MS + p->world->rates[name_of(p)];
}

static int64_t boot_of(const struct client *p, int64_t ms)
{
    bool stops = fake_breaks(&p->world->fake, FAKE_BOOTTIME_STOPS);
    return (ms - (stops ? p->suspended_ms : 0)) * per_ms(p) + BOOT_AHEAD_MS * MS;
}

struct zkl_time now_of(const struct client *p)
{
    int64_t ms = p->world->fake.now_ms;
    return (struct zkl_time){(ms - p->suspended_ms) * per_ms(p), boot_of(p, ms)};
}

struct zkl_core *core_of(struct client *p)
{
    p->world->core_steps++;
    return &p->core;
}

static struct client *proc_of(struct zkl_port *port)
{
    return (struct client *)((char *)port - offsetof(struct client, port));
}

/* --- the port ------------------------------------------------------------- */

/* Whose nodes are made in one transaction. */
static void note_transaction(struct client *p, const struct zkl_request *request)
{
    bool mixed = false;
    for (size_t i = 0; i < request->check_count; i++)
        mixed |= request->texts && !request->texts[i];
    if (mixed)
        happened(p->world, SIM_GROUP_COMMIT);
    for (int i = 0; i < PLACES_EACH; i++) {
        const char *guid = p->places[i].contender.machine.guid;
        for (size_t j = 0; guid[0] && j < request->check_count; j++) {
            if (strstr(request->checks[j], guid))
                memcpy(p->places[i].grouped_guid, guid, sizeof p->places[i].grouped_guid);
        }
    }
}

static bool is_of_a_transaction(const struct client *p, const struct zkl_contender_machine *m)
{
    for (int i = 0; i < PLACES_EACH; i++) {
        if (&p->places[i].contender.machine == m)
            return strcmp(p->places[i].grouped_guid, m->guid) == 0;
    }
    return false;
}

static enum zkl_answer port_send(struct zkl_port *port, const struct zkl_request *request)
{
    struct client *p = proc_of(port);
    struct world *w = p->world;
    enum zkl_answer answer = ZKL_ANSWER_LINK;
    if (w->out_of_memory && !w->healing && chance(w, 12)) {
        answer = ZKL_ANSWER_NOMEM;
        happened(w, SIM_NO_MEMORY);
    } else if (p->current) {
        answer = fake_send(p->current, request);
        readers_sent(p, request);
    }
    if (request->kind == ZKL_REQ_CREATE_ALL)
        note_transaction(p, request);
    if (request->kind == ZKL_REQ_CREATE && request->check_count > 0 && w->fault_rate < 1000)
        p->cut_soon = !chance(w, 3);
    say("  %d > %s %s%s (%llu)%s", name_of(p), request_kinds[request->kind],
        request->path ? request->path : "", request->check_count ? "..." : "",
        (unsigned long long)request->id, answer == ZKL_ANSWER_OK ? "" : " refused");
    return answer;
}

static void port_notification(struct zkl_port *port, struct zkl_contender *contender,
                              const struct zkl_notification *news)
{
    static const char *const names[] = {"granted", "failed", "released", "state", "ended"};
    struct client *p = proc_of(port);
    if (p->dead)
        return; /* no process receives it */
    say("  %d #%llu: %s %d %d", name_of(p), (unsigned long long)contender->number,
        names[news->type], news->code, news->state);
    owners_notification(p, contender, news);
}

static void drop_handle(struct fake_handle **h, void (*how)(struct fake_handle *h))
{
    if (*h)
        how(*h);
    *h = NULL;
}

static void port_session(struct zkl_port *port, unsigned actions)
{
    struct client *p = proc_of(port);
    if (actions & ZKL_SA_LEAVE_SERVER)
        wrong("a server was left that has no data of its own");
    if (actions & (ZKL_SA_REPLACE_HANDLE | ZKL_SA_DROP_HANDLE | ZKL_SA_ADOPT_PROBE | ZKL_SA_CLOSED))
        drop_handle(&p->current, fake_close);
    if (actions & ZKL_SA_FAIL)
        drop_handle(&p->current, fake_kill); /* libzookeeper ends without the session's end */
    if (actions & ZKL_SA_REPLACE_HANDLE)
        p->open_current = true;
    if (actions & ZKL_SA_ADOPT_PROBE) {
        p->current = p->probe;
        p->probe = NULL;
    }
    if (actions & ZKL_SA_DROP_PROBE) {
        drop_handle(&p->probe, fake_close);
        p->open_probe = false;
    }
    if (actions & ZKL_SA_OPEN_PROBE)
        p->open_probe = true;
}

static void port_random(struct zkl_port *port, unsigned char bytes[16])
{
    for (int i = 0; i < 16; i++)
        bytes[i] = (unsigned char)rnd(proc_of(port)->world, 256);
}

static void note_move(void *arg, const struct zkl_contender_machine *m,
                      enum zkl_contender_state from, const char *why)
{
    struct client *p = arg;
    p->world->tally->contender[from][m->state]++;
    say("%d #%llu %s -> %s: %s", name_of(p),
        (unsigned long long)((const struct zkl_contender *)m)->number,
        zkl_contender_state_name(from), zkl_contender_state_name(m->state), why);
    bool numbered = strcmp(why, "nobody came between") == 0;
    bool member = m->lock_request.together || is_of_a_transaction(p, m);
    if (m->state == ZKL_CONTENDER_WAITING && m->pred_is_by_number)
        happened(p->world, SIM_BEHIND_OWN);
    if (numbered)
        happened(p->world, member ? SIM_ALONE_MULTI : SIM_ALONE);
    /* Those of one transaction are granted once the zxid is known, without another look at each node: whoever
     * deletes one by hand meanwhile has deleted that of a holder. */
    if (m->state == ZKL_CONTENDER_HOLDING && from != ZKL_CONTENDER_CONFIRMING &&
        !(numbered && member))
        check_hold(p, m);
}

/* Of the machines that have no tracer. */
static void port_trace(struct zkl_port *port, const struct zkl_trace *trace)
{
    struct client *p = proc_of(port);
    char line[ZKL_TRACE_MAX];
    zkl_trace_format(trace, line);
    say("%d %s", name_of(p), line);
    tally_move(p->world->tally, trace);
}

/* --- handles -------------------------------------------------------------- */

static void tell_link(struct client *p, struct fake_handle *h, int type)
{
    static const enum zkl_session_event_type main[] = {
        [FAKE_UP] = ZKL_SE_UP, [FAKE_DOWN] = ZKL_SE_DOWN, [FAKE_EXPIRED] = ZKL_SE_EXPIRED};
    struct zkl_session_event event = {.type = main[type],
                                      .now = now_of(p),
                                      .session = h->claimed ? h->claimed : h->session,
                                      .timeout_ms = h->timeout_ms,
                                      .opened_boot_ns = boot_of(p, h->opened_ms),
                                      .first = type == FAKE_UP && ++h->links == 1};
    if (h == p->probe)
        event.type = type == FAKE_UP ? ZKL_SE_PROBE_UP : ZKL_SE_PROBE_DOWN;
    say("[%6lld] %d %s%s", (long long)p->world->fake.now_ms, name_of(p),
        type == FAKE_UP     ? "up"
        : type == FAKE_DOWN ? "down"
                            : "expired",
        h == p->probe ? " (probe)" : "");
    /* A client that learns of a new link only when the session has ended receives a loss
     * (on_session in src/driver/handle.c). The loss of the link before it is always reported, and
     * that one's answers before that. */
    bool is_late = type != FAKE_EXPIRED && h->expired && chance(p->world, 2);
    if (is_late && type == FAKE_UP)
        event.type = h == p->probe ? ZKL_SE_PROBE_DOWN : ZKL_SE_DOWN;
    p->links++;
    zkl_core_session_event(core_of(p), &event);
    if (type == FAKE_EXPIRED && h == p->probe) {
        drop_handle(&p->probe, fake_close);
        p->open_probe = true;
    }
}

/* libzookeeper's completion thread calls back once. */
static bool deliver(struct client *p, struct fake_handle *h)
{
    bool deaf = p->deaf_until_ms > p->world->fake.now_ms && !p->world->calm;
    struct fake_message *message = h && !deaf ? fake_next(h) : NULL;
    if (!message)
        return false;
    if (message->type == FAKE_REPLY && h == p->current) {
        say("[%6lld] %d < (%llu) %d %s", (long long)p->world->fake.now_ms, name_of(p),
            (unsigned long long)message->reply.id, message->reply.answer,
            message->reply.name ? message->reply.name : "");
        readers_answered(p, &message->reply);
        bool is_list = message->request.kind == ZKL_REQ_LIST ||
                       message->request.kind == ZKL_REQ_LIST_LOCK_PATH;
        if (is_list && strcmp(message->request.path, SIM_LEASES) == 0)
            permits_note_list(p, message->zxid);
        zkl_core_reply(core_of(p), now_of(p), &message->reply);
    } else if (message->type == FAKE_FIRED && h == p->current) {
        say("[%6lld] %d < fired %s", (long long)p->world->fake.now_ms, name_of(p), message->path);
        for (size_t i = 0; i < message->id_count; i++)
            zkl_core_fired(core_of(p), now_of(p), message->ids[i], message->fired);
    } else if (message->type != FAKE_REPLY && message->type != FAKE_FIRED) {
        tell_link(p, h, (int)message->type);
    }
    fake_message_free(message);
    return true;
}

static void open_handles(struct client *p)
{
    if (p->closed)
        return;
    if (p->open_current && !p->current) {
        p->current = fake_open(&p->world->fake);
        check_opening(p);
    }
    p->open_current = false;
    if (p->open_probe && !p->probe)
        p->probe = fake_open(&p->world->fake);
    p->open_probe = false;
}

/* --- life ----------------------------------------------------------------- */

void proc_init(struct world *w, struct client *p)
{
    struct zkl_semaphore_view view = p->view;
    *p = (struct client){.world = w,
                         .view = view,
                         .spin_ms = -1,
                         .owners = &w->owners[(p - w->clients) * OWNERS_EACH],
                         .places = &w->places[(p - w->clients) * PLACES_EACH]};
    p->port = (struct zkl_port){.send = port_send,
                                .notification = port_notification,
                                .session = port_session,
                                .random = port_random,
                                .trace = port_trace};
    zkl_core_init(&p->core, &p->port, FAKE_TIMEOUT_MS,
                  chance(w, 2) ? w->fake.rules.declared_ms : 0);
    if (w->few_watches)
        p->core.watch_bytes_max = 500 + rnd(w, 500);
    p->core.ephemeral_bytes_max = w->fake.close_bytes_max;
    p->core.share_from = 1 + rnd(w, ZKL_SHARE_FROM);
    p->core.unlisted_from = rnd(w, 4);
    p->core.group_commit.from =
        w->grouped ? 1 : 1 + (unsigned)(w->seed % ZKL_GROUP_COMMIT_FROM); /* not drawn */
    p->core.tracer = (struct zkl_tracer){note_move, p};
    p->current = fake_open(&w->fake);
    for (int i = 0; i < QUESTIONS; i++)
        p->questions[i].client = p;
    for (int i = 0; i <= LEASES; i++)
        p->paths[i] = zkl_path_of(root_paths[i]);
    p->gate = zkl_path_of(SIM_GATE);
    owners_init(p);
}

void proc_close(struct client *p)
{
    if (p->closed || p->dead)
        return;
    say("[%6lld] %d closes", (long long)p->world->fake.now_ms, name_of(p));
    p->closed = p->world->fault_seen = true;
    zkl_core_close(core_of(p), now_of(p));
    drop_handle(&p->current, fake_close);
    drop_handle(&p->probe, fake_close);
}

void proc_kill(struct client *p)
{
    struct world *w = p->world;
    int64_t until_ms = w->fake.now_ms + 1 + rnd(w, 2 * FAKE_TIMEOUT_MS);
    if (p->closed || p->dead)
        return;
    say("[%6lld] %d is killed", (long long)w->fake.now_ms, name_of(p));
    drop_handle(&p->current, fake_kill);
    drop_handle(&p->probe, fake_kill);
    p->dead = true; /* what follows only frees its memory */
    zkl_core_close(&p->core, now_of(p));
    while (p->core.first)
        zkl_core_abandon(&p->core, now_of(p), p->core.first, ZKL_REASON_OWNER_EXITED);
    zkl_core_fini(&p->core);
    owners_forget(p);
    *p = (struct client){.world = w,
                         .view = p->view,
                         .owners = p->owners,
                         .places = p->places,
                         .dead = true,
                         .dead_until_ms = until_ms};
}

void proc_fini(struct client *p)
{
    if (p->dead)
        return;
    proc_close(p);
    zkl_core_fini(&p->core);
}

bool proc_is_awake(const struct client *p)
{
    return p->asleep_until_ms <= p->world->fake.now_ms;
}

bool proc_is_lively(const struct client *p)
{
    bool quiet = p->quiet && p->current && p->current->isolated;
    return !p->world->healing && !p->closed && !quiet;
}

static void wake_up(struct client *p)
{
    struct world *w = p->world;
    if (p->asleep_until_ms == 0)
        return;
    p->asleep_until_ms = 0; /* its links are broken or not */
    if (p->current && p->current->stuck && (p->dozes || chance(w, 2)) &&
        fake_alive(&w->fake, p->current->session))
        p->current->stuck = false;
    p->dozes = false;
}

static void run_timer(struct client *p)
{
    struct zkl_time now = now_of(p);
    if (p->closed || zkl_core_next_timeout(&p->core, now) > now.mono_ns)
        return;
    p->spins = p->spin_ms == p->world->fake.now_ms ? p->spins + 1 : 0;
    p->spin_ms = p->world->fake.now_ms;
    must(p->spins < 20); /* the service thread would spin */
    zkl_core_timer(core_of(p), now);
}

bool proc_step(struct client *p)
{
    struct world *w = p->world;
    bool busy = false;
    if (p->dead) {
        if (!w->calm && p->dead_until_ms > w->fake.now_ms)
            return false;
        happened(w, SIM_REBIRTH);
        proc_init(w, p);
    }
    faults_notice(p);
    if (!proc_is_awake(p))
        return false;
    wake_up(p);
    open_handles(p);
    for (int i = 0; i < (w->lonely ? 4 : 1); i++) { /* the fewer wait, the faster it runs */
        if (p->current && (w->calm || !chance(w, 3)))
            busy |= fake_serve(p->current);
        if (w->calm || !chance(w, 3))
            busy |= deliver(p, p->current);
    }
    busy |= deliver(p, p->probe);
    if (w->calm || chance(w, 2))
        run_timer(p);
    owners_step(p);
    faults_mend(p);
    return busy;
}
