/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of this suite share: zklock as a process, with what it printed, and the command that it
 * runs. The server and the raw connection are those of the suite cluster. */
#ifndef ZKTEST_TOOL_H
#define ZKTEST_TOOL_H

#include <sys/types.h>
#include <sys/wait.h>

#include "shared.h"
#include "cluster.h"

/* A test for which ZKLOCK_SERVERS is the server, and no configuration file of this machine counts. */
#define TOOL_TEST(name) TEST_IN(name, tool_prepare, cluster_raw_close)
int tool_prepare(void **state);

/* The programs: in the environment, from meson. */
#define ZKLOCK getenv("ZKL_TEST_TOOL")
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
/* All that it and its command have printed up to now. Static memory, good for one more call. */
const char *tool_text(const struct tool *tool);
bool tool_says(const struct tool *tool, const char *words);
/* Wait until it ends: what waitpid says. */
int tool_wait(struct tool *tool);
/* The exit status; the test fails if it was killed by a signal. */
int tool_status(struct tool *tool);
/* The signal that killed it; the test fails if it exited, or left a core file. */
int tool_signal(struct tool *tool);

/* Its guard, or 0 if there is none. */
pid_t tool_guard(const struct tool *tool);

/* How a command ended: with this exit status, and what it says at least. */
#define tool_check_end(tool, ended, status, words)                                                 \
    do {                                                                                           \
        if ((ended) != (status) || !tool_says(tool, words))                                        \
            fail_msg("status %d, not %d, or without \"%s\": %s", ended, status, words,             \
                     tool_text(tool));                                                             \
    } while (0)

/* tool_check(64, "words", "run", ...) */
#define tool_check(status, words, ...)                                                             \
    do {                                                                                           \
        struct tool tool_ = tool_run(__VA_ARGS__);                                                 \
        int status_ = tool_status(&tool_);                                                         \
        tool_check_end(&tool_, status_, status, words);                                            \
    } while (0)

/* --- the command ------------------------------------------------------------------------------- */

struct worked {
    struct shared *shared;
    char name[200]; /* of its file */
};

/* A shared of its own, in the server's folder; the server's end removes both. */
struct worked worked_new(void);
void worked_free(struct worked *worked);
/* Wait until this many commands have begun in all. */
void worked_wait(const struct worked *worked, int begun);
/* True if the process does not exist, or waits to be waited for. */
bool is_gone(pid_t pid);

/* The session timeout of every zklock to come, in seconds. */
void set_session(const char *seconds);

/* A file in the server's folder, which is that of the user's configuration too. Static memory, good for three
 * more calls. */
const char *file_named(const char *name);
void write_file(const char *name, const char *text);

#endif
