/* SPDX-License-Identifier: Apache-2.0 */
/* The verdict as one JSON object. */
#ifndef CONTENTION_JSON_H
#define CONTENTION_JSON_H

#include "checker.h"
#include "faults.h"
#include "options.h"

#include <stdio.h>

void json_verdict(FILE *out, const struct options *options, const struct verdict *verdict,
                  const struct faults *faults);

#endif
