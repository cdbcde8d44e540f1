/* SPDX-License-Identifier: Apache-2.0
 * A group: the contenders of one multi-lock, which an owner acquires as one, in the order of their
 * paths. When an event is over, their states decide:
 * - All hold: the group is granted. One fails: all are backed out.
 * - One waits: those behind it, in the order of the paths, are backed out in one transaction;
 *   those before it stay. So nothing is queued ahead of a lock that is not held. As all clients
 *   wait in the same order, also those that lock one by one, no cycle can form.
 * - The one that waited is granted: the rest is made again, as one batch (batch.h).
 * - One was held and is lost: all are backed out, and the caller starts over when nothing of them
 *   is left. */
#ifndef ZKL_CORE_GROUP_H
#define ZKL_CORE_GROUP_H

#include "core.h"

enum zkl_group_state {
    ZKL_GROUP_ACQUIRING, /* no member is reported until it is over */
    ZKL_GROUP_GRANTED,
    ZKL_GROUP_FAILED
};

struct zkl_group_member {
    struct zkl_contender *contender; /* its group is set between its start and its ENDED */
    struct zkl_lock_request lock_request;
    bool backs_out;
};

struct zkl_group {
    struct zkl_due due; /* first, see due.h */
    enum zkl_group_state state;
    int code; /* why it fails; 0: it does not */
    int number;
    char detail[160];
    size_t culprit;   /* the member that failed; count: none in particular */
    bool lost;        /* a member was held and lost again: the code says nothing */
    int64_t lease_ns; /* > 0: of each hold, from the grant of the whole */
    struct zkl_batch *batch;
    size_t count;
    struct zkl_group_member *members; /* the caller's, in the order of their paths */
};

/* group and its members are the caller's, with contender and lock_request set, until the state is
 * not ACQUIRING any more; the news of each contender then come as if it had been alone: GRANTED
 * for all, or FAILED for all and ENDED as they end. 0 or ZKL_ENOMEM: nothing was begun. */
int zkl_group_acquire(struct zkl_core *core, struct zkl_time now, struct zkl_group *group);
/* End the lock requests of all, unless that is over. */
void zkl_group_stop(struct zkl_core *core, struct zkl_time now, struct zkl_group *group, int code);
/* Unlock these, the last first, in one transaction; each is answered by RELEASED. */
void zkl_group_release(struct zkl_core *core, struct zkl_time now,
                       struct zkl_contender *const *contenders, size_t count);

/* --- the steps of these, for core.c, which settles after them ------------- */

int zkl_group_begin(struct zkl_core *core, struct zkl_group *group);
void zkl_group_end(struct zkl_core *core, struct zkl_group *group, int code);
void zkl_group_unlock(struct zkl_core *core, struct zkl_contender *const *contenders, size_t count);
/* News of a contender; false: they are its owner's, too. */
bool zkl_group_notification(struct zkl_core *core, struct zkl_contender *contender,
                            const struct zkl_notification *notification);
/* When the event is over: decide. due: the group's. */
void zkl_group_settle(struct zkl_core *core, struct zkl_due *due);

#endif
