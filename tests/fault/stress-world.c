/* SPDX-License-Identifier: Apache-2.0 */
/* What all processes share, the judge of who was inside, and who looks for calls that hang. */
#include "stress.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define ODD_MAX 20 /* are told */

const char *const place_path[PLACES] = {
    [AT_PLAIN] = STRESS_TOP "/plain",   [AT_POSTED] = STRESS_TOP "/posted",
    [AT_HANDED] = STRESS_TOP "/handed", [AT_RETAINED] = STRESS_TOP "/retained",
    [AT_BROKEN] = STRESS_TOP "/broken", [AT_KAZOO] = STRESS_TOP "/kazoo",
    [AT_NAMED] = STRESS_TOP "/named",   [AT_ONE] = STRESS_TOP "/one",
    [AT_HALVES] = STRESS_TOP "/halves", [AT_FOUR] = STRESS_TOP "/four",
    [AT_MANY] = STRESS_TOP "/many",
};

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

/* --- who was inside --------------------------------------------------------------------------- */

size_t visit_enter(enum place at, bool reads, uint64_t token)
{
    long visit = atomic_fetch_add(&world->visits, 1);

    if (visit >= VISITS_MAX)
        return NO_VISIT;
    struct visit *v = &world->visit[visit];
    v->token = token;
    v->at = at;
    v->reads = reads;
    v->enter = ++world->ticks;
    return (size_t)visit;
}

void visit_leave(size_t visit)
{
    if (visit != NO_VISIT)
        world->visit[visit].leave = ++world->ticks;
}

void visit_unlocked(size_t visit, int rc, enum trust trust)
{
    if (zkl_error_is_lost(rc))
        world->lost++;
    if (visit == NO_VISIT || trust == TRUST_NOTHING)
        return;
    world->visit[visit].counts = rc == 0 || (trust == TRUST_THE_WINDOW && rc == ZKL_EUNCONFIRMED);
}

struct moment {
    long tick;
    const struct visit *visit;
};

static int compare(const void *one, const void *other)
{
    const struct moment *a = one, *b = other;

    return (a->tick > b->tick) - (a->tick < b->tick);
}

/* What is so far at one place. */
struct so_far {
    int readers, others;
    uint64_t read_token, token; /* the largest */
};

static bool overlaps(const struct so_far *s, const struct visit *v)
{
    return v->reads ? s->others > 0 : s->others >= place_room(v->at) || s->readers > 0;
}

/* Those who hand a node on, or keep it, share its token; so does a reader that was the writer. */
static bool is_out_of_order(const struct so_far *s, const struct visit *v)
{
    bool shares = v->reads || v->at == AT_HANDED || v->at == AT_RETAINED;

    if (place_room(v->at) > 1)
        return false;
    if (v->token == 0 || v->token < s->token || (v->token == s->token && !shares))
        return true;
    return !v->reads && v->token <= s->read_token;
}

static void tell(const struct visit *v, const struct so_far *s, const char *what)
{
    fprintf(
        stderr,
        "stress: %s at %s: a %s from tick %ld to %ld, token %llx; inside are %d and %d readers, "
        "tokens %llx and %llx\n",
        what, place_path[v->at], v->reads ? "reader" : "holder", v->enter, v->leave,
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

struct sentence world_judge(void)
{
    struct sentence sentence = {0};
    struct so_far so_far[PLACES];
    size_t n = 0, most = world->visits < VISITS_MAX ? (size_t)world->visits : VISITS_MAX;
    struct moment *moments = calloc(2 * most + 1, sizeof *moments);

    if (moments == NULL)
        abort();
    memset(so_far, 0, sizeof so_far);
    for (size_t i = 0; i < most; i++) {
        const struct visit *v = &world->visit[i];
        if (!v->counts)
            continue;
        moments[n++] = (struct moment){v->enter, v};
        moments[n++] = (struct moment){v->leave, v};
    }
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
    free(moments);
    return sentence;
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
    bool fine = rc > 0 ? (may & MAY_COUNT) != 0 : rc > -63 && (may >> -rc & 1) != 0;
    if (!fine) {
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
