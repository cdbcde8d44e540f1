/* SPDX-License-Identifier: Apache-2.0 */
#include "wire.h"

#include "bytes.h"
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

/* --- packing and unpacking -------------------------------------------------------------------- */

/* A frame on its way out. The first four bytes are its length, filled in at the end. */
struct out {
    unsigned char *data;
    size_t n;
    size_t room;
    bool failed;
};

/* A frame that came in. Reading past its end sets failed and gives zeroes. */
struct in {
    unsigned char *data;
    size_t n;
    size_t at;
    bool failed;
};

static unsigned char *grow(struct out *o, size_t n)
{
    if (o->n + n > o->room) {
        size_t room = (o->n + n) * 2;
        unsigned char *data = realloc(o->data, room);
        if (data == NULL) {
            o->failed = true;
            return NULL;
        }
        o->data = data;
        o->room = room;
    }
    o->n += n;
    return o->data + o->n - n;
}

static void put_int(struct out *o, int32_t v)
{
    unsigned char *at = grow(o, 4);

    if (at != NULL)
        bytes_put32(at, v);
}

static void put_long(struct out *o, int64_t v)
{
    unsigned char *at = grow(o, 8);

    if (at != NULL)
        bytes_put64(at, v);
}

static void put_bool(struct out *o, bool v)
{
    unsigned char *at = grow(o, 1);

    if (at != NULL)
        *at = v;
}

static void put_bytes(struct out *o, const void *data, size_t n)
{
    unsigned char *at;

    put_int(o, (int32_t)n);
    at = grow(o, n);
    if (at != NULL && n > 0)
        memcpy(at, data, n);
}

static void put_text(struct out *o, const char *text)
{
    put_bytes(o, text, strlen(text));
}

static struct out frame_begin(void)
{
    struct out o = {NULL, 0, 0, false};

    put_int(&o, 0);
    return o;
}

static const unsigned char *take(struct in *in, size_t n)
{
    if (in->failed || in->n - in->at < n) {
        in->failed = true;
        return NULL;
    }
    in->at += n;
    return in->data + in->at - n;
}

static int32_t take_int(struct in *in)
{
    const unsigned char *at = take(in, 4);

    return at != NULL ? bytes_get32(at) : 0;
}

static int64_t take_long(struct in *in)
{
    const unsigned char *at = take(in, 8);

    return at != NULL ? bytes_get64(at) : 0;
}

/* A buffer or a text: the length is -1 for null, which reads as empty. */
static size_t take_bytes(struct in *in, const unsigned char **data)
{
    int32_t n = take_int(in);

    *data = n > 0 ? take(in, (size_t)n) : NULL;
    return *data != NULL ? (size_t)n : 0;
}

static void take_text(struct in *in, char *text, size_t size)
{
    const unsigned char *data;
    size_t n = take_bytes(in, &data);

    if (text == NULL || size == 0)
        return;
    if (n > size - 1)
        n = size - 1;
    if (n > 0)
        memcpy(text, data, n);
    text[n] = '\0';
}

static void take_stat(struct in *in, struct wire_stat *stat)
{
    struct wire_stat unwanted;
    struct wire_stat *s = stat != NULL ? stat : &unwanted;

    s->czxid = take_long(in);
    s->mzxid = take_long(in);
    s->ctime_ms = take_long(in);
    s->mtime_ms = take_long(in);
    s->version = take_int(in);
    s->cversion = take_int(in);
    s->aversion = take_int(in);
    s->ephemeral_owner = take_long(in);
    s->data_length = take_int(in);
    s->children = take_int(in);
    s->pzxid = take_long(in);
}

/* --- frames ----------------------------------------------------------------------------------- */

static int send_frame(int fd, struct out *o, int64_t deadline_ms)
{
    int rc = WIRE_IO;

    if (!o->failed) {
        bytes_put32(o->data, (int32_t)(o->n - 4));
        rc = net_send(fd, o->data, o->n, deadline_ms) == 0 ? 0 : WIRE_IO;
    }
    free(o->data);
    return rc;
}

static int receive_frame(int fd, struct in *in, int64_t deadline_ms)
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

static struct out request_begin(int32_t xid, enum opcode op)
{
    struct out o = frame_begin();

    put_int(&o, xid);
    put_int(&o, op);
    return o;
}

static void keep_event(struct wire *w, struct in *in)
{
    struct event *e = &w->events[w->event_count];

    if (w->event_count == EVENTS_MAX)
        return;
    e->type = take_int(in);
    take_int(in); /* the session's state */
    take_text(in, e->path, sizeof e->path);
    w->event_count++;
}

/* Receive the answer to xid, or the next event. Events that come before are kept, answers without a
 * request are skipped. Returns the error of its header. */
static int receive_answer(struct wire *w, int32_t xid, struct in *in, int64_t deadline_ms)
{
    for (;;) {
        int32_t got;
        int64_t zxid;
        int32_t err;
        if (receive_frame(w->fd, in, deadline_ms) != 0)
            return WIRE_IO;
        got = take_int(in);
        zxid = take_long(in);
        err = take_int(in);
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

/* Send a request that was begun with this xid, and wait for its answer. The caller must free
 * in->data. */
static int call(struct wire *w, int32_t xid, struct out *o, struct in *in)
{
    int64_t deadline_ms = net_now_ms() + WIRE_TIMEOUT_MS;

    memset(in, 0, sizeof *in);
    if (send_frame(w->fd, o, deadline_ms) != 0)
        return WIRE_IO;
    return receive_answer(w, xid, in, deadline_ms);
}

/* The same for requests whose answer is the error alone. */
static int call_simply(struct wire *w, int32_t xid, struct out *o)
{
    struct in in;
    int rc = call(w, xid, o, &in);

    free(in.data);
    return rc;
}

static int done(struct in *in, int rc)
{
    free(in->data);
    return rc == 0 && in->failed ? WIRE_IO : rc;
}

/* --- sessions --------------------------------------------------------------------------------- */

static struct out connect_request(int session_ms, int64_t session, const char *password)
{
    struct out o = frame_begin();

    put_int(&o, 0);  /* protocol version */
    put_long(&o, 0); /* last zxid seen: 0 is never ahead of the server */
    put_int(&o, session_ms);
    put_long(&o, session);
    put_bytes(&o, password, WIRE_PASSWORD);
    put_bool(&o, false); /* read-only servers will not do */
    return o;
}

static int read_connect_answer(struct wire *w, int64_t deadline_ms)
{
    const unsigned char *password;
    struct in in;

    if (receive_frame(w->fd, &in, deadline_ms) != 0)
        return WIRE_IO;
    take_int(&in);
    w->session_ms = take_int(&in);
    w->session = take_long(&in);
    if (take_bytes(&in, &password) == WIRE_PASSWORD)
        memcpy(w->password, password, WIRE_PASSWORD);
    free(in.data);
    if (in.failed)
        return WIRE_IO;
    return w->session_ms > 0 ? 0 : WIRE_SESSIONEXPIRED;
}

static int start_session(struct wire *w, const char *host, int port, struct out *o)
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
    struct out o;
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
    struct out o;

    if (wire == NULL)
        return;
    o = request_begin(++wire->xid, OP_CLOSE);
    call_simply(wire, wire->xid, &o);
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

static struct out path_request(struct wire *w, enum opcode op, const char *path)
{
    struct out o = request_begin(++w->xid, op);

    put_text(&o, path);
    return o;
}

static void put_acl(struct out *o, const struct wire_acl *acl, size_t n)
{
    put_int(o, (int32_t)n);
    for (size_t i = 0; i < n; i++) {
        put_int(o, acl[i].perms);
        put_text(o, acl[i].scheme);
        put_text(o, acl[i].id);
    }
}

int wire_create_acl(struct wire *wire, const char *path, const char *data, int flags,
                    const struct wire_acl *acl, size_t acl_count, char *made, size_t size)
{
    static const struct wire_acl open_acl = {WIRE_PERM_ALL, "world", "anyone"};
    enum opcode op = flags == WIRE_CONTAINER ? OP_CREATE_CONTAINER : OP_CREATE;
    struct out o = path_request(wire, op, path);
    struct in in;
    int rc;

    put_text(&o, data != NULL ? data : "");
    if (acl != NULL)
        put_acl(&o, acl, acl_count);
    else
        put_acl(&o, &open_acl, 1);
    put_int(&o, flags);
    rc = call(wire, wire->xid, &o, &in);
    if (rc == 0)
        take_text(&in, made, size);
    return done(&in, rc);
}

int wire_create(struct wire *wire, const char *path, const char *data, int flags, char *made,
                size_t size)
{
    return wire_create_acl(wire, path, data, flags, NULL, 0, made, size);
}

int wire_delete(struct wire *wire, const char *path, int32_t version)
{
    struct out o = path_request(wire, OP_DELETE, path);

    put_int(&o, version);
    return call_simply(wire, wire->xid, &o);
}

static int exists(struct wire *wire, const char *path, bool watch, struct wire_stat *stat)
{
    struct out o = path_request(wire, OP_EXISTS, path);
    struct in in;
    int rc;

    put_bool(&o, watch);
    rc = call(wire, wire->xid, &o, &in);
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
    struct in in = {NULL, 0, 0, false};
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
    struct out o = path_request(wire, OP_GET, path);
    struct in in;
    int rc;

    put_bool(&o, false);
    rc = call(wire, wire->xid, &o, &in);
    if (rc == 0) {
        take_text(&in, data, size);
        take_stat(&in, stat);
    }
    return done(&in, rc);
}

int wire_set(struct wire *wire, const char *path, const char *data, int32_t version)
{
    struct out o = path_request(wire, OP_SET, path);

    put_text(&o, data);
    put_int(&o, version);
    return call_simply(wire, wire->xid, &o);
}

static void take_acl(struct in *in, char *text, size_t size)
{
    int32_t n = take_int(in);
    size_t used = 0;

    if (size > 0)
        text[0] = '\0';
    for (int32_t i = 0; i < n && !in->failed; i++) {
        char scheme[64];
        char id[256];
        int32_t perms = take_int(in);
        take_text(in, scheme, sizeof scheme);
        take_text(in, id, sizeof id);
        if (used < size)
            used += (size_t)snprintf(text + used, size - used, "%s%d:%s:%s", i > 0 ? "," : "",
                                     perms, scheme, id);
    }
}

int wire_get_acl(struct wire *wire, const char *path, char *text, size_t size)
{
    struct out o = path_request(wire, OP_GET_ACL, path);
    struct in in;
    int rc = call(wire, wire->xid, &o, &in);

    if (rc == 0)
        take_acl(&in, text, size);
    return done(&in, rc);
}

int wire_set_acl(struct wire *wire, const char *path, const struct wire_acl *acl, size_t acl_count)
{
    struct out o = path_request(wire, OP_SET_ACL, path);

    put_acl(&o, acl, acl_count);
    put_int(&o, -1);
    return call_simply(wire, wire->xid, &o);
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void take_names(struct in *in, struct wire_names *names)
{
    int32_t n = take_int(in);

    if (n < 0 || (size_t)n > in->n)
        in->failed = true;
    names->name = in->failed ? NULL : calloc((size_t)n + 1, sizeof(char *));
    for (int32_t i = 0; names->name != NULL && i < n && !in->failed; i++) {
        const unsigned char *data;
        size_t length = take_bytes(in, &data);
        names->name[names->n] = data != NULL ? strndup((const char *)data, length) : NULL;
        if (names->name[names->n] != NULL)
            names->n++;
    }
    if (names->n > 1)
        qsort(names->name, names->n, sizeof(char *), by_text);
}

int wire_children(struct wire *wire, const char *path, struct wire_names *names)
{
    struct out o = path_request(wire, OP_CHILDREN, path);
    struct in in;
    int rc;

    memset(names, 0, sizeof *names);
    put_bool(&o, false);
    rc = call(wire, wire->xid, &o, &in);
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
    struct out o = path_request(wire, OP_SYNC, path);

    return call_simply(wire, wire->xid, &o);
}

int wire_ping(struct wire *wire)
{
    struct out o = request_begin(XID_PING, OP_PING);

    return call_simply(wire, XID_PING, &o);
}

int wire_auth(struct wire *wire, const char *scheme, const char *credential)
{
    struct out o = request_begin(XID_AUTH, OP_AUTH);

    put_int(&o, 0); /* type: not used */
    put_text(&o, scheme);
    put_text(&o, credential);
    return call_simply(wire, XID_AUTH, &o);
}

/* --- other clients' sessions ------------------------------------------------------------------ */

/* Both frames in one buffer, with one length each. */
static struct out kill_request(int64_t session, const char *password)
{
    struct out first = connect_request(KILL_SESSION_MS, session, password);
    struct out second = request_begin(1, OP_CLOSE);
    unsigned char *at;

    if (first.failed || second.failed) {
        first.failed = true;
    } else {
        bytes_put32(first.data, (int32_t)(first.n - 4));
        bytes_put32(second.data, (int32_t)(second.n - 4));
        at = grow(&first, second.n);
        if (at != NULL)
            memcpy(at, second.data, second.n);
    }
    free(second.data);
    return first;
}

static int kill_over(struct wire *w, const struct out *o)
{
    int64_t deadline_ms = net_now_ms() + KILL_TRY_MS;
    struct in in = {NULL, 0, 0, false};
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
    struct out o = kill_request(session, password);
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
