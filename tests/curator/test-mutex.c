/* SPDX-License-Identifier: Apache-2.0 */
/* TestInterProcessMutex. */
#include "base.h"

#include <stdio.h>

#include "notes.h"
#include "participants.h"

static void *make(struct zkl_client *client, const char *path)
{
    return cluster_mutex(client, path);
}

const struct lock_kind lock_kind = {
    .name = "mutex",
    .make = make,
    .unmake = base_unmake_mutex,
    .lock_for = base_lock_mutex_for,
    .unlock = do_unlock,
    .held = base_mutex_held,
    .contenders = cluster_children,
};

/* Goal: a holder whose node is persistent (a lock internals driver of its own there; here only a
 * peer can be one) holds although its session has ended, until the node is deleted.
 * Modes: F59. */
CLUSTER_TEST(a_persistent_node_of_a_peer_holds_until_it_is_deleted)
{
    const char *path = cluster_path("persistent");
    struct zkl_client *client = cluster_client();
    struct zkl_mutex *mutex = cluster_mutex(client, path);
    struct actor *waiter = actor_new();
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
    struct participants participants = count_participants(client, path);
    check_num(participants.count[ZKL_ENTRY_ROLE_HOLDER][ZKL_ENTRY_ACCESS_LOCK], ==, 1);
    check_text(cluster_at(participants.first), node);
    check_num(zkl_mutex_trylock(mutex), ==, ZKL_EBUSY);
    check_true(!actor_is_done(waiter));
    check_ok(wire_delete(raw, node, -1));
    check_ok(actor_result(waiter));
    check_ok(actor_do(waiter, do_unlock, mutex));
    actor_end(waiter);
    cluster_free(client, mutex);
    check_ok(wire_delete_tree(raw, cluster_at(path)));
}

/* --- revoking --------------------------------------------------------------------------------- */

struct asker {
    struct zkl_client *client;
    struct zkl_mutex *mutex;
    const char *node;
};

/* Ask, without waiting for it, and queue. */
static int ask_and_lock(void *arg)
{
    struct asker *asker = arg;
    struct zkl_wait now = ZKL_WAIT_INIT;

    now.deadline_ns = zkl_now_ns();
    int rc = zkl_revoke(asker->client, asker->node, &now, 0);
    return rc == 0 || rc == ZKL_ETIMEDOUT ? zkl_mutex_lock_for(asker->mutex, WAIT_MS) : rc;
}

/* Goal: a holder with a callback hears that somebody asks for the lock, and releases it. The
 * asker then has it. The asker knows the node from the list of the contenders. */
CLUSTER_TEST(a_holder_that_is_asked_lets_go)
{
    struct zkl_client *client = cluster_client();
    const char *path = cluster_path("revoke");
    struct zkl_mutex *mutex = cluster_mutex(client, path), *wanted = cluster_mutex(client, path);
    struct notes notes = NOTES_INIT;
    struct actor *actor = actor_new();

    check_ok(zkl_mutex_set_callback(mutex, take_note, &notes));
    check_ok(zkl_mutex_lock(mutex));
    struct participants participants = count_participants(client, path);
    check_num(participants.count[ZKL_ENTRY_ROLE_HOLDER][ZKL_ENTRY_ACCESS_LOCK], ==, 1);
    check_num(participants.total, ==, 1);
    struct asker asker = {client, wanted, participants.first};
    check_num(zkl_mutex_revoke_requested(mutex), ==, 0);
    actor_begin(actor, ask_and_lock, &asker);
    check_note(&notes, 0, ZKL_HOLD_REVOKE_REQUESTED, ZKL_REASON_NONE);
    check_num(zkl_mutex_revoke_requested(mutex), ==, 1);
    check_num(zkl_mutex_still_held(mutex, 0), ==, 1);
    check_ok(zkl_mutex_unlock(mutex));
    check_ok(actor_result(actor));
    check_ok(actor_do(actor, do_unlock, wanted));
    check_num(noted(&notes), ==, 1);
    actor_end(actor);
    cluster_free(client, mutex, wanted);
}

BASE_TESTS
REENTRANT_TESTS
BASE_TEST(a_scope_holds_to_its_end)
