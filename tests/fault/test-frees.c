/* SPDX-License-Identifier: Apache-2.0 */
/* Handles that are freed at the first moment at which that does not return ZKL_EBUSY, while a thread is still on
 * its way out of a call on them. */
#include "fault.h"

#include "api/client.h"

enum { OFF, ARMED, FREED };

static int free_multi(void *multi)
{
    return zkl_multi_free(multi);
}

/* The call that the test watches: its thread tries to free the handle between its own steps. */
static struct {
    atomic_int state;
    struct zkl_client *client;
    void *handle;
    int (*free)(void *handle);
} watched;

static _Thread_local bool is_watched;

static void try_to_free(void)
{
    if (!is_watched || watched.state != ARMED)
        return;
    is_watched = false; /* freeing takes the same steps */
    if (watched.free(watched.handle) == 0) {
        watched.state = FREED;
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
    zkl_driver_lock(client->driver);
    bool waits = client->waiting != NULL;
    zkl_driver_unlock(client->driver);
    return waits;
}

/* --- a multi-lock: its use is the last thing that a call drops ---------------------------------- */

void __real_free(void *p);
void __wrap_free(void *p);

void __wrap_free(void *p)
{
    if (watched.free == free_multi)
        try_to_free();
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

/* A call that failed frees what it had while its multi-lock is in use still: it looks there for how much that is. */
static void a_multi_lock_is_in_use_while_a_failed_call_clears_up(void **state)
{
    struct zkl_client *client = fault_open(zks_connect_string(server), 30000);
    struct zkl_client *other = fault_open(zks_connect_string(server), 30000);
    struct zkl_mutex *a = fault_mutex(client, "/frees/m/a"), *b = fault_mutex(client, "/frees/m/b");
    struct zkl_mutex *rival = fault_mutex(other, "/frees/m/a");
    struct zkl_member members[] = {zkl_member_mutex(a), zkl_member_mutex(b)};
    struct zkl_multi *multi = NULL;
    struct zkl_cancel *cancel = NULL;
    struct actor *actor = actor_new();

    (void)state;
    check_ok(zkl_multi_new(&multi, client, members, 2));
    check_ok(zkl_cancel_new(&cancel));
    watch(client, multi, free_multi);
    check_ok(zkl_mutex_lock(rival));
    actor_begin(actor, lock_multi, NULL, cancel);
    check_wait(waits(client), WAIT_MS);
    watched.state = ARMED;
    zkl_cancel_set(cancel);
    check_wait(watched.state == FREED || !actor_busy(actor), WAIT_MS);
    check_num(watched.state, ==, ARMED);
    check_num(actor_end(actor, WAIT_MS), ==, ZKL_ECANCELED);
    watched.state = OFF;

    actor_free(actor);
    zkl_cancel_free(cancel);
    check_ok(zkl_multi_free(multi));
    check_ok(zkl_mutex_unlock(rival));
    check_ok(zkl_mutex_free(rival));
    check_ok(zkl_mutex_free(a));
    check_ok(zkl_mutex_free(b));
    check_ok(zkl_client_free(client));
    check_ok(zkl_client_free(other));
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_multi_lock_is_in_use_while_a_failed_call_clears_up),
    };
    return fault_main(argc, argv, tests, NULL);
}
