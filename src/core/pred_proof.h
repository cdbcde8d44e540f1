/* SPDX-License-Identifier: Apache-2.0
 * Whether the end of its predecessor's node makes a waiter the first, without another list. */
#ifndef ZKL_CORE_PRED_PROOF_H
#define ZKL_CORE_PRED_PROOF_H

#include "step.h"
#include "watch.h"

/* How the predecessor's node ended. */
enum zkl_pred_end {
    ZKL_PRED_END_UNSEEN, /* before any answer showed it behind our own node's creation */
    ZKL_PRED_END_UNSURE, /* it may have been deleted with its session, and ours with it */
    /* it was deleted in a session that lives, or was in the list and is not there */
    ZKL_PRED_END_DELETED,
    /* by this client, whose delete was answered; until then it had the lock */
    ZKL_PRED_END_GIVEN_BACK
};

/* What the deletion of the node that this watch was on proves. */
enum zkl_pred_end zkl_pred_end_of(const struct zkl_core *core, const struct zkl_watch *watch);
/* The same for a node that the watch for this waiter did not find. */
enum zkl_pred_end zkl_pred_end_unwatched(const struct zkl_contender *c);
/* What that proves to this waiter. */
enum zkl_pred_proof zkl_pred_proof(const struct zkl_core *core, const struct zkl_contender *c,
                                   enum zkl_pred_end end);
/* The event of this step says how the predecessor ended; what it proves, with what was known
 * before. */
bool zkl_pred_is_heard_of(const struct zkl_step *s);
enum zkl_pred_proof zkl_pred_proof_now(const struct zkl_step *s);

#endif
