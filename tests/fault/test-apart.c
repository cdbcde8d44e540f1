/* SPDX-License-Identifier: Apache-2.0 */
/* A follower that has data of its own: a node that the leader does not have (ZOOKEEPER-4837,
 * -5010). */
#include "fault.h"

#include <fcntl.h>

#include "snapshot.h"

#define SESSION_MS 2000
#define NODE "/apart/lock/_c_01234567-89ab-4def-8123-456789abcdef-lock-000000000"

/* The follower comes back with another name for the node. Without data it writes what the leader
 * sends as a snapshot. */
static void set_apart(size_t follower)
{
    char err[512] = "";

    check_ok(zks_stop_node(server, follower));
    check_ok(zks_wipe_node(server, follower));
    check_ok(zks_start_node(server, follower));
    check_ok(zks_wait_ready(server, ZKS_READY_MS));
    check_ok(zks_stop_node(server, follower));
    if (snap_rename(zks_data_dir(server, follower), NODE "1", NODE "0", err, sizeof err) != 0)
        fail_msg("%s", err);
    check_ok(zks_start_node(server, follower));
    check_ok(zks_wait_ready(server, ZKS_READY_MS));
}

/* libzookeeper takes its servers in any order. */
static struct zkl_client *open_at(const char *address, const char *other)
{
    char servers[200];

    snprintf(servers, sizeof servers, "%s,%s", address, other);
    for (;;) {
        struct zkl_client *client = world_open(servers, SESSION_MS);
        if (fault_is_at(client, address))
            return client;
        world_drop(client);
    }
}

/* A file of the application with a record lock, as databases have. The process has it no more once
 * it closes any descriptor of that file, copies included. */
static FILE *open_locked(void)
{
    FILE *file = tmpfile();

    check_true(file != NULL);
    check_ok(lockf(fileno(file), F_LOCK, 0));
    return file;
}

static bool is_locked(FILE *file)
{
    int status = -1;
    pid_t pid = fork();

    if (pid == 0)
        _exit(lockf(fileno(file), F_TEST, 0) == 0 ? 0 : 1);
    check_num(waitpid(pid, &status, 0), ==, pid);
    return WIFEXITED(status) && WEXITSTATUS(status) == 1;
}

/* Nobody waits endlessly behind a node that only the own server has. The client goes to another server,
 * with its session and what it holds, and the application's files keep their locks. Modes: F94. */
WORLD_TEST(a_server_with_data_of_its_own_is_left)
{
    int leader = zks_wait_leader(server, ZKS_READY_MS);

    check_num(leader, >=, 0);
    struct wire *wire = world_wire_to(server, (size_t)leader, WIRE_LASTING_MS);
    check_ok(wire_create(wire, "/apart", "", WIRE_PERSISTENT, NULL, 0));
    check_ok(wire_create(wire, "/apart/lock", "", WIRE_PERSISTENT, NULL, 0));
    check_ok(wire_create(wire, NODE "1", "somebody", WIRE_PERSISTENT, NULL, 0));
    size_t follower = (size_t)(leader + 1) % 3;
    set_apart(follower);
    check_ok(wire_delete(wire, NODE "1", -1));

    char apart[100];
    snprintf(apart, sizeof apart, "%s", zks_address(server, follower));
    struct zkl_client *client = open_at(apart, zks_address(server, (size_t)leader));
    struct holder *held = world_holder(client, "/apart/held");
    struct zkl_mutex *mutex = world_mutex(client, "/apart/lock");
    FILE *file = open_locked();
    check_num(zkl_mutex_lock_for(mutex, 200), ==, ZKL_ETIMEDOUT);
    check_ok(zkl_mutex_lock_for(mutex, QUIET_MS));
    check_num(fault_is_at(client, apart), ==, 0);
    fault_check_held(held);
    check_true(is_locked(file));
    fclose(file);
    check_ok(zkl_mutex_unlock(mutex));
    check_ok(zkl_mutex_unlock(held->mutex));
}

FAULT_MAIN(options.nodes = 3, options.no_digest = true)
