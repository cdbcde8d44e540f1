/* SPDX-License-Identifier: Apache-2.0
 *
 * The last run of a command under a lock, as its record is in ZooKeeper, written and read
 * (docs/wire-format.md, "The last run"), and whether another one would be too early. This file owns
 * nothing. Pure: it sends no request and reads no clock. record.c, look.c and both forms of status
 * call it. */
#include "last_run.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_LINE "zklock-run=1\n"

/* --- the text ------------------------------------------------------------ */

static const struct {
    enum run_end end;
    const char *word;
    bool has_value;
} ends[] = {
    {RUN_EXITED, "exit", true},
    {RUN_KILLED, "signal", true},
    {RUN_LOST, "lost", false},
    {RUN_NOT_STARTED, "not-started", false},
};

enum { ENDS = sizeof ends / sizeof ends[0] };

const char *last_run_end_word(enum run_end end)
{
    for (int i = 0; i < ENDS; i++) {
        if (ends[i].end == end)
            return ends[i].word;
    }
    return NULL;
}

const char *last_run_describe_end(const struct last_run *run, char text[32])
{
    const char *word = last_run_end_word(run->end);
    bool has_value = run->end == RUN_EXITED || run->end == RUN_KILLED;
    if (has_value)
        snprintf(text, 32, "%s %d", word, run->value);
    return has_value ? text : word ? word : "no end";
}

size_t last_run_write(const struct last_run *run, char text[LAST_RUN_TEXT])
{
    char end[32];
    int n =
        snprintf(text, LAST_RUN_TEXT, FIRST_LINE "host=%s\npid=%" PRId64 "\ntoken=%" PRIu64 "\n",
                 run->host, run->pid, run->token);
    if (run->end != RUN_UNENDED)
        n += snprintf(text + n, LAST_RUN_TEXT - (size_t)n,
                      "begun=%" PRId64 "\nend=%s\ntook=%" PRId64 "\n", run->begun_ms,
                      last_run_describe_end(run, end), run->took_ms);
    return (size_t)n;
}

size_t last_run_with_beginning(const struct last_run *run, const char *read,
                               char text[LAST_RUN_TEXT])
{
    char begun[32] = "";
    size_t length = strlen(read);
    bool cut = length > 0 && read[length - 1] != '\n';
    if (run->end == RUN_UNENDED && !strstr(read, "\nbegun="))
        snprintf(begun, sizeof begun, "begun=%" PRId64 "\n", run->begun_ms);
    return (size_t)snprintf(text, LAST_RUN_TEXT, "%s%s%s", read, cut ? "\n" : "", begun);
}

/* All of the text is a number from 0 on. */
static bool read_number(const char *text, int64_t *value)
{
    char *rest;
    if (text[0] < '0' || text[0] > '9')
        return false;
    errno = 0;
    *value = strtoll(text, &rest, 10);
    return errno == 0 && *rest == '\0';
}

static bool read_end(const char *text, struct last_run *run)
{
    for (int i = 0; i < ENDS; i++) {
        size_t length = strlen(ends[i].word);
        int64_t value = 0;
        if (strncmp(text, ends[i].word, length) != 0)
            continue;
        run->end = ends[i].end;
        if (!ends[i].has_value)
            return text[length] == '\0';
        bool is_number = text[length] == ' ' && read_number(text + length + 1, &value);
        run->value = (int)value;
        return is_number && value <= 255;
    }
    return false;
}

/* A name that is not known is a later version's, which counts as the same as long as the first line
 * does. */
static bool read_line(const char *name, const char *value, struct last_run *run)
{
    int64_t number = 0;
    if (strcmp(name, "end") == 0)
        return read_end(value, run);
    if (strcmp(name, "host") == 0) {
        snprintf(run->host, sizeof run->host, "%s", value);
        return true;
    }
    if (strcmp(name, "begun") == 0)
        return read_number(value, &run->begun_ms);
    if (strcmp(name, "took") == 0)
        return read_number(value, &run->took_ms);
    if (strcmp(name, "pid") == 0)
        return read_number(value, &run->pid);
    if (strcmp(name, "token") != 0)
        return true;
    bool is_number = read_number(value, &number);
    run->token = (uint64_t)number;
    return is_number;
}

bool last_run_read(struct last_run *run, const char *text, size_t length, int64_t mtime_ms)
{
    char copy[LAST_RUN_TEXT], *rest = copy;
    *run = (struct last_run){.end = length == 0 ? RUN_NEVER : RUN_UNENDED, .begun_ms = mtime_ms};
    if (length == 0)
        return true;
    if (length >= sizeof copy || strlen(FIRST_LINE) > length ||
        memcmp(text, FIRST_LINE, strlen(FIRST_LINE)) != 0)
        return false;
    memcpy(copy, text, length);
    copy[length] = '\0';
    for (char *line; (line = strsep(&rest, "\n"));) {
        char *value = strchr(line, '=');
        if (!value)
            continue;
        *value++ = '\0';
        if (!read_line(line, value, run))
            return false;
    }
    return true;
}

size_t last_run_lock_length(const char *node_path)
{
    size_t length = strlen(node_path), suffix = strlen(LAST_RUN_SUFFIX);
    bool is_record = length > suffix && strcmp(node_path + length - suffix, LAST_RUN_SUFFIX) == 0 &&
                     node_path[length - suffix - 1] != '/';
    return is_record ? length - suffix : 0;
}

/* --- too early? ---------------------------------------------------------- */

/* A run that is known not to have started, and with retry_failed one that did not succeed. */
static bool does_not_count(const struct last_run *run, bool retry_failed)
{
    bool was_fine = run->end == RUN_EXITED && run->value == 0;
    return run->end == RUN_NEVER || run->end == RUN_NOT_STARTED || (retry_failed && !was_fine);
}

enum verdict last_run_verdict(const struct last_run *run, int64_t now_ms, int64_t within_ms,
                              bool retry_failed)
{
    if (does_not_count(run, retry_failed))
        return VERDICT_RUN;
    int64_t since_ms;
    if (__builtin_sub_overflow(now_ms, run->begun_ms, &since_ms))
        since_ms = now_ms < run->begun_ms ? INT64_MIN : INT64_MAX;
    if (since_ms < -within_ms)
        return VERDICT_RUN_CLOCK_BACK;
    return since_ms < within_ms ? VERDICT_EARLY : VERDICT_RUN;
}
