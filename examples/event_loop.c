/* SPDX-License-Identifier: Apache-2.0 */
/* Locks in an event loop of one thread, with epoll. Three jobs want one lock: the first works for a
 * second, the second follows, and the third is then canceled. */
#include <zklock/async.h>

#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>

#define JOBS 3

static struct job {
    struct zkl_owner *owner; /* each job has its own, as the thread is the same for all */
    uint64_t op;
} jobs[JOBS];
static struct zkl_mutex *mutex;
static int left = JOBS, wrong, works;

static void ended(int code, void *arg)
{
    const struct job *job = (const struct job *)arg;
    printf("job %td: %s\n", job - jobs, code == 0 ? "done" : zkl_error_detail());
    wrong += code != (job == &jobs[2] ? ZKL_ECANCELED : 0);
    left--;
}

static void finish(struct job *job)
{
    int rc = zkl_mutex_unlock_async(job->owner, mutex, ended, job);
    if (rc != 0) /* then no callback comes */
        ended(rc, job);
}

static void granted(int code, void *arg)
{
    struct job *job = (struct job *)arg;
    struct zkl_owner *before = zkl_owner_use(job->owner);
    if (code == 0)
        printf("job %td: %s\n", job - jobs,
               zkl_mutex_check(mutex, 100) ? zkl_error_detail() : "works");
    zkl_owner_use(before);
    works = code == 0 && job == jobs; /* until run_loop ends it */
    if (code != 0)
        ended(code, job);
    else if (!works)
        finish(job);
}

static int run_loop(struct zkl_client *client)
{
    int epoll = epoll_create1(EPOLL_CLOEXEC), fd = zkl_client_event_fd(client);
    struct epoll_event event = {EPOLLIN, {NULL}};
    int failed = fd < 0 || epoll < 0 || epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
    while (!failed && left > 0) {
        if (epoll_wait(epoll, &event, 1, 1000) > 0)
            zkl_client_dispatch(client, 100);
        else if (works && zkl_op_cancel(client, jobs[2].op) == 0)
            finish(&jobs[0]);
    }
    return failed;
}

int main(int argc, char **argv)
{
    struct zkl_client_options options = ZKL_CLIENT_OPTIONS_INIT;
    struct zkl_client *client;
    options.servers = argc > 1 ? argv[1] : getenv("ZKLOCK_SERVERS");
    if (zkl_client_open(&client, &options) ||
        zkl_mutex_new(&mutex, client, "/zklock/examples/event_loop", NULL) ||
        zkl_mutex_lock(mutex) || zkl_mutex_unlock(mutex)) /* makes the path */
        return fprintf(stderr, "HOST:PORT, or ZKLOCK_SERVERS: %s\n", zkl_error_detail()) > 0;
    for (struct job *job = jobs; job < &jobs[JOBS]; job++)
        wrong += zkl_owner_new(&job->owner) ||
                 zkl_mutex_acquire_async(job->owner, mutex, NULL, NULL, granted, job, &job->op);
    wrong += run_loop(client);
    for (int i = 0; i < JOBS; i++)
        wrong += zkl_owner_free(jobs[i].owner) != 0;
    return wrong || zkl_mutex_free(mutex) || zkl_client_free(client);
}
