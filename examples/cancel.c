/* SPDX-License-Identifier: Apache-2.0 */
/* A signal ends a wait: Ctrl-C, or SIGALRM after a second. A signal handler may set the cancel
 * object. */
#include <zklock/zklock.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static struct zkl_cancel *cancel;

static void on_signal(int sig)
{
    (void)sig;
    zkl_cancel_set(cancel);
}

static int failed(const char *what)
{
    fprintf(stderr, "cancel: %s: %s\n", what, zkl_error_detail());
    return 1;
}

static struct zkl_client *open_client(const char *servers)
{
    struct zkl_client *client = NULL;
    struct zkl_client_options options = ZKL_CLIENT_OPTIONS_INIT;
    options.servers = servers;
    options.connect_timeout_ms = 10000;
    zkl_client_open(&client, &options);
    return client;
}

/* The caller decides what to do about each result. */
static int wait_for(struct zkl_mutex *mutex)
{
    int rc = zkl_mutex_lock_until(mutex, zkl_now_ns() + 30 * INT64_C(1000000000), cancel);
    if (rc == 0)
        zkl_mutex_unlock(mutex);
    else if (zkl_cancel_is_set(cancel))
        printf("gave up waiting: a signal came\n");
    else
        failed(zkl_error_is_retryable(rc) ? "try again" : "a retry is useless");
    return rc == ZKL_ECANCELED ? 0 : 1;
}

static int run(struct zkl_client *somebody, struct zkl_client *client)
{
    struct zkl_mutex *theirs, *ours;
    if (zkl_mutex_new(&theirs, somebody, "/zklock/examples/cancel", NULL) ||
        zkl_mutex_new(&ours, client, "/zklock/examples/cancel", NULL) || zkl_mutex_lock(theirs))
        return failed("no lock");
    if (zkl_mutex_trylock(ours) != ZKL_EBUSY) /* does not wait */
        return failed("no holder");
    printf("another client has the lock; connected: %s; waiting\n",
           zkl_client_get_state(client) == ZKL_CLIENT_CONNECTED ? "yes" : "no");
    alarm(1);
    int rc = wait_for(ours);
    return zkl_mutex_unlock(theirs) || zkl_mutex_free(theirs) || zkl_mutex_free(ours) || rc;
}

int main(int argc, char **argv)
{
    const char *servers = argc > 1 ? argv[1] : getenv("ZKLOCK_SERVERS");
    struct zkl_client *somebody = open_client(servers), *client = open_client(servers);
    if (!somebody || !client || zkl_cancel_new(&cancel))
        return failed("no client at HOST:PORT, or ZKLOCK_SERVERS");
    if (signal(SIGINT, on_signal) == SIG_ERR || signal(SIGALRM, on_signal) == SIG_ERR)
        return 1;
    int rc = run(somebody, client);
    zkl_client_free(somebody);
    zkl_client_free(client);
    zkl_cancel_free(cancel); /* from here on no wait and no handler uses it */
    return rc;
}
