/* SPDX-License-Identifier: Apache-2.0
 *
 * zklock-dev: a private ensemble to try things on, which it ends and removes with all files when it
 * ends. It is a separate program, so that the command which is installed on every machine of a site
 * launches no servers. One thread. It owns the servers through zkserver.c, whose keeper ends them
 * if this process is killed. */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <zklock/zklock.h>
#include <zkserver.h>

#include "args.h"
#include "descriptors.h"
#include "say.h"
#include "signals.h"

enum { OPTION_NODES = 300, NODES_MAX = 5, TICK_MS = 500, LOOK_MS = 100 };

static const char usage[] =
    "usage: zklock-dev [--nodes N]\n"
    "\n"
    "Start a private ZooKeeper ensemble on free ports of this machine, print its connect string, "
    "and\n"
    "wait. When this command ends, by ^C or in any other way, its servers and files are removed.\n"
    "\n"
    "  --nodes N   number of servers, 1 to 5 (3)\n"
    "  --help      print this text\n"
    "  --version   print the version of zklock\n"
    "\n"
    "This command needs java and ZooKeeper's jars, Debian's packages default-jre-headless and\n"
    "libzookeeper-java. Exit status: 0; 64 invalid usage; 69 if the servers cannot start, or so "
    "many\n"
    "have died that the others cannot serve.\n";

static const struct option known[] = {
    {"nodes", required_argument, NULL, OPTION_NODES},
    {NULL, 0, NULL, 0},
};

static int take(void *arg, int code, const char *value)
{
    (void)code;
    return args_number("--nodes", value, 1, NODES_MAX, arg);
}

/* --- until it ends ------------------------------------------------------ */

struct dev {
    struct zks *servers;
    bool dead[ZKS_NODES_MAX];
    size_t deaths;
};

static void look_for_deaths(struct dev *dev)
{
    size_t nodes = zks_nodes(dev->servers);
    for (size_t i = 0; i < nodes; i++) {
        if (dev->dead[i] || zks_pid(dev->servers, i) != 0)
            continue;
        dev->dead[i] = true;
        dev->deaths++;
        say("the server at %s has died", zks_address(dev->servers, i));
    }
}

/* The servers are children of a process of their own, so their ends come as no signal. */
static int wait_for_signal(struct dev *dev)
{
    size_t nodes = zks_nodes(dev->servers);
    while (!signals_end_within(LOOK_MS)) {
        look_for_deaths(dev);
        if (2 * dev->deaths >= nodes)
            return fail(
                EXIT_NO_SERVER,
                "only %zu of %zu servers are left, too few for an ensemble: zklock-dev ends",
                nodes - dev->deaths, nodes);
    }
    return EXIT_DONE;
}

static int wait_for_end(struct dev *dev)
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
    return wait_for_signal(dev);
}

/* --- the program -------------------------------------------------------- */

static int run(int argc, char **argv)
{
    int nodes = 3, first;
    struct args args = {.known = known, .take = take, .arg = &nodes};
    int rc = args_parse(&args, argc, argv, &first);
    if (rc != 0)
        return rc;
    if (first != argc)
        return fail(EXIT_USAGE, "zklock-dev takes only options, not \"%s\"", argv[first]);
    struct zks_options options = {.nodes = (size_t)nodes, .tick_ms = TICK_MS};
    struct dev dev = {0};
    char why[512];
    if (zks_start(&dev.servers, &options, why, sizeof why) != 0)
        return fail(EXIT_NO_SERVER, "%s", why);
    rc = wait_for_end(&dev);
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
