/* SPDX-License-Identifier: Apache-2.0 */
/* Shows which members are inside, without the library: a word in memory that all processes of a
 * test share. Make it before the first fork. */
#ifndef ZKFAULT_CONTENDERS_H
#define ZKFAULT_CONTENDERS_H

#include "fault.h"
#include "room.h"

#define CONTENDERS_MAX 16

struct turnstile {
    struct room room;     /* the members inside, by their number */
    atomic_int overlaps;  /* a member came in while another one was inside */
    atomic_int stale;     /* a member came in with a token not above all before */
    atomic_int odd;       /* the first code that no call may return here */
    atomic_int here;      /* members whose client is open */
    atomic_int asking;    /* of these: that have begun */
    atomic_int done;      /* members that are through */
    atomic_bool go, stop; /* begin; end early */
    atomic_long entries[CONTENDERS_MAX + 1]; /* of each member: 1 to CREW_MEMBERS */
};

struct turnstile *turnstile_new(void);
/* Nothing was odd; and free it. */
void turnstile_end(struct turnstile *w);

void turnstile_enter(struct turnstile *w, int member, uint64_t token);
void turnstile_leave(struct turnstile *w, int member);
void turnstile_odd(struct turnstile *w, int code);
long turnstile_sum(const struct turnstile *w);

/* Lock, enter, leave, unlock, in as many rounds; ends early with stop, or after an odd code. A hold
 * whose window is empty does not enter: another contender may hold the lock. Codes that a lost link
 * or session excuses are not odd with lossy. For any thread of any process. */
void turnstile_rounds(struct turnstile *w, int member, struct zkl_mutex *mutex, int rounds,
                      bool lossy);

/* What members are told. They wait until go is set. */
struct contenders {
    struct turnstile *turnstile;
    const char *servers, *path;
    int session_ms, rounds;
    bool lossy;
};

/* Actors of one client, with the numbers from first on; contenders stays valid. */
void contenders_begin(const struct contenders *contenders, int first, int actors);
/* A process with a client of its own. Its pid. */
int contenders_fork(const struct contenders *contenders, int member);
/* True if it ended well. Waits for it at most ms, then kills it. */
bool contenders_wait(int pid, int ms);

#endif
