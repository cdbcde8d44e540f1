/* SPDX-License-Identifier: Apache-2.0 */
/* Goal: each initializer is a constant, for C11 and for C++11: a struct that lives as long as the program, or is const,
 * needs no code to be filled. initializers.sh compiles this, with every warning an error. */
#include <zklock/async.h>
#include <zklock/inspect.h>
#include <zklock/metrics.h>
#include <zklock/zklock.h>

static struct zkl_wait wait_for_it = ZKL_WAIT_INIT;
static struct zkl_grant grants[2] = {ZKL_GRANT_INIT, ZKL_GRANT_INIT};
static struct zkl_standing standing = ZKL_STANDING_INIT;
static const struct zkl_client_options client_options = ZKL_CLIENT_OPTIONS_INIT;
static const struct zkl_lock_options lock_options = ZKL_LOCK_OPTIONS_INIT;
static const struct zkl_mutex_options mutex_options = ZKL_MUTEX_OPTIONS_INIT;
static struct zkl_member member = ZKL_MEMBER_INIT;
static struct zkl_lock_metrics lock_metrics = ZKL_LOCK_METRICS_INIT;
static struct zkl_client_metrics client_metrics = ZKL_CLIENT_METRICS_INIT;

const void *each_initializer(int which);

const void *each_initializer(int which)
{
    const void *const all[] = {&wait_for_it,    &grants[0],    &standing,
                               &client_options, &lock_options, &mutex_options,
                               &member,         &lock_metrics, &client_metrics};
    return all[which];
}
