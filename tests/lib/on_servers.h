/* SPDX-License-Identifier: Apache-2.0 */
/* The main of a program whose tests share real servers. */
#ifndef ZKTEST_ON_SERVERS_H
#define ZKTEST_ON_SERVERS_H

#include <stdio.h>

#include "check.h"
#include "zkserver.h"

/* 77 without java or the jars, which are named; else start, the tests (argv[1]: only those of that name, with
 * wildcards), stop. */
static inline int run_on_servers(int argc, char **argv, const char *name,
                                 const struct CMUnitTest *tests, size_t n, CMFixtureFunction start,
                                 CMFixtureFunction stop)
{
    char why[512];

    if (zks_available(why, sizeof why) != 0) {
        fprintf(stderr, "skipped: %s\n", why);
        return 77;
    }
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return _cmocka_run_group_tests(name, tests, n, start, stop);
}

#endif
