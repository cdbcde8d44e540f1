/* SPDX-License-Identifier: Apache-2.0 */
/* The terminal that zklock was called from, and which process group has it: the one that may read
 * from it and that ^C and ^Z mean. */
#ifndef ZKLOCK_TOOL_TERMINAL_H
#define ZKLOCK_TOOL_TERMINAL_H

#include <stdbool.h>
#include <sys/types.h>
#include <termios.h>

struct terminal {
    int fd; /* -1: there is none */
    bool given;
    struct termios modes; /* before it was given */
};

void terminal_open(struct terminal *terminal);
/* At the start: to a command that is not one of several in a pipeline. */
void terminal_give_at_start(struct terminal *terminal, pid_t group);
/* False if it is not ours to give. */
bool terminal_give(struct terminal *terminal, pid_t group);
bool terminal_is_of(const struct terminal *terminal, pid_t group);
/* If the group has it. */
void terminal_take_back(struct terminal *terminal, pid_t group);
/* Restore the state that the command found; for a command that could not clean up. */
void terminal_restore(struct terminal *terminal);

#endif
