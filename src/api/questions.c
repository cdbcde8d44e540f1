/* SPDX-License-Identifier: Apache-2.0
 *
 * The questions to a mutex, a permit and a multi-lock about what the caller has of them. What that is
 * is found in one of three ways; the answers are the same for all: of several holds as one by the
 * shortest window, and lost if one is. The caller's holds can't end meanwhile, but a semaphore's
 * mutex another thread may unlock, so that it is found with a reference. Users call this file, and
 * guard.c, from any thread that may hold; only a hold's state is read with the client's mutex. */
#include <stdio.h>

#include "error.h"
#include "make/make.h"
#include "multi.h"
#include "owner.h"

/* --- what the caller has -------------------------------------------------- */

/* At one moment; all 0 where it could not be asked. */
struct seen {
    const char *call;
    const struct zkl_client *client;
    const char *path;
    bool held, lost, revoked;
    int count;      /* unlocks due */
    uint64_t token; /* of the first hold; 0: lost */
    int64_t window_ms;
};

/* place NULL: another thread unlocked it, or the owner by itself. */
static void add(struct seen *seen, const struct zkl_place *place)
{
    int64_t window_ms = place ? zkl_place_window_ms(place) : 0;
    bool lost = !place || zkl_place_is_lost(place);
    if (!seen->held)
        seen->token = lost ? 0 : place->token;
    if (!seen->held || window_ms < seen->window_ms)
        seen->window_ms = window_ms;
    seen->held = true;
    seen->lost = seen->lost || lost;
    seen->revoked =
        seen->revoked || (place && atomic_load_explicit(&place->revoked, memory_order_acquire));
}

/* What the calling thread has through this handle (of a semaphore's mutex: what all threads have);
 * put it back. Or the reason why there is no answer. */
static int find(struct zkl_mutex *mutex, const char *call, struct zkl_hold *hold)
{
    *hold = (struct zkl_hold){0};
    if (!mutex)
        return zkl_fail(ZKL_EINVAL, "%s: mutex is NULL", call);
    int rc = zkl_client_check(mutex->client, false, call);
    if (rc == 0)
        *hold = mutex->kind->find(mutex);
    return rc;
}

static void put(const struct zkl_hold *hold)
{
    if (hold->place)
        hold->mutex->kind->put(hold);
}

static int see_mutex(struct seen *seen, struct zkl_mutex *mutex, const char *call)
{
    struct zkl_hold own;
    *seen = (struct seen){0};
    int rc = find(mutex, call, &own);
    if (rc != 0)
        return rc;
    *seen = (struct seen){
        .call = call, .client = mutex->client, .path = mutex->lock_path->path, .count = own.count};
    if (own.place)
        add(seen, own.place);
    put(&own);
    return 0;
}

static int find_permit(struct zkl_permit *permit, const char *call, struct zkl_place **place)
{
    *place = (struct zkl_place *)permit;
    if (!permit)
        return zkl_fail(ZKL_EINVAL, "%s: permit is NULL", call);
    return zkl_client_check((*place)->client, false, call);
}

static int see_permit(struct seen *seen, struct zkl_permit *permit, const char *call)
{
    struct zkl_place *place;
    *seen = (struct seen){0};
    int rc = find_permit(permit, call, &place);
    if (rc != 0)
        return rc;
    *seen = (struct seen){
        .call = call, .client = place->client, .path = place->lock_path->path, .count = 1};
    add(seen, place);
    return 0;
}

int zkl_multi_find(struct zkl_multi *multi, const char *call, struct zkl_multi_hold **held)
{
    *held = NULL;
    if (!multi)
        return zkl_fail(ZKL_EINVAL, "%s: multi is NULL", call);
    int rc = zkl_client_check(multi->client, false, call);
    if (rc == 0)
        *held = zkl_owner_find_multi(multi);
    return rc;
}

/* Another hold of a semaphore's mutex is not this owner's. */
static void add_handle(struct seen *seen, struct zkl_mutex *mutex, const struct zkl_permit *own)
{
    struct zkl_place *place = zkl_semaphore_find(mutex);
    add(seen, place == (const struct zkl_place *)own ? place : NULL);
    if (place)
        zkl_place_unref(place);
}

/* Of the nth member, as zkl_multi_new was given them. */
static void add_member(struct seen *seen, const struct zkl_multi *multi, size_t n,
                       const struct zkl_multi_hold *held)
{
    const struct zkl_member *member = &multi->members[n];
    struct zkl_permit *const *permits = &held->permits[multi->permit_at[n]];
    int count = zkl_member_is_semaphore(member) ? member->count : 0;
    seen->count = held->count;
    for (int i = 0; i < count; i++)
        add(seen, (const struct zkl_place *)permits[i]);
    if (count > 0)
        return;
    if (member->mutex->semaphore) {
        add_handle(seen, member->mutex, permits[0]);
        return;
    }
    const struct zkl_hold *own = zkl_owner_find(member->mutex);
    seen->count = own ? own->count : 0;
    add(seen, own ? own->place : NULL);
}

/* All members as one. */
static int see_multi(struct seen *seen, struct zkl_multi *multi, const char *call)
{
    struct zkl_multi_hold *held;
    *seen = (struct seen){0};
    int rc = zkl_multi_find(multi, call, &held);
    if (rc != 0)
        return rc;
    *seen = (struct seen){.call = call,
                          .client = multi->client,
                          .path = zkl_member_path(zkl_multi_member_at(multi, 0))};
    for (size_t i = 0; held && i < multi->count; i++)
        add_member(seen, multi, i, held);
    return 0;
}

void zkl_multi_fill_grants(const struct zkl_multi *multi, struct zkl_grant *grants)
{
    const struct zkl_multi_hold *held = grants ? zkl_owner_find_multi(multi) : NULL;
    for (size_t i = 0; held && i < multi->count; i++) {
        struct seen seen = {0};
        add_member(&seen, multi, i, held);
        zkl_grant_give(zkl_multi_grant_at(grants, i), seen.token, seen.window_ms, seen.count);
    }
}

/* --- answers -------------------------------------------------------------- */

bool zkl_hold_still_held(int64_t window_ms, int64_t need_ms, const char *call)
{
    if (zkl_check_ms(need_ms, call) != 0)
        return false;
    zkl_fail_none();
    return window_ms >= (need_ms > 0 ? need_ms : 1);
}

const char *zkl_hold_why_unproved(const struct zkl_client *client)
{
    return atomic_load(&client->driver->unprovable) ? ": " ZKL_MAKE_OTHER : "";
}

static int check(int rc, const struct seen *seen, int64_t need_ms)
{
    if (rc != 0)
        return rc;
    if (zkl_check_ms(need_ms, seen->call) != 0)
        return ZKL_EBADTIMEOUT;
    if (!seen->held)
        return zkl_fail(ZKL_ENOTOWNER, "%s: %s", seen->call, seen->path);
    if (seen->lost)
        return zkl_fail(ZKL_ELOST, "%s: %s", seen->call, seen->path);
    need_ms = need_ms > 0 ? need_ms : 1;
    if (seen->window_ms < need_ms)
        return zkl_fail(ZKL_EUNPROVED, "%s: %s: %lld ms are proved, %lld are needed%s", seen->call,
                        seen->path, (long long)seen->window_ms, (long long)need_ms,
                        zkl_hold_why_unproved(seen->client));
    return 0;
}

static bool is_enough(int rc, const struct seen *seen, int64_t need_ms)
{
    return rc == 0 && zkl_hold_still_held(seen->window_ms, need_ms, seen->call);
}

/* rc 0: what was seen is the answer; else it is all 0. */
static void answer(int rc)
{
    if (rc == 0)
        zkl_fail_none();
}

static int read_state(const struct zkl_place *place, enum zkl_reason *reason)
{
    ZKL_SHIELDED();
    int state = 0;
    if (place) {
        zkl_driver_lock(place->client->driver);
        state = zkl_place_state_now(place, reason);
        zkl_driver_unlock(place->client->driver);
    }
    zkl_fail_none();
    return state;
}

static int node_path(const struct zkl_place *place, char *buf, size_t size, const char *call)
{
    if (!buf && size > 0)
        return zkl_fail(ZKL_EINVAL, "%s: buf is NULL", call);
    return snprintf(buf, size, "%s/%s", place->lock_path->path, place->node);
}

static int renew(struct zkl_place *place, int hold_count, int64_t lease_ms, const char *call)
{
    if (lease_ms <= 0 || lease_ms > ZKL_TIMEOUT_MAX_MS)
        return zkl_fail(ZKL_EBADTIMEOUT, "%s: %lld ms", call, (long long)lease_ms);
    ZKL_SHIELDED();
    int rc = zkl_place_renew(place, lease_ms);
    if (rc != 0)
        zkl_fail(rc, "%s: %d unlock(s) due", place->lock_path->path, hold_count);
    return rc;
}

/* Where an answer has a reason: none is known yet. reason may be NULL. */
static enum zkl_reason *no_reason(enum zkl_reason *reason, enum zkl_reason *unwanted)
{
    enum zkl_reason *out = reason ? reason : unwanted;
    *out = ZKL_REASON_NONE;
    return out;
}

/* --- to a mutex ----------------------------------------------------------- */

int zkl_mutex_still_held(struct zkl_mutex *mutex, int64_t need_ms)
{
    struct seen seen;
    return is_enough(see_mutex(&seen, mutex, __func__), &seen, need_ms);
}

int zkl_mutex_check(struct zkl_mutex *mutex, int64_t need_ms)
{
    struct seen seen;
    return check(see_mutex(&seen, mutex, __func__), &seen, need_ms);
}

int zkl_mutex_hold_count(struct zkl_mutex *mutex)
{
    struct seen seen;
    answer(see_mutex(&seen, mutex, __func__));
    return seen.count;
}

uint64_t zkl_mutex_token(struct zkl_mutex *mutex)
{
    struct seen seen;
    answer(see_mutex(&seen, mutex, __func__));
    return seen.token;
}

int64_t zkl_mutex_window_ms(struct zkl_mutex *mutex)
{
    struct seen seen;
    answer(see_mutex(&seen, mutex, __func__));
    return seen.window_ms;
}

int zkl_mutex_revoke_requested(struct zkl_mutex *mutex)
{
    struct seen seen;
    answer(see_mutex(&seen, mutex, __func__));
    return seen.revoked;
}

int zkl_mutex_hold_state(struct zkl_mutex *mutex, enum zkl_reason *reason)
{
    struct zkl_hold own;
    enum zkl_reason unwanted, *why = no_reason(reason, &unwanted);
    if (find(mutex, __func__, &own) != 0)
        return 0;
    int state = read_state(own.place, why);
    put(&own);
    return state;
}

int zkl_mutex_node_path(struct zkl_mutex *mutex, char *buf, size_t size)
{
    struct zkl_hold own;
    int rc = find(mutex, __func__, &own);
    if (rc != 0)
        return rc;
    if (!own.place && (buf || size == 0))
        return zkl_fail(ZKL_ENOTOWNER, "%s", mutex->lock_path->path);
    rc = node_path(own.place, buf, size, __func__);
    put(&own);
    return rc;
}

int zkl_mutex_renew(struct zkl_mutex *mutex, int64_t lease_ms)
{
    struct zkl_hold own;
    bool good = lease_ms > 0 && lease_ms <= ZKL_TIMEOUT_MAX_MS;
    int rc = find(mutex, __func__, &own);
    if (rc != 0)
        return rc;
    if (good && !own.place)
        return zkl_fail(ZKL_ENOTOWNER, "%s", mutex->lock_path->path);
    if (good && own.shared)
        return zkl_fail(ZKL_EINVAL,
                        "%s: %s: a reader in a retained node has no lease of its own: acquire "
                        "it with lease_ms",
                        __func__, mutex->lock_path->path);
    rc = renew(own.place, own.count, lease_ms, __func__);
    put(&own);
    return rc;
}

/* --- to a permit ---------------------------------------------------------- */

int zkl_permit_still_held(struct zkl_permit *permit, int64_t need_ms)
{
    struct seen seen;
    return is_enough(see_permit(&seen, permit, __func__), &seen, need_ms);
}

int zkl_permit_check(struct zkl_permit *permit, int64_t need_ms)
{
    struct seen seen;
    return check(see_permit(&seen, permit, __func__), &seen, need_ms);
}

uint64_t zkl_permit_token(struct zkl_permit *permit)
{
    struct seen seen;
    answer(see_permit(&seen, permit, __func__));
    return seen.token;
}

int64_t zkl_permit_window_ms(struct zkl_permit *permit)
{
    struct seen seen;
    answer(see_permit(&seen, permit, __func__));
    return seen.window_ms;
}

int zkl_permit_revoke_requested(struct zkl_permit *permit)
{
    struct seen seen;
    answer(see_permit(&seen, permit, __func__));
    return seen.revoked;
}

int zkl_permit_hold_state(struct zkl_permit *permit, enum zkl_reason *reason)
{
    struct zkl_place *place;
    enum zkl_reason unwanted, *why = no_reason(reason, &unwanted);
    return find_permit(permit, __func__, &place) == 0 ? read_state(place, why) : 0;
}

int zkl_permit_node_path(struct zkl_permit *permit, char *buf, size_t size)
{
    struct zkl_place *place;
    int rc = find_permit(permit, __func__, &place);
    return rc == 0 ? node_path(place, buf, size, __func__) : rc;
}

int zkl_permit_renew(struct zkl_permit *permit, int64_t lease_ms)
{
    struct zkl_place *place;
    int rc = find_permit(permit, __func__, &place);
    return rc == 0 ? renew(place, 1, lease_ms, __func__) : rc;
}

/* --- to a multi-lock ------------------------------------------------------ */

int zkl_multi_still_held(struct zkl_multi *multi, int64_t need_ms)
{
    struct seen seen;
    return is_enough(see_multi(&seen, multi, __func__), &seen, need_ms);
}

int zkl_multi_check(struct zkl_multi *multi, int64_t need_ms)
{
    struct seen seen;
    return check(see_multi(&seen, multi, __func__), &seen, need_ms);
}

int64_t zkl_multi_window_ms(struct zkl_multi *multi)
{
    struct seen seen;
    answer(see_multi(&seen, multi, __func__));
    return seen.window_ms;
}

uint64_t zkl_multi_token(struct zkl_multi *multi, size_t index)
{
    struct zkl_multi_hold *held;
    struct seen seen = {0};
    if (zkl_multi_find(multi, __func__, &held) != 0)
        return 0;
    zkl_fail_none();
    if (index >= multi->count)
        zkl_fail(ZKL_EINVAL, "%s: there is no member %zu", __func__, index);
    else if (held)
        add_member(&seen, multi, index, held);
    return seen.token;
}

int zkl_multi_node_path(struct zkl_multi *multi, size_t index, char *buf, size_t size)
{
    struct zkl_multi_hold *held;
    int rc = zkl_multi_find(multi, __func__, &held);
    if (rc != 0)
        return rc;
    if (index >= multi->count)
        return zkl_fail(ZKL_EINVAL, "%s: there is no member %zu", __func__, index);
    if (!held)
        return zkl_fail(ZKL_ENOTOWNER, "%s", __func__);
    if (zkl_member_is_semaphore(&multi->members[index]))
        return zkl_permit_node_path(held->permits[multi->permit_at[index]], buf, size);
    return zkl_mutex_node_path(multi->members[index].mutex, buf, size);
}

/* The nth hold of a member, by its path, that the owner has; NULL: it has no more. With the
 * mutex. */
static struct zkl_place *nth_of(const struct zkl_multi *multi, size_t i, int n,
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

int zkl_multi_nth_hold(struct zkl_multi *multi, size_t n, const char *call,
                       struct zkl_place **place)
{
    struct zkl_multi_hold *held;
    int rc = zkl_multi_find(multi, call, &held);
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
            *place = nth_of(multi, i, (int)n, held);
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

/* Of all holds: LOST counts more than SUSPECT, and that more than HELD. 0: a member was unlocked by
 * itself. With the mutex. */
static int worst_state(const struct zkl_multi *multi, struct zkl_multi_hold *held,
                       enum zkl_reason *reason)
{
    int worst = ZKL_HOLD_HELD;
    for (size_t i = 0; i < multi->count; i++) {
        struct zkl_place *place = nth_of(multi, i, 0, held);
        if (!place) {
            *reason = ZKL_REASON_NONE;
            return 0;
        }
        for (int n = 0; place; place = nth_of(multi, i, ++n, held)) {
            enum zkl_reason why;
            int state = zkl_place_state_now(place, &why);
            if (state > worst)
                *reason = why;
            worst = state > worst ? state : worst;
        }
    }
    return worst;
}

int zkl_multi_hold_state(struct zkl_multi *multi, enum zkl_reason *reason)
{
    struct zkl_multi_hold *held;
    enum zkl_reason unwanted, *why = no_reason(reason, &unwanted);
    int state = 0;
    if (zkl_multi_find(multi, __func__, &held) != 0)
        return 0;
    ZKL_SHIELDED();
    if (held) {
        zkl_driver_lock(multi->client->driver);
        state = worst_state(multi, held, why);
        zkl_driver_unlock(multi->client->driver);
    }
    zkl_fail_none();
    return state;
}
