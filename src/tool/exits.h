/* SPDX-License-Identifier: Apache-2.0 */
/* The exit statuses of zklock: those of <sysexits.h>, as flock(1) uses them, and a few more. A
 * command that is run passes its own on. zklock(1) lists them. */
#ifndef ZKLOCK_TOOL_EXITS_H
#define ZKLOCK_TOOL_EXITS_H

enum exits {
    EXIT_DONE = 0,
    EXIT_CONFLICT = 1,    /* busy, or not acquired in time */
    EXIT_USAGE = 64,      /* the command line is wrong */
    EXIT_NO_SERVER = 69,  /* no server answered in time */
    EXIT_INTERNAL = 70,   /* an answer that is not understood */
    EXIT_SYSTEM = 71,     /* no memory, process or descriptor could be had */
    EXIT_DENIED = 77,     /* an ACL forbids it, or the credential was refused */
    EXIT_CONFIG = 78,     /* a setting is missing or wrong */
    EXIT_LOST = 79,       /* the lock was lost, or about to be, while the command ran */
    EXIT_NOT_RUN = 126,   /* the command is there and can't be run */
    EXIT_NOT_FOUND = 127, /* there is no such command */
};

#endif
