/* SPDX-License-Identifier: Apache-2.0
 *
 * The descriptors that the service thread sleeps on: its own, which wakes it, and those of waits
 * and operations (cancel objects). This file owns the array, not the descriptors. It runs under the
 * client's mutex, except during the sleep. driver.c makes it, service.c sleeps on it,
 * src/api/wait.c adds and removes descriptors. */
#include "driver.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <zklock/zklock.h>

#define MS INT64_C(1000000)

int zkl_descriptors_init(struct zkl_driver *d)
{
    d->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    d->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    struct epoll_event event = {.events = EPOLLIN, .data.u64 = 0};
    if (d->epoll_fd < 0 || d->wake_fd < 0 ||
        epoll_ctl(d->epoll_fd, EPOLL_CTL_ADD, d->wake_fd, &event) != 0)
        return ZKL_ESYSTEM;
    return 0;
}

void zkl_descriptors_fini(struct zkl_driver *d)
{
    if (d->epoll_fd >= 0)
        close(d->epoll_fd);
    if (d->wake_fd >= 0)
        close(d->wake_fd);
    if (d->event_fd >= 0)
        close(d->event_fd);
}

int zkl_driver_watch_fd(struct zkl_driver *d, struct zkl_fd_watch *watch)
{
    watch->number = ++d->last_fd_watch;
    struct epoll_event event = {.events = EPOLLIN, .data.u64 = watch->number};
    if (epoll_ctl(d->epoll_fd, EPOLL_CTL_ADD, watch->fd, &event) != 0)
        return ZKL_ESYSTEM;
    watch->next = d->fds;
    d->fds = watch;
    return 0;
}

void zkl_driver_unwatch_fd(struct zkl_driver *d, struct zkl_fd_watch *watch)
{
    for (struct zkl_fd_watch **at = &d->fds; *at; at = &(*at)->next) {
        if (*at == watch) {
            *at = watch->next;
            epoll_ctl(d->epoll_fd, EPOLL_CTL_DEL, watch->fd, NULL);
            return;
        }
    }
}

static int wait_ms(int64_t until)
{
    if (until == INT64_MAX)
        return -1;
    int64_t ns = until - zkl_clock_mono_ns();
    if (ns <= 0)
        return 0;
    return ns > 60000 * MS ? 60000 : (int)((ns + MS - 1) / MS);
}

static void on_readable(struct zkl_driver *d, uint64_t number)
{
    if (number == 0) {
        zkl_event_clear(d->wake_fd);
        return;
    }
    /* Whoever registered it may have left since epoll_wait returned. */
    for (struct zkl_fd_watch *w = d->fds; w; w = w->next) {
        if (w->number == number) {
            epoll_ctl(d->epoll_fd, EPOLL_CTL_DEL, w->fd, NULL);
            w->readable(d->config.arg, w);
            return;
        }
    }
}

void zkl_descriptors_sleep(struct zkl_driver *d, int64_t until_mono_ns)
{
    struct epoll_event events[16];
    d->service_until = until_mono_ns;
    zkl_driver_unlock(d);
    int n = epoll_wait(d->epoll_fd, events, 16, wait_ms(until_mono_ns));
    zkl_driver_lock(d);
    d->service_until = 0;
    for (int i = 0; i < n; i++)
        on_readable(d, events[i].data.u64);
}
