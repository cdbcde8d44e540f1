/* SPDX-License-Identifier: Apache-2.0 */
/* Waits that end without the lock leave nothing: no node, no watch on the server, no record of a
 * call, no memory. This holds not only at the end but all along, while the holder lives. */
#include "cluster.h"
#include "api/client.h"
#include "under_way.h"

#include <malloc.h>

#define PATHS 100
#define WORKERS 8
#define ROUNDS 10
#define WAIT_US_MAX 20000 /* longer than the server needs for all WORKERS */
/* What buffers may differ by. It is exact only without malloc's caches for threads, which count as
 * memory in use; meson.build switches them off. */
#define FLAT_BYTES (getenv("GLIBC_TUNABLES") ? 16 * 1024 : 256 * 1024)
/* What the waits of all WORKERS can have under way on a warm server. */
#define FLAT_BUSY (16 * WORKERS)
#define STANDS_STILL (-1000)
#define FLAT_WATCHES (4 * WORKERS) /* two for each, and some whose removal is on its way */

/* --- the holder ------------------------------------------------------------------------------- */

struct scene {
    char paths[PATHS][32];
    struct zkl_client *holder, *client;
    struct zkl_mutex *held[PATHS], *mutexes[PATHS];
};

static void scene_begin(struct scene *s)
{
    s->holder = world_client();
    s->client = world_client();
    for (int i = 0; i < PATHS; i++) {
        snprintf(s->paths[i], sizeof s->paths[i], "%s", cluster_path("leftover"));
        s->held[i] = world_mutex(s->holder, s->paths[i]);
        s->mutexes[i] = world_mutex(s->client, s->paths[i]);
        check_ok(zkl_mutex_lock(s->held[i]));
    }
}

static void scene_end(struct scene *s)
{
    for (int i = 0; i < PATHS; i++) {
        check_num(zkl_mutex_still_held(s->held[i], 0), ==, 1);
        check_ok(zkl_mutex_unlock(s->held[i]));
        check_num(cluster_children(s->paths[i]), ==, 0);
    }
}

/* --- the waiters ------------------------------------------------------------------------------ */

/* A thread with waits of its own. Each wait must end with the expected code. */
struct worker {
    struct scene *scene;
    int (*wait)(struct worker *worker, struct zkl_mutex *mutex);
    int expected, count, wrong;
    unsigned seed;
    pthread_t thread;
    pthread_mutex_t mu; /* guards cancel */
    struct zkl_cancel *cancel;
    atomic_bool done;
};

static int wait_a_little(struct worker *w, struct zkl_mutex *mutex)
{
    int64_t us = rand_r(&w->seed) % WAIT_US_MAX;

    return zkl_mutex_lock_until(mutex, zkl_now_ns() + us * 1000, NULL);
}

static void set_current(struct worker *w, struct zkl_cancel *cancel)
{
    pthread_mutex_lock(&w->mu);
    w->cancel = cancel;
    pthread_mutex_unlock(&w->mu);
}

static int wait_for_cancel(struct worker *w, struct zkl_mutex *mutex)
{
    struct zkl_cancel *cancel = NULL;

    if (zkl_cancel_new(&cancel) != 0)
        return ZKL_ENOMEM;
    set_current(w, cancel);
    int rc = zkl_mutex_lock_until(mutex, ZKL_NO_DEADLINE, cancel);
    set_current(w, NULL);
    zkl_cancel_free(cancel);
    return rc;
}

static size_t count_contenders(const struct scene *s)
{
    struct zkl_driver *d = s->client->driver;

    zkl_driver_lock(d);
    size_t n = contenders_of(&d->core);
    zkl_driver_unlock(d);
    return n;
}

/* A wait that has ended leaves its contender until the server has answered. So a slow server has the threads wait for
 * it, which a contender that never ends lets them do in vain. */
static bool may_go_on(const struct worker *w)
{
    return wait_until(count_contenders(w->scene) <= FLAT_BUSY - WORKERS, WAIT_MS);
}

static void *work(void *arg)
{
    struct worker *w = arg;

    for (int i = 0; i < w->count; i++) {
        if (!may_go_on(w)) {
            w->wrong = STANDS_STILL;
            break;
        }
        int rc = w->wait(w, w->scene->mutexes[rand_r(&w->seed) % PATHS]);
        if (rc != w->expected)
            w->wrong = rc;
    }
    atomic_store(&w->done, true);
    return NULL;
}

/* --- looking ---------------------------------------------------------------------------------- */

struct look {
    size_t contenders, watches, calls, pending;
    int server_watches;
    size_t bytes;
};

static struct look look(struct scene *s)
{
    struct zkl_driver *d = s->client->driver;
    struct look look;

    zkl_driver_lock(d);
    look.contenders = contenders_of(&d->core);
    look.watches = d->core.watch_count;
    look.pending = d->core.pending_count;
    look.calls = calls_of(d);
    look.bytes = mallinfo2().uordblks;
    zkl_driver_unlock(d);
    look.server_watches = flw_watch_count(zks_host(), zks_port(server, 0), NULL);
    check_num(look.server_watches, >=, 0);
    return look;
}

/* One look, as the next one can meet the holders' heartbeat, which takes 20 kB for a hundred nodes: its answer is counted
 * no more before its memory is free. */
static bool is_at_rest(struct scene *s, struct look *rest, size_t most_bytes)
{
    struct look l = *rest = look(s);

    return l.contenders == 0 && l.watches == 0 && l.calls == 0 && l.pending == 0 &&
           l.server_watches == 0 && l.bytes <= most_bytes;
}

static void keep_largest(struct look *largest, struct look l)
{
#define LARGER(field) largest->field = l.field > largest->field ? l.field : largest->field
    LARGER(contenders);
    LARGER(watches);
    LARGER(calls);
    LARGER(pending);
    LARGER(server_watches);
    LARGER(bytes);
#undef LARGER
}

/* --- rounds ----------------------------------------------------------------------------------- */

static void cancel_current(struct worker *w)
{
    pthread_mutex_lock(&w->mu);
    zkl_cancel_set(w->cancel);
    pthread_mutex_unlock(&w->mu);
}

/* Look again and again until all workers are done. After each look the test cancels a wait of the
 * next worker, so that waits end in every state. */
static struct look watch_over(struct scene *s, struct worker *workers)
{
    struct look largest = {0};

    for (int done = 0, turn = 0; done < WORKERS; turn++) {
        keep_largest(&largest, look(s));
        cancel_current(&workers[turn % WORKERS]);
        done = 0;
        for (int i = 0; i < WORKERS; i++)
            done += atomic_load(&workers[i].done);
    }
    return largest;
}

/* One round of waits with threads of their own. What it had under way at most. */
static struct look run_round(struct scene *s, const struct worker *kind, int count, int round)
{
    struct worker workers[WORKERS];

    for (int i = 0; i < WORKERS; i++) {
        workers[i] = *kind;
        workers[i].scene = s;
        workers[i].count = count / WORKERS + (i < count % WORKERS);
        workers[i].seed = (unsigned)(round * WORKERS + i + 1);
        check_ok(pthread_mutex_init(&workers[i].mu, NULL));
        check_ok(pthread_create(&workers[i].thread, NULL, work, &workers[i]));
    }
    struct look largest = watch_over(s, workers);
    for (int i = 0; i < WORKERS; i++) {
        check_ok(pthread_join(workers[i].thread, NULL));
        check_ok(pthread_mutex_destroy(&workers[i].mu));
        check_ok(workers[i].wrong);
    }
    return largest;
}

static struct look check_only_holders_left(struct scene *s, size_t most_bytes)
{
    struct look rest;

    check_wait(is_at_rest(s, &rest, most_bytes), WAIT_MS);
    for (int i = 0; i < PATHS; i++)
        check_num(cluster_children(s->paths[i]), ==, 1);
    return rest;
}

static void print_round(const char *name, int round, struct look busy, size_t bytes)
{
    print_message("%s %d: contenders %zu, calls %zu, watches %zu, on the server %d; at rest "
                  "%zu bytes\n",
                  name, round, busy.contenders, busy.calls, busy.watches, busy.server_watches,
                  bytes);
}

static void check_busy(struct look busy)
{
    check_num(busy.contenders, <=, FLAT_BUSY);
    check_num(busy.calls, <=, 4 * FLAT_BUSY);
    check_num(busy.watches, <=, FLAT_WATCHES);
    check_num(busy.server_watches, <=, FLAT_WATCHES);
}

/* Rounds of waits. During each round the number of threads limits what is under way, and not the
 * number of waits so far. Between two rounds only the holders' nodes are left. The memory is that
 * after the second round, which has warmed everything up, or after a later one with more under way
 * than any before: what is kept for calls to come is as much as was ever needed at once. */
static void check_rounds(const char *name, const struct worker *kind, int count)
{
    struct scene *s = calloc(1, sizeof *s);
    struct look warm = {0};
    size_t most = 0;

    check_true(s != NULL);
    scene_begin(s);
    for (int round = 0; round < ROUNDS; round++) {
        struct look busy = run_round(s, kind, count / ROUNDS, round);
        bool warms_up = round <= 1 || busy.calls > most;
        size_t most_bytes = warms_up ? SIZE_MAX : warm.bytes + (size_t)FLAT_BYTES;
        struct look rest = check_only_holders_left(s, most_bytes);
        print_round(name, round, busy, rest.bytes);
        if (round > 0)
            check_busy(busy);
        if (warms_up)
            warm = rest;
        most = busy.calls > most ? busy.calls : most;
    }
    scene_end(s);
    free(s);
}

/* Goal: waits that time out leave nothing. Method: many threads with tiny deadlines on a hundred
 * held paths, so that they end in every state. Modes: F18, F19. */
WORLD_TEST(waits_that_time_out_leave_nothing)
{
    struct worker kind = {.wait = wait_a_little, .expected = ZKL_ETIMEDOUT};

    check_rounds("timeouts", &kind, (int)test_length(10000, 1000));
}

/* Goal: the same for waits that are cancelled, each by an object of its own. So many that 64 bytes which each
 * would leave are seen, and in the long form 32. Modes: F3. */
WORLD_TEST(cancelled_waits_leave_nothing)
{
    struct worker kind = {.wait = wait_for_cancel, .expected = ZKL_ECANCELED};

    check_rounds("cancels", &kind, (int)test_length(4000, 800));
}
