/* SPDX-License-Identifier: Apache-2.0 */
/* Locks in a libuv loop: at most two of five downloads at a time, in all programs that use this
 * semaphore. A uv_poll_t polls the client's descriptor, and a timer stands for each download. */
#include <zklock/async.h>

#include <stdio.h>
#include <stdlib.h>
#include <uv.h>

#define DOWNLOADS 5

static struct download {
    struct zkl_permit *permit;
    uv_timer_t timer;
} downloads[DOWNLOADS];
static uv_poll_t callbacks;
static int running, most, left = DOWNLOADS, failures;

static void released(int code, void *arg)
{
    (void)arg;
    if (code != 0)
        fprintf(stderr, "libuv: %s\n", zkl_error_detail());
    failures += code != 0;
    if (--left == 0)
        uv_close((uv_handle_t *)&callbacks, NULL); /* the loop ends: nothing else is open */
}

static void downloaded(uv_timer_t *timer)
{
    struct download *d = (struct download *)timer->data;
    if (most < 2)
        return; /* the first one lasts until another one runs beside it */
    running--;
    uv_close((uv_handle_t *)timer, NULL);
    int rc = zkl_permit_release_async(d->permit, released, d);
    if (rc != 0) /* then no callback comes */
        released(rc, d);
}

static void admitted(int code, void *arg)
{
    struct download *d = (struct download *)arg;
    if (code != 0) {
        released(code, d);
        return;
    }
    running++;
    most = running > most ? running : most;
    printf("download %td begins, %d at a time\n", d - downloads, running);
    d->timer.data = d;
    uv_timer_init(uv_default_loop(), &d->timer);
    uv_timer_start(&d->timer, downloaded, 100, 100);
}

static void readable(uv_poll_t *poll, int status, int events)
{
    (void)status, (void)events;
    zkl_client_dispatch((struct zkl_client *)poll->data, 100);
}

int main(int argc, char **argv)
{
    struct zkl_client_options options = ZKL_CLIENT_OPTIONS_INIT;
    struct zkl_client *client;
    struct zkl_semaphore *semaphore;
    options.servers = argc > 1 ? argv[1] : getenv("ZKLOCK_SERVERS");
    if (zkl_client_open(&client, &options) ||
        zkl_semaphore_new(&semaphore, client, "/zklock/examples/libuv", 2, NULL) ||
        uv_poll_init(uv_default_loop(), &callbacks, zkl_client_event_fd(client)))
        return fprintf(stderr, "libuv: HOST:PORT, or ZKLOCK_SERVERS: %s\n", zkl_error_detail()) > 0;
    callbacks.data = client;
    uv_poll_start(&callbacks, UV_READABLE, readable);
    for (struct download *d = downloads; d < downloads + DOWNLOADS; d++)
        failures += zkl_semaphore_acquire_async(semaphore, 1, NULL, &d->permit, admitted, d, NULL);
    uv_run(uv_default_loop(), UV_RUN_DEFAULT);
    uv_loop_close(uv_default_loop());
    return failures != 0 || most != 2 || zkl_semaphore_free(semaphore) || zkl_client_free(client);
}
