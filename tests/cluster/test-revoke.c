/* SPDX-License-Identifier: Apache-2.0 */
/* zkl_revoke: a client asks a contender to release, and waits for the end of its node. Also what
 * zkl_break has in common with it. */
#include <zklock/inspect.h>

#include "check_error.h"
#include "inspection.h"
#include "nodes.h"
#include "notes.h"

#define REVOKED "__REVOKE__"
#define MS INT64_C(1000000)

/* --- calls for actors ------------------------------------------------------------------------- */

struct revoke {
    struct zkl_client *client;
    const char *node;
    struct zkl_wait wait;
    unsigned flags;
};

static struct revoke revoke_of(struct zkl_client *client, const char *node)
{
    struct revoke r = {.client = client, .node = node, .wait = ZKL_WAIT_INIT};

    return r;
}

/* The same with a deadline from now. */
static struct revoke revoke_for(struct zkl_client *client, const char *node, int64_t ms)
{
    struct revoke r = revoke_of(client, node);

    r.wait.deadline_ns = zkl_now_ns() + ms * MS;
    return r;
}

static int do_revoke(void *arg)
{
    struct revoke *r = arg;

    return zkl_revoke(r->client, r->node, &r->wait, r->flags);
}

/* Asked, and still there at the deadline. Where the machine is so slow that not even the request is
 * answered by then, which is another code, there is more time the next time. */
static void check_in_vain(struct zkl_client *client, const char *node, int64_t ms)
{
    int rc = ZKL_EDISCONNECTED;

    for (; rc == ZKL_EDISCONNECTED && ms < WAIT_MS; ms *= 4) {
        struct revoke r = revoke_for(client, node, ms);
        rc = do_revoke(&r);
    }
    check_num(rc, ==, ZKL_ETIMEDOUT);
    check_detail(ZKL_ETIMEDOUT, "has not released");
}

/* Asked, and the watch is there. */
static void check_waits(struct actor *actor, const char *node)
{
    check_wait(node_has_data(node, REVOKED) && node_watches(node) == 1, WAIT_MS);
    check_true(!actor_is_done(actor));
}

/* A node of somebody's, a client, behind a proxy if its session is brief, and an actor that asks for it. */
struct scene {
    const char *path, *node;
    struct proxy *proxy;
    struct zkl_client *client;
    struct actor *actor;
    struct revoke r;
};

static struct scene scene_open(const char *name, int session_ms)
{
    struct scene s = {.path = cluster_path(name), .actor = world_actor()};

    s.node = below(s.path, "lock-0000000000");
    s.client =
        session_ms == SESSION_MS ? world_client() : world_client_through(&s.proxy, session_ms);
    s.r = revoke_of(s.client, s.node);
    make_node(s.node, "somebody");
    return s;
}

static void begin(struct scene *s)
{
    actor_begin(s->actor, do_revoke, &s->r);
}

/* It begins, and has asked. */
static void ask(struct scene *s)
{
    begin(s);
    check_waits(s->actor, s->node);
}

static void check_ends_with_the_node(struct scene *s)
{
    drop_node(s->node);
    check_ok(actor_result(s->actor));
}

/* --- asking ----------------------------------------------------------------------------------- */

/* Goal: the request is in the node's data. The call waits until the node is removed, and not only
 * until its data changes. It leaves no watch. */
WORLD_TEST(revoke_asks_and_waits_for_the_end)
{
    struct scene s = scene_open("ask", SESSION_MS);

    ask(&s);
    for (int i = 0; i < 3; i++) {
        check_ok(wire_set(raw, cluster_at(s.node), "still busy", -1));
        check_wait(node_watches(s.node) == 1, WAIT_MS);
    }
    net_nap_ms(50);
    check_true(!actor_is_done(s.actor));
    check_ends_with_the_node(&s);
    check_num(node_watches(s.node), ==, 0);
    check_num(zkl_revoke(s.client, s.node, &s.r.wait, 0), ==, ZKL_ENONODE);
    check_detail(ZKL_ENONODE, s.node);
    check_num(zkl_revoke(s.client, s.node, NULL, 0), ==, ZKL_ENONODE);
}

/* Goal: a holder of the library hears of the request, and releases when it wants to. */
WORLD_TEST(a_holder_hears_of_it_and_lets_go)
{
    const char *path = cluster_path("holder");
    static struct notes notes = NOTES_INIT;
    struct zkl_client *client = world_client(), *asker = world_client();
    struct zkl_mutex *mutex = world_mutex(client, path);
    struct actor *actor = world_actor();
    char node[256];

    check_ok(zkl_mutex_set_callback(mutex, take_note, &notes));
    check_ok(zkl_mutex_lock(mutex));
    check_num(zkl_mutex_node_path(mutex, node, sizeof node), >, 0);
    struct revoke r = revoke_of(asker, node);
    actor_begin(actor, do_revoke, &r);
    check_note(&notes, 0, ZKL_HOLD_REVOKE_REQUESTED, ZKL_REASON_NONE);
    check_num(zkl_mutex_revoke_requested(mutex), ==, 1);
    check_num(zkl_mutex_still_held(mutex, 0), ==, 1);
    check_num(inspect_lock(asker, path)->entries[0].revoke_requested, ==, 1);
    check_true(!actor_is_done(actor));
    check_ok(zkl_mutex_unlock(mutex));
    check_ok(actor_result(actor));
}

/* Goal: the call ends at its deadline. The node stays, and no watch does. A call with a deadline
 * that has passed asks and does not wait. */
WORLD_TEST(the_deadline_ends_the_wait)
{
    const char *node = below(cluster_path("late"), "lock-0000000000");
    struct zkl_client *client = world_client();
    int64_t start = net_now_ms();

    make_node(node, "somebody");
    check_in_vain(client, node, 200);
    check_num(net_now_ms() - start, >=, 200);
    check_true(net_now_ms() - start < 20000 || lag_is_slow());
    check_true(node_has_data(node, REVOKED));
    check_wait(node_watches(node) == 0, WAIT_MS);
    check_ok(wire_set(raw, cluster_at(node), "", -1));
    struct revoke r = revoke_of(client, node);
    r.wait.deadline_ns = 0;
    check_num(do_revoke(&r), ==, ZKL_ETIMEDOUT);
    check_detail(ZKL_ETIMEDOUT, "has not released");
    check_true(node_has_data(node, REVOKED));
    check_num(node_watches(node), ==, 0);
}

/* Goal: with force the call deletes the node at the deadline, not before, and immediately if the
 * deadline has passed. */
WORLD_TEST(force_deletes_at_the_deadline)
{
    struct scene s = scene_open("force", SESSION_MS);
    s.r = revoke_for(s.client, s.node, 1500);
    s.r.flags = ZKL_INSPECT_FORCE;
    ask(&s);
    check_true(node_is_there(s.node) || zkl_now_ns() >= s.r.wait.deadline_ns);
    check_ok(actor_result(s.actor));
    check_num(zkl_now_ns(), >=, s.r.wait.deadline_ns);
    check_true(!node_is_there(s.node));
    make_node(s.node, "somebody");
    check_ok(do_revoke(&s.r));
    check_true(!node_is_there(s.node));
    check_num(do_revoke(&s.r), ==, ZKL_ENONODE);
    make_node(s.node, "somebody");
    s.r.wait.deadline_ns = ZKL_NO_DEADLINE;
    ask(&s);
    check_ends_with_the_node(&s);
    check_num(node_watches(s.node), ==, 0);
}

/* Goal: a node vanishes by itself just before the call would delete it. The call says 0, and sends
 * no delete. */
WORLD_TEST(force_comes_too_late)
{
    struct scene s = scene_open("too-late", BRIEF_MS);
    s.r = revoke_for(s.client, s.node, 1000);
    s.r.flags = ZKL_INSPECT_FORCE;
    check_ok(proxy_hold_request(s.proxy, PROXY_SYNC, 1)); /* of the look before the deletion */
    begin(&s);
    check_ok(proxy_wait_held(s.proxy, WAIT_MS));
    drop_node(s.node);
    proxy_release(s.proxy);
    check_ok(actor_result(s.actor));
    check_num(proxy_counts(s.proxy, PROXY_DELETE), ==, 0);
}

/* Goal: what is no contender's is left alone without force, with not a byte written. */
WORLD_TEST(foreign_nodes_need_force)
{
    static const char *const foreign[] = {"readme", "lock-", "locks", "report_lock_0000000001"};
    static const char *const contenders[] = {
        "lock-0000000001",
        "ab__lock__0000000002",
        "ab__rlock__0000000003",
        "x-1a-0000000004",
        "_c_00000000-0000-4000-8000-000000000000-report_lock_0000000005",
        "_c_00000000-0000-4000-8000-000000000000-lease-0000000006",
        "_c_00000000-0000-4000-8000-000000000000-__WRIT__-000000007"};
    const char *path = cluster_path("foreign");
    struct zkl_client *client = world_client();

    for (size_t i = 0; i < sizeof foreign / sizeof foreign[0]; i++) {
        const char *node = below(path, foreign[i]);
        make_node(node, "somebody");
        struct revoke r = revoke_for(client, node, 1);
        check_num(do_revoke(&r), ==, ZKL_EFOREIGN);
        check_detail(ZKL_EFOREIGN, node);
        check_fails(zkl_break(client, node, 0, 0, WAIT_MS), ZKL_EFOREIGN, node);
        check_true(node_has_data(node, "somebody"));
        r.flags = ZKL_INSPECT_FORCE;
        if (i % 2)
            check_ok(do_revoke(&r));
        else
            check_ok(zkl_break(client, node, 0, ZKL_INSPECT_FORCE, WAIT_MS));
        check_true(!node_is_there(node));
    }
    for (size_t i = 0; i < sizeof contenders / sizeof contenders[0]; i++) {
        const char *node = below(path, contenders[i]);
        make_node(node, "somebody");
        struct revoke r = revoke_for(client, node, 0);
        check_num(do_revoke(&r), ==, ZKL_ETIMEDOUT);
        check_true(node_has_data(node, REVOKED));
        check_ok(zkl_break(client, node, 0, 0, WAIT_MS));
        check_true(!node_is_there(node));
    }
}

/* Goal: a call waits for the end of a node, and another node takes its name. The call returns, and
 * force deletes only the first node: the new node stays. Method: the proxy holds the watch back
 * meanwhile. */
WORLD_TEST(another_node_of_the_same_name_is_left_alone)
{
    struct scene s = scene_open("another", BRIEF_MS);

    s.r.flags = ZKL_INSPECT_FORCE;
    check_ok(proxy_hold_request(s.proxy, PROXY_GET, 1));
    begin(&s);
    check_ok(proxy_wait_held(s.proxy, WAIT_MS));
    drop_node(s.node);
    make_node(s.node, "somebody");
    proxy_release(s.proxy);
    check_ok(actor_result(s.actor));
    check_true(node_has_data(s.node, "somebody"));
    check_wait(node_watches(s.node) == 0, WAIT_MS);
}

/* --- what is denied --------------------------------------------------------------------------- */

/* Goal: the call immediately names each right that is missing, and changes nothing. Without READ it
 * makes the request, and says that it can't wait for the end. */
WORLD_TEST(each_missing_right_is_named)
{
    const char *path = cluster_path("rights"), *node = below(path, "lock-0000000000");
    struct zkl_client *client = world_client();
    struct revoke r = revoke_of(client, node);

    make_denied(path, PERM_DELETE, "", WIRE_PERSISTENT);
    make_denied(node, PERM_WRITE, "somebody", WIRE_EPHEMERAL);
    check_num(do_revoke(&r), ==, ZKL_EACCES);
    check_detail(ZKL_EACCES, "denies WRITE");
    check_true(node_has_data(node, "somebody"));
    r = revoke_for(client, node, 0);
    r.flags = ZKL_INSPECT_FORCE;
    check_num(do_revoke(&r), ==, ZKL_EACCES);
    check_true(node_has_data(node, "somebody"));
    drop_node(node);

    make_denied(node, PERM_READ, "somebody", WIRE_EPHEMERAL);
    r = revoke_of(client, node);
    check_num(do_revoke(&r), ==, ZKL_EACCES);
    check_detail(ZKL_EACCES, "denies READ");
    check_true(node_has_data(node, REVOKED));
    check_fails(zkl_break(client, node, 0, 0, WAIT_MS), ZKL_EACCES, "denies DELETE");
    check_true(node_is_there(node));
    drop_node(node);

    make_denied(node, 0, "somebody", WIRE_EPHEMERAL);
    r = revoke_for(client, node, 50);
    r.flags = ZKL_INSPECT_FORCE;
    check_num(do_revoke(&r), ==, ZKL_EACCES);
    check_detail(ZKL_EACCES, "denies DELETE");
    check_true(node_has_data(node, REVOKED));
    check_wait(node_watches(node) == 0, WAIT_MS);
}

/* Not NULL, which test-input.c has for each call, as it has times and sizes. */
WORLD_TEST(wrong_arguments_are_named)
{
    struct zkl_client *client = world_client();
    struct revoke tries = revoke_of(client, "/x/lock-0000000000"), leased = tries, late = tries;
    const char *node = tries.node;

    check_fails(zkl_revoke(client, node, NULL, 2), ZKL_EINVAL, "0x2");
    check_fails(zkl_revoke(client, "lock-0000000000", NULL, 0), ZKL_EBADPATH, "slash");
    check_fails(zkl_revoke(client, "/x/", NULL, ZKL_INSPECT_FORCE), ZKL_EBADPATH, "empty");
    tries.wait.flags = ZKL_WAIT_TRY;
    check_fails(do_revoke(&tries), ZKL_EINVAL, "flags");
    leased.wait.lease_ms = 1;
    check_fails(do_revoke(&leased), ZKL_EINVAL, "lease_ms");
    late.wait.deadline_ns = -1;
    check_fails(do_revoke(&late), ZKL_EBADTIMEOUT, "deadline_ns");
    check_fails(zkl_break(client, node, 0, 4, 0), ZKL_EINVAL, "0x4");
    check_fails(zkl_break(client, "/", 0, ZKL_INSPECT_FORCE, 0), ZKL_EBADPATH, "root");
    check_fails(zkl_break(client, node, 0, 0, 0), ZKL_ETIMEDOUT, node);
    check_closed(zkl_client_close(client, WAIT_MS));
    check_fails(zkl_revoke(client, node, NULL, 0), ZKL_ECLOSED, "zkl_revoke");
    check_fails(zkl_break(client, node, 0, 0, 1000), ZKL_ECLOSED, "zkl_break");
}

/* --- ends of a wait --------------------------------------------------------------------------- */

/* Goal: a cancel object ends the wait, and no watch stays. A call with an object that is set
 * already asks for nothing. An object ends all waits that share it. */
WORLD_TEST(cancel_ends_the_wait)
{
    const char *path = cluster_path("cancel");
    const char *nodes[] = {below(path, "lock-0000000000"), below(path, "lock-0000000001")};
    struct zkl_client *client = world_client();
    struct actor *actors[] = {world_actor(), world_actor()};
    struct revoke revokes[2];

    struct zkl_cancel *cancel = world_cancel();
    for (int i = 0; i < 2; i++) {
        make_node(nodes[i], "somebody");
        revokes[i] = revoke_of(client, nodes[i]);
        revokes[i].wait.cancel = cancel;
        actor_begin(actors[i], do_revoke, &revokes[i]);
        check_waits(actors[i], nodes[i]);
    }
    zkl_cancel_set(cancel);
    for (int i = 0; i < 2; i++) {
        check_num(actor_result(actors[i]), ==, ZKL_ECANCELED);
        check_wait(node_watches(nodes[i]) == 0, WAIT_MS);
        check_true(node_is_there(nodes[i]));
    }
    check_ok(wire_set(raw, cluster_at(nodes[0]), "", -1));
    check_num(do_revoke(&revokes[0]), ==, ZKL_ECANCELED);
    check_true(node_has_data(nodes[0], ""));
}

/* Goal: close immediately ends the wait with ZKL_ECLOSED, and the server drops the session's
 * watch. */
WORLD_TEST(close_ends_the_wait)
{
    struct scene s = scene_open("close", SESSION_MS);

    ask(&s);
    check_closed(zkl_client_close(s.client, WAIT_MS));
    check_num(actor_result(s.actor), ==, ZKL_ECLOSED);
    check_wait(node_watches(s.node) == 0, WAIT_MS);
    check_true(node_is_there(s.node));
}

/* --- watches that are shared ------------------------------------------------------------------ */

/* Goal: one client that waits behind a node, and asks for it twice, has one watch there, and whoever
 * leaves, the others still hear of its end. Modes: F45, F49. */
WORLD_TEST(a_watch_is_shared_with_waiters)
{
    const char *path = cluster_path("shared"), *node = below(path, "lock--000000005");
    struct zkl_client *client = world_client();
    struct zkl_mutex *mutex = world_mutex(client, path);
    struct actor *waiter = world_actor(), *asker = world_actor();
    struct revoke r = revoke_of(client, node);

    make_node(node, "somebody");
    actor_begin(waiter, do_lock, mutex);
    check_wait(node_watches(node) == 1, WAIT_MS);
    actor_begin(asker, do_revoke, &r);
    check_in_vain(client, node, 100);
    check_wait(node_watches(node) == 1, WAIT_MS);
    check_true(!actor_is_done(asker));
    check_true(!actor_is_done(waiter));
    drop_node(node);
    check_ok(actor_result(asker));
    check_ok(actor_result(waiter));
    check_ok(actor_do(waiter, do_unlock, mutex));
    check_wait(all_watches() == 0, WAIT_MS);
}

/* Goal: likewise where the waiter leaves first. */
WORLD_TEST(a_waiter_leaves_the_watch_to_the_asker)
{
    const char *path = cluster_path("left"), *node = below(path, "lock--000000005");
    struct zkl_client *client = world_client();
    struct zkl_mutex *mutex = world_mutex(client, path);
    struct actor *waiter = world_actor(), *asker = world_actor();
    struct revoke r = revoke_of(client, node);
    struct take take = take_of(mutex);

    make_node(node, "somebody");
    take.wait.deadline_ns = zkl_now_ns() + lag_room_ms(1500) * MS;
    actor_begin(waiter, do_acquire, &take);
    check_wait(node_watches(node) == 1, WAIT_MS);
    actor_begin(asker, do_revoke, &r);
    check_num(actor_result(waiter), ==, ZKL_ETIMEDOUT);
    check_wait(cluster_children(path) == 1, WAIT_MS);
    check_waits(asker, node);
    drop_node(node);
    check_ok(actor_result(asker));
    check_wait(all_watches() == 0, WAIT_MS);
}

/* --- faults ----------------------------------------------------------------------------------- */

/* Goal: the call repeats a request if the request or its answer was lost. The server may have
 * received the request, and the holder may have answered it with the end of the node: that is no
 * ZKL_ENONODE. */
WORLD_TEST(asking_survives_a_lost_link)
{
    struct scene s = scene_open("ask-lost", BRIEF_MS);

    drop_node(s.node);
    for (int i = 0; i < 2; i++) {
        make_node(s.node, "somebody");
        proxy_reset_counts(s.proxy);
        if (i == 0)
            check_ok(proxy_drop_reply(s.proxy, PROXY_SET, 1, PROXY_THEN_CUT));
        else
            check_ok(proxy_drop_request(s.proxy, PROXY_SET, 1, PROXY_THEN_CUT));
        ask(&s);
        check_num(proxy_counts(s.proxy, PROXY_SET), ==, 2);
        check_ends_with_the_node(&s);
    }
    make_node(s.node, "somebody");
    check_ok(proxy_drop_reply(s.proxy, PROXY_SET, 1, PROXY_THEN_SILENT));
    begin(&s);
    check_wait(node_has_data(s.node, REVOKED), WAIT_MS);
    drop_node(s.node);
    proxy_cut(s.proxy);
    check_ok(actor_result(s.actor));
}

/* Goal: the wait survives the link. The call notices that the node was removed meanwhile, also if
 * another node has its name by now. It waits on for a node that stays. */
WORLD_TEST(waiting_survives_a_lost_link)
{
    struct scene s = scene_open("wait-lost", BRIEF_MS);

    drop_node(s.node);
    for (int i = 0; i < 4; i++) {
        make_node(s.node, "somebody");
        ask(&s);
        lose_link(s.proxy);
        check_wait(zkl_client_get_state(s.client) == ZKL_CLIENT_SUSPENDED, WAIT_MS);
        if (i > 0)
            drop_node(s.node);
        if (i == 2)
            make_node(s.node, "somebody");
        check_true(!actor_is_done(s.actor));
        check_ok(proxy_refuse(s.proxy, false));
        if (i == 0) {
            check_wait(node_watches(s.node) == 1, WAIT_MS);
            net_nap_ms(50);
            check_true(!actor_is_done(s.actor));
            drop_node(s.node);
        }
        check_ok(actor_result(s.actor));
        if (i == 2)
            drop_node(s.node);
        check_wait(node_watches(s.node) == 0, WAIT_MS);
    }
}

/* Goal: an event that is lost with its link is made up for. */
WORLD_TEST(a_lost_event_is_made_up_for)
{
    struct scene s = scene_open("event", BRIEF_MS);

    ask(&s);
    check_ok(proxy_drop_reply(s.proxy, PROXY_EVENT, 1, PROXY_THEN_CUT));
    check_ends_with_the_node(&s);
    check_ok(proxy_wait_dropped(s.proxy, 0));
}

/* Goal: so does the end of the asker's session: the next one asks on. */
WORLD_TEST(waiting_survives_the_session)
{
    struct scene s = scene_open("wait-expired", 1000);
    const char *mark = cluster_path("wait-expired-mark");
    struct zkl_mutex *mutex = world_mutex(s.client, mark);

    check_ok(zkl_mutex_lock(mutex));
    ask(&s);
    lose_link(s.proxy);
    check_wait(cluster_children(mark) == 0, WAIT_MS);
    check_num(node_watches(s.node), ==, 0);
    check_ok(proxy_refuse(s.proxy, false));
    check_wait(node_watches(s.node) == 1, WAIT_MS);
    check_true(!actor_is_done(s.actor));
    check_ends_with_the_node(&s);
    check_num(zkl_mutex_unlock(mutex), ==, ZKL_ELOST);
}

/* Goal: without a link the call ends at its deadline, and says so. With force the client deletes
 * the node once there is a link, a session's time after the deadline at the latest. */
WORLD_TEST(deadlines_hold_without_a_link)
{
    struct scene s = scene_open("no-link", BRIEF_MS);

    proxy_hole(s.proxy, PROXY_BOTH);
    struct revoke unheard = revoke_for(s.client, s.node, 100);
    check_num(do_revoke(&unheard), ==, ZKL_EDISCONNECTED);
    check_detail(ZKL_EDISCONNECTED, "may or may not");
    check_num(zkl_break(s.client, s.node, 0, 0, 100), ==, ZKL_ETIMEDOUT);
    lose_link(s.proxy);
    proxy_heal(s.proxy);
    check_wait(zkl_client_get_state(s.client) == ZKL_CLIENT_SUSPENDED, WAIT_MS);
    int64_t start = net_now_ms();
    check_fails(zkl_break(s.client, s.node, 0, 0, 200), ZKL_EDISCONNECTED, s.node);
    s.r = revoke_for(s.client, s.node, 200);
    check_num(do_revoke(&s.r), ==, ZKL_EDISCONNECTED);
    check_detail(ZKL_EDISCONNECTED, "may or may not");
    check_num(net_now_ms() - start, >=, 400);
    check_true(net_now_ms() - start < 5000 || lag_is_slow());
    check_true(node_has_data(s.node, "somebody"));
    s.r = revoke_for(s.client, s.node, 100);
    s.r.flags = ZKL_INSPECT_FORCE;
    begin(&s);
    net_nap_ms(300);
    check_true(!actor_is_done(s.actor));
    check_ok(proxy_refuse(s.proxy, false));
    check_ok(actor_result(s.actor));
    check_true(!node_is_there(s.node));
}
