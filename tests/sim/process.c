/* SPDX-License-Identifier: Apache-2.0
 * A process: when it runs, what it hears then, how it begins and ends. Its port and handles are in tests/owners. */
#include "world.h"

static int64_t per_ms(const struct client *p)
{
    return MS + p->world->rates[name_of(p)];
}

int64_t boot_of(const struct client *p, int64_t ms)
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

bool is_of_a_transaction(const struct client *p, const struct zkl_contender_machine *m)
{
    for (int i = 0; i < PLACES_EACH; i++) {
        if (&p->places[i].contender.machine == m)
            return strcmp(p->places[i].grouped_guid, m->guid) == 0;
    }
    return false;
}

enum zkl_answer client_sends(struct client *p, const struct zkl_request *request)
{
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
    if (w->full && !w->calm && request->kind == ZKL_REQ_WATCH &&
        strcmp(request->path, SIM_LEASES) == 0)
        p->cut_soon = chance(w, 2);
    return answer;
}

void client_draws(struct client *p, unsigned char bytes[16])
{
    for (int i = 0; i < 16; i++)
        bytes[i] = (unsigned char)rnd(p->world, 256);
}

void contender_moved(struct client *p, const struct zkl_contender_machine *m,
                     enum zkl_contender_state from, bool numbered, bool member)
{
    p->world->tally->moves[ZKL_TRACE_CONTENDER][from][m->state]++;
    if (m->state == ZKL_CONTENDER_WAITING && m->pred_is_by_number)
        happened(p->world, SIM_BEHIND_OWN);
    if (numbered)
        happened(p->world, member ? SIM_ALONE_MULTI : SIM_ALONE);
}

/* A client that learns of a new link only when the session has ended receives a loss
 * (on_session in src/driver/handle.c). The loss of the link before it is always reported, and
 * that one's answers before that. */
bool link_is_late(struct client *p, const struct fake_handle *h, int type)
{
    bool late = type != FAKE_EXPIRED && h->expired && chance(p->world, 2);
    p->links++;
    return late && type == FAKE_UP;
}

void reply_comes(struct client *p, const struct fake_message *message)
{
    readers_answered(p, &message->reply);
    bool is_list =
        message->request.kind == ZKL_REQ_LIST || message->request.kind == ZKL_REQ_LIST_LOCK_PATH;
    if (is_list && strcmp(message->request.path, SIM_LEASES) == 0)
        permits_note_list(p, message->zxid);
}

/* libzookeeper's completion thread calls back once. */
static bool deliver(struct client *p, struct fake_handle *h)
{
    bool deaf = p->deaf_until_ms > p->world->fake.now_ms && !p->world->calm;
    return !deaf && client_is_told(p, h);
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
    client_begin(p, FAKE_TIMEOUT_MS, chance(w, 2) ? w->fake.rules.declared_ms : 0);
    if (w->few_watches)
        p->core.watch_bytes_max = 500 + rnd(w, 500);
    p->core.ephemeral_bytes_max = w->fake.close_bytes_max;
    p->core.share_from = 1 + rnd(w, ZKL_SHARE_FROM);
    p->core.unlisted_from = rnd(w, 4);
    p->core.group_commit.from =
        w->grouped ? 1 : 1 + (unsigned)(w->seed % ZKL_GROUP_COMMIT_FROM); /* not drawn */
    p->current = fake_open(&w->fake);
    for (int i = 0; i < QUESTIONS; i++)
        p->questions[i].client = p;
    owners_init(p);
}

void proc_close(struct client *p)
{
    if (p->closed || p->dead)
        return;
    say("[%6lld] %d closes", (long long)p->world->fake.now_ms, name_of(p));
    p->closed = p->world->fault_seen = true;
    zkl_core_close(core_of(p), now_of(p));
    client_drop_handles(p, fake_close);
}

void proc_kill(struct client *p)
{
    struct world *w = p->world;
    int64_t until_ms = w->fake.now_ms + 1 + rnd(w, 2 * FAKE_TIMEOUT_MS);
    if (p->closed || p->dead)
        return;
    say("[%6lld] %d is killed", (long long)w->fake.now_ms, name_of(p));
    client_dies(p);
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
    const struct fake_handle *before = p->current;
    if (!p->closed && client_opens(p) && p->current != before)
        check_opening(p);
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
