/* SPDX-License-Identifier: Apache-2.0 */
/* A multi-lock without waiting: the callback of each step begins the next one. Calls without a
 * callback, like zkl_inspect, run on a thread of the program's own. Then the program closes the
 * client. */
#include <zklock/async.h>
#include <zklock/inspect.h>

#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>

static struct zkl_client *client;
static struct zkl_owner *owner;
static struct zkl_multi *multi;
static struct zkl_semaphore *semaphore;
static pthread_t looker;
static int result = 1;
static sem_t all_done;

static void next(int code, void *step);

static void *look(void *step)
{
    const struct zkl_inspection *seen = NULL;
    int rc = zkl_inspect(client, "/zklock/examples/operations/a", 5000, &seen);
    if (rc == 0 && seen->count > 0)
        printf("held as %s\n", zkl_inspection_entry(seen, 0)->node_path);
    zkl_inspection_free(seen);
    next(rc, step);
    return NULL;
}

static int begin(intptr_t step)
{
    void *arg = (void *)step;
    switch (step) {
    case 0:
        return zkl_multi_acquire_async(owner, multi, NULL, NULL, next, arg, NULL);
    case 1:
        return pthread_create(&looker, NULL, look, arg);
    case 2:
        return zkl_multi_unlock_async(owner, multi, NULL, next, arg);
    default:
        return zkl_client_close_async(client, next, arg);
    }
}

static void next(int code, void *arg)
{
    intptr_t step = (intptr_t)arg;
    printf("step %d: %s\n", (int)step, zkl_strerror(code));
    if (code == 0 && step < 3 && begin(step + 1) == 0)
        return;
    result = code != 0 || step < 3;
    sem_post(&all_done);
}

int main(int argc, char **argv)
{
    struct zkl_client_options options = ZKL_CLIENT_OPTIONS_INIT;
    struct zkl_mutex *a, *b;
    options.servers = argc > 1 ? argv[1] : getenv("ZKLOCK_SERVERS");
    if (zkl_client_open(&client, &options) || zkl_owner_new(&owner) ||
        zkl_mutex_new(&a, client, "/zklock/examples/operations/a", NULL) ||
        zkl_mutex_new(&b, client, "/zklock/examples/operations/b", NULL) ||
        zkl_semaphore_new(&semaphore, client, "/zklock/examples/operations/s", 3, NULL))
        return fprintf(stderr, "operations: HOST:PORT, or ZKLOCK_SERVERS: %s\n",
                       zkl_error_detail()) > 0;
    struct zkl_member members[] = {zkl_member_mutex(a), zkl_member_mutex(b),
                                   zkl_member_semaphore(semaphore, 2)};
    if (zkl_multi_new(&multi, client, members, 3) || sem_init(&all_done, 0, 0) || begin(0) != 0)
        return 1;
    sem_wait(&all_done); /* here the program would do its other work */
    return result || pthread_join(looker, NULL) || zkl_multi_free(multi) ||
           zkl_semaphore_free(semaphore) || zkl_mutex_free(a) || zkl_mutex_free(b) ||
           zkl_owner_free(owner) || zkl_client_free(client);
}
