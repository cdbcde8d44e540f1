/* SPDX-License-Identifier: Apache-2.0 */
/* What an operation's callback received. For the suites that call the library: each compiles
 * completion.c with its own shared parts. */
#ifndef ZKTEST_COMPLETION_H
#define ZKTEST_COMPLETION_H

#include <pthread.h>
#include <stdatomic.h>

#include <zklock/async.h>

#include "check.h"

struct completion {
    atomic_int calls; /* written last */
    int code;
    pthread_t thread;
    char detail[300];
};

/* The zkl_done_fn; arg is a struct completion, zeroed. */
void note_completion(int code, void *arg);
/* Wait for the one callback of an operation: its code; it is zeroed for the next. */
int completion_code(struct completion *completion);

/* Start, and wait for the callback: what the one or the other said. */
int async_lock(struct zkl_owner *owner, struct zkl_mutex *mutex);
int async_unlock(struct zkl_owner *owner, struct zkl_mutex *mutex);

struct zkl_owner *new_owner(void);

#endif
