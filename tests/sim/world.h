/* SPDX-License-Identifier: Apache-2.0
 * One schedule: some processes, each the real core with its owners, on one ensemble in memory. The
 * parts: process.c (the driver's substitute), locks.c, group.c, permits.c, queries.c, local_queue.c
 * (actions of owners), faults.c (faults), check.c (what must be true all the time), schedule.c (one
 * seed from begin to end), tally.c (counts of trials), main.c. */
#ifndef ZKL_SIM_WORLD_H
#define ZKL_SIM_WORLD_H

#include <zklock/zklock.h>

#include "owners/owners.h"
#include "tally.h"

#define CLIENTS 3
#define APPS 4
#define ROOTS 3
#define RW_ROOT 1              /* a read-write lock is there, at the others a mutex */
#define LOCAL_QUEUE_ROOT ROOTS /* only for threads that take turns */
#define GUESTS 4               /* threads that take turns */
#define PLACES 7               /* which they queue with */
#define LOCAL_QUEUE_ONCE_IN 3  /* schedules */
#define SITTERS 4              /* threads that read in one node */
#define READER_PLACES 6        /* which they queue with */
#define READERS_ONCE_IN 8      /* schedules; not a multiple of the others */
#define SAYS_NO_ONCE_IN 5
#define FOREIGN_ONCE_IN 11
#define LONELY_ONCE_IN 7        /* not a multiple of the above */
#define MANY_WRITERS_ONCE_IN 11 /* likewise */
#define IN_ROWS_ONCE_IN 13
#define READS_AHEAD_ONCE_IN 4
#define RESUMES_NONE_ONCE_IN 13
#define FEW_NODES_ONCE_IN 11
/* Behind the apps proper the members of the process's multi-lock, by root, and then the places: of those who take
 * turns, and of readers. */
#define ALL_APPS (APPS + ROOTS + PLACES + READER_PLACES)
#define CHAOS_STEPS 500
#define HEAL_MS 60000 /* after which every owner must have got through */

/* What owns a contender: the contender is its first member. */
struct place {
    struct zkl_contender contender;
    struct client *client;
    enum phase phase;
    int root;
    bool in_core, try_only, lost, suspect, revoked, permit;
    struct place *writer;                /* a reader's that has the write lock already */
    char writer_guid[ZKL_GUID_LEN + 1];  /* its node's */
    char deleted_guid[ZKL_GUID_LEN + 1]; /* by a stranger: no exclusion is promised for it */
    char grouped_guid[ZKL_GUID_LEN + 1]; /* of a node that was made in a transaction */
    int64_t session;                     /* of its grant */
    int64_t
        told_until_boot; /* the window that its owner could see before the loss; 0: not lost so */
    struct unlocked unlocked;
    int stop_code;
    int64_t until_ms;    /* the owner's plan: give up or unlock then */
    bool kept;           /* a multi-lock's member's: it is a place until it is given up */
    struct guest *guest; /* a place's: the thread that has it, or waits with it */
    unsigned handed;     /* how often while others queued */
};

/* A thread that takes turns. */
struct guest {
    struct zkl_local_waiter turn; /* first */
    struct client *client;
    enum phase phase; /* IDLE, WAITING or GRANTED */
    struct place *place;
    int64_t ticket; /* the order in which they must get it */
    int stop_code;
    int64_t until_ms;
};

/* A thread that reads: in a node of its own (GRANTED), or INSIDE that of all. */
struct sitter {
    struct client *client;
    enum phase phase; /* IDLE, WAITING, GRANTED or INSIDE */
    struct place *place;
    int64_t until_ms;
};

#define ASKS 2
#define AT_ONCE_MAX 3

/* What owns a permit's contender, its first member. */
struct permit {
    struct zkl_contender contender;
    bool in_core, lost, suspect, released;
    char deleted_guid[ZKL_GUID_LEN + 1];
    struct unlocked unlocked;
};

/* An owner that acquires some permits together. */
struct ask {
    struct zkl_bundle bundle; /* first */
    struct client *client;
    enum phase phase;
    struct permit list[AT_ONCE_MAX];
    struct zkl_contender gate;
    struct zkl_bundle_member members[1 + AT_ONCE_MAX]; /* the gate, and the list */
    bool over;                                         /* the core is done with the request */
    int64_t listed_zxid; /* of the last list of leases that came while one was undecided */
    int stop_code;
    int64_t until_ms;
};

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
    struct place *apps; /* ALL_APPS of the world's places */
    struct zkl_bundle group;
    struct zkl_bundle_member members[ROOTS];
    int64_t group_until_ms;
    struct ask asks[ASKS];
    struct zkl_semaphore_view view; /* its handle's */
    struct zkl_path paths[ROOTS + 1], gate, leases;
    struct question questions[QUESTIONS];
    struct zkl_local_queue local_queue;
    struct guest guests[GUESTS];
    int64_t tickets;
    struct zkl_read_cache cache;
    struct sitter sitters[SITTERS];
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
    struct place places[CLIENTS * ALL_APPS];
    int client_count, place_count;
    struct tally *tally;
    int step; /* of chaos, then CHAOS_STEPS */
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

extern const char *const root_paths[ROOTS + 1];
#define SIM_SEMAPHORE "/s"
#define SIM_GATE SIM_SEMAPHORE "/locks"
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
/* Of the schedule that runs now, also when it went wrong. */
int schedule_step(void);

/* --- process.c ---------------------------------------------------------- */

void proc_init(struct world *w, struct client *p);
/* The core, for an entry point: each is a step. */
struct zkl_core *core_of(struct client *p);
struct zkl_time now_of(const struct client *p);
int name_of(const struct client *p);
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

void locks_notification(struct place *app, const struct zkl_notification *news);
void locks_run(struct client *p);
void app_end_hold(struct place *app);

struct place *member_app(struct client *p, size_t i);
bool app_is_member(const struct place *app);
void group_run(struct client *p);

/* The semaphore as this world begins: existing, made by a stranger, or not existing. */
void permits_init(struct world *w);
bool permits_is_one(const struct zkl_contender *contender);
void permits_notification(struct client *p, struct zkl_contender *contender,
                          const struct zkl_notification *news);
void permits_run(struct client *p);
void permits_note_deletion(struct world *w, const char *path);
/* A stranger changes the number, or the server removes empty containers. */
void permits_interfere(struct world *w);
bool permits_done(const struct client *p);
/* How many of the request are out, as far as can be proved now. */
int permits_out(const struct client *p, const struct ask *ask);
/* After each step: what stands there now. */
void permits_note_limit(struct world *w);
/* Before a list of the leases is taken, which was made then. */
void permits_note_list(struct client *p, int64_t zxid);

void queries_run(struct client *p);
void queries_check(const struct client *p);
/* Those that are not answered yet. */
size_t queries_out(const struct client *p);

void local_queue_init(struct client *p);
bool app_is_place(const struct place *app);
/* Its member of the multi-lock is unlocked; true: the node stays, for threads that take turns. */
bool local_queue_keep(struct place *member);
/* Of a place. */
void local_queue_notification(struct place *place, const struct zkl_notification *news);
void local_queue_run(struct client *p);
bool local_queue_done(const struct client *p);

void readers_init(struct client *p);
bool app_is_reader_place(const struct place *app);
void readers_notification(struct place *place, const struct zkl_notification *news);
void readers_sent(struct client *p, const struct zkl_request *request);
void readers_answered(struct client *p, const struct zkl_reply *reply);
void readers_run(struct client *p);
void readers_make_room(struct client *p);
bool readers_done(const struct client *p);

/* --- faults.c ----------------------------------------------------------- */

void faults_maybe(struct world *w);
/* A link that does not work is noticed in time. */
void faults_notice(struct client *p);
/* Links come back, followers catch up. */
void faults_mend(struct client *p);

/* --- check.c ------------------------------------------------------------ */

/* May a contender that waits for a proof with its node be notified that it is denied? */
bool may_be_denied(const struct world *w);
/* Is it what a server said that would not do something? */
bool may_be_refused(const struct world *w, int code);
void check_begin(struct world *w);
/* A handle is opened. */
void check_opening(struct client *p);
void check_process(struct client *p);
void check_world(struct world *w);
bool check_done(const struct world *w);
/* Print who has not got through, and give up. */
void check_complain(struct world *w) __attribute__((noreturn));

/* --- for tests/owners ----------------------------------------------------- */

static inline bool client_is_gone(const struct client *c)
{
    return c->dead || c->closed;
}

static inline bool client_hears(const struct client *c)
{
    (void)c;
    return true; /* or the core hears in time what it has to know */
}

static inline bool timers_are_late(const struct client *c)
{
    return !c->world->calm || !proc_is_awake(c);
}

/* May its session be given up before it has ended? */
static inline bool may_end_alive(const struct client *c)
{
    return c->world->elected || c->refused || c->world->fake.resumes_none;
}

static inline bool data_was_lost(const struct world *w)
{
    return w->wiped;
}

static inline bool counter_is_odd(const struct world *w)
{
    return w->counter_moved;
}

static inline bool must_be_gone(const struct world *w, int64_t session)
{
    (void)w, (void)session;
    return true;
}

static inline bool place_is_taken(const struct place *place)
{
    return place->guest != NULL;
}

static inline void unlock_was_noted(struct world *w, const struct unlocked *unlocked, int code)
{
    if (unlocked->gone)
        happened(w, SIM_GONE_AT_UNLOCK);
    if (code == ZKL_EDOUBT)
        happened(w, SIM_DOUBTED);
}

#endif
