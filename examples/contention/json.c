/* SPDX-License-Identifier: Apache-2.0 */
#include "json.h"

#include <inttypes.h>

static void string(FILE *out, const char *name, const char *text)
{
    fprintf(out, "  \"%s\": \"", name);
    for (; *text; text++) {
        if (*text == '"' || *text == '\\')
            fprintf(out, "\\%c", *text);
        else if ((unsigned char)*text < ' ')
            fprintf(out, "\\u%04x", (unsigned)*text);
        else
            fputc(*text, out);
    }
    fputs("\",\n", out);
}

static void number(FILE *out, const char *name, uint64_t n)
{
    fprintf(out, "  \"%s\": %" PRIu64 ",\n", name, n);
}

static void run(FILE *out, const struct options *o, const struct verdict *v)
{
    fprintf(out, "  \"lock\": %s,\n", o->lock ? "true" : "false");
    if (o->lock) {
        string(out, "path", o->path);
        string(out, "servers", o->servers);
    }
    number(out, "seed", o->seed);
    number(out, "processes", v->processes);
    number(out, "threads", v->threads);
}

static void totals(FILE *out, const struct verdict *v)
{
    number(out, "acquisitions", v->acquisitions);
    number(out, "updates", v->updates);
    number(out, "counter", v->counter);
    number(out, "torn", v->torn);
    fprintf(out, "  \"lost_updates\": %" PRId64 ",\n", v->lost_updates);
    number(out, "overlaps", v->overlaps);
    number(out, "refused_stale", v->refused_stale);
    number(out, "holds_lost", v->holds_lost);
    number(out, "kills", v->kills);
    number(out, "pauses", v->pauses);
    fprintf(out, "  \"fairness\": %.2f,\n", v->fairness);
}

static void each_process(FILE *out, const struct verdict *v)
{
    fputs("  \"each_process\": [", out);
    for (unsigned i = 0; i < v->processes; i++) {
        const struct process_verdict *p = &v->process[i];
        fprintf(out,
                "%s\n    {\"acquisitions\": %" PRIu64 ", \"wait_p50_us\": %" PRIu32
                ", \"wait_p99_us\": %" PRIu32 ", \"hold_p50_us\": %" PRIu32 "}",
                i ? "," : "", p->acquisitions, samples_percentile(&p->wait, 50),
                samples_percentile(&p->wait, 99), samples_percentile(&p->hold, 50));
    }
    fputs("\n  ],\n", out);
}

static void each_fault(FILE *out, const struct faults *f)
{
    fputs("  \"faults\": [", out);
    for (size_t i = 0; i < f->count; i++)
        fprintf(out, "%s\n    \"%" PRIu64 " %s\"", i ? "," : "", f->all[i].number, f->all[i].text);
    fputs(f->count ? "\n  ]\n" : "]\n", out);
}

void json_verdict(FILE *out, const struct options *o, const struct verdict *v,
                  const struct faults *f)
{
    fputs("{\n", out);
    run(out, o, v);
    totals(out, v);
    each_process(out, v);
    each_fault(out, f);
    fputs("}\n", out);
}
