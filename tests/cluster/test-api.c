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

/* Goal: the version is that of the headers, as text and as a number. */
CLUSTER_TEST(the_version_is_that_of_the_headers)
{
    int number = 0;

    check_text(zkl_version(&number), ZKL_VERSION);
    check_num(number, ==, ZKL_VERSION_NUMBER);
    check_num(zkl_histogram_bound_ns(0), ==, 500);
}

/* --- structs --------------------------------------------------------------------------------- */

/* Goal: a struct that was not filled with its _INIT is refused, as is a flag that does not exist, and a field
 * that this library does not know unless it is 0 (tests/package/sizes.py has the rest). */
CLUSTER_TEST(structs_without_their_size_are_refused)
{
    struct {
        struct zkl_client_options known;
        int64_t later;
    } newer = {cluster_options(), 1};
    struct zkl_client_options options = cluster_options();
    struct zkl_client *client = NULL, *good = cluster_client();
    struct take take = take_of(cluster_mutex(good, cluster_path("size")));

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
CLUSTER_TEST(structs_of_a_later_header_are_taken)
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
CLUSTER_TEST(each_code_has_its_sentence)
{
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
CLUSTER_TEST(each_code_has_its_name)
{
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
CLUSTER_TEST(the_detail_is_the_threads_own)
{
    struct actor *actor = actor_new();
    char mine[256];

    check_fails(zkl_mutex_lock(NULL), ZKL_EINVAL, "zkl_mutex_acquire");
    snprintf(mine, sizeof mine, "%s", zkl_error_detail());
    check_num(actor_do(actor, fail_here, NULL), ==, ZKL_EINVAL);
    check_text(zkl_error_detail(), mine);
    actor_end(actor);
}
