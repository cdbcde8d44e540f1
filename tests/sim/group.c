/* SPDX-License-Identifier: Apache-2.0
 * The multi-lock of a process: all members together, all of one fate. */
#include <zklock/zklock.h>

#include "world.h"

struct place *member_app(struct client *p, size_t i)
{
    return (struct place *)p->members[i].contender;
}

bool app_is_member(const struct place *app)
{
    return app - app->client->apps >= APPS && app - app->client->apps < APPS + ROOTS;
}

static enum zkl_role some_role(struct world *w, int root)
{
    if (root != RW_ROOT)
        return ZKL_ROLE_LOCK;
    return chance(w, 2) ? ZKL_ROLE_READ : ZKL_ROLE_WRITE;
}

static void add_member(struct client *p, int root, bool try_only, int64_t lease_ns)
{
    struct world *w = p->world;
    struct place *app = &p->apps[APPS + root];
    struct zkl_bundle_member *member = &p->members[p->group.count++];
    *app = (struct place){.client = p,
                          .phase = WAITING,
                          .in_core = true,
                          .root = root,
                          .try_only = try_only,
                          .until_ms = INT64_MAX};
    member->contender = &app->contender;
    p->paths[root].view.calm |= chance(w, 2); /* a hint, which may be wrong */
    member->lock_request = (struct zkl_lock_request){.path = &p->paths[root],
                                                     .data = "owner",
                                                     .views = true,
                                                     .unlisted = root != RW_ROOT,
                                                     .try_only = try_only,
                                                     .watch_own = chance(w, 3),
                                                     .posted = chance(w, 4),
                                                     .lease_ns = lease_ns,
                                                     .naming.role = some_role(w, root)};
}

static void start(struct client *p)
{
    struct world *w = p->world;
    bool try_only = chance(w, 5);
    int64_t lease_ns = chance(w, 8) ? (1 + rnd(w, 200)) * MS : 0;
    p->group = (struct zkl_bundle){.members = p->members};
    for (int root = 0; root < ROOTS; root++) {
        if (!chance(w, 4))
            add_member(p, root, try_only, lease_ns);
    }
    if (p->group.count == 0)
        return;
    happened(w, SIM_MULTI);
    say("[%6lld] %d locks %zu together", (long long)w->fake.now_ms, name_of(p), p->group.count);
    p->group_until_ms = chance(w, 3) ? w->fake.now_ms + rnd(w, 600) : INT64_MAX;
    zkl_bundle_acquire(core_of(p), now_of(p), &p->group);
}

static void stop(struct client *p)
{
    struct world *w = p->world;
    int code = chance(w, 2) ? ZKL_ETIMEDOUT : ZKL_ECANCELED;
    happened(w, SIM_MULTI_STOPPED);
    say("[%6lld] %d stops all", (long long)w->fake.now_ms, name_of(p));
    for (size_t i = 0; i < p->group.count; i++)
        member_app(p, i)->stop_code = code;
    zkl_bundle_stop(core_of(p), now_of(p), &p->group, code);
    must(p->group.state != ZKL_BUNDLE_TAKING);
}

static void release(struct client *p)
{
    struct zkl_contender *held[ROOTS];
    size_t n = 0;
    say("[%6lld] %d unlocks all", (long long)p->world->fake.now_ms, name_of(p));
    for (size_t i = 0; i < p->group.count; i++) {
        struct place *app = member_app(p, i);
        if (app->phase != GRANTED || app->kept || local_queue_keep(app))
            continue;
        app->phase = UNLOCKING;
        app->unlocked = check_unlock(p, &app->contender, app->deleted_guid);
        held[n++] = &app->contender;
    }
    if (n > 0)
        zkl_bundle_release(core_of(p), now_of(p), held, n);
}

/* True: none of the members is anything any more. */
static bool run_members(struct client *p)
{
    bool over = true;
    for (size_t i = 0; i < p->group.count; i++) {
        struct place *app = member_app(p, i);
        if (!app->in_core && (app->phase == ANSWERED || app->phase == ORPHANED))
            app->phase = IDLE;
        else if (app->phase == GRANTED && !app->kept && chance(p->world, 60))
            app_end_hold(app); /* unlocked by itself */
        over = over && app->phase == IDLE;
    }
    return over;
}

void group_run(struct client *p)
{
    struct world *w = p->world;
    bool due = p->group_until_ms <= w->fake.now_ms;
    if (run_members(p)) {
        p->group.count = 0;
        if (proc_is_lively(p) && chance(w, 8))
            start(p);
    } else if (p->group.state == ZKL_BUNDLE_TAKING &&
               (due || (w->calm && p->group_until_ms != INT64_MAX))) {
        stop(p);
    } else if (p->group.state == ZKL_BUNDLE_GRANTED && (w->calm || chance(w, 12))) {
        release(p);
    }
}
