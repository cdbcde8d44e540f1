/* SPDX-License-Identifier: Apache-2.0 */
/* zklock dev: a private ensemble to try things on, gone with all its files when this ends. */
#include "dev.h"

#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include <zkserver.h>

#include "args.h"
#include "say.h"

enum { OPTION_NODES = 300, TICK_MS = 500 };

static const char usage[] =
    "usage: zklock dev [--nodes N]\n"
    "\n"
    "Start a private ZooKeeper ensemble on free ports of this machine, print its connect string,\n"
    "and wait. Servers and files are gone when this ends, by ^C or in any other way.\n"
    "\n"
    "  --nodes N   servers, 1 to 5 (3)\n"
    "  --help      this text\n"
    "\n"
    "It takes java and ZooKeeper's jars, Debian's packages default-jre-headless and\n"
    "libzookeeper-java. Exit status: 0; 69 if the servers can't be started.\n";

static const struct option known[] = {
    {"nodes", required_argument, NULL, OPTION_NODES},
    {NULL, 0, NULL, 0},
};

static int take(void *arg, int code, const char *value)
{
    (void)code;
    return args_number("--nodes", value, 1, ZKS_NODES_MAX, arg);
}

static int wait_for_end(const char *servers)
{
    sigset_t set;
    int sig;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGHUP);
    /* Only now: while the servers start a signal may just kill us, they go all the same. */
    sigprocmask(SIG_BLOCK, &set, NULL);
    printf("%s\n", servers);
    if (fflush(stdout) != 0)
        return fail(EXIT_SYSTEM, "the connect string can't be written to standard output");
    if (isatty(STDOUT_FILENO))
        say("the servers run until ^C; in another shell: export ZKLOCK_SERVERS=%s", servers);
    sigwait(&set, &sig);
    return EXIT_DONE;
}

static int run(int argc, char **argv)
{
    int nodes = 3, first;
    struct args args = {.command = "dev", .known = known, .take = take, .arg = &nodes};
    int rc = args_parse(&args, argc, argv, &first);
    if (rc != 0)
        return rc;
    if (first != argc)
        return fail(EXIT_USAGE, "dev takes no words but options, not \"%s\"", argv[first]);
    struct zks_options options = {.nodes = (size_t)nodes, .tick_ms = TICK_MS};
    struct zks *servers;
    char why[512];
    if (zks_start(&servers, &options, why, sizeof why) != 0)
        return fail(EXIT_NO_SERVER, "%s", why);
    rc = wait_for_end(zks_connect_string(servers));
    zks_stop(servers);
    return rc;
}

const struct command dev_command = {
    .name = "dev",
    .summary = "start a throw-away ZooKeeper",
    .usage = usage,
    .run = run,
};
