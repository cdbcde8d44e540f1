/* SPDX-License-Identifier: Apache-2.0 */
/* What may not grow: memory, descriptors and threads of the processes; nodes, watches and sessions on the server.
 * All is looked at now and then, while all threads of the soak stand still with nothing held or wanted, so each
 * number has to be what it was at the first look. Of memory, which is cut up and kept for later, only the trend
 * counts. */
#ifndef ZKSOAK_GAUGE_H
#define ZKSOAK_GAUGE_H

#include <stdio.h>
#include <sys/types.h>

#include "shared.h"

#define GAUGE_LOOKS 60 /* in the whole run */
#define GAUGE_LOOKS_MIN 7
#define GAUGE_LOOKS_MAX (GAUGE_LOOKS + GAUGE_LOOKS_MIN)

struct look {
    double at_s;
    int nodes, watches, sessions;
    int descriptors[SOAK_PROCESSES], threads[SOAK_PROCESSES];
    long heap[SOAK_PROCESSES], resident[SOAK_PROCESSES]; /* bytes */
};

struct gauge {
    const char *host;
    int port;
    int nodes; /* of a server at which nobody has locked yet */
    int count;
    struct look look[GAUGE_LOOKS_MAX];
};

/* Before anybody locks. 0, or -1: the server does not answer. */
int gauge_begin(struct gauge *g, const char *host, int port);
/* Take the next look at everything except memory, again and again for a while, until nothing is
 * too much: 0. Else -1, and why says what is. The look becomes g->look[g->count]. */
int gauge_look(struct gauge *g, const pid_t *pids, char *why, size_t size);
/* Memory belongs to it, too: the heaps that the processes reported. Now it counts. */
void gauge_weigh(struct gauge *g, const pid_t *pids, const struct shared *shared, double at_s);
/* 0, or -1: the memory of a process grows, as why says. */
int gauge_trend(const struct gauge *g, char *why, size_t size);

void gauge_report(FILE *to, const struct gauge *g);

#endif
