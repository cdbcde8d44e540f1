/* SPDX-License-Identifier: Apache-2.0 */
/* What may not grow: memory, descriptors and threads of the processes; nodes, watches and sessions on the server.
 * All is looked at now and then, while all workers of the soak stand still with nothing held or wanted, so each
 * number has to be what it was at the first look. Of memory, which is cut up and kept for later, only the trend
 * counts. */
#ifndef ZKSOAK_GAUGE_H
#define ZKSOAK_GAUGE_H

#define SOAK_PROCESSES 8
#define GAUGE_LOOKS 60 /* in the whole run */
#define GAUGE_LOOKS_MIN 7

/* The processes' names among the peers. */
extern const char *const soak_peers[SOAK_PROCESSES];

/* Before anybody locks, at the server of the crowd. paths: as many nodes come and go. */
void gauge_begin(int paths);
/* Take the next look, of everything except memory again and again for a while, until nothing is too much. NULL, or a
 * sentence. */
const char *gauge_look(double at_s);
int gauge_looks(void);
/* NULL, or: the memory of a process grows. */
const char *gauge_trend(void);
void gauge_report(void);

#endif
