/* SPDX-License-Identifier: Apache-2.0
 *
 * metrics.h - counters and histograms of a client and its locks, by a call and as text for
 * Prometheus. A client counts what it does in this process; these calls send no request.
 *
 * A client always keeps its own figures. It keeps those of a lock if metrics is set in the lock's
 * options, by path: all handles of the client that name the path count together, from the first one
 * with the option on. When the last one is freed, the client's own figures keep what it counted.
 *
 *     struct zkl_lock_metrics m = ZKL_LOCK_METRICS_INIT;
 *     if (zkl_client_get_lock_metrics(client, &m) == 0)
 *         printf("99 of 100 waited at most %lld ns\n",
 *                (long long)zkl_histogram_percentile_ns(&m.wait, 99));
 *
 * Any thread may make these calls, in callbacks too. They never wait for a server.
 * Illegal: a struct without its initializer, or the figures of a lock whose options did not ask for
 * them (ZKL_EINVAL); an inherited client in a forked child (ZKL_EFORK).
 */
#ifndef ZKLOCK_METRICS_H
#define ZKLOCK_METRICS_H

#include <zklock/zklock.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- count what a client and its locks do --------------------------------- */

#define ZKL_HISTOGRAM_BUCKETS 72

/* A histogram of durations. It is part of other structs and never grows. Two buckets for each
 * doubling: 0.5, 1, 1.5, 2, 3, 4, 6, 8, 12 ... microseconds up to 7 hours, and one for longer
 * durations. */
struct zkl_histogram {
    uint64_t count;
    uint64_t sum_ns;
    uint64_t max_ns;
    /* how many durations were below this bucket's bound, and not below the bound of the bucket
     * before it */
    uint64_t buckets[ZKL_HISTOGRAM_BUCKETS];
};

#define ZKL_METRICS_CODES 64
#define ZKL_METRICS_REASONS 16

/* The figures of one path, or of all paths of a client. Each permit of a semaphore counts as one
 * hold; each member of a multi-lock counts at its own path. */
struct zkl_lock_metrics {
    size_t size;
    /* Since the client was opened; of a path, since its first handle with the option was made. */

    uint64_t acquisitions; /* holds that a caller got; a re-entry is none */
    uint64_t reentries;    /* of holds that have ended: the last unlock adds them */
    /* calls that acquired nothing, by their code: failures[-ZKL_ETIMEDOUT] timed out, ... Not those
     * refused for an argument, a closed client, a fork or a callback. Failures of a multi-lock
     * count at the path that its detail names */
    uint64_t failures[ZKL_METRICS_CODES];
    uint64_t releases;                    /* holds released, whatever that returned */
    uint64_t unconfirmed;                 /* of these: ZKL_EUNCONFIRMED, ZKL_EDOUBT */
    uint64_t passed;                      /* of these: handed on in this process, or retained */
    uint64_t losses[ZKL_METRICS_REASONS]; /* by enum zkl_reason; what a callback receives as LOST */
    uint64_t suspects;                    /* how often a hold was SUSPECT */
    uint64_t revocations;                 /* how often another client requested a release */
    struct zkl_histogram wait;            /* from the call to its return, of those that acquired */
    struct zkl_histogram hold;            /* from there to the last unlock, or the loss */
    /* Now. */

    uint64_t held;
    uint64_t waiting; /* calls */
    /* contenders of any client before the last of these calls, by the list that it saw last or by
     * its number; 0: none, or its place is not known yet */
    uint64_t queue_before;
};

#define ZKL_LOCK_METRICS_INIT                                                                      \
    {                                                                                              \
        sizeof(struct zkl_lock_metrics), 0, 0, {0}, 0, 0, 0, {0}, 0, 0, {0, 0, 0, {0}},            \
            {0, 0, 0, {0}}, 0, 0, 0                                                                \
    }

/* The figures of the mutex's path.
 * 0; ZKL_EINVAL: a NULL, no ZKL_LOCK_METRICS_INIT, or no handle of the path was made with metrics
 * in its options; ZKL_EFORK. */
ZKL_API int zkl_mutex_get_metrics(struct zkl_mutex *mutex, struct zkl_lock_metrics *metrics);
/* The figures of the semaphore's path.
 * 0; ZKL_EINVAL: as zkl_mutex_get_metrics; ZKL_EFORK. */
ZKL_API int zkl_semaphore_get_metrics(struct zkl_semaphore *semaphore,
                                      struct zkl_lock_metrics *metrics);

/* Kinds of requests to the server. */
enum zkl_metrics_request {
    ZKL_METRICS_REQUEST_CREATE = 0, /* a contender's node, or several in one transaction */
    ZKL_METRICS_REQUEST_DELETE = 1, /* likewise */
    ZKL_METRICS_REQUEST_LIST = 2,
    ZKL_METRICS_REQUEST_WATCH = 3,
    ZKL_METRICS_REQUEST_UNWATCH = 4,
    ZKL_METRICS_REQUEST_HEARTBEAT = 5, /* and other transactions that only check */
    /* a read: four in a session timeout; while a lock is held eight, between as many heartbeats;
     * while a call waits at least one each 300 ms */
    ZKL_METRICS_REQUEST_KEEPALIVE = 6,
    /* making parents, and making them anew if a counter is used up */
    ZKL_METRICS_REQUEST_PARENT = 7,
    ZKL_METRICS_REQUEST_READ = 8,
    ZKL_METRICS_REQUEST_WRITE = 9,
    ZKL_METRICS_REQUEST_SYNC = 10,
    ZKL_METRICS_REQUESTS = 11
};

#define ZKL_METRICS_REQUESTS_MAX 32

struct zkl_client_metrics {
    size_t size;
    /* Since the client was opened. */

    uint64_t connections;    /* times that a link came up */
    uint64_t reconnects;     /* of these: all but the first */
    uint64_t disconnections; /* times that a link was lost */
    uint64_t expiries;       /* sessions that ended with what they held */
    uint64_t heartbeats;
    uint64_t requests[ZKL_METRICS_REQUESTS_MAX]; /* sent, by enum zkl_metrics_request */
    uint64_t log_dropped;                        /* log events that a slow callback missed */
    /* how long the ensemble took to answer a write, heartbeats included */
    struct zkl_histogram writes;
    /* Now. */

    int state; /* enum zkl_client_state */
    /* negotiated, the smallest that a server announced for this session; before the first
     * connection the requested one */
    int session_timeout_ms;
    int64_t window_ms;    /* how long the session is proved */
    uint64_t outstanding; /* requests without an answer yet */
    /* contenders that have returned to their caller, but whose node may still be on the server */
    uint64_t janitor_backlog;
    uint64_t watches;
    uint64_t watch_bytes; /* of paths; at most 1,000,000 */
    /* Of the process: how many requests libzookeeper can number yet before numbers that mean
     * something else to it, if only the library uses it; 0 while the library passes those by */
    uint64_t request_numbers_left;
    /* of the paths of the nodes that the session owns or may own; at most ephemeral_bytes_max of
     * the client's options */
    uint64_t ephemeral_bytes;
};

#define ZKL_CLIENT_METRICS_INIT                                                                    \
    {                                                                                              \
        sizeof(struct zkl_client_metrics), 0, 0, 0, 0, 0, {0}, 0, {0, 0, 0, {0}}, 0, 0, 0, 0, 0,   \
            0, 0, 0, 0                                                                             \
    }

/* The client's figures, also after zkl_client_close.
 * 0; ZKL_EINVAL: a NULL, or no ZKL_CLIENT_METRICS_INIT; ZKL_EFORK. */
ZKL_API int zkl_client_get_metrics(struct zkl_client *client, struct zkl_client_metrics *metrics);
/* The figures of all locks of the client together, also after zkl_client_close.
 * 0; ZKL_EINVAL: a NULL, or no ZKL_LOCK_METRICS_INIT; ZKL_EFORK. */
ZKL_API int zkl_client_get_lock_metrics(struct zkl_client *client,
                                        struct zkl_lock_metrics *metrics);

/* Write the client's figures, and those of each path that keeps them (label "lock"), in Prometheus'
 * text format into buf with a final NUL. The label "client" is the owner text of the client's
 * options; without one the process number and which of its clients this is, as in "4711.1".
 * docs/metrics.md lists the names. buf may be NULL if size is 0.
 * Returns the text's length as snprintf does (cut if >= size).
 * Otherwise: ZKL_EINVAL, ZKL_EFORK, ZKL_ENOMEM. */
ZKL_API int zkl_metrics_prometheus(struct zkl_client *client, char *buf, size_t size);

/* Returns the bound of a bucket, 0 to ZKL_HISTOGRAM_BUCKETS - 1; INT64_MAX for the last one. */
ZKL_API int64_t zkl_histogram_bound_ns(size_t bucket);
/* Returns the value at this percentile (0 to 100). It is at most 20 % from the true value, or 0.5
 * microseconds if that is more; 0 if nothing was counted. Above 7 hours it is the longest of
 * all. */
ZKL_API int64_t zkl_histogram_percentile_ns(const struct zkl_histogram *histogram, double percent);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif
