/* SPDX-License-Identifier: Apache-2.0
 * Owners of mutexes and read-write locks: they lock, try, lose patience, renew leases, downgrade,
 * unlock, or exit holding. */
#include <string.h>

#include <zklock/zklock.h>

#include "core/unlisted_grant.h"
#include "world.h"

/* --- notifications ----------------------------------------------------------- */

static void on_granted(struct world *w, struct place *app)
{
    must(app->phase == WAITING);
    check_grant(w, app);
    app->session = app->client->core.session.id;
    w->tally->grants++;
    app->phase = GRANTED;
    /* A member of a multi-lock may not have been notified of it. */
    app->suspect = app->contender.machine.suspect;
    bool writer =
        app->contender.machine.lock_request.naming.role == ZKL_ROLE_WRITE; /* may downgrade */
    int64_t usual = w->lonely ? 4 : 60;
    app->until_ms = w->fake.now_ms + rnd(w, chance(w, writer ? 2 : 6) ? FAKE_TIMEOUT_MS : usual);
}

static bool may_fail_with(const struct world *w, const struct place *app, int code)
{
    const struct client *p = app->client;
    bool ends_try = code == ZKL_EBUSY || code == ZKL_EUNPROVED;
    if (code == app->stop_code || (ends_try && app->try_only))
        return true;
    if ((code == ZKL_EEXHAUSTED && w->foreign_seen) || (code == ZKL_ENOMEM && w->out_of_memory) ||
        (code == ZKL_ESYSTEM && w->few_watches) || (code == ZKL_EFULL && w->few_nodes) ||
        (code == ZKL_ECLOSED && p->closed) || (code == ZKL_EAUTH && p->refused) ||
        (code == ZKL_EACCES && may_be_denied(w)) || may_be_refused(w, code))
        return true;
    if (code != ZKL_ELOST)
        return false;
    bool may_end = w->fault_seen || w->fake.resumes_none; /* which hangs up by itself */
    return (app_is_member(app) && p->group.lost) ||
           (app->writer && (may_end || app->writer->contender.machine.lease_end_boot != 0));
}

static void on_failed(struct world *w, struct place *app, const struct zkl_notification *news)
{
    must(app->phase == WAITING);
    must(news->code < 0 && news->code > -TALLY_CODES);
    w->tally->failures[-news->code]++;
    if (news->code == ZKL_ESYSTEM)
        happened(w, SIM_NO_WATCH);
    if (news->code == ZKL_EFULL)
        happened(w, SIM_NO_ROOM);
    if (!may_fail_with(w, app, news->code)) {
        say("failed with %d: %s", news->code, news->detail ? news->detail : "");
        wrong("a lock failed for no reason");
    }
    app->phase = ANSWERED;
}

static void on_released(struct place *app, const struct zkl_notification *news)
{
    must(app->phase == UNLOCKING);
    must((news->code == ZKL_ELOST) == app->lost);
    check_unlocked(app->client->world, &app->unlocked, news->code);
    app->phase = ANSWERED;
}

static void on_state(struct world *w, struct place *app, const struct zkl_notification *news)
{
    must(app->phase == GRANTED || app->phase == UNLOCKING || app->phase == ORPHANED);
    must(!app->lost);
    if (news->state == ZKL_HOLD_LOST) {
        app->lost = true;
        check_loss(w, app, news->reason);
        if (news->reason == ZKL_REASON_EXPIRED && !w->wiped)
            app->told_until_boot = app->client->window_end_boot;
        w->tally->losses++;
        if (news->reason == ZKL_REASON_LEASE_ENDED)
            happened(w, SIM_LEASE_ENDED);
        return;
    }
    if (news->state == ZKL_HOLD_REVOKE_REQUESTED) {
        must(!app->revoked);
        app->revoked = true;
        return;
    }
    check_state(app->client->world, app->suspect, news);
    app->suspect = news->state == ZKL_HOLD_SUSPECT;
}

void locks_notification(struct place *app, const struct zkl_notification *news)
{
    struct world *w = app->client->world;
    must(app->in_core);
    if (app_is_place(app))
        local_queue_notification(app, news);
    else if (app_is_reader_place(app))
        readers_notification(app, news);
    switch (news->type) {
    case ZKL_NOTIFY_GRANTED:
        on_granted(w, app);
        break;
    case ZKL_NOTIFY_FAILED:
        on_failed(w, app, news);
        break;
    case ZKL_NOTIFY_RELEASED:
        on_released(app, news);
        break;
    case ZKL_NOTIFY_STATE:
        on_state(w, app, news);
        break;
    case ZKL_NOTIFY_ENDED:
        must(app->phase == ANSWERED || app->phase == ORPHANED);
        app->in_core = false;
        break;
    }
}

/* --- what they do --------------------------------------------------------- */

/* Some hold of the write lock, by the same process; its owner, a thread, now asks for the read lock
 * too. */
static struct place *some_writer(struct client *p)
{
    for (int i = 0; i < APPS; i++) {
        struct place *app = &p->apps[i];
        if (app->phase == GRANTED && app->in_core &&
            app->contender.machine.lock_request.naming.role == ZKL_ROLE_WRITE)
            return app;
    }
    return NULL;
}

static bool is_busy(const struct place *writer)
{
    for (int i = 0; i < APPS; i++) {
        const struct place *app = &writer->client->apps[i];
        if (app->writer == writer && app->phase == WAITING)
            return true;
    }
    return false;
}

static void choose_role(struct place *app, struct zkl_lock_request *lock_request)
{
    struct world *w = app->client->world;
    if (app->root != RW_ROOT)
        return;
    struct place *writer = some_writer(app->client);
    bool reads = writer || chance(w, w->many_writers ? 8 : 2);
    lock_request->naming.role = reads ? ZKL_ROLE_READ : ZKL_ROLE_WRITE;
    if (!writer || chance(w, 6))
        return;
    happened(w, SIM_DOWNGRADE);
    app->writer = writer;
    memcpy(app->writer_guid, writer->contender.machine.guid, sizeof app->writer_guid);
    lock_request->downgrade_from = &writer->contender;
}

static bool is_lonely(struct world *w)
{
    return w->lonely && !chance(w, 12);
}

static bool is_at_home(struct world *w)
{
    return w->in_rows ? !chance(w, 12) : is_lonely(w);
}

static int choose_root(const struct place *app)
{
    struct client *p = app->client;
    struct world *w = p->world;
    static const int own[APPS] = {0, 2, LOCAL_QUEUE_ROOT, 0};
    if (w->grouped && !chance(w, 12))
        return p == w->clients ? own[app - p->apps] : RW_ROOT;
    if (is_at_home(w))
        return name_of(p) % 2 == 0 ? 0 : 2; /* without the read-write lock: two are rivals */
    if ((w->many_writers || some_writer(p)) && !chance(w, 3))
        return RW_ROOT;
    bool keeps_away = w->readers && !chance(w, 6); /* so that readers come and go for a while */
    return keeps_away ? (rnd(w, 2) == 0 ? 0 : 2) : (int)rnd(w, ROOTS);
}

/* In a lonely world the first one only, mostly; or those of the first process. Beside a writer soon: it may be a
 * downgrade, which is rare. */
static bool begins(struct place *app)
{
    struct world *w = app->client->world;
    const struct place *first = w->grouped ? w->clients[0].apps : app->client->apps;
    bool is_one = app == first || (w->grouped && app->client == w->clients && !chance(w, 3));
    bool stays = !is_one && is_lonely(w);
    unsigned once_in = some_writer(app->client) || w->grouped ? 2 : w->lonely ? 4 : 8;
    return proc_is_lively(app->client) && chance(w, once_in) && !stays;
}

static void start(struct place *app)
{
    struct client *p = app->client;
    struct world *w = p->world;
    struct zkl_lock_request lock_request = {.data = "owner"};
    *app = (struct place){.client = p, .phase = WAITING, .in_core = true};
    app->root = choose_root(app);
    app->try_only = lock_request.try_only = chance(w, 5);
    lock_request.try_sync = chance(w, 2);
    lock_request.try_behind_retained = w->local_queue || w->readers;
    lock_request.watch_own = chance(w, 3);
    lock_request.posted = chance(w, 4);
    lock_request.path = &p->paths[app->root];
    lock_request.lease_ns = chance(w, 5) ? (1 + rnd(w, 100)) * MS : 0;
    choose_role(app, &lock_request);
    if (lock_request.naming.role == ZKL_ROLE_LOCK && !chance(w, 8))
        lock_request.unlisted = true;
    lock_request.views = true;
    if (lock_request.try_only)
        happened(w, SIM_TRY);
    if (lock_request.lease_ns)
        happened(w, SIM_LEASE);
    app->until_ms = chance(w, 3) ? w->fake.now_ms + rnd(w, 400) : INT64_MAX;
    say("[%6lld] %d locks %s%s", (long long)w->fake.now_ms, name_of(p), lock_request.path->text,
        lock_request.try_only ? " (try)" : "");
    if (lock_request.naming.role == ZKL_ROLE_WRITE)
        readers_make_room(p);
    zkl_core_acquire(core_of(p), now_of(p), &app->contender, &lock_request);
}

static void end_wish(struct place *app)
{
    struct client *p = app->client;
    struct world *w = p->world;
    app->stop_code = chance(w, 2) ? ZKL_ETIMEDOUT : ZKL_ECANCELED;
    happened(w, app->stop_code == ZKL_ETIMEDOUT ? SIM_DEADLINE : SIM_CANCEL);
    say("[%6lld] %d #%llu stops", (long long)w->fake.now_ms, name_of(p),
        (unsigned long long)app->contender.number);
    zkl_core_stop(core_of(p), now_of(p), &app->contender, app->stop_code);
    must(app->phase != WAITING);
}

void app_end_hold(struct place *app)
{
    struct client *p = app->client;
    bool exits = chance(p->world, 6);
    say("[%6lld] %d #%llu %s", (long long)p->world->fake.now_ms, name_of(p),
        (unsigned long long)app->contender.number, exits ? "exits" : "unlocks");
    app->phase = exits ? ORPHANED : UNLOCKING;
    if (exits) {
        happened(p->world, SIM_THREAD_EXIT);
        zkl_core_abandon(core_of(p), now_of(p), &app->contender, ZKL_REASON_OWNER_EXITED);
    } else {
        app->unlocked = check_unlock(p, &app->contender, app->deleted_guid);
        zkl_core_release(core_of(p), now_of(p), &app->contender);
    }
}

static void renew(struct place *app)
{
    struct client *p = app->client;
    happened(p->world, SIM_LEASE_RENEWED);
    (void)zkl_core_renew(core_of(p), now_of(p), &app->contender, (1 + rnd(p->world, 100)) * MS);
}

/* What the owner does, if it is time. */
static void run(struct place *app)
{
    struct world *w = app->client->world;
    bool due = app->until_ms <= w->fake.now_ms;
    if (app->phase == WAITING && (due || (w->calm && app->until_ms != INT64_MAX)))
        end_wish(app);
    else if (app->phase == GRANTED && due && !is_busy(app))
        app_end_hold(app);
    else if (app->phase == GRANTED && !app->lost && chance(w, 20))
        renew(app);
    else if (!app->in_core && (app->phase == ANSWERED || app->phase == ORPHANED))
        app->phase = IDLE;
    else if (app->phase == IDLE && begins(app))
        start(app);
}

static bool is_used(const struct client *p, const struct zkl_path *path)
{
    const struct zkl_contender *c = p->core.first;
    while (c && !(c->machine.lock_request.path == path && c->machine.lock_request.unlisted))
        c = c->next;
    return c != NULL;
}

/* As the last handle of a path is freed. */
static void give_up(struct client *p, struct zkl_path *path)
{
    must(path->unlisted.live_count == 0);
    zkl_unlisted_end(core_of(p), now_of(p), &path->unlisted);
    path->unlisted = (struct zkl_unlisted_grant){0};
}

void locks_run(struct client *p)
{
    for (int i = 0; i < APPS; i++)
        run(&p->apps[i]);
    for (int i = 0; i <= ROOTS; i++) {
        bool done = p->world->healing || chance(p->world, 100);
        if (done && !is_used(p, &p->paths[i]))
            give_up(p, &p->paths[i]);
    }
}
