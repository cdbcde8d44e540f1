/* SPDX-License-Identifier: Apache-2.0 */
/* Signals of the programs: the one place that installs handlers, blocks and reads them. */
#ifndef ZKLOCK_TOOL_SIGNALS_H
#define ZKLOCK_TOOL_SIGNALS_H

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

struct zkl_cancel;

/* --- of each program ------------------------------------------------------ */

/* Call it first in main: signals that end a program end this one, also as process 1 of a container,
 * where the kernel drops each signal that no handler waits for. */
void signals_end_us(void);

/* --- of the calling thread ----------------------------------------------- */

/* Threads and processes started in between take none. */
void signals_block_all(sigset_t *before);
void signals_block(int number, sigset_t *before);
void signals_restore(const sigset_t *before);

/* --- of a process that lives until a signal ends it ---------------------- */

/* Block what ends it, from now on. */
void signals_block_ends(void);
/* True if one of those has come, or comes within that time. */
bool signals_end_within(int ms);

/* --- of a parent --------------------------------------------------------- */

/* A parent of ours that ignored SIGCHLD would keep the ends of children from us. */
void signals_hear_children(void);
/* All are blocked, and the end of a child makes the descriptor readable. -1: none is left. */
int signals_open_children(void);
/* The descriptor is not readable any more. */
void signals_drain(int fd);

/* --- of zklock run ------------------------------------------------------- */

/* All that a process can be sent is passed on, except what reports a fault of its own, a failed
 * write, a child, or the use of the terminal. Signals that were ignored when zklock was called, by nohup or in the background, stay ignored and
 * are not passed on. */
struct signals {
    int passed_on; /* a descriptor: of all that the command gets */
    int ending;    /* of those among them that end zklock before the command begins */
};

struct sent {
    int number;
    pid_t sender;
    bool by_kernel; /* by the terminal, or a timer */
};

/* A closed or full standard error is no reason to end the command. */
void signals_survive_failed_writes(void);

/* A signal that would end us sets the cancel object instead. */
void signals_catch(struct zkl_cancel *cancel);
/* All that is passed on is blocked: also what would end us before the command begins, or the rest. */
void signals_hold_back(bool also_ending);
/* Descriptors for those. False: none is left. */
bool signals_open(struct signals *signals);

/* The signal that must end us, or 0. */
int signals_caught(void);
/* The same, also of what came since signals_hold_back and was not read yet. */
int signals_catch_now(const struct signals *signals);
/* Signals that came before the command began: they are caught, or dropped, except a request to
 * stop. True: the command must be stopped immediately. */
bool signals_take_early(const struct signals *signals);
/* The next one of a descriptor. False: there is none. */
bool signals_read(int fd, struct sent *sent);
/* Does it matter to the command how often it gets this one? */
bool signals_count(int number);
/* All are blocked; a descriptor for those that signals_count is true of, or -1. */
int signals_open_counted(void);

/* Stop our whole group, as ^Z does: the shell that waits for it may wait for another process of it.
 * Returns when the group continues. Without a shell that could continue it, the kernel does not
 * stop it. */
void signals_stop_group(void);

/* End as the command ended: a caller that waits for us must see the same. Without a second core
 * file. */
void signals_die_by(int number) __attribute__((noreturn));

#endif
