/* SPDX-License-Identifier: Apache-2.0 */
/* How the record of calls (calls.h) says what a call returned: in the form of tests/linear/calls.py. */
#ifndef ZKTEST_CALL_RESULTS_H
#define ZKTEST_CALL_RESULTS_H

#include <zklock/zklock.h>

#include "calls.h"
#include "tool/net.h"

/* The code, and with 0 what was granted. */
static inline void calls_write_grants(int thread, int rc, const struct zkl_grant *grants, int count)
{
    struct calls_line line = calls_line('!', net_boot_ns(), thread);

    calls_add(&line, " %d", rc);
    for (int i = 0; rc == 0 && i < count; i++)
        calls_add(&line, " %llx:%lld", (unsigned long long)grants[i].token,
                  (long long)grants[i].hold_count);
    calls_write(&line);
}

/* The codes of all members. */
static inline void calls_write_codes(int thread, const int *codes, int count)
{
    struct calls_line line = calls_line('!', net_boot_ns(), thread);

    for (int i = 0; i < count; i++)
        calls_add(&line, " %d", codes[i]);
    calls_write(&line);
}

#endif
