/* SPDX-License-Identifier: Apache-2.0 */
#include "scope.h"

int scope_left_by_return(struct zkl_mutex *mutex)
{
    zkl::mutex_scope scope(mutex);

    return scope.rc() == 0 ? zkl_mutex_hold_count(mutex) : scope.rc();
}

int scope_left_by_throw(struct zkl_mutex *mutex)
{
    try {
        zkl::mutex_scope scope(mutex);
        throw scope.rc() == 0 ? zkl_mutex_hold_count(mutex) : scope.rc();
    } catch (int result) {
        return result;
    }
}

int scope_left_early(struct zkl_mutex *mutex, int *rc)
{
    zkl::mutex_scope scope(mutex);

    *rc = scope.unlock();
    return zkl_mutex_hold_count(mutex);
}
