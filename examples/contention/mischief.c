/* SPDX-License-Identifier: Apache-2.0 */
#include "mischief.h"

#include "chance.h"

#include <inttypes.h>
#include <stdio.h>

enum {
    GAP_MIN_US = 50000,
    GAP_MAX_US = 350000,
    PAUSE_SESSIONS = 2,   /* how many session timeouts a pause lasts, ... */
    PATIENCE_SESSIONS = 6 /* ... and at most, if the others do not go on */
};

static void enter(struct mischief *m, enum mischief_state state)
{
    m->state = state;
    m->since_us = clock_us();
    m->next_us = m->since_us;
    m->updates = crew_updates(m->crew);
    if (state == MISCHIEF_QUIET)
        m->next_us += chance_between(&m->chance, GAP_MIN_US, GAP_MAX_US);
}

void mischief_init(struct mischief *m, struct crew *crew)
{
    *m = (struct mischief){.crew = crew, .chance = crew->options->seed};
    enter(m, MISCHIEF_QUIET);
}

static void ask(struct mischief *m)
{
    const struct options *o = m->crew->options;
    m->killing = o->crash && (!o->pause || !m->killing); /* with both, by turns */
    int station = m->killing ? (int)chance_between(&m->chance, STATION_WORKING, STATIONS - 1)
                             : STATION_WORKING;
    enter(m, MISCHIEF_ASKED);
    atomic_store(&m->crew->board->station, station);
}

static uint64_t updates_of_others(const struct mischief *m)
{
    return crew_updates(m->crew) - crew_updates_of(m->crew, m->who.process);
}

/* A holder stands still: now it is hit. */
static int strike(struct mischief *m)
{
    m->crew->standing = false;
    m->who = m->crew->who;
    if (m->killing) {
        m->kills++;
        enter(m, MISCHIEF_RECOVERING);
        return crew_replace(m->crew, m->who.process);
    }
    if (crew_pause(m->crew, m->who.process))
        return -1;
    enter(m, MISCHIEF_PAUSED);
    m->updates = updates_of_others(m);
    m->next_us += PAUSE_SESSIONS * UINT64_C(1000) * (uint64_t)m->crew->options->session_timeout_ms;
    return 0;
}

static void wake(struct mischief *m)
{
    uint64_t made = updates_of_others(m) - m->updates;
    uint64_t now = clock_us();
    uint64_t most =
        PATIENCE_SESSIONS * UINT64_C(1000) * (uint64_t)m->crew->options->session_timeout_ms;
    if (!made && now - m->since_us < most)
        return;
    snprintf(m->news, sizeof m->news,
             "process %u was stopped while it held the lock, for %.1f s; the others made %" PRIu64
             " updates; now it goes on",
             m->who.process, (double)(now - m->since_us) / 1e6, made);
    m->pauses++;
    atomic_store(&m->crew->board->parole, true);
    crew_wake(m->crew, m->who.process);
    enter(m, MISCHIEF_RECOVERING);
}

int mischief_step(struct mischief *m)
{
    bool due = clock_us() >= m->next_us;
    switch (m->state) {
    case MISCHIEF_QUIET:
        if (due && (m->crew->options->crash || m->crew->options->pause))
            ask(m);
        break;
    case MISCHIEF_ASKED:
        if (m->crew->standing)
            return strike(m);
        break;
    case MISCHIEF_PAUSED:
        if (due)
            wake(m);
        break;
    case MISCHIEF_RECOVERING:
        if (crew_updates(m->crew) != m->updates && !atomic_load(&m->crew->board->parole))
            enter(m, MISCHIEF_QUIET);
        break;
    }
    return 0;
}

int mischief_rest(struct mischief *m)
{
    int asked = atomic_load(&m->crew->board->station);
    /* A request that nobody has taken is taken back; one that was taken is carried out. */
    if (m->state == MISCHIEF_ASKED && asked != STATION_NONE &&
        atomic_compare_exchange_strong(&m->crew->board->station, &asked, STATION_NONE))
        enter(m, MISCHIEF_QUIET);
    return m->state == MISCHIEF_QUIET || m->state == MISCHIEF_RECOVERING;
}
