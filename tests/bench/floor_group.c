/* SPDX-License-Identifier: Apache-2.0 */
/* The floor of group commit: what the locks of many threads cost at least if their creates and deletes go out in one
 * transaction, one at a time, with all that came while the one before was under way. Like floor.c correct, but no error
 * is handled. The token has its request: a look at the first path, behind the transaction, whose Stat has the zxid. That
 * a node is the first in its queue its number says, if the one before was this thread's too, else a list.
 *
 * bench.py runs this file only if its checksum is the one in floor.sha256. */
#include "peer.h"

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <zookeeper/zookeeper.h>

#define PATH_BYTES 128
#define DIGITS 10
#define PARTS 64

struct waiter;

/* A create or a delete that is to go out. */
struct wish {
    struct wish *next;
    struct waiter *waiter;
    bool creates;
};

struct waiter {
    pthread_mutex_t mu; /* protects done */
    pthread_cond_t cond;
    bool done;
    struct wish lock, unlock;
    char dir[PATH_BYTES], prefix[2 * PATH_BYTES];
    char path[2 * PATH_BYTES]; /* of its node, with the number */
    int next_number;           /* behind that of its own last node there */
    int64_t token;
};

static zhandle_t *zh;
static struct waiter *waiters;
static bool posted; /* unlock does not wait for its answer */

/* What waits, and what is under way. */
static struct {
    pthread_mutex_t mu;
    struct wish *first, **end;
    bool busy;
    struct wish *out[PARTS];
    zoo_op_t ops[PARTS];
    zoo_op_result_t results[PARTS];
    int count;
    struct waiter *creator; /* the first that creates; NULL: none does */
} line = {.mu = PTHREAD_MUTEX_INITIALIZER};

/* --- waking the caller ------------------------------------------------------------------------ */

static void wait_done(struct waiter *w)
{
    pthread_mutex_lock(&w->mu);
    while (!w->done)
        pthread_cond_wait(&w->cond, &w->mu);
    pthread_mutex_unlock(&w->mu);
}

static void wake(struct waiter *w)
{
    pthread_mutex_lock(&w->mu);
    w->done = true;
    pthread_mutex_unlock(&w->mu);
    pthread_cond_signal(&w->cond);
}

/* --- where others came between ---------------------------------------------------------------- */

static void look(struct waiter *w);

static void watched(zhandle_t *handle, int type, int state, const char *path, void *waiter)
{
    (void)handle;
    (void)state;
    (void)path;
    if (type == ZOO_DELETED_EVENT)
        look(waiter);
}

static void watch_set(int rc, const struct Stat *stat, const void *waiter)
{
    (void)stat;
    if (rc == ZNONODE)
        look((struct waiter *)waiter);
}

static const char *digits(const char *name)
{
    return name + strlen(name) - DIGITS;
}

static void listed(int rc, const struct String_vector *names, const void *waiter)
{
    struct waiter *w = (struct waiter *)waiter;
    const char *before = NULL;
    char path[4 * PATH_BYTES];

    (void)rc;
    for (int i = 0; i < names->count; i++) {
        const char *name = names->data[i];
        if (strcmp(digits(name), digits(w->path)) < 0 &&
            (before == NULL || strcmp(digits(name), digits(before)) > 0))
            before = name;
    }
    if (before == NULL) {
        wake(w);
        return;
    }
    snprintf(path, sizeof path, "%s/%s", w->dir, before);
    zoo_awexists(zh, path, watched, w, watch_set, w);
}

static void look(struct waiter *w)
{
    zoo_aget_children(zh, w->dir, 0, listed, w);
}

/* --- transactions ------------------------------------------------------------------------------ */

static void send_line(void);

static void ended(struct wish *wish, int64_t zxid)
{
    struct waiter *w = wish->waiter;
    if (!wish->creates) {
        if (!posted)
            wake(w);
        return;
    }
    int number = atoi(digits(w->path));
    bool next = number == w->next_number;
    w->next_number = number + 1;
    w->token = zxid;
    if (next)
        wake(w);
    else
        look(w);
}

/* The next one goes out before anybody is woken. */
static void all_ended(int64_t zxid)
{
    struct wish *out[PARTS];
    int count = line.count;

    memcpy(out, line.out, sizeof out);
    pthread_mutex_lock(&line.mu);
    send_line();
    pthread_mutex_unlock(&line.mu);
    for (int i = 0; i < count; i++)
        ended(out[i], zxid);
}

static void committed(int rc, const void *nothing)
{
    (void)rc;
    (void)nothing;
    if (line.creator == NULL)
        all_ended(0);
}

static void looked(int rc, const struct Stat *stat, const void *nothing)
{
    (void)rc;
    (void)nothing;
    all_ended(stat->pzxid);
}

static void put(struct wish *wish)
{
    struct waiter *w = wish->waiter;
    zoo_op_t *op = &line.ops[line.count];

    line.out[line.count++] = wish;
    if (!wish->creates) {
        zoo_delete_op_init(op, w->path, -1);
        return;
    }
    zoo_create_op_init(op, w->prefix, "", 0, &ZOO_OPEN_ACL_UNSAFE, ZOO_EPHEMERAL | ZOO_SEQUENCE,
                       w->path, sizeof w->path);
    if (line.creator == NULL)
        line.creator = w;
}

/* With the line's mutex, and nothing under way. */
static void send_line(void)
{
    line.count = 0;
    line.creator = NULL;
    line.busy = line.first != NULL;
    while (line.first != NULL && line.count < PARTS) {
        put(line.first);
        line.first = line.first->next;
    }
    if (line.first == NULL)
        line.end = &line.first;
    if (!line.busy)
        return;
    zoo_amulti(zh, line.count, line.ops, line.results, committed, NULL);
    if (line.creator != NULL)
        zoo_aexists(zh, line.creator->dir, 0, looked, NULL);
}

static void ask(struct wish *wish)
{
    pthread_mutex_lock(&line.mu);
    wish->next = NULL;
    *line.end = wish;
    line.end = &wish->next;
    if (!line.busy)
        send_line();
    pthread_mutex_unlock(&line.mu);
}

static void group_lock(enum kind kind, int thread, int lock)
{
    struct waiter *w = &waiters[thread];

    (void)kind;
    (void)lock;
    w->done = false;
    ask(&w->lock);
    wait_done(w);
}

static void group_unlock(enum kind kind, int thread, int lock)
{
    struct waiter *w = &waiters[thread];

    (void)kind;
    (void)lock;
    w->done = false;
    ask(&w->unlock);
    if (!posted)
        wait_done(w);
}

/* --- the connection ---------------------------------------------------------------------------- */

static pthread_mutex_t mu = PTHREAD_MUTEX_INITIALIZER; /* protects connected */
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static bool connected;

static void session_event(zhandle_t *handle, int type, int state, const char *path, void *data)
{
    (void)handle;
    (void)path;
    (void)data;
    if (type != ZOO_SESSION_EVENT || state != ZOO_CONNECTED_STATE)
        return;
    pthread_mutex_lock(&mu);
    connected = true;
    pthread_cond_signal(&cond);
    pthread_mutex_unlock(&mu);
}

static void connect_to(const char *servers)
{
    zoo_set_debug_level(ZOO_LOG_LEVEL_ERROR);
    zh = zookeeper_init(servers, session_event, SESSION_MS, NULL, NULL, 0);
    if (zh == NULL)
        peer_fail("zookeeper_init");
    zoo_set_servers_resolution_delay(zh, -1);
    pthread_mutex_lock(&mu);
    while (!connected)
        pthread_cond_wait(&cond, &mu);
    pthread_mutex_unlock(&mu);
}

static void make_waiter(struct waiter *w, const struct settings *given, int thread)
{
    pthread_mutex_init(&w->mu, NULL);
    pthread_cond_init(&w->cond, NULL);
    w->lock = (struct wish){.waiter = w, .creates = true};
    w->unlock = (struct wish){.waiter = w};
    snprintf(w->dir, sizeof w->dir, "%s-%d", given->path, thread % given->locks);
    snprintf(w->prefix, sizeof w->prefix, "%s/f%08x-%08x-", w->dir, (unsigned)given->index,
             (unsigned)thread);
}

static void group_open(const struct settings *given)
{
    char dir[PATH_BYTES];

    if (strcmp(given->mode, "cycle") != 0)
        peer_fail("this floor is for single locks");
    posted = strcmp(given->variant, "posted") == 0;
    line.end = &line.first;
    connect_to(given->servers);
    snprintf(dir, sizeof dir, "%.*s", (int)(strrchr(given->path, '/') - given->path), given->path);
    zoo_create(zh, dir, "", 0, &ZOO_OPEN_ACL_UNSAFE, 0, NULL, 0);
    waiters = calloc((size_t)given->threads, sizeof *waiters);
    if (waiters == NULL)
        peer_fail("no memory");
    for (int i = 0; i < given->threads; i++) {
        make_waiter(&waiters[i], given, i);
        zoo_create(zh, waiters[i].dir, "", 0, &ZOO_OPEN_ACL_UNSAFE, 0, NULL, 0);
    }
}

static void group_close(void)
{
    zookeeper_close(zh);
    free(waiters);
}

int main(int argc, char **argv)
{
    static const struct peer group_peer = {
        .open = group_open, .lock = group_lock, .unlock = group_unlock, .close = group_close};

    return peer_main(argc, argv, &group_peer);
}
