/* SPDX-License-Identifier: Apache-2.0
 * Readers of one handle that share one node, which stays on the server (src/core/read_cache.h). The
 * node is one place; each reader has a hold of its own on it (client.h), so re-entries, the refusal
 * of an upgrade and the thread's end are as with a node of its own. An operation that enters again
 * keeps the place, and not the hold.
 *
 * News of the node close the gate before the client looks whether a reader is inside that must
 * hear them: a reader that enters just then is counted, or waits. The core opens the gate again
 * when it settles, if it may. */
#ifndef ZKL_API_CACHED_READER_H
#define ZKL_API_CACHED_READER_H

#include "place.h"

/* Without the mutex. A reader's first acquisition, without a request; false: it has to queue. */
bool zkl_cached_enter(struct zkl_hold *hold, const struct zkl_wait *wait);
/* The last unlock of a shared hold: the code of the unlock, noted as the failure. */
int zkl_cached_leave(const struct zkl_hold *hold);
/* Whoever was counted in, and has no hold. */
void zkl_cached_leave_gate(const struct zkl_mutex *mutex);
/* A reader was granted, as any: its place may be that of all from here on. */
void zkl_cached_open(struct zkl_hold *hold);

void zkl_cached_setup(struct zkl_rwlock *rwlock);

/* The rest with the mutex. The node of a thread that queues now should become the shared one. It is
 * wanted until it failed, or was granted and has become the shared node or not. */
bool zkl_cached_wants(const struct zkl_place *place, const struct zkl_wait *wait);
void zkl_cached_want_no_more(const struct zkl_place *place);
/* No reader enters any more: for both halves. */
void zkl_cached_close(const struct zkl_mutex *mutex);
/* Some thread is in. */
bool zkl_cached_any(const struct zkl_mutex *mutex);
void zkl_cached_retire(const struct zkl_mutex *mutex);

#endif
