/* SPDX-License-Identifier: Apache-2.0 */
/* The multi-lock: all or none, in the order of the paths, in few requests. */
#include "cluster.h"

#include "inside.h"
#include "notes.h"
#include "nodes.h"

#include <stdio.h>
#include <string.h>

#define MEMBERS 4

struct set {
    struct zkl_client *client;
    struct zkl_mutex *mutexes[MEMBERS];
    struct zkl_multi *multi;
};

static const char *paths_of(const char *name)
{
    static char base[64];
    snprintf(base, sizeof base, "%s", cluster_path(name));
    return base;
}

static const char *member_path(const char *base, int i)
{
    static char paths[8][96];
    static unsigned last;
    char *path = paths[++last % 8];
    snprintf(path, sizeof paths[0], "%s/%d", base, i);
    return path;
}

/* Members in the order given, by number. */
static struct set set_of(struct zkl_client *client, const char *base, const int *order)
{
    struct set s = {.client = client};
    struct zkl_member members[MEMBERS];
    for (int i = 0; i < MEMBERS; i++) {
        s.mutexes[i] = world_mutex(client, member_path(base, order[i]));
        members[i] = zkl_member_mutex(s.mutexes[i]);
    }
    s.multi = world_multi(client, members, MEMBERS);
    return s;
}

static const int forwards[] = {0, 1, 2, 3}, backwards[] = {3, 2, 1, 0};

static int all_children(const char *base)
{
    int n = 0;
    for (int i = 0; i < MEMBERS; i++)
        n += cluster_children(member_path(base, i));
    return n;
}

static int do_multi_trylock(void *multi)
{
    return zkl_multi_trylock(multi);
}

struct with_wait {
    struct zkl_multi *multi;
    struct zkl_wait *wait;
};

static int acquire_with(void *arg)
{
    const struct with_wait *call = arg;
    return zkl_multi_acquire(call->multi, call->wait, NULL);
}

/* Goal: a multi-lock acquires all members together and releases them together, each with its token.
 * A member is the same hold that its mutex has. */
WORLD_TEST(all_are_held_and_given_back)
{
    const char *base = paths_of("all");
    struct zkl_client *client = world_client();
    struct set s = set_of(client, base, backwards);
    struct zkl_grant grants[MEMBERS];
    int codes[MEMBERS];
    char node[300], same[300];

    for (int i = 0; i < MEMBERS; i++)
        grants[i] = (struct zkl_grant)ZKL_GRANT_INIT;
    check_ok(zkl_multi_acquire(s.multi, NULL, grants));
    check_num(all_children(base), ==, MEMBERS);
    for (int i = 0; i < MEMBERS; i++) {
        check_true(grants[i].token > 0 && grants[i].token == zkl_multi_token(s.multi, (size_t)i));
        check_true(grants[i].token == zkl_mutex_token(s.mutexes[i]));
        check_num(zkl_multi_node_path(s.multi, (size_t)i, node, sizeof node), ==, strlen(node));
        check_num(zkl_mutex_node_path(s.mutexes[i], same, sizeof same), >, 0);
        check_text(node, same);
        check_num(grants[i].hold_count, ==, 1);
        check_num(grants[i].window_ms, >, 0);
    }
    check_true(zkl_multi_token(s.multi, MEMBERS) == 0);
    check_num(zkl_multi_node_path(s.multi, MEMBERS, node, sizeof node), ==, ZKL_EINVAL);
    check_ok(zkl_multi_lock(s.multi));
    check_num(zkl_mutex_hold_count(s.mutexes[2]), ==, 2);
    check_ok(zkl_multi_unlock(s.multi, NULL));
    check_ok(zkl_multi_unlock(s.multi, codes));
    for (int i = 0; i < MEMBERS; i++)
        check_ok(codes[i]);
    check_num(all_children(base), ==, 0);
}

/* Goal: while another client has one member, the call queues for no member behind it, and holds
 * those before it. Then it holds all. Method: another client holds each member in turn. Modes: F24,
 * F26. */
WORLD_TEST(nothing_is_queued_behind_the_first_contended)
{
    struct zkl_client *client = world_client(), *other = world_client();
    struct actor *actor = world_actor();

    for (int taken = 0; taken < MEMBERS; taken++) {
        const char *base = paths_of("behind");
        struct set s = set_of(client, base, backwards);
        struct zkl_mutex *single = world_mutex(other, member_path(base, taken));
        check_ok(zkl_mutex_lock(single));
        actor_begin(actor, do_multi_lock, s.multi);
        check_wait(cluster_children(member_path(base, taken)) == 2, WAIT_MS);
        check_wait(all_children(base) == taken + 2, WAIT_MS);
        net_nap_ms(20);
        for (int i = 0; i < MEMBERS; i++)
            check_num(cluster_children(member_path(base, i)), ==,
                      i < taken ? 1 : (i == taken ? 2 : 0));
        check_true(!actor_is_done(actor));
        check_ok(zkl_mutex_unlock(single));
        check_ok(actor_result(actor));
        check_num(all_children(base), ==, MEMBERS);
        check_ok(actor_do(actor, do_multi_unlock, s.multi));
        check_num(all_children(base), ==, 0);
    }
    check_num(flw_watch_count(zks_host(), zks_port(server, 0), NULL), ==, 0);
}

/* Goal: the call enters again what the thread holds already, and the thread still holds it
 * afterwards. The library refuses a call that would wait for its own thread, before any request.
 * Modes: F26. */
WORLD_TEST(held_members_are_entered_again)
{
    const char *base = paths_of("held");
    struct zkl_client *client = world_client();
    struct set s = set_of(client, base, forwards);
    struct zkl_mutex *twin = world_mutex(client, member_path(base, 1));
    struct zkl_member same[2];

    for (int i = 0; i < MEMBERS; i++) /* nothing to acquire needs no time */
        check_ok(zkl_mutex_lock(s.mutexes[i]));
    check_ok(zkl_multi_lock_for(s.multi, 0));
    check_ok(zkl_multi_unlock(s.multi, NULL));
    for (int i = 0; i < MEMBERS - 1; i++)
        check_ok(zkl_mutex_unlock(s.mutexes[i]));
    check_ok(zkl_multi_lock(s.multi));
    check_num(zkl_mutex_hold_count(s.mutexes[3]), ==, 2);
    check_ok(zkl_multi_unlock(s.multi, NULL));
    check_num(zkl_mutex_hold_count(s.mutexes[3]), ==, 1);
    check_num(all_children(base), ==, 1);
    check_ok(zkl_mutex_unlock(s.mutexes[3]));

    check_ok(zkl_mutex_lock(twin));
    check_num(zkl_multi_lock(s.multi), ==, ZKL_EDEADLK);
    check_num(all_children(base), ==, 1);
    check_ok(zkl_mutex_unlock(twin));
    same[0] = zkl_member_mutex(s.mutexes[1]);
    same[1] = zkl_member_mutex(twin);
    struct zkl_multi *multi;
    check_num(zkl_multi_new(&multi, client, same, 2), ==, ZKL_EDEADLK);
    same[1].mutex = NULL;
    check_num(zkl_multi_new(&multi, client, same, 2), ==, ZKL_EINVAL);
    check_num(zkl_multi_new(&multi, client, same, 0), ==, ZKL_EINVAL);
    check_num(zkl_multi_new(&multi, client, same, 65), ==, ZKL_EINVAL);
}

/* Goal: halves of read-write locks are members like others: readers share, a write over the thread's
 * own read is refused. */
WORLD_TEST(halves_of_read_write_locks_are_members)
{
    const char *base = paths_of("halves");
    struct zkl_client *client = world_client(), *other = world_client();
    struct zkl_mutex *plain = world_mutex(client, member_path(base, 1));
    struct zkl_member members[2] = {zkl_member_mutex(plain)};

    struct zkl_rwlock *rw = world_rwlock(client, member_path(base, 0), NULL);
    struct zkl_rwlock *its = world_rwlock(other, member_path(base, 0), NULL);
    members[1] = zkl_member_mutex(zkl_rwlock_reader(rw));
    struct zkl_multi *reading = world_multi(client, members, 2);
    members[1] = zkl_member_mutex(zkl_rwlock_writer(rw));
    struct zkl_multi *writing = world_multi(client, members, 2);
    check_ok(zkl_mutex_lock(zkl_rwlock_reader(its)));
    check_ok(zkl_multi_lock(reading));
    check_num(zkl_multi_lock(writing), ==, ZKL_EDEADLK);
    check_ok(zkl_multi_unlock(reading, NULL));
    check_num(zkl_multi_trylock(writing), ==, ZKL_EBUSY);
    check_ok(zkl_mutex_unlock(zkl_rwlock_reader(its)));
    check_ok(zkl_multi_lock(writing));
    check_ok(zkl_multi_lock(reading)); /* under the write lock */
    check_ok(zkl_multi_unlock(writing, NULL));
    check_num(zkl_mutex_trylock(zkl_rwlock_writer(its)), ==, ZKL_EBUSY);
    check_ok(zkl_multi_unlock(reading, NULL));
    check_wait(all_children(base) == 0, WAIT_MS);
}

/* Goal: semaphores and mutexes that any thread may unlock are members too: all or none, each permit
 * counted once for the whole, whatever order they are given in. */
WORLD_TEST(semaphores_are_members)
{
    const char *base = paths_of("permits");
    char path[96], node[300];
    struct zkl_client *client = world_client(), *other = world_client();
    struct zkl_mutex *plain = world_mutex(client, member_path(base, 2));
    struct zkl_permit *permits[2];
    struct zkl_grant grants[3];
    int codes[3];

    snprintf(path, sizeof path, "%s", member_path(base, 1));
    struct zkl_semaphore *semaphore = world_semaphore(client, path, 3, NULL);
    struct zkl_semaphore *its = world_semaphore(other, path, 3, NULL);
    struct zkl_mutex *loose = world_semaphore_mutex(client, member_path(base, 0));
    const struct zkl_member members[3] = {
        zkl_member_mutex(plain), zkl_member_semaphore(semaphore, 2), zkl_member_mutex(loose)};
    struct zkl_multi *multi = world_multi(client, members, 3);
    for (int i = 0; i < 3; i++)
        grants[i] = (struct zkl_grant)ZKL_GRANT_INIT;
    check_ok(zkl_multi_acquire(multi, NULL, grants));
    for (int i = 0; i < 3; i++) {
        check_true(grants[i].token > 0 && zkl_multi_token(multi, (size_t)i) == grants[i].token);
        check_true(grants[i].window_ms > 0 && grants[i].hold_count == 1);
        check_num(zkl_multi_node_path(multi, (size_t)i, node, sizeof node), >, 0);
        check_num(wire_exists(raw, cluster_at(node), NULL), ==, 0);
    }
    check_ok(zkl_semaphore_acquire(its, 1, NULL, permits));
    check_ok(zkl_multi_lock(multi)); /* the permits that it has are enough */
    check_num(zkl_mutex_hold_count(plain), ==, 2);
    check_ok(zkl_multi_unlock(multi, NULL));
    check_num(zkl_multi_still_held(multi, 1), ==, 1);
    check_ok(zkl_multi_unlock(multi, codes));
    check_true(codes[0] == 0 && codes[1] == 0 && codes[2] == 0);
    check_ok(zkl_semaphore_acquire(its, 1, NULL, permits + 1));
    check_num(zkl_multi_trylock(multi), ==, ZKL_EBUSY); /* one permit is left */
    check_num(zkl_mutex_hold_count(plain), ==, 0);
    check_wait(cluster_children(member_path(base, 2)) == 0, WAIT_MS);
    int ms = 100; /* a busy machine needs longer to come as far as the permits */
    do
        check_num(zkl_multi_lock_for(multi, ms), ==, ZKL_ETIMEDOUT);
    while (strstr(zkl_error_detail(), path) == NULL && (ms *= 2) < WAIT_MS);
    check_true(strstr(zkl_error_detail(), path) != NULL);
    check_ok(zkl_permit_release(permits[0]));
    check_ok(zkl_multi_lock(multi));
    check_ok(zkl_multi_unlock(multi, NULL));
    check_ok(zkl_permit_release(permits[1]));
}

/* Goal: named locks of one path are different locks, for one thread too. */
WORLD_TEST(named_locks_of_one_path_are_different_locks)
{
    const char *path = cluster_path("names");
    struct zkl_client *client = world_client();
    struct zkl_mutex_options options = ZKL_MUTEX_OPTIONS_INIT;

    options.names = ZKL_NAMES_NAMED;
    options.name = "alpha";
    struct zkl_mutex *alpha = world_mutex_with(client, path, &options);
    struct zkl_mutex *again = world_mutex_with(client, path, &options);
    options.name = "beta";
    struct zkl_mutex *beta = world_mutex_with(client, path, &options);
    check_ok(zkl_mutex_lock(alpha));
    check_ok(zkl_mutex_trylock(beta));
    check_num(zkl_mutex_trylock(again), ==, ZKL_EDEADLK);
    check_ok(zkl_mutex_unlock(alpha));
    check_ok(zkl_mutex_unlock(beta));
    const struct zkl_member two[2] = {zkl_member_mutex(beta), zkl_member_mutex(alpha)};
    struct zkl_multi *multi = world_multi(client, two, 2);
    check_ok(zkl_multi_lock(multi));
    check_num(cluster_children(path), ==, 2);
    check_ok(zkl_multi_unlock(multi, NULL));
    const struct zkl_member same[2] = {zkl_member_mutex(again), zkl_member_mutex(alpha)};
    check_num(zkl_multi_new(&multi, client, same, 2), ==, ZKL_EDEADLK);
}

/* Goal: a member whose node was deleted does not keep unlock from releasing the others. Unlock
 * returns the code of that member. */
WORLD_TEST(the_rest_is_given_back_when_one_is_lost)
{
    const char *base = paths_of("lost");
    int codes[MEMBERS];
    struct zkl_client *client = world_client();
    struct set s = set_of(client, base, forwards);

    check_ok(zkl_multi_lock(s.multi));
    check_ok(wire_delete(raw, node_of(s.mutexes[1]), -1));
    check_num(zkl_multi_unlock(s.multi, codes), ==, ZKL_ELOST);
    for (int i = 0; i < MEMBERS; i++)
        check_num(codes[i], ==, i == 1 ? ZKL_ELOST : 0);
    check_num(all_children(base), ==, 0);
    check_ok(zkl_multi_lock(s.multi));
    check_ok(zkl_mutex_unlock(s.mutexes[2]));
    check_num(zkl_multi_unlock(s.multi, codes), ==, ZKL_ENOTOWNER);
    check_num(codes[2], ==, ZKL_ENOTOWNER);
    check_num(all_children(base), ==, 0);
}

/* Goal: a mutex that belongs to no thread is unlocked and locked again by another thread. It is no
 * longer the multi-lock's: the multi-lock does not release it with the others, nor at the end of
 * the thread, and does not count it as held. */
WORLD_TEST(what_was_unlocked_by_itself_stays)
{
    const char *base = paths_of("itself");
    struct zkl_client *client = world_client();
    struct zkl_mutex *plain = world_mutex(client, member_path(base, 1));
    struct actor *actor = world_actor();
    int codes[2];

    struct zkl_mutex *loose = world_semaphore_mutex(client, member_path(base, 0));
    const struct zkl_member members[2] = {zkl_member_mutex(loose), zkl_member_mutex(plain)};
    struct zkl_multi *multi = world_multi(client, members, 2);
    check_ok(zkl_multi_lock(multi));
    check_ok(actor_do(actor, do_unlock, loose));
    check_ok(actor_do(actor, do_lock, loose));
    check_num(zkl_multi_still_held(multi, 0), ==, 0);
    check_num(zkl_multi_token(multi, 0), ==, 0);
    check_num(zkl_multi_lock(multi), ==, ZKL_ELOST);
    check_num(zkl_multi_unlock(multi, codes), ==, ZKL_ENOTOWNER);
    check_true(codes[0] == ZKL_ENOTOWNER && codes[1] == 0);
    check_num(zkl_mutex_still_held(loose, 1), ==, 1);
    check_ok(zkl_mutex_unlock(loose));

    check_ok(actor_do(actor, do_multi_lock, multi));
    check_ok(zkl_mutex_unlock(loose));
    check_ok(zkl_mutex_lock(loose));
    world_drop(actor);
    check_wait(cluster_children(member_path(base, 1)) == 0, WAIT_MS);
    check_num(zkl_mutex_still_held(loose, 1), ==, 1);
    check_ok(zkl_mutex_unlock(loose));
}

/* --- while the second of two is waited for ------------------------------------------------------- */

struct pair {
    struct zkl_client *client, *other;
    struct zkl_mutex *first, *second, *rival; /* the rival holds the second's path */
    struct zkl_multi *multi;
    struct zkl_wait wait;
    char paths[2][80];
    struct notes notes; /* of the first, to notice a deletion immediately */
    int held, requested;
    struct actor *actor;
};

static struct pair *pair_open(void)
{
    struct pair *p = world_alloc(sizeof *p);
    struct zkl_mutex_options options = ZKL_MUTEX_OPTIONS_INIT;
    options.revocable = 1;
    *p = (struct pair){.client = world_client(), .other = world_client(), .actor = world_actor()};
    p->notes = (struct notes)NOTES_INIT;
    p->wait = (struct zkl_wait)ZKL_WAIT_INIT;
    snprintf(p->paths[0], sizeof p->paths[0], "%s/a", paths_of("pair"));
    snprintf(p->paths[1], sizeof p->paths[1], "%.70s/b", paths_of("pair"));
    p->first = world_mutex_with(p->client, p->paths[0], &options);
    check_ok(zkl_mutex_set_callback(p->first, take_note, &p->notes));
    p->second = world_mutex(p->client, p->paths[1]);
    p->rival = world_mutex(p->other, p->paths[1]);
    const struct zkl_member members[2] = {zkl_member_mutex(p->first), zkl_member_mutex(p->second)};
    p->multi = world_multi(p->client, members, 2);
    check_ok(zkl_mutex_lock(p->rival));
    return p;
}

static int pair_acquire(void *arg)
{
    struct pair *p = arg;
    int rc = zkl_multi_acquire(p->multi, &p->wait, NULL);
    p->held = zkl_multi_still_held(p->multi, 1);
    p->requested = zkl_mutex_revoke_requested(p->first);
    return rc;
}

static int pair_acquire_after_first(void *arg)
{
    struct pair *p = arg;
    int rc = zkl_mutex_lock(p->first);
    return rc != 0 ? rc : pair_acquire(p);
}

static int pair_release(void *arg)
{
    struct pair *p = arg;
    return zkl_multi_unlock(p->multi, NULL);
}

static void pair_begin(struct pair *p, actor_fn fn)
{
    actor_begin(p->actor, fn, p);
    check_wait(cluster_children(p->paths[1]) == 2 && cluster_children(p->paths[0]) == 1, WAIT_MS);
}

/* Another session deletes the first member's node. With again the call must acquire that member
 * anew. */
static void pair_lose_first(struct pair *p, bool again)
{
    char node[700];
    cluster_child(p->paths[0], 0, node, sizeof node);
    check_ok(wire_delete(raw, node, -1));
    if (again)
        check_wait(cluster_children(p->paths[0]) == 1 && cluster_children(p->paths[1]) == 2,
                   WAIT_MS);
}

static void pair_close(struct pair *p)
{
    check_wait(cluster_children(p->paths[0]) == 0 && cluster_children(p->paths[1]) == 0, WAIT_MS);
}

/* Goal: a lease begins when all are held, however long the last one was waited for. */
WORLD_TEST(a_lease_begins_with_the_whole)
{
    struct pair *p = pair_open();

    p->wait.lease_ms = 1000;
    pair_begin(p, pair_acquire);
    net_nap_ms(1200);
    check_ok(zkl_mutex_unlock(p->rival));
    check_ok(actor_result(p->actor));
    check_num(p->held, ==, 1);
    check_wait(cluster_children(p->paths[0]) == 0, WAIT_MS);
    check_num(actor_do(p->actor, pair_release, p), ==, ZKL_ELOST);
    pair_close(p);
}

/* Goal: a member may be lost more than once. The call returns only with all members held. No
 * callback runs for a hold that the caller never had. */
WORLD_TEST(a_member_may_be_lost_twice)
{
    struct pair *p = pair_open();

    pair_begin(p, pair_acquire);
    pair_lose_first(p, true);
    pair_lose_first(p, true);
    check_ok(zkl_mutex_unlock(p->rival));
    check_ok(actor_result(p->actor));
    check_num(p->held, ==, 1);
    check_num(noted(&p->notes), ==, 0);
    check_ok(actor_do(p->actor, pair_release, p));
    pair_close(p);
}

/* Goal: a member that the thread held before and that is lost meanwhile ends the call: ZKL_ELOST, and the
 * thread's own unlock is due. */
WORLD_TEST(a_hold_from_before_may_be_lost)
{
    struct pair *p = pair_open();

    pair_begin(p, pair_acquire_after_first);
    pair_lose_first(p, false);
    check_wait(noted(&p->notes) == 1, WAIT_MS);
    check_ok(zkl_mutex_unlock(p->rival));
    check_num(actor_result(p->actor), ==, ZKL_ELOST);
    check_num(actor_do(p->actor, pair_release, p), ==, ZKL_ENOTOWNER);
    check_num(actor_do(p->actor, do_unlock, p->first), ==, ZKL_ELOST);
    pair_close(p);
}

/* Goal: permits, and a mutex of a semaphore, are lost while the call waits for another member. The
 * call acquires them again, and the mutexes between them. No callback runs for a hold that the
 * caller never had. Method: each part in turn, that of the caller at last. */
WORLD_TEST(a_part_lost_on_the_way_is_acquired_again)
{
    const char *base = paths_of("parts");
    struct zkl_client *client = world_client(), *other = world_client();
    struct zkl_mutex *first = world_mutex(client, member_path(base, 1));
    struct zkl_mutex *second = world_mutex(client, member_path(base, 2));
    struct zkl_mutex *last = world_mutex(client, member_path(base, 4));
    struct zkl_mutex *rival = world_mutex(other, member_path(base, 4));
    static struct notes notes = NOTES_INIT;
    struct actor *actor = world_actor();
    char places[4][120], node[700];

    struct zkl_mutex *loose = world_semaphore_mutex(client, member_path(base, 0));
    struct zkl_semaphore *semaphore = world_semaphore(client, member_path(base, 3), 2, NULL);
    check_ok(zkl_mutex_set_callback(loose, take_note, &notes));
    check_ok(zkl_mutex_set_callback(first, take_note, &notes));
    check_ok(zkl_mutex_set_callback(second, take_note, &notes));
    check_ok(zkl_semaphore_set_callback(semaphore, take_note, &notes));
    const struct zkl_member members[] = {zkl_member_mutex(last), zkl_member_semaphore(semaphore, 2),
                                         zkl_member_mutex(second), zkl_member_mutex(first),
                                         zkl_member_mutex(loose)};
    struct zkl_multi *multi = world_multi(client, members, 5);
    snprintf(places[0], sizeof places[0], "%s/leases", member_path(base, 0));
    snprintf(places[1], sizeof places[1], "%s", member_path(base, 1));
    snprintf(places[2], sizeof places[2], "%s", member_path(base, 2));
    snprintf(places[3], sizeof places[3], "%s/leases", member_path(base, 3));

    check_ok(zkl_mutex_lock(rival));
    actor_begin(actor, do_multi_lock, multi);
    for (int i = 0; i < 4; i++) {
        char again[700] = "";
        check_wait(cluster_children(member_path(base, 4)) == 2, WAIT_MS);
        cluster_child(places[i], 0, node, sizeof node);
        check_ok(wire_delete(raw, node, -1));
        for (int64_t end = net_now_ms() + WAIT_MS; net_now_ms() < end; net_nap_ms(1)) {
            if (cluster_children(places[i]) != (i == 3 ? 2 : 1))
                continue;
            cluster_child(places[i], 0, again, sizeof again);
            if (strcmp(again, node) != 0)
                break;
        }
        check_true(strcmp(again, node) != 0);
    }
    check_wait(cluster_children(member_path(base, 4)) == 2, WAIT_MS);
    check_num(noted(&notes), ==, 0);
    check_true(!actor_is_done(actor));
    check_ok(zkl_mutex_unlock(rival));
    check_ok(actor_result(actor));
    for (int i = 0; i < 4; i++)
        check_num(cluster_children(places[i]), ==, i == 3 ? 2 : 1);
    check_num(zkl_mutex_hold_count(loose), ==, 1);
    check_num(noted(&notes), ==, 0);
    check_ok(actor_do(actor, do_multi_unlock, multi));
    for (int i = 0; i < 4; i++)
        check_num(cluster_children(places[i]), ==, 0);
}

/* --- parts that are given up on the way ----------------------------------------------------------- */

/* A mutex that is handed on in its process, between two that belong to no thread. Behind them is a
 * mutex that another client holds. An actor waits for all of them with that cancel object. */
struct parts {
    struct zkl_client *client, *other;
    struct zkl_mutex *first, *handed, *third, *last, *rival, *first_rival;
    struct zkl_multi *multi;
    struct zkl_wait wait;
    char first_leases[120], handed_path[96], third_leases[120], last_path[96];
    struct notes notes; /* of the first, to notice a deletion immediately */
    struct actor *actor, *neighbour;
};

static struct parts *parts_open(const char *name)
{
    struct parts *p = world_alloc(sizeof *p);
    struct zkl_mutex_options options = ZKL_MUTEX_OPTIONS_INIT;
    const char *base = paths_of(name);
    options.local_handoffs_max = 3;
    *p = (struct parts){.client = world_client(), .other = world_client()};
    p->actor = world_actor();
    p->neighbour = world_actor();
    p->notes = (struct notes)NOTES_INIT;
    p->wait = (struct zkl_wait)ZKL_WAIT_INIT;
    p->wait.cancel = world_cancel();
    snprintf(p->first_leases, sizeof p->first_leases, "%s/leases", member_path(base, 0));
    snprintf(p->handed_path, sizeof p->handed_path, "%s", member_path(base, 1));
    snprintf(p->third_leases, sizeof p->third_leases, "%s/leases", member_path(base, 2));
    snprintf(p->last_path, sizeof p->last_path, "%s", member_path(base, 3));
    p->first = world_semaphore_mutex(p->client, member_path(base, 0));
    p->first_rival = world_semaphore_mutex(p->other, member_path(base, 0));
    check_ok(zkl_mutex_set_callback(p->first, take_note, &p->notes));
    p->handed = world_mutex_with(p->client, p->handed_path, &options);
    p->third = world_semaphore_mutex(p->client, member_path(base, 2));
    p->last = world_mutex(p->client, p->last_path);
    p->rival = world_mutex(p->other, p->last_path);
    const struct zkl_member members[] = {zkl_member_mutex(p->first), zkl_member_mutex(p->handed),
                                         zkl_member_mutex(p->third), zkl_member_mutex(p->last)};
    p->multi = world_multi(p->client, members, 4);
    check_ok(zkl_mutex_lock(p->rival));
    return p;
}

static int parts_acquire(void *arg)
{
    struct parts *p = arg;
    return zkl_multi_acquire(p->multi, &p->wait, NULL);
}

static void parts_lose_first(const struct parts *p)
{
    char node[700];
    cluster_child(p->first_leases, 0, node, sizeof node);
    check_ok(wire_delete(raw, node, -1));
}

static void parts_close(struct parts *p)
{
    check_ok(zkl_mutex_unlock(p->rival));
    check_wait(cluster_children(p->first_leases) == 0, WAIT_MS);
    check_wait(cluster_children(p->handed_path) == 0, WAIT_MS);
    check_wait(cluster_children(p->third_leases) == 0, WAIT_MS);
    check_wait(cluster_children(p->last_path) == 0, WAIT_MS);
}

/* Goal: a part that a call gives up on its way no longer belongs to that call. The thread that has
 * it then keeps it, however that call ends. Method: the first part is lost while another thread of
 * the process waits for the second. */
WORLD_TEST(a_part_given_up_is_somebody_elses)
{
    struct parts *p = parts_open("elses");

    actor_begin(p->actor, parts_acquire, p);
    check_wait(cluster_children(p->last_path) == 2, WAIT_MS);
    actor_begin(p->neighbour, do_lock, p->handed);
    check_wait(inside_waiting(p->handed) == 1, WAIT_MS);
    parts_lose_first(p);
    check_ok(actor_result(p->neighbour));
    check_wait(cluster_children(p->first_leases) == 1, WAIT_MS);
    zkl_cancel_set(p->wait.cancel);
    check_num(actor_result(p->actor), ==, ZKL_ECANCELED);
    check_wait(cluster_children(p->first_leases) == 0, WAIT_MS); /* its delete comes last */
    check_num(cluster_children(p->handed_path), ==, 1);
    check_ok(actor_do(p->neighbour, do_unlock, p->handed));
    parts_close(p);
}

/* Goal: the same for a part that was handed on to the call. The call gives up a part only once.
 * Method: another client has the first part next, so that the call ends while it has nothing. */
WORLD_TEST(a_part_is_given_up_once)
{
    struct parts *p = parts_open("once");

    check_ok(actor_do(p->neighbour, do_lock, p->handed));
    actor_begin(p->actor, parts_acquire, p);
    check_wait(cluster_children(p->first_leases) == 1, WAIT_MS);
    check_wait(inside_waiting(p->handed) == 1, WAIT_MS);
    check_ok(actor_do(p->neighbour, do_unlock, p->handed));
    check_wait(cluster_children(p->last_path) == 2, WAIT_MS);
    actor_begin(p->neighbour, do_lock, p->first_rival);
    check_wait(cluster_children(p->first_leases) == 2, WAIT_MS);
    parts_lose_first(p);
    check_ok(actor_result(p->neighbour));
    check_wait(cluster_children(p->handed_path) == 0, WAIT_MS);
    zkl_cancel_set(p->wait.cancel);
    check_num(actor_result(p->actor), ==, ZKL_ECANCELED);
    check_ok(actor_do(p->neighbour, do_unlock, p->first_rival));
    parts_close(p);
}

/* Goal: a mutex may be freed as soon as no call uses it, even if a delete of its node is still
 * under way. Method: a multi-lock gives up a part that is handed on in its process. The proxy holds
 * the delete back, and the test frees the handle immediately. */
WORLD_TEST(a_part_given_up_can_be_freed)
{
    const char *base = paths_of("freed");
    struct zkl_client_options options = cluster_options();
    struct zkl_mutex_options handing = ZKL_MUTEX_OPTIONS_INIT;
    struct parts p = {.wait = ZKL_WAIT_INIT};
    char leases[120];

    struct proxy *proxy = world_proxy_for(&options);
    p.client = world_client_with(&options);
    p.other = world_client();
    p.actor = world_actor();
    handing.local_handoffs_max = 3;
    handing.retain_ms = 60000;
    snprintf(leases, sizeof leases, "%s/leases", member_path(base, 1));
    p.wait.cancel = world_cancel();
    p.handed = world_mutex_with(p.client, member_path(base, 0), &handing);
    p.last = world_semaphore_mutex(p.client, member_path(base, 1));
    p.rival = world_semaphore_mutex(p.other, member_path(base, 1));
    check_ok(zkl_mutex_lock(p.rival));
    const struct zkl_member members[] = {zkl_member_mutex(p.handed), zkl_member_mutex(p.last)};
    p.multi = world_multi(p.client, members, 2);
    actor_begin(p.actor, parts_acquire, &p);
    check_wait(cluster_children(leases) == 2, WAIT_MS);
    check_ok(proxy_hold_request(proxy, PROXY_DELETE, 1));
    zkl_cancel_set(p.wait.cancel);
    check_num(actor_result(p.actor), ==, ZKL_ECANCELED);
    world_drop(p.multi);
    world_drop(p.handed);
    proxy_release(proxy);
    check_wait(cluster_children(member_path(base, 0)) == 0, WAIT_MS);
    check_ok(zkl_mutex_unlock(p.rival));
}

/* Goal: a call also gives up members only once that it queued for together, after one of them was
 * lost. Method: the test cancels the call while the proxy holds back the answer to the delete of
 * the other one. A sanitizer sees what else would stay. */
WORLD_TEST(members_are_given_up_once)
{
    const char *base = paths_of("group");
    struct zkl_client_options options = cluster_options();
    struct zkl_wait wait = ZKL_WAIT_INIT;
    static struct notes notes = NOTES_INIT;
    struct actor *actor = world_actor();
    char node[700];

    struct proxy *proxy = world_proxy_for(&options);
    struct zkl_client *client = world_client_with(&options), *other = world_client();
    struct zkl_mutex *first = world_mutex(client, member_path(base, 0));
    struct zkl_mutex *second = world_mutex(client, member_path(base, 1));
    struct zkl_mutex *third = world_semaphore_mutex(client, member_path(base, 2));
    struct zkl_mutex *rival = world_semaphore_mutex(other, member_path(base, 2));
    check_ok(zkl_mutex_set_callback(second, take_note, &notes));
    wait.cancel = world_cancel();
    const struct zkl_member members[] = {zkl_member_mutex(first), zkl_member_mutex(second),
                                         zkl_member_mutex(third)};
    struct zkl_multi *multi = world_multi(client, members, 3);
    check_ok(zkl_mutex_lock(rival));
    struct with_wait call = {multi, &wait};
    actor_begin(actor, acquire_with, &call);
    snprintf(node, sizeof node, "%s/leases", member_path(base, 2));
    check_wait(cluster_children(node) == 2, WAIT_MS);
    check_ok(proxy_hold_reply(proxy, PROXY_DELETE, 1));
    cluster_child(member_path(base, 1), 0, node, sizeof node);
    check_ok(wire_delete(raw, node, -1));
    check_ok(proxy_wait_held(proxy, WAIT_MS));
    zkl_cancel_set(wait.cancel);
    check_num(actor_result(actor), ==, ZKL_ECANCELED);
    proxy_release(proxy);
    check_num(actor_do(actor, do_multi_trylock, multi), ==, ZKL_EBUSY);
    check_ok(zkl_mutex_unlock(rival));
    check_ok(actor_do(actor, do_multi_lock, multi));
    check_ok(actor_do(actor, do_multi_unlock, multi));
    check_num(noted(&notes), ==, 0);
}

/* Goal: a request to release is not lost if it comes while the call waits for other members. */
WORLD_TEST(a_request_on_the_way_counts)
{
    char node[700];
    struct pair *p = pair_open();

    pair_begin(p, pair_acquire);
    cluster_child(p->paths[0], 0, node, sizeof node);
    check_ok(wire_set(raw, node, "__REVOKE__", -1));
    check_wait(inside_knows_request(p->client), WAIT_MS);
    check_ok(zkl_mutex_unlock(p->rival));
    check_ok(actor_result(p->actor));
    check_num(p->requested, ==, 1);
    check_wait(noted(&p->notes) == 1, WAIT_MS);
    check_num(p->notes.list[0].state, ==, ZKL_HOLD_REVOKE_REQUESTED);
    check_ok(actor_do(p->actor, pair_release, p));
    pair_close(p);
}

/* Goal: one cancel object ends all waits of all threads, whenever it is set. Method: many threads
 * that begin around that moment. */
#define CANCELED 16

static void *canceled_wait(void *arg)
{
    struct pair *p = arg;
    return (void *)(intptr_t)zkl_multi_acquire(p->multi, &p->wait, NULL);
}

/* Modes: F25. */
WORLD_TEST(a_cancel_object_ends_all_waits)
{
    struct pair *p = pair_open();

    for (int round = 0; round < test_length(100, 10); round++) {
        pthread_t threads[CANCELED];
        p->wait.cancel = world_cancel();
        for (int i = 0; i < CANCELED; i++) {
            check_ok(pthread_create(&threads[i], NULL, canceled_wait, p));
            if (i == CANCELED / 2)
                zkl_cancel_set(p->wait.cancel);
        }
        for (int i = 0; i < CANCELED; i++) {
            void *rc;
            check_ok(pthread_join(threads[i], &rc));
            check_num((intptr_t)rc, ==, ZKL_ECANCELED);
        }
    }
    check_ok(zkl_mutex_unlock(p->rival));
    pair_close(p);
}

/* So that the server does not remove them while they are empty. */
static void make_paths(const char *base)
{
    check_ok(wire_create(raw, cluster_at(base), "", WIRE_PERSISTENT, NULL, 0));
    for (int i = 0; i < MEMBERS; i++)
        check_ok(wire_create(raw, cluster_at(member_path(base, i)), "", WIRE_PERSISTENT, NULL, 0));
}

/* Goal: a cycle of four paths is two transactions and at most five reads. Method: the proxy counts by
 * kind, the server all. */
WORLD_TEST(requests_are_counted)
{
    enum { CYCLES = 100 };
    const char *base = paths_of("count");
    struct zkl_client_options options = cluster_options();

    struct proxy *proxy = world_proxy_for(&options);
    struct zkl_client *client = world_client_with(&options);
    struct set s = set_of(client, base, forwards);
    make_paths(base);
    long before = proxy_counts(proxy, PROXY_ANY), multis = proxy_counts(proxy, PROXY_MULTI);
    for (int i = 0; i < CYCLES; i++) {
        check_ok(zkl_multi_lock(s.multi));
        check_ok(zkl_multi_unlock(s.multi, NULL));
    }
    long all = proxy_counts(proxy, PROXY_ANY) - before;
    multis = proxy_counts(proxy, PROXY_MULTI) - multis;
    print_message("4 paths: %.3f transactions and %.3f other requests a cycle\n",
                  (double)multis / CYCLES, (double)(all - multis) / CYCLES);
    check_num(multis, ==, 2 * CYCLES);
    check_num(all - multis, <=, 5 * CYCLES + 10); /* pings and keepalives */
}

/* Goal: mutexes beside permits are made in one transaction, as the permits are, and all is given back in one.
 * Method: the proxy counts nodes that are made and deleted singly: only the semaphore's inner lock is. */
WORLD_TEST(permits_go_with_the_others)
{
    enum { CYCLES = 30 };
    const char *base = paths_of("beside");
    struct zkl_client_options options = cluster_options();

    struct proxy *proxy = world_proxy_for(&options);
    struct zkl_client *client = world_client_with(&options);
    struct zkl_mutex *first = world_mutex(client, member_path(base, 0));
    struct zkl_mutex *second = world_mutex(client, member_path(base, 1));
    struct zkl_semaphore *semaphore = world_semaphore(client, member_path(base, 2), 2, NULL);
    const struct zkl_member members[] = {
        zkl_member_mutex(first), zkl_member_semaphore(semaphore, 2), zkl_member_mutex(second)};
    struct zkl_multi *multi = world_multi(client, members, 3);
    make_paths(base);
    make_root(below(member_path(base, 2), "locks"), "");
    make_root(below(member_path(base, 2), "leases"), "2");
    check_ok(zkl_multi_lock(multi));
    long made = proxy_counts(proxy, PROXY_CREATE) + proxy_counts(proxy, PROXY_CREATE2);
    long gone = proxy_counts(proxy, PROXY_DELETE);
    check_ok(zkl_multi_unlock(multi, NULL));
    for (int i = 0; i < CYCLES; i++) {
        check_ok(zkl_multi_lock(multi));
        check_ok(zkl_multi_unlock(multi, NULL));
    }
    made = proxy_counts(proxy, PROXY_CREATE) + proxy_counts(proxy, PROXY_CREATE2) - made;
    gone = proxy_counts(proxy, PROXY_DELETE) - gone;
    check_num(made, <, 2 * CYCLES);
    check_num(gone, <, 2 * CYCLES);
}

/* Goal: two round trips to acquire four paths, one to give them back. Method: a proxy that holds each
 * frame up: a round trip is two of its delays, so less than three is two. A busy machine's time is counted
 * by what can be done in it. */
WORLD_TEST(round_trips_are_counted)
{
    enum { DELAY_MS = 200 };
    const char *base = paths_of("trips");
    struct zkl_client_options options = cluster_options();

    struct proxy *proxy = world_proxy_for(&options);
    struct zkl_client *client = world_client_with(&options);
    struct set s = set_of(client, base, forwards);
    make_paths(base);
    proxy_delay_ms(proxy, DELAY_MS);
    int64_t start = net_now_ms();
    lag_begin();
    check_ok(zkl_multi_lock(s.multi));
    int64_t lock_ms = net_now_ms() - start;
    check_num(lag_end_ms(), <, 6 * DELAY_MS);
    start = net_now_ms();
    lag_begin();
    check_ok(zkl_multi_unlock(s.multi, NULL));
    int64_t unlock_ms = net_now_ms() - start;
    check_num(lag_end_ms(), <, 4 * DELAY_MS);
    print_message("with %d ms each way: %d ms to acquire, %d ms to release\n", DELAY_MS,
                  (int)lock_ms, (int)unlock_ms);
    check_num(lock_ms, >=, 4 * DELAY_MS);
    check_num(unlock_ms, >=, 2 * DELAY_MS);
}
