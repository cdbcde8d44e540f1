/* SPDX-License-Identifier: Apache-2.0
 * Memory that can be copied and put back as it was: all that the explored world allocates, by whatever code,
 * comes from here while arena_on is set (the program is linked with malloc and its like wrapped). */
#ifndef ZKL_EXPLORE_ARENA_H
#define ZKL_EXPLORE_ARENA_H

#include <stdbool.h>
#include <stddef.h>

extern bool arena_on;

/* Empty, at the same address each time. */
void arena_reset(void);
size_t arena_used(void);
#define ARENA_MAX ((size_t)1 << 20)
/* to has room for ARENA_MAX. */
void arena_save(void *to);
void arena_load(const void *from);

#endif
