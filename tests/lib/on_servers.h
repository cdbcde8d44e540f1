/* SPDX-License-Identifier: Apache-2.0 */
/* The main of a program whose tests share real servers. */
#ifndef ZKTEST_ON_SERVERS_H
#define ZKTEST_ON_SERVERS_H

#include <stdio.h>

#include "check.h"
#include "zkserver.h"

/* 77 without java or the jars, which are named; else start, the tests as tests_main, stop. */
static inline int run_on_servers(int argc, char **argv, CMFixtureFunction start,
                                 CMFixtureFunction stop)
{
    char why[512];

    if (zks_available(why, sizeof why) != 0) {
        fprintf(stderr, "skipped: %s\n", why);
        return 77;
    }
    return tests_main(argc, argv, start, stop);
}

#endif
