/* SPDX-License-Identifier: Apache-2.0 */
/* chaos [OPTION...]: real servers, real faults.
 *
 * Goal: whatever happens to servers, links, processes and clocks, no two proved holders are inside
 * together, tokens grow, the library reports losses, every client goes on afterwards, and nothing is
 * left. Method: three servers, clients of every kind behind proxies, faults by a seed. Now and then
 * the test ends all faults and every client comes to rest. The test judges the history last. */
#include "canary.h"
#include "quiescence.h"
#include "standstill.h"

#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chance.h"
#include "length.h"
#include "tool/net.h"
#include "option.h"
#include "peers.h"

#define EPISODE_S 60          /* of faults, and then rest */
#define HEAP_MAX (256 * 1024) /* what the heap of a client at rest may grow by */
#define EPILOGUE_MS 2000
#define CALM_EVERY 3  /* episodes */
#define CALM_MS 30000 /* without faults, under the second judge */

struct chaos {
    struct testbed testbed;
    struct canary canary;
    struct standstill standstill;
    int seconds;
    int64_t begun_ms;
    long leftovers;
    long long heap[CHAOS_LASTING]; /* at the first rest */
};

static const char usage_text[] =
    "usage: chaos [OPTION...]\n"
    "  --minutes N  how long (1; with ZKL_TEST_LONG=1 30)\n"
    "  --seconds N  the same in seconds\n"
    "  --seed N     of all choices (the clock)\n"
    "  --trace      say each fault\n"
    "  --tls        between clients and servers, where libzookeeper has it\n"
    "  --break WHAT do something wrong, which must be seen: window (holders do not look at their\n"
    "               window), lock (one does not lock) or wake (one hears of none)\n"
    "  --help       this text\n"
    "To find a reason: ZKL_CHAOS_LOGS=DIR has each client write what it does to "
    "DIR/process-N.log,\n"
    "ZKS_KEEP=1 keeps the servers' logs and data.\n";

/* --- options ---------------------------------------------------------------------------------- */

struct options {
    long seconds, seed;
    bool trace, tls;
    enum breakage broken;
};

static enum breakage breakage(const char *text)
{
    if (strcmp(text, "window") == 0)
        return BREAK_WINDOW;
    if (strcmp(text, "lock") == 0)
        return BREAK_LOCK;
    if (strcmp(text, "wake") == 0)
        return BREAK_WAKE;
    fprintf(stderr, "chaos: --break takes window, lock or wake, not '%s'\n", text);
    exit(2);
}

static void set_option(struct options *o, int option, const char *value)
{
    switch (option) {
    case 'm':
        o->seconds = 60 * option_number("minutes", value, 1, 100000);
        break;
    case 's':
        o->seconds = option_number("seconds", value, 10, 6000000);
        break;
    case 'r':
        o->seed = option_number("seed", value, 0, 1000000000000);
        break;
    case 't':
        o->trace = true;
        break;
    case 'l':
        o->tls = true;
        break;
    case 'b':
        o->broken = breakage(value);
        break;
    default:
        option_usage(option, usage_text);
    }
}

static struct options parse(int argc, char **argv)
{
    static const struct option options[] = {
        {"minutes", required_argument, NULL, 'm'}, {"seconds", required_argument, NULL, 's'},
        {"seed", required_argument, NULL, 'r'},    {"trace", no_argument, NULL, 't'},
        {"tls", no_argument, NULL, 'l'},           {"break", required_argument, NULL, 'b'},
        {"help", no_argument, NULL, 'h'},          {NULL, 0, NULL, 0},
    };
    struct options o = {.seconds = (int)test_length(1800, 60), .seed = net_now_ms()};
    int option;

    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1)
        set_option(&o, option, optarg);
    if (optind < argc)
        option_usage('?', usage_text);
    return o;
}

/* --- the run ---------------------------------------------------------------------------------- */

/* Nothing but a violation ends it early. */
static bool goes_on(const struct chaos *c, int64_t end_ms)
{
    return net_now_ms() < end_ms && !c->testbed.shared->failed;
}

/* Mostly the next fault strikes while the last one lasts; sometimes its effects come about alone. */
static int draw_pause_ms(struct testbed *s)
{
    return s->shared->broken == BREAK_NOTHING && chance(&s->chance, 75)
               ? chance_between(&s->chance, 300, 1700)
               : chance_between(&s->chance, 3000, 6000);
}

static void do_faults(struct chaos *c, int64_t end_ms)
{
    struct testbed *s = &c->testbed;

    s->shared->phase = RUN;
    for (int64_t next_ms = 0; goes_on(c, end_ms); net_nap_ms(10)) {
        testbed_tick(s);
        if (net_now_ms() >= next_ms) {
            testbed_fault(s);
            next_ms = net_now_ms() + draw_pause_ms(s);
        }
    }
}

/* For this test's own test: what wakes the waiters of one client is held back, and all behind it. */
static void hold_wakes(struct testbed *s)
{
    for (int node = 0; node < CHAOS_NODES; node++)
        proxy_hold_reply(s->link[CHAOS_LATE][node], PROXY_EVENT, 1);
}

/* Everybody goes on, without faults. */
static void be_calm(struct chaos *c)
{
    struct testbed *s = &c->testbed;
    bool breaks = s->shared->broken == BREAK_WAKE;

    if (testbed_heal(s) != 0)
        return;
    standstill_begin(&c->standstill, s, &c->canary);
    for (int64_t end_ms = net_now_ms() + CALM_MS; goes_on(c, end_ms); net_nap_ms(10)) {
        testbed_tick(s);
        standstill_look(&c->standstill);
        if (breaks && s->shared->tally[GRANTED] > CHAOS_SEATS) {
            hold_wakes(s);
            breaks = false;
        }
    }
    for (int node = 0; node < CHAOS_NODES; node++)
        proxy_release(s->link[CHAOS_LATE][node]);
}

static void check_heap(struct chaos *c, bool last)
{
    for (int i = 0; i < CHAOS_LASTING; i++) {
        long long now = c->testbed.shared->process[i].heap;
        if (c->heap[i] == 0)
            c->heap[i] = now;
        if (last)
            printf("chaos: heap of process %d at rest: %lld bytes, at first %lld\n", i, now,
                   c->heap[i]);
        if (now - c->heap[i] > HEAP_MAX)
            shared_odd(c->testbed.shared,
                       "the heap of process %d has grown from %lld to %lld bytes", i, c->heap[i],
                       now);
    }
}

static void come_to_rest(struct chaos *c, bool last)
{
    struct testbed *s = &c->testbed;

    if (testbed_heal(s) != 0)
        shared_odd(s->shared, "the servers do not come back");
    else if (quiescence_reached(s)) {
        canary_wait_still(&c->canary);
        struct remains r = quiescence_remains(s, CHAOS_PROCESSES);
        c->leftovers += quiescence_count(&r);
        quiescence_check_losses(s);
        check_heap(c, last);
    }
}

/* The ensemble comes back without what it knew. */
static void epilogue(struct chaos *c)
{
    struct testbed *s = &c->testbed;
    int64_t end_ms = net_now_ms() + EPILOGUE_MS;

    s->shared->phase = RUN;
    while (goes_on(c, end_ms))
        net_nap_ms(10);
    if (testbed_wipe_all(s) != 0)
        shared_odd(s->shared, "the servers do not come back without their data");
    come_to_rest(c, true);
}

static void close_all(struct chaos *c)
{
    struct testbed *s = &c->testbed;

    if (!client_processes_close(s)) {
        shared_odd(s->shared, "not all processes have closed and exited");
        return;
    }
    struct remains r = quiescence_remains(s, 0);
    c->leftovers += quiescence_count(&r);
}

static void run(struct chaos *c)
{
    const struct shared *b = c->testbed.shared;
    int64_t end_ms = net_now_ms() + 1000 * (int64_t)c->seconds;
    int episode_s = c->seconds < 3 * EPISODE_S ? c->seconds / 3 : EPISODE_S;

    c->begun_ms = net_now_ms();
    for (int i = 1; goes_on(c, end_ms); i++) {
        do_faults(c, b->broken == BREAK_WAKE ? 0 : net_now_ms() + 1000 * (int64_t)episode_s);
        if (b->broken == BREAK_WAKE || (episode_s == EPISODE_S && i % CALM_EVERY == 0))
            be_calm(c);
        if (!b->failed)
            come_to_rest(c, false);
    }
    if (!b->failed)
        epilogue(c);
    if (!b->failed)
        close_all(c);
}

/* --- what came out ---------------------------------------------------------------------------- */

static long faults(const struct chaos *c, int first, int last)
{
    long n = 0;

    for (int i = first; i <= last; i++)
        n += c->testbed.count[i];
    return n;
}

static void report(const struct chaos *c, const struct verdict *v, long violations)
{
    static const char *const names[TALLIES] = {"acquisitions",
                                               "losses reported",
                                               "stale writes refused",
                                               "timeouts",
                                               "cancels",
                                               "tries that were busy",
                                               "tries without a server",
                                               "grants that were over immediately",
                                               "downgrades",
                                               "requests to release",
                                               "unlocks not confirmed",
                                               "unlocks in doubt"};
    const struct shared *b = c->testbed.shared;

    for (int i = 0; i < FAULTS; i++)
        printf("  %s: %ld\n", fault_name(i), c->testbed.count[i]);
    for (int i = 0; i < TALLIES; i++)
        printf("  %s: %ld\n", names[i], (long)b->tally[i]);
    printf("  writes of the canary: %ld\n", (long)c->canary.counted);
    printf("  those that a lock stood free for, and was waited for: %ld at most, of %ld that were "
           "judged\n",
           c->standstill.longest, c->standstill.judged);
    printf("  losses of members that a multi-lock had not acquired together: %zu\n",
           v->told_on_the_way);
    printf("  holds in the history: %zu, proved for a time: %zu\n", v->holds, v->proved);
    if (b->failed)
        printf("chaos: FAILED: %s\n", b->why);
    if (v->first[0] != '\0')
        printf("chaos: FAILED: %s\n", v->first);
    printf("chaos: %.0f s, seed %llu: servers killed or paused %ld, clients killed or paused %ld, "
           "cuts and other faults of links %ld, acquisitions %ld, losses %ld, stale writes "
           "refused %ld, violations %ld, leftovers %ld\n",
           (double)(net_now_ms() - c->begun_ms) / 1000, (unsigned long long)b->seed,
           faults(c, SERVER_KILL, SERVER_WIPE), faults(c, CLIENT_KILL, CLIENT_PAUSE),
           faults(c, LINK_CUT, NODE_CUT), (long)b->tally[GRANTED], (long)b->tally[TOLD_LOST],
           (long)b->tally[STALE_REFUSED], violations, c->leftovers);
}

static int judge(struct chaos *c)
{
    struct shared *b = c->testbed.shared;
    size_t n = 0;
    struct record *records = records_read(c->testbed.fd, &n);
    struct verdict v = history_judge(records, n, chaos_places);
    long violations = b->odd + (long)history_violations(&v);

    free(records);
    report(c, &v, violations);
    if (b->broken != BREAK_NOTHING) {
        bool seen = violations > 0;
        printf("chaos: what was done wrong was %s\n", seen ? "seen, as is right" : "NOT SEEN");
        return seen ? 0 : 1;
    }
    return violations == 0 ? 0 : 1;
}

static int conduct(const struct options *o)
{
    struct chaos c = {.seconds = (int)o->seconds};
    char err[512];
    int rc = zks_available(err, sizeof err);

    setvbuf(stdout, NULL, _IOLBF, 0);
    if (rc != 0) {
        fprintf(stderr, "skipped: %s\n", err);
        return 77;
    }
    if (nets_start(&c.testbed.nets, CHAOS_NODES, err, sizeof err) != 0)
        printf("chaos: skipped: no cuts between the servers: %s\n", err);
    c.testbed.shared = shared_new(&c.testbed.fd);
    if (c.testbed.shared == NULL)
        return 1;
    c.testbed.trace = o->trace;
    c.testbed.tls = o->tls;
    c.testbed.chance = c.testbed.shared->seed = (uint64_t)o->seed;
    c.testbed.shared->broken = o->broken;
    printf("chaos: %ld s, seed %ld%s\n", o->seconds, o->seed, o->tls ? ", over TLS" : "");
    rc = testbed_start(&c.testbed, err, sizeof err);
    if (rc != 0) {
        fprintf(stderr, "%s: %s\n", rc == 77 ? "skipped" : "chaos", err);
        testbed_stop(&c.testbed);
        return rc == 77 ? 77 : 1;
    }
    if (canary_start(&c.canary, c.testbed.shared, c.testbed.zks) == 0) {
        run(&c);
        canary_stop(&c.canary);
    }
    if (c.testbed.shared->failed)
        peers_print_logs();
    testbed_stop(&c.testbed);
    return judge(&c);
}

int main(int argc, char **argv)
{
    struct options o = parse(argc, argv);

    signal(SIGPIPE, SIG_IGN); /* a client that has ended */
    return conduct(&o);
}
