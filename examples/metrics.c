/* SPDX-License-Identifier: Apache-2.0 */
/* Figures for people on call. The program works, then writes its figures in words to standard
 * error, and as text for Prometheus to standard output, as an HTTP server would send it. */
#include <zklock/metrics.h>

#include <stdio.h>
#include <stdlib.h>

enum { REPORTS = 20 };

static int failed(const char *what)
{
    fprintf(stderr, "metrics: %s: %s\n", what, zkl_error_detail());
    return 1;
}

static int work(struct zkl_mutex *mutex, struct zkl_semaphore *semaphore)
{
    struct zkl_permit *permit;
    for (int i = 0; i < REPORTS; i++) {
        if (zkl_mutex_lock(mutex) || zkl_mutex_unlock(mutex))
            return failed("no lock");
    }
    if (zkl_semaphore_acquire(semaphore, 1, NULL, &permit) || zkl_permit_release(permit))
        return failed("no permit");
    return 0;
}

static void tell(const char *what, const struct zkl_histogram *h)
{
    fprintf(stderr, "%s: %llu, half of them up to %lld us, 99 percent up to %lld us\n", what,
            (unsigned long long)h->count, (long long)zkl_histogram_percentile_ns(h, 50) / 1000,
            (long long)zkl_histogram_percentile_ns(h, 99) / 1000);
}

static int in_words(struct zkl_client *client, struct zkl_mutex *mutex, struct zkl_semaphore *sem)
{
    struct zkl_client_metrics all = ZKL_CLIENT_METRICS_INIT;
    struct zkl_lock_metrics locks = ZKL_LOCK_METRICS_INIT, reports = locks, permits = locks;
    if (zkl_client_get_metrics(client, &all) || zkl_client_get_lock_metrics(client, &locks) ||
        zkl_mutex_get_metrics(mutex, &reports) || zkl_semaphore_get_metrics(sem, &permits))
        return failed("no figures");
    tell("waits for the report lock", &reports.wait);
    tell("writes to the ensemble", &all.writes);
    fprintf(stderr, "permits: %llu; timeouts: %llu; width of the first bucket: %lld ns\n",
            (unsigned long long)permits.acquisitions,
            (unsigned long long)locks.failures[-ZKL_ETIMEDOUT],
            (long long)zkl_histogram_bound_ns(0));
    return 0;
}

static int as_text(struct zkl_client *client)
{
    static char text[100000]; /* 10,000 bytes for the client, and as much for each path */
    int length = zkl_metrics_prometheus(client, text, sizeof text);
    int whole = length >= 0 && (size_t)length < sizeof text;
    return whole ? fputs(text, stdout) < 0 : failed("no text");
}

int main(int argc, char **argv)
{
    struct zkl_client *client;
    struct zkl_mutex *mutex;
    struct zkl_semaphore *semaphore;
    struct zkl_client_options options = ZKL_CLIENT_OPTIONS_INIT;
    struct zkl_mutex_options counted = ZKL_MUTEX_OPTIONS_INIT;
    struct zkl_lock_options counted_too = ZKL_LOCK_OPTIONS_INIT;
    options.servers = argc > 1 ? argv[1] : getenv("ZKLOCK_SERVERS");
    options.connect_timeout_ms = 10000;
    counted.metrics = counted_too.metrics = 1; /* figures of these paths, not only of the client */
    if (zkl_client_open(&client, &options) ||
        zkl_mutex_new(&mutex, client, "/zklock/examples/reports", &counted) ||
        zkl_semaphore_new(&semaphore, client, "/zklock/examples/licenses", 3, &counted_too))
        return failed("no lock at HOST:PORT, or ZKLOCK_SERVERS");
    int rc = work(mutex, semaphore) || in_words(client, mutex, semaphore) || as_text(client);
    zkl_semaphore_free(semaphore);
    zkl_mutex_free(mutex);
    return zkl_client_free(client) || rc;
}
