/* SPDX-License-Identifier: Apache-2.0 */
/* Bad input: a code of its own for each kind, and a sentence that says what to do. */
#include "cluster.h"

#include "check_error.h"

#include <stdlib.h>
#include <string.h>

/* Goal: a path that ZooKeeper's own rules refuse (Unicode beyond them, bytes that are no UTF-8) is
 * refused as a path, by zkl_mutex_new, before anything is asked of the server. */
static void paths_that_no_server_takes_are_refused_at_once(void **state)
{
    static const char *const paths[] = {"/c1-\xc2\x85",
                                        "/private-\xee\x80\x80",
                                        "/surrogate-\xed\xa0\x80",
                                        "/special-\xef\xbf\xbd",
                                        "/no-utf8-\xff",
                                        "/cut-\xc3",
                                        "/beyond-\xf0\x9f\x98\x80"};
    struct zkl_client *client = cluster_client();

    (void)state;
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        struct zkl_mutex *mutex = NULL;
        check_num(zkl_mutex_new(&mutex, client, paths[i], NULL), ==, ZKL_EBADPATH);
    }
    cluster_free(client, NULL);
}

struct bad {
    const char *text;
    const char *word; /* of the detail */
};

/* Goal: each way to write a path wrongly is refused by zkl_mutex_new, which says what is wrong. */
static void malformed_paths_are_explained(void **state)
{
    static const struct bad paths[] = {
        {"", "empty"},         {"locks/a", "slash"},     {"/", "root"},
        {"/a/", "component"},  {"//a", "component"},     {"/a//b", "component"},
        {"/./a", "\".\""},     {"/a/..", "\"..\""},      {"/a\nb", "control"},
        {"/a\x7f", "control"}, {"/zookeeper", "server"}, {"/zookeeper/quota", "server"},
    };
    struct zkl_client *client = cluster_client();
    struct zkl_mutex *mutex = NULL;

    (void)state;
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++)
        check_fails(zkl_mutex_new(&mutex, client, paths[i].text, NULL), ZKL_EBADPATH,
                    paths[i].word);
    check_true(mutex == NULL);
    cluster_free(client, NULL);
}

/* Goal: a path of 512 bytes, with anything in it that ZooKeeper takes, can be locked; one of 513
 * bytes is refused. */
static void the_longest_path_works(void **state)
{
    struct zkl_client *client = cluster_client();
    struct zkl_mutex *mutex = NULL;
    char path[514];

    (void)state;
    memset(path, 'p', sizeof path - 1);
    path[sizeof path - 1] = '\0';
    memcpy(path, "/l\xc3\xa4nge .../zookeeper/", 21);
    check_fails(zkl_mutex_new(&mutex, client, path, NULL), ZKL_EBADPATH, "512");
    path[512] = '\0';
    mutex = cluster_mutex(client, path);
    check_ok(zkl_mutex_lock(mutex));
    check_num(zkl_mutex_node_path(mutex, NULL, 0), >, 512);
    check_ok(zkl_mutex_unlock(mutex));
    cluster_free(client, mutex);
}

/* Goal: each way to write a server list wrongly is refused, with the list and a reason in words,
 * also in errbuf. */
static void malformed_server_lists_are_explained(void **state)
{
    static const struct bad lists[] = {
        {"", "empty"},
        {"/chroot", "empty"},
        {"localhost", "HOST:PORT"},
        {":2181", "HOST:PORT"},
        {"a:1,,b:2", "HOST:PORT"},
        {"a:1,", "HOST:PORT"},
        {"localhost:", "port"},
        {"localhost:0", "port"},
        {"localhost:65536", "port"},
        {"localhost:2181x", "port"},
        {"local host:2181", "blank"},
        {"localhost:2181/", "slash"},
        {"localhost:2181/a/", "chroot"},
        {"localhost:2181//a", "chroot"},
        {"localhost:2181/../a", "chroot"},
        {"::1:2181", "brackets"},
        {"a:1,fe80::1", "brackets"},
        {"[::1]", "brackets"},
        {"[::1:2181", "brackets"},
        {"[a]:2181", "brackets"},
        {"[127.0.0.1]:2181", "brackets"},
        {"[fe80::1%]:2181", "brackets"},
        {"a]:2181", "HOST:PORT"},
        {"[::1]:0", "port"},
        {"[1:2:3]:2181", "brackets"},
    };
    struct zkl_client_options options = cluster_options();
    struct zkl_client *client = NULL;
    char errbuf[512];

    (void)state;
    options.errbuf = errbuf;
    options.errbuf_size = sizeof errbuf;
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        options.servers = lists[i].text;
        check_fails(zkl_client_open(&client, &options), ZKL_EBADSERVERS, lists[i].word);
        check_text(errbuf, zkl_error_detail());
    }
    check_true(client == NULL);
}

/* Goal: an option out of range is refused and named; errbuf is cut to its size. */
static void options_out_of_range_are_named(void **state)
{
    static const int sessions[] = {-1, 1, 99, 86400001};
    static const int64_t connects[] = {-1, INT64_MIN, ZKL_TIMEOUT_MAX_MS + 1, INT64_MAX};
    struct zkl_client_options options = cluster_options();
    struct zkl_client *client = NULL;
    char owner[514], errbuf[4] = "xyz";

    (void)state;
    options.errbuf = errbuf;
    options.errbuf_size = 3;
    for (size_t i = 0; i < sizeof sessions / sizeof sessions[0]; i++) {
        options.session_timeout_ms = sessions[i];
        check_fails(zkl_client_open(&client, &options), ZKL_EINVAL, "session_timeout_ms");
    }
    check_num(strlen(errbuf), ==, 2);
    options = cluster_options();
    for (size_t i = 0; i < sizeof connects / sizeof connects[0]; i++) {
        options.connect_timeout_ms = connects[i];
        check_fails(zkl_client_open(&client, &options), ZKL_EBADTIMEOUT, "connect_timeout_ms");
    }
    options = cluster_options();
    memset(owner, 'o', sizeof owner - 1);
    owner[sizeof owner - 1] = '\0';
    options.owner = owner;
    check_fails(zkl_client_open(&client, &options), ZKL_EINVAL, "owner");
    check_true(client == NULL);
}

/* Goal: credentials that are half there, and ACLs that cannot be, are refused. */
static void halves_of_credentials_are_refused(void **state)
{
    struct zkl_client_options options = cluster_options();
    struct zkl_client *client = NULL;

    (void)state;
    options.auth_scheme = "digest";
    check_fails(zkl_client_open(&client, &options), ZKL_EINVAL, "auth_credential");
    options.auth_scheme = NULL;
    options.auth_credential = "alice:secret";
    check_fails(zkl_client_open(&client, &options), ZKL_EINVAL, "auth_scheme");
    check_true(strstr(zkl_error_detail(), "secret") == NULL);
    options.auth_credential = NULL;
    options.acl = ZKL_ACL_CREATOR;
    check_fails(zkl_client_open(&client, &options), ZKL_EINVAL, "ZKL_ACL_CREATOR");
    options.acl = (enum zkl_acl)7;
    check_fails(zkl_client_open(&client, &options), ZKL_EINVAL, "acl");
    check_true(client == NULL);
}

/* Goal: timeouts below 0 or above the limit are refused by each call that takes one, and the
 * largest that is allowed works. */
static void timeouts_out_of_range_are_refused(void **state)
{
    static const int64_t bad[] = {-1, INT64_MIN, ZKL_TIMEOUT_MAX_MS + 1, INT64_MAX};
    struct zkl_client *client = cluster_client();
    struct zkl_mutex *mutex = cluster_mutex(client, cluster_path("timeouts"));

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        check_fails(zkl_mutex_lock_for(mutex, bad[i]), ZKL_EBADTIMEOUT, "zkl_mutex_lock_for");
        check_fails(zkl_mutex_check(mutex, bad[i]), ZKL_EBADTIMEOUT, "zkl_mutex_check");
        check_true(!zkl_mutex_still_held(mutex, bad[i]));
        check_true(strstr(zkl_error_detail(), "still_held") != NULL);
        check_fails(zkl_client_close(client, bad[i]), ZKL_EBADTIMEOUT, "zkl_client_close");
    }
    check_fails(zkl_mutex_lock_until(mutex, -1, NULL), ZKL_EBADTIMEOUT, "deadline_ns");
    check_ok(zkl_mutex_lock_for(mutex, ZKL_TIMEOUT_MAX_MS));
    check_num(zkl_mutex_still_held(mutex, ZKL_TIMEOUT_MAX_MS), ==, 0);
    check_ok(zkl_mutex_unlock(mutex));
    check_ok(zkl_mutex_lock_until(mutex, INT64_MAX - 1, NULL));
    check_ok(zkl_mutex_unlock(mutex));
    check_ok(zkl_client_close(client, ZKL_TIMEOUT_MAX_MS));
    cluster_free(client, mutex);
}

static const struct CMUnitTest tests[] = {
    cluster_test(malformed_paths_are_explained),
    cluster_test(the_longest_path_works),
    cluster_test(malformed_server_lists_are_explained),
    cluster_test(options_out_of_range_are_named),
    cluster_test(halves_of_credentials_are_refused),
    cluster_test(timeouts_out_of_range_are_refused),
    cluster_test(paths_that_no_server_takes_are_refused_at_once),
};

int main(int argc, char **argv)
{
    return CLUSTER_MAIN(argc, argv, "input", tests);
}
