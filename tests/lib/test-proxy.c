/* SPDX-License-Identifier: Apache-2.0 */
/* The proxy, between a raw client and the shared server. A second, direct connection shows what the
 * server has really done. */
#include "test-lib.h"

#include "bytes.h"
#include "proxy.h"
#include "wire.h"

#include <pthread.h>
#include <stdlib.h>

struct bench {
    struct proxy *proxy;
    struct wire *client; /* through the proxy */
    struct wire *direct;
};

static int set_up(void **state)
{
    struct bench *b = calloc(1, sizeof *b);
    int port = zks_port(shared, 0);

    if (b == NULL || proxy_start(&b->proxy, zks_host(), port) != 0 ||
        wire_open(&b->client, zks_host(), proxy_port(b->proxy), SESSION_MS) != 0 ||
        wire_open(&b->direct, zks_host(), port, SESSION_MS) != 0)
        return -1;
    *state = b;
    return 0;
}

static int tear_down(void **state)
{
    struct bench *b = *state;

    wire_delete_tree(b->direct, "/p");
    wire_delete_tree(b->direct, "/q");
    wire_abandon(b->client);
    proxy_stop(b->proxy);
    wire_close(b->direct);
    free(b);
    return 0;
}

/* A create in a thread of its own: it may take long, or fail. */
struct creation {
    pthread_t thread;
    struct wire *wire;
    const char *path;
    int done; /* atomic: for a look before the thread is joined */
    int rc;
};

static void *create_in_thread(void *arg)
{
    struct creation *c = arg;

    c->rc = wire_create(c->wire, c->path, "", WIRE_PERSISTENT, NULL, 0);
    __atomic_store_n(&c->done, 1, __ATOMIC_RELEASE);
    return NULL;
}

static void begin_create(struct creation *c, struct wire *wire, const char *path)
{
    c->wire = wire;
    c->path = path;
    c->done = 0;
    check_ok(pthread_create(&c->thread, NULL, create_in_thread, c));
}

static bool is_done(struct creation *c)
{
    return __atomic_load_n(&c->done, __ATOMIC_ACQUIRE) != 0;
}

static int end_create(struct creation *c)
{
    pthread_join(c->thread, NULL);
    return c->rc;
}

#define PROXY_TEST(name) TEST_IN(name, set_up, tear_down)

/* --- losing frames ---------------------------------------------------------------------------- */

PROXY_TEST(dropped_reply_with_cut_leaves_a_ghost)
{
    struct bench *b = *state;
    int64_t start_ms = net_now_ms();

    check_ok(proxy_drop_reply(b->proxy, PROXY_CREATE, 2, PROXY_THEN_CUT));
    check_ok(wire_create(b->client, "/p", "", WIRE_PERSISTENT, NULL, 0));
    check_num(proxy_wait_dropped(b->proxy, 50), ==, -1); /* the first is not the second */
    check_num(wire_create(b->client, "/q", "", WIRE_PERSISTENT, NULL, 0), ==, WIRE_IO);
    check_num(net_now_ms() - start_ms, <, WIRE_TIMEOUT_MS); /* cut, not waited for */
    check_ok(proxy_wait_dropped(b->proxy, WAIT_MS));
    check_ok(wire_exists(b->direct, "/q", NULL)); /* the server has done it */
}

PROXY_TEST(dropped_reply_with_silence_keeps_the_connection_open)
{
    struct bench *b = *state;
    struct creation c;

    check_ok(proxy_drop_reply(b->proxy, PROXY_CREATE, 1, PROXY_THEN_SILENT));
    begin_create(&c, b->client, "/p");
    check_ok(proxy_wait_dropped(b->proxy, WAIT_MS));
    check_ok(wire_exists(b->direct, "/p", NULL));
    net_nap_ms(100); /* time for a cut that must not come */
    check_true(!is_done(&c));
    check_num(proxy_connections(b->proxy), ==, 1);
    proxy_cut(b->proxy);
    check_num(end_create(&c), ==, WIRE_IO);
    check_wait(proxy_connections(b->proxy) == 0, WAIT_MS);
}

PROXY_TEST(nothing_follows_a_dropped_reply)
{
    struct bench *b = *state;
    struct creation c;

    check_ok(wire_watch(b->client, "/p"));
    check_ok(proxy_drop_reply(b->proxy, PROXY_EVENT, 1, PROXY_THEN_SILENT));
    check_ok(wire_create(b->direct, "/p", "", WIRE_PERSISTENT, NULL, 0));
    check_ok(proxy_wait_dropped(b->proxy, WAIT_MS));
    check_num(wire_wait_event(b->client, 100, NULL, 0), ==, WIRE_IO);
    begin_create(&c, b->client, "/q");
    check_wait(wire_exists(b->direct, "/q", NULL) == 0, WAIT_MS);
    net_nap_ms(50); /* time for an answer that must not come */
    check_true(!is_done(&c));
    proxy_cut(b->proxy);
    check_num(end_create(&c), ==, WIRE_IO);
}

PROXY_TEST(dropped_request_never_reaches_the_server)
{
    struct bench *b = *state;

    check_ok(proxy_drop_request(b->proxy, PROXY_CREATE, 1, PROXY_THEN_CUT));
    check_num(wire_create(b->client, "/p", "", WIRE_PERSISTENT, NULL, 0), ==, WIRE_IO);
    check_ok(proxy_wait_dropped(b->proxy, WAIT_MS));
    check_ok(wire_sync(b->direct, "/"));
    check_num(wire_exists(b->direct, "/p", NULL), ==, WIRE_NONODE);
}

PROXY_TEST(disarmed_fault_does_not_strike)
{
    struct bench *b = *state;

    check_ok(proxy_drop_reply(b->proxy, PROXY_ANY, 1, PROXY_THEN_CUT));
    proxy_disarm(b->proxy);
    check_ok(proxy_wait_dropped(b->proxy, 0));
    check_ok(wire_create(b->client, "/p", "", WIRE_PERSISTENT, NULL, 0));
}

/* The answer to the connect request is lost: the server has a session that the client never
 * knew. */
PROXY_TEST(dropped_connect_reply_leaves_a_session)
{
    struct bench *b = *state;
    struct wire *w = NULL;

    check_ok(proxy_drop_reply(b->proxy, PROXY_CONNECT, 1, PROXY_THEN_CUT));
    check_num(wire_open(&w, zks_host(), proxy_port(b->proxy), SESSION_MS), ==, WIRE_IO);
    check_ok(proxy_wait_dropped(b->proxy, WAIT_MS));
    check_ok(wire_ping(b->client)); /* only that connection was cut */
}

/* --- holding them back ------------------------------------------------------------------------ */

PROXY_TEST(held_reply_comes_after_release)
{
    struct bench *b = *state;
    struct creation c;

    check_ok(proxy_hold_reply(b->proxy, PROXY_CREATE, 1));
    begin_create(&c, b->client, "/p");
    check_ok(proxy_wait_held(b->proxy, WAIT_MS));
    check_ok(wire_exists(b->direct, "/p", NULL));
    net_nap_ms(100);
    check_true(!is_done(&c));
    proxy_release(b->proxy);
    check_ok(end_create(&c));
    check_ok(wire_delete(b->client, "/p", -1)); /* the connection is as good as before */
}

PROXY_TEST(held_request_is_carried_out_after_release)
{
    struct bench *b = *state;
    struct creation c;

    check_ok(proxy_hold_request(b->proxy, PROXY_CREATE, 1));
    begin_create(&c, b->client, "/p");
    check_ok(proxy_wait_held(b->proxy, WAIT_MS));
    check_ok(wire_sync(b->direct, "/"));
    check_num(wire_exists(b->direct, "/p", NULL), ==, WIRE_NONODE);
    proxy_release(b->proxy);
    check_ok(end_create(&c));
    check_ok(wire_exists(b->direct, "/p", NULL));
}

PROXY_TEST(held_event_holds_what_is_behind_it)
{
    struct bench *b = *state;
    struct creation c;
    char path[64];

    check_ok(wire_watch(b->client, "/p"));
    check_ok(proxy_hold_reply(b->proxy, PROXY_EVENT, 1));
    check_ok(wire_create(b->direct, "/p", "", WIRE_PERSISTENT, NULL, 0));
    check_ok(proxy_wait_held(b->proxy, WAIT_MS));
    begin_create(&c, b->client, "/q");
    check_wait(wire_exists(b->direct, "/q", NULL) == 0, WAIT_MS);
    net_nap_ms(50);
    check_true(!is_done(&c));
    proxy_release(b->proxy);
    check_ok(end_create(&c));
    check_num(wire_wait_event(b->client, WAIT_MS, path, sizeof path), ==, WIRE_CREATED);
    check_text(path, "/p");
}

/* --- partitions ------------------------------------------------------------------------------- */

PROXY_TEST(hole_keeps_bytes_until_healed)
{
    struct bench *b = *state;
    struct creation c;

    proxy_hole(b->proxy, PROXY_TO_SERVER);
    begin_create(&c, b->client, "/p");
    check_ok(proxy_wait_count(b->proxy, PROXY_CREATE, 1, WAIT_MS));
    check_ok(wire_sync(b->direct, "/"));
    check_num(wire_exists(b->direct, "/p", NULL), ==, WIRE_NONODE);
    proxy_heal(b->proxy);
    check_ok(end_create(&c));
}

PROXY_TEST(hole_to_the_client_hides_what_was_done)
{
    struct bench *b = *state;
    struct creation c;

    proxy_hole(b->proxy, PROXY_TO_CLIENT);
    begin_create(&c, b->client, "/p");
    check_wait(wire_exists(b->direct, "/p", NULL) == 0, WAIT_MS);
    net_nap_ms(50);
    check_true(!is_done(&c));
    proxy_heal(b->proxy);
    check_ok(end_create(&c));
}

PROXY_TEST(cut_in_a_hole_loses_everything)
{
    struct bench *b = *state;
    struct creation c;

    proxy_hole(b->proxy, PROXY_BOTH);
    begin_create(&c, b->client, "/p");
    check_ok(proxy_wait_count(b->proxy, PROXY_CREATE, 1, WAIT_MS));
    proxy_cut(b->proxy);
    proxy_heal(b->proxy);
    check_num(end_create(&c), ==, WIRE_IO);
    check_ok(wire_sync(b->direct, "/"));
    check_num(wire_exists(b->direct, "/p", NULL), ==, WIRE_NONODE);
}

static void *open_in_thread(void *arg)
{
    struct proxy *p = arg;
    struct wire *w = NULL;

    return wire_open(&w, zks_host(), proxy_port(p), SESSION_MS) == WIRE_IO ? arg : NULL;
}

PROXY_TEST(connection_begun_in_a_hole_is_closed_by_heal)
{
    struct bench *b = *state;
    int64_t start_ms = net_now_ms();
    void *failed = NULL;
    pthread_t thread;

    proxy_hole(b->proxy, PROXY_TO_SERVER);
    check_ok(pthread_create(&thread, NULL, open_in_thread, b->proxy));
    check_wait(proxy_connections(b->proxy) == 2, WAIT_MS);
    proxy_heal(b->proxy);
    pthread_join(thread, &failed);
    check_true(failed != NULL);
    check_num(net_now_ms() - start_ms, <, WIRE_TIMEOUT_MS);
    check_ok(wire_ping(b->client)); /* the old connection has lived through it */
}

PROXY_TEST(refused_port_opens_again)
{
    struct bench *b = *state;
    struct wire *w = NULL;

    check_ok(proxy_refuse(b->proxy, true));
    check_num(net_connect(zks_host(), proxy_port(b->proxy), net_now_ms() + WAIT_MS), ==, -1);
    check_ok(wire_ping(b->client));
    check_ok(proxy_refuse(b->proxy, false));
    check_ok(wire_open(&w, zks_host(), proxy_port(b->proxy), SESSION_MS));
    wire_close(w);
}

PROXY_TEST(delay_holds_each_way)
{
    struct bench *b = *state;
    int64_t start_ms;

    proxy_delay_ms(b->proxy, 100);
    start_ms = net_now_ms();
    check_ok(wire_ping(b->client));
    check_num(net_now_ms() - start_ms, >=, 200);
    proxy_delay_ms(b->proxy, 0);
    lag_begin();
    check_ok(wire_ping(b->client));
    check_num(lag_end_ms(), <, 200);
}

/* --- both sides see the other's end ----------------------------------------------------------- */

PROXY_TEST(server_side_end_reaches_the_client)
{
    struct bench *b = *state;

    check_ok(wire_expire_session(zks_host(), zks_port(shared, 0), wire_session(b->client),
                                 wire_password(b->client), WAIT_MS));
    check_num(wire_ping(b->client), ==, WIRE_IO);
    check_wait(proxy_connections(b->proxy) == 0, WAIT_MS);
}

PROXY_TEST(client_side_end_reaches_the_server)
{
    struct bench *b = *state;
    struct wire *w = NULL;

    check_ok(wire_open(&w, zks_host(), proxy_port(b->proxy), SESSION_MS));
    check_num(proxy_connections(b->proxy), ==, 2);
    wire_close(w);
    check_wait(proxy_connections(b->proxy) == 1, WAIT_MS);
}

/* --- looking ---------------------------------------------------------------------------------- */

PROXY_TEST(requests_are_counted_by_type)
{
    struct bench *b = *state;

    check_num(proxy_counts(b->proxy, PROXY_CONNECT), ==, 1);
    check_num(proxy_counts(b->proxy, PROXY_ANY), ==, 0);
    check_ok(wire_watch(b->client, "/p"));
    check_ok(wire_create(b->client, "/p", "", WIRE_PERSISTENT, NULL, 0));
    check_ok(wire_ping(b->client));
    check_num(proxy_counts(b->proxy, PROXY_CREATE), ==, 1);
    check_num(proxy_counts(b->proxy, PROXY_PING), ==, 1);
    check_num(proxy_counts(b->proxy, PROXY_ANY), ==, 3);
    check_num(proxy_counts(b->proxy, PROXY_EVENT), ==, 1);
    proxy_reset_counts(b->proxy);
    check_num(proxy_counts(b->proxy, PROXY_ANY), ==, 0);
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
    struct bench *b = *state;
    int calls = 0;

    proxy_set_hook(b->proxy, deny_create, &calls);
    check_num(wire_create(b->client, "/p", "", WIRE_PERSISTENT, NULL, 0), ==, WIRE_NOAUTH);
    check_num(calls, ==, 1);
    proxy_set_hook(b->proxy, shorten_exists, NULL);
    check_num(wire_exists(b->client, "/p", NULL), ==, WIRE_IO);
    proxy_set_hook(b->proxy, NULL, NULL);
    check_ok(wire_exists(b->client, "/p", NULL));
}
