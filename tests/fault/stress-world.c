/* SPDX-License-Identifier: Apache-2.0 */
/* What all processes share, the judge of the visits, and the thread that looks for hanging
 * calls. */
#include "stress.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

const char *const place_path[PLACES] = {
    [AT_PLAIN] = STRESS_TOP "/plain",   [AT_POSTED] = STRESS_TOP "/posted",
    [AT_HANDED] = STRESS_TOP "/handed", [AT_RETAINED] = STRESS_TOP "/retained",
    [AT_BROKEN] = STRESS_TOP "/broken", [AT_KAZOO] = STRESS_TOP "/kazoo",
    [AT_NAMED] = STRESS_TOP "/named",   [AT_ONE] = STRESS_TOP "/one",
    [AT_HALVES] = STRESS_TOP "/halves", [AT_FOUR] = STRESS_TOP "/four",
    [AT_MANY] = STRESS_TOP "/many",
};

#define ODD_MAX 20 /* are printed */

struct world *world;

int place_room(enum place at)
{
    return at == AT_MANY ? 3 : at == AT_FOUR ? 4 : 1;
}

/* --- memory ----------------------------------------------------------------------------------- */

int world_make(void)
{
    int fd = memfd_create("stress", 0); /* inherited */

    if (fd < 0 || ftruncate(fd, sizeof(struct world)) != 0 || !world_attach(fd))
        return -1;
    return fd;
}

bool world_attach(int fd)
{
    void *at = mmap(NULL, sizeof(struct world), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

    world = at == MAP_FAILED ? NULL : at;
    return world != NULL;
}

/* --- visits ----------------------------------------------------------------------------------- */

size_t visit_enter(enum place at, bool reads, uint64_t token)
{
    return witness_enter(&world->witness, (int)at, reads, token);
}

void visit_leave(size_t visit)
{
    witness_leave(&world->witness, visit);
}

void visit_unlocked(size_t visit, int rc, enum trust trust)
{
    if (zkl_error_is_lost(rc))
        world->lost++;
    if (trust == TRUST_NOTHING)
        return;
    if (rc == 0 || (trust == TRUST_THE_WINDOW && rc == ZKL_EUNCONFIRMED))
        witness_counts(&world->witness, visit);
}

struct sentence world_judge(void)
{
    struct history_place places[PLACES];

    for (int at = 0; at < PLACES; at++)
        places[at] = (struct history_place){.name = place_path[at],
                                            .room = place_room((enum place)at),
                                            .shares = at == AT_HANDED || at == AT_RETAINED};
    return witness_judge(&world->witness, places);
}

/* --- calls ------------------------------------------------------------------------------------ */

void calling(struct player *p, const char *call)
{
    p->since_ms = net_now_ms();
    p->call = call;
}

static void complain(struct player *p, const char *text)
{
    if (world->odd++ < ODD_MAX)
        fprintf(stderr, "stress: process %d thread %d, seed %llu: %s\n", p ? p->process : -1,
                p ? p->number : -1, (unsigned long long)world->seed, text);
    world->stop = true;
}

void odd(struct player *p, const char *what)
{
    char text[300];

    snprintf(text, sizeof text, "%s (%s)", what, zkl_error_detail());
    complain(p, text);
}

long long said(struct player *p, const char *call, long long rc, uint64_t may)
{
    char text[1000];

    if (p)
        p->call = NULL;
    if (rc <= 0 && rc > -CODES)
        world->codes[-rc]++;
    bool allowed = rc > 0 ? (may & MAY_COUNT) != 0 : rc > -63 && (may >> -rc & 1) != 0;
    if (!allowed) {
        snprintf(text, sizeof text, "%s: %lld, %s (%s)", call, rc,
                 rc < 0 ? zkl_strerror((int)rc) : "no error", zkl_error_detail());
        complain(p, text);
    }
    return rc;
}

/* --- what hangs ------------------------------------------------------------------------------- */

static struct {
    struct player *players;
    size_t n;
    pthread_t thread;
    atomic_bool stop;
} watched;

static void hang(struct player *p, const char *call)
{
    fprintf(stderr, "stress: hang: process %d thread %d, seed %llu, for %d s in %s\n", p->process,
            p->number, (unsigned long long)world->seed, HANG_MS / 1000, call);
    world->odd++;
    world->stop = true;
    abort();
}

static void *watch(void *unused)
{
    while (!watched.stop) {
        int64_t now_ms = net_now_ms();
        for (size_t i = 0; i < watched.n; i++) {
            struct player *p = &watched.players[i];
            const char *call = p->call, *fiber = fibers_hang(p, now_ms);
            int64_t since_ms = p->since_ms;
            if (call != NULL && p->call == call && now_ms - since_ms > HANG_MS)
                hang(p, call);
            if (fiber != NULL)
                hang(p, fiber);
        }
        net_nap_ms(100);
    }
    return unused;
}

void watch_players(struct player *players, size_t n)
{
    watched.players = players;
    watched.n = n;
    if (pthread_create(&watched.thread, NULL, watch, NULL) != 0)
        abort();
}

void watch_end(void)
{
    watched.stop = true;
    pthread_join(watched.thread, NULL);
}
