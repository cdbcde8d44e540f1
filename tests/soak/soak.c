/* SPDX-License-Identifier: Apache-2.0 */
/* soak [OPTION...]: the multi-lock's soak.
 *
 * Goal: many processes that lock the same paths all together, in whatever order they name them,
 * with cancels, deadlines, tries, re-entries, readers, writers and downgrades, never wait for
 * each other in a circle, are never inside together, leave nothing behind and do not grow.
 * Method: six of the crowd's peers take random sets of paths by multi-locks, two take them singly in the
 * order of the paths, now and then with a client of their own; all take permits (crowd/roam.c). The journal
 * knows who is inside, a watchdog how long each call takes. Now and then, and at
 * the end, all stand still while their sessions live: the server then has no contender and no
 * watch, and no process more than at first. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "crowd.h"
#include "gauge.h"
#include "option.h"
#include "roam.h"
#include "tool/fourlw.h"

#define THREADS 3 /* of each process, that lock */
#define VISITS                                                                                     \
    13 /* of each thread between two looks: then all that is used at all has been used at the first one */
#define LEAKS 10 /* between two looks */
#define TRESPASSES 1000

const char *const soak_peers[SOAK_PROCESSES] = {"s0.", "s1.", "s2.", "s3.",
                                                "s4.", "s5.", "s6.", "s7."};

/* The handles of each process. Half of the processes listen: their holds have watches. */
static const struct {
    const char *name, *row;
} handles[] = {
    {"L0", "mutex /soak/0"},
    {"L1", "mutex /soak/1"},
    {"L2", "mutex /soak/2"},
    {"L3", "mutex /soak/3"},
    {"L4", "rwlock /soak/4"},
    {"L5", "rwlock /soak/5"},
    {"Lp1", "semaphore /soak/permits permits=3"},
    {"Lp2", "semaphore /soak/permits permits=3 count=2"},
    {"Lp3", "semaphore /soak/permits permits=3 count=3"},
};

/* Who does what in each phase, between two looks. */
static const struct {
    int first, last; /* processes */
    const char *way;
} parts[] = {{0, 5, "multi"}, {6, 7, "singly"}};

static const char *const tally_names[TALLIES] = {
    "multi-locks granted",
    "single locks granted",
    "members of those multi-locks",
    "held before and entered again",
    "downgrades",
    "visits with a client of their own",
    "requests for permits granted",
    "upgrades refused",
    "timeouts",
    "cancels",
    "tries that found somebody",
    "grants with an empty window",
    "places wanted",
};

static struct {
    int seconds, bound_s, trespassers;
    long long seed;
    const char *leak; /* NULL: none */
    long tally[SOAK_PROCESSES][TALLIES];
    double ran_s, requests; /* what they are at rest left out */
    bool grown;             /* why it failed */
} soak;

static const char usage_text[] =
    "usage: soak [OPTION...]\n"
    "  --seconds N   how long (8; with ZKL_TEST_LONG=1 60)\n"
    "  --bound N     seconds that one call may take before the watchdog ends it all (60)\n"
    "  --seed N      of all random choices (the clock)\n"
    "  --no-lock N   N threads (1 to 7) do not lock: the witness must see it, or the soak "
    "fails\n"
    "  --leak WHAT   one keeps memory, descriptors, threads, nodes or sessions: to be seen, "
    "too\n"
    "  --help        this text\n";

#define each_process(p) for (int p = 0; p < SOAK_PROCESSES; p++)

/* --- options ---------------------------------------------------------------------------------- */

static void set_option(int option, const char *value)
{
    switch (option) {
    case 's':
        soak.seconds = (int)option_number("seconds", value, 1, 1000000);
        break;
    case 'b':
        soak.bound_s = (int)option_number("bound", value, 1, 100000);
        break;
    case 'r':
        soak.seed = option_number("seed", value, 0, 1000000000000);
        break;
    case 'n':
        soak.trespassers = (int)option_number("no-lock", value, 1, SOAK_PROCESSES - 1);
        break;
    case 'l':
        soak.leak = value;
        if (strstr(" memory descriptors threads nodes sessions ", value) != NULL)
            break;
        fprintf(stderr, "soak: --leak %s: not known\n", value);
        exit(2);
    default:
        option_usage(option, usage_text);
    }
}

static void parse(int argc, char **argv)
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

    soak.seconds = (int)test_length(60, 8);
    soak.bound_s = 60; /* a machine with much else to do stands still for a quarter of that */
    soak.seed = net_now_ms() * 1000;
    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1)
        set_option(option, optarg);
    if (optind < argc)
        option_usage('?', usage_text);
}

/* --- the processes ---------------------------------------------------------------------------- */

/* A semaphore that stays, because a watch on it would end with it. */
static void make_semaphore(void)
{
    static const char *const nodes[] = {"/soak", "/soak/permits", "/soak/permits/locks",
                                        "/soak/permits/leases"};

    for (size_t i = 0; i < sizeof nodes / sizeof *nodes; i++)
        check_ok(wire_create(raw, nodes[i], "", WIRE_PERSISTENT, NULL, 0));
}

static void start_all(void)
{
    const char *path = crowd_journal("s");
    char why[512] = "";
    int rc = 0;

    journal_place(&journal, "/soak/permits")->permits = ROAM_PERMITS;
    each_process(p)
    {
        const char *const command[] = {SOAK_PEER, zks_connect_string(crowd_server), path, NULL};
        rc = rc != 0 ? rc
                     : peer_start(soak_peers[p], command, zks_dir(crowd_server), why, sizeof why);
    }
    if (rc != 0 || peers_await(why, sizeof why) != 0)
        fail_msg("%s", why);
    each_process(p)
    {
        for (size_t i = 0; i < sizeof handles / sizeof *handles; i++)
            check_says("ok", "%s0 new %s %s%s", soak_peers[p], handles[i].name, handles[i].row,
                       p % 2 == 1 && i < ROAM_PATHS ? " revocable=callback" : "");
    }
    for (int i = 1; i <= soak.trespassers; i++)
        check_says("ok", "%s0 new N none /soak/0,/soak/1,/soak/2,/soak/3", soak_peers[i]);
}

/* No call takes that long: a deadlock leaves those in it in their calls for ever, whatever all the
 * others still get done with deadlines and cancels. Who answers that one did has a fault. */
static void watch_calls(void)
{
    static bool asked[SOAK_PROCESSES];
    char worker[8];

    each_process(p)
    {
        snprintf(worker, sizeof worker, "%sw", soak_peers[p]);
        if (!asked[p] || answer_within(worker, 0) != NULL)
            say("%s calls %d", worker, 1000 * soak.bound_s);
        asked[p] = true;
    }
}

static void count_in(int process, const char *answered)
{
    long *tally = soak.tally[process];
    char *rest;

    for (int i = 0; i < TALLIES; i++, answered = rest) {
        long n = strtol(answered, &rest, 10);
        tally[i] = i == LONGEST_MS ? (n > tally[i] ? n : tally[i]) : tally[i] + n;
    }
}

/* Each does its part once, for ms at least. */
static const char *work(int ms)
{
    static long phase;
    char worker[8];

    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        for (int p = parts[i].first; p <= parts[i].last; p++) {
            bool trespasses = p >= 1 && p <= soak.trespassers;
            for (int k = trespasses ? 1 : 0; k < THREADS; k++)
                say("%s%d roam L %s %d %d %lld", soak_peers[p], k, parts[i].way, VISITS, ms,
                    soak.seed + phase);
            if (trespasses)
                say("%s0 run N %d 0", soak_peers[p], TRESPASSES);
        }
    }
    phase++;
    const char *fault = crowd_judge();
    for (int i = 0; fault == NULL && i < SOAK_PROCESSES * THREADS; i++) {
        snprintf(worker, sizeof worker, "%s%d", soak_peers[i / THREADS], i % THREADS);
        const char *answered = answer(worker);
        if (strchr(answered, ' ') != NULL)
            count_in(i / THREADS, answered + strlen("ok "));
    }
    return fault;
}

/* For the soak's own test. */
static void leak(void)
{
    struct wire *wire; /* kept */

    for (int i = 0; i < LEAKS; i++) {
        if (strcmp(soak.leak, "nodes") == 0)
            check_ok(wire_create(raw, "/left-", "", WIRE_SEQUENTIAL, NULL, 0));
        else if (strcmp(soak.leak, "sessions") == 0)
            check_ok(wire_open(&wire, zks_host(), zks_port(crowd_server, 0), WIRE_LASTING_MS));
        else
            check_says("ok", "%s0 leak %s", soak_peers[1], soak.leak);
    }
}

/* --- the run ---------------------------------------------------------------------------------- */

static int64_t requests(void)
{
    int64_t n = 0;

    flw_requests_received(zks_host(), zks_port(crowd_server, 0), &n);
    return n;
}

/* A short run has fewer looks, but enough for the trend. All sessions live still, so it was the library that removed
 * everything. */
static const char *lock_and_look(void)
{
    int64_t begun_ms = net_now_ms(), end_ms = begun_ms + INT64_C(1000) * soak.seconds;
    int each_ms = 1000 * soak.seconds / GAUGE_LOOKS;
    const char *fault = NULL;

    each_ms = each_ms < 1000 ? 1000 : each_ms;
    while (fault == NULL && (net_now_ms() < end_ms || gauge_looks() < GAUGE_LOOKS_MIN)) {
        int64_t from_ms = net_now_ms(), before = requests();
        fault = work(each_ms);
        soak.ran_s += (double)(net_now_ms() - from_ms) / 1000;
        soak.requests += (double)(requests() - before);
        if (fault != NULL)
            break;
        if (soak.leak != NULL)
            leak();
        fault = gauge_look((double)(net_now_ms() - begun_ms) / 1000);
        soak.grown = fault != NULL;
        journal_forget(&journal);
    }
    if (fault == NULL && (fault = gauge_trend()) != NULL)
        soak.grown = true;
    return fault;
}

static long granted(int process)
{
    return soak.tally[process][MULTI] + soak.tally[process][SINGLE];
}

static long sum(enum tally tally)
{
    long all = 0;

    each_process(p) all += soak.tally[p][tally];
    return all;
}

/* A soak in which something never happened has not shown much. */
static const char *check_figures(void)
{
    each_process(p)
    {
        if (granted(p) == 0)
            return "some process was never granted anything";
    }
    for (enum tally tally = MULTI; tally <= CANCELED; tally++) {
        if (sum(tally) == 0)
            return tally_names[tally];
    }
    return NULL;
}

static void close_all(void)
{
    each_process(p)
    {
        for (size_t i = 0; i < sizeof handles / sizeof *handles; i++)
            check_says("ok", "%s0 drop %s", soak_peers[p], handles[i].name);
    }
    check_true(peers_stop());
}

/* --- what came out ---------------------------------------------------------------------------- */

/* The least of a kind of process to the most. */
static void report_fairness(const char *kind, int first, int last)
{
    long least = granted(first), most = least;

    for (int p = first; p <= last; p++) {
        least = granted(p) < least ? granted(p) : least;
        most = granted(p) > most ? granted(p) : most;
    }
    printf("  fairness, %s: %ld to %ld (%.2f)\n", kind, least, most,
           most > 0 ? (double)least / (double)most : 0);
}

static void report_figures(void)
{
    long all = sum(MULTI) + sum(SINGLE) + sum(PERMITS);

    printf("soak: %.1f s, seed %lld\n", soak.ran_s, soak.seed);
    for (int i = 0; i < LONGEST_MS; i++)
        printf("  %s: %ld\n", tally_names[i], sum((enum tally)i));
    printf("  granted in a second: %.0f, requests for each: %.1f\n", (double)all / soak.ran_s,
           all > 0 ? soak.requests / (double)all : 0);
    each_process(p) printf("  process %d: %ld granted (%ld of multi-locks), longest wait %ld ms\n",
                           p, granted(p), soak.tally[p][MULTI], soak.tally[p][LONGEST_MS]);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        report_fairness(parts[i].way, parts[i].first, parts[i].last);
    gauge_report();
}

/* Who is inside, as the journal has it, who waits for what, and the queues. */
static void report_failure(void)
{
    char worker[8];

    for (const struct place *at = journal.places; at < journal.places + journal.places_count;
         at++) {
        printf("  inside %s:", at->path);
        for (int i = 0; i < at->crowd; i++)
            printf(" %s (%c)", at->inside[i].worker, at->inside[i].access);
        printf("\n");
    }
    each_process(p)
    {
        snprintf(worker, sizeof worker, "%sw", soak_peers[p]);
        if (peer_pid(soak_peers[p]) > 0 && answer_within(worker, 1000) != NULL) {
            say("%s calls 0", worker);
            const char *calls = answer_within(worker, 1000);
            printf("  %s (pid %d): %s\n", worker, peer_pid(soak_peers[p]),
                   calls != NULL ? calls : "no answer");
        }
    }
    crowd_keep_raw();
    wire_print_tree(raw, "/soak");
}

TEST(run)
{
    make_semaphore();
    gauge_begin(ROAM_PATHS);
    start_all();
    crowd_each_second = watch_calls;
    const char *fault = lock_and_look();
    bool overlap = fault != NULL && strstr(fault, " comes in beside ") != NULL;
    bool meant = (soak.trespassers > 0 && overlap) || (soak.leak != NULL && soak.grown);
    if (fault != NULL && !meant)
        report_failure();
    report_figures();
    if (meant) {
        printf("soak: seen, as is right: %s\n", fault);
        peers_kill();
        return;
    }
    if (fault == NULL)
        fault = check_figures();
    if (fault != NULL)
        fail_msg("%s", fault);
    if (soak.trespassers > 0 || soak.leak != NULL)
        fail_msg("%s was NOT SEEN", soak.leak != NULL ? "what grew" : "who did not lock");
    close_all();
}

int main(int argc, char **argv)
{
    /* Paths come and go; the server's own files don't pile up. */
    static const struct zks_options options = {
        .container_check_ms = 300,
        .max_session_ms = WIRE_LASTING_MS,
        .cfg_extra = "autopurge.purgeInterval=1\nautopurge.snapRetainCount=3"};

    parse(argc, argv);
    /* The peers run without what glibc's malloc keeps for each thread, which counts as in use: without it a heap at
     * rest is the same to a few KB. */
    setenv("GLIBC_TUNABLES", "glibc.malloc.tcache_count=0", 0);
    return crowd_main(1, argv, &options);
}
