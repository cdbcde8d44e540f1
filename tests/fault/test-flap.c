/* SPDX-License-Identifier: Apache-2.0 */
/* The link comes and goes while threads lock, give up and unlock; and the moments around a waiter's
 * watches in which a wake-up could be lost or meet freed memory. */
#include "bench.h"
#include "witness.h"

#include <sched.h>

#define SESSION_MS 10000 /* no session ends by itself */
#define PATHS 2
#define REST_MS 3000

static const char *const path = "/flap/m0";

static void check_rest(struct bench *b)
{
    fault_check_rest(b->client, b->wire, path, REST_MS);
    check_wait(fault_server_watches(b->client) == 0, REST_MS);
}

/* --- eight threads on a link that flaps ------------------------------------------------------- */

struct worker {
    struct actor *actor;
    struct zkl_mutex *mutex[PATHS];
    struct witness *witness;
    struct endings *endings; /* of all workers */
    bool expires;            /* sessions end: what unlock confirms alone excludes others */
    struct zkl_cancel *_Atomic cancel; /* of all waits but tries */
    atomic_bool stop;
    int odd; /* a code that should not come */
    unsigned seed;
};

static int rand_below(struct worker *w, int n)
{
    return rand_r(&w->seed) % n;
}

/* Inside for a while that other threads can use. */
static void visit(struct worker *w, int which)
{
    struct zkl_mutex *mutex = w->mutex[which];
    size_t number = witness_enter(w->witness, which, false, zkl_mutex_token(mutex));

    for (int i = rand_below(w, 4); i > 0; i--)
        sched_yield();
    witness_leave(w->witness, number);
    int rc = zkl_mutex_unlock(mutex);
    if (!w->expires || rc == 0)
        witness_counts(w->witness, number);
    endings_count(w->endings, rc);
}

/* A try, a short wait, or a long one. */
static int wish(struct worker *w, struct zkl_mutex *mutex)
{
    int64_t ms = INT64_C(1000000);
    int kind = rand_below(w, 4);

    if (kind == 0)
        return zkl_mutex_trylock(mutex);
    int64_t wait_ms = kind == 1 ? 1 + rand_below(w, 40) : WAIT_MS;
    return zkl_mutex_lock_until(mutex, zkl_now_ns() + wait_ms * ms, w->cancel);
}

static int work(struct zkl_mutex *unused, void *worker)
{
    struct worker *w = worker;

    (void)unused;
    while (!w->stop && w->odd == 0) {
        int which = rand_below(w, PATHS);
        int rc = wish(w, w->mutex[which]);
        if (rc == 0)
            visit(w, which);
        else if (rc != ZKL_EBUSY && rc != ZKL_ETIMEDOUT && rc != ZKL_ECANCELED &&
                 rc != ZKL_EUNPROVED && /* a try over a link that is too new */
                 !(w->expires && rc == ZKL_EDISCONNECTED))
            w->odd = rc;
    }
    return w->odd;
}

#define CLIENTS 2
#define THREADS 8

static const char *const paths[PATHS] = {"/flap/m0", "/flap/m1"};

/* Threads of two clients behind the proxy. */
struct work {
    struct zkl_client *clients[CLIENTS];
    struct witness *witness;
    struct endings endings;
    struct worker workers[THREADS];
};

static struct work *begin_work(struct bench *b, bool expires)
{
    struct work *all = world_alloc(sizeof *all);

    all->witness = witness_new();
    check_true(all->witness);
    for (int c = 0; c < CLIENTS; c++)
        all->clients[c] = c == 0 ? b->client : world_through(b->proxy, SESSION_MS);
    for (int i = 0; i < THREADS; i++) {
        struct worker *w = &all->workers[i];
        w->witness = all->witness;
        w->endings = &all->endings;
        w->expires = expires;
        w->seed = (unsigned)i + 1;
        for (int k = 0; k < PATHS; k++)
            w->mutex[k] = i < CLIENTS ? world_mutex(all->clients[i], paths[k])
                                      : all->workers[i % CLIENTS].mutex[k];
        w->cancel = world_cancel();
        act_begin(w->actor = world_actor(), work, NULL, w);
    }
    return all;
}

/* No grant was beside another one, and neither server nor clients keep anything. */
static void end_work(struct bench *b, struct work *all)
{
    const struct history_place places[PATHS] = {{"the first", 1, false}, {"the second", 1, false}};

    for (int i = 0; i < THREADS; i++) {
        all->workers[i].stop = true;
        check_ok(act_end(all->workers[i].actor, WAIT_MS));
    }
    for (int c = 0; c < CLIENTS; c++) {
        for (int i = 0; i < PATHS; i++)
            fault_check_rest(all->clients[c], b->wire, paths[i], REST_MS);
        check_wait(fault_server_watches(all->clients[c]) == 0, REST_MS);
    }
    struct sentence sentence = witness_judge(all->witness, places);
    check_num(sentence.overlaps, ==, 0);
    check_num(sentence.disorder, ==, 0);
    check_num(all->endings.other, ==, 0);
    if (all->workers[0].expires)
        check_num(sentence.counted, ==, all->endings.given_back);
    witness_free(all->witness);
}

/* Cut the link every 100 to 300 ms, and now and then cancel somebody's wait. Counted by lag.h: in a shorter time
 * on a busy machine no link is of any use, and a try ends with ZKL_EDISCONNECTED. */
static void flap(struct bench *b, struct worker *workers, int n, int ms)
{
    enum { CUTS_MIN = 8 };
    unsigned seed = 1;
    int64_t end_ms = net_now_ms() + ms;

    for (int cuts = 0; net_now_ms() < end_ms || cuts < CUTS_MIN; cuts++) {
        struct worker *w = &workers[rand_r(&seed) % n];
        int64_t cut_ns = (100 + rand_r(&seed) % 200) * INT64_C(1000000);
        struct lag lag = lag_of_now();
        while (lag.counted_ns < cut_ns)
            lag_nap(&lag, true);
        proxy_cut(b->proxy);
        zkl_cancel_set(w->cancel);
        w->cancel = world_cancel();
    }
}

#define FLAP_TEST(name) BENCH_TEST(name, path, SESSION_MS, SESSION_MS)

/* They try, wait, give up, are canceled and unlock on two paths. No two are ever inside together, no call hangs, and at
 * rest neither server nor clients keep anything. No session ends, so every grant is valid, and no unlock says otherwise. */
FLAP_TEST(eight_threads_on_a_flapping_link)
{
    struct work *all = begin_work(b, false);
    int64_t sessions[CLIENTS] = {fault_session(all->clients[0]), fault_session(all->clients[1])};

    flap(b, all->workers, THREADS, test_length(20000, 5000));
    end_work(b, all);
    for (int c = 0; c < CLIENTS; c++)
        check_num(fault_session(all->clients[c]), ==, sessions[c]);
    check_num(all->endings.lost, ==, 0);
    check_num(all->endings.unconfirmed, <=, PATHS * proxy_counts(b->proxy, PROXY_CONNECT));
    check_num(all->endings.given_back, >, 10); /* a busy machine gets no further in that time */
}

/* The same while the test ends the session of one of the clients again and again: libzookeeper loses calls there
 * (ZOOKEEPER-2802). Each end takes the locks of the paths from one holder each at most, and each broken connection
 * leaves one unlock of a path without its answer at most; the end may break it more than once (wire_kill_session).
 * Modes: F50. */
FLAP_TEST(many_expiries_under_load)
{
    struct work *all = begin_work(b, true);
    long expiries = test_length(100, 10);

    for (long i = 0; i < expiries; i++) {
        long before = all->endings.given_back;
        check_wait(all->endings.given_back >= before + 20, WAIT_MS);
        fault_renew_session(b->client);
    }
    end_work(b, all);
    check_num(all->endings.lost, <=, PATHS * expiries);
    check_num(all->endings.unconfirmed, <=, PATHS * proxy_counts(b->proxy, PROXY_CONNECT));
    check_num(all->endings.given_back, >, expiries);
}

/* --- watches of others ------------------------------------------------------------------------ */

/* --- many waits ------------------------------------------------------------------------------- */

static int wait_in_vain(struct zkl_mutex *mutex, void *unused)
{
    int odd = 0;

    (void)unused;
    for (int i = 0; i < 1000 / THREADS; i++) {
        int rc = zkl_mutex_lock_for(mutex, 1 + i % 20);
        if (rc != ZKL_ETIMEDOUT)
            odd = rc == 0 ? 1 : rc;
    }
    return odd;
}

/* The session events that libzookeeper delivers then meet no watch of those waits, and no freed
 * memory (run under ASan). Modes: F47. */
FLAP_TEST(link_bounces_after_many_waits_in_vain)
{
    struct actor *impatient[THREADS], *a = b->actor;

    check_ok(zkl_mutex_lock(b->rival));
    for (int i = 0; i < THREADS; i++)
        act_begin(impatient[i] = world_actor(), wait_in_vain, b->mutex, NULL);
    for (int i = 0; i < THREADS; i++)
        check_ok(act_end(impatient[i], QUIET_MS));
    fault_bounce(b->client, b->proxy);
    check_wait(fault_children(b->wire, path) == 1, REST_MS);
    check_wait(fault_contenders(b->client) == 0, REST_MS);
    check_wait(fault_watches(b->client) == 0, REST_MS);
    check_wait(fault_server_watches(b->client) == 0, REST_MS);
    act_begin(a, act_lock, b->mutex, NULL);
    check_wait(fault_children(b->wire, path) == 2, WAIT_MS);
    fault_bounce(b->client, b->proxy);
    check_ok(zkl_mutex_unlock(b->rival));
    actor_passes(a);
    check_rest(b);
}

/* Modes: F63. */
FLAP_TEST(two_of_fifty_remain)
{
    enum { WAITERS = 50, ONE = 17, OTHER = 49 };
    struct actor *a[WAITERS];
    struct zkl_cancel *cancel = world_cancel();

    check_ok(zkl_mutex_lock(b->rival));
    for (int i = 0; i < WAITERS; i++) {
        a[i] = world_actor();
        act_begin(a[i], act_lock_cancel, b->mutex, i == ONE || i == OTHER ? NULL : cancel);
        check_wait(fault_children(b->wire, path) == i + 2, WAIT_MS);
    }
    zkl_cancel_set(cancel);
    for (int i = 0; i < WAITERS; i++) {
        if (i != ONE && i != OTHER)
            check_num(act_end(a[i], WAIT_MS), ==, ZKL_ECANCELED);
    }
    check_wait(fault_children(b->wire, path) == 3, REST_MS);
    check_ok(zkl_mutex_unlock(b->rival));
    check_ok(act_end(a[ONE], WAIT_MS));
    check_true(act_busy(a[OTHER]));
    check_ok(act_do(a[ONE], act_unlock, b->mutex, NULL));
    actor_passes(a[OTHER]);
    check_rest(b);
}
