/* SPDX-License-Identifier: Apache-2.0 */
/* A request or its answer is lost, the session ends, or the client is closed, while a call of any kind is
 * outstanding: at each of its requests, and while it waits for somebody. Everybody gets an answer, nothing stays, and
 * the client goes on. */
#include "fault.h"
#include "leaks.h"

#define SESSION_MS lag_session_ms(5000)
#define SILENT_SESSION_MS lag_session_ms(2000) /* the client waits for its end */
#define N_MAX 100                              /* requests of one call; more than that never ends */
#define REST_MS 1000 /* after the link is back: nothing of ours may be left by then */
#define PERMITS 3
#define MEMBERS 3

enum { AT_MUTEX, AT_RWLOCK, AT_SEMAPHORE, AT_ONE, AT_NUMBER, AT_ASKED, PLACES };

static const char *const paths[PLACES] = {"/out/mutex", "/out/rwlock", "/out/semaphore",
                                          "/out/one",   "/out/number", "/out/asked"};

/* The handles of one client. */
struct side {
    struct zkl_client *client;
    struct zkl_mutex *mutex, *one;
    struct zkl_rwlock *rwlock;
    struct zkl_semaphore *semaphore, *number;
    struct zkl_multi *multi,
        *as_one; /* in turn; of the mutex and the write lock, in one transaction */
    struct zkl_owner *owner;
    struct told told; /* of the mutex */
    atomic_bool granted;
};

struct hall;
struct kind;

/* What is tried with each kind of call. */
struct trial {
    /* At its nth request, or of that answer; false: it has fewer. */
    bool (*scene)(struct hall *h, const struct kind *kind, int n);
    int (*hold)(struct proxy *proxy, enum proxy_op op, int nth);
    int (*drop)(struct proxy *proxy, enum proxy_op op, int nth, enum proxy_then then);
    enum proxy_then then;
    bool late;     /* what is held comes, in the end */
    bool recovers; /* the answer to the create is lost first, with the link */
    bool waits;    /* only calls that can wait, for others */
    bool locks;    /* only those that create nodes */
    int step;      /* in a short run not each request, of most kinds */
    int code;      /* of who gives up */
};

struct hall {
    const struct trial *trial;
    struct proxy *proxy;
    struct side ours, theirs;            /* ours is behind the proxy */
    struct zkl_permit *permits[PERMITS]; /* that they have */
    struct wire *wire;
    struct actor *actor;
    int of_call;          /* that it makes: see struct kind */
    struct zkl_wait wait; /* of its acquires */
    char detail[300];     /* of its call */
    char node[200];       /* a raw client's contender at AT_ASKED */
    bool contended;       /* they hold what we want */
    bool alone;   /* nobody has taken our session or node, nor closed us: a grant is what it says */
    bool expires; /* our session ends */
    int threads;  /* without our client */
    unsigned long mark; /* of the world, without it */
    int64_t session;
};

static void side_open(struct side *s, struct zkl_client *client)
{
    s->client = client;
    s->mutex = world_mutex(client, paths[AT_MUTEX]);
    s->rwlock = world_rwlock(client, paths[AT_RWLOCK], NULL);
    s->semaphore = world_semaphore(client, paths[AT_SEMAPHORE], PERMITS, NULL);
    s->number = world_semaphore(client, paths[AT_NUMBER], 0, NULL);
    s->one = world_semaphore_mutex(client, paths[AT_ONE]);
    struct zkl_member members[MEMBERS] = {zkl_member_mutex(s->mutex),
                                          zkl_member_mutex(zkl_rwlock_writer(s->rwlock)),
                                          zkl_member_semaphore(s->semaphore, 1)};
    s->multi = world_multi(client, members, MEMBERS);
    s->as_one = world_multi(client, members, MEMBERS - 1);
    s->owner = world_owner();
    s->told = (struct told){0};
    check_ok(zkl_mutex_set_callback(s->mutex, told_fn, &s->told));
}

static struct hall *begin_trial(const struct trial *trial)
{
    struct hall *h = world_alloc(sizeof *h);

    h->trial = trial;
    h->proxy = world_proxy();
    h->wire = world_wire();
    side_open(&h->theirs, world_direct(QUIET_MS));
    h->actor = world_actor();
    /* The paths exist from the beginning to the end of the test. */
    check_ok(wire_create(h->wire, "/out", "", WIRE_PERSISTENT, NULL, 0));
    for (int i = 0; i < PLACES; i++)
        check_ok(wire_create(h->wire, paths[i], "", WIRE_PERSISTENT, NULL, 0));
    return h;
}

/* --- calls ------------------------------------------------------------------------------------ */

/* What was got is given back; the first code that is not 0. */
static int first(int one, int other)
{
    return one != 0 ? one : other;
}

/* rc is what an acquire said. */
static int got(struct side *s, int rc)
{
    s->granted = rc == 0;
    return rc;
}

static void check_only(struct side *s, const struct hall *h)
{
    fault_check_only(s->client, s->mutex, h->wire, paths[AT_MUTEX]);
}

/* The same thread locks at once after an unlock without an answer: it has a later node, and a delete that is sent again
 * spares that one. */
static void lock_again(struct side *s, const struct hall *h, uint64_t token)
{
    check_ok(zkl_mutex_lock(s->mutex));
    check_num(zkl_mutex_token(s->mutex), >, token);
    check_only(s, h);
    check_wait(fault_contenders(s->client) == 1, WAIT_MS);
    check_only(s, h);
    check_ok(zkl_mutex_unlock(s->mutex));
}

static int use_mutex(struct side *s, const struct hall *h)
{
    int rc = got(s, zkl_mutex_acquire(s->mutex, &h->wait, NULL));

    if (h->expires)
        check_ok(rc);
    if (h->expires && fault_session(s->client) != h->session && zkl_mutex_token(s->mutex) > 0)
        check_only(s, h); /* in the next session */
    if (rc != 0 || !h->alone)
        return rc != 0 ? rc : zkl_mutex_unlock(s->mutex);
    uint64_t token = zkl_mutex_token(s->mutex);
    check_only(s, h);
    lag_begin();
    rc = zkl_mutex_unlock(s->mutex);
    check_num(lag_end_ms(), <, SILENT_SESSION_MS);
    check_num(zkl_mutex_hold_count(s->mutex), ==, 0);
    if (rc != 0)
        lock_again(s, h, token);
    return rc;
}

static int use_rwlock(struct side *s, const struct hall *h)
{
    struct zkl_mutex *write = zkl_rwlock_writer(s->rwlock), *read = zkl_rwlock_reader(s->rwlock);
    int rc = zkl_mutex_acquire(write, &h->wait, NULL);

    if (rc != 0)
        return rc;
    int read_rc = got(s, zkl_mutex_acquire(read, &h->wait, NULL));
    if (h->alone && read_rc == 0) {
        check_num(fault_children(h->wire, paths[AT_RWLOCK]), ==, 2);
        check_num(zkl_mutex_token(read), ==, zkl_mutex_token(write));
    }
    rc = first(read_rc, zkl_mutex_unlock(write));
    if (h->alone && read_rc == 0)
        check_num(zkl_mutex_trylock(zkl_rwlock_writer(h->theirs.rwlock)), ==, ZKL_EBUSY);
    return read_rc != 0 ? rc : first(rc, zkl_mutex_unlock(read));
}

/* Without a look at what it has: a reader, or the mutex of a semaphore. */
static int use_plainly(struct side *s, const struct hall *h)
{
    struct zkl_mutex *mutex = h->of_call == AT_RWLOCK ? zkl_rwlock_reader(s->rwlock) : s->one;
    int rc = got(s, zkl_mutex_acquire(mutex, &h->wait, NULL));

    return rc != 0 ? rc : zkl_mutex_unlock(mutex);
}

/* Others can have the rest, and no more. */
static void check_permits(const struct hall *h, struct zkl_permit *const *permits, int count)
{
    struct zkl_permit *others[PERMITS];
    struct zkl_wait wait = ZKL_WAIT_INIT;
    int rest = PERMITS - count;

    check_wait(fault_children(h->wire, "/out/semaphore/leases") == count, WAIT_MS);
    for (int i = 0; i < count; i++)
        check_num(zkl_permit_token(permits[i]), >, 0);
    if (rest > 0)
        check_ok(zkl_semaphore_acquire(h->theirs.semaphore, rest, NULL, others));
    wait.deadline_ns = zkl_now_ns() + INT64_C(100000000);
    check_num(zkl_semaphore_acquire(h->theirs.semaphore, 1, &wait, &others[rest]), ==,
              ZKL_ETIMEDOUT);
    for (int i = 0; i < rest; i++)
        check_ok(zkl_permit_release(others[i]));
}

static int use_permits(struct side *s, const struct hall *h)
{
    struct zkl_permit *permits[PERMITS];
    int count = h->of_call;
    int rc = got(s, zkl_semaphore_acquire(s->semaphore, count, &h->wait, permits));

    if (rc != 0)
        return rc;
    if (h->alone)
        check_permits(h, permits, count);
    for (int i = 0; i < count; i++)
        rc = first(rc, zkl_permit_release(permits[i]));
    return rc;
}

static int use_members(struct side *s, const struct hall *h)
{
    int count = h->of_call;
    struct zkl_multi *multi = count == MEMBERS ? s->multi : s->as_one;
    int codes[MEMBERS], rc = got(s, zkl_multi_acquire(multi, &h->wait, NULL));

    if (rc != 0)
        return rc;
    if (h->alone) {
        check_only(s, h);
        fault_check_only(s->client, zkl_rwlock_writer(s->rwlock), h->wire, paths[AT_RWLOCK]);
        check_num(zkl_multi_still_held(multi, 1), ==, 1);
    }
    rc = zkl_multi_unlock(multi, codes);
    for (int i = 0; count < MEMBERS && h->alone && i < count; i++)
        check_num(codes[i], ==, rc);
    return rc;
}

static int operate_mutex(struct side *s, const struct hall *h)
{
    struct completion done = {0};
    int rc = got(s, fault_outcome(zkl_mutex_acquire_async(s->owner, s->mutex, &h->wait, NULL,
                                                          note_completion, &done, NULL),
                                  &done));

    if (rc == 0)
        rc = fault_outcome(zkl_mutex_unlock_async(s->owner, s->mutex, note_completion, &done),
                           &done);
    return rc;
}

static int operate_permits(struct side *s, const struct hall *h)
{
    struct zkl_permit *permits[PERMITS];
    struct completion done = {0};
    int rc =
        got(s, fault_outcome(zkl_semaphore_acquire_async(s->semaphore, PERMITS, &h->wait, permits,
                                                         note_completion, &done, NULL),
                             &done));

    if (rc != 0)
        return rc;
    if (h->alone)
        check_permits(h, permits, PERMITS);
    for (int i = 0; i < PERMITS; i++)
        rc = first(
            rc, fault_outcome(zkl_permit_release_async(permits[i], note_completion, &done), &done));
    return rc;
}

static int operate_multi(struct side *s, const struct hall *h)
{
    struct completion done = {0};
    int rc = got(s, fault_outcome(zkl_multi_acquire_async(s->owner, s->multi, &h->wait, NULL,
                                                          note_completion, &done, NULL),
                                  &done));

    if (rc == 0)
        rc = fault_outcome(zkl_multi_unlock_async(s->owner, s->multi, NULL, note_completion, &done),
                           &done);
    return rc;
}

static int set_number(struct side *s, const struct hall *h)
{
    return zkl_semaphore_set_permits(s->number, 3, &h->wait);
}

static int look(struct side *s, const struct hall *h)
{
    const struct zkl_inspection *seen = NULL;
    int rc = zkl_inspect(s->client, paths[AT_ASKED], WAIT_MS, &seen);

    (void)h;
    zkl_inspection_free(seen);
    return rc;
}

/* Contended: wait until they release. Else delete the node after asking. */
static int ask(struct side *s, const struct hall *h)
{
    struct zkl_wait wait = h->wait;

    if (!h->contended)
        wait.deadline_ns = 0;
    return zkl_revoke(s->client, h->node, &wait, h->contended ? 0 : ZKL_INSPECT_FORCE);
}

static int take_away(struct side *s, const struct hall *h)
{
    return zkl_break(s->client, h->node, 0, 0, WAIT_MS);
}

static const struct kind {
    const char *name;
    int (*use)(struct side *s, const struct hall *h);
    int of_call;           /* its place, or how many permits or members */
    bool waits;            /* for whoever has it */
    bool fully;            /* each of its requests, in a short run, too */
    enum proxy_op creates; /* its nodes, if it is a lock */
} kinds[] = {
    {"mutex", use_mutex, 0, true, true, PROXY_CREATE2},
    {"write lock, read lock", use_rwlock, 0, true, true, PROXY_CREATE2},
    {"read lock", use_plainly, AT_RWLOCK, true, false, PROXY_CREATE2},
    {"permit", use_permits, 1, true, true, PROXY_CREATE2},
    {"permits", use_permits, PERMITS - 1, true, false, PROXY_CREATE2},
    {"semaphore mutex", use_plainly, AT_ONE, true, false, PROXY_CREATE2},
    {"multi-lock", use_members, MEMBERS, true, false, PROXY_MULTI},
    {"multi-lock in one transaction", use_members, MEMBERS - 1, true, true, PROXY_MULTI},
    {"mutex, by operations", operate_mutex, 0, true, false, PROXY_CREATE2},
    {"permits, by operations", operate_permits, 0, true, false, PROXY_CREATE2},
    {"multi-lock, by operations", operate_multi, 0, true, false, PROXY_MULTI},
    {"revoke", ask, 0, true, false, 0},
    {"number of permits", set_number, 0, false, false, 0},
    {"inspect", look, 0, false, false, 0},
    {"break", take_away, 0, false, false, 0},
};
#define KINDS (sizeof kinds / sizeof kinds[0])

static int act_use(struct zkl_mutex *kind, void *hall)
{
    struct hall *h = hall;
    const struct kind *k = (const struct kind *)(const void *)kind;

    h->of_call = k->of_call;
    int rc = k->use(&h->ours, h);

    snprintf(h->detail, sizeof h->detail, "%s", zkl_error_detail());
    return rc;
}

static void begin(struct hall *h, const struct kind *kind)
{
    act_begin(h->actor, act_use, (struct zkl_mutex *)(void *)kind, h);
}

/* --- scenes ----------------------------------------------------------------------------------- */

static int children(struct hall *h, int place)
{
    char inner[100];
    int n = 0;

    if (place == AT_NUMBER || place == AT_ASKED)
        return 0; /* a number, and somebody else */
    if (place != AT_SEMAPHORE && place != AT_ONE)
        return fault_children(h->wire, paths[place]);
    for (int i = 0; i < 2; i++) {
        snprintf(inner, sizeof inner, "%s/%s", paths[place], i == 0 ? "locks" : "leases");
        n += fault_children(h->wire, inner);
    }
    return n;
}

static bool all_gone(struct hall *h)
{
    for (int i = 0; i < PLACES; i++) {
        if (children(h, i) > 0)
            return false;
    }
    return true;
}

static void make_node(struct hall *h)
{
    char name[200];

    if (h->node[0] != '\0' && wire_exists(h->wire, h->node, NULL) == 0)
        return;
    snprintf(name, sizeof name, "%s/_c_00000000-0000-4000-8000-000000000000-lock-",
             paths[AT_ASKED]);
    check_ok(wire_create(h->wire, name, "", WIRE_EPHEMERAL_SEQUENTIAL, h->node, sizeof h->node));
}

/* So that the client cannot take the zxid of its write lock from the list. */
static void somebody_comes_and_goes(struct hall *h)
{
    check_ok(wire_create(h->wire, "/out/rwlock/stranger", "", WIRE_PERSISTENT, NULL, 0));
    check_ok(wire_delete(h->wire, "/out/rwlock/stranger", -1));
}

static bool is_silent(const struct trial *trial)
{
    return trial->drop && trial->then == PROXY_THEN_SILENT;
}

static void enter(struct hall *h, bool contended)
{
    h->threads = fault_threads();
    h->mark = world_mark();
    h->contended = contended;
    h->wait = (struct zkl_wait)ZKL_WAIT_INIT;
    h->wait.cancel = world_cancel();
    make_node(h);
    somebody_comes_and_goes(h);
    side_open(&h->ours,
              world_through(h->proxy, is_silent(h->trial) ? SILENT_SESSION_MS : SESSION_MS));
    h->session = fault_session(h->ours.client);
}

/* The nth request from now on, or its answer, is held back. False: the call ended before it. */
static bool begin_and_hold(struct hall *h, const struct kind *kind, int n)
{
    check_ok(h->trial->hold(h->proxy, PROXY_ANY, n));
    begin(h, kind);
    while (act_busy(h->actor) && proxy_wait_held(h->proxy, 20) != 0)
        ;
    return proxy_wait_held(h->proxy, 0) == 0;
}

static void leave(struct hall *h)
{
    proxy_release(h->proxy);
    world_clear_since(h->mark);
    check_wait(fault_threads() <= h->threads, WAIT_MS);
    check_wait(flw_has_session(zks_host(), zks_port(server, 0), h->session) == 0, WAIT_MS);
    check_wait(all_gone(h), WAIT_MS);
}

static bool connected_anew(struct hall *h)
{
    return fault_connected(h->ours.client) && fault_session(h->ours.client) != h->session;
}

/* It may have been lost, or its outcome is not known; then it works again. */
static void check_after_expiry(struct hall *h, const struct kind *kind, int rc)
{
    if (rc != 0 && rc != ZKL_ELOST && !is_unanswered(rc) && rc != ZKL_EDISCONNECTED &&
        !(kind->use == take_away && rc == ZKL_ENONODE))
        fail_msg("%s: %d", kind->name, rc);
    check_num(h->ours.told.lost, <=, rc != 0);
    check_wait(connected_anew(h), WAIT_MS);
    h->session = fault_session(h->ours.client);
    h->expires = false;
    check_wait(fault_contenders(h->ours.client) == 0, WAIT_MS);
    check_wait(fault_watches(h->ours.client) == 0, WAIT_MS);
    check_wait(all_gone(h), WAIT_MS);
    make_node(h);
    begin(h, kind);
    check_ok(act_end(h->actor, WAIT_MS));
    check_wait(fault_calls(h->ours.client) == 0, WAIT_MS);
}

/* Two of three sessions are old: a client pauses for a second before the one behind a young one. */
static void expire_ours(struct hall *h, long n)
{
    struct zkl_driver *d = h->ours.client->driver;
    const int64_t hour_ns = INT64_C(3600000000000);

    zkl_driver_lock(d);
    d->core.session.born.mono_ns -= n % 3 != 0 ? hour_ns : 0;
    d->core.session.born.boot_ns -= n % 3 != 0 ? hour_ns : 0;
    zkl_driver_unlock(d);
    fault_expire(h->ours.client, 0);
}

static bool expire_at(struct hall *h, const struct kind *kind, int n)
{
    enter(h, false);
    h->expires = true;
    bool held = begin_and_hold(h, kind, n);
    if (held) {
        expire_ours(h, n);
        if (!h->trial->late)
            proxy_cut(h->proxy);
        proxy_release(h->proxy);
        int rc = act_end(h->actor, WAIT_MS);
        if (kind->use == use_mutex && n <= 2 && rc == ZKL_ELOST) /* what was granted is */
            check_wait(h->ours.told.lost == 1, WAIT_MS);
        check_after_expiry(h, kind, rc);
    } else {
        check_ok(act_end(h->actor, WAIT_MS));
    }
    h->expires = false;
    leave(h);
    return held;
}

/* --- losses ----------------------------------------------------------------------------------- */

/* Watches are out and no answer is due. */
static bool waits(struct hall *h)
{
    return fault_watches(h->ours.client) > 0 && fault_calls(h->ours.client) == 0;
}

/* False: the call ended before its nth request, or waits without one. */
static bool begin_and_lose(struct hall *h, const struct kind *kind, int n)
{
    const struct trial *trial = h->trial;

    if (trial->recovers)
        check_ok(proxy_drop_reply(h->proxy, kind->creates, 1, PROXY_THEN_CUT));
    check_ok(trial->drop(h->proxy, PROXY_ANY, n + trial->recovers, trial->then));
    begin(h, kind);
    while (act_busy(h->actor) && proxy_wait_dropped(h->proxy, 20) != 0 &&
           !(h->contended && waits(h)))
        ;
    return proxy_wait_dropped(h->proxy, 0) == 0;
}

/* Done, or the caller knows that it does not know; in the same session. */
static void check_after_loss(struct hall *h, const struct kind *kind, int rc)
{
    if (rc != 0 && !is_unanswered(rc))
        fail_msg("%s: %d", kind->name, rc);
    check_wait(fault_connected(h->ours.client), WAIT_MS);
    check_num(fault_session(h->ours.client), ==, h->session);
    check_wait(all_gone(h), REST_MS);
    fault_check_rest(h->ours.client, h->wire, paths[AT_MUTEX], REST_MS);
    check_num(h->ours.told.lost, ==, 0);
}

/* The same call, with nothing in its way. */
static void check_works(struct hall *h, const struct kind *kind)
{
    proxy_disarm(h->proxy);
    make_node(h);
    begin(h, kind);
    check_ok(act_end(h->actor, WAIT_MS));
    h->alone = false;
}

static bool lose_at(struct hall *h, const struct kind *kind, int n)
{
    enter(h, false);
    h->alone = true;
    bool lost = begin_and_lose(h, kind, n);
    check_after_loss(h, kind, act_end(h->actor, WAIT_MS));
    check_works(h, kind);
    leave(h);
    return lost;
}

static void close_ours(struct hall *h, bool at_once)
{
    lag_begin();
    int rc = zkl_client_close(h->ours.client, at_once ? 0 : WAIT_MS);

    check_num(lag_end_ms(), <, 5000);
    check_true(rc == 0 || rc == ZKL_ETIMEDOUT);
}

static void check_after_close(struct hall *h, const struct kind *kind, int rc)
{
    if (rc != 0 && rc != ZKL_ECLOSED && rc != ZKL_ELOST && !is_unanswered(rc))
        fail_msg("%s: %d", kind->name, rc);
    begin(h, kind);
    check_num(act_end(h->actor, WAIT_MS), ==, ZKL_ECLOSED);
}

static bool close_at(struct hall *h, const struct kind *kind, int n)
{
    enter(h, false);
    bool held = begin_and_hold(h, kind, n);
    if (held) {
        close_ours(h, n % 3 == 2);
        int rc = act_end(h->actor, 5000);
        proxy_release(h->proxy);
        check_after_close(h, kind, rc);
    } else {
        check_ok(act_end(h->actor, WAIT_MS));
    }
    leave(h);
    return held;
}

static bool fits(const struct trial *trial, const struct kind *kind)
{
    return trial->locks ? kind->creates != 0 : kind->waits || !trial->waits;
}

static void play(const struct trial *trial)
{
    struct hall *h = begin_trial(trial);
    int most = trial->step > 1 ? test_length(1, trial->step) : 1;

    for (size_t i = 0; i < KINDS; i++) {
        if (!fits(trial, &kinds[i]))
            continue;
        bool fully = i == 0 || (kinds[i].fully && !trial->waits && !trial->locks);
        int step = fully ? 1 : most;
        int n = 1 + (int)i % step, times = 0; /* with steps each kind begins at another place */
        while (n < N_MAX && trial->scene(h, &kinds[i], n)) {
            n += step;
            times++;
        }
        print_message("    %s: %d places\n", kinds[i].name, times);
        check_num(n, <, N_MAX);
        check_true(times > 0 || n > 1);
        check_ok(wire_ping(h->wire));
    }
}

#define TRIAL_TEST(name, ...) WORLD_TEST_OF(name, play(&(struct trial)__VA_ARGS__))
#define CUTS .drop = proxy_drop_reply, .then = PROXY_THEN_CUT
#define SILENCES .drop = proxy_drop_reply, .then = PROXY_THEN_SILENT

/* The session ends at each request of each kind of call, and the answer is lost. A lock is granted in the next session,
 * on the one node that it has there. Modes: F5, F50. */
TRIAL_TEST(expiry_without_each_answer, {expire_at, .hold = proxy_hold_reply})

/* The same, and the answer comes: it proves nothing any more. A hold that was granted on it is lost, and the callback
 * reports that once. Modes: F10, F50. */
TRIAL_TEST(expiry_before_each_answer,
           {expire_at, .hold = proxy_hold_reply, .late = true, .step = 3})

/* The server hears the request after the end. Modes: F50. */
TRIAL_TEST(expiry_before_each_request,
           {expire_at, .hold = proxy_hold_request, .late = true, .step = 3})

/* The answer to each request of each kind of call is lost with the link: the call is done, on one node, in the same
 * session, and nothing is left. Modes: F1, F13, F14, F40. */
TRIAL_TEST(cut_before_each_answer, {lose_at, CUTS})

/* The same, and the connection stays open and silent. Modes: F1, F13. */
TRIAL_TEST(silence_before_each_answer, {lose_at, SILENCES, .step = 6})

/* The server never gets the request. Modes: F13, F14. */
TRIAL_TEST(cut_before_each_request, {lose_at, .drop = proxy_drop_request, .step = 2})

/* The answer to a create is lost, and so is that to each request of its recovery: to the quorum write, the list, exists.
 * Still there is one node, and it is granted. */
TRIAL_TEST(cut_before_each_answer_to_a_recovery,
           {lose_at, CUTS, .recovers = true, .locks = true, .step = 6})

TRIAL_TEST(silence_before_each_answer_to_a_recovery,
           {lose_at, SILENCES, .recovers = true, .locks = true, .step = 12})

/* The client is closed there, with time for it or without. */
TRIAL_TEST(close_at_each_request, {close_at, .hold = proxy_hold_reply, .step = 4})

/* --- giving up -------------------------------------------------------------------------------- */

#define PATIENCE_MS 300

/* A call that has not got its lock ends in time by its cancel object, or its deadline, though no answer comes. */
static bool give_up_at(struct hall *h, const struct kind *kind, int n)
{
    int code = h->trial->code;

    enter(h, false);
    if (code == ZKL_ETIMEDOUT)
        h->wait.deadline_ns = zkl_now_ns() + PATIENCE_MS * INT64_C(1000000);
    check_ok(proxy_refuse(h->proxy, !is_silent(h->trial)));
    bool lost = begin_and_lose(h, kind, n);
    if (code == ZKL_ECANCELED && lost)
        zkl_cancel_set(h->wait.cancel);
    lag_begin();
    int rc = act_end(h->actor, WAIT_MS);
    bool gave_up = rc == code;
    bool unlocks = kind->use == use_rwlock; /* the write lock, without an answer */
    check_true(lag_end_ms() < REST_MS || !gave_up || unlocks);
    check_true(gave_up || h->ours.granted);
    check_ok(proxy_refuse(h->proxy, false));
    int64_t links = fault_links(h->ours.client);
    proxy_cut(h->proxy); /* else the client waits for the silence to last */
    h->wait = (struct zkl_wait)ZKL_WAIT_INIT;
    if (h->trial->recovers) { /* at once, beside what is still to be deleted */
        /* A create that the cut takes along is a sign that the server does not know that request. */
        check_wait(!fault_connected(h->ours.client) || fault_links(h->ours.client) > links,
                   WAIT_MS);
        proxy_disarm(h->proxy);
        begin(h, kind);
        check_ok(act_end(h->actor, WAIT_MS));
    }
    check_after_loss(h, kind, gave_up ? 0 : rc);
    h->alone = true;
    check_works(h, kind);
    leave(h);
    return lost || gave_up;
}

/* The answer to each request of a lock is missing until its caller gives up: the call ends in time, and the client deletes
 * the nodes at most 1 s after the link is back (Curator's and Kazoo's ghosts). Modes: F3, F25. */
TRIAL_TEST(a_cancel_without_each_answer,
           {give_up_at, SILENCES, .locks = true, .step = 6, .code = ZKL_ECANCELED})

/* Modes: F2, F25, F40. */
TRIAL_TEST(a_deadline_without_each_answer,
           {give_up_at, SILENCES, .locks = true, .step = 6, .code = ZKL_ETIMEDOUT})

/* The answer to the create was lost before, and the same thread or owner locks again at once. Modes: F2. */
TRIAL_TEST(a_cancel_without_each_answer_to_a_recovery,
           {give_up_at, SILENCES, .recovers = true, .locks = true, .step = 6,
            .code = ZKL_ECANCELED})

/* The answer is lost with the link, and none comes to recover by until then. */
TRIAL_TEST(a_deadline_without_a_link_at_each_answer,
           {give_up_at, CUTS, .locks = true, .step = 6, .code = ZKL_ETIMEDOUT})

/* --- waiting ---------------------------------------------------------------------------------- */

/* Whatever kind it is: the mutex, the write lock, the permits, the one. */
static void they_take_all(struct hall *h)
{
    check_ok(zkl_mutex_lock(h->theirs.mutex));
    check_ok(zkl_mutex_lock(zkl_rwlock_writer(h->theirs.rwlock)));
    check_ok(zkl_semaphore_acquire(h->theirs.semaphore, PERMITS, NULL, h->permits));
    check_ok(zkl_mutex_lock(h->theirs.one));
}

static void they_let_go(struct hall *h)
{
    check_ok(zkl_mutex_unlock(h->theirs.one));
    for (int i = 0; i < PERMITS; i++)
        check_ok(zkl_permit_release(h->permits[i]));
    check_ok(zkl_mutex_unlock(zkl_rwlock_writer(h->theirs.rwlock)));
    check_ok(zkl_mutex_unlock(h->theirs.mutex));
    check_ok(wire_delete(h->wire, h->node, -1));
}

static void wait_for_them(struct hall *h, const struct kind *kind)
{
    enter(h, true);
    they_take_all(h);
    begin(h, kind);
    check_wait(waits(h), WAIT_MS);
    check_true(act_busy(h->actor));
}

/* False: it waits before its nth request. */
static bool lose_and_wait_at(struct hall *h, const struct kind *kind, int n)
{
    enter(h, true);
    they_take_all(h);
    bool lost = begin_and_lose(h, kind, n);
    check_true(act_busy(h->actor));
    if (n % 2) /* else they release while it recovers */
        check_wait(fault_connected(h->ours.client) && waits(h), WAIT_MS);
    they_let_go(h);
    check_after_loss(h, kind, act_end(h->actor, WAIT_MS));
    proxy_disarm(h->proxy);
    leave(h);
    return lost;
}

/* Those of its watches too; what it waits for is released later, or just then. */
TRIAL_TEST(cut_before_each_answer_to_a_waiter, {lose_and_wait_at, CUTS, .waits = true})

TRIAL_TEST(silence_before_each_answer_to_a_waiter,
           {lose_and_wait_at, SILENCES, .waits = true, .step = 6})

/* False: whoever gives up has nothing more to ask before its nth request. */
static bool lose_behind_a_wait_at(struct hall *h, const struct kind *kind, int n)
{
    wait_for_them(h, kind);
    int64_t links = fault_links(h->ours.client);
    check_ok(h->trial->drop(h->proxy, PROXY_ANY, n, h->trial->then));
    zkl_cancel_set(h->wait.cancel);
    check_num(act_end(h->actor, REST_MS), ==, ZKL_ECANCELED);
    check_wait(proxy_wait_dropped(h->proxy, 0) == 0 ||
                   (fault_contenders(h->ours.client) == 0 && fault_watches(h->ours.client) == 0),
               WAIT_MS);
    bool lost = proxy_wait_dropped(h->proxy, 0) == 0;
    if (lost)
        fault_check_reconnect(h->ours.client, links);
    check_wait(fault_contenders(h->ours.client) == 0, REST_MS);
    check_wait(fault_watches(h->ours.client) == 0, REST_MS);
    check_wait(fault_server_watches(h->ours.client) == 0, REST_MS);
    check_wait(fault_children(h->wire, paths[AT_MUTEX]) == 1, REST_MS); /* theirs */
    they_let_go(h);
    check_after_loss(h, kind, 0);
    proxy_disarm(h->proxy);
    leave(h);
    return lost;
}

/* A waiter gives up, and the answer to each request by which its node and watches are removed is lost: neither the client
 * nor the server keeps any of them, though the watched node lives on. Modes: F49. */
TRIAL_TEST(cut_before_each_answer_behind_a_wait,
           {lose_behind_a_wait_at, CUTS, .waits = true, .step = 3})

TRIAL_TEST(silence_before_each_answer_behind_a_wait,
           {lose_behind_a_wait_at, SILENCES, .waits = true, .step = 6})

static bool expire_while_waiting(struct hall *h, const struct kind *kind, int n)
{
    if (n > 1)
        return false;
    wait_for_them(h, kind);
    expire_ours(h, kind - kinds);
    check_wait(connected_anew(h) && waits(h), WAIT_MS);
    check_true(act_busy(h->actor));
    h->session = fault_session(h->ours.client);
    they_let_go(h);
    check_ok(act_end(h->actor, WAIT_MS));
    check_num(h->ours.told.lost, ==, 0);
    leave(h);
    return true;
}

/* It waits again in the next one, and is granted there. Modes: F6. */
TRIAL_TEST(expiry_while_waiting, {expire_while_waiting, .waits = true})

static bool close_while_it_waits(struct hall *h, const struct kind *kind, int n)
{
    wait_for_them(h, kind);
    close_ours(h, n > 1);
    check_num(act_end(h->actor, 5000), ==, ZKL_ECLOSED);
    they_let_go(h);
    leave(h);
    return n == 1;
}

TRIAL_TEST(close_while_waiting, {close_while_it_waits, .waits = true})

static void limit_watches(struct hall *h, size_t bytes)
{
    zkl_driver_lock(h->ours.client->driver);
    h->ours.client->driver->core.watch_bytes_max = bytes;
    zkl_driver_unlock(h->ours.client->driver);
}

static bool wait_without_a_watch(struct hall *h, const struct kind *kind, int n)
{
    if (n > 1)
        return false;
    enter(h, true);
    they_take_all(h);
    limit_watches(h, 20);
    begin(h, kind);
    check_num(act_end(h->actor, WAIT_MS), ==, ZKL_ESYSTEM);
    check_true(strstr(h->detail, "watch is available") != NULL);
    check_true(kind->use != use_mutex ||
               strstr(h->detail, "as many nodes as it can restore") != NULL);
    check_wait(fault_contenders(h->ours.client) == 0, WAIT_MS);
    check_num(fault_children(h->wire, paths[AT_MUTEX]), ==, 1);
    limit_watches(h, ZKL_WATCH_BYTES_MAX);
    begin(h, kind);
    check_wait(waits(h), WAIT_MS);
    they_let_go(h);
    check_ok(act_end(h->actor, WAIT_MS));
    limit_watches(h, 20);
    make_node(h);
    h->contended = false;
    begin(h, kind);
    check_ok(act_end(h->actor, WAIT_MS));
    leave(h);
    return true;
}

/* A client watches as much as it can restore. Each call that would wait says so, leaves nothing, and can be repeated when
 * there is room. A call that need not wait succeeds. */
TRIAL_TEST(no_watch_for_a_wait, {wait_without_a_watch, .waits = true})
