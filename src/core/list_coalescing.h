/* SPDX-License-Identifier: Apache-2.0
 * One list for several contenders of one path: one of them sends it, and the answer is for all. It
 * must be sent after each of their nodes was made, and after the event that they list for. So a
 * contender that comes while ZKL_SHARE_FROM first lists of the same path are out sends its create
 * alone, and follows the last of them. When that is answered, one list is sent for all followers,
 * which shows all their nodes. Those whose lists are out are before them, so no contender gets the
 * lock later for it. Otherwise n threads that queue together fetch n times n names. */
#ifndef ZKL_CORE_LIST_COALESCING_H
#define ZKL_CORE_LIST_COALESCING_H

#include "core.h"

/* The list that owner has sent answers for this one too. */
void zkl_shared_list_join(struct zkl_contender *owner, struct zkl_contender *contender);
/* It awaits no list any more; those that shared its own get another one. */
void zkl_shared_list_leave(struct zkl_core *core, struct zkl_contender *contender);
/* Its list was answered: its followers get another one. */
void zkl_shared_list_answered(struct zkl_core *core, struct zkl_contender *owner);
/* Another contender for which that answer is valid, to be notified; NULL: there is none left. */
struct zkl_contender *zkl_shared_list_next(struct zkl_contender *owner);
/* The session ended: no contender awaits a list. */
void zkl_shared_list_reset(struct zkl_core *core);

/* From begin to end all contenders that list again share one list for each path: after a reconnect,
 * or after an event that several wait for, as readers do behind a writer. */
void zkl_shared_list_begin(struct zkl_core *core);
/* True: another contender's list serves this one. */
bool zkl_shared_list_list(struct zkl_core *core, struct zkl_contender *contender);
void zkl_shared_list_end(struct zkl_core *core);

#endif
