/* SPDX-License-Identifier: Apache-2.0
 *
 * A connection to ZooKeeper beside the library's, for requests that a lock never sends: the ACLs
 * and counters for doctor, and the record of the last run. Only this file of the command and
 * record.c know libzookeeper. It owns the zhandle. Calls block one thread, each with a bound;
 * answers come on libzookeeper's thread, under a mutex of the connection. */
#include "raw.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <zookeeper/zookeeper.h>

#include "addresses.h"
#include "clock.h"
#include "connect.h"
#include "say.h"
#include "signals.h"

#define THROTTLED (-127) /* ZTHROTTLEDOP, which client libraries before 3.7 have no name for */

enum { SESSION_MS_DEFAULT = 10000 };

struct raw {
    zhandle_t *zh;     /* NULL: hung up */
    char *chroot;      /* or "" */
    bool creator;      /* only the maker of a node may touch it */
    int changed, stop; /* descriptors */
    pthread_mutex_t mutex;
    int state;      /* protected by mutex, as all below */
    unsigned links; /* how many there were */
    bool answered;
    int rc; /* of the answer; of a read also: */
    char *data;
    size_t length;
    struct Stat *stat;
};

/* --- connecting --------------------------------------------------------- */

/* The mutex is held. */
static void announce(struct raw *raw)
{
    const uint64_t one = 1;
    if (write(raw->changed, &one, sizeof one) < 0)
        return; /* it is readable already */
}

static void on_event(zhandle_t *zh, int type, int state, const char *path, void *context)
{
    struct raw *raw = context;
    (void)zh, (void)path;
    if (type != ZOO_SESSION_EVENT)
        return;
    pthread_mutex_lock(&raw->mutex);
    raw->state = state;
    raw->links += state == ZOO_CONNECTED_STATE;
    announce(raw);
    pthread_mutex_unlock(&raw->mutex);
}

static void log_nothing(const char *message)
{
    (void)message;
}

static bool is_stopped(const struct raw *raw)
{
    struct pollfd stop = {.fd = raw->stop, .events = POLLIN};
    return poll(&stop, 1, 0) > 0;
}

static bool ask(struct raw *raw, bool (*is_so)(const struct raw *raw))
{
    pthread_mutex_lock(&raw->mutex);
    bool so = is_so(raw);
    pthread_mutex_unlock(&raw->mutex);
    return so;
}

/* False: not so by then, or the call was stopped. */
static bool wait_until(struct raw *raw, bool (*is_so)(const struct raw *raw), int64_t end_ns)
{
    int64_t left;
    uint64_t count;
    while (!ask(raw, is_so)) {
        struct pollfd from[] = {{.fd = raw->changed, .events = POLLIN},
                                {.fd = raw->stop, .events = POLLIN}};
        left = (end_ns - zkl_now_ns() + MS_NS - 1) / MS_NS;
        if (left <= 0 || is_stopped(raw))
            return false;
        poll(from, 2, (int)left);
        if (read(raw->changed, &count, sizeof count) < 0)
            continue; /* nothing has changed */
    }
    return true;
}

static bool is_linked(const struct raw *raw)
{
    return raw->state == ZOO_CONNECTED_STATE;
}

static bool is_decided(const struct raw *raw)
{
    return is_linked(raw) || raw->state == ZOO_AUTH_FAILED_STATE;
}

static bool is_answered(const struct raw *raw)
{
    return raw->answered;
}

static struct raw *new_raw(int stop)
{
    struct raw *raw = calloc(1, sizeof *raw);
    if (!raw)
        return NULL;
    raw->stop = stop;
    raw->changed = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    pthread_mutex_init(&raw->mutex, NULL);
    if (raw->changed >= 0)
        return raw;
    raw_close(raw);
    return NULL;
}

/* Below the library's "host:port,.../chroot". False: no memory. */
static bool take_chroot(struct raw *raw, const char *servers)
{
    const char *chroot = servers + strcspn(servers, "/");
    raw->chroot = strdup(strcmp(chroot, "/") == 0 ? "" : chroot);
    return raw->chroot != NULL;
}

/* Its threads take no signals. */
static zhandle_t *open_handle(struct raw *raw, const char *servers, int session_ms)
{
    sigset_t before;
    signals_block_all(&before);
    zhandle_t *zh = zookeeper_init2(servers, on_event, session_ms, NULL, raw, 0, log_nothing);
    signals_restore(&before);
    return zh;
}

static bool open_addresses(struct raw *raw, struct settings *settings, int session_ms,
                           int64_t until)
{
    int left = (int)((until - zkl_now_ns()) / MS_NS);
    const char *found = addresses_wait(settings->addresses, left > 0 ? left : 0, raw->stop);
    raw->zh = found ? open_handle(raw, found, session_ms) : NULL;
#ifndef ZKL_NO_RESOLUTION_DELAY
    if (raw->zh) /* else it asks before each wait for its socket */
        zoo_set_servers_resolution_delay(raw->zh, -1);
#endif
    return raw->zh != NULL;
}

/* The library's own client has shown already that the credential is a good one. */
static int connect_raw(struct raw *raw, struct settings *settings,
                       const struct zkl_client_options *o, int connect_ms)
{
    int64_t until = zkl_now_ns() + connect_ms * MS_NS;
    int session_ms = o->session_timeout_ms ? o->session_timeout_ms : SESSION_MS_DEFAULT;
    if (!take_chroot(raw, o->servers) || !settings_look_up(settings))
        return fail(EXIT_SYSTEM, "out of memory");
    raw->creator = o->acl == ZKL_ACL_CREATOR;
    bool opened = open_addresses(raw, settings, session_ms, until);
    if (opened && o->auth_scheme)
        zoo_add_auth(raw->zh, o->auth_scheme, o->auth_credential, (int)strlen(o->auth_credential),
                     NULL, NULL);
    if (opened && wait_until(raw, is_decided, until) && ask(raw, is_linked))
        return 0;
    if (is_stopped(raw))
        return EXIT_CONFLICT;
    settings_forget_addresses(settings);
    return fail(EXIT_NO_SERVER,
                "no server of %s took a second connection, beside that of the locks: has it "
                "reached its limit (maxClientCnxns), or does none run any more?",
                o->servers);
}

/* They are complete. */
static int check_security(const struct settings *settings)
{
    const char *set = settings->text[SETTING_TLS_CA_FILE] ? "tls_ca_file" : "sasl_mechanism";
    if (!settings_secured(settings))
        return 0;
    return fail(EXIT_CONFIG,
                "%s is set, but this needs a connection beside the library's, which supports "
                "neither TLS nor SASL: use a port and settings without them",
                set);
}

int raw_check(struct settings *settings)
{
    int rc = settings_complete(settings);
    return rc == 0 ? check_security(settings) : rc;
}

int raw_open(struct raw **opened, struct settings *settings, int connect_ms, int stop)
{
    struct tool_options options;
    struct raw *raw = new_raw(stop);
    if (!raw)
        return fail(EXIT_SYSTEM, "a second connection cannot be opened: %s", strerror(errno));
    int rc = tool_options(&options, settings);
    if (rc == 0)
        rc = check_security(settings);
    if (rc == 0)
        rc = connect_raw(raw, settings, &options.client, connect_ms);
    tool_options_fini(&options);
    if (rc == 0)
        *opened = raw;
    else
        raw_close(raw);
    return rc;
}

/* After this no thread writes any more into the memory of an unanswered call. */
static void hang_up(struct raw *raw)
{
    if (raw->zh)
        zookeeper_close(raw->zh);
    raw->zh = NULL;
}

void raw_close(struct raw *raw)
{
    if (!raw)
        return;
    hang_up(raw);
    free(raw->chroot);
    if (raw->changed >= 0)
        close(raw->changed);
    pthread_mutex_destroy(&raw->mutex);
    free(raw);
}

char *raw_path(const struct raw *raw, const char *path)
{
    char *whole;
    bool is_top = raw->chroot[0] && strcmp(path, "/") == 0;
    return asprintf(&whole, "%s%s", raw->chroot, is_top ? "" : path) < 0 ? NULL : whole;
}

/* --- questions ---------------------------------------------------------- */

static enum raw_answer answer_of(int rc)
{
    switch (rc) {
    case ZOK:
        return RAW_OK;
    case ZNONODE:
        return RAW_NO_NODE;
    case ZNOAUTH:
        return RAW_DENIED;
    default:
        return RAW_FAILED;
    }
}

/* The server keeps the number of creates and shows it as cversion = 2 * creates - children, in 32
 * bits. */
enum raw_answer raw_created(const struct raw *raw, const char *path, uint32_t *created)
{
    struct Stat stat;
    char *whole = raw_path(raw, path);
    int rc = whole ? zoo_exists(raw->zh, whole, 0, &stat) : ZSYSTEMERROR;
    free(whole);
    if (rc == ZOK)
        *created = ((uint32_t)stat.cversion + (uint32_t)stat.numChildren) / 2;
    return answer_of(rc);
}

static void add_rights(struct raw_rights *rights, const struct ACL *acl)
{
    const int lock = ZOO_PERM_READ | ZOO_PERM_CREATE | ZOO_PERM_DELETE;
    rights->one_can_lock |= (acl->perms & lock) == lock;
    if (strcmp(acl->id.scheme, "world") != 0)
        return;
    rights->all_read |= (acl->perms & ZOO_PERM_READ) != 0;
    rights->all_delete |= (acl->perms & ZOO_PERM_DELETE) != 0;
    rights->all_create |= (acl->perms & ZOO_PERM_CREATE) != 0;
}

enum raw_answer raw_rights(const struct raw *raw, const char *path, struct raw_rights *rights)
{
    struct ACL_vector acl;
    struct Stat stat;
    char *whole = raw_path(raw, path);
    *rights = (struct raw_rights){0};
    int rc = whole ? zoo_get_acl(raw->zh, whole, &acl, &stat) : ZSYSTEMERROR;
    free(whole);
    if (rc != ZOK)
        return answer_of(rc);
    for (int i = 0; i < acl.count; i++)
        add_rights(rights, &acl.data[i]);
    deallocate_ACL_vector(&acl);
    return RAW_OK;
}

/* --- whole requests ------------------------------------------------------ */

const struct ACL_vector *raw_acl(const struct raw *raw)
{
    return raw->creator ? &ZOO_CREATOR_ALL_ACL : &ZOO_OPEN_ACL_UNSAFE;
}

const char *raw_error(int code)
{
    return zerror(code);
}

bool raw_is_open(const struct raw *raw)
{
    return raw->zh != NULL;
}

static void on_answer(int rc, const void *context)
{
    struct raw *raw = (struct raw *)context;
    pthread_mutex_lock(&raw->mutex);
    raw->rc = rc;
    raw->answered = true;
    announce(raw);
    pthread_mutex_unlock(&raw->mutex);
}

static void on_data(int rc, const char *data, int length, const struct Stat *stat,
                    const void *context)
{
    struct raw *raw = (struct raw *)context;
    if (rc == ZOK) {
        size_t whole = length > 0 ? (size_t)length : 0; /* -1: none at all */
        if (whole > 0)
            memcpy(raw->data, data, whole < raw->length ? whole : raw->length);
        raw->length = whole;
        *raw->stat = *stat;
    }
    on_answer(rc, context);
}

/* If a session ends during a call, libzookeeper may never answer it, and a transaction may crash:
 * so none begins without a link. */
static bool begin_call(struct raw *raw)
{
    pthread_mutex_lock(&raw->mutex);
    bool linked = raw->zh && is_linked(raw);
    raw->answered = false;
    pthread_mutex_unlock(&raw->mutex);
    return linked;
}

/* An answer of a server, and not of libzookeeper, except those about the session. */
static bool is_servers(int code)
{
    return code == ZOK || (code < ZAPIERROR && code != ZSESSIONEXPIRED && code != ZSESSIONMOVED &&
                           code != ZCLOSING && code != ZAUTHFAILED && code != THROTTLED);
}

/* rc: of the call that should send it. */
static int end_call(struct raw *raw, int rc)
{
    if (rc == ZOK)
        rc = wait_until(raw, is_answered, zkl_now_ns() + ANSWER_MS * MS_NS) ? raw->rc
                                                                            : ZOPERATIONTIMEOUT;
    if (is_servers(rc))
        return rc;
    hang_up(raw);
    return ZCONNECTIONLOSS;
}

int raw_multi(struct raw *raw, int count, const struct zoo_op *ops, int *blamed)
{
    zoo_op_result_t results[RAW_OPS] = {{0}};
    if (!begin_call(raw))
        return end_call(raw, ZCONNECTIONLOSS);
    int rc = end_call(raw, zoo_amulti(raw->zh, count, ops, results, on_answer, raw));
    for (*blamed = 0; *blamed < count - 1 && results[*blamed].err != rc; ++*blamed) {
    }
    return rc;
}

int raw_get(struct raw *raw, const char *path, char *data, size_t *length, struct Stat *stat)
{
    if (!begin_call(raw))
        return end_call(raw, ZCONNECTIONLOSS);
    raw->data = data;
    raw->length = *length;
    raw->stat = stat;
    int rc = end_call(raw, zoo_aget(raw->zh, path, 0, on_data, raw));
    *length = raw->length;
    return rc;
}

/* --- two words on a node ------------------------------------------------- */

static unsigned links_of(struct raw *raw)
{
    pthread_mutex_lock(&raw->mutex);
    unsigned links = raw->links;
    pthread_mutex_unlock(&raw->mutex);
    return links;
}

/* By a transaction, which goes to the leader and wants a quorum; it changes nothing. */
static enum raw_answer at_leader(struct raw *raw, const char *whole)
{
    zoo_op_t check;
    int blamed;
    zoo_check_op_init(&check, whole, -1);
    return answer_of(raw_multi(raw, 1, &check, &blamed));
}

static enum raw_answer at_server(struct raw *raw, const char *whole)
{
    struct Stat stat;
    char none;
    size_t length = 0;
    return answer_of(raw_get(raw, whole, &none, &length, &stat));
}

/* What is read behind a transaction shows all that was committed before it, and nobody makes the
 * node of a contender again. So a node that the leader did not have before is the server's alone;
 * and one that the server did not show was there all the time if the leader had it before and has
 * it after. */
enum raw_judgement raw_judge(struct raw *raw, const char *path)
{
    unsigned links = links_of(raw);
    char *whole = raw_path(raw, path);
    enum raw_answer before = whole ? at_leader(raw, whole) : RAW_FAILED;
    enum raw_answer shown = before == RAW_FAILED ? RAW_FAILED : at_server(raw, whole);
    enum raw_judgement judged = RAW_AGREES;
    if (before == RAW_NO_NODE && shown == RAW_OK)
        judged = RAW_GHOST;
    else if (before == RAW_OK && shown == RAW_NO_NODE && at_leader(raw, whole) == RAW_OK)
        judged = RAW_MISSING;
    free(whole);
    return shown == RAW_FAILED || !raw_is_open(raw) || links_of(raw) != links ? RAW_UNDECIDED
                                                                              : judged;
}
