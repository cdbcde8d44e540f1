/* SPDX-License-Identifier: Apache-2.0 */
/* One forked process: a client of its own, one mutex handle, and threads that share both. */
#ifndef CONTENTION_PROCESS_H
#define CONTENTION_PROCESS_H

#include "board.h"
#include "files.h"
#include "options.h"

#include <zklock/zklock.h>

struct process {
    const struct options *options;
    const struct files *files;
    struct board *board;
    struct lines lines;
    unsigned number;
    unsigned life;
    int ended;                 /* eventfd: counts threads that have ended */
    struct zkl_client *client; /* NULL without the lock, as are the next two */
    struct zkl_mutex *mutex;
    struct zkl_cancel *cancel;
};

/* The whole life of a child; returns its exit status. */
int process_run(struct process *process);

#endif
