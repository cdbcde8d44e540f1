/* SPDX-License-Identifier: Apache-2.0 */
/* Whom the guard of zklock run signals when it ends the command: all that descends from it, and nobody else. */
#include "tool.h"

#include "moment.h"
#include "sanitizer.h"

#include <errno.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>

/* A child of the test's that has a number of the test's choice. -1: that may not be chosen here. */
static pid_t stranger_with(pid_t number)
{
    struct clone_args args = {
        .exit_signal = SIGCHLD, .set_tid = (uint64_t)(uintptr_t)&number, .set_tid_size = 1};
    pid_t pid = (pid_t)syscall(SYS_clone3, &args, sizeof args);

    while (pid == 0)
        pause();
    return pid;
}

static void skip_without_numbers(void)
{
    pid_t probe = fork();

    if (probe == 0)
        _exit(0);
    waitpid(probe, NULL, 0);
    pid_t pid = UNDER_ASAN || UNDER_TSAN ? -1 : stranger_with(probe);
    if (pid < 0) {
        print_message(
            "skipped: a process's number can't be chosen here, or nothing be preloaded\n");
        skip();
    }
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

/* Goal: where /proc shows nothing, nothing begins: the guard could not find what it has to end. */
TOOL_TEST(without_proc_nothing_begins)
{
    static const char line[] =
        "mount -t tmpfs none /proc && exec \"$0\" run /noproc -- touch \"$1\"";
    const char *const can[] = {
        "/usr/bin/unshare", "-rm", "mount", "-t", "tmpfs", "none", "/proc", NULL};
    char made[300];

    struct tool tool = tool_start(can);
    int status = tool_wait(&tool);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        print_message("skipped: no mount namespace can be had here\n");
        skip();
    }
    snprintf(made, sizeof made, "%s/made", zks_dir(server));
    tool = tool_start(
        (const char *const[]){"/usr/bin/unshare", "-rm", "sh", "-c", line, ZKLOCK, made, NULL});
    check_num(tool_status(&tool), ==, 71);
    check_true(tool_says(&tool, "mount /proc"));
    check_num(access(made, F_OK), ==, -1);
    check_num(cluster_children("/noproc"), ==, 0);
}

/* Goal: a process that has got the number of a descendant after the guard looked is not signalled. Method: the
 * guard is held between the two; the descendant is killed, and a child of the test gets its number. */
TOOL_TEST(a_number_given_anew_is_not_signalled)
{
    struct worked worked = worked_new();
    char name[300];

    skip_without_numbers();
    tool_default_signals();
    snprintf(name, sizeof name, "%s/moment", zks_dir(server));
    struct moment *moment = moment_map(name);
    check_true(moment);
    check_ok(setenv(MOMENT_VARIABLE, name, 1));
    check_ok(setenv("LD_PRELOAD", getenv("ZKL_TEST_MOMENT"), 1));
    struct tool tool = tool_run("run", cluster_path("anew"), "--", WORK, worked.name, "0", "hide");
    check_ok(unsetenv("LD_PRELOAD"));
    worked_wait(&worked, 1);
    pid_t descendant = atomic_load(&worked.shared->pid), guard = tool_guard(&tool);
    tool_kill(&tool, SIGKILL);
    check_wait(atomic_load(&moment->reached), WAIT_MS);

    check_ok(kill(descendant, SIGKILL));
    check_wait(kill(descendant, 0) != 0 && errno == ESRCH, WAIT_MS);
    pid_t stranger = stranger_with(descendant);
    check_num(stranger, ==, descendant);
    atomic_store(&moment->over, 1);
    check_wait(process_gone(guard), WAIT_MS);
    bool alive = waitpid(stranger, NULL, WNOHANG) == 0;
    kill(stranger, SIGKILL);
    if (alive)
        waitpid(stranger, NULL, 0);
    check_true(alive);
    munmap(moment, sizeof *moment);
}
