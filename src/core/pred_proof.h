/* SPDX-License-Identifier: Apache-2.0
 * Whether the end of its predecessor's node makes a waiter the first, without another list. */
#ifndef ZKL_CORE_PRED_PROOF_H
#define ZKL_CORE_PRED_PROOF_H

#include "step.h"
#include "watch.h"

/* How the predecessor's node went. */
enum zkl_pred_end {
    ZKL_PRED_END_UNSEEN, /* before anybody saw it stand behind our own node's creation */
    ZKL_PRED_END_UNSURE, /* it may have gone with its session, and ours with it */
    ZKL_PRED_END_DELETED, /* it was deleted in a session that lives, or was in the list and is not there */
    ZKL_PRED_END_GIVEN_BACK /* by this client, whose delete was answered; until then it had the lock */
};

/* What the deletion of a node tells on which this watch was. */
enum zkl_pred_end zkl_pred_end_of(const struct zkl_core *core, const struct zkl_watch *watch);
/* That of one that the watch for this waiter did not find. */
enum zkl_pred_end zkl_pred_end_unwatched(const struct zkl_contender *c);
/* What that proves to this waiter. */
enum zkl_pred_proof zkl_pred_proof(const struct zkl_core *core, const struct zkl_contender *c,
                                   enum zkl_pred_end end);
/* The event of this step tells how the predecessor ended; what it proves, with what was known before. */
bool zkl_pred_is_heard_of(const struct zkl_step *s);
enum zkl_pred_proof zkl_pred_proof_now(const struct zkl_step *s);

#endif
