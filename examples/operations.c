/* SPDX-License-Identifier: Apache-2.0 */
/* Asking about locks without waiting: each step is begun in the callback of the one before. A multi-lock is
 * taken, looked at and asked for; nobody lets go, so one of its nodes is deleted. Then the client is closed. */
#include <zklock/async.h>

#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>

static struct zkl_client *client;
static struct zkl_owner *owner;
static struct zkl_multi *multi;
static struct zkl_semaphore *semaphore;
static const struct zkl_inspection *seen;
static int result = 1;
static sem_t all_done;

static void next(int code, void *step);

static int begin(intptr_t step)
{
    struct zkl_wait second = ZKL_WAIT_INIT;
    second.deadline_ns = zkl_now_ns() + INT64_C(1000000000);
    void *arg = (void *)step;
    switch (step) {
    case 0:
        return zkl_semaphore_set_permits_async(semaphore, 3, NULL, next, arg, NULL);
    case 1:
        return zkl_multi_acquire_async(owner, multi, NULL, NULL, next, arg, NULL);
    case 2:
        return zkl_inspect_async(client, "/zklock/examples/operations/a", 5000, &seen, next, arg);
    case 3:
        return zkl_revoke_async(client, seen->entries[0].node_path, &second, 0, next, arg, NULL);
    case 4:
        return zkl_break_async(client, seen->entries[0].node_path, seen->entries[0].czxid, 0, 5000,
                               next, arg);
    case 5:
        return zkl_multi_unlock_async(owner, multi, NULL, next, arg);
    default:
        return zkl_client_close_async(client, next, arg);
    }
}

/* What each step is to come to. */
static const int expected[] = {0, 0, 0, ZKL_ETIMEDOUT, 0, ZKL_ELOST, 0};

static void next(int code, void *arg)
{
    intptr_t step = (intptr_t)arg;
    printf("step %d: %s\n", (int)step, zkl_strerror(code));
    int fine = code == expected[step];
    if (fine && step < 6 && begin(step + 1) == 0)
        return;
    result = !fine || step < 6;
    sem_post(&all_done);
}

int main(int argc, char **argv)
{
    struct zkl_client_options options = ZKL_CLIENT_OPTIONS_INIT;
    struct zkl_mutex *a, *b;
    options.servers = argc > 1 ? argv[1] : getenv("ZKL_SERVERS");
    if (zkl_client_open(&client, &options) || zkl_owner_new(&owner) ||
        zkl_mutex_new(&a, client, "/zklock/examples/operations/a", NULL) ||
        zkl_mutex_new(&b, client, "/zklock/examples/operations/b", NULL) ||
        zkl_semaphore_new(&semaphore, client, "/zklock/examples/operations/s", 0, NULL))
        return 1;
    struct zkl_member members[] = {zkl_member_mutex(a), zkl_member_mutex(b),
                                   zkl_member_semaphore(semaphore, 2)};
    if (zkl_multi_new(&multi, client, members, 3) || sem_init(&all_done, 0, 0) || begin(0) != 0)
        return 1;
    sem_wait(&all_done); /* what else the program has to do */
    zkl_inspection_free(seen);
    return result || zkl_multi_free(multi) || zkl_semaphore_free(semaphore) || zkl_mutex_free(a) ||
           zkl_mutex_free(b) || zkl_owner_free(owner) || zkl_client_free(client);
}
