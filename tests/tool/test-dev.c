/* SPDX-License-Identifier: Apache-2.0 */
/* zklock-dev: its ensemble serves. However zklock-dev ends, neither servers nor files are left. */
#include "peek.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* tool_run of the other program. */
#define dev_words(...) ((const char *const[]){getenv("ZKL_TEST_DEV"), __VA_ARGS__, NULL})
#define run_dev(...) tool_start(dev_words(__VA_ARGS__))

static char folder[512]; /* zklock-dev makes all its files in there */

static int files(void)
{
    int n = 0;
    DIR *dir = opendir(folder);

    check_true(dir);
    for (struct dirent *e; (e = readdir(dir)) != NULL;)
        n += e->d_name[0] != '.';
    closedir(dir);
    return n;
}

/* Started, with its servers in ZKLOCK_SERVERS. */
static struct tool dev_of(const char *const words[])
{
    snprintf(folder, sizeof folder, "%s/dev", zks_dir(server));
    mkdir(folder, 0700);
    char *before = strdup(getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
    check_ok(setenv("TMPDIR", folder, 1));
    struct tool tool = tool_start(words);
    check_ok(setenv("TMPDIR", before, 1));
    free(before);
    check_wait(tool_says(&tool, "\n"), ZKS_READY_MS);
    check_ok(setenv("ZKLOCK_SERVERS",
                    written("%.*s", (int)strcspn(tool_text(&tool), "\n"), tool_text(&tool)), 1));
    return tool;
}

static struct tool dev(const char *nodes)
{
    return dev_of(dev_words("--nodes", nodes));
}

static bool listens(int port)
{
    int fd = net_connect(zks_host(), port, net_now_ms() + WAIT_MS);

    return fd >= 0 && close(fd) == 0;
}

static void is_all_gone(void)
{
    int port = atoi(strrchr(getenv("ZKLOCK_SERVERS"), ':') + 1);

    check_wait(files() == 0, WAIT_MS);
    /* A server that was killed may have its port for longer than its files. */
    check_wait(!listens(port), WAIT_MS);
}

/* Goal: zklock-dev prints the addresses of as many servers as --nodes says, and a lock on them works. */
TOOL_TEST(the_ensemble_serves)
{
    struct tool tool = dev("3");
    int colons = 0;
    for (const char *c = getenv("ZKLOCK_SERVERS"); *c; c++)
        colons += *c == ':';
    check_num(colons, ==, 3);
    check_num(files(), ==, 1);
    check_said(0, "run /dev -- echo 'under the lock'", "under the lock");
    kill(tool.pid, SIGTERM);
    check_num(tool_status(&tool), ==, 0);
    is_all_gone();
}

/* Goal: nothing stays behind, be it interrupted or killed. */
TOOL_TEST(nothing_stays_behind)
{
    struct tool tool = dev("1");
    check_said(0, "status /dev", "/dev  free");
    kill(tool.pid, SIGINT);
    check_num(tool_status(&tool), ==, 0);
    is_all_gone();
    tool = dev("1");
    tool_kill(&tool, SIGKILL);
    is_all_gone();
}

/* They are children of a keeper, which is zklock-dev's child: it comes first. */
static size_t servers_of(const struct tool *tool, pid_t servers[], size_t room)
{
    pid_t keeper = 0;

    check_num(process_children(tool->pid, &keeper, 1), ==, 1);
    return process_children(keeper, servers, room);
}

static void ends_with_failure(struct tool *tool)
{
    check_num(tool_status(tool), ==, 69);
    check_true(tool_says(tool, " has died\n"));
    check_true(tool_says(tool, "too few for an ensemble"));
    is_all_gone();
}

/* Goal: zklock-dev reports each server that dies. It ends with a failure when the servers that are left
 * can't serve, and not before. */
TOOL_TEST(dead_servers_are_told_of)
{
    pid_t servers[ZKS_NODES_MAX], keeper = 0;

    struct tool tool = dev("1");
    check_num(servers_of(&tool, servers, ZKS_NODES_MAX), ==, 1);
    check_ok(kill(servers[0], SIGKILL));
    ends_with_failure(&tool);

    tool = dev("3");
    check_num(servers_of(&tool, servers, ZKS_NODES_MAX), ==, 3);
    check_ok(kill(servers[0], SIGKILL));
    check_wait(tool_says(&tool, " has died\n"), WAIT_MS);
    check_said(0, "run /dev -- echo 'two of three'", "two of three");
    check_ok(kill(servers[2], SIGKILL));
    ends_with_failure(&tool);

    tool = dev("1");
    check_num(process_children(tool.pid, &keeper, 1), ==, 1);
    check_ok(kill(keeper, SIGKILL));
    ends_with_failure(&tool);
}

/* Goal: with --commands a server stops and starts again, at the port and with the data that it had; each command is
 * answered, also one that can't be carried out; the end of the input ends it. Seen red: without the wait for a server that
 * was started, the next command is refused by the one before. */
TOOL_TEST(servers_stop_and_start)
{
    char port[16];
    int number, input[2], before = dup(STDIN_FILENO);

    check_ok(net_free_ports(&number, 1));
    snprintf(port, sizeof port, "%d", number);
    check_ok(pipe2(input, O_CLOEXEC));
    dup2(input[0], STDIN_FILENO);
    struct tool tool = dev_of(dev_words("--nodes", "1", "--port", port, "--commands"));
    dup2(before, STDIN_FILENO);
    close(before);
    close(input[0]);
    assert_string_equal(getenv("ZKLOCK_SERVERS"), written("127.0.0.1:%d", number));
    struct tool second = run_dev("--nodes", "1", "--port", port);
    check_num(tool_status(&second), ==, 69);
    check_true(tool_says(&second, "cannot be had: another program listens there"));

    check_said(0, "run /dev -- echo kept", "kept");
    const char commands[] =
        "stop 1\nresume 1\nstop 2\nnothing\nstart 1\nstart 1\nkill 1\npause 1\n";
    check_num(write(input[1], commands, strlen(commands)), ==, strlen(commands));
    check_wait(tool_says(&tool, "pause 1: it is stopped\n"), ZKS_READY_MS);
    check_true(tool_says(
        &tool, "stop 1: done\nresume 1: it is stopped\nstop 2: there is no such server\n"
               "nothing: say stop, kill, start, pause or resume, and the number of a server\n"
               "start 1: done\nstart 1: done\nkill 1: done\n"));
    check_true(!listens(number));
    check_num(write(input[1], "start 1\n", 8), ==, 8);
    check_wait(tool_says(&tool, "pause 1: it is stopped\nstart 1: done\n"), ZKS_READY_MS);
    check_said(0, "status /dev", "/dev  free");
    close(input[1]);
    check_num(tool_status(&tool), ==, 0);
    is_all_gone();
}

/* Goal: with --commands and nobody who reads the answers, a signal still ends it. Method: more wrong commands than a pipe
 * has room for answers. Seen red: it could be killed only. */
TOOL_TEST(unread_answers_keep_nothing_alive)
{
    int input[2], output[2], status = -1;
    char first;

    check_ok(pipe2(input, O_CLOEXEC));
    check_ok(pipe2(output, O_CLOEXEC));
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        tool_default_signals();
        dup2(input[0], STDIN_FILENO);
        dup2(output[1], STDOUT_FILENO);
        execl(getenv("ZKL_TEST_DEV"), "zklock-dev", "--nodes", "1", "--commands", NULL);
        _exit(98);
    }
    check_true(pid > 0);
    close(input[0]);
    close(output[1]);
    check_num(read(output[0], &first, 1), ==, 1); /* its servers run */
    check_ok(fcntl(input[1], F_SETFL, O_NONBLOCK));
    int64_t until_ms = net_now_ms() + WAIT_MS, full_ms = 0;
    while (net_now_ms() < until_ms && (full_ms == 0 || net_now_ms() < full_ms + 500)) {
        if (write(input[1], "x\n", 2) == 2) {
            full_ms = 0; /* it still reads */
            continue;
        }
        full_ms = full_ms ? full_ms : net_now_ms();
        net_nap_ms(10);
    }
    check_ok(kill(pid, SIGTERM));
    check_wait(waitpid(pid, &status, WNOHANG) == pid, WAIT_MS);
    check_num(WIFEXITED(status) ? WEXITSTATUS(status) : -1, ==, 0);
    close(input[1]);
    close(output[0]);
}

static void check_dev(struct tool tool, int status, const char *words)
{
    check_num(tool_status(&tool), ==, status);
    if (!tool_says(&tool, words))
        fail_msg("without \"%s\": %s", words, tool_text(&tool));
}

TOOL_TEST(wrong_calls_are_told)
{
    check_dev(run_dev("--nodes", "6"), 64,
              "zklock-dev: --nodes must be a whole number from 1 to 5, not \"6\"\n");
    check_dev(run_dev("--port", "65532"), 64,
              "zklock-dev: --port must be a whole number from 1 to 65531, not \"65532\"\n");
    check_dev(run_dev("now"), 64, "zklock-dev takes only options, not \"now\"\n");
    check_dev(run_dev("--all"), 64,
              "zklock-dev has no option --all: zklock-dev --help lists them\n");
    check_dev(run_dev("--nodes"), 64, "--nodes requires a value: see zklock-dev --help\n");
    check_dev(run_dev("--help"), 0, "usage: zklock-dev [--nodes N] [--port PORT] [--commands]\n");
    check_dev(run_dev("--version"), 0, "zklock-dev ");
}

/* Goal: a caller of the old name gets an error that says the new one. */
TOOL_TEST(the_old_name_is_told)
{
    check_said(64, "dev", "zklock: zklock dev is a separate program: run zklock-dev\n");
    check_said(64, "dev --nodes 1", "run zklock-dev\n");
}
