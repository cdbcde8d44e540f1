/* SPDX-License-Identifier: Apache-2.0 */
/* Goal: the checker distinguishes each kind of wrong from what only looks like it.
 * Method: journals written by hand, with the record they end in, and the verdict that is right. */
#include "checker.h"
#include "files.h"
#include "witness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* One line: kind, process (each has one thread, in its first life), token, value, found. */
struct said {
    enum witness_kind kind;
    unsigned process;
    uint64_t token;
    uint64_t value;
    uint64_t found;
};

struct story {
    const char *name;
    struct said said[16];
    uint64_t counter; /* of the record in the end */
    int64_t lost_updates;
    uint64_t overlaps, refused_stale, unexplained, torn, corrupt;
};

enum { UNCONFIRMED = 15, LOST = 16, DOUBT = 28 /* error codes of unlock */ };

/* clang-format off */
#define ENTER(p, token, found) {WITNESS_ENTER, p, token, 0, found}
#define WRITE(p, token, value, found) {WITNESS_WRITE, p, token, value, found}
#define STALE(p, token, value, found) {WITNESS_STALE, p, token, value, found}
#define LEAVE(p, token) {WITNESS_LEAVE, p, token, 0, 0}
#define FREED(p, token, code) {WITNESS_FREED, p, token, code, 0}
#define KILLED(p) {WITNESS_KILLED, p, 0, 0, 0}
#define GONE(p, token, code) LEAVE(p, token), FREED(p, token, code)
#define CYCLE(p, token, found) \
    ENTER(p, token, found), WRITE(p, token, (found) + 1, found), GONE(p, token, 0)
/* clang-format on */

static const struct story stories[] = {
    {"two updates, one after the other", {CYCLE(0, 1, 0), CYCLE(1, 2, 1)}, .counter = 2},
    {"the record lacks the last update",
     {CYCLE(0, 1, 0), CYCLE(1, 2, 1)},
     .counter = 1,
     .lost_updates = 1},
    {"both read before either wrote",
     {ENTER(0, 1, 0), ENTER(1, 2, 0), WRITE(0, 1, 1, 0), WRITE(1, 2, 1, 1), GONE(0, 1, 0),
      GONE(1, 2, 0)},
     .counter = 1,
     .lost_updates = 1,
     .overlaps = 1},
    {"the same without unlocks: nobody vouches, but the fence accepted both",
     {ENTER(0, 0, 0), ENTER(1, 0, 0), WRITE(0, 0, 1, 0), LEAVE(0, 0), WRITE(1, 0, 1, 1),
      LEAVE(1, 0)},
     .counter = 1,
     .lost_updates = 1,
     .overlaps = 1},
    {"killed between journal and record",
     {ENTER(0, 1, 0), WRITE(0, 1, 1, 0), KILLED(0), CYCLE(1, 2, 0)},
     .counter = 1,
     .torn = 1},
    {"the same, and the kill was noted late",
     {ENTER(0, 1, 0), WRITE(0, 1, 1, 0), ENTER(1, 2, 0), KILLED(0), WRITE(1, 2, 1, 0),
      GONE(1, 2, 0)},
     .counter = 1,
     .torn = 1},
    {"the same, and nobody came after",
     {ENTER(0, 1, 0), WRITE(0, 1, 1, 0), KILLED(0)},
     .counter = 0,
     .torn = 1},
    {"killed just after the record was written",
     {ENTER(0, 1, 0), WRITE(0, 1, 1, 0), KILLED(0), CYCLE(1, 2, 1)},
     .counter = 2},
    {"an update vanished though its writer lived",
     {CYCLE(0, 1, 0), CYCLE(1, 2, 0)},
     .counter = 1,
     .lost_updates = 1},
    {"an update vanished, its writer was killed only later",
     {CYCLE(0, 1, 0), KILLED(0), CYCLE(1, 2, 0)},
     .counter = 1,
     .lost_updates = 1},
    {"a paused holder was refused and heard that it had lost the lock",
     {ENTER(0, 1, 0), CYCLE(1, 2, 0), STALE(0, 1, 1, 1), GONE(0, 1, LOST)},
     .counter = 1,
     .refused_stale = 1},
    {"a holder was refused and heard that it had held the lock all the time",
     {ENTER(0, 1, 0), CYCLE(1, 2, 0), STALE(0, 1, 1, 1), GONE(0, 1, 0)},
     .counter = 1,
     .overlaps = 1,
     .refused_stale = 1,
     .unexplained = 1},
    {"a paused holder was refused and heard that it may have lost the lock",
     {ENTER(0, 1, 0), CYCLE(1, 2, 0), STALE(0, 1, 1, 1), GONE(0, 1, DOUBT)},
     .counter = 1,
     .refused_stale = 1},
    {"a paused holder was refused and heard no more than that no answer came",
     {ENTER(0, 1, 0), CYCLE(1, 2, 0), STALE(0, 1, 1, 1), GONE(0, 1, UNCONFIRMED)},
     .counter = 1,
     .overlaps = 1,
     .refused_stale = 1,
     .unexplained = 1},
    {"a holder came too late to enter",
     {CYCLE(1, 2, 0), STALE(0, 1, 0, 1), GONE(0, 1, LOST)},
     .counter = 1,
     .refused_stale = 1},
    {"tokens decreased",
     {CYCLE(1, 2, 0), STALE(0, 1, 0, 1), GONE(0, 1, 0)},
     .counter = 1,
     .refused_stale = 1,
     .unexplained = 1},
    {"a lost holder was late to leave",
     {ENTER(0, 1, 0), WRITE(0, 1, 1, 0), ENTER(1, 2, 1), GONE(0, 1, LOST), WRITE(1, 2, 2, 1),
      GONE(1, 2, 0)},
     .counter = 2},
    {"the next one was in before the holder had left",
     {ENTER(0, 1, 0), WRITE(0, 1, 1, 0), ENTER(1, 2, 1), GONE(0, 1, 0), WRITE(1, 2, 2, 1),
      GONE(1, 2, 0)},
     .counter = 2,
     .overlaps = 1},
    {"a killed holder does not stay inside",
     {ENTER(0, 1, 0), WRITE(0, 1, 1, 0), CYCLE(1, 2, 1), KILLED(0)},
     .counter = 2},
    {"the dead write", {KILLED(0), ENTER(0, 1, 0)}, .counter = 0, .corrupt = 1},
    {"the record holds what nobody wrote",
     {CYCLE(0, 1, 0), CYCLE(1, 2, 7)},
     .counter = 8,
     .lost_updates = -6,
     .corrupt = 1},
};

static void tell(const struct files *f, const struct story *s)
{
    char text[128];
    int n = snprintf(text, sizeof text, "counter=%llu token=0 writer=0.0.0",
                     (unsigned long long)s->counter);
    struct witness_line line = {.kind = WITNESS_RUN, .value = 2, .found = 1};
    memset(text + n, ' ', sizeof text - (size_t)n);
    if (witness_append(f->journal, &line) || write(f->record, text, sizeof text) < 0)
        abort();
    for (size_t i = 0; i < 16 && s->said[i].kind != WITNESS_RUN; i++) {
        const struct said *x = &s->said[i];
        line =
            (struct witness_line){x->kind, {x->process, 0, 0}, x->token, x->value, x->found, 0, 0};
        if (witness_append(f->journal, &line))
            abort();
    }
}

static int differs(const char *what, int64_t is, int64_t should)
{
    if (is != should)
        printf("  %s is %lld, should be %lld\n", what, (long long)is, (long long)should);
    return is != should;
}

static int judged_wrong(const struct story *s)
{
    struct files files;
    struct verdict v;
    int wrong = 1;
    if (files_make(&files, NULL))
        return 1;
    tell(&files, s);
    if (checker_run(&v, files.journal, files.record) == 0)
        wrong = differs("lost_updates", v.lost_updates, s->lost_updates) +
                differs("overlaps", (int64_t)v.overlaps, (int64_t)s->overlaps) +
                differs("refused_stale", (int64_t)v.refused_stale, (int64_t)s->refused_stale) +
                differs("unexplained", (int64_t)v.unexplained, (int64_t)s->unexplained) +
                differs("torn", (int64_t)v.torn, (int64_t)s->torn) +
                differs("corrupt", (int64_t)v.corrupt, (int64_t)s->corrupt);
    checker_free(&v);
    files_close(&files);
    return wrong;
}

int main(void)
{
    int failures = 0;
    for (size_t i = 0; i < sizeof stories / sizeof *stories; i++) {
        int wrong = judged_wrong(&stories[i]);
        printf("%s: %s\n", wrong ? "FAILED" : "passed", stories[i].name);
        failures += wrong != 0;
    }
    return failures ? 1 : 0;
}
