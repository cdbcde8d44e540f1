/* SPDX-License-Identifier: Apache-2.0 */
#include "refused_calls.h"

#include <string.h>

#define CALLED_DEFINE
#include "called.h"

void refused_calls_hold(struct refused_calls *e, struct zkl_client *client)
{
    struct zkl_lock_options counted = ZKL_LOCK_OPTIONS_INIT;

    counted.metrics = 1;
    *e = (struct refused_calls){.client = client, .options = cluster_options()};
    e->mutex = cluster_mutex(client, cluster_path("every-mutex"));
    check_ok(zkl_rwlock_new(&e->rwlock, client, cluster_path("every-rwlock"), NULL));
    check_ok(
        zkl_semaphore_new(&e->semaphore, client, cluster_path("every-semaphore"), 2, &counted));
    struct zkl_member members[] = {zkl_member_mutex(e->mutex),
                                   zkl_member_mutex(zkl_rwlock_writer(e->rwlock))};
    check_ok(zkl_multi_new(&e->multi, client, members, 2));
    check_ok(zkl_owner_new(&e->owner));
    check_ok(zkl_multi_lock(e->multi));
    check_ok(zkl_semaphore_acquire(e->semaphore, 1, NULL, &e->permit));
    check_num(zkl_mutex_node_path(e->mutex, e->node, sizeof e->node), >, 0);
}

/* Above 0 is as good as 1. */
static long long sign(long long said)
{
    return said > 0 ? 1 : said;
}

static void compare(struct refused_calls *e, const char *call, long long said, long long due)
{
    if (said == due)
        return;
    if (e->wrong++ == 0)
        snprintf(e->first, sizeof e->first, "%s: %lld, not %lld", call, said, due);
}

/* A call, what it says in a callback, and in a child. */
#define RETURNS(call, in_callback, in_child)                                                       \
    compare(e, #call, (long long)(call), where == REFUSED_IN_CALLBACK ? (in_callback) : (in_child))
/* It would wait. */
#define REFUSED(call) RETURNS(call, ZKL_EINCALLBACK, ZKL_EFORK)
/* It waits for nothing, but belongs to the client's process. */
#define LOCAL(call, in_callback) RETURNS(call, in_callback, ZKL_EFORK)
/* It has to do with no client. */
#define FREE(call, said) RETURNS(call, said, said)

static void call_on_client(struct refused_calls *e, enum refusal where)
{
    const struct zkl_inspection *inspection = NULL;
    char address[80];

    LOCAL(sign(zkl_client_get_state(e->client)), 1);
    /* In a callback it may have none just then. */
    RETURNS(zkl_client_session_id(e->client) != 0 && where != REFUSED_IN_CALLBACK, 0, 0);
    RETURNS(zkl_client_server(e->client, address, sizeof address) == ZKL_EFORK, 0, 1);
    LOCAL(zkl_client_set_servers(e->client, ""), ZKL_EBADSERVERS);
    REFUSED(zkl_client_close(e->client, 5000));
    REFUSED(zkl_client_free(e->client));
    REFUSED(zkl_inspect(e->client, "/every", 5000, &inspection));
    zkl_inspection_free(inspection);
    REFUSED(zkl_revoke(e->client, e->node, NULL, 0));
    REFUSED(zkl_break(e->client, e->node, 0, 0, 5000));
}

static void call_on_mutex(struct refused_calls *e, enum refusal where)
{
    struct zkl_mutex *another = NULL, *one = NULL;
    char node[300];

    REFUSED(zkl_mutex_acquire(e->mutex, NULL, NULL));
    REFUSED(zkl_mutex_lock(e->mutex));
    REFUSED(zkl_mutex_trylock(e->mutex));
    REFUSED(zkl_mutex_lock_for(e->mutex, 5000));
    REFUSED(zkl_mutex_lock_until(e->mutex, ZKL_NO_DEADLINE, NULL));
    REFUSED(zkl_mutex_unlock(e->mutex));
    LOCAL(zkl_mutex_new(&another, e->client, "/every-other", NULL), 0);
    LOCAL(zkl_semaphore_mutex_new(&one, e->client, "/every-one", NULL), 0);
    FREE(zkl_mutex_free(another), 0);
    FREE(zkl_mutex_free(one), 0);
    LOCAL(zkl_mutex_free(e->mutex), ZKL_EBUSY);
    /* These speak of the calling thread's hold, and it has none. */
    RETURNS(zkl_mutex_still_held(e->mutex, 0), 0, 0);
    LOCAL(zkl_mutex_check(e->mutex, 0), ZKL_ENOTOWNER);
    RETURNS(zkl_mutex_hold_count(e->mutex), 0, 0);
    FREE(zkl_mutex_token(e->mutex), 0);
    RETURNS(zkl_mutex_window_ms(e->mutex), 0, 0);
    LOCAL(zkl_mutex_node_path(e->mutex, node, sizeof node), ZKL_ENOTOWNER);
    RETURNS(zkl_mutex_hold_state(e->mutex, NULL), 0, 0);
    RETURNS(zkl_mutex_waiting(e->mutex, NULL), 0, 0);
    LOCAL(zkl_mutex_set_callback(e->mutex, NULL, NULL), 0);
    LOCAL(zkl_mutex_renew(e->mutex, 60000), ZKL_ENOTOWNER);
    RETURNS(zkl_mutex_revoke_requested(e->mutex), 0, 0);
}

static void call_on_rwlock(struct refused_calls *e, enum refusal where)
{
    struct zkl_rwlock *another = NULL;

    LOCAL(zkl_rwlock_new(&another, e->client, "/every-other", NULL), 0);
    FREE(zkl_rwlock_free(another), 0);
    LOCAL(zkl_rwlock_free(e->rwlock), ZKL_EBUSY);
    LOCAL(zkl_rwlock_retain_readers(e->rwlock, 0), 0);
    FREE(zkl_rwlock_reader(e->rwlock) != NULL, 1);
    REFUSED(zkl_mutex_lock(zkl_rwlock_reader(e->rwlock)));
    REFUSED(zkl_mutex_unlock(zkl_rwlock_writer(e->rwlock)));
}

static void call_on_semaphore(struct refused_calls *e, enum refusal where)
{
    struct zkl_semaphore *another = NULL;
    struct zkl_permit *permit;
    char node[300];

    LOCAL(zkl_semaphore_new(&another, e->client, "/every-other", 1, NULL), 0);
    FREE(zkl_semaphore_free(another), 0);
    LOCAL(zkl_semaphore_free(e->semaphore), ZKL_EBUSY);
    REFUSED(zkl_semaphore_acquire(e->semaphore, 1, NULL, &permit));
    RETURNS(zkl_semaphore_permits(e->semaphore), 2, 0);
    RETURNS(zkl_semaphore_waiting(e->semaphore, NULL), 0, 0);
    REFUSED(zkl_semaphore_set_permits(e->semaphore, 3, NULL));
    LOCAL(zkl_semaphore_set_callback(e->semaphore, NULL, NULL), 0);
    REFUSED(zkl_permit_release(e->permit));
    RETURNS(zkl_permit_still_held(e->permit, 0), 1, 0);
    LOCAL(zkl_permit_check(e->permit, 0), 0);
    RETURNS(zkl_permit_token(e->permit) > 0, 1, 0);
    RETURNS(sign(zkl_permit_window_ms(e->permit)), 1, 0);
    LOCAL(sign(zkl_permit_node_path(e->permit, node, sizeof node)), 1);
    RETURNS(sign(zkl_permit_hold_state(e->permit, NULL)), 1, 0); /* held, or suspect just then */
    LOCAL(zkl_permit_renew(e->permit, 600000), 0);
    RETURNS(zkl_permit_revoke_requested(e->permit), 0, 0);
}

static void call_on_multi(struct refused_calls *e, enum refusal where)
{
    struct zkl_member member = zkl_member_mutex(e->mutex);
    struct zkl_multi *another = NULL;
    char node[300];

    LOCAL(zkl_multi_new(&another, e->client, &member, 1), 0);
    FREE(zkl_multi_free(another), 0);
    LOCAL(zkl_multi_free(e->multi), ZKL_EBUSY);
    REFUSED(zkl_multi_acquire(e->multi, NULL, NULL));
    REFUSED(zkl_multi_lock(e->multi));
    REFUSED(zkl_multi_trylock(e->multi));
    REFUSED(zkl_multi_lock_for(e->multi, 5000));
    REFUSED(zkl_multi_lock_until(e->multi, ZKL_NO_DEADLINE, NULL));
    REFUSED(zkl_multi_unlock(e->multi, NULL));
    RETURNS(zkl_multi_still_held(e->multi, 0), 0, 0);
    LOCAL(zkl_multi_check(e->multi, 0), ZKL_ENOTOWNER);
    RETURNS(zkl_multi_window_ms(e->multi), 0, 0);
    FREE(zkl_multi_token(e->multi, 0), 0);
    RETURNS(zkl_multi_hold_state(e->multi, NULL), 0, 0);
    LOCAL(zkl_multi_node_path(e->multi, 0, node, sizeof node), ZKL_ENOTOWNER);
}

static void ignore(int code, void *arg)
{
    (void)code, (void)arg;
}

static void call_asynchronously(struct refused_calls *e, enum refusal where)
{
    struct zkl_wait over = ZKL_WAIT_INIT;
    struct zkl_permit *permit;
    struct zkl_owner *own = NULL;

    over.deadline_ns = 1;
    FREE(zkl_owner_new(&own), 0);
    FREE(zkl_owner_use(own) != NULL, 0);
    FREE(zkl_owner_use(NULL) == own, 1);
    FREE(zkl_owner_free(own), 0);
    RETURNS(zkl_owner_free(e->owner), 0, ZKL_EFORK);
    if (where == REFUSED_IN_CALLBACK)
        check_ok(zkl_owner_new(&e->owner));
    LOCAL(zkl_mutex_acquire_async(e->owner, e->mutex, &over, NULL, ignore, NULL, NULL), 0);
    LOCAL(zkl_mutex_unlock_async(e->owner, e->mutex, ignore, NULL), ZKL_ENOTOWNER);
    LOCAL(zkl_semaphore_acquire_async(e->semaphore, 1, &over, &permit, ignore, NULL, NULL), 0);
    RETURNS(zkl_permit_release_async(e->permit, where == REFUSED_IN_CALLBACK ? NULL : ignore, NULL),
            ZKL_EINVAL, ZKL_EFORK);
    LOCAL(zkl_multi_unlock_async(e->owner, e->multi, NULL, ignore, NULL), ZKL_ENOTOWNER);
    LOCAL(zkl_multi_acquire_async(e->owner, e->multi, &over, NULL, ignore, NULL, NULL), 0);
    RETURNS(zkl_client_close_async(e->client, where == REFUSED_IN_CALLBACK ? NULL : ignore, NULL),
            ZKL_EINVAL, ZKL_EFORK);
    LOCAL(zkl_op_cancel(e->client, 0), 0);
    RETURNS(zkl_op_waiting(e->client, 0, NULL), 0, 0);
    REFUSED(zkl_client_event_fd(e->client));
    REFUSED(zkl_client_dispatch(e->client, 1));
}

static void call_on_metrics(struct refused_calls *e, enum refusal where)
{
    struct zkl_client_metrics of_client = ZKL_CLIENT_METRICS_INIT;
    struct zkl_lock_metrics of_lock = ZKL_LOCK_METRICS_INIT;

    LOCAL(zkl_client_get_metrics(e->client, &of_client), 0);
    LOCAL(zkl_client_get_lock_metrics(e->client, &of_lock), 0);
    LOCAL(zkl_mutex_get_metrics(e->mutex, &of_lock), ZKL_EINVAL); /* made without */
    LOCAL(zkl_semaphore_get_metrics(e->semaphore, &of_lock), 0);
    LOCAL(sign(zkl_metrics_prometheus(e->client, NULL, 0)), 1);
    FREE(zkl_histogram_bound_ns(1), 1000);
    FREE(zkl_histogram_percentile_ns(&of_lock.wait, 50) >= 0, 1);
}

static void call_guards(struct refused_calls *e, enum refusal where)
{
    struct zkl_guard guards[2];

    LOCAL(zkl_guard_mutex_path(e->mutex, 0, NULL, guards), ZKL_ENOTOWNER);
    LOCAL(zkl_guard_permit_path(e->permit, 0, NULL, guards), 0);
    LOCAL(zkl_guard_multi_paths(e->multi, 0, NULL, guards, 2), ZKL_ENOTOWNER);
}

static void call_the_rest(struct refused_calls *e, enum refusal where)
{
    struct zkl_cancel *cancel = NULL;
    struct zkl_client *opened = NULL;

    FREE(zkl_version(NULL) != NULL, 1);
    FREE(strlen(zkl_strerror(ZKL_EFORK)) > 0, 1);
    FREE(strlen(zkl_error_name(ZKL_EFORK)) > 0, 1);
    FREE(strlen(zkl_error_detail()) > 0, 1); /* of what failed before */
    FREE(zkl_error_is_retryable(ZKL_EFORK), 0);
    FREE(zkl_error_is_lost(ZKL_EFORK), 0);
    FREE(zkl_now_ns() > 0, 1);
    FREE(zkl_cancel_new(&cancel), 0);
    zkl_cancel_set(cancel);
    FREE(zkl_cancel_is_set(cancel), 1);
    zkl_cancel_free(cancel);
    /* A child may have a client of its own. A callback may open one if it does not wait for the
     * connection. */
    RETURNS(zkl_client_open(&opened, &e->options), ZKL_EINCALLBACK, 0);
    if (where == REFUSED_IN_CHILD) {
        FREE(zkl_client_free(opened), 0);
    } else {
        struct zkl_client_options options = e->options;
        options.connect_timeout_ms = 0;
        FREE(zkl_client_open(&e->opened, &options), 0);
    }
}

void refused_calls_make(struct refused_calls *e, enum refusal where)
{
    int64_t start_ms = net_now_ms();

    memset(called_times, 0, sizeof called_times);
    called_on = true;
    call_on_client(e, where);
    call_on_mutex(e, where);
    call_on_rwlock(e, where);
    call_on_semaphore(e, where);
    call_on_multi(e, where);
    call_asynchronously(e, where);
    call_guards(e, where);
    call_on_metrics(e, where);
    e->ms = net_now_ms() - start_ms;
    call_the_rest(e, where);
    called_on = false;
    compare(e, "calls that were not made", called_missing(), 0);
}

void refused_calls_check(struct refused_calls *e)
{
    if (e->wrong > 0)
        fail_msg("%d calls were wrong, the first: %s", e->wrong, e->first);
    check_num(e->ms, <, REFUSED_CALLS_MS);
    check_num(zkl_multi_still_held(e->multi, 1), ==, 1);
    check_num(zkl_permit_still_held(e->permit, 1), ==, 1);
    check_num(zkl_client_get_state(e->client), ==, ZKL_CLIENT_CONNECTED);
    if (e->opened != NULL)
        check_ok(zkl_client_free(e->opened));
    e->opened = NULL;
}

void refused_calls_release(struct refused_calls *e)
{
    check_ok(zkl_multi_unlock(e->multi, NULL));
    check_wait(zkl_multi_free(e->multi) == 0, WAIT_MS);
    check_ok(zkl_rwlock_free(e->rwlock));
    check_ok(zkl_permit_release(e->permit));
    check_ok(zkl_semaphore_free(e->semaphore));
    check_ok(zkl_mutex_free(e->mutex));
    check_wait(zkl_owner_free(e->owner) == 0, WAIT_MS); /* its operations may still be ending */
}
