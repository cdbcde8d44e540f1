/* SPDX-License-Identifier: Apache-2.0
 * An operation: a call of async.h from its start to its callback. A thread begins it with the
 * mutex. It takes a step whenever it is woken or its next check is due, on whatever thread releases
 * the mutex then. When a step decides it, its callback is queued for the thread that runs
 * callbacks. */
#ifndef ZKL_API_OP_H
#define ZKL_API_OP_H

#include <zklock/async.h>

#include "client.h"

/* The differences between calls. */
struct zkl_op_kind {
    /* With the mutex: ZKL_GOES_ON, with the time of the next step at the latest (INT64_MAX: when
     * woken), or the code. */
    int (*step)(struct zkl_op *op, int64_t *next_ns);
    /* With the mutex, once it is decided and its callback queued; may be NULL. */
    void (*decided)(struct zkl_op *op, int rc);
    /* With the mutex, while it is not decided; NULL: it can't be canceled. */
    void (*cancel)(struct zkl_op *op);
    /* Without the mutex, on the callback's thread, just before it: fill in what the caller gets,
     * note the failure, drop everything but op itself. The code. */
    int (*finish)(struct zkl_op *op, int rc);
    bool closes; /* it is decided when the client is closed, and not ended by that */
};

struct zkl_op {
    struct zkl_note note; /* of the callback; first */
    struct zkl_task task;
    const struct zkl_op_kind *kind;
    struct zkl_client *client; /* with a reference */
    zkl_done_fn fn;
    void *arg;
    int rc;
    bool is_decided;
    size_t slot, heap_at;
    uint64_t id;
    int64_t next_ns;
    char *detail; /* of a failure that was known before the callback */
};

/* Of this size, at least that of struct zkl_op, which is its first member; NULL: no memory. */
void *zkl_op_new(size_t size, struct zkl_client *client, const struct zkl_op_kind *kind,
                 zkl_done_fn fn, void *arg);
/* It has not begun. */
void zkl_op_free(struct zkl_op *op);
/* An operation whose outcome is known, and noted if it is a failure: only its callback is due. */
void zkl_op_know(struct zkl_op *op, int rc);

/* --- with the mutex ----------------------------------------------------- */

/* From here on a callback will come. ZKL_ECLOSED (a closing operation gets it only once the close
 * is done), ZKL_ENOMEM: none will. */
int zkl_op_begin(struct zkl_op *op, uint64_t *id);
/* There will not be one after all. */
void zkl_op_withdraw(struct zkl_op *op);
/* Take the first step, or another one. */
void zkl_op_step(struct zkl_op *op);
/* The operation takes a step before the mutex is released. */
void zkl_op_wake(struct zkl_op *op);
/* Find it by its number; NULL: there is no such operation, or it is decided. */
struct zkl_op *zkl_op_find(const struct zkl_client *client, uint64_t id);
/* It is decided. */
void zkl_op_decide(struct zkl_op *op, int rc);
/* The driver calls this. */
void zkl_ops_due(void *client, int64_t mono_ns);
void zkl_ops_closed(void *client, bool confirmed);

#endif
