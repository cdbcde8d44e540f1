/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of test-stress share: the memory that all its processes see, the players, the clients
 * that come and go, and the way in which a player makes a call: it names, watches and judges it by what
 * the header says. */
#ifndef ZKFAULT_STRESS_H
#define ZKFAULT_STRESS_H

#include "fault.h"

#include "chance.h"
#include "sanitizer.h"
#include "witness.h"

#include <zklock/async.h>
#include <zklock/inspect.h>
#include <zklock/guard.h>
#include <zklock/metrics.h>

#include "goods.h"

#define STRESS_TOP "/stress"
#define PROCESSES 3
#define PLAYERS 5 /* threads of each process */
#define FIBERS 4  /* operations under way, of each */
#define HANG_MS 300000
#define PATIENT_MS 30000
#define NS_MS INT64_C(1000000)

/* --- the memory that all processes share ------------------------------------------------------ */

enum place {
    AT_PLAIN,
    AT_POSTED,
    AT_HANDED,
    AT_RETAINED,
    AT_BROKEN, /* other clients ask holders here to release, or delete their nodes */
    AT_KAZOO,
    AT_NAMED,
    AT_ONE, /* of zkl_semaphore_mutex_new */
    AT_HALVES,
    AT_FOUR, /* a semaphore of four permits */
    AT_MANY, /* one whose number changes, from two to three */
    PLACES
};

extern const char *const place_path[PLACES];
int place_room(enum place at); /* how many may be inside; readers count as none */

#define CODES 40

struct world {
    char proxied[64], direct[64];
    int port; /* of the server */
    uint64_t seed;
    atomic_bool go, stop;
    atomic_int odd; /* violations */
    atomic_int called[CALLED_COUNT];
    atomic_long acted, granted, lost;
    atomic_int codes[CODES]; /* how often calls returned each */
    struct witness witness;
};

extern struct world *world;

int world_make(void); /* its descriptor, to be inherited; -1 */
bool world_attach(int fd);

size_t visit_enter(enum place at, bool reads, uint64_t token);
void visit_leave(size_t visit);
/* Which codes of unlock exclude that another contender was inside. */
enum trust {
    TRUST_NOTHING,   /* unlock trusts the window, which a test may have made wrong */
    TRUST_SERVER,    /* 0: the node was there until it was deleted */
    TRUST_THE_WINDOW /* ZKL_EUNCONFIRMED too */
};
void visit_unlocked(size_t visit, int rc, enum trust trust);
struct sentence world_judge(void);

/* --- calls ------------------------------------------------------------------------------------ */

struct player {
    pthread_t thread;
    int process, number;
    uint64_t chance;
    bool patient;               /* waits long enough to get what it waits for */
    _Atomic(const char *) call; /* NULL: none now */
    atomic_llong since_ms;
    struct fiber *fibers;
    uint64_t old_op; /* of one that has ended, of this client */
    const struct station *old_station;
    int old_opened;
};

#define MAY(code) (UINT64_C(1) << -(code))
#define MAY_0 UINT64_C(1)
/* Of waits, once a client may be closed at any moment. */
#define MAY_WAIT (MAY_0 | MAY(ZKL_ETIMEDOUT) | MAY(ZKL_ECLOSED))
#define MAY_TRY                                                                                    \
    (MAY_0 | MAY(ZKL_EBUSY) | MAY(ZKL_EDISCONNECTED) | MAY(ZKL_EUNPROVED) | MAY(ZKL_ECLOSED))
#define MAY_UNLOCK (MAY_0 | MAY(ZKL_EUNCONFIRMED) | MAY(ZKL_EDOUBT) | MAY(ZKL_ELOST))
#define MAY_ASK (MAY_0 | MAY(ZKL_ETIMEDOUT) | MAY(ZKL_EDISCONNECTED) | MAY(ZKL_ECLOSED))
#define MAY_CHECK (MAY_0 | MAY(ZKL_ENOTOWNER) | MAY(ZKL_ELOST) | MAY(ZKL_EUNPROVED))
/* Above 0 too. */
#define MAY_COUNT (UINT64_C(1) << 63)

void calling(struct player *p, const char *call);
/* Judge the result, and return it. p NULL: in a callback. */
long long said(struct player *p, const char *call, long long rc, uint64_t may);
#define CALL(p, call, may) said(p, #call, (calling(p, #call), (long long)(call)), may)
#define CALLED_BACK(call, may) said(NULL, #call, (long long)(call), may)
/* Report a violation. */
void odd(struct player *p, const char *what);
/* In each process one thread looks for hanging calls, and for operations that don't end. */
void watch_players(struct player *players, size_t n);
void watch_end(void);

/* --- clients ---------------------------------------------------------------------------------- */

enum station_kind { PROXIED, STRUCK, LOOP, STATIONS };

#define SEATS 13
#define MULTIS 2

/* A mutex handle, and where it leads. */
struct seat {
    struct zkl_mutex *mutex;
    enum place at;
    bool reads;
    bool weak; /* its unlock says 0 by the window alone */
};

/* A client and handles of each kind. Any player may close it; the last one that leaves it frees it, and
 * makes it anew. */
struct station {
    enum station_kind kind;
    pthread_mutex_t mu;
    int users; /* under mu, as the next two */
    bool closing, gone;
    struct zkl_client *client;
    int opened; /* how often */
    struct seat seats[SEATS];
    struct zkl_rwlock *rwlock;
    struct zkl_mutex *one;
    struct zkl_semaphore *four, *many;
    struct zkl_multi *multi[MULTIS];
    size_t members[MULTIS];
    struct seat member[MULTIS][4]; /* mutex NULL: one permit */
    struct completion closed;      /* of an asynchronous close */
    bool close_begun;
    atomic_long told;
};

extern struct station stations[STATIONS];

/* Here the test ends sessions or deletes nodes, which the window does not show. */
enum trust station_trust(const struct station *s, const struct seat *seat);
void station_open(struct player *p, struct station *s);
struct station *station_take(struct player *p); /* NULL: that one is being closed */
bool station_enter(struct station *s, bool also_closing);
void station_leave(struct player *p, struct station *s);
void station_close(struct player *p, struct station *s, int variant);
void station_strike(struct player *p, struct station *s); /* end its session */
/* The last of its users: nothing may be left in it. */
void station_end(struct player *p, struct station *s);
void *station_loop(void *player); /* dispatches what the one of kind LOOP has, until */
extern atomic_bool loop_stop;

/* --- what players do -------------------------------------------------------------------------- */

struct act {
    const char *name;
    void (*fn)(struct player *p, struct station *s, int variant);
    int variants, weight;
};

int64_t soon_ns(struct player *p);           /* a deadline */
int64_t soon_ms(struct player *p);           /* a timeout */
struct zkl_wait some_wait(struct player *p); /* until then, by a lease now and then */
void linger(struct player *p);
struct seat *any_seat(struct player *p, struct station *s);
/* All the questions about what the caller holds. */
void ask_about(struct player *p, struct station *s, struct zkl_mutex *mutex);
void ask_permit(struct player *p, struct zkl_permit *permit);

void act_mutex(struct player *p, struct station *s, int variant);
void act_halves(struct player *p, struct station *s, int variant);
void act_permits(struct player *p, struct station *s, int variant);
void act_multi(struct player *p, struct station *s, int variant);
void act_owner(struct player *p, struct station *s, int variant);
void act_cancel(struct player *p, struct station *s, int variant);
void act_look(struct player *p, struct station *s, int variant);
void act_figures(struct player *p, struct station *s, int variant);
void act_wrong(struct player *p, struct station *s, int variant);
void act_client(struct player *p, struct station *s, int variant);
void act_close(struct player *p, struct station *s, int variant);
void act_strike(struct player *p, struct station *s, int variant);
void act_fork(struct player *p, struct station *s, int variant);
void act_fiber(struct player *p, struct station *s, int variant);

extern const struct act acts[];
extern const size_t acts_count;

/* --- operations ------------------------------------------------------------------------------- */

#define FIBER_VARIANTS 10

void fibers_make(struct player *p);
void fibers_reap(struct player *p); /* what has ended, and what a thread must end */
void fibers_end(struct player *p);  /* wait for all */
bool fibers_idle(const struct player *p);
/* What an operation does that takes too long; or NULL. */
const char *fibers_hang(struct player *p, int64_t now_ms);

#endif
