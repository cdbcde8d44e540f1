/* SPDX-License-Identifier: Apache-2.0 */
/* The library itself as a peer: what a program would write, and nothing for the benchmark. */
#include "peer.h"
#include "../lib/lock_options.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <zklock/zklock.h>

#define OPEN_MS 30000
#define LOCAL_HANDOFFS 1000
#define RETAIN_MS 10000
#define PATH_BYTES 128

static const struct settings *settings;
static struct zkl_client *client; /* the first one */
static struct zkl_client **more;  /* with settings->clients, client t - 1 for lock t */
static struct zkl_mutex *mutexes[LOCKS_MAX];
static struct zkl_rwlock *rwlock;
static struct zkl_multi *multi;
static struct zkl_mutex **own; /* of each thread and the holder, all of lock 0; NULL: none */
static struct zkl_mutex_options options;

static void must(const char *what, int rc)
{
    if (rc != 0)
        peer_fail("%s: %s: %s", what, zkl_strerror(rc), zkl_error_detail());
}

static struct zkl_mutex *mutex_of(enum kind kind, int thread, int lock)
{
    if (kind == READER)
        return zkl_rwlock_reader(rwlock);
    if (kind == WRITER)
        return zkl_rwlock_writer(rwlock);
    return own ? own[thread] : mutexes[lock];
}

static void zklock_lock(enum kind kind, int thread, int lock)
{
    must("lock",
         kind == MULTI ? zkl_multi_lock(multi) : zkl_mutex_lock(mutex_of(kind, thread, lock)));
}

static void zklock_unlock(enum kind kind, int thread, int lock)
{
    must("unlock", kind == MULTI ? zkl_multi_unlock(multi, NULL)
                                 : zkl_mutex_unlock(mutex_of(kind, thread, lock)));
}

/* --- clients and handles ---------------------------------------------------------------------- */

static struct zkl_client *open_client(void)
{
    struct zkl_client_options o = ZKL_CLIENT_OPTIONS_INIT;
    struct zkl_client *made;

    o.servers = settings->servers;
    o.session_timeout_ms = settings->session_ms > 0 ? settings->session_ms : SESSION_MS;
    o.connect_timeout_ms = OPEN_MS;
    must("open", zkl_client_open(&made, &o));
    return made;
}

/* Where there are several, thread t has the lock t to itself. */
static struct zkl_client *client_of(int lock)
{
    int which = settings->clients > 1 ? lock % settings->clients : 0;

    return which > 0 ? more[which - 1] : client;
}

static void open_more(int count)
{
    more = calloc((size_t)count, sizeof(struct zkl_client *));
    for (int i = 0; more && i < count; i++)
        more[i] = open_client();
}

static struct zkl_mutex *make_mutex(int number)
{
    char path[PATH_BYTES];
    struct zkl_mutex *made;

    snprintf(path, sizeof path, "%s-%d", settings->path, number);
    must("new", zkl_mutex_new(&made, client_of(number), path, &options));
    return made;
}

static struct zkl_mutex **handles;
static int handle_count;

static void zklock_handles(int count, enum handles_step step)
{
    if (step == HANDLES_MAKE) {
        handles = calloc((size_t)count, sizeof(struct zkl_mutex *));
        handle_count = count;
    }
    for (int i = 0; i < count; i++) {
        if (step == HANDLES_MAKE)
            handles[i] = make_mutex(i);
        else if (step == HANDLES_LOCK)
            must("lock", zkl_mutex_lock(handles[i]));
        else
            must("unlock", zkl_mutex_unlock(handles[i]));
    }
}

static struct zkl_client **clients;
static int client_count;

static void zklock_make_clients(int count)
{
    clients = calloc((size_t)count, sizeof(struct zkl_client *));
    client_count = count;
    for (int i = 0; i < count; i++)
        clients[i] = open_client();
}

/* --- an outage -------------------------------------------------------------------------------- */

static atomic_bool lost;

static void hold_changed(const struct zkl_hold_event *event, void *arg)
{
    (void)arg;
    if (event->state == ZKL_HOLD_LOST)
        atomic_store(&lost, true);
    peer_note(event->state == ZKL_HOLD_LOST      ? "LOST"
              : event->state == ZKL_HOLD_SUSPECT ? "SUSPECT"
                                                 : "HELD");
}

static void zklock_hold(void)
{
    must("callback", zkl_mutex_set_callback(mutexes[0], hold_changed, NULL));
    must("lock", zkl_mutex_lock(mutexes[0]));
}

static bool zklock_still_holds(void)
{
    int state;

    while ((state = zkl_mutex_hold_state(mutexes[0], NULL)) == ZKL_HOLD_SUSPECT ||
           (state == ZKL_HOLD_LOST && !atomic_load(&lost)))
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    return state == ZKL_HOLD_HELD;
}

/* --- the peer --------------------------------------------------------------------------------- */

static void make_multi(void)
{
    struct zkl_member members[MEMBERS];

    for (int i = 0; i < MEMBERS; i++)
        members[i] = zkl_member_mutex(mutexes[i]);
    must("new", zkl_multi_new(&multi, client, members, MEMBERS));
}

static void make_own(void)
{
    own = calloc((size_t)settings->threads + 1, sizeof(struct zkl_mutex *));
    for (int i = 0; own && i <= settings->threads; i++)
        own[i] = make_mutex(0);
}

static void zklock_open(const struct settings *given)
{
    bool multi_lock = strcmp(given->mode, "multi") == 0;
    char path[PATH_BYTES];

    settings = given;
    options = (struct zkl_mutex_options)ZKL_MUTEX_OPTIONS_INIT;
    options.posted_unlock = strcmp(given->variant, "posted") == 0;
    options.local_handoffs_max = strcmp(given->variant, "local") == 0 ? LOCAL_HANDOFFS : 0;
    options.retain_ms = strcmp(given->variant, "retained") == 0 ? RETAIN_MS : 0;
    client = open_client();
    if (given->clients > 1)
        open_more(given->clients - 1);
    for (int i = 0; i < (multi_lock ? MEMBERS : given->locks); i++)
        mutexes[i] = make_mutex(i);
    if (given->own)
        make_own();
    if (multi_lock)
        make_multi();
    if (strcmp(given->mode, "rw") == 0) {
        struct zkl_lock_options of_all = lock_options_of(&options);
        snprintf(path, sizeof path, "%s-0", given->path);
        must("new", zkl_rwlock_new(&rwlock, client, path, &of_all));
    }
}

static void zklock_close(void)
{
    if (zkl_mutex_hold_count(mutexes[0]) > 0) /* mode outage */
        zkl_mutex_unlock(mutexes[0]);
    for (int i = 0; i < client_count; i++)
        zkl_client_free(clients[i]);
    for (int i = 0; i < handle_count; i++)
        zkl_mutex_free(handles[i]);
    for (int i = 0; own && i <= settings->threads; i++)
        zkl_mutex_free(own[i]);
    zkl_multi_free(multi);
    zkl_rwlock_free(rwlock);
    for (int i = 0; i < LOCKS_MAX; i++)
        zkl_mutex_free(mutexes[i]);
    for (int i = 0; more && i < settings->clients - 1; i++)
        zkl_client_free(more[i]);
    zkl_client_free(client);
    free(more);
    free(clients);
    free(handles);
    free(own);
}

int main(int argc, char **argv)
{
    static const struct peer zklock_peer = {.open = zklock_open,
                                            .lock = zklock_lock,
                                            .unlock = zklock_unlock,
                                            .close = zklock_close,
                                            .handles = zklock_handles,
                                            .make_clients = zklock_make_clients,
                                            .hold = zklock_hold,
                                            .still_holds = zklock_still_holds};

    return peer_main(argc, argv, &zklock_peer);
}
