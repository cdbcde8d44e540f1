/* SPDX-License-Identifier: Apache-2.0 */
#include "worker.h"

#include <dirent.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "chance.h"
#include "clock.h"
#include "tool/net.h"
#include "secure.h"

#define CLOSE_MS 30000

static bool went_wrong(struct client *c, const char *what, int rc)
{
    if (rc != 0)
        shared_odd(c->shared, "process %d: %s: %s: %s", c->number, what, zkl_strerror(rc),
                   zkl_error_detail());
    return rc != 0;
}

/* --- handles ---------------------------------------------------------------------------------- */

/* Of "/chaos/PLACE/...". */
static int place_of(const char *node_path)
{
    const char *at = node_path + strlen("/chaos/");

    for (int i = 0; i < PLACES; i++) {
        size_t length = strlen(place_name(i));
        if (strncmp(at, place_name(i), length) == 0 && at[length] == '/')
            return i;
    }
    return RARE;
}

static void told(const struct zkl_hold_event *event, void *client)
{
    struct client *c = client;

    if (event->state != ZKL_HOLD_LOST)
        return;
    struct record r = {.kind = TOLD,
                       .place = (uint8_t)place_of(event->node_path),
                       .token = event->token,
                       .seat = (c->number * CHAOS_THREADS),
                       .begun_ns = net_boot_ns()};
    journal_write(c->fd, &r);
    c->process->told[r.place]++;
    c->shared->tally[TOLD_LOST]++;
}

static const char *path_of(enum place place, char *path, size_t size)
{
    snprintf(path, size, "/chaos/%s", place_name((int)place));
    return path;
}

/* The processes use one path in different ways; where leases are used, or tries, in the plain one. */
static struct zkl_mutex_options options_at(const struct client *c, enum place place)
{
    struct zkl_mutex_options options = ZKL_MUTEX_OPTIONS_INIT;

    if (place != MUTEX && place != REVOKED)
        return options;
    options.local_handoffs_max = c->number % 3 == 0 ? 0 : 4;
    options.retain_ms = c->number % 3 == 1 ? 0 : 200;
    return options;
}

static int make_mutex(struct client *c, enum place place)
{
    char path[64];
    struct zkl_mutex_options options = options_at(c, place);
    int rc =
        zkl_mutex_new(&c->mutex[place], c->client, path_of(place, path, sizeof path), &options);

    return rc != 0 ? rc : zkl_mutex_set_callback(c->mutex[place], told, c);
}

bool client_caches(const struct client *c)
{
    return c->number % 3 == 2;
}

static int make_rwlock(struct client *c)
{
    char path[64];
    int rc = zkl_rwlock_new(&c->rwlock, c->client, path_of(RWLOCK, path, sizeof path), NULL);

    if (rc == 0 && client_caches(c))
        rc = zkl_rwlock_retain_readers(c->rwlock, 200);
    rc = rc != 0 ? rc : zkl_mutex_set_callback(zkl_rwlock_reader(c->rwlock), told, c);
    return rc != 0 ? rc : zkl_mutex_set_callback(zkl_rwlock_writer(c->rwlock), told, c);
}

static int make_semaphore(struct client *c)
{
    char path[64];
    int rc = zkl_semaphore_new(&c->semaphore, c->client, path_of(PERMITS, path, sizeof path),
                               PERMITS_MAX, NULL);

    return rc != 0 ? rc : zkl_semaphore_set_callback(c->semaphore, told, c);
}

static int make_handles(struct client *c)
{
    const enum place mutexes[] = {MUTEX, LEASE, REVOKED, RARE};
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < sizeof mutexes / sizeof mutexes[0]; i++)
        rc = make_mutex(c, mutexes[i]);
    rc = rc != 0 ? rc : make_rwlock(c);
    return rc != 0 ? rc : make_semaphore(c);
}

static int make_single(struct worker *w)
{
    char path[64];
    int rc = zkl_semaphore_mutex_new(&w->single, w->client->client,
                                     path_of(SINGLE, path, sizeof path), NULL);

    return rc != 0 ? rc : zkl_mutex_set_callback(w->single, told, w->client);
}

static int free_handles(struct client *c)
{
    int rc = 0;

    for (int i = 0; rc == 0 && i < PLACES; i++)
        rc = zkl_mutex_free(c->mutex[i]); /* not there: ignored */
    rc = rc != 0 ? rc : zkl_rwlock_free(c->rwlock);
    return rc != 0 ? rc : zkl_semaphore_free(c->semaphore);
}

/* --- one thread ------------------------------------------------------------------------------- */

static int threads_now(void)
{
    DIR *dir = opendir("/proc/self/task");
    int n = -2; /* "." and ".." */

    while (dir != NULL && readdir(dir) != NULL)
        n++;
    closedir(dir);
    return n;
}

/* Until the next round. One of the threads says meanwhile what the process has in use. */
static void rest(struct worker *w)
{
    w->seat->rested = w->shared->round;
    while (w->shared->phase == REST) {
        if (w->number % CHAOS_THREADS == 0) {
            w->client->process->heap = (long long)mallinfo2().uordblks;
            w->client->process->threads = threads_now();
        }
        net_nap_ms(20);
    }
}

static void *worker_main(void *arg)
{
    struct worker *w = arg;

    while (w->shared->phase != END) {
        bool granted = role_play(w);
        net_nap_ms(chance_between(&w->chance, 0, 20));
        if (granted && w->shared->phase == REST)
            rest(w);
    }
    return NULL;
}

static struct worker worker_of(struct client *c, int thread)
{
    int seat = c->number * CHAOS_THREADS + thread;
    struct worker w = {.client = c,
                       .shared = c->shared,
                       .seat = &c->shared->seat[seat],
                       .number = seat,
                       .role = (enum role)(seat % ROLES),
                       .chance = c->shared->seed + (uint64_t)seat};

    w.chance += (uint64_t)w.seat->serial << 32; /* in another life other choices */
    w.seat->doing = (int)w.role;
    return w;
}

static int run_threads(struct client *c)
{
    struct worker workers[CHAOS_THREADS];
    pthread_t threads[CHAOS_THREADS];
    int rc = 0;

    for (int i = 0; i < CHAOS_THREADS; i++) {
        workers[i] = worker_of(c, i);
        rc = rc != 0 ? rc : make_single(&workers[i]);
    }
    if (went_wrong(c, "new mutex of a semaphore", rc))
        return rc;
    for (int i = 0; i < CHAOS_THREADS; i++)
        pthread_create(&threads[i], NULL, worker_main, &workers[i]);
    for (int i = 0; i < CHAOS_THREADS; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; rc == 0 && i < CHAOS_THREADS; i++)
        rc = zkl_mutex_free(workers[i].single);
    went_wrong(c, "free", rc);
    return rc;
}

/* --- the process ------------------------------------------------------------------------------ */

/* The log helps a reader to find the reason of a failure. It is line-buffered, so that a killed
 * process has written all its lines. */
static void write_event(const struct zkl_log_event *event, void *client)
{
    const struct client *c = client;

    fprintf(c->log, "[%lld] %d: session %llx: %s\n", (long long)(net_boot_ns() / 1000000), getpid(),
            (unsigned long long)event->session, event->message);
}

/* One file for all lives of a process, in the folder that ZKL_CHAOS_LOGS names; none without. */
static int open_log(struct client *c)
{
    const char *dir = getenv("ZKL_CHAOS_LOGS");
    char path[400];

    if (dir == NULL)
        return 0;
    snprintf(path, sizeof path, "%s/process-%d.log", dir, c->number);
    c->log = fopen(path, "a");
    if (c->log == NULL)
        shared_odd(c->shared, "process %d: no log at %s", c->number, path);
    else
        setvbuf(c->log, NULL, _IOLBF, 0);
    return c->log == NULL ? -1 : 0;
}

static int open_client(struct client *c)
{
    struct zkl_client_options options = ZKL_CLIENT_OPTIONS_INIT;

    options.servers = c->process->servers;
    options.session_timeout_ms = c->process->session_ms;
    if (c->shared->tls[0] != '\0')
        secure_client(c->shared->tls, &options);
    if (c->log != NULL) {
        options.log_fn = write_event;
        options.log_arg = c;
        options.log_level = ZKL_LOG_DEBUG;
    }
    return zkl_client_open(&c->client, &options);
}

static bool close_client(struct client *c)
{
    bool wrong = went_wrong(c, "free", free_handles(c));

    wrong = went_wrong(c, "close", zkl_client_close(c->client, CLOSE_MS)) || wrong;
    return went_wrong(c, "free", zkl_client_free(c->client)) || wrong;
}

int client_run(int fd, int number)
{
    struct client c = {.fd = fd, .number = number, .shared = shared_map(fd)};

    if (c.shared == NULL)
        return 1;
    c.process = &c.shared->process[number];
    clock_step_by(&c.process->clock_ns);
    if (open_log(&c) != 0 || went_wrong(&c, "open", open_client(&c)) ||
        went_wrong(&c, "new", make_handles(&c)))
        return 1;
    return run_threads(&c) != 0 || close_client(&c) ? 1 : 0;
}
