/* SPDX-License-Identifier: Apache-2.0
 *
 * Events: descriptors that are readable or not, for threads that sleep on descriptors. An event
 * owns one descriptor, which exec closes. No lock: any thread may set an event, and so may a signal
 * handler. dispatch.c, descriptors.c, mutex.c and src/api/cancel.c have events. */
#include "driver.h"

#include <assert.h>
#include <errno.h>
#include <unistd.h>

void zkl_event_set(int fd)
{
    uint64_t one = 1;
    while (write(fd, &one, sizeof one) < 0 && errno == EINTR)
        ;
}

void zkl_event_clear(int fd)
{
    uint64_t n;
    if (read(fd, &n, sizeof n) < 0 && errno != EAGAIN)
        assert(errno == EINTR);
}
