/* SPDX-License-Identifier: Apache-2.0 */
/* The read-write lock: which contenders hold together and in what order, re-entry in both halves,
 * the downgrade that keeps its place, and the upgrade that the library refuses. */
#include "cluster.h"

struct user {
    struct zkl_client *client;
    struct zkl_rwlock *rwlock;
    struct zkl_mutex *read, *write;
    struct actor *actor;
};

static struct user user_of(const char *path)
{
    struct user u = {.client = world_client(), .actor = world_actor()};
    u.rwlock = world_rwlock(u.client, path, NULL);
    u.read = zkl_rwlock_reader(u.rwlock);
    u.write = zkl_rwlock_writer(u.rwlock);
    return u;
}

static void lock(struct user *u, struct zkl_mutex *half)
{
    check_ok(actor_do(u->actor, do_lock, half));
}

static void unlock(struct user *u, struct zkl_mutex *half)
{
    check_ok(actor_do(u->actor, do_unlock, half));
}

/* Begin to lock, and wait until the node is there. */
static void queue(struct user *u, struct zkl_mutex *half, const char *path)
{
    int before = cluster_children(path);
    actor_begin(u->actor, do_lock, half);
    check_wait(cluster_children(path) == before + 1, WAIT_MS);
}

/* Modes: F39. */
WORLD_TEST(each_half_is_reentrant)
{
    const char *path = cluster_path("again");
    struct user u = user_of(path);

    check_ok(zkl_mutex_lock(u.write));
    check_ok(zkl_mutex_lock(u.write));
    check_ok(zkl_mutex_lock(u.read));
    check_ok(zkl_mutex_lock(u.read));
    check_num(zkl_mutex_free(u.read), ==, ZKL_EINVAL);
    check_num(zkl_mutex_hold_count(u.write), ==, 2);
    check_num(zkl_mutex_hold_count(u.read), ==, 2);
    check_num(cluster_children(path), ==, 2);
    check_ok(zkl_mutex_unlock(u.read));
    check_ok(zkl_mutex_unlock(u.write));
    check_ok(zkl_mutex_unlock(u.write));
    check_num(zkl_mutex_unlock(u.write), ==, ZKL_ENOTOWNER);
    check_ok(zkl_mutex_lock(u.read));
    check_num(zkl_mutex_trylock(u.write), ==, ZKL_EDEADLK);
    check_num(zkl_mutex_lock(u.write), ==, ZKL_EDEADLK);
    check_true(strstr(zkl_error_detail(), "read lock") != NULL);
    int64_t start = net_now_ms();
    check_num(zkl_mutex_lock_for(u.write, 5000), ==, ZKL_EDEADLK);
    check_true(net_now_ms() - start < 2500 || lag_is_slow());
    check_num(zkl_mutex_hold_count(u.read), ==, 2);
    check_num(cluster_children(path), ==, 1);
    check_ok(zkl_mutex_unlock(u.read));
    check_ok(zkl_mutex_unlock(u.read));
    check_num(cluster_children(path), ==, 0);
}

/* Goal: a downgrade keeps the place and the token: with a writer queued behind, the former writer
 * reads on alone with the write node's number, and a second reader waits for that writer.
 * Modes: F36. */
WORLD_TEST(a_downgrade_keeps_its_place)
{
    const char *path = cluster_path("down");
    char write_node[700], read_node[700];
    struct user a = user_of(path), w = user_of(path), r = user_of(path);

    check_ok(zkl_mutex_lock(a.write));
    queue(&w, w.write, path);
    uint64_t token = zkl_mutex_token(a.write);
    check_true(zkl_mutex_node_path(a.write, write_node, sizeof write_node) > 0);
    check_ok(zkl_mutex_lock(a.read));
    check_true(zkl_mutex_node_path(a.read, read_node, sizeof read_node) > 0);
    check_text(strrchr(read_node, '_') + 1, strrchr(write_node, '_') + 1);
    check_true(zkl_mutex_token(a.read) == token && zkl_mutex_window_ms(a.read) > 0);
    check_ok(zkl_mutex_unlock(a.write));
    queue(&r, r.read, path);
    net_nap_ms(50);
    check_true(!actor_is_done(w.actor) && !actor_is_done(r.actor));
    check_num(zkl_mutex_still_held(a.read, 1), ==, 1);
    check_ok(zkl_mutex_unlock(a.read));
    check_ok(actor_result(w.actor));
    check_true(!actor_is_done(r.actor));
    unlock(&w, w.write);
    check_ok(actor_result(r.actor));
    unlock(&r, r.read);
    check_num(cluster_children(path), ==, 0);
}

WORLD_TEST(a_downgrade_is_its_threads_own)
{
    const char *path = cluster_path("own");
    struct user a = user_of(path), b = user_of(path);

    check_ok(zkl_mutex_lock(a.write));
    check_num(actor_do(a.actor, do_trylock, a.read), ==, ZKL_EBUSY);
    check_num(actor_do(b.actor, do_trylock, b.read), ==, ZKL_EBUSY);
    struct zkl_rwlock *other = world_rwlock(a.client, path, NULL);
    check_num(zkl_mutex_lock(zkl_rwlock_reader(other)), ==, ZKL_EDEADLK);
    check_wait(cluster_children(path) == 1, WAIT_MS);
    check_ok(zkl_mutex_lock(a.read));
    check_ok(zkl_mutex_unlock(a.write));
    check_num(zkl_mutex_hold_count(a.write), ==, 0);
    lock(&a, a.read); /* beside it */
    unlock(&a, a.read);
    check_ok(zkl_mutex_unlock(a.read));
}

WORLD_TEST(no_downgrade_of_a_lost_write_lock)
{
    const char *path = cluster_path("lost");
    struct user u = user_of(path);

    check_ok(zkl_mutex_lock(u.write));
    check_ok(wire_delete(raw, node_of(u.write), -1));
    check_num(zkl_mutex_lock(u.read), ==, ZKL_ELOST);
    check_num(zkl_mutex_hold_count(u.read), ==, 0);
    check_num(cluster_children(path), ==, 0);
    check_num(zkl_mutex_unlock(u.write), ==, ZKL_ELOST);
    check_ok(zkl_mutex_lock(u.read));
    check_ok(zkl_mutex_unlock(u.read));
}

/* Goal: the node of a reader, or of a writer, is deleted before its client sees the list. The
 * contender queues again. It neither takes a list without its node for the first place, nor gives
 * up. Method: the proxy holds the list back until the node is deleted. A writer holds meanwhile.
 * Modes: F37. */
WORLD_TEST(who_is_not_in_the_list_queues_again)
{
    const char *path = cluster_path("missing");
    struct user holder = user_of(path);
    struct locker l = locker_behind(path, NULL, SESSION_MS);
    struct zkl_rwlock *rwlock = world_rwlock(l.client, path, NULL);
    struct zkl_mutex *halves[] = {zkl_rwlock_reader(rwlock), zkl_rwlock_writer(rwlock)};

    for (int i = 0; i < 2; i++) {
        lock(&holder, holder.write);
        check_ok(proxy_hold_request(l.proxy, PROXY_CHILDREN, 1));
        actor_begin(l.actor, do_lock, halves[i]);
        check_ok(proxy_wait_held(l.proxy, WAIT_MS));
        check_wait(cluster_children(path) == 2, WAIT_MS);
        check_ok(wire_delete(raw, child_of(path, 1), -1));
        proxy_release(l.proxy);
        check_wait(cluster_children(path) == 2, WAIT_MS);
        net_nap_ms(50); /* would do for a wrong grant */
        check_true(!actor_is_done(l.actor));
        unlock(&holder, holder.write);
        check_ok(actor_result(l.actor));
        check_ok(actor_do(l.actor, do_unlock, halves[i]));
        check_num(cluster_children(path), ==, 0);
    }
}

WORLD_TEST(a_downgrade_is_five_requests)
{
    const char *path = cluster_path("counted");
    struct user u = user_of(path);
    int64_t before = 0, after = 0;

    make_root(path, "");
    check_ok(flw_requests_received(zks_host(), zks_port(server, 0), &before));
    int64_t start = net_now_ms();
    for (int i = 0; i < 100; i++) {
        check_ok(zkl_mutex_lock(u.write));
        check_ok(zkl_mutex_lock(u.read));
        check_ok(zkl_mutex_unlock(u.write));
        check_ok(zkl_mutex_unlock(u.read));
    }
    check_ok(flw_requests_received(zks_host(), zks_port(server, 0), &after));
    check_num(after - before - 1, >=, 500);
    int64_t others = 10 + (net_now_ms() - start) / 100; /* pings, keepalives and heartbeats */
    check_num(after - before - 1, <=, 500 + others);
}

/* Modes: F38. */
WORLD_TEST(readers_do_not_starve_a_writer)
{
    enum { READERS = 4 };
    const char *path = cluster_path("starve");
    struct user readers[READERS], w = user_of(path);

    for (int i = 0; i < READERS; i++) {
        readers[i] = user_of(path);
        lock(&readers[i], readers[i].read);
    }
    queue(&w, w.write, path);
    for (int i = 0; i < READERS; i++) {
        unlock(&readers[i], readers[i].read);
        actor_begin(readers[i].actor, do_lock, readers[i].read); /* behind the writer */
    }
    check_ok(actor_result(w.actor));
    for (int i = 0; i < READERS; i++)
        check_true(!actor_is_done(readers[i].actor));
    unlock(&w, w.write);
    for (int i = 0; i < READERS; i++)
        check_ok(actor_result(readers[i].actor));
    for (int i = 0; i < READERS; i++)
        unlock(&readers[i], readers[i].read);
}
