/* SPDX-License-Identifier: Apache-2.0 */
#include "report.h"

#include "faults.h"
#include "json.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

void report_head(const struct options *o)
{
    if (o->json)
        return;
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

static void table(const struct verdict *v)
{
    printf("%7s %13s %12s %12s %12s\n", "process", "acquisitions", "wait p50 us", "wait p99 us",
           "hold p50 us");
    for (unsigned i = 0; i < v->processes; i++) {
        const struct process_verdict *p = &v->process[i];
        printf("%7u %13" PRIu64 " %12" PRIu32 " %12" PRIu32 " %12" PRIu32 "\n", i, p->acquisitions,
               samples_percentile(&p->wait, 50), samples_percentile(&p->wait, 99),
               samples_percentile(&p->hold, 50));
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

static void in_words(const struct options *o, const struct verdict *v, const struct faults *f)
{
    table(v);
    remarks(o, v);
    for (size_t i = 0; i < f->count; i++)
        printf("FAULT: %" PRIu64 " %s\n", f->all[i].number, f->all[i].text);
    final_line(stdout, v);
}

bool report_verdict(const struct options *o, const struct verdict *v, unsigned odd)
{
    struct faults faults;
    faults_find(&faults, o, v, odd);
    bool good = faults.count == 0;
    if (o->json)
        json_verdict(stdout, o, v, &faults);
    else
        in_words(o, v, &faults);
    if (o->summary)
        good &= add_to(o->summary, v);
    return fflush(stdout) == 0 && good;
}
