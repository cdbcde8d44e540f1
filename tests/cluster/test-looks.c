/* SPDX-License-Identifier: Apache-2.0 */
/* What a look says of data, of a long queue, of what is denied, and while others lock; inspect.txt has the rest. */
#include "check_error.h"
#include "inspection.h"
#include "nodes.h"

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
