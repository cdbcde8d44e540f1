/* SPDX-License-Identifier: Apache-2.0
 *
 * The library's own threads, which handle no signal, and the shield of a call: no pthread
 * cancellation ends a call half way. This file owns nothing beyond a call and takes no lock.
 * driver.c, service.c and resolver.c start threads by it; the public calls shield themselves. */
#include "driver.h"

#include <signal.h>
#include <unistd.h>

int zkl_thread_start(pthread_t *thread, void *(*main)(void *), void *arg)
{
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    int rc = pthread_create(thread, NULL, main, arg);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return rc;
}

static void *rehearse(void *gate)
{
    pthread_mutex_lock(gate);
    pthread_mutex_unlock(gate);
    return (void *)(intptr_t)gettid();
}

/* A thread that was joined counts for a moment yet. */
static void wait_until_gone(pid_t thread)
{
    for (int i = 0; i < 100 && tgkill(getpid(), thread, 0) == 0; i++)
        nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
}

bool zkl_thread_rehearse(int count)
{
    pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
    pthread_t threads[ZKL_REHEARSED_MAX];
    int made = 0;
    pthread_mutex_lock(&gate);
    while (made < count && zkl_thread_start(&threads[made], rehearse, &gate) == 0)
        made++;
    pthread_mutex_unlock(&gate);
    for (int i = 0; i < made; i++) {
        void *thread;
        pthread_join(threads[i], &thread);
        wait_until_gone((pid_t)(intptr_t)thread);
    }
    pthread_mutex_destroy(&gate);
    return made == count;
}

int zkl_shield(void)
{
    int state;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
    return state;
}

void zkl_shield_end(const int *state)
{
    pthread_setcancelstate(*state, NULL);
}
