/* SPDX-License-Identifier: Apache-2.0 */
/* The floors: what a correct lock on libzookeeper_mt costs at least. No error is handled, no name
 * is unique beyond this benchmark, nothing is told to the caller; what is left is what ZooKeeper's
 * protocol and its client ask for. docs/benchmarks.md says what each is.
 *
 * bench.py runs this file only if its checksum is the one in floor.sha256: a slower floor would
 * flatter the library. */
#include "peer.h"

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <zookeeper/zookeeper.h>

#define PATH_BYTES 128
#define DIGITS 10
#define PARTS 64 /* of a group */
#define OWNER "buildhost 12345 12345"

/* One place in one queue. */
struct place {
    struct waiter *waiter;
    char dir[PATH_BYTES];
    char prefix[PATH_BYTES]; /* of its node; all are of the same length */
    char path[PATH_BYTES];   /* of its node, with the number */
    bool is_second;          /* only the head was before it in the list it has seen */
};

/* A create or a delete that is to go out with others. */
struct wish {
    struct wish *next;
    struct waiter *waiter;
    bool creates;
};

/* One thread, and the locks it waits for together. */
struct waiter {
    pthread_mutex_t mu; /* protects done */
    pthread_cond_t cond;
    bool done;
    int left; /* places that are not granted yet; the completion thread's alone */
    struct place place[MEMBERS];
    struct wish lock, unlock; /* of a group, as the next two */
    int next_number;          /* behind that of its own last node there */
    int64_t token;
};

static struct {
    bool sync;   /* create and delete, and nobody looks at the queue: no lock */
    bool posted; /* unlock does not wait for the delete's answer */
    bool ahead;  /* who is third or later watches the node two places before */
    bool named;  /* names of the length that Curator's have, and data that tells whose node it is */
    bool group;  /* creates and deletes of all threads go out together */
} variant;

static zhandle_t *zh;
static struct waiter *waiters;
static const struct settings *settings;

static void look(struct place *p);

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

static void granted(struct place *p)
{
    if (--p->waiter->left == 0)
        wake(p->waiter);
}

/* --- waiting for the one before --------------------------------------------------------------- */

static void gone(struct place *p)
{
    if (variant.ahead && p->is_second)
        granted(p);
    else
        look(p);
}

static void watched(zhandle_t *handle, int type, int state, const char *path, void *place)
{
    (void)handle;
    (void)state;
    (void)path;
    if (type == ZOO_DELETED_EVENT)
        gone(place);
}

static void got(int rc, const char *value, int length, const struct Stat *stat, const void *place)
{
    (void)value;
    (void)length;
    (void)stat;
    if (rc == ZNONODE)
        gone((struct place *)place);
}

/* --- the list --------------------------------------------------------------------------------- */

static void watch(struct place *p, const char *name)
{
    char path[2 * PATH_BYTES];

    snprintf(path, sizeof path, "%s/%s", p->dir, name);
    zoo_awget(zh, path, watched, p, got, p);
}

/* All names are of one length, so their numbers are compared as text. */
static void listed(int rc, const struct String_vector *names, const void *place)
{
    struct place *p = (struct place *)place;
    size_t at = strlen(p->prefix) - strlen(p->dir) - 1;
    const char *mine = p->path + strlen(p->prefix);
    const char *last = NULL, *last_but_one = NULL;

    (void)rc;
    for (int i = 0; i < names->count; i++) {
        const char *name = names->data[i];
        if (memcmp(name + at, mine, DIGITS) >= 0)
            continue;
        if (last == NULL || memcmp(name + at, last + at, DIGITS) > 0) {
            last_but_one = last;
            last = name;
        } else if (last_but_one == NULL || memcmp(name + at, last_but_one + at, DIGITS) > 0) {
            last_but_one = name;
        }
    }
    p->is_second = last_but_one == NULL;
    if (last == NULL)
        granted(p);
    else
        watch(p, variant.ahead && last_but_one != NULL ? last_but_one : last);
}

static void look(struct place *p)
{
    zoo_aget_children(zh, p->dir, 0, listed, p);
}

/* --- lock and unlock -------------------------------------------------------------------------- */

static void created(int rc, const char *value, const void *place)
{
    (void)rc;
    strcpy(((struct place *)place)->path, value);
}

static void done(int rc, const void *waiter)
{
    (void)rc;
    if (waiter != NULL)
        wake((struct waiter *)waiter);
}

static int owner_bytes(void)
{
    return variant.named ? (int)strlen(OWNER) : 0;
}

static void lock_one(struct waiter *w, struct place *p)
{
    if (variant.sync) {
        zoo_create(zh, p->prefix, "", 0, &ZOO_OPEN_ACL_UNSAFE, ZOO_EPHEMERAL | ZOO_SEQUENCE,
                   p->path, sizeof p->path);
        return;
    }
    w->done = false;
    w->left = 1;
    zoo_acreate(zh, p->prefix, OWNER, owner_bytes(), &ZOO_OPEN_ACL_UNSAFE,
                ZOO_EPHEMERAL | ZOO_SEQUENCE, created, p);
    look(p);
    wait_done(w);
}

static void unlock_one(struct waiter *w, struct place *p)
{
    if (variant.sync) {
        zoo_delete(zh, p->path, -1);
        return;
    }
    w->done = false;
    zoo_adelete(zh, p->path, -1, done, variant.posted ? NULL : w);
    if (!variant.posted)
        wait_done(w);
}

static void lock_all(struct waiter *w)
{
    zoo_op_t ops[MEMBERS];
    zoo_op_result_t results[MEMBERS];

    for (int i = 0; i < MEMBERS; i++)
        zoo_create_op_init(&ops[i], w->place[i].prefix, OWNER, owner_bytes(), &ZOO_OPEN_ACL_UNSAFE,
                           ZOO_EPHEMERAL | ZOO_SEQUENCE, w->place[i].path, PATH_BYTES);
    if (variant.sync) {
        zoo_multi(zh, MEMBERS, ops, results);
        return;
    }
    w->done = false;
    w->left = MEMBERS;
    zoo_amulti(zh, MEMBERS, ops, results, done, NULL);
    for (int i = 0; i < MEMBERS; i++)
        look(&w->place[i]);
    wait_done(w);
}

/* The results must live until the answer is there, which a posted unlock does not wait for. */
static void unlock_all(struct waiter *w)
{
    static zoo_op_result_t results[MEMBERS];
    zoo_op_t ops[MEMBERS];

    for (int i = 0; i < MEMBERS; i++)
        zoo_delete_op_init(&ops[i], w->place[i].path, -1);
    if (variant.sync) {
        zoo_multi(zh, MEMBERS, ops, results);
        return;
    }
    w->done = false;
    zoo_amulti(zh, MEMBERS, ops, results, done, variant.posted ? NULL : w);
    if (!variant.posted)
        wait_done(w);
}

/* --- group commit -------------------------------------------------------------------------------
 *
 * What the locks of many threads cost at least if their creates and deletes go out in one transaction, one at a time,
 * with all that came while the one before was under way. The token has its request: a look at the first path, behind the
 * transaction, whose Stat has the zxid. That a node is the first in its queue its number says, if the one before was this
 * thread's too, else a list. */

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

/* --- transactions ------------------------------------------------------------------------------ */

static void send_line(void);

static void ended(struct wish *wish, int64_t zxid)
{
    struct waiter *w = wish->waiter;
    if (!wish->creates) {
        if (!variant.posted)
            wake(w);
        return;
    }
    int number = atoi(w->place[0].path + strlen(w->place[0].prefix));
    bool next = number == w->next_number;
    w->next_number = number + 1;
    w->token = zxid;
    if (next)
        wake(w);
    else
        look(&w->place[0]);
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
        zoo_delete_op_init(op, w->place[0].path, -1);
        return;
    }
    zoo_create_op_init(op, w->place[0].prefix, "", 0, &ZOO_OPEN_ACL_UNSAFE,
                       ZOO_EPHEMERAL | ZOO_SEQUENCE, w->place[0].path, sizeof w->place[0].path);
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
        zoo_aexists(zh, line.creator->place[0].dir, 0, looked, NULL);
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

static void group_lock(struct waiter *w)
{
    w->done = false;
    w->left = 1;
    ask(&w->lock);
    wait_done(w);
}

static void group_unlock(struct waiter *w)
{
    w->done = false;
    ask(&w->unlock);
    if (!variant.posted)
        wait_done(w);
}

/* --- the peer's --------------------------------------------------------------------------------- */

static void floor_lock(enum kind kind, int thread, int lock)
{
    (void)lock; /* it is the first place's */
    if (variant.group)
        group_lock(&waiters[thread]);
    else if (kind == MULTI)
        lock_all(&waiters[thread]);
    else
        lock_one(&waiters[thread], &waiters[thread].place[0]);
}

static void floor_unlock(enum kind kind, int thread, int lock)
{
    (void)lock;
    if (variant.group)
        group_unlock(&waiters[thread]);
    else if (kind == MULTI)
        unlock_all(&waiters[thread]);
    else
        unlock_one(&waiters[thread], &waiters[thread].place[0]);
}

/* --- connections ------------------------------------------------------------------------------ */

static pthread_mutex_t mu = PTHREAD_MUTEX_INITIALIZER; /* protects connected */
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static int connected;

static void session_event(zhandle_t *handle, int type, int state, const char *path, void *data)
{
    (void)handle;
    (void)path;
    (void)data;
    if (type != ZOO_SESSION_EVENT || state != ZOO_CONNECTED_STATE)
        return;
    pthread_mutex_lock(&mu);
    connected++;
    pthread_cond_signal(&cond);
    pthread_mutex_unlock(&mu);
}

static zhandle_t *connect_to(const char *servers)
{
    zhandle_t *made = zookeeper_init(servers, session_event, SESSION_MS, NULL, NULL, 0);

    if (made == NULL)
        peer_fail("zookeeper_init");
    zoo_set_servers_resolution_delay(made, -1);
    return made;
}

static void wait_connected(int count)
{
    pthread_mutex_lock(&mu);
    while (connected < count)
        pthread_cond_wait(&cond, &mu);
    pthread_mutex_unlock(&mu);
}

static zhandle_t **clients;
static int client_count;

static void floor_make_clients(int count)
{
    clients = calloc((size_t)count, sizeof(zhandle_t *));
    client_count = count;
    for (int i = 0; i < count; i++)
        clients[i] = connect_to(settings->servers);
    wait_connected(count + 1);
}

/* A thread that takes one lock only uses the first place. */
static void make_waiter(struct waiter *w, int thread, int lock)
{
    pthread_mutex_init(&w->mu, NULL);
    pthread_cond_init(&w->cond, NULL);
    w->lock = (struct wish){.waiter = w, .creates = true};
    w->unlock = (struct wish){.waiter = w};
    for (int i = 0; i < MEMBERS; i++) {
        struct place *p = &w->place[i];
        p->waiter = w;
        snprintf(p->dir, sizeof p->dir, "%s-%d", settings->path, lock + i);
        snprintf(p->prefix, sizeof p->prefix,
                 variant.named ? "%s/_c_%08x-0000-4000-8000-%012x-lock-" : "%s/f%08x-%08x-", p->dir,
                 (unsigned)settings->index, (unsigned)thread);
    }
}

static void floor_open(const struct settings *given)
{
    char dir[PATH_BYTES];

    settings = given;
    variant.sync = strcmp(given->variant, "sync") == 0;
    variant.ahead = strcmp(given->variant, "2w") == 0;
    variant.named = strcmp(given->variant, "named") == 0;
    variant.group = strncmp(given->variant, "group", 5) == 0;
    variant.posted = variant.ahead || variant.named || strcmp(given->variant, "1rt") == 0 ||
                     strcmp(given->variant, "group-posted") == 0;
    line.end = &line.first;
    if (variant.group && strcmp(given->mode, "cycle") != 0)
        peer_fail("this floor is for single locks");
    zoo_set_debug_level(ZOO_LOG_LEVEL_ERROR);
    zh = connect_to(given->servers);
    wait_connected(1);
    snprintf(dir, sizeof dir, "%.*s", (int)(strrchr(given->path, '/') - given->path), given->path);
    zoo_create(zh, dir, "", 0, &ZOO_OPEN_ACL_UNSAFE, 0, NULL, 0);
    for (int i = 0; i < given->locks + MEMBERS; i++) {
        snprintf(dir, sizeof dir, "%s-%d", given->path, i);
        zoo_create(zh, dir, "", 0, &ZOO_OPEN_ACL_UNSAFE, 0, NULL, 0);
    }
    waiters = calloc((size_t)given->threads + 1, sizeof *waiters);
    if (waiters == NULL)
        peer_fail("no memory");
    for (int i = 0; i < given->threads; i++)
        make_waiter(&waiters[i], i, i % given->locks);
    make_waiter(&waiters[given->threads], given->threads, 0); /* the holder */
}

static void floor_close(void)
{
    for (int i = 0; i < client_count; i++)
        zookeeper_close(clients[i]);
    free(clients);
    zookeeper_close(zh);
    free(waiters);
}

int main(int argc, char **argv)
{
    static const struct peer floor_peer = {.open = floor_open,
                                           .lock = floor_lock,
                                           .unlock = floor_unlock,
                                           .close = floor_close,
                                           .make_clients = floor_make_clients};

    return peer_main(argc, argv, &floor_peer);
}
