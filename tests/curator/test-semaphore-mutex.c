/* SPDX-License-Identifier: Apache-2.0 */
/* TestInterProcessSemaphoreMutex. */
#include "base.h"
#include "leases.h"

static void *make(struct zkl_client *client, const char *path)
{
    struct zkl_mutex *mutex = NULL;

    if (zkl_semaphore_mutex_new(&mutex, client, path, NULL) != 0)
        fail_msg("%s", zkl_error_detail());
    return mutex;
}

const struct lock_kind lock_kind = {
    .name = "semaphore-mutex",
    .make = make,
    .unmake = base_unmake_mutex,
    .lock_for = base_lock_mutex_for,
    .unlock = do_unlock,
    .held = base_mutex_held,
    .contenders = leases,
};

/* Goal: this one is not reentrant (Curator leaves its tests of re-entry out here): a second lock
 * waits, in the same thread too, and any thread may unlock. */
CLUSTER_TEST(a_second_lock_waits_in_the_same_thread)
{
    struct zkl_client *client = cluster_client();
    const char *path = cluster_path("second");
    struct zkl_mutex *mutex = make(client, path);
    struct actor *actor = actor_new();

    check_ok(zkl_mutex_lock(mutex));
    check_num(zkl_mutex_lock_for(mutex, 200), ==, ZKL_ETIMEDOUT);
    check_wait(leases(path) == 1, WAIT_MS);
    check_ok(actor_do(actor, do_unlock, mutex));
    check_num(zkl_mutex_still_held(mutex, 0), ==, 0);
    check_ok(zkl_mutex_lock_for(mutex, WAIT_MS));
    check_ok(zkl_mutex_unlock(mutex));
    actor_end(actor);
    cluster_free(client, mutex);
}

BASE_TESTS
BASE_TEST(a_scope_holds_to_its_end)
