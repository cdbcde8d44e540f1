/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ZKL_API_CANCEL_H
#define ZKL_API_CANCEL_H

#include <stdatomic.h>

#include <zklock/zklock.h>

struct zkl_cancel {
    atomic_int set;
    atomic_int refs;
    unsigned fork_generation; /* the descriptor is shared with a forked child, the bit is not */
    int fd; /* an eventfd: readable once set, so that a signal handler can reach a service thread */
    struct zkl_cancel *next_dead;
};

/* The caller must pass it to zkl_cancel_free. A call that consists of several waits has a reference
 * for all of them, as the user may free the object once it is set. NULL is valid. */
struct zkl_cancel *zkl_cancel_ref(struct zkl_cancel *cancel);
/* 0, or ZKL_EFORK, with who as the failing call: the parent made the object. NULL is valid. */
int zkl_cancel_check(const struct zkl_cancel *cancel, const char *who);

#endif
