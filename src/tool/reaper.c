/* SPDX-License-Identifier: Apache-2.0
 *
 * The thread that waits for each child of this process that ends. No zombie stays, also of
 * processes that others started: as process 1 of a container zklock gets all orphans. It owns the
 * number of the one child that is signalled later, below a mutex, until it is stopped. job.c calls
 * it. */
#include "reaper.h"

#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <sys/wait.h>

#include "signals.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pid_t kept; /* 0: it was waited for */
static bool stopped;

/* False: no more. */
static bool reap(pid_t pid)
{
    pthread_mutex_lock(&mutex);
    bool goes_on = !stopped;
    if (goes_on && waitpid(pid, NULL, WNOHANG) == pid && pid == kept)
        kept = 0;
    pthread_mutex_unlock(&mutex);
    return goes_on;
}

/* Ends also when no child is left: guard and anchor are gone then, and zklock ends. */
static void *run(void *unused)
{
    siginfo_t ended;
    for (bool goes_on = true; goes_on;) {
        if (waitid(P_ALL, 0, &ended, WEXITED | WNOWAIT) == 0)
            goes_on = reap(ended.si_pid);
        else
            goes_on = errno == EINTR;
    }
    return unused;
}

/* Without the thread zombies stay, and nothing else changes. */
void reaper_start(pid_t child)
{
    pthread_t thread;
    sigset_t before;
    kept = child;
    signals_block_all(&before);
    if (pthread_create(&thread, NULL, run, NULL) == 0)
        pthread_detach(thread);
    signals_restore(&before);
}

bool reaper_stop(void)
{
    pthread_mutex_lock(&mutex);
    stopped = true;
    bool is_kept = kept > 0;
    pthread_mutex_unlock(&mutex);
    return is_kept;
}
