/* SPDX-License-Identifier: Apache-2.0 */
/* Threads: holders that end without unlock, and two that share a handle. */
#include "cluster.h"

static pthread_key_t late_key;

static void lock_in_destructor(void *mutex)
{
    (void)!zkl_mutex_lock(mutex);
}

static void *lock_now_and_late(void *arg)
{
    struct zkl_mutex **mutexes = arg;

    pthread_setspecific(late_key, mutexes[1]); /* its destructor runs after the library's */
    return (void *)(intptr_t)do_cycle(mutexes[0]);
}

/* Goal: the client also releases what a thread acquires in a destructor of its own, while it ends.
 * Method: a key that was made after the library's, so that its destructor comes later. */
WORLD_TEST(a_lock_taken_while_the_thread_ends_goes_with_it)
{
    const char *path = cluster_path("late-lock");
    struct zkl_client *client = world_client();
    struct zkl_mutex *mutexes[2] = {world_mutex(client, cluster_path("early-lock")),
                                    world_mutex(client, path)};
    pthread_t thread;
    void *result;

    cycle(mutexes[0], 1); /* the library's key is there now */
    check_ok(pthread_key_create(&late_key, lock_in_destructor));
    check_ok(pthread_create(&thread, NULL, lock_now_and_late, mutexes));
    check_ok(pthread_join(thread, &result));
    check_ok((intptr_t)result);
    check_wait(cluster_children(path) == 0, 5000);
    check_ok(pthread_key_delete(late_key));
}

/* --- threads that end while they hold --------------------------------------------------------- */

static void *lock_and_exit(void *mutex)
{
    int rc = zkl_mutex_lock(mutex);

    if (rc == 0)
        rc = zkl_mutex_lock(mutex); /* twice, as the end must release both */
    return (void *)(intptr_t)rc;
}

struct successor {
    struct take take;
    int count, unlocked, rc;
};

static void *ask_then_lock(void *arg)
{
    struct successor *s = arg;

    s->count = zkl_mutex_hold_count(s->take.mutex);
    s->unlocked = zkl_mutex_unlock(s->take.mutex);
    s->rc = do_acquire(&s->take);
    if (s->rc == 0)
        s->rc = zkl_mutex_unlock(s->take.mutex);
    return NULL;
}

/* Goal: a thread that has the id of an ended holder does not count as that holder. Method: new
 * threads until one has the id; glibc reuses the last id immediately. Modes: F54. */
WORLD_TEST(a_reused_thread_id_inherits_nothing)
{
    struct zkl_mutex *mutex = world_mutex(world_client(), cluster_path("reuse"));
    pthread_t ended, thread;
    bool same = false;
    void *result;

    check_ok(pthread_create(&ended, NULL, lock_and_exit, mutex));
    check_ok(pthread_join(ended, &result));
    check_ok((intptr_t)result);
    for (int i = 0; i < 100 && !same; i++) {
        struct successor s = {.take = take_of(mutex)};
        check_ok(pthread_create(&thread, NULL, ask_then_lock, &s));
        check_ok(pthread_join(thread, NULL));
        same = pthread_equal(thread, ended);
        check_num(s.count, ==, 0);
        check_num(s.unlocked, ==, ZKL_ENOTOWNER);
        check_ok(s.rc);
        check_num(s.take.grant.hold_count, ==, 1);
    }
    if (!same) {
        print_message("skipped: no thread got the id again\n");
        skip();
    }
}

/* --- one handle, two threads -------------------------------------------------------------------- */

struct relay {
    struct zkl_mutex *mutex;
    sem_t held;
    long rounds;
    uint64_t last; /* token of the thread that locks */
};

static int lock_all_the_time(void *arg)
{
    struct relay *r = arg;

    for (long i = 0; i < r->rounds; i++) {
        int rc = zkl_mutex_lock(r->mutex);
        if (rc != 0)
            return rc;
        uint64_t token = zkl_mutex_token(r->mutex);
        if (token <= r->last) /* the hold of before, or none */
            return ZKL_EPROTO;
        r->last = token;
        sem_post(&r->held);
    }
    return 0;
}

static int unlock_all_the_time(void *arg)
{
    struct relay *r = arg;

    for (long i = 0; i < r->rounds; i++) {
        while (sem_wait(&r->held) != 0)
            ;
        int rc = zkl_mutex_unlock(r->mutex);
        if (rc != 0)
            return rc;
    }
    return 0;
}

/* Goal: each unlock finds the hold, each hold is a new one, nothing is left. Modes: F41. */
WORLD_TEST(one_thread_locks_and_another_unlocks)
{
    const char *path = cluster_path("relay");
    struct relay relay = {.rounds = test_length(100000, 2000)};
    struct actor *locks = world_actor(), *unlocks = world_actor();

    check_ok(sem_init(&relay.held, 0, 0));
    relay.mutex = world_semaphore_mutex(world_client(), path);
    actor_begin(locks, lock_all_the_time, &relay);
    actor_begin(unlocks, unlock_all_the_time, &relay);
    check_wait(actor_is_done(locks) || actor_is_done(unlocks), test_length(60, 6) * WAIT_MS);
    if (!actor_is_done(locks)) /* only after a failure; it must not hang the test */
        check_ok(actor_result(unlocks));
    check_ok(actor_result(locks));
    check_ok(actor_result(unlocks));
    check_num(zkl_mutex_still_held(relay.mutex, 0), ==, 0);
    cluster_raw_close(NULL); /* whose session may be over by now */
    check_ok(cluster_raw_open(NULL));
    check_wait(cluster_children(below(path, "leases")) == 0, WAIT_MS);
    check_ok(zkl_mutex_trylock(relay.mutex));
    check_ok(zkl_mutex_unlock(relay.mutex));
    sem_destroy(&relay.held);
}
