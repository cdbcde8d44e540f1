/* SPDX-License-Identifier: Apache-2.0 */
/* Wrong calls, made on the shared library as it is shipped: each has its code, none crashes. */
#include "cluster.h"

#include <zklock/async.h>
#include <zklock/inspect.h>
#include <zklock/guard.h>
#include <zklock/metrics.h>
#include <zklock/version.h>

#include "check_error.h"

#include <stdio.h>
#include <stdlib.h>

/* --- NULL ------------------------------------------------------------------------------------ */

static const char *tried[128];
static size_t tried_count;

static void check_said(const char *name, int64_t said, int64_t expected)
{
    tried[tried_count++] = name;
    if (said != expected)
        fail_msg("%s says %lld, not %lld", name, (long long)said, (long long)expected);
    if (expected == ZKL_EINVAL && !strstr(zkl_error_detail(), "NULL"))
        fail_msg("%s explains nothing: %s", name, zkl_error_detail());
}

#define try(function, arguments, expected)                                                         \
    check_said(#function, (int64_t)function arguments, expected)

/* What is used as a condition, a count, a time or a token: 0, and a reason. */
static void check_none(const char *name, int64_t said)
{
    check_said(name, said, 0);
    if (!strstr(zkl_error_detail(), "NULL"))
        fail_msg("%s explains nothing: %s", name, zkl_error_detail());
}

#define none(function, arguments) check_none(#function, (int64_t)function arguments)

static void try_clients(void)
{
    zkl_cancel_set(NULL);
    tried[tried_count++] = "zkl_cancel_set";
    zkl_cancel_free(NULL);
    tried[tried_count++] = "zkl_cancel_free";
    try(zkl_cancel_new, (NULL), ZKL_EINVAL);
    try(zkl_cancel_is_set, (NULL), 0);
    try(zkl_client_open, (NULL, NULL), ZKL_EINVAL);
    try(zkl_client_get_state, (NULL), ZKL_EINVAL);
    none(zkl_client_session_id, (NULL));
    try(zkl_client_server, (NULL, NULL, 0), ZKL_EINVAL);
    try(zkl_client_set_servers, (NULL, NULL), ZKL_EINVAL);
    try(zkl_client_close, (NULL, 0), ZKL_EINVAL);
    try(zkl_client_free, (NULL), ZKL_EINVAL);
}

static void try_mutexes(void)
{
    try(zkl_mutex_new, (NULL, NULL, NULL, NULL), ZKL_EINVAL);
    try(zkl_mutex_free, (NULL), 0);
    try(zkl_mutex_acquire, (NULL, NULL, NULL), ZKL_EINVAL);
    try(zkl_mutex_lock, (NULL), ZKL_EINVAL);
    try(zkl_mutex_trylock, (NULL), ZKL_EINVAL);
    try(zkl_mutex_lock_for, (NULL, 0), ZKL_EINVAL);
    try(zkl_mutex_lock_until, (NULL, 0, NULL), ZKL_EINVAL);
    try(zkl_mutex_unlock, (NULL), ZKL_EINVAL);
    none(zkl_mutex_still_held, (NULL, 0));
    try(zkl_mutex_check, (NULL, 0), ZKL_EINVAL);
    none(zkl_mutex_hold_count, (NULL));
    none(zkl_mutex_token, (NULL));
    none(zkl_mutex_window_ms, (NULL));
    try(zkl_mutex_node_path, (NULL, NULL, 0), ZKL_EINVAL);
    none(zkl_mutex_hold_state, (NULL, NULL));
    none(zkl_mutex_waiting, (NULL, NULL));
    try(zkl_mutex_set_callback, (NULL, NULL, NULL), ZKL_EINVAL);
    try(zkl_mutex_renew, (NULL, 1), ZKL_EINVAL);
    none(zkl_mutex_revoke_requested, (NULL));
    try(zkl_rwlock_new, (NULL, NULL, NULL, NULL), ZKL_EINVAL);
    try(zkl_rwlock_free, (NULL), 0);
    try(zkl_rwlock_retain_readers, (NULL, 0), ZKL_EINVAL);
    try(zkl_rwlock_reader, (NULL), 0);
    try(zkl_rwlock_writer, (NULL), 0);
    try(zkl_semaphore_mutex_new, (NULL, NULL, NULL, NULL), ZKL_EINVAL);
}

static void try_semaphores(void)
{
    try(zkl_semaphore_new, (NULL, NULL, NULL, 1, NULL), ZKL_EINVAL);
    try(zkl_semaphore_free, (NULL), 0);
    try(zkl_semaphore_acquire, (NULL, 1, NULL, NULL), ZKL_EINVAL);
    none(zkl_semaphore_permits, (NULL));
    none(zkl_semaphore_waiting, (NULL, NULL));
    try(zkl_semaphore_set_permits, (NULL, 1, NULL), ZKL_EINVAL);
    try(zkl_semaphore_set_callback, (NULL, NULL, NULL), ZKL_EINVAL);
    try(zkl_permit_release, (NULL), ZKL_EINVAL);
    none(zkl_permit_still_held, (NULL, 0));
    try(zkl_permit_check, (NULL, 0), ZKL_EINVAL);
    none(zkl_permit_token, (NULL));
    none(zkl_permit_window_ms, (NULL));
    try(zkl_permit_node_path, (NULL, NULL, 0), ZKL_EINVAL);
    none(zkl_permit_hold_state, (NULL, NULL));
    try(zkl_permit_renew, (NULL, 1), ZKL_EINVAL);
    none(zkl_permit_revoke_requested, (NULL));
    try(zkl_multi_new, (NULL, NULL, NULL, 0), ZKL_EINVAL);
    try(zkl_multi_free, (NULL), 0);
    try(zkl_multi_acquire, (NULL, NULL, NULL), ZKL_EINVAL);
    try(zkl_multi_lock, (NULL), ZKL_EINVAL);
    try(zkl_multi_trylock, (NULL), ZKL_EINVAL);
    try(zkl_multi_lock_for, (NULL, 0), ZKL_EINVAL);
    try(zkl_multi_lock_until, (NULL, 0, NULL), ZKL_EINVAL);
    try(zkl_multi_unlock, (NULL, NULL), ZKL_EINVAL);
    none(zkl_multi_still_held, (NULL, 0));
    try(zkl_multi_check, (NULL, 0), ZKL_EINVAL);
    none(zkl_multi_window_ms, (NULL));
    none(zkl_multi_token, (NULL, 0));
    try(zkl_multi_node_path, (NULL, 0, NULL, 0), ZKL_EINVAL);
    none(zkl_multi_hold_state, (NULL, NULL));
}

static void try_inspections(void)
{
    zkl_inspection_free(NULL);
    tried[tried_count++] = "zkl_inspection_free";
    try(zkl_inspect, (NULL, NULL, 0, NULL), ZKL_EINVAL);
    try(zkl_revoke, (NULL, NULL, NULL, 0), ZKL_EINVAL);
    try(zkl_break, (NULL, NULL, 0, 0, 0), ZKL_EINVAL);
}

static void try_operations(void)
{
    try(zkl_owner_new, (NULL), ZKL_EINVAL);
    try(zkl_owner_free, (NULL), 0);
    check_said("zkl_owner_use", zkl_owner_use(NULL) == NULL, 1);
    try(zkl_mutex_acquire_async, (NULL, NULL, NULL, NULL, NULL, NULL, NULL), ZKL_EINVAL);
    try(zkl_mutex_unlock_async, (NULL, NULL, NULL, NULL), ZKL_EINVAL);
    try(zkl_semaphore_acquire_async, (NULL, 1, NULL, NULL, NULL, NULL, NULL), ZKL_EINVAL);
    try(zkl_permit_release_async, (NULL, NULL, NULL), ZKL_EINVAL);
    try(zkl_multi_acquire_async, (NULL, NULL, NULL, NULL, NULL, NULL, NULL), ZKL_EINVAL);
    try(zkl_multi_unlock_async, (NULL, NULL, NULL, NULL, NULL), ZKL_EINVAL);
    try(zkl_op_cancel, (NULL, 0), ZKL_EINVAL);
    none(zkl_op_waiting, (NULL, 0, NULL));
    try(zkl_client_close_async, (NULL, NULL, NULL), ZKL_EINVAL);
    try(zkl_client_event_fd, (NULL), ZKL_EINVAL);
    try(zkl_client_dispatch, (NULL, 1), ZKL_EINVAL);
    try(zkl_guard_mutex_path, (NULL, 0, NULL, NULL), ZKL_EINVAL);
    try(zkl_guard_permit_path, (NULL, 0, NULL, NULL), ZKL_EINVAL);
    try(zkl_guard_multi_paths, (NULL, 0, NULL, NULL, 0), ZKL_EINVAL);
}

static void try_metrics(void)
{
    try(zkl_client_get_metrics, (NULL, NULL), ZKL_EINVAL);
    try(zkl_client_get_lock_metrics, (NULL, NULL), ZKL_EINVAL);
    try(zkl_mutex_get_metrics, (NULL, NULL), ZKL_EINVAL);
    try(zkl_semaphore_get_metrics, (NULL, NULL), ZKL_EINVAL);
    try(zkl_metrics_prometheus, (NULL, NULL, 0), ZKL_EINVAL);
    check_said("zkl_histogram_bound_ns", zkl_histogram_bound_ns(0), 500);
    try(zkl_histogram_percentile_ns, (NULL, 50), 0);
}

static void try_the_rest(void)
{
    int number = 0;

    check_said("zkl_version", zkl_version(NULL) != NULL, 1);
    check_text(zkl_version(&number), ZKL_VERSION);
    check_num(number, ==, ZKL_VERSION_NUMBER);
    check_said("zkl_strerror", zkl_strerror(0) != NULL, 1);
    check_said("zkl_error_name", zkl_error_name(0) != NULL, 1);
    check_said("zkl_error_detail", zkl_error_detail() != NULL, 1);
    try(zkl_error_is_retryable, (0), 0);
    try(zkl_error_is_lost, (0), 0);
    check_said("zkl_now_ns", zkl_now_ns() > 0, 1);
}

static bool was_tried(const char *name)
{
    for (size_t i = 0; i < tried_count; i++) {
        if (strcmp(tried[i], name) == 0)
            return true;
    }
    return false;
}

/* Goal: every function of the library accepts NULL and says what is wrong. Method: the test calls
 * all of them. The library's own list of exports says which those are. */
static void every_function_takes_null(void **state)
{
    FILE *map = fopen(ZKL_MAP, "r");
    char line[256], name[64];
    size_t exported = 0;

    (void)state;
    tried_count = 0;
    try_clients();
    try_mutexes();
    try_semaphores();
    try_inspections();
    try_operations();
    try_metrics();
    try_the_rest();
    check_true(map != NULL);
    while (fgets(line, sizeof line, map)) {
        if (sscanf(line, " zkl_%58[a-z_];", name) != 1)
            continue;
        exported++;
        snprintf(line, sizeof line, "zkl_%s", name);
        if (!was_tried(line))
            fail_msg("%s was not tried", line);
    }
    fclose(map);
    check_num(exported, ==, tried_count);
}

/* Goal: the other pointers may not be NULL either where they are needed, nothing is written, and
 * those that may be are. */
static void other_pointers_may_be_null_or_say_so(void **state)
{
    struct zkl_client_options options = ZKL_CLIENT_OPTIONS_INIT;
    struct zkl_client *client = NULL, *good = cluster_client();
    struct zkl_mutex *mutex = NULL;

    (void)state;
    check_fails(zkl_client_open(&client, NULL), ZKL_EINVAL, "options");
    check_fails(zkl_client_open(&client, &options), ZKL_EINVAL, "servers");
    check_true(client == NULL);
    check_fails(zkl_mutex_new(&mutex, NULL, "/x", NULL), ZKL_EINVAL, "client");
    check_fails(zkl_mutex_new(&mutex, good, NULL, NULL), ZKL_EINVAL, "path");
    check_fails(zkl_mutex_new(NULL, good, "/x", NULL), ZKL_EINVAL, "mutex");
    check_true(mutex == NULL);
    mutex = cluster_mutex(good, cluster_path("null"));
    check_ok(zkl_mutex_acquire(mutex, NULL, NULL));
    check_fails(zkl_mutex_node_path(mutex, NULL, 10), ZKL_EINVAL, "buf");
    check_fails(zkl_metrics_prometheus(good, NULL, 10), ZKL_EINVAL, "buf");
    check_ok(zkl_mutex_unlock(mutex));
    cluster_free(good, mutex);
}

/* --- structs --------------------------------------------------------------------------------- */

/* Goal: a struct that was not filled with its _INIT is refused, as is a flag that does not exist, and a field
 * that this library does not know unless it is 0 (tests/package/sizes.py has the rest). */
static void structs_without_their_size_are_refused(void **state)
{
    struct {
        struct zkl_client_options known;
        int64_t later;
    } newer = {cluster_options(), 1};
    struct zkl_client_options options = cluster_options();
    struct zkl_client *client = NULL, *good = cluster_client();
    struct take take = take_of(cluster_mutex(good, cluster_path("size")));

    (void)state;
    options.size = 0;
    check_fails(zkl_client_open(&client, &options), ZKL_EINVAL, "ZKL_CLIENT_OPTIONS_INIT");
    options.size = SIZE_MAX;
    check_fails(zkl_client_open(&client, &options), ZKL_EINVAL, "ZKL_CLIENT_OPTIONS_INIT");
    newer.known.size = sizeof newer;
    check_fails(zkl_client_open(&client, &newer.known), ZKL_EINVAL, "ZKL_CLIENT_OPTIONS_INIT");
    take.wait.size = 0;
    check_fails(do_acquire(&take), ZKL_EINVAL, "ZKL_WAIT_INIT");
    struct zkl_client_metrics of_client = {.size = 0};
    struct zkl_lock_metrics of_lock = {.size = sizeof of_lock - 1};
    check_fails(zkl_client_get_metrics(good, &of_client), ZKL_EINVAL, "ZKL_CLIENT_METRICS_INIT");
    check_fails(zkl_mutex_get_metrics(take.mutex, &of_lock), ZKL_EINVAL, "ZKL_LOCK_METRICS_INIT");
    of_lock.size = sizeof of_lock;
    check_fails(zkl_mutex_get_metrics(take.mutex, &of_lock), ZKL_EINVAL,
                "set metrics in its options");
    take.wait = (struct zkl_wait)ZKL_WAIT_INIT;
    take.grant.size = 1;
    check_fails(do_acquire(&take), ZKL_EINVAL, "ZKL_GRANT_INIT");
    take.grant = (struct zkl_grant)ZKL_GRANT_INIT;
    take.wait.flags = 4;
    check_fails(do_acquire(&take), ZKL_EINVAL, "0x4");
    cluster_free(good, take.mutex);
}

/* Goal: structs of a later header, which have a field more, are taken as long as that is 0, and what is written has 0
 * there. */
static void structs_of_a_later_header_are_taken(void **state)
{
    struct {
        struct zkl_client_options known;
        int64_t later;
    } options = {cluster_options(), 0};
    struct {
        struct zkl_wait known;
        int64_t later;
    } wait = {ZKL_WAIT_INIT, 0};
    struct {
        struct zkl_grant known;
        int64_t later;
    } grant = {ZKL_GRANT_INIT, 7};
    struct zkl_client *client;

    (void)state;
    options.known.size = sizeof options;
    wait.known.size = sizeof wait;
    grant.known.size = sizeof grant;
    check_ok(zkl_client_open(&client, &options.known));
    struct zkl_mutex *mutex = cluster_mutex(client, cluster_path("later"));
    check_ok(zkl_mutex_acquire(mutex, &wait.known, &grant.known));
    check_num(grant.known.token, ==, zkl_mutex_token(mutex));
    check_num(grant.later, ==, 0);
    check_num(grant.known.size, ==, sizeof grant);
    check_ok(zkl_mutex_unlock(mutex));
    cluster_free(client, mutex);
}

/* --- closed ---------------------------------------------------------------------------------- */

/* --- codes ----------------------------------------------------------------------------------- */

/* Goal: each code has a sentence of its own, and the two questions about codes are answered as the
 * header says. */
static void each_code_has_its_sentence(void **state)
{
    (void)state;
    for (int a = 0; a >= ZKL_EFULL; a--) {
        check_num(strlen(zkl_strerror(a)), >=, 7);
        check_true(strcmp(zkl_strerror(a), zkl_strerror(1)) != 0);
        for (int b = 0; b > a; b--)
            check_true(strcmp(zkl_strerror(a), zkl_strerror(b)) != 0);
        bool retryable = a == ZKL_EBUSY || a == ZKL_ETIMEDOUT || a == ZKL_EDISCONNECTED ||
                         a == ZKL_ENOMEM || a == ZKL_ESYSTEM || a == ZKL_EUNPROVED ||
                         a == ZKL_EREADONLY || a == ZKL_EFULL;
        check_num(zkl_error_is_retryable(a), ==, retryable);
        check_num(zkl_error_is_lost(a), ==, a == ZKL_ELOST || a == ZKL_EDOUBT);
    }
    check_text(zkl_strerror(ZKL_EFULL - 1), zkl_strerror(1000));
}

/* Goal: a code's name is what the header calls it, and nothing else has a name. */
static void each_code_has_its_name(void **state)
{
    (void)state;
#define NAME(code) [-(code)] = #code
    static const char *const names[] = {
        NAME(ZKL_OK),           NAME(ZKL_EINVAL),         NAME(ZKL_EBADPATH),
        NAME(ZKL_EBADTIMEOUT),  NAME(ZKL_EBADSERVERS),    NAME(ZKL_ECLOSED),
        NAME(ZKL_EFORK),        NAME(ZKL_EINCALLBACK),    NAME(ZKL_EDEADLK),
        NAME(ZKL_ENOTOWNER),    NAME(ZKL_EOVERFLOW),      NAME(ZKL_EBUSY),
        NAME(ZKL_ETIMEDOUT),    NAME(ZKL_ECANCELED),      NAME(ZKL_EDISCONNECTED),
        NAME(ZKL_EUNCONFIRMED), NAME(ZKL_ELOST),          NAME(ZKL_ENOMEM),
        NAME(ZKL_ESYSTEM),      NAME(ZKL_EACCES),         NAME(ZKL_EAUTH),
        NAME(ZKL_ENOCHROOT),    NAME(ZKL_EEXHAUSTED),     NAME(ZKL_EPROTO),
        NAME(ZKL_EMISMATCH),    NAME(ZKL_ENONODE),        NAME(ZKL_EFOREIGN),
        NAME(ZKL_EUNPROVED),    NAME(ZKL_EDOUBT),         NAME(ZKL_EQUOTA),
        NAME(ZKL_EREADONLY),    NAME(ZKL_EUNIMPLEMENTED), NAME(ZKL_EUNSUPPORTED),
        NAME(ZKL_EFULL),
    };
#undef NAME
    check_num(sizeof names / sizeof names[0], ==, 1 - ZKL_EFULL);
    for (int code = 0; code >= ZKL_EFULL; code--)
        check_text(zkl_error_name(code), names[-code]);
    check_text(zkl_error_name(ZKL_EFULL - 1), "unknown");
    check_text(zkl_error_name(1), "unknown");
}

static int fail_here(void *unused)
{
    (void)unused;
    return zkl_cancel_new(NULL);
}

/* Goal: the detail belongs to its thread. It is empty in a thread that had no failure, and another
 * thread's failure does not change it. */
static void the_detail_is_the_threads_own(void **state)
{
    struct actor *actor = actor_new();
    char mine[256];

    (void)state;
    check_fails(zkl_mutex_lock(NULL), ZKL_EINVAL, "zkl_mutex_acquire");
    snprintf(mine, sizeof mine, "%s", zkl_error_detail());
    check_num(actor_do(actor, fail_here, NULL), ==, ZKL_EINVAL);
    check_text(zkl_error_detail(), mine);
    actor_end(actor);
}

static const struct CMUnitTest tests[] = {
    cluster_test(every_function_takes_null),
    cluster_test(other_pointers_may_be_null_or_say_so),
    cluster_test(structs_without_their_size_are_refused),
    cluster_test(structs_of_a_later_header_are_taken),
    cluster_test(each_code_has_its_sentence),
    cluster_test(each_code_has_its_name),
    cluster_test(the_detail_is_the_threads_own),
};

int main(int argc, char **argv)
{
    return CLUSTER_MAIN(argc, argv, "api", tests);
}
