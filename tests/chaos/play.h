/* SPDX-License-Identifier: Apache-2.0 */
/* A client process of the chaos, which is one of the crowd's peers, and what its workers have in hand. */
#ifndef ZKCHAOS_PLAY_H
#define ZKCHAOS_PLAY_H

#include "peer.h"
#include "shared.h"

struct client {
    struct shared *shared;
    int fd; /* of the journal */
    int number;
    struct process *process;
};

struct player {
    struct worker *worker; /* the crowd's */
    struct client *client;
    struct shared *shared;
    struct seat *seat;
    int number; /* its seat's */
    enum role role;
    uint64_t chance;
    struct handle *single; /* of a semaphore's mutex: its holds are the handle's */
};

/* One thing of its role, from asking to giving back. True if something was granted. */
bool role_play(struct player *w);

/* --- what is in hand ---------------------------------------------------------------------------- */

/* What one call got. */
struct granted {
    struct player *w;
    struct handle *handle;
    const struct handle
        *as; /* the same, except of one that does not lock: what it should have locked */
    struct held held;
    int count;
    int slots[CHAOS_SLOTS]; /* its holds in the seat */
};

void count_in(struct player *w, enum tally tally);
/* The call begins, returns its time; it is over. */
int64_t call_begin(struct player *w);
void call_end(struct player *w);
void call_odd(struct player *w, const char *what, int rc);

/* The code of the call; if that is 0, it has holds. */
int granted_take(struct granted *h, struct player *w, struct handle *handle,
                 const struct zkl_wait *wait);
struct record *granted_hold(const struct granted *h, int i);
/* Look at the window, write to what the lock protects, take some time; a few times over. */
void granted_work(struct granted *h, int most_ms);
/* Once. False: not proved now. */
bool granted_use(struct granted *h);
/* zkl_mutex_renew: its end may come sooner than the windows said that were read. */
int granted_renew(struct granted *h, int lease_ms);
/* Give all back. */
void granted_leave(struct granted *h);

#endif
