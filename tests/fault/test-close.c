/* SPDX-License-Identifier: Apache-2.0 */
/* The test closes a client, or gives it up without a wait, in every state that its threads can be
 * in, with a server that answers and with one that does not. Every call ends in time, and nothing
 * is left. */
#include "bench.h"
#include "leaks.h"

#include <stdio.h>
#include <stdlib.h>

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

/* What the actor's call may return when the client is closed meanwhile. */
struct scene {
    const char *name;
    void (*begin)(struct bench *b);
    int results[2];
    bool holds;       /* the actor holds before and owes an unlock afterwards */
    bool rival_holds; /* all the time */
    bool answers;     /* nothing keeps the server's answer to the close from us */
};

static void queue_up(struct bench *b)
{
    actor_begin(b->actor, act_lock, b->mutex, NULL);
    check_wait(fault_watches(b->client) == 2, WAIT_MS);
}

static void just_hold(struct bench *b)
{
    check_ok(actor_do(b->actor, act_lock, b->mutex, NULL));
}

static void begin_and_hold_answer(struct bench *b, enum proxy_op op,
                                  int (*act)(struct zkl_mutex *, void *))
{
    check_ok(proxy_hold_reply(b->proxy, op, 1));
    actor_begin(b->actor, act, b->mutex, NULL);
    check_ok(proxy_wait_held(b->proxy, WAIT_MS));
}

static void begin_to_create(struct bench *b)
{
    begin_and_hold_answer(b, PROXY_CREATE2, act_lock);
}

static void begin_to_list(struct bench *b)
{
    begin_and_hold_answer(b, PROXY_CHILDREN, act_lock);
}

static void begin_to_try(struct bench *b)
{
    begin_and_hold_answer(b, PROXY_CHILDREN, act_trylock);
}

static void begin_to_unlock(struct bench *b)
{
    just_hold(b);
    begin_and_hold_answer(b, PROXY_DELETE, act_unlock);
}

/* The wait was given up, the answer to the create is still due: the janitor's. */
static void give_up_while_creating(struct bench *b)
{
    check_ok(proxy_hold_reply(b->proxy, PROXY_CREATE2, 1));
    check_num(actor_do(b->actor, act_lock_for, b->mutex, (void *)(intptr_t)50), ==, ZKL_ETIMEDOUT);
    check_ok(proxy_wait_held(b->proxy, WAIT_MS));
}

static void lose_the_link(struct bench *b)
{
    check_ok(proxy_refuse(b->proxy, true));
    proxy_cut(b->proxy);
    check_wait(zkl_client_get_state(b->client) == ZKL_CLIENT_SUSPENDED, WAIT_MS);
}

static void wait_without_a_link(struct bench *b)
{
    queue_up(b);
    lose_the_link(b);
}

static void hold_without_a_link(struct bench *b)
{
    just_hold(b);
    lose_the_link(b);
}

static void begin_without_a_link(struct bench *b)
{
    lose_the_link(b);
    actor_begin(b->actor, act_lock, b->mutex, NULL);
    check_wait(fault_contenders(b->client) == 1, WAIT_MS);
}

#define CLOSED_FOR_ALL .results = {ZKL_ECLOSED, ZKL_ECLOSED}

static const struct scene scenes[] = {
    {"waiting", queue_up, CLOSED_FOR_ALL, .rival_holds = true, .answers = true},
    {"holding", just_hold, .holds = true, .answers = true},
    {"creating", begin_to_create, CLOSED_FOR_ALL},
    {"listing", begin_to_list, CLOSED_FOR_ALL},
    {"trying", begin_to_try, CLOSED_FOR_ALL},
    {"releasing", begin_to_unlock, .results = {ZKL_EUNCONFIRMED, ZKL_ELOST}},
    {"leaving", give_up_while_creating, .results = {ZKL_ETIMEDOUT, ZKL_ETIMEDOUT}},
    {"waiting, no link", wait_without_a_link, CLOSED_FOR_ALL, .rival_holds = true},
    {"holding, no link", hold_without_a_link, .holds = true},
    {"no link", begin_without_a_link, CLOSED_FOR_ALL},
};
#define SCENES (sizeof scenes / sizeof scenes[0])

/* What the actor has to do after the close, with the client open or given up. */
static void end_actor(struct bench *b, const struct scene *scene)
{
    int rc = actor_end(b->actor, SOON_MS);

    if (scene->holds) {
        check_num(actor_do(b->actor, act_count, b->mutex, NULL), ==, 1);
        check_num(actor_do(b->actor, act_window, b->mutex, NULL), ==, 0);
        check_num(actor_do(b->actor, act_unlock, b->mutex, NULL), ==, ZKL_ELOST);
    } else {
        check_true(rc == scene->results[0] || rc == scene->results[1]);
    }
    check_num(actor_do(b->actor, act_count, b->mutex, NULL), ==, 0);
    check_num(actor_do(b->actor, act_lock, b->mutex, NULL), ==, ZKL_ECLOSED);
    check_num(actor_do(b->actor, act_unlock, b->mutex, NULL), ==, ZKL_ENOTOWNER);
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
    check_wait(b->told.lost == scene->holds, SOON_MS);
    if (scene->holds)
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
    scene->begin(b);
    if (silent)
        proxy_hole(b->proxy, PROXY_BOTH);
    close_client(b, way, scene->answers && !silent);
    end_actor(b, scene);
    check_told(b, scene);
    finish(b, way);
    if (scene->rival_holds)
        check_ok(zkl_mutex_unlock(b->rival));
    check_wait(fault_threads() <= threads, WAIT_MS);
    check_num(b->told.lost, ==, scene->holds); /* nothing came later */
    heal(b);
    check_gone(b, 5 * SESSION_MS + 5000);
}

#define CLOSE_TEST(name) BENCH_TEST(name, path, 0, 10 * SESSION_MS)

/* The client is closed in every state of a thread's call, and the server answers. The call ends
 * with ZKL_ECLOSED, or as an unlock without an answer. A hold is lost: the callback reports that
 * once with the reason, and its owner still owes the unlock, which says so. The client refuses
 * later calls, and the server has removed the session's nodes. */
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

/* The same without a close: the test frees the client, and the mutex after it. */
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
    actor_begin(b->actor, act_lock, b->mutex, NULL);
    check_wait(fault_contenders(b->client) == 1, WAIT_MS);
    check_num(zkl_client_get_state(b->client), ==, ZKL_CLIENT_CONNECTING);
    lag_begin();
    int rc = zkl_client_close(b->client, timeout_ms);
    check_num(lag_end_ms(), <, timeout_ms == 0 ? SOON_MS : 5000);
    check_true(rc == 0 || (timeout_ms == 0 && rc == ZKL_ETIMEDOUT));
    check_num(actor_end(b->actor, SOON_MS), ==, ZKL_ECLOSED);
    check_ok(zkl_client_free(b->client));
    check_ok(zkl_mutex_free(b->mutex));
    check_wait(fault_threads() <= threads, WAIT_MS);
}

/* A client that never had a session, because no server listens, or none answers, closes
 * immediately: there is nothing to wait for. */
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

/* Fifty threads wait on five paths, with watches that libzookeeper never delivers at a close. Every
 * wait ends, nothing leaks (under ASan), and the server confirms the close. Modes: F48. */
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
        actor_begin(a[i], act_lock, mutexes[i % PATHS], NULL);
    }
    check_wait(flw_session_watches(zks_host(), zks_port(server, 0), last_session) ==
                   WAITERS + PATHS,
               WAIT_MS);
    check_closed(zkl_client_close(b->client, WAIT_MS));
    for (int i = 0; i < WAITERS; i++)
        check_num(actor_end(a[i], SOON_MS), ==, ZKL_ECLOSED);
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

static int close_it(struct zkl_mutex *unused, void *client)
{
    (void)unused;
    return zkl_client_close(client, WAIT_MS);
}

/* Four threads lock and unlock while two others close the client, at a moment that nobody chose:
 * all six come to an end, and nothing is left. */
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
            actor_begin(users[i], use, b->mutex, &cycles);
        check_wait(cycles >= round % 5, WAIT_MS);
        actor_begin(b->actor, close_it, NULL, b->client);
        check_closed(own_rc = zkl_client_close(b->client, WAIT_MS));
        check_num(actor_end(b->actor, WAIT_MS), ==, own_rc);
        for (int i = 0; i < USERS; i++)
            check_num(actor_end(users[i], SOON_MS), ==, ZKL_ECLOSED);
        check_ok(zkl_mutex_free(b->mutex));
        check_ok(zkl_client_free(b->client));
        check_gone(b, WAIT_MS);
    }
}

static void open_expire_close(struct bench *b, int round)
{
    struct zkl_client *client = fault_open(zks_connect_string(server), SESSION_MS);
    struct zkl_mutex *mutex = fault_mutex(client, path);
    int64_t session = fault_session(client);

    if (round % 3 != 0)
        check_ok(actor_do(b->actor, act_lock, mutex, NULL));
    fault_expire(client, 0);
    bool next = round % 2 == 0;
    if (next)
        check_wait(fault_session(client) != session && fault_session(client) != 0, WAIT_MS);
    int rc = zkl_client_close(client, WAIT_MS);
    check_true(rc == 0 || (!next && rc == ZKL_ETIMEDOUT)); /* it may have no link just then */
    check_num(actor_do(b->actor, act_unlock, mutex, NULL), ==,
              round % 3 != 0 ? ZKL_ELOST : ZKL_ENOTOWNER);
    check_ok(zkl_mutex_free(mutex));
    check_ok(zkl_client_free(client));
}

/* The test opens clients, ends their sessions, and closes them, immediately or in their next
 * session, holding or not, again and again. There are as many threads and descriptors as before. */
CLOSE_TEST(open_expire_and_close_leaves_nothing)
{
    open_expire_close(b, 0); /* what is made once in a process */
    int threads = fault_threads(), descriptors = fault_descriptors();
    for (int i = 0; i < test_length(300, 30); i++)
        open_expire_close(b, i);
    check_wait(fault_threads() <= threads, WAIT_MS);
    check_wait(fault_descriptors() == descriptors, WAIT_MS);
}
