/* SPDX-License-Identifier: Apache-2.0 */
/* What the client's own callbacks report: its states in their order, and its log. */
#include "inside.h"

#include "nodes.h"
#include "proxy.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#define STATES_MAX 32

struct diary {
    pthread_mutex_t mu;
    enum zkl_client_state states[STATES_MAX];
    size_t state_count;
    size_t line_count, bad_lines;
    char last_bad[256];
};

static void on_state(struct zkl_client *client, enum zkl_client_state state, void *arg)
{
    struct diary *diary = arg;

    (void)client;
    pthread_mutex_lock(&diary->mu);
    if (diary->state_count < STATES_MAX)
        diary->states[diary->state_count++] = state;
    pthread_mutex_unlock(&diary->mu);
}

#define USER "alice"
#define PASSWORD "0penSesame"

static void on_event(const struct zkl_log_event *event, void *arg)
{
    const char *line = event->message;
    struct diary *diary = arg;

    pthread_mutex_lock(&diary->mu);
    diary->line_count++;
    if (line[0] == '\0' || strchr(line, '\n') || strstr(line, PASSWORD)) {
        diary->bad_lines++;
        strncpy(diary->last_bad, line, sizeof diary->last_bad - 1);
    }
    pthread_mutex_unlock(&diary->mu);
}

static void write_all_down(struct zkl_client_options *options, struct diary *diary)
{
    options->auth_credential = USER ":" PASSWORD;
    options->state_fn = on_state;
    options->log_fn = on_event;
    options->log_level = ZKL_LOG_DEBUG;
    options->state_arg = options->log_arg = diary;
}

static size_t states_so_far(struct diary *diary)
{
    pthread_mutex_lock(&diary->mu);
    size_t n = diary->state_count;
    pthread_mutex_unlock(&diary->mu);
    return n;
}

static void check_states(struct diary *diary, const enum zkl_client_state *expected, size_t n)
{
    check_wait(states_so_far(diary) >= n, WAIT_MS);
    for (size_t i = 0; i < n; i++)
        check_num(diary->states[i], ==, expected[i]);
}

/* No server can be reached until the session has ended. The server ends it now: a session so short that it soon ends by
 * itself would do so on a busy machine at any time. */
static void let_expire(struct zkl_client *client, struct proxy *proxy, const char *path)
{
    check_ok(proxy_refuse(proxy, true));
    proxy_cut(proxy);
    inside_expire(client);
    check_wait(cluster_children(path) == 0, WAIT_MS);
    check_ok(proxy_refuse(proxy, false));
}

/* Goal: the states come in the order of the changes: a first connection, a link that is lost and
 * comes back, an expiry with a new session, and the end. The log that runs along has lines, but
 * none with a line break, and none with the password. */
WORLD_TEST(states_and_lines_through_a_clients_life)
{
    static const enum zkl_client_state expected[] = {
        ZKL_CLIENT_CONNECTED, ZKL_CLIENT_SUSPENDED,  ZKL_CLIENT_CONNECTED, ZKL_CLIENT_SUSPENDED,
        ZKL_CLIENT_EXPIRED,   ZKL_CLIENT_CONNECTING, ZKL_CLIENT_CONNECTED, ZKL_CLIENT_CLOSED,
    };
    const char *path = cluster_path("life");
    static struct diary diary = {.mu = PTHREAD_MUTEX_INITIALIZER};
    struct zkl_client_options options = cluster_options();

    struct proxy *proxy = world_proxy_for(&options);
    options.auth_scheme = "digest";
    write_all_down(&options, &diary);
    struct zkl_client *client = world_client_with(&options);
    struct zkl_mutex *mutex = world_mutex(client, path);
    check_states(&diary, expected, 1);
    check_ok(zkl_mutex_lock(mutex));
    proxy_cut(proxy);
    check_states(&diary, expected, 3);
    let_expire(client, proxy, path);
    check_states(&diary, expected, 7);
    check_num(zkl_client_get_state(client), ==, ZKL_CLIENT_CONNECTED);
    check_num(zkl_mutex_unlock(mutex), ==, ZKL_ELOST);
    check_closed(zkl_client_close(client, WAIT_MS));
    check_num(zkl_client_get_state(client), ==, ZKL_CLIENT_CLOSED);
    check_states(&diary, expected, 8);
    world_clear();
    check_num(diary.state_count, ==, 8);
    check_num(diary.line_count, >, 0);
    if (diary.bad_lines > 0)
        fail_msg("a line of the log: \"%s\"", diary.last_bad);
}

/* Goal: a refused credential is a state of its own, the last before the end, and is in no line. */
WORLD_TEST(a_refused_credential_is_final)
{
    static const enum zkl_client_state expected[] = {ZKL_CLIENT_AUTH_FAILED, ZKL_CLIENT_CLOSED};
    static struct diary diary = {.mu = PTHREAD_MUTEX_INITIALIZER};
    struct zkl_client_options options = cluster_options();
    size_t last = 0;

    options.connect_timeout_ms = 0;
    options.auth_scheme = "nonsense";
    write_all_down(&options, &diary);
    struct zkl_client *client = world_client_with(&options);
    struct zkl_mutex *mutex = world_mutex(client, "/refused");
    check_num(zkl_mutex_lock(mutex), ==, ZKL_EAUTH);
    check_true(strstr(zkl_error_detail(), PASSWORD) == NULL);
    check_num(zkl_client_get_state(client), ==, ZKL_CLIENT_AUTH_FAILED);
    check_num(zkl_mutex_trylock(mutex), ==, ZKL_EAUTH);
    world_drop(client);
    last = diary.state_count;
    check_num(last, >=, 2);
    for (size_t i = 0; i < 2; i++)
        check_num(diary.states[last - 2 + i], ==, expected[i]);
    if (diary.bad_lines > 0)
        fail_msg("a line of the log: \"%s\"", diary.last_bad);
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
    refused.auth_credential = USER ":" PASSWORD;
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

/* Goal: each session begins with the credential, not only the first. Method: a client that keeps its nodes
 * to itself locks again in its next session, which it can't without. */
WORLD_TEST(the_next_session_has_the_credential)
{
    const char *path = cluster_path("next");
    struct zkl_client_options options = cluster_options();

    check_ok(wire_auth(raw, "digest", USER ":" PASSWORD));
    struct proxy *proxy = world_proxy_for(&options);
    options.auth_scheme = "digest";
    options.auth_credential = USER ":" PASSWORD;
    options.acl = ZKL_ACL_CREATOR;
    struct zkl_client *client = world_client_with(&options);
    struct zkl_mutex *mutex = world_mutex(client, path);
    check_ok(zkl_mutex_lock(mutex));
    let_expire(client, proxy, path);
    check_wait(zkl_mutex_token(mutex) == 0, WAIT_MS);
    check_num(zkl_mutex_unlock(mutex), ==, ZKL_ELOST);
    check_ok(zkl_mutex_lock_for(mutex, WAIT_MS));
    check_ok(zkl_mutex_unlock(mutex));
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
