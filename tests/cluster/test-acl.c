/* SPDX-License-Identifier: Apache-2.0 */
/* Rights that are taken away, and a client that keeps its nodes to itself; rights.txt has those that are missing. Each
 * call has its code and a sentence that names the path and the right. No call hangs, and no node is left. */
#include "api/client.h"

#include "check_error.h"
#include "creator.h"

#define CREDENTIAL "alice:secret"

/* Of nobody but the raw connection, and of all again. */
static const struct wire_acl stranger = {WIRE_PERM_ALL, "auth", ""};
static const struct wire_acl anyone = {WIRE_PERM_ALL, "world", "anyone"};

static void check_says(const char *word)
{
    check_detail(ZKL_EACCES, word);
    if (strstr(zkl_error_detail(), "secret"))
        fail_msg("\"%s\" reveals the credential", zkl_error_detail());
}

static int lock_for_long(struct zkl_mutex *mutex)
{
    return zkl_mutex_lock_for(mutex, WAIT_MS);
}

/* The library refuses each call that acquires, immediately, and its detail has the path and this
 * word. More tries change nothing. */
static void check_refused(struct zkl_client *client, const char *path, const char *word,
                          const char *try_word)
{
    int (*const calls[])(struct zkl_mutex *) = {zkl_mutex_lock, lock_for_long, zkl_mutex_trylock};
    struct zkl_mutex *mutex = world_mutex(client, path);

    for (int i = 0; i < 6; i++) {
        int64_t start = net_now_ms();
        check_num(calls[i % 3](mutex), ==, ZKL_EACCES);
        check_true(net_now_ms() - start < 10000 || lag_is_slow());
        check_says(path);
        check_says(i % 3 == 2 ? try_word : word);
        check_num(zkl_mutex_hold_count(mutex), ==, 0);
    }
}

/* --- a waiter ---------------------------------------------------------------------------------- */

/* The raw connection's, as that of a mutex of Curator's. */
static const char *make_predecessor(const char *path)
{
    const char *node = below(cluster_at(path), "_c_00000000-0000-4000-8000-000000000000-lock-");
    char made[160];

    check_ok(wire_create(raw, node, "", WIRE_EPHEMERAL_SEQUENTIAL, made, sizeof made));
    return below(cluster_at(path), strrchr(made, '/') + 1);
}

/* Goal: a waiter loses the right to READ its predecessor. The server uses the watch up in silence
 * (see below). The wait still ends: with the code of a wait that had no such right from the start,
 * or with the grant.
 * Method: an older server answers exists without that right. There the wait lasts as long as the
 * predecessor's node. */
WORLD_TEST(a_waiter_that_may_not_read_any_more)
{
    const bool takes_read = exists_takes_read();

    for (int deleted = 0; deleted < 2; deleted++) {
        const char *path = make_denied(cluster_path("hidden"), 0, "", WIRE_PERSISTENT);
        struct locker waiter = locker_of(path, NULL);
        const char *before = make_predecessor(path);

        locker_queues(&waiter, 2);
        check_wait(node_watches(before) == 1, WAIT_MS);
        check_ok(wire_set_acl(raw, before, &stranger, 1));
        if (deleted || !takes_read)
            check_ok(wire_delete(raw, before, -1));
        int rc = actor_result(waiter.actor);
        check_true(rc == ZKL_EACCES || (rc == 0 && (deleted || !takes_read)));
        if (rc == 0)
            check_ok(actor_do(waiter.actor, do_unlock, waiter.mutex));
    }
}

static int do_take_permit(void *semaphore)
{
    struct zkl_permit *permit;
    int rc = zkl_semaphore_acquire(semaphore, 1, NULL, &permit);
    return rc == 0 ? zkl_permit_release(permit) : rc;
}

/* Goal: the waiter has the right back before its client looks: the client sees by the node's
 * version that something changed in between. Method: the test denies READ of a semaphore's leases
 * for the moment in which the only permit is released. */
WORLD_TEST(a_waiter_that_might_not_read_for_a_moment)
{
    const struct wire_acl hidden[2] = {
        {WIRE_PERM_ALL, "auth", ""},
        {WIRE_PERM_ALL & ~PERM_READ, "world", "anyone"},
    };
    const char *path = cluster_path("moment");
    struct zkl_semaphore *mine = world_semaphore(world_client(), path, 1, NULL);
    struct zkl_semaphore *theirs = world_semaphore(world_client(), path, 1, NULL);
    struct zkl_permit *permit;
    struct actor *waiter = world_actor();
    enum { LOOKED_MAX = 100 }; /* it looked in that moment, as it can where a machine is slow */
    char leases[160];
    int rc, looked = 0;

    snprintf(leases, sizeof leases, "%s/leases", path);
    check_ok(wire_auth(raw, "digest", "administrator:secret"));
    do {
        check_ok(zkl_semaphore_acquire(theirs, 1, NULL, &permit));
        actor_begin(waiter, do_take_permit, mine);
        check_wait(node_watches(leases) > 0, WAIT_MS);
        check_ok(wire_set_acl(raw, cluster_at(leases), hidden, 2));
        check_ok(zkl_permit_release(permit));
        check_ok(wire_set_acl(raw, cluster_at(leases), &anyone, 1));
        rc = actor_result(waiter);
    } while (rc == ZKL_EACCES && ++looked < LOOKED_MAX);
    check_num(rc, ==, 0);
}

/* --- a right that is taken away ---------------------------------------------------------------- */

#define DENIED_MS 3000 /* the session timeout: what is denied stays so for longer */

static struct zkl_client *denied_client(void)
{
    struct zkl_client_options options = cluster_options();

    check_ok(wire_auth(raw, "digest", "stranger:strange"));
    options.session_timeout_ms = DENIED_MS;
    return world_client_with(&options);
}

static bool is_proved(struct zkl_client *client)
{
    zkl_driver_lock(client->driver);
    int64_t end = zkl_session_window_end(&client->driver->core.session);
    zkl_driver_unlock(client->driver);
    return end > zkl_clock_boot_ns();
}

/* Goal: a stranger that replaces the ACL of a held node takes the window from that hold only. A lock
 * that a thread acquires meanwhile keeps its window. When the client may read the node again, it
 * proves the hold again. Unlock deletes the node in any case.
 * Method: one client holds three locks with callbacks. The test gives the nodes of the first two to
 * a stranger alone, for longer than a session timeout, and then gives the first node back.
 * Modes: F57. */
WORLD_TEST(a_held_node_that_its_client_may_not_read)
{
    static struct notes notes[3] = {NOTES_INIT, NOTES_INIT, NOTES_INIT};
    const char *names[3] = {"denied-a", "denied-b", "denied-c"};
    struct zkl_client *client = denied_client();
    struct zkl_mutex *held[3], *late = world_mutex(client, cluster_path("denied-late"));
    const char *nodes[3];

    for (int i = 0; i < 3; i++) {
        held[i] = world_mutex(client, cluster_path(names[i]));
        check_ok(zkl_mutex_set_callback(held[i], take_note, &notes[i]));
        check_ok(zkl_mutex_lock(held[i]));
        nodes[i] = node_of(held[i]);
    }
    for (int i = 0; i < 2; i++)
        check_ok(wire_set_acl(raw, nodes[i], &stranger, 1));
    for (int i = 0; i < 2; i++) {
        check_note(&notes[i], 0, ZKL_HOLD_SUSPECT, ZKL_REASON_UNCHECKED);
        check_num(zkl_mutex_window_ms(held[i]), ==, 0);
        check_num(zkl_mutex_still_held(held[i], 0), ==, 0);
    }
    /* The window of the third goes on to be proved, for longer than one proof could last. */
    int64_t start = net_now_ms();
    while (net_now_ms() - start < 3 * DENIED_MS / 2) {
        check_wait(zkl_mutex_window_ms(held[2]) > 0, WAIT_MS);
        net_nap_ms(20);
    }
    cycle(late, 1);
    check_num(noted(&notes[0]), ==, 1);
    check_num(noted(&notes[1]), ==, 1);
    check_wait(zkl_mutex_window_ms(held[2]) > 0, WAIT_MS);
    check_num(zkl_mutex_window_ms(held[0]), ==, 0);

    check_ok(wire_set_acl(raw, nodes[0], &anyone, 1));
    check_note(&notes[0], 1, ZKL_HOLD_HELD, ZKL_REASON_NONE);
    check_wait(zkl_mutex_window_ms(held[0]) > 0, WAIT_MS);
    check_num(zkl_mutex_window_ms(held[1]), ==, 0);
    for (int i = 0; i < 3; i++) {
        check_ok(zkl_mutex_unlock(held[i]));
        check_num(cluster_children(cluster_path(names[i])), ==, 0);
    }
}

/* Goal: where the only hold's node is denied nothing is proved any more, and unlock still deletes it. Method: its
 * ACL is given to a stranger, until the session's own window is over. Modes: F57. */
WORLD_TEST(the_only_held_node_may_not_be_read)
{
    static struct notes notes = NOTES_INIT;
    const char *path = cluster_path("denied-alone");
    struct zkl_client *client = denied_client();
    struct zkl_mutex *mutex = world_mutex(client, path);

    check_ok(zkl_mutex_set_callback(mutex, take_note, &notes));
    check_ok(zkl_mutex_lock(mutex));
    check_ok(wire_set_acl(raw, node_of(mutex), &stranger, 1));
    check_note(&notes, 0, ZKL_HOLD_SUSPECT, ZKL_REASON_UNCHECKED);
    check_wait(!is_proved(client), WAIT_MS);
    check_num(zkl_mutex_window_ms(mutex), ==, 0);
    check_num(cluster_children(path), ==, 1);
    int rc = zkl_mutex_unlock(mutex);
    check_true(rc == ZKL_OK || rc == ZKL_EDOUBT); /* by whether the delete is answered in time */
    check_wait(cluster_children(path) == 0, WAIT_MS);
    cycle(mutex, 1);
}

/* Goal: a client set a watch while it had the right to read the node, and then lost that right. The
 * server does not send it the end of the node, but uses the watch up in silence (ZOOKEEPER-4799,
 * from 3.8.4 and 3.9.2 on; an older server only if its distribution took the patch, as Debian 12
 * did). From the same versions on exists needs the right, once the server finds the node.
 * Method: raw requests. The server would send the event before its answer that there is no node. */
WORLD_TEST(a_watch_without_the_right_to_read)
{
    const bool takes_read = exists_takes_read();
    const char *node = cluster_at(cluster_path("watched"));
    struct wire *w = NULL;

    check_ok(wire_auth(raw, "digest", "stranger:strange"));
    check_ok(wire_open(&w, zks_host(), zks_port(server, 0), WIRE_LASTING_MS));
    check_num(wire_exists(w, node, NULL), ==, WIRE_NONODE);
    check_ok(wire_create(raw, node, "", WIRE_PERSISTENT, NULL, 0));
    check_ok(wire_watch(w, node));
    check_ok(wire_set_acl(raw, node, &stranger, 1));
    check_num(wire_exists(w, node, NULL), ==, takes_read ? WIRE_NOAUTH : 0);
    check_ok(wire_delete(raw, node, -1));
    check_num(wire_exists(w, node, NULL), ==, WIRE_NONODE);
    check_num(node_watches(node), ==, 0);
    int told = wire_wait_event(w, 0, NULL, 0);
    check_true(told == WIRE_IO || (!takes_read && told == WIRE_DELETED));
    wire_close(w);
}

/* --- a client that keeps its nodes to itself -------------------------------------------------- */

/* How many nodes there are, each the creator's. Some may be missing meanwhile: the server removes what has become empty. */
static int check_tree(const char *path)
{
    struct wire_names names;
    char child[512];
    int count = check_creators_if_there(path);

    if (count == 0 || wire_children(raw, path, &names) != 0)
        return count;
    for (size_t i = 0; i < names.n; i++) {
        snprintf(child, sizeof child, "%s/%s", path, names.name[i]);
        count += check_tree(child);
    }
    wire_names_free(&names);
    return count;
}

WORLD_TEST(creator_only_is_what_every_node_gets)
{
    const char *parent = cluster_path("creator"), *deep = below(parent, "deep");
    struct zkl_client *client = creator_client(CREDENTIAL);
    struct zkl_mutex *mutex = world_mutex(client, below(deep, "lock"));
    struct zkl_rwlock *rwlock = world_rwlock(client, below(deep, "rw"), NULL);
    struct zkl_semaphore *semaphore = world_semaphore(client, below(deep, "permits"), 3, NULL);
    struct zkl_permit *permit;

    check_ok(wire_auth(raw, "digest", CREDENTIAL));
    check_ok(zkl_mutex_lock(mutex));
    check_ok(zkl_mutex_lock(zkl_rwlock_writer(rwlock)));
    check_ok(zkl_mutex_lock(zkl_rwlock_reader(rwlock)));
    check_ok(zkl_semaphore_acquire(semaphore, 1, NULL, &permit));
    check_num(cluster_children(below(deep, "rw")), ==, 2);
    check_num(cluster_children(below(deep, "permits/leases")), ==, 1);
    check_num(check_tree(cluster_at(parent)), >=, 10);
    check_ok(zkl_permit_release(permit));
    check_ok(zkl_mutex_unlock(zkl_rwlock_writer(rwlock)));
    check_ok(zkl_mutex_unlock(zkl_rwlock_reader(rwlock)));
    check_ok(zkl_mutex_unlock(mutex));
}

WORLD_TEST(others_are_told_what_is_denied)
{
    const char *path = cluster_path("creator-others");
    struct zkl_client *others[] = {world_client(), creator_client("bob:builder"),
                                   creator_client("alice:secrets")};
    struct zkl_mutex *mutex = world_mutex(creator_client(CREDENTIAL), path);
    struct zkl_mutex *again = world_mutex(creator_client(CREDENTIAL), path);
    struct actor *actor = world_actor(), *waiter = world_actor();

    check_ok(wire_auth(raw, "digest", CREDENTIAL));
    check_ok(zkl_mutex_lock(mutex));
    check_num(actor_do(actor, do_trylock, again), ==, ZKL_EBUSY);
    actor_begin(waiter, do_lock, again);
    check_wait(cluster_children(path) == 2, WAIT_MS);
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        check_refused(others[i], path, "denies CREATE", "denies READ");
        check_num(zkl_mutex_lock(world_mutex(others[i], path)), ==, ZKL_EACCES);
    }
    check_refused(others[0], below(path, "below"), "CREATE on a parent", "CREATE on a parent");
    check_num(cluster_children(path), ==, 2);
    check_ok(zkl_mutex_unlock(mutex));
    check_ok(actor_result(waiter));
    check_ok(actor_do(waiter, do_unlock, again));
}
