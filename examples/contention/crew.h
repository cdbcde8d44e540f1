/* SPDX-License-Identifier: Apache-2.0 */
/* The parent's side: forks the processes, takes in their messages, and sees to it that they end. */
#ifndef CONTENTION_CREW_H
#define CONTENTION_CREW_H

#include "board.h"
#include "files.h"
#include "options.h"

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

struct member {
    pid_t pid; /* 0: not running */
    unsigned life;
    bool paused;
};

struct crew {
    const struct options *options;
    struct files files;
    struct board *board;
    struct lines lines;
    sigset_t old_mask;
    int signals; /* signalfd */
    struct member members[PROCESSES_MAX];
    int running;
    int ready;
    bool started;   /* all were ready and may begin */
    unsigned odd;   /* calls that returned what they should not */
    bool failed;    /* stderr has the reason already */
    int signal;     /* SIGINT and the like: end, and die of it */
    bool standing;  /* a holder stands at its station ... */
    struct who who; /* ... this one */
};

/* Make files, board, pipes; from here on signals are taken in crew_turn. 0, or -1 and one line on
 * stderr. */
int crew_open(struct crew *crew, const struct options *options);
/* Kill whatever still runs. */
void crew_kill(struct crew *crew);
/* The same, then give everything back. */
void crew_close(struct crew *crew);

/* Fork all processes and wait until all are ready, then let them start. 0, or -1 if the run must
 * end. */
int crew_start(struct crew *crew);
/* Wait at most timeout_ms for news from processes, for their ends and for signals, and take them
 * in. 0, or -1 if the run must end. */
int crew_turn(struct crew *crew, int timeout_ms);
/* Stop all, wait for their ends. 0, or -1 if one had to be killed or failed. */
int crew_stop(struct crew *crew);

/* Kill one process, wait until it is dead, write that down, start its next life. 0 or -1. */
int crew_replace(struct crew *crew, unsigned number);
/* Stop one process; returns once it has stopped. 0 or -1. */
int crew_pause(struct crew *crew, unsigned number);
void crew_wake(struct crew *crew, unsigned number);

uint64_t crew_updates(const struct crew *crew);
uint64_t crew_updates_of(const struct crew *crew, unsigned number);

#endif
