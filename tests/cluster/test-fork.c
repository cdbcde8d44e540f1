/* SPDX-License-Identifier: Apache-2.0 */
/* Forked children: they can't use what their parent opened, do it no harm, and can open their own.
 * */
#include "cluster.h"

#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* What fn gives, as the exit status of a child; 99 stands for a child that did not end by itself.
 * */
static int in_child(int (*fn)(void *arg), void *arg)
{
    pid_t pid = fork();
    int status = 0;

    if (pid == 0) {
        alarm(30);
        _exit(fn(arg));
    }
    check_num(pid, >, 0);
    check_num(waitpid(pid, &status, 0), ==, pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 99;
}

struct cancel_wait {
    struct zkl_mutex *mutex;
    struct zkl_cancel *cancel;
};

static int wait_with_cancel(void *arg)
{
    struct cancel_wait *w = arg;
    return zkl_mutex_lock_until(w->mutex, ZKL_NO_DEADLINE, w->cancel);
}

static int set_cancel(void *cancel)
{
    zkl_cancel_set(cancel);
    return zkl_cancel_is_set(cancel) ? 0 : 1;
}

/* Goal: a child that sets a cancel object it has inherited does not end its parent's waits: the bit
 * is the child's own copy. */
static void a_childs_cancel_does_not_reach_the_parent(void **state)
{
    const char *path = cluster_path("fork-cancel");
    struct zkl_client *client = cluster_client();
    struct zkl_mutex *mutex = cluster_mutex(client, path);
    struct cancel_wait wait = {.mutex = mutex};
    struct actor *waiter = actor_new();

    (void)state;
    check_ok(zkl_cancel_new(&wait.cancel));
    check_ok(zkl_mutex_lock(mutex));
    actor_begin(waiter, wait_with_cancel, &wait);
    check_wait(cluster_children(path) == 2, WAIT_MS);
    check_ok(in_child(set_cancel, wait.cancel));
    net_nap_ms(200); /* would do for the wait to end */
    check_ok(zkl_cancel_is_set(wait.cancel));
    check_ok(zkl_mutex_unlock(mutex));
    check_ok(actor_result(waiter));
    check_ok(actor_do(waiter, do_unlock, mutex));
    actor_end(waiter);
    zkl_cancel_free(wait.cancel);
    cluster_free(client, mutex);
}

static const struct CMUnitTest tests[] = {
    cluster_test(a_childs_cancel_does_not_reach_the_parent),
};

int main(int argc, char **argv)
{
    return CLUSTER_MAIN(argc, argv, "fork", tests);
}
