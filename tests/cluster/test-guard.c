/* SPDX-License-Identifier: Apache-2.0 */
/* Guards: the server itself refuses the transaction of a client that does not hold the lock any
 * more. */
#include "check_error.h"
#include "completion.h"
#include "notes.h"

#include <zklock/guard.h>

static zhandle_t *zh; /* the application's own */

static void ignore(const char *message)
{
    (void)message;
}

static void connect_to(const char *servers)
{
    zh = zookeeper_init2(servers, NULL, SESSION_MS, NULL, NULL, 0, ignore);
    check_true(zh != NULL);
    check_wait(zoo_state(zh) == ZOO_CONNECTED_STATE, WAIT_MS);
}

static int set_up(void **state)
{
    if (cluster_raw_open(state) != 0)
        return -1;
    connect_to(zks_connect_string(server));
    (void)zoo_create(zh, "/data", "", 0, &ZOO_OPEN_ACL_UNSAFE, 0, NULL, 0);
    return 0;
}

static int tear_down(void **state)
{
    zookeeper_close(zh);
    return cluster_world_end(state);
}

/* A write with the checks before it. */
static int write_data(zoo_op_t *ops, int checks)
{
    zoo_op_result_t results[8];

    zoo_set_op_init(&ops[checks], "/data", "x", 1, -1, NULL);
    return zoo_multi(zh, checks + 1, ops, results);
}

static void delete_node(const char *path)
{
    char node[300];

    cluster_child(path, 0, node, sizeof node);
    check_ok(wire_delete(raw, node, -1));
}

/* Goal: the server carries out a holder's transaction. After the deletion of the holder's node it
 * refuses the same transaction, whatever the holder knew when it made it. The library then makes no
 * new guard. */
WORLD_TEST_IN(the_server_refuses_who_does_not_hold, set_up, tear_down)
{
    const char *path = cluster_path("mutex");
    struct zkl_client *client = world_client();
    struct zkl_mutex *mutex = world_mutex(client, path);
    struct notes notes = NOTES_INIT;
    struct zkl_guard guard;
    zoo_op_t ops[2];

    check_ok(
        zkl_mutex_set_callback(mutex, take_note, &notes)); /* a loss must be noticed immediately */
    check_num(zkl_guard_mutex(&guard, mutex, 0, NULL, ops), ==, ZKL_ENOTOWNER);
    check_ok(zkl_mutex_lock(mutex));
    check_num(zkl_guard_mutex(&guard, mutex, ZKL_TIMEOUT_MAX_MS, NULL, ops), ==, ZKL_ELOST);
    check_ok(zkl_guard_mutex(&guard, mutex, 0, NULL, ops));
    check_ok(write_data(ops, 1));
    check_ok(wire_set(raw, guard.path, "__REVOKE__", -1)); /* another version of the node */
    check_ok(write_data(ops, 1));
    delete_node(path);
    check_num(write_data(ops, 1), ==, ZNONODE);
    check_wait(zkl_guard_mutex(&guard, mutex, 0, NULL, ops) == ZKL_ELOST, WAIT_MS);
    check_num(zkl_mutex_unlock(mutex), ==, ZKL_ELOST);
}

/* Goal: a program asks for a guard for an owner as for a thread, for permits, and for all members
 * of a multi-lock. */
WORLD_TEST_IN(all_that_is_held_can_be_checked, set_up, tear_down)
{
    struct zkl_client *client = world_client();
    struct zkl_mutex *mutex = world_mutex(client, cluster_path("owner"));
    struct zkl_owner *owner = world_owner();
    struct zkl_permit *permit;
    struct zkl_guard guards[4];
    zoo_op_t ops[5];
    const char *permits = cluster_path("permits");

    check_ok(async_lock(owner, mutex));
    check_num(zkl_guard_mutex(guards, mutex, 0, NULL, ops), ==, ZKL_ENOTOWNER);
    zkl_owner_use(owner);
    check_ok(zkl_guard_mutex(guards, mutex, 0, NULL, ops));
    zkl_owner_use(NULL);
    check_ok(write_data(ops, 1));
    check_ok(async_unlock(owner, mutex));
    check_num(write_data(ops, 1), ==, ZNONODE);

    struct zkl_semaphore *semaphore = world_semaphore(client, permits, 3, NULL);
    check_ok(zkl_semaphore_acquire(semaphore, 1, NULL, &permit));
    check_ok(zkl_guard_permit(guards, permit, 0, NULL, ops));
    check_ok(write_data(ops, 1));
    check_ok(zkl_permit_release(permit));
    check_num(write_data(ops, 1), ==, ZNONODE);

    struct zkl_mutex *single = world_semaphore_mutex(client, cluster_path("single"));
    struct zkl_member members[] = {zkl_member_mutex(mutex), zkl_member_semaphore(semaphore, 2),
                                   zkl_member_mutex(single)};
    struct zkl_multi *multi = world_multi(client, members, 3);
    check_num(zkl_guard_multi(guards, 4, multi, 0, NULL, ops), ==, ZKL_ENOTOWNER);
    check_ok(zkl_multi_lock(multi));
    check_num(zkl_guard_multi(guards, 3, multi, 0, NULL, ops), ==, ZKL_EINVAL);
    check_num(zkl_guard_multi(guards, 4, multi, 0, NULL, ops), ==, 4);
    check_ok(write_data(ops, 4));
    snprintf(guards[0].path, sizeof guards[0].path, "%s/leases", permits);
    delete_node(guards[0].path);
    check_num(zkl_guard_multi(guards, 4, multi, 0, NULL, ops), >, 0); /* not known yet */
    check_num(write_data(ops, 4), ==, ZNONODE);
    (void)zkl_multi_unlock(multi, NULL);
}

/* Goal: the lock's client and the application's handle may be below different chroots. */
WORLD_TEST_IN(chroots_may_differ, set_up, tear_down)
{
    struct zkl_client_options options = cluster_options();
    char servers[200];
    struct zkl_guard guard;
    zoo_op_t ops[2];

    check_ok(wire_create(raw, "/a", "", WIRE_PERSISTENT, NULL, 0));
    check_ok(wire_create(raw, "/a/b", "", WIRE_PERSISTENT, NULL, 0));
    snprintf(servers, sizeof servers, "%s/a/b", zks_connect_string(server));
    options.servers = servers;
    struct zkl_client *client = world_client_with(&options);
    struct zkl_mutex *mutex = world_mutex(client, "/lock");
    check_ok(zkl_mutex_lock(mutex));
    check_ok(zkl_guard_mutex(&guard, mutex, 0, NULL, ops));
    check_true(strncmp(guard.path, "/a/b/lock/", 10) == 0);
    check_ok(write_data(ops, 1));
    check_ok(zkl_guard_mutex(&guard, mutex, 0, "", ops));
    check_true(strncmp(guard.path, "/a/b/lock/", 10) == 0);
    check_fails(zkl_guard_mutex(&guard, mutex, 0, "/a/bb", ops), ZKL_EINVAL, "chroot");
    check_fails(zkl_guard_mutex(&guard, mutex, 0, "/b", ops), ZKL_EINVAL, "chroot");

    zookeeper_close(zh);
    snprintf(servers, sizeof servers, "%s/a", zks_connect_string(server));
    connect_to(servers);
    check_ok(zoo_create(zh, "/data", "", 0, &ZOO_OPEN_ACL_UNSAFE, 0, NULL, 0));
    check_ok(zkl_guard_mutex(&guard, mutex, 0, "/a", ops));
    check_true(strncmp(guard.path, "/b/lock/", 8) == 0);
    check_ok(write_data(ops, 1));
    check_ok(zkl_mutex_unlock(mutex));
    check_num(write_data(ops, 1), ==, ZNONODE);
}
