/* SPDX-License-Identifier: Apache-2.0 */
/* Preforking: a client belongs to the process that opened it. A child that uses the inherited
 * client gets ZKL_EFORK, and must open its own. */
#include <zklock/zklock.h>

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CHILDREN = 3 };

static int failed(const char *what)
{
    fprintf(stderr, "prefork: %s: %s\n", what, zkl_error_detail());
    return 1;
}

static struct zkl_client *open_client(const char *servers)
{
    struct zkl_client *client;
    struct zkl_client_options options = ZKL_CLIENT_OPTIONS_INIT;
    options.servers = servers;
    options.connect_timeout_ms = 10000;
    if (zkl_client_open(&client, &options) == 0)
        return client;
    failed("no client");
    return NULL;
}

static int work(struct zkl_client *client, const char *who, int number)
{
    struct zkl_mutex *mutex;
    if (zkl_mutex_new(&mutex, client, "/zklock/examples/prefork", NULL))
        return failed("no mutex");
    if (zkl_mutex_lock(mutex))
        return failed("not locked");
    printf("%s %d: holds the lock through a client of its own\n", who, number);
    return zkl_mutex_unlock(mutex) || zkl_mutex_free(mutex) ? failed("not released") : 0;
}

static int child(struct zkl_client *inherited, const char *servers, int number)
{
    struct zkl_mutex *mutex;
    int rc = zkl_mutex_new(&mutex, inherited, "/zklock/examples/prefork", NULL);
    printf("child %d: the inherited client is refused: %s\n", number, zkl_strerror(rc));
    if (rc != ZKL_EFORK)
        return failed("the inherited client was not refused");
    struct zkl_client *client = open_client(servers);
    if (!client)
        return 1;
    rc = work(client, "child", number);
    return zkl_client_free(client) || rc;
}

int main(int argc, char **argv)
{
    const char *servers = argc > 1 ? argv[1] : getenv("ZKLOCK_SERVERS");
    if (!servers) {
        fprintf(stderr, "usage: prefork HOST:PORT (or set ZKLOCK_SERVERS)\n");
        return 2;
    }
    struct zkl_client *client = open_client(servers);
    if (!client)
        return 1;
    int failures = 0;
    setvbuf(stdout, NULL, _IOLBF, 0); /* nothing half printed for the children to inherit */
    for (int i = 1; i <= CHILDREN; i++) {
        pid_t pid = fork();
        if (pid == 0)
            _exit(child(client, servers, i));
        failures += pid < 0;
    }
    for (int status; wait(&status) > 0;)
        failures += status != 0;
    failures += work(client, "parent", (int)getpid()); /* its client still works */
    zkl_client_free(client);
    return failures ? 1 : 0;
}
