/* SPDX-License-Identifier: Apache-2.0
 * The place of a waiting contender in its queue, by what is known already. */
#ifndef ZKL_CORE_PLACE_H
#define ZKL_CORE_PLACE_H

#include "core.h"

/* Text is the core's, for as long as the caller keeps the core from going on. */
struct zkl_queue_place {
    /* the largest number of contenders that it waits for, by its last list or its number; the true
     * number can only be smaller. 0: it waits for none, or does not know yet */
    size_t before;
    const char *predecessor; /* the nearest of them, whose node it watches: its name, or NULL */
    const char *owner;       /* and its owner text, or NULL: there is none, or it is not known */
};

struct zkl_queue_place zkl_queue_place_of(const struct zkl_contender *contender);

#endif
