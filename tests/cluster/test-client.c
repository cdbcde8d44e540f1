/* SPDX-License-Identifier: Apache-2.0 */
/* The client's life: opening, a server that is down, silent or comes back, and closing. */
#include "cluster.h"

/* --- open ------------------------------------------------------------------------------------ */

struct opened {
    struct zkl_client *client;
    char errbuf[512];
    int64_t ms;
    int rc;
};

static struct opened open_with(struct zkl_client_options options)
{
    struct opened o = {0};
    int64_t start = net_now_ms();

    options.errbuf = o.errbuf;
    options.errbuf_size = sizeof o.errbuf;
    o.rc = zkl_client_open(&o.client, &options);
    o.ms = net_now_ms() - start;
    if (o.client)
        check_ok(zkl_client_free(o.client));
    return o;
}

static void check_says(const char *text, const char *word)
{
    if (!strstr(text, word))
        fail_msg("\"%s\" does not say \"%s\"", text, word);
}

/* Goal: an open that waits for its connection says immediately that the chroot is missing. It does
 * not leave that to the first lock. Modes: F56. */
WORLD_TEST(open_tells_of_a_missing_chroot)
{
    struct zkl_client_options options = cluster_options();
    char servers[64];

    snprintf(servers, sizeof servers, "%s/no/such/chroot", zks_connect_string(server));
    options.servers = servers;
    struct opened o = open_with(options);
    check_num(o.rc, ==, ZKL_ENOCHROOT);
    check_says(o.errbuf, "chroot");
}

/* Goal: an open that waits for its connection says that the server refused the credential. Method:
 * a scheme that the server does not know. The test opens many times, as the refusal comes behind
 * the connection. */
WORLD_TEST(open_tells_of_a_refused_credential)
{
    struct zkl_client_options options = cluster_options();

    options.auth_scheme = "nonsense";
    options.auth_credential = "alice:secret";
    for (int i = 0; i < 10; i++) {
        struct opened o = open_with(options);
        check_num(o.rc, ==, ZKL_EAUTH);
        check_says(o.errbuf, "credential");
        check_true(strstr(o.errbuf, "secret") == NULL);
    }
}

/* Goal: an open returns within its connect_timeout_ms if no process listens, and if one listens but
 * never answers. */
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
        struct opened o = open_with(options);
        check_num(o.rc, ==, ZKL_EDISCONNECTED);
        check_num(o.ms, >=, 500);
        check_num(o.ms, <, 3000);
        check_says(o.errbuf, servers);
    }
    close(fd);
}

/* --- close ----------------------------------------------------------------------------------- */

/* Goal: close says 0 only if the session ended. With a server that stands still close says
 * ETIMEDOUT, after no more than its bound. The server deletes the node once it runs again. */
static void check_silent_close(int timeout_ms)
{
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

WORLD_TEST(close_with_a_silent_server_is_bounded)
{
    check_silent_close(500);
}

/* Longer than libzookeeper itself waits. */
WORLD_TEST(close_does_not_claim_an_end_that_was_not_confirmed)
{
    check_silent_close(5000);
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
