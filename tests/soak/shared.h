/* SPDX-License-Identifier: Apache-2.0 */
/* What the processes of the soak share, made before the first fork: the witness, which knows who is
 * inside which path by no means of the library; what each thread is doing, for the watchdog; and
 * the figures. */
#ifndef ZKSOAK_SHARED_H
#define ZKSOAK_SHARED_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "room.h"

#define SOAK_MUTEXES 4 /* the first paths */
#define SOAK_PATHS 6   /* the others are read-write locks */
#define SOAK_SEMAPHORE "/soak/permits"
#define SOAK_PERMITS 3
#define SOAK_PROCESSES 8
#define SOAK_SINGLES 2 /* the last processes lock one by one */
#define SOAK_THREADS 3 /* of each process */
#define SOAK_SEATS (SOAK_PROCESSES * SOAK_THREADS)

enum access { OUTSIDE, READING, WRITING };

enum tally {
    MULTI,      /* multi-locks that were granted */
    SINGLE,     /* single locks that were granted */
    MEMBERS,    /* members of those multi-locks, those entered again included */
    AGAIN,      /* what was held already when its multi-lock was granted */
    DOWNGRADED, /* visits that went on as a reader */
    GUESTS,     /* visits with a client of their own */
    PERMITS,    /* requests for permits that were granted */
    REFUSED,    /* multi-locks that would have made a reader a writer */
    TIMED_OUT,
    CANCELED,
    BUSY,
    UNPROVED, /* grants whose window was over before the thread ran */
    TALLIES
};

/* What one thread does not give back, for the soak's own test. */
enum leak {
    LEAK_NOTHING,
    LEAK_MEMORY,
    LEAK_DESCRIPTORS,
    LEAK_THREADS,
    LEAK_NODES,
    LEAK_SESSIONS,
    LEAKS
};

/* One thread. It alone writes here. */
struct seat {
    atomic_int pid, tid;
    atomic_llong call_since_ms; /* 0: in no call that can wait */
    char doing[160];            /* that call, in words */
    atomic_int access[SOAK_PATHS];
    atomic_long tally[TALLIES];
    atomic_llong longest_ms; /* of a wait without an end */
};

struct shared {
    char servers[64];
    uint64_t seed;
    int trespassers; /* this many threads do not lock */
    enum leak leak;
    atomic_bool open;           /* the server is there */
    atomic_bool go, stop, quit; /* lock; come to an end; close and exit */
    atomic_int ready, rested;   /* processes */
    atomic_int failed;          /* 1: why is being written; 2: it is there */
    atomic_bool overlap, grown; /* that is why */
    char why[400];              /* the first failure */
    atomic_long asked, started; /* places in queues, in one process: wanted, and begun */
    /* A look at what may not grow (gauge.h), by its number: all threads stand still for it while
     * pause has that number; a process reports its heap when weigh has it. still and weighed
     * count the threads, and processes, that have done so, for all looks together. */
    atomic_int pause, weigh, still, weighed;
    atomic_long heap[SOAK_PROCESSES];
    struct room path[SOAK_PATHS];
    atomic_int permits; /* that are out */
    struct seat seat[SOAK_SEATS];
};

struct shared *shared_new(void);
void shared_free(struct shared *b);

/* Keep the sentence if it is the first, and stop all. */
void shared_fail(struct shared *b, const char *format, ...) __attribute__((format(printf, 2, 3)));
bool shared_failed(const struct shared *b);
long shared_sum(const struct shared *b, int first_seat, int seats, enum tally tally);

/* "/soak/4" */
const char *soak_path(int path);
/* ":read", ":write"; "" for a mutex. */
const char *half_name(int path, enum access access);

/* Moves the seat from its access to another: in, out, or from WRITING to READING. False, and a
 * failure: it is not alone. The token counts for a seat that enters; under_write: a reader that
 * has the writer's. */
bool witness_move(struct shared *b, int seat, int path, enum access to, uint64_t token);
/* This many permits were taken, or were given back (below 0). */
void witness_permits(struct shared *b, int seat, int change);

#endif
