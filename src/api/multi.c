/* SPDX-License-Identifier: Apache-2.0
 *
 * The multi-lock: several locks of one client, all or none, in the order of their paths. This file
 * has its handle, its calls and the queries about it; multi_acquire.c and multi_release.c acquire
 * and release it. Users call this file, and async.c for the checks and results that both
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

static struct zkl_grant *grant_at(struct zkl_grant *grants, size_t index)
{
    return (void *)((char *)grants + index * grants->size);
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

/* A semaphore's mutex that another thread unlocked; another hold of its handle is not this
 * owner's. */
static bool was_unlocked(const struct zkl_multi *multi, size_t member,
                         const struct zkl_multi_hold *held)
{
    struct zkl_mutex *mutex = multi->members[member].mutex;
    if (zkl_member_is_semaphore(&multi->members[member]) || !mutex->semaphore)
        return false;
    struct zkl_place *place = zkl_semaphore_find(mutex);
    bool is_other = place != (struct zkl_place *)held->permits[multi->permit_at[member]];
    if (place)
        zkl_place_unref(place);
    return is_other;
}

/* For a semaphore: the first permit, and the shortest window of all. */
static int64_t window_of(const struct zkl_multi *multi, size_t member,
                         const struct zkl_multi_hold *held)
{
    int64_t shortest = INT64_MAX;
    if (was_unlocked(multi, member, held))
        return 0;
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
    return was_unlocked(multi, member, held) ? 0 : zkl_mutex_token(multi->members[member].mutex);
}

void zkl_multi_fill_grants(const struct zkl_multi *multi, struct zkl_grant *grants)
{
    const struct zkl_multi_hold *held = grants ? zkl_owner_find_multi(multi) : NULL;
    for (size_t i = 0; held && i < multi->count; i++) {
        const struct zkl_member *member = &multi->members[i];
        zkl_grant_give(grant_at(grants, i), token_of(multi, i, held), window_of(multi, i, held),
                       zkl_member_is_held_once(member) ? held->count
                                                       : zkl_mutex_hold_count(member->mutex));
    }
}

int zkl_multi_check_acquire(struct zkl_multi *multi, const struct zkl_wait *wait,
                            struct zkl_grant *grants, const char *call, bool blocks)
{
    if (!multi)
        return zkl_fail(ZKL_EINVAL, "%s: multi is NULL", call);
    for (size_t i = 0; grants && i < multi->count; i++) {
        const struct zkl_grant *grant = grant_at(grants, i);
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

/* The nth hold of a member that the thread has; NULL: it has no more. With the mutex. */
static struct zkl_place *nth_hold(const struct zkl_multi *multi, size_t i, int n,
                                  struct zkl_multi_hold *held)
{
    const struct zkl_member *member = zkl_multi_member_at(multi, i);
    if (zkl_member_is_semaphore(member) && n < member->count)
        return (struct zkl_place *)zkl_multi_permits(multi, i, held)[n];
    if (zkl_member_is_semaphore(member) || n > 0)
        return NULL;
    if (!member->mutex->semaphore) {
        const struct zkl_hold *own = zkl_owner_find(member->mutex);
        return own ? own->place : NULL;
    }
    return zkl_multi_has_handle(multi, i, held) ? member->mutex->semaphore->place : NULL;
}

/* --- questions ---------------------------------------------------------- */

int zkl_multi_nth_hold(struct zkl_multi *multi, size_t n, const char *call,
                       struct zkl_place **place)
{
    struct zkl_multi_hold *held;
    int rc = check_held(multi, call, &held);
    *place = NULL;
    if (rc != 0)
        return rc;
    if (!held)
        return zkl_fail(ZKL_ENOTOWNER, "%s", call);
    zkl_driver_lock(multi->client->driver);
    for (size_t i = 0; i < multi->count && !*place && rc == 0; i++) {
        const struct zkl_member *member = zkl_multi_member_at(multi, i);
        size_t size = zkl_member_is_semaphore(member) ? (size_t)member->count : 1;
        if (n < size)
            *place = nth_hold(multi, i, (int)n, held);
        if (n < size && !*place)
            rc = zkl_fail(ZKL_ENOTOWNER, "%s: the member %s was unlocked by itself", call,
                          zkl_member_path(member));
        n -= size;
    }
    if (*place)
        atomic_fetch_add(&(*place)->refs, 1);
    zkl_driver_unlock(multi->client->driver);
    return rc;
}

/* held NULL: 0. */
static int64_t shortest_window(const struct zkl_multi *multi, struct zkl_multi_hold *held)
{
    int64_t shortest = held ? INT64_MAX : 0;
    for (size_t i = 0; held && i < multi->count; i++) {
        int64_t window = window_of(multi, i, held);
        shortest = window < shortest ? window : shortest;
    }
    return shortest;
}

int64_t zkl_multi_window_ms(struct zkl_multi *multi)
{
    struct zkl_multi_hold *held;
    if (check_held(multi, "zkl_multi_window_ms", &held) != 0)
        return 0;
    zkl_fail_none();
    return shortest_window(multi, held);
}

int zkl_multi_still_held(struct zkl_multi *multi, int64_t need_ms)
{
    struct zkl_multi_hold *held;
    if (check_held(multi, "zkl_multi_still_held", &held) != 0)
        return 0;
    return zkl_hold_still_held(shortest_window(multi, held), need_ms, "zkl_multi_still_held");
}

/* A member's hold is lost, so the whole is. */
static bool any_lost(const struct zkl_multi *multi, struct zkl_multi_hold *held)
{
    bool lost = false;
    for (size_t i = 0; held && i < multi->count; i++)
        lost = lost || token_of(multi, multi->order[i], held) == 0;
    return lost;
}

int zkl_multi_check(struct zkl_multi *multi, int64_t need_ms)
{
    struct zkl_multi_hold *held;
    int rc = check_held(multi, "zkl_multi_check", &held);
    if (rc != 0)
        return rc;
    return zkl_hold_check(multi->client, held, any_lost(multi, held), shortest_window(multi, held),
                          need_ms, zkl_member_path(zkl_multi_member_at(multi, 0)),
                          "zkl_multi_check");
}

/* The worst state of what the thread has of the nth member; 0: nothing, as it was unlocked by
 * itself. */
static int member_state(const struct zkl_multi *multi, size_t i, struct zkl_multi_hold *held,
                        enum zkl_reason *reason)
{
    int worst = 0;
    struct zkl_place *place;
    for (int n = 0; (place = nth_hold(multi, i, n, held)) != NULL; n++) {
        enum zkl_reason why;
        int state = zkl_place_state_now(place, &why);
        if (state > worst)
            *reason = why;
        worst = state > worst ? state : worst;
    }
    return worst;
}

/* LOST counts more than SUSPECT, and that more than HELD. */
static int worst_state(const struct zkl_multi *multi, struct zkl_multi_hold *held,
                       enum zkl_reason *reason)
{
    int worst = ZKL_HOLD_HELD;
    for (size_t i = 0; i < multi->count; i++) {
        enum zkl_reason why = ZKL_REASON_NONE;
        int state = member_state(multi, i, held, &why);
        if (state == 0) {
            *reason = ZKL_REASON_NONE;
            return 0;
        }
        if (state > worst)
            *reason = why;
        worst = state > worst ? state : worst;
    }
    return worst;
}

int zkl_multi_hold_state(struct zkl_multi *multi, enum zkl_reason *reason)
{
    struct zkl_multi_hold *held;
    enum zkl_reason why = ZKL_REASON_NONE;
    int state = 0;
    zkl_hold_no_reason(reason);
    if (check_held(multi, "zkl_multi_hold_state", &held) != 0)
        return 0;
    ZKL_SHIELDED();
    if (held) {
        zkl_driver_lock(multi->client->driver);
        state = worst_state(multi, held, &why);
        zkl_driver_unlock(multi->client->driver);
    }
    if (reason)
        *reason = why;
    zkl_fail_none();
    return state;
}

uint64_t zkl_multi_token(struct zkl_multi *multi, size_t index)
{
    struct zkl_multi_hold *held;
    if (check_held(multi, "zkl_multi_token", &held) != 0)
        return 0;
    zkl_fail_none();
    if (index >= multi->count)
        zkl_fail(ZKL_EINVAL, "zkl_multi_token: there is no member %zu", index);
    if (!held || index >= multi->count)
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
