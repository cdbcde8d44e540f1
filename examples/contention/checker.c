/* SPDX-License-Identifier: Apache-2.0 */
#include "checker.h"

#include "overlap.h"
#include "record.h"
#include "witness.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What is known of one thread, in its process's present life. */
struct thread_trace {
    unsigned life;
    uint64_t last_line;
    bool inside;       /* between entering and leaving */
    bool refused;      /* since it entered last */
    uint64_t seen;     /* the counter it read when it entered */
    bool known;        /* it has an interval ... */
    size_t interval;   /* ... of which this is the last */
    uint64_t in_start; /* acquisitions while all threads contend */
};

/* An update that the record never held. */
struct torn {
    struct who who;
    uint64_t line;
    bool killed; /* there: its writer died */
};

struct check {
    struct verdict *v;
    struct thread_trace *threads;
    struct overlaps overlaps;
    uint64_t line; /* number of the present one, from 1 */
    bool all_contend;
    /* The record, as it must be; and the last update, as long as nobody has seen it there. */
    uint64_t counter;
    bool unseen;
    uint64_t before;
    struct who writer;
    uint64_t writer_line;
    bool writer_killed; /* there */
    struct torn *torn;
    size_t torn_count, torn_room;
};

static struct thread_trace *thread_of(struct check *c, struct who who)
{
    if (who.process >= c->v->processes || who.thread >= c->v->threads)
        return NULL;
    return &c->threads[who.process * c->v->threads + who.thread];
}

static void add_sample(struct samples *s, uint64_t us)
{
    s->us = grow(s->us, s->count, &s->room, sizeof *s->us);
    s->us[s->count++] = us < UINT32_MAX ? (uint32_t)us : UINT32_MAX;
}

static void begin(struct check *c, const struct witness_line *l)
{
    struct verdict *v = c->v;
    v->processes = (unsigned)l->value;
    v->threads = (unsigned)l->found;
    v->process = calloc(v->processes + 1, sizeof *v->process);
    c->threads = calloc((size_t)v->processes * v->threads + 1, sizeof *c->threads);
    if (!v->process || !c->threads) {
        fputs("contention: no memory to check the journal\n", stderr);
        exit(1);
    }
}

/* --- the record ---------------------------------------------------------------------------------
 */

/* Somebody found this value in the record. */
static void found(struct check *c, uint64_t value)
{
    if (value != c->counter && c->unseen && value == c->before) {
        c->torn = grow(c->torn, c->torn_count, &c->torn_room, sizeof *c->torn);
        c->torn[c->torn_count++] =
            (struct torn){.who = c->writer, .line = c->writer_line, .killed = c->writer_killed};
    } else if (value != c->counter) {
        c->v->corrupt++;
    }
    c->counter = value;
    c->unseen = false;
}

static void written(struct check *c, const struct witness_line *l, struct thread_trace *t)
{
    c->v->updates++;
    if (!t->inside || l->value != t->seen + 1)
        c->v->corrupt++;
    c->before = c->counter;
    c->counter = l->value;
    c->unseen = true;
    c->writer = l->who;
    c->writer_line = c->line;
    c->writer_killed = false;
    if (t->inside)
        c->overlaps.all[t->interval].write = c->line;
}

/* --- one thread ---------------------------------------------------------------------------------
 */

static void enter(struct check *c, const struct witness_line *l, struct thread_trace *t)
{
    c->v->acquisitions++;
    c->v->process[l->who.process].acquisitions++;
    add_sample(&c->v->process[l->who.process].wait, l->us);
    t->in_start += c->all_contend;
    t->inside = true;
    t->refused = false;
    t->seen = l->found;
    t->known = true;
    t->interval = overlap_begin(&c->overlaps, c->line, l->kind == WITNESS_ENTER);
}

static void refuse(struct check *c, const struct witness_line *l, struct thread_trace *t)
{
    if (!t->inside) /* refused when it entered already */
        enter(c, l, t);
    t->refused = true;
    c->v->refused_stale++;
}

static void leave(struct check *c, const struct witness_line *l, struct thread_trace *t)
{
    if (t->inside)
        overlap_end(&c->overlaps, t->interval);
    else
        c->v->corrupt++;
    t->inside = false;
    add_sample(&c->v->process[l->who.process].hold, l->us);
}

enum { UNCONFIRMED = 15 /* ZKL_EUNCONFIRMED, without its sign */ };

/* After this unlock the lock's own word is known: 0, and not confirmed, say that nobody else held before. */
static void freed(struct check *c, const struct witness_line *l, const struct thread_trace *t)
{
    if (l->value && l->value != UNCONFIRMED) {
        c->v->holds_lost++;
    } else if (t->known) {
        c->overlaps.all[t->interval].whole = true;
        c->v->unexplained += t->refused;
    }
}

static void step_thread(struct check *c, const struct witness_line *l)
{
    struct thread_trace *t = thread_of(c, l->who);
    if (!t || l->who.life != t->life) {
        c->v->corrupt++; /* among these: a dead process that writes */
        return;
    }
    if (l->kind == WITNESS_ENTER || l->kind == WITNESS_WRITE || l->kind == WITNESS_STALE)
        found(c, l->found);
    if (l->kind == WITNESS_ENTER)
        enter(c, l, t);
    else if (l->kind == WITNESS_WRITE)
        written(c, l, t);
    else if (l->kind == WITNESS_STALE)
        refuse(c, l, t);
    else if (l->kind == WITNESS_LEAVE)
        leave(c, l, t);
    else if (l->kind == WITNESS_FREED)
        freed(c, l, t);
    t->last_line = c->line;
    if (t->known && (t->inside || l->kind == WITNESS_LEAVE))
        c->overlaps.all[t->interval].last = c->line;
}

/* --- the parent's lines -------------------------------------------------------------------------
 */

/* A thread that got no further than to the journal's line: whether the record has the update is
 * known only to those who look, before this line or after it. */
static void bury_thread(struct check *c, struct who who, struct thread_trace *t)
{
    if (c->unseen && c->writer_line == t->last_line)
        c->writer_killed = true;
    for (size_t i = 0; i < c->torn_count; i++) {
        const struct who *w = &c->torn[i].who;
        if (w->process == who.process && w->life == who.life && w->thread == who.thread)
            c->torn[i].killed = c->torn[i].line == t->last_line;
    }
    if (t->inside)
        overlap_end(&c->overlaps, t->interval);
    t->inside = t->known = false;
    t->life++;
}

static void bury(struct check *c, const struct witness_line *l)
{
    if (l->who.process >= c->v->processes) {
        c->v->corrupt++;
        return;
    }
    c->v->kills++;
    for (unsigned i = 0; i < c->v->threads; i++) {
        struct who who = {l->who.process, l->who.life, i};
        bury_thread(c, who, thread_of(c, who));
    }
}

static void step(struct check *c, const struct witness_line *l)
{
    switch (l->kind) {
    case WITNESS_RUN:
        c->v->corrupt++; /* only the first line is one */
        break;
    case WITNESS_START:
        c->all_contend = true;
        break;
    case WITNESS_STOP:
        c->all_contend = false;
        break;
    case WITNESS_DONE:
        c->all_contend = false;
        step_thread(c, l);
        break;
    case WITNESS_KILLED:
        bury(c, l);
        break;
    case WITNESS_PAUSED:
        c->v->pauses++;
        break;
    case WITNESS_WOKEN:
    case WITNESS_KINDS:
        break;
    case WITNESS_ENTER:
    case WITNESS_WRITE:
    case WITNESS_STALE:
    case WITNESS_LEAVE:
    case WITNESS_FREED:
        step_thread(c, l);
        break;
    }
}

/* --- the verdict --------------------------------------------------------------------------------
 */

static double fairness(const struct check *c)
{
    size_t n = (size_t)c->v->processes * c->v->threads;
    double sum = 0;
    double squares = 0;
    for (size_t i = 0; i < n; i++) {
        double x = (double)c->threads[i].in_start;
        sum += x;
        squares += x * x;
    }
    return squares > 0 ? sum * sum / ((double)n * squares) : 0;
}

static int by_size(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a;
    uint32_t y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

static void sort(struct samples *s)
{
    if (s->count)
        qsort(s->us, s->count, sizeof *s->us, by_size);
}

uint32_t samples_percentile(const struct samples *s, unsigned percent)
{
    if (!s->count)
        return 0;
    size_t rank = (s->count * percent + 99) / 100;
    return s->us[rank - 1];
}

static int judge(struct check *c, int record_fd)
{
    struct verdict *v = c->v;
    struct record record;
    if (record_read(record_fd, &record)) {
        fprintf(stderr, "contention: record: %s\n", strerror(errno));
        return -1;
    }
    found(c, record.counter);
    for (size_t i = 0; i < c->torn_count; i++)
        v->torn += c->torn[i].killed;
    v->counter = record.counter;
    v->lost_updates = (int64_t)(v->updates - v->torn - v->counter);
    v->overlaps = overlap_count(&c->overlaps);
    v->fairness = fairness(c);
    for (unsigned i = 0; i < v->processes; i++) {
        sort(&v->process[i].wait);
        sort(&v->process[i].hold);
    }
    return 0;
}

static int complain(const struct check *c, const char *why)
{
    fprintf(stderr, "contention: journal, line %llu: %s\n", (unsigned long long)c->line, why);
    return -1;
}

static int replay(struct check *c, FILE *journal)
{
    struct witness_line l;
    for (int rc; (rc = witness_read(journal, &l)) != 0;) {
        c->line++;
        if (rc < 0)
            return complain(c, "not a line of a journal");
        if (c->line == 1 && l.kind != WITNESS_RUN)
            return complain(c, "not the beginning of a journal");
        if (c->line == 1)
            begin(c, &l);
        else
            step(c, &l);
    }
    return ferror(journal) || !c->line ? complain(c, "cannot be read") : 0;
}

int checker_run(struct verdict *verdict, int journal, int record)
{
    *verdict = (struct verdict){0};
    struct check c = {.v = verdict};
    FILE *file = witness_open(journal);
    if (!file) {
        fprintf(stderr, "contention: journal: %s\n", strerror(errno));
        return -1;
    }
    int rc = replay(&c, file);
    if (!rc)
        rc = judge(&c, record);
    fclose(file);
    free(c.threads);
    free(c.torn);
    overlap_free(&c.overlaps);
    return rc;
}

void checker_free(struct verdict *verdict)
{
    for (unsigned i = 0; verdict->process && i < verdict->processes; i++) {
        free(verdict->process[i].wait.us);
        free(verdict->process[i].hold.us);
    }
    free(verdict->process);
}
