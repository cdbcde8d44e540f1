/* SPDX-License-Identifier: Apache-2.0
 * Holders and waiters: the children of a lock, judged as contenders judge them. */
#ifndef ZKL_CORE_LISTING_H
#define ZKL_CORE_LISTING_H

#include "name.h"

#include <zklock/inspect.h>

/* Where a child was found. A semaphore's contenders are below the two, a queue's below the path
 * itself. */
enum zkl_listed_in { ZKL_IN_LOCK_PATH, ZKL_IN_LEASES, ZKL_IN_LOCKS };

struct zkl_listed {
    /* Given; text is borrowed. */

    const char *name;
    enum zkl_listed_in in;
    int64_t session; /* its owner's */
    size_t given;    /* the caller's, to know it again */

    /* What was found. */

    struct zkl_naming naming;
    struct zkl_node_name place;
    enum zkl_entry_role role;
    enum zkl_entry_access access;
    size_t waits_for; /* index in the list as it is now, or ZKL_NO_ENTRY */
    size_t order;     /* place in the queue, before holders were put first */
};

/* Judge them all, and put holders first, then waiters in their order, then the others. permits: of
 * a semaphore; 0: not known. */
enum zkl_lock_kind zkl_listing_judge(struct zkl_listed *list, size_t count, int permits);

#endif
