/* SPDX-License-Identifier: Apache-2.0 */
#include "actor.h"

#include <stdlib.h>
#include <time.h>

#include "world.h"

enum { DONE_WITHIN_MS = 60000 };

struct actor {
    pthread_t thread;
    pthread_mutex_t mu;
    pthread_cond_t changed;
    actor_fn fn; /* NULL: idle */
    void *arg;
    int result;
    bool ending;
    void *own[4];
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
    if (!wait_until(is_done_after(actor, 100), DONE_WITHIN_MS))
        fail_msg("an actor is not done within %d ms", DONE_WITHIN_MS);
    return actor->result;
}

int actor_do(struct actor *actor, actor_fn fn, void *arg)
{
    actor_begin(actor, fn, arg);
    return actor_result(actor);
}

void *actor_own(struct actor *actor)
{
    return actor->own;
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
    if (!wait_until(is_done_after(actor, 100), DONE_WITHIN_MS))
        return -1;
    actor_end(actor);
    return 0;
}

struct actor *world_actor(void)
{
    return world_keep(actor_new(), WORLD_THREAD, end_idle);
}
