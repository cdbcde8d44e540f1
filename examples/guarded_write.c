/* SPDX-License-Identifier: Apache-2.0 */
/* A holder is stopped for longer than its session lives, between its last look at the lock and its
 * write. The server refuses that write, since it checks the lock in the same transaction. A write
 * without the check passes. */
#include <zklock/guard.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define DATA "/guarded_write_data"

static struct zkl_client *client;
static struct zkl_mutex *mutex;
static zhandle_t *zh; /* the program's own, beside zklock's: its session outlives the pause */

static void hush(const char *line)
{
    (void)line;
}

static int lock(const char *servers)
{
    struct zkl_client_options options = ZKL_CLIENT_OPTIONS_INIT;
    options.servers = servers;
    options.session_timeout_ms = 4000;
    if (zkl_client_open(&client, &options) ||
        zkl_mutex_new(&mutex, client, "/zklock/examples/guarded_write", NULL) ||
        zkl_mutex_lock(mutex))
        return fprintf(stderr, "HOST:PORT, or ZKLOCK_SERVERS: %s\n", zkl_error_detail());
    return !(zh = zookeeper_init2(servers, NULL, 30000, NULL, NULL, 0, hush));
}

/* A broken link says nothing about the lock: it tries again. */
static int commit(const char *who, zoo_op_t *ops, int count)
{
    zoo_op_result_t results[2];
    int rc;
    do
        rc = is_unrecoverable(zh) ? ZSESSIONEXPIRED : zoo_multi(zh, count, ops, results);
    while (rc == ZCONNECTIONLOSS || rc == ZOPERATIONTIMEOUT);
    printf("%s writes %s: %s\n", who, count == 2 ? "with the check" : "without", zerror(rc));
    return rc;
}

static int write_held(const char *who, int pause)
{
    struct zkl_guard guard;
    zoo_op_t ops[2];
    if (zkl_guard_mutex(&guard, mutex, 500, NULL, &ops[0])) /* held, for 500 ms at least */
        return -1;
    zoo_set_op_init(&ops[1], DATA, who, (int)strlen(who), -1, NULL);
    if (!pause)
        return commit(who, ops, 2);
    raise(SIGSTOP);
    return commit(who, ops, 2) == ZNONODE && commit(who, &ops[1], 1) == ZOK ? 0 : -1;
}

int main(int argc, char **argv)
{
    const char *servers = argc > 1 ? argv[1] : getenv("ZKLOCK_SERVERS");
    int status = 0;
    setvbuf(stdout, NULL, _IOLBF, 0);
    pid_t child = fork();
    if (child == 0)
        return lock(servers) || write_held("the one that was stopped", 1);
    if (waitpid(child, &status, WUNTRACED) != child || !WIFSTOPPED(status))
        return 1;
    int failed = lock(servers); /* granted when the other's session has ended */
    zoo_create(zh, DATA, "", 0, &ZOO_OPEN_ACL_UNSAFE, 0, NULL, 0);
    failed = failed || write_held("the next holder", 0) || zkl_mutex_unlock(mutex);
    kill(child, SIGCONT);
    failed = waitpid(child, &status, 0) != child || status != 0 || failed;
    zookeeper_close(zh);
    return zkl_mutex_free(mutex) || zkl_client_free(client) || failed;
}
