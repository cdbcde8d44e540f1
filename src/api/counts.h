/* SPDX-License-Identifier: Apache-2.0
 * The counters of zklock/metrics.h. Each hold counts in one place: in its path's figures, or in
 * those of the client if the path has none. */
#ifndef ZKL_API_COUNTS_H
#define ZKL_API_COUNTS_H

#include <zklock/metrics.h>

#include "place.h"

/* Keep figures of this path from now on. False: no memory. Without the mutex. */
bool zkl_lock_path_keep_counts(struct zkl_client *client, struct zkl_lock_path *lock_path);
/* The path under which what this handle does counts. */
struct zkl_lock_path *zkl_mutex_metrics_path(const struct zkl_mutex *mutex);
/* Add what was counted, not what is so now. With the mutex. */
void zkl_counts_fold(struct zkl_lock_metrics *into, const struct zkl_lock_metrics *counts);

/* An acquire call ends with this code, and nothing is acquired; the code. Without the mutex. */
int zkl_count_failure(const struct zkl_mutex *mutex, int code);

/* The life of a hold; with the mutex. */
void zkl_count_acquired(struct zkl_place *place);
void zkl_count_state(struct zkl_place *place, int state, int reason);
/* Its owner's last unlock has begun; and is over, or no thread waits for its end. */
void zkl_count_released(struct zkl_place *place);
void zkl_count_end(struct zkl_place *place);
/* Both together: the hold continues as another owner's, or as the handle's. */
void zkl_count_passed(struct zkl_place *place);

#endif
