/* SPDX-License-Identifier: Apache-2.0 */
#include "timeline.h"

#include "overlap.h"
#include "witness.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What a thread is doing, as far as the journal says. */
enum doing {
    DOING_UNKNOWN, /* connecting, unlocking, or done */
    DOING_WAITING,
    DOING_HOLDING
};

struct trace {
    struct row *row;
    enum doing doing;
    uint64_t since_us;
    uint64_t stopped_us;
};

struct reading {
    struct timeline *timeline;
    struct trace *traces;
    bool lock;
    uint64_t start_us; /* of the run, by the journal's clock */
    uint64_t stop_us;
    uint64_t now_us;
};

static void add_bar(struct row *row, enum bar_kind kind, uint64_t from_us, uint64_t to_us)
{
    if (from_us >= to_us)
        return;
    row->bars = grow(row->bars, row->bar_count, &row->bar_room, sizeof *row->bars);
    row->bars[row->bar_count++] = (struct bar){kind, from_us, to_us};
}

static void add_mark(struct row *row, enum mark_kind kind, uint64_t at_us)
{
    row->marks = grow(row->marks, row->mark_count, &row->mark_room, sizeof *row->marks);
    row->marks[row->mark_count++] = (struct mark){kind, at_us};
}

static void turn_to(struct reading *r, struct trace *t, enum doing doing)
{
    t->doing = doing;
    t->since_us = r->now_us;
}

static void waits(struct reading *r, struct trace *t)
{
    turn_to(r, t, DOING_WAITING);
}

static void end_hold(struct reading *r, struct trace *t)
{
    if (t->doing == DOING_HOLDING)
        add_bar(t->row, BAR_HOLDING, t->since_us, r->now_us);
    turn_to(r, t, DOING_UNKNOWN);
}

/* --- lines --------------------------------------------------------------------------------------
 */

static void step_thread(struct reading *r, const struct witness_line *l, struct trace *t)
{
    switch (l->kind) {
    case WITNESS_ENTER:
        if (r->lock)
            add_bar(t->row, BAR_WAITING, l->us < r->now_us ? r->now_us - l->us : 0, r->now_us);
        turn_to(r, t, DOING_HOLDING);
        break;
    case WITNESS_STALE:
        add_mark(t->row, MARK_REFUSED, r->now_us);
        end_hold(r, t);
        break;
    case WITNESS_LEAVE:
    case WITNESS_DONE:
        end_hold(r, t);
        break;
    case WITNESS_FREED: /* and the thread asks again immediately */
        waits(r, t);
        break;
    case WITNESS_RUN:
    case WITNESS_START:
    case WITNESS_STOP:
    case WITNESS_WRITE:
    case WITNESS_KILLED:
    case WITNESS_PAUSED:
    case WITNESS_WOKEN:
    case WITNESS_KINDS:
        break;
    }
}

static void killed(struct reading *r, struct trace *t)
{
    if (t->doing == DOING_WAITING)
        add_bar(t->row, BAR_WAITING, t->since_us, r->now_us);
    end_hold(r, t);
    add_mark(t->row, MARK_CRASH, r->now_us);
}

/* A holder that is stopped holds until its session is over, which only the server knows: its bar
 * ends here. */
static void paused(struct reading *r, struct trace *t)
{
    if (t->doing == DOING_HOLDING)
        end_hold(r, t);
    add_mark(t->row, MARK_PAUSE, r->now_us);
    t->stopped_us = r->now_us;
}

static void woken(struct reading *r, struct trace *t)
{
    add_bar(t->row, BAR_STOPPED, t->stopped_us, r->now_us);
}

static struct trace *trace_of(struct reading *r, unsigned process, unsigned thread)
{
    const struct timeline *t = r->timeline;
    if (process >= t->processes || thread >= t->threads)
        return NULL;
    return &r->traces[process * t->threads + thread];
}

static void step_process(struct reading *r, unsigned process,
                         void (*fn)(struct reading *, struct trace *))
{
    for (unsigned i = 0; i < r->timeline->threads; i++) {
        struct trace *t = trace_of(r, process, i);
        if (t)
            fn(r, t);
    }
}

static void start(struct reading *r, uint64_t at_us)
{
    r->start_us = at_us;
    r->now_us = 0;
    for (unsigned i = 0; r->lock && i < r->timeline->processes; i++)
        step_process(r, i, waits);
}

static void step(struct reading *r, const struct witness_line *l)
{
    r->now_us = l->at_us - r->start_us;
    struct trace *t = trace_of(r, l->who.process, l->who.thread);
    if (l->kind == WITNESS_START)
        start(r, l->at_us);
    else if (l->kind == WITNESS_STOP)
        r->stop_us = r->now_us;
    else if (l->kind == WITNESS_KILLED)
        step_process(r, l->who.process, killed);
    else if (l->kind == WITNESS_PAUSED)
        step_process(r, l->who.process, paused);
    else if (l->kind == WITNESS_WOKEN)
        step_process(r, l->who.process, woken);
    else if (t)
        step_thread(r, l, t);
}

/* --- the whole ----------------------------------------------------------------------------------
 */

static void *need(void *memory)
{
    if (memory)
        return memory;
    fputs("contention: no memory for the timeline\n", stderr);
    exit(1);
}

static void begin(struct reading *r, const struct witness_line *l)
{
    struct timeline *t = r->timeline;
    t->processes = (unsigned)l->value;
    t->threads = (unsigned)l->found;
    size_t count = (size_t)t->processes * t->threads;
    t->rows = need(calloc(count + 1, sizeof *t->rows));
    r->traces = need(calloc(count + 1, sizeof *r->traces));
    for (size_t i = 0; i < count; i++)
        r->traces[i].row = &t->rows[i];
}

/* Those who were waiting when the time was over: the journal has no line about it. */
static void finish(struct reading *r)
{
    r->timeline->end_us = r->now_us ? r->now_us : 1;
    for (size_t i = 0; i < (size_t)r->timeline->processes * r->timeline->threads; i++) {
        struct trace *t = &r->traces[i];
        if (t->doing == DOING_WAITING)
            add_bar(t->row, BAR_WAITING, t->since_us, r->stop_us);
    }
}

static int replay(struct reading *r, FILE *journal)
{
    struct witness_line l;
    int rc;
    while ((rc = witness_read(journal, &l)) > 0) {
        if (!r->traces)
            begin(r, &l);
        else
            step(r, &l);
    }
    if (rc == 0 && r->traces && !ferror(journal)) {
        finish(r);
        return 0;
    }
    fputs("contention: the journal cannot be read\n", stderr);
    return -1;
}

int timeline_read(struct timeline *timeline, int journal, bool lock)
{
    *timeline = (struct timeline){0};
    struct reading r = {.timeline = timeline, .lock = lock};
    FILE *file = witness_open(journal);
    if (!file) {
        fprintf(stderr, "contention: journal: %s\n", strerror(errno));
        return -1;
    }
    int rc = replay(&r, file);
    fclose(file);
    free(r.traces);
    return rc;
}

void timeline_free(struct timeline *timeline)
{
    for (size_t i = 0; timeline->rows && i < (size_t)timeline->processes * timeline->threads; i++) {
        free(timeline->rows[i].bars);
        free(timeline->rows[i].marks);
    }
    free(timeline->rows);
}
