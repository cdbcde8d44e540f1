/* SPDX-License-Identifier: Apache-2.0 */
/* TestInterProcessMultiMutex. */
#include "cluster.h"

#include <stdio.h>
#include <stdlib.h>

#define MEMBERS 2

struct multi {
    struct zkl_mutex *mutexes[MEMBERS];
    struct zkl_multi *multi;
};

static const char *member_path(const char *path, int i)
{
    static char paths[8][128];
    static unsigned last;
    char *member = paths[++last % 8];

    snprintf(member, sizeof paths[0], "%s-%d", path, i + 1);
    return member;
}

static struct multi *make(struct zkl_client *client, const char *path)
{
    struct multi *m = world_alloc(sizeof *m);
    struct zkl_member members[MEMBERS];

    for (int i = 0; i < MEMBERS; i++) {
        m->mutexes[i] = world_mutex(client, member_path(path, i));
        members[i] = zkl_member_mutex(m->mutexes[i]);
    }
    m->multi = world_multi(client, members, MEMBERS);
    return m;
}

enum { READ = 1, CREATE = 4, DELETE = 8 };

/* A path at which only the raw connection may do this. */
static void make_bad(const char *path, int denied)
{
    struct wire_acl acl[] = {{WIRE_PERM_ALL & ~denied, "world", "anyone"},
                             {WIRE_PERM_ALL, "auth", ""}};

    check_ok(wire_auth(raw, "digest", "admin:admin"));
    check_ok(wire_create_acl(raw, cluster_at(path), "", WIRE_PERSISTENT, acl, 2, NULL, 0));
}

static void check_release_of(int bad)
{
    struct zkl_client *client = world_client(), *other = world_client();
    const char *path = cluster_path("bad-release");
    int good = !bad, codes[MEMBERS] = {1, 1};

    make_bad(member_path(path, bad), DELETE);
    struct multi *m = make(client, path);
    struct zkl_mutex *next = world_mutex(other, member_path(path, good));
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
    struct zkl_client *client = world_client();
    const char *path = cluster_path("bad-lock");

    make_bad(member_path(path, bad), denied);
    struct multi *m = make(client, path);
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
    static const int denied[] = {CREATE, READ};

    for (int i = 0; i < 4; i++)
        check_lock_of(i % 2, denied[i / 2]);
}
