/* SPDX-License-Identifier: Apache-2.0 */
/* What --crash and --pause do to holders: one at a time, and the next one when other holders
 * have had the lock again. */
#ifndef CONTENTION_MISCHIEF_H
#define CONTENTION_MISCHIEF_H

#include "crew.h"

enum mischief_state {
    MISCHIEF_QUIET,     /* until next_us */
    MISCHIEF_ASKED,     /* for a holder to stand still at a station */
    MISCHIEF_PAUSED,    /* one is stopped, until next_us or later */
    MISCHIEF_RECOVERING /* until somebody has updated the record again */
};

struct mischief {
    struct crew *crew;
    uint64_t chance;
    enum mischief_state state;
    bool killing; /* else pausing */
    struct who who;
    uint64_t since_us;
    uint64_t next_us;
    uint64_t updates; /* as of since_us: of all, or while one is paused of all others */
    unsigned kills;
    unsigned pauses;
    char news[160]; /* a line for the user; whoever prints it empties it */
};

void mischief_init(struct mischief *mischief, struct crew *crew);
/* 0, or -1 if the run must end. */
int mischief_step(struct mischief *mischief);
/* Begin nothing new. 1 if nothing is under way any more. */
int mischief_rest(struct mischief *mischief);

#endif
