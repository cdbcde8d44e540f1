/* SPDX-License-Identifier: Apache-2.0 */
#include "done.h"

#include <stdio.h>
#include <string.h>

void note_done(int code, void *arg)
{
    struct done *done = arg;

    done->code = code;
    done->thread = pthread_self();
    snprintf(done->detail, sizeof done->detail, "%s", zkl_error_detail());
    atomic_fetch_add(&done->calls, 1);
}

int done_code(struct done *done)
{
    check_wait(atomic_load(&done->calls) > 0, WAIT_MS);
    check_num(atomic_load(&done->calls), ==, 1);
    int code = done->code;
    *done = (struct done){0};
    return code;
}

int async_lock(struct zkl_owner *owner, struct zkl_mutex *mutex)
{
    struct done done = {0};
    int rc = zkl_mutex_acquire_async(owner, mutex, NULL, NULL, note_done, &done, NULL);

    return rc != 0 ? rc : done_code(&done);
}

int async_unlock(struct zkl_owner *owner, struct zkl_mutex *mutex)
{
    struct done done = {0};
    int rc = zkl_mutex_unlock_async(owner, mutex, note_done, &done);

    return rc != 0 ? rc : done_code(&done);
}

struct zkl_owner *new_owner(void)
{
    struct zkl_owner *owner = NULL;

    check_ok(zkl_owner_new(&owner));
    return owner;
}
