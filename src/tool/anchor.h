/* SPDX-License-Identifier: Apache-2.0 */
/* A child of zklock in the command's process group. Without it that group would have no parent in
 * its session, and the kernel lets no terminal stop such a group. It also tells which signals it
 * was sent: who signals all processes of a unit, a session or a tree signals it with the command,
 * and who signals zklock alone does not. */
#ifndef ZKLOCK_TOOL_ANCHOR_H
#define ZKLOCK_TOOL_ANCHOR_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* One that takes longer to say something was stopped or killed. */
enum { ANCHOR_ANSWER_MS = 1000 };

struct anchor {
    pid_t pid;
    int socket; /* -1: it has ended, or was never there */
};

struct heard {
    int number; /* 0: it begins, or all that it was sent before the question has been heard */
    int64_t time_ns;
};

/* argv: of the command. False: errno says why. */
bool anchor_start(struct anchor *anchor, pid_t group, char **argv);
/* False if it cannot be asked. */
bool anchor_ask(const struct anchor *anchor);
/* False: nothing to hear now. */
bool anchor_hear(struct anchor *anchor, struct heard *heard);

#endif
