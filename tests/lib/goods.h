/* SPDX-License-Identifier: Apache-2.0 */
/* Good arguments for every public call, so that a test can make all of them in a loop (called.py has the
 * table), each as it should be made or with one argument wrong. For the suites that call the library:
 * each compiles goods.c with its own shared parts. */
#ifndef ZKTEST_GOODS_H
#define ZKTEST_GOODS_H

#include "completion.h"

#include "called.h"

#define GOODS_OWNERS 20
#define GOODS_MEMBERS 4 /* of a multi-lock, at most */

/* What the arguments of each kind are, or are made of. A test may change any before a call. */
struct goods {
    struct zkl_client *client;
    struct zkl_mutex *mutex;
    struct zkl_rwlock *rwlock;
    struct zkl_semaphore *semaphore; /* of two permits */
    struct zkl_permit *permit;
    struct zkl_multi *multi; /* of the mutex and the rwlock's writer */
    struct zkl_owner *owner;
    struct zkl_owner *others[GOODS_OWNERS]; /* to be freed in the end */
    int others_count;
    struct zkl_cancel *cancel;
    const struct zkl_inspection *seen;
    char path[200]; /* of what a call makes or looks at */
    struct zkl_client_options options;
    struct zkl_wait wait;
    int64_t timeout_ms, need_ms, lease_ms, retain_ms, count; /* of permits, 0: 1 */

    const void *instead[ARGS]; /* not NULL: what is given for this kind of argument */

    zkl_done_fn done_fn; /* note_completion, which gets done */
    struct completion done;
    int64_t refused_ms; /* that the calls of goods_call_all took which failed */

    struct {
        struct zkl_client *client;
        struct zkl_mutex *mutex;
        struct zkl_rwlock *rwlock;
        struct zkl_semaphore *semaphore;
        struct zkl_permit *permits[2];
        struct zkl_multi *multi;
        struct zkl_owner *owner;
        struct zkl_cancel *cancel;
        const struct zkl_inspection *seen;
    } made; /* what the last call stored; NULL before each */
    struct zkl_lock_metrics lock_metrics;
    struct zkl_client_metrics client_metrics;
    struct zkl_standing standing;
    struct zkl_grant grants[GOODS_MEMBERS];
    struct zkl_guard guards[2];
    enum zkl_reason reason;
    char text[300];
    int number, codes[GOODS_MEMBERS];
    uint64_t op, asked_op; /* stored; given */
};

/* Handles of each kind, and nothing held; name is unlike that of other goods. */
void goods_make(struct goods *g, const struct zkl_client_options *options,
                struct zkl_client *client, const char *name);
void goods_hold(struct goods *g); /* a permit, and the multi-lock by the calling thread */
void goods_let_go(struct goods *g);
void goods_free(struct goods *g); /* not the client */

/* Make the call, with NULL for the arguments that have a bit. What it answered. */
int64_t goods_call(struct goods *g, const struct call *call, unsigned nulls);
/* Free or release what the call made or acquired, and wait for the operation that it began. 0, or what the
 * release or the operation came to. */
int goods_undo(struct goods *g, const struct call *call, int64_t answer);

/* The call's name has this part, or ends so. */
bool call_has(const struct call *call, const char *part);
bool call_ends(const struct call *call, const char *end);
/* It takes one of this kind first. */
bool call_is_of(const struct call *call, enum arg kind);
/* It takes something of a client, and is refused in a child. */
bool call_is_of_client(const struct call *call);
/* It is about the calling thread's own hold. */
bool call_is_of_own(const struct call *call);

/* Who makes a call, and where, when all of it is held. */
enum goods_where { BY_THE_HOLDER, IN_ANOTHER_THREAD, IN_A_CALLBACK, IN_A_CHILD, AFTER_CLOSE };
/* What it should answer there by its header; 1 for all above 0. */
int64_t goods_due(const struct call *call, enum goods_where where);
/* NULL, or what is wrong with its answer. */
const char *goods_wrong(const struct call *call, enum goods_where where, int64_t said);
/* The call there: it changes nothing that is held. */
int64_t goods_call_once(struct goods *g, const struct call *call, enum goods_where where);
/* It would wait for what another thread holds, or end what other calls need. */
bool goods_leave_out(const struct call *call, enum goods_where where);
/* All others, once. How many did not answer so, and the first of these as a sentence. */
int goods_call_all(struct goods *g, enum goods_where where, char *first, size_t size);

#endif
