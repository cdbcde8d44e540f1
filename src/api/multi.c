/* SPDX-License-Identifier: Apache-2.0
 *
 * The multi-lock: several locks of one client, all or none, in the order of their paths. This file
 * has its handle and its calls; multi_acquire.c and multi_release.c acquire and release it, and
 * questions.c answers questions about it. Users call this file, and async.c for the checks and results that both
 * share, without any lock held. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "counts.h"
#include "driver/clock.h"
#include "error.h"
#include "place.h"
#include "multi.h"
#include "sized.h"
#include "owner.h"

#define MS INT64_C(1000000)

/* --- new and free ------------------------------------------------------- */

/* The caller's lie as far apart as its struct is long. */
static const struct zkl_member *member_at(const struct zkl_member *members, size_t index)
{
    return (const void *)((const char *)members + index * members->size);
}

static int check_member(const struct zkl_client *client, const struct zkl_member *member, size_t i)
{
    static const char call[] = "zkl_multi_new";
    if (!zkl_sized_is_known(member, ZKL_SIZED_LEAST(struct zkl_member, semaphore), sizeof *member))
        return zkl_fail(ZKL_EINVAL,
                        "%s: create member %zu with zkl_member_mutex or zkl_member_semaphore", call,
                        i);
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
        return zkl_fail(ZKL_EINVAL, "%s: member %zu belongs to another client", call, i);
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
    for (size_t i = 0; rc == 0 && i < count; i++) {
        rc = check_member(client, member_at(members, i), i);
        if (rc == 0 && i + 1 < count && member_at(members, i + 1)->size != members->size)
            rc = zkl_fail(ZKL_EINVAL, "%s: the members' sizes differ", call);
    }
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
        multi->permit_at[i] = multi->permit_count;
        if (zkl_member_is_held_once(&multi->members[i]))
            multi->permit_count +=
                zkl_member_is_semaphore(&multi->members[i]) ? (size_t)multi->members[i].count : 1;
    }
}

int zkl_multi_new(struct zkl_multi **multi, struct zkl_client *client,
                  const struct zkl_member *members, size_t count)
{
    ZKL_SHIELDED();
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
    for (size_t i = 0; i < count; i++)
        zkl_sized_read(&m->members[i], sizeof m->members[i], member_at(members, i));
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

int zkl_multi_free(struct zkl_multi *multi)
{
    ZKL_SHIELDED();
    if (!multi)
        return 0;
    int rc = zkl_client_check(multi->client, false, "zkl_multi_free");
    if (rc != 0)
        return rc;
    if (atomic_load(&multi->uses) > 0)
        return zkl_fail(ZKL_EBUSY, "zkl_multi_free: a thread holds the multi-lock or waits for it");
    zkl_client_unref(multi->client);
    free(multi);
    return 0;
}

/* --- acquire ------------------------------------------------------------ */

/* Before any request: a member must not wait for this very thread. *fresh: there is a member to
 * acquire. */
static int check_members(const struct zkl_multi *multi, const struct zkl_multi_hold *held,
                         bool *fresh, const struct zkl_mutex **culprit)
{
    int rc = 0;
    *fresh = false;
    for (size_t i = 0; rc == 0 && i < multi->count; i++) {
        struct zkl_hold *own, *other;
        *culprit = zkl_multi_member_at(multi, i)->mutex;
        if (zkl_member_is_held_once(zkl_multi_member_at(multi, i))) {
            *fresh = *fresh || !held;
            continue;
        }
        rc = zkl_mutex_check_owner(*culprit, &own, &other);
        *fresh = *fresh || !own;
    }
    if (rc == 0)
        *culprit = NULL;
    return rc;
}

int zkl_multi_check_acquire(struct zkl_multi *multi, const struct zkl_wait *wait,
                            struct zkl_grant *grants, const char *call, bool blocks)
{
    if (!multi)
        return zkl_fail(ZKL_EINVAL, "%s: multi is NULL", call);
    for (size_t i = 0; grants && i < multi->count; i++) {
        const struct zkl_grant *grant = zkl_multi_grant_at(grants, i);
        if (zkl_grant_check(grant, call) != 0)
            return ZKL_EINVAL;
        if (grant->size != grants->size)
            return zkl_fail(ZKL_EINVAL,
                            "%s: the grants' sizes differ: initialize each with ZKL_GRANT_INIT",
                            call);
    }
    return zkl_wait_check(wait, multi->client, call, blocks);
}

int zkl_multi_check_members(const struct zkl_multi *multi, const struct zkl_wait *wait)
{
    const struct zkl_mutex *culprit = NULL;
    bool fresh;
    int rc = check_members(multi, zkl_owner_find_multi(multi), &fresh, &culprit);
    if (rc == 0 && fresh)
        rc = zkl_wait_check_over(wait, zkl_member_path(zkl_multi_member_at(multi, 0)));
    if (rc == 0)
        return 0;
    return zkl_count_failure(culprit ? culprit : zkl_member_handle(zkl_multi_member_at(multi, 0)),
                             rc);
}

static int acquire(struct zkl_multi *multi, const struct zkl_wait *wait)
{
    struct zkl_attempt *a = zkl_multi_attempt_new(multi, wait);
    if (!a)
        return zkl_count_failure(zkl_member_handle(zkl_multi_member_at(multi, 0)),
                                 zkl_fail(ZKL_ENOMEM, "zkl_multi_acquire"));
    int rc = zkl_multi_attempt_prepare(a);
    bool said = rc != 0;
    if (!said)
        rc = zkl_attempt_run(a);
    return zkl_multi_attempt_finish(a, rc, said);
}

int zkl_multi_acquire(struct zkl_multi *multi, const struct zkl_wait *wait,
                      struct zkl_grant *grants)
{
    static const char call[] = "zkl_multi_acquire";
    struct zkl_wait ours;
    int rc = zkl_wait_take(&ours, wait, call);
    if (rc == 0)
        rc = zkl_multi_check_acquire(multi, &ours, grants, call, true);
    if (rc == 0)
        rc = zkl_multi_check_members(multi, &ours);
    if (rc != 0)
        return rc;
    ZKL_SHIELDED();
    struct zkl_cancel *cancel = zkl_cancel_ref(ours.cancel);
    rc = acquire(multi, &ours);
    if (rc == 0)
        zkl_multi_fill_grants(multi, grants);
    zkl_cancel_free(cancel);
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

int zkl_multi_check_unlock(struct zkl_multi *multi, const char *call, bool blocks)
{
    struct zkl_multi_hold *held;
    int rc = zkl_multi_find(multi, call, &held);
    if (rc == 0 && blocks && zkl_driver_in_callback())
        rc = zkl_fail(ZKL_EINCALLBACK, "%s", call);
    if (rc == 0 && !held)
        rc = zkl_fail(ZKL_ENOTOWNER, "%s", call);
    return rc;
}

int zkl_multi_unlock(struct zkl_multi *multi, int *codes)
{
    struct zkl_unlocking u;
    int rc = zkl_multi_check_unlock(multi, "zkl_multi_unlock", true);
    if (rc != 0)
        return rc;
    ZKL_SHIELDED();
    zkl_unlocking_collect(&u, multi);
    zkl_unlocking_wait(&u);
    return zkl_unlocking_end(&u, codes);
}
