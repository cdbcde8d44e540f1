/* SPDX-License-Identifier: Apache-2.0 */
#include "wire.h"

#include "jute.h"
#include "tool/net.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FRAME_MAX (4 << 20)
#define KILL_NAP_MS 5
#define KILL_TRY_MS 5000 /* another one follows */
#define KILL_SESSION_MS 1000

enum opcode {
    OP_CREATE = 1,
    OP_DELETE = 2,
    OP_EXISTS = 3,
    OP_GET = 4,
    OP_SET = 5,
    OP_GET_ACL = 6,
    OP_SET_ACL = 7,
    OP_CHILDREN = 8,
    OP_SYNC = 9,
    OP_PING = 11,
    OP_CREATE_CONTAINER = 19,
    OP_AUTH = 100,
    OP_CLOSE = -11
};

enum special_xid { XID_EVENT = -1, XID_PING = -2, XID_AUTH = -4 };

#define EVENTS_MAX 64

struct event {
    int32_t type;
    char path[256];
};

struct wire {
    int fd;
    int32_t xid;
    int32_t session_ms;
    int64_t session;
    int64_t zxid;
    char password[WIRE_PASSWORD];
    struct event events[EVENTS_MAX]; /* that came while an answer was awaited; more are lost */
    size_t event_count;
};

/* --- frames ----------------------------------------------------------------------------------- */

/* The first four bytes are the length, filled in here. Frees. */
static int send_frame(int fd, struct jute_out *o, int64_t deadline_ms)
{
    int rc = WIRE_IO;

    if (!o->failed) {
        bytes_put32(o->data, (int32_t)(o->n - 4));
        rc = net_send(fd, o->data, o->n, deadline_ms) == 0 ? 0 : WIRE_IO;
    }
    free(o->data);
    return rc;
}

static int receive_frame(int fd, struct jute_in *in, int64_t deadline_ms)
{
    unsigned char head[4];
    int32_t n;

    memset(in, 0, sizeof *in);
    if (net_recv(fd, head, sizeof head, deadline_ms) != 0)
        return WIRE_IO;
    n = bytes_get32(head);
    if (n < 0 || n > FRAME_MAX || (in->data = malloc((size_t)n + 1)) == NULL)
        return WIRE_IO;
    in->n = (size_t)n;
    if (net_recv(fd, in->data, in->n, deadline_ms) == 0)
        return 0;
    free(in->data);
    in->data = NULL;
    return WIRE_IO;
}

static void keep_event(struct wire *w, struct jute_in *in)
{
    struct event *e = &w->events[w->event_count];

    if (w->event_count == EVENTS_MAX)
        return;
    jute_take(in, "iIt", &e->type, e->path, sizeof e->path); /* between them the session's state */
    w->event_count++;
}

/* Receive the answer to xid, or the next event. Events that come before are kept, answers without a
 * request are skipped. Returns the error of its header. */
static int receive_answer(struct wire *w, int32_t xid, struct jute_in *in, int64_t deadline_ms)
{
    for (;;) {
        int32_t got, err;
        int64_t zxid;
        if (receive_frame(w->fd, in, deadline_ms) != 0)
            return WIRE_IO;
        jute_take(in, "ili", &got, &zxid, &err);
        if (zxid > w->zxid)
            w->zxid = zxid;
        if (got == XID_EVENT)
            keep_event(w, in);
        if (got == xid)
            return in->failed ? WIRE_IO : err;
        free(in->data);
        in->data = NULL;
    }
}

/* Send a request with these fields, as the next one or, below 0, with this xid, and wait for its answer. The caller must
 * call done. */
static int call_as(struct wire *w, int32_t xid, struct jute_in *in, enum opcode op,
                   const char *fields, va_list args)
{
    int64_t deadline_ms = net_now_ms() + WIRE_TIMEOUT_MS;
    struct jute_out o = {0};

    memset(in, 0, sizeof *in);
    if (xid >= 0)
        xid = ++w->xid;
    jute_put(&o, "iii", 0, xid, op);
    jute_vput(&o, fields, args);
    if (send_frame(w->fd, &o, deadline_ms) != 0)
        return WIRE_IO;
    return receive_answer(w, xid, in, deadline_ms);
}

static int call(struct wire *w, struct jute_in *in, enum opcode op, const char *fields, ...)
{
    va_list args;

    va_start(args, fields);
    int rc = call_as(w, 0, in, op, fields, args);
    va_end(args);
    return rc;
}

static int done(struct jute_in *in, int rc)
{
    free(in->data);
    return rc == 0 && in->failed ? WIRE_IO : rc;
}

/* The same for requests whose answer is the error alone. */
static int call_simply(struct wire *w, int32_t xid, enum opcode op, const char *fields, ...)
{
    struct jute_in in;
    va_list args;

    va_start(args, fields);
    int rc = call_as(w, xid, &in, op, fields, args);
    va_end(args);
    free(in.data);
    return rc;
}

/* --- sessions --------------------------------------------------------------------------------- */

/* No protocol version; a last zxid of 0 is never ahead of the server; read-only servers will not do. */
static struct jute_out connect_request(int session_ms, int64_t session, const char *password)
{
    struct jute_out o = {0};

    jute_put(&o, "iililpb", 0, 0, INT64_C(0), session_ms, session, password, false);
    return o;
}

static int read_connect_answer(struct wire *w, int64_t deadline_ms)
{
    struct jute_in in;

    if (receive_frame(w->fd, &in, deadline_ms) != 0)
        return WIRE_IO;
    jute_take(&in, "Iilp", &w->session_ms, &w->session, w->password);
    free(in.data);
    if (in.failed)
        return WIRE_IO;
    return w->session_ms > 0 ? 0 : WIRE_SESSIONEXPIRED;
}

static int start_session(struct wire *w, const char *host, int port, struct jute_out *o)
{
    int64_t deadline_ms = net_now_ms() + WIRE_TIMEOUT_MS;

    w->fd = net_connect(host, port, deadline_ms);
    if (w->fd < 0) {
        free(o->data);
        return WIRE_IO;
    }
    if (send_frame(w->fd, o, deadline_ms) != 0)
        return WIRE_IO;
    return read_connect_answer(w, deadline_ms);
}

int wire_reopen(struct wire **wire, const char *host, int port, int session_ms, int64_t session,
                const char password[WIRE_PASSWORD])
{
    struct jute_out o;
    struct wire *w = calloc(1, sizeof *w);
    int rc;

    if (w == NULL)
        return WIRE_IO;
    o = connect_request(session_ms, session, password);
    rc = start_session(w, host, port, &o);
    if (rc != 0) {
        wire_abandon(w);
        return rc;
    }
    *wire = w;
    return 0;
}

int wire_open(struct wire **wire, const char *host, int port, int session_ms)
{
    static const char none[WIRE_PASSWORD];

    return wire_reopen(wire, host, port, session_ms, 0, none);
}

void wire_abandon(struct wire *wire)
{
    if (wire == NULL)
        return;
    if (wire->fd >= 0)
        close(wire->fd);
    free(wire);
}

void wire_close(struct wire *wire)
{
    if (wire == NULL)
        return;
    call_simply(wire, 0, OP_CLOSE, "");
    wire_abandon(wire);
}

int64_t wire_session(const struct wire *wire)
{
    return wire->session;
}

const char *wire_password(const struct wire *wire)
{
    return wire->password;
}

int wire_session_ms(const struct wire *wire)
{
    return wire->session_ms;
}

int64_t wire_last_zxid(const struct wire *wire)
{
    return wire->zxid;
}

/* --- requests --------------------------------------------------------------------------------- */

int wire_create_acl(struct wire *wire, const char *path, const char *data, int flags,
                    const struct wire_acl *acl, size_t acl_count, char *made, size_t size)
{
    static const struct wire_acl open_acl = {WIRE_PERM_ALL, "world", "anyone"};
    enum opcode op = flags == WIRE_CONTAINER ? OP_CREATE_CONTAINER : OP_CREATE;
    struct jute_in in;
    int rc = call(wire, &in, op, "ttai", path, data != NULL ? data : "",
                  acl != NULL ? acl : &open_acl, acl != NULL ? acl_count : (size_t)1, flags);

    if (rc == 0)
        jute_take(&in, "t", made, size);
    return done(&in, rc);
}

int wire_create(struct wire *wire, const char *path, const char *data, int flags, char *made,
                size_t size)
{
    return wire_create_acl(wire, path, data, flags, NULL, 0, made, size);
}

int wire_delete(struct wire *wire, const char *path, int32_t version)
{
    return call_simply(wire, 0, OP_DELETE, "ti", path, version);
}

static void take_stat(struct jute_in *in, struct wire_stat *stat)
{
    struct wire_stat unwanted, *s = stat != NULL ? stat : &unwanted;

    jute_take(in, "lllliiiliil", &s->czxid, &s->mzxid, &s->ctime_ms, &s->mtime_ms, &s->version,
              &s->cversion, &s->aversion, &s->ephemeral_owner, &s->data_length, &s->children,
              &s->pzxid);
}

static int exists(struct wire *wire, const char *path, bool watch, struct wire_stat *stat)
{
    struct jute_in in;
    int rc = call(wire, &in, OP_EXISTS, "tb", path, watch);

    if (rc == 0)
        take_stat(&in, stat);
    return done(&in, rc);
}

int wire_exists(struct wire *wire, const char *path, struct wire_stat *stat)
{
    return exists(wire, path, false, stat);
}

int wire_watch(struct wire *wire, const char *path)
{
    int rc = exists(wire, path, true, NULL);

    return rc == WIRE_NONODE ? 0 : rc;
}

int wire_wait_event(struct wire *wire, int timeout_ms, char *path, size_t size)
{
    struct jute_in in = {0};
    struct event first;

    if (wire->event_count == 0) {
        int rc = receive_answer(wire, XID_EVENT, &in, net_now_ms() + timeout_ms);
        free(in.data);
        if (rc == WIRE_IO || wire->event_count == 0)
            return WIRE_IO;
    }
    first = wire->events[0];
    memmove(wire->events, wire->events + 1, --wire->event_count * sizeof first);
    if (path != NULL)
        snprintf(path, size, "%s", first.path);
    return first.type;
}

int wire_get(struct wire *wire, const char *path, char *data, size_t size, struct wire_stat *stat)
{
    struct jute_in in;
    int rc = call(wire, &in, OP_GET, "tb", path, false);

    if (rc == 0) {
        jute_take(&in, "t", data, size);
        take_stat(&in, stat);
    }
    return done(&in, rc);
}

int wire_set(struct wire *wire, const char *path, const char *data, int32_t version)
{
    return call_simply(wire, 0, OP_SET, "tti", path, data, version);
}

static void take_acl(struct jute_in *in, char *text, size_t size)
{
    int32_t n = jute_int(in);
    size_t used = 0;

    if (size > 0)
        text[0] = '\0';
    for (int32_t i = 0; i < n && !in->failed; i++) {
        char scheme[64], id[256];
        int32_t perms;
        jute_take(in, "itt", &perms, scheme, sizeof scheme, id, sizeof id);
        if (used < size)
            used += (size_t)snprintf(text + used, size - used, "%s%d:%s:%s", i > 0 ? "," : "",
                                     perms, scheme, id);
    }
}

int wire_get_acl(struct wire *wire, const char *path, char *text, size_t size)
{
    struct jute_in in;
    int rc = call(wire, &in, OP_GET_ACL, "t", path);

    if (rc == 0)
        take_acl(&in, text, size);
    return done(&in, rc);
}

int wire_set_acl(struct wire *wire, const char *path, const struct wire_acl *acl, size_t acl_count)
{
    return call_simply(wire, 0, OP_SET_ACL, "tai", path, acl, acl_count, -1);
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void take_names(struct jute_in *in, struct wire_names *names)
{
    int32_t n = jute_int(in);

    if (n < 0 || (size_t)n > in->n)
        in->failed = true;
    names->name = in->failed ? NULL : calloc((size_t)n + 1, sizeof(char *));
    for (int32_t i = 0; names->name != NULL && i < n && !in->failed; i++) {
        unsigned char *data;
        size_t length = jute_buffer(in, &data);
        names->name[names->n] = data != NULL ? strndup((const char *)data, length) : NULL;
        if (names->name[names->n] != NULL)
            names->n++;
    }
    if (names->n > 1)
        qsort(names->name, names->n, sizeof(char *), by_text);
}

int wire_children(struct wire *wire, const char *path, struct wire_names *names)
{
    struct jute_in in;
    int rc = call(wire, &in, OP_CHILDREN, "tb", path, false);

    memset(names, 0, sizeof *names);
    if (rc == 0)
        take_names(&in, names);
    rc = done(&in, rc);
    if (rc != 0)
        wire_names_free(names);
    return rc;
}

void wire_names_free(struct wire_names *names)
{
    for (size_t i = 0; i < names->n; i++)
        free(names->name[i]);
    free(names->name);
    memset(names, 0, sizeof *names);
}

int wire_ephemerals(struct wire *wire, const char *path)
{
    struct wire_names names = {0};
    struct wire_stat stat = {0};
    char child[400];
    int n = 0, rc = wire_exists(wire, path, &stat);

    if (rc != 0 || stat.ephemeral_owner != 0)
        return rc == WIRE_NONODE ? 0 : rc != 0 ? rc : 1;
    rc = wire_children(wire, path, &names);
    for (size_t i = 0; rc == 0 && i < names.n; i++) {
        snprintf(child, sizeof child, "%s/%s", path[1] == '\0' ? "" : path, names.name[i]);
        int below = wire_ephemerals(wire, child);
        rc = below < 0 ? below : 0;
        n += below;
    }
    wire_names_free(&names);
    return rc == 0 ? n : rc == WIRE_NONODE ? 0 : rc;
}

void wire_print_tree(struct wire *wire, const char *path)
{
    struct wire_names names = {0};
    struct wire_stat stat = {0};
    char data[100] = "", child[400];

    if (wire_get(wire, path, data, sizeof data, &stat) != 0)
        return;
    fprintf(stderr, "  %s czxid %llx of session %llx: %s\n", path, (long long)stat.czxid,
            (long long)stat.ephemeral_owner, data);
    if (wire_children(wire, path, &names) == 0) {
        for (size_t i = 0; i < names.n; i++) {
            snprintf(child, sizeof child, "%s/%s", path, names.name[i]);
            wire_print_tree(wire, child);
        }
    }
    wire_names_free(&names);
}

int wire_count(struct wire *wire, const char *path)
{
    struct wire_names names;
    int rc = wire_children(wire, path, &names);

    if (rc == 0) {
        rc = (int)names.n;
        wire_names_free(&names);
    }
    return rc;
}

/* Depth first. A node that another client deletes meanwhile is no error. */
int wire_delete_tree(struct wire *wire, const char *path)
{
    struct wire_names names;
    int rc = wire_children(wire, path, &names);

    for (size_t i = 0; rc == 0 && i < names.n; i++) {
        char child[1024];
        snprintf(child, sizeof child, "%s/%s", path, names.name[i]);
        rc = wire_delete_tree(wire, child);
    }
    wire_names_free(&names);
    if (rc == 0)
        rc = wire_delete(wire, path, -1);
    return rc == WIRE_NONODE ? 0 : rc;
}

int wire_sync(struct wire *wire, const char *path)
{
    return call_simply(wire, 0, OP_SYNC, "t", path);
}

int wire_ping(struct wire *wire)
{
    return call_simply(wire, XID_PING, OP_PING, "");
}

int wire_auth(struct wire *wire, const char *scheme, const char *credential)
{
    return call_simply(wire, XID_AUTH, OP_AUTH, "itt", 0, scheme, credential); /* no type */
}

/* --- other clients' sessions ------------------------------------------------------------------ */

/* Both frames in one buffer, with one length each. */
static struct jute_out kill_request(int64_t session, const char *password)
{
    struct jute_out o = connect_request(KILL_SESSION_MS, session, password);

    if (!o.failed)
        bytes_put32(o.data, (int32_t)(o.n - 4));
    jute_put(&o, "iii", 8, 1, OP_CLOSE);
    return o;
}

static int kill_over(struct wire *w, const struct jute_out *o)
{
    int64_t deadline_ms = net_now_ms() + KILL_TRY_MS;
    struct jute_in in = {0};
    int rc;

    if (o->failed || net_send(w->fd, o->data, o->n, deadline_ms) != 0)
        return WIRE_IO;
    rc = read_connect_answer(w, deadline_ms);
    if (rc == WIRE_SESSIONEXPIRED)
        return 1;
    if (rc == 0)
        rc = receive_answer(w, 1, &in, deadline_ms);
    free(in.data);
    return rc == 0 ? 0 : WIRE_IO;
}

int wire_kill_session(const char *host, int port, int64_t session,
                      const char password[WIRE_PASSWORD])
{
    struct jute_out o = kill_request(session, password);
    struct wire w;
    int rc = WIRE_IO;

    memset(&w, 0, sizeof w);
    w.fd = net_connect(host, port, net_now_ms() + KILL_TRY_MS);
    if (w.fd >= 0) {
        rc = kill_over(&w, &o);
        close(w.fd);
    }
    free(o.data);
    return rc;
}

int wire_expire_session(const char *host, int port, int64_t session,
                        const char password[WIRE_PASSWORD], int timeout_ms)
{
    int64_t deadline_ms = net_now_ms() + timeout_ms;

    while (wire_kill_session(host, port, session, password) < 0) {
        if (net_now_ms() >= deadline_ms)
            return WIRE_IO;
        net_nap_ms(KILL_NAP_MS);
    }
    return 0;
}
