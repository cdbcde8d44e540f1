/* SPDX-License-Identifier: Apache-2.0 */
/* For the tests of the subcommands that look at locks: contenders that are nothing but nodes, and zklock on
 * a terminal of its own. */
#ifndef ZKTEST_PEEK_H
#define ZKTEST_PEEK_H

#include "tool.h"

/* A contender in the queue of root, which is made if it is not there: "lock-" or another marker behind
 * Curator's prefix. Ephemeral, of the session of raw. Static memory, good for some more calls. */
const char *contender(const char *root, const char *marker, const char *owner);
/* "host pid thread" of a thread that does not exist, of this process. Likewise static. */
const char *owner_text(int thread);

/* zklock on a terminal of a given number of columns. */
struct typist {
    pid_t pid;
    int keyboard;
    char screen[65536]; /* all that zklock wrote */
    size_t length;
};

#define typist_run(columns, ...)                                                                   \
    typist_start(columns, (const char *const[]){ZKLOCK, __VA_ARGS__, NULL})
struct typist *typist_start(int columns, const char *const argv[]);
/* Wait until zklock has written these words, before the call or after it. */
void typist_wait(struct typist *typist, const char *words);
void typist_type(struct typist *typist, const char *keys);
/* What waitpid says. Frees. */
int typist_end(struct typist *typist);

#endif
