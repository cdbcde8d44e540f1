/* SPDX-License-Identifier: Apache-2.0
 *
 * zklock-dev: a private ensemble to try things on, which it ends and removes with all files when it
 * ends. It is a separate program, so that the command which is installed on every machine of a site
 * launches no servers. One thread. It owns the servers through zkserver.c, whose keeper ends them
 * if this process is killed. */
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <zklock/zklock.h>
#include "zkserver.h"

#include "tool/args.h"
#include "tool/descriptors.h"
#include "tool/say.h"
#include "tool/signals.h"

enum { OPTION_NODES = 300, OPTION_PORT, OPTION_COMMANDS };
enum { NODES_MAX = 5, PORT_MAX = 65535, TICK_MS = 500, LOOK_MS = 100, LINE_MAX_BYTES = 64 };

static const char usage[] =
    "usage: zklock-dev [--nodes N] [--port PORT] [--commands]\n"
    "\n"
    "Start a private ZooKeeper ensemble on this machine, print its connect string, and wait. When\n"
    "this command ends, by ^C or in any other way, its servers and files are removed.\n"
    "\n"
    "  --nodes N    number of servers, 1 to 5 (3)\n"
    "  --port PORT  the first server's port; the others have the next ones (ports that are free)\n"
    "  --commands   read \"stop N\", \"kill N\", \"start N\", \"pause N\", \"resume N\" from "
    "standard\n"
    "               input, a line each, N from 1 on; answer each with a line; end with the input\n"
    "  --help       print this text\n"
    "  --version    print the version of zklock\n"
    "\n"
    "This command needs java and ZooKeeper's jars, Debian's packages default-jre-headless and\n"
    "libzookeeper-java. Exit status: 0; 64 invalid usage; 69 if the servers cannot start, or so "
    "many\n"
    "have died that the others cannot serve.\n";

static const struct option known[] = {
    {"nodes", required_argument, NULL, OPTION_NODES},
    {"port", required_argument, NULL, OPTION_PORT},
    {"commands", no_argument, NULL, OPTION_COMMANDS},
    {NULL, 0, NULL, 0},
};

struct wanted {
    int nodes, port;
    bool commands;
};

static int take(void *arg, int code, const char *value)
{
    struct wanted *wanted = arg;
    if (code == OPTION_NODES)
        return args_number("--nodes", value, 1, NODES_MAX, &wanted->nodes);
    if (code == OPTION_PORT)
        return args_number("--port", value, 1, PORT_MAX + 1 - NODES_MAX, &wanted->port);
    wanted->commands = true;
    return 0;
}

/* --- the servers -------------------------------------------------------- */

enum server_state { RUNS, IS_STOPPED, IS_PAUSED, HAS_DIED };

struct dev {
    struct zks *servers;
    enum server_state state[ZKS_NODES_MAX];
    char line[LINE_MAX_BYTES]; /* what is read of the next command */
    size_t length;
    bool is_too_long; /* to be one */
    /* The number of the server that the last command started, until it serves; or 0. */
    size_t starting;
    bool ends; /* by a signal that came while an answer was to be written */
};

static size_t count(const struct dev *dev, enum server_state state)
{
    size_t n = 0;
    for (size_t i = 0; i < zks_nodes(dev->servers); i++)
        n += dev->state[i] == state;
    return n;
}

static void look_for_deaths(struct dev *dev)
{
    for (size_t i = 0; i < zks_nodes(dev->servers); i++) {
        bool should_run = dev->state[i] == RUNS || dev->state[i] == IS_PAUSED;
        if (!should_run || zks_pid(dev->servers, i) != 0)
            continue;
        dev->state[i] = HAS_DIED;
        say("the server at %s has died", zks_address(dev->servers, i));
    }
}

/* --- commands ------------------------------------------------------------- */

#define BIT(state) (1u << (state))

static const struct command {
    const char *word;
    int (*carry_out)(struct zks *zks, size_t node);
    unsigned from; /* bits: in these states */
    enum server_state to;
} commands[] = {
    {"stop", zks_stop_node, ~0u, IS_STOPPED},
    {"kill", zks_kill_node, ~0u, IS_STOPPED},
    {"start", zks_start_node, BIT(RUNS) | BIT(IS_STOPPED) | BIT(HAS_DIED), RUNS},
    {"pause", zks_pause_node, BIT(RUNS) | BIT(IS_PAUSED), IS_PAUSED},
    {"resume", zks_resume_node, BIT(RUNS) | BIT(IS_PAUSED), RUNS},
};

/* Nobody may read it: a signal ends this wait, too. */
static void answer(struct dev *dev, const char *result)
{
    struct pollfd output = {STDOUT_FILENO, POLLOUT, 0};
    while (!dev->ends && poll(&output, 1, LOOK_MS) == 0)
        dev->ends = signals_end_within(0);
    if (dev->ends)
        return;
    printf("%s: %s\n", dev->line, result);
    fflush(stdout);
}

/* A start is answered when the server serves; too few of an ensemble can't. */
static void look_at_start(struct dev *dev)
{
    if (dev->starting == 0)
        return;
    size_t node = dev->starting - 1;
    bool runs = zks_pid(dev->servers, node) != 0, serves = runs && zks_serves(dev->servers, node);
    if (runs && !serves && 2 * count(dev, RUNS) > zks_nodes(dev->servers))
        return;
    dev->starting = 0;
    answer(dev, serves ? "done" : (runs ? "it runs, but too few do to serve" : "it has died"));
}

static void carry_out(struct dev *dev, const struct command *command, size_t number)
{
    static const char *const as[] = {"it runs", "it is stopped", "it is paused", "it has died"};
    enum server_state *state = &dev->state[number - 1];
    if (!(command->from & BIT(*state))) {
        answer(dev, as[*state]);
        return;
    }
    if (command->carry_out(dev->servers, number - 1) != 0) {
        answer(dev, "failed");
        return;
    }
    *state = command->to;
    if (command->carry_out == zks_start_node)
        dev->starting = number;
    else
        answer(dev, "done");
}

static void obey(struct dev *dev)
{
    char word[LINE_MAX_BYTES], rest;
    int number = 0;
    const struct command *command = NULL;
    int words = sscanf(dev->line, "%s %d %c", word, &number, &rest);
    for (size_t i = 0; words == 2 && !dev->is_too_long && i < sizeof commands / sizeof *commands;
         i++) {
        if (strcmp(commands[i].word, word) == 0)
            command = &commands[i];
    }
    if (!command)
        answer(dev, "say stop, kill, start, pause or resume, and the number of a server");
    else if (number < 1 || (size_t)number > zks_nodes(dev->servers))
        answer(dev, "there is no such server");
    else
        carry_out(dev, command, (size_t)number);
}

/* All lines that are there. False: the input has ended. */
static bool read_commands(struct dev *dev)
{
    struct pollfd input = {STDIN_FILENO, POLLIN, 0};
    while (dev->starting == 0 && !dev->ends && poll(&input, 1, 0) == 1) {
        char c;
        if (read(STDIN_FILENO, &c, 1) != 1)
            return false;
        if (c == '\n') {
            dev->line[dev->length] = '\0';
            obey(dev);
            dev->length = 0;
            dev->is_too_long = false;
        } else if (dev->length < sizeof dev->line - 1) {
            dev->line[dev->length++] = c;
        } else {
            dev->is_too_long = true;
        }
    }
    return true;
}

/* --- until it ends ------------------------------------------------------ */

/* The servers are children of a process of their own, so their ends come as no signal. */
static int wait_for_signal(struct dev *dev, bool reads)
{
    size_t nodes = zks_nodes(dev->servers);
    while (!dev->ends && !signals_end_within(LOOK_MS)) {
        look_at_start(dev);
        if (reads && !read_commands(dev))
            break;
        look_for_deaths(dev);
        size_t deaths = count(dev, HAS_DIED);
        if (2 * deaths >= nodes)
            return fail(
                EXIT_NO_SERVER,
                "only %zu of %zu servers are left, too few for an ensemble: zklock-dev ends",
                nodes - deaths, nodes);
    }
    return EXIT_DONE;
}

static int wait_for_end(struct dev *dev, bool reads)
{
    const char *servers = zks_connect_string(dev->servers);
    /* Only now: while the servers start a signal may just kill us; the keeper ends them in any
     * case. */
    signals_block_ends();
    printf("%s\n", servers);
    if (fflush(stdout) != 0)
        return fail(EXIT_SYSTEM, "the connect string cannot be written to standard output");
    if (isatty(STDOUT_FILENO))
        say("the servers run until ^C; in another shell: export ZKLOCK_SERVERS=%s", servers);
    return wait_for_signal(dev, reads);
}

/* --- the program -------------------------------------------------------- */

static int run(int argc, char **argv)
{
    struct wanted wanted = {.nodes = 3};
    int first;
    struct args args = {.known = known, .take = take, .arg = &wanted};
    int rc = args_parse(&args, argc, argv, &first);
    if (rc != 0)
        return rc;
    if (first != argc)
        return fail(EXIT_USAGE, "zklock-dev takes only options, not \"%s\"", argv[first]);
    struct zks_options options = {
        .nodes = (size_t)wanted.nodes, .port = wanted.port, .tick_ms = TICK_MS};
    struct dev dev = {0};
    char why[512];
    if (zks_start(&dev.servers, &options, why, sizeof why) != 0)
        return fail(EXIT_NO_SERVER, "%s", why);
    rc = wait_for_end(&dev, wanted.commands);
    zks_stop(dev.servers);
    return rc;
}

static int run_word(int argc, char **argv)
{
    const char *word = argc > 1 ? argv[1] : "";
    if (strcmp(word, "--help") == 0) {
        fputs(usage, stdout);
        return EXIT_DONE;
    }
    if (strcmp(word, "--version") == 0) {
        printf("zklock-dev %s\n", zkl_version(NULL));
        return EXIT_DONE;
    }
    return run(argc, argv);
}

int main(int argc, char **argv)
{
    signals_end_us();
    descriptors_fill_standard();
    program_name = "zklock-dev";
    return check_output(run_word(argc, argv));
}
