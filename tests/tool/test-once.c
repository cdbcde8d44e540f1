/* SPDX-License-Identifier: Apache-2.0 */
/* The command of zklock run gets each signal once, whoever sends it and to whom of the processes; and zklock
 * as process 1, and as parent of strangers. */
#include "tool.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int times(const struct worked *worked, int number)
{
    return atomic_load(&worked->shared->signals[number]);
}

static pid_t only_child(pid_t parent)
{
    pid_t child = 0;

    process_children(parent, &child, 1);
    return child;
}

/* --- killers ------------------------------------------------------------------------------------- */

enum { TREE_MAX = 32 };

/* The process and all that descends from it, in no order that a killer would care for. */
static size_t tree_of(pid_t root, pid_t tree[TREE_MAX])
{
    static unsigned dice = 1;
    size_t n = 1;

    tree[0] = root;
    for (size_t i = 0; i < n; i++)
        n += process_children(tree[i], tree + n, TREE_MAX - n);
    for (size_t i = n - 1; i > 0; i--) {
        dice = dice * 1103515245 + 12345;
        size_t j = (dice >> 16) % (i + 1);
        pid_t moved = tree[i];
        tree[i] = tree[j];
        tree[j] = moved;
    }
    return n;
}

typedef void (*kill_fn)(pid_t zklock, int number);

/* As systemd ends a unit, and as many end a tree of processes. */
static void kill_all(pid_t zklock, int number)
{
    pid_t tree[TREE_MAX];
    size_t n = tree_of(zklock, tree);

    for (size_t i = 0; i < n; i++)
        check_ok(kill(tree[i], number));
}

static void kill_group(pid_t zklock, int number)
{
    check_ok(kill(-zklock, number));
}

static void kill_one(pid_t zklock, int number)
{
    check_ok(kill(zklock, number));
}

/* Blanks stand for NULs. */
static bool proc_says(pid_t pid, const char *file, const char *words)
{
    char text[4096];

    FILE *from = fopen(written("/proc/%d/%s", (int)pid, file), "re");
    size_t n = from ? fread(text, 1, sizeof text - 1, from) : 0;
    if (from)
        fclose(from);
    for (size_t i = 0; i < n; i++)
        text[i] = text[i] ? text[i] : ' ';
    text[n] = '\0';
    return strstr(text, words) != NULL;
}

static void kill_if(pid_t zklock, int number, const char *file, const char *words)
{
    pid_t tree[TREE_MAX];
    size_t n = tree_of(zklock, tree);

    for (size_t i = 0; i < n; i++) {
        if (proc_says(tree[i], file, words))
            check_ok(kill(tree[i], number));
    }
}

/* As pkill zklock, pkill -f with a word of zklock's own, and pkill -f with the command's. */
static void kill_by_name(pid_t zklock, int number)
{
    kill_if(zklock, number, "comm", "zklock");
}

static void kill_by_zklocks_line(pid_t zklock, int number)
{
    kill_if(zklock, number, "cmdline", "/zklock run");
}

static void kill_by_the_commands_line(pid_t zklock, int number)
{
    kill_if(zklock, number, "cmdline", WORK);
}

/* As killall with the path of a program, and pidof. */
static void kill_by_program(pid_t zklock, int number)
{
    pid_t tree[TREE_MAX];
    size_t n = tree_of(zklock, tree);

    for (size_t i = 0; i < n; i++) {
        char program[600] = "";
        if (readlink(written("/proc/%d/exe", (int)tree[i]), program, sizeof program - 1) > 0 &&
            strcmp(program, ZKLOCK) == 0)
            check_ok(kill(tree[i], number));
    }
}

/* True if the killer was not itself kept from the processor so long that its signals are several. */
static bool killed_at_once(kill_fn killer, pid_t zklock, int number)
{
    int64_t then = net_boot_ns();

    killer(zklock, number);
    return net_boot_ns() - then < 100 * INT64_C(1000000);
}

/* Signals are passed on in the order in which zklock got them, so no more will come of a round once a later
 * one, to zklock alone, has come. What comes together is handled in any order. */
static void check_once_each(const struct worked *worked, pid_t zklock, kill_fn killer, int rounds)
{
    static const int numbers[] = {SIGINT, SIGUSR1, SIGHUP, SIGQUIT};
    int due[4];

    for (int i = 0; i < 4; i++)
        due[i] = times(worked, numbers[i]);
    for (int i = 0; i < rounds; i++) {
        int number = numbers[i % 4], marks = times(worked, SIGUSR2);
        bool at_once = killed_at_once(killer, zklock, number);
        check_ok(kill(zklock, SIGUSR2));
        check_wait(times(worked, SIGUSR2) == marks + 1, WAIT_MS);
        due[i % 4]++;
        check_wait(times(worked, number) >= due[i % 4], WAIT_MS);
        if (at_once && times(worked, number) != due[i % 4])
            fail_msg("round %d: signal %d came %d times too often", i, number,
                     times(worked, number) - due[i % 4]);
        if (!at_once)
            due[i % 4] = times(worked, number);
    }
}

/* Goal: whoever sends a signal, and to whom of the processes, the command gets it once: all that descends
 * from zklock, its process group, or zklock alone. */
static void check_killer(const char *name, kill_fn killer, int rounds)
{
    struct worked worked = worked_new();
    struct tool tool =
        tool_start((const char *const[]){"/usr/bin/setsid", ZKLOCK, "run", cluster_path(name), "--",
                                         WORK, worked.name, "0", "count", NULL});

    worked_wait(&worked, 1);
    check_once_each(&worked, tool.pid, killer, rounds);
    killer(tool.pid, SIGTERM);
    check_num(tool_status(&tool), ==, 5);
    check_num(times(&worked, SIGTERM), ==, 1);
}

TOOL_TEST(a_signal_to_all_comes_once)
{
    check_killer("unit", kill_all, 20);
}

TOOL_TEST(a_signal_to_the_group_comes_once)
{
    check_killer("process-group", kill_group, 20);
}

TOOL_TEST(a_signal_to_zklock_comes_once)
{
    check_killer("alone", kill_one, 20);
}

TOOL_TEST(a_signal_by_name_comes_once)
{
    check_killer("by-name", kill_by_name, 4);
    check_killer("by-line", kill_by_zklocks_line, 4);
    check_killer("by-command", kill_by_the_commands_line, 4);
}

/* Goal: a killer that finds zklock and all its helpers, but not the command, ends a command that a signal
 * ends: that it lives tells that it has not got it. */
TOOL_TEST(a_signal_to_the_program_ends_the_command)
{
    struct worked worked = worked_new();

    struct tool tool = tool_run("run", cluster_path("program"), "--", WORK, worked.name, "0");
    worked_wait(&worked, 1);
    kill_by_program(tool.pid, SIGTERM);
    check_num(tool_signal(&tool), ==, SIGTERM);
}

/* Goal: timeout(1), which signals zklock and then its own group, in which zklock is, too. */
TOOL_TEST(a_signal_of_timeout_comes_once)
{
    for (int i = 0; i < 5; i++) {
        struct worked worked = worked_new();
        struct tool tool = tool_start((const char *const[]){
            "/usr/bin/timeout", "-s", "INT", "-k", "100", "3000", ZKLOCK, "run",
            cluster_path("timeout"), "--", WORK, worked.name, "0", "count", NULL});
        worked_wait(&worked, 1);
        check_ok(kill(tool.pid, SIGALRM)); /* its time is over */
        check_wait(times(&worked, SIGINT) >= 1, WAIT_MS);
        check_ok(kill(only_child(tool.pid), SIGTERM));
        check_wait(times(&worked, SIGTERM) == 1, WAIT_MS);
        check_num(tool_status(&tool), ==, 124);
        check_num(times(&worked, SIGINT), ==, 1);
    }
}

/* Goal: one to the command's group and one to zklock are two, if more than the time that a killer may take lies between
 * them, however seldom zklock has something else to do. Method: twice that time, and again on a machine that did not
 * let zklock run in it. */
TOOL_TEST(a_later_signal_to_zklock_counts)
{
    struct worked worked = worked_new();
    bool apart = false;

    set_session("20");
    struct tool tool =
        tool_run("run", cluster_path("later"), "--", WORK, worked.name, "0", "count");
    worked_wait(&worked, 1);
    pid_t group = getpgid(atomic_load(&worked.shared->pid));
    for (int i = 0; i < 50 && !apart; i++) {
        int before = times(&worked, SIGHUP), marks = times(&worked, SIGUSR2);
        check_ok(kill(-group, SIGHUP));
        check_wait(times(&worked, SIGHUP) > before, WAIT_MS);
        usleep(400 * 1000);
        check_ok(kill(tool.pid, SIGHUP));
        check_ok(kill(tool.pid, SIGUSR2));
        check_wait(times(&worked, SIGUSR2) == marks + 1, WAIT_MS);
        apart = times(&worked, SIGHUP) > before + 1;
    }
    check_true(apart);
    check_ok(kill(tool.pid, SIGTERM));
    check_num(tool_status(&tool), ==, 5);
}

/* --- process 1, and parent of strangers ---------------------------------------------------------- */

static bool may_unshare(void)
{
    return system("unshare --pid --fork --mount-proc true 2>/dev/null") == 0;
}

/* A line of sh that becomes zklock, as process 1 of a namespace. */
static struct tool process_1(const char *line)
{
    return tool_start((const char *const[]){"/usr/bin/unshare", "--pid", "--fork", "--mount-proc",
                                            "--kill-child", "/bin/sh", "-c", line, NULL});
}

/* Goal: as process 1, which the kernel gives no signal that it does not wait for, zklock ends by a signal
 * before it has a connection, and while it waits; and passes one on, once, while the command runs. */
TOOL_TEST(process_1_gets_signals)
{
    struct worked worked = worked_new();
    const char *path = cluster_path("one");
    char line[900];

    if (!may_unshare())
        skip();
    struct tool early = process_1(written("exec %s run --servers 127.0.0.1:1 %s -- %s %s 0", ZKLOCK,
                                          path, WORK, worked.name));
    check_wait(proc_says(only_child(early.pid), "comm", "zklock") &&
                   tool_guard(&(struct tool){.pid = only_child(early.pid)}) != 0,
               WAIT_MS);
    check_ok(kill(only_child(early.pid), SIGTERM));
    check_num(tool_status(&early), ==, 128 + SIGTERM);

    snprintf(line, sizeof line, "exec %s run %s -- %s %s 0 count", ZKLOCK, path, WORK, worked.name);
    struct tool holder = process_1(line);
    worked_wait(&worked, 1);
    struct tool waiter = process_1(line);
    check_wait(cluster_children(path) == 2, WAIT_MS);
    check_ok(kill(only_child(waiter.pid), SIGTERM));
    check_num(tool_status(&waiter), ==, 128 + SIGTERM);
    check_num(cluster_children(path), ==, 1);
    check_once_each(&worked, only_child(holder.pid), kill_one, 6);
    check_once_each(&worked, only_child(holder.pid), kill_all, 6);
    check_ok(kill(only_child(holder.pid), SIGTERM));
    check_num(tool_status(&holder), ==, 5);
    check_num(times(&worked, SIGTERM), ==, 1);
}

/* Goal: strangers whose parent zklock becomes do not stay zombies: while it waits, and while the command
 * runs. */
TOOL_TEST(strangers_do_not_stay)
{
    struct worked worked = worked_new();
    const char *path = cluster_path("strangers");
    pid_t tree[TREE_MAX];
    char line[900];

    snprintf(line, sizeof line,
             "for i in 1 2 3 4 5 6 7 8; do sleep 0.$i & done; exec %s run %s -- %s %s 0 count",
             ZKLOCK, path, WORK, worked.name);
    struct tool holder = tool_start((const char *const[]){"/bin/sh", "-c", line, NULL});
    worked_wait(&worked, 1);
    struct tool waiter = tool_start((const char *const[]){"/bin/sh", "-c", line, NULL});
    check_wait(tree_of(holder.pid, tree) == 4, WAIT_MS); /* with guard, anchor and command */
    check_wait(tree_of(waiter.pid, tree) == 4, WAIT_MS);
    tool_kill(&waiter, SIGTERM);
    check_ok(kill(holder.pid, SIGTERM));
    check_num(tool_status(&holder), ==, 5);
}
