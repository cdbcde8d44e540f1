/* SPDX-License-Identifier: Apache-2.0 */
/* What the verdict looks like on paper. */
#ifndef CONTENTION_REPORT_H
#define CONTENTION_REPORT_H

#include "checker.h"
#include "options.h"

#include <stdbool.h>

/* With --json the verdict is all that is printed. */
void report_head(const struct options *options);
/* The table, remarks if there is something to remark, and the final line; or all as JSON. True if
 * all is well: then, and only then, the exit status is 0. */
bool report_verdict(const struct options *options, const struct verdict *verdict, unsigned odd);

#endif
