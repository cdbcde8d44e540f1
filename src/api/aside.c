/* SPDX-License-Identifier: Apache-2.0
 * The twins of a multi-lock's calls, which are made of several waits: each is that very call, on a thread made for
 * it. */
#include <zklock/async.h>

#include <stdlib.h>

#include "checks.h"
#include "error.h"
#include "hold.h"
#include "op.h"
#include "owner.h"

struct aside {
    struct zkl_op op; /* first */
    pthread_t thread;
    int (*call)(struct aside *a);
    struct zkl_owner *owner;   /* which it has for itself */
    struct zkl_cancel *cancel; /* ends the call; NULL: nothing does */
    struct zkl_wait wait;
    struct zkl_multi *multi;
    struct zkl_grant *grants; /* the caller's, as the next */
    int *codes;
};

/* --- the thread --------------------------------------------------------- */

static int step(struct zkl_op *op, int64_t *next_ns)
{
    (void)op, (void)next_ns; /* the thread decides it */
    return ZKL_GOES_ON;
}

static void decided(struct zkl_op *op, int rc)
{
    (void)rc;
    if (op->cancel)
        zkl_cancel_unuse(op->client, op->cancel);
}

static void cancel(struct zkl_op *op)
{
    zkl_cancel_set(((struct aside *)op)->cancel);
}

static int finish(struct zkl_op *op, int rc)
{
    struct aside *a = (struct aside *)op;
    pthread_join(a->thread, NULL);
    zkl_owner_make_idle(a->owner);
    zkl_multi_put(a->multi); /* which was in use from the start on */
    zkl_cancel_free(a->cancel);
    return rc == 0 ? 0 : zkl_fail(rc, "of the operation");
}

static const struct zkl_op_kind kind = {
    .step = step, .decided = decided, .cancel = cancel, .finish = finish};

static void *run(void *arg)
{
    struct aside *a = arg;
    struct zkl_driver *d = a->op.client->driver;
    zkl_owner_use(a->owner);
    int rc = a->call(a);
    zkl_op_know(&a->op, rc);
    zkl_driver_lock(d);
    zkl_op_decide(&a->op, rc);
    zkl_driver_unlock(d);
    return NULL;
}

/* --- starting it -------------------------------------------------------- */

/* NULL: no memory. */
static struct aside *new_aside(struct zkl_owner *owner, struct zkl_multi *multi,
                               int (*call)(struct aside *a), zkl_done_fn fn, void *arg)
{
    struct aside *a = zkl_op_new(sizeof *a, zkl_multi_client(multi), &kind, fn, arg);
    if (!a)
        return NULL;
    a->call = call;
    a->owner = owner;
    a->multi = multi;
    return a;
}

/* The call gets a cancel object of its own, which the caller's and zkl_op_cancel set. */
static int take_wait(struct aside *a, const struct zkl_wait *wait)
{
    a->wait = *wait;
    a->op.cancel = wait->cancel;
    int rc = zkl_cancel_new(&a->cancel);
    a->wait.cancel = a->cancel;
    return rc;
}

static int begin_locked(struct aside *a, uint64_t *id)
{
    struct zkl_client *client = a->op.client;
    struct zkl_cancel *theirs = a->op.cancel;
    int rc = theirs ? zkl_cancel_use(client, theirs) : 0;
    if (rc != 0)
        return rc;
    rc = zkl_op_begin(&a->op, id);
    if (rc == 0 && zkl_thread_start(&a->thread, run, a) != 0) {
        zkl_op_withdraw(&a->op);
        rc = ZKL_ESYSTEM;
    }
    if (rc != 0 && theirs)
        zkl_cancel_unuse(client, theirs);
    else if (zkl_cancel_is_set(theirs))
        zkl_cancel_set(a->cancel);
    return rc;
}

/* a NULL: no memory. rc: of what was to be done before. */
static int start(struct aside *a, int rc, uint64_t *id, const char *call)
{
    if (!a)
        return zkl_fail(ZKL_ENOMEM, "%s", call);
    if (rc == 0 && !zkl_owner_make_busy(a->owner))
        rc = zkl_fail(ZKL_EBUSY, "%s: another multi-lock's operation has the owner", call);
    if (rc == 0) {
        zkl_multi_use(a->multi);
        zkl_driver_lock(a->op.client->driver);
        rc = begin_locked(a, id);
        zkl_driver_unlock(a->op.client->driver);
        if (rc == 0)
            return 0;
        zkl_multi_put(a->multi);
        zkl_fail(rc, "%s: it was not begun", call);
        zkl_owner_make_idle(a->owner);
    }
    zkl_cancel_free(a->cancel);
    zkl_op_free(&a->op);
    return rc;
}

static int check_fn(zkl_done_fn fn, const char *call)
{
    return fn ? 0 : zkl_fail(ZKL_EINVAL, "%s: fn is NULL", call);
}

/* --- multi-locks -------------------------------------------------------- */

static int call_multi_acquire(struct aside *a)
{
    return zkl_multi_acquire(a->multi, &a->wait, a->grants);
}

int zkl_multi_acquire_async(struct zkl_owner *owner, struct zkl_multi *multi,
                            const struct zkl_wait *wait, struct zkl_grant *grants, zkl_done_fn fn,
                            void *arg, uint64_t *op)
{
    static const char call[] = "zkl_multi_acquire_async";
    struct zkl_wait forever = ZKL_WAIT_INIT;
    if (!wait)
        wait = &forever;
    int rc = check_fn(fn, call);
    if (rc == 0)
        rc = zkl_multi_check_acquire(multi, wait, grants, call, false);
    if (rc == 0)
        rc = zkl_owner_check_idle(owner, call);
    if (rc == 0)
        rc = zkl_cancel_check(wait->cancel, call);
    if (rc != 0)
        return rc;
    int shield = zkl_shield();
    struct zkl_owner *before = zkl_owner_use(owner);
    rc = zkl_multi_check_members(multi);
    zkl_owner_use(before);
    if (rc == 0) {
        struct aside *a = new_aside(owner, multi, call_multi_acquire, fn, arg);
        if (a) {
            a->grants = grants;
            rc = take_wait(a, wait);
        }
        rc = start(a, rc, op, call);
    }
    zkl_shield_end(shield);
    return rc;
}

static int call_multi_unlock(struct aside *a)
{
    return zkl_multi_unlock(a->multi, a->codes);
}

static int unlock_closed(struct zkl_owner *owner, struct zkl_multi *multi, int *codes)
{
    struct zkl_owner *before = zkl_owner_use(owner);
    int rc = zkl_multi_unlock_checked(multi, codes);
    zkl_owner_use(before);
    return rc;
}

int zkl_multi_unlock_async(struct zkl_owner *owner, struct zkl_multi *multi, int *codes,
                           zkl_done_fn fn, void *arg)
{
    static const char call[] = "zkl_multi_unlock_async";
    int rc = check_fn(fn, call);
    if (rc == 0 && !multi)
        rc = zkl_fail(ZKL_EINVAL, "%s: multi is NULL", call);
    if (rc == 0)
        rc = zkl_client_check(zkl_multi_client(multi), false, call);
    if (rc == 0)
        rc = zkl_owner_check_idle(owner, call);
    if (rc != 0)
        return rc;
    int shield = zkl_shield();
    struct zkl_owner *before = zkl_owner_use(owner);
    rc = zkl_multi_check_unlock(multi, call, false);
    zkl_owner_use(before);
    if (rc == 0) {
        struct aside *a = new_aside(owner, multi, call_multi_unlock, fn, arg);
        if (a)
            a->codes = codes;
        rc = start(a, 0, NULL, call);
    }
    if (rc == ZKL_ECLOSED) /* nothing is to be waited for, and there will be no callback */
        rc = unlock_closed(owner, multi, codes);
    zkl_shield_end(shield);
    return rc;
}
