/* SPDX-License-Identifier: Apache-2.0 */
/* The semaphore on a real server: how many permits are out, in what order, what a try says, how it
 * ends, and that nothing of it stays. */
#include "inside.h"

#include "nodes.h"
#include "notes.h"
#include "check_error.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define AT_ONCE 8

/* --- users ----------------------------------------------------------------------------------- */

struct user {
    struct zkl_client *client;
    struct zkl_semaphore *semaphore;
    struct actor *actor;
    /* the next acquire */
    int count;
    struct zkl_wait wait;
    struct zkl_permit *permits[AT_ONCE];
};

static struct user user_with(struct zkl_client *client, const char *path, int permits)
{
    struct user u = {.client = client, .actor = actor_new(), .wait = ZKL_WAIT_INIT};
    check_ok(zkl_semaphore_new(&u.semaphore, client, path, permits, NULL));
    return u;
}

static struct user user_of(const char *path, int permits)
{
    return user_with(cluster_client(), path, permits);
}

static void user_end(struct user *u)
{
    actor_end(u->actor);
    check_ok(zkl_semaphore_free(u->semaphore));
    check_ok(zkl_client_free(u->client));
}

static int do_take(void *user)
{
    struct user *u = user;
    return zkl_semaphore_acquire(u->semaphore, u->count, &u->wait, u->permits);
}

static int take(struct user *u, int count)
{
    u->count = count;
    u->wait = (struct zkl_wait)ZKL_WAIT_INIT;
    u->wait.deadline_ns = zkl_now_ns() + WAIT_MS * INT64_C(1000000);
    return do_take(u);
}

static int try_take(struct user *u, int count)
{
    u->count = count;
    u->wait = (struct zkl_wait)ZKL_WAIT_INIT;
    u->wait.flags = ZKL_WAIT_TRY;
    return do_take(u);
}

static void give(struct user *u, int count)
{
    for (int i = 0; i < count; i++)
        check_ok(zkl_permit_release(u->permits[i]));
}

static int leases(const char *path)
{
    return cluster_children(below(path, "leases"));
}

static int queued(const char *path)
{
    return cluster_children(below(path, "locks"));
}

/* A semaphore with this number of permits. The server does not remove its nodes while they are
 * empty. */
static void make_permanent(const char *path, const char *permits)
{
    make_root(path, "");
    make_root(below(path, "locks"), "");
    make_root(below(path, "leases"), permits);
}

static void check_nothing_left(const char *path)
{
    check_wait(leases(path) == 0 && queued(path) == 0, WAIT_MS);
    check_wait(flw_watch_count(zks_host(), zks_port(server, 0), NULL) == 0, WAIT_MS);
}

/* Begin to acquire, as the nth in the queue of the inner mutex. */
static void begin(struct user *u, int count, const char *path, int nth)
{
    check_wait(queued(path) == nth - 1, WAIT_MS); /* a granted request has left the queue */
    u->count = count;
    u->wait = (struct zkl_wait)ZKL_WAIT_INIT;
    actor_begin(u->actor, do_take, u);
    check_wait(queued(path) == nth, WAIT_MS);
}

static void check_number(const char *path, const char *expected)
{
    char data[32] = "";
    check_ok(wire_get(raw, cluster_at(below(path, "leases")), data, sizeof data, NULL));
    check_text(data, expected);
}

/* --- the number of permits ------------------------------------------------------------------- */

/* Goal: at most n permits are out over all clients. One more request waits until a client releases
 * a permit. */
static void at_most_n_are_out(void **state)
{
    const char *path = cluster_path("n");
    struct user a = user_of(path, 3), b = user_of(path, 3), c = user_of(path, 3);

    (void)state;
    check_num(zkl_semaphore_permits(a.semaphore), ==, 0);
    check_ok(take(&a, 1));
    check_num(zkl_semaphore_permits(a.semaphore), ==, 3);
    check_ok(take(&b, 2));
    check_num(leases(path), ==, 3);
    check_wait(queued(path) == 0, WAIT_MS);
    check_number(path, "3");
    begin(&c, 1, path, 1);
    check_wait(leases(path) == 4, WAIT_MS);
    net_nap_ms(50);
    check_true(!actor_is_done(c.actor));
    give(&a, 1);
    check_ok(actor_result(c.actor));
    check_wait(queued(path) == 0, WAIT_MS);
    give(&b, 2);
    give(&c, 1);
    check_nothing_left(path);
    user_end(&a);
    user_end(&b);
    user_end(&c);
}

/* Goal: a permit belongs to no thread. Any thread may release it, and the end of the thread that
 * got it changes nothing. Modes: F55. */
static void a_permit_belongs_to_no_thread(void **state)
{
    const char *path = cluster_path("thread");
    struct user u = user_of(path, 1);

    (void)state;
    u.count = 1;
    check_ok(actor_do(u.actor, do_take, &u));
    actor_end(u.actor);
    u.actor = actor_new();
    net_nap_ms(50);
    check_num(leases(path), ==, 1);
    check_num(zkl_permit_still_held(u.permits[0], 1), ==, 1);
    check_true(zkl_permit_token(u.permits[0]) > 0 && zkl_permit_window_ms(u.permits[0]) > 0);
    give(&u, 1);
    check_nothing_left(path);
    user_end(&u);
}

/* Goal: what an uncontended permit costs. Method: the server's own count. */
static void requests_are_counted(void **state)
{
    enum { CYCLES = 100 };
    const char *path = cluster_path("counted");
    struct user u = user_of(path, 2);

    (void)state;
    make_permanent(path, "2");
    for (int try = 0; try < 2; try++) {
        int64_t before = 0, after = 0;
        check_ok(take(&u, 1)); /* the connection's own requests are not in it */
        give(&u, 1);
        check_wait(queued(path) == 0, WAIT_MS);
        check_ok(flw_requests_received(zks_host(), zks_port(server, 0), &before));
        int64_t start = net_now_ms();
        for (int i = 0; i < CYCLES; i++) {
            check_ok(try ? try_take(&u, 1) : take(&u, 1));
            give(&u, 1);
        }
        check_ok(flw_requests_received(zks_host(), zks_port(server, 0), &after));
        print_message("%s: %.3f requests a cycle\n", try ? "try" : "acquire",
                      (double)(after - before - 1) / CYCLES);
        check_num(after - before - 1, >=, CYCLES * (try ? 9 : 7));
        /* Pings, keepalives and heartbeats, but less than one for each cycle. */
        int64_t others = 60 + (net_now_ms() - start) / 100;
        check_num(after - before - 1, <=, CYCLES * (try ? 9 : 7) + others);
    }
    user_end(&u);
}

/* Goal: the semaphore serves requests in the order in which they come. Small requests that would
 * fit do not pass a big one. */
static void a_big_request_is_not_starved(void **state)
{
    const char *path = cluster_path("big");
    struct user a = user_of(path, 3), big = user_of(path, 3), small = user_of(path, 3);

    (void)state;
    check_ok(take(&a, 1));
    begin(&big, 3, path, 1);
    begin(&small, 1, path, 2);
    net_nap_ms(100);
    check_true(!actor_is_done(big.actor) && !actor_is_done(small.actor));
    check_num(leases(path), ==, 4); /* the big one's are there, small waits for its turn */
    give(&a, 1);
    check_ok(actor_result(big.actor));
    check_true(!actor_is_done(small.actor));
    check_num(zkl_permit_still_held(big.permits[2], 1), ==, 1);
    give(&big, 3);
    check_ok(actor_result(small.actor));
    give(&small, 1);
    check_nothing_left(path);
    user_end(&a);
    user_end(&big);
    user_end(&small);
}

/* Goal: a try at a full semaphore says so without a write. While another client is just acquiring,
 * a try waits a while for that client, and no longer. Modes: F42. */
static void a_try_looks_first(void **state)
{
    const char *path = cluster_path("try");
    char made[200];
    int64_t before = 0, after = 0;
    struct user a = user_of(path, 2), b = user_of(path, 2);

    (void)state;
    make_permanent(path, "2");
    check_ok(try_take(&a, 2));
    check_wait(queued(path) == 0, WAIT_MS);
    check_ok(flw_requests_received(zks_host(), zks_port(server, 0), &before));
    int64_t start = net_now_ms();
    check_num(try_take(&b, 1), ==, ZKL_EBUSY);
    check_ok(flw_requests_received(zks_host(), zks_port(server, 0), &after));
    check_num(after - before - 1, >=, 2);                                /* two reads */
    check_num(after - before - 1, <=, 3 + (net_now_ms() - start) / 100); /* keepalives */
    give(&a, 1);
    a.permits[0] = a.permits[1];
    check_num(try_take(&b, 2), ==, ZKL_EBUSY);
    check_ok(try_take(&b, 1));
    give(&b, 1);
    /* There is room, but the inner mutex is somebody's. */
    check_ok(wire_create(raw, cluster_at(below(path, "locks/_c_x-lock-")), "",
                         WIRE_EPHEMERAL | WIRE_SEQUENTIAL, made, sizeof made));
    start = net_now_ms();
    lag_begin();
    check_num(try_take(&b, 1), ==, ZKL_EBUSY);
    check_num(lag_end_ms(), <=, 3000);
    check_num(net_now_ms() - start, >=, 950);
    b.count = 1;
    b.wait.flags = ZKL_WAIT_TRY;
    actor_begin(b.actor, do_take, &b);
    check_wait(queued(path) == 2, WAIT_MS);
    check_ok(wire_delete(raw, made, -1));
    check_ok(actor_result(b.actor));
    give(&b, 1);
    give(&a, 1);
    check_nothing_left(path);
    user_end(&a);
    user_end(&b);
}

/* Goal: a deadline or a cancel ends a request wherever it is, and nothing of it stays: in the queue of
 * the inner mutex, and while it has that and waits for leases. Modes: F40. */
static void an_ended_request_leaves_nothing(void **state)
{
    const char *path = cluster_path("ended");
    struct user a = user_of(path, 2), b = user_of(path, 2), c = user_of(path, 2);
    struct zkl_cancel *cancel;

    (void)state;
    check_ok(take(&a, 1));
    for (int i = 0; i < 2; i++) {
        check_ok(zkl_cancel_new(&cancel));
        b.count = c.count = 2; /* not to be had, whichever of them ends first */
        b.wait = c.wait = (struct zkl_wait)ZKL_WAIT_INIT;
        b.wait.cancel = c.wait.cancel = i == 1 ? cancel : NULL;
        if (i == 0)
            b.wait.deadline_ns = c.wait.deadline_ns =
                zkl_now_ns() + lag_room_ms(2000) * INT64_C(1000000);
        actor_begin(b.actor, do_take, &b);
        check_wait(leases(path) == 3, WAIT_MS);
        actor_begin(c.actor, do_take, &c);
        check_wait(queued(path) == 2, WAIT_MS);
        if (i == 1)
            zkl_cancel_set(cancel);
        check_num(actor_result(b.actor), ==, i == 0 ? ZKL_ETIMEDOUT : ZKL_ECANCELED);
        check_num(actor_result(c.actor), ==, i == 0 ? ZKL_ETIMEDOUT : ZKL_ECANCELED);
        check_wait(leases(path) == 1 && queued(path) == 0, WAIT_MS);
        zkl_cancel_free(cancel);
    }
    b.wait.cancel = NULL;
    check_ok(take(&b, 1));
    give(&a, 1);
    give(&b, 1);
    check_nothing_left(path);
    user_end(&a);
    user_end(&b);
    user_end(&c);
}

/* Goal: the close of a client ends its requests and loses its permits. Other clients continue. */
static void a_closed_client_gives_all_up(void **state)
{
    const char *path = cluster_path("close");
    struct user a = user_of(path, 1), b = user_of(path, 1);

    (void)state;
    check_ok(take(&a, 1));
    begin(&b, 1, path, 1);
    check_wait(leases(path) == 2, WAIT_MS);
    struct user c = user_with(a.client, path, 1);
    begin(&c, 1, path, 2);
    check_closed(zkl_client_close(a.client, WAIT_MS));
    check_num(actor_result(c.actor), ==, ZKL_ECLOSED);
    check_ok(actor_result(b.actor));
    check_num(zkl_permit_still_held(a.permits[0], 0), ==, 0);
    check_num(zkl_permit_release(a.permits[0]), ==, ZKL_ELOST);
    give(&b, 1);
    check_wait(leases(path) == 0 && queued(path) == 0, WAIT_MS);
    actor_end(c.actor);
    check_ok(zkl_semaphore_free(c.semaphore));
    user_end(&a);
    user_end(&b);
}

/* Goal: the end of the session loses the permits, and a request that had the inner mutex begins
 * anew. */
static void an_expired_request_begins_anew(void **state)
{
    const char *path = cluster_path("expired");
    struct zkl_client_options options = cluster_options();
    struct user a = user_of(path, 1);
    char node[300];

    (void)state;
    options.session_timeout_ms = EXPIRING_MS;
    struct user b = user_with(cluster_client_with(&options), path, 1);
    check_ok(take(&a, 1));
    begin(&b, 1, path, 1);
    check_wait(leases(path) == 2, WAIT_MS);
    cluster_child(below(path, "leases"), 1, node, sizeof node);
    inside_expire(b.client);
    check_wait(wire_exists(raw, node, NULL) != 0, WAIT_MS);
    check_wait(leases(path) == 2, WAIT_MS);
    check_true(!actor_is_done(b.actor));
    give(&a, 1);
    check_ok(actor_result(b.actor));
    check_ok(zkl_permit_node_path(b.permits[0], node, sizeof node) > 0 ? 0 : -1);
    inside_expire(b.client);
    check_wait(zkl_permit_token(b.permits[0]) == 0, WAIT_MS);
    check_num(zkl_permit_release(b.permits[0]), ==, ZKL_ELOST);
    check_nothing_left(path);
    user_end(&a);
    user_end(&b);
}

/* Goal: a client can change the number of permits for all. If it grew, a waiter continues. If it
 * shrank, permits that are out stay out. A request for more than there are is refused. */
static void the_number_can_be_changed(void **state)
{
    const char *path = cluster_path("set");
    struct user a = user_of(path, 1), b = user_of(path, 1), c = user_of(path, 0);

    (void)state;
    check_ok(take(&a, 1));
    begin(&b, 1, path, 1);
    check_wait(leases(path) == 2, WAIT_MS);
    check_ok(zkl_semaphore_set_permits(c.semaphore, 2, NULL));
    check_num(zkl_semaphore_permits(c.semaphore), ==, 2);
    check_ok(actor_result(b.actor));
    check_num(zkl_semaphore_permits(b.semaphore), ==, 2);
    check_number(path, "2");
    check_ok(zkl_semaphore_set_permits(c.semaphore, 1, NULL));
    check_num(zkl_permit_still_held(b.permits[0], 1), ==, 1);
    check_num(try_take(&c, 1), ==, ZKL_EBUSY);
    give(&a, 1);
    check_num(try_take(&c, 1), ==, ZKL_EBUSY);
    check_fails(take(&a, 2), ZKL_EINVAL, "has 1 permits");
    begin(&c, 1, path, 1);
    check_wait(leases(path) == 2, WAIT_MS);
    give(&b, 1);
    check_ok(actor_result(c.actor));
    give(&c, 1);
    check_fails(zkl_semaphore_set_permits(c.semaphore, 0, NULL), ZKL_EINVAL, "permits is 0");
    check_nothing_left(path);
    user_end(&a);
    user_end(&b);
    user_end(&c);
}

/* Goal: a request ends with a code if it waits for more permits than the semaphore still has. */
static void a_request_that_got_too_big_is_refused(void **state)
{
    const char *path = cluster_path("toobig");
    struct user a = user_of(path, 3), b = user_of(path, 3);

    (void)state;
    check_ok(take(&a, 1));
    begin(&b, 3, path, 1);
    check_wait(leases(path) == 4, WAIT_MS);
    check_ok(zkl_semaphore_set_permits(a.semaphore, 2, NULL));
    check_num(actor_result(b.actor), ==, ZKL_EINVAL);
    check_wait(leases(path) == 1 && queued(path) == 0, WAIT_MS);
    give(&a, 1);
    check_fails(take(&a, 9), ZKL_EINVAL, "9");
    check_fails(take(&a, 65), ZKL_EINVAL, "65");
    check_nothing_left(path);
    user_end(&a);
    user_end(&b);
}

/* Goal: clients that disagree get an error with both numbers, and leave nothing. A client that
 * names no number takes the one in the node. Modes: F43. */
static void a_mismatch_is_told(void **state)
{
    const char *path = cluster_path("mismatch");
    struct user a = user_of(path, 3), b = user_of(path, 4), c = user_of(path, 0);

    (void)state;
    check_fails(take(&c, 1), ZKL_EMISMATCH, "no number");
    check_wait(queued(path) == 0, WAIT_MS);
    check_ok(take(&a, 1));
    check_fails(take(&b, 1), ZKL_EMISMATCH, "has 3 permits, not 4");
    check_fails(try_take(&b, 1), ZKL_EMISMATCH, "has 3 permits, not 4");
    check_wait(leases(path) == 1 && queued(path) == 0, WAIT_MS);
    check_ok(take(&c, 2));
    check_num(zkl_semaphore_permits(c.semaphore), ==, 3);
    check_num(zkl_semaphore_permits(b.semaphore), ==, 0);
    check_num(zkl_semaphore_free(a.semaphore), ==, ZKL_EBUSY);
    give(&c, 2);
    give(&a, 1);
    check_nothing_left(path);
    user_end(&a);
    user_end(&b);
    user_end(&c);
}

/* Goal: Curator makes `leases` without data. The first client of this library writes the number
 * there. */
static void an_empty_root_gets_its_number(void **state)
{
    const char *path = cluster_path("empty");
    struct user a = user_of(path, 2), b = user_of(path, 0);

    (void)state;
    check_ok(wire_create(raw, cluster_at(path), "", WIRE_CONTAINER, NULL, 0));
    check_ok(wire_create(raw, cluster_at(below(path, "leases")), "", WIRE_CONTAINER, NULL, 0));
    check_fails(take(&b, 1), ZKL_EMISMATCH, "no number");
    check_ok(take(&a, 1));
    check_number(path, "2");
    check_ok(take(&b, 1));
    give(&a, 1);
    give(&b, 1);
    check_nothing_left(path);
    user_end(&a);
    user_end(&b);
}

static struct zkl_permit *noted_permit;

static void note_permit(const struct zkl_hold_event *event, void *arg)
{
    noted_permit = event->mutex ? NULL : event->permit;
    take_note(event, arg);
}

/* Goal: a permit is lost at the end of its lease, and by a deletion. The callback names the
 * permit. */
static void a_lost_permit_is_told(void **state)
{
    const char *path = cluster_path("lost");
    struct notes notes = NOTES_INIT;
    char node[300];
    struct user a = user_of(path, 1);

    (void)state;
    check_ok(zkl_semaphore_set_callback(a.semaphore, note_permit, &notes));
    a.count = 1;
    a.wait.lease_ms = 300;
    check_ok(do_take(&a));
    check_num(zkl_permit_window_ms(a.permits[0]), <=, 300);
    check_note(&notes, 0, ZKL_HOLD_LOST, ZKL_REASON_LEASE_ENDED);
    check_true(noted_permit == a.permits[0]);
    check_num(zkl_permit_renew(a.permits[0], 1000), ==, ZKL_ELOST);
    check_num(zkl_permit_release(a.permits[0]), ==, ZKL_ELOST);
    check_ok(do_take(&a));
    check_ok(zkl_permit_renew(a.permits[0], 60000));
    check_true(zkl_permit_node_path(a.permits[0], node, sizeof node) > 0);
    check_ok(wire_set(raw, cluster_at(node), "__REVOKE__", -1));
    check_note(&notes, 1, ZKL_HOLD_REVOKE_REQUESTED, ZKL_REASON_NONE);
    check_num(zkl_permit_revoke_requested(a.permits[0]), ==, 1);
    check_ok(wire_delete(raw, cluster_at(node), -1));
    check_note(&notes, 2, ZKL_HOLD_LOST, ZKL_REASON_NODE_DELETED);
    check_num(zkl_permit_release(a.permits[0]), ==, ZKL_ELOST);
    check_nothing_left(path);
    user_end(&a);
}

/* Goal: with many threads and clients together never more than n permits are out, and every request
 * is granted. */
static void a_crowd_gets_through(void **state)
{
    enum { CROWD = 6, ROUNDS = 15, PERMITS = 3 };
    const char *path = cluster_path("crowd");
    struct user users[CROWD];

    (void)state;
    for (int i = 0; i < CROWD; i++)
        users[i] = user_of(path, PERMITS);
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < CROWD; i++) {
            users[i].count = 1 + (i + round) % PERMITS;
            users[i].wait = (struct zkl_wait)ZKL_WAIT_INIT;
            actor_begin(users[i].actor, do_take, &users[i]);
        }
        int out = 0, done = 0;
        bool mine[CROWD] = {false};
        while (done < CROWD) {
            for (int i = 0; i < CROWD; i++) {
                if (!mine[i] && actor_is_done(users[i].actor)) {
                    check_ok(actor_result(users[i].actor));
                    mine[i] = true;
                    out += users[i].count;
                    done++;
                }
            }
            check_num(out, <=, PERMITS);
            for (int i = 0; i < CROWD && out > 0; i++) {
                if (!mine[i] || users[i].count == 0)
                    continue;
                out -= users[i].count;
                give(&users[i], users[i].count);
                users[i].count = 0;
            }
        }
    }
    check_nothing_left(path);
    for (int i = 0; i < CROWD; i++)
        user_end(&users[i]);
}

/* --- the mutex made of one permit ------------------------------------------------------------ */

/* Goal: any thread may unlock it, all see one hold, a second lock waits in the same thread too, and the
 * end of a thread gives nothing up. Modes: F55. */
static void the_mutex_belongs_to_its_handle(void **state)
{
    const char *path = cluster_path("mutex");
    struct zkl_client *client = cluster_client();
    struct zkl_mutex *mutex, *other;
    struct zkl_grant grant = ZKL_GRANT_INIT;
    struct actor *actor = actor_new();
    char node[300];

    (void)state;
    check_ok(zkl_semaphore_mutex_new(&mutex, client, path, NULL));
    check_ok(zkl_semaphore_mutex_new(&other, client, path, NULL));
    check_ok(actor_do(actor, do_lock, mutex));
    actor_end(actor);
    actor = actor_new();
    check_num(zkl_mutex_hold_count(mutex), ==, 1);
    check_num(zkl_mutex_still_held(mutex, 1), ==, 1);
    check_true(zkl_mutex_token(mutex) > 0 && zkl_mutex_window_ms(mutex) > 0);
    check_true(zkl_mutex_node_path(mutex, node, sizeof node) > 0);
    check_true(strstr(node, "/leases/_c_") != NULL);
    check_num(zkl_mutex_trylock(mutex), ==, ZKL_EBUSY);
    check_num(zkl_mutex_lock_for(mutex, 50), ==, ZKL_ETIMEDOUT);
    check_num(zkl_mutex_trylock(other), ==, ZKL_EBUSY);
    check_num(zkl_mutex_unlock(other), ==, ZKL_ENOTOWNER);
    check_num(zkl_mutex_hold_count(other), ==, 0);
    check_num(zkl_mutex_free(mutex), ==, ZKL_EBUSY);
    actor_begin(actor, do_lock, other);
    check_wait(leases(path) == 2, WAIT_MS);
    check_ok(zkl_mutex_unlock(mutex));
    check_num(zkl_mutex_unlock(mutex), ==, ZKL_ENOTOWNER);
    check_ok(actor_result(actor));
    check_ok(zkl_mutex_renew(other, 60000));
    check_num(zkl_mutex_revoke_requested(other), ==, 0);
    check_ok(zkl_mutex_unlock(other));
    check_ok(zkl_mutex_acquire(mutex, NULL, &grant));
    check_true(grant.token == zkl_mutex_token(mutex) && grant.hold_count == 1);
    check_ok(zkl_mutex_unlock(mutex));
    check_nothing_left(path);
    actor_end(actor);
    cluster_free(client, mutex, other);
}

/* Goal: a thread has not unlocked a lost hold yet. The next hold waits for that unlock: the two do
 * not get mixed up. */
static void a_lost_hold_is_unlocked_first(void **state)
{
    const char *path = cluster_path("slot");
    struct zkl_client *client = cluster_client();
    struct zkl_mutex *mutex;
    struct actor *actor = actor_new();
    char node[300];

    (void)state;
    check_ok(zkl_semaphore_mutex_new(&mutex, client, path, NULL));
    struct notes notes = NOTES_INIT;
    check_ok(zkl_mutex_set_callback(mutex, take_note, &notes));
    check_ok(zkl_mutex_lock(mutex));
    check_true(zkl_mutex_node_path(mutex, node, sizeof node) > 0);
    check_ok(wire_delete(raw, cluster_at(node), -1));
    check_note(&notes, 0, ZKL_HOLD_LOST, ZKL_REASON_NODE_DELETED);
    actor_begin(actor, do_lock, mutex);
    check_wait(leases(path) == 1 && queued(path) == 0, WAIT_MS);
    net_nap_ms(50);
    check_true(!actor_is_done(actor));
    check_num(zkl_mutex_unlock(mutex), ==, ZKL_ELOST);
    check_ok(actor_result(actor));
    check_num(zkl_mutex_still_held(mutex, 1), ==, 1);
    check_ok(zkl_mutex_unlock(mutex));
    check_nothing_left(path);
    actor_end(actor);
    cluster_free(client, mutex);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cluster_test(at_most_n_are_out),
        cluster_test(a_permit_belongs_to_no_thread),
        cluster_test(requests_are_counted),
        cluster_test(a_big_request_is_not_starved),
        cluster_test(a_try_looks_first),
        cluster_test(an_ended_request_leaves_nothing),
        cluster_test(a_closed_client_gives_all_up),
        cluster_test(an_expired_request_begins_anew),
        cluster_test(the_number_can_be_changed),
        cluster_test(a_request_that_got_too_big_is_refused),
        cluster_test(a_mismatch_is_told),
        cluster_test(an_empty_root_gets_its_number),
        cluster_test(a_lost_permit_is_told),
        cluster_test(a_crowd_gets_through),
        cluster_test(the_mutex_belongs_to_its_handle),
        cluster_test(a_lost_hold_is_unlocked_first),
    };
    return CLUSTER_MAIN(argc, argv, "semaphore", tests);
}
