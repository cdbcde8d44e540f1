/* SPDX-License-Identifier: Apache-2.0 */
/* TestInterProcessMultiMutex. */
#include "cluster.h"

#define MEMBERS 2

struct multi {
    struct zkl_mutex *mutexes[MEMBERS];
    struct zkl_multi *multi;
};

static const char *member_path(const char *path, int i)
{
    return below(path, i == 0 ? "first" : "last");
}

/* Of both, of which one denies that. */
static struct multi *multi_of(const char *path, int bad, int denied)
{
    struct multi *m = world_alloc(sizeof *m);
    struct zkl_client *client = world_client();
    struct zkl_member members[MEMBERS];

    make_root(path, "");
    make_denied(member_path(path, bad), denied, "", WIRE_PERSISTENT);
    for (int i = 0; i < MEMBERS; i++) {
        m->mutexes[i] = world_mutex(client, member_path(path, i));
        members[i] = zkl_member_mutex(m->mutexes[i]);
    }
    m->multi = world_multi(client, members, MEMBERS);
    return m;
}

static void check_release_of(int bad)
{
    const char *path = cluster_path("bad-release");
    struct multi *m = multi_of(path, bad, PERM_DELETE);
    int good = !bad, codes[MEMBERS] = {1, 1};
    struct zkl_mutex *next = world_mutex(world_client(), member_path(path, good));

    check_ok(zkl_multi_lock(m->multi));
    check_num(zkl_multi_unlock(m->multi, codes), ==, ZKL_EACCES);
    check_num(codes[good], ==, 0);
    check_num(codes[bad], ==, ZKL_EACCES);
    check_num(zkl_mutex_hold_count(m->mutexes[good]), ==, 0);
    check_num(cluster_children(member_path(path, bad)), ==, 1);
    check_ok(zkl_mutex_trylock(next));
    check_ok(zkl_mutex_unlock(next));
    check_ok(wire_delete_tree(raw, cluster_at(member_path(path, bad))));
}

/* Goal: a member that can't be given back keeps nothing else from being given back, whether it
 * is the first or the last. The unlock reports each member's code. */
WORLD_TEST(some_releases_fail)
{
    check_release_of(0);
    check_release_of(1);
}

static void check_lock_of(int bad, int denied)
{
    const char *path = cluster_path("bad-lock");
    struct multi *m = multi_of(path, bad, denied);

    check_num(zkl_multi_lock_for(m->multi, WAIT_MS), ==, ZKL_EACCES);
    check_num(zkl_multi_still_held(m->multi, 0), ==, 0);
    for (int i = 0; i < MEMBERS; i++) {
        check_num(zkl_mutex_hold_count(m->mutexes[i]), ==, 0);
        check_wait(cluster_children(member_path(path, i)) == 0, WAIT_MS);
    }
    check_num(zkl_multi_unlock(m->multi, NULL), ==, ZKL_ENOTOWNER);
}

/* Goal: a member that can't be locked: none is held, and no node is left. Method: without CREATE
 * the transaction fails as a whole; without READ it fails when the other one has been locked.
 * Modes: F24, F25. */
WORLD_TEST(some_locks_fail_to_lock)
{
    static const int denied[] = {PERM_CREATE, PERM_READ};

    for (int i = 0; i < 4; i++)
        check_lock_of(i % 2, denied[i / 2]);
}
