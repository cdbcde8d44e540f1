/* SPDX-License-Identifier: Apache-2.0 */
/* Local hand-off (local_handoffs_max): threads of one handle take turns on one node. mutexes.txt has more. */
#include "inside.h"
#include "outage.h"

#define MANY 1000000
#define THREADS 5

/* A mutex, and those who wait for it in this process, in their order; takes has how, and what they got. */
struct line {
    const char *path;
    struct zkl_client *client;
    struct zkl_mutex *mutex;
    size_t count;
    struct actor *actors[THREADS];
    struct take takes[THREADS];
};

static struct line line_with(struct zkl_client *client, const char *name, int handoffs_max)
{
    struct zkl_mutex_options options = ZKL_MUTEX_OPTIONS_INIT;
    struct line line = {.path = cluster_path(name), .client = client};

    options.local_handoffs_max = handoffs_max;
    line.mutex = world_mutex_with(client, line.path, &options);
    for (int i = 0; i < THREADS; i++)
        line.takes[i] = take_of(line.mutex);
    return line;
}

static struct line line_of(const char *name, int handoffs_max)
{
    return line_with(world_client(), name, handoffs_max);
}

static bool is_contended(struct zkl_mutex *mutex)
{
    zkl_driver_lock(mutex->client->driver);
    bool contended = mutex->local_queue.holder->machine.contended;
    zkl_driver_unlock(mutex->client->driver);
    return contended;
}

/* The thread holds, and this is its token. */
static uint64_t hold(struct line *line)
{
    check_ok(zkl_mutex_lock(line->mutex));
    return zkl_mutex_token(line->mutex);
}

static size_t count_done(const struct line *line)
{
    size_t done = 0;

    for (size_t i = 0; i < line->count; i++)
        done += actor_is_done(line->actors[i]);
    return done;
}

/* Actors begin to wait until the line has that number. One with a deadline may have given up before all are there. */
static void line_up(struct line *line, size_t count)
{
    size_t before = inside_waiting(line->mutex);
    while (line->count < count) {
        size_t i = line->count++;
        line->actors[i] = world_actor();
        actor_begin(line->actors[i], do_acquire, &line->takes[i]);
        check_wait(inside_waiting(line->mutex) + count_done(line) == before + i + 1, WAIT_MS);
    }
}

/* Its ith one has the lock, on the node with this token or on a later one. */
static const struct zkl_grant *gets(struct line *line, int i, uint64_t token, bool later)
{
    check_ok(actor_result(line->actors[i]));
    check_true(later ? line->takes[i].grant.token > token : line->takes[i].grant.token == token);
    return &line->takes[i].grant;
}

static void unlock(struct line *line, int i)
{
    check_ok(actor_do(line->actors[i], do_unlock, line->mutex));
}

/* --- others ----------------------------------------------------------------------------------- */

struct runner {
    struct zkl_mutex *mutex;
    atomic_int stop;
    atomic_long cycles;
};

static int run_until(void *arg)
{
    struct runner *r = arg;
    int rc = 0;
    while (rc == 0 && !atomic_load(&r->stop)) {
        rc = zkl_mutex_lock(r->mutex);
        if (rc == 0)
            atomic_fetch_add(&r->cycles, 1);
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
static bool stays_for_long(struct runner *r)
{
    uint64_t token = token_of(r->mutex);
    long before = atomic_load(&r->cycles);
    check_wait(atomic_load(&r->cycles) > before + 500, WAIT_MS);
    return token_of(r->mutex) == token;
}

/* Goal: without others the lock stays on one node forever. */
WORLD_TEST(others_get_their_turn)
{
    struct line line = line_of("others", 50);
    struct zkl_mutex *outside = world_mutex(world_client(), line.path);
    struct runner runner = {.mutex = line.mutex};
    struct crowd crowd = crowd_of(run_until, &runner, 0, THREADS);
    uint64_t token = 0;

    check_wait(atomic_load(&runner.cycles) > 100, WAIT_MS);
    check_wait(stays_for_long(&runner), WAIT_MS);
    for (int i = 0; i < 10; i++) {
        check_ok(zkl_mutex_lock_for(outside, WAIT_MS));
        check_num(zkl_mutex_token(outside), >, token);
        token = zkl_mutex_token(outside);
        check_ok(zkl_mutex_unlock(outside));
    }
    atomic_store(&runner.stop, 1);
    crowd_end(&crowd);
}

WORLD_TEST(it_is_handed_on_so_often_while_others_wait)
{
    struct line line = line_of("limit", 2);
    struct locker last = locker_of(line.path, NULL);
    uint64_t token = hold(&line);
    int handed = 0;

    locker_queues(&last, 2);
    line_up(&line, THREADS);
    check_ok(zkl_mutex_unlock(line.mutex));
    for (; handed < THREADS && !actor_is_done(last.actor); handed++) {
        check_wait(actor_is_done(line.actors[handed]) || actor_is_done(last.actor), WAIT_MS);
        if (actor_is_done(last.actor))
            break;
        gets(&line, handed, token, false);
        /* The third one asked whether others queue. */
        check_wait(handed != 2 || is_contended(line.mutex), WAIT_MS);
        unlock(&line, handed);
        check_wait(handed != 2 || actor_is_done(last.actor), WAIT_MS);
    }
    check_num(handed, ==, 3); /* two, and one while that was looked into */
    locker_passes(&last);
    for (int i = handed; i < THREADS; i++) {
        gets(&line, i, token, true);
        unlock(&line, i);
    }
}

/* --- giving up -------------------------------------------------------------------------------- */

WORLD_TEST(who_gives_up_is_passed_over)
{
    struct line line = line_of("gives-up", MANY);
    uint64_t token = hold(&line);

    line.takes[0].wait.deadline_ns = zkl_now_ns() + lag_room_ms(300) * INT64_C(1000000);
    line.takes[2].wait.cancel = world_cancel();
    line_up(&line, 4);
    check_num(actor_result(line.actors[0]), ==, ZKL_ETIMEDOUT);
    zkl_cancel_set(line.takes[2].wait.cancel);
    check_num(actor_result(line.actors[2]), ==, ZKL_ECANCELED);
    check_num(inside_waiting(line.mutex), ==, 2);
    check_ok(zkl_mutex_unlock(line.mutex));
    gets(&line, 1, token, false);
    check_true(!actor_is_done(line.actors[3]));
    unlock(&line, 1);
    gets(&line, 3, token, false);
    unlock(&line, 3);
}

/* --- losses ----------------------------------------------------------------------------------- */

/* Goal: when the session ends, its holder hears of it. The waiters then get the lock anew, in the
 * old order, each within its own deadline. They do not wait for the thread that lost it. */
WORLD_TEST(an_expiry_keeps_the_order_of_who_waits)
{
    enum { LAST = THREADS - 1 };
    struct line line = line_with(world_client_of(lag_session_ms(EXPIRING_MS)), "expired", MANY);
    uint64_t token = hold(&line);

    line.takes[LAST].wait.deadline_ns = zkl_now_ns() + 8000 * INT64_C(1000000);
    line_up(&line, THREADS);
    inside_expire(line.client);
    for (int i = 0; i < LAST; i++) {
        gets(&line, i, token, true);
        if (i == LAST - 1)
            break; /* on a busy machine the last one's deadline has passed */
        check_true(!actor_is_done(line.actors[i + 1]));
        unlock(&line, i);
    }
    check_num(line.takes[0].grant.token, ==, line.takes[1].grant.token);
    check_num(zkl_mutex_token(line.mutex), ==, 0);
    check_num(zkl_mutex_lock(line.mutex), ==, ZKL_ELOST);
    check_num(zkl_mutex_unlock(line.mutex), ==, ZKL_ELOST);
    check_num(actor_result(line.actors[LAST]), ==, ZKL_ETIMEDOUT);
    int released = actor_do(line.actors[LAST - 1], do_unlock, line.mutex);
    check_true(released == 0 || (released == ZKL_EUNCONFIRMED && lag_is_slow()));
}
