/* SPDX-License-Identifier: Apache-2.0 */
/* Many contenders of one client without a thread for each: operations, each of an owner of its own. All of it is freed
 * when the test returns. */
#ifndef ZKFAULT_CROWD_H
#define ZKFAULT_CROWD_H

#include "fault.h"

struct crowd_place {
    struct crowd *crowd;
    struct zkl_owner *owner;
    struct zkl_mutex *mutex;
    struct zkl_grant grant;
    uint64_t op;
    atomic_uint came; /* bits: it was granted; it is to leave */
    atomic_bool failed;
    int code; /* what it failed with */
};

/* The granted places, in their order, of all crowds that share it. */
struct crowd_queue {
    struct crowd_place *_Atomic *order;
    atomic_size_t count;
};

struct crowd {
    struct zkl_client *client;
    struct crowd_queue *queue; /* may be NULL */
    struct crowd_place *places;
    size_t size, begun;
    atomic_size_t granted, failed, ended; /* ended: failed, or released */
    atomic_size_t unconfirmed;            /* releases */
};

/* A client with room for size places, connected. */
struct crowd *crowd_open(const char *servers, int session_ms, size_t size,
                         struct crowd_queue *queue);
/* The next place waits for the mutex. */
struct crowd_place *crowd_acquire(struct crowd *crowd, struct zkl_mutex *mutex);
bool crowd_holds(const struct crowd_place *place); /* it was granted, and need not leave */
/* Who waits ends with ZKL_ECANCELED, who holds releases. */
void crowd_leave(struct crowd_place *place);
void crowd_leave_all(struct crowd *crowd);
size_t crowd_waiting(struct crowd *crowd);

#endif
