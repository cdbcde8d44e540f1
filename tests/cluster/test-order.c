/* SPDX-License-Identifier: Apache-2.0 */
/* The queue among others' nodes; and tokens. */
#include "cluster.h"

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
    struct zkl_mutex *mutexes[2] = {world_mutex(world_client(), path),
                                    world_mutex(world_client(), path)};
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

/* At a path that is there. */
static struct locker locker_at(const char *name)
{
    struct locker l = locker_of(cluster_path(name), NULL);

    make_root(l.path, "");
    return l;
}

static const char *made(const char *path, const char *name, int flags)
{
    static char nodes[8][256];
    static unsigned last;
    char *node = nodes[++last % 8];

    check_ok(wire_create(raw, cluster_at(below(path, name)), "", flags, node, sizeof nodes[0]));
    return node;
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

/* Modes: F33. */
WORLD_TEST(peers_contenders_are_waited_for)
{
    static const char *const peers[] = {
        "0123456789abcdef0123456789abcdef__lock__0000000000",
        "0123456789abcdef0123456789abcdef__rlock__0000000000",
        "_c_01234567-89ab-cdef-0123-456789abcdef-__WRIT__0000000000",
        "_c_01234567-89ab-cdef-0123-456789abcdef-__READ__0000000000",
        "x-0100d4a1b2c30000-0000000000",
    };

    for (size_t i = 0; i < sizeof peers / sizeof *peers; i++) {
        struct locker waiter = locker_at("peer");
        const char *node = made(waiter.path, peers[i], WIRE_PERSISTENT);
        check_num(zkl_mutex_trylock(waiter.mutex), ==, ZKL_EBUSY);
        locker_queues(&waiter, 2);
        check_ok(wire_delete(raw, node, -1));
        locker_passes(&waiter);
    }
}

/* Goal: children that are no contenders of a mutex are ignored, other named locks and permits
 * too, and stay: the lock is granted and handed on among them. Modes: F32. */
WORLD_TEST(children_that_are_no_contenders_do_not_matter)
{
    const int n = sizeof strangers / sizeof strangers[0];
    struct locker waiter = locker_at("foreign");

    for (int i = 0; i < n; i++)
        made(waiter.path, strangers[i], WIRE_PERSISTENT);
    check_ok(zkl_mutex_trylock(waiter.mutex));
    check_ok(zkl_mutex_unlock(waiter.mutex));
    check_ok(zkl_mutex_lock(waiter.mutex));
    locker_queues(&waiter, n + 2);
    made(waiter.path, "later", WIRE_EPHEMERAL);
    check_ok(zkl_mutex_unlock(waiter.mutex));
    locker_passes(&waiter);
    check_wait(cluster_children(waiter.path) == n + 1, WAIT_MS);
}

/* Goal: nodes of Curator's kind are contenders, with or without its protection, whoever made them.
 * A contender behind them waits until the last of them is removed. */
WORLD_TEST(contenders_of_other_programs_are_waited_for)
{
    static const char *const names[] = {"_c_11111111-2222-4333-8444-555555555555-lock-", "lock-",
                                        "_c_66666666-2222-4333-8444-555555555555-lock-"};
    static const int turn[] = {2, 0, 1}; /* the nearest one, the first, the last that is left */
    struct locker waiter = locker_at("curator");
    const char *nodes[3];

    for (int i = 0; i < 3; i++)
        nodes[i] = made(waiter.path, names[i], WIRE_EPHEMERAL_SEQUENTIAL);
    check_num(zkl_mutex_trylock(waiter.mutex), ==, ZKL_EBUSY);
    locker_queues(&waiter, 4);
    for (int i = 0; i < 3; i++) {
        net_nap_ms(50); /* would do for a wrong grant */
        check_true(!actor_is_done(waiter.actor));
        check_ok(wire_delete(raw, nodes[turn[i]], -1));
    }
    locker_passes(&waiter);
}

WORLD_TEST(a_contender_whose_session_ends_makes_room)
{
    struct locker waiter = locker_at("dies");
    struct wire *other;

    check_ok(wire_open(&other, zks_host(), zks_port(server, 0), 1000));
    check_ok(wire_create(other, cluster_at(below(waiter.path, "lock-")), "",
                         WIRE_EPHEMERAL_SEQUENTIAL, NULL, 0));
    locker_queues(&waiter, 2);
    check_true(!actor_is_done(waiter.actor));
    wire_abandon(other);
    locker_passes(&waiter);
}
