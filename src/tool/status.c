/* SPDX-License-Identifier: Apache-2.0
 *
 * zklock status: shows holders and waiters, once or repeatedly, as text or JSON. Its exit status
 * says whether it could read the lock. It owns each inspection until it is printed. One thread;
 * main.c calls it. */
#include "status.h"

#include <time.h>

#include "args.h"
#include "connect.h"
#include "look.h"
#include "record.h"
#include "say.h"
#include "screen.h"
#include "status_text.h"

enum { OPTION_JSON = 300, OPTION_WATCH, OPTION_BUSY };

static const char usage[] =
    "usage: zklock status [OPTION...] PATH\n"
    "\n"
    "Show each lock at and below PATH (\"/\": all of them): its kind, and its holders and waiters "
    "in the order of the "
    "queue,\n"
    "with owner, host, process, thread and age. Also show the last run that zklock run "
    "(--not-within)\n"
    "recorded: how it ended, where, how long it took, and when it began.\n"
    "\n"
    "  --busy                     only locks that somebody holds or waits for\n"
    "  --json                     print one JSON object\n"
    "  --watch                    on a terminal: redraw every second, until ^C\n" SETTINGS_USAGE
    "  --help                     print this text\n"
    "\n"
    "Exit status: 0; 64 invalid usage; 69 no server answered; 77 an ACL forbids reading.\n";

static const struct option known[] = {
    {"busy", no_argument, NULL, OPTION_BUSY},
    {"json", no_argument, NULL, OPTION_JSON},
    {"watch", no_argument, NULL, OPTION_WATCH},
    SETTINGS_OPTIONS,
    {NULL, 0, NULL, 0},
};

struct status {
    struct settings settings;
    const char *path;
    bool json, watch, busy;
    struct zkl_client *client;
    struct screen screen;
};

static int take(void *arg, int code, const char *value)
{
    struct status *s = arg;
    if (code == OPTION_JSON)
        s->json = true;
    else if (code == OPTION_WATCH)
        s->watch = true;
    else if (code == OPTION_BUSY)
        s->busy = true;
    else
        return settings_take(&s->settings, code, value);
    return 0;
}

static int not_written(void)
{
    return fail(EXIT_SYSTEM, "standard output cannot be written");
}

static int no_memory(void)
{
    return fail(EXIT_SYSTEM, "out of memory");
}

/* 0, or a code of the library. */
static int look_at_all(struct status *s, struct look *look)
{
    struct asker asker = {.client = s->client};
    int code = look_below(look, s->client, s->path);
    if (code == 0 && s->busy)
        look_keep_busy(look);
    for (size_t i = 0; code == 0 && i < look->count; i++) {
        struct seen *seen = &look->all[i];
        if (!seen->no_record)
            seen->last_unread = !record_read(&asker, seen->path, &seen->last);
    }
    return code;
}

/* --- once --------------------------------------------------------------- */

static int print_lines(const struct status *s, const struct look *look)
{
    struct sheet sheet;
    if (!sheet_open(&sheet))
        return no_memory();
    status_text(&sheet, look);
    int rc = sheet_print(&sheet, &s->screen);
    sheet_close(&sheet);
    return rc == 0 ? EXIT_DONE : not_written();
}

static int show_once(struct status *s)
{
    struct look look;
    int code = look_at_all(s, &look);
    if (code != 0)
        return fail_code(code);
    int rc;
    if (s->json)
        rc = status_json(stdout, s->path, &look) == 0 ? EXIT_DONE : not_written();
    else
        rc = print_lines(s, &look);
    look_free(&look);
    return rc;
}

/* --- again and again ---------------------------------------------------- */

static void put_time(struct sheet *sheet, const char *path)
{
    char text[16];
    time_t now = time(NULL);
    struct tm local;
    localtime_r(&now, &local);
    strftime(text, sizeof text, "%H:%M:%S", &local);
    sheet_line(sheet, STYLE_PLAIN, "zklock status %s, each second, ^C ends it  %s", path, text);
    sheet_line(sheet, STYLE_PLAIN, "%s", "");
}

/* A link that is down is no reason to end: it comes back. */
static int draw(struct status *s)
{
    struct sheet sheet;
    struct look look;
    if (!sheet_open(&sheet))
        return no_memory();
    put_time(&sheet, s->path);
    int code = look_at_all(s, &look);
    if (code == 0) {
        status_text(&sheet, &look);
        look_free(&look);
    } else {
        sheet_line(&sheet, STYLE_WARNING, "%s", zkl_error_detail());
    }
    int rc = sheet_draw(&sheet, &s->screen);
    sheet_close(&sheet);
    if (code != 0 && !zkl_error_is_retryable(code))
        return fail_code(code);
    return rc == 0 ? EXIT_DONE : not_written();
}

static int watch(struct status *s)
{
    static const struct timespec second = {.tv_sec = 1};
    int rc;
    while ((rc = draw(s)) == EXIT_DONE)
        nanosleep(&second, NULL);
    return rc;
}

/* --- the command -------------------------------------------------------- */

static int with_client(struct status *s)
{
    int rc = tool_connect(&s->client, &s->settings, CONNECT_MS, NULL);
    if (rc != 0)
        return rc;
    rc = s->watch ? watch(s) : show_once(s);
    tool_disconnect(s->client);
    return rc;
}

static int run(int argc, char **argv)
{
    struct status s = {0};
    struct args args = {.command = "status", .known = known, .take = take, .arg = &s};
    int rc = args_parse_one(&args, argc, argv, "one PATH", &s.path);
    screen_init(&s.screen, stdout);
    if (rc == 0 && s.watch && (s.json || !s.screen.is_terminal))
        rc = fail(EXIT_USAGE, "--watch requires a terminal: omit it %s",
                  s.json ? "with --json" : "without one");
    if (rc == 0)
        rc = with_client(&s);
    settings_fini(&s.settings);
    return rc;
}

const struct command status_command = {
    .name = "status",
    .summary = "show the holders and waiters of locks",
    .usage = usage,
    .run = run,
};
