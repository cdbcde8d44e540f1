/* SPDX-License-Identifier: Apache-2.0 */
/* Read-write locks and multi-locks while answers of the server are lost, sessions end and holders are
 * paused: all or none is held, nothing is left. The client is behind a frame proxy; a second one, the
 * competitor, is not. */
#include "fault.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#define SESSION_MS lag_session_ms(2000)
/* Where a link is cut: a busy machine is not to lose it once more by silence. */
#define CUT_SESSION_MS lag_session_ms(6000)
#define REST_MS 1000
#define LONG_MS lag_session_ms(4000) /* half of it is enough for one member after the other */
#define MEMBERS 3

struct bench {
    struct proxy *proxy;
    struct zkl_client *client, *direct;
    struct zkl_rwlock *rwlock; /* at the last path */
    struct zkl_mutex *mutexes[MEMBERS], *rivals[MEMBERS];
    struct zkl_multi *multi;
    struct wire *wire;
};

static const char *const paths[MEMBERS] = {"/group/a", "/group/b", "/group/rw"};

static int set_up_for(void **state, int session_ms)
{
    struct bench *b = calloc(1, sizeof *b);
    struct zkl_member members[MEMBERS];

    check_true(b != NULL);
    b->proxy = proxy_before(server, 0);
    b->client = fault_open(proxy_address(b->proxy), session_ms);
    b->direct = fault_open(zks_connect_string(server), QUIET_MS);
    b->wire = fault_wire();
    check_ok(wire_create(b->wire, "/group", "", WIRE_PERSISTENT, NULL, 0));
    check_ok(zkl_rwlock_new(&b->rwlock, b->client, paths[MEMBERS - 1], NULL));
    for (int i = 0; i < MEMBERS; i++) {
        b->rivals[i] = fault_mutex(b->direct, paths[i]);
        b->mutexes[i] =
            i < MEMBERS - 1 ? fault_mutex(b->client, paths[i]) : zkl_rwlock_writer(b->rwlock);
        members[MEMBERS - 1 - i] = zkl_member_mutex(b->mutexes[i]);
        check_ok(wire_create(b->wire, paths[i], "", WIRE_PERSISTENT, NULL, 0));
    }
    check_ok(zkl_multi_new(&b->multi, b->client, members, MEMBERS));
    *state = b;
    return 0;
}

static int set_up(void **state)
{
    return set_up_for(state, SESSION_MS);
}

static int set_up_for_cuts(void **state)
{
    return set_up_for(state, CUT_SESSION_MS);
}

static int tear_down(void **state)
{
    struct bench *b = *state;

    zkl_multi_free(b->multi);
    for (int i = 0; i < MEMBERS; i++) {
        zkl_mutex_free(b->rivals[i]);
        if (i < MEMBERS - 1)
            zkl_mutex_free(b->mutexes[i]);
    }
    zkl_rwlock_free(b->rwlock);
    zkl_client_free(b->direct);
    zkl_client_free(b->client);
    proxy_stop(b->proxy);
    wire_delete_tree(b->wire, "/group");
    wire_close(b->wire);
    free(b);
    return 0;
}

static void check_rest(struct bench *b)
{
    check_wait(zkl_client_get_state(b->client) == ZKL_CLIENT_CONNECTED, WAIT_MS);
    for (int i = 0; i < MEMBERS; i++)
        fault_check_rest(b->client, b->wire, paths[i], REST_MS);
}

/* One node at each path, this thread's, and its token is that node's. */
static void check_all_ours(struct bench *b)
{
    for (int i = 0; i < MEMBERS; i++) {
        struct wire_stat stat;
        char node[700];
        check_num(fault_children(b->wire, paths[i]), ==, 1);
        check_num(zkl_mutex_node_path(b->mutexes[i], node, sizeof node), >, 0);
        check_ok(wire_exists(b->wire, node, &stat));
        check_num(stat.ephemeral_owner, ==, fault_session(b->client));
        check_num(stat.czxid, ==, zkl_mutex_token(b->mutexes[i]));
    }
    check_num(zkl_multi_still_held(b->multi, 1), ==, 1);
}

static void lose_one(struct bench *b, enum proxy_op op, int nth, enum proxy_then then)
{
    check_ok(proxy_drop_reply(b->proxy, op, nth, then));
    check_ok(zkl_multi_lock_for(b->multi, WAIT_MS));
    check_ok(proxy_wait_dropped(b->proxy, 0));
    check_all_ours(b);
    check_ok(zkl_multi_unlock(b->multi, NULL));
    check_rest(b);
}

static void lose_one_while_locking(struct bench *b, enum proxy_op op, int nth, enum proxy_then then)
{
    int rounds = then == PROXY_THEN_CUT ? test_length(100, 8) : test_length(30, 1);
    for (int i = 0; i < rounds; i++)
        lose_one(b, op, nth, then);
}

/* A child comes and goes, so that the client cannot take the zxid from its lists. */
static void somebody_comes_and_goes(struct bench *b)
{
    char node[700];
    snprintf(node, sizeof node, "%s/stranger", paths[0]);
    int rc = wire_create(b->wire, node, "", WIRE_PERSISTENT, NULL, 0);
    if (rc == 0) /* else there is no path yet */
        check_ok(wire_delete(b->wire, node, -1));
}

/* The answer to the transaction that makes the nodes is lost: each is found by its GUID.
 * Modes: F1. */
static void cut_before_the_answer_to_create(void **state)
{
    lose_one_while_locking(*state, PROXY_MULTI, 1, PROXY_THEN_CUT);
}

static void silence_before_the_answer_to_create(void **state)
{
    lose_one_while_locking(*state, PROXY_MULTI, 1, PROXY_THEN_SILENT);
}

/* The server makes the nodes, and the answer that has their zxid is lost. */
static void cut_before_the_answer_to_stat(void **state)
{
    for (int i = 0; i < test_length(100, 8); i++) {
        somebody_comes_and_goes(*state);
        lose_one(*state, PROXY_EXISTS, 1, PROXY_THEN_CUT);
    }
}

/* The list from which the client may take the zxid is lost, or another one. */
static void cut_before_the_answer_to_a_list(void **state)
{
    struct bench *b = *state;
    lose_one_while_locking(b, PROXY_CHILDREN2, 1, PROXY_THEN_CUT);
    fault_alone_from(b->client, UINT_MAX); /* so that the client sends another one */
    lose_one_while_locking(b, PROXY_CHILDREN2, 2, PROXY_THEN_CUT);
}

/* The unlock's answer is lost: not held, not confirmed, and nothing left. */
static void cut_before_the_answer_to_delete(void **state)
{
    struct bench *b = *state;
    int codes[MEMBERS];
    for (int i = 0; i < test_length(100, 8); i++) {
        check_ok(zkl_multi_lock(b->multi));
        check_ok(proxy_drop_reply(b->proxy, PROXY_MULTI, 1, PROXY_THEN_CUT));
        int rc = zkl_multi_unlock(b->multi, codes);
        check_true(is_unanswered(rc));
        for (int j = 0; j < MEMBERS; j++)
            check_num(codes[j], ==, rc);
        check_rest(b);
    }
}

static int act_multi_lock_for(struct zkl_mutex *unused, void *multi)
{
    (void)unused;
    return zkl_multi_lock_for(multi, 300);
}

/* The session ends while one member is held and the next waited for: the multi-lock starts over and is
 * held in the end. */
static void a_multi_lock_starts_over_after_an_expiry(void **state)
{
    struct bench *b = *state;
    struct actor *actor = actor_new();
    for (int contended = 0; contended < MEMBERS; contended++) {
        check_ok(zkl_mutex_lock(b->rivals[contended]));
        actor_begin(actor, act_multi_lock, NULL, b->multi);
        check_wait(fault_children(b->wire, paths[contended]) == 2, WAIT_MS);
        fault_expire(b->client, 0);
        check_wait(fault_children(b->wire, paths[contended]) == 2, WAIT_MS);
        check_true(actor_busy(actor));
        check_ok(zkl_mutex_unlock(b->rivals[contended]));
        check_ok(actor_end(actor, WAIT_MS));
        for (int i = 0; i < MEMBERS; i++)
            check_num(fault_children(b->wire, paths[i]), ==, 1);
        check_ok(actor_do(actor, act_multi_unlock, NULL, b->multi));
        check_rest(b);
    }
    actor_free(actor);
}

/* A deadline passes while the link is silent: the call returns in time, and the client deletes the
 * nodes once the link is back. Modes: F25. */
static void a_deadline_holds_without_a_link(void **state)
{
    struct bench *b = *state;
    struct actor *actor = actor_new();
    for (int i = 0; i < 3; i++) {
        check_ok(proxy_drop_reply(b->proxy, PROXY_MULTI, 1, PROXY_THEN_SILENT));
        lag_begin();
        check_num(actor_do(actor, act_multi_lock_for, NULL, b->multi), ==, ZKL_ETIMEDOUT);
        check_num(lag_end_ms(), <, 1200);
        /* libzookeeper notices the silence after two thirds of the session timeout. */
        check_wait(fault_children(b->wire, paths[0]) == 0, WAIT_MS);
        check_rest(b);
    }
    actor_free(actor);
}

static int act_multi_lock_for_long(struct zkl_mutex *unused, void *multi)
{
    (void)unused;
    return zkl_multi_lock_for(multi, LONG_MS);
}

/* Each member but the last one becomes free when most of the time is over. */
static void check_one_deadline(struct bench *b, struct zkl_multi *multi)
{
    struct actor *actor = actor_new();

    for (int i = 0; i < MEMBERS; i++)
        check_ok(zkl_mutex_lock(b->rivals[i]));
    int64_t start = net_now_ms();
    lag_begin();
    actor_begin(actor, act_multi_lock_for_long, NULL, multi);
    for (int i = 0; i < MEMBERS - 1; i++) {
        check_wait(fault_children(b->wire, paths[i]) == 2, WAIT_MS);
        for (int behind = i + 1; behind < MEMBERS; behind++)
            check_wait(fault_children(b->wire, paths[behind]) == 1, WAIT_MS);
        check_wait(net_now_ms() - start > LONG_MS / 2 + 200 * i, WAIT_MS);
        check_ok(zkl_mutex_unlock(b->rivals[i]));
    }
    check_num(actor_end(actor, WAIT_MS), ==, ZKL_ETIMEDOUT);
    check_num(lag_end_ms(), <, LONG_MS * 3 / 2); /* the second member's own time would end here */
    check_num(net_now_ms() - start, >=, LONG_MS);
    for (int i = 0; i < MEMBERS; i++)
        check_wait(fault_children(b->wire, paths[i]) == (i == MEMBERS - 1), WAIT_MS);
    check_ok(zkl_mutex_unlock(b->rivals[MEMBERS - 1]));
    check_rest(b);
    actor_free(actor);
}

/* One deadline is for all members together, and the client does not queue for the members behind
 * one that is not free. This is so in one transaction, and one by one, as with a semaphore among
 * them. Modes: F24. */
static void one_deadline_is_for_all_members(void **state)
{
    struct bench *b = *state;
    struct zkl_member members[MEMBERS + 1];
    struct zkl_mutex *permit;
    struct zkl_multi *multi;

    check_one_deadline(b, b->multi);
    check_ok(zkl_semaphore_mutex_new(&permit, b->client, "/group/0", NULL));
    members[MEMBERS] = zkl_member_mutex(permit);
    for (int i = 0; i < MEMBERS; i++)
        members[i] = zkl_member_mutex(b->mutexes[i]);
    check_ok(zkl_multi_new(&multi, b->client, members, MEMBERS + 1));
    check_one_deadline(b, multi);
    check_ok(zkl_multi_free(multi));
    check_ok(zkl_mutex_free(permit));
}

/* All members are held when the session ends: each is lost, and the multi-lock can be acquired again
 * after its unlock. */
static void an_expiry_loses_all_members(void **state)
{
    struct bench *b = *state;
    int codes[MEMBERS];
    check_ok(zkl_multi_lock(b->multi));
    fault_expire(b->client, 0);
    check_wait(zkl_multi_still_held(b->multi, 0) == 0, WAIT_MS);
    check_num(zkl_multi_lock(b->multi), ==, ZKL_ELOST);
    check_num(zkl_multi_unlock(b->multi, codes), ==, ZKL_ELOST);
    check_ok(zkl_multi_lock(b->multi));
    check_ok(zkl_multi_unlock(b->multi, NULL));
    check_rest(b);
}

/* --- the read lock under the write lock --------------------------------------------------------- */

static void lose_downgrade(struct bench *b, enum proxy_then then, int rounds)
{
    struct zkl_mutex *read = zkl_rwlock_reader(b->rwlock), *write = zkl_rwlock_writer(b->rwlock);
    for (int i = 0; i < rounds; i++) {
        check_ok(zkl_mutex_lock(write));
        check_ok(proxy_drop_reply(b->proxy, PROXY_MULTI, 1, then));
        check_ok(zkl_mutex_lock_for(read, WAIT_MS));
        check_ok(proxy_wait_dropped(b->proxy, 0));
        check_num(fault_children(b->wire, paths[MEMBERS - 1]), ==, 2);
        check_num(zkl_mutex_token(read), ==, zkl_mutex_token(write));
        check_ok(zkl_mutex_unlock(write));
        check_num(zkl_mutex_trylock(b->rivals[MEMBERS - 1]), ==, ZKL_EBUSY);
        check_ok(zkl_mutex_unlock(read));
        check_rest(b);
    }
}

/* The answer to the transaction is lost: the client finds and adopts its node, or makes it once
 * more. */
static void cut_before_the_answer_to_a_downgrade(void **state)
{
    lose_downgrade(*state, PROXY_THEN_CUT, test_length(100, 8));
}

static void silence_before_the_answer_to_a_downgrade(void **state)
{
    lose_downgrade(*state, PROXY_THEN_SILENT, test_length(30, 1));
}

/* A leased hold ends while there is no link: it is lost immediately by its own clock, and the
 * client deletes the node once the link is back. Modes: F64. */
static void a_lease_ends_without_a_link(void **state)
{
    struct bench *b = *state;
    struct zkl_wait wait = ZKL_WAIT_INIT;
    wait.lease_ms = 300;
    check_ok(zkl_mutex_acquire(b->mutexes[0], &wait, NULL));
    proxy_refuse(b->proxy, true);
    proxy_cut(b->proxy);
    check_wait(zkl_mutex_window_ms(b->mutexes[0]) == 0, 600);
    check_num(fault_children(b->wire, paths[0]), ==, 1);
    proxy_refuse(b->proxy, false);
    check_wait(fault_children(b->wire, paths[0]) == 0, WAIT_MS);
    check_num(zkl_mutex_unlock(b->mutexes[0]), ==, ZKL_ELOST);
    check_rest(b);
}

#define test(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
#define test_cuts(f) cmocka_unit_test_setup_teardown(f, set_up_for_cuts, tear_down)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        test_cuts(cut_before_the_answer_to_create),
        test(silence_before_the_answer_to_create),
        test_cuts(cut_before_the_answer_to_stat),
        test_cuts(cut_before_the_answer_to_a_list),
        test_cuts(cut_before_the_answer_to_delete),
        test(a_multi_lock_starts_over_after_an_expiry),
        test(a_deadline_holds_without_a_link),
        test(one_deadline_is_for_all_members),
        test(an_expiry_loses_all_members),
        test_cuts(cut_before_the_answer_to_a_downgrade),
        test(silence_before_the_answer_to_a_downgrade),
        test(a_lease_ends_without_a_link),
    };
    return fault_main(argc, argv, tests, NULL);
}
