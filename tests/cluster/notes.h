/* SPDX-License-Identifier: Apache-2.0 */
/* A state callback of a mutex that takes notes, and can be made to wait. */
#ifndef ZKTEST_NOTES_H
#define ZKTEST_NOTES_H

#include <semaphore.h>

#include "cluster.h"

#define NOTES_MAX 128

struct note {
    enum zkl_hold_state state;
    enum zkl_reason reason;
    uint64_t token;
    char node[128];
};

struct notes {
    pthread_mutex_t mu;
    size_t count;
    size_t running;
    struct note list[NOTES_MAX];
    sem_t *gate; /* not NULL: each call waits here */
    int free_at; /* the number of the call that frees the mutex; 0: none */
    int freed;   /* what zkl_mutex_free said */
};

#define NOTES_INIT                                                                                 \
    {                                                                                              \
        .mu = PTHREAD_MUTEX_INITIALIZER, .freed = 1                                                \
    }

/* The zkl_hold_fn; arg is the notes. */
void take_note(const struct zkl_hold_event *event, void *arg);
/* Calls so far, and those that are not over. */
size_t noted(struct notes *notes);
size_t running(struct notes *notes);

/* The ith note, from 0, has come or comes, and says this. */
#define check_note(notes, i, its_state, its_reason)                                                \
    do {                                                                                           \
        check_wait(noted(notes) > (i), WAIT_MS);                                                   \
        check_num((notes)->list[i].state, ==, its_state);                                          \
        check_num((notes)->list[i].reason, ==, its_reason);                                        \
    } while (0)

#endif
