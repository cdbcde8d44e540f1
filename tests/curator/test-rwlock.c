/* SPDX-License-Identifier: Apache-2.0 */
/* TestInterProcessReadWriteLock. */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "crowd.h"
#include "expiring.h"
#include "room.h"
#include "participants.h"

static struct zkl_rwlock *rwlock_with(struct zkl_client *client, const char *path,
                                      const struct zkl_lock_options *options)
{
    struct zkl_rwlock *rwlock = NULL;

    if (zkl_rwlock_new(&rwlock, client, path, options) != 0)
        fail_msg("%s", zkl_error_detail());
    return rwlock;
}

/* A read-write lock, its client, and an actor. */
struct bench {
    const char *path;
    struct zkl_client *client;
    struct zkl_rwlock *rwlock;
    struct zkl_mutex *read, *write;
    struct actor *actor;
};

static struct bench bench_open(const char *name)
{
    struct bench b = {.path = cluster_path(name), .client = cluster_client()};

    b.actor = actor_new();
    b.rwlock = rwlock_with(b.client, b.path, NULL);
    b.read = zkl_rwlock_reader(b.rwlock);
    b.write = zkl_rwlock_writer(b.rwlock);
    return b;
}

static void bench_close(struct bench *b)
{
    check_wait(cluster_children(b->path) == 0, WAIT_MS);
    actor_end(b->actor);
    check_ok(zkl_rwlock_free(b->rwlock));
    check_ok(zkl_client_free(b->client));
}

static int lock_briefly(void *mutex)
{
    return zkl_mutex_lock_for(mutex, 300);
}

/* --- the list of contenders ------------------------------------------------------------------- */

#define READERS 20
#define WRITERS 8

/* Goal: twenty readers hold together, eight writers wait behind them; all are listed as what they
 * are. */
CLUSTER_TEST(all_participants_are_listed)
{
    struct bench b = bench_open("participants");
    struct actor *readers[READERS], *writers[WRITERS];

    for (int i = 0; i < READERS; i++)
        check_ok(actor_do(readers[i] = actor_new(), do_lock, b.read));
    for (int i = 0; i < WRITERS; i++)
        actor_begin(writers[i] = actor_new(), do_lock, b.write);
    check_wait(cluster_children(b.path) == READERS + WRITERS, WAIT_MS);
    struct participants participants = count_participants(b.client, b.path);
    check_num(participants.kind, ==, ZKL_LOCK_KIND_RWLOCK);
    check_num(participants.count[ZKL_ENTRY_ROLE_HOLDER][ZKL_ENTRY_ACCESS_READ], ==, READERS);
    check_num(participants.count[ZKL_ENTRY_ROLE_WAITER][ZKL_ENTRY_ACCESS_WRITE], ==, WRITERS);
    check_num(participants.total, ==, READERS + WRITERS);
    for (int i = 0; i < READERS; i++) {
        check_ok(actor_do(readers[i], do_unlock, b.read));
        actor_end(readers[i]);
    }
    for (int left = WRITERS; left > 0; left--) {
        int i = 0;
        check_wait(some_is_done(writers, left, &i), WAIT_MS);
        check_ok(actor_do(writers[i], do_unlock, b.write));
        actor_end(writers[i]);
        writers[i] = writers[left - 1];
    }
    bench_close(&b);
}

/* --- up and down ------------------------------------------------------------------------------ */

/* Goal: a reader can't become a writer. There it waits in vain, here its call fails immediately.
 * Modes: F39. */
CLUSTER_TEST(upgrading_is_refused)
{
    struct bench b = bench_open("upgrade");

    check_ok(zkl_mutex_lock(b.read));
    int64_t start = net_now_ms();
    check_num(zkl_mutex_lock_for(b.write, 5000), ==, ZKL_EDEADLK);
    check_true(net_now_ms() - start < 2500 || lag_is_slow());
    check_num(zkl_mutex_hold_count(b.read), ==, 1);
    check_num(cluster_children(b.path), ==, 1);
    check_ok(zkl_mutex_unlock(b.read));
    bench_close(&b);
}

/* Goal: a writer acquires the read lock too, and releases the write lock. */
CLUSTER_TEST(downgrading_works)
{
    struct bench b = bench_open("downgrade");

    check_ok(zkl_mutex_lock(b.write));
    check_ok(zkl_mutex_lock_for(b.read, 5000));
    check_ok(zkl_mutex_unlock(b.write));
    check_num(zkl_mutex_hold_count(b.write), ==, 0);
    check_num(zkl_mutex_still_held(b.read, 0), ==, 1);
    check_ok(actor_do(b.actor, lock_briefly, b.read));
    check_ok(actor_do(b.actor, do_unlock, b.read));
    check_ok(zkl_mutex_unlock(b.read));
    bench_close(&b);
}

/* Goal: a writer that was queued before the downgrade does not get in beside the reader that the
 * holder has become; it does when that one leaves. Modes: F36. */
CLUSTER_TEST(a_queued_writer_waits_for_a_downgraded_reader)
{
    struct bench b = bench_open("contended");
    struct zkl_rwlock *other = rwlock_with(b.client, b.path, NULL);

    check_ok(zkl_mutex_lock(b.write));
    actor_begin(b.actor, do_lock, zkl_rwlock_writer(other));
    check_wait(cluster_children(b.path) == 2, WAIT_MS);
    check_ok(zkl_mutex_lock_for(b.read, 5000));
    check_ok(zkl_mutex_unlock(b.write));
    net_nap_ms(100); /* would do for a wrong grant */
    check_true(!actor_is_done(b.actor));
    check_ok(zkl_mutex_unlock(b.read));
    check_ok(actor_result(b.actor));
    check_ok(actor_do(b.actor, do_unlock, zkl_rwlock_writer(other)));
    check_ok(zkl_rwlock_free(other));
    bench_close(&b);
}

/* Goal: only the thread that writes may read too: another one of the same handle waits. */
CLUSTER_TEST(downgrading_is_for_the_thread_that_writes)
{
    struct bench b = bench_open("threads");

    check_ok(zkl_mutex_lock(b.write));
    check_num(actor_do(b.actor, lock_briefly, b.read), ==, ZKL_ETIMEDOUT);
    check_wait(cluster_children(b.path) == 1, WAIT_MS);
    check_ok(zkl_mutex_unlock(b.write));
    check_ok(actor_do(b.actor, lock_briefly, b.read));
    check_ok(actor_do(b.actor, do_unlock, b.read));
    bench_close(&b);
}

/* --- many of both ----------------------------------------------------------------------------- */

#define CLIENTS 8

struct traffic {
    const char *path;
    struct room room;
    atomic_int most_readers;
    atomic_int reads, writes; /* so far */
    atomic_int overlaps;
};

struct driver {
    struct traffic *traffic;
    struct zkl_client *client;
    struct zkl_rwlock *rwlock;
    unsigned seed;
    long turns;
    uint32_t number;
};

static void read_awhile(struct driver *driver)
{
    struct traffic *t = driver->traffic;
    t->overlaps += room_share(&t->room) != 0;
    int most = t->most_readers, now = (int)room_sharing(&t->room);
    while (now > most && !atomic_compare_exchange_weak(&t->most_readers, &most, now))
        ;
    net_nap_ms(1 + rand_r(&driver->seed) % 9);
    t->overlaps += room_unshare(&t->room) != 0;
    t->reads++;
}

static void write_awhile(struct driver *driver)
{
    struct traffic *t = driver->traffic;

    t->overlaps += room_enter(&t->room, driver->number) != 0;
    net_nap_ms(1 + rand_r(&driver->seed) % 9);
    t->overlaps += room_leave(&t->room, driver->number) != 0;
    t->writes++;
}

/* One turn in ten writes; the first one of each does, so that none is without. */
static int drive(void *arg)
{
    struct driver *driver = arg;
    int rc = 0;

    for (long i = 0; i < driver->turns && rc == 0; i++) {
        bool writes = i == 0 || rand_r(&driver->seed) % 10 == 0;
        struct zkl_mutex *half =
            writes ? zkl_rwlock_writer(driver->rwlock) : zkl_rwlock_reader(driver->rwlock);
        rc = zkl_mutex_lock_for(half, WAIT_MS);
        if (rc != 0)
            break;
        (writes ? write_awhile : read_awhile)(driver);
        rc = zkl_mutex_unlock(half);
    }
    return rc;
}

/* Goal: eight clients read and write: a writer is alone, readers come together. */
CLUSTER_TEST(readers_share_and_writers_are_alone)
{
    struct traffic traffic = {.path = cluster_path("basic")};
    struct driver drivers[CLIENTS];
    struct crowd crowd;

    for (int i = 0; i < CLIENTS; i++) {
        struct zkl_client *client = cluster_client();
        drivers[i] = (struct driver){.traffic = &traffic,
                                     .client = client,
                                     .rwlock = rwlock_with(client, traffic.path, NULL),
                                     .seed = (unsigned)i,
                                     .turns = test_length(500, 100),
                                     .number = (uint32_t)i};
    }
    crowd_begin(&crowd, drive, drivers);
    crowd_end(&crowd);
    check_num(traffic.overlaps, ==, 0);
    check_num(traffic.writes, >=, CLIENTS);
    check_num(traffic.reads, >, 0);
    check_num(traffic.most_readers, >, 1);
    check_wait(cluster_children(traffic.path) == 0, WAIT_MS);
    for (int i = 0; i < CLIENTS; i++) {
        check_ok(zkl_rwlock_free(drivers[i].rwlock));
        check_ok(zkl_client_free(drivers[i].client));
    }
}

/* --- nodes ------------------------------------------------------------------------------------ */

static void check_data(const char *path, const char *expected)
{
    char node[256], data[64] = "";

    cluster_child(path, 0, node, sizeof node);
    check_ok(wire_get(raw, node, data, sizeof data, NULL));
    check_text(data, expected);
}

/* Goal: the nodes of both halves have the data that was asked for, as it was then: the caller's
 * text is copied. */
CLUSTER_TEST(nodes_have_the_data_that_was_asked_for)
{
    struct zkl_client *client = cluster_client();
    const char *path = cluster_path("data");
    struct zkl_lock_options options = ZKL_LOCK_OPTIONS_INIT;
    char owner[] = "1234";

    options.owner = owner;
    struct zkl_rwlock *rwlock = rwlock_with(client, path, &options);
    owner[0] = '5';
    check_ok(zkl_mutex_lock(zkl_rwlock_writer(rwlock)));
    check_num(cluster_children(path), ==, 1);
    check_data(path, "1234");
    check_ok(zkl_mutex_unlock(zkl_rwlock_writer(rwlock)));
    check_ok(zkl_mutex_lock(zkl_rwlock_reader(rwlock)));
    check_data(path, "1234");
    check_ok(zkl_mutex_unlock(zkl_rwlock_reader(rwlock)));
    check_ok(zkl_rwlock_free(rwlock));
    check_ok(zkl_client_free(client));
}

/* Goal: a writer whose session was killed still knows the path of its node, which is removed; a
 * reader of another client gets in. */
CLUSTER_TEST(a_killed_writers_path_leads_nowhere)
{
    struct expiring *expiring = expiring_open();
    struct bench b = bench_open("path");
    struct zkl_rwlock *killed = rwlock_with(expiring_client(expiring), b.path, NULL);
    struct zkl_mutex *write = zkl_rwlock_writer(killed);
    char node[256] = "";

    check_ok(zkl_mutex_lock(write));
    expiring_expire(expiring);
    check_ok(zkl_mutex_lock_for(b.read, WAIT_MS));
    check_num(zkl_mutex_node_path(write, node, sizeof node), >, 0);
    check_num(wire_exists(raw, cluster_at(node), NULL), ==, WIRE_NONODE);
    check_num(cluster_children(b.path), ==, 1);
    check_ok(zkl_mutex_unlock(b.read));
    check_wait(zkl_mutex_token(write) == 0, WAIT_MS);
    check_num(zkl_mutex_unlock(write), ==, ZKL_ELOST);
    check_ok(zkl_rwlock_free(killed));
    expiring_free(expiring);
    bench_close(&b);
}
