/* SPDX-License-Identifier: Apache-2.0
 * The order of a queue and the predicate "granted, or whom to watch", over one list of children. */
#ifndef ZKL_CORE_QUEUE_H
#define ZKL_CORE_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What one look at the children tells a contender. Pointers are into the list. */
struct zkl_look {
    size_t contenders;       /* children that are contenders, ours included */
    size_t before;           /* of those, how many stand before us */
    const char *predecessor; /* the nearest of them, or NULL: granted */
    const char *foreign;     /* some child that is no contender, or NULL */
    bool present;            /* our own node is in the list */
};

/* Before in the queue: the smaller number, as a signed number (text order runs backwards below zero
 * and across widths); the name settles equal numbers, which only an exhausted counter gives. */
int zkl_queue_compare(int32_t sequence_a, const char *name_a, int32_t sequence_b,
                      const char *name_b);

/* Look at count children from the place of own (a child's name, NULL: from the end of the queue).
 */
struct zkl_look zkl_queue_look(const char *const *children, size_t count, const char *own);

/* The child that carries the GUID, or NULL. */
const char *zkl_queue_find_guid(const char *const *children, size_t count, const char *guid);

#endif
