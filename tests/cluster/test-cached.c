/* SPDX-License-Identifier: Apache-2.0 */
/* Readers in one node that stays (zkl_rwlock_retain_readers): they send no requests, and do no
 * other client harm. */
#include "inside.h"

#include "api/cached_reader.h"
#include "cached.h"
#include "completion.h"
#include "driver/clock.h"
#include "outage.h"

#include <zklock/inspect.h>

#include <stdatomic.h>

#define CYCLES 1000
#define AT_ONCE_MS 5000

/* It alone has a node. */
static void keep_alone(struct user *u, const char *path)
{
    keep(u);
    check_num(cluster_children(path), ==, 1);
}

static int do_lock_soon(void *mutex)
{
    return zkl_mutex_lock_for(mutex, 100);
}

/* --- without requests ------------------------------------------------------------------------- */

/* Goal: readers come and go on one node, with its token and a window, and a thread may come in again. Method:
 * a proxy counts. */
WORLD_TEST(cached_readers_send_nothing)
{
    const char *path = cluster_path("cached");
    struct zkl_grant grant = ZKL_GRANT_INIT;
    struct proxy *proxy;
    struct user u = user_of(world_client_through(&proxy, SESSION_MS), path, LONG_MS);
    char node[300];

    keep_alone(&u, path);
    proxy_reset_counts(proxy);
    check_ok(zkl_mutex_acquire(u.read, NULL, &grant));
    check_num(grant.window_ms, >, 0);
    cycle(u.read, CYCLES); /* again, in the same thread */
    check_num(zkl_mutex_hold_count(u.read), ==, 1);
    check_num(zkl_mutex_token(u.read), ==, grant.token);
    check_true(zkl_mutex_still_held(u.read, 1));
    check_ok(zkl_mutex_check(u.read, 1));
    check_num(zkl_mutex_hold_state(u.read, NULL), ==, ZKL_HOLD_HELD);
    check_num(zkl_mutex_node_path(u.read, node, sizeof node), >, 0);
    check_num(zkl_mutex_renew(u.read, 1000), ==, ZKL_EINVAL);
    check_num(zkl_mutex_lock(u.write), ==, ZKL_EDEADLK);
    check_num(zkl_rwlock_free(u.rwlock), ==, ZKL_EBUSY);
    check_ok(zkl_mutex_unlock(u.read));
    check_num(zkl_mutex_unlock(u.read), ==, ZKL_ENOTOWNER);
    check_num(zkl_mutex_token(u.read), ==, 0);
    cycle(u.read, CYCLES);
    check_num(requests(proxy), ==, 0);
    check_num(cluster_children(path), ==, 1);
    check_ok(zkl_rwlock_retain_readers(u.rwlock, 0));
    check_wait(cluster_children(path) == 0, WAIT_MS);
    read_once(&u);
    check_num(cluster_children(path), ==, 0);
}

/* Goal: what is asked with a lease, or below the write lock, has a node of its own. */
WORLD_TEST(who_needs_a_node_of_its_own_has_one)
{
    const char *path = cluster_path("own");
    struct user u = user_of(world_client(), path, LONG_MS);
    struct take leased = take_of(u.read);

    keep_alone(&u, path);
    leased.wait.lease_ms = 60000;
    check_ok(do_acquire(&leased));
    check_num(cluster_children(path), ==, 2);
    check_ok(zkl_mutex_renew(u.read, 60000));
    check_ok(zkl_mutex_unlock(u.read));
    check_ok(zkl_mutex_lock_for(u.write, AT_ONCE_MS));
    check_num(cluster_children(path), ==, 1);
    check_ok(zkl_mutex_lock_for(u.read, AT_ONCE_MS));
    check_num(zkl_mutex_token(u.read), ==, zkl_mutex_token(u.write));
    check_ok(zkl_mutex_unlock(u.write));
    check_ok(zkl_mutex_unlock(u.read));
    check_num(cluster_children(path), ==, 0);
}

/* --- writers ------------------------------------------------------------------------------------ */

static bool is_done_or_queues(struct actor *actor, const char *path)
{
    return actor_is_done(actor) || cluster_children(path) == 3;
}

/* Until its client has heard of the writer, a reader that comes is in. */
static void come_too_late(struct actor *late, struct zkl_mutex *read, const char *path)
{
    for (;;) {
        actor_begin(late, do_lock, read);
        check_wait(is_done_or_queues(late, path), WAIT_MS);
        if (!actor_is_done(late))
            return;
        check_ok(actor_result(late));
        check_ok(actor_do(late, do_unlock, read));
    }
}

/* Goal: a writer of another client gets the lock immediately while no reader is in, and else with
 * the last unlock. Readers that come meanwhile wait behind the writer. */
WORLD_TEST(a_writer_gets_it_from_cached_readers)
{
    const char *path = cluster_path("writer");
    struct user r = user_of(world_client(), path, LONG_MS), w = user_of(world_client(), path, 0);
    struct actor *reader = world_actor(), *late = world_actor(), *writer = world_actor();

    for (int i = 0; i < 5; i++) {
        keep_alone(&r, path);
        check_ok(zkl_mutex_lock_for(w.write, AT_ONCE_MS));
        check_ok(zkl_mutex_unlock(w.write));
    }
    keep_alone(&r, path);
    check_ok(actor_do(reader, do_lock, r.read));
    actor_begin(writer, do_lock, w.write);
    check_wait(cluster_children(path) == 2, WAIT_MS);
    come_too_late(late, r.read, path);
    check_true(!actor_is_done(writer));
    check_ok(actor_do(reader, do_unlock, r.read));
    check_ok(actor_result(writer));
    check_true(!actor_is_done(late));
    check_ok(actor_do(writer, do_unlock, w.write));
    check_ok(actor_result(late));
    check_ok(actor_do(late, do_unlock, r.read));
}

/* Goal: a try of the writer succeeds where no reader is in, with nodes of several clients too. It
 * is busy where a reader is in. A writer of the same handle needs no request to another client. */
WORLD_TEST(tries_get_what_nobody_is_in)
{
    const char *path = cluster_path("try");
    struct user a = user_of(world_client(), path, LONG_MS),
                b = user_of(world_client(), path, LONG_MS);
    struct user w = user_of(world_client(), path, 0);
    struct actor *reader = world_actor();

    read_once(&a);
    read_once(&b);
    check_num(cluster_children(path), ==, 2);
    check_try_gets(w.write);
    check_ok(zkl_mutex_unlock(w.write));
    check_num(cluster_children(path), ==, 0);
    keep_alone(&a, path);
    check_ok(zkl_mutex_trylock(a.write));
    check_ok(zkl_mutex_unlock(a.write));
    keep_alone(&a, path);
    check_ok(actor_do(reader, do_lock, a.read));
    check_num(zkl_mutex_trylock(w.write), ==, ZKL_EBUSY);
    check_num(zkl_mutex_trylock(a.write), ==, ZKL_EBUSY);
    check_ok(actor_do(reader, do_unlock, a.read));
    check_wait(cluster_children(path) == 0, WAIT_MS); /* both have closed it */
}

/* Of those at the path, how many have the mark that a try of a writer asks for. */
static int marked(const char *path)
{
    int count = 0;
    for (int i = 0; i < cluster_children(path); i++) {
        char node[300];
        cluster_child(path, (size_t)i, node, sizeof node);
        count += zkl_name_is_retained(strrchr(node, '/') + 1);
    }
    return count;
}

/* Goal: only a node that may become the one of all readers has the mark, and tries of other clients
 * wait for a marked node. One of several readers that queue together has it; a node of a multi-lock
 * never has it. The first reader that asks gets the mark. When that reader gives up, the next one
 * that asks gets it. */
WORLD_TEST(one_reader_at_a_time_has_the_mark)
{
    const char *path = cluster_path("mark");
    struct user r = user_of(world_client(), path, LONG_MS), w = user_of(world_client(), path, 0);
    struct actor *actors[4];
    struct zkl_member member = zkl_member_mutex(r.read);

    struct zkl_multi *multi = world_multi(r.client, &member, 1);
    for (int i = 0; i < 4; i++)
        actors[i] = world_actor();
    check_ok(zkl_mutex_lock(w.write));
    actor_begin(actors[0], do_multi_lock, multi);
    check_wait(cluster_children(path) == 2, WAIT_MS);
    check_num(marked(path), ==, 0);
    check_num(actor_do(actors[1], do_lock_soon, r.read), ==, ZKL_ETIMEDOUT);
    check_wait(cluster_children(path) == 2, WAIT_MS);
    for (int i = 1; i < 4; i++) {
        actor_begin(actors[i], do_lock, r.read);
        check_wait(cluster_children(path) == 2 + i, WAIT_MS);
        check_num(marked(path), ==, 1);
    }
    check_ok(zkl_mutex_unlock(w.write));
    for (int i = 0; i < 4; i++)
        check_ok(actor_result(actors[i]));
    check_num(marked(path), ==, 1);
    check_ok(actor_do(actors[0], do_multi_unlock, multi));
    for (int i = 1; i < 4; i++)
        check_ok(actor_do(actors[i], do_unlock, r.read));
    keep_alone(&r, path);
}

/* --- requests to release ------------------------------------------------------------------------ */

/* They are in, and are asked to release. */
static void ask_readers(struct user *u, struct actor *other, struct zkl_client *asker, char *node,
                        size_t size)
{
    struct zkl_wait ask_only = ZKL_WAIT_INIT;

    ask_only.deadline_ns = 1; /* long ago */
    check_ok(zkl_mutex_lock(u->read));
    check_ok(actor_do(other, do_lock, u->read));
    check_num(zkl_mutex_node_path(u->read, node, size), >, 0);
    check_num(zkl_mutex_revoke_requested(u->read), ==, 0);
    check_num(zkl_revoke(asker, node, &ask_only, 0), ==, ZKL_ETIMEDOUT);
    check_wait(zkl_mutex_revoke_requested(u->read) == 1, WAIT_MS);
}

/* Goal: the readers that are in hear once that somebody asks for their node, by the callback and when they ask, and that
 * the node was deleted. No other reader comes in after either. Nobody hears of a request that comes while no reader is
 * in. */
WORLD_TEST(a_request_is_told_to_who_is_in)
{
    const char *path = cluster_path("asked");
    struct user u = user_of(world_client(), path, LONG_MS);
    struct zkl_client *asker = world_client();
    static struct notes notes = NOTES_INIT;
    struct actor *other = world_actor(), *late = world_actor();
    char node[300];

    check_ok(zkl_mutex_set_callback(u.read, take_note, &notes));
    keep_alone(&u, path);
    cluster_child(path, 0, node, sizeof node);
    check_ok(wire_set(raw, node, "__REVOKE__", -1));
    check_wait(cluster_children(path) == 0, WAIT_MS);
    check_num(noted(&notes), ==, 0);
    for (size_t broken = 0; broken < 2; broken++) {
        keep_alone(&u, path);
        ask_readers(&u, other, asker, node, sizeof node);
        check_note(&notes, broken, ZKL_HOLD_REVOKE_REQUESTED, ZKL_REASON_NONE);
        check_ok(actor_do(late, do_lock, u.read)); /* a node of its own */
        check_num(cluster_children(path), ==, 2);
        check_ok(actor_do(late, do_unlock, u.read));
        if (broken) {
            check_ok(zkl_break(asker, node, zkl_mutex_token(u.read), 0, WAIT_MS));
            check_note(&notes, 2, ZKL_HOLD_LOST, ZKL_REASON_NODE_DELETED);
        }
        check_num(actor_do(other, do_unlock, u.read), ==, broken ? ZKL_ELOST : 0);
        check_num(zkl_mutex_unlock(u.read), ==, broken ? ZKL_ELOST : 0);
        check_wait(cluster_children(path) == 0, WAIT_MS);
    }
    check_num(noted(&notes), ==, 3);
    keep_alone(&u, path);
}

/* Goal: no reader comes in between the news and the end of the gate: that reader would never hear
 * the news. Method: the test makes that moment by hand. It gives the hold the news, and enters
 * before the core has settled. */
WORLD_TEST(nobody_comes_in_unheard)
{
    const char *path = cluster_path("unheard");
    static const struct zkl_notification news[] = {
        {.type = ZKL_NOTIFY_STATE, .state = ZKL_HOLD_SUSPECT, .reason = ZKL_REASON_LINK},
        {.type = ZKL_NOTIFY_STATE, .state = ZKL_HOLD_REVOKE_REQUESTED}};
    struct zkl_wait wait = ZKL_WAIT_INIT;
    struct user u = user_of(world_client(), path, LONG_MS);
    struct zkl_hold hold = {.mutex = u.read};

    for (int i = 0; i < 2; i++) {
        struct zkl_driver *d = u.client->driver;
        keep_alone(&u, path);
        zkl_driver_lock(d);
        zkl_place_notification(NULL, u.rwlock->cache.holder, &news[i]);
        bool entered = zkl_cached_enter(&hold, &wait);
        zkl_driver_unlock(d);
        check_true(!entered);
        check_ok(zkl_rwlock_retain_readers(u.rwlock, LONG_MS)); /* the core settles */
        check_wait(cluster_children(path) == 0, WAIT_MS);
    }
}

/* Goal: no reader comes in after the time for which the last list was good. This holds even if the
 * client could not close the gate yet, as after the process stood still. Method: the test holds the
 * client's mutex, so that the client does nothing. */
WORLD_TEST(nobody_comes_in_late)
{
    const char *path = cluster_path("late");
    struct zkl_wait wait = ZKL_WAIT_INIT;
    struct user u = user_of(world_client_of(BRIEF_MS), path, LONG_MS);
    struct zkl_hold hold = {.mutex = u.read};

    keep_alone(&u, path);
    zkl_driver_lock(u.client->driver);
    atomic_llong *until = &u.rwlock->cache.gate.until_boot;
    check_wait(atomic_load(until) <= zkl_clock_boot_ns(), WAIT_MS);
    bool is_open = atomic_load(until) != 0;
    bool entered = zkl_cached_enter(&hold, &wait);
    zkl_driver_unlock(u.client->driver);
    check_true(is_open);
    check_true(!entered);
}

/* --- operations ----------------------------------------------------------------------------------- */

struct obstacle {
    sem_t gate;
    atomic_bool is_there;
};

static void stand_in_the_way(int code, void *arg)
{
    struct obstacle *obstacle = arg;
    (void)code;
    atomic_store(&obstacle->is_there, true);
    while (sem_wait(&obstacle->gate) != 0)
        ;
}

/* Goal: an owner that is in may enter again by an operation, and leave before the callback has
 * come, in any order. Its count is right, and the callback reports what it had. Method: the
 * client's callbacks wait meanwhile. The address sanitizer sees a look at freed memory. */
WORLD_TEST(an_operation_enters_again)
{
    const char *path = cluster_path("again");
    struct user u = user_of(world_client(), path, LONG_MS);
    struct zkl_owner *owner = world_owner(), *first = world_owner();
    struct obstacle obstacle;

    check_ok(sem_init(&obstacle.gate, 0, 0));
    for (int early = 0; early <= 2; early++) {
        struct completion done = {0};
        struct zkl_grant grant = ZKL_GRANT_INIT;
        keep_alone(&u, path);
        atomic_init(&obstacle.is_there, false);
        check_ok(
            zkl_mutex_acquire_async(first, u.read, NULL, NULL, stand_in_the_way, &obstacle, NULL));
        check_wait(atomic_load(&obstacle.is_there), WAIT_MS);
        zkl_owner_use(owner);
        check_ok(zkl_mutex_lock(u.read));
        uint64_t token = zkl_mutex_token(u.read);
        check_ok(
            zkl_mutex_acquire_async(owner, u.read, NULL, &grant, note_completion, &done, NULL));
        check_num(zkl_mutex_hold_count(u.read), ==, 2);
        for (int i = 0; i < early; i++)
            check_ok(zkl_mutex_unlock(u.read));
        check_num(zkl_mutex_hold_count(u.read), ==, 2 - early);
        check_ok(
            zkl_rwlock_retain_readers(u.rwlock, LONG_MS)); /* the last unlock deletes the node */
        check_ok(sem_post(&obstacle.gate));
        check_ok(completion_code(&done));
        check_true(grant.token == token);
        check_num(grant.hold_count, ==, 2);
        for (int i = early; i < 2; i++)
            check_ok(zkl_mutex_unlock(u.read));
        check_num(zkl_mutex_unlock(u.read), ==, ZKL_ENOTOWNER);
        zkl_owner_use(NULL);
        check_ok(async_unlock(first, u.read));
        check_wait(cluster_children(path) == 0, WAIT_MS);
    }
    check_ok(sem_destroy(&obstacle.gate));
}

/* --- how it ends ------------------------------------------------------------------------------------ */

/* Goal: all who are in hear of a loss, whoever asks, and the next one has a node of its own. */
WORLD_TEST(a_loss_is_told_to_all_who_are_in)
{
    const char *path = cluster_path("lost");
    struct user u = user_of(world_client(), path, LONG_MS);
    struct actor *other = world_actor();
    char node[300];

    keep_alone(&u, path);
    check_ok(zkl_mutex_lock(u.read));
    check_ok(actor_do(other, do_lock, u.read));
    check_num(cluster_children(path), ==, 1);
    cluster_child(path, 0, node, sizeof node);
    check_ok(wire_delete(raw, node, -1));
    check_wait(zkl_mutex_check(u.read, 0) == ZKL_ELOST, WAIT_MS);
    check_num(zkl_mutex_window_ms(u.read), ==, 0);
    check_num(zkl_mutex_token(u.read), ==, 0);
    check_num(zkl_mutex_lock(u.read), ==, ZKL_ELOST);
    check_num(zkl_mutex_hold_state(u.read, NULL), ==, ZKL_HOLD_LOST);
    check_num(actor_do(other, do_unlock, u.read), ==, ZKL_ELOST);
    check_num(zkl_mutex_unlock(u.read), ==, ZKL_ELOST);
    check_ok(zkl_mutex_lock(u.read));
    check_true(zkl_mutex_still_held(u.read, 1));
    check_ok(zkl_mutex_unlock(u.read));
}

/* Goal: a thread that ends while it is in counts as out. Another thread that is in stays in. The
 * test can free the handle. */
WORLD_TEST(a_thread_that_ends_is_out)
{
    const char *path = cluster_path("exit");
    struct user u = user_of(world_client(), path, LONG_MS), w = user_of(world_client(), path, 0);
    struct actor *other = world_actor();

    keep_alone(&u, path);
    check_ok(actor_do(other, do_lock, u.read));
    check_ok(zkl_mutex_lock(u.read));
    world_drop(other);
    check_true(zkl_mutex_still_held(u.read, 1));
    check_ok(zkl_mutex_unlock(u.read));
    check_ok(zkl_mutex_lock_for(w.write, AT_ONCE_MS));
    check_ok(zkl_mutex_unlock(w.write));
}

struct leaving {
    struct user *user;
    int rc;
    bool completed;
};

/* The last one, of a node that is closed. */
static void *leave_with_pending(void *arg)
{
    struct leaving *leaving = arg;

    leaving->rc = zkl_mutex_lock(leaving->user->read);
    if (leaving->rc == 0)
        leaving->rc = zkl_rwlock_retain_readers(leaving->user->rwlock, LONG_MS);
    if (leaving->rc != 0)
        return NULL;
    pthread_cancel(pthread_self());
    leaving->rc = zkl_mutex_unlock(leaving->user->read);
    leaving->completed = true;
    pthread_testcancel();
    return NULL;
}

/* Goal: with a cancellation pending a last unlock, which sends the node's delete, comes to its end. */
WORLD_TEST(a_cancelled_thread_leaves_to_the_end)
{
    const char *path = cluster_path("cancel");
    struct user u = user_of(world_client(), path, LONG_MS);
    struct leaving leaving = {.user = &u};
    pthread_t thread;
    void *result;

    keep_alone(&u, path);
    check_ok(pthread_create(&thread, NULL, leave_with_pending, &leaving));
    check_ok(pthread_join(thread, &result));
    if (!leaving.completed)
        fail_msg("the last unlock was cut short by a cancellation");
    check_ok(leaving.rc);
    check_true(result == PTHREAD_CANCELED);
    check_wait(cluster_children(path) == 0, WAIT_MS);
}

/* Goal: after close no reader is in. Unlock says so, and the test may free the handle then. */
WORLD_TEST(close_ends_it)
{
    const char *path = cluster_path("close");
    struct user u = user_of(world_client(), path, LONG_MS);

    keep_alone(&u, path);
    check_ok(zkl_mutex_lock(u.read));
    check_closed(zkl_client_close(u.client, WAIT_MS));
    check_num(zkl_mutex_unlock(u.read), ==, ZKL_ELOST);
    check_num(zkl_rwlock_retain_readers(u.rwlock, 1), ==, ZKL_ECLOSED);
    check_wait(cluster_children(path) <= 0, WAIT_MS);
}

/* Goal: while the link is down no reader comes in. With the next link a reader comes in only after
 * a list. */
WORLD_TEST(a_lost_link_closes_the_gate)
{
    const char *path = cluster_path("link");
    struct proxy *proxy;
    struct user u = user_of(world_client_through(&proxy, SESSION_MS), path, LONG_MS);
    struct actor *other = world_actor();

    keep_alone(&u, path);
    check_ok(zkl_mutex_lock(u.read));
    lose_link(proxy);
    check_wait(zkl_mutex_hold_state(u.read, NULL) == ZKL_HOLD_SUSPECT, WAIT_MS);
    check_true(zkl_mutex_still_held(u.read, 1)); /* the reader that is in keeps its window */
    check_num(actor_do(other, do_lock_soon, u.read), ==, ZKL_ETIMEDOUT);
    check_ok(proxy_refuse(proxy, false));
    check_wait(zkl_mutex_hold_state(u.read, NULL) == ZKL_HOLD_HELD, WAIT_MS);
    uint64_t token = zkl_mutex_token(u.read);
    check_ok(zkl_mutex_unlock(u.read));
    keep_alone(&u, path);
    check_num(read_once(&u), ==, token); /* of the same node as before */
}

/* Goal: a reader hears that the node is suspect, and leaves before the link is back. The callback
 * still says later that the node is held, as the next reader that comes in is in the same node. No
 * callback runs for a doubt that comes and ends while no reader is in. */
WORLD_TEST(a_doubt_that_was_told_is_taken_back)
{
    const char *path = cluster_path("doubt");
    static struct notes notes = NOTES_INIT;
    struct proxy *proxy;

    struct user u = user_of(world_client_through(&proxy, SESSION_MS), path, LONG_MS);
    check_ok(zkl_mutex_set_callback(u.read, take_note, &notes));
    keep_alone(&u, path);
    for (size_t told = 0; told <= 2; told += 2) {
        check_ok(zkl_mutex_lock(u.read));
        uint64_t token = zkl_mutex_token(u.read);
        if (told == 2)
            check_ok(zkl_mutex_unlock(u.read)); /* it is out before */
        lose_link(proxy);
        check_wait(zkl_client_get_state(u.client) != ZKL_CLIENT_CONNECTED, WAIT_MS);
        if (told == 0) {
            check_note(&notes, 0, ZKL_HOLD_SUSPECT, ZKL_REASON_LINK);
            check_ok(zkl_mutex_unlock(u.read));
        }
        check_ok(proxy_refuse(proxy, false));
        if (told == 0)
            check_note(&notes, 1, ZKL_HOLD_HELD, ZKL_REASON_NONE);
        keep_alone(&u, path);
        check_num(read_once(&u), ==, token);
        check_num(noted(&notes), ==, 2);
    }
}

/* Goal: no callback runs for a node that no reader is in and whose handle is freed. Method: another
 * session deletes the node before the client's own delete arrives. */
WORLD_TEST(a_freed_handle_is_told_nothing)
{
    const char *path = cluster_path("freed");
    static struct notes notes = NOTES_INIT;
    struct proxy *proxy;
    struct user u = user_of(world_client_through(&proxy, SESSION_MS), path, LONG_MS);
    char node[600];

    check_ok(zkl_mutex_set_callback(u.read, take_note, &notes));
    keep_alone(&u, path);
    check_ok(zkl_mutex_lock(u.read));
    check_num(zkl_mutex_node_path(u.read, node, sizeof node), >, 0);
    check_ok(zkl_mutex_unlock(u.read));
    check_ok(proxy_hold_request(proxy, PROXY_DELETE, 1));
    world_drop(u.rwlock);
    check_ok(proxy_wait_held(proxy, WAIT_MS));
    check_ok(wire_delete(raw, cluster_at(node), -1));
    proxy_release(proxy);
    struct zkl_mutex *later = world_mutex(u.client, cluster_path("later"));
    cycle(later, 10); /* behind the answer, and its callback */
    check_num(noted(&notes), ==, 0);
}
