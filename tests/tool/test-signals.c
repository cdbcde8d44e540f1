/* SPDX-License-Identifier: Apache-2.0 */
/* Signals to zklock run: they reach the command, or end the wait. A request to release counts as one of
 * them. */
#include "tool.h"

#include <zklock/inspect.h>

#include <stdlib.h>
#include <string.h>

enum { STOPS = 30 };

static int times(const struct worked *worked, int number)
{
    return atomic_load(&worked->shared->signals[number]);
}

/* All that end a process, but report neither a fault of its own nor a failed write. */
#define ENDING                                                                                     \
    SIGHUP, SIGINT, SIGQUIT, SIGUSR1, SIGUSR2, SIGALRM, SIGPROF, SIGXCPU, SIGVTALRM, SIGIO,        \
        SIGPWR, SIGSTKFLT, SIGRTMIN, SIGRTMAX

/* A zklock whose command counts its signals. */
static struct tool counting(const struct worked *worked, const char *path)
{
    struct tool tool = tool_line("run %s -- work %s 0 count", path, worked->name);

    worked_wait(worked, 1);
    return tool;
}

/* Goal: what is sent to zklock reaches the command, each signal once, and the command's own end counts. */
TOOL_TEST(signals_reach_the_command)
{
    const int numbers[] = {ENDING, SIGCONT};
    struct worked worked = worked_new();
    struct tool tool = counting(&worked, cluster_path("signals"));

    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        check_ok(kill(tool.pid, numbers[i]));
        check_wait(times(&worked, numbers[i]) == 1, WAIT_MS);
    }
    check_ok(kill(tool.pid, SIGTERM));
    check_num(tool_status(&tool), ==, 5);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        check_num(times(&worked, numbers[i]), ==, 1);
}

/* Goal: they reach all of the command's group. */
TOOL_TEST(signals_reach_the_whole_group)
{
    struct worked one = worked_new(), two = worked_new();

    struct tool tool = tool_line("run %s -c 'work %s 0 count & work %s 0 count & wait'",
                                 cluster_path("group"), one.name, two.name);
    worked_wait(&one, 1);
    worked_wait(&two, 1);
    tool_kill(&tool, SIGTERM); /* the shell's */
    check_num(times(&one, SIGTERM), ==, 1);
    check_num(times(&two, SIGTERM), ==, 1);
}

/* Goal: each signal that ends a program ends a zklock that waits, which then leaves no node; and no command
 * was run. */
TOOL_TEST(signals_end_the_wait)
{
    const int numbers[] = {ENDING, SIGTERM};
    const char *path = cluster_path("waiting");
    struct worked worked = worked_new();
    struct tool holder = counting(&worked, path);

    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        struct tool tool = tool_line("run %s -- work %s 1", path, worked.name);
        check_wait(cluster_children(path) == 2, WAIT_MS);
        check_ok(kill(tool.pid, numbers[i]));
        check_num(tool_signal(&tool), ==, numbers[i]);
        check_num(cluster_children(path), ==, 1);
    }
    check_num(atomic_load(&worked.shared->begun), ==, 1);
    check_ok(kill(holder.pid, SIGTERM));
    check_num(tool_status(&holder), ==, 5);
}

/* Goal: a signal that was ignored when zklock was called, as under nohup, is ignored by it and by its
 * command. */
TOOL_TEST(ignored_signals_stay_ignored)
{
    struct worked worked = worked_new();

    struct tool tool = tool_line("trap '' HUP; exec zklock run %s -- work %s 0",
                                 cluster_path("nohup"), worked.name);
    worked_wait(&worked, 1);
    check_ok(kill(tool.pid, SIGHUP));
    check_ok(kill(atomic_load(&worked.shared->pid), SIGHUP));
    tool_kill(&tool, SIGTERM);
}

/* Goal: SIGTSTP stops the command, SIGCONT continues it. The process that stopped may be the command alone,
 * if there is no shell that would continue zklock. */
TOOL_TEST(stops_are_passed_on)
{
    struct worked worked = worked_new();
    struct tool tool = counting(&worked, cluster_path("stops"));
    pid_t command = atomic_load(&worked.shared->pid);

    check_ok(kill(command, SIGSTOP)); /* of its own, which is nobody else's business */
    check_wait(process_state(command, NULL) == 'T', WAIT_MS);
    check_true(process_state(tool.pid, NULL) != 'T');
    check_ok(kill(tool.pid, SIGCONT));
    check_wait(process_state(command, NULL) != 'T', WAIT_MS);
    check_wait(times(&worked, SIGCONT) == 1, WAIT_MS);
    check_ok(kill(tool.pid, SIGTERM));
    check_num(tool_status(&tool), ==, 5);
}

/* Goal: without a terminal a SIGTSTP to zklock stops the command and nobody else, until SIGCONT. That comes once, even
 * if zklock hears of the stop only behind it. */
TOOL_TEST(a_stop_from_outside_lasts)
{
    struct worked worked = worked_new();

    struct tool tool =
        tool_start((const char *const[]){"/usr/bin/setsid", ZKLOCK, "run", cluster_path("outside"),
                                         "--", WORK, worked.name, "0", "count", NULL});
    worked_wait(&worked, 1);
    pid_t command = atomic_load(&worked.shared->pid);
    for (int i = 0; i < STOPS; i++) {
        check_ok(kill(tool.pid, SIGTSTP));
        check_wait(process_state(command, NULL) == 'T', WAIT_MS);
        check_true(process_state(tool.pid, NULL) != 'T');
        check_num(times(&worked, SIGCONT), ==, i); /* not by itself */
        check_ok(kill(tool.pid, SIGCONT));
        check_wait(times(&worked, SIGCONT) > i, WAIT_MS);
    }
    check_ok(kill(tool.pid, SIGTERM));
    check_num(tool_status(&tool), ==, 5);
    check_num(times(&worked, SIGCONT), ==, STOPS);
}

/* Goal: zklock ends even a stopped command when the lock is lost. */
TOOL_TEST(a_stopped_command_is_ended)
{
    const char *path = cluster_path("still");
    struct worked worked = worked_new();
    struct tool tool;
    char node[300];

    tool = counting(&worked, path);
    check_ok(kill(atomic_load(&worked.shared->pid), SIGSTOP));
    check_wait(process_state(atomic_load(&worked.shared->pid), NULL) == 'T', WAIT_MS);
    cluster_child(path, 0, node, sizeof node);
    check_ok(wire_delete(raw, node, -1));
    check_num(tool_status(&tool), ==, 79);
    check_num(times(&worked, SIGTERM), ==, 1);
}

/* Goal: zklock passes a request to release on as SIGTERM, once, and holds the lock until the command has
 * ended. */
TOOL_TEST(a_request_to_let_go_is_a_sigterm)
{
    const char *path = cluster_path("revoke");
    struct zkl_client *client = world_client();
    struct worked worked = worked_new();
    struct tool tool = counting(&worked, path);
    struct zkl_wait wait = ZKL_WAIT_INIT;
    char node[300];

    cluster_child(path, 0, node, sizeof node);
    wait.deadline_ns = zkl_now_ns() + WAIT_MS * INT64_C(1000000);
    check_ok(zkl_revoke(client, node, &wait, 0));
    check_num(tool_status(&tool), ==, 5);
    check_true(tool_says(&tool, "another client asks for the lock: the command gets SIGTERM"));
    check_num(times(&worked, SIGTERM), ==, 1);
}
