/* SPDX-License-Identifier: Apache-2.0 */
/* What the client's own callbacks report: its states in their order, and the log as events: what is in them, what a level
 * leaves out, and what a slow callback misses. */
#include "inside.h"

#include <semaphore.h>
#include <stdatomic.h>

#include <zklock/inspect.h>
#include <zklock/metrics.h>

#include "check_error.h"
#include "nodes.h"

#define STATES_MAX 32
#define KEPT_MAX 4000
#define CREDENTIAL "alice:" PASSWORD
#define PASSWORD "0penSesame"
#define VARIABLE "ZKL_TEST_CREDENTIAL"

struct kept {
    struct zkl_log_event event;
    char path[64], node[96], message[256];
};

/* States and events in their order. */
static struct {
    pthread_mutex_t mu;
    enum zkl_client_state states[STATES_MAX];
    size_t state_count;
    size_t count, odd;
    char last_odd[256];
    sem_t *gate; /* not NULL: each event waits here */
    struct kept kept[KEPT_MAX];
} diary = {.mu = PTHREAD_MUTEX_INITIALIZER};

static void on_state(struct zkl_client *client, enum zkl_client_state state, void *unused)
{
    (void)client, (void)unused;
    pthread_mutex_lock(&diary.mu);
    if (diary.state_count < STATES_MAX)
        diary.states[diary.state_count++] = state;
    pthread_mutex_unlock(&diary.mu);
}

static bool is_well_formed(const struct zkl_log_event *e)
{
    return e->size == sizeof *e && e->level >= ZKL_LOG_ERROR && e->level <= ZKL_LOG_DEBUG &&
           e->kind >= ZKL_LOG_KIND_SESSION && e->kind <= ZKL_LOG_KIND_DROPPED && e->time_ns > 0 &&
           e->time_ns <= zkl_now_ns() && strlen(e->message) > 10 && !strchr(e->message, '\n') &&
           !strstr(e->message, PASSWORD) && !strstr(e->why, PASSWORD);
}

static void on_event(const struct zkl_log_event *event, void *unused)
{
    (void)unused;
    if (diary.gate)
        sem_wait(diary.gate);
    pthread_mutex_lock(&diary.mu);
    if (diary.count < KEPT_MAX) {
        struct kept *k = &diary.kept[diary.count];
        k->event = *event;
        snprintf(k->path, sizeof k->path, "%s", event->path);
        snprintf(k->node, sizeof k->node, "%s", event->node);
        snprintf(k->message, sizeof k->message, "%s", event->message);
    }
    diary.count++;
    if (!is_well_formed(event)) {
        diary.odd++;
        snprintf(diary.last_odd, sizeof diary.last_odd, "%s", event->message);
    }
    pthread_mutex_unlock(&diary.mu);
}

/* The first event of this kind (and state) from the nth on, or NULL if there is none yet. */
static const struct kept *find(size_t from, enum zkl_log_kind kind, int state)
{
    const struct kept *found = NULL;

    pthread_mutex_lock(&diary.mu);
    for (size_t i = from; !found && i < diary.count && i < KEPT_MAX; i++) {
        const struct zkl_log_event *e = &diary.kept[i].event;
        if (e->kind == kind && (state == 0 || e->state == state))
            found = &diary.kept[i];
    }
    pthread_mutex_unlock(&diary.mu);
    return found;
}

static size_t so_far(const size_t *count)
{
    pthread_mutex_lock(&diary.mu);
    size_t n = *count;
    pthread_mutex_unlock(&diary.mu);
    return n;
}

static void check_states(const enum zkl_client_state *expected, size_t n)
{
    check_wait(so_far(&diary.state_count) >= n, WAIT_MS);
    for (size_t i = 0; i < n; i++)
        check_num(diary.states[i], ==, expected[i]);
}

/* Of the clients that are freed: all has been reported then. */
static void check_events(void)
{
    if (diary.odd > 0)
        fail_msg("%zu odd events, the last: %s", diary.odd, diary.last_odd);
}

/* A client with a credential, and all its callbacks write in a new diary. */
static struct zkl_client_options options_at(enum zkl_log_level level)
{
    struct zkl_client_options options = cluster_options();

    memset(&diary, 0, sizeof diary);
    pthread_mutex_init(&diary.mu, NULL);
    options.auth_scheme = "digest";
    options.auth_credential = CREDENTIAL;
    options.state_fn = on_state;
    options.log_fn = on_event;
    options.log_level = level;
    return options;
}

/* --- states and events ------------------------------------------------------------------------ */

/* No server can be reached until the session has ended. The server ends it now: a session so short that it soon ends by
 * itself would do so on a busy machine at any time. */
static void let_expire(struct zkl_client *client, struct proxy *proxy, const char *path)
{
    lose_link(proxy);
    inside_expire(client);
    check_wait(cluster_children(path) == 0, WAIT_MS);
    check_ok(proxy_refuse(proxy, false));
}

static void check_hold_events(size_t from, const char *path, uint64_t token)
{
    const struct kept *suspect = find(from, ZKL_LOG_KIND_HOLD, ZKL_HOLD_SUSPECT);
    const struct kept *lost = find(from, ZKL_LOG_KIND_HOLD, ZKL_HOLD_LOST);

    check_num(suspect->event.level, ==, ZKL_LOG_WARNING);
    check_num(suspect->event.reason, ==, ZKL_REASON_LINK);
    check_num(lost->event.level, ==, ZKL_LOG_ERROR);
    check_num(lost->event.reason, ==, ZKL_REASON_EXPIRED);
    check_true(lost->event.token == token);
    check_text(lost->path, path);
    check_true(strstr(lost->message, "LOST") && strstr(lost->message, "the session ended"));
}

static void live(enum zkl_log_level level)
{
    static const enum zkl_client_state expected[] = {
        ZKL_CLIENT_CONNECTED, ZKL_CLIENT_SUSPENDED,  ZKL_CLIENT_CONNECTED, ZKL_CLIENT_SUSPENDED,
        ZKL_CLIENT_EXPIRED,   ZKL_CLIENT_CONNECTING, ZKL_CLIENT_CONNECTED, ZKL_CLIENT_CLOSED,
    };
    const char *path = cluster_path("life");
    struct zkl_client_options options = options_at(level);

    options.acl = ZKL_ACL_CREATOR;
    struct proxy *proxy = world_proxy_for(&options);
    struct zkl_client *client = world_client_with(&options);
    struct zkl_mutex *mutex = world_mutex(client, path);
    check_states(expected, 1);
    check_wait(find(0, ZKL_LOG_KIND_SESSION, 0) != NULL, WAIT_MS);
    check_num(find(0, ZKL_LOG_KIND_SESSION, 0)->event.level, ==, ZKL_LOG_INFO);
    cycle(mutex, 1);
    check_ok(zkl_mutex_lock(mutex));
    uint64_t token = zkl_mutex_token(mutex);
    size_t before = so_far(&diary.count);
    check_true(level == ZKL_LOG_DEBUG ? before > 1 : before == 1);
    proxy_cut(proxy);
    check_states(expected, 3);
    check_wait(find(before, ZKL_LOG_KIND_HOLD, ZKL_HOLD_SUSPECT) != NULL, WAIT_MS);
    check_wait(find(before, ZKL_LOG_KIND_HOLD, ZKL_HOLD_HELD) != NULL, WAIT_MS);
    let_expire(client, proxy, path);
    check_states(expected, 7);
    check_wait(find(before, ZKL_LOG_KIND_HOLD, ZKL_HOLD_LOST) != NULL, WAIT_MS);
    check_hold_events(before, path, token);
    check_num(zkl_client_get_state(client), ==, ZKL_CLIENT_CONNECTED);
    check_num(zkl_mutex_unlock(mutex), ==, ZKL_ELOST);
    check_ok(zkl_mutex_lock_for(mutex, WAIT_MS));
    check_ok(zkl_mutex_unlock(mutex));
    check_closed(zkl_client_close(client, WAIT_MS));
    check_num(zkl_client_get_state(client), ==, ZKL_CLIENT_CLOSED);
    check_states(expected, 8);
    world_clear();
    check_num(diary.state_count, ==, 8);
    for (size_t i = 0; level != ZKL_LOG_DEBUG && i < diary.count; i++)
        check_num(diary.kept[i].event.level, <=, ZKL_LOG_INFO);
    check_events();
}

/* Goal: the states come in the order of the changes: a first connection, a link that is lost and comes back, an expiry
 * with a new session, and the end. At the level INFO the log is silent about a lock that a thread acquires and releases.
 * It reports what becomes of the link, the session and a hold, with the reason. No event has the password. Each session
 * begins with the credential, not only the first: the path is the creator's alone. */
WORLD_TEST(states_and_events_through_a_clients_life)
{
    check_ok(wire_auth(raw, "digest", CREDENTIAL));
    live(0);
    live(ZKL_LOG_DEBUG);
}

static void check_refused(int rc, const char *word)
{
    check_fails(rc, ZKL_EAUTH, word);
    check_true(strstr(zkl_error_detail(), PASSWORD) == NULL);
}

/* Goal: with a credential that the server refuses each call says so immediately, also one that came before the refusal.
 * That is the last state before the end, and no sentence and no event has the password. */
WORLD_TEST(a_refused_credential_is_final)
{
    const char *path = cluster_path("refused");
    const struct zkl_inspection *inspection = NULL;
    struct zkl_client *client = NULL;
    char why[512];

    check_ok(setenv(VARIABLE, CREDENTIAL, 1));
    for (int i = 0; i < 4; i++) {
        struct zkl_client_options options = options_at(ZKL_LOG_DEBUG);
        options.auth_scheme = "nonsense";
        options.acl = i % 2 ? ZKL_ACL_CREATOR : ZKL_ACL_OPEN;
        options.auth_credential = i < 2 ? CREDENTIAL : NULL;
        options.auth_env = i < 2 ? NULL : VARIABLE;
        options.errbuf = why;
        options.errbuf_size = sizeof why;
        check_refused(zkl_client_open(&client, &options), "zkl_client_open");
        check_text(why, zkl_error_detail());

        options.connect_timeout_ms = 0;
        client = world_client_with(&options);
        struct zkl_mutex *mutex = world_mutex(client, path);
        int64_t start = net_now_ms();
        if (i % 2)
            check_refused(zkl_inspect(client, "/x", WAIT_MS, &inspection), "/x");
        check_refused(zkl_mutex_lock(mutex), path);
        check_refused(zkl_mutex_lock_for(mutex, WAIT_MS), path);
        check_refused(zkl_mutex_trylock(mutex), path);
        check_true(net_now_ms() - start < 10000 || lag_is_slow());
        check_num(zkl_client_get_state(client), ==, ZKL_CLIENT_AUTH_FAILED);
        check_refused(zkl_inspect(client, "/x", WAIT_MS, &inspection), "/x");
        world_clear();
        size_t last = diary.state_count;
        check_num(last, >=, 2);
        check_num(diary.states[last - 2], ==, ZKL_CLIENT_AUTH_FAILED);
        check_num(diary.states[last - 1], ==, ZKL_CLIENT_CLOSED);
        check_events();
    }
    check_ok(unsetenv(VARIABLE));
    check_num(cluster_children(path), ==, 0);
}

/* Goal: each kind of event has its particulars, and they stand in its message, which is one line. */
WORLD_TEST(events_have_their_particulars)
{
    const char *path = cluster_path("particulars");
    struct zkl_client_options options = options_at(ZKL_LOG_DEBUG);
    struct zkl_grant grant = ZKL_GRANT_INIT;
    char node[200];

    struct zkl_client *client = world_client_with(&options);
    struct zkl_mutex *mutex = world_mutex(client, path);
    struct actor *actor = world_actor();
    check_ok(zkl_mutex_acquire(mutex, NULL, &grant));
    check_num(zkl_mutex_node_path(mutex, node, sizeof node), >, 0);
    check_num(actor_do(actor, do_trylock, mutex), ==, ZKL_EBUSY);
    check_ok(zkl_mutex_unlock(mutex));
    world_clear(); /* every event has been reported then */
    const struct kept *granted = find(0, ZKL_LOG_KIND_GRANTED, 0);
    const struct kept *failed = find(0, ZKL_LOG_KIND_FAILED, 0);
    const struct kept *released = find(0, ZKL_LOG_KIND_RELEASED, 0);
    const struct kept *moved = find(0, ZKL_LOG_KIND_CONTENDER, 0);
    check_true(granted && failed && released && moved && find(0, ZKL_LOG_KIND_SESSION, 0));
    check_true(granted->event.token == grant.token);
    check_text(granted->path, path);
    check_text(granted->node, strrchr(node, '/') + 1);
    check_true(granted->event.session != 0);
    check_num(granted->event.contender, ==, moved->event.contender);
    check_true(strstr(granted->message, "granted") && strstr(granted->message, node));
    check_num(failed->event.code, ==, ZKL_EBUSY);
    check_num(failed->event.level, ==, ZKL_LOG_DEBUG);
    check_true(strstr(failed->message, zkl_strerror(ZKL_EBUSY)) != NULL);
    check_num(released->event.code, ==, 0);
    check_text(released->node, granted->node);
    check_text(moved->event.from, "NEW");
    check_text(moved->event.to, "QUEUEING");
    check_num(strlen(moved->event.why), >, 0);
    check_true(strstr(moved->message, "NEW -> QUEUEING") &&
               strstr(moved->message, moved->event.why));
    check_events();
}

struct late {
    atomic_bool returned; /* the open has */
    atomic_int calls, late;
};

/* For long enough that an open which does not wait for it returns meanwhile. */
static void take_time(struct late *late)
{
    late->calls++;
    wait_until(late->returned, 100);
    late->late += late->returned;
}

static void slow_state(struct zkl_client *client, enum zkl_client_state state, void *late)
{
    (void)client, (void)state;
    take_time(late);
}

static void slow_event(const struct zkl_log_event *event, void *late)
{
    (void)event;
    take_time(late);
}

static void check_none_is_late(struct zkl_client_options options, int code)
{
    static struct late late;
    struct zkl_client *client = NULL;

    late = (struct late){0};
    options.state_fn = slow_state;
    options.log_fn = slow_event;
    options.log_level = ZKL_LOG_DEBUG;
    options.state_arg = options.log_arg = &late;
    check_num(zkl_client_open(&client, &options), ==, code);
    late.returned = true;
    net_nap_ms(200); /* would do for what comes behind it */
    check_num(late.late, ==, 0);
    check_num(late.calls, >, 0);
}

/* Goal: no callback runs once an open has said that it failed, as the caller then frees the
 * callback's argument. Method: each callback is slow. The test tries each way to fail after the
 * client's threads began. */
WORLD_TEST(no_callback_runs_after_a_failed_open)
{
    struct zkl_client_options options = cluster_options(), refused = options, nowhere = options,
                              silent = options;
    char below[128], closed[32];
    int port;

    refused.auth_scheme = "nonsense";
    refused.auth_credential = CREDENTIAL;
    check_none_is_late(refused, ZKL_EAUTH);
    snprintf(below, sizeof below, "%s/is/not/there", zks_connect_string(server));
    nowhere.servers = below;
    check_none_is_late(nowhere, ZKL_ENOCHROOT);
    check_ok(net_free_ports(&port, 1));
    snprintf(closed, sizeof closed, "127.0.0.1:%d", port);
    silent.servers = closed;
    silent.connect_timeout_ms = 200;
    check_none_is_late(silent, ZKL_EDISCONNECTED);
}

/* True when more is left than at the last look: the window only shrinks until the session is proved. */
static bool window_grew(struct zkl_mutex *mutex, int64_t *last_ms)
{
    int64_t now_ms = zkl_mutex_window_ms(mutex);
    bool grew = now_ms > *last_ms;
    *last_ms = now_ms;
    return grew;
}

/* Goal: a hold stays, with a window, after another client has asked for its release. Method: the
 * request is in the node's data. The server answers two heartbeats, which check that node. */
WORLD_TEST(a_hold_that_was_asked_to_let_go_stays_proved)
{
    struct zkl_client_options options = cluster_options();

    options.session_timeout_ms = 8000;
    struct zkl_client *client = world_client_with(&options);
    struct zkl_mutex *mutex = world_mutex(client, cluster_path("asked"));
    check_ok(zkl_mutex_lock(mutex));
    ask_for(mutex);
    int64_t window_ms = zkl_mutex_window_ms(mutex);
    check_wait(window_grew(mutex, &window_ms), WAIT_MS);
    check_wait(window_grew(mutex, &window_ms), WAIT_MS);
    check_ok(zkl_mutex_unlock(mutex));
}

/* --- a slow callback -------------------------------------------------------------------------- */

#define LOCKS 100

/* Goal: a callback that hangs costs events, not memory or time. When it returns, an event and the
 * figures say how many were dropped. */
WORLD_TEST(a_slow_callback_misses_some)
{
    struct zkl_client_options options = options_at(ZKL_LOG_DEBUG);
    struct zkl_client_metrics m = ZKL_CLIENT_METRICS_INIT;
    uint64_t dropped = 0;
    sem_t gate;

    check_ok(sem_init(&gate, 0, 0));
    diary.gate = &gate;
    struct zkl_client *client = world_client_with(&options);
    struct zkl_mutex *mutex = world_mutex(client, cluster_path("slow"));
    for (int i = 0; i < LOCKS; i++) {
        check_ok(zkl_mutex_lock(mutex));
        check_ok(zkl_mutex_unlock(mutex));
    }
    check_num(so_far(&diary.count), ==, 0);
    check_ok(zkl_client_get_metrics(client, &m));
    check_num(m.log_dropped, >, LOCKS);
    for (int i = 0; i < KEPT_MAX; i++)
        sem_post(&gate);
    check_wait(find(0, ZKL_LOG_KIND_DROPPED, 0) != NULL, WAIT_MS);
    check_num(find(0, ZKL_LOG_KIND_DROPPED, 0)->event.level, ==, ZKL_LOG_WARNING);
    for (size_t i = 0; i < so_far(&diary.count); i++)
        dropped += diary.kept[i].event.dropped;
    check_num(dropped, ==, m.log_dropped);
    world_clear();
    check_events();
    sem_destroy(&gate);
}
