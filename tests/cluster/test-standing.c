/* SPDX-License-Identifier: Apache-2.0 */
/* What callers ask next: where a waiter stands, when a hold is suspect, and which session and server a client has. */
#include "check_error.h"
#include "kinds.h"
#include "nodes.h"

/* A client whose nodes say that. */
static struct zkl_client *client_called(const char *owner)
{
    struct zkl_client_options options = cluster_options();

    options.owner = owner;
    return world_client_with(&options);
}

static bool is_so(int waiting, const struct zkl_standing *standing, uint64_t before,
                  const char *owner)
{
    return waiting > 0 && standing->before == before && strcmp(standing->owner, owner) == 0;
}

/* A waiter of the lock has this standing: `before` contenders are before it, and its predecessor
 * has this owner text. */
static bool stands(struct lock *lock, uint64_t before, const char *owner)
{
    struct zkl_standing standing = ZKL_STANDING_INIT;

    return is_so(lock_waiting(lock, &standing), &standing, before, owner);
}

static bool op_stands(struct zkl_client *client, uint64_t op, uint64_t before, const char *owner)
{
    struct zkl_standing standing = ZKL_STANDING_INIT;

    return is_so(zkl_op_waiting(client, op, &standing), &standing, before, owner);
}

static void check_predecessor(struct lock *lock, size_t nth)
{
    struct zkl_standing standing = ZKL_STANDING_INIT;
    char node[400];

    cluster_child(lock->path, nth, node, sizeof node);
    check_num(lock_waiting(lock, &standing), >, 0);
    check_text(standing.predecessor, strrchr(node, '/') + 1);
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

/* A client that wants the path, and how it stands there when it has come. */
struct place {
    const char *kind, *owner;
    uint64_t before;
    const char *behind; /* the owner of its predecessor; NULL: it waits for nobody */
};

struct one {
    struct lock lock;
    struct party party;
    struct zkl_cancel *cancel;
};

static int free_lock(void *lock)
{
    return lock_free(lock);
}

static void open_lock(struct lock *lock, struct zkl_client *client, const char *kind,
                      const char *path)
{
    *lock = (struct lock){.kind = kinds, .path = path, .client = client};
    while (strcmp(lock->kind->name, kind) != 0)
        lock->kind++;
    lock_open(lock);
    world_keep(lock, WORLD_LOCK, free_lock);
}

/* They come one after the other. */
static struct one *line_up(const char *path, const struct place *places, size_t count)
{
    struct one *line = world_alloc(count * sizeof *line);

    for (size_t i = 0; i < count; i++) {
        struct one *o = &line[i];
        open_lock(&o->lock, client_called(places[i].owner), places[i].kind, path);
        check_nobody(lock_waiting(&o->lock, NULL));
        o->party = (struct party){.lock = &o->lock, .way = THREAD, .actor = world_actor()};
        anew(&o->party);
        o->party.wait.cancel = o->cancel = world_cancel();
        begin(&o->party);
        if (places[i].behind)
            check_wait(stands(&o->lock, places[i].before, places[i].behind), WAIT_MS);
        else
            check_ok(result(&o->party));
        check_wait(o->lock.kind->has(path, (int)i + 1), WAIT_MS);
    }
    return line;
}

static void take_turns(struct one *line, size_t from, size_t count)
{
    for (size_t i = from; i < count; i++) {
        if (i > 0)
            check_ok(result(&line[i].party));
        check_nobody(lock_waiting(&line[i].lock, NULL));
        check_ok(give(&line[i].party));
    }
}

/* Goal: the third in line sees that two are before it, and the second one's node and owner text.
 * Once the second has given up, it sees one, and the first one's text. A waiter that lists only
 * when it has to does not hear of an end far before it: its number is an upper bound. Method: four
 * clients of different owners, one path. */
WORLD_TEST(the_third_in_line_sees_who_is_before_it)
{
    static const struct place places[] = {
        {"mutex", "the first", 0, NULL},
        {"mutex", "the second", 1, "the first"},
        {"mutex", "the third", 2, "the second"},
        {"mutex", "the fourth", 3, "the third"},
    };
    struct zkl_standing standing = ZKL_STANDING_INIT;
    int64_t start_ns = zkl_now_ns();
    struct one *line = line_up(cluster_path("third"), places, 4);
    struct lock *third = &line[2].lock;

    check_predecessor(&line[1].lock, 0);
    check_predecessor(third, 1);
    check_num(lock_waiting(third, &standing), ==, 1);
    check_num(standing.since_ns, >=, start_ns);
    check_num(standing.since_ns, <=, zkl_now_ns());
    check_num(zkl_mutex_waiting(third->mutex, NULL), ==, 1);

    zkl_cancel_set(line[1].cancel);
    check_num(result(&line[1].party), ==, ZKL_ECANCELED);
    check_nobody(lock_waiting(&line[1].lock, NULL));
    check_wait(stands(third, 1, "the first"), WAIT_MS);
    check_predecessor(third, 0);
    check_true(stands(&line[3].lock, 3, "the third")); /* its own predecessor has not changed */

    take_turns(line, 0, 1);
    check_ok(result(&line[2].party));
    check_nobody(lock_waiting(third, NULL));
    zkl_cancel_set(line[3].cancel);
    check_num(result(&line[3].party), ==, ZKL_ECANCELED);
    check_ok(give(&line[2].party));
}

/* Goal: a reader waits for writers only, and a writer for every contender before it. */
WORLD_TEST(a_reader_stands_behind_writers_only)
{
    static const struct place places[] = {
        {"writer", "writer 1", 0, NULL},
        {"reader", "reader 1", 1, "writer 1"},
        {"reader", "reader 2", 1, "writer 1"},
        {"writer", "writer 2", 3, "reader 2"},
    };
    struct one *line = line_up(cluster_path("readers"), places, 4);

    check_nobody(zkl_mutex_waiting(zkl_rwlock_writer(line[1].lock.rwlock), NULL)); /* other half */
    take_turns(line, 0, 4);
}

/* Goal: requests for permits have their own queue, and the first has no request before it. Method:
 * the one permit is out, and two clients want it. */
WORLD_TEST(requests_for_permits_stand_in_line)
{
    static const struct place places[] = {
        {"permit", "has it", 0, NULL},
        {"permit", "next", 0, ""},
        {"permit", "behind", 1, "next"},
    };

    take_turns(line_up(cluster_path("permits"), places, 3), 0, 3);
}

/* Goal: several threads wait through one handle. The standing is that of the longest wait, and the
 * call returns how many they are. A contender knows owners of the same client by their text, as it
 * knows others. Method: three threads of one client; also with turns within the handle, where only
 * one queues. */
static void look_at_one_handle(const char *kind, const char *behind, uint64_t before_later)
{
    struct zkl_client *client = client_called("all of us");
    struct zkl_standing standing = ZKL_STANDING_INIT;
    struct actor *actors[3];
    struct lock lock;

    open_lock(&lock, client, kind, cluster_path("handle"));
    for (int i = 0; i < 3; i++) {
        actors[i] = world_actor();
        actor_begin(actors[i], do_lock, lock.mutex);
        if (i == 0)
            check_ok(actor_result(actors[i]));
        else
            check_wait(zkl_mutex_waiting(lock.mutex, NULL) == i, WAIT_MS);
        if (i == 1)
            check_wait(stands(&lock, 1, behind), WAIT_MS);
    }
    check_true(stands(&lock, 1, behind));
    check_ok(actor_do(actors[0], do_unlock, lock.mutex));
    check_ok(actor_result(actors[1]));
    check_wait(zkl_mutex_waiting(lock.mutex, &standing) == 1 && standing.before == before_later,
               WAIT_MS);
    for (int i = 1; i < 3; i++) {
        check_ok(actor_result(actors[i]));
        check_ok(actor_do(actors[i], do_unlock, lock.mutex));
    }
    check_nobody(zkl_mutex_waiting(lock.mutex, NULL));
    world_drop(&lock);
}

WORLD_TEST(of_a_handle_the_longest_wait_is_told)
{
    /* A thread that queues by itself has no news of its predecessor, which has the lock later. */
    look_at_one_handle("mutex", "all of us", 2);
    look_at_one_handle("sharing_mutex", "", 1);
}

/* --- operations and several locks ---------------------------------------------------------------- */

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

/* --- wrong calls -------------------------------------------------------------------------------- */

/* Goal: a question answers 0 without a detail if nobody waits, and 0 with a detail after a wrong
 * call. It then leaves the caller's memory alone. */
WORLD_TEST(a_wrong_question_is_answered_by_0)
{
    struct zkl_client *client = world_client();
    struct zkl_mutex *mutex = world_mutex(client, cluster_path("wrong"));
    struct zkl_standing standing = ZKL_STANDING_INIT;

    standing.before = 77;
    check_nobody(zkl_mutex_waiting(mutex, &standing));
    check_nobody(zkl_op_waiting(client, 12345, &standing));
    check_num(standing.before, ==, 77);
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
    struct zkl_semaphore *semaphore = world_semaphore(client, path, 1, NULL);
    struct zkl_member members[] = {zkl_member_mutex(good), zkl_member_semaphore(semaphore, 1)};
    enum zkl_reason why = ZKL_REASON_NONE;
    char node[400];

    struct zkl_multi *multi = world_multi(client, members, 2);
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
    struct zkl_client *client = world_client_through(&proxy, SESSION_MS);
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
    lose_link(proxy);
    check_wait(zkl_client_server(client, to, sizeof to) == ZKL_EDISCONNECTED, WAIT_MS);
    check_num(zkl_client_session_id(client), ==, stat.ephemeral_owner);
    check_ok(proxy_refuse(proxy, false));
    check_wait(zkl_client_server(client, to, sizeof to) > 0, WAIT_MS);
    check_ok(zkl_mutex_unlock(mutex));
}
