/* SPDX-License-Identifier: Apache-2.0 */
/* Records visits from enter to leave, and judges them when all is over: for tests that end sessions or delete
 * nodes, in which only unlock's code shows whether a visit excluded others. It does not use the library, and its
 * memory can be shared by processes. */
#ifndef ZKFAULT_WITNESS_H
#define ZKFAULT_WITNESS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "history.h"

/* A visit, from one tick to another. */
struct visit {
    atomic_long enter, leave; /* of the witness's own clock; two never have the same */
    uint64_t token;
    int at;
    bool reads;
    bool counts; /* unlock's code excludes that another one was inside */
};

#define VISITS_MAX 3000000
#define NO_VISIT VISITS_MAX

/* All zeros is a valid start. */
struct witness {
    atomic_long ticks, visits;
    struct visit visit[VISITS_MAX];
};

/* In memory that children share. NULL: errno. */
struct witness *witness_new(void);
void witness_free(struct witness *w);

/* A visit's number. */
size_t witness_enter(struct witness *w, int at, bool reads, uint64_t token);
void witness_leave(struct witness *w, size_t visit);
/* Unlock's code excludes other exclusive visits at that time. */
void witness_counts(struct witness *w, size_t visit);

/* How many visits overlap, and how many have a token not above those before. */
struct sentence {
    size_t counted, overlaps, disorder;
};
/* When all is quiet; a visit's at is its place. */
struct sentence witness_judge(struct witness *w, const struct history_place *places);

/* How often unlock returned which code. */
struct endings {
    atomic_long given_back, lost, unconfirmed, other;
};
void endings_count(struct endings *endings, int rc);

#endif
