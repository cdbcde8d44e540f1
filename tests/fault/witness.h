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

struct witness_place {
    const char *name;
    int room;    /* how many may be inside; readers count as none */
    bool shares; /* visits may have the token of the one before: a node is handed on or kept */
};

/* How many visits overlap, and how many have a token not above those before. */
struct sentence {
    size_t counted, overlaps, disorder;
};
/* When all is quiet; at is below count in all visits. */
struct sentence witness_judge(struct witness *w, const struct witness_place *places, size_t count);

/* How often unlock returned which code. */
struct endings {
    atomic_long given_back, lost, unconfirmed, other;
};
void endings_count(struct endings *endings, int rc);

#endif
