/* SPDX-License-Identifier: Apache-2.0
 *
 * Cancel objects: a flag and a descriptor that becomes readable, which a signal handler may set.
 * References keep an object while calls wait with it. If a signal handler was the last user of an
 * object, the next zkl_cancel_new frees it. No lock: everything is atomic. Users call this file,
 * and every call that takes a struct zkl_wait; wait.c and the service thread sleep on the
 * descriptor. */
#include "cancel.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "driver/driver.h"
#include "error.h"

/* Objects whose last user was zkl_cancel_set, which a signal handler may have called: it may close
 * their descriptor, but not free them. */
static _Atomic(struct zkl_cancel *) dead;

static void bury(struct zkl_cancel *cancel)
{
    cancel->next_dead = atomic_load(&dead);
    while (!atomic_compare_exchange_weak(&dead, &cancel->next_dead, cancel))
        ;
}

static void free_dead(void)
{
    struct zkl_cancel *cancel = atomic_exchange(&dead, NULL);
    while (cancel) {
        struct zkl_cancel *next = cancel->next_dead;
        free(cancel);
        cancel = next;
    }
}

/* True if that was the last reference: only the memory is left. */
static bool put(struct zkl_cancel *cancel)
{
    if (atomic_fetch_sub(&cancel->refs, 1) > 1)
        return false;
    ZKL_SHIELDED(); /* close and write are cancellation points */
    close(cancel->fd);
    return true;
}

int zkl_cancel_new(struct zkl_cancel **cancel)
{
    if (!cancel)
        return zkl_fail(ZKL_EINVAL, "zkl_cancel_new: cancel is NULL");
    free_dead();
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

static void make_readable(const struct zkl_cancel *cancel)
{
    if (cancel->fork_generation != zkl_fork_generation())
        return;
    ZKL_SHIELDED();
    zkl_event_set(cancel->fd);
}

void zkl_cancel_set(struct zkl_cancel *cancel)
{
    if (!cancel)
        return;
    int error = errno;
    /* A caller that sees the bit may free the object, before its descriptor was written to. */
    zkl_cancel_ref(cancel);
    if (atomic_exchange(&cancel->set, 1) == 0)
        make_readable(cancel);
    if (put(cancel))
        bury(cancel);
    errno = error;
}

int zkl_cancel_is_set(const struct zkl_cancel *cancel)
{
    return cancel && atomic_load((atomic_int *)&cancel->set);
}

struct zkl_cancel *zkl_cancel_ref(struct zkl_cancel *cancel)
{
    if (cancel)
        atomic_fetch_add(&cancel->refs, 1);
    return cancel;
}

void zkl_cancel_free(struct zkl_cancel *cancel)
{
    if (cancel && put(cancel))
        free(cancel);
    free_dead();
}

int zkl_cancel_check(const struct zkl_cancel *cancel, const char *who)
{
    if (cancel && cancel->fork_generation != zkl_fork_generation())
        return zkl_fail(ZKL_EFORK, "%s: the parent process created the cancel object", who);
    return 0;
}
