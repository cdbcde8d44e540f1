/* SPDX-License-Identifier: Apache-2.0
 * The multi-lock: several locks of one client, all or none, in the order of their paths. Members that
 * are mutexes are taken in one transaction (src/core/group.h); what can't be is taken one by one, in
 * the same order. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "checks.h"
#include "multi.h"
#include "counts.h"
#include "driver/clock.h"
#include "error.h"
#include "hold.h"
#include "owner.h"

#define MS INT64_C(1000000)

_Static_assert(ZKL_TRANSACTION_MAX >= ZKL_MULTI_MEMBERS_MAX, "all fit into one transaction");

static struct zkl_mutex *mutex_at(const struct zkl_multi *multi, size_t i)
{
    return zkl_multi_member_at(multi, i)->mutex;
}

static const struct zkl_mutex *handle_at(const struct zkl_multi *multi, size_t i)
{
    const struct zkl_member *member = zkl_multi_member_at(multi, i);
    return zkl_member_is_semaphore(member) ? &member->semaphore->base : member->mutex;
}

/* culprit NULL: no member in particular. */
static int count_failure(const struct zkl_multi *multi, const struct zkl_mutex *culprit, int rc)
{
    return zkl_count_failure(culprit ? culprit : handle_at(multi, 0), rc);
}

/* --- new and free ------------------------------------------------------- */

static int check_member(const struct zkl_client *client, const struct zkl_member *member, size_t i)
{
    static const char call[] = "zkl_multi_new";
    if (member->type != ZKL_MEMBER_MUTEX && member->type != ZKL_MEMBER_SEMAPHORE)
        return zkl_fail(ZKL_EINVAL, "%s: member %zu has no known type", call, i);
    if (zkl_member_is_semaphore(member) ? !member->semaphore : !member->mutex)
        return zkl_fail(ZKL_EINVAL, "%s: member %zu has no %s", call, i,
                        zkl_member_is_semaphore(member) ? "semaphore" : "mutex");
    if (zkl_member_is_semaphore(member) &&
        (member->count < 1 || member->count > ZKL_PERMITS_AT_ONCE_MAX))
        return zkl_fail(ZKL_EINVAL, "%s: member %zu asks for %d permits, not 1 to %d", call, i,
                        member->count, ZKL_PERMITS_AT_ONCE_MAX);
    if ((zkl_member_is_semaphore(member) ? member->semaphore->base.client
                                         : member->mutex->client) != client)
        return zkl_fail(ZKL_EINVAL, "%s: member %zu is of another client", call, i);
    return 0;
}

static int check_new(struct zkl_multi **multi, const struct zkl_client *client,
                     const struct zkl_member *members, size_t count)
{
    static const char call[] = "zkl_multi_new";
    if (!multi || !client || !members)
        return zkl_fail(ZKL_EINVAL, "%s: %s is NULL", call,
                        !multi ? "multi" : (!client ? "client" : "members"));
    int rc = zkl_client_check(client, true, call);
    if (rc == 0 && (count < 1 || count > ZKL_MULTI_MEMBERS_MAX))
        rc = zkl_fail(ZKL_EINVAL, "%s: %zu members, not 1 to %d", call, count,
                      ZKL_MULTI_MEMBERS_MAX);
    for (size_t i = 0; rc == 0 && i < count; i++)
        rc = check_member(client, &members[i], i);
    return rc;
}

static int compare(const struct zkl_member *a, const struct zkl_member *b)
{
    int order = strcmp(zkl_member_path(a), zkl_member_path(b));
    bool named = order == 0 && !zkl_member_is_semaphore(a) && !zkl_member_is_semaphore(b) &&
                 !zkl_naming_meets(&a->mutex->naming, &b->mutex->naming);
    return named ? strcmp(a->mutex->naming.name, b->mutex->naming.name) : order;
}

/* Insertion: they are few. */
static void sort_members(struct zkl_multi *multi)
{
    for (size_t i = 0; i < multi->count; i++) {
        size_t at = i;
        while (at > 0 && compare(&multi->members[i], zkl_multi_member_at(multi, at - 1)) < 0) {
            multi->order[at] = multi->order[at - 1];
            at--;
        }
        multi->order[at] = i;
    }
}

static int check_paths(const struct zkl_multi *multi)
{
    for (size_t i = 1; i < multi->count; i++) {
        if (compare(zkl_multi_member_at(multi, i), zkl_multi_member_at(multi, i - 1)) == 0)
            return zkl_fail(ZKL_EDEADLK, "zkl_multi_new: two members have the path %s",
                            zkl_member_path(zkl_multi_member_at(multi, i)));
    }
    return 0;
}

static void look_at_members(struct zkl_multi *multi)
{
    multi->as_one = true;
    for (size_t i = 0; i < multi->count; i++) {
        multi->as_one = multi->as_one && !zkl_member_is_held_once(&multi->members[i]);
        multi->takes_turns = multi->takes_turns || (!zkl_member_is_semaphore(&multi->members[i]) &&
                                                    multi->members[i].mutex->takes_turns);
        multi->permit_at[i] = multi->permit_count;
        if (zkl_member_is_semaphore(&multi->members[i]))
            multi->permit_count += (size_t)multi->members[i].count;
    }
}

static int do_multi_new(struct zkl_multi **multi, struct zkl_client *client,
                        const struct zkl_member *members, size_t count)
{
    int rc = check_new(multi, client, members, count);
    if (rc != 0)
        return rc;
    size_t bytes = count * sizeof *members;
    struct zkl_multi *m = calloc(1, sizeof *m + bytes + 2 * count * sizeof *m->order);
    if (!m)
        return zkl_fail(ZKL_ENOMEM, "zkl_multi_new");
    m->client = client;
    m->count = count;
    m->order = (size_t *)(void *)((char *)m->members + bytes);
    m->permit_at = m->order + count;
    memcpy(m->members, members, bytes);
    look_at_members(m);
    atomic_init(&m->uses, 0);
    sort_members(m);
    rc = check_paths(m);
    if (rc != 0) {
        free(m);
        return rc;
    }
    zkl_client_ref(client);
    *multi = m;
    return 0;
}

int zkl_multi_new(struct zkl_multi **multi, struct zkl_client *client,
                  const struct zkl_member *members, size_t count)
{
    int shield = zkl_shield();
    int rc = do_multi_new(multi, client, members, count);
    zkl_shield_end(shield);
    return rc;
}

static int do_multi_free(struct zkl_multi *multi)
{
    if (!multi)
        return 0;
    int rc = zkl_client_check(multi->client, false, "zkl_multi_free");
    if (rc != 0)
        return rc;
    if (atomic_load(&multi->uses) > 0)
        return zkl_fail(ZKL_EBUSY, "zkl_multi_free: it is held or waited on");
    zkl_client_unref(multi->client);
    free(multi);
    return 0;
}

int zkl_multi_free(struct zkl_multi *multi)
{
    int shield = zkl_shield();
    int rc = do_multi_free(multi);
    zkl_shield_end(shield);
    return rc;
}

/* --- acquire ------------------------------------------------------------ */

/* What one acquire call is about to do for the calling thread. */
struct attempt {
    struct zkl_multi *multi;
    struct zkl_hold *fresh[ZKL_MULTI_MEMBERS_MAX]; /* to be acquired, by their paths */
    size_t fresh_count;
};

/* Before any request: nothing that could wait for this very thread. *fresh: something is to be
 * acquired. */
static int check_members(const struct zkl_multi *multi, const struct zkl_multi_hold *held,
                         bool *fresh, const struct zkl_mutex **culprit)
{
    int rc = 0;
    *fresh = false;
    for (size_t i = 0; rc == 0 && i < multi->count; i++) {
        const struct zkl_mutex *mutex = *culprit = mutex_at(multi, i);
        if (zkl_member_is_held_once(zkl_multi_member_at(multi, i))) {
            *fresh = *fresh || !held;
            continue;
        }
        const struct zkl_hold *own = zkl_owner_find(mutex->root, mutex);
        const struct zkl_hold *other = own ? NULL : zkl_owner_find_other(mutex);
        *fresh = *fresh || !own;
        if (zkl_owner_awaits(mutex))
            rc = zkl_mutex_fail_awaited(mutex);
        else if (own)
            rc = zkl_mutex_check_again(own);
        else if (other)
            rc = zkl_mutex_check_other(mutex, other);
    }
    if (rc == 0)
        *culprit = NULL;
    return rc;
}

static void drop_fresh(struct attempt *a)
{
    for (size_t i = 0; i < a->fresh_count; i++)
        zkl_hold_unref(a->fresh[i]);
    a->fresh_count = 0;
}

static int make_fresh(struct attempt *a)
{
    for (size_t i = 0; i < a->multi->count; i++) {
        struct zkl_mutex *mutex = mutex_at(a->multi, i);
        if (zkl_owner_find(mutex->root, mutex))
            continue;
        struct zkl_hold *hold = zkl_hold_new(mutex);
        if (!hold)
            return ZKL_ENOMEM;
        hold->under = zkl_owner_find_other(mutex);
        a->fresh[a->fresh_count++] = hold;
    }
    return 0;
}

static int fail_fresh(const struct attempt *a, int rc, size_t culprit)
{
    if (culprit < a->fresh_count)
        return zkl_mutex_fail_acquire(a->fresh[culprit], rc);
    return zkl_fail(rc, "zkl_multi_acquire: %s and others",
                    zkl_member_path(zkl_multi_member_at(a->multi, 0)));
}

/* What the thread does not hold yet, if all of it is there with nobody in it. */
static bool take_idle(struct attempt *a, const struct zkl_wait *wait)
{
    struct zkl_mutex *wanted[ZKL_MULTI_MEMBERS_MAX];
    size_t count = 0;
    for (size_t i = 0; i < a->multi->count && a->multi->takes_turns; i++) {
        struct zkl_mutex *mutex = mutex_at(a->multi, i);
        if (!zkl_owner_find(mutex->root, mutex))
            wanted[count++] = mutex;
    }
    if (count == 0 || !zkl_turns_take_all(wanted, count, wait, a->fresh))
        return false;
    a->fresh_count = count;
    return true;
}

static int acquire_fresh(struct attempt *a, const struct zkl_wait *wait, size_t *culprit)
{
    if (a->fresh_count > 1)
        return zkl_holds_acquire(a->fresh, a->fresh_count, wait, culprit);
    int rc = a->fresh_count == 1 ? zkl_hold_acquire(a->fresh[0], wait) : 0;
    if (a->fresh_count == 1)
        a->fresh[0] = zkl_hold_exchange(a->fresh[0]);
    return rc;
}

/* All that the thread does not hold yet, in one transaction. */
static int acquire_as_one(struct zkl_multi *multi, const struct zkl_wait *wait,
                          struct zkl_multi_hold *held)
{
    struct attempt a = {.multi = multi};
    size_t culprit = 0;
    bool taken = take_idle(&a, wait);
    int rc = taken ? 0 : make_fresh(&a);
    if (rc != 0)
        rc = zkl_fail(rc, "zkl_multi_acquire");
    else if (!taken)
        rc = acquire_fresh(&a, wait, &culprit);
    if (rc < 0 && a.fresh_count > 0)
        fail_fresh(&a, rc, culprit);
    held->culprit = culprit < a.fresh_count ? a.fresh[culprit]->mutex : NULL;
    if (rc != 0) {
        drop_fresh(&a);
        return rc;
    }
    for (size_t i = 0; i < a.fresh_count; i++) {
        a.fresh[i]->under = NULL;
        zkl_owner_add(a.fresh[i]); /* its count is 0 yet */
    }
    for (size_t i = 0; i < multi->count; i++)
        zkl_hold_enter(zkl_owner_find(mutex_at(multi, i)->root, mutex_at(multi, i)));
    return 0;
}

/* 0, and the worse the higher. */
static int badness(int code)
{
    static const int order[] = {0,          ZKL_ENOTOWNER, ZKL_EUNCONFIRMED,
                                ZKL_EACCES, ZKL_EDOUBT,    ZKL_ELOST};
    int at = 0;
    while (order[at] != code && order[at] != ZKL_ELOST)
        at++;
    return at;
}

static int acquire_member(const struct zkl_multi *multi, size_t i, const struct zkl_wait *wait,
                          struct zkl_multi_hold *held)
{
    const struct zkl_member *member = zkl_multi_member_at(multi, i);
    if (zkl_member_is_held_once(member) && held->count > 0)
        return 0;
    if (zkl_member_is_semaphore(member))
        return zkl_semaphore_acquire_checked(member->semaphore, member->count, wait,
                                             &held->permits[multi->permit_at[multi->order[i]]]);
    return zkl_mutex_acquire_checked(member->mutex, wait, NULL);
}

/* Its code; of several permits the worst. */
static int release_member(const struct zkl_multi *multi, size_t i, struct zkl_multi_hold *held)
{
    const struct zkl_member *member = zkl_multi_member_at(multi, i);
    struct zkl_permit **permits = &held->permits[multi->permit_at[multi->order[i]]];
    int worst = 0;
    if (zkl_member_is_held_once(member) && held->count > 1)
        return 0;
    if (!zkl_member_is_semaphore(member))
        return zkl_mutex_unlock(member->mutex);
    for (int n = member->count; n-- > 0;) {
        int rc = zkl_permit_release(permits[n]);
        worst = badness(rc) > badness(worst) ? rc : worst;
    }
    return worst;
}

/* Undo what acquire_member did, and wait for nothing. */
static void let_member_go(const struct zkl_multi *multi, size_t i, struct zkl_multi_hold *held)
{
    const struct zkl_member *member = zkl_multi_member_at(multi, i);
    if (zkl_member_is_held_once(member)) {
        if (held->count == 0)
            zkl_multi_let_go_once_held(multi, i, held);
        return;
    }
    struct zkl_hold *hold = zkl_owner_find(member->mutex->root, member->mutex);
    zkl_hold_enter_not(hold);
    if (hold->count > 0)
        return;
    zkl_owner_remove(hold);
    zkl_hold_let_go(hold);
    zkl_hold_unref(hold);
}

static void let_members_go(const struct zkl_multi *multi, size_t count, struct zkl_multi_hold *held)
{
    while (count > 0)
        let_member_go(multi, --count, held);
}

/* Each holds of a member has this much of its window left, and a lease from now on if lease_ms > 0;
 * false: it is lost. */
static bool confirm_member(const struct zkl_multi *multi, size_t i, int64_t lease_ms,
                           const struct zkl_multi_hold *held)
{
    const struct zkl_member *member = zkl_multi_member_at(multi, i);
    struct zkl_permit *const *permits = &held->permits[multi->permit_at[multi->order[i]]];
    bool fine = true;
    if (!zkl_member_is_semaphore(member)) {
        struct zkl_hold *own = member->mutex->semaphore
                                   ? zkl_semaphore_find(member->mutex)
                                   : zkl_owner_find(member->mutex->root, member->mutex);
        fine = own && !zkl_hold_is_lost(own) &&
               (lease_ms == 0 || own->count > 1 || zkl_hold_renew(own, lease_ms) == 0);
        if (own && member->mutex->semaphore)
            zkl_hold_unref(own);
    }
    for (int n = zkl_member_is_semaphore(member) ? member->count : 0; fine && n-- > 0;) {
        struct zkl_hold *hold = (struct zkl_hold *)permits[n];
        fine = !zkl_hold_is_lost(hold) && (lease_ms == 0 || zkl_hold_renew(hold, lease_ms) == 0);
    }
    return fine;
}

/* The first member that is lost; count: none. What was held before this call keeps its own lease. */
static size_t first_lost(const struct zkl_multi *multi, int64_t lease_ms,
                         const struct zkl_multi_hold *held)
{
    size_t i = 0;
    while (i < multi->count && confirm_member(multi, i, held->count > 0 ? 0 : lease_ms, held))
        i++;
    return i;
}

/* The nth hold of a member that the thread has; NULL: it has no more. With the mutex. */
static struct zkl_hold *nth_hold(const struct zkl_multi *multi, size_t i, int n,
                                 const struct zkl_multi_hold *held)
{
    const struct zkl_member *member = zkl_multi_member_at(multi, i);
    if (zkl_member_is_semaphore(member) && n < member->count)
        return (struct zkl_hold *)held->permits[multi->permit_at[multi->order[i]] + (size_t)n];
    if (zkl_member_is_semaphore(member) || n > 0)
        return NULL;
    return member->mutex->semaphore ? member->mutex->semaphore->hold
                                    : zkl_owner_find(member->mutex->root, member->mutex);
}

/* The caller gets all of them, and hears what becomes of them, from one moment on. False: one was lost
 * before that, and nobody hears of any. */
static bool hand_over(const struct zkl_multi *multi, const struct zkl_multi_hold *held)
{
    struct zkl_hold *hold;
    bool lost = false;
    zkl_driver_lock(multi->client->driver);
    for (size_t i = 0; i < multi->count; i++) {
        for (int n = 0; (hold = nth_hold(multi, i, n, held)) != NULL; n++)
            lost = lost || zkl_hold_is_lost(hold);
    }
    for (size_t i = 0; !lost && i < multi->count; i++) {
        for (int n = 0; (hold = nth_hold(multi, i, n, held)) != NULL; n++)
            zkl_hold_returned(hold);
    }
    zkl_driver_unlock(multi->client->driver);
    return !lost;
}

static bool was_held_before(const struct zkl_multi *multi, size_t i,
                            const struct zkl_multi_hold *held)
{
    const struct zkl_member *member = zkl_multi_member_at(multi, i);
    if (zkl_member_is_held_once(member))
        return held->count > 0;
    return zkl_owner_find(member->mutex->root, member->mutex)->count > 1;
}

/* One turn for what can't be one transaction. ZKL_LOST_ON_THE_WAY: one that was just acquired was lost
 * while another one was waited for; nothing is held of it. */
static int acquire_in_turn(struct zkl_multi *multi, const struct zkl_wait *wait, int64_t lease_ms,
                           struct zkl_multi_hold *held)
{
    size_t done = 0;
    int rc = 0;
    while (rc == 0 && done < multi->count) {
        rc = acquire_member(multi, done, wait, held);
        done += rc == 0;
    }
    size_t culprit = done;
    if (rc == 0)
        culprit = first_lost(multi, lease_ms, held);
    if (culprit == multi->count && !hand_over(multi, held))
        culprit = first_lost(multi, 0, held);
    if (culprit == multi->count)
        return 0;
    if (rc == 0)
        rc = was_held_before(multi, culprit, held) ? ZKL_ELOST : ZKL_LOST_ON_THE_WAY;
    let_members_go(multi, done, held);
    held->culprit = handle_at(multi, culprit);
    return rc < 0 ? zkl_fail(rc, "%s", zkl_member_path(zkl_multi_member_at(multi, culprit))) : rc;
}

static int acquire_one_by_one(struct zkl_multi *multi, const struct zkl_wait *wait,
                              struct zkl_multi_hold *held)
{
    struct zkl_wait each = *wait;
    int rc;
    each.lease_ms = 0; /* it begins when all are held */
    each.flags |= ZKL_WAIT_MEMBER;
    do {
        rc = zkl_wait_check_over(&each, zkl_member_path(zkl_multi_member_at(multi, 0)));
        if (rc == 0)
            rc = acquire_in_turn(multi, &each, wait->lease_ms, held);
    } while (rc == ZKL_LOST_ON_THE_WAY);
    return rc;
}

/* What the thread had before may be gone by now. */
static int check_held_before(const struct zkl_multi *multi, struct zkl_multi_hold *held)
{
    size_t i = first_lost(multi, 0, held);
    if (i == multi->count)
        return 0;
    int rc = was_held_before(multi, i, held) ? ZKL_ELOST : ZKL_LOST_ON_THE_WAY;
    let_members_go(multi, multi->count, held);
    held->culprit = handle_at(multi, i);
    return rc < 0 ? zkl_fail(rc, "%s", zkl_member_path(zkl_multi_member_at(multi, i))) : rc;
}

/* A member lost while others were waited for: from then on one by one, all over again. */
static int acquire_members(struct zkl_multi *multi, const struct zkl_wait *wait,
                           struct zkl_multi_hold *held)
{
    int rc = multi->as_one ? acquire_as_one(multi, wait, held) : ZKL_LOST_ON_THE_WAY;
    if (rc == 0)
        rc = check_held_before(multi, held);
    if (rc == ZKL_LOST_ON_THE_WAY)
        rc = acquire_one_by_one(multi, wait, held);
    return rc;
}

/* A try waits for a lost link once, however many members it has. */
static int acquire_in_time(struct zkl_multi *multi, const struct zkl_wait *wait,
                           struct zkl_multi_hold *held)
{
    struct zkl_wait bounded = *wait;
    if (wait->flags & ZKL_WAIT_TRY)
        bounded.deadline_ns = zkl_wait_bound(multi->client, wait);
    int rc = acquire_members(multi, &bounded, held);
    bool too_late = rc == ZKL_ETIMEDOUT && bounded.deadline_ns != wait->deadline_ns;
    return too_late ? zkl_fail(ZKL_EDISCONNECTED, "zkl_multi_acquire") : rc;
}

/* Of a semaphore: the first permit, and the shortest window of all. */
static int64_t window_of(const struct zkl_multi *multi, size_t member,
                         const struct zkl_multi_hold *held)
{
    int64_t shortest = INT64_MAX;
    if (!zkl_member_is_semaphore(&multi->members[member]))
        return zkl_mutex_window_ms(multi->members[member].mutex);
    for (int i = 0; i < multi->members[member].count; i++) {
        int64_t window = zkl_permit_window_ms(held->permits[multi->permit_at[member] + (size_t)i]);
        shortest = window < shortest ? window : shortest;
    }
    return shortest;
}

static uint64_t token_of(const struct zkl_multi *multi, size_t member,
                         const struct zkl_multi_hold *held)
{
    if (zkl_member_is_semaphore(&multi->members[member]))
        return zkl_permit_token(held->permits[multi->permit_at[member]]);
    return zkl_mutex_token(multi->members[member].mutex);
}

static void fill_grants(const struct zkl_multi *multi, const struct zkl_multi_hold *held,
                        struct zkl_grant *grants)
{
    for (size_t i = 0; grants && i < multi->count; i++) {
        const struct zkl_member *member = &multi->members[i];
        grants[i].token = token_of(multi, i, held);
        grants[i].window_ms = window_of(multi, i, held);
        grants[i].hold_count =
            zkl_member_is_held_once(member) ? held->count : zkl_mutex_hold_count(member->mutex);
    }
}

/* held is new, with a count of 0, or what the thread has of this multi-lock already. */
static int acquire_for(struct zkl_multi *multi, const struct zkl_wait *wait,
                       struct zkl_multi_hold *held)
{
    bool first = held->count == 0;
    atomic_fetch_add(&multi->uses, 1);
    int rc = acquire_in_time(multi, wait, held);
    if (rc != 0 || !first)
        atomic_fetch_sub(&multi->uses, 1);
    if (rc == 0 && first)
        zkl_owner_add_multi(held);
    held->count += rc == 0;
    return rc == 0 ? 0 : count_failure(multi, held->culprit, rc);
}

static int acquire_first(struct zkl_multi *multi, const struct zkl_wait *wait,
                         struct zkl_multi_hold **held)
{
    struct zkl_multi_hold *fresh =
        calloc(1, sizeof *fresh + multi->permit_count * sizeof *fresh->permits);
    if (!fresh)
        return count_failure(multi, NULL, zkl_fail(ZKL_ENOMEM, "zkl_multi_acquire"));
    fresh->multi = multi;
    int rc = zkl_owner_prepare();
    rc = rc == 0 ? acquire_for(multi, wait, fresh)
                 : count_failure(multi, NULL,
                                 zkl_fail(rc, "zkl_multi_acquire: no thread-specific key"));
    if (rc != 0)
        free(fresh);
    else
        *held = fresh;
    return rc;
}

struct zkl_client *zkl_multi_client(const struct zkl_multi *multi)
{
    return multi->client;
}

void zkl_multi_use(struct zkl_multi *multi)
{
    atomic_fetch_add(&multi->uses, 1);
}

void zkl_multi_put(struct zkl_multi *multi)
{
    atomic_fetch_sub(&multi->uses, 1);
}

int zkl_multi_check_acquire(struct zkl_multi *multi, const struct zkl_wait *wait,
                            const struct zkl_grant *grants, const char *call, bool blocks)
{
    if (!multi)
        return zkl_fail(ZKL_EINVAL, "%s: multi is NULL", call);
    for (size_t i = 0; grants && i < multi->count; i++) {
        if (grants[i].size != sizeof *grants)
            return zkl_fail(ZKL_EINVAL, "%s: fill each grant with ZKL_GRANT_INIT", call);
    }
    return zkl_wait_check(wait, multi->client, call, blocks);
}

int zkl_multi_check_members(const struct zkl_multi *multi)
{
    const struct zkl_mutex *culprit = NULL;
    bool fresh;
    int rc = check_members(multi, zkl_owner_find_multi(multi), &fresh, &culprit);
    if (rc == ZKL_ELOST) /* told by the call itself */
        return 0;
    return rc == 0 ? 0 : count_failure(multi, culprit, rc);
}

int zkl_multi_acquire(struct zkl_multi *multi, const struct zkl_wait *wait,
                      struct zkl_grant *grants)
{
    struct zkl_wait forever = ZKL_WAIT_INIT;
    if (!wait)
        wait = &forever;
    int rc = zkl_multi_check_acquire(multi, wait, grants, "zkl_multi_acquire", true);
    if (rc != 0)
        return rc;
    struct zkl_multi_hold *held = zkl_owner_find_multi(multi);
    bool fresh = false;
    const struct zkl_mutex *culprit = NULL;
    rc = check_members(multi, held, &fresh, &culprit);
    if (rc == 0 && fresh)
        rc = zkl_wait_check_over(wait, zkl_member_path(zkl_multi_member_at(multi, 0)));
    if (rc != 0)
        return count_failure(multi, culprit, rc);
    int shield = zkl_shield();
    struct zkl_cancel *cancel = zkl_cancel_ref(wait->cancel);
    rc = held ? acquire_for(multi, wait, held) : acquire_first(multi, wait, &held);
    if (rc == 0)
        fill_grants(multi, held, grants);
    zkl_cancel_free(cancel);
    zkl_shield_end(shield);
    return rc;
}

int zkl_multi_lock(struct zkl_multi *multi)
{
    return zkl_multi_acquire(multi, NULL, NULL);
}

int zkl_multi_trylock(struct zkl_multi *multi)
{
    struct zkl_wait wait = ZKL_WAIT_INIT;
    wait.flags = ZKL_WAIT_TRY;
    return zkl_multi_acquire(multi, &wait, NULL);
}

int zkl_multi_lock_for(struct zkl_multi *multi, int64_t timeout_ms)
{
    if (zkl_check_ms(timeout_ms, "zkl_multi_lock_for") != 0)
        return ZKL_EBADTIMEOUT;
    return zkl_multi_lock_until(multi, zkl_clock_mono_ns() + timeout_ms * MS, NULL);
}

int zkl_multi_lock_until(struct zkl_multi *multi, int64_t deadline_ns, struct zkl_cancel *cancel)
{
    struct zkl_wait wait = ZKL_WAIT_INIT;
    wait.deadline_ns = deadline_ns;
    wait.cancel = cancel;
    return zkl_multi_acquire(multi, &wait, NULL);
}

/* --- unlock ------------------------------------------------------------- */

/* What is given up for good goes into last; the code of the others is known at once. */
static int give_back_one(struct zkl_hold *hold, struct zkl_hold **last)
{
    *last = NULL;
    if (!hold)
        return ZKL_ENOTOWNER; /* unlocked singly, before */
    if (hold->count > 1)
        return zkl_hold_leave_again(hold);
    hold->count = 0;
    zkl_owner_remove(hold);
    *last = hold;
    return 0;
}

static void release_last(struct zkl_hold *const *holds, const size_t *which, size_t count,
                         int *codes)
{
    if (count == 0)
        return;
    int said[ZKL_MULTI_MEMBERS_MAX];
    zkl_holds_release(holds, count, said);
    for (size_t i = 0; i < count; i++) {
        codes[which[i]] = said[i];
        if (said[i] != 0)
            zkl_mutex_fail_unlock(holds[i], said[i]);
        zkl_hold_unref(holds[i]);
    }
}

static void give_back_as_one(struct zkl_multi *multi, int *codes)
{
    struct zkl_hold *last[ZKL_MULTI_MEMBERS_MAX];
    size_t which[ZKL_MULTI_MEMBERS_MAX], n = 0;
    for (size_t i = 0; i < multi->count; i++) {
        struct zkl_mutex *mutex = mutex_at(multi, i);
        struct zkl_hold *hold = zkl_owner_find(mutex->root, mutex);
        which[n] = multi->order[i];
        codes[which[n]] = give_back_one(hold, &last[n]);
        n += last[n] != NULL;
    }
    release_last(last, which, n, codes);
}

/* Those that are given up wait for each other: each ends when the whole is unlocked, and not when its turn
 * comes. */
static void note_unlock(const struct zkl_multi *multi, const struct zkl_multi_hold *held)
{
    struct zkl_hold *hold;
    zkl_driver_lock(multi->client->driver);
    int64_t now_boot = zkl_clock_boot_ns();
    for (size_t i = 0; i < multi->count; i++) {
        bool once = zkl_member_is_held_once(zkl_multi_member_at(multi, i));
        for (int n = 0; (hold = nth_hold(multi, i, n, held)) != NULL; n++) {
            if (once ? held->count == 1 : hold->count == 1)
                hold->unlocked_boot = now_boot;
        }
    }
    zkl_driver_unlock(multi->client->driver);
}

static int give_back(struct zkl_multi *multi, struct zkl_multi_hold *held, int *codes)
{
    int worst = 0;
    if (multi->as_one)
        give_back_as_one(multi, codes);
    else
        note_unlock(multi, held);
    for (size_t i = multi->count; !multi->as_one && i-- > 0;)
        codes[multi->order[i]] = release_member(multi, i, held);
    for (size_t i = 0; i < multi->count; i++)
        worst = badness(codes[i]) > badness(worst) ? codes[i] : worst;
    return worst;
}

static int check_held(struct zkl_multi *multi, const char *call, struct zkl_multi_hold **held)
{
    *held = NULL;
    if (!multi)
        return zkl_fail(ZKL_EINVAL, "%s: multi is NULL", call);
    int rc = zkl_client_check(multi->client, false, call);
    if (rc == 0)
        *held = zkl_owner_find_multi(multi);
    return rc;
}

int zkl_multi_check_unlock(struct zkl_multi *multi, const char *call, bool blocks)
{
    struct zkl_multi_hold *held;
    int rc = check_held(multi, call, &held);
    if (rc == 0 && blocks && zkl_driver_in_callback())
        rc = zkl_fail(ZKL_EINCALLBACK, "%s", call);
    if (rc == 0 && !held)
        rc = zkl_fail(ZKL_ENOTOWNER, "%s", call);
    return rc;
}

int zkl_multi_unlock_checked(struct zkl_multi *multi, int *codes)
{
    int own_codes[ZKL_MULTI_MEMBERS_MAX];
    struct zkl_multi_hold *held = zkl_owner_find_multi(multi);
    int shield = zkl_shield();
    int rc = give_back(multi, held, codes ? codes : own_codes);
    if (--held->count == 0) {
        zkl_owner_remove_multi(held);
        free(held);
        atomic_fetch_sub(&multi->uses, 1);
    }
    zkl_shield_end(shield);
    return rc;
}

int zkl_multi_unlock(struct zkl_multi *multi, int *codes)
{
    int rc = zkl_multi_check_unlock(multi, "zkl_multi_unlock", true);
    return rc == 0 ? zkl_multi_unlock_checked(multi, codes) : rc;
}

/* --- questions ---------------------------------------------------------- */

int zkl_multi_nth_hold(struct zkl_multi *multi, size_t n, const char *call, struct zkl_hold **hold)
{
    struct zkl_multi_hold *held;
    int rc = check_held(multi, call, &held);
    *hold = NULL;
    if (rc != 0)
        return rc;
    if (!held)
        return zkl_fail(ZKL_ENOTOWNER, "%s", call);
    zkl_driver_lock(multi->client->driver);
    for (size_t i = 0; i < multi->count && !*hold && rc == 0; i++) {
        const struct zkl_member *member = zkl_multi_member_at(multi, i);
        size_t size = zkl_member_is_semaphore(member) ? (size_t)member->count : 1;
        if (n < size)
            *hold = nth_hold(multi, i, (int)n, held);
        if (n < size && !*hold)
            rc = zkl_fail(ZKL_ENOTOWNER, "%s: %s was unlocked by itself", call,
                          zkl_member_path(member));
        n -= size;
    }
    if (*hold)
        atomic_fetch_add(&(*hold)->refs, 1);
    zkl_driver_unlock(multi->client->driver);
    return rc;
}

int64_t zkl_multi_window_ms(struct zkl_multi *multi)
{
    struct zkl_multi_hold *held;
    int rc = check_held(multi, "zkl_multi_window_ms", &held);
    if (rc != 0)
        return rc;
    int64_t shortest = held ? INT64_MAX : 0;
    for (size_t i = 0; held && i < multi->count; i++) {
        int64_t window = window_of(multi, i, held);
        shortest = window < shortest ? window : shortest;
    }
    return shortest;
}

int zkl_multi_still_held(struct zkl_multi *multi, int64_t need_ms)
{
    struct zkl_multi_hold *held;
    int rc = check_held(multi, "zkl_multi_still_held", &held);
    if (rc != 0)
        return rc;
    if (zkl_check_ms(need_ms, "zkl_multi_still_held") != 0)
        return ZKL_EBADTIMEOUT;
    return zkl_multi_window_ms(multi) >= (need_ms > 0 ? need_ms : 1);
}

uint64_t zkl_multi_token(struct zkl_multi *multi, size_t index)
{
    struct zkl_multi_hold *held;
    if (check_held(multi, "zkl_multi_token", &held) != 0 || !held || index >= multi->count)
        return 0;
    return token_of(multi, index, held);
}

int zkl_multi_node_path(struct zkl_multi *multi, size_t index, char *buf, size_t size)
{
    struct zkl_multi_hold *held;
    int rc = check_held(multi, "zkl_multi_node_path", &held);
    if (rc != 0)
        return rc;
    if (index >= multi->count)
        return zkl_fail(ZKL_EINVAL, "zkl_multi_node_path: there is no member %zu", index);
    if (!held)
        return zkl_fail(ZKL_ENOTOWNER, "zkl_multi_node_path");
    if (zkl_member_is_semaphore(&multi->members[index]))
        return zkl_permit_node_path(held->permits[multi->permit_at[index]], buf, size);
    return zkl_mutex_node_path(multi->members[index].mutex, buf, size);
}
