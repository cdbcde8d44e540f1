/* SPDX-License-Identifier: Apache-2.0
 *
 * Goal: the promises hold whatever happens in whatever order. Method: three cores with some
 * contenders each on one ensemble in memory; first a phase in which links break, servers lag,
 * stall and forget, processes sleep and strangers interfere, then a healed one in which
 * everybody must get through and nothing may be left. All of it follows from one seed, which is
 * printed when something is wrong:
 *     test-random [SEED [COUNT]]     one seed alone is run with its trace
 * ZKL_TEST_LONG=1 runs more seeds.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <zklock/zklock.h>

#include "fake.h"

#define MS INT64_C(1000000)
#define BOOT_AHEAD_MS 5000000 /* the two clocks are not to be mixed up */
#define CORES 3
#define APPS 4
#define ROOTS 3
#define CHAOS_STEPS 500
#define HEAL_STEPS 20000
#define CPU_SECONDS 6 /* where it is slow, under valgrind, fewer seeds must do */

static const char *const root_paths[ROOTS] = {"/a", "/b/c", "/x/y/z"};

/* --- the world ------------------------------------------------------------ */

enum phase { IDLE, WAITING, GRANTED, UNLOCKING, ANSWERED, ORPHANED };

/* What owns a contender: the contender is its first member. */
struct app {
    struct zkl_contender contender;
    struct proc *proc;
    enum phase phase;
    int root;
    bool in_core, try_only, lost, suspect;
    char deleted_guid[ZKL_GUID_LEN + 1]; /* by a stranger: no exclusion is promised for it */
    int stop_code;
    int64_t until_ms; /* the owner's plan: give up or unlock then */
};

/* A process: a core, its handles, its owners. */
struct proc {
    struct zkl_core core;
    struct zkl_port port;
    struct world *world;
    struct fake_handle *current, *probe;
    struct app apps[APPS];
    int64_t asleep_until_ms;
    bool closed, open_current, open_probe;
    int64_t spin_ms;
    int spins;
};

struct world {
    uint64_t seed;
    struct fake_prng prng;
    struct fake fake;
    struct proc procs[CORES];
    int64_t last_token[ROOTS];
    bool healing, calm, out_of_memory, wiped, strangers, foreign_seen;
    unsigned fault_rate; /* the smaller, the more faults */
    size_t grants, losses, failures[32];
};

static bool verbose;
static struct world *the_world; /* for messages */
static unsigned char reached[ZKL_CONTENDER_STATES][ZKL_CONTENDER_STATES];
static size_t total_grants, total_losses, total_failures[32];

static void say(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void wrong(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

static void say(const char *format, ...)
{
    va_list args;
    if (!verbose)
        return;
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    putchar('\n');
}

static void wrong(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    printf("seed %llu, %lld ms: ", (unsigned long long)the_world->seed,
           (long long)the_world->fake.now_ms);
    vprintf(format, args);
    va_end(args);
    printf("\n");
    exit(1);
}

#define must(condition)                                                                            \
    do {                                                                                           \
        if (!(condition))                                                                          \
            wrong("%s:%d: not true: %s", __FILE__, __LINE__, #condition);                          \
    } while (0)

static unsigned rnd(struct world *w, unsigned n)
{
    return fake_random(&w->prng, n);
}

static bool chance(struct world *w, unsigned n)
{
    return fake_chance(&w->prng, n);
}

static struct zkl_time now_of(const struct world *w)
{
    return (struct zkl_time){w->fake.now_ms * MS, (w->fake.now_ms + BOOT_AHEAD_MS) * MS};
}

static int name_of(const struct proc *p)
{
    return (int)(p - p->world->procs);
}

/* --- the port ------------------------------------------------------------- */

static struct proc *proc_of(struct zkl_port *port)
{
    return (struct proc *)((char *)port - offsetof(struct proc, port));
}

static const char *const kinds[ZKL_REQUEST_KINDS] = {"create", "make",  "list",      "list root",
                                                     "sync",   "stat",  "watch",     "unwatch",
                                                     "delete", "renew", "heartbeat", "nudge"};

static enum zkl_answer port_send(struct zkl_port *port, const struct zkl_request *request)
{
    struct proc *p = proc_of(port);
    enum zkl_answer answer = ZKL_ANSWER_LINK;
    if (p->world->out_of_memory && !p->world->healing && chance(p->world, 12))
        answer = ZKL_ANSWER_NOMEM;
    else if (p->current)
        answer = fake_send(p->current, request);
    say("  %d > %s %s%s (%llu)%s", name_of(p), kinds[request->kind],
        request->path ? request->path : "", request->check_count ? "..." : "",
        (unsigned long long)request->id, answer == ZKL_ANSWER_OK ? "" : " refused");
    return answer;
}

static void on_granted(struct world *w, struct app *app)
{
    const struct zkl_contender_machine *m = &app->contender.machine;
    int32_t sequence;
    must(app->phase == WAITING);
    must(zkl_name_parse(m->node, &sequence) && !zkl_sequence_exhausted(sequence));
    if (strcmp(app->deleted_guid, m->guid) != 0) {
        must(m->czxid > w->last_token[app->root]); /* first come, first served; tokens grow */
        w->last_token[app->root] = m->czxid;
    }
    w->grants++;
    app->phase = GRANTED;
    app->until_ms = w->fake.now_ms + rnd(w, 60);
}

static void on_failed(struct world *w, struct app *app, const struct zkl_news *news)
{
    must(app->phase == WAITING);
    int code = news->code;
    must(code < 0 && code > -32);
    w->failures[-code]++;
    bool right = code == app->stop_code || (code == ZKL_EBUSY && app->try_only) ||
                 (code == ZKL_EEXHAUSTED && w->foreign_seen) ||
                 (code == ZKL_ENOMEM && w->out_of_memory) ||
                 (code == ZKL_ECLOSED && app->proc->closed);
    if (!right)
        wrong("failed with %d (%s)", code, news->detail ? news->detail : "");
    app->phase = ANSWERED;
}

static void on_released(struct app *app, const struct zkl_news *news)
{
    must(app->phase == UNLOCKING);
    must(news->code == ZKL_OK || news->code == ZKL_EUNCONFIRMED || news->code == ZKL_ELOST);
    must((news->code == ZKL_ELOST) == app->lost);
    app->phase = ANSWERED;
}

static void on_state(struct world *w, struct app *app, const struct zkl_news *news)
{
    must(app->phase == GRANTED || app->phase == UNLOCKING || app->phase == ORPHANED);
    must(!app->lost);
    if (news->state == ZKL_LOST) {
        app->lost = true;
        w->losses++;
        return;
    }
    must(app->suspect == (news->state == ZKL_HELD));
    app->suspect = !app->suspect;
}

static void port_news(struct zkl_port *port, struct zkl_contender *contender,
                      const struct zkl_news *news)
{
    static const char *const names[] = {"granted", "failed", "released", "state", "ended"};
    struct app *app = (struct app *)contender;
    struct world *w = proc_of(port)->world;
    say("  %d #%llu: %s %d %d", name_of(proc_of(port)), (unsigned long long)contender->number,
        names[news->type], news->code, news->state);
    must(app->in_core);
    switch (news->type) {
    case ZKL_NEWS_GRANTED:
        on_granted(w, app);
        break;
    case ZKL_NEWS_FAILED:
        on_failed(w, app, news);
        break;
    case ZKL_NEWS_RELEASED:
        on_released(app, news);
        break;
    case ZKL_NEWS_STATE:
        on_state(w, app, news);
        break;
    case ZKL_NEWS_ENDED:
        must(app->phase == ANSWERED || app->phase == ORPHANED);
        app->in_core = false;
        break;
    }
}

static void drop_handle(struct fake_handle **h)
{
    if (*h)
        fake_close(*h);
    *h = NULL;
}

static void port_session(struct zkl_port *port, unsigned actions)
{
    struct proc *p = proc_of(port);
    if (actions & (ZKL_SA_REPLACE_HANDLE | ZKL_SA_ADOPT_PROBE | ZKL_SA_CLOSED))
        drop_handle(&p->current);
    if (actions & ZKL_SA_REPLACE_HANDLE)
        p->open_current = true;
    if (actions & ZKL_SA_ADOPT_PROBE) {
        p->current = p->probe;
        p->probe = NULL;
    }
    if (actions & ZKL_SA_DROP_PROBE) {
        drop_handle(&p->probe);
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

static void port_trace(struct zkl_port *port, const char *line)
{
    say("%d %s", name_of(proc_of(port)), line);
}

/* The table's coverage: the tracer is what sees each move. */
static void note_move(void *arg, const struct zkl_contender_machine *m,
                      enum zkl_contender_state from, const char *why)
{
    struct proc *p = arg;
    reached[from][m->state] = 1;
    say("%d #%llu %s -> %s: %s", name_of(p),
        (unsigned long long)((const struct zkl_contender *)m)->number,
        zkl_contender_state_name(from), zkl_contender_state_name(m->state), why);
}

/* --- what is checked all the time ----------------------------------------- */

static bool holds_now(const struct app *app)
{
    const struct zkl_core *core = &app->proc->core;
    return app->in_core && app->phase == GRANTED && !app->lost &&
           app->contender.machine.state == ZKL_HOLDING &&
           now_of(app->proc->world).boot_ns < zkl_session_window_end(&core->session);
}

static void check_exclusion(struct world *w)
{
    int holders[ROOTS] = {0};
    for (int i = 0; i < CORES * APPS; i++) {
        struct app *app = &w->procs[i / APPS].apps[i % APPS];
        if (!holds_now(app) || strcmp(app->deleted_guid, app->contender.machine.guid) == 0)
            continue;
        /* Lost data is not covered by any promise. */
        if (!fake_alive(&w->fake, app->proc->core.session.id)) {
            must(w->wiped);
            continue;
        }
        if (++holders[app->root] > 1)
            wrong("%s is held twice", root_paths[app->root]);
    }
}

static void check_counts(const struct proc *p)
{
    size_t contenders = 0, window = 0, waiting = 0, awaited = 0;
    for (const struct zkl_contender *c = p->core.first; c; c = c->next) {
        contenders++;
        window += zkl_contender_needs_window(&c->machine);
        waiting += zkl_contender_waits(&c->machine);
        must(c->machine.state != ZKL_ENDED);
    }
    for (int i = 0; i < ZKL_PENDING_BUCKETS; i++) {
        for (const struct zkl_pending *slot = p->core.pending[i]; slot; slot = slot->next)
            awaited++;
    }
    must(contenders == p->core.contenders);
    must(window == p->core.need_window);
    must(waiting == p->core.waiting);
    must(awaited == p->core.pending_count);
    if (p->core.refused)
        wrong("process %d: a refused request (%s) stays unanswered", name_of(p),
              kinds[p->core.refused->kind]);
}

/* --- what processes do ---------------------------------------------------- */

static bool awake(const struct proc *p)
{
    return p->asleep_until_ms <= p->world->fake.now_ms;
}

static void run_timer(struct proc *p)
{
    struct zkl_time now = now_of(p->world);
    if (p->closed || zkl_core_next_timeout(&p->core, now) > now.mono_ns)
        return;
    p->spins = p->spin_ms == p->world->fake.now_ms ? p->spins + 1 : 0;
    p->spin_ms = p->world->fake.now_ms;
    must(p->spins < 20); /* the service thread would spin */
    zkl_core_timer(&p->core, now);
}

static void tell_link(struct proc *p, struct fake_handle *h, int type)
{
    static const enum zkl_session_event_type main[] = {
        [FAKE_UP] = ZKL_SE_UP, [FAKE_DOWN] = ZKL_SE_DOWN, [FAKE_EXPIRED] = ZKL_SE_EXPIRED};
    struct zkl_session_event event = {.type = main[type],
                                      .now = now_of(p->world),
                                      .session = h->session,
                                      .timeout_ms = FAKE_TIMEOUT_MS};
    if (h == p->probe)
        event.type = type == FAKE_UP ? ZKL_SE_PROBE_UP : ZKL_SE_PROBE_DOWN;
    say("[%6lld] %d %s%s", (long long)p->world->fake.now_ms, name_of(p),
        type == FAKE_UP     ? "up"
        : type == FAKE_DOWN ? "down"
                            : "expired",
        h == p->probe ? " (probe)" : "");
    zkl_core_session_event(&p->core, &event);
    if (type == FAKE_EXPIRED && h == p->probe) {
        drop_handle(&p->probe);
        p->open_probe = true;
    }
}

/* libzookeeper's completion thread calls back once. */
static bool deliver(struct proc *p, struct fake_handle *h)
{
    struct fake_message *message = h ? fake_next(h) : NULL;
    if (!message)
        return false;
    struct zkl_time now = now_of(p->world);
    if (message->type == FAKE_REPLY && h == p->current) {
        say("[%6lld] %d < (%llu) %d %s", (long long)p->world->fake.now_ms, name_of(p),
            (unsigned long long)message->reply.id, message->reply.answer,
            message->reply.name ? message->reply.name : "");
        zkl_core_reply(&p->core, now, &message->reply);
    } else if (message->type == FAKE_FIRED && h == p->current) {
        say("[%6lld] %d < fired %s", (long long)p->world->fake.now_ms, name_of(p), message->path);
        for (size_t i = 0; i < message->id_count; i++)
            zkl_core_fired(&p->core, now, message->ids[i], message->fired);
    } else if (message->type != FAKE_REPLY && message->type != FAKE_FIRED) {
        tell_link(p, h, (int)message->type);
    }
    fake_message_free(message);
    return true;
}

static void start_app(struct app *app)
{
    struct world *w = app->proc->world;
    struct zkl_wish wish = {.data = "owner"};
    struct proc *proc = app->proc;
    memset(app, 0, sizeof *app);
    app->proc = proc;
    app->phase = WAITING;
    app->in_core = true;
    app->root = (int)rnd(w, ROOTS);
    app->try_only = wish.try_only = chance(w, 5);
    wish.try_sync = chance(w, 2);
    wish.watch_own = chance(w, 3);
    wish.root = root_paths[app->root];
    app->until_ms = chance(w, 3) ? w->fake.now_ms + rnd(w, 400) : INT64_MAX;
    say("[%6lld] %d locks %s%s", (long long)w->fake.now_ms, name_of(proc), wish.root,
        wish.try_only ? " (try)" : "");
    zkl_core_acquire(&proc->core, now_of(w), &app->contender, &wish);
}

static void end_wish(struct app *app)
{
    struct world *w = app->proc->world;
    app->stop_code = chance(w, 2) ? ZKL_ETIMEDOUT : ZKL_ECANCELED;
    say("[%6lld] %d #%llu stops", (long long)w->fake.now_ms, name_of(app->proc),
        (unsigned long long)app->contender.number);
    zkl_core_stop(&app->proc->core, now_of(w), &app->contender, app->stop_code);
    must(app->phase != WAITING);
}

static void end_hold(struct app *app)
{
    struct world *w = app->proc->world;
    bool exits = chance(w, 6);
    say("[%6lld] %d #%llu %s", (long long)w->fake.now_ms, name_of(app->proc),
        (unsigned long long)app->contender.number, exits ? "exits" : "unlocks");
    app->phase = exits ? ORPHANED : UNLOCKING;
    if (exits)
        zkl_core_abandon(&app->proc->core, now_of(w), &app->contender, ZKL_REASON_OWNER_EXITED);
    else
        zkl_core_release(&app->proc->core, now_of(w), &app->contender);
}

/* What the owner does, if it is time. */
static void run_app(struct app *app)
{
    struct world *w = app->proc->world;
    bool due = app->until_ms <= w->fake.now_ms;
    if (app->phase == WAITING && (due || (w->calm && app->until_ms != INT64_MAX)))
        end_wish(app);
    else if (app->phase == GRANTED && due)
        end_hold(app);
    else if (!app->in_core && (app->phase == ANSWERED || app->phase == ORPHANED))
        app->phase = IDLE;
    else if (app->phase == IDLE && !w->healing && !app->proc->closed && chance(w, 8))
        start_app(app);
}

static void open_handles(struct proc *p)
{
    if (p->closed)
        return;
    if (p->open_current && !p->current)
        p->current = fake_open(&p->world->fake);
    p->open_current = false;
    if (p->open_probe && !p->probe)
        p->probe = fake_open(&p->world->fake);
    p->open_probe = false;
}

static void close_proc(struct proc *p)
{
    say("[%6lld] %d closes", (long long)p->world->fake.now_ms, name_of(p));
    p->closed = true;
    zkl_core_close(&p->core, now_of(p->world));
    drop_handle(&p->current);
    drop_handle(&p->probe);
}

/* --- what happens to them ------------------------------------------------- */

static void reconnect(struct fake_handle *h, bool succeeds)
{
    if (h && !h->linked)
        fake_connect(h, succeeds);
}

/* A dead link is noticed after two thirds of the timeout. */
static void notice(struct proc *p, struct fake_handle *h)
{
    if (h && h->stuck && awake(p) && p->world->fake.now_ms - h->stuck_ms > FAKE_TIMEOUT_MS * 2 / 3)
        fake_break(h);
}

static void get_stuck(struct fake_handle *h)
{
    if (!h || !h->linked || h->stuck)
        return;
    h->stuck = true;
    h->stuck_ms = h->fake->now_ms;
}

static void sleep_process(struct proc *p)
{
    int64_t ms = chance(p->world, 2) ? rnd(p->world, 300) : rnd(p->world, 3 * FAKE_TIMEOUT_MS);
    say("[%6lld] %d sleeps %lld ms", (long long)p->world->fake.now_ms, name_of(p), (long long)ms);
    p->asleep_until_ms = p->world->fake.now_ms + ms;
    get_stuck(p->current);
    get_stuck(p->probe);
}

static void disturb(struct proc *p)
{
    struct world *w = p->world;
    switch (rnd(w, 6)) {
    case 0:
    case 1:
        if (p->current)
            fake_break(p->current);
        break;
    case 2:
        get_stuck(p->current);
        break;
    case 3:
        sleep_process(p);
        break;
    case 4:
        if (p->probe)
            fake_break(p->probe);
        break;
    default:
        if (p->current && p->current->linked)
            p->current->stalled = true;
        break;
    }
}

static struct fake_node *some_node(struct world *w)
{
    if (w->fake.node_count == 0)
        return NULL;
    struct fake_node *node = &w->fake.nodes[rnd(w, (unsigned)w->fake.node_count)];
    return node->dzxid == 0 && node->owner != 0 ? node : NULL;
}

static void note_deletion(struct world *w, const struct fake_node *node)
{
    for (int i = 0; i < CORES * APPS; i++) {
        struct app *app = &w->procs[i / APPS].apps[i % APPS];
        const char *guid = app->contender.machine.guid;
        if (app->in_core && guid[0] && strstr(node->path, guid))
            memcpy(app->deleted_guid, guid, sizeof app->deleted_guid);
    }
}

static void interfere(struct world *w)
{
    struct fake_node *node = some_node(w);
    struct fake_node *root = fake_find(&w->fake, root_paths[rnd(w, ROOTS)]);
    char path[64];
    switch (rnd(w, 6)) {
    case 0:
        if (!node)
            break;
        say("[%6lld] a stranger deletes %s", (long long)w->fake.now_ms, node->path);
        note_deletion(w, node);
        fake_delete(&w->fake, node);
        break;
    case 1:
    case 2:
        if (node)
            fake_touch(&w->fake, node);
        break;
    case 3:
        /* The server collects empty containers. */
        if (root && !fake_has_children(&w->fake, root->path))
            fake_delete(&w->fake, root);
        break;
    case 4:
        if (!root || !chance(w, 4))
            break;
        snprintf(path, sizeof path, "%s/note", root->path);
        if (!fake_find(&w->fake, path)) {
            w->foreign_seen = true;
            fake_create(&w->fake, path, 0, 0);
        }
        break;
    default:
        if (root && root->counter < ZKL_SEQUENCE_HARD - 16 && chance(w, 3))
            root->counter =
                chance(w, 2) ? ZKL_SEQUENCE_HARD - (int)rnd(w, 6) : INT32_MAX - (int)rnd(w, 6);
        break;
    }
}

static void maybe_disturb(struct world *w)
{
    struct proc *p = &w->procs[rnd(w, CORES)];
    if (chance(w, w->fault_rate))
        disturb(p);
    if (w->strangers && chance(w, 20))
        interfere(w);
    if (w->fault_rate < 30 && chance(w, 3000) && !w->wiped) {
        say("[%6lld] the data is lost", (long long)w->fake.now_ms);
        w->wiped = true;
        fake_wipe(&w->fake);
    }
    if (chance(w, 2000) && !p->closed)
        close_proc(p);
}

static bool step_process(struct proc *p)
{
    struct world *w = p->world;
    bool busy = false;
    notice(p, p->current);
    notice(p, p->probe);
    if (!awake(p))
        return false;
    if (p->asleep_until_ms != 0) { /* just woken: its links are broken or not */
        p->asleep_until_ms = 0;
        if (p->current && p->current->stuck && chance(w, 2) &&
            fake_alive(&w->fake, p->current->session))
            p->current->stuck = false;
    }
    open_handles(p);
    if (p->current && (w->calm || !chance(w, 3)))
        busy |= fake_serve(p->current);
    if (w->calm || !chance(w, 3))
        busy |= deliver(p, p->current);
    busy |= deliver(p, p->probe);
    if (w->calm || chance(w, 2))
        run_timer(p);
    for (int i = 0; i < APPS; i++)
        run_app(&p->apps[i]);
    if (w->calm || chance(w, 10)) {
        reconnect(p->current, w->calm || chance(w, 2));
        reconnect(p->probe, w->calm || chance(w, 2));
    }
    if (p->current && p->current->linked && (w->calm || chance(w, 6)))
        fake_catch_up(p->current, w->fake.zxid);
    return busy;
}

static void chaos(struct world *w)
{
    for (int i = 0; i < CHAOS_STEPS; i++) {
        maybe_disturb(w);
        struct proc *p = &w->procs[rnd(w, CORES)];
        step_process(p);
        check_counts(p);
        check_exclusion(w);
        if (chance(w, 3))
            fake_pass(&w->fake, rnd(w, chance(w, 30) ? 300 : 12));
        check_exclusion(w);
    }
}

static bool all_done(const struct world *w)
{
    for (int i = 0; i < CORES; i++) {
        const struct proc *p = &w->procs[i];
        if (p->core.first || p->core.pending_count || p->core.removing || p->core.watch_count)
            return false;
        for (int j = 0; j < APPS; j++) {
            if (p->apps[j].phase != IDLE)
                return false;
        }
    }
    return true;
}

static void complain(struct world *w)
{
    for (int i = 0; i < CORES; i++) {
        struct proc *p = &w->procs[i];
        printf("process %d: session %s, %zu pending, %zu watches%s\n", i,
               zkl_session_state_name(p->core.session.state), p->core.pending_count,
               p->core.watch_count, p->core.removing ? ", removals" : "");
        for (struct zkl_contender *c = p->core.first; c; c = c->next)
            printf("  #%llu %s %s\n", (unsigned long long)c->number,
                   zkl_contender_state_name(c->machine.state), c->machine.root);
    }
    for (size_t i = 0; i < w->fake.node_count; i++)
        printf("  node %s %s\n", w->fake.nodes[i].path, w->fake.nodes[i].dzxid ? "(deleted)" : "");
    wrong("stuck");
}

/* No more faults but stalls: every wish and every unlock must end. Waiters without a deadline
 * stay until they are granted: the others unlock. */
static void heal(struct world *w)
{
    w->healing = w->calm = true;
    for (int i = 0; i < HEAL_STEPS && !all_done(w); i++) {
        bool busy = false;
        for (int j = 0; j < CORES; j++) {
            busy |= step_process(&w->procs[j]);
            check_counts(&w->procs[j]);
        }
        check_exclusion(w);
        if (chance(w, 50) && w->procs[0].current && w->procs[0].current->linked)
            w->procs[0].current->stalled = true;
        if (!busy)
            fake_pass(&w->fake, 5);
        check_exclusion(w);
    }
    if (!all_done(w))
        complain(w);
}

static void check_nothing_left(struct world *w)
{
    fake_pass(&w->fake, 2 * FAKE_TIMEOUT_MS); /* sessions that were closed without a link expire */
    for (size_t i = 0; i < w->fake.node_count; i++) {
        if (w->fake.nodes[i].dzxid == 0 && w->fake.nodes[i].owner != 0 &&
            fake_alive(&w->fake, w->fake.nodes[i].owner))
            wrong("left behind: %s", w->fake.nodes[i].path);
    }
    for (int i = 0; i < CORES; i++) {
        const struct fake_handle *h = w->procs[i].current;
        /* An answer that was held back may still be on its way. */
        if (h && (h->known.count || h->armed.count) && !h->in.first && !h->held.first)
            wrong("watch left behind by %d: %s", i,
                  h->known.count ? h->known.list[0].path : h->armed.list[0].path);
    }
}

/* --- one seed ------------------------------------------------------------- */

static void proc_init(struct world *w, struct proc *p)
{
    p->world = w;
    p->port = (struct zkl_port){.send = port_send,
                                .news = port_news,
                                .session = port_session,
                                .random = port_random,
                                .trace = port_trace};
    zkl_core_init(&p->core, &p->port, FAKE_TIMEOUT_MS);
    p->core.tracer = (struct zkl_tracer){note_move, p};
    p->current = fake_open(&w->fake);
    for (int i = 0; i < APPS; i++)
        p->apps[i].proc = p;
}

static void proc_fini(struct proc *p)
{
    if (!p->closed)
        close_proc(p);
    zkl_core_fini(&p->core);
}

static void add_up(const struct world *w)
{
    total_grants += w->grants;
    total_losses += w->losses;
    for (int i = 0; i < 32; i++)
        total_failures[i] += w->failures[i];
}

static void run_seed(uint64_t seed)
{
    static const unsigned rates[] = {8, 25, 100, 1000000};
    struct world *w = calloc(1, sizeof *w);
    if (!w)
        abort();
    the_world = w;
    w->seed = seed;
    w->prng.state = seed * UINT64_C(0x2545f4914f6cdd1d);
    w->fault_rate = rates[rnd(w, 4)];
    w->out_of_memory = chance(w, 5);
    w->strangers = chance(w, 2);
    fake_init(&w->fake, &w->prng);
    w->fake.no_containers = chance(w, 4);
    for (int i = 0; i < CORES; i++)
        proc_init(w, &w->procs[i]);
    chaos(w);
    bool close_early = chance(w, 4);
    if (!close_early) {
        heal(w);
        check_nothing_left(w);
    }
    for (int i = 0; i < CORES; i++) {
        if (!w->procs[i].closed)
            close_proc(&w->procs[i]);
    }
    if (close_early)
        heal(w);
    for (int i = 0; i < CORES; i++)
        proc_fini(&w->procs[i]);
    add_up(w);
    fake_fini(&w->fake);
    free(w);
}

static void report(uint64_t count)
{
    printf("%llu seeds: %zu grants, %zu losses; failures:", (unsigned long long)count, total_grants,
           total_losses);
    for (int i = 0; i < 32; i++) {
        if (total_failures[i])
            printf(" %d: %zu,", -i, total_failures[i]);
    }
    printf("\nallowed transitions that were not reached:");
    for (int from = 0; from < ZKL_CONTENDER_STATES; from++) {
        for (int to = 0; to < ZKL_CONTENDER_STATES; to++) {
            if (zkl_contender_may_move(from, to) && !reached[from][to])
                printf(" %s->%s", zkl_contender_state_name(from), zkl_contender_state_name(to));
        }
    }
    printf("\n");
}

static uint64_t cpu_seconds(void)
{
    return (uint64_t)clock() / CLOCKS_PER_SEC;
}

int main(int argc, char **argv)
{
    bool longer = getenv("ZKL_TEST_LONG") != NULL;
    uint64_t first = argc > 1 ? strtoull(argv[1], NULL, 0) : 1;
    uint64_t count = argc > 2 ? strtoull(argv[2], NULL, 0) : argc > 1 ? 1 : longer ? 200000 : 3000;
    uint64_t budget = argc > 1 || longer ? UINT64_MAX : CPU_SECONDS, done = 0;
    verbose = count == 1;
    setvbuf(stdout, NULL, _IOLBF, 0);
    while (done < count && (done < 50 || cpu_seconds() < budget))
        run_seed(first + done++);
    report(done);
    return 0;
}
