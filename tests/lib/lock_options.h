/* SPDX-License-Identifier: Apache-2.0 */
/* What all locks have of a mutex's options, for tests that make several kinds with the same ones. */
#ifndef ZKTEST_LOCK_OPTIONS_H
#define ZKTEST_LOCK_OPTIONS_H

#include <zklock/zklock.h>

static inline struct zkl_lock_options lock_options_of(const struct zkl_mutex_options *o)
{
    struct zkl_lock_options all = ZKL_LOCK_OPTIONS_INIT;

    all.names = o->names;
    all.revocable = o->revocable;
    all.posted_unlock = o->posted_unlock;
    all.metrics = o->metrics;
    all.owner = o->owner;
    return all;
}

#endif
