/* SPDX-License-Identifier: Apache-2.0 */
/* TestInterProcessReadWriteLock. */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "crowd.h"
#include "room.h"

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
WORLD_TEST(readers_share_and_writers_are_alone)
{
    struct traffic traffic = {.path = cluster_path("basic")};
    struct driver drivers[CLIENTS];
    struct crowd crowd;

    for (int i = 0; i < CLIENTS; i++) {
        struct zkl_client *client = world_client();
        drivers[i] = (struct driver){.traffic = &traffic,
                                     .client = client,
                                     .rwlock = world_rwlock(client, traffic.path, NULL),
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
}

static void check_data(const char *path, const char *expected)
{
    char node[256], data[64] = "";

    cluster_child(path, 0, node, sizeof node);
    check_ok(wire_get(raw, node, data, sizeof data, NULL));
    check_text(data, expected);
}

/* Goal: the nodes of both halves have the data that was asked for, as it was then: the caller's
 * text is copied. */
WORLD_TEST(nodes_have_the_data_that_was_asked_for)
{
    struct zkl_client *client = world_client();
    const char *path = cluster_path("data");
    struct zkl_lock_options options = ZKL_LOCK_OPTIONS_INIT;
    char owner[] = "1234";

    options.owner = owner;
    struct zkl_rwlock *rwlock = world_rwlock(client, path, &options);
    owner[0] = '5';
    check_ok(zkl_mutex_lock(zkl_rwlock_writer(rwlock)));
    check_num(cluster_children(path), ==, 1);
    check_data(path, "1234");
    check_ok(zkl_mutex_unlock(zkl_rwlock_writer(rwlock)));
    check_ok(zkl_mutex_lock(zkl_rwlock_reader(rwlock)));
    check_data(path, "1234");
    check_ok(zkl_mutex_unlock(zkl_rwlock_reader(rwlock)));
}
