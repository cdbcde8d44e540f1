/* SPDX-License-Identifier: Apache-2.0
 *
 * zklock run: acquires the lock, lets the command run under its guard, reports to the guard how
 * long the lock is proved, and releases the lock once the command has ended. It owns claim, job and
 * connection of one run. One thread beside the library's; main.c calls it. The library reports
 * through an event, not in a callback. */
#include "run.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clock.h"
#include "connect.h"
#include "job.h"
#include "launch.h"
#include "make/make.h"
#include "notify.h"
#include "record.h"
#include "run_options.h"
#include "say.h"
#include "signals.h"
#include "standing.h"

/* The number of reports of a window in its length; and the bounds of their interval. */
enum {
    REPORTS_PER_WINDOW = 16,
    REPORT_MS_MIN = 10,
    REPORT_MS_MAX = 500,
    READER_MS = 10000 /* a reader of standard error keeps the lock from others so long at most */
};

struct run {
    struct run_options options;
    struct job job;
    struct zkl_client *client;
    struct claim claim;
    struct zkl_cancel *cancel;
    struct signals signals;
    int64_t reported_ns;
    bool reported_lost, reported_revoked, unproved, started, told_ready;
    struct report gone; /* the guard's last one, once the command has ended */
    int killed_by;      /* the signal, or 0 */
};

/* --- waiting ------------------------------------------------------------- */

/* A signal that would end us does so while we wait, or record the run, but not before our place in
 * the queue is given up. */
static int wait_for_lock(struct run *run, const struct zkl_wait *wait)
{
    struct standing standing;
    bool is_told = (run->options.verbose || notify_is_on()) && run->options.wait_ms != 0;
    signals_catch(run->cancel);
    if (is_told)
        standing_report(&standing, &run->claim, run->options.verbose);
    int rc = claim_acquire(&run->claim, wait);
    if (is_told)
        standing_end(&standing);
    signals_hold_back(rc != 0 || !run->options.not_within_ms);
    return rc;
}

/* --- while the command runs ---------------------------------------------- */

static const char *why(enum ending ending)
{
    return ending == ENDING_LOST ? "the lock was lost"
                                 : "no server has confirmed the lock for too long";
}

static int bounded_ms(int64_t ms, int64_t most_ms)
{
    most_ms = most_ms < REPORT_MS_MAX ? most_ms : REPORT_MS_MAX;
    ms = ms < most_ms ? ms : most_ms;
    return (int)(ms > REPORT_MS_MIN ? ms : REPORT_MS_MIN);
}

/* A window that could not be reported now is reported later. */
static int report_window(struct run *run)
{
    struct order order = {.kind = ORDER_WINDOW,
                          .time_ns = claim_window_end_ns(&run->claim),
                          .timeout_ns = claim_timeout_ns(&run->claim)};
    int64_t left_ms = (order.time_ns - boot_ns()) / MS_NS;
    bool is_earlier =
        order.time_ns != 0 && order.time_ns + REPORT_MS_MIN * MS_NS < run->reported_ns;
    if ((order.time_ns > run->reported_ns || is_earlier) && job_order(&run->job, &order))
        run->reported_ns = order.time_ns;
    return bounded_ms(left_ms / REPORTS_PER_WINDOW, notify_proved(order.time_ns));
}

static void report_events(struct run *run)
{
    uint64_t count;
    if (read(run->claim.events, &count, sizeof count) < 0 && errno != EAGAIN)
        return;
    if (atomic_load(&run->claim.lost) && !run->reported_lost)
        run->reported_lost = job_order(&run->job, &(struct order){.kind = ORDER_LOST});
    if (atomic_load(&run->claim.revoked) && !run->reported_revoked) {
        run->reported_revoked = true;
        job_signal(&run->job, SIGTERM);
        say("another client asks for the lock: the command gets SIGTERM");
    }
}

static void pass_signals(struct run *run)
{
    struct sent sent;
    int64_t began_ns = boot_ns();
    while (signals_read(run->signals.passed_on, &sent))
        job_sent(&run->job, &sent);
    job_pass(&run->job, began_ns);
}

/* True if that was the last one. */
static bool on_report(struct run *run, const struct report *report)
{
    switch (report->kind) {
    case REPORT_STOPPED:
        job_stopped(&run->job, report->value);
        return false;
    case REPORT_ENDING:
        say("%s: zklock ends the command", why(report->ending));
        notify_stops(why(report->ending));
        return false;
    case REPORT_GONE:
        notify_stops(report->ending == ENDING_BY_ITSELF ? "the command has ended" : NULL);
        run->unproved = report->ending != ENDING_BY_ITSELF;
        run->gone = *report;
        return true;
    case REPORT_READY:
    default:
        return false;
    }
}

/* 0, or the exit status after a sentence. */
static int hear_guard(struct run *run, bool *over)
{
    struct report report;
    int rc;
    while (!*over && (rc = job_receive(&run->job, &report)) != 0) {
        if (rc < 0) {
            job_kill(&run->job);
            *over = true;
            return fail(EXIT_SYSTEM,
                        "the process that guards the command was killed, and so was the "
                        "command");
        }
        *over = on_report(run, &report);
    }
    return 0;
}

static int watch(struct run *run)
{
    bool over = false;
    int rc = 0;
    while (!over) {
        run->told_ready = run->told_ready || notify_ready("the lock is held");
        int timeout_ms = job_pass_ms(&run->job, report_window(run));
        struct pollfd from[] = {{.fd = run->job.socket, .events = POLLIN},
                                {.fd = run->signals.passed_on, .events = POLLIN},
                                {.fd = run->claim.events, .events = POLLIN},
                                {.fd = run->job.anchor.socket, .events = POLLIN}};
        poll(from, 4, timeout_ms);
        report_events(run);
        pass_signals(run);
        rc = hear_guard(run, &over);
    }
    return rc;
}

/* --- the whole ----------------------------------------------------------- */

static int64_t deadline_ns(const struct run_options *o, int64_t started_ns)
{
    return o->wait_ms < 0 ? ZKL_NO_DEADLINE : started_ns + o->wait_ms * MS_NS;
}

static int acquire(struct run *run, int64_t started_ns)
{
    const struct run_options *o = &run->options;
    struct zkl_wait wait = ZKL_WAIT_INIT;
    wait.cancel = run->cancel;
    if (o->wait_ms == 0)
        wait.flags = ZKL_WAIT_TRY | ZKL_WAIT_SYNC;
    else
        wait.deadline_ns = deadline_ns(o, started_ns);
    return wait_for_lock(run, &wait);
}

/* Why no server was of use when the deadline passed; *length 0: it was another contender. */
static const char *find_reason(const struct claim_options *locks, int *length)
{
    const char *reason = reason_behind(" and others", length);
    for (size_t i = 0; i < locks->count && *length == 0; i++)
        reason = reason_behind(locks->paths[i], length);
    return reason;
}

/* The exit status. */
static int say_not_acquired(const struct run *run, int code)
{
    int length;
    if (code == ZKL_ECANCELED)
        return EXIT_CONFLICT; /* not what is seen: a signal is */
    if (code != ZKL_EBUSY && code != ZKL_ETIMEDOUT)
        return fail_code(code);
    const char *reason = find_reason(&run->options.locks, &length);
    if (length > 0)
        return fail(EXIT_NO_SERVER, "the lock was not acquired, as no server was of use%.*s",
                    length, reason);
    if (run->options.verbose)
        say("the lock was not acquired: another contender has it");
    return run->options.conflict;
}

/* After a loss that was none of the window's nothing was proved by it. */
static void say_spare(const struct run *run, int code)
{
    const struct report *gone = &run->gone;
    bool is_void =
        gone->ending == ENDING_LOST || (gone->ending == ENDING_BY_ITSELF && code == ZKL_ELOST);
    if (run->options.verbose && gone->kind == REPORT_GONE && !is_void)
        say("the command has ended, %" PRId64 " ms before the end of the lock's window",
            gone->spare_ns / MS_NS);
}

/* A failure here is reported, but it must not hide how the command ended. */
static void release(struct run *run)
{
    int code = claim_release(&run->claim);
    say_spare(run, code);
    if (code == ZKL_ELOST && !run->unproved && run->started)
        say("the lock was lost when the command ended, or just before");
    /* The code is about the time until unlock, of which the command's part counts. */
    bool overran = run->gone.kind == REPORT_GONE && run->gone.spare_ns <= 0;
    bool doubted = code == ZKL_EDOUBT && overran;
    if (doubted && !run->unproved && run->started)
        say("no server has confirmed that the lock was held until the command ended");
    if (code == ZKL_ELOST || doubted)
        run->unproved = true;
    else if (code != 0 && code != ZKL_EUNCONFIRMED && !zkl_error_is_lost(code))
        say("the lock could not be released, and ends with the session: %s", zkl_error_detail());
}

/* The guard reads no more: it was killed, or has ended as the process that would become the command
 * was. */
static bool guard_is_gone(struct run *run)
{
    struct report report;
    int heard;
    while ((heard = job_receive(&run->job, &report)) > 0) {
        if (report.kind == REPORT_GONE)
            return true;
    }
    return heard < 0;
}

/* Nothing is started before the guard knows until when. The window can be empty by now, if zklock
 * was stopped behind the grant: then a proof is waited for, no longer than the session lives
 * without one. 0, or the exit status after a sentence. */
static int report_first_window(struct run *run)
{
    int64_t until = zkl_now_ns() + claim_timeout_ns(&run->claim);
    notify_waits(NULL);
    for (report_window(run); run->reported_ns == 0; report_window(run)) {
        if (atomic_load(&run->claim.lost))
            return fail(EXIT_LOST, "the lock was lost before the command began");
        if (guard_is_gone(run))
            return fail(EXIT_SYSTEM,
                        "a process of this zklock was killed before the command began");
        if (signals_catch_now(&run->signals))
            return EXIT_CONFLICT; /* not what is seen: a signal is */
        if (zkl_now_ns() >= until)
            return fail(EXIT_LOST, "no server has confirmed the lock before the command began");
        poll(NULL, 0, REPORT_MS_MIN);
    }
    return 0;
}

static void free_all(char *variables[LAUNCH_VARIABLES])
{
    for (int i = 0; i < LAUNCH_VARIABLES; i++)
        free(variables[i]);
}

/* The lock is held. */
static int run_command_under_lock(struct run *run)
{
    char *variables[LAUNCH_VARIABLES];
    if (run->options.verbose)
        say("the lock is acquired");
    int rc = report_first_window(run);
    if (rc != 0)
        return rc;
    if (!claim_describe(&run->claim, variables))
        return fail(EXIT_SYSTEM, "out of memory");
    bool stop = signals_take_early(&run->signals);
    if (signals_caught()) {
        free_all(variables);
        return EXIT_CONFLICT; /* not what is seen: a signal is */
    }
    job_go(&run->job, variables);
    run->started = true;
    if (stop)
        job_signal(&run->job, SIGTSTP);
    say_waits_ms = 0;
    rc = watch(run);
    say_waits_ms = READER_MS;
    free_all(variables);
    return rc;
}

/* For a command that a signal killed: the status of a shell; zklock dies by the same signal. */
static int status_of_command(struct run *run)
{
    if (run->unproved)
        return EXIT_LOST;
    if (!WIFSIGNALED(run->gone.value))
        return WEXITSTATUS(run->gone.value);
    run->killed_by = WTERMSIG(run->gone.value);
    return 128 + run->killed_by;
}

/* How it ended, rc being what run_command_under_lock returned: then the command was killed, or not
 * started. */
static void record_end_of_run(const struct run *run, struct record *record, int rc)
{
    int status = run->gone.value;
    if (!run->started)
        record_end(record, RUN_NOT_STARTED, 0);
    else if (run->unproved)
        record_end(record, RUN_LOST, 0);
    else if (rc != 0)
        record_end(record, RUN_KILLED, SIGKILL);
    else if (WIFSIGNALED(status))
        record_end(record, RUN_KILLED, WTERMSIG(status));
    else
        record_end(record, RUN_EXITED, WEXITSTATUS(status));
}

static int run_recorded(struct run *run)
{
    struct record record = {.claim = &run->claim,
                            .within_ms = run->options.not_within_ms,
                            .retry_failed = run->options.retry_failed,
                            .verbose = run->options.verbose,
                            .cancel = run->cancel};
    notify_waits(NULL);
    int rc = record_begin(&record);
    signals_hold_back(true);
    if (rc != 0)
        return rc == RECORD_STOPPED ? EXIT_CONFLICT : rc; /* not what is seen: a signal is */
    rc = run_command_under_lock(run);
    record_end_of_run(run, &record, rc);
    return rc;
}

static int with_claim(struct run *run, int64_t started_ns)
{
    int code = acquire(run, started_ns), rc = 0;
    if (code != 0)
        return say_not_acquired(run, code);
    if (!signals_open(&run->signals))
        rc = fail(EXIT_SYSTEM, "no descriptor is available");
    else if (!signals_caught())
        rc = run->options.not_within_ms ? run_recorded(run) : run_command_under_lock(run);
    signals_hold_back(true);
    if (rc == RECORD_EARLY) {
        claim_release(&run->claim); /* what becomes of it changes nothing */
        return run->options.skip;
    }
    release(run);
    return rc == 0 ? status_of_command(run) : rc;
}

static int with_client(struct run *run, int64_t started_ns)
{
    int code = claim_init(&run->claim, run->client, &run->options.locks);
    int rc = code == 0 ? with_claim(run, started_ns) : fail_code(code);
    claim_fini(&run->claim);
    return rc;
}

/* The command has to end before another one can have the lock: nothing says there when that is. */
static int check_make(struct zkl_client *client)
{
    return zkl_make_is_other(zkl_client_session_id(client))
               ? fail(EXIT_NO_SERVER,
                      "%s, so the command could not be ended in time: it was not started",
                      ZKL_MAKE_OTHER)
               : 0;
}

static int with_job(struct run *run)
{
    int64_t started_ns = zkl_now_ns();
    int rc = zkl_cancel_new(&run->cancel) == 0 ? 0 : EXIT_SYSTEM;
    if (rc == 0)
        rc = tool_connect(&run->client, &run->options.settings, CONNECT_MS,
                          run->options.verbose ? standing_log : NULL);
    if (rc == 0)
        rc = check_make(run->client);
    if (rc == 0)
        rc = with_client(run, started_ns);
    if (run->client)
        tool_disconnect(run->client);
    zkl_cancel_free(run->cancel); /* no signal sets it any more: signals_hold_back */
    return rc;
}

static int run_under_lock(int argc, char **argv)
{
    struct run run = {0};
    signals_survive_failed_writes();
    int rc = run_options_parse(&run.options, argc, argv);
    notify_open();
    notify_waits(NULL);
    if (rc == 0)
        rc = job_start(&run.job, run.options.command);
    if (rc != 0)
        return rc;
    say_waits_ms = READER_MS;
    rc = with_job(&run);
    job_end(&run.job, run.unproved);
    settings_fini(&run.options.settings);
    int caught = signals_caught();
    if (caught || run.killed_by)
        signals_die_by(caught ? caught : run.killed_by);
    return rc;
}

const struct command run_command = {
    .name = "run",
    .summary = "run a command while holding a lock",
    .usage = run_usage,
    .run = run_under_lock,
};
