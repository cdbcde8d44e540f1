/* SPDX-License-Identifier: Apache-2.0 */
/* One thread: lock, read, work, write, unlock, again and again. */
#ifndef CONTENTION_WORKER_H
#define CONTENTION_WORKER_H

#include "process.h"
#include "record.h"

#include <pthread.h>

struct worker {
    struct process *process;
    struct fence fence;
    uint64_t chance;
    pthread_t thread;
    int rc; /* read after the join */
};

/* 0 or an errno value. */
int worker_start(struct worker *worker, struct process *process, unsigned number);
/* 0, or -1 if the thread could not go on. */
int worker_join(struct worker *worker);

#endif
