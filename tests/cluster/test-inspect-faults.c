/* SPDX-License-Identifier: Apache-2.0 */
/* zkl_inspect while links break, sessions end, nodes vanish and clients close. */
#include "check_error.h"
#include "inspection.h"

struct inspect {
    struct zkl_client *client;
    const char *path;
    int64_t timeout_ms;
    const struct zkl_inspection *inspection;
};

static int do_inspect(void *arg)
{
    struct inspect *i = arg;

    return zkl_inspect(i->client, i->path, i->timeout_ms, &i->inspection);
}

#define HOLDS "holds lock curator 0 lock-0000000000"
#define WAITS "waits lock for 0 curator 1 lock-0000000001"

/* A path with both. */
static const char *queue_of_two(const char *name)
{
    const char *path = cluster_path(name);

    make_root(path, "");
    make_node(below(path, "lock-0000000000"), "");
    make_node(below(path, "lock-0000000001"), "");
    return path;
}

/* Goal: a look sends two requests for the list and one for each child. It asks for the children
 * together: three round trips would do for any queue. (On a slow machine the client sends
 * keepalives besides, and pings.) */
WORLD_TEST(a_look_is_two_requests_and_one_for_each_child)
{
    const char *path = queue_of_two("requests");
    struct proxy *proxy = NULL;
    struct zkl_client *client = world_client_through(&proxy, SESSION_MS);

    make_node(below(path, "note"), "");
    proxy_reset_counts(proxy);
    inspect_lock(client, path);
    check_num(proxy_counts(proxy, PROXY_SYNC), ==, 1);
    check_num(proxy_counts(proxy, PROXY_CHILDREN2), ==, 1);
    check_num(proxy_counts(proxy, PROXY_GET), ==, 3);
    check_num(proxy_counts(proxy, PROXY_ANY) - proxy_counts(proxy, PROXY_EXISTS) -
                  proxy_counts(proxy, PROXY_PING),
              ==, 5);
    check_num(all_watches(), ==, 0);
}

WORLD_TEST(a_look_survives_a_lost_link)
{
    static const enum proxy_op ops[] = {PROXY_SYNC, PROXY_CHILDREN2, PROXY_GET};
    const char *path = queue_of_two("lost");
    struct proxy *proxy = NULL;
    struct zkl_client *client = world_client_through(&proxy, BRIEF_MS);

    for (size_t i = 0; i < 6; i++) {
        if (i < 3)
            check_ok(proxy_drop_reply(proxy, ops[i], 1, PROXY_THEN_CUT));
        else
            check_ok(proxy_drop_request(proxy, ops[i - 3], 1, PROXY_THEN_CUT));
        check_entries(client, path, ZKL_LOCK_KIND_MUTEX, HOLDS, WAITS);
        check_ok(proxy_wait_dropped(proxy, 0));
    }
}

/* Goal: a look leaves out a child that is deleted between the list and the look at that child. The
 * next contender is then the holder. Method: the proxy keeps the looks back. */
WORLD_TEST(a_child_that_goes_meanwhile_is_left_out)
{
    const char *path = queue_of_two("gone");
    struct proxy *proxy = NULL;
    struct inspect in = {world_client_through(&proxy, BRIEF_MS), path, WAIT_MS, NULL};
    struct actor *actor = world_actor();
    static const char *const lines[] = {"holds lock curator 1 lock-0000000001"};

    check_ok(proxy_hold_request(proxy, PROXY_GET, 1));
    actor_begin(actor, do_inspect, &in);
    check_ok(proxy_wait_held(proxy, WAIT_MS));
    drop_node(below(path, "lock-0000000000"));
    proxy_release(proxy);
    check_ok(actor_result(actor));
    check_inspection(in.inspection, path, ZKL_LOCK_KIND_MUTEX, lines, 1);
    zkl_inspection_free(in.inspection);
}

WORLD_TEST(a_look_survives_its_session)
{
    const char *path = cluster_path("session");
    struct proxy *proxy = NULL;
    struct inspect in = {world_client_through(&proxy, 1000), path, WAIT_MS, NULL};
    struct zkl_mutex *mutex = world_mutex(in.client, path);
    struct actor *actor = world_actor();

    check_ok(zkl_mutex_lock(mutex));
    lose_link(proxy);
    actor_begin(actor, do_inspect, &in);
    check_wait(cluster_children(path) == 0, WAIT_MS);
    check_ok(proxy_refuse(proxy, false));
    check_ok(actor_result(actor));
    check_num(in.inspection->count, ==, 0);
    zkl_inspection_free(in.inspection);
    check_num(zkl_mutex_unlock(mutex), ==, ZKL_ELOST);
}

/* Goal: when the link is silent and when there is none. */
WORLD_TEST(the_deadline_holds)
{
    const char *path = cluster_path("deadline");
    struct proxy *proxy = NULL;
    struct zkl_client *client = world_client_through(&proxy, BRIEF_MS);
    const struct zkl_inspection *inspection = NULL;
    int64_t start = net_now_ms();

    proxy_hole(proxy, PROXY_BOTH);
    check_fails(zkl_inspect(client, path, 200, &inspection), ZKL_ETIMEDOUT, path);
    proxy_cut(proxy);
    check_ok(proxy_refuse(proxy, true));
    proxy_heal(proxy);
    check_wait(zkl_client_get_state(client) == ZKL_CLIENT_SUSPENDED, WAIT_MS);
    check_fails(zkl_inspect(client, path, 200, &inspection), ZKL_EDISCONNECTED, path);
    check_num(net_now_ms() - start, >=, 400);
    check_true(net_now_ms() - start < 20000 || lag_is_slow());
    check_true(inspection == NULL);
    check_ok(proxy_refuse(proxy, false));
    inspect_lock(client, path);
}

WORLD_TEST(close_ends_a_look)
{
    static const enum proxy_op ops[] = {PROXY_CHILDREN2, PROXY_GET};
    const char *path = queue_of_two("close");

    for (size_t i = 0; i < 3; i++) {
        struct proxy *proxy = NULL;
        struct inspect in = {world_client_through(&proxy, BRIEF_MS), path, ZKL_TIMEOUT_MAX_MS,
                             NULL};
        struct actor *actor = world_actor();
        if (i < 2) {
            check_ok(proxy_hold_reply(proxy, ops[i], 1));
            actor_begin(actor, do_inspect, &in);
            check_ok(proxy_wait_held(proxy, WAIT_MS));
        } else {
            lose_link(proxy);
            actor_begin(actor, do_inspect, &in);
            net_nap_ms(20);
        }
        zkl_client_close(in.client, 0);
        check_num(actor_result(actor), ==, ZKL_ECLOSED);
        check_true(in.inspection == NULL);
    }
}

/* --- what may not be read ---------------------------------------------------------------------- */

static const struct wire_acl unreadable = {WIRE_PERM_ALL & ~PERM_READ, "world", "anyone"};

static const char *make_unreadable(const char *path, const char *name, int flags)
{
    const char *node = below(path, name);

    check_ok(wire_create_acl(raw, cluster_at(node), "secret", flags, &unreadable, 1, NULL, 0));
    return node;
}

/* It says nothing but its name. */
static void check_unreadable(const struct zkl_entry *e)
{
    check_num(e->denied, ==, 1);
    check_num(e->czxid, ==, 0);
    check_num(e->session, ==, 0);
    check_num(e->age_ms, ==, 0);
    check_text(e->owner, "");
}

/* Goal: a look reports a node by its name alone if the server says nothing else of it, and all
 * other nodes as ever. Method: the proxy answers exists as a newer server does. */
WORLD_TEST(an_unreadable_node_is_told_by_its_name)
{
    const char *path = cluster_path("unreadable");
    static const char *const lines[] = {HOLDS, WAITS, "foreign - - 0 note"};
    struct proxy *proxy = NULL;
    struct zkl_client *client = world_client_through(&proxy, SESSION_MS);

    make_root(path, "");
    make_unreadable(path, "lock-0000000000", WIRE_EPHEMERAL);
    uint64_t czxid = make_node(below(path, "lock-0000000001"), "open");
    make_unreadable(path, "note", WIRE_PERSISTENT);
    deny_exists(proxy, "unreadable");
    const struct zkl_inspection *inspection = inspect_lock(client, path);
    check_inspection(inspection, path, ZKL_LOCK_KIND_MUTEX, lines, 3);
    check_unreadable(&inspection->entries[0]);
    check_unreadable(&inspection->entries[2]);
    check_num(inspection->entries[1].denied, ==, 0);
    check_num(inspection->entries[1].czxid, ==, czxid);
    check_text(inspection->entries[1].owner, "open");
}

/* Goal: an operator can break such a node by its path, which is never made twice, but break can't
 * compare it. Break refuses such a node with children. */
WORLD_TEST(an_unreadable_node_can_be_broken)
{
    const char *path = cluster_path("unreadable-break");
    struct proxy *proxy = NULL;
    struct zkl_client *client = world_client_through(&proxy, SESSION_MS);

    make_root(path, "");
    const char *node = make_unreadable(path, "lock-0000000000", WIRE_EPHEMERAL);
    const char *above = make_unreadable(path, "lock-0000000001", WIRE_PERSISTENT);
    make_node(below(above, "child"), "");
    deny_exists(proxy, "unreadable");
    check_fails(zkl_break(client, node, 1, 0, WAIT_MS), ZKL_EACCES, "denies READ");
    check_true(node_is_there(node));
    check_ok(zkl_break(client, node, 0, 0, WAIT_MS));
    check_true(!node_is_there(node));
    check_fails(zkl_break(client, above, 0, 0, WAIT_MS), ZKL_EFOREIGN, "children");
    check_fails(zkl_break(client, node, 0, 0, WAIT_MS), ZKL_ENONODE, node);
}
