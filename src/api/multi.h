/* SPDX-License-Identifier: Apache-2.0
 * A multi-lock, for the files that know its members: multi.c has its handle and its calls,
 * multi_acquire.c and multi_release.c have what threads and operations do alike.
 *
 * Mutexes that are next to each other, a bundle, are in no local queue and ask for no retained
 * node: a try that meets one is busy immediately, and writes nothing. A member that is lost while
 * others are waited for is noticed at the next step: to wait for more on top of it is in vain. All
 * are given up, and made anew when the server has answered for what they had. More permits than
 * there are, and a try through a handle that holds, fail before the first request, as that needs
 * no server. */
#ifndef ZKL_API_MULTI_H
#define ZKL_API_MULTI_H

#include "attempt.h"

struct zkl_multi {
    struct zkl_client *client;
    atomic_int uses; /* owners that hold or wait */
    bool as_one;     /* all members can be taken in one transaction */
    size_t count, permit_count;
    size_t *order;     /* of the members, by their paths */
    size_t *permit_at; /* of the members that are held once: where their permits are */
    struct zkl_member members[];
};

/* The member that is the ith by its path. */
static inline const struct zkl_member *zkl_multi_member_at(const struct zkl_multi *multi, size_t i)
{
    return &multi->members[multi->order[i]];
}

static inline bool zkl_member_is_semaphore(const struct zkl_member *member)
{
    return member->type == ZKL_MEMBER_SEMAPHORE;
}

/* A member that belongs to no thread has no re-entry: it is held once for all locks of the
 * multi-lock by the thread. */
static inline bool zkl_member_is_held_once(const struct zkl_member *member)
{
    return zkl_member_is_semaphore(member) || member->mutex->semaphore;
}

static inline const char *zkl_member_path(const struct zkl_member *member)
{
    const struct zkl_semaphore *semaphore =
        zkl_member_is_semaphore(member) ? member->semaphore : member->mutex->semaphore;
    return semaphore ? semaphore->path->path : member->mutex->lock_path->path;
}

/* The handle that counts its failures. */
static inline const struct zkl_mutex *zkl_member_handle(const struct zkl_member *member)
{
    return zkl_member_is_semaphore(member) ? &member->semaphore->base : member->mutex;
}

/* --- multi_hold.c ------------------------------------------------------- */

/* The permits of the ith member by its path, which is held once. */
struct zkl_permit **zkl_multi_permits(const struct zkl_multi *multi, size_t i,
                                      struct zkl_multi_hold *held);
/* The ith member is a semaphore's mutex: this acquisition's hold still is the handle's. With the
 * mutex. */
bool zkl_multi_has_handle(const struct zkl_multi *multi, size_t i, struct zkl_multi_hold *held);
/* Take that from the handle, with its reference; NULL: it was unlocked by itself. Without the
 * mutex. */
struct zkl_place *zkl_multi_take_handle(const struct zkl_multi *multi, size_t i,
                                        struct zkl_multi_hold *held);

/* --- multi_acquire.c ---------------------------------------------------- */

/* One acquisition of all members, as the owner, which does nothing else until the attempt is
 * finished; without the mutex. NULL: no memory. */
struct zkl_attempt *zkl_multi_attempt_new(struct zkl_multi *multi, const struct zkl_wait *wait);
/* Allocates what the acquisition needs. 0, or a failure in words: finish the attempt with it. */
int zkl_multi_attempt_prepare(struct zkl_attempt *attempt);
/* said: the failure is in words already. Returns rc. The attempt is freed, and all members are
 * held, or none that was not held before. */
int zkl_multi_attempt_finish(struct zkl_attempt *attempt, int rc, bool said);

/* --- multi_release.c ---------------------------------------------------- */

struct zkl_unlocking {
    struct zkl_multi *multi;
    struct zkl_release release;
    int codes[ZKL_MULTI_MEMBERS_MAX]; /* by their paths */
    bool last;                        /* nothing is held by it any more */
};

/* As the owner of the multi-lock; without the mutex. From here on the owner has one hold of it
 * less, or none. */
void zkl_unlocking_collect(struct zkl_unlocking *u, struct zkl_multi *multi);
/* With the mutex. op: is woken when some of it has ended. */
void zkl_unlocking_begin(struct zkl_unlocking *u, struct zkl_op *op);
bool zkl_unlocking_is_over(const struct zkl_unlocking *u);
/* Both on the calling thread; without the mutex. */
void zkl_unlocking_wait(struct zkl_unlocking *u);
/* codes: in the order of zkl_multi_new, or NULL. The worst of them, in words. */
int zkl_unlocking_end(struct zkl_unlocking *u, int *codes);

/* --- multi.c: what its calls and its operations have in common ----------- */

/* 0, or what is wrong with the arguments, said for call; if it blocks also with the thread. */
int zkl_multi_check_acquire(struct zkl_multi *multi, const struct zkl_wait *wait,
                            struct zkl_grant *grants, const char *call, bool blocks);
/* 0, or the reason why the calling owner cannot have all members, noted and counted: its own holds
 * are in the way, or lost, or (if there is something to acquire) the wait is over. */
int zkl_multi_check_members(const struct zkl_multi *multi, const struct zkl_wait *wait);
/* ZKL_ENOTOWNER too. */
int zkl_multi_check_unlock(struct zkl_multi *multi, const char *call, bool blocks);
/* The caller's lie as far apart as its struct is long. */
static inline struct zkl_grant *zkl_multi_grant_at(struct zkl_grant *grants, size_t index)
{
    return (void *)((char *)grants + index * grants->size);
}

/* --- questions.c ---------------------------------------------------------- */

/* What the calling owner has by it; NULL: nothing. Or why it can't be asked, said for call. */
int zkl_multi_find(struct zkl_multi *multi, const char *call, struct zkl_multi_hold **held);
/* The calling owner has it. */
void zkl_multi_fill_grants(const struct zkl_multi *multi, struct zkl_grant *grants);

#endif
