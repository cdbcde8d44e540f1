/* SPDX-License-Identifier: Apache-2.0
 *
 * zklock break: takes a place in a queue away, after it has shown its owner and asked for
 * confirmation, unless the caller waived that. One thread; main.c calls it. It owns its client for
 * the length of the command. */
#include "break.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "args.h"
#include "connect.h"
#include "look.h"
#include "plain.h"
#include "say.h"
#include "describe.h"

enum { OPTION_YES = 300, BREAK_MS = 10000 };

static const char usage[] =
    "usage: zklock break [OPTION...] NODE\n"
    "\n"
    "Delete the node of a contender, as zklock status shows it. A holder loses the lock and learns "
    "of\n"
    "the loss, but may continue its work until then; only its token protects the data. A waiter "
    "queues\n"
    "again. zklock revoke asks first.\n"
    "\n"
    "  --yes                      do not ask on the terminal\n" SETTINGS_USAGE
    "  --help                     print this text\n"
    "\n"
    "Exit status: 0 deleted; 1 not deleted (no such node, not a contender's, or the answer was "
    "\"no\");\n"
    "64 invalid usage; 69 no server answered; 77 an ACL forbids it.\n";

static const struct option known[] = {
    {"yes", no_argument, NULL, OPTION_YES},
    SETTINGS_OPTIONS,
    {NULL, 0, NULL, 0},
};

struct breaking {
    struct settings settings;
    const char *node;
    bool yes;
    struct zkl_client *client;
};

static int take(void *arg, int code, const char *value)
{
    struct breaking *b = arg;
    if (code != OPTION_YES)
        return settings_take(&b->settings, code, value);
    b->yes = true;
    return 0;
}

static bool agrees(const char *path, const struct zkl_entry *e)
{
    char owner[DESCRIBE_SIZE], age[DESCRIBE_SIZE], *line = NULL;
    size_t size = 0;
    plain_print(stderr, "%s %s %s, for %s\n", describe_owner(e, owner),
                e->role == ZKL_ENTRY_ROLE_HOLDER ? "holds" : "waits for", path,
                describe_age_of(e, age));
    plain_print(stderr, "delete its node %s? [y/N] ", describe_node(e, path));
    bool yes = getline(&line, &size, stdin) > 0 && (line[0] == 'y' || line[0] == 'Y');
    free(line);
    return yes;
}

static int no_contender(const struct breaking *b)
{
    return fail(EXIT_CONFLICT,
                "%s is not the node of a contender: zklock status shows the contenders", b->node);
}

static int break_entry(const struct breaking *b, const char *path, const struct zkl_entry *e)
{
    char owner[DESCRIBE_SIZE];
    if (e->role == ZKL_ENTRY_ROLE_FOREIGN)
        return no_contender(b);
    if (!b->yes && !agrees(path, e))
        return fail(EXIT_CONFLICT, "nothing was done");
    /* The node that the user saw, if it was seen: another one may have its path by now. */
    int code = zkl_break(b->client, b->node, e->czxid, 0, BREAK_MS);
    if (code != 0)
        return fail_code(code);
    plain_print(stdout, "deleted %s of %s\n", b->node, describe_owner(e, owner));
    return EXIT_DONE;
}

static int with_client(const struct breaking *b)
{
    struct look look;
    const struct zkl_entry *entry;
    int code = look_up(&look, b->client, b->node, &entry), rc;
    if (code == 0)
        rc = break_entry(b, look.all[0].path, entry);
    else if (code == ZKL_EFOREIGN)
        rc = no_contender(b);
    else if (code == ZKL_ENONODE)
        rc = fail(EXIT_CONFLICT, "the node %s does not exist: zklock status shows the nodes",
                  b->node);
    else
        rc = fail_code(code);
    look_free(&look);
    return rc;
}

static int run(int argc, char **argv)
{
    struct breaking b = {0};
    struct args args = {.command = "break", .known = known, .take = take, .arg = &b};
    int rc = args_parse_one(&args, argc, argv, "one NODE", &b.node);
    if (rc == 0 && !b.yes && !(isatty(STDIN_FILENO) && isatty(STDERR_FILENO)))
        rc = fail(EXIT_USAGE, "there is no terminal to ask on: give --yes to delete %s", b.node);
    if (rc == 0)
        rc = tool_connect(&b.client, &b.settings, CONNECT_MS, NULL);
    if (rc == 0)
        rc = with_client(&b);
    if (b.client)
        tool_disconnect(b.client);
    settings_fini(&b.settings);
    return rc;
}

const struct command break_command = {
    .name = "break",
    .summary = "take a lock away from its holder",
    .usage = usage,
    .run = run,
};
