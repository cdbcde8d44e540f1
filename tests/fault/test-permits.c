/* SPDX-License-Identifier: Apache-2.0 */
/* Permits while answers of the server are lost and sessions end: all or none, no orphaned lease, no inner
 * lock kept (CURATOR-315, -335, -462). The client is behind a frame proxy. */
#include "bench.h"

#include "api/awaited_query.h"

#define SESSION_MS lag_session_ms(2000)
#define REST_MS 1000
#define PERMITS 3

/* Of the client, and of the competitor. */
static struct zkl_semaphore *ours, *theirs;
static struct zkl_permit *got;

static const char *const path = "/permits/s";
static const char *const locks = "/permits/s/locks", *const leases = "/permits/s/leases";

static struct bench *begin(void)
{
    struct bench *b = bench_make_path(bench_begin(path, SESSION_MS, QUIET_MS));

    ours = world_semaphore(b->client, path, PERMITS, NULL);
    theirs = world_semaphore(b->direct, path, PERMITS, NULL);
    check_ok(wire_create(b->wire, locks, "", WIRE_PERSISTENT, NULL, 0));
    check_ok(wire_create(b->wire, leases, "3", WIRE_PERSISTENT, NULL, 0));
    return b;
}

#define PERMITS_TEST(name) BENCH_TEST_OF(name, begin())

static void check_rest(struct bench *b)
{
    check_wait(fault_connected(b->client), WAIT_MS);
    fault_check_rest(b->client, b->wire, leases, REST_MS);
    fault_check_rest(b->client, b->wire, locks, REST_MS);
}

static int acquire(struct zkl_semaphore *semaphore, int count, struct zkl_permit **permits)
{
    struct zkl_wait wait = ZKL_WAIT_INIT;
    wait.deadline_ns = zkl_now_ns() + WAIT_MS * INT64_C(1000000);
    return zkl_semaphore_acquire(semaphore, count, &wait, permits);
}

static int act_try(struct zkl_mutex *unused, void *semaphore)
{
    struct zkl_wait wait = ZKL_WAIT_INIT;
    struct zkl_permit *permit;

    (void)unused;
    wait.flags = ZKL_WAIT_TRY;
    return zkl_semaphore_acquire(semaphore, 1, &wait, &permit);
}

/* It sees room, and when it has the inner lock there is none any more: it keeps neither that lock
 * nor a lease. The client's tries are patient. Modes: F42. */
PERMITS_TEST(a_try_in_vain_keeps_nobody_out)
{
    struct zkl_permit *permits[PERMITS], *others[PERMITS];
    struct zkl_client *client = world_through(b->proxy, QUIET_MS);
    struct zkl_semaphore *semaphore = world_semaphore(client, path, PERMITS, NULL);

    for (int i = 0; i < test_length(30, 3); i++) {
        check_ok(proxy_hold_request(b->proxy, PROXY_CREATE2, 1));
        act_begin(b->actor, act_try, NULL, semaphore);
        check_ok(proxy_wait_held(b->proxy, WAIT_MS));
        check_ok(acquire(theirs, PERMITS, permits));
        check_wait(fault_children(b->wire, locks) == 0, WAIT_MS);
        proxy_release(b->proxy);
        check_num(act_end(b->actor, WAIT_MS), ==, ZKL_EBUSY);
        check_wait(fault_children(b->wire, locks) == 0, WAIT_MS);
        check_wait(fault_children(b->wire, leases) == PERMITS, WAIT_MS);
        for (int j = 0; j < PERMITS; j++)
            check_ok(zkl_permit_release(permits[j]));
        check_ok(acquire(theirs, PERMITS, others));
        for (int j = 0; j < PERMITS; j++)
            check_ok(zkl_permit_release(others[j]));
        fault_check_rest(client, b->wire, locks, WAIT_MS);
    }
}

static struct zkl_semaphore *taken_from;
static int taken_rc;

__typeof__(zkl_query_all) __real_zkl_query_all, __wrap_zkl_query_all;

int __wrap_zkl_query_all(struct zkl_client *client, struct zkl_awaited_query *queries, size_t count,
                         int64_t deadline_ns, struct zkl_cancel *cancel)
{
    struct zkl_permit *permit;
    int rc = __real_zkl_query_all(client, queries, count, deadline_ns, cancel);

    if (taken_from) {
        taken_rc = acquire(taken_from, 1, &permit);
        if (taken_rc == 0)
            check_ok(zkl_permit_release(permit));
    }
    return rc;
}

/* Another thread is just setting the number by the same handle. It stays so where the set has no
 * answer, as it may have been carried out. Modes: F43. */
PERMITS_TEST(a_first_acquire_beside_a_change_is_no_mismatch)
{
    struct zkl_wait wait = ZKL_WAIT_INIT;
    struct zkl_semaphore *semaphore = world_semaphore(b->client, path, PERMITS, NULL);
    struct zkl_permit *permit;

    taken_from = semaphore;
    check_ok(zkl_semaphore_set_permits(semaphore, PERMITS + 2, NULL));
    taken_from = NULL;
    check_num(taken_rc, ==, 0);

    semaphore = world_semaphore(b->client, path, PERMITS + 2, NULL);
    check_ok(proxy_drop_reply(b->proxy, PROXY_SET, 1, PROXY_THEN_SILENT));
    wait.deadline_ns = zkl_now_ns() + INT64_C(300000000);
    check_num(zkl_semaphore_set_permits(semaphore, PERMITS, &wait), ==, ZKL_ETIMEDOUT);
    check_ok(acquire(semaphore, 1, &permit));
    check_num(zkl_semaphore_permits(semaphore), ==, PERMITS);
    check_ok(zkl_permit_release(permit));

    /* Others insist on theirs. */
    semaphore = world_semaphore(b->direct, path, PERMITS + 2, NULL);
    check_num(acquire(semaphore, 1, &permit), ==, ZKL_EMISMATCH);
    check_rest(b);
}

/* --- a number that is lowered ----------------------------------------------------------------- */

ACT(act_acquire, acquire(ours, 1, &got))

/* What the client sends after it has reconnected is answered behind the list by which a waiter decides. */
static void check_waits(struct bench *b)
{
    struct zkl_mutex *mutex = world_mutex(b->client, "/permits/behind");

    check_ok(zkl_mutex_lock(mutex));
    check_ok(zkl_mutex_unlock(mutex));
    check_true(act_busy(b->actor));
}

/* The number is 1, and the rival has two permits: the waiter gets one when both are released. */
static void check_gets_the_last(struct bench *b, struct zkl_permit *others[])
{
    check_waits(b);
    check_ok(zkl_permit_release(others[1]));
    check_waits(b);
    check_ok(zkl_permit_release(others[0]));
    check_ok(act_end(b->actor, WAIT_MS));
    check_ok(zkl_permit_release(got));
    check_rest(b);
}

/* A waiter's link is down, or the answer to its create is lost, too: the number is lowered to 1, and one of three permits
 * released. At most as many are out as the number says. Seen red: three were out. */
WORLD_TEST(a_number_is_lowered_unseen_by_a_waiter)
{
    for (int in_doubt = 0; in_doubt < 2; in_doubt++) {
        struct bench *b = begin();
        struct zkl_permit *others[PERMITS];
        int64_t links = fault_links(b->client);

        check_ok(acquire(theirs, PERMITS - in_doubt, others));
        check_ok(proxy_refuse(b->proxy, in_doubt));
        if (in_doubt)
            check_ok(proxy_drop_reply(b->proxy, PROXY_CREATE2, 2, PROXY_THEN_CUT));
        act_begin(b->actor, act_acquire, NULL, NULL);
        check_ok(in_doubt ? proxy_wait_dropped(b->proxy, WAIT_MS) : 0);
        check_wait(fault_children(b->wire, leases) == PERMITS + 1 - in_doubt, WAIT_MS);
        lose_link(b->proxy);
        check_ok(zkl_semaphore_set_permits(theirs, 1, NULL));
        if (!in_doubt)
            check_ok(zkl_permit_release(others[2]));
        check_ok(proxy_refuse(b->proxy, false));
        fault_check_reconnect(b->client, links);
        check_gets_the_last(b, others);
        world_clear();
    }
}

/* The session expires while a multi-lock has the permit and waits for the mutex, and again when it has both. Seen red: no
 * state was reported. */
PERMITS_TEST(a_loss_is_heard_of_by_who_began_anew)
{
    struct zkl_mutex *own = world_mutex(b->client, "/permits/t");
    struct zkl_mutex *other = world_mutex(b->direct, "/permits/t");
    struct zkl_member members[] = {zkl_member_semaphore(ours, 1), zkl_member_mutex(own)};

    check_ok(zkl_semaphore_set_callback(ours, told_fn, &b->told));
    struct zkl_multi *multi = world_multi(b->client, members, 2);
    check_ok(zkl_mutex_lock(other));
    act_begin(b->actor, act_multi_lock, NULL, multi);
    check_wait(fault_children(b->wire, "/permits/t") == 2, WAIT_MS);
    fault_renew_session(b->client);
    check_wait(fault_children(b->wire, "/permits/t") == 2, WAIT_MS);
    check_ok(zkl_mutex_unlock(other));
    check_ok(act_end(b->actor, WAIT_MS));
    check_num(b->told.lost, ==, 0);
    fault_expire(b->client, 0);
    check_wait(b->told.lost == 1, WAIT_MS);
    check_num(act_do(b->actor, act_multi_unlock, NULL, multi), ==, ZKL_ELOST);
}
