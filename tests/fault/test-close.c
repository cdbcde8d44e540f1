/* SPDX-License-Identifier: Apache-2.0 */
/* The test closes a client, or gives it up without a wait, in every state that its threads can be
 * in, with a server that answers and with one that does not. Every call ends in time, and nothing
 * is left. */
#include "bench.h"
#include "leaks.h"

#define SESSION_MS 1000
#define SOON_MS 1000 /* for what must not wait for a server */

static const char *const path = "/close/m";

static int64_t last_session; /* of the client that is closed */

/* By the test, as it closes and frees it. */
static void open_client(struct bench *b)
{
    b->client = fault_open(proxy_address(b->proxy), SESSION_MS);
    b->mutex = fault_mutex(b->client, path);
    last_session = fault_session(b->client);
    b->told.lost = 0;
    check_ok(zkl_mutex_set_callback(b->mutex, told_fn, &b->told));
}

/* --- states of the actor's call --------------------------------------------------------------- */

/* A state, and what the actor's call in it may return when the client is closed meanwhile. */
struct scene {
    const char *name;
    act_fn act;         /* the call, or NULL */
    enum proxy_op held; /* its request whose answer is held back */
    int results[2];
    bool locks;       /* the actor holds before it */
    bool rival_holds; /* all the time: the call waits */
    bool lost_before; /* there is no link when the call begins; */
    bool lost;        /* nor later */
    bool ended;       /* the call was given up */
    bool answers;     /* nothing keeps the server's answer to the close from us */
};

ACT(lock_briefly, zkl_mutex_lock_for(mutex, 50))

#define CLOSED_FOR_ALL .results = {ZKL_ECLOSED, ZKL_ECLOSED}

static const struct scene scenes[] = {
    {"waiting", act_lock, CLOSED_FOR_ALL, .rival_holds = true, .answers = true},
    {"holding", .locks = true, .answers = true},
    {"creating", act_lock, PROXY_CREATE2, CLOSED_FOR_ALL},
    {"listing", act_lock, PROXY_CHILDREN, CLOSED_FOR_ALL},
    {"trying", act_trylock, PROXY_CHILDREN, CLOSED_FOR_ALL},
    {"releasing", act_unlock, PROXY_DELETE, {ZKL_EUNCONFIRMED, ZKL_ELOST}, .locks = true},
    {"leaving", lock_briefly, PROXY_CREATE2, {ZKL_ETIMEDOUT, ZKL_ETIMEDOUT}, .ended = true},
    {"waiting, no link", act_lock, CLOSED_FOR_ALL, .rival_holds = true, .lost = true},
    {"holding, no link", .locks = true, .lost = true},
    {"no link", act_lock, CLOSED_FOR_ALL, .lost_before = true},
};
#define SCENES (sizeof scenes / sizeof scenes[0])

static void begin_scene(struct bench *b, const struct scene *scene)
{
    if (scene->locks)
        check_ok(act_do(b->actor, act_lock, b->mutex, NULL));
    if (scene->lost_before)
        fault_lose_link(b->client, b->proxy);
    if (scene->held != 0)
        check_ok(proxy_hold_reply(b->proxy, scene->held, 1));
    if (scene->act != NULL)
        act_begin(b->actor, scene->act, b->mutex, NULL);
    if (scene->held != 0)
        check_ok(proxy_wait_held(b->proxy, WAIT_MS));
    if (scene->ended)
        check_num(act_end(b->actor, WAIT_MS), ==, scene->results[0]);
    if (scene->rival_holds)
        check_wait(fault_watches(b->client) == 2, WAIT_MS);
    if (scene->lost_before)
        check_wait(fault_contenders(b->client) == 1, WAIT_MS);
    if (scene->lost)
        fault_lose_link(b->client, b->proxy);
}

/* Without a call it holds, and owes an unlock. */
static bool holds(const struct scene *scene)
{
    return scene->act == NULL;
}

/* What the actor has to do after the close, with the client open or given up. */
static void end_actor(struct bench *b, const struct scene *scene)
{
    int rc = act_end(b->actor, SOON_MS);

    if (holds(scene)) {
        check_num(act_do(b->actor, act_count, b->mutex, NULL), ==, 1);
        check_num(act_do(b->actor, act_window, b->mutex, NULL), ==, 0);
        check_num(act_do(b->actor, act_unlock, b->mutex, NULL), ==, ZKL_ELOST);
    } else {
        check_true(rc == scene->results[0] || rc == scene->results[1]);
    }
    check_num(act_do(b->actor, act_count, b->mutex, NULL), ==, 0);
    check_num(act_do(b->actor, act_lock, b->mutex, NULL), ==, ZKL_ECLOSED);
    check_num(act_do(b->actor, act_unlock, b->mutex, NULL), ==, ZKL_ENOTOWNER);
}

/* The server removes the session's nodes, at the latest when it times out; then the path is
 * free. */
static void check_gone(struct bench *b, int ms)
{
    check_wait(flw_has_session(zks_host(), zks_port(server, 0), last_session) == 0, ms);
    check_wait(fault_children(b->wire, path) == 0, ms);
    check_ok(zkl_mutex_lock_for(b->rival, WAIT_MS));
    check_ok(zkl_mutex_unlock(b->rival));
}

enum way { CLOSE, CLOSE_AT_ONCE, FREE, WAYS };

/* confirmed: the server can answer. */
static void close_client(struct bench *b, enum way way, bool confirmed)
{
    lag_begin();
    if (way == CLOSE)
        check_num(zkl_client_close(b->client, WAIT_MS), ==, confirmed ? 0 : ZKL_ETIMEDOUT);
    else if (way == CLOSE_AT_ONCE)
        zkl_client_close(b->client, 0);
    else
        check_ok(zkl_client_free(b->client));
    /* Free may wait 10 s, but libzookeeper gives a silent server 1.5 s, after a drain. */
    check_num(lag_end_ms(), <, way == CLOSE_AT_ONCE ? SOON_MS : 5000);
}

/* The mutex is freed before its client or after it, but never used after the client was. */
static void finish(struct bench *b, enum way way)
{
    struct zkl_mutex *another = NULL;

    if (way == FREE) {
        check_ok(zkl_mutex_free(b->mutex));
        return;
    }
    check_num(zkl_client_get_state(b->client), ==, ZKL_CLIENT_CLOSED);
    check_num(zkl_mutex_new(&another, b->client, path, NULL), ==, ZKL_ECLOSED);
    if (way == CLOSE)
        check_ok(zkl_mutex_free(b->mutex));
    check_ok(zkl_client_free(b->client));
    if (way == CLOSE_AT_ONCE)
        check_ok(zkl_mutex_free(b->mutex));
}

static void check_told(struct bench *b, const struct scene *scene)
{
    check_wait(b->told.lost == holds(scene), SOON_MS);
    if (holds(scene))
        check_num(b->told.reason, ==, ZKL_REASON_CLOSED);
}

static void heal(struct bench *b)
{
    proxy_cut(b->proxy);
    proxy_heal(b->proxy);
    proxy_release(b->proxy);
    check_ok(proxy_refuse(b->proxy, false));
}

static void close_in(struct bench *b, const struct scene *scene, enum way way, bool silent)
{
    int threads = fault_threads();

    print_message("    %s, way %d%s\n", scene->name, way, silent ? ", silent server" : "");
    open_client(b);
    if (scene->rival_holds)
        check_ok(zkl_mutex_lock(b->rival));
    begin_scene(b, scene);
    if (silent)
        proxy_hole(b->proxy, PROXY_BOTH);
    close_client(b, way, scene->answers && !silent);
    end_actor(b, scene);
    check_told(b, scene);
    finish(b, way);
    if (scene->rival_holds)
        check_ok(zkl_mutex_unlock(b->rival));
    check_wait(fault_threads() <= threads, WAIT_MS);
    check_num(b->told.lost, ==, holds(scene)); /* nothing came later */
    heal(b);
    check_gone(b, 5 * SESSION_MS + 5000);
}

#define CLOSE_TEST(name) BENCH_TEST(name, path, 0, 10 * SESSION_MS)

/* The server answers. The call ends with ZKL_ECLOSED, or as an unlock without an answer. A hold is
 * lost: its owner still owes the unlock, which says so. */
CLOSE_TEST(close_in_every_state)
{
    for (size_t i = 0; i < SCENES; i++)
        close_in(b, &scenes[i], CLOSE, false);
}

/* The same without a wait, with a server that has become silent. */
CLOSE_TEST(close_at_once_in_every_state)
{
    for (size_t i = 0; i < SCENES; i++) {
        close_in(b, &scenes[i], CLOSE_AT_ONCE, true);
        if (test_length(1, 0))
            close_in(b, &scenes[i], CLOSE_AT_ONCE, false);
    }
}

/* The same without a close, and the mutex is freed after the client. */
CLOSE_TEST(free_in_every_state)
{
    for (size_t i = 0; i < SCENES; i++) {
        if (i < 2 || test_length(1, 0))
            close_in(b, &scenes[i], FREE, true);
        if (i % 2 == 1 || test_length(1, 0))
            close_in(b, &scenes[i], FREE, false);
    }
}

/* --- before there is a session ---------------------------------------------------------------- */

static void close_before_the_session(struct bench *b, int timeout_ms)
{
    struct zkl_client_options options = fault_client_options(proxy_address(b->proxy), SESSION_MS);
    int threads = fault_threads();

    options.connect_timeout_ms = 0;
    check_ok(zkl_client_open(&b->client, &options));
    b->mutex = fault_mutex(b->client, path);
    act_begin(b->actor, act_lock, b->mutex, NULL);
    check_wait(fault_contenders(b->client) == 1, WAIT_MS);
    check_num(zkl_client_get_state(b->client), ==, ZKL_CLIENT_CONNECTING);
    lag_begin();
    int rc = zkl_client_close(b->client, timeout_ms);
    check_num(lag_end_ms(), <, timeout_ms == 0 ? SOON_MS : 5000);
    check_true(rc == 0 || (timeout_ms == 0 && rc == ZKL_ETIMEDOUT));
    check_num(act_end(b->actor, SOON_MS), ==, ZKL_ECLOSED);
    check_ok(zkl_client_free(b->client));
    check_ok(zkl_mutex_free(b->mutex));
    check_wait(fault_threads() <= threads, WAIT_MS);
}

/* No server listens, or none answers: there is nothing to wait for. */
CLOSE_TEST(close_while_connecting)
{
    for (int timeout_ms = 0; timeout_ms <= WAIT_MS; timeout_ms += WAIT_MS) {
        check_ok(proxy_refuse(b->proxy, true));
        close_before_the_session(b, timeout_ms);
        check_ok(proxy_refuse(b->proxy, false));
        proxy_hole(b->proxy, PROXY_BOTH);
        close_before_the_session(b, timeout_ms);
        heal(b);
    }
}

/* --- many ------------------------------------------------------------------------------------- */

/* On five paths, with watches that libzookeeper never delivers at a close. Nothing leaks (under ASan).
 * Modes: F48. */
CLOSE_TEST(close_with_fifty_waiters)
{
    enum { WAITERS = 50, PATHS = 5 };
    struct zkl_mutex *rivals[PATHS], *mutexes[PATHS];
    struct actor *a[WAITERS];
    char name[32];

    open_client(b);
    for (int i = 0; i < PATHS; i++) {
        snprintf(name, sizeof name, "/close/m%d", i);
        rivals[i] = world_mutex(b->direct, name);
        mutexes[i] = world_mutex(b->client, name);
        check_ok(zkl_mutex_lock(rivals[i]));
    }
    for (int i = 0; i < WAITERS; i++) {
        a[i] = world_actor();
        act_begin(a[i], act_lock, mutexes[i % PATHS], NULL);
    }
    check_wait(flw_session_watches(zks_host(), zks_port(server, 0), last_session) ==
                   WAITERS + PATHS,
               WAIT_MS);
    check_closed(zkl_client_close(b->client, WAIT_MS));
    for (int i = 0; i < WAITERS; i++)
        check_num(act_end(a[i], SOON_MS), ==, ZKL_ECLOSED);
    for (int i = 0; i < PATHS; i++) {
        snprintf(name, sizeof name, "/close/m%d", i);
        check_wait(fault_children(b->wire, name) == 1, WAIT_MS);
        check_ok(zkl_mutex_unlock(rivals[i]));
    }
    check_ok(zkl_mutex_free(b->mutex));
    check_ok(zkl_client_free(b->client));
}

/* What ended it: an odd code, if there was one. */
static int use(struct zkl_mutex *mutex, void *cycles)
{
    int rc, odd = 0;

    while ((rc = zkl_mutex_lock(mutex)) == 0) {
        ++*(atomic_long *)cycles;
        rc = zkl_mutex_unlock(mutex);
        if (rc != 0 && rc != ZKL_ELOST && !is_unanswered(rc))
            odd = rc;
    }
    return odd != 0 ? odd : rc;
}

/* Four threads use the client while two others close it, at a moment that nobody chose. */
CLOSE_TEST(close_in_the_middle_of_work)
{
    enum { USERS = 4 };
    struct actor *users[USERS];

    for (int i = 0; i < USERS; i++)
        users[i] = world_actor();
    for (int round = 0; round < test_length(200, 15); round++) {
        atomic_long cycles = 0;
        int own_rc;
        open_client(b);
        for (int i = 0; i < USERS; i++)
            act_begin(users[i], use, b->mutex, &cycles);
        check_wait(cycles >= round % 5, WAIT_MS);
        act_begin(b->actor, act_close_client, NULL, b->client);
        check_closed(own_rc = zkl_client_close(b->client, WAIT_MS));
        check_num(act_end(b->actor, WAIT_MS), ==, own_rc);
        for (int i = 0; i < USERS; i++)
            check_num(act_end(users[i], SOON_MS), ==, ZKL_ECLOSED);
        check_ok(zkl_mutex_free(b->mutex));
        check_ok(zkl_client_free(b->client));
        check_gone(b, WAIT_MS);
    }
}

static void open_expire_close(struct bench *b, int round)
{
    struct zkl_client *client = fault_open(zks_connect_string(server), SESSION_MS);
    struct zkl_mutex *mutex = fault_mutex(client, path);
    bool next = round % 2 == 0;

    if (round % 3 != 0)
        check_ok(act_do(b->actor, act_lock, mutex, NULL));
    if (next)
        fault_renew_session(client);
    else
        fault_expire(client, 0);
    int rc = zkl_client_close(client, WAIT_MS);
    check_true(rc == 0 || (!next && rc == ZKL_ETIMEDOUT)); /* it may have no link just then */
    check_num(act_do(b->actor, act_unlock, mutex, NULL), ==,
              round % 3 != 0 ? ZKL_ELOST : ZKL_ENOTOWNER);
    check_ok(zkl_mutex_free(mutex));
    check_ok(zkl_client_free(client));
}

/* Immediately or in the next session, holding or not. */
CLOSE_TEST(open_expire_and_close_leaves_nothing)
{
    open_expire_close(b, 0); /* what is made once in a process */
    int threads = fault_threads(), descriptors = fault_descriptors();
    for (int i = 0; i < test_length(300, 30); i++)
        open_expire_close(b, i);
    check_wait(fault_threads() <= threads, WAIT_MS);
    check_wait(fault_descriptors() == descriptors, WAIT_MS);
}
