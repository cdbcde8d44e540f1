/* SPDX-License-Identifier: Apache-2.0
 *
 * Acquires several locks as one, in steps. Members that the owner does not hold yet are acquired in
 * the order of their paths, in parts: adjacent mutexes form a bundle, whose nodes are made in one
 * transaction (src/core/bundle.h); a request for permits is a part, and so is a mutex between two of
 * them. Each part is an acquisition as any other (wait.c). While one part waits, the owner holds
 * those before it and has nothing queued for those behind it. So all owners wait in the same order
 * and no circle can form. If the owner loses one that it held, it gives all parts up and begins
 * anew. An attempt belongs to one owner, which does nothing else meanwhile. A thread takes its
 * steps in a loop (multi.c), an operation when it is woken (multi_async.c), with the client's
 * lock. */
#include "multi.h"

#include <stdio.h>
#include <stdlib.h>

#include "counts.h"
#include "error.h"

_Static_assert(ZKL_TRANSACTION_MAX >= ZKL_MULTI_MEMBERS_MAX, "all fit into one transaction");

/* The work for one member, by its path. */
struct share {
    struct zkl_hold *own;    /* the owner's from before, which is entered again; or a new one */
    struct zkl_place *place; /* or the one that will be acquired, */
    struct zkl_permit_request *request; /* or what belongs to no thread */
};

struct zkl_attempt {
    struct zkl_multi *multi;
    struct zkl_multi_hold *held; /* the owner's; or a new one, with a count of 0 */
    struct zkl_wait wait;
    int64_t deadline;    /* of all parts */
    bool taken;          /* all was idle, and had without a wait */
    bool own_lost;       /* the culprit was the owner's before */
    size_t culprit;      /* the member that a failure is about; its number: none in particular */
    size_t count, begun; /* of parts; all of them, or none */
    size_t at;           /* the part that is being acquired: those before it are held */
    struct zkl_acquisition *parts;
    struct share shares[]; /* one for each member, by their paths */
};

static const struct zkl_member *member_at(const struct zkl_attempt *a, size_t i)
{
    return zkl_multi_member_at(a->multi, i);
}

/* --- what the owner must acquire ---------------------------------------- */

struct zkl_attempt *zkl_attempt_new(struct zkl_multi *multi, const struct zkl_wait *wait)
{
    size_t shares = multi->count * sizeof(struct share);
    struct zkl_attempt *a =
        calloc(1, sizeof *a + shares + multi->count * sizeof(struct zkl_acquisition));
    if (!a)
        return NULL;
    a->held = zkl_owner_find_multi(multi);
    if (!a->held)
        a->held = calloc(1, sizeof *a->held + multi->permit_count * sizeof *a->held->permits);
    if (!a->held) {
        free(a);
        return NULL;
    }
    a->held->multi = multi;
    a->multi = multi;
    a->wait = *wait;
    a->culprit = multi->count;
    a->parts = (struct zkl_acquisition *)(void *)((char *)a->shares + shares);
    atomic_fetch_add(&multi->uses, 1);
    return a;
}

/* Take what the owner does not hold yet, if the handles keep all of it idle. */
static bool take_idle(struct zkl_attempt *a)
{
    struct zkl_mutex *wanted[ZKL_MULTI_MEMBERS_MAX];
    struct zkl_place *places[ZKL_MULTI_MEMBERS_MAX];
    size_t which[ZKL_MULTI_MEMBERS_MAX], count = 0;
    bool may_be_idle = false;
    if (!a->multi->as_one)
        return false;
    for (size_t i = 0; i < a->multi->count; i++) {
        struct zkl_mutex *mutex = member_at(a, i)->mutex;
        may_be_idle = may_be_idle || mutex->has_local_queue;
        which[count] = i;
        if (!zkl_owner_find(mutex))
            wanted[count++] = mutex;
    }
    if (!may_be_idle || count == 0 || !zkl_local_queue_take_all(wanted, count, &a->wait, places))
        return false;
    for (size_t i = 0; i < count; i++)
        a->shares[which[i]].place = places[i];
    return true;
}

static int want_mutex(const struct zkl_attempt *a, struct share *share, struct zkl_mutex *mutex,
                      const struct zkl_hold *under)
{
    int rc = zkl_hold_new(&share->own, mutex);
    if (rc != 0 || a->taken)
        return rc;
    share->place = zkl_place_new(mutex, under ? under->place : NULL);
    return share->place ? 0 : zkl_fail(ZKL_ENOMEM, "%s", mutex->lock_path->path);
}

static int want_permits(struct zkl_attempt *a, size_t i)
{
    const struct zkl_member *member = member_at(a, i);
    bool is_mutex = !zkl_member_is_semaphore(member);
    struct zkl_semaphore *semaphore = is_mutex ? member->mutex->semaphore : member->semaphore;
    int count = is_mutex ? 1 : member->count;
    int rc = is_mutex ? zkl_semaphore_check_handle(member->mutex, &a->wait)
                      : zkl_semaphore_check_count(semaphore, count);
    if (rc != 0)
        return rc;
    struct zkl_permit_request *request = zkl_permit_request_new(semaphore, (size_t)count);
    for (int n = 0; request && n < count; n++)
        zkl_permit_request_place(request, (size_t)n)->is_members = true;
    a->shares[i].request = request;
    return request ? 0 : zkl_fail(ZKL_ENOMEM, "%s", semaphore->path->path);
}

static int want(struct zkl_attempt *a, size_t i)
{
    const struct zkl_member *member = member_at(a, i);
    struct share *share = &a->shares[i];
    struct zkl_hold *under;
    if (zkl_member_is_held_once(member))
        return a->held->count > 0 ? 0 : want_permits(a, i);
    zkl_owner_look(member->mutex, &share->own, &under);
    return share->own ? 0 : want_mutex(a, share, member->mutex, under);
}

/* --- in which parts ------------------------------------------------------ */

/* Places for mutexes with nothing to acquire between them but what is held already: from first to
 * before end. */
static int add_mutexes(struct zkl_attempt *a, size_t first, size_t end, size_t count)
{
    struct zkl_bundle *bundle = NULL;
    if (count > 1) {
        bundle = calloc(1, sizeof *bundle + count * sizeof *bundle->members);
        if (!bundle)
            return zkl_fail(ZKL_ENOMEM, "zkl_multi_acquire");
        bundle->members = (struct zkl_bundle_member *)(bundle + 1);
    }
    for (size_t i = first; i < end; i++) {
        struct zkl_place *place = a->shares[i].place;
        if (!place)
            continue;
        place->bundle = bundle;
        if (bundle)
            bundle->members[bundle->count++].contender = &place->contender;
    }
    a->parts[a->count].bundle = bundle;
    a->parts[a->count++].place = a->shares[first].place;
    return 0;
}

static int make_parts(struct zkl_attempt *a)
{
    int rc = 0;
    for (size_t i = 0, end; rc == 0 && i < a->multi->count; i = end) {
        end = i + 1;
        if (a->shares[i].request)
            a->parts[a->count++].place = zkl_permit_request_place(a->shares[i].request, 0);
        if (!a->shares[i].place)
            continue;
        size_t count = 1;
        for (; end < a->multi->count && !a->shares[end].request; end++)
            count += a->shares[end].place != NULL;
        rc = add_mutexes(a, i, end, count);
    }
    return rc;
}

int zkl_attempt_prepare(struct zkl_attempt *a)
{
    int rc = zkl_owner_prepare();
    if (rc != 0)
        return zkl_fail(rc, "zkl_multi_acquire: the system has no thread-specific key left");
    a->taken = take_idle(a);
    for (size_t i = 0; rc == 0 && i < a->multi->count; i++) {
        a->culprit = i;
        rc = want(a, i);
        if (rc == 0 && a->shares[i].place)
            a->shares[i].place->member = i;
        else if (rc == 0 && a->shares[i].request)
            zkl_permit_request_place(a->shares[i].request, 0)->member = i;
    }
    if (rc != 0)
        return rc;
    a->culprit = a->multi->count;
    return a->taken ? 0 : make_parts(a);
}

/* --- steps --------------------------------------------------------------- */

int zkl_attempt_begin(struct zkl_attempt *a, struct zkl_op *op)
{
    struct zkl_wait each = a->wait;
    int rc = 0;
    a->deadline = zkl_wait_bound(a->multi->client, &a->wait);
    if (a->count > 1) {
        each.deadline_ns = a->deadline;
        each.lease_ms = 0; /* it begins when all are held */
    }
    for (size_t i = 0; rc == 0 && i < a->count; i++) {
        struct zkl_place *place = a->parts[i].place;
        place->leader = i > 0 ? a->parts[0].place : NULL;
        rc = zkl_acquisition_begin(&a->parts[i], place, &each); /* only the first can fail */
    }
    if (rc != 0)
        return rc;
    a->begun = a->count;
    if (a->count > 0)
        a->parts[0].place->op = op;
    return 0;
}

static bool any_lost(struct zkl_permit *const *permits, int count)
{
    bool lost = false;
    for (int n = 0; n < count; n++)
        lost = lost || zkl_place_is_lost((struct zkl_place *)permits[n]);
    return lost;
}

/* The owner had it before, and may have lost it by now. */
static bool is_own_lost(const struct zkl_attempt *a, size_t i)
{
    const struct zkl_member *member = member_at(a, i);
    if (!zkl_member_is_held_once(member))
        return a->shares[i].own->place && zkl_place_is_lost(a->shares[i].own->place);
    if (a->held->count == 0)
        return false;
    if (zkl_member_is_semaphore(member))
        return any_lost(zkl_multi_permits(a->multi, i, a->held), member->count);
    return !zkl_multi_has_handle(a->multi, i, a->held) ||
           zkl_place_is_lost(member->mutex->semaphore->place);
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
    for (size_t i = 0; i < a->multi->count; i++) {
        if (is_own_lost(a, i)) {
            a->own_lost = true;
            a->culprit = i;
            return ZKL_ELOST;
        }
    }
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
            rc = confirm(a);
            lost = rc == ZKL_ELOST && !a->own_lost;
            if (!lost)
                return rc;
        }
        if (lost && atomic_load(&a->multi->client->closed))
            return ZKL_ECLOSED;
        if (lost)
            begin_anew(a);
        struct zkl_acquisition *part = &a->parts[a->at];
        rc = zkl_acquisition_step(part, next_ns);
        if (rc != 0)
            return rc == ZKL_GOES_ON ? rc : fail_part(a, part, rc);
        if (part->place->given)
            part->place->given->leader = part->place;
        a->at++;
    }
}

void zkl_attempt_wait(struct zkl_attempt *a, int64_t next_ns)
{
    zkl_place_wait(a->parts[0].place, next_ns);
}

void zkl_attempt_cancel(struct zkl_attempt *a)
{
    for (size_t i = 0; i < a->count; i++)
        zkl_acquisition_cancel(&a->parts[i]);
}

void zkl_attempt_end(struct zkl_attempt *a, int rc)
{
    for (size_t i = a->count; rc != 0 && i-- > 0;)
        zkl_acquisition_back_out(&a->parts[i]);
    for (size_t i = 0; i < a->count; i++) {
        struct zkl_acquisition *part = &a->parts[i];
        if (part->place->given)
            part->place->given->leader = NULL;
        zkl_acquisition_end(part, rc);
        part->place->leader = NULL;
        part->place->op = NULL;
        if (rc == 0)
            zkl_acquisition_settle(part, rc);
    }
}

/* --- the end ------------------------------------------------------------- */

static int fail(const struct zkl_attempt *a, int rc)
{
    size_t i = a->culprit;
    if (i == a->multi->count) {
        char what[ZKL_PATH_MAX + 40];
        snprintf(what, sizeof what, "zkl_multi_acquire: %.*s and others", ZKL_PATH_MAX,
                 zkl_member_path(member_at(a, 0)));
        return zkl_fail_unserved(a->multi->client, rc, what);
    }
    if (a->shares[i].request && !a->own_lost)
        return zkl_permit_request_fail(a->shares[i].request, rc);
    if (a->shares[i].place && !a->own_lost)
        return zkl_mutex_fail_acquire(a->shares[i].place, rc);
    return zkl_fail(rc, "%s", zkl_member_path(member_at(a, i)));
}

static void count_failure(const struct zkl_attempt *a, int rc)
{
    size_t i = a->culprit < a->multi->count ? a->culprit : 0;
    zkl_count_failure(zkl_member_handle(member_at(a, i)), rc);
}

static void drop(struct zkl_attempt *a, int rc)
{
    struct zkl_driver *d = a->multi->client->driver;
    zkl_driver_lock(d);
    for (size_t i = 0; i < a->begun; i++)
        zkl_acquisition_settle(&a->parts[i], rc);
    zkl_driver_unlock(d);
    for (size_t i = 0; i < a->multi->count; i++) {
        struct share *share = &a->shares[i];
        if (share->place && a->taken)
            zkl_place_let_go(share->place);
        if (share->place)
            zkl_place_unref(share->place);
        if (share->own && !share->own->place)
            zkl_hold_free(share->own);
        if (share->request)
            zkl_permit_request_unref(share->request);
    }
    if (a->held->count == 0)
        free(a->held);
}

static void have_permits(struct zkl_attempt *a, size_t i)
{
    struct zkl_permit_request *request = a->shares[i].request;
    for (size_t n = 0; n < request->count; n++)
        zkl_multi_permits(a->multi, i, a->held)[n] =
            (struct zkl_permit *)zkl_permit_request_place(request, n);
    /* that is the handle's: what this owner had is known by one more */
    if (!zkl_member_is_semaphore(member_at(a, i)))
        atomic_fetch_add(&zkl_permit_request_place(request, 0)->refs, 1);
    zkl_permit_request_unref(request);
}

static void have(struct zkl_attempt *a, size_t i)
{
    struct share *share = &a->shares[i];
    if (share->place) {
        share->own->place = zkl_place_exchange(share->place);
        zkl_owner_add(share->own);
    }
    if (share->own)
        zkl_hold_enter(share->own);
    if (share->request)
        have_permits(a, i);
}

static void have_all(struct zkl_attempt *a)
{
    for (size_t i = 0; i < a->multi->count; i++)
        have(a, i);
    if (a->held->count++ == 0)
        zkl_owner_add_multi(a->held);
    else
        atomic_fetch_sub(&a->multi->uses, 1);
}

int zkl_attempt_finish(struct zkl_attempt *a, int rc, bool said)
{
    struct zkl_multi *multi = a->multi;
    if (rc != 0 && !said)
        fail(a, rc);
    if (rc != 0) {
        count_failure(a, rc);
        drop(a, rc);
    } else {
        have_all(a);
    }
    for (size_t i = 0; i < multi->count; i++)
        free(a->parts[i].bundle);
    free(a);
    if (rc != 0) /* last: another thread may free it from here on */
        atomic_fetch_sub(&multi->uses, 1);
    return rc;
}
