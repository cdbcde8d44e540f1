/* SPDX-License-Identifier: Apache-2.0 */
/* zk-private - run a command with a private ZooKeeper of its own.
 *
 *     zk-private --nodes 3 -- ./my-test --all
 *
 * starts the servers, sets ZKLOCK_SERVERS to their connect string, runs the command in the
 * foreground, ends the servers and removes their files, and exits as the command did (128 + the
 * signal's number if one killed it). Without a command it prints the connect string and waits for
 * SIGINT or SIGTERM. */
#include "zkserver.h"

#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "option.h"

#define EXIT_NO_SERVER 125
#define EXIT_NO_COMMAND 127

struct settings {
    struct zks_options options;
    bool quiet;
    char **command; /* NULL: none */
};

/* What the command gets back: it may have been started with SIGINT ignored, by nohup or a shell's
 * &. */
struct kept_signals {
    struct sigaction on_int;
    struct sigaction on_term;
    struct sigaction on_hup;
    sigset_t mask;
};

static const char usage_text[] =
    "usage: zk-private [OPTION...] [--] [COMMAND [ARGUMENT...]]\n"
    "Start a private ZooKeeper, run COMMAND with ZKLOCK_SERVERS set to its address, end it again.\n"
    "Without COMMAND: print the address and wait for Ctrl-C.\n"
    "  --nodes N         servers, 1 to 6 (1)\n"
    "  --tick MS         the servers' tick (500)\n"
    "  --min-session MS  shortest session timeout (200)\n"
    "  --max-session MS  longest session timeout (60000)\n"
    "  --fsync           write to the disk as a real ensemble does\n"
    "  --jvm OPTIONS     more options for java, separated by blanks\n"
    "  --quiet           say nothing but errors\n"
    "  --help            this text\n"
    "Exit status: that of COMMAND, 128 + N if signal N killed it; 2 wrong usage, 125 no server,\n"
    "127 COMMAND cannot be started, 77 no java or no ZooKeeper jar.\n";

/* --- arguments -------------------------------------------------------------------------------- */

static void set_option(struct settings *s, int option, const char *value)
{
    switch (option) {
    case 'n':
        s->options.nodes = (size_t)option_number("nodes", value, 1, ZKS_NODES_MAX);
        break;
    case 't':
        s->options.tick_ms = (int)option_number("tick", value, 10, 60000);
        break;
    case 'm':
        s->options.min_session_ms = (int)option_number("min-session", value, 1, 3600000);
        break;
    case 'M':
        s->options.max_session_ms = (int)option_number("max-session", value, 1, 86400000);
        break;
    case 'f':
        s->options.fsync = true;
        break;
    case 'j':
        s->options.jvm_extra = value;
        break;
    case 'q':
        s->quiet = true;
        break;
    default:
        option_usage(option, usage_text);
    }
}

static void parse(struct settings *s, int argc, char **argv)
{
    static const struct option options[] = {
        {"nodes", required_argument, NULL, 'n'},
        {"tick", required_argument, NULL, 't'},
        {"min-session", required_argument, NULL, 'm'},
        {"max-session", required_argument, NULL, 'M'},
        {"fsync", no_argument, NULL, 'f'},
        {"jvm", required_argument, NULL, 'j'},
        {"quiet", no_argument, NULL, 'q'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    int option;

    memset(s, 0, sizeof *s);
    s->options.tick_ms = 500;
    /* "+": the first word that is no option begins the command. */
    while ((option = getopt_long(argc, argv, "+", options, NULL)) != -1)
        set_option(s, option, optarg);
    if (optind < argc)
        s->command = argv + optind;
}

/* --- signals ---------------------------------------------------------------------------------- */

static void take_signals(struct kept_signals *kept)
{
    struct sigaction dfl;

    memset(&dfl, 0, sizeof dfl);
    dfl.sa_handler = SIG_DFL;
    sigaction(SIGINT, &dfl, &kept->on_int);
    sigaction(SIGTERM, &dfl, &kept->on_term);
    sigaction(SIGHUP, &dfl, &kept->on_hup);
    sigprocmask(SIG_SETMASK, NULL, &kept->mask);
}

static void give_back_signals(const struct kept_signals *kept)
{
    sigaction(SIGINT, &kept->on_int, NULL);
    sigaction(SIGTERM, &kept->on_term, NULL);
    sigaction(SIGHUP, &kept->on_hup, NULL);
    sigprocmask(SIG_SETMASK, &kept->mask, NULL);
}

/* From here on sigwaitinfo takes signals. Before, while the servers start, they may kill us: the
 * keeper ends the servers all the same. */
static sigset_t block_signals(void)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGHUP);
    sigaddset(&set, SIGCHLD);
    sigprocmask(SIG_BLOCK, &set, NULL);
    return set;
}

/* --- running ---------------------------------------------------------------------------------- */

static pid_t start_command(char **command, const struct kept_signals *kept)
{
    pid_t self = getpid();
    pid_t pid = fork();

    if (pid != 0)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGTERM); /* without servers the command has nothing to do */
    if (getppid() != self)
        _exit(EXIT_NO_COMMAND);
    give_back_signals(kept);
    execvp(command[0], command);
    fprintf(stderr, "zk-private: cannot run %s: %s\n", command[0], strerror(errno));
    _exit(EXIT_NO_COMMAND);
}

/* A Ctrl-C reaches the command without our help, as it is in the same process group. */
static bool came_from_terminal(const siginfo_t *info)
{
    return info->si_code == SI_KERNEL;
}

static int wait_for_command(pid_t pid, const sigset_t *set)
{
    for (;;) {
        siginfo_t info;
        int status;
        int sig = sigwaitinfo(set, &info);

        if (sig > 0 && sig != SIGCHLD && !came_from_terminal(&info))
            kill(pid, sig);
        if (sig == SIGCHLD && waitpid(pid, &status, WNOHANG) == pid)
            return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    }
}

static int run_command(char **command, const struct kept_signals *kept, const sigset_t *set)
{
    pid_t pid = start_command(command, kept);

    if (pid < 0) {
        fprintf(stderr, "zk-private: cannot fork: %s\n", strerror(errno));
        return EXIT_NO_COMMAND;
    }
    return wait_for_command(pid, set);
}

static int wait_for_interrupt(const sigset_t *set)
{
    siginfo_t info;
    int sig;

    do
        sig = sigwaitinfo(set, &info);
    while (sig < 0 || sig == SIGCHLD);
    return EXIT_SUCCESS;
}

static int serve(struct zks *zks, const struct settings *s, const struct kept_signals *kept)
{
    sigset_t set = block_signals();

    if (s->command != NULL && !s->quiet)
        fprintf(stderr, "zk-private: ZooKeeper at %s\n", zks_connect_string(zks));
    if (setenv("ZKLOCK_SERVERS", zks_connect_string(zks), 1) != 0)
        return EXIT_NO_SERVER;
    if (s->command != NULL)
        return run_command(s->command, kept, &set);
    printf("%s\n", zks_connect_string(zks));
    fflush(stdout);
    return wait_for_interrupt(&set);
}

int main(int argc, char **argv)
{
    struct kept_signals kept;
    struct settings s;
    struct zks *zks;
    char err[512];
    int rc;

    parse(&s, argc, argv);
    take_signals(&kept);
    rc = zks_start(&zks, &s.options, err, sizeof err);
    if (rc != 0) {
        fprintf(stderr, "zk-private: %s\n", err);
        return rc == ZKS_MISSING ? 77 : EXIT_NO_SERVER;
    }
    rc = serve(zks, &s, &kept);
    zks_stop(zks);
    return rc;
}
