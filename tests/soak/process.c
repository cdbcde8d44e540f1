/* SPDX-License-Identifier: Apache-2.0 */
#include "worker.h"

#include <malloc.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "draw.h"
#include "tool/net.h"

#define SESSION_MS 30000
#define OPEN_MS 30000

static bool went_wrong(struct process *p, const char *what, int rc)
{
    if (rc != 0)
        shared_fail(p->shared, "process %d: %s: %s: %s", p->number, what, zkl_strerror(rc),
                    zkl_error_detail());
    return rc != 0;
}

/* --- the handles, which its threads share ----------------------------------------------------- */

/* One process hears what its client decides: a place that is begun anew, although the thread asked
 * once, was backed out of before. */
static void count_starts(const struct zkl_log_event *event, void *shared)
{
    if (event->kind <= ZKL_LOG_KIND_PERMITS && strcmp(event->from, "NEW") == 0)
        ((struct shared *)shared)->started++;
}

/* Half of the processes listen: their holds have watches. No session ends here. */
static void told(const struct zkl_hold_event *event, void *process)
{
    const struct process *p = process;

    if (event->state == ZKL_HOLD_LOST)
        shared_fail(p->shared, "process %d: %s is lost, reason %d", p->number, event->node_path,
                    (int)event->reason);
}

static int listen_to(struct process *p, struct zkl_mutex *mutex)
{
    return p->number % 2 == 1 ? zkl_mutex_set_callback(mutex, told, p) : 0;
}

static int make_handles(struct process *p)
{
    int rc = 0;

    for (int i = 0; rc == 0 && i < SOAK_MUTEXES; i++) {
        rc = zkl_mutex_new(&p->mutexes[i], p->client, soak_path(i), NULL);
        rc = rc != 0 ? rc : listen_to(p, p->mutexes[i]);
    }
    for (int i = 0; rc == 0 && i < SOAK_PATHS - SOAK_MUTEXES; i++) {
        rc = zkl_rwlock_new(&p->rwlocks[i], p->client, soak_path(SOAK_MUTEXES + i), NULL);
        rc = rc != 0 ? rc : listen_to(p, zkl_rwlock_reader(p->rwlocks[i]));
        rc = rc != 0 ? rc : listen_to(p, zkl_rwlock_writer(p->rwlocks[i]));
    }
    return rc != 0
               ? rc
               : zkl_semaphore_new(&p->semaphore, p->client, SOAK_SEMAPHORE, SOAK_PERMITS, NULL);
}

static int free_handles(struct process *p)
{
    int rc = 0;

    for (int i = 0; rc == 0 && i < SOAK_MUTEXES; i++)
        rc = zkl_mutex_free(p->mutexes[i]);
    for (int i = 0; rc == 0 && i < SOAK_PATHS - SOAK_MUTEXES; i++)
        rc = zkl_rwlock_free(p->rwlocks[i]);
    return rc != 0 ? rc : zkl_semaphore_free(p->semaphore);
}

static int open_client(struct process *p)
{
    struct zkl_client_options options = ZKL_CLIENT_OPTIONS_INIT;

    options.servers = p->shared->servers;
    options.session_timeout_ms = SESSION_MS;
    options.connect_timeout_ms = OPEN_MS;
    if (p->number == 0) {
        options.log_fn = count_starts;
        options.log_arg = p->shared;
        options.log_level = ZKL_LOG_DEBUG;
    }
    return zkl_client_open(&p->client, &options);
}

/* All is released by now. */
int process_part(struct process *p)
{
    bool wrong = went_wrong(p, "free", free_handles(p));

    wrong = went_wrong(p, "close", zkl_client_close(p->client, OPEN_MS)) || wrong;
    wrong = went_wrong(p, "free", zkl_client_free(p->client)) || wrong;
    return wrong ? 1 : 0;
}

int process_join(struct process *p)
{
    return went_wrong(p, "open", open_client(p)) || went_wrong(p, "new", make_handles(p)) ? 1 : 0;
}

/* --- the threads ------------------------------------------------------------------------------ */

/* Reports the heap in use, once for each time that the parent asks for it. */
static void weigh(struct process *p, int *told)
{
    struct mallinfo2 heap = mallinfo2();

    *told = p->shared->weigh;
    p->shared->heap[p->number] = (long)(heap.uordblks + heap.hblkhd);
    p->shared->weighed++;
}

/* Sets the cancel object of one of the threads, if its call has one, now and then. */
static void *canceller_main(void *arg)
{
    struct process *p = arg;
    uint64_t chance = p->shared->seed + 1000 + (uint64_t)p->number;
    int told = 0;

    while (!p->through) {
        if (p->shared->weigh != told)
            weigh(p, &told);
        net_nap_ms(chance_between(&chance, 1, 12));
        pthread_mutex_lock(&p->mu);
        zkl_cancel_set(p->cancels[chance_between(&chance, 0, SOAK_THREADS - 1)]);
        pthread_mutex_unlock(&p->mu);
    }
    return NULL;
}

static void run_threads(struct process *p)
{
    pthread_t threads[SOAK_THREADS], canceller;
    struct worker workers[SOAK_THREADS];

    pthread_create(&canceller, NULL, canceller_main, p);
    for (int i = 0; i < SOAK_THREADS; i++) {
        int seat = p->number * SOAK_THREADS + i;
        workers[i] = (struct worker){.process = p,
                                     .shared = p->shared,
                                     .seat = &p->shared->seat[seat],
                                     .number = seat,
                                     .chance = p->shared->seed + (uint64_t)seat};
        pthread_create(&threads[i], NULL, worker_main, &workers[i]);
    }
    for (int i = 0; i < SOAK_THREADS; i++)
        pthread_join(threads[i], NULL);
    p->through = true;
    pthread_join(canceller, NULL);
}

/* --- the process ------------------------------------------------------------------------------ */

static void wait_for(atomic_bool *sign)
{
    while (!*sign)
        net_nap_ms(2);
}

int process_run(struct shared *shared, int number)
{
    struct process p = {.shared = shared, .number = number, .mu = PTHREAD_MUTEX_INITIALIZER};

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    wait_for(&shared->open);
    if (process_join(&p) != 0)
        return 1;
    shared->ready++;
    wait_for(&shared->go);
    run_threads(&p);
    shared->rested++;
    wait_for(&shared->quit); /* the parent looks meanwhile, and all is released */
    return process_part(&p);
}
