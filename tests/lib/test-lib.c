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

static struct wire *open_wire(void)
{
    struct wire *w = NULL;

    check_ok(wire_open(&w, zks_host(), zks_port(shared, 0), SESSION_MS));
    return w;
}

/* --- the raw client --------------------------------------------------------------------------- */

TEST(data_can_be_written_and_read)
{
    struct wire *w = open_wire();
    struct wire_stat stat;
    char text[100];

    check_num(wire_session_ms(w), ==, SESSION_MS);
    check_ok(wire_create(w, "/d", "one", WIRE_PERSISTENT, text, sizeof text));
    check_text(text, "/d");
    check_num(wire_create(w, "/d", "", WIRE_PERSISTENT, NULL, 0), ==, WIRE_NODEEXISTS);
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
    wire_close(w);
}

TEST(children_come_sorted_and_with_numbers)
{
    struct wire *w = open_wire();
    struct wire_names names;
    struct wire_stat stat;
    char made[100];

    check_ok(wire_create(w, "/c", "", WIRE_PERSISTENT, NULL, 0));
    check_ok(wire_create(w, "/c/b-", "", WIRE_SEQUENTIAL, made, sizeof made));
    check_text(made, "/c/b-0000000000");
    check_ok(wire_create(w, "/c/a-", "", WIRE_EPHEMERAL_SEQUENTIAL, made, sizeof made));
    check_text(made, "/c/a-0000000001");
    check_ok(wire_exists(w, made, &stat));
    check_num(stat.ephemeral_owner, ==, wire_session(w));
    for (int i = 2; i < 20; i++)
        check_ok(wire_create(w, "/c/a-", "", WIRE_SEQUENTIAL, NULL, 0));
    check_ok(wire_children(w, "/c", &names));
    check_num(names.n, ==, 20);
    for (size_t i = 0; i + 1 < names.n; i++)
        check_true(strcmp(names.name[i], names.name[i + 1]) < 0);
    check_text(names.name[19], "b-0000000000");
    wire_names_free(&names);
    check_num(wire_delete(w, "/c", -1), ==, WIRE_NOTEMPTY);
    check_ok(wire_delete_tree(w, "/c"));
    check_num(wire_count(w, "/c"), ==, WIRE_NONODE);
    wire_close(w);
}

TEST(access_lists_are_kept_and_honoured)
{
    static const struct wire_acl mine = {WIRE_PERM_ALL, "auth", ""};
    struct wire *owner = open_wire();
    struct wire *other = open_wire();
    char text[200];

    check_ok(wire_auth(owner, "digest", "ann:secret"));
    check_ok(wire_create_acl(owner, "/l", "x", WIRE_PERSISTENT, &mine, 1, NULL, 0));
    check_ok(wire_get_acl(owner, "/l", text, sizeof text));
    check_true(strncmp(text, "31:digest:ann:", 14) == 0);
    check_num(wire_get(other, "/l", text, sizeof text, NULL), ==, WIRE_NOAUTH);
    check_ok(wire_delete(owner, "/l", -1));
    wire_close(owner);
    wire_close(other);
}

TEST(used_container_is_collected)
{
    struct wire *w = open_wire();

    check_ok(wire_create(w, "/k", "", WIRE_CONTAINER, NULL, 0));
    check_ok(wire_create(w, "/k/a", "", WIRE_PERSISTENT, NULL, 0));
    check_ok(wire_delete(w, "/k/a", -1));
    check_wait(wire_exists(w, "/k", NULL) == WIRE_NONODE, WAIT_MS);
    wire_close(w);
}

TEST(events_come_once)
{
    struct wire *w = open_wire();
    struct wire *other = open_wire();
    char path[100];

    check_ok(wire_watch(w, "/e"));
    check_ok(wire_create(other, "/e", "", WIRE_PERSISTENT, NULL, 0));
    check_ok(wire_delete(other, "/e", -1));
    check_num(wire_wait_event(w, WAIT_MS, path, sizeof path), ==, WIRE_CREATED);
    check_text(path, "/e");
    check_num(wire_wait_event(w, 50, NULL, 0), ==, WIRE_IO);
    wire_close(w);
    wire_close(other);
}

TEST(abandoned_session_can_be_taken_over)
{
    struct wire *first = open_wire();
    struct wire *second = NULL;
    int64_t session = wire_session(first);
    char password[WIRE_PASSWORD];

    memcpy(password, wire_password(first), sizeof password);
    check_ok(wire_create(first, "/t", "", WIRE_EPHEMERAL, NULL, 0));
    wire_abandon(first);
    check_ok(wire_reopen(&second, zks_host(), zks_port(shared, 0), SESSION_MS, session, password));
    check_ok(wire_exists(second, "/t", NULL));
    wire_close(second);
    check_num(wire_reopen(&second, zks_host(), zks_port(shared, 0), SESSION_MS, session, password),
              ==, WIRE_SESSIONEXPIRED);
}

TEST(killed_session_is_gone)
{
    struct wire *victim = open_wire();
    struct wire *other = open_wire();
    int port = zks_port(shared, 0);

    check_ok(wire_create(victim, "/v", "", WIRE_EPHEMERAL, NULL, 0));
    check_ok(wire_kill_session(zks_host(), port, wire_session(victim), wire_password(victim)));
    check_num(wire_exists(other, "/v", NULL), ==, WIRE_NONODE);
    check_num(wire_ping(victim), ==, WIRE_IO);
    check_num(wire_kill_session(zks_host(), port, wire_session(victim), wire_password(victim)), ==,
              1);
    check_ok(wire_expire_session(zks_host(), port, wire_session(victim), wire_password(victim), 0));
    wire_abandon(victim);
    wire_close(other);
}

/* The server cuts the owner's connection all the same, and leaves the session alone. */
TEST(wrong_password_kills_nothing)
{
    static const char wrong[WIRE_PASSWORD] = "wrong";
    struct wire *victim = open_wire();
    struct wire *again = NULL;
    int port = zks_port(shared, 0);

    check_num(wire_kill_session(zks_host(), port, wire_session(victim), wrong), ==, 1);
    check_ok(wire_reopen(&again, zks_host(), port, SESSION_MS, wire_session(victim),
                         wire_password(victim)));
    wire_abandon(victim);
    wire_close(again);
}

/* --- four-letter words ------------------------------------------------------------------------ */

TEST(session_packets_are_exact)
{
    struct wire *w = open_wire();
    struct wire *other = open_wire();
    int64_t received, sent, received_later, sent_later;
    int port = zks_port(shared, 0);

    check_ok(flw_session_packets(zks_host(), port, wire_session(w), &received, &sent));
    check_num(received, ==, 1); /* the connect request */
    check_num(sent, ==, 1);
    check_ok(wire_watch(w, "/n"));
    check_ok(wire_ping(w));
    check_ok(wire_create(other, "/n", "", WIRE_EPHEMERAL, NULL, 0));
    check_num(wire_wait_event(w, WAIT_MS, NULL, 0), ==, WIRE_CREATED);
    check_ok(flw_session_packets(zks_host(), port, wire_session(w), &received_later, &sent_later));
    check_num(received_later - received, ==, 2); /* exists and ping */
    check_num(sent_later - sent, ==, 3);         /* their answers and the event */
    check_num(flw_session_packets(zks_host(), port, 1, &received, &sent), ==, -1);
    wire_close(w);
    wire_close(other);
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
    struct wire *w = open_wire();
    int64_t session = wire_session(w);

    check_num(flw_connections(zks_host(), port), ==, before + 1);
    check_num(flw_has_session(zks_host(), port, session), ==, 1);
    wire_close(w);
    check_wait(flw_has_session(zks_host(), port, session) == 0, WAIT_MS);
}

TEST(watches_are_counted)
{
    struct wire *one = open_wire();
    struct wire *two = open_wire();
    int port = zks_port(shared, 0);
    char paths[1000];

    check_num(flw_watch_count(zks_host(), port, NULL), ==, 0);
    check_ok(wire_watch(one, "/w"));
    check_ok(wire_watch(one, "/w")); /* once is enough for the server */
    check_ok(wire_watch(one, "/x"));
    check_ok(wire_watch(two, "/w"));
    check_num(flw_watch_count(zks_host(), port, "/w"), ==, 2);
    check_num(flw_watch_count(zks_host(), port, NULL), ==, 3);
    check_num(flw_session_watches(zks_host(), port, wire_session(one)), ==, 2);
    check_num(flw_watch_paths(zks_host(), port, paths, sizeof paths), ==, 2);
    check_true(strstr(paths, "/w\n") != NULL && strstr(paths, "/x\n") != NULL);
    wire_close(one);
    check_wait(flw_watch_count(zks_host(), port, NULL) == 1, WAIT_MS);
    wire_close(two);
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

static void create_next(struct wire *w, const char *expected)
{
    char made[100];

    check_ok(wire_create(w, "/s/n-", "", WIRE_EPHEMERAL_SEQUENTIAL, made, sizeof made));
    check_text(made, expected);
}

TEST(counter_can_be_set)
{
    struct zks *zks = start_without_digest();
    const char *data = zks_data_dir(zks, 0);
    struct wire *w = NULL;
    char err[512] = "";
    int32_t next = 0;

    check_ok(wire_open(&w, zks_host(), zks_port(zks, 0), SESSION_MS));
    check_ok(wire_create(w, "/s", "some data", WIRE_PERSISTENT, NULL, 0));
    create_next(w, "/s/n-0000000000");
    wire_close(w);
    check_num(snap_set_counter(data, "/s", 7, err, sizeof err), ==, -1); /* not in a snapshot yet */
    check_true(strstr(err, "restart") != NULL);
    check_ok(zks_restart_node(zks, 0));
    check_ok(zks_stop_node(zks, 0));
    check_ok(snap_get_counter(data, "/s", &next, err, sizeof err));
    check_num(next, ==, 1);
    check_ok(snap_set_counter(data, "/s", INT32_MAX - 2, err, sizeof err));
    check_ok(zks_restart_node(zks, 0));
    check_ok(wire_open(&w, zks_host(), zks_port(zks, 0), SESSION_MS));
    create_next(w, "/s/n-2147483645");
    create_next(w, "/s/n-2147483646");
    create_next(w, "/s/n-2147483647");
    check_num(wire_create(w, "/s/n-", "", WIRE_SEQUENTIAL, NULL, 0), ==, WIRE_NODEEXISTS);
    wire_close(w);
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
