/* SPDX-License-Identifier: Apache-2.0 */
/* The record of the last run of zklock run --not-within: when another run is too early, and its text. */
#include "last_run.h"

#include <string.h>

#include "check.h"

#define NIGHT INT64_C(1763865000000) /* some 2:30 of a night, on the leader's clock */
#define HOUR INT64_C(3600000)
#define WITHIN (12 * HOUR)

static struct last_run run_of(enum run_end end, int value)
{
    return (struct last_run){.end = end,
                             .value = value,
                             .begun_ms = NIGHT,
                             .took_ms = 1234,
                             .host = "web1",
                             .pid = 4711,
                             .token = 231};
}

static enum verdict at(int64_t since_ms, enum run_end end, int value, bool retry_failed)
{
    struct last_run run = run_of(end, value);
    return last_run_verdict(&run, NIGHT + since_ms, WITHIN, retry_failed);
}

/* Goal: the distance from the beginning decides, to the millisecond, and how the run ended does not. */
TEST(the_beginning_decides)
{
    for (enum run_end end = RUN_UNENDED; end <= RUN_LOST; end++) {
        check_num(at(0, end, 0, false), ==, VERDICT_EARLY);
        check_num(at(5000, end, 1, false), ==, VERDICT_EARLY);
        check_num(at(WITHIN - 1, end, 9, false), ==, VERDICT_EARLY);
        check_num(at(WITHIN, end, 0, false), ==, VERDICT_RUN);
        check_num(at(24 * HOUR, end, 0, false), ==, VERDICT_RUN);
    }
}

/* Goal: a leader whose clock is late by no more than the distance is believed to be late; beyond that the
 * record would keep the command from running for too long. */
TEST(a_clock_that_goes_back)
{
    struct last_run run = run_of(RUN_EXITED, 0);

    check_num(at(-1, RUN_EXITED, 0, false), ==, VERDICT_EARLY);
    check_num(at(-HOUR, RUN_EXITED, 0, false), ==, VERDICT_EARLY);
    check_num(at(-WITHIN, RUN_EXITED, 0, false), ==, VERDICT_EARLY);
    check_num(at(-WITHIN - 1, RUN_EXITED, 0, false), ==, VERDICT_RUN_CLOCK_BACK);
    run.begun_ms = INT64_MAX;
    check_num(last_run_verdict(&run, -1000, WITHIN, false), ==, VERDICT_RUN_CLOCK_BACK);
    run.begun_ms = INT64_MIN;
    check_num(last_run_verdict(&run, 1000, WITHIN, false), ==, VERDICT_RUN);
}

/* Goal: with retry_failed only a good end counts; what never began never counts. */
TEST(what_did_not_end_well)
{
    check_num(at(1, RUN_EXITED, 0, true), ==, VERDICT_EARLY);
    check_num(at(1, RUN_EXITED, 3, true), ==, VERDICT_RUN);
    check_num(at(1, RUN_KILLED, 9, true), ==, VERDICT_RUN);
    check_num(at(1, RUN_LOST, 0, true), ==, VERDICT_RUN);
    check_num(at(1, RUN_UNENDED, 0, true), ==, VERDICT_RUN);
    for (int retry = 0; retry <= 1; retry++) {
        check_num(at(1, RUN_NEVER, 0, retry), ==, VERDICT_RUN);
        check_num(at(1, RUN_NOT_STARTED, 0, retry), ==, VERDICT_RUN);
    }
}

/* Goal: each end is read as it was written. The beginning of a run without an end is the node's mtime; of one
 * with an end it stands in the text, as the mtime is then the end's. */
TEST(text_and_back)
{
    static const struct {
        enum run_end end;
        int value;
        const char *text;
    } all[] = {{RUN_EXITED, 0, "end=exit 0\n"},
               {RUN_EXITED, 255, "end=exit 255\n"},
               {RUN_KILLED, 15, "end=signal 15\n"},
               {RUN_LOST, 0, "end=lost\n"},
               {RUN_NOT_STARTED, 0, "end=not-started\n"}};
    char text[LAST_RUN_TEXT];
    struct last_run run = run_of(RUN_UNENDED, 0), back;

    size_t length = last_run_write(&run, text);
    check_text(text, "zklock-run=1\nhost=web1\npid=4711\ntoken=231\n");
    check_num(length, ==, strlen(text));
    check_true(last_run_read(&back, text, length, NIGHT + 5));
    check_num(back.end, ==, RUN_UNENDED);
    check_num(back.begun_ms, ==, NIGHT + 5);
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        run = run_of(all[i].end, all[i].value);
        length = last_run_write(&run, text);
        check_true(strstr(text, all[i].text));
        check_true(last_run_read(&back, text, length, NIGHT + HOUR));
        check_true(back.end == run.end && back.value == run.value);
        check_true(back.begun_ms == NIGHT && back.took_ms == 1234 && back.pid == 4711 &&
                   back.token == 231);
        check_text(back.host, "web1");
    }
}

/* Goal: no data is no run; data of others, or a record that is cut or too new, is not taken for
 * one; a name that a later version adds does not matter. */
TEST(what_is_no_record)
{
    static const char *const none[] = {"x",
                                       "10.0.0.1 4711",
                                       "zklock-run=1",
                                       "zklock-run=2\nhost=a\n",
                                       "zklock-run=1\nend=exit\n",
                                       "zklock-run=1\nend=exit 256\n",
                                       "zklock-run=1\nend=exit -1\n",
                                       "zklock-run=1\nend=lost 1\n",
                                       "zklock-run=1\nend=well\n",
                                       "zklock-run=1\nbegun=\n",
                                       "zklock-run=1\nbegun=99999999999999999999\n"};
    static const char later[] = "zklock-run=1\nhost=a\nnews=1\nend=exit 0\nbegun=7\ntook=1\n";
    char large[LAST_RUN_TEXT + 1];
    struct last_run run;

    check_true(last_run_read(&run, "", 0, NIGHT));
    check_num(run.end, ==, RUN_NEVER);
    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++)
        check_true(!last_run_read(&run, none[i], strlen(none[i]), NIGHT));
    memset(large, 'x', sizeof large);
    memcpy(large, "zklock-run=1\n", 13);
    check_true(!last_run_read(&run, large, sizeof large, NIGHT));
    check_true(last_run_read(&run, later, strlen(later), NIGHT));
    check_true(run.begun_ms == 7 && run.end == RUN_EXITED);
}

/* Goal: a record's node is recognized by its name, which names its lock. */
TEST(the_name_tells_the_lock)
{
    check_num(last_run_lock_length("/locks/backup.last-run"), ==, strlen("/locks/backup"));
    check_num(last_run_lock_length("/a.last-run"), ==, 2);
    check_num(last_run_lock_length("/a/.last-run"), ==, 0);
    check_num(last_run_lock_length("/a/last-run"), ==, 0);
    check_num(last_run_lock_length("/a.last-run/b"), ==, 0);
    check_num(last_run_lock_length(".last-run"), ==, 0);
}
