/* SPDX-License-Identifier: Apache-2.0 */
/* The leader is killed again and again, and started again: how often a holder becomes SUSPECT or
 * loses its hold, how long it is SUSPECT beside the outage, and how often `zklock run` ends its
 * job.
 *
 * For each session timeout there is a holder in this process and a job. The outage ends when one
 * of the servers that are left makes a session, which takes a new leader. What must hold: nobody
 * stays SUSPECT for more than some heartbeats after it. No hold is lost and no job is ended in
 * an outage that is shorter than what a steady window has left. */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "chance.h"
#include "length.h"
#include "tool/net.h"
#include "option.h"
#include "testbed.h"
#include "wire.h"

#define PROBE_MS 10000
/* After the outage: libzookeeper comes again within a second; then a request, a proof. */
#define AGAIN_MS 1500
/* The same on a machine of which nothing is known: the short form only checks that the state
 * ends. */
#define SLOW_MS 15000
#define HEARTBEAT_SHARE 4 /* of the session timeout, for the round of heartbeats */

/* Of the session timeout, in 64ths, what a steady window never falls below, and what `zklock run` keeps of
 * it for the end of its job: docs/guarantees.md. */
enum { LEAST_64 = 24, LEAST_SAID_64 = 33, JOB_64 = 8 };

static const int timeouts_ms[] = {4000, 10000, 30000};
#define TIMEOUTS (sizeof timeouts_ms / sizeof timeouts_ms[0])

/* The longest outage that was survived and the shortest that was not; 0: there was none. */
struct limit {
    int64_t survived, not_survived;
};

struct holder {
    const struct test *test;
    int session_ms;
    char path[32];
    struct zkl_client *client;
    pthread_t thread;
    atomic_bool holds, lost_now;
    atomic_bool lost, emptied;              /* in this outage: the hold; all of its window */
    atomic_llong suspect_at, suspect_until; /* of the last one; until 0: it lasts */
    int suspects, losts, empties, kills;
    struct limit window, jobs_limit; /* which outages each survived */
    int64_t longest, latest;         /* SUSPECT: all of it, and what came after the outage */
    /* its job */
    pid_t job;
    char begun[256]; /* a file that has a byte for each job */
    off_t jobs;
};

struct test {
    struct testbed testbed;
    struct holder holders[TIMEOUTS];
    bool tick_said;
    atomic_bool quit;
    const char *tool;
    int outage_ms; /* how much longer an outage may be made */
    int64_t longest_outage;
    int failures;
};

/* --- the holder in this process --------------------------------------------------------------- */

static void told(const struct zkl_hold_event *event, void *arg)
{
    struct holder *h = arg;

    if (event->state == ZKL_HOLD_SUSPECT) {
        h->suspect_until = 0;
        h->suspect_at = net_boot_ns();
    } else if (h->suspect_at != 0) {
        h->suspect_until = net_boot_ns();
    }
    if (event->state == ZKL_HOLD_LOST)
        h->lost = h->lost_now = true;
}

static void *holder_main(void *arg)
{
    struct holder *h = arg;
    struct zkl_mutex *mutex = NULL;

    if (zkl_mutex_new(&mutex, h->client, h->path, NULL) != 0 ||
        zkl_mutex_set_callback(mutex, told, h) != 0)
        give_up("no mutex");
    while (!h->test->quit) {
        if (zkl_mutex_lock_for(mutex, WAIT_MS) != 0)
            continue;
        h->holds = true;
        while (!h->test->quit && !h->lost_now) {
            net_nap_ms(5);
            if (zkl_mutex_window_ms(mutex) == 0)
                h->emptied = true;
        }
        h->holds = false;
        zkl_mutex_unlock(mutex);
        h->lost_now = false;
    }
    zkl_mutex_free(mutex);
    return NULL;
}

static void holder_start(struct test *t, struct holder *h)
{
    struct zkl_client_options options = ZKL_CLIENT_OPTIONS_INIT;

    options.servers = zks_connect_string(t->testbed.zks);
    options.session_timeout_ms = h->session_ms;
    options.connect_timeout_ms = WAIT_MS;
    options.tick_ms = t->tick_said ? t->testbed.tick_ms : 0;
    if (zkl_client_open(&h->client, &options) != 0)
        give_up(zkl_error_detail());
    if (pthread_create(&h->thread, NULL, holder_main, h) != 0)
        give_up("no thread");
}

/* --- the job ---------------------------------------------------------------------------------- */

static off_t size_of(const char *name)
{
    struct stat st;

    return stat(name, &st) == 0 ? st.st_size : 0;
}

static void job_start(struct test *t, struct holder *h)
{
    char line[400], seconds[16], tick[32], path[48];

    h->jobs = size_of(h->begun);
    snprintf(line, sizeof line, "echo >>%s; exec sleep 100000", h->begun);
    snprintf(seconds, sizeof seconds, "%d", h->session_ms / 1000);
    snprintf(path, sizeof path, "%s-job", h->path);
    h->job = fork();
    if (h->job == 0) {
        prctl(PR_SET_PDEATHSIG, SIGTERM);
        snprintf(tick, sizeof tick, "%g", t->testbed.tick_ms / 1000.0);
        if (t->tick_said)
            setenv("ZKLOCK_TICK", tick, 1);
        execl(t->tool, "zklock", "run", "--servers", zks_connect_string(t->testbed.zks),
              "--session-timeout", seconds, path, "--", "/bin/sh", "-c", line, (char *)NULL);
        _exit(99);
    }
}

/* True if it has ended by itself: zklock run has ended it. */
static bool job_has_ended(struct holder *h)
{
    return waitpid(h->job, NULL, WNOHANG) == h->job;
}

static void job_end(struct holder *h)
{
    kill(h->job, SIGTERM);
    while (waitpid(h->job, NULL, 0) < 0 && errno == EINTR)
        ;
}

/* --- one kill --------------------------------------------------------------------------------- */

static bool all_hold(struct test *t)
{
    for (size_t i = 0; i < TIMEOUTS; i++) {
        struct holder *h = &t->holders[i];
        if (!h->holds || size_of(h->begun) == h->jobs ||
            (h->suspect_at != 0 && h->suspect_until == 0))
            return false;
    }
    return true;
}

static void wait_all_hold(struct test *t)
{
    int64_t end_ms = net_now_ms() + 4 * WAIT_MS;

    while (!all_hold(t)) {
        if (net_now_ms() > end_ms)
            give_up("not all hold again");
        net_nap_ms(5);
    }
}

/* Until a server that is left makes a session. One that has asked for votes in vain for long asks seldom. */
static void wait_for_service(struct test *t, size_t leader)
{
    int64_t end_ms = net_now_ms() + 4 * WAIT_MS;
    struct wire *w = NULL;

    for (size_t i = 0; net_now_ms() < end_ms; i++) {
        size_t node = (leader + 1 + i % 2) % NODES;
        if (wire_open(&w, zks_host(), zks_port(t->testbed.zks, node), PROBE_MS) == 0) {
            wire_close(w);
            return;
        }
        net_nap_ms(2);
    }
    give_way("no new leader");
}

/* No leader can be elected while one of the two that are left stands still. */
static void prolong(struct test *t, size_t leader, uint64_t *seed)
{
    size_t other = (leader + 1 + chance_next(seed) % 2) % NODES;

    if (t->outage_ms == 0)
        return;
    if (zks_pause_node(t->testbed.zks, other) != 0)
        give_up("a follower can't be stopped");
    net_nap_ms(chance_between(seed, 0, t->outage_ms));
    if (zks_resume_node(t->testbed.zks, other) != 0)
        give_up("a follower can't be resumed");
}

static void forget(struct holder *h)
{
    h->suspect_at = h->suspect_until = 0;
    h->lost = h->emptied = false;
}

static void fail(struct test *t, const struct holder *h, const char *what, int64_t ms, int64_t most)
{
    printf("  FAILED at T %d ms: %s: %" PRId64 " ms, at most %" PRId64 " ms\n", h->session_ms, what,
           ms, most);
    t->failures++;
}

/* How long an outage may be that takes nothing from a holder, nor the job from zklock run (which
 * does not know the tick). Below zero: none. */
static int64_t again_ms(void)
{
    return test_length(AGAIN_MS, SLOW_MS);
}

static int64_t survived_ms(const struct test *t, const struct holder *h, bool job)
{
    int share = (t->tick_said ? LEAST_SAID_64 : LEAST_64) - (job ? JOB_64 : 0);

    return (int64_t)h->session_ms * share / 64 - again_ms();
}

static void note_limit(struct limit *limit, int64_t outage, bool survived)
{
    if (survived && outage > limit->survived)
        limit->survived = outage;
    if (!survived && (limit->not_survived == 0 || outage < limit->not_survived))
        limit->not_survived = outage;
}

static void judge_holder(struct test *t, struct holder *h, int64_t outage, int64_t end)
{
    int64_t most_ms = h->session_ms / HEARTBEAT_SHARE + again_ms();

    if (h->suspect_at != 0) {
        int64_t after = h->suspect_until - end, all = h->suspect_until - h->suspect_at;
        h->suspects++;
        h->longest = all > h->longest ? all : h->longest;
        h->latest = after > h->latest ? after : h->latest;
        if (after / MS > most_ms)
            fail(t, h, "SUSPECT after the outage", after / MS, most_ms);
    }
    h->losts += h->lost;
    h->empties += h->emptied;
    note_limit(&h->window, outage, !h->emptied);
    if (h->emptied && outage / MS < survived_ms(t, h, false))
        fail(t, h, "the window ended in an outage of", outage / MS, survived_ms(t, h, false));
}

static void judge_job(struct test *t, struct holder *h, int64_t outage)
{
    bool ended = job_has_ended(h);

    note_limit(&h->jobs_limit, outage, !ended);
    if (!ended)
        return;
    h->kills++;
    if (outage / MS < survived_ms(t, h, true))
        fail(t, h, "the job ended in an outage of", outage / MS, survived_ms(t, h, true));
    job_start(t, h);
}

/* What comes of it is over after a while: nobody is SUSPECT, or the holder has heard of its
 * loss. */
static void let_settle(struct test *t)
{
    int64_t start_ms = net_now_ms();

    net_nap_ms(AGAIN_MS);
    for (size_t i = 0; i < TIMEOUTS; i++) {
        struct holder *h = &t->holders[i];
        while (h->suspect_at != 0 && h->suspect_until == 0) {
            if (net_now_ms() - start_ms > 4 * WAIT_MS)
                give_up("SUSPECT for ever");
            net_nap_ms(5);
        }
    }
}

static void kill_once(struct test *t, uint64_t *seed)
{
    int leader = zks_wait_leader(t->testbed.zks, WAIT_MS);

    if (leader < 0)
        give_up("no leader");
    wait_all_hold(t);
    net_nap_ms(chance_between(seed, 500, 1500)); /* somewhere between two heartbeats */
    for (size_t i = 0; i < TIMEOUTS; i++)
        forget(&t->holders[i]);
    int64_t start = net_boot_ns();
    if (zks_kill_node(t->testbed.zks, (size_t)leader) != 0)
        give_up("the leader can't be killed");
    prolong(t, (size_t)leader, seed);
    wait_for_service(t, (size_t)leader);
    int64_t end = net_boot_ns(), outage = end - start;
    let_settle(t);
    t->longest_outage = outage > t->longest_outage ? outage : t->longest_outage;
    for (size_t i = 0; i < TIMEOUTS; i++) {
        judge_holder(t, &t->holders[i], outage, end);
        judge_job(t, &t->holders[i], outage);
    }
    if (zks_start_node(t->testbed.zks, (size_t)leader) != 0 ||
        zks_wait_ready(t->testbed.zks, ZKS_READY_MS) != 0)
        give_up("the old leader does not come back");
}

/* --- all -------------------------------------------------------------------------------------- */

static void bring_up(struct test *t)
{
    for (size_t i = 0; i < TIMEOUTS; i++) {
        struct holder *h = &t->holders[i];
        h->test = t;
        h->session_ms = timeouts_ms[i];
        snprintf(h->path, sizeof h->path, "/kill-%d", h->session_ms);
        snprintf(h->begun, sizeof h->begun, "%s/jobs-%zu", zks_dir(t->testbed.zks), i);
        holder_start(t, h);
        job_start(t, h);
    }
}

static void put_down(struct test *t)
{
    t->quit = true;
    for (size_t i = 0; i < TIMEOUTS; i++) {
        job_end(&t->holders[i]);
        pthread_join(t->holders[i].thread, NULL);
        zkl_client_close(t->holders[i].client, 1000);
        zkl_client_free(t->holders[i].client);
    }
    testbed_end(&t->testbed);
}

static void show_limit(const char *what, const struct limit *limit, int64_t promised_ms)
{
    printf("    %-6s longest outage that it survived %5" PRId64
           " ms, shortest that it did not %5" PRId64 " ms; promised %" PRId64 " ms\n",
           what, limit->survived / MS, limit->not_survived / MS, promised_ms > 0 ? promised_ms : 0);
}

static void report(const struct test *t, int kills)
{
    printf("%d kills of the leader; longest outage %" PRId64 " ms\n", kills,
           t->longest_outage / MS);
    for (size_t i = 0; i < TIMEOUTS; i++) {
        const struct holder *h = &t->holders[i];
        printf("  T %5d ms: SUSPECT %3d times, for %5" PRId64 " ms at most, %5" PRId64
               " ms after the outage at most; window ended %d times, lost %d times; job ended %d "
               "times\n",
               h->session_ms, h->suspects, h->longest / MS, h->latest / MS, h->empties, h->losts,
               h->kills);
        show_limit("window", &h->window, survived_ms(t, h, false));
        show_limit("job", &h->jobs_limit, survived_ms(t, h, true));
    }
}

int main(int argc, char **argv)
{
    struct test t = {.tool = getenv("ZKL_TEST_TOOL")};

    if (t.tool == NULL)
        give_up("ZKL_TEST_TOOL is not set: the path of zklock");
    int tick_ms = argc > 1 ? (int)option_number("tick", argv[1], 100, 2000) : 2000;
    int kills = argc > 2 ? atoi(argv[2]) : (int)test_length(100, 10);
    uint64_t seed = argc > 3 ? strtoull(argv[3], NULL, 10) : testbed_seed();
    t.tick_said = argc > 4 && strcmp(argv[4], "said") == 0;
    t.outage_ms = argc > 5 ? atoi(argv[5]) : 0;
    printf("test-kill %d %d %" PRIu64 " %s %d  (tick, kills, seed, whether the tick is said, how "
           "much longer an outage is made at most)\n",
           tick_ms, kills, seed, t.tick_said ? "said" : "unsaid", t.outage_ms);
    int rc = testbed_start(&t.testbed, tick_ms, NULL);
    if (rc != 0)
        return rc;
    bring_up(&t);
    for (int i = 0; i < kills; i++)
        kill_once(&t, &seed);
    report(&t, kills);
    put_down(&t);
    return t.failures > 0 ? 1 : 0;
}
