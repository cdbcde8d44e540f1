/* SPDX-License-Identifier: Apache-2.0 */
/* Many acquisitions under way at a time, of one client and one thread: what each takes, that a half of them can
 * be given up, and that nothing of any is left. Multi-locks likewise. */
#include "cluster.h"

#include "api/client.h"
#include "process.h"
#include "under_way.h"

#include <malloc.h>

#define BYTES_MAX 6000 /* for one that waits: handle, operation, watch */
#define PERMITS_EACH 5 /* each fifth multi-lock has a semaphore, too */
#define LIMIT_MS (WAIT_MS + count * 20)

static int count;

/* A mutex, or a multi-lock of it, another mutex and maybe permits. */
struct one {
    struct zkl_owner *owner;
    struct zkl_mutex *mutex;
    struct zkl_multi *multi; /* or NULL */
    uint64_t op;
};

struct many {
    struct zkl_client *client;
    struct one *all;
    atomic_int granted, canceled, unlocked, wrong;
};

static void granted(int code, void *arg)
{
    struct many *c = arg;
    atomic_fetch_add(code == 0 ? &c->granted : code == ZKL_ECANCELED ? &c->canceled : &c->wrong, 1);
}

static void unlocked(int code, void *arg)
{
    struct many *c = arg;
    atomic_fetch_add(code == 0 ? &c->unlocked : &c->wrong, 1);
}

static const char *path_of(const char *folder, int i)
{
    char name[20];

    snprintf(name, sizeof name, "%d", i);
    return below(folder, name);
}

static struct zkl_multi *multi_of(struct zkl_client *client, struct zkl_mutex *mutex, int i)
{
    struct zkl_member members[3] = {zkl_member_mutex(mutex),
                                    zkl_member_mutex(world_mutex(client, path_of("/more", i)))};
    bool has_permits = i % PERMITS_EACH == 0;

    if (has_permits)
        members[2] =
            zkl_member_semaphore(world_semaphore(client, path_of("/number", i), 2, NULL), 2);
    return world_multi(client, members, has_permits ? 3 : 2);
}

static void start(struct many *c, struct one *o)
{
    check_ok(o->multi
                 ? zkl_multi_acquire_async(o->owner, o->multi, NULL, NULL, granted, c, &o->op)
                 : zkl_mutex_acquire_async(o->owner, o->mutex, NULL, NULL, granted, c, &o->op));
}

static void start_all(struct many *c, bool multi)
{
    struct zkl_owner *owner = world_owner();

    c->all = world_alloc((size_t)count * sizeof *c->all);
    for (int i = 0; i < count; i++) {
        struct one *o = &c->all[i];
        o->owner = multi ? world_owner() : owner;
        o->mutex = world_mutex(c->client, path_of("/many", i));
        o->multi = multi ? multi_of(c->client, o->mutex, i) : NULL;
        start(c, o);
    }
}

/* All, or only every second. */
static void unlock_all(struct many *c, int step)
{
    for (struct one *o = c->all; o < c->all + count; o += step)
        check_ok(o->multi ? zkl_multi_unlock_async(o->owner, o->multi, NULL, unlocked, c)
                          : zkl_mutex_unlock_async(o->owner, o->mutex, unlocked, c));
}

/* Every acquisition is in the queue and watches its predecessor, and no answer is due. */
static bool is_settled(struct many *c)
{
    struct zkl_driver *d = c->client->driver;
    zkl_driver_lock(d);
    bool settled = d->core.watch_count >= (size_t)count &&
                   d->core.counts[ZKL_COUNT_WAITS] == (size_t)count && d->core.pending_count == 0;
    zkl_driver_unlock(d);
    return settled;
}

static bool is_clean(struct many *c)
{
    struct zkl_driver *d = c->client->driver;
    zkl_driver_lock(d);
    size_t left =
        contenders_of(&d->core) + d->core.watch_count + calls_of(d) + d->core.pending_count;
    zkl_driver_unlock(d);
    return left == 0;
}

/* `count` acquisitions wait at a time with no thread of their own, each for a path of its own that another client holds.
 * Half of them are canceled, and the others get their locks. Nothing stays, neither on the server nor in this process.
 * What each of them took. */
static size_t check_many(bool multi)
{
    struct many theirs = {.client = world_client()}, ours = {.client = world_client()};

    count = (int)test_length(10000, 1000);
    start_all(&theirs, false);
    check_wait(atomic_load(&theirs.granted) == count, LIMIT_MS);

    int threads = process_entries("task");
    size_t before = mallinfo2().uordblks;
    start_all(&ours, multi);
    check_wait(is_settled(&ours), LIMIT_MS);
    size_t bytes = (mallinfo2().uordblks - before) / (size_t)count;
    check_num(process_entries("task"), ==, threads);
    check_num(ours.granted + ours.canceled + ours.wrong, ==, 0);

    for (int i = 1; i < count; i += 2)
        check_ok(zkl_op_cancel(ours.client, ours.all[i].op));
    check_wait(atomic_load(&ours.canceled) == count / 2, LIMIT_MS);
    unlock_all(&theirs, 1);
    check_wait(atomic_load(&theirs.unlocked) == count, LIMIT_MS);
    check_wait(atomic_load(&ours.granted) == count - count / 2, LIMIT_MS);
    unlock_all(&ours, 2);
    check_num(process_entries("task"), ==, threads);
    check_wait(atomic_load(&ours.unlocked) == count - count / 2, LIMIT_MS);

    check_wait(is_clean(&ours) && is_clean(&theirs), LIMIT_MS);
    for (int i = 0; i < count; i++)
        check_num(cluster_children(path_of("/many", i)), ==, 0);
    check_num(node_watches(NULL), ==, 0);
    check_num(ours.wrong + theirs.wrong, ==, 0);
    return bytes;
}

WORLD_TEST(many_wait_at_a_time)
{
    size_t bytes = check_many(false);

    print_message("    %d wait, %zu bytes for each\n", count, bytes);
    check_num(bytes, <, BYTES_MAX);
}

WORLD_TEST(many_multi_locks_take_no_thread)
{
    check_many(true);
}
