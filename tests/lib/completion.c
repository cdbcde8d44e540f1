/* SPDX-License-Identifier: Apache-2.0 */
#include "completion.h"

#include <stdio.h>

enum { COMES_WITHIN_MS = 20000 }; /* on a machine that may be busy */

void note_completion(int code, void *arg)
{
    struct completion *completion = arg;

    completion->code = code;
    completion->thread = pthread_self();
    snprintf(completion->detail, sizeof completion->detail, "%s", zkl_error_detail());
    atomic_fetch_add(&completion->calls, 1);
}

int completion_code(struct completion *completion)
{
    check_wait(atomic_load(&completion->calls) > 0, COMES_WITHIN_MS);
    check_num(atomic_load(&completion->calls), ==, 1);
    int code = completion->code;
    *completion = (struct completion){0};
    return code;
}

int async_lock(struct zkl_owner *owner, struct zkl_mutex *mutex)
{
    struct completion completion = {0};
    int rc = zkl_mutex_acquire_async(owner, mutex, NULL, NULL, note_completion, &completion, NULL);

    return rc != 0 ? rc : completion_code(&completion);
}

int async_unlock(struct zkl_owner *owner, struct zkl_mutex *mutex)
{
    struct completion completion = {0};
    int rc = zkl_mutex_unlock_async(owner, mutex, note_completion, &completion);

    return rc != 0 ? rc : completion_code(&completion);
}

struct zkl_owner *new_owner(void)
{
    struct zkl_owner *owner = NULL;

    check_ok(zkl_owner_new(&owner));
    return owner;
}
