/* SPDX-License-Identifier: Apache-2.0
 * Counts what a client has inside: for tests which check that nothing stays. With the driver's
 * mutex. */
#ifndef TESTS_LIB_UNDER_WAY_H
#define TESTS_LIB_UNDER_WAY_H

#include "core/watch.h"
#include "driver/handle.h"

static inline size_t contenders_of(const struct zkl_core *core)
{
    size_t n = 0;
    for (const struct zkl_contender *c = core->first; c; c = c->next)
        n++;
    return n;
}

/* But the one on a path, which it has for as long as that has a handle: see core/unlisted_grant.h. */
static inline size_t watches_of(const struct zkl_core *core)
{
    size_t n = 0;
    for (size_t i = 0; i < ZKL_WATCH_BUCKETS; i++) {
        for (const struct zkl_watch *w = core->watches[i]; w; w = w->next)
            n += !w->subscribers || !w->subscribers->unlisted || w->subscribers->next;
    }
    for (const struct zkl_watch *w = core->removing; w; w = w->next)
        n++;
    return n;
}

static inline size_t calls_of_handle(const struct zkl_handle *h)
{
    size_t n = 0;
    for (const struct zkl_call *call = h ? h->calls : NULL; call; call = call->next)
        n++;
    return n;
}

/* Calls that libzookeeper has accepted, also of handles that are yet to be closed. */
static inline size_t calls_of(const struct zkl_driver *d)
{
    size_t n = calls_of_handle(d->current) + calls_of_handle(d->probe);
    for (const struct zkl_handle *h = d->graveyard; h; h = h->next)
        n += calls_of_handle(h);
    return n;
}

#endif
