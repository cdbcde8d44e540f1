/* SPDX-License-Identifier: Apache-2.0 */
/* soak [OPTION...]: the multi-lock's soak.
 *
 * Goal: many processes that lock the same paths all together, in whatever order they name them,
 * with cancels, deadlines, tries, re-entries, readers, writers and downgrades, never wait for
 * each other in a circle, are never inside together, leave nothing behind and do not grow.
 * Method: six processes take random sets of paths by multi-locks, two take them singly in the
 * order of the paths, now and then with a client of their own; all take permits. A witness in
 * shared memory knows who is inside, a watchdog how long each call takes. Now and then, and at
 * the end, all stand still while their sessions live: the server then has no contender and no
 * watch, and no process more than at first. */
#include "worker.h"

#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tool/fourlw.h"
#include "gauge.h"
#include "length.h"
#include "tool/net.h"
#include "option.h"
#include "report.h"
#include "wire.h"
#include "zkserver.h"

#define READY_MS 60000
#define LOOK_MS 20
#define WORK_LEAST 300    /* locks granted between two looks, */
#define WORK_MS_MAX 20000 /* unless that takes longer */

struct soak {
    struct shared *shared;
    struct zks *server;
    pid_t pids[SOAK_PROCESSES];
    int seconds, bound_s;
    double ran_s, requests; /* what they are at rest left out */
    struct gauge gauge;
};

static const char usage_text[] =
    "usage: soak [OPTION...]\n"
    "  --seconds N   how long (8; with ZKL_TEST_LONG=1 60)\n"
    "  --bound N     seconds that one call may take before the watchdog ends it all (60)\n"
    "  --seed N      of all random choices (the clock)\n"
    "  --no-lock N   N threads (1 to 7) do not lock: the witness must see it, or the soak "
    "fails\n"
    "  --leak WHAT   one thread keeps memory, descriptors, threads, nodes or sessions: to be seen, "
    "too\n"
    "  --help        this text\n";

/* --- options ---------------------------------------------------------------------------------- */

static enum leak leak_named(const char *name)
{
    static const char *const names[LEAKS] = {"",        "memory", "descriptors",
                                             "threads", "nodes",  "sessions"};

    for (int i = LEAK_MEMORY; i < LEAKS; i++) {
        if (strcmp(name, names[i]) == 0)
            return (enum leak)i;
    }
    fprintf(stderr, "soak: --leak %s: not known\n", name);
    exit(2);
}

static void set_option(struct soak *soak, int option, const char *value)
{
    switch (option) {
    case 's':
        soak->seconds = (int)option_number("seconds", value, 1, 1000000);
        break;
    case 'b':
        soak->bound_s = (int)option_number("bound", value, 1, 100000);
        break;
    case 'r':
        soak->shared->seed = (uint64_t)option_number("seed", value, 0, 1000000000000);
        break;
    case 'n':
        soak->shared->trespassers = (int)option_number("no-lock", value, 1, SOAK_PROCESSES - 1);
        break;
    case 'l':
        soak->shared->leak = leak_named(value);
        break;
    default:
        option_usage(option, usage_text);
    }
}

static void parse(struct soak *soak, int argc, char **argv)
{
    static const struct option options[] = {
        {"seconds", required_argument, NULL, 's'},
        {"bound", required_argument, NULL, 'b'},
        {"seed", required_argument, NULL, 'r'},
        {"no-lock", required_argument, NULL, 'n'},
        {"leak", required_argument, NULL, 'l'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    int option;

    soak->seconds = (int)test_length(60, 8);
    soak->bound_s = 60; /* a machine with much else to do stands still for a quarter of that */
    soak->shared->seed = (uint64_t)net_now_ms() * 1000;
    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1)
        set_option(soak, option, optarg);
    if (optind < argc)
        option_usage('?', usage_text);
}

/* --- processes -------------------------------------------------------------------------------- */

static void fork_all(struct soak *soak)
{
    for (int i = 0; i < SOAK_PROCESSES; i++) {
        soak->pids[i] = fork();
        if (soak->pids[i] == 0)
            _exit(process_run(soak->shared, i));
        if (soak->pids[i] < 0)
            shared_fail(soak->shared, "process %d was not forked", i);
    }
}

static void signal_all(const struct soak *soak, int sig)
{
    for (int i = 0; i < SOAK_PROCESSES; i++) {
        if (soak->pids[i] > 0)
            kill(soak->pids[i], sig);
    }
}

/* Reaps the processes that have ended; any end except a clean one is a failure. */
static int reap(struct soak *soak)
{
    int running = 0;

    for (int i = 0; i < SOAK_PROCESSES; i++) {
        int status = 0;
        if (soak->pids[i] > 0 && waitpid(soak->pids[i], &status, WNOHANG) == soak->pids[i]) {
            soak->pids[i] = 0;
            if (status != 0 || !soak->shared->quit)
                shared_fail(soak->shared, "process %d ended with status 0x%x", i, (unsigned)status);
        }
        running += soak->pids[i] > 0;
    }
    return running;
}

static void kill_all(struct soak *soak)
{
    signal_all(soak, SIGKILL);
    for (int i = 0; i < SOAK_PROCESSES; i++) {
        if (soak->pids[i] > 0)
            waitpid(soak->pids[i], NULL, 0);
        soak->pids[i] = 0;
    }
}

/* --- the watchdog ----------------------------------------------------------------------------- */

/* No call takes that long: a deadlock leaves those in it in their calls for ever, whatever all the
 * others still get done with deadlines and cancels. */
static void check_calls(struct soak *soak)
{
    int64_t now_ms = net_now_ms();

    for (int i = 0; i < SOAK_SEATS; i++) {
        long long since_ms = soak->shared->seat[i].call_since_ms;
        if (since_ms != 0 && now_ms - since_ms > 1000LL * soak->bound_s)
            shared_fail(soak->shared,
                        "no progress: process %d (pid %d, thread %d) is in one call for "
                        "more than %d s",
                        i / SOAK_THREADS, soak->shared->seat[i].pid, soak->shared->seat[i].tid,
                        soak->bound_s);
    }
}

/* Wait until *sign is at least n, or time is up, or something fails. */
static bool watch(struct soak *soak, const atomic_int *sign, int n, int ms)
{
    int64_t end_ms = net_now_ms() + ms;

    while ((!sign || *sign < n) && net_now_ms() < end_ms && !shared_failed(soak->shared)) {
        net_nap_ms(LOOK_MS);
        reap(soak);
        check_calls(soak);
    }
    return sign && *sign >= n && !shared_failed(soak->shared);
}

/* --- at rest ---------------------------------------------------------------------------------- */

static void grows(struct soak *soak, const char *why)
{
    soak->shared->grown = !shared_failed(soak->shared);
    shared_fail(soak->shared, "%s", why);
}

/* All sessions live still, so it was the library that removed everything. */
static void check_rest(struct soak *soak)
{
    char why[300];

    if (gauge_look(&soak->gauge, soak->pids, why, sizeof why) != 0)
        grows(soak, why);
}

/* All stand still for it. */
static void look(struct soak *soak, double at_s)
{
    struct shared *b = soak->shared;
    int number = soak->gauge.count + 1, patience_ms = 2000 * soak->bound_s;

    b->pause = number;
    if (!watch(soak, &b->still, SOAK_SEATS * number, patience_ms))
        shared_fail(b, "not all threads stand still for a look");
    else
        check_rest(soak);
    if (!shared_failed(b)) {
        b->weigh = number;
        if (watch(soak, &b->weighed, SOAK_PROCESSES * number, patience_ms))
            gauge_weigh(&soak->gauge, soak->pids, b, at_s);
        else
            shared_fail(b, "not all processes have reported their heaps");
    }
    b->pause = 0;
}

static void check_trend(struct soak *soak)
{
    char why[300];

    if (gauge_trend(&soak->gauge, why, sizeof why) != 0)
        grows(soak, why);
}

/* --- the run ---------------------------------------------------------------------------------- */

static int64_t requests(const struct soak *soak)
{
    int64_t n = 0;

    flw_requests_received(zks_host(), zks_port(soak->server, 0), &n);
    return n;
}

static int64_t granted_in_all(const struct shared *b)
{
    int64_t n = 0;

    for (int i = 0; i < SOAK_PROCESSES; i++)
        n += (int64_t)granted(b, i);
    return n;
}

/* Up to the next look. On a busy machine until so much was done that what is used for the first time is used in the first
 * of them, and everything happens that should. */
static void work(struct soak *soak, int each_ms)
{
    int64_t before = granted_in_all(soak->shared), latest_ms = net_now_ms() + WORK_MS_MAX;

    watch(soak, NULL, 0, each_ms);
    while (granted_in_all(soak->shared) - before < WORK_LEAST && net_now_ms() < latest_ms &&
           !shared_failed(soak->shared))
        watch(soak, NULL, 0, 100);
}

/* A short run has fewer looks, but enough for the trend. */
static void lock_and_look(struct soak *soak)
{
    int64_t begun_ms = net_now_ms(), end_ms = begun_ms + INT64_C(1000) * soak->seconds;
    int each_ms = 1000 * soak->seconds / GAUGE_LOOKS;

    each_ms = each_ms < 1000 ? 1000 : each_ms;
    while ((net_now_ms() < end_ms || soak->gauge.count < GAUGE_LOOKS_MIN) &&
           !shared_failed(soak->shared)) {
        int64_t from_ms = net_now_ms(), before = requests(soak);
        work(soak, each_ms);
        soak->ran_s += (double)(net_now_ms() - from_ms) / 1000;
        soak->requests += (double)(requests(soak) - before);
        if (!shared_failed(soak->shared))
            look(soak, (double)(net_now_ms() - begun_ms) / 1000);
    }
}

/* A semaphore that stays, because a watch on it would end with it. */
static void make_semaphore(struct soak *soak)
{
    static const char *const nodes[] = {"/soak", SOAK_SEMAPHORE, SOAK_SEMAPHORE "/locks",
                                        SOAK_SEMAPHORE "/leases"};
    struct wire *wire;
    int rc = wire_open(&wire, zks_host(), zks_port(soak->server, 0), READY_MS);

    for (size_t i = 0; rc == 0 && i < sizeof nodes / sizeof *nodes; i++)
        rc = wire_create(wire, nodes[i], "", WIRE_PERSISTENT, NULL, 0);
    if (rc != 0)
        shared_fail(soak->shared, "the semaphore is not made: %d", rc);
    else
        wire_close(wire);
}

static void let_go(struct soak *soak)
{
    struct shared *b = soak->shared;

    make_semaphore(soak);
    if (gauge_begin(&soak->gauge, zks_host(), zks_port(soak->server, 0)) != 0)
        shared_fail(b, "the server does not answer");
    snprintf(b->servers, sizeof b->servers, "%s", zks_connect_string(soak->server));
    b->open = true;
    if (!watch(soak, &b->ready, SOAK_PROCESSES, READY_MS)) {
        shared_fail(b, "%d of %d processes are ready", b->ready, SOAK_PROCESSES);
        return;
    }
    b->go = true;
    lock_and_look(soak);
    b->stop = true;
    if (!watch(soak, &b->rested, SOAK_PROCESSES, 2000 * soak->bound_s))
        shared_fail(b, "%d of %d processes have come to an end", b->rested, SOAK_PROCESSES);
}

static void close_all(struct soak *soak)
{
    int64_t end_ms = net_now_ms() + READY_MS;

    soak->shared->quit = true;
    while (reap(soak) > 0 && net_now_ms() < end_ms)
        net_nap_ms(LOOK_MS);
    if (reap(soak) > 0)
        shared_fail(soak->shared, "not all processes have closed and exited");
}

/* It failed as the options demand. */
static bool is_meant(const struct shared *b)
{
    return (b->trespassers > 0 && b->overlap) || (b->leak != LEAK_NOTHING && b->grown);
}

/* All stand still, so what is said fits together. Their sessions live on meanwhile. */
static void report_failure(struct soak *soak)
{
    struct wire *wire = NULL;

    if (is_meant(soak->shared)) {
        printf("soak: the witness says: %s\n", soak->shared->why);
        kill_all(soak);
        return;
    }
    printf("soak: FAILED: %s\n", soak->shared->why);
    signal_all(soak, SIGSTOP);
    report_threads(stdout, soak->shared);
    if (wire_open(&wire, zks_host(), zks_port(soak->server, 0), READY_MS) == 0)
        report_queues(stdout, wire);
    wire_close(wire);
    kill_all(soak);
}

/* A soak in which something never happened has not shown much. */
static void check_figures(struct soak *soak)
{
    const struct shared *b = soak->shared;

    for (int i = 0; i < SOAK_PROCESSES; i++) {
        if (granted(b, i) == 0)
            shared_fail(soak->shared, "process %d was never granted anything", i);
    }
    for (enum tally tally = MULTI; tally <= CANCELED; tally++) {
        if (shared_sum(b, 0, SOAK_SEATS, tally) == 0)
            shared_fail(soak->shared, "%s: none", tally_name(tally));
    }
}

static void run(struct soak *soak)
{
    let_go(soak);
    if (!shared_failed(soak->shared))
        check_rest(soak);
    if (!shared_failed(soak->shared))
        check_trend(soak);
    if (!shared_failed(soak->shared))
        check_figures(soak);
    if (!shared_failed(soak->shared))
        close_all(soak);
    if (shared_failed(soak->shared))
        report_failure(soak);
    if (soak->ran_s > 0)
        report_figures(stdout, soak->shared, soak->ran_s, soak->requests);
    gauge_report(stdout, &soak->gauge);
}

static int verdict(const struct shared *b)
{
    if (b->trespassers == 0 && b->leak == LEAK_NOTHING)
        return shared_failed(b) ? 1 : 0;
    printf("soak: %s was %s\n", b->leak ? "what grew" : "the thread that did not lock",
           is_meant(b) ? "seen, as is right" : "NOT SEEN");
    return is_meant(b) ? 0 : 1;
}

/* Runs the program again without what glibc's malloc keeps for each thread, which counts as in
 * use: without it a heap at rest is the same to a few KB. glibc reads the variable before main. */
static void without_caches(char **argv)
{
    static const char tunables[] = "GLIBC_TUNABLES";

    if (getenv(tunables) == NULL && setenv(tunables, "glibc.malloc.tcache_count=0", 1) == 0)
        execv("/proc/self/exe", argv);
}

int main(int argc, char **argv)
{
    without_caches(argv);
    /* Paths come and go; the server's own files don't pile up. */
    struct zks_options options = {.container_check_ms = 300,
                                  .cfg_extra =
                                      "autopurge.purgeInterval=1\nautopurge.snapRetainCount=3"};
    struct soak soak = {.shared = shared_new()};
    char err[512];
    int rc = zks_available(err, sizeof err);

    if (soak.shared == NULL)
        return 1;
    parse(&soak, argc, argv);
    if (rc != 0) {
        fprintf(stderr, "skipped: %s\n", err);
        return 77;
    }
    fork_all(&soak); /* before anything that has threads */
    if (zks_start(&soak.server, &options, err, sizeof err) == 0) {
        run(&soak);
        zks_stop(soak.server);
        rc = verdict(soak.shared);
    } else {
        fprintf(stderr, "soak: %s\n", err);
        rc = 1;
    }
    kill_all(&soak);
    shared_free(soak.shared);
    return rc;
}
