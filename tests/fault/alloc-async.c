/* SPDX-License-Identifier: Apache-2.0 */
/* Operations: one is begun and ends in its callback, or none is. */
#include "alloc.h"

/* rc is what the start said; what the operation came to. */
static int ended(struct completion *done, int rc)
{
    if (rc == 0)
        rc = completion_code(done);
    return rc;
}

/* Where it is refused nothing has changed: it is done all the same, once there is memory again. */
static void unlock(struct zkl_owner *owner, struct zkl_mutex *mutex)
{
    struct completion done = {0};
    int rc, tries = 0;

    while ((rc = zkl_mutex_unlock_async(owner, mutex, note_completion, &done)) == ZKL_ENOMEM)
        check_num(++tries, <, 2000); /* 1000 are refused in a row at most */
    rc = ended(&done, rc);
    check_true(rc == 0 || is_unanswered(rc)); /* the delete could not be sent */
}

static bool hold_once(struct fixture *s, int n, int count)
{
    struct zkl_owner *owner = NULL;
    struct zkl_wait over = ZKL_WAIT_INIT;
    struct completion done = {0}, known = {0};
    uint64_t op = 0;

    over.deadline_ns = 1;
    alloc_arm(n, count);
    int rc = zkl_owner_new(&owner);
    if (rc == 0) {
        int known_rc = ended(&known, zkl_mutex_acquire_async(owner, s->mutex, &over, NULL,
                                                             note_completion, &known, NULL));
        check_true(known_rc == ZKL_ETIMEDOUT || known_rc == ZKL_ENOMEM);
        rc = ended(&done, zkl_mutex_acquire_async(owner, s->mutex, NULL, NULL, note_completion,
                                                  &done, &op));
        check_ok(zkl_op_cancel(s->client, op));
        zkl_owner_use(NULL);
    }
    if (rc == 0)
        unlock(owner, s->mutex);
    check_ok(zkl_owner_free(owner));
    bool struck = alloc_disarm();
    check_true(rc == 0 || (struck && alloc_refused(rc)));
    alloc_check_works(s, s->client, s->mutex);
    return struck;
}

/* Each request for memory of an operation is refused in turn, from its owner to its unlock. */
static void no_memory_for_an_operation(void **state)
{
    alloc_play(*state, hold_once);
}

static bool close_it(struct fixture *s, int n, int count)
{
    struct zkl_client *client = fault_open(zks_connect_string(server), SESSION_MS);
    struct completion done = {0};

    alloc_arm(n, count);
    int rc = ended(&done, zkl_client_close_async(client, note_completion, &done));
    bool struck = alloc_disarm();
    check_true(rc == 0 || (struck && rc == ZKL_ENOMEM));
    check_ok(zkl_client_free(client));
    alloc_check_works(s, s->client, s->mutex);
    return struck;
}

/* An operation that closes the client needs memory to begin with, and for nothing after that. */
static void no_memory_for_a_close_by_operation(void **state)
{
    alloc_play(*state, close_it);
}

static struct zkl_semaphore *semaphore;

static bool take_permits(struct fixture *s, int n, int count)
{
    struct zkl_permit *permits[2];
    struct completion done = {0};

    alloc_arm(n, count);
    int rc = ended(&done, zkl_semaphore_acquire_async(semaphore, 2, NULL, permits, note_completion,
                                                      &done, NULL));
    int released = 0;
    if (rc == 0)
        released = ended(&done, zkl_permit_release_async(permits[0], note_completion, &done));
    bool struck = alloc_disarm();
    check_true(rc == 0 || (struck && alloc_refused(rc)));
    check_true(released == 0 || released == ZKL_ENOMEM || is_unanswered(released));
    if (released == ZKL_ENOMEM)
        check_ok(zkl_permit_release(permits[0]));
    if (rc == 0)
        check_ok(zkl_permit_release(permits[1]));
    alloc_check_works(s, s->client, s->mutex);
    return struck;
}

static void no_memory_for_permits_of_an_operation(void **state)
{
    struct fixture *s = *state;

    check_ok(zkl_semaphore_new(&semaphore, s->client, "/alloc/permits", 2, NULL));
    alloc_play(s, take_permits);
    check_ok(zkl_semaphore_free(semaphore));
}

static struct zkl_multi *multi;

/* ZKL_EUNCONFIRMED: the delete could not be sent. */
static void check_freed(int rc)
{
    check_true(rc == 0 || rc == ZKL_ENOMEM || rc == ZKL_ESYSTEM || is_unanswered(rc));
}

static bool hold_both(struct fixture *s, int n, int count)
{
    struct zkl_owner *owner = NULL;
    struct completion done = {0};

    check_ok(zkl_owner_new(&owner));
    alloc_arm(n, count);
    int rc = ended(&done,
                   zkl_multi_acquire_async(owner, multi, NULL, NULL, note_completion, &done, NULL));
    int started = rc;
    if (rc == 0) {
        started = zkl_multi_unlock_async(owner, multi, NULL, note_completion, &done);
        check_freed(ended(&done, started));
    }
    bool struck = alloc_disarm();
    check_true(rc == 0 || (struck && alloc_refused(rc)));
    if (rc == 0 && started != 0)
        check_ok(ended(&done, zkl_multi_unlock_async(owner, multi, NULL, note_completion, &done)));
    check_ok(zkl_owner_free(owner));
    alloc_check_works(s, s->client, s->mutex);
    return struck;
}

static void no_memory_for_a_multi_lock_of_an_operation(void **state)
{
    struct fixture *s = *state;
    struct zkl_mutex *other = fault_mutex(s->client, "/alloc/other");
    struct zkl_member members[] = {zkl_member_mutex(s->mutex), zkl_member_mutex(other)};

    check_ok(zkl_multi_new(&multi, s->client, members, 2));
    alloc_play(s, hold_both);
    check_ok(zkl_multi_free(multi));
    check_ok(zkl_mutex_free(other));
}

/* The descriptor of an event loop, and running callbacks, ask for none. */
static void an_event_loop_needs_no_memory(void **state)
{
    struct zkl_client *client = fault_open(zks_connect_string(server), SESSION_MS);

    (void)state;
    alloc_arm(1, 1000000);
    check_num(zkl_client_event_fd(client), >=, 0);
    check_num(zkl_client_dispatch(client, 1), ==, 0);
    check_num(alloc_asked_here(), ==, 0);
    alloc_disarm();
    check_ok(zkl_client_free(client));
}

const struct CMUnitTest alloc_async_tests[] = {
    ALLOC_TEST(no_memory_for_an_operation),
    ALLOC_TEST(no_memory_for_a_close_by_operation),
    ALLOC_TEST(no_memory_for_permits_of_an_operation),
    ALLOC_TEST(no_memory_for_a_multi_lock_of_an_operation),
    ALLOC_TEST(an_event_loop_needs_no_memory),
};
const size_t alloc_async_count = sizeof alloc_async_tests / sizeof alloc_async_tests[0];
