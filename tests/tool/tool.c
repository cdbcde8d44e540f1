/* SPDX-License-Identifier: Apache-2.0 */
#include "tool.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SESSION "10"

/* --- the program ------------------------------------------------------------------------------- */

void set_session(const char *seconds)
{
    check_ok(setenv("ZKLOCK_SESSION_TIMEOUT", seconds, 1));
}

/* The folders of the programs come first. */
static void set_path(void)
{
    static char path[8000];
    const char *tool = ZKLOCK, *dev = DEV, *work = WORK;

    if (!path[0])
        snprintf(path, sizeof path, "%.*s:%.*s:%.*s:%s", (int)(strrchr(tool, '/') - tool), tool,
                 (int)(strrchr(dev, '/') - dev), dev, (int)(strrchr(work, '/') - work), work,
                 getenv("PATH"));
    setenv("PATH", path, 1);
}

/* Of this machine. */
static void unset_settings(void)
{
    char name[64];

    for (char **all = environ; *all;) {
        bool is_one = sscanf(*all, "%63[A-Z_]=", name) == 1 && strncmp(name, "ZKLOCK_", 7) == 0;
        if (is_one)
            unsetenv(name);
        all = is_one ? environ : all + 1;
    }
}

int tool_prepare(void **state)
{
    if (cluster_raw_open(state) != 0)
        return -1;
    unset_settings();
    set_path();
    setenv("XDG_CONFIG_HOME", zks_dir(server), 1);
    setenv("SHELL", "/bin/sh", 1);
    set_session(SESSION);
    return setenv("ZKLOCK_SERVERS", zks_connect_string(server), 1);
}

int tool_end(void **state)
{
    int rc = world_end(state);

    return cluster_raw_close(state) == 0 ? rc : -1;
}

/* --- zklock ------------------------------------------------------------------------------------ */

void tool_default_signals(void)
{
    static const int all[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGTSTP, SIGPIPE};

    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        signal(all[i], SIG_DFL);
}

struct tool tool_start_to(const char *const argv[], int error)
{
    struct tool tool = {.output = memfd_create("output", MFD_CLOEXEC)};

    check_num(tool.output, >=, 0);
    tool.pid = fork();
    check_num(tool.pid, >=, 0);
    if (tool.pid == 0) {
        tool_default_signals();
        dup2(tool.output, STDOUT_FILENO);
        dup2(error >= 0 ? error : tool.output, STDERR_FILENO);
        execv(argv[0], (char *const *)argv);
        _exit(98);
    }
    return tool;
}

struct tool tool_start(const char *const argv[])
{
    return tool_start_to(argv, -1);
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

    if (!wait_until(waitpid(tool->pid, &status, WNOHANG) == tool->pid, 3 * WAIT_MS))
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

void tool_kill(struct tool *tool, int number)
{
    check_ok(kill(tool->pid, number));
    check_num(tool_signal(tool), ==, number);
}

static bool is_guard(pid_t pid)
{
    char text[32] = "";
    FILE *file = fopen(written("/proc/%d/comm", (int)pid), "re");

    bool read = file && fgets(text, sizeof text, file);
    if (file)
        fclose(file);
    return read && strcmp(text, "zklock-guard\n") == 0;
}

pid_t tool_guard(const struct tool *tool)
{
    pid_t children[16];
    size_t n = process_children(tool->pid, children, 16);

    while (n > 0 && !is_guard(children[n - 1]))
        n--;
    return n > 0 ? children[n - 1] : 0;
}

struct tool tool_line(const char *format, ...)
{
    char line[2000], text[2100];
    va_list args;

    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    snprintf(text, sizeof text, "exec zklock %s", line);
    return tool_start((const char *const[]){"/bin/sh", "-c", text, NULL});
}

const char *written(const char *format, ...)
{
    static char texts[8][2000];
    static unsigned last;
    char *text = texts[++last % 8];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof texts[0], format, args);
    va_end(args);
    return text;
}

/* --- the command ------------------------------------------------------------------------------- */

static int free_shared(void *it)
{
    struct shared *shared = it;
    int overlaps = atomic_load(&shared->overlaps);

    munmap(shared, sizeof *shared);
    return overlaps;
}

struct worked worked_new(void)
{
    static unsigned last;
    struct worked worked;

    snprintf(worked.name, sizeof worked.name, "%s/shared-%u", zks_dir(server), ++last);
    worked.shared = shared_map(worked.name);
    check_true(worked.shared != NULL);
    world_keep(worked.shared, WORLD_MEMORY, free_shared);
    return worked;
}

void worked_wait(const struct worked *worked, int begun)
{
    check_wait(atomic_load(&worked->shared->begun) >= begun, WAIT_MS);
}
