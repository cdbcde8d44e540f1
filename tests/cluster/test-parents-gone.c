/* SPDX-License-Identifier: Apache-2.0 */
/* Servers that remove the nodes above a lock at once, and a chroot that is missing. */
#include "nodes.h"

/* The proxy lets the create that it holds back continue. With again it then holds back the one
 * after the client has made the parents anew, which is the second to come. */
static void release_create(struct proxy *proxy, bool again)
{
    if (again)
        check_ok(proxy_hold_request(proxy, PROXY_CREATE2, 2));
    proxy_release(proxy);
    if (again)
        check_ok(proxy_hold_request(proxy, PROXY_CREATE2, 1));
}

struct busy {
    struct zkl_mutex *mutex;
    long turns;
    unsigned seed;
};

static int take_many_turns(void *arg)
{
    struct busy *busy = arg;
    int rc = 0;

    for (long i = 0; i < busy->turns && rc == 0; i++) {
        rc = zkl_mutex_lock(busy->mutex);
        if (rc == 0)
            rc = zkl_mutex_unlock(busy->mutex);
        if (i % 4 == 0)
            net_nap_ms(rand_r(&busy->seed) % 12);
    }
    return rc;
}

static void keep_busy(struct zkl_client *client)
{
    struct busy busy[2];
    struct actor *actors[2] = {world_actor(), world_actor()};

    for (int i = 0; i < 2; i++) {
        busy[i] = (struct busy){.turns = test_length(10000, 300), .seed = (unsigned)i};
        busy[i].mutex = world_mutex(client, i == 0 ? "/busy-a/deep" : "/busy-b");
        actor_begin(actors[i], take_many_turns, &busy[i]);
    }
    for (int i = 0; i < 2; i++) {
        check_wait(actor_is_done(actors[i]), 600000);
        check_ok(actor_result(actors[i]));
    }
}

/* Goal: no call says so when the server removes the parents in the middle of it. Method: a server
 * that looks for empty containers all the time, and many turns. Modes: F29. */
WORLD_TEST(many_turns_while_parents_vanish)
{
    struct zks_options options = {.container_check_ms = 5, .max_session_ms = WIRE_LASTING_MS};
    struct zkl_client_options client_options = cluster_options();
    struct wire_stat stat;
    struct zks *busy = world_server(&options);
    struct wire *own = world_wire_to(busy, 0, WIRE_LASTING_MS);

    client_options.servers = zks_connect_string(busy);
    struct zkl_client *client = world_client_with(&client_options);
    keep_busy(client);
    check_wait(wire_count(own, "/") == 1, WAIT_MS); /* the server's own "zookeeper" */
    check_ok(wire_exists(own, "/", &stat));
    check_num(stat.cversion, >, 10); /* the parents were removed and made again */
}

/* Goal: the library makes a path again that the server has removed before anybody used it. This
 * includes a path that the library has made itself and not used yet. Method: a server that removes
 * such paths immediately. The proxy holds the node's create back, which follows that of the path,
 * until the server has removed the path; several times. Modes: F30. */
WORLD_TEST(a_path_that_was_never_used_may_go)
{
    struct zks_options options = {.container_check_ms = 50,
                                  .max_session_ms = WIRE_LASTING_MS,
                                  .jvm_extra = "-Dznode.container.maxNeverUsedIntervalMs=1"};
    struct zkl_client_options client_options = cluster_options();
    struct actor *actor = world_actor();
    struct zks *keen = world_server(&options);
    struct wire *own = world_wire_to(keen, 0, WIRE_LASTING_MS);
    struct proxy *proxy = world_proxy_to(keen, 0);
    client_options.servers = proxy_address(proxy);
    struct zkl_client *client = world_client_with(&client_options);
    struct zkl_mutex *mutex = world_mutex(client, "/never/used");

    check_ok(wire_create(own, "/never", "", WIRE_CONTAINER, NULL, 0));
    check_wait(wire_exists(own, "/never", NULL) == WIRE_NONODE, WAIT_MS);
    check_ok(proxy_hold_request(proxy, PROXY_CREATE2, 2));
    actor_begin(actor, do_lock, mutex);
    for (int i = 0; i < 3; i++) {
        check_ok(proxy_wait_held(proxy, WAIT_MS));
        check_wait(wire_exists(own, "/never", NULL) == WIRE_NONODE, WAIT_MS);
        release_create(proxy, i < 2);
    }
    check_ok(actor_result(actor));
    check_ok(actor_do(actor, do_unlock, mutex));
}

/* Goal: a chroot that does not exist has a code of its own, in lock and trylock, and the library
 * makes no node. The same handle works once somebody has made the chroot. Modes: F56. */
WORLD_TEST(a_missing_chroot_is_named)
{
    struct zkl_client_options options = cluster_options();
    char servers[128];

    snprintf(servers, sizeof servers, "%s/none", options.servers);
    options.servers = servers;
    options.connect_timeout_ms = 0;
    struct zkl_client *client = world_client_with(&options);
    struct zkl_mutex *mutex = world_mutex(client, "/locks/one");
    check_num(zkl_mutex_lock(mutex), ==, ZKL_ENOCHROOT);
    check_true(strstr(zkl_error_detail(), "create it") != NULL);
    check_num(zkl_mutex_trylock(mutex), ==, ZKL_ENOCHROOT);
    check_num(zkl_mutex_lock_for(mutex, WAIT_MS), ==, ZKL_ENOCHROOT);
    check_true(!node_is_there("/none"));
    check_ok(wire_create(raw, cluster_at("/none"), "", WIRE_PERSISTENT, NULL, 0));
    cycle(mutex, 1);
}
