/* SPDX-License-Identifier: Apache-2.0 */
/* Readers of one handle that have one node, which stays (zkl_rwlock_retain_readers). */
#ifndef ZKTEST_CACHED_H
#define ZKTEST_CACHED_H

#include "nodes.h"
#include "notes.h"

#define LONG_MS 600000 /* nothing ends by itself */

struct user {
    struct zkl_client *client;
    struct zkl_rwlock *rwlock;
    struct zkl_mutex *read, *write;
};

static inline struct user user_of(struct zkl_client *client, const char *path, int64_t retain_ms)
{
    struct user u = {.client = client};

    u.rwlock = world_rwlock(client, path, NULL);
    check_ok(zkl_rwlock_retain_readers(u.rwlock, retain_ms));
    u.read = zkl_rwlock_reader(u.rwlock);
    u.write = zkl_rwlock_writer(u.rwlock);
    return u;
}

static inline uint64_t read_once(struct user *u)
{
    check_ok(zkl_mutex_lock(u->read));
    uint64_t token = zkl_mutex_token(u->read);
    check_ok(zkl_mutex_unlock(u->read));
    return token;
}

/* Until the list that is asked for with the first node has come each reader has a node of its own: then two in a row
 * have the same. */
static inline void keep(struct user *u)
{
    check_wait(read_once(u) == read_once(u), WAIT_MS);
}

#endif
