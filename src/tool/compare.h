/* SPDX-License-Identifier: Apache-2.0 */
/* Do all servers show the same contenders? One with data of its own does not know it, and neither
 * does the leader. */
#ifndef ZKLOCK_TOOL_COMPARE_H
#define ZKLOCK_TOOL_COMPARE_H

#include "ensemble.h"
#include "settings.h"

/* Zero it, then open: a session at each server of the list, of the complete settings, that lets one
 * in. */
struct compare {
    struct server *servers;
    int count;
};

/* 0, or the exit status after a sentence. compare_close is due in each case. */
int compare_open(struct compare *compare, struct settings *settings);
/* Look at and below the path at each of them, and tell of each contender that one shows and the
 * leader does not have, or the other way about; and of each server that could not be looked at. */
void compare_servers(struct compare *compare, const char *path, ensemble_fn tell, void *arg);
void compare_close(struct compare *compare);

#endif
