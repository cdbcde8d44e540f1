/* SPDX-License-Identifier: Apache-2.0 */
/* Each public call once, where a call that waits is refused: in a callback, and with what a forked
 * child has inherited. That none is missing is checked. */
#ifndef ZKTEST_EVERY_H
#define ZKTEST_EVERY_H

#include "cluster.h"

#include <zklock/async.h>
#include <zklock/inspect.h>
#include <zklock/guard.h>
#include <zklock/metrics.h>

#define EVERY_MS 4500 /* all of them, where one that waits takes 5000 at least */

enum every_where { EVERY_CALLBACK, EVERY_CHILD };

struct every {
    struct zkl_client *client;
    /* Held by the thread that called every_hold. */
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

void every_hold(struct every *e, struct zkl_client *client);
void every_call(struct every *e, enum every_where where);
/* All went as it should, and nothing has changed: all is held as before. */
void every_check(struct every *e);
void every_release(struct every *e);

#endif
