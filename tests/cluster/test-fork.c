/* SPDX-License-Identifier: Apache-2.0 */
/* Forked children: they can't use what their parent opened, do it no harm, and can open their own.
 * */
#include "cluster.h"

#include <stdatomic.h>
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

/* --- what was inherited ---------------------------------------------------------------------- */

struct inherited {
    struct zkl_client *client;
    struct zkl_mutex *mutex;
};

/* 0, or the number of the call that did not say ZKL_EFORK. */
static int call_all(void *arg)
{
    struct inherited *in = arg;
    struct zkl_mutex *other = NULL;
    char node[16];
    const int64_t said[] = {
        zkl_client_state(in->client),
        zkl_client_close(in->client, 5000),
        zkl_mutex_new(&other, in->client, "/other"),
        zkl_mutex_lock(in->mutex),
        zkl_mutex_trylock(in->mutex),
        zkl_mutex_lock_for(in->mutex, 5000),
        zkl_mutex_lock_until(in->mutex, ZKL_NO_DEADLINE, NULL),
        zkl_mutex_acquire(in->mutex, NULL, NULL),
        zkl_mutex_still_held(in->mutex, 0),
        zkl_mutex_hold_count(in->mutex),
        zkl_mutex_window_ms(in->mutex),
        zkl_mutex_node_path(in->mutex, node, sizeof node),
        zkl_mutex_set_callback(in->mutex, NULL, NULL),
        zkl_mutex_unlock(in->mutex),
        zkl_mutex_free(in->mutex),
        zkl_client_free(in->client),
    };

    for (size_t i = 0; i < sizeof said / sizeof said[0]; i++) {
        if (said[i] != ZKL_EFORK)
            return (int)i + 1;
    }
    return zkl_mutex_token(in->mutex) == 0 && strstr(zkl_error_detail(), "open one") ? 0 : 98;
}

/* Goal: a child that uses its parent's client and mutex, which the forking thread holds, is told so
 * by each call, at once, and changes nothing: the parent holds on, and unlocks. */
static void what_a_child_inherits_refuses_to_work(void **state)
{
    const char *path = cluster_path("inherited");
    struct inherited in = {.client = cluster_client()};

    (void)state;
    in.mutex = cluster_mutex(in.client, path);
    check_ok(zkl_mutex_lock(in.mutex));
    int64_t start = net_now_ms();
    check_ok(in_child(call_all, &in));
    check_num(net_now_ms() - start, <, 3000);
    check_num(zkl_mutex_still_held(in.mutex, 1), ==, 1);
    check_num(cluster_children(path), ==, 1);
    check_num(zkl_client_state(in.client), ==, ZKL_CLIENT_CONNECTED);
    check_ok(zkl_mutex_unlock(in.mutex));
    check_ok(zkl_mutex_lock(in.mutex));
    check_ok(zkl_mutex_unlock(in.mutex));
    cluster_free(in.client, in.mutex);
}

static int open_own(void *path)
{
    struct zkl_client_options options = cluster_options();
    struct zkl_client *client = NULL;
    struct zkl_mutex *mutex = NULL, *busy = NULL;

    if (zkl_client_open(&client, &options) != 0 || zkl_mutex_new(&mutex, client, "/childs") != 0 ||
        zkl_mutex_new(&busy, client, path) != 0)
        return 1;
    if (zkl_mutex_hold_count(busy) != 0 || zkl_mutex_trylock(busy) != ZKL_EBUSY)
        return 2;
    if (zkl_mutex_lock(mutex) != 0 || zkl_mutex_unlock(mutex) != 0)
        return 3;
    if (zkl_mutex_free(busy) != 0 || zkl_mutex_free(mutex) != 0 || zkl_client_free(client) != 0)
        return 4;
    return 0;
}

/* Goal: a child, and a child of it, opens clients of its own, which find busy what the parent
 * holds. */
static int open_own_and_let_a_child_do_so(void *path)
{
    int rc = open_own(path), status = 99;
    pid_t pid = fork();

    if (pid == 0)
        _exit(open_own(path));
    if (waitpid(pid, &status, 0) != pid)
        return 5;
    return rc == 0 ? status : rc;
}

static void a_child_can_open_its_own(void **state)
{
    skip_under_gcc_tsan();
    const char *path = cluster_path("parents");
    struct zkl_client *client = cluster_client();
    struct zkl_mutex *mutex = cluster_mutex(client, path);

    (void)state;
    check_ok(zkl_mutex_lock(mutex));
    for (int i = 0; i < 3; i++)
        check_ok(in_child(open_own_and_let_a_child_do_so, (void *)path));
    check_num(zkl_mutex_still_held(mutex, 1), ==, 1);
    check_ok(zkl_mutex_unlock(mutex));
    cluster_free(client, mutex);
}

static atomic_bool forked_enough;

static int lock_until_told(void *mutex)
{
    int rc = 0;

    while (rc == 0 && !atomic_load(&forked_enough)) {
        rc = zkl_mutex_lock(mutex);
        if (rc == 0)
            rc = zkl_mutex_unlock(mutex);
    }
    return rc;
}

/* The address sanitizer's own allocator keeps a lock taken in a child that is forked while another
 * thread allocates. */
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define FORKS_AMID_CALLS 0
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) && !defined(FORKS_AMID_CALLS)
#define FORKS_AMID_CALLS 0
#endif
#ifndef FORKS_AMID_CALLS
#define FORKS_AMID_CALLS cluster_length(100, 8)
#endif

/* Goal: a child that is forked in the midst of other threads' calls can open its own all the same:
 * no lock of the library is left taken in it. */
static void a_fork_amid_calls_leaves_no_lock_taken(void **state)
{
    skip_under_gcc_tsan();
    const char *path = cluster_path("amid"), *busy = cluster_path("amid-busy");
    struct zkl_client *client = cluster_client();
    struct zkl_mutex *mutex = cluster_mutex(client, path), *held = cluster_mutex(client, busy);
    struct actor *actors[3] = {actor_new(), actor_new(), actor_new()};

    (void)state;
    atomic_store(&forked_enough, false);
    check_ok(zkl_mutex_lock(held));
    for (int i = 0; i < 3; i++)
        actor_begin(actors[i], lock_until_told, mutex);
    for (long i = FORKS_AMID_CALLS; i > 0; i--)
        check_ok(in_child(open_own, (void *)busy));
    atomic_store(&forked_enough, true);
    for (int i = 0; i < 3; i++) {
        check_ok(actor_result(actors[i]));
        actor_end(actors[i]);
    }
    check_ok(zkl_mutex_unlock(held));
    cluster_free(client, mutex, held);
}

static const struct CMUnitTest tests[] = {
    cluster_test(what_a_child_inherits_refuses_to_work),
    cluster_test(a_child_can_open_its_own),
    cluster_test(a_fork_amid_calls_leaves_no_lock_taken),
    cluster_test(a_childs_cancel_does_not_reach_the_parent),
};

int main(int argc, char **argv)
{
    return CLUSTER_MAIN(argc, argv, "fork", tests);
}
