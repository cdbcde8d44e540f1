/* SPDX-License-Identifier: Apache-2.0 */
/* TestInterProcessSemaphore. */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "crowd.h"
#include "leases.h"
#include "outage.h"
#include "participants.h"

#define BRIEF_MS 300 /* for what must not come */

static void check_one(struct zkl_semaphore *semaphore, struct zkl_permit **permit)
{
    check_ok(one_permit(semaphore, WAIT_MS, permit));
    check_num(zkl_permit_still_held(*permit, 0), ==, 1);
}

static void check_none(struct zkl_semaphore *semaphore)
{
    struct zkl_permit *permit = NULL;

    check_num(one_permit(semaphore, BRIEF_MS, &permit), ==, ZKL_ETIMEDOUT);
    check_true(permit == NULL);
}

/* Nothing is out or asked for. */
static void check_free(const char *path)
{
    char locks[256];

    snprintf(locks, sizeof locks, "%s/locks", path);
    check_wait(leases(path) == 0 && cluster_children(locks) == 0, WAIT_MS);
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

/* --- one client ------------------------------------------------------------------------------- */

/* Goal: one permit goes out once. */
CLUSTER_TEST(one_permit_goes_out_once)
{
    struct zkl_client *client = cluster_client();
    const char *path = cluster_path("simple");
    struct zkl_semaphore *semaphore = semaphore_of(client, path, 1);
    struct zkl_permit *permit = NULL;

    check_one(semaphore, &permit);
    check_none(semaphore);
    check_wait(leases(path) == 1, WAIT_MS);
    check_ok(zkl_permit_release(permit));
    check_free(path);
    check_ok(zkl_semaphore_free(semaphore));
    check_ok(zkl_client_free(client));
}

#define THREE 3

/* Goal: three permits go out through as many handles, a fourth one does not, and does when one of
 * them has come back; all are listed. */
CLUSTER_TEST(three_permits_go_out_three_times)
{
    struct zkl_client *client = cluster_client();
    const char *path = cluster_path("three");
    struct zkl_semaphore *handles[THREE + 1];
    struct zkl_permit *permits[THREE];

    for (int i = 0; i <= THREE; i++)
        handles[i] = semaphore_of(client, path, THREE);
    for (int i = 0; i < THREE; i++)
        check_one(handles[i], &permits[i]);
    check_none(handles[THREE]);
    check_ok(zkl_permit_release(permits[0]));
    check_one(handles[THREE], &permits[0]);
    for (int i = 0; i < THREE; i++)
        check_ok(zkl_permit_release(permits[i]));
    check_free(path);
    for (int i = 0; i <= THREE; i++)
        check_ok(zkl_semaphore_free(handles[i]));
    check_ok(zkl_client_free(client));
}

/* Goal: the list has every holder of a permit. */
CLUSTER_TEST(all_participants_are_listed)
{
    struct zkl_client *client = cluster_client();
    const char *path = cluster_path("participants");
    struct zkl_semaphore *semaphore = semaphore_of(client, path, THREE);
    struct zkl_permit *permits[THREE];

    for (int i = 0; i < THREE; i++)
        check_one(semaphore, &permits[i]);
    struct participants participants = count_participants(client, path);
    check_num(participants.kind, ==, ZKL_LOCK_KIND_SEMAPHORE);
    check_num(participants.permits, ==, THREE);
    check_num(participants.count[ZKL_ENTRY_ROLE_HOLDER][ZKL_ENTRY_ACCESS_PERMIT], ==, THREE);
    check_num(participants.total, ==, THREE);
    for (int i = 0; i < THREE; i++)
        check_ok(zkl_permit_release(permits[i]));
    check_ok(zkl_semaphore_free(semaphore));
    check_ok(zkl_client_free(client));
}

struct user {
    struct zkl_semaphore *semaphore;
    struct counter *counter;
};

static int use_for_a_moment(void *arg)
{
    struct user *user = arg;
    struct zkl_permit *permit = NULL;
    int rc = one_permit(user->semaphore, WAIT_MS, &permit);

    if (rc != 0)
        return rc;
    count_up(user->counter, 1);
    net_nap_ms(20); /* would do for another one */
    user->counter->now--;
    return zkl_permit_release(permit);
}

/* Goal: ten threads take turns with one permit of one handle. Modes: F41. */
CLUSTER_TEST(threads_take_turns)
{
    struct zkl_client *client = cluster_client();
    const char *path = cluster_path("threads");
    struct counter counter = {0};
    struct user users[10];
    struct crowd crowd;

    users[0].semaphore = semaphore_of(client, path, 1);
    for (int i = 0; i < 10; i++)
        users[i] = (struct user){users[0].semaphore, &counter};
    crowd_begin(&crowd, use_for_a_moment, users);
    crowd_end(&crowd);
    check_num(counter.uses, ==, 10);
    check_num(counter.most, ==, 1);
    check_free(path);
    check_ok(zkl_semaphore_free(users[0].semaphore));
    check_ok(zkl_client_free(client));
}

/* --- released a few at a time ----------------------------------------------------------------- */

#define CHUNK_PERMITS 11

/* Lets a number of threads pass. */
struct stepper {
    pthread_mutex_t mu;
    pthread_cond_t changed;
    int steps; /* under mu */
};

static void step_on(struct stepper *stepper, int steps)
{
    pthread_mutex_lock(&stepper->mu);
    stepper->steps += steps;
    pthread_cond_broadcast(&stepper->changed);
    pthread_mutex_unlock(&stepper->mu);
}

static void step(struct stepper *stepper)
{
    pthread_mutex_lock(&stepper->mu);
    while (stepper->steps == 0)
        pthread_cond_wait(&stepper->changed, &stepper->mu);
    stepper->steps--;
    pthread_mutex_unlock(&stepper->mu);
}

struct passer {
    struct zkl_semaphore *semaphore;
    struct counter *counter;
    struct stepper *stepper;
};

static int pass(void *arg)
{
    struct passer *passer = arg;
    struct zkl_permit *permit = NULL;
    int rc = one_permit(passer->semaphore, 3 * WAIT_MS, &permit);

    if (rc != 0)
        return rc;
    count_up(passer->counter, 1);
    step(passer->stepper);
    passer->counter->now--;
    return zkl_permit_release(permit);
}

/* Goal: a hundred threads, each with a handle of its own, pass by eleven permits that come
 * back a few at a time. */
CLUSTER_TEST(permits_come_back_in_chunks)
{
    struct zkl_client *client = cluster_client();
    const char *path = cluster_path("chunks");
    struct stepper stepper = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0};
    struct counter counter = {0};
    struct passer passers[CROWD_MAX];
    struct crowd crowd;
    unsigned seed = 1;

    for (int i = 0; i < CROWD_MAX; i++)
        passers[i] = (struct passer){semaphore_of(client, path, CHUNK_PERMITS), &counter, &stepper};
    crowd_begin(&crowd, pass, passers);
    for (int passed = 0; passed < CROWD_MAX;) {
        int left = CROWD_MAX - passed, steps = 1 + rand_r(&seed) % 5;
        check_wait(counter.now >= (left < CHUNK_PERMITS ? left : CHUNK_PERMITS), WAIT_MS);
        net_nap_ms(10); /* would do for one too many */
        steps = steps < left ? steps : left;
        step_on(&stepper, steps);
        passed += steps;
        check_wait(counter.uses >= passed, WAIT_MS);
    }
    crowd_end(&crowd);
    check_num(counter.now, ==, 0);
    check_num(counter.uses, ==, CROWD_MAX);
    check_num(counter.most, ==, CHUNK_PERMITS);
    check_free(path);
    for (int i = 0; i < CROWD_MAX; i++)
        check_ok(zkl_semaphore_free(passers[i].semaphore));
    check_ok(zkl_client_free(client));
}

/* --- several clients -------------------------------------------------------------------------- */

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
        struct zkl_client *client = cluster_client();
        members[i] = (struct member){
            client, semaphore_of(client, path, permits), counter, permits, (unsigned)i, turns};
    }
}

static void members_free(struct member *members)
{
    for (int i = 0; i < CLIENTS; i++) {
        check_ok(zkl_semaphore_free(members[i].semaphore));
        check_ok(zkl_client_free(members[i].client));
    }
}

/* Keep it until all have been out together. */
static int use_until_all_are_out(void *arg)
{
    struct member *member = arg;
    struct zkl_permit *permit = NULL;
    int rc = one_permit(member->semaphore, WAIT_MS, &permit);

    if (rc != 0)
        return rc;
    count_up(member->counter, 1);
    rc = wait_until(member->counter->most >= member->permits, WAIT_MS) ? 0 : 1;
    net_nap_ms(20); /* would do for one too many */
    member->counter->now--;
    return rc != 0 ? rc : zkl_permit_release(permit);
}

/* Goal: ten clients with a permit each, five of them at a time: all five are out together, never
 * more, and each client has its turn. */
CLUSTER_TEST(clients_give_back_one_at_a_time)
{
    const char *path = cluster_path("one");
    struct member members[CLIENTS];
    struct counter counter = {0};
    struct crowd crowd;

    members_open(members, path, CLIENTS / 2, 1, &counter);
    crowd_begin(&crowd, use_until_all_are_out, members);
    crowd_end(&crowd);
    check_num(counter.uses, ==, CLIENTS);
    check_num(counter.most, ==, CLIENTS / 2);
    check_free(path);
    members_free(members);
}

static int use_any_number(void *arg)
{
    struct member *member = arg;
    struct ask ask = {.semaphore = member->semaphore, .ms = WAIT_MS};
    int rc = 0;

    for (long i = 0; i < member->turns && rc == 0; i++) {
        ask.count = 1 + rand_r(&member->seed) % member->permits;
        rc = do_permits(&ask);
        if (rc != 0)
            break;
        count_up(member->counter, ask.count);
        net_nap_ms(rand_r(&member->seed) % 25);
        member->counter->now -= ask.count;
        for (int n = 0; n < ask.count; n++) {
            int code = zkl_permit_release(ask.permits[n]);
            rc = rc != 0 ? rc : code;
        }
    }
    return rc;
}

/* Goal: ten clients ask again and again for any number of permits in one call. They get all of
 * them or wait, and there are never more out than there are. In Curator's test the test itself
 * keeps the askers from asking for more than is left, because Curator might grant a part. */
CLUSTER_TEST(no_more_are_out_than_there_are)
{
    const char *path = cluster_path("max");
    struct member members[CLIENTS];
    struct counter counter = {0};
    struct crowd crowd;

    members_open(members, path, 40, test_length(100, 20), &counter);
    crowd_begin(&crowd, use_any_number, members);
    crowd_end(&crowd);
    check_num(counter.now, ==, 0);
    check_num(counter.most, >, 1);
    check_num(counter.most, <=, 40);
    check_num(counter.uses, ==, CLIENTS * members[0].turns);
    check_free(path);
    members_free(members);
}

/* Goal: a client that is closed gives its permits back. */
CLUSTER_TEST(a_closed_client_gives_its_permit_back)
{
    struct zkl_client *clients[2] = {cluster_client(), cluster_client()};
    const char *path = cluster_path("close");
    struct zkl_semaphore *semaphores[2] = {semaphore_of(clients[0], path, 1),
                                           semaphore_of(clients[1], path, 1)};
    struct zkl_permit *permit = NULL, *lost = NULL;

    check_one(semaphores[1], &permit);
    check_ok(zkl_permit_release(permit));
    check_one(semaphores[0], &lost);
    check_none(semaphores[1]);
    check_closed(zkl_client_close(clients[0], WAIT_MS));
    check_one(semaphores[1], &permit);
    check_num(zkl_permit_still_held(lost, 0), ==, 0);
    check_num(zkl_permit_release(lost), ==, ZKL_ELOST);
    check_ok(zkl_permit_release(permit));
    for (int i = 0; i < 2; i++) {
        check_ok(zkl_semaphore_free(semaphores[i]));
        check_ok(zkl_client_free(clients[i]));
    }
}

/* --- the number changes ----------------------------------------------------------------------- */

/* Goal: a thread that waits for a second permit gets it as soon as somebody raises their number,
 * through another handle of another client. */
CLUSTER_TEST(a_waiter_gets_a_permit_that_is_added)
{
    struct zkl_client *client = cluster_client(), *other = cluster_client();
    const char *path = cluster_path("increase");
    struct zkl_semaphore *semaphore = semaphore_of(client, path, 1);
    struct zkl_semaphore *others = semaphore_of(other, path, 0);
    struct ask ask = {.semaphore = semaphore, .count = 1, .ms = WAIT_MS};
    struct actor *waiter = actor_new();
    struct zkl_permit *first = NULL;

    check_one(semaphore, &first);
    actor_begin(waiter, do_permits, &ask);
    check_wait(leases(path) == 2, WAIT_MS);
    check_true(!actor_is_done(waiter));
    int64_t start = net_now_ms();
    check_ok(zkl_semaphore_set_permits(others, 2, NULL));
    check_ok(actor_result(waiter));
    check_true(net_now_ms() - start < 5000 || lag_is_slow());
    check_wait(zkl_semaphore_permits(semaphore) == 2, WAIT_MS);
    check_ok(zkl_permit_release(first));
    check_ok(zkl_permit_release(ask.permits[0]));
    check_free(path);
    actor_end(waiter);
    check_ok(zkl_semaphore_free(others));
    check_ok(zkl_client_free(other));
    check_ok(zkl_semaphore_free(semaphore));
    check_ok(zkl_client_free(client));
}

/* --- waits that are disturbed ----------------------------------------------------------------- */

/* One permit that is out, and an actor that waits for it. */
struct queue {
    const char *path;
    struct zkl_client *client;
    struct zkl_semaphore *semaphore, *waiting;
    struct zkl_permit *permit;
    struct actor *waiter;
    struct ask ask;
};

static void queue_begin(struct queue *q, const char *name, struct zkl_cancel *cancel)
{
    *q = (struct queue){.path = cluster_path(name), .client = cluster_client()};
    q->semaphore = semaphore_of(q->client, q->path, 1);
    q->waiting = semaphore_of(q->client, q->path, 1);
    q->ask = (struct ask){.semaphore = q->waiting, .count = 1, .ms = WAIT_MS, .cancel = cancel};
    q->waiter = actor_new();
    check_one(q->semaphore, &q->permit);
    check_num(leases(q->path), ==, 1);
    actor_begin(q->waiter, do_permits, &q->ask);
    check_wait(leases(q->path) == 2, WAIT_MS);
}

/* Whatever happened, a permit can be had and nothing is left. */
static void queue_end(struct queue *q)
{
    check_one(q->semaphore, &q->permit);
    check_ok(zkl_permit_release(q->permit));
    check_free(q->path);
    actor_end(q->waiter);
    check_ok(zkl_semaphore_free(q->semaphore));
    check_ok(zkl_semaphore_free(q->waiting));
    check_ok(zkl_client_free(q->client));
}

/* Goal: somebody deletes the node of a waiter for a permit. The waiter tries again, gets the
 * permit when that comes back, and leaves no node that nobody knows. Modes: F40. */
CLUSTER_TEST(a_deleted_node_leaves_no_orphan)
{
    struct queue q;
    char node[256], below[256];

    queue_begin(&q, "orphan", NULL);
    snprintf(below, sizeof below, "%s/leases", q.path);
    cluster_child(below, 1, node, sizeof node);
    check_ok(wire_delete(raw, node, -1));
    check_ok(zkl_permit_release(q.permit));
    check_ok(actor_result(q.waiter));
    check_num(leases(q.path), ==, 1);
    check_num(zkl_permit_still_held(q.ask.permits[0], 0), ==, 1);
    check_ok(zkl_permit_release(q.ask.permits[0]));
    check_free(q.path);
    queue_end(&q);
}

/* Goal: a wait for a permit that is cancelled (interrupted, there) takes its node with it.
 * Modes: F40. */
CLUSTER_TEST(a_cancelled_wait_leaves_nothing)
{
    struct zkl_cancel *cancel = NULL;
    struct queue q;

    check_ok(zkl_cancel_new(&cancel));
    queue_begin(&q, "cancel", cancel);
    zkl_cancel_set(cancel);
    check_num(actor_result(q.waiter), ==, ZKL_ECANCELED);
    check_true(q.ask.permits[0] == NULL);
    check_wait(leases(q.path) == 1, WAIT_MS);
    check_ok(zkl_permit_release(q.permit));
    queue_end(&q);
    zkl_cancel_free(cancel);
}

/* --- the server stops ------------------------------------------------------------------------- */

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
        rc = one_permit(worker->semaphore, 2 * WAIT_MS, &permit);
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
CLUSTER_TEST(acquires_go_on_after_a_lost_server)
{
    struct zkl_client *client = client_of(RESTART_SESSION_MS);
    const char *path = cluster_path("lost");
    struct worker workers[10];
    struct counter counter = {0};
    atomic_bool stop = false;
    struct crowd crowd;
    long before[10] = {0};

    for (int i = 0; i < 10; i++)
        workers[i] = (struct worker){semaphore_of(client, path, 1), &stop, 0, &counter};
    crowd_begin(&crowd, work, workers);
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
    for (int i = 0; i < 10; i++)
        check_ok(zkl_semaphore_free(workers[i].semaphore));
    check_ok(zkl_client_free(client));
}
