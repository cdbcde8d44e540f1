/* SPDX-License-Identifier: Apache-2.0 */
/* The checker: reads journal and record after the run, plays everything once more, and judges.
 *
 * Each line of an access to the record says what the record held just then. So the checker
 * follows each update: it was made on the value before it, or on an older one and others'
 * updates were lost. If the record never held it, then its writer was killed between journal and
 * record, or it was lost. */
#ifndef CONTENTION_CHECKER_H
#define CONTENTION_CHECKER_H

#include <stddef.h>
#include <stdint.h>

struct samples {
    uint32_t *us;
    size_t count, room;
};

/* The nearest-rank percentile, once they are sorted; 0 if there are none. */
uint32_t samples_percentile(const struct samples *samples, unsigned percent);

struct process_verdict {
    uint64_t acquisitions;
    struct samples wait; /* sorted, as is the next */
    struct samples hold;
};

struct verdict {
    unsigned processes;
    unsigned threads;
    uint64_t acquisitions;
    uint64_t updates;     /* that the fence accepted */
    uint64_t torn;        /* of these: writer killed before the record had it */
    uint64_t counter;     /* what the record holds in the end */
    int64_t lost_updates; /* updates - torn - counter */
    uint64_t overlaps;
    uint64_t refused_stale;
    uint64_t unexplained; /* refused, although the unlock said that the hold had been whole */
    uint64_t holds_lost;  /* unlock said lost, or in doubt */
    uint64_t corrupt;     /* the record held what nobody had written, or a line makes no sense */
    unsigned kills;
    unsigned pauses;
    double fairness; /* Jain's index over threads, while all of them contend */
    struct process_verdict *process;
};

/* 0, or -1 and one line on stderr if the files cannot be read. */
int checker_run(struct verdict *verdict, int journal, int record);
void checker_free(struct verdict *verdict);

#endif
