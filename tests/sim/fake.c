/* SPDX-License-Identifier: Apache-2.0 */
#include "fake.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GROW(list, count, room)                                                                    \
    do {                                                                                           \
        if ((count) == (room)) {                                                                   \
            (room) = (room) ? 2 * (room) : 16;                                                     \
            (list) = realloc((list), (room) * sizeof *(list));                                     \
            if (!(list))                                                                           \
                abort();                                                                           \
        }                                                                                          \
    } while (0)

/* --- random numbers ------------------------------------------------------- */

/* SplitMix64 (Steele, Lea, Flood). */
uint64_t fake_random64(struct fake_prng *prng)
{
    uint64_t z = prng->state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

unsigned fake_random(struct fake_prng *prng, unsigned n)
{
    return prng->plain ? 0 : (unsigned)((fake_random64(prng) >> 33) % n);
}

bool fake_chance(struct fake_prng *prng, unsigned n)
{
    return !prng->plain && fake_random(prng, n) == 0;
}

/* --- queues --------------------------------------------------------------- */

static void queue_init(struct fake_queue *queue)
{
    *queue = (struct fake_queue){.end = &queue->first};
}

static void append(struct fake_queue *queue, struct fake_message *message)
{
    *queue->end = message;
    queue->end = &message->next;
    queue->count++;
}

static struct fake_message *queue_add(struct fake_queue *queue, int type)
{
    struct fake_message *message = calloc(1, sizeof *message);
    if (!message)
        abort();
    message->type = type;
    append(queue, message);
    return message;
}

static struct fake_message *queue_take(struct fake_queue *queue)
{
    struct fake_message *message = queue->first;
    if (!message)
        return NULL;
    queue->first = message->next;
    if (!queue->first)
        queue->end = &queue->first;
    message->next = NULL;
    queue->count--;
    return message;
}

static void queue_move(struct fake_queue *to, struct fake_queue *from)
{
    if (!from->first)
        return;
    *to->end = from->first;
    to->end = from->end;
    to->count += from->count;
    queue_init(from);
}

static void free_texts(const char *const *texts, size_t count)
{
    for (size_t i = 0; i < count && texts; i++)
        free((char *)texts[i]);
    free((void *)texts);
}

static void forget_children(struct zkl_reply *reply)
{
    free_texts(reply->children, reply->child_count);
    reply->children = NULL;
    reply->child_count = 0;
}

void fake_message_free(struct fake_message *message)
{
    const struct zkl_request *request = &message->request;
    free_texts(request->checks, request->check_count);
    free_texts(request->texts, request->check_count);
    forget_children(&message->reply);
    free((char *)message->reply.name);
    free((char *)message->reply.data);
    free((char *)request->data);
    free((char *)request->path);
    free(message->path);
    free(message);
}

static void queue_clear(struct fake_queue *queue)
{
    struct fake_message *message;
    while ((message = queue_take(queue)))
        fake_message_free(message);
}

/* --- watches -------------------------------------------------------------- */

/* The first of that path and type; NULL: there is none. */
static struct fake_watch *watch_find(const struct fake_watches *w, const char *path,
                                     enum zkl_watch_type type)
{
    for (size_t i = 0; i < w->count; i++) {
        if (w->list[i].type == type && strcmp(w->list[i].path, path) == 0)
            return &w->list[i];
    }
    return NULL;
}

static void watch_add(struct fake_watches *w, const char *path, enum zkl_watch_type type,
                      uint64_t id)
{
    for (size_t i = 0; i < w->count; i++) {
        if (w->list[i].type == type && w->list[i].id == id && strcmp(w->list[i].path, path) == 0)
            return;
    }
    GROW(w->list, w->count, w->room);
    w->list[w->count++] = (struct fake_watch){.path = strdup(path), .type = type, .id = id};
}

/* Take one out; its id, 0 if there is none (or the server's own has none). */
static uint64_t watch_remove(struct fake_watches *w, const char *path, enum zkl_watch_type type)
{
    struct fake_watch *found = watch_find(w, path, type);
    uint64_t id = found ? found->id : 0;
    if (found) {
        free(found->path);
        *found = w->list[--w->count];
    }
    return id;
}

static void watch_clear(struct fake_watches *w)
{
    for (size_t i = 0; i < w->count; i++)
        free(w->list[i].path);
    free(w->list);
    *w = (struct fake_watches){0};
}

/* --- the tree ------------------------------------------------------------- */

void fake_init(struct fake *fake, struct fake_prng *prng)
{
    *fake = (struct fake){.prng = prng,
                          .now_ms = 1000,
                          .zxid = 100,
                          .last_session = 0x100,
                          .close_bytes_max = ZKL_EPHEMERAL_BYTES_MAX};
    fake->rules = (struct fake_rules){.tick_ms = FAKE_TIMEOUT_MS / 10,
                                      .declared_ms = FAKE_TIMEOUT_MS / 10,
                                      .round_ms = FAKE_TIMEOUT_MS / 20};
}

static void node_free(struct fake_node *node)
{
    free(node->path);
    free(node->text);
}

static void change_free(struct fake_change *change)
{
    free(change->path);
    free(change->old_text);
}

void fake_fini(struct fake *fake)
{
    for (size_t i = 0; i < fake->node_count; i++)
        node_free(&fake->nodes[i]);
    for (size_t i = 0; i < fake->change_count; i++)
        change_free(&fake->changes[i]);
    free(fake->nodes);
    free(fake->changes);
    free(fake->sessions);
}

struct fake_node *fake_find(struct fake *fake, const char *path)
{
    for (size_t i = 0; i < fake->node_count; i++) {
        if (fake->nodes[i].dzxid == 0 && strcmp(fake->nodes[i].path, path) == 0)
            return &fake->nodes[i];
    }
    return NULL;
}

static bool visible(const struct fake_node *node, int64_t view)
{
    return node->czxid <= view && (node->dzxid == 0 || node->dzxid > view);
}

static struct fake_node *find_at(struct fake *fake, const char *path, int64_t view)
{
    for (size_t i = 0; i < fake->node_count; i++) {
        if (visible(&fake->nodes[i], view) && strcmp(fake->nodes[i].path, path) == 0)
            return &fake->nodes[i];
    }
    return NULL;
}

const char *fake_child_of(const struct fake_node *node, const char *path)
{
    size_t length = strlen(path);
    if (strncmp(node->path, path, length) != 0 || node->path[length] != '/' ||
        strchr(node->path + length + 1, '/'))
        return NULL;
    return node->path + length + 1;
}

bool fake_has_children(const struct fake *fake, const char *path)
{
    for (size_t i = 0; i < fake->node_count; i++) {
        if (fake->nodes[i].dzxid == 0 && fake_child_of(&fake->nodes[i], path))
            return true;
    }
    return false;
}

static void change(struct fake *fake, const char *path, size_t length, int what)
{
    GROW(fake->changes, fake->change_count, fake->change_room);
    fake->changes[fake->change_count++] =
        (struct fake_change){.zxid = fake->zxid, .path = strndup(path, length), .what = what};
}

static void change_parent(struct fake *fake, const char *path)
{
    const char *slash = strrchr(path, '/');
    if (slash > path)
        change(fake, path, (size_t)(slash - path), FAKE_CHILDREN);
}

static struct fake_node *parent_of(struct fake *fake, const char *path)
{
    char parent[ZKL_PATH_MAX + 1];
    snprintf(parent, sizeof parent, "%.*s", (int)(strrchr(path, '/') - path), path);
    return fake_find(fake, parent);
}

/* With the zxid of the transaction that is under way. */
static struct fake_node *create_now(struct fake *fake, const char *path, int64_t owner,
                                    const char *text)
{
    struct fake_node *parent = parent_of(fake, path);
    if (parent && parent->counter < INT32_MAX)
        parent->counter++;
    GROW(fake->nodes, fake->node_count, fake->node_room);
    fake->nodes[fake->node_count++] =
        (struct fake_node){.path = strdup(path),
                           .czxid = fake->zxid,
                           .shown_czxid = fake->zxid - fake->zxid_back,
                           .owner = owner,
                           .text = text && *text ? strdup(text) : NULL};
    change_parent(fake, path);
    return &fake->nodes[fake->node_count - 1];
}

void fake_create(struct fake *fake, const char *path, int64_t owner, int32_t counter)
{
    fake->zxid++;
    create_now(fake, path, owner, NULL)->counter = counter;
}

static void delete_now(struct fake *fake, struct fake_node *node)
{
    node->dzxid = fake->zxid;
    change(fake, node->path, strlen(node->path), FAKE_DELETED);
    change_parent(fake, node->path);
}

void fake_delete(struct fake *fake, struct fake_node *node)
{
    fake->zxid++;
    delete_now(fake, node);
}

static void write_now(struct fake *fake, struct fake_node *node, const char *text)
{
    change(fake, node->path, strlen(node->path), FAKE_CHANGED);
    fake->changes[fake->change_count - 1].old_text = node->text;
    node->text = text && *text ? strdup(text) : NULL;
    node->version++;
}

void fake_write(struct fake *fake, struct fake_node *node, const char *text)
{
    fake->zxid++;
    write_now(fake, node, text);
}

/* How many there were is part of what a node shows. */
static void count_children_change(struct fake *fake, const struct fake_change *change)
{
    struct fake_node *node = find_at(fake, change->path, change->zxid);
    if (!node || node->czxid == change->zxid)
        return;
    node->old_changes++;
    node->old_pzxid = change->zxid;
}

/* What every server has applied need not be remembered. */
static void forget_old(struct fake *fake)
{
    int64_t oldest = fake->zxid;
    each_fake_handle(fake, h) {
        if (h->session && !h->expired && !h->forgotten && h->seen < oldest)
            oldest = h->seen;
    }
    for (size_t i = 0; i < fake->change_count; i++) {
        if (fake->changes[i].zxid <= oldest && fake->changes[i].what == FAKE_CHILDREN)
            count_children_change(fake, &fake->changes[i]);
    }
    size_t kept = 0;
    for (size_t i = 0; i < fake->node_count; i++) {
        if (fake->nodes[i].dzxid != 0 && fake->nodes[i].dzxid <= oldest)
            node_free(&fake->nodes[i]);
        else
            fake->nodes[kept++] = fake->nodes[i];
    }
    fake->node_count = kept;
    kept = 0;
    for (size_t i = 0; i < fake->change_count; i++) {
        if (fake->changes[i].zxid <= oldest)
            change_free(&fake->changes[i]);
        else
            fake->changes[kept++] = fake->changes[i];
    }
    fake->change_count = kept;
}

/* --- sessions ------------------------------------------------------------- */

struct fake_session *fake_session_of(const struct fake *fake, int64_t id)
{
    for (size_t i = 0; i < fake->session_count; i++) {
        if (fake->sessions[i].id == id)
            return &fake->sessions[i];
    }
    return NULL;
}

bool fake_alive(const struct fake *fake, int64_t session)
{
    struct fake_session *s = fake_session_of(fake, session);
    return s && !s->dead;
}

int fake_timeout_ms(const struct fake *fake, int64_t session)
{
    const struct fake_session *s = fake_session_of(fake, session);
    return s ? s->timeout_ms : FAKE_TIMEOUT_MS;
}

/* Undo the last few transactions: nodes that they made vanish, nodes that they deleted exist
 * again. */
static void lose_writes(struct fake *fake)
{
    int64_t kept = fake->zxid - 1 - fake_random(fake->prng, 8);
    each_node(fake, node) {
        bool ended = node->owner != 0 && !fake_alive(fake, node->owner);
        if (node->dzxid > kept && !ended)
            node->dzxid = 0;
        if (node->czxid > kept)
            node->dzxid = node->czxid;
    }
}

void fake_elect(struct fake *fake)
{
    if (fake_breaks(fake, FAKE_WRITE_LOST))
        lose_writes(fake);
    if (fake_breaks(fake, FAKE_ZXID_RESTARTS))
        fake->zxid_back = fake->zxid;
    for (size_t i = 0; i < fake->session_count; i++)
        touches_elect(fake, &fake->sessions[i]);
}

static int64_t session_new(struct fake *fake, int timeout_ms)
{
    GROW(fake->sessions, fake->session_count, fake->session_room);
    struct fake_session *session = &fake->sessions[fake->session_count++];
    *session = (struct fake_session){.id = ++fake->last_session, .timeout_ms = timeout_ms};
    touches_renew(fake, session, timeout_ms);
    return session->id;
}

static void session_end(struct fake *fake, struct fake_session *session)
{
    size_t bytes = 0, most = fake->close_bytes_max;
    session->dead = true;
    fake->zxid++;
    for (size_t i = 0; i < fake->node_count; i++) {
        if (fake->nodes[i].dzxid != 0 || fake->nodes[i].owner != session->id)
            continue;
        bytes += sizeof(int32_t) + strlen(fake->nodes[i].path);
        delete_now(fake, &fake->nodes[i]);
    }
    fake->unreadable |= bytes > (fake_breaks(fake, FAKE_SHORT_CLOSE) ? most / 8 : most);
}

void fake_expire(struct fake *fake, int64_t session)
{
    struct fake_session *s = fake_session_of(fake, session);
    if (s && !s->dead)
        session_end(fake, s);
}

/* A whole bucket is taken off the queue, and its sessions are closed one by one: SessionTrackerImpl.run. */
static void run_session(struct fake *fake, struct fake_session *s)
{
    const struct fake_rules *rules = &fake->rules;
    if (s->close_ms == 0) {
        unsigned most = (unsigned)rules->batch_ms;
        most = !fake_breaks(fake, FAKE_LATE_BATCH) ? most : FAKE_TIMEOUT_MS / 2;
        s->close_ms = s->expire_ms + fake_random(fake->prng, most + 1);
    }
    if (s->close_ms > fake->now_ms)
        return;
    fake->tally[FAKE_EXPIRY]++;
    if (fake->expires)
        fake->expires(fake, s->id);
    session_end(fake, s);
}

static void serve_late(struct fake_handle *h);

/* What is due now; returns when the next thing is. */
static int64_t run_due(struct fake *fake)
{
    int64_t next_ms = INT64_MAX;
    each_fake_handle(fake, h) {
        if (h->late_ms <= fake->now_ms)
            serve_late(h);
        if (h->late_ms < next_ms)
            next_ms = h->late_ms;
        if (!h->linked || h->isolated)
            continue;
        touches_run(h);
        if (h->learner.due_ms < next_ms)
            next_ms = h->learner.due_ms;
    }
    each_of(fake->sessions, fake->session_count, s) {
        if (!s->dead && s->expire_ms <= fake->now_ms)
            run_session(fake, s);
        int64_t due_ms = s->close_ms ? s->close_ms : s->expire_ms;
        if (!s->dead && due_ms < next_ms)
            next_ms = due_ms;
    }
    return next_ms;
}

void fake_pass(struct fake *fake, int64_t ms)
{
    int64_t until_ms = fake->now_ms + ms;
    for (int64_t next_ms; (next_ms = run_due(fake)) <= until_ms;) {
        if (next_ms > fake->now_ms)
            fake->now_ms = next_ms;
    }
    fake->now_ms = until_ms;
    forget_old(fake);
}

void fake_wipe(struct fake *fake)
{
    fake->zxid++;
    for (size_t i = 0; i < fake->node_count; i++) {
        if (fake->nodes[i].dzxid == 0)
            fake->nodes[i].dzxid = fake->zxid;
    }
    for (size_t i = 0; i < fake->session_count; i++)
        fake->sessions[i].dead = true;
    each_fake_handle(fake, h) {
        h->forgotten = h->session;
        if (h->session)
            fake_break(h);
    }
}

/* --- handles -------------------------------------------------------------- */

struct fake_handle *fake_open(struct fake *fake)
{
    struct fake_handle *h = calloc(1, sizeof *h);
    if (!h)
        abort();
    h->fake = fake;
    h->timeout_ms = FAKE_TIMEOUT_MS;
    h->opened_ms = fake->now_ms;
    queue_init(&h->out);
    queue_init(&h->held);
    queue_init(&h->in);
    queue_init(&h->late);
    h->late_ms = INT64_MAX;
    size_t place = 0;
    while (fake->handles[place])
        place++;
    fake->handles[place] = h;
    return h;
}

void fake_close(struct fake_handle *h)
{
    struct fake *fake = h->fake;
    for (size_t i = 0; i < FAKE_HANDLES; i++) {
        if (fake->handles[i] == h)
            fake->handles[i] = NULL;
    }
    struct fake_session *s = fake_session_of(fake, h->session);
    if (s && !s->dead && h->linked && !h->stuck && !h->isolated)
        session_end(fake, s);
    queue_clear(&h->out);
    queue_clear(&h->held);
    queue_clear(&h->in);
    queue_clear(&h->late);
    watch_clear(&h->known);
    watch_clear(&h->armed);
    free(h);
}

void fake_kill(struct fake_handle *h)
{
    fake_break(h);
    fake_close(h);
}

void fake_isolate(struct fake_handle *h, bool deposed)
{
    if (!h->linked)
        return;
    touches_part(h);
    h->isolated = true;
    h->deposed = deposed;
}

static enum zkl_watch_type unwatched(const struct zkl_request *request)
{
    return request->flag ? ZKL_WATCH_CHILD : ZKL_WATCH_DATA;
}

static const char *const *copy_texts(const char *const *texts, size_t count)
{
    if (!texts || count == 0)
        return NULL;
    char **copy = calloc(count, sizeof *copy);
    for (size_t i = 0; i < count; i++)
        copy[i] = texts[i] ? strdup(texts[i]) : NULL;
    return (const char *const *)copy;
}

enum zkl_answer fake_send(struct fake_handle *h, const struct zkl_request *request)
{
    if (h->expired)
        return ZKL_ANSWER_LINK;
    if (h->linked) /* libzookeeper's own pings are for a link that is idle */
        h->learner.ping_ms = h->fake->now_ms + h->timeout_ms / 3;
    struct zkl_request *copy = &queue_add(&h->out, FAKE_REQUEST)->request;
    *copy = *request;
    copy->path = request->path ? strdup(request->path) : NULL;
    copy->data = request->data ? strdup(request->data) : NULL;
    copy->checks = copy_texts(request->checks, request->check_count);
    copy->texts = copy_texts(request->texts, request->check_count);
    return ZKL_ANSWER_OK;
}

static struct fake_message *to_client(struct fake_handle *h, int type)
{
    struct fake_message *message = queue_add(h->stalled ? &h->held : &h->in, type);
    message->zxid = h->view;
    return message;
}

static void fire(struct fake_handle *h, const char *path, enum zkl_watch_type type,
                 enum zkl_fired how)
{
    if (!watch_find(&h->armed, path, type))
        return;
    watch_remove(&h->armed, path, type);
    if (fake_breaks_once(h->fake, FAKE_EVENT_NEVER, 4))
        return;
    struct fake_message *message = to_client(h, FAKE_FIRED);
    message->path = strdup(path);
    message->watch = type;
    message->fired = how;
}

static void apply(struct fake_handle *h, const struct fake_change *c)
{
    h->view = c->zxid;
    if (c->what == FAKE_CHILDREN) {
        fire(h, c->path, ZKL_WATCH_CHILD, ZKL_FIRED_OTHER);
    } else if (c->what == FAKE_CHANGED) {
        fire(h, c->path, ZKL_WATCH_DATA, ZKL_FIRED_OTHER);
    } else {
        fire(h, c->path, ZKL_WATCH_DATA, ZKL_FIRED_DELETED);
        fire(h, c->path, ZKL_WATCH_CHILD, ZKL_FIRED_DELETED);
    }
}

void fake_catch_up(struct fake_handle *h, int64_t zxid)
{
    struct fake *fake = h->fake;
    int64_t from = h->view;
    if (h->isolated)
        return;
    for (size_t i = 0; i < fake->change_count; i++) {
        if (fake->changes[i].zxid > from && fake->changes[i].zxid <= zxid)
            apply(h, &fake->changes[i]);
    }
    if (zxid > h->view)
        h->view = zxid;
}

static void reply_children(struct fake_handle *h, struct zkl_reply *reply, const char *path)
{
    struct fake *fake = h->fake;
    char **names = calloc(fake->node_count + 1, sizeof *names);
    for (size_t i = 0; i < fake->node_count; i++) {
        const char *name = fake_child_of(&fake->nodes[i], path);
        if (!name || !visible(&fake->nodes[i], h->view))
            continue;
        size_t at = fake_random(fake->prng, (unsigned)reply->child_count + 1);
        names[reply->child_count++] = names[at];
        names[at] = strdup(name);
    }
    reply->children = (const char *const *)names;
}

static int32_t count_children(const struct fake *fake, const char *path, int64_t view)
{
    int32_t n = 0;
    for (size_t i = 0; i < fake->node_count; i++)
        n += visible(&fake->nodes[i], view) && fake_child_of(&fake->nodes[i], path);
    return n;
}

/* How often the children of a node have changed, and when last. */
static void reply_changes(const struct fake *fake, const struct fake_node *node, int64_t view,
                          struct zkl_reply *reply)
{
    reply->pzxid = node->old_changes > 0 ? node->old_pzxid : node->czxid;
    reply->cversion = node->old_changes;
    each_change(fake, change) {
        if (change->what != FAKE_CHILDREN || change->zxid <= node->czxid || change->zxid > view ||
            strcmp(change->path, node->path) != 0)
            continue;
        reply->cversion++;
        reply->pzxid = change->zxid;
    }
}

/* The writes of a node that a view has not seen: how many, and in text its data before them. */
static int32_t writes_after(const struct fake *fake, const struct fake_node *node, int64_t view,
                            const char **text)
{
    int32_t writes = 0;
    *text = node->text;
    for (size_t i = fake->change_count; i-- > 0;) {
        const struct fake_change *change = &fake->changes[i];
        bool is_its =
            change->zxid > node->czxid && (node->dzxid == 0 || change->zxid < node->dzxid);
        if (change->what != FAKE_CHANGED || !is_its || change->zxid <= view ||
            strcmp(change->path, node->path) != 0)
            continue;
        writes++;
        *text = change->old_text;
    }
    return writes;
}

static void reply_stat(struct fake_handle *h, const struct fake_node *node, int64_t view,
                       struct zkl_reply *reply)
{
    reply->czxid = node->shown_czxid;
    reply->node_session = node->owner;
    const char *text;
    reply->version = node->version - writes_after(h->fake, node, view, &text);
    reply->node_children = count_children(h->fake, node->path, view);
}

static void reply_data(struct fake_handle *h, const struct fake_node *node, struct zkl_reply *reply)
{
    const char *text;
    writes_after(h->fake, node, h->view, &text);
    reply->data_size = text ? strlen(text) : 0;
    reply->data = text ? strdup(text) : NULL;
    if (fake_breaks(h->fake, FAKE_OLDER_DATA))
        reply->version = node->version;
}

static void serve_read(struct fake_handle *h, const struct zkl_request *r, struct zkl_reply *reply)
{
    struct fake_node *node = find_at(h->fake, r->path, h->view);
    if (!node) {
        reply->answer = ZKL_ANSWER_NONODE;
        return;
    }
    if (r->kind != ZKL_REQ_LIST || r->flag)
        reply_stat(h, node, h->view, reply);
    bool tells_changes = r->kind == ZKL_REQ_LIST_LOCK_PATH || r->kind == ZKL_REQ_KEEPALIVE;
    if (tells_changes || (r->kind == ZKL_REQ_LIST && r->flag))
        reply_changes(h->fake, node, h->view, reply);
    if (r->kind == ZKL_REQ_LIST || r->kind == ZKL_REQ_LIST_LOCK_PATH)
        reply_children(h, reply, r->path);
    if (r->kind == ZKL_REQ_LIST_LOCK_PATH && r->watch_id != 0)
        watch_add(&h->armed, r->path, ZKL_WATCH_CHILD, 0);
    if (r->kind == ZKL_REQ_WATCH || r->kind == ZKL_REQ_GET)
        reply_data(h, node, reply);
    if (r->kind == ZKL_REQ_WATCH)
        watch_add(&h->armed, r->path, ZKL_WATCH_DATA, 0);
}

/* The number that a sequential child gets now, where as many as ahead were made before it in its
 * transaction. The counter sticks at its end, but not for what is under way: a transaction gets past
 * it, to the smallest number of all and further, and a pipelined burst may. */
static bool next_number(struct fake *fake, const struct fake_node *parent, uint32_t ahead,
                        int32_t *number)
{
    *number = (int32_t)((uint32_t)parent->counter + ahead);
    if (fake_breaks(fake, FAKE_SHUFFLED_NUMBERS))
        *number ^= 1;
    if (fake_breaks(fake, FAKE_REUSED_NUMBERS))
        *number = count_children(fake, parent->path, fake->zxid) + (int32_t)ahead;
    if (parent->counter < INT32_MAX)
        return true;
    if (fake_chance(fake->prng, 4))
        *number = INT32_MIN + (int32_t)fake_random(fake->prng, 8);
    if (fake_chance(fake->prng, 4)) {
        fake->tally[FAKE_COUNTER_STUCK]++;
        return false;
    }
    fake->tally[FAKE_COUNTER_BELOW] += *number < 0;
    return true;
}

/* May a node be made at path? */
static enum zkl_answer room_at(struct fake *fake, const char *path)
{
    const struct fake_node *parent = parent_of(fake, path);
    bool top = strrchr(path, '/') == path;
    if (!parent && !top)
        return ZKL_ANSWER_NONODE;
    if (fake_find(fake, path))
        return ZKL_ANSWER_EXISTS;
    return parent && parent->owner != 0 ? ZKL_ANSWER_BADPATH : ZKL_ANSWER_OK;
}

static void serve_checks(struct fake_handle *h, const struct zkl_request *r,
                         struct zkl_reply *reply)
{
    bool unchecked = fake_breaks(h->fake, FAKE_UNCHECKED); /* nor that it has ended */
    for (size_t i = 0; i < r->check_count; i++) {
        const struct fake_node *node = fake_find(h->fake, r->checks[i]);
        bool denied = node && node->denied && r->kind == ZKL_REQ_CHECK_ALL;
        if (unchecked || (node && !denied))
            continue;
        reply->answer = denied ? ZKL_ANSWER_NOAUTH : ZKL_ANSWER_NONODE;
        reply->failed_check = i;
        return;
    }
}

/* Under a write node: its exact name. */
static void serve_create_under(struct fake_handle *h, const struct zkl_request *r,
                               struct zkl_reply *reply)
{
    serve_checks(h, r, reply);
    if (reply->answer != ZKL_ANSWER_OK)
        return;
    reply->answer = room_at(h->fake, r->path);
    if (reply->answer == ZKL_ANSWER_OK)
        create_now(h->fake, r->path, h->session, r->data);
    else
        reply->failed_check = r->check_count;
}

static enum zkl_answer sequential_path(struct fake *fake, const char *prefix, uint32_t ahead,
                                       char *path, size_t size)
{
    const struct fake_node *parent = parent_of(fake, prefix);
    int32_t number;
    if (!parent)
        return ZKL_ANSWER_NONODE;
    if (!next_number(fake, parent, ahead, &number))
        return ZKL_ANSWER_EXISTS;
    snprintf(path, size, "%s%010d", prefix, number);
    return room_at(fake, path);
}

static void serve_create(struct fake_handle *h, const struct zkl_request *r,
                         struct zkl_reply *reply)
{
    char path[ZKL_PATH_MAX + ZKL_NODE_NAME_MAX + 2];
    if (r->check_count > 0) {
        serve_create_under(h, r, reply);
        return;
    }
    reply->answer = sequential_path(h->fake, r->path, 0, path, sizeof path);
    if (reply->answer != ZKL_ANSWER_OK)
        return;
    reply->name = strdup(strrchr(path, '/') + 1);
    int64_t czxid = create_now(h->fake, path, h->session, r->data)->shown_czxid;
    reply->czxid = r->plain ? 0 : czxid;
}

/* Does the part of a transaction make a node? Else it deletes one. */
static bool makes(const struct zkl_request *r, size_t n)
{
    return r->kind == ZKL_REQ_CREATE_ALL && r->texts[n];
}

/* How many of those before it in its transaction have the parent of the ith path. */
static uint32_t siblings_ahead(const struct zkl_request *r, size_t i)
{
    size_t length = (size_t)(strrchr(r->checks[i], '/') - r->checks[i]);
    uint32_t n = 0;
    for (size_t j = 0; j < i; j++)
        n += makes(r, j) && strncmp(r->checks[j], r->checks[i], length + 1) == 0 &&
             !strchr(r->checks[j] + length + 1, '/');
    return n;
}

static enum zkl_answer deletable(const struct fake *fake, const struct fake_node *node)
{
    if (!node)
        return ZKL_ANSWER_NONODE;
    return fake_has_children(fake, node->path) ? ZKL_ANSWER_NOTEMPTY : ZKL_ANSWER_OK;
}

/* What a part of a transaction of creates and deletes comes to; out: the node's path. */
static enum zkl_answer try_part(struct fake_handle *h, const struct zkl_request *r, size_t n,
                                char *out, size_t size)
{
    if (makes(r, n))
        return sequential_path(h->fake, r->checks[n], siblings_ahead(r, n), out, size);
    struct fake_node *node = fake_find(h->fake, r->checks[n]);
    enum zkl_answer answer = deletable(h->fake, node);
    if (answer == ZKL_ANSWER_OK)
        node->dzxid = h->fake->zxid; /* each part sees what those before it did */
    snprintf(out, size, "%s", r->checks[n]);
    return answer;
}

static void do_part(struct fake_handle *h, const struct zkl_request *r, size_t n, char *path)
{
    if (makes(r, n)) {
        create_now(h->fake, path, h->session, r->texts[n]);
        memmove(path, strrchr(path, '/') + 1, strlen(strrchr(path, '/')));
    } else {
        delete_now(h->fake, fake_find(h->fake, path));
        path[0] = '\0'; /* an answer has names of what was made */
    }
}

static void serve_transaction(struct fake_handle *h, const struct zkl_request *r,
                              struct zkl_reply *reply)
{
    char path[ZKL_PATH_MAX + ZKL_NODE_NAME_MAX + 2];
    char **paths = calloc(r->check_count, sizeof *paths);
    struct fake_node **doomed = calloc(r->check_count, sizeof *doomed);
    for (size_t n = 0; n < r->check_count && reply->answer == ZKL_ANSWER_OK; n++) {
        doomed[n] = makes(r, n) ? NULL : fake_find(h->fake, r->checks[n]);
        reply->answer = try_part(h, r, n, path, sizeof path);
        reply->failed_check = n;
        paths[n] = reply->answer == ZKL_ANSWER_OK ? strdup(path) : NULL;
    }
    for (size_t i = 0; i < r->check_count && paths[i]; i++) {
        if (doomed[i])
            doomed[i]->dzxid = 0;
    }
    free(doomed);
    bool half = fake_breaks(h->fake, FAKE_HALF_A_TRANSACTION);
    for (size_t i = 0; i < r->check_count && (reply->answer == ZKL_ANSWER_OK || half); i++) {
        if (!paths[i])
            break;
        do_part(h, r, i, paths[i]);
    }
    reply->children = (const char *const *)paths;
    reply->child_count = r->check_count;
    if (reply->answer == ZKL_ANSWER_OK)
        reply->failed_check = 0;
    if (reply->answer != ZKL_ANSWER_OK || r->kind == ZKL_REQ_DELETE_ALL)
        forget_children(reply);
}

static void serve_make(struct fake_handle *h, const struct zkl_request *r, struct zkl_reply *reply)
{
    reply->answer = room_at(h->fake, r->path);
    if (reply->answer != ZKL_ANSWER_OK)
        return;
    reply->name = strdup(strrchr(r->path, '/') + 1);
    reply->czxid = create_now(h->fake, r->path, 0, r->data)->shown_czxid;
}

static void serve_set(struct fake_handle *h, const struct zkl_request *r, struct zkl_reply *reply)
{
    struct fake_node *node = fake_find(h->fake, r->path);
    if (!node) {
        reply->answer = ZKL_ANSWER_NONODE;
    } else if (r->flag && r->version != node->version) {
        reply->answer = ZKL_ANSWER_NOTEMPTY; /* what a bad version is mapped to */
    } else {
        write_now(h->fake, node, r->data);
        reply_stat(h, node, h->fake->zxid, reply);
    }
}

static void serve_delete(struct fake_handle *h, const struct zkl_request *r,
                         struct zkl_reply *reply)
{
    struct fake_node *node = fake_find(h->fake, r->path);
    reply->answer = deletable(h->fake, node);
    if (reply->answer == ZKL_ANSWER_OK && r->flag && r->version != node->version)
        reply->answer = ZKL_ANSWER_NOTEMPTY;
    if (reply->answer == ZKL_ANSWER_OK)
        delete_now(h->fake, node);
}

static void serve_renew(struct fake_handle *h, const struct zkl_request *r, struct zkl_reply *reply)
{
    const struct fake_node *node = fake_find(h->fake, r->path);
    char *text = node && node->text ? strdup(node->text) : NULL;
    struct zkl_request deletion = {.path = r->path}; /* of the version that it finds */
    serve_delete(h, &deletion, reply);
    if (reply->answer == ZKL_ANSWER_OK && !text) { /* it takes two calls: the second may fail */
        h->fake->zxid++;
        if (fake_chance(h->fake->prng, 8))
            reply->answer = ZKL_ANSWER_EXISTS;
    }
    if (reply->answer == ZKL_ANSWER_OK)
        create_now(h->fake, r->path, 0, text);
    free(text);
}

static void serve_unwatch(struct fake_handle *h, const struct zkl_request *r,
                          struct zkl_reply *reply)
{
    if (!watch_find(&h->armed, r->path, unwatched(r)))
        reply->answer = ZKL_ANSWER_NOWATCHER;
    watch_remove(&h->armed, r->path, unwatched(r));
}

static void serve_sync(struct fake_handle *h, const struct zkl_request *r, struct zkl_reply *reply)
{
    (void)r, (void)reply;
    fake_catch_up(h, h->fake->zxid);
}

/* No lock asks the others. */
static const struct {
    void (*serve)(struct fake_handle *h, const struct zkl_request *r, struct zkl_reply *reply);
    enum { FOR_ALL, WRITE, READ } what;
} kinds[ZKL_REQUEST_KINDS] = {
    [ZKL_REQ_CREATE] = {serve_create, WRITE},
    [ZKL_REQ_MAKE] = {serve_make, WRITE},
    [ZKL_REQ_DELETE] = {serve_delete, WRITE},
    [ZKL_REQ_CREATE_ALL] = {serve_transaction, WRITE},
    [ZKL_REQ_DELETE_ALL] = {serve_transaction, WRITE},
    [ZKL_REQ_RENEW] = {serve_renew, WRITE},
    [ZKL_REQ_SET] = {serve_set, WRITE},
    [ZKL_REQ_CHECK_ALL] = {serve_checks, WRITE},
    [ZKL_REQ_SYNC] = {serve_sync, FOR_ALL},
    [ZKL_REQ_UNWATCH] = {serve_unwatch, READ},
    [ZKL_REQ_LIST] = {serve_read, READ},
    [ZKL_REQ_LIST_LOCK_PATH] = {serve_read, READ},
    [ZKL_REQ_STAT] = {serve_read, READ},
    [ZKL_REQ_GET] = {serve_read, READ},
    [ZKL_REQ_WATCH] = {serve_read, READ},
    [ZKL_REQ_KEEPALIVE] = {serve_read, READ},
};

bool fake_is_read(enum zkl_request_kind kind)
{
    return kinds[kind].what == READ;
}

static void serve_one(struct fake_handle *h, const struct zkl_request *r, struct zkl_reply *reply)
{
    bool writes = kinds[r->kind].what == WRITE;
    h->fake->zxid += writes; /* failures are transactions too */
    reply->answer = ZKL_ANSWER_OK;
    kinds[r->kind].serve(h, r, reply);
    bool shows = r->kind != ZKL_REQ_CHECK_ALL || !fake_breaks(h->fake, FAKE_BARRIER_IS_A_READ);
    if (writes && shows)
        fake_catch_up(h, h->fake->zxid);
}

/* NettyServerCnxn.receiveMessage works through all that it has read, whether the connection is
 * closed meanwhile or not; the session has come back to the same server. */
static void serve_late(struct fake_handle *h)
{
    struct fake_message *message;
    h->late_ms = INT64_MAX;
    while ((message = queue_take(&h->late))) {
        if (fake_alive(h->fake, h->session) && !h->isolated) {
            h->fake->tally[FAKE_LATE_WRITE]++;
            serve_one(h, &message->request, &message->reply);
        }
        fake_message_free(message);
    }
}

static void release_held(struct fake *fake)
{
    each_fake_handle(fake, h) {
        if (h->stalled)
            queue_move(&h->in, &h->held);
        h->stalled = false;
    }
}

/* Without the others a server answers reads, whether the session lives or not. A request for the
 * leader waits, and all requests of this session that come after it. */
static bool is_served_alone(struct fake_handle *h)
{
    enum zkl_request_kind kind = h->out.first->request.kind;
    bool read = fake_is_read(kind), sync = kind == ZKL_REQ_SYNC && h->deposed;
    h->fake->tally[FAKE_STALE_READ] += read;
    h->fake->tally[FAKE_STALE_SYNC] += sync;
    bool proof = kind == ZKL_REQ_CHECK_ALL && fake_breaks(h->fake, FAKE_PROVED_ALONE);
    return read || sync || proof || fake_breaks(h->fake, FAKE_MINORITY_WRITES);
}

/* What the leader checks: PrepRequestProcessor.checkSession. With local sessions it takes one that it
 * does not know for another server's, unless ephemeral nodes are concerned. */
static bool is_served(struct fake_handle *h)
{
    enum zkl_request_kind kind = h->out.first->request.kind;
    if (h->isolated)
        return is_served_alone(h);
    if (!fake_is_read(kind))
        touches_flush(h);
    if (fake_alive(h->fake, h->session))
        return true;
    if (kind == ZKL_REQ_CREATE && fake_breaks(h->fake, FAKE_CREATE_AFTER_END))
        return true;
    bool local = h->fake->rules.local_sessions && (kind == ZKL_REQ_SET || kind == ZKL_REQ_MAKE);
    h->fake->tally[FAKE_UNKNOWN_WRITES] += local;
    return local || (!fake_is_read(kind) && fake_breaks(h->fake, FAKE_UNCHECKED));
}

/* With eager checks of ACLs a server answers errors that the leader does not hear of: here that of a
 * node of the session's own which its client may not read any more. */
static bool is_refused(struct fake_handle *h, size_t *check)
{
    const struct zkl_request *r = &h->out.first->request;
    if (!h->fake->rules.eager || r->kind != ZKL_REQ_CHECK_ALL || r->check_count == 0)
        return false;
    *check = fake_random(h->fake->prng, (unsigned)r->check_count);
    const struct fake_node *node = fake_find(h->fake, r->checks[*check]);
    return node && node->owner == h->session && fake_chance(h->fake->prng, h->isolated ? 8 : 100);
}

/* Too busy, no quota, read-only, and its other refusals: the server carries out nothing. In a
 * transaction its answer blames some part, or none. */
static bool would_not(struct fake_handle *h, struct zkl_reply *reply)
{
    static const enum zkl_answer answers[] = {ZKL_ANSWER_LINK,          ZKL_ANSWER_LINK,
                                              ZKL_ANSWER_QUOTA,         ZKL_ANSWER_READONLY,
                                              ZKL_ANSWER_UNIMPLEMENTED, ZKL_ANSWER_BADPATH};
    const struct zkl_request *r = &h->out.first->request;
    unsigned once_in = h->fake->would_not_once_in;
    if (h->too_busy) {
        h->too_busy = false;
        reply->answer = ZKL_ANSWER_LINK;
        reply->failed_check = r->check_count;
        return true;
    }
    if (once_in == 0 || r->kind == ZKL_REQ_KEEPALIVE || !fake_chance(h->fake->prng, once_in))
        return false;
    reply->answer = answers[fake_random(h->fake->prng, sizeof answers / sizeof *answers)];
    reply->failed_check = fake_random(h->fake->prng, (unsigned)r->check_count + 1);
    if (reply->answer == ZKL_ANSWER_LINK)
        reply->failed_check = r->check_count;
    h->fake->tally[FAKE_WOULD_NOT]++;
    return true;
}

static bool is_unknown(const struct fake *fake, const struct zkl_request *r)
{
    bool make = r->kind == ZKL_REQ_MAKE, create = r->kind == ZKL_REQ_CREATE && r->check_count == 0;
    enum zkl_opcode opcode = ZKL_OPCODE_OTHER;
    if (make && !r->flag)
        opcode = ZKL_OPCODE_CONTAINER;
    else if ((make || create) && !r->plain)
        opcode = ZKL_OPCODE_CREATE2;
    else if (r->kind == ZKL_REQ_UNWATCH)
        opcode = ZKL_OPCODE_REMOVE_WATCHES;
    return fake->unknown[opcode];
}

static void note(struct fake_handle *h)
{
    bool noted = !fake_breaks(h->fake, FAKE_UNTOUCHED_ANSWER) || fake_chance(h->fake->prng, 4);
    if (noted)
        touches_note(h);
}

/* Let the first message of this kind that is not in front overtake all others. */
static void to_the_front(struct fake_queue *queue,
                         bool (*is_it)(const struct fake_message *message))
{
    struct fake_message **at = queue->first ? &queue->first->next : &queue->first;
    while (*at && !is_it(*at))
        at = &(*at)->next;
    struct fake_message *message = *at;
    if (!message)
        return;
    *at = message->next;
    if (!*at)
        queue->end = at;
    message->next = queue->first;
    queue->first = message;
}

static bool is_list(const struct fake_message *message)
{
    return message->request.kind == ZKL_REQ_LIST;
}

static void overtake(struct fake_handle *h)
{
    if (h->out.first->request.kind == ZKL_REQ_CREATE &&
        fake_breaks_once(h->fake, FAKE_LIST_OVERTAKES, 2))
        to_the_front(&h->out, is_list);
}

/* UnimplementedRequestProcessor, or what servers of other makes do. */
static void hang_up(struct fake_handle *h)
{
    h->fake->tally[FAKE_HUNG_UP]++;
    h->serves_no_more = true;
    fake_break(h);
    h->serves_no_more = false;
}

bool fake_serve(struct fake_handle *h)
{
    if (!h->linked || h->stuck || h->serves_no_more || !h->out.first)
        return false;
    bool unknown = is_unknown(h->fake, &h->out.first->request);
    if (unknown && h->fake->manner == FAKE_HANGS_UP) {
        hang_up(h);
        return true;
    }
    size_t check = 0;
    bool refused = is_refused(h, &check);
    if (!refused && !is_served(h))
        return false;
    note(h);
    release_held(h->fake);
    overtake(h);
    struct zkl_reply reply = {.answer = ZKL_ANSWER_NOAUTH, .failed_check = check};
    if (unknown)
        reply.answer = ZKL_ANSWER_UNIMPLEMENTED;
    bool done = unknown || refused || would_not(h, &reply);
    struct fake_message *message = queue_take(&h->out);
    reply.id = message->request.id;
    h->fake->tally[FAKE_OWN_ERROR] += refused;
    if (!done)
        serve_one(h, &message->request, &reply);
    struct fake_message *answer = to_client(h, FAKE_REPLY);
    answer->request = message->request; /* its texts move along */
    answer->reply = reply;
    answer->reply.stamp = message->request.stamp;
    message->request = (struct zkl_request){0};
    fake_message_free(message);
    if (unknown && h->fake->manner == FAKE_SAYS_SO_AND_HANGS_UP)
        hang_up(h);
    return true;
}

/* libzookeeper's tables change as an answer passes through. */
static void note_watch(struct fake_handle *h, const struct fake_message *message)
{
    const struct zkl_request *r = &message->request;
    if (message->reply.answer != ZKL_ANSWER_OK)
        return;
    if (r->kind == ZKL_REQ_WATCH)
        watch_add(&h->known, r->path, ZKL_WATCH_DATA, r->watch_id);
    if (r->kind == ZKL_REQ_LIST_LOCK_PATH && r->watch_id != 0)
        watch_add(&h->known, r->path, ZKL_WATCH_CHILD, r->watch_id);
    while (r->kind == ZKL_REQ_UNWATCH && watch_remove(&h->known, r->path, unwatched(r)) != 0)
        ;
}

static void receive(struct fake_handle *h, struct fake_message *message)
{
    if (message->received)
        return;
    message->received = true;
    if (message->type != FAKE_FIRED && message->zxid > h->seen)
        h->seen = message->zxid; /* an event does not say when */
    if (message->type == FAKE_REPLY && message->request.path)
        note_watch(h, message);
    while (message->type == FAKE_FIRED && watch_find(&h->known, message->path, message->watch)) {
        assert(message->id_count < sizeof message->ids / sizeof *message->ids);
        message->ids[message->id_count++] = watch_remove(&h->known, message->path, message->watch);
    }
}

void fake_receive(struct fake_handle *h)
{
    for (struct fake_message *message = h->in.first; message; message = message->next)
        receive(h, message);
}

static bool is_forged(const struct fake_handle *h, const struct fake_message *message)
{
    enum zkl_request_kind kind = message->request.kind;
    return fake_breaks(h->fake, FAKE_FORGED) &&
           (kind == ZKL_REQ_CHECK_ALL || kind == ZKL_REQ_DELETE || kind == ZKL_REQ_DELETE_ALL);
}

/* The client considers it lost, but the server that the link led to has read it. */
static bool comes_late(struct fake_handle *h, struct fake_message *message)
{
    enum zkl_request_kind kind = message->request.kind;
    bool waits = kind == ZKL_REQ_CHECK_ALL || kind == ZKL_REQ_SYNC || fake_is_read(kind);
    if (!h->fake->reads_ahead || h->isolated || message->type != FAKE_REQUEST || waits ||
        !h->session || !fake_chance(h->fake->prng, 2))
        return false;
    append(&h->late, message);
    return true;
}

static void answer_link(struct fake_handle *h, struct fake_queue *queue)
{
    struct fake_message *message;
    while ((message = queue_take(queue))) {
        h->fake->tally[FAKE_REQUEST_LOST] += message->type == FAKE_REQUEST;
        h->fake->tally[FAKE_ANSWER_LOST] += message->type == FAKE_REPLY;
        h->fake->tally[FAKE_EVENT_LOST] += message->type == FAKE_FIRED;
        h->fake->tally[FAKE_NEVER_WRITTEN] +=
            message->type == FAKE_REQUEST && h->isolated && !fake_is_read(message->request.kind);
        if (message->type == FAKE_REQUEST || message->type == FAKE_REPLY) {
            struct fake_message *reply = queue_add(&h->in, FAKE_REPLY);
            reply->reply.id =
                message->type == FAKE_REQUEST ? message->request.id : message->reply.id;
            reply->reply.answer = ZKL_ANSWER_LINK;
            reply->reply.hung_up = h->hung_up;
            if (is_forged(h, message)) {
                reply->reply.answer = ZKL_ANSWER_OK;
                reply->reply.hung_up = false;
            }
            reply->reply.stamp = message->request.stamp;
        }
        if (!comes_late(h, message))
            fake_message_free(message);
    }
}

/* What had not been received yet is lost. */
static void lose_some(struct fake_handle *h, struct fake_queue *lost)
{
    struct fake_queue all;
    struct fake_message *message;
    unsigned arrived = fake_random(h->fake->prng, (unsigned)h->in.count + 1);
    queue_init(&all);
    queue_move(&all, &h->in);
    for (unsigned i = 0; (message = queue_take(&all)); i++) {
        bool told = message->type != FAKE_FIRED && message->zxid == 0; /* by libzookeeper itself */
        if (i < arrived || told || message->received) {
            receive(h, message);
            append(&h->in, message);
        } else {
            append(lost, message);
        }
    }
    queue_move(lost, &h->held);
}

/* Of a session that goes on. */
static void end_one_node(struct fake_handle *h)
{
    struct fake *fake = h->fake;
    for (size_t i = 0; i < fake->node_count; i++) {
        if (fake->nodes[i].dzxid != 0 || fake->nodes[i].owner != h->session)
            continue;
        fake_delete(fake, &fake->nodes[i]);
        return;
    }
}

static void begin_link(struct fake_handle *h, bool wrongly, bool silently);

void fake_break(struct fake_handle *h)
{
    struct fake_queue lost;
    queue_init(&lost);
    if (!h->linked)
        return;
    /* Some more requests are carried out, some answers have come already; the rest gets lost. */
    for (unsigned n = fake_random(h->fake->prng, 4); n > 0 && !h->stuck; n--)
        fake_serve(h);
    lose_some(h, &lost);
    h->fake->tally[FAKE_CUT]++;
    h->hung_up = !h->stuck;
    h->stalled = h->stuck = h->linked = false;
    if (!h->isolated)
        touches_part(h);
    h->down_ms = h->fake->now_ms;
    if (fake_breaks(h->fake, FAKE_ONE_BY_ONE))
        end_one_node(h);
    if (fake_breaks(h->fake, FAKE_FORGED))
        answer_link(h, &lost);
    if (fake_breaks_once(h->fake, FAKE_SILENT_LINK, 2) && fake_alive(h->fake, h->session)) {
        answer_link(h, &lost);
        watch_clear(&h->armed);
        h->isolated = h->deposed = false;
        begin_link(h, false, true);
        return;
    }
    queue_add(&h->in, FAKE_DOWN);
    answer_link(h, &lost);
    answer_link(h, &h->out);
    h->isolated = h->deposed = false;
    watch_clear(&h->armed);
}

void fake_rejoin(struct fake_handle *h)
{
    h->isolated = h->deposed = false;
    touches_follow(h);
}

/* Has it happened to path since the client heard of the server last? */
static bool is_notification(const struct fake_handle *h, const char *path, int what)
{
    each_change(h->fake, c) {
        if ((int)c->what == what && c->zxid > h->seen && c->zxid <= h->view &&
            strcmp(c->path, path) == 0)
            return true;
    }
    return false;
}

static bool is_named_before(const struct fake_watches *w, size_t i)
{
    for (size_t j = 0; j < i; j++) {
        if (w->list[j].type == w->list[i].type && strcmp(w->list[j].path, w->list[i].path) == 0)
            return true;
    }
    return false;
}

/* libzookeeper sends the new server its watches, which catches up on missed changes: only the
 * node's present state counts, and one that was deleted and made again has changed. */
static void set_watches(struct fake_handle *h)
{
    for (size_t i = 0; i < h->known.count; i++) {
        const struct fake_watch *w = &h->known.list[i];
        const struct fake_node *node = find_at(h->fake, w->path, h->view);
        int what = w->type == ZKL_WATCH_DATA ? FAKE_CHANGED : FAKE_CHILDREN;
        if (is_named_before(&h->known, i))
            continue;
        watch_add(&h->armed, w->path, w->type, 0);
        if (!node)
            fire(h, w->path, w->type, ZKL_FIRED_DELETED);
        else if (node->czxid > h->seen || is_notification(h, w->path, what))
            fire(h, w->path, w->type, ZKL_FIRED_OTHER);
    }
}

static void expire_handle(struct fake_handle *h)
{
    h->expired = true;
    h->hung_up = false;
    queue_add(&h->in, FAKE_EXPIRED);
    answer_link(h, &h->out);
}

static int64_t some_view(struct fake_handle *h)
{
    int64_t behind = h->fake->zxid - h->seen;
    if (h->comes_behind)
        return h->seen;
    if (fake_breaks_once(h->fake, FAKE_BACK_IN_TIME, 2))
        return h->seen - fake_random(h->fake->prng, 20);
    if (behind > 0 && fake_breaks(h->fake, FAKE_BARRIER_IS_A_READ))
        return h->seen;
    if (behind <= 0 || h->fake->prng->plain || fake_chance(h->fake->prng, 2))
        return h->fake->zxid;
    return h->seen + fake_random(h->fake->prng, (unsigned)behind + 1);
}

/* A server's answer that comes too late for its attempt, which has touched the session when it began. */
static void fail_to_connect(struct fake_handle *h)
{
    struct fake_session *session = fake_session_of(h->fake, h->session);
    bool untouched = fake_breaks(h->fake, FAKE_UNTOUCHED_LINK);
    bool asked = untouched || h->outdated || fake_chance(h->fake->prng, 4);
    if (session && !session->dead && !h->forgotten && asked) {
        if (!untouched)
            touches_attempt(h, session);
        h->attempted = true;
    }
    answer_link(h, &h->out);
}

static void negotiate(struct fake_handle *h)
{
    int timeout_ms = touches_negotiate(h);
    h->fake->tally[FAKE_RAISED] += h->session != 0 && timeout_ms > h->timeout_ms;
    h->fake->tally[FAKE_LOWERED] += h->session != 0 && timeout_ms < h->timeout_ms;
    h->timeout_ms = timeout_ms;
}

/* After the next link, and before the client has looked for it for the last time. Of a timeout that
 * a server has raised no client knows whether it holds, also after another one has lowered it. */
static int longest_late_ms(const struct fake_handle *h)
{
    int capped_ms = h->fake->rules.capped_ms;
    int least_ms = h->timeout_ms < FAKE_TIMEOUT_MS ? h->timeout_ms : FAKE_TIMEOUT_MS;
    return (capped_ms != 0 && capped_ms < least_ms ? capped_ms : least_ms) / 2;
}

/* silently: no event reports it. */
static void begin_link(struct fake_handle *h, bool wrongly, bool silently)
{
    h->linked = true;
    negotiate(h);
    if (h->late.first && fake_chance(h->fake->prng, 3))
        queue_clear(&h->late); /* to another server: the leader refuses them (B12) */
    if (h->late.first && h->late_ms == INT64_MAX)
        h->late_ms = h->fake->now_ms + fake_random(h->fake->prng, longest_late_ms(h));
    if (h->session == 0) {
        h->session = session_new(h->fake, h->timeout_ms);
        h->view = h->seen = h->fake->zxid;
    }
    touches_meet(h, wrongly);
    if (!silently)
        queue_add(&h->in, FAKE_UP);
    h->view = some_view(h);
    h->fake->tally[FAKE_LAG] += h->view < h->fake->zxid;
    set_watches(h);
}

void fake_connect(struct fake_handle *h, bool succeeds)
{
    if (h->linked || h->expired)
        return;
    if (h->forgotten || !succeeds) {
        fail_to_connect(h);
        return;
    }
    if (h->session != 0 && h->fake->resumes_none && fake_alive(h->fake, h->session)) {
        h->fake->tally[FAKE_NOT_RESUMED]++;
        expire_handle(h);
        return;
    }
    if (h->session != 0 && !fake_alive(h->fake, h->session)) {
        if (!fake_breaks(h->fake, FAKE_NEW_SESSION)) {
            expire_handle(h);
            return;
        }
        h->claimed = h->claimed ? h->claimed : h->session;
        h->session = 0;
    }
    /* Learner.pendingRevalidations has one connection for each session. */
    bool always = fake_breaks(h->fake, FAKE_UNTOUCHED_LINK);
    bool wrongly = h->attempted && (always || fake_chance(h->fake->prng, 2));
    h->outdated = h->session != 0 && fake_breaks_once(h->fake, FAKE_LOST_LATE, 2);
    if (h->outdated) {
        fail_to_connect(h);
        wrongly = true;
    }
    h->attempted = false;
    h->fake->tally[FAKE_WRONG_ANSWER] += wrongly;
    begin_link(h, wrongly, false);
}

static bool is_answer(const struct fake_message *message)
{
    return message->type == FAKE_REPLY;
}

static bool is_event(const struct fake_message *message)
{
    return message->type == FAKE_FIRED;
}

/* Deliver events in another order than they came. */
static void shuffle(struct fake_handle *h)
{
    if (h->in.first->type == FAKE_FIRED && fake_breaks_once(h->fake, FAKE_EVENTS_SHUFFLED, 2))
        to_the_front(&h->in, is_event);
}

/* An event that waits for the next answer, mostly. */
static bool comes_after_an_answer(struct fake_handle *h)
{
    bool late = h->in.first->type == FAKE_FIRED && fake_breaks(h->fake, FAKE_EVENT_LATE) &&
                !fake_chance(h->fake->prng, 8);
    if (late)
        to_the_front(&h->in, is_answer);
    return late && h->in.first->type == FAKE_FIRED;
}

static void tell(struct fake_handle *h, const struct fake_message *message)
{
    if (message->zxid > h->told)
        h->told = message->zxid;
    bool says_so = message->type == FAKE_FIRED && message->fired == ZKL_FIRED_DELETED;
    for (size_t i = 0; says_so && i < h->fake->node_count; i++) {
        struct fake_node *node = &h->fake->nodes[i];
        bool is_gone = node->dzxid != 0 && node->owner == h->session;
        node->is_told |= is_gone && strcmp(node->path, message->path) == 0;
    }
}

bool fake_has_told(const struct fake_handle *h, const struct fake_node *node)
{
    return node->dzxid != 0 &&
           (node->is_told || (node->dzxid <= h->told && node->dzxid <= h->view));
}

struct fake_message *fake_next(struct fake_handle *h)
{
    if (h->in.first && h->fake->rules.broken)
        shuffle(h);
    if (h->in.first && comes_after_an_answer(h))
        return NULL;
    struct fake_message *message = queue_take(&h->in);
    if (!message)
        return NULL;
    receive(h, message);
    tell(h, message);
    return message;
}
