/* SPDX-License-Identifier: Apache-2.0
 * One schedule: some processes, each the real core with its owners, on one ensemble in memory. The
 * parts: process.c (the driver's substitute), owners.c (when owners act), permits.c, readers.c,
 * queries.c, faults.c (faults), check.c (what must be true all the time), schedule.c (one seed from
 * begin to end), tally.c (counts of trials), main.c. What owners do is in tests/owners. */
#ifndef ZKL_SIM_WORLD_H
#define ZKL_SIM_WORLD_H

#include "owners/owners.h"
#include "tally.h"

#define CLIENTS 3
#define ROOTS 3
#define RW_ROOT 1              /* a read-write lock is there, at the others a mutex */
#define LOCAL_QUEUE_ROOT ROOTS /* only for threads that take turns */
#define LEASES (ROOTS + 1)
#define LOCKERS 4             /* the first owners of a process */
#define ASKS 2                /* the last ones, who take permits */
#define OWNERS_EACH 15        /* of a process, */
#define PLACES_EACH 26        /* and what they queue with */
#define LOCAL_QUEUE_ONCE_IN 3 /* schedules */
#define READERS_ONCE_IN 8     /* not a multiple of the others */
#define SAYS_NO_ONCE_IN 5
#define FOREIGN_ONCE_IN 11
#define LONELY_ONCE_IN 7        /* not a multiple of the above */
#define MANY_WRITERS_ONCE_IN 11 /* likewise */
#define IN_ROWS_ONCE_IN 13
#define READS_AHEAD_ONCE_IN 4
#define RESUMES_NONE_ONCE_IN 13
#define FEW_NODES_ONCE_IN 11
#define FULL_ONCE_IN 4
#define CHAOS_STEPS 500
#define HEAL_MS 60000 /* after which every owner must have got through; */
#define RAISE_MS 4000 /* likewise, if there are permits for it, which come then */

#define QUESTIONS 3
#define LIMITS_KEPT 64

struct question {
    struct zkl_query query; /* first */
    struct client *client;
    bool out;
    char path[ZKL_PATH_MAX + ZKL_NODE_NAME_MAX + 2];
    int64_t until_ms;
};

/* A process: a core, its handles, its owners. */
struct client {
    struct zkl_core core;
    struct zkl_port port;
    struct world *world;
    struct fake_handle *current, *probe;
    struct owner *owners; /* OWNERS_EACH of the world's, */
    struct place *places; /* and PLACES_EACH */
    struct permits asks[ASKS];
    struct zkl_bundle group;
    struct zkl_bundle_member members[ROOTS];
    struct zkl_semaphore_view view; /* its handle's */
    struct zkl_path paths[LEASES + 1], gate;
    struct question questions[QUESTIONS];
    struct zkl_local_queue local_queue;
    int tickets;
    struct zkl_read_cache cache;
    atomic_llong fresh_until_boot;
    uint64_t links; /* a number for each link of the current handle */
    /* Of lists of the readers' path with a watch: the last that was asked for, and the last that came. */
    uint64_t list_id, list_link;
    int64_t list_sent_ms, listed_ms, opened_ms;
    int64_t asleep_until_ms;
    int64_t deaf_until_ms; /* its completion thread stands still */
    int64_t suspended_ms;  /* how much CLOCK_MONOTONIC lost while the machine slept */
    int64_t dead_until_ms; /* another process begins then */
    int64_t alone_ms;      /* since when its server is cut off from the others */
    bool dozes;            /* its links are none the worse for that */
    bool quiet; /* its owners want nothing new while its server is alone, which answers reads so */
    bool cut_soon; /* something is under way whose answer had better be lost now and then */
    bool dead;     /* it was killed */
    bool closed, refused, open_current, open_probe;
    /* When it last could not prove its session: nothing to check, or no link. */
    int64_t unproved_ms;
    int64_t window_end_boot; /* of its session, after its last step */
    int64_t opened_boot_ns;  /* when the newest handle that replaced another was opened */
    int64_t spin_ms;
    int spins;
};

struct world {
    uint64_t seed;
    struct fake_prng prng;
    struct fake fake;
    struct client clients[CLIENTS];
    struct owner owners[CLIENTS * OWNERS_EACH];
    struct place places[CLIENTS * PLACES_EACH];
    int client_count, owner_count, place_count;
    struct tally *tally;
    int step; /* of chaos, then their number */
    size_t core_steps;
    int64_t last_token[ROOTS + 1], last_writer[ROOTS + 1];
    int64_t rates[CLIENTS]; /* of clocks, in ns per ms more than the servers' */
    bool late_answers;      /* completion threads may stand still */
    bool healing, calm, out_of_memory, wiped, strangers, foreign_seen, fault_seen;
    bool says_no;            /* servers would not do this and that */
    bool denied;             /* some node was, to its owner's heartbeats */
    bool counter_moved;      /* some root's, to its end */
    bool few_watches;        /* a client may have */
    bool few_nodes;          /* a session may own */
    bool elected;            /* a new leader was, at least once */
    unsigned pace;           /* how fast time passes: the usual step */
    int64_t outage_until_ms; /* no server can be reached */
    unsigned fault_rate;     /* the smaller, the more faults */
    bool semaphores, mismatch, limit_changes;
    bool full; /* strangers hold all permits, until there are more in the end */
    bool local_queue;
    bool readers;      /* some threads of a process read in one node */
    bool lonely;       /* each process mostly locks at a path of its own, */
    bool grouped;      /* or the first one at three, whose creates and deletes go together */
    bool many_writers; /* most locks are write locks, and downgraded: that is rare otherwise */
    bool in_rows;      /* lonely ones, with all their threads together */
    int local_queue_root;
    /* The numbers of permits that there were, and from when on; the last ones. */
    struct {
        int64_t zxid;
        int number;
    } limits[LIMITS_KEPT];
    size_t limit_count;
    int64_t last_gate;
};

extern const char *const root_paths[LEASES + 1];
#define SIM_SEMAPHORE "/s"
#define GATE SIM_SEMAPHORE "/locks"
#define SIM_LEASES SIM_SEMAPHORE "/leases"

unsigned rnd(struct world *w, unsigned n);
bool chance(struct world *w, unsigned n);
void happened(struct world *w, enum sim_fault fault);

/* --- schedule.c --------------------------------------------------------- */

/* One seed, without the steps of chaos for which skip is set (NULL: with all). Does not return if
 * something is wrong. */
void schedule_run(uint64_t seed, const bool *skip, struct tally *tally);
/* For all schedules: enum fake_switch, as bits. */
extern uint64_t schedule_broken;
/* For a fuzzer: how long chaos is, and a byte for each step, by which it draws (NULL: by the seed alone). */
extern int schedule_steps;
extern const unsigned char *schedule_bytes;
/* Of the schedule that runs now, also when it went wrong. */
int schedule_step(void);

/* --- process.c ---------------------------------------------------------- */

void proc_init(struct world *w, struct client *p);
/* The core, for an entry point: each is a step. */
struct zkl_core *core_of(struct client *p);
struct zkl_time now_of(const struct client *p);
bool proc_is_awake(const struct client *p);
/* Do its owners begin something new now and then? */
bool proc_is_lively(const struct client *p);
/* Something of it runs; true: something was done. */
bool proc_step(struct client *p);
void proc_close(struct client *p);
/* The whole process ends in one moment, and its session is left behind; another process begins in
 * its place at dead_until_ms. */
void proc_kill(struct client *p);
void proc_fini(struct client *p);

/* --- what owners do ------------------------------------------------------- */

void owners_init(struct client *p);
/* They begin something, give up, or end it. */
void owners_step(struct client *p);
bool owners_done(const struct client *p);

/* The semaphore as this world begins: existing, made by a stranger, or not existing. */
void permits_init(struct world *w);
/* A stranger changes the number, or the server removes empty containers. */
void permits_interfere(struct world *w);
/* From now on there are more than all want. */
void permits_raise(struct world *w);
/* After each step: what stands there now. */
void permits_note_limit(struct world *w);
/* Before a list of the leases is taken, which was made then. */
void permits_note_list(struct client *p, int64_t zxid);

void queries_run(struct client *p);
void queries_check(const struct client *p);
/* Those that are not answered yet. */
size_t queries_out(const struct client *p);

void readers_sent(struct client *p, const struct zkl_request *request);
void readers_answered(struct client *p, const struct zkl_reply *reply);

/* --- faults.c ----------------------------------------------------------- */

void faults_maybe(struct world *w);
/* A link that does not work is noticed in time. */
void faults_notice(struct client *p);
/* Links come back, followers catch up. */
void faults_mend(struct client *p);

/* --- check.c ------------------------------------------------------------ */

void check_begin(struct world *w);
/* A handle is opened. */
void check_opening(struct client *p);
void check_process(struct client *p);
void check_world(struct world *w);
bool check_done(const struct world *w);
/* Print who has not got through, and give up. */
void check_complain(struct world *w) __attribute__((noreturn));

/* --- for tests/owners ----------------------------------------------------- */

#define saying true
#define handle_opens(c) fake_open(&(c)->world->fake)
#define handle_goes(c, h) ((void)(c))
#define machine_moved(c, trace)                                                                    \
    ((c)->world->tally->moves[(trace)->kind][(trace)->from][(trace)->to]++)
#define client_is_gone(c) ((c)->dead || (c)->closed)
#define timers_are_late(c) (!(c)->world->calm || !proc_is_awake(c))
#define may_end_alive(c) ((c)->world->elected || (c)->refused || (c)->world->fake.resumes_none)
#define is_troubled(w) ((w)->fault_seen || (w)->fake.resumes_none) /* which hangs up by itself */
#define order_is_lost(o) ((o)->client->world->strangers || (o)->client->world->wiped)
#define client_hears(c) true /* or the core hears in time what it has to know */
#define data_was_lost(w) ((w)->wiped)
#define counter_is_odd(w) ((w)->counter_moved)
#define must_be_gone(w, session) true
#define has_roles(root) ((root) == RW_ROOT)

int64_t boot_of(const struct client *c, int64_t ms);
bool is_of_a_transaction(const struct client *c, const struct zkl_contender_machine *m);
enum zkl_answer client_sends(struct client *c, const struct zkl_request *request);
void client_draws(struct client *c, unsigned char bytes[16]);
void contender_moved(struct client *c, const struct zkl_contender_machine *m,
                     enum zkl_contender_state from, bool numbered, bool member);
bool link_is_late(struct client *c, const struct fake_handle *h, int type);
void reply_comes(struct client *c, const struct fake_message *message);
bool may_answer(const struct world *w, enum zkl_answer answer);
/* May a contender that waits for a proof with its node be notified that it is denied? */
bool may_be_denied(const struct world *w);
bool may_fail(const struct client *c, int code);
bool may_fail_for_permits(const struct client *c, int code);
void note_news(struct client *c, struct place *place, const struct zkl_notification *news);
void permits_were_granted(struct owner *o);
void reader_came_in(struct client *c);
void readers_node_opened(struct client *c);

static inline bool may_keep(struct place *place)
{
    const struct world *w = place->client->world;
    return w->local_queue && place->root == w->local_queue_root && place_keep(place);
}

static inline void unlock_was_noted(struct world *w, const struct unlocked *unlocked, int code)
{
    if (unlocked->gone)
        happened(w, SIM_GONE_AT_UNLOCK);
    if (code == ZKL_EDOUBT)
        happened(w, SIM_DOUBTED);
}

#endif
