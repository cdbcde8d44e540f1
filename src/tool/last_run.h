/* SPDX-License-Identifier: Apache-2.0 */
/* The last run of a command under a lock, as its record is in ZooKeeper (docs/wire-format.md, "The
 * last run"), and whether another one would be too early. Pure: it sends no request and reads no
 * clock. */
#ifndef ZKLOCK_TOOL_LAST_RUN_H
#define ZKLOCK_TOOL_LAST_RUN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Appended to the lock's path: the node with the record, beside the lock path. */
#define LAST_RUN_SUFFIX ".last-run"

enum { LAST_RUN_HOST = 256, LAST_RUN_TEXT = 1024 };

enum run_end {
    RUN_NEVER,       /* there was no run, or its record was emptied */
    RUN_UNENDED,     /* it still runs, or its end could not be written: its host died */
    RUN_EXITED,      /* value: the command's status */
    RUN_KILLED,      /* value: the signal */
    RUN_LOST,        /* the lock was lost, or about to be */
    RUN_NOT_STARTED, /* the lock was lost before the command began */
};

struct last_run {
    enum run_end end;
    int value;
    int64_t begun_ms; /* the leader's wall clock, milliseconds of 1970 */
    int64_t took_ms;  /* by the host's own clock; not of RUN_UNENDED */
    char host[LAST_RUN_HOST];
    int64_t pid;
    uint64_t token;
};

/* The node's data, with a final NUL. Returns its length without that. */
size_t last_run_write(const struct last_run *run, char text[LAST_RUN_TEXT]);
/* The same for a record that was read as text: one of a run without an end gets its beginning, which
 * the node's mtime is no more once the text is written again. Returns its length, which may be
 * LAST_RUN_TEXT or more: then it did not fit. */
size_t last_run_with_beginning(const struct last_run *run, const char *read,
                               char text[LAST_RUN_TEXT]);
/* The contrary. mtime_ms is the node's: of a run without an end it is the beginning. False if that
 * is no record of a version that is known. */
bool last_run_read(struct last_run *run, const char *text, size_t length, int64_t mtime_ms);

/* The length of the lock's path in a node's path, or 0 if it is no record's. */
size_t last_run_lock_length(const char *node_path);

enum verdict {
    VERDICT_RUN,
    VERDICT_EARLY,
    VERDICT_RUN_CLOCK_BACK, /* the leader's clock has gone back by more than within_ms */
};

/* now_ms and run->begun_ms: what the ensemble stamped. */
enum verdict last_run_verdict(const struct last_run *run, int64_t now_ms, int64_t within_ms,
                              bool retry_failed);

/* "exit", "signal", "lost", "not-started"; of the others NULL. Static memory. */
const char *last_run_end_word(enum run_end end);
/* The same with the value: "exit 0". Of the others "no end". */
const char *last_run_describe_end(const struct last_run *run, char text[32]);

#endif
