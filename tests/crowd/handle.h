/* SPDX-License-Identifier: Apache-2.0 */
/* Private to the peer of zklock: whatever can be locked, behind one face. The options are in conductor.py. */
#ifndef ZKCROWD_HANDLE_H
#define ZKCROWD_HANDLE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <zklock/zklock.h>

#define HANDLE_PATHS_MAX 6
#define HANDLES_MAX 48
#define HANDLE_PERMITS_MAX 4

/* How "run" locks with a handle. */
struct habits {
    bool tries, syncs, naps, downgrades;
    bool timed; /* short deadlines, again and again */
    bool late;  /* now and then a lease runs out */
    int64_t lease_ms;
};

struct handle {
    char name[32];
    char access; /* as the journal has it */
    struct habits habits;
    char lock_name[40]; /* of a named lock; "": none */
    char paths[HANDLE_PATHS_MAX][64];
    size_t paths_count;
    const struct handle_kind *kind;
    struct zkl_mutex *mutex;
    struct zkl_rwlock *rwlock; /* that the mutex is half of */
    struct zkl_semaphore *semaphore;
    int count;   /* permits that one lock takes; 1 of other kinds */
    int permits; /* of a semaphore: how many there are */
    struct zkl_multi *multi;
    struct handle *members[HANDLE_PATHS_MAX];
    size_t members_count;
    bool owns_members; /* they were made with it */
    bool shares_node;  /* a reader's: see zkl_rwlock_retain_readers */
    bool has_callback;
    atomic_int asked; /* how often the callback heard a request to release */
    atomic_int lost;  /* and of a loss */
};

/* What a lock gave, and what its unlock said: of each place, or permit. */
struct held {
    struct zkl_grant grants[HANDLE_PATHS_MAX];
    struct zkl_permit *permits[HANDLE_PERMITS_MAX];
    int codes[HANDLE_PATHS_MAX];
};

/* One for each kind of lock. */
struct handle_kind {
    const char *name;
    int (*make)(struct handle *handle, struct zkl_client *client, const char *const *options);
    int (*lock)(struct handle *handle, const struct zkl_wait *wait, struct held *held);
    int (*unlock)(struct handle *handle, struct held *held);
    int (*free)(struct handle *handle);
};

int handle_lock(struct handle *handle, const struct zkl_wait *wait, struct held *held);
/* How many places or permits a lock gives, and the handle of the nth: of a multi-lock a member. */
size_t handle_places(const struct handle *handle);
const struct handle *handle_place(const struct handle *handle, size_t n);
/* The least of all. */
int64_t handle_window_ms(const struct handle *handle, const struct held *held);
/* The length of the nth one's node, 0: there is none. */
int handle_node(const struct handle *handle, const struct held *held, size_t n, char *node,
                size_t size);

/* Make what "new" says, options up to a NULL; all these return a zkl_error. EINVAL also for a kind
 * that is not there. */
int handle_new(struct zkl_client *client, const char *name, const char *kind, const char *paths,
               const char *const *options);
/* A multi-lock of handles for one place each; without a name, and to be freed by its kind. */
int handle_of(struct handle *multi, struct zkl_client *client, struct handle *const *members,
              size_t n);
/* One with a name, of the handles with these names: "L1,L4.read". */
int handle_join(struct zkl_client *client, const char *name, char *members);
/* NULL: there is none. */
struct handle *handle_find(const char *name);
/* Free it; of a rwlock both halves. */
int handle_drop(const char *name);

#endif
