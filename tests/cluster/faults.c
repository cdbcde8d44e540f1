/* SPDX-License-Identifier: Apache-2.0 */
/* What lines can say of faults: what is inside a client, sessions, and proxies that lie. */
#include "steps.h"

#include "bytes.h"
#include "inside.h"
#include "outage.h"
#include "under_way.h"

/* --- lies ------------------------------------------------------------------------------------- */

enum {
    CONNECT_SESSION_AT = 16,
    CONNECTED_SESSION_AT = 8,
    ANSWER_ERROR_AT = 12,
    ANSWER_HEADER = 16
};

/* No session comes back. */
static size_t forget(enum proxy_dir dir, int op, unsigned char *frame, size_t size, void *unused)
{
    const int64_t never_a_session = 0x7e57;

    (void)unused;
    if (dir == PROXY_TO_SERVER && op == PROXY_CONNECT && size >= CONNECT_SESSION_AT + 8 &&
        bytes_get64(frame + CONNECT_SESSION_AT) != 0)
        bytes_put64(frame + CONNECT_SESSION_AT, never_a_session);
    return size;
}

/* And their ids are small numbers, as those of servers of another make. */
static size_t count_sessions(enum proxy_dir dir, int op, unsigned char *frame, size_t size,
                             void *unused)
{
    static int64_t sessions;

    if (dir == PROXY_TO_CLIENT && op == PROXY_CONNECT && size >= CONNECTED_SESSION_AT + 8 &&
        bytes_get64(frame + CONNECTED_SESSION_AT) != 0)
        bytes_put64(frame + CONNECTED_SESSION_AT, ++sessions);
    return forget(dir, op, frame, size, unused);
}

void lie(struct proxy *proxy, const char *how)
{
    if (how)
        proxy_set_hook(proxy, strcmp(how, "numbers") == 0 ? count_sessions : forget, NULL);
}

static atomic_int strikes;

/* The server gives a client that comes back another session, as if it knew nothing of the former one. */
static size_t renew(enum proxy_dir dir, int op, unsigned char *frame, size_t size, void *unused)
{
    (void)unused;
    if (dir == PROXY_TO_SERVER && op == PROXY_CONNECT && size >= CONNECT_SESSION_AT + 8 &&
        bytes_get64(frame + CONNECT_SESSION_AT) != 0) {
        bytes_put64(frame + CONNECT_SESSION_AT, 0);
        strikes++;
    }
    return size;
}

static char created[700]; /* the path of the latest create, without the number */

static size_t note_path(enum proxy_dir dir, int op, unsigned char *frame, size_t size, void *unused)
{
    (void)unused;
    if (dir == PROXY_TO_SERVER && op == PROXY_CREATE2 && size >= 12)
        snprintf(created, sizeof created, "%.*s", bytes_get32(frame + 8), frame + 12);
    return size;
}

static const struct {
    const char *name;
    int code;
} answers[] = {
    {"EACCES", WIRE_NOAUTH},
    {"EQUOTA", -125},
    {"EUNIMPLEMENTED", -6}, /* of a server that does not know the request */
};

static struct {
    int error;
    atomic_int lists; /* which one: the next is 1; 0: it is done */
} failing;

static size_t fail_list(enum proxy_dir dir, int op, unsigned char *frame, size_t size, void *unused)
{
    bool is_list = op == PROXY_CHILDREN || op == PROXY_CHILDREN2; /* of a mutex, of leases */

    (void)unused;
    if (dir != PROXY_TO_CLIENT || !is_list || size < ANSWER_HEADER || failing.lists == 0 ||
        --failing.lists != 0)
        return size;
    bytes_put32(frame + ANSWER_ERROR_AT, failing.error);
    return ANSWER_HEADER;
}

/* fail_list CODE nth=N: the answer from which the client makes that code. */
static void begin_to_fail(const struct step *s, struct proxy *proxy)
{
    size_t i = 0;

    while (i < sizeof answers / sizeof answers[0] && strcmp(answers[i].name, s->words[0]) != 0)
        i++;
    check_num(i, <, sizeof answers / sizeof answers[0]);
    failing.error = answers[i].code;
    failing.lists = (int)number(s, "nth", 1);
    proxy_set_hook(proxy, fail_list, NULL);
}

static clientid_t former; /* the session of a client that had it */

bool obey_lies(struct step *s, struct proxy *proxy)
{
    DO("fail_list", begin_to_fail(s, proxy));
    DO("new_session", strikes = 0; proxy_set_hook(proxy, renew, NULL));
    DO("scaled", say(s, "%d", lag_session_ms(atoi(s->words[0])))); /* as a session's timeout */
    DO("strikes", say(s, "%d", strikes));
    DO("note_creates", proxy_set_hook(proxy, note_path, NULL));
    DO("created", say(s, "%s", created));
    DO("end_former", check_ok(wire_expire_session(zks_host(), zks_port(server, 0), former.client_id,
                                                  former.passwd, WAIT_MS)));
    DO("disarm", proxy_disarm(proxy));
    DO("refuse", check_ok(proxy_refuse(proxy, true))); /* the link that it has stays */
    DO("server_down", server_down());
    DO("server_back", server_back());
    return false;
}

/* --- inside a client -------------------------------------------------------------------------- */

static int64_t session_id(struct zkl_client *client)
{
    zkl_driver_lock(client->driver);
    int64_t id = client->driver->core.session.id;
    zkl_driver_unlock(client->driver);
    return id;
}

/* Is the window of that session open? */
static bool is_proved(struct zkl_client *client, int64_t session)
{
    zkl_driver_lock(client->driver);
    const struct zkl_session *its = &client->driver->core.session;
    bool is = its->id == session && zkl_clock_boot_ns() < zkl_session_window_end(its);
    zkl_driver_unlock(client->driver);
    return is;
}

static struct zkl_client_metrics metrics_of(struct zkl_client *client)
{
    struct zkl_client_metrics metrics = ZKL_CLIENT_METRICS_INIT;

    check_ok(zkl_client_get_metrics(client, &metrics));
    return metrics;
}

/* told HANDLE state=LOST: how often its notes say that. */
static void say_told(struct step *s)
{
    static const char *const states[] = {"", "HELD", "SUSPECT", "LOST"};
    struct notes *notes = &s->handle->notes;
    int n = 0;

    for (size_t i = 0; i < noted(notes) && i < NOTES_MAX; i++)
        n += strcmp(states[notes->list[i].state], option(s, "state")) == 0;
    say(s, "%d", n);
}

/* How many contenders, watches but those on paths of handles, and unanswered calls it has. */
static void say_inside(struct step *s)
{
    struct zkl_driver *d = s->handle->client->driver;

    zkl_driver_lock(d);
    say(s, "%zu %zu %zu", contenders_of(&d->core), watches_of(&d->core), calls_of(d));
    zkl_driver_unlock(d);
}

/* What the server has of a hold: its node alone, of the client's session, with the token as its czxid. */
static void say_server_has(struct step *s)
{
    const struct handle *h = s->handle;
    struct wire_stat stat;
    char node[700];

    say(s, "%d nodes", cluster_children(h->path));
    if (zkl_mutex_node_path(h->mutex, node, sizeof node) > 0 &&
        wire_exists(raw, cluster_at(node), &stat) == 0 &&
        stat.ephemeral_owner == session_id(h->client) &&
        (uint64_t)stat.czxid == zkl_mutex_token(h->mutex))
        say(s, "%d, its own", cluster_children(h->path));
}

/* Of the path's children, or those of a node below it: how often one was made or deleted. */
static void say_changes(struct step *s)
{
    struct wire_stat stat;
    const char *path = s->handle->path, *name = option(s, "below");

    check_ok(wire_exists(raw, cluster_at(name ? below(path, name) : path), &stat));
    say(s, "%lld", (long long)(stat.cversion - number(s, "since", 0)));
}

bool obey_fault(struct step *s)
{
    const struct handle *h = s->handle;

    DO("remember", check_wait(session_of(h->client->driver, &former), WAIT_MS));
    DO("expire", inside_expire(h->client));
    DO("session_id", say(s, "%lld", (long long)session_id(h->client)));
    DO("proved", say(s, "%d", is_proved(h->client, number(s, "session", 0))));
    DO("links", say(s, "%lld", (long long)metrics_of(h->client).connections));
    DO("client_window", say(s, "%lld", (long long)metrics_of(h->client).window_ms));
    DO("told", say_told(s));
    DO("inside", say_inside(s));
    DO("server_watches",
       say(s, "%d", flw_session_watches(zks_host(), zks_port(server, 0), session_id(h->client))));
    DO("server_has", say_server_has(s));
    DO("changes", say_changes(s));
    return false;
}
