/* SPDX-License-Identifier: Apache-2.0 */
/* A session that nobody can follow, a link that is told late, and a shorter session than was asked for. Texts have the rest
 * (sessions.txt), fault/outstanding ends sessions at each request of each call, fault/flap under load. */
#include "fault.h"

#define SESSION_MS lag_session_ms(5000)
#define GRANTED_MS 2000
#define WISH_MS 30000

static void cut_off_when_expired(struct zkl_client *client, enum zkl_client_state state, void *arg)
{
    (void)client;
    if (state == ZKL_CLIENT_EXPIRED)
        proxy_hole(arg, PROXY_BOTH);
}

/* That one can't begin, as its connection is cut off in the moment of the news. Modes: F7. */
WORLD_TEST(loss_is_known_without_a_next_session)
{
    struct proxy *proxy = world_proxy();
    struct zkl_client_options options = fault_client_options(proxy_address(proxy), SESSION_MS);

    options.state_fn = cut_off_when_expired;
    options.state_arg = proxy;
    struct zkl_client *client = world_client_with(&options);
    struct zkl_mutex *mutex = world_mutex(client, "/session");
    check_ok(zkl_mutex_lock(mutex));
    fault_expire(client, 0);
    check_wait(zkl_mutex_token(mutex) == 0, WAIT_MS);
    check_num(zkl_client_get_state(client), ==, ZKL_CLIENT_CONNECTING);
    check_num(zkl_mutex_window_ms(mutex), ==, 0);
    check_num(zkl_mutex_unlock(mutex), ==, ZKL_ELOST);
    proxy_cut(proxy);
    proxy_heal(proxy);
}

/* --- a link that is told late ----------------------------------------------------------------- */

/* A session's second link does not count as its first, which would leave out the wait of D, where the first one was over
 * before libzookeeper's report of it was heard: its completion thread waits for the client's mutex while a link comes and
 * goes. Modes: F61. */
WORLD_TEST(a_first_link_told_late_was_one)
{
    struct proxy *proxy = world_proxy();
    struct zkl_client *client = world_through(proxy, 60000);
    struct zkl_driver *d = client->driver;
    struct zkl_handle *before = locked(d, d->current), *h = NULL;
    fault_lose_link(client, proxy);
    zkl_driver_lock(d);
    zkl_handle_bury(d, &d->current); /* as for a new session */
    d->open_current = true;
    zkl_driver_kick(d);
    zkl_driver_unlock(d);
    check_wait((h = locked(d, d->current)) != NULL && h != before && locked(d, h->ready), WAIT_MS);

    zkl_driver_lock(d);
    check_ok(proxy_refuse(proxy, false));
    check_wait(zoo_state(h->zh) == ZOO_CONNECTED_STATE, WAIT_MS);
    lose_link(proxy);
    check_wait(zoo_state(h->zh) != ZOO_CONNECTED_STATE, WAIT_MS);
    zkl_driver_unlock(d);
    check_ok(proxy_refuse(proxy, false));
    check_wait(fault_connected(client), WAIT_MS);
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
