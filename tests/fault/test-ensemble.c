/* SPDX-License-Identifier: Apache-2.0 */
/* Three servers, of which some stand still or die: what is proved, which clients hold, and in what
 * order. */
#include "contenders.h"

#define SESSION_MS 2000
#define LONG_MS 10000
#define NODES 3

static int follower(int leader, int nth)
{
    return (leader + 1 + nth) % NODES;
}

static int leader_now(void)
{
    int leader = zks_wait_leader(server, ZKS_READY_MS);

    check_num(leader, >=, 0);
    return leader;
}

static struct wire *wire_at(int node)
{
    struct wire *w = NULL;

    check_ok(wire_open(&w, zks_host(), zks_port(server, (size_t)node), QUIET_MS));
    return w;
}

/* All serve, in this test's own time and not in that of the next. */
static int tear_down(void **state)
{
    for (int i = 0; i < NODES; i++) {
        zks_resume_node(server, (size_t)i);
        zks_start_node(server, (size_t)i);
    }
    int rc = zks_wait_ready(server, ZKS_READY_MS);
    world_end(state);
    return rc;
}

/* Of a client that knows one node only, behind its proxy. */
static struct holder *holder_at(int node, const char *path, int session_ms, struct proxy **proxy)
{
    *proxy = world_proxy_to(server, (size_t)node);
    return world_holder(world_through(*proxy, session_ms), path);
}

/* Followers that come back may still elect another leader; then an unlock may get no answer. */
static void check_unlocked(int rc)
{
    check_true(rc == 0 || is_unanswered(rc));
}

/* The hold goes on with its token, or it is lost: the callback reports that once, and unlock says
 * so. */
static void check_kept_or_lost(struct holder *h)
{
    check_wait(h->told.lost > 0 || zkl_mutex_window_ms(h->mutex) > 0, 2 * WAIT_MS);
    if (h->told.lost == 0) {
        check_wait(h->told.lost > 0 || h->told.held == h->told.suspect, WAIT_MS);
        check_num(zkl_mutex_token(h->mutex), ==, h->told.lost ? 0 : h->token);
    }
    int rc = zkl_mutex_unlock(h->mutex);
    if (h->told.lost > 0)
        check_num(rc, ==, ZKL_ELOST);
    else
        check_unlocked(rc);
    check_num(h->told.lost, <=, 1);
}

/* --- a leader without followers --------------------------------------------------------------- */

#define ENSEMBLE_TEST(name) WORLD_TEST_IN(name, NULL, tear_down)

/* A leader that is cut off from its followers proves nothing, though it goes on answering sync and
 * reads: the window of a hold through it runs out. When the followers are back the hold goes on, or the
 * callback reports it lost. A second thread of the client waits, so that the leader answers keepalives
 * too. Without them the link would be silent behind the heartbeat, and libzookeeper would give it up at
 * two thirds of the timeout, before the window's end. */
ENSEMBLE_TEST(leader_without_followers_proves_nothing)
{
    const char *path = "/cut-leader";
    struct actor *a = world_actor();
    struct proxy *proxy;

    for (int i = 0; i < test_length(10, 1); i++) {
        unsigned long mark = world_mark();
        int leader = leader_now();
        struct wire *w = wire_at(leader);
        struct holder *h = holder_at(leader, path, SESSION_MS, &proxy);
        act_begin(a, act_lock, h->mutex, NULL);
        check_wait(fault_children(w, path) == 2, WAIT_MS);
        /* That of a new session would outlive the leader, which hangs up in the end. */
        check_wait(zkl_mutex_window_ms(h->mutex) < SESSION_MS * 5 / 8, WAIT_MS);
        check_ok(zks_pause_node(server, follower(leader, 0)));
        check_ok(zks_pause_node(server, follower(leader, 1)));
        int64_t start_ms = net_now_ms();
        check_ok(wire_sync(w, "/")); /* answered, by a leader without followers */
        bool is_held = zkl_mutex_still_held(h->mutex, 1) == 1;
        check_true(is_held || net_now_ms() - start_ms > SESSION_MS / 4 || lag_is_slow());
        fault_check_window_ends(h->mutex, start_ms + SESSION_MS * 15 / 16);
        check_ok(wire_exists(w, path, NULL));
        check_wait(h->told.suspect > 0, WAIT_MS);
        if (fault_metrics(h->client).disconnections ==
            0) /* a busy machine may be too late for that */
            check_num(h->told.suspect_reason, ==, ZKL_REASON_WINDOW);
        check_num(h->told.lost, ==, 0);
        check_ok(wire_exists(w, path, NULL));
        check_ok(zks_resume_node(server, follower(leader, 0)));
        check_ok(zks_resume_node(server, follower(leader, 1)));
        check_kept_or_lost(h);
        check_ok(act_end(a, WAIT_MS));
        check_unlocked(act_do(a, act_unlock, h->mutex, NULL));
        world_clear_since(mark);
        wire_abandon(w);
        check_ok(zks_wait_ready(server, ZKS_READY_MS));
    }
}

/* --- a holder that nobody hears --------------------------------------------------------------- */

/* The holder's window is empty before a rival on another node has the lock. */
static void check_taken_over(struct holder *h, int rival_node, const char *path)
{
    struct zkl_client *client = world_open(zks_address(server, (size_t)rival_node), LONG_MS);
    struct zkl_mutex *rival = world_mutex(client, path);
    struct actor *a = world_actor();
    int64_t end_ms = net_now_ms() + 2 * WAIT_MS;

    act_begin(a, act_lock, rival, NULL);
    while (act_busy(a)) {
        bool held = zkl_mutex_still_held(h->mutex, 1) == 1;
        check_true(!held || act_busy(a)); /* the look at the hold came before that at the rival */
        check_num(net_now_ms(), <, end_ms);
        net_nap_ms(1);
    }
    check_num(zkl_mutex_still_held(h->mutex, 0), ==, 0);
    check_ok(act_end(a, WAIT_MS));
    check_num(actor_token(a), >, h->token);
    check_num(act_do(a, act_window, rival, NULL), >, 0);
    check_ok(act_do(a, act_unlock, rival, NULL));
}

/* A client of a follower that stands still has an empty window before another client gets the lock.
 * When it is connected again, its callback reports the loss once. Modes: F8. */
ENSEMBLE_TEST(client_of_a_stopped_follower_is_unproved_in_time)
{
    struct proxy *proxy;

    for (int i = 0; i < test_length(20, 2); i++) {
        unsigned long mark = world_mark();
        int leader = leader_now();
        struct holder *h = holder_at(follower(leader, 0), "/cut-follower", SESSION_MS, &proxy);
        net_nap_ms(i * 97 % 400); /* somewhere between two heartbeats */
        check_ok(zks_pause_node(server, follower(leader, 0)));
        check_taken_over(h, follower(leader, 1), "/cut-follower");
        check_ok(zks_resume_node(server, follower(leader, 0)));
        check_wait(h->told.lost == 1, 2 * WAIT_MS);
        check_num(zkl_mutex_unlock(h->mutex), ==, ZKL_ELOST);
        world_clear_since(mark);
        check_ok(zks_wait_ready(server, ZKS_READY_MS));
    }
}

/* The same for a client of a follower whose leader and fellow stand still; a rival gets the lock only
 * once they serve again, and the client is cut off. Modes: F8. */
ENSEMBLE_TEST(client_of_a_lonely_follower_is_unproved_in_time)
{
    struct proxy *proxy;
    int leader = leader_now();
    int lonely = follower(leader, 0), fellow = follower(leader, 1);
    struct wire *w = wire_at(lonely);
    struct holder *h = holder_at(lonely, "/lonely", SESSION_MS, &proxy);
    check_ok(zks_pause_node(server, fellow));
    check_ok(zks_pause_node(server, leader));
    int64_t start_ms = net_now_ms();
    check_ok(wire_exists(w, "/lonely", NULL)); /* it still answers reads */
    fault_check_window_ends(h->mutex, start_ms + SESSION_MS * 15 / 16);
    check_num(h->told.lost, ==, 0);
    lose_link(proxy);
    check_ok(zks_resume_node(server, fellow));
    check_ok(zks_resume_node(server, leader));
    check_ok(zks_wait_ready(server, ZKS_READY_MS));
    check_taken_over(h, fellow, "/lonely");
    check_ok(proxy_refuse(proxy, false));
    check_wait(h->told.lost == 1, 2 * WAIT_MS);
    check_num(zkl_mutex_unlock(h->mutex), ==, ZKL_ELOST);
    wire_abandon(w);
}

/* --- failover --------------------------------------------------------------------------------- */

/* Later tokens are larger. Modes: F58, F65. */
ENSEMBLE_TEST(failover_keeps_hold_and_place)
{
    struct zkl_client *client = world_direct(LONG_MS);
    struct zkl_client *other = world_direct(LONG_MS);
    struct zkl_mutex *mutex = world_mutex(client, "/failover");
    struct zkl_mutex *wanted = world_mutex(other, "/failover");
    struct actor *a = world_actor();
    static struct told told;
    uint64_t last = 0;

    check_ok(zkl_mutex_set_callback(mutex, told_fn, &told));
    for (int i = 0; i < test_length(20, 2); i++) {
        int leader = leader_now();
        check_ok(zkl_mutex_lock(mutex));
        uint64_t token = zkl_mutex_token(mutex);
        check_true(token > last);
        act_begin(a, act_lock, wanted, NULL);
        struct wire *w = wire_at(follower(leader, 0));
        check_wait(wire_sync(w, "/") == 0 && fault_children(w, "/failover") == 2, WAIT_MS);
        wire_close(w);
        int64_t session = fault_session(client);
        check_ok(zks_kill_node(server, (size_t)leader));
        check_true(leader_now() != leader);
        check_wait(told.held == told.suspect && zkl_mutex_window_ms(mutex) > LONG_MS / 3, WAIT_MS);
        check_num(fault_session(client), ==, session);
        check_num(zkl_mutex_token(mutex), ==, token);
        check_true(act_busy(a));
        check_ok(zkl_mutex_unlock(mutex));
        check_ok(act_end(a, WAIT_MS));
        last = actor_token(a);
        check_true(last > token);
        check_ok(act_do(a, act_unlock, wanted, NULL));
        check_ok(zks_start_node(server, (size_t)leader));
        check_ok(zks_wait_ready(server, ZKS_READY_MS));
    }
    check_num(told.lost, ==, 0);
}

/* The client has the lock over another server; nobody would ever delete the node. Modes: F2, F58.
 * */
ENSEMBLE_TEST(a_create_that_comes_late_makes_nothing)
{
    const char *path = "/late";
    struct proxy *proxies[2] = {NULL, NULL};
    struct actor *a = world_actor();
    char servers[64];
    int late = 0;

    for (int tries = 0; late < test_length(20, 2); tries++) {
        int64_t before = 0, after = 0;
        unsigned long mark = world_mark();
        check_num(tries, <, 100);
        for (int n = 0; n < 2; n++)
            proxies[n] = world_proxy_to(server, n);
        snprintf(servers, sizeof servers, "%s,%s", proxy_address(proxies[0]),
                 proxy_address(proxies[1]));
        struct wire *w = world_wire_to(server, 2, WIRE_LASTING_MS);
        int rc = wire_create(w, path, "", WIRE_PERSISTENT, NULL, 0);
        check_true(rc == 0 || rc == WIRE_NODEEXISTS);
        struct zkl_client *client = world_open(servers, lag_is_slow() ? LONG_MS : SESSION_MS);
        struct zkl_mutex *mutex = world_mutex(client, path);
        int old = proxy_connections(proxies[0]) > 0 ? 0 : 1;
        check_ok(proxy_refuse(proxies[old], true)); /* the link that it has stays */
        check_ok(proxy_hold_request(proxies[old], PROXY_CREATE2, 1));
        act_begin(a, act_lock, mutex, NULL);
        check_ok(proxy_wait_held(proxies[old], WAIT_MS));
        check_ok(act_end(a, WAIT_MS));
        int nodes = fault_children(w, path);
        check_ok(flw_requests_received(zks_host(), zks_port(server, (size_t)old), &before));
        /* A server hangs up on who says nothing for a session timeout, as on a busy machine: then none comes. */
        bool hung_up = proxy_connections(proxies[old]) == 0;
        proxy_release(proxies[old]);
        bool came =
            !hung_up && wait_until(flw_requests_received(zks_host(), zks_port(server, (size_t)old),
                                                         &after) == 0 &&
                                       after - ++before > 0,
                                   5000);
        check_ok(wire_sync(w, "/"));
        net_nap_ms(100); /* would do for a create */
        int later = fault_children(w, path);
        rc = act_do(a, act_unlock, mutex, NULL);
        if (rc == 0 || !lag_is_slow()) { /* else the session may be another one */
            check_ok(rc);
            check_num(nodes, ==, 1);
            check_num(later, ==, 1);
            late += came;
        }
        fault_check_rest(client, w, path, WAIT_MS);
        world_clear_since(mark);
    }
}

/* --- many clients ----------------------------------------------------------------------------- */

/* One after the other, for less and for more than the sessions of the three clients; the others go
 * on meanwhile, and all of them afterwards. Modes: F58. */
ENSEMBLE_TEST(followers_stand_still_under_load)
{
    struct turnstile *w = turnstile_new();
    struct contenders at[NODES];

    for (int i = 0; i < NODES; i++) {
        at[i] = (struct contenders){
            w, zks_address(server, (size_t)i), "/load", SESSION_MS, INT32_MAX, true};
        contenders_begin(&at[i], i + 1, 1);
    }
    w->go = true;
    for (int i = 0; i < test_length(30, 4); i++) {
        int node = follower(leader_now(), i % 2);
        long before = turnstile_sum(w);
        check_ok(zks_pause_node(server, node));
        int64_t start_ms = net_now_ms();
        check_wait(turnstile_sum(w) >= before + 20, 2 * WAIT_MS);
        check_wait(net_now_ms() > start_ms + (i % 4 < 2 ? 300 : SESSION_MS + 500), WAIT_MS);
        long own = w->entries[node + 1];
        check_ok(zks_resume_node(server, node));
        check_wait(w->entries[node + 1] >= own + 5, 2 * WAIT_MS);
    }
    w->stop = true;
    check_wait(w->done == NODES, WAIT_MS);
    turnstile_end(w);
}

FAULT_MAIN(options.nodes = NODES)
