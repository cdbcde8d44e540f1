/* SPDX-License-Identifier: Apache-2.0 */
/* zklock run --not-within: the job of several machines runs once a night, by the ensemble's clock, which the
 * tests set (wall.h). */
#include "tool.h"

#include "wall.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define RECORD ".last-run"
#define BEGINNING "zklock-run=1\n"
#define END "\nend="
#define MINUTE INT64_C(60000)
#define HOUR (60 * MINUTE)

static struct wall *wall;
static char preload[512];

/* Servers that are started between the two have clocks that can be set. */
static void give_clocks(void)
{
    check_ok(setenv("LD_PRELOAD", preload, 1));
}

static void end_clocks(void)
{
    check_ok(unsetenv("LD_PRELOAD"));
}

static int64_t machine_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return now.tv_sec * INT64_C(1000) + now.tv_nsec / 1000000;
}

static void set_clock(struct zks *zks, size_t node, int64_t wall_ms)
{
    atomic_llong *off_ns = wall_of(wall, zks_pid(zks, node));

    check_true(off_ns != NULL);
    atomic_store(off_ns, (wall_ms - machine_ms()) * 1000000);
}

/* --- one run ----------------------------------------------------------------------------------- */

/* Of the test that runs. */
static struct scene {
    struct worked worked;
    char folder[200], path[250], record[300];
    int64_t began_ms; /* the machine's clock, at the test's beginning */
} scene, *const s = &scene;

static void begin(void)
{
    end_clocks();
    *s = (struct scene){.worked = worked_new(), .began_ms = machine_ms()};
    snprintf(s->folder, sizeof s->folder, "%s", cluster_path("night"));
    snprintf(s->path, sizeof s->path, "%s/job", s->folder);
    snprintf(s->record, sizeof s->record, "%s" RECORD, s->path);
    set_clock(server, 0, s->began_ms);
}

static int begun(void)
{
    return atomic_load(&s->worked.shared->begun);
}

/* Run zklock, and expect that the job has begun this many times in all. */
static void run_and_check(int times, const char *options)
{
    check_said(0, written("run -v %s %s -- work %s 1", options, s->path, s->worked.name));
    check_num(begun(), ==, times);
}

/* A run that goes on until it gets a signal. */
static struct tool begin_run(const char *options)
{
    return tool_line("run %s %s -- work %s 0", options, s->path, s->worked.name);
}

static struct wire_stat record_of(char *text, size_t size)
{
    struct wire_stat stat;

    check_ok(wire_get(raw, s->record, text, size, &stat));
    return stat;
}

static void check_record(const char *words)
{
    char text[1024];

    record_of(text, sizeof text);
    if (!strstr(text, words))
        fail_msg("no \"%s\" in %s", words, text);
}

/* As a client may, or the end of a dead one's session does some time later. */
static void delete_holder(void)
{
    char node[300];

    cluster_child(s->path, 0, node, sizeof node);
    check_ok(wire_delete(raw, node, -1));
}

/* --- a run that is struck ---------------------------------------------------------------------- */

/* What the hook does with the first transaction that has these words, and with its answer. */
enum strike {
    STRIKE_REQUEST,  /* stop it until the test goes on */
    STRIKE_ANSWER,   /* the answer instead */
    STRIKE_LOSS,     /* likewise; then it does not come, and all else does */
    STRIKE_SILENCE,  /* neither the answer comes nor anything after it */
    STRIKE_MISMATCH, /* spoil the answer, which ends the link: the outcome is not known */
};

struct ambush {
    const char *words;
    enum strike strike;
    unsigned char xid[4];
    bool seen;         /* the request; the answer is yet to come */
    atomic_bool spoil; /* the request, before it passes */
    atomic_bool struck, go_on, silent;
};

static void stand_still(struct ambush *a)
{
    atomic_store(&a->struck, true);
    while (!atomic_load(&a->go_on))
        net_nap_ms(1);
}

static void ambush_request(struct ambush *a, unsigned char *frame, size_t size)
{
    if (a->seen || atomic_load(&a->struck) || !memmem(frame, size, a->words, strlen(a->words)))
        return;
    a->seen = true;
    memcpy(a->xid, frame, sizeof a->xid);
    if (a->strike == STRIKE_REQUEST)
        stand_still(a);
    if (atomic_load(&a->spoil))
        memset(frame + 8, 0, size - 8); /* behind its number and type */
}

/* Numbers are a connection's own, and the library's heartbeat is a transaction too: but one with a short answer. */
static size_t ambush_answer(struct ambush *a, unsigned char *frame, size_t size)
{
    if (!a->seen || size < 80 || memcmp(frame, a->xid, sizeof a->xid) != 0)
        return size;
    a->seen = false;
    if (a->strike == STRIKE_ANSWER || a->strike == STRIKE_LOSS)
        stand_still(a);
    atomic_store(&a->struck, true);
    if (a->strike == STRIKE_MISMATCH)
        memset(frame, 0x55, sizeof a->xid);
    atomic_store(&a->silent, a->strike == STRIKE_SILENCE);
    return a->strike == STRIKE_LOSS || a->strike == STRIKE_SILENCE ? 0 : size;
}

static size_t ambush(enum proxy_dir dir, int op, unsigned char *frame, size_t size, void *arg)
{
    const struct ambush *a = arg;

    if (dir == PROXY_TO_CLIENT && atomic_load(&a->silent))
        return 0;
    if (op == PROXY_MULTI && size > 8 && dir == PROXY_TO_SERVER)
        ambush_request(arg, frame, size);
    else if (op == PROXY_MULTI && dir == PROXY_TO_CLIENT)
        return ambush_answer(arg, frame, size);
    return size;
}

/* A run of a scene of its own. */
static struct struck {
    struct ambush ambush;
    struct proxy *proxy;
    struct tool tool;
} k;

static void go_on(void)
{
    atomic_store(&k.ambush.go_on, true);
}

static void end_ambush(void)
{
    go_on();
    if (k.proxy)
        world_drop(k.proxy);
    k.proxy = NULL;
}

/* With a record of an earlier run, and one more option. */
static void strike_after(const char *former, const char *option, const char *words, enum strike how)
{
    begin();
    if (former) {
        check_ok(wire_create(raw, s->folder, "", WIRE_PERSISTENT, NULL, 0));
        check_ok(wire_create(raw, s->record, former, WIRE_PERSISTENT, NULL, 0));
    }
    end_ambush();
    k.ambush = (struct ambush){.words = words, .strike = how};
    k.proxy = world_proxy();
    proxy_set_hook(k.proxy, ambush, &k.ambush);
    k.tool = tool_line("run --servers %s --not-within 60 %s %s -- work %s 1",
                       proxy_address(k.proxy), option, s->path, s->worked.name);
    check_wait(atomic_load(&k.ambush.struck), WAIT_MS);
}

static void strike(const char *words, enum strike how)
{
    strike_after(NULL, "-E1", words, how); /* the default */
}

static void kill_and_go_on(void)
{
    tool_kill(&k.tool, SIGKILL);
    atomic_store(&k.ambush.spoil, true);
    go_on();
    delete_holder();
    end_ambush();
}

static int prepare(void **state)
{
    int rc = tool_prepare(state);

    if (rc == 0)
        begin();
    return rc;
}

static int end(void **state)
{
    go_on();
    k.proxy = NULL;
    return tool_end(state);
}

#define NIGHT_TEST(name) WORLD_TEST_IN(name, prepare, end)

/* --- nights ------------------------------------------------------------------------------------ */

/* Goal: the record stands beside the lock, so that the lock's node comes and goes as without it, and no data
 * of a contender is touched. First: the server looks for empty containers with a timer that a clock which goes
 * back stops. */
NIGHT_TEST(the_lock_is_as_without_it)
{
    struct wire_stat stat;
    char node[300];

    struct tool tool = begin_run("--not-within 60");
    worked_wait(&s->worked, 1);
    check_num(cluster_children(s->path), ==, 1);
    check_ok(wire_exists(raw, s->path, &stat));
    check_num(stat.pzxid, >, 0);
    cluster_child(s->path, 0, node, sizeof node);
    check_ok(wire_exists(raw, node, &stat));
    check_num(stat.version, ==, 0);
    check_ok(wire_exists(raw, s->record, &stat));
    check_num(stat.ephemeral_owner, ==, 0);
    kill(tool.pid, SIGTERM);
    tool_wait(&tool);
    check_wait(wire_exists(raw, s->path, NULL) == WIRE_NONODE, WAIT_MS);
    check_ok(wire_exists(raw, s->record, NULL));
}

/* Goal: one line of cron on two machines whose clocks are 5 s apart runs a job of a tenth of a second once a night, for
 * 200 nights, or 20 in the short form. Method: the test sets the servers' clock forward from night to night. In each
 * third night the second zklock comes early enough to wait for the first. */
NIGHT_TEST(two_machines_run_it_once_a_night)
{
    long nights = test_length(200, 20);

    for (int night = 0; night < nights; night++) {
        int64_t half_past_two = s->began_ms + night * 24 * HOUR;
        const char *wait = night % 3 == 0 ? "20" : "0";
        set_clock(server, 0, half_past_two);
        struct tool first =
            tool_line("run -n --not-within 43200 %s -- work %s 100", s->path, s->worked.name);
        if (night % 3 == 0)
            worked_wait(&s->worked, night + 1);
        else
            check_num(tool_status(&first), ==, 0);
        set_clock(server, 0, half_past_two + 5000);
        struct tool second = tool_line("run -w %s --not-within 43200 %s -- work %s 100", wait,
                                       s->path, s->worked.name);
        if (night % 3 == 0)
            check_num(tool_status(&first), ==, 0);
        check_num(tool_status(&second), ==, 0);
        check_num(begun(), ==, night + 1);
        close(first.output);
        close(second.output);
    }
}

/* Goal: a machine that tries every minute does not put the next run off: the first try after the distance runs the job.
 * The distance is half a minute less than ten minutes, because a run takes some time itself. */
NIGHT_TEST(tried_every_minute_it_does_not_starve)
{
    for (int minute = 0; minute <= 35; minute++) {
        set_clock(server, 0, s->began_ms + minute * MINUTE);
        run_and_check(minute / 10 + 1, "--not-within 570");
    }
}

/* Goal: a clock that was set back by less than the distance counts as late. If it was set back by more, the job runs,
 * and zklock says so. */
NIGHT_TEST(a_clock_that_goes_back_is_told)
{
    run_and_check(1, "--not-within 7200");
    set_clock(server, 0, s->began_ms - HOUR);
    run_and_check(1, "--not-within 7200");
    check_said(0, written("run --not-within 1800 %s -- %s %s 1", s->path, WORK, s->worked.name),
               "which was set back");
    check_num(begun(), ==, 2);
}

/* Goal: too early is a success that says nothing, or what is wanted; and changes nothing. */
NIGHT_TEST(too_early_changes_nothing)
{
    char before[1024], after[1024];

    run_and_check(1, "--not-within 60");
    struct wire_stat was = record_of(before, sizeof before);
    check_said(0, written("run --not-within 60 %s -- %s %s 1", s->path, WORK, s->worked.name), "=");
    check_said(9,
               written("run -v --not-within 60 --skip-exit-code 9 %s -- %s %s 1", s->path, WORK,
                       s->worked.name),
               "too early: the last run, on ");
    struct wire_stat is = record_of(after, sizeof after);
    check_text(after, before);
    check_true(is.mzxid == was.mzxid && is.version == was.version && is.children == 0);
    check_num(begun(), ==, 1);
    check_num(cluster_children(s->path), ==, 0);
}

/* Goal: a leader whose clock is an hour behind or ahead. Method: three servers; the followers' clocks are set,
 * then the leader dies, and the next run is by the next one's clock. */
NIGHT_TEST(a_leader_with_another_clock)
{
    struct zks_options options = {.nodes = 3};
    struct zks *zks;
    char err[512];
    static const struct {
        int64_t off_ms;
        const char *within;
        int runs; /* by then */
    } turns[] = {{-HOUR, "7200", 1}, {0, "7200", 1},
                 {HOUR, "7200", 1},  {2 * HOUR + MINUTE, "7200", 2},
                 {HOUR, "7200", 2},  {0, "1800", 3}};

    give_clocks();
    if (zks_start(&zks, &options, err, sizeof err) != 0)
        fail_msg("%s", err);
    end_clocks();
    run_and_check(1, written("--servers %s --not-within 7200", zks_connect_string(zks)));
    for (size_t i = 0; i < sizeof turns / sizeof turns[0]; i++) {
        int leader = zks_wait_leader(zks, ZKS_READY_MS);
        check_num(leader, >=, 0);
        for (int node = 0; node < 3; node++) {
            if (node != leader)
                set_clock(zks, (size_t)node, s->began_ms + turns[i].off_ms);
        }
        check_ok(zks_kill_node(zks, (size_t)leader));
        check_ok(zks_wait_ready(zks, ZKS_READY_MS));
        check_num(zks_wait_leader(zks, ZKS_READY_MS), !=, leader);
        run_and_check(turns[i].runs, written("--servers %s --not-within %s",
                                             zks_connect_string(zks), turns[i].within));
        check_ok(zks_start_node(zks, (size_t)leader));
        check_ok(zks_wait_ready(zks, ZKS_READY_MS));
    }
    zks_stop(zks);
}

/* Goal: what counts is when the last run began, not when it ended. */
NIGHT_TEST(the_beginning_counts)
{
    struct tool tool = begin_run("--not-within 3600");
    worked_wait(&s->worked, 1);
    set_clock(server, 0, s->began_ms + 50 * MINUTE);
    kill(tool.pid, SIGTERM);
    tool_wait(&tool);
    check_record("\nend=signal 15\n");
    run_and_check(1, "--not-within 3600");
    set_clock(server, 0, s->began_ms + 65 * MINUTE);
    run_and_check(2, "--not-within 3600");
}

/* --- ends -------------------------------------------------------------------------------------- */

/* Goal: each end is recorded before the lock is free; with --retry-failed a bad one does not count. */
NIGHT_TEST(a_bad_end_does_not_count)
{
    static const struct {
        const char *command, *record;
    } bad[] = {{"exit 3", "\nend=exit 3\n"},
               {"kill -9 $$", "\nend=signal 9\n"},
               {"exec /not/there", "\nend=exit 127\n"}};
    char text[1024];

    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct tool tool =
            tool_line("run --not-within 60 --retry-failed %s -c '%s'", s->path, bad[i].command);
        tool_wait(&tool);
        check_record(bad[i].record);
        run_and_check(0, "--not-within 60"); /* as it counts without */
    }
    record_of(text, sizeof text);
    run_and_check(1, "--not-within 60 --retry-failed");
    check_record("\nend=exit 0\n");
    run_and_check(1, "--not-within 60 --retry-failed");
}

/* Goal: while the command runs the record has its beginning and no end; when its zklock is killed, it keeps
 * none: the run counts, but not with --retry-failed. */
NIGHT_TEST(a_killed_holder_has_no_end)
{
    struct tool tool = begin_run("--not-within 60");
    if (!wait_until(begun() == 1, WAIT_MS))
        fail_msg("%s", tool_text(&tool));
    char text[1024];
    record_of(text, sizeof text);
    check_true(!strstr(text, "end="));
    check_said(0, written("status %s", s->path), "\n  last run: still running, on ");
    tool_kill(&tool, SIGKILL);
    check_wait(process_gone(atomic_load(&s->worked.shared->pid)), WAIT_MS); /* its guard ends it */
    delete_holder();
    check_said(0, written("status %s", s->path), "\n  last run: no end is known, on ");
    run_and_check(1, "--not-within 60");
    run_and_check(2, "--not-within 60 --retry-failed");
}

/* Goal: zklock records the loss of the lock too; then only the record's version protects that write. */
NIGHT_TEST(a_lost_lock_is_an_end)
{
    struct tool tool = begin_run("--not-within 60");
    worked_wait(&s->worked, 1);
    delete_holder();
    check_num(tool_status(&tool), ==, 79);
    check_record("\nend=lost\n");
}

/* Goal: forget removes a record while its command runs, and another run makes it anew. The first run does not write its
 * end into the new record. Versions count from 0 again, so they cannot distinguish the two. */
NIGHT_TEST(forgotten_while_it_runs)
{
    struct worked other = worked_new();
    char text[1024];

    struct tool first =
        tool_line("run --not-within 60 %s -- work %s 0 stubborn", s->path, s->worked.name);
    worked_wait(&s->worked, 1);
    check_said(0, written("forget %s", s->path));
    struct tool second = tool_line("run --not-within 60 %s -- work %s 0", s->path, other.name);
    check_wait(cluster_children(s->path) == 2, WAIT_MS);
    delete_holder();
    worked_wait(&other, 1);
    check_num(tool_status(&first), ==, 79);
    record_of(text, sizeof text);
    if (!strstr(text, written("\npid=%d\n", (int)second.pid)) || strstr(text, END))
        fail_msg("no record of %d that goes on: %s", (int)second.pid, text);
    kill(second.pid, SIGTERM);
    tool_wait(&second);
    check_record("\nend=signal 15\n");
}

/* --- around the beginning ---------------------------------------------------------------------- */

/* Goal: a holder that dies before its beginning is recorded has not run: the next one does. */
NIGHT_TEST(killed_before_it_was_recorded)
{
    strike(BEGINNING, STRIKE_REQUEST);
    check_num(cluster_children(s->path), ==, 1);
    check_num(wire_exists(raw, s->record, NULL), ==, WIRE_NONODE);
    kill_and_go_on();
    check_num(begun(), ==, 0);
    run_and_check(1, "--not-within 60");
}

/* Goal: nothing is started before the record was answered; and a holder that dies then counts as run, as nobody
 * can know better, but not with --retry-failed. */
NIGHT_TEST(killed_when_it_was_recorded)
{
    strike(BEGINNING, STRIKE_ANSWER);
    check_record("zklock-run=1\n");
    check_num(begun(), ==, 0);
    kill_and_go_on();
    run_and_check(0, "--not-within 60");
    run_and_check(1, "--not-within 60 --retry-failed");
}

/* Goal: a signal that ends us does so while the beginning is being recorded, and the night does not count as run.
 * Method: its answer does not come. Where nothing passes at all, and what
 * becomes of the beginning can't be known, that is said. */
NIGHT_TEST(a_signal_ends_it_before_the_beginning)
{
    strike(BEGINNING, STRIKE_LOSS);
    check_ok(kill(k.tool.pid, SIGTERM));
    go_on();
    check_num(tool_signal(&k.tool), ==, SIGTERM);
    check_num(begun(), ==, 0);
    check_record("\nend=not-started\n");
    run_and_check(1, "--not-within 60");

    strike(BEGINNING, STRIKE_ANSWER);
    kill(k.tool.pid, SIGUSR1); /* the command's, had it begun */
    go_on();
    check_num(tool_status(&k.tool), ==, 0);
    check_record("\nend=exit 0\n");

    strike(BEGINNING, STRIKE_REQUEST);
    tool_kill(&k.tool, SIGTERM);
    check_true(tool_says(&k.tool, "may be recorded as begun"));
    go_on();
    check_num(begun(), ==, 0);
}

/* Goal: a beginning that may have been recorded, and was not begun, is said not to have started; where nothing can be said
 * to any server, zklock says so to whoever reads. Method: the answer is lost, and then the lock; or every server. */
NIGHT_TEST(what_was_recorded_and_not_begun_does_not_count)
{
    strike(BEGINNING, STRIKE_LOSS);
    delete_holder();
    go_on();
    check_num(tool_status(&k.tool), ==, 79);
    check_record("\nend=not-started\n");
    run_and_check(1, "--not-within 60");

    strike(BEGINNING, STRIKE_SILENCE);
    proxy_refuse(k.proxy, true);
    proxy_cut(k.proxy);
    int status = tool_status(&k.tool);
    check_true(status == 69 || status == 79);
    check_true(tool_says(&k.tool, "may be recorded as begun"));
    check_num(begun(), ==, 0);
}

/* Goal: a try that is not begun leaves the run before it in the record, which still counts for those who ask for a
 * longer time, or do not ask how it ended. Method: likewise; the record has a run of 100 s ago, and one without an
 * end. */
NIGHT_TEST(the_run_before_what_was_not_begun_counts)
{
    static const char failed[] = "zklock-run=1\nhost=web\npid=7\ntoken=9\n";
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    for (int unended = 0; unended <= 1; unended++) {
        strike_after(unended ? failed
                             : written("%sbegun=%lld\nend=exit 0\ntook=5\n", failed,
                                       (now.tv_sec - 100) * 1000LL),
                     "--retry-failed", BEGINNING, STRIKE_LOSS);
        delete_holder();
        go_on();
        check_num(tool_status(&k.tool), ==, 79);
        check_record(unended ? "token=9\nbegun=" : "\nend=exit 0\n");
        run_and_check(0, written("--not-within %s", unended ? "60" : "3600"));
        run_and_check(1, "--not-within 60 --retry-failed");
    }
}

/* Goal: if the answer is lost, zklock reads the record, and finds its own beginning there, written once. */
NIGHT_TEST(a_lost_answer_is_looked_for)
{
    char text[1024];

    strike(BEGINNING, STRIKE_MISMATCH);
    if (tool_status(&k.tool) != 0)
        fail_msg("%s", tool_text(&k.tool));
    check_num(begun(), ==, 1);
    check_num(record_of(text, sizeof text).version, ==, 2); /* made and begun: 1; ended */
    check_true(strstr(text, "\nend=exit 0\n"));
}

/* Goal: a zklock that loses the lock before it has recorded the beginning records nothing and runs nothing: the
 * transaction checks the lock's node. */
NIGHT_TEST(a_lock_that_is_lost_before_records_nothing)
{
    strike(BEGINNING, STRIKE_REQUEST);
    delete_holder();
    go_on();
    check_num(tool_status(&k.tool), ==, 79);
    check_num(begun(), ==, 0);
    check_num(wire_exists(raw, s->record, NULL), ==, WIRE_NONODE);
}

/* Goal: zklock records the end before it releases the lock. */
NIGHT_TEST(the_end_is_recorded_under_the_lock)
{
    strike(END, STRIKE_REQUEST);
    check_num(cluster_children(s->path), ==, 1);
    go_on();
    check_num(tool_status(&k.tool), ==, 0);
    check_record("\nend=exit 0\n");
}

/* --- the node ---------------------------------------------------------------------------------- */

/* Goal: a record that another program wrote badly hides no lock from programs that read JSON. */
NIGHT_TEST(a_host_that_is_no_text_is_null)
{
    json_error_t error;

    run_and_check(1, "--not-within 60");
    check_ok(wire_set(raw, s->record, "zklock-run=1\nhost=\xff\xfe\npid=7\ntoken=9\n", -1));
    struct tool tool = tool_line("status --json %s", s->folder);
    check_num(tool_status(&tool), ==, 0);
    json_t *all = json_loads(tool_text(&tool), 0, &error);
    json_t *last = json_object_get(json_array_get(json_object_get(all, "locks"), 0), "last_run");
    check_true(json_is_null(json_object_get(last, "host")));
    check_num(json_integer_value(json_object_get(last, "token")), ==, 9);
    json_decref(all);
}

/* Goal: status shows the last run beside its lock, once, even after the server has removed the lock's node. forget
 * removes the record. */
NIGHT_TEST(it_is_shown_and_forgotten)
{
    json_error_t error;

    check_said(1, written("forget %s", s->path), "no run is recorded");
    run_and_check(1, "--not-within 60");
    check_said(0, written("status %s", s->path), "  free\n  last run: exit 0 after 0.");
    struct tool tool = tool_line("status %s", s->folder);
    check_num(tool_status(&tool), ==, 0);
    check_true(!tool_says(&tool, RECORD));
    const char *first = strstr(tool_text(&tool), s->path);
    check_true(first && !strstr(first + 1, s->path));
    tool = tool_line("status --json %s", s->path);
    check_num(tool_status(&tool), ==, 0);
    json_t *all = json_loads(tool_text(&tool), 0, &error);
    json_t *last = json_object_get(json_array_get(json_object_get(all, "locks"), 0), "last_run");
    check_text(json_string_value(json_object_get(last, "end")), "exit");
    check_num(json_integer_value(json_object_get(last, "value")), ==, 0);
    check_num(json_integer_value(json_object_get(last, "begun_ms")), >=, s->began_ms - 1);
    json_decref(all);
    check_said(0, written("forget %s", s->path));
    check_num(wire_exists(raw, s->record, NULL), ==, WIRE_NONODE);
    run_and_check(2, "--not-within 60");
}

/* Goal: without CREATE above the lock zklock says what is missing, and runs nothing. With a node that was made
 * beforehand the run succeeds, and forget empties that node. */
NIGHT_TEST(without_create_it_is_told)
{
    static const struct wire_acl fixed[] = {{17, "world", "anyone"}},
                                 all[] = {{31, "world", "anyone"}};
    static const struct wire_acl no_read[] = {{30, "world", "anyone"}};
    const char *folder = s->folder, *path = s->path;
    struct wire_stat stat;

    check_ok(wire_create(raw, folder, "", WIRE_PERSISTENT, NULL, 0));
    check_ok(wire_create(raw, path, "", WIRE_PERSISTENT, NULL, 0));
    check_ok(wire_set_acl(raw, folder, fixed, 1));
    check_said(77, written("run --not-within 60 %s -- true", path),
               "needs CREATE on the node above");
    check_ok(wire_set_acl(raw, folder, all, 1));
    check_ok(wire_create_acl(raw, s->record, "", WIRE_PERSISTENT, all, 1, NULL, 0));
    check_ok(wire_set_acl(raw, folder, fixed, 1));
    run_and_check(1, "--not-within 60");
    run_and_check(1, "--not-within 60");
    check_said(0, written("forget %s", path));
    check_ok(wire_exists(raw, s->record, &stat));
    check_num(stat.data_length, ==, 0);
    run_and_check(2, "--not-within 60");
    check_ok(wire_set_acl(raw, s->record, no_read, 1));
    check_said(77, written("run --not-within 60 %s -- true", path),
               "READ, WRITE, CREATE and DELETE of its own");
    check_said(0, written("status %s", path), "the last run cannot be read");
    check_said(77, written("forget %s", path), s->record);
}

/* Goal: what stands there and is no record is left alone. */
NIGHT_TEST(what_is_no_record_is_left_alone)
{
    char text[1024];

    check_ok(wire_create(raw, s->folder, "", WIRE_PERSISTENT, NULL, 0));
    check_ok(wire_create(raw, s->record, "somebody's", WIRE_PERSISTENT, NULL, 0));
    check_said(78, written("run --not-within 60 %s -- true", s->path), "is not a record");
    check_said(78, written("forget %s", s->path), "is not a record");
    record_of(text, sizeof text);
    check_text(text, "somebody's");
    check_ok(wire_set(raw, s->record, "", -1));
    check_ok(wire_create(raw, written("%s/child", s->record), "", WIRE_PERSISTENT, NULL, 0));
    check_said(78, written("forget %s", s->path), "has nodes below it");
}

/* Goal: below a chroot, and with ACLs for the creator alone, it is the same. */
NIGHT_TEST(below_a_chroot_and_with_a_credential)
{
    char servers[300], text[1024];

    check_ok(wire_create(raw, s->folder, "", WIRE_PERSISTENT, NULL, 0));
    snprintf(servers, sizeof servers, "%s%s", zks_connect_string(server), s->folder);
    strcpy(s->path, "/job");
    check_ok(setenv("ZKLOCK_AUTH", "digest:alice:secret", 1));
    check_ok(setenv("ZKLOCK_ACL", "creator", 1));
    run_and_check(1, written("--servers %s --not-within 60", servers));
    run_and_check(1, written("--servers %s --not-within 60", servers));
    check_num(wire_get(raw, s->record, text, sizeof text, NULL), ==, WIRE_NOAUTH);
    check_said(0, written("status --servers %s /job", servers), "last run: exit 0");
    check_ok(unsetenv("ZKLOCK_AUTH"));
    check_ok(unsetenv("ZKLOCK_ACL"));
    check_num(wire_set(raw, s->record, "", -1), ==, WIRE_NOAUTH);
}

/* Goal: what can't be meant is refused before anything is asked. */
NIGHT_TEST(wrong_words_are_refused)
{
    end_clocks();
    check_said(64, "run --not-within 0 /a -- true",
               "a number of seconds from 0.001 to 315360000, such as 10 or 0.5, not \"0\"");
    check_said(64, "run --not-within soon /a -- true", "not \"soon\"");
    check_said(64, "run --not-within 5 /a /b -- true", "one path, not 2");
    check_said(64, "run --not-within 5 -s /a -- true", "omit -s");
    check_said(64, "run --not-within 5 --permits 2 /a -- true", "omit --permits");
    check_said(64, "run --retry-failed /a -- true", "requires --not-within");
    check_said(64, "run --not-within 5 --skip-exit-code 256 /a -- true", "0 to 255");
    check_said(64, "run /a.last-run -- true", "no lock can be at /a.last-run:");
    check_said(64, "run -s /c /a.last-run/b -- true", "no lock can be at /a.last-run/b:");
    check_said(64, "forget", "one PATH, not 0 words");
    check_said(64, "forget a", "does not begin with a slash");
}

static bool prepare_clocks(void)
{
    static char name[64];
    int fd = memfd_create("wall", 0);

    snprintf(name, sizeof name, "/proc/%d/fd/%d", (int)getpid(), fd);
    snprintf(preload, sizeof preload, "%s", getenv("ZKL_TEST_WALL_SO"));
    wall = wall_map(name);
    return wall && setenv(WALL_VARIABLE, name, 1) == 0 && setenv("LD_PRELOAD", preload, 1) == 0;
}

int main(int argc, char **argv)
{
    cluster_server.container_check_ms = CONTAINER_CHECK_MS;
    return prepare_clocks() ? cluster_main(argc, argv) : 1;
}
