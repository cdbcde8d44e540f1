/* SPDX-License-Identifier: Apache-2.0 */
/* The record that everybody updates, behind its fence.
 *
 * The fence compares and stores tokens under a short file lock of its own: whoever comes with a
 * token older than the one stored is refused. The token is stored already when a holder enters, not
 * only when it writes: a fence that looked at writes alone would still let an old holder write
 * between a newer holder's read and its write. Without the lock there are no tokens, all are 0, and
 * all are accepted. */
#ifndef CONTENTION_RECORD_H
#define CONTENTION_RECORD_H

#include "witness.h"

#include <stdint.h>

struct record {
    uint64_t counter;
    uint64_t token;
    struct who writer;
};

/* One thread's access to record and journal, through descriptors of its own: a flock belongs to the
 * open file, so threads that shared one would not exclude each other. */
struct fence {
    int record;
    int journal;
    struct who who;
    uint64_t epoch_us;
    /* Called between the journal's line and the record's write, for a kill just there. */
    void (*between)(void *arg);
    void *arg;
};

enum fence_answer { FENCE_ACCEPTED, FENCE_REFUSED, FENCE_FAILED /* errno */ };

/* Open both files through /proc/self/fd: a new open file each, even if the names are removed. 0,
 * or -1 and errno. */
int fence_open(struct fence *fence, int journal, int record, struct who who, uint64_t epoch_us);
void fence_close(struct fence *fence);

/* The lock was granted after wait_us: store the token and read the counter. */
enum fence_answer fence_enter(struct fence *fence, uint64_t token, uint64_t wait_us,
                              uint64_t *counter);
/* Write the counter, journal first. */
enum fence_answer fence_write(struct fence *fence, uint64_t token, uint64_t counter);
/* A line that is no access to the record. 0, or -1 and errno. */
int fence_note(struct fence *fence, struct witness_line line);

/* One read of the whole record: 0, or -1 and errno. An empty file is a record of zeros. */
int record_read(int fd, struct record *record);

#endif
