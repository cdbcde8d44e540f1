/* SPDX-License-Identifier: Apache-2.0 */
/* Handles that are freed at the first moment at which that does not return ZKL_EBUSY, while a thread is still on
 * its way out of a call on them. */
#include "fault.h"

#include <malloc.h>

static int free_multi(void *multi)
{
    return zkl_multi_free(multi);
}

/* The call that the test watches: its thread tries to free the handle between its own steps. */
static struct {
    atomic_int state;
    struct zkl_client *client;
    void *handle;
    int (*_Atomic free)(void *handle); /* the library's threads look which it is */
    uint64_t canceled;                 /* that the client had counted when the handle was freed */
} watched;

static _Thread_local bool is_watched, is_freeing;

static uint64_t canceled(struct zkl_client *client)
{
    return locked(client->driver, client->counts.failures[-ZKL_ECANCELED]);
}

static void try_to_free(void)
{
    if (!is_watched || watched.state != ARMED)
        return;
    is_watched = false; /* freeing takes the same steps */
    is_freeing = true;
    int rc = watched.free(watched.handle);
    is_freeing = false;
    if (rc == 0) {
        watched.canceled = canceled(watched.client);
        watched.state = STALLED;
        wait_until(watched.state == OFF, WAIT_MS);
    }
    is_watched = true;
}

static void watch(struct zkl_client *client, void *handle, int (*free)(void *))
{
    watched.client = client;
    watched.handle = handle;
    watched.free = free;
    watched.state = OFF;
}

static bool waits(struct zkl_client *client)
{
    return locked(client->driver, client->waiting != NULL);
}

/* --- a lock: what a failed call counts and says ------------------------------------------------- */

__typeof__(zkl_driver_unlock) __real_zkl_driver_unlock, __wrap_zkl_driver_unlock;

/* Whatever is in use is so by a count that needs the mutex: this is the first moment without it. */
void __wrap_zkl_driver_unlock(struct zkl_driver *d)
{
    __real_zkl_driver_unlock(d);
    if (watched.free != free_multi)
        try_to_free();
}

static int free_mutex(void *mutex)
{
    return zkl_mutex_free(mutex);
}

static int free_semaphore(void *semaphore)
{
    return zkl_semaphore_free(semaphore);
}

struct failing {
    struct zkl_cancel *cancel;
    char detail[512];
};

static int fail_watched(struct zkl_mutex *mutex, void *arg)
{
    struct failing *failing = arg;
    struct zkl_wait wait = ZKL_WAIT_INIT;
    struct zkl_permit *permit;

    wait.cancel = failing->cancel;
    is_watched = true;
    int rc = mutex ? zkl_mutex_acquire(mutex, &wait, NULL)
                   : zkl_semaphore_acquire(watched.handle, 1, &wait, &permit);
    is_watched = false;
    snprintf(failing->detail, sizeof failing->detail, "%s", zkl_error_detail());
    return rc;
}

/* The watched handle, whose mutex this is (NULL: a semaphore), waits for what another client has, and is canceled. */
static void check_free_of_a_canceled(struct zkl_client *client, struct zkl_mutex *mutex,
                                     const char *path)
{
    struct failing failing = {.cancel = world_cancel()};
    struct actor *actor = world_actor();

    act_begin(actor, fail_watched, mutex, &failing);
    check_wait(waits(client), WAIT_MS);
    watched.state = ARMED;
    zkl_cancel_set(failing.cancel);
    check_wait(watched.state == STALLED, WAIT_MS);
    check_num(watched.canceled, ==, 1);
    watched.state = OFF;
    check_num(act_end(actor, WAIT_MS), ==, ZKL_ECANCELED);
    check_true(strstr(failing.detail, path) != NULL);
    check_num(canceled(client), ==, 1);
}

/* On the thread that runs callbacks. */
static void watch_thread(int rc, void *arg)
{
    is_watched = true;
    *(atomic_int *)arg = rc == 0 ? 1 : -1;
}

static void end_watch(int rc, void *arg)
{
    is_watched = false;
    *(atomic_int *)arg = rc;
}

/* The owner finds its holds by their mutexes. Seen red: use of the freed mutex, where the hold left it last. */
WORLD_TEST(a_failed_operation_is_out_of_its_owner_before_its_mutex_may_be_freed)
{
    static const char path[] = "/frees/op";
    struct zkl_client *client = world_direct(30000);
    struct zkl_client *other = world_direct(30000);
    struct zkl_mutex *rival = world_mutex(other, path), *mutex = fault_mutex(client, path);
    struct zkl_mutex *free_one = world_mutex(client, "/frees/free");
    struct zkl_owner *owner = world_owner();
    atomic_int watching = 0, ended = 0;
    uint64_t op;

    check_ok(zkl_mutex_lock(rival));
    check_ok(zkl_mutex_acquire_async(owner, free_one, NULL, NULL, watch_thread, &watching, NULL));
    check_wait(watching != 0, WAIT_MS);
    check_num(watching, ==, 1);
    watch(client, mutex, free_mutex);
    check_ok(zkl_mutex_acquire_async(owner, mutex, NULL, NULL, end_watch, &ended, &op));
    check_wait(waits(client), WAIT_MS);
    watched.state = ARMED;
    check_ok(zkl_op_cancel(client, op));
    check_wait(watched.state == STALLED, WAIT_MS);
    check_num(watched.canceled, ==, 1);
    watched.state = OFF;
    check_wait(ended != 0, WAIT_MS);
    check_num(ended, ==, ZKL_ECANCELED);

    struct zkl_owner *before = zkl_owner_use(owner);
    check_ok(zkl_mutex_unlock(free_one));
    zkl_owner_use(before);
    check_ok(zkl_mutex_unlock(rival));
}

/* What the call does then is not about its handle. */
WORLD_TEST(a_failed_call_is_counted_before_its_handle_may_be_freed)
{
    enum { MUTEX, SEMAPHORE, SEMAPHORES_MUTEX, KINDS };
    static const char path[] = "/frees/each";

    for (int kind = MUTEX; kind < KINDS; kind++) {
        struct zkl_client *client = world_direct(30000);
        struct zkl_client *other = world_direct(30000);
        struct zkl_semaphore *semaphore = NULL;
        struct zkl_mutex *mutex = NULL, *rival = NULL;

        if (kind == MUTEX)
            check_ok(zkl_mutex_new(&mutex, client, path, NULL));
        else if (kind == SEMAPHORES_MUTEX)
            check_ok(zkl_semaphore_mutex_new(&mutex, client, path, NULL));
        else
            check_ok(zkl_semaphore_new(&semaphore, client, path, 1, NULL));
        rival = kind == MUTEX ? world_mutex(other, path) : world_semaphore_mutex(other, path);
        check_ok(zkl_mutex_lock(rival));
        watch(client, mutex ? (void *)mutex : semaphore, mutex ? free_mutex : free_semaphore);
        check_free_of_a_canceled(client, mutex, path);
        check_ok(zkl_mutex_unlock(rival));
        world_clear();
    }
}

/* --- the number of permits ---------------------------------------------------------------------- */

static int set_watched(struct zkl_mutex *unused, void *semaphore)
{
    (void)unused;
    is_watched = true;
    int rc = zkl_semaphore_set_permits(semaphore, 3, NULL);
    is_watched = false;
    return rc;
}

WORLD_TEST(a_semaphore_is_in_use_while_its_permits_are_set)
{
    struct proxy *proxy = world_proxy();
    struct zkl_client *client = world_through(proxy, 30000);
    struct zkl_semaphore *semaphore = NULL;
    struct actor *actor = world_actor();

    check_ok(zkl_semaphore_new(&semaphore, client, "/frees/set", 0, NULL));
    watch(client, semaphore, free_semaphore);
    check_ok(proxy_hold_request(proxy, PROXY_SET, 1));
    act_begin(actor, set_watched, NULL, semaphore);
    check_ok(proxy_wait_held(proxy, WAIT_MS));
    check_num(zkl_semaphore_free(semaphore), ==, ZKL_EBUSY);
    watched.state = ARMED;
    proxy_release(proxy);
    check_wait(watched.state == STALLED, WAIT_MS);
    watched.state = OFF;
    check_ok(act_end(actor, WAIT_MS));
}

/* --- a multi-lock: its use is the last thing that a call drops ---------------------------------- */

__typeof__(free) __real_free, __wrap_free;

void __wrap_free(void *p)
{
    if (watched.free == free_multi)
        try_to_free();
    if (p && is_freeing)
        memset(p, 'x', malloc_usable_size(p)); /* what is read later is nonsense, and no path */
    __real_free(p);
}

static int lock_multi(struct zkl_mutex *unused, void *cancel)
{
    (void)unused;
    is_watched = true;
    int rc = zkl_multi_lock_until(watched.handle, ZKL_NO_DEADLINE, cancel);
    is_watched = false;
    return rc;
}

/* It looks there for how much it has to free. */
WORLD_TEST(a_multi_lock_is_in_use_while_a_failed_call_clears_up)
{
    struct zkl_client *client = world_direct(30000);
    struct zkl_client *other = world_direct(30000);
    struct zkl_mutex *a = world_mutex(client, "/frees/m/a"), *b = world_mutex(client, "/frees/m/b");
    struct zkl_mutex *rival = world_mutex(other, "/frees/m/a");
    struct zkl_member members[] = {zkl_member_mutex(a), zkl_member_mutex(b)};
    struct zkl_multi *multi = world_multi(client, members, 2);
    struct zkl_cancel *cancel = world_cancel();
    struct actor *actor = world_actor();

    watch(client, multi, free_multi);
    check_ok(zkl_mutex_lock(rival));
    act_begin(actor, lock_multi, NULL, cancel);
    check_wait(waits(client), WAIT_MS);
    watched.state = ARMED;
    zkl_cancel_set(cancel);
    check_wait(watched.state == STALLED || !act_busy(actor), WAIT_MS);
    check_num(watched.state, ==, ARMED);
    check_num(act_end(actor, WAIT_MS), ==, ZKL_ECANCELED);
    watched.state = OFF;

    check_ok(zkl_mutex_unlock(rival));
}
