/* SPDX-License-Identifier: Apache-2.0
 * The make of a server, by the ids of its sessions: one piece for the library and for the command,
 * which do not share their internals. */
#ifndef ZKL_MAKE_MAKE_H
#define ZKL_MAKE_MAKE_H

#include <stdbool.h>
#include <stdint.h>

/* What is said of it. */
#define ZKL_MAKE_OTHER                                                                             \
    "the server is no ZooKeeper (by its session id): how long it keeps a session is not provable"

/* ZooKeeper makes the id of a session of the server's own number and the milliseconds that the
 * machine runs, from the 16th bit on (B98); other makes count from 1. So an id that would be from a
 * machine's first four seconds is not ZooKeeper's. */
static inline bool zkl_make_is_other(int64_t session)
{
    return session > 0 && session < INT64_C(1) << 28;
}

#endif
