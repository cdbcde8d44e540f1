/* SPDX-License-Identifier: Apache-2.0 */
#include "tool.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SESSION "10"

/* --- the program ------------------------------------------------------------------------------- */

static const char *const variables[] = {
    "ZKLOCK_ACL",           "ZKLOCK_AUTH",         "ZKLOCK_AUTH_FILE",     "ZKLOCK_TLS_CA_FILE",
    "ZKLOCK_TLS_CERT_FILE", "ZKLOCK_TLS_KEY_FILE", "ZKLOCK_SASL_MECHANISM"};

void set_session(const char *seconds)
{
    check_ok(setenv("ZKLOCK_SESSION_TIMEOUT", seconds, 1));
}

int tool_prepare(void **state)
{
    if (cluster_raw_open(state) != 0)
        return -1;
    for (size_t i = 0; i < sizeof variables / sizeof variables[0]; i++)
        unsetenv(variables[i]);
    setenv("XDG_CONFIG_HOME", zks_dir(server), 1);
    setenv("SHELL", "/bin/sh", 1);
    set_session(SESSION);
    return setenv("ZKLOCK_SERVERS", zks_connect_string(server), 1);
}

void write_file(const char *name, const char *text)
{
    FILE *file = fopen(name, "we");

    check_true(file != NULL);
    check_true(fputs(text, file) >= 0);
    check_ok(fclose(file));
}

const char *file_named(const char *name)
{
    static char paths[4][300];
    static unsigned last;
    char *path = paths[++last % 4];

    snprintf(path, sizeof paths[0], "%s/%s", zks_dir(server), name);
    return path;
}

/* --- zklock ------------------------------------------------------------------------------------ */

void tool_default_signals(void)
{
    static const int all[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGTSTP, SIGPIPE};

    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        signal(all[i], SIG_DFL);
}

struct tool tool_start(const char *const argv[])
{
    struct tool tool = {.output = memfd_create("output", MFD_CLOEXEC)};

    check_num(tool.output, >=, 0);
    tool.pid = fork();
    check_num(tool.pid, >=, 0);
    if (tool.pid == 0) {
        tool_default_signals();
        dup2(tool.output, STDOUT_FILENO);
        dup2(tool.output, STDERR_FILENO);
        execv(argv[0], (char *const *)argv);
        _exit(98);
    }
    return tool;
}

const char *tool_text(const struct tool *tool)
{
    static char texts[2][16384];
    static unsigned last;
    char *text = texts[++last % 2];
    ssize_t n = pread(tool->output, text, sizeof texts[0] - 1, 0);

    text[n > 0 ? n : 0] = '\0';
    return text;
}

bool tool_says(const struct tool *tool, const char *words)
{
    return strstr(tool_text(tool), words) != NULL;
}

int tool_wait(struct tool *tool)
{
    int status = 0;

    if (!wait_until(waitpid(tool->pid, &status, WNOHANG) == tool->pid, WAIT_MS))
        fail_msg("zklock does not end: %s", tool_text(tool));
    return status;
}

int tool_status(struct tool *tool)
{
    int status = tool_wait(tool);

    if (!WIFEXITED(status))
        fail_msg("killed by signal %d: %s", WTERMSIG(status), tool_text(tool));
    return WEXITSTATUS(status);
}

int tool_signal(struct tool *tool)
{
    int status = tool_wait(tool);

    if (!WIFSIGNALED(status) || WCOREDUMP(status))
        fail_msg("status %x: %s", status, tool_text(tool));
    return WTERMSIG(status);
}

static bool is_guard(pid_t pid)
{
    char name[64], text[32] = "";

    snprintf(name, sizeof name, "/proc/%d/comm", (int)pid);
    FILE *file = fopen(name, "re");
    bool read = file && fgets(text, sizeof text, file);
    if (file)
        fclose(file);
    return read && strcmp(text, "zklock-guard\n") == 0;
}

pid_t tool_guard(const struct tool *tool)
{
    char name[64];
    int pid, guard = 0;

    snprintf(name, sizeof name, "/proc/%d/task/%d/children", (int)tool->pid, (int)tool->pid);
    FILE *file = fopen(name, "re");
    while (file && guard == 0 && fscanf(file, "%d", &pid) == 1)
        guard = is_guard(pid) ? pid : 0;
    if (file)
        fclose(file);
    return guard;
}

/* --- the command ------------------------------------------------------------------------------- */

struct worked worked_new(void)
{
    static unsigned last;
    struct worked worked;

    snprintf(worked.name, sizeof worked.name, "%s/shared-%u", zks_dir(server), ++last);
    worked.shared = shared_map(worked.name);
    check_true(worked.shared != NULL);
    return worked;
}

void worked_free(struct worked *worked)
{
    check_num(atomic_load(&worked->shared->overlaps), ==, 0);
    munmap(worked->shared, sizeof *worked->shared);
}

void worked_wait(const struct worked *worked, int begun)
{
    check_wait(atomic_load(&worked->shared->begun) >= begun, WAIT_MS);
}

bool is_gone(pid_t pid)
{
    char name[64], state = 'X';

    snprintf(name, sizeof name, "/proc/%d/stat", (int)pid);
    FILE *file = fopen(name, "re");
    if (!file)
        return true;
    int n = fscanf(file, "%*d (%*[^)]) %c", &state);
    fclose(file);
    return n != 1 || state == 'Z' || state == 'X';
}
