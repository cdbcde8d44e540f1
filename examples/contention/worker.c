/* SPDX-License-Identifier: Apache-2.0 */
/* One process of the contention demo, which contention.py starts: a client of its own, one mutex
 * handle, and threads that share both. Each thread locks, reads the record's counter, works a moment,
 * writes the counter plus one and unlocks, again and again.
 *
 * A byte on the standard input starts the threads, its end stops them. What there is to say is a
 * line each on the standard output, short enough for one undivided write:
 *
 *     ready PROCESS LIFE 0            connected, and the threads are there
 *     station PROCESS LIFE THREAD     a holder stands at the station that was asked for
 *     odd PROCESS LIFE THREAD WHAT    a call returned what it should not
 *     failed PROCESS LIFE 0 WHY       the process cannot go on */
#include "fence.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include <zklock/zklock.h>

enum {
    PROCESSES_MAX = 64,
    THREADS_MAX = 64,
    CONNECT_TIMEOUT_MS = 15000,
    CLOSE_TIMEOUT_MS = 5000,
    NO_LOCK_REST_US = 2000, /* without the lock, cycles come about as often as with it */
    ODD_REST_US = 100000,
    PAROLE_US = 500,
};

/* Places where a holder can be made to stand still until it is killed, stopped or let go. */
enum station {
    STATION_NONE,
    STATION_WORKING, /* in the work phase: read, not written */
    STATION_BETWEEN, /* the journal has the update, the record does not */
    STATION_WRITTEN, /* not left yet */
    STATION_LEFT     /* left, not unlocked yet */
};

/* Memory that all share; crew.py has the same. Nothing of it counts for the verdict, which is
 * computed from the files. */
struct board {
    atomic_int station; /* asked for: the first that comes by takes it away, says so and waits */
    atomic_int parole;
    _Atomic uint64_t updates[PROCESSES_MAX]; /* lives together */
    _Atomic uint64_t acquired[PROCESSES_MAX];
    atomic_int holding[PROCESSES_MAX]; /* the thread's number + 1; 0: none */
    _Atomic uint64_t done[PROCESSES_MAX][THREADS_MAX];
};

/* The command line, in this order. servers "": without the lock. */
static struct {
    const char *servers, *path;
    int session_ms;
    struct who who;
    unsigned threads;
    uint64_t count, work_us, seed, epoch_us; /* count: updates of each thread; 0: until the end */
    int journal, record, board;
} options;

struct worker {
    struct fence fence;
    uint64_t chance;
    pthread_t thread;
    int rc; /* read after the join */
};

static struct board *board;
static struct zkl_client *client; /* NULL without the lock, as are the next two */
static struct zkl_mutex *mutex;
static struct zkl_cancel *cancel;
static pthread_mutex_t mu = PTHREAD_MUTEX_INITIALIZER; /* protects begun */
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static bool begun;
static atomic_bool stop;

static void nap_us(uint64_t us)
{
    struct timespec t = {.tv_sec = (time_t)(us / 1000000), .tv_nsec = (long)(us % 1000000) * 1000};
    nanosleep(&t, NULL);
}

static void say(const char *kind, unsigned thread, const char *what, const char *why)
{
    char text[400];
    int n = snprintf(text, sizeof text, "%s %u %u %u %.100s%s%.200s\n", kind, options.who.process,
                     options.who.life, thread, what, *why ? ": " : "", why);
    if (write(STDOUT_FILENO, text, (size_t)n) != n)
        _exit(1);
}

static int failed(const char *what, const char *why)
{
    say("failed", 0, what, why);
    return -1;
}

/* --- one thread ---------------------------------------------------------------------------------
 */

/* An answer that a working lock does not give is reported; the work goes on, but not in a tight
 * loop. */
static void odd(const struct worker *w, const char *call, int code)
{
    char what[64];
    snprintf(what, sizeof what, "%s returned %d", call, code);
    say("odd", w->fence.who.thread, what, zkl_error_detail());
    nap_us(ODD_REST_US);
}

/* If a holder was asked for just here, stand still. */
static void stand(const struct worker *w, enum station here)
{
    int wanted = here;
    if (atomic_load_explicit(&board->station, memory_order_relaxed) != wanted ||
        !atomic_compare_exchange_strong(&board->station, &wanted, STATION_NONE))
        return;
    say("station", w->fence.who.thread, "", "");
    while (!atomic_load(&board->parole))
        nap_us(PAROLE_US);
    atomic_store(&board->parole, 0);
}

static void between(void *arg)
{
    stand(arg, STATION_BETWEEN);
}

/* True: granted; else try again or stop. */
static bool ask(struct worker *w, struct zkl_grant *grant)
{
    if (!mutex) {
        w->chance = w->chance * 6364136223846793005U + 1442695040888963407U;
        nap_us((w->chance >> 33) % (2 * NO_LOCK_REST_US + 1));
        return true;
    }
    struct zkl_wait wait = ZKL_WAIT_INIT;
    wait.cancel = cancel;
    int rc = zkl_mutex_acquire(mutex, &wait, grant);
    if (rc == 0 && grant->token == 0)
        odd(w, "zkl_mutex_acquire without a token", rc);
    if (rc && rc != ZKL_EDISCONNECTED && !(rc == ZKL_ECANCELED && zkl_cancel_is_set(cancel)))
        odd(w, "zkl_mutex_acquire", rc);
    return rc == 0;
}

/* Give the lock back and write down what the library said about the hold. */
static int give_back(struct worker *w, uint64_t token)
{
    if (!mutex)
        return 0;
    int rc = zkl_mutex_unlock(mutex);
    if (rc && rc != ZKL_EUNCONFIRMED && !zkl_error_is_lost(rc))
        odd(w, "zkl_mutex_unlock", rc);
    return fence_note(&w->fence, "freed", token, (uint64_t)-rc, 0);
}

/* The critical section. It does not ask whether it still holds the lock, as a careful program
 * would: the fence must do without that. */
static enum fence_answer update(struct worker *w, uint64_t token, uint64_t wait_us)
{
    uint64_t counter;
    enum fence_answer answer = fence_enter(&w->fence, token, wait_us, &counter);
    if (answer != FENCE_ACCEPTED)
        return answer;
    nap_us(options.work_us);
    stand(w, STATION_WORKING);
    answer = fence_write(&w->fence, token, counter + 1);
    stand(w, STATION_WRITTEN);
    return answer;
}

/* One lock, update and unlock. 0, or -1 if the files fail. */
static int cycle(struct worker *w, _Atomic uint64_t *done)
{
    unsigned number = options.who.process;
    struct zkl_grant grant = ZKL_GRANT_INIT;
    uint64_t asked_us = clock_us();
    if (!ask(w, &grant))
        return 0;
    uint64_t granted_us = clock_us();
    atomic_fetch_add(&board->acquired[number], 1);
    atomic_store(&board->holding[number], (int)w->fence.who.thread + 1);
    enum fence_answer answer = update(w, grant.token, granted_us - asked_us);
    if (answer == FENCE_FAILED ||
        fence_note(&w->fence, "leave", grant.token, 0, clock_us() - granted_us))
        return failed("journal or record", strerror(errno));
    stand(w, STATION_LEFT);
    atomic_store(&board->holding[number], 0);
    if (give_back(w, grant.token))
        return failed("journal", strerror(errno));
    if (answer == FENCE_ACCEPTED) {
        atomic_fetch_add(done, 1);
        atomic_fetch_add(&board->updates[number], 1);
    }
    return 0;
}

static void *run(void *arg)
{
    struct worker *w = arg;
    _Atomic uint64_t *done = &board->done[options.who.process][w->fence.who.thread];
    pthread_mutex_lock(&mu);
    while (!begun)
        pthread_cond_wait(&cond, &mu);
    pthread_mutex_unlock(&mu);
    while (w->rc == 0 && !stop && (!options.count || atomic_load(done) < options.count))
        w->rc = cycle(w, done);
    if (w->rc == 0 && !stop)
        w->rc = fence_note(&w->fence, "done", 0, 0, 0);
    return NULL;
}

/* --- the process --------------------------------------------------------------------------------
 */

static int open_client(void)
{
    char why[200] = "";
    struct zkl_client_options o = ZKL_CLIENT_OPTIONS_INIT;
    o.servers = options.servers;
    o.session_timeout_ms = options.session_ms;
    o.connect_timeout_ms = CONNECT_TIMEOUT_MS;
    o.errbuf = why;
    o.errbuf_size = sizeof why;
    int rc = zkl_client_open(&client, &o);
    if (rc)
        return failed("cannot connect", why[0] ? why : zkl_strerror(rc));
    rc = zkl_cancel_new(&cancel);
    if (rc == 0)
        rc = zkl_mutex_new(&mutex, client, options.path, NULL);
    return rc ? failed("no mutex", zkl_error_detail()) : 0;
}

/* The server removes whatever is left there with the session, so no answer is worth a longer wait.
 * The cancel object stays: the thread that hears the end may be about to set it. */
static void close_client(void)
{
    if (!client)
        return;
    zkl_client_close(client, CLOSE_TIMEOUT_MS);
    zkl_mutex_free(mutex);
    zkl_client_free(client);
}

/* Waits for the start, then for the end, which ends every wait for the lock. Without a start it is
 * the end of the process. */
static void *hear(void *nothing)
{
    char byte;
    if (read(STDIN_FILENO, &byte, 1) != 1)
        _exit(0);
    pthread_mutex_lock(&mu);
    begun = true;
    pthread_cond_broadcast(&cond);
    pthread_mutex_unlock(&mu);
    while (read(STDIN_FILENO, &byte, 1) > 0)
        ;
    stop = true;
    if (cancel)
        zkl_cancel_set(cancel);
    return nothing;
}

static int run_threads(void)
{
    static struct worker workers[THREADS_MAX];
    pthread_t ear;
    int rc = 0;
    for (unsigned i = 0; i < options.threads; i++) {
        struct worker *w = &workers[i];
        w->fence = (struct fence){.who = {options.who.process, options.who.life, i},
                                  .epoch_us = options.epoch_us,
                                  .between = between,
                                  .arg = w};
        w->chance = options.seed ^ (uint64_t)options.who.process << 40 ^
                    (uint64_t)options.who.life << 20 ^ i;
        if (fence_open(&w->fence, options.journal, options.record) ||
            pthread_create(&w->thread, NULL, run, w))
            return failed("cannot start a thread", strerror(errno));
    }
    if (pthread_create(&ear, NULL, hear, NULL))
        return failed("cannot start a thread", strerror(errno));
    say("ready", 0, "", "");
    for (unsigned i = 0; i < options.threads; i++) {
        pthread_join(workers[i].thread, NULL);
        rc |= workers[i].rc;
    }
    return rc;
}

static uint64_t number(const char *text)
{
    return strtoull(text, NULL, 10);
}

static void parse(char **argv)
{
    options.servers = argv[1];
    options.path = argv[2];
    options.session_ms = atoi(argv[3]);
    options.who = (struct who){(unsigned)number(argv[4]), (unsigned)number(argv[5]), 0};
    options.threads = (unsigned)number(argv[6]);
    options.count = number(argv[7]);
    options.work_us = number(argv[8]);
    options.seed = number(argv[9]);
    options.epoch_us = number(argv[10]);
    options.journal = atoi(argv[11]);
    options.record = atoi(argv[12]);
    options.board = atoi(argv[13]);
}

int main(int argc, char **argv)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    signal(SIGINT, SIG_IGN); /* of a terminal: contention.py ends all in good order */
    signal(SIGHUP, SIG_IGN);
    if (argc != 14) {
        fputs("contention-worker: it is for contention.py to start\n", stderr);
        return 2;
    }
    parse(argv);
    if (lseek(options.board, 0, SEEK_END) != (off_t)sizeof *board) {
        failed("shared memory", "contention.py and this program are not of one version");
        return 1;
    }
    board = mmap(NULL, sizeof *board, PROT_READ | PROT_WRITE, MAP_SHARED, options.board, 0);
    if (board == MAP_FAILED) {
        failed("shared memory", strerror(errno));
        return 1;
    }
    int rc = *options.servers ? open_client() : 0;
    if (rc == 0)
        rc = run_threads();
    close_client();
    return rc ? 1 : 0;
}
