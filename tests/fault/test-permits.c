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
