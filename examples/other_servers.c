/* SPDX-License-Identifier: Apache-2.0 */
/* A holder that outlives its servers: it follows the ensemble's own list, and takes the list of its
 * configuration again when it gets SIGHUP. Run it with HOST:PORT,... and look at it with
 *     zklock status /zklock/examples/other_servers */
#include <zklock/zklock.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static volatile sig_atomic_t again = 1, ends;

static void on_signal(int number)
{
    if (number == SIGHUP)
        again = 1;
    else
        ends = 1;
}

static const char *configured(int argc, char **argv) /* a real program reads a file here */
{
    return argc > 1 ? argv[1] : getenv("ZKLOCK_SERVERS");
}

static void log_line(const struct zkl_log_event *event, void *unused)
{
    (void)unused;
    fprintf(stderr, "%s\n", event->message); /* also why the ensemble's list is not used */
}

/* One job under the lock. */
static int work(struct zkl_client *client, struct zkl_mutex *mutex)
{
    char server[100] = "none";
    if (!zkl_mutex_still_held(mutex, 1000))
        return 1;
    if (zkl_client_server(client, server, sizeof server) > 0)
        printf("session 0x%llx at %s\n", (long long)zkl_client_session_id(client), server);
    return 0;
}

int main(int argc, char **argv)
{
    struct zkl_client_options options = ZKL_CLIENT_OPTIONS_INIT;
    struct timespec tenth = {0, 100000000};
    struct zkl_client *client;
    struct zkl_mutex *mutex;
    signal(SIGHUP, on_signal);
    signal(SIGTERM, on_signal);
    options.servers = configured(argc, argv);
    options.connect_timeout_ms = 10000;
    options.follow_ensemble = 1;
    options.log_fn = log_line;
    if (zkl_client_open(&client, &options) ||
        zkl_mutex_new(&mutex, client, "/zklock/examples/other_servers", NULL) ||
        zkl_mutex_lock_for(mutex, 60000))
        return fprintf(stderr, "HOST:PORT, or ZKLOCK_SERVERS: %s\n", zkl_error_detail()) > 0;
    for (int jobs = argc > 2 ? atoi(argv[2]) : 3; jobs > 0 && !ends; jobs--) {
        if (again && zkl_client_set_servers(client, configured(argc, argv)))
            fprintf(stderr, "the servers stay: %s\n", zkl_error_detail());
        again = 0;
        if (work(client, mutex))
            return fprintf(stderr, "not held any more\n") > 0;
        nanosleep(&tenth, NULL);
    }
    return zkl_mutex_unlock(mutex) || zkl_mutex_free(mutex) || zkl_client_free(client);
}
