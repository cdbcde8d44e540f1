/* SPDX-License-Identifier: Apache-2.0 */
/* Peers at the same paths of one private server, and the journal that judges them. For the suites interop, fleet
 * and soak. */
#ifndef ZKCROWD_CROWD_H
#define ZKCROWD_CROWD_H

#include "check.h"
#include "journal.h"
#include "length.h"
#include "peers.h"
#include "wire.h"
#include "zkserver.h"

extern struct zks *crowd_server;
extern struct wire *raw; /* a session of the test's own, which sees everything */
extern struct journal journal;

#define CREDENTIAL "crowd:secret"

/* For main: start the server, run the tests (those that a wildcard in argv[1] names), and stop everything. */
int crowd_main(int argc, char **argv, const struct zks_options *options);
/* Nothing keeps the session of raw alive in the background, and a server that stands still for long breaks it: it lives
 * after this. */
void crowd_keep_raw(void);
/* Where the journal is; empty, for parties with these letters. */
const char *crowd_journal(const char *parties);

/* --- a run: the rows of a table, "KIND PATHS OPTION...", as peers.h has them, and threads=N, writers=PERCENT ---------- */

/* A new one, of nobody yet. */
void crowd_clear(void);
/* The peer makes a handle for the row, and so many threads will run with it, if the row does not say how many.
 * Returns how many. */
int crowd_add(const char *peer, const char *row, int threads);
/* All threads begin to run, so many times each. */
void crowd_go(long rounds);
/* Read the journal until all workers have answered: NULL, or the first rule that was broken, a worker's error, or that
 * nobody came in for long. */
const char *crowd_judge(void);
/* If not NULL, called once a second meanwhile. */
extern void (*crowd_each_second)(void);
/* Free the handles. */
void crowd_drop(void);
/* The number after "NAME=" in a row. */
int crowd_number(const char *row, const char *name, int otherwise);

#endif
