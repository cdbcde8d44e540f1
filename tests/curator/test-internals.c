/* SPDX-License-Identifier: Apache-2.0 */
/* TestLockCleanlinessWithFaults, TestLockInternals: an acquire that fails after its node was made
 * leaves none, and says what went wrong first. */
#include <stdatomic.h>
#include <stdio.h>

#include "bytes.h"
#include "inside.h"
#include "nodes.h"
#include "outage.h"
#include "proxy.h"

enum { ANSWER_HEADER = 16, ANSWER_ERROR_AT = 12 };

struct fault {
    int error;        /* of the answer to a list */
    atomic_int lists; /* which one: the next is 1; 0: it is done */
};

/* In the proxy. */
static size_t list_fails(enum proxy_dir dir, int op, unsigned char *frame, size_t size, void *arg)
{
    struct fault *fault = arg;

    bool is_list = op == PROXY_CHILDREN || op == PROXY_CHILDREN2; /* of a mutex, of leases */
    if (dir != PROXY_TO_CLIENT || !is_list || size < ANSWER_HEADER || fault->lists == 0 ||
        --fault->lists != 0)
        return size;
    bytes_put32(frame + ANSWER_ERROR_AT, fault->error);
    return ANSWER_HEADER;
}

static const struct {
    int answer, code;
} faults[] = {
    {WIRE_NOAUTH, ZKL_EACCES},
    {-125, ZKL_EQUOTA},
    {-6, ZKL_EUNIMPLEMENTED}, /* of a server that does not know the request */
};

static int lock_in_time(void *mutex)
{
    return zkl_mutex_lock_for(mutex, WAIT_MS);
}

/* A parent that the server does not remove, with a child for each recipe. */
static void make_roots(const char *path)
{
    static const char *const below[] = {"", "/mutex", "/rw", "/s", "/s/locks", "/s/leases"};
    char node[128];

    for (size_t i = 0; i < sizeof below / sizeof below[0]; i++) {
        snprintf(node, sizeof node, "%s%s", cluster_at(path), below[i]);
        check_ok(wire_create(raw, node, "", WIRE_PERSISTENT, NULL, 0));
    }
}

/* The nth list of this call fails in each way: the call says why, and the client removes the
 * nodes that the call had made below path. Then the call succeeds. */
static void check_list_fails(struct proxy *proxy, const char *path, int nth, void *lock)
{
    struct wire_stat before, after;

    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
        struct fault fault = {faults[i].answer, nth};
        check_ok(wire_exists(raw, cluster_at(path), &before));
        proxy_set_hook(proxy, list_fails, &fault);
        check_num(lock_in_time(lock), ==, faults[i].code);
        proxy_set_hook(proxy, NULL, NULL);
        check_wait(cluster_children(path) == 0, WAIT_MS);
        check_ok(wire_exists(raw, cluster_at(path), &after));
        check_num(after.cversion, ==, before.cversion + 2); /* one was there, once */
    }
    check_ok(lock_in_time(lock));
    check_ok(zkl_mutex_unlock(lock));
    check_wait(cluster_children(path) == 0, WAIT_MS);
}

/* Goal: the node is made and the list after it fails: the call says why, and the client removes
 * the node. This is so with a mutex, with each half of a read-write lock, and with both queues
 * of a semaphore. */
WORLD_TEST(a_list_that_fails_leaves_no_node)
{
    const char *path = cluster_path("faults");
    struct proxy *proxy = NULL;
    struct zkl_client *client = world_client_through(&proxy, EXPIRING_MS);
    char root[96];

    make_roots(path);
    snprintf(root, sizeof root, "%s/mutex", path);
    struct zkl_mutex *mutex = world_mutex(client, root);
    check_list_fails(proxy, root, 1, mutex);
    snprintf(root, sizeof root, "%s/rw", path);
    struct zkl_rwlock *rwlock = world_rwlock(client, root, NULL);
    check_list_fails(proxy, root, 1, zkl_rwlock_reader(rwlock));
    check_list_fails(proxy, root, 1, zkl_rwlock_writer(rwlock));
    snprintf(root, sizeof root, "%s/s", path);
    struct zkl_mutex *permit = world_semaphore_mutex(client, root);
    snprintf(root, sizeof root, "%s/s/locks", path);
    check_list_fails(proxy, root, 1, permit);
    snprintf(root, sizeof root, "%s/s/leases", path);
    check_list_fails(proxy, root, 2, permit);
    check_ok(wire_delete_tree(raw, cluster_at(path)));
}

static int lock_for_some_seconds(void *mutex)
{
    return zkl_mutex_lock_for(mutex, 3000);
}

/* Goal: the server stops while the list is on its way, and the session ends. The call says what
 * became of the call (its time was up), not what became of cleaning up. Once the server is back,
 * nothing is left and the same handle locks. */
WORLD_TEST(what_went_wrong_first_is_what_is_said)
{
    const char *path = cluster_path("first");
    struct proxy *proxy = NULL;
    struct zkl_client *client = world_client_through(&proxy, EXPIRING_MS);
    struct zkl_mutex *mutex = world_mutex(client, path);
    struct actor *actor = world_actor();

    check_ok(wire_create(raw, cluster_at(path), "", WIRE_PERSISTENT, NULL, 0));
    check_ok(proxy_hold_reply(proxy, PROXY_CHILDREN, 1));
    actor_begin(actor, lock_for_some_seconds, mutex);
    check_ok(proxy_wait_held(proxy, WAIT_MS));
    check_num(cluster_children(path), ==, 1);
    server_down();
    check_num(actor_result(actor), ==, ZKL_ETIMEDOUT);
    server_back();
    inside_expire(client);
    check_wait(cluster_children(path) == 0, WAIT_MS);
    check_ok(zkl_mutex_lock_for(mutex, WAIT_MS));
    check_ok(zkl_mutex_unlock(mutex));
    check_num(cluster_children(path), ==, 0);
    check_ok(wire_delete(raw, cluster_at(path), -1));
}
