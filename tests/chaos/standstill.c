/* SPDX-License-Identifier: Apache-2.0 */
#include "standstill.h"

#include <stdio.h>

#include "tool/net.h"

#define WRITES_MAX 100 /* at least 2 s, see canary.c */
#define LINKED (1U << MUTEX | 1U << RWLOCK | 1U << PERMITS)
/* All seats may be before a multi-lock, at two of its locks, and hand each on among some threads. */
#define GRANTS_MAX 2000
#define ENDS_MS 2000 /* by so much later a session may end */

/* --- disturbances ----------------------------------------------------------------------------- */

/* Leases end as they should. */
static int64_t count_disturbances(const struct testbed *s, int client)
{
    const struct process *p = &s->shared->process[client];
    int64_t n = 0;

    for (int i = 0; i < PLACES; i++)
        n += i == LEASE ? 0 : p->told[i];
    for (int node = 0; node < CHAOS_NODES; node++)
        n += proxy_counts(s->link[client][node], PROXY_CONNECT);
    return n;
}

static bool is_quiet(struct standstill *s)
{
    int64_t now_ms = net_now_ms();
    bool quiet = !s->testbed->tls; /* the proxies see no new links then */

    if (s->testbed->shared->broken == BREAK_WAKE) /* there were no faults */
        return true;
    for (int i = 0; i < CHAOS_PROCESSES; i++) {
        int64_t n = count_disturbances(s->testbed, i);
        if (n != s->disturbances[i])
            s->disturbed_ms[i] = now_ms;
        s->disturbances[i] = n;
        quiet &= now_ms - s->disturbed_ms[i] > s->testbed->shared->process[i].session_ms + ENDS_MS;
    }
    return quiet;
}

/* --- locks ------------------------------------------------------------------------------------ */

static long grants_of(const struct shared *b, unsigned places)
{
    long n = 0;

    for (int i = 0; i < PLACES; i++)
        n += places & (1U << i) ? b->grants[i] : 0;
    return n;
}

/* Somebody has waited since then, and nobody has a hold. */
static bool is_free_and_wanted(const struct shared *b, unsigned places, int64_t since_ms)
{
    bool wanted = false;

    for (int i = 0; i < CHAOS_SEATS; i++) {
        const struct seat *seat = &b->seat[i];
        wanted |= (seat->wants & places) != 0 && seat->wants_since_ms <= since_ms;
        for (int k = 0; k < CHAOS_SLOTS; k++) {
            if (seat->open[k] && places & (1U << seat->hold[k].place))
                return false;
        }
    }
    return wanted;
}

/* How long these have stood still, in writes of the canary. */
static long standing(struct standstill *s, struct still *still, unsigned places)
{
    const struct shared *b = s->testbed->shared;
    long grants = grants_of(b, places), writes = s->canary->counted;

    if (grants != still->grants || !is_free_and_wanted(b, places, still->since_ms))
        *still = (struct still){.since_ms = net_now_ms(),
                                .writes = writes,
                                .grants = grants,
                                .others = grants_of(b, LINKED)};
    return writes - still->writes;
}

static void judge(struct standstill *s, long writes, const char *what)
{
    if (writes > s->longest)
        s->longest = writes;
    if (writes > WRITES_MAX)
        shared_odd(
            s->testbed->shared,
            "%s: free and waited for, and granted to nobody while the canary wrote %ld times", what,
            writes);
}

void standstill_begin(struct standstill *s, struct testbed *testbed, const struct canary *canary)
{
    s->testbed = testbed;
    s->canary = canary;
    for (int i = 0; i < CHAOS_PROCESSES; i++)
        s->disturbed_ms[i] = net_now_ms();
    s->seen = canary->counted;
}

void standstill_look(struct standstill *s)
{
    bool quiet = is_quiet(s);

    if (!quiet) {
        for (int i = 0; i < PLACES; i++)
            s->place[i].grants = -1;
        s->linked.grants = -1;
    }
    for (int i = 0; i < PLACES; i++) {
        long writes = standing(s, &s->place[i], 1U << i);
        bool may_be_first = LINKED & (1U << i);
        bool has_had_its_turn =
            grants_of(s->testbed->shared, LINKED) - s->place[i].others > GRANTS_MAX;
        if (!may_be_first || has_had_its_turn)
            judge(s, writes, place_name(i));
    }
    judge(s, standing(s, &s->linked, LINKED), "mutex, rwlock and permits");
    s->judged += quiet ? s->canary->counted - s->seen : 0;
    s->seen = s->canary->counted;
}
