/* SPDX-License-Identifier: Apache-2.0 */
/* Kinds of locks made of several contenders; operations. */
#include "alloc.h"

/* All of it: two mutexes and both halves of a read-write lock, the read one under the write one. */
static bool lock_several(struct fixture *s, int n, int count)
{
    static const char *const others[] = {"/alloc/second", "/alloc/third"};
    unsigned long mark = world_mark();
    struct zkl_mutex *second = world_mutex(s->client, others[0]);
    struct zkl_rwlock *rwlock = world_rwlock(s->client, others[1], NULL);
    struct zkl_multi *multi = NULL;

    struct zkl_mutex *read = zkl_rwlock_reader(rwlock), *write = zkl_rwlock_writer(rwlock);
    struct zkl_member members[] = {zkl_member_mutex(s->mutex), zkl_member_mutex(second),
                                   zkl_member_mutex(write)};
    alloc_arm(n, count);
    int rc = zkl_multi_new(&multi, s->client, members, 3);
    if (rc == 0)
        rc = zkl_multi_lock_for(multi, WAIT_MS);
    int read_rc = rc == 0 ? zkl_mutex_lock_for(read, WAIT_MS) : 0;
    int unlock_rc = rc == 0 ? zkl_multi_unlock(multi, NULL) : 0;
    bool struck = alloc_disarm_after(rc);
    check_true(read_rc == 0 || (struck && alloc_refused(read_rc)));
    check_true(unlock_rc == 0 || (struck && is_unanswered(unlock_rc)));
    if (rc == 0 && read_rc == 0)
        check_ok(zkl_mutex_unlock(read));
    check_ok(zkl_multi_free(multi));
    check_wait(fault_contenders(s->client) == 0, 3000);
    for (int i = 0; i < 2; i++)
        fault_check_rest(s->client, s->wire, others[i], 3000);
    world_clear_since(mark);
    return alloc_works(s, struck);
}

/* Each request for memory on the way is refused in turn: all or none is held, nothing is left. */
ALLOC_SCENE(no_memory_while_locking_several, lock_several)

/* --- each kind, by each of its calls ---------------------------------------------------------- */

static bool lock_a_half(struct fixture *s, int n, int count)
{
    struct zkl_rwlock *rwlock = NULL;

    alloc_arm(n, count);
    int rc = zkl_rwlock_new(&rwlock, s->client, "/alloc/halves", NULL);
    if (rc == 0)
        rc = zkl_rwlock_retain_readers(rwlock, 60000);
    int lock_rc = rc == 0 ? zkl_mutex_lock(zkl_rwlock_reader(rwlock)) : rc;
    int unlock_rc = lock_rc == 0 ? zkl_mutex_unlock(zkl_rwlock_reader(rwlock)) : 0;
    if (rc == 0)
        check_ok(zkl_rwlock_retain_readers(rwlock, 0)); /* releases what was kept */
    bool struck = alloc_disarm();
    check_true(lock_rc == 0 || (struck && alloc_refused(lock_rc)));
    check_true(unlock_rc == 0 || (struck && is_unanswered(unlock_rc)));
    check_true((rwlock != NULL) == (rc == 0));
    fault_check_rest(s->client, s->wire, "/alloc/halves", 3000);
    check_ok(zkl_rwlock_free(rwlock));
    return alloc_works(s, struck);
}

static bool set_permits(struct fixture *s, int n, int count)
{
    struct zkl_semaphore *semaphore = world_semaphore(s->client, "/alloc/number", 0, NULL);

    alloc_arm(n, count);
    int rc = zkl_semaphore_set_permits(semaphore, 1 + n % 5, NULL);
    bool struck = alloc_disarm_after(rc);
    world_drop(semaphore);
    return alloc_works(s, struck);
}

ALLOC_SCENE(no_memory_for_a_half, lock_a_half)
ALLOC_SCENE(no_memory_for_the_number_of_permits, set_permits)

/* --- operations: one is begun and ends in its callback, or none is ------------------------------- */

static bool close_by_operation(struct fixture *s, int n, int count)
{
    struct zkl_client *client = fault_open(zks_connect_string(server), SESSION_MS);
    struct completion done = {0};

    alloc_arm(n, count);
    int rc = zkl_client_close_async(client, note_completion, &done);
    if (rc == 0)
        rc = completion_code(&done);
    bool struck = alloc_disarm();
    check_true(rc == 0 || (struck && rc == ZKL_ENOMEM));
    check_ok(zkl_client_free(client));
    return alloc_works(s, struck);
}

/* An operation that closes the client needs memory to begin with, and for nothing after that. */
ALLOC_SCENE(no_memory_for_a_close_by_operation, close_by_operation)

/* The descriptor of an event loop, and running callbacks, ask for none. */
ALLOC_TEST(an_event_loop_needs_no_memory)
{
    struct zkl_client *client = fault_open(zks_connect_string(server), SESSION_MS);

    alloc_arm(1, 1000000);
    check_num(zkl_client_event_fd(client), >=, 0);
    check_num(zkl_client_dispatch(client, 1), ==, 0);
    check_num(alloc_asked_here(), ==, 0);
    alloc_disarm();
    check_ok(zkl_client_free(client));
}
