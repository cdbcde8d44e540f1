/* SPDX-License-Identifier: Apache-2.0 */
/* zkl_inspect: who holds, who waits for whom, and what else is there. */
#include "check_error.h"
#include "inspection.h"
#include "nodes.h"

#include <time.h>
#include <unistd.h>

#define GUID "_c_00000000-0000-4000-8000-00000000000"

/* --- making ----------------------------------------------------------------------------------- */

/* Begin to lock, and wait until the node is there. */
static void queue(struct actor *actor, struct zkl_mutex *mutex, const char *path)
{
    int before = cluster_children(path);

    actor_begin(actor, do_lock, mutex);
    check_wait(cluster_children(path) == before + 1, WAIT_MS);
}

static int64_t real_ms(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_REALTIME, &ts);
    return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

/* --- the library's own locks ------------------------------------------------------------------ */

/* What the server says of the node is what the entry says. */
static void check_entry(const struct zkl_entry *e)
{
    char data[600], host[80], text[160];
    struct wire_stat stat;
    int64_t age = real_ms();

    check_ok(wire_get(raw, cluster_at(e->node_path), data, sizeof data, &stat));
    age -= stat.ctime_ms;
    check_num(e->czxid, ==, stat.czxid);
    check_num(e->session, ==, stat.ephemeral_owner);
    check_text(e->owner, data);
    check_num(e->age_ms, >=, 0);
    check_num(e->age_ms, <=, age);
    check_num(e->age_ms, >=, age - 20000);
    check_ok(gethostname(host, sizeof host));
    check_text(e->host, host);
    check_num(e->pid, ==, getpid());
    snprintf(text, sizeof text, "%s %d %lld", host, getpid(), (long long)e->thread);
    check_text(text, data);
    check_num(e->revoke_requested, ==, 0);
    check_text(e->name, "");
    check_text(e->peer, "curator");
}

/* Goal: a look shows the holder of a mutex, then its waiters in their order, each with what is
 * known of it and the node that it waits for. Method: three clients, at which a fourth looks. The
 * test compares all with what the server and the holder itself say. */
WORLD_TEST(a_holder_and_its_waiters_are_seen_in_order)
{
    const char *path = cluster_path("order");
    struct zkl_client *clients[3], *client = world_client();
    struct zkl_mutex *mutexes[3];
    struct actor *actors[3] = {NULL, world_actor(), world_actor()};

    for (int i = 0; i < 3; i++) {
        clients[i] = world_client();
        mutexes[i] = world_mutex(clients[i], path);
        if (i == 0)
            check_ok(zkl_mutex_lock(mutexes[0]));
        else
            queue(actors[i], mutexes[i], path);
    }
    net_nap_ms(50);
    const struct zkl_inspection *inspection =
        check_entries(client, path, ZKL_LOCK_KIND_MUTEX, "holds lock curator 0 *",
                      "waits lock for 0 curator 1 *", "waits lock for 1 curator 2 *");
    check_num(inspection->permits, ==, 0);
    for (size_t i = 0; i < 3; i++) {
        check_num(inspection->entries[i].age_ms, >=, 50);
        check_entry(&inspection->entries[i]);
    }
    check_text(cluster_at(inspection->entries[0].node_path), node_of(mutexes[0]));
    check_num(inspection->entries[0].czxid, ==, zkl_mutex_token(mutexes[0]));
    check_num(inspection->entries[0].thread, ==, gettid());
    for (int i = 0; i < 3; i++) {
        if (i > 0)
            check_ok(actor_result(actors[i]));
        check_ok(i > 0 ? actor_do(actors[i], do_unlock, mutexes[i]) : zkl_mutex_unlock(mutexes[0]));
    }
}

/* Goal: so are readers and writers: a reader that holds, a writer behind it, a reader behind that, and
 * one that reads under its own write lock. */
WORLD_TEST(readers_and_writers_are_seen)
{
    const char *path = cluster_path("rw");
    struct zkl_client *client = world_client();
    struct actor *a = world_actor(), *b = world_actor(), *c = world_actor();

    struct zkl_rwlock *rwlock = world_rwlock(client, path, NULL);
    struct zkl_mutex *read = zkl_rwlock_reader(rwlock), *write = zkl_rwlock_writer(rwlock);
    check_ok(actor_do(a, do_lock, read));
    queue(b, write, path);
    queue(c, read, path);
    check_entries(client, path, ZKL_LOCK_KIND_RWLOCK, "holds read curator 0 *",
                  "waits write for 0 curator 1 *", "waits read for 1 curator 2 *");
    check_ok(actor_do(a, do_unlock, read));
    check_ok(actor_result(b));
    check_ok(actor_do(b, do_lock, read));
    /* Of those with one number either may come first. */
    check_entries(client, path, ZKL_LOCK_KIND_RWLOCK, "holds * curator 1 *", "holds * curator 1 *",
                  "waits read for * curator 2 *");
    check_ok(actor_do(b, do_unlock, read));
    check_ok(actor_do(b, do_unlock, write));
    check_ok(actor_result(c));
    check_ok(actor_do(c, do_unlock, read));
}

/* Goal: a look separates named locks under one path, each with its own holder. */
WORLD_TEST(named_locks_are_queues_of_their_own)
{
    const char *path = cluster_path("named");
    struct zkl_mutex_options options = ZKL_MUTEX_OPTIONS_INIT;
    struct zkl_client *client = world_client();
    struct zkl_mutex *plain = world_mutex(client, path);
    struct actor *actor = world_actor();

    options.names = ZKL_NAMES_NAMED;
    options.owner = "the same text";
    options.name = "alpha";
    struct zkl_mutex *alpha = world_mutex_with(client, path, &options);
    options.name = "beta";
    struct zkl_mutex *beta = world_mutex_with(client, path, &options);
    check_ok(zkl_mutex_lock(beta));
    queue(actor, beta, path);
    struct actor *other = world_actor(), *third = world_actor();
    check_ok(actor_do(other, do_lock, alpha));
    check_ok(actor_do(third, do_lock, plain));
    const struct zkl_inspection *inspection =
        check_entries(client, path, ZKL_LOCK_KIND_MUTEX, "holds lock beta curator 0 *",
                      "holds lock alpha curator 2 *", "holds lock curator 3 *",
                      "waits lock beta for 0 curator 1 *");
    check_text(inspection->entries[0].owner, "the same text");
    check_text(inspection->entries[0].host, "");
    check_num(inspection->entries[0].pid, ==, 0);
    check_ok(zkl_mutex_unlock(beta));
    check_ok(actor_result(actor));
    check_ok(actor_do(actor, do_unlock, beta));
    check_ok(actor_do(other, do_unlock, alpha));
    check_ok(actor_do(third, do_unlock, plain));
}

/* Goal: a look at the library's own semaphore shows the permits that are out, and the contender
 * that asks for one. */
WORLD_TEST(a_semaphores_permits_are_seen)
{
    const char *path = cluster_path("permits");
    struct zkl_client *client = world_client(), *looker = world_client();
    struct zkl_permit *permits[2];

    struct zkl_semaphore *semaphore = world_semaphore(client, path, 3, NULL);
    check_ok(zkl_semaphore_acquire(semaphore, 2, NULL, permits));
    /* Whoever has just been granted is on its way out of the queue. */
    check_wait(inspect_lock(looker, path)->count == 2, WAIT_MS);
    const struct zkl_inspection *inspection =
        check_entries(looker, path, ZKL_LOCK_KIND_SEMAPHORE, "holds permit curator * leases/*",
                      "holds permit curator * leases/*");
    check_num(inspection->permits, ==, 3);
    for (size_t i = 0; i < 2; i++)
        check_entry(&inspection->entries[i]);
    check_ok(zkl_permit_release(permits[0]));
    check_ok(zkl_permit_release(permits[1]));
}

/* --- what others made ------------------------------------------------------------------------- */

/* Goal: contenders of all peers are in one queue, by their numbers, and strangers come last, with what
 * can be said of them. */
WORLD_TEST(names_of_all_peers_are_known)
{
    const char *path = cluster_path("peers");
    struct zkl_client *client = world_client();

    make_root(path, "");
    make_node(below(path, "0123456789abcdef0123456789abcdef__lock__0000000003"),
              "a-kazoo-identifier");
    make_node(below(path, GUID "1-lock-0000000002"), "127.0.0.1");
    make_node(below(path, "x-0a1b2c3d4e5f6071-0000000005"), "");
    make_node(below(path, "_c_0123456789abcdef0123456789abcdef-lock-0000000004"), "");
    make_node(below(path, GUID "2-lock--000000001"), "");
    make_node(below(path, "note"), "of somebody");
    check_ok(wire_create(raw, cluster_at(below(path, "config")), "x", WIRE_PERSISTENT, NULL, 0));
    const struct zkl_inspection *inspection = check_entries(
        client, path, ZKL_LOCK_KIND_MUTEX, "holds lock curator -1 " GUID "2-lock--000000001",
        "waits lock for 0 curator 2 " GUID "1-lock-0000000002",
        "waits lock for 1 kazoo 3 0123456789abcdef0123456789abcdef__lock__0000000003",
        "waits lock for 2 curator 4 _c_0123456789abcdef0123456789abcdef-lock-0000000004",
        "waits lock for 3 zookeeper 5 x-0a1b2c3d4e5f6071-0000000005", "foreign - - 0 config",
        "foreign - - 0 note");
    check_text(inspection->entries[1].owner, "127.0.0.1");
    check_text(inspection->entries[2].owner, "a-kazoo-identifier");
    check_num(inspection->entries[5].session, ==, 0);
    check_text(inspection->entries[5].owner, "x");
    check_num(inspection->entries[6].session, ==, wire_session(raw));
    check_true(inspection->entries[6].czxid != 0);
}

/* Goal: a path without contenders has none: no path, an empty one, strangers only, and one below what is
 * not there. */
WORLD_TEST(nobody_is_told_as_nobody)
{
    const char *path = cluster_path("nobody");
    struct zkl_client *client = world_client();

    check_entry_lines(client, path, ZKL_LOCK_KIND_NONE, NULL, 0);
    check_entry_lines(client, below(path, "deeper"), ZKL_LOCK_KIND_NONE, NULL, 0);
    make_root(path, "");
    check_entry_lines(client, path, ZKL_LOCK_KIND_NONE, NULL, 0);
    make_node(below(path, "stranger"), "");
    check_entries(client, path, ZKL_LOCK_KIND_NONE, "foreign - - 0 stranger");
}

static void set(const char *path, const char *data)
{
    check_ok(wire_set(raw, cluster_at(path), data, -1));
}

/* Goal: a look returns a node's data as owner text if the text can be shown, in its parts if it has
 * that form, and as a request to release if it is one. */
WORLD_TEST(data_is_told_as_what_it_is)
{
    static const struct {
        const char *data, *owner, *host;
        int64_t pid, thread;
        int revoked;
    } cases[] = {
        {"web1 42 4711", "web1 42 4711", "web1", 42, 4711, 0},
        {"web1 42", "web1 42", "", 0, 0, 0},
        {"web1 42 4711 x", "web1 42 4711 x", "", 0, 0, 0},
        {"web1 42 4711 under 4294967299", "web1 42 4711 under 4294967299", "web1", 42, 4711, 0},
        {"web1 42 4711 under ", "web1 42 4711 under ", "", 0, 0, 0},
        {"web1 42 4711 under 1x", "web1 42 4711 under 1x", "", 0, 0, 0},
        {"web1 42 4711  under 1", "web1 42 4711  under 1", "", 0, 0, 0},
        {"web1 42 -1", "web1 42 -1", "", 0, 0, 0},
        {"web1  42 1", "web1  42 1", "", 0, 0, 0},
        {" 42 1", " 42 1", "", 0, 0, 0},
        {"web1 1234567890123456789 1", "web1 1234567890123456789 1", "", 0, 0, 0},
        {"", "", "", 0, 0, 0},
        {"two\nlines", "", "", 0, 0, 0},
        {"\xff\xfe", "", "", 0, 0, 0},
        {"na\xc3\xafve", "na\xc3\xafve", "", 0, 0, 0},
        {"__REVOKE__", "", "", 0, 0, 1},
        {"__REVOKE__ ", "__REVOKE__ ", "", 0, 0, 0},
    };
    const char *path = cluster_path("data");
    struct zkl_client *client = world_client();
    char longest[514];

    make_root(path, "");
    make_node(below(path, "lock-0000000000"), "");
    const char *node = below(path, "lock-0000000000");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        set(node, cases[i].data);
        const struct zkl_inspection *inspection = inspect_lock(client, path);
        check_num(inspection->count, ==, 1);
        check_text(inspection->entries[0].owner, cases[i].owner);
        check_text(inspection->entries[0].host, cases[i].host);
        check_num(inspection->entries[0].pid, ==, cases[i].pid);
        check_num(inspection->entries[0].thread, ==, cases[i].thread);
        check_num(inspection->entries[0].revoke_requested, ==, cases[i].revoked);
    }
    memset(longest, 'o', 513);
    longest[513] = '\0';
    for (int length = 513; length >= 512; length--) {
        longest[length] = '\0';
        set(node, longest);
        const struct zkl_inspection *inspection = inspect_lock(client, path);
        check_text(inspection->entries[0].owner, length == 512 ? longest : "");
    }
}

/* Goal: a look reads a semaphore in Curator's layout, made by hand. As many leases hold as there are
 * permits. The rest and the inner queue wait. The look also reads one without the number, or
 * without "locks". A path that only looks like a semaphore is none, and a mutex in the path of one is
 * seen beside it. */
WORLD_TEST(a_semaphore_by_hand)
{
    const char *path = cluster_path("semaphore");
    struct zkl_client *client = world_client();

    make_root(path, "");
    make_root(below(path, "locks"), "");
    make_root(below(path, "leases"), "2");
    check_entry_lines(client, path, ZKL_LOCK_KIND_SEMAPHORE, NULL, 0);
    make_node(below(path, "leases/" GUID "1-lease-0000000004"), "");
    make_node(below(path, "leases/" GUID "2-lease-0000000002"), "");
    make_node(below(path, "leases/" GUID "3-lease-0000000003"), "");
    make_node(below(path, "leases/lock-0000000000"), "");
    make_node(below(path, "locks/" GUID "5-lock-0000000008"), "");
    make_node(below(path, "locks/" GUID "4-lock-0000000007"), "web1 42 4711");
    make_node(below(path, "other"), "");
    const struct zkl_inspection *inspection =
        check_entries(client, path, ZKL_LOCK_KIND_SEMAPHORE,
                      "holds permit curator 2 leases/" GUID "2-lease-0000000002",
                      "holds permit curator 3 leases/" GUID "3-lease-0000000003",
                      "waits permit curator 4 leases/" GUID "1-lease-0000000004",
                      "waits entry curator 7 locks/" GUID "4-lock-0000000007",
                      "waits entry for 3 curator 8 locks/" GUID "5-lock-0000000008",
                      "foreign - - 0 other", "foreign - - 0 leases/lock-0000000000");
    check_num(inspection->permits, ==, 2);
    check_text(inspection->entries[3].host, "web1");

    set(below(path, "leases"), "127.0.0.1"); /* as Curator's parents may have */
    inspection = inspect_lock(client, path);
    check_num(inspection->permits, ==, 0);
    check_num(inspection->entries[1].role, ==, ZKL_ENTRY_ROLE_HOLDER);
    check_num(inspection->entries[2].role, ==,
              ZKL_ENTRY_ROLE_WAITER); /* the asker's session is the same */

    check_ok(wire_delete_tree(raw, cluster_at(below(path, "locks"))));
    inspection = inspect_lock(client, path);
    check_num(inspection->kind, ==, ZKL_LOCK_KIND_SEMAPHORE);
    check_num(inspection->entries[2].role, ==, ZKL_ENTRY_ROLE_HOLDER);

    check_ok(wire_delete_tree(raw, cluster_at(below(path, "leases"))));
    make_root(below(path, "locks"), "");
    check_entries(client, path, ZKL_LOCK_KIND_NONE, "foreign - - 0 locks", "foreign - - 0 other");
    make_node(below(path, "locks/lock-0000000001"), "");
    check_entries(client, path, ZKL_LOCK_KIND_NONE, "foreign - - 0 locks", "foreign - - 0 other");
    make_root(below(path, "leases"), "");
    check_entries(client, path, ZKL_LOCK_KIND_SEMAPHORE,
                  "waits entry curator 1 locks/lock-0000000001", "foreign - - 0 other");
    make_node(below(path, "leases/lock-0000000001"), "");
    check_entries(client, path, ZKL_LOCK_KIND_NONE, "foreign - - 0 leases", "foreign - - 0 locks",
                  "foreign - - 0 other");
    check_ok(wire_delete_tree(raw, cluster_at(below(path, "locks"))));
    check_ok(wire_delete_tree(raw, cluster_at(below(path, "leases"))));
    make_root(below(path, "locks"), "");
    make_root(below(path, "leases"), "1");
    make_node(below(path, "lock-0000000001"), "");
    check_entries(client, path, ZKL_LOCK_KIND_MUTEX, "holds lock curator 1 lock-0000000001",
                  "foreign - - 0 leases", "foreign - - 0 locks", "foreign - - 0 other");
    make_node(below(path, "leases/" GUID "1-lease-0000000001"), "");
    make_node(below(path, "locks/lock-0000000002"), "");
    check_entries(client, path, ZKL_LOCK_KIND_SEMAPHORE, "holds lock curator 1 lock-0000000001",
                  "holds permit curator 1 leases/" GUID "1-lease-0000000001",
                  "waits entry curator 2 locks/lock-0000000002", "foreign - - 0 other");
}

/* Goal: "/" can be looked at, and a child's own children are counted. */
WORLD_TEST(the_top_is_listed)
{
    const char *path = cluster_path("top");
    struct zkl_client *client = world_client();
    const struct zkl_entry *found = NULL;

    make_root(path, "");
    make_root(below(path, "one"), "");
    make_root(below(path, "two"), "");
    const struct zkl_inspection *inspection = inspect_lock(client, "/");
    check_num(inspection->kind, ==, ZKL_LOCK_KIND_NONE);
    for (size_t i = 0; i < inspection->count; i++) {
        const struct zkl_entry *e = zkl_inspection_entry(inspection, i);
        check_num(e->role, ==, ZKL_ENTRY_ROLE_FOREIGN);
        found = strcmp(e->node_path, path) == 0 ? e : found;
    }
    check_true(found);
    check_num(found->children, ==, 2);
}

/* Goal: a long queue is seen whole and in order. Method: more children than are asked about in one
 * go. */
WORLD_TEST(a_long_queue_is_seen_whole)
{
    enum { MANY = 700 };
    const char *path = cluster_path("long");
    struct zkl_client *client = world_client();
    char name[80];

    make_root(path, "");
    for (int i = 0; i < MANY; i++) {
        snprintf(name, sizeof name, "%03x-lock-%010d", i * 37 % 4096, i);
        make_node(below(path, name), name);
    }
    const struct zkl_inspection *inspection = inspect_lock(client, path);
    check_num(inspection->count, ==, MANY);
    for (int i = 0; i < MANY; i++) {
        check_num(inspection->entries[i].sequence, ==, i);
        check_text(inspection->entries[i].owner,
                   strrchr(inspection->entries[i].node_path, '/') + 1);
        check_num(inspection->entries[i].waits_for, ==, i == 0 ? ZKL_NO_ENTRY : (size_t)i - 1);
    }
}

/* --- what is denied --------------------------------------------------------------------------- */

/* Goal: a look at a path that the client may not read says so. For a child that the client may not
 * read the look returns what the server still reports: a newer server reports nothing but the
 * name. */
WORLD_TEST(what_may_not_be_read_says_so_or_is_left_out)
{
    const bool nothing = exists_takes_read();
    const char *path = cluster_path("denied");
    struct zkl_client *client = world_client();
    const struct zkl_inspection *inspection = NULL;
    struct wire_acl hidden = {WIRE_PERM_ALL, "auth", ""};
    struct wire_acl closed[] = {{WIRE_PERM_ALL & ~PERM_READ, "world", "anyone"}, hidden};
    struct wire_stat stat;

    check_ok(wire_auth(raw, "digest", "admin:admin"));
    make_root(path, "");
    make_node(below(path, "lock-0000000001"), "open");
    const char *node = below(path, "lock-0000000000");
    check_ok(wire_create_acl(raw, cluster_at(node), "secret", WIRE_EPHEMERAL, &hidden, 1, NULL, 0));
    check_ok(wire_exists(raw, cluster_at(node), &stat));
    inspection = inspect_lock(client, path);
    check_num(inspection->count, ==, 2);
    check_num(inspection->entries[0].role, ==, ZKL_ENTRY_ROLE_HOLDER);
    check_text(inspection->entries[0].owner, "");
    check_num(inspection->entries[0].denied, ==, 1);
    check_num(inspection->entries[0].session, ==, nothing ? 0 : wire_session(raw));
    check_num(inspection->entries[0].czxid, ==, nothing ? 0 : stat.czxid);
    check_true(inspection->entries[0].age_ms < 20000 || lag_is_slow());
    check_text(inspection->entries[1].owner, "open");
    check_ok(wire_set_acl(raw, cluster_at(path), closed, 2));
    inspection = NULL;
    check_fails(zkl_inspect(client, path, WAIT_MS, &inspection), ZKL_EACCES, path);
    check_detail(ZKL_EACCES, "denies READ");
    check_true(inspection == NULL);
}

/* Goal: wrong paths are named, and nothing is given; so are the ends of a look. (What is wrong with other arguments is in
 * test-input.c.) */
WORLD_TEST(wrong_arguments_are_named)
{
    struct zkl_client *client = world_client();
    const struct zkl_inspection *inspection = NULL;

    check_fails(zkl_inspect(client, "x", 1000, &inspection), ZKL_EBADPATH, "slash");
    check_fails(zkl_inspect(client, "/zookeeper", 1000, &inspection), ZKL_EBADPATH, "reserves");
    check_fails(zkl_inspect(client, "/x", 0, &inspection), ZKL_ETIMEDOUT, "/x");
    check_closed(zkl_client_close(client, WAIT_MS));
    check_fails(zkl_inspect(client, "/x", 1000, &inspection), ZKL_ECLOSED, "zkl_inspect");
    check_true(inspection == NULL);
}

/* --- threads ---------------------------------------------------------------------------------- */

#define ENOUGH 3 /* on a busy machine, too */

struct looker {
    struct zkl_client *client;
    const char *path;
    int64_t until_ms;
    long looks;
};

static int do_look_on(void *arg)
{
    struct looker *l = arg;

    while (net_now_ms() < l->until_ms || l->looks <= ENOUGH) {
        const struct zkl_inspection *inspection = NULL;
        if (zkl_inspect(l->client, l->path, WAIT_MS, &inspection) != 0)
            return -1;
        for (size_t i = 0; i < inspection->count; i++) {
            const struct zkl_entry *e = &inspection->entries[i];
            if ((e->role == ZKL_ENTRY_ROLE_HOLDER) != (i == 0) || e->host[0] == '\0')
                return -2;
        }
        zkl_inspection_free(inspection);
        l->looks++;
    }
    return 0;
}

static int do_contend(void *arg)
{
    struct looker *l = arg;
    struct zkl_mutex *mutex;
    int rc = zkl_mutex_new(&mutex, l->client, l->path, NULL);

    while (rc == 0 && (net_now_ms() < l->until_ms || l->looks <= ENOUGH)) {
        rc = zkl_mutex_lock(mutex);
        if (rc == 0)
            rc = zkl_mutex_unlock(mutex);
        l->looks++;
    }
    return rc != 0 ? rc : zkl_mutex_free(mutex);
}

/* Goal: any number of threads may look while others lock, on one client. Each look has one holder
 * at most, and the holder is the first entry. */
WORLD_TEST(threads_look_while_others_lock)
{
    const char *path = cluster_path("crowd");
    struct zkl_client *client = world_client();
    struct looker lookers[2], contenders[3];

    int64_t until_ms = net_now_ms() + test_length(20000, 1500);
    for (size_t i = 0; i < 3; i++)
        lookers[i % 2] = contenders[i] = (struct looker){client, path, until_ms, 0};
    struct crowd look = crowd_begin(do_look_on, lookers);
    struct crowd contend = crowd_begin(do_contend, contenders);
    crowd_end(&look);
    crowd_end(&contend);
    for (size_t i = 0; i < 3; i++)
        check_true(lookers[i % 2].looks > ENOUGH && contenders[i].looks > ENOUGH);
    check_wait(cluster_children(path) == 0, WAIT_MS);
}
