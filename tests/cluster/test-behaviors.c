/* SPDX-License-Identifier: Apache-2.0 */
/* Behaviors that all locks have, each tried with each kind of lock, by threads and by operations:
 * a test is called BEHAVIOR/WAY/KIND. What is one kind's own stands in that kind's program. */
#include "inside.h"

#include "check_error.h"
#include "kinds.h"
#include "leaks.h"

#define MS INT64_C(1000000)

/* --- who is there ----------------------------------------------------------------------------- */

/* Two share a handle, two of another client are their rivals. */
struct scene {
    const struct kind *kind;
    enum way way;
    char path[64];
    struct proxy *proxy; /* before the client */
    struct zkl_client *client, *others_client;
    struct lock lock, others;
    struct party me, mate, rival, late;
    struct notes notes;
    const void *told_of; /* the mutex or permit of the last event */
};

/* Clients are used again as long as they are as they were. */
static struct {
    struct proxy *proxy;
    struct zkl_client *client, *others_client;
    bool used;
} pool;

static void pool_open(int session_ms)
{
    struct zkl_client_options options = cluster_options();
    options.session_timeout_ms = session_ms;
    pool.proxy = proxy_before(server, 0);
    options.servers = cluster_servers(proxy_address(pool.proxy));
    pool.client = cluster_client_with(&options);
    pool.others_client = cluster_client();
}

static void pool_close(void)
{
    if (!pool.client)
        return;
    check_ok(zkl_client_free(pool.client));
    check_ok(zkl_client_free(pool.others_client));
    proxy_stop(pool.proxy);
    memset(&pool, 0, sizeof pool);
}

static const struct kind *kind_called(const char *name)
{
    const struct kind *kind = kinds;
    while (strcmp(kind->name, name) != 0)
        kind++;
    return kind;
}

static void scene_open(struct scene *s, int session_ms)
{
    if (pool.used || session_ms != SESSION_MS)
        pool_close(); /* a test failed meanwhile */
    if (!pool.client)
        pool_open(session_ms);
    pool.used = true;
    s->notes = (struct notes)NOTES_INIT;
    s->proxy = pool.proxy;
    s->client = pool.client;
    s->others_client = pool.others_client;
    snprintf(s->path, sizeof s->path, "%s", cluster_path(s->kind->name));
    s->lock = (struct lock){.kind = s->kind, .path = s->path, .client = s->client};
    s->others = (struct lock){
        .kind = kind_called(s->kind->rival), .path = s->path, .client = s->others_client};
    lock_open(&s->lock);
    lock_open(&s->others);
    s->me = party_of(&s->lock, s->way);
    s->mate = party_of(&s->lock, s->way);
    s->rival = party_of(&s->others, s->way);
    s->late = party_of(&s->others, s->way);
}

/* Contenders of the path, the first of which holds. */
static void check_queue(const struct scene *s, int n)
{
    check_wait(s->kind->has(s->path, n), WAIT_MS);
}

/* Nothing is left of anything. */
static void scene_close(struct scene *s, bool is_spoiled)
{
    check_queue(s, 0);
    check_wait(all_watches() == 0, WAIT_MS);
    party_end(&s->me);
    party_end(&s->mate);
    party_end(&s->rival);
    party_end(&s->late);
    check_ok(s->lock.kind ? lock_free(&s->lock) : 0);
    check_ok(lock_free(&s->others));
    world_clear();
    pool.used = false;
    if (is_spoiled)
        pool_close();
}

/* --- what is seen of them --------------------------------------------------------------------- */

/* Holds nothing, and each question says so. */
static void check_none(struct party *p)
{
    const struct answers *said = ask(p);
    if (p->lock->kind->is_permit)
        return; /* there is none to ask */
    check_true(!said->held && !said->held_half && !said->held_beyond && !said->held_negative);
    check_true(!said->beyond_explained && said->negative_explained);
    check_num(said->check, ==, ZKL_ENOTOWNER);
    check_true(said->check_explained);
    check_num(said->check_beyond, ==, ZKL_ENOTOWNER);
    check_num(said->count, ==, 0);
    check_true(said->state == 0 && said->state_alone == 0 && !said->state_explained);
    check_num(said->token, ==, 0);
    check_num(said->window_ms, ==, 0);
    check_num(said->length, ==, ZKL_ENOTOWNER);
    check_num(said->revoked, ==, 0);
}

/* Holds, by that many acquires. */
static void check_held(struct party *p, int count)
{
    const struct answers *said = ask(p);
    struct wire_stat stat;

    check_num(said->held, ==, 1);
    check_num(said->held_half, ==, 1);
    check_true(!said->held_beyond && !said->beyond_explained); /* a plain no */
    check_true(!said->held_negative && said->negative_explained);
    check_num(said->check, ==, 0);
    check_num(said->check_beyond, ==, ZKL_EUNPROVED);
    check_num(said->check_negative, ==, ZKL_EBADTIMEOUT);
    check_num(said->count, ==, count);
    check_true(said->state == ZKL_HOLD_HELD && said->state_alone == ZKL_HOLD_HELD);
    check_num(said->reason, ==, ZKL_REASON_NONE);
    check_num(said->token, >, 0);
    check_num(said->window_ms, >, 0);
    check_num(said->window_ms, <, SESSION_MS);
    check_num(said->length, ==, strlen(said->node));
    check_num(said->length_none, ==, said->length);
    check_num(said->length_cut, ==, said->length);
    check_num(strlen(said->cut), ==, sizeof said->cut - 1);
    check_true(strncmp(said->node, said->cut, sizeof said->cut - 1) == 0);
    check_ok(wire_exists(raw, cluster_at(said->node), &stat));
    check_num(said->token, ==, stat.czxid);
}

/* Held by that many acquires, and knows now that it was lost. */
static void check_lost(struct party *p, int count, enum zkl_reason reason)
{
    check_wait(ask(p)->check == ZKL_ELOST, WAIT_MS);
    check_true(!p->said.held && !p->said.held_half && !p->said.held_beyond);
    check_num(p->said.count, ==, count);
    check_num(p->said.state, ==, ZKL_HOLD_LOST);
    check_num(p->said.reason, ==, reason);
    check_num(p->said.token, ==, 0);
    check_num(p->said.window_ms, ==, 0);
    check_true(p->said.length > 0 && !node_is_there(p->said.node)); /* its path is still known */
}

/* The callback has been told of one loss, behind anything else. */
static const struct note *the_loss(struct scene *s, enum zkl_reason reason)
{
    const struct note *last;

    check_wait(noted(&s->notes) > 0 && s->notes.list[noted(&s->notes) - 1].state == ZKL_HOLD_LOST,
               WAIT_MS);
    check_true(s->told_of == (s->kind->is_permit ? (void *)s->me.permit : (void *)s->lock.mutex));
    last = &s->notes.list[noted(&s->notes) - 1];
    for (const struct note *note = s->notes.list; note < last; note++)
        check_num(note->state, !=, ZKL_HOLD_LOST);
    /* The server deletes the nodes of a session that ends: the client may learn of that first. */
    if (reason != ZKL_REASON_EXPIRED || last->reason != ZKL_REASON_NODE_DELETED)
        check_num(last->reason, ==, reason);
    return last;
}

/* An acquire that ended without the lock: its code, a sentence, and nothing else. */
static void check_ended(const struct party *p, int rc, int code)
{
    check_num(rc, ==, code);
    check_true(strncmp(p->detail, zkl_strerror(code), strlen(zkl_strerror(code))) == 0);
    check_true(p->grants[0].token == UNTOUCHED && p->grants[1].token == UNTOUCHED);
    check_true(p->permit == NULL);
}

/* Begins to wait, as the nth contender. */
static void queue_with(struct scene *s, struct party *p, struct zkl_cancel *cancel, int n)
{
    anew(p);
    p->wait.cancel = cancel;
    begin(p);
    check_queue(s, n);
}

static void queue(struct scene *s, struct party *p, int n)
{
    queue_with(s, p, NULL, n);
}

/* Holds, alone. */
static void hold(struct scene *s, struct party *p)
{
    check_ok(take(p));
    check_queue(s, 1);
}

/* Waited, and holds now. */
static void gets_and_gives(struct party *p)
{
    check_ok(result(p));
    check_held(p, 1);
    check_ok(give(p));
}

static void hear(const struct zkl_hold_event *event, void *arg)
{
    struct scene *s = arg;

    s->told_of = event->permit ? (const void *)event->permit : (const void *)event->mutex;
    take_note(event, &s->notes);
}

static void watch(struct scene *s)
{
    check_ok(lock_set_callback(&s->lock, hear, s));
}

/* That many of the handle wait; each member of a multi-lock knows of some of them. */
static bool has_waiting(const struct scene *s, int n)
{
    int waiting = lock_waiting((struct lock *)&s->lock, NULL);
    return s->kind->is_multi ? (waiting > 0) == (n > 0) : waiting == n;
}

/* Requests of the client for locks. */
static int64_t sent(const struct scene *s)
{
    return proxy_counts(s->proxy, PROXY_ANY) - proxy_counts(s->proxy, PROXY_EXISTS) -
           proxy_counts(s->proxy, PROXY_PING);
}

/* --- the table -------------------------------------------------------------------------------- */

static struct behavior {
    const char *name;
    void (*run)(struct scene *s);
    enum { BOTH, THREADS, OPERATIONS } ways;
    enum { AS_BEFORE, CLOSED, EXPIRES } after; /* what becomes of the client */
    bool of_owners;                            /* not of what belongs to no thread and no owner */
} behaviors[50];
static size_t behavior_count;

#define BEHAVIOR_TEST(its_name, ...)                                                               \
    static void its_name(struct scene *s);                                                         \
    static __attribute__((constructor)) void its_name##_is_added(void)                             \
    {                                                                                              \
        behaviors[behavior_count++] =                                                              \
            (struct behavior){.name = #its_name, .run = its_name, __VA_ARGS__};                    \
    }                                                                                              \
    static void its_name(struct scene *s)

/* --- holds ------------------------------------------------------------------------------------ */

/* Goal: a grant's token is the zxid at which its node was made, its window is proved for some time
 * but no longer than the session lasts, and the questions give the same, before, while and after.
 * Another thread or owner holds nothing, unless the hold is the handle's. */
BEHAVIOR_TEST(a_grant_says_what_the_questions_say)
{
    check_none(&s->me);
    hold(s, &s->me);
    check_held(&s->me, 1);
    const struct answers *said = &s->me.said;
    check_true(strncmp(said->node, s->path, strlen(s->path)) == 0);
    check_true(!s->kind->of_handle || strstr(said->node, "/leases/_c_"));
    for (int i = 0; i < (s->kind->is_permit ? 0 : 1 + s->kind->is_multi); i++) {
        check_true(s->me.grants[i].token != UNTOUCHED && s->me.grants[i].token > 0);
        check_num(s->me.grants[i].hold_count, ==, 1);
        check_num(s->me.grants[i].window_ms, >=, said->window_ms);
        check_num(s->me.grants[i].window_ms, <, SESSION_MS);
    }
    if (!s->kind->is_permit)
        check_num(s->me.grants[s->kind->is_multi].token, ==, said->token);
    if (s->kind->of_handle && !s->kind->is_permit)
        check_held(&s->mate, 1);
    else
        check_none(&s->mate);
    check_none(&s->rival);
    check_ok(give(&s->me));
    check_none(&s->me);
}

/* Goal: who holds may lock again in every way, whatever the deadline and the cancel object, without
 * a request, and holds until as many unlocks, all on one node and with one token. A hold that is the
 * handle's is not entered again. Modes: F39. */
BEHAVIOR_TEST(a_reentry_counts_up_and_down)
{
    struct zkl_cancel *set = world_cancel();

    zkl_cancel_set(set);
    hold(s, &s->me);
    uint64_t token = ask(&s->me)->token;
    int64_t before = sent(s);
    if (s->kind->of_handle) {
        struct party again = s->me; /* who holds waits as well */
        again.permit = NULL;
        check_ended(&again, take_for(&again, 100), ZKL_ETIMEDOUT);
        check_ended(&s->mate, take_for(&s->mate, 0), ZKL_ETIMEDOUT);
        check_queue(s, 1);
        before = sent(s);
    } else {
        check_ok(take_try(&s->me));
        check_ok(take_here(&s->me));
        check_ok(take_for(&s->me, 0));
        check_ok(take_with(&s->me, set));
        check_ok(take(&s->me));
        for (int i = 0; i < 1 + s->kind->is_multi; i++)
            check_num(s->me.grants[i].hold_count, ==, 6);
        check_num(s->me.grants[s->kind->is_multi].token, ==, token);
    }
    if (!s->kind->of_handle && !s->kind->is_shared) {
        check_ended(&s->mate, take_try(&s->mate), ZKL_EBUSY);
        check_true(sent(s) == before || !s->kind->takes_turns);
        check_queue(s, 1); /* what it had queued by then is gone */
        before = sent(s);
    }
    for (int left = s->kind->of_handle ? 1 : 6; left > 0; left--) {
        check_held(&s->me, left);
        check_num(s->me.said.token, ==, token);
        check_num(sent(s), ==, before);
        check_queue(s, 1);
        check_ended(&s->rival, take_try(&s->rival), ZKL_EBUSY);
        check_ok(give(&s->me));
    }
    check_none(&s->me);
    check_queue(s, 0);
    check_ok(take_try(&s->rival));
    check_ok(give(&s->rival));
}

/* Goal: a hold belongs to its thread or owner, which alone can release it, once. One that is the
 * handle's can be released by anybody. The handle and the owner can't be freed meanwhile.
 * Modes: F55. */
BEHAVIOR_TEST(who_does_not_hold_can_not_release)
{
    if (!s->kind->is_permit)
        check_num(give(&s->me), ==, ZKL_ENOTOWNER);
    hold(s, &s->me);
    check_num(lock_free(&s->lock), ==, ZKL_EBUSY);
    if (!s->kind->of_handle) {
        check_num(give(&s->mate), ==, ZKL_ENOTOWNER);
        check_num(renew(&s->mate, 1000), ==, ZKL_ENOTOWNER);
        check_num(zkl_owner_free(s->me.owner), ==, s->way == THREAD ? 0 : ZKL_EBUSY);
        check_held(&s->me, 1);
    }
    if (!s->kind->is_permit)
        check_num(give(&s->rival), ==, ZKL_ENOTOWNER);
    check_queue(s, 1);
    if (s->kind->of_handle) {
        s->mate.permit = s->me.permit;
        s->me.permit = NULL;
        check_held(&s->mate, 1);
        check_ok(give(&s->mate));
    } else {
        check_ok(give(&s->me));
    }
    if (!s->kind->is_permit)
        check_num(give(&s->me), ==, ZKL_ENOTOWNER);
    check_none(&s->me);
}

/* Goal: two handles of one path in one thread or owner say EDEADLK instead of waiting for each
 * other. Neither is the owner of what the other holds. Two of the second handle are contenders. */
BEHAVIOR_TEST(two_handles_of_one_path_deadlock_at_once)
{
    struct lock second = {.kind = s->kind, .path = s->path, .client = s->client};
    struct party again = s->me;
    int code = s->kind->of_handle ? ZKL_EBUSY : ZKL_EDEADLK;

    lock_open(&second);
    hold(s, &s->me);
    int64_t before = sent(s);
    again.lock = &second;
    check_ended(&again, take_try(&again), code);
    if (!s->kind->of_handle) {
        check_ended(&again, take(&again), code);
        check_ended(&again, take_for(&again, 1), code);
        check_num(sent(s), ==, before);
    }
    if (!s->kind->is_permit)
        check_num(give(&again), ==, ZKL_ENOTOWNER);
    check_none(&again);
    s->mate.lock = &second;
    if (!s->kind->is_shared) {
        check_ended(&s->mate, take_try(&s->mate), ZKL_EBUSY);
        queue(s, &s->mate, 2);
        check_true(!is_done(&s->mate));
        check_ok(give(&s->me));
    }
    check_ok(s->kind->is_shared ? take(&s->mate) : result(&s->mate));
    check_held(&s->mate, 1);
    if (s->kind->is_shared)
        check_ok(give(&s->me));
    else if (!s->kind->of_handle)
        check_ended(&s->me, take_try(&s->me), ZKL_EBUSY);
    check_ok(give(&s->mate));
    check_queue(s, 0);
    check_ok(lock_free(&second));
}

/* --- tries, deadlines -------------------------------------------------------------------------- */

/* Goal: a try says 0 if no contender is before it, and EBUSY if one holds or waits, names the path
 * and leaves nothing; the same behind a sync. */
BEHAVIOR_TEST(a_try_tells_busy_from_free)
{
    hold(s, &s->rival);
    check_ended(&s->me, take_try(&s->me), ZKL_EBUSY);
    check_true(strstr(s->me.detail, s->path) != NULL);
    check_queue(s, 1);
    anew(&s->me);
    s->me.wait.flags = ZKL_WAIT_TRY | ZKL_WAIT_SYNC;
    begin(&s->me);
    check_ended(&s->me, result(&s->me), ZKL_EBUSY);
    check_queue(s, 1);
    queue(s, &s->late, 2);
    check_ended(&s->me, take_try(&s->me), ZKL_EBUSY);
    check_queue(s, 2);
    check_ok(give(&s->rival));
    gets_and_gives(&s->late);
    check_queue(s, 0);
    anew(&s->me);
    s->me.wait.flags = ZKL_WAIT_TRY | ZKL_WAIT_SYNC;
    begin(&s->me);
    gets_and_gives(&s->me);
    check_queue(s, 0);
    check_ok(take_try(&s->me));
    check_ok(give(&s->me));
}

/* What is ended before it begins asks the server for nothing, the path is not even made. */
static void check_asks_nothing(struct scene *s, struct zkl_cancel *cancel)
{
    int code = cancel ? ZKL_ECANCELED : ZKL_ETIMEDOUT;

    for (int used = 0; used < 2; used++) {
        int64_t before = sent(s);
        if (cancel) {
            for (int i = 0; i < 3; i++)
                check_ended(&s->me, take_with(&s->me, cancel), code);
        } else {
            check_ended(&s->me, take_for(&s->me, 0), code);
            check_ended(&s->me, take_for(&s->me, -1), code);
        }
        anew(&s->me);
        s->me.wait.deadline_ns = cancel ? ZKL_NO_DEADLINE : 1;
        s->me.wait.cancel = cancel;
        s->me.wait.flags = cancel ? ZKL_WAIT_TRY : 0;
        begin(&s->me);
        check_ended(&s->me, result(&s->me), code);
        if (!cancel)
            check_true(strstr(s->me.detail, "had passed") != NULL);
        check_num(sent(s), ==, before);
        check_true(used || wire_exists(raw, cluster_at(s->path), NULL) == WIRE_NONODE);
        hold(s, &s->me);
        check_ok(give(&s->me));
        check_queue(s, 0);
    }
}

/* Goal: a deadline that has passed ends an acquire before it asks the server for anything.
 * Modes: F18. */
BEHAVIOR_TEST(a_deadline_in_the_past_asks_nothing)
{
    check_asks_nothing(s, NULL);
}

/* Goal: a wait ends at its deadline, not before, names the path and leaves nothing, first in the
 * queue as well as before its turn. Who waits behind it at the same handle waits on. Modes: F18, F40. */
BEHAVIOR_TEST(a_deadline_ends_a_wait)
{
    hold(s, &s->rival);
    lag_begin();
    int64_t start = zkl_now_ns();
    int rc = take_for(&s->me, 150);
    int64_t took = zkl_now_ns() - start;
    check_num(lag_end_ms(), <, 1000);
    check_num(took, >=, 150 * MS);
    check_ended(&s->me, rc, ZKL_ETIMEDOUT);
    check_true(strstr(s->me.detail, s->path) != NULL);
    check_queue(s, 1);
    check_true(has_waiting(s, 0));
    queue(s, &s->late, 2);
    check_ended(&s->me, take_for(&s->me, 50), ZKL_ETIMEDOUT);
    check_queue(s, 2);
    check_ok(give(&s->rival));
    gets_and_gives(&s->late);
    check_queue(s, 0);
    check_ok(take_for(&s->rival, WAIT_MS));
    anew(&s->me);
    s->me.wait.deadline_ns = zkl_now_ns() + lag_room_ms(500) * MS;
    begin(&s->me);
    check_queue(s, 2);
    queue(s, &s->mate, s->kind->takes_turns ? 2 : 3);
    check_ended(&s->me, result(&s->me), ZKL_ETIMEDOUT);
    check_queue(s, 2);
    check_true(!is_done(&s->mate));
    check_ok(give(&s->rival));
    gets_and_gives(&s->mate);
}

/* --- cancels ---------------------------------------------------------------------------------- */

/* Goal: a cancel object that is set ends an acquire, and a try, before it asks the server for
 * anything. The object stays set. */
BEHAVIOR_TEST(a_cancel_before_asks_nothing)
{
    struct zkl_cancel *cancel = world_cancel();

    check_num(zkl_cancel_is_set(cancel), ==, 0);
    zkl_cancel_set(cancel);
    zkl_cancel_set(cancel);
    check_num(zkl_cancel_is_set(cancel), ==, 1);
    check_asks_nothing(s, cancel);
    check_num(zkl_cancel_is_set(cancel), ==, 1);
}

static void *set_with_pending(void *cancel)
{
    pthread_cancel(pthread_self());
    zkl_cancel_set(cancel);
    return NULL;
}

/* Goal: one object ends all waits that share it, on two clients, and no other wait: who waits behind
 * them does not get the lock. Each leaves nothing. The object may be freed as soon as it is set, and
 * a thread that is canceled itself sets it. Modes: F18, F25, F34, F40. */
BEHAVIOR_TEST(a_cancel_ends_the_waits_of_two_clients)
{
    struct party other = party_of(&s->lock, s->way), *ended[] = {&s->me, &s->late, &s->mate};
    struct zkl_cancel *cancel = world_cancel(), *others = world_cancel();
    pthread_t thread;

    hold(s, &s->rival);
    queue_with(s, &s->me, cancel, 2);
    queue_with(s, &s->late, cancel, 3);
    queue_with(s, &s->mate, cancel, s->kind->takes_turns ? 3 : 4);
    queue_with(s, &other, others, s->kind->takes_turns ? 3 : 5);
    check_wait(has_waiting(s, 3), WAIT_MS);
    check_ok(pthread_create(&thread, NULL, set_with_pending, cancel));
    check_ok(pthread_join(thread, NULL));
    world_drop(cancel);
    for (int i = 0; i < 3; i++)
        check_ended(ended[i], result(ended[i]), ZKL_ECANCELED);
    check_queue(s, 2);
    net_nap_ms(50); /* would do for a wrong grant */
    check_true(!is_done(&other));
    check_true(has_waiting(s, 1));
    check_ok(give(&s->rival));
    gets_and_gives(&other);
    check_true(has_waiting(s, 0));
    party_end(&other);
}

BEHAVIOR_TEST(a_cancel_after_the_grant_changes_nothing)
{
    struct zkl_cancel *cancel = world_cancel();

    check_ok(take_with(&s->me, cancel));
    check_held(&s->me, 1);
    zkl_cancel_set(cancel);
    check_queue(s, 1);
    check_held(&s->me, 1);
    world_drop(cancel);
    check_held(&s->me, 1);
    check_ended(&s->rival, take_try(&s->rival), ZKL_EBUSY);
    check_ok(give(&s->me));
}

/* Goal: a program cancels an operation by its number. A number that is over, or that was never
 * given, cancels nobody, though places are used again. */
BEHAVIOR_TEST(a_number_cancels_its_operation, .ways = OPERATIONS)
{
    hold(s, &s->rival);
    queue(s, &s->me, 2);
    uint64_t old = s->me.op;
    check_ok(zkl_op_cancel(s->client, 0));
    check_ok(zkl_op_cancel(s->client, UINT64_MAX));
    check_num(zkl_op_waiting(s->client, old, NULL), ==, 1);
    check_ok(zkl_op_cancel(s->client, old));
    check_ended(&s->me, result(&s->me), ZKL_ECANCELED);
    check_num(zkl_op_waiting(s->client, old, NULL), ==, 0);
    check_queue(s, 1);
    for (int i = 0; i < 10; i++) { /* from its start on */
        anew(&s->me);
        begin(&s->me);
        check_num(lock_free(&s->lock), ==, ZKL_EBUSY);
        check_true(s->me.op != old);
        check_ok(zkl_op_cancel(s->client, s->me.op));
        check_ended(&s->me, result(&s->me), ZKL_ECANCELED);
    }
    for (int i = 0; i < 40; i++) { /* more than there are places at first */
        queue(s, &s->me, 2);
        check_true(s->me.op != old);
        check_ok(zkl_op_cancel(s->client, old));
        check_ok(give(&s->rival));
        check_ok(result(&s->me));
        check_ok(zkl_op_cancel(s->client, s->me.op));
        check_held(&s->me, 1);
        check_ok(give(&s->me));
        hold(s, &s->rival);
    }
    check_ok(give(&s->rival));
}

static struct zkl_cancel *_Atomic for_handler;
static atomic_int handled, errno_kept;

static void set_in_handler(int sig)
{
    int interrupted = errno;
    struct zkl_cancel *cancel = for_handler;

    (void)sig;
    errno = ENOTTY;
    zkl_cancel_set(cancel);
    errno_kept = errno == ENOTTY && (!cancel || zkl_cancel_is_set(cancel));
    errno = interrupted;
    handled++;
}

/* Goal: a signal does not end a wait. Its handler may set the cancel object, in the waiting thread
 * itself, and errno is kept. */
BEHAVIOR_TEST(a_signal_ends_a_wait_by_its_handler_only, .ways = THREADS)
{
    struct sigaction action = {.sa_handler = set_in_handler}, before;
    struct zkl_cancel *cancel = world_cancel();

    check_ok(sigaction(SIGUSR1, &action, &before));
    for_handler = NULL;
    hold(s, &s->rival);
    queue_with(s, &s->me, cancel, 2);
    for (int i = 0; i < 5; i++) {
        int times = handled;
        check_ok(pthread_kill(actor_thread(s->me.actor), SIGUSR1));
        check_wait(handled > times, WAIT_MS);
    }
    check_true(!is_done(&s->me));
    check_queue(s, 2);
    for_handler = cancel;
    check_ok(pthread_kill(actor_thread(s->me.actor), SIGUSR1));
    check_ended(&s->me, result(&s->me), ZKL_ECANCELED);
    check_num(errno_kept, ==, 1);
    check_queue(s, 1);
    check_ok(give(&s->rival));
    check_ok(sigaction(SIGUSR1, &before, NULL));
}

/* --- threads that end ------------------------------------------------------------------------- */

struct short_life {
    struct party *party;
    int rc;
    bool completed;
};

static void *acquire_to_the_end(void *arg)
{
    struct short_life *life = arg;
    zkl_owner_use(life->party->owner);
    life->rc = lock_acquire(life->party);
    life->completed = true;
    pthread_testcancel();
    return NULL;
}

/* A hold that a thread left behind as it ended: gone with it, unless it is the handle's or an owner's. */
static void check_left_behind(struct scene *s)
{
    if (s->kind->of_handle || s->way == OPERATION) {
        check_held(&s->me, 1);
        check_ended(&s->rival, take_try(&s->rival), ZKL_EBUSY);
        check_ok(give(&s->me));
    }
    check_queue(s, 0);
}

BEHAVIOR_TEST(a_canceled_thread_comes_to_the_end_of_its_wait, .ways = THREADS)
{
    struct short_life life = {.party = &s->me, .rc = 1};
    pthread_t thread;
    void *end;

    hold(s, &s->rival);
    check_ok(pthread_create(&thread, NULL, acquire_to_the_end, &life));
    check_queue(s, 2);
    check_ok(pthread_cancel(thread));
    check_ok(give(&s->rival));
    check_ok(pthread_join(thread, &end));
    check_true(life.completed && end == PTHREAD_CANCELED);
    check_ok(life.rc);
    check_left_behind(s);
}

/* Goal: the end of a thread releases what it holds, as often as it locked. The callback says so
 * once, the next in line gets the lock, and the handle can be freed. What belongs to the handle or
 * to an owner stays. Modes: F54. */
BEHAVIOR_TEST(a_hold_ends_with_its_thread)
{
    bool stays = s->kind->of_handle || s->way == OPERATION;
    struct short_life life = {.party = &s->me, .rc = 1};
    pthread_t thread;

    watch(s);
    if (stays) {
        check_ok(pthread_create(&thread, NULL, acquire_to_the_end, &life));
        check_ok(pthread_join(thread, NULL));
        check_ok(life.rc);
        check_left_behind(s);
        check_num(noted(&s->notes), ==, 0);
        return;
    }
    hold(s, &s->me);
    check_ok(take(&s->me));
    uint64_t token = ask(&s->me)->token;
    queue(s, &s->rival, 2);
    queue(s, &s->mate, s->kind->takes_turns ? 2 : 3); /* gets nothing handed on */
    actor_end(s->me.actor);
    s->me.actor = actor_new();
    check_ok(result(&s->rival));
    check_note(&s->notes, 0, ZKL_HOLD_LOST, ZKL_REASON_OWNER_EXITED);
    check_num(s->notes.list[0].token, ==, token);
    check_num(ask(&s->rival)->token, >, token);
    check_none(&s->me);
    check_queue(s, 2);
    check_true(!is_done(&s->mate));
    check_ok(give(&s->rival));
    check_ok(result(&s->mate));
    check_num(ask(&s->mate)->token, >, token);
    check_ok(give(&s->mate));
    check_ok(lock_free(&s->lock));
    check_num(noted(&s->notes), ==, 1);
}

/* --- close ------------------------------------------------------------------------------------ */

/* After close: each call says so, and makes nothing. */
static void check_closed_calls(struct scene *s)
{
    struct lock another = {.kind = s->kind, .path = s->path, .client = s->client};

    check_num(zkl_client_get_state(s->client), ==, ZKL_CLIENT_CLOSED);
    check_ended(&s->mate, take(&s->mate), ZKL_ECLOSED);
    check_ended(&s->mate, take_try(&s->mate), ZKL_ECLOSED);
    check_ended(&s->mate, take_for(&s->mate, 5000), ZKL_ECLOSED);
    if (!s->kind->is_multi && !s->lock.rwlock)
        check_fails(s->kind->make(&another), ZKL_ECLOSED, "_new");
}

/* Goal: close loses what is held, with the callback, and the next in line gets it. After it each
 * call says so, and free works. Modes: F17. */
BEHAVIOR_TEST(a_close_loses_what_is_held, .after = CLOSED)
{
    watch(s);
    hold(s, &s->me);
    queue(s, &s->rival, 2);
    int rc;
    check_closed(rc = zkl_client_close(s->client, WAIT_MS));
    check_num(zkl_client_close(s->client, WAIT_MS), ==, rc);
    check_num(the_loss(s, ZKL_REASON_CLOSED)->token, >, 0);
    check_lost(&s->me, 1, ZKL_REASON_CLOSED);
    check_ok(result(&s->rival));
    check_closed_calls(s);
    if (!s->kind->is_permit)
        check_ended(&s->me, take(&s->me), ZKL_ECLOSED);
    check_num(lock_free(&s->lock), ==, ZKL_EBUSY);
    check_num(give(&s->me), ==, ZKL_ELOST);
    check_held(&s->rival, 1);
    check_queue(s, 1);
    check_ok(give(&s->rival));
    check_num(noted(&s->notes), ==, 1);
}

BEHAVIOR_TEST(a_close_ends_all_waits, .after = CLOSED)
{
    hold(s, &s->rival);
    queue(s, &s->me, 2);
    queue(s, &s->mate, s->kind->takes_turns ? 2 : 3);
    check_wait(has_waiting(s, 2), WAIT_MS);
    check_closed(zkl_client_close(s->client, WAIT_MS));
    check_true(s->way == THREAD ||
               (is_done(&s->me) && is_done(&s->mate))); /* it waits for callbacks */
    check_ended(&s->me, result(&s->me), ZKL_ECLOSED);
    check_ended(&s->mate, result(&s->mate), ZKL_ECLOSED);
    check_closed_calls(s);
    if (!s->kind->is_permit)
        check_num(give(&s->me), ==, ZKL_ENOTOWNER);
    check_queue(s, 1);
    check_held(&s->rival, 1);
    check_ok(give(&s->rival));
}

/* --- losses ----------------------------------------------------------------------------------- */

/* What was lost has to be released, and no one enters it meanwhile; then all is as before. */
static void check_is_released_once_more(struct scene *s)
{
    size_t notes = noted(&s->notes);

    for (int left = s->me.said.count; !s->kind->of_handle && left > 0; left--) {
        check_ended(&s->me, take(&s->me), ZKL_ELOST);
        check_ended(&s->me, take_try(&s->me), ZKL_ELOST);
        check_num(left > 1 ? give(&s->me) : ZKL_ELOST, ==, ZKL_ELOST);
    }
    if (s->kind->of_handle && !s->kind->is_permit) { /* the next hold waits for that */
        anew(&s->mate);
        begin(&s->mate);
        check_queue(s, 1);
        net_nap_ms(50); /* would do for a wrong grant */
        check_true(!is_done(&s->mate));
    }
    check_num(give(&s->me), ==, ZKL_ELOST);
    if (s->kind->of_handle && !s->kind->is_permit) {
        gets_and_gives(&s->mate);
    }
    check_num(noted(&s->notes), ==, notes);
    check_none(&s->me);
    if (!s->kind->is_permit)
        check_num(give(&s->me), ==, ZKL_ENOTOWNER);
    check_ok(take_for(&s->me, WAIT_MS));
    check_held(&s->me, 1);
    check_queue(s, 1);
    check_ok(give(&s->me));
}

/* Goal: the end of the session loses what is held, as often as it was entered. The callback says so once, with the true
 * reason, and the next in line gets the lock, then who waits behind it at another handle of the client. The next session
 * locks again. Modes: F6, F7, F15, F16. */
BEHAVIOR_TEST(an_expiry_loses_what_is_held, .after = EXPIRES)
{
    struct lock second = {.kind = s->kind, .path = s->path, .client = s->client};
    int count = s->kind->of_handle ? 1 : 3;

    lock_open(&second);
    watch(s);
    hold(s, &s->me);
    for (int i = 1; i < count; i++)
        check_ok(take(&s->me));
    uint64_t token = ask(&s->me)->token;
    queue(s, &s->rival, 2);
    s->mate.lock = &second;
    queue(s, &s->mate, 3);
    inside_expire(s->client);
    check_ok(result(&s->rival));
    check_num(the_loss(s, ZKL_REASON_EXPIRED)->token, ==, token);
    check_lost(&s->me, count, s->notes.list[noted(&s->notes) - 1].reason);
    check_num(ask(&s->rival)->token, >, token);
    check_queue(s, 2);
    check_true(!is_done(&s->mate));
    check_ok(give(&s->rival));
    gets_and_gives(&s->mate);
    check_queue(s, 0);
    check_ok(lock_free(&second));
    s->mate.lock = &s->lock;
    check_is_released_once_more(s);
}

static void nth_node(const struct scene *s, size_t nth, char *node, size_t size)
{
    char place[100];

    snprintf(place, sizeof place, "%s%s", s->path, s->kind->place);
    cluster_child(place, nth, node, size);
}

/* The one that waits is there again, with another node. */
static bool has_queued_again(const struct scene *s, const char *before)
{
    char node[400];

    if (!s->kind->has(s->path, 2))
        return false;
    nth_node(s, 1, node, sizeof node);
    return strcmp(node, before) != 0;
}

static void delete_node_of(struct scene *s, const char *node)
{
    (void)s;
    check_ok(wire_delete(raw, node, -1));
}

static void expire(struct scene *s, const char *node)
{
    (void)node;
    inside_expire(s->client);
}

static void check_queues_again(struct scene *s, void (*end)(struct scene *s, const char *node))
{
    char node[400];

    hold(s, &s->rival);
    queue(s, &s->me, 2);
    nth_node(s, 1, node, sizeof node);
    end(s, node);
    check_wait(has_queued_again(s, node), WAIT_MS);
    check_true(!is_done(&s->me));
    check_ok(give(&s->rival));
    gets_and_gives(&s->me);
}

BEHAVIOR_TEST(an_expiry_lets_who_waits_queue_again, .after = EXPIRES)
{
    check_queues_again(s, expire);
}

/* By a watch: the heartbeat comes later. */
static void check_at_once(int64_t start)
{
    check_true(net_now_ms() - start < SESSION_MS / 4 / 2 || lag_is_slow());
}

/* Goal: a hold whose node somebody deletes is lost, as often as it was entered. The callback says so
 * once, immediately. Modes: F12. */
BEHAVIOR_TEST(a_deletion_loses_what_is_held)
{
    int count = s->kind->of_handle ? 1 : 2;

    watch(s);
    hold(s, &s->me);
    check_ok(count > 1 ? take(&s->me) : 0);
    uint64_t token = ask(&s->me)->token;
    int64_t start = net_now_ms();
    check_ok(wire_delete(raw, cluster_at(s->me.said.node), -1));
    check_note(&s->notes, 0, ZKL_HOLD_LOST, ZKL_REASON_NODE_DELETED);
    check_at_once(start);
    check_num(s->notes.list[0].token, ==, token);
    check_text(s->notes.list[0].node, s->me.said.node);
    check_lost(&s->me, count, ZKL_REASON_NODE_DELETED);
    check_num(renew(&s->me, 60000), ==, ZKL_ELOST);
    check_is_released_once_more(s);
}

/* Goal: who waits and whose node somebody deletes queues again, behind who came meanwhile, also where
 * the holder's node goes at the same time. Who has the inner mutex of a semaphore may keep its turn.
 * Modes: F11, F12, F40. */
BEHAVIOR_TEST(a_deletion_lets_who_waits_queue_again)
{
    enum { GIVEN, DELETED, IN_ONE_GO, TIMES = IN_ONE_GO + 3 };
    bool has_inner = strstr(s->kind->place, "leases") != NULL;
    char held[400], node[400];

    if (has_inner && !s->kind->is_permit) { /* the next hold of a handle waits for a lost one */
        check_queues_again(s, delete_node_of);
        return;
    }
    for (int i = GIVEN; i < TIMES; i++) {
        hold(s, &s->rival);
        queue(s, &s->me, 2);
        queue(s, &s->late, 3);
        nth_node(s, 0, held, sizeof held);
        nth_node(s, 1, node, sizeof node);
        check_ok(wire_delete(raw, node, -1));
        if (i < IN_ONE_GO) {
            check_queue(s, 3);
            check_true(!is_done(&s->me) && !is_done(&s->late));
        }
        check_ok(i == GIVEN ? give(&s->rival) : wire_delete(raw, held, -1));
        check_wait(is_done(&s->me) || is_done(&s->late), WAIT_MS);
        bool kept = has_inner && is_done(&s->me);
        struct party *first = kept ? &s->me : &s->late, *then = kept ? &s->late : &s->me;
        check_ok(result(first));
        check_held(first, 1);
        check_queue(s, 2);
        check_true(!is_done(then) && wire_exists(raw, node, NULL) == WIRE_NONODE);
        check_ok(give(first));
        gets_and_gives(then);
        check_num(i == GIVEN ? ZKL_ELOST : give(&s->rival), ==, ZKL_ELOST);
        check_queue(s, 0);
    }
}

static void write_often(const char *node)
{
    for (int i = 0; i < 20; i++)
        check_ok(wire_set(raw, node, "not yours", -1));
}

/* Goal: what somebody writes to the nodes of who holds and who waits is neither a deletion nor a
 * turn, and is not told. A deletion after it is noticed as soon as ever. */
BEHAVIOR_TEST(written_data_changes_nothing)
{
    char held[400], node[400];

    watch(s);
    hold(s, &s->rival);
    queue(s, &s->me, 2);
    nth_node(s, 0, held, sizeof held);
    nth_node(s, 1, node, sizeof node);
    write_often(node);
    write_often(held);
    check_true(!is_done(&s->me) && wire_exists(raw, node, NULL) == 0);
    int64_t start = net_now_ms();
    check_ok(wire_delete(raw, node, -1));
    check_wait(has_queued_again(s, node), WAIT_MS);
    check_at_once(start);
    check_ok(give(&s->rival));
    check_ok(result(&s->me));
    check_held(&s->me, 1);
    write_often(cluster_at(s->me.said.node));
    check_held(&s->me, 1);
    check_num(noted(&s->notes), ==, 0);
    start = net_now_ms();
    check_ok(wire_delete(raw, cluster_at(s->me.said.node), -1));
    check_note(&s->notes, 0, ZKL_HOLD_LOST, ZKL_REASON_NODE_DELETED);
    check_at_once(start);
    check_num(give(&s->me), ==, ZKL_ELOST);
    check_num(noted(&s->notes), ==, 1);
}

/* Goal: a hold is lost at the end of its lease, not before, and the next in line gets the lock. A
 * renewal moves the end, or gives a hold one that had none. A re-entry leaves it. Modes: F64. */
BEHAVIOR_TEST(a_lease_ends_a_hold)
{
    watch(s);
    hold(s, &s->me);
    check_num(renew(&s->me, 0), ==, ZKL_EBADTIMEOUT);
    check_num(renew(&s->me, ZKL_TIMEOUT_MAX_MS + 1), ==, ZKL_EBADTIMEOUT);
    check_ok(renew(&s->me, 20000));
    check_ok(s->kind->of_handle ? 0 : take(&s->me));
    check_ok(s->kind->of_handle ? 0 : give(&s->me));
    check_held(&s->me, 1);
    check_num(s->me.said.window_ms, <=, 20000);
    check_ok(give(&s->me));
    check_ok(take_lease(&s->me, 1500));
    check_num(ask(&s->me)->window_ms, <=, 1500);
    if (!s->kind->is_multi) { /* whose other member keeps its lease */
        check_ok(renew(&s->me, 60000));
        net_nap_ms(1500); /* to where it would have ended */
        check_held(&s->me, 1);
    }
    check_ok(give(&s->me));
    int64_t start = net_now_ms();
    check_ok(take_lease(&s->me, 200));
    check_num(ask(&s->me)->window_ms, <=, 200);
    check_ok(take_for(&s->rival, WAIT_MS));
    check_num(net_now_ms() - start, >=, 200);
    the_loss(s, ZKL_REASON_LEASE_ENDED);
    check_lost(&s->me, 1, ZKL_REASON_LEASE_ENDED);
    check_num(renew(&s->me, 60000), ==, ZKL_ELOST);
    check_queue(s, 1);
    check_ok(give(&s->rival));
    check_is_released_once_more(s);
    if (s->kind->is_multi)
        return;
    hold(s, &s->me);
    check_ok(renew(&s->me, 100));
    check_queue(s, 0);
    check_num(give(&s->me), ==, ZKL_ELOST);
}

/* Goal: a short cut of the link is SUSPECT and then HELD to the callback, with token and node of the
 * hold. The hold stays, and no event follows for its release. */
BEHAVIOR_TEST(a_short_cut_is_told_as_suspect_and_held)
{
    watch(s);
    hold(s, &s->me);
    uint64_t token = ask(&s->me)->token;
    proxy_cut(s->proxy);
    check_note(&s->notes, 0, ZKL_HOLD_SUSPECT, ZKL_REASON_LINK);
    check_note(&s->notes, 1, ZKL_HOLD_HELD, ZKL_REASON_NONE);
    check_held(&s->me, 1);
    check_num(s->me.said.token, ==, token);
    for (int i = 0; i < 2; i++) {
        check_num(s->notes.list[i].token, ==, token);
        check_text(s->notes.list[i].node, s->me.said.node);
    }
    check_ok(give(&s->me));
    check_queue(s, 0);
    check_num(noted(&s->notes), ==, 2);
}

BEHAVIOR_TEST(a_short_cut_costs_no_place)
{
    char node[400], after[400];

    hold(s, &s->rival);
    queue(s, &s->me, 2);
    nth_node(s, 1, node, sizeof node);
    queue(s, &s->late, 3);
    lose_link(s->proxy);
    check_wait(zkl_client_get_state(s->client) != ZKL_CLIENT_CONNECTED, WAIT_MS);
    check_ok(proxy_refuse(s->proxy, false));
    check_wait(zkl_client_get_state(s->client) == ZKL_CLIENT_CONNECTED, WAIT_MS);
    nth_node(s, 1, after, sizeof after);
    check_text(after, node);
    check_ok(give(&s->rival));
    check_ok(result(&s->me));
    check_held(&s->me, 1);
    check_true(!is_done(&s->late));
    check_ok(give(&s->me));
    gets_and_gives(&s->late);
}

/* Goal: a release without a link says that it is not confirmed. The node is deleted once the link is
 * back. */
BEHAVIOR_TEST(a_release_without_a_link_is_unconfirmed)
{
    hold(s, &s->me);
    proxy_hole(s->proxy, PROXY_BOTH);
    proxy_cut(s->proxy);
    check_wait(zkl_client_get_state(s->client) == ZKL_CLIENT_SUSPENDED, WAIT_MS);
    check_num(ask(&s->me)->state, ==, ZKL_HOLD_SUSPECT);
    check_num(s->me.said.reason, ==, ZKL_REASON_LINK);
    check_num(give(&s->me), ==, ZKL_EUNCONFIRMED);
    check_none(&s->me);
    check_queue(s, 1);
    proxy_heal(s->proxy);
    check_queue(s, 0);
}

static void check_release(int rc, int code)
{
    check_num(rc, ==, code);
    check_num(zkl_error_is_lost(rc), ==, code == ZKL_EDOUBT);
    check_num(zkl_error_is_retryable(rc), ==, 0);
}

static void check_codes(const struct party *p, int code)
{
    for (int i = 0; p->lock->kind->is_multi && i < 2; i++)
        check_num(p->codes[i], ==, code);
}

/* Goal: each release of a hold whose window was empty says so, as another client may have held by then, which has held
 * all the time. Modes: F9. */
BEHAVIOR_TEST(an_empty_window_is_in_doubt, .after = EXPIRES)
{
    hold(s, &s->me);
    int count = s->kind->of_handle ? 1 : 2;
    check_ok(count > 1 ? take(&s->me) : 0);
    proxy_hole(s->proxy, PROXY_BOTH);
    check_ok(take(&s->rival));
    check_num(ask(&s->me)->window_ms, ==, 0);
    while (count-- > 0) {
        check_release(give(&s->me), ZKL_EDOUBT);
        check_true(strlen(s->me.detail) > strlen(zkl_strerror(ZKL_EDOUBT)));
        check_num(ask(&s->me)->count, ==, count);
    }
    check_codes(&s->me, ZKL_EDOUBT);
    check_release(give(&s->rival), 0);
    proxy_cut(s->proxy);
    proxy_heal(s->proxy);
}

/* The release of who holds has begun before the window was over, and that of the hold beside after it; false: not so, on
 * a busy machine. */
static bool releases_in_time(struct scene *s, struct zkl_mutex *beside)
{
    struct completion done = {0};

    check_ok(zkl_mutex_lock_for(beside, WAIT_MS));
    hold(s, &s->me);
    /* The first window is longer. */
    check_wait(zkl_mutex_window_ms(beside) < lag_session_ms(EXPIRING_MS) * 5 / 8, WAIT_MS);
    proxy_hole(s->proxy, PROXY_BOTH);
    check_ok(lock_start_release(&s->me, note_completion, &done));
    bool in_time = zkl_mutex_window_ms(beside) > 0;
    int rc = completion_code(&done);
    if (in_time) { /* who posts waits for no answer */
        check_release(rc, s->kind->posts ? 0 : ZKL_EUNCONFIRMED);
        check_codes(&s->me, ZKL_EUNCONFIRMED);
    }
    check_wait(zkl_mutex_window_ms(beside) == 0, WAIT_MS);
    /* Not so if an answer from before was read late, and proved more. */
    in_time = zkl_error_is_lost(zkl_mutex_unlock(beside)) && in_time;
    proxy_cut(s->proxy);
    proxy_heal(s->proxy);
    return in_time;
}

/* Goal: what ran empty only while the release waited is not in doubt: what the hold was for had ended by then. The window ends
 * before the client notices that the link is dead. A hold beside, released after all of that, is in doubt. */
BEHAVIOR_TEST(an_open_window_is_no_doubt, .ways = OPERATIONS, .after = EXPIRES)
{
    struct zkl_mutex *beside = world_mutex(s->client, cluster_path("beside"));
    int tries = 0;

    while (!releases_in_time(s, beside))
        check_num(++tries, <, 10);
}

/* --- callbacks -------------------------------------------------------------------------------- */

/* Goal: another client's request to release is reported once, however often it is made, and takes
 * nothing away. Other data is no request. */
BEHAVIOR_TEST(a_request_to_release_is_told)
{
    watch(s);
    hold(s, &s->me);
    check_num(ask(&s->me)->revoked, ==, 0);
    check_ok(wire_set(raw, cluster_at(s->me.said.node), "something else", -1));
    for (int i = 0; i < 2; i++)
        check_ok(wire_set(raw, cluster_at(s->me.said.node), "__REVOKE__", -1));
    check_note(&s->notes, 0, ZKL_HOLD_REVOKE_REQUESTED, ZKL_REASON_NONE);
    check_held(&s->me, 1);
    check_num(s->me.said.revoked, ==, 1);
    check_num(s->notes.list[0].token, ==, s->me.said.token);
    check_ok(give(&s->me));
    check_num(noted(&s->notes), ==, 1);
    hold(s, &s->me);
    check_num(ask(&s->me)->revoked, ==, 0);
    check_ok(give(&s->me));
}

static void delete_node(struct party *p)
{
    check_ok(wire_delete(raw, cluster_at(ask(p)->node), -1));
}

/* Goal: a callback counts for the acquires that begin after it was set. NULL removes it. Without one
 * a release tells of the loss. Modes: F15, F34b. */
BEHAVIOR_TEST(a_callback_is_that_of_the_acquire)
{
    hold(s, &s->me);
    watch(s);
    if (!s->kind->of_handle) /* a re-entry does not count; the loss may be known or not */
        check_ok(take(&s->me));
    delete_node(&s->me);
    int rc = s->kind->of_handle ? ZKL_ELOST : give(&s->me);
    check_true(rc == 0 || rc == ZKL_ELOST);
    rc = give(&s->me);
    check_true(rc == ZKL_ELOST || s->kind->posts); /* which does not wait for what tells */
    check_queue(s, 0);
    hold(s, &s->me);
    check_ok(lock_set_callback(&s->lock, NULL, NULL));
    delete_node(&s->me);
    check_note(&s->notes, 0, ZKL_HOLD_LOST, ZKL_REASON_NODE_DELETED);
    check_num(give(&s->me), ==, ZKL_ELOST);
    hold(s, &s->me);
    delete_node(&s->me);
    rc = give(&s->me);
    check_true(rc == ZKL_ELOST || s->kind->posts);
    check_queue(s, 0);
    check_num(noted(&s->notes), ==, 1);
}

struct within {
    struct scene *s;
    int acquired, tried, released;
    struct completion done;
};

static void call_within(int code, void *arg)
{
    struct within *w = arg;
    struct party mate = w->s->mate, me = w->s->me; /* copies: a release forgets the permit */

    anew(&mate);
    w->acquired = lock_acquire(&mate);
    mate.wait.flags = ZKL_WAIT_TRY;
    w->tried = lock_acquire(&mate);
    w->released = lock_release(&me);
    note_completion(code, &w->done);
}

/* Goal: calls that wait are refused in a callback, even if they would not have to, and change
 * nothing. Modes: F46. */
BEHAVIOR_TEST(a_callback_must_not_wait)
{
    struct within w = {.s = s};
    struct zkl_owner *owner = new_owner();
    struct zkl_mutex *mutex = cluster_mutex(s->client, "/within");
    struct zkl_wait over = ZKL_WAIT_INIT;

    over.deadline_ns = 1;
    for (int held = 0; held < 2; held++) {
        if (held)
            hold(s, &s->me);
        check_ok(zkl_mutex_acquire_async(owner, mutex, &over, NULL, call_within, &w, NULL));
        check_num(completion_code(&w.done), ==, ZKL_ETIMEDOUT);
        check_num(w.acquired, ==, ZKL_EINCALLBACK);
        check_num(w.tried, ==, ZKL_EINCALLBACK);
        if (held || !s->kind->is_permit)
            check_num(w.released, ==, ZKL_EINCALLBACK);
    }
    check_held(&s->me, 1);
    check_queue(s, 1);
    check_ok(give(&s->me));
    check_ok(zkl_owner_free(owner));
    check_ok(zkl_mutex_free(mutex));
}

#define LINKS 50

struct chain {
    struct party *party;
    int left, wrong;
    struct completion done;
};

static void next_link(int code, void *arg)
{
    struct chain *c = arg;
    struct party *p = c->party;
    struct zkl_owner *before = zkl_owner_use(p->owner);

    lock_ask(p);
    zkl_owner_use(before);
    bool held = p->said.held == 1;
    c->wrong += code != 0 || held != (c->left % 2 == 1);
    if (c->left-- == 0)
        note_completion(c->wrong, &c->done);
    else
        c->wrong += (held ? lock_start_release : lock_start)(p, next_link, c) != 0;
}

BEHAVIOR_TEST(a_callback_starts_the_next, .ways = OPERATIONS)
{
    struct chain c = {.party = &s->me, .left = 2 * LINKS - 1};

    anew(&s->me);
    check_ok(lock_start(&s->me, next_link, &c));
    check_ok(completion_code(&c.done));
}

/* --- in line ---------------------------------------------------------------------------------- */

/* Goal: contenders are served in their order, one at a time, threads and owners of one handle as
 * those of two clients, with growing tokens. While one waits, its handle says so, and can't be freed.
 * Modes: F33, F35, F44. */
BEHAVIOR_TEST(who_waits_is_served_in_turn)
{
    /* On one handle that takes turns the lock goes to the mate at once. */
    struct party *second = s->kind->takes_turns ? &s->mate : &s->late;
    struct party *third = s->kind->takes_turns ? &s->late : &s->mate;
    struct zkl_standing standing = ZKL_STANDING_INIT;

    check_true(has_waiting(s, 0));
    hold(s, &s->rival);
    uint64_t token = ask(&s->rival)->token;
    int64_t start_ns = zkl_now_ns();
    queue(s, &s->me, 2);
    check_num(lock_waiting(&s->lock, &standing), ==, 1);
    check_true(standing.since_ns >= start_ns && standing.since_ns <= zkl_now_ns());
    queue(s, &s->late, 3);
    queue(s, &s->mate, s->kind->takes_turns ? 3 : 4);
    check_wait(has_waiting(s, 2), WAIT_MS);
    check_num(lock_waiting(&s->others, NULL), ==, 1);
    check_num(lock_free(&s->lock), ==, ZKL_EBUSY);
    if (s->way == OPERATION && !s->kind->of_handle)
        check_num(zkl_owner_free(s->me.owner), ==, ZKL_EBUSY);
    check_true(!is_done(&s->me) && !is_done(&s->late) && !is_done(&s->mate));
    check_ok(give(&s->rival));
    check_ok(result(&s->me));
    check_held(&s->me, 1);
    check_num(s->me.said.token, >, token);
    check_queue(s, s->kind->takes_turns ? 2 : 3); /* those of one node are one */
    check_true(!is_done(second) && !is_done(third));
    check_ok(give(&s->me));
    check_ok(result(second));
    check_held(second, 1);
    check_queue(s, 2);
    check_true(s->kind->takes_turns ? second->said.token == s->me.said.token
                                    : second->said.token > s->me.said.token);
    check_true(!is_done(third));
    check_ok(give(second));
    check_ok(result(third));
    check_true(ask(third)->token > second->said.token || s->kind->is_multi); /* of two paths */
    check_true(has_waiting(s, 0));
    check_ok(give(third));
}

/* Goal: an owner has one acquisition of a path under way: another one would wait for it. What
 * belongs to no owner may be acquired so often. */
BEHAVIOR_TEST(an_owner_does_not_wait_for_itself, .ways = OPERATIONS, .of_owners = true)
{
    struct lock second = {.kind = s->kind, .path = s->path, .client = s->client};
    struct party again = s->me, other = s->me;
    int code = s->kind->is_multi ? ZKL_EBUSY : ZKL_EDEADLK;

    lock_open(&second);
    other.lock = &second;
    hold(s, &s->rival);
    queue(s, &s->me, 2);
    int (*const acquires[])(struct party *) = {take, take_try, take_here};
    for (int i = 0; i < 3 - s->kind->is_multi; i++) {
        check_ended(&again, acquires[i](&again), code);
        check_ended(&other, acquires[i](&other), code);
    }
    check_num(give(&s->me), ==, s->kind->is_multi ? ZKL_EBUSY : ZKL_ENOTOWNER);
    check_true(has_waiting(s, 1));
    check_ok(give(&s->rival));
    check_ok(result(&s->me));
    check_ended(&other, take(&other), ZKL_EDEADLK);
    check_ok(give(&s->me));
    check_ok(lock_free(&second));
}

BEHAVIOR_TEST(an_operation_needs_a_callback, .ways = OPERATIONS)
{
    struct party nobody = s->me;

    nobody.owner = NULL;
    for (int held = 0; held < 2; held++) {
        if (held)
            hold(s, &s->me);
        nobody.permit = s->me.permit;
        check_num(lock_start(&s->me, NULL, NULL), ==, ZKL_EINVAL);
        if (held)
            check_num(lock_start_release(&nobody, NULL, NULL), ==, ZKL_EINVAL);
        if (!s->kind->is_permit) {
            check_num(lock_start(&nobody, note_completion, &s->me.done), ==, ZKL_EINVAL);
            check_num(lock_start_release(&nobody, note_completion, &s->me.done), ==, ZKL_EINVAL);
        }
        check_num(s->me.done.calls, ==, 0);
    }
    check_held(&s->me, 1);
    check_ok(give(&s->me));
}

/* --- wrong calls, costs ----------------------------------------------------------------------- */

/* Goal: a wait that was not filled with its initializer, or says what can't be, is refused, and
 * nothing is sent. */
BEHAVIOR_TEST(a_wrong_wait_is_refused)
{
    static const struct zkl_wait good = ZKL_WAIT_INIT;
    struct {
        int code;
        const char *says;
        struct zkl_wait wait;
    } wrong[] = {
        {ZKL_EINVAL, "ZKL_WAIT_INIT", {0}},
        {ZKL_EINVAL, "0x4", good},
        {ZKL_EINVAL, "ZKL_WAIT_SYNC requires ZKL_WAIT_TRY", good},
        {ZKL_EBADTIMEOUT, "", good},
        {ZKL_EBADTIMEOUT, "", good},
        {ZKL_EBADTIMEOUT, "", good},
        {ZKL_EBADTIMEOUT, "", good},
        {ZKL_EINVAL, "ZKL_GRANT_INIT", good},
    };
    size_t n = sizeof wrong / sizeof *wrong - s->kind->is_permit; /* which has no grant */

    wrong[1].wait.flags = 4;
    wrong[2].wait.flags = ZKL_WAIT_SYNC;
    wrong[3].wait.deadline_ns = -1;
    wrong[4].wait.lease_ms = -1;
    wrong[5].wait.lease_ms = ZKL_LEASE_MIN_MS - 1;
    wrong[6].wait.lease_ms = ZKL_TIMEOUT_MAX_MS + 1;
    int64_t before = sent(s);
    for (size_t i = 0; i < n; i++) {
        anew(&s->me);
        s->me.wait = wrong[i].wait;
        if (strcmp(wrong[i].says, "ZKL_GRANT_INIT") == 0)
            s->me.grants[0].size = 1;
        begin(&s->me);
        check_ended(&s->me, result(&s->me), wrong[i].code);
        check_true(strstr(s->me.detail, wrong[i].says) != NULL);
    }
    check_num(sent(s), ==, before);
    check_num(wire_exists(raw, cluster_at(s->path), NULL), ==, WIRE_NONODE);
}

#define CYCLES 20

static void check_cost(struct scene *s, int each, int (*acquire)(struct party *), int code)
{
    int64_t before = sent(s), start = net_now_ms();
    int64_t keepalives = proxy_counts(s->proxy, PROXY_EXISTS);

    for (int i = 0; i < CYCLES; i++) {
        check_num(acquire(&s->me), ==, code);
        if (code == 0)
            check_queue(s, 1);
        check_ok(code == 0 ? give(&s->me) : 0);
        check_queue(s, code == 0 ? 0 : 1);
    }
    int64_t n = sent(s) - before;
    keepalives = proxy_counts(s->proxy, PROXY_EXISTS) - keepalives;
    bool fewer_lists = s->kind->posts || s->kind->is_multi; /* one may serve two */
    check_num(n, >=, (each - fewer_lists) * CYCLES - keepalives);
    check_num(n, <=, each * CYCLES + 2 + (net_now_ms() - start) / 100); /* heartbeats */
}

/* Goal: what an acquire and a release cost, without and with a callback, by a try, and what a busy
 * try costs. Method: the proxy counts, where the path is there for good. */
BEHAVIOR_TEST(costs_are_counted)
{
    char part[100];

    make_root(s->path, "");
    for (const char *const *p = s->kind->parts; p < s->kind->parts + 4 && *p; p++) {
        snprintf(part, sizeof part, "%s", below(s->path, *p));
        make_root(part, strstr(part, "leases") ? "1" : "");
    }
    check_cost(s, s->kind->costs.cycle, take, 0);
    check_cost(s, s->kind->costs.tried, take_try, 0);
    watch(s);
    check_cost(s, s->kind->costs.told, take, 0);
    check_ok(lock_set_callback(&s->lock, NULL, NULL));
    hold(s, &s->rival);
    check_cost(s, s->kind->costs.busy, take_try, ZKL_EBUSY);
    check_ok(give(&s->rival));
    check_num(noted(&s->notes), ==, 0);
    check_ok(wire_delete_tree(raw, cluster_at(s->path)));
}

/* --- the program ------------------------------------------------------------------------------ */

struct combination {
    char name[100];
    const struct behavior *behavior;
    const struct kind *kind;
    enum way way;
};

static void run(void **state)
{
    static struct scene s; /* a callback may come when a test has failed */
    const struct combination *c = *state;
    const struct behavior *b = c->behavior;

    memset(&s, 0, sizeof s);
    s.kind = c->kind;
    s.way = c->way;
    scene_open(&s, b->after == EXPIRES ? lag_session_ms(EXPIRING_MS) : SESSION_MS);
    b->run(&s);
    scene_close(&s, b->after != AS_BEFORE);
}

static bool is_there(const struct behavior *b, enum way way, const struct kind *kind)
{
    return kind->has && b->ways != (way == THREAD ? OPERATIONS : THREADS) &&
           !(b->of_owners && kind->of_handle);
}

int main(int argc, char **argv)
{
    static struct combination all[TESTS_MAX];
    static const char *const ways[WAYS] = {"thread", "operation"};
    size_t n = 0;

    for (const struct kind *kind = kinds; kind < kinds + kind_count; kind++) {
        for (size_t i = 0; i < behavior_count * WAYS; i++) {
            struct combination *c = &all[n];
            *c = (struct combination){
                .behavior = &behaviors[i / WAYS], .kind = kind, .way = i % WAYS};
            if (!is_there(c->behavior, c->way, kind))
                continue;
            snprintf(c->name, sizeof c->name, "%s/%s/%s", c->behavior->name, ways[c->way],
                     kind->name);
            tests_add(c->name, run, cluster_raw_open, cluster_world_end, c);
            n++;
        }
    }
    cluster_before_stop = pool_close;
    return cluster_main(argc, argv);
}
