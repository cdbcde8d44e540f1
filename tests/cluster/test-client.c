/* SPDX-License-Identifier: Apache-2.0 */
/* The client's life: opening, a server that is down, silent or comes back, and closing. */
#include "cluster.h"

/* --- open ------------------------------------------------------------------------------------ */

/* It fails, and errbuf says why. How long that took. */
static int64_t check_no_open(struct zkl_client_options *options, int code, const char *word)
{
    struct zkl_client *client = NULL;
    char errbuf[512] = "";
    int64_t start = net_now_ms();

    options->errbuf = errbuf;
    options->errbuf_size = sizeof errbuf;
    check_num(zkl_client_open(&client, options), ==, code);
    if (!strstr(errbuf, word) || strstr(errbuf, "secret"))
        fail_msg("\"%s\" does not say \"%s\"", errbuf, word);
    return net_now_ms() - start;
}

/* Goal: it does not leave that to the first lock. Modes: F56. */
WORLD_TEST(open_tells_of_a_missing_chroot)
{
    struct zkl_client_options options = cluster_options();
    char servers[64];

    snprintf(servers, sizeof servers, "%s/no/such/chroot", zks_connect_string(server));
    options.servers = servers;
    check_no_open(&options, ZKL_ENOCHROOT, "chroot");
}

/* Method: the test opens many times, as the refusal comes behind the connection. */
WORLD_TEST(open_tells_of_a_refused_credential)
{
    struct zkl_client_options options = cluster_options();

    options.auth_scheme = "nonsense";
    options.auth_credential = "alice:secret";
    for (int i = 0; i < 10; i++)
        check_no_open(&options, ZKL_EAUTH, "credential");
}

WORLD_TEST(open_without_an_answer_is_bounded)
{
    struct zkl_client_options options = cluster_options();
    char servers[32];
    int port, closed;
    int fd = net_listen(&port);

    check_num(fd, >=, 0);
    check_ok(net_free_ports(&closed, 1));
    options.connect_timeout_ms = 500;
    for (int i = 0; i < 2; i++) {
        snprintf(servers, sizeof servers, "127.0.0.1:%d", i == 0 ? port : closed);
        options.servers = servers;
        int64_t ms = check_no_open(&options, ZKL_EDISCONNECTED, servers);
        check_num(ms, >=, 500);
        check_num(ms, <, 3000);
    }
    close(fd);
}

/* --- close ----------------------------------------------------------------------------------- */

/* Goal: close says 0 only if the session ended. With a server that stands still close says
 * ETIMEDOUT, after no more than its bound. The server deletes the node once it runs again. Method: the
 * second bound is longer than libzookeeper itself waits. */
WORLD_TEST(close_with_a_silent_server_is_bounded)
{
    for (int timeout_ms = 500; timeout_ms <= 5000; timeout_ms *= 10) {
        struct locker l = locker_of(cluster_path("close-silent"), NULL);
        check_ok(zkl_mutex_lock(l.mutex));
        check_ok(zks_pause_node(server, 0));
        int64_t start = net_now_ms();
        int rc = zkl_client_close(l.client, timeout_ms);
        int64_t ms = net_now_ms() - start;
        check_ok(zks_resume_node(server, 0));
        check_num(rc, ==, ZKL_ETIMEDOUT);
        check_num(ms, <, timeout_ms + 2000);
        check_wait(cluster_children(l.path) == 0, WAIT_MS);
        check_num(zkl_mutex_unlock(l.mutex), ==, ZKL_ELOST);
    }
}

WORLD_TEST(close_with_no_time_returns_at_once)
{
    struct locker l = locker_of(cluster_path("close-at-once"), NULL);

    check_ok(zkl_mutex_lock(l.mutex));
    lag_begin();
    int rc = zkl_client_close(l.client, 0);
    check_num(lag_end_ms(), <, 1000);
    check_true(rc == 0 || rc == ZKL_ETIMEDOUT);
    check_wait(cluster_children(l.path) == 0, WAIT_MS);
    world_drop(l.client);
    check_num(zkl_mutex_unlock(l.mutex), ==, ZKL_ELOST);
}
