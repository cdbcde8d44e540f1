/* SPDX-License-Identifier: Apache-2.0
 * What may come next. The first choices are the schedule: each costs as many delays as there are before it, in
 * the order of the clients from the one on whose turn it is (Emmi, Qadeer, Rakamaric: Delay-Bounded Scheduling,
 * POPL 2011). Behind them come faults, each of which costs one. */
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

/* What the lists say of each. */
#define MAY(name, of, words, may, does)                                                            \
    case name:                                                                                     \
        return may;
#define DO(name, of, words, may, does)                                                             \
    case name:                                                                                     \
        does;                                                                                      \
        break;
#define WORDS(name, of, words, ...) [name] = words,
#define SUBJECT(name, of, ...) [name] = of,
static const enum whom { CLIENT, WORLD, OWNER, NODE, ROOT } subjects[] = {FAULT_LIST(SUBJECT)};

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

/* --- the schedule --------------------------------------------------------- */

/* A server that lags makes a difference only if it lacks a change that this client has not seen
 * yet. */
static bool is_worth_lagging(const struct client *c)
{
    const struct fake *fake = &c->world->fake;
    for (size_t i = 0; i < fake->node_count; i++) {
        if (fake->nodes[i].czxid > c->current->seen || fake->nodes[i].dzxid > c->current->seen)
            return c->current->session != 0 && fake_alive(fake, c->current->session);
    }
    return false;
}

static bool may_connect(const struct fake_handle *h)
{
    return h && !h->linked && !h->expired;
}

/* Linked, and answered by a server that belongs to the others. */
static bool is_well(const struct client *c)
{
    return client_is_linked(c) && !c->muted && !c->current->isolated;
}

static bool may_come(enum act act, const struct client *c, const struct owner *o)
{
    switch (act) {
        ACT_LIST(MAY)
    case ACTS:
        break;
    }
    return false;
}

static void add_owners(struct list *l, enum act act, const struct client *of)
{
    struct world *w = l->w;
    each_owner(w, o) {
        if ((!of || o->client == of) && may_come(act, o->client, o))
            add(l, act, name_of(o->client), (int)(o - w->owners));
    }
}

static void add_link(struct list *l, const struct client *c)
{
    for (int act = ACT_SERVE; act <= ACT_CATCH_UP; act++) {
        if (may_come((enum act)act, c, NULL))
            add(l, (enum act)act, name_of(c), 0);
    }
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

static bool may_exit(const struct owner *o)
{
    return owner_may_unlock(o) &&
           (o->kind == PART_LOCK || o->kind == PART_TURN || o->kind == PART_READER);
}

static bool may_fail_so(const struct world *w, enum fault fault, const struct client *c,
                        const struct owner *o, const struct fake_node *node)
{
    switch (fault) {
        FAULT_LIST(MAY)
    case FAULTS:
        break;
    }
    return false;
}

static void add_faults_of(struct list *l, enum whom whom, size_t i)
{
    struct world *w = l->w;
    const struct client *c = &w->clients[whom == CLIENT ? i : 0];
    const struct owner *o = &w->owners[whom == OWNER ? i : 0];
    const struct fake_node *node =
        whom == ROOT ? fake_find(&w->fake, root_paths[0]) : &w->fake.nodes[whom == NODE ? i : 0];
    for (int fault = 0; fault < FAULTS; fault++) {
        if (subjects[fault] == whom && w->bounds->scenario->faults & BIT(fault) &&
            may_fail_so(w, (enum fault)fault, c, o, node))
            add(l, ACT_FAULT, (int)i, fault);
    }
}

static void add_faults(struct list *l)
{
    struct world *w = l->w;
    for (int i = 0; i < w->client_count; i++) {
        if (!w->clients[i].dead)
            add_faults_of(l, CLIENT, (size_t)i);
    }
    add_faults_of(l, WORLD, 0);
    for (int i = 0; i < w->owner_count; i++)
        add_faults_of(l, OWNER, (size_t)i);
    for (size_t i = 0; i < w->fake.node_count && i < 256; i++) {
        if (w->fake.nodes[i].dzxid == 0 && w->fake.nodes[i].owner != 0)
            add_faults_of(l, NODE, i);
    }
    add_faults_of(l, ROOT, 0);
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
        add_owners(&l, ACT_START, c);
        add_link(&l, c);
    }
    /* These come behind all others, so that somebody waits even if few steps are put off. */
    add_owners(&l, ACT_UNLOCK, NULL);
    each_client(w, c) {
        if (may_come(ACT_FREE, c, NULL))
            add(&l, ACT_FREE, name_of(c), 0);
    }
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

static void delete_node(struct world *w, struct fake_node *node)
{
    owners_note_deletion(w, node->path);
    fake_delete(&w->fake, node);
}

/* Somebody deletes the path and makes it anew. Children that were made there meanwhile bring the
 * newest number again. */
static void make_anew(struct world *w)
{
    int32_t counter = fake_find(&w->fake, root_paths[0])->counter - 1;
    each_node(&w->fake, node) {
        if (node->dzxid != 0 || !fake_child_of(node, root_paths[0]))
            continue;
        delete_node(w, node);
    }
    fake_delete(&w->fake, fake_find(&w->fake, root_paths[0]));
    fake_create(&w->fake, root_paths[0], 0, counter);
}

static void mute(struct client *c)
{
    c->muted = true;
    c->muted_ms = c->world->fake.now_ms;
}

static void isolate(struct client *c, bool deposed)
{
    fake_isolate(c->current, deposed);
    c->alone_ms = c->world->fake.now_ms;
    touches_of(c->world, c->current->session)->held = 0;
}

static void refuse(struct client *c)
{
    c->current->too_busy = true;
    client_serve(c);
}

static void take_fault(struct world *w, enum fault fault, int whom)
{
    struct client *c = &w->clients[whom < w->client_count ? whom : 0];
    struct owner *o = &w->owners[whom < OWNERS ? whom : 0];
    struct fake_node *node = &w->fake.nodes[(size_t)whom < w->fake.node_count ? whom : 0];
    switch (fault) {
        FAULT_LIST(DO)
    case FAULTS:
        break;
    }
    w->faults--;
}

/* what: 1 and 3 with an expiry that is late, 2 and 3 of those that are counted. */
static void go_on(struct world *w, int what)
{
    w->waits -= what >= 2;
    time_pass(w, time_next_ms(w), what % 2 == 1);
}

static void take(struct world *w, struct choice choice)
{
    struct client *c = &w->clients[choice.client < w->client_count ? choice.client : 0];
    struct owner *o = &w->owners[choice.what < OWNERS ? choice.what : 0];
    switch ((enum act)choice.act) {
        ACT_LIST(DO)
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
    static const char *const acts[] = {ACT_LIST(WORDS)};
    static const char *const untils[] = {UNTIL_LIST(FAKE_NAME)};
    static const char *const faults[] = {FAULT_LIST(WORDS)};
    int i = choice.client;
    const struct fake_handle *h = w->clients[i < w->client_count ? i : 0].current;
    if (choice.act == ACT_FAULT && subjects[choice.what] == NODE)
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
        snprintf(text, size, "%d %s%s", i, acts[choice.act],
                 choice.act == ACT_SERVE && w->clients[i].muted ? " (muted)"
                 : h && h->isolated                             ? " (alone)"
                                                                : "");
}

/* --- without faults ------------------------------------------------------- */

static bool calm_take(struct world *w, enum act act, const struct client *c, const struct owner *o)
{
    bool comes = may_come(act, c, o);
    struct choice choice = {.act = (unsigned char)act, .client = (unsigned char)name_of(c)};
    choice.what = o ? (unsigned char)(o - w->owners) : 0;
    if (comes)
        take(w, choice);
    return comes;
}

static bool calm_client(struct world *w, struct client *c)
{
    static const enum act acts[] = {ACT_BREAK,    ACT_CONNECT, ACT_PROBE,
                                    ACT_CATCH_UP, ACT_SERVE,   ACT_FREE};
    bool done = c->deaf || c->starved;
    if (c->deaf)
        c->deaf = false;
    else if (c->starved)
        client_timer(c);
    for (size_t i = 0; !done && i < sizeof acts / sizeof *acts; i++)
        done = calm_take(w, acts[i], c, NULL);
    for (int i = 0; !done && i < w->owner_count; i++)
        done = w->owners[i].client == c && (calm_take(w, ACT_START, c, &w->owners[i]) ||
                                            calm_take(w, ACT_UNLOCK, c, &w->owners[i]));
    return done;
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
