/* SPDX-License-Identifier: Apache-2.0
 *
 * One acquisition by an owner, in steps. It has a share for each member, and parts that are acquired
 * one after the other (wait.c): of a mutex or of permits one, of a multi-lock those that
 * multi_acquire.c makes. While a part waits, the owner holds those before it and has nothing queued
 * for those behind it. If it loses one that it held, it gives all parts up and begins anew. A thread
 * takes the steps in a loop, an operation when it is woken (async.c), with the client's mutex; an
 * attempt belongs to one owner. */
#include "attempt.h"

#include "cached_reader.h"
#include "counts.h"
#include "error.h"

/* --- of one ------------------------------------------------------------- */

static void set_up(struct zkl_attempt_of_one *one, struct zkl_client *client,
                   const struct zkl_wait *wait)
{
    *one = (struct zkl_attempt_of_one){.attempt = {.client = client,
                                                   .wait = *wait,
                                                   .share_count = 1,
                                                   .count = 1,
                                                   .parts = &one->part,
                                                   .shares = &one->share}};
}

int zkl_attempt_of_mutex(struct zkl_attempt_of_one *one, struct zkl_hold *hold,
                         const struct zkl_hold *under, const struct zkl_wait *wait)
{
    struct zkl_mutex *mutex = hold->mutex;
    set_up(one, mutex->client, wait);
    one->share.own = hold;
    one->attempt.caller.alone = !under;
    one->part.place = one->share.place = zkl_place_new(mutex, under ? under->place : NULL);
    return one->share.place ? 0 : zkl_fail(ZKL_ENOMEM, "%s", mutex->lock_path->path);
}

int zkl_attempt_of_permits(struct zkl_attempt_of_one *one, struct zkl_semaphore *semaphore,
                           int count, const struct zkl_wait *wait)
{
    set_up(one, semaphore->base.client, wait);
    one->share.request = zkl_permit_request_new(semaphore, (size_t)count);
    if (!one->share.request)
        return zkl_fail(ZKL_ENOMEM, "%s", semaphore->path->path);
    one->part.place = zkl_permit_request_place(one->share.request, 0);
    return 0;
}

/* --- steps --------------------------------------------------------------- */

int zkl_attempt_begin(struct zkl_attempt *a, struct zkl_op *op)
{
    struct zkl_wait each = a->wait;
    int rc = a->wait.cancel && a->count > 0 ? zkl_cancel_use(a->client, a->wait.cancel) : 0;
    if (rc != 0)
        return rc;
    a->caller.op = op;
    a->caller.cancel = a->wait.cancel;
    a->caller.sleeps_on = a->count > 0 ? a->parts[0].place : NULL;
    if (a->count > 1) {
        each.deadline_ns = a->deadline = zkl_wait_bound(a->client, &a->wait);
        each.lease_ms = 0; /* it begins when all are held */
    }
    for (size_t i = 0; i < a->count; i++)
        zkl_acquisition_begin(&a->parts[i], a->parts[i].place, &a->caller, &each);
    a->begun = a->count;
    return 0;
}

static bool is_any_part_lost(const struct zkl_attempt *a)
{
    bool lost = false;
    for (size_t i = 0; i < a->at && a->count > 1; i++)
        lost = lost || zkl_acquisition_is_lost(&a->parts[i]);
    return lost;
}

static void begin_anew(struct zkl_attempt *a)
{
    for (size_t i = a->count; i-- > 0;)
        zkl_acquisition_back_out(&a->parts[i]);
    a->at = 0;
}

static int fail_part(struct zkl_attempt *a, const struct zkl_acquisition *part, int rc)
{
    const struct zkl_place *place = part->place;
    if (part->bundle && part->culprit < part->count)
        place = (struct zkl_place *)part->bundle->members[part->culprit].contender;
    if (!part->bundle || part->culprit < part->count)
        a->culprit = place->member;
    bool bounded = a->count > 1 && a->deadline != a->wait.deadline_ns;
    return rc == ZKL_ETIMEDOUT && bounded ? ZKL_EDISCONNECTED : rc;
}

/* All parts are held, the last one since a moment ago. ZKL_ELOST: one is not. */
static int confirm(struct zkl_attempt *a)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < a->count && a->count > 1; i++) {
        rc = zkl_acquisition_confirm(&a->parts[i], a->wait.lease_ms);
        if (rc != 0 && rc != ZKL_ELOST)
            rc = fail_part(a, &a->parts[i], rc);
    }
    return rc;
}

int zkl_attempt_step(struct zkl_attempt *a, int64_t *next_ns)
{
    for (;;) {
        bool lost = is_any_part_lost(a);
        int rc = 0;
        if (!lost && a->at == a->count) {
            if (a->confirm && (rc = a->confirm(a)) != 0)
                return rc;
            rc = confirm(a);
            lost = rc == ZKL_ELOST;
            if (!lost)
                return rc;
        }
        if (lost && atomic_load(&a->client->closed))
            return ZKL_ECLOSED;
        if (lost)
            begin_anew(a);
        struct zkl_acquisition *part = &a->parts[a->at];
        rc = zkl_acquisition_step(part, next_ns);
        if (rc != 0)
            return rc == ZKL_GOES_ON ? rc : fail_part(a, part, rc);
        a->at++;
    }
}

void zkl_attempt_cancel(struct zkl_attempt *a)
{
    a->caller.canceled = true;
    for (size_t i = 0; i < a->count; i++)
        zkl_acquisition_cancel(&a->parts[i]);
}

void zkl_attempt_end(struct zkl_attempt *a, int rc)
{
    for (size_t i = a->count; rc != 0 && i-- > 0;)
        zkl_acquisition_back_out(&a->parts[i]);
    for (size_t i = 0; i < a->count; i++) {
        zkl_acquisition_end(&a->parts[i], rc);
        if (rc == 0)
            zkl_acquisition_settle(&a->parts[i], rc);
    }
    if (a->caller.cancel && a->count > 0)
        zkl_cancel_unuse(a->client, a->caller.cancel);
}

int zkl_attempt_run(struct zkl_attempt *a)
{
    struct zkl_driver *d = a->client->driver;
    int64_t next_ns;
    zkl_driver_lock(d);
    int rc = zkl_attempt_begin(a, NULL);
    if (rc == 0) {
        while ((rc = zkl_attempt_step(a, &next_ns)) == ZKL_GOES_ON)
            zkl_place_wait(a->parts[0].place, next_ns);
        zkl_attempt_end(a, rc);
    }
    zkl_driver_unlock(d);
    return rc;
}

/* --- the end ------------------------------------------------------------- */

int zkl_attempt_fail(const struct zkl_attempt *a, int rc)
{
    const struct zkl_share *share = &a->shares[a->culprit];
    return share->request ? zkl_permit_request_fail(share->request, rc)
                          : zkl_mutex_fail_acquire(share->place, rc);
}

/* The owner's map finds a hold by its handle's path. */
static void drop_hold(struct zkl_share *share)
{
    if (share->comes)
        zkl_owner_remove(share->own);
    if (share->own && !share->own->place)
        zkl_hold_free(share->own);
}

static void drop_share(struct zkl_share *share)
{
    if (share->place)
        zkl_place_unref(share->place);
    if (share->request)
        zkl_permit_request_unref(share->request);
}

void zkl_attempt_drop(struct zkl_attempt *a, int rc)
{
    struct zkl_driver *d = a->client->driver;
    for (size_t i = 0; i < a->share_count; i++)
        drop_hold(&a->shares[i]);
    zkl_driver_lock(d);
    for (size_t i = 0; i < a->begun; i++)
        zkl_acquisition_settle(&a->parts[i], rc);
    zkl_driver_unlock(d); /* the handles may be freed from here on */
    for (size_t i = 0; i < a->share_count; i++)
        drop_share(&a->shares[i]);
}

/* It may be the place that another owner had, instead of the one that was queued. As soon as a hold
 * that was to come is there, another thread of its owner may unlock and free it. */
void zkl_share_have(struct zkl_share *share, struct zkl_grant *grant)
{
    struct zkl_hold *own = share->own;
    struct zkl_place *place = share->place ? zkl_place_exchange(share->place) : NULL;
    zkl_hold_enter(own);
    if (!place)
        return;
    zkl_mutex_fill_grant(grant, place, own->count);
    if (share->comes) {
        zkl_owner_came(own, place);
        return;
    }
    own->place = place;
    zkl_cached_open(own);
    zkl_owner_add(own);
}

/* Those of a semaphore's mutex are the handle's already. */
static void have_permits(const struct zkl_permit_request *request, struct zkl_grant *grant,
                         struct zkl_permit **permits)
{
    for (size_t i = 0; permits && i < request->count; i++)
        permits[i] = (struct zkl_permit *)zkl_permit_request_place(request, i);
    zkl_mutex_fill_grant(grant, zkl_permit_request_place(request, 0), 1);
}

int zkl_attempt_finish_one(struct zkl_attempt_of_one *one, const struct zkl_mutex *mutex, int rc,
                           bool said, struct zkl_grant *grant, struct zkl_permit **permits)
{
    struct zkl_permit_request *request = one->share.request;
    if (rc != 0) {
        if (!said)
            zkl_attempt_fail(&one->attempt, rc);
        zkl_count_failure(mutex, rc);
        zkl_attempt_drop(&one->attempt, rc);
    } else if (request) {
        have_permits(request, grant, permits);
        zkl_permit_request_unref(request);
    } else {
        zkl_share_have(&one->share, grant);
    }
    return rc;
}

int zkl_attempt_take_one(struct zkl_attempt_of_one *one, const struct zkl_mutex *mutex, int rc,
                         struct zkl_grant *grant, struct zkl_permit **permits)
{
    bool said = rc != 0;
    if (!said)
        rc = zkl_attempt_run(&one->attempt);
    return zkl_attempt_finish_one(one, mutex, rc, said, grant, permits);
}
