/* SPDX-License-Identifier: Apache-2.0 */
#include "cluster.h"

#include <time.h>

struct actor {
    pthread_t thread;
    pthread_mutex_t mu;
    pthread_cond_t changed;
    actor_fn fn; /* NULL: idle */
    void *arg;
    int result;
    bool ending;
};

static void *act(void *arg)
{
    struct actor *actor = arg;

    pthread_mutex_lock(&actor->mu);
    for (;;) {
        while (!actor->fn && !actor->ending)
            pthread_cond_wait(&actor->changed, &actor->mu);
        if (!actor->fn)
            break;
        actor_fn fn = actor->fn;
        pthread_mutex_unlock(&actor->mu);
        int result = fn(actor->arg);
        pthread_mutex_lock(&actor->mu);
        actor->result = result;
        actor->fn = NULL;
        pthread_cond_broadcast(&actor->changed);
    }
    pthread_mutex_unlock(&actor->mu);
    return NULL;
}

static void cond_init(pthread_cond_t *cond)
{
    pthread_condattr_t attr;

    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(cond, &attr);
    pthread_condattr_destroy(&attr);
}

struct actor *actor_new(void)
{
    struct actor *actor = calloc(1, sizeof *actor);

    check_true(actor != NULL);
    pthread_mutex_init(&actor->mu, NULL);
    cond_init(&actor->changed);
    check_ok(pthread_create(&actor->thread, NULL, act, actor));
    return actor;
}

void actor_begin(struct actor *actor, actor_fn fn, void *arg)
{
    pthread_mutex_lock(&actor->mu);
    bool idle = actor->fn == NULL;
    actor->fn = fn;
    actor->arg = arg;
    pthread_cond_broadcast(&actor->changed);
    pthread_mutex_unlock(&actor->mu);
    check_true(idle);
}

bool actor_is_done(struct actor *actor)
{
    pthread_mutex_lock(&actor->mu);
    bool done = actor->fn == NULL;
    pthread_mutex_unlock(&actor->mu);
    return done;
}

/* Waits for that, so that no time is lost between two looks. */
static bool is_done_after(struct actor *actor, int ms)
{
    int64_t end = net_now_ms() + ms;
    struct timespec until = {.tv_sec = end / 1000, .tv_nsec = end % 1000 * 1000000};
    int rc = 0;

    pthread_mutex_lock(&actor->mu);
    while (actor->fn && rc == 0)
        rc = pthread_cond_timedwait(&actor->changed, &actor->mu, &until);
    bool done = actor->fn == NULL;
    pthread_mutex_unlock(&actor->mu);
    return done;
}

int actor_result(struct actor *actor)
{
    if (!wait_until(is_done_after(actor, 100), WAIT_MS))
        fail_msg("an actor is not done within %d ms", WAIT_MS);
    return actor->result;
}

int actor_do(struct actor *actor, actor_fn fn, void *arg)
{
    actor_begin(actor, fn, arg);
    return actor_result(actor);
}

pthread_t actor_thread(const struct actor *actor)
{
    return actor->thread;
}

void actor_end(struct actor *actor)
{
    pthread_mutex_lock(&actor->mu);
    actor->ending = true;
    pthread_cond_broadcast(&actor->changed);
    pthread_mutex_unlock(&actor->mu);
    check_ok(pthread_join(actor->thread, NULL));
    pthread_cond_destroy(&actor->changed);
    pthread_mutex_destroy(&actor->mu);
    free(actor);
}

/* It may be on its way out of its last call. */
static int end_idle(void *actor)
{
    if (!wait_until(is_done_after(actor, 100), WAIT_MS))
        return -1;
    actor_end(actor);
    return 0;
}

struct actor *world_actor(void)
{
    return world_keep(actor_new(), WORLD_THREAD, end_idle);
}

struct crowd crowd_of(actor_fn fn, void *members, size_t size, size_t count)
{
    struct crowd crowd = {count, world_alloc(count * sizeof *crowd.actors)};

    for (size_t i = 0; i < count; i++) {
        crowd.actors[i] = world_actor();
        actor_begin(crowd.actors[i], fn, (char *)members + i * size);
    }
    return crowd;
}

void crowd_end(struct crowd *crowd)
{
    int64_t ms = test_length(30, 3) * WAIT_MS;

    for (size_t i = 0; i < crowd->count; i++) {
        check_wait(actor_is_done(crowd->actors[i]), ms);
        check_ok(actor_result(crowd->actors[i]));
    }
}

int do_lock(void *mutex)
{
    return zkl_mutex_lock(mutex);
}

int do_trylock(void *mutex)
{
    return zkl_mutex_trylock(mutex);
}

int do_unlock(void *mutex)
{
    return zkl_mutex_unlock(mutex);
}

int do_cycle(void *mutex)
{
    int rc = zkl_mutex_lock(mutex);

    return rc != 0 ? rc : zkl_mutex_unlock(mutex);
}

int do_multi_lock(void *multi)
{
    return zkl_multi_lock(multi);
}

int do_multi_unlock(void *multi)
{
    return zkl_multi_unlock(multi, NULL);
}

int do_lock_cancel(void *arg)
{
    const struct cancel_wait *wait = arg;

    return zkl_mutex_lock_until(wait->mutex, ZKL_NO_DEADLINE, wait->cancel);
}

struct take take_of(struct zkl_mutex *mutex)
{
    struct take take = {.mutex = mutex, .wait = ZKL_WAIT_INIT, .grant = ZKL_GRANT_INIT};

    return take;
}

int do_acquire(void *arg)
{
    struct take *take = arg;

    return zkl_mutex_acquire(take->mutex, &take->wait, &take->grant);
}

static struct locker new_locker(const char *path, const struct zkl_mutex_options *options,
                                struct zkl_client *client)
{
    struct locker locker = {.path = path, .client = client, .actor = world_actor()};

    locker.mutex = world_mutex_with(client, path, options);
    locker.take = take_of(locker.mutex);
    return locker;
}

struct locker locker_of(const char *path, const struct zkl_mutex_options *options)
{
    return new_locker(path, options, world_client());
}

struct locker locker_behind(const char *path, const struct zkl_mutex_options *options,
                            int session_ms)
{
    struct proxy *proxy;
    struct locker locker = new_locker(path, options, world_client_through(&proxy, session_ms));

    locker.proxy = proxy;
    return locker;
}

void locker_queues(struct locker *locker, int n)
{
    actor_begin(locker->actor, do_acquire, &locker->take);
    check_wait(cluster_children(locker->path) == n, WAIT_MS);
}

void locker_passes(struct locker *locker)
{
    check_ok(actor_result(locker->actor));
    check_ok(actor_do(locker->actor, do_unlock, locker->mutex));
}
