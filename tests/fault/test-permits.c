/* SPDX-License-Identifier: Apache-2.0 */
/* Permits while answers of the server are lost and sessions end: all or none, no orphaned lease, no inner
 * lock kept (CURATOR-315, -335, -462). The client is behind a frame proxy. */
#include "fault.h"

#include <stdio.h>
#include <stdlib.h>

#include "api/awaited_query.h"

#define SESSION_MS lag_session_ms(2000)
#define REST_MS 1000
#define PERMITS 3

struct bench {
    struct proxy *proxy;
    struct zkl_client *client, *direct;
    struct zkl_semaphore *semaphore, *rival;
    struct wire *wire;
    struct zkl_permit *got;
};

static const char *const path = "/permits/s";
static const char *const locks = "/permits/s/locks", *const leases = "/permits/s/leases";

static int set_up(void **state)
{
    struct bench *b = calloc(1, sizeof *b);

    check_true(b != NULL);
    b->proxy = proxy_before(server, 0);
    b->client = fault_open(proxy_address(b->proxy), SESSION_MS);
    b->direct = fault_open(zks_connect_string(server), QUIET_MS);
    check_ok(zkl_semaphore_new(&b->semaphore, b->client, path, PERMITS, NULL));
    check_ok(zkl_semaphore_new(&b->rival, b->direct, path, PERMITS, NULL));
    b->wire = fault_wire();
    check_ok(wire_create(b->wire, "/permits", "", WIRE_PERSISTENT, NULL, 0));
    check_ok(wire_create(b->wire, path, "", WIRE_PERSISTENT, NULL, 0));
    check_ok(wire_create(b->wire, locks, "", WIRE_PERSISTENT, NULL, 0));
    check_ok(wire_create(b->wire, leases, "3", WIRE_PERSISTENT, NULL, 0));
    *state = b;
    return 0;
}

static int tear_down(void **state)
{
    struct bench *b = *state;

    zkl_semaphore_free(b->semaphore);
    zkl_semaphore_free(b->rival);
    zkl_client_free(b->direct);
    zkl_client_free(b->client);
    proxy_stop(b->proxy);
    wire_delete_tree(b->wire, "/permits");
    wire_close(b->wire);
    free(b);
    return 0;
}

static void check_rest(struct bench *b)
{
    check_wait(zkl_client_get_state(b->client) == ZKL_CLIENT_CONNECTED, WAIT_MS);
    fault_check_rest(b->client, b->wire, leases, REST_MS);
    fault_check_rest(b->client, b->wire, locks, REST_MS);
}

static int acquire(struct zkl_semaphore *semaphore, int count, int ms, struct zkl_permit **permits)
{
    struct zkl_wait wait = ZKL_WAIT_INIT;
    wait.deadline_ns = zkl_now_ns() + ms * INT64_C(1000000);
    return zkl_semaphore_acquire(semaphore, count, &wait, permits);
}

/* The nth answer to op is lost while count permits are acquired; then the rest can be had, no more. */
static void lose_one(struct bench *b, enum proxy_op op, int nth, int count, enum proxy_then then)
{
    int rounds = then == PROXY_THEN_CUT ? test_length(50, 4) : 1;
    for (int i = 0; i < rounds; i++) {
        struct zkl_permit *permits[PERMITS], *others[PERMITS];
        check_ok(proxy_drop_reply(b->proxy, op, nth, then));
        check_ok(acquire(b->semaphore, count, WAIT_MS, permits));
        check_ok(proxy_wait_dropped(b->proxy, WAIT_MS));
        check_wait(fault_children(b->wire, leases) == count, WAIT_MS);
        for (int j = 0; j < count; j++)
            check_num(zkl_permit_token(permits[j]), >, 0);
        /* What is lost behind the grant, the inner lock's delete, is the janitor's: we wait for it. */
        int free = PERMITS - count;
        int rc = acquire(b->rival, free > 0 ? free : 1, free > 0 ? WAIT_MS : 100, others);
        check_num(rc, ==, free > 0 ? 0 : ZKL_ETIMEDOUT);
        for (int j = 0; j < free; j++)
            check_ok(zkl_permit_release(others[j]));
        for (int j = 0; j < count; j++) {
            rc = zkl_permit_release(permits[j]);
            check_true(rc == 0 || is_unanswered(rc));
        }
        check_rest(b);
    }
}

/* One permit: the answer to each request on the way is lost with the connection. Modes: F40. */
static void cut_before_each_answer(void **state)
{
    static const struct {
        enum proxy_op op;
        int nth;
    } steps[] = {{PROXY_CREATE2, 1}, {PROXY_CHILDREN, 1},  {PROXY_GET, 1},
                 {PROXY_CREATE2, 2}, {PROXY_CHILDREN2, 1}, {PROXY_DELETE, 1}};
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++)
        lose_one(*state, steps[i].op, steps[i].nth, 1, PROXY_THEN_CUT);
}

/* The lease's create: the connection stays open and silent. */
static void silence_before_the_answer_to_the_lease(void **state)
{
    lose_one(*state, PROXY_CREATE2, 2, 1, PROXY_THEN_SILENT);
}

/* Several permits in one call: the transaction that makes them. */
static void cut_before_the_answer_to_a_transaction(void **state)
{
    lose_one(*state, PROXY_MULTI, 1, 2, PROXY_THEN_CUT);
    lose_one(*state, PROXY_MULTI, 1, PERMITS, PROXY_THEN_CUT);
    lose_one(*state, PROXY_EXISTS, 1, 2, PROXY_THEN_CUT);
}

/* A deadline that passes in the silence after a lost answer: in time, and nothing stays.
 * Modes: F40. */
static void a_deadline_holds_and_nothing_stays(void **state)
{
    static const enum proxy_op ops[] = {PROXY_CREATE2, PROXY_MULTI};
    struct bench *b = *state;
    struct zkl_permit *permits[PERMITS];
    for (int i = 0; i < 2; i++) {
        check_ok(proxy_drop_reply(b->proxy, ops[i], i == 0 ? 2 : 1, PROXY_THEN_SILENT));
        lag_begin();
        check_num(acquire(b->semaphore, 1 + i, 300, permits), ==, ZKL_ETIMEDOUT);
        check_num(lag_end_ms(), <, 1200);
        check_wait(fault_children(b->wire, leases) == 0 && fault_children(b->wire, locks) == 0,
                   WAIT_MS);
        check_rest(b);
    }
}

static int act_try(struct zkl_mutex *unused, void *semaphore)
{
    struct zkl_wait wait = ZKL_WAIT_INIT;
    struct zkl_permit *permit;

    (void)unused;
    wait.flags = ZKL_WAIT_TRY;
    return zkl_semaphore_acquire(semaphore, 1, &wait, &permit);
}

/* A try sees room, and when it has the inner lock there is none any more: it says so, and keeps neither
 * that lock nor a lease, so others are served as permits come back. Method: its first create is held
 * back until somebody else has all the permits; a client whose tries are patient. Modes: F42. */
static void a_try_in_vain_keeps_nobody_out(void **state)
{
    struct bench *b = *state;
    struct zkl_permit *permits[PERMITS], *others[PERMITS];
    struct zkl_client *client = fault_open(proxy_address(b->proxy), QUIET_MS);
    struct zkl_semaphore *semaphore;
    struct actor *actor = actor_new();

    check_ok(zkl_semaphore_new(&semaphore, client, path, PERMITS, NULL));
    for (int i = 0; i < test_length(30, 3); i++) {
        check_ok(proxy_hold_request(b->proxy, PROXY_CREATE2, 1));
        actor_begin(actor, act_try, NULL, semaphore);
        check_ok(proxy_wait_held(b->proxy, WAIT_MS));
        check_ok(acquire(b->rival, PERMITS, WAIT_MS, permits));
        check_wait(fault_children(b->wire, locks) == 0, WAIT_MS);
        proxy_release(b->proxy);
        check_num(actor_end(actor, WAIT_MS), ==, ZKL_EBUSY);
        check_wait(fault_children(b->wire, locks) == 0, WAIT_MS);
        check_wait(fault_children(b->wire, leases) == PERMITS, WAIT_MS);
        for (int j = 0; j < PERMITS; j++)
            check_ok(zkl_permit_release(permits[j]));
        check_ok(acquire(b->rival, PERMITS, WAIT_MS, others));
        for (int j = 0; j < PERMITS; j++)
            check_ok(zkl_permit_release(others[j]));
        fault_check_rest(client, b->wire, locks, WAIT_MS);
    }
    check_ok(zkl_semaphore_free(semaphore));
    check_ok(zkl_client_free(client));
    actor_free(actor);
}

/* The session ends: permits that are out are lost, and the semaphore is whole again. */
static void an_expiry_frees_the_permits(void **state)
{
    struct bench *b = *state;
    struct zkl_permit *permits[PERMITS], *others[PERMITS];
    check_ok(acquire(b->semaphore, PERMITS, WAIT_MS, permits));
    fault_expire(b->client, 0);
    check_ok(acquire(b->rival, PERMITS, WAIT_MS, others));
    for (int i = 0; i < PERMITS; i++) {
        check_wait(zkl_permit_still_held(permits[i], 0) == 0, WAIT_MS);
        check_num(zkl_permit_release(permits[i]), ==, ZKL_ELOST);
        check_ok(zkl_permit_release(others[i]));
    }
    check_rest(b);
}

static struct zkl_semaphore *taken_from;
static int taken_rc;

int __real_zkl_query_all(struct zkl_client *client, struct zkl_awaited_query *queries, size_t count,
                         int64_t deadline_ns, struct zkl_cancel *cancel);
int __wrap_zkl_query_all(struct zkl_client *client, struct zkl_awaited_query *queries, size_t count,
                         int64_t deadline_ns, struct zkl_cancel *cancel);

int __wrap_zkl_query_all(struct zkl_client *client, struct zkl_awaited_query *queries, size_t count,
                         int64_t deadline_ns, struct zkl_cancel *cancel)
{
    struct zkl_permit *permit;
    int rc = __real_zkl_query_all(client, queries, count, deadline_ns, cancel);

    if (taken_from) {
        taken_rc = acquire(taken_from, 1, WAIT_MS, &permit);
        if (taken_rc == 0)
            check_ok(zkl_permit_release(permit));
    }
    return rc;
}

/* A handle's first acquire finds the number that another thread is just setting by the same handle: that is no
 * other one than the handle's. And it stays so where the set has no answer, as it may have been carried out.
 * Method: the acquire runs between the answer to the set and the return of its call. Modes: F43. */
static void a_first_acquire_beside_a_change_is_no_mismatch(void **state)
{
    struct bench *b = *state;
    struct zkl_wait wait = ZKL_WAIT_INIT;
    struct zkl_semaphore *semaphore;
    struct zkl_permit *permit;

    check_ok(zkl_semaphore_new(&semaphore, b->client, path, PERMITS, NULL));
    taken_from = semaphore;
    check_ok(zkl_semaphore_set_permits(semaphore, PERMITS + 2, NULL));
    taken_from = NULL;
    check_num(taken_rc, ==, 0);
    check_ok(zkl_semaphore_free(semaphore));

    check_ok(zkl_semaphore_new(&semaphore, b->client, path, PERMITS + 2, NULL));
    check_ok(proxy_drop_reply(b->proxy, PROXY_SET, 1, PROXY_THEN_SILENT));
    wait.deadline_ns = zkl_now_ns() + INT64_C(300000000);
    check_num(zkl_semaphore_set_permits(semaphore, PERMITS, &wait), ==, ZKL_ETIMEDOUT);
    check_ok(acquire(semaphore, 1, WAIT_MS, &permit));
    check_num(zkl_semaphore_permits(semaphore), ==, PERMITS);
    check_ok(zkl_permit_release(permit));
    check_ok(zkl_semaphore_free(semaphore));

    /* Others insist on theirs. */
    check_ok(zkl_semaphore_new(&semaphore, b->direct, path, PERMITS + 2, NULL));
    check_num(acquire(semaphore, 1, WAIT_MS, &permit), ==, ZKL_EMISMATCH);
    check_ok(zkl_semaphore_free(semaphore));
    check_rest(b);
}

/* --- a number that is lowered ----------------------------------------------------------------- */

static int act_acquire(struct zkl_mutex *unused, void *bench)
{
    struct bench *b = bench;

    (void)unused;
    return acquire(b->semaphore, 1, WAIT_MS, &b->got);
}

/* What the client sends after it has reconnected is answered behind the list by which a waiter decides. */
static void check_waits(struct bench *b, struct actor *waiter)
{
    struct zkl_mutex *mutex = fault_mutex(b->client, "/permits/behind");

    check_ok(zkl_mutex_lock(mutex));
    check_ok(zkl_mutex_unlock(mutex));
    check_true(actor_busy(waiter));
    check_ok(zkl_mutex_free(mutex));
}

/* The number is 1, and the rival has two permits: the waiter gets one when both are released. */
static void check_gets_the_last(struct bench *b, struct actor *waiter, struct zkl_permit *others[])
{
    check_waits(b, waiter);
    check_ok(zkl_permit_release(others[1]));
    check_waits(b, waiter);
    check_ok(zkl_permit_release(others[0]));
    check_ok(actor_end(waiter, WAIT_MS));
    check_ok(zkl_permit_release(b->got));
    actor_free(waiter);
    check_rest(b);
}

/* Goal: at most as many permits are out as the number says, also where it is lowered while a waiter's link is
 * down. Method: with the number lowered from 3 to 1, one of three permits is released. Seen red: three were out. */
static void a_number_is_lowered_unseen_by_a_waiter(void **state)
{
    struct bench *b = *state;
    struct zkl_permit *others[PERMITS];
    struct actor *waiter = actor_new();
    int64_t links = fault_links(b->client);

    check_ok(acquire(b->rival, PERMITS, WAIT_MS, others));
    actor_begin(waiter, act_acquire, NULL, b);
    check_wait(fault_children(b->wire, leases) == PERMITS + 1, WAIT_MS);
    check_ok(proxy_refuse(b->proxy, true));
    proxy_cut(b->proxy);
    check_ok(zkl_semaphore_set_permits(b->rival, 1, NULL));
    check_ok(zkl_permit_release(others[2]));
    check_ok(proxy_refuse(b->proxy, false));
    fault_check_reconnect(b->client, links);
    check_gets_the_last(b, waiter, others);
}

/* The same where the answer to its create is lost. Seen red: likewise. */
static void a_number_is_lowered_while_a_create_is_in_doubt(void **state)
{
    struct bench *b = *state;
    struct zkl_permit *others[PERMITS];
    struct actor *waiter = actor_new();
    int64_t links = fault_links(b->client);

    check_ok(acquire(b->rival, 2, WAIT_MS, others));
    check_ok(proxy_refuse(b->proxy, true));
    check_ok(proxy_drop_reply(b->proxy, PROXY_CREATE2, 2, PROXY_THEN_CUT));
    actor_begin(waiter, act_acquire, NULL, b);
    check_ok(proxy_wait_dropped(b->proxy, WAIT_MS));
    check_wait(fault_children(b->wire, leases) == PERMITS, WAIT_MS);
    check_ok(zkl_semaphore_set_permits(b->rival, 1, NULL));
    check_ok(proxy_refuse(b->proxy, false));
    fault_check_reconnect(b->client, links);
    check_gets_the_last(b, waiter, others);
}

/* Goal: a permit's callback hears of a loss, also where the call had that permit before and lost it. Method: the
 * session expires while a multi-lock has the permit and waits for the mutex, and again when it has both. Seen red: no
 * state was reported. */
static void a_loss_is_heard_of_by_who_began_anew(void **state)
{
    struct bench *b = *state;
    struct told told = {0};
    struct zkl_mutex *own = fault_mutex(b->client, "/permits/t");
    struct zkl_mutex *other = fault_mutex(b->direct, "/permits/t");
    struct zkl_member members[] = {zkl_member_semaphore(b->semaphore, 1), zkl_member_mutex(own)};
    struct zkl_multi *multi;
    struct actor *a = actor_new();
    int64_t session = fault_session(b->client);

    check_ok(zkl_semaphore_set_callback(b->semaphore, told_fn, &told));
    check_ok(zkl_multi_new(&multi, b->client, members, 2));
    check_ok(zkl_mutex_lock(other));
    actor_begin(a, act_multi_lock, NULL, multi);
    check_wait(fault_children(b->wire, "/permits/t") == 2, WAIT_MS);
    fault_expire(b->client, 0);
    check_wait(fault_session(b->client) != 0 && fault_session(b->client) != session, WAIT_MS);
    check_wait(fault_children(b->wire, "/permits/t") == 2, WAIT_MS);
    check_ok(zkl_mutex_unlock(other));
    check_ok(actor_end(a, WAIT_MS));
    check_num(told.lost, ==, 0);
    fault_expire(b->client, 0);
    check_wait(told.lost == 1, WAIT_MS);
    check_num(actor_do(a, act_multi_unlock, NULL, multi), ==, ZKL_ELOST);
    check_ok(zkl_multi_free(multi));
    check_ok(zkl_mutex_free(own));
    check_ok(zkl_mutex_free(other));
    actor_free(a);
}

#define test(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        test(cut_before_each_answer),
        test(silence_before_the_answer_to_the_lease),
        test(cut_before_the_answer_to_a_transaction),
        test(a_deadline_holds_and_nothing_stays),
        test(a_try_in_vain_keeps_nobody_out),
        test(an_expiry_frees_the_permits),
        test(a_first_acquire_beside_a_change_is_no_mismatch),
        test(a_number_is_lowered_unseen_by_a_waiter),
        test(a_number_is_lowered_while_a_create_is_in_doubt),
        test(a_loss_is_heard_of_by_who_began_anew),
    };
    return fault_main(argc, argv, tests, NULL);
}
