/* SPDX-License-Identifier: Apache-2.0 */
/* Many contenders of one client without a thread for each: the crowd uses driver and core as src/api
 * does, with places in an array instead of holds. */
#ifndef ZKFAULT_CROWD_H
#define ZKFAULT_CROWD_H

#include "fault.h"

#include "driver/driver.h"

struct crowd_place {
    struct zkl_contender contender; /* first: the core's news name it */
    struct crowd *crowd;
    atomic_bool granted, failed, ended;
    int code;   /* what it failed with */
    int grants; /* how often it was granted */
};

/* The granted places, in their order, of all crowds that share it. */
struct crowd_queue {
    pthread_mutex_t mu;
    struct crowd_place **order;
    size_t count, size;
};

struct crowd {
    struct zkl_driver *driver;
    struct crowd_queue *queue; /* may be NULL */
    struct crowd_place *places;
    struct zkl_path *paths; /* room for size of them, too */
    size_t size, path_count;
    atomic_size_t begun, granted, failed, ended, links; /* links: times that the link came up */
};

void crowd_queue_init(struct crowd_queue *queue, size_t size);
void crowd_queue_fini(struct crowd_queue *queue);
size_t crowd_queue_count(struct crowd_queue *queue);
struct crowd_place *crowd_queue_at(struct crowd_queue *queue, size_t i);

/* A client with room for size places, connected. */
struct crowd *crowd_open(const char *servers, int session_ms, size_t size,
                         struct crowd_queue *queue);
/* All its places end with it, if they have not yet. True if the server confirmed the end. */
bool crowd_close(struct crowd *crowd);

/* The next place waits for the mutex at path; path must stay valid. */
struct crowd_place *crowd_acquire(struct crowd *crowd, const char *path);
/* The holder releases it. */
void crowd_release(struct crowd_place *place);
/* Waiters end with ZKL_ECANCELED, and holders release. */
void crowd_stop_all(struct crowd *crowd);

size_t crowd_waiting(struct crowd *crowd);
size_t crowd_watches(struct crowd *crowd); /* those to be removed included */
size_t crowd_calls(struct crowd *crowd);   /* accepted and not completed; keepalives too */
bool crowd_puts_off(struct crowd *crowd);  /* waiters have watches of their own nodes to come */
int64_t crowd_session(struct crowd *crowd);
bool crowd_connected(struct crowd *crowd);

#endif
