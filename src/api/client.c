/* SPDX-License-Identifier: Apache-2.0
 *
 * A client from zkl_client_open to its end: this file checks and copies the options, makes the
 * driver, and turns its reports of the session into the client's state. It owns the driver, the
 * records of paths and all copies of options. Opening and closing run without a lock and block
 * within their bounds. The driver's reports arrive with the client's mutex held. */
#include "client.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/servers.h"
#include "counts.h"
#include "driver/clock.h"
#include "driver/trouble.h"
#include "error.h"
#include "place.h"
#include "op.h"
#include "security.h"
#include "sized.h"

#define MS INT64_C(1000000)
#define TIMEOUT_DEFAULT_MS 10000
#define TIMEOUT_MIN_MS 100
#define TIMEOUT_MAX_MS 86400000
#define FREE_CLOSES_MS 10000

int64_t zkl_now_ns(void)
{
    return zkl_clock_mono_ns();
}

/* --- callbacks ---------------------------------------------------------- */

static void run_states(struct zkl_note *note)
{
    struct zkl_client *client =
        (struct zkl_client *)((char *)note - offsetof(struct zkl_client, state_note));
    enum zkl_client_state states[ZKL_STATES_QUEUED];
    zkl_driver_lock(client->driver);
    size_t count = client->state_count;
    memcpy(states, client->states, count * sizeof states[0]);
    client->state_count = 0;
    zkl_driver_unlock(client->driver);
    for (size_t i = 0; i < count; i++)
        client->state_fn(client, states[i], client->state_arg);
    zkl_client_unref(client);
}

static void post_state(struct zkl_client *client, enum zkl_client_state state)
{
    if (!client->state_fn)
        return;
    if (client->state_count == ZKL_STATES_QUEUED) { /* a slow callback: drop the oldest */
        memmove(client->states, client->states + 1,
                sizeof client->states - sizeof client->states[0]);
        client->state_count--;
    }
    client->states[client->state_count++] = state;
    if (zkl_driver_post(client->driver, &client->state_note))
        zkl_client_ref(client);
}

static void count_session(struct zkl_client *client, unsigned actions)
{
    client->links += (actions & ZKL_SA_LINK_UP) != 0;
    client->links_lost += (actions & ZKL_SA_LINK_DOWN) && !(actions & ZKL_SA_CLOSED);
    client->expiries += (actions & ZKL_SA_EXPIRE) != 0;
}

static void on_session(void *arg, unsigned actions)
{
    struct zkl_client *client = arg;
    count_session(client, actions);
    if (client->opening)
        zkl_driver_wake(client->driver, &client->opener);
    if (actions & ZKL_SA_CLOSED)
        post_state(client, ZKL_CLIENT_CLOSED);
    else if ((actions & ZKL_SA_LINK_DOWN) && !(actions & (ZKL_SA_EXPIRE | ZKL_SA_FAIL)))
        post_state(client, ZKL_CLIENT_SUSPENDED);
    if (actions & ZKL_SA_EXPIRE)
        post_state(client, ZKL_CLIENT_EXPIRED);
    if ((actions & ZKL_SA_EXPIRE) && (actions & (ZKL_SA_REPLACE_HANDLE | ZKL_SA_DROP_HANDLE)))
        post_state(client, ZKL_CLIENT_CONNECTING);
    if (actions & ZKL_SA_FAIL)
        post_state(client, ZKL_CLIENT_AUTH_FAILED);
    if (actions & ZKL_SA_LINK_UP)
        post_state(client, ZKL_CLIENT_CONNECTED);
}

int zkl_fail_unserved(struct zkl_client *client, int rc, const char *what)
{
    char trouble[ZKL_TROUBLE_SIZE] = "";
    zkl_driver_lock(client->driver);
    if (rc == ZKL_ETIMEDOUT || rc == ZKL_EDISCONNECTED || rc == ZKL_EUNPROVED)
        zkl_trouble_tell(client->driver, trouble, sizeof trouble);
    zkl_driver_unlock(client->driver);
    return zkl_fail(rc, "%s%s", what, trouble);
}

/* --- open --------------------------------------------------------------- */

static int fail_open(const struct zkl_client_options *options, int rc)
{
    if (options->errbuf && options->errbuf_size > 0)
        snprintf(options->errbuf, options->errbuf_size, "%s", zkl_error_detail());
    return rc;
}

static int check_auth(const struct zkl_client_options *o)
{
    int rc = zkl_credential_check(o);
    if (rc != 0)
        return rc;
    if (o->acl != ZKL_ACL_OPEN && o->acl != ZKL_ACL_CREATOR)
        return zkl_fail(ZKL_EINVAL,
                        "zkl_client_open: acl is neither ZKL_ACL_OPEN nor ZKL_ACL_CREATOR");
    if (o->acl == ZKL_ACL_CREATOR && !o->auth_scheme && !o->tls_ca_file && !o->sasl_mechanism)
        return zkl_fail(ZKL_EINVAL, "zkl_client_open: ZKL_ACL_CREATOR needs auth_scheme and a "
                                    "credential, TLS or SASL");
    return zkl_security_check(o);
}

static int check_servers(const char *servers)
{
    const char *fault = zkl_servers_fault(servers);
    return fault ? zkl_fail(ZKL_EBADSERVERS, "\"%.64s\" %s", servers, fault) : 0;
}

static int check_options(const struct zkl_client_options *o)
{
    if (!o->servers)
        return zkl_fail(ZKL_EINVAL, "zkl_client_open: options->servers is NULL");
    if (check_servers(o->servers) != 0)
        return ZKL_EBADSERVERS;
    if (o->session_timeout_ms != 0 &&
        (o->session_timeout_ms < TIMEOUT_MIN_MS || o->session_timeout_ms > TIMEOUT_MAX_MS))
        return zkl_fail(ZKL_EINVAL, "zkl_client_open: session_timeout_ms is %d, not 0 or %d to %d",
                        o->session_timeout_ms, TIMEOUT_MIN_MS, TIMEOUT_MAX_MS);
    int asked_ms = o->session_timeout_ms ? o->session_timeout_ms : TIMEOUT_DEFAULT_MS;
    if (o->tick_ms < 0 || o->tick_ms > asked_ms)
        return zkl_fail(ZKL_EINVAL,
                        "zkl_client_open: tick_ms is %d, not 0 to the session timeout, %d; that "
                        "should be two ticks or more",
                        o->tick_ms, asked_ms);
    if (zkl_check_ms(o->connect_timeout_ms, "zkl_client_open: connect_timeout_ms") != 0)
        return ZKL_EBADTIMEOUT;
    if (o->owner && strlen(o->owner) > ZKL_OWNER_MAX)
        return zkl_fail(ZKL_EINVAL, "zkl_client_open: owner is longer than %d bytes",
                        ZKL_OWNER_MAX);
    if (o->ephemeral_bytes_max < 0)
        return zkl_fail(ZKL_EINVAL, "zkl_client_open: ephemeral_bytes_max is %lld, not 0 or more",
                        (long long)o->ephemeral_bytes_max);
    if (o->log_level != 0 && (o->log_level < ZKL_LOG_ERROR || o->log_level > ZKL_LOG_DEBUG))
        return zkl_fail(ZKL_EINVAL, "zkl_client_open: log_level is %d, not 0 or a ZKL_LOG_* level",
                        (int)o->log_level);
    return check_auth(o);
}

static bool copy_text(char **to, const char *from)
{
    if (!from)
        return true;
    *to = strdup(from);
    return *to != NULL;
}

static void free_client(void *arg)
{
    struct zkl_client *client = arg;
    zkl_log_fini(client);
    free(client->owner);
    for (int i = 0; i < ZKL_SPARE_PLACES; i++)
        free(client->spare_places[i]);
    free(client->ops.slots);
    free(client->ops.heap);
    zkl_waker_fini(&client->opener);
    free(client);
}

static struct zkl_client *new_client(const struct zkl_client_options *o)
{
    struct zkl_client *client = calloc(1, sizeof *client);
    if (!client)
        return NULL;
    client->fork_generation = zkl_fork_generation();
    atomic_init(&client->refs, 1);
    atomic_init(&client->closed, false);
    zkl_waker_init(&client->opener, NULL);
    for (int i = 0; i < ZKL_SPARE_PLACES; i++)
        atomic_init(&client->spare_places[i], NULL);
    char host[65] = "";
    if (gethostname(host, sizeof host - 1) != 0)
        strcpy(host, "unknown");
    snprintf(client->self, sizeof client->self, "%s %ld ", host, (long)getpid());
    static atomic_uint clients;
    snprintf(client->number, sizeof client->number, "%ld.%u", (long)getpid(),
             atomic_fetch_add(&clients, 1) + 1);
    client->state_fn = o->state_fn;
    client->state_arg = o->state_arg;
    client->state_note.run = run_states;
    client->state_note.owner = client;
    zkl_log_init(client, o);
    client->opening = o->connect_timeout_ms > 0;
    if (!copy_text(&client->owner, o->owner)) {
        free_client(client);
        return NULL;
    }
    return client;
}

/* Secrets that must be wiped after use, and the options that depend on them. */
struct secrets {
    char *credential;
    struct zkl_security security;
};

static void drop_secrets(struct secrets *secrets)
{
    zkl_credential_drop(secrets->credential);
    zkl_security_fini(&secrets->security);
}

static int get_secrets(const struct zkl_client_options *o, struct secrets *secrets)
{
    int rc = zkl_credential_get(o, &secrets->credential);
    if (rc == 0)
        rc = zkl_security_get(o, &secrets->security);
    if (rc != 0)
        drop_secrets(secrets);
    return rc;
}

/* The secrets are taken over. */
static int start_driver(struct zkl_client *client, const struct zkl_client_options *o,
                        const struct secrets *secrets)
{
    struct zkl_driver_config config = {
        .session_timeout_ms = o->session_timeout_ms ? o->session_timeout_ms : TIMEOUT_DEFAULT_MS,
        .tick_ms = o->tick_ms,
        .ephemeral_bytes_max = (uint64_t)o->ephemeral_bytes_max,
        .auth_credential = secrets->credential,
        .security = secrets->security,
        .creator_acl = o->acl == ZKL_ACL_CREATOR,
        .first_read = o->connect_timeout_ms > 0,
        .follow_ensemble = o->follow_ensemble != 0,
        .notification = zkl_place_notification,
        .session = on_session,
        .log = zkl_log_is_on(&client->log) ? zkl_log_trace : NULL,
        .resolved = zkl_log_is_on(&client->log) ? zkl_log_resolver : NULL,
        .due = zkl_ops_due,
        .closed = zkl_ops_closed,
        .gone = free_client,
        .arg = client};
    size_t hosts = strcspn(o->servers, "/");
    config.servers = strndup(o->servers, hosts);
    bool copied = copy_text(&config.chroot, o->servers + hosts) && config.servers;
    copied = copy_text(&config.auth_scheme, o->auth_scheme) && copied;
    if (!copied) {
        zkl_driver_config_free(&config);
        return ZKL_ENOMEM;
    }
    return zkl_driver_new(&client->driver, &config);
}

/* Neither refused nor answered. The answer comes behind the one to the credential. */
static bool undecided(const struct zkl_client *client)
{
    const struct zkl_core *core = &client->driver->core;
    return core->session.state != ZKL_SESSION_FAILED && core->first_read_wanted;
}

/* The code of the first answer, or of its absence. */
static int code_of_opening(const struct zkl_driver *d)
{
    if (d->core.session.state == ZKL_SESSION_FAILED)
        return ZKL_EAUTH;
    if (d->core.first_read_wanted)
        return ZKL_EDISCONNECTED;
    return d->core.first_read_answer == ZKL_ANSWER_NONODE ? ZKL_ENOCHROOT : 0;
}

static void tell_trouble(const struct zkl_driver *d, int rc, char *text, size_t size)
{
    if (rc == ZKL_EDISCONNECTED)
        zkl_trouble_tell(d, text, size);
    if (rc != ZKL_EAUTH)
        return;
    if (d->config.security.sasl_mechanism)
        snprintf(text, size, "; the login by SASL failed: look at sasl_user and the password");
    else if (!d->config.auth_scheme)
        snprintf(text, size, "; none was given, and the server wants one, or a login by SASL");
}

static int wait_connected(struct zkl_client *client, const struct zkl_client_options *o)
{
    struct zkl_driver *d = client->driver;
    int64_t deadline = zkl_clock_mono_ns() + o->connect_timeout_ms * MS;
    char trouble[ZKL_TROUBLE_SIZE] = "";
    zkl_driver_lock(d);
    while (undecided(client) && zkl_clock_mono_ns() < deadline)
        zkl_driver_wait(d, &client->opener, deadline);
    int rc = code_of_opening(d);
    client->opening = false;
    tell_trouble(d, rc, trouble, sizeof trouble);
    zkl_driver_unlock(d);
    if (rc == 0)
        return 0;
    return zkl_fail(rc, "zkl_client_open: %s, %lld ms%s", o->servers,
                    (long long)o->connect_timeout_ms, trouble);
}

static bool end_session(struct zkl_client *client, int64_t timeout_ms)
{
    atomic_store(&client->closed, true);
    return zkl_driver_close(client->driver, zkl_clock_mono_ns() + timeout_ms * MS);
}

/* The driver does not take them. */
static int fail_servers(int rc, const char *call, const char *servers)
{
    return zkl_fail(rc, "%s: %s%s", call, servers,
                    rc == ZKL_EBADSERVERS ? " has text in brackets that is not an IPv6 address"
                                          : "");
}

int zkl_client_open(struct zkl_client **client, const struct zkl_client_options *theirs)
{
    ZKL_SHIELDED();
    struct zkl_client_options ours, *options = &ours;
    if (!theirs)
        return zkl_fail(ZKL_EINVAL, "zkl_client_open: options is NULL");
    if (!zkl_sized_is_known(theirs, ZKL_SIZED_LEAST(struct zkl_client_options, errbuf_size),
                            sizeof ours))
        return zkl_fail(ZKL_EINVAL,
                        "zkl_client_open: initialize options with ZKL_CLIENT_OPTIONS_INIT");
    zkl_sized_read(&ours, sizeof ours, theirs);
    int rc =
        client ? check_options(options) : zkl_fail(ZKL_EINVAL, "zkl_client_open: client is NULL");
    if (rc == 0 && options->connect_timeout_ms > 0 && zkl_driver_in_callback())
        rc = zkl_fail(ZKL_EINCALLBACK,
                      "zkl_client_open: a callback must leave connect_timeout_ms at 0");
    struct secrets secrets = {0};
    if (rc == 0)
        rc = get_secrets(options, &secrets);
    if (rc != 0)
        return fail_open(options, rc);
    struct zkl_client *c = new_client(options);
    rc = c ? start_driver(c, options, &secrets) : ZKL_ENOMEM;
    if (rc != 0) {
        if (c)
            free_client(c);
        else
            drop_secrets(&secrets);
        return fail_open(options, fail_servers(rc, "zkl_client_open", options->servers));
    }
    if (options->connect_timeout_ms > 0)
        rc = wait_connected(c, options);
    if (rc != 0) {
        fail_open(options, rc);
        end_session(c, 0); /* the time for this call is up */
        zkl_driver_hush(c->driver);
        zkl_client_unref(c);
        return rc;
    }
    *client = c;
    return 0;
}

int zkl_client_state_locked(const struct zkl_client *client)
{
    static const int states[ZKL_SESSION_STATES] = {
        [ZKL_SESSION_STARTING] = ZKL_CLIENT_CONNECTING,
        [ZKL_SESSION_CONNECTED] = ZKL_CLIENT_CONNECTED,
        [ZKL_SESSION_SUSPENDED] = ZKL_CLIENT_SUSPENDED,
        [ZKL_SESSION_PROBING] = ZKL_CLIENT_SUSPENDED,
        [ZKL_SESSION_PROBED] = ZKL_CLIENT_SUSPENDED,
        [ZKL_SESSION_FAILED] = ZKL_CLIENT_AUTH_FAILED,
        [ZKL_SESSION_CLOSED] = ZKL_CLIENT_CLOSED,
    };
    return states[client->driver->core.session.state];
}

int zkl_client_get_state(struct zkl_client *client)
{
    ZKL_SHIELDED();
    if (!client)
        return zkl_fail(ZKL_EINVAL, "zkl_client_get_state: client is NULL");
    int rc = zkl_client_check(client, false, "zkl_client_get_state");
    if (rc != 0)
        return rc;
    zkl_driver_lock(client->driver);
    rc = zkl_client_state_locked(client);
    zkl_driver_unlock(client->driver);
    return rc;
}

int64_t zkl_client_session_id(struct zkl_client *client)
{
    static const char call[] = "zkl_client_session_id";
    if (!client)
        zkl_fail(ZKL_EINVAL, "%s: client is NULL", call);
    if (!client || zkl_client_check(client, true, call) != 0)
        return 0;
    ZKL_SHIELDED();
    zkl_driver_lock(client->driver);
    int64_t id = client->driver->core.session.id;
    zkl_driver_unlock(client->driver);
    zkl_fail_none();
    return id;
}

int zkl_client_server(struct zkl_client *client, char *buf, size_t size)
{
    ZKL_SHIELDED();
    static const char call[] = "zkl_client_server";
    char server[ZKL_SERVER_TEXT_SIZE];
    if (!client || (!buf && size > 0))
        return zkl_fail(ZKL_EINVAL, "%s: %s is NULL", call, client ? "buf" : "client");
    int rc = zkl_client_check(client, true, call);
    if (rc != 0)
        return rc;
    zkl_driver_lock(client->driver);
    bool linked = zkl_handle_server(client->driver->current, server);
    zkl_driver_unlock(client->driver);
    return linked ? snprintf(buf, size, "%s", server) : zkl_fail(ZKL_EDISCONNECTED, "%s", call);
}

static int take_servers(struct zkl_client *client, const char *servers)
{
    char *hosts = strndup(servers, strcspn(servers, "/"));
    if (!hosts)
        return ZKL_ENOMEM;
    zkl_driver_lock(client->driver);
    int rc = zkl_driver_set_servers(client->driver, hosts);
    zkl_driver_unlock(client->driver);
    free(hosts);
    return rc;
}

int zkl_client_set_servers(struct zkl_client *client, const char *servers)
{
    ZKL_SHIELDED();
    static const char call[] = "zkl_client_set_servers";
    if (!client || !servers)
        return zkl_fail(ZKL_EINVAL, "%s: %s is NULL", call, client ? "servers" : "client");
    int rc = zkl_client_check(client, true, call);
    if (rc == 0)
        rc = check_servers(servers);
    if (rc != 0)
        return rc;
    const char *chroot = client->driver->config.chroot;
    if (strcmp(servers + strcspn(servers, "/"), chroot) != 0)
        return zkl_fail(ZKL_EINVAL,
                        "%s: \"%.64s\" has not the client's chroot, which stays: \"%s\"", call,
                        servers, chroot);
    rc = take_servers(client, servers);
    return rc == 0 ? 0 : fail_servers(rc, call, servers);
}

/* --- close -------------------------------------------------------------- */

static int check_close(struct zkl_client *client, const char *call)
{
    int rc = zkl_client_check(client, false, call);
    if (rc == 0 && zkl_driver_in_callback())
        rc = zkl_fail(ZKL_EINCALLBACK, "%s", call);
    return rc;
}

int zkl_client_close(struct zkl_client *client, int64_t timeout_ms)
{
    ZKL_SHIELDED();
    if (!client)
        return zkl_fail(ZKL_EINVAL, "zkl_client_close: client is NULL");
    if (zkl_check_ms(timeout_ms, "zkl_client_close") != 0)
        return ZKL_EBADTIMEOUT;
    int rc = check_close(client, "zkl_client_close");
    if (rc != 0)
        return rc;
    if (!end_session(client, timeout_ms))
        return zkl_fail(ZKL_ETIMEDOUT, "zkl_client_close: the session is ending in the background");
    return 0;
}

static int finish_closing(struct zkl_op *op, int rc)
{
    (void)op;
    return rc == 0 ? 0
                   : zkl_fail(rc, "zkl_client_close_async: no server confirmed the session's end");
}

int zkl_client_close_async(struct zkl_client *client, zkl_done_fn fn, void *arg)
{
    ZKL_SHIELDED();
    static const struct zkl_op_kind closing = {.finish = finish_closing, .closes = true};
    static const char call[] = "zkl_client_close_async";
    if (!client || !fn)
        return zkl_fail(ZKL_EINVAL, "%s: %s is NULL", call, client ? "fn" : "client");
    int rc = zkl_client_check(client, false, call);
    if (rc != 0)
        return rc;
    struct zkl_op *op = zkl_op_new(sizeof *op, client, &closing, fn, arg);
    if (!op)
        return zkl_fail(ZKL_ENOMEM, "%s", call);
    zkl_driver_lock(client->driver);
    rc = zkl_op_begin(op, NULL);
    if (rc == 0) {
        atomic_store(&client->closed, true);
        zkl_driver_begin_close(client->driver);
    }
    zkl_driver_unlock(client->driver);
    if (rc == 0)
        return 0;
    zkl_op_free(op);
    return zkl_fail(rc, "%s", call);
}

int zkl_client_free(struct zkl_client *client)
{
    ZKL_SHIELDED();
    if (!client)
        return zkl_fail(ZKL_EINVAL, "zkl_client_free: client is NULL");
    int rc = check_close(client, "zkl_client_free");
    if (rc != 0)
        return rc;
    if (!end_session(client, FREE_CLOSES_MS)) {
        zkl_driver_lock(client->driver);
        zkl_ops_closed(client, false); /* report now what is still to be reported */
        zkl_driver_unlock(client->driver);
    }
    zkl_driver_drain(client->driver);
    zkl_client_unref(client);
    return 0;
}
