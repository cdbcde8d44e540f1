/* SPDX-License-Identifier: Apache-2.0 */
/* zklock's side of a command that runs under a guard (guard.h): it starts the command, passes
 * signals and the terminal on to it, and ends it.
 *
 * Processes:  zklock --+-- guard (session of its own) --- command --- ...
 *                      +-- anchor, in the command's group (anchor.h) */
#ifndef ZKLOCK_TOOL_JOB_H
#define ZKLOCK_TOOL_JOB_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "anchor.h"
#include "guard.h"
#include "passing.h"
#include "signals.h"
#include "terminal.h"

struct job {
    int socket; /* to the guard */
    int go;     /* to the command that waits */
    pid_t guard, group;
    struct anchor anchor;
    struct passing passing;
    int64_t asked_ns;  /* when the anchor was asked, or 0: no answer is awaited */
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

/* To the command's group. */
void job_signal(struct job *job, int signal);
/* A signal that is passed on was sent to zklock: the group gets it, but not a second time if the
 * killer sent it to all. Call job_pass behind it. */
void job_sent(struct job *job, const struct sent *sent);
/* Pass on what is due; zklock's signals were read from began_ns on. */
void job_pass(struct job *job, int64_t began_ns);
/* job_pass must be called within that time, or the given one if that is shorter. */
int job_pass_ms(const struct job *job, int timeout_ms);
/* The command was stopped: give it the terminal if it needs that, or stop zklock as well; without a
 * terminal continue the command. */
void job_stopped(struct job *job, int signal);
/* The guard died before its time: do its work. Returns what waitpid said of the command. */
void job_kill(struct job *job);

/* After the command's end, or instead of its start. With restore the terminal gets its modes
 * back. */
void job_end(struct job *job, bool restore);

#endif
