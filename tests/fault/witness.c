/* SPDX-License-Identifier: Apache-2.0 */
#include "witness.h"

#include <stdlib.h>

#include <zklock/zklock.h>

void witness_init(struct witness *w)
{
    *w = (struct witness){0};
    pthread_mutex_init(&w->mu, NULL);
}

void witness_fini(struct witness *w)
{
    pthread_mutex_destroy(&w->mu);
    free(w->visits);
}

static void make_room(struct witness *w)
{
    if (w->count < w->room)
        return;
    w->room = w->room == 0 ? 1024 : 2 * w->room;
    w->visits = realloc(w->visits, w->room * sizeof w->visits[0]);
    if (w->visits == NULL)
        abort();
}

size_t witness_enter(struct witness *w, uint64_t token)
{
    pthread_mutex_lock(&w->mu);
    make_room(w);
    size_t visit = w->count++;
    w->visits[visit] = (struct visit){.enter = ++w->ticks, .token = token};
    pthread_mutex_unlock(&w->mu);
    return visit;
}

void witness_leave(struct witness *w, size_t visit)
{
    pthread_mutex_lock(&w->mu);
    w->visits[visit].leave = ++w->ticks;
    pthread_mutex_unlock(&w->mu);
}

void witness_unlocked(struct witness *w, size_t visit, int rc)
{
    pthread_mutex_lock(&w->mu);
    w->visits[visit].unlock_rc = rc;
    pthread_mutex_unlock(&w->mu);
}

static void count_result(struct verdict *v, int rc)
{
    v->visits++;
    v->given_back += rc == 0;
    v->lost += rc == ZKL_ELOST;
    v->unconfirmed += rc == ZKL_EUNCONFIRMED || rc == ZKL_EDOUBT;
    v->other += rc != 0 && rc != ZKL_ELOST && rc != ZKL_EUNCONFIRMED && rc != ZKL_EDOUBT;
}

struct verdict witness_judge(struct witness *w, enum witness_rule rule)
{
    struct verdict v = {0};
    long inside_until = 0;
    uint64_t token = 0;

    pthread_mutex_lock(&w->mu);
    for (size_t i = 0; i < w->count; i++) { /* in the order of entering */
        const struct visit *visit = &w->visits[i];
        count_result(&v, visit->unlock_rc);
        if (rule == WITNESS_GIVEN_BACK && visit->unlock_rc != 0)
            continue;
        v.overlaps += visit->enter < inside_until;
        v.disorder += visit->token <= token;
        token = visit->token;
        inside_until = visit->leave > inside_until ? visit->leave : inside_until;
    }
    pthread_mutex_unlock(&w->mu);
    return v;
}
