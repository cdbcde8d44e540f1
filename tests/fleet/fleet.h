/* SPDX-License-Identifier: Apache-2.0 */
/* One run of a mixed fleet: the same workers in processes of the old library and of the new one, at the
 * same paths of one server. This side links neither library. */
#ifndef ZKFLEET_FLEET_H
#define ZKFLEET_FLEET_H

#include "crowd.h"

#define WORKERS_MAX 12
#define PATHS_MAX 6
#define EACH_SIDE test_length(2000, 240) /* acquisitions at the least, by each library */

struct fleet {
    const char *title;
    /* Of each process: "KIND PATHS OPTION...", as in crowd.h; NULL: no more. */
    const char *workers[WORKERS_MAX];
    const char *trespasser;         /* another worker, of the first new process */
    bool creators_only;             /* nodes open only to CREDENTIAL; else to anybody */
    double share_min;               /* percent of visits that follow one of the other library */
    const char *made[PATHS_MAX];    /* persistent nodes that this run needs */
    const char *renewed[PATHS_MAX]; /* paths that this run must make anew */
    const char *guarded;            /* a contender that keeps this path from being collected before
                                       * the run */
};

#define GUARD "_c_00000000-0000-4000-8000-000000000000-lock-0000000000"

/* Run it to the end, or to the first broken rule: NULL, or that rule. */
const char *fleet_run(const struct fleet *fleet);
/* The same, with all that has to be true at the end; prints the figures. */
void fleet_check(const struct fleet *fleet);

#endif
