/* SPDX-License-Identifier: Apache-2.0 */
/* A client asks a holder to release its lock. The holder learns of it by its callback, and whenever
 * it looks, and unlocks when it can. The request takes nothing away. */
#include <zklock/inspect.h>
#include <zklock/zklock.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static struct zkl_mutex *mutex;
static char node[600];
static pthread_barrier_t locked;

static int failed(const char *what)
{
    fprintf(stderr, "let_go: %s: %s\n", what, zkl_error_detail());
    return 1;
}

/* Runs on a thread of the library. It may set a flag or write to a pipe, and must not wait. */
static void told(const struct zkl_hold_event *event, void *arg)
{
    (void)arg;
    if (event->state == ZKL_HOLD_REVOKE_REQUESTED)
        printf("holder: another client asks for %s\n", event->node_path);
}

static void *holder(void *unused)
{
    struct timespec pause = {0, 10000000};
    zkl_mutex_set_callback(mutex, told, NULL);
    if (zkl_mutex_lock(mutex) || zkl_mutex_node_path(mutex, node, sizeof node) < 0)
        exit(failed("not locked"));
    pthread_barrier_wait(&locked);
    while (!zkl_mutex_revoke_requested(mutex)) /* between two pieces of work */
        nanosleep(&pause, NULL);
    printf("holder: releases the lock\n");
    return zkl_mutex_unlock(mutex) ? &mutex : unused;
}

/* zkl_inspect lists holders and waiters, and has the name of the node. */
static int ask(struct zkl_client *client)
{
    struct zkl_wait wait = ZKL_WAIT_INIT;
    wait.deadline_ns = zkl_now_ns() + 10 * INT64_C(1000000000);
    printf("asker: please release it\n");
    /* With ZKL_INSPECT_FORCE the node would be deleted at the deadline. */
    int rc = zkl_revoke(client, node, &wait, 0);
    printf("asker: %s\n", rc ? zkl_error_detail() : "it is free");
    return rc;
}

int main(int argc, char **argv)
{
    pthread_t thread;
    void *wrong;
    struct zkl_client *client;
    struct zkl_client_options options = ZKL_CLIENT_OPTIONS_INIT;
    options.servers = argc > 1 ? argv[1] : getenv("ZKLOCK_SERVERS");
    options.connect_timeout_ms = 10000;
    if (zkl_client_open(&client, &options) ||
        zkl_mutex_new(&mutex, client, "/zklock/examples/let_go", NULL))
        return failed("no lock at HOST:PORT, or ZKLOCK_SERVERS");
    pthread_barrier_init(&locked, NULL, 2);
    pthread_create(&thread, NULL, holder, NULL);
    pthread_barrier_wait(&locked);
    int rc = ask(client);
    pthread_join(thread, &wrong);
    zkl_mutex_free(mutex);
    zkl_client_free(client);
    return rc || wrong ? 1 : 0;
}
