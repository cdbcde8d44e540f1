/* SPDX-License-Identifier: Apache-2.0 */
/* The version, and codes with their sentences and names, of the shared library as it is shipped. */
#include "cluster.h"
#include "check_error.h"

#include <zklock/guard.h>
#include <zklock/metrics.h>
#include <zklock/version.h>

WORLD_TEST(the_version_is_that_of_the_headers)
{
    int number = 0;

    check_text(zkl_version(&number), ZKL_VERSION);
    check_num(number, ==, ZKL_VERSION_NUMBER);
    check_num(zkl_histogram_bound_ns(0), ==, 500);
}

/* Goal: each code has a sentence of its own, and the two questions about codes are answered as the
 * header says. */
WORLD_TEST(each_code_has_its_sentence)
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

WORLD_TEST(each_code_has_its_name)
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
WORLD_TEST(the_detail_is_the_threads_own)
{
    struct actor *actor = world_actor();
    char mine[256];

    check_fails(zkl_mutex_lock(NULL), ZKL_EINVAL, "zkl_mutex_acquire");
    snprintf(mine, sizeof mine, "%s", zkl_error_detail());
    check_num(actor_do(actor, fail_here, NULL), ==, ZKL_EINVAL);
    check_text(zkl_error_detail(), mine);
}
