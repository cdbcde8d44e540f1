/* SPDX-License-Identifier: Apache-2.0 */
/* What the soak has to say: its figures, and, when it got stuck, who holds and who waits for what. */
#ifndef ZKSOAK_REPORT_H
#define ZKSOAK_REPORT_H

#include <stdio.h>

#include "shared.h"
#include "wire.h"

const char *tally_name(enum tally tally);
/* Of one process. */
long granted(const struct shared *b, int process);

void report_figures(FILE *to, const struct shared *b, double seconds, double requests);
/* Each thread, as the witness and its own seat have it; nobody runs meanwhile. */
void report_threads(FILE *to, const struct shared *b);
/* The queue of each path, as the server has it. */
void report_queues(FILE *to, struct wire *wire);

#endif
