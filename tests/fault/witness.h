/* SPDX-License-Identifier: Apache-2.0 */
/* Who was inside a lock, and when, by no means of the library: a journal that each thread writes
 * as it enters and leaves, judged when all is over. */
#ifndef ZKFAULT_WITNESS_H
#define ZKFAULT_WITNESS_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct visit {
    long enter, leave; /* ticks of the journal's own clock; two never have the same */
    uint64_t token;
    int unlock_rc;
};

struct witness {
    pthread_mutex_t mu;
    long ticks; /* all below: under mu */
    struct visit *visits;
    size_t count, room;
};

void witness_init(struct witness *w);
void witness_fini(struct witness *w);
/* A visit's number. */
size_t witness_enter(struct witness *w, uint64_t token);
void witness_leave(struct witness *w, size_t visit);
void witness_unlocked(struct witness *w, size_t visit, int rc);

/* What unlock said decides which visits count. GIVEN_BACK: its node was there to the end, so
 * nobody else can have been inside with the same right. ALL: for a session that never ended. */
enum witness_rule { WITNESS_GIVEN_BACK, WITNESS_ALL };

struct verdict {
    size_t visits;
    size_t given_back, lost, unconfirmed, other; /* by unlock's result */
    size_t overlaps;                             /* a visit began before an earlier one's end */
    size_t disorder; /* a visit's token is not larger than that of the one before */
};

/* When all is quiet. */
struct verdict witness_judge(struct witness *w, enum witness_rule rule);

#endif
