/* SPDX-License-Identifier: Apache-2.0 */
/* zkl_break: taking a holder's or a waiter's place away, that one's and no other's. */
#include "check_error.h"
#include "inspection.h"

struct breaking {
    struct zkl_client *client;
    const char *node;
    uint64_t czxid;
    int64_t timeout_ms;
};

static int do_break(void *arg)
{
    struct breaking *b = arg;

    return zkl_break(b->client, b->node, b->czxid, 0, b->timeout_ms);
}

/* --- holders, waiters, and what comes in between --------------------------------------------- */

WORLD_TEST(a_broken_holder_hears_of_it)
{
    struct notes notes = NOTES_INIT;
    struct locker next = locker_of(cluster_path("broken"), NULL);
    struct zkl_mutex *mutex = world_mutex(world_client(), next.path);

    check_ok(zkl_mutex_set_callback(mutex, take_note, &notes));
    check_ok(zkl_mutex_lock(mutex));
    char node[256];
    check_num(zkl_mutex_node_path(mutex, node, sizeof node), >, 0);
    uint64_t token = zkl_mutex_token(mutex);
    locker_queues(&next, 2);
    check_wait(node_watches(node) == 2, WAIT_MS);
    check_ok(zkl_break(next.client, node, token, 0, WAIT_MS));
    check_note(&notes, 0, ZKL_HOLD_LOST, ZKL_REASON_NODE_DELETED);
    check_ok(actor_result(next.actor));
    check_num(zkl_mutex_unlock(mutex), ==, ZKL_ELOST);
    check_ok(actor_do(next.actor, do_unlock, next.mutex));
    check_num(cluster_children(next.path), ==, 0);
}

/* Modes: F11. */
WORLD_TEST(a_broken_waiter_queues_again)
{
    const char *path = cluster_path("broken-waiter");
    struct zkl_client *client = world_client();
    struct zkl_mutex *mutex = world_mutex(client, path);
    struct actor *waiter = world_actor(), *last = world_actor();

    check_ok(zkl_mutex_lock(mutex));
    actor_begin(waiter, do_lock, mutex);
    check_wait(cluster_children(path) == 2, WAIT_MS);
    actor_begin(last, do_lock, mutex);
    check_wait(cluster_children(path) == 3, WAIT_MS);
    const struct zkl_inspection *before = inspect_lock(client, path);
    check_wait(node_watches(before->entries[1].node_path) == 1, WAIT_MS);
    check_ok(zkl_break(client, before->entries[1].node_path, before->entries[1].czxid, 0, WAIT_MS));
    check_wait(cluster_children(path) == 3, WAIT_MS);
    const struct zkl_inspection *after = inspect_lock(client, path);
    check_num(after->count, ==, 3);
    check_text(after->entries[0].node_path, before->entries[0].node_path);
    check_text(after->entries[1].node_path, before->entries[2].node_path);
    check_num(after->entries[2].thread, ==, before->entries[1].thread);
    check_ok(zkl_mutex_unlock(mutex));
    check_ok(actor_result(last));
    check_true(!actor_is_done(waiter));
    check_ok(actor_do(last, do_unlock, mutex));
    check_ok(actor_result(waiter));
    check_ok(actor_do(waiter, do_unlock, mutex));
}

WORLD_TEST(break_compares_the_birth)
{
    const char *node = below(cluster_path("birth"), "lock-0000000000");
    struct zkl_client *client = world_client();

    uint64_t first = make_node(node, "somebody");
    drop_node(node);
    uint64_t second = make_node(node, "somebody");
    check_num(second, !=, first);
    check_fails(zkl_break(client, node, first, 0, WAIT_MS), ZKL_ENONODE, "another node");
    check_fails(zkl_break(client, node, first, ZKL_INSPECT_FORCE, WAIT_MS), ZKL_ENONODE, node);
    check_true(node_is_there(node));
    check_ok(zkl_break(client, node, second, 0, WAIT_MS));
    check_true(!node_is_there(node));
    check_fails(zkl_break(client, node, second, 0, WAIT_MS), ZKL_ENONODE, node);
    check_fails(zkl_break(client, node, 0, 0, WAIT_MS), ZKL_ENONODE, node);
    make_node(node, "somebody");
    check_ok(zkl_break(client, node, 0, 0, WAIT_MS));
}

/* Goal: data that somebody writes between the look and the deletion does not keep a node. Break
 * spares another node in its place. Method: the proxy holds the deletion back. */
WORLD_TEST(what_happens_between_look_and_deletion_counts)
{
    const char *node = below(cluster_path("between"), "lock-0000000000");
    struct proxy *proxy = NULL;
    struct breaking b = {world_client_through(&proxy, BRIEF_MS), node, 0, WAIT_MS};
    struct actor *actor = world_actor();

    b.czxid = make_node(node, "somebody");
    check_ok(proxy_hold_request(proxy, PROXY_DELETE, 1));
    actor_begin(actor, do_break, &b);
    check_ok(proxy_wait_held(proxy, WAIT_MS));
    check_ok(wire_set(raw, cluster_at(node), "written", -1));
    proxy_release(proxy);
    check_ok(actor_result(actor));
    check_true(!node_is_there(node));
    check_num(proxy_counts(proxy, PROXY_DELETE), ==, 2);

    for (int any = 0; any < 2; any++) {
        uint64_t czxid = make_node(node, "somebody");
        check_ok(wire_set(raw, cluster_at(node), "second version", -1));
        b.czxid = any ? 0 : czxid;
        check_ok(proxy_hold_request(proxy, PROXY_DELETE, 1));
        actor_begin(actor, do_break, &b);
        check_ok(proxy_wait_held(proxy, WAIT_MS));
        drop_node(node);
        make_node(node, "somebody"); /* with version 0 */
        proxy_release(proxy);
        check_num(actor_result(actor), ==, ZKL_ENONODE);
        check_true(node_is_there(node));
        drop_node(node);
    }
}

/* Goal: a node whose session ended long ago, but which the server never removed, blocks every
 * contender. An operator can find it and delete it. A look shows the node as the holder, without a
 * session, with its age, its owner text and the contenders behind it. Method: a persistent node in
 * its place, of a session that has ended. Modes: F59. */
WORLD_TEST(a_node_without_a_session_is_found_and_broken)
{
    const char *path = cluster_path("stale");
    struct zkl_client *client = world_client();
    struct zkl_mutex *mutex = world_mutex(client, path);
    struct actor *actor = world_actor();
    struct wire_stat stat;
    struct wire *peer;
    char node[300];

    make_root(path, "");
    const char *prefix = below(cluster_at(path), "_c_11111111-2222-4333-8444-555555555555-lock-");
    check_ok(wire_open(&peer, zks_host(), zks_port(server, 0), WIRE_LASTING_MS));
    check_ok(wire_create(peer, prefix, "db7 4711 1", WIRE_SEQUENTIAL, node, sizeof node));
    wire_close(peer);
    check_ok(wire_exists(raw, node, &stat));
    check_num(actor_do(actor, do_trylock, mutex), ==, ZKL_EBUSY);
    check_num(zkl_mutex_lock_for(mutex, 100), ==, ZKL_ETIMEDOUT);
    check_wait(cluster_children(path) == 1, WAIT_MS);
    actor_begin(actor, do_lock, mutex);
    check_wait(cluster_children(path) == 2, WAIT_MS);

    const struct zkl_inspection *inspection =
        check_entries(client, path, ZKL_LOCK_KIND_MUTEX, "holds lock curator 0 *",
                      "waits lock for 0 curator * *");
    check_num(inspection->entries[0].session, ==, 0);
    check_num(inspection->entries[0].czxid, ==, stat.czxid);
    check_num(inspection->entries[0].age_ms, >=, 100); /* the wait in vain */
    check_num(inspection->entries[0].pid, ==, 4711);
    check_text(inspection->entries[0].host, "db7");
    check_true(inspection->entries[1].session != 0);
    check_true(!actor_is_done(actor));
    check_ok(zkl_break(client, inspection->entries[0].node_path, inspection->entries[0].czxid, 0,
                       WAIT_MS));
    check_ok(actor_result(actor));
    check_ok(actor_do(actor, do_unlock, mutex));
}

WORLD_TEST(a_node_with_children_stays)
{
    const char *node = below(cluster_path("children"), "folder");
    struct zkl_client *client = world_client();

    make_node(node, "somebody"); /* and what is above it */
    drop_node(node);
    make_root(node, "");
    make_node(below(node, "child"), "somebody");
    check_fails(zkl_break(client, node, 0, ZKL_INSPECT_FORCE, WAIT_MS), ZKL_EFOREIGN, "children");
    struct zkl_wait wait = ZKL_WAIT_INIT;
    wait.deadline_ns = 0;
    check_num(zkl_revoke(client, node, &wait, ZKL_INSPECT_FORCE), ==, ZKL_EFOREIGN);
    check_true(node_is_there(node));
}

/* --- a lost link ------------------------------------------------------------------------------ */

/* Goal: a deletion whose answer is lost counts as done, one whose request is lost is made again, and so
 * is a look. */
WORLD_TEST(breaking_survives_a_lost_link)
{
    static const struct {
        enum proxy_op op;
        bool reply;
        int deletes;
    } cases[] = {
        {PROXY_DELETE, true, 1}, {PROXY_DELETE, false, 2}, {PROXY_EXISTS, true, 1},
        {PROXY_SYNC, true, 1},   {PROXY_EXISTS, false, 1},
    };
    const char *node = below(cluster_path("break-lost"), "lock-0000000000");
    struct proxy *proxy = NULL;
    struct zkl_client *client = world_client_through(&proxy, BRIEF_MS);

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint64_t czxid = make_node(node, "somebody");
        proxy_reset_counts(proxy);
        if (cases[i].reply)
            check_ok(proxy_drop_reply(proxy, cases[i].op, 1, PROXY_THEN_CUT));
        else
            check_ok(proxy_drop_request(proxy, cases[i].op, 1, PROXY_THEN_CUT));
        check_ok(zkl_break(client, node, i % 2 ? czxid : 0, 0, WAIT_MS));
        check_ok(proxy_wait_dropped(proxy, 0));
        check_true(!node_is_there(node));
        check_num(proxy_counts(proxy, PROXY_DELETE), ==, cases[i].deletes);
    }
}
