/* SPDX-License-Identifier: Apache-2.0 */
#include "cluster.h"

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
