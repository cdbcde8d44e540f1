/* SPDX-License-Identifier: Apache-2.0 */
#include "peer.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define SESSION_MS 30000
#define WAIT_MS 120000
#define INSIDE_NS 50000
#define PERMIT_INSIDE_NS 1000000 /* so that permits are out at the same time */
#define LATE_LEASE_MS 1000
#define LATE_EACH 50 /* rounds */
#define WORKERS_MAX 12
#define THREADS_MAX 24

struct thread {
    pthread_t id;
    struct handle *handle;
    int number;
    unsigned long random;
};

static const char *name;
static int journal, rounds;
static struct handle handles[WORKERS_MAX];
static struct thread threads[THREADS_MAX];

/* --- chance and time -------------------------------------------------------------------------- */

static long below(struct thread *t, long n)
{
    t->random = t->random * 6364136223846793005u + 1442695040888963407u;
    return (long)((t->random >> 33) % (unsigned long)n);
}

static void nap_ns(long ns)
{
    nanosleep(&(struct timespec){.tv_nsec = ns}, NULL);
}

/* --- the journal ------------------------------------------------------------------------------ */

static void give_up(const struct thread *t, const char *what, int rc)
{
    fprintf(stderr, "%s.%d: %s: %s: %s\n", name, t->number, what, zkl_strerror(rc),
            zkl_error_detail());
    _exit(1);
}

static void note(const struct thread *t, char way, char access, const char *place, uint64_t token,
                 const char *node)
{
    char line[300];
    const char *slash = strrchr(node, '/');
    int n = snprintf(line, sizeof line, "%c%c %s.%d %s %llu %.160s\n", way, access, name, t->number,
                     place, (unsigned long long)token, slash != NULL ? slash + 1 : node);

    if (write(journal, line, (size_t)n) != n)
        abort();
}

static void note_all(const struct thread *t, char way, char access, const struct hold *hold)
{
    char place[PLACE_SIZE], node[NODE_SIZE];
    uint64_t token;
    struct handle *h = t->handle;

    for (int n = 0; h->kind->held(h, hold, n, place, &token, node); n++)
        note(t, way, access, place, token, node);
}

static void note_mutex(const struct thread *t, char way, char access, struct zkl_mutex *mutex)
{
    note_all(t, way, access, &(struct hold){.mutex = mutex});
}

/* --- rounds ----------------------------------------------------------------------------------- */

/* A short deadline is longer after each one that passed: else such a worker would never get in
 * on a busy machine. */
static struct zkl_wait wait_of(struct thread *t, bool late, int passed)
{
    const struct settings *s = &t->handle->settings;
    struct zkl_wait wait = ZKL_WAIT_INIT;
    int64_t ms = s->timed ? 2 + below(t, 20 << (passed < 10 ? passed : 10)) : WAIT_MS;

    wait.deadline_ns = zkl_now_ns() + ms * INT64_C(1000000);
    wait.flags = (s->tries ? ZKL_WAIT_TRY : 0) | (s->syncs ? ZKL_WAIT_SYNC : 0);
    wait.lease_ms = late ? LATE_LEASE_MS : s->lease_ms;
    return wait;
}

/* Again and again, where a try, a short deadline or what others say is what is wanted. */
static void lock(struct thread *t, bool late, struct hold *hold)
{
    const struct settings *s = &t->handle->settings;

    for (int passed = 0;; passed++) {
        struct zkl_wait wait = wait_of(t, late, passed);
        int rc = t->handle->kind->lock(t->handle, &wait, hold);
        if (rc == 0)
            return;
        bool again = (s->tries && (rc == ZKL_EBUSY || rc == ZKL_EUNPROVED)) ||
                     (s->timed && rc == ZKL_ETIMEDOUT) ||
                     (s->permits == 0 && rc == ZKL_EMISMATCH); /* nobody has said how many, yet */
        if (!again)
            give_up(t, "lock", rc);
        nap_ns(200000 + below(t, 1800000));
    }
}

static void unlock(struct thread *t, struct hold *hold, int expected)
{
    int rc = t->handle->kind->unlock(t->handle, hold);

    if (rc != expected)
        give_up(t, "unlock", rc);
}

/* A reader before the writer has left: nobody is between. */
static void downgrade(struct thread *t, struct hold *hold)
{
    struct zkl_mutex *read = zkl_rwlock_reader(t->handle->rwlock);
    int rc = zkl_mutex_lock(read);

    if (rc != 0)
        give_up(t, "downgrade", rc);
    note_mutex(t, '+', 'r', read);
    note_mutex(t, '-', 'x', hold->mutex);
    unlock(t, hold, 0);
    nap_ns(INSIDE_NS);
    note_mutex(t, '-', 'r', read);
    hold->mutex = read;
    unlock(t, hold, 0);
}

/* The lease runs out before the unlock. */
static bool stay_too_long(struct thread *t, struct hold *hold)
{
    bool in_time = zkl_mutex_still_held(hold->mutex, LATE_LEASE_MS / 2) == 1;

    if (in_time) {
        note_all(t, '+', t->handle->settings.access, hold);
        note_all(t, '-', t->handle->settings.access, hold);
    }
    while (zkl_mutex_still_held(hold->mutex, 0) == 1)
        nap_ns(10000000);
    nap_ns(2000000); /* "no" is said in the last millisecond, too, in which unlock is in time */
    unlock(t, hold, ZKL_ELOST);
    return in_time;
}

static void visit(struct thread *t)
{
    struct hold hold = {0};
    char access = t->handle->settings.access;

    lock(t, false, &hold);
    note_all(t, '+', access, &hold);
    nap_ns(access == 'p' ? PERMIT_INSIDE_NS : INSIDE_NS);
    if (t->handle->settings.downgrades) {
        downgrade(t, &hold);
        return;
    }
    note_all(t, '-', access, &hold);
    unlock(t, &hold, 0);
}

static void *thread_main(void *arg)
{
    struct thread *t = arg;

    for (int i = 0; i < rounds; i++) {
        struct hold hold = {0};
        if (t->handle->settings.ends_late && i % LATE_EACH == 0)
            do
                lock(t, true, &hold);
            while (!stay_too_long(t, &hold));
        else
            visit(t);
        if (t->handle->settings.naps)
            nap_ns(below(t, 6000000));
    }
    return NULL;
}

/* --- the program ------------------------------------------------------------------------------ */

static struct zkl_client *open_client(const char *servers, const char *credential)
{
    struct zkl_client_options options = ZKL_CLIENT_OPTIONS_INIT;
    struct zkl_client *client;
    char why[300] = "";

    options.servers = servers;
    options.session_timeout_ms = SESSION_MS;
    options.connect_timeout_ms = SESSION_MS;
    options.errbuf = why;
    options.errbuf_size = sizeof why;
    if (*credential) {
        options.auth_scheme = "digest";
        options.auth_credential = credential;
        options.acl = ZKL_ACL_CREATOR;
    }
    if (zkl_client_open(&client, &options) == 0)
        return client;
    fprintf(stderr, "open: %s\n", why);
    exit(1);
}

static int make_threads(struct zkl_client *client, char **workers, int count)
{
    int n = 0;

    for (int i = 0; i < count && i < WORKERS_MAX; i++) {
        if (handle_make(&handles[i], client, workers[i]) != 0)
            exit(1);
        for (int k = 0; k < handles[i].settings.threads && n < THREADS_MAX; k++, n++)
            threads[n] = (struct thread){.handle = &handles[i], .number = n, .random = (unsigned)n};
    }
    return n;
}

static void run_threads(int n)
{
    for (int i = 0; i < n; i++) {
        if (pthread_create(&threads[i].id, NULL, thread_main, &threads[i]) != 0)
            exit(1);
    }
    for (int i = 0; i < n; i++)
        pthread_join(threads[i].id, NULL);
}

int main(int argc, char **argv)
{
    char go;

    if (argc < 7) {
        fprintf(stderr, "usage: peer SERVERS JOURNAL NAME CREDENTIAL ROUNDS WORKER...\n");
        return 2;
    }
    name = argv[3];
    rounds = atoi(argv[5]);
    journal = open(argv[2], O_WRONLY | O_APPEND | O_CLOEXEC);
    struct zkl_client *client = open_client(argv[1], argv[4]);
    int n = make_threads(client, argv + 6, argc - 6);
    if (write(STDOUT_FILENO, "ready\n", 6) != 6 || read(STDIN_FILENO, &go, 1) != 1)
        return 1;
    run_threads(n);
    for (int i = 0; i < argc - 6; i++) {
        if (handles[i].kind->free(&handles[i]) != 0)
            return 1;
    }
    if (zkl_client_close(client, 10000) != 0 || zkl_client_free(client) != 0)
        return 1;
    return write(STDOUT_FILENO, "done\n", 5) == 5 ? 0 : 1;
}
