/* SPDX-License-Identifier: Apache-2.0
 * One seed: chaos, in which everything may happen, then a calm in which every owner must get
 * through and nothing may be left. Each step of chaos draws its numbers from a generator of its
 * own, so that the others stay the same when one is left out. */
#include "world.h"

const char *const root_paths[LEASES + 1] = {"/a", "/b/c", "/x/y/z", "/turns", SIM_LEASES};
static struct world *the_world;
uint64_t schedule_broken;
int schedule_steps = CHAOS_STEPS;
const unsigned char *schedule_bytes;

unsigned rnd(struct world *w, unsigned n)
{
    return fake_random(&w->prng, n);
}

bool chance(struct world *w, unsigned n)
{
    return fake_chance(&w->prng, n);
}

void happened(struct world *w, enum sim_fault fault)
{
    w->tally->faults[fault]++;
}

int schedule_step(void)
{
    return the_world ? the_world->step : 0;
}

static void reseed(struct world *w)
{
    struct fake_prng mixer = {.state = w->seed * UINT64_C(0x2545f4914f6cdd1d) + (uint64_t)w->step};
    if (schedule_bytes && w->step >= 0 && w->step < schedule_steps)
        mixer.state += (uint64_t)schedule_bytes[w->step] << 32;
    w->prng.state = fake_random64(&mixer);
}

/* Within a sixteenth, by both clocks. */
static int64_t some_rate(struct world *w)
{
    int64_t most = fake_breaks(&w->fake, FAKE_CLOCKS_APART) ? MS / 5 : MS / 20;
    switch (rnd(w, 4)) {
    case 0:
        return -most;
    case 1:
        return (int64_t)rnd(w, 2 * (unsigned)most) - most;
    default:
        return 0;
    }
}

static void servers_init(struct world *w)
{
    fake_draw_rules(&w->fake, schedule_broken);
    check_begin(w);
    w->late_answers = chance(w, 2);
    for (int i = 0; i < CLIENTS; i++)
        w->rates[i] = some_rate(w);
}

/* Older ones, or of another make; not drawn: the others stay what they are. */
static void foreign_servers(struct world *w)
{
    uint64_t what = w->seed / FOREIGN_ONCE_IN;
    bool *unknown = w->fake.unknown;
    if (w->seed % FOREIGN_ONCE_IN == 0) {
        unknown[ZKL_OPCODE_CREATE2] = what % 2 == 0;
        unknown[ZKL_OPCODE_REMOVE_WATCHES] = what / 2 % 2 == 0;
        unknown[ZKL_OPCODE_CONTAINER] = what / 4 % 2 == 0;
        w->fake.manner = what / 8 % FAKE_MANNERS;
        w->fake.resumes_none = what / 8 / FAKE_MANNERS % 2 == 1;
    }
    if (unknown[ZKL_OPCODE_CREATE2])
        happened(w, SIM_NO_CREATE2);
    if (unknown[ZKL_OPCODE_REMOVE_WATCHES])
        happened(w, SIM_NO_REMOVE_WATCHES);
    if (unknown[ZKL_OPCODE_CONTAINER])
        happened(w, SIM_NO_CONTAINERS);
}

static void world_init(struct world *w)
{
    static const unsigned rates[] = {8, 25, 100, 1000000};
    w->step = -1;
    reseed(w);
    w->fault_rate = rates[rnd(w, 4)];
    w->pace = chance(w, 4) ? 120 : 12;
    w->out_of_memory = chance(w, 5);
    w->strangers = chance(w, 2);
    w->few_watches = chance(w, 10);
    fake_init(&w->fake, &w->prng);
    servers_init(w);
    w->few_nodes = w->seed % FEW_NODES_ONCE_IN == 5; /* not drawn */
    if (w->few_nodes)
        w->fake.close_bytes_max = 250 + w->seed / FEW_NODES_ONCE_IN % 400;
    w->fake.unknown[ZKL_OPCODE_CONTAINER] = chance(w, 4);
    foreign_servers(w);
    permits_init(w);
    /* not drawn: the others stay what they are */
    w->local_queue = w->seed % LOCAL_QUEUE_ONCE_IN == 0;
    w->readers = w->seed % READERS_ONCE_IN == 3;
    w->lonely = w->seed % LONELY_ONCE_IN == 0;
    w->many_writers = !w->lonely && w->seed % MANY_WRITERS_ONCE_IN == 1;
    w->grouped = w->lonely && !w->local_queue && w->seed / LONELY_ONCE_IN % 4 > 0;
    w->in_rows = !w->grouped && w->seed % IN_ROWS_ONCE_IN == 0;
    if (w->lonely && w->fault_rate < 100)
        w->fault_rate *= 10;
    w->says_no = w->seed % SAYS_NO_ONCE_IN == 0 && schedule_broken == 0;
    w->fake.would_not_once_in = w->says_no ? 40 : 0;
    w->fake.resumes_none |= w->seed % RESUMES_NONE_ONCE_IN == 4;
    w->fake.reads_ahead = w->seed % READS_AHEAD_ONCE_IN == 2;
    w->local_queue_root = w->seed / LOCAL_QUEUE_ONCE_IN % 2 == 0 ? 0 : LOCAL_QUEUE_ROOT;
    w->client_count = CLIENTS;
    w->owner_count = CLIENTS * OWNERS_EACH;
    for (int i = 0; i < CLIENTS; i++)
        proc_init(w, &w->clients[i]);
}

static void chaos(struct world *w, const bool *skip)
{
    for (w->step = 0; w->step < schedule_steps; w->step++) {
        if (skip && skip[w->step])
            continue;
        reseed(w);
        say("step %d", w->step);
        faults_maybe(w);
        bool first = w->grouped && !chance(w, 3);
        struct client *p = &w->clients[first ? 0 : rnd(w, CLIENTS)];
        proc_step(p);
        check_process(p);
        check_world(w);
        if (chance(w, 3)) {
            fake_pass(&w->fake, rnd(w, chance(w, 30) ? 300 : w->pace));
            check_world(w);
        }
    }
    reseed(w);
}

/* No more faults but stalls: every lock request and every unlock must end. Waiters without a
 * deadline stay until they are granted: the others unlock. */
static void heal(struct world *w)
{
    int64_t began_ms = w->fake.now_ms;
    w->healing = w->calm = true;
    w->fake.would_not_once_in = 0;
    for (int i = 0; i < CLIENTS; i++)
        w->clients[i].unproved_ms = began_ms; /* whatever was before */
    while (!check_done(w) && w->fake.now_ms - began_ms < HEAL_MS) {
        bool busy = false;
        for (int i = 0; i < CLIENTS; i++) {
            busy |= proc_step(&w->clients[i]);
            check_process(&w->clients[i]);
        }
        check_world(w);
        if (w->fake.now_ms - began_ms > RAISE_MS)
            permits_raise(w);
        if (chance(w, 50) && w->clients[0].current && w->clients[0].current->linked)
            w->clients[0].current->stalled = true;
        fake_pass(&w->fake, busy ? chance(w, 10) : 5);
        check_world(w);
    }
    if (!check_done(w))
        check_complain(w);
    uint64_t ms = (uint64_t)(w->fake.now_ms - began_ms);
    if (ms > w->tally->longest_heal_ms)
        w->tally->longest_heal_ms = ms;
}

static void add_up(const struct world *w)
{
    struct tally *tally = w->tally;
    size_t steps = w->core_steps < TALLY_STEPS ? w->core_steps : TALLY_STEPS - 1;
    tally->schedules++;
    tally->steps[steps]++;
    for (int i = 0; i < FAKE_FAULTS; i++)
        tally->fake[i] += w->fake.tally[i];
}

void schedule_run(uint64_t seed, const bool *skip, struct tally *tally)
{
    struct world *w = calloc(1, sizeof *w);
    if (!w)
        abort();
    the_world = w;
    w->seed = seed;
    w->tally = tally;
    world_init(w);
    chaos(w, skip);
    bool close_early = chance(w, 4);
    if (!close_early) {
        heal(w);
        /* sessions that were closed without a link expire */
        fake_pass(&w->fake, 4 * FAKE_TIMEOUT_MS);
        check_nothing_left(w);
    }
    for (int i = 0; i < CLIENTS; i++)
        proc_close(&w->clients[i]);
    if (close_early)
        heal(w);
    for (int i = 0; i < CLIENTS; i++)
        proc_fini(&w->clients[i]);
    add_up(w);
    fake_fini(&w->fake);
    free(w);
    the_world = NULL;
}
