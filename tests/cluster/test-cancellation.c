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

/* Each call, in an order in which it succeeds. */
static const char *const names[] = {
    "zkl_client_open", "zkl_client_get_state", "zkl_mutex_new",   "zkl_mutex_set_callback",
    "lock and unlock", "zkl_mutex_trylock",    "zkl_cancel_new",  "zkl_cancel_free",
    "zkl_mutex_free",  "zkl_client_close",     "zkl_client_free",
};
enum { CALLS = sizeof names / sizeof names[0] };

static int lock_and_unlock(struct zkl_mutex *mutex)
{
    int rc = zkl_mutex_lock(mutex);
    if (rc == 0)
        rc = zkl_mutex_lock_for(mutex, 1000);
    if (rc == 0)
        rc = zkl_mutex_unlock(mutex);
    return rc == 0 ? zkl_mutex_unlock(mutex) : rc;
}

static int make_call(struct scene *s, int call)
{
    switch (call) {
    case 0:
        return zkl_client_open(&s->client, &s->options);
    case 1:
        return zkl_client_get_state(s->client) == ZKL_CLIENT_CONNECTED ? 0 : -1;
    case 2:
        return zkl_mutex_new(&s->mutex, s->client, "/pending", NULL);
    case 3:
        return zkl_mutex_set_callback(s->mutex, NULL, NULL);
    case 4:
        return lock_and_unlock(s->mutex);
    case 5:
        return zkl_mutex_trylock(s->mutex); /* and the thread ends */
    case 6:
        return zkl_cancel_new(&s->cancel);
    case 7:
        zkl_cancel_free(s->cancel);
        return 0;
    case 8:
        return zkl_mutex_free(s->mutex);
    case 9:
        return zkl_client_close(s->client, WAIT_MS);
    default:
        return zkl_client_free(s->client);
    }
}

struct attempt {
    struct scene *scene;
    int call, rc;
    bool completed;
};

static void *attempt_with_pending(void *arg)
{
    struct attempt *attempt = arg;

    pthread_cancel(pthread_self());
    attempt->rc = make_call(attempt->scene, attempt->call);
    attempt->completed = true;
    pthread_testcancel();
    return NULL;
}

/* Goal: in a thread with a pending cancellation every call does all it has to. The thread ends only
 * after the call. Method: each call runs in a thread that has canceled itself before. */
CLUSTER_TEST(a_pending_cancellation_waits_for_the_end_of_each_call)
{
    struct scene s = {.options = cluster_options()};
    pthread_t thread;
    void *result;

    for (int call = 0; call < CALLS; call++) {
        struct attempt attempt = {&s, call, 1, false};
        check_ok(pthread_create(&thread, NULL, attempt_with_pending, &attempt));
        check_ok(pthread_join(thread, &result));
        if (!attempt.completed)
            fail_msg("%s was cut short by a cancellation", names[call]);
        check_ok(attempt.rc);
        check_true(result == PTHREAD_CANCELED);
        check_wait(call != 5 || cluster_children("/pending") == 0, WAIT_MS);
    }
}
