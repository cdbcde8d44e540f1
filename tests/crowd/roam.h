/* SPDX-License-Identifier: Apache-2.0 */
/* "roam", for the suite soak: a worker's visits to sets of locks that it draws, by multi-locks or singly, with cancels,
 * deadlines, tries, re-entries and downgrades. conductor.py has the commands, and what an answer counts. */
#ifndef ZKCROWD_ROAM_H
#define ZKCROWD_ROAM_H

#define ROAM_MUTEXES 4 /* the first locks: L0 to L3 */
#define ROAM_PATHS 6   /* the others are read-write locks */
#define ROAM_PERMITS 3 /* Lp1 to Lp3: handles for 1 to 3 permits in one call */

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
    UNPROVED,   /* grants whose window was over before the thread ran */
    WANTED,     /* places in queues */
    LONGEST_MS, /* wait without an end */
    TALLIES
};

struct worker;

/* The words behind the verb. Each answers. */
void roam(struct worker *w, char **words);
void roam_tell_calls(const struct worker *w, char **words);

#endif
