/* SPDX-License-Identifier: Apache-2.0 */
#include "witness.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include <zklock/zklock.h>

#define ODD_MAX 20 /* are printed */

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

struct moment {
    long tick;
    const struct visit *visit;
};

static int compare(const void *one, const void *other)
{
    const struct moment *a = one, *b = other;

    return (a->tick > b->tick) - (a->tick < b->tick);
}

/* The visits to one place so far. */
struct so_far {
    const struct witness_place *place;
    int readers, others;
    uint64_t read_token, token; /* the largest */
};

static bool overlaps(const struct so_far *s, const struct visit *v)
{
    return v->reads ? s->others > 0 : s->others >= s->place->room || s->readers > 0;
}

/* Contenders that hand a node on, or keep it, share its token; so does a reader that was the
 * writer. */
static bool is_out_of_order(const struct so_far *s, const struct visit *v)
{
    bool shares = v->reads || s->place->shares;

    if (s->place->room > 1)
        return false;
    if (v->token == 0 || v->token < s->token || (v->token == s->token && !shares))
        return true;
    return !v->reads && v->token <= s->read_token;
}

static void tell(const struct visit *v, const struct so_far *s, const char *what)
{
    fprintf(
        stderr,
        "witness: %s at %s: a %s from tick %ld to %ld, token %llx; inside are %d and %d readers, "
        "tokens %llx and %llx\n",
        what, s->place->name, v->reads ? "reader" : "holder", v->enter, v->leave,
        (unsigned long long)v->token, s->others, s->readers, (unsigned long long)s->token,
        (unsigned long long)s->read_token);
}

static void come(struct so_far *s, const struct visit *v, struct sentence *sentence)
{
    if (overlaps(s, v) && sentence->overlaps++ < ODD_MAX)
        tell(v, s, "overlap");
    if (is_out_of_order(s, v) && sentence->disorder++ < ODD_MAX)
        tell(v, s, "disorder");
    *(v->reads ? &s->readers : &s->others) += 1;
    uint64_t *largest = v->reads ? &s->read_token : &s->token;
    *largest = v->token > *largest ? v->token : *largest;
}

struct sentence witness_judge(struct witness *w, const struct witness_place *places, size_t count)
{
    struct sentence sentence = {0};
    struct so_far *so_far = calloc(count, sizeof *so_far);
    size_t n = 0, most = w->visits < VISITS_MAX ? (size_t)w->visits : VISITS_MAX;
    struct moment *moments = calloc(2 * most + 1, sizeof *moments);

    if (moments == NULL || so_far == NULL)
        abort();
    for (size_t i = 0; i < most; i++) {
        const struct visit *v = &w->visit[i];
        if (!v->counts)
            continue;
        moments[n++] = (struct moment){v->enter, v};
        moments[n++] = (struct moment){v->leave, v};
    }
    for (size_t i = 0; i < count; i++)
        so_far[i].place = &places[i];
    sentence.counted = n / 2;
    qsort(moments, n, sizeof *moments, compare);
    for (size_t i = 0; i < n; i++) {
        const struct visit *v = moments[i].visit;
        struct so_far *s = &so_far[v->at];
        if (moments[i].tick == v->enter)
            come(s, v, &sentence);
        else
            *(v->reads ? &s->readers : &s->others) -= 1;
    }
    free(so_far);
    free(moments);
    return sentence;
}
