/* SPDX-License-Identifier: Apache-2.0 */
/* zklock's side of a command that runs under a guard (guard.h): it starts the command, passes
 * signals and the terminal on to it, and ends it.
 *
 * Processes:  zklock --+-- guard (session of its own) --- command --- ...
 *                      +-- anchor, in the command's group
 * The anchor does nothing. Without it the command's group would have no parent in its session, and
 * the kernel lets no terminal stop such a group. */
#ifndef ZKLOCK_TOOL_JOB_H
#define ZKLOCK_TOOL_JOB_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "guard.h"
#include "terminal.h"

struct job {
    int socket; /* to the guard */
    int go;     /* to the command that waits */
    pid_t guard, anchor, group;
    bool told_to_stop; /* by a SIGTSTP to zklock, and not to go on since */
    struct terminal terminal;
};

/* Make all forks before this process has threads. 0, or the exit status after a sentence. */
int job_start(struct job *job, char **argv);
/* Let the command run, with LAUNCH_VARIABLES more texts in its environment. If it cannot, because
 * it or the guard was killed, job_receive reports that. */
void job_go(struct job *job, char *const variables[]);

/* False if it could not be said now. */
bool job_order(struct job *job, const struct order *order);
/* A report of the guard, if there is one. -1: the guard has ended. 0: nothing. 1: *report is
 * set. */
int job_receive(struct job *job, struct report *report);

/* A signal that is passed on was sent to zklock. */
void job_signal(struct job *job, int signal);
/* The command was stopped: give it the terminal if it needs that, or stop zklock as well; without a
 * terminal continue the command. */
void job_stopped(struct job *job, int signal);
/* The guard died before its time: do its work. Returns what waitpid said of the command. */
void job_kill(struct job *job);

/* After the command's end, or instead of its start. With restore the terminal gets its modes
 * back. */
void job_end(struct job *job, bool restore);

#endif
