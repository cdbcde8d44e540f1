/* SPDX-License-Identifier: Apache-2.0
 *
 * The asynchronous twins of the calls that acquire and release: one lock, permits of one semaphore,
 * or a multi-lock. Each call owns an operation (op.c) from the call to its callback, and takes the
 * same steps as a blocking call (attempt.c, wait.c, multi_release.c), without a thread. Until its
 * callback the operation of a multi-lock has its owner for itself. Users call this file from any
 * thread, without a lock held. The steps run with the client's mutex, callbacks without it. */
#include <zklock/async.h>

#include <stdlib.h>

#include "attempt.h"
#include "counts.h"
#include "error.h"
#include "multi.h"
#include "op.h"

/* The codes of a wrong call, and of one that could not begin, which are returned and not called
 * back. */
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
    struct zkl_op op;            /* first */
    struct zkl_attempt *attempt; /* NULL: the outcome was known at the start */
    struct zkl_owner *owner;     /* that acquires; NULL: of permits */
    struct zkl_mutex *mutex;     /* of one: where it counts; the caller's, of one that waits */
    struct zkl_multi *multi;     /* or NULL; in use until the callback */
    struct zkl_place *again;     /* that was entered again; with a reference, */
    int hold_count;              /* and how often it was then */
    struct zkl_grant *grants;    /* the caller's, or NULL */
    struct zkl_permit **permits; /* likewise */
    struct zkl_attempt_of_one one;
};

static int step_acquiring(struct zkl_op *op, int64_t *next_ns)
{
    return zkl_attempt_step(((struct acquiring *)op)->attempt, next_ns);
}

static void acquiring_decided(struct zkl_op *op, int rc)
{
    struct acquiring *a = (struct acquiring *)op;
    if (a->attempt)
        zkl_attempt_end(a->attempt, rc); /* a semaphore's mutex may be freed from here on */
}

static void cancel_acquiring(struct zkl_op *op)
{
    zkl_attempt_cancel(((struct acquiring *)op)->attempt);
}

static int finish_attempt(struct acquiring *a, int rc, bool said)
{
    if (a->multi)
        return zkl_multi_attempt_finish(a->attempt, rc, said);
    return zkl_attempt_finish_one(&a->one, a->mutex, rc, said, a->grants, a->permits);
}

/* As the owner. The owner's last unlock of what it entered again may have come, and freed the
 * hold. */
static int report(struct acquiring *a, int rc)
{
    if (a->attempt)
        rc = finish_attempt(a, rc, false);
    else if (rc != 0)
        zkl_fail(rc, "the result was known at the start");
    if (a->multi && rc == 0)
        zkl_multi_fill_grants(a->multi, a->grants);
    else if (a->again)
        zkl_mutex_fill_grant(a->grants, a->again, a->hold_count);
    return rc;
}

static int finish_acquiring(struct zkl_op *op, int rc)
{
    struct acquiring *a = (struct acquiring *)op;
    struct zkl_owner *before = zkl_owner_use(a->owner);
    rc = report(a, rc);
    zkl_owner_put_back(before);
    if (a->again)
        zkl_place_unref(a->again);
    if (a->multi) {
        zkl_owner_make_idle(a->owner);
        atomic_fetch_sub(&a->multi->uses, 1);
    }
    return rc;
}

static const struct zkl_op_kind acquiring_kind = {
    .step = step_acquiring,
    .decided = acquiring_decided,
    .cancel = cancel_acquiring,
    .finish = finish_acquiring,
};

static struct acquiring *new_acquiring(struct zkl_client *client, struct zkl_owner *owner,
                                       zkl_done_fn fn, void *arg)
{
    struct acquiring *a = zkl_op_new(sizeof *a, client, &acquiring_kind, fn, arg);
    if (a)
        a->owner = owner;
    return a;
}

/* There is nothing to wait for. A fault is returned; any other failure reaches the callback. */
static int know(struct acquiring *a, int rc)
{
    if (is_wrong(rc))
        return rc;
    zkl_op_know(&a->op, rc);
    if (rc != 0 && a->mutex)
        zkl_count_failure(a->mutex, rc);
    return 0;
}

static int begin_locked(struct acquiring *a, uint64_t *id)
{
    int rc = zkl_op_begin(&a->op, id);
    if (rc != 0)
        return rc;
    if (!a->attempt) {
        zkl_op_decide(&a->op, a->op.rc);
        return 0;
    }
    rc = zkl_attempt_begin(a->attempt, &a->op);
    if (rc == 0)
        zkl_op_step(&a->op);
    else
        zkl_op_withdraw(&a->op);
    return rc;
}

/* With what it waits for made, or its outcome known. 0, or it has not begun. */
static int begin(struct acquiring *a, uint64_t *id)
{
    struct zkl_driver *d = a->op.client->driver;
    zkl_driver_lock(d);
    int rc = begin_locked(a, id);
    zkl_driver_unlock(d);
    return rc == 0 ? 0
                   : zkl_fail(rc, "%sthe operation did not start",
                              a->multi ? "zkl_multi_acquire_async: " : "");
}

/* --- a mutex, or permits -------------------------------------------------- */

static void enter_again(struct acquiring *a, struct zkl_hold *hold)
{
    zkl_hold_enter(hold);
    a->one.share.own = hold;
    a->hold_count = hold->count;
    a->again = hold->place;
    atomic_fetch_add(&a->again->refs, 1);
}

/* As the owner. All of these: 0, or the fault. */
static int want_own(struct acquiring *a, struct zkl_mutex *mutex, const struct zkl_wait *wait)
{
    struct zkl_hold *own, *other;
    int rc = zkl_mutex_check_owner(mutex, &own, &other);
    bool again = rc == 0 && own;
    if (again)
        enter_again(a, own);
    else if (rc == 0)
        rc = zkl_wait_check_over(wait, mutex->lock_path->path);
    if (again || rc != 0)
        return know(a, rc);
    rc = zkl_hold_new(&own, mutex);
    if (rc != 0)
        return rc;
    a->attempt = &a->one.attempt;
    rc = zkl_attempt_of_mutex(&a->one, own, other, wait);
    if (rc == 0) {
        a->one.share.comes = true;
        zkl_owner_add(own);
    }
    return rc;
}

static int want_permits(struct acquiring *a, struct zkl_semaphore *semaphore, int count,
                        const struct zkl_wait *wait)
{
    a->attempt = &a->one.attempt;
    return zkl_attempt_of_permits(&a->one, semaphore, count, wait);
}

/* For a semaphore's mutex: the hold is the handle's. */
static int want_handle(struct acquiring *a, struct zkl_mutex *mutex, const struct zkl_wait *wait)
{
    int rc = zkl_wait_check_over(wait, mutex->semaphore->path->path);
    if (rc == 0)
        rc = zkl_semaphore_check_handle(mutex, wait);
    return rc == 0 ? want_permits(a, mutex->semaphore, 1, wait) : know(a, rc);
}

static int want_some(struct acquiring *a, struct zkl_semaphore *semaphore, int count,
                     const struct zkl_wait *wait)
{
    int rc = zkl_semaphore_check_count(semaphore, count);
    if (rc != 0)
        return rc;
    rc = zkl_wait_check_over(wait, semaphore->path->path);
    return rc == 0 ? want_permits(a, semaphore, count, wait) : know(a, rc);
}

/* It has not begun; the failure is in words. */
static void undo(struct acquiring *a, int rc)
{
    if (a->attempt) {
        finish_attempt(a, rc, true);
        return;
    }
    if (a->again) {
        zkl_hold_leave(a->one.share.own);
        zkl_place_unref(a->again);
    }
    if (a->mutex && a->op.rc == 0) /* a failure that was known is counted */
        zkl_count_failure(a->mutex, rc);
}

/* As the owner. rc: of what it wants. 0, or nothing is left of it. */
static int start(struct acquiring *a, int rc, uint64_t *id)
{
    if (rc == 0)
        rc = begin(a, id);
    if (rc == 0)
        return 0;
    undo(a, rc);
    zkl_op_free(&a->op);
    return rc;
}

static int check_acquire(const struct zkl_owner *owner, const struct zkl_mutex *mutex,
                         const struct zkl_wait *wait, const struct zkl_grant *grant, zkl_done_fn fn)
{
    static const char call[] = "zkl_mutex_acquire_async";
    if (!mutex || !fn)
        return zkl_fail(ZKL_EINVAL, "%s: %s is NULL", call, mutex ? "fn" : "mutex");
    int rc = zkl_grant_check(grant, call);
    if (rc == 0)
        rc = zkl_wait_check(wait, mutex->client, call, false);
    return rc == 0 ? zkl_owner_check_idle(owner, call) : rc;
}

/* Of one. path: of the lock. NULL: no memory. */
static struct acquiring *new_of_one(struct zkl_mutex *mutex, const char *path,
                                    struct zkl_owner *owner, zkl_done_fn fn, void *arg)
{
    struct acquiring *a = new_acquiring(mutex->client, owner, fn, arg);
    if (a)
        a->mutex = mutex;
    else
        zkl_count_failure(mutex, zkl_fail(ZKL_ENOMEM, "%s", path));
    return a;
}

static int acquire_mutex(struct acquiring *a, const struct zkl_wait *wait, uint64_t *id)
{
    struct zkl_mutex *mutex = a->mutex;
    struct zkl_owner *before = zkl_owner_use(a->owner);
    int rc = mutex->semaphore ? want_handle(a, mutex, wait) : want_own(a, mutex, wait);
    rc = start(a, rc, id);
    zkl_owner_put_back(before);
    return rc;
}

int zkl_mutex_acquire_async(struct zkl_owner *owner, struct zkl_mutex *mutex,
                            const struct zkl_wait *wait, struct zkl_grant *grant, zkl_done_fn fn,
                            void *arg, uint64_t *op)
{
    struct zkl_wait ours;
    int rc = zkl_wait_take(&ours, wait, "zkl_mutex_acquire_async");
    if (rc == 0)
        rc = check_acquire(owner, mutex, &ours, grant, fn);
    if (rc != 0)
        return rc;
    ZKL_SHIELDED();
    struct acquiring *a = new_of_one(mutex, mutex->lock_path->path, owner, fn, arg);
    rc = ZKL_ENOMEM;
    if (a) {
        a->grants = grant;
        rc = acquire_mutex(a, &ours, op);
    }
    return rc;
}

int zkl_semaphore_acquire_async(struct zkl_semaphore *semaphore, int count,
                                const struct zkl_wait *wait, struct zkl_permit **permits,
                                zkl_done_fn fn, void *arg, uint64_t *op)
{
    static const char call[] = "zkl_semaphore_acquire_async";
    struct zkl_wait ours;
    if (!fn)
        return zkl_fail(ZKL_EINVAL, "%s: fn is NULL", call);
    int rc = zkl_wait_take(&ours, wait, call);
    if (rc == 0)
        rc = zkl_semaphore_check_acquire(semaphore, count, &ours, permits, call, false);
    if (rc != 0)
        return rc;
    ZKL_SHIELDED();
    struct acquiring *a = new_of_one(&semaphore->base, semaphore->path->path, NULL, fn, arg);
    rc = ZKL_ENOMEM;
    if (a) {
        a->permits = permits;
        rc = start(a, want_some(a, semaphore, count, &ours), op);
    }
    return rc;
}

/* --- a multi-lock ---------------------------------------------------------- */

/* rc: of the checks so far, which have counted it. 0, or the fault. */
static int want_all(struct acquiring *a, int rc, const struct zkl_wait *wait)
{
    if (rc != 0)
        return know(a, rc);
    a->attempt = zkl_multi_attempt_new(a->multi, wait);
    if (!a->attempt)
        return zkl_fail(ZKL_ENOMEM, "zkl_multi_acquire_async");
    rc = zkl_multi_attempt_prepare(a->attempt);
    if (rc == 0)
        return 0;
    zkl_multi_attempt_finish(a->attempt, rc, true);
    a->attempt = NULL;
    return know(a, rc);
}

/* As the owner, which is busy from here on. rc: as above. */
static int start_multi(struct zkl_owner *owner, struct zkl_multi *multi, int rc,
                       const struct zkl_wait *wait, struct zkl_grant *grants, zkl_done_fn fn,
                       void *arg, uint64_t *id)
{
    struct acquiring *a = new_acquiring(multi->client, owner, fn, arg);
    if (!a)
        return zkl_fail(ZKL_ENOMEM, "zkl_multi_acquire_async");
    a->multi = multi;
    a->grants = grants;
    atomic_fetch_add(&multi->uses, 1);
    rc = start(a, want_all(a, rc, wait), id);
    if (rc != 0)
        atomic_fetch_sub(&multi->uses, 1);
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
            rc = start_multi(owner, multi, known, wait, grants, fn, arg, id);
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
    ZKL_SHIELDED();
    return acquire_as(owner, multi, &ours, grants, fn, arg, op);
}

/* --- release ------------------------------------------------------------ */

static int begin_op(struct zkl_op *op)
{
    zkl_driver_lock(op->client->driver);
    int rc = zkl_op_begin(op, NULL);
    zkl_driver_unlock(op->client->driver);
    return rc;
}

struct releasing {
    struct zkl_op op;        /* first */
    struct zkl_place *place; /* with a reference; NULL: there was more than one lock of it */
    struct zkl_caller caller;
    bool passed; /* another owner has the hold already, or the handle does */
};

static int step_releasing(struct zkl_op *op, int64_t *next_ns)
{
    const struct zkl_place *place = ((struct releasing *)op)->place;
    (void)next_ns; /* bounded by the core: the link breaks, or the window ends */
    return place->phase == ZKL_PHASE_GRANTED ? ZKL_GOES_ON : place->code;
}

static void releasing_decided(struct zkl_op *op, int rc)
{
    struct releasing *r = (struct releasing *)op;
    (void)rc;
    if (r->place && !r->passed)
        r->place->caller = NULL;
}

static int finish_releasing(struct zkl_op *op, int rc)
{
    struct zkl_place *place = ((struct releasing *)op)->place;
    if (!place)
        return rc == 0 ? 0 : zkl_fail(rc, "the result was known at the start");
    rc = zkl_mutex_fail_unlock(place, rc);
    zkl_driver_lock(place->client->driver);
    if (!((struct releasing *)op)->passed)
        zkl_count_end(place);
    place->mutex->uses--;
    zkl_driver_unlock(place->client->driver);
    zkl_place_unref(place);
    return rc;
}

static const struct zkl_op_kind releasing_kind = {
    .step = step_releasing,
    .decided = releasing_decided,
    .finish = finish_releasing,
};

/* 0; ZKL_ENOMEM: nothing was begun; ZKL_ECLOSED: there will be no callback, and nothing to wait for
 * either. */
static int begin_releasing(struct zkl_client *client, zkl_done_fn fn, void *arg,
                           struct releasing **releasing)
{
    struct releasing *r = zkl_op_new(sizeof *r, client, &releasing_kind, fn, arg);
    int rc = r ? begin_op(&r->op) : ZKL_ENOMEM;
    if (rc == 0)
        *releasing = r;
    else if (r)
        zkl_op_free(&r->op);
    return rc;
}

/* The hold has no owner any more: this call drops its reference. r NULL: the client is closed. */
static int release(struct releasing *r, struct zkl_place *place)
{
    if (!r)
        return zkl_lock_release(place);
    zkl_driver_lock(place->client->driver);
    r->place = place;
    r->passed = !zkl_place_begin_release(place);
    if (r->passed) {
        zkl_op_decide(&r->op, 0);
    } else {
        r->caller.op = &r->op;
        place->caller = &r->caller;
        zkl_op_step(&r->op);
    }
    zkl_driver_unlock(place->client->driver);
    return 0;
}

/* The outcome is known. */
static int decide(struct releasing *r, int rc)
{
    if (!r)
        return rc;
    zkl_op_know(&r->op, rc);
    zkl_driver_lock(r->op.client->driver);
    zkl_op_decide(&r->op, rc);
    zkl_driver_unlock(r->op.client->driver);
    return 0;
}

/* As the owner. */
static int unlock(struct zkl_mutex *mutex, zkl_done_fn fn, void *arg)
{
    struct zkl_place *place;
    struct zkl_hold own = mutex->kind->find(mutex);
    if (!own.place)
        return zkl_fail(ZKL_ENOTOWNER, "%s", mutex->lock_path->path);
    mutex->kind->put(&own);
    struct releasing *r = NULL;
    int rc = begin_releasing(mutex->client, fn, arg, &r);
    if (rc == ZKL_ENOMEM)
        return zkl_fail(rc, "%s", mutex->lock_path->path);
    rc = mutex->kind->give_up(mutex, &place); /* of a handle's hold another thread may be faster */
    return place ? release(r, place) : decide(r, rc);
}

int zkl_mutex_unlock_async(struct zkl_owner *owner, struct zkl_mutex *mutex, zkl_done_fn fn,
                           void *arg)
{
    static const char call[] = "zkl_mutex_unlock_async";
    if (!mutex || !fn)
        return zkl_fail(ZKL_EINVAL, "%s: %s is NULL", call, mutex ? "fn" : "mutex");
    int rc = zkl_client_check(mutex->client, false, call);
    if (rc == 0)
        rc = zkl_owner_check_idle(owner, call);
    if (rc != 0)
        return rc;
    ZKL_SHIELDED();
    struct zkl_owner *before = zkl_owner_use(owner);
    rc = unlock(mutex, fn, arg);
    zkl_owner_put_back(before);
    return rc;
}

int zkl_permit_release_async(struct zkl_permit *permit, zkl_done_fn fn, void *arg)
{
    static const char call[] = "zkl_permit_release_async";
    struct zkl_place *place = (struct zkl_place *)permit;
    int rc = fn ? zkl_permit_check_release(permit, call)
                : zkl_fail(ZKL_EINVAL, "%s: %s is NULL", call, permit ? "fn" : "permit");
    if (rc != 0)
        return rc;
    ZKL_SHIELDED();
    struct releasing *r = NULL;
    rc = begin_releasing(place->client, fn, arg, &r);
    return rc == ZKL_ENOMEM ? zkl_fail(rc, "%s", place->lock_path->path) : release(r, place);
}

/* --- release of a multi-lock ------------------------------------------------ */

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
    int rc = begin_op(&u->op);
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
    ZKL_SHIELDED();
    return unlock_as(owner, multi, codes, fn, arg);
}
