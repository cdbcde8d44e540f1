/* SPDX-License-Identifier: Apache-2.0
 * The figures as users read them: for the calls of zklock/metrics.h and for the text of
 * prometheus.c. */
#ifndef ZKL_API_METRICS_H
#define ZKL_API_METRICS_H

#include "counts.h"

/* A path that keeps its own figures. */
struct zkl_path_metrics {
    struct zkl_lock_path *lock_path; /* with a reference */
    struct zkl_lock_metrics figures;
};

/* All figures of one moment. */
struct zkl_snapshot {
    struct zkl_client_metrics client;
    struct zkl_lock_metrics locks;
    struct zkl_path_metrics *paths;
    size_t path_count;
};
/* 0, and the caller must pass it to zkl_snapshot_drop; or ZKL_ENOMEM. Without the mutex. */
int zkl_snapshot_take(struct zkl_client *client, struct zkl_snapshot *snapshot);
void zkl_snapshot_drop(struct zkl_client *client, struct zkl_snapshot *snapshot);

#endif
