/* SPDX-License-Identifier: Apache-2.0 */
#include "tally.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/bundle.h"
#include "core/local_queue.h"
#include "core/read_cache.h"

/* How often each machine moved from one state to another, and where it may. The driver reports a lost link before the
 * session's end (B60), so that move of CONNECTED does not come about; the core takes it as it comes. */
#define MAY(machine)                                                                               \
    static bool machine##_may(int from, int to)                                                    \
    {                                                                                              \
        return zkl_##machine##_may_move((enum zkl_##machine##_state)from,                          \
                                        (enum zkl_##machine##_state)to);                           \
    }
MAY(contender)
MAY(session)
MAY(bundle)
MAY(local_queue)
MAY(read_cache)

static const struct {
    const char *name;
    enum zkl_trace_kind kind;
    int states;
    bool (*may)(int from, int to);
} machines[TALLY_MACHINES] = {
    {"contender", ZKL_TRACE_CONTENDER, ZKL_CONTENDER_STATES, contender_may},
    {"session", ZKL_TRACE_SESSION, ZKL_SESSION_STATES, session_may},
    {"permits", ZKL_TRACE_PERMITS, ZKL_BUNDLE_STATES, bundle_may},
    {"local queue", ZKL_TRACE_LOCAL_QUEUE, ZKL_LOCAL_QUEUE_STATES, local_queue_may},
    {"cache", ZKL_TRACE_CACHE, ZKL_READ_CACHE_STATES, read_cache_may}};

_Static_assert(ZKL_CONTENDER_STATES <= TALLY_STATES, "no machine has more states");

void tally_add(struct tally *sum, const struct tally *one)
{
    if (one->margins > 0 && (sum->margins == 0 || one->margin_ns < sum->margin_ns))
        sum->margin_ns = one->margin_ns;
    if (one->longest_heal_ms > sum->longest_heal_ms)
        sum->longest_heal_ms = one->longest_heal_ms;
    for (size_t i = 0; i < offsetof(struct tally, longest_heal_ms) / sizeof(uint64_t); i++)
        ((uint64_t *)sum)[i] += ((const uint64_t *)one)[i];
}

unsigned tally_median(const struct tally *tally)
{
    uint64_t below = 0;
    unsigned steps = 0;
    while (steps < TALLY_STEPS - 1 && (below += tally->steps[steps]) * 2 < tally->schedules)
        steps++;
    return steps;
}

/* --- printing ------------------------------------------------------------- */

void tally_print_moves(void)
{
    each_of(machines, TALLY_MACHINES, m) {
        for (int i = 0; i < m->states * m->states; i++) {
            if (m->may(i / m->states, i % m->states))
                printf("%s: %s --> %s\n", m->name, zkl_trace_state_name(m->kind, i / m->states),
                       zkl_trace_state_name(m->kind, i % m->states));
        }
    }
}

struct report {
    const struct tally *tally;
    unsigned at_least;
    int rare;
};

/* What befalls a read lock under its write lock only, whose create was not answered. */
#define DOWNGRADES_PART 5
static bool is_of_downgrades(const char *what)
{
    static const char *const moves[] = {"RECOVERING -> CONFIRMING", "RECOVERING -> HOLDING",
                                        "RECOVERING -> ENDED", "CONFIRMING -> ENDED"};
    for (size_t i = 0; i < sizeof moves / sizeof *moves; i++) {
        if (strstr(what, moves[i]))
            return true;
    }
    return false;
}

static void print_one(struct report *r, uint64_t count, const char *what)
{
    double per_million =
        r->tally->schedules ? 1e6 * (double)count / (double)r->tally->schedules : 0;
    bool rare =
        per_million < (is_of_downgrades(what) ? r->at_least / DOWNGRADES_PART : r->at_least);
    r->rare += rare;
    printf("%12.0f  %s%s\n", per_million, what, rare ? "  (rare)" : "");
}

static void print_moves(struct report *r, int machine)
{
    int states = machines[machine].states;
    enum zkl_trace_kind kind = machines[machine].kind;
    for (int i = 0, from, to; i < states * states; i++) {
        char what[64];
        from = i / states, to = i % states;
        snprintf(what, sizeof what, "%s %s -> %s", machines[machine].name,
                 zkl_trace_state_name(kind, from), zkl_trace_state_name(kind, to));
        bool comes = kind != ZKL_TRACE_SESSION || from != ZKL_SESSION_CONNECTED ||
                     to != ZKL_SESSION_STARTING;
        if (comes && machines[machine].may(from, to))
            print_one(r, r->tally->moves[kind][from][to], what);
    }
}

int tally_print(const struct tally *tally, unsigned at_least)
{
    static const char *const fake_names[] = {FAKE_FAULT_LIST(FAKE_NAME)};
    static const char *const names[] = {SIM_FAULT_LIST(FAKE_NAME)};
    struct report r = {tally, at_least, 0};
    printf("how often in a million schedules (of %" PRIu64 "):\n", tally->schedules);
    for (int i = 0; i < FAKE_FAULTS; i++)
        print_one(&r, tally->fake[i], fake_names[i]);
    for (int i = 0; i < SIM_FAULTS; i++)
        print_one(&r, tally->faults[i], names[i]);
    for (int i = 0; i < TALLY_MACHINES; i++)
        print_moves(&r, i);
    return r.rare;
}
