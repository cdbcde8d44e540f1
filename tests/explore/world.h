/* SPDX-License-Identifier: Apache-2.0
 * Some clients, each the real core with its owners, on the ensemble of the simulation (tests/sim/fake.c, which
 * is compared with real servers). Each thing that may come next is a choice. The parts: scenario.c (what each
 * owner wants), client.c (what stands in for the driver, and time), owners.c (what owners do), choice.c (what
 * may come next), check.c (what must be true), digest.c (when two worlds are the same), search.c (all choices),
 * main.c. All of a world lies in the arena. */
#ifndef ZKL_EXPLORE_WORLD_H
#define ZKL_EXPLORE_WORLD_H

#include "owners/owners.h"

#define CLIENTS 3
#define OWNERS 6 /* of all clients */
#define ROOTS 4  /* LEASES is one of them */
#define SESSIONS 8

/* Every interval of the core is a multiple of 100 ms then. The tick is not declared. */
#define TIMEOUT_MS 1600
#define LATE_MS (TIMEOUT_MS / 16)           /* D */
#define ROUND_MS (TIMEOUT_MS / 4)           /* P */
#define SILENCE_MS (TIMEOUT_MS * 2 / 3 + 1) /* after which libzookeeper gives a link up by itself */

extern const char *const root_paths[ROOTS];
#define LEASES 3
#define GATE "/gate"

/* --- scenarios ------------------------------------------------------------ */

/* What an owner wants. */
struct part {
    enum part_kind kind;
    int client;
    int cycles;
    int root; /* PART_MULTI: the first of count */
    int count;
    enum zkl_role role;
    int downgrade_from; /* 1 and the number of the owner whose write lock it downgrades; 0: none */
    bool try_only, try_sync, posted, watch_own, unlisted;
    int leases; /* a multiple of the scenario's lease; 0: none */
    enum zkl_request_kind query;
};

/* What may go wrong, in the order in which it is tried (meson.build says more of each): X(name, of what, in words, whether
 * it may come, what it does), of a client c, an owner o, a node, or the world w. */
#define FAULT_LIST(X)                                                                              \
    X(FAULT_MUTE, CLIENT, "answers are lost to client", is_well(c), mute(c))                       \
    X(FAULT_ALONE, CLIENT, "alone: the server of client", is_well(c), isolate(c, false))           \
    X(FAULT_DEPOSED, CLIENT, "deposed: the server of client", is_well(c), isolate(c, true))        \
    X(FAULT_DEAF, CLIENT, "deaf: client", !c->deaf, c->deaf = true)                                \
    X(FAULT_STARVE, CLIENT, "its timers stand still: client", !c->starved, c->starved = true)      \
    X(FAULT_REFUSE, CLIENT, "too busy for a request: the server of client",                        \
      client_is_served(c) && is_well(c), refuse(c))                                                \
    X(FAULT_KILL, CLIENT, "killed: client", true, client_kill(c))                                  \
    X(FAULT_RAISE, WORLD, "timeouts are raised from now on:", !w->raised, w->raised = true)        \
    X(FAULT_CANCEL, OWNER, "a lock request ends: owner", owner_may_stop(o), owner_is_stopped(o))   \
    X(FAULT_EXIT, OWNER, "exits: owner", may_exit(o), owner_exit(o))                               \
    X(FAULT_RENEW, OWNER, "renews: owner", owner_may_unlock(o) && o->part->leases,                 \
      owner_renews(o))                                                                             \
    X(FAULT_DELETE, NODE, "deleted by hand:", true, delete_node(w, node))                          \
    X(FAULT_WRITE, NODE, "written to:", true, fake_write(&w->fake, node, "note"))                  \
    X(FAULT_DENY, NODE, "denied to its owner:", !node->denied, w->denied = node->denied = true)    \
    X(FAULT_ANEW, ROOT, "made anew: the path", node && node->counter > 0, make_anew(w))
#define FIRST_OF(name, ...) name,
enum fault { FAULT_LIST(FIRST_OF) FAULTS };
#define BIT(fault) (1u << (fault))
#define USUAL                                                                                      \
    (BIT(FAULT_MUTE) | BIT(FAULT_DEAF) | BIT(FAULT_CANCEL) | BIT(FAULT_KILL) | BIT(FAULT_DELETE))

struct scenario {
    const char *name, *says;
    struct part parts[OWNERS];
    unsigned faults; /* which may come: a set of enum fault */
    bool rootless;   /* the paths are made on the way */
    bool unlinked;   /* the first link is on the way, too, and the first answer over it */
    bool scarce;     /* no memory for a transaction: one by one */
    bool unremoving; /* servers do not know how to remove watches */
    int32_t counter; /* of the paths' nodes at the beginning, */
    bool worn_first; /* or of the first one's alone */
    int handoffs_max, retain_ms;
    int permits;
    bool unsaid;  /* handles do not know the number of permits */
    bool grouped; /* creates and deletes wait for others while one is under way */
    int lease_ms;
};

extern const struct scenario scenarios[];
extern const size_t scenario_count;
const struct scenario *scenario_find(const char *name);

struct bounds {
    const struct scenario *scenario;
    int clients, faults;
    int delays; /* -1: any */
    int waits;  /* how often time moves while there is something else to be done */
};

/* --- the world ------------------------------------------------------------ */

struct client {
    struct zkl_core core;
    struct zkl_port port;
    struct world *world;
    struct fake_handle *current, *probe;
    struct zkl_bundle group;
    struct zkl_bundle_member members[MEMBERS];
    struct zkl_path paths[ROOTS], gate;
    struct zkl_semaphore_view view;
    struct zkl_local_queue local_queue;
    struct zkl_read_cache cache;
    atomic_llong fresh_until_boot;
    int tickets, guids;
    bool open_current, open_probe;
    bool dead;  /* it was killed */
    bool freed; /* its handles were: nothing more is wanted */
    bool muted, starved;
    bool deaf;    /* until its completion thread goes on: then the core hears all that has come */
    bool behind;  /* its server is, until the world settles without this */
    int sessions; /* it has had */
    int64_t muted_ms, alone_ms;
};

/* What the leader has surely heard of a session, and what some server may hold back from it yet. */
struct touches {
    int64_t session, last_ms;
    int64_t held_ms[16]; /* when the server took requests that it reports P + D later */
    int held;
    int64_t close_ms; /* it is off the queue, and ends then; 0: it is not */
};

struct world {
    struct fake_prng prng;
    struct fake fake;
    const struct bounds *bounds;
    struct client *clients;
    struct owner owners[OWNERS];
    struct place *places;
    int client_count, owner_count, place_count;
    struct touches touches[SESSIONS];
    int touches_count;
    int faults, delays, waits; /* what is left of the bounds */
    int last;                  /* whose turn it was */
    bool calm;                 /* no more faults */
    bool denied, raised;       /* these have been */
    int64_t last_token[ROOTS], last_writer[ROOTS], last_gate;
};

extern struct world *world; /* in the arena */

/* --- client.c ----------------------------------------------------------- */

/* All clients are there and connected, nobody has asked for anything. */
void world_begin(const struct bounds *bounds);
struct zkl_time now_of(const struct client *c);
struct zkl_time time_of(const struct world *w);
int64_t boot_of(const struct client *c, int64_t ms);
/* What follows by itself: clients hear answers and events, handles open, timers run. */
void world_settle(struct world *w);
bool client_is_linked(const struct client *c);
/* Could its server take the next request? */
bool client_is_served(const struct client *c);
void client_serve(struct client *c);
/* One of its handles. */
void client_connect(struct client *c, struct fake_handle *h, bool behind);
void client_break(struct client *c);
bool client_may_hear(const struct client *c);
void client_timer(struct client *c);
bool client_timer_is_due(const struct client *c);
void client_kill(struct client *c);
/* The next moment that is due; INT64_MAX: none. */
int64_t time_next_ms(const struct world *w);
/* Does a session expire then that its client could still come back to? */
bool time_may_be_late(const struct world *w, int64_t ms);
/* Moves time to that moment. late: a session that was given up ends as late as it may. */
void time_pass(struct world *w, int64_t ms, bool late);
struct touches *touches_of(struct world *w, int64_t session);

/* --- owners.c ----------------------------------------------------------- */

void owners_begin(struct world *w);
bool owner_may_start(const struct owner *o);
void owner_starts(struct owner *o);
bool owner_may_unlock(const struct owner *o);
void owner_is_stopped(struct owner *o);
void owner_renews(struct owner *o);
/* All of those who were answered go on. */
void world_run(struct world *w);
/* Nobody of this client wants anything any more. */
bool client_may_be_freed(const struct client *c);
void client_free(struct client *c);

/* --- check.c ------------------------------------------------------------ */

void check_world(struct world *w);
bool check_done(const struct world *w);

/* --- choice.c ----------------------------------------------------------- */

/* Likewise, of a client c or its owner o. */
#define ACT_LIST(X)                                                                                \
    X(ACT_START, OWNER, "begins", owner_may_start(o), owner_starts(o))                             \
    X(ACT_UNLOCK, OWNER, "unlocks", owner_may_unlock(o), owner_unlock(o))                          \
    X(ACT_FREE, CLIENT, "frees its handles", client_may_be_freed(c), client_free(c))               \
    X(ACT_SERVE, CLIENT, "its server takes the next request", client_is_served(c),                 \
      client_serve(c))                                                                             \
    X(ACT_HEAR, CLIENT, "hears", c->deaf &&client_may_hear(c), c->deaf = false)                    \
    X(ACT_TIMER, CLIENT, "runs its timer", (c->deaf || c->starved) && client_timer_is_due(c),      \
      client_timer(c))                                                                             \
    X(ACT_CONNECT, CLIENT, "connects", may_connect(c->current),                                    \
      client_connect(c, c->current, false))                                                        \
    X(ACT_LAG, CLIENT, "connects to a server that is behind",                                      \
      may_connect(c->current) && is_worth_lagging(c), client_connect(c, c->current, true))         \
    X(ACT_PROBE, CLIENT, "its second handle connects", may_connect(c->probe),                      \
      client_connect(c, c->probe, false))                                                          \
    X(ACT_BREAK, CLIENT, "its link breaks", client_is_linked(c) && !is_well(c), client_break(c))   \
    X(ACT_CATCH_UP, CLIENT, "its server catches up", c->behind, c->behind = false)                 \
    X(ACT_TIME, WORLD, "time passes", false, go_on(w, choice.what))                                \
    X(ACT_UNTIL, CLIENT, "is away until", false, wait_until(w, c, (enum until)choice.what))        \
    X(ACT_FAULT, WORLD, "FAULT", false, take_fault(w, (enum fault)choice.what, choice.client))
enum act { ACT_LIST(FIRST_OF) ACTS };

struct choice {
    unsigned char act, client, what, delay;
};
#define CHOICES 64

size_t choices_of(struct world *w, struct choice *list);
void choice_take(struct world *w, struct choice choice);
void choice_tell(const struct world *w, struct choice choice, char *text, size_t size);
/* Nothing goes on without time. */
bool world_is_quiet(const struct world *w);
/* Without faults, in one order: one step; false: nothing is left to be done. */
bool calm_step(struct world *w);

/* --- digest.c ----------------------------------------------------------- */

struct digest {
    uint64_t a, b;
};
uint64_t mix(uint64_t h, uint64_t value);
struct digest digest_of(const struct world *w);
/* What it is made of, to compare two: each with the line of digest.c that it comes from. Returns how many there
 * are. */
struct digest_word {
    int line;
    int64_t value;
};
size_t digest_words(const struct world *w, struct digest_word *list, size_t room);

/* --- for tests/owners ----------------------------------------------------- */

#define saying (say_to != NULL)
#define core_of(c) (&(c)->core)
#define client_sends(c, request) ((c)->current ? fake_send((c)->current, request) : ZKL_ANSWER_LINK)
#define client_is_gone(c) ((c)->dead)
#define client_hears(c) (!(c)->deaf && !(c)->muted)
#define timers_are_late(c) ((c)->deaf || (c)->starved)
#define may_be_denied(w) ((w)->denied)
#define may_fail(c, code) ((code) == ZKL_EACCES && (c)->world->denied)
#define counter_is_odd(w) ((w)->bounds->scenario->counter > 1000000)
#define is_troubled(w) ((w)->faults < (w)->bounds->faults || (w)->calm)
#define order_is_lost(o) ((o)->try_only)
#define has_roles(root) true
/* What does not come here, or needs not be noted. */
#define may_end_alive(c) false
#define data_was_lost(w) ((void)(w), false)
#define may_fail_for_permits(c, code) false
#define may_answer(w, answer) false
#define may_keep(place) false
#define note_news(c, place, news) ((void)0)
#define permits_were_granted(o) ((void)0)
#define reader_came_in(c) ((void)0)
#define readers_node_opened(c) ((void)0)
#define is_of_a_transaction(c, m) ((c)->core.group_commit.from > 0)
#define contender_moved(c, m, from, numbered, member) ((void)0)
#define machine_moved(c, trace) ((void)0)
#define link_is_late(c, h, type) false
#define reply_comes(c, message) ((void)0)
#define unlock_was_noted(w, unlocked, code) ((void)(w))

struct fake_handle *handle_opens(struct client *c);
void handle_goes(struct client *c, struct fake_handle *h);
void client_draws(struct client *c, unsigned char bytes[16]);

/* A session that some client has now. */
static inline bool must_be_gone(const struct world *w, int64_t session)
{
    bool owned = false;
    for (int i = 0; i < w->client_count; i++) {
        const struct client *c = &w->clients[i];
        owned = owned || (!c->dead && c->current && c->current->session == session);
    }
    return owned;
}

#endif
