/* SPDX-License-Identifier: Apache-2.0
 *
 * What an attempt (attempt.h) has to acquire for a multi-lock, and its end. Members that the owner
 * does not hold yet are acquired in the order of their paths, in parts: adjacent mutexes form a
 * bundle, whose nodes are made in one transaction (src/core/bundle.h); a request for permits is a
 * part, and so is a mutex between two of them. So all owners wait in the same order and no circle
 * can form. multi.c calls this file for a thread and async.c for an operation, without the client's
 * mutex except where a comment says so. */
#include "multi.h"

#include <stdio.h>
#include <stdlib.h>

#include "attempt.h"
#include "counts.h"
#include "error.h"

_Static_assert(ZKL_TRANSACTION_MAX >= ZKL_MULTI_MEMBERS_MAX, "all fit into one transaction");

struct multi_attempt {
    struct zkl_attempt attempt; /* first; its shares are in the order of the paths */
    struct zkl_multi *multi;
    struct zkl_multi_hold *held; /* the owner's; or a new one, with a count of 0 */
    bool taken;                  /* all was idle, and had without a wait */
    bool own_lost;               /* the culprit was the owner's before */
    struct zkl_share shares[];
};

static const struct zkl_member *member_at(const struct multi_attempt *a, size_t i)
{
    return zkl_multi_member_at(a->multi, i);
}

/* --- what the owner had ------------------------------------------------- */

static bool any_lost(struct zkl_permit *const *permits, int count)
{
    bool lost = false;
    for (int n = 0; n < count; n++)
        lost = lost || zkl_place_is_lost((struct zkl_place *)permits[n]);
    return lost;
}

/* The owner had it before, and may have lost it by now. */
static bool is_own_lost(const struct multi_attempt *a, size_t i)
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

/* --- what the owner must acquire ---------------------------------------- */

/* With the mutex. */
static int check_own(struct zkl_attempt *attempt)
{
    struct multi_attempt *a = (struct multi_attempt *)attempt;
    for (size_t i = 0; i < a->multi->count; i++) {
        if (is_own_lost(a, i)) {
            a->own_lost = true;
            attempt->culprit = i;
            return ZKL_ELOST;
        }
    }
    return 0;
}

struct zkl_attempt *zkl_multi_attempt_new(struct zkl_multi *multi, const struct zkl_wait *wait)
{
    size_t shares = multi->count * sizeof(struct zkl_share);
    struct multi_attempt *a =
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
    a->attempt = (struct zkl_attempt){
        .client = multi->client,
        .wait = *wait,
        .share_count = multi->count,
        .culprit = multi->count,
        .parts = (struct zkl_acquisition *)(void *)((char *)a->shares + shares),
        .shares = a->shares,
        .confirm = check_own};
    atomic_fetch_add(&multi->uses, 1);
    return &a->attempt;
}

/* Take what the owner does not hold yet, if the handles keep all of it idle. */
static bool take_idle(struct multi_attempt *a)
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
    if (!may_be_idle || count == 0 ||
        !zkl_local_queue_take_all(wanted, count, &a->attempt.wait, places))
        return false;
    for (size_t i = 0; i < count; i++)
        a->shares[which[i]].place = places[i];
    return true;
}

static int want_mutex(const struct multi_attempt *a, struct zkl_share *share,
                      struct zkl_mutex *mutex, const struct zkl_hold *under)
{
    int rc = zkl_hold_new(&share->own, mutex);
    if (rc != 0 || a->taken)
        return rc;
    share->place = zkl_place_new(mutex, under ? under->place : NULL);
    return share->place ? 0 : zkl_fail(ZKL_ENOMEM, "%s", mutex->lock_path->path);
}

static int want_permits(struct multi_attempt *a, size_t i)
{
    const struct zkl_member *member = member_at(a, i);
    bool is_mutex = !zkl_member_is_semaphore(member);
    struct zkl_semaphore *semaphore = is_mutex ? member->mutex->semaphore : member->semaphore;
    int count = is_mutex ? 1 : member->count;
    int rc = is_mutex ? zkl_semaphore_check_handle(member->mutex, &a->attempt.wait)
                      : zkl_semaphore_check_count(semaphore, count);
    if (rc != 0)
        return rc;
    struct zkl_permit_request *request = zkl_permit_request_new(semaphore, (size_t)count);
    for (int n = 0; request && n < count; n++)
        zkl_permit_request_place(request, (size_t)n)->is_members = true;
    a->shares[i].request = request;
    return request ? 0 : zkl_fail(ZKL_ENOMEM, "%s", semaphore->path->path);
}

static int want(struct multi_attempt *a, size_t i)
{
    const struct zkl_member *member = member_at(a, i);
    struct zkl_share *share = &a->shares[i];
    struct zkl_hold *under;
    if (zkl_member_is_held_once(member))
        return a->held->count > 0 ? 0 : want_permits(a, i);
    zkl_owner_look(member->mutex, &share->own, &under);
    return share->own ? 0 : want_mutex(a, share, member->mutex, under);
}

/* --- in which parts ------------------------------------------------------ */

/* Places for mutexes with nothing to acquire between them but what is held already: from first to
 * before end. */
static int add_mutexes(struct multi_attempt *a, size_t first, size_t end, size_t count)
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
    a->attempt.parts[a->attempt.count].bundle = bundle;
    a->attempt.parts[a->attempt.count++].place = a->shares[first].place;
    return 0;
}

static int make_parts(struct multi_attempt *a)
{
    int rc = 0;
    for (size_t i = 0, end; rc == 0 && i < a->multi->count; i = end) {
        end = i + 1;
        if (a->shares[i].request)
            a->attempt.parts[a->attempt.count++].place =
                zkl_permit_request_place(a->shares[i].request, 0);
        if (!a->shares[i].place)
            continue;
        size_t count = 1;
        for (; end < a->multi->count && !a->shares[end].request; end++)
            count += a->shares[end].place != NULL;
        rc = add_mutexes(a, i, end, count);
    }
    return rc;
}

int zkl_multi_attempt_prepare(struct zkl_attempt *attempt)
{
    struct multi_attempt *a = (struct multi_attempt *)attempt;
    int rc = zkl_owner_prepare();
    if (rc != 0)
        return zkl_fail(rc, "zkl_multi_acquire: the system has no thread-specific key left");
    a->taken = take_idle(a);
    for (size_t i = 0; rc == 0 && i < a->multi->count; i++) {
        attempt->culprit = i;
        rc = want(a, i);
        if (rc == 0 && a->shares[i].place)
            a->shares[i].place->member = i;
        else if (rc == 0 && a->shares[i].request)
            zkl_permit_request_place(a->shares[i].request, 0)->member = i;
    }
    if (rc != 0)
        return rc;
    attempt->culprit = a->multi->count;
    return a->taken ? 0 : make_parts(a);
}

/* --- the end ------------------------------------------------------------- */

static int fail(const struct multi_attempt *a, int rc)
{
    size_t i = a->attempt.culprit;
    if (i == a->multi->count) {
        char what[ZKL_PATH_MAX + 40];
        snprintf(what, sizeof what, "zkl_multi_acquire: %.*s and others", ZKL_PATH_MAX,
                 zkl_member_path(member_at(a, 0)));
        return zkl_fail_unserved(a->multi->client, rc, what);
    }
    if (a->own_lost)
        return zkl_fail(rc, "%s", zkl_member_path(member_at(a, i)));
    return zkl_attempt_fail(&a->attempt, rc);
}

static void count_failure(const struct multi_attempt *a, int rc)
{
    size_t i = a->attempt.culprit < a->multi->count ? a->attempt.culprit : 0;
    zkl_count_failure(zkl_member_handle(member_at(a, i)), rc);
}

static void drop(struct multi_attempt *a, int rc)
{
    for (size_t i = 0; a->taken && i < a->multi->count; i++) {
        if (a->shares[i].place)
            zkl_place_let_go(a->shares[i].place);
    }
    zkl_attempt_drop(&a->attempt, rc);
    if (a->held->count == 0)
        free(a->held);
}

static void have_permits(struct multi_attempt *a, size_t i)
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

static void have(struct multi_attempt *a, size_t i)
{
    if (a->shares[i].own)
        zkl_share_have(&a->shares[i], NULL);
    if (a->shares[i].request)
        have_permits(a, i);
}

static void have_all(struct multi_attempt *a)
{
    for (size_t i = 0; i < a->multi->count; i++)
        have(a, i);
    if (a->held->count++ == 0)
        zkl_owner_add_multi(a->held);
    else
        atomic_fetch_sub(&a->multi->uses, 1);
}

int zkl_multi_attempt_finish(struct zkl_attempt *attempt, int rc, bool said)
{
    struct multi_attempt *a = (struct multi_attempt *)attempt;
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
        free(attempt->parts[i].bundle);
    free(a);
    if (rc != 0) /* last: another thread may free it from here on */
        atomic_fetch_sub(&multi->uses, 1);
    return rc;
}
