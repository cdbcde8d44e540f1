/* SPDX-License-Identifier: Apache-2.0 */
#include "alloc.h"

#include "api/client.h"

/* --- opening ---------------------------------------------------------------------------------- */

static bool open_it(struct fixture *s, int n, int count)
{
    struct zkl_client_options options =
        fault_client_options(zks_connect_string(server), SESSION_MS);
    struct zkl_client *client = NULL;

    options.owner = "somebody";
    options.auth_scheme = "digest";
    options.auth_credential = "user:password";
    options.connect_timeout_ms = 1000;
    int threads = fault_threads();
    alloc_arm(n, count);
    int rc = zkl_client_open(&client, &options);
    bool struck = alloc_disarm();
    check_true(rc == 0 || alloc_refused(rc) || (struck && rc == ZKL_EDISCONNECTED));
    check_true((client != NULL) == (rc == 0));
    if (client != NULL) {
        struct zkl_mutex *mutex = fault_mutex(client, alloc_path);
        alloc_check_works(s, client, mutex);
        check_ok(zkl_mutex_free(mutex));
        check_ok(zkl_client_free(client));
    }
    check_wait(fault_threads() <= threads, WAIT_MS);
    return struck;
}

/* Each request for memory in zkl_client_open is refused in turn: no client and no thread, or one
 * that works. */
ALLOC_SCENE(no_memory_while_opening, open_it)

/* --- locking ---------------------------------------------------------------------------------- */

/* By hand with a callback, so that there is a watch too. */
static bool lock_and_unlock(struct fixture *s, int n, int count)
{
    alloc_arm(n, count);
    int rc = zkl_mutex_lock_for(s->mutex, WAIT_MS);
    int unlock_rc = rc == 0 ? zkl_mutex_unlock(s->mutex) : 0;
    bool struck = alloc_disarm_after(rc);
    check_true(unlock_rc == 0 || (struck && is_unanswered(unlock_rc)));
    return alloc_works(s, struck);
}

/* Each request for memory in lock and unlock, on the calling thread or behind it, is refused in
 * turn: the lock fails with ENOMEM or is held, the unlock is done or goes on in the background. */
ALLOC_TEST(no_memory_while_locking_with_a_callback)
{
    check_ok(zkl_mutex_set_callback(s->mutex, told_fn, &s->told));
    alloc_play(s, lock_and_unlock);
    check_num(s->told.lost, ==, 0);
}

/* By a handle that keeps what nobody else wants: twice, so that it is taken again if it was kept. */
static bool keep_and_take(struct fixture *s, int n, int count)
{
    struct zkl_mutex_options options = ZKL_MUTEX_OPTIONS_INIT;
    int codes[4];

    options.local_handoffs_max = 1;
    options.retain_ms = QUIET_MS;
    struct zkl_mutex *mutex = world_mutex_with(s->client, alloc_path, &options);
    alloc_arm(n, count);
    for (int i = 0; i < 4; i += 2) {
        codes[i] = zkl_mutex_lock_for(mutex, WAIT_MS);
        codes[i + 1] = codes[i] == 0 ? zkl_mutex_unlock(mutex) : 0;
    }
    bool struck = alloc_disarm();
    for (int i = 0; i < 4; i++)
        check_true(codes[i] == 0 ||
                   (struck && (i % 2 ? is_unanswered(codes[i]) : alloc_refused(codes[i]))));
    world_drop(mutex);
    return alloc_works(s, struck);
}

/* A watch that can't be had leaves nothing that others would wait for. */
ALLOC_SCENE(no_memory_while_keeping, keep_and_take)

/* The path is not there yet. */
static bool lock_a_new_path(struct fixture *s, int n, int count)
{
    check_ok(wire_delete_tree(s->wire, "/alloc"));
    return lock_and_unlock(s, n, count);
}

ALLOC_SCENE(no_memory_while_making_the_path, lock_a_new_path)

/* --- waiting ---------------------------------------------------------------------------------- */

static bool try_in_vain(struct fixture *s, int n, int count)
{
    alloc_stand_before(s);
    alloc_arm(n, count);
    int rc = zkl_mutex_trylock(s->mutex);
    bool struck = alloc_disarm();
    check_true(rc == ZKL_EBUSY || (struck && alloc_refused(rc)));
    alloc_step_aside(s);
    return alloc_works(s, struck);
}

ALLOC_SCENE(no_memory_while_trying_in_vain, try_in_vain)

static bool wait_and_be_granted(struct fixture *s, int n, int count)
{
    alloc_stand_before(s);
    alloc_arm(n, count);
    act_begin(s->actor, act_lock, s->mutex, NULL);
    check_wait(!act_busy(s->actor) || alloc_in_queue(s->client), WAIT_MS);
    alloc_step_aside(s);
    int rc = act_end(s->actor, WAIT_MS);
    bool struck = alloc_disarm_after(rc);
    if (rc == 0)
        check_ok(act_do(s->actor, act_unlock, s->mutex, NULL));
    return alloc_works(s, struck);
}

/* The wait behind somebody else, whose unlock wakes it, is short of memory. */
ALLOC_SCENE(no_memory_while_waiting, wait_and_be_granted)

static bool wait_and_give_up(struct fixture *s, int n, int count)
{
    struct zkl_cancel *cancel = NULL;

    alloc_stand_before(s);
    alloc_arm(n, count);
    int rc = zkl_cancel_new(&cancel);
    check_true(rc == 0 || (n == 1 && rc == ZKL_ENOMEM));
    act_begin(s->actor, act_lock_cancel, s->mutex, cancel);
    check_wait(!act_busy(s->actor) || alloc_in_queue(s->client), WAIT_MS);
    if (cancel == NULL)
        alloc_step_aside(s);
    zkl_cancel_set(cancel);
    int wait_rc = act_end(s->actor, WAIT_MS);
    bool struck = alloc_disarm();
    check_true(wait_rc == (cancel ? ZKL_ECANCELED : 0) || (struck && alloc_refused(wait_rc)));
    if (wait_rc == 0)
        check_ok(act_do(s->actor, act_unlock, s->mutex, NULL));
    if (cancel != NULL)
        alloc_step_aside(s);
    zkl_cancel_free(cancel);
    return alloc_works(s, struck);
}

/* A wait is cancelled, and the janitor that clears up after it is short of memory. */
ALLOC_SCENE(no_memory_while_giving_up, wait_and_give_up)

/* --- closing ---------------------------------------------------------------------------------- */

static bool close_it(struct fixture *s, int n, int count)
{
    struct zkl_client *client = fault_open(zks_connect_string(server), SESSION_MS);
    struct zkl_mutex *mutex = fault_mutex(client, alloc_path);

    alloc_stand_before(s);
    alloc_arm(n, count);
    act_begin(s->actor, act_lock, mutex, NULL);
    check_wait(!act_busy(s->actor) || alloc_in_queue(client), WAIT_MS);
    int close_rc = zkl_client_close(client, WAIT_MS);
    int rc = act_end(s->actor, WAIT_MS);
    bool struck = alloc_disarm();
    check_num(close_rc, ==, 0);
    check_true(rc == ZKL_ECLOSED || (struck && alloc_refused(rc)));
    check_ok(zkl_mutex_free(mutex));
    check_ok(zkl_client_free(client));
    alloc_step_aside(s);
    return alloc_works(s, struck);
}

/* The client is closed while somebody waits: closing needs no memory. */
ALLOC_SCENE(no_memory_while_closing, close_it)

static bool expire_it(struct fixture *s, int n, int count)
{
    int64_t session = fault_session(s->client);
    fault_expire(s->client, 0);
    alloc_arm(n, count);
    int rc = zkl_mutex_lock_for(s->mutex, WAIT_MS);
    bool struck = alloc_disarm();
    check_true(rc == 0 || (struck && (alloc_refused(rc) || rc == ZKL_ETIMEDOUT)));
    if (rc == 0)
        rc = zkl_mutex_unlock(s->mutex);
    check_wait(fault_session(s->client) != session && fault_session(s->client) != 0, WAIT_MS);
    return alloc_works(s, struck);
}

/* The session has ended, and memory is short while the next one is made. */
ALLOC_TEST(no_memory_for_the_next_session)
{
    for (int count = 1; count <= 3; count += 2) {
        int n = 1;
        while (n < N_MAX && expire_it(s, n, count))
            n++;
        print_message("    %d at a time: %d places\n", count, n - 1);
        check_num(n, >, 2); /* the hold has the room of the last one */
        check_num(n, <, N_MAX);
    }
}

static bool free_it(struct fixture *s, int n, int count)
{
    int threads = fault_threads();
    struct zkl_client *client = fault_open(zks_connect_string(server), SESSION_MS);
    struct zkl_mutex *mutex = fault_mutex(client, alloc_path);

    check_ok(zkl_mutex_lock(mutex));
    alloc_arm(n, count);
    check_ok(zkl_client_free(client));
    bool struck = alloc_disarm();
    check_num(zkl_mutex_unlock(mutex), ==, ZKL_ELOST);
    check_ok(zkl_mutex_free(mutex));
    check_wait(fault_threads() <= threads, WAIT_MS);
    return alloc_works(s, struck);
}

/* A client is given up that holds: likewise. */
ALLOC_TEST(no_memory_while_freeing)
{
    for (int n = 1; free_it(s, n, 1000); n++)
        check_num(n, <, N_MAX);
}
