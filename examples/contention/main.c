/* SPDX-License-Identifier: Apache-2.0 */
/* contention: many processes and threads, one lock, one record, and a checker that believes none of
 * them.
 *
 * Each thread locks, reads the record's counter, works a moment, writes the counter plus one and
 * unlocks. What happened is written down by a witness that knows nothing of the lock (witness.h),
 * the record has a fence that refuses old tokens (record.h), and in the end a checker plays the
 * journal once more (checker.h). */
#include "chance.h"
#include "checker.h"
#include "crew.h"
#include "mischief.h"
#include "picture.h"
#include "progress.h"
#include "report.h"

#include <signal.h>
#include <stdio.h>
#include <unistd.h>

enum { TURN_MS = 100, TURN_MISCHIEF_MS = 2, STALL_US = 60000000 };

/* A run by count has no other end if the lock stands still. */
static int look_for_stall(struct crew *crew, uint64_t *updates, uint64_t *since_us)
{
    uint64_t now = clock_us();
    if (crew_updates(crew) != *updates) {
        *updates = crew_updates(crew);
        *since_us = now;
    }
    if (now - *since_us < STALL_US)
        return 0;
    fprintf(stderr, "contention: no update for %d s: given up\n", STALL_US / 1000000);
    crew->failed = true;
    return -1;
}

static bool is_over(const struct crew *crew, uint64_t end_us)
{
    return crew->running == 0 || (crew->options->seconds && clock_us() >= end_us);
}

/* Until the time is over, or all have made their counts; then until no process is stopped any more.
 */
static int supervise(struct crew *crew, struct progress *progress)
{
    struct mischief mischief;
    uint64_t updates = 0;
    uint64_t since_us = clock_us();
    uint64_t end_us = since_us + (uint64_t)crew->options->seconds * 1000000;
    int turn_ms = crew->options->crash || crew->options->pause ? TURN_MISCHIEF_MS : TURN_MS;
    mischief_init(&mischief, crew);
    for (;;) {
        if (is_over(crew, end_us) && mischief_rest(&mischief))
            return 0;
        if (crew_turn(crew, turn_ms) || look_for_stall(crew, &updates, &since_us) ||
            mischief_step(&mischief))
            return -1;
        if (mischief.news[0])
            progress_say(progress, mischief.news);
        mischief.news[0] = '\0';
        progress_step(progress);
    }
}

static int draw(const struct crew *crew)
{
    struct timeline timeline;
    int rc = timeline_read(&timeline, crew->files.journal, crew->options->lock);
    if (!rc)
        rc = picture_draw(crew->options, &timeline);
    timeline_free(&timeline);
    return rc;
}

static int judge(struct crew *crew)
{
    struct verdict verdict;
    int status = 1;
    if (checker_run(&verdict, crew->files.journal, crew->files.record) == 0 &&
        report_verdict(crew->options, &verdict, crew->odd))
        status = 0;
    checker_free(&verdict);
    return crew->options->svg && draw(crew) ? 1 : status;
}

static int run(struct crew *crew)
{
    struct progress progress;
    int rc = crew_start(crew);
    if (!rc) {
        progress_begin(&progress, crew);
        rc = supervise(crew, &progress);
        progress_end(&progress);
    }
    if (!rc)
        rc = crew_stop(crew);
    crew_kill(crew); /* nobody is left, or something went wrong */
    if (!crew->started || crew->signal)
        return 1;
    /* Even of a run that went wrong the verdict is worth to be known. */
    return judge(crew) || rc;
}

int main(int argc, char **argv)
{
    struct options options;
    struct crew crew;
    int rc = options_parse(&options, argc, argv);
    if (rc)
        return rc > 0 ? 0 : 2;
    report_head(&options);
    int status = crew_open(&crew, &options) ? 1 : run(&crew);
    crew_close(&crew);
    if (crew.signal) {
        fprintf(stderr, "contention: ended by signal %d\n", crew.signal);
        raise(crew.signal);
    }
    return status;
}
