/* SPDX-License-Identifier: Apache-2.0 */
/* The subcommands. Each has a file of its own, and its line in the table of main.c. */
#ifndef ZKLOCK_TOOL_COMMAND_H
#define ZKLOCK_TOOL_COMMAND_H

struct command {
    const char *name;
    const char *summary; /* its line in zklock --help */
    const char *usage;   /* all that zklock NAME --help says, with its final newline */
    /* argv[0] is the subcommand's name. --help as first argument was answered already. Returns the
     * exit status. */
    int (*run)(int argc, char **argv);
};

#endif
