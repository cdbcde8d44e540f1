/* SPDX-License-Identifier: Apache-2.0
 * A request for permits of a semaphore, all or none, in the order of requests. It first acquires
 * the inner mutex (the gate), then makes all leases, and leaves the gate when all of them are
 * granted. If anything fails on the way, it backs all of it out: no lease and no gate stays. */
#ifndef ZKL_CORE_PERMITS_H
#define ZKL_CORE_PERMITS_H

#include "core.h"

enum zkl_permits_state {
    ZKL_PERMITS_IDLE,
    ZKL_PERMITS_LOOKING,  /* a try: is there room at all? */
    ZKL_PERMITS_ENTERING, /* waits for the gate */
    ZKL_PERMITS_TAKING,   /* has it, and waits for the leases */
    ZKL_PERMITS_BACKING,  /* the gate or a lease was lost: over again when all nodes are deleted */
    ZKL_PERMITS_GRANTED,  /* reported; the gate is on its way out */
    ZKL_PERMITS_FAILED,   /* reported; the rest is on its way out */
    ZKL_PERMITS_STATES
};

struct zkl_permits {
    struct zkl_due due; /* first, see due.h */

    /* The asker's, unchanged until ENDED. */

    struct zkl_path *gate_path; /* of the inner mutex */
    /* of each lease; quota.view: the handle's, for all its requests; until GRANTED or FAILED */
    struct zkl_lock_request lock_request;
    struct zkl_contender *const *members;
    size_t count;
    /* GRANTED or FAILED, then ENDED: the core has no pointer to any of it any more, except to
     * members that were granted, whose news come as if they had been alone. It must not call the
     * core. */
    void (*told)(struct zkl_permits *permits, const struct zkl_notification *notification);

    /* The core's. */
    enum zkl_permits_state state;
    struct zkl_contender gate;
    struct zkl_batch *batch; /* several leases are made, and backed out, in one transaction */
    int code;                /* why it fails; 0: it does not */
    int number;
    char detail[160];
};

/* Begin; permits and its members are the caller's memory, zeroed except what the asker sets. */
void zkl_permits_acquire(struct zkl_core *core, struct zkl_time now, struct zkl_permits *permits);
/* End the request with this code, unless it is over. */
void zkl_permits_stop(struct zkl_core *core, struct zkl_time now, struct zkl_permits *permits,
                      int code);
/* Does it wait for another contender that is just acquiring? */
bool zkl_permits_is_behind(const struct zkl_permits *permits);

const char *zkl_permits_state_name(enum zkl_permits_state state);
bool zkl_permits_may_move(enum zkl_permits_state from, enum zkl_permits_state to);

/* --- the steps of these, for core.c, which settles after them ------------- */

void zkl_permits_begin(struct zkl_core *core, struct zkl_permits *permits);
void zkl_permits_end(struct zkl_core *core, struct zkl_permits *permits, int code);
/* News of a contender; false: they are its owner's, too. */
bool zkl_permits_notification(struct zkl_core *core, struct zkl_contender *contender,
                              const struct zkl_notification *notification);
/* When the event is over: decide. due: the request's. */
void zkl_permits_settle(struct zkl_core *core, struct zkl_due *due);
/* The number that a contender asked for. */
void zkl_permits_share_limit(struct zkl_core *core, struct zkl_contender *contender,
                             struct zkl_event event);

#endif
