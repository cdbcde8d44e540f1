/* SPDX-License-Identifier: Apache-2.0 */
/* Figures agree with an independent count: by the callers themselves, by callbacks, by a proxy and by the
 * server. */
#include "inside.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <zklock/metrics.h>

#include "chance.h"
#include "check_error.h"
#include "completion.h"
#include "lock_options.h"
#include "nodes.h"
#include "notes.h"

#define MS INT64_C(1000000)

/* --- figures ---------------------------------------------------------------------------------- */

static struct zkl_client_metrics figures(struct zkl_client *client)
{
    struct zkl_client_metrics m = ZKL_CLIENT_METRICS_INIT;

    check_ok(zkl_client_get_metrics(client, &m));
    return m;
}

static struct zkl_lock_metrics total_figures(struct zkl_client *client)
{
    struct zkl_lock_metrics m = ZKL_LOCK_METRICS_INIT;

    check_ok(zkl_client_get_lock_metrics(client, &m));
    check_num(m.held, ==, m.acquisitions - m.hold.count);
    return m;
}

static struct zkl_lock_metrics lock_figures(struct zkl_mutex *mutex)
{
    struct zkl_lock_metrics m = ZKL_LOCK_METRICS_INIT;

    check_ok(zkl_mutex_get_metrics(mutex, &m));
    return m;
}

static struct zkl_mutex_options counted(void)
{
    struct zkl_mutex_options options = ZKL_MUTEX_OPTIONS_INIT;

    options.metrics = 1;
    return options;
}

static struct zkl_mutex *counted_mutex(struct zkl_client *client, const char *path)
{
    struct zkl_mutex_options options = counted();

    return world_mutex_with(client, path, &options);
}

/* Requests of a kind between two looks. */
static uint64_t grew(const struct zkl_client_metrics *m, const struct zkl_client_metrics *before,
                     size_t kind)
{
    return m->requests[kind] - before->requests[kind];
}

static uint64_t all_requests(const struct zkl_client_metrics *m)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < ZKL_METRICS_REQUESTS; i++)
        sum += m->requests[i];
    return sum;
}

/* --- a workload that counts for itself ------------------------------------------------------------ */

#define WORKERS 4
#define TOGETHER                                                                                   \
    20 /* the first turns, of all workers in parallel, so that some are handed on for sure */
#define TURNS 150
#define SAMPLES_MAX (WORKERS * (TOGETHER + TURNS) * MUTEXES)

/* Plain, handed on among threads, kept while nobody wants it; then of other kinds. */
enum { PLAIN, HANDED, KEPT, MUTEXES, SHARED = MUTEXES, PERMITS, PATHS };

/* What the callers saw; under mu. */
struct tally {
    pthread_mutex_t mu;
    uint64_t acquired[PATHS], reentries, failures[ZKL_METRICS_CODES], releases;
    int64_t waits[SAMPLES_MAX], holds[SAMPLES_MAX];
    size_t wait_count, hold_count;
};

struct workload {
    struct zkl_client *client;
    struct zkl_mutex *mutexes[MUTEXES];
    struct zkl_rwlock *rwlock;
    struct zkl_semaphore *semaphore;
    struct zkl_multi *multi; /* of the mutexes */
    struct zkl_cancel *set;  /* is set already */
    struct tally tally;
    atomic_int odd; /* results that should not have been */
};

struct worker {
    pthread_t thread;
    struct workload *workload;
    uint64_t seed;
};

static int one_of(uint64_t *seed, int limit)
{
    return chance_between(seed, 0, limit - 1);
}

static void note(struct tally *t, int rc, int path, int holds, int64_t wait_ns)
{
    pthread_mutex_lock(&t->mu);
    if (rc != 0)
        t->failures[-rc]++;
    for (int i = 0; rc == 0 && i < holds; i++)
        t->waits[t->wait_count++] = wait_ns;
    if (rc == 0)
        t->acquired[path] += (uint64_t)holds;
    pthread_mutex_unlock(&t->mu);
}

static void note_release(struct tally *t, int holds, int reentries, int64_t held_ns)
{
    pthread_mutex_lock(&t->mu);
    for (int i = 0; i < holds; i++)
        t->holds[t->hold_count++] = held_ns;
    t->releases += (uint64_t)holds;
    t->reentries += (uint64_t)reentries;
    pthread_mutex_unlock(&t->mu);
}

/* A try, a wait that is over before it begins or soon after, a wait whose cancel object is set, or one
 * without an end. */
static struct zkl_wait some_wait(struct worker *worker)
{
    struct zkl_wait wait = ZKL_WAIT_INIT;

    switch (one_of(&worker->seed, 6)) {
    case 0:
        wait.flags = ZKL_WAIT_TRY;
        break;
    case 1:
        wait.deadline_ns = zkl_now_ns() + one_of(&worker->seed, 5) * MS;
        break;
    case 2:
        wait.deadline_ns = zkl_now_ns();
        break;
    case 3:
        wait.cancel = one_of(&worker->seed, 3) == 0 ? worker->workload->set : NULL;
        break;
    default:
        break;
    }
    return wait;
}

static void work(struct worker *worker)
{
    struct timespec time = {0, 1000L * one_of(&worker->seed, 800)};

    nanosleep(&time, NULL);
}

static void turn_mutex(struct worker *worker, struct zkl_mutex *mutex, int path)
{
    struct zkl_wait wait = some_wait(worker);
    int again = one_of(&worker->seed, 3);
    int64_t start = zkl_now_ns();
    int rc = zkl_mutex_acquire(mutex, &wait, NULL);
    int64_t got = zkl_now_ns();

    note(&worker->workload->tally, rc, path, 1, got - start);
    if (rc != 0)
        return;
    for (int i = 0; i < again; i++)
        worker->workload->odd += zkl_mutex_lock(mutex) != 0;
    work(worker);
    for (int i = 0; i < again; i++)
        worker->workload->odd += zkl_mutex_unlock(mutex) != 0;
    int64_t left = zkl_now_ns();
    worker->workload->odd += zkl_mutex_unlock(mutex) != 0;
    note_release(&worker->workload->tally, 1, again, left - got);
}

static void turn_semaphore(struct worker *worker)
{
    struct workload *workload = worker->workload;
    struct zkl_wait wait = some_wait(worker);
    int count = 1 + one_of(&worker->seed, 2);
    struct zkl_permit *permits[2];
    int64_t start = zkl_now_ns();
    int rc = zkl_semaphore_acquire(workload->semaphore, count, &wait, permits);
    int64_t got = zkl_now_ns();

    note(&workload->tally, rc, PERMITS, count, got - start);
    if (rc != 0)
        return;
    work(worker);
    for (int i = 0; i < count; i++) {
        int64_t left = zkl_now_ns();
        workload->odd += zkl_permit_release(permits[i]) != 0;
        note_release(&workload->tally, 1, 0, left - got);
    }
}

static void turn_multi(struct worker *worker)
{
    struct workload *workload = worker->workload;
    struct zkl_wait wait = some_wait(worker);
    int64_t start = zkl_now_ns();
    int rc = zkl_multi_acquire(workload->multi, &wait, NULL);
    int64_t got = zkl_now_ns();

    note(&workload->tally, rc, PLAIN, 1, got - start);
    if (rc != 0)
        return;
    note(&workload->tally, rc, HANDED, 1, got - start);
    note(&workload->tally, rc, KEPT, 1, got - start);
    work(worker);
    int64_t left = zkl_now_ns();
    workload->odd += zkl_multi_unlock(workload->multi, NULL) != 0;
    note_release(&workload->tally, MUTEXES, 0, left - got);
}

/* A thread with the read lock asks for the write lock: the library refuses immediately. */
static void turn_wrong(struct worker *worker)
{
    struct zkl_mutex *read = zkl_rwlock_reader(worker->workload->rwlock);
    int64_t start = zkl_now_ns();
    int rc = zkl_mutex_lock(read);
    int64_t got = zkl_now_ns();

    note(&worker->workload->tally, rc, SHARED, 1, got - start);
    rc = zkl_mutex_lock(zkl_rwlock_writer(worker->workload->rwlock));
    worker->workload->odd += rc != ZKL_EDEADLK;
    note(&worker->workload->tally, rc, SHARED, 1, 0);
    int64_t left = zkl_now_ns();
    worker->workload->odd += zkl_mutex_unlock(read) != 0;
    note_release(&worker->workload->tally, 1, 0, left - got);
}

static void *worker_main(void *arg)
{
    struct worker *worker = arg;
    struct workload *workload = worker->workload;

    for (int i = 0; i < TOGETHER; i++)
        turn_mutex(worker, workload->mutexes[HANDED], HANDED);
    for (int i = 0; i < TURNS; i++) {
        switch (one_of(&worker->seed, 7)) {
        case 0:
            turn_semaphore(worker);
            break;
        case 1:
            turn_multi(worker);
            break;
        case 2:
            turn_wrong(worker);
            break;
        case 3:
            turn_mutex(worker, zkl_rwlock_writer(workload->rwlock), SHARED);
            break;
        case 4:
            turn_mutex(worker, zkl_rwlock_reader(workload->rwlock), SHARED);
            break;
        default:
            turn_mutex(worker, workload->mutexes[i % MUTEXES], i % MUTEXES);
            break;
        }
    }
    return NULL;
}

static int open_mutex(struct workload *workload, int which, const char *base)
{
    struct zkl_mutex_options options = counted();
    char path[128];

    options.local_handoffs_max = which == HANDED ? 3 : 0;
    options.retain_ms = which == KEPT ? 5000 : 0;
    snprintf(path, sizeof path, "%s-%d", base, which);
    return zkl_mutex_new(&workload->mutexes[which], workload->client, path, &options);
}

static bool workload_open(struct workload *workload, const char *servers, const char *base)
{
    struct zkl_client_options options = cluster_options();
    struct zkl_mutex_options with = counted();
    struct zkl_lock_options with_all = lock_options_of(&with);
    struct zkl_member members[MUTEXES];
    char path[128];

    options.servers = servers;
    bool ok = zkl_client_open(&workload->client, &options) == 0;
    for (int i = 0; ok && i < MUTEXES; i++) {
        ok = open_mutex(workload, i, base) == 0;
        members[i] = zkl_member_mutex(workload->mutexes[i]);
    }
    if (!ok)
        return false;
    snprintf(path, sizeof path, "%s-shared", base);
    ok = zkl_rwlock_new(&workload->rwlock, workload->client, path, &with_all) == 0;
    snprintf(path, sizeof path, "%s-permits", base);
    ok = ok && zkl_semaphore_new(&workload->semaphore, workload->client, path, 3, &with_all) == 0;
    ok = ok && zkl_multi_new(&workload->multi, workload->client, members, MUTEXES) == 0;
    ok = ok && zkl_cancel_new(&workload->set) == 0;
    if (ok)
        zkl_cancel_set(workload->set);
    return ok;
}

/* --- comparing -------------------------------------------------------------------------------- */

static int wrong;

static void same(const char *what, uint64_t is, uint64_t should)
{
    if (is == should)
        return;
    print_error("%s: %llu, but the callers counted %llu\n", what, (unsigned long long)is,
                (unsigned long long)should);
    wrong++;
}

#define NEAR 8 /* percent */

static int by_size(const void *a, const void *b)
{
    int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;

    return (left > right) - (left < right);
}

/* A caller's own time has some of its own in it, and a thread that does not get the processor may be
 * late for its look at the clock, by much where a sanitizer slows all down: so a percentile may be that of a
 * neighbour. */
static void close_to(const char *what, const struct zkl_histogram *h, int64_t *times, size_t n)
{
    static const int percents[] = {50, 90};

    qsort(times, n, sizeof *times, by_size);
    for (size_t i = 0; i < sizeof percents / sizeof percents[0]; i++) {
        int64_t is = zkl_histogram_percentile_ns(h, percents[i]);
        int64_t low = times[n * (size_t)(percents[i] - NEAR) / 100];
        int64_t high = times[n * (size_t)(percents[i] + NEAR) / 100 - 1];
        print_message("    %s, %d percent: %lld us, by the callers %lld to %lld us\n", what,
                      percents[i], (long long)is / 1000, (long long)low / 1000,
                      (long long)high / 1000);
        if (is < low * 8 / 10 - MS / 20 || is > high * 12 / 10 + MS / 20)
            wrong++;
    }
}

static void compare_paths(const struct workload *workload, struct zkl_lock_metrics *sum)
{
    struct zkl_mutex *const handles[] = {workload->mutexes[PLAIN], workload->mutexes[HANDED],
                                         workload->mutexes[KEPT],
                                         zkl_rwlock_writer(workload->rwlock)};
    struct zkl_lock_metrics m = ZKL_LOCK_METRICS_INIT;

    for (int i = 0; i < PATHS; i++) {
        int rc = i == PERMITS ? zkl_semaphore_get_metrics(workload->semaphore, &m)
                              : zkl_mutex_get_metrics(handles[i], &m);
        same("figures of a path", (uint64_t)-rc, 0);
        same("acquisitions of a path", m.acquisitions, workload->tally.acquired[i]);
        same("waits of a path", m.wait.count, m.acquisitions);
        same("holds of a path", m.hold.count, m.acquisitions);
        same("passed holds of a path", m.passed > 0, i == HANDED || i == KEPT);
        sum->acquisitions += m.acquisitions;
        sum->reentries += m.reentries;
        sum->releases += m.releases;
        for (size_t c = 0; c < ZKL_METRICS_CODES; c++)
            sum->failures[c] += m.failures[c];
    }
}

static void compare(struct workload *workload)
{
    struct tally *t = &workload->tally;
    struct zkl_lock_metrics m = ZKL_LOCK_METRICS_INIT, sum = ZKL_LOCK_METRICS_INIT;
    uint64_t acquired = 0;

    same("figures", (uint64_t)-zkl_client_get_lock_metrics(workload->client, &m), 0);
    compare_paths(workload, &sum);
    for (int i = 0; i < PATHS; i++)
        acquired += t->acquired[i];
    same("acquisitions", m.acquisitions, acquired);
    same("acquisitions of all paths", sum.acquisitions, acquired);
    same("reentries", m.reentries, t->reentries);
    same("reentries of all paths", sum.reentries, t->reentries);
    same("releases", m.releases, t->releases);
    same("releases of all paths", sum.releases, t->releases);
    for (size_t c = 0; c < ZKL_METRICS_CODES; c++) {
        same(zkl_strerror(-(int)c), m.failures[c], t->failures[c]);
        same("the same of all paths", sum.failures[c], t->failures[c]);
    }
    same("held", m.held + m.waiting + m.unconfirmed, 0);
    same("odd results", (uint64_t)workload->odd, 0);
    close_to("wait", &m.wait, t->waits, t->wait_count);
    close_to("hold", &m.hold, t->holds, t->hold_count);
    print_message("    %llu acquired, %llu busy, %llu timed out, %llu canceled, %llu deadlocks\n",
                  (unsigned long long)acquired, (unsigned long long)t->failures[-ZKL_EBUSY],
                  (unsigned long long)t->failures[-ZKL_ETIMEDOUT],
                  (unsigned long long)t->failures[-ZKL_ECANCELED],
                  (unsigned long long)t->failures[-ZKL_EDEADLK]);
}

static void workload_free(struct workload *workload)
{
    same("multi", (uint64_t)-zkl_multi_free(workload->multi), 0);
    same("semaphore", (uint64_t)-zkl_semaphore_free(workload->semaphore), 0);
    same("rwlock", (uint64_t)-zkl_rwlock_free(workload->rwlock), 0);
    for (int i = 0; i < MUTEXES; i++)
        same("mutex", (uint64_t)-zkl_mutex_free(workload->mutexes[i]), 0);
    zkl_cancel_free(workload->set);
    same("client", (uint64_t)-zkl_client_free(workload->client), 0);
}

/* In a process of its own as well: 0 if all figures are right. */
static int run_workload(const char *servers, const char *base, uint64_t seed)
{
    static struct workload workload;
    struct worker workers[WORKERS];

    wrong = 0;
    memset(&workload, 0, sizeof workload);
    pthread_mutex_init(&workload.tally.mu, NULL);
    if (!workload_open(&workload, servers, base))
        return 1;
    for (int i = 0; i < WORKERS; i++) {
        workers[i] =
            (struct worker){.workload = &workload, .seed = seed * WORKERS + (uint64_t)i + 1};
        pthread_create(&workers[i].thread, NULL, worker_main, &workers[i]);
    }
    for (int i = 0; i < WORKERS; i++)
        pthread_join(workers[i].thread, NULL);
    compare(&workload);
    workload_free(&workload);
    pthread_mutex_destroy(&workload.tally.mu);
    return wrong;
}

/* Goal: counters are exact, and percentiles within the stated error, with threads, processes and
 * every kind of lock that contend, try, time out and cancel. Method: two processes. Their threads
 * count the results of their calls and time the calls themselves. */
WORLD_TEST(figures_are_what_the_callers_counted)
{
    char base[64], servers[64];
    int status = -1;

    skip_under_gcc_tsan();
    snprintf(base, sizeof base, "%s", cluster_path("workload"));
    snprintf(servers, sizeof servers, "%s", cluster_servers(zks_connect_string(server)));
    pid_t other = fork(); /* before this process has threads */
    if (other == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        _exit(run_workload(servers, base, 2) != 0);
    }
    int mine = run_workload(servers, base, 1);
    check_num(waitpid(other, &status, 0), ==, other);
    check_ok(mine);
    check_ok(status);
}

/* --- operations ------------------------------------------------------------------------------- */

static int acquire_as(struct zkl_owner *owner, struct zkl_mutex *mutex, const struct zkl_wait *wait)
{
    struct completion done = {0};
    int rc = zkl_mutex_acquire_async(owner, mutex, wait, NULL, note_completion, &done, NULL);

    return rc != 0 ? rc : completion_code(&done);
}

static int acquire_all_as(struct zkl_owner *owner, struct zkl_multi *multi)
{
    struct completion done = {0};
    int rc = zkl_multi_acquire_async(owner, multi, NULL, NULL, note_completion, &done, NULL);

    return rc != 0 ? rc : completion_code(&done);
}

/* A multi-lock of a path that its owner has through another handle, and then has not. */
static void acquire_all(struct zkl_client *client, struct zkl_owner *owner, struct zkl_mutex *mutex,
                        struct zkl_mutex *other)
{
    struct zkl_member member = zkl_member_mutex(other);
    struct completion done = {0};

    struct zkl_multi *multi = world_multi(client, &member, 1);
    check_ok(acquire_as(owner, mutex, NULL));
    check_num(acquire_all_as(owner, multi), ==, ZKL_EDEADLK);
    check_ok(async_unlock(owner, mutex));
    check_ok(acquire_all_as(owner, multi));
    check_ok(zkl_multi_unlock_async(owner, multi, NULL, note_completion, &done));
    check_ok(completion_code(&done));
}

/* Goal: operations count as the calls that they are the twins of. Method: one of each outcome, two of
 * each success. */
WORLD_TEST(operations_count_as_calls_do)
{
    struct zkl_client *client = world_client();
    const char *path = cluster_path("operations");
    struct zkl_mutex *mutex = counted_mutex(client, path), *other = world_mutex(client, path);
    struct zkl_owner *a = world_owner(), *b = world_owner();
    struct zkl_wait try = ZKL_WAIT_INIT, over = ZKL_WAIT_INIT, soon = ZKL_WAIT_INIT;
    struct completion done = {0};
    uint64_t op;

    try.flags = ZKL_WAIT_TRY;
    over.deadline_ns = 1;
    check_ok(acquire_as(a, mutex, NULL));
    check_ok(acquire_as(a, mutex, &over)); /* again */
    check_num(acquire_as(b, mutex, &try), ==, ZKL_EBUSY);
    check_num(acquire_as(b, mutex, &over), ==, ZKL_ETIMEDOUT);
    soon.deadline_ns = zkl_now_ns() + 100 * MS;
    check_num(acquire_as(b, mutex, &soon), ==, ZKL_ETIMEDOUT);
    check_ok(zkl_mutex_acquire_async(b, mutex, NULL, NULL, note_completion, &done, &op));
    check_num(acquire_as(b, mutex, NULL), ==, ZKL_EDEADLK); /* an operation is under way */
    check_num(lock_figures(mutex).waiting, ==, 1);
    check_ok(zkl_op_cancel(client, op));
    check_num(completion_code(&done), ==, ZKL_ECANCELED);
    check_ok(async_unlock(a, mutex));
    check_num(lock_figures(mutex).held, ==, 1);
    check_ok(async_unlock(a, mutex));
    check_ok(acquire_as(b, mutex, NULL));
    check_ok(async_unlock(b, mutex));
    acquire_all(client, b, mutex, other);
    struct zkl_lock_metrics m = lock_figures(mutex);
    check_num(m.acquisitions, ==, 4);
    check_num(m.reentries, ==, 1);
    check_num(m.releases, ==, 4);
    check_num(m.wait.count + m.hold.count, ==, 8);
    check_num(m.failures[-ZKL_EBUSY], ==, 1);
    check_num(m.failures[-ZKL_ETIMEDOUT], ==, 2);
    check_num(m.failures[-ZKL_ECANCELED], ==, 1);
    check_num(m.failures[-ZKL_EDEADLK], ==, 2);
    check_num(m.held + m.waiting, ==, 0);
}

/* Goal: a call that is refused before it waits counts once. Method: one of each reason, on a mutex, a semaphore and
 * a semaphore's mutex; one that gives up later, for each kind. */
WORLD_TEST(refused_calls_count_once)
{
    struct zkl_client *client = world_client();
    const char *path = cluster_path("refused"), *permits = cluster_path("refused-permits");
    struct zkl_mutex *mutex = counted_mutex(client, path), *other = world_mutex(client, path);
    struct zkl_permit *permit = NULL;
    struct zkl_wait over = ZKL_WAIT_INIT, try = ZKL_WAIT_INIT;

    over.deadline_ns = 1;
    try.flags = ZKL_WAIT_TRY;
    struct zkl_mutex *handle = world_semaphore_mutex(client, permits);
    struct zkl_semaphore *semaphore = world_semaphore(client, permits, 1, NULL);
    check_num(zkl_mutex_acquire(mutex, &over, NULL), ==, ZKL_ETIMEDOUT);
    check_num(zkl_mutex_acquire(handle, &over, NULL), ==, ZKL_ETIMEDOUT);
    check_num(zkl_semaphore_acquire(semaphore, 1, &over, &permit), ==, ZKL_ETIMEDOUT);
    check_num(zkl_semaphore_acquire(semaphore, 2, NULL, &permit), ==, ZKL_EINVAL); /* not counted */
    check_ok(zkl_mutex_lock(mutex));
    check_ok(zkl_mutex_lock(handle));
    check_num(zkl_mutex_lock(other), ==, ZKL_EDEADLK);
    check_num(zkl_mutex_trylock(handle), ==, ZKL_EBUSY);
    check_num(zkl_semaphore_acquire(semaphore, 1, &try, &permit), ==, ZKL_EBUSY);
    check_num(zkl_mutex_lock_for(handle, 100), ==, ZKL_ETIMEDOUT);
    struct zkl_lock_metrics m = total_figures(client);
    uint64_t failures = 0;
    for (size_t c = 0; c < ZKL_METRICS_CODES; c++)
        failures += m.failures[c];
    check_num(m.failures[-ZKL_ETIMEDOUT], ==, 4);
    check_num(m.failures[-ZKL_EBUSY], ==, 2);
    check_num(m.failures[-ZKL_EDEADLK], ==, 1);
    check_num(failures, ==, 7);
    check_ok(zkl_mutex_unlock(handle));
    check_ok(zkl_mutex_unlock(mutex));
}

/* --- losses ----------------------------------------------------------------------------------- */

static int acquire_leased(struct zkl_mutex *mutex, int64_t lease_ms)
{
    struct zkl_wait wait = ZKL_WAIT_INIT;

    wait.lease_ms = lease_ms;
    return zkl_mutex_acquire(mutex, &wait, NULL);
}

static void let_expire(struct proxy *proxy, const char *path)
{
    check_ok(proxy_refuse(proxy, true));
    proxy_cut(proxy);
    check_wait(cluster_children(path) == 0, WAIT_MS);
    check_ok(proxy_refuse(proxy, false));
}

static void *lock_and_exit(void *mutex)
{
    return (void *)(intptr_t)zkl_mutex_lock(mutex);
}

static uint64_t count_notes(struct notes *notes, int note_state, int reason)
{
    uint64_t n = 0;

    pthread_mutex_lock(&notes->mu);
    for (size_t i = 0; i < notes->count; i++)
        n += (int)notes->list[i].state == note_state &&
             (reason < 0 || (int)notes->list[i].reason == reason);
    pthread_mutex_unlock(&notes->mu);
    return n;
}

/* The figures must be those of the callback's events. */
static void check_notes(struct zkl_mutex *mutex, struct notes *notes)
{
    struct zkl_lock_metrics m = lock_figures(mutex);

    for (int reason = 0; reason < ZKL_METRICS_REASONS; reason++)
        check_num(m.losses[reason], ==, count_notes(notes, ZKL_HOLD_LOST, reason));
    check_num(m.suspects, ==, count_notes(notes, ZKL_HOLD_SUSPECT, -1));
    check_num(m.revocations, ==, count_notes(notes, ZKL_HOLD_REVOKE_REQUESTED, -1));
}

/* On a busy machine a link may be suspect at any time. */
static void check_no_more(struct notes *notes, size_t count)
{
    check_true(noted(notes) == count || lag_is_slow());
}

static void lose_by_deletion(struct zkl_mutex *mutex, struct notes *notes)
{
    size_t before = noted(notes);

    check_ok(zkl_mutex_lock(mutex));
    ask_for(mutex);
    check_wait(count_notes(notes, ZKL_HOLD_REVOKE_REQUESTED, -1) == 1, WAIT_MS);
    check_ok(wire_delete(raw, node_of(mutex), -1));
    check_wait(count_notes(notes, ZKL_HOLD_LOST, -1) == 1, WAIT_MS);
    check_no_more(notes, before + 2);
    check_num(zkl_mutex_lock(mutex), ==, ZKL_ELOST);
    check_num(zkl_mutex_unlock(mutex), ==, ZKL_ELOST);
}

static void lose_by_lease(struct zkl_mutex *mutex, struct notes *notes)
{
    size_t before = noted(notes);

    check_ok(acquire_leased(mutex, 200));
    check_wait(count_notes(notes, ZKL_HOLD_LOST, -1) == 2, WAIT_MS);
    check_no_more(notes, before + 1);
    check_num(lock_figures(mutex).held, ==, 0);
    check_num(zkl_mutex_unlock(mutex), ==, ZKL_ELOST);
}

static void lose_by_exit(struct zkl_mutex *mutex, struct notes *notes)
{
    size_t before = noted(notes);
    pthread_t thread;

    check_ok(pthread_create(&thread, NULL, lock_and_exit, mutex));
    check_ok(pthread_join(thread, NULL));
    check_wait(count_notes(notes, ZKL_HOLD_LOST, -1) == 3, WAIT_MS);
    check_no_more(notes, before + 1);
}

/* Goal: the figures count losses by their reasons, and lost links and sessions. Method: the test
 * causes each of them, and compares the figures with the events of the callback. The proxy
 * determines the numbers of links. */
WORLD_TEST(losses_and_links_are_counted)
{
    const char *path = cluster_path("losses");
    struct zkl_client_options options = cluster_options();
    static struct notes notes = NOTES_INIT;

    struct proxy *proxy = world_proxy_for(&options);
    options.session_timeout_ms = lag_session_ms(2000);
    struct zkl_client *client = world_client_with(&options);
    struct zkl_mutex *mutex = counted_mutex(client, path);
    check_ok(zkl_mutex_set_callback(mutex, take_note, &notes));
    lose_by_deletion(mutex, &notes);
    lose_by_lease(mutex, &notes);
    lose_by_exit(mutex, &notes);
    check_notes(mutex, &notes);
    check_num(figures(client).connections, ==, 1);
    check_ok(zkl_mutex_lock(mutex));
    size_t before = noted(&notes);
    uint64_t suspects = count_notes(&notes, ZKL_HOLD_SUSPECT, -1);
    uint64_t proofs = count_notes(&notes, ZKL_HOLD_HELD, -1);
    proxy_cut(proxy);
    check_wait(count_notes(&notes, ZKL_HOLD_SUSPECT, -1) > suspects &&
                   count_notes(&notes, ZKL_HOLD_HELD, -1) > proofs,
               WAIT_MS);
    check_no_more(&notes, before + 2);
    check_notes(mutex, &notes);
    let_expire(proxy, path);
    check_wait(count_notes(&notes, ZKL_HOLD_LOST, ZKL_REASON_EXPIRED) == 1, WAIT_MS);
    check_wait(figures(client).connections == 3, WAIT_MS);
    check_num(zkl_mutex_unlock(mutex), ==, ZKL_ELOST);
    check_ok(zkl_mutex_lock(mutex));
    check_closed(zkl_client_close(client, WAIT_MS));
    check_wait(count_notes(&notes, ZKL_HOLD_LOST, ZKL_REASON_CLOSED) == 1, WAIT_MS);
    check_num(zkl_mutex_unlock(mutex), ==, ZKL_ELOST);
    check_notes(mutex, &notes);
    struct zkl_client_metrics m = figures(client);
    check_num(m.connections, ==, 3);
    check_num(m.reconnects, ==, 2);
    check_num(m.disconnections, ==, 2);
    check_num(m.expiries, ==, 1);
    check_num(m.state, ==, ZKL_CLIENT_CLOSED);
    check_num(total_figures(client).acquisitions, ==, 5);
    check_num(total_figures(client).hold.count, ==, 5);
    check_num(total_figures(client).releases, ==, 4); /* one thread has ended instead */
    check_num(total_figures(client).failures[-ZKL_ELOST], ==, 1);
}

/* Goal: an unlock that was not answered is counted, and what the janitor still has to do is seen. Method:
 * the proxy keeps the delete back, then the link breaks. */
WORLD_TEST(the_janitors_backlog_is_seen)
{
    const char *path = cluster_path("janitor");
    struct zkl_client_options options = cluster_options();

    struct proxy *proxy = world_proxy_for(&options);
    struct zkl_client *client = world_client_with(&options);
    struct zkl_mutex *mutex = counted_mutex(client, path);
    check_ok(zkl_mutex_lock(mutex));
    check_num(figures(client).janitor_backlog, ==, 0);
    check_ok(proxy_drop_request(proxy, PROXY_DELETE, 1, PROXY_THEN_CUT));
    check_ok(proxy_hold_request(proxy, PROXY_DELETE, 2));
    check_num(zkl_mutex_unlock(mutex), ==, ZKL_EUNCONFIRMED);
    check_ok(proxy_wait_held(proxy, WAIT_MS));
    struct zkl_client_metrics m = figures(client);
    check_num(m.janitor_backlog, ==, 1);
    check_num(total_figures(client).unconfirmed, ==, 1);
    check_num(total_figures(client).releases, ==, 1);
    check_num(m.outstanding, >=, 1);
    proxy_release(proxy);
    check_wait(figures(client).janitor_backlog == 0, WAIT_MS);
    check_wait(figures(client).outstanding == 0, WAIT_MS);
    check_num(cluster_children(path), ==, 0);
}

/* --- queues ----------------------------------------------------------------------------------- */

#define QUEUE 5

/* Goal: the figures say whether the client holds, how many of its calls wait and how many
 * contenders are before them, without a request. Method: a queue of one client behind another
 * client's holder. */
WORLD_TEST(queues_are_told_from_lists_that_came_anyway)
{
    const char *path = cluster_path("queue");
    struct zkl_client *holder = world_client(), *client = world_client();
    struct zkl_mutex *held = counted_mutex(holder, path), *mutex = counted_mutex(client, path);
    struct actor *actors[QUEUE];

    check_ok(zkl_mutex_lock(held));
    check_num(lock_figures(held).held, ==, 1);
    check_num(lock_figures(mutex).held, ==, 0); /* by another client */
    for (size_t i = 0; i < QUEUE; i++) {
        actors[i] = world_actor();
        actor_begin(actors[i], do_lock, mutex);
        check_wait(lock_figures(mutex).queue_before == i + 1, WAIT_MS);
        check_num(lock_figures(mutex).waiting, ==, i + 1);
    }
    struct zkl_client_metrics before = figures(client);
    for (size_t i = 0; i < 1000; i++)
        check_num(total_figures(client).waiting, ==, QUEUE);
    struct zkl_client_metrics after = figures(client);
    after.requests[ZKL_METRICS_REQUEST_KEEPALIVE] = before.requests[ZKL_METRICS_REQUEST_KEEPALIVE];
    /* Put off till now. */
    after.requests[ZKL_METRICS_REQUEST_WATCH] = before.requests[ZKL_METRICS_REQUEST_WATCH];
    check_num(all_requests(&after), ==, all_requests(&before));
    check_ok(zkl_mutex_unlock(held));
    for (size_t i = 0; i < QUEUE; i++) {
        check_ok(actor_result(actors[i]));
        check_ok(actor_do(actors[i], do_unlock, mutex));
    }
    struct zkl_lock_metrics m = lock_figures(mutex);
    check_num(m.waiting, ==, 0);
    check_num(m.queue_before, ==, 0);
    check_num(m.acquisitions, ==, QUEUE);
    check_num(m.held, ==, 0);
}

/* --- requests --------------------------------------------------------------------------------- */

#define CYCLES 200

static int lock_for_a_while(void *mutex)
{
    return zkl_mutex_lock_for(mutex, 700);
}

static void wait_in_vain(struct zkl_mutex *mutex)
{
    struct actor *actor = world_actor();

    check_ok(zkl_mutex_lock(mutex));
    check_num(actor_do(actor, lock_for_a_while, mutex), ==, ZKL_ETIMEDOUT);
    check_ok(zkl_mutex_unlock(mutex));
}

/* Goal: the client counts requests as the server does, and by kind as the proxy does. It sends no
 * request to keep figures. Method: locks and unlocks with figures: three requests each, as without.
 * Then a wait, which has watches and keepalives. */
WORLD_TEST(requests_are_those_that_the_server_got)
{
    const char *path = cluster_path("requests");
    struct zkl_client_options options = cluster_options();

    struct proxy *proxy = world_proxy_for(&options);
    struct zkl_client *client = world_client_with(&options);
    struct zkl_mutex *mutex = counted_mutex(client, path);
    make_root(path, "");
    check_ok(zkl_mutex_lock(mutex));
    check_ok(zkl_mutex_unlock(mutex));
    check_wait(figures(client).outstanding == 0, WAIT_MS);
    struct zkl_client_metrics before = figures(client);
    int64_t received = inside_received(client);
    proxy_reset_counts(proxy);
    for (int i = 0; i < CYCLES; i++) {
        check_ok(zkl_mutex_lock(mutex));
        check_ok(zkl_mutex_unlock(mutex));
    }
    check_wait(figures(client).outstanding == 0, WAIT_MS);
    struct zkl_client_metrics m = figures(client);
    check_num(all_requests(&m) - all_requests(&before), ==, inside_received(client) - received);
    check_num(grew(&m, &before, ZKL_METRICS_REQUEST_CREATE), ==, CYCLES);
    check_num(grew(&m, &before, ZKL_METRICS_REQUEST_DELETE), ==, CYCLES);
    uint64_t lists = grew(&m, &before, ZKL_METRICS_REQUEST_LIST);
    uint64_t keepalives = grew(&m, &before, ZKL_METRICS_REQUEST_KEEPALIVE);
    check_num(lists, ==, proxy_counts(proxy, PROXY_CHILDREN));
    check_num(lists, <=, CYCLES);
    check_num(lists + keepalives, >=,
              CYCLES); /* beside a keepalive that is under way none is sent */
    check_num(keepalives, ==, proxy_counts(proxy, PROXY_EXISTS));
    check_num(all_requests(&m) - all_requests(&before), ==,
              2 * CYCLES + lists + keepalives + 1); /* 1: the path is watched */
    check_num(m.writes.count - before.writes.count, ==, 2 * CYCLES);
    check_num(m.window_ms, >, 0);
    wait_in_vain(mutex);
    check_wait(figures(client).outstanding == 0, WAIT_MS);
    m = figures(client);
    check_num(all_requests(&m) - all_requests(&before), ==, inside_received(client) - received);
    check_num(grew(&m, &before, ZKL_METRICS_REQUEST_KEEPALIVE), ==,
              proxy_counts(proxy, PROXY_EXISTS));
    check_num(proxy_counts(proxy, PROXY_EXISTS), >, 0);
    check_num(grew(&m, &before, ZKL_METRICS_REQUEST_WATCH), ==, proxy_counts(proxy, PROXY_GET));
    check_num(grew(&m, &before, ZKL_METRICS_REQUEST_UNWATCH), ==,
              proxy_counts(proxy, PROXY_REMOVE_WATCHES));
}

/* --- paths ------------------------------------------------------------------------------------ */

static size_t paths_of(struct zkl_client *client)
{
    size_t n = 0;

    zkl_driver_lock(client->driver);
    for (size_t i = 0; i < ZKL_LOCK_PATH_BUCKETS; i++) {
        for (const struct zkl_lock_path *root = client->lock_paths[i]; root; root = root->next)
            n++;
    }
    zkl_driver_unlock(client->driver);
    return n;
}

/* Goal: all handles of a path share its figures, from the first handle on that asks for them. The
 * client keeps the figures in its totals when the path has no handle any more. */
WORLD_TEST(figures_outlive_their_path)
{
    const char *path = cluster_path("path");
    struct zkl_client *client = world_client();
    struct zkl_mutex *plain = world_mutex(client, path);
    struct zkl_lock_metrics m = ZKL_LOCK_METRICS_INIT;

    check_fails(zkl_mutex_get_metrics(plain, &m), ZKL_EINVAL, "set metrics in its options");
    check_ok(zkl_mutex_lock(plain));
    struct zkl_mutex *asking = counted_mutex(client, path); /* while somebody holds */
    check_num(lock_figures(plain).acquisitions, ==, 0);
    check_ok(zkl_mutex_unlock(plain));
    check_num(lock_figures(plain).held, ==, 0);
    check_ok(zkl_mutex_lock(plain));
    check_ok(zkl_mutex_unlock(plain));
    check_ok(zkl_mutex_lock(asking));
    check_ok(zkl_mutex_unlock(asking));
    check_num(lock_figures(plain).acquisitions, ==, 2);
    check_num(lock_figures(asking).hold.count, ==, 2);
    check_num(total_figures(client).acquisitions, ==, 3);
    world_drop(asking);
    check_num(lock_figures(plain).acquisitions, ==, 2);
    world_drop(plain);
    check_wait(paths_of(client) == 0, WAIT_MS);
    check_num(total_figures(client).acquisitions, ==, 3);
    check_num(total_figures(client).hold.count, ==, 3);
}

/* The label of all samples of a client's text. */
static void label_of(struct zkl_client *client, char *label, size_t size)
{
    static char text[64 * 1024];
    char start[200];
    size_t samples = 0;

    check_num(zkl_metrics_prometheus(client, text, sizeof text), <, sizeof text);
    const char *at = strstr(text, "{client=\"");
    check_num(at != NULL, ==, 1);
    snprintf(label, size, "%.*s", (int)strcspn(at + 9, "\""), at + 9);
    snprintf(start, sizeof start, "{client=\"%s\"", label);
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
        if (line[0] == '#')
            continue;
        check_num(strncmp(strchr(line, '{'), start, strlen(start)), ==, 0);
        samples++;
    }
    check_num(samples, >, 100);
}

WORLD_TEST(texts_of_two_clients_do_not_collide)
{
    struct zkl_client_options options = cluster_options();
    struct zkl_client *first = world_client(), *second = world_client();
    char one[100], other[100];

    options.owner = "nightly jobs";
    struct zkl_client *named = world_client_with(&options);
    label_of(first, one, sizeof one);
    label_of(second, other, sizeof other);
    check_num(strcmp(one, other), !=, 0);
    check_num(strtol(one, NULL, 10), ==, getpid());
    label_of(named, one, sizeof one);
    check_num(strcmp(one, "nightly jobs"), ==, 0);
}
