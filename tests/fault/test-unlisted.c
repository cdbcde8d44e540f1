/* SPDX-License-Identifier: Apache-2.0 */
/* Grants without a list, on a real server: that they come, and what they must not overlook. */
#include "contenders.h"

#define SESSION_MS 10000
#define ROW 3 /* locks in a row that nobody came between, before lists are left out */
#define VISITS_APART 20

/* A client with a posted mutex, so that something is under way when it locks again. */
struct user {
    struct zkl_client *client;
    struct zkl_mutex *mutex;
};

static struct user user_at(const char *servers, const char *path)
{
    struct user u = {.client = world_open(servers, SESSION_MS)};
    struct zkl_mutex_options options = ZKL_MUTEX_OPTIONS_INIT;

    options.posted_unlock = true;
    fault_alone_from(u.client, ROW);
    u.mutex = world_mutex_with(u.client, path, &options);
    return u;
}

static int64_t sent(struct user *u, enum zkl_request_kind kind)
{
    return locked(u->client->driver, (int64_t)u->client->driver->core.sent[kind]);
}

static void lock_and_unlock(struct user *u, int times)
{
    for (int i = 0; i < times; i++) {
        check_ok(zkl_mutex_lock(u->mutex));
        check_ok(zkl_mutex_unlock(u->mutex));
    }
}

/* Where nobody else comes, a busy client needs two requests for a lock and its unlock: the list goes out only where all that
 * was sent had been answered. Nothing is left of it, the watch on the path neither. */
WORLD_TEST(two_requests_do)
{
    struct user u = user_at(zks_connect_string(server), "/unlisted/two");
    struct wire *w = world_wire();
    const int cycles = 300;

    lock_and_unlock(&u, 2 * ROW + 2);
    int64_t created = sent(&u, ZKL_REQ_CREATE), listed = sent(&u, ZKL_REQ_LIST);
    int64_t deleted = sent(&u, ZKL_REQ_DELETE), watched = sent(&u, ZKL_REQ_WATCH);
    lock_and_unlock(&u, cycles);
    check_num(sent(&u, ZKL_REQ_CREATE) - created, ==, cycles);
    check_num(sent(&u, ZKL_REQ_DELETE) - deleted, ==, cycles);
    check_num(sent(&u, ZKL_REQ_WATCH), ==, watched);
    check_num(sent(&u, ZKL_REQ_LIST) - listed, <, cycles / 2);
    fault_check_rest(u.client, w, "/unlisted/two", WAIT_MS);
    check_num(sent(&u, ZKL_REQ_UNWATCH), ==, 0);
    world_drop(u.mutex);
    check_wait(sent(&u, ZKL_REQ_UNWATCH) == 1 && fault_calls(u.client) == 0, WAIT_MS);
}

/* The number at the end of a node's path. */
static int number_of(const char *path)
{
    return atoi(path + strlen(path) - 10);
}

/* Make the path anew, and children in it until the next one would have this number. The last one stays, as that
 * of another contender, and last gets its path. */
static void make_anew(struct wire *w, const char *path, int next, char *last, size_t size)
{
    char prefix[100];

    snprintf(prefix, sizeof prefix, "%s/_c_00000000-0000-4000-8000-000000000000-lock-", path);
    check_ok(wire_delete(w, path, -1));
    check_ok(wire_create(w, path, "", WIRE_PERSISTENT, NULL, 0));
    do {
        check_ok(wire_create(w, prefix, "", WIRE_EPHEMERAL_SEQUENTIAL, last, size));
        if (number_of(last) + 1 < next)
            check_ok(wire_delete(w, last, -1));
    } while (number_of(last) + 1 < next);
}

/* It may give the very number that would have been the next one, behind another contender. The client that gets this number
 * waits, though it hears of all that only behind its own node, in the server's order. */
WORLD_TEST(a_path_made_anew_is_noticed)
{
    static const char *const path = "/unlisted/anew";
    char last[200];
    struct wire *w = world_wire();

    struct proxy *proxy = world_proxy();
    struct user u = user_at(proxy_address(proxy), path);
    struct actor *waiter = world_actor();
    lock_and_unlock(&u, ROW + 3);
    check_ok(zkl_mutex_lock(u.mutex));
    fault_only_child(w, path, last, sizeof last, NULL);
    int next = number_of(last) + 1;
    check_ok(zkl_mutex_unlock(u.mutex));
    check_wait(fault_children(w, path) == 0, WAIT_MS);
    check_wait(fault_contenders(u.client) == 0, WAIT_MS);

    proxy_hole(proxy, PROXY_TO_CLIENT);
    proxy_reset_counts(proxy);
    make_anew(w, path, next, last, sizeof last);
    act_begin(waiter, act_lock, u.mutex, NULL);
    check_wait(fault_children(w, path) == 2, WAIT_MS);
    proxy_heal(proxy);
    /* It goes on to watch the node before its own; with the lock in its hands it would not. */
    check_wait(!act_busy(waiter) || fault_watches(u.client) == 2, WAIT_MS);
    check_true(act_busy(waiter));
    check_ok(wire_delete(w, last, -1));
    actor_passes(waiter);
}

/* True if a contender waits for one that it found in a list. */
static bool waits_by_a_list(struct user *u)
{
    zkl_driver_lock(u->client->driver);
    const struct zkl_contender *c = u->client->driver->core.first;
    while (c && (c->machine.state != ZKL_CONTENDER_WAITING || c->machine.pred_is_by_number))
        c = c->next;
    zkl_driver_unlock(u->client->driver);
    return c != NULL;
}

/* The same where the number would be that behind a node of this client, which was deleted with the path. */
WORLD_TEST(a_path_made_anew_behind_our_own_is_noticed)
{
    static const char *const path = "/unlisted/row";
    char last[200], own[200];
    struct wire *w = world_wire();

    struct proxy *proxy = world_proxy();
    struct user u = user_at(proxy_address(proxy), path);
    struct actor *waiter = world_actor();
    fault_alone_from(u.client, 0);
    struct zkl_mutex *other = world_mutex(u.client, path);
    check_ok(zkl_mutex_lock(u.mutex));
    fault_only_child(w, path, own, sizeof own, NULL);

    proxy_hole(proxy, PROXY_TO_CLIENT);
    check_ok(wire_delete(w, own, -1));
    make_anew(w, path, number_of(own) + 1, last, sizeof last);
    check_num(number_of(last), ==, number_of(own));
    act_begin(waiter, act_lock, other, NULL);
    check_wait(fault_children(w, path) == 2, WAIT_MS);
    proxy_heal(proxy);
    check_wait(!act_busy(waiter) || waits_by_a_list(&u), WAIT_MS);
    check_true(act_busy(waiter));
    check_ok(wire_delete(w, last, -1));
    actor_passes(waiter);
    check_wait(zkl_mutex_still_held(u.mutex, 0) == 0, WAIT_MS);
    check_num(zkl_mutex_unlock(u.mutex), ==, ZKL_ELOST);
}

/* --- under way all together --------------------------------------------------------------------- */

struct rivals {
    struct turnstile *turnstile;
    const char *path;
    long rounds, deleted;
};

static int lock_often(struct zkl_mutex *mutex, void *rivals)
{
    struct rivals *r = rivals;

    turnstile_rounds(r->turnstile, 1, mutex, (int)r->rounds, false);
    r->turnstile->stop = true;
    return 0;
}

/* Now and then, so that the other one is alone most of the time. */
static int lock_rarely(struct zkl_mutex *mutex, void *rivals)
{
    struct turnstile *turnstile = ((struct rivals *)rivals)->turnstile;

    for (long due = VISITS_APART; !turnstile->stop; due += VISITS_APART) {
        check_wait(turnstile->entries[1] >= due || turnstile->stop, QUIET_MS);
        turnstile_rounds(turnstile, 2, mutex, 1, false);
    }
    return 0;
}

/* An administrator takes the path away whenever it is empty, as the server does with containers. */
static int delete_often(struct zkl_mutex *unused, void *rivals)
{
    struct rivals *r = rivals;
    struct wire *w = fault_wire();

    (void)unused;
    while (!r->turnstile->stop)
        r->deleted += wire_delete(w, r->path, -1) == 0;
    wire_close(w);
    return 0;
}

WORLD_TEST(nobody_slips_in_as_paths_come_and_go)
{
    struct rivals r = {turnstile_new(), "/unlisted/rivals", test_length(100000, 2000), 0};
    struct user often = user_at(zks_connect_string(server), r.path);
    struct user rarely = user_at(zks_connect_string(server), r.path);
    struct actor *actors[] = {world_actor(), world_actor(), world_actor()};

    r.turnstile->go = true;
    act_begin(actors[0], lock_often, often.mutex, &r);
    act_begin(actors[1], lock_rarely, rarely.mutex, &r);
    act_begin(actors[2], delete_often, NULL, &r);
    for (int i = 0; i < 3; i++)
        check_ok(act_end(actors[i], 10 * WAIT_MS));
    check_num(r.deleted, >, 0);
    printf("%ld and %ld entries, the path was deleted %ld times, %ld lists for %ld creates\n",
           (long)r.turnstile->entries[1], (long)r.turnstile->entries[2], r.deleted,
           (long)sent(&often, ZKL_REQ_LIST), (long)sent(&often, ZKL_REQ_CREATE));
    check_num(sent(&often, ZKL_REQ_LIST), <, sent(&often, ZKL_REQ_CREATE));
    turnstile_end(r.turnstile);
}

/* Only the tests take paths away: the server would do so between any two locks. */
FAULT_MAIN(options.container_check_ms = 600000)
