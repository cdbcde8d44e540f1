/* SPDX-License-Identifier: Apache-2.0
 *
 * The terminal that zklock was called from, and the process group that has it: the group that may
 * read from it and that ^C and ^Z address. This file owns only the state that it must restore at
 * the end. One thread; job.c calls it around the command's run. */
#include "terminal.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "signals.h"

void terminal_open(struct terminal *terminal)
{
    *terminal = (struct terminal){.fd = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY)};
}

/* SIGTTOU is blocked meanwhile: from the background it would stop us. */
static bool set_group(const struct terminal *terminal, pid_t group)
{
    sigset_t before;
    signals_block(SIGTTOU, &before);
    int rc = tcsetpgrp(terminal->fd, group);
    signals_restore(&before);
    return rc == 0;
}

bool terminal_is_of(const struct terminal *terminal, pid_t group)
{
    return terminal->fd >= 0 && tcgetpgrp(terminal->fd) == group;
}

bool terminal_give(struct terminal *terminal, pid_t group)
{
    if (!terminal_is_of(terminal, getpgrp()))
        return false;
    tcgetattr(terminal->fd, &terminal->modes);
    terminal->given = set_group(terminal, group);
    return terminal->given;
}

/* In a pipeline other processes of our group may read from the terminal: "zklock run ... |
 * less". */
void terminal_give_at_start(struct terminal *terminal, pid_t group)
{
    struct stat output;
    bool piped = fstat(STDOUT_FILENO, &output) == 0 &&
                 (S_ISFIFO(output.st_mode) || S_ISSOCK(output.st_mode));
    if (isatty(STDIN_FILENO) && !piped)
        terminal_give(terminal, group);
}

void terminal_take_back(struct terminal *terminal, pid_t group)
{
    if (terminal->given && terminal_is_of(terminal, group))
        set_group(terminal, getpgrp());
}

void terminal_restore(struct terminal *terminal)
{
    if (terminal->given && terminal_is_of(terminal, getpgrp()))
        tcsetattr(terminal->fd, TCSADRAIN, &terminal->modes);
}
