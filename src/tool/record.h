/* SPDX-License-Identifier: Apache-2.0 */
/* The node with the record of the last run, beside the lock path: read, written, removed. Place
 * and text are in docs/wire-format.md, "The last run"; what is decided by it in last_run.h. */
#ifndef ZKLOCK_TOOL_RECORD_H
#define ZKLOCK_TOOL_RECORD_H

#include "ask.h"
#include "claim.h"
#include "last_run.h"

/* The record of one run. Zero it, and set the borrowed fields. */
struct record {
    struct claim *claim; /* of one mutex */
    int64_t within_ms;
    bool retry_failed, verbose;
    struct zkl_cancel *cancel; /* set: no run may begin */

    struct last_run run;
    char text[LAST_RUN_TEXT]; /* of its beginning, which no other run has */
    /* What the record then says of the run before, whose beginning is in it. Empty: nothing that
     * counts. It is written back if the command is not started. */
    char former[LAST_RUN_TEXT];
    int64_t begun_ns;   /* by this host's clock */
    bool sent, written; /* the beginning: it may be in the record; it is */
};

/* The lock is held: was the last run long enough ago? Then one transaction checks the lock and
 * records the beginning: 0. RECORD_EARLY: it was not; nothing is changed. RECORD_STOPPED: by cancel;
 * a beginning that may have been recorded by then is marked as not started. Else the exit status
 * after a sentence. */
enum { RECORD_EARLY = -1, RECORD_STOPPED = -2 };
int record_begin(struct record *record);
/* After a record_begin that returned 0: record the end. Before the lock is released. */
void record_end(struct record *record, enum run_end end, int value);

/* The last run under the lock at path. False, in silence: it can't be read. */
bool record_read(struct asker *asker, const char *path, struct last_run *run);
/* Remove it, or, where an ACL forbids that, empty it. 0, or the exit status after a sentence. */
int record_forget(struct asker *asker, const char *path);

#endif
