/* SPDX-License-Identifier: Apache-2.0
 * A bundle: contenders that an owner acquires as one, all or none. When an event is over, their
 * states decide what follows. There are two kinds.
 *
 * A multi-lock's members stand in the order of their paths.
 * - All hold: it is granted. One fails: all are backed out.
 * - One waits: those behind it, in the order of the paths, are backed out in one transaction;
 *   those before it stay. So nothing is queued ahead of a lock that is not held. As all clients
 *   wait in the same order, also those that lock one by one, no cycle can form.
 * - The one that waited is granted: the rest is made again.
 * - One was held and is lost: all are backed out, and the caller starts over when nothing of them
 *   is left.
 *
 * The creates of those that begin together are one transaction (transaction.h): each asks for its
 * create and its list as ever, and the bundle waits until all that still will ask have asked.
 *
 * A request for permits of a semaphore is gated: in the order of requests it first acquires the
 * inner mutex (the gate), then makes all leases, and leaves the gate when all of them are granted.
 * If one is lost on the way it backs all of it out and starts over, when no lease and no gate is
 * left. */
#ifndef ZKL_CORE_BUNDLE_H
#define ZKL_CORE_BUNDLE_H

#include "core.h"

enum zkl_bundle_state {
    ZKL_BUNDLE_IDLE,
    ZKL_BUNDLE_LOOKING,  /* a try for permits: is there room at all? */
    ZKL_BUNDLE_ENTERING, /* waits for the gate */
    ZKL_BUNDLE_TAKING,   /* has it, or needs none, and waits for the rest */
    ZKL_BUNDLE_BACKING,  /* the gate or a lease was lost: over again when all nodes are deleted */
    ZKL_BUNDLE_GRANTED,  /* reported; the gate is on its way out */
    ZKL_BUNDLE_FAILED,   /* reported; the rest is on its way out */
    ZKL_BUNDLE_STATES
};

struct zkl_bundle_member {
    struct zkl_contender *contender; /* its bundle is set between its start and its ENDED */
    struct zkl_lock_request lock_request;
    bool backs_out;
};

struct zkl_bundle {
    struct zkl_due due; /* first, see due.h */

    /* The owner's, unchanged until it is over. */

    struct zkl_bundle_member *members; /* with contender and lock_request set */
    size_t count;
    bool gated;       /* the first member is the gate, the others are leases */
    int64_t lease_ns; /* > 0: of each hold, from the grant of the whole */
    /* Of a gated one: GRANTED or FAILED, then ENDED: the core has no pointer to any of it any more,
     * except to members that were granted, whose news come as if they had been alone. It must not
     * call the core. Without a gate the news of each contender come as if it had been alone:
     * GRANTED for all, or FAILED for all and ENDED as they end. */
    void (*told)(struct zkl_bundle *bundle, const struct zkl_notification *notification);

    /* The core's. */

    enum zkl_bundle_state state;
    int code; /* why it fails; 0: it does not */
    int number;
    char detail[160];
    size_t culprit; /* the member that failed; count: none in particular */
    bool lost;      /* a multi-lock's member was held and lost again: the code says nothing */
};

void zkl_bundle_acquire(struct zkl_core *core, struct zkl_time now, struct zkl_bundle *bundle);
/* End the lock requests of all with this code, unless it is over. */
void zkl_bundle_stop(struct zkl_core *core, struct zkl_time now, struct zkl_bundle *bundle,
                     int code);
/* Unlock these, the last first, in one transaction; each is answered by RELEASED. */
void zkl_bundle_release(struct zkl_core *core, struct zkl_time now,
                        struct zkl_contender *const *contenders, size_t count);
/* Does it wait at its gate for another contender that is just acquiring? */
bool zkl_bundle_is_behind(const struct zkl_bundle *bundle);

const char *zkl_bundle_state_name(enum zkl_bundle_state state);
bool zkl_bundle_may_move(enum zkl_bundle_state from, enum zkl_bundle_state to);

/* --- the steps of these, for core.c, which settles after them ------------- */

void zkl_bundle_begin(struct zkl_core *core, struct zkl_bundle *bundle);
void zkl_bundle_end(struct zkl_core *core, struct zkl_bundle *bundle, int code);
void zkl_bundle_unlock(struct zkl_core *core, struct zkl_contender *const *contenders,
                       size_t count);
/* News of a contender; false: they are its owner's, too. feed.c has had the bundle looked at. */
bool zkl_bundle_notification(struct zkl_contender *contender,
                             const struct zkl_notification *notification);
/* When the event is over: decide. due: the bundle's. */
void zkl_bundle_settle(struct zkl_core *core, struct zkl_due *due);
/* The number that the first lease asked for, to the others. */
void zkl_bundle_share_limit(struct zkl_core *core, struct zkl_contender *contender,
                            struct zkl_event event);

#endif
