/* SPDX-License-Identifier: Apache-2.0 */
/* Many acquisitions under way at a time, of one client and one thread: what each takes, that a half of them can
 * be given up, and that nothing of any is left. Multi-locks likewise. */
#include "api/client.h"
#include "cluster.h"
#include "completion.h"
#include "under_way.h"

#include <dirent.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>

#define BYTES_MAX 6000 /* for one that waits: handle, operation, watch */

static int count;

struct crowd {
    struct zkl_client *client;
    struct zkl_owner *owner;
    struct zkl_mutex **mutexes;
    uint64_t *ops;
    atomic_int granted, canceled, unlocked, wrong;
};

static void granted(int code, void *arg)
{
    struct crowd *c = arg;
    atomic_fetch_add(code == 0 ? &c->granted : code == ZKL_ECANCELED ? &c->canceled : &c->wrong, 1);
}

static void unlocked(int code, void *arg)
{
    struct crowd *c = arg;
    atomic_fetch_add(code == 0 ? &c->unlocked : &c->wrong, 1);
}

static struct crowd crowd_open(void)
{
    struct crowd c = {.client = world_client(), .owner = world_owner()};

    c.mutexes = world_alloc((size_t)count * sizeof *c.mutexes);
    c.ops = world_alloc((size_t)count * sizeof *c.ops);
    return c;
}

static void start_all(struct crowd *c)
{
    char path[40];

    for (int i = 0; i < count; i++) {
        snprintf(path, sizeof path, "/many/%d", i);
        c->mutexes[i] = world_mutex(c->client, path);
        check_ok(
            zkl_mutex_acquire_async(c->owner, c->mutexes[i], NULL, NULL, granted, c, &c->ops[i]));
    }
}

/* From the first on, or only every second. */
static void unlock_all(struct crowd *c, int first, int step)
{
    for (int i = first; i < count; i += step)
        check_ok(zkl_mutex_unlock_async(c->owner, c->mutexes[i], unlocked, c));
}

/* Every acquisition is in the queue and watches its predecessor, and no answer is due. */
static bool is_settled(struct crowd *c)
{
    struct zkl_driver *d = c->client->driver;
    zkl_driver_lock(d);
    bool settled = d->core.watch_count >= (size_t)count &&
                   d->core.counts[ZKL_COUNT_WAITS] == (size_t)count && d->core.pending_count == 0;
    zkl_driver_unlock(d);
    return settled;
}

static bool is_clean(struct crowd *c)
{
    struct zkl_driver *d = c->client->driver;
    zkl_driver_lock(d);
    size_t left =
        contenders_of(&d->core) + d->core.watch_count + calls_of(d) + d->core.pending_count;
    zkl_driver_unlock(d);
    return left == 0;
}

#define LIMIT_MS (WAIT_MS + count * 20)

/* Goal: `count` acquisitions wait at a time with no thread of their own, each for a path of its own
 * that another client holds. The test cancels half of them, and the others get their locks. Nothing
 * stays, neither on the server nor in this process. */
WORLD_TEST(many_wait_at_a_time)
{
    count = (int)test_length(10000, 1000);
    struct crowd theirs = crowd_open(), ours = crowd_open();
    start_all(&theirs);
    check_wait(atomic_load(&theirs.granted) == count, LIMIT_MS);

    size_t before = mallinfo2().uordblks;
    start_all(&ours);
    check_wait(is_settled(&ours), LIMIT_MS);
    size_t bytes = (mallinfo2().uordblks - before) / (size_t)count;
    print_message("    %d wait, %zu bytes for each\n", count, bytes);
    check_num(bytes, <, BYTES_MAX);

    for (int i = 1; i < count; i += 2)
        check_ok(zkl_op_cancel(ours.client, ours.ops[i]));
    check_wait(atomic_load(&ours.canceled) == count / 2, LIMIT_MS);
    unlock_all(&theirs, 0, 1);
    check_wait(atomic_load(&theirs.unlocked) == count, LIMIT_MS);
    check_wait(atomic_load(&ours.granted) == count - count / 2, LIMIT_MS);
    unlock_all(&ours, 0, 2);
    check_wait(atomic_load(&ours.unlocked) == count - count / 2, LIMIT_MS);

    check_wait(is_clean(&ours) && is_clean(&theirs), LIMIT_MS);
    for (int i = 0; i < count; i++) {
        char path[40];
        snprintf(path, sizeof path, "/many/%d", i);
        check_num(cluster_children(path), ==, 0);
    }
    check_num(flw_watch_count(zks_host(), zks_port(server, 0), NULL), ==, 0);
    check_num(ours.wrong + theirs.wrong, ==, 0);
}

/* --- multi-locks ------------------------------------------------------------------------------ */

#define PERMITS_EACH 5 /* each fifth multi-lock has a semaphore, too */

struct several {
    struct zkl_owner *owner;
    struct zkl_mutex *first, *second;
    struct zkl_semaphore *semaphore; /* NULL: it has none */
    struct zkl_multi *multi;
    uint64_t op;
};

static int threads_now(void)
{
    DIR *dir = opendir("/proc/self/task");
    int n = 0;
    while (dir && readdir(dir) != NULL)
        n++;
    closedir(dir);
    return n;
}

static struct several several_new(struct zkl_client *client, int i)
{
    struct several s = {.owner = world_owner()};
    struct zkl_member members[3];
    char path[40];

    snprintf(path, sizeof path, "/many/%d", i);
    s.first = world_mutex(client, path);
    snprintf(path, sizeof path, "/more/%d", i);
    s.second = world_mutex(client, path);
    members[0] = zkl_member_mutex(s.first);
    members[1] = zkl_member_mutex(s.second);
    if (i % PERMITS_EACH == 0) {
        snprintf(path, sizeof path, "/number/%d", i);
        s.semaphore = world_semaphore(client, path, 2, NULL);
        members[2] = zkl_member_semaphore(s.semaphore, 2);
    }
    s.multi = world_multi(client, members, s.semaphore ? 3 : 2);
    return s;
}

static struct several *several_start_all(struct crowd *c)
{
    struct several *all = world_alloc((size_t)count * sizeof *all);
    for (int i = 0; i < count; i++) {
        all[i] = several_new(c->client, i);
        check_ok(zkl_multi_acquire_async(all[i].owner, all[i].multi, NULL, NULL, granted, c,
                                         &all[i].op));
    }
    return all;
}

/* Goal: `count` multi-locks are acquired and released at a time with no thread of their own, some
 * of them with permits. Method: another client holds the first path of each. The test cancels half
 * of the operations. */
WORLD_TEST(many_multi_locks_take_no_thread)
{
    count = (int)test_length(10000, 1000);
    struct crowd theirs = crowd_open(), ours = crowd_open();
    start_all(&theirs);
    check_wait(atomic_load(&theirs.granted) == count, LIMIT_MS);

    int threads = threads_now();
    struct several *all = several_start_all(&ours);
    check_num(threads_now(), ==, threads);
    check_wait(is_settled(&ours), LIMIT_MS);
    check_num(threads_now(), ==, threads);
    check_num(ours.granted + ours.canceled + ours.wrong, ==, 0);

    for (int i = 1; i < count; i += 2)
        check_ok(zkl_op_cancel(ours.client, all[i].op));
    check_wait(atomic_load(&ours.canceled) == count / 2, LIMIT_MS);
    unlock_all(&theirs, 0, 1);
    check_wait(atomic_load(&ours.granted) == count - count / 2, LIMIT_MS);
    for (int i = 0; i < count; i += 2)
        check_ok(zkl_multi_unlock_async(all[i].owner, all[i].multi, NULL, unlocked, &ours));
    check_num(threads_now(), ==, threads);
    check_wait(atomic_load(&ours.unlocked) == count - count / 2, LIMIT_MS);
    check_wait(atomic_load(&theirs.unlocked) == count, LIMIT_MS);

    check_wait(is_clean(&ours) && is_clean(&theirs), LIMIT_MS);
    check_num(ours.wrong + theirs.wrong, ==, 0);
}
