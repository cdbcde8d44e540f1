/* SPDX-License-Identifier: Apache-2.0 */
/* Creates and deletes of many locks in one transaction, on a real server: that the tokens of each path grow, that what
 * fails fails alone, and that nothing is left where a server dies in between. */
#include "contenders.h"

#include <limits.h>

#define SESSION_MS 10000
#define THREADS 12
#define GROUPS 30 /* transactions of a test, at least */

/* A thread, and the lock that it takes again and again. */
struct taker {
    struct turnstile *turnstile; /* of its path */
    char path[40];
    struct actor *actor;
    bool lossy;         /* a server dies */
    atomic_int refused; /* how often a lock failed with ZKL_EACCES or ZKL_EQUOTA */
    atomic_int refusal; /* the last of these codes */
};

struct takers {
    struct zkl_client *client;
    struct taker one[THREADS];
};

static size_t groups(struct zkl_client *client)
{
    return locked(client->driver, client->driver->core.sent[ZKL_REQ_CREATE_ALL] +
                                      client->driver->core.sent[ZKL_REQ_DELETE_ALL]);
}

static int take(struct zkl_mutex *mutex, void *taker)
{
    struct taker *t = taker;

    while (!t->turnstile->stop) {
        struct zkl_grant grant = ZKL_GRANT_INIT;
        int rc = zkl_mutex_acquire(mutex, NULL, &grant);
        if (rc == ZKL_EACCES || rc == ZKL_EQUOTA) {
            t->refusal = rc;
            t->refused++;
            net_nap_ms(2);
            continue;
        }
        if (rc == 0 && zkl_mutex_still_held(mutex, 1) == 1) {
            turnstile_enter(t->turnstile, 1, grant.token);
            turnstile_leave(t->turnstile, 1);
        }
        if (rc == 0)
            rc = zkl_mutex_unlock(mutex);
        if (rc != 0 && !(t->lossy && (zkl_error_is_lost(rc) || is_unanswered(rc))))
            turnstile_odd(t->turnstile, rc);
    }
    return 0;
}

/* One write under way is enough to wait for, so that transactions come however few processors there are. */
static void begin(struct takers *all, const char *name, bool lossy)
{
    struct zkl_mutex_options options = ZKL_MUTEX_OPTIONS_INIT;

    all->client = world_direct(SESSION_MS);
    fault_alone_from(all->client, 2);
    zkl_driver_lock(all->client->driver);
    all->client->driver->core.group_commit.from = 1;
    zkl_driver_unlock(all->client->driver);
    for (int i = 0; i < THREADS; i++) {
        struct taker *t = &all->one[i];
        *t = (struct taker){.turnstile = turnstile_new(), .lossy = lossy};
        snprintf(t->path, sizeof t->path, "/%s/%d", name, i);
        options.posted_unlock = i % 3 == 0;
        t->actor = world_actor();
        act_begin(t->actor, take, world_mutex_with(all->client, t->path, &options), t);
    }
}

static void end(struct takers *all)
{
    struct wire *w = world_wire();

    for (int i = 0; i < THREADS; i++)
        all->one[i].turnstile->stop = true;
    for (int i = 0; i < THREADS; i++) {
        struct taker *t = &all->one[i];
        check_ok(act_end(t->actor, WAIT_MS));
        check_num(turnstile_sum(t->turnstile), >, 0);
        turnstile_end(t->turnstile);
    }
    for (int i = 0; i < THREADS; i++)
        fault_check_rest(all->client, w, all->one[i].path, WAIT_MS);
}

static void wait_for_groups(struct takers *all)
{
    size_t so_far = groups(all->client);
    check_wait(groups(all->client) >= so_far + GROUPS, WAIT_MS);
}

/* A turnstile at each path sees each token. */
WORLD_TEST(tokens_of_each_path_grow)
{
    struct takers all;

    begin(&all, "grow", false);
    wait_for_groups(&all);
    wait_for_groups(&all);
    end(&all);
}

WORLD_TEST(who_is_denied_fails_alone)
{
    const struct wire_acl less = {WIRE_PERM_ALL & ~4, "world", "anyone"};
    const struct wire_acl all_rights = {WIRE_PERM_ALL, "world", "anyone"};
    struct wire *w = world_wire();
    struct takers all;

    /* Not a container: the server must not collect it. */
    check_ok(wire_create(w, "/denied", "", WIRE_PERSISTENT, NULL, 0));
    check_ok(wire_create(w, "/denied/3", "", WIRE_PERSISTENT, NULL, 0));
    begin(&all, "denied", false);
    wait_for_groups(&all);
    for (int i = 0; i < 5; i++) {
        int before = all.one[3].refused;
        check_ok(wire_set_acl(w, all.one[3].path, &less, 1));
        check_wait(all.one[3].refused > before, WAIT_MS);
        wait_for_groups(&all);
        check_ok(wire_set_acl(w, all.one[3].path, &all_rights, 1));
        long entries = all.one[3].turnstile->entries[1];
        check_wait(all.one[3].turnstile->entries[1] > entries + 5, WAIT_MS);
    }
    for (int i = 0; i < THREADS; i++)
        check_num(all.one[i].refused > 0, ==, i == 3);
    end(&all);
}

static bool all_were_refused(const struct takers *all)
{
    bool were = true;
    for (int i = 0; i < THREADS; i++)
        were = were && all->one[i].refused > 0;
    return were;
}

/* How often the one of them that had its lock the fewest times had it. */
static long least_entries(const struct takers *all)
{
    long least = LONG_MAX;
    for (int i = 0; i < THREADS; i++) {
        long entries = all->one[i].turnstile->entries[1];
        least = entries < least ? entries : least;
    }
    return least;
}

/* Each call has its own grant or its own code, all come to their turn, and nothing is left. The quota counts what is committed
 * only, so that a transaction can get past it and the next one fails by its first part. */
WORLD_TEST(a_quota_refuses_each_by_itself)
{
    static const char limits[] = "count=-1,bytes=-1=;byteHardLimit=-1;countHardLimit=%d";
    struct wire *w = world_wire();
    struct takers all;
    char text[100];

    check_ok(wire_create(w, "/quota", "", WIRE_PERSISTENT, NULL, 0));
    for (int i = 0; i < THREADS; i++) {
        snprintf(text, sizeof text, "/quota/%d", i);
        check_ok(wire_create(w, text, "", WIRE_PERSISTENT, NULL, 0));
    }
    snprintf(text, sizeof text, limits, 1 + THREADS + 2);
    check_ok(wire_create(w, "/zookeeper/quota/quota", "", WIRE_PERSISTENT, NULL, 0));
    check_ok(
        wire_create(w, "/zookeeper/quota/quota/zookeeper_limits", text, WIRE_PERSISTENT, NULL, 0));
    check_ok(wire_create(w, "/zookeeper/quota/quota/zookeeper_stats", "count=0,bytes=0",
                         WIRE_PERSISTENT, NULL, 0));
    begin(&all, "quota", false);
    check_wait(all_were_refused(&all), WAIT_MS);
    long before = least_entries(&all);
    check_wait(least_entries(&all) > before + 5, WAIT_MS);
    for (int i = 0; i < THREADS; i++)
        check_num(all.one[i].refusal, ==, ZKL_EQUOTA);
    check_num(groups(all.client), >, 0);
    check_ok(wire_delete(w, "/zookeeper/quota/quota/zookeeper_limits", -1));
    end(&all);
}

WORLD_TEST(who_has_no_path_makes_it_alone)
{
    struct wire *w = world_wire();
    struct takers all;
    int deleted = 0;

    begin(&all, "gone", false);
    wait_for_groups(&all);
    for (int64_t until = net_now_ms() + WAIT_MS; deleted < 20 && net_now_ms() < until;)
        deleted += wire_delete(w, all.one[5].path, -1) == 0;
    check_num(deleted, ==, 20);
    wait_for_groups(&all);
    end(&all);
}

/* Each create and delete is looked for by itself. */
WORLD_TEST(a_server_that_dies_leaves_nothing)
{
    struct takers all;

    begin(&all, "dies", true);
    for (int i = 0; i < 3; i++) {
        wait_for_groups(&all);
        check_ok(zks_kill_node(server, 0));
        check_ok(zks_start_node(server, 0));
        wait_for_groups(&all);
    }
    end(&all);
}

FAULT_MAIN(options.jvm_extra = "-Dzookeeper.enforceQuota=true")
