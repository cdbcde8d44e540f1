/* SPDX-License-Identifier: Apache-2.0 */
/* Options of one lock: what its nodes say, and which are refused. mutexes.txt has the names on the server. */
#include "check_error.h"
#include "nodes.h"

/* Goal: a node's data says who made it: "host pid thread", or the client's owner text, up to 512 bytes of it, or the lock's
 * own, of which that has a copy, in both halves of a read-write lock, too. */
WORLD_TEST(a_node_names_its_owner)
{
    const char *path = cluster_path("owner");
    char threads[600], host[65] = "", whole[513] = "", owner[] = "backup of db7", data[600];
    struct zkl_client *client = world_client();
    struct zkl_client_options options = cluster_options();
    struct zkl_lock_options of_lock = ZKL_LOCK_OPTIONS_INIT;
    struct zkl_mutex_options of_mutex = ZKL_MUTEX_OPTIONS_INIT;

    check_ok(gethostname(host, sizeof host - 1));
    snprintf(threads, sizeof threads, "%s %ld %ld", host, (long)getpid(), (long)gettid());
    options.owner = memset(whole, 'o', sizeof whole - 1);
    of_lock.owner = of_mutex.owner = owner;
    struct zkl_rwlock *rwlock = world_rwlock(client, path, &of_lock);
    const struct {
        struct zkl_mutex *mutex;
        const char *data;
    } rows[] = {
        {world_mutex(client, path), threads},
        {world_mutex(world_client_with(&options), path), whole},
        {world_mutex_with(client, path, &of_mutex), "backup of db7"},
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
