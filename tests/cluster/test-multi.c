/* SPDX-License-Identifier: Apache-2.0 */
/* The multi-lock: all or none, in the order of the paths, in few requests. */
#include "inside.h"

#define MEMBERS 5
#define FORWARDS "0m 1m 2m 3m"
#define BACKWARDS "3m 2m 1m 0m"

/* Locks below one path, by their numbers there, and the multi-lock of them. */
struct set {
    char base[64];
    size_t count;
    int order[MEMBERS]; /* in which they were named */
    char kinds[MEMBERS];
    struct zkl_mutex *mutexes[MEMBERS];
    struct zkl_semaphore *semaphore;
    struct zkl_multi *multi;
};

static const char *at(const struct set *s, int i)
{
    return below(s->base, (char[]){(char)('0' + i), '\0'});
}

/* Where the nodes of those are that hold or wait for one of them, and how many. */
static const char *place(const struct set *s, int i)
{
    bool has_leases = s->kinds[i] == 'l' || s->kinds[i] == 'p';
    return has_leases ? below(at(s, i), "leases") : at(s, i);
}

static int nodes(const struct set *s, int i)
{
    return cluster_children(place(s, i));
}

static int all_nodes(const struct set *s)
{
    int n = 0;
    for (int i = 0; i < MEMBERS; i++)
        n += nodes(s, i);
    return n;
}

static struct zkl_mutex *mutex_of(struct zkl_client *client, const char *path, char kind)
{
    struct zkl_mutex_options options = ZKL_MUTEX_OPTIONS_INIT;

    options.revocable = kind == 'r';
    options.local_handoffs_max = kind == 'h' || kind == 'k' ? 3 : 0;
    options.retain_ms = kind == 'k' ? 60000 : 0;
    return kind == 'l' ? world_semaphore_mutex(client, path)
                       : world_mutex_with(client, path, &options);
}

/* The text has the members in their order, each its number and its kind: m mutex, r one that may be asked for, h one
 * that is handed on in its process, k one that is kept as well, l one that any thread may unlock, p two of three permits. */
static struct set set_of(struct zkl_client *client, const char *name, const char *text)
{
    struct set s = {.count = 0};
    struct zkl_member members[MEMBERS];

    snprintf(s.base, sizeof s.base, "%s", cluster_path(name));
    for (; text[0]; text += text[2] ? 3 : 2) {
        int i = text[0] - '0';
        s.kinds[i] = text[1];
        s.order[s.count] = i;
        if (text[1] == 'p')
            s.semaphore = world_semaphore(client, at(&s, i), 3, NULL);
        else
            s.mutexes[i] = mutex_of(client, at(&s, i), text[1]);
        members[s.count++] =
            text[1] == 'p' ? zkl_member_semaphore(s.semaphore, 2) : zkl_member_mutex(s.mutexes[i]);
    }
    s.multi = world_multi(client, members, s.count);
    return s;
}

/* Each member has what its own questions say, and a node that is there. */
static void check_acquire(const struct set *s)
{
    struct zkl_grant grants[MEMBERS];
    char node[300], same[300];

    for (int i = 0; i < MEMBERS; i++)
        grants[i] = (struct zkl_grant)ZKL_GRANT_INIT;
    check_ok(zkl_multi_acquire(s->multi, NULL, grants));
    for (size_t i = 0; i < s->count; i++) {
        struct zkl_mutex *mutex = s->mutexes[s->order[i]];
        check_true(grants[i].token > 0 && grants[i].token == zkl_multi_token(s->multi, i));
        check_num(grants[i].hold_count, ==, 1);
        check_num(grants[i].window_ms, >, 0);
        check_num(zkl_multi_node_path(s->multi, i, node, sizeof node), ==, strlen(node));
        check_true(node_is_there(node));
        if (!mutex)
            continue;
        check_true(grants[i].token == zkl_mutex_token(mutex));
        check_num(zkl_mutex_node_path(mutex, same, sizeof same), >, 0);
        check_text(node, same);
    }
    check_true(zkl_multi_token(s->multi, s->count) == 0);
    check_num(zkl_multi_node_path(s->multi, s->count, node, sizeof node), ==, ZKL_EINVAL);
}

/* What each member's release said: of the nth one this, of the others 0. */
static void check_unlock(const struct set *s, int nth, int code)
{
    int codes[MEMBERS];

    check_num(zkl_multi_unlock(s->multi, codes), ==, code);
    for (int i = 0; i < (int)s->count; i++)
        check_num(codes[i], ==, i == nth ? code : 0);
}

WORLD_TEST(all_are_held_and_given_back)
{
    struct set s = set_of(world_client(), "all", BACKWARDS);

    check_acquire(&s);
    check_num(all_nodes(&s), ==, 4);
    check_ok(zkl_multi_lock(s.multi));
    check_num(zkl_mutex_hold_count(s.mutexes[2]), ==, 2);
    check_ok(zkl_multi_unlock(s.multi, NULL));
    check_unlock(&s, 0, 0);
    check_num(all_nodes(&s), ==, 0);
}

/* Goal: while another client has one member, the call also holds those before it. Modes: F24, F26. */
WORLD_TEST(nothing_is_queued_behind_the_first_contended)
{
    struct zkl_client *client = world_client(), *other = world_client();
    struct actor *actor = world_actor();

    for (int taken = 0; taken < 4; taken++) {
        struct set s = set_of(client, "behind", BACKWARDS);
        struct zkl_mutex *single = world_mutex(other, at(&s, taken));
        check_ok(zkl_mutex_lock(single));
        actor_begin(actor, do_multi_lock, s.multi);
        check_wait(nodes(&s, taken) == 2 && all_nodes(&s) == taken + 2, WAIT_MS);
        net_nap_ms(20);
        for (int i = 0; i < 4; i++)
            check_num(nodes(&s, i), ==, i < taken ? 1 : (i == taken ? 2 : 0));
        check_true(!actor_is_done(actor));
        check_ok(zkl_mutex_unlock(single));
        check_ok(actor_result(actor));
        check_num(all_nodes(&s), ==, 4);
        check_ok(actor_do(actor, do_multi_unlock, s.multi));
        check_num(all_nodes(&s), ==, 0);
    }
    check_num(node_watches(NULL), ==, 0);
}

/* Modes: F26. */
WORLD_TEST(held_members_are_entered_again)
{
    struct zkl_client *client = world_client();
    struct set s = set_of(client, "held", FORWARDS);
    struct zkl_mutex *twin = world_mutex(client, at(&s, 1));
    struct zkl_multi *multi;

    for (int i = 0; i < 4; i++) /* nothing to acquire needs no time */
        check_ok(zkl_mutex_lock(s.mutexes[i]));
    check_ok(zkl_multi_lock_for(s.multi, 0));
    check_ok(zkl_multi_unlock(s.multi, NULL));
    for (int i = 0; i < 3; i++)
        check_ok(zkl_mutex_unlock(s.mutexes[i]));
    check_ok(zkl_multi_lock(s.multi));
    check_num(zkl_mutex_hold_count(s.mutexes[3]), ==, 2);
    check_ok(zkl_multi_unlock(s.multi, NULL));
    check_num(zkl_mutex_hold_count(s.mutexes[3]), ==, 1);
    check_num(all_nodes(&s), ==, 1);
    check_ok(zkl_mutex_unlock(s.mutexes[3]));

    check_ok(zkl_mutex_lock(twin));
    check_num(zkl_multi_lock(s.multi), ==, ZKL_EDEADLK);
    check_num(all_nodes(&s), ==, 1);
    check_ok(zkl_mutex_unlock(twin));
    struct zkl_member same[] = {zkl_member_mutex(s.mutexes[1]), zkl_member_mutex(twin)};
    check_num(zkl_multi_new(&multi, client, same, 2), ==, ZKL_EDEADLK);
    same[1].mutex = NULL;
    check_num(zkl_multi_new(&multi, client, same, 2), ==, ZKL_EINVAL);
    check_num(zkl_multi_new(&multi, client, same, 0), ==, ZKL_EINVAL);
    check_num(zkl_multi_new(&multi, client, same, 65), ==, ZKL_EINVAL);
}

WORLD_TEST(halves_of_read_write_locks_are_members)
{
    const char *path = cluster_path("halves");
    struct zkl_client *client = world_client();
    struct zkl_mutex *plain = world_mutex(client, cluster_path("whole"));
    struct zkl_rwlock *rw = world_rwlock(client, path, NULL);
    struct zkl_rwlock *its = world_rwlock(world_client(), path, NULL);
    struct zkl_member members[] = {zkl_member_mutex(plain),
                                   zkl_member_mutex(zkl_rwlock_reader(rw))};

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
}

/* Goal: each permit is counted once for the whole, whatever order they are given in. */
WORLD_TEST(semaphores_are_members)
{
    struct set s = set_of(world_client(), "permits", "2m 1p 0l");
    struct zkl_semaphore *its = world_semaphore(world_client(), at(&s, 1), 3, NULL);
    struct zkl_permit *permits[2];

    check_acquire(&s);
    check_ok(zkl_semaphore_acquire(its, 1, NULL, permits));
    check_ok(zkl_multi_lock(s.multi)); /* the permits that it has are enough */
    check_num(zkl_mutex_hold_count(s.mutexes[2]), ==, 2);
    check_ok(zkl_multi_unlock(s.multi, NULL));
    check_num(zkl_multi_still_held(s.multi, 1), ==, 1);
    check_unlock(&s, 0, 0);
    check_ok(zkl_semaphore_acquire(its, 1, NULL, permits + 1));
    check_num(zkl_multi_trylock(s.multi), ==, ZKL_EBUSY); /* one permit is left */
    check_num(zkl_mutex_hold_count(s.mutexes[2]), ==, 0);
    check_wait(nodes(&s, 2) == 0, WAIT_MS);
    int ms = 100; /* a busy machine needs longer to come as far as the permits */
    do
        check_num(zkl_multi_lock_for(s.multi, ms), ==, ZKL_ETIMEDOUT);
    while (strstr(zkl_error_detail(), at(&s, 1)) == NULL && (ms *= 2) < WAIT_MS);
    check_true(strstr(zkl_error_detail(), at(&s, 1)) != NULL);
    check_ok(zkl_permit_release(permits[0]));
    check_ok(zkl_multi_lock(s.multi));
    check_ok(zkl_multi_unlock(s.multi, NULL));
    check_ok(zkl_permit_release(permits[1]));
}

WORLD_TEST(the_rest_is_given_back_when_one_is_lost)
{
    struct set s = set_of(world_client(), "lost", FORWARDS);

    check_ok(zkl_multi_lock(s.multi));
    check_ok(wire_delete(raw, node_of(s.mutexes[1]), -1));
    check_unlock(&s, 1, ZKL_ELOST);
    check_num(all_nodes(&s), ==, 0);
    check_ok(zkl_multi_lock(s.multi));
    check_ok(zkl_mutex_unlock(s.mutexes[2]));
    check_unlock(&s, 2, ZKL_ENOTOWNER);
    check_num(all_nodes(&s), ==, 0);
}

/* Goal: a mutex that belongs to no thread is unlocked and locked again by another thread. It is no
 * longer the multi-lock's: the multi-lock does not release it with the others, nor at the end of
 * the thread, and does not count it as held. */
WORLD_TEST(what_was_unlocked_by_itself_stays)
{
    struct set s = set_of(world_client(), "itself", "0l 1m");
    struct zkl_mutex *loose = s.mutexes[0];
    struct actor *actor = world_actor();

    check_ok(zkl_multi_lock(s.multi));
    check_ok(actor_do(actor, do_unlock, loose));
    check_ok(actor_do(actor, do_lock, loose));
    check_num(zkl_multi_still_held(s.multi, 0), ==, 0);
    check_num(zkl_multi_token(s.multi, 0), ==, 0);
    check_num(zkl_multi_lock(s.multi), ==, ZKL_ELOST);
    check_unlock(&s, 0, ZKL_ENOTOWNER);
    check_num(zkl_mutex_still_held(loose, 1), ==, 1);
    check_ok(zkl_mutex_unlock(loose));

    check_ok(actor_do(actor, do_multi_lock, s.multi));
    check_ok(zkl_mutex_unlock(loose));
    check_ok(zkl_mutex_lock(loose));
    world_drop(actor);
    check_wait(nodes(&s, 1) == 0, WAIT_MS);
    check_num(zkl_mutex_still_held(loose, 1), ==, 1);
    check_ok(zkl_mutex_unlock(loose));
}

/* --- while the last one is waited for --------------------------------------------------------- */

/* An actor acquires a set, of which another client holds the last one. */
struct way {
    struct set set;
    int last;
    struct proxy *proxy;
    struct zkl_client *client, *other;
    struct zkl_mutex *rival; /* of the last one */
    struct zkl_wait wait;    /* with a cancel object */
    struct notes notes;      /* of all members: a deletion is noticed immediately */
    int held, requested;     /* what the actor saw */
    struct actor *actor, *neighbour;
};

static struct way *way_open(const char *text)
{
    struct way *w = world_alloc(sizeof *w);

    w->client = world_client_through(&w->proxy, SESSION_MS);
    w->other = world_client();
    w->actor = world_actor();
    w->neighbour = world_actor();
    w->notes = (struct notes)NOTES_INIT;
    w->wait = (struct zkl_wait)ZKL_WAIT_INIT;
    w->wait.cancel = world_cancel();
    w->set = set_of(w->client, "way", text);
    w->last = (int)w->set.count - 1;
    for (int i = 0; i < w->last; i++) {
        if (w->set.mutexes[i])
            check_ok(zkl_mutex_set_callback(w->set.mutexes[i], take_note, &w->notes));
    }
    if (w->set.semaphore)
        check_ok(zkl_semaphore_set_callback(w->set.semaphore, take_note, &w->notes));
    w->rival = mutex_of(w->other, at(&w->set, w->last), w->set.kinds[w->last] == 'l' ? 'l' : 'm');
    check_ok(zkl_mutex_lock(w->rival));
    return w;
}

static int way_acquire(void *arg)
{
    struct way *w = arg;
    int rc = zkl_multi_acquire(w->set.multi, &w->wait, NULL);
    w->held = zkl_multi_still_held(w->set.multi, 1);
    w->requested = zkl_mutex_revoke_requested(w->set.mutexes[0]);
    return rc;
}

static int way_acquire_after_first(void *arg)
{
    struct way *w = arg;
    int rc = zkl_mutex_lock(w->set.mutexes[0]);
    return rc != 0 ? rc : way_acquire(w);
}

/* It has come as far as the last one. */
static void way_begin(struct way *w, actor_fn fn)
{
    actor_begin(w->actor, fn, w);
    check_wait(nodes(&w->set, w->last) == 2, WAIT_MS);
}

/* Another session deletes the node of one. With again the call acquires it anew, and waits for the last one. */
static void way_lose(struct way *w, int i, bool again)
{
    int before = nodes(&w->set, i);
    char node[700];

    snprintf(node, sizeof node, "%s", child_of(place(&w->set, i), 0));
    check_ok(wire_delete(raw, node, -1));
    check_wait(!again || (nodes(&w->set, i) == before &&
                          strcmp(child_of(place(&w->set, i), 0), node) != 0 &&
                          nodes(&w->set, w->last) == 2),
               WAIT_MS);
}

/* The last one comes free, and the call comes to this. */
static void way_end(struct way *w, int code)
{
    check_ok(zkl_mutex_unlock(w->rival));
    check_num(actor_result(w->actor), ==, code);
    check_num(w->held, ==, code == 0);
}

static void way_close(struct way *w, int released)
{
    check_num(actor_do(w->actor, do_multi_unlock, w->set.multi), ==, released);
    check_wait(all_nodes(&w->set) == 0, WAIT_MS);
}

/* The call is canceled, and the rival leaves. */
static void way_cancel(struct way *w)
{
    zkl_cancel_set(w->wait.cancel);
    check_num(actor_result(w->actor), ==, ZKL_ECANCELED);
}

WORLD_TEST(a_lease_begins_with_the_whole)
{
    struct way *w = way_open("0m 1m");

    w->wait.lease_ms = 1000;
    way_begin(w, way_acquire);
    net_nap_ms(1200);
    way_end(w, 0);
    check_wait(nodes(&w->set, 0) == 0, WAIT_MS);
    way_close(w, ZKL_ELOST);
}

WORLD_TEST(a_hold_from_before_may_be_lost)
{
    struct way *w = way_open("0m 1m");

    way_begin(w, way_acquire_after_first);
    way_lose(w, 0, false);
    check_wait(noted(&w->notes) == 1, WAIT_MS);
    way_end(w, ZKL_ELOST);
    check_num(actor_do(w->actor, do_multi_unlock, w->set.multi), ==, ZKL_ENOTOWNER);
    check_num(actor_do(w->actor, do_unlock, w->set.mutexes[0]), ==, ZKL_ELOST);
    way_close(w, ZKL_ENOTOWNER);
}

/* Goal: what is lost while the call waits for the last member, maybe twice, is acquired again, with the mutexes between. No
 * callback runs for a hold that the caller never had. */
WORLD_TEST(a_part_lost_on_the_way_is_acquired_again)
{
    static const char *const texts[] = {"0m 1m", "4m 3p 2m 1m 0l"}, *const lost[] = {"00", "0123"};

    for (int t = 0; t < 2; t++) {
        struct way *w = way_open(texts[t]);
        way_begin(w, way_acquire);
        for (const char *i = lost[t]; *i; i++)
            way_lose(w, *i - '0', true);
        check_num(noted(&w->notes), ==, 0);
        check_true(!actor_is_done(w->actor));
        way_end(w, 0);
        for (int i = 0; i < w->last; i++)
            check_num(nodes(&w->set, i), ==, w->set.kinds[i] == 'p' ? 2 : 1);
        check_num(zkl_mutex_hold_count(w->set.mutexes[0]), ==,
                  w->set.kinds[0] == 'l'); /* not the actor's */
        check_num(noted(&w->notes), ==, 0);
        way_close(w, 0);
    }
}

WORLD_TEST(a_request_on_the_way_counts)
{
    struct way *w = way_open("0r 1m");

    way_begin(w, way_acquire);
    check_ok(wire_set(raw, child_of(place(&w->set, 0), 0), "__REVOKE__", -1));
    check_wait(inside_knows_request(w->client), WAIT_MS);
    way_end(w, 0);
    check_num(w->requested, ==, 1);
    check_note(&w->notes, 0, ZKL_HOLD_REVOKE_REQUESTED, ZKL_REASON_NONE);
    check_num(noted(&w->notes), ==, 1);
    way_close(w, 0);
}

/* --- parts that are given up on the way ----------------------------------------------------------- */

/* Goal: a part that a call gives up on its way no longer belongs to that call. The thread that has
 * it then keeps it, however that call ends. Method: the first part is lost while another thread of
 * the process waits for the second. */
WORLD_TEST(a_part_given_up_is_somebody_elses)
{
    struct way *w = way_open("0l 1h 2l 3m");
    struct zkl_mutex *handed = w->set.mutexes[1];

    way_begin(w, way_acquire);
    actor_begin(w->neighbour, do_lock, handed);
    check_wait(inside_waiting(handed) == 1, WAIT_MS);
    way_lose(w, 0, false);
    check_ok(actor_result(w->neighbour));
    check_wait(nodes(&w->set, 0) == 1, WAIT_MS);
    way_cancel(w);
    check_wait(nodes(&w->set, 0) == 0, WAIT_MS); /* its delete comes last */
    check_num(nodes(&w->set, 1), ==, 1);
    check_ok(actor_do(w->neighbour, do_unlock, handed));
    check_ok(zkl_mutex_unlock(w->rival));
    way_close(w, ZKL_ENOTOWNER);
}

/* Goal: the same for a part that was handed on to the call. The call gives up a part only once.
 * Method: another client has the first part next, so that the call ends while it has nothing. */
WORLD_TEST(a_part_is_given_up_once)
{
    struct way *w = way_open("0l 1h 2l 3m");
    struct zkl_mutex *handed = w->set.mutexes[1];
    struct zkl_mutex *rival = world_semaphore_mutex(w->other, at(&w->set, 0));

    check_ok(actor_do(w->neighbour, do_lock, handed));
    actor_begin(w->actor, way_acquire, w);
    check_wait(nodes(&w->set, 0) == 1, WAIT_MS);
    check_wait(inside_waiting(handed) == 1, WAIT_MS);
    check_ok(actor_do(w->neighbour, do_unlock, handed));
    check_wait(nodes(&w->set, 3) == 2, WAIT_MS);
    actor_begin(w->neighbour, do_lock, rival);
    check_wait(nodes(&w->set, 0) == 2, WAIT_MS);
    way_lose(w, 0, false);
    check_ok(actor_result(w->neighbour));
    check_wait(nodes(&w->set, 1) == 0, WAIT_MS);
    way_cancel(w);
    check_ok(actor_do(w->neighbour, do_unlock, rival));
    check_ok(zkl_mutex_unlock(w->rival));
    way_close(w, ZKL_ENOTOWNER);
}

/* Goal: a mutex may be freed as soon as no call uses it, even if a delete of its node is still
 * under way. Method: a multi-lock gives up a part that is handed on in its process. The proxy holds
 * the delete back, and the test frees the handle immediately. */
WORLD_TEST(a_part_given_up_can_be_freed)
{
    struct way *w = way_open("0k 1l");

    way_begin(w, way_acquire);
    check_ok(proxy_hold_request(w->proxy, PROXY_DELETE, 1));
    way_cancel(w);
    world_drop(w->set.multi);
    world_drop(w->set.mutexes[0]);
    proxy_release(w->proxy);
    check_wait(nodes(&w->set, 0) == 0, WAIT_MS);
    check_ok(zkl_mutex_unlock(w->rival));
}

/* Goal: a call also gives up members only once that it queued for together, after one of them was
 * lost. Method: the test cancels the call while the proxy holds back the answer to the delete of
 * the other one. A sanitizer sees what else would stay. */
WORLD_TEST(members_are_given_up_once)
{
    struct way *w = way_open("0m 1m 2l");

    check_ok(zkl_mutex_set_callback(w->set.mutexes[0], NULL, NULL));
    way_begin(w, way_acquire);
    check_ok(proxy_hold_reply(w->proxy, PROXY_DELETE, 1));
    way_lose(w, 1, false);
    check_ok(proxy_wait_held(w->proxy, WAIT_MS));
    way_cancel(w);
    proxy_release(w->proxy);
    w->wait = (struct zkl_wait)ZKL_WAIT_INIT;
    w->wait.flags = ZKL_WAIT_TRY;
    check_num(actor_do(w->actor, way_acquire, w), ==, ZKL_EBUSY);
    check_ok(zkl_mutex_unlock(w->rival));
    check_ok(actor_do(w->actor, do_multi_lock, w->set.multi));
    check_num(noted(&w->notes), ==, 0);
    way_close(w, 0);
}

#define CANCELED 16

static int canceled_wait(void *arg)
{
    struct way *w = arg;
    return zkl_multi_acquire(w->set.multi, &w->wait, NULL);
}

/* Goal: one cancel object ends all waits of all threads, whenever it is set. Method: many that begin around that moment.
 * Modes: F25. */
WORLD_TEST(a_cancel_object_ends_all_waits)
{
    struct way *w = way_open("0m 1m");
    struct actor *actors[CANCELED];

    for (int i = 0; i < CANCELED; i++)
        actors[i] = world_actor();
    for (int round = 0; round < test_length(100, 10); round++) {
        w->wait.cancel = world_cancel();
        for (int i = 0; i < CANCELED; i++) {
            actor_begin(actors[i], canceled_wait, w);
            if (i == CANCELED / 2)
                zkl_cancel_set(w->wait.cancel);
        }
        for (int i = 0; i < CANCELED; i++)
            check_num(actor_result(actors[i]), ==, ZKL_ECANCELED);
    }
    check_ok(zkl_mutex_unlock(w->rival));
    way_close(w, ZKL_ENOTOWNER);
}

/* --- requests --------------------------------------------------------------------------------- */

/* Behind a proxy, on paths that the server does not remove while they are empty. */
static struct set set_behind(struct proxy **proxy, const char *text)
{
    struct set s = set_of(world_client_through(proxy, SESSION_MS), "count", text);

    make_root(s.base, "");
    for (int i = 0; i < (int)s.count; i++) {
        make_root(at(&s, i), "");
        if (s.kinds[i] != 'p')
            continue;
        make_root(below(at(&s, i), "locks"), "");
        make_root(below(at(&s, i), "leases"), "3");
    }
    return s;
}

static void cycles(const struct set *s, int n)
{
    for (int i = 0; i < n; i++) {
        check_ok(zkl_multi_lock(s->multi));
        check_ok(zkl_multi_unlock(s->multi, NULL));
    }
}

/* Goal: a cycle of four paths is two transactions and at most five reads. */
WORLD_TEST(requests_are_counted)
{
    enum { CYCLES = 100 };
    struct proxy *proxy;
    struct set s = set_behind(&proxy, FORWARDS);

    proxy_reset_counts(proxy);
    cycles(&s, CYCLES);
    long multis = proxy_counts(proxy, PROXY_MULTI), all = proxy_counts(proxy, PROXY_ANY);
    check_num(multis, ==, 2 * CYCLES);
    check_num(all - multis, <=, 5 * CYCLES + 10); /* pings and keepalives */
}

/* Goal: mutexes beside permits are made in one transaction, as the permits are, and all is given back in one.
 * Method: the proxy counts nodes that are made and deleted singly: only the semaphore's inner lock is. */
WORLD_TEST(permits_go_with_the_others)
{
    enum { CYCLES = 30 };
    struct proxy *proxy;
    struct set s = set_behind(&proxy, "0m 2p 1m");

    cycles(&s, 1);
    proxy_reset_counts(proxy);
    cycles(&s, CYCLES);
    check_num(proxy_counts(proxy, PROXY_CREATE) + proxy_counts(proxy, PROXY_CREATE2), <,
              2 * CYCLES);
    check_num(proxy_counts(proxy, PROXY_DELETE), <, 2 * CYCLES);
}

/* Took trips of the delay both ways, and no further one. A busy machine's time is counted by what can be done in it. */
static void check_trips(int (*call)(void *multi), struct zkl_multi *multi, int delay_ms, int trips)
{
    int64_t start = net_now_ms();

    lag_begin();
    check_ok(call(multi));
    int64_t ms = net_now_ms() - start;
    check_num(lag_end_ms(), <, 2 * (trips + 1) * delay_ms);
    check_num(ms, >=, 2 * trips * delay_ms);
}

/* Method: a proxy that holds each frame up: a round trip is two of its delays, so less than three is two. */
WORLD_TEST(round_trips_are_counted)
{
    enum { DELAY_MS = 200 };
    struct proxy *proxy;
    struct set s = set_behind(&proxy, FORWARDS);

    proxy_delay_ms(proxy, DELAY_MS);
    check_trips(do_multi_lock, s.multi, DELAY_MS, 2);
    check_trips(do_multi_unlock, s.multi, DELAY_MS, 1);
}
