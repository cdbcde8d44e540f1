/* SPDX-License-Identifier: Apache-2.0 */
/* Servers that let no client in: the sentence names the likely causes, a limit first. */
#include "fault.h"

#define SESSION_MS 4000
#define OPEN_MS 1500

/* An open that fails, and what its sentence says; tries until then, as a server may answer nothing at first. */
static void check_refused(const char *servers, const char *says)
{
    int64_t until_ms = net_now_ms() + WAIT_MS;

    do {
        struct zkl_client_options options = fault_client_options(servers, SESSION_MS);
        struct zkl_client *client = NULL;
        options.connect_timeout_ms = OPEN_MS;
        check_num(zkl_client_open(&client, &options), ==, ZKL_EDISCONNECTED);
    } while (!strstr(zkl_error_detail(), says) && net_now_ms() < until_ms);
    if (!strstr(zkl_error_detail(), says))
        fail_msg("not \"%s\": %s", says, zkl_error_detail());
}

static void check_limit(struct zks_options options, const char *says)
{
    struct zks *zks = world_server(&options);

    world_wire_to(zks, 0, 2 * WAIT_MS); /* it sends no pings */
    check_refused(zks_connect_string(zks), says);
}

/* Before TLS: seen red: "does that port want TLS, or SASL?" alone. */
WORLD_TEST_OF(the_limit_of_connections_comes_first,
              check_limit((struct zks_options){.cfg_extra = "maxClientCnxns=1"},
                          "hung up: has it reached its limit of connections"))
WORLD_TEST_OF(so_does_the_limit_for_all,
              check_limit((struct zks_options){.jvm_extra = "-Dzookeeper.maxCnxns=1"},
                          "(maxClientCnxns) or in all"))

static void check_local(const char *servers)
{
    struct zkl_client *client = world_open(servers, SESSION_MS);
    struct zkl_semaphore *semaphore = world_semaphore(client, "/local/s", 1, NULL);
    struct zkl_permit *permit;
    struct zkl_wait wait = ZKL_WAIT_INIT;

    wait.deadline_ns = zkl_now_ns() + WAIT_MS * INT64_C(1000000);
    check_num(zkl_mutex_lock_for(world_mutex(client, "/local"), WAIT_MS), ==, ZKL_EUNIMPLEMENTED);
    assert_non_null(strstr(zkl_error_detail(), "-120: the session is local to its server"));
    check_num(zkl_semaphore_acquire(semaphore, 1, &wait, &permit), ==, ZKL_EUNIMPLEMENTED);
    assert_non_null(strstr(zkl_error_detail(), "turn localSessionsEnabled off"));
}

WORLD_TEST(local_sessions_and_a_missing_quorum_are_named)
{
    struct zks *zks =
        world_server(&(struct zks_options){.nodes = 3, .cfg_extra = "localSessionsEnabled=true"});

    check_local(zks_connect_string(zks));
    check_ok(zks_kill_node(zks, 1));
    check_ok(zks_kill_node(zks, 2));
    check_refused(zks_address(zks, 0), "without a quorum");
}

/* No server "refused" anything there. */
WORLD_TEST(nothing_that_listens_is_named)
{
    char address[32];
    int port = 0;

    check_ok(net_free_ports(&port, 1));
    snprintf(address, sizeof address, "127.0.0.1:%d", port);
    check_refused(address, "Connection refused: nothing listens there");
}

WORLD_TEST(a_lock_says_why_no_server_was_of_use)
{
    int64_t until_ms = net_now_ms() + WAIT_MS;
    struct zks *zks = world_server(&(struct zks_options){0});
    struct zkl_mutex *mutex = world_mutex(world_open(zks_connect_string(zks), SESSION_MS), "/why");

    check_ok(zks_kill_node(zks, 0));
    do
        check_num(zkl_mutex_lock_for(mutex, OPEN_MS), ==, ZKL_ETIMEDOUT);
    while (!strstr(zkl_error_detail(), "nothing listens there") && net_now_ms() < until_ms);
    if (!strstr(zkl_error_detail(), "nothing listens there"))
        fail_msg("%s", zkl_error_detail());
}
