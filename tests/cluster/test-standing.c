/* SPDX-License-Identifier: Apache-2.0 */
/* What callers ask next: where a waiter stands, when a hold is suspect, and which session and server a client has. */
#include "cluster.h"

#include <zklock/async.h>

#include "completion.h"
#include "nodes.h"
#include "proxy.h"
#include "check_error.h"

#include <string.h>

/* A client whose nodes say that. */
static struct zkl_client *client_called(const char *owner)
{
    struct zkl_client_options options = cluster_options();

    options.owner = owner;
    return world_client_with(&options);
}

static struct zkl_standing standing_of(struct zkl_mutex *mutex)
{
    struct zkl_standing standing = ZKL_STANDING_INIT;

    check_num(zkl_mutex_waiting(mutex, &standing), >, 0);
    return standing;
}

/* A waiter of the mutex has this standing: `before` contenders are before it, and its predecessor
 * has this owner text. */
static bool stands(struct zkl_mutex *mutex, uint64_t before, const char *owner)
{
    struct zkl_standing standing = ZKL_STANDING_INIT;

    return zkl_mutex_waiting(mutex, &standing) > 0 && standing.before == before &&
           strcmp(standing.owner, owner) == 0;
}

static void check_predecessor(struct zkl_mutex *mutex, const char *path, size_t nth)
{
    char node[400];

    cluster_child(path, nth, node, sizeof node);
    check_text(standing_of(mutex).predecessor, strrchr(node, '/') + 1);
}

/* A plain no. */
static void check_nobody(int said)
{
    check_num(said, ==, 0);
    check_text(zkl_error_detail(), "");
}

/* A wrong call. */
static void check_wrong(int64_t said, const char *word)
{
    check_num(said, ==, 0);
    if (!strstr(zkl_error_detail(), word))
        fail_msg("\"%s\" has no \"%s\" in it", zkl_error_detail(), word);
}

/* --- where a waiter stands --------------------------------------------------------------------- */

/* One of several clients that lock one path. */
struct one {
    struct zkl_client *client;
    struct zkl_mutex *mutex;
    struct zkl_cancel *cancel;
    struct take take;
    struct actor *actor;
};

static void one_begins(struct one *o, const char *owner, const char *path)
{
    o->client = client_called(owner);
    o->mutex = world_mutex(o->client, path);
    o->cancel = world_cancel();
    o->take = take_of(o->mutex);
    o->take.wait.cancel = o->cancel;
    o->actor = world_actor();
    actor_begin(o->actor, do_acquire, &o->take);
}

/* Goal: the third in line sees that two are before it, and the second one's node and owner text.
 * Once the second has given up, it sees one, and the first one's text. A waiter that lists only
 * when it has to does not hear of an end far before it: its number is an upper bound. Method: four
 * clients of different owners, one path. */
WORLD_TEST(the_third_in_line_sees_who_is_before_it)
{
    const char *path = cluster_path("third");
    struct one first, second, third, fourth;
    int64_t start_ns = zkl_now_ns();

    one_begins(&first, "the first", path);
    check_ok(actor_result(first.actor));
    check_nobody(zkl_mutex_waiting(first.mutex, NULL));
    one_begins(&second, "the second", path);
    check_wait(stands(second.mutex, 1, "the first"), WAIT_MS);
    check_predecessor(second.mutex, path, 0);
    one_begins(&third, "the third", path);
    check_wait(stands(third.mutex, 2, "the second"), WAIT_MS);
    check_predecessor(third.mutex, path, 1);
    check_num(standing_of(third.mutex).since_ns, >=, start_ns);
    check_num(standing_of(third.mutex).since_ns, <=, zkl_now_ns());
    check_num(zkl_mutex_waiting(third.mutex, NULL), ==, 1);
    one_begins(&fourth, "the fourth", path);
    check_wait(stands(fourth.mutex, 3, "the third"), WAIT_MS);

    zkl_cancel_set(second.cancel);
    check_num(actor_result(second.actor), ==, ZKL_ECANCELED);
    check_nobody(zkl_mutex_waiting(second.mutex, NULL));
    check_wait(stands(third.mutex, 1, "the first"), WAIT_MS);
    check_predecessor(third.mutex, path, 0);
    check_true(stands(fourth.mutex, 3, "the third")); /* its own predecessor has not changed */

    check_ok(actor_do(first.actor, do_unlock, first.mutex));
    check_ok(actor_result(third.actor));
    check_nobody(zkl_mutex_waiting(third.mutex, NULL));
    zkl_cancel_set(fourth.cancel);
    check_num(actor_result(fourth.actor), ==, ZKL_ECANCELED);
    check_ok(actor_do(third.actor, do_unlock, third.mutex));
}

/* Goal: a reader waits for writers only, and a writer for every contender before it. Method: a
 * writer holds. Then two readers and a writer come. */
WORLD_TEST(a_reader_stands_behind_writers_only)
{
    const char *path = cluster_path("readers");
    struct zkl_client *clients[4];
    struct zkl_rwlock *locks[4];
    struct actor *actors[4];
    static const char *const owners[] = {"writer 1", "reader 1", "reader 2", "writer 2"};
    static const int before[] = {0, 1, 1, 3};

    for (int i = 0; i < 4; i++) {
        clients[i] = client_called(owners[i]);
        locks[i] = world_rwlock(clients[i], path, NULL);
        actors[i] = world_actor();
        bool reads = i == 1 || i == 2;
        struct zkl_mutex *half = reads ? zkl_rwlock_reader(locks[i]) : zkl_rwlock_writer(locks[i]);
        actor_begin(actors[i], do_lock, half);
        if (i == 0)
            check_ok(actor_result(actors[i]));
        else
            check_wait(stands(half, (uint64_t)before[i], i == 3 ? "reader 2" : "writer 1"),
                       WAIT_MS);
    }
    check_nobody(zkl_mutex_waiting(zkl_rwlock_writer(locks[1]), NULL)); /* its other half */
    check_ok(actor_do(actors[0], do_unlock, zkl_rwlock_writer(locks[0])));
    for (int i = 1; i < 3; i++) {
        check_ok(actor_result(actors[i]));
        check_ok(actor_do(actors[i], do_unlock, zkl_rwlock_reader(locks[i])));
    }
    check_ok(actor_result(actors[3]));
    check_ok(actor_do(actors[3], do_unlock, zkl_rwlock_writer(locks[3])));
}

/* Goal: several threads wait through one handle. The standing is that of the longest wait, and the
 * call returns how many they are. A contender knows owners of the same client by their text, as it
 * knows others. Method: three threads of one client; also with turns within the handle, where only
 * one queues. */
static void look_at_one_handle(int handoffs_max)
{
    struct zkl_mutex_options options = ZKL_MUTEX_OPTIONS_INIT;
    struct zkl_client *client = client_called("all of us");
    struct actor *actors[3];
    struct take takes[3];

    options.local_handoffs_max = handoffs_max;
    struct zkl_mutex *mutex = world_mutex_with(client, cluster_path("handle"), &options);
    for (int i = 0; i < 3; i++) {
        takes[i] = take_of(mutex);
        actors[i] = world_actor();
        actor_begin(actors[i], do_acquire, &takes[i]);
        if (i == 0)
            check_ok(actor_result(actors[i]));
        else
            check_wait(zkl_mutex_waiting(mutex, NULL) == i, WAIT_MS);
        if (i == 1)
            check_wait(stands(mutex, 1, handoffs_max > 0 ? "" : "all of us"), WAIT_MS);
    }
    check_true(stands(mutex, 1, handoffs_max > 0 ? "" : "all of us"));
    check_ok(actor_do(actors[0], do_unlock, mutex));
    check_ok(actor_result(actors[1]));
    /* A thread that queues by itself has no news of its predecessor, which has the lock now. */
    check_wait(zkl_mutex_waiting(mutex, NULL) == 1, WAIT_MS);
    check_wait(standing_of(mutex).before == (handoffs_max > 0 ? 1 : 2), WAIT_MS);
    for (int i = 1; i < 3; i++) {
        check_ok(actor_result(actors[i]));
        check_ok(actor_do(actors[i], do_unlock, mutex));
    }
    check_nobody(zkl_mutex_waiting(mutex, NULL));
}

WORLD_TEST(of_a_handle_the_longest_wait_is_told)
{
    look_at_one_handle(0);
    look_at_one_handle(1000);
}

/* --- operations, permits and several locks ------------------------------------------------------ */

static bool op_stands(struct zkl_client *client, uint64_t op, uint64_t before, const char *owner)
{
    struct zkl_standing standing = ZKL_STANDING_INIT;

    return zkl_op_waiting(client, op, &standing) == 1 && standing.before == before &&
           strcmp(standing.owner, owner) == 0;
}

/* Goal: a program asks for the standing of an operation by its number. Method: two operations of
 * different owners, which wait for one lock, and one of a multi-lock whose second member is
 * held. */
WORLD_TEST(an_operation_is_asked_by_its_number)
{
    const char *path = cluster_path("op");
    struct zkl_client *holder = client_called("the holder"), *client = client_called("loop");
    struct zkl_mutex *held = world_mutex(holder, path), *mutex = world_mutex(client, path);
    struct zkl_mutex *free_one = world_mutex(client, cluster_path("a"));
    struct zkl_member members[] = {zkl_member_mutex(mutex), zkl_member_mutex(free_one)};
    struct zkl_owner *owners[3] = {world_owner(), world_owner(), world_owner()};
    struct completion done[3] = {0};
    uint64_t ops[3];

    struct zkl_multi *multi = world_multi(client, members, 2);
    check_ok(zkl_mutex_lock(held));
    for (int i = 0; i < 2; i++) {
        check_ok(zkl_mutex_acquire_async(owners[i], mutex, NULL, NULL, note_completion, &done[i],
                                         &ops[i]));
        check_wait(op_stands(client, ops[i], (uint64_t)i + 1, i == 0 ? "the holder" : "loop"),
                   WAIT_MS);
    }
    check_ok(
        zkl_multi_acquire_async(owners[2], multi, NULL, NULL, note_completion, &done[2], &ops[2]));
    check_wait(op_stands(client, ops[2], 3, "loop"), WAIT_MS);
    check_num(zkl_mutex_waiting(mutex, NULL), ==, 3);
    check_nobody(zkl_op_waiting(client, ops[2] + 1, NULL));
    check_ok(zkl_mutex_unlock(held));
    for (int i = 0; i < 3; i++) {
        check_ok(completion_code(&done[i]));
        check_nobody(zkl_op_waiting(client, ops[i], NULL));
        if (i < 2)
            check_ok(async_unlock(owners[i], mutex));
    }
    check_ok(zkl_multi_unlock_async(owners[2], multi, NULL, note_completion, &done[2]));
    check_ok(completion_code(&done[2]));
}

static struct zkl_semaphore *one_permit(struct zkl_client *client, const char *path)
{
    struct zkl_semaphore *semaphore = world_semaphore(client, path, 1, NULL);
    return semaphore;
}

static bool permit_stands(struct zkl_semaphore *semaphore, uint64_t before, const char *owner)
{
    struct zkl_standing standing = ZKL_STANDING_INIT;

    return zkl_semaphore_waiting(semaphore, &standing) == 1 && standing.before == before &&
           strcmp(standing.owner, owner) == 0;
}

/* Goal: requests for permits have their own queue, and the first has no request before it. Method:
 * the one permit is out, and two clients want it. */
WORLD_TEST(requests_for_permits_stand_in_line)
{
    const char *path = cluster_path("permits");
    struct zkl_client *clients[3] = {client_called("has it"), client_called("next"),
                                     client_called("behind")};
    struct zkl_semaphore *semaphores[3];
    struct zkl_permit *permits[3];
    struct completion done[3] = {0};

    for (int i = 0; i < 3; i++) {
        semaphores[i] = one_permit(clients[i], path);
        check_nobody(zkl_semaphore_waiting(semaphores[i], NULL));
        check_ok(zkl_semaphore_acquire_async(semaphores[i], 1, NULL, &permits[i], note_completion,
                                             &done[i], NULL));
        if (i == 0)
            check_ok(completion_code(&done[i]));
        else
            check_wait(permit_stands(semaphores[i], (uint64_t)i - 1, i == 1 ? "" : "next"),
                       WAIT_MS);
        check_wait(cluster_children(below(path, "leases")) == (i == 0 ? 1 : 2), WAIT_MS);
    }
    for (int i = 0; i < 3; i++) {
        if (i > 0)
            check_ok(completion_code(&done[i]));
        check_ok(zkl_permit_release(permits[i]));
    }
}

/* --- wrong calls -------------------------------------------------------------------------------- */

/* Goal: a question answers 0 without a detail if nobody waits, and 0 with a detail after a wrong
 * call. It then leaves the caller's memory alone. */
WORLD_TEST(a_wrong_question_is_answered_by_0)
{
    struct zkl_client *client = world_client();
    struct zkl_mutex *mutex = world_mutex(client, cluster_path("wrong"));
    struct zkl_standing standing = ZKL_STANDING_INIT, bad = {.size = 3};

    standing.before = 77;
    check_nobody(zkl_mutex_waiting(mutex, &standing));
    check_nobody(zkl_op_waiting(client, 12345, &standing));
    check_num(standing.before, ==, 77);
    check_wrong(zkl_mutex_waiting(NULL, &standing), "NULL");
    check_wrong(zkl_semaphore_waiting(NULL, &standing), "NULL");
    check_wrong(zkl_op_waiting(NULL, 1, &standing), "NULL");
    check_wrong(zkl_mutex_waiting(mutex, &bad), "ZKL_STANDING_INIT");
    check_wrong(zkl_op_waiting(client, 1, &bad), "ZKL_STANDING_INIT");
    check_wrong(zkl_mutex_hold_state(NULL, NULL), "NULL");
    check_wrong(zkl_client_session_id(NULL), "NULL");
    check_fails(zkl_client_server(client, NULL, 8), ZKL_EINVAL, "buf");
    check_closed(zkl_client_close(client, WAIT_MS));
    check_wrong(zkl_mutex_waiting(mutex, &standing), "zkl_mutex_waiting");
    check_wrong(zkl_op_waiting(client, 1, &standing), "zkl_op_waiting");
    check_wrong(zkl_client_session_id(client), "zkl_client_session_id");
    check_num(zkl_client_server(client, NULL, 0), ==, ZKL_ECLOSED);
    check_num(standing.before, ==, 77);
}

/* --- how a hold is ------------------------------------------------------------------------------ */

static bool is(struct zkl_mutex *mutex, int state, enum zkl_reason reason)
{
    enum zkl_reason why = ZKL_REASON_OWNER_EXITED;

    return zkl_mutex_hold_state(mutex, &why) == state && why == reason;
}

/* Goal: a window that ended unnoticed, with the link up, counts. The end of a session is a reason
 * of its own. Method: the server's answers stay away. Then the test ends the session. */
WORLD_TEST(a_hold_is_suspect_without_answers)
{
    const char *path = cluster_path("window");
    struct proxy *proxy;
    struct zkl_client *client = world_client_through(&proxy, 2000);
    struct zkl_mutex *mutex = world_mutex(client, path);
    enum zkl_reason why;

    check_ok(zkl_mutex_lock(mutex));
    int64_t session = zkl_client_session_id(client);
    check_num(session, !=, 0);
    check_ok(proxy_refuse(proxy, true));
    proxy_hole(proxy, PROXY_BOTH);
    check_wait(zkl_mutex_hold_state(mutex, &why) == ZKL_HOLD_SUSPECT, WAIT_MS);
    check_true(why == ZKL_REASON_WINDOW || why == ZKL_REASON_LINK);
    proxy_cut(proxy);
    check_wait(cluster_children(path) <= 0, WAIT_MS);
    proxy_heal(proxy);
    check_ok(proxy_refuse(proxy, false));
    check_wait(is(mutex, ZKL_HOLD_LOST, ZKL_REASON_EXPIRED), WAIT_MS);
    check_wait(zkl_client_session_id(client) != 0, WAIT_MS);
    check_num(zkl_client_session_id(client), !=, session);
    check_num(zkl_mutex_unlock(mutex), ==, ZKL_ELOST);
}

/* Goal: the state of a multi-lock is that of its worst member. Method: the test deletes one of two nodes. */
WORLD_TEST(of_several_the_worst_counts)
{
    const char *path = cluster_path("worst");
    struct zkl_client *client = world_client();
    struct zkl_mutex *good = world_mutex(client, cluster_path("good"));
    struct zkl_semaphore *semaphore = one_permit(client, path);
    struct zkl_member members[] = {zkl_member_mutex(good), zkl_member_semaphore(semaphore, 1)};
    enum zkl_reason why = ZKL_REASON_NONE;
    char node[400];

    struct zkl_multi *multi = world_multi(client, members, 2);
    check_wrong(zkl_multi_hold_state(NULL, &why), "NULL");
    check_wrong(zkl_permit_hold_state(NULL, &why), "NULL");
    check_ok(zkl_multi_lock(multi));
    check_num(zkl_multi_node_path(multi, 1, node, sizeof node), >, 0);
    check_ok(wire_delete(raw, cluster_at(node), -1));
    check_wait(zkl_multi_hold_state(multi, &why) == ZKL_HOLD_LOST, WAIT_MS);
    check_num(why, ==, ZKL_REASON_NODE_DELETED);
    check_true(is(good, ZKL_HOLD_HELD, ZKL_REASON_NONE));
    check_num(zkl_multi_unlock(multi, NULL), ==, ZKL_ELOST);
}

/* --- the client --------------------------------------------------------------------------------- */

/* Goal: the session is the owner of the client's nodes on the server, and the server is the one
 * that the link leads to. Method: the test reads the owner of a lock's node. A proxy with an
 * address of its own refuses the client and accepts it again. */
WORLD_TEST(session_and_server_are_told)
{
    const char *path = cluster_path("session");
    struct proxy *proxy;
    struct zkl_client *client = world_client_through(&proxy, BRIEF_MS);
    struct zkl_mutex *mutex = world_mutex(client, path);
    struct wire_stat stat;
    char node[400], to[80], cut[6];

    check_ok(zkl_mutex_lock(mutex));
    cluster_child(path, 0, node, sizeof node);
    check_ok(wire_exists(raw, node, &stat));
    check_num(zkl_client_session_id(client), ==, stat.ephemeral_owner);
    check_text(zkl_error_detail(), "");
    check_num(zkl_client_server(client, to, sizeof to), ==, strlen(proxy_address(proxy)));
    check_text(to, proxy_address(proxy));
    check_num(zkl_client_server(client, cut, sizeof cut), ==, strlen(proxy_address(proxy)));
    check_num(strlen(cut), ==, sizeof cut - 1);
    check_ok(proxy_refuse(proxy, true));
    proxy_cut(proxy);
    check_wait(zkl_client_server(client, to, sizeof to) == ZKL_EDISCONNECTED, WAIT_MS);
    check_num(zkl_client_session_id(client), ==, stat.ephemeral_owner);
    check_ok(proxy_refuse(proxy, false));
    check_wait(zkl_client_server(client, to, sizeof to) > 0, WAIT_MS);
    check_ok(zkl_mutex_unlock(mutex));
}
