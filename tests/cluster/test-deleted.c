/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes that somebody else deletes, of which the client hears little or nothing. */
#include "cluster.h"

#include "nodes.h"

#include <stdio.h>
#include <string.h>

/* --- the scene: a holder, a waiter, and one more behind it ------------------------------------ */

struct scene {
    const char *path;
    struct zkl_client *clients[3];
    struct zkl_mutex *held, *mutexes[2]; /* the holder is this thread */
    struct actor *waiter, *third;
    char held_node[128], waiter_node[128];
};

/* Begin a lock call that waits, on a client at this address. Returns once the client watches the
 * predecessor and its own node. */
static void begin_waiting(struct scene *s, int which, const char *servers, struct actor *actor)
{
    struct zkl_client_options options = cluster_options();
    char pred[128], own[128];

    options.servers = cluster_servers(servers);
    s->clients[which] = world_client_with(&options);
    s->mutexes[which] = world_mutex(s->clients[which], s->path);
    actor_begin(actor, do_lock, s->mutexes[which]);
    check_wait(cluster_children(s->path) == which + 2, WAIT_MS);
    cluster_child(s->path, (size_t)which, pred, sizeof pred);
    cluster_child(s->path, (size_t)which + 1, own, sizeof own);
    check_wait(flw_watch_count(zks_host(), zks_port(server, 0), own) == 1 &&
                   flw_watch_count(zks_host(), zks_port(server, 0), pred) >= 1,
               WAIT_MS);
}

/* The waiter's client is at servers. */
static struct scene scene_begin(const char *name, const char *servers)
{
    struct scene s = {.path = cluster_path(name), .waiter = world_actor(), .third = world_actor()};

    s.clients[2] = world_client();
    s.held = world_mutex(s.clients[2], s.path);
    check_ok(zkl_mutex_lock(s.held));
    begin_waiting(&s, 0, servers, s.waiter);
    cluster_child(s.path, 0, s.held_node, sizeof s.held_node);
    cluster_child(s.path, 1, s.waiter_node, sizeof s.waiter_node);
    return s;
}

static void third_begin(struct scene *s)
{
    begin_waiting(s, 1, zks_connect_string(server), s->third);
}

static void scene_end(struct scene *s)
{
    check_wait(cluster_children(s->path) == 0, WAIT_MS);
}

/* For actors: is the token that of a node that exists, and not of this one? */
struct granted {
    struct zkl_mutex *mutex;
    char node[128];
    uint64_t token;
};

static int do_look(void *arg)
{
    struct granted *granted = arg;

    granted->token = zkl_mutex_token(granted->mutex);
    return zkl_mutex_node_path(granted->mutex, granted->node, sizeof granted->node) > 0 ? 0 : -1;
}

/* The waiter holds now, by a node that is there and is not the one that was deleted. */
static void check_granted_anew(struct scene *s)
{
    struct granted granted = {.mutex = s->mutexes[0]};
    struct wire_stat stat;

    check_ok(actor_result(s->waiter));
    check_ok(actor_do(s->waiter, do_look, &granted));
    check_ok(wire_exists(raw, cluster_at(granted.node), &stat));
    check_true(strcmp(cluster_at(granted.node), s->waiter_node) != 0);
    check_num(granted.token, ==, stat.czxid);
    check_ok(actor_do(s->waiter, do_unlock, s->mutexes[0]));
}

/* --- a waiter's node -------------------------------------------------------------------------- */

/* A watch event is: xid -1, zxid, error, then type, state, and the path behind its length. The hook
 * changes the path of an event if it begins with start, so that the client does not hear of it. */
static size_t mute(enum proxy_dir dir, int op, unsigned char *frame, size_t size, void *start)
{
    const size_t head = 4 + 8 + 4 + 4 + 4 + 4, length = strlen(start);

    if (dir == PROXY_TO_CLIENT && op == PROXY_EVENT && size >= head + length &&
        memcmp(frame + head, start, length) == 0)
        frame[size - 1] = '!';
    return size;
}

/* Goal: the same for a waiter whose link is down, so that it hears nothing of the deletion. It
 * hears nothing after that either, as the proxy mutes all events. The client lists when the link is
 * back. Modes: F11. */
WORLD_TEST(an_unlinked_waiter_queues_again)
{
    char start[128];

    struct proxy *proxy = world_proxy();
    struct scene s = scene_begin("unlinked", proxy_address(proxy));
    third_begin(&s);
    snprintf(start, sizeof start, "%s", cluster_at(s.path));
    proxy_set_hook(proxy, mute, start);
    check_ok(proxy_refuse(proxy, true));
    proxy_cut(proxy);
    check_ok(wire_delete(raw, s.waiter_node, -1));
    check_ok(wire_delete(raw, s.held_node, -1));
    check_ok(actor_result(s.third));
    check_ok(proxy_refuse(proxy, false));
    /* Immediately: a heartbeat would find the deletion too, but later. */
    check_wait(cluster_children(s.path) == 2, SESSION_MS / 8);
    check_true(!actor_is_done(s.waiter));
    proxy_set_hook(proxy, NULL, NULL);
    check_ok(actor_do(s.third, do_unlock, s.mutexes[1]));
    check_granted_anew(&s);
    check_num(zkl_mutex_unlock(s.held), ==, ZKL_ELOST);
    scene_end(&s);
}

/* Goal: the waiter does not get the lock although it hears of its predecessor only. Method: a write
 * to the predecessor makes the waiter list. The proxy holds that list back until both nodes are
 * deleted, and mutes the event of the waiter's own node. The waiter must learn the deletion from
 * the list. */
WORLD_TEST(a_waiter_that_hears_only_of_its_predecessor_queues_again)
{
    struct proxy *proxy = world_proxy();
    struct scene s = scene_begin("late", proxy_address(proxy));
    third_begin(&s);
    proxy_set_hook(proxy, mute, s.waiter_node);
    check_ok(proxy_hold_request(proxy, PROXY_CHILDREN, 1));
    check_ok(wire_set(raw, s.held_node, "written", -1));
    check_ok(proxy_wait_held(proxy, WAIT_MS));
    check_ok(wire_delete(raw, s.held_node, -1));
    int64_t events = proxy_counts(proxy, PROXY_EVENT);
    check_ok(wire_delete(raw, s.waiter_node, -1));
    check_ok(proxy_wait_count(proxy, PROXY_EVENT, events + 1, WAIT_MS));
    proxy_release(proxy);
    check_ok(actor_result(s.third));
    check_wait(cluster_children(s.path) == 2, WAIT_MS);
    check_true(!actor_is_done(s.waiter));
    proxy_set_hook(proxy, NULL, NULL);
    check_ok(actor_do(s.third, do_unlock, s.mutexes[1]));
    check_granted_anew(&s);
    check_num(zkl_mutex_unlock(s.held), ==, ZKL_ELOST);
    scene_end(&s);
}

/* --- a holder's node -------------------------------------------------------------------------- */

/* All that a thread can ask about a hold that is lost, and its way back. */
static void check_lost_and_lock_again(struct zkl_mutex *mutex)
{
    check_num(zkl_mutex_still_held(mutex, 0), ==, 0);
    check_num(zkl_mutex_token(mutex), ==, 0);
    check_num(zkl_mutex_window_ms(mutex), ==, 0);
    check_num(zkl_mutex_hold_count(mutex), ==, 2);
    check_num(zkl_mutex_lock(mutex), ==, ZKL_ELOST);
    check_num(zkl_mutex_trylock(mutex), ==, ZKL_ELOST);
    check_num(zkl_mutex_unlock(mutex), ==, ZKL_ELOST);
    check_num(zkl_mutex_lock(mutex), ==, ZKL_ELOST);
    check_num(zkl_mutex_unlock(mutex), ==, ZKL_ELOST);
    check_num(zkl_mutex_unlock(mutex), ==, ZKL_ENOTOWNER);
    check_ok(zkl_mutex_lock(mutex));
    check_num(zkl_mutex_still_held(mutex, 0), ==, 1);
    check_ok(zkl_mutex_unlock(mutex));
}

/* Goal: without one, the holder knows after the next heartbeat, a quarter of the session timeout
 * later. Modes: F12, F34b. */
WORLD_TEST(a_holder_without_one_knows_by_the_next_heartbeat)
{
    const int session_ms = 4000;
    const char *path = cluster_path("untold");
    struct zkl_client_options options = cluster_options();

    options.session_timeout_ms = session_ms;
    struct zkl_client *client = world_client_with(&options);
    struct zkl_mutex *mutex = world_mutex(client, path);
    check_ok(zkl_mutex_lock(mutex));
    check_ok(zkl_mutex_lock(mutex));
    const char *node = node_of(mutex);
    check_num(flw_watch_count(zks_host(), zks_port(server, 0), node), ==, 0);
    lag_begin();
    check_ok(wire_delete(raw, node, -1));
    check_wait(zkl_mutex_still_held(mutex, 0) == 0, WAIT_MS);
    /* The window alone would last three quarters. */
    check_num(lag_end_ms(), <, session_ms / 4 + 500);
    check_lost_and_lock_again(mutex);
}

/* Goal: of many holds of one client exactly the one is lost whose node was deleted: the heartbeat
 * that fails for one goes on for the others. */
WORLD_TEST(only_the_hold_is_lost_whose_node_was_deleted)
{
    enum { N = 10 };
    struct zkl_client_options options = cluster_options();
    struct zkl_mutex *mutexes[N];

    options.session_timeout_ms = 2000;
    struct zkl_client *client = world_client_with(&options);
    for (int i = 0; i < N; i++) {
        mutexes[i] = world_mutex(client, cluster_path("one-of-many"));
        check_ok(zkl_mutex_lock(mutexes[i]));
    }
    check_ok(wire_delete(raw, node_of(mutexes[5]), -1));
    check_wait(zkl_mutex_token(mutexes[5]) == 0, WAIT_MS);
    for (int i = 0; i < N; i++) {
        check_wait(i == 5 || zkl_mutex_still_held(mutexes[i], 1000) == 1, WAIT_MS);
        check_num(zkl_mutex_unlock(mutexes[i]), ==, i == 5 ? ZKL_ELOST : 0);
        world_drop(mutexes[i]);
    }
}
