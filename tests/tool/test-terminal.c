/* SPDX-License-Identifier: Apache-2.0 */
/* zklock run on a terminal: the command can be typed to, ^C and ^Z mean it, and zklock follows. Method: a
 * pseudo-terminal, and a shell of the test's own that knows foreground jobs and nothing else. */
#include "tool.h"

#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CTRL_C "\003"
#define CTRL_Z "\032"

/* --- the shell ----------------------------------------------------------------------------------- */

struct shell {
    pid_t pid;
    int keyboard; /* the other side of the terminal */
    int said;     /* the int that waitpid gave for the job, each time it stopped or ended */
    int told;     /* one byte: bring the job to the foreground */
    char screen[4096];
    size_t length;
};

static void go_on(pid_t job)
{
    tcsetpgrp(STDIN_FILENO, job);
    kill(-job, SIGCONT);
}

static void be_shell(const char *line, int say, int hear)
{
    int status = 0;
    char byte;

    tool_default_signals();
    signal(SIGTTOU, SIG_IGN);
    pid_t job = fork();
    if (job == 0) {
        setpgid(0, 0);
        tcsetpgrp(STDIN_FILENO, getpid());
        signal(SIGTTOU, SIG_DFL);
        execl("/bin/sh", "sh", "-c", line, (char *)NULL);
    }
    setpgid(job, job);
    while (waitpid(job, &status, WUNTRACED) == job) {
        tcsetpgrp(STDIN_FILENO, getpid());
        if (write(say, &status, sizeof status) < 0 || !WIFSTOPPED(status) ||
            read(hear, &byte, 1) != 1)
            break;
        go_on(job);
    }
    _exit(0);
}

/* Its job, a line for sh in which $zklock and $work are the programs. */
static struct shell shell_run(const char *format, ...) __attribute__((format(printf, 1, 2)));
static struct shell shell_run(const char *format, ...)
{
    struct shell shell = {0};
    char line[1000];
    va_list args;
    int say[2], hear[2];

    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    check_ok(setenv("zklock", ZKLOCK, 1));
    check_ok(setenv("work", WORK, 1));
    check_ok(pipe2(say, O_CLOEXEC));
    check_ok(pipe2(hear, O_CLOEXEC));
    shell.pid = forkpty(&shell.keyboard, NULL, NULL, NULL);
    check_num(shell.pid, >=, 0);
    if (shell.pid == 0)
        be_shell(line, say[1], hear[0]);
    close(say[1]);
    close(hear[0]);
    fcntl(shell.keyboard, F_SETFL, O_NONBLOCK);
    fcntl(shell.keyboard, F_SETFD, FD_CLOEXEC);
    shell.said = say[0];
    shell.told = hear[1];
    return shell;
}

static void type(const struct shell *shell, const char *text)
{
    check_num(write(shell->keyboard, text, strlen(text)), ==, strlen(text));
}

static bool shows(struct shell *shell, const char *words)
{
    ssize_t n = read(shell->keyboard, shell->screen + shell->length,
                     sizeof shell->screen - 1 - shell->length);
    shell->length += n > 0 ? (size_t)n : 0;
    return strstr(shell->screen, words) != NULL;
}

static void check_shows(struct shell *shell, const char *words)
{
    if (!wait_until(shows(shell, words), WAIT_MS))
        fail_msg("no \"%s\" on the screen: %s", words, shell->screen);
}

/* What became of the job, as waitpid says it. */
static int news(const struct shell *shell)
{
    struct pollfd from = {.fd = shell->said, .events = POLLIN};
    int status = 0;

    if (poll(&from, 1, WAIT_MS) != 1 || read(shell->said, &status, sizeof status) != sizeof status)
        fail_msg("the job neither stops nor ends: %s", shell->screen);
    return status;
}

static void foreground(const struct shell *shell)
{
    check_num(write(shell->told, "", 1), ==, 1);
}

static void shell_end(struct shell *shell)
{
    check_wait(waitpid(shell->pid, NULL, WNOHANG) == shell->pid, WAIT_MS);
    close(shell->keyboard);
    close(shell->said);
    close(shell->told);
}

/* --- the tests ----------------------------------------------------------------------------------- */

/* Goal: the command has the terminal: it is typed to, and finds its own group in the foreground. */
TOOL_TEST(the_command_is_typed_to)
{
    const char *path = cluster_path("typed");
    struct shell shell = shell_run("exec $zklock run %s -c 'echo ready; read line; echo got $line; "
                                   "read a b c d group f g front rest </proc/$$/stat; "
                                   "[ $front = $group ] && echo in front; exit 4'",
                                   path);

    check_shows(&shell, "ready");
    type(&shell, "hello\n");
    check_shows(&shell, "got hello");
    check_shows(&shell, "in front");
    int status = news(&shell);
    check_true(WIFEXITED(status) && WEXITSTATUS(status) == 4);
    shell_end(&shell);
    check_num(cluster_children(path), ==, 0);
}

/* Goal: in a script, whose shell is in zklock's group, and in a pipeline too. */
TOOL_TEST(so_is_one_in_a_script_or_a_pipeline)
{
    struct shell script =
        shell_run("$zklock run %s -c 'echo ready; read line; echo got $line'; exit 0",
                  cluster_path("script"));
    struct shell pipe =
        shell_run("$zklock run %s -c 'echo ready >&2; read line; echo got $line' | cat",
                  cluster_path("pipe"));
    struct shell *shells[] = {&script, &pipe};

    for (size_t i = 0; i < sizeof shells / sizeof shells[0]; i++) {
        check_shows(shells[i], "ready");
        type(shells[i], "hello\n");
        check_shows(shells[i], "got hello");
        check_num(news(shells[i]), ==, 0);
        shell_end(shells[i]);
    }
}

/* Goal: ^C ends the command and zklock, whose caller must see the signal. */
TOOL_TEST(ctrl_c_ends_both)
{
    const char *path = cluster_path("ctrl-c");
    struct worked worked = worked_new();

    struct shell shell = shell_run("exec $zklock run %s -- $work %s 0", path, worked.name);
    worked_wait(&worked, 1);
    type(&shell, CTRL_C);
    int status = news(&shell);
    check_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGINT);
    check_num(cluster_children(path), ==, 0);
    shell_end(&shell);
}

/* Goal: the command gets each ^C once: where it has the terminal, and where zklock's group has it and passes it
 * on, as in a pipeline, and with an input of its own. */
TOOL_TEST(each_ctrl_c_comes_once)
{
    static const struct {
        const char *before, *behind;
    } lines[] = {
        {"exec", ""}, {"", "; exit 5"}, {"trap : INT;", "| cat; exit 5"}, {"exec", "</dev/null"}};

    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        struct worked worked = worked_new();
        struct shell shell = shell_run("%s $zklock run %s -- $work %s 0 count %s", lines[i].before,
                                       cluster_path("each-ctrl-c"), worked.name, lines[i].behind);
        worked_wait(&worked, 1);
        for (int n = 1; n <= 20; n++) {
            type(&shell, CTRL_C);
            check_wait(atomic_load(&worked.shared->signals[SIGINT]) == n, WAIT_MS);
        }
        check_ok(kill(atomic_load(&worked.shared->pid), SIGTERM));
        int status = news(&shell);
        check_true(WIFEXITED(status) && WEXITSTATUS(status) == 5);
        check_num(atomic_load(&worked.shared->signals[SIGINT]), ==, 20);
        shell_end(&shell);
    }
}

/* Goal: ^Z stops the command and zklock, so that the shell has its terminal again; the foreground
 * brings both back, and the command has the terminal again. */
TOOL_TEST(ctrl_z_stops_both)
{
    struct worked worked = worked_new();

    set_session("30");
    struct shell shell =
        shell_run("exec $zklock run %s -- $work %s 0 count", cluster_path("ctrl-z"), worked.name);
    worked_wait(&worked, 1);
    for (int i = 1; i <= 2; i++) {
        type(&shell, CTRL_Z);
        int status = news(&shell);
        check_true(WIFSTOPPED(status));
        int64_t then = atomic_load(&worked.shared->alive_ns);
        check_num(net_boot_ns(), >, then);
        foreground(&shell);
        check_wait(atomic_load(&worked.shared->alive_ns) > then, WAIT_MS);
        check_wait(atomic_load(&worked.shared->signals[SIGCONT]) >= i, WAIT_MS);
        type(&shell, CTRL_C);
        check_wait(atomic_load(&worked.shared->signals[SIGINT]) == i, WAIT_MS);
    }
    check_ok(kill(atomic_load(&worked.shared->pid), SIGTERM));
    int status = news(&shell);
    check_true(WIFEXITED(status) && WEXITSTATUS(status) == 5);
    shell_end(&shell);
}

/* Goal: a stopped job does not keep a lock from others for ever: it is ended when its window ends. */
TOOL_TEST(a_stopped_job_loses_the_lock)
{
    const char *path = cluster_path("stopped");
    struct zkl_client *client = world_client();
    struct zkl_mutex *next = world_mutex(client, path);
    struct worked worked = worked_new();

    set_session("1");
    struct shell shell = shell_run("exec $zklock run %s -- $work %s 0 stubborn", path, worked.name);
    worked_wait(&worked, 1);
    type(&shell, CTRL_Z);
    check_true(WIFSTOPPED(news(&shell)));
    check_ok(zkl_mutex_lock_for(next, WAIT_MS));
    check_true(process_gone(atomic_load(&worked.shared->pid)));
    check_ok(zkl_mutex_unlock(next));
    foreground(&shell);
    int status = news(&shell);
    check_true(WIFEXITED(status) && WEXITSTATUS(status) == 79);
    shell_end(&shell);
}

/* Goal: when the terminal is closed, the command ends and zklock releases the lock. */
TOOL_TEST(a_hangup_ends_both)
{
    const char *path = cluster_path("hangup");
    struct worked worked = worked_new();

    struct shell shell = shell_run("exec $zklock run %s -- $work %s 0", path, worked.name);
    worked_wait(&worked, 1);
    close(shell.keyboard);
    check_wait(process_gone(atomic_load(&worked.shared->pid)), WAIT_MS);
    check_wait(cluster_children(path) == 0, WAIT_MS);
    shell.keyboard = -1;
    shell_end(&shell);
}

/* Goal: without a terminal nothing is different. */
TOOL_TEST(no_terminal_is_needed)
{
    struct tool tool = tool_start((const char *const[]){"/usr/bin/setsid", "--wait", ZKLOCK, "run",
                                                        "/no-terminal", "-c", "exit 6", NULL});
    check_num(tool_status(&tool), ==, 6);
}

/* What waitpid says of a script that is a job in a session without a terminal, as in a build or a batch
 * system. The kernel does stop the processes of such a job. */
static int script_without_terminal(const char *line)
{
    int status = 0;
    pid_t session = fork();

    check_num(session, >=, 0);
    if (session == 0) {
        setsid();
        tool_default_signals();
        pid_t job = fork();
        if (job == 0) {
            setpgid(0, 0);
            execl("/bin/sh", "sh", "-c", line, (char *)NULL);
            _exit(98);
        }
        setpgid(job, job);
        waitpid(job, &status, WUNTRACED);
        if (WIFSTOPPED(status))
            kill(-job, SIGKILL);
        _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 99);
    }
    check_wait(waitpid(session, &status, WNOHANG) == session, WAIT_MS);
    return WEXITSTATUS(status);
}

/* Goal: a command that stops itself stops neither zklock nor the script that called it if nobody would
 * continue them. The command itself goes on. */
TOOL_TEST(without_a_terminal_nobody_stops)
{
    static const char *const signals[] = {"TSTP", "TTIN", "TTOU"};
    char line[600];

    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++) {
        snprintf(line, sizeof line, "%s run %s -c 'kill -%s $$; exit 6'; exit $?", ZKLOCK,
                 cluster_path("nobody"), signals[i]);
        check_num(script_without_terminal(line), ==, 6);
    }
}
