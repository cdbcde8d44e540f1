/* SPDX-License-Identifier: Apache-2.0 */
/* Each public call once, where a call that waits is refused: in a callback, and with what a forked
 * child has inherited. */
#ifndef ZKTEST_REFUSED_CALLS_H
#define ZKTEST_REFUSED_CALLS_H

#include "cluster.h"
#include "goods.h"

#define REFUSED_CALLS_MS 4500 /* all of them, where one that waits takes 5000 at least */

struct refused_calls {
    struct zkl_client *client;
    struct goods goods;        /* held by the thread that called refused_calls_hold */
    struct zkl_client *opened; /* by a call in a callback: to be freed */
    int wrong;                 /* calls that did not say what they should */
    char first[500];           /* the first of them */
};

void refused_calls_hold(struct refused_calls *e, struct zkl_client *client);
void refused_calls_make(struct refused_calls *e, enum goods_where where);
/* Each call said what it should, and changed nothing: every lock is held as before. */
void refused_calls_check(struct refused_calls *e);
void refused_calls_release(struct refused_calls *e);

#endif
