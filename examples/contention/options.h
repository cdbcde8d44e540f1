/* SPDX-License-Identifier: Apache-2.0 */
/* What the command line asks for. */
#ifndef CONTENTION_OPTIONS_H
#define CONTENTION_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

enum { PROCESSES_MAX = 64, THREADS_MAX = 64 };

struct options {
    int processes;
    int threads;         /* of each process */
    int seconds;         /* 0: the count ends the run */
    uint64_t count;      /* updates of each thread; 0: the time ends the run */
    const char *servers; /* NULL only without the lock */
    const char *path;
    int session_timeout_ms;
    uint64_t seed;
    bool lock;
    bool crash;
    bool pause;
    int work_us;         /* between read and write */
    int kills_min;       /* fewer kills than these make a run with crashes fail */
    const char *keep;    /* folder for journal and record, or NULL: they leave no trace */
    const char *summary; /* file that the final line is added to, or NULL */
    const char *svg;     /* file for the picture, or NULL */
    bool json;
};

/* 0: run. 1: --help was answered. -1: one line on stderr says what is wrong and what to do. */
int options_parse(struct options *options, int argc, char **argv);

#endif
