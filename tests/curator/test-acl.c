/* SPDX-License-Identifier: Apache-2.0 */
/* TestLockACLs. There a function gives each path its ACL; here a client has one for all nodes and
 * parents that it makes. */
#include "creator.h"
#include "leases.h"

#include <stdio.h>

/* The node and all below it. Some may be missing meanwhile: the server removes what has become
 * empty. */
static void check_tree(const char *path)
{
    struct wire_names names;
    char child[512];

    if (!check_creators_if_there(path))
        return;
    int rc = wire_children(raw, path, &names);
    if (rc == WIRE_NONODE)
        return;
    check_ok(rc);
    for (size_t i = 0; i < names.n; i++) {
        snprintf(child, sizeof child, "%s/%s", path, names.name[i]);
        check_tree(child);
    }
    wire_names_free(&names);
}

/* Goal: the root and the nodes of a read-write lock, of each half, have the client's ACL. */
WORLD_TEST(a_read_write_locks_nodes_have_the_clients_acl)
{
    struct zkl_client *client = creator_client(CREDENTIAL);
    const char *path = cluster_path("rwlock");

    check_ok(wire_auth(raw, "digest", CREDENTIAL));
    struct zkl_rwlock *rwlock = world_rwlock(client, path, NULL);
    check_ok(zkl_mutex_lock(zkl_rwlock_writer(rwlock)));
    check_ok(zkl_mutex_lock(zkl_rwlock_reader(rwlock)));
    check_num(cluster_children(path), ==, 2);
    check_tree(cluster_at(path));
    check_ok(zkl_mutex_unlock(zkl_rwlock_writer(rwlock)));
    check_ok(zkl_mutex_unlock(zkl_rwlock_reader(rwlock)));
}

/* Goal: so have the parents that are made on the way, and all that a semaphore consists of. */
WORLD_TEST(parents_that_are_made_have_the_clients_acl)
{
    struct zkl_client *client = creator_client(CREDENTIAL);
    const char *parent = cluster_path("parents");
    struct zkl_permit *permit = NULL;
    char path[128];

    check_ok(wire_auth(raw, "digest", CREDENTIAL));
    snprintf(path, sizeof path, "%s/deep/lock", parent);
    struct zkl_mutex *mutex = world_mutex(client, path);
    snprintf(path, sizeof path, "%s/deep/semaphore", parent);
    struct zkl_semaphore *semaphore = world_semaphore(client, path, 3, NULL);
    check_ok(zkl_mutex_lock(mutex));
    check_ok(one_permit(semaphore, WAIT_MS, &permit));
    check_num(leases(path), ==, 1);
    check_tree(cluster_at(parent));
    check_ok(zkl_permit_release(permit));
    check_ok(zkl_mutex_unlock(mutex));
}
