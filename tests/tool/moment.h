/* SPDX-License-Identifier: Apache-2.0 */
/* The moment in which zklock's guard has read /proc and not yet signalled anybody: moment.c, loaded into
 * it, holds the guard there until the test says so. */
#ifndef ZKTEST_TOOL_MOMENT_H
#define ZKTEST_TOOL_MOMENT_H

#include <stdatomic.h>

#include "mapped.h"

#define MOMENT_VARIABLE "ZKL_TEST_MOMENT_FILE" /* where they meet */

struct moment {
    atomic_int reached, over;
};

/* As mapped_file. */
static inline struct moment *moment_map(const char *name)
{
    return mapped_file(name, sizeof(struct moment));
}

#endif
