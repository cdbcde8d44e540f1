/* SPDX-License-Identifier: Apache-2.0 */
/* The test library against a real server: four-letter words, the raw client, snapshots; and main.
 * The launcher is in test-server.c, the proxy in test-proxy.c. */
#include "test-lib.h"

#include "tool/fourlw.h"
#include "on_servers.h"
#include "snapshot.h"
#include "wire.h"

#include <stdio.h>
#include <string.h>

struct zks *shared;

/* Of the test that runs. */
static struct wire *w, *other;

static int connect_both(void **state)
{
    int port = zks_port(shared, 0);

    (void)state;
    return wire_open(&w, zks_host(), port, SESSION_MS) |
           wire_open(&other, zks_host(), port, SESSION_MS);
}

static int close_both(void **state)
{
    (void)state;
    wire_close(w);
    wire_close(other);
    return 0;
}

#define WIRE_TEST(name) TEST_IN(name, connect_both, close_both)

static int make(struct wire *wire, const char *path, int flags)
{
    return wire_create(wire, path, "", flags, NULL, 0);
}

/* --- the raw client --------------------------------------------------------------------------- */

WIRE_TEST(data_can_be_written_and_read)
{
    struct wire_stat stat;
    char text[100];

    check_num(wire_session_ms(w), ==, SESSION_MS);
    check_ok(wire_create(w, "/d", "one", WIRE_PERSISTENT, text, sizeof text));
    check_text(text, "/d");
    check_num(make(w, "/d", WIRE_PERSISTENT), ==, WIRE_NODEEXISTS);
    check_ok(wire_set(w, "/d", "three", 0));
    check_num(wire_set(w, "/d", "four", 0), ==, WIRE_BADVERSION);
    check_ok(wire_get(w, "/d", text, sizeof text, &stat));
    check_text(text, "three");
    check_num(stat.version, ==, 1);
    check_num(stat.data_length, ==, 5);
    check_num(stat.mzxid, >, stat.czxid);
    check_num(wire_last_zxid(w), >=, stat.mzxid);
    check_ok(wire_delete(w, "/d", -1));
    check_num(wire_get(w, "/d", text, sizeof text, NULL), ==, WIRE_NONODE);
}

WIRE_TEST(children_come_sorted_and_with_numbers)
{
    struct wire_names names;
    struct wire_stat stat;
    char made[100];

    check_ok(make(w, "/c", WIRE_PERSISTENT));
    check_ok(wire_create(w, "/c/b-", "", WIRE_SEQUENTIAL, made, sizeof made));
    check_text(made, "/c/b-0000000000");
    check_ok(wire_create(w, "/c/a-", "", WIRE_EPHEMERAL_SEQUENTIAL, made, sizeof made));
    check_text(made, "/c/a-0000000001");
    check_ok(wire_exists(w, made, &stat));
    check_num(stat.ephemeral_owner, ==, wire_session(w));
    for (int i = 2; i < 20; i++)
        check_ok(make(w, "/c/a-", WIRE_SEQUENTIAL));
    check_ok(wire_children(w, "/c", &names));
    check_num(names.n, ==, 20);
    for (size_t i = 0; i + 1 < names.n; i++)
        check_true(strcmp(names.name[i], names.name[i + 1]) < 0);
    check_text(names.name[19], "b-0000000000");
    wire_names_free(&names);
    check_num(wire_delete(w, "/c", -1), ==, WIRE_NOTEMPTY);
    check_ok(wire_delete_tree(w, "/c"));
    check_num(wire_count(w, "/c"), ==, WIRE_NONODE);
}

WIRE_TEST(access_lists_are_kept_and_honoured)
{
    static const struct wire_acl mine = {WIRE_PERM_ALL, "auth", ""};
    char text[200];

    check_ok(wire_auth(w, "digest", "ann:secret"));
    check_ok(wire_create_acl(w, "/l", "x", WIRE_PERSISTENT, &mine, 1, NULL, 0));
    check_ok(wire_get_acl(w, "/l", text, sizeof text));
    check_true(strncmp(text, "31:digest:ann:", 14) == 0);
    check_num(wire_get(other, "/l", text, sizeof text, NULL), ==, WIRE_NOAUTH);
    check_ok(wire_delete(w, "/l", -1));
}

WIRE_TEST(used_container_is_collected)
{
    check_ok(make(w, "/k", WIRE_CONTAINER));
    check_ok(make(w, "/k/a", WIRE_PERSISTENT));
    check_ok(wire_delete(w, "/k/a", -1));
    check_wait(wire_exists(w, "/k", NULL) == WIRE_NONODE, WAIT_MS);
}

WIRE_TEST(events_come_once)
{
    char path[100];

    check_ok(wire_watch(w, "/e"));
    check_ok(make(other, "/e", WIRE_PERSISTENT));
    check_ok(wire_delete(other, "/e", -1));
    check_num(wire_wait_event(w, WAIT_MS, path, sizeof path), ==, WIRE_CREATED);
    check_text(path, "/e");
    check_num(wire_wait_event(w, 50, NULL, 0), ==, WIRE_IO);
}

WIRE_TEST(abandoned_session_can_be_taken_over)
{
    struct wire *second = NULL;
    int64_t session = wire_session(w);
    char password[WIRE_PASSWORD];

    memcpy(password, wire_password(w), sizeof password);
    check_ok(make(w, "/t", WIRE_EPHEMERAL));
    wire_abandon(w);
    w = NULL;
    check_ok(wire_reopen(&second, zks_host(), zks_port(shared, 0), SESSION_MS, session, password));
    check_ok(wire_exists(second, "/t", NULL));
    wire_close(second);
    check_num(wire_reopen(&second, zks_host(), zks_port(shared, 0), SESSION_MS, session, password),
              ==, WIRE_SESSIONEXPIRED);
}

WIRE_TEST(killed_session_is_gone)
{
    int port = zks_port(shared, 0);

    check_ok(make(w, "/v", WIRE_EPHEMERAL));
    check_ok(wire_kill_session(zks_host(), port, wire_session(w), wire_password(w)));
    check_num(wire_exists(other, "/v", NULL), ==, WIRE_NONODE);
    check_num(wire_ping(w), ==, WIRE_IO);
    check_num(wire_kill_session(zks_host(), port, wire_session(w), wire_password(w)), ==, 1);
    check_ok(wire_expire_session(zks_host(), port, wire_session(w), wire_password(w), 0));
    wire_abandon(w);
    w = NULL;
}

/* The server cuts the owner's connection all the same, and leaves the session alone. */
WIRE_TEST(wrong_password_kills_nothing)
{
    static const char wrong[WIRE_PASSWORD] = "wrong";
    struct wire *again = NULL;
    int port = zks_port(shared, 0);

    check_num(wire_kill_session(zks_host(), port, wire_session(w), wrong), ==, 1);
    check_ok(wire_reopen(&again, zks_host(), port, SESSION_MS, wire_session(w), wire_password(w)));
    wire_abandon(w);
    w = NULL;
    wire_close(again);
}

/* --- four-letter words ------------------------------------------------------------------------ */

WIRE_TEST(session_packets_are_exact)
{
    int64_t received, sent, received_later, sent_later;
    int port = zks_port(shared, 0);

    check_ok(flw_session_packets(zks_host(), port, wire_session(w), &received, &sent));
    check_num(received, ==, 1); /* the connect request */
    check_num(sent, ==, 1);
    check_ok(wire_watch(w, "/n"));
    check_ok(wire_ping(w));
    check_ok(make(other, "/n", WIRE_EPHEMERAL));
    check_num(wire_wait_event(w, WAIT_MS, NULL, 0), ==, WIRE_CREATED);
    check_ok(flw_session_packets(zks_host(), port, wire_session(w), &received_later, &sent_later));
    check_num(received_later - received, ==, 2); /* exists and ping */
    check_num(sent_later - sent, ==, 3);         /* their answers and the event */
    check_num(flw_session_packets(zks_host(), port, 1, &received, &sent), ==, -1);
}

TEST(server_packets_count_the_words_too)
{
    int64_t received, sent, received_later, sent_later;
    int port = zks_port(shared, 0);

    check_ok(flw_packets(zks_host(), port, &received, &sent));
    check_ok(flw_packets(zks_host(), port, &received_later, &sent_later));
    check_num(received_later - received, ==, 1);
    check_ok(flw_requests_received(zks_host(), port, &received_later));
    check_num(received_later - received, ==, 2);
}

TEST(the_server_tells_its_version)
{
    char text[4096], expected[64];
    int version = flw_version(zks_host(), zks_port(shared, 0));

    check_true(flw_query(zks_host(), zks_port(shared, 0), "srvr", text, sizeof text) > 0);
    snprintf(expected, sizeof expected, "version: %d.%d.%d", version / 10000, version / 100 % 100,
             version % 100);
    check_true(strstr(text, expected) != NULL);
    check_num(version, >=, 30400);
    check_num(version, <, 100000);
}

TEST(connections_are_counted)
{
    int port = zks_port(shared, 0);
    int before = flw_connections(zks_host(), port);
    struct wire *own = NULL;

    check_ok(wire_open(&own, zks_host(), port, SESSION_MS));
    check_num(flw_connections(zks_host(), port), ==, before + 1);
    int64_t session = wire_session(own);
    check_num(flw_has_session(zks_host(), port, session), ==, 1);
    wire_close(own);
    check_wait(flw_has_session(zks_host(), port, session) == 0, WAIT_MS);
}

WIRE_TEST(watches_are_counted)
{
    int port = zks_port(shared, 0);
    char paths[1000];

    check_num(flw_watch_count(zks_host(), port, NULL), ==, 0);
    check_ok(wire_watch(w, "/w"));
    check_ok(wire_watch(w, "/w")); /* once is enough for the server */
    check_ok(wire_watch(w, "/x"));
    check_ok(wire_watch(other, "/w"));
    check_num(flw_watch_count(zks_host(), port, "/w"), ==, 2);
    check_num(flw_watch_count(zks_host(), port, NULL), ==, 3);
    check_num(flw_session_watches(zks_host(), port, wire_session(w)), ==, 2);
    check_num(flw_watch_paths(zks_host(), port, paths, sizeof paths), ==, 2);
    check_true(strstr(paths, "/w\n") != NULL && strstr(paths, "/x\n") != NULL);
    wire_close(w);
    w = NULL;
    check_wait(flw_watch_count(zks_host(), port, NULL) == 1, WAIT_MS);
    wire_close(other);
    other = NULL;
    check_wait(flw_watch_count(zks_host(), port, NULL) == 0, WAIT_MS);
}

/* --- snapshots -------------------------------------------------------------------------------- */

static struct zks *start_without_digest(void)
{
    struct zks_options options = {.no_digest = true};
    struct zks *zks = NULL;
    char err[512] = "";

    if (zks_start(&zks, &options, err, sizeof err) != 0)
        fail_msg("%s", err);
    return zks;
}

static void create_next(struct wire *own, const char *expected)
{
    char made[100];

    check_ok(wire_create(own, "/s/n-", "", WIRE_EPHEMERAL_SEQUENTIAL, made, sizeof made));
    check_text(made, expected);
}

TEST(counter_can_be_set)
{
    struct zks *zks = start_without_digest();
    const char *data = zks_data_dir(zks, 0);
    struct wire *own = NULL;
    char err[512] = "";
    int32_t next = 0;

    check_ok(wire_open(&own, zks_host(), zks_port(zks, 0), SESSION_MS));
    check_ok(wire_create(own, "/s", "some data", WIRE_PERSISTENT, NULL, 0));
    create_next(own, "/s/n-0000000000");
    wire_close(own);
    check_num(snap_set_counter(data, "/s", 7, err, sizeof err), ==, -1); /* not in a snapshot yet */
    check_true(strstr(err, "restart") != NULL);
    check_ok(zks_restart_node(zks, 0));
    check_ok(zks_stop_node(zks, 0));
    check_ok(snap_get_counter(data, "/s", &next, err, sizeof err));
    check_num(next, ==, 1);
    check_ok(snap_set_counter(data, "/s", INT32_MAX - 2, err, sizeof err));
    check_ok(zks_restart_node(zks, 0));
    check_ok(wire_open(&own, zks_host(), zks_port(zks, 0), SESSION_MS));
    create_next(own, "/s/n-2147483645");
    create_next(own, "/s/n-2147483646");
    create_next(own, "/s/n-2147483647");
    check_num(make(own, "/s/n-", WIRE_SEQUENTIAL), ==, WIRE_NODEEXISTS);
    wire_close(own);
    zks_stop(zks);
}

/* --- main ------------------------------------------------------------------------------------- */

static int start_shared(void **state)
{
    struct zks_options options = {.container_check_ms = 300};
    char err[512] = "";
    int rc = zks_start(&shared, &options, err, sizeof err);

    (void)state;
    if (rc != 0)
        print_error("%s\n", err);
    return rc;
}

static int stop_shared(void **state)
{
    (void)state;
    zks_stop(shared);
    return 0;
}

int main(int argc, char **argv)
{
    return run_on_servers(argc, argv, start_shared, stop_shared);
}
