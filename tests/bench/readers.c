/* SPDX-License-Identifier: Apache-2.0 */
/* Readers that share a node which stays (zkl_rwlock_retain_readers), on a private server: how often in a second threads come
 * in and leave, beside the bare floor of that; how long a writer waits behind such clients; and what it costs the
 * server, in packets, that the 100th reader joins and that a writer comes.
 *
 *     bench-readers THREADS SECONDS
 *
 * A line of JSON for each peer of each row, which bench.py reads. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <zklock/zklock.h>

#include "tool/fourlw.h"
#include "zkserver.h"

#define ROUNDS 41
#define KEPT_MAX 32
#define READERS 100
#define LONG_MS 3600000
#define SETTLE_MS 300

struct party {
    struct zkl_client *client;
    struct zkl_rwlock *rwlock;
    struct zkl_mutex *read, *write;
};

static struct zks *server;
static const char path[] = "/bench/readers";

static void must(int rc, const char *what)
{
    if (rc == 0)
        return;
    fprintf(stderr, "bench-readers: %s: %d, %s\n", what, rc, zkl_error_detail());
    exit(1);
}

static int64_t now_ns(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

static void nap_ms(int ms)
{
    nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL);
}

static struct party party(int64_t retain_ms)
{
    struct zkl_client_options options = ZKL_CLIENT_OPTIONS_INIT;
    char servers[64];
    struct party p;
    snprintf(servers, sizeof servers, "%s:%d", zks_host(), zks_port(server, 0));
    options.servers = servers;
    options.session_timeout_ms = 40000;
    options.connect_timeout_ms = 20000;
    must(zkl_client_open(&p.client, &options), "open");
    must(zkl_rwlock_new(&p.rwlock, p.client, path, NULL), "new");
    must(zkl_rwlock_retain_readers(p.rwlock, retain_ms), "retain");
    p.read = zkl_rwlock_reader(p.rwlock);
    p.write = zkl_rwlock_writer(p.rwlock);
    return p;
}

static void part(struct party *p)
{
    must(zkl_rwlock_free(p->rwlock), "free");
    must(zkl_client_free(p->client), "free the client");
}

/* Its node is kept, with nobody in. */
static void keep(struct party *p)
{
    must(zkl_mutex_lock(p->read), "read");
    must(zkl_mutex_unlock(p->read), "unlock");
}

/* --- how fast ----------------------------------------------------------------------------------- */

static _Alignas(64) struct {
    atomic_llong inside, until;
} gate = {0, INT64_MAX};

static struct zkl_mutex *reader;
static atomic_bool stop;

static void lock_once(void)
{
    must(zkl_mutex_lock(reader), "read");
    must(zkl_mutex_unlock(reader), "unlock");
}

/* What is asked for: count up and look, count down and look. */
static void floor_once(void)
{
    atomic_fetch_add(&gate.inside, 1);
    if (atomic_load(&gate.until) == 0)
        abort();
    if (atomic_fetch_sub(&gate.inside, 1) == 0 || atomic_load(&gate.until) == 0)
        abort();
}

/* And a window is looked at both times: that takes a clock. */
static void floor_with_clock(void)
{
    atomic_fetch_add(&gate.inside, 1);
    if (now_ns(CLOCK_BOOTTIME) >= atomic_load(&gate.until))
        abort();
    bool over = now_ns(CLOCK_BOOTTIME) >= atomic_load(&gate.until);
    if (atomic_fetch_sub(&gate.inside, 1) == 0 || over)
        abort();
}

struct runner {
    void (*once)(void);
    long count;
    char apart[64];
};

static void *run(void *arg)
{
    struct runner *r = arg;
    while (!atomic_load_explicit(&stop, memory_order_relaxed)) {
        for (int i = 0; i < 64; i++)
            r->once();
        r->count += 64;
    }
    return NULL;
}

static void measure(const char *peer, void (*once)(void), int threads, double seconds)
{
    pthread_t ids[64];
    struct runner runners[64] = {0};
    atomic_store(&stop, false);
    int64_t began = now_ns(CLOCK_MONOTONIC), cpu = now_ns(CLOCK_PROCESS_CPUTIME_ID);
    for (int i = 0; i < threads; i++) {
        runners[i].once = once;
        pthread_create(&ids[i], NULL, run, &runners[i]);
    }
    nap_ms((int)(seconds * 1000));
    atomic_store(&stop, true);
    long count = 0;
    for (int i = 0; i < threads; i++) {
        pthread_join(ids[i], NULL);
        count += runners[i].count;
    }
    double took = (double)(now_ns(CLOCK_MONOTONIC) - began);
    double used = (double)(now_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu);
    printf("{\"workload\": \"readers-%d\", \"peer\": \"%s\", \"figures\": {\"enters_per_s\": "
           "%.0f, "
           "\"cpu_ns\": %.1f}}\n",
           threads, peer, (double)count / took * 1e9, used / (double)count);
}

static void how_fast(int threads, double seconds)
{
    struct party p = party(LONG_MS);
    reader = p.read;
    keep(&p);
    nap_ms(SETTLE_MS);
    for (int n = 1; n <= threads; n += threads > 1 ? threads - 1 : 1) {
        measure("zklock-cached", lock_once, n, seconds);
        measure("floor-atomics", floor_once, n, seconds);
        measure("floor-clocks", floor_with_clock, n, seconds);
    }
    part(&p);
}

/* --- how long a writer waits ---------------------------------------------------------------------- */

static int by_size(const void *a, const void *b)
{
    int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;
    return (left > right) - (left < right);
}

/* In us. */
static double median_of(int64_t *ns)
{
    qsort(ns, ROUNDS, sizeof *ns, by_size);
    return (double)ns[ROUNDS / 2] / 1e3;
}

static int64_t granted_ns;
static void *write_once(void *write)
{
    must(zkl_mutex_lock(write), "write");
    granted_ns = now_ns(CLOCK_MONOTONIC);
    must(zkl_mutex_unlock(write), "unlock");
    return NULL;
}

/* From the call that gives it back to the grant. */
static double a_hand_off(struct party *r, struct party *w)
{
    int64_t ns[ROUNDS];
    for (int i = 0; i < ROUNDS; i++) {
        pthread_t thread;
        must(zkl_mutex_lock(r->read), "read");
        pthread_create(&thread, NULL, write_once, w->write);
        nap_ms(30);
        int64_t began = now_ns(CLOCK_MONOTONIC);
        must(zkl_mutex_unlock(r->read), "unlock");
        pthread_join(thread, NULL);
        ns[i] = granted_ns - began;
    }
    return median_of(ns);
}

/* From the writer's call to its grant: count clients keep a node each. */
static double behind(struct party *kept, int count, struct party *w)
{
    int64_t ns[ROUNDS];
    for (int i = 0; i < ROUNDS; i++) {
        for (int k = 0; k < count; k++)
            keep(&kept[k]);
        nap_ms(count > 1 ? 100 : 30);
        int64_t began = now_ns(CLOCK_MONOTONIC);
        must(zkl_mutex_lock(w->write), "write");
        ns[i] = now_ns(CLOCK_MONOTONIC) - began;
        must(zkl_mutex_unlock(w->write), "unlock");
    }
    return median_of(ns);
}

/* --- packets --------------------------------------------------------------------------------------- */

static int64_t packets(bool sent)
{
    int64_t in = 0, out = 0;
    flw_packets(zks_host(), zks_port(server, 0), &in, &out);
    return sent ? out : in;
}

/* The 100th reader's joining and the writer's coming, to the server and from it. */
struct cost {
    int64_t join_in, join_out, write_in, write_out;
};

static struct cost what_it_costs(struct party *kept, struct party *w)
{
    struct cost cost;
    struct party more[READERS - KEPT_MAX];
    for (int k = 0; k < KEPT_MAX; k++)
        keep(&kept[k]);
    for (int i = 0; i < READERS - KEPT_MAX; i++) {
        more[i] = party(LONG_MS);
        if (i < READERS - KEPT_MAX - 1)
            must(zkl_mutex_lock(more[i].read), "read");
    }
    nap_ms(3 * SETTLE_MS);
    int64_t in = packets(false), out = packets(true);
    must(zkl_mutex_lock(more[READERS - KEPT_MAX - 1].read), "read");
    nap_ms(SETTLE_MS);
    cost.join_in = packets(false) - in;
    cost.join_out = packets(true) - out;
    for (int i = 0; i < READERS - KEPT_MAX; i++) {
        must(zkl_mutex_unlock(more[i].read), "unlock");
        part(&more[i]);
    }
    nap_ms(3 * SETTLE_MS);
    for (int k = 0; k < KEPT_MAX; k++)
        keep(&kept[k]);
    nap_ms(3 * SETTLE_MS);
    in = packets(false);
    out = packets(true);
    must(zkl_mutex_lock(w->write), "write");
    nap_ms(SETTLE_MS);
    cost.write_in = packets(false) - in;
    cost.write_out = packets(true) - out;
    must(zkl_mutex_unlock(w->write), "unlock");
    return cost;
}

static void a_writer(struct party *kept)
{
    struct party w = party(0), plain = party(0);
    double alone = behind(kept, 0, &w), hand_off = a_hand_off(&plain, &w);
    for (int k = 0; k < KEPT_MAX; k++)
        kept[k] = party(LONG_MS);
    double one = behind(kept, 1, &w), all = behind(kept, KEPT_MAX, &w);
    struct cost cost = what_it_costs(kept, &w);
    printf("{\"workload\": \"readers-writer\", \"peer\": \"zklock-cached\", \"figures\": "
           "{\"free_us\": %.0f, "
           "\"hand_off_us\": %.0f, \"behind_1_us\": %.0f, \"behind_1_hand_offs\": %.3f, "
           "\"behind_32_us\": %.0f, "
           "\"join_in\": %lld, \"join_out\": %lld, \"write_in\": %lld, \"write_out\": %lld}}\n",
           alone, hand_off, one, one / hand_off, all, (long long)cost.join_in,
           (long long)cost.join_out, (long long)cost.write_in, (long long)cost.write_out);
    for (int k = 0; k < KEPT_MAX; k++)
        part(&kept[k]);
    part(&plain);
    part(&w);
}

int main(int argc, char **argv)
{
    static struct party kept[KEPT_MAX];
    int threads = argc > 1 ? atoi(argv[1]) : 0;
    double seconds = argc > 2 ? atof(argv[2]) : 2;
    struct zks_options options = {.tick_ms = 2000, .max_session_ms = 60000};
    char err[300] = "1 to 64 threads";
    if (threads < 1 || threads > 64 || zks_start(&server, &options, err, sizeof err) != 0) {
        fprintf(stderr, "bench-readers: %s\n", err);
        return 1;
    }
    how_fast(threads, seconds);
    a_writer(kept);
    zks_stop(server);
    return 0;
}
