/* SPDX-License-Identifier: Apache-2.0 */
/* At rest: the faults are over, every client gets the lock once more, and then nothing is left. */
#ifndef ZKCHAOS_QUIESCENCE_H
#define ZKCHAOS_QUIESCENCE_H

#include "testbed.h"

struct remains {
    int nodes, watches, connections; /* beyond those of the clients that rest */
    int threads;                     /* processes that have more of them than the first had */
};

/* Everybody is granted something within the bound and rests. False, and said: not so. */
bool quiescence_reached(struct testbed *s);
/* What is left, once it is nothing or time is up. clients: how many are connected. */
struct remains quiescence_remains(struct testbed *s, int clients);
int quiescence_count(const struct remains *r);
/* Callbacks have reported each loss that unlock reported. */
void quiescence_check_losses(struct testbed *s);

#endif
