/* SPDX-License-Identifier: Apache-2.0 */
/* The session is ended by somebody else at chosen moments: waiting, holding, creating, releasing,
 * and under load. libzookeeper loses calls there (ZOOKEEPER-2802). */
#include "bench.h"
#include "witness.h"

#include <sched.h>
#include <stdlib.h>

#include "api/client.h"

#define SESSION_MS lag_session_ms(5000)

static const char *const path = "/expiry/m";

static bool connected_anew(struct bench *b, int64_t session)
{
    return zkl_client_get_state(b->client) == ZKL_CLIENT_CONNECTED &&
           fault_session(b->client) != session;
}

/* Expire, and wait for the next session. */
static void expire(struct bench *b)
{
    int64_t session = fault_session(b->client);

    check_ok(wire_ping(b->wire)); /* a long test is longer than its session */
    fault_expire(b->client, 0);
    check_wait(connected_anew(b, session), WAIT_MS);
}

static struct bench *begin(void)
{
    struct bench *b = bench_begin(path, SESSION_MS, SESSION_MS);

    check_ok(zkl_mutex_set_callback(b->mutex, told_fn, &b->told));
    return b;
}

#define EXPIRY_TEST(name) BENCH_TEST_OF(name, begin())

/* A waiter whose session ends queues again and is granted when its turn comes. Modes: F6. */
EXPIRY_TEST(waiter_queues_again)
{
    struct actor *a = b->actor;

    for (int i = 0; i < 3; i++) {
        check_ok(zkl_mutex_lock(b->rival));
        actor_begin(a, act_lock, b->mutex, NULL);
        check_wait(fault_children(b->wire, path) == 2, WAIT_MS);
        expire(b);
        check_wait(fault_children(b->wire, path) == 2, WAIT_MS);
        check_true(actor_busy(a));
        check_ok(zkl_mutex_unlock(b->rival));
        check_ok(actor_end(a, WAIT_MS));
        check_num(actor_do(a, act_window, b->mutex, NULL), >, 0);
        check_ok(actor_do(a, act_unlock, b->mutex, NULL));
        fault_check_rest(b->client, b->wire, path, 1000);
    }
    check_num(b->told.lost, ==, 0);
}

/* The session ends just as the predecessor leaves, and of both the waiter hears only later: it must
 * not take that for its turn, as somebody else has the lock by then. It queues again. Method: the
 * events are held back until the window is over, before which no server ends a session by itself.
 * Modes: F10. */
EXPIRY_TEST(expiry_as_the_predecessor_leaves)
{
    struct actor *a = world_actor(), *behind = world_actor();

    for (int i = 0; i < test_length(20, 2); i++) {
        uint64_t theirs = 0, ours = 0;
        check_ok(zkl_mutex_lock(b->rival));
        actor_begin(a, act_lock, b->mutex, NULL);
        check_wait(flw_session_watches(zks_host(), zks_port(server, 0), fault_session(b->client)) ==
                       2,
                   WAIT_MS);
        actor_begin(behind, act_lock, b->rival, NULL);
        check_wait(fault_children(b->wire, path) == 3, WAIT_MS);
        check_ok(proxy_hold_reply(b->proxy, PROXY_EVENT, 1));
        int64_t session = fault_session(b->client);
        check_ok(zkl_mutex_unlock(b->rival));
        check_ok(proxy_wait_held(b->proxy, WAIT_MS));
        fault_expire(b->client, 0);
        check_ok(actor_end(behind, WAIT_MS));
        check_wait(!fault_proved(b->client), WAIT_MS);
        proxy_release(b->proxy);
        check_wait(connected_anew(b, session), WAIT_MS);
        check_wait(fault_children(b->wire, path) == 2, WAIT_MS);
        check_true(actor_busy(a));
        actor_do(behind, act_token, b->rival, &theirs);
        check_ok(actor_do(behind, act_unlock, b->rival, NULL));
        check_ok(actor_end(a, WAIT_MS));
        actor_do(a, act_token, b->mutex, &ours);
        check_num(ours, >, theirs);
        check_ok(actor_do(a, act_unlock, b->mutex, NULL));
        fault_check_rest(b->client, b->wire, path, 1000);
    }
    check_num(b->told.lost, ==, 0);
}

/* When a holder's session ends, its callback reports that once. The holder owes as many unlocks as
 * it had locks, each of which says lost, and can lock again with the same handle. Modes: F7, F15,
 * F16. */
EXPIRY_TEST(holder_is_told_once_and_locks_again)
{
    for (int i = 1; i <= 3; i++) {
        check_ok(zkl_mutex_lock(b->mutex));
        uint64_t token = zkl_mutex_token(b->mutex);
        for (int n = 1; n < i; n++)
            check_ok(zkl_mutex_lock(b->mutex));
        expire(b);
        check_wait(b->told.lost == i, WAIT_MS);
        /* The test ended the session by a close request, so the server may still report the node's
         * deletion first. */
        check_true(b->told.reason == ZKL_REASON_EXPIRED ||
                   b->told.reason == ZKL_REASON_NODE_DELETED);
        check_num(zkl_mutex_window_ms(b->mutex), ==, 0);
        check_num(zkl_mutex_token(b->mutex), ==, 0);
        check_num(zkl_mutex_hold_count(b->mutex), ==, i);
        check_num(zkl_mutex_lock(b->mutex), ==, ZKL_ELOST);
        for (int n = 0; n < i; n++)
            check_num(zkl_mutex_unlock(b->mutex), ==, ZKL_ELOST);
        check_num(zkl_mutex_unlock(b->mutex), ==, ZKL_ENOTOWNER);
        check_ok(zkl_mutex_lock(b->mutex));
        check_num(zkl_mutex_token(b->mutex), >, token);
        check_ok(zkl_mutex_unlock(b->mutex));
        check_num(b->told.lost, ==, i);
        fault_check_rest(b->client, b->wire, path, 1000);
    }
}

static void cut_off_when_expired(struct zkl_client *client, enum zkl_client_state state, void *arg)
{
    (void)client;
    if (state == ZKL_CLIENT_EXPIRED)
        proxy_hole(arg, PROXY_BOTH);
}

/* The loss is known as soon as the session's end is, and needs no word from the next session: that
 * one can't begin, as its connection is cut off in the moment of the news. Modes: F7. */
EXPIRY_TEST(loss_is_known_without_a_next_session)
{
    struct zkl_client_options options = fault_client_options(proxy_address(b->proxy), SESSION_MS);
    struct zkl_client *client = NULL;

    options.state_fn = cut_off_when_expired;
    options.state_arg = b->proxy;
    client = world_client_with(&options);
    struct zkl_mutex *mutex = world_mutex(client, path);
    check_ok(zkl_mutex_lock(mutex));
    fault_expire(client, 0);
    check_wait(zkl_mutex_token(mutex) == 0, WAIT_MS);
    check_num(zkl_client_get_state(client), ==, ZKL_CLIENT_CONNECTING);
    check_num(zkl_mutex_window_ms(mutex), ==, 0);
    check_num(zkl_mutex_unlock(mutex), ==, ZKL_ELOST);
    proxy_cut(b->proxy);
    proxy_heal(b->proxy);
}

/* What is held back when the session ends. */
enum held { ANSWER, REQUEST };

/* The actor's call is at that request when its session ends; what was held back is lost with the link, or comes. Its
 * code, in the next session. */
static int expire_within(struct bench *b, int (*act)(struct zkl_mutex *, void *), enum held held,
                         enum proxy_op op, bool is_lost)
{
    int64_t session = fault_session(b->client);

    check_ok(held == ANSWER ? proxy_hold_reply(b->proxy, op, 1)
                            : proxy_hold_request(b->proxy, op, 1));
    actor_begin(b->actor, act, b->mutex, NULL);
    check_ok(proxy_wait_held(b->proxy, WAIT_MS));
    fault_expire(b->client, 0);
    if (is_lost)
        proxy_cut(b->proxy);
    else
        proxy_release(b->proxy);
    check_wait(connected_anew(b, session), WAIT_MS);
    return actor_end(b->actor, WAIT_MS);
}

/* The session ends before the answer to the create, or to the list behind it, arrives, and the
 * answer is lost. The lock is granted in the next session, on the one node that it has there.
 * Modes: F5, F50. */
EXPIRY_TEST(expiry_while_creating)
{
    for (int i = 0; i < 5; i++) {
        check_ok(expire_within(b, act_lock, ANSWER, i % 2 ? PROXY_CREATE2 : PROXY_CHILDREN, true));
        check_num(fault_children(b->wire, path), ==, 1);
        check_num(actor_do(b->actor, act_window, b->mutex, NULL), >, 0);
        check_ok(actor_do(b->actor, act_unlock, b->mutex, NULL));
        fault_check_rest(b->client, b->wire, path, 1000);
    }
}

/* The same, and the answers come: they prove nothing any more. A hold that was granted on them is
 * lost: the callback reports that once, and the owner unlocks it. Modes: F10. */
EXPIRY_TEST(answers_of_an_ended_session)
{
    for (int i = 0; i < 5; i++) {
        b->told.lost = 0;
        check_ok(expire_within(b, act_lock, ANSWER, PROXY_CREATE2, false));
        int rc = actor_do(b->actor, act_unlock, b->mutex, NULL);
        check_true(rc == ZKL_ELOST || (rc == 0 && b->told.lost == 0));
        if (rc == ZKL_ELOST)
            check_wait(b->told.lost == 1, WAIT_MS);
        fault_check_rest(b->client, b->wire, path, 1000);
    }
}

/* The session ends while unlock waits for the delete's answer: unlock returns released, lost or
 * unconfirmed, and the handle works on. Modes: F50. */
EXPIRY_TEST(expiry_while_releasing)
{
    for (int i = 0; i < 5; i++) {
        check_ok(actor_do(b->actor, act_lock, b->mutex, NULL));
        int rc = expire_within(b, act_unlock, i % 2 ? ANSWER : REQUEST, PROXY_DELETE, false);
        check_true(rc == 0 || rc == ZKL_ELOST || is_unanswered(rc));
        check_num(actor_do(b->actor, act_count, b->mutex, NULL), ==, 0);
        check_ok(actor_do(b->actor, act_lock, b->mutex, NULL));
        check_ok(actor_do(b->actor, act_unlock, b->mutex, NULL));
        fault_check_rest(b->client, b->wire, path, 1000);
    }
}

/* --- under load ------------------------------------------------------------------------------- */

struct load {
    struct zkl_mutex *mutex;
    struct witness *witness;
    struct endings endings;
    atomic_bool stop;
};

struct runner {
    pthread_t thread;
    struct load *load;
    atomic_long cycles;
    atomic_int odd; /* a code that should not come */
    atomic_bool done;
};

static int one_cycle(struct load *load)
{
    int rc = zkl_mutex_lock(load->mutex);
    if (rc != 0) {
        print_message("%s\n", zkl_error_detail());
        return rc;
    }
    size_t visit = witness_enter(load->witness, 0, false, zkl_mutex_token(load->mutex));
    sched_yield();
    witness_leave(load->witness, visit);
    rc = zkl_mutex_unlock(load->mutex);
    endings_count(&load->endings, rc);
    if (rc == 0) /* its node was there to the end */
        witness_counts(load->witness, visit);
    return 0;
}

static void *run(void *arg)
{
    struct runner *r = arg;

    while (!r->load->stop && r->odd == 0) {
        r->odd = one_cycle(r->load);
        r->cycles++;
    }
    r->done = true;
    return NULL;
}

/* No two were inside together, each session's end took the lock from one holder at most, and each
 * broken connection left one unlock without its answer at most. (The session's end may break the
 * connection more than once: see wire_kill_session.) */
static void check_witness(struct load *load, long expiries, int64_t connects)
{
    const struct history_place place = {.name = "the mutex", .room = 1};
    struct sentence sentence = witness_judge(load->witness, &place);

    check_num(sentence.overlaps, ==, 0);
    check_num(sentence.disorder, ==, 0);
    check_num(load->endings.other, ==, 0);
    check_num(load->endings.lost, <=, expiries);
    check_num(load->endings.unconfirmed, <=, connects);
    check_num(load->endings.given_back, >, expiries);
    check_num(sentence.counted, ==, load->endings.given_back);
    witness_free(load->witness);
}

static long cycles(struct runner *r, int n)
{
    long sum = 0;
    for (int i = 0; i < n; i++)
        sum += r[i].cycles;
    return sum;
}

/* Eight threads lock, work and unlock through one client while the test ends its session again and
 * again: no call hangs, nothing is left, and no two are inside together. Modes: F50. */
EXPIRY_TEST(many_expiries_under_load)
{
    enum { THREADS = 8 };
    struct load load = {.mutex = world_mutex(b->client, path)};
    struct runner r[THREADS];

    int expiries = test_length(100, 10);

    load.witness = witness_new();
    check_true(load.witness);
    memset(r, 0, sizeof r);
    for (int i = 0; i < THREADS; i++) {
        r[i].load = &load;
        check_ok(pthread_create(&r[i].thread, NULL, run, &r[i]));
    }
    for (int i = 0; i < expiries; i++) {
        long before = cycles(r, THREADS);
        check_wait(cycles(r, THREADS) >= before + 20, WAIT_MS);
        expire(b);
    }
    load.stop = true;
    for (int i = 0; i < THREADS; i++) {
        check_wait(r[i].done, WAIT_MS);
        pthread_join(r[i].thread, NULL);
        check_num(r[i].odd, ==, 0);
    }
    check_witness(&load, expiries, proxy_counts(b->proxy, PROXY_CONNECT));
    fault_check_rest(b->client, b->wire, path, 2000);
    check_num(flw_session_watches(zks_host(), zks_port(server, 0), fault_session(b->client)), ==,
              0);
}
