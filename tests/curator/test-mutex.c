/* SPDX-License-Identifier: Apache-2.0 */
/* TestInterProcessMutex. */
#include "inspection.h"

#include <stdio.h>

/* Goal: a holder whose node is persistent (a lock internals driver of its own there; here only a
 * peer can be one) holds although its session has ended, until the node is deleted.
 * Modes: F59. */
WORLD_TEST(a_persistent_node_of_a_peer_holds_until_it_is_deleted)
{
    const char *path = cluster_path("persistent");
    struct zkl_client *client = world_client();
    struct zkl_mutex *mutex = world_mutex(client, path);
    struct actor *waiter = world_actor();
    struct wire *peer = NULL;
    char node[256];

    check_ok(wire_create(raw, cluster_at(path), "", WIRE_PERSISTENT, NULL, 0));
    check_ok(wire_open(&peer, zks_host(), zks_port(server, 0), WIRE_LASTING_MS));
    snprintf(node, sizeof node, "%s/_c_00000000-0000-4000-8000-000000000000-lock-",
             cluster_at(path));
    check_ok(wire_create(peer, node, "", WIRE_SEQUENTIAL, node, sizeof node));
    actor_begin(waiter, do_lock, mutex);
    check_wait(cluster_children(path) == 2, WAIT_MS);
    wire_close(peer);
    check_ok(wire_exists(raw, node, NULL));
    const struct zkl_inspection *inspection = inspect_lock(client, path);
    check_num(inspection->entries[0].role, ==, ZKL_ENTRY_ROLE_HOLDER);
    check_num(inspection->entries[0].access, ==, ZKL_ENTRY_ACCESS_LOCK);
    check_num(inspection->entries[1].role, ==, ZKL_ENTRY_ROLE_WAITER);
    check_text(cluster_at(inspection->entries[0].node_path), node);
    check_num(zkl_mutex_trylock(mutex), ==, ZKL_EBUSY);
    check_true(!actor_is_done(waiter));
    check_ok(wire_delete(raw, node, -1));
    check_ok(actor_result(waiter));
    check_ok(actor_do(waiter, do_unlock, mutex));
    check_ok(wire_delete_tree(raw, cluster_at(path)));
}
