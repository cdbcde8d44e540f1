/* SPDX-License-Identifier: Apache-2.0
 *
 * The asynchronous twins of a multi-lock's calls: operations that take the same steps as a thread
 * does (multi_acquire.c, multi_release.c), without a thread. Until its callback such an operation
 * has its owner for itself. Users call this file without any lock held; the steps run with the
 * client's lock, the callback without it. */
#include <zklock/async.h>

#include <stdlib.h>

#include "counts.h"
#include "error.h"
#include "multi.h"
#include "op.h"

/* The codes of a wrong call, which are returned and not called back. */
static bool is_wrong(int rc)
{
    return (rc < 0 && rc >= ZKL_EOVERFLOW) || rc == ZKL_ENOMEM || rc == ZKL_ESYSTEM;
}

static int check_owner(zkl_done_fn fn, const struct zkl_owner *owner, const char *call)
{
    return fn ? zkl_owner_check_idle(owner, call) : zkl_fail(ZKL_EINVAL, "%s: fn is NULL", call);
}

static int make_busy(struct zkl_owner *owner, const char *call)
{
    if (zkl_owner_make_busy(owner))
        return 0;
    return zkl_fail(ZKL_EBUSY, "%s: the operation of another multi-lock uses the owner", call);
}

/* --- acquire ------------------------------------------------------------ */

struct acquiring {
    struct zkl_op op; /* first */
    struct zkl_owner *owner;
    struct zkl_multi *multi;     /* in use until the callback */
    struct zkl_attempt *attempt; /* NULL: the outcome was known at the start */
    struct zkl_grant *grants;    /* the caller's, or NULL */
};

static int step_acquiring(struct zkl_op *op, int64_t *next_ns)
{
    return zkl_attempt_step(((struct acquiring *)op)->attempt, next_ns);
}

static void acquiring_decided(struct zkl_op *op, int rc)
{
    struct acquiring *a = (struct acquiring *)op;
    if (a->attempt)
        zkl_attempt_end(a->attempt, rc);
}

static void cancel_acquiring(struct zkl_op *op)
{
    zkl_attempt_cancel(((struct acquiring *)op)->attempt);
}

static int finish_acquiring(struct zkl_op *op, int rc)
{
    struct acquiring *a = (struct acquiring *)op;
    struct zkl_owner *before = zkl_owner_use(a->owner);
    if (a->attempt)
        rc = zkl_attempt_finish(a->attempt, rc, false);
    if (rc == 0)
        zkl_multi_fill_grants(a->multi, a->grants);
    zkl_owner_put_back(before);
    zkl_owner_make_idle(a->owner);
    atomic_fetch_sub(&a->multi->uses, 1);
    return rc == 0 || a->attempt ? rc : zkl_fail(rc, "the result was known at the start");
}

static const struct zkl_op_kind acquiring_kind = {
    .step = step_acquiring,
    .decided = acquiring_decided,
    .cancel = cancel_acquiring,
    .finish = finish_acquiring,
};

/* With what it waits for made, or its outcome, rc, known. */
static int begin_locked(struct acquiring *a, int rc, uint64_t *id)
{
    int begun = zkl_op_begin(&a->op, id);
    if (begun != 0)
        return begun;
    if (!a->attempt) {
        zkl_op_decide(&a->op, rc);
        return 0;
    }
    begun = zkl_attempt_begin(a->attempt, &a->op);
    if (begun == 0)
        zkl_op_step(&a->op);
    else
        zkl_op_withdraw(&a->op);
    return begun;
}

/* 0, or it was not begun: without an attempt nothing is left of it. */
static int begin(struct acquiring *a, int rc, uint64_t *id)
{
    struct zkl_driver *d = a->multi->client->driver;
    zkl_driver_lock(d);
    int begun = begin_locked(a, rc, id);
    zkl_driver_unlock(d);
    if (begun == 0)
        return 0;
    zkl_fail(begun, "zkl_multi_acquire_async: the operation did not start");
    if (a->attempt)
        zkl_attempt_finish(a->attempt, begun, true);
    return begun;
}

/* rc: the result of the checks so far. A fault is returned; any other failure reaches the
 * callback. */
static int prepare(struct acquiring *a, int rc, const struct zkl_wait *wait)
{
    if (rc == 0) {
        a->attempt = zkl_attempt_new(a->multi, wait);
        rc = a->attempt ? zkl_attempt_prepare(a->attempt)
                        : zkl_fail(ZKL_ENOMEM, "zkl_multi_acquire_async");
    }
    if (rc != 0 && a->attempt)
        zkl_attempt_finish(a->attempt, rc, true);
    if (rc == 0)
        return 0;
    a->attempt = NULL;
    if (!is_wrong(rc))
        zkl_op_know(&a->op, rc);
    return rc;
}

static int acquire(struct acquiring *a, int rc, const struct zkl_wait *wait, uint64_t *id)
{
    rc = prepare(a, rc, wait);
    return is_wrong(rc) ? rc : begin(a, rc, id);
}

/* As the owner, which is busy from here on. rc: as above. */
static int start_acquiring(struct zkl_owner *owner, struct zkl_multi *multi, int rc,
                           const struct zkl_wait *wait, struct zkl_grant *grants, zkl_done_fn fn,
                           void *arg, uint64_t *id)
{
    struct acquiring *a = zkl_op_new(sizeof *a, multi->client, &acquiring_kind, fn, arg);
    if (!a)
        return zkl_fail(ZKL_ENOMEM, "zkl_multi_acquire_async");
    a->owner = owner;
    a->multi = multi;
    a->grants = grants;
    atomic_fetch_add(&multi->uses, 1);
    rc = acquire(a, rc, wait, id);
    if (rc == 0)
        return 0;
    atomic_fetch_sub(&multi->uses, 1);
    zkl_op_free(&a->op);
    return rc;
}

static int acquire_as(struct zkl_owner *owner, struct zkl_multi *multi, const struct zkl_wait *wait,
                      struct zkl_grant *grants, zkl_done_fn fn, void *arg, uint64_t *id)
{
    struct zkl_owner *before = zkl_owner_use(owner);
    int known = zkl_multi_check_members(multi, wait), rc = known;
    if (!is_wrong(known)) {
        rc = make_busy(owner, "zkl_multi_acquire_async");
        if (rc == 0) {
            rc = start_acquiring(owner, multi, known, wait, grants, fn, arg, id);
            if (rc != 0)
                zkl_owner_make_idle(owner);
        }
    }
    zkl_owner_put_back(before);
    return rc;
}

int zkl_multi_acquire_async(struct zkl_owner *owner, struct zkl_multi *multi,
                            const struct zkl_wait *wait, struct zkl_grant *grants, zkl_done_fn fn,
                            void *arg, uint64_t *op)
{
    static const char call[] = "zkl_multi_acquire_async";
    struct zkl_wait ours;
    int rc = zkl_wait_take(&ours, wait, call);
    if (rc == 0)
        rc = zkl_multi_check_acquire(multi, &ours, grants, call, false);
    if (rc == 0)
        rc = check_owner(fn, owner, call);
    if (rc == 0)
        rc = zkl_cancel_check(ours.cancel, call);
    if (rc != 0)
        return rc;
    int shield = zkl_shield();
    rc = acquire_as(owner, multi, &ours, grants, fn, arg, op);
    zkl_shield_end(shield);
    return rc;
}

/* --- unlock ------------------------------------------------------------- */

struct unlocking {
    struct zkl_op op; /* first */
    struct zkl_owner *owner;
    struct zkl_unlocking u;
    int *codes; /* the caller's, or NULL */
};

static int step_unlocking(struct zkl_op *op, int64_t *next_ns)
{
    (void)next_ns; /* bounded by the core: the link breaks, or the window ends */
    return zkl_unlocking_is_over(&((struct unlocking *)op)->u) ? 0 : ZKL_GOES_ON;
}

static int finish_unlocking(struct zkl_op *op, int rc)
{
    struct unlocking *u = (struct unlocking *)op;
    rc = zkl_unlocking_end(&u->u, u->codes);
    zkl_owner_make_idle(u->owner);
    return rc;
}

static const struct zkl_op_kind unlocking_kind = {
    .step = step_unlocking,
    .finish = finish_unlocking,
};

static struct unlocking *new_unlocking(struct zkl_owner *owner, struct zkl_multi *multi, int *codes,
                                       zkl_done_fn fn, void *arg)
{
    struct unlocking *u = zkl_op_new(sizeof *u, multi->client, &unlocking_kind, fn, arg);
    if (!u)
        return NULL;
    u->owner = owner;
    u->codes = codes;
    return u;
}

static void unlock_in_steps(struct unlocking *u, struct zkl_multi *multi)
{
    zkl_unlocking_collect(&u->u, multi);
    zkl_driver_lock(multi->client->driver);
    zkl_unlocking_begin(&u->u, &u->op);
    zkl_op_step(&u->op);
    zkl_driver_unlock(multi->client->driver);
}

/* The client is closed: there is nothing to wait for, and no callback will come. */
static int unlock_closed(struct zkl_multi *multi, int *codes)
{
    struct zkl_unlocking u;
    zkl_unlocking_collect(&u, multi);
    zkl_unlocking_wait(&u);
    return zkl_unlocking_end(&u, codes);
}

/* As the owner, which is busy from here on. */
static int start_unlocking(struct zkl_owner *owner, struct zkl_multi *multi, int *codes,
                           zkl_done_fn fn, void *arg)
{
    struct unlocking *u = new_unlocking(owner, multi, codes, fn, arg);
    if (!u)
        return zkl_fail(ZKL_ENOMEM, "zkl_multi_unlock_async");
    zkl_driver_lock(multi->client->driver);
    int rc = zkl_op_begin(&u->op, NULL);
    zkl_driver_unlock(multi->client->driver);
    if (rc == 0) {
        unlock_in_steps(u, multi);
        return 0;
    }
    zkl_op_free(&u->op);
    return rc == ZKL_ECLOSED ? unlock_closed(multi, codes)
                             : zkl_fail(rc, "zkl_multi_unlock_async: the operation did not start");
}

static int unlock_as(struct zkl_owner *owner, struct zkl_multi *multi, int *codes, zkl_done_fn fn,
                     void *arg)
{
    static const char call[] = "zkl_multi_unlock_async";
    struct zkl_owner *before = zkl_owner_use(owner);
    int rc = zkl_multi_check_unlock(multi, call, false);
    if (rc == 0)
        rc = make_busy(owner, call);
    if (rc == 0) {
        rc = start_unlocking(owner, multi, codes, fn, arg);
        if (rc != 0)
            zkl_owner_make_idle(owner);
    }
    zkl_owner_put_back(before);
    return rc;
}

int zkl_multi_unlock_async(struct zkl_owner *owner, struct zkl_multi *multi, int *codes,
                           zkl_done_fn fn, void *arg)
{
    static const char call[] = "zkl_multi_unlock_async";
    if (!multi)
        return zkl_fail(ZKL_EINVAL, "%s: multi is NULL", call);
    int rc = zkl_client_check(multi->client, false, call);
    if (rc == 0)
        rc = check_owner(fn, owner, call);
    if (rc != 0)
        return rc;
    int shield = zkl_shield();
    rc = unlock_as(owner, multi, codes, fn, arg);
    zkl_shield_end(shield);
    return rc;
}
