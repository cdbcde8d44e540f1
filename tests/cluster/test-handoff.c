/* SPDX-License-Identifier: Apache-2.0 */
/* Local hand-off (local_handoffs_max): threads of one handle take turns on one node. */
#include "inside.h"
#include "outage.h"

#include "completion.h"
#include "notes.h"

#define MANY 1000000
#define THREADS 5

static struct zkl_mutex *shared(struct zkl_client *client, const char *path, int handoffs_max)
{
    struct zkl_mutex_options options = ZKL_MUTEX_OPTIONS_INIT;

    options.local_handoffs_max = handoffs_max;
    return world_mutex_with(client, path, &options);
}

static bool is_contended(struct zkl_mutex *mutex)
{
    zkl_driver_lock(mutex->client->driver);
    bool contended = mutex->local_queue.holder->machine.contended;
    zkl_driver_unlock(mutex->client->driver);
    return contended;
}

static void takes_of(struct take *takes, struct zkl_mutex *mutex, size_t count)
{
    for (size_t i = 0; i < count; i++)
        takes[i] = take_of(mutex);
}

static size_t count_done(struct actor **actors, size_t count)
{
    size_t done = 0;

    for (size_t i = 0; i < count; i++)
        done += actor_is_done(actors[i]);
    return done;
}

/* Start actors that wait, in this order. takes[i] has the wait of each: one with a deadline may have given up before all
 * are there. */
static void line_up(struct actor **actors, struct take *takes, struct zkl_mutex *mutex,
                    size_t count)
{
    size_t before = inside_waiting(mutex);
    for (size_t i = 0; i < count; i++) {
        actors[i] = world_actor();
        takes[i].mutex = mutex;
        takes[i].grant = (struct zkl_grant)ZKL_GRANT_INIT;
        actor_begin(actors[i], do_acquire, &takes[i]);
        check_wait(inside_waiting(mutex) + count_done(actors, i + 1) == before + i + 1, WAIT_MS);
    }
}

/* --- in turn ---------------------------------------------------------------------------------- */

/* Goal: owners that are no threads take turns with threads. Method: an owner waits behind a thread, and a
 * thread behind that. */
WORLD_TEST(owners_take_turns_with_threads)
{
    const char *path = cluster_path("owners");
    struct zkl_client *client = world_client();
    struct zkl_mutex *mutex = shared(client, path, MANY);
    struct zkl_owner *owner = world_owner();
    struct zkl_grant grant = ZKL_GRANT_INIT;
    struct completion done = {0};
    struct actor *actors[1];
    struct take takes[1] = {take_of(mutex)};

    check_ok(zkl_mutex_lock(mutex));
    uint64_t token = zkl_mutex_token(mutex);
    check_ok(zkl_mutex_acquire_async(owner, mutex, NULL, &grant, note_completion, &done, NULL));
    line_up(actors, takes, mutex, 1);
    check_ok(zkl_mutex_unlock(mutex));
    check_ok(completion_code(&done));
    check_num(grant.token, ==, token);
    check_num(grant.hold_count, ==, 1);
    check_num(cluster_children(path), ==, 1);
    check_ok(async_unlock(owner, mutex));
    check_ok(actor_result(actors[0]));
    check_num(takes[0].grant.token, ==, token);
    check_ok(actor_do(actors[0], do_unlock, mutex));
    check_ok(async_lock(owner, mutex));
    check_ok(async_unlock(owner, mutex));
}

/* --- others ----------------------------------------------------------------------------------- */

struct runner {
    struct zkl_mutex *mutex;
    atomic_int *stop;
    atomic_long *cycles;
};

static int run_until(void *arg)
{
    struct runner *r = arg;
    int rc = 0;
    while (rc == 0 && !atomic_load(r->stop)) {
        rc = zkl_mutex_lock(r->mutex);
        if (rc == 0)
            atomic_fetch_add(r->cycles, 1);
        rc = rc == 0 ? zkl_mutex_unlock(r->mutex) : rc;
    }
    return rc;
}

static uint64_t token_of(struct zkl_mutex *mutex)
{
    struct zkl_grant grant = ZKL_GRANT_INIT;
    check_ok(zkl_mutex_acquire(mutex, NULL, &grant));
    check_ok(zkl_mutex_unlock(mutex));
    return grant.token;
}

/* The threads held the mutex 500 times on one node. A caller may have to look several times: if no
 * thread waits at an unlock, that unlock deletes the node. */
static bool stays_for_long(struct zkl_mutex *mutex, const atomic_long *cycles)
{
    uint64_t token = token_of(mutex);
    long before = atomic_load(cycles);
    check_wait(atomic_load(cycles) > before + 500, WAIT_MS);
    return token_of(mutex) == token;
}

/* Goal: no contender outside starves. Without one the lock stays on one node forever. Method: some
 * threads run on one handle. While they are alone the token stays. Then another client gets the
 * lock again and again. */
WORLD_TEST(others_get_their_turn)
{
    const char *path = cluster_path("others");
    struct zkl_client *client = world_client(), *other = world_client();
    struct zkl_mutex *mutex = shared(client, path, 50), *outside = world_mutex(other, path);
    struct actor *actors[THREADS];
    atomic_int stop = 0;
    atomic_long cycles = 0;
    uint64_t token = 0;
    struct runner runner = {mutex, &stop, &cycles};

    for (int i = 0; i < THREADS; i++) {
        actors[i] = world_actor();
        actor_begin(actors[i], run_until, &runner);
    }
    check_wait(atomic_load(&cycles) > 100, WAIT_MS);
    check_wait(stays_for_long(mutex, &cycles), WAIT_MS);
    for (int i = 0; i < 10; i++) {
        check_ok(zkl_mutex_lock_for(outside, WAIT_MS));
        check_num(zkl_mutex_token(outside), >, token);
        token = zkl_mutex_token(outside);
        check_ok(zkl_mutex_unlock(outside));
    }
    atomic_store(&stop, 1);
    for (int i = 0; i < THREADS; i++) {
        check_ok(actor_result(actors[i]));
    }
}

/* Goal: when the client knows of a contender outside, the threads hand the lock on
 * local_handoffs_max times and no more. */
WORLD_TEST(it_is_handed_on_so_often_while_others_wait)
{
    const char *path = cluster_path("limit");
    struct zkl_client *client = world_client(), *other = world_client();
    struct zkl_mutex *mutex = shared(client, path, 2), *outside = world_mutex(other, path);
    struct actor *actors[THREADS], *last = world_actor();
    struct take takes[THREADS];

    takes_of(takes, mutex, THREADS);
    check_ok(zkl_mutex_lock(mutex));
    uint64_t token = zkl_mutex_token(mutex);
    actor_begin(last, do_lock, outside);
    check_wait(cluster_children(path) == 2, WAIT_MS);
    line_up(actors, takes, mutex, THREADS);
    check_ok(zkl_mutex_unlock(mutex));
    int handed = 0;
    for (; handed < THREADS && !actor_is_done(last); handed++) {
        check_wait(actor_is_done(actors[handed]) || actor_is_done(last), WAIT_MS);
        if (actor_is_done(last))
            break;
        check_ok(actor_result(actors[handed]));
        check_num(takes[handed].grant.token, ==, token);
        /* The third one asked whether others queue. */
        check_wait(handed != 2 || is_contended(mutex), WAIT_MS);
        check_ok(actor_do(actors[handed], do_unlock, mutex));
        check_wait(handed != 2 || actor_is_done(last), WAIT_MS);
    }
    check_num(handed, ==, 3); /* two, and one while that was looked into */
    check_ok(actor_result(last));
    check_ok(actor_do(last, do_unlock, outside));
    for (int i = handed; i < THREADS; i++) {
        check_ok(actor_result(actors[i]));
        check_num(takes[i].grant.token, >, token);
        check_ok(actor_do(actors[i], do_unlock, mutex));
    }
}

/* --- giving up -------------------------------------------------------------------------------- */

/* Goal: the lock passes over a waiter that gave up, and the other waiters keep their order. */
WORLD_TEST(who_gives_up_is_passed_over)
{
    const char *path = cluster_path("gives-up");
    struct zkl_client *client = world_client();
    struct zkl_mutex *mutex = shared(client, path, MANY);
    struct actor *actors[4];
    struct take takes[4];

    struct zkl_cancel *cancel = world_cancel();
    takes_of(takes, mutex, 4);
    takes[0].wait.deadline_ns = zkl_now_ns() + lag_room_ms(300) * INT64_C(1000000);
    takes[2].wait.cancel = cancel;
    check_ok(zkl_mutex_lock(mutex));
    line_up(actors, takes, mutex, 4);
    check_num(actor_result(actors[0]), ==, ZKL_ETIMEDOUT);
    zkl_cancel_set(cancel);
    check_num(actor_result(actors[2]), ==, ZKL_ECANCELED);
    check_num(inside_waiting(mutex), ==, 2);
    check_ok(zkl_mutex_unlock(mutex));
    check_ok(actor_result(actors[1]));
    check_true(!actor_is_done(actors[3]));
    check_ok(actor_do(actors[1], do_unlock, mutex));
    check_ok(actor_result(actors[3]));
    check_ok(actor_do(actors[3], do_unlock, mutex));
}

/* --- losses ----------------------------------------------------------------------------------- */

/* Goal: when the session ends, its holder hears of it. The waiters then get the lock anew, in the
 * old order, each within its own deadline. They do not wait for the thread that lost it. */
WORLD_TEST(an_expiry_keeps_the_order_of_who_waits)
{
    const char *path = cluster_path("expired");
    struct zkl_client *client = world_client_of(lag_session_ms(EXPIRING_MS));
    struct zkl_mutex *mutex = shared(client, path, MANY);
    struct actor *actors[THREADS];
    struct take takes[THREADS];
    uint64_t token;

    takes_of(takes, mutex, THREADS);
    takes[THREADS - 1].wait.deadline_ns =
        zkl_now_ns() + (lag_is_slow() ? 60000 : 8000) * INT64_C(1000000);
    check_ok(zkl_mutex_lock(mutex));
    token = zkl_mutex_token(mutex);
    line_up(actors, takes, mutex, THREADS);
    inside_expire(client);
    for (int i = 0; i < THREADS - 1; i++) {
        check_ok(actor_result(actors[i]));
        check_true(!actor_is_done(actors[i + 1]));
        check_num(takes[i].grant.token, >, token);
        if (i < THREADS - 2)
            check_ok(actor_do(actors[i], do_unlock, mutex));
    }
    check_num(takes[0].grant.token, ==, takes[1].grant.token);
    check_num(zkl_mutex_token(mutex), ==, 0);
    check_num(zkl_mutex_lock(mutex), ==, ZKL_ELOST);
    check_num(zkl_mutex_unlock(mutex), ==, ZKL_ELOST);
    check_num(actor_result(actors[THREADS - 1]), ==, ZKL_ETIMEDOUT);
    int released = actor_do(actors[THREADS - 2], do_unlock, mutex);
    check_true(released == 0 || (released == ZKL_EUNCONFIRMED && lag_is_slow()));
}

/* Goal: a thread never hands on a hold with a lease. It hands on a hold without one to a thread
 * with a lease, and the hold has that lease from then on. */
WORLD_TEST(a_leased_hold_is_not_handed_on)
{
    const char *path = cluster_path("leased");
    struct zkl_client *client = world_client();
    struct zkl_mutex *mutex = shared(client, path, MANY);
    struct actor *actors[2];
    struct take takes[2] = {take_of(mutex), take_of(mutex)};

    takes[0].wait.lease_ms = 5000;
    check_ok(zkl_mutex_lock(mutex));
    uint64_t token = zkl_mutex_token(mutex);
    line_up(actors, takes, mutex, 2);
    check_ok(zkl_mutex_unlock(mutex));
    check_ok(actor_result(actors[0]));
    check_num(takes[0].grant.token, ==, token);
    check_num(takes[0].grant.window_ms, <=, 5000);
    check_ok(actor_do(actors[0], do_unlock, mutex));
    check_ok(actor_result(actors[1]));
    check_num(takes[1].grant.token, >, token);
    check_num(takes[1].grant.window_ms, >, 5000);
    check_ok(actor_do(actors[1], do_unlock, mutex));
}

/* Goal: a holder that another client has asked to release does not hand the lock on. The next
 * thread queues. */
WORLD_TEST(a_revoked_hold_is_not_handed_on)
{
    const char *path = cluster_path("revoked");
    static struct notes notes = NOTES_INIT;
    struct zkl_client *client = world_client();
    struct zkl_mutex *mutex = shared(client, path, MANY);
    struct actor *actors[2];
    struct take takes[2] = {take_of(mutex), take_of(mutex)};
    char node[256];

    check_ok(zkl_mutex_set_callback(mutex, take_note, &notes));
    check_ok(zkl_mutex_lock(mutex));
    uint64_t token = zkl_mutex_token(mutex);
    line_up(actors, takes, mutex, 2);
    check_ok(zkl_mutex_unlock(mutex));
    check_ok(actor_result(actors[0]));
    cluster_child(path, 0, node, sizeof node);
    check_ok(wire_set(raw, node, "__REVOKE__", -1));
    check_note(&notes, 0, ZKL_HOLD_REVOKE_REQUESTED, ZKL_REASON_NONE);
    check_num(notes.list[0].token, ==, token);
    check_ok(actor_do(actors[0], do_unlock, mutex));
    check_ok(actor_result(actors[1]));
    check_num(takes[1].grant.token, >, token);
    check_ok(actor_do(actors[1], do_unlock, mutex));
}
