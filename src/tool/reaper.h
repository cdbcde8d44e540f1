/* SPDX-License-Identifier: Apache-2.0 */
/* A thread that waits for each child of this process that ends, so that none stays a zombie: as
 * process 1 of a container zklock gets the orphans of all others, too. */
#ifndef ZKLOCK_TOOL_REAPER_H
#define ZKLOCK_TOOL_REAPER_H

#include <stdbool.h>
#include <sys/types.h>

/* Make no fork from now on. */
void reaper_start(pid_t child);
/* From now on the caller waits for children. True: for that one, too, so its number is its own. */
bool reaper_stop(void);

#endif
