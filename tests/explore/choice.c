/* SPDX-License-Identifier: Apache-2.0
 * What may come next. The first choices are the schedule: each costs as many delays as there are before it, in
 * the order of the clients from the one on whose turn it is (Emmi, Qadeer, Rakamaric: Delay-Bounded Scheduling,
 * POPL 2011). Behind them come faults, each of which costs one. */
#include <stdio.h>
#include <string.h>

#include "world.h"

#define UNTIL_STEPS_MAX 400

/* How long a client that has no word from its server may stay so, in one step. */
#define UNTIL_LIST(X)                                                                              \
    X(UNTIL_WINDOW_ENDS, "its window ends")                                                        \
    X(UNTIL_EXPIRED, "its session ends")                                                           \
    X(UNTIL_GIVEN_UP, "its session is given up, to end late") /* by the leader */                  \
    X(UNTIL_TIMER, "its session's timer is due")              /* for a second handle */
enum until { UNTIL_LIST(FAKE_ENUM) UNTILS };

struct list {
    struct world *w;
    struct choice *list;
    size_t count;
};

static void add(struct list *l, enum act act, int client, int what)
{
    must(l->count < CHOICES);
    size_t delay = act >= ACT_TIME ? 0 : l->count;
    if (l->w->bounds->delays >= 0 && (int)delay > l->w->delays)
        return;
    l->list[l->count++] = (struct choice){.act = (unsigned char)act,
                                          .client = (unsigned char)client,
                                          .what = (unsigned char)what,
                                          .delay = (unsigned char)delay};
}

static int owner_number(const struct owner *o)
{
    return (int)(o - o->client->world->owners);
}

/* --- the schedule --------------------------------------------------------- */

static void add_owners(struct list *l, struct client *c)
{
    struct world *w = l->w;
    each_owner(w, o) {
        if (o->client != c)
            continue;
        if (owner_may_start(o))
            add(l, ACT_START, name_of(c), owner_number(o));
    }
}

/* These choices come behind all others, so that somebody waits even if few steps are put off. */
static void add_ends(struct list *l)
{
    struct world *w = l->w;
    for (int i = 0; i < w->owner_count; i++) {
        if (owner_may_unlock(&w->owners[i]))
            add(l, ACT_UNLOCK, name_of(w->owners[i].client), i);
    }
    for (int i = 0; i < w->client_count; i++) {
        if (client_may_be_freed(&w->clients[i]))
            add(l, ACT_FREE, i, 0);
    }
}

/* A server that lags makes a difference only if it lacks a change that this client has not seen
 * yet. */
static bool is_worth_lagging(const struct client *c)
{
    const struct fake *fake = &c->world->fake;
    for (size_t i = 0; i < fake->node_count; i++) {
        if (fake->nodes[i].czxid > c->current->seen || fake->nodes[i].dzxid > c->current->seen)
            return c->current->session != 0;
    }
    return false;
}

static bool may_connect(const struct fake_handle *h)
{
    return h && !h->linked && !h->expired;
}

static void add_link(struct list *l, struct client *c)
{
    int i = name_of(c);
    struct fake_handle *h = c->current;
    if (client_is_served(c))
        add(l, ACT_SERVE, i, 0);
    if (c->deaf && client_may_hear(c))
        add(l, ACT_HEAR, i, 0);
    if ((c->deaf || c->starved) && client_timer_is_due(c))
        add(l, ACT_TIMER, i, 0);
    if (may_connect(h)) {
        add(l, ACT_CONNECT, i, 0);
        if (is_worth_lagging(c) && fake_alive(&l->w->fake, h->session))
            add(l, ACT_CONNECT, i, 1);
    }
    if (may_connect(c->probe))
        add(l, ACT_PROBE, i, 0);
    if (client_is_linked(c) && (c->muted || h->isolated))
        add(l, ACT_BREAK, i, 0);
    if (c->behind)
        add(l, ACT_CATCH_UP, i, 0);
}

bool world_is_quiet(const struct world *w)
{
    for (int i = 0; i < w->client_count; i++) {
        if (client_is_served(&w->clients[i]) && !w->clients[i].muted)
            return false;
    }
    return true;
}

static void add_until(struct list *l, const struct client *c)
{
    const struct world *w = l->w;
    int i = name_of(c);
    bool away = !c->dead && c->current &&
                (!c->current->linked || c->muted || c->deaf || c->current->isolated);
    if (!away || c->sessions > 1) /* at most two sessions each */
        return;
    if (fake_alive(&w->fake, c->core.session.id)) {
        if (time_of(w).boot_ns < zkl_session_window_end(&c->core.session))
            add(l, ACT_UNTIL, i, UNTIL_WINDOW_ENDS);
        add(l, ACT_UNTIL, i, UNTIL_EXPIRED);
        if (touches_of(l->w, c->core.session.id)->close_ms == 0)
            add(l, ACT_UNTIL, i, UNTIL_GIVEN_UP);
    }
    if (!c->deaf && !c->starved && c->core.session.timer_mono_ns != INT64_MAX)
        add(l, ACT_UNTIL, i, UNTIL_TIMER);
}

static void add_time(struct list *l)
{
    struct world *w = l->w;
    int64_t next_ms = time_next_ms(w);
    if (!world_is_quiet(w) || next_ms == INT64_MAX)
        return;
    bool wanted = l->count == 0;
    if (wanted || w->waits > 0) {
        add(l, ACT_TIME, 0, wanted ? 0 : 2);
        if (time_may_be_late(w, next_ms))
            add(l, ACT_TIME, 0, wanted ? 1 : 3);
    }
    for (int i = 0; i < w->client_count; i++)
        add_until(l, &w->clients[i]);
}

/* --- faults --------------------------------------------------------------- */

static void add_fault(struct list *l, enum fault fault, int whom)
{
    if (l->w->bounds->scenario->faults & BIT(fault))
        add(l, ACT_FAULT, whom, (int)fault);
}

static void add_faults(struct list *l)
{
    struct world *w = l->w;
    for (int i = 0; i < w->client_count; i++) {
        struct client *c = &w->clients[i];
        if (c->dead)
            continue;
        if (client_is_linked(c) && !c->muted && !c->current->isolated) {
            add_fault(l, FAULT_MUTE, i);
            add_fault(l, FAULT_ALONE, i);
            add_fault(l, FAULT_DEPOSED, i);
        }
        if (!c->deaf)
            add_fault(l, FAULT_DEAF, i);
        if (!c->starved)
            add_fault(l, FAULT_STARVE, i);
        if (client_is_served(c) && !c->muted && !c->current->isolated)
            add_fault(l, FAULT_REFUSE, i);
        add_fault(l, FAULT_KILL, i);
    }
    if (!w->raised)
        add_fault(l, FAULT_RAISE, 0);
    for (int i = 0; i < w->owner_count; i++) {
        struct owner *o = &w->owners[i];
        if (owner_may_stop(o))
            add_fault(l, FAULT_CANCEL, i);
        if (owner_may_unlock(o) &&
            (o->kind == PART_LOCK || o->kind == PART_TURN || o->kind == PART_READER))
            add_fault(l, FAULT_EXIT, i);
        if (owner_may_unlock(o) && o->part->leases)
            add_fault(l, FAULT_RENEW, i);
    }
    for (size_t i = 0; i < w->fake.node_count && i < 256; i++) {
        const struct fake_node *node = &w->fake.nodes[i];
        if (node->dzxid != 0 || node->owner == 0)
            continue;
        add_fault(l, FAULT_DELETE, (int)i);
        add_fault(l, FAULT_WRITE, (int)i);
        if (!node->denied)
            add_fault(l, FAULT_DENY, (int)i);
    }
    const struct fake_node *root = fake_find(&w->fake, root_paths[0]);
    if (root && root->counter > 0)
        add_fault(l, FAULT_ANEW, 0);
}

size_t choices_of(struct world *w, struct choice *list)
{
    struct list l = {.w = w, .list = list};
    if (check_done(w))
        return 0;
    for (int i = 0; i < w->client_count; i++) {
        struct client *c = &w->clients[(w->last + i) % w->client_count];
        if (c->dead)
            continue;
        add_owners(&l, c);
        add_link(&l, c);
    }
    add_ends(&l);
    add_time(&l);
    if (w->faults > 0)
        add_faults(&l);
    return l.count;
}

/* --- taking one ----------------------------------------------------------- */

/* Whatever is under way is done, in one order; nobody begins anything. */
static void serve_all(struct world *w)
{
    for (int i = 0; i < w->client_count; i++) {
        struct client *c = &w->clients[i];
        while (client_is_served(c) && !c->muted) {
            client_serve(c);
            world_settle(w);
            check_world(w);
            i = 0;
        }
    }
}

static bool is_reached(const struct client *c, int64_t session, int64_t timer_ns, enum until until)
{
    const struct world *w = c->world;
    switch (until) {
    case UNTIL_WINDOW_ENDS:
        return time_of(w).boot_ns >= zkl_session_window_end(&c->core.session);
    case UNTIL_GIVEN_UP:
        return touches_of(c->world, session)->close_ms != 0 || !fake_alive(&w->fake, session);
    case UNTIL_EXPIRED:
        return !fake_alive(&w->fake, session);
    case UNTIL_TIMER:
    case UNTILS:
        break;
    }
    return time_of(w).mono_ns >= timer_ns || c->core.session.timer_mono_ns != timer_ns;
}

static void wait_until(struct world *w, struct client *c, enum until until)
{
    int64_t session = c->core.session.id, timer_ns = c->core.session.timer_mono_ns;
    for (int i = 0; !is_reached(c, session, timer_ns, until); i++) {
        must(i < UNTIL_STEPS_MAX);
        int64_t next_ms = time_next_ms(w);
        if (next_ms == INT64_MAX)
            return; /* nothing is due any more */
        struct touches *t = touches_of(w, session);
        time_pass(w, next_ms, until == UNTIL_GIVEN_UP && t && t->close_ms == 0);
        check_world(w);
        serve_all(w);
    }
}

/* Somebody deletes the path and makes it anew. Children that were made there meanwhile bring the
 * newest number again. */
static void make_anew(struct world *w)
{
    int32_t counter = fake_find(&w->fake, root_paths[0])->counter - 1;
    each_node(&w->fake, node) {
        if (node->dzxid != 0 || !fake_child_of(node, root_paths[0]))
            continue;
        owners_note_deletion(w, node->path);
        fake_delete(&w->fake, node);
    }
    fake_delete(&w->fake, fake_find(&w->fake, root_paths[0]));
    fake_create(&w->fake, root_paths[0], 0, counter);
}

static void take_fault(struct world *w, enum fault fault, int whom)
{
    struct client *c = &w->clients[whom < w->client_count ? whom : 0];
    struct owner *o = &w->owners[whom < OWNERS ? whom : 0];
    struct fake_node *node = &w->fake.nodes[(size_t)whom < w->fake.node_count ? whom : 0];
    switch (fault) {
    case FAULT_MUTE:
        c->muted = true;
        c->muted_ms = w->fake.now_ms;
        break;
    case FAULT_DEAF:
        c->deaf = true;
        break;
    case FAULT_CANCEL:
        owner_is_stopped(o);
        break;
    case FAULT_KILL:
        client_kill(c);
        break;
    case FAULT_DELETE:
        owners_note_deletion(w, node->path);
        fake_delete(&w->fake, node);
        break;
    case FAULT_WRITE:
        fake_write(&w->fake, node, "note");
        break;
    case FAULT_ALONE:
    case FAULT_DEPOSED:
        fake_isolate(c->current, fault == FAULT_DEPOSED);
        c->alone_ms = w->fake.now_ms;
        touches_of(w, c->current->session)->held = 0;
        break;
    case FAULT_EXIT:
        owner_exit(o);
        break;
    case FAULT_DENY:
        w->denied = node->denied = true;
        break;
    case FAULT_RENEW:
        owner_renews(o);
        break;
    case FAULT_RAISE:
        w->raised = true;
        break;
    case FAULT_STARVE:
        c->starved = true;
        break;
    case FAULT_ANEW:
        make_anew(w);
        break;
    case FAULT_REFUSE:
        c->current->too_busy = true;
        client_serve(c);
        break;
    case FAULTS:
        break;
    }
    w->faults--;
}

static void take(struct world *w, struct choice choice)
{
    struct client *c = &w->clients[choice.client < w->client_count ? choice.client : 0];
    switch ((enum act)choice.act) {
    case ACT_START:
        owner_starts(&w->owners[choice.what]);
        break;
    case ACT_UNLOCK:
        owner_unlock(&w->owners[choice.what]);
        break;
    case ACT_FREE:
        client_free(c);
        break;
    case ACT_SERVE:
        client_serve(c);
        break;
    case ACT_BREAK:
        client_break(c);
        break;
    case ACT_CONNECT:
        client_connect(c, c->current, choice.what == 1);
        break;
    case ACT_PROBE:
        client_connect(c, c->probe, false);
        break;
    case ACT_CATCH_UP:
        c->behind = false;
        break;
    case ACT_HEAR:
        c->deaf = false;
        break;
    case ACT_TIMER:
        client_timer(c);
        break;
    case ACT_TIME:
        w->waits -= choice.what >= 2;
        time_pass(w, time_next_ms(w), choice.what % 2 == 1);
        break;
    case ACT_UNTIL:
        wait_until(w, c, (enum until)choice.what);
        break;
    case ACT_FAULT:
        take_fault(w, (enum fault)choice.what, choice.client);
        break;
    case ACTS:
        break;
    }
}

void choice_take(struct world *w, struct choice choice)
{
    if (w->bounds->delays >= 0)
        w->delays -= choice.delay;
    if (choice.act < ACT_TIME && w->bounds->delays >= 0)
        w->last = choice.client;
    take(w, choice);
    world_settle(w);
    check_world(w);
}

void choice_tell(const struct world *w, struct choice choice, char *text, size_t size)
{
    static const char *const acts[] = {ACT_LIST(FAKE_NAME)};
    static const char *const untils[] = {UNTIL_LIST(FAKE_NAME)};
    static const char *const faults[] = {FAULT_LIST(FAKE_NAME)};
    int i = choice.client;
    const struct fake_handle *h = w->clients[i < w->client_count ? i : 0].current;
    bool node =
        choice.what == FAULT_DELETE || choice.what == FAULT_WRITE || choice.what == FAULT_DENY;
    if (choice.act == ACT_FAULT && node)
        snprintf(text, size, "FAULT, %s %s", faults[choice.what], w->fake.nodes[i].path);
    else if (choice.act == ACT_FAULT)
        snprintf(text, size, "FAULT, %s %d", faults[choice.what], i);
    else if (choice.act == ACT_TIME)
        snprintf(text, size, "time passes to %lld%s", (long long)time_next_ms(w),
                 choice.what % 2 ? ", an expiry is late" : "");
    else if (choice.act == ACT_UNTIL)
        snprintf(text, size, "%d is away until %s", i, untils[choice.what]);
    else if (choice.act == ACT_START || choice.act == ACT_UNLOCK)
        snprintf(text, size, "%d: owner %d %s", i, choice.what, acts[choice.act]);
    else
        snprintf(text, size, "%d %s%s%s", i, acts[choice.act],
                 choice.act == ACT_CONNECT && choice.what == 1 ? " to a server that is behind" : "",
                 choice.act == ACT_SERVE && w->clients[i].muted ? " (muted)"
                 : h && h->isolated                             ? " (alone)"
                                                                : "");
}

/* --- without faults ------------------------------------------------------- */

static bool calm_owner(struct owner *o)
{
    bool starts = owner_may_start(o), unlocks = !starts && owner_may_unlock(o);
    if (starts)
        owner_starts(o);
    if (unlocks)
        owner_unlock(o);
    return starts || unlocks;
}

static bool calm_client(struct world *w, struct client *c)
{
    struct fake_handle *h = c->current;
    if (c->deaf)
        c->deaf = false;
    else if (c->starved)
        client_timer(c);
    else if (client_is_linked(c) && (c->muted || h->isolated))
        client_break(c);
    else if (may_connect(h))
        client_connect(c, h, false);
    else if (may_connect(c->probe))
        client_connect(c, c->probe, false);
    else if (c->behind)
        c->behind = false;
    else if (client_is_served(c))
        client_serve(c);
    else if (client_may_be_freed(c))
        client_free(c);
    else {
        for (int i = 0; i < w->owner_count; i++) {
            if (w->owners[i].client == c && calm_owner(&w->owners[i]))
                return true;
        }
        return false;
    }
    return true;
}

bool calm_step(struct world *w)
{
    bool busy = false;
    for (int i = 0; i < w->client_count && !busy; i++) {
        struct client *c = &w->clients[i];
        busy = !c->dead && calm_client(w, c);
    }
    if (!busy) {
        int64_t next_ms = time_next_ms(w);
        if (next_ms == INT64_MAX)
            return false;
        time_pass(w, next_ms, false);
    }
    world_settle(w);
    check_world(w);
    return true;
}
