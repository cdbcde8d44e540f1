/* SPDX-License-Identifier: Apache-2.0 */
/* The queue among others' nodes; and tokens. */
#include "cluster.h"

#include <stdio.h>

/* --- tokens ---------------------------------------------------------------------------------- */

static uint64_t token_of_a_turn(struct zkl_mutex *mutex)
{
    check_ok(zkl_mutex_lock(mutex));
    uint64_t token = zkl_mutex_token(mutex);
    check_ok(zkl_mutex_unlock(mutex));
    return token;
}

/* Goal: each grant's token is larger than all before it: from one thread, from two clients in turn,
 * and when the path was removed in between, so that its numbers begin again. Modes: F28. */
WORLD_TEST(tokens_grow_even_when_the_path_is_made_again)
{
    const char *path = cluster_path("token");
    struct zkl_client *clients[2] = {world_client(), world_client()};
    struct zkl_mutex *mutexes[2] = {world_mutex(clients[0], path), world_mutex(clients[1], path)};
    uint64_t last = 0;

    for (int i = 0; i < 20; i++) {
        uint64_t token = token_of_a_turn(mutexes[i / 2 % 2]);
        check_num(token, >, last);
        last = token;
        if (i % 3 == 0)
            check_ok(wire_delete_tree(raw, cluster_at(path)));
    }
}

/* --- others' nodes --------------------------------------------------------------------------- */

static void make_node(const char *path, const char *name, int flags, char *made, size_t size)
{
    char node[256];

    snprintf(node, sizeof node, "%s/%s", cluster_at(path), name);
    check_ok(wire_create(raw, node, "", flags, made, size));
}

static const char *const strangers[] = {
    "0",
    "foo",
    "config-x",
    "lock-",
    "lock-x",
    "lock-12x",
    "-lock",
    "lock-99999999999",
    "0123456789abcdef0123456789abcdef__lock__",
    "_c_01234567-89ab-cdef-0123-456789abcdef-other_lock_0000000000",
    "_c_01234567-89ab-cdef-0123-456789abcdef-lease-0000000000",
};

/* Goal: contenders of other libraries are waited for, by a lower number. Modes: F33. */
WORLD_TEST(peers_contenders_are_waited_for)
{
    static const char *const peers[] = {
        "0123456789abcdef0123456789abcdef__lock__0000000000",
        "0123456789abcdef0123456789abcdef__rlock__0000000000",
        "_c_01234567-89ab-cdef-0123-456789abcdef-__WRIT__0000000000",
        "_c_01234567-89ab-cdef-0123-456789abcdef-__READ__0000000000",
        "x-0100d4a1b2c30000-0000000000",
    };
    struct zkl_client *client = world_client();

    for (size_t i = 0; i < sizeof peers / sizeof *peers; i++) {
        const char *path = cluster_path("peer");
        char node[256];
        struct zkl_mutex *mutex = world_mutex(client, path);
        struct actor *waiter = world_actor();
        check_ok(wire_create(raw, cluster_at(path), "", WIRE_PERSISTENT, NULL, 0));
        make_node(path, peers[i], WIRE_PERSISTENT, NULL, 0);
        check_num(zkl_mutex_trylock(mutex), ==, ZKL_EBUSY);
        actor_begin(waiter, do_lock, mutex);
        check_wait(cluster_children(path) == 2, WAIT_MS);
        snprintf(node, sizeof node, "%s/%s", cluster_at(path), peers[i]);
        check_ok(wire_delete(raw, node, -1));
        check_ok(actor_result(waiter));
        check_ok(actor_do(waiter, do_unlock, mutex));
    }
}

/* Goal: children that are no contenders of a mutex are ignored, other named locks and permits
 * too, and stay: the lock is granted and handed on among them. Modes: F32. */
WORLD_TEST(children_that_are_no_contenders_do_not_matter)
{
    const char *path = cluster_path("foreign");
    const int n = sizeof strangers / sizeof strangers[0];
    struct zkl_client *client = world_client();
    struct zkl_mutex *mutex = world_mutex(client, path);
    struct actor *waiter = world_actor();

    check_ok(wire_create(raw, cluster_at(path), "", WIRE_PERSISTENT, NULL, 0));
    for (int i = 0; i < n; i++)
        make_node(path, strangers[i], WIRE_PERSISTENT, NULL, 0);
    check_ok(zkl_mutex_trylock(mutex));
    check_ok(zkl_mutex_unlock(mutex));
    check_ok(zkl_mutex_lock(mutex));
    actor_begin(waiter, do_lock, mutex);
    check_wait(cluster_children(path) == n + 2, WAIT_MS);
    make_node(path, "later", WIRE_EPHEMERAL, NULL, 0);
    check_ok(zkl_mutex_unlock(mutex));
    check_ok(actor_result(waiter));
    check_ok(actor_do(waiter, do_unlock, mutex));
    check_wait(cluster_children(path) == n + 1, WAIT_MS);
}

/* Goal: nodes of Curator's kind are contenders, with or without its protection, whoever made them.
 * A contender behind them waits until the last of them is removed. */
WORLD_TEST(contenders_of_other_programs_are_waited_for)
{
    static const char *const names[] = {"_c_11111111-2222-4333-8444-555555555555-lock-", "lock-",
                                        "_c_66666666-2222-4333-8444-555555555555-lock-"};
    const char *path = cluster_path("curator");
    struct zkl_client *client = world_client();
    struct zkl_mutex *mutex = world_mutex(client, path);
    struct actor *waiter = world_actor();
    char nodes[3][256];

    check_ok(wire_create(raw, cluster_at(path), "", WIRE_PERSISTENT, NULL, 0));
    for (int i = 0; i < 3; i++)
        make_node(path, names[i], WIRE_EPHEMERAL_SEQUENTIAL, nodes[i], sizeof nodes[i]);
    check_num(zkl_mutex_trylock(mutex), ==, ZKL_EBUSY);
    actor_begin(waiter, do_lock, mutex);
    check_wait(cluster_children(path) == 4, WAIT_MS);
    for (int left = 3; left > 0; left--) {
        static const int turn[] = {2, 0, 1}; /* the nearest one, the first, the last that is left */
        net_nap_ms(50);                      /* would do for a wrong grant */
        check_true(!actor_is_done(waiter));
        check_ok(wire_delete(raw, nodes[turn[3 - left]], -1));
    }
    check_ok(actor_result(waiter));
    check_ok(actor_do(waiter, do_unlock, mutex));
}

/* Goal: a contender of another program whose session ends makes room. */
WORLD_TEST(a_contender_whose_session_ends_makes_room)
{
    const char *path = cluster_path("dies");
    struct zkl_client *client = world_client();
    struct zkl_mutex *mutex = world_mutex(client, path);
    struct actor *waiter = world_actor();
    struct wire *other;
    char node[256];

    check_ok(wire_open(&other, zks_host(), zks_port(server, 0), 1000));
    check_ok(wire_create(raw, cluster_at(path), "", WIRE_PERSISTENT, NULL, 0));
    snprintf(node, sizeof node, "%s/lock-", cluster_at(path));
    check_ok(wire_create(other, node, "", WIRE_EPHEMERAL_SEQUENTIAL, NULL, 0));
    actor_begin(waiter, do_lock, mutex);
    check_wait(cluster_children(path) == 2, WAIT_MS);
    check_true(!actor_is_done(waiter));
    wire_abandon(other);
    check_ok(actor_result(waiter));
    check_ok(actor_do(waiter, do_unlock, mutex));
}
