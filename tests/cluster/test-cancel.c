/* SPDX-License-Identifier: Apache-2.0 */
/* Cancel objects: set before a wait, during it, from a signal handler, and for many waits. */
#include "cluster.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

struct scene {
    const char *path;
    struct zkl_client *client;
    struct zkl_mutex *mutex;
    struct zkl_cancel *cancel;
};

static struct scene scene_open(const char *name)
{
    struct scene s = {.path = cluster_path(name), .client = cluster_client()};

    s.mutex = cluster_mutex(s.client, s.path);
    check_ok(zkl_cancel_new(&s.cancel));
    return s;
}

static void scene_close(struct scene *s)
{
    zkl_cancel_free(s->cancel);
    cluster_free(s->client, s->mutex);
}

/* Goal: a cancel object that is set ends an acquire, and a try, before the call asks the server for
 * anything. The object stays set. A re-entry does not look at it. Method: the server counts no node
 * that was made. */
static void set_before_the_call(void **state)
{
    struct scene s = scene_open("before");
    struct take take = take_of(s.mutex);
    struct wire_stat stat;

    (void)state;
    take.wait.cancel = s.cancel;
    check_ok(wire_create(raw, cluster_at(s.path), "", WIRE_PERSISTENT, NULL, 0));
    check_num(zkl_cancel_is_set(s.cancel), ==, 0);
    zkl_cancel_set(s.cancel);
    zkl_cancel_set(s.cancel);
    check_num(zkl_cancel_is_set(s.cancel), ==, 1);
    for (int i = 0; i < 3; i++)
        check_num(do_acquire(&take), ==, ZKL_ECANCELED);
    take.wait.flags = ZKL_WAIT_TRY;
    check_num(do_acquire(&take), ==, ZKL_ECANCELED);
    check_ok(zkl_mutex_lock(s.mutex)); /* any request before it is done when this is */
    check_ok(wire_exists(raw, cluster_at(s.path), &stat));
    check_num(stat.cversion, ==, 1);
    check_ok(zkl_mutex_unlock(s.mutex));
    check_ok(zkl_mutex_lock(s.mutex));
    check_ok(do_acquire(&take));
    check_ok(zkl_mutex_unlock(s.mutex));
    check_ok(zkl_mutex_unlock(s.mutex));
    check_ok(wire_delete_tree(raw, cluster_at(s.path)));
    scene_close(&s);
}

#define WAITS 3

/* Goal: one object ends all waits that share it, on two clients, and no other wait. Each leaves
 * nothing. The object may be freed as soon as it is set. */
static void one_object_ends_the_waits_of_two_clients(void **state)
{
    struct scene a = scene_open("shared"), b = scene_open("other");
    struct zkl_mutex *mutexes[2] = {a.mutex, cluster_mutex(b.client, a.path)};
    struct take takes[2 * WAITS + 1];
    struct actor *actors[2 * WAITS + 1];

    (void)state;
    check_ok(zkl_mutex_lock(a.mutex));
    for (int i = 0; i <= 2 * WAITS; i++) {
        takes[i] = take_of(mutexes[i % 2]);
        takes[i].wait.cancel = i < 2 * WAITS ? a.cancel : b.cancel;
        actors[i] = actor_new();
        actor_begin(actors[i], do_acquire, &takes[i]);
    }
    check_wait(cluster_children(a.path) == 2 * WAITS + 2, WAIT_MS);
    zkl_cancel_set(a.cancel);
    zkl_cancel_free(a.cancel);
    a.cancel = NULL;
    for (int i = 0; i < 2 * WAITS; i++)
        check_num(actor_result(actors[i]), ==, ZKL_ECANCELED);
    check_wait(cluster_children(a.path) == 2, WAIT_MS);
    check_true(!actor_is_done(actors[2 * WAITS]));
    check_ok(zkl_mutex_unlock(a.mutex));
    check_ok(actor_result(actors[2 * WAITS]));
    check_ok(actor_do(actors[2 * WAITS], do_unlock, takes[2 * WAITS].mutex));
    for (int i = 0; i <= 2 * WAITS; i++)
        actor_end(actors[i]);
    check_ok(zkl_mutex_free(mutexes[1]));
    scene_close(&b);
    scene_close(&a);
}

static struct zkl_cancel *for_handler;
static volatile sig_atomic_t errno_kept;

static void set_in_handler(int sig)
{
    int interrupted = errno;

    (void)sig;
    errno = ENOTTY;
    zkl_cancel_set(for_handler);
    errno_kept = errno == ENOTTY && zkl_cancel_is_set(for_handler);
    errno = interrupted;
}

/* Goal: a signal handler may set the object, in the waiting thread itself, and errno is kept. */
static void set_in_a_signal_handler(void **state)
{
    struct scene s = scene_open("handler");
    struct sigaction action = {.sa_handler = set_in_handler}, before;
    struct take take = take_of(s.mutex);
    struct actor *waiter = actor_new();

    (void)state;
    for_handler = take.wait.cancel = s.cancel;
    check_ok(sigaction(SIGUSR1, &action, &before));
    check_ok(zkl_mutex_lock(s.mutex));
    actor_begin(waiter, do_acquire, &take);
    check_wait(cluster_children(s.path) == 2, WAIT_MS);
    check_ok(pthread_kill(actor_thread(waiter), SIGUSR1));
    check_num(actor_result(waiter), ==, ZKL_ECANCELED);
    check_num(errno_kept, ==, 1);
    check_wait(cluster_children(s.path) == 1, WAIT_MS);
    check_ok(zkl_mutex_unlock(s.mutex));
    check_ok(sigaction(SIGUSR1, &before, NULL));
    actor_end(waiter);
    scene_close(&s);
}

/* Goal: a signal whose handler does nothing does not end a wait. */
static void nothing(int sig)
{
    (void)sig;
}

static void a_signal_alone_does_not_end_a_wait(void **state)
{
    struct scene s = scene_open("signal");
    struct sigaction action = {.sa_handler = nothing}, before;
    struct actor *waiter = actor_new();

    (void)state;
    check_ok(sigaction(SIGUSR1, &action, &before));
    check_ok(zkl_mutex_lock(s.mutex));
    actor_begin(waiter, do_lock, s.mutex);
    check_wait(cluster_children(s.path) == 2, WAIT_MS);
    for (int i = 0; i < 20; i++) {
        check_ok(pthread_kill(actor_thread(waiter), SIGUSR1));
        net_nap_ms(2);
    }
    check_true(!actor_is_done(waiter));
    check_ok(zkl_mutex_unlock(s.mutex));
    check_ok(actor_result(waiter));
    check_ok(actor_do(waiter, do_unlock, s.mutex));
    check_ok(sigaction(SIGUSR1, &before, NULL));
    actor_end(waiter);
    scene_close(&s);
}

static const struct CMUnitTest tests[] = {
    cluster_test(set_before_the_call),
    cluster_test(one_object_ends_the_waits_of_two_clients),
    cluster_test(set_in_a_signal_handler),
    cluster_test(a_signal_alone_does_not_end_a_wait),
};

int main(int argc, char **argv)
{
    return CLUSTER_MAIN(argc, argv, "cancel", tests);
}
