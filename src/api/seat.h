/* SPDX-License-Identifier: Apache-2.0
 * A thread's seat in a node that several readers share (src/core/read_cache.h), and that node. A
 * seat is a hold without a contender in its owner's map. It has the count, and a pointer (base) to
 * the hold that all are in, which has losses and requests to release. So re-entries, the refusal
 * of an upgrade and the thread's end are as with a node of its own. A seat is its owner's alone,
 * and is removed with the last unlock. An operation that enters again keeps the node's hold, not
 * the seat.
 *
 * News of the node close the gate before the client looks whether a reader is inside that must
 * hear them: a reader that enters just then is counted, or waits. The core opens the gate again
 * when it settles, if it may.
 *
 * Without the mutex, except where a comment says so. */
#ifndef ZKL_API_SEAT_H
#define ZKL_API_SEAT_H

#include "place.h"

/* Memory for one; NULL: there is none. */
struct zkl_place *zkl_seat_new(void);
/* keep: for this thread's next one, until zkl_seat_thread_exits. */
void zkl_seat_free(struct zkl_place *seat, bool keep);
void zkl_seat_thread_exits(void);
/* It is counted in. */
void zkl_seat_take(struct zkl_place *seat, struct zkl_place *base);
void zkl_seat_leave(struct zkl_place *seat);
/* Whoever was counted in, and has no seat. */
void zkl_seat_leave_gate(struct zkl_driver *d, struct zkl_read_cache *cache);

/* The node that this handle's holds may be in together; NULL: it is no reader's handle. */
struct zkl_read_cache *zkl_cached_of(const struct zkl_mutex *mutex);
/* With the mutex. The node of a thread that queues now should become the shared one. It is wanted
 * until it failed, or was granted and has become the shared node or not. */
bool zkl_cached_wants(const struct zkl_place *place, const struct zkl_wait *wait);
void zkl_cached_want_no_more(const struct zkl_place *place);
/* No reader enters any more: for both halves. */
void zkl_cached_close(const struct zkl_mutex *mutex);
/* Some thread is in. */
bool zkl_cached_any(const struct zkl_mutex *mutex);
void zkl_cached_retire(const struct zkl_mutex *mutex);

#endif
