/* SPDX-License-Identifier: Apache-2.0 */
/* The command before it runs: a process that waits, in a process group of its own, until zklock has
 * the lock. It starts so early because it must be a child of the guard and belong to the session of
 * zklock's caller, which the guard leaves. */
#ifndef ZKLOCK_TOOL_LAUNCH_H
#define ZKLOCK_TOOL_LAUNCH_H

/* The number of texts NAME=VALUE, each with its final NUL, that zklock writes to go. If fewer
 * arrive, the command must not run. */
enum { LAUNCH_VARIABLES = 3 };

void launch(int go, char **argv) __attribute__((noreturn));

#endif
