/* SPDX-License-Identifier: Apache-2.0 */
/* What a server makes of a session: another one than the client comes back with, while the nodes of
 * that one are still there, and a shorter one than was asked for; and sessions that somebody else ends at chosen moments
 * (fault/outstanding ends them at each request of each call, fault/flap under load). */
#include "bench.h"
#include "bytes.h"

#define SESSION_MS 60000 /* the client deletes a lost hold's node once that one's window is over */
#define GRANTED_MS 2000
#define WISH_MS 30000

static const char *const path = "/session/m";

/* --- another session than before -------------------------------------------------------------- */

/* The session that a client came back with. */
struct former {
    int64_t id;
    char password[WIRE_PASSWORD];
    atomic_int strikes;
};

/* Runs in the proxy. A connect request is: protocol version, zxid, timeout, session id, length of
 * the password, password. With id 0 it asks for a new session, as if the server knew nothing of the
 * old one. */
static size_t forget_session(enum proxy_dir dir, int op, unsigned char *frame, size_t size,
                             void *arg)
{
    const size_t id = 4 + 8 + 4, password = id + 8 + 4;
    struct former *former = arg;

    if (dir == PROXY_TO_SERVER && op == PROXY_CONNECT && size >= password + WIRE_PASSWORD &&
        bytes_get64(frame + id) != 0) {
        former->id = bytes_get64(frame + id);
        memcpy(former->password, frame + password, WIRE_PASSWORD);
        bytes_put64(frame + id, 0);
        former->strikes++;
    }
    return size;
}

/* The client has another session by now; the former one is kept alive, for as long as the test wants
 * its nodes to be there. */
static struct wire *keep_alive(struct bench *b, const struct former *former)
{
    struct wire *kept = NULL;

    check_wait(former->strikes == 1, WAIT_MS);
    proxy_set_hook(b->proxy, NULL, NULL);
    check_ok(wire_reopen(&kept, zks_host(), zks_port(server, 0), SESSION_MS, former->id,
                         former->password));
    return kept;
}

/* The call returns with a node of the session that the client has now, which is the only one. */
static void check_granted(struct bench *b, struct actor *a, int64_t former_id)
{
    struct wire_stat stat;
    char node[700];

    check_ok(act_end(a, WAIT_MS));
    fault_only_child(b->wire, path, node, sizeof node, &stat);
    check_num(stat.ephemeral_owner, ==, fault_session(b->client));
    check_true(fault_session(b->client) != former_id);
    check_num(actor_token(a), ==, stat.czxid);
    check_ok(act_do(a, act_unlock, b->mutex, NULL));
    fault_check_rest(b->client, b->wire, path, WAIT_MS);
}

/* The call waits behind the node of the former session, and returns when that session ends. */
static void check_granted_after(struct bench *b, struct actor *a, struct wire *former)
{
    int64_t former_id = wire_session(former);

    check_wait(wire_ping(former) == 0 && fault_children(b->wire, path) == 2, WAIT_MS);
    for (int i = 0; i < 20; i++) { /* would do for a wrong grant */
        check_ok(wire_ping(former));
        net_nap_ms(10);
    }
    check_true(act_busy(a));
    wire_close(former);
    check_granted(b, a, former_id);
}

#define SESSION_TEST(name)                                                                         \
    BENCH_TEST_OF(name, bench_make_path(bench_begin(path, SESSION_MS, SESSION_MS)))

/* A server silently gives it. The next lock waits for the node of the session before, though that
 * looks like its own. Modes: F5, F60. */
SESSION_TEST(another_session_on_reconnect_ends_the_hold)
{
    struct actor *a = world_actor();

    check_ok(zkl_mutex_set_callback(b->mutex, told_fn, &b->told));
    for (int i = 1; i <= test_length(30, 3); i++) {
        struct former former = {0};
        check_ok(act_do(a, act_lock, b->mutex, NULL));
        proxy_set_hook(b->proxy, forget_session, &former);
        proxy_cut(b->proxy);
        struct wire *kept = keep_alive(b, &former);
        check_wait(wire_ping(kept) == 0 && b->told.lost == i, WAIT_MS);
        check_num(b->told.reason, ==, ZKL_REASON_EXPIRED);
        check_num(act_do(a, act_window, b->mutex, NULL), ==, 0);
        check_num(fault_children(b->wire, path), ==, 1);
        check_num(act_do(a, act_unlock, b->mutex, NULL), ==, ZKL_ELOST);
        act_begin(a, act_lock, b->mutex, NULL);
        check_granted_after(b, a, kept);
        check_num(b->told.lost, ==, i);
    }
}

/* The server carries the create out and its answer is lost; the client reconnects, and has a new
 * session. The list has the node with its GUID, but that belongs to the session before. The client must
 * not adopt it (CURATOR-498, CURATOR-604): it deletes it, as no hold is in it, and does not wait for the
 * end of that session. Each client has then learned to do without create2. Modes: F4, F5. */
SESSION_TEST(a_node_of_the_session_before_is_not_granted)
{
    struct actor *a = world_actor();
    struct wire_stat stat;
    char node[700];

    for (int i = 0; i < test_length(30, 3); i++) {
        struct former former = {0};
        check_ok(proxy_refuse(b->proxy, true));
        proxy_set_hook(b->proxy, forget_session, &former);
        check_ok(proxy_drop_reply(b->proxy, PROXY_CREATE2, 1, PROXY_THEN_CUT));
        act_begin(a, act_lock, b->mutex, NULL);
        check_ok(proxy_wait_dropped(b->proxy, WAIT_MS));
        fault_only_child(b->wire, path, node, sizeof node, &stat);
        check_ok(proxy_refuse(b->proxy, false));
        struct wire *kept = keep_alive(b, &former);
        check_num(stat.ephemeral_owner, ==, wire_session(kept));
        check_granted(b, a, wire_session(kept));
        check_ok(wire_ping(kept));
        wire_close(kept);
        world_drop(b->mutex);
        world_drop(b->client);
        b->client = world_through(b->proxy, SESSION_MS);
        b->mutex = world_mutex(b->client, path);
    }
}

/* --- a session that is ended at a chosen moment -------------------------------------------------- */

#define EXPIRY_MS lag_session_ms(5000)
#define EXPIRY_TEST(name) BENCH_TEST(name, path, EXPIRY_MS, EXPIRY_MS)

static void cut_off_when_expired(struct zkl_client *client, enum zkl_client_state state, void *arg)
{
    (void)client;
    if (state == ZKL_CLIENT_EXPIRED)
        proxy_hole(arg, PROXY_BOTH);
}

/* That one can't begin, as its connection is cut off in the moment of the news. Modes: F7. */
EXPIRY_TEST(loss_is_known_without_a_next_session)
{
    struct zkl_client_options options = fault_client_options(proxy_address(b->proxy), EXPIRY_MS);

    options.state_fn = cut_off_when_expired;
    options.state_arg = b->proxy;
    struct zkl_client *client = world_client_with(&options);
    struct zkl_mutex *mutex = world_mutex(client, path);
    check_ok(zkl_mutex_lock(mutex));
    fault_expire(client, 0);
    check_wait(zkl_mutex_token(mutex) == 0, WAIT_MS);
    check_num(zkl_client_get_state(client), ==, ZKL_CLIENT_CONNECTING);
    check_num(zkl_mutex_window_ms(mutex), ==, 0);
    check_num(zkl_mutex_unlock(mutex), ==, ZKL_ELOST);
    proxy_cut(b->proxy);
    proxy_heal(b->proxy);
}

/* --- a link that is told late ----------------------------------------------------------------- */

/* A session's second link does not count as its first, which would leave out the wait of D, where the first one was over
 * before libzookeeper's report of it was heard: its completion thread waits for the client's mutex while a link comes and
 * goes. Modes: F61. */
SESSION_TEST(a_first_link_told_late_was_one)
{
    struct zkl_driver *d = b->client->driver;

    struct zkl_handle *before = locked(d, d->current), *h = NULL;
    fault_lose_link(b->client, b->proxy);
    zkl_driver_lock(d);
    zkl_handle_bury(d, &d->current); /* as for a new session */
    d->open_current = true;
    zkl_driver_kick(d);
    zkl_driver_unlock(d);
    check_wait((h = locked(d, d->current)) != NULL && h != before && locked(d, h->ready), WAIT_MS);

    zkl_driver_lock(d);
    check_ok(proxy_refuse(b->proxy, false));
    check_wait(zoo_state(h->zh) == ZOO_CONNECTED_STATE, WAIT_MS);
    lose_link(b->proxy);
    check_wait(zoo_state(h->zh) != ZOO_CONNECTED_STATE, WAIT_MS);
    zkl_driver_unlock(d);
    check_ok(proxy_refuse(b->proxy, false));
    check_wait(fault_connected(b->client), WAIT_MS);
    zkl_driver_lock(d);
    check_true(h == d->current);
    check_num(h->links, ==, 2);
    zkl_driver_unlock(d);
}

/* --- a shorter session than was asked for ----------------------------------------------------- */

/* The client asks for 30 s, and the server grants 2 s: windows, heartbeats, and the moment from which a
 * holder counts as unproved follow the granted timeout. However busy the machine is, the end of the window
 * can't be later than fifteen sixteenths of 2 s after the server stopped. Modes: F61. */
WORLD_TEST(the_granted_timeout_counts)
{
    struct zks_options options = {.max_session_ms = GRANTED_MS};
    struct zks *own = world_server(&options);
    static struct told told;
    struct zkl_grant grant = ZKL_GRANT_INIT;

    struct proxy *proxy = world_proxy_to(own, 0);
    struct zkl_client *client = world_through(proxy, WISH_MS);
    struct zkl_mutex *mutex = world_mutex(client, "/granted");
    check_ok(zkl_mutex_set_callback(mutex, told_fn, &told));
    check_ok(zkl_mutex_acquire(mutex, NULL, &grant));
    check_num(grant.window_ms, >, 0);
    check_num(grant.window_ms, <=, GRANTED_MS * 15 / 16);

    /* With the requested timeout the first heartbeat would come after 7.5 s. */
    proxy_reset_counts(proxy);
    lag_begin();
    check_ok(proxy_wait_count(proxy, PROXY_MULTI, 3, WAIT_MS));
    check_num(lag_end_ms(), <, WISH_MS / 4);

    check_ok(zks_pause_node(own, 0));
    fault_check_window_ends(mutex, net_now_ms() + GRANTED_MS * 15 / 16);
    check_wait(told.suspect >= 1, WAIT_MS);
    check_ok(zks_resume_node(own, 0));
    check_wait(told.lost > 0 || zkl_mutex_window_ms(mutex) > 0, WAIT_MS);
    int rc = zkl_mutex_unlock(mutex);
    check_true(rc == 0 || rc == ZKL_ELOST || is_unanswered(rc));
}
