/* SPDX-License-Identifier: Apache-2.0 */
/* Forked children: they can't use what their parent opened, do it no harm, and can open their own.
 * */
#include "refused_calls.h"

static int set_cancel(void *cancel)
{
    zkl_cancel_set(cancel);
    return zkl_cancel_is_set(cancel) ? 0 : 1;
}

/* The bit is the child's own copy. */
WORLD_TEST(a_childs_cancel_does_not_reach_the_parent)
{
    struct locker l = locker_of(cluster_path("fork-cancel"), NULL);
    struct zkl_cancel *cancel = l.take.wait.cancel = world_cancel();

    check_ok(zkl_mutex_lock(l.mutex));
    locker_queues(&l, 2);
    check_ok(in_child(set_cancel, cancel));
    net_nap_ms(200); /* would do for the wait to end */
    check_ok(zkl_cancel_is_set(cancel));
    check_ok(zkl_mutex_unlock(l.mutex));
    locker_passes(&l);
}

/* --- what was inherited ---------------------------------------------------------------------- */

static void end_now(void)
{
    _exit(0);
}

/* Each call, and then the thread ends, with all that it holds for its parent. */
static int call_all(void *arg)
{
    struct refused_calls *e = arg;

    refused_calls_make(e, IN_A_CHILD);
    if (e->wrong > 0) {
        fprintf(stderr, "%d calls were wrong, the first: %s\n", e->wrong, e->first);
        return 1;
    }
    if (e->goods.refused_ms >= REFUSED_CALLS_MS)
        return 2;
    atexit(end_now); /* before a sanitizer looks for leaks */
    pthread_exit(NULL);
}

/* Goal: it changes nothing, not even at the end of its thread, which is the copy of the holding thread. Modes: F53. */
WORLD_TEST(what_a_child_inherits_refuses_to_work)
{
    struct refused_calls e;

    skip_under_gcc_tsan();
    refused_calls_hold(&e, world_client());
    check_ok(in_child(call_all, &e));
    refused_calls_check(&e);
    refused_calls_release(&e);
}

static int wait_for_multi(void *multi)
{
    int rc = zkl_multi_lock(multi);

    return rc != 0 ? rc : zkl_multi_unlock(multi, NULL);
}

static int wait_for_permits(void *semaphore)
{
    struct zkl_permit *permits[2];
    int rc = zkl_semaphore_acquire(semaphore, 2, NULL, permits);

    for (int i = 0; rc == 0 && i < 2; i++)
        rc = zkl_permit_release(permits[i]);
    return rc;
}

/* Modes: F53. */
WORLD_TEST(a_fork_amid_waits_disturbs_nobody)
{
    enum { WAITERS = 4 };
    struct actor *waiters[WAITERS];
    struct refused_calls e;
    char root[300];

    skip_under_gcc_tsan();
    skip_under_asan();
    refused_calls_hold(&e, world_client());
    check_num(zkl_mutex_node_path(e.goods.mutex, root, sizeof root), >, 0);
    *strrchr(root, '/') = '\0';
    for (int i = 0; i < WAITERS; i++)
        waiters[i] = world_actor();
    actor_begin(waiters[0], do_cycle, e.goods.mutex);
    actor_begin(waiters[1], do_cycle, zkl_rwlock_reader(e.goods.rwlock));
    actor_begin(waiters[2], wait_for_multi, e.goods.multi);
    actor_begin(waiters[3], wait_for_permits, e.goods.semaphore);
    check_wait(cluster_children(root) == 3, WAIT_MS); /* the holder, the first, the multi-lock */
    for (int i = 0; i < 3; i++)
        check_ok(in_child(call_all, &e));
    refused_calls_check(&e);
    for (int i = 0; i < WAITERS; i++)
        check_true(!actor_is_done(waiters[i]));
    check_ok(zkl_multi_unlock(e.goods.multi, NULL));
    check_ok(zkl_permit_release(e.goods.permit));
    for (int i = 0; i < WAITERS; i++)
        check_ok(actor_result(waiters[i]));
    check_ok(zkl_multi_lock(e.goods.multi));
    check_ok(zkl_semaphore_acquire(e.goods.semaphore, 1, NULL, &e.goods.permit));
    refused_calls_release(&e);
}

/* Does a look at the path show this thread as the only holder? */
static bool is_told_of(struct zkl_client *client, const char *path)
{
    const struct zkl_inspection *inspection = NULL;

    if (zkl_inspect(client, path, WAIT_MS, &inspection) != 0)
        return false;
    bool us = inspection->count == 1 && inspection->entries[0].pid == getpid() &&
              inspection->entries[0].thread == gettid();
    zkl_inspection_free(inspection);
    return us;
}

static int open_own(void *path)
{
    struct zkl_client_options options = cluster_options();
    struct zkl_client *client = NULL;
    struct zkl_mutex *mutex = NULL, *busy = NULL;

    if (zkl_client_open(&client, &options) != 0 ||
        zkl_mutex_new(&mutex, client, "/childs", NULL) != 0 ||
        zkl_mutex_new(&busy, client, path, NULL) != 0)
        return 1;
    if (zkl_mutex_hold_count(busy) != 0 || zkl_mutex_trylock(busy) != ZKL_EBUSY)
        return 2;
    if (zkl_mutex_lock(mutex) != 0 || !is_told_of(client, "/childs") ||
        zkl_mutex_unlock(mutex) != 0)
        return 3;
    if (zkl_mutex_free(busy) != 0 || zkl_mutex_free(mutex) != 0 || zkl_client_free(client) != 0)
        return 4;
    return 0;
}

static int open_own_and_let_a_child_do_so(void *path)
{
    int rc = open_own(path);

    return rc != 0 ? rc : in_child(open_own, path);
}

/* Modes: F53. */
WORLD_TEST(a_child_can_open_its_own)
{
    skip_under_gcc_tsan();
    const char *path = cluster_path("parents");
    struct zkl_mutex *mutex = world_mutex(world_client(), path);

    check_ok(zkl_mutex_lock(mutex));
    for (int i = 0; i < 3; i++)
        check_ok(in_child(open_own_and_let_a_child_do_so, (void *)path));
    check_num(zkl_mutex_still_held(mutex, 1), ==, 1);
    check_ok(zkl_mutex_unlock(mutex));
}

static atomic_bool forked_enough;

static int lock_until_told(void *mutex)
{
    int rc = 0;

    while (rc == 0 && !atomic_load(&forked_enough))
        rc = do_cycle(mutex);
    return rc;
}

/* Goal: a child that is forked in the midst of other threads' calls can open its own all the same:
 * no lock of the library is left taken in it. Modes: F53. */
WORLD_TEST(a_fork_amid_calls_leaves_no_lock_taken)
{
    skip_under_gcc_tsan();
    skip_under_asan();
    const char *path = cluster_path("amid"), *busy = cluster_path("amid-busy");
    struct zkl_client *client = world_client();
    struct zkl_mutex *mutex = world_mutex(client, path), *held = world_mutex(client, busy);

    atomic_store(&forked_enough, false);
    check_ok(zkl_mutex_lock(held));
    struct crowd crowd = crowd_of(lock_until_told, mutex, 0, 3);
    for (long i = test_length(100, 8); i > 0; i--)
        check_ok(in_child(open_own, (void *)busy));
    atomic_store(&forked_enough, true);
    crowd_end(&crowd);
    check_ok(zkl_mutex_unlock(held));
}

/* --- forks in callbacks ---------------------------------------------------------------------- */

static pid_t forked; /* 0: in the child */
static int callbacks;

static void fork_at_first(int code, void *arg)
{
    (void)code;
    (void)arg;
    if (callbacks++ == 0 && (forked = fork()) == 0)
        alarm(300);
}

/* Goal: a child that a callback forks runs no further callback of its parent, not even on the
 * parent's event loop, to which the callback returns. Method: two operations are done. The first
 * one's callback forks, and the child returns. */
WORLD_TEST(a_fork_in_a_callback_ends_the_childs_dispatch)
{
    skip_under_gcc_tsan();
    struct zkl_client *client = world_client();
    const char *const paths[] = {cluster_path("first"), cluster_path("second")};
    struct zkl_mutex *mutexes[2];
    struct zkl_owner *owner = world_owner();
    int status, fd = zkl_client_event_fd(client), ran = 0;

    check_num(fd, >=, 0);
    callbacks = 0;
    for (int i = 0; i < 2; i++) {
        mutexes[i] = world_mutex(client, paths[i]);
        check_ok(zkl_mutex_acquire_async(owner, mutexes[i], NULL, NULL, fork_at_first, NULL, NULL));
    }
    check_wait(cluster_children(paths[0]) == 1 && cluster_children(paths[1]) == 1, WAIT_MS);
    for (int64_t end = net_now_ms() + WAIT_MS; callbacks < 2 && net_now_ms() < end;) {
        int rc = zkl_client_dispatch(client, 10);
        if (forked == 0 && callbacks > 0) /* whatever was done before the fork is not the child's */
            _exit(rc == ZKL_EFORK && callbacks == 1 ? 0 : 1);
        check_num(rc, >=, 0);
        ran += rc;
    }
    check_num(ran, ==, 2);
    check_num(waitpid(forked, &status, 0), ==, forked);
    check_num(status, ==, 0);
    zkl_owner_use(owner);
    for (int i = 0; i < 2; i++)
        check_ok(zkl_mutex_unlock(mutexes[i]));
    zkl_owner_use(NULL);
}
