/* SPDX-License-Identifier: Apache-2.0 */
/* Each public call once, where a call that waits is refused: in a callback, and with what a forked
 * child has inherited. That none is missing is checked. */
#ifndef ZKTEST_REFUSED_CALLS_H
#define ZKTEST_REFUSED_CALLS_H

#include "cluster.h"

#include <zklock/async.h>
#include <zklock/inspect.h>
#include <zklock/guard.h>
#include <zklock/metrics.h>

#define REFUSED_CALLS_MS 4500 /* all of them, where one that waits takes 5000 at least */

enum refusal { REFUSED_IN_CALLBACK, REFUSED_IN_CHILD };

struct refused_calls {
    struct zkl_client *client;
    /* Held by the thread that called refused_calls_hold. */
    struct zkl_mutex *mutex;
    struct zkl_rwlock *rwlock; /* its write half */
    struct zkl_multi *multi;   /* of these two */
    struct zkl_semaphore *semaphore;
    struct zkl_permit *permit;
    struct zkl_owner *owner; /* has nothing */
    char node[300];          /* the mutex's */
    struct zkl_client_options options;
    struct zkl_client *opened; /* by a call in a callback: to be freed */
    int wrong;                 /* calls that did not say what they should */
    char first[200];           /* the first of them */
    int64_t ms;                /* all of them took */
};

void refused_calls_hold(struct refused_calls *e, struct zkl_client *client);
void refused_calls_make(struct refused_calls *e, enum refusal where);
/* Each call said what it should, and changed nothing: every lock is held as before. */
void refused_calls_check(struct refused_calls *e);
void refused_calls_release(struct refused_calls *e);

#endif
