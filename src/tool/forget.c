/* SPDX-License-Identifier: Apache-2.0
 *
 * zklock forget: removes the record of the last run of a command, so that the next zklock run
 * --not-within runs immediately.
 * One thread; main.c calls it. It owns its client for the length of the command. */
#include "forget.h"

#include <zklock/zklock.h>

#include "args.h"
#include "connect.h"
#include "record.h"
#include "say.h"

static const char usage[] =
    "usage: zklock forget [OPTION...] PATH\n"
    "\n"
    "Remove the record of the last run that zklock run (--not-within) keeps beside the lock at "
    "PATH.\n"
    "The next run is then not too early. The lock itself is not touched.\n" SETTINGS_USAGE
    "  --help                     print this text\n"
    "\n"
    "Exit status: 0 removed; 1 there was no record, or it has just changed; 64 invalid usage; 69 "
    "no\n"
    "server answered; 77 an ACL forbids it.\n";

static const struct option known[] = {
    SETTINGS_OPTIONS,
    {NULL, 0, NULL, 0},
};

static int take(void *arg, int code, const char *value)
{
    return settings_take(arg, code, value);
}

/* A mutex judges the path. */
static int forget(struct zkl_client *client, const char *path)
{
    struct asker asker = {.client = client};
    struct zkl_mutex *mutex = NULL;
    int code = zkl_mutex_new(&mutex, client, path, NULL);
    zkl_mutex_free(mutex);
    return code == 0 ? record_forget(&asker, path) : fail_code(code);
}

static int run(int argc, char **argv)
{
    struct settings settings = {0};
    const char *path;
    struct zkl_client *client = NULL;
    struct args args = {.command = "forget", .known = known, .take = take, .arg = &settings};
    int rc = args_parse_one(&args, argc, argv, "one PATH", &path);
    if (rc == 0)
        rc = tool_connect(&client, &settings, CONNECT_MS, NULL);
    if (rc == 0)
        rc = forget(client, path);
    if (client)
        tool_disconnect(client);
    settings_fini(&settings);
    return rc;
}

const struct command forget_command = {
    .name = "forget",
    .summary = "remove the record of a command's last run",
    .usage = usage,
    .run = run,
};
