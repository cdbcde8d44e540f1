/* SPDX-License-Identifier: Apache-2.0 */
#include "witness.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include <zklock/zklock.h>

#define TICK_NS INT64_C(1000000)

struct witness *witness_new(void)
{
    void *at = mmap(NULL, sizeof(struct witness), PROT_READ | PROT_WRITE,
                    MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    return at == MAP_FAILED ? NULL : at;
}

void witness_free(struct witness *w)
{
    munmap(w, sizeof *w);
}

/* --- what happens ----------------------------------------------------------------------------- */

size_t witness_enter(struct witness *w, int at, bool reads, uint64_t token)
{
    long visit = atomic_fetch_add(&w->visits, 1);

    if (visit >= VISITS_MAX)
        return NO_VISIT;
    struct visit *v = &w->visit[visit];
    v->token = token;
    v->at = at;
    v->reads = reads;
    v->enter = ++w->ticks;
    return (size_t)visit;
}

void witness_leave(struct witness *w, size_t visit)
{
    if (visit != NO_VISIT)
        w->visit[visit].leave = ++w->ticks;
}

void witness_counts(struct witness *w, size_t visit)
{
    if (visit != NO_VISIT)
        w->visit[visit].counts = true;
}

void endings_count(struct endings *e, int rc)
{
    bool unconfirmed = rc == ZKL_EUNCONFIRMED || rc == ZKL_EDOUBT;

    e->given_back += rc == 0;
    e->lost += rc == ZKL_ELOST;
    e->unconfirmed += unconfirmed;
    e->other += rc != 0 && rc != ZKL_ELOST && !unconfirmed;
}

/* --- judging ---------------------------------------------------------------------------------- */

/* Each visit is somebody else's, except where they share tokens; a reader may have that of a writer, which it was. */
static struct record record_of(const struct visit *v, size_t number,
                               const struct history_place *place)
{
    bool permits = place->room > 1;

    return (struct record){.kind = HOLD,
                           .place = (uint8_t)v->at,
                           .access = permits    ? PERMIT
                                     : v->reads ? READING
                                                : ALONE,
                           .below = v->reads,
                           .seat = place->shares ? 0 : (int32_t)number * SEATS_OF_PROCESS,
                           .serial = (uint32_t)number,
                           .begun_ns = v->enter * TICK_NS,
                           .until_ns = v->leave * TICK_NS,
                           .token = v->token};
}

struct sentence witness_judge(struct witness *w, const struct history_place *places)
{
    size_t n = 0, none = 0, most = w->visits < VISITS_MAX ? (size_t)w->visits : VISITS_MAX;
    struct record *records = calloc(most + 1, sizeof *records);

    if (records == NULL)
        abort();
    for (size_t i = 0; i < most; i++) {
        const struct visit *v = &w->visit[i];
        if (v->counts)
            records[n++] = record_of(v, i, &places[v->at]);
        none += v->counts && v->token == 0 && places[v->at].room == 1;
    }
    struct verdict v = history_judge(records, n, places);
    if (v.first[0] != '\0' || none > 0)
        fprintf(stderr, "witness, ticks as ms: %s; %zu without a token\n", v.first, none);
    free(records);
    return (struct sentence){
        .counted = v.proved, .overlaps = v.overlaps, .disorder = v.disorders + none};
}
