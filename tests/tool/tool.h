/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of this suite share: zklock as a process, with what it printed, and the command that it
 * runs. The server and the raw connection are those of the suite cluster. */
#ifndef ZKTEST_TOOL_H
#define ZKTEST_TOOL_H

#include <sys/types.h>
#include <sys/wait.h>

#include "shared.h"
#include "cluster.h"
#include "process.h"
#include "world.h"

/* A test for which ZKLOCK_SERVERS is the server, and no configuration file of this machine counts. */
#define TOOL_TEST(name) WORLD_TEST_IN(name, tool_prepare, tool_end)
int tool_prepare(void **state);
int tool_end(void **state);

/* The programs: in the environment, from meson. */
#define ZKLOCK getenv("ZKL_TEST_TOOL")
#define DEV getenv("ZKL_TEST_DEV")
#define WORK getenv("ZKL_TEST_WORK")

/* --- zklock ------------------------------------------------------------------------------------ */

struct tool {
    pid_t pid;
    int output; /* a file */
};

/* For a child: what the caller of the tests ignores, as a shell does for its background, is not ignored. */
void tool_default_signals(void);

/* tool_run("run", "/path", "--", "true"): begun, standard output and error kept. */
#define tool_run(...) tool_start((const char *const[]){ZKLOCK, __VA_ARGS__, NULL})
struct tool tool_start(const char *const argv[]);
/* The same with this standard error; -1: kept as well. */
#define tool_run_to(error, ...)                                                                    \
    tool_start_to((const char *const[]){ZKLOCK, __VA_ARGS__, NULL}, error)
struct tool tool_start_to(const char *const argv[], int error);
/* All that it and its command have printed up to now. Static memory, good for one more call. */
const char *tool_text(const struct tool *tool);
bool tool_says(const struct tool *tool, const char *words);
/* Wait until it ends: what waitpid says. */
int tool_wait(struct tool *tool);
/* The exit status; the test fails if it was killed by a signal. */
int tool_status(struct tool *tool);
/* The signal that killed it; the test fails if it exited, or left a core file. */
int tool_signal(struct tool *tool);

/* End it by this signal, which must kill it. */
void tool_kill(struct tool *tool, int number);

/* Its guard, or 0 if there is none. */
pid_t tool_guard(const struct tool *tool);

/* The line, as printf, is zklock's arguments as sh reads them; zklock, zklock-dev and work are in PATH. */
struct tool tool_line(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* As printf. Static memory, good for seven more calls. */
const char *written(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* --- the command ------------------------------------------------------------------------------- */

struct worked {
    struct shared *shared;
    char name[200]; /* of its file */
};

/* A shared of its own, in the server's folder; the server's end removes both. In the end of a test no two commands may
 * have overlapped in it. */
struct worked worked_new(void);
/* Wait until this many commands have begun in all. */
void worked_wait(const struct worked *worked, int begun);

/* The session timeout of every zklock to come, in seconds. */
void set_session(const char *seconds);

#endif
