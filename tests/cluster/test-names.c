/* SPDX-License-Identifier: Apache-2.0 */
/* Options of one lock: how its contenders name themselves, and what their nodes say. */
#include "check_error.h"
#include "nodes.h"

#include <fnmatch.h>

static struct zkl_mutex *mutex_with(struct zkl_client *client, const char *path,
                                    enum zkl_names names, const char *name, const char *owner)
{
    struct zkl_mutex_options options = ZKL_MUTEX_OPTIONS_INIT;
    options.names = names;
    options.name = name;
    options.owner = owner;
    return world_mutex_with(client, path, &options);
}

/* The held node's name without its path is this, with wildcards. */
static void check_name(struct zkl_mutex *mutex, const char *name)
{
    check_ok(zkl_mutex_lock(mutex));
    if (fnmatch(name, strrchr(node_of(mutex), '/') + 1, 0) != 0)
        fail_msg("%s is not %s", node_of(mutex), name);
    check_ok(zkl_mutex_unlock(mutex));
}

/* Goal: each naming is on the server what its peers read. */
WORLD_TEST(nodes_are_named_as_asked)
{
    const char *path = cluster_path("named");
    struct zkl_client *client = world_client();

    check_name(world_mutex(client, path), "_c_*-lock-*");
    check_name(mutex_with(client, path, ZKL_NAMES_KAZOO, NULL, NULL),
               "????????????????????????????????__lock__*");
    check_name(mutex_with(client, path, ZKL_NAMES_NAMED, "report", NULL), "*-report_lock_*");
}

/* Goal: Curator's and Kazoo's names exclude each other among clients of this library. */
WORLD_TEST(curators_and_kazoos_names_exclude_each_other)
{
    const char *path = cluster_path("both");
    struct zkl_client *client = world_client(), *other = world_client();
    struct zkl_mutex *curator = world_mutex(client, path);
    struct zkl_mutex *kazoo = mutex_with(other, path, ZKL_NAMES_KAZOO, NULL, NULL);

    check_ok(zkl_mutex_lock(curator));
    check_num(zkl_mutex_trylock(kazoo), ==, ZKL_EBUSY);
    check_ok(zkl_mutex_unlock(curator));
    check_ok(zkl_mutex_lock(kazoo));
    check_num(zkl_mutex_trylock(curator), ==, ZKL_EBUSY);
    check_ok(zkl_mutex_unlock(kazoo));
}

/* Goal: named locks stand side by side under one path: the same name excludes, another does not,
 * and a plain mutex there is a stranger to them. */
WORLD_TEST(named_locks_stand_side_by_side)
{
    const char *path = cluster_path("side");
    struct zkl_client *client = world_client(), *other = world_client();
    struct zkl_mutex *alpha = mutex_with(client, path, ZKL_NAMES_NAMED, "alpha", NULL);
    struct zkl_mutex *again = mutex_with(other, path, ZKL_NAMES_NAMED, "alpha", NULL);
    struct zkl_mutex *beta = mutex_with(other, path, ZKL_NAMES_NAMED, "beta", NULL);
    struct zkl_mutex *plain = world_mutex(other, path);

    check_ok(zkl_mutex_lock(alpha));
    check_num(zkl_mutex_trylock(again), ==, ZKL_EBUSY);
    cycle(beta, 1);
    cycle(plain, 1);
    check_ok(zkl_mutex_unlock(alpha));
    check_num(cluster_children(path), ==, 0);
}

/* Goal: one thread can hold locks that know nothing of each other at the same time: locks of
 * different names under one path, also as one multi-lock, and a plain one. Of two handles with the same name the second one
 * would make the thread wait for itself. Each hold ends by itself. */
WORLD_TEST(one_thread_holds_several_names)
{
    const char *path = cluster_path("several");
    struct zkl_client *client = world_client();
    struct zkl_mutex *red = mutex_with(client, path, ZKL_NAMES_NAMED, "red", NULL);
    struct zkl_mutex *again = mutex_with(client, path, ZKL_NAMES_NAMED, "red", NULL);
    struct zkl_mutex *blue = mutex_with(client, path, ZKL_NAMES_NAMED, "blue", NULL);
    struct zkl_mutex *plain = world_mutex(client, path);
    struct zkl_mutex *kazoo = mutex_with(client, path, ZKL_NAMES_KAZOO, NULL, NULL);
    struct zkl_member members[] = {zkl_member_mutex(red), zkl_member_mutex(blue)};
    struct zkl_multi *both = world_multi(client, members, 2);

    check_ok(zkl_multi_lock(both));
    check_num(cluster_children(path), ==, 2);
    check_ok(zkl_multi_unlock(both, NULL));
    check_ok(zkl_mutex_lock(red));
    check_ok(zkl_mutex_lock(blue));
    members[1] = zkl_member_mutex(again);
    check_num(zkl_multi_new(&both, client, members, 2), ==, ZKL_EDEADLK);
    check_ok(zkl_mutex_lock(plain));
    check_num(cluster_children(path), ==, 3);
    check_num(zkl_mutex_lock(again), ==, ZKL_EDEADLK);
    check_num(zkl_mutex_lock(kazoo), ==, ZKL_EDEADLK); /* sees the plain one */
    check_ok(zkl_mutex_unlock(red));
    check_num(zkl_mutex_still_held(blue, 1), ==, 1);
    check_num(zkl_mutex_still_held(plain, 1), ==, 1);
    check_ok(zkl_mutex_lock(again));
    check_ok(zkl_mutex_unlock(plain));
    check_ok(zkl_mutex_unlock(blue));
    check_ok(zkl_mutex_unlock(again));
    check_num(cluster_children(path), ==, 0);
}

/* Goal: a node's data says who made it: "host pid thread", or the client's owner text, up to 512 bytes of it, or the lock's
 * own, of which that has a copy, in both halves of a read-write lock, too. */
WORLD_TEST(a_node_names_its_owner)
{
    const char *path = cluster_path("owner");
    char threads[600], host[65] = "", whole[513] = "", owner[] = "backup of db7", data[600];
    struct zkl_client *client = world_client();
    struct zkl_client_options options = cluster_options();
    struct zkl_lock_options of_lock = ZKL_LOCK_OPTIONS_INIT;

    check_ok(gethostname(host, sizeof host - 1));
    snprintf(threads, sizeof threads, "%s %ld %ld", host, (long)getpid(), (long)gettid());
    options.owner = memset(whole, 'o', sizeof whole - 1);
    of_lock.owner = owner;
    struct zkl_rwlock *rwlock = world_rwlock(client, path, &of_lock);
    const struct {
        struct zkl_mutex *mutex;
        const char *data;
    } rows[] = {
        {world_mutex(client, path), threads},
        {world_mutex(world_client_with(&options), path), whole},
        {mutex_with(client, path, ZKL_NAMES_CURATOR, NULL, owner), "backup of db7"},
        {zkl_rwlock_writer(rwlock), "backup of db7"},
        {zkl_rwlock_reader(rwlock), "backup of db7"},
    };
    owner[0] = 'B';
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        check_ok(zkl_mutex_lock(rows[i].mutex));
        check_num(cluster_children(path), ==, 1);
        check_ok(wire_get(raw, node_of(rows[i].mutex), data, sizeof data, NULL));
        check_text(data, rows[i].data);
        check_ok(zkl_mutex_unlock(rows[i].mutex));
    }
}

/* Goal: options that can't be are refused, with words. */
WORLD_TEST(bad_options_are_refused)
{
    static char long_text[600];
    static const struct {
        enum zkl_names names;
        const char *name, *owner, *word;
    } bad[] = {
        {(enum zkl_names)7, NULL, NULL, "ZKL_NAMES"}, {ZKL_NAMES_NAMED, NULL, NULL, "or neither"},
        {ZKL_NAMES_CURATOR, "x", NULL, "or neither"}, {ZKL_NAMES_NAMED, "a_lock_b", NULL, "_lock_"},
        {ZKL_NAMES_NAMED, "a/b", NULL, "slash"},      {ZKL_NAMES_NAMED, "", NULL, "empty"},
        {ZKL_NAMES_NAMED, long_text, NULL, "64"},     {ZKL_NAMES_CURATOR, NULL, long_text, "512"},
    };
    struct zkl_client *client = world_client();
    struct zkl_mutex *mutex;
    struct zkl_rwlock *rwlock;
    struct zkl_semaphore *semaphore;
    struct zkl_mutex_options options = ZKL_MUTEX_OPTIONS_INIT;
    struct zkl_lock_options of_all = ZKL_LOCK_OPTIONS_INIT;

    memset(long_text, 'x', sizeof long_text - 1);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        options.names = bad[i].names;
        options.name = bad[i].name;
        options.owner = bad[i].owner;
        check_fails(zkl_mutex_new(&mutex, client, "/x", &options), ZKL_EINVAL, bad[i].word);
    }
    of_all.names = ZKL_NAMES_NAMED;
    check_fails(zkl_rwlock_new(&rwlock, client, "/x", &of_all), ZKL_EINVAL, "only mutexes");
    check_fails(zkl_semaphore_new(&semaphore, client, "/x", 1, &of_all), ZKL_EINVAL,
                "only mutexes");
    check_fails(zkl_semaphore_mutex_new(&mutex, client, "/x", &of_all), ZKL_EINVAL, "only mutexes");
}
