/* SPDX-License-Identifier: Apache-2.0
 *
 * The command before it runs: a process that waits, in a process group of its own, until zklock has
 * the lock, and then becomes the command. launch.h says why it starts so early. A process with one
 * thread; the guard starts it. */
#include "launch.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "connect.h"
#include "say.h"

/* False: zklock has ended, or has not got the lock. */
static bool take_environment(int go)
{
    FILE *file = fdopen(go, "r");
    for (int i = 0; file && i < LAUNCH_VARIABLES; i++) {
        char *text = NULL; /* becomes part of the environment */
        size_t size = 0;
        ssize_t n = getdelim(&text, &size, '\0', file);
        if (n <= 0 || text[n - 1] != '\0' || putenv(text) != 0)
            return false;
    }
    return file != NULL;
}

/* A file of that name in a folder of PATH. */
static bool is_in(const char *folder, size_t length, const char *name)
{
    char *file = NULL;
    struct stat st;
    if (asprintf(&file, "%.*s%s%s", (int)length, folder, length ? "/" : "", name) < 0)
        return false;
    bool found = stat(file, &st) == 0 && !S_ISDIR(st.st_mode);
    free(file);
    return found;
}

/* execvp's errno may be that of any folder of PATH, such as one that can't be searched. */
static bool is_in_path(const char *name)
{
    const char *variable = getenv("PATH");
    const char *path = variable ? variable : "/bin:/usr/bin";
    size_t length = strcspn(path, ":");
    while (!is_in(path, length, name)) {
        if (path[length] == '\0')
            return false;
        path += length + 1;
        length = strcspn(path, ":");
    }
    return true;
}

static bool is_missing(const char *name, int error)
{
    if (error == ENOENT)
        return true;
    return strchr(name, '/') ? error == ENOTDIR : !is_in_path(name);
}

void launch(int go, char **argv)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* who would end it in time? */
    if (!take_environment(go))
        _exit(EXIT_SYSTEM);
    unsetenv(AUTH_VARIABLE);
    execvp(argv[0], argv);
    int error = errno;
    bool missing = is_missing(argv[0], error);
    say("%s cannot be run: %s", argv[0], strerror(missing ? ENOENT : error));
    _exit(missing ? EXIT_NOT_FOUND : EXIT_NOT_RUN);
}
