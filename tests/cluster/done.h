/* SPDX-License-Identifier: Apache-2.0 */
/* What an operation's callback was told. */
#ifndef ZKTEST_DONE_H
#define ZKTEST_DONE_H

#include <stdatomic.h>

#include "cluster.h"

#include <zklock/async.h>

struct done {
    atomic_int calls; /* written last */
    int code;
    pthread_t thread;
    char detail[300];
};

/* The zkl_done_fn; arg is a struct done, zeroed. */
void note_done(int code, void *arg);
/* Wait for the one callback of an operation: its code; it is zeroed for the next. */
int done_code(struct done *done);

/* Start, and wait for the callback: what the one or the other said. */
int async_lock(struct zkl_owner *owner, struct zkl_mutex *mutex);
int async_unlock(struct zkl_owner *owner, struct zkl_mutex *mutex);

struct zkl_owner *new_owner(void);

#endif
