/* SPDX-License-Identifier: Apache-2.0
 *
 * The kinds of locks, a row each: what a contender does in its own way until it is granted. The
 * common steps (queueing.c, lock_request.c) ask only the row, which contender.c gave to the step,
 * for the kind. Whom a kind waits for, and how its nodes are named, is its role's row in role.c. A
 * semaphore's mutex is one of its permits; a mutex beside them (bundle.h) decides which request is
 * next. Constant; contender.c calls it with the client's lock. docs/adding-a-lock-kind.md adds a
 * kind as an exercise. */
#include "step.h"

/* Mutexes, readers and writers wait for the nearest of those before them that they can't be
 * beside. */
#define QUEUED                                                                                     \
    .on_first_look = zkl_step_look_for_others, .on_list = zkl_step_decide_place,                   \
    .in_waiting = zkl_in_waiting

static const struct zkl_kind kinds[ZKL_ROLES] = {
    [ZKL_ROLE_LOCK] = {QUEUED},
    [ZKL_ROLE_READ] = {QUEUED},
    [ZKL_ROLE_WRITE] = {QUEUED},
    [ZKL_ROLE_PERMIT] = {.before_list = zkl_step_need_limit,
                         .own_event = zkl_step_limit,
                         .on_first_look = zkl_step_look_for_room,
                         .on_list = zkl_step_decide_permit,
                         .in_waiting = zkl_in_waiting_for_permit},
};

/* A read lock of a thread that has the write lock already. It gets a node with the write node's
 * number, so that it keeps the same place after the write unlock (CURATOR-621). */
static const struct zkl_kind downgraded_read = {.within_hold = true, QUEUED};

const struct zkl_kind *zkl_kind_of(const struct zkl_contender_machine *m)
{
    return m->downgrade_from[0] ? &downgraded_read : &kinds[m->lock_request.naming.role];
}
