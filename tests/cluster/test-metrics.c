/* SPDX-License-Identifier: Apache-2.0 */
/* Figures agree with an independent count: by the callers themselves, by callbacks, by a proxy and by the
 * server. figures.txt has them call by call. */
#include "inside.h"

#include <stdlib.h>
#include <unistd.h>

#include <zklock/metrics.h>

#include "chance.h"
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

#define CLIENTS 2
#define WORKERS 4   /* of each client */
#define TOGETHER 20 /* first turns, of all workers in parallel: some are handed on for sure */
#define TURNS 150
#define SAMPLES_MAX (WORKERS * (TOGETHER + TURNS) * MUTEXES)

/* What a worker takes: a mutex that is plain, handed on among threads, or kept while nobody wants it; the write lock;
 * permits; then what shares a path with others: the read lock, and the mutexes together. */
enum { PLAIN, HANDED, KEPT, MUTEXES, WRITE = MUTEXES, PERMITS, PATHS, READ = PATHS, TOGETHER_ALL };

/* What the callers saw; under mu. */
struct tally {
    pthread_mutex_t mu;
    uint64_t acquired[PATHS], reentries, failures[ZKL_METRICS_CODES], releases;
    int64_t waits[SAMPLES_MAX], holds[SAMPLES_MAX];
    size_t wait_count, hold_count;
    atomic_int odd; /* results that should not have been */
};

struct workload {
    struct zkl_client *client;
    struct zkl_mutex *mutexes[READ + 1]; /* permits have none */
    struct zkl_semaphore *semaphore;
    struct zkl_multi *multi; /* of the mutexes */
    struct zkl_cancel *set;  /* is set already */
    struct tally tally;
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

static void note(struct tally *t, int rc, int what, int count, int64_t wait_ns)
{
    pthread_mutex_lock(&t->mu);
    if (rc != 0)
        t->failures[-rc]++;
    for (int i = 0; rc == 0 && i < count; i++) {
        t->waits[t->wait_count++] = wait_ns;
        t->acquired[what == TOGETHER_ALL ? i : what == READ ? WRITE : what]++;
    }
    pthread_mutex_unlock(&t->mu);
}

static void note_release(struct tally *t, int count, int reentries, int64_t held_ns)
{
    pthread_mutex_lock(&t->mu);
    for (int i = 0; i < count; i++)
        t->holds[t->hold_count++] = held_ns;
    t->releases += (uint64_t)count;
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

static int acquire_some(const struct workload *l, int what, int count, const struct zkl_wait *wait,
                        struct zkl_permit **permits)
{
    if (what == PERMITS)
        return zkl_semaphore_acquire(l->semaphore, count, wait, permits);
    return what == TOGETHER_ALL ? zkl_multi_acquire(l->multi, wait, NULL)
                                : zkl_mutex_acquire(l->mutexes[what], wait, NULL);
}

static int release_some(const struct workload *l, int what, struct zkl_permit *permit)
{
    if (what == PERMITS)
        return zkl_permit_release(permit);
    return what == TOGETHER_ALL ? zkl_multi_unlock(l->multi, NULL)
                                : zkl_mutex_unlock(l->mutexes[what]);
}

/* Acquire, enter a mutex again now and then, and release. */
static void turn(struct worker *worker, int what)
{
    struct workload *l = worker->workload;
    struct zkl_wait wait = some_wait(worker);
    struct zkl_permit *permits[2] = {NULL};
    int releases = what == PERMITS ? 1 + one_of(&worker->seed, 2) : 1;
    int holds = what == TOGETHER_ALL ? MUTEXES : 1; /* that end with each */
    int again = what == PERMITS || what == TOGETHER_ALL ? 0 : one_of(&worker->seed, 3);

    int64_t start = zkl_now_ns();
    int rc = acquire_some(l, what, releases, &wait, permits);
    int64_t got = zkl_now_ns();
    note(&l->tally, rc, what, releases * holds, got - start);
    if (rc != 0)
        return;
    for (int i = 0; i < again; i++)
        l->tally.odd += zkl_mutex_lock(l->mutexes[what]) != 0;
    nanosleep(&(struct timespec){0, 1000L * one_of(&worker->seed, 800)}, NULL);
    for (int i = 0; i < again; i++)
        l->tally.odd += zkl_mutex_unlock(l->mutexes[what]) != 0;
    for (int i = 0; i < releases; i++) {
        int64_t left = zkl_now_ns();
        l->tally.odd += release_some(l, what, permits[i]) != 0;
        note_release(&l->tally, holds, i == 0 ? again : 0, left - got);
    }
}

/* A thread with the read lock asks for the write lock: the library refuses immediately. */
static void turn_wrong(struct worker *worker)
{
    struct workload *l = worker->workload;
    int64_t start = zkl_now_ns();
    int rc = zkl_mutex_lock(l->mutexes[READ]);
    int64_t got = zkl_now_ns();

    note(&l->tally, rc, READ, 1, got - start);
    rc = zkl_mutex_lock(l->mutexes[WRITE]);
    l->tally.odd += rc != ZKL_EDEADLK;
    note(&l->tally, rc, WRITE, 1, 0);
    int64_t left = zkl_now_ns();
    l->tally.odd += zkl_mutex_unlock(l->mutexes[READ]) != 0;
    note_release(&l->tally, 1, 0, left - got);
}

static void *worker_main(void *arg)
{
    static const int others[] = {PERMITS, TOGETHER_ALL, WRITE, READ};
    struct worker *worker = arg;

    for (int i = 0; i < TOGETHER; i++)
        turn(worker, HANDED);
    for (int i = 0; i < TURNS; i++) {
        int which = one_of(&worker->seed, 7);
        if (which == 6)
            turn_wrong(worker);
        else
            turn(worker, which < 4 ? others[which] : i % MUTEXES);
    }
    return NULL;
}

static void workload_open(struct workload *l, const char *base)
{
    static const char *const names[] = {"plain", "handed", "kept"};
    struct zkl_mutex_options options = counted();
    struct zkl_lock_options of_all = lock_options_of(&options);
    struct zkl_member members[MUTEXES];

    pthread_mutex_init(&l->tally.mu, NULL);
    l->client = world_client();
    for (int i = 0; i < MUTEXES; i++) {
        options.local_handoffs_max = i == HANDED ? 3 : 0;
        options.retain_ms = i == KEPT ? 5000 : 0;
        l->mutexes[i] = world_mutex_with(l->client, below(base, names[i]), &options);
        members[i] = zkl_member_mutex(l->mutexes[i]);
    }
    struct zkl_rwlock *rwlock = world_rwlock(l->client, below(base, "shared"), &of_all);
    l->mutexes[READ] = zkl_rwlock_reader(rwlock);
    l->mutexes[WRITE] = zkl_rwlock_writer(rwlock);
    l->semaphore = world_semaphore(l->client, below(base, "permits"), 3, &of_all);
    l->multi = world_multi(l->client, members, MUTEXES);
    l->set = world_cancel();
    zkl_cancel_set(l->set);
}

/* --- comparing -------------------------------------------------------------------------------- */

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
        check_num(is, >=, low * 8 / 10 - MS / 20);
        check_num(is, <=, high * 12 / 10 + MS / 20);
    }
}

/* The figures of all paths, added up; each path's own are compared. */
static struct zkl_lock_metrics sum_of_paths(const struct workload *l)
{
    struct zkl_lock_metrics m = ZKL_LOCK_METRICS_INIT, sum = ZKL_LOCK_METRICS_INIT;

    for (int i = 0; i < PATHS; i++) {
        check_ok(i == PERMITS ? zkl_semaphore_get_metrics(l->semaphore, &m)
                              : zkl_mutex_get_metrics(l->mutexes[i], &m));
        check_num(m.acquisitions, ==, l->tally.acquired[i]);
        check_num(m.wait.count, ==, m.acquisitions);
        check_num(m.hold.count, ==, m.acquisitions);
        check_num(m.passed > 0, ==, i == HANDED || i == KEPT);
        sum.acquisitions += m.acquisitions;
        sum.reentries += m.reentries;
        sum.releases += m.releases;
        for (size_t c = 0; c < ZKL_METRICS_CODES; c++)
            sum.failures[c] += m.failures[c];
    }
    return sum;
}

static void check_tally(const struct zkl_lock_metrics *m, const struct tally *t)
{
    check_num(m->acquisitions, ==, t->wait_count);
    check_num(m->reentries, ==, t->reentries);
    check_num(m->releases, ==, t->releases);
    for (int c = 0; c < ZKL_METRICS_CODES; c++) {
        if (m->failures[c] != t->failures[c])
            print_error("%s:\n", zkl_strerror(-c));
        check_num(m->failures[c], ==, t->failures[c]);
    }
}

static void compare(struct workload *l)
{
    struct tally *t = &l->tally;
    struct zkl_lock_metrics m = total_figures(l->client), sum = sum_of_paths(l);

    check_tally(&m, t);
    check_tally(&sum, t);
    check_num(m.held + m.waiting + m.unconfirmed, ==, 0);
    check_num(t->odd, ==, 0);
    close_to("wait", &m.wait, t->waits, t->wait_count);
    close_to("hold", &m.hold, t->holds, t->hold_count);
    print_message("    %zu acquired, %d busy, %d timed out, %d canceled, %d deadlocks\n",
                  t->wait_count, (int)t->failures[-ZKL_EBUSY], (int)t->failures[-ZKL_ETIMEDOUT],
                  (int)t->failures[-ZKL_ECANCELED], (int)t->failures[-ZKL_EDEADLK]);
}

/* Goal: counters are exact, and percentiles within the stated error, with threads, clients and
 * every kind of lock that contend, try, time out and cancel. Method: two clients. Their threads
 * count the results of their calls and time the calls themselves. */
WORLD_TEST(figures_are_what_the_callers_counted)
{
    static struct workload workloads[CLIENTS];
    struct worker workers[CLIENTS * WORKERS];
    const char *base = cluster_path("workload");

    memset(workloads, 0, sizeof workloads);
    for (int i = 0; i < CLIENTS; i++)
        workload_open(&workloads[i], base);
    for (int i = 0; i < CLIENTS * WORKERS; i++) {
        workers[i] = (struct worker){.workload = &workloads[i % CLIENTS], .seed = (uint64_t)i + 1};
        check_ok(pthread_create(&workers[i].thread, NULL, worker_main, &workers[i]));
    }
    for (int i = 0; i < CLIENTS * WORKERS; i++)
        check_ok(pthread_join(workers[i].thread, NULL));
    for (int i = 0; i < CLIENTS; i++)
        compare(&workloads[i]);
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
    lose_link(proxy);
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
    static struct notes notes = NOTES_INIT;
    struct proxy *proxy;
    struct zkl_client *client = world_client_through(&proxy, lag_session_ms(2000));
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
    struct proxy *proxy;
    struct zkl_client *client = world_client_through(&proxy, SESSION_MS);
    struct zkl_mutex *mutex = counted_mutex(client, path);

    make_root(path, "");
    cycle(mutex, 1);
    check_wait(figures(client).outstanding == 0, WAIT_MS);
    struct zkl_client_metrics before = figures(client);
    int64_t received = inside_received(client);
    proxy_reset_counts(proxy);
    cycle(mutex, CYCLES);
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

/* --- texts ------------------------------------------------------------------------------------ */

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
