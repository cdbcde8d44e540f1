/* SPDX-License-Identifier: Apache-2.0 */
/* The record that everybody updates, behind its fence, and the journal of what everybody did.
 *
 * The fence compares and stores tokens under a short file lock of its own: whoever comes with a
 * token older than the one stored is refused. The token is stored already when a holder enters, not
 * only when it writes: a fence that looked at writes alone would still let an old holder write
 * between a newer holder's read and its write. Without the lock there are no tokens, all are 0, and
 * all are accepted.
 *
 * The journal shares no code with the library under test. Every line is one O_APPEND write, so the
 * order of the lines is the order of the writes. Every line has the same length, a divisor of the
 * page size: a kill can cut a write short only where a page ends, and no line lies across two pages.
 * witness.py says what the lines mean. */
#ifndef CONTENTION_FENCE_H
#define CONTENTION_FENCE_H

#include <stdint.h>

/* A thread of one life of one process: a killed process is followed by the next life. */
struct who {
    unsigned process, life, thread;
};

/* One thread's access to record and journal, through descriptors of its own: a flock belongs to the
 * open file, so threads that shared one would not exclude each other. */
struct fence {
    int record, journal;
    struct who who;
    uint64_t epoch_us;
    /* Called between the journal's line and the record's write, for a kill just there. */
    void (*between)(void *arg);
    void *arg;
};

enum fence_answer { FENCE_ACCEPTED, FENCE_REFUSED, FENCE_FAILED /* errno */ };

/* The same clock in all processes of this machine. */
uint64_t clock_us(void);

/* Open both files through /proc/self/fd: a new open file each, even if the names are removed. 0,
 * or -1 and errno. */
int fence_open(struct fence *fence, int journal, int record);
/* The lock was granted after wait_us: store the token and read the counter. */
enum fence_answer fence_enter(struct fence *fence, uint64_t token, uint64_t wait_us,
                              uint64_t *counter);
/* Write the counter, journal first. */
enum fence_answer fence_write(struct fence *fence, uint64_t token, uint64_t counter);
/* A line that is no access to the record. 0, or -1 and errno. */
int fence_note(struct fence *fence, const char *kind, uint64_t token, uint64_t value, uint64_t us);

#endif
