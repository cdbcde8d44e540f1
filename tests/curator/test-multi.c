/* SPDX-License-Identifier: Apache-2.0 */
/* TestInterProcessMultiMutex. */
#include "base.h"

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

static void *make(struct zkl_client *client, const char *path)
{
    struct multi *m = calloc(1, sizeof *m);
    struct zkl_member members[MEMBERS];

    check_true(m != NULL);
    for (int i = 0; i < MEMBERS; i++) {
        m->mutexes[i] = cluster_mutex(client, member_path(path, i));
        members[i] = zkl_member_mutex(m->mutexes[i]);
    }
    if (zkl_multi_new(&m->multi, client, members, MEMBERS) != 0)
        fail_msg("%s", zkl_error_detail());
    return m;
}

static void unmake(void *lock)
{
    struct multi *m = lock;

    check_ok(zkl_multi_free(m->multi));
    for (int i = 0; i < MEMBERS; i++)
        check_ok(zkl_mutex_free(m->mutexes[i]));
    free(m);
}

static int lock_for(void *lock, int64_t ms)
{
    return zkl_multi_lock_for(((struct multi *)lock)->multi, ms);
}

static int unlock(void *lock)
{
    return zkl_multi_unlock(((struct multi *)lock)->multi, NULL);
}

static int held(void *lock)
{
    return zkl_multi_still_held(((struct multi *)lock)->multi, 0);
}

/* Of the first member: a contender that waits there has no place at the second one. */
static int contenders(const char *path)
{
    return cluster_children(member_path(path, 0));
}

const struct lock_kind lock_kind = {
    .name = "multi",
    .make = make,
    .unmake = unmake,
    .lock_for = lock_for,
    .unlock = unlock,
    .held = held,
    .contenders = contenders,
};

/* Goal: what is held in a block is given back at its end, whatever its way out. There is no scope
 * guard for multi-locks: lock and unlock. */
CLUSTER_TEST(a_multi_lock_holds_from_lock_to_unlock)
{
    struct zkl_client *client = cluster_client();
    struct multi *m = make(client, cluster_path("block"));

    check_ok(zkl_multi_lock_for(m->multi, WAIT_MS));
    check_num(held(m), ==, 1);
    for (int i = 0; i < MEMBERS; i++)
        check_num(zkl_mutex_still_held(m->mutexes[i], 0), ==, 1);
    check_ok(unlock(m));
    check_num(held(m), ==, 0);
    for (int i = 0; i < MEMBERS; i++)
        check_num(zkl_mutex_still_held(m->mutexes[i], 0), ==, 0);
    unmake(m);
    cluster_free(client, NULL);
}

/* --- a member that fails ---------------------------------------------------------------------- */

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
    struct zkl_client *client = cluster_client(), *other = cluster_client();
    const char *path = cluster_path("bad-release");
    int good = !bad, codes[MEMBERS] = {1, 1};

    make_bad(member_path(path, bad), DELETE);
    struct multi *m = make(client, path);
    struct zkl_mutex *next = cluster_mutex(other, member_path(path, good));
    check_ok(zkl_multi_lock(m->multi));
    check_num(zkl_multi_unlock(m->multi, codes), ==, ZKL_EACCES);
    check_num(codes[good], ==, 0);
    check_num(codes[bad], ==, ZKL_EACCES);
    check_num(zkl_mutex_hold_count(m->mutexes[good]), ==, 0);
    check_num(cluster_children(member_path(path, bad)), ==, 1);
    check_ok(zkl_mutex_trylock(next));
    check_ok(zkl_mutex_unlock(next));
    cluster_free(other, next);
    unmake(m);
    cluster_free(client, NULL);
}

/* Goal: a member that can't be given back keeps nothing else from being given back, whether it
 * is the first or the last. The unlock reports each member's code. */
CLUSTER_TEST(some_releases_fail)
{
    check_release_of(0);
    check_release_of(1);
}

static void check_lock_of(int bad, int denied)
{
    struct zkl_client *client = cluster_client();
    const char *path = cluster_path("bad-lock");

    make_bad(member_path(path, bad), denied);
    struct multi *m = make(client, path);
    check_num(zkl_multi_lock_for(m->multi, WAIT_MS), ==, ZKL_EACCES);
    check_num(held(m), ==, 0);
    for (int i = 0; i < MEMBERS; i++) {
        check_num(zkl_mutex_hold_count(m->mutexes[i]), ==, 0);
        check_wait(cluster_children(member_path(path, i)) == 0, WAIT_MS);
    }
    check_num(zkl_multi_unlock(m->multi, NULL), ==, ZKL_ENOTOWNER);
    unmake(m);
    cluster_free(client, NULL);
}

/* Goal: a member that can't be locked: none is held, and no node is left. Method: without CREATE
 * the transaction fails as a whole; without READ it fails when the other one has been locked.
 * Modes: F24, F25. */
CLUSTER_TEST(some_locks_fail_to_lock)
{
    static const int denied[] = {CREATE, READ};

    for (int i = 0; i < 4; i++)
        check_lock_of(i % 2, denied[i / 2]);
}

BASE_TESTS
REENTRANT_TESTS
