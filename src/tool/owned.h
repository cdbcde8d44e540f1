/* SPDX-License-Identifier: Apache-2.0 */
/* Which sessions own nearly as much as servers can read of their end: docs/tuning.md, "What one
 * client may own and watch". */
#ifndef ZKLOCK_TOOL_OWNED_H
#define ZKLOCK_TOOL_OWNED_H

#include <stddef.h>
#include <stdint.h>

#include "look.h"

/* Bytes of paths, 4 more for each: all that fits where jute.maxbuffer is as usual, and when to
 * warn. */
enum { OWNED_MAX = 2 * 0xfffff - 48, OWNED_NEAR = OWNED_MAX / 4 * 3 };

typedef void owned_fn(void *arg, int64_t session, size_t nodes, size_t bytes);

/* Tell of each session whose nodes, of those seen, come to OWNED_NEAR or more; chroot: the bytes of
 * what stands before each path. 0, or -1: no memory. */
int owned_find(const struct look *look, size_t chroot, owned_fn *fn, void *arg);

#endif
