/* SPDX-License-Identifier: Apache-2.0 */
/* TestInterProcessSemaphore. */
#include "leases.h"
#include "outage.h"

/* Nothing is out or asked for. */
static void check_free(const char *path)
{
    check_wait(cluster_children(below(path, "leases")) + cluster_children(below(path, "locks")) ==
                   0,
               WAIT_MS);
}

/* How many are out, by those who have them. */
struct counter {
    atomic_int now, most;
    atomic_long uses;
};

static void count_up(struct counter *counter, int by)
{
    int now = atomic_fetch_add(&counter->now, by) + by;

    for (int most = counter->most; now > most;)
        if (atomic_compare_exchange_weak(&counter->most, &most, now))
            break;
    counter->uses++;
}

#define CHUNK_PERMITS 11
#define PASSERS 100

struct passer {
    struct zkl_semaphore *semaphore;
    struct counter *counter;
    sem_t *steps; /* each lets one pass */
};

static int pass(void *arg)
{
    struct passer *passer = arg;
    struct zkl_permit *permit = NULL;
    int rc = take_permits(passer->semaphore, 1, 3 * WAIT_MS, &permit);

    if (rc != 0)
        return rc;
    count_up(passer->counter, 1);
    while (sem_wait(passer->steps) != 0)
        ;
    passer->counter->now--;
    return zkl_permit_release(permit);
}

/* Goal: a hundred threads, each with a handle of its own, pass by eleven permits that come
 * back a few at a time. */
WORLD_TEST(permits_come_back_in_chunks)
{
    struct zkl_client *client = world_client();
    const char *path = cluster_path("chunks");
    sem_t go;
    struct counter counter = {0};
    struct passer passers[PASSERS];
    unsigned seed = 1;

    check_ok(sem_init(&go, 0, 0));
    for (int i = 0; i < PASSERS; i++)
        passers[i] =
            (struct passer){world_semaphore(client, path, CHUNK_PERMITS, NULL), &counter, &go};
    struct crowd crowd = crowd_begin(pass, passers);
    for (int passed = 0; passed < PASSERS;) {
        int left = PASSERS - passed, steps = 1 + rand_r(&seed) % 5;
        check_wait(counter.now >= (left < CHUNK_PERMITS ? left : CHUNK_PERMITS), WAIT_MS);
        net_nap_ms(10); /* would do for one too many */
        steps = steps < left ? steps : left;
        for (int i = 0; i < steps; i++)
            sem_post(&go);
        passed += steps;
        check_wait(counter.uses >= passed, WAIT_MS);
    }
    crowd_end(&crowd);
    check_num(counter.now, ==, 0);
    check_num(counter.uses, ==, PASSERS);
    check_num(counter.most, ==, CHUNK_PERMITS);
    check_free(path);
}

#define CLIENTS 10

/* A client of the crowd, with what it does. */
struct member {
    struct zkl_client *client;
    struct zkl_semaphore *semaphore;
    struct counter *counter;
    int permits;
    unsigned seed;
    long turns;
};

static void members_open(struct member *members, const char *path, int permits, long turns,
                         struct counter *counter)
{
    for (int i = 0; i < CLIENTS; i++) {
        struct zkl_client *client = world_client();
        members[i] = (struct member){client,      world_semaphore(client, path, permits, NULL),
                                     counter,     permits,
                                     (unsigned)i, turns};
    }
}

static int use_any_number(void *arg)
{
    struct member *member = arg;
    struct zkl_permit *permits[ZKL_PERMITS_AT_ONCE_MAX];
    int rc = 0;

    for (long i = 0; i < member->turns && rc == 0; i++) {
        int count = 1 + rand_r(&member->seed) % member->permits;
        rc = take_permits(member->semaphore, count, WAIT_MS, permits);
        if (rc != 0)
            break;
        count_up(member->counter, count);
        net_nap_ms(rand_r(&member->seed) % 25);
        member->counter->now -= count;
        for (int n = 0; n < count; n++) {
            int code = zkl_permit_release(permits[n]);
            rc = rc != 0 ? rc : code;
        }
    }
    return rc;
}

/* Goal: ten clients ask again and again for any number of permits in one call. They get all of
 * them or wait, and there are never more out than there are. In Curator's test the test itself
 * keeps the askers from asking for more than is left, because Curator might grant a part. */
WORLD_TEST(no_more_are_out_than_there_are)
{
    const char *path = cluster_path("max");
    struct member members[CLIENTS];
    struct counter counter = {0};

    members_open(members, path, 40, test_length(100, 20), &counter);
    struct crowd crowd = crowd_begin(use_any_number, members);
    crowd_end(&crowd);
    check_num(counter.now, ==, 0);
    check_num(counter.most, >, 1);
    check_num(counter.most, <=, 40);
    check_num(counter.uses, ==, CLIENTS * members[0].turns);
    check_free(path);
}

struct worker {
    struct zkl_semaphore *semaphore;
    atomic_bool *stop;
    atomic_long turns;
    struct counter *counter;
};

/* The release of a permit says so if an outage has cost it. */
static int work(void *arg)
{
    struct worker *worker = arg;
    int rc = 0;

    while (rc == 0 && !*worker->stop) {
        struct zkl_permit *permit = NULL;
        rc = take_permits(worker->semaphore, 1, 2 * WAIT_MS, &permit);
        if (rc != 0)
            break;
        if (zkl_permit_still_held(permit, 1000)) {
            count_up(worker->counter, 1);
            net_nap_ms(5);
            worker->counter->now--;
        }
        worker->turns++;
        rc = zkl_permit_release(permit);
        if (rc == ZKL_EUNCONFIRMED || zkl_error_is_lost(rc))
            rc = 0;
    }
    return rc;
}

static bool all_had_turns(struct worker *workers, int n, const long *since)
{
    for (int i = 0; i < n; i++)
        if (workers[i].turns < since[i] + 2)
            return false;
    return true;
}

/* Goal: ten threads that use a semaphore again and again go on after the server had stopped and
 * came back: nobody is stuck behind a node that nobody knows. Modes: F40. */
WORLD_TEST(acquires_go_on_after_a_lost_server)
{
    struct zkl_client *client = world_client_of(RESTART_SESSION_MS);
    const char *path = cluster_path("lost");
    struct worker workers[10];
    struct counter counter = {0};
    atomic_bool stop = false;
    long before[10] = {0};

    for (int i = 0; i < 10; i++)
        workers[i] = (struct worker){world_semaphore(client, path, 1, NULL), &stop, 0, &counter};
    struct crowd crowd = crowd_begin(work, workers);
    for (int outages = 0; outages < test_length(10, 1); outages++) {
        check_wait(all_had_turns(workers, 10, before), WAIT_MS);
        server_down();
        check_wait(zkl_client_get_state(client) != ZKL_CLIENT_CONNECTED, WAIT_MS);
        server_back();
        for (int i = 0; i < 10; i++)
            before[i] = workers[i].turns;
        check_wait(all_had_turns(workers, 10, before), 2 * WAIT_MS);
    }
    stop = true;
    crowd_end(&crowd);
    check_num(counter.most, ==, 1);
    check_free(path);
}
