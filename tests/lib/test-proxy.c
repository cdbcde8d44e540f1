/* SPDX-License-Identifier: Apache-2.0 */
/* The proxy, between a raw client and the shared server. A second, direct connection shows what the
 * server has really done. */
#include "test-lib.h"

#include "bytes.h"
#include "proxy.h"
#include "wire.h"

#include <pthread.h>

/* Of the test that runs. */
static struct proxy *proxy;
static struct wire *client; /* through the proxy */
static struct wire *direct;

static int set_up(void **state)
{
    int port = zks_port(shared, 0);

    (void)state;
    return proxy_start(&proxy, zks_host(), port) != 0 ||
                   wire_open(&client, zks_host(), proxy_port(proxy), SESSION_MS) != 0 ||
                   wire_open(&direct, zks_host(), port, SESSION_MS) != 0
               ? -1
               : 0;
}

static int tear_down(void **state)
{
    (void)state;
    wire_delete_tree(direct, "/p");
    wire_delete_tree(direct, "/q");
    wire_abandon(client);
    proxy_stop(proxy);
    wire_close(direct);
    return 0;
}

static int make(struct wire *wire, const char *path)
{
    return wire_create(wire, path, "", WIRE_PERSISTENT, NULL, 0);
}

/* A create by the client in a thread of its own: it may take long, or fail. */
static struct creation {
    pthread_t thread;
    const char *path;
    int done; /* atomic: for a look before the thread is joined */
    int rc;
} creation;

static void *create_in_thread(void *arg)
{
    struct creation *c = arg;

    c->rc = make(client, c->path);
    __atomic_store_n(&c->done, 1, __ATOMIC_RELEASE);
    return NULL;
}

static void begin_create(const char *path)
{
    creation = (struct creation){.path = path};
    check_ok(pthread_create(&creation.thread, NULL, create_in_thread, &creation));
}

static bool is_done(void)
{
    return __atomic_load_n(&creation.done, __ATOMIC_ACQUIRE) != 0;
}

static int end_create(void)
{
    pthread_join(creation.thread, NULL);
    return creation.rc;
}

#define PROXY_TEST(name) TEST_IN(name, set_up, tear_down)

/* --- losing frames ---------------------------------------------------------------------------- */

PROXY_TEST(dropped_reply_with_cut_leaves_a_ghost)
{
    int64_t start_ms = net_now_ms();

    check_ok(proxy_drop_reply(proxy, PROXY_CREATE, 2, PROXY_THEN_CUT));
    check_ok(make(client, "/p"));
    check_num(proxy_wait_dropped(proxy, 50), ==, -1); /* the first is not the second */
    check_num(make(client, "/q"), ==, WIRE_IO);
    check_num(net_now_ms() - start_ms, <, WIRE_TIMEOUT_MS); /* cut, not waited for */
    check_ok(proxy_wait_dropped(proxy, WAIT_MS));
    check_ok(wire_exists(direct, "/q", NULL)); /* the server has done it */
}

PROXY_TEST(dropped_reply_with_silence_keeps_the_connection_open)
{
    check_ok(proxy_drop_reply(proxy, PROXY_CREATE, 1, PROXY_THEN_SILENT));
    begin_create("/p");
    check_ok(proxy_wait_dropped(proxy, WAIT_MS));
    check_ok(wire_exists(direct, "/p", NULL));
    net_nap_ms(100); /* time for a cut that must not come */
    check_true(!is_done());
    check_num(proxy_connections(proxy), ==, 1);
    proxy_cut(proxy);
    check_num(end_create(), ==, WIRE_IO);
    check_wait(proxy_connections(proxy) == 0, WAIT_MS);
}

PROXY_TEST(nothing_follows_a_dropped_reply)
{
    check_ok(wire_watch(client, "/p"));
    check_ok(proxy_drop_reply(proxy, PROXY_EVENT, 1, PROXY_THEN_SILENT));
    check_ok(make(direct, "/p"));
    check_ok(proxy_wait_dropped(proxy, WAIT_MS));
    check_num(wire_wait_event(client, 100, NULL, 0), ==, WIRE_IO);
    begin_create("/q");
    check_wait(wire_exists(direct, "/q", NULL) == 0, WAIT_MS);
    net_nap_ms(50); /* time for an answer that must not come */
    check_true(!is_done());
    proxy_cut(proxy);
    check_num(end_create(), ==, WIRE_IO);
}

PROXY_TEST(dropped_request_never_reaches_the_server)
{
    check_ok(proxy_drop_request(proxy, PROXY_CREATE, 1, PROXY_THEN_CUT));
    check_num(make(client, "/p"), ==, WIRE_IO);
    check_ok(proxy_wait_dropped(proxy, WAIT_MS));
    check_ok(wire_sync(direct, "/"));
    check_num(wire_exists(direct, "/p", NULL), ==, WIRE_NONODE);
}

PROXY_TEST(disarmed_fault_does_not_strike)
{
    check_ok(proxy_drop_reply(proxy, PROXY_ANY, 1, PROXY_THEN_CUT));
    proxy_disarm(proxy);
    check_ok(proxy_wait_dropped(proxy, 0));
    check_ok(make(client, "/p"));
}

/* The answer to the connect request is lost: the server has a session that the client never
 * knew. */
PROXY_TEST(dropped_connect_reply_leaves_a_session)
{
    struct wire *w = NULL;

    check_ok(proxy_drop_reply(proxy, PROXY_CONNECT, 1, PROXY_THEN_CUT));
    check_num(wire_open(&w, zks_host(), proxy_port(proxy), SESSION_MS), ==, WIRE_IO);
    check_ok(proxy_wait_dropped(proxy, WAIT_MS));
    check_ok(wire_ping(client)); /* only that connection was cut */
}

/* --- holding them back ------------------------------------------------------------------------ */

PROXY_TEST(held_reply_comes_after_release)
{
    check_ok(proxy_hold_reply(proxy, PROXY_CREATE, 1));
    begin_create("/p");
    check_ok(proxy_wait_held(proxy, WAIT_MS));
    check_ok(wire_exists(direct, "/p", NULL));
    net_nap_ms(100);
    check_true(!is_done());
    proxy_release(proxy);
    check_ok(end_create());
    check_ok(wire_delete(client, "/p", -1)); /* the connection is as good as before */
}

PROXY_TEST(held_request_is_carried_out_after_release)
{
    check_ok(proxy_hold_request(proxy, PROXY_CREATE, 1));
    begin_create("/p");
    check_ok(proxy_wait_held(proxy, WAIT_MS));
    check_ok(wire_sync(direct, "/"));
    check_num(wire_exists(direct, "/p", NULL), ==, WIRE_NONODE);
    proxy_release(proxy);
    check_ok(end_create());
    check_ok(wire_exists(direct, "/p", NULL));
}

PROXY_TEST(held_event_holds_what_is_behind_it)
{
    char path[64];

    check_ok(wire_watch(client, "/p"));
    check_ok(proxy_hold_reply(proxy, PROXY_EVENT, 1));
    check_ok(make(direct, "/p"));
    check_ok(proxy_wait_held(proxy, WAIT_MS));
    begin_create("/q");
    check_wait(wire_exists(direct, "/q", NULL) == 0, WAIT_MS);
    net_nap_ms(50);
    check_true(!is_done());
    proxy_release(proxy);
    check_ok(end_create());
    check_num(wire_wait_event(client, WAIT_MS, path, sizeof path), ==, WIRE_CREATED);
    check_text(path, "/p");
}

/* --- partitions ------------------------------------------------------------------------------- */

PROXY_TEST(hole_keeps_bytes_until_healed)
{
    proxy_hole(proxy, PROXY_TO_SERVER);
    begin_create("/p");
    check_ok(proxy_wait_count(proxy, PROXY_CREATE, 1, WAIT_MS));
    check_ok(wire_sync(direct, "/"));
    check_num(wire_exists(direct, "/p", NULL), ==, WIRE_NONODE);
    proxy_heal(proxy);
    check_ok(end_create());
}

PROXY_TEST(hole_to_the_client_hides_what_was_done)
{
    proxy_hole(proxy, PROXY_TO_CLIENT);
    begin_create("/p");
    check_wait(wire_exists(direct, "/p", NULL) == 0, WAIT_MS);
    net_nap_ms(50);
    check_true(!is_done());
    proxy_heal(proxy);
    check_ok(end_create());
}

PROXY_TEST(cut_in_a_hole_loses_everything)
{
    proxy_hole(proxy, PROXY_BOTH);
    begin_create("/p");
    check_ok(proxy_wait_count(proxy, PROXY_CREATE, 1, WAIT_MS));
    proxy_cut(proxy);
    proxy_heal(proxy);
    check_num(end_create(), ==, WIRE_IO);
    check_ok(wire_sync(direct, "/"));
    check_num(wire_exists(direct, "/p", NULL), ==, WIRE_NONODE);
}

static void *open_in_thread(void *arg)
{
    struct proxy *p = arg;
    struct wire *w = NULL;

    return wire_open(&w, zks_host(), proxy_port(p), SESSION_MS) == WIRE_IO ? arg : NULL;
}

PROXY_TEST(connection_begun_in_a_hole_is_closed_by_heal)
{
    int64_t start_ms = net_now_ms();
    void *failed = NULL;
    pthread_t thread;

    proxy_hole(proxy, PROXY_TO_SERVER);
    check_ok(pthread_create(&thread, NULL, open_in_thread, proxy));
    check_wait(proxy_connections(proxy) == 2, WAIT_MS);
    proxy_heal(proxy);
    pthread_join(thread, &failed);
    check_true(failed != NULL);
    check_num(net_now_ms() - start_ms, <, WIRE_TIMEOUT_MS);
    check_ok(wire_ping(client)); /* the old connection has lived through it */
}

PROXY_TEST(refused_port_opens_again)
{
    struct wire *w = NULL;

    check_ok(proxy_refuse(proxy, true));
    check_num(net_connect(zks_host(), proxy_port(proxy), net_now_ms() + WAIT_MS), ==, -1);
    check_ok(wire_ping(client));
    check_ok(proxy_refuse(proxy, false));
    check_ok(wire_open(&w, zks_host(), proxy_port(proxy), SESSION_MS));
    wire_close(w);
}

PROXY_TEST(delay_holds_each_way)
{
    int64_t start_ms;

    proxy_delay_ms(proxy, 100);
    start_ms = net_now_ms();
    check_ok(wire_ping(client));
    check_num(net_now_ms() - start_ms, >=, 200);
    proxy_delay_ms(proxy, 0);
    lag_begin();
    check_ok(wire_ping(client));
    check_num(lag_end_ms(), <, 200);
}

/* --- both sides see the other's end ----------------------------------------------------------- */

PROXY_TEST(server_side_end_reaches_the_client)
{
    check_ok(wire_expire_session(zks_host(), zks_port(shared, 0), wire_session(client),
                                 wire_password(client), WAIT_MS));
    check_num(wire_ping(client), ==, WIRE_IO);
    check_wait(proxy_connections(proxy) == 0, WAIT_MS);
}

PROXY_TEST(client_side_end_reaches_the_server)
{
    struct wire *w = NULL;

    check_ok(wire_open(&w, zks_host(), proxy_port(proxy), SESSION_MS));
    check_num(proxy_connections(proxy), ==, 2);
    wire_close(w);
    check_wait(proxy_connections(proxy) == 1, WAIT_MS);
}

/* --- looking ---------------------------------------------------------------------------------- */

PROXY_TEST(requests_are_counted_by_type)
{
    check_num(proxy_counts(proxy, PROXY_CONNECT), ==, 1);
    check_num(proxy_counts(proxy, PROXY_ANY), ==, 0);
    check_ok(wire_watch(client, "/p"));
    check_ok(make(client, "/p"));
    check_ok(wire_ping(client));
    check_num(proxy_counts(proxy, PROXY_CREATE), ==, 1);
    check_num(proxy_counts(proxy, PROXY_PING), ==, 1);
    check_num(proxy_counts(proxy, PROXY_ANY), ==, 3);
    check_num(proxy_counts(proxy, PROXY_EVENT), ==, 1);
    proxy_reset_counts(proxy);
    check_num(proxy_counts(proxy, PROXY_ANY), ==, 0);
}

/* Make the answer to every create say "no permission". */
static size_t deny_create(enum proxy_dir dir, int op, unsigned char *frame, size_t size, void *arg)
{
    int *calls = arg;

    if (dir != PROXY_TO_CLIENT || op != PROXY_CREATE)
        return size;
    ++*calls;
    bytes_put32(frame + 12, WIRE_NOAUTH);
    return 16; /* the header alone, as a real error has it */
}

/* Nothing but the header of the answer to "exists", without an error in it. */
static size_t shorten_exists(enum proxy_dir dir, int op, unsigned char *frame, size_t size,
                             void *arg)
{
    (void)frame;
    (void)arg;
    return dir == PROXY_TO_CLIENT && op == PROXY_EXISTS ? 16 : size;
}

PROXY_TEST(hook_rewrites_an_answer)
{
    int calls = 0;

    proxy_set_hook(proxy, deny_create, &calls);
    check_num(make(client, "/p"), ==, WIRE_NOAUTH);
    check_num(calls, ==, 1);
    proxy_set_hook(proxy, shorten_exists, NULL);
    check_num(wire_exists(client, "/p", NULL), ==, WIRE_IO);
    proxy_set_hook(proxy, NULL, NULL);
    check_ok(wire_exists(client, "/p", NULL));
}
