/* SPDX-License-Identifier: Apache-2.0 */
/* Owners in moments that do not come by waiting for them: a library thread is stopped with an owner's
 * own lock taken, or just before an operation's hold comes. */
#include "fault.h"

#include "api/owner.h"
#include "sanitizer.h"

__typeof__(zkl_owner_came) __real_zkl_owner_came, __wrap_zkl_owner_came;
__typeof__(pthread_mutex_lock) __real_pthread_mutex_lock, __wrap_pthread_mutex_lock;

static _Thread_local bool is_coming;
static atomic_int stall;
/* A hold that comes while this thread asks: at its second lock of any mutex. */
enum { CLOSED = 1, REACHED, OPEN, PASSED };
static atomic_int gate;
static _Thread_local int locks = -1;

void __wrap_zkl_owner_came(struct zkl_hold *hold, struct zkl_place *place)
{
    int closed = CLOSED, open = OPEN;
    if (atomic_compare_exchange_strong(&gate, &closed, REACHED))
        wait_until(gate == OPEN, WAIT_MS);
    is_coming = true;
    __real_zkl_owner_came(hold, place);
    is_coming = false;
    atomic_compare_exchange_strong(&gate, &open, PASSED);
}

int __wrap_pthread_mutex_lock(pthread_mutex_t *mutex)
{
    if (locks >= 0 && locks++ == 1) {
        gate = OPEN;
        wait_until(gate == PASSED, WAIT_MS);
    }
    int rc = __real_pthread_mutex_lock(mutex);

    if (is_coming)
        fault_stall(&stall);
    return rc;
}

/* As itself: what the parent's owner holds is none of its business. */
static int lock_own(const char *servers)
{
    struct zkl_client_options options = fault_client_options(servers, 30000);
    struct zkl_client *client = NULL;
    struct zkl_mutex *mutex = NULL;

    if (zkl_client_open(&client, &options) != 0 ||
        zkl_mutex_new(&mutex, client, "/owners-child", NULL) != 0)
        return 1;
    if (zkl_mutex_hold_count(mutex) != 0 || zkl_mutex_lock(mutex) != 0 ||
        zkl_mutex_hold_count(mutex) != 1 || zkl_mutex_unlock(mutex) != 0)
        return 2;
    if (zkl_owner_use(NULL) != NULL) /* it uses none */
        return 3;
    return zkl_mutex_free(mutex) != 0 || zkl_client_free(client) != 0 ? 4 : 0;
}

/* Whatever was going on with that owner: an operation of it ends on a library thread, which is
 * stopped with the owner's lock. Modes: F53. */
WORLD_TEST(a_child_of_a_thread_that_uses_an_owner_uses_none)
{
    const char *servers = zks_connect_string(server);
    struct zkl_client *client = world_open(servers, 30000);
    struct zkl_mutex *mutex = world_mutex(client, "/owners");
    struct zkl_owner *owner = world_owner();
    struct completion done = {0};
    int status = 0;

    if (UNDER_TSAN) {
        print_message("skipped: the thread sanitizer can't have threads in a forked child\n");
        skip();
    }
    check_true(zkl_owner_use(owner) == NULL);
    stall = ARMED;
    check_ok(zkl_mutex_acquire_async(owner, mutex, NULL, NULL, note_completion, &done, NULL));
    check_wait(stall == STALLED, WAIT_MS);
    pid_t pid = fork();
    if (pid == 0) {
        alarm(300);
        _exit(lock_own(servers));
    }
    check_num(pid, >, 0);
    check_num(waitpid(pid, &status, 0), ==, pid);
    stall = OFF;
    check_ok(completion_code(&done));
    check_ok(zkl_mutex_unlock(mutex));
    check_true(zkl_owner_use(NULL) == owner);
    check_num(status, ==, 0);
}

/* As to come or as there: the owner never queues behind itself. */
WORLD_TEST(an_owner_sees_what_comes_while_it_looks)
{
    struct zkl_client *client = world_direct(30000);
    struct zkl_mutex *mutex = world_mutex(client, "/owners-look");
    struct zkl_owner *owner = world_owner();
    struct completion done = {0}, second = {0};

    gate = CLOSED;
    check_ok(zkl_mutex_acquire_async(owner, mutex, NULL, NULL, note_completion, &done, NULL));
    check_wait(gate == REACHED, WAIT_MS);
    locks = 0;
    check_num(zkl_mutex_acquire_async(owner, mutex, NULL, NULL, note_completion, &second, NULL), ==,
              ZKL_EDEADLK);
    locks = -1;
    check_ok(completion_code(&done));
    zkl_owner_use(owner);
    check_num(zkl_mutex_hold_count(mutex), ==, 1);
    check_ok(zkl_mutex_unlock(mutex));
    zkl_owner_use(NULL);
}
