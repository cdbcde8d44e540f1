/* SPDX-License-Identifier: Apache-2.0 */
#include "base.h"

#include <stdatomic.h>
#include <stdio.h>

#include "crowd.h"
#include "expiring.h"
#include "outage.h"
#include "room.h"

void base_unmake_mutex(void *mutex)
{
    check_ok(zkl_mutex_free(mutex));
}

int base_lock_mutex_for(void *mutex, int64_t ms)
{
    return zkl_mutex_lock_for(mutex, ms);
}

int base_mutex_held(void *mutex)
{
    return zkl_mutex_still_held(mutex, 0);
}

/* Goal: a scope holds to its end, and no longer. */
void a_scope_holds_to_its_end(__attribute__((unused)) void **state)
{
    struct zkl_client *client = cluster_client();
    struct zkl_mutex *mutex = lock_kind.make(client, cluster_path("scope"));

    {
        ZKL_MUTEX_SCOPE(scope, mutex);
        check_ok(scope.rc);
        check_num(zkl_mutex_still_held(mutex, 0), ==, 1);
    }
    check_num(zkl_mutex_still_held(mutex, 0), ==, 0);
    cluster_free(client, mutex);
}

int base_lock(void *lock)
{
    return lock_kind.lock_for(lock, WAIT_MS);
}

int base_unlock(void *lock)
{
    return lock_kind.unlock(lock);
}

static int try_to_lock(void *lock)
{
    return lock_kind.lock_for(lock, 200);
}

static int is_held(void *lock)
{
    return lock_kind.held(lock);
}

/* --- two threads of one client ---------------------------------------------------------------- */

struct pair {
    const char *path;
    void *locks[2];
    struct actor *actors[2];
    int first; /* the one that holds; the other one waits */
};

static void begin_both(struct pair *pair, struct zkl_client *clients[2])
{
    pair->path = cluster_path(lock_kind.name);
    for (int i = 0; i < 2; i++) {
        pair->locks[i] = lock_kind.make(clients[i], pair->path);
        pair->actors[i] = actor_new();
        actor_begin(pair->actors[i], base_lock, pair->locks[i]);
    }
    check_wait(actor_is_done(pair->actors[0]) || actor_is_done(pair->actors[1]), WAIT_MS);
    pair->first = actor_is_done(pair->actors[0]) ? 0 : 1;
    check_ok(actor_result(pair->actors[pair->first]));
    check_wait(lock_kind.contenders(pair->path) == 2, WAIT_MS);
    check_true(!actor_is_done(pair->actors[!pair->first]));
}

static int unlock_first(struct pair *pair)
{
    return actor_do(pair->actors[pair->first], base_unlock, pair->locks[pair->first]);
}

/* The other one gets the lock and releases it, and nothing is left. */
static void end_both(struct pair *pair)
{
    int second = !pair->first;

    check_ok(actor_result(pair->actors[second]));
    check_num(actor_do(pair->actors[second], is_held, pair->locks[second]), ==, 1);
    check_ok(actor_do(pair->actors[second], base_unlock, pair->locks[second]));
    check_wait(lock_kind.contenders(pair->path) == 0, WAIT_MS);
    for (int i = 0; i < 2; i++) {
        actor_end(pair->actors[i]);
        lock_kind.unmake(pair->locks[i]);
    }
}

/* Goal: the server is killed while one thread holds and another one waits, and comes back. The
 * holder can release, whatever its unlock may still know, and the waiter gets the lock. */
void a_waiter_survives_a_killed_server(__attribute__((unused)) void **state)
{
    struct zkl_client *client = client_of(RESTART_SESSION_MS);
    struct pair pair;

    begin_both(&pair, (struct zkl_client *[2]){client, client});
    server_down();
    check_wait(zkl_client_get_state(client) != ZKL_CLIENT_CONNECTED, WAIT_MS);
    server_back();
    int rc = unlock_first(&pair);
    check_true(rc == 0 || rc == ZKL_EUNCONFIRMED || zkl_error_is_lost(rc));
    end_both(&pair);
    cluster_free(client, NULL);
}

/* Goal: the session of a holder and a waiter ends. The holder, which does nothing, has lost the
 * lock, and the waiter gets it in the client's next session. Modes: F6. */
void a_killed_session_frees_the_lock_for_its_own_waiter(__attribute__((unused)) void **state)
{
    struct expiring *expiring = expiring_open();
    struct zkl_client *client = expiring_client(expiring);
    struct pair pair;

    begin_both(&pair, (struct zkl_client *[2]){client, client});
    expiring_expire(expiring);
    check_ok(actor_result(pair.actors[!pair.first]));
    check_num(actor_do(pair.actors[pair.first], is_held, pair.locks[pair.first]), ==, 0);
    check_num(unlock_first(&pair), ==, ZKL_ELOST);
    end_both(&pair);
    expiring_free(expiring);
}

/* Goal: of two clients exactly one holds, as long as it does; then the other one does. */
void two_clients_exclude_each_other(__attribute__((unused)) void **state)
{
    struct zkl_client *clients[2] = {cluster_client(), cluster_client()};
    struct pair pair;

    begin_both(&pair, clients);
    net_nap_ms(100); /* would do for a wrong grant */
    check_true(!actor_is_done(pair.actors[!pair.first]));
    check_num(actor_do(pair.actors[pair.first], is_held, pair.locks[pair.first]), ==, 1);
    check_ok(unlock_first(&pair));
    end_both(&pair);
    cluster_free(clients[0], NULL);
    cluster_free(clients[1], NULL);
}

/* --- many threads ----------------------------------------------------------------------------- */

#define THREADS 10

struct visits {
    atomic_int asking; /* threads that are about to lock */
    struct room room;
    atomic_int overlaps;
};

struct visitor {
    struct visits *visits;
    void *lock;
    uint32_t number;
};

static int visit(void *arg)
{
    struct visitor *visitor = arg;
    struct visits *visits = visitor->visits;

    visits->asking++;
    int rc = base_lock(visitor->lock);
    if (rc != 0)
        return rc;
    visits->overlaps += room_enter(&visits->room, visitor->number) != 0;
    net_nap_ms(10);
    visits->overlaps += room_leave(&visits->room, visitor->number) != 0;
    return base_unlock(visitor->lock);
}

/* Goal: when the last of ten threads, each with a handle of its own, has released, the server
 * removes what was made for the lock, the parent too. */
void the_container_goes_after_many_threads(__attribute__((unused)) void **state)
{
    struct zkl_client *client = cluster_client();
    const char *parent = cluster_path("containers");
    struct visitor visitors[THREADS];
    struct visits visits = {0};
    struct crowd crowd;
    char path[80];

    snprintf(path, sizeof path, "%s/our-lock", parent);
    for (int i = 0; i < THREADS; i++)
        visitors[i] = (struct visitor){&visits, lock_kind.make(client, path), (uint32_t)i};
    crowd_begin(&crowd, visit, visitors);
    crowd_end(&crowd);
    check_num(visits.overlaps, ==, 0);
    check_wait(wire_exists(raw, cluster_at(parent), NULL) == WIRE_NONODE, WAIT_MS);
    for (int i = 0; i < THREADS; i++)
        lock_kind.unmake(visitors[i].lock);
    cluster_free(client, NULL);
}

/* Goal: of ten threads with one handle each gets the lock, and never two at a time. Method: the
 * first one keeps it until the nine others have asked too. Modes: F41. */
void many_threads_share_one_handle(__attribute__((unused)) void **state)
{
    struct zkl_client *client = cluster_client();
    void *lock = lock_kind.make(client, cluster_path(lock_kind.name));
    struct visitor visitors[THREADS - 1];
    struct visits visits = {0};
    struct crowd crowd;

    check_ok(base_lock(lock));
    check_num(room_enter(&visits.room, THREADS), ==, 0);
    for (int i = 0; i < THREADS - 1; i++)
        visitors[i] = (struct visitor){&visits, lock, (uint32_t)i};
    crowd_begin(&crowd, visit, visitors);
    check_wait(visits.asking == THREADS - 1, WAIT_MS);
    net_nap_ms(100); /* would do for a wrong grant */
    check_num(room_leave(&visits.room, THREADS), ==, 0);
    check_ok(base_unlock(lock));
    crowd_end(&crowd);
    check_num(visits.overlaps, ==, 0);
    lock_kind.unmake(lock);
    cluster_free(client, NULL);
}

/* --- a namespace ------------------------------------------------------------------------------ */

/* Goal: a client below a node of its own (a namespace there, a chroot here) locks below that node,
 * and knows nothing of the same path outside. Modes: F56. */
void a_lock_works_in_a_namespace(__attribute__((unused)) void **state)
{
    struct zkl_client_options options = cluster_options();
    const char *path = cluster_path(lock_kind.name), *root = cluster_path("namespace");
    struct zkl_client *outside = cluster_client();
    void *outer = lock_kind.make(outside, path);
    char servers[128], inner_path[128];

    check_ok(wire_create(raw, cluster_at(root), "", WIRE_PERSISTENT, NULL, 0));
    snprintf(servers, sizeof servers, "%s%s", options.servers, root);
    snprintf(inner_path, sizeof inner_path, "%s%s", root, path);
    options.servers = servers;
    struct zkl_client *client = cluster_client_with(&options);
    void *lock = lock_kind.make(client, path);
    check_ok(base_lock(lock));
    check_num(lock_kind.contenders(inner_path), ==, 1);
    check_num(lock_kind.contenders(path), ==, 0);
    check_ok(base_lock(outer));
    check_ok(base_unlock(lock));
    check_num(lock_kind.contenders(inner_path), ==, 0);
    check_num(lock_kind.contenders(path), ==, 1);
    check_ok(base_unlock(outer));
    lock_kind.unmake(lock);
    lock_kind.unmake(outer);
    cluster_free(client, NULL);
    cluster_free(outside, NULL);
}

/* --- re-entry --------------------------------------------------------------------------------- */

/* A function that locks, calls one that locks, and so on; in the innermost but one somebody else
 * tries. */
static void nest(void *lock, int depth, struct actor *somebody)
{
    check_ok(base_lock(lock));
    check_num(is_held(lock), ==, 1);
    if (depth > 1)
        nest(lock, depth - 1, somebody);
    if (depth == 2 && somebody)
        check_num(actor_do(somebody, try_to_lock, lock), ==, ZKL_ETIMEDOUT);
    check_num(is_held(lock), ==, 1);
    check_ok(base_unlock(lock));
}

static void check_nested(struct actor *somebody)
{
    struct zkl_client *client = cluster_client();
    const char *path = cluster_path(lock_kind.name);
    void *lock = lock_kind.make(client, path);

    nest(lock, 3, somebody);
    check_num(is_held(lock), ==, 0);
    check_wait(lock_kind.contenders(path) == 0, WAIT_MS);
    if (somebody) {
        check_ok(actor_do(somebody, base_lock, lock));
        check_ok(actor_do(somebody, base_unlock, lock));
    }
    lock_kind.unmake(lock);
    cluster_free(client, NULL);
}

/* Goal: three functions that call each other lock one handle; it is held to the end of the
 * outermost. */
void nested_calls_enter_again(__attribute__((unused)) void **state)
{
    check_nested(NULL);
}

/* Goal: what one thread has entered again another one does not enter. */
void another_thread_does_not_enter_a_nested_lock(__attribute__((unused)) void **state)
{
    struct actor *somebody = actor_new();

    check_nested(somebody);
    actor_end(somebody);
}
