/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes that somebody else deletes, of which the client hears little or nothing. */
#include "cluster.h"

/* --- the scene: a holder, a waiter behind a proxy, and one more behind it ------------------------ */

struct scene {
    struct locker held, waiter, third; /* the holder is this thread */
    struct proxy *proxy;
    char held_node[128], waiter_node[128];
};

/* Until the client watches the predecessor and its own node. */
static void begin_waiting(struct locker *l, int n)
{
    locker_queues(l, n);
    check_wait(node_watches(child_of(l->path, (size_t)n - 1)) == 1 &&
                   node_watches(child_of(l->path, (size_t)n - 2)) >= 1,
               WAIT_MS);
}

static struct scene *scene_begin(const char *name)
{
    struct scene *s = world_alloc(sizeof *s);

    s->held = locker_of(cluster_path(name), NULL);
    s->waiter = locker_behind(s->held.path, NULL, SESSION_MS);
    s->third = locker_of(s->held.path, NULL);
    s->proxy = s->waiter.proxy;
    check_ok(zkl_mutex_lock(s->held.mutex));
    begin_waiting(&s->waiter, 2);
    begin_waiting(&s->third, 3);
    cluster_child(s->held.path, 0, s->held_node, sizeof s->held_node);
    cluster_child(s->held.path, 1, s->waiter_node, sizeof s->waiter_node);
    return s;
}

/* The third one holds. The waiter is behind it, and holds then by a node that is there and is not the one that was
 * deleted. */
static void scene_end(struct scene *s, int within_ms)
{
    struct wire_stat stat;

    check_wait(cluster_children(s->held.path) == 2, within_ms);
    check_true(!actor_is_done(s->waiter.actor));
    proxy_set_hook(s->proxy, NULL, NULL);
    check_ok(actor_do(s->third.actor, do_unlock, s->third.mutex));
    check_ok(actor_result(s->waiter.actor));
    const char *node = child_of(s->held.path, 0);
    check_ok(wire_exists(raw, node, &stat));
    check_true(strcmp(node, s->waiter_node) != 0);
    check_num(s->waiter.take.grant.token, ==, stat.czxid);
    check_ok(actor_do(s->waiter.actor, do_unlock, s->waiter.mutex));
    check_num(zkl_mutex_unlock(s->held.mutex), ==, ZKL_ELOST);
    check_wait(cluster_children(s->held.path) == 0, WAIT_MS);
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
    struct scene *s = scene_begin("unlinked");
    char start[128];

    snprintf(start, sizeof start, "%s", cluster_at(s->held.path));
    proxy_set_hook(s->proxy, mute, start);
    lose_link(s->proxy);
    check_ok(wire_delete(raw, s->waiter_node, -1));
    check_ok(wire_delete(raw, s->held_node, -1));
    check_ok(actor_result(s->third.actor));
    check_ok(proxy_refuse(s->proxy, false));
    scene_end(s, SESSION_MS / 8); /* a heartbeat would find the deletion too, but later */
}

/* Goal: the waiter does not get the lock although it hears of its predecessor only. Method: a write
 * to the predecessor makes the waiter list. The proxy holds that list back until both nodes are
 * deleted, and mutes the event of the waiter's own node. The waiter must learn the deletion from
 * the list. */
WORLD_TEST(a_waiter_that_hears_only_of_its_predecessor_queues_again)
{
    struct scene *s = scene_begin("late");

    proxy_set_hook(s->proxy, mute, s->waiter_node);
    check_ok(proxy_hold_request(s->proxy, PROXY_CHILDREN, 1));
    check_ok(wire_set(raw, s->held_node, "written", -1));
    check_ok(proxy_wait_held(s->proxy, WAIT_MS));
    check_ok(wire_delete(raw, s->held_node, -1));
    int64_t events = proxy_counts(s->proxy, PROXY_EVENT);
    check_ok(wire_delete(raw, s->waiter_node, -1));
    check_ok(proxy_wait_count(s->proxy, PROXY_EVENT, events + 1, WAIT_MS));
    proxy_release(s->proxy);
    check_ok(actor_result(s->third.actor));
    scene_end(s, WAIT_MS);
}

/* --- a holder's node -------------------------------------------------------------------------- */

/* Modes: F12, F34b. */
WORLD_TEST(a_holder_without_one_knows_by_the_next_heartbeat)
{
    const int session_ms = 4000;
    struct locker l = locker_behind(cluster_path("untold"), NULL, session_ms);

    check_ok(zkl_mutex_lock(l.mutex));
    check_ok(zkl_mutex_lock(l.mutex));
    const char *node = node_of(l.mutex);
    check_num(node_watches(node), ==, 0);
    lag_begin();
    check_ok(wire_delete(raw, node, -1));
    check_wait(zkl_mutex_still_held(l.mutex, 0) == 0, WAIT_MS);
    /* The window alone would last three quarters. */
    check_num(lag_end_ms(), <, session_ms / 4 + 500);
    check_num(zkl_mutex_hold_count(l.mutex), ==, 2);
    check_num(zkl_mutex_unlock(l.mutex), ==, ZKL_ELOST);
    check_num(zkl_mutex_unlock(l.mutex), ==, ZKL_ELOST);
}

/* Goal: the heartbeat that fails for one goes on for the others. */
WORLD_TEST(only_the_hold_is_lost_whose_node_was_deleted)
{
    enum { N = 10 };
    struct proxy *proxy;
    struct zkl_client *client = world_client_through(&proxy, 2000);
    struct zkl_mutex *mutexes[N];

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
