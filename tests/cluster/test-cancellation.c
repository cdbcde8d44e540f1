/* SPDX-License-Identifier: Apache-2.0 */
/* pthread_cancel and zklock: a call that has begun comes to its end, and the thread is cancelled at
 * its next cancellation point outside. */
#include "cluster.h"

struct scene {
    struct zkl_client_options options;
    struct zkl_client *client;
    struct zkl_mutex *mutex;
    struct zkl_cancel *cancel;
};

static int call_open(struct scene *s)
{
    return zkl_client_open(&s->client, &s->options);
}

static int call_state(struct scene *s)
{
    return zkl_client_get_state(s->client) == ZKL_CLIENT_CONNECTED ? 0 : -1;
}

static int call_new(struct scene *s)
{
    return zkl_mutex_new(&s->mutex, s->client, "/pending", NULL);
}

static int call_set_callback(struct scene *s)
{
    return zkl_mutex_set_callback(s->mutex, NULL, NULL);
}

static int call_lock_and_unlock(struct scene *s)
{
    int rc = zkl_mutex_lock(s->mutex);
    if (rc == 0)
        rc = zkl_mutex_lock_for(s->mutex, 1000);
    if (rc == 0)
        rc = zkl_mutex_unlock(s->mutex);
    return rc == 0 ? zkl_mutex_unlock(s->mutex) : rc;
}

static int call_trylock_and_exit(struct scene *s)
{
    return zkl_mutex_trylock(s->mutex);
}

static int call_cancel_new(struct scene *s)
{
    return zkl_cancel_new(&s->cancel);
}

static int call_cancel_free(struct scene *s)
{
    zkl_cancel_free(s->cancel);
    return 0;
}

static int call_mutex_free(struct scene *s)
{
    return zkl_mutex_free(s->mutex);
}

static int call_close(struct scene *s)
{
    return zkl_client_close(s->client, WAIT_MS);
}

static int call_client_free(struct scene *s)
{
    return zkl_client_free(s->client);
}

struct attempt {
    int (*call)(struct scene *scene);
    struct scene *scene;
    int rc;
    bool completed;
};

static void *attempt_with_pending(void *arg)
{
    struct attempt *attempt = arg;

    pthread_cancel(pthread_self());
    attempt->rc = attempt->call(attempt->scene);
    attempt->completed = true;
    pthread_testcancel();
    return NULL;
}

static void check_completes(struct scene *scene, const char *name, int (*call)(struct scene *scene))
{
    struct attempt attempt = {.call = call, .scene = scene};
    pthread_t thread;
    void *result;

    check_ok(pthread_create(&thread, NULL, attempt_with_pending, &attempt));
    check_ok(pthread_join(thread, &result));
    if (!attempt.completed)
        fail_msg("%s was cut short by a cancellation", name);
    check_ok(attempt.rc);
    check_true(result == PTHREAD_CANCELED);
}

/* Goal: in a thread with a pending cancellation every call does all it has to. The thread ends only
 * after the call. Method: each call runs in a thread that has canceled itself before. */
CLUSTER_TEST(a_pending_cancellation_waits_for_the_end_of_each_call)
{
    struct scene s = {.options = cluster_options()};

    check_completes(&s, "zkl_client_open", call_open);
    check_completes(&s, "zkl_client_get_state", call_state);
    check_completes(&s, "zkl_mutex_new", call_new);
    check_completes(&s, "zkl_mutex_set_callback", call_set_callback);
    check_completes(&s, "lock and unlock", call_lock_and_unlock);
    check_completes(&s, "zkl_mutex_trylock", call_trylock_and_exit);
    check_wait(cluster_children("/pending") == 0, WAIT_MS);
    check_completes(&s, "zkl_cancel_new", call_cancel_new);
    check_completes(&s, "zkl_cancel_free", call_cancel_free);
    check_completes(&s, "zkl_mutex_free", call_mutex_free);
    check_completes(&s, "zkl_client_close", call_close);
    check_completes(&s, "zkl_client_free", call_client_free);
}
