/* SPDX-License-Identifier: Apache-2.0 */
/* What the processes of the chaos share: a file in memory that the conductor makes and its clients
 * inherit. What a client wrote there remains after it is killed. */
#ifndef ZKCHAOS_SHARED_H
#define ZKCHAOS_SHARED_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "history.h"

enum place { MUTEX, LEASE, RWLOCK, PERMITS, SINGLE, REVOKED, RARE, PLACES };
extern const struct history_place chaos_places[PLACES];
const char *place_name(int place);
/* Of "/chaos/PLACE" or of a node there. */
int place_of(const char *path);

#define PERMITS_MAX 3 /* of the semaphore */

#define CHAOS_NODES 3
#define CHAOS_PROCESSES 8
#define CHAOS_THREADS SEATS_OF_PROCESS
#define CHAOS_SEATS (CHAOS_PROCESSES * CHAOS_THREADS)
#define SECURE_FOLDER 160
#define CHAOS_SLOTS 4 /* holds that a seat can have at a time */

enum tally {
    GRANTED,   /* acquisitions; a multi-lock counts once, and so do several permits of one call */
    TOLD_LOST, /* callbacks */
    STALE_REFUSED,
    TIMED_OUT,
    CANCELED,
    TOLD_BUSY,
    UNREACHED, /* tries without a server */
    UNPROVED,  /* grants whose window was over before the thread ran */
    DOWNGRADED,
    ASKED, /* requests to release */
    UNCONFIRMED,
    DOUBTED, /* by unlock */
    TALLIES
};

/* What a worker does all its life. */
enum role {
    PLAIN,
    HURRIED,
    TRIES,
    READS,
    PERMIT_USER,
    SEVERAL,
    LEASES,
    ONE_PERMIT,
    ASKED_TO_GO,
    ROLES
};

const char *role_name(int role);

/* RUN: lock. REST: one more grant each, without faults, and then nothing. END: close and exit. */
enum phase { RUN, REST, END };

/* What to do wrong, to show that the witness detects it. */
enum breakage { BREAK_NOTHING, BREAK_WINDOW, BREAK_LOCK, BREAK_WAKE };

/* One thread. While it lives, only it writes here; shared.py does after its process has died. */
struct seat {
    atomic_int rested; /* the round of rest that it has come to */
    atomic_llong call_since_ms;
    atomic_int doing;  /* role */
    atomic_uint wants; /* places, a bit each, of a call that waits */
    atomic_llong wants_since_ms;
    atomic_uint serial;
    long busy; /* tries that found somebody */
    atomic_bool open[CHAOS_SLOTS];
    struct record hold[CHAOS_SLOTS];
};

struct process {
    atomic_int told[PLACES], owed[PLACES]; /* losses, by callbacks and by unlock; of this life */
    atomic_llong heap;                     /* bytes in use, at rest */
    atomic_llong clock_ns;                 /* what its wall clock is off by */
    char servers[128];
    int session_ms;
};

struct shared {
    uint64_t seed;
    atomic_int phase, round; /* of rest */
    atomic_int era, broken;
    atomic_int failed; /* 1: why is being written; 2: it is there */
    char why[500];     /* the first error that the history does not show */
    atomic_long odd;   /* such errors */
    atomic_long tally[TALLIES];
    atomic_long grants[PLACES];
    atomic_ullong newest[PLACES]; /* what the resource behind each lock has seen */
    char tls[SECURE_FOLDER]; /* the folder with what clients need for TLS; "": TLS is not used */
    struct process process[CHAOS_PROCESSES];
    struct seat seat[CHAOS_SEATS];
};

/* The conductor's. The descriptor is inherited. NULL: errno. */
struct shared *shared_new(int *fd);
struct shared *shared_map(int fd);
void shared_odd(struct shared *b, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* --- the journal: records at the end of the same file ------------------------------------------- */

void record_write(int fd, const struct record *record);
/* All records, to be freed. */
struct record *records_read(int fd, size_t *n);

#endif
