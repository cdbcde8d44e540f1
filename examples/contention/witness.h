/* SPDX-License-Identifier: Apache-2.0 */
/* The witness: one journal of what every process and thread did, in the order in which it happened.
 *
 * It shares no code with the library under test. Every line is one O_APPEND write, so the order of
 * the lines is the order of the writes. Every line has the same length, a divisor of the page size:
 * a kill can cut a write short only where a page ends, and no line lies across two pages. */
#ifndef CONTENTION_WITNESS_H
#define CONTENTION_WITNESS_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum { WITNESS_LINE_SIZE = 128 };

enum witness_kind {
    WITNESS_RUN,    /* value: processes, found: threads of each */
    WITNESS_START,  /* all threads are ready */
    WITNESS_STOP,   /* the time is over */
    WITNESS_ENTER,  /* the lock was granted; found: the counter read; us: the wait */
    WITNESS_WRITE,  /* the record is about to get value; found: what it holds until then */
    WITNESS_STALE,  /* the fence refused the token; value: the refused one, 0 when entering */
    WITNESS_LEAVE,  /* before the unlock; us: since the grant */
    WITNESS_FREED,  /* after the unlock; value: its error code without the sign */
    WITNESS_DONE,   /* a thread has made its count of updates */
    WITNESS_KILLED, /* by the parent, once it has waited for the dead process */
    WITNESS_PAUSED, /* by the parent, once the process has stopped */
    WITNESS_WOKEN,  /* by the parent, before the process goes on */
    WITNESS_KINDS
};

/* A thread of one life of one process: a killed process is followed by the next life. */
struct who {
    unsigned process;
    unsigned life;
    unsigned thread;
};

struct witness_line {
    enum witness_kind kind;
    struct who who;
    uint64_t token;
    uint64_t value;
    uint64_t found;
    uint64_t us;
    uint64_t at_us; /* since the run's beginning */
};

/* 0, or -1 and errno. */
int witness_append(int journal, const struct witness_line *line);
/* The journal from its beginning, or NULL and errno. It is closed with fclose. */
FILE *witness_open(int journal);
/* 1: a line. 0: the end, or ferror says why not. -1: not a line of a journal. */
int witness_read(FILE *journal, struct witness_line *line);

#endif
