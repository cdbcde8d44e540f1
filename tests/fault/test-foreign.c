/* SPDX-License-Identifier: Apache-2.0 */
/* Servers that do not know create2, containers or removeWatches: those that hang up on them, and those that say so
 * first, as ZooKeeper does. */
#include "bytes.h"
#include "fault.h"

#include <stdio.h>

#define SESSION_MS 4000
#define NO_SUCH_OP 9999

static const enum proxy_op all_ops[] = {PROXY_CREATE2, PROXY_CREATE_CONTAINER,
                                        PROXY_REMOVE_WATCHES};
#define OPS (sizeof all_ops / sizeof *all_ops)

/* What the client asks for in vain, as a set; the others pass. */
struct foreign {
    unsigned ops;
};

/* The server gets a number that it has no name for. */
static size_t garble(enum proxy_dir dir, int op, unsigned char *frame, size_t size, void *arg)
{
    const struct foreign *foreign = arg;

    for (size_t i = 0; dir == PROXY_TO_SERVER && i < OPS; i++) {
        if ((foreign->ops & 1u << i) && op == (int)all_ops[i])
            bytes_put32(frame + 4, NO_SUCH_OP);
    }
    return size;
}

static void be_foreign(struct proxy *proxy, struct foreign *foreign, bool says_so)
{
    if (says_so)
        proxy_set_hook(proxy, garble, foreign);
    for (size_t i = 0; i < OPS && !says_so; i++) {
        if (foreign->ops & 1u << i)
            proxy_hang_up_on(proxy, all_ops[i]);
    }
}

static int64_t czxid_of_the_node(struct wire *wire, const char *path)
{
    struct wire_names names;
    struct wire_stat stat;
    char node[512];

    check_ok(wire_sync(wire, path));
    check_ok(wire_children(wire, path, &names));
    assert_int_equal(names.n, 1);
    snprintf(node, sizeof node, "%s/%s", path, names.name[0]);
    check_ok(wire_exists(wire, node, &stat));
    wire_names_free(&names);
    return stat.czxid;
}

/* Lock and unlock: the token is the node's czxid. */
static uint64_t one_cycle(struct zkl_mutex *mutex, struct wire *wire, const char *path)
{
    check_ok(zkl_mutex_lock_for(mutex, WAIT_MS));
    uint64_t token = zkl_mutex_token(mutex);
    assert_int_equal((int64_t)token, czxid_of_the_node(wire, path));
    check_ok(zkl_mutex_unlock(mutex));
    return token;
}

static void other_kinds(struct zkl_client *client)
{
    struct zkl_rwlock *rwlock;
    struct zkl_semaphore *semaphore;
    struct zkl_permit *permits[2];
    struct zkl_wait wait = ZKL_WAIT_INIT;

    wait.deadline_ns = zkl_now_ns() + WAIT_MS * INT64_C(1000000);
    check_ok(zkl_rwlock_new(&rwlock, client, "/foreign/rw", NULL));
    check_ok(zkl_mutex_lock_for(zkl_rwlock_writer(rwlock), WAIT_MS));
    check_ok(zkl_mutex_lock_for(zkl_rwlock_reader(rwlock), WAIT_MS));
    check_ok(zkl_mutex_unlock(zkl_rwlock_writer(rwlock)));
    check_ok(zkl_mutex_unlock(zkl_rwlock_reader(rwlock)));
    check_ok(zkl_rwlock_free(rwlock));
    check_ok(zkl_semaphore_new(&semaphore, client, "/foreign/s", 2, NULL));
    check_ok(zkl_semaphore_set_permits(semaphore, 2, &wait));
    check_ok(zkl_semaphore_acquire(semaphore, 2, &wait, permits));
    for (int i = 0; i < 2; i++)
        check_ok(zkl_permit_release(permits[i]));
    check_ok(zkl_semaphore_free(semaphore));
}

/* Goal: each kind of lock is had, waited for and given up, with true tokens, and after a few broken links there are
 * no more of them. */
static void locks_of_a_foreign_server(unsigned ops, bool says_so)
{
    struct foreign foreign = {ops};
    struct wire *wire = fault_wire();

    struct proxy *proxy = proxy_before(server, 0);
    be_foreign(proxy, &foreign, says_so);
    struct zkl_client *client = fault_open(proxy_address(proxy), SESSION_MS);
    struct zkl_client *direct = fault_open(zks_connect_string(server), SESSION_MS);
    struct zkl_mutex *mutex = fault_mutex(client, "/foreign/deep/m");
    struct zkl_mutex *rival = fault_mutex(direct, "/foreign/deep/m");
    struct actor *other = actor_new();

    uint64_t before = one_cycle(mutex, wire, "/foreign/deep/m");
    check_ok(actor_do(other, act_lock, rival, NULL));
    for (int i = 0; i < 4; i++)
        check_num(zkl_mutex_lock_for(mutex, 300), ==, ZKL_ETIMEDOUT);
    check_ok(actor_do(other, act_unlock, rival, NULL));
    assert_true(one_cycle(mutex, wire, "/foreign/deep/m") > before);

    other_kinds(client);

    int64_t links = proxy_counts(proxy, PROXY_CONNECT);
    /* An earlier answer may be lost with the link, which blames that one. */
    assert_true(links <= 1 + 4 * (int64_t)OPS);
    for (int i = 0; i < 3; i++)
        one_cycle(mutex, wire, "/foreign/deep/m");
    assert_int_equal(proxy_counts(proxy, PROXY_CONNECT), links);

    actor_free(other);
    check_ok(zkl_mutex_free(mutex));
    check_ok(zkl_mutex_free(rival));
    check_ok(zkl_client_close(client, WAIT_MS));
    zkl_client_free(client);
    check_ok(zkl_client_close(direct, WAIT_MS));
    zkl_client_free(direct);
    proxy_stop(proxy);
    wire_delete_tree(wire, "/foreign");
    wire_close(wire);
}

static const unsigned sets[] = {1, 2, 4, (1u << OPS) - 1};
#define SETS (sizeof sets / sizeof *sets)

/* Method: each of the three, and all, on a server behind a proxy that hangs up on them. Seen red: without opcode.c it
 * comes back for ever. */
static void a_server_that_hangs_up(void **state)
{
    (void)state;
    for (size_t i = 0; i < SETS; i++)
        locks_of_a_foreign_server(sets[i], false);
}

/* Method: the same, where a real server gets a number that it does not know instead. Source:
 * UnimplementedRequestProcessor, which answers and hangs up. */
static void a_server_that_says_so(void **state)
{
    (void)state;
    for (size_t i = 0; i < SETS; i++)
        locks_of_a_foreign_server(sets[i], true);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_server_that_hangs_up),
        cmocka_unit_test(a_server_that_says_so),
    };
    return fault_main(argc, argv, tests, NULL);
}
