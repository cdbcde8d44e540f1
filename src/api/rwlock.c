/* SPDX-License-Identifier: Apache-2.0
 *
 * The read-write lock: two mutex handles with one path. Each sees the other's contenders by the
 * rules of src/core/role.c. This file owns both halves and frees them together only. Users call it
 * without a lock held; mutex.c does the work of the halves. */
#include <stdlib.h>

#include "cached_reader.h"
#include "error.h"
#include "place.h"

static int init(void *handle, struct zkl_client *client, const char *path, int permits,
                const struct zkl_mutex_options *options, const char *call)
{
    struct zkl_rwlock *rw = handle;
    int rc = zkl_mutex_init(&rw->read, client, path, options, call);
    (void)permits;
    if (rc != 0)
        return rc;
    rc = zkl_mutex_init(&rw->write, client, path, options, call);
    if (rc != 0) {
        zkl_mutex_fini(&rw->read);
        return rc;
    }
    rw->read.naming.role = ZKL_ROLE_READ;
    rw->write.naming.role = ZKL_ROLE_WRITE;
    rw->read.rwlock = rw->write.rwlock = rw;
    zkl_cached_setup(rw);
    rw->read.kind = rw->write.kind = &zkl_own_mutex_kind;
    return 0;
}

int zkl_rwlock_new(struct zkl_rwlock **rwlock, struct zkl_client *client, const char *path,
                   const struct zkl_lock_options *options)
{
    static const struct zkl_lock_maker maker = {"zkl_rwlock_new", sizeof(struct zkl_rwlock),
                                                zkl_lock_options_take, init};
    void *made;
    int rc = zkl_lock_new(&maker, rwlock, client, path, 0, options, &made);
    if (rc == 0)
        *rwlock = made;
    return rc;
}

static void fini(void *handle)
{
    struct zkl_rwlock *rw = handle;
    zkl_mutex_fini(&rw->read);
    zkl_mutex_fini(&rw->write);
}

int zkl_rwlock_free(struct zkl_rwlock *rwlock)
{
    if (!rwlock)
        return 0;
    struct zkl_mutex *const halves[] = {&rwlock->read, &rwlock->write};
    return zkl_lock_free(rwlock, halves, 2, fini, "zkl_rwlock_free");
}

struct zkl_mutex *zkl_rwlock_reader(struct zkl_rwlock *rwlock)
{
    return rwlock ? &rwlock->read : NULL;
}

struct zkl_mutex *zkl_rwlock_writer(struct zkl_rwlock *rwlock)
{
    return rwlock ? &rwlock->write : NULL;
}
