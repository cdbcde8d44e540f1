/* SPDX-License-Identifier: Apache-2.0
 * A multi-lock, for the files that know its members. */
#ifndef ZKL_API_MULTI_H
#define ZKL_API_MULTI_H

#include "ask.h"
#include "owner.h"

struct zkl_multi {
    struct zkl_client *client;
    atomic_int uses;  /* threads that hold or wait */
    bool as_one;      /* all members can be taken in one transaction */
    bool takes_turns; /* some member does */
    size_t count, permit_count;
    size_t *order;     /* of the members, by their paths */
    size_t *permit_at; /* of the members that are semaphores: where their permits are */
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

/* What belongs to no thread is not entered again: it is held once for all that the thread locks the
 * multi-lock. */
static inline bool zkl_member_is_held_once(const struct zkl_member *member)
{
    return zkl_member_is_semaphore(member) || member->mutex->semaphore;
}

static inline const char *zkl_member_path(const struct zkl_member *member)
{
    const struct zkl_semaphore *semaphore =
        zkl_member_is_semaphore(member) ? member->semaphore : member->mutex->semaphore;
    return semaphore ? semaphore->path->path : member->mutex->root->path;
}

/* Give up a member that belongs to no thread, as the multi-lock's hold has it, and wait for nothing. */
void zkl_multi_let_go_once_held(const struct zkl_multi *multi, size_t i,
                                struct zkl_multi_hold *held);

#endif
