/* SPDX-License-Identifier: Apache-2.0
 *
 * The asynchronous twins of the calls that acquire and release one lock, or permits of one
 * semaphore. Each call owns an operation (op.c) from the call to its callback, and takes the same
 * steps as a blocking call (wait.c). Users call this file from any thread, without a lock held. The
 * steps run with the client's mutex, callbacks without it. */
#include <zklock/async.h>

#include <stdlib.h>

#include "permit_request.h"
#include "counts.h"
#include "error.h"
#include "op.h"
#include "owner.h"

/* The codes of a wrong call, which are returned and not called back. */
static bool is_wrong(int rc)
{
    return rc < 0 && rc >= ZKL_EOVERFLOW;
}

static int begin(struct zkl_op *op, uint64_t *id)
{
    zkl_driver_lock(op->client->driver);
    int rc = zkl_op_begin(op, id);
    zkl_driver_unlock(op->client->driver);
    return rc;
}

/* --- acquire ------------------------------------------------------------ */

struct acquiring {
    struct zkl_op op; /* first */
    struct zkl_acquisition acquisition;
    struct zkl_owner *owner; /* the owner that acquires the hold */
    struct zkl_mutex *mutex; /* where it counts; the caller's, of an operation that waits */
    /* the owner's: it is to come; or it was entered again, until the call returns */
    struct zkl_hold *hold;
    struct zkl_place *place; /* what is waited for, or was entered again; with a reference */
    struct zkl_permit_request *request; /* or what permits are asked for with */
    bool known, waits;                  /* from the start; what it waits for was begun */
    int hold_count;                     /* of a re-entry: how often then */
    struct zkl_grant *grant;            /* the caller's, or NULL */
    struct zkl_permit **permits;        /* likewise */
};

static int step_acquiring(struct zkl_op *op, int64_t *next_ns)
{
    return zkl_acquisition_step(&((struct acquiring *)op)->acquisition, next_ns);
}

static void acquiring_decided(struct zkl_op *op, int rc)
{
    struct acquiring *a = (struct acquiring *)op;
    if (!a->waits)
        return;
    zkl_acquisition_end(&a->acquisition, rc);
    if (rc == 0) /* a semaphore's mutex may be unlocked and freed from here on */
        zkl_acquisition_settle(&a->acquisition, rc);
    a->acquisition.place->op = NULL;
}

static void cancel_acquiring(struct zkl_op *op)
{
    struct acquiring *a = (struct acquiring *)op;
    if (a->waits)
        zkl_acquisition_cancel(&a->acquisition);
}

static void settle_failed(struct acquiring *a, int rc)
{
    if (!a->waits)
        return;
    zkl_count_failure(a->mutex, rc);
    zkl_driver_lock(a->op.client->driver);
    zkl_acquisition_settle(&a->acquisition, rc);
    zkl_driver_unlock(a->op.client->driver);
}

/* As the owner. It may be the place that another owner had, instead of the one that was queued. */
static int finish_own(struct acquiring *a, int rc)
{
    if (rc == 0) {
        a->place = zkl_place_exchange(a->place);
        a->hold->count = 1;
        zkl_mutex_fill_grant(a->grant, a->place, 1);
        zkl_owner_came(a->hold, a->place);
        return 0;
    }
    rc = zkl_mutex_fail_acquire(a->place, rc);
    zkl_owner_remove(a->hold);
    zkl_hold_free(a->hold);
    return rc;
}

static int finish_permits(struct acquiring *a, int rc)
{
    if (rc != 0)
        return zkl_permit_request_fail(a->request, rc);
    for (size_t i = 0; a->permits && i < a->request->count; i++)
        a->permits[i] = (struct zkl_permit *)zkl_permit_request_place(a->request, i);
    zkl_mutex_fill_grant(a->grant, zkl_permit_request_place(a->request, 0), 1);
    return 0;
}

static int finish_known(struct acquiring *a, int rc)
{
    if (rc != 0)
        return zkl_fail(rc, "the result was known at the start");
    zkl_grant_give(a->grant, a->place->token, zkl_place_window_ms(a->place), a->hold_count);
    return 0;
}

static void drop(struct acquiring *a, bool hold_too)
{
    if (a->place && hold_too)
        zkl_place_unref(a->place);
    if (a->request)
        zkl_permit_request_unref(a->request);
}

static int finish_acquiring(struct zkl_op *op, int rc)
{
    struct acquiring *a = (struct acquiring *)op;
    struct zkl_owner *before = zkl_owner_use(a->owner);
    if (a->known)
        rc = finish_known(a, rc);
    else
        rc = a->request ? finish_permits(a, rc) : finish_own(a, rc);
    zkl_owner_put_back(before);
    if (rc != 0)
        settle_failed(a, rc);
    drop(a, a->known || rc != 0);
    return rc;
}

static const struct zkl_op_kind acquiring_kind = {
    .step = step_acquiring,
    .decided = acquiring_decided,
    .cancel = cancel_acquiring,
    .finish = finish_acquiring,
};

static struct acquiring *new_acquiring(struct zkl_client *client, zkl_done_fn fn, void *arg)
{
    return zkl_op_new(sizeof(struct acquiring), client, &acquiring_kind, fn, arg);
}

static int know(struct acquiring *a, int rc)
{
    if (is_wrong(rc))
        return rc;
    a->known = true;
    zkl_op_know(&a->op, rc);
    if (rc != 0)
        zkl_count_failure(a->mutex, rc);
    return 0;
}

/* 0, or the operation is as if it had not begun. */
static int begin_waiting(struct acquiring *a, const struct zkl_wait *wait)
{
    struct zkl_place *place = a->request ? zkl_permit_request_place(a->request, 0) : a->place;
    int rc = zkl_acquisition_begin(&a->acquisition, place, wait);
    a->waits = rc == 0;
    if (a->waits) {
        place->op = &a->op;
        zkl_op_step(&a->op);
    } else {
        zkl_op_withdraw(&a->op);
    }
    return rc;
}

/* With what it waits for made, or its outcome known. */
static int start(struct acquiring *a, const struct zkl_wait *wait, uint64_t *id)
{
    struct zkl_driver *d = a->op.client->driver;
    zkl_driver_lock(d);
    int rc = zkl_op_begin(&a->op, id);
    if (rc == 0 && a->known)
        zkl_op_decide(&a->op, a->op.rc);
    else if (rc == 0)
        rc = begin_waiting(a, wait);
    zkl_driver_unlock(d);
    return rc == 0 ? 0 : zkl_fail(rc, "%s", "the operation did not start");
}

/* --- a mutex ------------------------------------------------------------ */

/* The owner's last unlock may come before the callback and frees the hold. So the operation reports
 * the place. */
static void enter_again(struct acquiring *a, struct zkl_hold *hold)
{
    zkl_hold_enter(hold);
    a->hold = hold;
    a->hold_count = hold->count;
    a->place = hold->place;
    atomic_fetch_add(&a->place->refs, 1);
}

/* under: the owner's write lock, or NULL. */
static int make_hold(struct acquiring *a, struct zkl_mutex *mutex, const struct zkl_hold *under)
{
    struct zkl_hold *hold;
    int rc = zkl_hold_new(&hold, mutex);
    if (rc != 0)
        return rc;
    a->place = zkl_place_new(mutex, under ? under->place : NULL);
    if (!a->place) {
        zkl_hold_free(hold);
        return zkl_fail(ZKL_ENOMEM, "%s", mutex->lock_path->path);
    }
    a->hold = hold;
    zkl_owner_add(hold);
    return 0;
}

/* As the owner: 0, or the fault. */
static int prepare_own(struct acquiring *a, struct zkl_mutex *mutex, const struct zkl_wait *wait)
{
    struct zkl_hold *own, *other;
    int rc = zkl_mutex_check_owner(mutex, &own, &other);
    if (rc == 0 && own)
        enter_again(a, own);
    else if (rc == 0 && (rc = zkl_wait_check_over(wait, mutex->lock_path->path)) == 0)
        return make_hold(a, mutex, other);
    return know(a, rc);
}

static void undo_own(struct acquiring *a)
{
    if (a->hold && a->known) {
        zkl_hold_leave(a->hold);
    } else if (a->hold) {
        zkl_owner_remove(a->hold);
        zkl_hold_free(a->hold);
    }
}

/* For a semaphore's mutex: the hold is the handle's. */
static int prepare_handle(struct acquiring *a, struct zkl_mutex *mutex, const struct zkl_wait *wait)
{
    const char *path = mutex->semaphore->path->path;
    int rc = zkl_wait_check_over(wait, path);
    if (rc == 0)
        rc = zkl_semaphore_check_handle(mutex, wait);
    if (rc != 0)
        return know(a, rc);
    a->request = zkl_permit_request_new(mutex->semaphore, 1);
    return a->request ? 0 : zkl_fail(ZKL_ENOMEM, "%s", path);
}

static int acquire_mutex(struct zkl_mutex *mutex, const struct zkl_wait *wait, struct acquiring *a,
                         uint64_t *id)
{
    struct zkl_owner *before = zkl_owner_use(a->owner);
    int rc = mutex->semaphore ? prepare_handle(a, mutex, wait) : prepare_own(a, mutex, wait);
    if (rc == 0) {
        rc = start(a, wait, id);
        if (rc != 0)
            undo_own(a);
    }
    zkl_owner_put_back(before);
    if (rc != 0) {
        zkl_count_failure(mutex, rc);
        drop(a, true);
        zkl_op_free(&a->op);
    }
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
    int shield = zkl_shield();
    struct acquiring *a = new_acquiring(mutex->client, fn, arg);
    if (a) {
        a->owner = owner;
        a->mutex = mutex;
        a->grant = grant;
        rc = acquire_mutex(mutex, &ours, a, op);
    } else {
        rc = zkl_count_failure(mutex, zkl_fail(ZKL_ENOMEM, "%s", mutex->lock_path->path));
    }
    zkl_shield_end(shield);
    return rc;
}

/* --- permits ------------------------------------------------------------ */

static int acquire_permits(struct zkl_semaphore *semaphore, int count, const struct zkl_wait *wait,
                           struct acquiring *a, uint64_t *id)
{
    int rc = zkl_semaphore_check_count(semaphore, count);
    if (rc == 0) {
        rc = zkl_wait_check_over(wait, semaphore->path->path);
        if (rc != 0)
            rc = know(a, rc);
        else if (!(a->request = zkl_permit_request_new(semaphore, (size_t)count)))
            rc = zkl_fail(ZKL_ENOMEM, "%s", semaphore->path->path);
    }
    if (rc == 0)
        rc = start(a, wait, id);
    if (rc != 0) {
        zkl_count_failure(a->mutex, rc);
        drop(a, true);
        zkl_op_free(&a->op);
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
    int shield = zkl_shield();
    struct acquiring *a = new_acquiring(semaphore->base.client, fn, arg);
    if (a) {
        a->mutex = &semaphore->base;
        a->permits = permits;
        rc = acquire_permits(semaphore, count, &ours, a, op);
    } else {
        rc = zkl_count_failure(&semaphore->base, zkl_fail(ZKL_ENOMEM, "%s", semaphore->path->path));
    }
    zkl_shield_end(shield);
    return rc;
}

/* --- release ------------------------------------------------------------ */

struct releasing {
    struct zkl_op op;        /* first */
    struct zkl_place *place; /* with a reference; NULL: there was more than one lock of it */
    bool passed;             /* another owner has the hold already, or the handle does */
};

static int step_releasing(struct zkl_op *op, int64_t *next_ns)
{
    const struct zkl_place *place = ((struct releasing *)op)->place;
    (void)next_ns; /* bounded by the core: the link breaks, or the window ends */
    return place->phase == ZKL_PHASE_GRANTED ? ZKL_GOES_ON : place->code;
}

static void releasing_decided(struct zkl_op *op, int rc)
{
    struct zkl_place *place = ((struct releasing *)op)->place;
    (void)rc;
    if (place)
        place->op = NULL;
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
    int rc = r ? begin(&r->op, NULL) : ZKL_ENOMEM;
    if (rc == 0)
        *releasing = r;
    else if (r)
        zkl_op_free(&r->op);
    return rc;
}

/* The hold has no owner any more: this call drops its reference. r NULL: the client is closed. */
static int release(struct releasing *r, struct zkl_place *place)
{
    if (!r) {
        int rc = zkl_mutex_fail_unlock(place, zkl_place_release(place));
        zkl_place_unref(place);
        return rc;
    }
    zkl_driver_lock(place->client->driver);
    r->place = place;
    place->op = &r->op;
    r->passed = !zkl_place_begin_release(place);
    if (r->passed)
        zkl_op_decide(&r->op, 0);
    else
        zkl_op_step(&r->op);
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
    int shield = zkl_shield();
    struct zkl_owner *before = zkl_owner_use(owner);
    rc = unlock(mutex, fn, arg);
    zkl_owner_put_back(before);
    zkl_shield_end(shield);
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
    int shield = zkl_shield();
    struct releasing *r = NULL;
    rc = begin_releasing(place->client, fn, arg, &r);
    rc = rc == ZKL_ENOMEM ? zkl_fail(rc, "%s", place->lock_path->path) : release(r, place);
    zkl_shield_end(shield);
    return rc;
}
