/* SPDX-License-Identifier: Apache-2.0 */
/* The floor of a hand-off within one process: threads that wait in a line, each on its own condition
 * variable, and no ZooKeeper. Of locks of other processes it knows nothing: for workloads with one. */
#include "peer.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

struct waiter {
    struct waiter *next;
    pthread_cond_t cond;
    bool has_it;
};

static struct {
    pthread_mutex_t mu;
    bool taken;
    struct waiter *first, **end;
} locks[LOCKS_MAX];

static void local_open(const struct settings *settings)
{
    if (settings->index > 0)
        peer_fail("this lock is for one process");
    for (int i = 0; i < LOCKS_MAX; i++) {
        pthread_mutex_init(&locks[i].mu, NULL);
        locks[i].end = &locks[i].first;
    }
}

static void local_lock(enum kind kind, int thread, int lock)
{
    struct waiter self = {.cond = PTHREAD_COND_INITIALIZER};

    (void)kind;
    (void)thread;
    pthread_mutex_lock(&locks[lock].mu);
    if (!locks[lock].taken) {
        locks[lock].taken = true;
    } else {
        *locks[lock].end = &self;
        locks[lock].end = &self.next;
        while (!self.has_it)
            pthread_cond_wait(&self.cond, &locks[lock].mu);
    }
    pthread_mutex_unlock(&locks[lock].mu);
}

/* The signal is sent with the mutex held: the woken thread may free its condition variable right
 * after. */
static void local_unlock(enum kind kind, int thread, int lock)
{
    (void)kind;
    (void)thread;
    pthread_mutex_lock(&locks[lock].mu);
    struct waiter *next = locks[lock].first;
    locks[lock].taken = next != NULL;
    if (next != NULL) {
        locks[lock].first = next->next;
        if (next->next == NULL)
            locks[lock].end = &locks[lock].first;
        next->has_it = true;
        pthread_cond_signal(&next->cond);
    }
    pthread_mutex_unlock(&locks[lock].mu);
}

static void local_close(void) {}

int main(int argc, char **argv)
{
    static const struct peer local_peer = {
        .open = local_open, .lock = local_lock, .unlock = local_unlock, .close = local_close};

    return peer_main(argc, argv, &local_peer);
}
