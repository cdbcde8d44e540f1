/* SPDX-License-Identifier: Apache-2.0
 * The server of fuzz target core. It keeps the nodes that it said it made, so that lists can be what a
 * list may be; but what it answers is up to the input. */
#include <stdio.h>
#include <string.h>

#include "stream.h"

/* --- nodes --------------------------------------------------------------- */

static struct node *find_node(struct server *server, const char *path)
{
    for (size_t i = 0; i < server->node_count; i++) {
        if (strcmp(server->nodes[i].path, path) == 0)
            return &server->nodes[i];
    }
    return NULL;
}

static void add_node(struct server *server, const char *path, int64_t session)
{
    if (server->node_count == NODES || find_node(server, path))
        return;
    struct node *node = &server->nodes[server->node_count++];
    *node = (struct node){.czxid = ++server->zxid, .session = session};
    snprintf(node->path, sizeof node->path, "%s", path);
}

static void delete_node(struct server *server, const char *path)
{
    struct node *node = find_node(server, path);
    if (node)
        *node = server->nodes[--server->node_count];
}

static const char *last_component(const char *path)
{
    return strrchr(path, '/') + 1;
}

static bool is_child(const char *path, const char *parent)
{
    size_t length = strlen(parent);
    return strncmp(path, parent, length) == 0 && path[length] == '/' &&
           !strchr(path + length + 1, '/');
}

/* --- requests ------------------------------------------------------------ */

enum zkl_answer server_send(struct stream *s, const struct zkl_request *r)
{
    struct server *server = &s->server;
    say(s, "  > kind %d %s, %zu checks (%llu)%s", r->kind, r->path ? r->path : "", r->check_count,
        (unsigned long long)r->id, server->refuse == ZKL_ANSWER_OK ? "" : " refused");
    if (server->refuse != ZKL_ANSWER_OK)
        return server->refuse;
    if (server->request_count == REQUESTS)
        return ZKL_ANSWER_NOMEM;
    struct request *request = &server->requests[server->request_count++];
    *request = (struct request){.id = r->id,
                                .kind = r->kind,
                                .stamp = r->stamp,
                                .check_count = r->check_count,
                                .vouched = owners_vouch(s, r)};
    snprintf(request->path, sizeof request->path, "%s", r->path ? r->path : "");
    for (size_t i = 0; i < r->check_count && i < CHECKS_KEPT; i++)
        snprintf(request->checks[i], sizeof request->checks[i], "%s", r->checks[i]);
    if (r->watch_id != 0)
        server->watches[server->watch_count++ % WATCHES] = r->watch_id;
    return ZKL_ANSWER_OK;
}

static struct request take_request(struct server *server, size_t i)
{
    struct request request = server->requests[i];
    memmove(&server->requests[i], &server->requests[i + 1],
            (--server->request_count - i) * sizeof request);
    server->answered = request.id;
    return request;
}

/* --- answers ------------------------------------------------------------- */

/* What an answer points to; good until the next one. */
static struct {
    char names[NODES][PATH_ROOM];
    const char *list[NODES];
    size_t count;
} told;

static void tell_name(const char *name)
{
    snprintf(told.names[told.count], PATH_ROOM, "%s", name);
    told.list[told.count] = told.names[told.count];
    told.count++;
}

/* The next number; at times one that is used up or not to be expected. */
static int32_t take_number(struct stream *s, bool honest)
{
    static const int32_t odd[] = {0,  1,        ZKL_SEQUENCE_HARD - 1, ZKL_SEQUENCE_HARD, INT32_MAX,
                                  -1, INT32_MIN};
    unsigned how = honest ? 0 : fuzz_byte(&s->in);
    return how < 224 ? ++s->server.counter : odd[how % (sizeof odd / sizeof *odd)];
}

static void make_node(struct stream *s, const char *prefix, bool honest)
{
    char path[PATH_ROOM + 12];
    snprintf(path, sizeof path, "%s%010d", prefix, take_number(s, honest));
    path[PATH_ROOM - 1] = '\0';
    add_node(&s->server, path, s->session);
    tell_name(last_component(path));
}

static void answer_create(struct stream *s, const struct request *r, struct zkl_reply *reply,
                          bool honest)
{
    if (r->check_count > 0) { /* exactly that one */
        add_node(&s->server, r->path, s->session);
        return;
    }
    make_node(s, r->path, honest);
    reply->name = told.list[0];
    reply->czxid = s->server.zxid;
}

static void answer_create_all(struct stream *s, const struct request *r, struct zkl_reply *reply,
                              bool honest)
{
    for (size_t i = 0; i < r->check_count; i++)
        make_node(s, r->checks[i], honest);
    reply->children = told.list;
    reply->child_count = told.count;
}

/* All children, or those that the input's bits leave. */
static void answer_list(struct stream *s, const struct request *r, struct zkl_reply *reply,
                        bool honest)
{
    unsigned without = honest || fuzz_flag(&s->in) ? 0 : fuzz_byte(&s->in);
    for (size_t i = 0; i < s->server.node_count; i++) {
        const char *path = s->server.nodes[i].path;
        if (is_child(path, r->path) && !(without >> i % 8 & 1))
            tell_name(last_component(path));
    }
    reply->children = told.list;
    reply->child_count = told.count;
    reply->czxid = honest || fuzz_flag(&s->in) ? ++s->server.zxid : 1;
    s->listed_root = r->path;
    s->listed = reply;
}

static void answer_stat(struct stream *s, const struct request *r, struct zkl_reply *reply,
                        bool honest)
{
    const struct node *node = find_node(&s->server, r->path);
    if (honest && !node)
        reply->answer = ZKL_ANSWER_NONODE;
    reply->czxid = node ? node->czxid : 1;
    reply->node_session = node ? node->session : 0;
    if (!honest && fuzz_below(&s->in, 4) == 3)
        reply->node_session++;
}

static void answer_data(struct stream *s, struct zkl_reply *reply, bool honest)
{
    static const char *const data[] = {"3", "3", "2", "1", "100000", "", "note", ZKL_REVOCATION};
    unsigned which = honest ? 0 : fuzz_byte(&s->in);
    reply->data = which == 255 ? NULL : data[which % (sizeof data / sizeof *data)];
    reply->data_size = reply->data ? strlen(reply->data) : 0;
    reply->version = (int32_t)which;
    reply->czxid = 1;
}

static void answer_delete(struct stream *s, const struct request *r)
{
    delete_node(&s->server, r->path);
    for (size_t i = 0; i < r->check_count && i < CHECKS_KEPT; i++)
        delete_node(&s->server, r->checks[i]);
}

static void carry_out(struct stream *s, const struct request *r, struct zkl_reply *reply,
                      bool honest)
{
    switch ((int)r->kind) {
    case ZKL_REQ_CREATE:
        answer_create(s, r, reply, honest);
        break;
    case ZKL_REQ_CREATE_ALL:
        answer_create_all(s, r, reply, honest);
        break;
    case ZKL_REQ_LIST:
    case ZKL_REQ_LIST_LOCK_PATH:
        answer_list(s, r, reply, honest);
        break;
    case ZKL_REQ_STAT:
        answer_stat(s, r, reply, honest);
        break;
    case ZKL_REQ_GET:
    case ZKL_REQ_WATCH:
        answer_data(s, reply, honest);
        break;
    case ZKL_REQ_DELETE:
    case ZKL_REQ_DELETE_ALL:
        answer_delete(s, r);
        break;
    default:
        break;
    }
}

/* OK more often than not; done, but its answer lost, as well as not done. */
static enum zkl_answer take_answer(struct stream *s, size_t i, bool *done)
{
    /* By place, so that the corpus goes on meaning what it meant. */
    static const enum zkl_answer answers[] = {
        ZKL_ANSWER_OK,       ZKL_ANSWER_LINK,        ZKL_ANSWER_NONODE,        ZKL_ANSWER_EXISTS,
        ZKL_ANSWER_NOTEMPTY, ZKL_ANSWER_NOAUTH,      ZKL_ANSWER_UNIMPLEMENTED, ZKL_ANSWER_NOWATCHER,
        ZKL_ANSWER_NOMEM,    ZKL_ANSWER_ROLLED_BACK, ZKL_ANSWER_OTHER};
    unsigned how = fuzz_byte(&s->in);
    enum zkl_answer answer =
        how < 144 ? ZKL_ANSWER_OK : answers[how % (sizeof answers / sizeof *answers)];
    if (s->server.requests[i].lost || !zkl_session_connected(&s->core.session))
        answer = ZKL_ANSWER_LINK;
    *done = answer == ZKL_ANSWER_OK || (answer == ZKL_ANSWER_LINK && how >= 200);
    return answer;
}

static bool is_delete(enum zkl_request_kind kind)
{
    return kind == ZKL_REQ_DELETE || kind == ZKL_REQ_DELETE_ALL;
}

static void answer(struct stream *s, size_t i, enum zkl_answer answer, bool done, bool honest)
{
    struct request r = take_request(&s->server, i);
    struct zkl_reply full = {.id = r.id, .answer = answer, .stamp = r.stamp}, bare = full;
    told.count = 0;
    if (done)
        carry_out(s, &r, &full, honest);
    if (!honest && answer != ZKL_ANSWER_OK)
        bare.failed_check = fuzz_below(&s->in, MEMBERS + 1);
    if (answer != ZKL_ANSWER_OK)
        s->listed = NULL;
    s->passed_on = r.kind == ZKL_REQ_WATCH ? answer == ZKL_ANSWER_NONODE
                                           : answer == ZKL_ANSWER_OK && is_delete(r.kind);
    s->armed = r.kind == ZKL_REQ_WATCH && answer == ZKL_ANSWER_OK ? r.path : NULL;
    owners_answered(s, &r, answer, &full);
    say(s, "  < %d, %zu children (%llu)", answer, full.child_count, (unsigned long long)r.id);
    zkl_core_reply(&s->core, s->now, answer == ZKL_ANSWER_OK ? &full : &bare);
    owners_check(s);
    s->listed = NULL;
}

/* ZooKeeper answers in order. Only a renewal is several requests of the driver's, and others pass it. */
static size_t take_next(struct stream *s)
{
    size_t i = 0;
    while (i + 1 < s->server.request_count && s->server.requests[i].kind == ZKL_REQ_RENEW &&
           fuzz_flag(&s->in))
        i++;
    return i;
}

void server_answer(struct stream *s, bool honest)
{
    bool done = true;
    if (s->server.request_count == 0)
        return;
    size_t i = honest ? 0 : take_next(s);
    enum zkl_answer how = honest ? ZKL_ANSWER_OK : take_answer(s, i, &done);
    answer(s, i, how, done, honest);
}

void server_lose(struct stream *s)
{
    for (size_t i = 0; i < s->server.request_count; i++)
        s->server.requests[i].lost = true;
}

void server_tell_lost(struct stream *s)
{
    while (s->server.request_count > 0 && s->server.requests[0].lost)
        answer(s, 0, ZKL_ANSWER_LINK, fuzz_flag(&s->in), true);
}

void server_forget(struct stream *s)
{
    s->server.request_count = 0;
}

/* --- what others do ------------------------------------------------------ */

void server_interfere(struct stream *s)
{
    static const char *const strangers[] = {"/a/_c_00000000-0000-4000-8000-000000000000-lock-",
                                            "/b/c/ff__rlock__",
                                            "/b/c/_c_00000000-0000-4000-8000-000000000000-__WRIT__",
                                            "/s/leases/lease-",
                                            "/s/locks/lock-",
                                            "/d/note",
                                            "/a/note"};
    struct server *server = &s->server;
    if (server->node_count > 0 && fuzz_flag(&s->in)) {
        size_t i = fuzz_below(&s->in, (unsigned)server->node_count);
        delete_node(server, server->nodes[i].path);
    } else {
        told.count = 0;
        make_node(s, strangers[fuzz_below(&s->in, sizeof strangers / sizeof *strangers)], false);
    }
}

/* A watch that the core knows, or has forgotten, or never knew. */
void server_fire(struct stream *s)
{
    unsigned which = fuzz_below(&s->in, WATCHES + 1);
    uint64_t id = which < WATCHES ? s->server.watches[which] : s->server.answered;
    s->passed_on = fuzz_flag(&s->in);
    owners_fired(s, id);
    zkl_core_fired(&s->core, s->now, id, s->passed_on ? ZKL_FIRED_DELETED : ZKL_FIRED_OTHER);
}
