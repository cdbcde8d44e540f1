/* SPDX-License-Identifier: Apache-2.0
 *
 * The semaphore: a mutex handle at <path>/leases whose holds are permits, and belong to no thread;
 * and the mutex that any thread may unlock, a semaphore with one permit.
 * This file owns what the client knows of the number of permits, and the record of the inner
 * mutex's path. Users call it from any thread; permit_request.c does the waiting, under the
 * client's mutex. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attempt.h"
#include "counts.h"
#include "error.h"
#include "awaited_query.h"

#define LONGEST_PART "/leases"

/* --- the handle --------------------------------------------------------- */

static int check_options(const char *path, int permits, const struct zkl_mutex_options *options,
                         const char *call)
{
    if (options->names != ZKL_NAMES_CURATOR)
        return zkl_fail(ZKL_EINVAL, "%s: a semaphore can have only Curator's names", call);
    if (permits < 0 || permits > ZKL_PERMITS_MAX)
        return zkl_fail(ZKL_EINVAL, "%s: permits is %d, not 0 to %d", call, permits,
                        ZKL_PERMITS_MAX);
    if (strlen(path) > ZKL_PATH_MAX - strlen(LONGEST_PART))
        return zkl_fail(ZKL_EBADPATH,
                        "\"%.64s\" is longer than %zu bytes, the limit for a semaphore", path,
                        ZKL_PATH_MAX - strlen(LONGEST_PART));
    return 0;
}

static struct zkl_lock_path *lock_path_below(struct zkl_client *client, const char *path,
                                             const char *part)
{
    char whole[ZKL_PATH_MAX + 1];
    snprintf(whole, sizeof whole, "%s%s", path, part);
    return zkl_lock_path_get(client, whole);
}

int zkl_semaphore_init(void *handle, struct zkl_client *client, const char *path, int permits,
                       const struct zkl_mutex_options *options, const char *call)
{
    struct zkl_semaphore *s = handle;
    char leases[ZKL_PATH_MAX + 1];
    struct zkl_mutex_options inner = *options;
    int rc = check_options(path, permits, options, call);
    if (rc != 0)
        return rc;
    snprintf(leases, sizeof leases, "%s/leases", path);
    inner.metrics = 0; /* what it does counts at its own path */
    rc = zkl_mutex_init(&s->base, client, leases, &inner, call);
    if (rc != 0)
        return rc;
    s->base.naming.role = ZKL_ROLE_PERMIT;
    s->base.semaphore = s;
    s->view.permits = permits;
    s->path = zkl_lock_path_get(client, path);
    bool counted = s->path && (!options->metrics || zkl_lock_path_keep_counts(client, s->path));
    s->gate = counted ? lock_path_below(client, path, "/locks") : NULL;
    if (s->gate)
        return 0;
    if (s->path)
        zkl_lock_path_put(client, s->path);
    zkl_mutex_fini(&s->base);
    return zkl_fail(ZKL_ENOMEM, "%s", call);
}

void zkl_semaphore_fini(void *handle)
{
    struct zkl_semaphore *semaphore = handle;
    zkl_lock_path_put(semaphore->base.client, semaphore->gate);
    zkl_lock_path_put(semaphore->base.client, semaphore->path);
    zkl_mutex_fini(&semaphore->base);
}

int zkl_semaphore_new(struct zkl_semaphore **semaphore, struct zkl_client *client, const char *path,
                      int permits, const struct zkl_lock_options *options)
{
    static const struct zkl_lock_maker maker = {"zkl_semaphore_new", sizeof(struct zkl_semaphore),
                                                zkl_lock_options_take, zkl_semaphore_init};
    void *made;
    int rc = zkl_lock_new(&maker, semaphore, client, path, permits, options, &made);
    if (rc == 0)
        *semaphore = made;
    return rc;
}

int zkl_semaphore_free(struct zkl_semaphore *semaphore)
{
    if (!semaphore)
        return 0;
    struct zkl_mutex *base = &semaphore->base;
    return zkl_lock_free(semaphore, &base, 1, zkl_semaphore_fini, "zkl_semaphore_free");
}

int zkl_semaphore_set_callback(struct zkl_semaphore *semaphore, zkl_hold_fn fn, void *arg)
{
    if (!semaphore)
        return zkl_fail(ZKL_EINVAL, "zkl_semaphore_set_callback: semaphore is NULL");
    return zkl_mutex_set_callback(&semaphore->base, fn, arg);
}

int zkl_semaphore_permits(struct zkl_semaphore *semaphore)
{
    if (!semaphore)
        zkl_fail(ZKL_EINVAL, "zkl_semaphore_permits: semaphore is NULL");
    if (!semaphore || zkl_client_check(semaphore->base.client, false, "zkl_semaphore_permits") != 0)
        return 0;
    struct zkl_client *client = semaphore->base.client;
    zkl_fail_none();
    ZKL_SHIELDED();
    zkl_driver_lock(client->driver);
    int permits = semaphore->view.agreed ? semaphore->view.permits : 0;
    zkl_driver_unlock(client->driver);
    return permits;
}

/* --- acquire ------------------------------------------------------------ */

int zkl_semaphore_check_acquire(struct zkl_semaphore *semaphore, int count,
                                const struct zkl_wait *wait, struct zkl_permit **permits,
                                const char *call, bool blocks)
{
    if (!semaphore || !permits)
        return zkl_fail(ZKL_EINVAL, "%s: %s is NULL", call, semaphore ? "permits" : "semaphore");
    int rc = zkl_wait_check(wait, semaphore->base.client, call, blocks);
    if (rc != 0)
        return rc;
    const char *path = semaphore->path->path;
    if (count < 1 || count > ZKL_PERMITS_AT_ONCE_MAX)
        return zkl_fail(ZKL_EINVAL, "%s: %s: count is %d, not 1 to %d", call, path, count,
                        ZKL_PERMITS_AT_ONCE_MAX);
    return 0;
}

/* The number can't be another one than was declared until the first acquire. */
int zkl_semaphore_check_count(struct zkl_semaphore *s, int count)
{
    zkl_driver_lock(s->base.client->driver);
    int declared = s->view.agreed ? 0 : s->view.permits;
    zkl_driver_unlock(s->base.client->driver);
    if (declared != 0 && count > declared)
        return zkl_fail(ZKL_EINVAL, "%s has %d permits: a call cannot acquire %d", s->path->path,
                        declared, count);
    return 0;
}

static int do_acquire(struct zkl_semaphore *semaphore, int count, const struct zkl_wait *wait,
                      struct zkl_permit **permits)
{
    int rc = zkl_semaphore_check_count(semaphore, count);
    if (rc != 0)
        return zkl_count_failure(&semaphore->base, rc);
    struct zkl_attempt_of_one one;
    rc = zkl_attempt_of_permits(&one, semaphore, count, wait);
    return zkl_attempt_take_one(&one, &semaphore->base, rc, NULL, permits);
}

static int acquire(struct zkl_semaphore *semaphore, int count, const struct zkl_wait *wait,
                   struct zkl_permit **permits)
{
    int rc = zkl_wait_check_over(wait, semaphore->path->path);
    if (rc != 0)
        return zkl_count_failure(&semaphore->base, rc);
    ZKL_SHIELDED();
    return do_acquire(semaphore, count, wait, permits);
}

int zkl_semaphore_acquire(struct zkl_semaphore *semaphore, int count, const struct zkl_wait *wait,
                          struct zkl_permit **permits)
{
    static const char call[] = "zkl_semaphore_acquire";
    struct zkl_wait ours;
    int rc = zkl_wait_take(&ours, wait, call);
    if (rc == 0)
        rc = zkl_semaphore_check_acquire(semaphore, count, &ours, permits, call, true);
    if (rc != 0)
        return rc;
    return acquire(semaphore, count, &ours, permits);
}

/* --- the number of permits ---------------------------------------------- */

/* One write of the number, by a SET or by making the node. */
struct setting {
    struct zkl_semaphore *semaphore;
    const struct zkl_wait *wait;
};

static int request(struct setting *setting, enum zkl_request_kind kind, const char *path,
                   const char *data, struct zkl_awaited_query *q)
{
    *q = zkl_awaited_query_of(kind, path);
    q->query.data = data;
    int rc = zkl_query_all(setting->semaphore->base.client, q, 1, setting->wait->deadline_ns,
                           setting->wait->cancel);
    return rc == 0 ? 0 : zkl_fail(rc, "%s", path);
}

static int fail_answer(const struct zkl_awaited_query *q)
{
    const char *path = q->query.path;
    if (q->answer == ZKL_ANSWER_NOAUTH)
        return zkl_fail(ZKL_EACCES, "%s: the ACL denies %s", path,
                        q->query.kind == ZKL_REQ_SET ? "WRITE" : "CREATE on its parent");
    return zkl_fail(zkl_answer_code(q->answer), "%s: ZooKeeper returned %d", path, q->number);
}

/* path, and what is missing above it. It may be there already. */
static int make(struct setting *setting, const char *path, const char *data)
{
    struct zkl_awaited_query q;
    char above[ZKL_PATH_MAX + 1];
    int rc = request(setting, ZKL_REQ_MAKE, path, data, &q);
    if (rc != 0 || q.answer == ZKL_ANSWER_OK || q.answer == ZKL_ANSWER_EXISTS)
        return rc;
    if (q.answer != ZKL_ANSWER_NONODE)
        return fail_answer(&q);
    snprintf(above, sizeof above, "%s", path);
    *strrchr(above, '/') = '\0';
    if (above[0] == '\0')
        return zkl_fail(ZKL_ENOCHROOT, "%s", path);
    rc = make(setting, above, NULL);
    return rc == 0 ? make(setting, path, data) : rc;
}

static int set_number(struct setting *setting, const char *number)
{
    const char *path = setting->semaphore->base.lock_path->path;
    for (;;) {
        struct zkl_awaited_query q;
        int rc = request(setting, ZKL_REQ_SET, path, number, &q);
        if (rc != 0 || q.answer == ZKL_ANSWER_OK)
            return rc;
        if (q.answer != ZKL_ANSWER_NONODE)
            return fail_answer(&q);
        rc = make(setting, path, number); /* another client may be faster, with another number */
        if (rc != 0)
            return rc;
    }
}

static int do_set_permits(struct zkl_semaphore *semaphore, int permits, const struct zkl_wait *wait)
{
    struct zkl_client *client = semaphore->base.client;
    struct setting setting = {.semaphore = semaphore, .wait = wait};
    char number[16];
    snprintf(number, sizeof number, "%d", permits);
    zkl_client_ref(client);
    zkl_driver_lock(client->driver);
    semaphore->base.uses++;
    semaphore->view.changes++; /* another thread may read the new number before this one goes on */
    zkl_driver_unlock(client->driver);
    int rc = set_number(&setting, number);
    zkl_driver_lock(client->driver);
    if (rc == 0) {
        semaphore->view.permits = permits;
        semaphore->view.agreed = true;
    }
    if (rc == 0 || rc == ZKL_EACCES) /* else it may stand there */
        semaphore->view.changes--;
    semaphore->base.uses--; /* another thread may free it, and the client, from here on */
    zkl_driver_unlock(client->driver);
    zkl_client_unref(client);
    return rc;
}

static int check_set(struct zkl_semaphore *semaphore, int permits, const struct zkl_wait *wait)
{
    static const char call[] = "zkl_semaphore_set_permits";
    if (!semaphore)
        return zkl_fail(ZKL_EINVAL, "%s: semaphore is NULL", call);
    int rc = zkl_wait_check(wait, semaphore->base.client, call, true);
    if (rc == 0 && (permits < 1 || permits > ZKL_PERMITS_MAX))
        rc = zkl_fail(ZKL_EINVAL, "%s: permits is %d, not 1 to %d", call, permits, ZKL_PERMITS_MAX);
    return rc;
}

int zkl_semaphore_set_permits(struct zkl_semaphore *semaphore, int permits,
                              const struct zkl_wait *wait)
{
    struct zkl_wait ours;
    int rc = zkl_wait_take(&ours, wait, "zkl_semaphore_set_permits");
    if (rc == 0)
        rc = check_set(semaphore, permits, &ours);
    if (rc == 0)
        rc = zkl_wait_check_over(&ours, semaphore->path->path);
    if (rc != 0)
        return rc;
    ZKL_SHIELDED();
    struct zkl_cancel *cancel = zkl_cancel_ref(ours.cancel);
    rc = do_set_permits(semaphore, permits, &ours);
    zkl_cancel_free(cancel);
    return rc;
}

/* --- permits ------------------------------------------------------------ */

int zkl_permit_check_release(struct zkl_permit *permit, const char *call)
{
    const struct zkl_place *place = (struct zkl_place *)permit;
    if (!permit)
        return zkl_fail(ZKL_EINVAL, "%s: permit is NULL", call);
    int rc = zkl_client_check(place->client, false, call);
    if (rc == 0 && place->is_members)
        rc = zkl_fail(ZKL_EINVAL,
                      "%s: %s: the permit belongs to a multi-lock: unlock the multi-lock", call,
                      place->lock_path->path);
    return rc;
}

int zkl_permit_release(struct zkl_permit *permit)
{
    struct zkl_place *place = (struct zkl_place *)permit;
    int rc = zkl_permit_check_release(permit, "zkl_permit_release");
    if (rc != 0)
        return rc;
    if (zkl_driver_in_callback())
        return zkl_fail(ZKL_EINCALLBACK, "%s", place->lock_path->path);
    return zkl_lock_release(place);
}

/* --- the mutex that any thread may unlock ---------------------------------- */

/* It has one permit, which belongs to the handle: that has the one hold, with a reference
 * (permit_request.c). */
static int lock_mutex(struct zkl_mutex *mutex, const struct zkl_wait *wait, struct zkl_grant *grant)
{
    struct zkl_attempt_of_one one;
    int rc = zkl_attempt_of_permits(&one, mutex->semaphore, 1, wait);
    return zkl_attempt_take_one(&one, mutex, rc, grant, NULL);
}

static int acquire_mutex(struct zkl_mutex *mutex, const struct zkl_wait *wait,
                         struct zkl_grant *grant)
{
    int rc = zkl_wait_check_over(wait, mutex->semaphore->path->path);
    ZKL_SHIELDED();
    if (rc == 0)
        rc = zkl_semaphore_check_handle(mutex, wait);
    return rc == 0 ? lock_mutex(mutex, wait, grant) : zkl_count_failure(mutex, rc);
}

static int give_up(struct zkl_mutex *mutex, struct zkl_place **place)
{
    ZKL_SHIELDED();
    *place = zkl_semaphore_take(mutex, NULL);
    return *place ? 0 : zkl_fail(ZKL_ENOTOWNER, "%s", mutex->semaphore->path->path);
}

static struct zkl_hold find(struct zkl_mutex *mutex)
{
    struct zkl_place *place = zkl_semaphore_find(mutex);
    return (struct zkl_hold){.mutex = mutex, .place = place, .count = place != NULL};
}

static void put(const struct zkl_hold *hold)
{
    zkl_place_unref(hold->place);
}

static const struct zkl_mutex_kind handle_kind = {
    .acquire = acquire_mutex,
    .find = find,
    .put = put,
    .give_up = give_up,
    .fini = zkl_semaphore_fini, /* which begins with it */
};

static int init_mutex(void *handle, struct zkl_client *client, const char *path, int permits,
                      const struct zkl_mutex_options *options, const char *call)
{
    struct zkl_semaphore *semaphore = handle;
    semaphore->base.kind = &handle_kind;
    return zkl_semaphore_init(semaphore, client, path, permits, options, call);
}

int zkl_semaphore_mutex_new(struct zkl_mutex **mutex, struct zkl_client *client, const char *path,
                            const struct zkl_lock_options *options)
{
    static const struct zkl_lock_maker maker = {
        "zkl_semaphore_mutex_new", sizeof(struct zkl_semaphore), zkl_lock_options_take, init_mutex};
    void *made;
    int rc = zkl_lock_new(&maker, mutex, client, path, 1, options, &made);
    if (rc == 0)
        *mutex = &((struct zkl_semaphore *)made)->base;
    return rc;
}
