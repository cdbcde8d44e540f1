/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of zklock run. */
#ifndef ZKLOCK_TOOL_RUN_OPTIONS_H
#define ZKLOCK_TOOL_RUN_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "claim.h"
#include "settings.h"

struct run_options {
    struct settings settings;
    struct claim_options locks;
    int64_t wait_ms; /* -1: as long as it takes; 0: do not wait */
    int conflict;    /* exit status when it is not acquired */
    bool verbose;
    int64_t not_within_ms; /* 0: runs are not recorded */
    bool retry_failed;
    int skip;       /* exit status when it is too early */
    char **command; /* ends with a NULL */
    char *shell[4]; /* the command of -c */
};

extern const char run_usage[];

/* 0, or the exit status after a sentence. argv's words change their order. */
int run_options_parse(struct run_options *options, int argc, char **argv);

#endif
