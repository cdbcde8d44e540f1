/* SPDX-License-Identifier: Apache-2.0
 *
 * One zhandle: this file opens and closes it, turns its events into those of the core, and the
 * core's requests into calls of libzookeeper. It frees a handle after zookeeper_close has returned,
 * and with it everything that lost completions would have freed. It makes calls with the client's
 * mutex, except zookeeper_init2 and zookeeper_close. Completions and watches take the mutex.
 * driver.c and service.c call this file. */
#include "handle.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <zklock/zklock.h>

#include "chroot.h"
#include "core/servers.h"
#include "login.h"
#include "make/make.h"

bool zkl_handle_is_awaited(const struct zkl_handle *h)
{
    return h->awaited > 0;
}

/* Keepalives, too, which nobody awaits: they come over a link. */
bool zkl_handle_is_owed(const struct zkl_handle *h)
{
    return zkl_handle_is_awaited(h) || (h->linked && h->calls);
}

struct zkl_handle *zkl_handle_next(const struct zkl_handle *h)
{
    return h->next;
}

/* --- completions, all on libzookeeper's completion thread --------------- */

static void on_void(int rc, const void *data)
{
    struct zkl_reply reply = {.answer = zkl_map_rc(rc), .number = rc};
    zkl_call_leave(zkl_call_enter(data), &reply);
}

static void on_string(int rc, const char *value, const void *data)
{
    (void)value;
    on_void(rc, data);
}

static const char *last_component(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static void copy_stat(struct zkl_reply *reply, const struct Stat *stat)
{
    reply->czxid = stat->czxid;
    reply->node_session = stat->ephemeralOwner;
    reply->ctime_ms = stat->ctime;
    reply->mtime_ms = stat->mtime;
    reply->version = stat->version;
    reply->aversion = stat->aversion;
    reply->node_children = stat->numChildren;
    reply->cversion = stat->cversion;
    reply->pzxid = stat->pzxid;
}

static void on_created(int rc, const char *path, const struct Stat *stat, const void *data)
{
    struct zkl_reply reply = {.answer = zkl_map_rc(rc), .number = rc};
    if (rc == ZOK) {
        reply.name = last_component(path);
        reply.czxid = stat->czxid;
    }
    zkl_call_leave(zkl_call_enter(data), &reply);
}

static void on_created_plain(int rc, const char *path, const void *data)
{
    on_created(rc, path, &(struct Stat){0}, data);
}

static void on_stat(int rc, const struct Stat *stat, const void *data)
{
    struct zkl_reply reply = {.answer = zkl_map_rc(rc), .number = rc};
    if (rc == ZOK)
        copy_stat(&reply, stat);
    zkl_call_leave(zkl_call_enter(data), &reply);
}

static void on_data(int rc, const char *value, int length, const struct Stat *stat,
                    const void *data)
{
    struct zkl_reply reply = {.answer = zkl_map_rc(rc), .number = rc};
    if (rc == ZOK)
        copy_stat(&reply, stat);
    if (rc == ZOK && length > 0) {
        reply.data = value;
        reply.data_size = (size_t)length;
    }
    zkl_call_leave(zkl_call_enter(data), &reply);
}

/* Not the identities, of which digests are as good as passwords to whoever guesses. */
static void on_acl(int rc, struct ACL_vector *acl, struct Stat *stat, const void *data)
{
    struct zkl_reply reply = {.answer = zkl_map_rc(rc), .number = rc};
    char *text = NULL;
    FILE *to = rc == ZOK ? open_memstream(&text, &reply.data_size) : NULL;
    for (int i = 0; to && i < acl->count; i++)
        fprintf(to, "%d %s\n", acl->data[i].perms, acl->data[i].id.scheme);
    bool failed = to && fclose(to) != 0;
    if (rc == ZOK && (!to || failed))
        reply.answer = ZKL_ANSWER_NOMEM;
    else if (rc == ZOK)
        copy_stat(&reply, stat);
    reply.data = text;
    zkl_call_leave(zkl_call_enter(data), &reply);
    free(text);
}

static void on_children(int rc, const struct String_vector *strings, const struct Stat *stat,
                        const void *data)
{
    struct zkl_reply reply = {.answer = zkl_map_rc(rc), .number = rc};
    if (rc == ZOK) {
        reply.children = (const char *const *)strings->data;
        reply.child_count = (size_t)strings->count;
        if (stat)
            copy_stat(&reply, stat);
    }
    zkl_call_leave(zkl_call_enter(data), &reply);
}

static void on_strings(int rc, const struct String_vector *strings, const void *data)
{
    on_children(rc, strings, NULL, data);
}

static void on_transaction(int rc, const void *data)
{
    struct zkl_reply reply = {.answer = zkl_map_rc(rc), .number = rc};
    struct zkl_call *call = zkl_call_enter(data);
    const char *names[ZKL_TRANSACTION_MAX];
    if (rc == ZOK && call->paths) {
        reply.children = names;
        reply.child_count = call->result_count;
        for (size_t i = 0; i < call->result_count; i++)
            names[i] = last_component(call->paths + i * call->path_room);
    }
    if (rc == ZOK && call->stat)
        copy_stat(&reply, call->stat);
    /* The operations before the one that failed have error 0. */
    while (rc != ZOK && reply.failed_check < call->result_count &&
           call->results[reply.failed_check].err == 0)
        reply.failed_check++;
    char *paths = call->paths; /* outlive the call, as the names are in there */
    call->paths = NULL;
    zkl_call_leave(call, &reply);
    free(paths);
}

/* --- watches and session events, on the same thread --------------------- */

static void on_fired(zhandle_t *zh, int type, int state, const char *path, void *context)
{
    struct zkl_handle *h = (struct zkl_handle *)zoo_get_context(zh);
    struct zkl_driver *d = h->driver;
    (void)state;
    (void)path;
    if (type == ZOO_SESSION_EVENT || type == ZOO_NOTWATCHING_EVENT)
        return; /* libzookeeper notifies the session's own watcher too; watches stay */
    zkl_driver_lock(d);
    if (h == d->current)
        zkl_core_fired(&d->core, zkl_clock_now(), (uintptr_t)context,
                       type == ZOO_DELETED_EVENT ? ZKL_FIRED_DELETED : ZKL_FIRED_OTHER);
    zkl_driver_unlock(d);
}

static void session_event(struct zkl_handle *h, enum zkl_session_event_type type)
{
    struct zkl_session_event event = {.type = type, .now = zkl_clock_now()};
    if (type == ZKL_SE_UP || type == ZKL_SE_PROBE_UP) {
        event.session = zoo_client_id(h->zh)->client_id;
        event.unprovable = zkl_make_is_other(event.session);
        event.timeout_ms = zoo_recv_timeout(h->zh);
        event.opened_boot_ns = h->opened_boot_ns;
        event.first = h->links == 1;
    }
    zkl_core_session_event(&h->driver->core, &event);
}

static void probe_event(struct zkl_handle *h, enum zkl_link_event what)
{
    struct zkl_driver *d = h->driver;
    if (what == ZKL_LINK_UP) {
        session_event(h, ZKL_SE_PROBE_UP);
        return;
    }
    session_event(h, ZKL_SE_PROBE_DOWN);
    if (what != ZKL_LINK_DOWN && h == d->probe) {
        /* This one is of no use any more: another. */
        zkl_handle_bury(d, &d->probe);
        d->open_probe = true;
        d->open_not_before = zkl_clock_mono_ns() + ZKL_OPEN_RETRY_MS * INT64_C(1000000);
        zkl_driver_kick(d);
    }
}

static void link_event(struct zkl_handle *h, enum zkl_link_event what)
{
    static const enum zkl_session_event_type types[] = {
        [ZKL_LINK_UP] = ZKL_SE_UP,
        [ZKL_LINK_DOWN] = ZKL_SE_DOWN,
        [ZKL_LINK_EXPIRED] = ZKL_SE_EXPIRED,
        [ZKL_LINK_AUTH_FAILED] = ZKL_SE_AUTH_FAILED,
    };
    if (h == h->driver->current)
        session_event(h, types[what]);
    else if (h == h->driver->probe)
        probe_event(h, what);
    if (what == ZKL_LINK_UP && h == h->driver->current)
        zkl_ensemble_ask(h);
}

static void on_auth(int rc, const void *data);

static int add_credential(struct zkl_handle *h)
{
    const struct zkl_driver_config *config = &h->driver->config;
    atomic_store(&h->auth, ZKL_AUTH_DUE);
    int rc = zoo_add_auth(h->zh, config->auth_scheme, config->auth_credential,
                          (int)strlen(config->auth_credential), on_auth, h);
    if (rc != ZOK)
        atomic_store(&h->auth, ZKL_AUTH_UNHEARD);
    return rc;
}

/* libzookeeper sends the credential anew over each link, but reports only one answer. Adding the
 * same credential again makes it report another. Each addition stays in its list, so this is
 * bounded. False: the client will not learn what the server thinks of the credential. */
static bool ask_again(struct zkl_handle *h)
{
    if (h->auth_asked == ZKL_AUTH_ASKED_MAX)
        return false;
    h->auth_asked++;
    /* the end of a link is reported anyway */
    return zkl_map_refusal(add_credential(h)) != ZKL_ANSWER_NOMEM;
}

static void notify_link(struct zkl_handle *h, enum zkl_link_event what)
{
    bool was_held = h->up_held;
    int auth = atomic_load(&h->auth);
    h->up_held = what == ZKL_LINK_UP && auth != ZKL_AUTH_FINE;
    if (h->up_held && auth == ZKL_AUTH_UNHEARD)
        h->up_held = ask_again(h);
    if (h->up_held || (was_held && what == ZKL_LINK_DOWN))
        return;
    link_event(h, what);
}

static void note_link(struct zkl_handle *h, enum zkl_link_event what)
{
    h->linked = what == ZKL_LINK_UP;
    if (!h->linked) {
        zkl_resolver_want(h->driver);
        zkl_driver_kick(h->driver); /* there may be newer addresses already */
    }
    if (h->buried)
        return;
    if (h->ready) {
        notify_link(h, what);
    } else {
        h->was_up = h->was_up || h->linked;
        h->early = what;
    }
}

void zkl_handle_look(struct zkl_handle *h)
{
    if (h->ready && !h->told_failed && zoo_state(h->zh) == ZOO_AUTH_FAILED_STATE) {
        h->told_failed = true;
        note_link(h, ZKL_LINK_AUTH_FAILED);
    }
}

static void on_session(zhandle_t *zh, int type, int state, const char *path, void *context)
{
    struct zkl_handle *h = context;
    struct zkl_driver *d = h->driver;
    (void)path;
    if (type != ZOO_SESSION_EVENT)
        return;
    zkl_driver_lock(d);
    if (!h->zh)
        h->zh = zh; /* zookeeper_init2 has not returned yet */
    enum zkl_link_event what = zkl_map_state(state);
    h->links += what == ZKL_LINK_UP; /* also one that is over already: the next is not the first */
    /* libzookeeper does not report a link that it closed to move to other addresses, and on_move can
     * lack memory: this may be that link, or the one before it. */
    if (what == ZKL_LINK_UP && zoo_state(zh) != ZOO_CONNECTED_STATE)
        what = ZKL_LINK_DOWN;
    if (what == ZKL_LINK_UP && h->linked)
        note_link(h, ZKL_LINK_DOWN);
    note_link(h, what);
    zkl_driver_unlock(d);
}

/* A link that ended without a report: the report. */
static void on_move(int rc, const struct Stat *stat, const void *data)
{
    struct zkl_handle *h = (struct zkl_handle *)data;
    (void)rc;
    (void)stat;
    zkl_driver_lock(h->driver);
    if (atomic_exchange(&h->io.moved, false) && h->linked)
        note_link(h, ZKL_LINK_DOWN);
    zkl_driver_unlock(h->driver);
}

/* --- opening and closing ------------------------------------------------ */

static void credential_is_fine(struct zkl_handle *h)
{
    zkl_driver_lock(h->driver);
    atomic_store(&h->auth, ZKL_AUTH_FINE);
    if (h->up_held && !h->buried)
        notify_link(h, ZKL_LINK_UP);
    zkl_driver_unlock(h->driver);
}

/* On libzookeeper's I/O thread. If the link breaks first, libzookeeper holds a lock of its own, so
 * this must not take ours. A refusal also comes as a session event. */
static void on_auth(int rc, const void *data)
{
    struct zkl_handle *h = (struct zkl_handle *)data;
    if (rc == ZOK)
        credential_is_fine(h);
    else if (rc != ZAUTHFAILED)
        atomic_store(&h->auth, ZKL_AUTH_UNHEARD);
}

static int open_error(int error)
{
    return error == ENOMEM || error == EMFILE || error == ENFILE || error == EAGAIN
               ? ZKL_ESYSTEM
               : ZKL_EBADSERVERS;
}

/* Ready: from now on its events count. The credential is queued before any request of ours. */
static int set_up(struct zkl_driver *d, struct zkl_handle *h)
{
    int rc = ZOK;
    /* Else libzookeeper reads the addresses again before every wait for its socket. */
    zoo_set_servers_resolution_delay(h->zh, -1);
    if (d->config.auth_scheme)
        rc = add_credential(h);
    if (rc != ZOK)
        return ZKL_ESYSTEM;
    h->ready = true;
    if (h->was_up)
        notify_link(h, ZKL_LINK_UP);
    if (h->was_up && h->early != ZKL_LINK_UP && !h->buried)
        notify_link(h, h->early);
    return 0;
}

static void put_in_graveyard(struct zkl_driver *d, struct zkl_handle *h)
{
    h->next = d->graveyard;
    d->graveyard = h;
}

int zkl_handle_open(struct zkl_driver *d, bool probe)
{
    /* libzookeeper makes two threads, on one of ours, and aborts the process if it cannot. This check
     * hopes that no other thread takes them before libzookeeper does. */
    int descriptor;
    if (!zkl_thread_rehearse(3) ||
        (d->config.security.tls && !zkl_secure_descriptors_do(&descriptor)))
        return ZKL_ESYSTEM;
    struct zkl_handle *h = calloc(1, sizeof *h);
    if (!h)
        return ZKL_ENOMEM;
    h->driver = d;
    h->io.on_move = on_move;
    h->io.handle = h;
    zkl_driver_lock(d);
    struct zkl_handle **slot = probe ? &d->probe : &d->current;
    bool *wanted = probe ? &d->open_probe : &d->open_current;
    char *addresses = strdup(d->resolver.addresses);
    h->serial = d->resolver.serial;
    if (d->closing || !*wanted || !addresses) { /* by now: no thread would close the handle */
        int rc = d->closing ? ZKL_ECLOSED : addresses ? 0 : ZKL_ENOMEM;
        zkl_driver_unlock(d);
        free(addresses);
        free(h);
        return rc;
    }
    assert(!*slot);
    *slot = h;
    *wanted = false;
    h->opening = true;
    zkl_driver_unlock(d);

    h->opened_boot_ns = zkl_clock_boot_ns();
    zhandle_t *zh = zkl_secure_init(h, addresses, on_session);
    int error = errno;

    zkl_driver_lock(d);
    int rc = 0;
    h->zh = zh;
    h->opening = false;
    if (h->buried) {
        put_in_graveyard(d, h); /* dropped meanwhile: its dropper decides what comes next */
    } else {
        rc = zh ? set_up(d, h) : open_error(error);
        if (rc != 0 && !h->buried) {
            zkl_handle_bury(d, slot);
            *wanted = true;
        }
    }
    zkl_driver_unlock(d);
    return rc;
}

void zkl_handle_bury(struct zkl_driver *d, struct zkl_handle **slot)
{
    struct zkl_handle *h = *slot;
    if (!h)
        return;
    *slot = NULL;
    h->buried = true;
    if (!h->opening) /* else its opener does that */
        put_in_graveyard(d, h);
}

/* zookeeper_close informs the server only over a link. If the request left, it waits 1.5 s for the
 * server to hang up, and returns ZOK in either case. The time that it took is the only sign of what
 * happened. A server that dies just then hangs up as well. */
#define CLOSE_WAITS_MS 1500

static bool close_session(struct zkl_handle *h)
{
    zhandle_t *zh = h->zh;
    bool nothing = zoo_client_id(zh)->client_id == 0;
    bool linked = zoo_state(zh) == ZOO_CONNECTED_STATE;
    bool expired = zoo_state(zh) == ZOO_EXPIRED_SESSION_STATE;
    int64_t start = zkl_clock_mono_ns();
    bool sent = zkl_secure_close(h) == ZOK;
    int64_t took_ms = (zkl_clock_mono_ns() - start) / 1000000;
    return nothing || expired || (linked && sent && took_ms < CLOSE_WAITS_MS - 50);
}

void zkl_handle_close(struct zkl_driver *d, struct zkl_handle *h)
{
    zkl_driver_lock(d);
    bool is_made = h->zh != NULL;
    zkl_driver_unlock(d);
    bool confirmed = !is_made || close_session(h);
    /* Both of its threads are joined: no other thread knows these any more. */
    zkl_io_end(&h->io);
    zkl_driver_lock(d);
    while (h->calls)
        zkl_call_free(h->calls);
    if (!confirmed)
        d->end_unconfirmed = true; /* counts for the last one, when the client is closed */
    zkl_driver_unlock(d);
    zkl_login_free(h->login);
    free(h);
}

/* --- going to other addresses ------------------------------------------- */

void zkl_handle_follow(struct zkl_driver *d, struct zkl_handle *h)
{
    if (h && h->ready && h->serial != d->resolver.serial &&
        zkl_io_offer(&h->io, d->resolver.addresses))
        h->serial = d->resolver.serial;
}

/* Reads the socket: zoo_get_current_server has one buffer for all threads (ZOOKEEPER-4810), and
 * takes a lock that libzookeeper keeps while it looks addresses up. Numeric only: no name is looked
 * up. */
bool zkl_handle_server(const struct zkl_handle *h, char out[ZKL_SERVER_TEXT_SIZE])
{
    char address[INET6_ADDRSTRLEN + IF_NAMESIZE], port[8];
    struct sockaddr_storage peer = {0};
    socklen_t length = sizeof peer;
    if (!h || !h->ready || !h->linked ||
        !zookeeper_get_connected_host(h->zh, (struct sockaddr *)&peer, &length) ||
        getnameinfo((struct sockaddr *)&peer, length, address, sizeof address, port, sizeof port,
                    NI_NUMERICHOST | NI_NUMERICSERV) != 0)
        return false;
    bool in_brackets = peer.ss_family == AF_INET6;
    snprintf(out, ZKL_SERVER_TEXT_SIZE, "%s%s%s:%s", in_brackets ? "[" : "", address,
             in_brackets ? "]" : "", port);
    return true;
}

/* --- leaving a server ----------------------------------------------------- */

static bool is_peer(int fd, const struct sockaddr_storage *peer, socklen_t length)
{
    struct sockaddr_storage its = {0};
    socklen_t its_length = sizeof its;
    return getpeername(fd, (struct sockaddr *)&its, &its_length) == 0 && its_length == length &&
           memcmp(&its, peer, length) == 0;
}

/* The number may be another file's by now, so a copy is looked at. No copy is made of anything
 * else: the end of a file's copy ends all record locks that the process has on that file. */
static void shut_down_to(int fd, const struct sockaddr_storage *peer, socklen_t length)
{
    int copy = is_peer(fd, peer, length) ? fcntl(fd, F_DUPFD_CLOEXEC, 0) : -1;
    if (copy < 0)
        return;
    if (is_peer(copy, peer, length))
        shutdown(copy, SHUT_RDWR);
    close(copy);
}

/* libzookeeper has no call for it and tells nobody which descriptor its socket has. So every
 * connection of this process to that address and port is ended: those of other clients are to the
 * same server, and are made again as well. */
void zkl_handle_leave(const struct zkl_handle *h)
{
    struct sockaddr_storage peer = {0};
    socklen_t length = sizeof peer;
    if (!h || !h->ready || !h->linked ||
        !zookeeper_get_connected_host(h->zh, (struct sockaddr *)&peer, &length))
        return;
    DIR *descriptors = opendir("/proc/self/fd");
    if (!descriptors)
        return;
    for (const struct dirent *entry; (entry = readdir(descriptors));)
        shut_down_to(atoi(entry->d_name), &peer, length);
    closedir(descriptors);
}

/* --- sending ------------------------------------------------------------ */

static int send_node(struct zkl_handle *h, struct zkl_call *call, const struct zkl_request *r,
                     int mode)
{
    const struct ACL_vector *acl = zkl_handle_acl(h->driver);
    const char *text = r->data ? r->data : "";
    int length = (int)strlen(text);
    return r->plain ? zoo_acreate(h->zh, r->path, text, length, acl, mode, on_created_plain, call)
                    : zoo_acreate2(h->zh, r->path, text, length, acl, mode, on_created, call);
}

/* The checks, any version (a revocation's data must not get in the way), and room for one more. */
static zoo_op_t *check_ops(struct zkl_call *call, const struct zkl_request *r)
{
    zoo_op_t *ops = calloc(r->check_count + 1, sizeof *ops);
    call->results = calloc(r->check_count + 1, sizeof *call->results);
    for (size_t i = 0; ops && i < r->check_count; i++)
        zoo_check_op_init(&ops[i], r->checks[i], -1);
    return ops;
}

static int send_transaction(struct zkl_call *call, zoo_op_t *ops, size_t count)
{
    int rc = ZSYSTEMERROR;
    call->result_count = count;
    if (ops && call->results)
        rc = zkl_call_multi(call, (int)count, ops, on_transaction);
    free(ops);
    return rc;
}

static int send_create_downgraded(struct zkl_handle *h, struct zkl_call *call,
                                  const struct zkl_request *r)
{
    zoo_op_t *ops = check_ops(call, r);
    if (ops)
        zoo_create_op_init(&ops[r->check_count], r->path, r->data, (int)strlen(r->data),
                           zkl_handle_acl(h->driver), ZOO_EPHEMERAL, NULL, 0);
    return send_transaction(call, ops, r->check_count + 1);
}

/* The size of the longest path with its sequence number. */
static size_t room_of_paths(const struct zkl_request *r)
{
    size_t room = 0;
    for (size_t i = 0; i < r->check_count; i++) {
        size_t length = strlen(r->checks[i]);
        room = length > room ? length : room;
    }
    return room + sizeof "-2147483648";
}

static int send_create_all(struct zkl_handle *h, struct zkl_call *call, const struct zkl_request *r)
{
    zoo_op_t *ops = calloc(r->check_count, sizeof *ops);
    call->results = calloc(r->check_count, sizeof *call->results);
    call->path_room = room_of_paths(r);
    call->paths = calloc(r->check_count, call->path_room);
    if (!call->paths) {
        free(ops);
        return ZSYSTEMERROR;
    }
    for (size_t i = 0; ops && i < r->check_count; i++) {
        if (!r->texts[i])
            zoo_delete_op_init(&ops[i], r->checks[i], -1);
        else
            zoo_create_op_init(&ops[i], r->checks[i], r->texts[i], (int)strlen(r->texts[i]),
                               zkl_handle_acl(h->driver), ZOO_EPHEMERAL_SEQUENTIAL,
                               call->paths + i * call->path_room, (int)call->path_room);
    }
    return send_transaction(call, ops, r->check_count);
}

static int send_delete_all(struct zkl_call *call, const struct zkl_request *r)
{
    zoo_op_t *ops = calloc(r->check_count, sizeof *ops);
    call->results = calloc(r->check_count, sizeof *call->results);
    for (size_t i = 0; ops && i < r->check_count; i++)
        zoo_delete_op_init(&ops[i], r->checks[i], -1);
    return send_transaction(call, ops, r->check_count);
}

static void part_op(struct zkl_call *call, const struct zkl_part *part, zoo_op_t *op)
{
    const char *data = part->data ? part->data : "";
    int length = (int)strlen(data);
    switch (part->what) {
    case ZKL_PART_CHECK:
        zoo_check_op_init(op, part->path, part->version);
        break;
    case ZKL_PART_MAKE:
        zoo_create_op_init(op, part->path, data, length, zkl_handle_acl(call->handle->driver), 0,
                           NULL, 0);
        break;
    case ZKL_PART_SET:
        zoo_set_op_init(op, part->path, data, length, part->version, call->stat);
        break;
    case ZKL_PART_DELETE:
        zoo_delete_op_init(op, part->path, part->version);
        break;
    }
}

static int send_parts(struct zkl_call *call, const struct zkl_request *r)
{
    zoo_op_t *ops = calloc(r->part_count, sizeof *ops);
    call->results = calloc(r->part_count, sizeof *call->results);
    call->stat = calloc(1, sizeof *call->stat);
    for (size_t i = 0; ops && call->stat && i < r->part_count; i++)
        part_op(call, &r->parts[i], &ops[i]);
    if (call->stat)
        return send_transaction(call, ops, r->part_count);
    free(ops);
    return ZSYSTEMERROR;
}

static int send_heartbeat(struct zkl_call *call, const struct zkl_request *r)
{
    return send_transaction(call, check_ops(call, r), r->check_count);
}

static int send_list(struct zkl_handle *h, struct zkl_call *call, const struct zkl_request *r)
{
    return r->flag ? zoo_aget_children2(h->zh, r->path, 0, on_children, call)
                   : zoo_aget_children(h->zh, r->path, 0, on_strings, call);
}

static int send_list_lock_path(struct zkl_handle *h, struct zkl_call *call,
                               const struct zkl_request *r)
{
    return zoo_awget_children2(h->zh, r->path, r->watch_id ? on_fired : NULL,
                               (void *)(uintptr_t)r->watch_id, on_children, call);
}

static int send_unwatch(struct zkl_handle *h, struct zkl_call *call, const struct zkl_request *r)
{
    /* The "all" form: the other one leaves the watch on the server. The prototype asks for a
     * pointer to the completion's type but means the completion. */
    union {
        void_completion_t function;
        void_completion_t *argument;
    } completion = {.function = on_void};
    return zoo_aremove_all_watches(h->zh, r->path, r->flag ? ZWATCHTYPE_CHILD : ZWATCHTYPE_DATA, 0,
                                   completion.argument, call);
}

static int wanted_version(const struct zkl_request *r)
{
    return r->flag ? r->version : -1;
}

static int send_one(struct zkl_handle *h, struct zkl_call *call, const struct zkl_request *r)
{
    switch (r->kind) {
    case ZKL_REQ_CREATE:
        return r->check_count > 0 ? send_create_downgraded(h, call, r)
                                  : send_node(h, call, r, ZOO_EPHEMERAL_SEQUENTIAL);
    case ZKL_REQ_MAKE:
        return send_node(h, call, r, r->flag ? ZOO_PERSISTENT : ZOO_CONTAINER);
    case ZKL_REQ_LIST:
        return send_list(h, call, r);
    case ZKL_REQ_LIST_LOCK_PATH:
        return send_list_lock_path(h, call, r);
    case ZKL_REQ_SYNC:
        return zoo_async(h->zh, r->path, on_string, call);
    case ZKL_REQ_STAT:
    case ZKL_REQ_KEEPALIVE:
        return zoo_aexists(h->zh, r->path, 0, on_stat, call);
    case ZKL_REQ_GET:
        return zoo_awget(h->zh, r->path, NULL, NULL, on_data, call);
    case ZKL_REQ_SET:
        return zoo_aset(h->zh, r->path, r->data, (int)strlen(r->data), wanted_version(r), on_stat,
                        call);
    case ZKL_REQ_WATCH:
        return zoo_awget(h->zh, r->path, on_fired, (void *)(uintptr_t)r->watch_id, on_data, call);
    case ZKL_REQ_UNWATCH:
        return send_unwatch(h, call, r);
    case ZKL_REQ_DELETE:
        return zoo_adelete(h->zh, r->path, wanted_version(r), on_void, call);
    case ZKL_REQ_CREATE_ALL:
        return send_create_all(h, call, r);
    case ZKL_REQ_DELETE_ALL:
        return send_delete_all(call, r);
    case ZKL_REQ_CHECK_ALL:
        return send_heartbeat(call, r);
    case ZKL_REQ_RENEW:
        return zkl_renew_start(call, r->path);
    case ZKL_REQ_ACL:
        return zoo_aget_acl(h->zh, r->path, on_acl, call);
    case ZKL_REQ_PARTS:
        return send_parts(call, r);
    case ZKL_REQUEST_KINDS:
        break;
    }
    return ZBADARGUMENTS;
}

static int send_below(const char *chroot, struct zkl_call *call, const struct zkl_request *r)
{
    struct zkl_rooted rooted;
    if (chroot[0] == '\0')
        return send_one(call->handle, call, r);
    if (!zkl_chroot_begin(&rooted, chroot, r))
        return ZSYSTEMERROR;
    int rc = send_one(call->handle, call, &rooted.request);
    zkl_chroot_end(&rooted);
    return rc;
}

enum zkl_answer zkl_handle_send(struct zkl_handle *h, const struct zkl_request *request)
{
    assert(zkl_driver_is_locked(h->driver));
    if (!h->ready)
        return ZKL_ANSWER_LINK;
    struct zkl_call *call = zkl_call_new(h, request);
    if (!call)
        return ZKL_ANSWER_NOMEM;
    int rc = send_below(h->driver->config.chroot, call, request);
    if (rc != ZOK && !zkl_call_is_kept(call, rc))
        zkl_call_free(call);
    return zkl_handle_refusal(h, rc);
}

enum zkl_answer zkl_handle_port_send(struct zkl_port *port, const struct zkl_request *request)
{
    struct zkl_handle *h = zkl_driver_of(port)->current;
    return h ? zkl_handle_send(h, request) : ZKL_ANSWER_LINK;
}
