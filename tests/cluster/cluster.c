/* SPDX-License-Identifier: Apache-2.0 */
#include "cluster.h"

int cluster_world_end(void **state)
{
    return world_end(state) | cluster_raw_close(state);
}

/* --- clients and handles ---------------------------------------------------------------------- */

struct zkl_client_options cluster_options(void)
{
    struct zkl_client_options options = ZKL_CLIENT_OPTIONS_INIT;

    options.servers = cluster_servers(zks_connect_string(server));
    options.session_timeout_ms = SESSION_MS;
    options.connect_timeout_ms = WAIT_MS;
    return options;
}

struct zkl_client *cluster_client_with(const struct zkl_client_options *options)
{
    struct zkl_client *client = NULL;

    if (zkl_client_open(&client, options) != 0)
        fail_msg("%s", zkl_error_detail());
    return client;
}

struct zkl_client *cluster_client(void)
{
    struct zkl_client_options options = cluster_options();

    return cluster_client_with(&options);
}

struct zkl_client *world_client(void)
{
    struct zkl_client_options options = cluster_options();

    return world_client_with(&options);
}

struct zkl_mutex *cluster_mutex(struct zkl_client *client, const char *path)
{
    struct zkl_mutex *mutex = NULL;

    if (zkl_mutex_new(&mutex, client, path, NULL) != 0)
        fail_msg("%s", zkl_error_detail());
    return mutex;
}

void cluster_free_all(struct zkl_client *client, struct zkl_mutex *mutexes[])
{
    for (size_t i = 0; mutexes[i] != NULL; i++)
        check_ok(zkl_mutex_free(mutexes[i]));
    check_ok(zkl_client_free(client));
}

int in_child(int (*fn)(void *arg), void *arg)
{
    pid_t pid = fork();
    int status = 0;

    if (pid == 0) {
        alarm(300);
        _exit(fn(arg));
    }
    check_num(pid, >, 0);
    check_num(waitpid(pid, &status, 0), ==, pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 99;
}
