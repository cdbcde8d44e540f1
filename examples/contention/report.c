/* SPDX-License-Identifier: Apache-2.0 */
#include "report.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

void report_head(const struct options *o)
{
    printf("%d processes x %d threads update one record, ", o->processes, o->threads);
    if (o->lock)
        printf("under the lock %s on %s, ", o->path, o->servers);
    else
        printf("WITHOUT a lock, ");
    if (o->count)
        printf("%" PRIu64 " times each", o->count);
    else
        printf("for %d s", o->seconds);
    printf(" (seed %" PRIu64 ")\n", o->seed);
    if (o->crash)
        printf("now and then a process that holds the lock is killed, and a new one takes its "
               "place\n");
    fflush(stdout);
}

/* The nearest-rank percentile of sorted samples. */
static uint32_t percentile(const struct samples *s, unsigned percent)
{
    if (!s->count)
        return 0;
    size_t rank = (s->count * percent + 99) / 100;
    return s->us[rank - 1];
}

static void table(const struct verdict *v)
{
    printf("%7s %13s %12s %12s %12s\n", "process", "acquisitions", "wait p50 us", "wait p99 us",
           "hold p50 us");
    for (unsigned i = 0; i < v->processes; i++) {
        const struct process_verdict *p = &v->process[i];
        printf("%7u %13" PRIu64 " %12" PRIu32 " %12" PRIu32 " %12" PRIu32 "\n", i, p->acquisitions,
               percentile(&p->wait, 50), percentile(&p->wait, 99), percentile(&p->hold, 50));
    }
}

static void remarks(const struct options *o, const struct verdict *v)
{
    printf("the record says %" PRIu64 "; updates accepted %" PRIu64, v->counter, v->updates);
    if (v->torn)
        printf(", of which %" PRIu64
               " never reached the record: their writers were killed on the way",
               v->torn);
    printf("\n");
    if (o->crash)
        printf("kills=%u\n", v->kills);
    if (o->pause)
        printf("pauses=%u\n", v->pauses);
    if (v->holds_lost)
        printf("holds that were lost, as their unlock said: %" PRIu64 "\n", v->holds_lost);
    if (!o->lock)
        printf("without the lock %" PRId64 " of %" PRIu64 " updates were lost\n", v->lost_updates,
               v->updates);
}

static bool fault(bool present, const char *text, uint64_t number)
{
    if (present)
        printf("FAULT: %" PRIu64 " %s\n", number, text);
    return present;
}

/* Each reason for a bad end is told, not only the first. */
static bool faults(const struct options *o, const struct verdict *v, unsigned odd)
{
    bool bad = false;
    if (o->lock) {
        bad |= fault(v->lost_updates != 0, "updates are missing in the record",
                     (uint64_t)v->lost_updates);
        bad |= fault(v->overlaps > 0, "times two held the lock at once", v->overlaps);
        bad |=
            fault(v->unexplained > 0,
                  "writes were refused as stale, but the lock's holds were whole", v->unexplained);
    }
    /* One now and then is the lot of a loaded machine; a lock that is always lost is none. */
    bad |= fault(v->holds_lost > 10 + v->acquisitions / 10, "holds were lost, more than one in ten",
                 v->holds_lost);
    bad |= fault(v->corrupt > 0, "entries of journal and record contradict each other", v->corrupt);
    bad |= fault(odd > 0, "calls returned what they should not", odd);
    bad |= fault(v->acquisitions == 0, "acquisitions", 0);
    if (o->crash)
        bad |= fault(v->kills < (unsigned)o->kills_min, "kills were too few; --kills set the least",
                     v->kills);
    if (o->pause)
        bad |= fault(!v->refused_stale,
                     "stale writes were refused; a pause should have caused some", 0);
    return bad;
}

static void final_line(FILE *out, const struct verdict *v)
{
    fprintf(out,
            "contention: processes=%u threads=%u acquisitions=%" PRIu64 " lost_updates=%" PRId64
            " overlaps=%" PRIu64 " refused_stale=%" PRIu64 " fairness=%.2f\n",
            v->processes, v->threads, v->acquisitions, v->lost_updates, v->overlaps,
            v->refused_stale, v->fairness);
}

static bool add_to(const char *path, const struct verdict *v)
{
    FILE *out = fopen(path, "ae");
    if (out)
        final_line(out, v);
    if (out && fclose(out) == 0)
        return true;
    fprintf(stderr, "contention: --summary %s: %s\n", path, strerror(errno));
    return false;
}

bool report_verdict(const struct options *o, const struct verdict *v, unsigned odd)
{
    table(v);
    remarks(o, v);
    bool good = !faults(o, v, odd);
    final_line(stdout, v);
    if (o->summary)
        good &= add_to(o->summary, v);
    return fflush(stdout) == 0 && good;
}
