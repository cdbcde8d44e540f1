/* SPDX-License-Identifier: Apache-2.0 */
#include "launch.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "connect.h"
#include "say.h"

/* False: zklock is gone, or has not got the lock. */
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

void launch(int go, char **argv)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* who would end it in time? */
    if (!take_environment(go))
        _exit(EXIT_SYSTEM);
    unsetenv(AUTH_VARIABLE);
    execvp(argv[0], argv);
    int status = errno == ENOENT ? EXIT_NOT_FOUND : EXIT_NOT_RUN;
    say("%s can't be run: %s", argv[0], strerror(errno));
    _exit(status);
}
