/* SPDX-License-Identifier: Apache-2.0 */
/* ZKL_TEST_LONG=1: a test at its full length, else in short. */
#ifndef ZKTEST_LENGTH_H
#define ZKTEST_LENGTH_H

#include <stdlib.h>
#include <string.h>

static inline long test_length(long full, long brief)
{
    const char *text = getenv("ZKL_TEST_LONG");

    return text && strcmp(text, "1") == 0 ? full : brief;
}

#endif
