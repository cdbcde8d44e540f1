/* SPDX-License-Identifier: Apache-2.0
 * Readers of one handle that share one node, which stays on the server. */
#ifndef ZKL_API_CACHED_READER_H
#define ZKL_API_CACHED_READER_H

#include "place.h"

/* Without the mutex. A reader's first acquisition, without a request; NULL: it has to queue. */
struct zkl_place *zkl_cached_enter(const struct zkl_mutex *mutex, const struct zkl_wait *wait);
/* The last unlock of what that returned: the code of the unlock, noted as the failure. */
int zkl_cached_leave(struct zkl_place *seat);
/* A reader was granted, as any: what the caller has from here on, that hold or a seat. */
struct zkl_place *zkl_cached_open(struct zkl_place *place);

void zkl_cached_setup(struct zkl_rwlock *rwlock);

#endif
