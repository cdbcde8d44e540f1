/* SPDX-License-Identifier: Apache-2.0
 *
 * zklock COMMAND ...: finds the subcommand and runs it, prints help and the version, and reports an
 * unknown word. It owns the table of subcommands. The main function; one thread until a subcommand
 * connects. */
#include <stdio.h>
#include <string.h>

#include <zklock/zklock.h>

#include "break.h"
#include "command.h"
#include "descriptors.h"
#include "doctor.h"
#include "forget.h"
#include "revoke.h"
#include "run.h"
#include "say.h"
#include "signals.h"
#include "status.h"

static const struct command *const commands[] = {
    &run_command,   &status_command, &revoke_command,
    &break_command, &forget_command, &doctor_command,
    NULL,
};

static const char usage[] = "usage: zklock COMMAND [OPTION...] [ARGUMENT...]\n"
                            "       zklock COMMAND --help\n"
                            "       zklock --version\n"
                            "\n"
                            "Distributed locks on Apache ZooKeeper.\n"
                            "\n";

static void print_usage(FILE *to)
{
    fputs(usage, to);
    for (size_t i = 0; commands[i]; i++)
        fprintf(to, "  %-8s  %s\n", commands[i]->name, commands[i]->summary);
}

static const struct command *find(const char *name)
{
    for (size_t i = 0; commands[i]; i++) {
        if (strcmp(name, commands[i]->name) == 0)
            return commands[i];
    }
    return NULL;
}

static int run(const struct command *command, int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "--help") == 0) {
        fputs(command->usage, stdout);
        return EXIT_DONE;
    }
    if (!descriptors_suffice())
        return fail(EXIT_SYSTEM,
                    "fewer than %d descriptors are available: raise the limit of open files",
                    DESCRIPTORS_NEEDED);
    return command->run(argc, argv);
}

static int run_word(int argc, char **argv)
{
    if (argc < 2) {
        print_usage(stderr);
        return EXIT_USAGE;
    }
    const char *word = argv[1];
    if (strcmp(word, "--help") == 0) {
        print_usage(stdout);
        return EXIT_DONE;
    }
    if (strcmp(word, "--version") == 0) {
        printf("zklock %s\n", zkl_version(NULL));
        return EXIT_DONE;
    }
    const struct command *command = find(word);
    if (strcmp(word, "dev") == 0)
        return fail(EXIT_USAGE, "zklock dev is a separate program: run zklock-dev");
    if (!command)
        return fail(EXIT_USAGE, "there is no command \"%s\": zklock --help lists them", word);
    return run(command, argc - 1, argv + 1);
}

int main(int argc, char **argv)
{
    signals_end_us();
    descriptors_fill_standard();
    return check_output(run_word(argc, argv));
}
