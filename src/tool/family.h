/* SPDX-License-Identifier: Apache-2.0 */
/* The descendants of this process: found in /proc whatever group or session they are in now, as
 * long as this process is their subreaper. */
#ifndef ZKLOCK_TOOL_FAMILY_H
#define ZKLOCK_TOOL_FAMILY_H

#include <stdbool.h>
#include <sys/types.h>

/* Signal the group, and each descendant of this process that is not in it. */
void family_signal(pid_t group, int signal);

/* Does /proc show the processes of this one's namespace? Without that this file finds nothing. */
bool family_can_look(void);

/* True if a process of the group lives, one of except's own children left out. */
bool family_in_group(pid_t group, pid_t except);

/* SIGKILL to the group and all descendants, again and again until none is left. *status gets what
 * waitpid says of child, if it ends in here. */
void family_kill(pid_t group, pid_t child, int *status);

/* True if that process is seen not to be stopped. */
bool family_runs(pid_t pid);

/* Can that process have got this signal, which another one of our control group got some time ago?
 * Not if the process belongs to a different one, or if it lives though it would have ended. */
bool family_can_have_got(pid_t pid, int signal);

#endif
