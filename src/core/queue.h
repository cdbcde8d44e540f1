/* SPDX-License-Identifier: Apache-2.0
 * The order of a queue and the predicate "granted, or whom to watch", over one list of children. */
#ifndef ZKL_CORE_QUEUE_H
#define ZKL_CORE_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "name.h"

/* What one list of the children shows a contender. Pointers are into the list. */
struct zkl_look {
    size_t contenders; /* children that are contenders, ours included */
    /* Of those, how many before us we have to wait for: a reader lets other readers be; and a writer
     * and a reader of one number, whose node was made under the writer's, let each other be. */
    size_t before;
    size_t against; /* contenders, wherever they are, that we can't be beside */
    /* How many of those that hold beside each other may have no holder: among those before us that
     * we wait for, and those that we are beside. */
    size_t retained_before, retained_beside;
    const char *predecessor; /* the nearest of them, or NULL */
    bool present;            /* our own node is in the list */
    bool plain;              /* the predecessor is surely a mutex's node, and ours is one */
};

/* Before in the queue: the smaller number, as a signed number (text order runs backwards below zero
 * and across widths); the name settles equal numbers, which only an exhausted counter gives. */
int zkl_queue_compare(int32_t sequence_a, const char *name_a, int32_t sequence_b,
                      const char *name_b);

/* Has the contender own, that asks for role, to wait for the other one? For two of one queue. */
bool zkl_queue_waits_for(enum zkl_role role, int32_t sequence, const char *own,
                         const struct zkl_node_name *place, const char *other);

/* Look at count children from the place of own (a child's name, NULL: from the end of the
 * queue). */
struct zkl_look zkl_queue_position(const struct zkl_naming *naming, const char *const *children,
                                   size_t count, const char *own);

/* The child whose name begins so, or NULL. */
const char *zkl_queue_find(const char *const *children, size_t count, const char *prefix);

#endif
