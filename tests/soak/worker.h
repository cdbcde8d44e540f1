/* SPDX-License-Identifier: Apache-2.0 */
/* One process of the soak, with a client and threads of its own. */
#ifndef ZKSOAK_WORKER_H
#define ZKSOAK_WORKER_H

#include <pthread.h>
#include <stdint.h>

#include <zklock/zklock.h>

#include "shared.h"
#include "draw.h"

struct process {
    struct shared *shared;
    int number;
    struct zkl_client *client;
    struct zkl_mutex *mutexes[SOAK_MUTEXES];
    struct zkl_rwlock *rwlocks[SOAK_PATHS - SOAK_MUTEXES];
    struct zkl_semaphore *semaphore;
    atomic_bool through;
    pthread_mutex_t mu; /* protects cancels */
    struct zkl_cancel *cancels[SOAK_THREADS];
};

struct worker {
    struct process *process;
    struct shared *shared;
    struct seat *seat;
    int number; /* its seat's */
    uint64_t chance;
    struct zkl_cancel *cancel;          /* of the call that runs */
    int holds[SOAK_PATHS][WRITING + 1]; /* how often it has each half */
};

/* What the forked process does; returns its exit status. */
int process_run(struct shared *shared, int number);

/* A client and its handles; the shared and the number are set. 0, or 1 and a failure. */
int process_join(struct process *p);
int process_part(struct process *p);

/* One thread, until the shared says stop. arg: a struct worker. */
void *worker_main(void *arg);

/* Leaks what the shared says. */
void leak_some(struct shared *shared);

/* --- one call --------------------------------------------------------------------------------- */

/* Say to the watchdog what begins: the call, what it is about, and how it should end. */
void call_say(struct worker *w, const char *call, const struct set *set, const char *end);
/* It is over. */
void call_check(struct worker *w, int rc, int expected);
/* What should not have happened. */
void call_odd(struct worker *w, const char *what, int rc);

/* The record for tests/linear: a call begins; it has returned, with grants (of an acquire that was granted) or
 * codes (of an unlock) for each place; this one is proved until then. */
void note_begin(struct worker *w, const char *verb, const struct set *set);
void note_proved(struct worker *w, struct place place, int64_t until_ns);

/* The same for acquiring: makes a wait of that patience. */
struct zkl_wait call_begin(struct worker *w, const char *call, const struct set *set,
                           enum patience patience);
/* Counts the result, and fails if such a wait can't have it. True if granted. */
bool call_end(struct worker *w, const struct zkl_wait *wait, int rc, enum tally granted);
void count_in(struct worker *w, enum tally tally);

#endif
