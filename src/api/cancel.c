/* SPDX-License-Identifier: Apache-2.0 */
#include "cancel.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "driver/driver.h"
#include "error.h"

int zkl_cancel_new(struct zkl_cancel **cancel)
{
    if (!cancel)
        return zkl_fail(ZKL_EINVAL, "zkl_cancel_new: cancel is NULL");
    struct zkl_cancel *c = malloc(sizeof *c);
    if (!c)
        return zkl_fail(ZKL_ENOMEM, "zkl_cancel_new");
    zkl_fork_watch();
    c->fork_generation = zkl_fork_generation();
    atomic_init(&c->set, 0);
    atomic_init(&c->refs, 1);
    c->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (c->fd < 0) {
        free(c);
        return zkl_fail(ZKL_ESYSTEM, "zkl_cancel_new: no descriptor");
    }
    *cancel = c;
    return 0;
}

void zkl_cancel_set(struct zkl_cancel *cancel)
{
    if (!cancel || atomic_exchange(&cancel->set, 1) != 0 ||
        cancel->fork_generation != zkl_fork_generation())
        return;
    int error = errno, shield = zkl_shield(); /* write is a cancellation point */
    zkl_event_set(cancel->fd);
    zkl_shield_end(shield);
    errno = error;
}

int zkl_cancel_is_set(const struct zkl_cancel *cancel)
{
    return cancel && atomic_load((atomic_int *)&cancel->set);
}

struct zkl_cancel *zkl_cancel_ref(struct zkl_cancel *cancel)
{
    atomic_fetch_add(&cancel->refs, 1);
    return cancel;
}

void zkl_cancel_free(struct zkl_cancel *cancel)
{
    if (!cancel || atomic_fetch_sub(&cancel->refs, 1) > 1)
        return;
    int shield = zkl_shield();
    close(cancel->fd);
    zkl_shield_end(shield);
    free(cancel);
}

int zkl_cancel_check(const struct zkl_cancel *cancel, const char *who)
{
    if (cancel && cancel->fork_generation != zkl_fork_generation())
        return zkl_fail(ZKL_EFORK, "%s: the cancel object was made by the parent process", who);
    return 0;
}
