/* SPDX-License-Identifier: Apache-2.0
 * Where a contender that waits stands in its queue, by what is known of that already. */
#ifndef ZKL_CORE_PLACE_H
#define ZKL_CORE_PLACE_H

#include "core.h"

/* Text is the core's, for as long as the caller keeps the core from going on. */
struct zkl_place {
    size_t
        before; /* it waits for the end of so many, as its last list or its number said: they can only have become
                      fewer. 0: it waits for nobody, or does not know yet */
    const char *predecessor; /* the nearest of them, whose node it watches: its name, or NULL */
    const char *owner;       /* and its owner text, or NULL: there is none, or it is not known */
};

struct zkl_place zkl_place_of(const struct zkl_contender *contender);

#endif
