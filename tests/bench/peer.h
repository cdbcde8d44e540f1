/* SPDX-License-Identifier: Apache-2.0 */
/* What a peer of the benchmark that is written in C gives. peer.c does the rest: it reads the
 * orders of bench.py, runs the threads, asks the witness and prints the figures.
 *
 * A peer is a program that gets NAME=VALUE words and then one order in each line of its standard
 * input. It answers each with one line of JSON, and ends at the end of its input:
 *   (start)      {"ready": 1} once it is connected and its locks are made
 *   warm CYCLES  this many cycles of all threads together, not measured; in mode drain by 8 threads
 *   fill         modes drain, handles and clients: make what is measured
 *   fill COUNT   mode drain: this many waiters more
 *   fill         mode outage: take lock 0, and note from now on each notification of that hold
 *   go SECONDS   the run itself; the answer has the figures of this process
 * Peers in other languages speak the same (those of tests/crowd). The words of the
 * command line are those of struct settings, and the board's layout is in board.py. */
#ifndef ZKBENCH_PEER_H
#define ZKBENCH_PEER_H

#include <stdbool.h>

#define SESSION_MS 30000
#define MEMBERS 4 /* of a multi-lock */
#define LOCKS_MAX 256

struct settings {
    const char *servers; /* HOST:PORT */
    const char *path; /* lock number i is at PATH-i; /PARENT/NAME, and the parent may be missing */
    const char *mode; /* cycle, rw, multi, drain, entry, handles, clients, outage */
    const char *variant; /* which of the peers in this program */
    const char *board;   /* the file that all processes of the run share */
    const char *sample;  /* what is written to the board: handoff, cycle, turn or none */
    int threads;         /* of this process */
    int locks;           /* thread t uses lock t modulo locks */
    int index;           /* of this process */
    int count;           /* of waiters, handles, clients or entries */
    int writers;         /* mode rw: the first threads write, the others read */
    int pause_us;        /* mode cycle: after each, half as long to one and a half times */
    int clients;         /* thread t uses client t modulo clients; 0: one */
    int session_ms;      /* 0: SESSION_MS */
    int own;             /* mode drain: 1 if each thread must have a handle of its own */
};

enum handles_step { HANDLES_MAKE, HANDLES_LOCK, HANDLES_UNLOCK };
enum kind { MUTEX, READER, WRITER, MULTI };

struct peer {
    void (*open)(const struct settings *settings);
    /* For thread 0 to threads - 1 (the last one more, in mode drain: the holder, in the process of index 0), on one
     * lock; of kind MULTI on the first MEMBERS together. */
    void (*lock)(enum kind kind, int thread, int lock);
    void (*unlock)(enum kind kind, int thread, int lock);
    void (*close)(void);
    /* Make this many idle handles, or idle clients, and keep them; lock or unlock each handle once. NULL: this peer has
     * none. */
    void (*handles)(int count, enum handles_step step);
    void (*make_clients)(int count);
    /* Mode outage. NULL: this peer reports nothing of a hold. */
    void (*hold)(void);        /* take lock 0 */
    bool (*still_holds)(void); /* wait until that is known, over a link that is up */
};

/* For mode outage, in any thread: the peer was notified of the hold. The word stays the
 * caller's. */
void peer_note(const char *told);

/* Serve until the input ends. The status of the process. */
int peer_main(int argc, char **argv, const struct peer *peer);

/* Say so on standard error and end the process. */
void peer_fail(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

#endif
