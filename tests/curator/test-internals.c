/* SPDX-License-Identifier: Apache-2.0 */
/* TestLockCleanlinessWithFaults, TestLockInternals: an acquire that fails after its node was made
 * leaves none, and says what went wrong first. */
#include "bytes.h"
#include "inside.h"
#include "outage.h"

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
    char names[][128] = {"mutex", "rw", "s", "s/locks", "s/leases"};

    make_root(path, ""); /* which the server does not remove, as it does not what is below */
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        snprintf(names[i], sizeof names[i], "%s", below(path, names[i]));
        make_root(names[i], "");
    }
    struct zkl_rwlock *rwlock = world_rwlock(client, names[1], NULL);
    struct zkl_mutex *permit = world_semaphore_mutex(client, names[2]);
    check_list_fails(proxy, names[0], 1, world_mutex(client, names[0]));
    check_list_fails(proxy, names[1], 1, zkl_rwlock_reader(rwlock));
    check_list_fails(proxy, names[1], 1, zkl_rwlock_writer(rwlock));
    check_list_fails(proxy, names[3], 1, permit);
    check_list_fails(proxy, names[4], 2, permit);
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

    make_root(path, "");
    check_ok(proxy_hold_reply(proxy, PROXY_CHILDREN, 1));
    actor_begin(actor, lock_for_some_seconds, mutex);
    check_ok(proxy_wait_held(proxy, WAIT_MS));
    check_num(cluster_children(path), ==, 1);
    server_down();
    check_num(actor_result(actor), ==, ZKL_ETIMEDOUT);
    server_back();
    inside_expire(client);
    check_wait(cluster_children(path) == 0, WAIT_MS);
    check_ok(lock_in_time(mutex));
    check_ok(zkl_mutex_unlock(mutex));
    check_num(cluster_children(path), ==, 0);
    check_ok(wire_delete(raw, cluster_at(path), -1));
}
