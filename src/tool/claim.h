/* SPDX-License-Identifier: Apache-2.0 */
/* The locks of one zklock run, as one multi-lock. */
#ifndef ZKLOCK_TOOL_CLAIM_H
#define ZKLOCK_TOOL_CLAIM_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include <zklock/zklock.h>

struct claim_options {
    char **paths;
    size_t count; /* 1 to ZKL_MULTI_MEMBERS_MAX */
    bool shared;
    int permits; /* > 0: semaphores with this many permits */
    enum zkl_names names;
};

struct claim {
    struct zkl_client *client; /* borrowed */
    struct claim_options options;
    struct zkl_mutex *mutexes[ZKL_MULTI_MEMBERS_MAX]; /* or NULL */
    struct zkl_rwlock *rwlocks[ZKL_MULTI_MEMBERS_MAX];
    struct zkl_semaphore *semaphores[ZKL_MULTI_MEMBERS_MAX];
    struct zkl_multi *multi;
    int events; /* readable after one of the next two was set */
    atomic_bool lost, revoked;
};

/* 0 or a zkl_error, with claim_fini due in either case. options is copied, except its paths. */
int claim_init(struct claim *claim, struct zkl_client *client, const struct claim_options *options);
int claim_acquire(struct claim *claim, const struct zkl_wait *wait);
/* While another thread is in claim_acquire: the member that it waits for, and the place there; or -1
 * if none is known. Sends nothing. */
int claim_waits_at(const struct claim *claim, struct zkl_standing *place);
/* The command's additional environment: LAUNCH_VARIABLES texts, each to be freed by the caller.
 * False: no memory. */
bool claim_describe(const struct claim *claim, char *variables[]);
/* Up to when all are held for sure, on CLOCK_BOOTTIME; 0 if they are not. */
int64_t claim_window_end_ns(const struct claim *claim);
/* Of the session. */
int64_t claim_timeout_ns(const struct claim *claim);
int claim_release(struct claim *claim);
void claim_fini(struct claim *claim);

#endif
