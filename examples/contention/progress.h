/* SPDX-License-Identifier: Apache-2.0 */
/* What is going on, drawn again and again while it goes on: on a terminal only. */
#ifndef CONTENTION_PROGRESS_H
#define CONTENTION_PROGRESS_H

#include "crew.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct progress {
    const struct crew *crew;
    FILE *out;
    bool draws; /* else nothing is drawn */
    bool colours;
    int lines; /* that are drawn, above the cursor */
    uint64_t begin_us;
    uint64_t next_us;
    /* For the rate: of the last second or so. */
    uint64_t rate_us;
    uint64_t rate_acquired;
    uint64_t rate;
};

/* The crew has started. With JSON on the standard output all this is printed on the standard
 * error. */
void progress_begin(struct progress *progress, const struct crew *crew);
void progress_step(struct progress *progress);
/* A line that stays, above what is drawn. */
void progress_say(struct progress *progress, const char *line);
/* Wipe out what is drawn. */
void progress_end(struct progress *progress);

#endif
