/* SPDX-License-Identifier: Apache-2.0 */
#include "process.h"

#include "worker.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { CONNECT_TIMEOUT_MS = 15000, CLOSE_TIMEOUT_MS = 5000 };

static int failed(struct process *p, const char *what, const char *why)
{
    struct message m = {.kind = MESSAGE_FAILED, .who = {p->number, p->life, 0}};
    snprintf(m.text, sizeof m.text, "%s: %s", what, why);
    lines_send(&p->lines, &m);
    return -1;
}

static int open_client(struct process *p)
{
    char why[200] = "";
    struct zkl_client_options options = ZKL_CLIENT_OPTIONS_INIT;
    options.servers = p->options->servers;
    options.session_timeout_ms = p->options->session_timeout_ms;
    options.connect_timeout_ms = CONNECT_TIMEOUT_MS;
    options.errbuf = why;
    options.errbuf_size = sizeof why;
    int rc = zkl_client_open(&p->client, &options);
    if (rc)
        return failed(p, "cannot connect", why[0] ? why : zkl_strerror(rc));
    rc = zkl_cancel_new(&p->cancel);
    if (rc)
        return failed(p, "no cancel object", zkl_strerror(rc));
    rc = zkl_mutex_new(&p->mutex, p->client, p->options->path, NULL);
    return rc ? failed(p, "no mutex", zkl_error_detail()) : 0;
}

static void close_client(struct process *p)
{
    /* The server removes whatever is left there with the session, so no answer is worth a longer
     * wait. */
    if (p->client)
        zkl_client_close(p->client, CLOSE_TIMEOUT_MS);
    zkl_mutex_free(p->mutex);
    zkl_cancel_free(p->cancel);
    if (p->client)
        zkl_client_free(p->client);
}

static bool all_ended(struct process *p, int *left)
{
    uint64_t n;
    if (read(p->ended, &n, sizeof n) == (ssize_t)sizeof n)
        *left -= (int)n;
    return *left <= 0;
}

/* Until all threads have ended; the end of the stop pipe ends every wait for the lock. */
static void await_threads(struct process *p, int left)
{
    struct pollfd fds[2] = {{.fd = p->ended, .events = POLLIN}, {.fd = p->lines.stop[0]}};
    for (;;) {
        int n = poll(fds, 2, -1);
        if (n < 0 && errno != EINTR)
            return;
        if (n > 0 && fds[0].revents && all_ended(p, &left))
            return;
        if (n > 0 && fds[1].revents) {
            zkl_cancel_set(p->cancel);
            fds[1].fd = -1;
        }
    }
}

static int run_threads(struct process *p)
{
    struct worker workers[THREADS_MAX];
    int started = 0;
    int rc = 0;
    while (!rc && started < p->options->threads) {
        rc = worker_start(&workers[started], p, (unsigned)started);
        started += !rc;
    }
    if (rc) {
        /* Threads wait at the start, so there is no way to end them but the end of the process. */
        failed(p, "cannot start a thread", strerror(rc));
        _exit(1);
    }
    lines_send(&p->lines, &(struct message){.kind = MESSAGE_READY, .who = {p->number, p->life, 0}});
    await_threads(p, started);
    for (int i = 0; i < started; i++)
        rc |= worker_join(&workers[i]);
    return rc;
}

int process_run(struct process *p)
{
    int rc = -1;
    p->ended = eventfd(0, EFD_CLOEXEC);
    if (p->ended < 0)
        failed(p, "no eventfd", strerror(errno));
    else if (!p->options->lock || open_client(p) == 0)
        rc = run_threads(p);
    close_client(p);
    return rc ? 1 : 0;
}
