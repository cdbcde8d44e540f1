/* SPDX-License-Identifier: Apache-2.0 */
/* A client process of the chaos, which is one of the crowd's peers, and what its workers have in hand. */
#ifndef ZKCHAOS_PLAY_H
#define ZKCHAOS_PLAY_H

#include <stdio.h>

#include <zklock/zklock.h>

#include "shared.h"

struct client {
    struct shared *shared;
    int fd; /* of the journal */
    int number;
    struct process *process;
    FILE *log; /* or NULL */
    struct zkl_client *client;
    /* Those that "new" made, by the names of their places: */
    struct zkl_mutex *mutex[PLACES]; /* of the places that are mutexes */
    struct zkl_rwlock *rwlock;
    struct zkl_semaphore *semaphore;
};

struct player {
    struct client *client;
    struct shared *shared;
    struct seat *seat;
    int number; /* its seat's */
    enum role role;
    uint64_t chance;
    struct zkl_mutex *single; /* of a semaphore's mutex: its holds are the handle's */
};

/* Its readers share a node, which stays. */
bool client_caches(const struct client *c);

/* One thing of its role, from asking to giving back. True if something was granted. */
bool role_play(struct player *w);

/* --- what is in hand ---------------------------------------------------------------------------- */

/* What one call got: a mutex, a multi-lock, or permits. */
struct granted {
    struct player *w;
    struct zkl_mutex *mutex;
    struct zkl_multi *multi;
    struct zkl_permit *permits[2];
    int count;
    int slots[CHAOS_SLOTS];      /* its holds in the seat */
    size_t members[CHAOS_SLOTS]; /* of a multi-lock */
};

void count_in(struct player *w, enum tally tally);
/* The call begins, returns its time; it is over. */
int64_t call_begin(struct player *w);
void call_end(struct player *w);
void call_odd(struct player *w, const char *what, int rc);

/* What a call asks for. */
struct wish {
    enum place place;
    enum access access;
};

/* call_begin and call_end of a call that acquires, and its record for tests/linear. The grants: one for
 * each wish. */
int64_t ask_begin(struct player *w, const struct zkl_wait *wait, const struct wish *wishes,
                  int count);
void ask_end(struct player *w, int rc, const struct zkl_grant *grants, int count);

/* One hold more, granted now; alone: a write lock too. */
struct record *granted_add(struct granted *h, enum place place, enum access access,
                           int64_t asked_ns, uint64_t token);
/* Look at the window, write to what the lock protects, take some time; a few times over. */
void granted_work(struct granted *h, int most_ms);
/* Once. False: not proved now. */
bool granted_use(struct granted *h);
/* zkl_mutex_renew: its end may come sooner than the windows said that were read. */
int granted_renew(struct granted *h, int lease_ms);
/* Give all back. */
void granted_leave(struct granted *h);
/* The write of somebody who did not look. */
void granted_write_late(struct granted *h);

#endif
