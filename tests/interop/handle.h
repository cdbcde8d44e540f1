/* SPDX-License-Identifier: Apache-2.0 */
/* Private to the zklock peer: whatever can be locked, behind one face. */
#ifndef ZKINTEROP_HANDLE_H
#define ZKINTEROP_HANDLE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include <zklock/zklock.h>

#define HANDLE_PATHS_MAX 4
#define HANDLES_MAX 16
#define HANDLE_PERMITS_MAX 4

struct handle {
    char name[32];
    char access; /* as the journal has it */
    char paths[HANDLE_PATHS_MAX][64];
    size_t paths_count;
    const struct handle_kind *kind;
    struct zkl_mutex *mutex;
    struct zkl_rwlock *rwlock; /* that the mutex is half of */
    struct zkl_semaphore *semaphore;
    int count;   /* permits that one lock takes; 1 of other kinds */
    int permits; /* of a semaphore: how many there are */
    struct zkl_multi *multi;
    struct zkl_mutex *members[HANDLE_PATHS_MAX];
    bool shares_node; /* a reader's: see zkl_rwlock_retain_readers */
    bool has_callback;
    atomic_int asked; /* how often the callback heard a request to release */
};

/* What a lock of a semaphore gave, for its unlock. */
struct held {
    struct zkl_permit *permits[HANDLE_PERMITS_MAX];
};

/* One for each kind of lock. */
struct handle_kind {
    const char *name;
    int (*make)(struct handle *handle, struct zkl_client *client, const char *const *options);
    int (*lock)(struct handle *handle, const struct zkl_wait *wait, struct held *held);
    int (*unlock)(struct handle *handle, struct held *held);
    int (*free)(struct handle *handle);
};

/* Make what "new" says, options up to a NULL; all these return a zkl_error. EINVAL also for a kind
 * that is not there. */
int handle_new(struct zkl_client *client, const char *name, const char *kind, const char *paths,
               const char *const *options);
/* NULL: there is none. */
struct handle *handle_find(const char *name);
/* Free it; of a rwlock both halves. */
int handle_drop(const char *name);

#endif
