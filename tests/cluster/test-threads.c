/* SPDX-License-Identifier: Apache-2.0 */
/* Threads: places of their own, in the order of asking; holders that end without unlock. */
#include "cluster.h"

#include <string.h>

static pthread_key_t late_key;

static void lock_in_destructor(void *mutex)
{
    (void)!zkl_mutex_lock(mutex);
}

static void *lock_now_and_late(void *arg)
{
    struct zkl_mutex **mutexes = arg;
    int rc = zkl_mutex_lock(mutexes[0]);

    pthread_setspecific(late_key, mutexes[1]); /* its destructor runs after the library's */
    if (rc == 0)
        rc = zkl_mutex_unlock(mutexes[0]);
    return (void *)(intptr_t)rc;
}

/* Goal: what a thread locks in a destructor of its own, while it ends, goes with the thread too.
 * Method: a key that was made after the library's, so that its destructor comes later. */
static void a_lock_taken_while_the_thread_ends_goes_with_it(void **state)
{
    const char *path = cluster_path("late-lock");
    struct zkl_client *client = cluster_client();
    struct zkl_mutex *early = cluster_mutex(client, cluster_path("early-lock"));
    struct zkl_mutex *late = cluster_mutex(client, path);
    struct zkl_mutex *mutexes[2] = {early, late};
    pthread_t thread;
    void *result;

    (void)state;
    check_ok(zkl_mutex_lock(early)); /* the library's key is there now */
    check_ok(zkl_mutex_unlock(early));
    check_ok(pthread_key_create(&late_key, lock_in_destructor));
    check_ok(pthread_create(&thread, NULL, lock_now_and_late, mutexes));
    check_ok(pthread_join(thread, &result));
    check_ok((intptr_t)result);
    check_wait(cluster_children(path) == 0, 5000);
    check_ok(pthread_key_delete(late_key));
    cluster_free(client, early, late);
}

static const struct CMUnitTest tests[] = {
    cluster_test(a_lock_taken_while_the_thread_ends_goes_with_it),
};

int main(int argc, char **argv)
{
    return CLUSTER_MAIN(argc, argv, "threads", tests);
}
