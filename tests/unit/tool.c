/* SPDX-License-Identifier: Apache-2.0
 * Commands for what the command zklock decides without asking anybody: which signals it passes on, and what the record of
 * the last run says. */
#include <signal.h>

#include "last_run.h"
#include "passing.h"
#include "script.h"

/* --- signals: times in milliseconds ------------------------------------------ */

static struct passing passing;

static int signal_of(const struct command *c)
{
    static const char *const names[] = {"TERM", "INT", "RTMIN", "RTMAX"};
    const int signals[] = {SIGTERM, SIGINT, SIGRTMIN, SIGRTMAX};
    return *word(c, 1) <= '9' ? (int)number(c, 1) : signals[INDEX_OF(names, word(c, 1))];
}

/* How many of that number are passed on, all being due. */
static int passed(int of)
{
    struct passing_one one;
    int n = 0;
    while (passing_take(&passing, INT64_MAX, &one))
        n += one.number == of && !one.to_all;
    return n;
}

/* take MS [NS] -> a signal's number */
static void take_one(const struct command *c)
{
    struct passing_one one = {0};
    passing_take(&passing, number(c, 1) * MS + (c->count > 2 ? number(c, 2) : 0), &one);
    assert_false(one.to_all);
    says(c, one.number == SIGTERM ? "TERM" : "%d", one.number);
}

static void say_ns(const struct command *c, int64_t ns)
{
    says(c, ns % MS ? "%lld+%lld" : "%lld", (long long)(ns / MS), (long long)(ns % MS));
}

static bool signals_do(const struct command *c)
{
    DO("passing", memset(&passing, 0, sizeof passing));
    DO("ours", /* SIGNAL KILLER MS */
       says(c, passing_ours(&passing, signal_of(c), (pid_t)number(c, 2), number(c, 3) * MS)
                   ? "taken"
                   : "no room"));
    DO("anchors", passing_anchors(&passing, signal_of(c), number(c, 2) * MS));
    DO("looks", passing_looks(&passing, number(c, 1) * MS + (c->count > 2 ? number(c, 2) : 0)));
    DO("pass_due", say_ns(c, passing_due_ns(&passing)));
    DO("look_due", say_ns(c, passing_look_ns(&passing)));
    DO("take_one", take_one(c));
    DO("passed", says(c, "%d", passed(signal_of(c))));
    return false;
}

/* --- the last run: it began at night, by the leader's clock ------------------- */

#define NIGHT INT64_C(1763865000000)

static const char *const ends[] = {"never", "unended", "exited", "killed", "lost", "not started"};

/* END VALUE */
static struct last_run run_of(const struct command *c)
{
    return (struct last_run){.end = (enum run_end)INDEX_OF(ends, word(c, 1)),
                             .value = (int)number(c, 2),
                             .begun_ms = NIGHT,
                             .took_ms = 1234,
                             .host = "web1",
                             .pid = 4711,
                             .token = 231};
}

/* verdict END VALUE MS [retry]: on another run within 12 hours, so long after; "first" and "last": a run that began at the
 * ends of time. */
static void say_verdict(const struct command *c)
{
    static const char *const verdicts[] = {"run", "early", "run: the clock went back"};
    struct last_run run = run_of(c);
    bool retry = c->count > 4 && strcmp(word(c, 4), "retry") == 0;
    int64_t now_ms = NIGHT + number(c, 3);
    if (c->count > 4 && !retry) {
        run.begun_ms = strcmp(word(c, 4), "first") == 0 ? INT64_MIN : INT64_MAX;
        now_ms = number(c, 3);
    }
    says(c, "%s", verdicts[last_run_verdict(&run, now_ms, 43200000, retry)]);
}

/* record END VALUE: its text is recorded, and it is read back, from a node that was changed an hour later. */
static void record_run(const struct command *c)
{
    char record[LAST_RUN_TEXT];
    struct last_run run = run_of(c), back;
    size_t length = last_run_write(&run, record);
    script_record("%s", record);
    assert_int_equal(length, strlen(record));
    assert_true(last_run_read(&back, record, length, NIGHT + 3600000));
    assert_int_equal(back.end, run.end);
    assert_int_equal(back.begun_ms, run.end == RUN_UNENDED ? NIGHT + 3600000 : NIGHT);
    assert_true(run.end == RUN_UNENDED || (back.value == run.value && back.took_ms == 1234));
    assert_true(back.pid == 4711 && back.token == 231);
    assert_string_equal(back.host, "web1");
}

static void say_read(const struct command *c)
{
    char data[TEXT_MAX];
    struct last_run run;
    size_t length = read_text(word(c, 1), data);
    if (last_run_read(&run, data, length, NIGHT))
        says(c, "%s, begun %lld", ends[run.end], (long long)run.begun_ms);
    else
        says(c, "none");
}

bool obey_tool(const struct command *c)
{
    DO("verdict", say_verdict(c));
    DO("record", record_run(c));
    DO("read_record", say_read(c));
    DO("record_of",
       says(c, "%zu", last_run_lock_length(word(c, 1)))); /* the length of a lock's path */
    return signals_do(c);
}
