/* SPDX-License-Identifier: Apache-2.0 */
/* The timeline: the journal of a run as bars and marks, one row for each thread, all lives of its
 * process together. */
#ifndef CONTENTION_TIMELINE_H
#define CONTENTION_TIMELINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum bar_kind { BAR_WAITING, BAR_HOLDING, BAR_STOPPED, BARS };
enum mark_kind { MARK_CRASH, MARK_PAUSE, MARK_REFUSED, MARKS };

/* Times are microseconds since the threads were started. */
struct bar {
    enum bar_kind kind;
    uint64_t from_us;
    uint64_t to_us;
};

struct mark {
    enum mark_kind kind;
    uint64_t at_us;
};

struct row {
    struct bar *bars;
    size_t bar_count, bar_room;
    struct mark *marks;
    size_t mark_count, mark_room;
};

struct timeline {
    unsigned processes;
    unsigned threads; /* of each process */
    uint64_t end_us;
    struct row *rows; /* processes x threads, the threads of a process together */
};

/* Without the lock nobody waits. 0, or -1 and one line on stderr if the journal cannot be read. */
int timeline_read(struct timeline *timeline, int journal, bool lock);
void timeline_free(struct timeline *timeline);

#endif
