/* SPDX-License-Identifier: Apache-2.0 */
/* One lock of each kind, and who holds it: a thread, or the owner of operations. What they do and
 * are asked has one name for all kinds, so that a behavior is written once. */
#ifndef ZKTEST_KINDS_H
#define ZKTEST_KINDS_H

#include "cluster.h"

enum way { THREAD, OPERATION };
#define WAYS 2

struct kind;

/* A handle on a path. */
struct lock {
    const struct kind *kind;
    const char *path;
    struct zkl_client *client;
    struct zkl_mutex *mutex;         /* of a multi-lock the first member */
    struct zkl_rwlock *rwlock;       /* that the mutex is half of, or NULL */
    struct zkl_mutex *second;        /* a multi-lock's other member, or */
    struct zkl_semaphore *semaphore; /* what permits come from */
    struct zkl_multi *multi;
};

/* What the questions say to the one that asks. */
struct answers {
    int held, held_half, held_beyond; /* still_held: 0 ms, half the window, a session */
    bool beyond_explained;            /* held_beyond has a detail */
    int held_negative;                /* for -1 ms, and whether that has one */
    bool negative_explained;
    bool check_explained;
    int check, check_beyond, check_negative;
    int count, state, state_alone, revoked; /* alone: asked without a place for the reason */
    bool state_explained;
    enum zkl_reason reason;
    uint64_t token;
    int64_t window_ms;
    int length, length_none, length_cut; /* of the node's path: whole, without a buffer, cut */
    char node[300], cut[8];
};

#define UNTOUCHED UINT64_MAX /* the token of a grant that was not written */

/* Who locks: a thread, or an owner that is no thread. */
struct party {
    struct lock *lock;
    enum way way;
    struct actor *actor;
    struct zkl_owner *owner;
    struct zkl_wait wait; /* of the next acquire, and what that got */
    struct zkl_grant grants[2];
    struct zkl_permit *permit;
    int codes[2]; /* of a multi-lock's members, by its last release */
    char detail[300];
    int started; /* an operation: 0, or why it was refused at once */
    struct completion done;
    uint64_t op;
    struct answers said;
};

/* Requests of acquire and release by itself, with a callback, by a try; of a try that is busy. Lists
 * may be fewer: none is sent while a keepalive is under way. */
struct costs {
    int cycle, told, tried, busy;
};

struct kind {
    const char *name;
    int (*make)(struct lock *lock);
    /* The server has nodes of n contenders, of which the first one holds. */
    bool (*has)(const char *path, int n);
    const char *place;    /* below the path: where a hold's node is */
    const char *parts[4]; /* all nodes below the path that outlive a hold */
    const char *rival;    /* the kind that excludes this one */
    bool of_handle; /* a hold belongs to no thread and no owner, which enters it again otherwise */
    bool is_permit; /* and is an object of its own */
    bool is_multi;
    bool is_shared;   /* two of them hold at the same time */
    bool posts;       /* a release does not wait */
    bool takes_turns; /* two of one handle have one node */
    struct costs costs;
};

#define KINDS_MAX 12
extern const struct kind kinds[];
extern const size_t kind_count;

/* Make the handle; its kind, path and client are set. */
void lock_open(struct lock *lock);
/* The calls as they are, on the calling thread. */
int lock_acquire(struct party *party);
int lock_release(struct party *party);
int lock_start(struct party *party, zkl_done_fn fn, void *arg);
int lock_start_release(struct party *party, zkl_done_fn fn, void *arg);
void lock_ask(struct party *party);
/* Of a multi-lock those that wait for its last member that somebody waits for. */
int lock_waiting(struct lock *lock, struct zkl_standing *standing);
int lock_set_callback(struct lock *lock, zkl_hold_fn fn, void *arg);
int lock_free(struct lock *lock);

struct party party_of(struct lock *lock, enum way way);
void party_end(struct party *party);

/* A new wait, without end, and no results. */
void anew(struct party *party);
/* Begin to acquire as party->wait says, and what came of it. */
void begin(struct party *party);
bool is_done(struct party *party);
int result(struct party *party);
/* Both, with a new wait: without end, as a try, for so long, until canceled. */
int take(struct party *party);
int take_try(struct party *party);
int take_for(struct party *party, int64_t ms);
int take_lease(struct party *party, int64_t ms);
/* By the call that waits, of an owner too. */
int take_here(struct party *party);
int take_with(struct party *party, struct zkl_cancel *cancel);
int give(struct party *party);
int renew(struct party *party, int64_t lease_ms);
const struct answers *ask(struct party *party);

#endif
