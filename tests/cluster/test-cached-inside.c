/* SPDX-License-Identifier: Apache-2.0 */
/* Readers in one node that stays (zkl_rwlock_retain_readers), from inside; cached.txt has what programs see. */
#include "inside.h"

#include "api/cached_reader.h"
#include "cached.h"
#include "completion.h"
#include "driver/clock.h"
#include "outage.h"

#include <stdatomic.h>

/* It alone has a node. */
static void keep_alone(struct user *u, const char *path)
{
    keep(u);
    check_num(cluster_children(path), ==, 1);
}

/* Goal: no reader comes in between the news and the end of the gate: that reader would never hear
 * the news. Method: the test makes that moment by hand. It gives the hold the news, and enters
 * before the core has settled. */
WORLD_TEST(nobody_comes_in_unheard)
{
    const char *path = cluster_path("unheard");
    static const struct zkl_notification news[] = {
        {.type = ZKL_NOTIFY_STATE, .state = ZKL_HOLD_SUSPECT, .reason = ZKL_REASON_LINK},
        {.type = ZKL_NOTIFY_STATE, .state = ZKL_HOLD_REVOKE_REQUESTED}};
    struct zkl_wait wait = ZKL_WAIT_INIT;
    struct user u = user_of(world_client(), path, LONG_MS);
    struct zkl_hold hold = {.mutex = u.read};

    for (int i = 0; i < 2; i++) {
        struct zkl_driver *d = u.client->driver;
        keep_alone(&u, path);
        zkl_driver_lock(d);
        zkl_place_notification(NULL, u.rwlock->cache.holder, &news[i]);
        bool entered = zkl_cached_enter(&hold, &wait);
        zkl_driver_unlock(d);
        check_true(!entered);
        check_ok(zkl_rwlock_retain_readers(u.rwlock, LONG_MS)); /* the core settles */
        check_wait(cluster_children(path) == 0, WAIT_MS);
    }
}

/* Goal: no reader comes in after the time for which the last list was good. This holds even if the
 * client could not close the gate yet, as after the process stood still. Method: the test holds the
 * client's mutex, so that the client does nothing. */
WORLD_TEST(nobody_comes_in_late)
{
    const char *path = cluster_path("late");
    struct zkl_wait wait = ZKL_WAIT_INIT;
    struct user u = user_of(world_client_of(BRIEF_MS), path, LONG_MS);
    struct zkl_hold hold = {.mutex = u.read};

    keep_alone(&u, path);
    zkl_driver_lock(u.client->driver);
    atomic_llong *until = &u.rwlock->cache.gate.until_boot;
    check_wait(atomic_load(until) <= zkl_clock_boot_ns(), WAIT_MS);
    bool is_open = atomic_load(until) != 0;
    bool entered = zkl_cached_enter(&hold, &wait);
    zkl_driver_unlock(u.client->driver);
    check_true(is_open);
    check_true(!entered);
}

/* --- operations ----------------------------------------------------------------------------------- */

struct obstacle {
    sem_t gate;
    atomic_bool is_there;
};

static void stand_in_the_way(int code, void *arg)
{
    struct obstacle *obstacle = arg;
    (void)code;
    atomic_store(&obstacle->is_there, true);
    while (sem_wait(&obstacle->gate) != 0)
        ;
}

/* Goal: an owner that is in may enter again by an operation, and leave before the callback has
 * come, in any order. Its count is right, and the callback reports what it had. Method: the
 * client's callbacks wait meanwhile. The address sanitizer sees a look at freed memory. */
WORLD_TEST(an_operation_enters_again)
{
    const char *path = cluster_path("again");
    struct user u = user_of(world_client(), path, LONG_MS);
    struct zkl_owner *owner = world_owner(), *first = world_owner();
    struct obstacle obstacle;

    check_ok(sem_init(&obstacle.gate, 0, 0));
    for (int early = 0; early <= 2; early++) {
        struct completion done = {0};
        struct zkl_grant grant = ZKL_GRANT_INIT;
        keep_alone(&u, path);
        atomic_init(&obstacle.is_there, false);
        check_ok(
            zkl_mutex_acquire_async(first, u.read, NULL, NULL, stand_in_the_way, &obstacle, NULL));
        check_wait(atomic_load(&obstacle.is_there), WAIT_MS);
        zkl_owner_use(owner);
        check_ok(zkl_mutex_lock(u.read));
        uint64_t token = zkl_mutex_token(u.read);
        check_ok(
            zkl_mutex_acquire_async(owner, u.read, NULL, &grant, note_completion, &done, NULL));
        check_num(zkl_mutex_hold_count(u.read), ==, 2);
        for (int i = 0; i < early; i++)
            check_ok(zkl_mutex_unlock(u.read));
        check_num(zkl_mutex_hold_count(u.read), ==, 2 - early);
        check_ok(
            zkl_rwlock_retain_readers(u.rwlock, LONG_MS)); /* the last unlock deletes the node */
        check_ok(sem_post(&obstacle.gate));
        check_ok(completion_code(&done));
        check_true(grant.token == token);
        check_num(grant.hold_count, ==, 2);
        for (int i = early; i < 2; i++)
            check_ok(zkl_mutex_unlock(u.read));
        check_num(zkl_mutex_unlock(u.read), ==, ZKL_ENOTOWNER);
        zkl_owner_use(NULL);
        check_ok(async_unlock(first, u.read));
        check_wait(cluster_children(path) == 0, WAIT_MS);
    }
    check_ok(sem_destroy(&obstacle.gate));
}

struct leaving {
    struct user *user;
    int rc;
    bool completed;
};

/* The last one, of a node that is closed. */
static void *leave_with_pending(void *arg)
{
    struct leaving *leaving = arg;

    leaving->rc = zkl_mutex_lock(leaving->user->read);
    if (leaving->rc == 0)
        leaving->rc = zkl_rwlock_retain_readers(leaving->user->rwlock, LONG_MS);
    if (leaving->rc != 0)
        return NULL;
    pthread_cancel(pthread_self());
    leaving->rc = zkl_mutex_unlock(leaving->user->read);
    leaving->completed = true;
    pthread_testcancel();
    return NULL;
}

/* Goal: with a cancellation pending a last unlock, which sends the node's delete, comes to its end. */
WORLD_TEST(a_cancelled_thread_leaves_to_the_end)
{
    const char *path = cluster_path("cancel");
    struct user u = user_of(world_client(), path, LONG_MS);
    struct leaving leaving = {.user = &u};
    pthread_t thread;
    void *result;

    keep_alone(&u, path);
    check_ok(pthread_create(&thread, NULL, leave_with_pending, &leaving));
    check_ok(pthread_join(thread, &result));
    if (!leaving.completed)
        fail_msg("the last unlock was cut short by a cancellation");
    check_ok(leaving.rc);
    check_true(result == PTHREAD_CANCELED);
    check_wait(cluster_children(path) == 0, WAIT_MS);
}
