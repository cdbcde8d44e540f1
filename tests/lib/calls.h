/* SPDX-License-Identifier: Apache-2.0 */
/* A record of calls of the library, for tests/linear: one line as each begins and as it returns, and
 * for each look at a window, in the file that ZKL_CALLS names; none without. By single writes with
 * O_APPEND: what a process that is killed had written stays. The form is in tests/linear/calls.py. */
#ifndef ZKTEST_CALLS_H
#define ZKTEST_CALLS_H

#include <stdint.h>

struct calls_line {
    int length;
    char text[700];
};

/* '?' a call begins, '!' it has returned, '~' proved until then. All times of one run are of one clock. */
struct calls_line calls_line(char way, int64_t ns, int thread);
/* One word more, with the blank before it. */
void calls_add(struct calls_line *line, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void calls_write(struct calls_line *line);

/* The ensemble has lost its data. */
void calls_write_wipe(int64_t from_ns, int64_t until_ns);

#endif
