/* SPDX-License-Identifier: Apache-2.0
 *
 * The counters of zklock/metrics.h. Each hold counts in one place: in its path's figures, or in
 * those of the client if the path has none. Under the client's mutex. The files of src/api that
 * acquire, wait, release and fail call this file; metrics.c reads the counters. */
#include "counts.h"

#include <stdlib.h>

#include "core/histogram.h"

/* --- where -------------------------------------------------------------- */

struct zkl_lock_path *zkl_mutex_metrics_path(const struct zkl_mutex *mutex)
{
    return mutex->semaphore ? mutex->semaphore->path : mutex->lock_path;
}

static struct zkl_lock_metrics *counts_of(const struct zkl_mutex *mutex)
{
    struct zkl_lock_path *lock_path = zkl_mutex_metrics_path(mutex);
    return lock_path->counts ? lock_path->counts : &mutex->client->counts;
}

bool zkl_lock_path_keep_counts(struct zkl_client *client, struct zkl_lock_path *lock_path)
{
    struct zkl_lock_metrics *fresh = calloc(1, sizeof *fresh);
    zkl_driver_lock(client->driver);
    if (!lock_path->counts) {
        lock_path->counts = fresh;
        fresh = NULL;
    }
    bool kept = lock_path->counts != NULL;
    zkl_driver_unlock(client->driver);
    free(fresh);
    return kept;
}

void zkl_counts_fold(struct zkl_lock_metrics *into, const struct zkl_lock_metrics *counts)
{
    into->acquisitions += counts->acquisitions;
    into->reentries += counts->reentries;
    into->releases += counts->releases;
    into->unconfirmed += counts->unconfirmed;
    into->passed += counts->passed;
    into->suspects += counts->suspects;
    into->revocations += counts->revocations;
    for (size_t i = 0; i < ZKL_METRICS_CODES; i++)
        into->failures[i] += counts->failures[i];
    for (size_t i = 0; i < ZKL_METRICS_REASONS; i++)
        into->losses[i] += counts->losses[i];
    zkl_histogram_merge(&into->wait, &counts->wait);
    zkl_histogram_merge(&into->hold, &counts->hold);
}

/* --- what --------------------------------------------------------------- */

int zkl_count_failure(const struct zkl_mutex *mutex, int code)
{
    ZKL_SHIELDED();
    zkl_driver_lock(mutex->client->driver);
    if (code != ZKL_EINVAL && code != ZKL_EFORK) /* the caller's mistake, seen late */
        counts_of(mutex)->failures[-code]++;
    zkl_driver_unlock(mutex->client->driver);
    return code;
}

void zkl_count_acquired(struct zkl_place *place)
{
    place->counts = counts_of(place->mutex);
    place->counts->acquisitions++;
    zkl_histogram_add(&place->counts->wait, place->got_ns - place->began_ns);
}

/* Its time as a hold is over, by the event that is being handled: with its loss, else with
 * unlock. */
static void end_time(struct zkl_place *place)
{
    if (place->got_ns != 0)
        zkl_histogram_add(&place->counts->hold,
                          place->client->driver->core.now.mono_ns - place->got_ns);
    place->got_ns = 0;
}

void zkl_count_state(struct zkl_place *place, int state, int reason)
{
    if (!place->counts)
        return;
    place->counts->suspects += state == ZKL_HOLD_SUSPECT;
    place->counts->revocations += state == ZKL_HOLD_REVOKE_REQUESTED;
    if (state == ZKL_HOLD_LOST) {
        place->counts->losses[reason]++;
        end_time(place);
    }
}

void zkl_count_released(struct zkl_place *place)
{
    if (!place->counts)
        return;
    place->counts->releases++;
    end_time(place);
}

void zkl_count_passed(struct zkl_place *place)
{
    if (!place->counts)
        return;
    place->counts->passed++;
    zkl_count_released(place);
    zkl_count_end(place);
    place->reentries = 0;
}

void zkl_count_end(struct zkl_place *place)
{
    if (!place->counts)
        return;
    place->counts->reentries += place->reentries;
    place->counts->unconfirmed += place->phase == ZKL_PHASE_RELEASED &&
                                  (place->code == ZKL_EUNCONFIRMED || place->code == ZKL_EDOUBT);
    place->counts = NULL;
}
