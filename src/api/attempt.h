/* SPDX-License-Identifier: Apache-2.0
 * An attempt: one acquisition, of one member by a mutex or a semaphore, or of all those of a
 * multi-lock. A thread takes its steps in a loop, an operation whenever it is woken. */
#ifndef ZKL_API_ATTEMPT_H
#define ZKL_API_ATTEMPT_H

#include "owner.h"
#include "permit_request.h"

/* The work for one member. */
struct zkl_share {
    struct zkl_hold *own;    /* the owner's from before, which is entered again; or a new one */
    bool comes;              /* the new one is in the owner's map already, to be seen there */
    struct zkl_place *place; /* or the one that will be acquired */
    struct zkl_permit_request *request; /* or what belongs to no thread */
};

struct zkl_attempt {
    struct zkl_client *client;
    struct zkl_caller caller;
    struct zkl_wait wait;
    int64_t deadline; /* of all parts, where there are several */
    size_t share_count;
    size_t culprit;      /* the share that a failure is about; their number: none in particular */
    size_t count, begun; /* of parts; all of them, or none */
    size_t at;           /* the part that is being acquired: those before it are held */
    struct zkl_acquisition *parts;
    struct zkl_share *shares;
    /* When all parts are held, with the mutex: 0, or why the rest is not. May be NULL. */
    int (*confirm)(struct zkl_attempt *a);
};

struct zkl_attempt_of_one {
    struct zkl_attempt attempt;
    struct zkl_share share;
    struct zkl_acquisition part;
};

/* Of a mutex, with its hold, which has no place yet and is freed if it gets none; under: the write
 * lock of the same owner, of the read lock below it; or NULL. And of permits. 0, or a failure in
 * words: finish the attempt with it. Without the mutex. */
int zkl_attempt_of_mutex(struct zkl_attempt_of_one *one, struct zkl_hold *hold,
                         const struct zkl_hold *under, const struct zkl_wait *wait);
int zkl_attempt_of_permits(struct zkl_attempt_of_one *one, struct zkl_semaphore *semaphore,
                           int count, const struct zkl_wait *wait);

/* With the mutex: once, then steps. op: is woken to take the next one; NULL: a thread. 0,
 * ZKL_ENOMEM, ZKL_ESYSTEM: there is nothing to end. */
int zkl_attempt_begin(struct zkl_attempt *a, struct zkl_op *op);
/* ZKL_GOES_ON until next_ns at the latest, or the code. */
int zkl_attempt_step(struct zkl_attempt *a, int64_t *next_ns);
/* Its step after this one says ZKL_ECANCELED, unless it is decided. */
void zkl_attempt_cancel(struct zkl_attempt *a);
void zkl_attempt_end(struct zkl_attempt *a, int rc);
/* All of these on the calling thread, which waits; without the mutex. */
int zkl_attempt_run(struct zkl_attempt *a);

/* After that, as the owner, without the mutex. The failure in words; rc. */
int zkl_attempt_fail(const struct zkl_attempt *a, int rc);
/* After a failure: nothing is held that was not held before. Another thread may free the handles
 * from here on. */
void zkl_attempt_drop(struct zkl_attempt *a, int rc);
/* After a success: the owner has the share that is a mutex; grant may be NULL. */
void zkl_share_have(struct zkl_share *share, struct zkl_grant *grant);
/* Of one: either. mutex: counts a failure; said: it is in words already; permits: the caller's, or
 * NULL. rc. */
int zkl_attempt_finish_one(struct zkl_attempt_of_one *one, const struct zkl_mutex *mutex, int rc,
                           bool said, struct zkl_grant *grant, struct zkl_permit **permits);
/* rc: of zkl_attempt_of_*. All the rest of a call that waits. */
int zkl_attempt_take_one(struct zkl_attempt_of_one *one, const struct zkl_mutex *mutex, int rc,
                         struct zkl_grant *grant, struct zkl_permit **permits);

#endif
