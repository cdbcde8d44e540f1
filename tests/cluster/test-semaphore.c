/* SPDX-License-Identifier: Apache-2.0 */
/* The semaphore on a real server: how many permits are out, in what order, what a try says, how it
 * ends, and that nothing of it stays. */
#include "inside.h"
#include "check_error.h"

#define AT_ONCE 8

/* --- users ----------------------------------------------------------------------------------- */

struct user {
    const char *path;
    struct zkl_client *client;
    struct zkl_semaphore *semaphore;
    struct actor *actor;
    /* the next acquire */
    int count;
    struct zkl_wait wait;
    struct zkl_permit *permits[AT_ONCE];
};

static struct user user_of(const char *path, int permits)
{
    struct user u = {.path = path, .client = world_client(), .actor = world_actor()};
    u.semaphore = world_semaphore(u.client, path, permits, NULL);
    return u;
}

static int do_take(void *user)
{
    struct user *u = user;
    return zkl_semaphore_acquire(u->semaphore, u->count, &u->wait, u->permits);
}

static int take_with(struct user *u, int count, int64_t deadline_ns, unsigned flags)
{
    u->count = count;
    u->wait = (struct zkl_wait)ZKL_WAIT_INIT;
    u->wait.deadline_ns = deadline_ns;
    u->wait.flags = flags;
    return do_take(u);
}

static int take(struct user *u, int count)
{
    return take_with(u, count, zkl_now_ns() + WAIT_MS * INT64_C(1000000), 0);
}

static int try_take(struct user *u, int count)
{
    return take_with(u, count, ZKL_NO_DEADLINE, ZKL_WAIT_TRY);
}

static void give(struct user *u, int count)
{
    for (int i = 0; i < count; i++)
        check_ok(zkl_permit_release(u->permits[i]));
}

static int leases(const char *path)
{
    return cluster_children(below(path, "leases"));
}

static int queued(const char *path)
{
    return cluster_children(below(path, "locks"));
}

/* The permits that are out or asked for, and the requests that wait for their turn to ask. */
static void check_path(const char *path, int out, int waiting)
{
    check_wait(leases(path) == out && queued(path) == waiting, WAIT_MS);
}

static void check_nothing_left(const char *path)
{
    check_path(path, 0, 0);
    check_wait(node_watches(NULL) == 0, WAIT_MS);
}

/* Begin to acquire, as the nth in the queue of the inner mutex; out is then the number of leases. */
static void begin(struct user *u, int count, int nth, int out)
{
    check_wait(queued(u->path) == nth - 1, WAIT_MS); /* a granted request has left the queue */
    u->count = count;
    u->wait = (struct zkl_wait)ZKL_WAIT_INIT;
    actor_begin(u->actor, do_take, u);
    check_path(u->path, out, nth);
}

static void check_number(const char *path, const char *expected)
{
    char data[32] = "";
    check_ok(wire_get(raw, cluster_at(below(path, "leases")), data, sizeof data, NULL));
    check_text(data, expected);
}

/* --- the number of permits ------------------------------------------------------------------- */

WORLD_TEST(at_most_n_are_out)
{
    const char *path = cluster_path("n");
    struct user a = user_of(path, 3), b = user_of(path, 3), c = user_of(path, 3);

    check_num(zkl_semaphore_permits(a.semaphore), ==, 0);
    check_ok(take(&a, 1));
    check_num(zkl_semaphore_permits(a.semaphore), ==, 3);
    check_ok(take(&b, 2));
    check_num(leases(path), ==, 3);
    check_wait(queued(path) == 0, WAIT_MS);
    check_number(path, "3");
    begin(&c, 1, 1, 4);
    net_nap_ms(50);
    check_true(!actor_is_done(c.actor));
    give(&a, 1);
    check_ok(actor_result(c.actor));
    check_wait(queued(path) == 0, WAIT_MS);
    give(&b, 2);
    give(&c, 1);
    check_nothing_left(path);
}

WORLD_TEST(a_big_request_is_not_starved)
{
    const char *path = cluster_path("big");
    struct user a = user_of(path, 3), big = user_of(path, 3), small = user_of(path, 3);

    check_ok(take(&a, 1));
    begin(&big, 3, 1, 4);
    begin(&small, 1, 2, 4); /* the big one's are there, small waits for its turn */
    net_nap_ms(100);
    check_true(!actor_is_done(big.actor) && !actor_is_done(small.actor));
    check_num(leases(path), ==, 4);
    give(&a, 1);
    check_ok(actor_result(big.actor));
    check_true(!actor_is_done(small.actor));
    check_num(zkl_permit_still_held(big.permits[2], 1), ==, 1);
    give(&big, 3);
    check_ok(actor_result(small.actor));
    give(&small, 1);
    check_nothing_left(path);
}

/* Goal: while another client is just acquiring, it waits a while for that client, and no longer. Modes: F42. */
WORLD_TEST(a_try_looks_first)
{
    const char *path = cluster_path("try");
    char made[200];
    struct user a = user_of(path, 2), b = user_of(path, 2);

    make_root(path, ""); /* so that the server does not remove them while they are empty */
    make_root(below(path, "locks"), "");
    make_root(below(path, "leases"), "2");
    check_ok(try_take(&a, 2));
    check_wait(queued(path) == 0, WAIT_MS);
    check_num(try_take(&b, 1), ==, ZKL_EBUSY);
    give(&a, 1);
    a.permits[0] = a.permits[1];
    check_num(try_take(&b, 2), ==, ZKL_EBUSY);
    check_ok(try_take(&b, 1));
    give(&b, 1);
    /* There is room, but the inner mutex is somebody's. */
    check_ok(wire_create(raw, cluster_at(below(path, "locks/_c_x-lock-")), "",
                         WIRE_EPHEMERAL | WIRE_SEQUENTIAL, made, sizeof made));
    int64_t start = net_now_ms();
    lag_begin();
    check_num(try_take(&b, 1), ==, ZKL_EBUSY);
    check_num(lag_end_ms(), <=, 3000);
    check_num(net_now_ms() - start, >=, 950);
    actor_begin(b.actor, do_take, &b);
    check_wait(queued(path) == 2, WAIT_MS);
    check_ok(wire_delete(raw, made, -1));
    check_ok(actor_result(b.actor));
    give(&b, 1);
    give(&a, 1);
    check_nothing_left(path);
}

WORLD_TEST(the_number_can_be_changed)
{
    const char *path = cluster_path("set");
    struct user a = user_of(path, 1), b = user_of(path, 1), c = user_of(path, 0);

    check_ok(take(&a, 1));
    begin(&b, 1, 1, 2);
    check_ok(zkl_semaphore_set_permits(c.semaphore, 2, NULL));
    check_num(zkl_semaphore_permits(c.semaphore), ==, 2);
    check_ok(actor_result(b.actor));
    check_num(zkl_semaphore_permits(b.semaphore), ==, 2);
    check_number(path, "2");
    check_ok(zkl_semaphore_set_permits(c.semaphore, 1, NULL));
    check_num(zkl_permit_still_held(b.permits[0], 1), ==, 1);
    check_num(try_take(&c, 1), ==, ZKL_EBUSY);
    give(&a, 1);
    check_num(try_take(&c, 1), ==, ZKL_EBUSY);
    check_fails(take(&a, 2), ZKL_EINVAL, "has 1 permits");
    begin(&c, 1, 1, 2);
    give(&b, 1);
    check_ok(actor_result(c.actor));
    give(&c, 1);
    check_fails(zkl_semaphore_set_permits(c.semaphore, 0, NULL), ZKL_EINVAL, "permits is 0");
    check_nothing_left(path);
}

WORLD_TEST(a_request_that_got_too_big_is_refused)
{
    const char *path = cluster_path("toobig");
    struct user a = user_of(path, 3), b = user_of(path, 3);

    check_ok(take(&a, 1));
    begin(&b, 3, 1, 4);
    check_ok(zkl_semaphore_set_permits(a.semaphore, 2, NULL));
    check_num(actor_result(b.actor), ==, ZKL_EINVAL);
    check_path(path, 1, 0);
    give(&a, 1);
    check_fails(take(&a, 9), ZKL_EINVAL, "9");
    check_fails(take(&a, 65), ZKL_EINVAL, "65");
    check_nothing_left(path);
}

/* Modes: F43. */
WORLD_TEST(a_mismatch_is_told)
{
    const char *path = cluster_path("mismatch");
    struct user a = user_of(path, 3), b = user_of(path, 4), c = user_of(path, 0);

    check_fails(take(&c, 1), ZKL_EMISMATCH, "no number");
    check_wait(queued(path) == 0, WAIT_MS);
    check_ok(take(&a, 1));
    check_fails(take(&b, 1), ZKL_EMISMATCH, "has 3 permits, not 4");
    check_fails(try_take(&b, 1), ZKL_EMISMATCH, "has 3 permits, not 4");
    check_path(path, 1, 0);
    check_ok(take(&c, 2));
    check_num(zkl_semaphore_permits(c.semaphore), ==, 3);
    check_num(zkl_semaphore_permits(b.semaphore), ==, 0);
    check_num(zkl_semaphore_free(a.semaphore), ==, ZKL_EBUSY);
    give(&c, 2);
    give(&a, 1);
    check_nothing_left(path);
}

/* Goal: Curator makes `leases` without data. The first client of this library writes the number
 * there. */
WORLD_TEST(an_empty_root_gets_its_number)
{
    const char *path = cluster_path("empty");
    struct user a = user_of(path, 2), b = user_of(path, 0);

    check_ok(wire_create(raw, cluster_at(path), "", WIRE_CONTAINER, NULL, 0));
    check_ok(wire_create(raw, cluster_at(below(path, "leases")), "", WIRE_CONTAINER, NULL, 0));
    check_fails(take(&b, 1), ZKL_EMISMATCH, "no number");
    check_ok(take(&a, 1));
    check_number(path, "2");
    check_ok(take(&b, 1));
    give(&a, 1);
    give(&b, 1);
    check_nothing_left(path);
}
