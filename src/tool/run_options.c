/* SPDX-License-Identifier: Apache-2.0
 *
 * The command line of zklock run: words to a struct, with defaults, bounds, and one sentence for
 * each fault or contradiction. One thread; run.c calls it, before it connects. The texts are those
 * of argv. */
#include "run_options.h"

#include <stdlib.h>
#include <string.h>

#include "args.h"
#include "last_run.h"
#include "say.h"

const char run_usage[] =
    "usage: zklock run [OPTION...] PATH... [--] COMMAND [ARGUMENT...]\n"
    "       zklock run [OPTION...] PATH... -c 'SHELL LINE'\n"
    "\n"
    "Run a command while holding a lock. Several paths are one lock, all or none. zklock ends the\n"
    "command before another contender can have the lock. The \"--\" may be omitted if COMMAND "
    "does\n"
    "not begin with a slash.\n"
    "\n"
    "  -n, --nonblock             do not wait for the lock\n"
    "  -w, --timeout SEC          wait at most SEC seconds (\"0.5\"; 0 is -n)\n"
    "  -s, --shared               share the lock with other holders that use -s (a read lock)\n"
    "      --permits N            let N holders have the lock at a time (a semaphore)\n"
    "      --names NAMES          \"kazoo\": share the path with Kazoo's locks (\"curator\")\n"
    "  -E, --conflict-exit-code N exit status if the lock is not acquired (1)\n"
    "      --not-within SEC       do not run if the last run began less than SEC seconds ago\n"
    "      --retry-failed         ignore a last run that did not end with status 0\n"
    "      --skip-exit-code N     exit status if it is too early (0)\n"
    "  -c, --command LINE         run a line with the shell instead of a command\n"
    "  -v, --verbose              report what happens\n" SETTINGS_USAGE
    "      --help                 print this text\n"
    "\n"
    "The command has ZKLOCK_PATH, ZKLOCK_TOKEN and ZKLOCK_NODE in its environment.\n"
    "Exit status: the command's; 1 (-E) if the lock was not acquired; 79 if it was lost. See\n"
    "zklock-run(1) for the others.\n";

enum { OPTION_PERMITS = 300, OPTION_NAMES, OPTION_NOT_WITHIN, OPTION_RETRY_FAILED, OPTION_SKIP };

enum { SKIP_UNSET = -1 };

static const struct option known[] = {
    {"nonblock", no_argument, NULL, 'n'},
    {"nb", no_argument, NULL, 'n'},
    {"timeout", required_argument, NULL, 'w'},
    {"wait", required_argument, NULL, 'w'},
    {"shared", no_argument, NULL, 's'},
    {"permits", required_argument, NULL, OPTION_PERMITS},
    {"names", required_argument, NULL, OPTION_NAMES},
    {"conflict-exit-code", required_argument, NULL, 'E'},
    {"not-within", required_argument, NULL, OPTION_NOT_WITHIN},
    {"retry-failed", no_argument, NULL, OPTION_RETRY_FAILED},
    {"skip-exit-code", required_argument, NULL, OPTION_SKIP},
    {"command", required_argument, NULL, 'c'},
    {"verbose", no_argument, NULL, 'v'},
    SETTINGS_OPTIONS,
    {NULL, 0, NULL, 0},
};

/* The shell that flock(1) takes. */
static void use_shell(struct run_options *o, const char *line)
{
    char *shell = getenv("SHELL");
    o->shell[0] = shell && shell[0] ? shell : (char *)"/bin/sh";
    o->shell[1] = (char *)"-c";
    o->shell[2] = (char *)line;
    o->command = o->shell;
}

static int take_names(const char *value, enum zkl_names *names)
{
    *names = strcmp(value, "kazoo") == 0 ? ZKL_NAMES_KAZOO : ZKL_NAMES_CURATOR;
    return *names == ZKL_NAMES_KAZOO || strcmp(value, "curator") == 0
               ? 0
               : fail(EXIT_USAGE, "--names must be curator or kazoo, not \"%s\"", value);
}

static int take(void *arg, int code, const char *value)
{
    struct run_options *o = arg;
    switch (code) {
    case 'n':
        o->wait_ms = 0;
        return 0;
    case 'w':
        return args_seconds("-w", value, true, &o->wait_ms);
    case 's':
        o->locks.shared = true;
        return 0;
    case OPTION_PERMITS:
        return args_number("--permits", value, 1, ZKL_PERMITS_MAX, &o->locks.permits);
    case OPTION_NAMES:
        return take_names(value, &o->locks.names);
    case 'E':
        return args_number("-E", value, 0, 255, &o->conflict);
    case OPTION_NOT_WITHIN:
        return args_seconds("--not-within", value, false, &o->not_within_ms);
    case OPTION_RETRY_FAILED:
        o->retry_failed = true;
        return 0;
    case OPTION_SKIP:
        return args_number("--skip-exit-code", value, 0, 255, &o->skip);
    case 'c':
        use_shell(o, value);
        return 0;
    case 'v':
        o->verbose = true;
        return 0;
    default:
        return settings_take(&o->settings, code, value);
    }
}

/* A path is absolute, so the first word that is not begins the command. Before any path it is told
 * to be none, and so is an empty one, as of a variable that is not set. */
static bool take_word(void *arg, char *word)
{
    struct run_options *o = arg;
    if (word[0] && word[0] != '/' && o->locks.count > 0)
        return false;
    o->locks.paths[o->locks.count++] = word;
    return true;
}

/* The paths are moved to the front of argv; *first is the first word of the command. */
static int take_options(struct run_options *o, int argc, char **argv, int *first)
{
    const struct args args = {.command = "run",
                              .known = known,
                              .letters = "-:nw:sE:c:v",
                              .hint = "; the command's own options come after \"--\"",
                              .take = take,
                              .take_word = take_word,
                              .arg = o};
    o->locks.paths = argv + 1;
    return args_parse(&args, argc, argv, first);
}

/* The record belongs to one lock with one holder. */
static int check_record(const struct run_options *o)
{
    const char *needs = o->retry_failed         ? "--retry-failed"
                        : o->skip != SKIP_UNSET ? "--skip-exit-code"
                                                : NULL;
    if (o->not_within_ms == 0)
        return needs ? fail(EXIT_USAGE, "%s requires --not-within: give both", needs) : 0;
    if (o->locks.count > 1)
        return fail(EXIT_USAGE, "--not-within requires one path, not %zu", o->locks.count);
    if (o->locks.shared || o->locks.permits)
        return fail(EXIT_USAGE, "--not-within requires an exclusive lock: omit %s",
                    o->locks.shared ? "-s" : "--permits");
    return 0;
}

/* A lock there would make a node that stays of one that servers collect, and with it a record of
 * runs. */
static bool is_place_of_record(const char *path)
{
    const char *at = path;
    while ((at = strstr(at, LAST_RUN_SUFFIX))) {
        bool is_whole_name = at > path && at[-1] == '/';
        at += strlen(LAST_RUN_SUFFIX);
        if (!is_whole_name && (*at == '/' || *at == '\0'))
            return true;
    }
    return false;
}

static int check_paths(const struct run_options *o)
{
    for (size_t i = 0; i < o->locks.count; i++) {
        if (is_place_of_record(o->locks.paths[i]))
            return fail(EXIT_USAGE,
                        "no lock can be at %s: a path that ends in " LAST_RUN_SUFFIX
                        " is the record of a last run (--not-within)",
                        o->locks.paths[i]);
    }
    return 0;
}

static int check(const struct run_options *o)
{
    int rc = check_paths(o);
    if (rc != 0)
        return rc;
    if (o->locks.count == 0)
        return fail(EXIT_USAGE, "no path is given: zklock run PATH -- COMMAND");
    if (o->locks.count > ZKL_MULTI_MEMBERS_MAX)
        return fail(EXIT_USAGE, "%zu paths are given, but one call can lock at most %d",
                    o->locks.count, ZKL_MULTI_MEMBERS_MAX);
    if (!o->command || !o->command[0])
        return fail(EXIT_USAGE, "no command is given: zklock run PATH -- COMMAND, or zklock run "
                                "PATH -c 'LINE'; an absolute command needs the \"--\"");
    if (o->locks.shared && o->locks.permits)
        return fail(EXIT_USAGE, "-s and --permits exclude each other: omit one of them");
    if (o->locks.names == ZKL_NAMES_KAZOO && o->locks.permits)
        return fail(EXIT_USAGE, "a semaphore has no names of Kazoo: omit --names or --permits");
    return check_record(o);
}

int run_options_parse(struct run_options *o, int argc, char **argv)
{
    *o = (struct run_options){.wait_ms = -1, .conflict = EXIT_CONFLICT, .skip = SKIP_UNSET};
    int first = argc;
    int rc = take_options(o, argc, argv, &first);
    if (rc == 0 && first < argc && o->command)
        return fail(EXIT_USAGE, "-c and a command exclude each other");
    if (first < argc)
        o->command = argv + first;
    if (rc == 0)
        rc = check(o);
    if (o->skip == SKIP_UNSET)
        o->skip = EXIT_DONE;
    return rc;
}
