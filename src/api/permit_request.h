/* SPDX-License-Identifier: Apache-2.0
 * A request for permits: the object that one call of zkl_semaphore_acquire, or one lock of a
 * semaphore's mutex, waits for. It outlives the call until the core has finished with it. */
#ifndef ZKL_API_PERMIT_REQUEST_H
#define ZKL_API_PERMIT_REQUEST_H

#include "core/bundle.h"
#include "place.h"

struct zkl_permit_request {
    struct zkl_bundle bundle; /* first */
    struct zkl_contender gate_place;
    struct zkl_client *client;
    struct zkl_semaphore *semaphore; /* during the call */
    /* Both with references: a call that fails may have no handle any more. */
    struct zkl_lock_path *gate, *path;
    int declared;            /* its permits, as they were known at its start */
    atomic_int refs;         /* its call, the core */
    struct zkl_waker ending; /* gives up the core's one without the mutex */
    int64_t busy_at;         /* from when on a try does not wait for others any more */
    size_t count;
    /* The gate's, and behind it one for each permit, whose contender is the first member of its
     * place. */
    struct zkl_bundle_member members[];
};

/* NULL: no memory. Its places have one reference each, the request's. */
struct zkl_permit_request *zkl_permit_request_new(struct zkl_semaphore *semaphore, size_t count);
void zkl_permit_request_unref(struct zkl_permit_request *request); /* without the mutex */
struct zkl_place *zkl_permit_request_place(const struct zkl_permit_request *request, size_t i);
/* Note the failure with what the request knows of it; the code. */
int zkl_permit_request_fail(const struct zkl_permit_request *request, int rc);

/* For a waiting call, with the mutex: the contender that it queues with. */
static inline const struct zkl_contender *zkl_contender_in_queue(const struct zkl_place *place)
{
    return place->request ? &place->request->gate_place : &place->contender;
}

/* --- for wait.c, with the mutex ----------------------------------------- */

void zkl_permit_request_begin(struct zkl_permit_request *request, const struct zkl_wait *wait);
/* The core is done with it. */
bool zkl_permit_request_is_over(const struct zkl_permit_request *request);
/* A try has waited long enough for a contender that is just acquiring. */
bool zkl_permit_request_is_busy(const struct zkl_permit_request *request, int64_t now_ns);
/* When the next check of that is due; INT64_MAX: never. */
int64_t zkl_permit_request_next_look(const struct zkl_permit_request *request, int64_t now_ns);
/* The call ends with rc. */
void zkl_permit_request_returned(struct zkl_permit_request *request, int rc);

#endif
